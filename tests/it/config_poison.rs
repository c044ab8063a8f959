//! Configurations that cannot work are refused by `config check`, `plan` and every run in the same
//! words and with their place, before anything is made; good ones pass.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::cli_support::TestEnv;

/// What is wrong, what is in the file, the settings that are answered, and what is said about it.
type Poisoned = (&'static str, Value, &'static str);

/// Exit code of a configuration that cannot be used.
const REFUSED: i32 = 3;

fn phase2(inner: impl Into<Value>) -> Value {
    json!({ "phase2": inner.into() })
}

fn api_server(name: &str, value: impl Into<Value>) -> Value {
    phase2(json!({"apiserver": {name: value.into()}}))
}

fn asset(more: &Value) -> Value {
    let mut file = json!({"name": "a", "path": "/etc/a"});
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    phase2(json!({"host": {"file_assets": [file]}}))
}

fn kubelet(name: &str, value: impl Into<Value>) -> Value {
    phase2(json!({"kubelet": {name: value.into()}}))
}

fn overrides(file: &str) -> Value {
    phase2(json!({ "overrides": file }))
}

fn cloud(inner: Value) -> Value {
    let mut phase2 = inner;
    phase2["kubernetes_version"] = "1.36.3".into();
    let user_data = json!({"artifacts_url": "https://artifacts.example.com/a"});
    json!({"phase1": {"cloud_provider": "gce", "gce": {"project": "p"}, "user_data": user_data}, "phase2": phase2})
}

/// The files that configurations name.
fn files(test_env: &TestEnv) {
    fs_err::create_dir(test_env.path("dir")).unwrap();
    let kubeconfig = |cluster: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {{server: https://a.example, {cluster}}}\n\
             users:\n- name: a\n  user: {{{user}}}\n"
        )
    };
    for (name, text) in [
        ("good.conf", kubeconfig("certificate-authority-data: YQ==", "token: abc")),
        ("ca.conf", kubeconfig("certificate-authority: ca.crt", "token: abc")),
        ("cert.conf", kubeconfig("", "client-certificate: a.crt")),
        ("key.conf", kubeconfig("", "client-key: a.key")),
        ("token.conf", kubeconfig("", "tokenFile: /a")),
        ("exec.conf", kubeconfig("", "exec: {command: a}")),
        ("text.conf", "hello: there\n".to_owned()),
        ("field.yaml", "kubelet:\n  maxPod: 50\n".to_owned()),
        ("component.yaml", "kublet:\n  maxPods: 50\n".to_owned()),
        ("type.yaml", "kubelet:\n  maxPods: many\n".to_owned()),
        ("gate.yaml", "kubelet:\n  featureGates:\n    NoSuchGate: true\n".to_owned()),
        ("gate-type.yaml", "kubelet:\n  featureGates:\n    ContextualLogging: maybe\n".to_owned()),
        ("flag.yaml", "kube-apiserver:\n  no-such-flag: 1\n".to_owned()),
        ("removed.yaml", "kube-controller-manager:\n  concurrent-service-syncs: 2\n".to_owned()),
        ("later.yaml", "kube-controller-manager:\n  concurrent-disruption-syncs: 2\n".to_owned()),
        ("unit.yaml", "kube-apiserver:\n  min-request-timeout: 5m\n".to_owned()),
        ("decided.yaml", "kube-apiserver:\n  secure-port: 7000\n".to_owned()),
        ("cidr.yaml", "kube-controller-manager:\n  cluster-cidr: 10.1.0.0/16\n".to_owned()),
        ("dns.yaml", "kubelet:\n  clusterDomain: a.example\n".to_owned()),
        ("role.yaml", "roles:\n  master:\n    kubelet:\n      maxPods: 50\n".to_owned()),
        ("etcd.yaml", "roles:\n  worker:\n    etcd:\n      max-txn-ops: 200\n".to_owned()),
        ("group.yaml", "groups:\n  worker:\n    kubelet:\n      maxPods: 50\n".to_owned()),
        ("words.yaml", "kube-apiserver:\n  disable-admission-plugins: [PodNodeSelektor]\n".to_owned()),
        ("good.yaml", "kubelet:\n  maxPods: 50\nkube-apiserver:\n  goaway-chance: 0.001\n".to_owned()),
        ("broken.yaml", "kubelet: [\n".to_owned()),
        ("list.yaml", "- kubelet\n".to_owned()),
        ("binary.yaml", "\u{0}\u{1}".to_owned()),
        ("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Wrong\n".to_owned()),
    ] {
        test_env.write(name, &text);
        fs_err::set_permissions(test_env.path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[expect(clippy::too_many_lines, reason = "one table")]
fn poisoned() -> Vec<Poisoned> {
    let group = |key: &str, mut entry: Value| {
        entry["groups"] = json!(["worker"]);
        phase2(json!({"host": {key: [entry]}}))
    };
    vec![
        // Feature gates.
        ("feature_gates", phase2(json!({"feature_gates": {"NoSuchGate": true}})), "`NoSuchGate` is no feature gate"),
        ("feature_gates", phase2(json!({"feature_gates": {"ContextualLogging": "maybe"}})), "each is true or false"),
        ("overrides", overrides("gate.yaml"), "NoSuchGate: it is no feature gate of kubelet"),
        ("overrides", overrides("gate-type.yaml"), "is no map<string, bool>"),
        // Flags and fields.
        ("overrides", overrides("field.yaml"), "did you mean `maxPods`?"),
        ("overrides", overrides("component.yaml"), "did you mean `kubelet`?"),
        ("overrides", overrides("type.yaml"), "\"many\" is no"),
        ("overrides", overrides("flag.yaml"), "it is no flag and no field of kube-apiserver"),
        (
            "overrides",
            phase2(json!({"overrides": "removed.yaml", "kubernetes_version": "1.37.2"})),
            "; Kubernetes 1.35.4, 1.36.3 has it",
        ),
        ("overrides", overrides("later.yaml"), "; Kubernetes 1.37.2 has it"),
        ("overrides", overrides("unit.yaml"), "5m is no int"),
        ("overrides", overrides("decided.yaml"), "secure-port: turnup decides this itself"),
        ("overrides", overrides("cidr.yaml"), "cluster-cidr: turnup decides this itself"),
        ("overrides", overrides("dns.yaml"), "clusterDomain: turnup decides this itself"),
        ("overrides", overrides("role.yaml"), "it is no role"),
        ("overrides", overrides("etcd.yaml"), "it does not run on a worker"),
        ("overrides", overrides("group.yaml"), "no node group `worker`; did you mean `workers`?"),
        ("overrides", overrides("words.yaml"), "knows no `PodNodeSelektor`; did you mean `PodNodeSelector`?"),
        ("overrides", overrides("broken.yaml"), "broken.yaml"),
        ("overrides", overrides("list.yaml"), "it is no object"),
        ("overrides", overrides("missing.yaml"), "missing.yaml is not there"),
        // A file that cannot be read, also for root.
        ("overrides", overrides("dir"), "dir"),
        ("audit_policy_file", phase2(json!({"security": {"audit_policy_file": "dir"}})), "dir"),
        ("allowed_unsafe_sysctls", kubelet("allowed_unsafe_sysctls", json!(["vm.swappiness"])), "each pod has its own"),
        ("runtime_config", api_server("runtime_config", json!({"batch/v2x": true})), "neither GROUP/VERSION"),
        // What turnup decides, on a cloud whose hosts are not made yet.
        ("overrides", cloud(json!({"overrides": "decided.yaml"})), "secure-port: turnup decides this itself"),
        ("overrides", cloud(json!({"overrides": "dns.yaml"})), "clusterDomain: turnup decides this itself"),
        ("overrides", cloud(json!({"overrides": "group.yaml"})), "no node group `worker`"),
        // Names of plugins and controllers.
        (
            "enable_admission_plugins",
            api_server("enable_admission_plugins", json!(["PodNodeSelektor"])),
            "`PodNodeSelektor`",
        ),
        (
            "enable_admission_plugins",
            api_server("enable_admission_plugins", json!(["AlwaysPullImages"])),
            "AlwaysPullImages keeps pods",
        ),
        (
            "enable_admission_plugins",
            api_server("enable_admission_plugins", json!(["ImagePolicyWebhook"])),
            "needs a configuration",
        ),
        (
            "disable_admission_plugins",
            api_server("disable_admission_plugins", json!(["NoSuchPlugin"])),
            "knows no `NoSuchPlugin`",
        ),
        (
            "disable_admission_plugins",
            api_server("disable_admission_plugins", json!(["NodeRestriction"])),
            "cannot be disabled",
        ),
        (
            "controllers",
            phase2(
                json!({"controller_manager": {"controllers": ["*", "token-cleaner-controller", "-no-such-controller"]}}),
            ),
            "knows no `no-such-controller`",
        ),
        (
            "controllers",
            phase2(json!({"controller_manager": {"controllers": ["*"]}})),
            "token-cleaner-controller is missing",
        ),
        // Webhooks.
        (
            "authentication_webhook_file",
            api_server("authentication_webhook_file", "ca.conf"),
            "embed what is in it: certificate-authority-data",
        ),
        (
            "authentication_webhook_file",
            api_server("authentication_webhook_file", "cert.conf"),
            "client-certificate-data",
        ),
        ("authorization_webhook_file", api_server("authorization_webhook_file", "key.conf"), "client-key-data"),
        (
            "authorization_webhook_file",
            api_server("authorization_webhook_file", "token.conf"),
            "tokenFile names the file /a",
        ),
        ("authorization_webhook_file", api_server("authorization_webhook_file", "exec.conf"), "exec names a program"),
        ("authorization_webhook_file", api_server("authorization_webhook_file", "text.conf"), "it is no kubeconfig"),
        (
            "authorization_webhook_file",
            api_server("authorization_webhook_file", "missing.conf"),
            "missing.conf is not there",
        ),
        (
            "authorization_webhook_file",
            cloud(json!({"apiserver": {"authorization_webhook_file": "ca.conf"}})),
            "certificate-authority names the file",
        ),
        ("audit_policy_file", phase2(json!({"security": {"audit_policy_file": "audit.yaml"}})), "audit.yaml"),
        ("config_file", phase2(json!({"scheduler": {"config_file": "binary.yaml"}})), "binary.yaml is no YAML"),
        // Networks.
        ("pod_cidr", phase2(json!({"pod_cidr": "10.244.0.1/16"})), "10.244.0"),
        ("service_cidr", phase2(json!({"service_cidr": "10.244.0.0/20"})), "overlaps"),
        ("api_port", phase2(json!({"api_port": 10250})), "is taken by kubelet"),
        // Numbers, units and types.
        ("max_pods", phase2(json!({"max_pods": "many"})), "max_pods"),
        ("max_pods", phase2(json!({"max_pods": 100_000})), "must lie between 10 and 250"),
        ("num_nodes", json!({"phase1": {"num_nodes": "3"}}), "num_nodes"),
        ("num_nodes", json!({"phase1": {"num_nodes": 1001}}), "must lie between 0 and 1000"),
        ("count", json!({"phase1": {"control_plane": {"count": 2}}}), "survive no more losses"),
        ("node_status_update_frequency", kubelet("node_status_update_frequency", "10"), "node_status_update_frequency"),
        ("eviction_hard", kubelet("eviction_hard", json!({"memory.avail": "100Mi"})), "is no eviction signal"),
        ("eviction_hard", kubelet("eviction_hard", json!({"memory.available": "100Mib"})), "eviction_hard"),
        ("kube_reserved", kubelet("kube_reserved", json!({"gpu": "1"})), "is no resource that can be reserved"),
        ("cpu_manager_policy", kubelet("cpu_manager_policy", "static"), "reserve cpu"),
        (
            "image_gc_low_threshold",
            phase2(json!({"kubelet": {"image_gc_low_threshold": 80, "image_gc_high_threshold": 80}})),
            "it must be smaller",
        ),
        ("node_labels", kubelet("node_labels", json!({"kubernetes.io/role": "a"})), "is a label of Kubernetes' own"),
        ("election_timeout_ms", phase2(json!({"etcd": {"election_timeout_ms": 200}})), "election_timeout_ms"),
        (
            "tls_ciphers",
            phase2(json!({"security": {"tls13": false, "tls_ciphers": ["TLS_RSA_WITH_AES_128_CBC_SHA"]}})),
            "tls_ciphers",
        ),
        (
            "encryption_resources",
            phase2(json!({"security": {"encryption_resources": ["Secrets!"]}})),
            "is no kind of objects",
        ),
        ("oidc_issuer_url", api_server("oidc_issuer_url", "http://a.example"), "https://"),
        (
            "oidc_issuer_url",
            phase2(
                json!({"apiserver": {"oidc_issuer_url": "https://a.example", "oidc_client_id": "a", "service_account_issuer": "https://a.example"}}),
            ),
            "issues the tokens of service accounts already",
        ),
        ("kubernetes_version", phase2(json!({"kubernetes_version": "1.2.3"})), "1.2.3"),
        ("lifetime", phase2(json!({"kubeconfig": {"lifetime": "1m"}})), "less than an hour"),
        // Groups that are misspelt.
        (
            "file_assets",
            group("file_assets", json!({"name": "a", "path": "/etc/a", "content": "a"})),
            "did you mean `workers`?",
        ),
        ("hooks", group("hooks", json!({"name": "a", "command": "true"})), "did you mean `workers`?"),
        // Files that are links, directories and bytes.
        ("file_assets", asset(&json!({"base46": "YQ=="})), "there is no field `base46`; did you mean `base64`?"),
        ("file_assets", asset(&json!({"base64": "%"})), "base64 is not base64"),
        ("file_assets", asset(&json!({"link": "../b"})), "link: `../b` is not valid; expected an absolute path"),
        ("file_assets", asset(&json!({"link": "/b", "mode": "0644"})), "a link has no mode of its own"),
        ("file_assets", asset(&json!({"directory": true, "mode": "0777"})), "add \"privileged\": true"),
        (
            "file_assets",
            cloud(
                json!({"host": {"file_assets": [{"name": "a", "path": "/etc/a", "content": "a", "groups": ["gpu"]}]}}),
            ),
            "no group here is called `gpu`; groups: control-plane, workers",
        ),
        // Keys.
        ("cluster_nam", json!({"phase1": {"cluster_nam": "x"}}), "did you mean"),
    ]
}

/// What `config check` says is wrong, each with its place.
fn mistakes_of_check(out: &str) -> Vec<String> {
    out.lines().filter_map(|line| line.strip_prefix("error: ")).map(str::to_owned).collect()
}

/// The same of a command that ends with an error: one in its message, with causes, evidence and the
/// next command behind it, or several as evidence.
fn mistakes_of_run(err: &str) -> Vec<String> {
    let mut lines = err.lines().skip_while(|line| !line.starts_with("error: "));
    let head = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let is_correct = |line: &&str| !line.starts_with("next: correct the file, ");
    let rest = lines.filter(is_correct).map(|line| {
        let line = line.trim_start();
        line.strip_prefix("| ").or_else(|| line.strip_prefix("caused by: ")).unwrap_or(line).to_owned()
    });
    let rest: Vec<String> = rest.collect();
    if head.ends_with(" mistakes") { rest } else { vec![[vec![head], rest].concat().join("; ")] }
}

/// Whether both say the same, in the same order; a run may show the text around a cause as well.
fn is_same(run: &[String], check: &[String]) -> bool {
    run.len() == check.len() && run.iter().zip(check).all(|(run, check)| run.starts_with(check.as_str()))
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_made() {
    let all = poisoned();
    assert!(all.len() >= 60, "{}", all.len());
    let mut wrong = Vec::new();
    for (key, file, why) in all {
        let test_env = TestEnv::new("");
        files(&test_env);
        test_env.write(".config.json", &file.to_string());
        let check = test_env.run(&["config", "check"]);
        let told = mistakes_of_check(&check.out);
        let is_it = |line: &String| line.starts_with(".config.json:1:") && line.contains(key) && line.contains(why);
        if check.code != REFUSED || !told.iter().any(is_it) {
            wrong.push(format!("{file}: {} without {key}, {why} or their place:\n{}", check.code, check.out));
        }
        for command in ["plan", "up", "provision"] {
            let outcome = test_env.run(&[command]);
            if outcome.code != REFUSED || !is_same(&mistakes_of_run(&outcome.err), &told) {
                wrong.push(format!("{command} of {file}: {}\n{}\ncheck: {told:#?}", outcome.code, outcome.err));
            }
        }
        if test_env.path(".turnup").exists() {
            wrong.push(format!("{file}: something was made"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The phases after the first refuse it for hosts that exist, too, before they do anything there.
#[test]
fn later_phases_refuse_it_in_the_same_words_where_hosts_exist() {
    let key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{:A>42}", 1);
    let ssh = json!({"user": "root", "port": 22, "host_key": key});
    let host = json!({"name": "kubernetes-control-plane-0", "role": "control-plane", "address": "10.117.0.2", "instance": "1", "ssh": ssh});
    let inventory = json!({
        "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "local",
        "api": {"host": "10.117.0.2", "port": 6443}, "hosts": [host],
    });
    for (file, why) in [
        (api_server("authorization_webhook_file", "ca.conf"), "certificate-authority names the file"),
        (phase2(json!({"scheduler": {"config_file": "binary.yaml"}})), "binary.yaml is no YAML"),
        (phase2(json!({"feature_gates": {"NoSuchGate": true}})), "is no feature gate"),
    ] {
        let test_env = TestEnv::new("");
        files(&test_env);
        test_env.write(".config.json", &file.to_string());
        test_env.write(".turnup/kubernetes/outputs/provision.json", &inventory.to_string());
        let told = mistakes_of_check(&test_env.ends(REFUSED, &["config", "check"]).out);
        assert!(told.len() == 1 && told[0].starts_with(".config.json:1:") && told[0].contains(why), "{told:?}");
        for command in ["bootstrap", "addons"] {
            let said = mistakes_of_run(&test_env.ends(REFUSED, &[command]).err);
            assert!(is_same(&said, &told), "{command}: {said:?}, check: {told:?}");
        }
        assert!(!test_env.path(".turnup/kubernetes/lock").exists(), "no run had the lock");
    }
}

#[test]
fn what_is_wrong_for_one_run_is_told_with_what_gave_it() {
    let test_env = TestEnv::new("");
    test_env.write(".config.json", r#"{"phase2": {"feature_gates": {"ContextualLogging": true}}}"#);
    let given = "--set=phase2.feature_gates=NoSuchGate=true";
    let told = "--set phase2.feature_gates: phase2.feature_gates: `NoSuchGate` is no feature gate of Kubernetes 1.36.3";
    let check = test_env.ends(REFUSED, &["config", "check", given]);
    assert_eq!(mistakes_of_check(&check.out), [told]);
    for command in ["plan", "up", "status", "render"] {
        assert_eq!(mistakes_of_run(&test_env.ends(REFUSED, &[command, given]).err), [told], "{command}");
    }
}

#[test]
fn what_works_passes() {
    let good = [
        json!({}),
        overrides("good.yaml"),
        cloud(json!({"overrides": "good.yaml"})),
        cloud(json!({"apiserver": {"authorization_webhook_file": "good.conf"}})),
        phase2(json!({"feature_gates": {"ContextualLogging": false}})),
        api_server("enable_admission_plugins", json!(["PodNodeSelector", "PodTolerationRestriction"])),
        api_server("disable_admission_plugins", json!(["DefaultTolerationSeconds"])),
        api_server("authentication_webhook_file", "good.conf"),
        api_server("authorization_webhook_file", "good.conf"),
        phase2(
            json!({"controller_manager": {"controllers": ["*", "token-cleaner-controller", "-ttl-after-finished-controller"]}}),
        ),
        phase2(json!({"max_pods": 50})),
        phase2(json!({"service_cidr": "10.97.0.0/16"})),
        phase2(json!({"api_port": 8443})),
        kubelet("eviction_hard", json!({"memory.available": "200Mi"})),
        kubelet("kube_reserved", json!({"cpu": "100m"})),
        kubelet("node_labels", json!({"environment": "staging"})),
        json!({"phase1": {"cluster_name": "other"}}),
        json!({"phase1": {"num_nodes": 3}}),
        phase2(
            json!({"host": {"file_assets": [{"name": "a", "path": "/etc/a", "content": "a", "groups": ["workers"]}]}}),
        ),
        phase2(json!({"host": {"hooks": [{"name": "a", "unit_file": "good.yaml", "disabled": true}]}})),
    ];
    let mut wrong = Vec::new();
    for file in good {
        let test_env = TestEnv::new("");
        files(&test_env);
        test_env.write(".config.json", &file.to_string());
        let outcome = test_env.run(&["config", "check"]);
        if outcome.code != 0 {
            wrong.push(format!("{file}: {}{}", outcome.out, outcome.err));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
