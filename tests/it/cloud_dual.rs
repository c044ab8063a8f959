//! Hosts with IPv6 beside IPv4: what Terraform plans for each cloud's network, hosts and ingress
//! rules, and that nothing of it is there unasked.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cloud_support::{Module, profiles, provider, settings_with};

/// The plan of a profile, with the stub as the provider.
pub(crate) fn planned(target: &str, profile: &str) -> Vec<Value> {
    let module = Module::with_stub(target, provider(target), &profiles(target)[profile]);
    module.ok(&["plan", "-input=false", "-out=plan"]);
    let plan: Value = serde_json::from_str(&module.ok(&["show", "-json", "plan"])).unwrap();
    plan["planned_values"]["root_module"]["resources"].as_array().unwrap().clone()
}

pub(crate) fn address(resource: &Value) -> String {
    resource["address"].as_str().unwrap().to_owned()
}

/// The values of all resources of a type, by their addresses.
pub(crate) fn of_type<'r>(resources: &'r [Value], kind: &'r str) -> impl Iterator<Item = (String, &'r Value)> {
    resources.iter().filter(move |one| one["type"] == kind).map(|one| (address(one), &one["values"]))
}

/// Every text in a value.
pub(crate) fn texts(value: &Value) -> BTreeSet<&str> {
    match value {
        Value::String(text) => [text.as_str()].into(),
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => BTreeSet::new(),
    }
}

/// The texts of one field, in one line.
fn words(value: &Value) -> String {
    texts(value).into_iter().collect::<Vec<_>>().join(" ")
}

/// The IPv6 parts of a value: addresses, words for it, and fields of it that are set.
fn of_ipv6(value: &Value) -> Vec<String> {
    let told = |text: &str| text.contains("::") && !text.starts_with("arn:") || text.to_lowercase().contains("ipv6");
    match value {
        Value::String(text) => {
            if told(text) && !text.contains("cloud-config") {
                vec![text.clone()]
            } else {
                Vec::new()
            }
        }
        Value::Array(items) => items.iter().flat_map(of_ipv6).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let is_set = !matches!(value, Value::Null | Value::Bool(false) | Value::Array(_) | Value::Object(_))
                    && *value != 0;
                let own = (name.contains("ipv6") && is_set).then(|| format!("{name} {value}"));
                own.into_iter().chain(of_ipv6(value)).collect::<Vec<_>>()
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn ipv6_is_absent_by_default() {
    for target in ["gce", "aws", "azure"] {
        for resource in planned(target, "ha-private") {
            assert_eq!(of_ipv6(&resource["values"]), Vec::<String>::new(), "{target} {}", address(&resource));
        }
    }
}

#[test]
fn google_has_both_families_apart() {
    let mut told = Vec::new();
    for profile in ["dual-stack", "dual-stack-private"] {
        let resources = planned("gce", profile);
        for (name, rule) in of_type(&resources, "google_compute_firewall") {
            let ranges = texts(&rule["source_ranges"]);
            let of_ipv6 = ranges.iter().filter(|range| range.contains(':')).count();
            assert!(
                of_ipv6 == 0 || of_ipv6 == ranges.len(),
                "Google refuses a rule with both families: {name} {ranges:?}"
            );
            assert!(!ranges.contains("::/0"), "IPv6 from anywhere was not configured: {name}");
            let protocols: Vec<&str> =
                rule["allow"].as_array().unwrap().iter().filter_map(|allow| allow["protocol"].as_str()).collect();
            if of_ipv6 > 0 || protocols.contains(&"58") {
                told.push(format!(
                    "{profile} {name}: {} to {}: {protocols:?}",
                    words(&rule["source_ranges"]),
                    words(&rule["target_tags"])
                ));
            }
        }
        for (name, network) in of_type(&resources, "google_compute_network") {
            told.push(format!("{profile} {name}: inner IPv6 {}", network["enable_ula_internal_ipv6"]));
        }
        for (name, subnetwork) in of_type(&resources, "google_compute_subnetwork") {
            told.push(format!("{profile} {name}: {} {}", subnetwork["stack_type"], subnetwork["ipv6_access_type"]));
        }
        for (name, template) in of_type(&resources, "google_compute_instance_template") {
            let interface = &template["network_interface"][0];
            let public = interface["ipv6_access_config"].as_array().is_some_and(|list| !list.is_empty());
            told.push(format!("{profile} {name}: {} public by IPv6: {public}", interface["stack_type"]));
        }
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn aws_gives_private_hosts_egress_only() {
    let mut told = Vec::new();
    for profile in ["dual-stack", "dual-stack-private"] {
        let resources = planned("aws", profile);
        for (name, rule) in of_type(&resources, "aws_vpc_security_group_ingress_rule") {
            if rule["cidr_ipv6"].is_string() || rule["ip_protocol"] == "icmpv6" {
                assert!(rule["cidr_ipv6"] != "::/0" && rule["cidr_ipv4"].is_null(), "{name}: {rule}");
                told.push(format!("{profile} {name}: {}", rule["cidr_ipv6"]));
            }
        }
        for (name, route) in of_type(&resources, "aws_route") {
            if let Some(to) = route["destination_ipv6_cidr_block"].as_str() {
                // The gateway's identifier is not known yet: its field is not among the values
                // then.
                let fields = ["gateway_id", "egress_only_gateway_id"];
                let by: Vec<&str> = fields.into_iter().filter(|field| route.get(*field).is_none()).collect();
                told.push(format!("{profile} {name}: {to} by {by:?}"));
            }
        }
        for (name, vpc) in of_type(&resources, "aws_vpc") {
            told.push(format!("{profile} {name}: {}", vpc["assign_generated_ipv6_cidr_block"]));
        }
        for (name, subnet) in of_type(&resources, "aws_subnet") {
            assert!(subnet["assign_ipv6_address_on_creation"] != true, "hosts and groups say so, not subnets: {name}");
        }
        for (name, _) in of_type(&resources, "aws_egress_only_internet_gateway") {
            told.push(format!("{profile} {name}"));
        }
        for (name, interface) in of_type(&resources, "aws_network_interface") {
            told.push(format!("{profile} {name}: {}", interface["ipv6_address_count"]));
        }
        for (name, template) in of_type(&resources, "aws_launch_template") {
            let count = &template["network_interfaces"][0]["ipv6_address_count"];
            told.push(format!("{profile} {name}: {count}"));
        }
        for (name, rule) in of_type(&resources, "aws_vpc_security_group_egress_rule") {
            told.push(format!("{profile} {name}: {} {}", rule["cidr_ipv4"], rule["cidr_ipv6"]));
        }
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn azure_knows_hosts_by_their_ipv6_addresses() {
    let mut told = Vec::new();
    for profile in ["dual-stack", "dual-stack-private"] {
        let resources = planned("azure", profile);
        for (name, network) in of_type(&resources, "azurerm_virtual_network") {
            told.push(format!("{profile} {name}: {}", words(&network["address_space"])));
        }
        for (name, subnet) in of_type(&resources, "azurerm_subnet") {
            told.push(format!("{profile} {name}: {}", words(&subnet["address_prefixes"])));
        }
        for (name, address) in of_type(&resources, "azurerm_public_ip") {
            told.push(format!("{profile} {name}: {}", address["ip_version"]));
        }
        for (name, rule) in of_type(&resources, "azurerm_network_security_rule") {
            let sources = texts(&rule["source_address_prefixes"]);
            let of_ipv6 = sources.iter().filter(|source| source.contains(':')).count();
            assert!(
                of_ipv6 == 0 || of_ipv6 == sources.len(),
                "Azure refuses a rule with both families: {name} {sources:?}"
            );
            assert!(!sources.contains("::/0"), "IPv6 from anywhere was not configured: {name}");
            if of_ipv6 > 0 {
                let to = words(&rule["destination_address_prefixes"]);
                told.push(format!("{profile} {name}: {} to {to}", words(&rule["source_address_prefixes"])));
            }
        }
        let versions = |list: &Value, field: &str| {
            let all = list.as_array().into_iter().flatten();
            all.map(|one| format!("{} {}", one[field], words(&one["private_ip_address"])))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (name, interface) in of_type(&resources, "azurerm_network_interface") {
            let all = versions(&interface["ip_configuration"], "private_ip_address_version");
            told.push(format!("{profile} {name}: {all}"));
        }
        for kind in ["azurerm_linux_virtual_machine_scale_set", "azurerm_orchestrated_virtual_machine_scale_set"] {
            for (name, set) in of_type(&resources, kind) {
                let configurations = &set["network_interface"][0]["ip_configuration"];
                let public = words(&configurations[1]["public_ip_address"]);
                told.push(format!("{profile} {name}: {} public: {public}", versions(configurations, "version")));
            }
        }
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_network_that_exists_must_have_ipv6_itself() {
    for (target, provider, more) in
        [("gce", "google", &[][..]), ("azure", "azurerm", &["phase1.azure.ipv6_cidr=fd5a:2f19:7c03:1::/64"])]
    {
        let config = &profiles(target)["existing-network"];
        let module = Module::with_stub(target, provider, config);
        module.configure(&settings_with(config, &[&["phase1.network.ipv6=y"][..], more].concat()));
        let (code, _, err) = module.run(&["plan", "-input=false", "-no-color"]);
        assert!(code == 1 && err.contains("has no IPv6 addresses"), "{target}: {err}");
    }
}

/// Every subnet in which something gets an address is looked at, the bastion's too.
#[test]
fn subnets_of_amazon_that_exist_are_asked_for_ipv6() {
    let config = &profiles("aws")["existing-network"];
    let module = Module::with_stub("aws", "aws", config);
    module.configure(&settings_with(config, &["phase1.network.ipv6=y"]));
    let changes = module.changes();
    let made = ["aws_egress_only_internet_gateway", "aws_route.", "aws_subnet.", "aws_vpc."];
    let strange: Vec<&String> =
        changes.keys().filter(|address| made.iter().any(|start| address.starts_with(start))).collect();
    assert!(strange.is_empty(), "the network is its owner's: {strange:?}");
    let plan: Value = serde_json::from_str(&module.ok(&["show", "-json", "plan"])).unwrap();
    let looked_at = plan["prior_state"]["values"]["root_module"]["resources"].as_array().unwrap();
    let subnets: Vec<&str> =
        of_type(looked_at, "aws_subnet").map(|(_, subnet)| subnet["id"].as_str().unwrap()).collect();
    assert_eq!(subnets, ["subnet-0ddd", "subnet-0aaa", "subnet-0bbb", "subnet-0ccc"]);
}
