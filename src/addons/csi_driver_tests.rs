//! What is true of the CSI driver of every cloud, as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::object::Object;
use super::tests::{render_set, render_with};
use crate::cluster::ClusterSettings;
use crate::config::{Settings, TreeSource};

/// Each driver, its target, and the container that formats and mounts.
const DRIVERS: [(&str, &str, &str); 2] =
    [("aws-ebs-csi-driver", "aws", "ebs-plugin"), ("gcp-compute-persistent-disk-csi-driver", "gce", "pd-plugin")];

fn on(target: &str) -> [(&str, &str); 2] {
    [("phase1.cloud_provider", target), ("phase3.cloud_storage", "y")]
}

fn objects(addon: &str, target: &str, more: &[(&str, &str)]) -> Vec<(Object, Value)> {
    Object::read(&render_set(addon, &[&on(target)[..], more].concat()).unwrap()).unwrap()
}

/// The pod of the only object of a kind.
fn pod<'o>(objects: &'o [(Object, Value)], kind: &str) -> &'o Value {
    &objects.iter().find(|(object, _)| object.kind == kind).unwrap().1["spec"]["template"]["spec"]
}

/// The rights are those of the control plane's machines, which the metadata service tells to hosts
/// alone, and pods come to nodes that wait for the cloud controller manager.
#[test]
fn pods_of_a_driver_are_in_the_network_of_their_host_and_tolerate_what_waits() {
    for (addon, target, plugin) in DRIVERS {
        let objects = objects(addon, target, &[]);
        let (controller, node) = (pod(&objects, "Deployment"), pod(&objects, "DaemonSet"));
        for pod in [controller, node] {
            assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&true.into(), &"Default".into()), "{addon}");
        }
        assert_eq!(node["tolerations"], json!([{"operator": "Exists"}]), "{addon}");
        let tolerated = |key: &str| controller["tolerations"].as_array().unwrap().iter().any(|it| it["key"] == key);
        let waits = ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane"];
        assert!(waits.into_iter().all(tolerated), "{addon}");
        assert_eq!(controller["nodeSelector"]["node-role.kubernetes.io/control-plane"], "", "{addon}");
        // One container formats and mounts; all others have no privilege at all.
        let containers = [controller, node].into_iter().flat_map(|pod| pod["containers"].as_array().unwrap());
        let privileged: Vec<&Value> =
            containers.filter(|it| it["securityContext"]["capabilities"]["drop"] != json!(["ALL"])).collect();
        assert_eq!(privileged.len(), 1, "{addon}");
        let (name, is_privileged) = (&privileged[0]["name"], &privileged[0]["securityContext"]["privileged"]);
        assert_eq!((name, is_privileged), (&plugin.into(), &true.into()));
    }
}

/// Each sidecar writes the Lease that the role lets it, and the Lease goes with the addon.
#[test]
fn leases_of_sidecars_are_those_that_their_role_names() {
    for (addon, target, _) in DRIVERS {
        for more in [&[][..], &[("phase3.snapshots", "y")]] {
            let objects = objects(addon, target, more);
            let leases = objects.iter().filter(|(object, _)| object.kind == "Lease");
            let leases: BTreeSet<&str> = leases.map(|(object, _)| object.name.as_str()).collect();
            let role = &objects.iter().find(|(object, _)| object.kind == "Role").unwrap().1;
            let named = role["rules"][0]["resourceNames"].as_array().unwrap().iter();
            assert_eq!(named.map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(), leases, "{addon}");
            let containers = pod(&objects, "Deployment")["containers"].as_array().unwrap().iter();
            let elects = |it: &&Value| it["args"].as_array().unwrap().contains(&"--leader-election=true".into());
            assert_eq!(containers.filter(elects).count(), leases.len(), "{addon}");
        }
    }
}

/// Both pods speak with the API server: they start again with its authorities.
#[test]
fn pods_of_a_driver_start_again_with_the_authorities_of_the_api() {
    let source = TreeSource::embedded();
    for (addon, target, _) in DRIVERS {
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(&on(target)).unwrap();
        let typed = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
        let manifests = render_with(&source, &typed, "1,2").unwrap();
        let text = &manifests.iter().find(|manifest| manifest.name == addon).unwrap().text;
        let pods = Object::read(text).unwrap();
        let pods = pods.iter().filter(|(object, _)| ["DaemonSet", "Deployment"].contains(&object.kind.as_str()));
        let mark = |it: &Value| it["spec"]["template"]["metadata"]["annotations"]["turnup.dev/kubernetes-ca"].clone();
        let marks: Vec<Value> = pods.map(|(_, it)| mark(it)).collect();
        assert_eq!(marks, ["1,2", "1,2"], "{addon}");
    }
}
