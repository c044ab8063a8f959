//! Mode, user and group of what lies on this host: found, compared, corrected.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

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

/// Corrects what differs.
pub(super) fn ensure(path: &Path, mode: u32, (user, group): (u32, u32)) -> Result<bool> {
    let found = fs_err::metadata(path)?;
    let mut changed = false;
    if (found.uid(), found.gid()) != (user, group) {
        let point = format_args!("owner of {}", path.display());
        failpoint::around(point, || std::os::unix::fs::chown(path, Some(user), Some(group)))?;
        changed = true;
    }
    // Last: the kernel takes setuid and setgid away from what gets another owner.
    if fs_err::metadata(path)?.mode() & 0o7777 != mode {
        let point = format_args!("mode of {}", path.display());
        failpoint::around(point, || fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)))?;
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
    fn what_differs_is_said_with_the_group_where_it_is_not_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let found = fs_err::metadata(path).unwrap();
        let owner = (found.uid(), found.gid());
        assert!(ensure(dir.path(), 0o750, owner).unwrap());
        assert!(!ensure(dir.path(), 0o750, owner).unwrap());
        assert_eq!(find_difference(path, 0o750, owner), None);
        let lines = find_difference(path, 0o2750, (owner.0, owner.0 + 1)).unwrap();
        assert_eq!(lines[1], format!("+ mode 2750 of user {}, group {}", owner.0, owner.0 + 1));
    }
}
