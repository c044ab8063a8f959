//! What hosts get of a cluster with several API servers: a balancer of their own before all of
//! them, or the address of the cloud's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::NodeConfigs;
use super::tests::{facts, with_configs};
use crate::inventory::{Inventory, Role};
use crate::node::layout;
use crate::node::node_config::{API_UNIT, BALANCER_UNIT, Content, FIREWALL_UNIT, HEALTHCHECK_UNIT, NodeConfig};

use super::super::pki::Pki;

/// The configurations of a cluster whose worker is a control-plane host as well, and one more host.
fn with_several<T>(change: impl FnOnce(&mut Inventory), act: impl FnOnce(&NodeConfigs<'_>) -> T) -> T {
    with_configs(&[], |configs| {
        let mut inventory = configs.inventory.clone();
        let mut third = inventory.hosts[1].clone();
        (third.name, third.address) = ("w-9".into(), [10, 117, 0, 99].into());
        inventory.hosts[1].role = Role::ControlPlane;
        inventory.hosts.push(third);
        change(&mut inventory);
        let several = NodeConfigs { inventory: &inventory, ..*configs };
        let pki = Pki::new(&several.cluster.store);
        for leaf in several.leaves().unwrap() {
            pki.ensure_leaf(&leaf).unwrap();
        }
        act(&several)
    })
}

fn of(configs: &NodeConfigs<'_>, host: usize) -> NodeConfig {
    configs.node_config(&configs.inventory.hosts[host], &facts()).unwrap().0
}

fn units(node_config: &NodeConfig) -> Vec<&str> {
    node_config.units.iter().map(|unit| unit.name.as_str()).collect()
}

/// The text of a file, whatever form its content has.
fn text(node_config: &NodeConfig, path: &str) -> String {
    match &node_config.files.iter().find(|file| file.path == path).unwrap().content {
        Content::Text(text) => text.clone(),
        content => serde_json::to_string(content).unwrap(),
    }
}

#[test]
fn one_api_server_needs_no_balancer() {
    with_configs(&[], |configs| {
        for host in 0..configs.inventory.hosts.len() {
            let node_config = of(configs, host);
            assert!(!units(&node_config).iter().any(|unit| [API_UNIT, BALANCER_UNIT].contains(unit)));
            assert!(!node_config.files.iter().any(|file| file.path == layout::API_SERVERS));
        }
    });
}

#[test]
fn each_node_reaches_all_api_servers_by_a_balancer_of_its_own() {
    let balanced = |inventory: &mut Inventory| inventory.api.node_balancer = true;
    with_several(balanced, |configs| {
        let version = configs.cluster.version();
        let (first, worker) = (of(configs, 0), of(configs, 2));
        let order = ["containerd.service", FIREWALL_UNIT, BALANCER_UNIT, HEALTHCHECK_UNIT, "kubelet.service"];
        assert_eq!(units(&first)[..5], order, "before kubelet, and its own API server is no other one's");
        let unit = worker.units.iter().find(|unit| unit.name == BALANCER_UNIT).unwrap();
        insta::assert_snapshot!(unit.text.replace(version, "(the sha256 of turnup)"));
        assert!(unit.restart_on.is_empty(), "it reads its list again by itself");
        assert_eq!(text(&first, layout::API_SERVERS), text(&worker, layout::API_SERVERS));
        insta::assert_snapshot!(text(&worker, layout::API_SERVERS));
        // The Node's names and addresses stay what they were: kubelet of a control-plane host asks
        // the API server beside it, which is never older.
        assert!(text(&first, layout::KUBELET_KUBECONFIG).contains("https://127.0.0.1:6443"));
        assert!(text(&worker, layout::KUBELET_KUBECONFIG).contains("https://127.0.0.1:3992"));
        assert!(first.ports.contains(&3992) && worker.ports.contains(&3992), "refused while another program has it");
    });
}

#[test]
fn behind_the_address_of_a_cloud_each_control_plane_host_reaches_its_own_api_server() {
    let behind = |host: &'static str| move |inventory: &mut Inventory| inventory.api.internal_host = Some(host.into());
    let of_name = with_several(behind("api.example.com"), |configs| units(&of(configs, 0)).len());
    with_several(behind("10.117.0.98"), |configs| {
        let (first, worker) = (of(configs, 0), of(configs, 2));
        assert_eq!(units(&first)[..3], ["containerd.service", FIREWALL_UNIT, API_UNIT]);
        assert_eq!(units(&first).len(), of_name + 1, "a name may stand for other addresses tomorrow");
        assert!(!units(&worker).contains(&API_UNIT));
        insta::assert_snapshot!(first.units[2].text);
    });
    let both = |inventory: &mut Inventory| {
        inventory.api.node_balancer = true;
        inventory.api.internal_host = Some("10.117.0.98".into());
    };
    with_several(both, |configs| {
        let (first, worker) = (of(configs, 0), of(configs, 2));
        assert_eq!(units(&first)[..4], ["containerd.service", FIREWALL_UNIT, API_UNIT, BALANCER_UNIT]);
        assert!(units(&worker).contains(&BALANCER_UNIT) && !units(&worker).contains(&API_UNIT));
        assert!(text(&worker, layout::KUBELET_KUBECONFIG).contains("https://127.0.0.1:3992"));
    });
}
