//! What to do about a member of etcd whose data are gone: a pure function of what the host and the
//! other members say. Nothing here looks at a host or changes one.
//!
//! The member that it was never starts again without its data: it has promised things that it no
//! longer knows. It is taken out where the others are a healthy majority without it, and joins as a
//! learner with another id, which counts only once it has all data. Where anything is unknown,
//! nothing is done: two clusters of etcd are worse than a member that is away.

use std::collections::{BTreeMap, BTreeSet};

/// What is in this host's data directory of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnData {
    /// Seen to be empty: what should be there can be read, and there is no file.
    Empty,
    /// A member's.
    Present,
    /// It cannot be told, and why.
    Unknown(String),
}

/// The cluster as this host knew it while its member was well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownCluster {
    /// etcd's id of it.
    pub(super) id: u64,
    /// How many members it had.
    pub(super) size: usize,
}

/// A member as the others list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedMember {
    pub(super) id: u64,
    /// Empty until it has started for the first time.
    pub(super) name: String,
    pub(super) peer_urls: Vec<String>,
    /// None until it has started.
    pub(super) client_urls: Vec<String>,
    pub(super) is_learner: bool,
}

impl ListedMember {
    fn is_started(&self) -> bool {
        !self.name.is_empty() && !self.client_urls.is_empty()
    }
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
    /// Whether kubelet was told to start etcd with the data that the learner got.
    pub(super) kubelet_told: bool,
}

/// The one thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
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
pub(super) fn decide(seen: &Seen) -> Step {
    match &seen.data {
        OwnData::Unknown(why) => {
            Step::Report(format!("it is not known whether etcd has lost its data, so nothing is done: {why}"))
        }
        OwnData::Present => seen.finish(),
        OwnData::Empty => seen.rejoin().unwrap_or_else(|step| step),
    }
}

impl Seen {
    /// The data are gone. An error is as well what to do: something stands against the rest.
    fn rejoin(&self) -> Result<Step, Step> {
        if self.runs {
            return Err(Step::Wait(
                "etcd runs on although its data are gone, and joins again once it has stopped: \
                 crictl stop --timeout 60 $(crictl ps --quiet --name '^etcd$') (on the host)"
                    .into(),
            ));
        }
        let view = self.trusted_view()?;
        let own = self.find_own(view)?;
        self.require_rest(view, own)?;
        let Some(own) = own else {
            return Ok(self.joiner.map_or(Step::Add, Step::StopJoiner));
        };
        if let Some(other) = self.joiner.filter(|joiner| *joiner != own.id) {
            return Ok(Step::StopJoiner(other));
        }
        let has_joined = self.joining.get(&own.id) == Some(&true);
        Ok(match (self.joiner.is_some(), own.is_started()) {
            // It counts from its own start on, so its name is known only after it had data.
            (false, true) if has_joined => Step::MoveIn(own.id),
            (true, true) if has_joined => Step::StopJoiner(own.id),
            (true, _) => Step::Wait("its learner gets its data from the other members".into()),
            // Also a learner that has started: its data are gone as well.
            (false, true) => Step::Remove(own.id),
            (false, false) if own.is_learner => {
                Step::StartJoiner { id: own.id, initial_cluster: self.initial_cluster(view) }
            }
            (false, false) => Step::Remove(own.id),
        })
    }

    /// What the others say, where they are the cluster that this host belongs to.
    fn trusted_view(&self) -> Result<&ClusterView, Step> {
        let host = &self.name;
        let Some(known) = self.known else {
            return Err(Step::Report(format!(
                "etcd has no data, and this host has no record of its cluster: turnup reset {host}, then: turnup up"
            )));
        };
        if known.size < 2 {
            return Err(Step::Report(
                "etcd has lost its data, and no other member has them: turnup restore (from a backup)".into(),
            ));
        }
        let view = self.others.as_ref().map_err(|why| {
            Step::Report(format!(
                "etcd has lost its data, and the other members do not answer as a majority ({why}): start their hosts; when \
                 their data are lost as well: turnup restore"
            ))
        })?;
        let ids = view.answers.iter().map(|answer| answer.cluster).chain([view.cluster]);
        if let Some(other) = ids.into_iter().find(|id| *id != known.id) {
            return Err(Step::Report(format!(
                "etcd has lost its data, and the other members are another cluster ({other:x}, not {:x}), so nothing is done: \
                 turnup reset {host}, then: turnup up",
                known.id
            )));
        }
        Ok(view)
    }

    /// The member that this host was or is to be; none once it is taken out.
    fn find_own<'v>(&self, view: &'v ClusterView) -> Result<Option<&'v ListedMember>, Step> {
        let alike = |member: &&ListedMember| member.name == self.name || member.peer_urls.contains(&self.peer_url);
        let mut found = view.members.iter().filter(alike);
        let Some(own) = found.next() else { return Ok(None) };
        let is_named = own.name.is_empty() || own.name == self.name;
        if found.next().is_some() || !is_named || own.peer_urls != [self.peer_url.clone()] {
            return Err(Step::Report(format!(
                "etcd has lost its data, and etcd knows {} at {} otherwise than this host: turnup reset {}, then: turnup up",
                if own.name.is_empty() { "a member" } else { &own.name },
                own.peer_urls.join(","),
                self.name
            )));
        }
        Ok(Some(own))
    }

    /// The others are a healthy majority without this host, and change nothing else.
    fn require_rest(&self, view: &ClusterView, own: Option<&ListedMember>) -> Result<(), Step> {
        let wait = |why: String| Step::Wait(format!("etcd has lost its data, and joins again once {why}"));
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
            return Err(Step::Report(format!(
                "etcd has lost its data, and {} of its {} other members is no healthy majority; not well: {}: start their \
                 hosts; when their data are lost as well: turnup restore",
                up.len(),
                others.len(),
                down.join(", ")
            )));
        }
        let leaders: BTreeSet<u64> =
            up.iter().filter_map(|member| answer(member)).map(|answer| answer.leader).collect();
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
    fn finish(&self) -> Step {
        if let Some(joiner) = self.joiner {
            return Step::StopJoiner(joiner);
        }
        let Ok(view) = &self.others else { return Step::Nothing };
        if self.known.is_none_or(|known| known.id != view.cluster) {
            return Step::Nothing;
        }
        match self.find_own(view) {
            Ok(None) => Step::Report(format!(
                "this host has the data of a member that etcd has forgotten: turnup reset {}, then: turnup up",
                self.name
            )),
            Ok(Some(own)) if own.is_learner && self.runs => Step::Promote(own.id),
            Ok(Some(own)) if own.is_learner && self.kubelet_told => {
                Step::Wait("kubelet starts etcd with the data that its learner got".into())
            }
            Ok(Some(own)) if own.is_learner => Step::TellKubelet,
            _ => Step::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use proptest::prelude::*;

    use super::*;

    const CLUSTER: u64 = 0xc1;

    fn url(number: u64) -> String {
        format!("https://10.0.0.{number}:2380")
    }

    fn member(number: u64) -> ListedMember {
        let client_urls = vec![format!("https://10.0.0.{number}:2379")];
        ListedMember {
            id: number,
            name: format!("m{number}"),
            peer_urls: vec![url(number)],
            client_urls,
            is_learner: false,
        }
    }

    fn learner(id: u64, number: u64) -> ListedMember {
        ListedMember { id, name: String::new(), client_urls: Vec::new(), is_learner: true, ..member(number) }
    }

    fn answer(id: u64) -> PeerAnswer {
        PeerAnswer { id, cluster: CLUSTER, leader: 2, is_well: true }
    }

    /// m1 of so many members has lost its data, and all others are well.
    fn seen(size: u64) -> Seen {
        let (members, answers) = ((1..=size).map(member).collect(), (2..=size).map(answer).collect());
        Seen {
            name: "m1".into(),
            peer_url: url(1),
            known: Some(KnownCluster { id: CLUSTER, size: usize::try_from(size).unwrap() }),
            data: OwnData::Empty,
            runs: false,
            listens: false,
            joining: BTreeMap::new(),
            joiner: None,
            others: Ok(ClusterView { cluster: CLUSTER, members, answers }),
            kubelet_told: false,
        }
    }

    fn changed(size: u64, change: impl FnOnce(&mut Seen)) -> Seen {
        let mut seen = seen(size);
        change(&mut seen);
        seen
    }

    /// The same with what the others say changed.
    fn told(size: u64, change: impl FnOnce(&mut ClusterView)) -> Seen {
        changed(size, |seen| change(seen.others.as_mut().unwrap()))
    }

    /// The member is out, and a learner with the id 10 is there; `is_started` once it has data.
    fn joining(is_started: bool, change: impl FnOnce(&mut Seen)) -> Seen {
        changed(3, |seen| {
            let view = seen.others.as_mut().unwrap();
            view.members[0] =
                if is_started { ListedMember { id: 10, is_learner: true, ..member(1) } } else { learner(10, 1) };
            change(seen);
        })
    }

    /// The word of a step, with the id.
    fn word(seen: &Seen) -> String {
        match decide(seen) {
            Step::Wait(why) => format!("wait: {why}"),
            Step::Report(why) => format!("report: {why}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_done_in_each_state() {
        let with_data = BTreeMap::from([(10, true)]);
        let without = BTreeMap::from([(10, false)]);
        let list = "m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380,m3=https://10.0.0.3:2380".to_owned();
        let start = Step::StartJoiner { id: 10, initial_cluster: list };
        let there = |is_started, change: fn(&mut Seen)| {
            joining(is_started, |seen| {
                seen.data = OwnData::Present;
                change(seen);
            })
        };
        for (what, seen, expected) in [
            ("the data are gone", seen(3), Step::Remove(1)),
            ("of five", seen(5), Step::Remove(1)),
            ("it is out", told(3, |view| drop(view.members.remove(0))), Step::Add),
            ("it is a learner", joining(false, |_| {}), start.clone()),
            ("killed before its start", joining(false, |seen| seen.joining = without.clone()), start.clone()),
            ("killed while it starts", joining(false, |seen| seen.joining = with_data.clone()), start),
            (
                "it has joined",
                joining(true, |seen| (seen.joining, seen.joiner) = (with_data.clone(), Some(10))),
                Step::StopJoiner(10),
            ),
            ("it is stopped", joining(true, |seen| seen.joining = with_data.clone()), Step::MoveIn(10)),
            ("its data are gone too", joining(true, |_| {}), Step::Remove(10)),
            ("its data are in place", there(true, |_| {}), Step::TellKubelet),
            ("its data run", there(true, |seen| seen.runs = true), Step::Promote(10)),
            ("a learner of before runs", joining(false, |seen| seen.joiner = Some(9)), Step::StopJoiner(9)),
            ("it runs and is out", told(3, |view| drop(view.members.remove(0))), Step::Add),
            ("there are data", changed(3, |seen| seen.data = OwnData::Present), Step::Nothing),
            (
                "another cluster's data",
                changed(3, |seen| (seen.data, seen.known) = (OwnData::Present, None)),
                Step::Nothing,
            ),
        ] {
            assert_eq!(decide(&seen), expected, "{what}");
        }
        // One that another one promoted while it had its data elsewhere is a member with data.
        let mut promoted = joining(true, |seen| seen.joining = with_data.clone());
        promoted.others.as_mut().unwrap().members[0].is_learner = false;
        assert_eq!(decide(&promoted), Step::MoveIn(10));
    }

    #[test]
    fn whatever_is_not_certain_is_said_with_the_way_on() {
        let away = |view: &mut ClusterView| drop(view.answers.remove(0));
        let cases = [
            changed(1, |_| {}),
            changed(3, |seen| seen.known = None),
            changed(3, |seen| seen.data = OwnData::Unknown("/var/lib/etcd: Permission denied".into())),
            changed(3, |seen| seen.runs = true),
            changed(3, |seen| seen.listens = true),
            changed(3, |seen| seen.others = Err("context deadline exceeded".into())),
            changed(3, |seen| seen.known = Some(KnownCluster { id: 0xc2, size: 3 })),
            told(3, |view| view.answers[1].cluster = 0xc2),
            told(3, away),
            told(3, |view| view.answers[0].leader = 0),
            told(5, |view| view.answers.iter_mut().for_each(|answer| answer.leader = 1)),
            told(5, |view| view.answers[3].leader = 4),
            told(5, |view| view.answers.iter_mut().take(2).for_each(|answer| answer.is_well = false)),
            told(3, |view| view.members.push(learner(9, 4))),
            told(3, |view| view.members[0].peer_urls = vec![url(9)]),
            told(3, |view| view.members[0].name = "other".into()),
            told(3, |view| view.members.push(ListedMember { id: 9, ..member(1) })),
            joining(false, |seen| seen.joiner = Some(10)),
            joining(true, |seen| (seen.data, seen.kubelet_told) = (OwnData::Present, true)),
            changed(3, |seen| {
                seen.data = OwnData::Present;
                seen.others.as_mut().unwrap().members.remove(0);
            }),
        ];
        insta::assert_snapshot!(cases.iter().map(word).collect::<Vec<_>>().join("\n"));
        // A minority of the others may be away.
        assert_eq!(decide(&told(5, away)), Step::Remove(1));
    }

    /// Mostly what is really there, so that steps are reached, and of everything else a little.
    fn any_seen() -> impl Strategy<Value = Seen> {
        let rare = || prop::bool::weighted(0.1);
        let any_member = (1_u64..6, rare(), rare(), rare(), rare()).prop_map(|(number, fresh, moved, named, new)| {
            let mut member = if fresh { learner(number, number) } else { member(number) };
            member.is_learner ^= new;
            if moved {
                member.peer_urls = vec![url(number % 5 + 1)];
            }
            if named {
                member.name = "m1".into();
            }
            ListedMember { id: if new { number + 9 } else { number }, ..member }
        });
        let any_answer = (1_u64..6, rare(), prop::sample::select(vec![0_u64, 2, 2, 2, 2, 2, 3]), rare()).prop_map(
            |(id, foreign, leader, ill)| PeerAnswer {
                id,
                cluster: if foreign { 0xc2 } else { CLUSTER },
                leader,
                is_well: !ill,
            },
        );
        let view = (
            prop::collection::btree_map(1_u64..6, any_member, 0..6),
            prop::collection::vec(any_answer, 0..6),
            rare(),
            rare(),
        );
        let own = (rare(), rare(), rare(), 0_usize..5, prop::bool::weighted(0.7));
        let data = prop::sample::select(vec![
            OwnData::Empty,
            OwnData::Empty,
            OwnData::Present,
            OwnData::Unknown(String::new()),
        ]);
        let joining = prop::collection::btree_map(prop::sample::select(vec![1_u64, 10, 11]), any::<bool>(), 0..3);
        (view, own, data, joining, prop::option::weighted(0.2, prop::sample::select(vec![1_u64, 10, 11]))).prop_map(
            |((members, answers, foreign, silent), (runs, listens, told, size, usual), data, joining, joiner)| {
                let mut seen = seen(3);
                (seen.runs, seen.listens, seen.kubelet_told, seen.data) = (runs, listens, told, data);
                seen.known = (size > 0).then_some(KnownCluster { id: CLUSTER, size });
                (seen.joining, seen.joiner) = (joining, joiner);
                if !usual {
                    let view = seen.others.as_mut().unwrap();
                    view.members = members.into_values().collect();
                    view.answers = answers;
                    view.cluster = if foreign { 0xc2 } else { CLUSTER };
                }
                if silent {
                    seen.others = Err(String::new());
                }
                seen
            },
        )
    }

    /// What has to hold before anything of the cluster or the data changes, said once more.
    fn may_change(seen: &Seen, own: u64) -> bool {
        let Ok(view) = &seen.others else { return false };
        let others: Vec<&ListedMember> = view.members.iter().filter(|member| member.id != own).collect();
        let is_up = |member: &ListedMember| {
            view.answers.iter().find(|answer| answer.id == member.id).is_some_and(|it| it.is_well && it.leader != 0)
        };
        let up = others.iter().filter(|member| is_up(member)).count();
        seen.data == OwnData::Empty
            && !seen.runs
            && seen.known.is_some_and(|known| known.id == view.cluster && known.size > 1)
            && view.answers.iter().all(|answer| answer.cluster == view.cluster)
            && others.iter().all(|member| !member.is_learner && !member.name.is_empty())
            && up * 2 > others.len()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn no_quorum_is_risked_no_second_change_made_and_no_cluster_founded(seen in any_seen()) {
            let find = |id: u64| seen.others.as_ref().unwrap().members.iter().find(|member| member.id == id).unwrap();
            let is_own = |member: &ListedMember| {
                member.peer_urls == [seen.peer_url.clone()] && (member.name.is_empty() || member.name == seen.name)
            };
            match decide(&seen) {
                Step::Remove(id) => {
                    prop_assert!(may_change(&seen, id) && is_own(find(id)));
                    prop_assert!(seen.joining.get(&id) != Some(&true) && seen.joiner.is_none(), "it has data elsewhere");
                }
                Step::Add => {
                    prop_assert!(may_change(&seen, 0));
                    let members = &seen.others.as_ref().unwrap().members;
                    prop_assert!(members.iter().all(|member| !member.is_learner && member.name != seen.name));
                    prop_assert!(!members.iter().any(|member| member.peer_urls.contains(&seen.peer_url)));
                }
                Step::StartJoiner { id, initial_cluster } => {
                    prop_assert!(may_change(&seen, id) && is_own(find(id)) && find(id).is_learner);
                    prop_assert!(seen.joiner.is_none() && find(id).client_urls.is_empty());
                    prop_assert!(initial_cluster.split(',').count() > 1, "alone it could be a cluster");
                }
                Step::MoveIn(id) => {
                    prop_assert!(may_change(&seen, id) && is_own(find(id)));
                    prop_assert!(seen.joining[&id] && seen.joiner.is_none());
                }
                Step::Promote(id) => {
                    prop_assert!(seen.data == OwnData::Present && seen.runs && find(id).is_learner && is_own(find(id)));
                }
                Step::TellKubelet => prop_assert!(seen.data == OwnData::Present && !seen.runs && !seen.kubelet_told),
                Step::StopJoiner(id) => prop_assert!(seen.joiner == Some(id)),
                Step::Nothing => prop_assert!(seen.data == OwnData::Present),
                Step::Wait(_) | Step::Report(_) => {}
            }
        }

        #[test]
        fn cut_off_anywhere_it_ends_as_a_voter(cuts in prop::collection::vec(any::<bool>(), 0..24), size in 3_u64..6) {
            let mut world = seen(size);
            let (mut ids, mut cuts) = (10_u64.., cuts.into_iter());
            for _ in 0..80 {
                let step = decide(&world);
                if step == Step::Nothing {
                    break;
                }
                // Killed before the effect, or right after it.
                let is_cut = cuts.next().unwrap_or_default();
                if !(is_cut && cuts.next().unwrap_or_default()) {
                    carry_out(&mut world, step, &mut ids);
                }
                world.kubelet_told &= !is_cut;
                go_on(&mut world);
                let members = &world.others.as_ref().unwrap().members;
                prop_assert!(members.iter().filter(|member| member.is_learner).count() <= 1);
                prop_assert!(members.iter().filter(|member| member.id != 1 && member.id < 10).count() as u64 == size - 1);
            }
            let own = world.others.as_ref().unwrap().members.iter().find(|member| member.name == "m1");
            prop_assert!(own.is_some_and(|own| !own.is_learner && own.id >= 10), "{:?}", world);
            prop_assert!(world.runs && world.data == OwnData::Present);
        }
    }

    /// What an effect does to the host and to etcd.
    fn carry_out(world: &mut Seen, step: Step, ids: &mut impl Iterator<Item = u64>) {
        let members = &mut world.others.as_mut().unwrap().members;
        match step {
            Step::Remove(id) => members.retain(|member| member.id != id),
            Step::Add => members.push(learner(ids.next().unwrap(), 1)),
            Step::StartJoiner { id, .. } => {
                world.joining.insert(id, false);
                world.joiner = Some(id);
            }
            Step::StopJoiner(_) => world.joiner = None,
            Step::MoveIn(id) => {
                assert!(world.joining.remove(&id).unwrap());
                world.data = OwnData::Present;
            }
            Step::TellKubelet => (world.runs, world.kubelet_told) = (true, true),
            Step::Promote(id) => {
                members.iter_mut().filter(|member| member.id == id).for_each(|it| it.is_learner = false)
            }
            Step::Nothing | Step::Wait(_) | Step::Report(_) => {}
        }
    }

    /// What goes on by itself: a learner gets data, then it is named.
    fn go_on(world: &mut Seen) {
        let Some(id) = world.joiner else { return };
        if world.joining.insert(id, true) == Some(true) {
            let members = &mut world.others.as_mut().unwrap().members;
            for own in members.iter_mut().filter(|member| member.id == id) {
                *own = ListedMember { id, is_learner: true, ..member(1) };
            }
        }
    }
}
