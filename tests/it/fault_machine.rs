//! Rows of the fault matrix: this machine, its files, artifacts, tools and signals.

use std::path::PathBuf;

use rustix::process::{Signal, kill_process};
use serde_json::json;
use turnup::Class;

use crate::fault_matrix::Fault;
use crate::http_server::{LOOPBACK, send, serve};
use crate::simulation::{Ended, Simulation};

pub(crate) fn faults() -> Vec<Fault> {
    let mut faults = files();
    faults.extend(configuration());
    faults.extend(artifacts());
    faults.extend(processes());
    faults
}

/// Cuts a file of the cluster's directory in half, as a full disk leaves it.
fn cut(name: &'static str, file: &'static str) -> Fault {
    Fault::new(name).when_up().made(move |simulation| {
        let path = simulation.state(file);
        let text = fs_err::read_to_string(&path).unwrap_or_default();
        // In the middle of a name or a text, wherever half of the file is: what is said must not
        // depend on its length.
        let half = text.len() / 2;
        let end = text[half..].find('"').map_or(half, |at| half + at);
        let inside = if text[..end].matches('"').count() % 2 == 0 { end + 1 } else { end };
        drop(fs_err::write(path, &text[..inside]));
    })
}

fn files() -> Vec<Fault> {
    let rebuild = |simulation: &mut Simulation| drop(simulation.ok(&["state", "rebuild"]));
    vec![
        cut("the state is half-written", "state.json")
            .healed(rebuild)
            .fails(Class::Precondition, &["state.json", "damaged", "turnup state rebuild"]),
        Fault::new("the last line of the journal is torn")
            .when_up()
            .made(|simulation| append(simulation, "journal.jsonl", "{\"v\":1,\"seq\":9"))
            .recovers(&[]),
        Fault::new("the journal is damaged in the middle")
            .when_up()
            .made(|simulation| append(simulation, "journal.jsonl", "no json\n{\"v\":1}\n"))
            .healed(rebuild)
            .fails(Class::Precondition, &["journal.jsonl", "turnup state rebuild"]),
        Fault::new("the state is of a newer turnup")
            .when_up()
            .made(|simulation| replace(simulation, "state.json", "\"version\": 1", "\"version\": 99"))
            .healed(|simulation| replace(simulation, "state.json", "\"version\": 99", "\"version\": 1"))
            .fails(Class::Precondition, &["version 99", "a newer one"]),
        cut("the inventory of phase 1 is half-written", "outputs/provision.json")
            .recovers(&["provision/inventory begins"]),
        cut("the list of artifacts is half-written", "outputs/artifacts.json")
            .healed(|simulation| drop(fs_err::remove_file(simulation.state("outputs/artifacts.json"))))
            .fails(
                Class::Precondition,
                &[
                    "bootstrap/artifacts failed",
                    "outputs/artifacts.json",
                    "remove the file; turnup bootstrap recreates it",
                ],
            ),
        cut("the facts about a host are half-written", "outputs/facts/h1.json")
            .recovers(&["bootstrap/gather-facts@h1 begins"]),
        cut("a node's configuration is half-written", "node-config/h1.json")
            .recovers(&["bootstrap/node-config@h1 begins"]),
        cut("what was applied is half-written", "outputs/addons.json").recovers(&["addons/apply begins"]),
        cut("the kubeconfig is half-written", "kubeconfig").recovers(&["bootstrap/api begins"]),
        cut("the administrator's certificate is damaged or expired", "pki/admin.crt")
            .recovers(&["bootstrap/api begins"]),
        cut("a certificate of the cluster is damaged or expired", "pki/apiserver-h0.crt")
            .recovers(&["bootstrap/pki begins"]),
        cut("a key of the cluster is damaged", "pki/apiserver-h0.key")
            .healed(|simulation| drop(fs_err::remove_file(simulation.state("pki/apiserver-h0.key"))))
            .fails(Class::Precondition, &["pki/apiserver-h0.key", "is not a private key"]),
        Fault::new("a manifest was edited by hand")
            .when_up()
            .made(|simulation| append(simulation, "addons/coredns.yaml", "# mine\n"))
            .recovers(&["addons/render begins"]),
    ]
}

fn configuration() -> Vec<Fault> {
    let edit = |file: &'static str, from: &'static str, to: &'static str| {
        move |simulation: &mut Simulation| {
            let path = simulation.path("work").join(file);
            let text = fs_err::read_to_string(&path).unwrap_or_default();
            assert!(text.contains(from), "{file} has no {from}");
            drop(fs_err::write(path, text.replace(from, to)));
        }
    };
    vec![
        Fault::new("a name in the configuration is misspelt")
            .made(edit(".config.json", "\"service_cidr\"", "\"service_cdr\""))
            .healed(edit(".config.json", "\"service_cdr\"", "\"service_cidr\""))
            .fails(Class::Config, &["phase2.service_cdr", "did you mean"]),
        Fault::new("the inventory is half-written")
            .made(|simulation| {
                let path = simulation.path("work/provision.json");
                let bytes = fs_err::read(&path).unwrap_or_default();
                drop(fs_err::write(path, &bytes[..bytes.len() / 2]));
            })
            .healed(|simulation| simulation.list_hosts(2))
            .fails(Class::Config, &["provision.json:"]),
        Fault::new("the inventory has an unknown role")
            .made(edit("provision.json", "\"worker\"", "\"workr\""))
            .healed(edit("provision.json", "\"workr\"", "\"worker\""))
            .fails(Class::Config, &["provision.json:", "workr"]),
        Fault::new("the inventory is missing")
            .made(|simulation| drop(fs_err::remove_file(simulation.path("work/provision.json"))))
            .healed(|simulation| simulation.list_hosts(2))
            .fails(Class::Config, &["provision.json"]),
        Fault::new("cluster.lock.json is no JSON")
            .made(edit("cluster.lock.json", "{\"schema\"", "{schema"))
            .healed(edit("cluster.lock.json", "{schema", "{\"schema\""))
            .fails(Class::Config, &["cluster.lock.json:1:"]),
        Fault::new("phase.toml has a typing error")
            .made(edit("phases/bootstrap/phase.toml", "scope = \"host\"", "scop = \"host\""))
            .healed(edit("phases/bootstrap/phase.toml", "scop = \"host\"", "scope = \"host\""))
            .fails(Class::Config, &["phase.toml", "scop"]),
    ]
}

/// The mirrored file of the kubelet.
fn kubelet(simulation: &Simulation) -> PathBuf {
    let digest = turnup::artifacts::Digest::of(b"binaries kubelet\n").to_string();
    simulation.path("mirror/sha256").join(digest)
}

fn mirror_at(url: &'static str) -> impl Fn(&mut Simulation) + Send + Sync + 'static {
    move |simulation| drop(simulation.ok(&["config", "set", &format!("phase2.artifacts.mirror={url}")]))
}

fn mirror_back(simulation: &mut Simulation) {
    let mirror = format!("phase2.artifacts.mirror={}", simulation.path("mirror").display());
    drop(simulation.ok(&["config", "set", &mirror]));
}

fn artifacts() -> Vec<Fault> {
    vec![
        Fault::new("an artifact in the cache is corrupted")
            .when_up()
            .made(|simulation| {
                let digest = turnup::artifacts::Digest::of(b"binaries kubelet\n").to_string();
                let path = simulation.path("cache/blobs/sha256").join(digest);
                drop(fs_err::remove_file(&path));
                drop(fs_err::write(path, "binaries kubelEt\n"));
                drop(fs_err::remove_file(simulation.state("outputs/artifacts.json")));
            })
            .recovers(&["has been altered"]),
        Fault::new("an artifact in the mirror is corrupted")
            .made(|simulation| drop(fs_err::write(kubelet(simulation), "binaries kubelEt\n")))
            .healed(|simulation| drop(fs_err::write(kubelet(simulation), "binaries kubelet\n")))
            .fails(Class::Permanent, &["bootstrap/artifacts failed", "other bytes for kubelet", "expected sha256"]),
        Fault::new("the mirror lacks an artifact")
            .made(|simulation| drop(fs_err::remove_file(kubelet(simulation))))
            .healed(|simulation| drop(fs_err::write(kubelet(simulation), "binaries kubelet\n")))
            .fails(Class::Permanent, &["bootstrap/artifacts failed", "kubelet"]),
        Fault::new("the name of the mirror is not resolved")
            .made(mirror_at("http://mirror.invalid"))
            .healed(mirror_back)
            .fails(Class::Transient, &["bootstrap/artifacts failed", "mirror.invalid"]),
        Fault::new("the mirror refuses connections")
            .made(mirror_at("http://127.0.0.1:1"))
            .healed(mirror_back)
            .fails(Class::Transient, &["bootstrap/artifacts failed", "127.0.0.1:1"]),
        Fault::new("the mirror is overloaded")
            .made(|simulation| {
                let url = serve(LOOPBACK, |_, stream| send(stream, "503 Service Unavailable", b""));
                let url = format!("phase2.artifacts.mirror={url}");
                drop(simulation.ok(&["config", "set", &url]));
            })
            .healed(mirror_back)
            .fails(Class::Transient, &["bootstrap/artifacts failed", "503"]),
        Fault::new("the cache cannot be written")
            .when_up()
            .made(|simulation| drop(simulation.env.insert("TURNUP_CACHE".into(), "/proc/nowhere".into())))
            .healed(|simulation| simulation.env.clear())
            .fails(Class::Precondition, &["bootstrap/artifacts failed", "/proc/nowhere", "TURNUP_CACHE"]),
    ]
}

/// Begins `up`, waits until the worker is asked for its facts, which takes long, and does something
/// then.
fn in_the_middle(simulation: &Simulation, act: impl Fn(&crate::simulation::Running)) -> Ended {
    let mut running = simulation.start(&["up"]);
    running.wait_for("bootstrap/gather-facts@h1 begins");
    std::thread::sleep(std::time::Duration::from_millis(300));
    act(&running);
    running.wait()
}

/// Once: a run that is not stopped meanwhile has to finish its step.
fn slow(seconds: u64) -> Vec<serde_json::Value> {
    vec![json!({"tool": "ssh", "when": ["10.125.0.2 ", "node facts"], "times": 1, "sleep_ms": seconds * 1000})]
}

fn processes() -> Vec<Fault> {
    let signal = |signal: Signal| {
        move |simulation: &Simulation| {
            in_the_middle(simulation, |running| {
                let _sent = kill_process(running.pid(), signal);
            })
        }
    };
    vec![
        Fault::new("the terminal is closed")
            .script(slow(60))
            .acts(signal(Signal::HUP))
            .fails(Class::Interrupted, &["turnup up (goes on from here)"]),
        Fault::new("Ctrl-C")
            .script(slow(60))
            .acts(signal(Signal::INT))
            .fails(Class::Interrupted, &["stopped by SIGINT", "turnup up (goes on from here)"]),
        Fault::new("the machine shuts down")
            .script(slow(60))
            .acts(signal(Signal::TERM))
            .fails(Class::Interrupted, &["turnup up (goes on from here)"]),
        Fault::new("another turnup works on the cluster")
            .script(slow(10))
            .acts(|simulation| {
                let first = std::cell::RefCell::new(None);
                let other = in_the_middle(simulation, |_| {
                    *first.borrow_mut() = Some(simulation.second(&["up"]));
                });
                assert_eq!(other.code, 0, "{other}");
                first.into_inner().unwrap_or(other)
            })
            .fails(Class::Locked, &["process", "turnup up"]),
        Fault::new("turnup was killed, and its lock is still there")
            .script(slow(60))
            .made_more(|simulation| {
                let killed = in_the_middle(simulation, |running| {
                    let _sent = kill_process(running.pid(), Signal::KILL);
                });
                assert_eq!(killed.code, 128 + 9, "{killed}");
                simulation.script(&[]);
            })
            .recovers(&["interrupted last time"]),
        Fault::new("the reader of the events is gone (broken pipe)")
            .acts(|simulation| {
                let script = format!("'{}' up --output json | head -n 1 >/dev/null", env!("CARGO_BIN_EXE_turnup"));
                simulation.through_shell(&script)
            })
            .recovers(&[]),
    ]
}

fn append(simulation: &Simulation, file: &str, text: &str) {
    let path = simulation.state(file);
    let old = fs_err::read_to_string(&path).unwrap_or_default();
    drop(fs_err::write(path, old + text));
}

fn replace(simulation: &Simulation, file: &str, from: &str, to: &str) {
    let path = simulation.state(file);
    let old = fs_err::read_to_string(&path).unwrap_or_default();
    assert!(old.contains(from), "{file} has no {from}");
    drop(fs_err::write(path, old.replace(from, to)));
}
