//! turnup's block in `/etc/hosts`: names of the user's between two marks. All other lines stay as
//! they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::input;

use super::task;

/// The file.
pub(super) const FILE: &str = "/etc/hosts";
const BEGIN: &str = "# turnup: names of phase2.host.extra_hosts";
const END: &str = "# turnup: end of names";

/// Writes the block with these names, or removes it where there are none.
pub(super) fn ensure(names: &BTreeMap<String, IpAddr>) -> Result<bool> {
    ensure_in(Path::new(FILE), names)
}

/// The lines that are there and that should be there, where they differ.
pub(super) fn find_difference(names: &BTreeMap<String, IpAddr>) -> Result<Option<(String, String)>> {
    let now = read(Path::new(FILE))?;
    let wanted = with_block(&now, names);
    Ok((now != wanted).then_some((now, wanted)))
}

fn ensure_in(path: &Path, names: &BTreeMap<String, IpAddr>) -> Result<bool> {
    let now = read(path)?;
    let wanted = with_block(&now, names);
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

/// The text with this block in place of an older one. A block that lost its end ends with its last
/// line that looks like one of ours.
fn with_block(text: &str, names: &BTreeMap<String, IpAddr>) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        match line.trim_end() {
            BEGIN => inside = true,
            END if inside => inside = false,
            other if inside && other.split_whitespace().count() == 2 && !other.starts_with('#') => {}
            _ => {
                inside = false;
                kept.push_str(line);
            }
        }
    }
    if names.is_empty() {
        return kept;
    }
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    let lines = names.iter().map(|(name, address)| format!("{address} {name}\n"));
    kept + &format!("{BEGIN}\n{}{END}\n", lines.collect::<String>())
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
    fn the_block_comes_changes_and_goes_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        let own = "127.0.0.1 localhost\n# mine\n192.0.2.1 a b\n";
        fs_err::write(&path, own).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let both = names(&[("r.example", "192.0.2.40"), ("s.example", "2001:db8::1")]);
        assert!(ensure_in(&path, &both).unwrap() && !ensure_in(&path, &both).unwrap());
        let block = |lines: &str| format!("{own}{BEGIN}\n{lines}{END}\n");
        assert_eq!(read(&path).unwrap(), block("192.0.2.40 r.example\n2001:db8::1 s.example\n"));
        assert_eq!(fs_err::metadata(&path).unwrap().mode() & 0o777, 0o640);
        let added = read(&path).unwrap() + "192.0.2.9 later\n";
        fs_err::write(&path, added).unwrap();
        assert!(ensure_in(&path, &names(&[])).unwrap() && !ensure_in(&path, &names(&[])).unwrap());
        assert_eq!(read(&path).unwrap(), format!("{own}192.0.2.9 later\n"));
    }

    #[test]
    fn a_block_without_its_end_takes_no_line_of_others_along() {
        let torn = format!("{BEGIN}\n192.0.2.40 r.example\n# mine\n192.0.2.1 a b\n");
        assert_eq!(with_block(&torn, &names(&[])), "# mine\n192.0.2.1 a b\n");
        assert_eq!(
            with_block("127.0.0.1 localhost", &names(&[("r", "192.0.2.1")])),
            format!("127.0.0.1 localhost\n{BEGIN}\n192.0.2.1 r\n{END}\n")
        );
    }
}
