//! The disks that hold the data of etcd, among Terraform's resources: which they are, what a plan
//! would take from them, and the error that says so before anything is applied. It reads plans; it
//! runs nothing and asks no cloud.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::change::Verb;
use crate::cloud::{CLOUDS, Cloud, VolumeSetting};
use crate::cluster::Cluster;
use crate::config::Settings;
use crate::error::{Error, Result};

/// What a module of one's own calls the resources that hold etcd's data, whatever their type.
const VOLUMES: &str = "etcd_volume";
/// What turnup's modules call them, of the types that are disks: other things are for etcd as well.
const OUR_VOLUMES: &str = ".etcd";
/// What providers call the size of a disk.
const SIZES: [&str; 3] = ["size", "disk_size_gb", "size_gb"];
/// How the user agrees to the loss: an option of `turnup up` and `turnup provision`.
const OPTION: &str = "--allow-volume-loss";

/// `google_compute_disk.etcd_volume["a-main"]` and the like, in any module.
pub(super) fn is_volume(address: &str) -> bool {
    let name = without_key(address);
    name.rsplit('.').next() == Some(VOLUMES) || is_ours(address)
}

/// Whether it is a disk of one of turnup's own modules: what its attributes come from is known.
fn is_ours(address: &str) -> bool {
    let name = without_key(address);
    let in_module = |module: &str| module.is_empty() || module.ends_with('.');
    let resource = name.strip_suffix(OUR_VOLUMES);
    let is_disk = |cloud: &&dyn Cloud| {
        resource.and_then(|name| name.strip_suffix(cloud.etcd_volume_type())).is_some_and(in_module)
    };
    CLOUDS.iter().any(is_disk)
}

/// A key may have dots and brackets of its own.
fn without_key(address: &str) -> &str {
    address.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')).map_or(address, |(start, _)| start)
}

/// Whether etcd may have written something already: before the second phase has started there is
/// nothing on its volumes.
pub fn hold_data(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.store.state()?.has_ended("bootstrap/"))
}

/// What becomes of the data on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VolumeFate {
    /// The volume is deleted.
    Deleted,
    /// Another, empty one comes in its place.
    Replaced,
    /// It would be made smaller, which no cloud does.
    Shrunk,
}

/// A volume that a plan takes away, or tries to make smaller.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DataLoss {
    address: String,
    fate: VolumeFate,
    /// Terraform made it halfway: there may be nothing on it.
    is_halfway: bool,
    /// Why, a few words each.
    because: Vec<String>,
    /// The settings behind it, each with the value that it had, where the plan tells.
    settings: BTreeMap<&'static str, Option<String>>,
}

impl DataLoss {
    /// From one of a plan's `resource_changes`; none when the data stays, or there was none.
    pub(super) fn find(resource: &Value, verb: Verb) -> Option<Self> {
        let address = resource["address"].as_str().filter(|address| is_volume(address))?;
        let change = &resource["change"];
        let because = shrinking(change);
        let fate = match verb {
            Verb::Delete => VolumeFate::Deleted,
            Verb::Replace => VolumeFate::Replaced,
            Verb::Update if !because.is_empty() => VolumeFate::Shrunk,
            _ => return None,
        };
        let reason = resource["action_reason"].as_str().unwrap_or_default();
        let mut loss = Self {
            address: address.to_owned(),
            fate,
            is_halfway: reason == "replace_because_tainted",
            because: Vec::new(),
            settings: BTreeMap::new(),
        };
        let forcing = if fate == VolumeFate::Replaced { forcing(change) } else { because };
        let kind = resource["type"].as_str().unwrap_or_default();
        for attribute in &forcing {
            let (before, after) = (shown(change, "before", attribute), shown(change, "after", attribute));
            loss.because.push(format!("{attribute} {before} -> {after}"));
            if let Some(behind) = setting_behind(kind, attribute).filter(|_| is_ours(address)) {
                loss.settings.insert(behind.setting, value_of(behind, &change["before"][attribute]));
            }
        }
        if loss.because.is_empty() {
            loss.because.push(in_words(reason).to_owned());
        }
        if reason == "delete_because_each_key" && is_ours(address) {
            loss.settings.insert("phase1.control_plane.count", None);
        }
        Some(loss)
    }

    /// A conspicuous line of the plan.
    pub(super) fn mark(&self) -> String {
        match self.fate {
            VolumeFate::Deleted | VolumeFate::Replaced => {
                format!("! the data of etcd on it is lost: refused without {OPTION}")
            }
            VolumeFate::Shrunk => "! no cloud makes a disk smaller: refused".to_owned(),
        }
    }

    fn describe(&self) -> String {
        let fate = match self.fate {
            VolumeFate::Deleted => "would be deleted",
            VolumeFate::Replaced => "would be replaced by an empty one",
            VolumeFate::Shrunk => "would be made smaller, which no cloud does",
        };
        format!("{} {fate}: {}", self.address, self.because.join(", "))
    }

    fn is_admitted(&self, lose: &BTreeSet<String>, hold_data: bool) -> bool {
        self.fate != VolumeFate::Shrunk && (lose.contains(&self.address) || self.is_halfway && !hold_data)
    }
}

/// Refuses a plan that takes data of etcd from a volume that is not named in `lose`. To be asked
/// before anything is applied.
pub(super) fn refuse_data_loss(losses: &[DataLoss], lose: &BTreeSet<String>, cluster: &Cluster) -> Result<()> {
    let hold_data = hold_data(cluster)?;
    let refused: Vec<&DataLoss> = losses.iter().filter(|loss| !loss.is_admitted(lose, hold_data)).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let what = if refused.iter().all(|loss| loss.fate == VolumeFate::Shrunk) {
        "volumes of etcd cannot be made smaller"
    } else {
        "the data of etcd would be lost"
    };
    let error = Error::precondition(format!("{what}; nothing was applied"));
    let error = refused.iter().fold(error, |error, loss| error.evidence(loss.describe()));
    Err(error.hint(way_out(&refused, read_applied(cluster).as_ref())))
}

/// What the cluster was turned up with, where that is known.
fn read_applied(cluster: &Cluster) -> Option<Settings> {
    Settings::load(&cluster.store.path(Settings::APPLIED), &cluster.source).ok()
}

/// Back to what it was; or, said for each volume, on.
fn way_out(refused: &[&DataLoss], applied: Option<&Settings>) -> String {
    let back = way_back(refused, applied);
    let to_name: Vec<String> = refused
        .iter()
        .filter(|loss| loss.fate != VolumeFate::Shrunk)
        .map(|loss| format!("{OPTION} {}", shell_words::quote(&loss.address)))
        .collect();
    if to_name.is_empty() {
        return back;
    }
    format!("{back}; or, if the data may go: turnup provision {}", to_name.join(" "))
}

/// The settings as they were: with the values that the plan tells, or those of the last complete
/// run.
fn way_back(refused: &[&DataLoss], applied: Option<&Settings>) -> String {
    let (mut known, mut unknown) = (BTreeMap::new(), BTreeSet::new());
    for (name, value) in refused.iter().flat_map(|loss| &loss.settings) {
        match value.clone().or_else(|| applied.and_then(|applied| applied.get(name).ok())) {
            Some(value) => drop(known.insert(*name, value)),
            None => drop(unknown.insert(*name)),
        }
    }
    unknown.retain(|name| !known.contains_key(name));
    let mut ways = Vec::new();
    if !known.is_empty() {
        let values = known.iter().map(|(name, value)| format!("{name}={}", shell_words::quote(value)));
        ways.push(format!("turnup config set {} (as it was)", values.collect::<Vec<_>>().join(" ")));
    }
    if !unknown.is_empty() {
        let names = unknown.into_iter().collect::<Vec<_>>().join(" or ");
        ways.push(format!("{}set {names} as it was", if known.is_empty() { "" } else { "and " }));
    }
    if ways.is_empty() {
        ways.push("set back what was changed in the configuration or in the module".to_owned());
    }
    ways.join("; ")
}

/// The attributes that cannot be changed without another resource.
fn forcing(change: &Value) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for path in change["replace_paths"].as_array().into_iter().flatten() {
        let Some(name) = path[0].as_str() else { continue };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The attributes by which it would become smaller.
fn shrinking(change: &Value) -> Vec<String> {
    let size = |of: &str, name: &str| change[of][name].as_f64();
    let smaller =
        |name: &&str| size("after", name).zip(size("before", name)).is_some_and(|(after, before)| after < before);
    SIZES.iter().filter(|name| smaller(name)).map(|name| (*name).to_owned()).collect()
}

/// A value for display; nothing of what is secret or not known yet.
fn shown(change: &Value, of: &str, name: &str) -> String {
    let holds = |marks: String| change[marks][name].as_bool() == Some(true);
    if holds(format!("{of}_sensitive")) {
        return "(sensitive)".into();
    }
    if of == "after" && holds("after_unknown".into()) {
        return "(known after apply)".into();
    }
    match &change[of][name] {
        Value::Null => "nothing".into(),
        value => value.to_string(),
    }
}

/// Settings behind attributes that disks of several clouds have.
const SHARED_SETTINGS: [VolumeSetting; 8] = [
    // Zones are of all hosts together.
    VolumeSetting::derived("zone", "phase1.control_plane.zones"),
    VolumeSetting::derived("availability_zone", "phase1.control_plane.zones"),
    VolumeSetting::same("size", "phase1.etcd_volume.size_gb"),
    VolumeSetting::same("disk_size_gb", "phase1.etcd_volume.size_gb"),
    VolumeSetting::same("encrypted", "phase1.etcd_volume.encrypted"),
    VolumeSetting::derived("disk_encryption_key", "phase1.etcd_volume.kms_key"),
    VolumeSetting::derived("kms_key_id", "phase1.etcd_volume.kms_key"),
    VolumeSetting::derived("disk_encryption_set_id", "phase1.etcd_volume.kms_key"),
];

/// The setting that an attribute of one of turnup's own disks comes from.
fn setting_behind(kind: &str, attribute: &str) -> Option<VolumeSetting> {
    let cloud = CLOUDS.iter().find(|cloud| cloud.etcd_volume_type() == kind);
    let own = cloud.map_or(&[][..], |cloud| cloud.etcd_volume_settings());
    SHARED_SETTINGS.iter().chain(own).find(|behind| behind.attribute == attribute).copied()
}

/// The value that a setting had, where the attribute is just that.
fn value_of(behind: VolumeSetting, before: &Value) -> Option<String> {
    match before {
        _ if !behind.same_value => None,
        Value::Bool(value) => Some(if *value { "y" } else { "n" }.to_owned()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) => Some(value.clone()),
        _ => None,
    }
}

/// Terraform's reason where no attribute is one.
fn in_words(reason: &str) -> &'static str {
    match reason {
        "replace_because_tainted" => "it was made halfway, or is marked as tainted",
        "replace_by_request" => "it was asked for by -replace",
        "replace_by_triggers" => "the module replaces it with something else (replace_triggered_by)",
        "delete_because_each_key" | "delete_because_count_index" | "delete_because_wrong_repetition" => {
            "the configuration asks for no such volume any more"
        }
        "delete_because_no_resource_config" | "delete_because_no_module" => "it is not in the module any more",
        _ => "Terraform does not say why",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_of_etcd_are_known_by_their_name_in_the_module() {
        for address in [
            "google_compute_disk.etcd[\"main-1\"]",
            "module.a.aws_ebs_volume.etcd[0]",
            "module.x[\"eu.west\"].aws_ebs_volume.etcd_volume[0]",
            "terraform_data.etcd_volume",
            "terraform_data.etcd_volume[\"with.dot\"]",
        ] {
            assert!(is_volume(address), "{address}");
        }
        for address in [
            "google_compute_disk.root",
            "google_compute_firewall.etcd[\"peers\"]",
            "etcd_volume.other",
            "terraform_data.host[\"etcd_volume\"]",
            "a.my_etcd_volume",
        ] {
            assert!(!is_volume(address), "{address}");
        }
    }

    fn told(losses: &[DataLoss]) -> String {
        let all: Vec<&DataLoss> = losses.iter().collect();
        let lines: Vec<String> = losses.iter().map(|loss| format!("{}\n  {}", loss.describe(), loss.mark())).collect();
        format!("{}\nnext: {}", lines.join("\n"), way_out(&all, None))
    }

    fn moved(address: &str, kind: &str, change: &Value, reason: &str) -> Value {
        json!({"address": address, "type": kind, "change": change, "action_reason": reason})
    }

    #[test]
    fn a_volume_that_goes_is_named_with_what_makes_it_go() {
        let disk = "google_compute_disk";
        let zone = json!({"before": {"zone": "a", "size": 20}, "after": {"zone": "b", "size": 20}, "replace_paths": [["zone"]]});
        let smaller = json!({"before": {"size": 40, "type": "pd-ssd"}, "after": {"size": 20, "type": "pd-balanced"}, "replace_paths": [["type"], ["size"]]});
        let key = json!({"before": {"kms": []}, "after": {}, "after_unknown": {"disk_encryption_key": true}, "replace_paths": [["disk_encryption_key", 0, "raw_key"]]});
        let gone = json!({"before": {"size": 20}, "after": null});
        let found = [
            DataLoss::find(
                &moved("google_compute_disk.etcd[\"main-a\"]", disk, &zone, "replace_because_cannot_update"),
                Verb::Replace,
            ),
            DataLoss::find(
                &moved("google_compute_disk.etcd[\"main-b\"]", disk, &smaller, "replace_because_cannot_update"),
                Verb::Replace,
            ),
            DataLoss::find(
                &moved("google_compute_disk.etcd[\"main-c\"]", disk, &key, "replace_because_cannot_update"),
                Verb::Replace,
            ),
            DataLoss::find(
                &moved("google_compute_disk.etcd[\"main-d\"]", disk, &gone, "delete_because_each_key"),
                Verb::Delete,
            ),
        ];
        insta::assert_snapshot!(told(&found.map(Option::unwrap)));
        // It is unknown what the attributes of a user's own module derive from.
        let own = DataLoss::find(
            &moved("module.x.openstack_volume.etcd_volume[0]", "openstack_volume", &zone, ""),
            Verb::Replace,
        );
        insta::assert_snapshot!(told(&[own.unwrap()]));
    }

    #[test]
    fn what_a_cloud_cannot_shrink_is_refused_and_nothing_admits_it() {
        let smaller = json!({"before": {"disk_size_gb": 40}, "after": {"disk_size_gb": 20}});
        let address = "azurerm_managed_disk.etcd[\"main-a\"]";
        let loss = DataLoss::find(&moved(address, "azurerm_managed_disk", &smaller, ""), Verb::Update).unwrap();
        insta::assert_snapshot!(told(std::slice::from_ref(&loss)));
        assert!(!loss.is_admitted(&BTreeSet::from([address.to_owned()]), false));
    }

    #[test]
    fn what_leaves_the_data_where_it_is_is_no_loss() {
        let larger = json!({"before": {"size": 20}, "after": {"size": 40}});
        let volume = "aws_ebs_volume.etcd[\"main-a\"]";
        assert_eq!(DataLoss::find(&moved(volume, "aws_ebs_volume", &larger, ""), Verb::Update), None);
        assert_eq!(
            DataLoss::find(&moved(volume, "aws_ebs_volume", &json!({"after": {"size": 20}}), ""), Verb::Create),
            None
        );
        let host = moved("aws_instance.host", "aws_instance", &json!({"replace_paths": [["ami"]]}), "");
        assert_eq!(DataLoss::find(&host, Verb::Replace), None);
    }

    #[test]
    fn the_user_names_each_volume_that_may_be_lost() {
        let gone = json!({"before": {"size": 20}, "after": null});
        let tainted = |reason| {
            DataLoss::find(&moved("aws_ebs_volume.etcd[\"main-a\"]", "aws_ebs_volume", &gone, reason), Verb::Replace)
                .unwrap()
        };
        let named = BTreeSet::from(["aws_ebs_volume.etcd[\"main-a\"]".to_owned()]);
        let other = BTreeSet::from(["aws_ebs_volume.etcd[\"main-b\"]".to_owned()]);
        assert!(tainted("replace_by_request").is_admitted(&named, true));
        assert!(!tainted("replace_by_request").is_admitted(&other, true));
        assert!(
            !tainted("replace_by_request").is_admitted(&BTreeSet::new(), false),
            "another turnup may have filled it"
        );
        // A disk whose creation failed is no reason to stop before there is a cluster.
        assert!(tainted("replace_because_tainted").is_admitted(&BTreeSet::new(), false));
        assert!(!tainted("replace_because_tainted").is_admitted(&BTreeSet::new(), true));
    }
}
