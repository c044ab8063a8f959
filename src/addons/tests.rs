//! Manifests as they are rendered, and judgements over what real clusters said.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::log_shipping::LogShippingFiles;
use super::object::Object;
use super::observed::Observed;
use super::prune;
use super::render::{Rendered, TemplateValues};
use super::rollout::ExpectedAddons;
use crate::cluster::{Addon, ClusterSettings};
use crate::config::{Settings, TreeSource};
use crate::error::Result;
use crate::inventory::Endpoint;

const HEALTHY: &str = include_str!("../../tests/fixtures/cluster/healthy.json");
const FAILING: &str = include_str!("../../tests/fixtures/cluster/failing.json");

fn observe(text: &str) -> Observed {
    Observed::parse(&serde_json::from_str(text).unwrap())
}

fn render(change: impl FnOnce(&mut ClusterSettings)) -> Result<Vec<Rendered>> {
    render_from(&TreeSource::embedded(), change)
}

fn render_from(source: &TreeSource, change: impl FnOnce(&mut ClusterSettings)) -> Result<Vec<Rendered>> {
    let mut settings =
        ClusterSettings::read(&Settings::defaults(source).unwrap(), std::path::Path::new("/work")).unwrap();
    change(&mut settings);
    render_with(source, &settings, "")
}

pub(super) fn render_with(source: &TreeSource, settings: &ClusterSettings, authorities: &str) -> Result<Vec<Rendered>> {
    render_files(source, settings, authorities, &LogShippingFiles::default())
}

pub(super) fn render_files(
    source: &TreeSource,
    settings: &ClusterSettings,
    authorities: &str,
    log_shipping: &LogShippingFiles,
) -> Result<Vec<Rendered>> {
    let api = Endpoint::new("10.0.0.10".into(), 6443);
    let image = |name: &str| Ok((format!("turnup.local/{name}:v1"), "1".to_owned()));
    TemplateValues { source, settings, api: &api, image: &image, authorities, log_shipping }.render()
}

/// One manifest, with these settings.
pub(super) fn render_set(addon: &str, pairs: &[(&str, &str)]) -> Result<String> {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(pairs).unwrap();
    let typed = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
    let manifests = render_with(&source, &typed, "")?;
    Ok(manifests.into_iter().find(|manifest| manifest.name == addon).unwrap().text)
}

#[test]
fn clients_of_the_api_start_again_with_its_authorities_and_no_others_do() {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set("phase1.cloud_provider", "aws").unwrap();
    let scaled = r#"[{"name": "web", "role": "worker", "size": 1, "max": 3}]"#;
    settings.set("phase1.node_groups", scaled).unwrap();
    let switches = Addon::all(&source).unwrap().into_iter().map(|addon| addon.switch);
    for switch in switches {
        settings.set(&switch, "y").unwrap();
    }
    settings.set("phase3.log_shipping_endpoint", "http://192.0.2.7:4318").unwrap();
    let settings = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
    let with = |authorities: &str| render_with(&source, &settings, authorities).unwrap();
    let lines = |text: &str| -> BTreeSet<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.contains("turnup.dev/hash")).collect()
    };
    let mut restarted = Vec::new();
    for (plain, marked) in with("").iter().zip(&with("1,2")) {
        assert!(!plain.text.contains("turnup.dev/kubernetes-ca"), "{}", plain.name);
        let (before, after) = (lines(&plain.text), lines(&marked.text));
        let mark = "turnup.dev/kubernetes-ca: \"1,2\"";
        if after != before {
            assert!(after.contains(mark) && before.is_subset(&after), "{}: {}", plain.name, marked.text);
            let manifest = Object::read(&marked.text).unwrap().into_iter().find(|(object, _)| *object == marked.main);
            let annotations = &manifest.unwrap().1["spec"]["template"]["metadata"]["annotations"];
            assert_eq!(annotations["turnup.dev/kubernetes-ca"], "1,2", "{}", plain.name);
            restarted.push(plain.name.clone());
        }
    }
    restarted.sort();
    assert_eq!(
        restarted,
        [
            "aws-cloud-controller-manager",
            "aws-ebs-csi-driver",
            "cert-manager",
            "cluster-autoscaler",
            "coredns",
            "flannel",
            "headlamp",
            "kube-network-policies",
            "kube-proxy",
            "kube-state-metrics",
            "local-path-provisioner",
            "metrics-server",
            "snapshot-controller",
            "traefik",
        ]
    );
}

/// What a manifest says with one set of settings and not with the other one.
pub(super) fn differences(addon: &str, set: &[(&str, &str)], other: &[(&str, &str)]) -> String {
    let (before, after) = (render_set(addon, set).unwrap(), render_set(addon, other).unwrap());
    let is_hash = |line: &str| line.contains("turnup.dev/hash");
    let only = |these: &str, those: &str, sign: &str| -> Vec<String> {
        let missing = these.lines().filter(|line| !is_hash(line) && !those.lines().any(|other| other == *line));
        missing.map(|line| format!("{sign}{line}")).collect()
    };
    [only(&before, &after, "-"), only(&after, &before, "+")].concat().join("\n")
}

#[test]
fn settings_of_coredns_are_in_its_corefile() {
    insta::assert_snapshot!(differences(
        "coredns",
        &[],
        &[
            ("phase3.dns_upstreams", "192.0.2.53,192.0.2.54"),
            ("phase3.dns_stub_domains", "corp.example.com=10.0.0.53,b.example=10.0.0.54"),
            ("phase3.dns_cache_seconds", "5"),
            ("phase3.dns_log", "y"),
            ("phase3.dns_memory_limit", "1Gi"),
        ]
    ));
    let uncached = render_set("coredns", &[("phase3.dns_cache_seconds", "0")]).unwrap();
    assert!(!uncached.contains("cache"), "{uncached}");
    let documents =
        Object::read(&render_set("coredns", &[("phase3.dns_stub_domains", "a.example=10.0.0.53")]).unwrap());
    let documents = documents.unwrap();
    let corefile = documents.iter().find_map(|(_, value)| value["data"]["Corefile"].as_str()).unwrap();
    assert!(corefile.ends_with("\n}\na.example:53 {\n    errors\n    forward . 10.0.0.53 {\n        max_concurrent 1000\n    }\n    cache 30\n    loop\n    loadbalance\n}\n"), "{corefile}");
}

#[test]
fn settings_of_kube_proxy_are_in_its_configuration() {
    insta::assert_snapshot!(differences(
        "kube-proxy",
        &[],
        &[
            ("phase1.cloud_provider", "baremetal"),
            ("phase2.proxy_mode", "iptables"),
            ("phase3.kube_proxy_node_port_addresses", "10.118.0.0/20,192.0.2.0/24"),
            ("phase3.kube_proxy_masquerade_all", "y"),
            ("phase3.kube_proxy_conntrack_per_core", "32768"),
            ("phase3.kube_proxy_sync_period", "1m"),
            ("phase3.kube_proxy_log_level", "2"),
        ]
    ));
    let text = render_set("kube-proxy", &[("phase1.cloud_provider", "gce")]).unwrap();
    assert!(text.contains("- --init-only") && text.contains("maxPerCore: 32768"), "{text}");
}

#[test]
fn settings_of_flannel_are_its_flags() {
    insta::assert_snapshot!(differences(
        "flannel",
        &[],
        &[
            ("phase2.network.mtu", "1400"),
            ("phase2.network.interface", "eth1"),
            ("phase2.network.non_masquerade_cidrs", "10.0.0.0/8,192.0.2.0/24"),
        ]
    ));
}

/// The default addons with the hashes that the fixtures have.
fn applied() -> Vec<Rendered> {
    let observed = observe(HEALTHY);
    let mut manifests = render(|_| {}).unwrap();
    for manifest in &mut manifests {
        manifest.hash = observed.hashes[&manifest.main].clone();
    }
    manifests
}

pub(super) fn missing(observed: &Observed, addons: &[Rendered], hosts: &[&str], network: bool) -> Vec<String> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    ExpectedAddons { hosts: &hosts, addons, network, tolerated: 0 }.compare(observed).missing
}

#[test]
fn flannel_as_it_is_applied() {
    insta::assert_snapshot!(render(|_| {}).unwrap()[0].text);
}

#[test]
fn kube_proxy_as_it_is_applied() {
    insta::assert_snapshot!(render(|_| {}).unwrap()[1].text);
}

#[test]
fn coredns_as_it_is_applied() {
    insta::assert_snapshot!(render(|settings| settings.addons.dns_replicas = 2).unwrap()[2].text);
}

#[test]
fn metrics_server_as_it_is_applied() {
    let pairs = [("phase3.metrics_server", "y"), ("phase3.metrics_server_resolution", "20s")];
    insta::assert_snapshot!(render_set("metrics-server", &pairs).unwrap());
}

#[test]
fn kube_state_metrics_as_it_is_applied() {
    insta::assert_snapshot!(render_set("kube-state-metrics", &[("phase3.kube_state_metrics", "y")]).unwrap());
}

#[test]
fn settings_of_kube_state_metrics_are_its_flags_and_its_rights() {
    let on = ("phase3.kube_state_metrics", "y");
    let chosen = [
        on,
        ("phase3.kube_state_metrics_skip_resources", "leases,storageclasses,volumeattachments"),
        ("phase3.kube_state_metrics_extra_resources", "roles,secrets"),
        ("phase3.kube_state_metrics_labels", "app.kubernetes.io/name,team"),
        ("phase3.kube_state_metrics_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences("kube-state-metrics", &[on], &chosen));
    let older = [on, ("phase2.kubernetes_version", "1.35.4")];
    insta::assert_snapshot!("kube_state_metrics_of_1_35", differences("kube-state-metrics", &[on], &older));
}

/// What a rule of the role grants is what the flag names, whatever is chosen.
#[test]
fn kube_state_metrics_may_read_what_it_is_told_to_and_nothing_else() {
    let all = "configmaps,daemonsets,leases,pods,services";
    for skipped in ["", "pods", all] {
        let pairs = [("phase3.kube_state_metrics", "y"), ("phase3.kube_state_metrics_skip_resources", skipped)];
        let objects = Object::read(&render_set("kube-state-metrics", &pairs).unwrap()).unwrap();
        let of_kind = |kind: &str| objects.iter().find(|(object, _)| object.kind == kind).unwrap().1.clone();
        let rules = of_kind("ClusterRole")["rules"].as_array().unwrap().clone();
        let granted = rules.iter().flat_map(|rule| rule["resources"].as_array().unwrap());
        let granted: BTreeSet<&str> = granted.map(|name| name.as_str().unwrap()).collect();
        let args = of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        let flag = args.as_array().unwrap().iter().find_map(|arg| arg.as_str().unwrap().strip_prefix("--resources="));
        assert_eq!(flag.unwrap().split(',').collect::<BTreeSet<&str>>(), granted);
        assert!(granted.contains("nodes") && !granted.contains("secrets"), "{granted:?}");
        assert!(skipped.split(',').all(|name| !granted.contains(name)), "{granted:?}");
        assert!(rules.iter().all(|rule| rule["verbs"] == serde_json::json!(["list", "watch"])), "{rules:?}");
    }
}

#[test]
fn node_exporter_as_it_is_applied() {
    insta::assert_snapshot!(render_set("node-exporter", &[("phase3.node_exporter", "y")]).unwrap());
}

#[test]
fn settings_of_node_exporter_are_its_flags() {
    let on = ("phase3.node_exporter", "y");
    let chosen = [
        on,
        ("phase3.node_exporter_port", "9101"),
        ("phase3.node_exporter_skip_collectors", "infiniband,zfs"),
        ("phase3.node_exporter_extra_collectors", "processes"),
    ];
    insta::assert_snapshot!(differences("node-exporter", &[on], &chosen));
}

#[test]
fn kube_network_policies_as_it_is_applied() {
    insta::assert_snapshot!(render_set("kube-network-policies", &[("phase3.network_policies", "y")]).unwrap());
}

#[test]
fn settings_of_kube_network_policies_are_its_flags_and_its_limit() {
    let on = ("phase3.network_policies", "y");
    let chosen = [
        on,
        ("phase3.network_policies_fail_open", "y"),
        ("phase3.network_policies_log_level", "2"),
        ("phase3.network_policies_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences("kube-network-policies", &[on], &chosen));
}

#[test]
fn snapshot_controller_as_it_is_applied() {
    let manifest = render_set("snapshot-controller", &[("phase3.snapshots", "y")]).unwrap();
    let (kinds, others): (Vec<&str>, Vec<&str>) =
        manifest.split("\n---\n").partition(|document| document.contains("kind: CustomResourceDefinition\n"));
    let kinds = Object::read(&kinds.join("\n---\n")).unwrap();
    let names: Vec<&str> = kinds.iter().map(|(object, _)| object.name.split_once('.').unwrap().0).collect();
    assert_eq!(names, ["volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"]);
    insta::assert_snapshot!(others.join("\n---\n"));
}

/// The kinds of the Gateway API are as they were published; what turnup adds is how it finds them.
#[test]
fn gateway_api_as_it_is_applied() {
    let manifest = render_set("gateway-api", &[("phase3.gateway_api", "y")]).unwrap();
    let objects = Object::read(&manifest).unwrap();
    let (kinds, others): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|(object, _)| object.kind == "CustomResourceDefinition");
    assert_eq!(others.iter().map(|(object, _)| object.argument()).collect::<Vec<_>>(), ["configmap/gateway-api"]);
    let version = others[0].1["data"]["version"].as_str().unwrap();
    assert_eq!(kinds.len(), 10);
    for (object, value) in kinds {
        let annotations = &value["metadata"]["annotations"];
        assert_eq!(annotations["gateway.networking.k8s.io/bundle-version"], format!("v{version}"), "{object}");
        assert_eq!(annotations["gateway.networking.k8s.io/channel"], "standard", "{object}");
    }
}

#[test]
fn settings_of_snapshot_controller_are_its_flags_and_its_rights() {
    let on = ("phase3.snapshots", "y");
    let chosen = [
        on,
        ("phase3.snapshots_replicas", "2"),
        ("phase3.snapshots_distributed", "y"),
        ("phase3.snapshots_log_level", "5"),
        ("phase3.snapshots_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences("snapshot-controller", &[on], &chosen));
}

/// The Lease of a controller is written by it every few seconds.
#[test]
fn what_a_holder_writes_into_its_lease_is_no_change() {
    let at = |version: &str| {
        let lease = serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
            "name": "snapshot-controller-leader", "namespace": "kube-system", "resourceVersion": version,
            "labels": {"turnup.dev/addon": "snapshot-controller"},
        }});
        Observed::parse(&serde_json::json!({"items": [lease]})).addon_objects
    };
    assert_eq!(at("7"), at("8"));
    let gone = prune::superfluous(&at("7"), []);
    assert_eq!(
        gone.iter().map(Object::argument).collect::<Vec<_>>(),
        ["lease.coordination.k8s.io/snapshot-controller-leader"]
    );
}

#[test]
fn limit_range_as_it_is_applied() {
    let manifest = render_set("limit-range", &[("phase3.limit_range", "y")]).unwrap();
    insta::assert_snapshot!(manifest);
}

#[test]
fn local_path_provisioner_as_it_is_applied() {
    let pairs = [("phase3.local_storage", "y"), ("phase3.local_storage_path", "/data/volumes")];
    let manifest = render_set("local-path-provisioner", &pairs).unwrap();
    let objects = Object::read(&manifest).unwrap();
    let config = objects.iter().find_map(|(_, value)| value["data"]["config.json"].as_str()).unwrap();
    let config: Value = serde_json::from_str(config).unwrap();
    assert_eq!(config["nodePathMap"][0]["paths"], serde_json::json!(["/data/volumes"]));
    insta::assert_snapshot!(manifest);
}

/// A copy of an addon's object in another namespace has its labels, and is not turnup's.
#[test]
fn a_copy_in_another_namespace_is_not_pruned() {
    let limit_range = |namespace: &str| {
        serde_json::json!({"items": [{"apiVersion": "v1", "kind": "LimitRange", "metadata": {
            "name": "limit-range", "namespace": namespace, "labels": {"turnup.dev/addon": "limit-range"},
        }}]})
    };
    let found = |namespace| prune::superfluous(&Observed::parse(&limit_range(namespace)).addon_objects, []);
    assert_eq!(found("default").iter().map(Object::argument).collect::<Vec<_>>(), ["limitrange/limit-range"]);
    assert_eq!(found("shop"), []);
}

/// No pod stands behind it.
#[test]
fn an_addon_without_a_workload_is_not_waited_for() {
    let source = TreeSource::embedded();
    let rendered = render_from(&source, |settings| settings.addons.limit_range = true).unwrap();
    let limit_range: Vec<Rendered> = rendered.into_iter().filter(|manifest| manifest.name == "limit-range").collect();
    assert_eq!(missing(&observe(HEALTHY), &limit_range, &["master"], true), [""; 0]);
}

#[test]
fn addons_that_are_off_are_not_rendered_and_the_others_keep_their_order() {
    let names = |change: fn(&mut ClusterSettings)| -> Vec<String> {
        render(change).unwrap().into_iter().map(|manifest| manifest.name).collect()
    };
    assert_eq!(names(|_| {}), ["flannel", "kube-proxy", "coredns"]);
    assert_eq!(names(|settings| settings.addons.kube_proxy = false), ["flannel", "coredns"]);
    assert_eq!(
        names(|settings| (settings.addons.cni, settings.addons.kube_proxy, settings.addons.dns) = (false, false, false)),
        [""; 0]
    );
}

#[test]
fn a_hash_follows_every_value_and_nothing_else() {
    let hashes = |change: fn(&mut ClusterSettings)| -> Vec<String> {
        render(change).unwrap().into_iter().map(|manifest| manifest.hash).collect()
    };
    let before = hashes(|_| {});
    assert_eq!(before, hashes(|_| {}));
    let after = hashes(|settings| settings.addons.dns_replicas += 1);
    assert_eq!(before[..2], after[..2]);
    assert_ne!(before[2], after[2]);
}

#[test]
fn every_object_of_every_manifest_is_known_and_labelled() {
    for manifest in render(|_| {}).unwrap() {
        let documents: Vec<&str> = manifest.text.split("\n---\n").collect();
        assert_eq!(documents.len(), manifest.objects.len(), "{}", manifest.name);
        for document in documents {
            let label = format!("    turnup.dev/addon: {}\n", manifest.name);
            let document = format!("{document}\n");
            assert!(document.contains(&label), "{document}");
            assert!(document.contains("    app.kubernetes.io/managed-by: turnup\n"), "{document}");
        }
    }
}

/// By it the pods of a new form are told from old ones, on which a rollout would wait for ever.
#[test]
fn pods_of_every_daemon_set_have_the_hash() {
    let pairs = [
        ("phase3.cloud_storage", "y"),
        ("phase3.node_exporter", "y"),
        ("phase3.network_policies", "y"),
        ("phase3.log_shipping", "y"),
        ("phase3.log_shipping_endpoint", "http://192.0.2.7:4318"),
    ];
    let mut seen = BTreeSet::new();
    let on_aws = &[("phase1.cloud_provider", "aws"), ("phase3.cloud_controller", "y")][..];
    let on_gce = &[("phase1.cloud_provider", "gce"), ("phase3.cloud_controller", "y")][..];
    for (addon, target) in [
        ("gcp-cloud-controller-manager", on_gce),
        ("aws-cloud-controller-manager", on_aws),
        ("aws-ebs-csi-driver", on_aws),
        ("gcp-compute-persistent-disk-csi-driver", on_gce),
        ("flannel", on_gce),
        ("kube-network-policies", on_gce),
        ("kube-proxy", on_gce),
        ("log-shipping", on_gce),
        ("node-exporter", on_gce),
    ] {
        let set = [target, &pairs].concat();
        for (object, value) in Object::read(&render_set(addon, &set).unwrap()).unwrap() {
            if object.kind == "DaemonSet" {
                let hash = |value: &Value| value["metadata"]["annotations"]["turnup.dev/hash"].clone();
                assert_eq!(hash(&value), hash(&value["spec"]["template"]), "{addon}");
                assert!(hash(&value).is_string(), "{addon}");
                seen.insert(addon);
            }
        }
    }
    let source = TreeSource::embedded();
    let all = Addon::all(&source).unwrap();
    let expected: BTreeSet<&str> =
        all.iter().filter(|addon| addon.main == "DaemonSet").map(|addon| addon.name.as_str()).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_template_of_the_user_that_could_not_be_pruned_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let source = TreeSource::embedded();
    for file in source.files("templates/").iter().chain(&source.files("phases/")).map(String::as_str).chain(["Kconfig"])
    {
        let path = dir.path().join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, source.read(file).unwrap()).unwrap();
    }
    let own = dir.path().join("templates/addons/coredns/own.yaml");
    let labels = "{turnup.dev/addon: coredns, app.kubernetes.io/managed-by: turnup}";
    let service = |namespace: &str, labels: &str| {
        format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: own, namespace: {namespace}, labels: {labels}}}}}\r\n"
        )
    };
    for (text, why) in [
        (service("default", labels), "its namespace is not kube-system"),
        (service("kube-system", "{}"), "it has no label app.kubernetes.io/managed-by: turnup"),
        (service("kube-system", &labels.replace("coredns", "other")), "it has no label turnup.dev/addon: coredns"),
        (service("kube-system", labels).replace("Service", "Endpoints"), "turnup prunes no objects of its kind"),
    ] {
        fs_err::write(&own, &text).unwrap();
        let error = render_from(&TreeSource::find(dir.path()), |_| {}).unwrap_err();
        assert!(error.message().starts_with("templates/addons/coredns/own.yaml: "), "{}", error.render());
        assert!(error.render().contains(why), "{}", error.render());
    }
    fs_err::write(&own, "# mine\nkind: Service\n").unwrap();
    let error = render_from(&TreeSource::find(dir.path()), |_| {}).unwrap_err();
    assert_eq!(error.message(), "templates/addons/coredns/own.yaml: document 1 has no apiVersion");
    fs_err::write(&own, service("kube-system", labels)).unwrap();
    let manifests = render_from(&TreeSource::find(dir.path()), |_| {}).unwrap();
    assert!(manifests[2].objects.iter().any(|object| object.argument() == "service/own"));
}

#[test]
fn what_the_cluster_has_of_an_addon_is_what_its_manifest_says() {
    let observed = observe(HEALTHY);
    let manifests = applied();
    assert_eq!(
        prune::superfluous(&observed.addon_objects, manifests.iter().flat_map(|manifest| &manifest.objects)),
        []
    );
    let without_dns = &manifests[..2];
    let gone: Vec<String> =
        prune::superfluous(&observed.addon_objects, without_dns.iter().flat_map(|manifest| &manifest.objects))
            .iter()
            .map(Object::argument)
            .collect();
    assert_eq!(gone, ["deployment.apps/coredns", "service/kube-dns", "configmap/coredns"]);
}

#[test]
fn a_healthy_cluster_leaves_nothing_to_wait_for() {
    let observed = observe(HEALTHY);
    assert_eq!(missing(&observed, &applied(), &["master", "worker"], true), [""; 0]);
}

#[test]
fn a_host_that_is_new_is_waited_for_with_all_that_runs_on_every_node() {
    let observed = observe(HEALTHY);
    assert_eq!(
        missing(&observed, &applied(), &["master", "worker", "new"], true),
        ["node new is not registered", "flannel: no pod on new yet", "kube-proxy: no pod on new yet"]
    );
}

#[test]
fn so_many_nodes_as_may_be_missing_are_not_waited_for() {
    let (observed, addons) = (observe(HEALTHY), applied());
    let hosts = ["master", "worker", "new"].map(str::to_owned);
    let expected = |tolerated| ExpectedAddons { hosts: &hosts, addons: &addons, network: true, tolerated };
    assert_eq!(expected(1).compare(&observed).missing, [""; 0]);
    assert_eq!(expected(1).compare(&observed).ready_nodes, ["master", "worker"]);
    assert_eq!(expected(0).compare(&observed).missing.len(), 3);
}

#[test]
fn a_manifest_that_was_not_applied_is_waited_for() {
    let mut manifests = applied();
    manifests[1].hash = "other".into();
    let observed = observe(HEALTHY);
    assert_eq!(missing(&observed, &manifests, &["master"], true), ["DaemonSet kube-proxy is of another version"]);
}

#[test]
fn a_failing_cluster_says_what_is_wrong_with_it() {
    let observed = observe(FAILING);
    insta::assert_snapshot!(missing(&observed, &applied(), &["master", "worker"], true).join("\n"));
}

#[test]
fn without_a_network_of_ours_neither_nodes_nor_dns_are_waited_for() {
    let observed = observe(FAILING);
    let manifests = &applied()[1..];
    let missing = missing(&observed, manifests, &["master", "worker"], false);
    assert!(!missing.iter().any(|line| line.contains("coredns") || line.starts_with("node")), "{missing:?}");
}

#[test]
fn a_crash_loop_is_stuck_only_after_some_tries_and_a_missing_image_at_once() {
    let pod = |reason: &str, restarts: u64| -> Option<String> {
        let list = serde_json::json!({"items": [{"kind": "Pod", "metadata": {"name": "p"}, "status": {
            "phase": "Pending",
            "containerStatuses": [{"restartCount": restarts, "state": {"waiting": {"reason": reason, "message": "m"}}}],
        }}]});
        Observed::parse(&list).pods[0].stuck().map(str::to_owned)
    };
    assert_eq!(pod("CrashLoopBackOff", 3), None);
    assert_eq!(pod("CrashLoopBackOff", 4).as_deref(), Some("CrashLoopBackOff: m"));
    assert_eq!(pod("ErrImageNeverPull", 0).as_deref(), Some("ErrImageNeverPull: m"));
    assert_eq!(pod("ContainerCreating", 0), None);
}

#[test]
fn a_list_without_items_is_an_empty_cluster() {
    let observed = Observed::parse(&Value::Null);
    assert!(observed.nodes.is_empty() && observed.pods.is_empty());
}
