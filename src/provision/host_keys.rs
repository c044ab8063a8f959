//! Host keys of machines that a cloud made: they are unknown before the first contact, at which
//! they are learnt; from then on only they are accepted, as long as the machine is the same.
//!
//! It changes nothing on a host. A key that is known already is never learnt a second time, unless
//! the user resets it: a cloud gives a recreated machine the address of the old one, and only the
//! user can know that it did.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::{Bastion, Cluster};
use crate::document;
use crate::error::{Class, Context as _, Error, Result};
use crate::phase::Cx;
use crate::state::Store;

use super::known_hosts;
use crate::inventory::{Host, Inventory, JumpHost};

/// An error unless each of these names a machine whose host key was learnt.
pub(super) fn require_learnt(cluster: &Cluster, names: &BTreeSet<String>) -> Result<()> {
    if cluster.settings.cloud.is_none() {
        let why = "--reset-host-key is for machines of a cloud: the keys of other hosts are not learnt, but given";
        return Err(Error::usage(why).hint("give the new key where the old one is (turnup status shows the target)"));
    }
    let inventory = cluster.inventory()?;
    let jumps = inventory.hosts.iter().filter_map(|host| Some(host.ssh.jump.as_ref()?.host.as_str()));
    let known: BTreeSet<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).chain(jumps).collect();
    match names.iter().find(|name| !known.contains(name.as_str())) {
        Some(name) => Err(Error::usage(format!("--reset-host-key {name}: no host key of this name was learnt"))
            .hint(format!("names: {}", Vec::from_iter(known).join(", ")))),
        None => Ok(()),
    }
}

/// The inventory with all host keys: those of hosts that are the same as before, and those that are
/// learnt now, among them the ones to `forget`. Waits for hosts that do not answer yet.
pub(super) fn complete(cluster: &Cluster, output: &Value, forget: &BTreeSet<String>, cx: &Cx) -> Result<Inventory> {
    let shown = "the output inventory of the Terraform module";
    // Before the first login: what the module gave back says who logs in where.
    let mut inventory: Inventory = document::from_incomplete(shown, output)?;
    // A damaged one is recreated, as if there were none.
    let known = cluster.find_inventory().ok().flatten();
    let known = known.map(|known| known.hosts).unwrap_or_default();
    for host in &mut inventory.hosts {
        if let Some(bastion) = &cluster.settings.access.bastion {
            go_through(host, bastion);
        }
        if !remember(host, &known, forget) {
            learn(cluster, host, &believed(host, &known, forget), cx)?;
        }
    }
    inventory.require_cluster(shown, &cluster.settings.name, cluster.settings.api_port)?;
    Ok(inventory.sorted())
}

/// A bastion that exists already passes connections on to the host's inner address.
fn go_through(host: &mut Host, bastion: &Bastion) {
    let (host_key, user) = (String::new(), bastion.user.clone());
    host.ssh.jump = Some(JumpHost { host: bastion.host.clone(), user, port: bastion.port, host_key });
    host.external_address = None;
}

/// Takes the keys over where the machine and the way to it are the same, and none of them is to be
/// forgotten. Returns whether it has.
fn remember(host: &mut Host, known: &[Host], forget: &BTreeSet<String>) -> bool {
    if machines(host).any(|machine| forget.contains(machine)) {
        return false;
    }
    let way = |host: &Host| {
        let jump = host.ssh.jump.as_ref().map(|jump| (jump.host.clone(), jump.port));
        (host.name.clone(), host.instance.clone(), host.ssh_address(), host.ssh.port, jump)
    };
    let same = known.iter().find(|known| way(known) == way(host));
    if let Some(same) = same {
        host.ssh.clone_from(&same.ssh);
    }
    same.is_some()
}

/// The names by which keys on the way to a host are forgotten: its own, and the bastion's address.
fn machines(host: &Host) -> impl Iterator<Item = &str> {
    std::iter::once(host.name.as_str()).chain(host.ssh.jump.iter().map(|jump| jump.host.as_str()))
}

/// `believed` are the lines of those machines on the way to the host whose keys are known and to be
/// kept.
fn learn(cluster: &Cluster, host: &mut Host, believed: &str, cx: &Cx) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let file = scratch.path().join("known_hosts");
    Store::at(scratch.path()).write_file("known_hosts", believed.as_bytes(), 0o600)?;
    cx.progress(format!("waiting until {} answers at {}", host.name, host.ssh_address()));
    let ssh = cluster.first_ssh(host, &file).log(cx.log_path()).timeout(cx.remaining());
    ssh.run(&["true"]).map_err(|error| still_boots(error, host))?;
    let missing = |what: &str| Error::bug(format!("ssh reached {what} and left no host key of it"));
    let address = host.ssh_address().to_string();
    host.ssh.host_key = known_hosts::find(&file, &address, host.ssh.port)?.ok_or_else(|| missing(&address))?;
    if let Some(jump) = &mut host.ssh.jump {
        jump.host_key = known_hosts::find(&file, &jump.host, jump.port)?.ok_or_else(|| missing(&jump.host))?;
    }
    cx.progress(format!("{} has the host key {}", host.name, host.ssh.host_key));
    Ok(())
}

/// The lines of known hosts to begin with: of a bastion that some host is reached through already,
/// and where the bastion is the machine to forget, of the host behind it.
fn believed(host: &Host, known: &[Host], forget: &BTreeSet<String>) -> String {
    let Some(jump) = &host.ssh.jump else { return String::new() };
    let is_kept = |name: &str| !forget.contains(name);
    let through = |known: &&Host| {
        known.ssh.jump.as_ref().is_some_and(|known| (&known.host, known.port) == (&jump.host, jump.port))
    };
    // The line of the jump host is the first of the two.
    let line = |known: &Host, index: usize| known.known_hosts().lines().nth(index).map(|line| format!("{line}\n"));
    if is_kept(&jump.host) {
        return known.iter().find(through).and_then(|known| line(known, 0)).unwrap_or_default();
    }
    let same = known.iter().filter(through).find(|known| known.name == host.name && known.instance == host.instance);
    same.filter(|known| is_kept(&known.name)).and_then(|known| line(known, 1)).unwrap_or_default()
}

/// A booting machine refuses logins before its first user is made; that is transient, like a
/// machine that does not answer.
fn still_boots(error: Error, host: &Host) -> Error {
    let refuses = error.evidence_lines().iter().any(|line| line.contains("Permission denied"));
    if !refuses || error.class() != Class::Precondition {
        return error;
    }
    let message = format!("{} does not let {} in", host.name, host.ssh.user);
    Error::transient(message)
        .source(error)
        .hint("look at the console of the machine: has cloud-init made this user, with this key?")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    fn host(instance: &str, key: &str) -> Host {
        serde_json::from_value(json!({
            "name": "c-control-plane-0", "role": "control-plane", "address": "10.0.0.2", "instance": instance,
            "ssh": {"user": "turnup", "port": 22, "host_key": key,
                "jump": {"host": "192.0.2.1", "user": "turnup", "port": 22, "host_key": if key.is_empty() { "" } else { "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAJUMPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }}},
        }))
        .unwrap()
    }

    #[test]
    fn a_key_is_kept_for_the_same_machine_only() {
        let known = [host("i-1", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")];
        let none = BTreeSet::new();
        let mut same = host("i-1", "");
        assert!(remember(&mut same, &known, &none));
        assert_eq!(same.ssh, known[0].ssh);
        let mut other = host("i-2", "");
        assert!(!remember(&mut other, &known, &none) && other.ssh.host_key.is_empty());
        assert_eq!(
            believed(&other, &known, &none),
            "192.0.2.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAJUMPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
            "the bastion is still the same"
        );
        let mut through = host("i-1", "");
        through.external_address = Some("192.0.2.9".parse().unwrap());
        go_through(&mut through, &Bastion { host: "door".into(), user: "passer".into(), port: 2200 });
        assert_eq!(through.ssh_address(), through.address, "the bastion sees the inner one");
        assert!(!remember(&mut through, &known, &none), "another way");
        let mut moved = host("i-1", "");
        moved.external_address = Some("192.0.2.9".parse().unwrap());
        assert!(!remember(&mut moved, &known, &none), "another machine may answer there");
    }

    #[test]
    fn only_the_key_that_the_user_names_is_reset() {
        let known = [host("i-1", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")];
        let forget = |name: &str| BTreeSet::from([name.to_owned()]);
        let mut same = host("i-1", "");
        assert!(!remember(&mut same, &known, &forget("c-control-plane-0")));
        assert_eq!(
            believed(&same, &known, &forget("c-control-plane-0")),
            "192.0.2.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAJUMPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
        );
        assert!(!remember(&mut same, &known, &forget("192.0.2.1")));
        assert_eq!(
            believed(&same, &known, &forget("192.0.2.1")),
            "10.0.0.2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
        );
        assert_eq!(believed(&host("i-2", ""), &known, &forget("192.0.2.1")), "", "another machine");
        assert!(remember(&mut same, &known, &forget("c-control-plane-1")));
    }
}
