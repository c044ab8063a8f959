//! Local volumes and the default CPU request on real hosts: a claim is bound once a pod uses it,
//! what the pod wrote is there for the next one, and directory and volume go with the claim.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster_addons::{agnhost, apply};
use crate::cluster_reset::on_host;
use crate::cluster_support::Site;

const WORKER: &str = "it-worker-0";
const DIR: &str = "/data/volumes";
/// Only what hangs takes as long: a helper pod comes and goes for each volume.
const SOON: Duration = Duration::from_mins(3);

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_storage_outlives_a_pod_and_goes_with_its_claim() {
    let Some(site) = Site::of_cluster("storage", "10.125.13.0/24", 1) else { return };
    let path = format!("phase3.local_storage_path={DIR}");
    site.ok(&["config", "set", "phase3.local_storage=y", &path, "phase3.limit_range=y"]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    a_volume_is_bound_written_and_read(&site);
    containers_that_ask_for_nothing_ask_for_some_cpu(&site);
    the_directory_goes_with_the_claim(&site);
    what_is_switched_off_is_gone(&site);
    site.ok(&["down", "--yes"]);
}

/// What a pod of an ordinary user says that does one thing with the volume and ends.
fn run_pod(site: &Site, name: &str, action: &str) -> String {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": 4711, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "main", "image": agnhost(site), "imagePullPolicy": "Never",
            "command": ["/agnhost", "mounttest"], "args": [action],
            "volumeMounts": [{"name": "data", "mountPath": "/mnt"}],
        }],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    apply(site, name, &[pod]);
    let (pod, timeout) = (format!("pod/{name}"), format!("--timeout={}s", SOON.as_secs()));
    site.kubectl(&["wait", "--for=jsonpath={.status.phase}=Succeeded", &pod, &timeout]);
    site.kubectl(&["logs", name])
}

fn a_volume_is_bound_written_and_read(site: &Site) {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}},
    }});
    apply(site, "claim", &[claim]);
    run_pod(site, "writer", "--new_file_0644=/mnt/note");
    site.kubectl(&["delete", "pod", "writer"]);
    let said = run_pod(site, "reader", "--file_content=/mnt/note");
    assert!(said.contains("mount-tester new file"), "{said}");
    let volume = site.kubectl(&["get", "persistentvolumes", "--output=jsonpath={.items[*].spec.local.path}"]);
    assert!(volume.starts_with(&format!("{DIR}/pvc-")), "{volume}");
    let mode = on_host(site, WORKER, &format!("stat --format=%a:%u {DIR}"));
    assert_eq!(mode.trim(), "700:0", "users of the host do not come to the volumes");
}

/// The `LimitRange` is of the namespace in which the reader ran.
fn containers_that_ask_for_nothing_ask_for_some_cpu(site: &Site) {
    let path = "--output=jsonpath={.spec.containers[0].resources.requests.cpu}";
    assert_eq!(site.kubectl(&["get", "pod", "reader", path]), "100m");
}

fn the_directory_goes_with_the_claim(site: &Site) {
    site.kubectl(&["delete", "pod/reader", "persistentvolumeclaim/data"]);
    let start = Instant::now();
    loop {
        let left =
            site.kubectl(&["get", "persistentvolumes", "--output=name"]) + &on_host(site, WORKER, &format!("ls {DIR}"));
        if left.trim().is_empty() {
            return;
        }
        assert!(start.elapsed() < SOON, "still there: {left}");
        std::thread::sleep(Duration::from_secs(2));
    }
}

fn what_is_switched_off_is_gone(site: &Site) {
    site.ok(&["config", "unset", "phase3.local_storage_path", "phase3.local_storage", "phase3.limit_range"]);
    site.ok(&["up"]);
    let kinds = "limitranges,storageclasses,deployments,clusterroles,roles,serviceaccounts";
    for addon in ["local-path-provisioner", "limit-range"] {
        let selector = format!("--selector=turnup.dev/addon={addon}");
        assert_eq!(site.kubectl(&["get", kinds, "--all-namespaces", &selector, "--output=name"]), "");
    }
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
