//! The commands of `turnup config` that explain, compare and take over, with a small tree of their
//! own.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use assert_cmd::Command;
use serde_json::Value;

use crate::cli_support::{TestEnv, finish};

const TREE: &str = r#"mainmenu "Test"

#: format = enum(local, gce)
#: changes = recreate
config phase1.cloud_provider
	string "Target"
	default "local"

config phase1.cluster_name
	string "Name"
	default "c"

#: changes = none
#: was = phase1.nodes
config phase1.num_nodes
	int "Workers"
	range 0 9
	default 1

config phase1.region
	string "Region"
	depends on phase1.cloud_provider = "gce"
	default "us-central1"

config phase1.zone
	string "Zone"
	depends on phase1.cloud_provider = "gce"
	default "us-central1-b" if phase1.region = "us-central1"
	default "europe-west1-b"

#: secret
config phase1.token
	string "Token"

config phase1.token_copy
	string
	default phase1.token

#: format = records
#: field name = dns-label
#: field role = enum(node, master)
#: field size? = int(1..9)
config phase1.groups
	string "Groups"
	default "[]"

#: format = map(label-key, label-value)
config phase1.labels
	string "Labels"

config phase3.ha
	bool "High availability"
	depends on phase1.num_nodes >= 3 && phase1.cloud_provider != "local"
"#;

/// A working directory with that tree.
fn with_tree() -> TestEnv {
    let test_env = TestEnv::new("config");
    test_env.write("Kconfig", TREE);
    test_env.write(
        "phases/profiles/ha.defconfig",
        "# Three workers in a cloud.\n\nphase1.cloud_provider=\"gce\"\nphase1.num_nodes=3\nphase3.ha=y\n",
    );
    test_env.write("phases/profiles/small.defconfig", "# Nothing but\n# the defaults.\n\nphase1.num_nodes=0\n");
    test_env
}

impl TestEnv {
    fn write_private(&self, name: &str, text: &str) {
        self.write(name, text);
        fs_err::set_permissions(self.path(name), PermissionsExt::from_mode(0o600)).unwrap();
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--output", "json"]].concat()).out).unwrap()
    }

    /// What several commands say, with their exit codes.
    fn talk(&self, commands: &[&[&str]]) -> String {
        let mut said = String::new();
        for command in commands {
            let outcome = self.run(command);
            write!(said, "$ {} ({})\n{}{}\n", command.join(" "), outcome.code, outcome.out, outcome.err).unwrap();
        }
        said
    }
}

#[test]
fn the_answers_in_the_documents_are_those_that_are_given() {
    let page = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).unwrap();
    let test_env = TestEnv::new("config");
    for words in [["why", "phase2.kube_context_name"], ["why-not", "phase1.gce.zone"]] {
        let shown = format!("# turnup config {}\n{}", words.join(" "), test_env.ok(&words).out);
        assert!(page.contains(&shown), "{shown}");
    }
}

#[test]
fn values_are_explained_down_to_their_place() {
    let test_env = with_tree();
    test_env.write_private(
        ".config.json",
        "{\"phase1\": {\"cloud_provider\": \"gce\", \"region\": \"eu\",\n \"token\": \"hunter2\"}}",
    );
    let said = test_env.talk(&[
        &["why", "phase1.zone"],
        &["why", "phase1.token_copy"],
        &["why", "phase3.ha"],
        &["explain", "phase1.token"],
        &["explain", "phase1.cloud_provider"],
        &["show"],
        &["list", "--changed"],
        &["list", "--new", "--phase", "1"],
        &["list", "--invisible"],
        &["export", "--format", "env"],
        &["export", "--format", "dotconfig"],
        &["export", "--format", "tfvars"],
    ]);
    assert!(!said.contains("hunter2"), "{said}");
    insta::assert_snapshot!(said);
    let reason = &test_env.json(&["why", "phase1.token_copy"])["reason"];
    assert_eq!(reason["because"][0]["how"], "set by .config.json:2:11");
}

#[test]
fn what_a_setting_may_be_is_said_once_as_its_words() {
    let test_env = TestEnv::new("config");
    test_env.ok(&["set", "phase1.cloud_provider=gce"]);
    let said = test_env.ok(&["explain", "phase1.ssh.bastion"]).out;
    assert!(said.contains("\nmay be set to\n  none, create or existing\n"), "{said}");
    assert!(!said.contains("any string") && !said.contains("expected: "), "{said}");
    let json = test_env.json(&["explain", "phase1.ssh.bastion"]);
    assert_eq!(json["assignable"], serde_json::json!(["none", "create", "existing"]), "{json}");
}

#[test]
fn a_way_to_a_value_is_a_command_that_works() {
    let test_env = with_tree();
    insta::assert_snapshot!(test_env.talk(&[
        &["why-not", "phase3.ha"],
        &["why-not", "phase3.ha=n"],
        &["why-not", "phase1.zone"],
        &["why-not", "phase1.zone=x"],
        &["why-not", "phase1.num_nodes=3"],
        &["why-not", "phase1.num_nodes=10"],
        &["why-not", "phase1.cloud_provider=goo"],
        &["why-not", "phase1.token_copy=x"],
        &["why-not", "phase1.zon"],
    ]));
    let way = test_env.json(&["why-not", "phase3.ha"]);
    let command = way["command"].as_str().unwrap().strip_prefix("turnup config ").unwrap().to_owned();
    let words = shell_words::split(&command).unwrap();
    test_env.ok(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(test_env.ok(&["get", "phase3.ha"]).out, "y\n");
}

#[test]
fn no_way_is_shown_that_set_or_plan_refuses() {
    let test_env = TestEnv::new("config");
    test_env.ok(&["defaults"]);
    let said = test_env.talk(&[
        &["why-not", "phase1.control_plane.count=2"],
        &["why-not", "phase2.pod_cidr=10.96.0.0/16"],
        &["why-not", "phase2.api_port=10250"],
        &["why-not", "phase1.control_plane.count=5"],
        &["why-not", "phase1.gce.zone=us-central1-a"],
    ]);
    for refused in ["phase1.control_plane.count=2", "phase2.pod_cidr=10.96.0.0/16", "phase2.api_port=10250"] {
        let set = test_env.ends(3, &["set", refused]).err;
        assert_eq!(test_env.ends(3, &["why-not", refused]).err, set, "both say the same");
    }
    let way = test_env.json(&["why-not", "phase1.gce.zone=us-central1-a"]);
    assert!(way["refused_then"].as_array().is_some_and(|list| !list.is_empty()), "{way}");
    insta::assert_snapshot!(said);
}

#[test]
fn values_for_one_run_come_before_the_file() {
    let test_env = with_tree();
    test_env.write(".config.json", "{\"phase1\": {\"num_nodes\": 2}}");
    let get = |command: &mut Command| finish(command.env("TURNUP_SET_PHASE1__NUM_NODES", "3"));
    assert_eq!(get(&mut test_env.command(&["get", "phase1.num_nodes"])).out, "3\n");
    assert_eq!(get(&mut test_env.command(&["get", "phase1.num_nodes", "--set", "phase1.num_nodes=4"])).out, "4\n");
    assert_eq!(
        get(&mut test_env.command(&["why", "phase1.num_nodes"])).out,
        "phase1.num_nodes is 3: set by TURNUP_SET_PHASE1__NUM_NODES\n"
    );
    let wrong = |name: &str, value: &str| finish(test_env.command(&["list"]).env(name, value));
    assert_eq!(
        wrong("TURNUP_SET_phase1__num_node", "3").err,
        "error: TURNUP_SET_phase1__num_node: there is no setting `phase1.num_node`; did you mean `phase1.num_nodes`?\nnext: see all settings: turnup config list\n"
    );
    assert!(
        wrong("TURNUP_SET_phase1__num_nodes", "x")
            .err
            .contains("TURNUP_SET_phase1__num_nodes: phase1.num_nodes: `x` is not a whole number")
    );
    let refused = test_env.run(&["set", "phase1.num_nodes=5", "--set", "phase1.num_nodes=6"]);
    assert_eq!((refused.code, test_env.ok(&["get", "phase1.num_nodes"]).out), (2, "2\n".to_owned()));
}

#[test]
fn configurations_are_compared_and_shortened() {
    let test_env = with_tree();
    test_env.ok(&["profile", "ha"]);
    insta::assert_snapshot!(test_env.talk(&[
        &["profile"],
        &["profile", "h"],
        &["profile", "small"],
        &["diff"],
        &["diff", "small"],
        &["diff", "ha", ".config.json"],
        &["diff", "ha", "nothing"],
        &["diff", "applied"],
        &["minimal"],
        &["minimal", "--write"],
        &["minimal", "--write"],
    ]));
    assert_eq!(test_env.ok(&["diff", "ha"]).out, "", "what was left out is so by default");
    assert_eq!(test_env.json(&["diff"])["changes"].as_array().unwrap().len(), 5);
}

/// The tree of kubernetes-anywhere, as far as its file for Google's cloud shows it.
fn ancestors_tree(golden: &str) -> String {
    let (mut tree, mut depth) = ("mainmenu \"Kubernetes Minimal Turnup Configuration\"\n".to_owned(), 0);
    for line in golden.lines().skip(4) {
        if let Some(title) = line.strip_prefix("# ").filter(|line| !line.ends_with(" is not set")) {
            // Only the cloud's menu stands within another one.
            let is_inner = title == "GCE configuration";
            let ends = if is_inner { 0 } else { std::mem::take(&mut depth) };
            depth += 1;
            writeln!(tree, "{}menu \"{title}\"", "endmenu\n".repeat(ends)).unwrap();
        } else if let Some(name) = line.strip_prefix("# .") {
            writeln!(tree, "config {}\n\tbool \"?\"", name.trim_end_matches(" is not set")).unwrap();
        } else if let Some((name, value)) = line.strip_prefix('.').and_then(|line| line.split_once('=')) {
            let kind = match value.chars().next() {
                Some('"') => "string",
                Some('y') => "bool",
                _ => "int",
            };
            writeln!(tree, "config {name}\n\t{kind} \"?\"\n\tdefault {value}").unwrap();
        }
    }
    tree + &"endmenu\n".repeat(depth)
}

#[test]
fn a_dot_config_beside_the_file_has_the_ancestors_bytes() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/anywhere/gce.config");
    let golden = fs_err::read_to_string(golden).unwrap();
    let test_env = TestEnv::new("config");
    test_env.write("Kconfig", &ancestors_tree(&golden));
    test_env.write("phases/profiles/none.defconfig", "# The defaults.\n");
    let said = test_env.ok(&["export", "--to", ".config"]).out;
    assert_eq!(said, "configuration in .config\n");
    assert_eq!(test_env.read(".config"), golden);
    assert_eq!(test_env.ok(&["export"]).out, golden, "the same on standard output");
    let own = test_env.ends(2, &["export", "--to", ".config.json"]).err;
    assert!(own.contains(".config.json is the configuration itself"), "{own}");
    let secret = with_tree();
    secret.write_private("token", "hunter2");
    secret.ok(&["set", "phase1.token=@token"]);
    let own = secret.ends(2, &["export", "--to", "./.config.json"]).err;
    assert!(own.contains(".config.json is the configuration itself"), "by another way: {own}");
    let said = secret.ok(&["export", "--to", ".config"]);
    assert!(said.err.contains("secrets were left out"), "{}", said.err);
    assert!(!secret.read(".config").contains("token"), "{}", secret.read(".config"));
}

#[test]
fn typed_lists_are_json_in_the_file_and_judged_element_by_element() {
    let test_env = with_tree();
    test_env.ok(&[
        "set",
        "phase1.labels=a=b,example.com/c=d",
        r#"phase1.groups=[{"name": "web", "role": "node", "size": 2}]"#,
    ]);
    let file: Value = serde_json::from_str(&test_env.read(".config.json")).unwrap();
    assert_eq!(file["phase1"]["groups"][0]["size"], 2);
    assert_eq!(file["phase1"]["labels"]["example.com/c"], "d");
    assert_eq!(test_env.run(&["check"]).code, 0);
    let mut said = String::new();
    for groups in [
        r#""web""#,
        r#"[{"name": "web"}]"#,
        r#"[{"name": "web", "role": "nod"}]"#,
        r#"[{"name": "web", "role": "node", "sice": 1}]"#,
        r#"[{"name": "web", "role": "node", "size": "1"}]"#,
        r#"[{"name": "web", "role": "node", "size": 10}]"#,
        r#"[{"name": "web", "role": "node"}, {"name": "web", "role": "master"}]"#,
        r#"[["web"]]"#,
    ] {
        test_env.write(".config.json", &format!("{{\"phase1\": {{\"groups\": {groups}}}}}"));
        let outcome = test_env.run(&["check"]);
        assert_eq!(outcome.code, 3, "{groups}");
        let error = outcome.out.lines().find(|line| line.starts_with("error")).unwrap().to_owned();
        writeln!(said, "{groups}\n  {error}").unwrap();
    }
    insta::assert_snapshot!(said);
}

#[test]
fn files_of_earlier_versions_are_brought_up_to_date() {
    let test_env = with_tree();
    let old = "{\"phase1\": {\"nodes\": 2, \"labels\": \"a=b\", \"groups\": \"[]\"}}";
    test_env.write(".config.json", old);
    let said = test_env.talk(&[&["check"], &["migrate"], &["migrate"], &["diff"]]);
    insta::assert_snapshot!(said);
    test_env.write(".config.json", "{\"phase1\": {\"nodes\": 2, \"nods\": 2}}");
    assert_eq!(test_env.run(&["migrate"]).code, 3, "what stays wrong is not written");
    assert!(test_env.read(".config.json").contains("nods"));
}

#[test]
fn a_secret_that_others_may_read_is_refused() {
    let test_env = with_tree();
    test_env.write(".config.json", "{\"phase1\": {\"token\": \"hunter2\"}}");
    let outcome = test_env.run(&["check"]);
    assert_eq!(outcome.code, 3);
    let said =
        "error: .config.json:1:22: phase1.token is a secret, and others may read this file: chmod 600 .config.json\n";
    assert!(outcome.out.contains(said), "{}", outcome.out);
    test_env.write_private(".config.json", "{\"phase1\": {\"token\": \"hunter2\"}}");
    assert_eq!(test_env.run(&["check"]).code, 0);
    test_env.ok(&["set", "phase1.num_nodes=2"]);
    let mode = fs_err::metadata(test_env.path(".config.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn kubernetes_anywhere_is_taken_over_value_by_value() {
    let test_env = with_tree();
    test_env.write("old", "#\n# Phase 1\n#\n.phase1.num_nodes=3\n.phase1.cloud_provider=\"gce\"\n.phase1.zone=\"x\"\n.phase1.region=\"say \\\"eu\\\"\"\n# .phase3.ha is not set\n.phase3.heapster=y\n.phase3.cni=\"weave\"\n.phase1.vSphere.url=\"v\"\n.phase1.token=\"hunter2\"\n.phase9.x=1\n");
    test_env.write("old.json", "{\"phase1\": {\"num_nodes\": 12, \"cloud_provider\": \"vsphere\"}, \"phase2\": {\"kubeadm\": {\"version\": \"stable\"}}}");
    test_env.write("broken", "phase1.num_nodes=3\n");
    let said = test_env.talk(&[
        &["import", "old"],
        &["import", "old.json"],
        &["import", "old.json", "--force"],
        &["import", "broken", "--force"],
        &["import", "gone", "--force"],
        &["import", "gone"],
    ]);
    assert!(!said.contains("hunter2"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn a_secret_is_never_an_argument() {
    let test_env = with_tree();
    test_env.write("token", "hunter2\n");
    let refused = test_env.run(&["set", "phase1.token=hunter2"]);
    assert_eq!((refused.code, test_env.path(".config.json").exists()), (2, false), "{}", refused.err);
    insta::assert_snapshot!(refused.err, @r"
    error: phase1.token is a secret: every user of this machine can read a command line
    next: turnup config set phase1.token=@FILE, or phase1.token=@- to read standard input
    ");
    test_env.ok(&["set", "phase1.token=@token"]);
    assert!(test_env.read(".config.json").contains("hunter2"));
    assert_eq!(test_env.ok(&["get", "phase1.token"]).out, "(secret)\n");
    let given = test_env.run(&["get", "phase1.token", "--set", "phase1.token=hunter3"]);
    insta::assert_snapshot!(given.err, @r"
    error: --set phase1.token: phase1.token is a secret: every user of this machine can read a command line
    next: give it as TURNUP_SET_phase1__token
    ");
    let missing = test_env.run(&["set", "phase1.token=@nowhere"]);
    assert!(missing.code != 0 && missing.err.contains("nowhere"), "{}", missing.err);
    let standard_input = test_env.command(&["set", "phase1.token=@-"]).write_stdin("hunter4").output().unwrap();
    assert!(standard_input.status.success());
    assert!(test_env.read(".config.json").contains("hunter4"));
}

#[test]
fn files_that_are_named_must_be_there() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase2.http_proxy=http://proxy:3128", "phase2.proxy_ca_file=corp.pem"]);
    let said = test_env.run(&["config", "check"]);
    assert_eq!(said.code, 3);
    assert!(said.out.contains("phase2.proxy_ca_file: corp.pem is not there, or no file\n"), "{}", said.out);
    let up = test_env.run(&["up"]);
    assert!(up.code == 3 && up.err.contains("corp.pem is not there"), "{}", up.err);
    test_env.write("corp.pem", "");
    let said = test_env.run(&["config", "check"]).out;
    assert!(said.contains("phase2.proxy_ca_file: corp.pem has no certificate in PEM"), "{said}");
    let authority = rcgen::generate_simple_self_signed(["proxy.example.com".to_owned()]).unwrap();
    test_env.write("corp.pem", &authority.cert.pem());
    let said = test_env.run(&["config", "check"]).out;
    assert!(!said.contains("corp.pem"), "{said}");
}
