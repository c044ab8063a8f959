//! The Terraform modules of the clouds, with real Terraform and a provider that knows the real
//! one's schema and makes nothing: every configuration in `tests/terraform/<target>` is validated,
//! planned, applied, planned again, and destroyed.
//!
//! What an API would say is not known here: `make test-clouds` asks emulators through the real
//! providers.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use turnup::config::Settings;

use crate::cloud_support::{Module, data, profiles, provider, settings, settings_with};

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

/// The texts of a value, also those that are packed in base64.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let unpacked = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            found.extend([text.clone()].into_iter().chain(unpacked));
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}

/// Whatever leads clients there: the addresses are those of the inventory, and no load balancer and
/// no name is told to a host.
#[test]
fn hosts_of_several_api_servers_are_told_each_of_them() {
    const TEXT: &str = "#cloud-config\n# servers: @turnup:api-servers@\n";
    for target in ["gce", "aws", "azure"] {
        let config = &profiles(target)["groups"];
        let (outer, alone) = ("phase1.api.exposure=load-balancer", "phase1.api.internal_load_balancer=n");
        let cases = [
            (vec!["phase1.control_plane.count=3", outer, "phase1.api.static_address="], true, true),
            (vec!["phase1.control_plane.count=3", outer, alone, "phase1.api.static_address="], true, false),
            (vec!["phase1.control_plane.count=1"], false, true),
        ];
        for (changes, several, has_inner) in cases {
            let settings = settings_with(config, &changes);
            let spec = turnup::cloud::Spec::find(&settings).unwrap().unwrap();
            let module = Module::with_stub(target, provider(target), config);
            module.configure(&settings);
            module.tell(&spec, TEXT);
            module.apply();
            let output: Value = serde_json::from_str(&module.ok(&["output", "-json"])).unwrap();
            let inventory = &output["inventory"]["value"];
            let api = &inventory["api"];
            let told = (api["node_balancer"] == true, api["internal_host"].is_string());
            assert_eq!(told, (several, has_inner), "{target}: {inventory:#}");
            let hosts = inventory["hosts"].as_array().unwrap().iter();
            let server = |host: &Value| {
                let text = |name: &str| host[name].as_str().unwrap().to_owned();
                format!("{}={}:6443", text("name"), text("address"))
            };
            let line = format!("# servers: {}\n", hosts.map(server).collect::<Vec<_>>().join(","));
            let mut all = Vec::new();
            let resources = module.resources();
            let groups = resources.iter().filter(|resource| resource["address"].as_str().unwrap().contains("\"web\""));
            groups.for_each(|resource| texts(&resource["values"], &mut all));
            assert!(all.iter().any(|text| text.contains(&line)), "{target}: {line} is not in {all:#?}");
            let health = resources.iter().any(|resource| is_open_to_hosts(&resource["values"], 3990));
            assert_eq!(health, several, "{target}: balancers of nodes ask for the health of several API servers");
        }
    }
}

/// Whether a rule of a cloud's firewall lets the cluster's hosts, known by their role, come to the
/// port.
fn is_open_to_hosts(rule: &Value, port: u16) -> bool {
    let text = port.to_string();
    let has = |list: &Value| list.as_array().into_iter().flatten().any(|one| one.as_str() == Some(&text));
    let gce =
        rule["source_tags"].is_array() && rule["allow"].as_array().into_iter().flatten().any(|one| has(&one["ports"]));
    let aws = rule["from_port"] == port && rule["description"].as_str().is_some_and(|why| why.contains("of nodes"));
    let azure = rule["source_application_security_group_ids"].is_array() && has(&rule["destination_port_ranges"]);
    gce || aws || azure
}
