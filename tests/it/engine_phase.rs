//! Plans, retries, panics, gone hosts and a user's own steps, against a real store.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, and one action panics on purpose"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use turnup::change::{Change, Preview, Verb};
use turnup::phase::{Action, Check, Cx, Decision, Engine, Inputs, Manifest, Phase, PhaseHost, PlannedStep, Sink, What};
use turnup::state::Store;
use turnup::{Class, Error, Result};

/// A step whose inputs the test changes.
#[derive(Clone, Default)]
struct Knob {
    inputs: BTreeMap<String, String>,
    gone: Option<String>,
    /// Fails this many times before it succeeds.
    failures: Arc<AtomicU32>,
    class: Option<Class>,
    runs: Arc<AtomicU32>,
}

impl Action for Knob {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let mut inputs = Inputs::new();
        inputs.extend(&self.inputs);
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(self.gone.clone().map_or(Check::Ok, Check::Drifted))
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        Ok(vec![Change::new(Verb::Create, "file", "a")].into())
    }

    fn run(&self, _host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if self.failures.load(Ordering::SeqCst) > 0 {
            self.failures.fetch_sub(1, Ordering::SeqCst);
            return match self.class {
                Some(class) => Err(Error::new(class, "told to fail").hint("turn the knob")),
                None => panic!("told to panic"),
            };
        }
        Ok(())
    }
}

const TWO: &str =
    "[[step]]\nname = \"one\"\n[[step]]\nname = \"two\"\nscope = \"host\"\nafter = [\"one\"]\ntimeout = \"60s\"\n";

fn phase(hosts: &[&str], one: &Knob, two: &Knob) -> Phase {
    let hosts = hosts.iter().map(|name| PhaseHost { name: (*name).into(), role: "worker".into() }).collect();
    let manifest = Manifest::parse("phase.toml", TWO).unwrap();
    Phase::new("p", manifest, hosts).with("one", one.clone()).with("two", two.clone())
}

fn run(dir: &Path, phase: &Phase) -> Result<turnup::phase::Summary> {
    let store = Store::open(dir).unwrap();
    let lock = store.lock("test").unwrap();
    Engine::new(&store, &lock, Sink::null()).first_wait(Duration::from_millis(20)).run(phase)
}

fn changes(planned: &PlannedStep) -> String {
    planned.preview.changes.iter().map(|change| format!("({change})")).collect::<Vec<_>>().concat()
}

fn plan(dir: &Path, phase: &Phase) -> Vec<String> {
    let line =
        |planned: &PlannedStep| format!("{:?} {}: {} {}", planned.decision, planned.id, planned.why, changes(planned));
    Engine::plan(&Store::open(dir).unwrap(), phase, None)
        .unwrap()
        .steps
        .iter()
        .map(|planned| line(planned).trim_end().to_owned())
        .collect()
}

fn knob(inputs: &[(&str, &str)]) -> Knob {
    Knob { inputs: inputs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(), ..Knob::default() }
}

#[test]
fn a_plan_says_what_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (knob(&[("phase1.num_nodes", "1"), ("phase1.zone", "a")]), knob(&[]));
    assert_eq!(
        plan(dir.path(), &phase(&["h0"], &one, &two)),
        ["Run p/one: never ran (create file a)", "Run p/two@h0: never ran (create file a)"]
    );
    run(dir.path(), &phase(&["h0", "h1"], &one, &two)).unwrap();
    assert!(plan(dir.path(), &phase(&["h0", "h1"], &one, &two)).iter().all(|line| line.starts_with("Skip ")));

    let other = knob(&[("phase1.num_nodes", "2"), ("phase1.region", "b")]);
    assert_eq!(
        plan(dir.path(), &phase(&["h0"], &other, &two)),
        [
            "Run p/one: inputs changed: phase1.num_nodes, phase1.region, phase1.zone (create file a)",
            "Skip p/two@h0: inputs unchanged, outputs hold",
            "Forget p/two@h1: no longer part of the cluster",
        ]
    );
    let gone = Knob { gone: Some("node h0 is not registered".into()), ..two };
    assert_eq!(
        plan(dir.path(), &phase(&["h0", "h1"], &one, &gone))[1],
        "Run p/two@h0: outputs gone: node h0 is not registered (create file a)"
    );
    // A missing output may come back when an earlier step runs.
    assert_eq!(
        plan(dir.path(), &phase(&["h0", "h1"], &other, &gone))[1],
        "Unknown p/two@h0: outputs gone: node h0 is not registered; known once p/one has run"
    );
}

#[test]
fn steps_that_wait_for_each_other_are_refused_without_parallelism() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (knob(&[]), knob(&[]));
    let phase = Phase { at_once: 2, ..phase(&["h0", "h1"], &one, &two) };
    let run = |parallel| {
        let store = Store::open(dir.path()).unwrap();
        let lock = store.lock("test").unwrap();
        Engine::new(&store, &lock, Sink::null()).parallel(parallel).run(&phase)
    };
    let error = run(1).unwrap_err();
    assert_eq!(error.message(), "2 steps of the phase p wait for each other, and --parallel is 1");
    assert_eq!((error.next(), one.runs.load(Ordering::SeqCst)), (Some("turnup up --parallel 2"), 0));
    assert_eq!(run(2).unwrap().ran, 3);
}

#[test]
fn a_second_run_does_nothing_and_a_gone_host_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (knob(&[]), knob(&[]));
    assert_eq!(run(dir.path(), &phase(&["h0", "h1"], &one, &two)).unwrap().ran, 3);
    let journal = fs_err::read(dir.path().join("journal.jsonl")).unwrap();
    let summary = run(dir.path(), &phase(&["h0", "h1"], &one, &two)).unwrap();
    assert_eq!((summary.ran, summary.skipped), (0, 3));
    assert_eq!(fs_err::read(dir.path().join("journal.jsonl")).unwrap(), journal, "nothing to do touches nothing");
    assert_eq!(run(dir.path(), &phase(&["h0"], &one, &two)).unwrap().ran, 0);
    let state = Store::open(dir.path()).unwrap().state().unwrap();
    assert_eq!(state.steps.keys().collect::<Vec<_>>(), ["p/one", "p/two@h0"]);
    assert_eq!(run(dir.path(), &phase(&["h0", "h1"], &one, &two)).unwrap().ran, 1, "a host that comes back runs again");
}

#[test]
fn transient_failures_are_tried_again_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let flaky = Knob { failures: Arc::new(3.into()), class: Some(Class::Transient), ..Knob::default() };
    run(dir.path(), &phase(&["h0"], &knob(&[]), &flaky)).unwrap();
    assert_eq!(flaky.runs.load(Ordering::SeqCst), 4);

    let dir = tempfile::tempdir().unwrap();
    let broken = Knob { failures: Arc::new(1.into()), class: Some(Class::Permanent), ..Knob::default() };
    let error = run(dir.path(), &phase(&["h0"], &knob(&[]), &broken)).unwrap_err();
    assert_eq!(broken.runs.load(Ordering::SeqCst), 1);
    insta::assert_snapshot!("permanent", error.render());
    let planned = Engine::plan(&Store::open(dir.path()).unwrap(), &phase(&["h0"], &knob(&[]), &broken), None).unwrap();
    let planned = planned.steps;
    assert_eq!((planned[1].decision, planned[1].why.as_str()), (Decision::Run, "failed last time: told to fail"));
}

#[test]
fn the_timeout_ends_the_tries() {
    let dir = tempfile::tempdir().unwrap();
    let hopeless = Knob { failures: Arc::new(9999.into()), class: Some(Class::Transient), ..Knob::default() };
    let mut phase = phase(&["h0"], &knob(&[]), &hopeless);
    phase.manifest = Manifest::parse("phase.toml", &TWO.replace("60s", "2s")).unwrap();
    let error = run(dir.path(), &phase).unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    let tries = hopeless.runs.load(Ordering::SeqCst);
    assert!(tries > 1, "{tries} tries");
    insta::assert_snapshot!("timeout", error.render().replace(&format!("after {tries} tries"), "after NUMBER tries"));
}

/// A host step that fails on these hosts, and counts where it began.
struct FailsOn(&'static [&'static str], Arc<AtomicU32>);

impl Action for FailsOn {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new())
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(Check::Ok)
    }

    fn run(&self, host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        if host.is_some_and(|host| self.0.contains(&host)) {
            return Err(Error::permanent("no space left"));
        }
        Ok(())
    }
}

#[test]
fn after_so_many_failed_hosts_no_further_host_begins() {
    const HOSTS: [&str; 6] = ["h0", "h1", "h2", "h3", "h4", "h5"];
    let text =
        format!("{TWO}[[step]]\nname = \"three\"\nafter = [\"two\"]\n[[step]]\nname = \"four\"\nafter = [\"one\"]\n");
    let run = |limit: Option<usize>| {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let lock = store.lock("test").unwrap();
        let began = Arc::new(AtomicU32::new(0));
        let mut phase = phase(&HOSTS, &knob(&[]), &knob(&[])).with("three", knob(&[])).with("four", knob(&[]));
        phase.manifest = Manifest::parse("phase.toml", &text).unwrap();
        let phase = phase.with("two", FailsOn(&["h1", "h2", "h5"], Arc::clone(&began)));
        let mut engine = Engine::new(&store, &lock, Sink::null()).parallel(1).max_failures(limit);
        let error = engine.run(&phase).unwrap_err();
        let done = store.state().unwrap().steps.into_keys().collect::<Vec<_>>();
        (began.load(Ordering::SeqCst), done, error.render())
    };
    let (began, done, error) = run(None);
    assert_eq!(began, 6, "a failure concerns one host alone");
    assert_eq!(done, ["p/four", "p/one", "p/two@h0", "p/two@h3", "p/two@h4"]);
    assert!(error.contains("3 hosts failed: h1, h2, h5"), "{error}");
    let (began, done, error) = run(Some(2));
    assert_eq!(began, 3, "h0, h1 and h2");
    assert_eq!(done, ["p/four", "p/one", "p/two@h0"], "what is no host's goes on");
    insta::assert_snapshot!("max_failures", error);
}

#[test]
fn a_panic_is_our_defect_and_stops_one_step() {
    let dir = tempfile::tempdir().unwrap();
    let panicking = Knob { failures: Arc::new(1.into()), ..Knob::default() };
    let error = run(dir.path(), &phase(&["h0", "h1"], &knob(&[]), &panicking)).unwrap_err();
    assert_eq!(error.class(), Class::Bug);
    assert_eq!(panicking.runs.load(Ordering::SeqCst), 2);
    insta::assert_snapshot!("panic", error.render().replace("@h1", "@h0").replace("on h1", "on h0"));
}

#[test]
fn a_step_of_ones_own_runs_with_its_environment() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"
[[step]]
name = "notify"
scope = "host"
run = ["sh", "-c", "echo \"$TURNUP_HOST in $TURNUP_CLUSTER_DIR\" >>told"]
inputs = ["phase2"]
"#;
    let hosts = vec![PhaseHost { name: "h0".into(), role: "worker".into() }];
    let mut phase = Phase::new("p", Manifest::parse("phase.toml", text).unwrap(), hosts);
    phase.work_dir = dir.path().into();
    phase.settings = Inputs::new().with("phase2.token", "a").with("phase1.zone", "a");
    let cluster = dir.path().join("cluster");
    assert_eq!(run(&cluster, &phase).unwrap().ran, 1);
    assert_eq!(run(&cluster, &phase).unwrap().ran, 0);
    assert_eq!(fs_err::read_to_string(dir.path().join("told")).unwrap(), format!("h0 in {}\n", cluster.display()));
    phase.settings = Inputs::new().with("phase2.token", "b").with("phase1.zone", "a");
    assert_eq!(
        plan(&cluster, &phase)[0].split(": ").nth(2),
        Some("phase2.token (run command sh -c 'echo \"$TURNUP_HOST in $TURNUP_CLUSTER_DIR\" >>told')")
    );
    phase.settings = Inputs::new().with("phase3.x", "b");
    let error = run(&cluster, &phase).unwrap_err();
    assert_eq!(error.class(), Class::Config);
    assert!(error.message().contains("unknown configuration path `phase2`"), "{error}");
}

#[test]
fn a_step_without_an_action_is_a_mistake_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Manifest::parse("phase.toml", "[[step]]\nname = \"aply\"\n").unwrap();
    let error = run(dir.path(), &Phase::new("p", manifest, Vec::new()).with("apply", knob(&[]))).unwrap_err();
    insta::assert_snapshot!("no_action", error.render());
}

#[test]
fn events_tell_the_whole_story() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let lock = store.lock("test").unwrap();
    let (sink, events) = Sink::channel();
    let flaky = Knob { failures: Arc::new(1.into()), class: Some(Class::Transient), ..Knob::default() };
    let mut engine = Engine::new(&store, &lock, sink).first_wait(Duration::from_millis(1));
    engine.run(&phase(&["h0"], &knob(&[]), &flaky)).unwrap();
    drop(engine);
    let kinds: Vec<String> = events
        .iter()
        .map(|event| {
            assert!(!matches!(event.event, What::Unknown));
            serde_json::to_value(&event.event).unwrap()["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        ["phase-started", "step-started", "step-done", "step-started", "step-retry", "step-done", "phase-done"]
    );
}

proptest::proptest! {
    #[test]
    fn diff_names_exactly_what_differs(
        old in proptest::collection::btree_map("[a-d]", "[x-z]", 0..4),
        new in proptest::collection::btree_map("[a-d]", "[x-z]", 0..4),
    ) {
        let inputs = |map: &BTreeMap<String, String>| {
            let mut inputs = Inputs::new();
            inputs.extend(map);
            inputs
        };
        let (before, after) = (inputs(&old), inputs(&new));
        let expected: Vec<String> =
            ["a", "b", "c", "d"].into_iter().filter(|name| old.get(*name) != new.get(*name)).map(str::to_owned).collect();
        proptest::prop_assert_eq!(after.diff(before.fingerprints()), expected);
        proptest::prop_assert_eq!(before.digest() == after.digest(), old == new);
    }
}
