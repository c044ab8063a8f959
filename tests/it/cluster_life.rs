//! The life of a real cluster on this machine: up, nothing to do, grown, hosts lost, machine
//! restarted, shrunk, down. Nothing is faked.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster_agent::{a_stopped_agent_is_started, hosts_are_kept_as_their_node_config_says, without_agents};
use crate::cluster_firewall::{hosts_reach_only_open_ports_of_this_machine, pods_reach_no_port_of_the_hosts};
use crate::cluster_identity;
use crate::cluster_support::{Events, Site, names_in, remove_cgroups, say, sh};
use crate::cluster_upgrade::workers_are_drained_one_by_one;

const CONTROL_PLANE: &str = "it-control-plane-0";
const FIRST: &str = "it-worker-0";
const SECOND: &str = "it-worker-1";

/// A part of the story of one cluster.
type Chapter = fn(&Site);

#[test]
fn a_cluster_lives_and_leaves_nothing() {
    let Some(site) = Site::of_cluster("life", "10.121.1.0/24", 1) else { return };
    let before = site.look_around();
    let story: [(&str, Chapter); 18] = [
        ("up", turned_up_it_says_what_it_did),
        ("identity", join_tokens_and_health_checks_give_nothing_away),
        ("nothing to do", a_second_run_does_nothing),
        ("commands", the_other_commands_work),
        ("firewall", pods_reach_no_port_of_the_hosts),
        ("open ports", hosts_reach_only_open_ports_of_this_machine),
        ("planned", a_changed_setting_runs_exactly_the_steps_that_were_planned),
        ("moved world", a_plan_is_refused_when_the_world_moved),
        ("grow", one_more_worker_leaves_other_hosts_untouched),
        ("deleted host", a_deleted_worker_comes_back),
        ("lost host", a_worker_lost_with_its_disk_comes_back),
        ("kubeconfig", a_damaged_kubeconfig_is_restored),
        ("people", people_are_members_of_groups_and_rbac_decides),
        ("agent", hosts_are_brought_back_to_their_node_config),
        ("rolling update", nodes_are_drained_before_their_runtime_restarts),
        ("restart", after_a_restart_of_the_machine_it_is_the_same_cluster),
        ("shrink", a_worker_less_is_a_node_less),
        ("down", down_needs_no_question_in_a_script),
    ];
    for (name, chapter) in story {
        let start = Instant::now();
        chapter(&site);
        say(&format!("{name}: {:.1} s", start.elapsed().as_secs_f64()));
    }
    assert!(!site.dir.join(".turnup").join("it").exists());
    let after = site.look_around();
    let left: Vec<&String> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind or changed: {left:#?}");
}

fn turned_up_it_says_what_it_did(site: &Site) {
    // The very first run, bound to a plan that was made when nothing existed.
    let plan = site.ok(&["plan", "--out", "plan.json"]).out;
    assert!(plan.contains("+   resource terraform_data.host[\"it-worker-0\"]"), "{plan}");
    assert!(!site.state().exists(), "to plan leaves nothing behind");
    let done = site.ok(&["up", "--plan", "plan.json"]);
    for milestone in ["certificates", "etcd healthy", "API server ready", "CoreDNS ready"] {
        let row = |line: &&str| line.starts_with(milestone) && line.trim_end().ends_with('s');
        assert!(done.err.lines().any(|line| row(&line)), "no time for {milestone:?}: {done}");
    }
    for phase in ["provision", "bootstrap", "addons", "total"] {
        assert!(done.err.lines().any(|line| line.starts_with(phase)), "no time for {phase:?}: {done}");
    }
    for (node, role) in [(CONTROL_PLANE, "control-plane"), (FIRST, "worker")] {
        let row = done.out.lines().find(|line| line.starts_with(node)).unwrap();
        assert!(row.contains(" Ready ") && row.contains(role) && row.contains("10.121.1."), "{row}");
    }
    let export = done.out.lines().last().unwrap();
    assert_eq!(export, format!("export KUBECONFIG={}", site.path("kubeconfig").display()));
    site.kubectl(&["create", "configmap", "mark", "--from-literal=made=before"]);
}

fn join_tokens_and_health_checks_give_nothing_away(site: &Site) {
    cluster_identity::a_host_joined_and_its_token_is_gone(site, CONTROL_PLANE, FIRST);
    cluster_identity::health_is_yes_or_no(site, CONTROL_PLANE);
    cluster_identity::is_left_alone(site, "attacker-of-host");
}

fn a_second_run_does_nothing(site: &Site) {
    let journal = site.read("journal.jsonl");
    let start = Instant::now();
    let events = site.up();
    // Seconds on an otherwise idle machine.
    say(&format!("up with nothing to do: {:.1} s", start.elapsed().as_secs_f64()));
    assert_eq!(events.ran(), BTreeSet::new());
    assert_eq!(events.of("phase-done", "ran"), ["0", "0", "0"]);
    assert_eq!(site.read("journal.jsonl"), journal);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

fn the_other_commands_work(site: &Site) {
    let status = site.ok(&["status"]).out;
    assert!(status.contains(CONTROL_PLANE) && status.contains("coredns"), "{status}");
    assert_eq!(site.ok(&["kubeconfig"]).out.trim(), site.path("kubeconfig").display().to_string());
    let report = site.ok(&["validate"]).out;
    assert!(!report.is_empty());
    assert_eq!(site.ok(&["config", "diff", "applied"]).out, "");
    assert_eq!(
        site.ok(&["config", "diff", "applied", "--set", "phase1.num_nodes=2"]).out,
        " phase1.num_nodes: 1 -> 2\n"
    );
    let worker = site.ok(&["config", "show", FIRST]).out;
    assert!(
        worker.contains("\nfile /etc/kubernetes/pki/ca.crt = ("),
        "the certificate itself, not a word for it: {worker}"
    );
}

/// `where` and the plan predict what a setting changes: these steps run again, and no others.
fn a_changed_setting_runs_exactly_the_steps_that_were_planned(site: &Site) {
    for (name, value) in [("phase2.max_pods", "120"), ("phase3.dns_replicas", "2"), ("phase3.dns_replicas", "1")] {
        let said = site.ok(&["config", "where", name, "--output", "json"]).out;
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let plan_steps: BTreeSet<String> =
            said["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap().to_owned()).collect();
        site.ok(&["config", "set", &format!("{name}={value}")]);
        let planned = planned_steps(site);
        let ran = up_by_plan(site);
        assert_eq!(ran, planned, "{name}");
        let ran: BTreeSet<String> = ran.iter().map(|id| id.split('@').next().unwrap().to_owned()).collect();
        assert_eq!(ran, plan_steps, "{name}");
    }
    // Several at once, each with an impact of its own.
    site.ok(&["config", "set", "phase2.max_pods=130", "phase2.security.audit=n", "phase3.dns_replicas=2"]);
    let planned = planned_steps(site);
    let plan = site.json_of("plan.json");
    let impact =
        |name: &str| plan["changed"].as_array().unwrap().iter().find(|change| change["name"] == name).cloned().unwrap();
    assert_eq!(impact("phase2.max_pods")["restarts"][FIRST], serde_json::json!(["kubelet.service"]));
    let audit = impact("phase2.security.audit");
    assert_eq!(audit["restarts"][CONTROL_PLANE], serde_json::json!(["static pod kube-apiserver"]));
    assert!(audit["restarts"].get(FIRST).is_none() && audit["recreates"] == serde_json::json!({}), "{audit}");
    assert_eq!(impact("phase3.dns_replicas")["restarts"], serde_json::json!({}));
    let apply = plan["steps"].as_array().unwrap().iter().find(|step| step["id"] == "addons/apply").unwrap();
    let lines: Vec<String> = serde_json::from_value(apply["preview"]["changes"][0]["lines"].clone()).unwrap();
    assert_eq!(lines[2..], ["-   replicas: 1", "+   replicas: 2"], "the hash, and nothing of what the cluster writes");
    assert_eq!(up_by_plan(site), planned);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["config", "set", "phase2.max_pods=110", "phase2.security.audit=y", "phase3.dns_replicas=1"]);
    site.up();
}

/// The steps that the plan in `plan.json` says will run; it has to be sure of each.
fn planned_steps(site: &Site) -> BTreeSet<String> {
    site.ok(&["plan", "--out", "plan.json"]);
    let plan = site.json_of("plan.json");
    let steps = plan["steps"].as_array().unwrap().iter();
    let moving = steps.filter(|step| step["decision"] != "skip").map(|step| {
        assert_eq!(step["decision"], "run", "{step}");
        step["id"].as_str().unwrap().to_owned()
    });
    moving.collect()
}

fn up_by_plan(site: &Site) -> BTreeSet<String> {
    let done = site.ok(&["up", "--plan", "plan.json", "--output", "json"]);
    Events::parse(&done.out).ran()
}

/// A plan is bound to its inputs: each thing that changes afterwards is named, and nothing is done.
fn a_plan_is_refused_when_the_world_moved(site: &Site) {
    site.ok(&["config", "set", "phase2.max_pods=100"]);
    site.ok(&["plan", "--out", "plan.json"]);
    let journal = site.read("journal.jsonl");
    let refused = |says: &str| {
        let done = site.fails(4, &["up", "--plan", "plan.json"]);
        assert!(done.err.contains(says), "{says}: {done}");
        assert!(done.err.contains("next: turnup plan --out FILE"), "{done}");
        assert_eq!(site.read("journal.jsonl"), journal, "nothing was started");
    };
    site.ok(&["config", "set", "phase2.max_pods=101"]);
    refused("the configuration changed: phase2.max_pods");
    site.ok(&["config", "set", "phase2.max_pods=100"]);

    let in_host = |script: &str| site.in_host(FIRST, script);
    without_agents(site, &[FIRST], || {
        in_host("cp /etc/containerd/config.toml /var/tmp/kept && echo '# foreign' >>/etc/containerd/config.toml");
        refused("it-worker-0: change file /etc/containerd/config.toml");
        in_host("cp /var/tmp/kept /etc/containerd/config.toml");
    });

    site.kubectl(&["--namespace=kube-system", "scale", "deployment/coredns", "--replicas=3"]);
    refused("the cluster does not have coredns");
    site.kubectl(&["--namespace=kube-system", "scale", "deployment/coredns", "--replicas=1"]);
    // Scaled back, the spec is what it was, but the object was written to: only a new plan can say
    // whether that matters.
    site.ok(&["plan", "--out", "plan.json"]);

    site.ok(&["up"]);
    let done = site.fails(4, &["up", "--plan", "plan.json"]);
    assert!(
        done.err.contains("steps were run since line") && done.err.contains("since then: bootstrap/join@"),
        "{done}"
    );
    site.ok(&["config", "set", "phase2.max_pods=110"]);
    site.up();
}

fn one_more_worker_leaves_other_hosts_untouched(site: &Site) {
    let others = Untouched::look(site, &[CONTROL_PLANE, FIRST]);
    site.ok(&["config", "set", "phase1.num_nodes=2"]);
    let plan = site.ok(&["plan"]).out;
    assert!(plan.contains("num_nodes"), "{plan}");
    site.up();
    others.check(site);
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST, SECOND]);
}

fn a_deleted_worker_comes_back(site: &Site) {
    let others = Untouched::look(site, &[CONTROL_PLANE, SECOND]);
    let spec = site.path(&format!("provision/hosts/{FIRST}.json"));
    let old = site.hosts()[FIRST]["instance"].clone();
    site.ok(&["local", "host", "delete", "--spec", &spec.display().to_string()]);
    site.up();
    assert_ne!(site.hosts()[FIRST]["instance"], old, "a new host is another instance");
    others.check(site);
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST, SECOND]);
    site.ok(&["validate"]);
}

fn a_worker_lost_with_its_disk_comes_back(site: &Site) {
    let others = Untouched::look(site, &[CONTROL_PLANE, FIRST]);
    lose_power(site, SECOND);
    let dir = site.path(&format!("hosts/{SECOND}"));
    // What the kernel still ends may write while it is removed.
    let end = Instant::now() + Duration::from_mins(10);
    while dir.exists() {
        assert!(Instant::now() < end, "{} cannot be removed", dir.display());
        sh(&format!("rm -rf '{}'", dir.display()));
    }
    site.up();
    others.check(site);
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST, SECOND]);
    site.ok(&["validate"]);
}

fn a_damaged_kubeconfig_is_restored(site: &Site) {
    let good = site.read("kubeconfig");
    let damages = [
        ("broken", "}".to_owned()),
        ("emptied", good.replace("\nclusters:", "\nklusters:")),
        ("elsewhere", good.replace("10.121.1.10", "10.121.1.99")),
    ];
    for (name, damaged) in damages {
        fs_err::write(site.path("kubeconfig"), &damaged).unwrap();
        let done = site.run(&["status"]);
        insta::assert_snapshot!(
            format!("kubeconfig_{name}"),
            format!("exit {:?}\n{}", done.code, site.error_of(&done))
        );
        let events = site.up();
        assert_eq!(events.ran(), BTreeSet::from(["bootstrap/api".to_owned()]));
        assert_eq!(site.read("kubeconfig"), good);
    }
    fs_err::write(site.path("kubeconfig"), "").unwrap();
    site.ok(&["kubeconfig"]);
    assert_eq!(site.read("kubeconfig"), good);
}

fn people_are_members_of_groups_and_rbac_decides(site: &Site) {
    let whoami = |kubeconfig: &str| -> serde_json::Value {
        let said = site.kubectl(&[kubeconfig, "auth", "whoami", "--output=json"]);
        serde_json::from_str::<serde_json::Value>(&said).unwrap()["status"]["userInfo"].clone()
    };
    let config = |file: &Path| format!("--kubeconfig={}", file.display());
    let own = config(&site.path("kubeconfig"));
    assert_eq!(whoami(&own)["groups"], serde_json::json!(["turnup:cluster-admins", "system:authenticated"]));

    let bob = config(&site.dir.join("bob"));
    site.ok(&["kubeconfig", "--user", "bob", "--group", "viewers", "--group", "audit", "--to", "bob"]);
    assert_eq!(whoami(&bob)["groups"], serde_json::json!(["viewers", "audit", "system:authenticated"]));
    let pods = [&bob, "get", "pods", "--namespace=default"];
    assert!(site.try_kubectl(&pods).is_err_and(|said| said.contains("User \"bob\" cannot list resource")));
    site.kubectl(&["create", "clusterrolebinding", "viewers", "--clusterrole=view", "--group=viewers"]);
    let start = Instant::now();
    while let Err(said) = site.try_kubectl(&pods) {
        assert!(start.elapsed() < Duration::from_mins(1), "{said}");
    }
    assert!(site.try_kubectl(&[&bob, "get", "secrets"]).is_err());
    site.kubectl(&["delete", "clusterrolebinding", "viewers"]);

    site.kubectl(&["delete", "clusterrolebinding", "turnup:cluster-admins"]);
    let nodes = [&own, "get", "nodes"];
    while site.try_kubectl(&nodes).is_ok() {
        assert!(start.elapsed() < Duration::from_mins(2), "the binding still counts");
    }
    site.ok(&["kubeconfig", "--break-glass", "--to", "glass", "--yes", "--reason", "the binding is gone"]);
    let glass = config(&site.dir.join("glass"));
    site.kubectl(&[&glass, "get", "nodes"]);
    let recorded = &site.json("state.json")["credentials"][1];
    let known = format!("X509SHA256={}", recorded["sha256"].as_str().unwrap());
    assert_eq!(whoami(&glass)["extra"]["authentication.kubernetes.io/credential-id"], serde_json::json!([known]));
    let ran = site.up().ran();
    assert!(ran.contains("bootstrap/rbac"), "{ran:?}");
    site.kubectl(&nodes);
    assert_eq!(site.up().ran(), BTreeSet::new());
}

fn hosts_are_brought_back_to_their_node_config(site: &Site) {
    hosts_are_kept_as_their_node_config_says(site, &[CONTROL_PLANE, SECOND]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    a_stopped_agent_is_started(site, SECOND);
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST, SECOND]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

/// Settings of containerd restart it.
fn nodes_are_drained_before_their_runtime_restarts(site: &Site) {
    workers_are_drained_one_by_one(site, &[FIRST, SECOND], 0, &["phase2.runtime.max_concurrent_downloads=4"]);
}

fn after_a_restart_of_the_machine_it_is_the_same_cluster(site: &Site) {
    let identity = site.identity();
    let instances = site.hosts();
    for host in instances.keys() {
        lose_power(site, host);
    }
    // A restart also loses everything in memory.
    let id = site.id();
    for name in names_in(Path::new("/run/netns")).iter().filter(|name| name.contains(&id)) {
        sh(&format!("ip netns delete {name}"));
    }
    sh(&format!("ip link delete tu-{id}"));
    remove_cgroups(&id);
    let events = site.up();
    let started = instances.keys().map(|host| format!("provision/start@{host}"));
    assert!(events.ran().is_superset(&started.collect()), "{:?}", events.ran());
    assert_eq!(site.identity(), identity, "another authority or another etcd member");
    assert_eq!(site.hosts(), instances);
    for host in instances.keys() {
        site.in_host(host, "nft list chain inet turnup input");
    }
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST, SECOND]);
    assert_eq!(site.kubectl(&["get", "configmap", "mark", "--output=jsonpath={.data.made}"]), "before");
    site.ok(&["validate"]);
}

fn a_worker_less_is_a_node_less(site: &Site) {
    let others = Untouched::look(site, &[CONTROL_PLANE, FIRST]);
    site.ok(&["config", "set", "phase1.num_nodes=1"]);
    let events = site.up();
    assert!(events.of("step-forgotten", "step").iter().any(|step| step.ends_with(SECOND)));
    others.check(site);
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

fn down_needs_no_question_in_a_script(site: &Site) {
    let done = site.fails(2, &["down"]);
    assert!(done.err.contains("turnup down --yes"), "{done}");
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, FIRST]);
    site.ok(&["down", "--yes"]);
    // A second time changes nothing.
    site.ok(&["down", "--yes"]);
}

/// Kills the host's processes at once, and its mounts with them. Its disk stays.
fn lose_power(site: &Site, host: &str) {
    site.cut_power(host);
    let root = site.path(&format!("hosts/{host}/root"));
    sh(&format!("umount '{0}' || umount --lazy '{0}'", root.display()));
}

/// Proof that hosts were not touched: same instance, same processes, same containers, no step in
/// the journal.
struct Untouched {
    hosts: BTreeMap<String, Vec<String>>,
    journal: usize,
}

impl Untouched {
    fn look(site: &Site, hosts: &[&str]) -> Self {
        let facts = |host: &&str| ((*host).to_owned(), Self::facts(site, host));
        Self { hosts: hosts.iter().map(facts).collect(), journal: site.read("journal.jsonl").lines().count() }
    }

    fn facts(site: &Site, host: &str) -> Vec<String> {
        let mut facts = vec![site.hosts()[host].to_string(), format!("leader {:?}", site.leader(host))];
        let on_host = format!("--field-selector=spec.nodeName={host}");
        for pod in site.get(&["pods", "--all-namespaces", &on_host]) {
            let owner = pod["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap_or_default();
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            // These two end by themselves where the machine is too slow for their leases, and are
            // started again. A Deployment's pods may go where there is more room.
            if ["kube-controller-manager-", "kube-scheduler-"].iter().any(|start| name.starts_with(start)) {
                facts.push(format!("{name} {}", pod["metadata"]["uid"]));
            } else if owner == "Node" || owner == "DaemonSet" {
                let containers = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
                facts.extend(
                    containers.map(|container| {
                        format!("{name} {} {}", container["containerID"], container["state"]["running"])
                    }),
                );
            }
        }
        facts
    }

    fn check(&self, site: &Site) {
        for (host, facts) in &self.hosts {
            assert_eq!(&Self::facts(site, host), facts, "{host} was touched");
        }
        for line in site.read("journal.jsonl").lines().skip(self.journal) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let step = line["entry"]["step"].as_str().unwrap();
            let host = self.hosts.keys().find(|host| step.ends_with(&format!("@{host}")));
            assert_eq!(host, None, "{step} ran");
        }
    }
}
