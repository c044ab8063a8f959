//! The disk of etcd's own that a control-plane host may have: one that is there, or a volume that
//! the host attaches itself.
//!
//! Only what it is called; how it is attached and mounted is the node's matter.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::document::Fields;

/// A disk for one purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disk {
    /// A path below `/dev` that is there when the host has its disk.
    Device(String),
    /// A volume of the cloud that the host is in.
    Volume(Volume),
}

/// A volume that outlives machines: whichever machine has its place attaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// The name of the cloud; which there are, and the forms of their ids, the module `cloud`
    /// knows.
    pub cloud: String,
    /// The cloud's own name of it.
    pub id: String,
    /// The name that people know it by.
    pub name: String,
}

impl Volume {
    /// The formats of its texts.
    #[must_use]
    pub fn fields() -> Fields {
        Fields::new(&[("cloud", "dns-label"), ("id", "id"), ("name", "id")])
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => f.write_str(path),
            Self::Volume(volume) => write!(f, "the volume {} ({})", volume.name, volume.id),
        }
    }
}
