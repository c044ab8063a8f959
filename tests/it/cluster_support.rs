//! What the tests of real clusters share: a directory of its own, the program with a time limit,
//! what the machine looks like before and after, and a guard that leaves nothing behind however a
//! test ends.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test plays the shell that turnup was started from")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use turnup::provision::local::cluster_id;

use crate::redaction;
pub(crate) use crate::skip::say;
use crate::skip::skip;

/// The cluster's name: short, because it is part of every host's name.
const NAME: &str = "it";
/// For every command that does not say otherwise: only what hangs takes as long, also on a machine
/// that tests in parallel.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(30);
/// Building everything from source, once on a fresh machine.
const COLD_CACHE: Duration = Duration::from_hours(1);
/// Terraform finishes its resource after turnup has died; no other program may take as long.
const LAST_BREATH: Duration = Duration::from_mins(3);
/// Programs without which no local host can be made.
const TOOLS: [&str; 8] = ["ip", "mount", "nsenter", "setpriv", "setsid", "ssh", "systemd-nspawn", "unshare"];

/// A working directory with a cluster of its own, or without one yet. Dropped, nothing of it is
/// left.
pub(crate) struct Site {
    pub(crate) dir: PathBuf,
    scratch: PathBuf,
    /// Directories in front of PATH, and further variables.
    pub(crate) fakes: Vec<PathBuf>,
    pub(crate) env: BTreeMap<String, String>,
    /// A command that the program is started through.
    pub(crate) wrapper: Vec<String>,
    _turn: fs_err::File,
}

/// A command that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    what: String,
    out: PathBuf,
    err: PathBuf,
}

/// A command that has ended.
pub(crate) struct Done {
    pub(crate) what: String,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Whether a test that makes hosts can run here; says why when not. Where `CI` is set it must.
pub(crate) fn can_make_hosts() -> bool {
    let tool = |name: &&str| which::which(name).is_err();
    let why = if !rustix::process::geteuid().is_root() {
        "not root".to_owned()
    } else if let Some(name) = TOOLS.iter().find(|name| tool(name)) {
        format!("`{name}` is not installed")
    } else {
        return true;
    };
    skip(&why);
    false
}

impl Site {
    /// An empty directory on the real disk; one site at a time: a small machine runs one cluster.
    pub(crate) fn new(name: &str) -> Self {
        crate::tell_failures_at_once();
        let tmp = fs_err::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let turn = crate::take_turn();
        let dir = tmp.join(name);
        let scratch = PathBuf::from(format!("/tmp/turnup-it-{name}"));
        let site = Self { dir, scratch, fakes: vec![], env: BTreeMap::new(), wrapper: vec![], _turn: turn };
        // What a killed test left.
        site.remove_everything();
        fs_err::create_dir_all(&site.dir).unwrap();
        fs_err::create_dir_all(&site.scratch).unwrap();
        site
    }

    /// The site of a cluster whose artifacts are all here; none where no hosts can be made.
    pub(crate) fn of_cluster(name: &str, subnet: &str, workers: u32) -> Option<Self> {
        can_make_hosts().then(|| {
            let site = Self::new(name);
            site.configure(subnet, workers);
            site.warm_cache();
            site
        })
    }

    /// A configuration with this number of workers in a subnet of its own.
    pub(crate) fn configure(&self, subnet: &str, workers: u32) {
        let subnet = format!("phase1.local.subnet={subnet}");
        let workers = format!("phase1.num_nodes={workers}");
        self.ok(&["config", "set", &format!("phase1.cluster_name={NAME}"), &subnet, &workers]);
    }

    /// Fills the artifact cache, so that the time of a cold one is not taken for the time of a
    /// cluster.
    pub(crate) fn warm_cache(&self) {
        for what in ["fetch", "rootfs"] {
            let done = self.start(&["artifacts", what]).wait(COLD_CACHE);
            assert_eq!(done.code, Some(0), "{done}");
        }
    }

    /// The directory of everything that turnup remembers of the cluster.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.join(".turnup").join(NAME)
    }

    pub(crate) fn path(&self, rel: &str) -> PathBuf {
        self.state().join(rel)
    }

    pub(crate) fn read(&self, rel: &str) -> String {
        fs_err::read_to_string(self.path(rel)).unwrap()
    }

    pub(crate) fn json(&self, rel: &str) -> Value {
        serde_json::from_str(&self.read(rel)).unwrap()
    }

    /// The part of the names of interfaces, namespaces and cgroups that is this cluster's own.
    pub(crate) fn id(&self) -> String {
        cluster_id(&self.state())
    }

    /// Starts turnup in a session of its own, by which processes left of it are found later.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let file = |name: &str| self.scratch.join(name);
        let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 8;
        let (out, err) = (file(&format!("stdout-{run}")), file(&format!("stderr-{run}")));
        let program = self.wrapper.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_turnup")]);
        let usual = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(self.fakes.iter().cloned().chain(std::env::split_paths(&usual))).unwrap();
        let mut command = Command::new("setsid");
        command.args(program.chain(args.iter().copied())).current_dir(&self.dir).env("PATH", path).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", file("run")).env("TMPDIR", file("tmp"));
        for name in ["TURNUP_CONFIG", "TURNUP_STATE_DIR", "TURNUP_FAILPOINT_LOG", "NO_COLOR", "TERM"] {
            command.env_remove(name);
        }
        for dir in ["run", "tmp"] {
            fs_err::create_dir_all(file(dir)).unwrap();
        }
        command.envs(&self.env);
        command.stdout(fs_err::File::create(&out).unwrap().into_file());
        command.stderr(fs_err::File::create(&err).unwrap().into_file());
        let what = format!("turnup {}", args.join(" "));
        Running { child: command.spawn().unwrap(), what, out, err }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.start(args).wait(TIMEOUT)
    }

    /// Runs a command that has to succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Done {
        self.fails(0, args)
    }

    /// Runs a command that has to end with this exit code.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, Some(code), "{done}");
        done
    }

    /// `turnup up --output json`, which must work; the events.
    pub(crate) fn up(&self) -> Events {
        Events::parse(&self.ok(&["up", "--output", "json"]).out)
    }

    /// A JSON file beside the configuration.
    pub(crate) fn json_of(&self, file: &str) -> Value {
        serde_json::from_str(&fs_err::read_to_string(self.dir.join(file)).unwrap()).unwrap()
    }

    /// Runs a line of shell inside of a host.
    pub(crate) fn in_host(&self, host: &str, script: &str) {
        let init = self.init(host).as_raw_nonzero().to_string();
        let status =
            Command::new("nsenter").args(["--target", &init, "--all", "--", "sh", "-c", script]).status().unwrap();
        assert!(status.success(), "{script} on {host}: {status}");
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> String {
        self.try_kubectl(args).unwrap_or_else(|said| panic!("kubectl {}: {said}", args.join(" ")))
    }

    /// What it printed, or what it complained of.
    pub(crate) fn try_kubectl(&self, args: &[&str]) -> Result<String, String> {
        let cache = self.ok(&["artifacts", "path", "kubectl"]).out;
        let config = format!("--kubeconfig={}", self.path("kubeconfig").display());
        let output = Command::new(cache.trim()).args([&config, "--request-timeout=20s"]).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    pub(crate) fn get(&self, what: &[&str]) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.kubectl(&[&["get", "--output=json"], what].concat())).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The names of all Nodes, each of which must be Ready.
    pub(crate) fn ready_nodes(&self) -> Vec<String> {
        let mut names = Vec::new();
        for node in self.get(&["nodes"]) {
            let conditions = node["status"]["conditions"].as_array().unwrap();
            let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
            assert_eq!(ready["status"], "True", "{}: {ready}", node["metadata"]["name"]);
            names.push(node["metadata"]["name"].as_str().unwrap().to_owned());
        }
        names
    }

    /// The hosts of the inventory: name and everything else.
    pub(crate) fn hosts(&self) -> BTreeMap<String, Value> {
        let inventory = self.json("outputs/provision.json");
        let hosts = inventory["hosts"].as_array().unwrap().iter();
        hosts.map(|host| (host["name"].as_str().unwrap().to_owned(), host.clone())).collect()
    }

    /// The description of a host that Terraform hands to turnup.
    pub(crate) fn spec(&self, host: &str) -> Value {
        self.json(&format!("provision/hosts/{host}.json"))
    }

    /// The process that holds a host.
    pub(crate) fn leader(&self, host: &str) -> Option<Pid> {
        let machine = format!("--machine={}", self.spec(host)["machine"].as_str().unwrap());
        processes().into_iter().find(|process| process.argv.contains(&machine)).map(|process| process.pid)
    }

    /// The sha256 of the cluster's CA and etcd's ID of its only member: the identity of the
    /// cluster.
    pub(crate) fn identity(&self) -> (String, String) {
        let metrics = self.metrics("127.0.0.1/2381");
        let line = metrics.lines().find(|line| line.starts_with("etcd_server_id{")).unwrap_or_default();
        let id = line.split('"').nth(1).unwrap_or_else(|| panic!("etcd does not tell its id: {metrics}"));
        (self.read("pki/ca.crt"), id.to_owned())
    }

    /// etcd answers only inside of its host.
    fn metrics(&self, address: &str) -> String {
        let machine = self.spec(&format!("{NAME}-control-plane-0"))["machine"].as_str().unwrap().to_owned();
        let script = format!(
            "exec 3<>/dev/tcp/{address}; printf 'GET /metrics HTTP/1.0\\r\\nHost: etcd\\r\\n\\r\\n' >&3; cat <&3"
        );
        let netns = format!("--net=/run/netns/{machine}");
        let output = Command::new("nsenter").args([&netns, "bash", "-c", &script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What a cluster could leave behind or change on this machine.
    pub(crate) fn look_around(&self) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut note =
            |kind: &str, names: Vec<String>| seen.extend(names.into_iter().map(|name| format!("{kind} {name}")));
        note("interface", names_in(Path::new("/sys/class/net")));
        note("network namespace", names_in(Path::new("/run/netns")));
        note("loop device", loop_devices());
        note("nftables table", crate::cluster_firewall::tables());
        for root in names_in(Path::new("/sys/fs/cgroup")) {
            note("cgroup", directories_in(&Path::new("/sys/fs/cgroup").join(&root)));
        }
        note("cgroup", directories_in(Path::new("/sys/fs/cgroup")));
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
        note("mount", mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect());
        note("control socket", names_in(&self.scratch.join("run/turnup")));
        note("temporary file", names_in(&self.scratch.join("tmp")));
        let ours = self.dir.display().to_string();
        let of_us = |process: &Process| process.belongs_to(&ours) && process.pid != rustix::process::getpid();
        note("process", processes().iter().filter(|process| of_us(process)).map(Process::describe).collect());
        let mut sysctls = Vec::new();
        collect_sysctls(Path::new("/proc/sys"), &mut sysctls);
        note("kernel setting", sysctls);
        let id = self.id();
        seen.retain(|entry| !belongs_to_another(entry, &id, &ours));
        seen
    }

    /// Text with everything in it that differs from run to run replaced.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = text.replace(&self.dir.display().to_string(), "DIR").replace(&self.id(), "ID");
        let cache = turnup::artifacts::Cache::open().unwrap().root().display().to_string();
        let text = text.replace(env!("CARGO_BIN_EXE_turnup"), "TURNUP").replace(&cache, "CACHE");
        text.lines().map(redaction::redact_line).collect::<Vec<_>>().join("\n")
    }

    /// The error at the end of standard error, redacted.
    pub(crate) fn error_of(&self, done: &Done) -> String {
        let at = done.err.find("error: ").unwrap_or_else(|| panic!("no error: {done}"));
        self.redact(&done.err[at..])
    }

    /// Does not ask turnup, which may be what is broken.
    fn remove_everything(&self) {
        if !rustix::process::geteuid().is_root() {
            drop(fs_err::remove_dir_all(&self.dir));
            return;
        }
        let ours = self.dir.display().to_string();
        for _ in 0..50 {
            let left: Vec<Process> = processes().into_iter().filter(|process| process.belongs_to(&ours)).collect();
            if left.is_empty() {
                break;
            }
            for process in left {
                let _gone = kill_process(process.pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let id = self.id();
        unmount_below(&self.dir);
        for (dir, delete) in [("/run/netns", "ip netns delete"), ("/sys/class/net", "ip link delete")] {
            for name in names_in(Path::new(dir)).iter().filter(|name| name.contains(&id)) {
                sh(&format!("{delete} {name} 2>/dev/null"));
            }
        }
        sh(&format!("nft 'table inet tu-{id}; delete table inet tu-{id}' 2>/dev/null"));
        remove_cgroups(&id);
        for dir in [&self.dir, &self.scratch] {
            if dir.exists() {
                drop(fs_err::remove_dir_all(dir));
            }
        }
    }

    /// Keeps what is needed to debug a failed test in CI.
    fn keep_logs(&self) {
        let kept = self.dir.with_extension("failed");
        drop(fs_err::remove_dir_all(&kept));
        drop(fs_err::create_dir_all(&kept));
        let (from, to) = (self.state(), kept.display());
        sh(&format!(
            "cp -r '{0}'/logs '{0}'/journal.jsonl '{0}'/state.json '{1}'/std* '{to}' 2>/dev/null",
            from.display(),
            self.scratch.display()
        ));
        say(&format!("what is known about the failure: {to}"));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_logs();
        }
        self.remove_everything();
    }
}

impl Running {
    /// Waits for the end of it and of all processes it started.
    pub(crate) fn wait(mut self, patience: Duration) -> Done {
        let (session, since) = (self.pid(), Instant::now());
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > patience {
                kill_session(session);
                drop(self.child.wait());
                let said = fs_err::read_to_string(&self.err).unwrap();
                panic!("{} did not end within {patience:?}: {}", self.what, tail(&said));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let read = |path: &Path| String::from_utf8_lossy(&fs_err::read(path).unwrap()).into_owned();
        let (out, err) = (read(&self.out), read(&self.err));
        let done = Done { what: self.what.clone(), code: status.code(), signal: status.signal(), out, err };
        let since = Instant::now();
        loop {
            let left = in_session(session);
            if left.is_empty() {
                return done;
            }
            if since.elapsed() > LAST_BREATH {
                let left: Vec<String> = left.iter().map(Process::describe).collect();
                kill_session(session);
                panic!("left behind by {done}\n{}", left.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its standard error until now.
    pub(crate) fn said(&self) -> String {
        fs_err::read_to_string(&self.err).unwrap()
    }

    /// Waits until standard error contains this.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let since = Instant::now();
        while !self.said().contains(text) {
            let goes_on = self.child.try_wait().unwrap().is_none() && since.elapsed() < TIMEOUT;
            assert!(goes_on, "never said {text:?}: {}", tail(&self.said()));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (code, signal) = (self.code, self.signal);
        write!(f, "{}: exit {code:?}, signal {signal:?}\n{}\n{}", self.what, tail(&self.out), tail(&self.err))
    }
}

/// The events of a run.
pub(crate) struct Events(pub(crate) Vec<Value>);

impl Events {
    /// From the lines of standard output; lines that are not events are left out.
    pub(crate) fn parse(out: &str) -> Self {
        let lines = out.lines().filter_map(|line| serde_json::from_str(line).ok());
        Self(lines.filter(|line: &Value| line.get("event").is_some()).collect())
    }

    /// One field of all events of this kind.
    pub(crate) fn of(&self, kind: &str, field: &str) -> Vec<String> {
        let events = self.0.iter().map(|event| &event["event"]).filter(|event| event["kind"] == kind);
        events.map(|event| event[field].as_str().map_or_else(|| event[field].to_string(), str::to_owned)).collect()
    }

    /// The steps that ran.
    pub(crate) fn ran(&self) -> BTreeSet<String> {
        self.of("step-started", "step").into_iter().collect()
    }
}

/// A process of this machine.
pub(crate) struct Process {
    pub(crate) pid: Pid,
    session: i32,
    pub(crate) argv: Vec<String>,
    cwd: String,
    mounts_of: String,
}

impl Process {
    fn read(number: i32) -> Option<Self> {
        let dir = PathBuf::from(format!("/proc/{number}"));
        let stat = fs_err::read_to_string(dir.join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        if fields[0] == "Z" {
            return None;
        }
        let argv = fs_err::read(dir.join("cmdline")).ok()?;
        let argv = argv.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let link = |name: &str| fs_err::read_link(dir.join(name)).map(|path| path.display().to_string());
        // In a host the root is an overlay whose options name the host's directory.
        let mounts = fs_err::read_to_string(dir.join("mountinfo")).unwrap_or_default();
        let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).unwrap_or_default().to_owned();
        let pid = Pid::from_raw(number)?;
        Some(Self {
            pid,
            session: fields[3].parse().ok()?,
            argv,
            cwd: link("cwd").unwrap_or_default(),
            mounts_of: root,
        })
    }

    /// Whether it works in this directory or for something in it. The test itself only talks about
    /// it.
    pub(crate) fn belongs_to(&self, dir: &str) -> bool {
        let below = |text: &str| text.contains(&format!("{dir}/")) || text == dir;
        self.argv.iter().any(|word| below(word)) || below(&self.cwd) || below(&self.mounts_of)
    }

    pub(crate) fn describe(&self) -> String {
        format!("{} {}", self.pid.as_raw_nonzero(), self.argv.join(" "))
    }
}

pub(crate) fn processes() -> Vec<Process> {
    names_in(Path::new("/proc")).iter().filter_map(|name| Process::read(name.parse().ok()?)).collect()
}

/// The processes left of a session.
pub(crate) fn in_session(session: Pid) -> Vec<Process> {
    let session = session.as_raw_nonzero().get();
    processes().into_iter().filter(|process| process.session == session).collect()
}

fn kill_session(session: Pid) {
    for process in in_session(session) {
        let _gone = kill_process(process.pid, Signal::KILL);
    }
}

/// A line of shell whose failure is ignored.
pub(crate) fn sh(script: &str) {
    drop(Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status());
}

/// Unmounts everything below this directory, the last mount first, and returns it.
pub(crate) fn unmount_below(dir: &Path) -> Vec<String> {
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().rev().filter_map(|line| line.split(' ').nth(4));
    let below: Vec<String> = points.filter(|point| Path::new(point).starts_with(dir)).map(str::to_owned).collect();
    for point in &below {
        sh(&format!("umount --lazy '{point}'"));
    }
    below
}

/// Killed processes may need a moment to leave.
pub(crate) fn remove_cgroups(id: &str) {
    let find = format!("find /sys/fs/cgroup -depth -type d -path '*turnup-{id}*'");
    sh(&format!(
        "for i in $(seq 50); do {find} -exec rmdir {{}} + 2>/dev/null; test -z \"$({find})\" && break; sleep 0.1; done"
    ));
}

pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn directories_in(dir: &Path) -> Vec<String> {
    let names = names_in(dir).into_iter().map(|name| dir.join(name)).filter(|path| path.is_dir());
    names.map(|path| path.display().to_string()).collect()
}

fn loop_devices() -> Vec<String> {
    let used = |name: &String| Path::new("/sys/block").join(name).join("loop/backing_file").exists();
    names_in(Path::new("/sys/block")).into_iter().filter(used).collect()
}

/// All kernel settings that do not change by themselves.
fn collect_sysctls(dir: &Path, found: &mut Vec<String>) {
    const RESTLESS: [&str; 13] = [
        "/random/",
        // Drawn when a program, such as a DNS server, wants it for the first time.
        "/tcp_fastopen_key",
        "/fs/dentry-state",
        "/fs/file-nr",
        "/fs/inode-",
        "/fs/aio-nr",
        "/fs/quota",
        "/ns_last_pid",
        "/pty/nr",
        "/nf_conntrack_count",
        "/ipv4/conf/",
        "/ipv4/neigh/",
        "/ipv6/",
    ];
    for name in names_in(dir) {
        let path = dir.join(name);
        let shown = path.display().to_string();
        if RESTLESS.iter().any(|part| shown.contains(part)) {
            continue;
        }
        if path.is_dir() {
            collect_sysctls(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push(format!("{shown} = {}", text.trim()));
        }
    }
}

/// Not of this cluster: names with another id, mounts of another directory or of other tests.
fn belongs_to_another(entry: &str, id: &str, ours: &str) -> bool {
    let hex = |text: &str| text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words: Vec<&str> = entry.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let named = words.iter().any(|word| {
        let of_interface = word.strip_prefix("tu").is_some_and(|rest| hex(rest) && rest != id);
        of_interface || (hex(word) && *word != id && (entry.contains("turnup-") || entry.contains("tu-")))
    });
    let elsewhere = |path: &str| path.starts_with("/tmp/.tmp") || (path.contains("/.turnup/") && !path.contains(ours));
    named || entry.strip_prefix("mount ").is_some_and(elsewhere)
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
