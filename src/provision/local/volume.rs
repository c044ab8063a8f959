//! The volumes of local hosts: files of this machine that outlive hosts, each with tags, as the
//! volumes of a cloud have. A host that asks for one gets it as a block device ([`device_of`]).
//!
//! A volume is never formatted here, and never given to a second host while the first one runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::{Deserialize, Serialize};

use crate::atomic_file::{FileMode, replace};
use crate::cloud::{LocalVolume, LocalVolumeState, device_of};
use crate::error::{Context as _, Error, Result};
use crate::exec::{Run, signals};
use crate::failpoint;

use super::process::find_leader;
use super::spec::{HostSpec, VolumeSpec};

/// Sparse: what nothing was written to takes no room. etcd keeps at most 8 GiB.
const SIZE: u64 = 10 << 30;
/// How long another process that attaches a volume may take.
const ANOTHER_CALL: Duration = Duration::from_mins(1);

/// Which machine has a volume. It ends with the machine: a host that starts again has no devices.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Attachment {
    host: String,
    machine: String,
    leader: i32,
}

impl VolumeSpec {
    fn record(&self) -> PathBuf {
        self.file.with_extension("attached")
    }

    fn lock(&self) -> Result<fs_err::File> {
        let file =
            fs_err::File::open(&self.file).context(format!("the volume {} is not there: turnup up", self.name))?;
        if signals::lock(&file, ANOTHER_CALL)? {
            return Ok(file);
        }
        Err(Error::transient(format!("another process attaches the volume {} and does not end", self.name)))
    }

    /// Who has it now.
    fn find_attachment(&self) -> Result<Option<Attachment>> {
        let Ok(text) = fs_err::read(self.record()) else { return Ok(None) };
        // Half a record says nothing: it is written before a device appears.
        let Ok(found) = serde_json::from_slice::<Attachment>(&text) else { return Ok(None) };
        let leader = find_leader(&found.machine)?.map(|pid| pid.as_raw_nonzero().get());
        Ok((leader == Some(found.leader)).then_some(found))
    }
}

/// Makes the file, or finds it made.
pub fn create_volume(spec: &VolumeSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("create volume {}", spec.name));
    if spec.file.exists() {
        return Ok(());
    }
    let dir = spec.file.parent().unwrap_or(Path::new("/"));
    fs_err::create_dir_all(dir)?;
    let file = tempfile::NamedTempFile::new_in(dir).context(format!("cannot make a file in {}", dir.display()))?;
    file.as_file().set_len(SIZE)?;
    failpoint::around(format_args!("file"), || file.persist_noclobber(&spec.file))
        .context(format!("cannot make {}", spec.file.display()))?;
    Ok(())
}

/// Removes it with all its data. No host has it any more by then.
pub fn delete_volume(spec: &VolumeSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("delete volume {}", spec.name));
    detach_device(spec)?;
    for file in [spec.record(), spec.file.clone()] {
        if file.exists() {
            failpoint::around(format_args!("remove {}", file.display()), || fs_err::remove_file(&file))?;
        }
    }
    Ok(())
}

/// Where it is, as the host sees it that asks.
pub(super) fn look(spec: &VolumeSpec, asks: &HostSpec) -> Result<LocalVolume> {
    let attachment = spec.find_attachment()?;
    let state = if attachment.is_some() { LocalVolumeState::InUse } else { LocalVolumeState::Available };
    let host = attachment.map(|attachment| attachment.host);
    let here = host.as_ref() == Some(&asks.name);
    Ok(LocalVolume { name: spec.name.clone(), tags: spec.tags.clone(), state, host, here })
}

/// Gives it to a host that runs; whether it did: another host may have it.
pub(super) fn attach(spec: &VolumeSpec, host: &HostSpec) -> Result<bool> {
    let _inside = failpoint::within(format_args!("attach volume {}", spec.name));
    let _turn = spec.lock()?;
    if spec.find_attachment()?.is_some_and(|attachment| attachment.host != host.name) {
        return Ok(false);
    }
    let leader = find_leader(&host.machine)?
        .ok_or_else(|| Error::transient(format!("host {} does not run", host.name)))?
        .as_raw_nonzero()
        .get();
    let attachment = Attachment { host: host.name.clone(), machine: host.machine.clone(), leader };
    let text = serde_json::to_vec(&attachment).context("who has a volume is no JSON")?;
    failpoint::around(format_args!("record"), || replace(&spec.record(), &text, FileMode::Exact(0o600)))?;
    let device = match find_device(&spec.file)? {
        Some(device) => device,
        None => attach_device(spec)?,
    };
    make_node(leader, &device, &spec.name)?;
    Ok(true)
}

/// The loop device of a file, also of one that was removed since.
fn find_device(file: &Path) -> Result<Option<PathBuf>> {
    for entry in fs_err::read_dir("/sys/block")? {
        let entry = entry?;
        // Only a device that is in use has the file; it may end at any time.
        let Ok(backing) = fs_err::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        if Path::new(backing.trim_end().trim_end_matches(" (deleted)")) == file {
            return Ok(Some(Path::new("/dev").join(entry.file_name())));
        }
    }
    Ok(None)
}

fn attach_device(spec: &VolumeSpec) -> Result<PathBuf> {
    let run = Run::new("losetup").args(["--find", "--show"]).arg(&spec.file).dir("/");
    let made = failpoint::around(format_args!("loop device"), || run.succeed())?;
    Ok(made.stdout.trim().into())
}

/// Ends the loop device; at once, or with the last mount of it.
pub(super) fn detach_device(spec: &VolumeSpec) -> Result<()> {
    let Some(device) = find_device(&spec.file)? else { return Ok(()) };
    let run = Run::new("losetup").arg("--detach").arg(&device).dir("/");
    failpoint::around(format_args!("end the loop device"), || run.succeed())?;
    Ok(())
}

/// The device on the host, as its kernel would make it.
fn make_node(leader: i32, device: &Path, name: &str) -> Result<()> {
    // The host's init is the leader's child.
    let children = fs_err::read_to_string(format!("/proc/{leader}/task/{leader}/children"))?;
    let init = children.split_whitespace().next();
    let init = init.ok_or_else(|| Error::transient("the host does not run yet"))?;
    let seen = device_of(name);
    let path = Path::new("/proc").join(init).join("root").join(seen.strip_prefix("/").unwrap_or(&seen));
    let number = rustix::fs::stat(device).context(format!("cannot look at {}", device.display()))?.st_rdev;
    if rustix::fs::stat(&path).is_ok_and(|found| found.st_rdev == number) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    if path.symlink_metadata().is_ok() {
        fs_err::remove_file(&path)?;
    }
    failpoint::around(format_args!("device"), || {
        mknodat(CWD, &path, FileType::BlockDevice, Mode::RUSR | Mode::WUSR, number)
    })
    .context(format!("cannot make {}", seen.display()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_volume_is_made_once_and_belongs_to_a_machine_that_runs() {
        let dir = tempfile::tempdir().unwrap();
        let spec = VolumeSpec { name: "v".into(), tags: BTreeMap::new(), file: dir.path().join("volumes/v.img") };
        create_volume(&spec).unwrap();
        assert_eq!(fs_err::metadata(&spec.file).unwrap().len(), SIZE);
        fs_err::write(&spec.file, "data").unwrap();
        create_volume(&spec).unwrap();
        assert_eq!(fs_err::read(&spec.file).unwrap(), b"data", "it is there already");
        assert!(spec.find_attachment().unwrap().is_none());
        // What a machine leaves that has ended, and a record that was cut off.
        for text in [r#"{"host": "a", "machine": "turnup-no-such-machine", "leader": 1}"#, "{\"host\"", ""] {
            fs_err::write(spec.record(), text).unwrap();
            assert!(spec.find_attachment().unwrap().is_none(), "{text}");
        }
        for _ in 0..2 {
            delete_volume(&spec).unwrap();
            assert_eq!(fs_err::read_dir(dir.path().join("volumes")).unwrap().count(), 0);
        }
    }
}
