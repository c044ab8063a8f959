//! The typed list of hosts (`phase1.baremetal.hosts`) becomes the inventory. Pure: who knows host
//! keys is asked through a function.

use crate::artifacts::Digest;
use crate::cluster::{Bastion, SshSettings};
use crate::error::{Error, Result};
use crate::inventory::{Endpoint, Host, Inventory, JumpHost, ListedHost, Role, SshAccess, scan_command};

/// In `ssh_jump`: this host is reached without the bastion that all others have.
const NO_JUMP: &str = "none";

/// What the list becomes.
pub(super) struct List<'a> {
    pub(super) cluster: &'a str,
    pub(super) api_port: u16,
    /// What leads to the API servers; empty where the one control-plane host does.
    pub(super) api_host: &'a str,
    pub(super) hosts: &'a [ListedHost],
    pub(super) access: &'a SshSettings,
    /// The public key of the host at this address and port, from the user's own file.
    pub(super) find_key: &'a dyn Fn(&str, u16) -> Result<Option<String>>,
}

/// The unknown host keys, by the host at which they are missing.
type Missing = Vec<(String, String, u16)>;

impl List<'_> {
    /// The inventory; an error that names every host without a key when there is one.
    pub(super) fn inventory(&self) -> Result<Inventory> {
        let mut missing = Missing::new();
        let hosts = self.hosts.iter().map(|host| self.host(host, &mut missing)).collect::<Result<Vec<Host>>>()?;
        if !missing.is_empty() {
            return Err(self.without_keys(&missing));
        }
        let control_plane = hosts.iter().find(|host| host.role == Role::ControlPlane);
        let own = control_plane.map(|host| host.address.to_string()).unwrap_or_default();
        let host = if self.api_host.is_empty() { own } else { self.api_host.to_owned() };
        let node_balancer = hosts.iter().filter(|host| host.role == Role::ControlPlane).count() > 1;
        let api = Endpoint { node_balancer, ..Endpoint::new(host, self.api_port) };
        let inventory = Inventory::of_hosts(self.cluster, &"baremetal", api, hosts);
        Inventory::from_value("phase1.baremetal.hosts", &serde_json::to_value(&inventory).unwrap_or_default())
    }

    fn host(&self, listed: &ListedHost, missing: &mut Missing) -> Result<Host> {
        let address = listed.address.to_string();
        let port = self.port(listed);
        let host_key = self.key(listed.host_key.as_ref(), &listed.name, &address, port, missing)?;
        let jump = match self.jump(listed)? {
            None => None,
            Some((jump, known)) => {
                let host_key = self.key(known, &listed.name, &jump.host, jump.port, missing)?;
                Some(JumpHost { host: jump.host, user: jump.user, port: jump.port, host_key })
            }
        };
        let digest = Digest::of(host_key.as_bytes()).to_string();
        Ok(Host {
            name: listed.name.clone(),
            role: listed.role,
            group: String::new(),
            address: listed.address.into(),
            // A reinstalled host has made a new key.
            instance: format!("key-{}", &digest[..16]),
            ssh: SshAccess { user: self.user(listed), port, host_key, jump },
            blobs: String::new(),
            external_address: None,
            zone: listed.zone.clone(),
            labels: listed.labels.clone(),
            taints: listed.taints.clone(),
            etcd_device: listed.etcd_device.clone(),
            etcd_volume: None,
        })
    }

    fn user(&self, listed: &ListedHost) -> String {
        listed.ssh_user.as_ref().unwrap_or(&self.access.user).clone()
    }

    fn port(&self, listed: &ListedHost) -> u16 {
        listed.ssh_port.unwrap_or(self.access.port)
    }

    /// The host's own word, else the file of known hosts.
    fn key(&self, own: Option<&String>, name: &str, address: &str, port: u16, missing: &mut Missing) -> Result<String> {
        let found = match own {
            Some(key) => Some(key.clone()),
            None => (self.find_key)(address, port)?,
        };
        Ok(found.unwrap_or_else(|| {
            missing.push((name.to_owned(), address.to_owned(), port));
            String::new()
        }))
    }

    /// The host that this one is reached through, with its key where the list has it.
    fn jump(&self, listed: &ListedHost) -> Result<Option<(Bastion, Option<&String>)>> {
        let Some(text) = &listed.ssh_jump else {
            return Ok(self.access.bastion.clone().map(|bastion| (bastion, None)));
        };
        if text == NO_JUMP {
            return Ok(None);
        }
        let Some(other) = self.hosts.iter().find(|host| host.name == *text) else {
            let jump = parse_jump(text, &self.access.user).ok_or_else(|| {
                Error::config(format!("phase1.baremetal.hosts: ssh_jump {text:?} of {} is no host", listed.name))
            })?;
            return Ok(Some((jump, None)));
        };
        let direct = other.ssh_jump.as_ref().map_or(self.access.bastion.is_none(), |jump| jump == NO_JUMP);
        if !direct {
            let message = format!(
                "phase1.baremetal.hosts: {} is to be reached through {text}, which is itself behind another host",
                listed.name
            );
            return Err(Error::config(message)
                .hint(format!("give {text} \"ssh_jump\": \"none\", or {} another one", listed.name)));
        }
        let jump = Bastion { host: other.address.to_string(), user: self.user(other), port: self.port(other) };
        Ok(Some((jump, other.host_key.as_ref())))
    }

    fn without_keys(&self, missing: &Missing) -> Error {
        let file = self.access.known_hosts.as_ref().map(|file| file.display().to_string());
        let message = match missing.as_slice() {
            [one] => format!("the SSH host key of {} ({}) is unknown, so an attacker could pose as it", one.0, one.1),
            many => format!("the SSH host keys of {} hosts are unknown, so an attacker could pose as them", many.len()),
        };
        let lacks = file.as_ref().map_or_else(
            || "phase1.ssh.known_hosts_file names no file".to_owned(),
            |file| format!("{file} does not have it"),
        );
        let error = missing.iter().fold(Error::config(message), |error, (name, address, port)| {
            error.evidence(format!("{name}: its entry has no host_key for {address} port {port}, and {lacks}"))
        });
        let (_, address, port) = &missing[0];
        let scan = scan_command(address, *port);
        error.hint(match file {
            Some(file) => format!(
                "{scan} >>{file} (and compare it on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)"
            ),
            None => format!("{scan} (compare it on the host, then \"host_key\": what stands behind the address)"),
        })
    }
}

/// `[USER@]HOST[:PORT]`.
fn parse_jump(text: &str, user: &str) -> Option<Bastion> {
    let (user, rest) = text.split_once('@').unwrap_or((user, text));
    let (host, port) = rest.split_once(':').unwrap_or((rest, "22"));
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let is_fine = |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains(['/', '@', ':']);
    (is_fine(host) && is_fine(user)).then(|| Bastion { host: host.into(), user: user.into(), port })
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
