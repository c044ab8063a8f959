//! A cluster in a cloud that is only played: the module for Google with a provider that makes
//! nothing and says that every address is the one of a host on this machine. From there on
//! everything is real: ssh learns the host's key, the host becomes a node, the cluster works.
#![expect(clippy::disallowed_methods, reason = "kubectl plays the controllers of the cloud while turnup runs")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::cloud_machine::{Machine, far};
use crate::cloud_support::mirror;
use crate::cluster_support::{Site, can_make_hosts, say};
use crate::user_data_boot::{COLD_CACHE, Mirror, PACKAGES};

const ADDRESS: &str = "10.123.19.10";
/// The host that plays the machine.
const HOST: &str = "it-control-plane-0";
/// Where its artifacts are, for a machine that boots by itself.
const PORT: u16 = 8096;
/// From the end of a machine to the API server of the next, on a machine with other work.
const RETURNS: Duration = Duration::from_mins(30);

/// The configuration of the cloud's cluster, beside that of the cluster whose host plays the
/// machine.
fn configure(site: &Site, artifacts: &Mirror) {
    let key = site.path("ssh/id_ed25519");
    let config = json!({"phase1": {
        "cluster_name": "far", "cloud_provider": "gce", "num_nodes": 0, "gce": {"project": "a-project"},
        "ssh_user": "root", "ssh": {"private_key_file": key}, "terraform": {"provider_mirror": "mirror"},
        "user_data": {"artifacts_url": artifacts.url},
    },
    // The machine is played by a container, which may not change the kernel's table.
    "phase3": {"kube_proxy_conntrack_per_core": 0}});
    fs_err::write(site.dir.join("far.json"), config.to_string()).unwrap();
    mirror(&site.dir.join("mirror"), "gce", Some(ADDRESS));
}

/// The Node of the group's one host, which the test reports as its kubelet would: no cloud makes
/// one here.
const MEMBER: &str = "far-workers-x1y2";

/// A Node is silent 40 seconds after its last report, however slow the machine is.
fn report_member(player: &Player, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap();
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now});
        let status = json!({"status": {"conditions": [ready], "nodeInfo": {"bootID": "one"}}});
        let patch = ["patch", "node", MEMBER, "--subresource=status", "--type=strategic", "--patch"];
        // Not there yet, or the API server starts.
        let reported = player.run(&[&patch[..], &[&status.to_string()]].concat());
        std::thread::sleep(Duration::from_secs(if reported.is_ok() { 5 } else { 1 }));
    }
}

/// Acts while the group's host reports; also when `act` panics, the thread ends.
fn while_the_member_reports(site: &Site, act: impl FnOnce()) {
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (player, ended) = (player(site), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _end = End(&ended);
        scope.spawn(|| report_member(&player, &ended));
        act();
    });
}

fn a_group_is_waited_for(site: &Site) {
    site.ok(&["config", "set", "phase1.num_nodes=1"]);
    site.ok(&["provision"]);
    let mut waiting = site.start(&["bootstrap"]);
    waiting.wait_for("workers: 0 of 1 hosts have joined");
    let template = fs_err::read_to_string(site.dir.join(".turnup/far/user-data/workers.template")).unwrap();
    let labels = json!({"turnup.dev/group": "workers", "turnup.dev/template": template});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": MEMBER, "labels": labels}});
    fs_err::write(site.dir.join("node.json"), node.to_string()).unwrap();
    site.kubectl(&["create", "--filename", &site.dir.join("node.json").display().to_string()]);
    let done = waiting.wait(Duration::from_mins(3));
    assert_eq!(done.code, Some(0), "{done}");
    assert!(site.ok(&["bootstrap"]).err.contains("0 ran"));
}

/// The machine is nothing, the volume is everything: no operator, no key to forget, no turnup.
fn a_machine_in_its_place_is_the_same_host(site: &Site, machine: &mut Machine, root: &str) {
    site.kubectl(&["create", "configmap", "mark"]);
    let uid = ["get", "configmap", "mark", "--output=jsonpath={.metadata.uid}"];
    let mark = site.kubectl(&uid);
    site.in_host(HOST, "test \"$(stat --format='%a %U' /var/lib/etcd-disk/.turnup-identity)\" = '600 root'");
    let start = Instant::now();
    let facts = machine.facts(site);
    machine.kill(site);
    machine.replace(site, root, &facts);
    // Without its volume it is a machine like any other, and waits.
    let waits = "timeout 900 sh -c 'until journalctl -u turnup-node | grep -q \"error: the volume\"; do sleep 1; done'";
    site.in_host(HOST, waits);
    site.in_host(HOST, "test -z \"$(find /etc/kubernetes -name '*.key')\"");
    machine.plug_in(site);
    while site.try_kubectl(&uid).as_deref() != Ok(&mark) {
        if start.elapsed() > RETURNS {
            site.in_host(HOST, "journalctl --no-pager -u turnup-node -u turnup-agent -u kubelet | tail -80");
        }
        assert!(start.elapsed() < RETURNS, "{:?}", site.try_kubectl(&uid));
        std::thread::sleep(Duration::from_secs(1));
    }
    say(&format!("from a dead machine to its API server: {:.1} s", start.elapsed().as_secs_f64()));
    // The host key is the one that turnup knows, so that it logs in as before.
    let up = site.ok(&["up"]);
    assert!(!up.err.contains("has the host key"), "{up}");
    site.ok(&["validate"]);
    assert_eq!(site.kubectl(&uid), mark, "another etcd");
    assert!(site.ok(&["up"]).err.contains("0 ran"));
}

fn volume(name: &str, class: &str, policy: &str, claim: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "disk.example.com"}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "persistentVolumeReclaimPolicy": policy, "claimRef": claim,
            "csi": {"driver": "disk.example.com", "volumeHandle": format!("disks/{name}")}}})
}

fn apply(site: &Site, objects: &[Value]) {
    let file = site.dir.join("made.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs_err::write(&file, list.to_string()).unwrap();
    site.kubectl(&["apply", "--server-side", "--filename", &file.display().to_string()]);
}

fn balancer(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "finalizers": ["service.kubernetes.io/load-balancer-cleanup"]},
        "spec": {"type": "LoadBalancer", "selector": {"app": "db"}, "ports": [{"port": 80}]}})
}

/// It waits for a controller that the test does not play yet.
fn a_stopped_down_is_taken_back_by_up(site: &Site) {
    apply(site, &[balancer("old"), volume("archive", "slow", "Retain", &Value::Null)]);
    let mut down = site.start(&["down", "--destroy-volumes", "--yes"]);
    down.wait_for("waiting until the cluster has removed the load balancer of Service default/old");
    kill_process(down.pid(), Signal::KILL).unwrap();
    down.wait(Duration::from_mins(1));
    let create = ["create", "service", "loadbalancer", "more", "--tcp=80", "--dry-run=server"];
    let refused = player(site).run(&create).unwrap_err();
    assert!(refused.contains("turnup down is taking this cluster away; turnup up allows it again"), "{refused}");
    player(site).run(&["create", "service", "clusterip", "more", "--tcp=80", "--dry-run=server"]).unwrap();
    // The Node that stands for a host of the group runs nothing, so that `up` would miss its pods.
    assert!(site.ok(&["bootstrap"]).err.contains("the teardown policy of an unfinished turnup down counts"));
    player(site).run(&create).unwrap();
}

/// A load balancer more, and a volume that a pod holds, whose owner makes another claim and another
/// pod when they are gone.
fn the_cluster_makes_more(site: &Site) {
    let labels = json!({"app": "db"});
    let pod = json!({
        "tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/hostname": "far-control-plane-0"},
        "containers": [{"name": "db", "image": "db", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    });
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"serviceName": "db", "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}, "volumeClaimTemplates": [claim]}});
    let disk = volume("disk", "", "Delete", &json!({"namespace": "default", "name": "data-db-0"}));
    apply(site, &[balancer("front"), disk, set]);
    site.kubectl(&["wait", "--for=jsonpath={.status.phase}=Bound", "persistentvolume/disk", "--timeout=60s"]);
    site.kubectl(&["wait", "--for=create", "pod/db-0", "--timeout=60s"]);
    site.kubectl(&["wait", "--for=condition=PodScheduled", "pod/db-0", "--timeout=60s"]);
}

/// Acts as the controllers of the cloud.
struct Player {
    kubectl: String,
    kubeconfig: String,
}

fn player(site: &Site) -> Player {
    let kubectl = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
    Player { kubectl, kubeconfig: format!("--kubeconfig={}", site.path("kubeconfig").display()) }
}

impl Player {
    fn run(&self, args: &[&str]) -> Result<String, String> {
        let all = [&[self.kubeconfig.as_str(), "--request-timeout=5s"], args].concat();
        let output = Command::new(&self.kubectl).args(all).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// Deletes what it is asked to until the end, and returns what that was.
    fn play(&self, ended: &AtomicBool) -> BTreeSet<&'static str> {
        let mut gone = BTreeSet::new();
        while !ended.load(Ordering::Relaxed) {
            for name in ["old", "front"] {
                let deleted = ["get", "service", name, "--output=jsonpath={.metadata.deletionTimestamp}"];
                if self.run(&deleted).is_ok_and(|time| !time.is_empty()) {
                    let patch = r#"{"metadata":{"finalizers":null}}"#;
                    self.run(&["patch", "service", name, "--type=merge", "--patch", patch]).unwrap();
                    gone.insert(name);
                }
            }
            let phase = ["get", "persistentvolume", "disk", "--output=jsonpath={.status.phase}"];
            if self.run(&phase).is_ok_and(|phase| phase == "Released") {
                self.run(&["delete", "persistentvolume", "disk"]).unwrap();
                gone.insert("disk");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        gone
    }
}

fn what_the_cluster_made_goes_before_its_machines(site: &Site) {
    let (player, ended) = (player(site), AtomicBool::new(false));
    let (down, gone) = std::thread::scope(|scope| {
        let game = scope.spawn(|| player.play(&ended));
        let down = site.run(&["down", "--destroy-volumes", "--yes"]);
        ended.store(true, Ordering::Relaxed);
        (down, game.join().unwrap())
    });
    assert_eq!(down.code, Some(0), "{down}");
    assert_eq!(gone, BTreeSet::from(["disk", "front", "old"]), "{down}");
    assert!(down.err.contains("to be removed: the load balancer of Service default/front"), "{down}");
    assert!(down.err.contains("kept, no longer managed by turnup: the volume archive of no claim"), "{down}");
}

#[test]
fn a_machine_of_a_cloud_becomes_a_cluster_that_works() {
    if !can_make_hosts() {
        return;
    }
    let mut site = Site::new("cloud");
    site.configure("10.123.19.0/24", 0);
    site.ok(&["config", "set", &format!("phase1.local.open_ports={PORT}")]);
    site.warm_cache();
    let root = site.start(&["artifacts", "rootfs", "bookworm", "--with", PACKAGES]).wait(COLD_CACHE);
    assert_eq!(root.code, Some(0), "{root}");
    site.ok(&["provision"]);
    site.ok(&["artifacts", "export", "artifacts"]);
    let artifacts = Mirror::serve(site.dir.join("artifacts"), "10.123.19.1", PORT);
    let mut machine = Machine::new(&site, 0);
    configure(&site, &artifacts);
    site.env.insert("TURNUP_CONFIG".into(), "far.json".into());

    let up = site.ok(&["up"]);
    assert!(up.err.contains("far-control-plane-0 has the host key ssh-ed25519 "), "{up}");
    let inventory = far(&site, "outputs/provision.json");
    assert_eq!(inventory["api"], json!({"host": ADDRESS, "port": 6443, "internal_host": ADDRESS}));
    let key = fs_err::read_to_string(site.path("ssh/hosts/it-control-plane-0.pub")).unwrap();
    let key = key.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    assert_eq!(inventory["hosts"][0]["ssh"]["host_key"], key, "the real one, learnt by the real ssh");
    site.ok(&["validate"]);
    assert_eq!(inventory["hosts"][0]["etcd_volume"]["name"], "far-etcd-main-a");
    assert_eq!(machine.disk.look("LABEL"), "far");

    let again = site.ok(&["up"]);
    assert!(again.err.contains("0 ran") && !again.err.contains(" begins"), "{again}");
    assert!(site.ok(&["plan"]).out.contains("nothing to do"));
    // One more ingress rule is a change of the firewall alone, and of no host.
    site.ok(&["config", "set", "phase1.api.allowed_cidrs=203.0.113.0/24,198.51.100.0/24"]);
    let plan = site.ok(&["plan"]).out;
    let changed: Vec<&str> = plan.lines().filter(|line| line.contains("  resource ")).map(str::trim).collect();
    assert_eq!(changed, ["~   resource google_compute_firewall.api[0]"], "{plan}");
    site.ok(&["up"]);
    site.ok(&["validate"]);
    fs_err::copy(site.dir.join(".turnup/far/kubeconfig"), site.path("kubeconfig")).unwrap();
    a_machine_in_its_place_is_the_same_host(&site, &mut machine, root.out.trim());
    while_the_member_reports(&site, || {
        a_group_is_waited_for(&site);
        a_stopped_down_is_taken_back_by_up(&site);
    });
    the_cluster_makes_more(&site);
    let refused = site.fails(4, &["down", "--yes"]);
    for volume in ["google_compute_disk.etcd", "the volume disk of the claim default/data-db-0 (1Gi, disks/disk)"] {
        assert!(refused.err.contains(volume), "the data is not lost by one word: {refused}");
    }
    what_the_cluster_made_goes_before_its_machines(&site);
    assert!(!site.dir.join(".turnup/far").exists());
}
