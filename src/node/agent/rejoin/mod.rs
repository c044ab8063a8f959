//! A member of etcd that lost its data is a voter again, with no run of turnup: look at the host
//! and ask the other members, decide ([`decide`], pure), do one thing, look again. Each thing can
//! be cut off at any instant; what is there says what comes next.

mod cluster;
mod decide;
mod record;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::failpoint;

use super::super::disk::mounted_at;
use super::super::etcd_answers::ListedMember;
use super::super::etcd_data::{self, OwnData};
use super::super::etcd_joiner::{self, Joiner};
use super::super::etcd_restore::OwnMember;
use super::super::layout;
use super::super::node_config::NodeConfig;
use super::super::static_pod;
use cluster::AskedMembers;
use decide::{RejoinStep, Seen, decide};
use record::{EtcdRecord, RecordedMember};

/// How often a member that is well says who the others are: they come and go.
const REMEMBER: Duration = Duration::from_mins(5);
/// How long kubelet may take until etcd runs, before it is restarted.
const STARTS: Duration = Duration::from_secs(15);
/// The same before it is restarted again.
const RESTARTED: Duration = Duration::from_mins(2);
/// How long something that listens takes to accept.
const CONNECT: Duration = Duration::from_secs(1);

/// What a round came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RejoinOutcome {
    /// This is no matter of a member without data.
    Nothing,
    /// One thing is done or awaited, and the next comes soon.
    Going(String),
    /// The member votes again.
    Joined(String),
    /// It does not go on by itself.
    Blocked(String),
}

/// What the agent remembers between two rounds.
#[derive(Debug, Default)]
pub(super) struct Rejoin {
    /// Until when kubelet, which was told, may take to start etcd with the data that a learner got.
    kubelet_told: Option<Instant>,
    /// When the other members were last remembered.
    remembered: Option<Instant>,
    /// Since when the data are known to be gone.
    since: Option<Instant>,
    /// The learner that was started last: one that has to be started again has ended by itself.
    started: Option<u64>,
}

/// This host's member, as the node config has it.
struct OwnPlace<'a> {
    node_config: &'a NodeConfig,
    member: OwnMember,
    joiner: Joiner<'a>,
    name: &'a str,
    peer_url: &'a str,
}

impl<'a> OwnPlace<'a> {
    fn find(node_config: &'a NodeConfig) -> Option<Self> {
        let member = OwnMember::of(node_config)?;
        let manifest = static_pod::find_manifest(node_config, "etcd")?;
        let flag = |name: &str| static_pod::find_flag(manifest, name);
        let (name, peer_url) = (flag("name")?, flag("initial-advertise-peer-urls")?);
        let joiner = Joiner { manifest, snapshotter: &node_config.runtime.snapshotter };
        Some(Self { node_config, member, joiner, name, peer_url })
    }

    fn directory(&self) -> &Path {
        self.member.directory()
    }

    fn data(&self) -> OwnData {
        let path = self.directory().display().to_string();
        // An empty directory where a disk is to be says nothing about the disk.
        let is_away = self.node_config.mounts.iter().any(|mount| mount.path == path)
            && !mounted_at(&path).is_ok_and(|device| device.is_some());
        if is_away {
            return OwnData::Unknown(format!("nothing is mounted at {path}"));
        }
        etcd_data::find_data(self.directory(), self.name)
    }

    fn joining(&self, id: u64) -> PathBuf {
        etcd_data::joining(self.directory(), id)
    }

    /// Whether something accepts connections where the others reach this member.
    fn listens(&self) -> bool {
        let address = static_pod::find_peer_address(self.node_config);
        address.is_some_and(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
    }
}

/// Whether this host has a member of etcd, and that has no data.
pub(super) fn lacks_data(member: &OwnMember) -> bool {
    !etcd_data::has_log(&member.data())
}

impl Rejoin {
    /// While this host's member is well: who the others are. Returns whether it is a learner, which
    /// calls itself well, too: the agent may have been killed before it let it vote.
    pub(super) fn remember(&mut self, program: &Path) -> Result<bool> {
        if self.remembered.is_some_and(|last| last.elapsed() < REMEMBER) {
            return Ok(false);
        }
        let listed = match AskedMembers::at(program, &[layout::ETCD_ENDPOINT.to_owned()]).list() {
            Err(error) if error.says("not supported for learner") => return Ok(true),
            listed => listed?,
        };
        // One that comes is remembered once it is there.
        if listed.members.iter().any(|member| member.is_learner || member.client_urls.is_empty()) {
            return Ok(false);
        }
        let others = listed.members.into_iter().filter(|member| member.id != listed.member);
        let other = |member: ListedMember| RecordedMember { name: member.name, client_urls: member.client_urls };
        EtcdRecord::new(listed.cluster, listed.member, others.map(other).collect()).keep(Path::new(record::FILE))?;
        self.remembered = Some(Instant::now());
        Ok(false)
    }

    /// Whether this host's member has lost its data, and does not vote again yet.
    pub(super) const fn is_under_way(&self) -> bool {
        self.since.is_some()
    }

    /// One look and at most one step, for a member that is not well or has no data.
    pub(super) fn round(&mut self, node_config: &NodeConfig, program: &Path) -> RejoinOutcome {
        let _inside = failpoint::within(format_args!("rejoin"));
        let Some(own) = OwnPlace::find(node_config) else { return RejoinOutcome::Nothing };
        let known = EtcdRecord::find(Path::new(record::FILE));
        let endpoints = known.as_ref().map(EtcdRecord::endpoints).filter(|endpoints| !endpoints.is_empty());
        let others = endpoints.map(|endpoints| AskedMembers::at(program, &endpoints));
        let seen = self.look(&own, known.as_ref(), others.as_ref());
        if seen.data == OwnData::Empty {
            self.since.get_or_insert_with(Instant::now);
        }
        let step = decide(&seen);
        match self.act(&own, others.as_ref(), &step) {
            Ok(outcome) => outcome,
            Err(error) => RejoinOutcome::Going(describe_failure(&error)),
        }
    }

    fn look(&self, own: &OwnPlace<'_>, known: Option<&EtcdRecord>, others: Option<&AskedMembers<'_>>) -> Seen {
        let peer_url = own.peer_url.to_owned();
        let joining = etcd_data::find_joining(own.directory());
        let joiner = joining.keys().copied().find(|id| etcd_joiner::runs_in(&own.joining(*id)));
        let ask = |others: &AskedMembers<'_>| others.view(&peer_url).map_err(|error| reason(&error));
        let others = others.map_or_else(|| Err("this host knows none of them".to_owned()), ask);
        Seen {
            name: own.name.to_owned(),
            known: known.and_then(EtcdRecord::known),
            data: own.data(),
            runs: own.member.is_running(),
            listens: own.listens(),
            joining,
            joiner,
            others,
            kubelet_told: self.kubelet_told.is_some_and(|until| Instant::now() < until),
            peer_url,
        }
    }

    fn act(
        &mut self,
        own: &OwnPlace<'_>,
        others: Option<&AskedMembers<'_>>,
        step: &RejoinStep,
    ) -> Result<RejoinOutcome> {
        let others = || others.ok_or_else(|| Error::bug("members of etcd are changed that were not asked"));
        let going = |what: String| Ok(RejoinOutcome::Going(what));
        match step {
            RejoinStep::Nothing => {
                (self.since, self.kubelet_told) = (None, None);
                Ok(RejoinOutcome::Nothing)
            }
            RejoinStep::Wait(why) => going(why.clone()),
            RejoinStep::Report(why) => Ok(RejoinOutcome::Blocked(why.clone())),
            RejoinStep::Remove(id) => {
                effect("remove the member", || others()?.remove(*id))?;
                going(format!("etcd has lost its data: the member {id:x} that it was is removed"))
            }
            RejoinStep::Add => {
                effect("add a learner", || others()?.add_learner(own.name, own.peer_url))?;
                going("etcd has lost its data: this host is added as a learner".into())
            }
            RejoinStep::StartJoiner { id, initial_cluster } => {
                effect("start the learner", || own.joiner.start(&own.joining(*id), initial_cluster))?;
                if self.started.replace(*id) != Some(*id) {
                    return going(format!("the learner {id:x} of etcd gets its data from the other members"));
                }
                let said = etcd_joiner::last_words().join(" / ");
                going(format!("the learner {id:x} of etcd had ended by itself and is started again: {said}"))
            }
            RejoinStep::StopJoiner(id) => {
                effect("stop the learner", etcd_joiner::stop)?;
                going(format!("the learner {id:x} of etcd is stopped"))
            }
            RejoinStep::MoveIn(id) => {
                effect("move the data in", || etcd_data::move_in(own.directory(), &own.joining(*id)))?;
                going(format!("the data of the learner {id:x} are where etcd has its data"))
            }
            RejoinStep::TellKubelet => {
                let again = self.kubelet_told.is_some();
                let tell = || if again { own.member.restart_kubelet() } else { own.member.forget_failed() };
                effect("tell kubelet", tell)?;
                self.kubelet_told = Some(Instant::now() + if again { RESTARTED } else { STARTS });
                going("kubelet starts etcd with the data that its learner got".into())
            }
            RejoinStep::Promote(id) => {
                if !effect("promote the learner", || others()?.promote(*id))? {
                    return going(format!("the learner {id:x} of etcd has not all data yet"));
                }
                (self.remembered, self.kubelet_told) = (None, None);
                let time =
                    self.since.take().map(|since| format!(", {} s after that was seen", since.elapsed().as_secs()));
                Ok(RejoinOutcome::Joined(format!(
                    "etcd had lost its data: its member joined again as {id:x} and votes{}",
                    time.unwrap_or_default()
                )))
            }
        }
    }
}

fn effect<T>(what: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
    failpoint::around(format_args!("{what}"), act)
}

fn describe_failure(error: &Error) -> String {
    format!("etcd has lost its data, and joins again once this is over: {}", reason(error))
}

/// Why, with the last line of evidence, which is what the program itself said.
fn reason(error: &Error) -> String {
    let evidence = error.evidence_lines().last().map(|line| format!(": {line}"));
    format!("{}{}", error.message(), evidence.unwrap_or_default())
}

#[cfg(test)]
#[path = "wipes_tests.rs"]
mod wipes;
