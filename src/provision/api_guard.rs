//! Keeps the way by which nodes reach the API server as long as they need it: an error before the
//! inner load balancer goes that nodes without a balancer of their own ask. It compares the
//! settings with the last inventory; it asks no cloud and no host.

use crate::cloud::Spec;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::Inventory;

const KEY: &str = "phase1.api.internal_load_balancer";

/// An error when these settings would take the inner load balancer from nodes that go through it.
pub(super) fn require_way_to_api(cluster: &Cluster) -> Result<()> {
    let Some(spec) = &cluster.settings.cloud else { return Ok(()) };
    // A damaged one is made again, by the step that reads it.
    let Ok(Some(known)) = cluster.find_inventory() else { return Ok(()) };
    require_way(spec, &known)
}

fn require_way(spec: &Spec, known: &Inventory) -> Result<()> {
    // Of one control-plane host it may go: its nodes are renewed for its address.
    let is_left_out = spec.control_plane.len() > 1 && spec.has_outer_balancer() && !spec.has_inner_balancer();
    if !is_left_out || known.api.node_balancer || known.groups.is_empty() {
        return Ok(());
    }
    let place = known.api.host_for_nodes();
    let message = format!("{KEY}: nodes reach the API server at {place}, until they have a balancer of their own");
    Err(Error::config(message).evidence("without the inner load balancer they would lose it before").hint(format!(
        "turnup config set {KEY}=y && turnup up (gives nodes their balancers), then: turnup config set {KEY}=n && turnup up"
    )))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;
    use crate::config::{Settings, TreeSource};
    use crate::inventory::{Endpoint, HostGroup, Role};

    fn spec(changes: &[(&str, &str)]) -> Spec {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let several = [("phase1.cloud_provider", "aws"), ("phase1.control_plane.count", "3")];
        settings.set_all(&[&several, changes].concat()).unwrap();
        Spec::find(&settings).unwrap().unwrap()
    }

    #[test]
    fn the_inner_load_balancer_stays_until_nodes_need_it_no_more() {
        let api = Endpoint { internal_host: Some("10.0.0.9".into()), ..Endpoint::new("203.0.113.1".into(), 6443) };
        let group = HostGroup { name: "workers".into(), role: Role::Worker, size: 1, min: None, max: None };
        let before = Inventory { groups: vec![group], ..Inventory::of_hosts("it", &"aws", api.clone(), Vec::new()) };
        let after = Inventory { api: Endpoint { node_balancer: true, ..api }, ..before.clone() };
        let without = spec(&[(KEY, "n")]);
        let told = require_way(&without, &before).unwrap_err().render();
        assert!(
            told.contains("nodes reach the API server at 10.0.0.9") && told.contains(&format!("{KEY}=y")),
            "{told}"
        );
        require_way(&without, &after).unwrap();
        require_way(&without, &Inventory { groups: Vec::new(), ..before.clone() }).unwrap();
        require_way(&spec(&[]), &before).unwrap();
        require_way(&spec(&[(KEY, "n"), ("phase1.api.external", "n")]), &before).unwrap();
    }
}
