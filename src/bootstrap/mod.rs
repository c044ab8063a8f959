//! The bootstrap phase: hosts become nodes. One way for every target; its only input is the hand-off of the provision phase.
//!
//! `pki` makes the certificates, `complete` decides everything about each node, the steps copy turnup to the hosts and run it there
//! (`node`); hosts that nobody logs in to get the same by `user_data`. Nothing here knows which cloud a host came from.

mod access;
mod api;
mod assets;
mod ban;
pub mod belongings;
mod comers;
pub mod complete;
mod component;
mod control_plane;
mod etcdctl;
mod forecast;
pub mod kubeconfig;
mod kubelet;
pub mod machine;
mod manifest;
mod members;
mod membership;
mod nodes;
mod outfit;
pub mod pki;
mod reach;
pub mod reset;
mod retire;
mod serving;
mod steps;
pub(crate) mod template;
mod token;
pub mod user_data;

pub use api::{KUBECONFIG, Kubectl};
pub use forecast::forecast;
pub(crate) use kubelet::shared_disk_thresholds;
pub use outfit::Group;
pub use serving::{Unserved, find_unserved, keep_approving};
pub use steps::{kubectl, phase, write_kubeconfig};
pub use user_data::{ordered_provision_phase, provision_phase};
