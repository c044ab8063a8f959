//! What the agent of a control-plane host does for etcd: a member that is full (alarm NOSPACE, in
//! which the cluster takes no writes) and the holes that deleted data leaves. Pure functions of
//! what the members say; `etcdctl` asks them and acts.
//!
//! Each agent defragments its own member alone, for that member stands still meanwhile. Two at once
//! could be a majority: the members take turns, the leader last, and none while another one is
//! away. Where etcd is full no lock can be written, so turns follow from what all agents see alike.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// A member that holds fewer unused bytes than this has nothing to give back.
const LEAST: u64 = 16 << 20;

/// A member as etcd and it say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EtcdMember {
    pub(super) id: u64,
    pub(super) name: String,
    /// The size of its file, and of what is used in it; nothing where it does not answer.
    pub(super) size: Option<(u64, u64)>,
}

impl EtcdMember {
    /// Whether defragmenting it would give back less than a tenth.
    fn is_lean(&self) -> bool {
        self.size.is_some_and(|(size, used)| size.saturating_sub(used) < LEAST.max(size / 10))
    }
}

/// An alarm of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// Its file has reached its quota.
    NoSpace,
    /// Its data differs from that of the others.
    Corrupt,
}

/// What all members say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EtcdView {
    /// The member of this host.
    pub(super) own: u64,
    pub(super) leader: u64,
    pub(super) members: Vec<EtcdMember>,
    /// By member.
    pub(super) alarms: Vec<(u64, Alarm)>,
    /// The size at which a member raises its alarm.
    pub(super) quota: u64,
    /// When each member was last defragmented, by its name.
    pub(super) defragmented: BTreeMap<String, Timestamp>,
}

/// The one thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EtcdAction {
    Nothing,
    /// Forget the old versions of all keys, and look again.
    Compact,
    /// Give back the holes in this host's member.
    Defragment,
    /// The same for its turn in the interval, one member of the cluster at a time.
    DefragmentInTurn,
    /// All members have room: writes are taken again.
    Disarm,
    /// Only people can help.
    Report(String),
}

/// What follows from the view; `is_compact` once the old versions are forgotten.
pub(super) fn decide(
    view: &EtcdView,
    interval: Option<SignedDuration>,
    now: Timestamp,
    is_compact: bool,
) -> EtcdAction {
    if let Some((member, _)) = view.alarms.iter().find(|(_, alarm)| *alarm == Alarm::Corrupt) {
        let name = view.name_of(*member);
        let why = "its data differs from that of the other members (alarm CORRUPT)";
        return EtcdAction::Report(format!("etcd member {name}: {why}: recreate its host"));
    }
    let away: Vec<&str> =
        view.members.iter().filter(|member| member.size.is_none()).map(|member| &*member.name).collect();
    if !view.alarms.is_empty() {
        return if away.is_empty() { make_room(view, is_compact) } else { wait_for(&away) };
    }
    match interval {
        Some(interval) if away.is_empty() && view.is_turn(interval, now) => EtcdAction::DefragmentInTurn,
        _ => EtcdAction::Nothing,
    }
}

fn wait_for(away: &[&str]) -> EtcdAction {
    let away = away.join(", ");
    EtcdAction::Report(format!(
        "etcd is full (alarm NOSPACE), and nothing is defragmented while {away} does not answer"
    ))
}

/// Where etcd is full: old versions first, then each member's holes, then writes are taken again.
fn make_room(view: &EtcdView, is_compact: bool) -> EtcdAction {
    if !is_compact {
        return EtcdAction::Compact;
    }
    let size = |member: &EtcdMember| member.size.map_or(u64::MAX, |(size, _)| size);
    let next = view.order().into_iter().find(|member| !member.is_lean());
    match next {
        Some(next) if next.id == view.own => EtcdAction::Defragment,
        // Its own agent does it.
        Some(_) => EtcdAction::Nothing,
        // With less than a tenth free the alarm would be back in no time.
        None if view.members.iter().all(|member| size(member) < view.quota / 10 * 9) => EtcdAction::Disarm,
        None => {
            let largest = view.members.iter().map(size).max().unwrap_or_default();
            let (is, most) = (largest >> 20, view.quota >> 20);
            let what = "etcd is full (alarm NOSPACE) and nothing in it can be given back";
            EtcdAction::Report(format!("{what}: {is} of {most} MiB: raise phase2.etcd.quota_gb, then delete objects"))
        }
    }
}

impl EtcdView {
    /// The members in the order of their turns: by id, the leader last.
    fn order(&self) -> Vec<&EtcdMember> {
        let mut members: Vec<&EtcdMember> = self.members.iter().collect();
        members.sort_by_key(|member| (member.id == self.leader, member.id));
        members
    }

    /// Whether it is this host's turn: of those whose time has come it is the first.
    fn is_turn(&self, interval: SignedDuration, now: Timestamp) -> bool {
        let is_due = |member: &&EtcdMember| match self.defragmented.get(&member.name) {
            // A clock that was wrong once must not hold it up for ever.
            Some(last) => *last > now || now.duration_since(*last) >= interval,
            None => true,
        };
        self.order().into_iter().find(is_due).is_some_and(|member| member.id == self.own)
    }

    fn name_of(&self, id: u64) -> String {
        let member = self.members.iter().find(|member| member.id == id);
        member.map_or_else(|| format!("{id:x}"), |member| member.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUOTA: u64 = 2 << 30;
    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn view(own: u64, leader: u64, sizes: &[Option<(u64, u64)>]) -> EtcdView {
        let member = |(id, size): (u64, &Option<(u64, u64)>)| EtcdMember { id, name: format!("m{id}"), size: *size };
        let members = (1..).zip(sizes).map(member).collect();
        EtcdView { own, leader, members, alarms: Vec::new(), quota: QUOTA, defragmented: BTreeMap::new() }
    }

    fn full(mut view: EtcdView) -> EtcdView {
        view.alarms.push((1, Alarm::NoSpace));
        view
    }

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1000)
    }

    /// What the agent of each member decides.
    fn decided(view: &EtcdView, interval: Option<SignedDuration>) -> Vec<EtcdAction> {
        let by = |own: u64| decide(&EtcdView { own, ..view.clone() }, interval, now(), true);
        view.members.iter().map(|member| by(member.id)).collect()
    }

    #[test]
    fn a_full_cluster_has_room_again_member_by_member_the_leader_last() {
        let (holey, lean) = (Some((QUOTA, 100 << 20)), Some((100 << 20, 100 << 20)));
        let mut view = full(view(1, 2, &[holey, holey, holey]));
        assert_eq!(decide(&view, None, now(), false), EtcdAction::Compact, "before anything else");
        let mut order = Vec::new();
        for _ in 0..3 {
            let decided = decided(&view, None);
            let turns: Vec<usize> = (0..3).filter(|at| decided[*at] == EtcdAction::Defragment).collect();
            assert_eq!(turns.len(), 1, "{decided:?}");
            assert_eq!(decided.iter().filter(|action| **action == EtcdAction::Nothing).count(), 2);
            view.members[turns[0]].size = lean;
            order.push(view.members[turns[0]].id);
        }
        assert_eq!(order, [1, 3, 2]);
        assert_eq!(decided(&view, None), vec![EtcdAction::Disarm; 3]);
    }

    #[test]
    fn the_alarm_stays_while_there_is_no_room_or_no_certainty() {
        let used = Some((QUOTA, QUOTA - (1 << 20)));
        let reports = |view: &EtcdView| match decide(view, Some(DAY), now(), true) {
            EtcdAction::Report(why) => why,
            other => format!("{other:?}"),
        };
        let why = reports(&full(view(1, 1, &[used])));
        assert!(why.contains("2047 of 2048 MiB") || why.contains("2048 of 2048 MiB"), "{why}");
        let why = reports(&full(view(1, 1, &[used, None, used])));
        assert!(why.ends_with("while m2 does not answer"), "{why}");
        let mut corrupt = full(view(1, 1, &[used, used, used]));
        corrupt.alarms.push((3, Alarm::Corrupt));
        assert!(reports(&corrupt).starts_with("etcd member m3: its data differs"), "disarming would hide it");
    }

    #[test]
    fn members_take_turns_in_the_interval_and_the_leader_is_the_last() {
        let size = Some((100 << 20, 50 << 20));
        let mut view = view(1, 1, &[size, size, size]);
        assert_eq!(decided(&view, None), vec![EtcdAction::Nothing; 3], "no interval");
        let mut order = Vec::new();
        while let Some(at) = decided(&view, Some(DAY)).iter().position(|it| *it == EtcdAction::DefragmentInTurn) {
            order.push(view.members[at].id);
            view.defragmented.insert(view.members[at].name.clone(), now());
        }
        assert_eq!(order, [2, 3, 1]);
        view.members[2].size = None;
        view.defragmented.clear();
        assert_eq!(decided(&view, Some(DAY)), vec![EtcdAction::Nothing; 3], "a member is away");
    }

    proptest! {
        #[test]
        fn never_two_members_at_once_and_never_while_one_is_away(
            sizes in prop::collection::vec(prop::option::of((0_u64..4 << 30, 0_u64..4 << 30)), 1..6),
            leader in 1_u64..6,
            alarm in prop::option::of(any::<bool>()),
            ages in prop::collection::vec(prop::option::of(-50_i64..50), 5),
        ) {
            let mut view = view(1, leader, &sizes);
            view.alarms.extend(alarm.map(|corrupt| (1, if corrupt { Alarm::Corrupt } else { Alarm::NoSpace })));
            let ages = view.members.iter().zip(ages).filter_map(|(member, age)| Some((member.name.clone(), age?)));
            view.defragmented = ages.map(|(name, age)| (name, now() - SignedDuration::from_hours(age))).collect();
            let decided = decided(&view, Some(DAY));
            let stands_still = |action: &&EtcdAction| matches!(action, EtcdAction::Defragment | EtcdAction::DefragmentInTurn);
            let count = decided.iter().filter(stands_still).count();
            prop_assert!(count <= 1, "{:?}", decided);
            if view.members.iter().any(|member| member.size.is_none()) {
                prop_assert!(count == 0 && !decided.contains(&EtcdAction::Disarm), "{:?}", decided);
            }
        }
    }
}
