//! Certificates of a control-plane host that the host renews itself, on a real one: components take
//! them with no restart, nothing is drift for the host, and the next run of turnup replaces them.

use std::time::{Duration, Instant};

use crate::cluster_agent::wait_for_agents;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};

const HOST: &str = "it-control-plane-0";
/// Files are looked at once a minute, on a machine with other work.
const TAKEN: Duration = Duration::from_mins(5);

/// The serial number of the certificate at this port of the host.
fn served(site: &Site, port: u16) -> String {
    let ask =
        format!("openssl s_client -connect 127.0.0.1:{port} </dev/null 2>/dev/null | openssl x509 -noout -serial");
    on_host(site, HOST, &ask)
}

fn serial_of(site: &Site, file: &str) -> String {
    on_host(site, HOST, &format!("openssl x509 -noout -serial -in /etc/kubernetes/{file}"))
}

/// The ids of the containers of the control plane.
fn containers(site: &Site) -> String {
    let list = ". /etc/profile; for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do \
        crictl ps --quiet --name \"^$name$\"; done";
    on_host(site, HOST, list)
}

/// Waits until this port has the certificate of the file.
fn wait_until_served(site: &Site, port: u16, file: &str) {
    let (wanted, since) = (serial_of(site, file), Instant::now());
    while served(site, port) != wanted {
        assert!(since.elapsed() < TAKEN, "{file} is not in use at {port}");
        std::thread::sleep(Duration::from_secs(1));
    }
    say(&format!("{file} in use after {:.1} s", since.elapsed().as_secs_f64()));
}

/// What needs each of the certificates.
fn require_all_works(site: &Site) {
    site.kubectl(&["get", "--raw=/readyz/etcd"]);
    // Connections to kubelet that were made with the certificate of before are closed once.
    let logs = ["logs", "--namespace=kube-system", "kube-scheduler-it-control-plane-0", "--tail=1"];
    let since = Instant::now();
    while let Err(said) = site.try_kubectl(&logs) {
        assert!(since.elapsed() < TAKEN, "{said}");
        std::thread::sleep(Duration::from_secs(1));
    }
    site.kubectl(&["create", "deployment", "made", "--image=turnup.local/pause:v1.0.0", "--replicas=1"]);
    site.kubectl(&["wait", "--for=create", "pod", "--selector=app=made", "--timeout=120s"]);
    let scheduled = ["wait", "--for=condition=PodScheduled", "pod", "--selector=app=made", "--timeout=120s"];
    site.kubectl(&scheduled);
    site.kubectl(&["delete", "deployment", "made"]);
    on_host(site, HOST, "systemctl is-active turnup-healthcheck turnup-agent kubelet");
}

#[test]
#[ignore = "some minutes: make test-rotate"]
fn cluster_rotate_hosts_renew_their_certificates() {
    let Some(site) = Site::of_cluster("renewal", "10.124.48.0/24", 1) else { return };
    site.ok(&["up"]);
    let (before, server) = (containers(&site), serial_of(&site, "kube-apiserver/server.crt"));
    assert_eq!(before.lines().count(), 4, "{before}");

    let renewed = on_host(&site, HOST, "/opt/turnup/bin/turnup node agent renew");
    for file in ["etcd/server", "etcd/peer", "kube-apiserver/server", "kube-apiserver/etcd-client", "pki/kubelet"] {
        assert!(renewed.contains(&format!("renewed /etc/kubernetes/{file}.crt\n")), "{file}: {renewed}");
    }
    assert!(!renewed.contains("ca.crt"), "{renewed}");
    assert_ne!(serial_of(&site, "kube-apiserver/server.crt"), server);
    for (port, file) in [(6443, "kube-apiserver/server.crt"), (2379, "etcd/server.crt"), (10250, "pki/kubelet.crt")] {
        wait_until_served(&site, port, file);
    }
    wait_for_agents(&site, &[HOST]);
    require_all_works(&site);
    assert_eq!(containers(&site), before, "nothing of the control plane has restarted");
    let found = on_host(&site, HOST, "journalctl --unit=turnup-agent --output=cat | grep 'found: file' || true");
    assert_eq!(found, "", "what the host renewed is no loss");

    // The operator's directory has younger ones, or as here others: they take their places.
    site.ok(&["up"]);
    assert_eq!(serial_of(&site, "kube-apiserver/server.crt"), server);
    assert!(site.ok(&["up"]).err.contains("0 ran"));
    site.ok(&["validate"]);
    on_host(&site, HOST, "test \"$(stat --format='%a %U' /etc/kubernetes/pki/etcd-ca.key)\" = '600 root'");

    site.ok(&["config", "set", "phase2.pki.renew_on_hosts=n"]);
    site.ok(&["up"]);
    on_host(&site, HOST, "! ls /etc/kubernetes/pki/etcd-ca.key /etc/kubernetes/pki/front-proxy-ca.key 2>/dev/null");
    on_host(&site, HOST, "! systemctl cat turnup-agent | grep renew");
    site.ok(&["down", "--yes"]);
}
