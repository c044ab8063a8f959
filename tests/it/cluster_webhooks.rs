//! A webhook that must be asked, and a power cut of every host: the cluster comes back by itself,
//! or turnup names the one object that keeps it from that.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "openssl makes the webhook's certificate")]

use std::process::Command;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster_addons::agnhost;
use crate::cluster_support::{Site, TIMEOUT, say};

const HOSTS: [&str; 2] = ["it-control-plane-0", "it-worker-0"];
/// The beginning of the command that lets pods pass.
const REMEDY: &str = "kubectl patch validatingwebhookconfiguration/guard --type=json";

/// A certificate for the webhook's Service, and its key.
fn certify(site: &Site) -> [String; 2] {
    let [certificate, key] = ["guard.crt", "guard.key"].map(|name| site.dir.join(name));
    let names = "subjectAltName=DNS:guard.default.svc";
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=guard",
        "-addext",
        names,
    ]);
    let made = openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [certificate, key].map(|path| STANDARD.encode(fs_err::read(path).unwrap()))
}

fn apply(site: &Site, objects: &[Value]) {
    let file = site.dir.join("guard.json");
    fs_err::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    site.kubectl(&["apply", "--server-side", "--filename", &file.display().to_string()]);
}

/// A webhook without which no pod is made or changed, and which allows all of them.
fn guard(site: &Site) {
    let [certificate, key] = certify(site);
    let (labels, metadata) = (json!({"app": "guard"}), json!({"name": "guard", "namespace": "default"}));
    let args = ["webhook", "--port=8443", "--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key"];
    let container = json!({
        "name": "guard", "image": agnhost(site), "imagePullPolicy": "Never", "args": args,
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8443, "scheme": "HTTPS"}, "periodSeconds": 1},
    });
    let pod = json!({"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": "guard"}}]});
    let workload = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
            "type": "kubernetes.io/tls", "data": {"tls.crt": certificate, "tls.key": key}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": 8443}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}}),
    ];
    apply(site, &workload);
    site.kubectl(&["rollout", "status", "deployment/guard", "--timeout=180s"]);
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]});
    let client =
        json!({"service": {"namespace": "default", "name": "guard", "path": "/pods"}, "caBundle": certificate});
    apply(
        site,
        &[json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "guard"}, "webhooks": [{"name": "guard.example.com", "failurePolicy": "Fail",
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client, "rules": [rule]}]})],
    );
}

/// The pods that the webhook is asked about can be made.
fn require_pods(site: &Site) {
    site.kubectl(&["delete", "pods", "--namespace=kube-system", "--selector=k8s-app=kube-dns"]);
    site.kubectl(&["rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=180s"]);
}

#[test]
#[ignore = "a cluster that loses its power: make test-addons"]
fn cluster_webhooks_keep_no_cluster_down_without_a_word() {
    let Some(site) = Site::of_cluster("webhooks", "10.125.121.0/24", 1) else { return };
    site.ok(&["up"]);
    guard(&site);
    require_pods(&site);

    say("power cut of all hosts");
    for host in HOSTS {
        site.cut_power(host);
    }
    site.ok(&["up"]);
    site.ok(&["validate"]);
    require_pods(&site);

    say("the webhook has no pod");
    site.kubectl(&["scale", "deployment/guard", "--replicas=0"]);
    site.kubectl(&["wait", "pods", "--selector=app=guard", "--for=delete", "--timeout=120s"]);
    site.kubectl(&["delete", "pods", "--namespace=kube-system", "--selector=k8s-app=kube-dns"]);
    let since = Instant::now();
    let mut running = site.start(&["up"]);
    running.wait_for(REMEDY);
    say(&format!("named after {:.1} s", since.elapsed().as_secs_f64()));
    kill_process(running.pid(), Signal::INT).unwrap();
    running.wait(TIMEOUT);
    for words in [&["status"][..], &["validate", "--quick"]] {
        let done = site.start(words).wait(TIMEOUT);
        assert!(done.out.contains(REMEDY) || done.err.contains(REMEDY), "{done}");
    }
    let patch = r#"[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]"#;
    site.kubectl(&["patch", "validatingwebhookconfiguration/guard", "--type=json", "--patch", patch]);
    site.ok(&["up"]);
    site.ok(&["validate"]);
    site.ok(&["down", "--yes"]);
}
