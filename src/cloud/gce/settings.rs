//! Google Compute Engine's own part: its settings, its names, and what it would refuse.
//!
//! Limits of names are those of Compute Engine's documentation "Naming resources" (63 characters,
//! RFC 1035) and of IAM's "Create service accounts" (6 to 30 characters); instance group managers
//! leave five of the 63 to what they append.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::{Network, Settings};
use crate::error::Result;

use crate::cloud::spec::{
    CloudGroup, CloudSettings, ControlPlaneHost, Defaults, Exposure, Site, Spec, WORKERS, absolute, fit, require_apart,
};
use crate::cloud::{MachineProof, host, refused};

use super::machine_identity;

/// Whether a cloud controller manager runs.
const CLOUD_CONTROLLER: &str = "phase3.cloud_controller";
/// The longest beginning of a name: the longest end is `-ssh-from-bastion`, or
/// `-control-plane-0` and five characters.
const PREFIX: usize = 37;
/// The longest name of an instance group, whose machines get `-xxxx`.
const GROUP: usize = 53;
/// The longest name of what load balancers share: the longest of theirs, a backend service, has 39
/// characters beside it.
const CLUSTER_ID: usize = 24;
/// The longest name of a service account.
const ACCOUNT: usize = 30;
/// Google keeps the first two addresses of a subnetwork and the last two.
const KEPT: u64 = 4;
/// Families of machine types ("Machine families resource and comparison guide").
const FAMILIES: [&str; 35] = [
    "a2", "a3", "a4", "a4x", "c2", "c2d", "c3", "c3d", "c4", "c4a", "c4d", "e2", "f1", "g1", "g2", "g4", "h3", "h4d",
    "m1", "m2", "m3", "m4", "n1", "n2", "n2d", "n4", "n4a", "n4d", "t2a", "t2d", "tau", "x4", "z3", "ct5lp", "ct6e",
];
/// Families that take Hyperdisk alone ("About Hyperdisk", machine series support).
const HYPERDISK_ONLY: [&str; 8] = ["a4", "a4x", "c4", "c4a", "c4d", "n4", "n4a", "n4d"];
/// Families with ARM processors.
const ARM: [&str; 4] = ["a4x", "c4a", "n4a", "t2a"];
/// Families whose types are all FAMILY-KIND-CPUS, with one of these kinds, or custom.
const GENERAL: [&str; 15] =
    ["c2", "c2d", "c3", "c3d", "c4", "c4d", "e2", "m1", "m2", "m3", "n1", "n2", "n2d", "n4", "t2d"];
const KINDS: [&str; 6] = ["standard", "highmem", "highcpu", "megamem", "ultramem", "hypermem"];
/// Kinds of e2 whose CPUs are shared; no number follows.
const SHARED_CORE: [&str; 3] = ["micro", "small", "medium"];

/// `cluster.gce` of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the Kconfig tree")]
pub(super) struct GceSettings {
    project: String,
    region: String,
    zone: String,
    network: String,
    subnetwork: String,
    network_project: String,
    subnet_cidr: String,
    public_addresses: bool,
    nat: bool,
    network_tags: Vec<String>,
    disk_kms_key: String,
    credentials_file: String,
    control_plane_service_account: String,
    node_service_account: String,
    /// Whether control-plane hosts may do what the cloud controller manager does.
    cloud_controller: bool,
    /// Whether control-plane hosts may make, attach and delete disks of claims.
    cloud_storage: bool,
    /// Whether they may take snapshots of these.
    cloud_snapshots: bool,
    os_login: bool,
    shielded_vm: bool,
    min_cpu_platform: String,
    names: GceNames,
    /// `phase1.gce.zones`.
    #[serde(skip)]
    zones: Vec<String>,
}

/// Names within the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct GceNames {
    prefix: String,
    control_plane_account: String,
    node_account: String,
    control_plane: BTreeMap<String, String>,
    groups: BTreeMap<String, String>,
}

/// What the settings say, and what hosts have that say nothing else.
pub(super) fn read(settings: &Settings) -> Result<(Defaults, GceSettings)> {
    let text = |name: &str| settings.get(&format!("phase1.gce.{name}"));
    let flag = |name: &str| settings.get_bool(&format!("phase1.gce.{name}"));
    let cloud_storage = settings.get_bool("phase3.cloud_storage")?;
    let zone = text("zone")?;
    let given = settings.get_list("phase1.gce.zones")?;
    let zones = if given.is_empty() { vec![zone.clone()] } else { given.clone() };
    let public = flag("public_addresses")?;
    let single = settings.get_int("phase1.control_plane.count")? <= 1 && !zone.is_empty();
    let defaults = Defaults {
        image: text("os_image")?,
        disk_gb: settings.get_number("phase1.gce.disk_gb")?,
        disk_type: text("disk_type")?,
        machine_type: text("instance_type")?,
        control_plane_machine_type: text("control_plane_instance_type")?,
        control_plane_zones: if single { vec![zone.clone()] } else { zones.clone() },
        zones,
        public_address: public,
        etcd_volume_type: text("etcd_volume_type")?,
    };
    let gce = GceSettings {
        project: text("project")?,
        region: text("region")?,
        zone: Some(zone).filter(|zone| !zone.is_empty()).unwrap_or_else(|| defaults.zones[0].clone()),
        network: text("network")?,
        subnetwork: text("subnetwork")?,
        network_project: text("network_project")?,
        subnet_cidr: text("subnet_cidr")?,
        public_addresses: public,
        nat: flag("nat")?,
        network_tags: settings.get_list("phase1.gce.network_tags")?,
        disk_kms_key: text("disk_kms_key")?,
        credentials_file: absolute("phase1.gce.credentials_file", &text("credentials_file")?)?,
        control_plane_service_account: text("control_plane_service_account")?,
        node_service_account: text("node_service_account")?,
        cloud_controller: settings.get_bool(CLOUD_CONTROLLER)?,
        cloud_storage,
        cloud_snapshots: cloud_storage && settings.get_bool("phase3.snapshots")?,
        os_login: flag("os_login")?,
        shielded_vm: flag("shielded_vm")?,
        min_cpu_platform: text("min_cpu_platform")?,
        names: GceNames::default(),
        zones: given,
    };
    Ok((defaults, gce))
}

impl CloudSettings for GceSettings {
    fn name_all(
        &mut self,
        cluster: &str,
        control_plane: &BTreeMap<String, ControlPlaneHost>,
        groups: &BTreeMap<String, CloudGroup>,
    ) {
        // A name here begins with a letter, a cluster's may begin with a digit.
        let name = if cluster.starts_with(|letter: char| letter.is_ascii_digit()) {
            format!("k{cluster}")
        } else {
            cluster.to_owned()
        };
        let prefix = fit(&name, PREFIX);
        let account = |end: &str| fit(&prefix, ACCOUNT - end.len()) + end;
        self.names = GceNames {
            control_plane_account: account("-control-plane"),
            node_account: account("-node"),
            control_plane: (0..)
                .zip(control_plane.keys())
                .map(|(index, host)| (host.clone(), format!("{prefix}-control-plane-{index}")))
                .collect(),
            groups: groups.keys().map(|name| (name.clone(), fit(&format!("{prefix}-{name}"), GROUP))).collect(),
            prefix,
        };
    }

    fn site(&self, spec: &Spec) -> Site {
        let inner = !self.public_addresses || spec.groups.values().any(|group| !group.public_address);
        let gateways = u32::from(self.nat && inner);
        Site {
            region: self.region.clone(),
            network: if self.subnetwork.is_empty() { &self.subnet_cidr } else { &self.subnetwork }.clone(),
            nat_gateways: gateways,
            public_control_plane: self.public_addresses,
            // An address in front of a load balancer is not charged.
            public_addresses: gateways,
        }
    }

    fn check(&self, spec: &Spec) -> Result<()> {
        check_region(&self.region)?;
        if self.subnetwork.is_empty() {
            self.check_network(spec)?;
        }
        self.check_ways_in(spec)?;
        for host in spec.control_plane.values() {
            self.check_zone("phase1.control_plane.zones", &host.zone)?;
        }
        for (name, group) in &spec.groups {
            let key = format!("phase1.node_groups (zones of {name})");
            group.zones.iter().try_for_each(|zone| self.check_zone(&key, zone))?;
        }
        self.check_cloud_controller(spec)?;
        check_key("phase1.gce.disk_kms_key", &self.disk_kms_key)?;
        check_key("phase1.etcd_volume.kms_key", &spec.etcd.volume.kms_key)?;
        for host in spec.control_plane.values() {
            check_machine(
                "phase1.gce.control_plane_instance_type",
                &host.machine_type,
                "phase1.gce.disk_type",
                &host.disk_type,
            )?;
            check_machine(
                "phase1.gce.control_plane_instance_type",
                &host.machine_type,
                "phase1.gce.etcd_volume_type",
                &spec.etcd.volume.kind,
            )?;
        }
        let images = spec.control_plane.values().map(|host| &host.image);
        images.chain(spec.groups.values().map(|group| &group.image)).try_for_each(|image| check_image(image))?;
        for (name, group) in &spec.groups {
            let key = if name == WORKERS {
                "phase1.gce.instance_type".to_owned()
            } else {
                format!("phase1.node_groups: the group {name}")
            };
            check_machine(&key, &group.machine_type, "phase1.gce.disk_type", &group.disk_type)?;
            check_labels(&format!("phase1.node_groups: tags of {name}"), &group.tags)?;
        }
        check_labels("phase1.tags", &spec.tags)
    }

    fn node_name_prefix(&self, group: &str) -> Option<String> {
        self.names.groups.get(group).cloned()
    }

    fn machine_proof(&self, spec: &Spec) -> Result<Option<MachineProof>> {
        const KEY: &str = "phase1.user_data.identity";
        if self.project.is_empty() {
            return Err(refused(KEY, "hosts are known by their project, and no setting names it")
                .hint("turnup config set phase1.gce.project=…"));
        }
        let given = &self.node_service_account;
        if !given.is_empty() && !given.contains('@') {
            let why = format!("hosts are known by their service account, and {given} is no address of one");
            return Err(refused("phase1.gce.node_service_account", why)
                .hint("its whole address, such as nodes@my-project-123.iam.gserviceaccount.com"));
        }
        let own = || format!("{}@{}.iam.gserviceaccount.com", self.names.node_account, self.project);
        let account = if given.is_empty() { own() } else { given.clone() };
        Ok(Some(MachineProof::Signed(machine_identity::issuer(&spec.name, &self.project, &account))))
    }

    fn addon_values(&self) -> BTreeMap<&'static str, String> {
        let prefix = &self.names.prefix;
        let own = format!("{prefix}-hosts");
        BTreeMap::from([
            ("prefix", prefix.clone()),
            ("cluster_id", fit(prefix, CLUSTER_ID)),
            ("subnetwork", if self.subnetwork.is_empty() { own } else { self.subnetwork.clone() }),
            ("node_tag", format!("{prefix}-node")),
        ])
    }

    fn variable(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }
}

impl GceSettings {
    /// Whether what should be reached from outside can be, and by the name that it has.
    fn check_ways_in(&self, spec: &Spec) -> Result<()> {
        if !self.public_addresses && spec.api.external && spec.api.exposure != Exposure::LoadBalancer {
            let why = format!("{} leads to hosts, and they have no public address", spec.api.exposure);
            return Err(refused("phase1.api.exposure", why).hint(
                "turnup config set phase1.api.exposure=load-balancer, phase1.gce.public_addresses=y, or phase1.api.external=n for inside the network only",
            ));
        }
        if spec.writes_zones() && spec.dns.zone.is_empty() && !spec.dns.private {
            return Err(refused("phase1.dns.zone", "Cloud DNS finds a zone by its name, and none is given").hint(
                "turnup config set phase1.dns.zone=… (gcloud dns managed-zones list: NAME, not DNS_NAME), or phase1.dns.private_zone=y for one of the cluster's own",
            ));
        }
        let asked = spec.writes_zones() && spec.api.exposure == Exposure::Dns;
        if asked && spec.dns.private && !spec.dns.zone.is_empty() && self.network.is_empty() {
            let why = format!(
                "{} is found in networks that are named in it, and that of the cluster is yet to be made",
                spec.dns.zone
            );
            return Err(refused("phase1.dns.zone", why).hint(
                "turnup config set phase1.gce.network=NETWORK, one of the zone's; or turnup config unset phase1.dns.zone, for a zone of the cluster's own",
            ));
        }
        if spec.ssh.bastion {
            let (key, machine) = ("phase1.ssh.bastion_machine_type", &spec.ssh.bastion_machine_type);
            check_processor(key, machine, check_type(key, machine)?)?;
        }
        Ok(())
    }

    /// Whether load balancers of Services would lead anywhere, and be let in there.
    fn check_cloud_controller(&self, spec: &Spec) -> Result<()> {
        if !self.cloud_controller {
            return Ok(());
        }
        if !self.network_project.is_empty() && self.network_project != self.project {
            let why = format!(
                "load balancers need rules in the network's project {}, in which hosts have no rights",
                self.network_project
            );
            return Err(refused(CLOUD_CONTROLLER, why)
                .hint(format!("turnup config set {CLOUD_CONTROLLER}=n, or a network of the cluster's own project")));
        }
        if spec.groups.is_empty() {
            let why = "load balancers lead to hosts of node groups alone, and there are none";
            return Err(refused(CLOUD_CONTROLLER, why)
                .hint(format!("turnup config set phase1.num_nodes=1, or {CLOUD_CONTROLLER}=n")));
        }
        Ok(())
    }

    /// The hosts' addresses: apart from pods and Services, and enough.
    fn check_network(&self, spec: &Spec) -> Result<()> {
        const KEY: &str = "phase1.gce.subnet_cidr";
        require_apart(KEY, &self.subnet_cidr, &spec.networks)?;
        let network: Network = self.subnet_cidr.parse().map_err(|why| refused(KEY, why))?;
        let workers = spec.groups.values().map(|group| u64::from(group.max.unwrap_or(0).max(group.size)));
        let needed = workers.sum::<u64>()
            + u64::try_from(spec.control_plane.len()).unwrap_or_default()
            + u64::from(spec.ssh.bastion)
            + u64::from(spec.api.exposure == Exposure::LoadBalancer);
        let room = network.size().saturating_sub(KEPT);
        if needed > room {
            let why = format!("{network} has room for {room} addresses, and up to {needed} are needed");
            return Err(refused(KEY, why).hint("take a wider network, or lower the sizes of the groups"));
        }
        Ok(())
    }

    /// `key` is the setting that names zones for these hosts alone; others are where the target's
    /// own settings say.
    fn check_zone(&self, key: &str, zone: &str) -> Result<()> {
        let key = if self.zones.iter().any(|own| own == zone) {
            "phase1.gce.zones"
        } else if zone == self.zone {
            "phase1.gce.zone"
        } else {
            key
        };
        if zone.is_empty() {
            let why = format!("the zones of {} are not known to turnup", self.region);
            return Err(refused(key, why)
                .hint(format!("turnup config set phase1.gce.zone={}-a (gcloud compute zones list)", self.region)));
        }
        let letter = zone.strip_prefix(&self.region).and_then(|rest| rest.strip_prefix('-'));
        if letter.is_some_and(|letter| letter.len() == 1 && letter.bytes().all(|byte| byte.is_ascii_lowercase())) {
            return Ok(());
        }
        let why = format!("{zone} is no zone of the region {}", self.region);
        Err(refused(key, why).hint(format!("zones are {0}-a, {0}-b, …; or set phase1.gce.region", self.region)))
    }
}

/// A region: a continent, a place in it and a number, such as europe-west10.
fn check_region(region: &str) -> Result<()> {
    const CONTINENTS: [&str; 8] = ["africa", "asia", "australia", "europe", "me", "northamerica", "southamerica", "us"];
    const PLACES: [&str; 9] =
        ["north", "south", "east", "west", "central", "northeast", "northwest", "southeast", "southwest"];
    // Only to suggest one: Google has more, and every year others.
    const KNOWN: [&str; 24] = [
        "africa-south1",
        "asia-east1",
        "asia-east2",
        "asia-northeast1",
        "asia-south1",
        "asia-southeast1",
        "australia-southeast1",
        "europe-central2",
        "europe-north1",
        "europe-southwest1",
        "europe-west1",
        "europe-west2",
        "europe-west3",
        "europe-west4",
        "me-central1",
        "me-west1",
        "northamerica-northeast1",
        "southamerica-east1",
        "us-central1",
        "us-east1",
        "us-east4",
        "us-south1",
        "us-west1",
        "us-west2",
    ];
    let (continent, rest) = region.split_once('-').unwrap_or((region, ""));
    let place = rest.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = matches!(rest.len() - place.len(), 1 | 2);
    if CONTINENTS.contains(&continent) && PLACES.contains(&place) && is_numbered {
        return Ok(());
    }
    let hint = match kconfig::suggest(region, KNOWN.into_iter()) {
        Some(near) => format!("did you mean {near}? turnup config set phase1.gce.region={near}"),
        None => "gcloud compute regions list".to_owned(),
    };
    Err(refused("phase1.gce.region", format!("{region} is no region of Google Cloud")).hint(hint))
}

/// A key as Google's Key Management Service names it in full; empty is none.
fn check_key(key: &str, name: &str) -> Result<()> {
    let parts: Vec<&str> = name.split('/').collect();
    let is_one = match parts.as_slice() {
        ["projects", _, "locations", _, "keyRings", _, "cryptoKeys", _] => parts.iter().all(|part| !part.is_empty()),
        _ => name.is_empty(),
    };
    if is_one {
        return Ok(());
    }
    Err(refused(key, format!("{name} is no name of a key"))
        .hint("projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY (gcloud kms keys list prints it so)"))
}

/// Hosts become nodes by their user data, which Google's own images of Debian do not read: they
/// have no cloud-init.
fn check_image(image: &str) -> Result<()> {
    if !image.contains("debian-cloud/") {
        return Ok(());
    }
    let why = format!("{image} is an image of Debian by Google, which runs no cloud-init: its hosts would never join");
    Err(refused("phase1.gce.os_image", why).hint(
        "turnup config unset phase1.gce.os_image (Ubuntu 24.04), or name an image of your own that has cloud-init",
    ))
}

/// A machine type exists and a node can run there, and the disk is one that it takes.
fn check_machine(key: &str, machine: &str, disk_key: &str, disk: &str) -> Result<()> {
    let family = check_type(key, machine)?;
    check_node(key, machine, family)?;
    if HYPERDISK_ONLY.contains(&family) && !disk.starts_with("hyperdisk-") {
        return Err(refused(disk_key, format!("machines of type {machine} take no {disk}"))
            .hint(format!("turnup config set {disk_key}=hyperdisk-balanced")));
    }
    Ok(())
}

/// A machine type exists, as far as turnup knows them; its family.
fn check_type<'m>(key: &str, machine: &'m str) -> Result<&'m str> {
    let family = machine.split('-').next().unwrap_or_default();
    let known = FAMILIES.contains(&family) || machine.starts_with("custom-");
    if !known || !machine.contains('-') {
        let error = refused(key, format!("{machine} is no machine type of Compute Engine"));
        if known {
            return Err(error.hint(format!("a machine type has a size, such as {family}-standard-2")));
        }
        return Err(match kconfig::suggest(family, FAMILIES.into_iter()) {
            Some(near) => error.hint(format!(
                "did you mean {}? (gcloud compute machine-types list)",
                machine.replacen(family, &near, 1)
            )),
            None => error.hint("gcloud compute machine-types list"),
        });
    }
    check_kind(key, machine, family)?;
    Ok(family)
}

/// In families whose types are known: a kind that exists and, but where CPUs are shared, how many
/// there are.
fn check_kind(key: &str, machine: &str, family: &str) -> Result<()> {
    let shared: &[&str] = if family == "e2" { &SHARED_CORE } else { &[] };
    let mut rest = machine.split('-').skip(1);
    let (kind, cpus) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
    if !GENERAL.contains(&family) || kind == "custom" || shared.contains(&kind) {
        return Ok(());
    }
    let error = refused(key, format!("{machine} is no machine type of Compute Engine"));
    if !KINDS.contains(&kind) {
        return Err(match kconfig::suggest(kind, KINDS.iter().chain(shared).copied()) {
            Some(near) => error.hint(format!(
                "did you mean {}? (gcloud compute machine-types list)",
                machine.replacen(kind, &near, 1)
            )),
            None => error.hint(format!("a machine type has a kind, such as {family}-standard-4")),
        });
    }
    if cpus.parse::<u16>().is_err() {
        return Err(error.hint("a number of CPUs follows, as in n2-standard-4 (gcloud compute machine-types list)"));
    }
    Ok(())
}

/// A node has room there, and turnup's own programs run: hosts get those of the machine that turnup
/// is on.
fn check_node(key: &str, machine: &str, family: &str) -> Result<()> {
    if matches!(machine, "e2-micro" | "f1-micro") {
        return Err(refused(key, format!("{machine} has 1 GB of memory at most, and a node needs 2"))
            .hint("e2-medium or larger, for instance e2-standard-2"));
    }
    check_processor(key, machine, family)
}

fn check_processor(key: &str, machine: &str, family: &str) -> Result<()> {
    let hint = "take a type with x86-64 processors, for instance n2-standard-4";
    host::check_processor(key, ARM.contains(&family), &format!("{machine} has ARM processors"), hint)
}

/// Labels: lower-case letters, digits, `_` and `-`, at most 63 characters, keys beginning with a
/// letter ("Requirements for labels").
fn check_labels(key: &str, labels: &BTreeMap<String, String>) -> Result<()> {
    let allowed = |text: &str| {
        text.len() <= 63
            && text.chars().all(|letter| letter.is_lowercase() || letter.is_ascii_digit() || "_-".contains(letter))
    };
    for (name, value) in labels {
        if !allowed(name) || !allowed(value) || !name.starts_with(|letter: char| letter.is_lowercase()) {
            return Err(refused(key, format!("{name}={value} is no label of Google Cloud"))
                .hint("lower-case letters, digits, _ and -, at most 63 of each; a key begins with a letter"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
