//! `turnup exec` and `turnup ssh` with a fake ssh: which hosts, what is shown of each, which exit
//! code, and what ssh is called with.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::cli_support::{Outcome, TestEnv, finish};

/// Answers as the host with the last number of the address: 1 succeeds, 2 fails with 3, 3 does not
/// answer. A master makes its socket.
const SSH: &str = r#"#!/bin/sh
printf '%s\n' "$*" >>"$(dirname "$0")/../calls"
while [ $# -gt 0 ]; do
    case "$1" in
    -M) master=1 ;;
    -S) socket=$2; shift ;;
    root@*) host=${1##*.} ;;
    esac
    last=$1
    shift
done
[ "$host" != 3 ] || { echo 'ssh: connect to host 10.0.0.3 port 22: No route to host' >&2; exit 255; }
[ -z "$master" ] || { : >"$socket"; exec cat >/dev/null; }
echo "ran: $last"
echo "a word on standard error" >&2
[ "$host" != 2 ] || exit 3
"#;

fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let host = |number: u8| {
        let role = if number == 1 { "control-plane" } else { "worker" };
        json!({"name": format!("h{number}"), "role": role, "address": format!("10.0.0.{number}"), "instance": "1",
            "ssh": {"user": "root", "port": 22,
                "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}})
    };
    let inventory = json!({"schema": "turnup.provision/1", "cluster": "kubernetes", "target": "local",
        "api": {"host": "10.0.0.1", "port": 6443}, "hosts": [host(1), host(2), host(3)]});
    fs_err::create_dir_all(test_env.path(".turnup/kubernetes/outputs")).unwrap();
    test_env.write(".turnup/kubernetes/outputs/provision.json", &inventory.to_string());
    fs_err::create_dir_all(test_env.path("bin")).unwrap();
    test_env.write("bin/ssh", SSH);
    fs_err::set_permissions(test_env.path("bin/ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    test_env
}

fn run(test_env: &TestEnv, args: &[&str]) -> Outcome {
    let path = format!("{}:{}", test_env.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = test_env.command(args);
    command.env("PATH", path);
    finish(&mut command)
}

#[test]
fn one_host_prints_what_the_command_prints() {
    let test_env = test_env();
    let done = run(&test_env, &["exec", "h1", "--", "systemctl", "is-active", "kubelet proxy"]);
    assert_eq!((done.code, done.out.as_str()), (0, "ran: systemctl is-active 'kubelet proxy'\n"));
    assert_eq!(done.err, "a word on standard error\n");
}

#[test]
fn of_many_each_line_has_its_host_and_the_failed_are_named() {
    let test_env = test_env();
    let done = run(&test_env, &["exec", "all", "h1", "--", "true"]);
    assert_eq!(done.code, 1, "{}", done.err);
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["h1: ran: true", "h2: ran: true"], "each host once");
    insta::assert_snapshot!(&done.err[done.err.find("error: ").unwrap()..]);
    let workers = run(&test_env, &["exec", "workers", "--output", "json", "--", "true"]);
    let all: Vec<Value> = workers.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |host: &str| all.iter().find(|one| one["host"] == host).unwrap().clone();
    assert_eq!(of("h2")["code"], json!(3));
    let mut texts: Vec<_> = of("h2")["lines"].as_array().unwrap().iter().map(|line| line["text"].clone()).collect();
    // Two pipes have no order between them.
    texts.sort_by_key(ToString::to_string);
    assert_eq!(texts, [json!("a word on standard error"), json!("ran: true")]);
    assert!(of("h3")["code"].is_null() && of("h3")["error"].as_str().unwrap().contains("No route to host"), "{all:?}");
    assert_eq!(all.len(), 2, "one a host");
}

#[test]
fn a_wrong_name_is_refused_before_any_host_is_asked() {
    let test_env = test_env();
    for args in
        [&["exec", "h1", "h7", "--", "true"][..], &["ssh", "h7"], &["exec", "h1"], &["ssh", "h1", "--output", "json"]]
    {
        let done = run(&test_env, args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.err);
    }
    assert!(run(&test_env, &["ssh", "h7"]).err.contains("hosts: h1, h2, h3"));
    assert!(!test_env.path("calls").exists());
}

#[test]
fn a_shell_is_an_ssh_of_the_users_own() {
    let test_env = test_env();
    let done = run(&test_env, &["ssh", "h2", "--", "uptime"]);
    assert_eq!((done.code, done.out.as_str()), (3, "ran: uptime\n"), "ssh's own exit code");
    let calls = test_env.read("calls");
    assert_eq!(calls.lines().count(), 1, "no connection that stays: {calls}");
    assert!(calls.contains("StrictHostKeyChecking=yes") && !calls.contains(" -t "), "{calls}");
    run(&test_env, &["ssh", "h1"]);
    assert!(test_env.read("calls").lines().last().unwrap().ends_with("-- root@10.0.0.1"));
}
