//! Runs of an approved plan, against a real store: planned steps run, and anything else is refused
//! before it begins.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use turnup::change::{Change, Preview, Verb};
use turnup::phase::StepId;
use turnup::phase::{
    Action, ApprovedPlan, Check, Cx, Decision, Engine, Inputs, Manifest, Phase, PhaseHost, PlannedStep, Sink,
};
use turnup::state::Store;
use turnup::unknown;
use turnup::{Class, Error, Result};

/// What a step finds, and what it would change. Shared, so that the test turns it between plan and
/// run.
#[derive(Clone, Debug, Default)]
struct World {
    input: String,
    gone: bool,
    changes: Vec<Change>,
    /// The step's output for the next one.
    leaves: Option<String>,
    blind: bool,
}

#[derive(Clone)]
struct Step {
    world: Arc<Mutex<World>>,
    store: Store,
    /// Whether it depends on the output of the first one.
    reads: bool,
}

impl Step {
    fn world(&self) -> World {
        self.world.lock().unwrap().clone()
    }
}

impl Action for Step {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let inputs = Inputs::new().with("setting", self.world().input);
        if !self.reads {
            return Ok(inputs);
        }
        Ok(inputs.with("left by the first", self.store.read("left")?.unwrap_or_default()))
    }
    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(if self.world().gone { Check::Drifted("the file is not there".into()) } else { Check::Ok })
    }
    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        Ok(self.world().changes.into())
    }
    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        if self.world().leaves.is_some() {
            self.store.write_file("left", unknown::after(&StepId::of("p", "first")).as_bytes(), 0o600)?;
        }
        Ok(!self.world().blind)
    }
    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        cx.admit(&self.world().changes)?;
        if let Some(text) = self.world().leaves {
            self.store.write_file("left", text.as_bytes(), 0o600)?;
        }
        self.world.lock().unwrap().gone = false;
        Ok(())
    }
}

/// `first`, then `second` on two hosts, then `third`; and the three worlds.
struct Stage {
    dir: tempfile::TempDir,
    worlds: [Arc<Mutex<World>>; 3],
}

const STEPS: &str = "[[step]]\nname = \"first\"\n[[step]]\nname = \"second\"\nscope = \"host\"\nafter = [\"first\"]\n\
    [[step]]\nname = \"third\"\nafter = [\"second\"]\n";

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), worlds: Default::default() }
    }

    fn phase(&self, store: &Store) -> Phase {
        let hosts = ["h0", "h1"].map(|name| PhaseHost { name: name.into(), role: "worker".into() }).into();
        let step = |at: usize| Step { world: Arc::clone(&self.worlds[at]), store: store.clone(), reads: at == 1 };
        Phase::new("p", Manifest::parse("phase.toml", STEPS).unwrap(), hosts)
            .with("first", step(0))
            .with("second", step(1))
            .with("third", step(2))
    }

    fn turn(&self, step: usize, turn: impl FnOnce(&mut World)) {
        turn(&mut self.worlds[step].lock().unwrap());
    }

    fn plan(&self) -> Vec<PlannedStep> {
        let shadow = Store::shadow(self.dir.path());
        Engine::plan(&shadow, &self.phase(&shadow), None).unwrap().steps
    }

    fn run(&self, plan: Option<&[PlannedStep]>) -> Result<usize> {
        let store = Store::open(self.dir.path()).unwrap();
        let lock = store.lock("test").unwrap();
        let bound = plan.map(|steps| Arc::new(ApprovedPlan::new(steps.iter().cloned(), &[])));
        let engine = Engine::new(&store, &lock, Sink::null()).first_wait(Duration::from_millis(1));
        engine.approved_by(bound).run(&self.phase(&store)).map(|summary| summary.ran)
    }

    fn decisions(&self) -> Vec<(String, Decision)> {
        self.plan().into_iter().map(|step| (step.id.to_string(), step.decision)).collect()
    }
}

#[track_caller]
fn refused(result: Result<usize>, says: &str) {
    let error = result.unwrap_err();
    let text = error.render();
    assert_eq!(error.class(), Class::Precondition, "{text}");
    assert!(text.contains("not in the plan: ") && text.contains(says), "{text}");
    assert!(text.contains("turnup plan --out FILE"), "{text}");
}

fn is_left(dir: &Path) -> bool {
    dir.join("left").exists()
}

#[test]
fn a_plan_is_what_the_run_then_does_and_looking_changes_nothing() {
    let stage = Stage::new();
    stage.turn(0, |world| world.leaves = Some("a key".into()));
    let plan = stage.plan();
    assert!(!is_left(stage.dir.path()) && !stage.dir.path().join("journal.jsonl").exists(), "a plan writes nothing");
    assert!(plan.iter().all(|step| step.decision == Decision::Run), "{plan:?}");
    assert_eq!(
        plan[1].unknown_inputs.iter().collect::<Vec<_>>(),
        ["left by the first"],
        "said to be unknown, not made up"
    );
    assert_eq!(stage.run(Some(&plan)).unwrap(), 4);
    assert!(is_left(stage.dir.path()));
    assert!(stage.decisions().iter().all(|(_, decision)| *decision == Decision::Skip));
    // Only the second step's setting changes: that step runs on both hosts, and nothing else.
    stage.turn(1, |world| world.input = "other".into());
    let plan = stage.plan();
    let moving = plan.iter().filter(|step| step.decision != Decision::Skip).map(|step| step.id.to_string());
    assert_eq!(moving.collect::<Vec<_>>(), ["p/second@h0", "p/second@h1"]);
    assert_eq!(stage.run(Some(&plan)).unwrap(), 2);
}

#[test]
fn what_the_plan_does_not_announce_is_refused() {
    let stage = Stage::new();
    let file = |name: &str| Change::new(Verb::Update, "file", name);
    stage.turn(1, |world| world.changes = vec![file("/etc/a")]);
    let plan = stage.plan();
    stage.turn(1, |world| world.changes = vec![file("/etc/a"), file("/etc/b")]);
    refused(stage.run(Some(&plan)), "change file /etc/b");
    stage.turn(1, |world| world.changes = vec![]);
    assert_eq!(stage.run(Some(&plan)).unwrap(), 3, "what is done already need not be announced; first had run");

    let plan = stage.plan();
    assert_eq!(stage.run(Some(&plan)).unwrap(), 0);
    stage.turn(1, |world| world.input = "changed since".into());
    refused(stage.run(Some(&plan)), "setting is not what it was");
    stage.turn(1, |world| world.input = String::new());
    stage.turn(2, |world| world.gone = true);
    refused(stage.run(Some(&plan)), "p/third (outputs gone: the file is not there)");
}

#[test]
fn words_that_say_unknown_are_compared_like_any_other() {
    let words = "(known after p/first)";
    let stage = Stage::new();
    let line = |text: &str| Change::new(Verb::Update, "file", "/etc/a").with_lines(vec![format!("+ {text}")]);
    stage.turn(1, |world| (world.input, world.changes) = (words.into(), vec![line(words)]));
    let plan = stage.plan();
    assert!(plan[1].unknown_inputs.is_empty() && plan[1].preview.changes[0].unknown.is_empty(), "{plan:?}");
    stage.turn(1, |world| world.changes = vec![line("other")]);
    refused(stage.run(Some(&plan)), "change file /etc/a");
    stage.turn(1, |world| (world.input, world.changes) = ("(known after p/second)".into(), vec![line(words)]));
    refused(stage.run(Some(&plan)), "setting is not what it was");
    stage.turn(1, |world| world.input = words.into());
    assert_eq!(stage.run(Some(&plan)).unwrap(), 3);
}

#[test]
fn a_step_may_mend_what_an_earlier_one_of_the_same_run_did() {
    let stage = Stage::new();
    stage.run(None).unwrap();
    stage.turn(1, |world| world.input = "other".into());
    let plan = stage.plan();
    // As if the second step had stopped what the third one had started.
    stage.turn(2, |world| world.gone = true);
    assert_eq!(stage.run(Some(&plan)).unwrap(), 3);
}

#[test]
fn an_unplanned_step_is_refused() {
    let stage = Stage::new();
    let mut plan = stage.plan();
    plan.retain(|step| step.id != "p/second@h1");
    refused(stage.run(Some(&plan)), "step p/second@h1 (never ran)");
}

#[test]
fn the_difference_between_two_plans_is_named() {
    let stage = Stage::new();
    stage.run(None).unwrap();
    let plan = ApprovedPlan::new(stage.plan(), &[]);
    plan.check(&stage.plan(), false).unwrap();
    let named = |turn: &dyn Fn(), says: &str| {
        turn();
        let error: Error = plan.check(&stage.plan(), false).unwrap_err();
        assert!(error.render().contains(says), "{} / {says}", error.render());
    };
    named(&|| stage.turn(1, |world| world.input = "x".into()), "p/second@h0 (inputs changed: setting)");
    named(
        &|| {
            stage.turn(1, |world| world.input = String::new());
            stage.turn(0, |world| world.gone = true);
        },
        "p/first (outputs gone: the file is not there)",
    );
    // Started before, a plan may find its own work done; not started, it may not.
    stage.turn(0, |world| world.gone = false);
    stage.turn(2, |world| world.input = "y".into());
    let plan = stage.plan();
    stage.run(Some(&plan)).unwrap();
    let plan = ApprovedPlan::new(plan, &[]);
    plan.check(&stage.plan(), true).unwrap();
    let error = plan.check(&stage.plan(), false).unwrap_err();
    assert!(error.message().contains("p/third has nothing to do any more"), "{}", error.message());
}

#[test]
fn a_step_behind_an_unpredictable_one_is_known_after_it() {
    let stage = Stage::new();
    stage.run(None).unwrap();
    stage.turn(0, |world| (world.input, world.blind) = ("x".into(), true));
    let plan = stage.plan();
    let told: Vec<(Decision, Option<StepId>)> =
        plan.iter().map(|step| (step.decision, step.preview.known_after.clone())).collect();
    let unknown = (Decision::Unknown, Some(StepId::of("p", "first")));
    assert_eq!(told[..3], [(Decision::Run, None), unknown.clone(), unknown]);
    assert_eq!(told[3].0, Decision::Unknown);
    assert_eq!(stage.run(Some(&plan)).unwrap(), 1, "the others turn out to have nothing to do");
}
