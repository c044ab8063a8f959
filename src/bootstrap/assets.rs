//! The user's own files and programs on a host: those that the configuration has for this host, as
//! files and units of its node configuration, and in which order all units start.
//!
//! Reads the files that the configuration names; asks no host.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;

use crate::cloud::{CONTROL_PLANE, WORKERS};
use crate::cluster::Cluster;
use crate::cluster::assets::{FileAsset, Hook, When, is_meant};
use crate::config::format::Format;
use crate::config::parse_duration;
use crate::error::{Error, Result};
use crate::input;
use crate::inventory::Role;
use crate::node::layout::{self, unit_file};
use crate::node::node_config::{Content, File, NodeConfig, Unit};
use crate::unknown;

use super::component::COMPONENTS;
use super::node_target::NodeTarget;
use super::template;

const FILES: &str = "phase2.host.file_assets";
const HOOKS: &str = "phase2.host.hooks";
const PODS: &str = "phase2.host.static_pods";
/// Larger content does not belong in a file that the user reads.
const LARGEST: u64 = 1 << 20;
/// Permission bits of a file of which nothing else is said: as kops has them.
const MODE: u32 = 0o440;
/// The same for a directory.
const DIRECTORY_MODE: u32 = 0o755;
/// How long a program may take of which nothing else is said: less than the step that waits for it.
const TIMEOUT: Duration = Duration::from_mins(10);

/// What of it is for one host.
#[derive(Debug)]
pub(super) struct Assets {
    /// Files, in the order to make them: directories, then files, then links.
    files: Vec<File>,
    /// Units of programs.
    hooks: Vec<Unit>,
    /// Manifests of static pods.
    pods: Vec<File>,
}

impl Assets {
    /// Those for the host of this target.
    pub(super) fn find(cluster: &Cluster, target: &NodeTarget<'_>) -> Result<Self> {
        let assets = &cluster.settings.assets;
        let group = group_of(target);
        let files = assets.files.iter().filter(|file| is_meant(&file.roles, &file.groups, target.role, group));
        let mut files = choose(&files.collect::<Vec<_>>())?;
        require_apart(&files)?;
        files.sort_by_key(|file| {
            let parents_first = if file.directory { file.path.as_str() } else { "" };
            (file.link.is_some(), !file.directory, parents_first)
        });
        let files = files.into_iter().map(|file| file_of(cluster, file));
        let hooks = assets.hooks.iter().filter(|hook| !hook.disabled);
        let hooks = hooks.filter(|hook| is_meant(&hook.roles, &hook.groups, target.role, group));
        Ok(Self {
            files: files.collect::<Result<_>>()?,
            hooks: hooks.map(|hook| unit_of(cluster, hook)).collect::<Result<_>>()?,
            pods: if target.role == Role::ControlPlane { static_pods(cluster)? } else { Vec::new() },
        })
    }

    /// These units and those of programs, in the order to start them. kubelet starts again for the
    /// files that its flags or its configuration name.
    pub(super) fn arrange(&self, mut units: Vec<Unit>, kubelet: &Value) -> Result<Vec<Unit>> {
        units.splice(0..0, self.hooks.iter().cloned());
        for unit in &mut units {
            let is_kubelet = unit.name == "kubelet.service";
            let is_flag = |path: &str| unit.text.split_whitespace().any(|word| word.ends_with(&format!("={path}")));
            let is_read = |file: &File| is_kubelet && (is_flag(&file.path) || is_in(kubelet, &file.path));
            let files = self.files.iter().filter(|file| file.restarts.contains(&unit.name) || is_read(file));
            let files: Vec<String> = files.map(|file| file.path.clone()).collect();
            unit.restart_on.extend(files);
        }
        order(units)
    }

    /// The files, with those units to be restarted that are not turnup's own: it knows when to
    /// restart these.
    pub(super) fn files_beside(&self, units: &[Unit]) -> Vec<File> {
        let mut files = self.files.clone();
        for file in &mut files {
            file.restarts.retain(|name| !units.iter().any(|unit| unit.name == *name));
        }
        files.extend(self.pods.iter().cloned());
        files
    }

    /// An error when one of the user's own files is one that turnup writes itself.
    pub(super) fn require_own_places(&self, node_config: &NodeConfig) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let places = self.places_of_turnup(node_config);
        for file in &self.files {
            if places.contains(&file.path) {
                return Err(Error::config(format!("{FILES}: turnup writes {} itself", file.path))
                    .hint("leave that file out; what it should say may have a setting: turnup config list"));
            }
            if let Some(place) = places.iter().find(|place| Path::new(place).starts_with(&file.path)) {
                return Err(Error::config(format!("{FILES}: in {} turnup makes {place} itself", file.path))
                    .hint("leave that entry out: its mode, or where it leads, would decide about turnup's own files"));
            }
        }
        Ok(())
    }

    /// Everything on the host that turnup makes without these entries.
    fn places_of_turnup(&self, node_config: &NodeConfig) -> BTreeSet<String> {
        let own = |path: &str| self.files.iter().any(|file| file.path == path);
        let mut all: BTreeSet<String> = BTreeSet::new();
        for file in &node_config.files {
            let times = node_config.files.iter().filter(|other| other.path == file.path).count();
            if times > 1 || !own(&file.path) {
                all.insert(file.path.clone());
            }
        }
        all.extend(node_config.binaries.iter().map(|binary| binary.path.clone()));
        all.extend(node_config.units.iter().map(|unit| unit_file(&unit.name)));
        all.extend(node_config.directories.iter().map(|directory| directory.path.clone()));
        all.extend(node_config.mounts.iter().map(|mount| mount.path.clone()));
        all.extend(node_config.shared_directories.iter().cloned());
        all.extend([&node_config.runtime.root, &node_config.runtime.kubelet_root].into_iter().cloned());
        all.extend(Some(layout::HOSTS_FILE.to_owned()).filter(|_| !node_config.extra_hosts.is_empty()));
        all.remove("");
        all
    }
}

/// Whether this text is a value of the configuration.
fn is_in(config: &Value, text: &str) -> bool {
    match config {
        Value::String(value) => value == text,
        Value::Array(all) => all.iter().any(|value| is_in(value, text)),
        Value::Object(all) => all.values().any(|value| is_in(value, text)),
        _ => false,
    }
}

/// The name by which entries mean the host: its group's, or on targets without groups that of all
/// hosts of its role.
fn group_of<'s>(target: &NodeTarget<'s>) -> &'s str {
    target.group_name().unwrap_or(if target.role == Role::ControlPlane { CONTROL_PLANE } else { WORKERS })
}

/// Of those with one path the one that says most exactly for whom it is: for groups, for roles, for
/// all.
fn choose<'f>(files: &[&'f FileAsset]) -> Result<Vec<&'f FileAsset>> {
    let exactness = |file: &FileAsset| (!file.groups.is_empty(), !file.roles.is_empty());
    let mut chosen = Vec::new();
    for file in files {
        let rivals = || files.iter().filter(|other| other.path == file.path && other.name != file.name);
        if rivals().any(|other| exactness(other) > exactness(file)) {
            continue;
        }
        if let Some(other) = rivals().find(|other| exactness(other) == exactness(file)) {
            let message = format!("{FILES}: {} and {} both are {} of the same hosts", file.name, other.name, file.path);
            return Err(Error::config(message).hint("give each other roles or groups, or leave one out"));
        }
        chosen.push(*file);
    }
    Ok(chosen)
}

/// An error when one of these would have to lie in another one that is no directory.
fn require_apart(files: &[&FileAsset]) -> Result<()> {
    for outer in files.iter().filter(|file| !file.directory) {
        if let Some(inner) =
            files.iter().find(|inner| Path::new(&inner.path).starts_with(&outer.path) && inner != &outer)
        {
            let what = if outer.link.is_some() { "a link" } else { "a file" };
            let message = format!("{FILES}: {} lies in {}, which {} makes {what}", inner.name, outer.path, outer.name);
            return Err(Error::config(message).hint("name the path behind the link, or leave one of them out"));
        }
    }
    Ok(())
}

fn file_of(cluster: &Cluster, asset: &FileAsset) -> Result<File> {
    let content = if let Some(file) = &asset.file {
        content_of(&read(cluster, FILES, &asset.name, file)?)
    } else if let Some(url) = &asset.url {
        Content::Url { url: url.clone(), sha256: asset.sha256.clone().unwrap_or_default() }
    } else if let Some(text) = &asset.base64 {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        content_of(&bytes.map_err(|_| Error::config(format!("{FILES}: {}: base64 is none", asset.name)))?)
    } else if let Some(target) = &asset.link {
        Content::Symlink(target.clone())
    } else if asset.directory {
        Content::Directory {}
    } else {
        Content::Text(asset.content.as_ref().map(|line| format!("{line}\n")).unwrap_or_default())
    };
    let mode = asset.mode.as_ref().map(|mode| u32::from_str_radix(mode, 8));
    let mode =
        mode.transpose().map_err(|_| Error::config(format!("{FILES}: {}: its mode is not octal", asset.name)))?;
    let usual = match &content {
        Content::Directory {} => DIRECTORY_MODE,
        // As the kernel shows it; nothing sets it.
        Content::Symlink(_) => 0o777,
        _ => MODE,
    };
    Ok(File {
        user: asset.owner.clone(),
        group: asset.owner_group.clone(),
        restarts: asset.restarts.clone(),
        ..File::new(&asset.path, mode.unwrap_or(usual), 0, content)
    })
}

/// The manifests of the user's own static pods, of which each has a name of its own.
fn static_pods(cluster: &Cluster) -> Result<Vec<File>> {
    let mut pods: Vec<File> = Vec::new();
    for file in &cluster.settings.host_system.static_pods {
        let wrong = |why: String| Error::config(format!("{PODS}: {file}: {why}")).hint("turnup config check");
        let text = String::from_utf8(read(cluster, PODS, file, file)?).map_err(|_| wrong("it is no text".into()))?;
        let name = judge_pod(&text).map_err(wrong)?;
        let path = layout::manifest(&name);
        if pods.iter().any(|pod| pod.path == path) {
            return Err(wrong(format!("another file has a pod with the name {name}")));
        }
        pods.push(File::new(&path, 0o600, 0, Content::Text(text)));
    }
    Ok(pods)
}

/// The name of the one pod of a manifest, or what kubelet would refuse.
fn judge_pod(text: &str) -> std::result::Result<String, String> {
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|error| format!("it is not one document of YAML: {}", error.without_snippet()))?;
    if value["apiVersion"] != "v1" || value["kind"] != "Pod" {
        return Err("it holds no Pod of v1".to_owned());
    }
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let format: Format = "dns-name".parse()?;
    format.validate(name).map_err(|why| format!("metadata.name: {why}"))?;
    if COMPONENTS.iter().any(|component| component.name == name) {
        return Err(format!("{name} is a pod of turnup's own; give it another name"));
    }
    let has_containers = value.pointer("/spec/containers").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if has_containers { Ok(name.to_owned()) } else { Err(format!("the pod {name} has no spec.containers")) }
}

/// Bytes that are no text are written so that JSON can hold them.
fn content_of(bytes: &[u8]) -> Content {
    match std::str::from_utf8(bytes) {
        Ok(text) => Content::Text(text.to_owned()),
        Err(_) => Content::Base64(base64::engine::general_purpose::STANDARD.encode(bytes)),
    }
}

fn read(cluster: &Cluster, setting: &str, name: &str, file: &str) -> Result<Vec<u8>> {
    let path = cluster.work_dir.join(Path::new(file));
    input::read(&path, LARGEST).map_err(|error| {
        let message = format!("{setting}: {name}: {} cannot be read", path.display());
        let hint = match error.kind() {
            ErrorKind::FileTooLarge => "give a url and a sha256 in place of the file: hosts fetch it then",
            _ => "turnup config check",
        };
        Error::config(message).source(error).hint(hint)
    })
}

fn unit_of(cluster: &Cluster, hook: &Hook) -> Result<Unit> {
    let text = match &hook.unit_file {
        Some(file) => {
            let text = String::from_utf8(read(cluster, HOOKS, &hook.name, file)?);
            text.map_err(|_| Error::config(format!("{HOOKS}: {}: {file} is no text", hook.name)))?
        }
        None => render_unit(cluster, hook)?,
    };
    let name = format!("turnup-hook-{}.service", hook.name);
    Ok(Unit { name, text, mode: Unit::MODE, restart_on: Vec::new(), reloads: false })
}

fn render_unit(cluster: &Cluster, hook: &Hook) -> Result<String> {
    let timeout = hook.timeout.as_deref().and_then(parse_duration).unwrap_or(TIMEOUT);
    // With the node it goes as well: turnup's own directory.
    let stamp = format!("/var/lib/turnup/hook-{}.done", hook.name);
    let context = minijinja::context! {
        name => &hook.name,
        command => quote(hook.command.as_deref().unwrap_or_default()),
        before => hook.before.join(" "),
        after => hook.after.join(" "),
        requires => hook.requires.join(" "),
        always => hook.run == When::Always,
        stamp => if hook.run == When::Once { &stamp } else { "" },
        timeout => format!("{}ms", timeout.as_millis()),
    };
    template::render(&cluster.source, "templates/bootstrap/hook.service", &context)
}

/// One word of a command line of systemd, which has its own quotes, variables and specifiers
/// (systemd.service(5), "Command lines").
fn quote(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// The same where a word of a unit would be something else without quotes.
pub(super) fn unit_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=/.,:@+*~()[]{}".contains(letter);
    if unknown::is_in(text) || text.chars().all(is_plain) { text.to_owned() } else { quote(text) }
}

/// Each unit after those that it names in `After=` and `Requires=`, and that name it in `Before=`;
/// else as they are.
fn order(mut units: Vec<Unit>) -> Result<Vec<Unit>> {
    let mut ordered: Vec<Unit> = Vec::new();
    while !units.is_empty() {
        let is_free = |unit: &Unit| !units.iter().any(|other| other.name != unit.name && waits(unit, other));
        let Some(next) = units.iter().position(is_free) else {
            let names: BTreeSet<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::config(format!("{HOOKS}: these units wait for each other: {names}"))
                .hint("look at before, after and requires of the hooks among them"));
        };
        ordered.push(units.remove(next));
    }
    Ok(ordered)
}

fn waits(unit: &Unit, other: &Unit) -> bool {
    names(&unit.text, &["After", "Requires"]).any(|name| name == other.name)
        || names(&other.text, &["Before"]).any(|name| name == unit.name)
}

/// The words behind these keys of a unit.
fn names<'t>(text: &'t str, keys: &'t [&str]) -> impl Iterator<Item = &'t str> {
    let values = text.lines().filter_map(|line| line.split_once('=')).filter(|(key, _)| keys.contains(&key.trim()));
    values.flat_map(|(_, value)| value.split_whitespace())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;
    use crate::config::{Settings, TreeSource};
    use crate::inventory::Host;

    fn cluster(dir: &Path, files: &Value, hooks: &Value) -> Cluster {
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(&[(FILES, &files.to_string()), (HOOKS, &hooks.to_string())]).unwrap();
        let mut cluster = Cluster::open(&settings, source, dir).unwrap();
        cluster.work_dir = dir.to_owned();
        cluster
    }

    fn host(role: &str) -> Host {
        let ssh = json!({"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"});
        let host = json!({"name": "a", "role": role, "address": "192.0.2.1", "instance": "1", "ssh": ssh});
        serde_json::from_value(host).unwrap()
    }

    fn find(files: &Value, hooks: &Value, role: &str) -> Result<Assets> {
        let dir = tempfile::tempdir().unwrap();
        Assets::find(&cluster(dir.path(), files, hooks), &NodeTarget::of_host(&host(role), "192.0.2.1", None))
    }

    fn unit(name: &str, text: &str) -> Unit {
        Unit { name: name.into(), text: text.into(), mode: Unit::MODE, restart_on: Vec::new(), reloads: false }
    }

    /// turnup's own as they name each other.
    fn own() -> Vec<Unit> {
        vec![unit("containerd.service", ""), unit("kubelet.service", "After=containerd.service\n")]
    }

    fn started(hooks: &Value) -> Result<Vec<String>> {
        let units = find(&json!([]), hooks, "worker")?.arrange(own(), &Value::Null)?;
        Ok(units.into_iter().map(|unit| unit.name.trim_start_matches("turnup-hook-").to_owned()).collect())
    }

    fn pod(name: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n    - name: a\n      image: b\n"
        )
    }

    #[test]
    fn own_static_pods_lie_on_the_control_plane_alone() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [("a.yaml", pod("vip")), ("b.yaml", pod("agent")), ("twin.yaml", pod("vip"))] {
            fs_err::write(dir.path().join(file), text).unwrap();
        }
        let find = |files: &[&str], role: &str| {
            let mut cluster = cluster(dir.path(), &json!([]), &json!([]));
            cluster.settings.host_system.static_pods = files.iter().map(|file| (*file).to_owned()).collect();
            Assets::find(&cluster, &NodeTarget::of_host(&host(role), "192.0.2.1", None))
        };
        let files = find(&["a.yaml", "b.yaml"], "control-plane").unwrap().files_beside(&own());
        let shown: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.mode)).collect();
        assert_eq!(
            shown,
            [("/etc/kubernetes/manifests/vip.yaml", 0o600), ("/etc/kubernetes/manifests/agent.yaml", 0o600)]
        );
        assert_eq!(files[0].content, Content::Text(pod("vip")));
        assert!(find(&["a.yaml"], "worker").unwrap().files_beside(&own()).is_empty());
        let error = find(&["a.yaml", "twin.yaml"], "control-plane").unwrap_err();
        assert!(error.message().ends_with("twin.yaml: another file has a pod with the name vip"), "{error:?}");
        let error = find(&["none.yaml"], "control-plane").unwrap_err();
        assert!(error.message().contains("none.yaml cannot be read"), "{error:?}");
    }

    #[test]
    fn what_kubelet_would_not_run_is_refused() {
        assert_eq!(judge_pod(&pod("vip")).as_deref(), Ok("vip"));
        for (text, why) in [
            (pod("etcd"), "etcd is a pod of turnup's own"),
            (pod("Big_Name"), "metadata.name: "),
            (pod("vip").replace("v1", "apps/v1"), "it holds no Pod of v1"),
            (pod("vip").replace("kind: Pod", "kind: Deployment"), "it holds no Pod of v1"),
            (format!("{}---\n{}", pod("a"), pod("b")), "it is not one document of YAML"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n".to_owned(), "has no spec.containers"),
            ("{".to_owned(), "it is not one document"),
        ] {
            let said = judge_pod(&text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn every_kind_of_program_becomes_a_unit() {
        let hooks = json!([
            {"name": "disk", "command": "echo \"100%\" of $HOME \\ done", "run": "once", "before": ["containerd.service"]},
            {"name": "late", "command": "true", "after": ["kubelet.service", "a.mount"], "requires": ["a.mount"], "timeout": "1m30s"},
            {"name": "agent", "command": "exec agent", "run": "always"},
            {"name": "never", "command": "false", "disabled": true},
        ]);
        let units = find(&json!([]), &hooks, "worker").unwrap().arrange(own(), &Value::Null).unwrap();
        let hooks = units.iter().filter(|unit| unit.name.starts_with("turnup-hook-"));
        let texts: Vec<String> = hooks.map(|unit| format!("--- {}\n{}", unit.name, unit.text)).collect();
        insta::assert_snapshot!(texts.concat());
    }

    #[test]
    fn programs_start_where_they_ask_for_it_and_first_of_all_where_they_do_not() {
        let order = started(&json!([
            {"name": "last", "command": "a", "after": ["kubelet.service"]},
            {"name": "between", "command": "a", "after": ["containerd.service"], "before": ["kubelet.service"]},
            {"name": "second", "command": "a", "requires": ["turnup-hook-first.service"]},
            {"name": "first", "command": "a"},
        ]));
        let services =
            ["first", "second", "containerd", "between", "kubelet", "last"].map(|name| format!("{name}.service"));
        assert_eq!(order.unwrap(), services);
        let circle = started(&json!([
            {"name": "a", "command": "a", "after": ["kubelet.service"]},
            {"name": "b", "command": "b", "after": ["turnup-hook-a.service"], "before": ["containerd.service"]},
        ]));
        let error = circle.unwrap_err();
        assert!(
            error.message().contains("wait for each other: containerd.service, kubelet.service, turnup-hook-a"),
            "{error:?}"
        );
    }

    #[test]
    fn a_file_is_for_whom_it_says_and_the_most_exact_one_counts() {
        let file = |name: &str, further: Value| {
            let mut file = json!({"name": name, "path": "/etc/motd", "content": name});
            file.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
            file
        };
        let files = json!([
            file("group", json!({"groups": ["workers"], "mode": "0600", "owner": "daemon"})),
            file("all", json!({})),
            file("role", json!({"roles": ["control-plane", "worker"]})),
            file("other", json!({"path": "/etc/other", "roles": ["control-plane"]})),
        ]);
        let text = |role: &str| {
            let assets = find(&files, &json!([]), role).unwrap();
            assets.files.iter().map(|file| (file.path.clone(), file.mode, file.content.clone())).collect::<Vec<_>>()
        };
        let line = |line: &str| Content::Text(format!("{line}\n"));
        assert_eq!(text("worker"), [("/etc/motd".to_owned(), 0o600, line("group"))]);
        let control_plane = text("control-plane");
        assert_eq!(
            control_plane,
            [("/etc/motd".to_owned(), 0o440, line("role")), ("/etc/other".to_owned(), 0o440, line("other"))]
        );
        let twins =
            json!([file("a", json!({"roles": ["worker"]})), file("b", json!({"roles": ["worker", "control-plane"]}))]);
        let error = find(&twins, &json!([]), "worker").unwrap_err();
        assert!(error.message().contains("a and b both are /etc/motd of the same hosts"), "{}", error.message());
        assert!(find(&twins, &json!([]), "control-plane").is_ok());
        let overruled = json!([twins[0], twins[1], files[0]]);
        assert_eq!(find(&overruled, &json!([]), "worker").unwrap().files.len(), 1, "no host gets either of them");
    }

    #[test]
    fn bytes_that_are_no_text_go_along_and_what_is_too_large_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let asset = |file: &str| json!([{"name": "a", "path": "/etc/a", "file": file}]);
        let content = |file: &str| {
            let cluster = cluster(dir.path(), &json!([]), &json!([]));
            let asset: Vec<FileAsset> = serde_json::from_value(asset(file)).unwrap();
            file_of(&cluster, &asset[0]).map(|file| file.content)
        };
        fs_err::write(dir.path().join("text"), "a\nb").unwrap();
        fs_err::write(dir.path().join("bytes"), [0xff, 0x00]).unwrap();
        let large = fs_err::File::create(dir.path().join("large")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert_eq!(content("text").unwrap(), Content::Text("a\nb".into()));
        assert_eq!(content("bytes").unwrap(), Content::Base64("/wA=".into()));
        let error = content("large").unwrap_err().render();
        assert!(error.contains("large: it has 1048577 bytes, and at most 1 MiB are read"), "{error}");
        assert!(error.contains("next: give a url and a sha256"), "{error}");
        // A device has no size and no end: what it is is asked before it is read.
        let error = content("/dev/zero").unwrap_err().render();
        assert!(error.contains("/dev/zero: it is a character device, and only a regular file is read"), "{error}");
        assert!(content("missing").unwrap_err().message().contains("cannot be read"));
    }

    #[test]
    fn directories_are_made_first_and_links_last() {
        let files = json!([
            {"name": "link", "path": "/etc/a-link", "link": "/srv/own/inner/bytes"},
            {"name": "bytes", "path": "/srv/own/inner/bytes", "base64": "/wA=", "owner_group": "adm"},
            {"name": "text", "path": "/srv/own/text", "base64": "YQo="},
            {"name": "inner", "path": "/srv/own/inner", "directory": true, "owner": "daemon", "restarts": ["ssh.service"]},
            {"name": "outer", "path": "/srv/own", "directory": true, "mode": "0750"},
        ]);
        let assets = find(&files, &json!([]), "worker").unwrap();
        let lines = assets.files.iter().map(|file| {
            let owner = (file.user.as_deref().unwrap_or("root"), file.group.as_deref().unwrap_or_default());
            format!("{} {:o} {owner:?} {:?}", file.path, file.mode, file.content)
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        /srv/own 750 ("root", "") Directory
        /srv/own/inner 755 ("daemon", "") Directory
        /srv/own/inner/bytes 440 ("root", "adm") Base64("/wA=")
        /srv/own/text 440 ("root", "") Text("a\n")
        /etc/a-link 777 ("root", "") Symlink("/srv/own/inner/bytes")
        "#);
        assert_eq!(assets.files[1].restarts, ["ssh.service"]);
    }

    #[test]
    fn nothing_lies_in_what_is_no_directory() {
        let link = json!({"name": "link", "path": "/srv/a", "link": "/data"});
        let inner = |path: &str| json!({"name": "inner", "path": path, "content": "a"});
        let error = find(&json!([link, inner("/srv/a/b")]), &json!([]), "worker").unwrap_err();
        assert_eq!(error.message(), "phase2.host.file_assets: inner lies in /srv/a, which link makes a link");
        find(&json!([link, inner("/srv/ab")]), &json!([]), "worker").unwrap();
        let elsewhere = json!({"name": "file", "path": "/srv/a", "content": "a", "roles": ["control-plane"]});
        find(&json!([elsewhere, inner("/srv/a/b")]), &json!([]), "worker").unwrap();
        assert!(find(&json!([elsewhere, inner("/srv/a/b")]), &json!([]), "control-plane").is_err());
    }

    #[test]
    fn turnups_own_units_know_the_files_and_others_are_told() {
        let files = json!([{"name": "a", "path": "/etc/a", "content": "a",
            "restarts": ["containerd.service", "ssh.service"]}]);
        let assets = find(&files, &json!([]), "worker").unwrap();
        let units = assets.arrange(own(), &Value::Null).unwrap();
        assert_eq!(units[0].restart_on, ["/etc/a"]);
        assert_eq!(assets.files_beside(&units)[0].restarts, ["ssh.service"]);
    }

    #[test]
    fn kubelet_starts_again_for_files_that_its_flags_and_its_configuration_name() {
        let file = |name: &str| json!({"name": name, "path": format!("/etc/own/{name}"), "content": "a"});
        let assets = find(&json!([file("flag"), file("field"), file("other")]), &json!([]), "worker").unwrap();
        let own = vec![unit("kubelet.service", "ExecStart=/opt/turnup/bin/kubelet \\\n  --own-file=/etc/own/flag\n")];
        let units = assets.arrange(own, &json!({"a": [{"file": "/etc/own/field"}], "b": "/etc/own"})).unwrap();
        assert_eq!(units[0].restart_on, ["/etc/own/flag", "/etc/own/field"]);
    }
}
