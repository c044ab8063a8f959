//! The addons phase: manifests are rendered, applied with kubectl, waited for, and removed when
//! they are switched off.
//!
//! A manifest is a file of its own below `templates/addons/<addon>/`; this module fills in the few
//! values that it asks for. What an addon consists of is known from labels: every object says
//! `app.kubernetes.io/managed-by: turnup` and `turnup.dev/addon: <addon>`, and the main object of
//! each records version and hash. Manifests of the user's own go as they are; inventories in the
//! cluster name their objects. Nothing here knows how a host became a node.

mod addon_manager;
mod authorities;
#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod cloud_controller_run_tests;
#[cfg(test)]
mod cloud_controller_tests;
#[cfg(test)]
mod cluster_autoscaler_tests;
#[cfg(test)]
mod compute_controller_run_tests;
#[cfg(test)]
mod compute_controller_tests;
#[cfg(test)]
mod compute_disk_tests;
mod context;
#[cfg(test)]
mod csi_driver_tests;
mod definitions;
mod driver_volumes;
mod early_look;
#[cfg(test)]
mod ebs_run_tests;
#[cfg(test)]
mod ebs_tests;
mod evidence;
#[cfg(test)]
mod headlamp_tests;
mod list;
mod load_balancers;
mod log_shipping;
mod object;
pub(crate) mod observed;
mod own;
mod own_apply;
mod preview;
mod prunable;
mod prune;
#[cfg(test)]
mod pulled_run_tests;
mod render;
mod replacement;
mod rollout;
mod steps;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traefik_run_tests;
#[cfg(test)]
mod traefik_tests;
mod wait;

pub use addon_manager::run as run_addon_manager;
pub use definitions::require_unused_definitions;
pub use driver_volumes::require_no_driver_volumes;
pub(crate) use evidence::collect as collect_evidence;
pub use list::{AddonList, AddonRow, ManifestRow};
pub use load_balancers::require_no_load_balancers;
pub use object::Object;
pub use steps::phase;
