//! Values for one run: from `--set NAME=VALUE` and from variables `TURNUP_SET_…` of the
//! environment.
//!
//! They count more than the file and are never written into it. A flag counts more than a variable.
//! What begins with `phase2.overrides.` is a flag or field of a component, and no setting.

use super::{ComponentValue, Settings};
use crate::error::{Error, Result};

/// What such variables begin with; two underscores stand for a dot: `TURNUP_SET_phase1__num_nodes`.
const PREFIX: &str = "TURNUP_SET_";

/// Before the path of a flag or field: `phase2.overrides.kubelet.maxPods`.
const COMPONENTS: &str = "phase2.overrides.";

/// One value for this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrides {
    /// The setting.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where it was given, for people.
    pub place: String,
}

impl Overrides {
    /// The values of flags and of the environment's variables, each setting once.
    #[must_use]
    pub fn collect(flags: &[(String, String)], variables: impl Iterator<Item = (String, String)>) -> Vec<Self> {
        let flags = flags.iter().map(|(name, value)| Self {
            name: name.clone(),
            value: value.clone(),
            place: format!("--set {name}"),
        });
        let mut given: Vec<Self> = flags.collect();
        let mut from_environment: Vec<Self> = variables
            .filter_map(|(variable, value)| {
                let name = variable.strip_prefix(PREFIX)?.replace("__", ".");
                Some(Self { name, value, place: variable })
            })
            .collect();
        // The environment has no order of its own.
        from_environment.sort_by(|a, b| a.name.cmp(&b.name));
        from_environment.retain(|variable| !given.iter().any(|flag| flag.name.eq_ignore_ascii_case(&variable.name)));
        given.extend(from_environment);
        given
    }
}

impl Settings {
    /// The same settings with these values, all of them or an error.
    pub fn with_overrides(mut self, given: &[Overrides]) -> Result<Self> {
        if given.is_empty() {
            return Ok(self);
        }
        let mut named = Vec::new();
        let (components, given): (Vec<_>, Vec<_>) =
            given.iter().partition(|one| one.name.len() > COMPONENTS.len() && one.name.starts_with(COMPONENTS));
        let of_component = |one: &&Overrides| ComponentValue {
            path: one.name[COMPONENTS.len()..].to_owned(),
            value: one.value.clone(),
            place: one.place.clone(),
        };
        for one in &given {
            let found = self.schema().find_ignoring_case(&one.name);
            let name = found.map_err(|error| explain(&one.place, &error))?;
            if self.is_secret(&name) && one.place.starts_with("--set") {
                let message =
                    format!("{}: {name} is a secret: every user of this machine can read a command line", one.place);
                return Err(Error::usage(message).hint(format!("give it as {PREFIX}{}", name.replace('.', "__"))));
            }
            named.push((name, one));
        }
        let pairs: Vec<(&str, &str)> = named.iter().map(|(name, one)| (name.as_str(), one.value.as_str())).collect();
        let places: Vec<&str> = given.iter().map(|one| one.place.as_str()).collect();
        self.set_all(&pairs).map_err(|error| explain(&places.join(", "), &error))?;
        let origins = named.iter().map(|(name, one)| (name.clone(), one.place.clone())).collect();
        self.remember_given(origins);
        self.remember_component_values(components.iter().map(of_component).collect());
        Ok(self)
    }
}

/// The error with where the value was given.
fn explain(place: &str, error: &Error) -> Error {
    let told = Error::config(format!("{place}: {}", error.message()));
    let told = error.evidence_lines().iter().fold(told, |told, line| told.evidence(line.clone()));
    match error.next() {
        Some(next) => told.hint(next),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_count_more_than_variables_and_dots_are_two_underscores() {
        let flags = [("a.b".to_owned(), "1".to_owned())];
        let variables = [("TURNUP_SET_A__B", "2"), ("TURNUP_SET_c__d_e", "3"), ("TURNUP_SETTING", "4")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = Overrides::collect(&flags, variables.into_iter());
        let shown: Vec<(&str, &str, &str)> =
            given.iter().map(|one| (one.name.as_str(), one.value.as_str(), one.place.as_str())).collect();
        assert_eq!(shown, [("a.b", "1", "--set a.b"), ("c.d_e", "3", "TURNUP_SET_c__d_e")]);
    }
}
