//! The addons that turnup brings along: which there are, and their settings as typed values. What
//! is rendered of them and applied is the matter of `addons`.

use serde::{Deserialize, Serialize};

use crate::config::Settings;
use crate::error::Result;

/// An addon; its manifests are the directory of its name below `templates/addons`.
#[derive(Debug)]
pub struct Addon {
    /// Its name.
    pub name: &'static str,
    /// The image that it runs, which all nodes get; its version is the addon's.
    pub image: &'static str,
    /// The kind of its main object, which has the addon's name.
    pub main: &'static str,
    /// Whether it is switched on.
    pub enabled: fn(&AddonSettings) -> bool,
}

/// All addons, each after those that it needs.
pub static ADDONS: &[Addon] = &[
    Addon { name: "flannel", image: "flannel", main: "DaemonSet", enabled: |settings| settings.cni },
    Addon { name: "kube-proxy", image: "kube-proxy", main: "DaemonSet", enabled: |settings| settings.kube_proxy },
    Addon { name: "coredns", image: "coredns", main: "Deployment", enabled: |settings| settings.dns },
];

/// The settings of all addons; templates name them as the fields are named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct AddonSettings {
    pub kube_proxy: bool,
    pub cni: bool,
    pub flannel_backend: Option<FlannelBackend>,
    pub dns: bool,
    pub dns_replicas: u32,
}

/// How flannel carries packets between pods of different hosts, in flannel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlannelBackend {
    /// As they are, by routes: the hosts' network must let them through.
    HostGw,
    /// Wrapped in packets of the hosts'.
    Vxlan,
}

impl AddonSettings {
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            kube_proxy: settings.get_bool("phase3.kube_proxy")?,
            cni: settings.get_bool("phase3.cni")?,
            flannel_backend: settings.get_word("phase2.network.flannel_backend")?,
            dns: settings.get_bool("phase3.dns")?,
            dns_replicas: settings.get_number("phase3.dns_replicas")?,
        })
    }

    /// Whether packets between pods of different hosts are wrapped.
    #[must_use]
    pub fn has_vxlan(&self) -> bool {
        self.flannel_backend == Some(FlannelBackend::Vxlan)
    }
}
