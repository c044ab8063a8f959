//! A Terraform module that is not turnup's, with the real terraform: its hosts are on paper, so
//! that no machine is made or contacted.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::artifacts_support::find_program;
use crate::cli_support::TestEnv;
use crate::skip::{has_program, skip};

/// The real program, if it is installed.
pub(crate) fn has_terraform() -> bool {
    has_program(&["terraform", "tofu"])
}

/// One of the programs that drive a module.
pub(crate) struct Program {
    /// `terraform` or `tofu`.
    pub name: &'static str,
    /// A directory with nothing but this program.
    dir: tempfile::TempDir,
}

impl Program {
    fn alone(name: &'static str, file: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(file, dir.path().join(name)).unwrap();
        Self { name, dir }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    /// A test environment whose commands use this program.
    pub(crate) fn test_env(&self) -> TestEnv {
        let test_env =
            TestEnv::new("").with_env("PATH", &format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.dir.path().display()));
        test_env.ok(&["config", "set", &format!("phase1.terraform.program={}", self.name)]);
        test_env
    }
}

/// `OpenTofu`: on PATH, or among this user's artifacts.
static TOFU: LazyLock<Option<PathBuf>> = LazyLock::new(|| which::which("tofu").ok().or_else(|| find_program("tofu")));

/// Does the same with Terraform and with `OpenTofu`, each where it is here.
pub(crate) fn each_program(test: impl Fn(&Program)) {
    let found = [
        ("terraform", which::which("terraform").ok(), "it is not on PATH"),
        ("tofu", TOFU.clone(), "turnup artifacts fetch tofu"),
    ];
    for (name, file, how) in found {
        match file {
            Some(file) => test(&Program::alone(name, &file)),
            None => skip(&format!("the half for {name}: it is not here ({how})")),
        }
    }
}

/// A test environment with the module of the fixtures beside it, configured to use it.
pub(crate) fn test_env() -> TestEnv {
    own_module(TestEnv::new(""))
}

/// The same at this test environment.
pub(crate) fn own_module(test_env: TestEnv) -> TestEnv {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/custom/main.tf");
    test_env.write("module/main.tf", &fs_err::read_to_string(module).unwrap());
    use_module(&test_env, &[]);
    test_env
}

/// Configures the module of this test environment, and these settings.
pub(crate) fn use_module(test_env: &TestEnv, settings: &[&str]) {
    let own = ["phase1.cloud_provider=custom", "phase1.custom.module=module", "phase1.cluster_name=own"];
    test_env.ok(&[&["config", "set"], &own[..], settings].concat());
}

fn inventory(test_env: &TestEnv) -> Value {
    serde_json::from_str(&test_env.read(".turnup/own/outputs/provision.json")).unwrap()
}

#[test]
fn a_module_of_ones_own_makes_the_hosts() {
    each_program(|program| {
        makes_the_hosts(&own_module(program.test_env()), program.name);
    });
}

fn makes_the_hosts(test_env: &TestEnv, program: &str) {
    let plan = test_env.ok(&["plan"]).out;
    assert!(plan.contains("+   resource terraform_data.host[\"own-workers-0\"]"), "{plan}");
    assert!(plan.contains("unknown  bootstrap: known after provision/apply"), "{plan}");
    assert!(!test_env.path(".turnup").exists(), "to plan leaves nothing behind");
    test_env.ok(&["provision"]);
    assert!(test_env.read(".turnup/own/logs/provision-apply.log").contains(&format!("/{program} apply ")));
    let made = inventory(test_env);
    let names: Vec<&str> =
        made["hosts"].as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["own-control-plane-0", "own-workers-0"]);
    let known_hosts = test_env.read(".turnup/own/ssh/known_hosts");
    assert!(known_hosts.contains("192.0.2.20 ssh-ed25519 "), "{known_hosts}");
    let again = test_env.ok(&["provision"]).err;
    assert!(again.contains("0 ran"), "{again}");

    // Values of one's own beside the module, and a file that is not there any more.
    test_env.write("module/mine.auto.tfvars", "network = \"198.51.100\"\n");
    test_env.ok(&["provision"]);
    assert_eq!(inventory(test_env)["api"]["host"], "198.51.100.10");
    fs_err::remove_file(test_env.path("module/mine.auto.tfvars")).unwrap();
    test_env.ok(&["config", "set", "phase1.num_nodes=2"]);
    test_env.ok(&["provision"]);
    assert_eq!(inventory(test_env)["api"]["host"], "192.0.2.10", "its values went with the file");
    assert_eq!(inventory(test_env)["hosts"].as_array().unwrap().len(), 3);

    let told = test_env.ok(&["plan", "provision"]).out;
    assert!(told.starts_with("outside of turnup nothing was changed\n"), "{told}");
    assert!(told.contains("nothing to do"), "{told}");
    test_env.ok(&["down", "--yes"]);
    assert!(!test_env.path(".turnup/own").exists());
}

#[test]
fn what_keeps_terraform_from_looking_for_changes_outside_is_told_without_a_log_that_is_gone() {
    if !has_terraform() {
        return;
    }
    let test_env = test_env();
    test_env.ok(&["provision"]);
    test_env.write(".turnup/own/provision/never.tf", "output \"x\" {\n  value = nonexistent.y\n}\n");
    let told = test_env.ends(1, &["plan", "provision"]).err;
    assert!(told.contains("Reference to undeclared resource"), "{told}");
    assert!(!told.contains("log: ") && !told.contains("plan.log"), "{told}");
}

#[test]
fn what_is_rendered_needs_no_turnup() {
    if !has_terraform() {
        return;
    }
    let test_env = test_env();
    test_env.ok(&["render", "provision", "--to", "out"]);
    assert_eq!(by_hand(&test_env.path("out/provision"))["hosts"][1]["name"], "own-workers-0");
}

#[test]
fn what_a_first_run_would_fail_of_is_in_the_plan() {
    if !has_terraform() {
        return;
    }
    let test_env = test_env();
    let refuses = "resource \"terraform_data\" \"never\" {\n  lifecycle {\n    precondition {\n      condition     = var.cluster.name == \"\"\n      \
                   error_message = \"not in this account\"\n    }\n  }\n}\n";
    test_env.write("module/never.tf", refuses);
    let planned = test_env.ends(1, &["plan"]);
    let plan = planned.out;
    assert!(plan.contains("now it would fail:") && plan.contains("not in this account"), "{plan}");
    assert!(planned.err.contains("error: now provision/"), "{}", planned.err);
    assert!(!plan.contains("is not there yet"), "no other error in its place: {plan}");
    // The directory in which terraform looked is gone, and its log with it.
    let told = plan + &planned.err;
    assert!(!told.contains("log: ") && !told.contains("plan.log"), "{told}");
    test_env.ok(&["config", "set", "phase1.custom.module=nowhere"]);
    let plan = test_env.ends(3, &["plan"]).err;
    assert!(plan.contains("nowhere is no directory") && plan.contains("next: turnup config set"), "{plan}");
}

/// What a user does with a rendered directory and without turnup; returns the resulting inventory.
#[expect(clippy::disallowed_methods, reason = "it acts as that user")]
pub(crate) fn by_hand(dir: &Path) -> Value {
    let program = which::which("terraform").or_else(|_| which::which("tofu")).unwrap();
    let mirror = Some(dir.join("terraform.tfrc")).filter(|file| file.exists());
    let mut told = Value::Null;
    for words in [&["init", "-input=false"][..], &["apply", "-input=false", "-auto-approve"], &["output", "-json"]] {
        let mut terraform = Command::new(&program);
        terraform.args(words).current_dir(dir).env("CHECKPOINT_DISABLE", "1");
        let done = terraform.envs(mirror.iter().map(|file| ("TF_CLI_CONFIG_FILE", file))).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        told = serde_json::from_slice(&done.stdout).unwrap_or_default();
    }
    told["inventory"]["value"].clone()
}

#[test]
fn a_module_that_gives_back_something_else_is_refused() {
    let test_env = test_env();
    let good = test_env.read("module/main.tf");
    for (from, to, expected) in [
        ("output \"inventory\"", "output \"hosts\"", "the module has no output \"inventory\""),
        (
            "locals {",
            "terraform {\n  backend \"local\" {}\n}\nlocals {",
            "module/main.tf:19: the module has a backend of its own",
        ),
    ] {
        test_env.write("module/main.tf", &good.replace(from, to));
        let refused = test_env.run(&["provision"]);
        assert_eq!(refused.code, 3, "{}", refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    test_env.ok(&["config", "set", "phase1.custom.module=nowhere"]);
    assert!(test_env.run(&["plan"]).err.contains("is no directory"));
    if !has_terraform() {
        return;
    }
    test_env.ok(&["config", "set", "phase1.custom.module=module"]);
    for (from, to, expected) in [
        ("\"control-plane\"", "\"master\"", "unknown variant `master`"),
        ("cluster = var.cluster.name", "cluster = \"other\"", "the hosts are those of the cluster \"other\""),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "", "has no ssh.host_key"),
        ("\"admin\"", "\"-oProxyCommand=id\"", "the output inventory of module: hosts[0].ssh.user of "),
        ("AAAAAAAA\"", "AAAAAAAA\\n* ssh-rsa AAAA\"", "trimspace"),
    ] {
        test_env.write("module/main.tf", &good.replace(from, to));
        let refused = test_env.run(&["provision"]);
        assert_eq!(refused.code, 3, "{}", refused.err);
        assert!(refused.err.contains(expected), "{expected}: {}", refused.err);
    }
}

#[test]
fn volumes_of_etcd_are_not_lost_by_one_command() {
    if !has_terraform() {
        return;
    }
    let test_env = test_env();
    test_env.ok(&["provision"]);
    test_env.ok(&["config", "set", "phase1.deletion_protection=y"]);
    let refused = test_env.run(&["down", "--yes"]);
    assert!(refused.code == 3 && refused.err.contains("protected from deletion"), "{}", refused.err);
    test_env.ok(&["config", "set", "phase1.deletion_protection=n"]);
    // The second phase has started: the journal says so.
    let line = test_env
        .read(".turnup/own/journal.jsonl")
        .lines()
        .rfind(|line| line.contains("provision/inventory"))
        .unwrap()
        .to_owned();
    let mut line: Value = serde_json::from_str(&line).unwrap();
    line["seq"] = (line["seq"].as_u64().unwrap() + 100).into();
    let text = line.to_string().replace("provision/inventory", "bootstrap/pki");
    let journal = test_env.read(".turnup/own/journal.jsonl") + &text + "\n";
    test_env.write(".turnup/own/journal.jsonl", &journal);
    let refused = test_env.run(&["down", "--yes"]);
    assert!(
        refused.code == 4 && refused.err.contains("terraform_data.etcd_volume[\"own-control-plane-0\"]"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("turnup down --destroy-volumes"), "{}", refused.err);
    test_env.ok(&["config", "set", "phase1.etcd_volume.keep=y"]);
    let kept = test_env.ok(&["down", "--yes"]).err;
    assert!(
        kept.contains("kept, no longer managed by turnup: terraform_data.etcd_volume[\"own-control-plane-0\"]"),
        "{kept}"
    );
    assert!(!kept.contains("to be removed: terraform_data.etcd_volume"), "{kept}");
    assert!(kept.contains("to be removed: terraform_data.host[\"own-control-plane-0\"]"), "{kept}");
}
