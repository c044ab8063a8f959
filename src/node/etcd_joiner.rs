//! A learner of etcd that gets its data in a directory of its own, in a container that is none of
//! kubelet's: the image, flags, user and mounts of the static pod, but another data directory, and
//! the members of now to join.
//!
//! Its state is always `existing`: where the others do not know it, it ends. Once it has data, the
//! static pod goes on with them, for etcd reads `--initial-*` only without any.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::exec::{Run, signals};

use super::layout::{self, ETCD_JOINER};
use super::static_pod::{self, data_dir_flag};

/// What it says, for root alone, gone with the agent.
pub(super) const LOG: &str = "/run/turnup/etcd-joiner.log";
/// How long etcd may take to end by itself.
const ENDS: Duration = Duration::from_secs(30);
/// For a container to be made or removed.
const ANSWER: Duration = Duration::from_mins(1);
/// Flags that would make another cluster of it, or put its data elsewhere.
const REFUSED: [&str; 4] = ["--force-new-cluster", "--discovery", "--wal-dir", "--config-file"];

/// What it is made from.
pub(super) struct Joiner<'a> {
    /// The manifest of etcd's static pod.
    pub(super) manifest: &'a Value,
    /// containerd's, which has the image unpacked.
    pub(super) snapshotter: &'a str,
}

impl Joiner<'_> {
    /// Starts it over this directory, which is made where it is not there, and belongs to whom the
    /// one around it belongs. `initial_cluster` has `name=URL` of each member.
    pub(super) fn start(&self, data: &Path, initial_cluster: &str) -> Result<()> {
        let words = self.words(data, initial_cluster)?;
        let owner = fs_err::metadata(data.parent().unwrap_or(data))?;
        fs_err::create_dir_all(data)?;
        fs_err::set_permissions(data, Permissions::from_mode(0o700))?;
        fs_err::os::unix::fs::chown(data, Some(owner.uid()), Some(owner.gid()))?;
        if let Some(directory) = Path::new(LOG).parent() {
            fs_err::create_dir_all(directory)?;
        }
        remove();
        ctr(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
    }

    /// The words of ctr.
    fn words(&self, data: &Path, initial_cluster: &str) -> Result<Vec<String>> {
        let container = self.manifest.pointer("/spec/containers/0").ok_or_else(unreadable)?;
        let text = |pointer: &str| container.pointer(pointer).and_then(Value::as_str).ok_or_else(unreadable);
        let user = container.pointer("/securityContext/runAsUser").and_then(Value::as_u64).ok_or_else(unreadable)?;
        let mut words = ["run", "--detach", "--net-host", "--read-only", "--seccomp"].map(str::to_owned).to_vec();
        words.extend([
            format!("--snapshotter={}", self.snapshotter),
            format!("--runc-binary={}", layout::program("runc")),
            format!("--user={user}:{user}"),
            format!("--cgroup=/{ETCD_JOINER}"),
            format!("--log-uri=file://{LOG}"),
        ]);
        for (path, place, option) in self.mounts()? {
            words.extend(["--mount".to_owned(), format!("type=bind,src={path},dst={place},options=rbind:{option}")]);
        }
        words.extend([text("/image")?.to_owned(), ETCD_JOINER.to_owned()]);
        words.extend(self.command(data, initial_cluster)?);
        Ok(words)
    }

    /// Host paths, where the container has them, and `ro` or `rw`. The directory that kubelet wants
    /// to see first is the one that is missing.
    fn mounts(&self) -> Result<Vec<(&str, &str, &str)>> {
        let list = |pointer: &str| self.manifest.pointer(pointer).and_then(Value::as_array).ok_or_else(unreadable);
        let volumes = list("/spec/volumes")?;
        let mut found = Vec::new();
        for mount in list("/spec/containers/0/volumeMounts")? {
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).ok_or_else(unreadable)?;
            let path = volume.pointer("/hostPath/path").and_then(Value::as_str).ok_or_else(unreadable)?;
            let place = mount["mountPath"].as_str().ok_or_else(unreadable)?;
            if volume.pointer("/hostPath/type").is_none() {
                found.push((path, place, if mount["readOnly"] == true { "ro" } else { "rw" }));
            }
        }
        Ok(found)
    }

    /// etcd's own words: those of the static pod, but where its data are and whom it joins.
    fn command(&self, data: &Path, initial_cluster: &str) -> Result<Vec<String>> {
        let command = self.manifest.pointer("/spec/containers/0/command").and_then(Value::as_array);
        let words = command.into_iter().flatten().filter_map(Value::as_str);
        let own = ["--data-dir=", "--initial-cluster=", "--initial-cluster-state="];
        let mut kept: Vec<String> =
            words.filter(|word| !own.iter().any(|flag| word.starts_with(flag))).map(str::to_owned).collect();
        if let Some(word) = kept.iter().find(|word| REFUSED.iter().any(|flag| word.starts_with(flag))) {
            return Err(Error::precondition(format!("etcd has the flag {word}, so it does not join again by itself")));
        }
        if kept.first().is_none_or(|program| program.starts_with('-')) {
            return Err(unreadable());
        }
        kept.extend([
            data_dir_flag(data),
            format!("--initial-cluster={initial_cluster}"),
            "--initial-cluster-state=existing".to_owned(),
        ]);
        Ok(kept)
    }
}

/// Whether a process has this data directory.
pub(super) fn runs_in(data: &Path) -> bool {
    static_pod::runs_with(&data_dir_flag(data))
}

/// Ends it, whatever it does, and removes its container; its data stay.
pub(super) fn stop() -> Result<()> {
    let since = Instant::now();
    while let Some(status) = find_task()? {
        if status != "RUNNING" {
            break;
        }
        let is_late = since.elapsed() > ENDS;
        if is_late && since.elapsed() > ENDS * 2 {
            return Err(Error::transient("the learner of etcd does not end")
                .hint(format!("look on the host with: ctr --namespace k8s.io tasks list | grep {ETCD_JOINER}")));
        }
        // It may end before the signal comes.
        drop(ctr(&["tasks", "kill", if is_late { "--signal=SIGKILL" } else { "--signal=SIGTERM" }, ETCD_JOINER]));
        signals::sleep(Duration::from_millis(300))?;
    }
    remove();
    Ok(())
}

/// What containerd says of its process: `RUNNING`, `STOPPED`; nothing where there is none.
fn find_task() -> Result<Option<String>> {
    if !Path::new(layout::CTR).exists() {
        return Ok(None);
    }
    let listed = ctr(&["tasks", "list"])?;
    let mut tasks = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    Ok(tasks.find(|words| words.first() == Some(&ETCD_JOINER)).and_then(|words| Some((*words.get(2)?).to_owned())))
}

/// What is left of one that has ended; mostly nothing is.
fn remove() {
    drop(ctr(&["tasks", "delete", "--force", ETCD_JOINER]));
    drop(ctr(&["containers", "delete", ETCD_JOINER]));
}

/// The last lines of what it said.
pub(super) fn last_words() -> Vec<String> {
    let text = fs_err::read_to_string(LOG).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(4)..].to_vec()
}

fn ctr(words: &[&str]) -> Result<String> {
    let run = Run::new(layout::CTR).args(["--namespace", "k8s.io"]).args(words.iter().copied());
    run.dir("/").timeout(ANSWER).succeed().map(|output| output.stdout)
}

fn unreadable() -> Error {
    Error::precondition("the static pod of etcd is not as turnup writes it, so it does not join again by itself")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;

    fn manifest(more: &[&str]) -> Value {
        let own = ["etcd", "--data-dir=/var/lib/etcd/data", "--initial-cluster=m1=https://10.0.0.1:2380"];
        let command = [&own[..], &["--initial-cluster-state=existing", "--name=m1"], more].concat();
        json!({"spec": {
            "containers": [{
                "image": "turnup.local/etcd:v3", "command": command, "securityContext": {"runAsUser": 2379},
                "volumeMounts": [
                    {"name": "data", "mountPath": "/var/lib/etcd", "readOnly": false},
                    {"name": "keys", "mountPath": "/etc/kubernetes/etcd", "readOnly": true},
                    {"name": "log", "mountPath": "/var/lib/etcd/data/member/wal", "readOnly": false},
                ],
            }],
            "volumes": [
                {"name": "data", "hostPath": {"path": "/var/lib/etcd"}},
                {"name": "keys", "hostPath": {"path": "/etc/kubernetes/etcd"}},
                {"name": "log", "hostPath": {"path": "/var/lib/etcd/data/member/wal", "type": "Directory"}},
            ],
        }})
    }

    fn words(manifest: &Value) -> Result<Vec<String>> {
        let joiner = Joiner { manifest, snapshotter: "overlayfs" };
        joiner.words(Path::new("/var/lib/etcd/joining-0a"), "m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380")
    }

    #[test]
    fn it_is_the_static_pod_with_other_data_and_joins_what_there_is() {
        insta::assert_snapshot!(words(&manifest(&[])).unwrap().join("\n"));
    }

    #[test]
    fn nothing_makes_another_cluster_of_it() {
        let many = words(&manifest(&["--initial-cluster-state=new"])).unwrap();
        let states: Vec<&String> = many.iter().filter(|word| word.starts_with("--initial-cluster-state")).collect();
        assert_eq!(states, ["--initial-cluster-state=existing"]);
        for flag in ["--force-new-cluster", "--force-new-cluster=true", "--discovery=https://d", "--wal-dir=/w"] {
            assert!(words(&manifest(&[flag])).is_err(), "{flag}");
        }
        assert!(words(&json!({})).is_err());
    }
}
