//! etcd by the etcdctl of this host, with the host's own certificate: what the members say, and the
//! effects that `etcd` decides on. Each is a run of a program, and so a failpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Context as _, Error, Result};
use crate::exec::Run;

use super::super::etcd_answers::ListedMember;
use super::super::layout;
use super::super::node_config::NodeConfig;
use super::super::static_pod;
use super::etcd::{Alarm, EtcdMember, EtcdView};

/// How long it may take.
const TIMEOUTS: [&str; 2] = ["--dial-timeout=3s", "--command-timeout=10s"];
/// Below it is when each member was defragmented last. No key of Kubernetes begins so.
const DEFRAGMENTED: &str = "turnup/defragmented/";
/// The name of the lock with which one member at a time is defragmented.
const LOCK: &str = "turnup/defragment";
/// For what reads or writes a member of some gigabytes on a slow disk.
const REWRITE: Duration = Duration::from_mins(4);
/// The same for etcdctl.
const REWRITE_FLAG: &str = "--command-timeout=240s";
/// For all else.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// etcd's own quota, where the manifest names none.
const USUAL_QUOTA: u64 = 2 << 30;

/// The etcd of this host.
pub(super) struct OwnEtcd {
    program: PathBuf,
    quota: u64,
}

impl OwnEtcd {
    /// Where this node config has a member of etcd.
    pub(super) fn find(node_config: &NodeConfig) -> Option<Self> {
        let manifest = static_pod::find_manifest(node_config, "etcd")?;
        Some(Self { program: layout::ETCDCTL.into(), quota: quota_of(manifest) })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    #[cfg(test)]
    pub(super) const fn of(program: PathBuf) -> Self {
        Self { program, quota: USUAL_QUOTA }
    }

    /// What the members say, and the revision of the last change. A member that does not answer is
    /// one without a size.
    pub(super) fn view(&self) -> Result<(EtcdView, u64)> {
        let listed: Members = self.ask(&["member", "list"])?;
        let own = self.ask::<Vec<EndpointStatus>>(&["endpoint", "status"])?;
        let own =
            own.into_iter().next().ok_or_else(|| Error::transient("this host's member of etcd does not answer"))?;
        let all = self.statuses()?;
        let member = |member: ListedMember| {
            let said = all.iter().find(|one| one.status.header.member_id == member.id);
            let size = said.map(|one| (one.status.db_size, one.status.db_size_in_use));
            EtcdMember { id: member.id, name: member.name, size }
        };
        let view = EtcdView {
            own: own.status.header.member_id,
            leader: own.status.leader,
            members: listed.members.into_iter().map(member).collect(),
            alarms: self.ask::<Alarms>(&["alarm", "list"])?.alarms.into_iter().filter_map(ListedAlarm::read).collect(),
            quota: self.quota,
            defragmented: self.defragmented()?,
        };
        Ok((view, own.status.header.revision))
    }

    /// Of those that answer: etcdctl fails when one does not, and says what the others said.
    fn statuses(&self) -> Result<Vec<EndpointStatus>> {
        parse(&stdout_of(self.run(&["endpoint", "status", "--cluster"])))
    }

    fn defragmented(&self) -> Result<BTreeMap<String, Timestamp>> {
        let found: Keys = self.ask(&["get", "--prefix", DEFRAGMENTED])?;
        let text = |text: &str| String::from_utf8(STANDARD.decode(text).ok()?).ok();
        let entry = |key: &Key| {
            let name = text(&key.key)?.strip_prefix(DEFRAGMENTED)?.to_owned();
            Some((name, text(&key.value)?.parse().ok()?))
        };
        // What is none of ours counts as never.
        Ok(found.kvs.iter().filter_map(entry).collect())
    }

    /// Old versions of keys are forgotten on every member. Another agent may have done it.
    pub(super) fn compact(&self, revision: u64) -> Result<()> {
        let words = ["compact", "--physical", REWRITE_FLAG, &revision.to_string()];
        match self.run(&words).timeout(REWRITE).succeed() {
            Err(error) if error.evidence_lines().iter().any(|line| line.contains("has been compacted")) => Ok(()),
            other => other.map(drop),
        }
    }

    /// This host's member.
    pub(super) fn defragment(&self) -> Result<()> {
        self.run(&["defrag", REWRITE_FLAG]).timeout(REWRITE).succeed().map(drop)
    }

    /// The same while no other member is, and remembers when.
    pub(super) fn defragment_in_turn(&self, name: &str, now: Timestamp) -> Result<()> {
        let (program, endpoint) = (self.program.display().to_string(), endpoint());
        let own = [&[program.as_str()], &flags(&endpoint)[..], &["defrag", REWRITE_FLAG]].concat();
        self.run(&[&["lock", "--ttl=60", "--", LOCK], &own[..]].concat()).timeout(REWRITE).succeed()?;
        self.run(&["put", &format!("{DEFRAGMENTED}{name}"), &now.to_string()]).succeed().map(drop)
    }

    /// Writes are taken again.
    pub(super) fn disarm(&self) -> Result<()> {
        self.run(&["alarm", "disarm"]).succeed().map(drop)
    }

    fn ask<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        parse(&self.run(words).succeed()?.stdout)
    }

    fn run(&self, words: &[&str]) -> Run {
        let json = (!words.contains(&"lock")).then_some("--write-out=json");
        let endpoint = endpoint();
        let words = [&flags(&endpoint)[..], json.as_slice(), words].concat();
        Run::new(&self.program).args(words).dir("/").timeout(ANSWER)
    }
}

fn endpoint() -> String {
    format!("--endpoints={}", layout::ETCD_ENDPOINT)
}

/// Where it asks, with what it is believed there, and how long it may take.
pub(super) fn flags(endpoint: &str) -> Vec<&str> {
    [&[endpoint], &layout::ETCD_CLIENT[..], &TIMEOUTS].concat()
}

/// What it printed, also where it failed after that.
pub(super) fn stdout_of(run: Run) -> String {
    run.output().map_or_else(|failure| failure.ended().stdout.clone(), |output| output.stdout)
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text.trim()).context("etcdctl did not print JSON")
}

/// From the flag of its static pod.
fn quota_of(manifest: &Value) -> u64 {
    let quota = static_pod::find_flag(manifest, "quota-backend-bytes").and_then(|quota| quota.parse().ok());
    quota.filter(|quota| *quota > 0).unwrap_or(USUAL_QUOTA)
}

#[derive(Deserialize)]
struct Members {
    members: Vec<ListedMember>,
}

#[derive(Deserialize)]
struct EndpointStatus {
    #[serde(rename = "Status")]
    status: MemberStatus,
}

#[derive(Deserialize)]
struct MemberStatus {
    header: Header,
    #[serde(rename = "dbSize", default)]
    db_size: u64,
    #[serde(rename = "dbSizeInUse", default)]
    db_size_in_use: u64,
    #[serde(default)]
    leader: u64,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    member_id: u64,
    #[serde(default)]
    revision: u64,
}

#[derive(Deserialize)]
struct Alarms {
    #[serde(default)]
    alarms: Vec<ListedAlarm>,
}

#[derive(Deserialize)]
struct ListedAlarm {
    #[serde(rename = "memberID", default)]
    member: u64,
    #[serde(default)]
    alarm: u64,
}

impl ListedAlarm {
    /// `AlarmType` of etcd's `rpc.proto`.
    const fn read(self) -> Option<(u64, Alarm)> {
        match self.alarm {
            1 => Some((self.member, Alarm::NoSpace)),
            2 => Some((self.member, Alarm::Corrupt)),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Keys {
    #[serde(default)]
    kvs: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    key: String,
    #[serde(default)]
    value: String,
}
