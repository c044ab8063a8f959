//! The members of etcd, asked and told by the etcdctl of this host with its own certificate, which
//! every member believes. Each change is a run of a program, and so a failpoint.

use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::exec::Run;

use super::super::etcdctl::{ANSWER, flags, parse};
use super::decide::{ClusterView, ListedMember, PeerAnswer};

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
        let listed: ListAnswer = parse(&self.run(&["member", "list"]).succeed()?.stdout)?;
        let ListAnswer { header, members } = listed;
        let member = |member: Member| ListedMember {
            id: member.id,
            name: member.name,
            peer_urls: member.peer_urls,
            client_urls: member.client_urls,
            is_learner: member.is_learner,
        };
        let members = members.into_iter().map(member).collect();
        Ok(Membership { cluster: header.cluster_id, member: header.member_id, members })
    }

    /// What each of them says of itself, of those that answer: etcdctl fails when one does not.
    fn statuses(&self) -> Result<Vec<PeerAnswer>> {
        let said = self.run(&["endpoint", "status"]).output();
        let text = match &said {
            Ok(output) => output.stdout.as_str(),
            Err(failure) => failure.ended().stdout.as_str(),
        };
        // `null` where none does.
        let statuses: Option<Vec<EndpointAnswer>> = parse(text)?;
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
        match self.run(&["member", "promote", &format!("{id:x}")]).succeed() {
            Ok(_) => Ok(true),
            Err(error) if says(&error, "in sync with leader") => Ok(false),
            Err(error) if says(&error, "can only promote a learner member") => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn run(&self, words: &[&str]) -> Run {
        let words = [&flags(&self.endpoints)[..], &["--write-out=json"], words].concat();
        Run::new(self.program).args(words).dir("/").timeout(ANSWER)
    }
}

/// etcd's words (its `api/v3rpc/rpctypes`), wherever etcdctl has them.
pub(super) fn says(error: &Error, words: &str) -> bool {
    error.message().contains(words) || error.evidence_lines().iter().any(|line| line.contains(words))
}

#[derive(Deserialize)]
struct ListAnswer {
    header: Header,
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Header {
    cluster_id: u64,
    #[serde(default)]
    member_id: u64,
}

#[derive(Deserialize)]
struct Member {
    #[serde(rename = "ID")]
    id: u64,
    #[serde(default)]
    name: String,
    #[serde(rename = "peerURLs", default)]
    peer_urls: Vec<String>,
    #[serde(rename = "clientURLs", default)]
    client_urls: Vec<String>,
    #[serde(rename = "isLearner", default)]
    is_learner: bool,
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
