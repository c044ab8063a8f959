//! A step that a user added: a command of their own in `phase.toml`, here or on hosts.
//! `docs/steps.md` is its manual.
//!
//! It decides nothing about a cluster, and reaches a host only through the host access that the
//! phase was given.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::host_access::{HostAccess, HostFacts};
use super::manifest::{HOST, RunsOn, unknown};
use super::{Action, Check, Cx, Inputs, Phase, Step};
use crate::change::{Change, Preview, Verb};
use crate::exec::{Failure, Output};
use crate::state::Store;
use crate::{Class, Error, Result, input};

/// The exit code with which a command says that it may work another time: `EX_TEMPFAIL`.
const TRY_AGAIN: i32 = 75;
/// Where files of the working directory lie on a host while a command runs there.
const REMOTE: &str = "/opt/turnup/steps";

/// The digests of files by their paths; none of a file that is not there.
type Digests = BTreeMap<String, Option<String>>;

/// The command, what it depends on and what it makes.
pub(super) struct CustomCommand {
    step: Step,
    phase: String,
    inputs: Inputs,
    work_dir: PathBuf,
    store: Store,
    roles: BTreeMap<String, String>,
    host_access: Option<Arc<dyn HostAccess>>,
}

impl CustomCommand {
    pub(super) fn new(phase: &Phase, step: &Step, store: &Store) -> Result<Self> {
        let mut inputs = Inputs::new().with("run", shell_words::join(&step.run));
        for path in &step.inputs {
            let below = format!("{path}.");
            let known = phase.settings.fingerprints();
            let found: Vec<_> = known.iter().filter(|(name, _)| *name == path || name.starts_with(&below)).collect();
            if found.is_empty() {
                let what = unknown("configuration path", path, known.keys().map(String::as_str));
                return Err(Error::config(format!("step `{}/{}`: {what}", phase.name, step.name)));
            }
            inputs.extend(found);
        }
        let names = || phase.hosts.iter().map(|host| host.name.as_str());
        for name in step.hosts.iter().filter(|name| !name.contains('*') && !phase.hosts.is_empty()) {
            if !names().any(|host| host == name) {
                let what = unknown("host", name, names());
                return Err(Error::config(format!("step `{}/{}`: {what}", phase.name, step.name)));
            }
        }
        Ok(Self {
            step: step.clone(),
            phase: phase.name.clone(),
            inputs,
            work_dir: phase.work_dir.clone(),
            store: store.clone(),
            roles: phase.hosts.iter().map(|host| (host.name.clone(), host.role.clone())).collect(),
            host_access: phase.host_access.clone(),
        })
    }

    fn id(&self, host: Option<&str>) -> String {
        let host = host.map_or_else(String::new, |host| format!("@{host}"));
        format!("{}-{}{host}", self.phase, self.step.name)
    }

    /// Below the cluster's directory: the digests of what the last run made.
    fn record(&self, host: Option<&str>) -> String {
        format!("outputs/steps/{}.json", self.id(host))
    }

    /// The words of the command that are files of the working directory: scripts of the user's own.
    fn scripts(&self) -> impl Iterator<Item = &String> {
        let is_script = |word: &&String| {
            word.contains('/') && !Path::new(word.as_str()).is_absolute() && self.work_dir.join(word.as_str()).is_file()
        };
        self.step.run.iter().filter(is_script)
    }

    fn outputs(&self, host: Option<&str>) -> Vec<String> {
        self.step.outputs.iter().map(|path| path.replace(HOST, host.unwrap_or_default())).collect()
    }

    fn host_access(&self) -> Result<&dyn HostAccess> {
        let missing = || Error::bug(format!("phase {} has no way to its hosts", self.phase));
        self.host_access.as_deref().ok_or_else(missing)
    }

    fn facts(&self, host: &str) -> Result<HostFacts> {
        self.host_access()?.host(host)?.ok_or_else(|| {
            let id = self.id(Some(host));
            Error::permanent(format!("{id}: how to reach {host} is not known yet"))
                .hint("a step with where = \"host\" comes after the inventory: after = [\"inventory\"]")
        })
    }

    /// What a command is told. Nothing of it is a secret: it is seen in the list of processes.
    fn variables(&self, host: Option<&str>) -> Result<Vec<(&'static str, String)>> {
        let mut told = vec![("TURNUP_PHASE", self.phase.clone()), ("TURNUP_STEP", self.step.name.clone())];
        told.push(("TURNUP_HOST", host.unwrap_or_default().to_owned()));
        let Some(host_access) = &self.host_access else { return Ok(told) };
        told.push(("TURNUP_CLUSTER", host_access.cluster()));
        if let Some(host) = host {
            told.push(("TURNUP_ROLE", self.roles.get(host).cloned().unwrap_or_default()));
            told.extend(host_access.host(host)?.map(|facts| ("TURNUP_ADDRESS", facts.address)));
        }
        Ok(told)
    }

    fn run_here(&self, host: Option<&str>, cx: &Cx) -> Result<Result<Output, Failure>> {
        let Some((program, arguments)) = self.step.run.split_first() else {
            return Err(Error::bug(format!("{} has no command", self.id(host))));
        };
        let mut run = cx.command(program).args(arguments).dir(&self.work_dir);
        run = run.env("TURNUP_CLUSTER_DIR", self.store.dir());
        for (name, value) in self.variables(host)? {
            run = run.env(name, value);
        }
        for (name, value) in self.host_access.iter().flat_map(|host_access| host_access.variables()) {
            run = run.env(name, value);
        }
        Ok(run.output())
    }

    fn run_there(&self, host: &str, cx: &Cx) -> Result<Result<Output, Failure>> {
        let (there, dir) = (self.host_access()?, format!("{REMOTE}/{}-{}", self.phase, self.step.name));
        let scripts: Vec<&String> = self.scripts().collect();
        for script in &scripts {
            let local = self.work_dir.join(script.as_str());
            let mode = fs_err::metadata(&local)?.permissions().mode() & 0o777;
            there.copy(host, &local, &format!("{dir}/{script}"), mode, cx)?;
        }
        let mut argv = vec!["env".to_owned()];
        argv.extend(self.variables(Some(host))?.into_iter().map(|(name, value)| format!("{name}={value}")));
        let moved = |word: &String| if scripts.contains(&word) { format!("{dir}/{word}") } else { word.clone() };
        argv.extend(self.step.run.iter().map(moved));
        let done = there.run(host, &argv, cx)?;
        if scripts.is_empty() {
            return Ok(done);
        }
        // Nothing but what the command itself made stays on the host.
        let removed = there.run(host, &["rm".into(), "-rf".into(), "--".into(), dir], cx);
        if done.is_ok() {
            removed??;
        }
        Ok(done)
    }

    /// The outputs as they are now.
    fn digests(&self, host: Option<&str>) -> Result<Digests> {
        let paths = self.outputs(host);
        match (self.step.place, host) {
            (RunsOn::Host, Some(host)) => self.digests_there(host, paths),
            _ => paths.into_iter().map(|path| Ok((path.clone(), digest_of(&self.work_dir.join(&path))?))).collect(),
        }
    }

    fn digests_there(&self, host: &str, paths: Vec<String>) -> Result<Digests> {
        let argv: Vec<String> = ["sha256sum".to_owned(), "--".to_owned()].into_iter().chain(paths.clone()).collect();
        let said = match self.host_access()?.look(host, &argv)? {
            Ok(output) => output.stdout,
            // Some file is missing; the others are told all the same.
            Err(Failure::Exited { code: 1, ended }) => ended.stdout,
            Err(failure) => return Err(failure.into()),
        };
        let found: BTreeMap<&str, &str> =
            said.lines().filter_map(|line| line.split_once("  ")).map(|(digest, path)| (path, digest)).collect();
        let digest = |path: String| (path.clone(), found.get(path.as_str()).map(|digest| (*digest).to_owned()));
        Ok(paths.into_iter().map(digest).collect())
    }

    fn compare(&self, recorded: &Digests, host: Option<&str>) -> Result<Check> {
        for (path, now) in self.digests(host)? {
            match (now, recorded.get(&path).and_then(Option::as_ref)) {
                (None, _) => return Ok(Check::Drifted(format!("{path} is not there"))),
                (Some(_), None) => {
                    return Ok(Check::Drifted(format!("the expected content of {path} is not known yet")));
                }
                (Some(now), Some(before)) if now != *before => {
                    return Ok(Check::Drifted(format!("{path} is not what the step made")));
                }
                _ => {}
            }
        }
        Ok(Check::Ok)
    }
}

impl Action for CustomCommand {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let mut inputs = self.inputs.clone();
        // A script of the user's own: another content is another command.
        for word in self.scripts() {
            inputs.insert(format!("file {word}"), input::read(&self.work_dir.join(word), input::DOCUMENT)?);
        }
        match (self.step.place, host, &self.host_access) {
            (RunsOn::Host, Some(host), _) => inputs.insert("host instance", self.facts(host)?.instance),
            // A phase that makes the hosts cannot know them before and after in the same way.
            (RunsOn::Here, Some(host), Some(host_access)) if !host_access.makes_hosts() => {
                if let Some(facts) = host_access.host(host)? {
                    inputs.insert("host instance", facts.instance);
                    inputs.insert("host address", facts.address);
                }
            }
            _ => {}
        }
        Ok(inputs)
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        if self.step.outputs.is_empty() {
            // The engine cannot know what a custom command makes; only its inputs count.
            return Ok(Check::Ok);
        }
        let recorded = self.store.read_json(self.record(host))?.unwrap_or_default();
        match self.compare(&recorded, host) {
            Err(error) if error.class() == Class::Interrupted => Err(error),
            Err(error) => Ok(Check::Drifted(format!("cannot look: {}", error.message()))),
            proof => proof,
        }
    }

    fn preview(&self, host: Option<&str>) -> Result<Preview> {
        let there = host.filter(|_| self.step.place == RunsOn::Host);
        let kind = there.map_or_else(|| "command".to_owned(), |host| format!("command on {host}"));
        let lines = self.outputs(host).into_iter().map(|path| format!("+ {path}"));
        let change = Change::new(Verb::Run, kind, shell_words::join(&self.step.run));
        Ok(vec![change.with_lines(lines.collect())].into())
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let done = match (self.step.place, host) {
            (RunsOn::Host, Some(host)) => self.run_there(host, cx)?,
            _ => self.run_here(host, cx)?,
        };
        done.map_err(|failure| {
            let class = if failure.code() == Some(TRY_AGAIN) { Class::Transient } else { failure.class() };
            failure.into_error(class)
        })?;
        if self.step.outputs.is_empty() {
            return Ok(());
        }
        let made = self.digests(host)?;
        let missing: Vec<&str> =
            made.iter().filter(|(_, digest)| digest.is_none()).map(|(path, _)| path.as_str()).collect();
        if !missing.is_empty() {
            let message = format!("the command ended well, but did not make {}", missing.join(", "));
            return Err(Error::permanent(message).hint("correct the command, or `outputs` in phase.toml"));
        }
        self.store.write_json(self.record(host), &made, 0o600)
    }
}

/// The sha256 of a file; nothing when it is not there.
fn digest_of(path: &Path) -> Result<Option<String>> {
    match fs_err::File::open(path) {
        Ok(mut file) => {
            let mut hash = Sha256::new();
            std::io::copy(&mut file, &mut HashWriter(&mut hash))?;
            Ok(Some(hex::encode(hash.finalize())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

struct HashWriter<'h>(&'h mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
