//! The steps of the provision phase, in the order of `phases/provision/phase.toml`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::artifacts::{Cache, Lock, host_root_digest};
use crate::change::{self, Preview};
use crate::cluster::{Cluster, KNOWN_HOSTS, SSH_KEY};
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::{Failure, Run};
use crate::phase::{Action, Cx, Host as PhaseHost, Inputs, Phase, Proof, Sink};
use crate::state::Store;

use super::adopt;
use super::baremetal;
use super::forecast;
use super::handoff::{self, Handoff};
use super::local::{self, HostSpec, NetworkSpec, Status};
use super::render::{self, DIR, PlannedHost, VARIABLES, host_key, planned_hosts, public_key, spec_file};
use super::terraform::Terraform;
use super::tfplan::Planned;

/// The phase for this cluster's target.
pub fn phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    adopt::refuse_adopted(cluster)?;
    if cluster.settings.target == "baremetal" {
        return baremetal::phase(cluster);
    }
    let manifest = cluster.manifest("provision")?;
    let shared = || Arc::clone(cluster);
    let hosts = planned_hosts(cluster)?;
    let seen = hosts.iter().map(|host| PhaseHost { name: host.name.clone(), role: host.role.name().into() }).collect();
    Ok(cluster
        .phase("provision", manifest, seen)
        .with("keys", Keys(shared()))
        .with("root", Root(shared()))
        .with("render", Render(shared()))
        .with("apply", Apply { cluster: shared(), planned: OnceLock::new() })
        .with("start", Start(shared()))
        .with("handoff", Collect(shared())))
}

/// Whether the provision phase has made, or begun to make, hosts.
pub fn has_made(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.store.read(format!("{DIR}/main.tf"))?.is_some())
}

/// What [`destroy`] would remove, as far as Terraform's state and the descriptions of local hosts tell.
pub fn list_made(cluster: &Cluster) -> Result<Vec<String>> {
    let state = cluster.store.read(format!("{DIR}/terraform.tfstate"))?.unwrap_or_default();
    // A state that does not read is Terraform's to complain about; this is only to be looked at.
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap_or_default();
    let mut made = Vec::new();
    for resource in state["resources"].as_array().into_iter().flatten().filter(|one| one["mode"] == "managed") {
        let name = format!("{}.{}", text(&resource["type"]), text(&resource["name"]));
        for instance in resource["instances"].as_array().into_iter().flatten() {
            let key = instance.get("index_key").map(|key| format!("[{key}]")).unwrap_or_default();
            made.push(format!("{name}{key}"));
        }
    }
    for entry in fs_err::read_dir(cluster.store.path(format!("{DIR}/hosts"))).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".json").to_owned();
        made.push(format!("the local host {name} with its disk"));
    }
    made.sort();
    Ok(made)
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Destroys what Terraform made.
pub fn destroy(cluster: &Cluster, cx: &Cx) -> Result<()> {
    if !has_made(cluster)? {
        return Ok(());
    }
    let terraform = terraform(cluster, cx)?;
    terraform.init(cx)?;
    terraform.destroy(cx)?;
    remove_leftovers(cluster, cx)
}

/// Terraform forgets a host whose creation failed without calling its destroy provisioner; the host's description is still here.
fn remove_leftovers(cluster: &Cluster, cx: &Cx) -> Result<()> {
    for entry in fs_err::read_dir(cluster.store.create_dir(format!("{DIR}/hosts"))?)? {
        let path = entry?.path();
        let (spec, _turn) = (HostSpec::read(&path)?, HostSpec::take_turn(&path)?);
        cx.progress(format!("removing what is left of {}", spec.name));
        local::delete_host(&spec)?;
    }
    let network = cluster.store.path(format!("{DIR}/network.json"));
    if network.exists() {
        local::delete_network(&NetworkSpec::read(&network)?)?;
    }
    Ok(())
}

/// The program, provided that it need not be fetched first: to look, nothing is fetched.
fn terraform_at_hand(cluster: &Cluster, dir: PathBuf) -> Option<Terraform> {
    let link = cluster.store.path("bin/tofu");
    let program = Terraform::on_path().or_else(|| link.exists().then_some(link))?;
    Some(Terraform::new(program, dir, cluster.exe.clone()))
}

/// The program on PATH, else `OpenTofu` from the artifacts.
fn terraform(cluster: &Cluster, cx: &Cx) -> Result<Terraform> {
    let program = if let Some(program) = Terraform::on_path() {
        program
    } else {
        let selection = Lock::load(&cluster.work_dir)?.select(&cluster.settings.kubernetes_version)?;
        cx.progress("neither terraform nor tofu is on PATH: taking OpenTofu from the artifacts");
        let tofu = Cache::open()?.ensure(selection.binary("tofu")?, &cluster.settings.sources, cx);
        executable(&tofu.map_err(without_terraform)?, cluster)?
    };
    Ok(Terraform::new(program, cluster.store.path(DIR), cluster.exe.clone()))
}

fn without_terraform(error: Error) -> Error {
    if error.class() == Class::Interrupted {
        return error;
    }
    let class = if error.class() == Class::Transient { Class::Transient } else { Class::Person };
    let message = "neither terraform nor tofu is on PATH, and OpenTofu cannot be had from the artifacts";
    Error::new(class, message)
        .hint("install terraform or tofu, or let turnup build it: turnup config set phase2.artifacts.source=y")
        .source(error)
}

/// A blob has no name that tells what it is; the link has.
fn executable(blob: &std::path::Path, cluster: &Cluster) -> Result<PathBuf> {
    let link = cluster.store.create_dir("bin")?.join("tofu");
    if fs_err::read_link(&link).ok().as_deref() != Some(blob) {
        if link.is_symlink() {
            fs_err::remove_file(&link)?;
        }
        fs_err::os::unix::fs::symlink(blob, &link)?;
    }
    Ok(link)
}

/// Makes a key and its public half, or keeps it. ssh-keygen may be killed between the halves, or in one: it writes beside their places,
/// and they come to them whole, the private one last.
pub(super) fn ensure_key(store: &Store, file: &str, cx: &Cx) -> Result<()> {
    let (public, new) = (format!("{file}.pub"), format!("{file}.new"));
    if store.read(file)?.is_none() || store.read(&public)?.is_none() {
        store.remove(&new)?;
        let run = Run::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "turnup", "-f"]);
        run.arg(store.path(&new)).dir(store.dir()).log(cx.log_path()).succeed()?;
        let made = |file: &str| -> Result<Zeroizing<Vec<u8>>> {
            let bytes = store.read(file)?.ok_or_else(|| Error::bug(format!("ssh-keygen made no {file}")))?;
            Ok(Zeroizing::new(bytes))
        };
        store.write_file(&public, &made(&format!("{new}.pub"))?, 0o644)?;
        store.write_file(file, &made(&new)?, 0o600)?;
    }
    store.remove(&new)?;
    store.remove(format!("{new}.pub"))
}

/// The cluster's SSH key and every host's own key, made before the hosts so that the first connection already knows them.
struct Keys(Arc<Cluster>);

impl Keys {
    fn files(&self) -> Result<Vec<String>> {
        let hosts = planned_hosts(&self.0)?;
        Ok(std::iter::once(SSH_KEY.to_owned()).chain(hosts.iter().map(|host| host_key(&host.name))).collect())
    }

    fn known_hosts(&self) -> Result<String> {
        let line = |host: &PlannedHost| {
            let key = public_key(&self.0, &host_key(&host.name))?;
            Ok(format!("{} {key}\n", host.address))
        };
        planned_hosts(&self.0)?.iter().map(line).collect()
    }
}

impl Action for Keys {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(self.0.inputs(&["phase1.cluster_name", "phase1.num_nodes", "phase1.local.subnet"]))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        for file in self.files()?.into_iter().flat_map(|file| [format!("{file}.pub"), file]) {
            if self.0.store.read(&file)?.is_none() {
                return Ok(Proof::Gone(format!("{file} is missing")));
            }
        }
        Ok(Proof::Holds)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.store.create_dir("ssh/hosts")?;
        for file in self.files()? {
            ensure_key(&self.0.store, &file, cx)?;
        }
        self.0.store.write_file(KNOWN_HOSTS, self.known_hosts()?.as_bytes(), 0o600)
    }

    fn foresee(&self, _host: Option<&str>) -> Result<bool> {
        for file in self.files()?.into_iter().map(|file| format!("{file}.pub")) {
            if self.0.store.read(&file)?.is_none() {
                self.0.store.write_file(&file, change::known_after("provision/keys").as_bytes(), 0o644)?;
            }
        }
        Ok(true)
    }
}

/// The read-only root that all local hosts share.
struct Root(Arc<Cluster>);

impl Action for Root {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new().with("host root", host_root_digest(&self.0.settings.root_suite).to_string()))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        let path = Cache::open()?.host_root_path(&self.0.settings.root_suite);
        Ok(if path.is_dir() { Proof::Holds } else { Proof::Gone(format!("{} is missing", path.display())) })
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        Cache::open()?.host_root(&self.0.settings.root_suite, cx)?;
        Ok(())
    }
}

/// The Terraform module, its variables and the hosts' descriptions, as files that a person can read before they are used.
struct Render(Arc<Cluster>);

impl Action for Render {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let cluster = &self.0;
        let names = ["phase1.cluster_name", "phase1.num_nodes", "phase1.local", "phase2.api_port"];
        let module = cluster.source.digest(&format!("templates/provision/{}", cluster.settings.target));
        let blobs = Cache::locate()?.blobs_dir();
        Ok(cluster.inputs(&names).with("Terraform module", module).with("cache", blobs.as_os_str().as_encoded_bytes()))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        for (path, text) in render::files(&self.0)? {
            if self.0.store.read(&path)?.as_deref() != Some(text.as_bytes()) {
                return Ok(Proof::Gone(format!("{path} is missing or was changed")));
            }
        }
        Ok(Proof::Holds)
    }

    fn run(&self, _host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.foresee(None).map(drop)
    }

    fn foresee(&self, _host: Option<&str>) -> Result<bool> {
        for (path, text) in render::files(&self.0)? {
            self.0.store.write_file(&path, text.as_bytes(), 0o600)?;
        }
        Ok(true)
    }
}

/// Terraform's plan and apply.
struct Apply {
    cluster: Arc<Cluster>,
    /// What Terraform would change; none when it is not at hand. Asked once.
    planned: OnceLock<Option<Planned>>,
}

impl Apply {
    /// Hosts that Terraform believes in and that are not there: somebody removed them by hand.
    fn vanished(&self) -> Result<BTreeSet<String>> {
        let mut addresses = BTreeSet::new();
        if self.cluster.store.read(format!("{DIR}/terraform.tfstate"))?.is_none() {
            return Ok(addresses);
        }
        for host in planned_hosts(&self.cluster)? {
            let path = self.cluster.store.path(spec_file(&host.name));
            if path.exists() && local::status_of(&HostSpec::read(&path)?)? == Status::Absent {
                addresses.insert(forecast::address_of(&host.name));
            }
        }
        Ok(addresses)
    }
}

impl Apply {
    /// Terraform's plan for what the directory would have, made in a directory of its own.
    fn foretell(&self) -> Result<Option<&Planned>> {
        if let Some(planned) = self.planned.get() {
            return Ok(planned.as_ref());
        }
        let planned = self.plan_aside()?;
        Ok(self.planned.get_or_init(|| planned).as_ref())
    }

    fn plan_aside(&self) -> Result<Option<Planned>> {
        let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
        let Some(terraform) = terraform_at_hand(&self.cluster, scratch.path().to_owned()) else { return Ok(None) };
        let aside = Store::at(scratch.path());
        let module = render::files(&self.cluster)?.into_iter().map(|(path, _)| path);
        for path in module.chain([format!("{DIR}/terraform.tfstate")]) {
            let name = path.trim_start_matches(DIR).trim_start_matches('/').to_owned();
            if let Some(bytes) = self.cluster.store.read(&path)?.filter(|_| !name.contains('/')) {
                aside.write_file(name, &bytes, 0o600)?;
            }
        }
        let log = scratch.path().join("plan.log");
        let cx = Cx::detached("provision/apply", Sink::null(), &log, Duration::from_mins(10));
        terraform.init(&cx)?;
        let known = terraform.resources()?;
        terraform.plan(&self.vanished()?.intersection(&known).cloned().collect(), &log)?;
        terraform.show_plan().map(Some)
    }

    /// How many hosts do not run yet.
    fn to_start(&self) -> Result<usize> {
        let mut count = 0;
        for host in planned_hosts(&self.cluster)? {
            let spec = HostSpec::read(&self.cluster.store.path(spec_file(&host.name)))?;
            count += usize::from(local::status_of(&spec)? != Status::Running);
        }
        Ok(count)
    }

    /// Removes the descriptions of hosts that Terraform has deleted; until then it needs them.
    fn forget_specs(&self) -> Result<()> {
        let planned: BTreeSet<String> =
            planned_hosts(&self.cluster)?.iter().map(|host| spec_file(&host.name)).collect();
        for entry in fs_err::read_dir(self.cluster.store.path(format!("{DIR}/hosts")))? {
            let file = format!("{DIR}/hosts/{}", entry?.file_name().to_string_lossy());
            if !planned.contains(&file) {
                self.cluster.store.remove(file)?;
            }
        }
        Ok(())
    }
}

impl Action for Apply {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let module = self.cluster.source.digest(&format!("templates/provision/{}", self.cluster.settings.target));
        let variables = self.cluster.store.read(VARIABLES)?.unwrap_or_default();
        Ok(Inputs::new().with("Terraform module", module).with("Terraform variables", variables))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        match self.vanished()?.first() {
            Some(address) => Ok(Proof::Gone(format!("{address} is gone"))),
            None => Ok(Proof::Holds),
        }
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        let planned = self.foretell()?;
        Ok(planned.map_or_else(|| Preview::after("provision/apply"), |planned| planned.changes.clone().into()))
    }

    fn foresee(&self, _host: Option<&str>) -> Result<bool> {
        let Some(planned) = self.foretell()? else { return Ok(false) };
        if planned.changes_nothing() {
            return Ok(true);
        }
        let file = format!("{DIR}/terraform.tfstate");
        self.cluster.store.write_file(file, change::known_after("provision/apply").as_bytes(), 0o600)?;
        forecast::foresee_handoff(&self.cluster, &planned.changed_addresses())?;
        Ok(true)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        local::require_room(self.to_start()?)?;
        let terraform = terraform(&self.cluster, cx)?;
        terraform.init(cx)?;
        // What was made halfway is not in Terraform's state; making it again completes it, so only what it believes in is replaced.
        let known = terraform.resources()?;
        let replace = self.vanished()?.intersection(&known).cloned().collect();
        let changes = terraform.plan(&replace, cx.log_path())?;
        if cx.is_bound() {
            cx.admit(&terraform.show_plan()?.changes)?;
        }
        for change in &changes {
            cx.progress(format!("{}: {}", change.address, change.action));
        }
        terraform.apply(changes.len(), cx)?;
        self.forget_specs()
    }
}

/// A local host that exists runs and answers; after a restart of the machine it does not.
struct Start(Arc<Cluster>);

impl Start {
    fn spec(&self, host: Option<&str>) -> Result<(PathBuf, HostSpec)> {
        let path = self.0.store.path(spec_file(host.unwrap_or_default()));
        let spec = HostSpec::read(&path)?;
        Ok((path, spec))
    }
}

impl Action for Start {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new())
    }

    fn verify(&self, host: Option<&str>) -> Result<Proof> {
        let path = self.0.store.path(spec_file(host.unwrap_or_default()));
        if !path.exists() {
            return Ok(Proof::Gone("the host does not exist yet".into()));
        }
        match local::status_of(&HostSpec::read(&path)?)? {
            Status::Running => Ok(Proof::Holds),
            Status::Stopped => Ok(Proof::Gone("the host does not run".into())),
            Status::Absent => Ok(Proof::Gone("the host is gone".into())),
        }
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let (path, spec) = self.spec(host)?;
        if local::status_of(&spec)? == Status::Running {
            return Ok(());
        }
        // A process of its own, because it moves itself into the host's cgroup.
        let run = Run::new(&self.0.exe).args(["local", "host", "start", "--spec"]).arg(path).dir(self.0.store.dir());
        run.log(cx.log_path()).timeout(Duration::from_secs(90)).output().map_err(Failure::relay)?;
        Ok(())
    }
}

/// The hand-off is there and can be read; it is made anew from what it was made from.
pub(super) fn prove_handoff(cluster: &Cluster) -> Proof {
    match cluster.find_handoff() {
        Ok(Some(_)) => Proof::Holds,
        Ok(None) => Proof::Gone(format!("{} is missing", handoff::FILE)),
        Err(_) => Proof::Gone(format!("{} is damaged", handoff::FILE)),
    }
}

/// Terraform's output becomes the hand-off.
struct Collect(Arc<Cluster>);

impl Action for Collect {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let state = self.0.store.read(format!("{DIR}/terraform.tfstate"))?.unwrap_or_default();
        Ok(Inputs::new().with("Terraform state", state))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        Ok(prove_handoff(&self.0))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let value = terraform(&self.0, cx)?.output("handoff")?;
        let value = value.ok_or_else(|| Error::bug("the Terraform module has no output named handoff"))?;
        let handoff = Handoff::parse("terraform output handoff", &value.to_string())?;
        self.0.write_handoff(&handoff)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::phase::Sink;

    #[test]
    fn a_key_is_there_whole_or_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.create_dir("ssh").unwrap();
        let log = dir.path().join("log");
        let ensure = || ensure_key(&store, "ssh/key", &Cx::detached("keys", Sink::channel().0, &log, Duration::ZERO));
        let names = || {
            let entries = fs_err::read_dir(dir.path().join("ssh")).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
            names.collect::<BTreeSet<String>>()
        };
        // What a killed ssh-keygen may leave: a private key, and half of the public one.
        store.write_file("ssh/key.new", b"private", 0o600).unwrap();
        store.write_file("ssh/key.new.pub", b"ssh-ed", 0o644).unwrap();
        ensure().unwrap();
        assert_eq!(names(), BTreeSet::from(["key".into(), "key.pub".into()]));
        let first = store.read("ssh/key").unwrap();
        ensure().unwrap();
        assert_eq!(store.read("ssh/key").unwrap(), first, "a whole key is kept");
        // The public half comes first, so alone it belongs to nobody.
        store.remove("ssh/key").unwrap();
        ensure().unwrap();
        let public = String::from_utf8(store.read("ssh/key.pub").unwrap().unwrap()).unwrap();
        assert!(public.starts_with("ssh-ed25519 ") && public.ends_with(" turnup\n"), "{public}");
    }
}
