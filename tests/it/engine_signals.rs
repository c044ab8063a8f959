//! Ctrl-C, a stubborn child, and the death of turnup itself: what the children see of it.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test plays the terminal that turnup was started from")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// For what takes a moment; what must not go on by itself goes on for longer.
const TIMEOUT: Duration = Duration::from_mins(5);

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts the engine with a child script and waits until the script has written its pid.
fn start(dir: &Path, scenario: &str, script: &str) -> (Child, Pid) {
    let path = dir.join("child.sh");
    fs_err::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs_err::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-engine"));
    command.arg(dir).arg(scenario).arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let engine = command.spawn().unwrap();
    let pid = dir.join("pid");
    wait_for("the child's pid", || fs_err::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let number = fs_err::read_to_string(&pid).unwrap().trim().parse().unwrap();
    (engine, Pid::from_raw(number).unwrap())
}

fn send(engine: &Child, signal: Signal) {
    kill_process(Pid::from_child(engine), signal).unwrap();
}

fn is_gone(pid: Pid) -> bool {
    // A zombie that has not been waited for yet is gone as well.
    let stat: PathBuf = format!("/proc/{}/stat", pid.as_raw_nonzero()).into();
    test_kill_process(pid).is_err() || fs_err::read_to_string(stat).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn the_first_signal_is_forwarded_once_and_later_ones_are_swallowed() {
    let dir = tempfile::tempdir().unwrap();
    let script = r"trap 'echo INT >>signals' INT
trap 'echo TERM >>signals' TERM
echo $$ >pid
while ! test -s signals; do sleep 0.05; done
sleep 1.5
exit 3";
    let (engine, child) = start(dir.path(), "child-term", script);
    for _ in 0..3 {
        send(&engine, Signal::INT);
        std::thread::sleep(Duration::from_millis(300));
    }
    send(&engine, Signal::TERM);
    let output = engine.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(fs_err::read_to_string(dir.path().join("signals")).unwrap(), "INT\n");
    assert!(is_gone(child));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_child_that_will_not_end_is_killed_after_its_grace_with_its_own_children() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' INT TERM\nsh -c 'trap \"\" INT TERM; echo $$ >grandchild; sleep 1200' &\nwhile ! test -s grandchild; do sleep 0.05; done\necho $$ >pid\nwhile :; do sleep 1; done";
    let (engine, child) = start(dir.path(), "child", script);
    let grandchild = fs_err::read_to_string(dir.path().join("grandchild")).unwrap().trim().parse().unwrap();
    send(&engine, Signal::TERM);
    assert_eq!(engine.wait_with_output().unwrap().status.code(), Some(130));
    assert!(is_gone(child));
    wait_for("the grandchild's end", || is_gone(Pid::from_raw(grandchild).unwrap()));
}

#[test]
fn no_child_outlives_a_killed_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (mut engine, child) = start(dir.path(), "child", "echo $$ >pid\nwhile :; do sleep 1; done");
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_for("the child's end", || is_gone(child));
}

#[test]
fn a_child_that_must_finish_is_asked_and_can_still_write() {
    let dir = tempfile::tempdir().unwrap();
    // Like terraform: asked to end, it says a lot and then saves its state.
    let script = r#"trap 'for i in 1 2 3 4 5; do echo "stopping $i"; echo "still $i" >&2; done; echo saved >state.tf; exit 0' TERM
echo $$ >pid
while :; do sleep 0.1; done"#;
    let (mut engine, child) = start(dir.path(), "child-term", script);
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_for("the child's end", || is_gone(child));
    assert_eq!(fs_err::read_to_string(dir.path().join("state.tf")).unwrap(), "saved\n");
}
