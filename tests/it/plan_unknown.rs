//! What is not known before a run, in plans and forecasts: no words of a user's own are taken for
//! it, and it is written nowhere.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::{Value, json};
use turnup::phase::StepId;
use turnup::state::Store;
use turnup::{Class, unknown};

use crate::cli_support::TestEnv;
use crate::input_owners::copy_tree;
use crate::tidy::root;

/// As plans show unknown values, now and in earlier versions.
const WORDS: &str = "(known after bootstrap/pki) (made by provision: y)";

/// The words in a file for hosts, and in a manifest.
fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    copy_tree(root(), test_env.dir.path(), &["Kconfig", "phases", "templates"]);
    let manifest = test_env.read("templates/addons/coredns/coredns.yaml");
    test_env.write("templates/addons/coredns/coredns.yaml", &format!("# {WORDS}\n{manifest}"));
    let files = json!([{"name": "own", "path": "/etc/own", "content": WORDS}]);
    test_env.ok(&["config", "set", &format!("phase2.host.file_assets={files}")]);
    test_env
}

#[test]
fn words_of_a_users_own_are_rendered_and_planned_as_data() {
    let test_env = test_env();
    let rendered = test_env.ok(&["render", "--to", "out", "--output", "json"]).out;
    let rendered: Value = serde_json::from_str(&rendered).unwrap();
    let manifest = "addons/coredns.yaml";
    assert!(test_env.read(&format!("out/{manifest}")).contains(WORDS));
    assert!(test_env.read("out/node-config/kubernetes-worker-0.json").contains(WORDS));
    let placeholders = rendered["placeholders"].as_array().unwrap();
    assert!(!placeholders.contains(&json!(manifest)), "{placeholders:?}");
    assert!(placeholders.contains(&json!("node-config/kubernetes-worker-0.json")), "it has certificates");

    test_env.ok(&["plan", "--out", "plan.json"]);
    let plan: Value = serde_json::from_str(&test_env.read("plan.json")).unwrap();
    let step = |id: &str| plan["steps"].as_array().unwrap().iter().find(|step| step["id"] == id).unwrap();
    let node_config = step("bootstrap/node-config@kubernetes-worker-0");
    assert_eq!(node_config["unknown_inputs"], json!(["facts", "host"]), "{node_config:#}");
    assert!(node_config["inputs"]["files and programs"].is_string());
    assert_eq!(step("addons/render")["unknown_inputs"], json!([]));
}

#[test]
fn the_same_plan_and_the_same_files_come_from_every_process() {
    let test_env = test_env();
    let node_config = |to: &str| {
        test_env.ok(&["render", "--to", to]);
        test_env.read(&format!("{to}/node-config/kubernetes-control-plane-0.json"))
    };
    assert_eq!(node_config("a"), node_config("b"));
    let steps = || -> Value {
        let plan: Value = serde_json::from_str(&test_env.ok(&["plan", "--output", "json"]).out).unwrap();
        plan["steps"].clone()
    };
    assert_eq!(steps(), steps(), "digests of unknown inputs included");
}

#[test]
fn what_is_not_known_yet_is_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("a key: {}", unknown::after(&StepId::of("provision", "keys")));
    let error = Store::open(dir.path()).unwrap().write_file("key", text.as_bytes(), 0o600).unwrap_err();
    assert_eq!(error.class(), Class::Bug);
    assert!(!dir.path().join("key").exists());
    Store::shadow(dir.path()).write_file("key", text.as_bytes(), 0o600).unwrap();
    Store::open(dir.path()).unwrap().write_file("key", unknown::shown(&text).as_bytes(), 0o600).unwrap();
}
