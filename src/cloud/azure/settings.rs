//! Azure's own part: its settings, its names, and what it would refuse.
//!
//! Limits of names are those of Azure's documentation "Naming rules and restrictions for Azure
//! resources", and for the beginning of a host's name those of the provider (58 characters and six
//! that the scale set appends; a Node's name has at most 63).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::artifacts::Digest;
use crate::config::{Network, Network6, Settings};
use crate::error::Result;

use super::size::VmSize;
use crate::cloud::spec::{
    CloudGroup, CloudSettings, ControlPlaneHost, Defaults, Exposure, IPV6, Site, Spec, absolute, fit, require_apart,
};
use crate::cloud::{host, refused};

/// The longest beginning of a name: a scale set's has at most 64 characters, and the longest end is
/// `-control-plane-1`.
const PREFIX: usize = 48;
/// The longest name of a group's scale set, whose hosts get `-` and six characters.
const GROUP: usize = 56;
/// The longest name of an identity that a machine is given.
const IDENTITY: usize = 24;
/// The most tags of a resource.
const TAGS: usize = 50;
/// So many tags the module adds to a control-plane host.
const OWN_TAGS: usize = 8;
/// Users that Azure makes on no machine ("Frequently asked questions about Linux Virtual Machines",
/// user names).
const USERS: [&str; 32] = [
    "1",
    "123",
    "a",
    "actuser",
    "adm",
    "admin",
    "admin1",
    "admin2",
    "administrator",
    "aspnet",
    "backup",
    "console",
    "david",
    "guest",
    "john",
    "owner",
    "root",
    "server",
    "sql",
    "support",
    "support_388945a0",
    "sys",
    "test",
    "test1",
    "test2",
    "test3",
    "user",
    "user1",
    "user2",
    "user3",
    "user4",
    "user5",
];
/// Kinds of root disks; those that end in `ZRS` are in all zones at once.
const ROOT_DISKS: [&str; 5] = ["Standard_LRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Premium_LRS", "Premium_ZRS"];
/// A kind that no machine can start from, and that only zones have.
const PREMIUM_V2: &str = "PremiumV2_LRS";
/// Azure keeps the first four addresses of a subnet and its last one.
const KEPT: u64 = 5;

/// `cluster.azure` of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the Kconfig tree")]
pub(super) struct AzureSettings {
    subscription_id: String,
    tenant_id: String,
    client_id: String,
    client_secret_file: String,
    environment: String,
    location: String,
    zones: Vec<String>,
    resource_group: String,
    vnet_id: String,
    vnet_cidr: String,
    subnet_cidr: String,
    ipv6_cidr: String,
    subnet_ipv6_cidr: String,
    master_private_ip: String,
    public_addresses: bool,
    nat_gateway: bool,
    accelerated_networking: bool,
    encryption_at_host: bool,
    control_plane_identity: String,
    node_identity: String,
    names: AzureNames,
}

/// Names within the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct AzureNames {
    prefix: String,
    control_plane_identity: String,
    node_identity: String,
    groups: BTreeMap<String, String>,
}

/// What the settings say, and what hosts have that say nothing else.
pub(super) fn read(settings: &Settings) -> Result<(Defaults, AzureSettings)> {
    let text = |name: &str| settings.get(&format!("phase1.azure.{name}"));
    let flag = |name: &str| settings.get_bool(&format!("phase1.azure.{name}"));
    let zones = settings.get_list("phase1.azure.zones")?;
    let public = flag("public_addresses")?;
    let parts = ["image_publisher", "image_offer", "image_sku", "image_version"].map(text);
    let [publisher, offer, edition, version] = parts;
    let own_image = text("image_id")?;
    let ipv6 = ipv6_network(settings)?;
    let shown = |network: Option<Network6>| network.map(|network| network.to_string()).unwrap_or_default();
    let urn = [publisher?, offer?, edition?, version?].join(":");
    let defaults = Defaults {
        image: if own_image.is_empty() { urn } else { own_image },
        disk_gb: settings.get_number("phase1.azure.disk_gb")?,
        disk_type: text("disk_type")?,
        machine_type: text("node_vm_size")?,
        control_plane_machine_type: text("master_vm_size")?,
        zones: zones.clone(),
        control_plane_zones: zones.clone(),
        public_address: public,
        etcd_volume_type: text("etcd_volume_type")?,
    };
    let azure = AzureSettings {
        subscription_id: text("subscription_id")?,
        tenant_id: text("tenant_id")?,
        client_id: text("client_id")?,
        client_secret_file: absolute("phase1.azure.client_secret_file", &text("client_secret_file")?)?,
        environment: text("environment")?,
        location: text("location")?,
        zones,
        resource_group: text("resource_group")?,
        vnet_id: text("vnet_id")?,
        vnet_cidr: text("vnet_cidr")?,
        subnet_cidr: text("subnet_cidr")?,
        ipv6_cidr: shown(ipv6),
        subnet_ipv6_cidr: shown(ipv6.map(|network| Network6::containing(network.first(), 64))),
        master_private_ip: text("master_private_ip")?,
        public_addresses: public,
        nat_gateway: flag("nat_gateway")?,
        accelerated_networking: flag("accelerated_networking")?,
        encryption_at_host: flag("encryption_at_host")?,
        control_plane_identity: text("control_plane_identity")?,
        node_identity: text("node_identity")?,
        names: AzureNames::default(),
    };
    Ok((defaults, azure))
}

/// The virtual network's IPv6 addresses, or those of the hosts' subnet in one that exists; none
/// without IPv6.
fn ipv6_network(settings: &Settings) -> Result<Option<Network6>> {
    const KEY: &str = "phase1.azure.ipv6_cidr";
    if !settings.get_bool(IPV6)? {
        return Ok(None);
    }
    let (text, existing) = (settings.get(KEY)?, settings.get("phase1.azure.vnet_id")?);
    let given = Some(text.as_str()).filter(|text| !text.is_empty());
    let given: Option<Network6> = given.map(str::parse).transpose().map_err(|why| refused(KEY, why))?;
    if !existing.is_empty() && given.is_none_or(|network| network.prefix() != 64) {
        let why = "in a virtual network that exists, the /64 of the hosts' subnet must be named";
        return Err(refused(KEY, why).hint(format!(
            "turnup config set {KEY}=…/64, a free one of the network (az network vnet show --ids {existing} --query addressSpace)"
        )));
    }
    Ok(Some(given.unwrap_or(own_network(&settings.get("phase1.cluster_name")?))))
}

/// A private network of the cluster's own (RFC 4193): 40 bits that others hardly have, but the same
/// at every run.
fn own_network(cluster: &str) -> Network6 {
    let digest = Digest::of(cluster.as_bytes()).to_string();
    let bits = u128::from_str_radix(&digest[..10], 16).unwrap_or_default();
    Network6::containing(Ipv6Addr::from((0xfd << 120) | (bits << 80)), 48)
}

impl CloudSettings for AzureSettings {
    fn name_all(
        &mut self,
        cluster: &str,
        _: &BTreeMap<String, ControlPlaneHost>,
        groups: &BTreeMap<String, CloudGroup>,
    ) {
        let prefix = fit(cluster, PREFIX);
        let identity = |end: &str| fit(cluster, IDENTITY - end.len()) + end;
        self.names = AzureNames {
            control_plane_identity: identity("-master"),
            node_identity: identity("-node"),
            groups: groups.keys().map(|name| (name.clone(), fit(&format!("{prefix}-{name}"), GROUP))).collect(),
            prefix,
        };
    }

    fn site(&self, spec: &Spec) -> Site {
        let gateways = u32::from(self.nat_gateway);
        let balanced = spec.api.exposure == Exposure::LoadBalancer;
        Site {
            region: self.location.clone(),
            network: self.subnet_cidr.clone(),
            nat_gateways: gateways,
            public_control_plane: self.public_addresses || spec.api.external && !balanced,
            public_addresses: gateways + u32::from(spec.has_outer_balancer()),
        }
    }

    fn check(&self, spec: &Spec) -> Result<()> {
        self.check_place()?;
        self.check_network(spec)?;
        self.check_identifiers(spec)?;
        check_login(spec)?;
        for host in spec.control_plane.values() {
            self.check_zone("phase1.control_plane.zones", &host.zone)?;
            self.check_control_plane(spec, host)?;
        }
        for (name, group) in &spec.groups {
            self.check_group(name, group)?;
        }
        if spec.ssh.bastion {
            let key = "phase1.ssh.bastion_machine_type";
            check_processor(key, &VmSize::parse(key, &spec.ssh.bastion_machine_type)?)?;
        }
        check_tags("phase1.tags", &spec.tags)
    }

    fn node_name_prefix(&self, group: &str) -> Option<String> {
        self.names.groups.get(group).cloned()
    }

    fn variable(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }
}

impl AzureSettings {
    fn check_place(&self) -> Result<()> {
        let plain =
            !self.location.is_empty() && self.location.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !plain {
            let kept = self.location.to_lowercase().replace([' ', '-', '_'], "");
            return Err(refused("phase1.azure.location", format!("{} is no location", self.location)).hint(format!(
                "turnup config set phase1.azure.location={kept} (az account list-locations --query [].name)"
            )));
        }
        let of_group = |letter: char| letter.is_alphanumeric() || "-_.()".contains(letter);
        if !self.resource_group.chars().all(of_group) || self.resource_group.len() > 90 {
            let why = format!("{:?} is no name of a resource group", self.resource_group);
            return Err(refused("phase1.azure.resource_group", why)
                .hint("give the name alone, not its identifier: az group list --query [].name"));
        }
        Ok(())
    }

    fn check_zone(&self, key: &str, zone: &str) -> Result<()> {
        if zone.is_empty() || ["1", "2", "3"].contains(&zone) {
            return Ok(());
        }
        let number = zone.strip_prefix(&format!("{}-", self.location)).unwrap_or("1");
        Err(refused(key, format!("{zone} is no zone: the zones of {} are 1, 2 and 3", self.location))
            .hint(format!("give the number alone: {number}")))
    }

    /// The hosts' addresses: inside their network, apart from pods and Services, and enough.
    fn check_network(&self, spec: &Spec) -> Result<()> {
        const KEY: &str = "phase1.azure.subnet_cidr";
        require_apart(KEY, &self.subnet_cidr, &spec.networks)?;
        let parse = |key: &str, text: &str| text.parse::<Network>().map_err(|why| refused(key, why));
        let subnet = parse(KEY, &self.subnet_cidr)?;
        if self.vnet_id.is_empty() {
            require_apart("phase1.azure.vnet_cidr", &self.vnet_cidr, &spec.networks)?;
            let whole = parse("phase1.azure.vnet_cidr", &self.vnet_cidr)?;
            if !whole.overlaps(subnet) || whole.prefix() > subnet.prefix() {
                return Err(refused(KEY, format!("{subnet} is no part of {whole} of phase1.azure.vnet_cidr"))
                    .hint(format!("turnup config set phase1.azure.subnet_cidr={whole}")));
            }
        }
        // While hosts are replaced there are more.
        let workers = spec.groups.values().map(|group| {
            let surge = group.rollout.map_or(0, |rollout| rollout.max_surge);
            u64::from(group.max.unwrap_or(0).max(group.size) + surge)
        });
        let balancer = u64::from(spec.api.exposure == Exposure::LoadBalancer);
        let needed = workers.sum::<u64>()
            + u64::try_from(spec.control_plane.len()).unwrap_or_default()
            + u64::from(spec.ssh.bastion)
            + balancer;
        let room = subnet.size().saturating_sub(KEPT);
        if needed > room {
            let why = format!("{subnet} has room for {room} addresses, and up to {needed} are needed");
            return Err(refused(KEY, why).hint("take a wider network, or lower the sizes of the groups"));
        }
        self.check_api_address(spec, subnet)
    }

    fn check_api_address(&self, spec: &Spec, subnet: Network) -> Result<()> {
        const KEY: &str = "phase1.azure.master_private_ip";
        if self.master_private_ip.is_empty() {
            return Ok(());
        }
        let address: Ipv4Addr = self
            .master_private_ip
            .parse()
            .map_err(|_| refused(KEY, format!("{} is no address", self.master_private_ip)))?;
        let first = subnet.address(4).unwrap_or(address);
        let good = format!("turnup config set {KEY}={first}");
        if !subnet.contains(address) {
            let why = format!("{address} is not in {subnet} of phase1.azure.subnet_cidr");
            return Err(refused(KEY, why).hint(good));
        }
        let index = u64::from(u32::from(address) - u32::from(subnet.address(0).unwrap_or(address)));
        if index < 4 || index == subnet.size() - 1 {
            let why = format!(
                "Azure keeps the first four addresses of {subnet} and the last one, and {address} is one of them"
            );
            return Err(refused(KEY, why).hint(good));
        }
        // The module counts them from the end.
        let of_hosts = u64::try_from(spec.control_plane.len()).unwrap_or_default() + 1;
        if spec.api.exposure == Exposure::LoadBalancer && index >= subnet.size() - of_hosts {
            let why = format!("{address} is the address of a control-plane host: they have the last ones of {subnet}");
            return Err(refused(KEY, why).hint(good));
        }
        Ok(())
    }

    /// What exists already is named by its whole identifier.
    fn check_identifiers(&self, spec: &Spec) -> Result<()> {
        let identities = "Microsoft.ManagedIdentity/userAssignedIdentities";
        let sets = "Microsoft.Compute/diskEncryptionSets";
        let zones = if spec.dns.private { "Microsoft.Network/privateDnsZones" } else { "Microsoft.Network/dnsZones" };
        require_id("phase1.azure.vnet_id", &self.vnet_id, "Microsoft.Network/virtualNetworks")?;
        require_id("phase1.azure.control_plane_identity", &self.control_plane_identity, identities)?;
        require_id("phase1.azure.node_identity", &self.node_identity, identities)?;
        require_id("phase1.etcd_volume.kms_key", &spec.etcd.volume.kms_key, sets)?;
        require_id("phase1.api.static_address", &spec.api.static_address, "Microsoft.Network/publicIPAddresses")?;
        if !spec.writes_zones() {
            return Ok(());
        }
        if spec.dns.zone.is_empty() && !spec.dns.private {
            return Err(refused("phase1.dns.zone", "a public zone is not made by turnup, and none is named")
                .hint("az network dns zone list --query [].id, or turnup config set phase1.dns.private_zone=y"));
        }
        if spec.dns.zone.is_empty() && !spec.dns.domain.contains('.') {
            // "What is a private Azure DNS zone": a name of one label is none that Azure takes.
            let why = format!("Azure makes no zone with a name of one word, such as {}", spec.dns.domain);
            return Err(refused("phase1.dns.domain", why).hint("turnup config set phase1.dns.domain=k8s.internal"));
        }
        require_id("phase1.dns.zone", &spec.dns.zone, zones)?;
        let zone = spec.dns.zone.rsplit('/').next().filter(|zone| !zone.is_empty()).unwrap_or(&spec.dns.domain);
        let inside = spec.api.host == zone || spec.api.host.ends_with(&format!(".{zone}"));
        if !inside {
            let why = format!("the API server's name {} does not end in the zone's name {zone}", spec.api.host);
            return Err(refused("phase1.dns.domain", why).hint(format!("turnup config set phase1.dns.domain={zone}")));
        }
        Ok(())
    }

    fn check_control_plane(&self, spec: &Spec, host: &ControlPlaneHost) -> Result<()> {
        const KEY: &str = "phase1.azure.master_vm_size";
        let size = VmSize::parse(KEY, &host.machine_type)?;
        check_processor(KEY, &size)?;
        check_image("phase1.azure.image_id", &host.image, &size)?;
        self.check_size(KEY, &size)?;
        check_disk("phase1.azure.disk_type", &host.disk_type, &size)?;
        let volume = &spec.etcd.volume.kind;
        if volume == PREMIUM_V2 && host.zone.is_empty() {
            return Err(refused("phase1.azure.etcd_volume_type", format!("{volume} is only for machines in zones"))
                .hint("turnup config set phase1.azure.etcd_volume_type=Premium_LRS"));
        }
        require_premium("phase1.azure.etcd_volume_type", volume, &size)
    }

    fn check_group(&self, name: &str, group: &CloudGroup) -> Result<()> {
        let key = format!("phase1.azure.node_vm_size (group {name})");
        let size = VmSize::parse(&key, &group.machine_type)?;
        check_processor(&key, &size)?;
        check_image(&format!("phase1.azure.image_id (group {name})"), &group.image, &size)?;
        self.check_size(&key, &size)?;
        check_disk(&format!("phase1.azure.disk_type (group {name})"), &group.disk_type, &size)?;
        for zone in &group.zones {
            self.check_zone(&format!("phase1.azure.zones (group {name})"), zone)?;
        }
        check_tags(&format!("phase1.node_groups: tags of {name}"), &group.tags)
    }

    fn check_size(&self, key: &str, size: &VmSize) -> Result<()> {
        if self.accelerated_networking && !size.takes_accelerated_networking() {
            return Err(refused(key, format!("{size} has no accelerated networking")).hint(
                "turnup config set phase1.azure.accelerated_networking=n, or take a size such as Standard_D2s_v5",
            ));
        }
        Ok(())
    }
}

/// An identifier as `az … show --query id` prints it, of this kind; empty is none.
fn require_id(key: &str, id: &str, kind: &str) -> Result<()> {
    let parts: Vec<&str> = id.split('/').collect();
    let is_one = match parts.as_slice() {
        ["", subscriptions, _, groups, _, providers, space, of_kind, name] => {
            subscriptions.eq_ignore_ascii_case("subscriptions")
                && groups.eq_ignore_ascii_case("resourceGroups")
                && providers.eq_ignore_ascii_case("providers")
                && format!("{space}/{of_kind}").eq_ignore_ascii_case(kind)
                && !name.is_empty()
        }
        _ => id.is_empty(),
    };
    if is_one {
        return Ok(());
    }
    Err(refused(key, format!("{id:?} is no identifier of {kind}")).hint(format!(
        "it has the form /subscriptions/…/resourceGroups/…/providers/{kind}/NAME: az resource list --resource-type {kind} --query [].id"
    )))
}

fn check_login(spec: &Spec) -> Result<()> {
    let user = spec.ssh.user.as_str();
    if USERS.contains(&user) {
        return Err(refused("phase1.ssh_user", format!("Azure makes no user {user:?} on a machine"))
            .hint("turnup config set phase1.ssh_user=turnup"));
    }
    if let Some(kind) = spec.ssh.authorized_keys.iter().find_map(|key| host::foreign_kind(key)) {
        let either = "phase1.ssh.private_key_file or phase1.ssh.authorized_key_files";
        return Err(refused(either, format!("Azure takes no key of the kind {kind}"))
            .hint("it takes Ed25519, and RSA from 2048 bits: ssh-keygen -t ed25519"));
    }
    Ok(())
}

fn check_processor(key: &str, size: &VmSize) -> Result<()> {
    let setting = key.split(' ').next().unwrap_or(key);
    let hint = format!("turnup config set {setting}=Standard_D2s_v5, or another size without a p behind the number");
    host::check_processor(key, size.is_arm(), &format!("{size} has an arm64 processor"), hint)
}

/// The market place's four parts, or an identifier; for the processor that the machine has.
fn check_image(key: &str, image: &str, size: &VmSize) -> Result<()> {
    if image.starts_with("/subscriptions/")
        || image.starts_with("/communityGalleries/")
        || image.starts_with("/sharedGalleries/")
    {
        return Ok(());
    }
    let parts: Vec<&str> = image.split(':').collect();
    let [_, _, edition, _] = parts.as_slice() else {
        return Err(refused(key, format!("{image} is no image"))
            .hint("PUBLISHER:OFFER:SKU:VERSION as `az vm image list --all` prints it, or an identifier"));
    };
    if parts.iter().any(|part| part.is_empty()) {
        return Err(refused(key, format!("{image} lacks a part")).hint("PUBLISHER:OFFER:SKU:VERSION"));
    }
    if edition.contains("arm64") != size.is_arm() {
        let has = if size.is_arm() { "an arm64 processor" } else { "an x86-64 processor" };
        return Err(refused(
            "phase1.azure.image_sku",
            format!("{size} has {has}, and the edition {edition} is for the other kind"),
        )
        .hint("az vm image list --all --publisher Debian --query [].sku"));
    }
    Ok(())
}

fn check_disk(key: &str, disk: &str, size: &VmSize) -> Result<()> {
    if !ROOT_DISKS.contains(&disk) {
        return Err(no_disk(key, disk));
    }
    require_premium(key, disk, size)
}

fn no_disk(key: &str, disk: &str) -> crate::error::Error {
    let error = refused(key, format!("{disk} is no disk that a machine takes here"));
    match kconfig::suggest(disk, ROOT_DISKS.into_iter()) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(ROOT_DISKS.join(", ")),
    }
}

fn require_premium(key: &str, disk: &str, size: &VmSize) -> Result<()> {
    if disk.starts_with("Premium") && !size.takes_premium() {
        return Err(refused(key, format!("machines of the size {size} take no {disk}: only sizes with an s do")).hint(
            format!(
                "turnup config set {}=StandardSSD_LRS, or take a size with an s",
                key.split(' ').next().unwrap_or(key)
            ),
        ));
    }
    Ok(())
}

/// "Use tags to organize your Azure resources", limitations.
fn check_tags(key: &str, tags: &BTreeMap<String, String>) -> Result<()> {
    if tags.len() + OWN_TAGS > TAGS {
        return Err(refused(key, format!("{} tags are too many", tags.len()))
            .hint(format!("a resource has at most {TAGS}, and {OWN_TAGS} of them are turnup's")));
    }
    for (name, value) in tags {
        let reserved = ["azure", "microsoft", "windows"].iter().any(|begin| name.to_lowercase().starts_with(begin));
        let wrong = name.contains(['<', '>', '%', '&', '\\', '?', '/']);
        if reserved || wrong || name.is_empty() || name.chars().count() > 512 || value.chars().count() > 256 {
            return Err(refused(key, format!("{name}={value} is no tag of Azure")).hint(
                "a name has at most 512 characters, none of < > % & \\ ? /, and begins with neither azure, microsoft nor windows; a value has at most 256",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
