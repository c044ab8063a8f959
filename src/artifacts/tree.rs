//! The files of this module that are part of the program: Go modules and the lock file. The one
//! place that embeds them.

use std::path::Path;

use include_dir::{Dir, DirEntry, include_dir};

use crate::{Error, Result};

pub(super) static LOCK: &str = include_str!("../../cluster.lock.json");
static MODULES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/artifacts");
const HERE: &str = "templates/artifacts";

/// Writes the Go module of this name into an empty directory; a copy in the working directory wins
/// over the embedded one, so that a new version needs no new program.
pub(super) fn write_module(name: &str, into: &Path) -> Result<()> {
    write_files(name, "go.mod", into)
}

/// Writes one package of `templates/artifacts/reference` into a module, where it has the same path.
pub(super) fn write_reference(package: &str, into: &Path) -> Result<()> {
    let name = format!("reference/{package}");
    let target = into.join(&name);
    fs_err::create_dir_all(&target)?;
    write_files(&name, "", &target)
}

/// Writes the files of a directory and below; the one in the working directory counts when it has
/// this file.
fn write_files(name: &str, proof: &str, into: &Path) -> Result<()> {
    let local = Path::new(HERE).join(name);
    if local.join(proof).exists() {
        return copy_files(&local, into);
    }
    let module = MODULES.get_dir(name).ok_or_else(|| {
        Error::config(format!("there is no Go module {HERE}/{name}"))
            .hint("write its go.mod and go.sum there, in the way of the other directories")
    })?;
    extract_files(module, into)
}

/// Copies the files of a directory and below into one that is there.
pub(super) fn copy_files(from: &Path, into: &Path) -> Result<()> {
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let target = into.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs_err::create_dir(&target)?;
            copy_files(&entry.path(), &target)?;
        } else {
            fs_err::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn extract_files(from: &Dir<'_>, into: &Path) -> Result<()> {
    for entry in from.entries() {
        let target = into.join(entry.path().file_name().unwrap_or_default());
        match entry {
            DirEntry::Dir(dir) => {
                fs_err::create_dir(&target)?;
                extract_files(dir, &target)?;
            }
            DirEntry::File(file) => fs_err::write(&target, file.contents())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn packages_below_a_module_come_along() {
        let (embedded, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = "cert-manager-1.20.3";
        extract_files(MODULES.get_dir(name).unwrap(), embedded.path()).unwrap();
        copy_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(HERE).join(name), copied.path()).unwrap();
        for dir in [&embedded, &copied] {
            assert!(dir.path().join("go.mod").exists() && dir.path().join("acmesolver/main.go").exists());
        }
    }
}
