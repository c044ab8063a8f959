//! Rotation of every keyset on real hosts: three of the control plane and a worker, under requests,
//! with a kill in the middle.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "asks the API while turnup runs")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster_addons::agnhost;
use crate::cluster_reset::{ETCDCTL, on_host};
use crate::cluster_support::{Site, TIMEOUT, can_make_hosts, say};

pub(crate) const CONTROL_PLANES: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
const WORKER: &str = "it-worker-0";
const SECRETS: usize = 200;
/// Only what hangs takes as long.
const SOON: Duration = Duration::from_mins(5);

pub(crate) fn prepare(name: &str, subnet: &str) -> Option<Site> {
    can_make_hosts().then(|| {
        let site = Site::new(name);
        site.configure(subnet, 1);
        site.ok(&["config", "set", "phase1.control_plane.count=3"]);
        site.warm_cache();
        site
    })
}

/// Secrets, and pods that have to stay as they are.
pub(crate) fn fill(site: &Site, secrets: usize) {
    let secret = |index: usize| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("secret-{index}")},
            "stringData": {"index": index.to_string()}})
    };
    let labels = json!({"app": "shop"});
    let container = json!({"name": "shop", "image": agnhost(site), "imagePullPolicy": "Never", "args": ["pause"]});
    let shop = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    let items: Vec<Value> = (0..secrets).map(secret).chain([shop]).collect();
    let file = site.dir.join("fill.json");
    fs_err::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
    site.kubectl(&["apply", "--server-side", "--filename", &file.display().to_string()]);
    site.kubectl(&["rollout", "status", "deployment/shop", "--timeout=180s"]);
}

/// What the secrets say, and what pods have restarted.
pub(crate) fn look(site: &Site) -> (Vec<String>, Vec<String>) {
    let lines = |args: &[&str]| -> Vec<String> {
        let mut all: Vec<String> = site.kubectl(args).split_whitespace().map(str::to_owned).collect();
        all.sort();
        all
    };
    let secrets = lines(&["get", "secrets", "--output=jsonpath={range .items[*]}{.metadata.name}={.data.index} {end}"]);
    let pods = lines(&[
        "get",
        "pods",
        "--selector=app=shop",
        "--output=jsonpath={range .items[*]}{.metadata.name}={.status.containerStatuses[0].restartCount} {end}",
    ]);
    (secrets, pods)
}

/// Requests that failed while `act` ran, of all that were made: each with a connection of its own
/// through the load balancer.
fn requests_beside<R>(site: &Site, act: impl FnOnce() -> R) -> (R, usize, Vec<String>) {
    let program = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
    let kubeconfig = format!("--kubeconfig={}", site.path("kubeconfig").display());
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let (mut all, mut failed) = (0, Vec::new());
            while !is_over.load(Ordering::SeqCst) {
                let ask = ["get", "secret", "secret-0", "--output=name", "--request-timeout=20s"];
                let output = Command::new(&program).arg(&kubeconfig).args(ask).output().unwrap();
                all += 1;
                if !output.status.success() {
                    failed.push(String::from_utf8(output.stderr).unwrap());
                }
                std::thread::sleep(Duration::from_millis(300));
            }
            (all, failed)
        }
    });
    let result = act();
    is_over.store(true, Ordering::SeqCst);
    let (all, failed) = asking.join().unwrap();
    (result, all, failed)
}

pub(crate) fn states(site: &Site, keyset: &str) -> Vec<(u64, String)> {
    let list: Value = serde_json::from_str(&site.ok(&["keyset", "list", keyset, "--output", "json"]).out).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| (item["item"].as_u64().unwrap(), item["state"].as_str().unwrap().to_owned())).collect()
}

/// The addons' pods were started again by the rotation, with the authorities of now.
fn addons_have_mark(site: &Site, mark: &str) {
    for workload in ["daemonset/kube-proxy", "daemonset/flannel", "deployment/coredns"] {
        let path = r"--output=jsonpath={.spec.template.metadata.annotations.turnup\.dev/kubernetes-ca}";
        assert_eq!(site.kubectl(&["get", workload, "--namespace=kube-system", path]), mark, "{workload}");
        site.kubectl(&["rollout", "status", workload, "--namespace=kube-system", "--timeout=1s"]);
    }
}

/// Rotates, and checks what has to be true after each rotation.
fn rotate(site: &Site, keyset: &str, more: &[&str]) {
    let (before, since) = (look(site), Instant::now());
    let words = [&["keyset", "rotate", keyset], more].concat();
    let ((), all, failed) = requests_beside(site, || drop(site.ok(&words)));
    say(&format!("{keyset}: {:.1} s, {} of {all} requests failed", since.elapsed().as_secs_f64(), failed.len()));
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(states(site, keyset), [(1, "distrusted".to_owned()), (2, "primary".to_owned())]);
    assert_eq!(look(site), before);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    let nodes: Vec<&str> = CONTROL_PLANES.into_iter().chain([WORKER]).collect();
    assert_eq!(site.ready_nodes(), nodes);
}

/// Killed once the new item signs; the same command goes on with it.
fn killed_after_its_promotion(site: &Site, keyset: &str) {
    let (running, start) = (site.start(&["keyset", "rotate", keyset]), Instant::now());
    while !site.path("pki/keysets.json").exists() || states(site, keyset).get(1).is_none_or(|item| item.1 != "primary")
    {
        assert!(start.elapsed() < SOON, "no item was promoted");
        std::thread::sleep(Duration::from_millis(500));
    }
    kill_process(Pid::from_child(&running.child), Signal::KILL).unwrap();
    running.wait(TIMEOUT);
}

/// Values in etcd that this key has encrypted.
pub(crate) fn encrypted_with(site: &Site, item: u64) -> usize {
    let script = format!(
        "{ETCDCTL} get --prefix /registry/secrets/default/ --print-value-only | grep -a -o -F k8s:enc:secretbox:v1:key{item}: | wc -l"
    );
    on_host(site, CONTROL_PLANES[0], &script).trim().parse().unwrap()
}

/// kubelet's current client certificate: the link, and who signed it.
fn kubelets_have_certificates_of_the_new_authority(site: &Site) {
    let new = site.dir.join("new.crt");
    fs_err::copy(site.path("pki/ca-2.crt"), &new).unwrap();
    for host in CONTROL_PLANES.into_iter().chain([WORKER]) {
        let pem = on_host(site, host, "cat /var/lib/kubelet/pki/kubelet-client-current.pem");
        let certificate = site.dir.join("kubelet.crt");
        let end = pem.find("-----END CERTIFICATE-----").unwrap();
        fs_err::write(&certificate, &pem[..end + 26]).unwrap();
        let mut verify = Command::new("openssl");
        verify.arg("verify").arg("-partial_chain").arg("-CAfile").arg(&new).arg(&certificate);
        let output = verify.output().unwrap();
        assert!(output.status.success(), "{host}: {}", String::from_utf8_lossy(&output.stderr));
        // kubelet renews a link only.
        on_host(site, host, "readlink /var/lib/kubelet/pki/kubelet-client-current.pem");
        // The API server reaches it, and it the API server.
        site.kubectl(&["get", "--raw", &format!("/api/v1/nodes/{host}/proxy/healthz")]);
    }
}

#[test]
#[ignore = "some twenty runs over four hosts: make test-rotate"]
fn cluster_rotate_every_keyset() {
    let Some(site) = prepare("rotate", "10.125.12.0/24") else { return };
    site.ok(&["up"]);
    fill(&site, SECRETS);
    killed_after_its_promotion(&site, "encryption-key");
    rotate(&site, "encryption-key", &[]);
    assert_eq!([1, 2].map(|item| encrypted_with(&site, item)), [0, SECRETS]);
    rotate(&site, "etcd-ca", &[]);
    rotate(&site, "front-proxy-ca", &[]);
    let old = site.dir.join("old.kubeconfig");
    fs_err::copy(site.path("kubeconfig"), &old).unwrap();
    let stopped = site.fails(4, &["keyset", "rotate", "kubernetes-ca"]);
    // Pods of others alone are left; those of the addons know both authorities.
    assert!(stopped.err.contains("started before: default: deployment/shop (2 pods)"), "{stopped}");
    assert!(!stopped.err.contains("started before: kube-system"), "{stopped}");
    addons_have_mark(&site, "1,2");
    let stopped = site.fails(4, &["keyset", "rotate", "kubernetes-ca", "--confirmed"]);
    assert!(stopped.err.contains("nothing outside uses a kubeconfig that was issued before"), "{stopped}");
    rotate(&site, "kubernetes-ca", &["--confirmed"]);
    addons_have_mark(&site, "2");
    kubelets_have_certificates_of_the_new_authority(&site);
    let program = site.ok(&["artifacts", "path", "kubectl"]).out;
    let output =
        Command::new(program.trim()).arg(format!("--kubeconfig={}", old.display())).args(["get", "nodes"]).output();
    assert!(!output.unwrap().status.success(), "a kubeconfig of the old authority counts");
    let early = site.fails(4, &["keyset", "rotate", "service-account", "--confirmed"]);
    assert!(early.err.contains("pods have tokens of the key before until"), "{early}");
    site.ok(&["validate"]);
    site.ok(&["down", "--yes"]);
}
