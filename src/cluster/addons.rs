//! The settings of addons as typed values, read once. Which addons there are is said in `catalog`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Settings;
use crate::error::{Context as _, Result};

/// Whether nodes wait for a cloud controller manager, an addon.
pub const CLOUD_CONTROLLER: &str = "phase3.cloud_controller";

/// The settings of all addons, for templates, which name them. What code reads, too, is a field;
/// an addon whose settings only its templates read needs none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct AddonSettings {
    pub target: String,
    pub kube_proxy: bool,
    pub cloud_controller: bool,
    pub proxy_mode: Option<ProxyMode>,
    pub cni: bool,
    pub flannel_backend: Option<FlannelBackend>,
    pub mtu: u32,
    pub interface: String,
    pub non_masquerade_cidrs: Vec<String>,
    pub dns: bool,
    pub dns_replicas: u32,
    pub limit_range: bool,
    pub log_shipping: bool,
    pub network_policies: bool,
    pub local_storage: bool,
    pub local_storage_path: String,
    pub prune: bool,
    /// Whether control-plane hosts keep the addons as they were applied.
    pub addon_manager: bool,
    pub oidc_issuer_url: String,
    pub oidc_client_id: String,
    /// Everything else that phase 3 asks, by the names behind `phase3.`, as the file has it.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// By which rules of the kernel kube-proxy makes Services work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyMode {
    /// By nftables: a kernel of 5.13 or newer.
    Nftables,
    /// By the host's iptables.
    Iptables,
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
        let mut read = Self {
            target: settings.get("phase1.cloud_provider")?,
            kube_proxy: settings.get_bool("phase3.kube_proxy")?,
            cloud_controller: settings.get_bool(CLOUD_CONTROLLER)?,
            proxy_mode: settings.get_word("phase2.proxy_mode")?,
            cni: settings.get_bool("phase3.cni")?,
            flannel_backend: settings.get_word("phase2.network.flannel_backend")?,
            mtu: settings.get_number("phase2.network.mtu")?,
            interface: settings.get("phase2.network.interface")?,
            non_masquerade_cidrs: settings.get_list("phase2.network.non_masquerade_cidrs")?,
            dns: settings.get_bool("phase3.dns")?,
            dns_replicas: settings.get_number("phase3.dns_replicas")?,
            limit_range: settings.get_bool("phase3.limit_range")?,
            log_shipping: settings.get_bool("phase3.log_shipping")?,
            network_policies: settings.get_bool("phase3.network_policies")?,
            local_storage: settings.get_bool("phase3.local_storage")?,
            local_storage_path: settings.get("phase3.local_storage_path")?,
            prune: settings.get_bool("phase3.prune")?,
            addon_manager: settings.get_bool("phase3.addon_manager")?,
            oidc_issuer_url: settings.get("phase2.apiserver.oidc_issuer_url")?,
            oidc_client_id: settings.get("phase2.apiserver.oidc_client_id")?,
            others: BTreeMap::new(),
        };
        let fields = serde_json::to_value(&read).context("the settings of addons")?;
        let all = settings.list().iter();
        let named =
            all.filter_map(|it| Some((it.name.strip_prefix("phase3.")?.to_owned(), it.json(settings.schema()))));
        read.others = named.filter(|(name, _)| fields.get(name).is_none()).collect();
        Ok(read)
    }

    /// Whether kube-proxy needs a kernel with all of nftables.
    #[must_use]
    pub fn uses_nftables(&self) -> bool {
        self.kube_proxy && self.proxy_mode != Some(ProxyMode::Iptables)
    }

    /// Whether packets between pods of different hosts are wrapped.
    #[must_use]
    pub fn has_vxlan(&self) -> bool {
        self.flannel_backend == Some(FlannelBackend::Vxlan)
    }
}
