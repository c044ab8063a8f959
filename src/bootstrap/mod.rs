//! The bootstrap phase: hosts become nodes. One way for every target; its only input is the hand-off of the provision phase.
//!
//! `pki` makes the certificates, `complete` decides everything about each node, the steps copy turnup to the hosts and run it there
//! (`node`); hosts that nobody logs in to get the same by `user_data`. Nothing here knows which cloud a host came from.

mod access;
mod api;
mod assets;
mod ban;
pub mod belongings;
pub mod complete;
mod component;
mod contents;
mod control_plane;
pub mod credentials;
mod csr_approver;
mod etcdctl;
mod exec_credential;
mod firewall;
mod forecast;
mod group_tokens;
mod healthcheck;
mod join;
pub mod kubeconfig;
mod kubelet;
mod latest;
pub mod machine;
mod manifest;
mod members;
mod membership;
mod node_groups;
mod nodes;
mod outfit;
pub mod pki;
mod reach;
pub mod reset;
mod retire;
pub mod seal;
mod steps;
mod subject;
pub(crate) mod template;
mod token;
pub mod user_data;

pub use api::{KUBECONFIG, Kubectl};
pub use csr_approver::{PendingCsr, PendingCsrs, Policy, find_pending, run as run_csr_approver};
pub use exec_credential::sign_credential;
pub use forecast::forecast;
pub use group_tokens::{JoinToken, find_summaries as find_join_tokens};
pub(crate) use kubelet::shared_disk_thresholds;
pub use outfit::Group;
pub use steps::{kubectl, phase};
pub use user_data::{ordered_provision_phase, provision_phase};
