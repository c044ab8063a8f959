//! The bootstrap phase: hosts become nodes. One way for every target; its only input is the
//! inventory of the provision phase.
//!
//! `pki` makes the certificates, `node_config` decides everything about each node, the steps copy
//! turnup to the hosts and run it there (`node`); hosts without a login get the same by
//! `user_data`. Nothing here knows which cloud a host came from.

mod api;
#[cfg(test)]
#[path = "api_server_tests.rs"]
pub(crate) mod api_server;
mod assets;
mod authentication;
mod authority;
pub mod authority_holders;
pub mod backup;
mod backup_keys;
pub(crate) mod backup_open;
mod backup_store;
mod backup_words;
pub mod base_config;
mod certificate_request;
pub mod cloud_resources;
mod component;
mod condition;
mod configuration;
mod containerd_keys;
mod contents;
mod control_plane;
pub mod credentials;
mod csr_approver;
mod delete_nodes;
mod dns;
mod drain;
mod encryption_key;
mod etcd_members;
mod etcd_step;
mod etcdctl;
mod exec_credential;
mod firewall;
mod group_node;
mod group_tokens;
pub mod groups;
mod healthcheck;
mod host_certificates;
mod host_connection;
mod host_system;
mod join;
mod keyset;
mod kube_proxy;
pub mod kubeconfig;
mod kubeconfig_entries;
mod kubelet;
mod kubelet_certificate;
mod latest;
mod machine_authenticator;
mod machine_identity;
mod manifest;
pub mod node_config;
mod node_config_builder;
mod node_context;
mod node_groups;
mod node_metadata;
mod node_target;
mod own_authority;
pub mod pki;
pub mod pki_items;
mod private_key;
mod proxy;
mod rbac;
mod renew_groups;
mod renewal;
mod reserved_memory;
pub mod reset;
pub mod restore;
mod rolling_lock;
mod rolling_update;
pub mod rotation;
mod runtime;
mod same_runtime;
pub mod seal;
#[cfg(test)]
mod setting_tests;
pub mod step_ids;
mod steps;
mod subject;
mod teardown_policy;
pub(crate) mod template;
mod template_id;
mod token;
mod token_holders;
#[cfg(test)]
mod update_tests;
pub mod user_data;
pub mod user_kubeconfig;
mod usual_facts;
mod version_skew;
mod volume_snapshots;
mod webhooks;

pub use api::{APPLY, KUBECONFIG, Kubectl, kubectl};
pub use condition::{find_condition, is_ready};
pub(crate) use configuration::read as read_file;
pub use csr_approver::{PendingCsr, PendingCsrs, Policy, find_pending, run as run_csr_approver};
pub use dns::remove_names;
pub use etcd_step::give_up as give_up_etcd;
pub use exec_credential::sign_credential;
pub use group_tokens::{JoinToken, find_summaries as find_join_tokens};
pub use host_certificates::{HostCertificates, RenewalScope};
pub use keyset::{ItemState, Keyset, KeysetItem, KeysetName, RotationStep};
pub use kube_proxy::kube_proxy_config;
pub(crate) use kubelet::shared_disk_thresholds;
pub use machine_authenticator::{AuthenticatorOptions, MachineRole, run as run_machine_authenticator};
pub use node_config::file_of as node_config_file;
pub use node_groups::find_without_balancer;
pub use node_target::Group;
pub(crate) use runtime::read_certificates;
pub use same_runtime::require_same_runtimes;
pub use steps::{phase, simulate_node_config};
pub use user_data::{hosts_phase, provision_phase, provision_phase_with};
pub use usual_facts::assume_facts;
pub use version_skew::require_supported_hop;
pub use webhooks::{UnansweredWebhook, find_unanswered, with_unanswered};
