//! Volumes of clouds: what an API for them can be asked, and the parts of their ids.
//!
//! What it is attached for, and how long it is waited for, is `node`'s.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::inventory::volume::Volume;

use super::{CLOUDS, Cloud, find};

/// Where a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeState {
    /// At this host, as one of these devices.
    Here(Vec<PathBuf>),
    /// Nowhere.
    Free,
    /// On its way.
    Moving(String),
    /// At this other machine.
    AttachedElsewhere(String),
}

/// One cloud's API, for one volume.
pub trait VolumeApi {
    /// Where the volume is now.
    fn look(&mut self) -> Result<VolumeState>;
    /// Asks for it to be attached to this host. Another machine may have been faster: the next look
    /// tells.
    fn attach(&mut self) -> Result<()>;
}

/// Where an API is asked.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// The metadata service of the machine.
    pub metadata: String,
    /// Another API than the cloud's own of this place.
    pub api: Option<String>,
}

impl Default for Endpoints {
    /// Every cloud's metadata service answers its machines at the same address.
    fn default() -> Self {
        Self { metadata: "http://169.254.169.254".to_owned(), api: None }
    }
}

/// The cloud that a volume is in; an error unless turnup knows it.
pub fn require_cloud(volume: &Volume) -> Result<&'static dyn Cloud> {
    find(&volume.cloud).ok_or_else(|| {
        let names: Vec<&str> = CLOUDS.iter().map(|cloud| cloud.name()).collect();
        let message = format!("the volume {} is in an unknown cloud, {:?}", volume.name, volume.cloud);
        Error::config(message).hint(format!("correct etcd_volume in the inventory: {}", names.join(", ")))
    })
}

/// The same; an error also unless the volume's id is one of its.
pub fn require_volume(volume: &Volume) -> Result<&'static dyn Cloud> {
    let cloud = require_cloud(volume)?;
    if parts(cloud.volume_id_form(), &volume.id).is_none() {
        let message = format!("the volume's id {:?} is not of the form {}", volume.id, cloud.volume_id_form());
        return Err(Error::config(message).hint("correct etcd_volume in the inventory"));
    }
    Ok(cloud)
}

/// The parts of an id for which its form has a `*`; none when the id has another form. Not all
/// clouds tell cases apart.
pub(super) fn parts<'i>(form: &str, id: &'i str) -> Option<Vec<&'i str>> {
    let (form, id) = (form.split('/'), id.split('/'));
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

fn is_plain(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-()".contains(&byte);
    !text.is_empty() && text.bytes().all(fine)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn the_parts_of_an_id_are_those_of_its_form() {
        let parts = |cloud: &str, id| parts(find(cloud).unwrap().volume_id_form(), id);
        let disk = "/subscriptions/s-1/resourcegroups/g_(x)/providers/microsoft.compute/disks/d";
        for (cloud, id, expected) in [
            (
                "gce",
                "projects/example.com:p/zones/europe-west1-b/disks/d",
                vec!["example.com:p", "europe-west1-b", "d"],
            ),
            ("aws", "vol-0abc", vec!["0abc"]),
            ("azure", disk, vec!["s-1", "g_(x)", "d"]),
        ] {
            assert_eq!(parts(cloud, id), Some(expected), "{id}");
        }
        for (cloud, id) in [
            ("gce", "projects/p/zones/z/disks/"),
            ("gce", "projects/p/zones/z/disks/d/e"),
            ("gce", "projects/p/zones/z/disks/d?x=y"),
            ("gce", "https://www.googleapis.com/compute/v1/projects/p/zones/z/disks/d"),
            ("aws", "vol-"),
            ("aws", "snap-1"),
            ("azure", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/snapshots/d"),
        ] {
            assert_eq!(parts(cloud, id), None, "{id}");
        }
    }

    #[test]
    fn a_volume_of_an_unknown_cloud_is_refused() {
        let volume = |cloud: &str, id: &str| Volume { cloud: cloud.into(), id: id.into(), name: "v".into() };
        let error = require_cloud(&volume("openstack", "vol-1")).unwrap_err();
        assert_eq!(error.next(), Some("correct etcd_volume in the inventory: gce, aws, azure"));
        assert!(require_volume(&volume("aws", "snap-1")).is_err());
        assert_eq!(require_volume(&volume("aws", "vol-1")).unwrap().name(), "aws");
    }
}
