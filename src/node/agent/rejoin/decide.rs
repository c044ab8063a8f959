//! What to do about a member of etcd whose data are gone: a pure function of what the host and the
//! other members say. Nothing here looks at a host or changes one.
//!
//! The member that it was never starts again without its data: it has promised things that it no
//! longer knows. It is taken out where the others are a healthy majority without it, and joins as a
//! learner with another id, which counts only once it has all data. Where anything is unknown,
//! nothing is done: two clusters of etcd are worse than a member that is away.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::etcd_answers::ListedMember;
use super::super::super::etcd_data::OwnData;

/// The cluster as this host knew it while its member was well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownCluster {
    /// etcd's id of it.
    pub(super) id: u64,
    /// How many members it had.
    pub(super) size: usize,
}

/// What one of the other members says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerAnswer {
    pub(super) id: u64,
    pub(super) cluster: u64,
    /// 0 where it knows none.
    pub(super) leader: u64,
    /// It complains of nothing.
    pub(super) is_well: bool,
}

/// What the other members say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClusterView {
    pub(super) cluster: u64,
    pub(super) members: Vec<ListedMember>,
    pub(super) answers: Vec<PeerAnswer>,
}

/// All that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The name of this host's member.
    pub(super) name: String,
    /// Where the others reach it.
    pub(super) peer_url: String,
    /// None where this host never saw its member well.
    pub(super) known: Option<KnownCluster>,
    pub(super) data: OwnData,
    /// Whether an etcd runs that has that directory.
    pub(super) runs: bool,
    /// Whether something listens where the others reach this member.
    pub(super) listens: bool,
    /// The directories in which a learner gets its data, by its id, and whether it has some.
    pub(super) joining: BTreeMap<u64, bool>,
    /// The learner that runs in one of them.
    pub(super) joiner: Option<u64>,
    /// What the others say, or why they say nothing.
    pub(super) others: Result<ClusterView, String>,
    /// Whether kubelet was told lately to start etcd with the data that the learner got.
    pub(super) kubelet_told: bool,
}

/// The one thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RejoinStep {
    Nothing,
    /// Take the member out that this host had: its id.
    Remove(u64),
    /// Add this host as a learner.
    Add,
    /// Let the learner of this id get its data, in a directory of its own.
    StartJoiner {
        id: u64,
        /// `name=URL` of each member, its own among them.
        initial_cluster: String,
    },
    /// End it: it has joined, or is not wanted any more.
    StopJoiner(u64),
    /// Give its directory the name that kubelet waits for.
    MoveIn(u64),
    /// Let kubelet look at once.
    TellKubelet,
    /// Let it count.
    Promote(u64),
    /// What is awaited ends by itself.
    Wait(String),
    /// It does not, and what goes on with it.
    Report(String),
}

/// What follows from what is seen.
pub(super) fn decide(seen: &Seen) -> RejoinStep {
    match &seen.data {
        OwnData::Unknown(why) => {
            RejoinStep::Report(format!("it is not known whether etcd has lost its data, so nothing is done: {why}"))
        }
        OwnData::Present => seen.finish(),
        OwnData::Empty => seen.rejoin().unwrap_or_else(|step| step),
    }
}

impl Seen {
    /// The data are gone. An error is as well what to do: something stands against the rest.
    fn rejoin(&self) -> Result<RejoinStep, RejoinStep> {
        if self.runs {
            return Err(RejoinStep::Wait(
                "etcd runs on although its data are gone, and joins again once it has stopped: \
                 crictl stop --timeout 60 $(crictl ps --quiet --name '^etcd$') (on the host)"
                    .into(),
            ));
        }
        let view = self.trusted_view()?;
        let own = self.find_own(view)?;
        self.require_rest(view, own)?;
        let Some(own) = own else {
            return Ok(self.joiner.map_or(RejoinStep::Add, RejoinStep::StopJoiner));
        };
        if let Some(other) = self.joiner.filter(|joiner| *joiner != own.id) {
            return Ok(RejoinStep::StopJoiner(other));
        }
        let has_joined = self.joining.get(&own.id) == Some(&true);
        Ok(match (self.joiner.is_some(), own.is_started()) {
            // It counts from its own start on, so its name is known only after it had data.
            (false, true) if has_joined => RejoinStep::MoveIn(own.id),
            (true, true) if has_joined => RejoinStep::StopJoiner(own.id),
            (true, _) => RejoinStep::Wait("its learner gets its data from the other members".into()),
            (false, false) if own.is_learner || has_joined => {
                RejoinStep::StartJoiner { id: own.id, initial_cluster: self.initial_cluster(view) }
            }
            // Also a learner that has started: its data are gone as well.
            (false, _) => RejoinStep::Remove(own.id),
        })
    }

    /// What the others say, where they are the cluster that this host belongs to.
    fn trusted_view(&self) -> Result<&ClusterView, RejoinStep> {
        let host = &self.name;
        let Some(known) = self.known else {
            return Err(RejoinStep::Report(format!(
                "etcd has no data, and this host has no record of its cluster: turnup reset {host}, then: turnup up"
            )));
        };
        if known.size < 2 {
            return Err(RejoinStep::Report(
                "etcd has lost its data, and no other member has them: turnup restore (from a backup)".into(),
            ));
        }
        let view = self.others.as_ref().map_err(|why| {
            RejoinStep::Report(format!(
                "etcd has lost its data, and the other members do not answer as a majority ({why}): start their hosts; when \
                 their data are lost as well: turnup restore"
            ))
        })?;
        let ids = view.answers.iter().map(|answer| answer.cluster).chain([view.cluster]);
        if let Some(other) = ids.into_iter().find(|id| *id != known.id) {
            return Err(RejoinStep::Report(format!(
                "etcd has lost its data, and the other members are another cluster ({other:x}, not {:x}), so nothing is done: \
                 turnup reset {host}, then: turnup up",
                known.id
            )));
        }
        Ok(view)
    }

    /// The member that this host was or is to be; none once it is taken out.
    fn find_own<'v>(&self, view: &'v ClusterView) -> Result<Option<&'v ListedMember>, RejoinStep> {
        let alike = |member: &&ListedMember| member.name == self.name || member.peer_urls.contains(&self.peer_url);
        let mut found = view.members.iter().filter(alike);
        let Some(own) = found.next() else { return Ok(None) };
        let is_named = own.name.is_empty() || own.name == self.name;
        if found.next().is_some() || !is_named || own.peer_urls != [self.peer_url.clone()] {
            return Err(RejoinStep::Report(format!(
                "etcd has lost its data, and etcd knows {} at {} otherwise than this host: turnup reset {}, then: turnup up",
                if own.name.is_empty() { "a member" } else { &own.name },
                own.peer_urls.join(","),
                self.name
            )));
        }
        Ok(Some(own))
    }

    /// The others are a healthy majority without this host, and change nothing else.
    fn require_rest(&self, view: &ClusterView, own: Option<&ListedMember>) -> Result<(), RejoinStep> {
        let wait = |why: String| RejoinStep::Wait(format!("etcd has lost its data, and joins again once {why}"));
        let others: Vec<&ListedMember> =
            view.members.iter().filter(|member| Some(member.id) != own.map(|own| own.id)).collect();
        if let Some(other) = others.iter().find(|member| member.is_learner || !member.is_started()) {
            let other = if other.name.is_empty() { other.peer_urls.join(",") } else { other.name.clone() };
            return Err(wait(format!("{other} has joined: etcd changes one member at a time")));
        }
        let answer = |member: &&ListedMember| view.answers.iter().find(|answer| answer.id == member.id);
        let well = |member: &&ListedMember| answer(member).is_some_and(|answer| answer.is_well && answer.leader != 0);
        let (up, down): (Vec<&ListedMember>, Vec<&ListedMember>) = others.iter().partition(|member| well(member));
        if up.len() <= others.len() / 2 {
            let down: Vec<&str> = down.iter().map(|member| member.name.as_str()).collect();
            return Err(RejoinStep::Report(format!(
                "etcd has lost its data, and {} of its {} other members is no healthy majority; not well: {}: start their \
                 hosts; when their data are lost as well: turnup restore",
                up.len(),
                others.len(),
                down.join(", ")
            )));
        }
        let leaders: BTreeSet<u64> = up.iter().filter_map(answer).map(|answer| answer.leader).collect();
        if leaders.len() != 1 || !others.iter().any(|member| leaders.contains(&member.id)) {
            return Err(wait("the other members have elected a leader".into()));
        }
        if self.listens && self.joiner.is_none() {
            return Err(wait(format!("nothing listens at {} any more", self.peer_url)));
        }
        Ok(())
    }

    /// The list that its first start needs: as the others have it, itself by its name.
    fn initial_cluster(&self, view: &ClusterView) -> String {
        let line = |member: &ListedMember| -> Vec<String> {
            let name = if member.name.is_empty() { &self.name } else { &member.name };
            member.peer_urls.iter().map(|url| format!("{name}={url}")).collect()
        };
        view.members.iter().flat_map(line).collect::<Vec<_>>().join(",")
    }

    /// There are data. They are this agent's matter only while they are a learner's.
    fn finish(&self) -> RejoinStep {
        if let Some(joiner) = self.joiner {
            return RejoinStep::StopJoiner(joiner);
        }
        let Ok(view) = &self.others else { return RejoinStep::Nothing };
        if self.known.is_none_or(|known| known.id != view.cluster) {
            return RejoinStep::Nothing;
        }
        match self.find_own(view) {
            Ok(None) => RejoinStep::Report(format!(
                "this host has the data of a member that etcd has forgotten: turnup reset {}, then: turnup up",
                self.name
            )),
            Ok(Some(own)) if own.is_learner && self.runs => RejoinStep::Promote(own.id),
            Ok(Some(own)) if own.is_learner && self.kubelet_told => {
                RejoinStep::Wait("kubelet starts etcd with the data that its learner got".into())
            }
            Ok(Some(own)) if own.is_learner => RejoinStep::TellKubelet,
            _ => RejoinStep::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
