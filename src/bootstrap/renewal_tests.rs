//! Tests of what comes next in a renewal: each rule, and whole renewals of groups that are killed
//! at any instant.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const OLD: &str = "aaaaaaaaaaaa";
const NEW: &str = "bbbbbbbbbbbb";

/// `w1 old ready`, and any of `cordoned`, `retired`, `silent`; `unreported` of a Node that no
/// kubelet has reported for.
fn member(text: &str) -> GroupMember {
    let words: Vec<&str> = text.split(' ').collect();
    let has = |word: &str| words.contains(&word);
    GroupMember {
        name: words[0].to_owned(),
        template: if has("unlabelled") { None } else { Some(if has("new") { NEW } else { OLD }.to_owned()) },
        boot_id: if has("unreported") { String::new() } else { format!("{}-1", words[0]) },
        health: match (has("ready"), has("silent")) {
            (_, true) => NodeHealth::Silent,
            (true, _) => NodeHealth::Ready,
            _ => NodeHealth::Unready,
        },
        is_cordoned: has("cordoned"),
        is_retired: has("retired"),
    }
}

fn renewal(max_unavailable: usize) -> Renewal<'static> {
    Renewal { template: NEW, least: 3, max_unavailable, pending: 0, ills: &[] }
}

fn decide(renewal: &Renewal<'_>, nodes: &[&str]) -> RenewalStep {
    let nodes: Vec<GroupMember> = nodes.iter().map(|text| member(text)).collect();
    renewal.decide(&nodes, |_| Duration::ZERO)
}

fn retire(name: &str) -> RenewalStep {
    RenewalStep::Retire(name.to_owned())
}

#[test]
fn one_after_another_is_renewed_and_the_next_only_when_the_first_is_back() {
    let one = renewal(1);
    assert_eq!(decide(&one, &["w1 new ready", "w2 new ready", "w3 new ready"]), RenewalStep::Done);
    assert_eq!(decide(&one, &["w1 old ready", "w2 old ready", "w3 old ready"]), retire("w1"));
    assert_eq!(decide(&one, &["w1 unlabelled ready", "w2 new ready", "w3 new ready"]), retire("w1"));
    let on_its_way = ["w1 old ready cordoned retired", "w2 old ready", "w3 old ready"];
    assert!(matches!(decide(&one, &on_its_way), RenewalStep::Wait(_)));
    assert!(matches!(decide(&one, &["w2 old ready", "w3 old ready"]), RenewalStep::Wait(_)), "its Node is deleted");
    assert!(matches!(decide(&one, &["w4 new", "w2 old ready", "w3 old ready"]), RenewalStep::Wait(_)));
    assert_eq!(decide(&one, &["w4 new ready", "w2 old ready", "w3 old ready"]), retire("w2"));
    let dead = ["w1 old silent", "w4 new ready", "w5 new ready", "w6 new ready"];
    assert_eq!(decide(&one, &dead), RenewalStep::Done, "a dead machine is another matter");
    let made_by_hand = ["w1 unlabelled unreported", "w2 new ready", "w3 new ready", "w4 new ready"];
    assert_eq!(decide(&one, &made_by_hand), RenewalStep::Done, "there is no machine that could end");
}

#[test]
fn several_at_a_time_go_when_the_first_has_shown_that_the_template_is_good() {
    let two = renewal(2);
    let first = ["w1 old ready cordoned retired", "w2 old ready", "w3 old ready"];
    assert!(matches!(decide(&two, &first), RenewalStep::Wait(_)), "the first one goes alone");
    assert_eq!(decide(&two, &["w4 new ready", "w2 old ready", "w3 old ready"]), retire("w2"));
    assert_eq!(decide(&two, &["w4 new ready", "w2 old ready cordoned retired", "w3 old ready"]), retire("w3"));
}

#[test]
fn what_a_killed_run_left_comes_first() {
    let one = renewal(1);
    assert_eq!(decide(&one, &["w1 old ready", "w2 old ready cordoned", "w3 old ready"]), retire("w2"));
    assert_eq!(decide(&one, &["w1 old ready", "w2 old", "w3 old ready"]), retire("w2"), "pods do not miss it");
    let reverted = ["w1 new ready cordoned", "w2 new ready", "w3 new ready"];
    assert_eq!(decide(&one, &reverted), RenewalStep::Uncordon("w1".into()));
    let ends = ["w1 new ready cordoned retired", "w2 new ready", "w3 new ready"];
    assert!(matches!(decide(&one, &ends), RenewalStep::Wait(_)), "what was told to end may end at any time");
}

#[test]
fn a_node_goes_when_its_machine_was_told_to_end_and_is_silent() {
    let nodes = ["w1 old ready cordoned retired", "w2 new ready", "w3 new ready"].map(member);
    let after = |seconds: u64| renewal(1).decide(&nodes, |_| Duration::from_secs(seconds));
    assert!(matches!(after(39), RenewalStep::Wait(_)));
    assert_eq!(after(40), RenewalStep::Delete("w1".into()));
    let rebooted = ["w1 old ready cordoned", "w2 new ready", "w3 new ready"].map(member);
    let decided = renewal(1).decide(&rebooted, |_| Duration::from_hours(1));
    assert_eq!(decided, retire("w1"), "another boot than the one that was told: it is told again");
}

#[test]
fn nothing_more_is_touched_while_the_cluster_is_not_as_well_as_before() {
    let ills = ["DaemonSet kube-system/kube-proxy has pods that are not ready".to_owned()];
    let unwell = Renewal { ills: &ills, ..renewal(1) };
    let waits = decide(&unwell, &["w4 new ready", "w2 old ready", "w3 old ready"]);
    assert_eq!(waits, RenewalStep::Wait(ills.to_vec()));
    assert_eq!(decide(&unwell, &["w1 new ready", "w2 new ready", "w3 new ready"]), RenewalStep::Wait(ills.to_vec()));
    let pending = Renewal { pending: 1, least: 0, ..renewal(1) };
    let scaled = decide(&pending, &["w2 old ready", "w3 old ready"]);
    assert!(matches!(scaled, RenewalStep::Wait(_)), "a group without a fixed size has this run's own count");
}

#[test]
fn members_are_read_from_nodes() {
    let node = json!({
        "metadata": {"name": "w1", "labels": {"turnup.dev/template": OLD},
            "annotations": {"turnup.dev/retire": "b-1", "turnup.dev/cordoned": "update"}},
        "spec": {"unschedulable": true},
        "status": {"nodeInfo": {"bootID": "b-1"}, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let read = GroupMember::read(&node);
    assert_eq!(read, GroupMember { boot_id: "b-1".into(), ..member("w1 old ready cordoned retired") });
    let mut other = node;
    other["status"]["nodeInfo"]["bootID"] = "b-2".into();
    assert!(!GroupMember::read(&other).is_retired, "the next machine of this name was not told to end");
    let bare = GroupMember::read(&json!({"metadata": {"annotations": {"turnup.dev/retire": ""}}}));
    assert!(!bare.is_retired && bare.template.is_none() && bare.speaks());
}

/// A group of so many hosts whose machines end and come back; each call of `act` may be the last
/// one of a run.
struct World {
    nodes: BTreeMap<String, GroupMember>,
    size: usize,
    made: usize,
    /// Machines that have ended, whose Nodes are still there.
    ended: Vec<String>,
    worst: usize,
}

impl World {
    fn new(size: usize) -> Self {
        let nodes = (0..size).map(|at| (format!("a{at}"), member(&format!("a{at} old ready"))));
        Self { nodes: nodes.collect(), size, made: 0, ended: Vec::new(), worst: 0 }
    }

    fn act(&mut self, step: &RenewalStep, drains_only: bool) {
        match step {
            RenewalStep::Retire(name) => {
                let Some(node) = self.nodes.get_mut(name) else { return };
                node.is_cordoned = true;
                node.is_retired = !drains_only;
            }
            RenewalStep::Delete(name) => {
                self.ended.retain(|ended| ended != name);
                self.nodes.remove(name);
            }
            _ => {}
        }
        let available = self.nodes.values().filter(|node| node.is_available()).count();
        self.worst = self.worst.max(self.size - available.min(self.size));
    }

    /// The machines do what they do.
    fn pass(&mut self) {
        let to_end: Vec<String> =
            self.nodes.values().filter(|node| node.is_retired && node.speaks()).map(|node| node.name.clone()).collect();
        for name in to_end {
            if let Some(node) = self.nodes.get_mut(&name) {
                node.health = NodeHealth::Silent;
            }
            self.ended.push(name);
            let new = format!("b{}", self.made);
            self.made += 1;
            self.nodes.insert(new.clone(), member(&format!("{new} new ready")));
        }
    }
}

proptest! {
    #[test]
    fn a_group_is_renewed_whole_within_its_limit_wherever_runs_are_killed(
        size in 1_usize..7, most in 1_usize..4, killed in prop::collection::vec(any::<bool>(), 40),
    ) {
        let mut world = World::new(size);
        for killed in killed.iter().chain(std::iter::repeat_n(&false, 60)) {
            let nodes: Vec<GroupMember> = world.nodes.values().cloned().collect();
            let renewal = Renewal { least: size, ..renewal(most) };
            let silent = |name: &str| if world.ended.iter().any(|ended| ended == name) { SILENT_FOR } else { Duration::ZERO };
            let step = renewal.decide(&nodes, silent);
            if step == RenewalStep::Done {
                break;
            }
            world.act(&step, *killed);
            if !killed {
                world.pass();
            }
        }
        prop_assert!(world.worst <= most, "{} of {size} were away at once", world.worst);
        prop_assert_eq!(world.made, size);
        prop_assert!(world.nodes.values().all(|node| node.is_new(NEW)));
    }
}
