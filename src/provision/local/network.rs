//! The bridge that the hosts of one local cluster share, each host's namespace and veth pair, and
//! the nftables table of this machine that closes its ports to the hosts. Traffic never leaves this
//! machine: no route, no forwarding and no address translation is set up.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::exec::{Run, tools};
use crate::failpoint;

use super::spec::{HostSpec, NetworkSpec};

fn ip(args: &[&str]) -> Result<String> {
    Ok(Run::new("ip").args(args.iter().copied()).dir("/").succeed()?.stdout)
}

fn exists(interface: &str) -> bool {
    Path::new("/sys/class/net").join(interface).exists()
}

/// Replaces the nftables rules for packets from this bridge to this machine, in one transaction.
/// Replies, ping and the open ports are accepted. The rest is rejected rather than dropped, so that
/// clients fail at once, such as resolvers that ask the gateway of their resolv.conf.
fn load_firewall(spec: &NetworkSpec) -> Result<()> {
    tools::find("nft")?;
    let NetworkSpec { bridge, open_ports, .. } = spec;
    let open = open_ports.iter().map(|port| format!("tcp dport {port} accept\n"));
    let rules = format!(
        "table inet {bridge}
delete table inet {bridge}
table inet {bridge} {{
chain input {{
type filter hook input priority -10; policy accept;
iifname != \"{bridge}\" accept
ct state established,related accept
meta l4proto {{ icmp, ipv6-icmp }} accept
{open}meta l4proto tcp counter reject with tcp reset
counter reject
}}
}}
",
        open = open.collect::<String>()
    );
    let load = || Run::new("nft").args(["--file", "-"]).stdin(rules).dir("/").succeed();
    failpoint::around(format_args!("firewall"), load).map(drop)
}

/// Whether this machine has the nftables rules for this bridge; a flush of all rules removes them.
#[must_use]
pub fn has_firewall(spec: &NetworkSpec) -> bool {
    Run::new("nft").args(["list", "chain", "inet", &spec.bridge, "input"]).dir("/").output().is_ok()
}

/// Makes the nftables rules and then the bridge, or finds it made. Refuses when another interface
/// already has an address in the subnet.
pub fn create_network(spec: &NetworkSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("network"));
    let address = format!("{}/{}", spec.gateway, spec.prefix);
    refuse_overlap(spec)?;
    load_firewall(spec)?;
    if !exists(&spec.bridge)
        && let Err(error) = ip(&["link", "add", &spec.bridge, "type", "bridge"])
    {
        // The start of another host, at the same time, may have been faster.
        if !exists(&spec.bridge) {
            return Err(error);
        }
    }
    ip(&["address", "replace", &address, "dev", &spec.bridge])?;
    ip(&["link", "set", &spec.bridge, "up"])?;
    Ok(())
}

/// Takes the bridge away, when it is there, and then its nftables rules.
pub fn delete_network(spec: &NetworkSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("delete network"));
    if exists(&spec.bridge) {
        ip(&["link", "delete", &spec.bridge])?;
    }
    // Without nft there are no rules either.
    if tools::find("nft").is_ok() {
        let table = format!("table inet {0}; delete table inet {0}", spec.bridge);
        failpoint::around(format_args!("firewall"), || Run::new("nft").arg(table).dir("/").succeed())?;
    }
    Ok(())
}

/// `ip route get` cannot tell a subnet that is taken from one that the default route covers, so the
/// addresses are compared.
fn refuse_overlap(spec: &NetworkSpec) -> Result<()> {
    for line in ip(&["-4", "-oneline", "address", "show"])?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(interface), Some(address)) = (words.get(1), words.get(3)) else { continue };
        let Some((address, length)) = address.split_once('/') else { continue };
        let (Ok(address), Ok(length)) = (address.parse(), length.parse::<u8>()) else { continue };
        if *interface != spec.bridge && overlaps(spec.gateway, address, spec.prefix.min(length)) {
            return Err(Error::precondition(format!(
                "interface {interface} already has {address}/{length}, inside the cluster's subnet {}/{}",
                spec.gateway, spec.prefix
            ))
            .hint("choose another one: turnup config set phase1.local.subnet=10.118.0.0/24"));
        }
    }
    Ok(())
}

fn overlaps(a: std::net::Ipv4Addr, b: std::net::Ipv4Addr, prefix: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
    u32::from(a) & mask == u32::from(b) & mask
}

/// Makes the host's namespace with its address, linked to the bridge, or finds it made.
pub(super) fn attach(host: &HostSpec) -> Result<()> {
    let name = host.machine.as_str();
    if !namespace(name).exists() {
        ip(&["netns", "add", name])?;
    }
    if !exists(&host.interface) || ip(&["-n", name, "link", "show", "host0"]).is_err() {
        // One whose other end was in a namespace that is gone is of no use, and may be about to
        // vanish with it.
        let _gone = ip(&["link", "delete", &host.interface]);
        // The same address for a host that is made again: its neighbours remember the old one for
        // half a minute.
        let mac = mac_address(name);
        let peer = ["peer", "name", "host0", "address", &mac, "netns", name];
        ip(&[&["link", "add", &host.interface, "type", "veth"][..], &peer].concat())?;
    }
    ip(&["link", "set", &host.interface, "master", &host.network.bridge, "up"])?;
    ip(&["-n", name, "link", "set", "lo", "up"])?;
    ip(&["-n", name, "address", "replace", &format!("{}/{}", host.address, host.network.prefix), "dev", "host0"])?;
    ip(&["-n", name, "link", "set", "host0", "up"])?;
    ip(&["-n", name, "route", "replace", "default", "via", &host.network.gateway.to_string()])?;
    Ok(())
}

/// A locally administered address that follows from the machine's name, which is unique on this
/// machine.
fn mac_address(machine: &str) -> String {
    let digest = Sha256::digest(machine.as_bytes());
    std::iter::once(&0x02).chain(&digest[..5]).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Takes the namespace away; the veth pair goes with it.
pub(super) fn detach(host: &HostSpec) -> Result<()> {
    if exists(&host.interface) {
        ip(&["link", "delete", &host.interface])?;
    }
    if namespace(&host.machine).exists() {
        ip(&["netns", "delete", &host.machine])?;
    }
    Ok(())
}

/// The file that keeps the namespace.
pub(super) fn namespace(machine: &str) -> std::path::PathBuf {
    Path::new("/run/netns").join(machine)
}

#[cfg(test)]
mod tests {
    use super::overlaps;
    use std::net::Ipv4Addr;

    #[test]
    fn overlap_is_decided_by_the_shorter_prefix() {
        let ours = Ipv4Addr::new(10, 117, 0, 1);
        assert!(overlaps(ours, Ipv4Addr::new(10, 117, 0, 200), 24));
        assert!(!overlaps(ours, Ipv4Addr::new(10, 117, 1, 1), 24));
        assert!(overlaps(ours, Ipv4Addr::new(10, 1, 1, 1), 8));
        assert!(overlaps(ours, Ipv4Addr::new(192, 168, 0, 1), 0));
    }
}
