//! What a Terraform module of the user's own is told of the settings, under the names that turnup's
//! own modules use. Only read here; the provision phase hands it over, and refuses a setting that
//! the module does not use.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::cloud::WORKERS;
use crate::config::Settings;
use crate::error::Result;
use crate::inventory::HEALTH_PORT;

/// Settings that are attributes of the variable `cluster`, and the attributes.
const ATTRIBUTES: [(&str, &str); 15] = [
    ("phase1.tags", "tags"),
    ("phase1.api.exposure", "api.exposure"),
    ("phase1.api.host", "api.host"),
    ("phase1.api.external", "api.external"),
    ("phase1.api.allowed_cidrs", "api.allowed_cidrs"),
    ("phase1.api.static_address", "api.static_address"),
    ("phase1.api.internal_load_balancer", "api.internal_load_balancer"),
    ("phase1.ssh_user", "ssh.user"),
    ("phase1.ssh.port", "ssh.port"),
    ("phase1.ssh.allowed_cidrs", "ssh.allowed_cidrs"),
    ("phase1.control_plane.count", "control_plane"),
    ("phase1.control_plane.zones", "control_plane[*].zone"),
    ("phase1.etcd_volume.size_gb", "etcd.volume.size_gb"),
    ("phase1.etcd_volume.encrypted", "etcd.volume.encrypted"),
    ("phase1.etcd_volume.kms_key", "etcd.volume.kms_key"),
];

/// What turnup itself does with a group, whatever makes its hosts; the rest is the module's.
const OF_NODES: [&str; 5] = ["name", "labels", "taints", "max_pods", "kube_reserved"];

/// The settings for a module.
#[derive(Clone, Debug, Default)]
pub struct ModuleSettings {
    /// The part of the variable `cluster` that settings of the first phase decide.
    pub cluster: Map<String, Value>,
    /// Settings whose value is not the default, each with the attribute that carries it.
    pub given: BTreeSet<(String, String)>,
}

impl ModuleSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings, name: &str) -> Result<Self> {
        let count = settings.get_number::<usize>("phase1.control_plane.count")?.max(1);
        let zones = settings.get_list("phase1.control_plane.zones")?;
        let member = |index: usize| {
            let zone = zones.iter().cycle().nth(index).cloned().unwrap_or_default();
            let member = ["a", "b", "c", "d", "e"].get(index).copied().unwrap_or("z");
            (format!("{name}-control-plane-{index}"), json!({"member": member, "zone": zone}))
        };
        let control_plane: Map<String, Value> = (0..count).map(member).collect();
        let records: Vec<Map<String, Value>> = settings.get_records("phase1.node_groups")?;
        let mut groups = Map::new();
        if records.is_empty() {
            let size: u32 = settings.get_number("phase1.num_nodes")?;
            groups.insert(WORKERS.to_owned(), json!({"role": "worker", "size": size}));
        }
        let given = find_given(settings, &records);
        for mut record in records {
            let own = record.remove("name").unwrap_or_default();
            groups.insert(own.as_str().unwrap_or_default().to_owned(), Value::Object(record));
        }
        let text = |setting: &str| settings.get(setting);
        let members: Vec<&Value> = control_plane.values().map(|host| &host["member"]).collect();
        let cluster = json!({
            "tags": settings.get_map("phase1.tags")?,
            "api": {
                "port": settings.get_number::<u16>("phase2.api_port")?,
                "health_port": HEALTH_PORT,
                "exposure": text("phase1.api.exposure")?,
                "host": text("phase1.api.host")?,
                "external": settings.get_bool("phase1.api.external")?,
                "allowed_cidrs": settings.get_list("phase1.api.allowed_cidrs")?,
                "static_address": text("phase1.api.static_address")?,
                "internal_load_balancer": settings.get_bool("phase1.api.internal_load_balancer")?,
            },
            "ssh": {
                "user": settings.ssh_user()?,
                "port": settings.get_number::<u16>("phase1.ssh.port")?,
                "allowed_cidrs": settings.get_list("phase1.ssh.allowed_cidrs")?,
                "bastion": text("phase1.ssh.bastion")? == "create",
            },
            "etcd": {
                "members": members,
                "volume": {
                    "size_gb": settings.get_number::<u32>("phase1.etcd_volume.size_gb")?,
                    "encrypted": settings.get_bool("phase1.etcd_volume.encrypted")?,
                    "kms_key": text("phase1.etcd_volume.kms_key")?,
                },
            },
            "deletion_protection": settings.get_bool("phase1.deletion_protection")?,
            "control_plane": control_plane,
            "groups": groups,
        });
        let cluster = if let Value::Object(cluster) = cluster { cluster } else { Map::new() };
        Ok(Self { cluster, given })
    }
}

fn find_given(settings: &Settings, groups: &[Map<String, Value>]) -> BTreeSet<(String, String)> {
    let differing = settings.minimal();
    let is_given = |setting: &str| differing.pointer(&format!("/{}", setting.replace('.', "/"))).is_some();
    let single = ATTRIBUTES.iter().filter(|(setting, _)| is_given(setting));
    let mut given: BTreeSet<(String, String)> =
        single.map(|(setting, attribute)| ((*setting).to_owned(), (*attribute).to_owned())).collect();
    let bastion = "phase1.ssh.bastion";
    if settings.get(bastion).is_ok_and(|bastion| bastion == "create") {
        given.insert((bastion.to_owned(), "ssh.bastion".to_owned()));
    }
    let fields = groups.iter().flat_map(Map::keys).filter(|field| !OF_NODES.contains(&field.as_str()));
    given.extend(fields.map(|field| ("phase1.node_groups".to_owned(), format!("groups[*].{field}"))));
    given
}
