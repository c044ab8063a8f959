//! The step `hosts`: all hosts are looked at before anything is changed anywhere, and all that is
//! wrong with any of them is said at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use crate::artifacts::Advisories;
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::exec::Run;
use crate::inventory::Host;
use crate::parallel;
use crate::phase::{Action, Check, Cx, Inputs};
use crate::provision::external_inventory;

use super::super::hosts::BareMetalHosts;
use super::checks::{Findings, Requirements, judge};
use super::probe::{HostReport, SCRIPT};

/// How many hosts are asked at once.
const AT_ONCE: usize = 32;
/// And where they are behind a jump host: its sshd refuses new connections while ten are logging in
/// (its `MaxStartups`).
const AT_ONCE_BEHIND: usize = 8;
/// How often a host that cannot be reached is asked.
const ROUNDS: u32 = 4;
/// For the answer, once there is a connection.
const ANSWER: Duration = Duration::from_secs(20);

/// The look at all hosts.
pub(in crate::provision::baremetal) struct Preflight(pub(in crate::provision::baremetal) Arc<BareMetalHosts>);

impl Action for Preflight {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let place = |host: &Host| {
            let disk = if host.etcd_device.is_empty() { String::new() } else { format!(" {}", host.etcd_device) };
            format!("{} {} {} {:?}{disk}\n", host.name, host.role.name(), host.address, host.ssh)
        };
        let hosts: String = self.0.inventory()?.hosts.iter().map(place).collect();
        let settings =
            self.0.cluster.inputs(&["phase1.ssh", "phase2.api_port", "phase2.proxy_mode", "phase3.kube_proxy"]);
        Ok(settings.with("hosts and ways to them", hosts))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        // What the hosts have become since is asked of each by bootstrap.
        Ok(Check::Ok)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let (cluster, inventory) = (&self.0.cluster, self.0.inventory()?);
        external_inventory::prepare_access(cluster, inventory, cx)?;
        require_key(cluster)?;
        let answers = ask_all(cluster, &inventory.hosts, cx)?;
        let seen = inventory.hosts.iter().zip(&answers);
        let seen: Vec<(&Host, HostReport)> =
            seen.filter_map(|(host, answer)| Some((host, answer.as_ref().ok()?.clone()))).collect();
        let settings = &cluster.settings;
        let selection = cluster.select_artifacts()?;
        let requirements = Requirements {
            api_port: settings.api_port,
            arch: std::env::consts::ARCH,
            nftables: settings.addons.uses_nftables(),
            network_policies: settings.addons.network_policies,
            pods: &settings.pod_cidr.to_string(),
            has_vxlan: settings.addons.has_vxlan(),
            runc: &selection.binary("runc")?.version,
            advisories: &Advisories::embedded()?,
        };
        let findings = judge(&seen, &requirements);
        for (text, names) in group(&findings.notes) {
            cx.progress(format!("{}: {text}", names.join(", ")));
        }
        report(&inventory.hosts, &answers, &findings)?;
        cx.progress(format!("{} hosts can become nodes", seen.len()));
        Ok(())
    }
}

/// The user's own key exists and can be used without a passphrase.
fn require_key(cluster: &Cluster) -> Result<()> {
    let access = &cluster.settings.access;
    let Some(key) = access.key.as_deref().filter(|_| !access.use_agent) else { return Ok(()) };
    let shown = key.display();
    if !key.is_file() {
        let error = Error::config(format!("phase1.ssh.private_key_file: {shown} is no file"));
        return Err(error.hint("turnup config set phase1.ssh.private_key_file=FILE"));
    }
    unlock(key)
}

/// Asks for the public half with no passphrase. What ssh would only call "Permission denied" has a
/// reason here.
fn unlock(key: &Path) -> Result<()> {
    let run = Run::new("ssh-keygen").args(["-y", "-P", "", "-f"]).arg(key).dir("/");
    let Err(failure) = run.output() else { return Ok(()) };
    let (shown, said) = (key.display(), failure.stderr().to_owned());
    let error = Error::precondition(format!("the private key {shown} cannot be used"));
    let error = said.lines().map(str::trim).filter(|line| !line.is_empty()).fold(error, Error::evidence);
    Err(if said.contains("passphrase") {
        error
            .hint(format!("ssh-add {shown} && turnup config set phase1.ssh.use_agent=y, or a key without a passphrase"))
    } else if said.contains("too open") {
        error.hint(format!("chmod 600 {shown}"))
    } else {
        error.hint("turnup config set phase1.ssh.private_key_file=FILE (the private half, in the form of OpenSSH)")
    })
}

/// What each host says, in their order. Those that did not answer, or not to the end, are asked
/// again, and no others.
fn ask_all(cluster: &Cluster, hosts: &[Host], cx: &Cx) -> Result<Vec<Result<HostReport>>> {
    let behind = hosts.iter().any(|host| host.ssh.jump.is_some());
    let at_once = if behind { AT_ONCE_BEHIND } else { AT_ONCE };
    let (total, done) = (hosts.len() as u64, AtomicU64::new(0));
    let mut answers: Vec<Result<HostReport>> =
        hosts.iter().map(|_| Err(Error::transient("was not asked: the time is over"))).collect();
    let mut pause = Duration::from_secs(1);
    for round in 0..ROUNDS {
        let open: Vec<usize> = (0..hosts.len()).filter(|at| is_passing(&answers[*at])).collect();
        if open.is_empty() || (round > 0 && cx.remaining() < pause + cluster.settings.access.connect_timeout) {
            break;
        }
        if round > 0 {
            cx.progress(format!(
                "{} of {total} hosts did not answer: tried again in {} s",
                open.len(),
                pause.as_secs()
            ));
            cx.sleep(pause)?;
            pause *= 2;
        }
        let asked = parallel::map(&open, at_once, |at| {
            let answer = ask(cluster, &hosts[*at], cx);
            if !is_passing(&answer) {
                cx.count(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            }
            answer
        });
        cx.check()?;
        for (at, answer) in open.into_iter().zip(asked) {
            answers[at] = answer;
        }
    }
    Ok(answers)
}

/// Whether another attempt may succeed: the connection failed, or ended in the middle of the
/// answer.
fn is_passing(answer: &Result<HostReport>) -> bool {
    match answer {
        Ok(report) => !report.whole,
        Err(error) => error.class() == Class::Transient,
    }
}

fn ask(cluster: &Cluster, host: &Host, cx: &Cx) -> Result<HostReport> {
    let limit = (cluster.settings.access.connect_timeout * 2 + ANSWER).min(cx.remaining());
    let ssh = cluster.ssh(host)?.log(cx.log_path()).timeout(limit).single();
    let before = Timestamp::now();
    let output = ssh.run(&["sh", "-c", SCRIPT, "look", &host.etcd_device])?;
    Ok(HostReport::parse(&output.stdout, before, Timestamp::now()))
}

/// One error of everything, or none. Only errors of a connection, which may pass, are worth another
/// attempt.
fn report(hosts: &[Host], answers: &[Result<HostReport>], findings: &Findings) -> Result<()> {
    let mut faults = Vec::new();
    let mut class = Class::Transient;
    let mut hint = None;
    for (host, answer) in hosts.iter().zip(answers) {
        if let Err(error) = answer {
            if error.class() != Class::Transient {
                class = Class::Precondition;
            }
            faults.push((host.name.clone(), describe(error)));
            hint = hint.or_else(|| error.next().map(str::to_owned));
        }
        faults.extend(findings.faults.iter().filter(|(name, _)| *name == host.name).cloned());
    }
    if faults.is_empty() {
        return Ok(());
    }
    if !findings.faults.is_empty() {
        class = Class::Precondition;
    }
    let mut names: Vec<&str> = faults.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let message = format!("{} of {} hosts cannot become nodes as they are", names.len(), hosts.len());
    let error = group(&faults).into_iter().fold(Error::new(class, message), |error, (text, names)| {
        error.evidence(format!("{}: {text}", names.join(", ")))
    });
    // With one reason the way out of it is the next command.
    let only = hint.filter(|_| faults.len() == 1);
    Err(error.hint(only.unwrap_or_else(|| "correct it on these hosts, or take them off the list".into())))
}

/// Each text once, with all hosts that it is about, in the order in which they came.
fn group(findings: &[(String, String)]) -> Vec<(&str, Vec<&str>)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, text) in findings {
        let at = *places.entry(text).or_insert(groups.len());
        if at == groups.len() {
            groups.push((text, Vec::new()));
        }
        groups[at].1.push(name);
    }
    groups
}

/// The error as a part of a longer one: its message, what was said last, and the way out.
fn describe(error: &Error) -> String {
    let mut text = error.message().to_owned();
    let said = error.evidence_lines().iter().rev().find(|line| !line.starts_with("log: ") && !line.starts_with("$ "));
    if let Some(said) = said.filter(|said| !text.contains(said.as_str())) {
        text = format!("{text}: {said}");
    }
    match error.next() {
        Some(hint) => format!("{}; {hint}", text.trim_end_matches('.')),
        None => text,
    }
}
