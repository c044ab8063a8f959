//! Single things put back as they were before the node was made: a unit stopped, a file removed or
//! given back to who had its name. For `turnup node down`, which undoes all, and `turnup node up`,
//! which undoes what a later configuration has no more.

use std::path::Path;

use crate::error::Result;

use super::layout::unit_file;
use super::restore_log::{FoundDirectory, RestoreLog, SavedFile};
use super::systemd::{self, systemctl_in_time};
use super::{attributes, task};

/// Who hears what was done.
pub(super) type TellRestored<'a> = &'a mut dyn FnMut(String) -> Result<()>;

/// Only a unit whose file is ours: after a crash before it was written, an existing one belongs to
/// another program.
pub(super) fn stop_unit(name: &str, restore_log: &RestoreLog, tell: TellRestored<'_>) -> Result<()> {
    let file = unit_file(name);
    if !Path::new(&file).exists() || restore_log.kept(&file).is_some_and(|kept| is_put_back(&file, kept)) {
        return Ok(());
    }
    let stopped = systemctl_in_time(&["stop", name]);
    if stopped.is_err() {
        systemctl_in_time(&["kill", "--signal=KILL", name])?;
    }
    systemctl_in_time(&["disable", "--quiet", name])?;
    tell(format!("removed {name}"))
}

/// Units whose files were put back are what they were before.
pub(super) fn revive_units<'u>(units: impl Iterator<Item = (&'u str, bool, bool)>) -> Result<()> {
    systemctl_in_time(&["daemon-reload"])?;
    for (name, enabled, active) in units {
        // What failed on its way down would be shown as failed for ever.
        systemd::reset_failed(name);
        if enabled {
            systemctl_in_time(&["enable", "--quiet", name])?;
        }
        if active {
            systemctl_in_time(&["start", name])?;
        }
    }
    Ok(())
}

/// A file of ours goes, and what had its name comes back.
pub(super) fn put_file_back(path: &str, before: Option<&SavedFile>, tell: TellRestored<'_>) -> Result<()> {
    let Some(kept) = before else {
        if fs_err::symlink_metadata(path).is_ok_and(|data| !data.is_dir()) {
            fs_err::remove_file(path)?;
            tell(format!("removed {path}"))?;
        }
        return Ok(());
    };
    if is_put_back(path, kept) {
        return Ok(());
    }
    if let Some(target) = &kept.link {
        drop(fs_err::remove_file(path));
        fs_err::os::unix::fs::symlink(target, path)?;
    } else if let Some(copy) = kept.path() {
        task::write_atomic(Path::new(path), &fs_err::read(copy)?, kept.mode, kept.user)?;
        std::os::unix::fs::chown(path, Some(kept.user), Some(kept.group))?;
    }
    tell(format!("put back {path}"))
}

/// A directory that the configuration names no more goes if turnup made it and nothing is in it;
/// one that was there gets its mode and owner back.
pub(super) fn put_directory_back(
    path: &str,
    before: FoundDirectory,
    is_made: bool,
    tell: TellRestored<'_>,
) -> Result<()> {
    if is_made && fs_err::remove_dir(path).is_ok() {
        return tell(format!("removed {path}"));
    }
    if put_attributes_back(path, before)? { tell(format!("put back the mode and owner of {path}")) } else { Ok(()) }
}

/// The mode and owner that a directory of the user's had; whether they were others. Where a user
/// has led it elsewhere meanwhile, nothing is left to be put back.
pub(super) fn put_attributes_back(path: &str, before: FoundDirectory) -> Result<bool> {
    match before {
        Some((mode, user, group)) if attributes::open_directory(Path::new(path)).is_ok() => {
            attributes::ensure_directory(Path::new(path), mode, (user, group))
        }
        _ => Ok(false),
    }
}

/// A kernel setting gets the value back that it had.
pub(super) fn put_setting_back(name: &str, before: &str, tell: TellRestored<'_>) -> Result<()> {
    // What brought the setting may be gone with it.
    if task::read_sysctl(name).is_ok_and(|now| !task::is_same_setting(&now, before)) {
        task::ensure_sysctl(name, before)?;
        tell(format!("put back the value of {name}: {before}"))?;
    }
    Ok(())
}

/// Whether what was there before has its place again, or never lost it.
pub(super) fn is_put_back(path: &str, kept: &SavedFile) -> bool {
    if let Some(target) = &kept.link {
        return fs_err::read_link(path).is_ok_and(|now| now == *target);
    }
    let copy = kept.path().and_then(|copy| task::digest_of(&copy).ok());
    copy.is_some() && task::digest_of(Path::new(path)).ok() == copy && !Path::new(path).is_symlink()
}
