//! What the clouds' modules promise about the volumes of etcd, the ingress rules of the hosts,
//! their rights and the API server's name, with real Terraform and a provider that makes nothing.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cloud_dual::{address, of_type, planned, texts};
use crate::cloud_support::{Module, profiles, provider, settings_with};

/// All resources of an applied profile.
fn made(target: &str, profile: &str) -> Vec<Value> {
    let module = Module::with_stub(target, provider(target), &profiles(target)[profile]);
    module.apply();
    module.resources()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn sorted(mut lines: Vec<String>) -> String {
    lines.sort();
    lines.join("\n")
}

/// turnup, kops and operators identify volumes and their cluster by these tags.
#[test]
fn volumes_of_etcd_say_what_they_are() {
    let mut told = Vec::new();
    for (target, kind, field) in [
        ("gce", "google_compute_disk", "labels"),
        ("aws", "aws_ebs_volume", "tags"),
        ("azure", "azurerm_managed_disk", "tags"),
    ] {
        for profile in ["single", "ha-private"] {
            let resources = planned(target, profile);
            for (name, volume) in of_type(&resources, kind) {
                told.push(format!("{target} {profile} {name} {}", text(&volume["name"])));
                let labels = volume[field].as_object().unwrap().iter();
                told.extend(labels.map(|(key, value)| format!("    {key} = {}", text(value))));
            }
        }
    }
    insta::assert_snapshot!(told.join("\n"));
}

/// Source, destination, protocol, and the first and last port.
struct IngressRule {
    from: String,
    to: String,
    protocol: String,
    ports: (u64, u64),
}

impl IngressRule {
    fn leads_to(&self, protocol: &str, first: u64, last: u64) -> bool {
        ([protocol, "all", "-1"].contains(&self.protocol.as_str())) && self.ports.0 <= last && first <= self.ports.1
    }

    fn line(&self) -> String {
        format!("to {} from {}: {} {}-{}", self.to, self.from, self.protocol, self.ports.0, self.ports.1)
    }
}

fn ports(range: &str) -> (u64, u64) {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    (first.parse().unwrap(), last.parse().unwrap())
}

fn ingress_rules_of_google(resources: &[Value]) -> Vec<IngressRule> {
    let mut ingress_rules = Vec::new();
    for (_, rule) in of_type(resources, "google_compute_firewall") {
        for allow in rule["allow"].as_array().unwrap() {
            let ranges = allow["ports"].as_array().filter(|ports| !ports.is_empty());
            let ranges = ranges.map_or(vec![(0, 65535)], |all| all.iter().map(|range| ports(text(range))).collect());
            for (from, to) in [&rule["source_tags"], &rule["source_ranges"]]
                .into_iter()
                .flat_map(texts)
                .flat_map(|from| texts(&rule["target_tags"]).into_iter().map(move |to| (from, to)))
            {
                let ingress_rule = |ports| IngressRule {
                    from: from.into(),
                    to: to.into(),
                    protocol: text(&allow["protocol"]).into(),
                    ports,
                };
                ingress_rules.extend(ranges.iter().copied().map(ingress_rule));
            }
        }
    }
    ingress_rules
}

fn ingress_rules_of_amazon(resources: &[Value]) -> Vec<IngressRule> {
    let group = |id: &Value| {
        let mut groups = of_type(resources, "aws_security_group").filter(|(_, group)| group["id"] == *id);
        groups.next().map_or_else(|| text(id).to_owned(), |(_, group)| text(&group["name"]).to_owned())
    };
    let ingress_rule = |rule: &Value| IngressRule {
        from: [text(&rule["cidr_ipv4"]), text(&rule["cidr_ipv6"]), &group(&rule["referenced_security_group_id"])]
            .concat(),
        to: group(&rule["security_group_id"]),
        protocol: text(&rule["ip_protocol"]).to_owned(),
        // ICMP has types in place of ports.
        ports: (rule["from_port"].as_u64().unwrap_or(0), rule["to_port"].as_u64().unwrap_or(65535)),
    };
    of_type(resources, "aws_vpc_security_group_ingress_rule").map(|(_, rule)| ingress_rule(rule)).collect()
}

/// SSH from outside is open to the bastion only, the API server to the configured sources, and etcd
/// to the control plane only.
#[test]
fn ingress_rules_are_those_that_were_asked_for() {
    for (target, read) in
        [("gce", ingress_rules_of_google as fn(&[Value]) -> Vec<IngressRule>), ("aws", ingress_rules_of_amazon)]
    {
        for (profile, cluster) in [("ha-private", "prod"), ("single", "one")] {
            let ingress_rules = read(&made(target, profile));
            let control_plane = format!("{cluster}-control-plane");
            for ingress_rule in &ingress_rules {
                let to_etcd = ingress_rule.to == control_plane && ingress_rule.leads_to("tcp", 2379, 2382);
                assert!(!to_etcd || ingress_rule.from == control_plane, "{target} {profile}: {}", ingress_rule.line());
                let from_outside = ingress_rule.from.contains('/') && ingress_rule.leads_to("tcp", 22, 22);
                let pods = ingress_rule.from == "10.244.0.0/16";
                let is_asked_for = if profile == "single" { "0.0.0.0/0" } else { "203.0.113.0/24" };
                let fine = pods
                    || ingress_rule.from == is_asked_for && (profile == "single" || ingress_rule.to == "prod-bastion");
                assert!(!from_outside || fine, "{target} {profile}: {}", ingress_rule.line());
            }
            insta::assert_snapshot!(
                format!("ingress_rules_{target}_{profile}"),
                sorted(ingress_rules.iter().map(IngressRule::line).collect())
            );
        }
    }
}

/// Hosts without and with public addresses.
#[test]
fn an_api_server_without_a_way_in_from_outside_answers_the_hosts_network() {
    let probes = ["130.211.0.0/22", "209.85.152.0/22", "209.85.204.0/22", "35.191.0.0/16"];
    for (profile, cluster, checks) in [("inner-only", "inner", &probes[..]), ("dns-own", "own", &[][..])] {
        let (host, node) = (format!("{cluster}-control-plane"), format!("{cluster}-node"));
        let ingress_rules = ingress_rules_of_google(&made("gce", profile));
        let from = |port: u64| -> BTreeSet<&str> {
            let ingress_rules = ingress_rules
                .iter()
                .filter(|ingress_rule| ingress_rule.to == host && ingress_rule.leads_to("tcp", port, port));
            ingress_rules.map(|ingress_rule| ingress_rule.from.as_str()).collect()
        };
        assert_eq!(from(6443), BTreeSet::from(["10.118.0.0/20", &host, &node]), "{profile}");
        let balancers = [host.as_str(), &node];
        let asking = checks.iter().copied().chain(balancers).collect();
        assert_eq!(from(3990), asking, "the load balancer's health checks, and balancers of nodes: {profile}");
    }
}

/// Values that the stub generated, by the name of their resource.
fn named(resources: &[Value], told: &str) -> String {
    let mut told = told.to_owned();
    // What one resource refers to is another one's.
    for resource in resources.iter().filter(|one| one["type"] != "azurerm_role_assignment") {
        for (field, value) in resource["values"].as_object().unwrap() {
            if text(value).starts_with("stub-") && !["etag", "region"].contains(&field.as_str()) {
                told = told.replace(text(value), &format!("({}.{field})", address(resource).replace('"', "'")));
            }
        }
    }
    told
}

fn rights(target: &str, profile: &str, kinds: &[&str], fields: &[&str]) -> String {
    let resources = made(target, profile);
    let mut told = vec![format!("# {target} {profile}")];
    for (name, values) in kinds.iter().flat_map(|kind| of_type(&resources, kind)) {
        told.push(name);
        for field in fields {
            let value = &values[*field];
            let parsed = serde_json::from_str::<Value>(text(value)).unwrap_or_else(|_| value.clone());
            let empty = parsed.is_null() || parsed.as_array().is_some_and(Vec::is_empty);
            told.extend((!empty).then(|| format!("  {field}: {parsed:#}")));
        }
    }
    told.push(String::new());
    named(&resources, &told.join("\n"))
}

/// Any additional permission has to be added here on purpose.
#[test]
fn hosts_may_do_what_is_written_here_and_nothing_else() {
    let google = [
        "google_project_iam_custom_role",
        "google_project_iam_member",
        "google_service_account_iam_member",
        "google_dns_managed_zone_iam_member",
    ];
    let of_google = ["permissions", "role", "member", "service_account_id", "condition"];
    let told = ["ha-private", "dns", "existing-network", "names", "volumes"]
        .map(|profile| rights("gce", profile, &google, &of_google));
    insta::assert_snapshot!("rights_gce", told.join("\n"));

    let amazon = ["aws_iam_role", "aws_iam_role_policy", "aws_iam_role_policy_attachment"];
    let of_amazon = ["assume_role_policy", "permissions_boundary", "role", "policy", "policy_arn"];
    let told = ["ha-private", "ha-strict", "groups", "dns", "names", "volumes"]
        .map(|profile| rights("aws", profile, &amazon, &of_amazon));
    insta::assert_snapshot!("rights_aws", told.join("\n"));

    let azure = ["azurerm_role_definition", "azurerm_role_assignment"];
    let of_azure = ["scope", "assignable_scopes", "permissions", "role_definition_id", "principal_id"];
    let told = ["ha-private", "dns", "dns-private", "names"].map(|profile| rights("azure", profile, &azure, &of_azure));
    insta::assert_snapshot!("rights_azure", told.join("\n"));
}

/// The name resolves to all control-plane hosts, or to the load balancer if there is one.
#[test]
fn the_record_of_the_api_server_follows_the_control_plane() {
    for (target, record, field) in [
        ("gce", "google_dns_record_set.api[0]", "rrdatas"),
        ("aws", "aws_route53_record.api[0]", "records"),
        ("azure", "azurerm_dns_a_record.api[0]", "records"),
    ] {
        let config = &profiles(target)["dns"];
        let module = Module::with_stub(target, provider(target), config);
        let be = |count: &str, exposure: &str| {
            let values = [format!("phase1.control_plane.count={count}"), format!("phase1.api.exposure={exposure}")];
            module.configure(&settings_with(config, &[&values[0], &values[1]]));
        };
        let follows = |hosts: usize| {
            let resources = module.resources();
            let one = resources.iter().find(|one| one["address"] == record).unwrap();
            let output: Value = serde_json::from_str(&module.ok(&["output", "-json", "inventory"])).unwrap();
            let outside = output["hosts"].as_array().unwrap().iter().map(|host| text(&host["external_address"]));
            let outside: BTreeSet<&str> = outside.collect();
            assert!(outside.len() == hosts && texts(&one["values"][field]) == outside, "{target}: {one:#} {output:#}");
        };
        be("1", "dns");
        module.apply();
        follows(1);
        be("3", "dns");
        let changes = module.changes();
        let update = Some("[\"update\"]");
        assert_eq!(changes.get(record).map(String::as_str), update, "{target}");
        // Workers are told of other API servers: what they are made of is another template.
        let gone = |(name, actions): (&String, &String)| actions.contains("delete") && !name.contains("template");
        assert!(!changes.iter().any(gone), "{target}: {changes:?}");
        module.apply();
        follows(3);
        be("3", "load-balancer");
        assert_eq!(module.changes().get(record).map(String::as_str), update, "{target}");
        module.apply();
        assert_eq!(module.changes().get(record), None, "{target}");
    }
}

/// Applying the module by hand also reports that it creates no record of that kind.
#[test]
fn a_zone_of_another_cloud_is_refused_by_the_module_too() {
    for (target, wrong) in [("gce", "route53"), ("aws", "azuredns"), ("azure", "clouddns")] {
        let module = Module::with_stub(target, provider(target), &profiles(target)["dns"]);
        let file = module.path("terraform.tfvars.json");
        let mut variables: Value = serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
        variables["cluster"]["dns"]["provider"] = wrong.into();
        fs_err::write(&file, variables.to_string()).unwrap();
        let (code, _, error) = module.run(&["plan", "-input=false"]);
        assert!(code == 1 && error.contains("dns.provider is hosts"), "{target}: {error}");
    }
}
