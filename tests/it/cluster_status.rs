//! On a real cluster: the steps of docs/steps.md run as it says, the status knows what was done to
//! the cluster behind its back, and a support bundle has the logs of all hosts and no secret of
//! any.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::cluster_support::{Done, Site, say, sh};
use crate::engine_steps::documented;

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";

#[test]
fn custom_steps_status_and_support_bundle() {
    let Some(site) = Site::of_cluster("status", "10.124.1.0/24", 1) else { return };
    add_the_documented_steps(&site);
    the_steps_run_at_their_places(&site);
    the_status_of_a_whole_cluster(&site);
    commands_run_on_hosts(&site);
    what_a_step_made_is_missed(&site);
    the_bundle_has_everything_but_secrets(&site);
    a_host_that_is_away_is_named(&site);
}

fn root_of(site: &Site, host: &str) -> PathBuf {
    site.path(&format!("hosts/{host}/root"))
}

/// Adds the steps as a user does: a copy of the tree, the examples at the end of the phases, the
/// scripts beside the configuration.
fn add_the_documented_steps(site: &Site) {
    let (from, to) = (Path::new(env!("CARGO_MANIFEST_DIR")), site.dir.display());
    sh(&format!("cp -r '{0}/Kconfig' '{0}/phases' '{0}/templates' '{to}/'", from.display()));
    for (path, text) in documented() {
        let path = site.dir.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let before = fs_err::read_to_string(&path).unwrap_or_default();
        fs_err::write(&path, before + &text).unwrap();
    }
    sh(&format!("chmod +x '{to}'/scripts/*.sh"));
    let plan = site.ok(&["plan"]).out;
    assert!(plan.contains("provision/room-here: never ran") && plan.contains("scripts/room-here.sh"), "{plan}");
    assert!(plan.contains(&format!("bootstrap/banner@{WORKER}")) && plan.contains("/etc/motd"), "{plan}");
}

fn the_steps_run_at_their_places(site: &Site) {
    let events = site.up();
    let order: Vec<String> = events.of("step-done", "step");
    let place = |step: &str| order.iter().position(|done| done == step).unwrap_or(usize::MAX);
    assert!(place("provision/room-here") < place("provision/apply"), "{order:?}");
    let banner = format!("bootstrap/banner@{WORKER}");
    assert!(place(&banner) < place(&format!("bootstrap/join@{WORKER}")), "{order:?}");
    assert!(!order.contains(&format!("bootstrap/banner@{CONTROL_PLANE}")), "{order:?}");
    let motd = fs_err::read_to_string(root_of(site, WORKER).join("etc/motd")).unwrap();
    assert_eq!(motd, format!("{WORKER} is ours: worker of it at 10.124.1.20\n"));
    assert!(!root_of(site, WORKER).join("opt/turnup/steps/bootstrap-banner").exists(), "the script was left there");
    let inventory = fs_err::read_to_string(site.dir.join("inventory").join(format!("{CONTROL_PLANE}.txt"))).unwrap();
    assert_eq!(inventory, "10.124.1.10 control-plane\n");
    assert_eq!(site.up().ran(), BTreeSet::new());
}

fn the_status_of_a_whole_cluster(site: &Site) {
    let mut done = site.run(&["status"]);
    if done.out.contains("could not ask") {
        // `status` waits half a minute for an answer, and a machine that runs tests in parallel may
        // be slower.
        say(&done.out);
        done = site.run(&["status"]);
    }
    assert_eq!(done.code, Some(0), "{done}");
    say(&done.out);
    for line in done.out.lines().filter(|line| !line.starts_with("cluster ") && !line.starts_with("export ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for (start, part) in [
        ("provision ", " done "),
        ("bootstrap ", " done "),
        ("addons ", " done "),
        (CONTROL_PLANE, " Ready "),
        ("coredns", " 1/1"),
        ("here ", "admin.crt"),
        (WORKER, "kubelet-client-current.pem"),
        ("Kubernetes ", " on 2 nodes"),
        ("turnup ", "this one on 2 hosts"),
    ] {
        let found = done.out.lines().any(|line| line.starts_with(start) && line.contains(part));
        assert!(found, "no {part:?} behind {start:?}: {done}");
    }
    assert!(!done.out.contains("could not ask"), "{done}");
    let quick: Value = serde_json::from_str(&site.ok(&["status", "--quick", "--output", "json"]).out).unwrap();
    assert_eq!((&quick["nodes"], &quick["quick"]), (&Value::Null, &Value::Bool(true)));
    assert!(quick["phases"].as_array().unwrap().iter().all(|phase| phase["state"] == "done"), "{quick}");
}

/// With a real sshd: each host answers as itself, with what the command printed and its exit code.
fn commands_run_on_hosts(site: &Site) {
    let out = site.ok(&["exec", "all", "--", "sh", "-c", "hostname; id --user"]).out;
    let lines: BTreeSet<&str> = out.lines().collect();
    let expected = [CONTROL_PLANE, WORKER].map(|host| [format!("{host}: {host}"), format!("{host}: 0")]);
    assert_eq!(lines, expected.as_flattened().iter().map(String::as_str).collect());
    let said = site.fails(1, &["exec", "workers", "--", "sh", "-c", "exit 9"]).err;
    assert!(said.contains(&format!("{WORKER}: exit code 9")), "{said}");
    assert_eq!(site.ok(&["ssh", WORKER, "--", "hostname"]).out, format!("{WORKER}\n"));
}

fn what_a_step_made_is_missed(site: &Site) {
    fs_err::remove_file(root_of(site, WORKER).join("etc/motd")).unwrap();
    let status = site.ok(&["status"]).out;
    assert!(status.contains(&format!("bootstrap/banner@{WORKER}: /etc/motd is not there")), "{status}");
    assert!(status.lines().any(|line| line.starts_with("bootstrap ") && line.contains(" stale ")), "{status}");
    assert_eq!(site.up().ran(), BTreeSet::from([format!("bootstrap/banner@{WORKER}")]));
}

/// Every private key and kubeconfig of the cluster, by its file.
fn secrets(site: &Site) -> Vec<(PathBuf, Vec<u8>)> {
    let found = ["pki", "ssh", "ssh/hosts"].map(|dir| site.path(dir));
    let files = found.iter().flat_map(|dir| fs_err::read_dir(dir).unwrap().flatten().map(|entry| entry.path()));
    let private = |path: &PathBuf| {
        let end = path.extension().map(|end| end.to_string_lossy().into_owned());
        let is_key = end.is_none() && !path.ends_with("known_hosts") || end.is_some_and(|end| end == "key");
        path.is_file() && is_key
    };
    files.filter(private).map(|path| (path.clone(), fs_err::read(path).unwrap())).collect()
}

fn the_bundle_has_everything_but_secrets(site: &Site) {
    let secrets = secrets(site);
    assert!(secrets.len() > 15, "{}", secrets.len());
    let forms: Vec<String> = secrets
        .iter()
        .map(|(path, bytes)| {
            let text = String::from_utf8_lossy(bytes);
            let base64 = STANDARD.encode(bytes);
            let twice = STANDARD.encode(&base64);
            let digits = hex::encode(bytes);
            format!("{}: {text}\n{text:?}\n{base64}\n{twice}\n{digits}\n", path.file_name().unwrap().display())
        })
        .collect();
    let planted = forms.concat();
    fs_err::write(site.path("logs/planted.log"), &planted).unwrap();
    let pod = root_of(site, WORKER).join("var/log/pods/kube-system_kube-planted/planted");
    fs_err::create_dir_all(&pod).unwrap();
    fs_err::write(pod.join("0.log"), &planted).unwrap();
    let done = site.ok(&["support-bundle", "--to", "bundle.tar.gz"]);
    say(&done.err);
    let all = contents(&site.dir.join("bundle.tar.gz"));
    let paths: BTreeSet<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
    for path in [
        "cluster/state.json",
        "cluster/logs/planted.log",
        "cluster/node-config/it-worker-0.json",
        "hosts/it-worker-0/kubelet.log",
        "hosts/it-worker-0/containerd.log",
        "hosts/it-worker-0/network.txt",
        "hosts/it-control-plane-0/static-pods.log",
        "hosts/it-control-plane-0/versions.txt",
        "api/pods.txt",
        "status.txt",
        "doctor.json",
        "configuration/config.json",
    ] {
        assert!(paths.contains(format!("support-bundle/{path}").as_str()), "{path} is not in {paths:?}");
    }
    let text = |path: &str| &all.iter().find(|(name, _)| name.ends_with(path)).unwrap().1;
    assert!(text("it-control-plane-0/static-pods.log").contains("kube-apiserver"), "no pod's log");
    assert!(text("it-worker-0/versions.txt").contains("containerd"), "{}", text("it-worker-0/versions.txt"));
    for (path, text) in &all {
        for (file, secret) in &secrets {
            // Of each line of a key and of its other forms, what is in the middle: that is never
            // the same as in a public key.
            let base64 = STANDARD.encode(secret);
            let body: Vec<String> = String::from_utf8_lossy(secret).lines().map(str::to_owned).collect();
            let middle = body.get(body.len() / 2).unwrap();
            for trace in [middle.as_str(), &base64, &STANDARD.encode(&base64)] {
                assert!(!text.contains(trace), "{path} has {}", file.display());
            }
        }
        assert!(!text.contains("PRIVATE KEY"), "{path}");
    }
    let manifest: Value = serde_json::from_str(text("MANIFEST.json")).unwrap();
    assert_eq!(manifest["missing"], Value::Array(Vec::new()), "{manifest}");
    assert_eq!(manifest["files"].as_array().unwrap().len() + 1, all.len());
}

fn contents(archive: &Path) -> Vec<(String, String)> {
    let mut tar = tar::Archive::new(GzDecoder::new(fs_err::File::open(archive).unwrap()));
    let entries = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), String::from_utf8_lossy(&bytes).into_owned())
    });
    entries.collect()
}

/// No packet reaches the host any more; everything on it runs on.
pub(crate) fn pull_cable(site: &Site, host: &str) {
    let machine = site.spec(host)["machine"].as_str().unwrap().to_owned();
    sh(&format!(
        "for link in $(ip -n {machine} -o link | cut -d' ' -f2 | tr -d : | cut -d@ -f1); do ip -n {machine} link set $link down; done"
    ));
}

fn a_host_that_is_away_is_named(site: &Site) {
    pull_cable(site, CONTROL_PLANE);
    let done: Done = site.fails(5, &["status"]);
    say(&done.out);
    let said = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "could not ask: the API: `kubectl get` failed with exit code 1: ".to_owned(),
        format!("{CONTROL_PLANE}: cannot reach root@10.124.1.10 over ssh"),
        format!("bootstrap/control-plane@{CONTROL_PLANE}: {CONTROL_PLANE} does not answer"),
        format!("bootstrap/label-nodes@{WORKER}: unknown: the API does not answer"),
    ] {
        assert!(said.contains(&part), "no {part:?}: {done}");
    }
    assert!(!said.contains("addons/inventory"), "its proof is here, and holds: {done}");
    site.ok(&["status", "--quick"]);
    let done = site.ok(&["support-bundle", "--to", "second.tar.gz"]);
    assert!(done.err.contains(&format!("not in it: {CONTROL_PLANE}: cannot reach")), "{done}");
    let paths: Vec<String> = contents(&site.dir.join("second.tar.gz")).into_iter().map(|(path, _)| path).collect();
    assert!(paths.iter().any(|path| path.ends_with(&format!("hosts/{WORKER}/kubelet.log"))), "{paths:?}");
}
