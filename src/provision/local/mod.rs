//! The local target: hosts on this very machine, each a systemd of its own in an nspawn container
//! with its own network namespace.
//!
//! Terraform's `terraform_data` calls these functions through `turnup local …`, so that local takes
//! the same way as a cloud. A host is a real Linux machine as far as bootstrap can tell. Where the
//! configuration wants it, a `service` does for hosts what a cloud does: volumes that outlive them,
//! user data, another machine in the place of a dead one. Nothing here knows Kubernetes.

mod cgroup;
mod ignition;
mod limits;
mod machine;
mod network;
mod process;
mod registry;
mod service;
mod spec;
mod storage;
mod volume;

pub use limits::make_room;
pub use machine::{
    MachineIdentity, create_host, delete_host, delete_orphans, is_running, limit_host, replace_host, start_host,
    status_of,
};
pub use network::{create_network, delete_network, has_firewall};
pub use registry::{LocalHost, find_orphans, list_hosts};
pub use service::{ServiceSpec, serve, serves, start_service, stop_service, write_line};
pub use spec::{BALANCER, BLOBS, HostSpec, NetworkSpec, SERVERS, VolumeSpec, cluster_id};
pub use volume::{create_volume, delete_volume};

/// What is left of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineStatus {
    /// It runs.
    Running,
    /// Its files are there, it does not run; `turnup local host start` starts it with all its data.
    Stopped,
    /// There is nothing of it.
    Absent,
}
