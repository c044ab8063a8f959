//! containerd on every node: its configuration, mirrors of registries, what it reaches through a
//! proxy.
//!
//! Reads the files that the configuration names; asks no host and decides nothing of kubelet but
//! the cgroup driver that both share.

use std::path::Path;

use serde_json::Value;

use crate::artifacts::Platform;
use crate::cluster::{Cluster, RegistryMirrors};
use crate::component::did_you_mean;
use crate::error::{Error, Result};
use crate::input;
use crate::node::Facts;
use crate::node::node_config::{Content, File, Runtime};

use super::{configuration, containerd_keys, template};

/// containerd's configuration.
pub(super) const CONFIG: &str = "/etc/containerd/config.toml";
/// The user's own, which the other one imports.
pub(super) const EXTRA: &str = "/etc/containerd/turnup-extra.toml";
/// A directory for each registry that has mirrors. containerd reads it at every pull.
const REGISTRIES: &str = "/etc/containerd/certs.d";
/// The directory for all registries without one of their own.
const ANY_REGISTRY: &str = "_default";

const MIRRORS: &str = "phase2.runtime.registry_mirrors";
const AUTH_FILE: &str = "phase2.runtime.registry_auth_file";
const CONFIG_FILE: &str = "phase2.runtime.config_file";

/// What containerd of one host is made from.
pub(super) struct ContainerRuntime<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) facts: &'a Facts,
    /// The image of every pod's first container.
    pub(super) pause: &'a str,
}

impl ContainerRuntime<'_> {
    /// Where containerd keeps what it has, and how.
    pub(super) fn decided(&self) -> Runtime {
        let settings = &self.cluster.settings.runtime;
        Runtime {
            root: settings.data_dir.clone(),
            snapshotter: settings.snapshotter.clone(),
            cgroup_driver: cgroup_driver(self.cluster, self.facts).into(),
            kubelet_root: self.cluster.settings.host_system.data_dir.clone(),
        }
    }

    /// The files that containerd reads: those first that it reads at its start.
    pub(super) fn files(&self) -> Result<Vec<File>> {
        let file = |path: &str, mode, text: String| File::new(path, mode, 0, Content::Text(text));
        let mut files = vec![file(CONFIG, 0o600, self.config()?)];
        if let Some(extra) = self.extra()? {
            files.push(file(EXTRA, 0o600, extra));
        }
        for entry in &self.cluster.settings.runtime.registry_mirrors {
            let dir = registry_dir(&entry.registry);
            files.push(file(&format!("{dir}/hosts.toml"), 0o644, hosts_toml(entry)));
            if let Some(name) = &entry.ca_file {
                files.push(file(&ca_path(&entry.registry), 0o644, read_certificates(self.cluster, MIRRORS, name)?));
            }
        }
        Ok(files)
    }

    fn config(&self) -> Result<String> {
        let settings = &self.cluster.settings.runtime;
        let context = minijinja::context! {
            pause => self.pause,
            lowers_oom_score => self.facts.lowers_oom_score,
            systemd_cgroup => cgroup_driver(self.cluster, self.facts) == SYSTEMD,
            data_dir => quote(&settings.data_dir),
            snapshotter => &settings.snapshotter,
            arch => Platform::host().arch,
            log_level => &settings.log_level,
            max_concurrent_downloads => settings.max_concurrent_downloads,
            registries => REGISTRIES,
            extra => if settings.config_file.is_empty() { "" } else { EXTRA },
        };
        template::render(&self.cluster.source, "templates/bootstrap/containerd.toml", &context)
    }

    /// The user's own configuration, which may not take back what turnup itself relies on.
    fn extra(&self) -> Result<Option<String>> {
        let name = &self.cluster.settings.runtime.config_file;
        if name.is_empty() {
            return Ok(None);
        }
        let text = configuration::read(self.cluster, CONFIG_FILE, name)?;
        require_extra(name, &text)?;
        Ok(Some(text))
    }
}

const SYSTEMD: &str = "systemd";

/// Who makes the cgroups of pods: containerd and kubelet must agree.
pub(super) fn cgroup_driver(cluster: &Cluster, facts: &Facts) -> &'static str {
    match cluster.settings.runtime.cgroup_driver.as_str() {
        SYSTEMD => SYSTEMD,
        "cgroupfs" => "cgroupfs",
        // systemd manages those of a real host with the unified hierarchy.
        _ if facts.cgroup == 2 => SYSTEMD,
        _ => "cgroupfs",
    }
}

/// Keys of containerd's configuration that turnup decides, and the setting that does.
const DECIDED: [(&str, &str); 7] = [
    ("root", "phase2.runtime.data_dir"),
    ("debug.level", "phase2.runtime.log_level"),
    ("plugins/io.containerd.cri.v1.images/snapshotter", "phase2.runtime.snapshotter"),
    ("plugins/io.containerd.cri.v1.images/registry/config_path", "phase2.runtime.registry_mirrors"),
    (
        "plugins/io.containerd.cri.v1.runtime/containerd/runtimes/runc/options/SystemdCgroup",
        "phase2.runtime.cgroup_driver",
    ),
    ("plugins/io.containerd.transfer.v1.local/max_concurrent_downloads", "phase2.runtime.max_concurrent_downloads"),
    ("imports", ""),
];
/// Keys that turnup's own programs rely on: sockets, and directories that a reset clears.
const FIXED: [&str; 4] =
    ["state", "grpc", "plugins/io.containerd.server.v1.grpc", "plugins/io.containerd.cri.v1.runtime/cni"];

/// The keys and tables at the top of containerd's configuration (cmd/containerd/server/config).
const CONTAINERD_KEYS: [&str; 18] = [
    "cgroup",
    "debug",
    "disabled_plugins",
    "grpc",
    "imports",
    "metrics",
    "oom_score",
    "plugin_dir",
    "plugins",
    "proxy_plugins",
    "required_plugins",
    "root",
    "state",
    "stream_processors",
    "temp",
    "timeouts",
    "ttrpc",
    "version",
];

/// Refuses what is no TOML, with its line, what is of containerd 1, a key that there is not, and
/// what turnup decides.
fn require_extra(name: &str, text: &str) -> Result<()> {
    let wrong = |why: String| Error::config(format!("{CONFIG_FILE}: {name}{why}"));
    let config: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        wrong(format!(":{line}: {}", error.message())).hint("correct that line, then: turnup config check")
    })?;
    match config.get("version").and_then(toml::Value::as_integer) {
        Some(3 | 4) => {}
        Some(version) => {
            return Err(wrong(format!(": it has version {version} of containerd's configuration, not 3 or 4"))
                .hint("convert it: containerd --config FILE config migrate"));
        }
        None => return Err(wrong(": it does not say its version".into()).hint("begin it with: version = 3")),
    }
    if let Some(key) = config.keys().find(|key| !CONTAINERD_KEYS.contains(&key.as_str())) {
        let near = did_you_mean(key, CONTAINERD_KEYS.into_iter());
        return Err(wrong(format!(": containerd has no key `{key}` and would ignore it{near}"))
            .hint("correct the key; one of a plugin stands in its table [plugins.'NAME']"));
    }
    if let Some(slip) = containerd_keys::find_slip(&config) {
        return Err(wrong(format!(": {slip}")).hint("containerd config default (on a host) prints all keys"));
    }
    let has = |path: &str| {
        let mut parts = path.split(if path.contains('/') { '/' } else { '.' });
        let first = parts.next().and_then(|part| config.get(part));
        parts.fold(first, |value, part| value.and_then(|value| value.get(part))).is_some()
    };
    if let Some((path, setting)) = DECIDED.iter().find(|(path, _)| has(path)) {
        let error = wrong(format!(": turnup decides {path} itself"));
        return Err(match *setting {
            "" => error.hint("put what those files say into this one"),
            setting => error.hint(format!("turnup config explain {setting}")),
        });
    }
    if let Some(path) = FIXED.iter().find(|path| has(path)) {
        return Err(wrong(format!(": turnup decides {path} itself")).hint("leave it out"));
    }
    Ok(())
}

/// A directory of [`REGISTRIES`].
fn registry_dir(registry: &str) -> String {
    format!("{REGISTRIES}/{}", if registry == "*" { ANY_REGISTRY } else { registry })
}

fn ca_path(registry: &str) -> String {
    format!("{}/mirrors-ca.crt", registry_dir(registry))
}

/// What containerd asks in place of a registry, in this order; the registry itself comes last
/// without being named.
fn hosts_toml(entry: &RegistryMirrors) -> String {
    let ca = entry.ca_file.as_ref().map(|_| format!("ca = {}\n", quote(&ca_path(&entry.registry))));
    let more = [
        ca.as_deref().unwrap_or_default(),
        if entry.skip_verify { "skip_verify = true\n" } else { "" },
        if entry.override_path { "override_path = true\n" } else { "" },
    ]
    .concat();
    let host = |mirror: &String| format!("[host.{}]\ncapabilities = [\"pull\", \"resolve\"]\n{more}", quote(mirror));
    let hosts: Vec<String> = entry.mirrors.iter().map(host).collect();
    format!("# Asked in this order; then the registry itself.\n{}", hosts.concat())
}

/// A basic string of TOML: its escapes are those of JSON.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Certificates in PEM that a setting names.
pub(crate) fn read_certificates(cluster: &Cluster, setting: &str, name: &str) -> Result<String> {
    let text = configuration::read(cluster, setting, name)?;
    if text.contains("PRIVATE KEY") {
        return Err(Error::config(format!(
            "{setting}: a private key is in {name}, and every user of the hosts may read it"
        ))
        .hint("name a file with the certificate alone"));
    }
    let pems = x509_parser::pem::Pem::iter_from_buffer(text.as_bytes());
    let count = pems.filter(|pem| pem.as_ref().is_ok_and(|pem| pem.parse_x509().is_ok())).count();
    if count == 0 {
        return Err(Error::config(format!("{setting}: {name} has no certificate in PEM"))
            .hint(format!("openssl x509 -in {} -text -noout", shell_words::quote(name))));
    }
    Ok(text)
}

/// User names and passwords of registries, as kubelet reads them; none where the setting is empty.
pub(super) fn read_credentials(cluster: &Cluster) -> Result<Option<String>> {
    let name = &cluster.settings.runtime.registry_auth_file;
    if name.is_empty() {
        return Ok(None);
    }
    let path = cluster.work_dir.join(Path::new(name));
    let wrong = |why: &str| {
        Error::config(format!("{AUTH_FILE}: {name}: {why}"))
            .hint("docker --config DIR login REGISTRY, and name DIR/config.json")
    };
    let text = input::read_text(&path, input::KEYS).map_err(|error| wrong("it cannot be read").source(error))?;
    // What is wrong in it is not shown: a secret may stand there.
    let value: Value =
        serde_json::from_str(&text).map_err(|error| wrong(&format!("line {}: it is no JSON", error.line())))?;
    let auths = value.get("auths").and_then(Value::as_object).filter(|auths| !auths.is_empty());
    let auths = auths.ok_or_else(|| wrong("it names no registry in `auths`"))?;
    let has_login = |auth: &Value| {
        let has = |key: &str| auth.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        has("auth") || (has("username") && has("password"))
    };
    if let Some((registry, _)) = auths.iter().find(|(_, auth)| !has_login(auth)) {
        let why = format!(
            "it has no password for {registry}: a credential helper of this machine keeps it, which hosts do not have"
        );
        return Err(wrong(&why));
    }
    // The rest of the file, such as names of helpers, is of this machine.
    Ok(Some(serde_json::json!({"auths": auths}).to_string() + "\n"))
}

/// User data is read by every program of its host, and kept by its cloud.
pub(super) fn require_no_credentials(cluster: &Cluster, group: &str) -> Result<()> {
    if cluster.settings.runtime.registry_auth_file.is_empty() {
        return Ok(());
    }
    Err(Error::config(format!(
        "{AUTH_FILE}: the hosts of the group {group} join by user data, which holds no password"
    ))
    .hint("turnup config explain phase2.kubelet.credential_provider_config; or imagePullSecrets of namespaces"))
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
