//! Which hosts run on this machine, whatever became of the directories of their clusters: a copy of
//! each host's description below `/run`, from its start to its removal. It starts and stops
//! nothing.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::atomic_file::{FileMode, replace};
use crate::error::{Context as _, Result};

use super::network;
use super::spec::HostSpec;

/// Gone with the hosts when this machine restarts.
pub(super) const DIR: &str = "/run/turnup/local";

/// A host of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalHost {
    /// Its description.
    pub spec: HostSpec,
    /// The directory of its cluster.
    pub cluster_dir: PathBuf,
}

impl LocalHost {
    fn new(spec: HostSpec) -> Self {
        // `.turnup/<cluster>/hosts/<name>`
        let cluster_dir = spec.dir.ancestors().nth(2).unwrap_or(&spec.dir).to_owned();
        Self { spec, cluster_dir }
    }

    /// Whether no `turnup down` can find it: its cluster's directory, or what that says of it, is
    /// gone.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        !self.cluster_dir.join("journal.jsonl").exists()
    }
}

/// Remembers a host before anything of it exists.
pub(super) fn record(spec: &HostSpec) -> Result<()> {
    record_in(Path::new(DIR), spec)
}

/// Forgets a host of which nothing is left.
pub(super) fn forget(spec: &HostSpec) -> Result<()> {
    forget_in(Path::new(DIR), spec)
}

/// The hosts that the cluster in this directory has left: what the directory says of them is gone.
pub fn find_orphans(cluster_dir: &Path) -> Result<Vec<LocalHost>> {
    let of_cluster = |host: &LocalHost| host.cluster_dir == cluster_dir && host.is_orphan();
    Ok(list_hosts()?.into_iter().filter(of_cluster).collect())
}

/// All hosts of which anything is left, by cluster and name; none that another version of turnup
/// describes in its own way, which must not hinder this one.
pub fn list_hosts() -> Result<Vec<LocalHost>> {
    Ok(list_in(Path::new(DIR))?.hosts)
}

/// Whether nothing is left of any host, of whichever version of turnup.
pub(super) fn is_empty() -> Result<bool> {
    let found = list_in(Path::new(DIR))?;
    Ok(found.hosts.is_empty() && !found.has_strange)
}

/// What is recorded.
struct Records {
    hosts: Vec<LocalHost>,
    /// Whether there are others that cannot be read.
    has_strange: bool,
}

fn record_in(dir: &Path, spec: &HostSpec) -> Result<()> {
    make_dir(dir)?;
    let text = serde_json::to_string_pretty(spec).context(format!("the description of {}", spec.name))?;
    let file = file_of(dir, spec);
    replace(&file, text.as_bytes(), FileMode::Exact(0o600)).context(format!("cannot write {}", file.display()))
}

pub(super) fn make_dir(dir: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.context(format!("cannot make {}", dir.display()))
}

fn forget_in(dir: &Path, spec: &HostSpec) -> Result<()> {
    match fs_err::remove_file(file_of(dir, spec)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn list_in(dir: &Path) -> Result<Records> {
    let (mut hosts, mut has_strange) = (Vec::new(), false);
    for entry in fs_err::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            match HostSpec::read(&path) {
                Ok(spec) => hosts.push(LocalHost::new(spec)),
                // Hosts are deleted at the same time: this one was forgotten since the directory
                // was read.
                Err(_) if !path.exists() => {}
                Err(_) => has_strange = true,
            }
        }
    }
    // A record outlives a host that another hand has removed whole.
    hosts.retain(|host| host.spec.dir.exists() || network::namespace(&host.spec.machine).exists());
    hosts.sort_by(|one, other| (&one.cluster_dir, &one.spec.name).cmp(&(&other.cluster_dir, &other.spec.name)));
    Ok(Records { hosts, has_strange })
}

fn file_of(dir: &Path, spec: &HostSpec) -> PathBuf {
    dir.join(format!("{}.json", spec.machine))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::provision::local::NetworkSpec;

    fn spec(cluster: &Path, name: &str) -> HostSpec {
        HostSpec {
            name: name.into(),
            machine: format!("t-abc123-{name}"),
            interface: "t-abc123-0".into(),
            address: [10, 0, 0, 10].into(),
            network: NetworkSpec {
                bridge: "t-abc123".into(),
                gateway: [10, 0, 0, 1].into(),
                prefix: 24,
                open_ports: Vec::new(),
            },
            dir: cluster.join("hosts").join(name),
            root: "/root-of-hosts".into(),
            authorized_keys: "/keys".into(),
            host_key: "/key".into(),
            blobs: "/blobs".into(),
            balancer: None,
            user_data: None,
            is_of_group: false,
            volume: None,
            memory: None,
            cpu_millis: None,
        }
    }

    #[test]
    fn a_host_is_listed_until_it_is_forgotten_and_an_orphan_without_its_cluster() {
        let (run, cluster) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = run.path().join("local");
        assert_eq!(list_in(&dir).unwrap().hosts, [], "no directory, no hosts");
        let (first, second) = (spec(cluster.path(), "a"), spec(cluster.path(), "b"));
        fs_err::write(cluster.path().join("journal.jsonl"), "").unwrap();
        for spec in [&second, &first, &first] {
            fs_err::create_dir_all(&spec.dir).unwrap();
            record_in(&dir, spec).unwrap();
        }
        let hosts = list_in(&dir).unwrap().hosts;
        assert_eq!(hosts.iter().map(|host| &host.spec).collect::<Vec<_>>(), [&first, &second]);
        assert_eq!(hosts[0].cluster_dir, cluster.path());
        assert!(!hosts[0].is_orphan());
        fs_err::remove_file(cluster.path().join("journal.jsonl")).unwrap();
        assert!(hosts[0].is_orphan());
        forget_in(&dir, &first).unwrap();
        forget_in(&dir, &first).unwrap();
        assert_eq!(list_in(&dir).unwrap().hosts.len(), 1);
        // What another deletion forgets while this one looks: a name that leads nowhere.
        std::os::unix::fs::symlink("/nowhere", dir.join("c.json")).unwrap();
        let found = list_in(&dir).unwrap();
        assert!(found.hosts.len() == 1 && !found.has_strange);
        // A later version may know more of a host.
        fs_err::write(dir.join("d.json"), r#"{"name": "d", "of_tomorrow": true}"#).unwrap();
        let found = list_in(&dir).unwrap();
        assert!(found.hosts.len() == 1 && found.has_strange);
        fs_err::remove_dir(&second.dir).unwrap();
        assert_eq!(list_in(&dir).unwrap().hosts, [], "nothing is left of it");
    }
}
