//! Where Terraform's state is: moved between this machine and a server, locked by another process,
//! out of reach, and killed in the middle; with the real terraform and a server of our own on
//! loopback.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::Value;

use crate::cli_support::{Outcome, TestEnv};
use crate::cluster_support::processes;
use crate::driver_custom::{each_program, has_terraform, own_module, test_env};
use crate::state_server::StateServer;

const PASSWORD: &str = "correct-horse-battery";

fn to_server(test_env: &TestEnv, server: &StateServer) {
    let address = format!("phase1.state.http.address={}", server.address());
    let lock = format!("phase1.state.http.lock_address={}/lock", server.address());
    test_env.ok(&["config", "set", "phase1.state.backend=http", &address, &lock, "phase1.terraform.lock_timeout=0s"]);
}

fn with_password(test_env: &TestEnv, server: &StateServer, password: &str) {
    test_env.write("password", &format!("{password}\n"));
    fs_err::set_permissions(test_env.path("password"), PermissionsExt::from_mode(0o600)).unwrap();
    test_env.ok(&["config", "set", "phase1.state.http.username=me", "phase1.state.http.password_file=password"]);
    let wanted = base64::engine::general_purpose::STANDARD.encode(format!("me:{PASSWORD}"));
    server.content().authorization = Some(wanted);
}

fn local_state(test_env: &TestEnv) -> Value {
    let text = fs_err::read_to_string(test_env.path(".turnup/own/provision/terraform.tfstate")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn resources(state: &Value) -> usize {
    state["resources"].as_array().map_or(0, Vec::len)
}

/// Every file below the cluster's directory that has this text.
fn with_text(test_env: &TestEnv, text: &str) -> Vec<String> {
    let mut waiting = vec![test_env.path(".turnup")];
    let mut found = Vec::new();
    while let Some(dir) = waiting.pop() {
        for entry in fs_err::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if String::from_utf8_lossy(&fs_err::read(&path).unwrap()).contains(text) {
                found.push(path.strip_prefix(test_env.path(".turnup/own")).unwrap().display().to_string());
            }
        }
    }
    found
}

#[test]
fn the_state_moves_with_the_configuration_and_nothing_is_lost() {
    each_program(|program| moves(&own_module(program.test_env()), &StateServer::start()));
}

fn moves(test_env: &TestEnv, server: &StateServer) {
    test_env.ok(&["provision"]);
    let first = local_state(test_env);
    let instances = test_env.read(".turnup/own/outputs/provision.json");

    to_server(test_env, server);
    with_password(test_env, server, PASSWORD);
    let plan = test_env.ok(&["plan"]).out;
    assert!(plan.contains("~   Terraform state place"), "{plan}");
    assert!(
        plan.contains("- local: the working directory") && plan.contains(&format!("+ http {}", server.address())),
        "{plan}"
    );
    assert_eq!(server.content().state, None, "to plan writes nothing");
    assert!(server.content().requests.iter().all(|request| request.starts_with("GET")), "nor locks anything");
    test_env.ok(&["provision"]);
    assert_eq!(server.state()["resources"], first["resources"]);
    assert_eq!(resources(&local_state(test_env)), 0, "there is one state and not two");
    assert_eq!(test_env.read(".turnup/own/outputs/provision.json"), instances, "no host is another one");
    assert_eq!(server.content().lock, None);
    assert!(test_env.ok(&["provision"]).err.contains("0 ran"));

    // The password is only where Terraform keeps it, and no other user can read that directory.
    assert_eq!(with_text(test_env, PASSWORD), ["provision/.terraform/terraform.tfstate"]);
    let mode = fs_err::metadata(test_env.path(".turnup/own")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);

    test_env.ok(&["config", "set", "phase1.num_nodes=2"]);
    let told = test_env.ok(&["plan"]).out;
    assert!(told.contains("+   resource terraform_data.host[\"own-workers-1\"]"), "{told}");
    assert!(!told.contains("own-workers-0"), "the state on the server is what it is compared with: {told}");
    test_env.ok(&["provision"]);
    let on_server = server.state();
    assert_ne!(on_server["resources"], first["resources"]);

    // And back.
    test_env.ok(&["config", "set", "phase1.state.backend=local"]);
    test_env.ok(&["provision"]);
    assert_eq!(local_state(test_env)["resources"], on_server["resources"]);
    assert!(!test_env.path(".turnup/own/provision/backend.tf.json").exists());
    assert!(test_env.ok(&["provision"]).err.contains("0 ran"));
    test_env.ok(&["down", "--yes"]);
}

#[test]
fn the_state_is_destroyed_where_it_is_whatever_the_configuration_says() {
    // Without the configuration the program is unknown: either will do.
    each_program(|program| is_destroyed(&own_module(program.test_env()), &StateServer::start()));
}

fn is_destroyed(test_env: &TestEnv, server: &StateServer) {
    to_server(test_env, server);
    with_password(test_env, server, PASSWORD);
    test_env.ok(&["provision"]);
    assert_eq!(resources(&server.state()), 2);
    fs_err::remove_file(test_env.path(".config.json")).unwrap();
    let down = test_env.ok(&["down", "--cluster", "own", "--yes"]).err;
    assert!(down.contains("to be removed: terraform_data.host[\"own-control-plane-0\"]"), "{down}");
    assert_eq!(resources(&server.state()), 0);
}

#[test]
fn a_state_of_something_else_is_not_overwritten() {
    if !has_terraform() {
        return;
    }
    let (test_env, server) = (test_env(), StateServer::start());
    test_env.ok(&["provision"]);
    let other = br#"{"version": 4, "terraform_version": "1.11.4", "serial": 3, "lineage": "another-lineage", "outputs": {}, "resources": [{"mode": "managed", "type": "terraform_data", "name": "x", "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": []}]}"#;
    server.content().state = Some(other.to_vec());
    to_server(&test_env, &server);
    let refused = test_env.run(&["provision"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(
        refused.err.contains("is the state of something else") && refused.err.contains("another-lineage"),
        "{}",
        refused.err
    );
    assert_eq!(server.content().state.as_deref(), Some(&other[..]));
    assert_eq!(resources(&local_state(&test_env)), 2);
}

#[test]
fn a_wrong_password_and_one_that_others_can_read_are_refused() {
    if !has_terraform() {
        return;
    }
    let (test_env, server) = (test_env(), StateServer::start());
    to_server(&test_env, &server);
    with_password(&test_env, &server, "wrong-password");
    let refused = test_env.run(&["provision"]);
    assert!(refused.code != 0 && !refused.err.contains("wrong-password"), "{}", refused.err);
    assert!(
        refused.err.contains("HTTP remote state endpoint requires auth") || refused.err.contains("401"),
        "{}",
        refused.err
    );
    with_password(&test_env, &server, PASSWORD);
    fs_err::set_permissions(test_env.path("password"), PermissionsExt::from_mode(0o644)).unwrap();
    let refused = test_env.run(&["provision"]);
    assert!(refused.code == 3 && refused.err.contains("chmod 600"), "{}", refused.err);
    with_password(&test_env, &server, PASSWORD);
    test_env.ok(&["provision"]);
}

fn locked_by(who: &str) -> Vec<u8> {
    let lock = serde_json::json!({
        "ID": "7b6c2d5e-0000-4000-8000-000000000000", "Operation": "OperationTypeApply", "Info": "", "Who": who,
        "Version": "1.11.4", "Created": "2026-01-02T03:04:05Z", "Path": "",
    });
    lock.to_string().into_bytes()
}

#[test]
fn the_lock_holder_is_named_and_its_lock_is_kept() {
    each_program(|program| {
        // For state on such a server Terraform reports only the lock's ID.
        let who = if program.name == "tofu" { "ann@elsewhere" } else { "an unknown owner" };
        is_named(&own_module(program.test_env()), &StateServer::start(), who);
    });
}

fn is_named(test_env: &TestEnv, server: &StateServer, who: &str) {
    to_server(test_env, server);
    server.content().lock = Some(locked_by("ann@elsewhere"));
    let refused: Outcome = test_env.run(&["provision"]);
    assert_eq!(refused.code, 6, "{}", refused.err);
    let message = format!("the state is locked by {who}");
    for word in [message.as_str(), "lock: 7b6c2d5e-0000-4000-8000-000000000000", "wait for them"] {
        assert!(refused.err.contains(word), "{word}: {}", refused.err);
    }
    assert_eq!(server.content().lock, Some(locked_by("ann@elsewhere")));
    // Planning needs no lock.
    test_env.ok(&["plan"]);
    server.content().lock = None;
    test_env.ok(&["provision"]);
}

#[test]
fn the_state_that_could_not_be_written_is_not_lost() {
    if !has_terraform() {
        return;
    }
    let (test_env, server) = (test_env(), StateServer::start());
    to_server(&test_env, &server);
    server.content().broken = Some("POST");
    let failed = test_env.run(&["provision"]);
    assert!(failed.code != 0, "{}", failed.err);
    assert!(test_env.path(".turnup/own/provision/errored.tfstate").exists(), "{}", failed.err);
    server.content().broken = None;
    server.content().lock = None;
    let done = test_env.ok(&["provision"]).err;
    assert!(done.contains("writing the state that the last apply could not write"), "{done}");
    assert!(!done.contains("terraform_data.host[\"own-control-plane-0\"]: create"), "nothing is made twice: {done}");
    assert!(!test_env.path(".turnup/own/provision/errored.tfstate").exists());
    assert_eq!(resources(&server.state()), 2);
}

/// The move is killed at each of its requests to the server; the next run ends with the one state
/// at the new place.
#[test]
fn a_move_that_is_killed_ends_well_the_next_time() {
    if !has_terraform() {
        return;
    }
    let mut killed = 0;
    for moment in 1.. {
        let (test_env, server) = (test_env(), StateServer::start());
        test_env.ok(&["provision"]);
        let moved = local_state(&test_env)["resources"].clone();
        to_server(&test_env, &server);
        let victim: Arc<Mutex<Option<u32>>> = Arc::default();
        let (seen, struck) = (Arc::clone(&victim), Arc::new(Mutex::new(false)));
        let strike = Arc::clone(&struck);
        server.content().on_request = Some(Box::new(move |number| {
            if number == moment {
                // Before it is dead: the test looks as soon as it is.
                *strike.lock().unwrap() = true;
                let pid = seen.lock().unwrap().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
                rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL).unwrap();
            }
        }));
        // Held until the process is known.
        let mut slot = victim.lock().unwrap();
        let mut child = spawn(&test_env, &["provision"]);
        *slot = Some(child.id());
        drop(slot);
        let ended = child.wait().unwrap();
        if !*struck.lock().unwrap() {
            let said = test_env.read("said");
            assert!(ended.success(), "it was not killed, after {} requests: {said}", server.content().requests.len());
            break;
        }
        killed += 1;
        server.content().on_request = None;
        // The kernel signals the remaining terraform, which takes a moment to end.
        wait_for_the_left(&test_env);
        let mut done = test_env.run(&["provision"]);
        if done.code == 6 {
            // The operator breaks a dead owner's lock; here the test does it.
            server.content().lock = None;
            done = test_env.run(&["provision"]);
        }
        assert_eq!(done.code, 0, "killed at request {moment}: {}", done.err);
        assert_eq!(server.state()["resources"], moved, "killed at request {moment}");
        assert_eq!(
            (resources(&server.state()), resources(&local_state(&test_env))),
            (2, 0),
            "killed at request {moment}"
        );
        assert!(!test_env.path(".turnup/own/provision/before-move.tfstate").exists());
    }
    assert!(killed >= 4, "only {killed} moments");
}

/// Waits until no process works in this directory.
fn wait_for_the_left(test_env: &TestEnv) {
    let (dir, since) = (test_env.dir.path().display().to_string(), Instant::now());
    while let Some(left) = processes().iter().find(|process| process.belongs_to(&dir)) {
        assert!(since.elapsed() < Duration::from_mins(5), "does not end: {}", left.describe());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[expect(clippy::disallowed_methods, reason = "a process that a test kills")]
fn spawn(test_env: &TestEnv, args: &[&str]) -> std::process::Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_turnup"))
        .args(args)
        .current_dir(test_env.dir.path())
        .env_clear()
        .env("HOME", test_env.dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(fs_err::File::create(test_env.path("said")).unwrap().into_file())
        .spawn()
        .unwrap()
}
