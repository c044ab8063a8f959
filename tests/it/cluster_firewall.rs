//! Who reaches which port of real hosts, and of this machine: chapters of the story of one cluster
//! in `cluster_life`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "several kubectl at once")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use serde_json::json;

use crate::cluster_addons::agnhost;
use crate::cluster_agent::without_agents;
use crate::cluster_support::Site;

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
/// This machine on the bridge of the hosts.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 121, 1, 1);
const METADATA: &str = "169.254.169.254:80";

/// The nftables tables of this machine.
pub(crate) fn tables() -> Vec<String> {
    let list = Command::new("nft").args(["list", "tables"]).output();
    let list = list.map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default();
    list.lines().map(str::to_owned).collect()
}

fn address(site: &Site, host: &str) -> String {
    site.hosts()[host]["address"].as_str().unwrap().to_owned()
}

/// Starts a pod on this node that only has agnhost.
pub(crate) fn start_pod(site: &Site, node: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("on-{node}")},
        "spec": {
            "nodeName": node, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "agnhost", "image": agnhost(site), "imagePullPolicy": "Never", "args": ["pause"]}],
        },
    });
    let file = site.dir.join("pod.json");
    fs_err::write(&file, pod.to_string()).unwrap();
    site.kubectl(&["apply", "--filename", &file.display().to_string()]);
}

/// How a connection from a pod ends: empty if it is established, else agnhost's error.
pub(crate) fn connect(kubectl: &[String], node: &str, to: &str, seconds: u32) -> String {
    let (pod, timeout) = (format!("on-{node}"), format!("--timeout={seconds}s"));
    let mut command = Command::new(&kubectl[0]);
    command.args(&kubectl[1..]).args(["exec", &pod, "--", "/agnhost", "connect", &timeout, to]);
    let output = command.output().unwrap();
    let said = if output.status.success() { Vec::new() } else { output.stderr };
    String::from_utf8(said).unwrap()
}

/// Connections from the pods of both nodes: those that must succeed, and those that must time out.
fn check_pods(site: &Site) {
    let (first, second) = (address(site, CONTROL_PLANE), address(site, WORKER));
    let closed = [22, 2379, 2380, 10250, 10256].map(|port| format!("{first}:{port}")).into_iter();
    let closed = closed.chain([22, 10250, 10256].map(|port| format!("{second}:{port}"))).chain([METADATA.to_owned()]);
    let open = [format!("{first}:6443"), "10.96.0.1:443".to_owned(), "10.96.0.10:53".to_owned()];
    let targets: Vec<(&str, String, bool)> = [CONTROL_PLANE, WORKER]
        .into_iter()
        .flat_map(|node| {
            let closed = closed.clone().map(move |to| (node, to, false));
            closed.chain(open.clone().into_iter().map(move |to| (node, to, true)))
        })
        .collect();
    // Asked once: turnup's answers share a file.
    let program = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
    let kubectl = [program, format!("--kubeconfig={}", site.path("kubeconfig").display())];
    let judge = |(node, to, is_open): &(&str, String, bool)| {
        let said = connect(&kubectl, node, to, if *is_open { 60 } else { 3 });
        let right = if *is_open { said.is_empty() } else { said.contains("TIMEOUT") };
        (!right).then(|| format!("from {node} to {to}: {said:?}"))
    };
    let wrong: Vec<String> = turnup::parallel::map(&targets, 6, judge).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Pods reach the API and Services, and neither the hosts' own ports nor the metadata of a cloud,
/// which their hosts reach.
pub(crate) fn pods_reach_no_port_of_the_hosts(site: &Site) {
    for host in [CONTROL_PLANE, WORKER] {
        start_pod(site, host);
        site.in_host(
            host,
            "ip address replace 169.254.169.254/32 dev lo && systemd-run --quiet --unit=metadata socat TCP-LISTEN:80,fork,reuseaddr,bind=169.254.169.254 /dev/null",
        );
        site.in_host(host, "timeout 60 bash -c 'until exec 3<>/dev/tcp/169.254.169.254/80; do sleep 0.2; done'");
    }
    site.kubectl(&["wait", "--for=condition=Ready", "pod", "--all", "--timeout=300s"]);
    check_pods(site);
    for node in [CONTROL_PLANE, WORKER] {
        assert!(
            site.kubectl(&["logs", &format!("on-{node}")]).contains("Paused"),
            "its kubelet answers the API server"
        );
    }
    hosts_reach_what_they_need(site);
    site.ok(&["validate"]);
    changed_rules_are_restored(site);
    check_pods(site);
    site.kubectl(&["delete", "pod", "--all", "--wait=false"]);
    for host in [CONTROL_PLANE, WORKER] {
        site.in_host(host, "systemctl stop metadata && ip address delete 169.254.169.254/32 dev lo");
    }
}

fn hosts_reach_what_they_need(site: &Site) {
    let first = address(site, CONTROL_PLANE);
    let reaches = |host: &str, to: &str, port: u16| {
        site.in_host(host, &format!("timeout 60 bash -c 'exec 3<>/dev/tcp/{to}/{port}'"));
    };
    for port in [22, 2379, 2380, 6443, 10250] {
        reaches(CONTROL_PLANE, &first, port);
    }
    reaches(CONTROL_PLANE, &address(site, WORKER), 10250);
    for port in [22, 6443] {
        reaches(WORKER, &first, port);
    }
    site.in_host(
        WORKER,
        &format!(
            "for port in 2379 2380 10250; do ! timeout 2 bash -c \"exec 3<>/dev/tcp/{first}/$port\" || exit 1; done"
        ),
    );
}

/// One rule is lost, then all of them: both are shown and restored. After a restart of the host's
/// own nftables.service, systemd loads turnup's rules again.
fn changed_rules_are_restored(site: &Site) {
    without_agents(site, &[CONTROL_PLANE, WORKER], || {
        site.in_host(CONTROL_PLANE, "nft flush chain inet turnup etcd");
        site.in_host(WORKER, "nft delete table inet turnup");
        let plan = site.ok(&["plan"]).out;
        for line in ["~   nftables table inet turnup", "+ \t\tip saddr"] {
            assert!(plan.contains(line), "{line}: {plan}");
        }
        assert!(!plan.contains("service kubelet"), "{plan}");
        let ran = site.up().ran();
        let steps = [format!("bootstrap/control-plane@{CONTROL_PLANE}"), format!("bootstrap/join@{WORKER}")];
        assert_eq!(ran, steps.into(), "and no others");
    });
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    // nftables.service flushes all rules by default; systemd brings these back after it, in a
    // moment of its own.
    let comes_back = "timeout 60 sh -c 'until nft list chain inet turnup input; do sleep 0.2; done'";
    site.in_host(WORKER, "systemctl start nftables && systemctl reload turnup-firewall");
    for verb in ["restart", "reload"] {
        site.in_host(WORKER, &format!("systemctl {verb} nftables && {comes_back}"));
    }
    site.in_host(WORKER, "systemctl stop nftables && systemctl start turnup-firewall");
    restore_services(site);
}

/// kube-proxy and flannel write their rules again when they start.
fn restore_services(site: &Site) {
    let on_worker = format!("--field-selector=spec.nodeName={WORKER}");
    for (app, label) in [("kube-proxy", "k8s-app"), ("flannel", "app.kubernetes.io/name")] {
        let selector = format!("--selector={label}={app}");
        site.kubectl(&["--namespace=kube-system", "delete", "pod", &on_worker, &selector]);
        site.kubectl(&["--namespace=kube-system", "rollout", "status", &format!("daemonset/{app}"), "--timeout=300s"]);
    }
}

/// From a host: whether this port of this machine answers.
fn host_reaches(site: &Site, port: u16) -> bool {
    let script = format!("timeout 60 bash -c 'exec 3<>/dev/tcp/{GATEWAY}/{port}' && touch /var/tmp/reached; true");
    site.in_host(WORKER, &format!("rm -f /var/tmp/reached; {script}"));
    site.path(&format!("hosts/{WORKER}")).join("root").join("var/tmp/reached").exists()
}

/// Hosts reach only open ports of this machine, and are not made again when one is opened.
pub(crate) fn hosts_reach_only_open_ports_of_this_machine(site: &Site) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(!host_reaches(site, port));
    site.in_host(WORKER, &format!("ping -c 1 -W 60 {GATEWAY}"));
    let instances = site.hosts();
    site.ok(&["config", "set", &format!("phase1.local.open_ports={port}")]);
    site.up();
    assert!(host_reaches(site, port));
    assert_eq!(site.hosts(), instances);
    site.ok(&["config", "set", "phase1.local.open_ports="]);
    site.up();
    assert!(!host_reaches(site, port));
    // A flush of all rules of this machine, as seen from the one table.
    let table = format!("tu-{}", site.id());
    crate::cluster_support::sh(&format!("nft delete table inet {table}"));
    assert!(host_reaches(site, port));
    let ran = site.up().ran();
    assert!(ran.contains(&format!("provision/start@{WORKER}")), "{ran:?}");
    assert!(!host_reaches(site, port));
    assert_eq!(site.hosts(), instances);
    sshd_takes_keys_alone(site);
}

fn sshd_takes_keys_alone(site: &Site) {
    let settings = [
        "allowusers root",
        "kbdinteractiveauthentication no",
        "passwordauthentication no",
        "permitrootlogin without-password",
        "x11forwarding no",
    ];
    for line in settings {
        site.in_host(WORKER, &format!("sshd -T | grep -qx '{line}'"));
    }
    // No capability over this machine's modules (16), raw I/O (17) and clock (25).
    let capabilities = "0x$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/1/status)";
    site.in_host(WORKER, &format!("test $(({capabilities} & (1 << 16 | 1 << 17 | 1 << 25))) = 0"));
}
