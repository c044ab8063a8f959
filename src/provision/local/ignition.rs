//! User data of a host of this machine, in Ignition's form: its files and units are written into
//! the host's root before it boots, as Ignition does on the first boot of a real machine. Only what
//! turnup's own user data has is known; all else is refused.

use std::fs::Permissions;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::error::{Context as _, Error, Result};
use crate::failpoint;

/// What of the document counts here. Who may log in is the host's description's to say.
#[derive(Deserialize)]
struct Config {
    storage: Storage,
    systemd: Systemd,
}

#[derive(Deserialize)]
struct Storage {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct Systemd {
    units: Vec<IgnitionUnit>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    mode: u32,
    contents: Contents,
}

#[derive(Deserialize)]
struct Contents {
    source: Zeroizing<String>,
    #[serde(default)]
    compression: String,
}

/// A unit, which is enabled.
#[derive(Deserialize)]
pub(super) struct IgnitionUnit {
    pub(super) name: String,
    pub(super) contents: String,
}

/// Writes the files below this root, and returns the units.
pub(super) fn write_files(root: &Path, text: &str) -> Result<Vec<IgnitionUnit>> {
    let config: Config = serde_json::from_str(text).context("the user data of a local host is no Ignition of ours")?;
    for file in &config.storage.files {
        let path = below(root, &file.path)?;
        let bytes = decode(&file.contents).context(format!("{} in the user data", file.path))?;
        failpoint::pass(format_args!("file {}: before", file.path));
        if let Some(dir) = path.parent() {
            fs_err::create_dir_all(dir)?;
        }
        // Closed before it has its content.
        fs_err::write(&path, b"")?;
        fs_err::set_permissions(&path, Permissions::from_mode(file.mode & 0o777))?;
        fs_err::write(&path, &*bytes)?;
    }
    Ok(config.systemd.units)
}

/// The path of a file of the host on this machine.
fn below(root: &Path, path: &str) -> Result<PathBuf> {
    let relative = path.strip_prefix('/').map(Path::new);
    let is_plain = |path: &&Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    let relative = relative.filter(is_plain).filter(|path| !path.as_os_str().is_empty());
    let refuse = || Error::permanent(format!("the user data of a local host names a strange path: {path:?}"));
    Ok(root.join(relative.ok_or_else(refuse)?))
}

/// The bytes of a `data:` URL (RFC 2397).
fn decode(contents: &Contents) -> Result<Zeroizing<Vec<u8>>> {
    let foreign = || Error::permanent("not a data URL of turnup's");
    let rest = contents.source.strip_prefix("data:").ok_or_else(foreign)?;
    let bytes = match rest.strip_prefix(";base64,") {
        Some(text) => Zeroizing::new(STANDARD.decode(text).context("not base64")?),
        None => unescape(rest.strip_prefix(',').ok_or_else(foreign)?).ok_or_else(foreign)?,
    };
    if contents.compression.is_empty() {
        return Ok(bytes);
    }
    let mut unpacked = Zeroizing::new(Vec::new());
    GzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).context("not gzip")?;
    Ok(unpacked)
}

/// What else may stand in a `data:` URL as it is; Ignition refuses the rest.
const PLAIN: &[u8] = b"-_.!~*'();/?:@&=+$,";

fn unescape(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (mut bytes, mut rest) = (Zeroizing::new(Vec::with_capacity(text.len())), text.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if first.is_ascii_alphanumeric() || PLAIN.contains(first) {
            bytes.push(*first);
            continue;
        }
        if *first != b'%' {
            return None;
        }
        let (code, others) = others.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?);
        rest = others;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn file(path: &str, source: &str) -> String {
        serde_json::json!({
            "ignition": {"version": "3.1.0"},
            "storage": {"files": [{"path": path, "mode": 0o600, "overwrite": true, "contents": {"source": source}}]},
            "systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Unit]\n"}]},
        })
        .to_string()
    }

    #[test]
    fn files_come_below_the_root_for_their_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let units = write_files(root.path(), &file("/var/lib/x/token", "data:,a%0Ab%25")).unwrap();
        assert_eq!((units[0].name.as_str(), units[0].contents.as_str()), ("a.service", "[Unit]\n"));
        let path = root.path().join("var/lib/x/token");
        assert_eq!(fs_err::read(&path).unwrap(), b"a\nb%");
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        write_files(root.path(), &file("/var/lib/x/token", "data:;base64,eA==")).unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"x");
    }

    #[test]
    fn nothing_is_written_beside_the_root() {
        let root = tempfile::tempdir().unwrap();
        for path in ["etc/passwd", "/../x", "/a/../../x", "/", "", "/./x/.."] {
            assert!(write_files(root.path(), &file(path, "data:,x")).is_err(), "{path}");
        }
        for source in
            ["https://example.com/x", "data:,%zz", "data:,%a", "data:,a b", "data:text/plain,x", "data:;base64,?"]
        {
            assert!(write_files(root.path(), &file("/x", source)).is_err(), "{source}");
        }
        assert!(write_files(root.path(), "{}").is_err());
    }
}
