//! Settings that decide how a cluster is laid out, each with another value than its default, on one
//! real cluster: networks and names, directories of the runtime, the host's firewall and packages,
//! whose authority signs, whose kubeconfig it is. Each is looked for where it acts.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::os::unix::fs::PermissionsExt as _;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose};
use serde_json::Value;

use crate::cluster_firewall::{connect, start_pod};
use crate::cluster_reset::{ETCDCTL, on_host};
use crate::cluster_support::Site;

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";

const CHANGES: &[&str] = &[
    "phase2.pod_cidr=172.20.0.0/16",
    "phase2.service_cidr=172.21.0.0/20",
    "phase2.cluster_domain=corp.internal",
    "phase2.network.interface=host0",
    "phase2.apiserver.extra_sans=api.corp.internal,192.0.2.9",
    "phase2.runtime.data_dir=/srv/containerd",
    "phase2.runtime.snapshotter=native",
    "phase2.host.data_dir=/srv/kubelet",
    "phase2.host.packages=own-tool=1.2",
    "phase2.host.firewall_kubelet_networks=203.0.113.0/24",
    "phase2.host.firewall_pods_reach_metadata=y",
    "phase2.security.encryption_at_rest=n",
    "phase2.pki.ca_cert_file=corporation.crt",
    "phase2.pki.ca_key_file=corporation.key",
    "phase2.pki.ca_lifetime=17520h",
    "phase2.kubeconfig.user=ada@corp.internal",
    "phase2.kubeconfig.merge=y",
    "phase2.kube_context_name=mine",
];

/// A source of packages on the host, as its owner would set one up: version 1.2 of one package,
/// where 1.1 is there already.
const PACKAGES: &str = r#"
set -e
mkdir -p /srv/packages /etc/apt/away
cd /srv/packages
for version in 1.1 1.2 1.3; do
    mkdir -p build/DEBIAN build/usr/bin
    printf '#!/bin/sh\necho %s\n' $version >build/usr/bin/own-tool
    chmod 755 build/usr/bin/own-tool
    printf 'Package: own-tool\nVersion: %s\nArchitecture: all\nMaintainer: a\nDescription: a\n' $version >build/DEBIAN/control
    dpkg-deb --root-owner-group --build build own-tool_$version.deb >/dev/null
    cat build/DEBIAN/control
    echo "Filename: ./own-tool_$version.deb"
    echo "Size: $(stat --format=%s own-tool_$version.deb)"
    echo "SHA256: $(sha256sum own-tool_$version.deb | cut -d' ' -f1)"
    echo
done >Packages
dpkg --install own-tool_1.1.deb >/dev/null
mv /etc/apt/sources.list* /etc/apt/away/
echo 'deb [trusted=yes] file:/srv/packages ./' >/etc/apt/sources.list
"#;

/// An authority that a company made for this cluster.
fn write_authority(site: &Site) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Corporation");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    for (file, text) in [("corporation.crt", certificate), ("corporation.key", key.serialize_pem())] {
        fs_err::write(site.dir.join(file), text).unwrap();
        fs_err::set_permissions(site.dir.join(file), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The other driver than the one that `auto` takes on this machine.
fn other_cgroup_driver(site: &Site) -> &'static str {
    let kind = on_host(site, WORKER, "stat --file-system --format=%T /sys/fs/cgroup");
    if kind.trim() == "cgroup2fs" { "cgroupfs" } else { "systemd" }
}

#[test]
#[ignore = "some minutes: make test-settings"]
fn a_cluster_is_laid_out_as_the_settings_say() {
    let Some(mut site) = Site::of_cluster("places", "10.123.22.0/24", 1) else { return };
    let own = site.dir.join("own/config");
    site.env.insert("KUBECONFIG".to_owned(), own.display().to_string());
    write_authority(&site);
    site.ok(&[&["config", "set"], CHANGES].concat());
    site.ok(&["provision"]);
    on_host(&site, WORKER, PACKAGES);
    on_host(&site, CONTROL_PLANE, PACKAGES);
    let driver = other_cgroup_driver(&site);
    site.ok(&["config", "set", &format!("phase2.runtime.cgroup_driver={driver}")]);
    site.ok(&["up"]);
    assert_eq!(site.ready_nodes(), [CONTROL_PLANE, WORKER]);

    networks_and_names_are_these(&site);
    the_runtime_lies_where_it_is_to_lie(&site, driver);
    hosts_have_the_package_and_the_firewall(&site);
    the_authority_and_the_user_are_these(&site, &own);
    secrets_lie_in_etcd_as_they_are(&site);
    a_host_mends_itself_when_it_boots(&site);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    let status: Value = serde_json::from_str(&site.ok(&["status", "--output", "json"]).out).unwrap();
    assert_eq!(status["drifts"], Value::Array(Vec::new()), "what runs is what is declared");
    site.ok(&["down", "--yes"]);
    let left = fs_err::read_to_string(&own).unwrap_or_default();
    assert!(!left.contains("mine"), "the user's own kubeconfig: {left}");
}

fn networks_and_names_are_these(site: &Site) {
    let pods = site.kubectl(&["get", "nodes", "--output=jsonpath={.items[*].spec.podCIDR}"]);
    assert!(pods.split(' ').count() == 2 && pods.split(' ').all(|cidr| cidr.starts_with("172.20.")), "{pods}");
    let address = |name: &str, namespace: &str| {
        site.kubectl(&["get", "service", name, "--namespace", namespace, "--output=jsonpath={.spec.clusterIP}"])
    };
    assert_eq!(address("kubernetes", "default"), "172.21.0.1");
    assert_eq!(address("kube-dns", "kube-system"), "172.21.0.10");
    start_pod(site, WORKER);
    let pod = format!("on-{WORKER}");
    site.kubectl(&["wait", "--for=condition=Ready", "--timeout=120s", "pod", &pod]);
    let program = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
    let kubectl = [program, format!("--kubeconfig={}", site.path("kubeconfig").display())];
    assert_eq!(connect(&kubectl, WORKER, "kubernetes.default.svc.corp.internal:443", 60), "");
    assert_ne!(connect(&kubectl, WORKER, "kubernetes.default.svc.cluster.local:443", 5), "", "the usual domain");
    let own = site.kubectl(&["get", "pod", &pod, "--output=jsonpath={.status.podIP}"]);
    assert!(own.starts_with("172.20."), "{own}");
    let flannel = on_host(site, WORKER, "tr '\\0' ' ' </proc/$(pidof -s flanneld)/cmdline");
    assert!(flannel.contains("--iface=host0"), "{flannel}");
    let certificate = on_host(site, CONTROL_PLANE, "cat /etc/kubernetes/kube-apiserver/server.crt");
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).unwrap();
    let names = format!("{:?}", pem.parse_x509().unwrap().subject_alternative_name().unwrap().unwrap().value);
    for name in ["api.corp.internal", "kubernetes.default.svc.corp.internal", "[192, 0, 2, 9]", "[172, 21, 0, 1]"] {
        assert!(names.contains(name), "{name}: {names}");
    }
}

fn the_runtime_lies_where_it_is_to_lie(site: &Site, driver: &str) {
    for host in [CONTROL_PLANE, WORKER] {
        let dump = on_host(
            site,
            host,
            "/opt/turnup/bin/containerd --config /etc/containerd/config.toml config dump 2>/dev/null",
        );
        let config: toml::Value = toml::from_str(&dump).unwrap();
        assert_eq!(config["root"].as_str(), Some("/srv/containerd"), "{dump}");
        let plugins = &config["plugins"];
        assert_eq!(plugins["io.containerd.cri.v1.images"]["snapshotter"].as_str(), Some("native"), "{dump}");
        let runc = &plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]["runc"]["options"];
        assert_eq!(runc["SystemdCgroup"].as_bool(), Some(driver == "systemd"), "{dump}");
        let configz = site.kubectl(&["get", "--raw", &format!("/api/v1/nodes/{host}/proxy/configz")]);
        let configz: Value = serde_json::from_str(&configz).unwrap();
        assert_eq!(configz["kubeletconfig"]["cgroupDriver"], driver, "{host}");
        let counts = on_host(
            site,
            host,
            "ls /srv/containerd/io.containerd.snapshotter.v1.native/snapshots | wc -l; ls /srv/kubelet/pods | wc -l; \
             ls /var/lib/containerd | wc -l; ls -d /var/lib/kubelet/pods 2>/dev/null | wc -l",
        );
        let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
        assert!(counts[0] > 3 && counts[1] > 1, "snapshots and pods lie there: {counts:?}");
        assert_eq!(counts[2..], [0, 0], "{host}: and not in the usual places");
    }
}

fn hosts_have_the_package_and_the_firewall(site: &Site) {
    for host in [CONTROL_PLANE, WORKER] {
        let version = on_host(site, host, "own-tool; dpkg-query --show --showformat='${Version}' own-tool");
        assert_eq!(version, "1.2\n1.2", "the pinned version, neither the one before nor the newest");
        let rules = on_host(site, host, "nft list table inet turnup");
        assert!(rules.contains("203.0.113.0/24"), "{rules}");
        assert!(!rules.contains("169.254.169.254"), "pods reach the metadata: {rules}");
    }
}

fn the_authority_and_the_user_are_these(site: &Site, own: &std::path::Path) {
    let issuer = |file: &str| {
        let certificate = on_host(site, CONTROL_PLANE, &format!("cat {file}"));
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let life = certificate.validity().not_after.timestamp() - certificate.validity().not_before.timestamp();
        (certificate.issuer().to_string(), life / 3600)
    };
    assert!(issuer("/etc/kubernetes/kube-apiserver/server.crt").0.contains("Corporation"));
    let (name, hours) = issuer("/etc/kubernetes/etcd/ca.crt");
    assert!(!name.contains("Corporation") && (17519..=17522).contains(&hours), "{name} lives {hours} h");
    let given = site.kubectl(&["get", "configmap", "kube-root-ca.crt", "--output=jsonpath={.data.ca\\.crt}"]);
    let corporation = fs_err::read_to_string(site.dir.join("corporation.crt")).unwrap();
    assert_eq!(given.trim().replace("\r\n", "\n"), corporation.trim().replace("\r\n", "\n"), "what pods trust");

    // The user's own kubectl, with the user's own file.
    let merged = format!("--kubeconfig={}", own.display());
    let who =
        site.kubectl(&[&merged, "--context=mine", "auth", "whoami", "--output=jsonpath={.status.userInfo.username}"]);
    assert_eq!(who, "ada@corp.internal");
    assert_eq!(fs_err::metadata(own).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A host that turnup logged in to: what it lost before a loss of power is there again after the
/// next boot, with no run of turnup.
fn a_host_mends_itself_when_it_boots(site: &Site) {
    on_host(
        site,
        WORKER,
        "systemctl stop turnup-agent.service kubelet.service; rm /etc/crictl.yaml /opt/turnup/bin/kubelet; \
         systemctl disable kubelet.service; echo '# edited' >>/var/lib/kubelet/config.yaml; nft delete table inet turnup; sync",
    );
    site.cut_power(WORKER);
    let spec = site.path(&format!("provision/hosts/{WORKER}.json"));
    site.ok(&["local", "host", "start", "--spec", &spec.display().to_string()]);
    site.in_host(
        WORKER,
        "timeout 300 sh -c 'until test -s /etc/crictl.yaml -a -x /opt/turnup/bin/kubelet && systemctl is-active kubelet.service && \
         systemctl is-enabled kubelet.service && nft list table inet turnup; do sleep 1; done' >/dev/null 2>&1",
    );
    site.in_host(WORKER, "! grep '# edited' /var/lib/kubelet/config.yaml");
    site.kubectl(&["wait", "--for=condition=Ready", "--timeout=180s", "node", WORKER]);
}

fn secrets_lie_in_etcd_as_they_are(site: &Site) {
    site.kubectl(&["create", "secret", "generic", "kept", "--from-literal=word=readable-at-rest"]);
    let stored = on_host(
        site,
        CONTROL_PLANE,
        &format!(
            "{ETCDCTL} --endpoints=https://127.0.0.1:2379 get /registry/secrets/default/kept | grep --count --text readable-at-rest"
        ),
    );
    assert_ne!(stored.trim(), "0");
}
