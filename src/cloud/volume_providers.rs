//! Which provider has the volume that an inventory names.

use crate::error::{Error, Result};
use crate::inventory::volume::Volume;

use super::local_volume::LocalVolumes;
use super::volume::{VolumeProvider, parts};
use super::{CLOUDS, find};

/// What has the volumes that an inventory says are in this cloud.
#[must_use]
pub fn find_volume_provider(cloud: &str) -> Option<&'static dyn VolumeProvider> {
    let local: &'static dyn VolumeProvider = &LocalVolumes;
    if cloud == local.name() { Some(local) } else { find(cloud).map(|cloud| cloud as &dyn VolumeProvider) }
}

/// The same; an error unless turnup knows it.
pub fn require_volume_provider(volume: &Volume) -> Result<&'static dyn VolumeProvider> {
    find_volume_provider(&volume.cloud).ok_or_else(|| {
        let names: Vec<&str> = CLOUDS.iter().map(|cloud| cloud.name()).collect();
        let message = format!("the volume {} is in an unknown cloud, {:?}", volume.name, volume.cloud);
        Error::config(message).hint(format!("correct etcd_volume in the inventory: {}", names.join(", ")))
    })
}

/// The same; an error also unless the volume's id is one of its.
pub fn require_volume(volume: &Volume) -> Result<&'static dyn VolumeProvider> {
    let provider = require_volume_provider(volume)?;
    if parts(provider.volume_id_form(), &volume.id).is_none() {
        let message = format!("the volume's id {:?} is not of the form {}", volume.id, provider.volume_id_form());
        return Err(Error::config(message).hint("correct etcd_volume in the inventory"));
    }
    Ok(provider)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_volume_of_an_unknown_cloud_is_refused() {
        let volume = |cloud: &str, id: &str| Volume { cloud: cloud.into(), id: id.into(), name: "v".into() };
        let error = require_volume_provider(&volume("openstack", "vol-1")).unwrap_err();
        assert_eq!(error.next(), Some("correct etcd_volume in the inventory: gce, aws, azure"));
        assert!(require_volume(&volume("aws", "snap-1")).is_err());
        assert_eq!(require_volume(&volume("aws", "vol-1")).unwrap().name(), "aws");
    }
}
