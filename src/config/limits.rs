//! Lifetimes, time limits and port ranges that do not fit together, and what encryption by a key
//! service needs. Pure: it judges values.

use std::time::Duration;

use super::format::parse_duration;
use super::ports;
use super::problem::Problem;
use super::relations::words;
use super::values::Values;

const LEAF: &str = "phase2.pki.leaf_lifetime";
const AUTHORITY: &str = "phase2.pki.ca_lifetime";
const TOKEN: &str = "phase2.pki.token_lifetime";
const HOST: &str = "phase2.host_timeout";
const PHASE: &str = "phase2.timeout";
const ADDONS: &str = "phase3.timeout";
const PARALLEL: &str = "phase2.parallel_hosts";
const DAY: Duration = Duration::from_hours(24);

/// Everything that is wrong with them.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = check_lifetimes(facts);
    problems.extend(check_times(facts));
    problems.extend(check_room(facts));
    problems.extend(check_node_ports(facts));
    problems.extend(check_authority(facts));
    problems.extend(check_key_service(facts));
    problems.extend(check_key_type(facts));
    problems.extend(check_memory(facts));
    problems
}

fn life<'f>(facts: &'f Values<'_, '_>, name: &str) -> Option<(&'f str, Duration)> {
    let text = facts.text(name)?;
    Some((text, parse_duration(text)?))
}

fn check_lifetimes(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some((text, leaf)) = life(facts, LEAF) {
        if leaf < DAY {
            problems
                .push(Problem::of(LEAF, format!("{text} is less than a day (24h): nothing renews them that often")));
        }
        if let Some((of_authority, _)) = life(facts, AUTHORITY).filter(|(_, authority)| leaf >= *authority) {
            problems.push(Problem::of(LEAF, format!("{text} must be shorter than {of_authority} ({AUTHORITY})")));
        }
    }
    if let Some((text, token)) = life(facts, TOKEN) {
        if token > DAY {
            problems.push(Problem::of(TOKEN, format!("{text} is more than a day (24h)")));
        }
        if let Some((limit, _)) = life(facts, HOST).filter(|(_, host)| token < *host) {
            let why = format!("{text} is shorter than {limit} ({HOST}), in which a host must have used its token");
            problems.push(Problem::of(TOKEN, why));
        }
    }
    problems
}

fn check_times(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in [HOST, PHASE, ADDONS] {
        if let Some((text, _)) = life(facts, name).filter(|(_, limit)| *limit < Duration::from_mins(1)) {
            problems.push(Problem::of(name, format!("{text} is less than a minute (1m)")));
        }
    }
    if let (Some((text, host)), Some((whole, phase))) = (life(facts, HOST), life(facts, PHASE))
        && host > phase
    {
        problems.push(Problem::of(HOST, format!("{text} is longer than {whole} ({PHASE})")));
    }
    problems
}

/// A majority of etcd's members must start side by side.
fn check_room(facts: &Values<'_, '_>) -> Option<Problem> {
    let hosts = "phase1.control_plane.count";
    let (most, count) = (facts.number(PARALLEL)?, facts.number(hosts)?);
    let needed = count / 2 + 1;
    (most < needed).then(|| {
        Problem::of(PARALLEL, format!("of {count} members of etcd ({hosts}) {needed} must start together, not {most}"))
    })
}

/// Node ports leave those of control-plane hosts' own components, and SSH's, alone.
fn check_node_ports(facts: &Values<'_, '_>) -> Option<Problem> {
    let (first, last) = ("phase2.network.node_port_first", "phase2.network.node_port_last");
    let range = facts.number(first)?..=facts.number(last)?;
    for name in ["phase2.api_port", "phase1.ssh.port"] {
        if let Some(port) = facts.number(name).filter(|port| range.contains(port)) {
            return Some(Problem::of(
                first,
                format!("port {port} ({name}) lies within {} to {}", range.start(), range.end()),
            ));
        }
    }
    let (port, owner) = ports::find_taken(facts, &range)?;
    let shown = format!("{} to {}", range.start(), range.end());
    Some(Problem::of(first, format!("port {port} is taken by {owner} and lies within {shown}")))
}

/// Without its key the authority cannot sign, and every kubelet needs a certificate from it.
fn check_authority(facts: &Values<'_, '_>) -> Option<Problem> {
    let (name, certificate) = ("phase2.pki.ca_key_file", "phase2.pki.ca_cert_file");
    facts.text(certificate).filter(|file| !file.is_empty())?;
    facts.text(name).filter(|file| file.is_empty())?;
    Some(Problem::of(name, format!("the authority of {certificate} needs its key here")))
}

fn check_key_service(facts: &Values<'_, '_>) -> Vec<Problem> {
    const SHARED: [&str; 7] = ["/", "/etc", "/run", "/tmp", "/var", "/var/lib", "/var/run"];
    let name = "phase2.security.encryption_kms_endpoint";
    let Some(socket) = facts.text(name) else { return Vec::new() };
    let mut problems = Vec::new();
    let directory = socket.rsplit_once('/').map_or("", |(directory, _)| directory);
    let directory = if directory.is_empty() { "/" } else { directory };
    if SHARED.contains(&directory) {
        let why = format!(
            "{socket} lies in {directory}, all of which the API server would see; give it a directory of its own"
        );
        problems.push(Problem::of(name, why));
    }
    let files = facts.records("phase2.host.file_assets");
    let is_pod = |file: &serde_json::Value| {
        file.get("path")
            .and_then(serde_json::Value::as_str)
            .is_some_and(|path| path.starts_with("/etc/kubernetes/manifests/"))
    };
    if !files.iter().any(is_pod) {
        let message = format!(
            "{name}: no file of phase2.host.file_assets lies in /etc/kubernetes/manifests; \
             unless the plugin is a service of the hosts, bring it as a static pod: the API server starts only with it"
        );
        problems.push(Problem::notice(message).about(name));
    }
    problems
}

/// Suites of TLS 1.2 are for one kind of key.
fn check_key_type(facts: &Values<'_, '_>) -> Option<Problem> {
    let (name, keys) = ("phase2.security.tls_ciphers", "phase2.pki.key_algorithm");
    let (suites, algorithm) = (words(facts.text(name)?), facts.text(keys)?);
    let kind = if algorithm.starts_with("rsa") { "_RSA_" } else { "_ECDSA_" };
    let fitting = suites.is_empty() || suites.iter().any(|suite| suite.contains(kind));
    (!fitting).then(|| {
        Problem::of(name, format!("none of them works with keys of {algorithm} ({keys}); add one with {kind}"))
    })
}

/// kubelet starts with the static memory manager only when memory is reserved, in absolute numbers.
fn check_memory(facts: &Values<'_, '_>) -> Vec<Problem> {
    let name = "phase2.kubelet.memory_manager_policy";
    if facts.text(name) != Some("Static") {
        return Vec::new();
    }
    let memory = |setting: &str| {
        let pairs = words(facts.text(setting).unwrap_or_default());
        pairs.iter().find_map(|pair| pair.strip_prefix("memory=").map(str::to_owned))
    };
    let mut problems = Vec::new();
    if ["phase2.kubelet.system_reserved", "phase2.kubelet.kube_reserved"].iter().all(|one| memory(one).is_none()) {
        problems
            .push(Problem::of(name, "Static needs reserved memory; set phase2.kubelet.system_reserved=memory=512Mi"));
    }
    let hard = words(facts.text("phase2.kubelet.eviction_hard").unwrap_or_default());
    if hard.iter().any(|pair| pair.starts_with("memory.available=") && pair.ends_with('%')) {
        problems.push(Problem::of(
            name,
            "Static needs memory.available of phase2.kubelet.eviction_hard in bytes, not in percent",
        ));
    }
    problems
}
