//! `turnup bench` without a cluster: what it refuses before it makes one. `--assert` judges the
//! times, not a test.
#![expect(clippy::unwrap_used, reason = "tests")]

use assert_cmd::Command;

fn bench(args: &[&str]) -> (i32, String, bool) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
    let output = command.arg("bench").args(args).current_dir(dir.path()).output().unwrap();
    let untouched = fs_err::read_dir(dir.path()).unwrap().next().is_none();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap(), untouched)
}

#[test]
fn refuses_to_compare_without_a_peer() {
    let (code, text, untouched) = bench(&["--peer", "none", "--assert"]);
    assert_eq!(code, 2);
    assert!(text.contains("--peer none leaves it out"), "{text}");
    assert!(untouched, "nothing was made");
}

#[test]
fn refuses_a_subnet_that_is_none_and_no_runs_at_all() {
    assert_eq!(bench(&["--subnet", "10.125.0.1/24"]).0, 2);
    assert_eq!(bench(&["--runs", "0"]).0, 2);
}

#[test]
fn a_subnet_that_holds_no_hosts_leaves_nothing_behind() {
    let (code, text, untouched) = bench(&["--subnet", "10.125.0.0/31", "--runs", "1", "--start", "preloaded"]);
    assert_eq!(code, 3, "{text}");
    assert!(untouched, "nothing was left: {text}");
}
