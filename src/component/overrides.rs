//! Single flags, fields and feature gates that the user sets past the settings: from the file that
//! `phase2.overrides` names and from `--set phase2.overrides.kubelet.maxPods=50`.
//!
//! Each is held against the table of what the component accepts. What turnup has to decide itself
//! is known where the configuration is made, in `bootstrap`, and refused there.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{ComponentReference, FieldType, Flag, Reference, all_tables};
use crate::config::{Assignment, ComponentName, Destination, TreeSource, flag_text};
use crate::error::{Error, Result};

/// The setting that names the file.
pub const SETTING: &str = "phase2.overrides";

/// The roles of hosts.
const ROLES: [&str; 2] = ["control-plane", "worker"];

/// The known name that is nearest, as the end of a message; empty where none is near.
pub fn did_you_mean<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> String {
    kconfig::suggest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// For which hosts a value is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverrideScope {
    /// All.
    Cluster,
    /// Those of a role: `control-plane`, `worker`.
    Role(String),
    /// Those of a node group.
    Group(String),
    /// One.
    Host(String),
}

/// A host as overrides know it.
#[derive(Clone, Copy, Debug)]
pub struct OverrideSubject<'a> {
    /// Its name; of a host that joins by itself none is known.
    pub host: &'a str,
    /// Its role.
    pub role: &'a str,
    /// Its group; empty for none.
    pub group: &'a str,
}

/// All overrides of a cluster, the less exact first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentOverrides {
    list: Vec<(OverrideScope, Assignment)>,
}

impl ComponentOverrides {
    /// Reads the value of a file: `place` is its name, for people. Every mistake is told.
    pub fn read(place: &str, value: &Value, reference: &Reference, source: &TreeSource) -> Result<Self> {
        let reading =
            &mut Reading { place, reference, source, tables: OnceCell::new(), list: Vec::new(), mistakes: Vec::new() };
        let Value::Object(members) = value else {
            return Err(Error::config(format!(
                "{SETTING}: {place}: it is no object: {{\"kubelet\": {{\"maxPods\": 50}}}}"
            )));
        };
        for (name, value) in members {
            match name.as_str() {
                "roles" => reading.scopes(name, value, OverrideScope::Role),
                "groups" => reading.scopes(name, value, OverrideScope::Group),
                "hosts" => reading.scopes(name, value, OverrideScope::Host),
                component => reading.component("", &OverrideScope::Cluster, component, value),
            }
        }
        let mistakes = std::mem::take(&mut reading.mistakes);
        let mut mistakes = mistakes.into_iter();
        let Some(first) = mistakes.next() else {
            let mut list = std::mem::take(&mut reading.list);
            list.sort_by(|(one, _), (other, _)| one.cmp(other));
            return Ok(Self { list });
        };
        let error = Error::config(format!("{SETTING}: {first}"));
        Err(mistakes.fold(error, Error::evidence))
    }

    /// Adds others, which count more where both are equally exact.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.list.extend(others.list);
        // Stable: those that came later stay behind those of the same scope.
        self.list.sort_by(|(one, _), (other, _)| one.cmp(other));
        self
    }

    /// What they assign to a component on a host, the most exact last.
    pub fn of<'s>(
        &'s self,
        component: ComponentName,
        subject: OverrideSubject<'s>,
    ) -> impl Iterator<Item = &'s Assignment> {
        let is_for = move |scope: &OverrideScope| match scope {
            OverrideScope::Cluster => true,
            OverrideScope::Role(role) => role == subject.role,
            OverrideScope::Group(group) => group == subject.group,
            OverrideScope::Host(host) => host == subject.host,
        };
        let chosen =
            self.list.iter().filter(move |(scope, assignment)| is_for(scope) && assignment.component == component);
        chosen.map(|(_, assignment)| assignment)
    }

    /// The feature gates that they name.
    #[must_use]
    pub fn gates(&self) -> BTreeSet<&str> {
        let is_of_gates = |destination: &Destination| match destination {
            Destination::Field(path) => path.iter().eq([GATES[0]]),
            Destination::Flag(name) => name == GATES[1],
            Destination::Request(_) => false,
        };
        let values = self.list.iter().filter(|(_, one)| is_of_gates(&one.destination)).map(|(_, one)| &one.value);
        let names = values.flat_map(|value| match value {
            Value::Object(gates) => gates.keys().map(String::as_str).collect(),
            _ => names_in(value.as_str().unwrap_or_default()),
        });
        names.collect()
    }

    /// For which hosts they are, each with the component.
    pub fn scopes(&self) -> impl Iterator<Item = (&OverrideScope, ComponentName)> {
        self.list.iter().map(|(scope, assignment)| (scope, assignment.component))
    }
}

/// The value that a path leads to, as the file would have it: `kubelet.maxPods` and 50 become
/// `{"kubelet": {"maxPods": 50}}`. A field of a map may have dots in its name, so that only the
/// table knows where a path ends; the rest of it stays one key.
#[must_use]
pub fn nest(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |inner, key| Value::Object(Map::from_iter([(key.to_owned(), inner)])))
}

struct Reading<'a> {
    place: &'a str,
    reference: &'a Reference,
    source: &'a TreeSource,
    /// Those of all versions, once a name is not known in this one.
    tables: OnceCell<Vec<Reference>>,
    list: Vec<(OverrideScope, Assignment)>,
    mistakes: Vec<String>,
}

impl Reading<'_> {
    fn refuse(&mut self, way: &str, why: impl std::fmt::Display) {
        self.mistakes.push(format!("{}: {way}: {why}", self.place));
    }

    fn scopes(&mut self, kind: &str, value: &Value, scope: fn(String) -> OverrideScope) {
        let Value::Object(names) = value else {
            return self.refuse(kind, "it is no object, of which each key is a name");
        };
        for (name, components) in names {
            let way = format!("{kind}.{name}.");
            if kind == "roles" && !ROLES.contains(&name.as_str()) {
                let near = did_you_mean(name, ROLES.into_iter());
                self.refuse(&way[..way.len() - 1], format!("it is no role; expected {}{near}", ROLES.join(" or ")));
                continue;
            }
            let Value::Object(components) = components else {
                self.refuse(&way[..way.len() - 1], "it is no object, of which each key is a component");
                continue;
            };
            for (component, value) in components {
                self.component(&way, &scope(name.clone()), component, value);
            }
        }
    }

    fn component(&mut self, before: &str, scope: &OverrideScope, name: &str, value: &Value) {
        let way = format!("{before}{name}");
        let known = [
            ComponentName::Etcd,
            ComponentName::KubeApiserver,
            ComponentName::KubeControllerManager,
            ComponentName::KubeScheduler,
            ComponentName::Kubelet,
            ComponentName::KubeProxy,
        ];
        let Some(component) = known.into_iter().find(|known| known.name() == name) else {
            let names = known.map(ComponentName::name);
            let near = did_you_mean(name, names.into_iter());
            return self.refuse(&way, format!("it is no component; expected {}{near}", names.join(", ")));
        };
        if component == ComponentName::KubeProxy && *scope != OverrideScope::Cluster {
            return self.refuse(&way, "one configuration serves kube-proxy on all nodes; name it beside the scopes");
        }
        let is_of_workers = matches!(scope, OverrideScope::Group(_)) || *scope == OverrideScope::Role("worker".into());
        if is_of_workers && component != ComponentName::Kubelet {
            return self.refuse(&way, "it does not run on a worker");
        }
        let Some(reference) = self.reference.component(name) else {
            return self.refuse(&way, format!("nothing is known of it in Kubernetes {}", self.reference.kubernetes));
        };
        let Value::Object(members) = value else {
            return self.refuse(&way, "it is no object, of which each key is a flag or a field");
        };
        for (key, value) in members {
            self.value(&way, scope, component, reference, std::slice::from_ref(key), value);
        }
    }

    /// One value, or those below it: a field's own type says where a path ends.
    fn value(
        &mut self,
        way: &str,
        scope: &OverrideScope,
        component: ComponentName,
        reference: &ComponentReference,
        path: &[String],
        value: &Value,
    ) {
        let name = path.join(".");
        let shown = format!("{way}.{name}");
        let is_map = reference.field(&name).is_some_and(|field| matches!(field.field_type, FieldType::Map(..)));
        let value = &if is_map { join_keys(value) } else { value.clone() };
        let destination = if let Some(field) = reference.field(&name) {
            if field.field_type.has_fields() && value.is_object() {
                for (key, value) in value.as_object().into_iter().flatten() {
                    self.value(way, scope, component, reference, &[path, std::slice::from_ref(key)].concat(), value);
                }
                return;
            }
            if !field.field_type.accepts(value) {
                return self.refuse(&shown, format!("{value} is no {}", field.field_type));
            }
            Destination::Field(path.to_vec())
        } else if let Some(flag) = reference.flag(&name) {
            if let Some(why) = flag.deprecated.as_ref().filter(|_| reads_file(component)) {
                return self
                    .refuse(&shown, format!("set the field of {component}'s configuration file instead: {why}"));
            }
            let Ok(text) = flag_text(value) else { return self.refuse(&shown, "it has no value") };
            if component == ComponentName::KubeProxy {
                return self.refuse(&shown, "kube-proxy ignores flags beside its configuration file; set its field");
            }
            if !flag.accepts(&text) {
                return self.refuse(&shown, format!("{text} is no {}", flag.type_name));
            }
            if let Some(why) = unknown_word(component, reference, flag, &text) {
                return self.refuse(&shown, why);
            }
            Destination::Flag(name.clone())
        } else {
            let unknown = self.explain_unknown(component, reference, &name);
            return self.refuse(&shown, unknown);
        };
        if GATES.contains(&name.as_str()) {
            self.check_gates(&shown, component, reference, value);
        }
        let origin = format!("{SETTING}: {}: {shown}", self.place);
        let assignment =
            Assignment { component, destination, value: value.clone(), origin, is_default: false, is_file: false };
        self.list.push((scope.clone(), assignment));
    }

    fn explain_unknown(&self, component: ComponentName, reference: &ComponentReference, name: &str) -> String {
        let known = |table: &Reference| {
            table.component(component.name()).is_some_and(|one| one.field(name).is_some() || one.flag(name).is_some())
        };
        let version = &reference.version;
        // A flag that would be refused is no help.
        let flags =
            reference.flags.iter().filter(|(_, flag)| takes_flag(component, flag)).map(|(name, _)| name.as_str());
        let near = did_you_mean(name, reference.fields().chain(flags));
        let tables = self.tables.get_or_init(|| all_tables(self.source).unwrap_or_default());
        let elsewhere: Vec<&str> =
            tables.iter().filter(|table| known(table)).map(|table| table.kubernetes.as_str()).collect();
        let elsewhere =
            if elsewhere.is_empty() { String::new() } else { format!("; Kubernetes {} has it", elsewhere.join(", ")) };
        format!("it is no flag and no field of {component} {version}{near}{elsewhere}")
    }

    fn check_gates(&mut self, shown: &str, component: ComponentName, reference: &ComponentReference, value: &Value) {
        for (name, on) in value.as_object().into_iter().flatten() {
            let way = format!("{shown}.{name}");
            match reference.gate(name) {
                Some(gate) if gate.locked && on.as_bool().is_some_and(|on| on != gate.default) => {
                    self.refuse(
                        &way,
                        format!("{component} {} does not let it be changed from {}", reference.version, gate.default),
                    );
                }
                Some(_) if on.is_boolean() => {}
                Some(_) => self.refuse(&way, format!("{on} is neither true nor false")),
                None => {
                    let near = reference.suggest_gate(name);
                    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                    self.refuse(&way, format!("it is no feature gate of {component} {}{near}", reference.version));
                }
            }
        }
    }
}

/// What the file of such a component has as well, the flag of that name is deprecated for.
fn reads_file(component: ComponentName) -> bool {
    [ComponentName::Kubelet, ComponentName::KubeScheduler].contains(&component)
}

fn takes_flag(component: ComponentName, flag: &Flag) -> bool {
    component != ComponentName::KubeProxy && !(reads_file(component) && flag.deprecated.is_some())
}

/// Says which name of a list the component does not know.
fn unknown_word(component: ComponentName, reference: &ComponentReference, flag: &Flag, text: &str) -> Option<String> {
    let word = flag.unknown_word(text)?;
    let near = flag.suggest_word(word).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Some(format!("{component} {} knows no `{word}`{near}", reference.version))
}

/// Flags whose names are held against the table, each with the setting that has them.
const LISTED: [(&str, ComponentName, &str); 3] = [
    ("phase2.apiserver.enable_admission_plugins", ComponentName::KubeApiserver, "enable-admission-plugins"),
    ("phase2.apiserver.disable_admission_plugins", ComponentName::KubeApiserver, "disable-admission-plugins"),
    ("phase2.controller_manager.controllers", ComponentName::KubeControllerManager, "controllers"),
];

/// The settings whose value is a list of names that the component knows.
pub fn listed_settings() -> impl Iterator<Item = &'static str> {
    LISTED.iter().map(|(setting, ..)| *setting)
}

/// An error when the value of one of these settings has a name that the component of this version
/// does not know: it would not start.
pub fn check_words(setting: &str, value: &str, reference: &Reference) -> Result<()> {
    let Some((_, component, flag)) = LISTED.iter().find(|(listed, ..)| *listed == setting) else { return Ok(()) };
    let table = reference.component(component.name());
    let unknown = table.and_then(|table| unknown_word(*component, table, table.flag(flag)?, value));
    match unknown {
        None => Ok(()),
        Some(why) => Err(Error::config(format!("{setting}: {why}"))
            .hint(format!("names are those of `{component} --help`; see: turnup config explain {setting}"))),
    }
}

/// A map whose keys have dots (`memory.available`), from the command line's path through objects.
fn join_keys(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut joined = Map::new();
    for (key, value) in members {
        match join_keys(value) {
            Value::Object(inner) => {
                joined.extend(inner.into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            value => drop(joined.insert(key.clone(), value)),
        }
    }
    Value::Object(joined)
}

/// The names of a flag's pairs.
fn names_in(text: &str) -> Vec<&str> {
    text.split(',').filter_map(|pair| Some(pair.split_once('=')?.0)).collect()
}

/// As a field and as a flag.
const GATES: [&str; 2] = ["featureGates", "feature-gates"];

/// What `phase2.feature_gates` assigns: each gate to every component that knows it.
pub fn assign_gates(gates: &Map<String, Value>, reference: &Reference) -> Result<Vec<Assignment>> {
    const NAME: &str = "phase2.feature_gates";
    let mut assigned = Vec::new();
    let mut unknown: Vec<&String> = gates.keys().collect();
    for component in ComponentName::ALL {
        // etcd has gates of its own.
        if component == ComponentName::Etcd {
            continue;
        }
        let Some(table) = reference.component(component.name()) else { continue };
        let mut own = Map::new();
        for (name, on) in gates {
            let Some(gate) = table.gate(name) else { continue };
            unknown.retain(|one| *one != name);
            if gate.locked && on.as_bool() != Some(gate.default) {
                let message = format!(
                    "{NAME}: Kubernetes {} does not let {name} be changed from {}",
                    table.version, gate.default
                );
                return Err(Error::config(message));
            }
            own.insert(name.clone(), on.clone());
        }
        if own.is_empty() {
            continue;
        }
        let destination = if table.field(GATES[0]).is_some() {
            Destination::Field(vec![GATES[0].to_owned()])
        } else {
            Destination::Flag(GATES[1].to_owned())
        };
        let (value, origin) = (Value::Object(own), NAME.to_owned());
        assigned.push(Assignment { component, destination, value, origin, is_default: false, is_file: false });
    }
    let Some(name) = unknown.first() else { return Ok(assigned) };
    let known = reference.components.values().flat_map(|table| table.feature_gates.keys().map(String::as_str));
    let near = did_you_mean(name, known);
    Err(Error::config(format!("{NAME}: `{name}` is no feature gate of Kubernetes {}{near}", reference.kubernetes)))
}

#[cfg(test)]
#[path = "overrides_tests.rs"]
mod tests;
