//! Amazon EC2: `AttachVolume`, with what the machine's role lends it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};

use super::ec2::Ec2Api;
use super::metadata::Metadata;
use super::xml::{child, is_named, read_error};
use crate::cloud::http;
use crate::cloud::{Endpoints, VolumeApi, VolumeState};
use crate::error::{Context as _, Error, Result};
use crate::inventory::volume::Volume;

/// The names that Amazon leaves to volumes: `/dev/sd[f-p]`.
const LETTERS: std::ops::RangeInclusive<char> = 'f'..='p';

/// The API, asked for one volume by one instance.
pub(super) struct Ec2<'v> {
    volume: &'v Volume,
    instance: String,
    api: Ec2Api,
}

/// What the volume can be found by where disks are `NVMe`: udev's link, and the serial number,
/// which is there without udev as well.
pub(super) fn devices(volume: &Volume, blocks: &Path) -> Vec<PathBuf> {
    let serial = volume.id.replace('-', "");
    let mut paths = vec![PathBuf::from(format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}"))];
    for entry in fs_err::read_dir(blocks).into_iter().flatten().flatten() {
        let found = fs_err::read_to_string(entry.path().join("device/serial"));
        if found.is_ok_and(|found| found.trim() == serial) {
            paths.push(Path::new("/dev").join(entry.file_name()));
        }
    }
    paths
}

impl<'v> Ec2<'v> {
    pub(super) fn new(volume: &'v Volume, endpoints: &Endpoints) -> Result<Self> {
        let metadata = Metadata::open(&endpoints.metadata)?;
        let place = metadata.place()?;
        let api = Ec2Api::open(&metadata, &place.region, endpoints)?;
        Ok(Self { volume, instance: place.instance, api })
    }

    /// The answer in XML.
    fn call(&self, action: &str, parameters: &[(&str, &str)]) -> Result<String> {
        let answer = self.api.call(action, parameters)?;
        answer.require(|status, text| self.explain(action, status, text))?;
        Ok(answer.text)
    }

    fn explain(&self, action: &str, status: u16, text: &str) -> Error {
        let (code, said) = read_error(text);
        let class = if code == "RequestLimitExceeded" { crate::Class::Transient } else { http::class_of(status) };
        let error = Error::new(class, format!("EC2 refuses {action} of {}: {code}", self.volume.id));
        let rights = format!(
            "the machine's role needs ec2:DescribeVolumes, ec2:DescribeInstances, and ec2:AttachVolume on {} and on this machine (docs/aws.md)",
            self.volume.id
        );
        error.evidence(said).hint(http::advise(status, rights))
    }

    /// The names that something of this machine has.
    fn taken(&self) -> Result<BTreeSet<String>> {
        let text = self.call("DescribeInstances", &[("InstanceId.1", &self.instance)])?;
        let document = read(&text)?;
        let names = document.descendants().filter(|node| is_named(*node, "deviceName"));
        Ok(names.filter_map(|node| node.text().map(str::to_owned)).collect())
    }
}

impl VolumeApi for Ec2<'_> {
    fn look(&mut self) -> Result<VolumeState> {
        let text = self.call("DescribeVolumes", &[("VolumeId.1", &self.volume.id)])?;
        let document = read(&text)?;
        let attachments = document.descendants().find(|node| is_named(*node, "attachmentSet"));
        let attachment = attachments.and_then(|set| set.children().find(Node::is_element));
        let Some(attachment) = attachment else {
            let volume = document.descendants().find(|node| is_named(*node, "volumeSet"));
            let status = volume.and_then(|set| set.children().find(Node::is_element)).map(|item| child(item, "status"));
            return Ok(match status.unwrap_or_default() {
                "available" => VolumeState::Free,
                other => VolumeState::Moving(format!("is {other}")),
            });
        };
        let (who, status) = (child(attachment, "instanceId"), child(attachment, "status"));
        if who != self.instance {
            return Ok(VolumeState::AttachedElsewhere(who.to_owned()));
        }
        if status != "attached" {
            return Ok(VolumeState::Moving(format!("is {status}")));
        }
        let mut paths = devices(self.volume, Path::new("/sys/block"));
        // Where disks are Xen's, the kernel calls /dev/sdf /dev/xvdf.
        let name = child(attachment, "device").trim_start_matches("/dev/").to_owned();
        let xen = name.strip_prefix("sd").map(|letter| format!("xvd{letter}"));
        paths.extend(xen.into_iter().chain([name]).map(|name| Path::new("/dev").join(name)));
        Ok(VolumeState::Here(paths))
    }

    fn attach(&mut self) -> Result<()> {
        let taken = self.taken()?;
        let is_taken = |letter: char| {
            let names = [format!("/dev/sd{letter}"), format!("/dev/xvd{letter}")];
            names.iter().any(|name| taken.contains(name))
        };
        let Some(letter) = LETTERS.into_iter().find(|letter| !is_taken(*letter)) else {
            return Err(Error::precondition("this machine has as many volumes as it can")
                .hint("detach one that it does not need"));
        };
        let device = format!("/dev/sd{letter}");
        let parameters = [("Device", device.as_str()), ("InstanceId", &self.instance), ("VolumeId", &self.volume.id)];
        match self.call("AttachVolume", &parameters) {
            // Another machine was faster: the next poll names it.
            Err(error) if ["VolumeInUse", "IncorrectState"].iter().any(|code| error.message().ends_with(code)) => {
                Ok(())
            }
            answer => answer.map(drop),
        }
    }
}

fn read(text: &str) -> Result<Document<'_>> {
    Document::parse(text).context("EC2 answered with no XML")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn the_serial_number_of_a_disk_finds_it_without_udev() {
        let dir = tempfile::tempdir().unwrap();
        for (name, serial) in [("nvme0n1", "vol0123"), ("nvme1n1", "vol0abc ")] {
            fs_err::create_dir_all(dir.path().join(name).join("device")).unwrap();
            fs_err::write(dir.path().join(name).join("device/serial"), serial).unwrap();
        }
        let volume = Volume { cloud: "aws".into(), id: "vol-0abc".into(), name: "shelf-etcd-main-a".into() };
        let found = devices(&volume, dir.path());
        assert_eq!(found[1..], [PathBuf::from("/dev/nvme1n1")]);
    }
}
