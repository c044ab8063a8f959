//! The end of a machine that another one is to take the place of: turnup logs in to no host of a
//! node group, so it says on the Node which boot of which machine is to end, and the agent there
//! powers it off. What makes the group's machines makes the next one.
//!
//! The annotation has the id of the boot: the next machine of the same name has another one, and so
//! has this one after a restart. A Node that takes pods is never retired.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::Result;
use crate::failpoint;
use crate::inventory::Role;

use super::super::node_config::NodeConfig;
use super::super::{boot_config, systemd, up};
use super::own_node::OwnNode;

/// The annotation: the id of the boot that is to end.
pub(crate) const RETIRE: &str = "turnup.dev/retire";
/// Between two questions. With 1,000 hosts the API servers answer 50 such questions a second, each
/// over a connection that stays open.
const INTERVAL: Duration = Duration::from_secs(20);
/// What tells this boot from every other one of any machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Asks whether this machine is to end.
#[derive(Default)]
pub(super) struct Retirement {
    asked: Option<Instant>,
    api: OwnNode,
}

impl Retirement {
    /// Whether the Node says that this machine is to end. Only hosts of node groups ask, and at
    /// most once in the interval; no answer is none.
    pub(super) fn is_due(&mut self) -> bool {
        if self.asked.is_some_and(|asked| asked.elapsed() < INTERVAL) {
            return false;
        }
        self.asked = Some(Instant::now());
        self.ask().unwrap_or_default()
    }

    fn ask(&mut self) -> Result<bool> {
        let applied = NodeConfig::read_applied()?.filter(|applied| applied.role == Role::Worker);
        let Some(node_config) = applied.filter(|_| Path::new(boot_config::FILE).exists()) else { return Ok(false) };
        let node = self.api.read(&node_config.node)?;
        Ok(is_retired(&node, fs_err::read_to_string(BOOT_ID)?.trim()))
    }
}

/// Whether this Node, of a machine with this boot, is to end.
fn is_retired(node: &Value, boot_id: &str) -> bool {
    let named = node["metadata"]["annotations"][RETIRE].as_str();
    !boot_id.is_empty() && named == Some(boot_id) && node["spec"]["unschedulable"] == true
}

/// Powers this machine off; false while something of turnup's works on it.
pub(super) fn power_off() -> Result<bool> {
    let _inside = failpoint::within(format_args!("agent"));
    let Some(_turn) = up::try_turn()? else { return Ok(false) };
    systemd::systemctl(&["--no-block", "poweroff"]).map(|()| true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_boot_that_is_named_ends_and_only_while_its_node_takes_no_pods() {
        let node = |named: Option<&str>, unschedulable: bool| {
            let annotations = named.map_or_else(|| json!({}), |named| json!({RETIRE: named}));
            json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": unschedulable}})
        };
        assert!(is_retired(&node(Some("a-1"), true), "a-1"));
        assert!(!is_retired(&node(Some("a-1"), true), "a-2"), "the next machine of the same name");
        assert!(!is_retired(&node(Some("a-1"), false), "a-1"), "an operator has uncordoned it");
        assert!(!is_retired(&node(None, true), "a-1"), "an operator has cordoned it");
        assert!(!is_retired(&node(Some(""), true), ""));
        assert!(!is_retired(&json!({}), ""));
    }
}
