//! Which values of a node config the settings reach where all others have their defaults: a table,
//! measured by the tests of `origin`. It saves trials where it is right, and costs some where it is
//! not.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::Way;
use crate::inventory::Role;

/// Settings with the ways to the values that change with them.
pub(super) type Reach = BTreeMap<String, BTreeSet<Way>>;

/// By role, then by setting. `make reference` writes it.
pub(super) const TABLE: &str = include_str!("reach.json");

/// What settings reach on a host of this role.
pub(super) fn of_defaults(role: Role) -> Reach {
    let mut roles: BTreeMap<Role, Reach> = serde_json::from_str(TABLE).unwrap_or_default();
    roles.remove(&role).unwrap_or_default()
}
