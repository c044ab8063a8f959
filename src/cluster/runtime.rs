//! The settings of the container runtime and of the proxy as typed values. Only read here;
//! `bootstrap::runtime` acts on them.

use serde::Deserialize;

use crate::config::Settings;
use crate::error::Result;

/// `phase2.runtime`. A file is named as the configuration names it, and empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct RuntimeSettings {
    pub registry_mirrors: Vec<RegistryMirrors>,
    pub registry_auth_file: String,
    pub ecr_credentials: bool,
    pub log_level: String,
    /// An absolute path of hosts.
    pub data_dir: String,
    pub snapshotter: String,
    /// `auto`, `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    pub max_concurrent_downloads: u32,
    pub config_file: String,
}

/// One of `phase2.runtime.registry_mirrors`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryMirrors {
    /// `docker.io`, `registry.example.com:5000`; `*` for every registry without an entry.
    pub registry: String,
    /// URLs in the order in which they are asked.
    pub mirrors: Vec<String>,
    /// The certificate of the authority of all its mirrors, a file of this machine.
    #[serde(default)]
    pub ca_file: Option<String>,
    /// Whether any certificate is accepted.
    #[serde(default)]
    pub skip_verify: bool,
    /// Whether the URLs have the whole path of the registry's API already, without `/v2`.
    #[serde(default)]
    pub override_path: bool,
}

impl RuntimeSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            registry_mirrors: settings.get_records("phase2.runtime.registry_mirrors")?,
            registry_auth_file: settings.get("phase2.runtime.registry_auth_file")?,
            ecr_credentials: settings.get_bool("phase2.runtime.ecr_credentials")?,
            log_level: settings.get("phase2.runtime.log_level")?,
            data_dir: settings.get("phase2.runtime.data_dir")?,
            snapshotter: settings.get("phase2.runtime.snapshotter")?,
            cgroup_driver: settings.get("phase2.runtime.cgroup_driver")?,
            max_concurrent_downloads: settings.get_number("phase2.runtime.max_concurrent_downloads")?,
            config_file: settings.get("phase2.runtime.config_file")?,
        })
    }
}

/// The way out of the hosts' network; all of it is empty where they go directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct ProxySettings {
    pub http_proxy: String,
    pub https_proxy: String,
    /// What is reached without it, beside what the cluster itself consists of.
    pub no_proxy: Vec<String>,
    /// A file of this machine.
    pub proxy_ca_file: String,
}

impl ProxySettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            http_proxy: settings.get("phase2.http_proxy")?,
            https_proxy: settings.get("phase2.https_proxy")?,
            no_proxy: settings.get_list("phase2.no_proxy")?,
            proxy_ca_file: settings.get("phase2.proxy_ca_file")?,
        })
    }

    /// Whether there is one.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        !self.http_proxy.is_empty() || !self.https_proxy.is_empty()
    }
}
