//! The cloud controller manager of Compute Engine as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;

use super::object::Object;
use super::tests::{differences, render_set, render_with};
use crate::cluster::ClusterSettings;
use crate::config::{Settings, TreeSource};

const ADDON: &str = "gcp-cloud-controller-manager";
const ON: [(&str, &str); 2] = [("phase1.cloud_provider", "gce"), ("phase3.cloud_controller", "y")];

fn objects(pairs: &[(&str, &str)]) -> Vec<(Object, Value)> {
    Object::read(&render_set(ADDON, &[&ON[..], pairs].concat()).unwrap()).unwrap()
}

fn find<'o>(objects: &'o [(Object, Value)], kind: &str, name: &str) -> &'o Value {
    &objects.iter().find(|(object, _)| object.kind == kind && object.name == name).unwrap().1
}

#[test]
fn the_cloud_controller_manager_of_compute_engine_as_it_is_applied() {
    insta::assert_snapshot!(render_set(ADDON, &ON).unwrap());
}

#[test]
fn settings_of_the_cloud_controller_manager_of_compute_engine_are_its_flags_and_its_cloud_config() {
    let chosen = [
        ("phase1.gce.network", "corporate"),
        ("phase1.gce.subnetwork", "corporate-hosts"),
        ("phase3.cloud_controller_concurrent_services", "5"),
        ("phase3.cloud_controller_log_level", "4"),
        ("phase3.cloud_controller_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &chosen].concat()));
}

/// Compute Engine takes names of 63 characters; one is `k8s-ID-internal-tcp-nmv1-` and 16 of a
/// hash.
#[test]
fn what_load_balancers_share_has_a_name_that_compute_engine_takes() {
    let long = "a-cluster-with-a-longer-name";
    for (cluster, id) in [("c1", Some("c1")), ("9lives", Some("k9lives")), (long, None)] {
        let objects = objects(&[("phase1.cluster_name", cluster)]);
        let data = &find(&objects, "ConfigMap", "ingress-uid")["data"];
        let uid = data["uid"].as_str().unwrap();
        assert_eq!(data["uid"], data["provider-uid"]);
        assert!(id.is_none_or(|id| id == uid), "{uid}");
        assert!(format!("k8s-{uid}-internal-tcp-nmv1-0123456789abcdef").len() <= 63, "{uid}");
    }
}

/// It comes before the network of pods, before names of Services, and on nodes that wait for it.
#[test]
fn the_cloud_controller_manager_of_compute_engine_waits_for_no_other_addon() {
    let objects = objects(&[]);
    let pod = &find(&objects, "DaemonSet", ADDON)["spec"]["template"]["spec"];
    assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&true.into(), &"Default".into()));
    let tolerated = |key: &str| pod["tolerations"].as_array().unwrap().iter().any(|it| it["key"] == key);
    let keys = ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane"];
    assert!(keys.into_iter().all(tolerated), "{pod:#}");
    // Only what it is here for: pods' networks and ways are not its.
    let args = pod["containers"][0]["args"].as_array().unwrap();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let flags = [
        "--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller",
        "--allocate-node-cidrs=false",
        "--configure-cloud-routes=false",
    ];
    assert!(flags.into_iter().all(has), "{args:?}");
}

/// Both controllers judge Nodes alike, and may delete the same ones.
#[test]
fn no_node_of_a_machine_that_lives_may_be_deleted_on_any_cloud() {
    let on_aws = [("phase1.cloud_provider", "aws"), ("phase3.cloud_controller", "y")];
    let model = Object::read(&render_set("aws-cloud-controller-manager", &on_aws).unwrap()).unwrap();
    let own = objects(&[]);
    let policy = |objects: &[(Object, Value)]| {
        find(objects, "ValidatingAdmissionPolicy", "turnup-cloud-controller")["spec"].clone()
    };
    let (expected, policy) = (policy(&model), policy(&own));
    let account = &find(&own, "DaemonSet", ADDON)["spec"]["template"]["spec"]["serviceAccountName"];
    let account = format!("'system:serviceaccount:kube-system:{}'", account.as_str().unwrap());
    let asks_for = policy["matchConditions"][0]["expression"].as_str().unwrap();
    assert!(asks_for.ends_with(&account), "{asks_for}");
    assert_eq!(policy["validations"], expected["validations"]);
    assert_eq!(policy["validations"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&policy["matchConstraints"], &policy["failurePolicy"]),
        (&expected["matchConstraints"], &"Fail".into())
    );
}

#[test]
fn it_starts_again_with_another_authority_of_the_api() {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(&ON).unwrap();
    let settings = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
    let rendered = render_with(&source, &settings, "1,2").unwrap();
    let addon = rendered.iter().find(|manifest| manifest.name == ADDON).unwrap();
    let objects = Object::read(&addon.text).unwrap();
    let annotations = &find(&objects, "DaemonSet", ADDON)["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["turnup.dev/kubernetes-ca"], "1,2");
}
