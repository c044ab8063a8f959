//! The components of the control plane, and flags of components as data with the one way they
//! become a command line: sorted, one value a flag, the same bytes every time.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::ClusterSettings;
use crate::config::ComponentName;
use crate::node::layout;
use crate::node::node_config::{Content, File};
use crate::node::yaml;
use crate::unknown;

/// Ports below it need `CAP_NET_BIND_SERVICE`.
const FIRST_FREE_PORT: u16 = 1024;

/// A component of the control plane: a static pod with its own system user and directory.
pub(super) struct Component {
    /// The name of its pod, user and directory.
    pub(super) name: &'static str,
    /// Which of the cluster's programs it is.
    pub(super) program: ComponentName,
    /// The uid and gid of its user: the number of its default port.
    id: u32,
    /// Files in its directory that it reads again by itself when they change, so that nothing
    /// restarts for them: certificates that each TLS handshake reads, and what Kubernetes watches.
    reloads: &'static [&'static str],
}

pub(super) const ETCD: Component = Component {
    name: "etcd",
    program: ComponentName::Etcd,
    id: 2379,
    reloads: &["server.crt", "server.key", "peer.crt", "peer.key"],
};
pub(super) const API_SERVER: Component = Component {
    name: "kube-apiserver",
    program: ComponentName::KubeApiserver,
    id: 6443,
    reloads: &[
        "authentication.yaml",
        "encryption.yaml",
        "etcd-client.crt",
        "etcd-client.key",
        "front-proxy-client.crt",
        "front-proxy-client.key",
        "kubelet-client.crt",
        "kubelet-client.key",
        "server.crt",
        "server.key",
    ],
};
pub(super) const CONTROLLER_MANAGER: Component = Component {
    name: "kube-controller-manager",
    program: ComponentName::KubeControllerManager,
    id: 10257,
    reloads: &["client.crt", "client.key"],
};
pub(super) const SCHEDULER: Component = Component {
    name: "kube-scheduler",
    program: ComponentName::KubeScheduler,
    id: 10259,
    reloads: &["client.crt", "client.key"],
};
/// All of them.
pub(super) const COMPONENTS: [Component; 4] = [ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER];

impl Component {
    /// The uid and gid of its process. An API server on a port below 1024 is root: a container
    /// process of another user loses `NET_BIND_SERVICE` when it starts its program.
    pub(super) fn user(&self, settings: &ClusterSettings) -> u32 {
        let needs_root = self.name == API_SERVER.name && settings.api_port < FIRST_FREE_PORT;
        if needs_root { 0 } else { self.id }
    }

    /// Its directory on the host and in its container.
    pub(super) fn dir(&self) -> String {
        layout::component_dir(self.name)
    }

    /// A digest of all files that it reads only when it starts: with another one its pod is another
    /// pod. They are in its directory, or a flag names them.
    pub(super) fn digest_files(&self, files: &[File], flags: &Flags) -> String {
        let (dir, named) = (format!("{}/", self.dir()), flags.paths());
        let mut read = Vec::new();
        for file in files {
            let name = match file.path.strip_prefix(&dir) {
                Some(name) if self.reloads.contains(&name) => continue,
                None if !named.contains(file.path.as_str()) => continue,
                name => name.unwrap_or(&file.path),
            };
            read.push(format!("{name} {}\n", digest_of(&file.content)));
        }
        read.sort_unstable();
        unknown::digest(&read.concat())
    }

    /// A file in its directory.
    pub(super) fn file(&self, name: &str) -> String {
        layout::component_file(self.name, name)
    }
}

/// The sha256 of what is in a file, or the placeholder of one.
fn digest_of(content: &Content) -> String {
    match content {
        Content::Text(text) | Content::Base64(text) => unknown::digest(text),
        Content::Yaml(value) => unknown::digest(&yaml::render(value)),
        Content::Symlink(target) => target.clone(),
        Content::Directory {} => String::new(),
        Content::Url { sha256, .. } | Content::Secret { sha256, .. } => sha256.clone(),
    }
}

/// The flags of one component, by name without dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// No flags.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets a flag.
    pub(super) fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), vec![value.into()]);
        self
    }

    /// Gives a flag one more value: it then stands several times, in this order.
    pub(super) fn add(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.entry(name.to_owned()).or_default().push(value.into());
        self
    }

    /// Sets a flag when the condition holds.
    pub(super) fn set_if(self, condition: bool, name: &str, value: impl Into<String>) -> Self {
        if condition { self.set(name, value) } else { self }
    }

    /// Sets several.
    pub(super) fn set_all<const N: usize>(mut self, flags: [(&str, &str); N]) -> Self {
        for (name, value) in flags {
            self = self.set(name, value);
        }
        self
    }

    /// Sets several to files in the directory of a component.
    pub(super) fn set_files<const N: usize>(mut self, component: &Component, files: [(&str, &str); N]) -> Self {
        for (name, file) in files {
            self = self.set(name, component.file(file));
        }
        self
    }

    /// What may be paths: the values of flags, and the parts of those that are lists.
    fn paths(&self) -> BTreeSet<&str> {
        self.0.values().flatten().flat_map(|value| value.split([',', '='])).collect()
    }

    /// Whether a flag is set.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// `--name=value`, sorted by name.
    pub(super) fn render(&self) -> Vec<String> {
        let all = self.0.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        all.map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn flags_are_sorted_and_the_last_value_wins() {
        let flags = Flags::new().set("b", "1").set("a", "2").set_if(false, "c", "3").set("b", "4").add("a", "1");
        assert_eq!(flags.render(), ["--a=2", "--a=1", "--b=4"]);
    }
}
