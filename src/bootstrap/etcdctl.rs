//! What etcd is asked and told about its members: by etcdctl on a control-plane host, with that
//! host's own certificate.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::{Class, Context as _, Error, Result};
use crate::inventory::{Host, Inventory};
use crate::node::etcd_answers::{ListedMember, is_promoted};
use crate::node::etcd_api::API_SERVERS;
use crate::node::layout;
use crate::phase::Cx;

use super::etcd_members::{Member, MemberStart, Members};
use super::host_connection::HostConnection;

/// How long it may take, and how it answers.
const FLAGS: [&str; 3] = ["--dial-timeout=3s", "--command-timeout=10s", "--write-out=json"];

/// How long the members may take to come together again.
const TOGETHER: Duration = Duration::from_secs(40);

/// Whether what etcd lists is this member.
fn is_of(listed: &ListedMember, member: &Member) -> bool {
    listed.name == member.name || listed.peer_urls == [member.peer_url()]
}

/// etcd, asked on one of its hosts.
pub(super) struct Etcdctl<'a> {
    connection: HostConnection<'a>,
    cx: &'a Cx,
}

impl<'a> Etcdctl<'a> {
    /// On the first host of these members whose etcd answers, which it does only as part of a
    /// majority.
    pub(super) fn find(cluster: &Cluster, inventory: &'a Inventory, members: &Members, cx: &'a Cx) -> Result<Self> {
        let mut error = Error::transient("no member of etcd answers, so none can come or go");
        let counts = |host: &&Host| members.get(&host.name).is_ok_and(|member| member.start != MemberStart::Joining);
        for host in inventory.control_planes().filter(counts) {
            match Self::at(cluster, host, cx) {
                Ok(etcd) => return Ok(etcd),
                Err(why) => error = error.evidence(format!("{}: {}", host.name, why.message())),
            }
            cx.check()?;
        }
        Err(error.hint("start the hosts of the control plane again, more than half of them; then: turnup up; when they are lost: turnup restore"))
    }

    fn at(cluster: &Cluster, host: &'a Host, cx: &'a Cx) -> Result<Self> {
        let etcd = Self { connection: HostConnection::new(cluster, host, cx)?, cx };
        etcd.list().map(|_| etcd)
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        self.run_at(layout::ETCD_ENDPOINT, words)
    }

    fn run_at(&self, url: &str, words: &[&str]) -> Result<String> {
        let program = [layout::ETCDCTL, "--endpoints", url];
        self.connection.run(&[&program[..], &layout::ETCD_CLIENT, &FLAGS, words].concat())
    }

    /// Changes who is a member. etcd refuses that until all who count have been together for some
    /// seconds, which they are soon after the change before (`ErrUnhealthy`,
    /// `ErrNotEnoughStartedMembers` of its `api/v3rpc/rpctypes`). Nor does it answer in time while
    /// they elect a leader; what was asked for may be done by then (`ErrMemberNotFound`,
    /// `ErrPeerURLExist`).
    fn change(&self, words: &[&str]) -> Result<()> {
        let (since, mut may_be_done) = (Instant::now(), false);
        loop {
            let answer = self.run(&[&["member"], words].concat());
            let is_late = answer.as_ref().is_err_and(|error| error.says("deadline exceeded"));
            match answer {
                Err(error)
                    if may_be_done && (error.says("member not found") || error.says("Peer URLs already exists")) =>
                {
                    return Ok(());
                }
                Err(error)
                    if is_late || error.says("unhealthy cluster") || error.says("not enough started members") =>
                {
                    may_be_done |= is_late;
                    if since.elapsed() > TOGETHER {
                        return Err(Error::transient("etcd did not reach quorum").source(error));
                    }
                }
                other => return other.map(drop),
            }
            self.cx.sleep(Duration::from_millis(500))?;
        }
    }

    /// Forgets which API servers there are. Each that lives says so again within ten seconds
    /// (`--lease-reuse-duration` and the interval of `pkg/controlplane/reconcilers`).
    pub(super) fn forget_api_servers(&self) -> Result<()> {
        self.run(&["del", "--prefix", API_SERVERS]).map(drop)
    }

    fn list(&self) -> Result<Vec<ListedMember>> {
        parse(&self.run(&["member", "list"])?)
    }

    /// Takes these out; those whom etcd does not know are out already.
    pub(super) fn remove(&self, gone: &[Member]) -> Result<()> {
        let mut all = self.list()?;
        all.retain(|listed| gone.iter().any(|member| is_of(listed, member)));
        self.take_lead_from(&all)?;
        // Whom a majority still needs can go only after those that are dead.
        while !all.is_empty() {
            let (mut waiting, mut refused) = (Vec::new(), None);
            let count = all.len();
            for listed in all {
                self.cx.progress(format!("taking {} out of etcd", listed.name));
                match self.change(&["remove", &format!("{:x}", listed.id)]) {
                    Ok(()) => {}
                    Err(error) if error.class() == Class::Transient => {
                        refused = Some(error);
                        waiting.push(listed);
                    }
                    Err(error) => return Err(error),
                }
            }
            match refused {
                Some(error) if waiting.len() == count => return Err(error),
                _ => all = waiting,
            }
        }
        Ok(())
    }

    /// A leader that is removed may be gone before the last one that is left has heard of it, which
    /// then waits for it for ever.
    fn take_lead_from(&self, gone: &[ListedMember]) -> Result<()> {
        let status: Value =
            serde_json::from_str(&self.run(&["endpoint", "status"])?).context("etcdctl does not answer with JSON")?;
        let id = |pointer: &str| status.pointer(pointer).and_then(Value::as_u64);
        let leader = gone.iter().find(|listed| Some(listed.id) == id("/0/Status/leader"));
        if let (Some(leader), Some(own)) = (leader, id("/0/Status/header/member_id")) {
            self.run_at(&leader.client_urls.join(","), &["move-leader", &format!("{own:x}")])?;
        }
        Ok(())
    }

    /// Tells the others where a member is, when it is elsewhere than it was.
    pub(super) fn settle(&self, members: &Members) -> Result<()> {
        for listed in self.list()? {
            let known = members.all.iter().find(|member| member.name == listed.name);
            if let Some(member) = known.filter(|member| listed.peer_urls != [member.peer_url()]) {
                let url = format!("--peer-urls={}", member.peer_url());
                self.change(&["update", &format!("{:x}", listed.id), &url])?;
            }
        }
        Ok(())
    }

    /// Takes one more in, whom etcd does not count until it has all data; its id.
    pub(super) fn admit(&self, member: &Member) -> Result<u64> {
        let url = format!("--peer-urls={}", member.peer_url());
        self.change(&["add", &member.name, &url, "--learner"])?;
        self.find_id(member)?.ok_or_else(|| Error::transient(format!("etcd has not taken {} in", member.name)))
    }

    /// The id of one that was taken in already.
    pub(super) fn find_id(&self, member: &Member) -> Result<Option<u64>> {
        Ok(self.list()?.iter().find(|listed| is_of(listed, member)).map(|listed| listed.id))
    }

    /// From now on it counts; false as long as it has not all data yet.
    pub(super) fn promote(&self, id: u64) -> Result<bool> {
        is_promoted(self.run(&["member", "promote", &format!("{id:x}")]))
    }
}

fn parse(answer: &str) -> Result<Vec<ListedMember>> {
    let mut answer: Value = serde_json::from_str(answer).context("etcdctl does not answer with JSON")?;
    serde_json::from_value(answer["members"].take()).context("etcdctl does not answer with members")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    /// What etcdctl 3.6 prints: one member runs, one was taken in and has not started.
    const LIST: &str = r#"{"header": {"cluster_id": 1, "member_id": 2, "raft_term": 3}, "members": [
        {"ID": 16104538364210341, "name": "a", "peerURLs": ["https://10.0.0.1:2380"], "clientURLs": ["https://10.0.0.1:2379"]},
        {"ID": 17446744073709551615, "peerURLs": ["https://10.0.0.2:2380"], "isLearner": true}]}"#;

    fn member(name: &str, address: &str) -> Member {
        let (name, address) = (name.into(), address.parse().unwrap());
        Member { name, address, instance: String::new(), start: MemberStart::Joining, first: Vec::new() }
    }

    #[test]
    fn a_member_is_known_by_its_name_or_before_it_has_started_by_its_address() {
        let listed = parse(LIST).unwrap();
        assert_eq!(listed[1].id, 17_446_744_073_709_551_615, "all 64 bits");
        let known = |member: &Member| listed.iter().map(|listed| is_of(listed, member)).collect::<Vec<_>>();
        assert_eq!(known(&member("a", "10.0.0.9")), [true, false]);
        assert_eq!(known(&member("b", "10.0.0.2")), [false, true]);
        assert_eq!(known(&member("b", "10.0.0.3")), [false, false]);
        assert!(parse("{}").is_err() && parse("Error: no").is_err());
    }

    #[test]
    fn etcds_words_are_found_wherever_they_are() {
        let error = Error::transient("ssh failed")
            .evidence("etcdserver: can only promote a learner member which is in sync with leader");
        assert!(error.says("in sync with leader") && !error.says("not found"));
    }
}
