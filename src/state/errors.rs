//! What can be wrong with a file of ours, each with the next command. One place, so that all files
//! speak alike.

use std::io;
use std::path::Path;

use crate::{Class, Error, Result, atomic_file};

/// How a damaged state is recovered.
pub(super) const REBUILD: &str =
    "turnup state rebuild (keeps copies of the damaged files; steps whose record is lost run again, which is safe)";

/// An error of the file system, by what the user can do about it.
pub(super) fn io(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    let dir = path.parent().unwrap_or(path).display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::precondition(format!("no space left for {shown}; nothing was overwritten"))
                .source(error)
                .hint(format!("free space (look with: df -h {dir}), then run the same command again"))
        }
        io::ErrorKind::PermissionDenied => Error::precondition(format!("no permission for {shown}"))
            .source(error)
            .evidence(format!("this process runs as uid {}", rustix::process::geteuid().as_raw()))
            .hint(format!("run as the user that owns it (look with: ls -ld {dir}), or with sudo")),
        io::ErrorKind::ReadOnlyFilesystem => {
            Error::precondition(format!("{shown} lies on a file system that is mounted read-only"))
                .source(error)
                .hint(format!("look with: findmnt -T {dir}"))
        }
        _ => Error::permanent(format!("cannot use {shown}")).source(error),
    }
}

/// A file of a turnup that is newer than this one.
pub(super) fn newer(path: &Path, found: u32, known: u32) -> Error {
    let message = format!("{} has version {found}, and this turnup knows versions up to {known}", path.display());
    Error::new(Class::Precondition, message)
        .hint("use the turnup that wrote it, or a newer one; the file was not touched")
}

/// Makes the name of a new or renamed file survive a crash.
pub(super) fn sync_parent(path: &Path) -> Result<()> {
    let dir = path.parent().unwrap_or(path);
    atomic_file::sync_directory(dir).map_err(|error| io(dir, error))
}
