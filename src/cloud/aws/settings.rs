//! Amazon EC2's own part: its settings, its names, and what it would refuse.
//!
//! Limits are those of Amazon's documentation: load balancers 32 characters (Elastic Load
//! Balancing, `CreateLoadBalancer`), roles 64 (IAM quotas), queues 80 (`CreateQueue`), event rules
//! 64 (`PutRule`), tags ("Tag restrictions"), volumes ("Amazon EBS volume types").

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::config::{Network, Settings, object_prefix};
use crate::error::Result;

use super::machine::{check_bastion, check_machine, check_processor, is_arm};
use super::machine_identity;
use crate::cloud::spec::{
    CloudGroup, CloudSettings, ControlPlaneHost, Defaults, Exposure, IPV6, Site, Spec, fit, require_apart,
};
use crate::cloud::{MachineProof, host, refused};

/// Addresses of a subnet that no host gets: five that Amazon keeps, and eight that a load balancer
/// wants free.
const KEPT: u64 = 13;
/// The longest beginning of a Node's name. Amazon names hosts by their addresses: with
/// `ip-255-255-255-255` behind it and a dash, a Node's name has at most 63 characters.
const HOST_NAME_PREFIX: usize = 63 - 19;
/// Tags of one resource are at most 50; turnup's own and the autoscaler's need room.
const MOST_TAGS: usize = 30;

/// `cluster.aws` of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the module's variable")]
pub(super) struct AwsSettings {
    region: String,
    zones: Vec<String>,
    profile: String,
    assume_role_arn: String,
    vpc_id: String,
    vpc_cidr: String,
    subnet_ids: BTreeMap<String, String>,
    public_subnet_ids: BTreeMap<String, String>,
    topology: String,
    nat_gateways: String,
    security_groups: Vec<String>,
    disk_encrypted: bool,
    disk_kms_key: String,
    disk_iops: u32,
    etcd_volume_iops: u32,
    control_plane_instance_profile: String,
    node_instance_profile: String,
    permissions_boundary: String,
    key_pair: String,
    termination_queue: bool,
    detailed_monitoring: bool,
    cpu_credits: String,
    /// Whether control-plane hosts may do what the cloud controller manager does.
    cloud_controller: bool,
    /// Whether they may make, attach and delete volumes of claims.
    cloud_storage: bool,
    /// Whether they may take snapshots of these.
    cloud_snapshots: bool,
    /// The key of these volumes; empty without one of the user's.
    cloud_storage_kms_key: String,
    /// Whether they may do what the cluster autoscaler does.
    cluster_autoscaler: bool,
    /// Where control-plane hosts may keep backups, by their role; empty without.
    backup_bucket: String,
    /// With its slash, or empty.
    backup_prefix: String,
    names: AwsNames,
    /// What groups have that say nothing else.
    #[serde(skip)]
    own_types: [String; 2],
}

/// Names within the limits that are shorter than a cluster's name may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct AwsNames {
    load_balancer: String,
    inner_load_balancer: String,
    control_plane_role: String,
    node_role: String,
    queue: String,
    rule: String,
}

/// What the settings say, and what hosts have that say nothing else.
pub(super) fn read(settings: &Settings) -> Result<(Defaults, AwsSettings)> {
    let text = |name: &str| settings.get(&format!("phase1.aws.{name}"));
    let flag = |name: &str| settings.get_bool(&format!("phase1.aws.{name}"));
    let number = |name: &str| settings.get_number(&format!("phase1.aws.{name}"));
    let topology = text("topology")?;
    let zones = settings.get_list("phase1.aws.zones")?;
    let region = text("region")?;
    check_region(&region)?;
    if zones.is_empty() {
        let why = format!("the zones of {region} are not known to turnup");
        return Err(refused("phase1.aws.zones", why).hint(format!(
            "turnup config set phase1.aws.zones={region}a,{region}b (aws ec2 describe-availability-zones)"
        )));
    }
    let (backup_bucket, backup_prefix) = read_bucket(settings)?;
    let cloud_storage = settings.get_bool("phase3.cloud_storage")?;
    let is_encrypted = cloud_storage && settings.get_bool("phase3.ebs_encrypted")?;
    let defaults = Defaults {
        image: text("ami")?,
        disk_gb: number("disk_gb")?,
        disk_type: text("disk_type")?,
        machine_type: text("instance_type")?,
        control_plane_machine_type: text("control_plane_instance_type")?,
        control_plane_zones: zones.clone(),
        zones: zones.clone(),
        public_address: topology == "public",
        etcd_volume_type: text("etcd_volume_type")?,
    };
    let aws = AwsSettings {
        region,
        zones,
        profile: text("profile")?,
        assume_role_arn: text("assume_role_arn")?,
        vpc_id: text("vpc_id")?,
        vpc_cidr: text("vpc_cidr")?,
        subnet_ids: settings.get_map("phase1.aws.subnet_ids")?,
        public_subnet_ids: settings.get_map("phase1.aws.public_subnet_ids")?,
        nat_gateways: Some(text("nat_gateways")?).filter(|kind| !kind.is_empty()).unwrap_or_else(|| "none".to_owned()),
        topology,
        security_groups: settings.get_list("phase1.aws.security_groups")?,
        disk_encrypted: flag("disk_encrypted")?,
        disk_kms_key: text("disk_kms_key")?,
        disk_iops: number("disk_iops")?,
        etcd_volume_iops: number("etcd_volume_iops")?,
        control_plane_instance_profile: text("control_plane_instance_profile")?,
        node_instance_profile: text("node_instance_profile")?,
        permissions_boundary: text("permissions_boundary")?,
        key_pair: text("key_pair")?,
        termination_queue: flag("termination_queue")?,
        detailed_monitoring: flag("detailed_monitoring")?,
        cpu_credits: text("cpu_credits")?,
        cloud_controller: settings.get_bool("phase3.cloud_controller")?,
        cloud_storage,
        cloud_snapshots: cloud_storage && settings.get_bool("phase3.snapshots")?,
        cloud_storage_kms_key: if is_encrypted { settings.get("phase3.ebs_kms_key")? } else { String::new() },
        cluster_autoscaler: settings.get_bool("phase3.cluster_autoscaler")?,
        backup_bucket,
        backup_prefix,
        names: AwsNames::default(),
        own_types: [defaults.machine_type.clone(), defaults.disk_type.clone()],
    };
    Ok((defaults, aws))
}

/// The bucket for backups and the beginning of their names, where no key of the user's is for it.
fn read_bucket(settings: &Settings) -> Result<(String, String)> {
    let text = |name: &str| settings.get(&format!("phase2.backup.{name}"));
    if text("store")? != "s3" || !text("s3.credentials_file")?.is_empty() {
        return Ok(Default::default());
    }
    Ok((text("s3.bucket")?, object_prefix(&text("s3.prefix")?)))
}

impl CloudSettings for AwsSettings {
    fn name_all(&mut self, cluster: &str, _: &BTreeMap<String, ControlPlaneHost>, _: &BTreeMap<String, CloudGroup>) {
        // The beginning `internal-` is Amazon's own.
        let balancer = if cluster.starts_with("internal-") { format!("k{cluster}") } else { cluster.to_owned() };
        // Roles belong to the account, not to a region: two clusters of one name may live in two
        // regions.
        let role = |end: &str| fit(&format!("{cluster}-{}", self.region), 64 - end.len()) + end;
        let short = |name: &str, end: &str, longest: usize| fit(name, longest - end.len()) + end;
        self.names = AwsNames {
            load_balancer: short(&balancer, "-api", 32),
            inner_load_balancer: short(&balancer, "-api-internal", 32),
            control_plane_role: role("-control-plane"),
            node_role: role("-node"),
            queue: short(cluster, "-termination", 80),
            rule: fit(cluster, 48),
        };
    }

    fn site(&self, spec: &Spec) -> Site {
        let public = self.topology == "public";
        let many = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let gateways = match self.nat_gateways.as_str() {
            "none" => 0,
            _ if public || !self.vpc_id.is_empty() => 0,
            "one" => 1,
            _ => many(self.zones_in_use(spec).into_iter().map(|(_, zone)| zone).collect::<BTreeSet<_>>().len()),
        };
        // The outer load balancer has an address in each zone, or the one that the user reserved.
        let zones: BTreeSet<&str> = spec.control_plane.values().map(|host| host.zone.as_str()).collect();
        let of_balancer = if spec.api.static_address.is_empty() { many(zones.len()) } else { 1 };
        Site {
            region: self.region.clone(),
            network: if self.vpc_id.is_empty() { &self.vpc_cidr } else { &self.vpc_id }.clone(),
            nat_gateways: gateways,
            public_control_plane: public,
            public_addresses: gateways + if spec.has_outer_balancer() { of_balancer } else { 0 },
        }
    }

    fn check(&self, spec: &Spec) -> Result<()> {
        self.check_identifiers(spec)?;
        self.check_zones(spec)?;
        self.check_network(spec)?;
        self.check_ways_in(spec)?;
        self.check_ways_out(spec)?;
        self.check_login(spec)?;
        check_names(spec)?;
        self.check_machines(spec)?;
        self.check_disks(spec)?;
        check_tags("phase1.tags", &spec.tags)?;
        spec.groups.iter().try_for_each(|(name, group)| check_tags(&in_group("tags", name), &group.tags))
    }

    fn node_name_prefix(&self, group: &str) -> Option<String> {
        Some(fit(group, HOST_NAME_PREFIX))
    }

    fn machine_proof(&self, spec: &Spec) -> Result<Option<MachineProof>> {
        if !self.node_instance_profile.is_empty() {
            let why = format!("hosts are known by their role, and that of {} is unknown", self.node_instance_profile);
            return Err(refused("phase1.aws.node_instance_profile", why).hint(
                "turnup config unset phase1.aws.node_instance_profile, for a role of the cluster's own; or turnup config set phase1.user_data.identity=token",
            ));
        }
        Ok(Some(MachineProof::Asked(machine_identity::role(&spec.name, &self.region, &self.names.node_role))))
    }

    fn variable(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }
}

impl AwsSettings {
    /// Whether what was given can be what it should name; that it exists, only Amazon knows.
    fn check_identifiers(&self, spec: &Spec) -> Result<()> {
        let one = |key: &str, text: &str, prefix: &'static str| (key.to_owned(), text.to_owned(), prefix);
        let mut given = vec![
            one("phase1.aws.vpc_id", &self.vpc_id, "vpc-"),
            one("phase1.aws.assume_role_arn", &self.assume_role_arn, "arn:"),
            one("phase1.aws.permissions_boundary", &self.permissions_boundary, "arn:"),
            one("phase1.aws.disk_kms_key", &self.disk_kms_key, "arn:"),
            one("phase1.etcd_volume.kms_key", &spec.etcd.volume.kms_key, "arn:"),
            one("phase1.api.static_address", &spec.api.static_address, "eipalloc-"),
        ];
        given.extend(self.subnet_ids.values().map(|subnet| one("phase1.aws.subnet_ids", subnet, "subnet-")));
        given.extend(
            self.public_subnet_ids.values().map(|subnet| one("phase1.aws.public_subnet_ids", subnet, "subnet-")),
        );
        given.extend(self.security_groups.iter().map(|group| one("phase1.aws.security_groups", group, "sg-")));
        given.extend(spec.control_plane.values().map(|host| one("phase1.aws.ami", &host.image, "ami-")));
        given.extend(spec.groups.iter().map(|(name, group)| one(&in_group("image", name), &group.image, "ami-")));
        for (key, text, prefix) in given {
            if !text.is_empty() && !text.starts_with(prefix) {
                return Err(refused(&key, format!("{text} does not begin with {prefix}"))
                    .hint("give the identifier, as the console and `aws` show it, not a name"));
            }
        }
        // EBS tells the key behind an alias, which is another name: each plan would find a
        // difference.
        let arn = &spec.etcd.volume.kms_key;
        if arn.contains(":alias/") {
            let why = format!("{arn} is an alias, which may lead to another key tomorrow");
            return Err(refused("phase1.etcd_volume.kms_key", why)
                .hint(format!("the key's own ARN: aws kms describe-key --key-id {arn} --query KeyMetadata.Arn")));
        }
        let profiles = [
            ("phase1.aws.control_plane_instance_profile", &self.control_plane_instance_profile),
            ("phase1.aws.node_instance_profile", &self.node_instance_profile),
        ];
        for (key, profile) in profiles {
            if let Some(name) = profile.strip_prefix("arn:").and_then(|arn| arn.rsplit('/').next()) {
                return Err(refused(key, "a profile is given by its name, not by its ARN")
                    .hint(format!("turnup config set {key}={name}")));
            }
        }
        let images = spec.control_plane.values().map(|host| &host.image);
        let of_groups = spec.groups.values().map(|group| &group.image);
        let apart = self.region.starts_with("cn-") || self.region.starts_with("us-gov-");
        if apart && images.chain(of_groups).any(String::is_empty) {
            let why = format!("turnup does not know whose Debian images are in {}", self.region);
            return Err(refused("phase1.aws.ami", why).hint("turnup config set phase1.aws.ami=ami-…"));
        }
        Ok(())
    }

    /// Every zone that anything stands in: the key that says so, and the zone.
    fn zones_in_use<'s>(&'s self, spec: &'s Spec) -> Vec<(String, &'s str)> {
        let own = self.zones.iter().map(|zone| ("phase1.aws.zones".to_owned(), zone.as_str()));
        let masters =
            spec.control_plane.values().map(|host| ("phase1.control_plane.zones".to_owned(), host.zone.as_str()));
        let groups = spec
            .groups
            .iter()
            .flat_map(|(name, group)| group.zones.iter().map(|zone| (in_group("zones", name), zone.as_str())));
        own.chain(masters).chain(groups).collect()
    }

    fn check_zones(&self, spec: &Spec) -> Result<()> {
        for (key, zone) in self.zones_in_use(spec) {
            let letter = zone.strip_prefix(self.region.as_str()).unwrap_or_default();
            if !matches!(letter.as_bytes(), [b'a'..=b'g']) {
                let why = format!("{zone} is no zone of the region {}", self.region);
                return Err(
                    refused(&key, why).hint(format!("zones are {0}a, {0}b, …; or set phase1.aws.region", self.region))
                );
            }
            if !self.subnet_ids.is_empty() && !self.subnet_ids.contains_key(zone) {
                return Err(refused("phase1.aws.subnet_ids", format!("no subnet for {zone}, where {key} puts hosts"))
                    .hint(format!("add {zone}=subnet-… or leave {zone} out of {key}")));
            }
        }
        Ok(())
    }

    fn check_network(&self, spec: &Spec) -> Result<()> {
        if !self.vpc_id.is_empty() {
            if spec.ipv6 && self.subnet_ids.is_empty() {
                let why = format!("the subnets that turnup makes in {} have IPv4 alone", self.vpc_id);
                return Err(refused(IPV6, why)
                    .hint("name subnets that have IPv6: turnup config set phase1.aws.subnet_ids=ZONE=subnet-…"));
            }
            return Ok(());
        }
        let key = "phase1.aws.vpc_cidr";
        require_apart(key, &self.vpc_cidr, &spec.networks)?;
        let network: Network = self.vpc_cidr.parse().map_err(|why| refused(key, why))?;
        if self.topology == "private" && network.prefix() > 22 {
            return Err(refused(
                key,
                format!("{network} is too small for private subnets and public ones beside them"),
            )
            .hint("turnup config set phase1.aws.vpc_cidr=172.20.0.0/16 (at least a /22)"));
        }
        // Each zone's hosts have an eighth.
        let room = (network.size() / 8).saturating_sub(KEPT);
        let mut hosts: BTreeMap<&str, u64> = BTreeMap::new();
        for host in spec.control_plane.values() {
            *hosts.entry(&host.zone).or_default() += 1;
        }
        for group in spec.groups.values() {
            let most = u64::from(group.size.max(group.max.unwrap_or_default()));
            let zones: BTreeSet<&str> = group.zones.iter().map(String::as_str).collect();
            for zone in &zones {
                *hosts.entry(zone).or_default() += most.div_ceil(zones.len() as u64);
            }
        }
        match hosts.into_iter().find(|(_, count)| *count > room) {
            Some((zone, count)) => {
                let why = format!("{network} gives {zone} addresses for {room} hosts, and there may be {count}");
                Err(refused(key, why)
                    .hint("turnup config set phase1.aws.vpc_cidr=172.20.0.0/16 (before the first `turnup up`)"))
            }
            None => Ok(()),
        }
    }

    /// Whether what should be reached from outside can be.
    fn check_ways_in(&self, spec: &Spec) -> Result<()> {
        let public = self.topology == "public";
        if !public && spec.api.external && spec.api.exposure != Exposure::LoadBalancer {
            let why =
                format!("{} leads to hosts, and those of private subnets have no public address", spec.api.exposure);
            return Err(refused("phase1.api.exposure", why).hint(
                "turnup config set phase1.api.exposure=load-balancer, or phase1.api.external=n for inside the VPC only",
            ));
        }
        if let Some((name, _)) = spec.groups.iter().find(|(_, group)| group.public_address && !public) {
            return Err(refused(
                &in_group("public_address", name),
                "private subnets have no ingress from the internet",
            )
            .hint("leave it out, or turnup config set phase1.aws.topology=public"));
        }
        let outer = spec.has_outer_balancer();
        if self.vpc_id.is_empty() || public || !(outer || spec.ssh.bastion) {
            return Ok(());
        }
        let first = spec.control_plane.values().take(1);
        let wanted = if outer { spec.control_plane.values().collect::<Vec<_>>() } else { first.collect() };
        match wanted.iter().find(|host| !self.public_subnet_ids.contains_key(&host.zone)) {
            Some(host) => {
                let what = if outer { "the outer load balancer (phase1.api.external)" } else { "the bastion" };
                let why = format!(
                    "{what} needs a public subnet in {}, and {} has hosts in private ones",
                    host.zone, self.vpc_id
                );
                Err(refused("phase1.aws.public_subnet_ids", why)
                    .hint(format!("turnup config set phase1.aws.public_subnet_ids={}=subnet-…", host.zone)))
            }
            None => Ok(()),
        }
    }

    /// Whether hosts reach what they need, in a VPC of the cluster's own. In another one egress is
    /// its owner's.
    fn check_ways_out(&self, spec: &Spec) -> Result<()> {
        let mut lost = spec.groups.iter().filter(|(_, group)| !group.public_address);
        match lost.next() {
            Some((name, _)) if self.vpc_id.is_empty() && self.topology == "public" => {
                let why = "out of public subnets only public addresses lead: its hosts could fetch nothing";
                Err(refused(&in_group("public_address", name), why)
                    .hint("leave it out, or turnup config set phase1.aws.topology=private, for all hosts"))
            }
            _ => Ok(()),
        }
    }

    /// The first key becomes a key pair, unless there is one; the others come by user data.
    fn check_login(&self, spec: &Spec) -> Result<()> {
        match spec.ssh.authorized_keys.first().and_then(|key| host::foreign_kind(key)) {
            Some(kind) if self.key_pair.is_empty() => {
                let why = format!("Amazon imports no key of the kind {kind}, only Ed25519 and RSA");
                Err(refused("phase1.ssh.private_key_file", why).hint(
                    "turnup config unset phase1.ssh.private_key_file for a key of the cluster's own; or ssh-keygen -t ed25519; or turnup config set phase1.aws.key_pair=NAME",
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_machines(&self, spec: &Spec) -> Result<()> {
        for host in spec.control_plane.values() {
            let key = "phase1.aws.control_plane_instance_type";
            check_machine(key, &host.machine_type)?;
            check_processor(key, &host.machine_type)?;
        }
        for (name, group) in &spec.groups {
            let own = group.machine_type != self.own_types[0];
            let key = if own { in_group("machine_type", name) } else { "phase1.aws.instance_type".to_owned() };
            check_machine(&key, &group.machine_type)?;
            check_processor(&key, &group.machine_type)?;
        }
        if !spec.ssh.bastion {
            return Ok(());
        }
        let key = "phase1.ssh.bastion_machine_type";
        check_bastion(key, &spec.ssh.bastion_machine_type)?;
        let first = spec.control_plane.values().next();
        match first.filter(|host| !host.image.is_empty()) {
            Some(host) if is_arm(&host.machine_type) != is_arm(&spec.ssh.bastion_machine_type) => {
                let why = format!(
                    "the bastion has the control plane's image, which is for machines like {}",
                    host.machine_type
                );
                Err(refused(key, why).hint(format!(
                    "turnup config set {key}={}",
                    if is_arm(&host.machine_type) { "t4g.micro" } else { "t3.micro" }
                )))
            }
            _ => Ok(()),
        }
    }

    fn check_disks(&self, spec: &Spec) -> Result<()> {
        let etcd = &spec.etcd.volume;
        let etcd_disk = Disk { kind: &etcd.kind, size_gb: etcd.size_gb, iops: self.etcd_volume_iops };
        etcd_disk.check("phase1.aws.etcd_volume_type", "phase1.etcd_volume.size_gb", "phase1.aws.etcd_volume_iops")?;
        let iops = self.disk_iops;
        for host in spec.control_plane.values() {
            let disk = Disk { kind: &host.disk_type, size_gb: host.disk_gb, iops };
            disk.check("phase1.aws.disk_type", "phase1.aws.disk_gb", "phase1.aws.disk_iops")?;
        }
        for (name, group) in &spec.groups {
            let disk = Disk { kind: &group.disk_type, size_gb: group.disk_gb, iops };
            let own = group.disk_type != self.own_types[1];
            let key = if own { in_group("disk_type", name) } else { "phase1.aws.disk_type".to_owned() };
            disk.check(&key, &in_group("disk_gb", name), "phase1.aws.disk_iops")?;
        }
        Ok(())
    }
}

/// A volume of EBS.
struct Disk<'d> {
    kind: &'d str,
    size_gb: u32,
    iops: u32,
}

impl Disk<'_> {
    fn check(&self, kind_key: &str, size_key: &str, iops_key: &str) -> Result<()> {
        let Self { kind, size_gb, iops } = *self;
        let (least, per_gb, smallest) = match kind {
            "gp3" => (3000, 500, 1),
            "io2" => (100, 1000, 4),
            "gp2" => return Ok(()),
            other => {
                return Err(refused(kind_key, format!("{other} is no type of volume that hosts can have"))
                    .hint("gp3, gp2 or io2; gp3 is good for nearly everything"));
            }
        };
        if size_gb < smallest {
            return Err(refused(size_key, format!("a volume of type {kind} has at least {smallest} GB"))
                .hint(format!("make it {smallest} GB, or its type gp3")));
        }
        if iops < least {
            return Err(refused(iops_key, format!("a volume of type {kind} has at least {least} operations a second"))
                .hint(format!("turnup config set {iops_key}={least}")));
        }
        // gp3 has its 3000 at any size.
        let most = u64::from(size_gb) * u64::from(per_gb);
        if iops > 3000 && u64::from(iops) > most {
            let why = format!("a volume of {size_gb} GB and type {kind} has at most {most} operations a second");
            return Err(
                refused(iops_key, why).hint(format!("lower it, or raise {size_key} to {}", iops.div_ceil(per_gb)))
            );
        }
        Ok(())
    }
}

/// A setting of one group, as messages name it.
fn in_group(what: &str, group: &str) -> String {
    format!("phase1.node_groups ({what} of {group})")
}

/// Regions are a part of the world, a direction and a number.
fn check_region(region: &str) -> Result<()> {
    const KNOWN: [&str; 16] = [
        "us-east-1",
        "us-east-2",
        "us-west-1",
        "us-west-2",
        "ca-central-1",
        "sa-east-1",
        "eu-west-1",
        "eu-west-2",
        "eu-west-3",
        "eu-central-1",
        "eu-north-1",
        "eu-south-1",
        "ap-south-1",
        "ap-northeast-1",
        "ap-southeast-1",
        "ap-southeast-2",
    ];
    const DIRECTIONS: [&str; 9] =
        ["north", "east", "south", "west", "central", "northeast", "northwest", "southeast", "southwest"];
    let parts: Vec<&str> = region.split('-').collect();
    let (world, rest) = parts.split_first().unwrap_or((&"", &[]));
    let rest = if *world == "us" { rest.strip_prefix(&["gov"]).unwrap_or(rest) } else { rest };
    let whole = matches!(rest, [direction, number] if DIRECTIONS.contains(direction) && number.parse::<u8>().is_ok());
    if world.len() == 2 && whole {
        return Ok(());
    }
    let hint = match kconfig::suggest(region, KNOWN.into_iter()) {
        Some(near) => format!("did you mean {near}? turnup config set phase1.aws.region={near}"),
        None => "aws ec2 describe-regions --all-regions".to_owned(),
    };
    Err(refused("phase1.aws.region", format!("{region} is no region of Amazon")).hint(hint))
}

/// A zone is looked for by its name, and no public one is called `internal`.
fn check_names(spec: &Spec) -> Result<()> {
    let (dns, domain) = (&spec.dns, &spec.dns.domain);
    let reserved = domain == "internal" || domain.ends_with(".internal");
    if !spec.writes_zones() || !dns.zone.is_empty() || dns.private || !reserved {
        return Ok(());
    }
    Err(refused("phase1.dns.zone", format!("there is no public zone {domain}, and none is named")).hint(
        "turnup config set phase1.dns.domain=… that is a public zone (aws route53 list-hosted-zones), or phase1.dns.private_zone=y for one of the cluster's own",
    ))
}

fn check_tags(key: &str, tags: &BTreeMap<String, String>) -> Result<()> {
    if tags.len() > MOST_TAGS {
        return Err(refused(
            key,
            format!("{} tags, and a resource has room for {MOST_TAGS} besides turnup's own", tags.len()),
        )
        .hint("leave some out"));
    }
    let allowed = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || " _.:/=+-@".contains(letter));
    for (name, value) in tags {
        let count = |text: &str| text.chars().count();
        if name.is_empty() || count(name) > 128 || count(value) > 256 || !allowed(name) || !allowed(value) {
            return Err(refused(key, format!("{name}={value} is no tag of Amazon"))
                .hint("letters, digits, spaces and _.:/=+-@; a key has at most 128 of them, a value 256"));
        }
        let own =
            ["aws:", "kubernetes.io/", "k8s.io/"].into_iter().find(|prefix| name.to_lowercase().starts_with(prefix));
        if own.is_some() || matches!(name.as_str(), "Name" | "KubernetesCluster") {
            return Err(refused(key, format!("the tag {name} is written by turnup or by Amazon itself"))
                .hint("take another name"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
