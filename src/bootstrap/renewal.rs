//! What comes next in the renewal of a node group: hosts of another template than the
//! configuration's are drained, told to end, and their Nodes deleted once they have ended, so many
//! at a time.
//!
//! Pure functions of what the API says of the group's Nodes and of what this run has started. What
//! is on the way is seen from the Nodes themselves, so a run that was killed goes on from there.

use std::time::Duration;

use serde_json::Value;

use crate::node::agent::RETIRE;

use super::condition::is_ready;
use super::drain::CORDONED;
use super::group_node::{TEMPLATE, silent_since};

/// A kubelet renews its lease every ten seconds. One that was told to end, has no pods and has not
/// done so for this long runs no more.
const SILENT_FOR: Duration = Duration::from_secs(40);

/// How a Node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeHealth {
    Ready,
    /// Its kubelet reports, and it is not Ready.
    Unready,
    /// Its kubelet is silent.
    Silent,
}

/// A Node of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupMember {
    pub(super) name: String,
    /// The template that its machine was made from; none of a machine that an older turnup made.
    pub(super) template: Option<String>,
    /// What tells this boot of its machine from every other one.
    pub(super) boot_id: String,
    pub(super) health: NodeHealth,
    /// Whether turnup has cordoned it.
    pub(super) is_cordoned: bool,
    /// Whether this boot of its machine was told to end.
    pub(super) is_retired: bool,
}

impl GroupMember {
    pub(super) fn read(node: &Value) -> Self {
        let (metadata, status) = (&node["metadata"], &node["status"]);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let boot_id = text(&status["nodeInfo"]["bootID"]).unwrap_or_default();
        Self {
            name: text(&metadata["name"]).unwrap_or_default(),
            template: text(&metadata["labels"][TEMPLATE]),
            health: match (is_ready(node), silent_since(node)) {
                (true, _) => NodeHealth::Ready,
                (false, None) => NodeHealth::Unready,
                (false, Some(_)) => NodeHealth::Silent,
            },
            is_cordoned: metadata["annotations"][CORDONED].is_string(),
            is_retired: !boot_id.is_empty() && metadata["annotations"][RETIRE] == boot_id.as_str(),
            boot_id,
        }
    }

    /// Whether its kubelet reports.
    pub(super) fn speaks(&self) -> bool {
        self.health != NodeHealth::Silent
    }

    /// Whether it is of this template, and Ready.
    pub(super) fn is_new(&self, template: &str) -> bool {
        self.template.as_deref() == Some(template) && self.health == NodeHealth::Ready
    }

    /// Whether pods can count on it.
    fn is_available(&self) -> bool {
        self.health == NodeHealth::Ready && !self.is_cordoned && !self.is_retired
    }

    /// Whether another machine is to take its place, and that one has not been told to end yet. A
    /// dead one is replaced by what makes them, and a Node that no kubelet has reported for has no
    /// machine that could end.
    fn is_outdated(&self, template: &str) -> bool {
        let has_machine = self.speaks() && !self.boot_id.is_empty();
        self.template.as_deref() != Some(template) && has_machine && !self.is_retired
    }
}

/// A group, and what is known of its renewal.
pub(super) struct Renewal<'a> {
    /// The template that its hosts are to be of.
    pub(super) template: &'a str,
    /// How many hosts it has to have.
    pub(super) least: usize,
    pub(super) max_unavailable: usize,
    /// How many this run has told to end and no new host has come for yet.
    pub(super) pending: usize,
    /// What is wrong in the cluster since this run began.
    pub(super) ills: &'a [String],
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RenewalStep {
    /// Nothing: all hosts are of the template.
    Done,
    /// Drain this one, and tell its machine to end.
    Retire(String),
    /// The machine has ended: delete its Node.
    Delete(String),
    /// It was cordoned for a template that is no longer wanted.
    Uncordon(String),
    /// Nothing yet, for these reasons.
    Wait(Vec<String>),
}

impl Renewal<'_> {
    /// `silent_for` says since when a retired one's kubelet has not renewed its lease.
    pub(super) fn decide(&self, nodes: &[GroupMember], silent_for: impl Fn(&str) -> Duration) -> RenewalStep {
        let mut retired = nodes.iter().filter(|node| node.is_retired);
        if let Some(gone) = retired.clone().find(|node| silent_for(&node.name) >= SILENT_FOR) {
            return RenewalStep::Delete(gone.name.clone());
        }
        let is_kept = |node: &&GroupMember| node.template.as_deref() == Some(self.template) && !node.is_retired;
        if let Some(kept) = nodes.iter().filter(is_kept).find(|node| node.is_cordoned) {
            return RenewalStep::Uncordon(kept.name.clone());
        }
        let available = nodes.iter().filter(|node| node.is_available()).count();
        let unavailable = self.pending.max(self.least.saturating_sub(available));
        let Some(next) = self.find_next(nodes) else {
            let waits = self.pending > 0 || unavailable > 0 || !self.ills.is_empty();
            return if retired.next().is_some() || waits {
                RenewalStep::Wait(self.reasons(nodes, unavailable))
            } else {
                RenewalStep::Done
            };
        };
        // One that is away already makes no room smaller.
        let others = unavailable.saturating_sub(usize::from(!next.is_available()));
        // The first one shows whether the template is any good.
        let is_proven = nodes.iter().any(|node| node.is_new(self.template) && !node.is_retired);
        let limit = if is_proven { self.max_unavailable.max(1) } else { 1 };
        if others >= limit || (next.is_available() && !self.ills.is_empty()) {
            return RenewalStep::Wait(self.reasons(nodes, unavailable));
        }
        RenewalStep::Retire(next.name.clone())
    }

    /// Those first that pods cannot count on anyway.
    fn find_next<'n>(&self, nodes: &'n [GroupMember]) -> Option<&'n GroupMember> {
        let outdated = nodes.iter().filter(|node| node.is_outdated(self.template));
        outdated.min_by_key(|node| (!node.is_cordoned, node.is_available(), node.name.as_str()))
    }

    fn reasons(&self, nodes: &[GroupMember], unavailable: usize) -> Vec<String> {
        let ending = nodes.iter().filter(|node| node.is_retired).map(|node| format!("{} is to end", node.name));
        let starting = nodes.iter().filter(|node| node.health == NodeHealth::Unready && !node.is_retired);
        let starting = starting.map(|node| format!("{} is not Ready", node.name));
        let missing = (unavailable > 0).then(|| format!("{unavailable} of {} hosts are away", self.least));
        ending.chain(starting).chain(missing).chain(self.ills.iter().cloned()).collect()
    }
}

/// Those that would be renewed.
pub(super) fn find_outdated<'n>(nodes: &'n [GroupMember], template: &str) -> Vec<&'n GroupMember> {
    nodes.iter().filter(|node| node.is_outdated(template) || node.is_retired).collect()
}

#[cfg(test)]
#[path = "renewal_tests.rs"]
mod tests;
