//! The provision phase of each cloud as an operator runs it: the whole program with real Terraform,
//! a provider that makes nothing, and an ssh that finds a machine wherever it is sent.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::artifacts_support::{Reply, Server};
use crate::cli_support::{Outcome, TestEnv, finish};
use crate::cloud_support::{mirror, profiles};
use crate::driver_custom::{by_hand, has_terraform};

/// Accepts any host, as ssh is allowed to, and records the host keys where it was told to; through
/// a bastion as well, whose key it records first.
const SSH: &str = r#"#!/bin/sh
for word in "$@"; do
  if [ "$last" = -S ]; then socket=$word; fi
  last=$word
  case "$word" in
    ProxyCommand=*) way=${word#*=} ;;
    UserKnownHostsFile=*) file=${word#*=} ;;
    *=*) ;;
    *@*) host=${word#*@} ;;
  esac
done
if [ -z "$host" ]; then echo "OpenSSH_10.0p2" >&2; exit 0; fi
if [ -e "$(dirname "$0")/silent" ]; then echo "ssh: connect to host $host port 22: Connection timed out" >&2; exit 255; fi
if [ -n "$way" ]; then sh -c "exec $way" </dev/null || exit 255; fi
file=$(echo "$file" | tr -d '"')
grep -q "^$host " "$file" 2>/dev/null ||
  echo "$host ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA$(printf '%42s' "KEYOF$host" | tr ' .:' AAA)" >> "$file"
case " $* " in *" -M "*) : > "$socket"; exec cat ;; esac
case "$*" in *etcdctl*) exec "$(dirname "$0")/etcdctl" "$@" ;; esac
"#;

/// The key that the ssh above records for this address: well-formed, but no machine's key.
fn key_of(address: &str) -> String {
    let name = format!("KEYOF{address}").replace(['.', ':'], "A");
    format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{name:A>42}")
}

/// The fake etcdctl: records which member left, and that all volumes existed at that time.
const ETCDCTL: &str = r#"#!/bin/sh
dir=$(dirname "$0")
case "$*" in
  *"member list"*) cat "$dir/members" ;;
  *"endpoint status"*) echo '[{"Status": {"leader": 1, "header": {"member_id": 1}}}]' ;;
  *"member remove"*)
    if [ -e "$dir/stuck" ]; then echo "Error: permission denied" >&2; exit 1; fi
    grep -q main-c "$dir"/../.turnup/*/provision/terraform.tfstate && echo "${*##*member } before main-c" >> "$dir/left" ;;
esac
"#;

/// A test environment with a configuration of this target and everything around it.
struct Site {
    test_env: TestEnv,
    name: String,
}

impl Site {
    fn new(target: &str, profile: &str) -> Self {
        let test_env = TestEnv::new("");
        test_env.write(".config.json", &fs_err::read_to_string(&profiles(target)[profile]).unwrap());
        for (file, script) in [("bin/ssh", SSH), ("bin/etcdctl", ETCDCTL)] {
            test_env.write(file, script);
            fs_err::set_permissions(test_env.path(file), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        mirror(&test_env.path("mirror"), target, None);
        let site = Self { test_env, name: String::new() };
        let place = artifacts_url(Reply::Bytes(vec![0]));
        site.ok(&["config", "set", &place, "phase1.terraform.provider_mirror=mirror"]);
        let name = site.ok(&["config", "get", "phase1.cluster_name"]).out.trim().to_owned();
        Self { name, ..site }
    }

    fn run(&self, args: &[&str]) -> Outcome {
        let path = format!("{}:{}", self.test_env.path("bin").display(), std::env::var("PATH").unwrap());
        finish(self.test_env.command(args).env("PATH", path))
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> Outcome {
        let outcome = self.run(args);
        assert_eq!(outcome.code, 0, "{args:?}: {}{}", outcome.out, outcome.err);
        outcome
    }

    fn set(&self, value: &str) {
        self.ok(&["config", "set", value]);
    }

    fn read(&self, rel: &str) -> String {
        self.test_env.read(&format!(".turnup/{}/{rel}", self.name))
    }

    fn json(&self, rel: &str) -> Value {
        serde_json::from_str(&self.read(rel)).unwrap()
    }

    /// The resources that a plan would change.
    fn planned(&self) -> BTreeSet<String> {
        let plan = self.ok(&["plan", "provision"]).out;
        let lines = plan.lines().filter_map(|line| line.trim_start().split_once("  resource "));
        lines.map(|(sign, address)| format!("{} {address}", sign.trim())).collect()
    }
}

/// The setting for an artifacts server that gives this reply for as long as the tests run.
fn artifacts_url(reply: Reply) -> String {
    format!("phase1.user_data.artifacts_url={}/turnup", Server::new(reply).url)
}

/// Every file below a directory with its text.
fn texts(dir: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(texts(&path));
        } else {
            all.push((path.display().to_string(), String::from_utf8_lossy(&fs_err::read(&path).unwrap()).into_owned()));
        }
    }
    all
}

/// From nothing to hosts, again with nothing to do, one change, and back to nothing.
fn live(target: &str, profile: &str, group: &str) {
    let site = Site::new(target, profile);
    site.ok(&["config", "check"]);
    let plan = site.ok(&["plan"]);
    assert!(plan.out.contains("unknown  bootstrap: known after provision/apply"), "{}", plan.out);
    assert!(!site.test_env.path(".turnup").exists(), "to plan leaves nothing behind");
    let rendered = site.ok(&["render", "provision", "--to", "by-hand"]);
    let blank = "provision/terraform.tfvars.json, provision/user-data.auto.tfvars.json: with placeholders";
    assert!(rendered.err.contains(blank) && rendered.err.contains("`turnup provision`"), "{}", rendered.err);
    assert_eq!(by_hand(&site.test_env.path("by-hand/provision"))["hosts"].as_array().unwrap().len(), 1);
    let made = site.ok(&["provision"]);

    let inventory = site.json("outputs/provision.json");
    let host = &inventory["hosts"][0];
    let address = host["external_address"].as_str().or(host["address"].as_str()).unwrap();
    assert_eq!(host["ssh"]["host_key"], key_of(address), "{inventory:#}");
    assert_eq!(inventory["groups"][0]["name"], "workers");
    assert_eq!(inventory["volumes"][0]["etcd"], "main");
    assert!(inventory["api"]["internal_host"].is_string(), "{inventory:#}");
    let known = site.read("ssh/known_hosts");
    assert_eq!(known, format!("{address} {}\n", key_of(address)));

    // What hosts are told has reached Terraform with the address of the API, and nothing of it is
    // shown.
    let state = site.read("provision/terraform.tfstate");
    let token = site.json("pki/token-workers.json")["tokens"][0]["token"].as_str().unwrap().to_owned();
    let told = site.json("provision/user-data.auto.tfvars.json");
    let worker = told["user_data"]["workers"].as_str().unwrap();
    assert!(worker.contains("@turnup:api@") && worker.contains("@turnup:token@") && !worker.contains(&token));
    assert_eq!(told["join_tokens"], json!({"workers": token}));
    if target == "gce" {
        assert!(!state.contains("@turnup:") && state.contains(&format!("{token}\\\\n")), "the marks are replaced");
        assert!(state.contains(&format!("{}\\\\n", inventory["api"]["internal_host"].as_str().unwrap())));
    }
    let shown = [plan.out, plan.err, made.out, made.err, site.ok(&["plan", "provision"]).out].concat();
    let logs = texts(&site.test_env.path(&format!(".turnup/{}/logs", site.name)));
    let events = texts(&site.test_env.path(&format!(".turnup/{}/events", site.name)));
    let secret = worker.lines().map(str::trim).find(|line| line.starts_with("H4sI") || line.contains("H4sI")).unwrap();
    let secret = &secret[secret.find("H4sI").unwrap()..][..200];
    for (name, text) in logs.into_iter().chain(events).chain([("the terminal".into(), shown)]) {
        assert!(!text.contains(&token) && !text.contains(secret), "{name} shows what hosts are told");
    }

    let again = site.ok(&["provision"]).err;
    assert!(again.contains("0 ran"), "{again}");
    let rendered = site.ok(&["render", "provision", "--to", "made"]);
    assert_eq!(rendered.err, "", "nothing stands in for anything any more");
    assert_eq!(site.planned(), BTreeSet::new());
    rotates_its_token(&site, &token);
    site.set("phase1.num_nodes=5");
    assert_eq!(site.planned(), BTreeSet::from([format!("~ {group}")]), "scaling touches nothing else");
    site.ok(&["provision"]);
    assert_eq!(site.json("outputs/provision.json")["groups"][0]["size"], 5);
    assert_eq!(site.json("outputs/provision.json")["hosts"], inventory["hosts"], "keys are kept");

    site.ok(&["down", "--yes"]);
    assert!(!site.test_env.path(&format!(".turnup/{}", site.name)).exists());
}

/// The next token comes before the old one ends, as the plan says; both are good for a while.
fn rotates_its_token(site: &Site, old: &str) {
    let file = site.test_env.path(&format!(".turnup/{}/pki/token-workers.json", site.name));
    let mut tokens = site.json("pki/token-workers.json");
    let day = |count: i64| (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * count)).to_string();
    let soon = day(20);
    tokens["tokens"][0]["made"] = json!(day(-70));
    tokens["tokens"][0]["expires"] = json!(soon);
    fs_err::write(&file, tokens.to_string()).unwrap();
    let status = site.ok(&["status", "--quick"]).out;
    assert!(status.contains("join tokens of node groups:\n  workers: ends in 19d"), "{status}");
    let plan = site.ok(&["plan", "provision"]).out;
    let told = format!("machines stay, and hosts with the old one may join until {}", &soon[..10]);
    assert!(plan.contains("join token workers") && plan.contains(&told) && plan.contains("  resource "), "{plan}");
    site.ok(&["provision"]);
    let tokens = site.json("pki/token-workers.json");
    let (new, kept) = (tokens["tokens"][0]["token"].as_str().unwrap(), &tokens["tokens"][1]);
    assert!(new != old && kept["token"] == old && kept["expires"] == soon, "{tokens:#}");
    assert_eq!(site.json("provision/user-data.auto.tfvars.json")["join_tokens"]["workers"], new);
    assert!(site.ok(&["provision"]).err.contains("0 ran"));
    assert!(!site.ok(&["status", "--quick"]).out.contains("join token"));
}

#[test]
fn gce_machines_that_prove_who_they_are_have_no_token() {
    if has_terraform() {
        prove_machines("gce");
    }
}

#[test]
fn aws_machines_that_prove_who_they_are_have_no_token() {
    if has_terraform() {
        prove_machines("aws");
    }
}

fn prove_machines(target: &str) {
    let site = Site::new(target, "single");
    site.ok(&["provision"]);
    let token = site.json("pki/token-workers.json")["tokens"][0]["token"].as_str().unwrap().to_owned();
    let is_there = |file: &str| site.test_env.path(&format!(".turnup/{}/{file}", site.name)).exists();
    site.set("phase1.user_data.identity=cloud");
    let plan = site.ok(&["plan", "provision"]).out;
    let told = "machines stay; new ones join by their cloud's word";
    assert!(plan.contains("join token workers") && plan.contains(told), "{plan}");
    site.ok(&["provision"]);
    assert!(!is_there("pki/token-workers.json") && !is_there("user-data/workers.token"));
    let told = site.json("provision/user-data.auto.tfvars.json");
    let worker = told["user_data"]["workers"].as_str().unwrap();
    assert_eq!(told["join_tokens"], json!({}));
    assert!(!worker.contains("@turnup:token@") && !worker.contains("join-token"), "{worker}");
    let state = site.read("provision/terraform.tfstate");
    assert!(!state.contains(&token) && !state.contains("/var/lib/turnup/join-token"), "Terraform forgets it too");
    assert!(site.ok(&["provision"]).err.contains("0 ran"));
    // One that is left from an interrupted run, or came back from a backup, goes as well.
    fs_err::write(site.test_env.path(&format!(".turnup/{}/user-data/workers.token", site.name)), &token).unwrap();
    site.ok(&["provision"]);
    assert!(!is_there("user-data/workers.token"));
    site.set("phase1.user_data.identity=token");
    site.ok(&["provision"]);
    let next = site.json("pki/token-workers.json")["tokens"][0]["token"].as_str().unwrap().to_owned();
    assert_ne!(next, token, "what was revoked stays so");
    assert_eq!(site.json("provision/user-data.auto.tfvars.json")["join_tokens"], json!({"workers": next}));
}

#[test]
fn gce_from_nothing_to_hosts_and_back() {
    if has_terraform() {
        live("gce", "single", "google_compute_region_instance_group_manager.fixed[\"workers\"]");
    }
}

#[test]
fn aws_from_nothing_to_hosts_and_back() {
    if has_terraform() {
        live("aws", "single", "aws_autoscaling_group.group[\"workers\"]");
    }
}

#[test]
fn azure_from_nothing_to_hosts_and_back() {
    if has_terraform() {
        live("azure", "single", "azurerm_orchestrated_virtual_machine_scale_set.public_fixed[\"workers\"]");
    }
}

#[test]
fn what_hosts_would_fetch_in_vain_is_named_before_anything_is_made() {
    if !has_terraform() {
        return;
    }
    let some = |path: &str| {
        let last = path.bytes().last().unwrap();
        if last.is_ascii_digit() { Reply::Bytes(vec![0]) } else { Reply::Status("403 Forbidden") }
    };
    let site = Site::new("gce", "single");
    for reply in [Reply::Status("404 Not Found"), Reply::By(some)] {
        site.set(&artifacts_url(reply));
        let refused = site.run(&["provision"]);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(refused.err.contains("files that hosts will fetch are not at http://127.0.0.1:"), "{}", refused.err);
        assert!(refused.err.contains(": sha256/"), "{}", refused.err);
        assert!(
            refused.err.contains("next: turnup artifacts export DIR, and copy all of DIR there"),
            "{}",
            refused.err
        );
        assert!(!site.test_env.path(&format!(".turnup/{}/provision/terraform.tfstate", site.name)).exists());
    }
    site.set(&artifacts_url(Reply::Status("403 Forbidden")));
    let remark = "lets this machine read nothing, and hosts have no login there either";
    let made = site.ok(&["provision"]).err;
    assert!(made.contains(remark), "{made}");
    site.set("phase1.user_data.artifacts_url=http://127.0.0.1:1/turnup");
    let made = site.ok(&["provision"]).err;
    let remark = "whether hosts will find what they fetch cannot be seen from here: http://127.0.0.1:1/turnup/sha256/";
    assert!(made.contains(remark), "{made}");
    assert!(site.ok(&["provision"]).err.contains("0 ran"), "what is made is not asked for again");
}

/// Hosts without public addresses behind a bastion and load balancers, as far as the inventory.
fn hand_over_three(target: &str) {
    let site = Site::new(target, "ha-private");
    site.ok(&["config", "check"]);
    site.ok(&["provision"]);
    let inventory = site.json("outputs/provision.json");
    let of_each = |field: &str| -> BTreeSet<String> {
        let hosts = inventory["hosts"].as_array().unwrap().iter();
        hosts.map(|host| host.pointer(field).unwrap_or_else(|| panic!("{field}: {host:#}")).to_string()).collect()
    };
    assert_eq!(of_each("/role"), BTreeSet::from(["\"control-plane\"".to_owned()]));
    for field in ["/name", "/address", "/instance", "/zone", "/etcd_volume/id", "/ssh/host_key"] {
        assert_eq!(of_each(field).len(), 3, "{field}: {inventory:#}");
    }
    assert_eq!(of_each("/ssh/jump/host_key").len(), 1, "one bastion: {inventory:#}");
    assert!(inventory["api"]["internal_host"].is_string(), "the inner load balancer: {inventory:#}");
    assert_eq!(inventory["api"]["node_balancer"], true, "{inventory:#}");
    if target == "gce" {
        let hosts = inventory["hosts"].as_array().unwrap().iter();
        let server =
            |host: &Value| format!("{}={}:6443", host["name"].as_str().unwrap(), host["address"].as_str().unwrap());
        let line = hosts.map(server).collect::<Vec<_>>().join(",");
        let state = site.read("provision/terraform.tfstate");
        assert!(state.contains(&format!("{line}\\\\n")) && !state.contains("@turnup:"), "{line} is told to workers");
    }
    let again = site.ok(&["provision"]).err;
    assert!(again.contains("0 ran"), "{again}");
}

#[test]
fn gce_hands_three_control_planes_over() {
    if has_terraform() {
        hand_over_three("gce");
    }
}

#[test]
fn aws_hands_three_control_planes_over() {
    if has_terraform() {
        hand_over_three("aws");
    }
}

#[test]
fn azure_hands_three_control_planes_over() {
    if has_terraform() {
        hand_over_three("azure");
    }
}

/// etcd would count a host that is gone as one that is dead: one of three could never decide
/// anything again.
#[test]
fn a_control_plane_host_leaves_etcd_before_it_goes() {
    if !has_terraform() {
        return;
    }
    let site = Site::new("gce", "ha-private");
    site.ok(&["provision"]);
    let hosts = site.json("outputs/provision.json")["hosts"].as_array().unwrap().clone();
    let (mut members, mut listed) = (Vec::new(), Vec::new());
    for (id, host) in (1..).zip(&hosts) {
        let (name, url) = (&host["name"], format!("https://{}:2380", host["address"].as_str().unwrap()));
        members.push(json!({"name": name, "address": host["address"], "instance": host["instance"], "start": "new", "first": []}));
        listed.push(json!({"ID": id, "name": name, "peerURLs": [url], "clientURLs": [url]}));
    }
    let document = json!({"schema": "turnup.etcd/1", "stage": "established", "members": members});
    let known = format!(".turnup/{}/outputs/etcd.json", site.name);
    site.test_env.write(&known, &document.to_string().replace("established", "started"));
    site.test_env.write("bin/members", &json!({"members": listed}).to_string());

    site.ok(&["config", "set", "phase1.control_plane.count=1", "phase1.api.exposure=load-balancer"]);
    let plan = site.ok(&["plan", "provision"]).out;
    assert!(plan.contains(&format!("etcd member {}", hosts[2]["name"].as_str().unwrap())), "{plan}");
    let volume = |member: &str| format!("google_compute_disk.etcd[\"main-{member}\"]");
    let fewer = ["provision", "--allow-volume-loss", &volume("b"), "--allow-volume-loss", &volume("c")];
    assert_eq!(site.run(&["provision"]).code, 4, "no volume loss was allowed");
    assert!(!site.test_env.path("bin/left").exists(), "a host left, and stays");
    let refused = site.run(&fewer);
    assert!(refused.code == 3 && refused.err.contains("changed before etcd had a majority"), "{}", refused.err);
    site.test_env.write(&known, &document.to_string());
    site.test_env.write("bin/stuck", "");
    let refused = site.run(&fewer);
    assert!(refused.code != 0 && refused.err.contains("hosts that go must leave etcd first"), "{}", refused.err);
    assert!(site.read("provision/terraform.tfstate").contains("main-c"), "nothing was applied");
    fs_err::remove_file(site.test_env.path("bin/stuck")).unwrap();
    site.ok(&fewer);
    assert_eq!(site.test_env.read("bin/left"), "remove 2 before main-c\nremove 3 before main-c\n");
    assert_eq!(site.json("outputs/etcd.json")["members"].as_array().unwrap().len(), 1);
    assert_eq!(site.json("outputs/provision.json")["hosts"].as_array().unwrap().len(), 1);
    assert!(site.ok(&["provision"]).err.contains("0 ran"));
    let asked = site.ok(&["provision", "--refresh"]).err;
    assert!(asked.contains("looked for (--refresh)") && asked.contains("provision/apply done"), "{asked}");
}

/// The ssh above with machines that have other keys.
fn recreate_machines(site: &Site) {
    let other = site.test_env.read("bin/ssh").replace("KEYOF", "OTHERKEYOF");
    site.test_env.write("bin/ssh", &other);
}

#[test]
fn a_host_key_is_learnt_again_on_request() {
    if !has_terraform() {
        return;
    }
    let site = Site::new("gce", "ha-private");
    let early = site.run(&["provision", "--reset-host-key", "x"]);
    assert!(early.code != 0 && early.err.contains("provision.json is not there yet"), "{}", early.err);
    site.ok(&["provision"]);
    let keys = |field: &str| -> Vec<String> {
        let inventory = site.json("outputs/provision.json");
        let hosts = inventory["hosts"].as_array().unwrap().iter();
        hosts.map(|host| host.pointer(field).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let (before, bastion) = (keys("/ssh/host_key"), keys("/ssh/jump/host_key"));
    recreate_machines(&site);
    assert!(site.ok(&["provision"]).err.contains("0 ran"), "no reset was requested");
    let name = keys("/name")[1].clone();
    let wrong = site.run(&["provision", "--reset-host-key", "unknown"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.contains("no host key of this name") && wrong.err.contains(&name), "{}", wrong.err);
    let done = site.ok(&["provision", "--reset-host-key", &name]).err;
    assert!(
        done.contains("1 ran")
            && done.contains(&format!("{name} has the host key ssh-ed25519 "))
            && done.contains("OTHERKEYOF"),
        "{done}"
    );
    let after = keys("/ssh/host_key");
    assert!(after[0] == before[0] && after[1] != before[1] && after[2] == before[2], "{before:?} {after:?}");
    assert_eq!(keys("/ssh/jump/host_key"), bastion, "the bastion is still the same");
    assert!(site.read("ssh/known_hosts").contains(&after[1]), "from now on it is believed");
    assert!(site.ok(&["provision"]).err.contains("0 ran"));
    let address = site.json("outputs/provision.json")["hosts"][0]["ssh"]["jump"]["host"].as_str().unwrap().to_owned();
    site.ok(&["provision", "--reset-host-key", &address]);
    assert_eq!(keys("/ssh/host_key"), after, "the hosts behind it are still the same");
    assert!(keys("/ssh/jump/host_key").iter().all(|key| key.contains("OTHERKEYOF")));
}

#[test]
fn a_machine_that_does_not_answer_is_waited_for_and_named() {
    if !has_terraform() {
        return;
    }
    let site = Site::new("gce", "single");
    site.test_env.write("bin/silent", "");
    site.set("phase1.ssh.connect_timeout=1s");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/phases/provision/targets/gce/phase.toml");
    let manifest = fs_err::read_to_string(manifest).unwrap().replace("timeout = \"10m\"", "timeout = \"4s\"");
    // A tree of one's own, in which the step has less time.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for dir in ["phases", "templates"] {
        copy(&root.join(dir), &site.test_env.path(dir));
    }
    assert!(fs_err::copy(root.join("Kconfig"), site.test_env.path("Kconfig")).is_ok());
    site.test_env.write("phases/provision/targets/gce/phase.toml", &manifest);
    let failed = site.run(&["provision"]);
    assert_eq!(failed.code, 5, "{}", failed.err);
    assert!(failed.err.contains("cannot reach turnup@192.0.2."), "{}", failed.err);
    fs_err::remove_file(site.test_env.path("bin/silent")).unwrap();
    let done = site.ok(&["provision"]).err;
    assert!(done.contains("1 ran"), "only the last step runs again: {done}");
}

fn copy(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { assert!(fs_err::copy(&path, &to).is_ok()) }
    }
}

#[test]
fn what_a_cloud_would_refuse_is_told_by_config_check_with_its_place() {
    let site = Site::new("gce", "single");
    site.set(r#"phase1.node_groups=[{"name": "far", "role": "worker", "size": 1, "zones": ["europe-west3-a"]}]"#);
    let refused = site.run(&["config", "check"]);
    assert_eq!(refused.code, 3, "{}{}", refused.out, refused.err);
    let told = refused.out + &refused.err;
    assert!(told.contains(".config.json:") && told.contains("phase1.node_groups (zones of far): "), "{told}");
    let stopped = site.run(&["provision"]);
    assert!(
        stopped.code == 3 && !site.test_env.path(&format!(".turnup/{}/provision", site.name)).exists(),
        "{}",
        stopped.err
    );
}
