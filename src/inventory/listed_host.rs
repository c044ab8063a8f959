//! A host as the user lists it in `phase1.baremetal.hosts`. What becomes of it is the matter of
//! `provision::baremetal`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Deserialize;

use super::{Role, Taint};

/// A host as the user lists it; the Kconfig symbol's help says what each field is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is documented in the help of phase1.baremetal.hosts")]
pub struct ListedHost {
    pub name: String,
    pub address: Ipv4Addr,
    pub role: Role,
    pub ssh_user: Option<String>,
    pub ssh_port: Option<u16>,
    pub ssh_jump: Option<String>,
    pub host_key: Option<String>,
    #[serde(default)]
    pub zone: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub taints: Vec<Taint>,
    #[serde(default)]
    pub etcd_device: String,
}
