//! What a cloud does for its machines, for the hosts of one local cluster: the API of their
//! volumes, and another machine in the place of one that died.
//!
//! One process on this machine's address of the bridge, from the first host to the last. It knows
//! the hosts by their descriptions, and ends by itself when its own is gone. What it replaces it
//! has seen running: a host that was stopped with this machine, or deleted, is not its matter.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::artifacts::Digest;
use crate::cloud::LocalVolumeState;
use crate::document::Fields;
use crate::error::{Context as _, Error, Result};
use crate::exec::{Run, detach::detach, signals};
use crate::failpoint;

use super::process::{find_leader, find_service, stop};
use super::spec::{HostSpec, VolumeSpec};
use super::{machine, spec, volume};

/// Between two looks at the hosts.
const LOOK: Duration = Duration::from_secs(1);
/// How long the process may take to serve, and to end.
const START: Duration = Duration::from_secs(20);
/// For one host: deleted, made again, until its sshd answers.
const REPLACE: Duration = Duration::from_mins(5);

/// What the process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// Where it serves.
    pub address: SocketAddrV4,
    /// The copy of turnup that it is: hosts that it makes have the turnup that their user data
    /// names, also when the one on this machine is another by then.
    pub program: PathBuf,
    /// The sha256 of that, in hexadecimal.
    pub version: String,
    /// The directory with the descriptions of the hosts.
    pub hosts: PathBuf,
    /// Where it says what it did.
    pub log: PathBuf,
    /// How many milliseconds a volume takes to be attached, as in a cloud: for tests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attach_delay: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ServiceSpec {
    /// Reads one.
    pub fn read(path: &Path) -> Result<Self> {
        let fields = Fields::new(&[
            ("address", "text"),
            ("program", "path"),
            ("version", "sha256"),
            ("hosts", "path"),
            ("log", "path"),
        ]);
        spec::read(path, &fields)
    }

    fn list_hosts(&self) -> Vec<(PathBuf, HostSpec)> {
        let files = fs_err::read_dir(&self.hosts).into_iter().flatten().flatten().map(|entry| entry.path());
        // One may be written or removed just now.
        let read = |file: PathBuf| HostSpec::read(&file).ok().map(|spec| (file, spec));
        files.filter(|file| file.extension().is_some_and(|ending| ending == "json")).filter_map(read).collect()
    }
}

/// Whether the process of this description runs.
#[must_use]
pub fn serves(spec: &Path) -> bool {
    find_service(spec).is_ok_and(|found| found.is_some())
}

/// Starts the process, in the place of one that runs, and waits until it serves.
pub fn start_service(path: &Path) -> Result<()> {
    stop_service(path)?;
    let spec = ServiceSpec::read(path)?;
    copy_program(&spec)?;
    require_free(spec.address)?;
    let mut words: Vec<OsString> = ["local", "serve", "--spec"].map(Into::into).into();
    words.push(path.into());
    let program = spec.program.display().to_string();
    if machine::has_systemd() {
        // A unit of its own: the end of a login session does not end it.
        let all = [OsString::from("--quiet"), "--collect".into(), "--slice=machine.slice".into()];
        let log = format!("--property=StandardOutput=append:{0}", spec.log.display());
        let error = format!("--property=StandardError=append:{0}", spec.log.display());
        let all: Vec<OsString> =
            all.into_iter().chain([log.into(), error.into(), program.into()]).chain(words).collect();
        detach("systemd-run", &all, &[], &spec.log)?;
    } else {
        detach(&program, &words, &[], &spec.log)?;
    }
    let since = Instant::now();
    while TcpStream::connect_timeout(&spec.address.into(), Duration::from_millis(500)).is_err() {
        if since.elapsed() > START || (since.elapsed() > Duration::from_secs(2) && !serves(path)) {
            let text = fs_err::read_to_string(&spec.log).unwrap_or_default();
            let message = format!("the service of the local hosts does not answer at {}", spec.address);
            let lines = text.lines().rev().take(5).collect::<Vec<_>>();
            let error = lines.into_iter().rev().fold(Error::transient(message), Error::evidence);
            return Err(error.hint(format!("less {}", spec.log.display())));
        }
        signals::sleep(Duration::from_millis(50))?;
    }
    Ok(())
}

/// An error where another program listens: what answered later would be that.
fn require_free(address: SocketAddrV4) -> Result<()> {
    TcpListener::bind(address).map(drop).map_err(|error| {
        Error::precondition(format!("the local hosts cannot be served at {address}: {error}"))
            .hint(format!("ss --listening --tcp --numeric --processes 'sport = {}'", address.port()))
    })
}

fn copy_program(spec: &ServiceSpec) -> Result<()> {
    let own = std::env::current_exe().context("cannot find turnup's own binary")?;
    let is_right = |file: &Path| Digest::of_file(file).is_ok_and(|found| found.to_string() == spec.version);
    if is_right(&spec.program) {
        return Ok(());
    }
    if !is_right(&own) {
        let message = format!("{} is not the turnup that the hosts' user data names", own.display());
        return Err(Error::precondition(message).hint("turnup up"));
    }
    let part = spec.program.with_extension("part");
    failpoint::around(format_args!("copy turnup"), || fs_err::copy(&own, &part))?;
    fs_err::rename(&part, &spec.program)?;
    Ok(())
}

/// Ends it.
pub fn stop_service(path: &Path) -> Result<()> {
    stop(|| find_service(path), START, "the service of the local hosts")
}

/// Serves and watches until a signal comes, or this is not the description any more. What it did
/// goes to `tell`, a line each.
pub fn serve(path: &Path, tell: impl Fn(String) + Send + Sync + 'static) -> Result<()> {
    let spec = ServiceSpec::read(path)?;
    let refused = |error| Error::precondition(format!("cannot listen at {}: {error}", spec.address));
    let server = Server::http(spec.address).map_err(refused)?;
    let service = Arc::new(Service { spec, tell: Box::new(tell), attaching: Mutex::default() });
    service.say(format!("serves at {}", service.spec.address));
    let (mut watch, mut looked_at) = (Watch::default(), None::<Instant>);
    while !signals::interrupted() {
        if looked_at.is_none_or(|at| at.elapsed() >= LOOK) {
            if ServiceSpec::read(path).ok().as_ref() != Some(&service.spec) {
                service.say("ends: it is not described any more".into());
                return Ok(());
            }
            watch.look(&service)?;
            looked_at = Some(Instant::now());
        }
        if let Some(request) = server.recv_timeout(LOOK / 4)? {
            let service = Arc::clone(&service);
            thread::Builder::new().spawn(move || service.answer(request)).context("cannot start a thread")?;
        }
    }
    Ok(())
}

type Tell = Box<dyn Fn(String) + Send + Sync>;

struct Service {
    spec: ServiceSpec,
    tell: Tell,
    /// Volumes on their way.
    attaching: Mutex<BTreeSet<String>>,
}

/// Status and body.
type Answer = (u16, String);

impl Service {
    fn say(&self, line: String) {
        (self.tell)(line);
    }

    fn answer(self: Arc<Self>, request: Request) {
        let url = request.url().to_owned();
        let asks = request.remote_addr().map(std::net::SocketAddr::ip);
        let is_attach = *request.method() == Method::Post;
        let (status, body) = self.answer_of_volumes(&url, is_attach, asks).unwrap_or_else(|error| {
            self.say(format!("{url}: {}", error.in_one_line()));
            (503, error.message().to_owned())
        });
        let response = Response::from_string(body).with_status_code(status);
        let json = Header::from_bytes("Content-Type", "application/json").ok();
        drop(request.respond(json.into_iter().fold(response, Response::with_header)));
    }

    fn answer_of_volumes(self: &Arc<Self>, url: &str, is_attach: bool, asks: Option<IpAddr>) -> Result<Answer> {
        let hosts = self.spec.list_hosts();
        let host = hosts.iter().map(|(_, host)| host).find(|host| Some(IpAddr::from(host.address)) == asks);
        let Some(host) = host else { return Ok((403, "only hosts of this cluster are answered".into())) };
        let volumes: BTreeMap<&str, &VolumeSpec> =
            hosts.iter().filter_map(|(_, host)| host.volume.as_ref()).map(|one| (one.name.as_str(), one)).collect();
        if url == "/volumes" && !is_attach {
            let all = volumes.values().map(|one| volume::look(one, host)).collect::<Result<Vec<_>>>()?;
            return Ok((200, serde_json::to_string(&all).context("volumes are no JSON")?));
        }
        let Some(one) = url.strip_prefix("/volumes/").and_then(|name| volumes.get(name)) else {
            return Ok((404, "there is no such volume".into()));
        };
        if is_attach {
            return self.attach(one, host);
        }
        let mut found = volume::look(one, host)?;
        if found.state == LocalVolumeState::Available && self.attaching().contains(&one.name) {
            found.state = LocalVolumeState::Attaching;
        }
        Ok((200, serde_json::to_string(&found).context("a volume is no JSON")?))
    }

    /// As in a cloud, it is taken before it is there.
    fn attach(self: &Arc<Self>, one: &VolumeSpec, host: &HostSpec) -> Result<Answer> {
        let taken = || Ok((409, "another host has it".into()));
        let seen = volume::look(one, host)?;
        if seen.state == LocalVolumeState::InUse && !seen.here || !self.attaching().insert(one.name.clone()) {
            return taken();
        }
        let (service, one, host) = (Arc::clone(self), one.clone(), host.clone());
        let work = move || {
            thread::sleep(Duration::from_millis(service.spec.attach_delay));
            let attached = volume::attach(&one, &host);
            service.attaching().remove(&one.name);
            match attached {
                Ok(true) => service.say(format!("the volume {} is attached to {}", one.name, host.name)),
                Ok(false) => service.say(format!("{} lost the race for the volume {}", host.name, one.name)),
                Err(error) => service.say(format!("the volume {}: {}", one.name, error.in_one_line())),
            }
        };
        thread::Builder::new().spawn(work).context("cannot start a thread")?;
        Ok((202, "attaching".into()))
    }

    fn attaching(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.attaching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By a process of its own, because it moves itself into the host's cgroup.
    fn replace(&self, spec: &Path) -> Result<()> {
        let run = Run::new(&self.spec.program).args(["local", "host", "replace", "--spec"]).arg(spec);
        run.dir(&self.spec.hosts).timeout(REPLACE).succeed().map(drop)
    }
}

/// The hosts that were seen running, and those that are being replaced.
#[derive(Default)]
struct Watch {
    running: BTreeSet<String>,
    replaced: BTreeMap<String, JoinHandle<()>>,
}

impl Watch {
    fn look(&mut self, service: &Arc<Service>) -> Result<()> {
        self.replaced.retain(|_, work| !work.is_finished());
        let hosts = service.spec.list_hosts();
        let look = |host: &HostSpec| Ok((host.name.clone(), find_leader(&host.machine)?.is_some()));
        let seen = hosts.iter().map(|(_, host)| look(host)).collect::<Result<BTreeMap<String, bool>>>()?;
        let dead = find_dead(&mut self.running, &seen);
        for (path, host) in hosts.into_iter().filter(|(_, host)| dead.contains(&host.name)) {
            if self.replaced.contains_key(&host.name) {
                continue;
            }
            let (service, name) = (Arc::clone(service), host.name.clone());
            let work = move || replace(&service, &name, &path);
            failpoint::pass(format_args!("replace {}: before", host.name));
            let work = thread::Builder::new().spawn(work).context("cannot start a thread")?;
            self.replaced.insert(host.name, work);
        }
        Ok(())
    }
}

/// The hosts that ran at the last look and do not any more. `seen` has those that are described,
/// and whether they run; `running` becomes those that do. Pure.
fn find_dead(running: &mut BTreeSet<String>, seen: &BTreeMap<String, bool>) -> BTreeSet<String> {
    let now: BTreeSet<String> = seen.iter().filter(|(_, runs)| **runs).map(|(name, _)| name.clone()).collect();
    let before = std::mem::replace(running, now);
    before.into_iter().filter(|name| seen.get(name) == Some(&false)).collect()
}

fn replace(service: &Service, name: &str, path: &Path) {
    let since = Instant::now();
    service.say(format!("{name} does not run any more"));
    match service.replace(path) {
        Ok(()) => service.say(format!("{name} is settled after {:.1} s", since.elapsed().as_secs_f64())),
        Err(error) => service.say(format!("{name} cannot be replaced: {}; next: turnup up", error.in_one_line())),
    }
}

/// Writes a line, with the time, to what the process was given as its log.
pub fn write_line(line: &str) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    drop(writeln!(std::io::stdout().lock(), "{now} {line}"));
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn what_is_replaced_was_seen_running_and_is_still_described() {
        let mut running = BTreeSet::new();
        let mut look = |hosts: &[(&str, bool)]| {
            let seen = hosts.iter().map(|(name, runs)| ((*name).to_owned(), *runs)).collect();
            find_dead(&mut running, &seen).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(look(&[("a", true), ("b", false)]), [""; 0], "b was stopped with this machine");
        assert_eq!(look(&[("a", true), ("b", true)]), [""; 0]);
        assert_eq!(look(&[("a", false), ("b", true)]), ["a"]);
        assert_eq!(look(&[("a", false), ("b", true)]), [""; 0], "once");
        assert_eq!(look(&[("a", true)]), [""; 0], "b was taken away");
        assert_eq!(look(&[]), [""; 0]);
        assert_eq!(look(&[("a", false)]), [""; 0], "its description is new");
    }

    #[test]
    fn a_port_that_is_taken_is_told_with_who_has_it() {
        let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let std::net::SocketAddr::V4(address) = other.local_addr().unwrap() else { return };
        let error = require_free(address).unwrap_err();
        assert!(error.message().contains("cannot be served at 127.0.0.1:"), "{}", error.message());
        assert!(error.next().is_some_and(|next| next.ends_with(&format!("'sport = {}'", address.port()))));
        drop(other);
        require_free(address).unwrap();
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("service.json");
        let good = serde_json::json!({
            "address": "10.0.0.1:3994", "program": "/x/turnup", "version": "a".repeat(64), "hosts": "/x/hosts", "log": "/x/log",
        });
        fs_err::write(&path, good.to_string()).unwrap();
        assert_eq!(ServiceSpec::read(&path).unwrap().attach_delay, 0);
        for (field, text) in [("program", "a\nb"), ("version", "x"), ("address", "localhost"), ("strange", "x")] {
            let mut bad = good.clone();
            bad[field] = text.into();
            fs_err::write(&path, bad.to_string()).unwrap();
            assert!(ServiceSpec::read(&path).is_err(), "{field}");
        }
    }
}
