//! turnup's lines in `/etc/hosts`: names of the user's, each with a mark at its end. All other
//! lines stay as they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::input;

use super::layout::HOSTS_FILE;
use super::task;

/// The end of a line of ours.
const MARK: &str = " # turnup: phase2.host.extra_hosts";

/// Writes the lines of these names, and removes those of others.
pub(super) fn ensure(names: &BTreeMap<String, IpAddr>) -> Result<bool> {
    ensure_in(Path::new(HOSTS_FILE), names)
}

/// The lines that are there and that should be there, where they differ.
pub(super) fn find_difference(names: &BTreeMap<String, IpAddr>) -> Result<Option<(String, String)>> {
    let now = read(Path::new(HOSTS_FILE))?;
    let wanted = with_names(&now, names);
    Ok((now != wanted).then_some((now, wanted)))
}

fn ensure_in(path: &Path, names: &BTreeMap<String, IpAddr>) -> Result<bool> {
    let now = read(path)?;
    let wanted = with_names(&now, names);
    if now == wanted {
        return Ok(false);
    }
    // Where the name is a link, the file behind it is the one that others write too.
    let path: PathBuf = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let found = fs_err::metadata(&path).map(|data| (data.mode() & 0o7777, data.uid(), data.gid()));
    let (mode, user, group) = found.unwrap_or((0o644, 0, 0));
    task::write_atomic(&path, wanted.as_bytes(), mode, user)?;
    chown(&path, Some(user), Some(group))?;
    Ok(true)
}

fn read(path: &Path) -> Result<String> {
    if !path.exists() {
        return Ok(String::new());
    }
    Ok(input::read_text(path, input::DOCUMENT)?)
}

/// The text with these names in place of older ones.
fn with_names(text: &str, names: &BTreeMap<String, IpAddr>) -> String {
    let foreign = text.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(MARK));
    let mut all: String = foreign.collect();
    if !names.is_empty() && !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    let lines = names.iter().map(|(name, address)| format!("{address} {name}{MARK}\n"));
    all + &lines.collect::<String>()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, IpAddr> {
        pairs.iter().map(|(name, address)| ((*name).to_owned(), address.parse().unwrap())).collect()
    }

    #[test]
    fn names_come_change_and_go_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        let own = "127.0.0.1 localhost\n# mine\n192.0.2.1 a b\n";
        fs_err::write(&path, own).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let both = names(&[("r.example", "192.0.2.40"), ("s.example", "2001:db8::1")]);
        assert!(ensure_in(&path, &both).unwrap() && !ensure_in(&path, &both).unwrap());
        let both_lines = format!("192.0.2.40 r.example{MARK}\n2001:db8::1 s.example{MARK}\n");
        assert_eq!(read(&path).unwrap(), format!("{own}{both_lines}"));
        assert_eq!(fs_err::metadata(&path).unwrap().mode() & 0o777, 0o640);
        let added = read(&path).unwrap() + "192.0.2.9 later\n";
        fs_err::write(&path, added).unwrap();
        assert!(ensure_in(&path, &names(&[])).unwrap() && !ensure_in(&path, &names(&[])).unwrap());
        assert_eq!(read(&path).unwrap(), format!("{own}192.0.2.9 later\n"));
    }

    #[test]
    fn a_line_of_others_among_ours_stays() {
        let text = format!("192.0.2.40 r.example{MARK}\n192.0.2.7 mine\n192.0.2.41 s.example{MARK}");
        assert_eq!(with_names(&text, &names(&[])), "192.0.2.7 mine\n");
        assert_eq!(
            with_names("127.0.0.1 localhost", &names(&[("r", "192.0.2.1")])),
            format!("127.0.0.1 localhost\n192.0.2.1 r{MARK}\n")
        );
    }
}
