//! What the cluster itself made in its cloud: load balancers of Services, Ingresses and Gateways, volumes of claims. Terraform knows none of
//! it, so it goes before the machines do, while the controllers that made it still run; nothing here talks to a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::phase::Cx;

use super::api::{KUBECONFIG, Kubectl};
use super::ban;
use super::steps::{kubectl, write_kubeconfig};

/// Targets without a cloud in which something could be left.
const WITHOUT_CLOUD: [&str; 2] = ["local", "baremetal"];
/// For so long nothing may get less: clouds take some minutes for a load balancer, and for a volume that is still attached.
const PATIENCE: Duration = Duration::from_mins(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(2);
/// Their definition is there only where somebody brought it.
const GATEWAYS: &str = "gateways.gateway.networking.k8s.io";
/// What the objects are that stand for load balancers, besides Services.
const ROUTES: [(&str, &str); 2] = [("Ingress", "ingress.networking.k8s.io"), ("Gateway", GATEWAYS)];
/// The sources of volumes that are not on a node's own disk.
const ELSEWHERE: [&str; 7] =
    ["csi", "awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "gcePersistentDisk", "vsphereVolume"];
/// On a volume that no person made by hand.
const PROVISIONER: &str = "pv.kubernetes.io/provisioned-by";
/// So many leftovers are named.
const NAMED: usize = 20;
/// kubectl's word for a claim, in front of its name.
const CLAIM: &str = "persistentvolumeclaim/";

/// One thing in the cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Belonging {
    /// `the load balancer of Service web/front (203.0.113.7)`.
    what: String,
    /// Whether it holds data.
    pub is_volume: bool,
    /// Namespace and kubectl's word for the object that it goes with; none where that is gone already.
    object: Option<(String, String)>,
    /// Whose events tell of it: `Service web/front`.
    subjects: Vec<String>,
}

impl fmt::Display for Belonging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// All that the cluster made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Belongings {
    /// What its controllers take away when they are asked to.
    pub going: BTreeSet<Belonging>,
    /// Volumes that they leave, as their reclaim policy says, a line each.
    pub staying: BTreeSet<String>,
}

/// What the cluster made, where its target is a cloud and its API was ever there. An error when nobody can say.
pub fn find_belongings(cluster: &Cluster) -> Result<Belongings> {
    let Some(handoff) = cluster.find_handoff()? else { return Ok(Belongings::default()) };
    if WITHOUT_CLOUD.contains(&handoff.target.as_str()) || cluster.store.read(KUBECONFIG)?.is_none() {
        return Ok(Belongings::default());
    }
    // The administrator's certificate lives for a day, clusters live longer.
    write_kubeconfig(cluster, &handoff)?;
    let kubectl = kubectl(cluster)?;
    kubectl.ask_ready()?;
    look(&kubectl)
}

fn look(kubectl: &Kubectl) -> Result<Belongings> {
    let mut kinds = "services,ingresses.networking.k8s.io,persistentvolumes".to_owned();
    let definition = format!("customresourcedefinition/{GATEWAYS}");
    if !kubectl.run(&["get", &definition, "--ignore-not-found", "--output=name"])?.trim().is_empty() {
        kinds = format!("{kinds},{GATEWAYS}");
    }
    Ok(Belongings::parse(&kubectl.get(&[kinds.as_str(), "--all-namespaces"])?))
}

impl Belongings {
    /// Takes a list of Services, Ingresses, Gateways and volumes apart.
    fn parse(list: &Value) -> Self {
        let mut found = Self::default();
        for item in list["items"].as_array().into_iter().flatten() {
            match item["kind"].as_str() {
                Some("PersistentVolume") => found.add_volume(item),
                Some(kind) => found.going.extend(balancer(kind, item)),
                None => {}
            }
        }
        found
    }

    fn add_volume(&mut self, volume: &Value) {
        let spec = &volume["spec"];
        let Some(source) = ELSEWHERE.iter().find(|source| spec[**source].is_object()) else { return };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let name = text(&volume["metadata"]["name"]);
        let size = text(&spec["capacity"]["storage"]);
        let handle = spec[*source]["volumeHandle"].as_str().map_or_else(String::new, |handle| format!(", {handle}"));
        let claim = &spec["claimRef"];
        let claim = claim["name"].as_str().map(|name| (text(&claim["namespace"]), name));
        let owner = claim.as_ref().map(|(namespace, name)| format!("{namespace}/{name}"));
        let of = owner.as_ref().map_or_else(|| "of no claim".into(), |owner| format!("of the claim {owner}"));
        let what = format!("the volume {name} {of} ({size}{handle})");
        // One that a person made is left alone by every provisioner, whatever its policy says.
        let is_provisioned = volume["metadata"]["annotations"][PROVISIONER].is_string();
        if spec["persistentVolumeReclaimPolicy"] != "Delete" || !is_provisioned {
            self.staying.insert(what);
            return;
        }
        let is_bound = volume["status"]["phase"] == "Bound";
        let object = claim.filter(|_| is_bound).map(|(namespace, name)| (namespace, format!("{CLAIM}{name}")));
        let of_claim = owner.map(|owner| format!("PersistentVolumeClaim {owner}"));
        let subjects = [format!("PersistentVolume /{name}")].into_iter().chain(of_claim).collect();
        self.going.insert(Belonging { what, is_volume: true, object, subjects });
    }
}

/// A load balancer outside of the cluster: its controller keeps the object by a finalizer until that is gone. Those without one
/// (of `MetalLB`, for example) are nowhere else than on the nodes.
fn balancer(kind: &str, item: &Value) -> Option<Belonging> {
    let metadata = &item["metadata"];
    metadata["finalizers"].as_array().filter(|finalizers| !finalizers.is_empty())?;
    let word = match kind {
        "Service" if item["spec"]["type"] == "LoadBalancer" => "service",
        "Service" => return None,
        _ => ROUTES.iter().find(|(known, _)| *known == kind)?.1,
    };
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    let given = item["status"]["loadBalancer"]["ingress"].as_array().or_else(|| item["status"]["addresses"].as_array());
    let address =
        |given: &Value| ["ip", "hostname", "value"].iter().find_map(|key| given[*key].as_str().map(str::to_owned));
    let addresses: Vec<String> = given.into_iter().flatten().filter_map(address).collect();
    let addresses = if addresses.is_empty() { String::new() } else { format!(" ({})", addresses.join(", ")) };
    let subject = format!("{kind} {namespace}/{name}");
    let what = format!("the load balancer of {subject}{addresses}");
    let object = Some((namespace.to_owned(), format!("{word}/{name}")));
    Some(Belonging { what, is_volume: false, object, subjects: vec![subject] })
}

/// Has everything taken away that the cluster made, and waits until it is gone.
pub fn release_belongings(cluster: &Cluster, cx: &Cx) -> Result<()> {
    let kubectl = kubectl(cluster)?;
    ban::declare(cluster, &kubectl, cx)?;
    let (mut least, mut since) = (usize::MAX, Instant::now());
    loop {
        match demand(&kubectl, cx) {
            Ok(going) if going.is_empty() => return Ok(()),
            Ok(going) if going.len() < least => {
                (least, since) = (going.len(), Instant::now());
                cx.progress(describe_rest(&going));
            }
            Ok(going) if since.elapsed() > PATIENCE => {
                return Err(stuck(&going, &kubectl.get(&["events", "--all-namespaces"])?));
            }
            Err(error) if error.class() != Class::Transient || since.elapsed() > PATIENCE => return Err(error),
            _ => {}
        }
        cx.sleep(PAUSE)?;
    }
}

/// Asks for the removal of what is there still, and returns it.
fn demand(kubectl: &Kubectl, cx: &Cx) -> Result<BTreeSet<Belonging>> {
    let going = look(kubectl)?.going;
    delete(kubectl, &going, cx)?;
    Ok(going)
}

fn describe_rest(going: &BTreeSet<Belonging>) -> String {
    let first = going.first().map(ToString::to_string).unwrap_or_default();
    let more = if going.len() > 1 { format!(", and {} more", going.len() - 1) } else { String::new() };
    format!("waiting until the cluster has removed {first}{more}")
}

/// Deletes the objects, and the pods that hold on to claims; what is on its way already does not mind.
fn delete(kubectl: &Kubectl, going: &BTreeSet<Belonging>, cx: &Cx) -> Result<()> {
    let mut namespaces: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (namespace, object) in going.iter().filter_map(|belonging| belonging.object.as_ref()) {
        namespaces.entry(namespace).or_default().push(object.clone());
    }
    for (namespace, mut objects) in namespaces {
        if objects.iter().any(|object| object.starts_with(CLAIM)) {
            objects.extend(holders(&kubectl.get(&["pods", "--namespace", namespace])?, &objects));
        }
        let mut args =
            ["delete", "--namespace", namespace, "--ignore-not-found", "--wait=false"].map(str::to_owned).to_vec();
        args.append(&mut objects);
        kubectl.clone().within(cx).run(&args)?;
    }
    Ok(())
}

/// The pods that use one of these claims, also one that was made for a single pod.
fn holders(pods: &Value, claims: &[String]) -> Vec<String> {
    let holds = |pod: &&Value| {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        volumes.any(|volume| {
            let own =
                volume["ephemeral"].is_object().then(|| format!("{name}-{}", volume["name"].as_str().unwrap_or("")));
            let claim = volume["persistentVolumeClaim"]["claimName"].as_str().map(str::to_owned).or(own);
            claim.is_some_and(|claim| claims.contains(&format!("{CLAIM}{claim}")))
        })
    };
    let pods = pods["items"].as_array().into_iter().flatten().filter(holds);
    pods.filter_map(|pod| Some(format!("pod/{}", pod["metadata"]["name"].as_str()?))).collect()
}

/// What is still there, with the last thing that its controller complained of.
fn stuck(going: &BTreeSet<Belonging>, events: &Value) -> Error {
    let minutes = PATIENCE.as_secs() / 60;
    let message = format!("the cluster has removed nothing of what it made in its cloud for {minutes} minutes");
    let mut error = Error::person(message);
    for belonging in going.iter().take(NAMED) {
        error = error.evidence(format!("still there: {belonging}"));
        if let Some(says) = last_warning(belonging, events) {
            error = error.evidence(format!("  {says}"));
        }
    }
    if going.len() > NAMED {
        error = error.evidence(format!("and {} more", going.len() - NAMED));
    }
    error.hint("turnup down again, once the controllers that made it run; to leave it there: turnup down --forget-cloud-objects")
}

fn last_warning(belonging: &Belonging, events: &Value) -> Option<String> {
    let events = events["items"].as_array()?.iter().filter(|event| event["type"] == "Warning");
    let is_of = |event: &&Value| {
        let of = &event["involvedObject"];
        let text = |key: &str| of[key].as_str().unwrap_or_default();
        belonging.subjects.contains(&format!("{} {}/{}", text("kind"), text("namespace"), text("name")))
    };
    let last =
        events.filter(is_of).max_by_key(|event| event["lastTimestamp"].as_str().unwrap_or_default().to_owned())?;
    Some(format!("{}: {}", last["reason"].as_str()?, last["message"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(name: &str, kind: &str, finalizers: &Value) -> Value {
        json!({"kind": "Service", "metadata": {"namespace": "web", "name": name, "finalizers": finalizers}, "spec": {"type": kind},
            "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}, {"hostname": "b.example.com"}]}}})
    }

    fn volume(name: &str, policy: &str, source: &str, phase: &str) -> Value {
        json!({"kind": "PersistentVolume", "metadata": {"name": name, "annotations": {PROVISIONER: "disk.example.com"}},
            "spec": {"capacity": {"storage": "8Gi"}, "persistentVolumeReclaimPolicy": policy,
                source: {"driver": "disk.example.com", "volumeHandle": format!("disks/{name}")},
                "claimRef": {"namespace": "db", "name": format!("data-{name}")}},
            "status": {"phase": phase}})
    }

    /// One of each that counts, and of each that does not.
    fn found() -> Belongings {
        let cleanup = json!(["service.kubernetes.io/load-balancer-cleanup"]);
        let route = |kind: &str, status: Value| {
            let metadata = json!({"namespace": "web", "name": "front", "finalizers": ["example.com/cloud"]});
            json!({"kind": kind, "metadata": metadata, "status": status})
        };
        let mut by_hand = volume("by-hand", "Delete", "csi", "Bound");
        by_hand["metadata"]["annotations"] = json!({});
        Belongings::parse(&json!({"items": [
            service("front", "LoadBalancer", &cleanup),
            service("metal", "LoadBalancer", &json!([])),
            service("inner", "ClusterIP", &cleanup),
            route("Ingress", json!({"loadBalancer": {}})),
            route("Gateway", json!({"addresses": [{"type": "IPAddress", "value": "203.0.113.9"}]})),
            volume("bound", "Delete", "csi", "Bound"),
            volume("released", "Delete", "gcePersistentDisk", "Released"),
            volume("kept", "Retain", "csi", "Bound"),
            volume("on-the-node", "Delete", "hostPath", "Bound"),
            by_hand,
        ]}))
    }

    #[test]
    fn what_controllers_take_away_is_told_from_what_they_leave_and_from_what_is_nowhere_else() {
        let told = |belonging: &Belonging| match &belonging.object {
            Some((namespace, object)) => format!("{belonging}: {object} in {namespace}"),
            None => format!("{belonging}: nothing to delete"),
        };
        let Belongings { going, staying } = found();
        let going: Vec<String> = going.iter().map(told).collect();
        insta::assert_snapshot!(going.join("\n"), @r"
        the load balancer of Gateway web/front (203.0.113.9): gateways.gateway.networking.k8s.io/front in web
        the load balancer of Ingress web/front: ingress.networking.k8s.io/front in web
        the load balancer of Service web/front (203.0.113.7, b.example.com): service/front in web
        the volume bound of the claim db/data-bound (8Gi, disks/bound): persistentvolumeclaim/data-bound in db
        the volume released of the claim db/data-released (8Gi, disks/released): nothing to delete
        ");
        let left = ["by-hand", "kept"]
            .map(|name| format!("the volume {name} of the claim db/data-{name} (8Gi, disks/{name})"));
        assert_eq!(staying, left.into());
    }

    #[test]
    fn pods_hold_claims_by_name_and_those_that_were_made_for_them() {
        let pod = |name: &str, volume: Value| json!({"metadata": {"name": name}, "spec": {"volumes": [{"emptyDir": {}}, volume]}});
        let pods = json!({"items": [
            pod("a", json!({"name": "x", "persistentVolumeClaim": {"claimName": "data"}})),
            pod("b", json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}})),
            pod("c", json!({"name": "x", "persistentVolumeClaim": {"claimName": "other"}})),
            {"metadata": {"name": "d"}, "spec": {}},
        ]});
        let claims = ["data", "b-scratch"].map(|name| format!("{CLAIM}{name}"));
        assert_eq!(holders(&pods, &claims), ["pod/a", "pod/b"]);
    }

    #[test]
    fn what_does_not_go_is_named_with_what_its_controller_said_last() {
        let event = |kind: &str, name: &str, time: &str, message: &str| {
            json!({"type": "Warning", "reason": "Failed", "message": message, "lastTimestamp": time,
                "involvedObject": {"kind": kind, "namespace": if kind == "PersistentVolume" { "" } else { "web" }, "name": name}})
        };
        let events = json!({"items": [
            event("Service", "front", "2026-01-01T00:00:02Z", "the quota is used up"),
            event("Service", "front", "2026-01-01T00:00:01Z", "an older story"),
            event("Service", "metal", "2026-01-01T00:00:03Z", "another's story"),
            event("PersistentVolume", "bound", "2026-01-01T00:00:03Z", "the disk is in use"),
            {"type": "Normal", "reason": "Fine", "message": "", "involvedObject": {"kind": "Ingress", "namespace": "web", "name": "front"}},
        ]});
        insta::assert_snapshot!(stuck(&found().going, &events).render(), @r"
        error: the cluster has removed nothing of what it made in its cloud for 10 minutes
          | still there: the load balancer of Gateway web/front (203.0.113.9)
          | still there: the load balancer of Ingress web/front
          | still there: the load balancer of Service web/front (203.0.113.7, b.example.com)
          |   Failed: the quota is used up
          | still there: the volume bound of the claim db/data-bound (8Gi, disks/bound)
          |   Failed: the disk is in use
          | still there: the volume released of the claim db/data-released (8Gi, disks/released)
        next: turnup down again, once the controllers that made it run; to leave it there: turnup down --forget-cloud-objects
        ");
        assert_eq!(
            describe_rest(&found().going),
            "waiting until the cluster has removed the load balancer of Gateway web/front (203.0.113.9), and 4 more"
        );
    }
}
