//! The module for Azure with real Terraform and a provider that makes nothing: every profile from
//! nothing to nothing, and what may never happen when something changes.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use turnup::cloud::Spec;

use crate::cloud_modules::live_through;
use crate::cloud_support::{Module, profiles, settings};

/// An applied profile, and its settings for changes.
fn standing(profile: &str) -> (Module, turnup::config::Settings) {
    let config = &profiles("azure")[profile];
    let module = Module::with_stub("azure", "azurerm", config);
    module.apply();
    (module, settings(config))
}

fn output(module: &Module, name: &str) -> Value {
    let all: Value = serde_json::from_str(&module.ok(&["output", "-json"])).unwrap();
    all[name]["value"].clone()
}

fn updates<'a>(addresses: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    addresses.into_iter().map(|address| (address.to_owned(), "[\"update\"]".to_owned())).collect()
}

#[test]
fn azure_in_every_profile() {
    let inventories = live_through("azure", "azurerm");
    assert_eq!(inventories.len(), 13, "{:?}", inventories.keys());
    insta::assert_snapshot!("azure_inventories", format!("{:#}", serde_json::to_value(inventories).unwrap()));
}

#[test]
fn scaling_a_group_touches_nothing_else() {
    let (module, mut settings) = standing("groups");
    let groups = settings.get("phase1.node_groups").unwrap();
    let more = groups.replace(r#""size":3"#, r#""size":5"#).replace(r#""size": 3"#, r#""size": 5"#);
    assert_ne!(more, groups);
    settings.set("phase1.node_groups", &more).unwrap();
    module.configure(&settings);
    assert_eq!(module.changes(), updates(["azurerm_orchestrated_virtual_machine_scale_set.public_fixed[\"web\"]"]));
}

/// Recreating three machines at once would lose etcd's quorum.
#[test]
fn a_new_template_waits_until_a_control_plane_host_is_replaced() {
    let (module, mut settings) = standing("ha-private");
    assert_eq!(output(&module, "outdated"), Value::Array(Vec::new()));
    settings.set("phase1.azure.master_vm_size", "Standard_E4s_v5").unwrap();
    module.configure(&settings);
    assert_eq!(module.changes(), BTreeMap::new());
    module.apply();
    let names = ["prod-control-plane-0", "prod-control-plane-1", "prod-control-plane-2"];
    assert_eq!(output(&module, "outdated"), serde_json::json!(names));

    let host = "azurerm_linux_virtual_machine.control_plane[\"prod-control-plane-1\"]";
    let before = output(&module, "inventory");
    module.ok(&["apply", "-input=false", "-auto-approve", &format!("-replace={host}")]);
    assert_eq!(output(&module, "outdated"), serde_json::json!([names[0], names[2]]));
    let after = output(&module, "inventory");
    let instance = |inventory: &Value, index: usize| inventory["hosts"][index]["instance"].clone();
    assert_ne!(instance(&before, 1), instance(&after, 1));
    assert_eq!(instance(&before, 0), instance(&after, 0));
    assert_eq!(before["hosts"][1]["address"], after["hosts"][1]["address"]);
    assert_eq!(before["volumes"], after["volumes"]);
}

/// With its identity on the volume, a machine in the place of another one is the same host.
#[test]
fn each_control_plane_machine_is_told_of_its_own_volume() {
    let config = &profiles("azure")["ha-private"];
    let module = Module::with_stub("azure", "azurerm", config);
    let spec = Spec::find(&settings(config)).unwrap().unwrap();
    module.tell(&spec, "@turnup:volume@");
    module.apply();
    let resources = module.resources();
    let named = |kind: &'static str| resources.iter().filter(move |one| one["type"] == kind).map(|one| &one["values"]);
    let ids: BTreeMap<&str, &str> = named("azurerm_managed_disk")
        .map(|disk| (disk["name"].as_str().unwrap(), disk["id"].as_str().unwrap()))
        .collect();
    let machines: Vec<_> = named("azurerm_linux_virtual_machine").filter(|one| !one["custom_data"].is_null()).collect();
    for (machine, member) in machines.iter().zip(["a", "b", "c"]) {
        let told = STANDARD.decode(machine["custom_data"].as_str().unwrap()).unwrap();
        let disk = format!("prod-etcd-main-{member}");
        assert_eq!(String::from_utf8(told).unwrap(), format!("{},{disk}", ids[disk.as_str()]));
    }
    assert_eq!(machines.len(), 3);

    let instance = || output(&module, "inventory")["hosts"][1]["instance"].clone();
    let before = instance();
    let host = "azurerm_linux_virtual_machine.control_plane[\"prod-control-plane-1\"]";
    module.ok(&["apply", "-input=false", "-auto-approve", &format!("-replace={host}")]);
    assert_eq!(instance(), before);
}

/// The join token changes with every `turnup up`; a new one does not recreate a host, and no plan
/// shows it.
#[test]
fn new_user_data_is_for_new_hosts() {
    let config = &profiles("azure")["groups"];
    let module = Module::with_stub("azure", "azurerm", config);
    let spec = Spec::find(&settings(config)).unwrap().unwrap();
    module.tell(&spec, "#cloud-config\n# the first");
    module.apply();
    assert_eq!(module.changes(), BTreeMap::new());
    module.tell(&spec, "#cloud-config\n# the second");
    let sets = [
        "linux_virtual_machine_scale_set.fixed[\"arm\"]",
        "linux_virtual_machine_scale_set.fixed[\"gpu\"]",
        "linux_virtual_machine_scale_set.scaling[\"batch\"]",
        "orchestrated_virtual_machine_scale_set.public_fixed[\"web\"]",
    ];
    let sets = sets.map(|set| format!("azurerm_{set}"));
    assert_eq!(module.changes(), updates(sets.iter().map(String::as_str)));
    let shown = module.ok(&["show", "-no-color", "plan"]);
    assert!(!shown.contains("I2Nsb3VkLWNvbmZpZw") && shown.contains("(sensitive value)"), "{shown}");
    module.apply();
    assert_eq!(output(&module, "outdated"), serde_json::json!(["pools-control-plane-0"]));
}

/// A volume in another zone would be an empty one.
#[test]
fn a_control_plane_host_cannot_leave_the_zone_of_its_volume() {
    let (module, mut settings) = standing("hundred-nodes");
    settings.set("phase1.control_plane.zones", "2,1,3").unwrap();
    module.configure(&settings);
    let (code, _, error) = module.run(&["plan", "-input=false", "-no-color"]);
    assert_eq!(code, 1);
    assert!(error.contains("give the host its old zone"), "{error}");
    assert!(!error.contains("must be replaced"), "{error}");
}

/// SSH from outside is open to the bastion only, and etcd is not reachable from outside.
#[test]
fn security_rules_are_those_that_were_configured() {
    let (module, _) = standing("ha-private");
    let resources = module.resources();
    let rules = resources.iter().filter(|resource| resource["type"] == "azurerm_network_security_rule");
    let lines: Vec<String> = rules
        .map(|rule| {
            let value = &rule["values"];
            let named = |of: &str| {
                let ids = value[of].as_array().into_iter().flatten();
                let owner = |id: &Value| {
                    let groups = resources.iter().filter(|one| one["type"] == "azurerm_application_security_group");
                    let name = |one: &Value| one["values"]["name"].as_str().unwrap().to_owned();
                    groups.filter(|one| one["values"]["id"] == *id).map(name).collect::<Vec<_>>().join("?")
                };
                ids.map(owner).collect::<Vec<_>>().join(" ")
            };
            let list = |of: &str| {
                let texts = value[of].as_array().into_iter().flatten().filter_map(Value::as_str);
                texts.chain(value[of].as_str()).collect::<Vec<_>>().join(" ")
            };
            let from = [
                list("source_address_prefix"),
                list("source_address_prefixes"),
                named("source_application_security_group_ids"),
            ];
            let to = [list("destination_address_prefix"), named("destination_application_security_group_ids")];
            let ports = [list("destination_port_range"), list("destination_port_ranges")];
            format!(
                "{:>4} {} {} {} from {} to {} port {}",
                value["priority"],
                value["access"].as_str().unwrap(),
                value["name"].as_str().unwrap(),
                value["protocol"].as_str().unwrap(),
                from.concat(),
                to.concat(),
                ports.concat()
            )
        })
        .collect();
    let mut sorted = lines;
    sorted.sort();
    insta::assert_snapshot!("azure_doors", sorted.join("\n"));
}
