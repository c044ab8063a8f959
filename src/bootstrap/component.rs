//! The components of the control plane, and flags of components as data with the one way they
//! become a command line: sorted, one value a flag, the same bytes every time.

use std::collections::BTreeMap;

use crate::cluster::ClusterSettings;
use crate::node::layout;

/// Ports below it need `CAP_NET_BIND_SERVICE`.
const FIRST_FREE_PORT: u16 = 1024;

/// A component of the control plane: a static pod with its own system user and directory.
pub(super) struct Component {
    /// The name of its pod, user and directory.
    pub(super) name: &'static str,
    /// The uid and gid of its user: the number of its default port.
    id: u32,
}

pub(super) const ETCD: Component = Component { name: "etcd", id: 2379 };
pub(super) const API_SERVER: Component = Component { name: "kube-apiserver", id: 6443 };
pub(super) const CONTROLLER_MANAGER: Component = Component { name: "kube-controller-manager", id: 10257 };
pub(super) const SCHEDULER: Component = Component { name: "kube-scheduler", id: 10259 };
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

    /// A file in its directory.
    pub(super) fn file(&self, name: &str) -> String {
        layout::component_file(self.name, name)
    }
}

/// The flags of one component, by name without dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<String, String>);

impl Flags {
    /// No flags.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets a flag.
    pub(super) fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
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

    /// `--name=value`, sorted by name.
    pub(super) fn render(&self) -> Vec<String> {
        self.0.iter().map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn flags_are_sorted_and_the_last_value_wins() {
        let flags = Flags::new().set("b", "1").set("a", "2").set_if(false, "c", "3").set("b", "4");
        assert_eq!(flags.render(), ["--a=2", "--b=4"]);
    }
}
