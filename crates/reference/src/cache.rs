//! Where the trees and tools are kept between runs: `linux/` in turnup's cache of this user. One
//! process makes things at a time; what is there is whole, because it was made elsewhere on the
//! same file system, synced and renamed.

use std::path::{Path, PathBuf};

use crate::Missing;

/// The lock for making things in the cache; released when dropped.
pub(crate) struct Making {
    root: PathBuf,
    _lock: fs_err::File,
}

/// `$TURNUP_CACHE`, else `$XDG_CACHE_HOME/turnup`, else `~/.cache/turnup`: the same places as
/// turnup's own.
pub(crate) fn root() -> Result<PathBuf, Missing> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("TURNUP_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|dir| dir.join("turnup")))
        .or_else(|| variable("HOME").map(|dir| dir.join(".cache/turnup")))
        .map(|root| root.join("linux"))
        .ok_or_else(|| Missing::new("there is no place for Linux's trees: set TURNUP_CACHE"))
}

impl Making {
    /// Waits until no other process makes anything here. Removes what a killed one left half-made.
    pub(crate) fn begin() -> Result<Self, Missing> {
        let root = root()?;
        let refused = |error: std::io::Error| Missing::new(format!("the cache cannot be written: {error}"));
        fs_err::create_dir_all(&root).map_err(refused)?;
        let lock = fs_err::File::create(root.join("lock")).map_err(refused)?;
        lock.lock().map_err(refused)?;
        for entry in fs_err::read_dir(&root).map_err(refused)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("work.") {
                fs_err::remove_dir_all(entry.path()).map_err(refused)?;
            }
        }
        Ok(Self { root, _lock: lock })
    }

    /// The directory `key`, made by `make` in another place when it is not there yet.
    pub(crate) fn directory(
        &self,
        key: &str,
        make: impl FnOnce(&Path) -> Result<(), Missing>,
    ) -> Result<PathBuf, Missing> {
        let place = self.root.join(key);
        if place.is_dir() {
            return Ok(place);
        }
        let work = self.work()?;
        let fresh = work.path().join("made");
        fs_err::create_dir(&fresh).unwrap();
        make(&fresh)?;
        // Tens of thousands of small files: one call for the file system instead of one for each.
        duct::cmd!("sync", "-f", &fresh).run().unwrap();
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        fs_err::rename(&fresh, &place).unwrap();
        Ok(place)
    }

    /// A directory on the same file system that is removed when dropped, or else by the next one
    /// who makes something.
    pub(crate) fn work(&self) -> Result<tempfile::TempDir, Missing> {
        tempfile::Builder::new()
            .prefix("work.")
            .tempdir_in(&self.root)
            .map_err(|error| Missing::new(format!("the cache cannot be written: {error}")))
    }
}
