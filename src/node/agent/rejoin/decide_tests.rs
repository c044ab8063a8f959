//! Each state and what is done in it; random ones, in which nothing may be risked; and the whole
//! way, cut off anywhere.
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
        RejoinStep::Wait(why) => format!("wait: {why}"),
        RejoinStep::Report(why) => format!("report: {why}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn what_is_done_in_each_state() {
    let with_data = BTreeMap::from([(10, true)]);
    let without = BTreeMap::from([(10, false)]);
    let list = "m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380,m3=https://10.0.0.3:2380".to_owned();
    let start = RejoinStep::StartJoiner { id: 10, initial_cluster: list };
    let there = |is_started, change: fn(&mut Seen)| {
        joining(is_started, |seen| {
            seen.data = OwnData::Present;
            change(seen);
        })
    };
    for (what, seen, expected) in [
        ("the data are gone", seen(3), RejoinStep::Remove(1)),
        ("of five", seen(5), RejoinStep::Remove(1)),
        ("it is out", told(3, |view| drop(view.members.remove(0))), RejoinStep::Add),
        ("it is a learner", joining(false, |_| {}), start.clone()),
        ("killed before its start", joining(false, |seen| seen.joining = without.clone()), start.clone()),
        ("killed while it starts", joining(false, |seen| seen.joining = with_data.clone()), start),
        (
            "it has joined",
            joining(true, |seen| (seen.joining, seen.joiner) = (with_data.clone(), Some(10))),
            RejoinStep::StopJoiner(10),
        ),
        ("it is stopped", joining(true, |seen| seen.joining = with_data.clone()), RejoinStep::MoveIn(10)),
        ("its data are gone too", joining(true, |_| {}), RejoinStep::Remove(10)),
        ("its data are in place", there(true, |_| {}), RejoinStep::TellKubelet),
        ("its data run", there(true, |seen| seen.runs = true), RejoinStep::Promote(10)),
        ("a learner of before runs", joining(false, |seen| seen.joiner = Some(9)), RejoinStep::StopJoiner(9)),
        (
            "it runs and is out",
            changed(3, |seen| {
                seen.others.as_mut().unwrap().members.remove(0);
                seen.joiner = Some(10);
            }),
            RejoinStep::StopJoiner(10),
        ),
        ("a voter that never started", told(3, |view| view.members[0].client_urls.clear()), RejoinStep::Remove(1)),
        ("it runs beside data", there(true, |seen| seen.joiner = Some(10)), RejoinStep::StopJoiner(10)),
        (
            "a learner of another cluster",
            there(true, |seen| seen.known = Some(KnownCluster { id: 0xc2, size: 3 })),
            RejoinStep::Nothing,
        ),
        ("there are data", changed(3, |seen| seen.data = OwnData::Present), RejoinStep::Nothing),
        (
            "another cluster's data",
            changed(3, |seen| (seen.data, seen.known) = (OwnData::Present, None)),
            RejoinStep::Nothing,
        ),
    ] {
        assert_eq!(decide(&seen), expected, "{what}");
    }
    // One that another one promoted while it had its data elsewhere is a member with data.
    let mut promoted = joining(true, |seen| seen.joining = with_data.clone());
    promoted.others.as_mut().unwrap().members[0].is_learner = false;
    assert_eq!(decide(&promoted), RejoinStep::MoveIn(10));
    promoted.others.as_mut().unwrap().members[0].client_urls.clear();
    assert!(matches!(decide(&promoted), RejoinStep::StartJoiner { id: 10, .. }));
}

#[test]
fn whatever_is_not_certain_is_said_with_the_way_on() {
    let away = |view: &mut ClusterView| view.answers.truncate(view.answers.len() - 1);
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
        told(4, |view| view.members[3].is_learner = true),
        told(5, |view| view.members[4].client_urls.clear()),
        told(3, |view| view.members[0].peer_urls = vec![url(9)]),
        told(3, |view| view.members[0].name = "other".into()),
        told(3, |view| view.members.push(ListedMember { id: 9, ..member(1) })),
        joining(false, |seen| seen.joiner = Some(10)),
        joining(true, |seen| seen.joiner = Some(10)),
        joining(true, |seen| (seen.data, seen.kubelet_told) = (OwnData::Present, true)),
        changed(3, |seen| {
            seen.data = OwnData::Present;
            seen.others.as_mut().unwrap().members.remove(0);
        }),
    ];
    insta::assert_snapshot!(cases.iter().map(word).collect::<Vec<_>>().join("\n"));
    // A minority of the others may be away.
    assert_eq!(decide(&told(5, away)), RejoinStep::Remove(1));
}

/// A member as it may be found: mostly well, and of everything else a little.
fn any_member(number: u64) -> impl Strategy<Value = Option<(ListedMember, Option<PeerAnswer>)>> {
    let rare = || prop::bool::weighted(0.06);
    let fresh = prop::bool::weighted(if number == 1 { 0.3 } else { 0.06 });
    let found = (fresh, rare(), rare(), rare(), prop::bool::weighted(0.8));
    let leader = prop::sample::select(vec![0_u64, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3]);
    let said = (prop::option::weighted(0.9, leader), rare(), rare());
    (found, said).prop_map(move |((fresh, moved, named, learns, is_there), (leader, foreign, ill))| {
        let mut found = if fresh { learner(number + 9, number) } else { member(number) };
        found.is_learner ^= learns;
        if moved {
            found.peer_urls = vec![url(number % 5 + 1)];
        }
        if named {
            found.name = "m1".into();
        }
        let cluster = if foreign { 0xc2 } else { CLUSTER };
        let answer = leader.map(|leader| PeerAnswer { id: found.id, cluster, leader, is_well: !ill });
        is_there.then_some((found, answer))
    })
}

/// Mostly what is really there, so that steps are reached.
fn any_seen() -> impl Strategy<Value = Seen> {
    let rare = || prop::bool::weighted(0.06);
    let all = (any_member(1), any_member(2), any_member(3), any_member(4), any_member(5));
    let data =
        prop::sample::select(vec![OwnData::Empty, OwnData::Empty, OwnData::Present, OwnData::Unknown(String::new())]);
    let ids = || prop::sample::select(vec![1_u64, 10, 11]);
    let joining = prop::collection::btree_map(ids(), any::<bool>(), 0..3);
    let own = (rare(), rare(), any::<bool>(), 0_usize..9, data, joining, prop::option::weighted(0.2, ids()));
    (all, own, rare(), rare()).prop_map(|((a, b, c, d, e), own, foreign, silent)| {
        let mut seen = seen(3);
        let (members, answers): (Vec<_>, Vec<_>) = [a, b, c, d, e].into_iter().flatten().unzip();
        let cluster = if foreign { 0xc2 } else { CLUSTER };
        let size;
        (seen.runs, seen.listens, seen.kubelet_told, size, seen.data, seen.joining, seen.joiner) = own;
        seen.known = (size > 0).then_some(KnownCluster { id: CLUSTER, size });
        let view = ClusterView { cluster, members, answers: answers.into_iter().flatten().collect() };
        seen.others = if silent { Err(String::new()) } else { Ok(view) };
        seen
    })
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
            RejoinStep::Remove(id) => {
                prop_assert!(may_change(&seen, id) && is_own(find(id)));
                prop_assert!(seen.joining.get(&id) != Some(&true) && seen.joiner.is_none(), "it has data elsewhere");
            }
            RejoinStep::Add => {
                prop_assert!(may_change(&seen, 0));
                let members = &seen.others.as_ref().unwrap().members;
                prop_assert!(members.iter().all(|member| !member.is_learner && member.name != seen.name));
                prop_assert!(!members.iter().any(|member| member.peer_urls.contains(&seen.peer_url)));
            }
            RejoinStep::StartJoiner { id, initial_cluster } => {
                let has_joined = seen.joining.get(&id) == Some(&true);
                prop_assert!(may_change(&seen, id) && is_own(find(id)) && (find(id).is_learner || has_joined));
                prop_assert!(seen.joiner.is_none() && find(id).client_urls.is_empty());
                prop_assert!(initial_cluster.split(',').count() > 1, "alone it could be a cluster");
            }
            RejoinStep::MoveIn(id) => {
                prop_assert!(may_change(&seen, id) && is_own(find(id)));
                prop_assert!(seen.joining[&id] && seen.joiner.is_none());
            }
            RejoinStep::Promote(id) => {
                prop_assert!(seen.data == OwnData::Present && seen.runs && find(id).is_learner && is_own(find(id)));
            }
            RejoinStep::TellKubelet => prop_assert!(seen.data == OwnData::Present && !seen.runs && !seen.kubelet_told),
            RejoinStep::StopJoiner(id) => prop_assert!(seen.joiner == Some(id)),
            RejoinStep::Nothing => prop_assert!(seen.data == OwnData::Present),
            RejoinStep::Wait(_) | RejoinStep::Report(_) => {}
        }
    }

    #[test]
    fn cut_off_anywhere_it_ends_as_a_voter(cuts in prop::collection::vec(any::<bool>(), 0..24), size in 3_u64..6) {
        let mut world = seen(size);
        let (mut ids, mut cuts) = (10_u64.., cuts.into_iter());
        for _ in 0..80 {
            let step = decide(&world);
            if step == RejoinStep::Nothing {
                break;
            }
            // Killed before the effect, or right after it.
            let is_cut = cuts.next().unwrap_or_default();
            if !(is_cut && cuts.next().unwrap_or_default()) {
                carry_out(&mut world, &step, &mut ids);
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
fn carry_out(world: &mut Seen, step: &RejoinStep, ids: &mut impl Iterator<Item = u64>) {
    let members = &mut world.others.as_mut().unwrap().members;
    match step {
        RejoinStep::Remove(id) => members.retain(|member| member.id != *id),
        RejoinStep::Add => members.push(learner(ids.next().unwrap(), 1)),
        RejoinStep::StartJoiner { id, .. } => {
            world.joining.insert(*id, false);
            world.joiner = Some(*id);
        }
        RejoinStep::StopJoiner(_) => world.joiner = None,
        RejoinStep::MoveIn(id) => {
            assert!(world.joining.remove(id).unwrap());
            world.data = OwnData::Present;
        }
        RejoinStep::TellKubelet => (world.runs, world.kubelet_told) = (true, true),
        RejoinStep::Promote(id) => {
            members.iter_mut().filter(|member| member.id == *id).for_each(|member| member.is_learner = false);
        }
        RejoinStep::Nothing | RejoinStep::Wait(_) | RejoinStep::Report(_) => {}
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
