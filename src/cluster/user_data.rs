//! The settings of user data and of logging in by it, as typed values. Only read here;
//! `bootstrap::user_data` acts on them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::config::{Network, Settings};
use crate::error::{Error, Result};
use crate::inventory::Taint;

/// `phase1.user_data` and what of `phase1.ssh` and `phase1.node_groups` goes with it.
#[derive(Clone, Debug, Default)]
pub struct UserDataSettings {
    /// Whether hosts become nodes by user data; never on targets that have none.
    pub pull: bool,
    /// The form that the image understands.
    pub form: UserDataFormat,
    /// Where the directory of `turnup artifacts export` is served.
    pub artifacts_url: String,
    /// Workers join by what their cloud signs of each machine, and not by a token of their group.
    pub by_identity: bool,
    /// How long the token of a group is good.
    pub token_lifetime: Duration,
    /// The user's own parts.
    pub parts: Vec<UserDataPart>,
    /// Groups of hosts that join by user data; empty where there is one pool.
    pub groups: Vec<GroupRecord>,
}

/// A form of user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserDataFormat {
    /// `#cloud-config`, inside of MIME when there are parts.
    #[default]
    CloudInit,
    /// Ignition, version 3.
    Ignition,
}

impl UserDataFormat {
    /// Where a group's user data lies below the cluster's directory.
    #[must_use]
    pub fn file_of(self, group: &str) -> String {
        let ending = match self {
            Self::CloudInit => "cloud-init",
            Self::Ignition => "ign",
        };
        format!("user-data/{group}.{ending}")
    }
}

/// One of `phase1.user_data.parts`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserDataPart {
    /// Its name.
    pub name: String,
    /// The file, from the directory of the configuration.
    pub file: String,
    /// What is in it.
    #[serde(rename = "type")]
    pub kind: UserDataKind,
    /// Only for hosts of these roles; for all when empty.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Only for hosts of these groups; for all when empty.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserDataKind {
    /// `#cloud-config`.
    CloudConfig,
    /// A script that names its interpreter.
    ShellScript,
    /// An Ignition configuration.
    Ignition,
}

/// What the hosts of one of `phase1.node_groups` become. Other fields are for modules of clouds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GroupRecord {
    /// Its name.
    pub name: String,
    /// How many hosts it has at first.
    #[serde(default)]
    pub size: u32,
    /// Labels of its Nodes.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints of its Nodes.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// What its hosts are made of; of local ones the release.
    #[serde(default)]
    pub image: Option<String>,
    /// Its own limit of pods.
    #[serde(default)]
    pub max_pods: Option<u32>,
    /// What kubelet keeps for itself and the container runtime.
    #[serde(default)]
    pub kube_reserved: BTreeMap<String, String>,
    /// How many of its hosts may be away while they are renewed.
    #[serde(default)]
    pub max_unavailable: Option<usize>,
    /// Files with user data of its own.
    #[serde(default)]
    pub additional_user_data: Vec<String>,
}

impl UserDataSettings {
    /// The setting by which hosts of this machine have user data, too.
    pub(super) const OF_LOCAL_HOSTS: &'static str = "phase1.local.replace_hosts";
    /// The TCP port at which this machine serves them then.
    pub const LOCAL_PORT: u16 = 3994;

    /// Reads them; the defaults where the target has no user data.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        if settings.get_bool(Self::OF_LOCAL_HOSTS)? {
            return Self::read_local(settings);
        }
        let format = settings.get("phase1.user_data.format")?;
        if format.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self {
            pull: true,
            form: if format == "ignition" { UserDataFormat::Ignition } else { UserDataFormat::CloudInit },
            artifacts_url: settings.get("phase1.user_data.artifacts_url")?,
            by_identity: settings.get("phase1.user_data.identity")? == "cloud",
            token_lifetime: settings.get_duration("phase1.user_data.token_lifetime")?.unwrap_or_default(),
            parts: settings.get_records("phase1.user_data.parts")?,
            groups: settings.get_records("phase1.node_groups")?,
        })
    }

    /// Those of hosts of this machine: it knows Ignition, and has what they fetch.
    fn read_local(settings: &Settings) -> Result<Self> {
        let subnet: Network = settings.get("phase1.local.subnet")?.parse().map_err(Error::config)?;
        let gateway = subnet.address(1).ok_or_else(|| Error::config(format!("{subnet} has no addresses")))?;
        Ok(Self {
            pull: true,
            form: UserDataFormat::Ignition,
            artifacts_url: format!("http://{gateway}:{}", Self::LOCAL_PORT),
            by_identity: false,
            token_lifetime: settings.get_duration("phase1.user_data.token_lifetime")?.unwrap_or_default(),
            parts: Vec::new(),
            groups: settings.get_records("phase1.node_groups")?,
        })
    }

    /// An error when hosts are to fetch what they need from nowhere. No default could be right, so
    /// an answer that is not given yet is no mistake of a configuration before it is used.
    pub fn require_source(&self) -> Result<()> {
        if !self.pull || !self.artifacts_url.is_empty() {
            return Ok(());
        }
        let name = "phase1.user_data.artifacts_url";
        let message = format!("{name}: it is empty, and hosts must fetch turnup and the artifacts from somewhere");
        let serve = "serve the directory of `turnup artifacts export DIR`";
        Err(Error::config(message).hint(format!("{serve}, and: turnup config set {name}=URL")))
    }
}
