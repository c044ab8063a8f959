//! What runs on a host: `turnup node up` makes it what its complete configuration says, `turnup node down` what it was before, `turnup node facts`
//! tells what it is.
//!
//! The same binary as on the operator's machine, copied over. It decides nothing: everything is in
//! [`Complete`]. It speaks to no other host, but at a boot by user data to the place that has its
//! artifacts and to the API server that it joins, and it needs nothing on the host but Linux and
//! systemd.

mod attach;
pub mod boot;
pub mod complete;
pub mod diff;
mod disk;
pub mod down;
pub mod facts;
mod fetch;
pub mod firewall;
pub mod healthcheck;
mod inventory;
pub mod join;
pub mod layout;
pub mod mounts;
mod network;
mod static_pod;
mod task;
mod undo;
pub mod up;
mod workload;
pub mod yaml;

pub use complete::Complete;
pub use facts::Facts;
pub(crate) use inventory::unit_file;
