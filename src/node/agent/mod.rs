//! `turnup node agent`: keeps this host as the node config says that was applied to it last.
//!
//! A loop without a runtime: look at the host ([`observe`]), decide ([`decide`], pure), do one
//! thing, say how it stands ([`status`]), wait a minute. It holds the host's lock from the look to
//! the end of the repair, and does nothing while another one has it: an operator's run and the
//! agent never work on a host together.
//!
//! It repairs, and never upgrades: it knows no other node config than the applied one. What the
//! operator's run left half done, and what only an operator can bring (a private key), it reports.
//! On hosts with a member of etcd it also cares for that ([`etcd`], [`etcd_care`]), and makes it a
//! voter again where it has lost its data ([`rejoin`]). It renews the host's certificates where the
//! keys of authorities are ([`renewal`]). On hosts of node groups it powers a machine off that is
//! told to end ([`retire`]). It tells the Node its machine ([`machine`]). A thread beside it takes
//! API servers of hosts that are gone out of the endpoints ([`api_servers`]). Programs that watch
//! ask [`metrics`]. It never starts, stops or restarts its own unit, which would wait for its own
//! end.

mod api_servers;
mod decide;
mod etcd;
mod etcd_care;
mod etcdctl;
mod machine;
mod metrics;
mod observe;
mod own_node;
mod rejoin;
mod renewal;
mod retire;
mod status;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::error::{Context as _, Error, Result};
use crate::exec::signals;
use crate::failpoint;

use super::digests::Digests;
use super::etcd_restore::OwnMember;
use super::identity;
use super::node_config::NodeConfig;
use super::up::{self, Delivery, Trigger};
use api_servers::ApiServerWatch;
use decide::{Attempts, HostAction, Observation, PATIENT, decide, pause_after, pause_while_going};
use etcd_care::{Care, EtcdCare};
use machine::MachineNote;
use metrics::{Counts, Metrics};
use renewal::CertificateRenewal;
use retire::Retirement;
use status::{FILE, HostState, StatusFile, one_line};

pub(crate) use renewal::{CertificateSource, renew_now};
pub(crate) use retire::RETIRE;
pub(crate) use status::{AgentStatus, PastRepair};

/// Between two looks whether etcd has its data and whether this machine is to end, in a pause.
const WATCH: Duration = Duration::from_secs(5);

/// Looks after this host until a signal comes. What it finds and does goes to `out`, a line each.
/// Its member of etcd is defragmented in the interval, if there is one; `certificates` renews those
/// of the host, where it is to renew them.
///
/// # Errors
/// That its status cannot be written, or `out`.
pub(crate) fn run(
    defragment_every: Option<Duration>,
    certificates: Option<Box<dyn CertificateSource>>,
    out: &mut dyn Write,
) -> Result<()> {
    let (start, path) = (Instant::now(), Path::new(FILE));
    let interval = defragment_every.and_then(|every| SignedDuration::try_from(every).ok());
    let mut host = ThisHost::new(interval, certificates);
    let mut agent = Agent { status: AgentStatus::read_or_default(path), ..Agent::over(&mut host, out) };
    let (mut file, metrics) = (StatusFile::new(path), Metrics::serve());
    let mut round = || -> Result<()> {
        let (clock, since) = (Timestamp::now(), Instant::now());
        agent.look_after(start.elapsed(), clock)?;
        file.write(&agent.status)?;
        let news = metrics.update(&agent.status, agent.counts, clock, since.elapsed());
        news.iter().try_for_each(|line| agent.tell(line))?;
        agent.wait()
    };
    loop {
        match round() {
            // To be stopped is no failure of the unit.
            Err(_) if signals::interrupted() => return Ok(()),
            ended => ended?,
        }
    }
}

/// What the agent needs of its host.
trait Host {
    /// A look at it, with the lock held until `release`; `Busy` where another one has that.
    fn observe(&mut self) -> Result<Observation>;
    /// Puts right what the last look found.
    fn repair(&mut self) -> Result<()>;
    /// Renews those of its certificates that are due, after a look that found nothing else; which
    /// these were, and nothing where it is not looked.
    fn renew_certificates(&mut self) -> Option<Result<Vec<String>>>;
    /// Gives kubelet another client certificate where its own has ended; whether it got one.
    fn revive_kubelet(&mut self) -> Result<bool>;
    /// Whether the API is asked for a certificate.
    fn awaits_certificate(&self) -> bool;
    /// Tells its Node which machine it is, where that lacks it; what was written.
    fn note_machine(&mut self) -> Result<Option<String>>;
    /// A round of care for its member of etcd, after a look that found nothing else.
    fn care_for_etcd(&mut self, clock: Timestamp) -> Care;
    /// Whether its member of etcd has lost its data, and does not vote again yet.
    fn is_rejoining(&self) -> bool;
    /// Whether that member has lost its data since the last look; this asks no lock.
    fn has_lost_data(&self) -> bool;
    /// What was done beside the looks, and is not told yet.
    fn take_news(&mut self) -> Vec<String>;
    /// Whether this machine is told to end.
    fn is_to_end(&mut self) -> bool;
    /// Powers it off; false where that has to wait.
    fn power_off(&mut self) -> Result<bool>;
    /// Lets go of the lock.
    fn release(&mut self);
}

struct ThisHost {
    digests: Digests,
    etcd: EtcdCare,
    /// Where it is wanted.
    renewal: Option<CertificateRenewal>,
    turn: Option<fs_err::File>,
    node_config: Option<NodeConfig>,
    /// Its member of etcd, while the last look found data of it.
    member: Option<OwnMember>,
    machine: MachineNote,
    retirement: Retirement,
    api_servers: ApiServerWatch,
}

impl ThisHost {
    fn new(defragment_every: Option<SignedDuration>, certificates: Option<Box<dyn CertificateSource>>) -> Self {
        Self {
            digests: Digests::default(),
            etcd: EtcdCare::new(defragment_every),
            renewal: certificates.map(CertificateRenewal::new),
            turn: None,
            node_config: None,
            member: None,
            machine: MachineNote::default(),
            retirement: Retirement::default(),
            api_servers: ApiServerWatch::default(),
        }
    }
}

impl Host for ThisHost {
    fn observe(&mut self) -> Result<Observation> {
        self.turn = up::try_turn()?;
        if self.turn.is_none() {
            return Ok(Observation::Busy);
        }
        let (seen, node_config) = observe::observe(&self.digests)?;
        self.api_servers.follow(node_config.as_ref());
        let member = node_config.as_ref().and_then(OwnMember::of);
        self.member = member.filter(|member| !rejoin::lacks_data(member));
        self.node_config = node_config;
        Ok(seen)
    }

    fn repair(&mut self) -> Result<()> {
        let Some(node_config) = self.node_config.take() else { return Ok(()) };
        let _inside = failpoint::within(format_args!("agent"));
        up::run_alone(Delivery::of(node_config), Trigger::Agent, &mut std::io::sink())
    }

    fn renew_certificates(&mut self) -> Option<Result<Vec<String>>> {
        let _inside = failpoint::within(format_args!("agent"));
        self.renewal.as_mut()?.round(self.node_config.as_ref()?)
    }

    fn revive_kubelet(&mut self) -> Result<bool> {
        let _inside = failpoint::within(format_args!("agent"));
        let (Some(renewal), Some(node_config)) = (&mut self.renewal, &self.node_config) else { return Ok(false) };
        renewal.revive_kubelet(node_config)
    }

    fn awaits_certificate(&self) -> bool {
        self.renewal.as_ref().is_some_and(CertificateRenewal::is_waiting)
    }

    fn note_machine(&mut self) -> Result<Option<String>> {
        self.node_config.as_ref().map_or(Ok(None), |node_config| self.machine.write(node_config))
    }

    fn care_for_etcd(&mut self, clock: Timestamp) -> Care {
        let _inside = failpoint::within(format_args!("agent"));
        let Some(node_config) = &self.node_config else { return Care::Well };
        let kept = identity::keep(node_config);
        match (self.etcd.round(node_config, clock), kept) {
            (Care::Well, Err(error)) => {
                Care::Problem(format!("the identity of this host is not kept on its volume: {}", error.message()))
            }
            (care, _) => care,
        }
    }

    fn is_rejoining(&self) -> bool {
        let member = self.node_config.as_ref().and_then(OwnMember::of);
        self.etcd.is_rejoining() || member.is_some_and(|member| rejoin::lacks_data(&member))
    }

    fn has_lost_data(&self) -> bool {
        self.member.as_ref().is_some_and(rejoin::lacks_data)
    }

    fn take_news(&mut self) -> Vec<String> {
        self.api_servers.take_news()
    }

    fn is_to_end(&mut self) -> bool {
        self.retirement.is_due()
    }

    fn power_off(&mut self) -> Result<bool> {
        retire::power_off()
    }

    fn release(&mut self) {
        (self.turn, self.node_config) = (None, None);
    }
}

struct Agent<'a> {
    host: &'a mut dyn Host,
    status: AgentStatus,
    attempts: Attempts,
    /// How many rounds in a row something was on its way that needs the next look soon.
    going: u32,
    /// How many rounds in a row the API was asked for a certificate.
    waiting: u32,
    /// Why certificates that are due were not renewed.
    unrenewed: Option<String>,
    /// Why kubelet has no client certificate that is valid.
    unrevived: Option<String>,
    counts: Counts,
    out: &'a mut dyn Write,
}

impl<'a> Agent<'a> {
    /// One that knows nothing of this host yet.
    fn over(host: &'a mut dyn Host, out: &'a mut dyn Write) -> Self {
        let (status, attempts, counts) = (AgentStatus::default(), Attempts::default(), Counts::default());
        Self { host, status, attempts, going: 0, waiting: 0, unrenewed: None, unrevived: None, counts, out }
    }

    /// One look and at most one repair; `now` is counted from the agent's start.
    fn look_after(&mut self, now: Duration, clock: Timestamp) -> Result<()> {
        let ended = self.observe_and_act(now, clock);
        self.host.release();
        ended
    }

    fn observe_and_act(&mut self, now: Duration, clock: Timestamp) -> Result<()> {
        self.counts.looks += 1;
        let seen = match self.host.observe() {
            Ok(seen) => seen,
            // A signal ends the agent; all else is a matter of this one look.
            Err(error) => return self.fail("the host cannot be looked at", &[], &error),
        };
        match decide(seen, &mut self.attempts, now) {
            HostAction::Stay(HostState::AsDeclared, None) => {
                self.renew_certificates()?;
                self.revive_kubelet()?;
                // The API server may be away: the next look asks again.
                if let Ok(Some(noted)) = self.host.note_machine() {
                    self.tell(&noted)?;
                }
                self.care_for_etcd(clock)
            }
            HostAction::Stay(state, problem) => {
                self.going = 0;
                self.stay(state, problem)
            }
            HostAction::Postpone(losses) => {
                self.revive_kubelet()?;
                self.postpone(losses)?;
                // What else is lost here may be lost because etcd is.
                if self.host.is_rejoining() { self.care_for_etcd(clock) } else { Ok(()) }
            }
            HostAction::Repair(losses) => {
                self.going = u32::from(self.host.is_rejoining());
                self.revive_kubelet()?;
                if self.host.awaits_certificate() && self.waiting < PATIENT {
                    // A kubelet whose certificate has ended does not stay up: to wait for that
                    // would take longer than the answer.
                    return self.stay(HostState::Unrepaired, Some("the API is asked for a certificate".to_owned()));
                }
                self.repair(losses, now, clock)
            }
        }
    }

    /// Until the next look: a minute, or less where something is on its way or etcd loses its data.
    fn wait(&mut self) -> Result<()> {
        self.waiting = if self.host.awaits_certificate() { self.waiting.saturating_add(1) } else { 0 };
        if self.going > 0 || self.waiting > 0 {
            return signals::sleep(pause_while_going(self.going.max(self.waiting)));
        }
        let until = Instant::now() + pause_after(RandomState::new().hash_one(()));
        loop {
            for line in self.host.take_news() {
                self.tell(&line)?;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.host.has_lost_data() {
                return Ok(());
            }
            if self.host.is_to_end() {
                self.retire()?;
            }
            signals::sleep(left.min(WATCH))?;
        }
    }

    /// What fails now is tried again at the next look.
    fn retire(&mut self) -> Result<()> {
        self.tell("its Node says that this machine is to end, for another one in its place")?;
        match self.host.power_off() {
            Ok(true) => self.tell("powering off"),
            Ok(false) => self.tell("not yet: turnup works on it"),
            Err(error) => {
                signals::check()?;
                self.tell(&format!("it cannot be powered off: {}", error.in_one_line()))
            }
        }
    }

    fn care_for_etcd(&mut self, clock: Timestamp) -> Result<()> {
        let cared = self.host.care_for_etcd(clock);
        self.going = match cared {
            Care::Going(_) => self.going.saturating_add(1),
            // The other members may be well again at any time.
            Care::Problem(_) if self.host.is_rejoining() => PATIENT,
            _ => 0,
        };
        let problem = match cared {
            Care::Well => None,
            Care::Done(what) => {
                self.tell(&what)?;
                None
            }
            Care::Repaired(what) => {
                self.tell(&format!("repaired: {what}"))?;
                self.remember(clock, vec![what]);
                None
            }
            Care::Problem(why) | Care::Going(why) => Some(one_line(&why)),
        };
        match (problem, self.unrevived.clone().or_else(|| self.unrenewed.clone())) {
            (None, None) => self.stay(HostState::AsDeclared, None),
            (None, Some(why)) => self.stay(HostState::Unrepaired, Some(why)),
            (Some(problem), _) => self.stay(HostState::EtcdUnwell, Some(problem)),
        }
    }

    fn renew_certificates(&mut self) -> Result<()> {
        match self.host.renew_certificates() {
            None => Ok(()),
            Some(Ok(renewed)) => {
                self.unrenewed = None;
                renewed.iter().try_for_each(|path| self.tell(&format!("renewed the certificate {path}")))
            }
            Some(Err(error)) => {
                signals::check()?;
                self.unrenewed = Some(one_line(&format!("certificates are not renewed: {}", error.message())));
                Ok(())
            }
        }
    }

    fn revive_kubelet(&mut self) -> Result<()> {
        match self.host.revive_kubelet() {
            Ok(revived) => {
                self.unrevived = None;
                let told = "kubelet got another client certificate: its own had ended";
                if revived { self.tell(told) } else { Ok(()) }
            }
            Err(error) => {
                signals::check()?;
                let why = format!("kubelet's client certificate has ended and is not renewed: {}", error.message());
                self.unrevived = Some(one_line(&why));
                Ok(())
            }
        }
    }

    /// After a repair that failed it is known why; after one that did not last, it is to be said.
    fn postpone(&mut self, mut losses: Vec<String>) -> Result<()> {
        if self.status.state != HostState::Unrepaired {
            let why = "it was put right and lost again: another program changes it";
            self.tell(why)?;
            losses.push(why.to_owned());
            (self.status.state, self.status.problems) = (HostState::Unrepaired, losses);
        }
        Ok(())
    }

    fn stay(&mut self, state: HostState, problem: Option<String>) -> Result<()> {
        // While turnup works here, what was known before says more than that.
        if state == HostState::Busy && self.status.state != HostState::Unconfigured {
            return Ok(());
        }
        let problems: Vec<String> = problem.into_iter().collect();
        if self.status.state != state || self.status.problems != problems {
            self.tell(state.words())?;
            problems.iter().try_for_each(|problem| self.tell(problem))?;
            (self.status.state, self.status.problems) = (state, problems);
        }
        Ok(())
    }

    fn repair(&mut self, losses: Vec<String>, now: Duration, clock: Timestamp) -> Result<()> {
        for loss in &losses {
            self.tell(&format!("found: {loss}"))?;
        }
        let repaired = self.host.repair();
        self.attempts.note(&losses, now);
        match repaired {
            Ok(()) => {
                self.tell("repaired")?;
                self.remember(clock, losses);
                (self.status.state, self.status.problems) = (HostState::AsDeclared, Vec::new());
                Ok(())
            }
            Err(error) => {
                self.counts.failed_repairs += 1;
                self.fail("a repair failed", &losses, &error)
            }
        }
    }

    fn remember(&mut self, clock: Timestamp, losses: Vec<String>) {
        self.counts.repairs += 1;
        self.status.add(clock, losses);
    }

    fn fail(&mut self, what: &str, losses: &[String], error: &Error) -> Result<()> {
        signals::check()?;
        let why = one_line(&format!("{what}: {}", error.message()));
        let mut problems = losses.to_vec();
        problems.push(why.clone());
        if self.status.state != HostState::Unrepaired || self.status.problems != problems {
            self.tell(&why)?;
            for line in error.evidence_lines() {
                self.tell(&format!("  {line}"))?;
            }
        }
        (self.status.state, self.status.problems) = (HostState::Unrepaired, problems);
        Ok(())
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{}", one_line(line)).context("cannot write")?;
        self.out.flush().context("cannot write")
    }
}

#[cfg(test)]
mod tests;
