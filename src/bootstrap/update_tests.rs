//! What `phase2.update.pause` and `phase2.update.validate` do to an update, each given by its name:
//! the pause to the turns of the real step of workers in the real engine, the check to the calls of
//! kubectl. The order of what happens is looked at, not the time that it takes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::api::Kubectl;
use super::rolling_update::RollingUpdate;
use super::setting_tests::{INVENTORY, cluster};
use super::steps;
use crate::change::{Change, Verb};
use crate::error::Result;
use crate::phase::{Action, Check, Cx, Engine, Inputs, Manifest, Phase, PhaseHost, Sink, Turns};
use crate::state::Store;

/// The step `join` of the product, which only notes that it was a host's turn.
struct Noted {
    join: Box<dyn Action>,
    hosts: Arc<Mutex<Vec<String>>>,
}

impl Action for Noted {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new())
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(Check::Ok)
    }

    fn turns(&self, host: Option<&str>) -> Option<&Turns> {
        self.join.turns(host)
    }

    fn run(&self, host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.hosts.lock().unwrap().push(host.unwrap_or_default().to_owned());
        Ok(())
    }
}

/// How many of two workers are changed, and whether the phase had time for both.
fn change_two(changes: &[(&str, &str)], limit: Option<Duration>) -> (usize, bool) {
    let dir = tempfile::tempdir().unwrap();
    let cluster = cluster(dir.path(), changes);
    cluster.store.create_dir("outputs").unwrap();
    cluster.store.write_file("outputs/provision.json", INVENTORY.as_bytes(), 0o600).unwrap();
    let join = steps::phase(&Arc::new(cluster)).unwrap().actions.remove("join").unwrap();
    let manifest = "summary = \"a\"\n[[step]]\nname = \"join\"\nsummary = \"b\"\nscope = \"host\"\n";
    let host = |name: &str| PhaseHost { name: name.to_owned(), role: "worker".to_owned() };
    let hosts: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Noted { join, hosts: Arc::clone(&hosts) };
    let manifest = Manifest::parse("phase.toml", manifest).unwrap();
    let mut phase = Phase::new("bootstrap", manifest, vec![host("w0"), host("w1")]).with("join", noted);
    phase.limits.phase = limit.map(|limit| (limit, "phase2.timeout"));
    let store = Store::open(dir.path().join("run")).unwrap();
    let lock = store.lock("test").unwrap();
    let ran = Engine::new(&store, &lock, Sink::null()).run(&phase);
    let count = hosts.lock().unwrap().len();
    (count, ran.is_ok())
}

#[test]
fn the_next_worker_is_taken_after_the_pause_of_the_settings() {
    assert_eq!(change_two(&[("phase2.update.pause", "0s")], None), (2, true));
    let limit = Some(Duration::from_secs(3));
    assert_eq!(change_two(&[("phase2.update.pause", "1h")], limit), (1, false), "the second one waits");
}

/// A kubectl of a cluster in which, once the change is made, a node is not Ready at the next look.
/// It notes its calls, the change among them.
fn fake_kubectl(dir: &Path) -> Kubectl {
    let program = dir.join("kubectl");
    let script = r#"#!/bin/sh
cd "$(dirname "$0")" || exit
case "$*" in
  *readyz*) echo ok; exit ;;
  *" nodes") word=nodes; list='{"items": []}' ;;
  *deployments*) word=workloads; list='{"items": []}' ;;
  *) word=node; list='{}' ;;
esac
echo "$word" >>calls
if [ "$word" = nodes ] && grep -qx change calls && mkdir ill 2>/dev/null; then
  list='{"items": [{"metadata": {"name": "w1"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}]}'
fi
echo "$list"
"#;
    fs_err::write(&program, script).unwrap();
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    Kubectl::new(program, dir.join("kubeconfig"))
}

/// The calls of kubectl around the change of a node, and how it ended.
fn calls_around(value: &str) -> (Vec<String>, Result<()>) {
    let dir = tempfile::tempdir().unwrap();
    let changes = [("phase2.update.validate", value), ("phase2.update.drain", "n")];
    let update = RollingUpdate::new(&cluster(dir.path(), &changes).settings.update);
    let kubectl = fake_kubectl(dir.path());
    let calls = dir.path().join("calls");
    let cx = Cx::detached("join@w0", Sink::null(), dir.path().join("log"), Duration::from_mins(10));
    let restart = [Change::new(Verb::Restart, "service", "kubelet.service")];
    let ended = update.around(&kubectl, "w0", &restart, &cx, || {
        let before = fs_err::read_to_string(&calls).unwrap_or_default();
        fs_err::write(&calls, before + "change\n").unwrap();
        Ok(())
    });
    (fs_err::read_to_string(&calls).unwrap().lines().map(str::to_owned).collect(), ended)
}

#[test]
fn the_health_of_the_cluster_is_asked_for_where_the_settings_say_so() {
    let (calls, ended) = calls_around("y");
    let look = ["nodes", "workloads"];
    let expected = [&look[..], &["change", "node"], &look, &look].concat();
    assert_eq!(calls, expected, "before the change, and after it until all is as well as before");
    assert!(ended.is_ok());
    let (calls, ended) = calls_around("n");
    assert_eq!(calls, ["change", "node"], "only the cordon of the node is looked for");
    assert!(ended.is_ok());
}
