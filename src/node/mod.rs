//! What runs on a host: `turnup node up` makes it what its node config says, `turnup node down`
//! what it was before, `turnup node facts` tells what it is, and `turnup node agent` keeps it so.
//!
//! The same binary as on the operator's machine, copied over. It decides nothing: everything is in
//! [`NodeConfig`]. It speaks to no other host, but at a boot by user data to the place that has its
//! artifacts, to the metadata service and to the API server that it joins, which it then asks
//! whether its machine is to end (`agent`), as a load balancer (`balancer`) to API servers, and on
//! the control plane (`agent`) to the members of etcd. It needs nothing on the host but Linux and
//! systemd.

pub(crate) mod agent;
pub(crate) mod api_client;
mod attributes;
pub(crate) mod backup;
pub(crate) mod balancer;
mod blank;
pub(crate) mod boot_config;
pub(crate) mod diff;
mod digests;
mod disk;
pub(crate) mod dns;
pub(crate) mod down;
#[cfg(test)]
#[path = "emulator_tests.rs"]
pub(crate) mod emulator;
pub(crate) mod etcd_answers;
pub(crate) mod etcd_api;
pub(crate) mod etcd_data;
pub(crate) mod etcd_first_start;
mod etcd_joiner;
pub(crate) mod etcd_restore;
mod event;
pub(crate) mod facts;
mod fetch;
pub(crate) mod firewall;
pub(crate) mod healthcheck;
mod hosts_file;
mod http_server;
pub(crate) mod https_endpoint;
pub(crate) mod https_server;
mod identity;
pub(crate) mod join;
mod kubelet_watch;
pub(crate) mod layout;
mod line_diff;
pub(crate) mod machine_identity;
pub(crate) mod mounts;
mod network;
pub(crate) mod node_config;
mod own_place;
mod packages;
pub(crate) mod provider_id;
mod restore;
mod restore_log;
pub(crate) mod static_pod;
mod systemd;
mod task;
mod tls;
pub(crate) mod up;
mod volume_attach;
mod workload;
pub(crate) mod yaml;

pub(crate) use event::NodeEvent;
pub(crate) use facts::Facts;
pub(crate) use node_config::NodeConfig;
