//! Which values of a node config the settings reach where all others have their defaults: a table,
//! measured by the tests of `origin`. It saves trials where it is right, and costs some where it is
//! not.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::Way;
use crate::inventory::Role;

/// Settings with the ways to the values that change with them.
pub(super) type Reach = BTreeMap<String, BTreeSet<Way>>;

const TABLE: &str = include_str!("reach.json");

/// What settings reach on a host of this role.
pub(super) fn of_defaults(role: Role) -> Reach {
    let mut roles: BTreeMap<Role, Reach> = serde_json::from_str(TABLE).unwrap_or_default();
    roles.remove(&role).unwrap_or_default()
}

/// Requires that the table says what was measured, or writes it where `INSTA_UPDATE=always`.
#[cfg(test)]
pub(super) fn require_current(measured: &BTreeMap<Role, Reach>) {
    let text = format!("{}\n", serde_json::to_string_pretty(measured).unwrap_or_default());
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/forecast/reach.json");
        fs_err::write(path, text).expect("the table can be written");
    } else {
        assert!(text == TABLE, "src/forecast/reach.json is not what was measured: make reference writes it");
    }
}
