//! What differs between two tables.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Reference;
use crate::error::{Error, Result};

/// An entry that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What it is: `kubelet --max-pods`.
    pub entry: String,
    /// What one table says.
    pub old: Option<Value>,
    /// What the other one says.
    pub new: Option<Value>,
}

/// Every entry that the tables do not share, in order.
pub fn compare(old: Option<&Reference>, new: &Reference) -> Result<Vec<Difference>> {
    let mut old = old.map(entries).transpose()?.unwrap_or_default();
    let mut differences = Vec::new();
    for (entry, new) in entries(new)? {
        let old = old.remove(&entry);
        if old.as_ref() != Some(&new) {
            differences.push(Difference { entry, old, new: Some(new) });
        }
    }
    differences.extend(old.into_iter().map(|(entry, old)| Difference { entry, old: Some(old), new: None }));
    differences.sort_by(|one, other| one.entry.cmp(&other.entry));
    Ok(differences)
}

fn entries(reference: &Reference) -> Result<BTreeMap<String, Value>> {
    let mut entries = BTreeMap::new();
    for (name, component) in &reference.components {
        entries.insert(format!("{name} version"), Value::from(component.version.as_str()));
        for (flag, entry) in &component.flags {
            entries.insert(format!("{name} --{flag}"), value(entry)?);
        }
        for (gate, entry) in &component.feature_gates {
            entries.insert(format!("{name} gate {gate}"), value(entry)?);
        }
        for (kind, file) in &component.files {
            entries.insert(format!("{name} {kind}"), Value::from(file.api_version.as_str()));
            for (path, entry) in &file.fields {
                entries.insert(format!("{name} {kind} {path}"), value(entry)?);
            }
        }
    }
    Ok(entries)
}

fn value(entry: impl Serialize) -> Result<Value> {
    serde_json::to_value(entry).map_err(|error| Error::bug("an entry cannot be written as JSON").source(error))
}
