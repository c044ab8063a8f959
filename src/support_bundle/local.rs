//! What this machine knows: configuration, state, journal, events, logs, node configs, the doctor's
//! report, the status.

use std::path::Path;

use serde_json::Value;

use super::gathered::{BundleSubject, FILE, Gathered, Item};
use crate::bootstrap::{KUBECONFIG, kubectl};
use crate::cluster::Cluster;
use crate::config::Settings;
use crate::error::Result;
use crate::state::Store;
use crate::status::{self, Status};
use crate::{artifacts::ResolvedArtifacts, doctor};

/// Files and directories of the cluster's own that are taken as they are.
const TAKEN: [&str; 7] = ["state.json", "journal.jsonl", "lock", "outputs", "node-config", "events", "logs"];
/// What kubectl is asked: the file's name, and the arguments.
const QUESTIONS: [(&str, &[&str]); 4] = [
    ("nodes.txt", &["get", "nodes", "--output=wide"]),
    ("node-conditions.txt", &["describe", "nodes"]),
    ("pods.txt", &["get", "pods", "--all-namespaces", "--output=wide"]),
    ("events.txt", &["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"]),
];

/// Gathers it.
pub(super) fn gather(subject: &BundleSubject, gathered: &mut Gathered) {
    configuration(subject, gathered);
    for name in TAKEN {
        take(&subject.store.path(name), &format!("cluster/{name}"), gathered);
    }
    let asked = subject
        .cluster
        .as_ref()
        .map_or_else(|| doctor::Subject::of(doctor::Goal::LOCAL), |cluster| cluster.doctor_subject());
    let findings = serde_json::to_value(doctor::inspect(&asked)).unwrap_or_default();
    gathered.items.push(json("doctor.json", &findings));
    match &subject.cluster {
        None => gathered.miss("hosts and the API", "they are not contacted without a usable configuration"),
        Some(cluster) => {
            let status = Status::look(cluster, false);
            gathered.items.push(json("status.json", &serde_json::to_value(&status).unwrap_or_default()));
            gathered.items.push(Item::new("status.txt", status::render(&status).into_bytes()));
            ask_the_api(cluster, gathered);
        }
    }
}

fn json(path: &str, value: &Value) -> Item {
    Item::new(path, format!("{value:#}\n").into_bytes())
}

/// The configuration without its secrets, and the one that all phases last worked with.
fn configuration(subject: &BundleSubject, gathered: &mut Gathered) {
    if let Some(trouble) = &subject.trouble {
        gathered.items.push(Item::new("configuration/trouble.txt", format!("{trouble}\n").into_bytes()));
    }
    let Some(settings) = &subject.settings else {
        gathered.miss("the configuration", "it cannot be read, so it is unknown which of its values are secrets");
        return;
    };
    gathered.items.push(json("configuration/config.json", &without_secrets(settings, settings.json().clone())));
    match subject.store.read_json::<Value>(Settings::APPLIED) {
        Ok(Some(applied)) => {
            gathered.items.push(json("configuration/applied.json", &without_secrets(settings, applied)));
        }
        Ok(None) => {}
        Err(error) => gathered.miss(Settings::APPLIED, error.message()),
    }
}

fn without_secrets(settings: &Settings, mut object: Value) -> Value {
    for secret in settings.list().iter().filter(|setting| setting.secret) {
        let pointer = format!("/{}", secret.name.replace('.', "/"));
        if let Some(value) = object.pointer_mut(&pointer).filter(|value| value.as_str() != Some("")) {
            *value = Value::from("[removed]");
        }
    }
    object
}

/// A file, or all files below a directory.
fn take(path: &Path, name: &str, gathered: &mut Gathered) {
    match take_or_fail(path, name, gathered) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => gathered.miss(name, error.to_string()),
        _ => {}
    }
}

fn take_or_fail(path: &Path, name: &str, gathered: &mut Gathered) -> std::io::Result<()> {
    let kind = fs_err::symlink_metadata(path)?;
    if kind.is_dir() {
        let mut entries: Vec<_> = fs_err::read_dir(path)?.flatten().collect();
        entries.sort_by_key(fs_err::DirEntry::file_name);
        for entry in entries {
            take(&entry.path(), &format!("{name}/{}", entry.file_name().to_string_lossy()), gathered);
        }
    } else if kind.is_file() {
        gathered.items.push(end_of(path, name)?);
    }
    Ok(())
}

/// The end of a file: of a log that is where the trouble is.
fn end_of(path: &Path, name: &str) -> std::io::Result<Item> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    let limit = FILE as u64;
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Item { path: name.to_owned(), bytes, cut: length > limit })
}

fn ask_the_api(cluster: &Cluster, gathered: &mut Gathered) {
    if !has(&cluster.store, KUBECONFIG) || !has(&cluster.store, ResolvedArtifacts::FILE) {
        gathered.miss("the API", "bootstrap has not come so far");
        return;
    }
    for (name, arguments) in QUESTIONS {
        let answer: Result<String> = kubectl(cluster).and_then(|kubectl| kubectl.run(arguments));
        match answer {
            Ok(text) => gathered.items.push(Item::new(format!("api/{name}"), text.into_bytes())),
            Err(error) => {
                gathered.miss("the API", error.message());
                // The others would say the same, each after its own time.
                return;
            }
        }
    }
}

fn has(store: &Store, file: &str) -> bool {
    store.path(file).is_file()
}
