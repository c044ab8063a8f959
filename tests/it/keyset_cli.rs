//! Rotation of authorities and keys, and the list of certificates, over a cluster whose hosts and
//! API server are made up. Certificates, bundles and node configs are real.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, Issuer, KeyPair};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::simulation::{Ended, Simulation};

fn read(simulation: &Simulation, rel: &str) -> String {
    fs_err::read_to_string(simulation.state(rel)).unwrap()
}

/// Whether the host was told to have this text: in its node config, as it is in JSON.
fn is_on(simulation: &Simulation, host: &str, text: &str) -> bool {
    let text = serde_json::to_string(text.trim_end()).unwrap();
    let there = fs_err::read_to_string(simulation.world(&format!("hosts/{host}/node-config.json"))).unwrap();
    there.contains(text.trim_matches('"'))
}

/// Gives the host's kubelet a client certificate that this authority signed.
fn give_kubelet(simulation: &Simulation, host: &str, authority: &str) {
    let key = KeyPair::from_pem(&read(simulation, &format!("pki/{authority}.key"))).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read(simulation, &format!("pki/{authority}.crt")), key).unwrap();
    let signed = CertificateParams::default().signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
    fs_err::write(simulation.world(&format!("hosts/{host}/kubelet-client.pem")), signed.pem()).unwrap();
}

fn refused(ended: &Ended) -> String {
    assert_eq!(ended.code, 4, "{ended}");
    ended.error().to_owned()
}

/// Days have a word in their place.
fn plain(text: &str) -> String {
    let is_day = |word: &str| word.len() == 10 && word.starts_with("20") && word.as_bytes()[4] == b'-';
    let words = |line: &str| {
        line.split(' ').map(|word| if is_day(word) { "YYYY-MM-DD" } else { word }).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

#[test]
fn an_authority_is_rotated_in_three_steps_and_no_step_comes_too_early() {
    let [control_plane, worker] = ["10.125.0.1", "10.125.0.2"];
    let simulation = Simulation::new(2);
    let mut said = vec![refused(&simulation.run(&["keyset", "create", "kubernetes-ca"]))];
    assert!(!simulation.state("").exists(), "a refusal made a directory");
    simulation.ok(&["up"]);
    assert!(!simulation.state("pki/keysets.json").exists(), "a cluster that is not rotated has no list");
    let old = read(&simulation, "pki/ca.crt");
    let mut step = |verb: &str, more: &[&str]| {
        let ended = simulation.ok(&[&["keyset", verb, "kubernetes-ca"], more].concat());
        said.push(format!("{verb}:\n{}{}", ended.out, ended.err));
        // Asked for at once: no host has it yet.
        let next = if verb == "create" { "promote" } else { "distrust" };
        if verb != "distrust" {
            said.push(refused(&simulation.run(&["keyset", next, "kubernetes-ca"])));
        }
        let plan = simulation.ok(&["plan"]).out;
        assert!(plan.contains("bootstrap/node-config@h0") && plan.contains("bootstrap/join@h1"), "{plan}");
        simulation.ok(&["up"]);
        assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
    };
    step("create", &[]);
    let new = read(&simulation, "pki/ca-2.crt");
    let trusted = || [control_plane, worker].map(|host| [&old, &new].map(|text| is_on(&simulation, host, text)));
    let leaf = || read(&simulation, "pki/kubelet-h1.crt");
    assert_eq!(trusted(), [[true, true]; 2]);
    let before = leaf();
    step("promote", &["--confirmed"]);
    assert_eq!(trusted(), [[true, true]; 2]);
    assert!(leaf() != before && is_on(&simulation, worker, &leaf()), "the new primary signs");
    // A kubelet renews its own when it likes, and a host may be away.
    give_kubelet(&simulation, control_plane, "ca-2");
    let silent = refused(&simulation.run(&["keyset", "distrust", "kubernetes-ca", "--confirmed"]));
    give_kubelet(&simulation, worker, "ca");
    let early = refused(&simulation.run(&["keyset", "distrust", "kubernetes-ca", "--confirmed"]));
    give_kubelet(&simulation, worker, "ca-2");
    let unseen = refused(&simulation.run(&["keyset", "distrust", "kubernetes-ca"]));
    step("distrust", &["1", "--confirmed"]);
    assert_eq!(trusted(), [[false, true]; 2]);
    said.push(format!("too early:\n{silent}\n{early}\n\nwithout --confirmed:\n{unseen}"));
    insta::assert_snapshot!("rotation", said.join("\n\n"));
    insta::assert_snapshot!("keysets", plain(&simulation.ok(&["keyset", "list"]).out));
    let list: Value =
        serde_json::from_str(&simulation.ok(&["keyset", "list", "kubernetes-ca", "--output", "json"]).out).unwrap();
    assert_eq!(list["schema"], "turnup.keyset/1");
    assert_eq!(list["items"][1]["state"], "primary");
}

#[test]
fn one_command_rotates_and_goes_on_where_it_was_cut_off() {
    let simulation = Simulation::new(2);
    simulation.ok(&["up"]);
    // A host fails in the first run.
    let keysets = simulation.state("pki/keysets.json");
    simulation.script(&[serde_json::json!({"tool": "ssh", "when": ["10.125.0.1 ", "node up"], "exit": 1, "stderr": "error: the disk is full"})]);
    assert_ne!(simulation.run(&["keyset", "rotate", "etcd-ca"]).code, 0);
    assert!(fs_err::read_to_string(&keysets).unwrap().contains("\"rotating\": true"));
    simulation.script(&[]);
    let ended = simulation.ok(&["keyset", "rotate", "etcd-ca"]);
    insta::assert_snapshot!("rotate", plain(&ended.out));
    assert!(ended.err.contains("etcd-ca: item 2 is the primary"), "{ended}");
    assert!(ended.err.contains("etcd-ca: item 1 is distrusted"), "{ended}");
    assert!(!fs_err::read_to_string(&keysets).unwrap().contains("rotating"), "it is over");
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
    let [old, new] = ["etcd-ca", "etcd-ca-2"].map(|file| read(&simulation, &format!("pki/{file}.crt")));
    assert_eq!([&old, &new].map(|text| is_on(&simulation, "10.125.0.1", text)), [false, true]);
    // Kubeconfigs elsewhere and tokens of pods are for the operator to judge.
    let early = refused(&simulation.run(&["keyset", "rotate", "service-account", "--confirmed"]));
    let stopped = refused(&simulation.run(&["keyset", "rotate", "kubernetes-ca", "--confirmed"]));
    assert!(stopped.contains("nothing outside uses a kubeconfig"), "it comes before the look: {stopped}");
    assert!(stopped.contains("turnup keyset rotate kubernetes-ca --confirmed"), "{stopped}");
    assert!(early.contains("pods have tokens of the key before until"), "{early}");
    assert!(early.contains("turnup keyset rotate service-account --confirmed"), "{early}");
}

#[test]
fn clients_of_the_api_start_again_once_they_get_its_authorities() {
    let simulation = Simulation::new(2);
    simulation.ok(&["up"]);
    let mark = |kind: &str, name: &str| -> Value {
        let text = fs_err::read_to_string(simulation.world(&format!("api/{kind}/{name}.json"))).unwrap();
        let object: Value = serde_json::from_str(&text).unwrap();
        object["spec"]["template"]["metadata"]["annotations"]["turnup.dev/kubernetes-ca"].clone()
    };
    let marks = || [mark("deployment", "coredns"), mark("daemonset", "kube-proxy"), mark("daemonset", "flannel")];
    assert_eq!(marks(), [Value::Null, Value::Null, Value::Null], "as it was before there were marks");
    // Kubernetes takes its time to tell every namespace; pods that start too early would know the
    // old one alone.
    let late = serde_json::json!({"tool": "kubectl", "when": ["configmaps --namespace=kube-system"], "times": 2,
        "exit": 0, "stdout": "{\"items\": []}"});
    simulation.script(&[late]);
    // Of another owner, from before.
    let metadata = |name: &str| serde_json::json!({"namespace": "shop", "name": name});
    let mut map = serde_json::json!({"kind": "ConfigMap", "metadata": metadata("kube-root-ca.crt")});
    map["metadata"]["managedFields"] =
        serde_json::json!([{"manager": "kube-controller-manager", "time": "2026-01-02T00:00:00Z"}]);
    simulation.put("configmap", "kube-root-ca.crt", &map);
    let mut pod = serde_json::json!({"kind": "Pod", "metadata": metadata("web-0"), "status": {"phase": "Running"},
        "spec": {"volumes": [{"name": "t", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}]}});
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    pod["metadata"]["ownerReferences"] = serde_json::json!([{"kind": "StatefulSet", "name": "web"}]);
    simulation.put("pod", "web-0", &pod);
    let stopped = refused(&simulation.run(&["keyset", "rotate", "kubernetes-ca"]));
    assert_eq!(marks(), ["1,2", "1,2", "1,2"]);
    assert!(simulation.world("taken/0-1").exists(), "it waited");
    let next = "kubectl --namespace shop rollout restart statefulset/web";
    assert!(stopped.contains(&format!("started before: shop: statefulset/web (1 pod): {next}")), "{stopped}");
    for host in ["10.125.0.1", "10.125.0.2"] {
        give_kubelet(&simulation, host, "ca-2");
    }
    let stopped = refused(&simulation.run(&["keyset", "rotate", "kubernetes-ca", "--confirmed"]));
    assert!(stopped.contains("nothing outside uses a kubeconfig that was issued before"), "{stopped}");
    assert_eq!(marks(), ["1,2", "1,2", "1,2"], "a promotion changes no bundle");
    let ended = simulation.ok(&["keyset", "rotate", "kubernetes-ca", "--confirmed"]);
    assert!(ended.err.contains(next), "what still trusts the former one: {ended}");
    assert_eq!(marks(), ["2", "2", "2"]);
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
}

/// As if the hosts had got the key so long ago.
fn move_signing(simulation: &Simulation, minutes: i64) {
    let path = simulation.state("pki/keysets.json");
    let mut all: Value = serde_json::from_str(&fs_err::read_to_string(&path).unwrap()).unwrap();
    let item = &mut all["keysets"]["service-account"]["items"][1];
    assert!(item["signs"].is_string(), "the first try writes it down: {item}");
    item["signs"] = (jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes)).to_string().into();
    fs_err::write(&path, all.to_string()).unwrap();
}

#[test]
fn a_former_key_of_tokens_goes_once_no_token_of_it_is_left() {
    let simulation = Simulation::new(2);
    simulation.ok(&["up"]);
    let rotate = || simulation.run(&["keyset", "rotate", "service-account", "--confirmed"]);
    let early = refused(&rotate());
    assert!(early.contains("pods have tokens of the key before until"), "{early}");
    // By hand it is no sooner.
    let by_hand = refused(&simulation.run(&["keyset", "distrust", "service-account", "--confirmed"]));
    assert!(by_hand.contains("pods have tokens of the key before until"), "{by_hand}");
    let line = "service-account: item 1 signs no longer and is still trusted; from ";
    let next = " on: turnup keyset rotate service-account --confirmed";
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for ended in [simulation.run(&["status", "--quick"]), simulation.ok(&["certificates"])] {
        let told = plain(&format!("{}{}", ended.out, ended.err));
        assert!(told.contains(line) && told.contains(next), "{told}");
    }
    let list: Value = serde_json::from_str(&simulation.ok(&["certificates", "--output", "json"]).out).unwrap();
    assert_eq!(list["rotations"][0]["is_former"], true, "{list}");

    // A pod whose token lives for ten hours, then a Secret with one that never ends.
    move_signing(&simulation, 80);
    let token = serde_json::json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 36000}});
    let pod = serde_json::json!({"kind": "Pod", "metadata": {"namespace": "shop", "name": "web",
        "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"volumes": [{"name": "t", "projected": {"sources": [token]}}]}, "status": {"phase": "Running"}});
    simulation.put("pod", "web", &pod);
    let long = refused(&rotate());
    assert!(long.contains("pod shop/web"), "{long}");
    move_signing(&simulation, 11 * 60);
    let public = x509_parser::pem::parse_x509_pem(read(&simulation, "pki/sa.pub").as_bytes()).unwrap().1.contents;
    let kid = URL_SAFE_NO_PAD.encode(Sha256::digest(public));
    let head = URL_SAFE_NO_PAD.encode(serde_json::json!({"alg": "RS256", "kid": kid}).to_string());
    let secret = serde_json::json!({"kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"namespace": "ci", "name": "robot"}, "data": {"token": STANDARD.encode(format!("{head}.e30.x"))}});
    simulation.put("secret", "robot", &secret);
    let kept = refused(&rotate());
    assert!(kept.contains("Secret ci/robot") && kept.contains("kubectl --namespace ci patch secret robot"), "{kept}");
    fs_err::remove_file(simulation.world("api/secret/robot.json")).unwrap();
    let unseen = refused(&simulation.run(&["keyset", "rotate", "service-account"]));
    assert!(unseen.contains("no program keeps a token that it read before"), "{unseen}");
    let ended = rotate();
    assert!(ended.code == 0 && ended.err.contains("service-account: item 1 is distrusted"), "{ended}");
    assert!(!simulation.run(&["status", "--quick"]).out.contains("rotations under way"));
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
}

#[test]
fn a_promotion_waits_for_a_host_whose_step_failed() {
    let simulation = Simulation::new(2);
    simulation.ok(&["up"]);
    simulation.ok(&["keyset", "create", "service-account"]);
    simulation.ok(&["keyset", "create", "kubernetes-ca"]);
    simulation.ok(&["render", "bootstrap", "--to", "rendered"]);
    let rendered = fs_err::read_to_string(simulation.path("work/rendered/node-config/h0.json")).unwrap();
    assert!(rendered.contains("service-account-key-file=/etc/kubernetes/kube-apiserver/sa-2.pub"), "{rendered}");
    assert!(rendered.contains("client-ca-file=/etc/kubernetes/kube-controller-manager/ca-bundle.crt"), "{rendered}");
    // The node configs are written, and one host does not get its own.
    simulation.script(&[serde_json::json!({"tool": "ssh", "when": ["10.125.0.1 ", "node up"], "exit": 1, "stderr": "error: the disk is full"})]);
    assert_ne!(simulation.run(&["bootstrap"]).code, 0);
    let error = refused(&simulation.run(&["keyset", "promote", "service-account"]));
    assert!(error.contains("h0: its node config was not applied"), "{error}");
    simulation.script(&[]);
    simulation.ok(&["bootstrap"]);
    let done: Value =
        serde_json::from_str(&simulation.ok(&["keyset", "promote", "service-account", "--output", "json"]).out)
            .unwrap();
    assert_eq!(done["item"], 2);
    assert_eq!(done["restarts"], serde_json::json!(["kube-apiserver", "kube-controller-manager"]));
}

#[test]
fn every_certificate_is_listed_with_its_owner_issuer_end_and_what_renews_it() {
    let simulation = Simulation::new(2);
    let ended = simulation.ok(&["certificates"]);
    assert!(ended.out.is_empty() && ended.err.contains("there is no certificate yet"), "{ended}");
    simulation.ok(&["config", "set", "phase2.kubeconfig.user=anne@example.com"]);
    simulation.ok(&["up"]);
    simulation.ok(&["kubeconfig", "--user", "bob", "--group", "viewers", "--to", "bob"]);
    // One that ended, of another authority.
    let mut params = CertificateParams::default();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let ended = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    fs_err::write(simulation.state("pki/scheduler.crt"), ended.pem()).unwrap();
    // Of a host that is gone.
    fs_err::copy(simulation.state("pki/kubelet-h1.crt"), simulation.state("pki/kubelet-h9.crt")).unwrap();
    insta::assert_snapshot!("certificates", plain(&simulation.ok(&["certificates", "--details"]).out));
    let list: Value = serde_json::from_str(&simulation.ok(&["certificates", "--output", "json"]).out).unwrap();
    assert_eq!(list["schema"], "turnup.certificates/1");
    let all = list["certificates"].as_array().unwrap();
    let of = |file: &str| all.iter().find(|one| one["file"] == file).unwrap();
    assert_eq!(of("pki/scheduler.crt")["level"], "ended");
    assert!(of("pki/apiserver-h0.crt")["sans"].as_array().unwrap().contains(&"10.125.0.1".into()));
    let status: Value = serde_json::from_str(&simulation.run(&["status", "--quick", "--output", "json"]).out).unwrap();
    for one in status["certificates"].as_array().unwrap() {
        assert_eq!(one["level"], of(one["file"].as_str().unwrap())["level"], "both say the same of {one}");
    }
}
