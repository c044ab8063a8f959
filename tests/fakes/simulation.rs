//! A working directory whose hosts, API server and tools are fake, for the real program: shared by
//! the fault matrix and the scale benchmark. Artifacts are a few bytes each, from a mirror that is
//! a folder; kubectl among them is the fake one.
//!
//! The host that runs this is not changed, and no address of a simulated host is ever connected to.
#![allow(dead_code, clippy::allow_attributes, reason = "the matrix and the benchmark each use the part that they need")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a simulation that cannot be made ends the test")]
#![expect(clippy::disallowed_methods, reason = "it plays the shell that turnup is started from")]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use turnup::artifacts::Digest;

/// The cluster's name.
pub(crate) const NAME: &str = "sim";
/// For a command that hangs.
const TIMEOUT: Duration = Duration::from_mins(15);
/// The mirror's architecture is that of the host that runs this; the simulated hosts have the same
/// one.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A directory with a configuration, dropped with all that is in it.
pub(crate) struct Simulation {
    root: tempfile::TempDir,
    /// A command in place of the program, which gets the program and its arguments.
    pub(crate) wrapper: Vec<String>,
    /// Further variables.
    pub(crate) env: BTreeMap<String, String>,
    /// For what checks this machine's resources for real hosts: held for as long as the simulation
    /// lives.
    pub(crate) turn: Option<fs_err::File>,
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) what: String,
    /// The exit code, or 128 and the signal as a shell tells it.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) elapsed: Duration,
    /// The most memory that the program itself had, in KiB, as last seen while it ran.
    pub(crate) memory: u64,
    /// The processor's time of the program and of all that it started and waited for, as last seen.
    pub(crate) processor: Duration,
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    what: String,
    start: Instant,
    out: PathBuf,
    err: PathBuf,
}

impl Simulation {
    /// A bare metal cluster of so many hosts, one of them the control plane.
    pub(crate) fn new(hosts: usize) -> Self {
        let root = tempfile::Builder::new().prefix("turnup-sim-").tempdir().unwrap();
        let simulation = Self { root, wrapper: Vec::new(), env: BTreeMap::new(), turn: None };
        for dir in ["work", "home/fakes", "run", "tmp", "bin", "mirror/sha256"] {
            fs_err::create_dir_all(simulation.path(dir)).unwrap();
        }
        let tools = [("ssh", env!("CARGO_BIN_EXE_fake-ssh")), ("terraform", env!("CARGO_BIN_EXE_fake-terraform"))];
        for (name, fake) in tools {
            symlink(fake, simulation.path("bin").join(name)).unwrap();
        }
        simulation.fill_mirror();
        simulation.list_hosts(hosts);
        let mirror = format!("phase2.artifacts.mirror={}", simulation.path("mirror").display());
        let name = format!("phase1.cluster_name={NAME}");
        let set = ["config", "set", "phase1.cloud_provider=baremetal", &name, &mirror];
        simulation.ok(&[&set[..], &["phase2.artifacts.upstream=n", "phase2.artifacts.source=n"]].concat());
        simulation
    }

    pub(crate) fn path(&self, rel: &str) -> PathBuf {
        self.root.path().join(rel)
    }

    /// A file below the cluster's directory.
    pub(crate) fn state(&self, rel: &str) -> PathBuf {
        self.path("work/.turnup").join(NAME).join(rel)
    }

    /// A file of the simulated world.
    pub(crate) fn world(&self, rel: &str) -> PathBuf {
        self.path("home/fakes").join(rel)
    }

    /// Puts an object into the API server, in the place of a client.
    pub(crate) fn put(&self, kind: &str, name: &str, object: &Value) {
        let path = self.world(&format!("api/{kind}/{name}.json"));
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, object.to_string()).unwrap();
    }

    /// Writes the inventory: `h0` is the control plane, all others are workers.
    pub(crate) fn list_hosts(&self, count: usize) {
        let host = |index: usize| {
            json!({
                "name": format!("h{index}"),
                "role": if index == 0 { "control-plane" } else { "worker" },
                "address": format!("10.125.{}.{}", index / 250, index % 250 + 1),
                "instance": "1",
                "ssh": {"user": "root", "port": 22, "host_key": format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{index:A>42}")},
            })
        };
        let inventory = json!({
            "schema": "turnup.provision/1", "cluster": NAME, "target": "baremetal",
            "api": {"host": "10.125.0.1", "port": 6443},
            "hosts": (0..count).map(host).collect::<Vec<_>>(),
        });
        fs_err::write(self.path("work/provision.json"), format!("{inventory:#}\n")).unwrap();
        fs_err::write(self.world("inventory.json"), inventory.to_string()).unwrap();
    }

    /// Every artifact of the lock file with bytes of its own, and a lock file that pins those.
    fn fill_mirror(&self) {
        let text = fs_err::read_to_string(Path::new(ROOT).join("cluster.lock.json")).unwrap();
        let mut lock: Value = serde_json::from_str(&text).unwrap();
        for module in lock["modules"].as_object_mut().unwrap().values_mut() {
            for kind in ["binaries", "images"] {
                for (name, spec) in module.get_mut(kind).and_then(Value::as_object_mut).into_iter().flatten() {
                    let (sha256, size) = self.mirror_artifact(kind, name);
                    for pins in spec["pins"].as_object_mut().unwrap().values_mut() {
                        *pins = json!([{"sha256": sha256, "size": size, "origin": {"kind": "source-build"}}]);
                    }
                }
            }
        }
        fs_err::write(self.path("work/cluster.lock.json"), lock.to_string()).unwrap();
    }

    fn mirror_artifact(&self, kind: &str, name: &str) -> (String, usize) {
        let bytes = match (kind, name) {
            ("binaries", "kubectl") => fs_err::read(env!("CARGO_BIN_EXE_fake-kubectl")).unwrap(),
            _ => format!("{kind} {name}\n").into_bytes(),
        };
        let digest = Digest::of(&bytes).to_string();
        fs_err::write(self.path("mirror/sha256").join(&digest), &bytes).unwrap();
        (digest, bytes.len())
    }

    /// Writes the script of faults; an empty list removes all of them.
    pub(crate) fn script(&self, entries: &[Value]) {
        drop(fs_err::remove_dir_all(self.world("taken")));
        fs_err::write(self.world("script.json"), json!(entries).to_string()).unwrap();
    }

    /// Copies a phase, a template or the tree's root into the working directory, to be changed
    /// there.
    pub(crate) fn own_tree(&self) {
        let copy = |from: &str| {
            let status = self.shell(&format!("cp -r '{ROOT}/{from}' .")).status().unwrap();
            assert!(status.success(), "cannot copy {from}");
        };
        ["Kconfig", "phases", "templates"].into_iter().for_each(copy);
    }

    /// Gives the steps of this name in its own tree another timeout; all steps where no name is
    /// given.
    pub(crate) fn timeout(&self, step: Option<&str>, timeout: Duration) {
        for phase in ["provision", "bootstrap", "addons"] {
            let path = self.path("work/phases").join(phase).join("phase.toml");
            let text = fs_err::read_to_string(&path).unwrap();
            let given = format!("timeout = \"{}s\"", timeout.as_secs());
            let (mut is_meant, mut lines) = (false, String::new());
            for line in text.lines() {
                if let Some(name) = line.strip_prefix("name = ") {
                    is_meant = step.is_none_or(|step| name.trim_matches('"') == step);
                }
                lines += if is_meant && line.starts_with("timeout = ") { &given } else { line };
                lines.push('\n');
            }
            fs_err::write(&path, lines).unwrap();
        }
    }

    /// A line of shell in the working directory.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.path("work")).stdin(Stdio::null());
        command
    }

    /// Starts the program in a process group of its own.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut words = self.wrapper.clone();
        words.push(env!("CARGO_BIN_EXE_turnup").to_owned());
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        self.start_words(&words, "first")
    }

    /// Runs the program beside one that runs already.
    pub(crate) fn second(&self, args: &[&str]) -> Ended {
        let program = std::iter::once(env!("CARGO_BIN_EXE_turnup"));
        let words: Vec<String> = program.chain(args.iter().copied()).map(str::to_owned).collect();
        self.start_words(&words, "second").wait()
    }

    /// Runs a line of shell as a user would type it.
    pub(crate) fn through_shell(&self, script: &str) -> Ended {
        self.start_words(&["bash", "-o", "pipefail", "-c", script].map(str::to_owned), "first").wait()
    }

    fn start_words(&self, words: &[String], files: &str) -> Running {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.path("work")).stdin(Stdio::null()).env("PATH", path);
        for (name, dir) in [("HOME", "home"), ("XDG_RUNTIME_DIR", "run"), ("TMPDIR", "tmp"), ("TURNUP_CACHE", "cache")]
        {
            command.env(name, self.path(dir));
        }
        for name in ["KUBECONFIG", "TURNUP_CONFIG", "TURNUP_STATE_DIR", "TURNUP_FAILPOINT_LOG", "NO_COLOR", "TERM"] {
            command.env_remove(name);
        }
        command.envs(&self.env);
        let (out, err) = (self.path(&format!("{files}.out")), self.path(&format!("{files}.err")));
        command.stdout(fs_err::File::create(&out).unwrap().into_file());
        command.stderr(fs_err::File::create(&err).unwrap().into_file());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let what = words[1..].join(" ");
        Running { child: command.spawn().unwrap(), what, start: Instant::now(), out, err }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.start(args).wait()
    }

    /// Runs a command that has to succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Ended {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{ended}");
        ended
    }
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until standard error contains this.
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !fs_err::read_to_string(&self.err).unwrap_or_default().contains(text) {
            let ended = self.child.try_wait().unwrap();
            let said = fs_err::read_to_string(&self.err).unwrap_or_default();
            assert!(ended.is_none() && self.start.elapsed() < TIMEOUT, "never said {text:?}: {said}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn wait(mut self) -> Ended {
        use std::os::unix::process::ExitStatusExt as _;
        let (mut memory, mut processor) = (0, Duration::ZERO);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            memory = memory.max(peak_memory(self.pid()));
            processor = processor.max(processor_time(self.pid()));
            if self.start.elapsed() > TIMEOUT {
                let _gone = kill_process_group(self.pid(), Signal::KILL);
                panic!("{} hangs: {}", self.what, fs_err::read_to_string(&self.err).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let elapsed = self.start.elapsed();
        let read = |path: &Path| String::from_utf8_lossy(&fs_err::read(path).unwrap()).into_owned();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Ended { what: self.what.clone(), code, out: read(&self.out), err: read(&self.err), elapsed, memory, processor }
    }
}

/// `VmHWM` of a process; 0 once it is gone.
fn peak_memory(pid: Pid) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// User and system time of a process and of its children that have ended: fields 14 to 17 of its
/// stat, in hundredths of a second.
fn processor_time(pid: Pid) -> Duration {
    let stat = fs_err::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(11).take(4);
    Duration::from_millis(fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() * 10)
}

impl Ended {
    /// The error at the end of standard error; empty where there is none.
    pub(crate) fn error(&self) -> &str {
        let at = self.err.match_indices("error: ").map(|(at, _)| at);
        at.filter(|at| *at == 0 || self.err[..*at].ends_with('\n')).last().map_or("", |at| &self.err[at..])
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, code, out, err, elapsed, memory, processor } = self;
        write!(
            f,
            "{what}: exit {code} after {elapsed:.1?}, {processor:.1?} of the processor, {memory} KiB\n{out}\n{err}"
        )
    }
}
