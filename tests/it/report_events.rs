//! Events as programs read them: the published schema, what runs keep, and the command that shows
//! it.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use assert_cmd::Command;
use serde_json::{Value, json};
use turnup::Class;
use turnup::phase::{Event, PartKind, PathPart, SCHEMA, Tasks, What, schema};

use super::cli_support::{Outcome, TestEnv, finish};

fn fake(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-engine"));
    command.arg(dir).args(arguments);
    command
}

/// `turnup` where the fake engine's cluster is found: its name is that of the fake's directory.
fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    test_env.ok(&["config", "set", "phase1.cluster_name=state"]);
    test_env
}

fn turnup(test_env: &TestEnv, arguments: &[&str]) -> Outcome {
    finish(test_env.command(&["--state-dir", "."]).args(arguments))
}

fn kept(test_env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(test_env.path("state/events")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the schema has against a line.
fn against(schema: &jsonschema::Validator, line: &Value) -> Option<String> {
    schema.validate(line).err().map(|error| format!("{error} in {line}"))
}

/// One event of each kind, every field filled.
fn one_of_each() -> Vec<What> {
    let step = || "bootstrap/join@w-0".to_owned();
    let part = |kind| PathPart { kind, name: step(), seconds: 1.5, last_seconds: Some(2.0) };
    vec![
        What::RunStarted {
            replaced: vec!["templates/".into()],
            schema: SCHEMA.into(),
            version: "0.1.0".into(),
            command: "up".into(),
            cluster: "demo".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
        },
        What::PhaseStarted { phase: "bootstrap".into(), steps: 1, tasks: vec![Tasks { step: step(), count: 1 }] },
        What::StepStarted {
            step: step(),
            summary: "s".into(),
            why: "never ran".into(),
            needs: vec![step()],
            look_seconds: 0.1,
        },
        What::StepProgress { step: step(), message: "copying".into() },
        What::StepCount { step: step(), done: 1, total: 2 },
        What::StepPart { step: step(), part: "part".into(), doing: "create".into(), elapsed_seconds: 1.5, ended: true },
        What::StepRetry { step: step(), attempt: 1, wait_seconds: 1.0, cause: "refused".into() },
        What::StepSkipped { step: step(), needs: vec![], look_seconds: 0.1 },
        What::StepDone { step: step(), elapsed_seconds: 1.0 },
        What::StepFailed {
            step: step(),
            class: Class::Precondition,
            message: "no space".into(),
            evidence: vec!["df".into()],
            log: Some("join.log".into()),
        },
        What::StepBlocked { step: step(), because: "bootstrap/pki".into() },
        What::StepForgotten { step: step() },
        What::Milestone { step: step(), name: "etcd healthy".into() },
        What::PhaseDone { phase: "bootstrap".into(), ran: 1, skipped: 0, failed: 0, blocked: 0, elapsed_seconds: 1.0 },
        What::Note { message: "stopping".into() },
        What::RunDone {
            ok: false,
            elapsed_seconds: 1.0,
            max_duration_seconds: Some(1.0),
            path: [PartKind::Step, PartKind::Proof, PartKind::Turn, PartKind::Between].map(part).to_vec(),
        },
    ]
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let published = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/events-1.json")).unwrap();
    let said = TestEnv::new("").ok(&["events", "--schema"]).out;
    assert_eq!(published, said, "regenerate it: turnup events --schema >schemas/events-1.json");
}

#[test]
fn every_kind_of_event_fits_the_schema_and_nothing_else_does() {
    let text = schema();
    let schema = jsonschema::validator_for(&text).unwrap();
    let lines: Vec<Value> =
        one_of_each().into_iter().map(|event| serde_json::to_value(Event { seconds: 0.5, event }).unwrap()).collect();
    for line in &lines {
        assert_eq!(against(&schema, line), None);
        // Each field that has no default is needed, and has a type.
        for name in line["event"].as_object().unwrap().keys() {
            let mut wrong = line.clone();
            wrong["event"][name] = json!({"of": "another type"});
            assert!(against(&schema, &wrong).is_some(), "{name} of any type in {line}");
        }
    }
    let kinds: BTreeSet<&str> = lines.iter().map(|line| line["event"]["kind"].as_str().unwrap()).collect();
    let known = text["$defs"]["What"]["oneOf"].as_array().unwrap();
    let known: BTreeSet<&str> =
        known.iter().map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap()).collect();
    assert_eq!(kinds, known, "the list above has one of each");
    let strange = json!({"seconds": 1.0, "event": {"kind": "step-started"}});
    assert!(against(&schema, &strange).is_some(), "fields are missing");
    assert!(against(&schema, &json!({"seconds": 1.0, "event": {"kind": "nonsense"}})).is_some());
}

#[test]
fn a_run_keeps_its_events_and_they_fit_the_schema() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    let test_env = test_env();
    for (fails, code) in [("host@h3", 1), ("", 0), ("", 0)] {
        let outcome = finish(fake(test_env.dir.path(), &["wide"]).env("FAKE_FAIL", fails));
        assert_eq!(outcome.code, code, "{}", outcome.err);
        let file = kept(&test_env).pop().unwrap();
        assert_eq!(fs_err::read_to_string(&file).unwrap(), outcome.out, "the same lines are shown and kept");
        assert_eq!(fs_err::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let lines = values(&outcome.out);
        for line in &lines {
            assert_eq!(against(&schema, line), None);
        }
        assert_eq!(lines[0]["event"]["kind"], "run-started");
        assert_eq!(lines[0]["event"]["schema"], SCHEMA);
        assert_eq!(lines.last().unwrap()["event"]["kind"], "run-done");
        assert_eq!(lines.last().unwrap()["event"]["ok"], code == 0);
        let shown = turnup(&test_env, &["events", "--output", "json"]);
        assert_eq!((shown.code, shown.out), (0, outcome.out), "{}", shown.err);
    }
}

#[test]
fn the_critical_path_adds_up_to_the_time_that_has_passed() {
    let test_env = test_env();
    for run in 0..2 {
        fs_err::write(test_env.path("setting"), run.to_string()).unwrap();
        let start = Instant::now();
        let outcome = finish(fake(test_env.dir.path(), &["many", "20"]).env("FAKE_PAUSE", "1000"));
        let passed = start.elapsed().as_secs_f64();
        let done = values(&outcome.out).pop().unwrap()["event"].clone();
        let path = done["path"].as_array().unwrap();
        let sum: f64 = path.iter().map(|part| part["seconds"].as_f64().unwrap()).sum();
        let elapsed = done["elapsed_seconds"].as_f64().unwrap();
        assert!((sum - elapsed).abs() < (elapsed * 0.02).max(0.5), "{sum} of {elapsed}: {done}");
        // The rest is the start of the process, which is slow on loaded machines.
        assert!(elapsed <= passed && passed < elapsed + 60.0, "{elapsed} of {passed}");
        let worked = |part: &&Value| part["kind"] == "step" && part["seconds"].as_f64() >= Some(1.0);
        let steps: Vec<&Value> = path.iter().filter(worked).collect();
        let names: Vec<&str> = steps.iter().map(|part| part["name"].as_str().unwrap()).collect();
        assert_eq!((names[0], names[2], names.len()), ("fake/first", "fake/last", 3), "{names:?}");
        // 20 hosts, 8 at once: the last of them began after two others had ended; where threads
        // began late, after one at least.
        let turn = path.iter().find(|part| part["kind"] == "turn" && part["name"] == steps[1]["name"]).unwrap();
        assert!(turn["seconds"].as_f64() >= Some(1.0), "{turn}");
        for part in steps {
            assert_eq!(part["last_seconds"].as_f64() >= Some(1.0), run > 0, "{part}");
        }
    }
}

#[test]
fn the_last_twenty_runs_stay_and_a_killed_one_is_named() {
    let test_env = test_env();
    test_env.write("failpoint-log", "# only journal outcome fake/last: before\n");
    let failpoint_log = test_env.path("failpoint-log");
    let killed = fake(test_env.dir.path(), &["sweep"]).env("TURNUP_FAILPOINT_LOG", failpoint_log).output().unwrap();
    assert_eq!(killed.status.code(), None);
    let list = turnup(&test_env, &["events", "--list", "--output", "json"]);
    let runs = values(&list.out)[0]["runs"].clone();
    assert_eq!((&runs[0]["result"], &runs[0]["command"]), (&json!("killed"), &json!("fake-engine")));
    for _ in 0..20 {
        assert_eq!(finish(&mut fake(test_env.dir.path(), &["sweep"])).code, 0);
    }
    assert_eq!(kept(&test_env).len(), 20);
    let runs = values(&turnup(&test_env, &["events", "--list", "--output", "json"]).out)[0]["runs"].clone();
    assert_eq!((&runs[0]["result"], &runs[0]["ran"]), (&json!("done"), &json!(1)), "the killed run was dropped");
    let text = turnup(&test_env, &["events", "--list"]).out;
    assert_eq!(text.lines().count(), 21, "{text}");
}

#[test]
fn a_run_is_chosen_by_part_of_its_name() {
    let test_env = test_env();
    let none = turnup(&test_env, &["events"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("no events are kept for this cluster yet"), "{}", none.err);
    for _ in 0..2 {
        assert_eq!(finish(&mut fake(test_env.dir.path(), &["sweep"])).code, 0);
    }
    let files = kept(&test_env);
    let name = |at: usize| files[at].file_stem().unwrap().to_str().unwrap().to_owned();
    let first = turnup(&test_env, &["events", &name(0)]);
    assert!(first.out.contains("fake/last done in") && first.out.contains("\ntotal "), "{}", first.out);
    let second = turnup(&test_env, &["events", &name(1)]);
    assert!(second.out.contains("nothing to do"), "{}", second.out);
    let both = turnup(&test_env, &["events", "fake-engine"]);
    assert_eq!(both.code, 2);
    assert!(both.err.contains("names 2 runs"), "{}", both.err);
    let other = turnup(&test_env, &["events", &name(0).replace("fake-engine", "fake-engin")]);
    assert!(other.code == 0, "a beginning: {}", other.err);
    let wrong = turnup(&test_env, &["events", &name(0).replace("fake", "face")]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains(&format!("did you mean `{}`?", name(0))), "{}", wrong.err);
}

#[test]
fn a_run_that_goes_on_is_followed_to_its_end() {
    let test_env = test_env();
    let mut engine = fake(test_env.dir.path(), &["many", "20"]);
    let engine = std::thread::spawn(move || finish(engine.env("FAKE_PAUSE", "2000")));
    while !test_env.path("state/events").is_dir() || kept(&test_env).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(
        values(&turnup(&test_env, &["events", "--list", "--output", "json"]).out)[0]["runs"][0]["result"],
        "running"
    );
    let followed = turnup(&test_env, &["events", "--follow", "--output", "json"]);
    assert_eq!(followed.out, engine.join().unwrap().out);
    assert_eq!(values(&followed.out).pop().unwrap()["event"]["kind"], "run-done");
}

#[test]
fn a_run_that_takes_longer_than_its_maximum_fails_at_its_end() {
    let test_env = test_env();
    let run = |timeout: &str| {
        fs_err::write(test_env.path("setting"), timeout).unwrap();
        finish(fake(test_env.dir.path(), &["wide"]).env("FAKE_PAUSE", "400").env("FAKE_MAX_DURATION", timeout))
    };
    let slow = run("1");
    assert_eq!(slow.code, 1);
    assert!(slow.err.contains("and its maximum is 1.0s; the slowest was fake/"), "{}", slow.err);
    assert!(slow.err.contains("\n  | fake/last: "), "{}", slow.err);
    let done = values(&slow.out).pop().unwrap()["event"].clone();
    assert_eq!((&done["ok"], &done["max_duration_seconds"]), (&json!(false), &json!(1.0)));
    assert!(test_env.path("out/last").is_file(), "it went to its end");
    assert_eq!(run("600").code, 0);
}

/// The real program, with a step of one's own that takes its time.
#[test]
fn turnup_itself_keeps_events_and_judges_durations() {
    if !crate::driver_custom::has_terraform() {
        return;
    }
    // Hosts on paper, so that no real host has to answer.
    let test_env = crate::driver_custom::test_env();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["Kconfig", "phases", "templates"] {
        let copied = Command::new("cp").arg("-r").arg(root.join(name)).arg(test_env.path(name)).output().unwrap();
        assert!(copied.status.success());
    }
    let steps = "phases/provision/targets/custom/phase.toml";
    let own = "\n[[step]]\nname = \"nap\"\nsummary = \"a nap\"\nafter = [\"inventory\"]\nrun = [\"sleep\", \"6\"]\n";
    test_env.write(steps, &(test_env.read(steps) + own));
    let path = std::env::var("PATH").unwrap();
    let run = |arguments: &[&str]| finish(test_env.command(arguments).env("PATH", &path));

    let slow = run(&["provision", "--max-duration", "1s", "--output", "json"]);
    assert_eq!(slow.code, 1, "{}", slow.err);
    assert!(slow.err.contains("its maximum is 1.0s; the slowest was provision/"), "{}", slow.err);
    let schema = jsonschema::validator_for(&schema()).unwrap();
    // Behind the events of a run that fails stands its error.
    let (events, error) = slow.out.trim_end().rsplit_once('\n').unwrap();
    assert!(error.starts_with(r#"{"schema":"turnup.error/1","class":"permanent","exit_code":1,"#), "{error}");
    for line in values(events) {
        assert_eq!(against(&schema, &line), None);
    }
    assert_eq!(run(&["events", "--output", "json"]).out.trim_end(), events);
    // The work was done all the same.
    let again = run(&["provision", "--max-duration", "5m"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.contains("nothing to do"), "{}", again.err);
    let list = run(&["events", "--list"]).out;
    let results: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(results, ["failed", "done"], "{list}");
    // Read-only commands leave no trace and need no configuration.
    fs_err::remove_file(test_env.path(".config.json")).unwrap();
    assert_eq!(run(&["events"]).code, 0);
    let usage = run(&["provision", "--max-duration", "soon"]);
    assert_eq!(usage.code, 2);
    assert!(usage.err.contains("expected a duration such as 90s, 5m or 1h30m"), "{}", usage.err);
}
