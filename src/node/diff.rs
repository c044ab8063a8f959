//! What on this host differs from its complete configuration. Looks, and changes nothing: the proof that a node is still what
//! `turnup node up` made it, and the host's part of `turnup plan`.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::Result;
use crate::exec::Run;

use super::complete::{Binary, Complete, File};
use super::task;
use super::up::stamp;

/// One line for each difference, in the order in which `turnup node up` would mend them; none when there is nothing to do.
pub fn find_differences(complete: &Complete) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (name, value) in &complete.sysctls {
        let found = task::read_sysctl(name)?;
        if found != *value {
            lines.push(format!("sysctl {name}: {found}, wanted {value}"));
        }
    }
    for directory in &complete.directories {
        lines.extend(attributes(&directory.path, directory.mode, directory.owner));
    }
    for (binary, line) in complete.binaries.iter().zip(binaries(&complete.binaries)?) {
        lines.extend(line.map(|why| format!("{}: {why}", binary.path)));
    }
    for file in &complete.files {
        lines.extend(file_difference(file)?);
    }
    for unit in &complete.units {
        let path = format!("/etc/systemd/system/{}", unit.name);
        if fs_err::read_to_string(&path).is_ok_and(|text| text == unit.text) {
            let active = Run::new("systemctl").args(["is-active", "--quiet", &unit.name]).dir("/").output();
            lines.extend(active.is_err().then(|| format!("{} is not active", unit.name)));
        } else {
            lines.push(format!("{path} differs"));
        }
    }
    let missing = complete.images.iter().filter(|image| !stamp(image).exists());
    lines.extend(missing.map(|image| format!("image {} is not imported", image.reference)));
    Ok(lines)
}

/// Reading some hundred megabytes is the longest part, so every binary gets a thread.
fn binaries(binaries: &[Binary]) -> Result<Vec<Option<&'static str>>> {
    std::thread::scope(|scope| {
        let look = |binary: &Binary| -> Result<Option<&'static str>> {
            let path = Path::new(&binary.path);
            if !path.exists() {
                return Ok(Some("is missing"));
            }
            Ok((task::digest_of(path)? != binary.sha256).then_some("is another one"))
        };
        let threads: Vec<_> = binaries.iter().map(|binary| scope.spawn(move || look(binary))).collect();
        threads.into_iter().map(task::join).collect()
    })
}

fn file_difference(file: &File) -> Result<Option<String>> {
    let path = Path::new(&file.path);
    if !path.exists() {
        return Ok(Some(format!("{} is missing", file.path)));
    }
    if !file.initial && task::digest_of(path)? != task::wanted_digest(file) {
        return Ok(Some(format!("{} has another content", file.path)));
    }
    Ok(if file.initial { None } else { attributes(&file.path, file.mode, file.owner) })
}

fn attributes(path: &str, mode: u32, owner: u32) -> Option<String> {
    let Ok(found) = fs_err::metadata(path) else { return Some(format!("{path} is missing")) };
    let (has, user) = (found.mode() & 0o7777, found.uid());
    if has == mode && user == owner && found.gid() == owner {
        return None;
    }
    Some(format!("{path}: mode {has:o} of user {user}, wanted {mode:o} of {owner}"))
}
