//! What on this host differs from its node config, and what correcting it would stop and start.
//! Looks, and changes nothing: the proof that a node is still what `turnup node up` made it, and
//! the host's part of `turnup plan`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::change::{Change, Verb};
use crate::error::Result;
use crate::input;

use super::digests::Digests;
use super::layout::{self, unit_file};
use super::line_diff::line_diff;
use super::node_config::{Binary, Content, Directory, File, Image, NodeConfig, Unit};
use super::restore_log::{RestoreEntry, RestoreLog};
use super::{attributes, firewall, hosts_file, join, mounts, own_place, packages, systemd, task, up, yaml};

/// What differs, in the order in which `turnup node up` would correct it; nothing when there is
/// nothing to do.
pub(crate) fn find_differences(node_config: &NodeConfig) -> Result<Vec<Change>> {
    let mut further = superseded(node_config)?;
    if up::is_unfinished() {
        further.push(Change::new(Verb::Delete, "file", up::UNFINISHED));
    }
    find(node_config, further, &Digests::default())
}

/// What the host lost or had changed since this node config was applied to it. What an earlier
/// configuration left is no loss.
pub(super) fn find_losses(node_config: &NodeConfig, digests: &Digests) -> Result<Vec<Change>> {
    find(node_config, Vec::new(), digests)
}

/// All that differs, and what is to go besides.
fn find(node_config: &NodeConfig, further: Vec<Change>, digests: &Digests) -> Result<Vec<Change>> {
    let mut changes = mounts::find_differences(&node_config.mounts)?;
    let missing = packages::find_missing(&node_config.packages)?;
    changes.extend(missing.iter().map(|package| Change::new(Verb::Create, "package", package)));
    for module in &node_config.modules {
        if !task::has_module(module)? {
            changes.push(Change::new(Verb::Create, "kernel module", module));
        }
    }
    for (name, value) in &node_config.sysctls {
        // One that a module brings, which is not loaded yet, has no value.
        let found = task::read_sysctl(name).unwrap_or_default();
        if !task::is_same_setting(&found, value) {
            let lines = vec![format!("- {found}"), format!("+ {value}")];
            changes.push(Change::new(Verb::Update, "kernel setting", name).with_lines(lines));
        }
    }
    if let Some((now, wanted)) = hosts_file::find_difference(&node_config.extra_hosts)? {
        let change = Change::new(Verb::Update, "file", layout::HOSTS_FILE);
        changes.push(change.with_lines(line_diff(&now, &wanted)));
    }
    for directory in &node_config.directories {
        changes.extend(directory_difference(directory));
    }
    for (binary, verb) in node_config.binaries.iter().zip(binaries(&node_config.binaries, digests)?) {
        changes.extend(verb.map(|verb| Change::new(verb, "binary", &binary.path)));
    }
    for file in node_config.files.iter().filter(|file| file.is_wanted()) {
        changes.extend(file_difference(file, digests)?);
    }
    changes.extend(further);
    let touched: BTreeSet<String> = changes.iter().map(|change| change.name.clone()).collect();
    let others = node_config.find_restarts(|path| touched.contains(path));
    changes.extend(
        others
            .into_iter()
            .filter(|unit| systemd::is("is-active", unit))
            .map(|unit| Change::new(Verb::Restart, "service", unit)),
    );
    for unit in &node_config.units {
        changes.extend(unit_differences(unit, &touched));
    }
    if join::is_token_left() {
        changes.push(Change::new(Verb::Delete, "file", layout::BOOTSTRAP_KUBECONFIG));
    }
    let is_missing = |image: &&Image| !layout::import_stamp(&node_config.runtime.root, &image.sha256).exists();
    let missing = node_config.images.iter().filter(is_missing);
    changes.extend(missing.map(|image| Change::new(Verb::Create, "image", &image.reference)));
    Ok(changes)
}

/// The services and static pods that would stop and start if a host of the first configuration got
/// the second one.
#[must_use]
pub(crate) fn simulate_restarts(before: &NodeConfig, after: &NodeConfig) -> Vec<String> {
    let changed = before.find_changed(after);
    let is_changed = |path: &str| changed.contains(path);
    let services = after.units.iter().filter_map(|unit| {
        let known = before.units.iter().find(|known| known.name == unit.name)?;
        let stale = known.text != unit.text || [known, unit].iter().any(|unit| unit.depends_on_any(is_changed));
        (stale && !unit.reloads).then(|| unit.name.clone())
    });
    let others = [before, after].map(|node_config| node_config.find_restarts(is_changed)).into_iter().flatten();
    let others = others.collect::<BTreeSet<&str>>().into_iter().map(str::to_owned);
    let was_there = |path: &&&str| before.files.iter().any(|file| file.path == **path);
    let pods = changed.iter().filter(was_there).filter_map(|path| layout::static_pod(path));
    services.chain(others).chain(pods.map(|pod| format!("static pod {pod}"))).collect()
}

/// What an earlier configuration made and this one has no more.
fn superseded(node_config: &NodeConfig) -> Result<Vec<Change>> {
    let restore_log = RestoreLog::read()?.unwrap_or_default();
    let superseded = restore_log.find_superseded(node_config);
    let is_going = |entry: &RestoreEntry, path: &Path| match entry {
        RestoreEntry::File { path: file, before: None } | RestoreEntry::OwnDirectory { path: file, .. } => {
            Path::new(file) == path
        }
        _ => false,
    };
    let gone = superseded.iter().filter_map(|entry| match entry {
        RestoreEntry::File { path, before: None } => Some(Change::new(Verb::Delete, "file", path)),
        RestoreEntry::File { path, .. } => Some(Change::new(Verb::Update, "file", path)),
        RestoreEntry::Unit { name, .. } => Some(Change::new(Verb::Delete, "service", name)),
        RestoreEntry::OwnDirectory { path, before } => {
            let mut entries = fs_err::read_dir(path).ok()?.flatten();
            let is_left_empty = entries.all(|inner| superseded.iter().any(|entry| is_going(entry, &inner.path())));
            if restore_log.has_made(path) && is_left_empty {
                return Some(Change::new(Verb::Delete, "directory", path));
            }
            let (mode, user, group) = (*before)?;
            let lines = attributes::find_difference(path, mode, (user, group))?;
            Some(Change::new(Verb::Update, "directory", path).with_lines(lines))
        }
        RestoreEntry::Sysctl { name, before } => {
            let now = task::read_sysctl(name).ok().filter(|now| !task::is_same_setting(now, before))?;
            let lines = vec![format!("- {now}"), format!("+ {before}")];
            Some(Change::new(Verb::Update, "kernel setting", name).with_lines(lines))
        }
        RestoreEntry::Module { name } => Some(Change::new(Verb::Delete, "kernel module", name)),
        _ => None,
    });
    Ok(gone.collect())
}

/// The unit's own file, and what becomes of the unit when that or what it depends on changes.
fn unit_differences(unit: &Unit, touched: &BTreeSet<String>) -> Vec<Change> {
    let path = unit_file(&unit.name);
    let text = input::read_text(Path::new(&path), input::DOCUMENT);
    let mut changes = Vec::new();
    match &text {
        Ok(text) if *text == unit.text => {
            let lines = attributes::find_difference(&path, unit.mode, (0, 0));
            changes.extend(lines.map(|lines| Change::new(Verb::Update, "unit", &unit.name).with_lines(lines)));
        }
        Ok(text) => changes.push(Change::new(Verb::Update, "unit", &unit.name).with_lines(line_diff(text, &unit.text))),
        Err(_) => changes.push(Change::new(Verb::Create, "unit", &unit.name)),
    }
    if text.is_err() || !systemd::is("is-active", &unit.name) {
        changes.push(Change::new(Verb::Start, "service", &unit.name));
    } else if !changes.is_empty() || unit.depends_on_any(|file| touched.contains(file)) {
        let verb = if unit.reloads { Verb::Update } else { Verb::Restart };
        changes.push(Change::new(verb, "service", &unit.name));
    } else if let Some(lines) = firewall::find_drift(unit) {
        changes.push(Change::new(Verb::Update, "nftables table", "inet turnup").with_lines(lines));
    }
    changes
}

/// Reading some hundred megabytes is the longest part, so every binary gets a thread.
fn binaries(binaries: &[Binary], digests: &Digests) -> Result<Vec<Option<Verb>>> {
    std::thread::scope(|scope| {
        let look = |binary: &Binary| -> Result<Option<Verb>> {
            let path = Path::new(&binary.path);
            if !path.exists() {
                return Ok(Some(Verb::Create));
            }
            Ok((digests.of(path)? != binary.sha256).then_some(Verb::Update))
        };
        let threads: Vec<_> = binaries.iter().map(|binary| scope.spawn(move || look(binary))).collect();
        threads.into_iter().map(task::join).collect()
    })
}

fn file_difference(file: &File, digests: &Digests) -> Result<Option<Change>> {
    let path = Path::new(&file.path);
    let (kind, name) = match (layout::static_pod(&file.path), &file.content) {
        (Some(pod), _) => ("static pod", pod),
        (None, Content::Symlink(_)) => ("link", file.path.as_str()),
        (None, Content::Directory {}) => ("directory", file.path.as_str()),
        (None, _) => ("file", file.path.as_str()),
    };
    let update = |lines: Vec<String>| Change::new(Verb::Update, kind, name).with_lines(lines);
    let now = match fs_err::symlink_metadata(path) {
        Err(_) => return Ok(Some(Change::new(Verb::Create, kind, name))),
        Ok(found) if found.is_symlink() => {
            format!("- a link to {}", fs_err::read_link(path).unwrap_or_default().display())
        }
        Ok(found) if found.is_dir() => "- a directory".to_owned(),
        Ok(_) => "- a file".to_owned(),
    };
    match &file.content {
        Content::Symlink(target) => {
            let is_linked = own_place::is_linked(path, Path::new(target), file.initial);
            return Ok((!is_linked).then(|| update(vec![now, format!("+ a link to {target}")])));
        }
        Content::Directory {} if path.is_dir() && !path.is_symlink() => {
            return Ok(attributes::find_difference(&file.path, file.mode, attributes::owner_of(file)?).map(update));
        }
        Content::Directory {} => return Ok(Some(update(vec![now, "+ a directory".to_owned()]))),
        _ if !path.exists() => return Ok(Some(update(vec![now, "+ a file".to_owned()]))),
        _ => {}
    }
    if file.initial {
        return Ok(None);
    }
    if path.is_symlink() {
        return Ok(Some(update(vec![now, "+ a file".to_owned()])));
    }
    if digests.of(path)? == task::wanted_digest(file)? {
        return Ok(attributes::find_difference(&file.path, file.mode, attributes::owner_of(file)?).map(update));
    }
    let lines = match &file.content {
        Content::Text(text) => line_diff(&String::from_utf8_lossy(&input::read(path, input::STATE)?), text),
        Content::Yaml(value) => {
            line_diff(&String::from_utf8_lossy(&input::read(path, input::STATE)?), &yaml::render(value))
        }
        // Neither the old nor the new secret is shown.
        Content::Secret { .. } => vec!["(secret)".to_owned()],
        _ => vec!["(other bytes)".to_owned()],
    };
    Ok(Some(update(lines)))
}

fn directory_difference(directory: &Directory) -> Option<Change> {
    if !Path::new(&directory.path).exists() {
        return Some(Change::new(Verb::Create, "directory", &directory.path));
    }
    let lines = attributes::find_difference(&directory.path, directory.mode, (directory.owner, directory.owner))?;
    Some(Change::new(Verb::Update, "directory", &directory.path).with_lines(lines))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn links_and_directories_that_were_changed_are_said_with_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let owner = rustix::process::geteuid().as_raw();
        let file = |name: &str, content: Content| {
            File::new(&dir.path().join(name).display().to_string(), 0o750, owner, content)
        };
        let text = || Content::Text("a".into());
        let wanted = [
            file("link", Content::Symlink("/target".into())),
            file("directory", Content::Directory {}),
            file("file", text()),
        ];
        let shown = || {
            let changes = wanted.iter().filter_map(|file| file_difference(file, &Digests::default()).unwrap());
            let line = |change: Change| {
                let name = change.name.rsplit('/').next().unwrap().to_owned();
                format!("{} {} {name}: {}\n", change.verb.sign(), change.kind, change.lines.join(", "))
            };
            changes.map(line).collect::<String>().replace(&format!("of user {owner}"), "of user OWNER")
        };
        assert_eq!(shown(), "+ link link: \n+ directory directory: \n+ file file: \n");
        let [link, directory, path] = ["link", "directory", "file"].map(|name| dir.path().join(name));
        symlink("/target", &link).unwrap();
        fs_err::create_dir(&directory).unwrap();
        fs_err::write(&path, "a").unwrap();
        for path in [&directory, &path] {
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o750)).unwrap();
        }
        assert_eq!(shown(), "", "a target that is not there is no difference");
        fs_err::remove_file(&link).unwrap();
        symlink("/elsewhere", &link).unwrap();
        fs_err::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
        fs_err::rename(&path, dir.path().join("other")).unwrap();
        symlink(dir.path().join("other"), &path).unwrap();
        let other = dir.path().join("other").display().to_string();
        insta::assert_snapshot!(shown().replace(&other, "OTHER"), @r"
        ~ link link: - a link to /elsewhere, + a link to /target
        ~ directory directory: - mode 700 of user OWNER, + mode 750 of user OWNER
        ~ file file: - a link to OTHER, + a file
        ");
    }
}
