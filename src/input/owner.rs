//! Whose a file or directory is. What another user may write is refused before it is read: it could
//! say anything.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::{Error, Result};

/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;
/// Others may: a group is often a team that works in one tree.
const OTHER_WRITES: u32 = 0o002;

/// Refuses a directory of turnup's own that another user owns, or that other users may write to;
/// one that is not there is fine. A symbolic link must be ours as well: another user's could lead
/// to a directory of ours that is not meant.
pub(crate) fn require_own_dir(dir: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for metadata in [fs_err::symlink_metadata(dir), fs_err::metadata(dir)] {
        let metadata = match metadata {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let shown = dir.display();
        if metadata.uid() != own {
            return Err(Error::precondition(format!(
                "{shown} belongs to {}, and this is {}",
                name(metadata.uid()),
                name(own)
            ))
            .evidence(
                "what is in it decides which hosts are logged in to, and how: another user could run commands as you",
            )
            .hint(format!(
                "run turnup as {}, or in a directory of your own (look with: ls -ld {shown})",
                plain_name(metadata.uid())
            )));
        }
        if metadata.is_dir() && metadata.mode() & OTHERS_WRITE != 0 {
            return Err(Error::precondition(format!(
                "{shown} can be written to by other users: its mode is {:04o}",
                metadata.mode() & 0o7777
            ))
            .evidence(
                "what is in it decides which hosts are logged in to, and how: another user could run commands as you",
            )
            .hint(format!("look at what is in it, then: chmod -R go-w {shown}")));
        }
    }
    Ok(())
}

/// How deep a tree of files goes; a link may lead in a circle.
const DEEPEST: usize = 16;

/// Refuses a file, or a directory with all that is in it, unless it is this user's, root's, or of
/// the user who called sudo; for files that decide what turnup runs. One that is not there is fine.
pub(crate) fn require_trusted(path: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let caller = (own == 0).then(|| std::env::var("SUDO_UID").ok()?.parse::<u32>().ok()).flatten();
    require_owners(path, &[Some(own), Some(0), caller], DEEPEST)
}

fn require_owners(path: &Path, trusted: &[Option<u32>], depth: usize) -> Result<()> {
    let mut is_dir = false;
    for metadata in [fs_err::symlink_metadata(path), fs_err::metadata(path)] {
        let metadata = match metadata {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        is_dir = metadata.is_dir();
        // The mode of a link or a device says nothing about what is read.
        let is_plain = metadata.is_file() || metadata.is_dir();
        let whose = if is_plain && metadata.mode() & OTHER_WRITES != 0 {
            "can be written to by every user".to_owned()
        } else if !trusted.contains(&Some(metadata.uid())) {
            format!("belongs to {}", name(metadata.uid()))
        } else {
            continue;
        };
        return Err(distrusted(path, &whose));
    }
    if is_dir && depth > 0 {
        for entry in fs_err::read_dir(path)? {
            require_owners(&entry?.path(), trusted, depth - 1)?;
        }
    }
    Ok(())
}

fn distrusted(path: &Path, whose: &str) -> Error {
    let (shown, own) = (path.display(), plain_name(rustix::process::geteuid().as_raw()));
    Error::precondition(format!("{shown} {whose}, and would replace what is built into turnup"))
        .evidence("it decides what is run here and on hosts")
        .hint(format!(
            "change to a directory of your own; or, when you have read it: chown --no-dereference {own} {shown} && chmod o-w {shown}"
        ))
}

/// The user with this number, as people know it: `anna (uid 1000)`.
fn name(uid: u32) -> String {
    find_name(uid).map_or_else(|| format!("uid {uid}"), |name| format!("{name} (uid {uid})"))
}

/// The same as commands take it.
fn plain_name(uid: u32) -> String {
    find_name(uid).unwrap_or_else(|| uid.to_string())
}

/// Users of this machine alone: those of a directory service have a number, which is enough.
fn find_name(uid: u32) -> Option<String> {
    let users = super::read_text(Path::new("/etc/passwd"), super::DOCUMENT).ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_that_others_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(".turnup");
        require_own_dir(&own).unwrap();
        fs_err::create_dir(&own).unwrap();
        for (mode, fine) in [(0o700, true), (0o755, true), (0o775, false), (0o707, false), (0o1777, false)] {
            fs_err::set_permissions(&own, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(require_own_dir(&own).is_ok(), fine, "{mode:o}");
            if !fine {
                let told = require_own_dir(&own).unwrap_err().render();
                assert!(told.contains(&format!("its mode is {mode:04o}")) && told.contains("chmod -R go-w"), "{told}");
            }
        }
    }

    #[test]
    fn what_another_user_owns_is_refused_by_name() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs");
        fs_err::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(1), Some(1)).unwrap();
        let told = require_own_dir(&theirs).unwrap_err().render();
        assert!(told.contains("theirs belongs to daemon (uid 1), and this is root (uid 0)"), "{told}");
        assert!(told.contains("run turnup as daemon"), "{told}");
        let told = require_trusted(&theirs).unwrap_err().render();
        assert!(told.contains("theirs belongs to daemon (uid 1), and would replace"), "{told}");
        let (own, link) = (dir.path().join("own"), dir.path().join("link"));
        fs_err::create_dir(&own).unwrap();
        require_trusted(&own).unwrap();
        fs_err::os::unix::fs::symlink(&own, &link).unwrap();
        require_own_dir(&link).unwrap();
        std::os::unix::fs::lchown(&link, Some(1), Some(1)).unwrap();
        assert!(require_own_dir(&link).is_err() && require_trusted(&link).is_err(), "another user's link to ours");
        let inner = own.join("templates/a");
        fs_err::create_dir_all(inner.parent().unwrap()).unwrap();
        fs_err::write(&inner, "").unwrap();
        require_trusted(&own).unwrap();
        std::os::unix::fs::chown(&inner, Some(1), None).unwrap();
        assert!(require_trusted(&own).unwrap_err().message().contains("templates/a belongs to daemon"));
        fs_err::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(require_trusted(&own).unwrap_err().message().contains("can be written to by every user"));
    }
}
