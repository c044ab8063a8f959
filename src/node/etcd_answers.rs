//! What etcdctl says of the members of etcd, as the agent and the operator's run both read it. Runs
//! nothing.

use serde::Deserialize;

use crate::error::Result;

/// A member as etcd lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ListedMember {
    #[serde(rename = "ID")]
    pub(crate) id: u64,
    /// Empty until it has started for the first time, where it came as one more.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(rename = "peerURLs", default)]
    pub(crate) peer_urls: Vec<String>,
    /// None until it has started.
    #[serde(rename = "clientURLs", default)]
    pub(crate) client_urls: Vec<String>,
    #[serde(rename = "isLearner", default)]
    pub(crate) is_learner: bool,
}

impl ListedMember {
    pub(crate) fn is_started(&self) -> bool {
        !self.name.is_empty() && !self.client_urls.is_empty()
    }
}

/// Whether a learner that was to be promoted counts now; false as long as it has not all data yet.
/// Told by etcd's words (its `api/v3rpc/rpctypes`): `ErrLearnerNotReady`, and
/// `ErrMemberNotLearner`, which is said of one that was promoted.
pub(crate) fn is_promoted<T>(answer: Result<T>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.says("in sync with leader") => Ok(false),
        Err(error) if error.says("can only promote a learner member") => Ok(true),
        Err(error) => Err(error),
    }
}
