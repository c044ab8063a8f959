//! Where two forecasts differ, in the words of those who read Terraform, systemd and Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value, json};

use super::Forecast;
use super::compare::differences;
use crate::addons::Object;
use crate::bootstrap::node_config;
use crate::inventory::Role;
use crate::node::layout;

/// In the name of a place: whichever host.
const HOST: &str = "HOST";

/// Something that a setting reaches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Affected {
    /// What it is: `Terraform variable`, `file`, `unit`, `flag`, `manifest`, `kernel setting`, …
    pub kind: &'static str,
    /// Its name; `HOST` in it stands for any host.
    pub name: String,
    /// The roles of the hosts on which it is; none for what is not on a host.
    pub on: BTreeSet<Role>,
}

impl fmt::Display for Affected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        match self.on.iter().map(|role| role.name()).collect::<Vec<_>>()[..] {
            [] => Ok(()),
            [role] => write!(f, " ({role})"),
            _ => f.write_str(" (every host)"),
        }
    }
}

impl Forecast {
    /// All places in which the other one differs.
    #[must_use]
    pub fn places(&self, other: &Self) -> Vec<Affected> {
        let mut places: BTreeMap<(&'static str, String), BTreeSet<Role>> = BTreeMap::new();
        for path in self.different_files(other) {
            let (before, after) = (self.files.get(&path), other.files.get(&path));
            let role =
                node_config::node_of(&path).and_then(|host| self.hosts.get(host).or_else(|| other.hosts.get(host)));
            for (kind, name) in self.name_places(other, &path, before.zip(after)) {
                places.entry((kind, name)).or_default().extend(role);
            }
        }
        places.into_iter().map(|((kind, name), on)| Affected { kind, name, on }).collect()
    }

    fn name_places(&self, other: &Self, path: &str, texts: Option<(&String, &String)>) -> Vec<(&'static str, String)> {
        let is_host = |name: &str| self.hosts.contains_key(name) || other.hosts.contains_key(name);
        let any_host = |name: &str| if is_host(name) { HOST.to_owned() } else { name.to_owned() };
        let file = match path.rsplit_once('/') {
            Some((folder, name)) if is_host(name.trim_end_matches(".json")) => format!("{folder}/{HOST}.json"),
            _ => path.to_owned(),
        };
        let Some((before, after)) = texts else { return vec![("file", file)] };
        if path.starts_with("addons/") {
            return manifest_places(&file, before, after);
        }
        let (Ok(before), Ok(after)) = (serde_json::from_str(before), serde_json::from_str(after)) else {
            return vec![("file", file)];
        };
        if node_config::node_of(path).is_some() {
            let ways = differences(&unfold(before), &unfold(after));
            return ways.iter().map(|way| node_place(way)).collect();
        }
        let ways = differences(&before, &after).into_iter();
        let names = ways.map(|way| way.iter().map(|part| any_host(part)).collect::<Vec<_>>().join("."));
        if path.ends_with(".tfvars.json") {
            return names.map(|name| ("Terraform variable", name)).collect();
        }
        names.map(|name| ("file", format!("{file}: {name}"))).collect()
    }
}

fn manifest_places(file: &str, before: &str, after: &str) -> Vec<(&'static str, String)> {
    let objects = |text: &str| Object::read(text).unwrap_or_default();
    let (before, after) = (objects(before), objects(after));
    let only = |these: &[(Object, Value)], those: &[(Object, Value)]| -> Vec<Object> {
        these.iter().filter(|object| !those.contains(object)).map(|(object, _)| object.clone()).collect()
    };
    let changed: BTreeSet<Object> = only(&before, &after).into_iter().chain(only(&after, &before)).collect();
    changed.into_iter().map(|object| ("manifest", format!("{file}: {object}"))).collect()
}

/// Opens the texts of a node config: JSON of the user's own in files, flags in units. Links and
/// directories become lists of their own, by which they are called.
pub(super) fn unfold(mut config: Value) -> Value {
    if let Some(files) = config["files"].as_array_mut() {
        let mut of = |kind: &str, idle: &[&str]| -> Vec<Value> {
            let mut found: Vec<Value> = files.extract_if(.., |file| file["content"].get(kind).is_some()).collect();
            found
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|file| file.retain(|key, _| !idle.contains(&key.as_str())));
            found
        };
        let (links, own) = (of("symlink", &["mode", "owner"]), of("directory", &["content"]));
        (config["links"], config["own_directories"]) = (links.into(), own.into());
    }
    for file in config["files"].as_array_mut().into_iter().flatten() {
        // A secret has no text.
        let Some(text) = file.pointer_mut("/content/text") else { continue };
        if let Some(json) = text.as_str().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok()) {
            *text = Value::Object(json);
        }
    }
    for unit in config["units"].as_array_mut().into_iter().flatten() {
        let text = unit["text"].as_str().unwrap_or_default();
        let (flags, words): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| word.starts_with("--"));
        unit["text"] = json!({"flags": flags, "words": words.join(" ")});
    }
    config
}

/// What a value of a node config is called.
pub(super) fn node_place(way: &[String]) -> (&'static str, String) {
    let parts: Vec<&str> = way.iter().map(String::as_str).collect();
    match parts[..] {
        ["files", path, "content", "yaml", .., "command", flag] if let Some(pod) = layout::static_pod(path) => {
            ("flag", format!("{pod} {flag}"))
        }
        ["files", path, "content", "text" | "yaml", ref rest @ ..] if !rest.is_empty() => {
            ("file", format!("{path}: {}", rest.join(".")))
        }
        ["units", unit, "text", "flags", flag] => ("flag", format!("{} {flag}", unit.trim_end_matches(".service"))),
        [list, name, ..] if let Some(kind) = kind_of(list) => (kind, name.to_owned()),
        _ => ("node config", parts.join(".")),
    }
}

/// What the elements of a list of the node config are.
fn kind_of(list: &str) -> Option<&'static str> {
    Some(match list {
        "files" => "file",
        "units" => "unit",
        "binaries" => "binary",
        "images" => "image",
        "sysctls" => "kernel setting",
        "directories" | "own_directories" => "directory",
        "links" => "link",
        "users" => "user",
        "health" => "health check",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wants_at_a_path_is_called_what_it_is() {
        let config = |mode: u32, target: &str| {
            unfold(json!({"files": [
                {"path": "/etc/a", "mode": mode, "content": {"text": "a"}},
                {"path": "/etc/b", "mode": 511, "content": {"symlink": target}},
                {"path": "/etc/c", "mode": mode, "content": {"directory": {}}},
            ]}))
        };
        let ways = differences(&config(1, "/one"), &config(2, "/two"));
        let places: Vec<(&str, String)> = ways.iter().map(|way| node_place(way)).collect();
        let place = |kind, path: &str| (kind, path.to_owned());
        assert_eq!(places, [place("file", "/etc/a"), place("link", "/etc/b"), place("directory", "/etc/c")]);
    }
}
