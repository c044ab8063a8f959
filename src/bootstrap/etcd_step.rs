//! The step `etcd-members`, which decides who the members of etcd are, and what starting one of
//! their hosts means for etcd.
//!
//! At first all start at once, because none is ready before a majority is. Later they restart one
//! at a time: while one restarts, the others go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::change::{Change, Preview, Verb};
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::inventory::Host;
use crate::node::etcd_data::{JOINING, WAL};
use crate::node::etcd_first_start::EtcdStart;
use crate::phase::{Action, Check, Cx, Inputs};
use crate::unknown;

use super::backup;
use super::control_plane::{ETCD_DIR, ETCD_DISK};
use super::etcd_members::{FILE, FoundingStage, Member, MemberStart, Members};
use super::etcdctl::Etcdctl;
use super::firewall;
use super::host_connection::HostConnection;
use super::node_config::file_of;
use super::node_context::NodeContext;
use super::rolling_lock::write_members;

/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Who the members are.
pub(super) struct EtcdMembers(pub(super) NodeContext);

impl EtcdMembers {
    /// What is to be written down, and who has to go before.
    fn plan(&self, known: Option<Members>, has_data: &dyn Fn(&Host) -> Result<bool>) -> Result<(Members, Vec<Member>)> {
        let inventory = &self.0.inventory;
        let known = match known {
            Some(known) => known,
            None => Members::recover(inventory, &self.find_data(has_data)?),
        };
        known.plan(inventory, has_data)
    }

    fn known(&self) -> Result<Option<Members>> {
        Members::find(&self.0.cluster.store)
    }

    /// Hosts with etcd's data, of those on which etcd may have been started.
    fn find_data(&self, has_data: &dyn Fn(&Host) -> Result<bool>) -> Result<Vec<&str>> {
        let mut found = Vec::new();
        for host in self.0.inventory.control_planes() {
            if self.0.cluster.store.read(file_of(&host.name))?.is_some() && has_data(host)? {
                found.push(host.name.as_str());
            }
        }
        Ok(found)
    }
}

impl Action for EtcdMembers {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let host = |host: &Host| (format!("host {}", host.name), format!("{} {}", host.address, host.instance));
        let mut inputs = Inputs::new();
        inputs.extend(self.0.inventory.control_planes().map(host));
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let gone = |why: &str| Ok(Check::Drifted(format!("{FILE} {why}")));
        match self.known()? {
            None => gone("is missing"),
            // An unknown machine changes the plan whatever it would answer, so no host is asked.
            Some(known) if self.plan(Some(known.clone()), &|_| Ok(false))?.0 != known => {
                gone("has other members than the inventory")
            }
            Some(_) => Ok(Check::Ok),
        }
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        let known = self.known()?;
        let (next, left) =
            self.plan(known.clone(), &|host| has_data(&HostConnection::for_proof(&self.0.cluster, host)?, host))?;
        let is_known = |member: &&Member| known.iter().flat_map(|known| &known.all).any(|old| old == *member);
        let change = |verb, member: &Member| Change::new(verb, "etcd member", &member.name);
        let gone = left.iter().map(|member| change(Verb::Delete, member));
        let come = next.all.iter().filter(|member| !is_known(member)).map(|member| change(Verb::Create, member));
        Ok(gone.chain(come).collect::<Vec<_>>().into())
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let NodeContext { cluster, inventory, .. } = &self.0;
        let (next, left) =
            self.plan(self.known()?, &|host| has_data(&HostConnection::new(cluster, host, cx)?, host))?;
        if !left.is_empty() {
            backup::before_change(cluster, inventory, &next, cx)?;
            Etcdctl::find(cluster, inventory, &next, cx)?.remove(&left)?;
        }
        write_members(cluster, &next)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        let (next, _) = self.plan(self.known()?, &|host| Ok(came_along(host)))?;
        write_members(&self.0.cluster, &next).map(|()| true)
    }
}

/// Whether the data of a member is on a disk of its own, which is where its host is.
fn came_along(host: &Host) -> bool {
    host.etcd_disk().is_some()
}

/// The same, asked on the host where it may be there although it is taken for another machine,
/// because of another SSH key.
fn has_data(connection: &HostConnection<'_>, host: &Host) -> Result<bool> {
    if came_along(host) || unknown::is_in(&host.instance) {
        return Ok(came_along(host));
    }
    holds_data(connection)
}

/// Whether the host's etcd has ever started, as far as its disk is mounted.
fn holds_data(connection: &HostConnection<'_>) -> Result<bool> {
    has_log(connection, &["data"])
}

/// Whether a write-ahead log is in a directory of etcd's by one of these patterns. An empty
/// directory is none: the runtime makes it where data are gone.
fn has_log(connection: &HostConnection<'_>, patterns: &[&str]) -> Result<bool> {
    let logs = |dir| patterns.iter().map(move |pattern| format!("{dir}/{pattern}/{WAL}/*.wal"));
    let logs: Vec<String> = [ETCD_DIR, ETCD_DISK].into_iter().flat_map(logs).collect();
    let question = format!("ls -d {} 2>/dev/null || true", logs.join(" "));
    Ok(!connection.run(&["sh", "-c", &question])?.trim().is_empty())
}

/// etcd never takes a member back that it has forgotten.
fn forgotten(host: &str) -> Error {
    Error::precondition(format!("{host} has the data of a member that etcd has forgotten"))
        .evidence("it was off the list of hosts for a while, and the others went on without it")
        .hint(format!(
            "turnup reset {host}; then: turnup up (what is on a disk of etcd's own has to be erased by hand)"
        ))
}

/// Removes the members on these hosts, which are to be reset; the others go on. When no member is
/// left, there is no etcd to remove them from.
pub(super) fn take_out(cluster: &Cluster, hosts: &[&Host], cx: &Cx) -> Result<()> {
    let (Some(mut members), inventory) = (Members::find(&cluster.store)?, cluster.inventory()?) else { return Ok(()) };
    let goes = |member: &Member| hosts.iter().any(|host| host.name == member.name);
    let (left, stay): (Vec<Member>, _) = members.all.into_iter().partition(goes);
    members.all = stay;
    if members.stage == FoundingStage::Established && !left.is_empty() && !members.all.is_empty() {
        backup::before_change(cluster, &inventory, &members, cx)?;
        let etcd = Etcdctl::find(cluster, &inventory, &members, cx)?;
        // After a kill in between it is unknown which are removed already: a member that stays
        // after all has to join as a new one.
        let doubtful = left.iter().map(|member| Member { start: MemberStart::Joining, ..member.clone() });
        let mut meanwhile = members.clone();
        meanwhile.all.extend(doubtful);
        write_members(cluster, &meanwhile)?;
        etcd.remove(&left)?;
    }
    if left.is_empty() { Ok(()) } else { write_members(cluster, &members) }
}

/// Before all hosts are deleted with all data: where that is killed half-way, the next `turnup up`
/// asks the hosts that are left which of them have data, and does not look for members that were
/// given up.
pub fn give_up(cluster: &Cluster) -> Result<()> {
    cluster.store.remove(FILE)
}

/// The same before Terraform takes these hosts away for ever. Refused where all data would go with
/// them, or where etcd cannot be told.
pub(super) fn before_host_removal(cluster: &Cluster, hosts: &[&Host], cx: &Cx) -> Result<()> {
    let inventory = cluster.inventory()?;
    let goes = |name: &str| hosts.iter().any(|host| host.name == name);
    let was_started = |host: &Host| Ok(cluster.store.read(file_of(&host.name))?.is_some());
    match Members::find(&cluster.store)? {
        Some(members) if members.stage == FoundingStage::Started => return Err(members.unfinished(&inventory)),
        Some(members)
            if members.stage == FoundingStage::Established && members.all.iter().all(|member| goes(&member.name)) =>
        {
            return Err(Error::config("all hosts of the control plane would go, and all data of etcd with them").hint(
                "set the configuration back; or give the data up, with the configuration as it was: turnup down",
            ));
        }
        None if hosts.iter().map(|host| was_started(host)).collect::<Result<Vec<bool>>>()?.contains(&true) => {
            return Err(Error::precondition(format!("{FILE} is missing, so the members of etcd are unknown")).hint(
                "set the configuration back; turnup bootstrap (reads the members from the hosts and recreates it); then change it again",
            ));
        }
        _ => {}
    }
    take_out(cluster, hosts, cx).map_err(|error| match error.class() {
        // Waiting for etcd is done already; Terraform need not be asked again and again meanwhile.
        Class::Transient => {
            let advised = Error::precondition(error.message()).evidence_of(error.evidence_lines());
            advised.hint(error.next().unwrap_or("turnup status"))
        }
        _ => error,
    })
}

/// Starts etcd's host as its member's history demands it. `bring_up` is told how the member
/// starts for the first time, where it has not.
pub(super) fn start(
    node: &NodeContext,
    host: &Host,
    cx: &Cx,
    bring_up: impl FnOnce(Option<EtcdStart>) -> Result<()> + Send,
) -> Result<()> {
    let (cluster, rolling_lock) = (&*node.cluster, &*node.rolling_lock);
    let members = Members::read(cluster, &node.inventory)?;
    let first_start = members.get(&host.name)?.first_start();
    let settle = |members: &mut Members| members.settle(&host.name);
    if members.stage != FoundingStage::Established {
        rolling_lock.change(cluster, |members| members.stage = members.stage.max(FoundingStage::Started))?;
        bring_up(first_start)?;
        return rolling_lock.change(cluster, |members| {
            members.stage = FoundingStage::Established;
            settle(members);
        });
    }
    if first_start.is_none() {
        require_data(cluster, host, members.all.len(), cx)?;
    }
    if members.all.len() == 1 {
        bring_up(first_start)?;
        return rolling_lock.change(cluster, settle);
    }
    let _turn = rolling_lock.take(cluster, &host.name, cx)?;
    admit_address(node, host, cx);
    let members = Members::read(cluster, &node.inventory)?;
    let member = members.get(&host.name)?;
    let others = members.without(&host.name);
    let etcd = Etcdctl::find(cluster, &node.inventory, &others, cx);
    if member.start != MemberStart::Joining {
        match etcd {
            Ok(etcd) => etcd.settle(&members)?,
            // It may be the very one that the others wait for.
            Err(error) => cx.progress(error.message()),
        }
        bring_up(first_start)?;
        return rolling_lock.change(cluster, settle);
    }
    let etcd = etcd?;
    etcd.settle(&members)?;
    let connection = HostConnection::new(cluster, host, cx)?;
    let id = match etcd.find_id(member)? {
        Some(id) => id,
        // Also those of a learner that was cut off.
        None if has_log(&connection, &["data", &format!("{JOINING}*")])? => return Err(forgotten(&host.name)),
        None => etcd.admit(member)?,
    };
    join(&etcd, (member, id), &connection, cx, || bring_up(first_start))?;
    cx.progress(format!("{} is a member of etcd", member.name));
    rolling_lock.change(cluster, settle)
}

/// A member without the data that it had is not started: not even kubelet does that, for which
/// `node::etcd_first_start` says why. A disk of etcd's own may not be mounted yet.
fn require_data(cluster: &Cluster, host: &Host, members: usize, cx: &Cx) -> Result<()> {
    if came_along(host) || holds_data(&HostConnection::new(cluster, host, cx)?)? {
        return Ok(());
    }
    Err(lost_data(&host.name, members))
}

fn lost_data(host: &str, members: usize) -> Error {
    let error = Error::precondition(format!("{host} has lost the data of its member of etcd"))
        .evidence("a member that starts again with none may lose what it has confirmed, or form another cluster");
    if members == 1 {
        return error.hint("turnup restore (from a backup); or, to give all data up: turnup down");
    }
    error.hint(format!(
        "turnup status (its agent makes it a member again, or says why not); in place of that: turnup reset {host}, then: \
         turnup up; when most members are lost: turnup restore"
    ))
}

/// Admits this host's address in the nftables rules of the other members before its etcd connects
/// to them: their own turns may come later, and wait for this one. A host that cannot be reached
/// does not stop the run: etcd does without a minority.
fn admit_address(node: &NodeContext, host: &Host, cx: &Cx) {
    let load = |other: &Host| match firewall::rules_of(&node.cluster, &node.inventory, other)? {
        Some(rules) => HostConnection::new(&node.cluster, other, cx)?.replace_firewall(firewall::FILE, &rules),
        None => Ok(()),
    };
    for other in node.inventory.control_planes().filter(|other| other.name != host.name) {
        if let Err(error) = load(other) {
            cx.progress(format!(
                "cannot admit {} in the nftables rules of {}: {}",
                host.name,
                other.name,
                error.message()
            ));
        }
    }
}

/// Whether the static pod of etcd runs there. A learner that gets its data for it has another
/// directory.
fn runs_member(connection: &HostConnection<'_>) -> Result<bool> {
    // The words of this command do not match themselves.
    let words = [ETCD_DIR, ETCD_DISK].map(|dir| format!("--regexp='[-]-data-dir={dir}/dat[a]'")).join(" ");
    let question = format!("grep --text --files-with-matches {words} /proc/[0-9]*/cmdline 2>/dev/null || true");
    Ok(!connection.run(&["sh", "-c", &question])?.trim().is_empty())
}

/// One more member. It is healthy only when it counts, and counts only when it runs and has all
/// data: both go on side by side. It counts not before its static pod runs, so that etcd has its
/// majority while a learner hands over to it.
fn join(
    etcd: &Etcdctl<'_>,
    (member, id): (&Member, u64),
    connection: &HostConnection<'_>,
    cx: &Cx,
    bring_up: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let promoting = scope.spawn(|| {
            let mut runs = false;
            loop {
                let is_last = is_over.load(Ordering::SeqCst);
                runs = runs || is_last || runs_member(connection).unwrap_or_default();
                if !runs {
                    cx.sleep(RETRY_INTERVAL)?;
                    continue;
                }
                match etcd.promote(id) {
                    Ok(true) => return Ok(()),
                    Ok(false) if is_last => {
                        return Err(Error::transient(format!("{} has not all data of etcd yet", member.name)));
                    }
                    Err(error) if is_last => return Err(error),
                    _ => cx.sleep(RETRY_INTERVAL)?,
                }
            }
        });
        let up = bring_up();
        is_over.store(true, Ordering::SeqCst);
        let promoted = promoting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        up.and(promoted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_data_lead_to_the_others_or_to_a_backup() {
        insta::assert_snapshot!(lost_data("h1", 3).render() + "\n" + &lost_data("h0", 1).render());
    }
}
