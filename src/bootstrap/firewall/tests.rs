//! What a host's rules say for typical clusters, and that the real nft takes them whatever the
//! settings and the inventory are.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;

use super::*;
use crate::config::Settings;
use crate::exec::Run;

fn settings(changes: &[(&str, &str)]) -> ClusterSettings {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    settings.set_all(changes).unwrap();
    ClusterSettings::read(&settings, std::path::Path::new("/")).unwrap()
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn neighbors(control_plane: &[&str], workers: &[&str]) -> Neighbors {
    let (control_plane, workers) = (addresses(control_plane), addresses(workers));
    let hosts = [control_plane.clone(), workers].concat();
    Neighbors { control_plane, hosts, ssh_ports: BTreeSet::from([22]) }
}

fn rules(changes: &[(&str, &str)], role: Role, neighbors: &Neighbors) -> String {
    let settings = settings(changes);
    let firewall = Firewall::find(&settings, role, 22, neighbors).unwrap().unwrap();
    firewall.render(&TreeSource::embedded()).unwrap()
}

const BARE: (&str, &str) = ("phase1.cloud_provider", "baremetal");

#[test]
fn a_control_plane_of_three_on_bare_metal() {
    let neighbors = neighbors(&["192.0.2.10", "192.0.2.11", "192.0.2.30"], &["192.0.2.20", "2001:db8::20"]);
    insta::assert_snapshot!(rules(&[BARE], Role::ControlPlane, &neighbors));
}

#[test]
fn a_worker_with_networks_of_its_own_choice() {
    let changes = [
        BARE,
        ("phase2.network.flannel_backend", "vxlan"),
        ("phase2.host.firewall_kubelet_networks", "10.244.0.0/16,198.51.100.0/24,2001:db8:1::/48"),
        ("phase2.host.firewall_ssh_networks", "203.0.113.0/25,203.0.113.128/25,10.244.7.0/24"),
        ("phase2.host.firewall_pods_reach_metadata", "y"),
    ];
    insta::assert_snapshot!(rules(&changes, Role::Worker, &neighbors(&["192.0.2.10"], &["192.0.2.20"])));
}

#[test]
fn a_worker_of_a_group_knows_the_network_of_the_cloud_and_no_host() {
    let changes = [("phase1.cloud_provider", "gce")];
    insta::assert_snapshot!(rules(&changes, Role::Worker, &Neighbors::default()));
}

#[test]
fn one_more_worker_in_a_known_network_changes_no_rule_of_the_others() {
    let (one, two) = (["10.117.0.20"].as_slice(), ["10.117.0.20", "10.117.0.21"].as_slice());
    for role in Role::ALL {
        let with = |workers| rules(&[], role, &neighbors(&["10.117.0.10"], workers));
        assert_eq!(with(one), with(two));
        let elsewhere = rules(&[BARE], role, &neighbors(&["10.117.0.10"], two));
        assert!(elsewhere.contains("10.117.0.10, 10.117.0.20/31"), "where nothing else tells of it: {elsewhere}");
    }
}

#[test]
fn without_the_setting_there_are_no_rules() {
    let settings = settings(&[("phase2.host.firewall", "n")]);
    assert!(Firewall::find(&settings, Role::Worker, 22, &Neighbors::default()).unwrap().is_none());
}

#[test]
fn rules_that_would_lock_turnup_out_are_refused_with_the_setting() {
    let neighbors = neighbors(&["192.0.2.10"], &["192.0.2.20"]);
    let judge = |networks: &str, client: &str| {
        let settings = settings(&[BARE, ("phase2.host.firewall_ssh_networks", networks)]);
        let firewall = Firewall::find(&settings, Role::Worker, 22, &neighbors).unwrap().unwrap();
        firewall.require_way_in("rack-1", Some(client.parse().unwrap()))
    };
    for (networks, client) in [
        ("", "203.0.113.9"),
        ("", "2001:db8::1"),
        ("203.0.113.0/24", "::ffff:203.0.113.9"),
        ("10.244.0.0/16,203.0.113.0/24", "10.244.3.4"),
        ("10.244.0.0/16", "192.0.2.20"),
        ("203.0.113.0/24", "127.0.0.1"),
    ] {
        judge(networks, client).unwrap();
    }
    for (networks, client) in
        [("", "10.244.3.4"), ("0.0.0.0/0", "10.244.3.4"), ("", "fe80::1"), ("203.0.113.0/24", "2001:db8::1")]
    {
        assert_eq!(judge(networks, client).unwrap_err().class(), crate::Class::Precondition, "{networks}: {client}");
    }
    insta::assert_snapshot!(judge("203.0.113.0/24", "198.51.100.7").unwrap_err().render());
}

/// Reads the rules as the kernel would, in a network namespace of its own, and loads none.
fn check(rules: &str) -> Result<()> {
    let nft = ["--net", "nft", "--check", "--file", "-"];
    Run::new("unshare").args(nft).dir("/").stdin(rules.to_owned()).succeed().map(drop)
}

#[test]
fn the_check_of_nft_finds_a_mistake() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    assert!(check("table inet turnup { chain input { tcp dport 22 frobnicate; }; }").is_err());
}

fn networks() -> impl Strategy<Value = String> {
    let v4 = (any::<u32>(), 0_u8..=32).prop_map(|(base, bits)| crate::config::Network::containing(base.into(), bits));
    let v6 =
        (any::<u128>(), 0_u8..=128).prop_map(|(base, bits)| crate::config::Network6::containing(base.into(), bits));
    let pods = prop::sample::select(vec!["10.244.0.0/16", "10.244.7.0/24"]).prop_map(str::to_owned);
    let one = prop_oneof![v4.prop_map(|network| network.to_string()), v6.prop_map(|network| network.to_string()), pods];
    prop::collection::vec(one, 0..6).prop_map(|networks| networks.join(","))
}

fn any_neighbors() -> impl Strategy<Value = Neighbors> {
    let v4 = any::<u32>().prop_map(|bits| IpAddr::V4(bits.into()));
    let v6 = any::<u128>().prop_map(|bits| IpAddr::V6(bits.into()));
    let hosts = prop::collection::vec(prop_oneof![v4, v6], 0..12);
    let all = (hosts, 0_usize..4, prop::collection::btree_set(1_u16.., 0..3));
    all.prop_map(|(hosts, count, ssh_ports)| Neighbors {
        control_plane: hosts.iter().take(count).copied().collect(),
        hosts,
        ssh_ports,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn nft_takes_the_rules_of_every_host(
        kubelet in networks(),
        ssh in networks(),
        neighbors in any_neighbors(),
        is_control_plane in any::<bool>(),
        vxlan in any::<bool>(),
        metadata in any::<bool>(),
        target in prop::sample::select(vec!["local", "baremetal", "gce"]),
    ) {
        // What would shut turnup out is refused with the configuration.
        let ssh = if target == "local" && !ssh.is_empty() { format!("{ssh},10.117.0.1/32") } else { ssh };
        let yes = |is: bool| if is { "y" } else { "n" };
        let changes = [
            ("phase1.cloud_provider", target),
            ("phase2.network.flannel_backend", if vxlan || target == "gce" { "vxlan" } else { "host-gw" }),
            ("phase2.host.firewall_kubelet_networks", kubelet.as_str()),
            ("phase2.host.firewall_ssh_networks", ssh.as_str()),
            ("phase2.host.firewall_pods_reach_metadata", yes(metadata)),
        ];
        let role = if is_control_plane { Role::ControlPlane } else { Role::Worker };
        let text = rules(&changes, role, &neighbors);
        prop_assert_eq!(&text, &rules(&changes, role, &neighbors), "the same inputs give the same bytes");
        if rustix::process::geteuid().is_root() {
            let checked = check(&text);
            prop_assert!(checked.is_ok(), "{}\n{}", checked.unwrap_err().render(), text);
        }
        // Only our own table is ever named.
        let tables = text.lines().filter(|line| line.contains("table ") && !line.starts_with('#'));
        prop_assert!(tables.clone().count() == 3 && tables.clone().all(|line| line.contains("table inet turnup")));
        prop_assert!(!text.contains("flush"));
    }
}
