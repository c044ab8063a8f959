//! Volumes of clouds: what an API for them can be asked, and the parts of their ids.
//!
//! What it is attached for, and how long it is waited for, is `node`'s.

use std::fmt;
use std::path::PathBuf;

use crate::error::Result;
use crate::inventory::volume::Volume;

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

/// What has volumes that hosts attach to themselves.
pub trait VolumeProvider: fmt::Debug + Sync {
    /// Its name as a target and in inventories. Of a cloud also that of its directories in
    /// `phases`, `templates` and here, and of the variable that its Terraform module has alone.
    fn name(&self) -> &'static str;

    /// The form of a volume's id; `*` stands for one or more bytes that are no `/`.
    fn volume_id_form(&self) -> &'static str;

    /// The devices that a volume can only be once this host has it, without an API call. None
    /// where only the API knows.
    fn local_devices(&self, volume: &Volume) -> Vec<PathBuf>;

    /// The API that attaches a volume to this host, with the rights of the host's own identity.
    fn volume_api<'v>(&self, volume: &'v Volume, endpoints: &Endpoints) -> Result<Box<dyn VolumeApi + 'v>>;

    /// The command by which an administrator detaches a volume from a dead machine.
    fn detach_command(&self, volume: &Volume, machine: &str) -> String;
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

/// Whether an id has this form.
pub(crate) fn has_form(form: &str, id: &str) -> bool {
    parts(form, id).is_some()
}

fn is_plain(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-()".contains(&byte);
    !text.is_empty() && text.bytes().all(fine)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::cloud::find;

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
}
