//! The addons phase: manifests are rendered, applied with kubectl, waited for, and removed when
//! they are switched off.
//!
//! A manifest is a file of its own below `templates/addons/<addon>/`; this module fills in the few
//! values that it asks for. What an addon consists of is known from labels: every object says
//! `app.kubernetes.io/managed-by: turnup` and `turnup.dev/addon: <addon>`, and the main object of
//! each records version and hash. Nothing here knows how a host became a node.

mod evidence;
mod object;
pub(crate) mod observed;
mod preview;
mod prune;
mod render;
mod rollout;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use evidence::collect as collect_evidence;
pub use object::Object;
pub use steps::phase;
