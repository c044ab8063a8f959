//! `where` and `show NODE` name exactly what a setting reaches: what they say is compared with the
//! files that really are other ones when it has another value. `src/forecast/origin.rs` holds
//! `show NODE` to that for every setting.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::cli_support::TestEnv;

/// One control-plane host and one worker that do not exist.
const INVENTORY: &str = r#"{
    "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "baremetal", "api": {"host": "192.0.2.10", "port": 6443},
    "hosts": [
        {"name": "rack-1", "role": "control-plane", "address": "192.0.2.10", "instance": "1",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
        {"name": "rack-2", "role": "worker", "address": "192.0.2.20", "instance": "2",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}
    ]}"#;

fn test_env(target: &str) -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.write("provision.json", INVENTORY);
    test_env.ok(&["config", "set", &format!("phase1.cloud_provider={target}")]);
    test_env
}

fn ask(test_env: &TestEnv, args: &[&str]) -> Value {
    let all: Vec<&str> = args.iter().copied().chain(["--output", "json"]).collect();
    serde_json::from_str(&test_env.ok(&all).out).unwrap()
}

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// All files that `render` writes for the configuration with these changes; `None` when it is
/// refused.
fn render(test_env: &TestEnv, changes: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let before = test_env.read(".config.json");
    let changes: Vec<String> = changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let set: Vec<&str> = ["config", "set"].into_iter().chain(changes.iter().map(String::as_str)).collect();
    let is_set = changes.is_empty() || test_env.run(&set).code == 0;
    let to = tempfile::tempdir_in(test_env.dir.path()).unwrap();
    let rendered = is_set && test_env.run(&["render", "--to", to.path().to_str().unwrap()]).code == 0;
    test_env.write(".config.json", &before);
    rendered.then(|| read_all(to.path(), to.path()))
}

fn read_all(root: &Path, dir: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(read_all(root, &path));
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.insert(name, fs_err::read_to_string(&path).unwrap());
        }
    }
    files
}

fn different(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> BTreeSet<String> {
    let names = before.keys().chain(after.keys());
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

/// The names of the tree's settings.
fn settings(test_env: &TestEnv) -> Vec<String> {
    let list = ask(test_env, &["config", "list", "--all"]);
    list["settings"].as_array().unwrap().iter().map(|setting| setting["name"].as_str().unwrap().to_owned()).collect()
}

/// One setting in so many is compared at each run; `make test-settings` compares every one.
const SAMPLE: usize = 20;

/// What one target's rendered files say, compared with `where` for one setting in `step`, from the
/// one at `first` on; returns how many reach a file.
fn compare(target: &str, first: usize, step: usize) -> usize {
    let test_env = test_env(target);
    let base = render(&test_env, &[]).unwrap();
    let mut reaching = 0;
    // The directory that everything is named by is another one with another name.
    let all = settings(&test_env).into_iter().filter(|name| name != "phase1.cluster_name");
    for name in all.skip(first).step_by(step) {
        let said = ask(&test_env, &["config", "where", &name]);
        let files = texts(&said["files"]);
        let tried = texts(&said["tried"]);
        let rendered: Vec<_> = tried.iter().map(|value| render(&test_env, &[(&name, value)])).collect();
        // `where` also tries what the present answers make unavailable.
        let complete = rendered.iter().all(Option::is_some);
        let found: BTreeSet<String> = rendered.iter().flatten().flat_map(|after| different(&base, after)).collect();
        assert!(found.is_subset(&files) && (!complete || found == files), "{target} {name}: {found:?}, said {files:?}");
        if said["unknown_because"].is_string() {
            assert!(said["places"].is_null() && said["steps"].is_null(), "not known is not none: {said:#}");
            continue;
        }
        assert_eq!(files.is_empty(), said["places"].as_array().unwrap().is_empty(), "{name}: {said:#}");
        reaching += usize::from(!files.is_empty());
    }
    reaching
}

#[test]
fn where_names_exactly_the_files_that_change_on_local_hosts() {
    assert!(compare("local", 0, SAMPLE) >= 3);
}

#[test]
fn where_names_exactly_the_files_that_change_on_bare_metal() {
    assert!(compare("baremetal", 10, SAMPLE) >= 3);
}

#[test]
#[ignore = "takes many minutes: make test-settings"]
fn where_names_exactly_the_files_that_every_setting_changes() {
    for target in ["local", "baremetal"] {
        assert!(compare(target, 0, 1) >= 100, "{target}");
    }
}

/// What all clouds' modules are given besides their own settings.
const SHARED: [&str; 10] = [
    "phase1.api.",
    "phase1.dns.",
    "phase1.network.",
    "phase1.etcd_volume.",
    "phase1.tags",
    "phase1.node_groups",
    "phase1.ssh_user",
    "phase1.ssh.port",
    "phase1.ssh.allowed_cidrs",
    "phase1.ssh.bastion",
];
/// Of these, what is for the way to the hosts or back.
const ELSEWHERE: [&str; 4] =
    ["phase1.etcd_volume.keep", "phase1.ssh.bastion_host", "phase1.ssh.bastion_port", "phase1.ssh.bastion_user"];

/// What no answer changes alone: a private zone of Azure's is another zone than a public one. And
/// what it is not asked for: no machine of its control plane is replaced by itself.
const TOGETHER: [(&str, &str); 2] = [("azure", "phase1.dns.private_zone"), ("azure", "phase1.etcd_volume.identity")];

/// A cloud's configuration with these answers.
fn cloud_test_env(target: &str, answers: &[&str]) -> TestEnv {
    let test_env = test_env("local");
    let target = format!("phase1.cloud_provider={target}");
    let first = ["config", "set", &target, "phase1.user_data.artifacts_url=https://example.com/a"];
    test_env.ok(&[&first[..], answers].concat());
    test_env
}

/// Which of these settings change no file of Terraform's and of user data with these answers.
fn find_lost(target: &str, answers: &[&str], names: BTreeSet<String>) -> BTreeSet<String> {
    let test_env = cloud_test_env(target, answers);
    let reaches = |name: &String| {
        let files = texts(&ask(&test_env, &["config", "where", name])["files"]);
        files.iter().any(|file| file.starts_with("provision/") || file.starts_with("user-data/"))
    };
    names.into_iter().filter(|name| !reaches(name)).collect()
}

/// Values that `where` does not try: with these answers this setting has this value.
type Known<'k> = (&'k [&'k str], &'k str, &'k str);

/// Every setting of a cloud reaches its module: with the first answers, with others that make more
/// settings visible, or with a value that is known here.
fn every_setting_reaches(target: &str, rounds: &[&[&str]], known: &[Known<'_>]) {
    let own = format!("phase1.{target}.");
    let is_its = |name: &String| name.starts_with(&own) || SHARED.iter().any(|start| name.starts_with(start));
    let mut lost: BTreeSet<String> = settings(&cloud_test_env(target, &[])).into_iter().filter(is_its).collect();
    for answers in rounds {
        lost = find_lost(target, answers, lost);
    }
    lost.retain(|name| !ELSEWHERE.contains(&name.as_str()) && !TOGETHER.contains(&(target, name.as_str())));
    assert_eq!(lost, known.iter().map(|(_, name, _)| (*name).to_owned()).collect());
    for (answers, name, value) in known {
        let test_env = cloud_test_env(target, answers);
        test_env.write("secret", "s");
        let (before, after) = (render(&test_env, &[]).unwrap(), render(&test_env, &[(name, value)]));
        let files = different(&before, &after.unwrap_or_else(|| panic!("{name}={value} is refused")));
        assert!(files.contains("provision/terraform.tfvars.json"), "{name}={value}: {files:?}");
    }
}

const ONE_GROUP: &str = r#"[{"name": "web", "role": "worker", "size": 1}]"#;

#[test]
fn every_setting_of_google_reaches_its_module() {
    let rounds: [&[&str]; 4] = [
        &[],
        &["phase1.api.exposure=load-balancer", "phase1.ssh.bastion=create"],
        &["phase1.gce.network=mine", "phase1.gce.public_addresses=n", "phase1.api.external=n"],
        &[
            "phase1.api.exposure=dns",
            "phase1.api.external=n",
            "phase1.dns.provider=clouddns",
            "phase1.dns.zone=z",
            "phase1.gce.network=mine",
        ],
    ];
    let key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k";
    let known: [Known<'_>; 5] = [
        (&["phase1.dns.provider=clouddns", "phase1.dns.zone=z"], "phase1.dns.provider", "hosts"),
        (&[], "phase1.gce.control_plane_instance_type", "n2-standard-2"),
        (&[], "phase1.gce.disk_kms_key", key),
        (&[], "phase1.gce.zone", "us-central1-c"),
        (&["phase1.ssh.bastion=create"], "phase1.ssh.bastion_machine_type", "e2-small"),
    ];
    every_setting_reaches("gce", &rounds, &known);
}

#[test]
fn every_setting_of_amazon_reaches_its_module() {
    let rounds: [&[&str]; 4] = [
        &[],
        &["phase1.api.exposure=load-balancer", "phase1.aws.topology=private"],
        &[
            "phase1.aws.vpc_id=vpc-1",
            "phase1.aws.topology=private",
            "phase1.api.external=n",
            "phase1.aws.subnet_ids=us-east-1a=subnet-1,us-east-1b=subnet-2,us-east-1c=subnet-3",
        ],
        &["phase1.api.exposure=dns", "phase1.api.external=n", "phase1.dns.provider=route53", "phase1.dns.zone=z"],
    ];
    let key = "arn:aws:kms:us-east-1:123456789012:key/k";
    let known: [Known<'_>; 8] = [
        (&["phase1.dns.provider=route53", "phase1.dns.zone=z"], "phase1.dns.provider", "hosts"),
        (&[], "phase1.api.static_address", "eipalloc-0123456789abcdef0"),
        (&[], "phase1.aws.control_plane_instance_type", "m7i.large"),
        (&[], "phase1.aws.disk_kms_key", key),
        (&[], "phase1.aws.zones", "us-east-1a"),
        (&[], "phase1.etcd_volume.kms_key", key),
        (&[], "phase1.node_groups", ONE_GROUP),
        (&["phase1.ssh.bastion=create"], "phase1.ssh.bastion_machine_type", "t3.small"),
    ];
    every_setting_reaches("aws", &rounds, &known);
}

#[test]
fn every_setting_of_azure_reaches_its_module() {
    let id = |kind: &str| format!("/subscriptions/s/resourceGroups/g/providers/{kind}/example.com");
    let zone = format!("phase1.dns.zone={}", id("Microsoft.Network/dnsZones"));
    let named = [
        "phase1.api.exposure=dns",
        "phase1.api.external=n",
        "phase1.dns.provider=azuredns",
        "phase1.dns.domain=example.com",
    ];
    let rounds: [&[&str]; 4] = [
        &["phase1.network.ipv6=y"],
        &["phase1.api.exposure=load-balancer", "phase1.ssh.bastion=create"],
        &["phase1.azure.public_addresses=n"],
        &[&named[..], &[&zone]].concat(),
    ];
    let private = [&named[..], &["phase1.dns.private_zone=y"]].concat();
    let test_env = cloud_test_env("azure", &[&named[..], &[&zone]].concat());
    let inner = id("Microsoft.Network/privateDnsZones");
    let is_private = |changes: &[(&str, &str)]| {
        let variables = &render(&test_env, changes).unwrap()["provision/terraform.tfvars.json"];
        serde_json::from_str::<Value>(variables).unwrap()["cluster"]["dns"]["private"] == true
    };
    assert!(!is_private(&[]) && is_private(&[(TOGETHER[0].1, "y"), ("phase1.dns.zone", &inner)]));
    let identity = id("Microsoft.ManagedIdentity/userAssignedIdentities");
    let in_zone = ["phase1.dns.provider=azuredns", "phase1.dns.domain=example.com", &zone];
    let known: [Known<'_>; 15] = [
        (&[], "phase1.api.static_address", &id("Microsoft.Network/publicIPAddresses")),
        (&["phase1.azure.client_id=c"], "phase1.azure.client_secret_file", "secret"),
        (&[], "phase1.azure.control_plane_identity", &identity),
        (&[], "phase1.azure.image_id", &id("Microsoft.Compute/images")),
        (&[], "phase1.azure.master_private_ip", "10.240.2.4"),
        (&[], "phase1.azure.master_vm_size", "Standard_D4s_v5"),
        (&[], "phase1.azure.node_identity", &identity),
        (&[], "phase1.azure.subnet_cidr", "10.240.0.0/20"),
        (&[], "phase1.azure.vnet_cidr", "10.240.0.0/17"),
        (&[], "phase1.azure.vnet_id", &id("Microsoft.Network/virtualNetworks")),
        (&in_zone, "phase1.dns.provider", "hosts"),
        (&private, "phase1.dns.zone", &inner),
        (&[], "phase1.etcd_volume.kms_key", &id("Microsoft.Compute/diskEncryptionSets")),
        (&[], "phase1.node_groups", ONE_GROUP),
        (&["phase1.ssh.bastion=create"], "phase1.ssh.bastion_machine_type", "Standard_B2s_v2"),
    ];
    every_setting_reaches("azure", &rounds, &known);
}

#[test]
fn where_speaks_of_variables_files_flags_manifests_and_steps() {
    let test_env = test_env("local");
    let said = |name: &str| test_env.ok(&["config", "where", name]).out;
    for name in
        ["phase1.num_nodes", "phase2.service_cidr", "phase2.security.audit", "phase3.dns_replicas", "phase1.gce.region"]
    {
        insta::assert_snapshot!(name, said(name));
    }
    // What only its file says restarts the pod, too.
    let rules = said("phase2.security.pod_security");
    for place in ["file /etc/kubernetes/manifests/kube-apiserver.yaml: ", "step bootstrap/control-plane\n"] {
        assert!(rules.contains(place), "{rules}");
    }
    let context = said("phase1.cluster_name");
    assert!(context.contains("changes with it: phase2.kube_context_name\n"), "{context}");
    let cloud = test_env.run(&["config", "where", "phase1.gce.region", "--set", "phase1.cloud_provider=gce"]);
    assert!(cloud.out.contains("changes with it: phase1.gce.zone\n"), "{}", cloud.out);
    assert!(cloud.out.contains("Terraform variable cluster.gce.region\n"), "{}", cloud.out);
    assert!(
        cloud.out.ends_with("step provision/render\nstep provision/apply\nstep provision/inventory\n"),
        "{}",
        cloud.out
    );
    assert!(said("phase2.artifacts.mirror").lines().all(|line| !line.starts_with("step provision/")));
    assert!(!test_env.path(".turnup").exists(), "a question leaves no directory behind");
}

#[test]
fn every_value_of_a_node_says_which_settings_decide_it() {
    let test_env = test_env("local");
    test_env.ok(&["config", "set", "phase2.max_pods=50"]);
    let text = test_env.ok(&["config", "show", "kubernetes-worker-0"]).out;
    assert!(
        text.contains("file /var/lib/kubelet/config.yaml: maxPods = 50  <- phase2.max_pods (.config.json:"),
        "{text}"
    );
    assert!(
        text.contains("\nkernel setting net.ipv4.ip_forward = 1\n"),
        "what no setting decides says nothing: {text}"
    );
    assert!(text.contains("\ndirectory /var/lib/turnup mode = 0700\n"), "{text}");
    // A host that forwards IPv6 takes no router's word for its own addresses any more, which it has
    // from there in a cloud.
    assert!(!text.contains("kernel setting net.ipv6"), "{text}");
    let said = ask(&test_env, &["config", "show", "kubernetes-control-plane-0"]);
    let origin = &said["origins"]["flag kube-apiserver --service-cluster-ip-range"];
    let place = origin["phase2.service_cidr"].as_str().unwrap();
    assert!(place.starts_with("default, as in .config.json:"), "{origin}");
    let name = &said["origins"]["flag kubelet --hostname-override"];
    assert!(name["phase1.cluster_name"].is_string(), "a node of another name is still the same: {said:#}");
    assert_eq!(said["node_config"]["schema"], "turnup.node-config/1");
    assert!(said["component_defaults"].is_null() && !text.contains("default of"), "not without the option");
    let text = test_env.ok(&["config", "show", "kubernetes-control-plane-0", "--component-defaults"]).out;
    for line in [
        "flag kube-apiserver --min-request-timeout = 1800  <- default of kube-apiserver 1.36.3",
        "flag kube-controller-manager --leader-elect-lease-duration = 15s  <- default of kube-controller-manager 1.36.3",
        "file /var/lib/kubelet/config.yaml: maxOpenFiles = 1000000  <- default of kubelet 1.36.3",
        "file /etc/kubernetes/kube-scheduler/scheduler.yaml: parallelism = 16  <- default of kube-scheduler 1.36.3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let once = |place: &str| text.lines().filter(|line| line.starts_with(&format!("{place} = "))).count();
    for set in ["flag kube-apiserver --event-ttl", "file /var/lib/kubelet/config.yaml: maxPods", "flag etcd --name"] {
        assert_eq!(once(set), 1, "{set} is set, and no default");
    }
    let said = ask(&test_env, &["config", "show", "kubernetes-worker-0", "--component-defaults"]);
    let defaults = said["component_defaults"].as_object().unwrap();
    assert!(defaults.keys().all(|place| place.contains("kubelet")), "nothing else runs on a worker: {defaults:?}");
    let wrong = test_env.run(&["config", "show", "kubernetes-worker-7"]);
    assert_eq!(
        (wrong.code, wrong.err.as_str()),
        (
            3,
            "error: the cluster has no node kubernetes-worker-7\nnext: nodes: kubernetes-control-plane-0, kubernetes-worker-0\n"
        )
    );
}

/// What a file of the user's says is read when the component that an override points to it starts.
#[test]
fn a_file_that_an_override_names_belongs_to_its_pod() {
    let test_env = test_env("local");
    let path = "/etc/kubernetes/kube-apiserver/tracing.yaml";
    test_env.write("overrides.yaml", &format!("kube-apiserver:\n  tracing-config-file: {path}\n"));
    let files = |text: &str| format!(r#"[{{"name": "tracing", "path": "{path}", "content": "{text}"}}]"#);
    let node_config = |text: &str| {
        let changes = [("phase2.overrides", "overrides.yaml"), ("phase2.host.file_assets", &files(text))];
        render(&test_env, &changes).unwrap()["node-config/kubernetes-control-plane-0.json"].clone()
    };
    let digest = |text: &str| {
        let config: Value = serde_json::from_str(&node_config(text)).unwrap();
        let files = config["files"].as_array().unwrap();
        let pod = files.iter().find(|file| file["path"] == "/etc/kubernetes/manifests/kube-apiserver.yaml");
        pod.unwrap()["content"].to_string()
    };
    assert_ne!(digest("a"), digest("b"));
    assert_eq!(digest("a"), digest("a"));
}

/// Where there are no groups, all workers are the group `workers`.
#[test]
fn overrides_of_workers_reach_them_on_every_target() {
    let test_env = test_env("local");
    test_env.write("overrides.yaml", "groups:\n  workers:\n    kubelet:\n      maxPods: 57\n");
    let files = render(&test_env, &[("phase2.overrides", "overrides.yaml")]).unwrap();
    let has = |node: &str| files[&format!("node-config/kubernetes-{node}-0.json")].contains("57");
    assert!(has("worker"), "the worker");
    let pods =
        |text: &str| serde_json::from_str::<Value>(text).unwrap()["files"].to_string().contains("\"maxPods\":57");
    assert!(!pods(&files["node-config/kubernetes-control-plane-0.json"]), "the control plane");
}

#[test]
fn render_writes_what_a_run_would_send_and_nothing_else() {
    let test_env = test_env("local");
    let out = test_env.ok(&["render", "addons"]).out;
    let dir = test_env.path(".turnup/kubernetes/rendered/addons");
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(fs_err::read_to_string(dir.join("coredns.yaml")).unwrap().contains("kind: Deployment"));
    let all = ask(&test_env, &["render", "--to", "out"]);
    let files = texts(&all["files"]);
    for file in [
        "provision/main.tf",
        "provision/terraform.tfvars.json",
        "node-config/kubernetes-worker-0.json",
        "addons/flannel.yaml",
    ] {
        assert!(files.contains(file), "{files:?}");
    }
    let found: BTreeSet<String> = read_all(&test_env.path("out"), &test_env.path("out")).into_keys().collect();
    assert_eq!(files, found);
    let again = test_env.run(&["render", "--to", "out"]);
    assert_eq!(
        (again.code, again.err.as_str()),
        (2, "error: out is not empty\nnext: turnup render --to another directory\n")
    );
    test_env.write("provision.json", "{}");
    let inventory = test_env.run(&["render", "--set", "phase1.cloud_provider=baremetal"]);
    assert!(inventory.code == 3 && inventory.err.contains("provision.json"), "{}", inventory.err);
}
