//! Kills the engine at every point of every step and starts it again: the end is the same, and
//! nothing that was done is done twice.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use assert_cmd::Command;

const TASKS: [&str; 4] = ["first", "host@h0", "host@h1", "last"];
const POINTS: [(&str, &str); 6] = [
    ("intent", "before"),
    ("intent", "torn"),
    ("intent", "after"),
    ("outcome", "before"),
    ("outcome", "torn"),
    ("outcome", "after"),
];

fn fake(dir: &Path, scenario: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-engine"));
    command.arg(dir).arg(scenario);
    command
}

fn runs(dir: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in fs_err::read_to_string(dir.join("ran")).unwrap_or_default().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

fn kinds(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["event"]["kind"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// The fake engine with a failpoint log that has these lines.
fn with_failpoint_log(dir: &Path, lines: &str) -> Command {
    fs_err::write(dir.join("failpoint-log"), lines).unwrap();
    let mut command = fake(dir, "sweep");
    command.env("TURNUP_FAILPOINT_LOG", dir.join("failpoint-log"));
    command
}

#[test]
fn killed_at_every_point_it_ends_the_same() {
    for task in TASKS {
        for point in POINTS {
            let (word, when) = point;
            let dir = tempfile::tempdir().unwrap();
            let killed = with_failpoint_log(dir.path(), &format!("# only journal {word} fake/{task}: {when}\n"))
                .output()
                .unwrap();
            assert_eq!(killed.status.signal(), Some(9), "{task}: {point:?}");
            fake(dir.path(), "sweep").assert().success();
            for other in TASKS {
                // The effect is there, but its outcome is not in the journal.
                let twice = other == task && word == "outcome" && when != "after";
                let expected = if twice { 2 } else { 1 };
                assert_eq!(runs(dir.path()).get(other), Some(&expected), "{other} after {task}: {point:?}");
                assert!(dir.path().join("out").join(other).is_file(), "{other} after {task}: {point:?}");
            }
            let third = fake(dir.path(), "sweep").output().unwrap();
            assert!(third.status.success());
            assert_eq!(kinds(&third.stdout).iter().filter(|kind| *kind == "step-skipped").count(), TASKS.len());
        }
    }
}

#[test]
fn a_run_killed_at_every_point_completes_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut chain = with_failpoint_log(dir.path(), "");
    let mut deaths = 0;
    while chain.output().unwrap().status.signal() == Some(9) {
        deaths += 1;
        assert!(deaths < 100, "{}", fs_err::read_to_string(dir.path().join("failpoint-log")).unwrap());
    }
    // The last of them had written nothing but the journal; a run that does nothing brings the
    // snapshot up to it.
    let snapshot = fs_err::read_to_string(dir.path().join("state/state.json")).unwrap();
    assert!(snapshot.contains("fake/last"), "{snapshot}");
    // Each task at each point, and the writes of the snapshot between them.
    let failpoint_log = fs_err::read_to_string(dir.path().join("failpoint-log")).unwrap();
    assert_eq!(failpoint_log.lines().count(), deaths);
    assert_eq!(
        failpoint_log.lines().filter(|line| line.contains("journal ")).count(),
        TASKS.len() * POINTS.len(),
        "{failpoint_log}"
    );
    fake(dir.path(), "sweep").assert().success();
    let before = runs(dir.path());
    fake(dir.path(), "sweep").assert().success();
    assert_eq!(runs(dir.path()), before);
}

#[test]
fn what_a_dead_process_had_not_written_to_the_end_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let killed = with_failpoint_log(dir.path(), "# only write state.json: half\n").output().unwrap();
    assert_eq!(killed.status.signal(), Some(9));
    let parts = || {
        let names = fs_err::read_dir(dir.path().join("state")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".part-")).count()
    };
    assert_eq!(parts(), 1);
    fs_err::write(dir.path().join(format!("state/.part-{}-alive", std::process::id())), "").unwrap();
    let (below, of_a_host) = (dir.path().join("state/provision/hosts"), dir.path().join("state/hosts"));
    for place in [&below, &of_a_host] {
        fs_err::create_dir_all(place).unwrap();
        fs_err::write(place.join(".part-4194305-dead"), "").unwrap();
    }
    fake(dir.path(), "sweep").assert().success();
    assert_eq!(parts(), 1, "the part of a living process stays, that of the dead one goes");
    assert!(!below.join(".part-4194305-dead").exists());
    assert!(of_a_host.join(".part-4194305-dead").exists(), "only the host removes its own files");
}

#[test]
fn only_what_changed_or_vanished_runs_again() {
    let dir = tempfile::tempdir().unwrap();
    fake(dir.path(), "sweep").assert().success();
    fs_err::remove_file(dir.path().join("out/host@h1")).unwrap();
    fake(dir.path(), "sweep").assert().success();
    assert_eq!(
        runs(dir.path()),
        BTreeMap::from([("first", 1), ("host@h0", 1), ("host@h1", 2), ("last", 1)].map(|(id, n)| (id.into(), n)))
    );
    fs_err::write(dir.path().join("setting"), "other").unwrap();
    fake(dir.path(), "sweep").assert().success();
    assert_eq!(runs(dir.path())["first"], 2);
}

#[test]
fn one_bad_host_stops_only_what_depends_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let output = fake(dir.path(), "wide").env("FAKE_FAIL", "host@h3").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(runs(dir.path()).len(), 6, "first and five hosts");
    let said = String::from_utf8_lossy(&output.stderr).replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(said);
    // The next run does what is left, and only that.
    fake(dir.path(), "wide").assert().success();
    assert!(runs(dir.path()).values().all(|count| *count == 1), "{:?}", runs(dir.path()));
}
