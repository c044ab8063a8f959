//! What is in the network of this host, and the removal of what pods, addons and plugins put there:
//! only what bears their names, and only what was not there before. Nothing of other programs is
//! changed.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::exec::Run;

use super::task::names_in;

/// Tables of kube-proxy, flannel, kube-network-policies and the CNI plugins, and turnup's own where
/// its unit was lost; each may be there once a family.
const TABLES: [&str; 7] = [
    "kube-proxy",
    "flannel-ipv4",
    "flannel-ipv6",
    "kube-network-policies",
    "cni_hostport",
    "cni_plugins_masquerade",
    "turnup",
];
/// How chains of kubelet, kube-proxy, the CNI plugins and flannel begin.
const CHAINS: [&str; 3] = ["KUBE-", "CNI-", "FLANNEL-"];
/// The bridge of pods.
const BRIDGE: &str = "cni0";
/// Interfaces of flannel's ways between nodes, and of kube-proxy's and the name cache's.
const INTERFACES: [&str; 5] = [BRIDGE, "flannel.1", "flannel-wg", "kube-ipvs0", "nodelocaldns"];
/// Chains into which the kernel leads packets.
const BASE_CHAINS: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
/// How iptables is called, for each family of nft.
const IPTABLES: [(&str, &str); 2] = [("ip", "iptables"), ("ip6", "ip6tables")];

/// What there is, each by its name. A tool that is missing sees nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FoundNetwork {
    interfaces: BTreeSet<String>,
    /// Tables of nft with their families: `ip kube-proxy`.
    tables: BTreeSet<String>,
    /// Chains of nft with their tables: `ip filter INPUT`. iptables tells of base chains that are
    /// not there.
    nft_chains: BTreeSet<String>,
    /// Chains of iptables: `ip nat KUBE-SERVICES`.
    chains: BTreeSet<String>,
    /// Lines of `ip route`.
    routes: BTreeSet<String>,
    /// Named network namespaces.
    namespaces: BTreeSet<String>,
}

impl FoundNetwork {
    /// Looks; changes nothing.
    pub(super) fn look() -> Result<Self> {
        let tables = said(&["nft", "list", "tables"]);
        let routes = said(&["ip", "-4", "route", "show"]);
        let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect();
        let mut chains = BTreeSet::new();
        for (family, program) in IPTABLES {
            chains.extend(chains_of(&said(&[&format!("{program}-save")])).map(|name| format!("{family} {name}")));
        }
        Ok(Self {
            interfaces: names_in("/sys/class/net")?.unwrap_or_default(),
            tables: tables.lines().filter_map(|line| line.trim().strip_prefix("table ")).map(str::to_owned).collect(),
            nft_chains: nft_chains_of(&said(&["nft", "--json", "list", "chains"])),
            chains,
            routes: lines(&routes),
            namespaces: names_in("/run/netns")?.unwrap_or_default(),
        })
    }

    /// Removes what came since, of pods with addresses in these networks; each removal is told.
    pub(super) fn restore(&self, pods: &[&str], told: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
        let now = Self::look()?;
        for name in now.namespaces.difference(&self.namespaces).filter(|name| name.starts_with("cni-")) {
            run(&["ip", "netns", "delete", name])?;
            told(format!("network namespace {name}"))?;
        }
        // All of them are known before the first goes, and the bridge goes last: it is by the
        // bridge that the others are known.
        let mut interfaces: Vec<&String> =
            now.interfaces.difference(&self.interfaces).filter(|name| is_of_pods(name)).collect();
        interfaces.sort_by_key(|name| *name == BRIDGE);
        for name in interfaces {
            // One whose other end was in a namespace vanishes with that, in its own time.
            let there = || Path::new("/sys/class/net").join(name).exists();
            if there()
                && let Err(error) = run(&["ip", "link", "delete", name])
                && there()
            {
                return Err(error);
            }
            told(format!("interface {name}"))?;
        }
        // Those over an interface went with it.
        for route in Self::look()?.routes.difference(&self.routes).filter(|route| leads_into(route, pods)) {
            let words: Vec<&str> = ["ip", "route", "delete"].into_iter().chain(route.split_whitespace()).collect();
            run(&words)?;
            told(format!("route {route}"))?;
        }
        let of_ours = |table: &&String| table.split(' ').nth(1).is_some_and(|name| TABLES.contains(&name));
        for table in now.tables.difference(&self.tables).filter(of_ours) {
            let words: Vec<&str> = ["nft", "delete", "table"].into_iter().chain(table.split(' ')).collect();
            run(&words)?;
            told(format!("nft table {table}"))?;
        }
        for (family, program) in IPTABLES {
            self.remove_chains(&now, family, program, told)?;
        }
        self.remove_empty_tables(told)
    }

    /// Rules that lead to the chains go first, then what is in them, then they themselves.
    fn remove_chains(
        &self,
        now: &Self,
        family: &str,
        program: &str,
        told: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<()> {
        let is_new = |chain: &&String| {
            let mut words = chain.split(' ');
            let (of, name) = (words.next(), words.nth(1).unwrap_or_default());
            of == Some(family) && CHAINS.iter().any(|prefix| name.starts_with(prefix))
        };
        let chains: Vec<&String> = now.chains.difference(&self.chains).filter(is_new).collect();
        if chains.is_empty() {
            return Ok(());
        }
        let targets: BTreeSet<(&str, &str)> = chains.iter().filter_map(|chain| table_and_name(chain)).collect();
        let saved = said(&[&format!("{program}-save")]);
        let mut table = "";
        for line in saved.lines() {
            table = line.strip_prefix('*').unwrap_or(table);
            let Some(rule) = line.strip_prefix("-A ") else { continue };
            // A comment is quoted as a shell would.
            let words = shell_words::split(rule).unwrap_or_default();
            let target = words.iter().skip_while(|word| *word != "-j" && *word != "-g").nth(1);
            if target.is_some_and(|target| targets.contains(&(table, target.as_str()))) {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                run(&[&[program, "-w", "-t", table, "-D"][..], &words].concat())?;
            }
        }
        for (table, chain) in &targets {
            run(&[program, "-w", "-t", table, "-F", chain])?;
        }
        for (table, chain) in &targets {
            run(&[program, "-w", "-t", table, "-X", chain])?;
            told(format!("{program} chain {chain} of {table}"))?;
        }
        Ok(())
    }

    /// iptables on nft makes its tables and base chains with the first rule, and leaves them; what
    /// has anything in it stays.
    fn remove_empty_tables(&self, told: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
        let now = Self::look()?;
        for table in &now.tables {
            let words: Vec<&str> = table.split(' ').collect();
            let [family @ ("ip" | "ip6"), name @ ("nat" | "filter" | "mangle" | "raw")] = words[..] else { continue };
            let lists = |words: &[&str]| said(&[&["nft", "--json", "list"], words].concat());
            if !self.tables.contains(table) && is_empty(&lists(&["table", family, name])) {
                run(&["nft", "delete", "table", family, name])?;
                told(format!("nft table {table}"))?;
                continue;
            }
            for chain in BASE_CHAINS {
                let full = format!("{family} {name} {chain}");
                let is_new = now.nft_chains.contains(&full) && !self.nft_chains.contains(&full);
                if is_new && is_empty(&lists(&["chain", family, name, chain])) {
                    run(&["nft", "delete", "chain", family, name, chain])?;
                    told(format!("nft chain {full}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether it is one of pods: named so, or a pair's end on the bridge of pods.
fn is_of_pods(interface: &str) -> bool {
    let master = fs_err::read_link(Path::new("/sys/class/net").join(interface).join("master")).ok();
    let on_bridge = master.is_some_and(|master| master.file_name().is_some_and(|name| name == BRIDGE));
    INTERFACES.contains(&interface) || on_bridge && interface.starts_with("veth")
}

/// `FAMILY TABLE NAME` of everything in nft's JSON.
fn nft_chains_of(json: &str) -> BTreeSet<String> {
    let listing: Value = serde_json::from_str(json).unwrap_or_default();
    let objects = listing["nftables"].as_array().into_iter().flatten();
    let chains = objects.filter_map(|object| {
        let field = |name: &str| object["chain"][name].as_str();
        Some(format!("{} {} {}", field("family")?, field("table")?, field("name")?))
    });
    chains.collect()
}

/// The table and the name in `FAMILY TABLE NAME`.
fn table_and_name(chain: &str) -> Option<(&str, &str)> {
    chain.split_once(' ')?.1.split_once(' ')
}

/// `TABLE CHAIN` of everything that `iptables-save` printed.
fn chains_of(saved: &str) -> impl Iterator<Item = String> + '_ {
    let mut table = "";
    saved.lines().filter_map(move |line| {
        table = line.strip_prefix('*').unwrap_or(table);
        let name = line.strip_prefix(':')?.split(' ').next()?;
        Some(format!("{table} {name}"))
    })
}

/// Whether a line of `ip route` goes over another host into one of these networks.
fn leads_into(route: &str, networks: &[&str]) -> bool {
    let to = route.split_whitespace().next().unwrap_or_default();
    let address: Option<Ipv4Addr> = to.split('/').next().and_then(|text| text.parse().ok());
    let inside = |network: &&str| {
        let (base, length) = network.split_once('/')?;
        let (base, length): (Ipv4Addr, u32) = (base.parse().ok()?, length.parse().ok()?);
        let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
        Some(u32::from(base) & mask == u32::from(address?) & mask)
    };
    route.contains(" via ") && networks.iter().any(|network| inside(network) == Some(true))
}

/// Whether nft's JSON of a table or chain has no rule in it, and no chain but base ones that let
/// everything pass.
fn is_empty(json: &str) -> bool {
    let Ok(listing) = serde_json::from_str::<Value>(json) else { return false };
    let objects = listing["nftables"].as_array().into_iter().flatten();
    let strange = |object: &Value| {
        let base = object.get("chain").is_some_and(|chain| chain.get("hook").is_some() && chain["policy"] == "accept");
        object.get("metainfo").is_none() && object.get("table").is_none() && !base
    };
    !objects.into_iter().any(strange)
}

/// What a tool prints; nothing when it is missing or fails.
fn said(words: &[&str]) -> String {
    Run::new(words[0]).args(&words[1..]).dir("/").output().map(|output| output.stdout).unwrap_or_default()
}

fn run(words: &[&str]) -> Result<()> {
    Run::new(words[0]).args(&words[1..]).dir("/").succeed().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_routes_over_other_hosts_into_the_networks_of_pods_are_ours() {
        let pods = ["10.244.0.0/16"];
        assert!(leads_into("10.244.1.0/24 via 10.123.0.20 dev host0", &pods));
        assert!(!leads_into("10.245.1.0/24 via 10.123.0.20 dev host0", &pods));
        assert!(!leads_into("10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1", &pods));
        assert!(!leads_into("default via 10.123.0.1 dev host0", &pods));
        assert!(!leads_into("10.244.1.0/24 via 10.123.0.20 dev host0", &[]));
    }

    #[test]
    fn chains_are_read_with_their_tables() {
        let saved = "# Generated\n*mangle\n:PREROUTING ACCEPT [0:0]\n:KUBE-HINT - [0:0]\nCOMMIT\n*nat\n:MINE - [1:2]\n";
        let found: Vec<String> = chains_of(saved).collect();
        assert_eq!(found, ["mangle PREROUTING", "mangle KUBE-HINT", "nat MINE"]);
    }

    #[test]
    fn chains_of_nft_are_read() {
        let json =
            r#"{"nftables": [{"metainfo": {}}, {"chain": {"family": "ip", "table": "filter", "name": "INPUT"}}]}"#;
        assert_eq!(nft_chains_of(json), BTreeSet::from(["ip filter INPUT".to_owned()]));
        assert!(nft_chains_of("").is_empty());
    }

    #[test]
    fn a_table_with_anything_in_it_stays() {
        let table = |more: &str| {
            format!(
                r#"{{"nftables": [{{"metainfo": {{}}}}, {{"table": {{"name": "filter"}}}}, {{"chain": {{"name": "INPUT", "hook": "input", "policy": "accept"}}}}{more}]}}"#
            )
        };
        assert!(is_empty(&table("")));
        assert!(!is_empty(&table(r#", {"rule": {"chain": "INPUT"}}"#)));
        assert!(!is_empty(&table(r#", {"chain": {"name": "MINE"}}"#)));
        assert!(!is_empty(&table(r#", {"chain": {"name": "OUTPUT", "hook": "output", "policy": "drop"}}"#)));
        assert!(!is_empty("not JSON"), "what cannot be read is not touched");
    }
}
