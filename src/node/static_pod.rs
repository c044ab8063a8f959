//! Static pods: kubelet stops the old one and starts the new one some moments after its manifest
//! has changed. Until then whatever answers is the old one, and an answer says nothing.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::kubelet_watch::KubeletWatch;
use super::layout;
use super::node_config::{Content, NodeConfig};
use crate::error::{Error, Result};
use crate::exec::signals;

/// The variable of a static pod that says from which files it was started: a digest.
pub(crate) const FILES_VARIABLE: &str = "TURNUP_FILES";

/// How long kubelet may take: it gives the old pod half a minute to end.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Waits until every static pod whose manifest is among these paths runs with the command and the
/// files that its manifest says.
pub(super) fn wait_for_changed(node_config: &NodeConfig, paths: &BTreeSet<String>) -> Result<()> {
    let since = Instant::now();
    let mut kubelet = KubeletWatch::new();
    for file in node_config.files.iter().filter(|file| paths.contains(&file.path)) {
        let Some(pod) = layout::static_pod(&file.path) else { continue };
        let Content::Yaml(manifest) = &file.content else { continue };
        let Some(process) = Process::of(manifest) else { continue };
        while !process.is_running() {
            kubelet.require_up()?;
            if since.elapsed() > TIMEOUT {
                let message = format!("the static pod of {} does not run as it says", file.path);
                let error = Error::transient(message).hint("journalctl --unit kubelet (on the host)");
                return Err(pod_log(&format!("kube-system_{pod}-")).into_iter().fold(error, Error::evidence));
            }
            signals::sleep(Duration::from_millis(100))?;
        }
    }
    Ok(())
}

/// Whether a process of this host, in whatever container, was started with this word among others.
pub(super) fn runs_with(word: &str) -> bool {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let words = fs_err::read(path.join("cmdline")).unwrap_or_default();
        is_process(&path) && words.split(|byte| *byte == 0).any(|one| one == word.as_bytes())
    })
}

/// The manifest of a static pod of this node config.
pub(super) fn find_manifest<'c>(node_config: &'c NodeConfig, pod: &str) -> Option<&'c Value> {
    let path = layout::manifest(pod);
    let file = node_config.files.iter().find(|file| file.path == path)?;
    if let Content::Yaml(manifest) = &file.content { Some(manifest) } else { None }
}

/// The flag by which a process of etcd is known that has these data.
pub(super) fn data_dir_flag(data: &Path) -> String {
    format!("--data-dir={}", data.display())
}

/// The value of a flag of the first container, without its dashes.
pub(super) fn find_flag<'m>(manifest: &'m Value, name: &str) -> Option<&'m str> {
    let words = manifest.pointer("/spec/containers/0/command")?.as_array()?.iter().filter_map(Value::as_str);
    words
        .filter_map(|word| word.strip_prefix("--")?.split_once('='))
        .find_map(|(flag, value)| (flag == name).then_some(value))
}

/// Where the other members of etcd reach that of a host with this node config.
pub(super) fn find_peer_address(node_config: &NodeConfig) -> Option<SocketAddr> {
    let url = find_flag(find_manifest(node_config, "etcd")?, "initial-advertise-peer-urls")?;
    url.rsplit_once("://")?.1.parse().ok()
}

/// By what the process of a static pod is known.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    command: Vec<String>,
    /// A variable with its value, `NAME=VALUE`, where the manifest has one of ours.
    files: Option<String>,
}

impl Process {
    /// That of the first container.
    fn of(manifest: &Value) -> Option<Self> {
        let container = manifest.pointer("/spec/containers/0")?;
        let words = container.get("command")?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
        let variables = container.get("env").and_then(Value::as_array).into_iter().flatten();
        let files =
            variables.filter(|variable| variable["name"] == FILES_VARIABLE).find_map(|one| one["value"].as_str());
        let files = files.map(|value| format!("{FILES_VARIABLE}={value}"));
        Some(Self { command: words.collect::<Option<_>>()?, files })
    }

    /// Whether a process of this host, in whatever container, was started with exactly these words
    /// and from these files.
    fn is_running(&self) -> bool {
        let wanted: Vec<u8> = self.command.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
        // A process may end under the eyes.
        entries.map(|entry| entry.path()).any(|path| {
            is_process(&path)
                && fs_err::read(path.join("cmdline")).is_ok_and(|found| found == wanted)
                && self.files.as_ref().is_none_or(|files| has_variable(&path, files))
        })
    }
}

fn has_variable(process: &Path, variable: &str) -> bool {
    let all = fs_err::read(process.join("environ")).unwrap_or_default();
    all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
}

fn is_process(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// The last lines of the newest log of a pod, straight from the disk: no API is needed.
pub(super) fn pod_log(prefix: &str) -> Vec<String> {
    let mut files = Vec::new();
    for pod in fs_err::read_dir("/var/log/pods").into_iter().flatten().flatten() {
        if pod.file_name().to_string_lossy().starts_with(prefix) {
            collect_files(&pod.path(), &mut files);
        }
    }
    files.sort_by_key(|path| fs_err::metadata(path).and_then(|data| data.modified()).ok());
    let text = files.last().and_then(|path| fs_err::read_to_string(path).ok()).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(8)..].to_vec()
}

fn collect_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect_files(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_process_is_known_by_all_its_words() {
        let command: Vec<String> = std::env::args().collect();
        let own = Process { command: command.clone(), files: None };
        assert!(own.is_running());
        assert!(!Process { command: [command.clone(), vec!["--one-more".into()]].concat(), files: None }.is_running());
        let path = std::env::var("PATH").map(|path| format!("PATH={path}")).unwrap();
        assert!(Process { command: command.clone(), files: Some(path) }.is_running());
        assert!(!Process { command, files: Some("PATH=/of/another".into()) }.is_running());
    }

    #[test]
    fn a_process_is_read_from_its_manifest() {
        let manifest = json!({"spec": {"containers": [
            {"command": ["etcd", "--name=a"], "env": [{"name": "TURNUP_FILES", "value": "1"}]},
        ]}});
        let files = Some("TURNUP_FILES=1".to_owned());
        let process = Process { command: vec!["etcd".into(), "--name=a".into()], files };
        assert_eq!(Process::of(&manifest), Some(process));
        assert_eq!(Process::of(&json!({})), None);
    }
}
