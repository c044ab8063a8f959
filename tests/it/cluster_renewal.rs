//! Certificates that hosts renew themselves, on real ones: components take them with no restart,
//! nothing is drift for the host, the next run of turnup replaces them, and a host whose kubelet's
//! certificate ended while it was off is a node again.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, date_time_ymd};

use crate::cluster_agent::wait_for_agents;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};

const HOST: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
const RENEW: &str = "/opt/turnup/bin/turnup node agent renew";
const CLIENT: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
/// Files are looked at once a minute, on a machine with other work.
const TAKEN: Duration = Duration::from_mins(5);

/// The serial number of the certificate at this port of the host.
fn served(site: &Site, host: &str, port: u16) -> String {
    let ask =
        format!("openssl s_client -connect 127.0.0.1:{port} </dev/null 2>/dev/null | openssl x509 -noout -serial");
    on_host(site, host, &ask)
}

fn serial_of(site: &Site, host: &str, file: &str) -> String {
    on_host(site, host, &format!("openssl x509 -noout -serial -in /etc/kubernetes/{file}"))
}

/// The ids of the containers of the control plane.
fn containers(site: &Site) -> String {
    let list = ". /etc/profile; for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do \
        crictl ps --quiet --name \"^$name$\"; done";
    on_host(site, HOST, list)
}

/// Waits until this port has the certificate of the file.
fn wait_until_served(site: &Site, host: &str, port: u16, file: &str) {
    let (wanted, since) = (serial_of(site, host, file), Instant::now());
    while served(site, host, port) != wanted {
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

/// A worker has no key of an authority: the API signs what its kubelet serves with, and that is in
/// use at once.
fn a_worker_asks_the_api(site: &Site) {
    let before = serial_of(site, WORKER, "pki/kubelet.crt");
    assert_eq!(on_host(site, WORKER, RENEW), "renewed /etc/kubernetes/pki/kubelet.crt\n");
    assert_ne!(serial_of(site, WORKER, "pki/kubelet.crt"), before);
    wait_until_served(site, WORKER, 10250, "pki/kubelet.crt");
    on_host(site, WORKER, "openssl verify -CAfile /etc/kubernetes/pki/ca.crt /etc/kubernetes/pki/kubelet.crt");
    wait_for_agents(site, &[WORKER]);
    let found = on_host(site, WORKER, "journalctl --unit=turnup-agent --output=cat | grep 'found: file' || true");
    assert_eq!(found, "", "what the worker renewed is no loss");
    let stats = format!("/api/v1/nodes/{WORKER}/proxy/healthz");
    assert_eq!(site.kubectl(&["get", &format!("--raw={stats}")]), "ok");
}

/// A client certificate of this node's kubelet that has ended, with its key.
fn ended_certificate(site: &Site, node: &str) -> String {
    let authority = KeyPair::from_pem(&site.read("pki/ca.key")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&site.read("pki/ca.crt"), authority).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &issuer).unwrap().pem() + &key.serialize_pem()).replace("\r\n", "\n")
}

/// The power is cut, and when it is there again the certificate has ended, and nothing was heard of
/// the kubelet for long.
fn a_host_that_was_off_for_long_is_its_node_again(site: &Site, host: &str) {
    let ended = ended_certificate(site, host);
    let place = "/var/lib/kubelet/pki/kubelet-client-ended.pem";
    on_host(site, host, &format!("umask 77; echo '{ended}' >{place}; ln -sfn {place} {CLIENT}; sync"));
    site.cut_power(host);
    let spec = site.path(&format!("provision/hosts/{host}.json"));
    site.ok(&["local", "host", "start", "--spec", &spec.display().to_string()]);
    let since = Instant::now();
    let spoke = ["patch", "lease", host, "--namespace=kube-node-lease", "--type=merge"];
    let long_ago = "--patch={\"spec\":{\"renewTime\":\"2021-01-01T00:00:00.000000Z\"}}";
    while let Err(said) = site.try_kubectl(&[&spoke[..], &[long_ago]].concat()) {
        assert!(since.elapsed() < TAKEN, "{said}");
        std::thread::sleep(Duration::from_secs(1));
    }
    let is_valid = format!("openssl x509 -noout -checkend 0 -in {CLIENT} >/dev/null");
    site.in_host(host, &format!("timeout 600 sh -c 'until {is_valid}; do sleep 1; done'"));
    let approved = format!("approved turnup-.*: the host {host} is its Node again");
    site.in_host(HOST, &format!("journalctl --unit=turnup-csr-approver --output=cat | grep '{approved}'"));
    site.kubectl(&["wait", "--for=condition=Ready", "--timeout=300s", "node", host]);
    say(&format!("{host}: a node again {:.0} s after its power, without a run", since.elapsed().as_secs_f64()));
    wait_for_agents(site, &[host]);
    site.ok(&["validate"]);
}

#[test]
#[ignore = "some minutes: make test-rotate"]
fn cluster_rotate_hosts_renew_their_certificates() {
    let Some(site) = Site::of_cluster("renewal", "10.124.48.0/24", 1) else { return };
    site.ok(&["up"]);
    let (before, server) = (containers(&site), serial_of(&site, HOST, "kube-apiserver/server.crt"));
    assert_eq!(before.lines().count(), 4, "{before}");

    let renewed = on_host(&site, HOST, RENEW);
    for file in ["etcd/server", "etcd/peer", "kube-apiserver/server", "kube-apiserver/etcd-client", "pki/kubelet"] {
        assert!(renewed.contains(&format!("renewed /etc/kubernetes/{file}.crt\n")), "{file}: {renewed}");
    }
    assert!(!renewed.contains("ca.crt"), "{renewed}");
    assert_ne!(serial_of(&site, HOST, "kube-apiserver/server.crt"), server);
    for (port, file) in [(6443, "kube-apiserver/server.crt"), (2379, "etcd/server.crt"), (10250, "pki/kubelet.crt")] {
        wait_until_served(&site, HOST, port, file);
    }
    wait_for_agents(&site, &[HOST]);
    require_all_works(&site);
    assert_eq!(containers(&site), before, "nothing of the control plane has restarted");
    let found = on_host(&site, HOST, "journalctl --unit=turnup-agent --output=cat | grep 'found: file' || true");
    assert_eq!(found, "", "what the host renewed is no loss");

    a_worker_asks_the_api(&site);
    a_host_that_was_off_for_long_is_its_node_again(&site, WORKER);
    a_host_that_was_off_for_long_is_its_node_again(&site, HOST);
    require_all_works(&site);

    // The operator's directory has younger ones, or as here others: they take their places.
    site.ok(&["up"]);
    assert_eq!(serial_of(&site, HOST, "kube-apiserver/server.crt"), server);
    assert!(site.ok(&["up"]).err.contains("0 ran"));
    site.ok(&["validate"]);
    on_host(&site, HOST, "test \"$(stat --format='%a %U' /etc/kubernetes/pki/etcd-ca.key)\" = '600 root'");

    site.ok(&["config", "set", "phase2.pki.renew_on_hosts=n"]);
    site.ok(&["up"]);
    on_host(&site, HOST, "! ls /etc/kubernetes/pki/etcd-ca.key /etc/kubernetes/pki/front-proxy-ca.key 2>/dev/null");
    for host in [HOST, WORKER] {
        on_host(&site, host, "! systemctl cat turnup-agent | grep renew");
        on_host(&site, host, "! ls /etc/kubernetes/pki/host.key 2>/dev/null");
    }
    site.ok(&["down", "--yes"]);
}
