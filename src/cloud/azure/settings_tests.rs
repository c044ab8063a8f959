//! What Azure would refuse is refused here, with its setting and the way out; names fit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::config::{Settings, TreeSource};

use super::*;

const KEY: &str = "ssh-ed25519 AAAA alice";
const NETWORK: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n";

fn settings(changes: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    settings.set("phase1.cloud_provider", "azure").unwrap();
    settings.set_all(changes).unwrap();
    settings
}

fn refusal(changes: &[(&str, &str)], key: &str) -> String {
    let spec = Spec::find(&settings(changes)).map(Option::unwrap);
    let error = spec.and_then(|spec| spec.variables(vec![key.to_owned()])).unwrap_err();
    assert_eq!(error.class(), crate::error::Class::Config, "{error:?}");
    let hint = error.next().unwrap_or_default();
    format!("{}\n  {hint}", error.message())
}

#[test]
fn what_azure_would_refuse_is_refused_before_it_is_asked() {
    let wrong: &[&[(&str, &str)]] = &[
        &[("phase1.azure.location", "West-US2")],
        &[("phase1.azure.resource_group", "/subscriptions/s/resourceGroups/g")],
        &[("phase1.azure.node_vm_size", "D2s_v5")],
        &[("phase1.azure.master_vm_size", "Standard_D2_v5")],
        &[("phase1.azure.master_vm_size", "Standard_D2ps_v5")],
        &[("phase1.azure.node_vm_size", "Standard_B2pts_v2"), ("phase1.azure.image_sku", "12-arm64")],
        &[("phase1.azure.image_sku", "12-arm64")],
        &[("phase1.azure.node_vm_size", "Standard_B2s")],
        &[("phase1.azure.node_vm_size", "Standard_D2_v5"), ("phase1.azure.disk_type", "Premium_LRS")],
        &[("phase1.azure.zones", ""), ("phase1.azure.etcd_volume_type", "PremiumV2_LRS")],
        &[("phase1.control_plane.count", "3"), ("phase1.control_plane.zones", "westus2-1,westus2-2,westus2-3")],
        &[("phase1.azure.subnet_cidr", "10.250.0.0/18")],
        &[("phase1.azure.vnet_cidr", "10.240.0.0/12")],
        &[("phase1.azure.subnet_cidr", "10.240.1.0/28"), ("phase1.num_nodes", "12")],
        &[("phase1.azure.master_private_ip", "10.241.1.4")],
        &[("phase1.azure.master_private_ip", "10.240.0.3")],
        &[("phase1.control_plane.count", "3"), ("phase1.azure.master_private_ip", "10.240.63.253")],
        &[("phase1.azure.vnet_id", "corporate")],
        &[("phase1.azure.vnet_id", NETWORK), ("phase1.network.ipv6", "y")],
        &[
            ("phase1.azure.vnet_id", NETWORK),
            ("phase1.network.ipv6", "y"),
            ("phase1.azure.ipv6_cidr", "fd5a:2f19:7c03::/48"),
        ],
        &[(
            "phase1.api.static_address",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/n",
        )],
        &[("phase1.dns.provider", "clouddns"), ("phase1.dns.zone", "k8s-example-com")],
        &[("phase1.dns.provider", "azuredns")],
        &[("phase1.dns.provider", "azuredns"), ("phase1.dns.private_zone", "y")],
        &[("phase1.ssh.bastion", "create"), ("phase1.ssh.bastion_machine_type", "e2-micro")],
        &[("phase1.ssh.bastion", "create"), ("phase1.ssh.bastion_machine_type", "Standard_B2pts_v2")],
        &[("phase1.dns.provider", "azuredns"), ("phase1.dns.zone", "example.com")],
        &[
            ("phase1.dns.provider", "azuredns"),
            ("phase1.dns.zone", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.com"),
        ],
        &[("phase1.ssh_user", "admin")],
        &[("phase1.tags", "a/b=c")],
        &[("phase1.tags", "azure-cost=1")],
        &[("phase1.node_groups", r#"[{"name":"web","role":"worker","size":1,"image":"debian-12"}]"#)],
        &[("phase1.node_groups", r#"[{"name":"web","role":"worker","size":1,"disk_type":"premium_lrs"}]"#)],
        &[("phase1.node_groups", r#"[{"name":"web","role":"worker","size":1,"zones":["4"]}]"#)],
        &[(
            "phase1.node_groups",
            r#"[{"name":"web","role":"worker","size":1,"machine_type":"Standard_E4pds_v6","image":"Debian:debian-12:12-arm64:latest"}]"#,
        )],
    ];
    let mut told: Vec<String> = wrong.iter().map(|changes| refusal(changes, KEY)).collect();
    told.push(refusal(&[], "ecdsa-sha2-nistp256 AAAA"));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_azure_would_take_is_taken() {
    let inner = r#"[{"name":"web","role":"worker","size":1,"public_address":false}]"#;
    let taken: &[&[(&str, &str)]] = &[
        &[("phase1.azure.node_vm_size", "Standard_E4ads_v6")],
        &[("phase1.azure.node_vm_size", "Standard_NP10s")],
        // By Azure's default way out: the subnet has it where there is no NAT gateway.
        &[("phase1.azure.public_addresses", "y"), ("phase1.node_groups", inner)],
    ];
    for changes in taken {
        let spec = Spec::find(&settings(changes)).map(Option::unwrap);
        spec.and_then(|spec| spec.variables(vec![KEY.to_owned(), "ssh-rsa AAAA alice".to_owned()])).unwrap();
    }
}

#[test]
fn a_cluster_has_an_ipv6_network_of_its_own() {
    let networks = |changes: &[(&str, &str)]| {
        let (_, azure) = read(&settings(changes)).unwrap();
        (azure.ipv6_cidr, azure.subnet_ipv6_cidr)
    };
    let of = |name: &str| networks(&[("phase1.network.ipv6", "y"), ("phase1.cluster_name", name)]);
    let (whole, hosts) = of("prod");
    let whole: Network6 = whole.parse().unwrap();
    assert!(whole.prefix() == 48 && whole.first().is_unique_local(), "{whole}");
    assert_eq!(hosts, format!("{}/64", whole.first()));
    assert_eq!(of("prod"), of("prod"));
    assert_ne!(of("prod"), of("staging"));
    assert_eq!(networks(&[]), (String::new(), String::new()));
    let given =
        [("phase1.azure.vnet_id", NETWORK), ("phase1.network.ipv6", "y"), ("phase1.azure.ipv6_cidr", "FD5A:2f19::/64")];
    assert_eq!(networks(&given).1, "fd5a:2f19::/64");
}

#[test]
fn names_are_within_the_limits_and_stay_apart() {
    let long = "a-cluster-whose-name-has-all-the-sixty-three-letters-there-is-a";
    let group = |end: &str| format!("a-group-whose-name-has-all-the-sixty-three-letters-there-are-{end}");
    let groups = format!(
        r#"[{{"name":"{}","role":"worker","size":1}},{{"name":"{}","role":"worker","size":1}}]"#,
        group("1"),
        group("2")
    );
    let settings = settings(&[("phase1.cluster_name", long), ("phase1.node_groups", &groups)]);
    let spec = Spec::find(&settings).map(Option::unwrap).unwrap();
    let (_, mut azure) = read(&settings).unwrap();
    azure.name_all(&spec.name, &spec.control_plane, &spec.groups);
    let names = &azure.names;
    assert!(names.prefix.len() <= PREFIX && names.prefix.starts_with("a-cluster"), "{names:?}");
    assert!(names.control_plane_identity.len() <= IDENTITY && names.node_identity.len() <= IDENTITY, "{names:?}");
    assert_ne!(names.control_plane_identity, names.node_identity);
    let of_groups: std::collections::BTreeSet<&String> = names.groups.values().collect();
    assert!(of_groups.len() == 2 && of_groups.iter().all(|name| name.len() <= GROUP), "{names:?}");
}
