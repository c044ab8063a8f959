//! How turnup's services on the hosts stand, by what systemd there said. Those that run and have
//! nothing to tell are passed over in the text.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::node::node_config::AGENT_UNIT;

/// A service of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HostService {
    /// The name of the host.
    pub host: String,
    /// The name of the unit: `turnup-dns.service`.
    pub unit: String,
    /// Its state in systemd's words: `active running`, `failed failed`, `activating auto-restart`.
    pub state: String,
    /// What it cannot do now, in its own words; empty where it can do all.
    pub trouble: String,
}

impl HostService {
    /// Those in what `systemctl show` printed: lines `Name=value`, an empty line between units. The
    /// agent tells more of itself in its own file.
    pub(super) fn read_all(host: &str, said: &str) -> Vec<Self> {
        let units = said.split("\n\n").map(|unit| {
            let fields: BTreeMap<&str, &str> = unit.lines().filter_map(|line| line.split_once('=')).collect();
            let field = |name: &str| fields.get(name).copied().unwrap_or_default().to_owned();
            let state = format!("{} {}", field("ActiveState"), field("SubState"));
            Self { host: host.to_owned(), unit: field("Id"), state, trouble: field("StatusText") }
        });
        units.filter(|service| !service.unit.is_empty() && service.unit != AGENT_UNIT).collect()
    }

    /// What there is to tell.
    pub(super) fn news(&self) -> Option<String> {
        let Self { host, unit, state, trouble } = self;
        let fails = state.starts_with("failed") || state.ends_with("auto-restart");
        let what = match (fails, trouble.is_empty()) {
            (false, true) => return None,
            (true, true) => "fails",
            (_, false) => trouble,
        };
        let name = unit.trim_end_matches(".service");
        Some(format!("{host}: {name}: {what}: journalctl --unit={name} (on the host)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_fails_or_has_a_trouble_is_told() {
        let said = "Id=turnup-agent.service\nActiveState=failed\nSubState=failed\nStatusText=\n\n\
            Id=turnup-backup.service\nActiveState=inactive\nSubState=dead\nStatusText=\n\n\
            StatusText=m1 is out: a=b\nId=turnup-balancer.service\nActiveState=active\nSubState=running\n\n\
            Id=turnup-dns.service\nActiveState=activating\nSubState=auto-restart\nStatusText=\n\n\
            Id=turnup-firewall.service\nActiveState=failed\nSubState=failed\nStatusText=\n\n\
            Id=turnup-healthcheck.service\nActiveState=active\nSubState=running\nStatusText=\n";
        let all = HostService::read_all("m0", said);
        assert_eq!(all.len(), 5, "{all:?}");
        let told: Vec<String> = all.iter().filter_map(HostService::news).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        m0: turnup-balancer: m1 is out: a=b: journalctl --unit=turnup-balancer (on the host)
        m0: turnup-dns: fails: journalctl --unit=turnup-dns (on the host)
        m0: turnup-firewall: fails: journalctl --unit=turnup-firewall (on the host)
        ");
        assert_eq!(HostService::read_all("m0", ""), []);
    }
}
