//! The provision phase: turns the configuration into hosts with Terraform, and hands them over as
//! one typed file.
//!
//! It drives `terraform` or `tofu` and nothing else; what a target creates is written in
//! `templates/provision/<target>`. The local target's own part (`local`) is called back by
//! Terraform through `turnup local …`.

mod api_guard;
mod apply;
mod baremetal;
mod custom;
mod destroy;
mod external_inventory;
mod host_keys;
mod known_hosts;
pub mod local;
mod local_cloud;
mod planned_hosts;
mod planned_inventory;
mod protection;
mod render;
mod run_options;
mod ssh_keys;
pub mod step_ids;
mod steps;
pub mod terraform;
mod tfplan;
mod tfstate;
mod user_data;
mod volume_guard;

pub use apply::{BeforeHostRemoval, find_drift};
pub use destroy::{Made, Volumes, destroy, list_made};
pub use external_inventory::{Origin, adopt, find_external_inventory};
pub use run_options::RunOptions;
pub use steps::{Hooks, phase};
pub use terraform::has_made;
pub use user_data::{USER_DATA, token_file};
pub use volume_guard::hold_data;
