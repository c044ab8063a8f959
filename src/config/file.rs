//! The configuration file as bytes: read it, replace it as a whole or not at all. Knows nothing of
//! what is inside.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::atomic_file::{self, FileMode};
use crate::error::{Class, Context as _, Error, Result};
use crate::input;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// What the user's umask allows; an existing file keeps its mode.
    Shared,
    /// The user alone, because secrets are inside.
    Private,
}

/// The content of the file; nothing when there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    let bytes = match input::read(path, input::DOCUMENT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        Error::new(Class::Config, format!("{} is not UTF-8 text", path.display())).source(error.utf8_error())
    })
}

/// Whether more than its owner may read the file.
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::IsADirectory => "name a file with --config FILE",
        _ => "check who may read it, or name another file with --config FILE",
    };
    Error::new(Class::Config, format!("cannot read {}", path.display())).source(error).hint(hint)
}

/// Whether both paths lead to one file, perhaps by way of a link; of a file that is not there yet,
/// whether they are the same.
#[must_use]
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    one == other || real(one).is_some_and(|path| Some(path) == real(other))
}

/// Replaces the file atomically: a reader sees all of the old or all of the new content, also after
/// a crash.
pub(crate) fn replace(path: &Path, content: &str, privacy: Privacy) -> Result<()> {
    let target = follow_links(path)?;
    let mode = if privacy == Privacy::Private { FileMode::Exact(0o600) } else { FileMode::Kept };
    atomic_file::replace(&target, &kconfig::text::to_bytes(content), mode).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(Class::Config, format!("cannot write {}", path.display()))
            .hint(format!("create the directory first: mkdir -p {}", atomic_file::directory_of(&target).display())),
        kind => {
            let (class, next) = remedy(kind);
            Error::new(class, format!("cannot write {}: {kind}", path.display()))
                .source(error)
                .hint(format!("{} was left as it was; {next}", path.display()))
        }
    })
}

/// What to do about a file that cannot be written.
const fn remedy(kind: ErrorKind) -> (Class, &'static str) {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (Class::Precondition, "free disk space there"),
        ErrorKind::PermissionDenied => {
            (Class::Precondition, "do it as the user that owns the directory, or change its mode")
        }
        ErrorKind::ReadOnlyFilesystem => {
            (Class::Precondition, "make its file system writable, or name a file on another one")
        }
        _ => (Class::Permanent, "check the directory"),
    }
}

/// The file behind symbolic links, so that replacing it keeps the link. The file itself need not
/// exist.
fn follow_links(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        let Ok(next) = fs_err::read_link(&target) else { return Ok(target) };
        target = target.parent().map_or_else(|| next.clone(), |parent| parent.join(&next));
    }
    Err(std::io::Error::from(ErrorKind::InvalidInput))
        .context_class(Class::Config, format!("{} is a symbolic link that leads nowhere", path.display()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs_err::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn replaces_through_links_and_keeps_the_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs_err::write(&real, "old").unwrap();
        fs_err::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.json", &link).unwrap();
        replace(&link, "new", Privacy::Shared).unwrap();
        assert_eq!(read(&real).unwrap().unwrap(), "new");
        assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(mode(&real), 0o640);
        replace(&link, "secret", Privacy::Private).unwrap();
        assert_eq!(mode(&real), 0o600);
    }

    #[test]
    fn creates_the_file_behind_a_dangling_link() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link.json");
        std::os::unix::fs::symlink("later.json", &link).unwrap();
        assert_eq!(read(&link).unwrap(), None);
        replace(&link, "new", Privacy::Shared).unwrap();
        assert_eq!(read(&dir.path().join("later.json")).unwrap().unwrap(), "new");
    }

    #[test]
    fn what_hinders_a_write_is_what_the_hint_is_about() {
        let about = |kind, word: &str| assert!(remedy(kind).1.contains(word), "{kind}");
        about(ErrorKind::StorageFull, "disk space");
        about(ErrorKind::PermissionDenied, "owns the directory");
        about(ErrorKind::ReadOnlyFilesystem, "writable");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_rubbish() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs_err::create_dir(&path).unwrap();
        let error = replace(&path, "new", Privacy::Shared).unwrap_err().render();
        assert!(error.contains("/taken: ") && !error.contains("space"), "{error}");
        let names: Vec<_> = fs_err::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["taken"]);
        assert!(
            replace(&dir.path().join("no/such/dir"), "new", Privacy::Shared)
                .unwrap_err()
                .next()
                .unwrap()
                .contains("mkdir -p")
        );
    }

    #[test]
    fn a_loop_of_links_is_no_endless_loop() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("loop");
        std::os::unix::fs::symlink("loop", &link).unwrap();
        assert!(replace(&link, "new", Privacy::Shared).is_err());
    }
}
