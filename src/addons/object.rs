//! The identity of a Kubernetes object, from a manifest's text or from the API's JSON.

use std::fmt;

use serde_json::Value;

/// The label that names the addon to which an object belongs.
pub(super) const ADDON: &str = "turnup.dev/addon";

/// One object in `kube-system`, or one without a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// `apps`, empty for the core group.
    pub group: String,
    /// `DaemonSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Object {
    /// The identity of an object of the API.
    pub(super) fn from_json(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self::new(&text(&value["apiVersion"]), text(&value["kind"]), text(&value["metadata"]["name"]))
    }

    /// The identities of all objects of a manifest.
    ///
    /// It reads the block style in which the templates are written, and a test holds every template to it.
    #[must_use]
    pub fn list(manifest: &str) -> Vec<Self> {
        manifest.split("\n---\n").filter_map(Self::from_manifest).collect()
    }

    fn from_manifest(document: &str) -> Option<Self> {
        let top =
            |key: &str| document.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).map(str::to_owned);
        let metadata = document.lines().skip_while(|line| *line != "metadata:").skip(1);
        let mut inner = metadata.take_while(|line| line.starts_with(' '));
        let name = inner.find_map(|line| line.strip_prefix("  name: "))?;
        Some(Self::new(&top("apiVersion")?, top("kind")?, name.to_owned()))
    }

    fn new(api_version: &str, kind: String, name: String) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        Self { group, kind, name }
    }

    /// How kubectl is told about it: `daemonset.apps/flannel`.
    #[must_use]
    pub fn argument(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() {
            format!("{kind}/{}", self.name)
        } else {
            format!("{kind}.{}/{}", self.group, self.name)
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
