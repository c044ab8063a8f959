//! The list of the names that this cluster made for annotations: the `ConfigMap`
//! `kube-system/turnup-dns`, a name a line. A zone cannot be asked whose its names are, and a host
//! that begins to write has to know what the last one made.
//!
//! A name is on the list before it is in the zone, and until it is gone from there.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Error, Result};

use super::super::https_endpoint::{HttpsEndpoint, reason};

const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/turnup-dns";
const KEY: &str = "names";
const PATIENCE: Duration = Duration::from_secs(10);
/// A `ConfigMap` has at most a MiB.
const LONGEST: u64 = 4 << 20;

/// The list as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameList {
    object: Value,
    names: BTreeSet<String>,
}

impl NameList {
    pub(super) fn read(api: &HttpsEndpoint) -> Result<Self> {
        Ok(Self::of(send(api, None)?))
    }

    fn of(object: Value) -> Self {
        let text = object["data"][KEY].as_str().unwrap_or_default();
        let names = text.lines().map(str::to_owned).collect();
        Self { object, names }
    }

    pub(super) const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Writes this list; an error where another host wrote one since this was read.
    pub(super) fn replace(&mut self, api: &HttpsEndpoint, names: &BTreeSet<String>) -> Result<()> {
        if *names != self.names {
            let mut object = self.object.clone();
            let lines: Vec<&str> = names.iter().map(String::as_str).collect();
            object["data"] = json!({KEY: lines.join("\n")});
            *self = Self::of(send(api, Some(&object))?);
        }
        Ok(())
    }
}

/// Reads the object, or replaces it; it as it is then.
fn send(api: &HttpsEndpoint, object: Option<&Value>) -> Result<Value> {
    let client = api.client(PATIENCE)?;
    let url = format!("{}{PATH}", api.endpoint);
    let answer = match object {
        None => client.get(&url).call(),
        Some(object) => client.put(&url).content_type("application/json").send(object.to_string().as_bytes()),
    };
    let away = |why: &dyn std::fmt::Display| {
        Error::transient(format!("the API server does not give the ConfigMap kube-system/turnup-dns: {why}"))
            .hint("turnup bootstrap (applies it)")
    };
    let mut answer = answer.map_err(|error| away(&error))?;
    let text = answer.body_mut().with_config().limit(LONGEST).read_to_string().map_err(|error| away(&error))?;
    if !answer.status().is_success() {
        return Err(away(&reason(&text, answer.status())));
    }
    serde_json::from_str(&text).map_err(|error| away(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_name_a_line() {
        let names = |data: Value| NameList::of(json!({"data": data})).names;
        assert_eq!(
            names(json!({"names": "a.example.com\nb.example.com\n"})),
            ["a.example.com", "b.example.com"].map(str::to_owned).into()
        );
        assert!(names(Value::Null).is_empty() && names(json!({"names": ""})).is_empty());
    }
}
