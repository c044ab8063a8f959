//! The members of etcd, asked and told by the etcdctl of this host with its own certificate, which
//! every member believes. Each change is a run of a program, and so a failpoint.

use std::path::Path;

use serde::Deserialize;

use crate::error::Result;
use crate::exec::Run;

use super::super::super::etcd_answers::{ListedMember, is_promoted};
use super::super::etcdctl::{ANSWER, flags, parse, stdout_of};
use super::decide::{ClusterView, PeerAnswer};

/// Members that are asked.
pub(super) struct AskedMembers<'a> {
    program: &'a Path,
    endpoints: String,
}

/// What a member answers with its list.
pub(super) struct Membership {
    pub(super) cluster: u64,
    /// The member that answered.
    pub(super) member: u64,
    pub(super) members: Vec<ListedMember>,
}

impl<'a> AskedMembers<'a> {
    /// Those at these URLs.
    pub(super) fn at(program: &'a Path, urls: &[String]) -> Self {
        Self { program, endpoints: format!("--endpoints={}", urls.join(",")) }
    }

    /// The members, as a majority knows them: etcd gives the list by no other word.
    pub(super) fn list(&self) -> Result<Membership> {
        let ListAnswer { header, members } = parse(&self.run(&["member", "list"]).succeed()?.stdout)?;
        Ok(Membership { cluster: header.cluster_id, member: header.member_id, members })
    }

    /// What each of them says of itself, of those that answer: etcdctl fails when one does not.
    fn statuses(&self) -> Result<Vec<PeerAnswer>> {
        // `null` where none does.
        let statuses: Option<Vec<EndpointAnswer>> = parse(&stdout_of(self.run(&["endpoint", "status"])))?;
        let answer = |EndpointAnswer { status }: EndpointAnswer| PeerAnswer {
            id: status.header.member_id,
            cluster: status.header.cluster_id,
            leader: status.leader,
            is_well: status.errors.is_empty(),
        };
        Ok(statuses.into_iter().flatten().map(answer).collect())
    }

    /// The members, and what those but the one at this address say of themselves.
    pub(super) fn view(&self, own_peer_url: &String) -> Result<ClusterView> {
        let Membership { cluster, members, .. } = self.list()?;
        let others = members.iter().filter(|member| !member.peer_urls.contains(own_peer_url));
        let urls: Vec<String> = others.flat_map(|member| member.client_urls.clone()).collect();
        let answers = if urls.is_empty() { Vec::new() } else { Self::at(self.program, &urls).statuses()? };
        Ok(ClusterView { cluster, members, answers })
    }

    pub(super) fn remove(&self, id: u64) -> Result<()> {
        self.run(&["member", "remove", &format!("{id:x}")]).succeed().map(drop)
    }

    /// As one that does not count.
    pub(super) fn add_learner(&self, name: &str, peer_url: &str) -> Result<()> {
        let url = format!("--peer-urls={peer_url}");
        self.run(&["member", "add", name, &url, "--learner"]).succeed().map(drop)
    }

    /// From now on it counts; false as long as it has not all data yet.
    pub(super) fn promote(&self, id: u64) -> Result<bool> {
        is_promoted(self.run(&["member", "promote", &format!("{id:x}")]).succeed())
    }

    fn run(&self, words: &[&str]) -> Run {
        let words = [&flags(&self.endpoints)[..], &["--write-out=json"], words].concat();
        Run::new(self.program).args(words).dir("/").timeout(ANSWER)
    }
}

#[derive(Deserialize)]
struct ListAnswer {
    header: Header,
    #[serde(default)]
    members: Vec<ListedMember>,
}

#[derive(Deserialize)]
struct Header {
    cluster_id: u64,
    #[serde(default)]
    member_id: u64,
}

#[derive(Deserialize)]
struct EndpointAnswer {
    #[serde(rename = "Status")]
    status: MemberAnswer,
}

#[derive(Deserialize)]
struct MemberAnswer {
    header: Header,
    #[serde(default)]
    leader: u64,
    #[serde(default)]
    errors: Vec<String>,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// What etcdctl 3.6 prints where b is away and c was taken in and has not started. It notes
    /// its words.
    const ETCDCTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
echo "$*" | sed 's| *--[a-z-]*timeout=[^ ]*||g; s|--c[a-z]*=[^ ]*||g; s|--key=[^ ]*||g; s|  *| |g' >>done
case " $* " in
  *" member list "*) echo '{"header": {"cluster_id": 18446744073709551615, "member_id": 10, "raft_term": 3}, "members": [
    {"ID": 10, "name": "a", "peerURLs": ["https://10.0.0.1:2380"], "clientURLs": ["https://10.0.0.1:2379"]},
    {"ID": 11, "name": "b", "peerURLs": ["https://10.0.0.2:2380"], "clientURLs": ["https://10.0.0.2:2379"]},
    {"ID": 12, "peerURLs": ["https://10.0.0.3:2380"], "isLearner": true}]}' ;;
  *" endpoint status "*)
    echo 'Failed to get the status of endpoint https://10.0.0.2:2379 (context deadline exceeded)' >&2
    echo '[{"Endpoint": "https://10.0.0.1:2379", "Status": {"header": {"cluster_id": 18446744073709551615, "member_id": 10,
      "revision": 4, "raft_term": 3}, "version": "3.6.16", "dbSize": 20480, "leader": 10, "raftIndex": 9}}]'
    exit 1 ;;
  *" member promote c "*) echo 'Error: etcdserver: can only promote a learner member which is in sync with leader' >&2; exit 1 ;;
  *" member promote b "*) echo 'Error: etcdserver: can only promote a learner member' >&2; exit 1 ;;
  *" member promote a "*) echo 'Error: etcdserver: member not found' >&2; exit 1 ;;
esac
"#;

    #[test]
    fn members_are_asked_and_told_by_etcdctl() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("etcdctl");
        fs_err::write(&program, ETCDCTL).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let asked = AskedMembers::at(&program, &["https://10.0.0.1:2379".into(), "https://10.0.0.2:2379".into()]);
        let view = asked.view(&"https://10.0.0.3:2380".to_owned()).unwrap();
        assert_eq!((view.cluster, view.members.len()), (u64::MAX, 3), "all 64 bits");
        let learner = &view.members[2];
        assert_eq!((learner.id, learner.is_learner, learner.name.as_str()), (12, true, ""));
        assert!(learner.client_urls.is_empty());
        let answer = PeerAnswer { id: 10, cluster: u64::MAX, leader: 10, is_well: true };
        assert_eq!(view.answers, [answer], "one that does not answer hides no other one");
        asked.remove(255).unwrap();
        asked.add_learner("c", "https://10.0.0.3:2380").unwrap();
        assert!(asked.promote(14).unwrap());
        assert!(!asked.promote(12).unwrap(), "it has not all data yet");
        assert!(asked.promote(11).unwrap(), "it votes already");
        assert!(asked.promote(10).is_err());
        insta::assert_snapshot!(fs_err::read_to_string(dir.path().join("done")).unwrap());
    }
}
