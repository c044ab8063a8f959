//! cert-manager on a real host: an authority of one's own issues certificates that openssl
//! verifies, the webhook refuses what is wrong, and nothing goes unasked or is left behind.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "openssl judges what was issued")]

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::{apply, image};
use crate::cluster_support::Site;

/// Only what hangs takes as long: a Lease is free after a minute.
const SOON: Duration = Duration::from_mins(2);
const SYSTEM: &str = "--namespace=kube-system";
const PROGRAMS: [&str; 3] = ["cert-manager", "cert-manager-cainjector", "cert-manager-webhook"];

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_certificates_are_issued_and_never_lost_unasked() {
    let Some(site) = Site::of_cluster("certificates", "10.125.31.0/24", 0) else { return };
    // Of the user's own manifests, in the same run: the webhook judges it before it is there.
    let root = object("ClusterIssuer", "selfsigned", &json!({"selfSigned": {}}));
    fs_err::write(site.dir.join("root.json"), root.to_string()).unwrap();
    let chosen = ["phase3.cert_manager=y", "phase3.cert_manager_replicas=2", "phase3.manifests=root.json"];
    site.ok(&[&["config", "set"], &chosen[..]].concat());
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    certificates_are_issued(&site);
    what_is_wrong_is_refused(&site);
    a_lost_secret_is_issued_again(&site);
    the_image_answers_challenges(&site);
    it_has_the_rights_that_it_uses(&site);
    metrics_are_where_the_document_says(&site);
    what_is_injected_stays(&site);
    what_others_remove_comes_back(&site);
    certificates_are_not_switched_off_unasked(&site);
    what_is_switched_off_is_gone(&site);
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn wait_until_ready(site: &Site, object: &str) {
    site.kubectl(&["wait", "--for=condition=Ready", object, "--timeout=2m"]);
}

/// A key of a Secret, in a file.
fn save(site: &Site, secret: &str, key: &str) -> String {
    let template = format!("--output=go-template={{{{index .data {key:?} | base64decode}}}}");
    let file = site.dir.join(format!("{secret}.{key}"));
    fs_err::write(&file, site.kubectl(&["get", "secret", secret, &template])).unwrap();
    file.display().to_string()
}

fn openssl(args: &[&str]) -> String {
    let output = Command::new("openssl").args(args).output().unwrap();
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn certificates_are_issued(site: &Site) {
    let authority = json!({
        "isCA": true, "commonName": "house authority", "secretName": "house", "privateKey": {"algorithm": "ECDSA"},
        "issuerRef": {"kind": "ClusterIssuer", "name": "selfsigned"},
    });
    let issuer = object("Issuer", "house", &json!({"ca": {"secretName": "house"}}));
    let leaf = json!({
        "secretName": "shop", "dnsNames": ["shop.example.com"], "issuerRef": {"kind": "Issuer", "name": "house"},
    });
    apply(site, "authority", &[object("Certificate", "house", &authority), issuer]);
    wait_until_ready(site, "certificate/house");
    wait_until_ready(site, "issuer/house");
    apply(site, "leaf", &[object("Certificate", "shop", &leaf)]);
    wait_until_ready(site, "certificate/shop");
    let (root, leaf) = (save(site, "house", "tls.crt"), save(site, "shop", "tls.crt"));
    openssl(&["verify", "-x509_strict", "-CAfile", &root, "-verify_hostname", "shop.example.com", &leaf]);
    let (certified, key) = (openssl(&["x509", "-in", &leaf, "-noout", "-pubkey"]), save(site, "shop", "tls.key"));
    assert_eq!(openssl(&["pkey", "-in", &key, "-pubout"]), certified);
}

/// What the schema of the kind lets through.
fn what_is_wrong_is_refused(site: &Site) {
    let wrong = object("Issuer", "wrong", &json!({"selfSigned": {}, "ca": {"secretName": "house"}}));
    let file = site.dir.join("wrong.json");
    fs_err::write(&file, wrong.to_string()).unwrap();
    let refused = site.try_kubectl(&["apply", &format!("--filename={}", file.display())]).unwrap_err();
    for part in ["admission webhook \"webhook.cert-manager.io\" denied", "may not specify more than one issuer type"] {
        assert!(refused.contains(part), "{refused}");
    }
}

fn a_lost_secret_is_issued_again(site: &Site) {
    let before = fs_err::read_to_string(save(site, "shop", "tls.crt")).unwrap();
    site.kubectl(&["delete", "secret", "shop"]);
    let start = Instant::now();
    while site.try_kubectl(&["get", "secret", "shop"]).is_err() {
        assert!(start.elapsed() < SOON, "no Secret shop");
        std::thread::sleep(Duration::from_secs(1));
    }
    wait_until_ready(site, "certificate/shop");
    assert_ne!(fs_err::read_to_string(save(site, "shop", "tls.crt")).unwrap(), before);
}

/// As a pod that the controller makes for an HTTP-01 challenge: it says no command.
fn the_image_answers_challenges(site: &Site) {
    let args = ["--listen-port=8089", "--domain=shop.example.com", "--token=token", "--key=key"];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solver"}, "spec": {
        "automountServiceAccountToken": false, "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": true},
        "containers": [{
            "name": "acmesolver", "image": image(site, "deployment/cert-manager"), "args": args,
            "readinessProbe": {"httpGet": {
                "port": 8089, "path": "/.well-known/acme-challenge/token",
                "httpHeaders": [{"name": "Host", "value": "shop.example.com"}],
            }},
        }],
    }});
    apply(site, "solver", &[pod]);
    wait_until_ready(site, "pod/solver");
    site.kubectl(&["delete", "pod", "solver", "--wait=false"]);
}

fn it_has_the_rights_that_it_uses(site: &Site) {
    for program in PROGRAMS {
        let selector = format!("--selector=app.kubernetes.io/name={program}");
        let log = site.kubectl(&["logs", SYSTEM, &selector, "--tail=-1", "--prefix"]);
        assert!(log.contains("starting cert-manager") && !log.contains("forbidden"), "{program}: {log}");
    }
    let may = |account: &str, verb: &str, resource: &str| {
        let account = format!("--as=system:serviceaccount:kube-system:{account}");
        site.try_kubectl(&["auth", "can-i", verb, resource, SYSTEM, &account]).is_ok()
    };
    assert!(may("cert-manager", "create", "secrets"));
    for (account, verb, resource) in [
        ("cert-manager", "create", "serviceaccounts/token"),
        ("cert-manager", "list", "certificatesigningrequests.certificates.k8s.io"),
        ("cert-manager", "list", "gateways.gateway.networking.k8s.io"),
        ("cert-manager-cainjector", "update", "secrets"),
        ("cert-manager-webhook", "list", "secrets"),
        ("cert-manager-webhook", "create", "secrets"),
        ("cert-manager-webhook", "delete", "secrets/cert-manager-webhook-ca"),
    ] {
        assert!(!may(account, verb, resource), "{account} may {verb} {resource}");
    }
}

fn metrics_are_where_the_document_says(site: &Site) {
    for (program, metric) in PROGRAMS.iter().zip(["certmanager_", "controller_runtime_", "go_goroutines"]) {
        let selector = format!("--selector=app.kubernetes.io/name={program}");
        let first = "--output=jsonpath={.items[0].metadata.name}";
        let pod = site.kubectl(&["get", "pods", SYSTEM, &selector, first]);
        let said =
            site.kubectl(&["get", "--raw", &format!("/api/v1/namespaces/kube-system/pods/{pod}:9402/proxy/metrics")]);
        assert!(said.contains(metric), "{program}: {said}");
    }
}

/// The authority that the API server takes the webhook by.
fn authority(site: &Site, kind: &str) -> String {
    let path = "--output=go-template={{with (index .webhooks 0).clientConfig.caBundle}}{{. | base64decode}}{{end}}";
    site.kubectl(&["get", kind, "cert-manager-webhook", path])
}

fn what_is_injected_stays(site: &Site) {
    let before = authority(site, "validatingwebhookconfiguration");
    assert!(!before.is_empty());
    assert_eq!(authority(site, "mutatingwebhookconfiguration"), before);
    site.ok(&["config", "set", "phase3.cert_manager_log_level=4"]);
    let planned = site.ok(&["plan"]).out;
    assert!(planned.contains("verbosity: 4") && !planned.contains("caBundle"), "{planned}");
    site.ok(&["up"]);
    assert_eq!(authority(site, "validatingwebhookconfiguration"), before);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

fn what_others_remove_comes_back(site: &Site) {
    let before = authority(site, "mutatingwebhookconfiguration");
    site.kubectl(&["delete", "validatingwebhookconfiguration", "cert-manager-webhook"]);
    site.kubectl(&["delete", "secret", "cert-manager-webhook-ca", SYSTEM]);
    let planned = site.ok(&["plan"]).out;
    for object in ["ValidatingWebhookConfiguration cert-manager-webhook", "Secret cert-manager-webhook-ca"] {
        assert!(planned.contains(object), "{object}: {planned}");
    }
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    let start = Instant::now();
    loop {
        let said = site.try_kubectl(&["annotate", "--overwrite", "issuer/house", "it=here"]);
        let [ours, other] =
            ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"].map(|kind| authority(site, kind));
        // The cainjector adds a new authority to those that were there: no moment is without the
        // right one.
        if said.is_ok() && !ours.is_empty() && other.contains(ours.trim()) {
            assert_ne!(ours, before, "the authority is another one");
            return;
        }
        let logs = || {
            PROGRAMS.map(|program| {
                let selector = format!("--selector=app.kubernetes.io/name={program}");
                site.kubectl(&["logs", SYSTEM, &selector, "--tail=25"])
            })
        };
        assert!(start.elapsed() < SOON, "the webhook does not answer: {said:?} {ours} {other} {}", logs().join("\n"));
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn certificates_are_not_switched_off_unasked(site: &Site) {
    site.ok(&["config", "set", "phase3.cert_manager=n"]);
    for command in ["up", "addons", "plan"] {
        let refused = site.fails(4, &[command]);
        let said = refused.out + &refused.err;
        for part in [
            "objects of kinds that the addon cert-manager defines would be deleted with it; nothing was changed",
            "Certificate default/house",
            "Certificate default/shop",
            "CertificateRequest default/",
            "ClusterIssuer selfsigned",
            "Issuer default/house",
            "turnup config set phase3.cert_manager=y; or, to lose them: kubectl delete \
             certificaterequests.cert-manager.io,certificates.cert-manager.io,issuers.cert-manager.io,\
             clusterissuers.cert-manager.io --all --all-namespaces",
        ] {
            assert!(said.contains(part), "{command}: {part}: {said}");
        }
    }
    for program in PROGRAMS {
        let ready = "--output=jsonpath={.status.readyReplicas}";
        assert_eq!(site.kubectl(&["get", "deployment", program, SYSTEM, ready]), "2", "{program}");
    }
}

fn what_is_switched_off_is_gone(site: &Site) {
    site.ok(&["config", "unset", "phase3.manifests"]);
    // What the refusal said.
    let kinds = "certificaterequests.cert-manager.io,certificates.cert-manager.io,issuers.cert-manager.io,\
        clusterissuers.cert-manager.io";
    site.kubectl(&["delete", kinds, "--all", "--all-namespaces"]);
    site.ok(&["up"]);
    for program in PROGRAMS {
        let selector = format!("--selector=app.kubernetes.io/name={program}");
        site.kubectl(&["wait", "--for=delete", "pod", SYSTEM, &selector, "--timeout=2m"]);
    }
    let kinds = "customresourcedefinitions,validatingwebhookconfigurations,mutatingwebhookconfigurations,deployments,\
        services,endpointslices,secrets,leases,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings";
    let left = site.kubectl(&["get", kinds, "--all-namespaces", "--output=name"]);
    let of_it = |name: &&str| name.contains("cert-manager");
    assert_eq!(left.lines().filter(of_it).collect::<Vec<_>>(), [""; 0], "{left}");
    // What serves them goes on.
    let secrets = site.kubectl(&["get", "secrets", "--output=name"]);
    assert_eq!(secrets.lines().collect::<Vec<_>>(), ["secret/house", "secret/shop"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
