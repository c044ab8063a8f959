//! Bare metal from a typed list, on hosts that are made up: what is found about them before
//! anything is touched, what becomes of labels and taints, and how the inventory is planned.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use crate::simulation::Simulation;

const LIST: &str = "phase1.baremetal.hosts";

/// A list of this many hosts at the simulation's addresses.
fn list(count: usize) -> Vec<Value> {
    let host = |index: usize| {
        json!({
            "name": format!("h{index}"),
            "role": if index == 0 { "control-plane" } else { "worker" },
            "address": format!("10.125.{}.{}", index / 250, index % 250 + 1),
            "host_key": format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{index:A>42}"),
        })
    };
    (0..count).map(host).collect()
}

fn set(simulation: &Simulation, hosts: &[Value]) {
    simulation.ok(&["config", "set", &format!("{LIST}={}", json!(hosts))]);
}

fn look(simulation: &Simulation, index: usize, change: &Value) {
    let file = simulation.world(&format!("hosts/10.125.0.{}/look.json", index + 1));
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(file, change.to_string()).unwrap();
}

fn node(simulation: &Simulation, name: &str) -> Value {
    let text = fs_err::read_to_string(simulation.world(&format!("api/nodes/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn everything_about_every_host_is_said_at_once_and_nothing_is_touched() {
    let simulation = Simulation::new(1);
    set(&simulation, &list(7));
    look(&simulation, 1, &json!({"clock_ahead": 30.0, "memory": "MemTotal: 204800 kB"}));
    look(
        &simulation,
        2,
        &json!({"machine-id": format!("{:0>32}", "1012501"), "systemd": null, "release": "PRETTY_NAME=\"openSUSE Leap 15.6\""}),
    );
    look(
        &simulation,
        3,
        &json!({"lacks": "conntrack", "own": "runc /usr/sbin/runc runc version 1.1.5+ds1", "disk": "/dev/vda1 1000 1000 1048576 99% /", "swap": "yes"}),
    );
    look(&simulation, 4, &json!({"listens": "LISTEN 0 5 *:10250 *:* users:((\"k3s\",pid=7,fd=3))"}));
    look(&simulation, 5, &json!({"lacks": "conntrack", "cgroup": "1"}));
    let denied = "root@10.125.0.7: Permission denied (publickey).\n";
    simulation.script(&[json!({"tool": "ssh", "when": ["10.125.0.7 "], "exit": 255, "stderr": denied})]);
    let ended = simulation.run(&["up"]);
    assert_eq!(ended.code, 4, "{ended}");
    let dir = fs_err::canonicalize(simulation.path("")).unwrap().display().to_string();
    let error = ended.error().replace(&dir, "DIR");
    let lines: Vec<&str> = error.lines().filter(|line| !line.contains("log: ")).collect();
    let text = lines.join("\n");
    // The reported clock skew is uncertain by the round trip to the host.
    let (before, after) = text.split_once("its clock is ").unwrap();
    let (off, after) = after.split_once(' ').unwrap();
    assert!((20.0..=30.0).contains(&off.parse::<f64>().unwrap()), "{ended}");
    insta::assert_snapshot!(format!("{before}its clock is … {after}"));
    assert!(!simulation.world("hosts/10.125.0.1/turnup").exists(), "a host was touched");
    assert!(ended.err.contains("h3: swap is on"), "{ended}");
    assert!(ended.err.contains("h5: cgroup v1 works"), "{ended}");
    assert!(ended.err.contains("h3: its own runc 1.1.5+ds1 (/usr/sbin/runc) has CVE-2024-21626"), "{ended}");
}

#[test]
fn only_hosts_that_cannot_be_reached_are_asked_again() {
    let simulation = Simulation::new(1);
    set(&simulation, &list(4));
    let refused = "ssh: connect to host 10.125.0.2 port 22: Connection refused\n";
    simulation
        .script(&[json!({"tool": "ssh", "when": ["10.125.0.2 ", "look"], "times": 2, "exit": 255, "stderr": refused})]);
    let ended = simulation.ok(&["provision"]);
    assert!(ended.err.contains("1 of 4 hosts did not answer: tried again in 2 s"), "{ended}");
    assert!(ended.err.contains("4 hosts can become nodes"), "{ended}");
}

#[test]
fn a_host_whose_answer_broke_off_is_asked_again() {
    let simulation = Simulation::new(1);
    set(&simulation, &list(2));
    let half = "turnup-look\n";
    simulation
        .script(&[json!({"tool": "ssh", "when": ["10.125.0.2 ", "look"], "times": 1, "exit": 0, "stdout": half})]);
    let ended = simulation.ok(&["provision"]);
    assert!(ended.err.contains("1 of 2 hosts did not answer: tried again in 1 s"), "{ended}");
    assert!(ended.err.contains("2 hosts can become nodes"), "{ended}");
}

#[test]
fn a_thousand_hosts_are_looked_at_in_one_run_and_the_wrong_ones_named() {
    let simulation = Simulation::new(1);
    simulation.ok(&["config", "set", "phase2.pod_cidr=10.128.0.0/14"]);
    // More than one argument of a command holds.
    let file = simulation.path("work/.config.json");
    let mut config: Value = serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
    config["phase1"]["baremetal"]["hosts"] = json!(list(1000));
    fs_err::write(&file, config.to_string()).unwrap();
    let no_root = "sudo: a password is required\n";
    let denied = "root@10.125.3.250: Permission denied (publickey).\n";
    simulation.script(&[
        json!({"tool": "ssh", "when": ["10.125.2.17 ", "look"], "exit": 1, "stderr": no_root}),
        json!({"tool": "ssh", "when": ["10.125.3.250 "], "exit": 255, "stderr": denied}),
    ]);
    let ended = simulation.run(&["provision"]);
    assert_eq!(ended.code, 4, "{ended}");
    for words in ["2 of 1000 hosts cannot become nodes", "h516: ", "h999: cannot reach root@10.125.3.250"] {
        assert!(ended.err.contains(words), "{words}: {ended}");
    }
    assert!(!simulation.state("outputs/provision.json").exists(), "nothing was handed over");
    simulation.script(&[]);
    let ended = simulation.ok(&["provision"]);
    assert!(ended.err.contains("1000 hosts can become nodes"), "{ended}");
    let inventory: Value =
        serde_json::from_str(&fs_err::read_to_string(simulation.state("outputs/provision.json")).unwrap()).unwrap();
    assert_eq!(inventory["hosts"].as_array().unwrap().len(), 1000);
    let lines = ended.err.lines().count();
    assert!(lines < 60, "{lines} lines for a thousand hosts:\n{ended}");
}

#[test]
fn labels_taints_and_zone_follow_the_list_and_others_stay() {
    let simulation = Simulation::new(1);
    let mut hosts = list(2);
    hosts[1]["zone"] = json!("rack-1");
    hosts[1]["labels"] = json!({"example.com/pool": "fast", "example.com/gone": "soon"});
    hosts[1]["taints"] = json!(["gpu=yes:NoSchedule", "slow:NoExecute"]);
    set(&simulation, &hosts);
    simulation.ok(&["up"]);
    let carried = node(&simulation, "h1");
    assert_eq!(carried["metadata"]["labels"]["topology.kubernetes.io/zone"], "rack-1");
    assert_eq!(carried["metadata"]["labels"]["example.com/pool"], "fast");
    assert_eq!(carried["metadata"]["labels"]["node-role.kubernetes.io/worker"], "");
    assert_eq!(carried["spec"]["taints"].as_array().unwrap().len(), 2, "{carried:#}");
    let node_config = fs_err::read_to_string(simulation.state("node-config/h1.json")).unwrap();
    assert!(node_config.contains(r#""key": "gpu""#), "a kubelet registers with its taints: {node_config}");
    // A taint of another controller, and one that an administrator set.
    let mut other = carried;
    other["spec"]["taints"].as_array_mut().unwrap().push(json!({"key": "theirs", "value": "", "effect": "NoSchedule"}));
    other["metadata"]["labels"]["theirs"] = json!("x");
    fs_err::write(simulation.world("api/nodes/h1.json"), other.to_string()).unwrap();
    hosts[1]["labels"] = json!({"example.com/pool": "slow"});
    hosts[1]["taints"] = json!(["gpu=no:NoSchedule"]);
    hosts[1]["zone"] = json!("");
    set(&simulation, &hosts);
    let plan = simulation.ok(&["plan"]).out;
    for word in ["~   host h1", "-   \"zone\": \"rack-1\"", "bootstrap/label-nodes@h1"] {
        assert!(plan.contains(word), "{word}: {plan}");
    }
    assert!(!plan.contains("provision/hosts"), "a label is no reason to look at hosts again: {plan}");
    simulation.ok(&["up"]);
    let carried = node(&simulation, "h1");
    let labels = carried["metadata"]["labels"].as_object().unwrap();
    assert_eq!((&labels["example.com/pool"], &labels["theirs"]), (&json!("slow"), &json!("x")));
    assert!(!labels.contains_key("example.com/gone") && !labels.contains_key("topology.kubernetes.io/zone"));
    let taints = carried["spec"]["taints"].as_array().unwrap();
    let shown: Vec<String> = taints.iter().map(|taint| format!("{}={}", taint["key"], taint["value"])).collect();
    assert_eq!(shown, [r#""theirs"="""#, r#""gpu"="no""#]);
    assert_eq!(simulation.ok(&["plan"]).out.trim(), "nothing to do");
}

#[test]
fn a_joining_host_is_planned_and_the_others_keep_their_ports() {
    let simulation = Simulation::new(1);
    set(&simulation, &list(2));
    simulation.ok(&["up"]);
    look(&simulation, 1, &json!({"listens": "LISTEN 0 5 *:10250 *:* users:((\"kubelet\",pid=7,fd=3))"}));
    set(&simulation, &list(3));
    let plan = simulation.ok(&["plan"]).out;
    assert!(plan.contains("+   host h2") && plan.contains("provision/hosts"), "{plan}");
    simulation.ok(&["up"]);
    assert_eq!(node(&simulation, "h2")["metadata"]["labels"]["turnup.dev/managed"], "");
    set(&simulation, &list(2));
    assert!(simulation.ok(&["plan"]).out.contains("-   host h2"));
    simulation.ok(&["up"]);
    assert!(!simulation.world("api/nodes/h2.json").exists());
}

#[test]
fn a_list_that_cannot_be_is_refused_where_it_stands() {
    let simulation = Simulation::new(1);
    set(&simulation, &list(3));
    let config = simulation.path("work/.config.json");
    let good = fs_err::read_to_string(&config).unwrap();
    let bad =
        good.replace("10.125.0.3", "10.125.0.2").replace("AAAA2", "AAAA1").replace("\"control-plane\"", "\"worker\"");
    fs_err::write(&config, bad).unwrap();
    for command in [&["config", "check"][..], &["plan"], &["up"]] {
        let ended = simulation.run(command);
        assert_eq!(ended.code, 3, "{ended}");
        let said = format!("{}{}", ended.out, ended.err);
        for word in [
            "h1 and h2 have the same address",
            "h1 and h2 have the same host_key",
            "no host has the role control-plane",
        ] {
            let line = said.lines().find(|line| line.contains(word)).unwrap_or_default();
            let place: Vec<&str> = line.split(':').collect();
            let at = place.iter().position(|part| part.ends_with(".config.json"));
            assert!(at.is_some_and(|at| place[at + 1].parse::<u32>().is_ok_and(|line| line > 1)), "{word}: {said}");
        }
    }
    assert!(!simulation.state("ssh").exists(), "nothing was started");
}

#[test]
fn a_key_that_cannot_be_used_is_known_before_any_host_is_asked() {
    let simulation = Simulation::new(1);
    set(&simulation, &list(2));
    let made = simulation
        .shell("ssh-keygen -q -t ed25519 -N secret -f locked && ssh-keygen -q -t ed25519 -N '' -f open")
        .status();
    assert!(made.unwrap().success());
    let key = |file: &str| format!("phase1.ssh.private_key_file={file}");
    let with = |file: &str| simulation.run(&["provision", "--set", &key(file)]);
    let locked = with("locked");
    assert_eq!(locked.code, 4, "{locked}");
    assert!(locked.error().contains("passphrase") && locked.error().contains("phase1.ssh.use_agent=y"), "{locked}");
    let missing = with("nowhere");
    assert_eq!(missing.code, 3, "{missing}");
    let open = with("open");
    assert_eq!(open.code, 0, "{open}");
    assert!(!simulation.state("ssh/id_ed25519").exists(), "no key is made beside the user's own");
    let log = fs_err::read_to_string(simulation.state("logs/provision-hosts.log")).unwrap_or_default();
    assert!(log.is_empty() || log.contains("open"), "{log}");
}

/// A host of a self-joining group: it has a Node, and its kubelet reports or has been silent for
/// long.
fn join_by_itself(simulation: &Simulation, name: &str, speaks: bool) {
    let status = if speaks { "True" } else { "Unknown" };
    let node = json!({"kind": "Node", "metadata": {"name": name, "labels": {"turnup.dev/group": "pool"}},
        "status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "2020-01-01T00:00:00Z"}]}});
    fs_err::write(simulation.world(&format!("api/nodes/{name}.json")), node.to_string()).unwrap();
}

#[test]
fn the_node_of_a_machine_that_was_replaced_is_taken_away_and_no_other() {
    let simulation = Simulation::new(1);
    simulation.ok(&["up"]);
    let file = simulation.path("work/provision.json");
    let mut inventory: Value = serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
    inventory["groups"] = json!([{"name": "pool", "role": "worker", "size": 2}]);
    fs_err::write(&file, inventory.to_string()).unwrap();
    simulation.ok(&["provision"]);
    join_by_itself(&simulation, "pool-1", true);
    join_by_itself(&simulation, "pool-2", false);
    let mut waiting = simulation.start(&["bootstrap"]);
    waiting.wait_for("pool: 1 of 2 hosts have joined (silent: pool-2)");
    join_by_itself(&simulation, "pool-3", true);
    let ended = waiting.wait();
    assert_eq!(ended.code, 0, "{ended}");
    assert!(ended.err.contains("deleting the node pool-2: its kubelet is silent"), "{ended}");
    let exists = |name: &str| simulation.world(&format!("api/nodes/{name}.json")).exists();
    assert!(exists("pool-1") && !exists("pool-2") && exists("pool-3") && exists("h0"));
    assert_eq!(simulation.ok(&["plan"]).out.trim(), "nothing to do");
    // A surplus Node that is ready is left to the operator; one without heartbeats is in the plan
    // first.
    join_by_itself(&simulation, "pool-4", true);
    assert_eq!(simulation.ok(&["plan"]).out.trim(), "nothing to do");
    join_by_itself(&simulation, "pool-4", false);
    let plan = simulation.ok(&["plan"]).out;
    assert!(plan.contains("bootstrap/delete-nodes") && plan.contains("-   object Node pool-4"), "{plan}");
    assert!(exists("pool-4"), "to plan changes nothing");
    simulation.ok(&["bootstrap"]);
    assert!(!exists("pool-4") && exists("pool-3"));
}
