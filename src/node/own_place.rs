//! The links and directories among the files of a node: each is looked at, and only what differs is
//! changed. What another kind of thing has taken the place of is left as it is.

use std::path::Path;

use crate::atomic_file;
use crate::error::{Error, Result};
use crate::failpoint;

use super::attributes;
use super::node_config::File;

/// Whether the link is as it should be: leading to this target, or, where the host itself changes
/// it, to anything that is there.
pub(super) fn is_linked(path: &Path, target: &Path, is_initial: bool) -> bool {
    fs_err::read_link(path).is_ok_and(|found| if is_initial { path.exists() } else { found == target })
}

/// Makes a link, or leads it back.
pub(super) fn ensure_link(path: &Path, target: &Path, is_initial: bool) -> Result<bool> {
    if is_linked(path, target, is_initial) {
        return Ok(false);
    }
    if fs_err::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Err(taken(path, "a directory", "a link"));
    }
    failpoint::pass(format_args!("link {}: before", path.display()));
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs_err::create_dir_all(dir)?;
    // By this name what a killed run left is known.
    let name = path.file_name().unwrap_or_default();
    let next = dir.join(format!("{}link-{}", atomic_file::PREFIX, name.display()));
    if fs_err::symlink_metadata(&next).is_ok() {
        fs_err::remove_file(&next)?;
    }
    fs_err::os::unix::fs::symlink(target, &next)?;
    failpoint::pass(format_args!("link {}: half", path.display()));
    fs_err::rename(&next, path)?;
    failpoint::pass(format_args!("link {}: after", path.display()));
    Ok(true)
}

/// Makes a directory with its mode and owner.
pub(super) fn ensure_directory(file: &File) -> Result<bool> {
    let path = Path::new(&file.path);
    let owner = attributes::owner_of(file)?;
    require_directory(path)?;
    let is_new = !path.is_dir();
    if is_new {
        make_directory(path)?;
    }
    Ok(attributes::ensure_directory(path, file.mode, owner)? || is_new)
}

/// Makes a directory and those around it.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    let made = failpoint::around(format_args!("directory {}", path.display()), || fs_err::create_dir_all(path));
    made.map_err(|error| match error.kind() {
        std::io::ErrorKind::ReadOnlyFilesystem => Error::precondition(format!(
            "{} cannot be made: nothing is written to this part of the host",
            path.display()
        ))
        .source(error)
        .hint(
            "Flatcar and Fedora CoreOS have a /usr that is read only: docs/baremetal.md names what needs another one",
        ),
        _ => error.into(),
    })
}

/// An error when something else has the name of a directory that is wanted, or a link leads to it.
pub(super) fn require_directory(path: &Path) -> Result<()> {
    if fs_err::symlink_metadata(path).is_ok_and(|found| !found.is_dir() && !found.is_symlink()) {
        return Err(taken(path, "no directory", "one"));
    }
    let there = path.ancestors().find(|path| fs_err::symlink_metadata(path).is_ok());
    there.map_or(Ok(()), |there| attributes::open_directory(there).map(drop))
}

fn taken(path: &Path, what: &str, wanted: &str) -> Error {
    Error::precondition(format!("{} is {what}, and turnup has to make {wanted} there", path.display()))
        .hint("move it away on the host; what an entry of phase2.host.file_assets made goes with the entry: turnup up")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::node::node_config::Content;

    fn directory(path: &Path, mode: u32) -> File {
        let owner = rustix::process::geteuid().as_raw();
        File::new(&path.display().to_string(), mode, owner, Content::Directory {})
    }

    #[test]
    fn a_link_takes_the_place_of_a_file_and_then_belongs_to_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let [own, other, path] = ["own.pem", "other.pem", "current.pem"].map(|name| dir.path().join(name));
        for file in [&own, &other, &path] {
            fs_err::write(file, file.to_str().unwrap()).unwrap();
        }
        let initial = || ensure_link(&path, &own, true).unwrap();
        assert!(initial(), "kubelet renews no file");
        assert_eq!(fs_err::read_link(&path).unwrap(), own);
        assert!(!initial());
        // As kubelet does.
        fs_err::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert!(!initial());
        assert_eq!(fs_err::read_link(&path).unwrap(), other);
        assert!(ensure_link(&path, &own, false).unwrap(), "one that is no initial one is led back");
        assert_eq!(fs_err::read_link(&path).unwrap(), own);
        fs_err::remove_file(&own).unwrap();
        assert!(initial(), "to nothing");
        assert!(!ensure_link(&path, &own, false).unwrap(), "what is not there yet may be a target");
    }

    #[test]
    fn a_link_does_not_take_the_place_of_a_directory_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/link");
        symlink("/nowhere", dir.path().join(".part-link-link")).unwrap();
        assert!(ensure_link(&path, Path::new("/target"), false).unwrap());
        assert_eq!(fs_err::read_dir(dir.path().join("deep")).unwrap().count(), 1);
        let error = ensure_link(&dir.path().join("deep"), Path::new("/target"), false).unwrap_err();
        assert!(error.message().ends_with("deep is a directory, and turnup has to make a link there"), "{error:?}");
    }

    #[test]
    fn a_directory_is_made_and_mended_and_what_is_in_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let wanted = directory(&path, 0o750);
        assert!(ensure_directory(&wanted).unwrap());
        assert!(!ensure_directory(&wanted).unwrap());
        fs_err::write(path.join("file"), "").unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(ensure_directory(&wanted).unwrap());
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        assert!(path.join("file").exists());
        let error = ensure_directory(&directory(&path.join("file"), 0o755)).unwrap_err();
        assert!(error.message().ends_with("file is no directory, and turnup has to make one there"), "{error:?}");
        symlink("/nowhere", path.join("dangling")).unwrap();
        assert!(ensure_directory(&directory(&path.join("dangling"), 0o755)).is_err());
    }
}
