//! The Terraform modules of the clouds, with real Terraform and a provider that knows the real
//! one's schema and makes nothing: every configuration in `tests/terraform/<target>` is validated,
//! planned, applied, planned again, and destroyed.
//!
//! What an API would say is not known here: `make test-clouds` asks emulators through the real
//! providers.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use turnup::config::Settings;

use crate::cloud_support::{Module, data, profiles, settings, settings_with};

/// Every configuration of a target from nothing to nothing; returns what each inventory says.
pub(crate) fn live_through(target: &str, provider: &str) -> BTreeMap<String, Value> {
    let mut inventories = BTreeMap::new();
    for (name, config) in profiles(target) {
        let module = Module::with_stub(target, provider, &config);
        assert!(module.ok(&["fmt", "-check", "-diff"]).is_empty(), "{target} is not formatted");
        module.ok(&["validate"]);
        module.apply();
        assert_eq!(module.changes(), BTreeMap::new(), "{target} {name}: the second plan is not empty");
        let output: Value = serde_json::from_str(&module.ok(&["output", "-json"])).unwrap();
        let inventory = &output["inventory"]["value"];
        // A host that is reached through the bastion has no external address in the inventory.
        let is_reached_twice = |host: &Value| host["ssh"]["jump"].is_object() && host["external_address"].is_string();
        assert!(!inventory["hosts"].as_array().unwrap().iter().any(is_reached_twice), "{target} {name}: {inventory:#}");
        inventories.insert(name.clone(), inventory.clone());
        module.ok(&["destroy", "-auto-approve"]);
        let left: Value = serde_json::from_str(&module.ok(&["show", "-json"])).unwrap();
        assert!(left["values"]["root_module"]["resources"].is_null(), "{target} {name}: {left}");
    }
    inventories
}

#[test]
fn gce_in_every_profile() {
    let inventories = live_through("gce", "google");
    assert!(inventories.len() >= 8, "{:?}", inventories.keys());
    insta::assert_snapshot!("gce_inventories", format!("{:#}", serde_json::to_value(inventories).unwrap()));
}

#[test]
fn aws_in_every_profile() {
    let inventories = live_through("aws", "aws");
    assert!(inventories.len() >= 10, "{:?}", inventories.keys());
    insta::assert_snapshot!("aws_inventories", format!("{:#}", serde_json::to_value(inventories).unwrap()));
}

#[test]
fn a_change_on_gce_touches_what_it_is_about() {
    let config = &profiles("gce")["groups"];
    let module = Module::with_stub("gce", "google", config);
    module.apply();
    let change = |name: &str, value: &str| {
        let mut changed = settings(config);
        changed.set(name, value).unwrap();
        module.configure(&changed);
        module.changes()
    };
    let update = |address: &str| BTreeMap::from([(address.to_owned(), "[\"update\"]".to_owned())]);
    let scaled = change("phase1.node_groups", &resized(&settings(config), "web", 5));
    assert_eq!(scaled, update("google_compute_region_instance_group_manager.fixed[\"web\"]"));
    // The size is the autoscaler's.
    assert_eq!(change("phase1.node_groups", &resized(&settings(config), "batch", 7)), BTreeMap::new());
    assert_eq!(change("phase1.etcd_volume.size_gb", "40"), update("google_compute_disk.etcd[\"main-a\"]"));
}

/// One group with this size.
fn resized(settings: &Settings, group: &str, size: u32) -> String {
    let mut groups: Value = serde_json::from_str(&settings.get("phase1.node_groups").unwrap()).unwrap();
    let all = groups.as_array_mut().unwrap();
    let one = all.iter_mut().find(|one| one["name"] == group).unwrap();
    one["size"] = size.into();
    groups.to_string()
}

#[test]
fn a_change_on_aws_touches_what_it_is_about() {
    let config = &profiles("aws")["groups"];
    let module = Module::with_stub("aws", "aws", config);
    module.apply();
    let change = |name: &str, value: &str| {
        let mut changed = settings(config);
        changed.set(name, value).unwrap();
        module.configure(&changed);
    };
    let update = "[\"update\"]";

    change("phase1.node_groups", &resized(&settings(config), "web", 5));
    let scaled = BTreeMap::from([("aws_autoscaling_group.group[\"web\"]".to_owned(), update.to_owned())]);
    assert_eq!(module.changes(), scaled);

    // etcd's data is on this volume: it grows where it is, …
    change("phase1.etcd_volume.size_gb", "40");
    let grown = BTreeMap::from([("aws_ebs_volume.etcd[\"main-a\"]".to_owned(), update.to_owned())]);
    assert_eq!(module.changes(), grown);
    // … and what would need another, empty one is refused.
    for (name, value, said) in [
        ("phase1.aws.zones", "us-east-1b,us-east-1a,us-east-1c", "stays in its zone us-east-1a"),
        ("phase1.etcd_volume.encrypted", "n", "cannot change whether it is encrypted"),
        ("phase1.etcd_volume.kms_key", "arn:aws:kms:us-east-1:123456789012:key/k", "stays encrypted with"),
    ] {
        change(name, value);
        let (code, _, err) = module.run(&["plan", "-input=false", "-no-color"]);
        let words = err.replace(['\n', '│'], " ");
        assert!(code == 1 && words.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{name}: {err}");
    }

    // Tags are written on what is there: a host's template gets another version.
    change("phase1.tags", "team=another");
    let tagged = module.changes();
    assert!(tagged.values().all(|actions| actions == update), "{tagged:?}");

    // Another machine type is another version of the template of this group, and of no other.
    change(
        "phase1.node_groups",
        &settings(config).get("phase1.node_groups").unwrap().replace("g5.xlarge", "g6.xlarge"),
    );
    let template = BTreeMap::from([("aws_launch_template.group[\"own\"]".to_owned(), update.to_owned())]);
    assert_eq!(module.changes(), template);
}

/// What a plan says of one value of a resource.
fn planned_value(module: &Module, address: &str, pointer: &str) -> Value {
    let plan: Value = serde_json::from_str(&module.ok(&["show", "-json", "plan"])).unwrap();
    let mut resources = plan["planned_values"]["root_module"]["resources"].as_array().unwrap().iter();
    let resource = resources.find(|resource| resource["address"] == address).unwrap();
    resource["values"].pointer(pointer).cloned().unwrap_or_default()
}

/// Another token and another text are for machines that are made from then on: no cloud replaces
/// one by itself, and what comes in the place of one that ended is of the latest template.
#[test]
fn what_hosts_are_told_replaces_no_machine() {
    const TEXT: &str = "#cloud-config\n# @turnup:api@ @turnup:token@\n";
    let (update, replace) = ("[\"update\"]".to_owned(), "[\"create\",\"delete\"]".to_owned());
    let tell = |module: &Module, text: &str, token: &str| {
        let config = &profiles(module.target())["groups"];
        let spec = turnup::cloud::Spec::find(&settings(config)).unwrap().unwrap();
        module.tell_with(&spec, text, token);
    };
    let next = [(TEXT.to_owned(), "bbbbbb.0123456789abcdef"), (TEXT.replace('#', "##"), "bbbbbb.0123456789abcdef")];

    let module = Module::with_stub("aws", "aws", &profiles("aws")["groups"]);
    tell(&module, TEXT, "aaaaaa.0123456789abcdef");
    let template = "aws_launch_template.group[\"web\"]";
    assert!(module.changes().contains_key(template));
    let behavior = planned_value(&module, template, "/instance_initiated_shutdown_behavior");
    assert_eq!(behavior, json!("terminate"));
    let refresh = planned_value(&module, "aws_autoscaling_group.group[\"web\"]", "/instance_refresh/0");
    assert_eq!(refresh, Value::Null);
    module.apply();
    for (text, token) in &next {
        tell(&module, text, token);
        let changes = module.changes();
        let is_template = |address: &String| address.starts_with("aws_launch_template.");
        assert!(changes.contains_key(template), "{changes:?}");
        assert!(
            changes.iter().all(|(address, actions)| is_template(address) && *actions == update),
            "groups take the latest version: {changes:?}"
        );
        module.apply();
    }

    let rules = json!({"replace": {"google_compute_instance_template": ["metadata"]}});
    let module = Module::with_rules("gce", "google", &profiles("gce")["groups"], &rules);
    let (template, group) = (
        "google_compute_instance_template.group[\"web\"]",
        "google_compute_region_instance_group_manager.fixed[\"web\"]",
    );
    tell(&module, TEXT, "aaaaaa.0123456789abcdef");
    module.apply();
    for (text, token) in &next {
        tell(&module, text, token);
        let changes = module.changes();
        assert_eq!((&changes[template], &changes[group]), (&replace, &update));
        let repair = planned_value(&module, group, "/instance_lifecycle_policy/0/force_update_on_repair");
        assert_eq!(planned_value(&module, group, "/update_policy/0/type"), json!("OPPORTUNISTIC"));
        assert_eq!(repair, json!("YES"));
        module.apply();
        assert_eq!(module.changes(), BTreeMap::new());
    }

    let module = Module::with_stub("azure", "azurerm", &profiles("azure")["groups"]);
    tell(&module, TEXT, "aaaaaa.0123456789abcdef");
    module.apply();
    tell(&module, TEXT, "bbbbbb.0123456789abcdef");
    let changes = module.changes();
    let is_scale_set = |address: &String| address.contains("virtual_machine_scale_set.");
    assert!(
        !changes.is_empty() && changes.iter().all(|(address, actions)| is_scale_set(address) && *actions == update),
        "{changes:?}"
    );
}

#[test]
fn subnets_on_aws_use_free_address_blocks() {
    let config = &profiles("aws")["single"];
    let module = Module::with_stub("aws", "aws", config);
    let mut shared = settings(config);
    shared.set_all(&[("phase1.aws.vpc_id", "vpc-1"), ("phase1.aws.zones", "us-east-1a,us-east-1b")]).unwrap();
    module.configure(&shared);
    fs_err::create_dir(module.path("tests")).unwrap();
    fs_err::copy(data("aws/free_blocks.tftest.hcl"), module.path("tests/free_blocks.tftest.hcl")).unwrap();
    assert!(module.ok(&["test", "-no-color"]).contains("2 passed, 0 failed"));
}

/// What Terraform would do to what is protected, once it is not to be any more: `turnup down`
/// begins with that and nothing else.
#[test]
fn protection_can_be_lifted_by_itself() {
    for (target, provider, profile, protected, action) in [
        ("aws", "aws", "ha-private", &["aws_lb.api[\"inner\"]"][..], "[\"update\"]"),
        ("azure", "azurerm", "single", &["azurerm_management_lock.etcd[\"main-a\"]"], "[\"delete\"]"),
    ] {
        let config = &profiles(target)[profile];
        let module = Module::with_stub(target, provider, config);
        module.configure(&settings_with(config, &["phase1.deletion_protection=y"]));
        module.apply();
        module.configure(&settings_with(config, &["phase1.deletion_protection=n"]));
        let targets: Vec<String> = protected.iter().map(|address| format!("-target={address}")).collect();
        let mut options = vec!["-refresh=false"];
        options.extend(targets.iter().map(String::as_str));
        let wanted = protected.iter().map(|address| ((*address).to_owned(), action.to_owned())).collect();
        assert_eq!(module.changes_with(&options), wanted, "{target}");
    }
}
