//! Configurations of kubernetes-anywhere, taken over value by value; what cannot be is said one by
//! one.
//!
//! Reads both of its files: `.config`, whose lines are `.phase1.num_nodes=3`, and `.config.json`.
//! Its symbols are those of its last revision and of the targets it had before (azure, phase1b).

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Settings;
use super::format::Format;
use super::schema::Schema;

/// What became of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is the value of this setting now.
    Kept {
        /// The setting.
        to: String,
        /// Its value, as people see it.
        value: String,
    },
    /// The setting is there, but takes no such value; its default counts.
    Refused {
        /// The setting.
        to: String,
        /// Why.
        why: String,
    },
    /// There is no such setting any more.
    Retired {
        /// Why, and what is there instead.
        why: String,
    },
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept { to, value } => write!(f, "kept: {to}={value}"),
            Self::Refused { to, why } => write!(f, "not taken over, the default of {to} counts: {why}"),
            Self::Retired { why } => write!(f, "retired: {why}"),
        }
    }
}

impl Fate {
    /// As one member of a list in JSON.
    #[must_use]
    pub fn json(&self, name: &str) -> Value {
        match self {
            Self::Kept { to, value } => json!({"name": name, "fate": "kept", "setting": to, "value": value}),
            Self::Refused { to, why } => json!({"name": name, "fate": "refused", "setting": to, "why": why}),
            Self::Retired { why } => json!({"name": name, "fate": "retired", "why": why}),
        }
    }
}

/// An imported configuration.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The settings, with defaults for what could not be taken over.
    pub settings: Settings,
    /// What became of each value, by its old name, in the order of the old file.
    pub fates: Vec<(String, Fate)>,
}

/// Names that are gone, or the beginnings of such names, and why; the first that fits says it.
const RETIRED: [(&str, &str); 14] = [
    (
        "phase1.openstack.",
        "the target openstack is gone; with the target custom a module of your own makes its machines (docs/custom-module.md), or list them with the target baremetal",
    ),
    (
        "phase1.vSphere.",
        "the target vsphere is gone; with the target custom a module of your own makes its machines (docs/custom-module.md), or list them with the target baremetal",
    ),
    ("phase1.user_data.method", "hosts of a cloud always install themselves, from phase1.user_data.artifacts_url"),
    (
        "phase1.azure.client_secret",
        "no secret is kept here: phase1.azure.client_secret_file names a file, or set ARM_CLIENT_SECRET",
    ),
    ("phase1.azure.storage_account_name", "hosts have managed disks and need no storage account"),
    ("phase1.azure.admin_password", "hosts are reached with SSH keys only"),
    ("phase2.provider", "turnup bootstraps nodes itself: there is no choice between kubeadm and ignition any more"),
    ("phase2.installer_container", "nodes install themselves from pinned artifacts, not from a container"),
    (
        "phase2.docker_registry",
        "images come from pinned artifacts; for a registry of one's own: phase2.artifacts.image_registry",
    ),
    ("phase2.kubeadm.master_upgrade.method", "kubeadm is not used; see phase2.update"),
    ("phase2.kubeadm.", "kubeadm is not used"),
    ("phase2.kubelet_version", "the kubelet has the version of the cluster: phase2.kubernetes_version"),
    (
        "phase2.enable_cloud_provider",
        "the cluster does nothing in its cloud by itself; a cloud controller manager of your own: phase3.manifests",
    ),
    ("phase3.weave_net", "Weave Net is gone; flannel is the pod network"),
];

/// Reads an old file; an error when it is neither of both forms.
pub fn import_anywhere(text: &str, schema: &Arc<Schema>) -> Result<Imported, String> {
    let values = if text.trim_start().starts_with('{') { read_json(text)? } else { read_lines(text)? };
    let mut settings = Settings::from_defaults(Arc::clone(schema));
    let mut fates: Vec<(String, Option<Fate>)> = Vec::new();
    let mut open = Vec::new();
    for (name, value) in values {
        match place(schema, &name, &value) {
            Ok((to, value)) => open.push((fates.len(), to, value)),
            Err(fate) => {
                fates.push((name, Some(fate)));
                continue;
            }
        }
        fates.push((name, None));
    }
    let mut taken = Vec::new();
    // A value may need another one first: the target, for instance.
    loop {
        let before = open.len();
        open.retain(|(index, to, value)| match settings.set(to, &merged(&settings, to, value, &taken)) {
            Ok(_) => {
                taken.push(to.clone());
                let value = settings.shown(to);
                fates[*index].1 = Some(Fate::Kept { to: to.clone(), value });
                false
            }
            Err(error) => {
                let why = error.message().trim_start_matches(to.as_str()).trim_start_matches(':').trim().to_owned();
                fates[*index].1 = Some(Fate::Refused { to: to.clone(), why });
                true
            }
        });
        if open.len() == before || open.is_empty() {
            break;
        }
    }
    let fates: Vec<(String, Fate)> = fates.into_iter().filter_map(|(name, fate)| Some((name, fate?))).collect();
    Ok(Imported { settings, fates })
}

/// What two old settings say about one list is in it together.
fn merged(settings: &Settings, to: &str, value: &str, taken: &[String]) -> String {
    let symbol = settings.schema().tree().symbol(to);
    let is_list = symbol.is_some_and(|symbol| matches!(settings.schema().rule(symbol).format, Some(Format::List(_))));
    let known = settings.get(to).unwrap_or_default();
    // An old setting that was left empty takes nothing from one that said something.
    if value.is_empty() && taken.iter().any(|name| name == to) {
        return known;
    }
    if is_list && taken.iter().any(|name| name == to) && !known.is_empty() && !value.is_empty() {
        return format!("{known},{value}");
    }
    value.to_owned()
}

/// The setting and the value that an old one is now.
fn place(schema: &Schema, name: &str, value: &str) -> Result<(String, String), Fate> {
    if name == "phase3.cni" {
        return match value {
            "" | "flannel" => Ok(("phase2.cni".to_owned(), "flannel".to_owned())),
            other => Err(Fate::Retired {
                why: format!("turnup has no {other}; flannel is used, or set phase2.cni=none and deploy your own"),
            }),
        };
    }
    if name == "phase1.cloud_provider" && matches!(value, "openstack" | "vsphere") {
        return Err(Fate::Retired {
            why: format!(
                "the target {value} is gone; with the target custom a module of your own makes its machines (docs/custom-module.md), or list them with the target baremetal"
            ),
        });
    }
    let to = schema.find_renamed(name).map_or(name, |symbol| schema.name(symbol));
    if schema.tree().symbol(to).is_some() {
        let value = if to == "phase2.kubernetes_version" { value.trim_start_matches('v') } else { value };
        return Ok((to.to_owned(), value.to_owned()));
    }
    let gone = RETIRED.iter().find(|(old, _)| name.starts_with(old)).map(|(_, why)| (*why).to_owned());
    let why = gone.unwrap_or_else(|| "neither kubernetes-anywhere nor turnup has such a setting".to_owned());
    Err(Fate::Retired { why })
}

/// `.phase1.num_nodes=3`, `.phase1.cluster_name="x"`, `# .x is not set`.
fn read_lines(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut values = Vec::new();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let unset = line.strip_prefix("# .").and_then(|rest| rest.strip_suffix(" is not set"));
        if let Some(name) = unset {
            values.push((name.to_owned(), "n".to_owned()));
        } else if !line.is_empty() && !line.starts_with('#') {
            let assignment = line.strip_prefix('.').and_then(|line| line.split_once('='));
            let (name, value) =
                assignment.ok_or_else(|| format!("line {number} is no line of kubernetes-anywhere: {line}"))?;
            values.push((name.to_owned(), unquote(value)));
        }
    }
    Ok(values)
}

fn unquote(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map_or_else(|| value.to_owned(), |inner| inner.replace("\\\"", "\"").replace("\\\\", "\\"))
}

fn read_json(text: &str) -> Result<Vec<(String, String)>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut values = Vec::new();
    flatten("", &value, &mut values);
    Ok(values)
}

fn flatten(name: &str, value: &Value, values: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, inner, values);
            }
        }
        Value::Bool(on) => values.push((name.to_owned(), if *on { "y" } else { "n" }.to_owned())),
        Value::String(text) => values.push((name.to_owned(), text.clone())),
        other => values.push((name.to_owned(), other.to_string())),
    }
}

impl Settings {
    /// A value as people see it.
    fn shown(&self, name: &str) -> String {
        let value = self.get(name).unwrap_or_default();
        let symbol = self.schema().tree().symbol(name);
        symbol.map_or_else(|| value.clone(), |symbol| super::show(self.schema(), symbol, &value))
    }
}
