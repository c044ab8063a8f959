//! `turnup config` as users and scripts call it: the real binary, in a directory of its own.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;

use crate::cli_support::TestEnv;

impl TestEnv {
    /// Runs what must fail without a result, and returns what it says.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let outcome = self.ends(code, args);
        assert_eq!(outcome.out, "", "{args:?}: {}", outcome.err);
        outcome.err
    }
}

#[test]
fn from_nothing_to_a_changed_configuration() {
    let test_env = TestEnv::new("");
    assert_eq!(test_env.run(&["config", "defaults"]).err, "wrote .config.json with all defaults\n");
    assert_eq!(test_env.ok(&["config", "get", "phase1.num_nodes", "phase3.dns"]).out, "1\ny\n");
    let outcome = test_env.run(&["config", "set", "phase1.num_nodes=3", "phase3.dns=n"]);
    insta::assert_snapshot!(outcome.err, @r"
    phase1.num_nodes: 1 -> 3
    phase3.dns: y -> n
    phase3.dns_replicas: no longer applies
    phase3.dns_upstreams: no longer applies
    phase3.dns_stub_domains: no longer applies
    phase3.dns_cache_seconds: no longer applies
    phase3.dns_log: no longer applies
    phase3.dns_memory_limit: no longer applies
    wrote .config.json
    ");
    assert_eq!(outcome.out, "");
    let file: serde_json::Value = serde_json::from_str(&test_env.read(".config.json")).unwrap();
    assert_eq!(file["phase1"]["num_nodes"], 3);
    assert_eq!(file["phase3"]["dns"], false, "its default is y");
    assert_eq!(file["phase2"]["artifacts"].get("upstream"), None, "n by default");
    assert_eq!(test_env.run(&["config", "set", "phase1.num_nodes=3"]).err, "nothing to change in .config.json\n");
    assert_eq!(
        test_env.run(&["config", "unset", "phase1.num_nodes"]).err,
        "phase1.num_nodes: 3 -> 1\nwrote .config.json\n"
    );
    assert_eq!(test_env.run(&["--quiet", "config", "set", "phase1.num_nodes=2"]).err, "");
}

#[test]
fn set_starts_from_the_defaults_when_there_is_no_file() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.num_nodes=5"]);
    assert!(test_env.read(".config.json").contains("\"num_nodes\": 5"));
    assert!(test_env.read(".config.json").contains("\"cluster_name\": \"kubernetes\""));
}

#[test]
fn the_list_can_be_set_again() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let before = test_env.read(".config.json");
    let list = test_env.ok(&["config", "list"]).out;
    insta::assert_snapshot!(list);
    let mut args = vec!["config", "set"];
    args.extend(list.lines());
    assert_eq!(test_env.run(&args).err, "nothing to change in .config.json\n");
    assert_eq!(test_env.read(".config.json"), before);
}

#[test]
fn json_for_programs() {
    let test_env = TestEnv::new("");
    let json = |args: &[&str]| serde_json::from_str::<serde_json::Value>(&test_env.ok(args).out).unwrap();
    assert_eq!(json(&["--output", "json", "config", "defaults"])["written"], true);
    assert_eq!(
        json(&["config", "get", "phase1.num_nodes", "phase3.dns", "--output", "json"]).to_string(),
        r#"{"schema":"turnup.config.get/1","values":{"phase1.num_nodes":1,"phase3.dns":true}}"#
    );
    let list = &json(&["config", "get", "phase2.network.non_masquerade_cidrs", "--output", "json"])["values"];
    assert!(list["phase2.network.non_masquerade_cidrs"].is_array(), "a list is a list: {list}");
    let list = json(&["config", "list", "--output", "json"]);
    assert_eq!(list["schema"], "turnup.config.list/1");
    insta::assert_snapshot!(serde_json::to_string_pretty(&list["settings"][2]).unwrap());
    let changes = json(&["config", "set", "phase1.num_nodes=2", "--output", "json"]);
    assert_eq!(changes["changes"].to_string(), r#"[{"name":"phase1.num_nodes","before":1,"after":2}]"#);
    let changes = json(&["config", "set", "phase3.dns_log=y", "phase1.cluster_name=x", "--output", "json"]);
    assert_eq!(
        changes["changes"][0].to_string(),
        r#"{"name":"phase1.cluster_name","before":"kubernetes","after":"x"}"#
    );
    let explained = |name: &str| json(&["config", "explain", name, "--output", "json"])["assignable"].clone();
    assert_eq!(explained("phase1.num_nodes"), serde_json::Value::Null, "its range says it");
    assert_eq!(explained("phase3.dns"), serde_json::json!(["n", "y"]));
    assert_eq!(explained("phase1.cloud_provider")[0], "local");
    let check = json(&["config", "check", "--output", "json"]);
    assert_eq!((check["usable"].as_bool(), check["problems"].to_string().as_str()), (Some(true), "[]"));
}

#[test]
fn an_error_is_one_json_object_for_programs() {
    let test_env = TestEnv::new("");
    let published = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/error-1.json"));
    let schema = jsonschema::validator_for(&serde_json::from_str(published).unwrap()).unwrap();
    let error = |code: i32, args: &[&str]| -> serde_json::Value {
        let outcome = test_env.ends(code, args);
        assert!(outcome.err.contains("error: "), "people read it on standard error: {}", outcome.err);
        let object = serde_json::from_str(&outcome.out).unwrap();
        assert!(schema.is_valid(&object), "{args:?}: {object}");
        assert_eq!(object["exit_code"], code, "{object}");
        object
    };
    let missing = error(3, &["--output", "json", "plan"]);
    assert_eq!(missing["message"], ".config.json does not exist");
    assert!(missing["next"].as_str().unwrap().contains("turnup config defaults"), "{missing}");
    test_env.ok(&["config", "defaults"]);
    let refused = error(3, &["config", "set", "phase1.num_nodes=-1", "phase1.clutser_name=x", "--output=json"]);
    assert_eq!(refused["evidence"].as_array().unwrap().len(), 2, "{refused}");
    for args in [&["config", "defaults", "--forse"][..], &["config", "frobnicate"], &["events", "--list", "x"], &[]] {
        assert_eq!(error(2, &[args, &["--output", "json"]].concat())["class"], "usage");
    }
    // What says what is wrong is not followed by another object.
    test_env.write(".config.json", "{\"phase1\": {\"num_nodes\": 5000}}");
    let check = test_env.ends(3, &["config", "check", "--output", "json"]).out;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&check).unwrap()["usable"], false, "{check}");
}

#[test]
fn options_of_every_command_stand_anywhere() {
    let test_env = TestEnv::new("config");
    test_env.ok(&["--config", "a.json", "defaults"]);
    test_env.ok(&["--config", "a.json", "check"]);
    assert_eq!(test_env.ok(&["--quiet", "--config", "a.json", "set", "phase1.num_nodes=2"]).err, "");
    let both = ["--set", "phase1.num_nodes=3", "--config", "a.json", "--output", "json", "get", "phase1.num_nodes"];
    let both = test_env.ok(&[&both[..], &["phase3.dns", "--set", "phase3.dns=n"]].concat()).out;
    assert!(both.contains(r#"{"phase1.num_nodes":3,"phase3.dns":false}"#), "{both}");
    let said = test_env.fails(2, &["--guided", "check"]);
    insta::assert_snapshot!(said);
    assert!(test_env.fails(2, &["--size", "80x24"]).contains("--replay"));
}

#[test]
fn another_file_by_option_or_environment() {
    let test_env = TestEnv::new("");
    test_env.ok(&["--config", "a.json", "config", "defaults"]);
    test_env.ok(&["config", "set", "phase1.num_nodes=2", "--config", "a.json"]);
    let output =
        test_env.command(&["config", "get", "phase1.num_nodes"]).env("TURNUP_CONFIG", "a.json").output().unwrap();
    assert_eq!(output.stdout, b"2\n");
    assert!(!test_env.path(".config.json").exists());
}

#[test]
fn wrong_command_lines_are_explained() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let before = test_env.read(".config.json");
    for args in [
        &["config", "set"][..],
        &["config", "set", "phase1.num_nodes"],
        &["config", "set", "=3"],
        &["config", "get"],
        &["config", "frobnicate"],
        &["config", "list", "--output", "yaml"],
        &["config", "defaults", "--forse"],
    ] {
        let said = test_env.fails(2, args);
        assert!(said.starts_with("error:") && said.contains("--help"), "{args:?}: {said}");
    }
    assert_eq!(test_env.read(".config.json"), before);
}

#[test]
fn wrong_values_change_nothing_and_are_all_named() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let before = test_env.read(".config.json");
    let said = test_env.fails(
        3,
        &[
            "config",
            "set",
            "phase1.num_nodes=-1",
            "phase1.cluster_nam=x",
            "phase1.cloud_provider=gcp",
            "phase2.pod_cidr=10.0.0.0",
            "phase1.cluster_name=My Cluster",
            "phase3.dns=perhaps",
        ],
    );
    insta::assert_snapshot!(said);
    insta::assert_snapshot!(test_env.fails(3, &["config", "set", "phase1.baremetal.hosts_file=x"]));
    insta::assert_snapshot!(test_env.fails(3, &["config", "set", "phase2.service_cidr=10.244.1.0/24"]));
    let mut said = String::new();
    for wrong in [
        "phase3.dns=maybe",
        "phase1.num_nodes=5000",
        "phase1.gce.zone=x",
        "phase1.node_groups=[{",
        "phase1.control_plane.count=2",
    ] {
        writeln!(said, "{wrong}\n{}", test_env.fails(3, &["config", "set", wrong])).unwrap();
    }
    insta::assert_snapshot!("hints", said);
    insta::assert_snapshot!(test_env.fails(3, &["config", "unset", "phase9.x"]));
    insta::assert_snapshot!(test_env.fails(3, &["config", "get", "phase1.nodes", "phase1.num_nodes"]));
    assert_eq!(test_env.read(".config.json"), before);
}

#[test]
fn a_missing_file_is_named_with_the_way_out() {
    let test_env = TestEnv::new("");
    for command in [&["config", "get", "phase1.num_nodes"][..], &["config", "check"]] {
        let said = test_env.fails(3, command);
        assert!(said.starts_with("error: .config.json does not exist\nnext: "), "{said}");
    }
    let list = test_env.run(&["config", "list", "phase1.num"]);
    assert_eq!(
        (&*list.out, &*list.err),
        ("phase1.num_nodes=1\n", ".config.json does not exist: these are the defaults\n")
    );
    assert!(
        test_env.fails(3, &["config", "list", "nosuch"]).contains("no setting has a name that begins with `nosuch`")
    );
    let said = test_env.fails(3, &["config", "list", "--config", "other.json"]);
    assert!(said.starts_with("error: other.json does not exist\n"), "a file that is named has to be there: {said}");
}

#[test]
fn a_file_with_mistakes_is_checked_line_by_line() {
    let test_env = TestEnv::new("");
    test_env.write(".config.json", "{\n  \"phase1\": {\n    \"num_node\": 3,\n    \"cluster_name\": 5\n  },\n  \"phase2\": {\"api_port\": \"6443\"}\n}\n");
    let outcome = test_env.run(&["config", "check"]);
    assert_eq!(outcome.code, 3);
    insta::assert_snapshot!(outcome.out);
    insta::assert_snapshot!(outcome.err);
    insta::assert_snapshot!(test_env.fails(3, &["config", "get", "phase1.num_nodes"]));
}

#[test]
fn a_file_that_is_no_json_is_never_overwritten() {
    let test_env = TestEnv::new("");
    let yaml = "phase1:\n  num_nodes: 3\n";
    test_env.write(".config.json", yaml);
    for args in [
        &["config", "set", "phase1.num_nodes=2"][..],
        &["config", "defaults"],
        &["config", "defaults", "--force"],
        &["config", "check"],
    ] {
        let outcome = test_env.run(args);
        assert_eq!(outcome.code, 3, "{args:?}");
        assert_eq!(test_env.read(".config.json"), yaml, "{args:?}");
    }
    insta::assert_snapshot!(test_env.fails(3, &["config", "check"]));
}

#[test]
fn defaults_replace_a_file_only_when_told_to() {
    let test_env = TestEnv::new("");
    test_env.write(".config.json", "{}");
    let said = test_env.fails(3, &["config", "defaults"]);
    assert!(said.contains("--force"), "{said}");
    test_env.ok(&["config", "defaults", "--force"]);
    assert!(test_env.read(".config.json").contains("num_nodes"));
}

#[test]
fn no_questions_are_asked_without_a_terminal() {
    let test_env = TestEnv::new("");
    let said = test_env.fails(2, &["config"]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_tree_of_ones_own_is_used_and_its_mistakes_are_shown() {
    let test_env = TestEnv::new("");
    fs_err::create_dir(test_env.path("phases")).unwrap();
    test_env.write("Kconfig", "mainmenu \"Own\"\n\nconfig own.port\n\tint \"Port\"\n\tdefault 80\n");
    assert_eq!(test_env.run(&["config", "defaults"]).code, 0);
    assert_eq!(test_env.ok(&["config", "list"]).out, "own.port=80\n");
    test_env.write("Kconfig", "config own.port\n\tnit \"Port\"\n");
    let said = test_env.fails(3, &["config", "list"]);
    assert!(said.contains("Kconfig:2:"), "{said}");
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let test_env = TestEnv::new("");
    fs_err::create_dir(test_env.path("dir")).unwrap();
    assert!(test_env.fails(3, &["--config", "dir", "config", "set", "phase1.num_nodes=2"]).contains("cannot read dir"));
    assert!(test_env.fails(3, &["--config", "no/such/c.json", "config", "defaults"]).contains("mkdir -p no/such"));
    assert!(!Path::new("no").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    #[expect(clippy::disallowed_methods, reason = "assert_cmd cannot hand in a closed pipe")]
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_turnup"))
        .args(["config", "list"])
        .current_dir(test_env.dir.path())
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn help_names_commands_and_exit_codes() {
    let test_env = TestEnv::new("");
    let help = test_env.ok(&["--help"]).out;
    assert!(help.contains("config") && help.contains("Exit codes:") && help.contains("130"), "{help}");
    assert!(test_env.ok(&["config", "--help"]).out.contains("defaults"));
    assert_eq!(test_env.run(&[]).code, 2);
}

#[test]
fn the_picture_is_drawn_for_people_documents_and_programs() {
    let test_env = TestEnv::new("").with_env("LC_ALL", "C");
    test_env.ok(&["config", "set", "phase1.cloud_provider=gce", "phase1.ssh.allowed_cidrs=203.0.113.0/24"]);
    let drawn = test_env.ok(&["config", "picture"]).out;
    assert!(drawn.is_ascii() && drawn.lines().all(|line| line.len() <= 80), "{drawn}");
    assert_eq!(drawn.matches("OPEN TO THE WORLD").count(), 1, "the API server, not SSH: {drawn}");
    assert!(drawn.contains("kubernetes-control-plane-0") && drawn.contains("list price, us-central1"), "{drawn}");
    let utf8 = test_env.with_env("LC_ALL", "C.UTF-8");
    assert!(utf8.ok(&["config", "picture"]).out.contains("┌─ hosts 10.118.0.0/20"));
    assert_eq!(utf8.ok(&["config", "picture", "--svg", "cluster.svg"]).out, "picture in cluster.svg\n");
    assert!(utf8.read("cluster.svg").starts_with("<?xml"));
    let value: serde_json::Value =
        serde_json::from_str(&utf8.ok(&["config", "picture", "--output", "json"]).out).unwrap();
    assert_eq!(value["schema"], "turnup.config.picture/1");
    assert_eq!(value["picture"]["doors"][0]["allowed"][0]["is_world"], true);
    let refused = utf8.fails(3, &["config", "picture", "--svg", "nowhere/cluster.svg"]);
    assert!(refused.contains("cannot write the picture to nowhere/cluster.svg"), "{refused}");
}

#[test]
fn the_picture_of_existing_hosts_reads_their_inventory() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cloud_provider=baremetal"]);
    let without = test_env.ok(&["config", "picture"]);
    assert!(without.out.contains("The inventory names the hosts."), "{}", without.out);
    assert!(without.err.contains("provision.json (phase1.baremetal.hosts_file) does not exist"), "{}", without.err);
    test_env.write(
        "provision.json",
        r#"{"schema": "turnup.provision/1", "cluster": "kubernetes", "target": "baremetal", "api": {"host": "192.0.2.10", "port": 6443},
        "hosts": [{"name": "rack-1", "role": "control-plane", "address": "192.0.2.10", "instance": "1", "zone": "hall-2",
        "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}"#,
    );
    let drawn = test_env.ok(&["config", "picture"]).out;
    assert!(
        ["1 control-plane host", "hall-2", "rack-1", "192.0.2.10"].iter().all(|word| drawn.contains(word)),
        "{drawn}"
    );
}
