//! Mode, user and group of what lies on this host: found, compared, corrected.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::failpoint;

use super::node_config::File;

/// The numbers of a file's user and group on this host.
pub(super) fn owner_of(file: &File) -> Result<(u32, u32)> {
    let named = |kind: &str, accounts: &str, name: &str| {
        find_account(&fs_err::read_to_string(accounts)?, name).ok_or_else(|| {
            let message = format!("{} is to belong to {name}, and this host has no {kind} of this name", file.path);
            let hint = format!("make the {kind} on the host, or name another one in phase2.host.file_assets");
            Error::precondition(message).hint(hint)
        })
    };
    let (user, own_group) = match &file.user {
        None => (file.owner, file.owner),
        Some(name) => named("user", "/etc/passwd", name)?,
    };
    match &file.group {
        None => Ok((user, own_group)),
        Some(name) => Ok((user, named("group", "/etc/group", name)?.0)),
    }
}

/// The number of an account, and what stands behind it: of a user, the group's. `accounts` has the
/// format of `/etc/passwd` or `/etc/group`.
fn find_account(accounts: &str, name: &str) -> Option<(u32, u32)> {
    let line = accounts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut numbers = line.split(':').skip(1);
    let number: u32 = numbers.next()?.parse().ok()?;
    Some((number, numbers.next().and_then(|group| group.parse().ok()).unwrap_or(number)))
}

/// Corrects what differs, behind all links.
pub(super) fn ensure(path: &Path, mode: u32, owner: (u32, u32)) -> Result<bool> {
    correct(path, &fs_err::File::open(path)?.into_file(), mode, owner)
}

/// The same for a file that another user may have replaced by a link: that one is not followed.
pub(super) fn ensure_file(path: &Path, mode: u32, owner: (u32, u32)) -> Result<bool> {
    let opened =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    correct(path, &opened.map_err(|error| explain(path, error))?.into(), mode, owner)
}

/// The same for a directory: no link on the way to it is followed, for a user who owns one of the
/// directories around it could lead turnup anywhere.
pub(super) fn ensure_directory(path: &Path, mode: u32, owner: (u32, u32)) -> Result<bool> {
    correct(path, &open_directory(path)?, mode, owner)
}

/// Opens a directory to which no link leads.
pub(super) fn open_directory(path: &Path) -> Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    Ok(opened.map_err(|error| explain(path, error))?.into())
}

fn explain(path: &Path, error: Errno) -> Error {
    let message = match error {
        Errno::LOOP => {
            format!("{} is a symbolic link, or lies behind one, which another user may lead elsewhere", path.display())
        }
        _ => format!("{} cannot be opened", path.display()),
    };
    Error::precondition(message)
        .source(std::io::Error::from(error))
        .hint("name the path behind the link, or remove the link on the host")
}

fn correct(path: &Path, file: &std::fs::File, mode: u32, (user, group): (u32, u32)) -> Result<bool> {
    let found = file.metadata()?;
    let mut changed = false;
    if (found.uid(), found.gid()) != (user, group) {
        let point = format_args!("owner of {}", path.display());
        failpoint::around(point, || std::os::unix::fs::fchown(file, Some(user), Some(group)))?;
        changed = true;
    }
    // Last: the kernel takes setuid and setgid away from what gets another owner.
    if file.metadata()?.mode() & 0o7777 != mode {
        let point = format_args!("mode of {}", path.display());
        failpoint::around(point, || file.set_permissions(std::fs::Permissions::from_mode(mode)))?;
        changed = true;
    }
    Ok(changed)
}

/// The lines in which they differ, of something that is there.
pub(super) fn find_difference(path: &str, mode: u32, owner: (u32, u32)) -> Option<Vec<String>> {
    let found = fs_err::metadata(path).ok()?;
    let (has, belongs) = (found.mode() & 0o7777, (found.uid(), found.gid()));
    let differs = has != mode || belongs != owner;
    differs.then(|| vec![format!("- {}", describe(has, belongs)), format!("+ {}", describe(mode, owner))])
}

fn describe(mode: u32, (user, group): (u32, u32)) -> String {
    let group = if group == user { String::new() } else { format!(", group {group}") };
    format!("mode {mode:o} of user {user}{group}")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::node::node_config::Content;

    #[test]
    fn a_user_and_a_group_are_found_by_name() {
        let of = |user: &str, group: Option<&str>| {
            let file = File::new("/a", 0o600, 7, Content::Text(String::new()));
            owner_of(&File { user: Some(user.into()), group: group.map(Into::into), ..file })
        };
        assert_eq!(of("root", None).unwrap(), (0, 0));
        assert_eq!(of("root", Some("daemon")).unwrap(), (0, 1));
        let file = File::new("/a", 0o600, 7, Content::Text(String::new()));
        assert_eq!(owner_of(&File { group: Some("daemon".into()), ..file }).unwrap(), (7, 1));
        let error = of("no-such-user", None).unwrap_err();
        assert_eq!(error.message(), "/a is to belong to no-such-user, and this host has no user of this name");
        let error = of("root", Some("no-such-group")).unwrap_err();
        assert_eq!(error.message(), "/a is to belong to no-such-group, and this host has no group of this name");
    }

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let users = "admin:x:7:8::/:/bin/sh\nad:x:1000:100::/:/bin/sh\n";
        assert_eq!(find_account(users, "ad"), Some((1000, 100)));
        assert_eq!(find_account("adm:x:4:syslog\n", "adm"), Some((4, 4)));
        assert_eq!(find_account(users, "a"), None);
    }

    #[test]
    fn what_another_user_may_have_led_elsewhere_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let found = fs_err::metadata(dir.path()).unwrap();
        let owner = (found.uid(), found.gid());
        let [real, link] = ["real", "link"].map(|name| dir.path().join(name));
        fs_err::create_dir_all(real.join("inner")).unwrap();
        fs_err::write(real.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        std::os::unix::fs::symlink(real.join("file"), dir.path().join("file")).unwrap();
        for path in [link.clone(), link.join("inner")] {
            let error = ensure_directory(&path, 0o700, owner).unwrap_err();
            assert!(error.message().contains("is a symbolic link, or lies behind one"), "{error:?}");
        }
        assert!(ensure_file(&dir.path().join("file"), 0o640, owner).is_err());
        assert!(ensure_directory(&real.join("inner"), 0o710, owner).unwrap());
        assert!(ensure(&link, 0o711, owner).unwrap(), "what root alone places may be behind a link");
    }

    #[test]
    fn what_differs_is_said_with_the_group_where_it_is_not_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let found = fs_err::metadata(path).unwrap();
        let owner = (found.uid(), found.gid());
        assert!(ensure(dir.path(), 0o750, owner).unwrap());
        assert!(!ensure(dir.path(), 0o750, owner).unwrap());
        assert_eq!(find_difference(path, 0o750, owner), None);
        assert!(ensure_directory(dir.path(), 0o700, owner).unwrap() && ensure_file(dir.path(), 0o750, owner).unwrap());
        let lines = find_difference(path, 0o2750, (owner.0, owner.0 + 1)).unwrap();
        assert_eq!(lines[1], format!("+ mode 2750 of user {}, group {}", owner.0, owner.0 + 1));
    }
}
