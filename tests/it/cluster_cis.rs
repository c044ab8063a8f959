//! On a real control plane and a real worker: no rule of the CIS Kubernetes Benchmark fails, each
//! control-plane component runs as its own user and sees only its own files, and `admin.conf` gives
//! root a certificate for an hour.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::Value;

use crate::cis_rules::{Benchmark, Host, Seen};
use crate::cluster_agent::without_agents;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
/// The components and their uids.
const COMPONENTS: [(&str, u32); 4] =
    [("etcd", 2379), ("kube-apiserver", 6443), ("kube-controller-manager", 10257), ("kube-scheduler", 10259)];
const KUBECTL: &str = "/opt/turnup/bin/kubectl --kubeconfig=/etc/kubernetes/admin.conf";

/// All that the rules look at on a host.
fn look(site: &Site, host: &str, benchmark: &Benchmark) -> Seen {
    let mut seen = Seen::default();
    let script = format!(
        "stat -c 'file %a %U:%G %n' $(ls -d {} /var/lib/etcd*/data 2>/dev/null) $(find /etc/kubernetes/pki)\n\
         ps -ww -eo args | sed 's/^/process /'",
        benchmark.paths().join(" ")
    );
    for line in on_host(site, host, &script).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["file", mode, owner, path] => {
                seen.files.insert(path.to_owned(), (u32::from_str_radix(mode, 8).unwrap(), owner.to_owned()));
            }
            ["process", ref command @ ..] if !command.is_empty() => {
                let name = command[0].rsplit('/').next().unwrap().to_owned();
                seen.processes.insert(name, command.iter().map(|word| (*word).to_owned()).collect());
            }
            _ => {}
        }
    }
    let config = "/var/lib/kubelet/config.yaml";
    let text = on_host(site, host, &format!("cat {config}"));
    seen.settings.insert(config.to_owned(), serde_saphyr::from_str(&text).unwrap());
    seen
}

fn no_rule_fails(site: &Site) {
    let benchmark = Benchmark::load();
    for (host, kind) in [(CONTROL_PLANE, Host::ControlPlane), (WORKER, Host::Every)] {
        let seen = look(site, host, &benchmark);
        assert_eq!(benchmark.find_faults(kind, &seen), [""; 0], "{host}");
        say(&format!("{host}: 0 of {} rules fail", benchmark.rules_for(kind).count()));
    }
    // The evaluator sees a change on a host, and turnup reverts it.
    without_agents(site, &[WORKER], || {
        on_host(site, WORKER, "chmod 644 /etc/systemd/system/kubelet.service; chown 1 /var/lib/kubelet/config.yaml");
        let faults = benchmark.find_faults(Host::Every, &look(site, WORKER, &benchmark));
        let ids: Vec<&str> = faults.iter().map(|fault| fault.split(' ').next().unwrap()).collect();
        assert_eq!(ids, ["4.1.1", "4.1.10"], "{faults:#?}");
        let plan = site.ok(&["plan"]).out;
        for line in ["unit kubelet.service", "+ mode 600 of user 0", "file /var/lib/kubelet/config.yaml"] {
            assert!(plan.contains(line), "{line}: {plan}");
        }
        site.ok(&["up"]);
    });
    assert_eq!(benchmark.find_faults(Host::Every, &look(site, WORKER, &benchmark)), [""; 0], "mended");
    // Manual item 1.1.9.
    let modes = "find /etc/cni/net.d /var/lib/cni -type f ! -perm 600";
    assert_eq!([CONTROL_PLANE, WORKER].map(|host| on_host(site, host, modes)), ["", ""]);
}

/// Own uid, no capabilities, access to one directory.
fn each_component_is_alone(site: &Site) {
    for (name, id) in COMPONENTS {
        let status = on_host(
            site,
            CONTROL_PLANE,
            &format!("grep -hE '^(Uid|Gid|Cap...|NoNewPrivs):' /proc/$(pgrep -of '^{name} ')/status"),
        );
        for line in status.lines() {
            let (field, values) = line.split_once(':').unwrap();
            let wanted = match field {
                "Uid" | "Gid" => id.to_string(),
                "NoNewPrivs" => "1".to_owned(),
                _ => "0".repeat(16),
            };
            assert!(values.split_whitespace().all(|value| value == wanted), "{name}: {line}");
        }
        assert_eq!(status.lines().count(), 8, "{status}");
        let sees = on_host(site, CONTROL_PLANE, &format!("cd /proc/$(pgrep -of '^{name} ')/root && ls etc/kubernetes"));
        assert_eq!(sees.trim(), name);
        // The same on the host, outside of the container.
        for (other, _) in COMPONENTS {
            let list = format!(
                "setpriv --reuid={id} --regid={id} --clear-groups ls /etc/kubernetes/{other} 2>/dev/null; true"
            );
            assert_eq!(on_host(site, CONTROL_PLANE, &list).is_empty(), other != name, "{name} lists {other}");
        }
    }
    let logs = on_host(site, CONTROL_PLANE, "stat -c '%U %a %s' /var/log/kubernetes/audit.log");
    assert!(logs.starts_with("kube-apiserver 600 ") && !logs.trim().ends_with(" 0"), "{logs}");
}

/// The file itself contains no credential.
fn root_on_the_host_gets_in(site: &Site) {
    let config = on_host(site, CONTROL_PLANE, "cat /etc/kubernetes/admin.conf");
    assert!(config.contains("command: /opt/turnup/bin/turnup") && !config.contains("client-key"), "{config}");
    let said = on_host(site, CONTROL_PLANE, &format!("{KUBECTL} auth whoami --output=json"));
    let said: Value = serde_json::from_str(&said).unwrap();
    let user = &said["status"]["userInfo"];
    assert_eq!(user["username"], format!("root@{CONTROL_PLANE}"));
    assert_eq!(user["groups"], serde_json::json!(["turnup:cluster-admins", "system:authenticated"]));
    let stranger = "setpriv --reuid=65534 --regid=65534 --clear-groups /opt/turnup/bin/turnup node credential --user=me 2>&1; true";
    let refused = on_host(site, CONTROL_PLANE, stranger);
    assert!(refused.contains("the authority of the cluster cannot be read here"), "{refused}");
    let worker =
        on_host(site, WORKER, "ls /etc/kubernetes; /opt/turnup/bin/turnup node credential --user=me 2>&1; true");
    assert!(!worker.contains("admin.conf") && worker.contains("cannot be read here"), "{worker}");
}

/// The namespace `default` is its users', and stays as Kubernetes makes it.
fn default_accounts_open_nothing(site: &Site) {
    // In a namespace that is being deleted, as that of the probes, the account may be made once
    // more.
    let namespaces = site.get(&["namespaces", "--field-selector=status.phase=Active"]);
    let active: Vec<&str> = namespaces.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
    for account in site.get(&["serviceaccounts", "--all-namespaces", "--field-selector=metadata.name=default"]) {
        let namespace = account["metadata"]["namespace"].as_str().unwrap();
        if !active.contains(&namespace) {
            continue;
        }
        let expected = if namespace == "default" { Value::Null } else { false.into() };
        assert_eq!(account["automountServiceAccountToken"], expected, "{namespace}");
    }
}

#[test]
#[ignore = "some minutes: make test-cis"]
fn a_cluster_stands_up_to_the_benchmark() {
    let Some(site) = Site::of_cluster("cis", "10.121.13.0/24", 1) else { return };
    site.up();
    each_component_is_alone(&site);
    root_on_the_host_gets_in(&site);
    default_accounts_open_nothing(&site);
    no_rule_fails(&site);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["down", "--yes"]);
}
