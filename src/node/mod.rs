//! What runs on a host: `turnup node up` makes it what its node config says, `turnup node down` what it was before, `turnup node facts`
//! tells what it is.
//!
//! The same binary as on the operator's machine, copied over. It decides nothing: everything is in
//! [`NodeConfig`]. It speaks to no other host, but at a boot by user data to the place that has its
//! artifacts and to the API server that it joins, and it needs nothing on the host but Linux and
//! systemd.

pub mod boot_config;
pub mod diff;
mod disk;
pub mod down;
mod event;
pub mod facts;
mod fetch;
pub mod firewall;
pub mod healthcheck;
pub mod join;
pub mod layout;
mod line_diff;
pub mod mounts;
mod network;
pub mod node_config;
mod restore;
mod restore_log;
mod static_pod;
mod systemd;
mod task;
pub mod up;
mod volume_attach;
mod workload;
pub mod yaml;

pub use event::NodeEvent;
pub use facts::Facts;
pub use node_config::NodeConfig;
