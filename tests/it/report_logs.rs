//! `turnup logs`: which logs there are, and what they say.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::Write as _;
use std::time::Duration;

use turnup::state::Store;

use super::cli_support::{TestEnv, finish};

fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let log = |name: &str, text: &str| test_env.write(&format!(".turnup/kubernetes/logs/{name}.log"), text);
    log("bootstrap-join@worker-0", "one\ntwo\nthree\n");
    log("bootstrap-join@worker-1", "eins\nzwei\n");
    log("bootstrap-control-plane@cp-0", "etcd\n");
    log("provision-render", "module\n");
    log("addons-render", "manifest\n");
    log("validate", "probe\n");
    test_env
}

#[test]
fn without_a_step_it_says_what_there_is() {
    let test_env = test_env();
    let out = test_env.ok(&["logs"]).out;
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows[0], ["STEP", "HOST", "BYTES"]);
    assert_eq!(rows[2], ["bootstrap/control-plane", "cp-0", "5"]);
    assert_eq!(rows[3], ["bootstrap/join", "worker-0", "14"]);
    assert_eq!(rows.len(), 7);
    let json: serde_json::Value = serde_json::from_str(&test_env.ok(&["logs", "--output", "json"]).out).unwrap();
    assert_eq!((&json["schema"], &json["logs"][2]["host"]), (&"turnup.logs/1".into(), &"worker-0".into()));
}

#[test]
fn a_step_and_a_host_are_named_in_many_ways() {
    let test_env = test_env();
    for arguments in [
        &["logs", "join", "worker-0"][..],
        &["logs", "bootstrap/join", "worker-0"],
        &["logs", "bootstrap/join@worker-0"],
        &["logs", "join@worker-0"],
    ] {
        assert_eq!(test_env.ok(arguments).out, "one\ntwo\nthree\n", "{arguments:?}");
    }
    assert_eq!(test_env.ok(&["logs", "validate"]).out, "probe\n");
    let all = test_env.ok(&["logs", "join", "--tail", "1"]).out;
    assert_eq!(all, "==> bootstrap/join@worker-0 <==\nthree\n\n==> bootstrap/join@worker-1 <==\nzwei\n");
    let json = test_env.ok(&["logs", "join", "worker-1", "--tail", "1", "--output", "json"]).out;
    assert_eq!(
        json,
        "{\"schema\":\"turnup.log-line/1\",\"step\":\"bootstrap/join\",\"host\":\"worker-1\",\"line\":\"zwei\"}\n"
    );
}

#[test]
fn a_name_that_is_none_gets_the_nearest_one() {
    let test_env = test_env();
    for (arguments, says) in [
        (&["logs", "jion"][..], "no log of a step `jion`; did you mean `join`?"),
        (&["logs", "bootstrap/joint"], "did you mean `bootstrap/join`?"),
        (&["logs", "join", "worker-7"], "no log of bootstrap/join on a host `worker-7`; did you mean `worker-"),
        (&["logs", "render"], "turnup logs addons/render | turnup logs provision/render"),
        (&["logs", "--follow"], "<STEP>"),
    ] {
        let err = test_env.ends(2, arguments).err;
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn a_log_is_followed_while_the_lock_is_held() {
    let test_env = test_env();
    let store = Store::open(test_env.path(".turnup/kubernetes")).unwrap();
    let lock = store.lock("test").unwrap();
    let path = test_env.path(".turnup/kubernetes/logs/validate.log");
    let writer = std::thread::spawn(move || {
        for text in ["se", "cond\n", "third\n"] {
            std::thread::sleep(Duration::from_millis(300));
            let mut file = fs_err::OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        drop(lock);
    });
    let followed = finish(&mut test_env.command(&["logs", "validate", "--follow"]));
    writer.join().unwrap();
    assert_eq!((followed.code, followed.out.as_str()), (0, "probe\nsecond\nthird\n"), "{}", followed.err);
}
