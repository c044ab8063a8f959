//! What settings assign to components (`#: sets = …`), put where a component reads it: flags,
//! fields of its configuration file, files beside it, requests of its pod.
//!
//! It knows no flag and no field by name; `control_plane` and `kubelet` decide what comes first.

use serde_json::{Map, Value};

use crate::cluster::{Cluster, ClusterSettings};
use crate::config::{Assignment, ComponentName, Destination, flag_text};
use crate::error::{Error, Result};
use crate::input;

use super::component::Flags;

/// A file of the user's for a component is for people to read as well.
const LARGEST: u64 = 1 << 20;

/// All that settings assign to a component, in the order of the menus.
pub(super) fn assignments(
    settings: &ClusterSettings,
    component: ComponentName,
) -> impl Iterator<Item = &Assignment> + Clone {
    settings.assignments.iter().filter(move |assignment| assignment.component == component)
}

/// The flags with those that settings assign. `place` says where a file of the user's lies for the
/// component.
pub(super) fn with_flags(
    mut flags: Flags,
    settings: &ClusterSettings,
    component: ComponentName,
    place: impl Fn(&str) -> String,
) -> Result<Flags> {
    for assignment in assignments(settings, component) {
        let Destination::Flag(name) = &assignment.destination else { continue };
        let value = if assignment.is_file { place(file_name(name)) } else { flag_text(&assignment.value)? };
        flags = flags.set(name, value);
    }
    Ok(flags)
}

/// Sets the fields that settings assign, those with a default or those that the user has answered.
pub(super) fn set_fields(config: &mut Value, settings: &ClusterSettings, component: ComponentName, defaults: bool) {
    for assignment in assignments(settings, component).filter(|assignment| assignment.is_default == defaults) {
        if let Destination::Field(path) = &assignment.destination {
            set_field(config, path, &assignment.value);
        }
    }
}

/// Adds the members of `further`, into objects that both have.
pub(super) fn merge(config: &mut Value, further: Value) {
    let Value::Object(members) = further else { return };
    for (name, value) in members {
        set_field(config, &[name], &value);
    }
}

/// Sets one field. The members of an object are set one by one, so that others stay.
fn set_field(config: &mut Value, path: &[String], value: &Value) {
    let Value::Object(members) = config else { return };
    let Some((first, rest)) = path.split_first() else {
        if let Value::Object(new) = value {
            members.extend(new.clone());
        }
        return;
    };
    if rest.is_empty() && !value.is_object() {
        members.insert(first.clone(), value.clone());
    } else {
        set_field(members.entry(first.clone()).or_insert_with(|| Value::Object(Map::new())), rest, value);
    }
}

/// What a component's pod requests, by resource.
pub(super) fn requests(settings: &ClusterSettings, component: ComponentName) -> Map<String, Value> {
    let request = |assignment: &Assignment| match &assignment.destination {
        Destination::Request(resource) => Some((resource.clone(), assignment.value.clone())),
        _ => None,
    };
    assignments(settings, component).filter_map(request).collect()
}

/// The user's files for a component: their names beside its other files, and what is in them.
pub(super) fn files(cluster: &Cluster, component: ComponentName) -> Result<Vec<(String, String)>> {
    let file = |assignment: &Assignment| -> Option<Result<(String, String)>> {
        let Destination::Flag(flag) = &assignment.destination else { return None };
        let path = assignment.value.as_str().filter(|_| assignment.is_file)?;
        Some(read(cluster, &assignment.origin, path).map(|text| (file_name(flag).to_owned(), text)))
    };
    assignments(&cluster.settings, component).filter_map(file).collect()
}

/// A text file that a setting names, relative to the configuration's directory.
pub(super) fn read(cluster: &Cluster, setting: &str, name: &str) -> Result<String> {
    let path = cluster.work_dir.join(name);
    input::read_text(&path, LARGEST).map_err(|error| {
        let message = format!("{setting}: {} cannot be read", path.display());
        Error::config(message).source(error).hint("turnup config check")
    })
}

/// How the file of a flag is called: as the flag, without what says that it is one.
fn file_name(flag: &str) -> &str {
    let name = flag.strip_suffix("-file").unwrap_or(flag);
    name.strip_suffix("-config").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_set_and_others_stay() {
        let mut config =
            json!({"maxPods": 110, "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1Gi"}});
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        set_field(&mut config, &path("maxPods"), &json!(50));
        set_field(&mut config, &path("evictionHard"), &json!({"nodefs.available": "2Gi"}));
        set_field(&mut config, &path("logging.verbosity"), &json!(4));
        let expected = json!({
            "maxPods": 50,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "2Gi"},
            "logging": {"verbosity": 4},
        });
        assert_eq!(config, expected);
    }

    #[test]
    fn a_file_is_called_as_its_flag() {
        assert_eq!(file_name("authorization-webhook-config-file"), "authorization-webhook");
        assert_eq!(file_name("image-credential-provider-config"), "image-credential-provider");
    }
}
