//! The step `renew-groups`: hosts of node groups that were made from another template than the
//! configuration's are replaced by turnup's own rolling update. turnup logs in to none of them: it
//! drains the Node, says on it that the machine is to end, and the agent there powers it off; what
//! makes the group's machines makes the next one, of the template of now.
//!
//! What comes next is decided in [`renewal`](super::renewal). A host that does not end, or none
//! that comes in its place, stops the step: no other one is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::change::{Change, Preview, Verb};
use crate::cloud::Target;
use crate::cluster::{Addon, Cluster};
use crate::error::{Class, Error, Result};
use crate::inventory::{HostGroup, Inventory, Role};
use crate::node::agent::RETIRE;
use crate::phase::{Action, Check, Cx, Inputs};
use crate::unknown;

use super::api::{Kubectl, kubectl};
use super::drain;
use super::group_node::{GROUP, TEMPLATE};
use super::node_context::NodeContext;
use super::node_groups;
use super::renewal::{GroupMember, Renewal, RenewalStep, find_outdated};
use super::step_ids::API;
use super::template_id;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(3);
/// How long a machine may take to end: its agent looks every 20 seconds, and services stop.
const ENDS_WITHIN: Duration = Duration::from_mins(5);

/// Hosts of node groups become those of the configuration.
pub(super) struct RenewGroups(pub(super) NodeContext);

/// Whether another machine comes where one of a node group has powered itself off.
pub(super) fn can_renew(cluster: &Cluster, inventory: &Inventory) -> bool {
    let settings = &cluster.settings;
    settings.user_data.pull && !inventory.groups.is_empty() && Target::of(&inventory.target).replaces_ended_machines()
}

impl RenewGroups {
    /// The groups of workers, each with the template of its next host.
    fn templates(&self) -> Result<Vec<(&HostGroup, String)>> {
        let mut all = Vec::new();
        for group in self.0.inventory.groups.iter().filter(|group| group.role == Role::Worker) {
            let text = self.0.cluster.store.read(template_id::file_of(&group.name))?;
            // Made by an older turnup, which `turnup provision` mends.
            let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else { continue };
            all.push((group, text));
        }
        Ok(all)
    }

    fn max_unavailable(&self, group: &str) -> usize {
        let records = self.0.cluster.settings.user_data.groups.iter();
        let own = records.filter(|record| record.name == group).find_map(|record| record.max_unavailable);
        own.unwrap_or(self.0.cluster.settings.update.max_unavailable)
    }

    /// What would be renewed, as a plan says it.
    fn changes(&self, kubectl: &Kubectl) -> Result<Vec<Change>> {
        let is_drained = self.0.cluster.settings.update.drain_timeout.is_some();
        let mut changes = Vec::new();
        for (group, template) in self.templates()? {
            let nodes = list(kubectl, &group.name)?;
            let at_once = self.max_unavailable(&group.name);
            let outdated = find_outdated(&nodes, &template).into_iter();
            changes.extend(outdated.map(|node| describe(&group.name, node, &template, is_drained, at_once)));
        }
        Ok(changes)
    }
}

/// The group's Nodes.
fn list(kubectl: &Kubectl, group: &str) -> Result<Vec<GroupMember>> {
    let nodes = kubectl.get(&["nodes", "--selector", &format!("{GROUP}={group}")])?;
    Ok(nodes["items"].as_array().into_iter().flatten().map(GroupMember::read).collect())
}

impl Action for RenewGroups {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let mut inputs = Inputs::new().with("host instance", self.0.inventory.control_plane_instances());
        for (group, template) in self.templates()? {
            inputs.insert(format!("template of the group {}", group.name), template);
        }
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let changes = self.changes(&kubectl(&self.0.cluster)?)?;
        Ok(changes.first().map_or(Check::Ok, |change| {
            Check::Drifted(format!("the host {} is of another template than the configuration's", change.name))
        }))
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        match kubectl(&self.0.cluster).and_then(|kubectl| self.changes(&kubectl)) {
            Ok(changes) => Ok(changes.into()),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            // No kubectl, no kubeconfig or no answer yet.
            Err(_) => Ok(Preview::after(API)),
        }
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let changes = self.changes(&kubectl(&self.0.cluster)?.within(cx))?;
        cx.admit(&changes)?;
        if changes.is_empty() {
            return Ok(());
        }
        self.require_cloud_controller(cx)?;
        let before = self.look(cx)?;
        for (group, template) in self.templates()? {
            if unknown::is_in(&template) {
                return Err(Error::bug("the template of a group is not known"));
            }
            let mut run = GroupRun {
                step: self,
                cx,
                group,
                template: &template,
                before: before.clone(),
                retired: BTreeSet::new(),
                fresh: None,
                leases: BTreeMap::new(),
                told: Vec::new(),
                answered: Instant::now(),
                acted: Instant::now(),
                ended: None,
            };
            // Each host has a time of its own: that of a step would be too short for a large group.
            while cx.excuse(|| run.advance())? {}
        }
        Ok(())
    }
}

impl RenewGroups {
    /// New hosts take no pods before a cloud controller manager has let them in: none is replaced
    /// before that runs.
    fn require_cloud_controller(&self, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        if cluster.settings.find_cloud_controller().is_none() {
            return Ok(());
        }
        let addon = Addon::find_cloud_controller(&cluster.source, &cluster.settings.addons)?;
        let Some(addon) = addon.filter(|addon| addon.is_on(&cluster.settings.addons)) else { return Ok(()) };
        let words = ["get", "daemonset", &addon.name, "--namespace=kube-system", "--ignore-not-found", "--output=json"];
        let text = kubectl(cluster)?.within(cx).run(&words)?;
        let there: Value = serde_json::from_str(&text).unwrap_or_default();
        if there["status"]["numberReady"].as_u64().is_some_and(|ready| ready > 0) {
            Ok(())
        } else {
            Err(no_controller(&addon.name))
        }
    }

    /// What is wrong in the cluster, where that is to be heeded.
    fn look(&self, cx: &Cx) -> Result<BTreeSet<String>> {
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        if self.0.cluster.settings.update.validate {
            super::rolling_update::look(&kubectl)
        } else {
            Ok(BTreeSet::new())
        }
    }
}

/// The renewal of one group in one run.
struct GroupRun<'a> {
    step: &'a RenewGroups,
    cx: &'a Cx,
    group: &'a HostGroup,
    template: &'a str,
    before: BTreeSet<String>,
    /// The hosts that this run told to end.
    retired: BTreeSet<String>,
    /// The hosts of the template that were Ready when it began.
    fresh: Option<BTreeSet<String>>,
    /// The last renewal of the lease of each that is to end, and since when it is the last one.
    leases: BTreeMap<String, (String, Instant)>,
    /// What is waited for, as it was said last.
    told: Vec<String>,
    /// When the API answered last.
    answered: Instant,
    /// When this run changed something last.
    acted: Instant,
    /// When the last host came to its end.
    ended: Option<Instant>,
}

impl GroupRun<'_> {
    /// One look and at most one effect; false when all is done.
    fn advance(&mut self) -> Result<bool> {
        let looked = self.look();
        let (nodes, decided) = match looked {
            Ok(looked) => {
                self.answered = Instant::now();
                looked
            }
            // The API server may be the one of a control plane that loses its leader just now.
            Err(error) if error.class() == Class::Transient && self.answered.elapsed() < ENDS_WITHIN => {
                self.cx.sleep(LOOK)?;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let kubectl = kubectl(&self.step.0.cluster)?.within(self.cx);
        match decided {
            RenewalStep::Done => return Ok(false),
            RenewalStep::Retire(name) => {
                let rest = self.ended.map_or(Duration::ZERO, |ended| self.pause().saturating_sub(ended.elapsed()));
                if !rest.is_zero() {
                    self.cx.sleep(rest)?;
                    self.ended = None;
                    return Ok(true);
                }
                self.retire(&kubectl, &nodes, &name)?;
            }
            RenewalStep::Delete(name) => {
                self.cx.progress(format!("deleting the node {name}: its machine was told to end, and is silent"));
                kubectl.run(&["delete", "node", &name, "--ignore-not-found", "--wait=false"])?;
                self.leases.remove(&name);
            }
            RenewalStep::Uncordon(name) => {
                if drain::uncordon(&kubectl, &name)? {
                    self.cx.progress(format!("uncordoned {name}: it is of the template that is wanted"));
                }
            }
            RenewalStep::Wait(why) => {
                self.wait(&nodes, why)?;
                return Ok(true);
            }
        }
        self.acted = Instant::now();
        Ok(true)
    }

    fn pause(&self) -> Duration {
        self.step.0.cluster.settings.update.pause
    }

    /// The group as it is, and what comes next.
    fn look(&mut self) -> Result<(Vec<GroupMember>, RenewalStep)> {
        let kubectl = kubectl(&self.step.0.cluster)?.within(self.cx);
        let nodes = list(&kubectl, &self.group.name)?;
        let new: BTreeSet<String> =
            nodes.iter().filter(|node| node.is_new(self.template)).map(|node| node.name.clone()).collect();
        let known = self.fresh.get_or_insert_with(|| new.clone());
        let pending = self.retired.len().saturating_sub(new.difference(known).count());
        for node in nodes.iter().filter(|node| node.is_retired) {
            let lease = ["lease", &node.name, "--namespace=kube-node-lease", "--ignore-not-found", "--output=json"];
            let text = kubectl.run(&[&["get"], &lease[..]].concat())?;
            let lease: Value = serde_json::from_str(&text).unwrap_or_default();
            let renewed = lease["spec"]["renewTime"].as_str().unwrap_or_default().to_owned();
            let last = self.leases.entry(node.name.clone()).or_insert_with(|| (renewed.clone(), Instant::now()));
            if last.0 != renewed {
                *last = (renewed, Instant::now());
            }
        }
        let ills = if self.retired.is_empty() { BTreeSet::new() } else { self.step.look(self.cx)? };
        let ills: Vec<String> = ills.difference(&self.before).cloned().collect();
        let renewal = Renewal {
            template: self.template,
            least: usize::try_from(node_groups::wanted(self.group)).unwrap_or_default(),
            max_unavailable: self.step.max_unavailable(&self.group.name),
            pending,
            ills: &ills,
        };
        let silent_for = |name: &str| self.leases.get(name).map_or(Duration::ZERO, |(_, since)| since.elapsed());
        let decided = renewal.decide(&nodes, silent_for);
        Ok((nodes, decided))
    }

    /// Drains the Node, and says on it that this boot of its machine is to end.
    fn retire(&mut self, kubectl: &Kubectl, nodes: &[GroupMember], name: &str) -> Result<()> {
        let member = nodes.iter().find(|node| node.name == name);
        let template = member.and_then(|node| node.template.as_deref());
        self.cx.progress(format!("renewing {name} of the group {}", self.group.name));
        self.step.0.update.drain_before_end(kubectl, name, self.cx)?;
        if template.is_none() {
            self.cx.progress(format!(
                "{name} was made by a turnup whose hosts do not end by themselves: end its machine now, within {} minutes",
                ENDS_WITHIN.as_secs() / 60
            ));
        }
        // What it is now: it may have been restarted during the drain.
        let node = GroupMember::read(&kubectl.get(&["node", name])?);
        if node.boot_id.is_empty() {
            let message = format!("the node {name} does not say which boot of its machine it is");
            return Err(Error::transient(message).hint("turnup status"));
        }
        kubectl.patch_node(name, &json!({"metadata": {"annotations": {RETIRE: node.boot_id}}}))?;
        self.retired.insert(name.to_owned());
        Ok(())
    }

    fn wait(&mut self, nodes: &[GroupMember], why: Vec<String>) -> Result<()> {
        if why != self.told {
            self.cx.progress(format!("{}: {}", self.group.name, why.join("; ")));
            self.told = why;
        }
        self.ended = Some(Instant::now());
        let since = self.acted.elapsed();
        // A kubelet that is silent says nothing more, also before its lease has been so for long.
        let alive = nodes.iter().find(|node| node.is_retired && node.speaks());
        if let Some(node) = alive.filter(|_| since > ENDS_WITHIN) {
            return Err(does_not_end(&self.group.name, node));
        }
        let limit = self.step.0.cluster.settings.limits.host_timeout;
        if since > limit {
            return Err(does_not_come(&self.group.name, self.template, limit, &self.told));
        }
        self.cx.sleep(LOOK)
    }
}

fn no_controller(addon: &str) -> Error {
    let message = format!("new hosts would take no pods: they wait for {addon}, which does not run yet");
    Error::precondition(message)
        .evidence("no host of a group was replaced; those of the control plane are as they are to be")
        .hint("turnup addons, then turnup up")
}

fn does_not_end(group: &str, node: &GroupMember) -> Error {
    let (name, minutes) = (&node.name, ENDS_WITHIN.as_secs() / 60);
    let why = if node.template.is_none() {
        format!("it has no label {TEMPLATE}: its agent is of a turnup before this one")
    } else {
        "its agent asks every 20 seconds: journalctl -u turnup-agent (on the host)".to_owned()
    };
    Error::precondition(format!("the machine of {name} has not ended within {minutes} minutes"))
        .evidence(format!("group {group}: {name} is drained and cordoned; no other host is touched"))
        .evidence(why)
        .hint(format!("end the machine of {name} where it was made (docs/day-by-day.md#node-groups)"))
}

fn does_not_come(group: &str, template: &str, limit: Duration, reasons: &[String]) -> Error {
    let message = format!("no new host of the group {group} became Ready within {limit:?}; no other host is touched");
    let error = reasons.iter().take(8).fold(Error::precondition(message), Error::evidence);
    error.evidence(format!("new hosts are of the template {template}")).hint(
        "look at the console of the new machine, or on it: journalctl -u turnup-node -u kubelet; correct the configuration; turnup provision; then end that machine",
    )
}

/// What a plan says of one host.
fn describe(group: &str, node: &GroupMember, template: &str, is_drained: bool, at_once: usize) -> Change {
    let drained = if is_drained { "drained" } else { "cordoned" };
    let lines = vec![
        format!("of the group {group}: {drained} first, at most {at_once} at a time"),
        format!("-template {}", node.template.as_deref().unwrap_or("of an older turnup")),
        format!("+template {template}"),
    ];
    Change::new(Verb::Replace, "host", &node.name).with_lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::renewal::NodeHealth;

    fn member(template: Option<&str>) -> GroupMember {
        GroupMember {
            name: "web-1".into(),
            template: template.map(str::to_owned),
            boot_id: "b".into(),
            health: NodeHealth::Ready,
            is_cordoned: true,
            is_retired: true,
        }
    }

    #[test]
    fn what_stops_a_renewal_says_what_is_touched_and_how_to_go_on() {
        let reasons = ["web-4 is not Ready", "1 of 3 hosts are away"].map(str::to_owned);
        let errors = [
            does_not_end("web", &member(Some("aaaaaaaaaaaa"))),
            does_not_end("web", &member(None)),
            does_not_come("web", "bbbbbbbbbbbb", Duration::from_mins(15), &reasons),
            no_controller("aws-cloud-controller-manager"),
        ];
        insta::assert_snapshot!(errors.map(|error| error.render()).join("\n\n"));
    }

    #[test]
    fn a_plan_names_each_host_and_how_it_goes() {
        let change = describe("web", &member(None), "bbbbbbbbbbbb", true, 2);
        let told = [
            "of the group web: drained first, at most 2 at a time",
            "-template of an older turnup",
            "+template bbbbbbbbbbbb",
        ];
        assert_eq!(
            (change.to_string().as_str(), change.lines.as_slice()),
            ("replace host web-1", &told.map(str::to_owned)[..])
        );
    }
}
