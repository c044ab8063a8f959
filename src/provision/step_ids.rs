//! The ids of those steps of the provision phase that other code names.

use crate::phase::StepId;

/// Makes SSH keys.
pub const KEYS: StepId = StepId::of("provision", "keys");
/// Renders user data.
pub const USER_DATA: StepId = StepId::of("provision", "user-data");
/// Runs Terraform.
pub const APPLY: StepId = StepId::of("provision", "apply");
/// Writes the inventory.
pub const INVENTORY: StepId = StepId::of("provision", "inventory");
