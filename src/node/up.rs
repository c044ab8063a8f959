//! `turnup node up`: brings this host to its node config, in an order in which nothing starts
//! before what it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{Context as _, Error, Result};
use crate::exec::{Run, signals};
use crate::failpoint;
use crate::input;

use super::backup::EtcdPrograms;
use super::etcd_first_start::{self, EtcdStart};
use super::event::NodeEvent;
use super::facts;
use super::kubelet_watch::KubeletWatch;
use super::layout::{self, BOOTSTRAP_KUBECONFIG, CTR, UNITS, unit_file};
use super::node_config::{
    AGENT_UNIT, Content, File, HEALTHCHECK_UNIT, HOST_FILE, Health, Image, NodeConfig, Runtime, Unit, count_early,
};
use super::restore_log::{self, RestoreEntry, RestoreLog};
use super::static_pod::{self, pod_log};
use super::systemd::{self, systemctl};
use super::task::{self, Secrets};
use super::{fetch, firewall, hosts_file, identity, join, mounts, packages, restore};

/// How long a health check of the host may take: etcd on a slow disk.
const HEALTH: Duration = Duration::from_mins(3);
/// How long another run on this host may take to end after its connection is lost.
const ANOTHER_RUN: Duration = Duration::from_mins(5);
/// Gone with a restart of the host, like its holder.
pub(super) const LOCK: &str = "/run/turnup-node.lock";
/// There while what an operator brought is not applied to the end: what was applied before is not
/// put back then, for the host may be on its way to another version.
pub(super) const UNFINISHED: &str = "/var/lib/turnup/unfinished";

/// What is sent to `turnup node up` on standard input.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivery {
    /// The node config.
    pub node_config: NodeConfig,
    /// Secrets by name, base64.
    pub secrets: BTreeMap<String, Zeroizing<String>>,
    /// The kubeconfig with a join token, for a worker that has no certificate yet. It is no part of
    /// the node config: it is another one at every try, and worth nothing once the worker has
    /// joined.
    pub bootstrap_kubeconfig: Option<Zeroizing<String>>,
    /// How this host's member of etcd starts for the first time, where it has not.
    #[serde(default)]
    pub etcd_start: Option<EtcdStart>,
}

impl Delivery {
    /// A node config with no secret, no token and no first start of a member.
    pub(crate) fn of(node_config: NodeConfig) -> Self {
        Self { node_config, secrets: BTreeMap::new(), bootstrap_kubeconfig: None, etcd_start: None }
    }
}

/// Applies the delivery, writing one [`NodeEvent`] a line to `out`.
pub(crate) fn run(delivery: Delivery, out: &mut dyn Write) -> Result<()> {
    let _turn = take_turn()?;
    run_alone(delivery, Trigger::Operator, out)
}

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The operator brings a configuration: what an earlier one made and this one has no more goes,
    /// and the components have to be healthy in the end.
    Operator,
    /// The host has booted. What was brought to it since stays, because what a host begins with
    /// knows nothing of it; health takes other hosts, which may boot at the same time.
    Boot,
    /// The same on a machine that may be told next which host it is: images that pods need once the
    /// control plane works come after that.
    Machine,
    /// The host's agent puts right what was applied last; the rest as at a boot.
    Agent,
}

/// The same for the holder of this host's lock.
pub(super) fn run_alone(delivery: Delivery, trigger: Trigger, out: &mut dyn Write) -> Result<()> {
    let mut secrets = Secrets::new();
    for (name, text) in delivery.secrets {
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(text.as_bytes()).context("a secret is not base64")?;
        secrets.insert(name, Zeroizing::new(bytes));
    }
    let token = delivery.bootstrap_kubeconfig;
    let node_config = &delivery.node_config;
    // One of another turnup tells nothing.
    let before = input::read_text(Path::new(HOST_FILE), input::DOCUMENT)
        .ok()
        .and_then(|text| NodeConfig::parse(HOST_FILE, &text).ok());
    // A run that was killed between a change and the restart that it needs has not said so in that
    // file.
    let stale = before.as_ref().map(|before| before.find_changed(node_config).into_iter().map(str::to_owned).collect());
    let stale = stale.unwrap_or_default();
    let etcd_start = delivery.etcd_start;
    NodeSetup { node_config, before: before.as_ref(), secrets, token, etcd_start, changed: BTreeSet::new(), stale, out }
        .apply(trigger)
}

/// The lock of this host: a run whose operator was killed goes on until it next reports, and two at
/// once would undo each other's work.
pub(super) fn take_turn() -> Result<fs_err::File> {
    let file = open_lock()?;
    if signals::lock(&file, ANOTHER_RUN)? {
        return Ok(file);
    }
    Err(Error::transient("another `turnup node up` or `down` works on this host and does not end"))
}

/// Whether an operator's run began here and did not come to its end.
pub(super) fn is_unfinished() -> bool {
    Path::new(UNFINISHED).exists()
}

/// The same lock, if it is free.
pub(super) fn try_turn() -> Result<Option<fs_err::File>> {
    let file = open_lock()?;
    Ok(signals::lock(&file, Duration::ZERO)?.then_some(file))
}

fn open_lock() -> Result<fs_err::File> {
    Ok(fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(LOCK)?)
}

struct NodeSetup<'a> {
    node_config: &'a NodeConfig,
    /// What was applied to the end last.
    before: Option<&'a NodeConfig>,
    secrets: Secrets,
    token: Option<Zeroizing<String>>,
    etcd_start: Option<EtcdStart>,
    /// What this run has changed.
    changed: BTreeSet<String>,
    /// What is another one than it was when a run last came to its end.
    stale: BTreeSet<String>,
    out: &'a mut dyn Write,
}

impl NodeSetup<'_> {
    fn apply(mut self, trigger: Trigger) -> Result<()> {
        require_same_runtime(self.before, self.node_config)?;
        self.node_config.users.iter().try_for_each(task::require_user)?;
        // Before the first effect: what there is to be put back.
        RestoreLog::record(self.node_config)?;
        if trigger == Trigger::Operator {
            task::write_atomic(Path::new(UNFINISHED), b"turnup up (brings this host to its node config)\n", 0o600, 0)?;
        }
        self.remove_halves()?;
        self.mount_disks()?;
        self.install_packages()?;
        self.prepare_host()?;
        self.place_files()?;
        if trigger == Trigger::Operator {
            self.remove_superseded()?;
        }
        self.restart_others()?;
        let (early, others) = self.node_config.units.split_at(count_early(&self.node_config.units));
        self.start_units(early, trigger)?;
        let (first, later): (Vec<_>, Vec<_>) = self.node_config.images.iter().partition(|image| image.first);
        self.import_images(&first)?;
        self.start_member()?;
        self.start_units(others, trigger)?;
        match trigger {
            Trigger::Operator => self.import_beside(&later)?,
            Trigger::Boot | Trigger::Agent => self.import_images(&later)?,
            Trigger::Machine => {}
        }
        self.remember()?;
        self.report(&NodeEvent::Done(self.changed.len()))
    }

    /// What a run that was killed left beside the files that it wrote.
    fn remove_halves(&self) -> Result<()> {
        let node_config = self.node_config;
        let files = node_config.files.iter().map(|file| file.path.as_str());
        let files = files.chain(node_config.binaries.iter().map(|binary| binary.path.as_str()));
        let stamp = |image: &Image| layout::import_stamp(&node_config.runtime.root, &image.sha256);
        let stamps: Vec<PathBuf> = node_config.images.iter().map(stamp).collect();
        let others = [HOST_FILE, UNFINISHED, BOOTSTRAP_KUBECONFIG].map(Path::new);
        let dirs = [task::USERS, UNITS, restore_log::SAVED].map(|dir| Path::new(dir).join("any"));
        let paths = files.map(Path::new).chain(others).chain(dirs.iter().chain(&stamps).map(PathBuf::as_path));
        task::remove_temporary(paths)
    }

    /// First of all: a disk that is refused leaves the host as it is.
    fn mount_disks(&mut self) -> Result<()> {
        mounts::ensure(&self.node_config.mounts, &mut |report| match report {
            NodeEvent::Changed(what) => self.note(true, &what),
            other => self.report(&other),
        })
    }

    /// Before all else: they may bring modules, users and the programs that files are for.
    fn install_packages(&mut self) -> Result<()> {
        let missing = packages::find_missing(&self.node_config.packages)?;
        if !missing.is_empty() {
            RestoreLog::record_packages(&packages::prepare(&missing)?)?;
            packages::install(&missing)?;
            missing.iter().try_for_each(|package| self.note(true, &format!("package {package}")))?;
            // They may have brought files that are to be replaced.
            RestoreLog::record(self.node_config)?;
        }
        require_programs(self.node_config)
    }

    fn prepare_host(&mut self) -> Result<()> {
        // Once a unit that listens is here, or was, the ports were free before and are its own.
        if self.before.is_none()
            && ![HEALTHCHECK_UNIT, "kubelet.service"].iter().any(|unit| Path::new(&unit_file(unit)).exists())
        {
            self.node_config.ports.iter().try_for_each(|port| task::require_port(*port))?;
        }
        for user in &self.node_config.users {
            let changed = task::ensure_user(user)?;
            self.note(changed, &format!("user {}", user.name))?;
        }
        for module in &self.node_config.modules {
            let changed = task::ensure_module(module)?;
            self.note(changed, &format!("module {module}"))?;
        }
        for (name, value) in &self.node_config.sysctls {
            let changed = task::ensure_sysctl(name, value)?;
            self.note(changed, &format!("sysctl {name}"))?;
        }
        self.node_config.units.iter().try_for_each(require_open_files)?;
        if !self.node_config.extra_hosts.is_empty() {
            let changed = hosts_file::ensure(&self.node_config.extra_hosts)?;
            self.note(changed, layout::HOSTS_FILE)?;
        }
        for directory in &self.node_config.directories {
            let changed = task::ensure_directory(directory)?;
            self.note(changed, &directory.path)?;
        }
        Ok(())
    }

    fn place_files(&mut self) -> Result<()> {
        fetch::fetch_files(self.node_config, self.out)?;
        for (binary, changed) in self.place_binaries()? {
            self.note(changed, &binary)?;
        }
        for file in self.node_config.files.iter().filter(|file| file.is_wanted()) {
            let changed = task::ensure_file(self.node_config, file, &self.secrets)?;
            self.note(changed, &file.path)?;
        }
        if let Some(token) = &self.token {
            task::write_atomic(Path::new(BOOTSTRAP_KUBECONFIG), token.as_bytes(), 0o600, 0)?;
            self.note(true, BOOTSTRAP_KUBECONFIG)?;
        } else if join::is_token_left() {
            // No change for kubelet, which has its certificate.
            fs_err::remove_file(BOOTSTRAP_KUBECONFIG)?;
            self.report(&NodeEvent::Changed(format!("removed {BOOTSTRAP_KUBECONFIG}")))?;
        }
        Ok(())
    }

    /// Hashing and copying some hundred megabytes is the longest part, so every binary gets a
    /// thread.
    fn place_binaries(&self) -> Result<Vec<(String, bool)>> {
        let node_config = self.node_config;
        std::thread::scope(|scope| {
            let threads: Vec<_> = node_config
                .binaries
                .iter()
                .map(|binary| (binary, scope.spawn(move || task::ensure_binary(node_config, binary))))
                .collect();
            threads.into_iter().map(|(binary, thread)| Ok((binary.path.clone(), task::join(thread)?))).collect()
        })
    }

    /// What an earlier configuration had and this one has not is put back as it was. Packages stay:
    /// what runs here may use them by now.
    fn remove_superseded(&mut self) -> Result<()> {
        let Some(mut restore_log) = RestoreLog::read()? else { return Ok(()) };
        if self.node_config.extra_hosts.is_empty() && hosts_file::ensure(&BTreeMap::new())? {
            self.report(&NodeEvent::Changed(format!("put back {}", layout::HOSTS_FILE)))?;
        }
        let old: Vec<RestoreEntry> = restore_log.find_superseded(self.node_config).into_iter().cloned().collect();
        if old.is_empty() {
            return Ok(());
        }
        let mut tell = |what: String| self.report(&NodeEvent::Changed(what));
        for (name, ..) in old.iter().filter_map(RestoreEntry::as_unit) {
            restore::stop_unit(name, &restore_log, &mut tell)?;
        }
        let mut gone = Vec::new();
        let (directories, others): (Vec<_>, Vec<_>) =
            old.iter().partition(|entry| matches!(entry, RestoreEntry::OwnDirectory { .. }));
        for entry in others {
            match entry {
                RestoreEntry::File { path, before } => {
                    restore::put_file_back(path, before.as_ref(), &mut tell)?;
                    gone.push(path.clone());
                }
                RestoreEntry::Sysctl { name, before } => restore::put_setting_back(name, before, &mut tell)?,
                RestoreEntry::Module { name } => task::remove_module(name),
                _ => {}
            }
        }
        // The longest path first: each is empty when it is its turn, or it stays.
        let mut directories: Vec<_> = directories.into_iter().filter_map(RestoreEntry::as_own_directory).collect();
        directories.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        for (path, before) in directories {
            restore::put_directory_back(path, before, restore_log.has_made(path), &mut tell)?;
            gone.push(path.to_owned());
        }
        self.changed.extend(gone);
        restore::revive_units(old.iter().filter_map(RestoreEntry::as_unit))?;
        restore_log.forget_superseded(self.node_config)
    }

    /// Units of other programs that read files of ours; one that does not run reads them when it
    /// starts.
    fn restart_others(&mut self) -> Result<()> {
        let both = self.before.into_iter().chain([self.node_config]);
        let units: BTreeSet<&str> =
            both.flat_map(|node_config| node_config.find_restarts(|path| self.is_changed(path))).collect();
        if units.is_empty() {
            return Ok(());
        }
        systemctl(&["daemon-reload"])?;
        // systemd knows no unit of a program that the host lacks, and whose file it was not given.
        for unit in units.into_iter().filter(|unit| systemd::is("is-active", unit)) {
            systemctl(&["try-restart", unit])?;
            self.report(&NodeEvent::Changed(format!("restarted {unit}")))?;
        }
        Ok(())
    }

    fn is_changed(&self, path: &str) -> bool {
        self.changed.contains(path) || self.stale.contains(path)
    }

    /// systemd reads its units again once for all of them, as it does after `enable`: that takes it
    /// longer than all else here.
    fn start_units(&mut self, units: &[Unit], trigger: Trigger) -> Result<()> {
        for unit in units {
            let path = unit_file(&unit.name);
            let file = File::new(&path, unit.mode, 0, Content::Text(unit.text.clone()));
            let changed = task::ensure_file(self.node_config, &file, &self.secrets)?;
            self.note(changed, &path)?;
        }
        if !units.is_empty() {
            let names = units.iter().map(|unit| unit.name.as_str());
            systemctl(&["enable", "--quiet"].into_iter().chain(names).collect::<Vec<_>>())?;
        }
        units.iter().try_for_each(|unit| self.start_unit(unit, trigger))
    }

    fn start_unit(&mut self, unit: &Unit, trigger: Trigger) -> Result<()> {
        let path = unit_file(&unit.name);
        if trigger == Trigger::Agent && unit.name == AGENT_UNIT {
            // This run is the agent's: it would end itself in the middle of its work.
            return Ok(());
        }
        let before = self.before.and_then(|before| before.units.iter().find(|before| before.name == unit.name));
        let depends = |unit: &Unit| unit.depends_on_any(|file| self.is_changed(file));
        let is_other = before.is_some_and(|before| before.text != unit.text);
        let stale = is_other || self.changed.contains(&path) || before.into_iter().chain([unit]).any(depends);
        let drifted = !stale && firewall::find_drift(unit).is_some();
        self.note(drifted, "nftables table inet turnup")?;
        let verb = match (stale || drifted, unit.reloads) {
            (true, true) => "reload-or-restart",
            (true, false) => "restart",
            (false, _) => "start",
        };
        systemctl(&[verb, &unit.name])
    }

    /// The first start of this host's member of etcd, before kubelet starts its static pod.
    fn start_member(&mut self) -> Result<()> {
        let Some(start) = self.etcd_start else { return Ok(()) };
        let made = etcd_first_start::run(self.node_config, start, &EtcdPrograms::HOST)?;
        self.note(made, "data of etcd")
    }

    /// All at once: kubelet waits for them.
    fn import_images(&mut self, images: &[&Image]) -> Result<()> {
        let wanted = find_unimported(self.node_config, images)?;
        let node_config = self.node_config;
        std::thread::scope(|scope| {
            let threads: Vec<_> = wanted.iter().map(|image| scope.spawn(move || import(node_config, image))).collect();
            threads.into_iter().try_for_each(task::join)
        })?;
        wanted.iter().try_for_each(|image| self.note(true, &format!("image {}", image.reference)))
    }

    /// One after another, in the order in which pods will ask for them, while the control plane
    /// starts: that needs the processors more.
    fn import_beside(&mut self, images: &[&Image]) -> Result<()> {
        let wanted = find_unimported(self.node_config, images)?;
        let node_config = self.node_config;
        std::thread::scope(|scope| {
            let importing = scope.spawn(|| wanted.iter().try_for_each(|image| import(node_config, image)));
            let healthy = static_pod::wait_for_changed(node_config, &self.changed).and_then(|()| {
                node_config.health.iter().try_for_each(|health| {
                    wait_for_health(health)?;
                    self.report(&NodeEvent::Milestone(health.name.clone()))
                })
            });
            task::join(importing).and(healthy)
        })?;
        wanted.iter().try_for_each(|image| self.note(true, &format!("image {}", image.reference)))
    }

    /// Saves the node config for the operator, and as the proof that this configuration was applied
    /// to the end.
    fn remember(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self.node_config).context("cannot write the node config")?;
        task::write_atomic(Path::new(HOST_FILE), text.as_bytes(), 0o600, 0)?;
        identity::keep(self.node_config)?;
        if is_unfinished() {
            failpoint::around(format_args!("remove {UNFINISHED}"), || fs_err::remove_file(UNFINISHED))?;
        }
        Ok(())
    }

    fn note(&mut self, changed: bool, what: &str) -> Result<()> {
        if changed {
            self.changed.insert(what.to_owned());
            self.report(&NodeEvent::Changed(what.to_owned()))?;
        }
        Ok(())
    }

    fn report(&mut self, report: &NodeEvent) -> Result<()> {
        report.write(self.out)
    }
}

/// An error where containers that run would be lost from sight, and those that replace them find
/// their ports taken.
fn require_same_runtime(before: Option<&NodeConfig>, now: &NodeConfig) -> Result<()> {
    let Some((setting, was, is)) = before.and_then(|before| before.runtime.find_difference(&now.runtime)) else {
        return Ok(());
    };
    Err(Error::precondition(format!("{setting}: this host was made a node with {was}, not with {is}"))
        .evidence("containers that run cannot be moved; nothing was changed on the host")
        .hint(format!("turnup reset {} && turnup up; or turnup config set {setting}={was}", now.node)))
}

/// An error when files are for programs of which this host has none: what they say would do
/// nothing.
fn require_programs(node_config: &NodeConfig) -> Result<()> {
    let programs = node_config.files.iter().filter_map(|file| file.only_with.as_deref());
    let programs: Vec<&str> = programs.filter(|program| *program != facts::CLIENT_CERTIFICATE).collect();
    if programs.is_empty() || programs.iter().any(|program| Path::new(program).exists()) {
        return Ok(());
    }
    let message = format!("this host has none of {}, and its time servers are set", programs.join(", "));
    Err(Error::precondition(message).hint("add chrony to phase2.host.packages, or leave phase2.host.ntp_servers empty"))
}

/// An error when a unit may open more files than the kernel allows: systemd could not start it.
fn require_open_files(unit: &Unit) -> Result<()> {
    let limit = unit.text.lines().find_map(|line| line.strip_prefix("LimitNOFILE=")?.parse::<u64>().ok());
    let most = task::read_sysctl("fs.nr_open")?.parse::<u64>().unwrap_or(u64::MAX);
    match limit.filter(|limit| *limit > most) {
        None => Ok(()),
        Some(limit) => {
            let message = format!("{} may open {limit} files, and the kernel of this host allows {most}", unit.name);
            let hint = format!("phase2.host.open_files={most}, or phase2.host.sysctls=fs.nr_open={limit}");
            Err(Error::precondition(message).hint(hint))
        }
    }
}

/// The names of the images that are whole; containerd may need a moment to answer after its start.
fn wait_for_images() -> Result<BTreeSet<String>> {
    let since = Instant::now();
    loop {
        match Run::new(CTR).args(["--namespace", "k8s.io", "images", "list", "--quiet"]).dir("/").succeed() {
            Ok(output) => return Ok(output.stdout.lines().map(str::to_owned).collect()),
            Err(error) if since.elapsed() > Duration::from_secs(30) => return Err(error),
            Err(_) => signals::sleep(Duration::from_millis(100))?,
        }
    }
}

/// Those of the images that containerd does not have whole.
fn find_unimported<'i>(node_config: &NodeConfig, images: &[&'i Image]) -> Result<Vec<&'i Image>> {
    if images.is_empty() {
        return Ok(Vec::new());
    }
    let present = wait_for_images()?;
    let is_whole = |image: &Image| {
        image.references().all(|reference| present.contains(reference))
            && layout::import_stamp(&node_config.runtime.root, &image.sha256).exists()
    };
    Ok(images.iter().filter(|image| !is_whole(image)).copied().collect())
}

fn import(node_config: &NodeConfig, image: &Image) -> Result<()> {
    let _inside = failpoint::within(format_args!("image {}", image.reference));
    let blob = task::find_blob(node_config, &image.sha256)
        .ok_or_else(|| task::missing(&image.reference, &image.sha256, node_config))?;
    if task::digest_of(&blob)? != image.sha256 {
        return Err(Error::permanent(format!("{} is not the archive of {}", blob.display(), image.reference))
            .hint("turnup artifacts verify"));
    }
    let ctr =
        |args: &[&str]| Run::new(CTR).args(["--namespace", "k8s.io"]).args(args.iter().copied()).dir("/").succeed();
    let Runtime { root, snapshotter, .. } = &node_config.runtime;
    ctr(&["images", "import", "--local", "--snapshotter", snapshotter, &blob.display().to_string()])?;
    if let Some(archived) = &image.archived {
        ctr(&["images", "tag", "--force", archived, &image.reference])?;
        ctr(&["images", "remove", archived])?;
    }
    // kubelet removes unused images when the disk fills; nothing could bring these back.
    for reference in image.references() {
        ctr(&["images", "label", reference, "io.cri-containerd.pinned=pinned"])?;
    }
    task::write_atomic(&layout::import_stamp(root, &image.sha256), b"", 0o644, 0)
}

fn wait_for_health(health: &Health) -> Result<()> {
    let since = Instant::now();
    let mut kubelet = KubeletWatch::new();
    loop {
        let Err(why) = ask(&health.url) else { return Ok(()) };
        kubelet.require_up()?;
        if since.elapsed() > HEALTH {
            let error =
                Error::transient(format!("health check did not pass within {} s: {}", HEALTH.as_secs(), health.name));
            return Err(pod_log(&health.pod).into_iter().fold(error.evidence(why), Error::evidence));
        }
        signals::sleep(Duration::from_millis(50))?;
    }
}

/// One health check of this host: nothing where it passes, else what is wrong.
pub(super) fn ask(url: &str) -> std::result::Result<(), String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(2)))
        // It is on this host, whatever proxy leads elsewhere.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false);
    let answer = ureq::Agent::new_with_config(config.build()).get(url).call().map_err(|error| error.to_string())?;
    if answer.status() == ureq::http::StatusCode::OK { Ok(()) } else { Err(format!("HTTP {}", answer.status())) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::{ask, require_same_runtime};
    use crate::http_server::{LOOPBACK, send, serve};
    use crate::node::node_config::{NodeConfig, sample};

    #[test]
    fn another_directory_is_refused_with_the_way_to_it() {
        let before: NodeConfig = serde_json::from_value(sample()).unwrap();
        let mut now = before.clone();
        require_same_runtime(Some(&before), &now).unwrap();
        now.runtime.kubelet_root = "/data/kubelet".into();
        require_same_runtime(None, &now).unwrap();
        insta::assert_snapshot!(require_same_runtime(Some(&before), &now).unwrap_err().render(), @r"
        error: phase2.host.data_dir: this host was made a node with /var/lib/kubelet, not with /data/kubelet
          | containers that run cannot be moved; nothing was changed on the host
        next: turnup reset w && turnup up; or turnup config set phase2.host.data_dir=/var/lib/kubelet
        ");
    }

    #[test]
    fn only_a_200_is_healthy() {
        let url = serve(LOOPBACK, |request, stream| match request.path.as_str() {
            "/good" => send(stream, "200 OK", b"ok"),
            "/silent" => Ok(()),
            _ => send(stream, "503 Service Unavailable", b"etcd is not there"),
        });
        assert_eq!(ask(&format!("{url}/good")), Ok(()));
        assert_eq!(ask(&format!("{url}/bad")), Err("HTTP 503 Service Unavailable".to_owned()));
        assert!(ask(&format!("{url}/silent")).is_err());
        assert!(ask("http://127.0.0.1:1/").is_err());
    }
}
