//! Who gets into a cluster with what: the administrator, other people, and break-glass. The hosts
//! and the API server are made up, and that one asks for a certificate's groups as RBAC would;
//! certificates, keys and `age` are real.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;
use x509_parser::pem::Pem;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer as _, X509Certificate};

use crate::simulation::{Ended, Simulation};

const BINDING: &str = "api/clusterrolebinding/turnup:cluster-admins.json";

/// What a kubeconfig says about its user.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    user: String,
    groups: Vec<String>,
    /// In whole minutes, rounded.
    life: i64,
    serial: String,
}

fn holder(kubeconfig: &str) -> Holder {
    let config: Value = serde_saphyr::from_str(kubeconfig).unwrap();
    let data = config["users"][0]["user"]["client-certificate-data"].as_str().unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(&STANDARD.decode(data).unwrap()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
    let text = |name: &AttributeTypeAndValue<'_>| name.as_str().unwrap().to_owned();
    let left = certificate.validity().not_after.timestamp() - jiff::Timestamp::now().as_second();
    Holder {
        user: certificate.subject().iter_common_name().map(text).collect(),
        groups: certificate.subject().iter_organization().map(text).collect(),
        life: (left + 30) / 60,
        serial: certificate.raw_serial_as_string().replace(':', ""),
    }
}

fn read(path: &Path) -> String {
    fs_err::read_to_string(path).unwrap()
}

fn state(simulation: &Simulation) -> Value {
    serde_json::from_str(&read(&simulation.state("state.json"))).unwrap()
}

fn up(hosts: usize) -> Simulation {
    let simulation = Simulation::new(hosts);
    simulation.ok(&["config", "set", "phase2.kubeconfig.user=anne@example.com"]);
    simulation.ok(&["up"]);
    simulation
}

/// Every file in which a run could have left a secret.
fn files(simulation: &Simulation) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = ["work", "tmp", "run", "home"].map(|dir| simulation.path(dir)).to_vec();
    while let Some(dir) = waiting.pop() {
        for entry in fs_err::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.is_file() {
                found.push((path.clone(), fs_err::read(&path).unwrap()));
            }
        }
    }
    found
}

/// The files with this text in them.
fn search(simulation: &Simulation, text: &str) -> Vec<PathBuf> {
    let found = files(simulation).into_iter().filter(|(_, bytes)| String::from_utf8_lossy(bytes).contains(text));
    found.map(|(path, _)| path).collect()
}

#[test]
fn the_administrator_is_a_named_member_of_a_group_that_can_be_taken_away() {
    let simulation = up(2);
    let found = holder(&read(&simulation.state("kubeconfig")));
    let expected = Holder {
        user: "anne@example.com".into(),
        groups: vec!["turnup:cluster-admins".into()],
        life: 24 * 60,
        serial: found.serial.clone(),
    };
    assert_eq!(found, expected);
    // Without its role binding the group may do nothing, and turnup gives it back.
    fs_err::remove_file(simulation.world(BINDING)).unwrap();
    let refused = simulation.run(&["addons"]);
    assert!(refused.error().contains("is forbidden: User \"anne@example.com\" cannot"), "{refused}");
    assert!(refused.error().contains("next: turnup bootstrap (restores the role binding"), "{refused}");
    simulation.ok(&["bootstrap"]);
    assert!(simulation.world(BINDING).exists());
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
}

#[test]
fn a_credential_above_rbac_applies_the_role_bindings_and_is_never_in_a_file() {
    let simulation = up(1);
    assert_eq!(read(&simulation.world("callers/system:masters")), "anne@example.com", "the audit log says who");
    let before = fs_err::metadata(simulation.world("callers/system:masters")).unwrap().modified().unwrap();
    // It is used only while the administrator may not.
    fs_err::remove_file(simulation.world("api/clusterrolebinding/turnup:node-bootstrapper.json")).unwrap();
    let ended = simulation.ok(&["bootstrap"]);
    assert!(ended.err.contains("bootstrap/rbac begins"), "{ended}");
    let after = fs_err::metadata(simulation.world("callers/system:masters")).unwrap().modified().unwrap();
    assert_eq!(before, after);
    let log = read(&simulation.state("logs/bootstrap-rbac.log"));
    assert!(log.contains("--kubeconfig=/proc/"), "{log}");
    for (path, bytes) in files(&simulation) {
        let text = String::from_utf8_lossy(&bytes);
        let embedded = text.split("client-certificate-data\": \"").skip(1).filter_map(|rest| rest.split('"').next());
        let embedded = embedded.filter_map(|data| STANDARD.decode(data).ok());
        for pem in
            embedded.chain([bytes.clone()]).flat_map(|pem| Pem::iter_from_buffer(&pem).flatten().collect::<Vec<_>>())
        {
            let found = String::from_utf8_lossy(&pem.contents).contains("system:masters");
            assert!(!found, "{} has a certificate above RBAC", path.display());
        }
    }
}

#[test]
fn the_authoritys_key_may_be_kept_elsewhere_as_long_as_nothing_has_to_be_signed() {
    let simulation = up(1);
    let key = read(&simulation.state("pki/ca.key"));
    fs_err::remove_file(simulation.state("pki/ca.key")).unwrap();
    fs_err::remove_file(simulation.world(BINDING)).unwrap();
    let ended = simulation.run(&["kubeconfig", "--user", "bob", "--to", "bob"]);
    assert_eq!(ended.code, 4, "{ended}");
    assert!(ended.err.contains("pki/ca.key is not here, and without it turnup cannot sign certificates"), "{ended}");
    assert!(ended.err.contains("next: put the authority's key back for as long as this command takes"), "{ended}");
    assert!(!simulation.path("work/bob").exists() && !simulation.state("pki/ca.key").exists());
    simulation.ok(&["kubeconfig"]);
    let ended = simulation.run(&["bootstrap"]);
    assert_eq!(ended.code, 4, "{ended}");
    assert!(ended.err.contains("pki/ca.key is not here"), "{ended}");
    fs_err::write(simulation.state("pki/ca.key"), key).unwrap();
    simulation.ok(&["bootstrap"]);
}

#[test]
fn the_users_own_kubeconfig_gets_the_cluster_and_loses_it_again() {
    let simulation = up(1);
    let file = simulation.path("home/.kube/config");
    let context = |name: &str| format!("- name: {name}\n  context: {{cluster: {name}, user: {name}}}\n");
    let others = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: work\ncontexts:\n{}clusters:\n\
         - name: work\n  cluster: {{server: https://work.example.com}}\nusers:\n- name: work\n  user: {{token: abc}}\n",
        context("work")
    );
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(&file, &others).unwrap();
    simulation.ok(&["up"]);
    assert_eq!(read(&file), others, "unless it is asked for");
    simulation.ok(&["config", "set", "phase2.kubeconfig.merge=y", "phase2.kube_context_name=mine"]);
    simulation.ok(&["up"]);
    let merged = read(&file);
    for words in ["current-context: work", "https://work.example.com", "name: mine", "client-certificate-data: "] {
        assert!(merged.contains(words), "{words}: {merged}");
    }
    simulation.ok(&["config", "set", "phase2.kubeconfig.merge=n"]);
    simulation.ok(&["up"]);
    let left = read(&file);
    assert!(left.contains("https://work.example.com") && !left.contains("mine"), "{left}");
}

#[test]
fn another_name_or_a_shorter_life_makes_another_certificate() {
    let simulation = up(1);
    let first = read(&simulation.state("kubeconfig"));
    simulation.ok(&["kubeconfig"]);
    assert_eq!(read(&simulation.state("kubeconfig")), first);
    simulation.ok(&["config", "set", "phase2.kubeconfig.lifetime=90m"]);
    let plan = simulation.ok(&["plan"]).out;
    assert!(plan.contains("bootstrap/api") && plan.contains("phase2.kubeconfig.lifetime"), "{plan}");
    simulation.ok(&["up"]);
    assert_eq!(holder(&read(&simulation.state("kubeconfig"))).life, 90);
    simulation.ok(&["kubeconfig", "--set", "phase2.kubeconfig.user=carl"]);
    assert_eq!(holder(&read(&simulation.state("kubeconfig"))).user, "carl");
    let status = simulation.ok(&["status", "--quick"]).out;
    assert!(status.contains("\n  carl (turnup:cluster-admins) ends in 1h "), "{status}");
    let wrong = simulation.run(&["config", "set", "phase2.kubeconfig.user=system:admin"]);
    assert!(
        wrong.code == 3 && wrong.err.contains("users whose names begin with `system:` are the cluster's own"),
        "{wrong}"
    );
    for (value, why) in [("59m", "less than an hour"), ("169h", "more than 168h (phase2.kubeconfig.max_lifetime)")] {
        let wrong = simulation.run(&["config", "set", &format!("phase2.kubeconfig.lifetime={value}")]);
        assert!(wrong.code == 3 && wrong.err.contains(why), "{wrong}");
    }
}

#[test]
fn the_operator_is_the_user_behind_sudo() {
    let mut simulation = Simulation::new(1);
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    simulation.env.insert("USER".into(), "root".into());
    simulation.env.insert("SUDO_USER".into(), "bea".into());
    simulation.ok(&["up"]);
    let user = holder(&read(&simulation.state("kubeconfig"))).user;
    assert!(user.starts_with("bea@") && user.ends_with(machine.trim_matches('.')), "{user}");
}

#[test]
fn a_colleague_gets_groups_and_a_life_within_limits() {
    let simulation = up(1);
    let plan = simulation.path("work/plan.json");
    simulation.ok(&["plan", "--out", "plan.json"]);
    let args =
        ["kubeconfig", "--user", "bob@example.com", "--group", "viewers", "--group", "team/audit", "--to", "bob"];
    let ended = simulation.ok(&args);
    assert_eq!(ended.out, "bob\n");
    let text = read(&simulation.path("work/bob"));
    let found = holder(&text);
    let groups = vec!["viewers".to_owned(), "team/audit".into()];
    assert_eq!((found.user.as_str(), &found.groups, found.life), ("bob@example.com", &groups, 24 * 60));
    assert_eq!(fs_err::metadata(simulation.path("work/bob")).unwrap().permissions().mode() & 0o7777, 0o600);
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let key = config["users"][0]["user"]["client-key-data"].as_str().unwrap();
    assert_eq!(search(&simulation, key), [simulation.path("work/bob")], "the key is kept nowhere else");
    let recorded = &state(&simulation)["credentials"][0];
    assert_eq!(recorded["serial"].as_str().unwrap(), found.serial);
    assert!(recorded["by"].as_str().unwrap().contains('@') && recorded["reason"].is_null(), "{recorded}");
    assert!(read(&simulation.state("journal.jsonl")).contains(&found.serial));
    let status = simulation.ok(&["status", "--quick"]).out;
    assert!(status.contains("\n  bob@example.com (viewers, team/audit) ends in "), "{status}");
    // It changes nothing that a plan is about.
    simulation.ok(&["up", "--plan", plan.to_str().unwrap()]);
    let again = simulation.run(&args);
    assert!(again.code == 2 && again.err.contains("bob is there already"), "{again}");
    assert_eq!(read(&simulation.path("work/bob")), text);

    let long = ["--user", "eve", "--to", "eve", "--lifetime"];
    let ended = simulation.ok(&[&["kubeconfig"], &long[..], &["168h"]].concat());
    assert!(ended.err.contains("eve (no group) until "), "{ended}");
    for (args, why) in [
        (&["--user", "x", "--to", "y", "--lifetime", "169h"][..], "phase2.kubeconfig.max_lifetime allows 168h at most"),
        (&["--user", "x", "--to", "y", "--lifetime", "59s"], "at least a minute"),
        (&["--user", "x"], "--to <FILE>"),
        (&["--user", "system:node:h1", "--to", "y"], "are the cluster's own"),
        (&["--user", "kube-apiserver-kubelet-client", "--to", "y"], "are the cluster's own"),
        (&["--user", "turnup:serving-approver", "--to", "y"], "are the cluster's own"),
        (&["--user", "x", "--group", "system:masters", "--to", "y"], "for an emergency there is --break-glass"),
        (&["--user", "x", "--group", "system:nodes", "--to", "y"], "are the cluster's own"),
        (&["--user", "x\ny", "--to", "y"], "is no name"),
        (&["--group", "viewers", "--to", "y"], "required"),
        (&["--to", "y"], "required"),
        (&["--lifetime", "2h"], "required"),
        (&["--user", "x", "--to", "y", "--seal=--output=z"], "expected age1"),
        (&["--user", "x", "--to", "y", "--seal", "age1\nx"], "expected age1"),
    ] {
        let ended = simulation.run(&[&["kubeconfig"], args].concat());
        assert!(ended.code == 2 && ended.err.contains(why), "{args:?}: {ended}");
        assert!(!simulation.path("work/y").exists(), "{args:?}");
    }
    assert_eq!(state(&simulation)["credentials"].as_array().unwrap().len(), 2);
    // The setting allows more, and the same request is granted.
    let more = ["--set", "phase2.kubeconfig.max_lifetime=200h", "--user", "kim", "--to", "kim", "--lifetime", "169h"];
    simulation.ok(&[&["kubeconfig"], &more[..]].concat());
    assert_eq!(state(&simulation)["credentials"].as_array().unwrap().len(), 3);
}

/// `turnup kubeconfig --break-glass` with these arguments besides.
fn break_glass(simulation: &Simulation, args: &[&str]) -> Ended {
    simulation.run(&[&["kubeconfig", "--break-glass"], args].concat())
}

#[test]
fn break_glass_wants_a_yes_and_a_reason_and_is_recorded() {
    let simulation = up(1);
    for (args, why) in [
        (&["--to", "glass"][..], "stdin is not a terminal"),
        (&["--to", "glass", "--reason", "no leader"], "stdin is not a terminal"),
        (&["--to", "glass", "--yes"], "--reason <TEXT>"),
        (&["--to", "glass", "--yes", "--reason", " "], "expected a reason"),
        (&["--yes", "--reason", "no leader"], "--to <FILE>"),
        (&["--to", "glass", "--yes", "--reason", "r", "--lifetime", "25h"], "that is not sealed allows 24h at most"),
        (&["--to", "glass", "--yes", "--reason", "r", "--user", "bob"], "cannot be used with"),
    ] {
        let ended = break_glass(&simulation, args);
        assert!(ended.code == 2 && ended.err.contains(why), "{args:?}: {ended}");
        assert!(!simulation.path("work/glass").exists(), "{args:?}");
    }
    let ended = break_glass(&simulation, &["--to", "glass", "--yes", "--reason", "etcd has no leader"]);
    assert_eq!(ended.code, 0, "{ended}");
    let found = holder(&read(&simulation.path("work/glass")));
    assert!(found.user.starts_with("turnup:break-glass:") && found.user.contains('@'), "{found:?}");
    assert_eq!((found.groups, found.life), (vec!["system:masters".to_owned()], 60));
    assert_eq!(fs_err::metadata(simulation.path("work/glass")).unwrap().permissions().mode() & 0o7777, 0o600);
    let recorded = &state(&simulation)["credentials"][0];
    assert_eq!(recorded["serial"].as_str().unwrap(), found.serial);
    assert_eq!(recorded["reason"], "etcd has no leader");
    assert_eq!((&recorded["break_glass"], recorded["sealed_for"].as_array().unwrap().len()), (&Value::Bool(true), 0));
    let status = simulation.ok(&["status", "--quick"]).out;
    let status = status.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains(" (system:masters) ends in ") && status.contains(": etcd has no leader"), "{status}");
    let text = break_glass(&simulation, &["--to", "-", "--yes", "--reason", "again", "--lifetime", "24h"]).out;
    assert_eq!(holder(&text).life, 24 * 60);
    let json = break_glass(&simulation, &["--to", "third", "--yes", "--reason", "r", "--output", "json"]).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["file"], &json["credential"]["break_glass"]), (&"third".into(), &Value::Bool(true)));
    assert_eq!(state(&simulation)["credentials"].as_array().unwrap().len(), 3);
}

/// The same typed at a terminal, where this is answered; what the screen says, and the exit code.
fn at_a_terminal(simulation: &Simulation, args: &[&str], answer: &str) -> (String, u32) {
    let pty = native_pty_system().openpty(PtySize { rows: 24, cols: 200, pixel_width: 0, pixel_height: 0 }).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_turnup"));
    command.args(["kubeconfig", "--break-glass"].iter().chain(args));
    command.cwd(simulation.path("work"));
    command.env("HOME", simulation.path("home"));
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let (mut keyboard, mut screen) = (pty.master.take_writer().unwrap(), pty.master.try_clone_reader().unwrap());
    writeln!(keyboard, "{answer}").unwrap();
    let mut said = Vec::new();
    // It ends with an error where the other side is gone.
    screen.read_to_end(&mut said).ok();
    (String::from_utf8_lossy(&said).into_owned(), child.wait().unwrap().exit_code())
}

#[test]
fn break_glass_asks_at_a_terminal() {
    let simulation = up(1);
    let (said, code) = at_a_terminal(&simulation, &["--to", "one"], "");
    assert!(code == 2 && said.contains("nothing was issued"), "{code} {said}");
    let (said, code) = at_a_terminal(&simulation, &["--to", "one", "--reason", "no leader"], "n");
    assert!(code == 2 && said.contains("Issue it? [y/N]") && said.contains("nothing was issued"), "{code} {said}");
    assert!(!simulation.path("work/one").exists());
    let (said, code) = at_a_terminal(&simulation, &["--to", "one"], "etcd has no leader");
    assert!(code == 0 && said.contains("for the cluster sim, for 1h: nothing restrains who has it"), "{code} {said}");
    let (said, code) = at_a_terminal(&simulation, &["--to", "two", "--reason", "no leader"], "y");
    assert_eq!(code, 0, "{said}");
    let state = state(&simulation);
    let reasons: Vec<&Value> = state["credentials"].as_array().unwrap().iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["etcd has no leader", "no leader"]);
    assert!(simulation.path("work/one").exists() && simulation.path("work/two").exists());
}

#[test]
fn what_is_sealed_is_opened_by_age_alone() {
    if !crate::skip::has_program(&["age"]) {
        return;
    }
    let simulation = up(1);
    let made = simulation
        .shell("age-keygen -o own.key 2>own.pub && ssh-keygen -q -t ed25519 -N '' -f ssh.key && age-keygen -y own.key >list")
        .status()
        .unwrap();
    assert!(made.success());
    let own = read(&simulation.path("work/list"));
    let ssh = read(&simulation.path("work/ssh.key.pub"));
    let sealed = ["--yes", "--reason", "the safe", "--seal"];
    let ended =
        break_glass(&simulation, &[&["--to", "safe.age"], &sealed[..], &[own.trim(), "--seal", ssh.trim()]].concat());
    assert_eq!(ended.code, 0, "{ended}");
    let ended = break_glass(
        &simulation,
        &["--to", "list.age", "--yes", "--reason", "r", "--seal-file", "list", "--lifetime", "48h"],
    );
    assert_eq!(ended.code, 0, "{ended}");
    let open = |key: &str, file: &str| {
        let output = simulation.shell(&format!("age --decrypt --identity {key} {file}")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let opened = open("own.key", "safe.age");
    assert_eq!(open("ssh.key", "safe.age"), opened);
    assert_eq!(holder(&opened).life, 365 * 24 * 60);
    assert_eq!(holder(&opened).groups, ["system:masters"]);
    assert_eq!(holder(&open("own.key", "list.age")).life, 48 * 60);
    let config: Value = serde_saphyr::from_str(&opened).unwrap();
    for secret in ["client-key-data", "client-certificate-data"] {
        let data = config["users"][0]["user"][secret].as_str().unwrap();
        assert_eq!(search(&simulation, data), Vec::<PathBuf>::new(), "{secret} was written somewhere");
    }
    let recorded = &state(&simulation)["credentials"];
    assert_eq!(recorded[0]["sealed_for"], serde_json::json!([own.trim(), ssh.trim()]));
    assert_eq!(recorded[1]["sealed_for"], serde_json::json!(["list"]));
    // A colleague's is sealed the same way, within the limits of colleagues.
    simulation.ok(&["kubeconfig", "--user", "bob", "--to", "bob.age", "--seal", own.trim()]);
    assert_eq!(holder(&open("own.key", "bob.age")).user, "bob");
    // What age refuses is neither recorded nor written.
    let before = state(&simulation);
    for args in [["--seal", "age1nonsense"], ["--seal-file", "nowhere"]] {
        let ended = break_glass(&simulation, &[&["--to", "no.age", "--yes", "--reason", "r"][..], &args].concat());
        assert!(ended.code == 1 && ended.err.contains("age"), "{ended}");
        assert!(!simulation.path("work/no.age").exists());
    }
    assert_eq!(state(&simulation)["credentials"], before["credentials"]);
    let ended =
        break_glass(&simulation, &[&["--to", "no.age", "--lifetime", "8761h"], &sealed[..], &[own.trim()]].concat());
    assert!(ended.code == 2 && ended.err.contains("a sealed break-glass credential allows 8760h at most"), "{ended}");
}
