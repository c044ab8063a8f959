//! What the cluster itself made in its cloud: load balancers of Services, Ingresses and Gateways,
//! volumes of claims. Terraform knows none of it, so it goes before the machines do, while the
//! controllers that made it still run; nothing here talks to a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cloud::Target;
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::exec::signals;
use crate::inventory::Inventory;
use crate::phase::Cx;

use super::api::{KUBECONFIG, Kubectl, kubectl};
use super::credentials::write_kubeconfig;
use super::step_ids::RBAC;
use super::teardown_policy;
use super::volume_snapshots::{self, VolumeSnapshots};

/// For so long nothing may get less: clouds take some minutes for a load balancer, and for a volume
/// that is still attached.
const TIMEOUT: Duration = Duration::from_mins(10);
/// So long after its time a pod counts as one that cannot end: its node is gone, or silent.
const OVERDUE: SignedDuration = SignedDuration::from_secs(30);
/// So many objects are named in one call: kubectl deletes five a second, and is given two minutes.
const CHUNK: usize = 200;
/// The list of orphans, below the cluster's directory: when it is needed, the API may be gone.
const LEFT: &str = "outputs/left-in-cloud.json";
/// What the cloud's own controller puts on a Service; while it is there, so is the load balancer,
/// whatever the type has become.
pub const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";
/// On a claim for which a provisioner is making a volume.
const AWAITED: &str = "volume.kubernetes.io/storage-provisioner";
/// The provisioner of `phase3.local_storage`: its volumes go with their hosts.
const LOCAL_PATH: &str = "rancher.io/local-path";
/// Between two looks.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The resource is defined only in clusters with the Gateway API.
const GATEWAYS: &str = "gateways.gateway.networking.k8s.io";
/// What the objects are that stand for load balancers, besides Services.
const ROUTES: [(&str, &str); 2] = [("Ingress", "ingress.networking.k8s.io"), ("Gateway", GATEWAYS)];
/// The sources of volumes that are not on a node's own disk.
const ELSEWHERE: [&str; 7] =
    ["csi", "awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "gcePersistentDisk", "vsphereVolume"];
/// On a dynamically provisioned volume.
const PROVISIONER: &str = "pv.kubernetes.io/provisioned-by";
/// So many leftovers are named.
const NAMED: usize = 20;
/// kubectl's word for a claim, in front of its name.
const CLAIM: &str = "persistentvolumeclaim/";

/// One thing in the cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CloudResource {
    /// `the load balancer of Service web/front (203.0.113.7)`.
    what: String,
    /// Whether it holds data.
    pub is_volume: bool,
    /// Namespace and kubectl's word for the object that it goes with; none where that is gone
    /// already.
    object: Option<(String, String)>,
    /// Whether the object is being deleted already.
    is_asked: bool,
    /// Whose events tell of it: `Service web/front`.
    subjects: Vec<String>,
}

impl fmt::Display for CloudResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// All that the cluster made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudResources {
    /// Whether the cluster itself has said so, and can be told to let go.
    pub has_answered: bool,
    /// What its controllers take away when they are asked to.
    pub going: BTreeSet<CloudResource>,
    /// Volumes and snapshots that they leave, as their policies say, a line each.
    pub staying: BTreeSet<String>,
    /// Snapshots of volumes: also where no cloud is.
    pub snapshots: VolumeSnapshots,
}

/// Where the machines may be gone already.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Orphans {
    things: BTreeSet<String>,
}

/// What the cluster made, where its target is a cloud or it knows snapshots of volumes, and its API
/// was ever there. An error when the API does not answer; none where it is on record because a
/// `down` came as far as the machines. A cluster that does not answer is asked again for as long as
/// `patience` lasts.
pub fn find_cloud_resources(cluster: &Cluster, patience: Duration) -> Result<CloudResources> {
    let Some(inventory) = cluster.find_inventory()? else { return Ok(CloudResources::default()) };
    let state = cluster.store.state()?;
    let never_answered = state.has_ended("bootstrap/") && !state.has_ended(&RBAC.to_string());
    if !is_asked(cluster, &inventory) || cluster.store.read(KUBECONFIG)?.is_none() || never_answered {
        return Ok(CloudResources::default());
    }
    let left: Option<Orphans> = cluster.store.read_json(LEFT)?;
    let patience = if left.is_some() { Duration::ZERO } else { patience };
    let start = Instant::now();
    loop {
        match (ask(cluster, &inventory), &left) {
            (Err(error), _) if error.class() == Class::Transient && start.elapsed() < patience => {
                signals::sleep(RETRY_INTERVAL)?;
            }
            (Err(error), Some(left)) if error.class() != Class::Interrupted => {
                return Ok(CloudResources { staying: left.things.clone(), ..CloudResources::default() });
            }
            (found, _) => return found,
        }
    }
}

/// Whether the cluster can have made something that outlives its hosts.
fn is_asked(cluster: &Cluster, inventory: &Inventory) -> bool {
    has_controllers(inventory) || volume_snapshots::is_defined(&cluster.store)
}

fn has_controllers(inventory: &Inventory) -> bool {
    Target::of(&inventory.target).has_cloud_resources()
}

fn ask(cluster: &Cluster, inventory: &Inventory) -> Result<CloudResources> {
    // The administrator's certificate lives for a day, clusters live longer.
    write_kubeconfig(cluster, inventory)?;
    let kubectl = kubectl(cluster)?;
    kubectl.ask_ready()?;
    look(&kubectl, has_controllers(inventory))
}

/// Writes down what is left in the cloud, before the machines go.
pub fn record_orphans(cluster: &Cluster, things: &BTreeSet<String>) -> Result<()> {
    cluster.store.write_json(LEFT, &Orphans { things: things.clone() }, 0o600)
}

/// The cluster goes on: what a `down` has written down is not the last word.
pub(super) fn forget_orphans(cluster: &Cluster) -> Result<()> {
    cluster.store.remove(LEFT)
}

fn look(kubectl: &Kubectl, has_controllers: bool) -> Result<CloudResources> {
    let own = ["services", "ingresses.networking.k8s.io", "persistentvolumeclaims", "persistentvolumes"];
    let mut kinds: Vec<&str> = own.into_iter().filter(|_| has_controllers).collect();
    let known: Vec<&str> = [GATEWAYS].into_iter().filter(|_| has_controllers).chain(volume_snapshots::KINDS).collect();
    let definitions: Vec<String> = known.iter().map(|kind| format!("customresourcedefinition/{kind}")).collect();
    let mut args = vec!["get"];
    args.extend(definitions.iter().map(String::as_str));
    args.extend(["--ignore-not-found", "--output=name"]);
    let defined = kubectl.run(&args)?;
    kinds.extend(known.into_iter().filter(|kind| defined.lines().any(|line| line.ends_with(&format!("/{kind}")))));
    if kinds.is_empty() {
        return Ok(CloudResources { has_answered: true, ..CloudResources::default() });
    }
    Ok(CloudResources::parse(&kubectl.get(&[kinds.join(",").as_str(), "--all-namespaces"])?))
}

impl CloudResources {
    /// Takes a list of Services, Ingresses, Gateways, claims and volumes apart.
    fn parse(list: &Value) -> Self {
        let snapshots = VolumeSnapshots::parse(list);
        let mut found = Self { has_answered: true, staying: snapshots.staying.clone(), snapshots, ..Self::default() };
        let items = || list["items"].as_array().into_iter().flatten();
        let is_leaving = |item: &&Value| item["kind"] == "PersistentVolumeClaim" && is_deleted(item);
        let leaving: BTreeSet<String> = items().filter(is_leaving).map(name_within).collect();
        for item in items() {
            match item["kind"].as_str() {
                Some("PersistentVolume") => found.add_volume(item, &leaving),
                Some("PersistentVolumeClaim") => found.going.extend(awaited_volume(item)),
                Some(kind) => found.going.extend(balancer(kind, item)),
                None => {}
            }
        }
        found
    }

    fn add_volume(&mut self, volume: &Value, leaving: &BTreeSet<String>) {
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
        let phase = volume["status"]["phase"].as_str().unwrap_or_default();
        // A volume made by hand belongs to the user, and no controller deletes one that has no
        // claim.
        let is_provisioned = volume["metadata"]["annotations"][PROVISIONER].is_string();
        let goes = is_provisioned && ["Bound", "Released", "Failed"].contains(&phase);
        if spec["persistentVolumeReclaimPolicy"] != "Delete" || !goes {
            self.staying.insert(what);
            return;
        }
        let object = claim.filter(|_| phase == "Bound").map(|(namespace, name)| (namespace, format!("{CLAIM}{name}")));
        let is_asked = owner.as_ref().is_some_and(|owner| leaving.contains(owner));
        let of_claim = owner.map(|owner| format!("PersistentVolumeClaim {owner}"));
        let subjects = [format!("PersistentVolume /{name}")].into_iter().chain(of_claim).collect();
        self.going.insert(CloudResource { what, is_volume: true, object, is_asked, subjects });
    }
}

fn is_deleted(item: &Value) -> bool {
    item["metadata"]["deletionTimestamp"].is_string()
}

/// `namespace/name`.
fn name_within(item: &Value) -> String {
    let text = |key: &str| item["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// A volume that is being provisioned: only its claim exists.
fn awaited_volume(claim: &Value) -> Option<CloudResource> {
    let metadata = &claim["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    let provisioner = metadata["annotations"][AWAITED].as_str()?;
    let is_awaited = claim["status"]["phase"] == "Pending" && provisioner != LOCAL_PATH;
    is_awaited.then(|| CloudResource {
        what: format!("the volume that the claim {namespace}/{name} waits for"),
        is_volume: true,
        object: Some((namespace.to_owned(), format!("{CLAIM}{name}"))),
        is_asked: is_deleted(claim),
        subjects: vec![format!("PersistentVolumeClaim {namespace}/{name}")],
    })
}

/// A load balancer. A Service has one as soon as it asks for it, although its controller may not
/// have come to it yet; for other objects controllers leave a finalizer where they made one.
fn balancer(kind: &str, item: &Value) -> Option<CloudResource> {
    let metadata = &item["metadata"];
    let finalizers = metadata["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
    let (word, counts) = match kind {
        "Service" => ("service", item["spec"]["type"] == "LoadBalancer" || finalizers.contains(&CLEANUP.into())),
        _ => (ROUTES.iter().find(|(known, _)| *known == kind)?.1, !finalizers.is_empty()),
    };
    if !counts {
        return None;
    }
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    let given = item["status"]["loadBalancer"]["ingress"].as_array().or_else(|| item["status"]["addresses"].as_array());
    let address =
        |given: &Value| ["ip", "hostname", "value"].iter().find_map(|key| given[*key].as_str().map(str::to_owned));
    let addresses: Vec<String> = given.into_iter().flatten().filter_map(address).collect();
    let addresses = if addresses.is_empty() { String::new() } else { format!(" ({})", addresses.join(", ")) };
    let subject = format!("{kind} {namespace}/{name}");
    let what = format!("the load balancer of {subject}{addresses}");
    let object = Some((namespace.to_owned(), format!("{word}/{name}")));
    Some(CloudResource { what, is_volume: false, object, is_asked: is_deleted(item), subjects: vec![subject] })
}

/// Deletes everything that the cluster made, and waits until it is gone. Volumes only where the
/// user has agreed.
pub fn delete_cloud_resources(cluster: &Cluster, with_volumes: bool, cx: &Cx) -> Result<()> {
    if !cluster.find_inventory()?.is_some_and(|inventory| has_controllers(&inventory)) {
        return Ok(());
    }
    let kubectl = kubectl(cluster)?;
    teardown_policy::declare(cluster, &kubectl, cx)?;
    let (mut least, mut since, mut was_empty) = (usize::MAX, Instant::now(), false);
    loop {
        let going = match look(&kubectl, true) {
            Err(error) if error.class() == Class::Transient && since.elapsed() <= TIMEOUT => {
                cx.sleep(RETRY_INTERVAL)?;
                continue;
            }
            found => found?.going,
        };
        if going.is_empty() {
            // A claim may have gone whose volume is not there yet: twice in a row.
            if was_empty {
                return Ok(());
            }
            was_empty = true;
            cx.sleep(RETRY_INTERVAL)?;
            continue;
        }
        was_empty = false;
        if !with_volumes && going.iter().any(|resource| resource.is_volume) {
            return Err(Error::precondition(
                "volumes have come since it was asked what is to be removed; none was touched",
            )
            .hint("turnup down again"));
        }
        if going.len() < least {
            (least, since) = (going.len(), Instant::now());
            cx.progress(describe_rest(&going));
        }
        match delete(&kubectl, &going, cx) {
            Err(error) if error.class() != Class::Transient => return Err(error),
            _ => {}
        }
        if since.elapsed() > TIMEOUT {
            return Err(stuck(&going, &kubectl.get(&["events", "--all-namespaces"])?));
        }
        cx.sleep(RETRY_INTERVAL)?;
    }
}

fn describe_rest(going: &BTreeSet<CloudResource>) -> String {
    let first = going.first().map(ToString::to_string).unwrap_or_default();
    let more = if going.len() > 1 { format!(", and {} more", going.len() - 1) } else { String::new() };
    format!("waiting until the cluster has removed {first}{more}")
}

/// Deletes the objects, and the pods that hold on to claims, unless they are being deleted already;
/// pods that cannot end are deleted by force.
fn delete(kubectl: &Kubectl, going: &BTreeSet<CloudResource>, cx: &Cx) -> Result<()> {
    let logged = kubectl.clone().within(cx);
    let mut namespaces: BTreeMap<&str, Vec<&CloudResource>> = BTreeMap::new();
    for resource in going {
        if let Some((namespace, _)) = &resource.object {
            namespaces.entry(namespace).or_default().push(resource);
        }
    }
    let object = |resource: &&CloudResource| resource.object.as_ref().map(|(_, object)| object.clone());
    for (namespace, cloud_resources) in namespaces {
        let claims: BTreeSet<String> =
            cloud_resources.iter().filter_map(object).filter(|object| object.starts_with(CLAIM)).collect();
        let pods = if claims.is_empty() { Value::Null } else { kubectl.get(&["pods", "--namespace", namespace])? };
        let Holders { fresh, overdue } = Holders::find(&pods, &claims, Timestamp::now());
        let asked = cloud_resources
            .iter()
            .filter(|resource| !resource.is_asked)
            .filter_map(object)
            .chain(fresh)
            .collect::<Vec<_>>();
        delete_all(&logged, namespace, &asked, &["--wait=false"])?;
        delete_all(&logged, namespace, &overdue, &["--wait=false", "--force", "--grace-period=0"])?;
    }
    Ok(())
}

fn delete_all(kubectl: &Kubectl, namespace: &str, objects: &[String], options: &[&str]) -> Result<()> {
    objects.chunks(CHUNK).try_for_each(|chunk| {
        let mut args = vec!["delete", "--namespace", namespace, "--ignore-not-found"];
        args.extend(options);
        args.extend(chunk.iter().map(String::as_str));
        kubectl.run(&args).map(drop)
    })
}

/// The pods that use claims: those that run, and those that should have ended long ago.
#[derive(Debug, Default, PartialEq, Eq)]
struct Holders {
    fresh: Vec<String>,
    overdue: Vec<String>,
}

impl Holders {
    fn find(pods: &Value, claims: &BTreeSet<String>, now: Timestamp) -> Self {
        let mut found = Self::default();
        let pods = pods["items"].as_array().into_iter().flatten();
        for pod in pods.filter(|pod| holds(pod, claims)) {
            let metadata = &pod["metadata"];
            let name = format!("pod/{}", metadata["name"].as_str().unwrap_or_default());
            match metadata["deletionTimestamp"].as_str().map(str::parse::<Timestamp>) {
                None => found.fresh.push(name),
                Some(Ok(end)) if now.duration_since(end) > OVERDUE => found.overdue.push(name),
                Some(_) => {}
            }
        }
        found
    }
}

/// Whether a pod uses one of these claims, by its name or because that was made for this pod alone.
fn holds(pod: &Value, claims: &BTreeSet<String>) -> bool {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.any(|volume| {
        let own = volume["ephemeral"].is_object().then(|| format!("{name}-{}", volume["name"].as_str().unwrap_or("")));
        let claim = volume["persistentVolumeClaim"]["claimName"].as_str().map(str::to_owned).or(own);
        claim.is_some_and(|claim| claims.contains(&format!("{CLAIM}{claim}")))
    })
}

/// What is still there, with the last thing that its controller complained of.
fn stuck(going: &BTreeSet<CloudResource>, events: &Value) -> Error {
    let minutes = TIMEOUT.as_secs() / 60;
    let message = format!("the cluster has removed nothing of what it made in its cloud for {minutes} minutes");
    let mut error = Error::precondition(message);
    for resource in going.iter().take(NAMED) {
        error = error.evidence(format!("still there: {resource}"));
        if let Some(says) = last_warning(resource, events) {
            error = error.evidence(format!("  {says}"));
        }
    }
    if going.len() > NAMED {
        error = error.evidence(format!("and {} more", going.len() - NAMED));
    }
    error.hint("turnup down again, once the controllers that made it run; to leave it there: turnup down --keep-cloud-resources")
}

fn last_warning(resource: &CloudResource, events: &Value) -> Option<String> {
    let events = events["items"].as_array()?.iter().filter(|event| event["type"] == "Warning");
    let is_of = |event: &&Value| {
        let of = &event["involvedObject"];
        let text = |key: &str| of[key].as_str().unwrap_or_default();
        resource.subjects.contains(&format!("{} {}/{}", text("kind"), text("namespace"), text("name")))
    };
    let last =
        events.filter(is_of).max_by_key(|event| event["lastTimestamp"].as_str().unwrap_or_default().to_owned())?;
    Some(format!("{}: {}", last["reason"].as_str()?, last["message"].as_str()?))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
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

    fn claim(name: &str, phase: &str, is_deleted: bool) -> Value {
        let mut claim = json!({"kind": "PersistentVolumeClaim", "status": {"phase": phase},
            "metadata": {"namespace": "db", "name": name, "annotations": {AWAITED: "disk.example.com"}}});
        if is_deleted {
            claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        claim
    }

    /// One of each that counts, and of each that does not.
    fn found() -> CloudResources {
        let cleanup = json!(["service.kubernetes.io/load-balancer-cleanup"]);
        let route = |kind: &str, status: Value| {
            let metadata = json!({"namespace": "web", "name": "front", "finalizers": ["example.com/cloud"]});
            json!({"kind": kind, "metadata": metadata, "status": status})
        };
        let mut by_hand = volume("by-hand", "Delete", "csi", "Bound");
        by_hand["metadata"]["annotations"] = json!({});
        let mut local = claim("on-a-host", "Pending", false);
        local["metadata"]["annotations"][AWAITED] = LOCAL_PATH.into();
        CloudResources::parse(&json!({"items": [
            service("front", "LoadBalancer", &cleanup),
            service("metal", "LoadBalancer", &json!([])),
            service("was-one", "ClusterIP", &cleanup),
            service("inner", "ClusterIP", &json!([])),
            route("Ingress", json!({"loadBalancer": {}})),
            route("Gateway", json!({"addresses": [{"type": "IPAddress", "value": "203.0.113.9"}]})),
            volume("bound", "Delete", "csi", "Bound"),
            volume("released", "Delete", "gcePersistentDisk", "Released"),
            volume("unclaimed", "Delete", "csi", "Available"),
            volume("kept", "Retain", "csi", "Bound"),
            claim("data-bound", "Bound", true),
            claim("coming", "Pending", false),
            local,
            volume("on-the-node", "Delete", "hostPath", "Bound"),
            by_hand,
        ]}))
    }

    #[test]
    fn what_controllers_take_away_is_told_from_what_they_leave_and_from_what_is_nowhere_else() {
        let told = |resource: &CloudResource| match &resource.object {
            Some(_) if resource.is_asked => format!("{resource}: asked for"),
            Some((namespace, object)) => format!("{resource}: {object} in {namespace}"),
            None => format!("{resource}: nothing to delete"),
        };
        let CloudResources { going, staying, .. } = found();
        let going: Vec<String> = going.iter().map(told).collect();
        insta::assert_snapshot!(going.join("\n"), @r"
        the load balancer of Gateway web/front (203.0.113.9): gateways.gateway.networking.k8s.io/front in web
        the load balancer of Ingress web/front: ingress.networking.k8s.io/front in web
        the load balancer of Service web/front (203.0.113.7, b.example.com): service/front in web
        the load balancer of Service web/metal (203.0.113.7, b.example.com): service/metal in web
        the load balancer of Service web/was-one (203.0.113.7, b.example.com): service/was-one in web
        the volume bound of the claim db/data-bound (8Gi, disks/bound): asked for
        the volume released of the claim db/data-released (8Gi, disks/released): nothing to delete
        the volume that the claim db/coming waits for: persistentvolumeclaim/coming in db
        ");
        let left = ["by-hand", "kept", "unclaimed"]
            .map(|name| format!("the volume {name} of the claim db/data-{name} (8Gi, disks/{name})"));
        assert_eq!(staying, left.into());
    }

    #[test]
    fn pods_hold_claims_by_name_and_those_that_were_made_for_them() {
        let pod = |name: &str, volume: Value| json!({"metadata": {"name": name}, "spec": {"volumes": [{"emptyDir": {}}, volume]}});
        let ending = |name: &str, end: &str| {
            let mut pod = pod(name, json!({"name": "x", "persistentVolumeClaim": {"claimName": "data"}}));
            pod["metadata"]["deletionTimestamp"] = end.into();
            pod
        };
        let pods = json!({"items": [
            pod("a", json!({"name": "x", "persistentVolumeClaim": {"claimName": "data"}})),
            pod("b", json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}})),
            pod("c", json!({"name": "x", "persistentVolumeClaim": {"claimName": "other"}})),
            {"metadata": {"name": "d"}, "spec": {}},
            ending("lost", "2026-01-01T00:00:29Z"),
            ending("ending", "2026-01-01T00:00:31Z"),
        ]});
        let claims = ["data", "b-scratch"].map(|name| format!("{CLAIM}{name}")).into();
        let names = |names: &[&str]| names.iter().map(|name| format!("pod/{name}")).collect::<Vec<_>>();
        let found = Holders::find(&pods, &claims, "2026-01-01T00:01:00Z".parse().unwrap());
        assert_eq!(found, Holders { fresh: names(&["a", "b"]), overdue: names(&["lost"]) });
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
          | still there: the load balancer of Service web/metal (203.0.113.7, b.example.com)
          |   Failed: another's story
          | still there: the load balancer of Service web/was-one (203.0.113.7, b.example.com)
          | still there: the volume bound of the claim db/data-bound (8Gi, disks/bound)
          |   Failed: the disk is in use
          | still there: the volume released of the claim db/data-released (8Gi, disks/released)
          | still there: the volume that the claim db/coming waits for
        next: turnup down again, once the controllers that made it run; to leave it there: turnup down --keep-cloud-resources
        ");
        assert_eq!(
            describe_rest(&found().going),
            "waiting until the cluster has removed the load balancer of Gateway web/front (203.0.113.9), and 7 more"
        );
    }
}
