//! The disk of etcd's own that a control-plane host may have: one that is there, or a volume that the host attaches itself.
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
    /// Whose it is.
    pub cloud: Cloud,
    /// The cloud's own name of it: `projects/P/zones/Z/disks/NAME`, `vol-…`,
    /// `/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/disks/NAME`.
    pub id: String,
    /// The name that people know it by.
    pub name: String,
}

/// Who attaches volumes by an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cloud {
    /// Google Compute Engine.
    Gce,
    /// Amazon EC2.
    Aws,
    /// Microsoft Azure.
    Azure,
}

impl Cloud {
    /// The form of a volume's id there; `*` stands for one or more bytes that are no `/`.
    #[must_use]
    pub const fn form(self) -> &'static str {
        match self {
            Self::Gce => "projects/*/zones/*/disks/*",
            Self::Aws => "vol-*",
            Self::Azure => "/subscriptions/*/resourceGroups/*/providers/Microsoft.Compute/disks/*",
        }
    }
}

impl Volume {
    /// The formats of its texts.
    #[must_use]
    pub fn fields() -> Fields {
        Fields::new(&[("cloud", "enum(gce, aws, azure)"), ("id", "id"), ("name", "id")])
    }

    /// The parts of the id for which its form has a `*`; none when the id has another form. Azure does not tell cases apart.
    #[must_use]
    pub fn parts(&self) -> Option<Vec<&str>> {
        let (form, id) = (self.cloud.form().split('/'), self.id.split('/'));
        if form.clone().count() != id.clone().count() {
            return None;
        }
        let mut parts = Vec::new();
        for (wanted, found) in form.zip(id) {
            match wanted.strip_suffix('*') {
                Some(prefix) => parts.push(found.strip_prefix(prefix).filter(|part| is_plain(part))?),
                None => wanted.eq_ignore_ascii_case(found).then_some(())?,
            }
        }
        Some(parts)
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

fn is_plain(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-()".contains(&byte);
    !text.is_empty() && text.bytes().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(cloud: Cloud, id: &str) -> Volume {
        Volume { cloud, id: id.into(), name: "shelf-etcd-main-a".into() }
    }

    #[test]
    fn the_parts_of_an_id_are_those_of_its_form() {
        let disk = "/subscriptions/s-1/resourcegroups/g_(x)/providers/microsoft.compute/disks/d";
        for (cloud, id, parts) in [
            (
                Cloud::Gce,
                "projects/example.com:p/zones/europe-west1-b/disks/d",
                vec!["example.com:p", "europe-west1-b", "d"],
            ),
            (Cloud::Aws, "vol-0abc", vec!["0abc"]),
            (Cloud::Azure, disk, vec!["s-1", "g_(x)", "d"]),
        ] {
            assert_eq!(volume(cloud, id).parts(), Some(parts), "{id}");
        }
        for (cloud, id) in [
            (Cloud::Gce, "projects/p/zones/z/disks/"),
            (Cloud::Gce, "projects/p/zones/z/disks/d/e"),
            (Cloud::Gce, "projects/p/zones/z/disks/d?x=y"),
            (Cloud::Gce, "https://www.googleapis.com/compute/v1/projects/p/zones/z/disks/d"),
            (Cloud::Aws, "vol-"),
            (Cloud::Aws, "snap-1"),
            (Cloud::Azure, "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/snapshots/d"),
        ] {
            assert_eq!(volume(cloud, id).parts(), None, "{id}");
        }
    }
}
