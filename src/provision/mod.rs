//! The provision phase: turns the configuration into hosts with Terraform, and hands them over as one typed file.
//!
//! It drives `terraform` or `tofu` and nothing else; what a target creates is written in `templates/provision/<target>`. The local
//! target's own part (`local`) is called back by Terraform through `turnup local …`.

mod adopt;
mod apply;
mod baremetal;
pub mod cloud;
mod custom;
mod destroy;
mod forecast;
pub mod handoff;
mod host_keys;
mod known_hosts;
pub mod local;
mod orders;
mod protection;
mod render;
mod steps;
pub mod terraform;
mod tfplan;
mod tfstate;
pub mod volume;
mod volumes;

pub use adopt::{Origin, adopt, find_lender};
pub use apply::{Farewell, find_drift};
pub use baremetal::ListedHost;
pub use destroy::{Made, Volumes, destroy, list_made};
pub use forecast::{forecast, forecast_key};
pub use handoff::{Handoff, Host, Role, Taint};
pub use orders::Orders;
pub use render::{USER_DATA, token_file};
pub use steps::{has_made, phase};
pub use volume::Disk;
pub use volumes::hold_data;
