//! `where` and `complete NODE` name exactly what a setting reaches: for every setting of the tree what they say is compared with the
//! files that really are other ones when it has another value.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::cli_support::Desk;

/// One control-plane host and one worker that nobody has.
const INVENTORY: &str = r#"{
    "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "baremetal", "api": {"host": "192.0.2.10", "port": 6443},
    "hosts": [
        {"name": "rack-1", "role": "control-plane", "address": "192.0.2.10", "instance": "1",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAA"}},
        {"name": "rack-2", "role": "worker", "address": "192.0.2.20", "instance": "2",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAA"}}
    ]}"#;

fn desk(target: &str) -> Desk {
    let desk = Desk::new("");
    desk.write("provision.json", INVENTORY);
    desk.ok(&["config", "set", &format!("phase1.cloud_provider={target}")]);
    desk
}

fn ask(desk: &Desk, args: &[&str]) -> Value {
    let all: Vec<&str> = args.iter().copied().chain(["--output", "json"]).collect();
    serde_json::from_str(&desk.ok(&all).out).unwrap()
}

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// All files that `render` writes for the configuration with this change; none when it cannot be turned up.
fn render(desk: &Desk, change: Option<(&str, &str)>) -> Option<BTreeMap<String, String>> {
    let before = desk.read(".config.json");
    let is_set = change.is_none_or(|(name, value)| desk.run(&["config", "set", &format!("{name}={value}")]).code == 0);
    let to = tempfile::tempdir_in(desk.dir.path()).unwrap();
    let rendered = is_set && desk.run(&["render", "--to", to.path().to_str().unwrap()]).code == 0;
    desk.write(".config.json", &before);
    rendered.then(|| read_all(to.path(), to.path()))
}

fn read_all(root: &Path, dir: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(read_all(root, &path));
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.insert(name, fs_err::read_to_string(&path).unwrap());
        }
    }
    files
}

fn different(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> BTreeSet<String> {
    let names = before.keys().chain(after.keys());
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

/// The settings of the tree with whether this version acts on them.
fn settings(desk: &Desk) -> Vec<(String, bool)> {
    let list = ask(desk, &["config", "list", "--all"]);
    let all = list["settings"].as_array().unwrap().iter();
    all.map(|setting| (setting["name"].as_str().unwrap().to_owned(), setting["unused"] == false)).collect()
}

/// What one target's rendered files say, compared with `where` for each setting; returns how many reach a file.
fn compare(target: &str) -> usize {
    let desk = desk(target);
    let base = render(&desk, None).unwrap();
    let mut reaching = 0;
    for (name, acted_on) in settings(&desk) {
        // The directory that everything is named by is another one then. What no target acts on is asked once.
        if name == "phase1.cluster_name" && target == "local" || !acted_on && target != "local" {
            continue;
        }
        let said = ask(&desk, &["config", "where", &name]);
        let files = texts(&said["files"]);
        if !acted_on {
            assert!(files.is_empty() && texts(&said["steps"]).is_empty(), "{name} is said to be unused: {said:#}");
            continue;
        }
        let tried = texts(&said["tried"]);
        let rendered = tried.iter().filter_map(|value| render(&desk, Some((&name, value))));
        let found: BTreeSet<String> = rendered.flat_map(|after| different(&base, &after)).collect();
        // `where` also tries what the present answers do not let a person set.
        let complete = tried.iter().all(|value| render(&desk, Some((&name, value))).is_some());
        assert!(found.is_subset(&files) && (!complete || found == files), "{target} {name}: {found:?}, said {files:?}");
        if said["unknown_because"].is_string() {
            assert!(said["places"].is_null() && said["steps"].is_null(), "not known is not none: {said:#}");
            continue;
        }
        assert_eq!(files.is_empty(), said["places"].as_array().unwrap().is_empty(), "{name}: {said:#}");
        reaching += usize::from(!files.is_empty());
    }
    reaching
}

#[test]
fn where_names_exactly_the_files_that_change_on_local_hosts() {
    assert!(compare("local") >= 15);
}

#[test]
fn where_names_exactly_the_files_that_change_on_bare_metal() {
    assert!(compare("baremetal") >= 12);
}

#[test]
fn where_speaks_of_variables_files_flags_manifests_and_steps() {
    let desk = desk("local");
    let said = |name: &str| desk.ok(&["config", "where", name]).out;
    for name in
        ["phase1.num_nodes", "phase2.service_cidr", "phase2.security.audit", "phase3.dns_replicas", "phase1.gce.region"]
    {
        insta::assert_snapshot!(name, said(name));
    }
    let context = said("phase1.cluster_name");
    assert!(context.contains("changes with it: phase2.kube_context_name\n"), "{context}");
    let cloud = desk.run(&["config", "where", "phase1.gce.region", "--set", "phase1.cloud_provider=gce"]);
    assert!(cloud.out.contains("changes with it: phase1.gce.zone\n"), "{}", cloud.out);
    assert!(cloud.err.contains("files and steps are not known: the target gce can be configured"), "{}", cloud.err);
    assert!(said("phase2.artifacts.mirror").lines().all(|line| !line.starts_with("step provision/")));
    assert!(!desk.path(".turnup").exists(), "a question leaves no directory behind");
}

#[test]
fn every_value_of_a_node_says_which_settings_decide_it() {
    let desk = desk("local");
    desk.ok(&["config", "set", "phase2.max_pods=50"]);
    let text = desk.ok(&["config", "complete", "kubernetes-worker-0"]).out;
    assert!(
        text.contains("file /etc/kubernetes/kubelet.json: maxPods = 50  <- phase2.max_pods (.config.json:"),
        "{text}"
    );
    assert!(
        text.contains("\nkernel setting net.ipv4.ip_forward = 1\n"),
        "what no setting decides says nothing: {text}"
    );
    assert!(text.contains("\ndirectory /var/lib/turnup mode = 0700\n"), "{text}");
    let said = ask(&desk, &["config", "complete", "kubernetes-control-plane-0"]);
    let origin = &said["origins"]["flag kube-apiserver --service-cluster-ip-range"];
    assert_eq!(origin, &serde_json::json!({"phase2.service_cidr": "default, as in .config.json:42:21"}));
    let name = &said["origins"]["flag kubelet --hostname-override"];
    assert!(name["phase1.cluster_name"].is_string(), "a node of another name is still the same: {said:#}");
    assert_eq!(said["complete"]["schema"], "turnup.complete/1");
    let wrong = desk.run(&["config", "complete", "kubernetes-worker-7"]);
    assert_eq!(
        (wrong.code, wrong.err.as_str()),
        (
            3,
            "error: the cluster has no node kubernetes-worker-7\nnext: nodes: kubernetes-control-plane-0, kubernetes-worker-0\n"
        )
    );
}

#[test]
fn render_writes_what_a_run_would_send_and_nothing_else() {
    let desk = desk("local");
    let out = desk.ok(&["render", "addons"]).out;
    let dir = desk.path(".turnup/kubernetes/rendered/addons");
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(fs_err::read_to_string(dir.join("coredns.yaml")).unwrap().contains("kind: Deployment"));
    let all = ask(&desk, &["render", "--to", "out"]);
    let files = texts(&all["files"]);
    for file in [
        "provision/main.tf",
        "provision/terraform.tfvars.json",
        "complete/kubernetes-worker-0.json",
        "addons/flannel.yaml",
    ] {
        assert!(files.contains(file), "{files:?}");
    }
    let found: BTreeSet<String> = read_all(&desk.path("out"), &desk.path("out")).into_keys().collect();
    assert_eq!(files, found);
    let again = desk.run(&["render", "--to", "out"]);
    assert_eq!(
        (again.code, again.err.as_str()),
        (2, "error: out is not empty\nnext: turnup render --to another directory\n")
    );
    desk.write("provision.json", "{}");
    let inventory = desk.run(&["render", "--set", "phase1.cloud_provider=baremetal"]);
    assert!(inventory.code == 3 && inventory.err.contains("provision.json"), "{}", inventory.err);
}
