//! What a cluster has become, as far as that is the same each time: two that were turned up by
//! different ways can be compared.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use turnup::artifacts::Digest;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::cluster_support::{Site, names_in};

/// On the operator's side: what is not ours, what tells the way and not the end, and the hosts,
/// which are looked at by themselves.
const OPERATOR_LEAVES_OUT: [&str; 9] = [
    "events",
    "hosts",
    "journal.jsonl",
    "lock",
    "logs",
    "provision/.terraform",
    "provision/terraform.tfstate.backup",
    "provision/turnup.tfplan",
    "validate",
];
/// On a host: what runs, what is logged, what systemd, pods and the agent (in its first minute)
/// remember for themselves, and the sweep's own failpoint log.
const HOST_LEAVES_OUT: [&str; 12] = [
    "etc/machine-id",
    "run",
    "tmp",
    "var/cache",
    "var/lib/cni",
    "var/lib/dbus",
    "var/lib/private",
    "var/lib/systemd",
    "var/lib/turnup/etcd.json",
    "var/log",
    "var/tmp",
    "root/.kube",
];
/// Files of kubelet and containerd that turnup made or asked for; the rest of their directories is
/// their own.
const HOST_BOUND: [&str; 3] = ["kubelet/pki", "kubelet/config.yaml", "containerd/turnup"];
/// A namespace in which `turnup validate` looks whether the cluster works, and which goes by
/// itself.
const PROBED: &str = "turnup-validate-";
/// What is in the cluster, but for pods and whatever else comes and goes by itself.
const OBJECTS: &str = "nodes,namespaces,secrets,configmaps,serviceaccounts,services,daemonsets,deployments,clusterroles,\
    clusterrolebindings,roles,rolebindings";

/// Names of things, and what they are.
pub(crate) type Picture = BTreeMap<String, String>;

/// Every file on the operator's side and on the hosts.
pub(crate) fn look(site: &Site) -> Picture {
    let mut picture = Picture::new();
    collect(&site.state(), "", &OPERATOR_LEAVES_OUT, "here", &mut picture);
    for host in names_in(&site.path("hosts")) {
        let dir = site.path("hosts").join(&host);
        collect(&dir.join("upper"), "", &HOST_LEAVES_OUT, &host, &mut picture);
        for rel in HOST_BOUND {
            collect(&dir, rel, &[], &host, &mut picture);
        }
    }
    picture
}

/// The same and the objects in the cluster.
pub(crate) fn look_at_cluster(site: &Site) -> Picture {
    let mut picture = look(site);
    let names = site.kubectl(&[
        "get",
        OBJECTS,
        "--all-namespaces",
        "--no-headers",
        "-o=custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name",
    ]);
    let objects = names.lines().filter(|line| !line.contains(PROBED));
    let objects = objects.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    picture.extend(objects.map(|name| (name, "object".to_owned())));
    picture
}

/// The differences, one line each; none when both are the same.
pub(crate) fn differences(wanted: &Picture, found: &Picture) -> Vec<String> {
    let names: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    let differing = names.into_iter().filter(|name| wanted.get(*name) != found.get(*name));
    differing.map(|name| format!("{name}: wanted {:?}, found {:?}", wanted.get(name), found.get(name))).collect()
}

fn collect(root: &Path, rel: &str, without: &[&str], place: &str, picture: &mut Picture) {
    let path = root.join(rel);
    let Ok(data) = fs_err::symlink_metadata(&path) else { return };
    if without.contains(&rel) {
        return;
    }
    let what = if data.is_dir() {
        for name in names_in(&path) {
            let below = if rel.is_empty() { name } else { format!("{rel}/{name}") };
            collect(root, &below, without, place, picture);
        }
        String::new()
    } else if data.is_symlink() {
        steady(&fs_err::read_link(&path).unwrap().display().to_string())
    } else if data.is_file() {
        describe(rel, &fs_err::read(&path).unwrap())
    } else {
        "no file".to_owned()
    };
    if rel.ends_with("restore-log.jsonl") {
        // Line by line, so that a difference says what it is about.
        for line in fs_err::read_to_string(&path).unwrap().lines() {
            picture.insert(format!("{place} /{rel} {}", steady(line)), "line".to_owned());
        }
        return;
    }
    let kind = if data.is_dir() { "directory" } else { "file" };
    let owner = (data.uid(), data.gid());
    let mode = data.permissions().mode() & 0o7777;
    picture.insert(format!("{place} /{}", steady(rel)), format!("{kind} {mode:o} {owner:?} {what}"));
}

/// The parts of a file that are the same each time it is written.
fn describe(rel: &str, bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else { return Digest::of(bytes).to_string() };
    if rel.ends_with("state.json") {
        let state: serde_json::Value = serde_json::from_str(text).unwrap();
        let keys = |name: &str| state[name].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        return format!("steps {:?}, open {:?}", keys("steps"), keys("open"));
    }
    if rel.contains("terraform.tfstate") {
        let state: serde_json::Value = serde_json::from_str(text).unwrap();
        return format!("{} resources", state["resources"].as_array().unwrap().len());
    }
    if text.starts_with("-----BEGIN") {
        let certificates = text.split("-----BEGIN CERTIFICATE-----").skip(1);
        let names = certificates.map(|rest| name_certificate(&format!("-----BEGIN CERTIFICATE-----{rest}")));
        let keys = if text.contains(" KEY-----") { "and a key" } else { "" };
        return format!("certificates {} {keys}", names.collect::<Vec<_>>().join("; "));
    }
    if rel == "outputs/addons.json" {
        // Each object's version, which etcd counts.
        let applied: serde_json::Value = serde_json::from_str(text).unwrap();
        return format!("{:?}", applied["objects"].as_object().unwrap().keys().collect::<BTreeSet<_>>());
    }
    let steady: String = without_pem(text).lines().map(|line| steady(line) + "\n").collect();
    Digest::of(steady.as_bytes()).to_string()
}

/// In a configuration: the kinds of what is embedded as PEM, and not the bytes.
fn without_pem(text: &str) -> String {
    let mut parts = text.split("-----BEGIN ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let (kind, rest) = part.split_once("-----").unwrap_or((part, ""));
        let (_, after) = rest.split_once(&format!("-----END {kind}-----")).unwrap_or(("", rest));
        all + kind + after
    })
}

fn name_certificate(pem: &str) -> String {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
    let names = certificate.subject_alternative_name().unwrap().map(|names| format!("{:?}", names.value.general_names));
    format!("{} by {} for {}", certificate.subject(), certificate.issuer(), names.unwrap_or_default())
}

/// A line with everything replaced that is random or a time: digests, keys, ids, dates.
fn steady(line: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+/=-_:.".contains(letter);
    let mut text = String::new();
    for piece in line.split_inclusive(|letter| !is_part(letter)) {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        text.push_str(if is_random(word) { "RANDOM" } else { word });
        text.push_str(&piece[word.len()..]);
    }
    text
}

fn is_random(word: &str) -> bool {
    let hex = |part: &str| part.len() >= 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let base64 = word.len() >= 40 && !word.contains(['-', '_', '.', ':']);
    let uuid = word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let date = |part: &str| part.len() >= 10 && part.starts_with("20") && part.as_bytes()[4] == b'-';
    let token = word.len() == 23 && word.split('.').map(str::len).eq([6, 16]);
    let dated = word.split_inclusive("-client-").skip(1).chain([word]).any(date);
    base64 || uuid || token || dated || word.split(['/', ':', '.', '-', '_', '=']).any(hex)
}
