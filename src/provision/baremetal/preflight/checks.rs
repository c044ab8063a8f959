//! Can these hosts become nodes? Judges what was seen of them, each alone and all together. Pure:
//! asks no host.

use std::collections::BTreeMap;

use super::probe::HostReport;
use crate::artifacts::{Advisories, describe_advisories};
use crate::inventory::system::SystemFamily;
use crate::inventory::{Host, Role};

/// kube-proxy's mode nftables asks for it.
const KERNEL: [u32; 2] = [5, 13];
/// The first that hands all controllers of cgroup v2 on, which kubelet's systemd driver needs.
const SYSTEMD: u32 = 244;
/// How far apart clocks may be, in seconds: etcd complains at one, and a token of ours is young.
const SKEW: f64 = 2.0;
const GIB: u64 = 1 << 20;
/// Less than that does not hold the artifacts, in KiB.
const DISK: u64 = 3 * GIB;
/// Not enough for long, in KiB.
const DISK_SMALL: u64 = 10 * GIB;
/// What vendors leave where a number of the machine's own belongs.
const PLACEHOLDERS: [&str; 3] = [
    "03000200-0400-0500-0006-000700080009",
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
];

/// What is asked of every host.
pub(in crate::provision::baremetal) struct Requirements<'a> {
    pub(in crate::provision::baremetal) api_port: u16,
    /// The architecture of this turnup, which is copied to the hosts.
    pub(in crate::provision::baremetal) arch: &'a str,
    /// Whether kube-proxy works by nftables.
    pub(in crate::provision::baremetal) nftables: bool,
    /// Whether a program of the cluster judges packets.
    pub(in crate::provision::baremetal) network_policies: bool,
    /// The pods' network, in CIDR form.
    pub(in crate::provision::baremetal) pods: &'a str,
    /// Whether pods of different hosts speak through VXLAN.
    pub(in crate::provision::baremetal) has_vxlan: bool,
    /// The version of runc that nodes get.
    pub(in crate::provision::baremetal) runc: &'a str,
    /// Versions of the host's own programs that have known holes.
    pub(in crate::provision::baremetal) advisories: &'a Advisories,
}

/// What was found, in sentences; each with the host that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::provision::baremetal) struct Findings {
    /// What has to be changed first.
    pub(in crate::provision::baremetal) faults: Vec<(String, String)>,
    /// What works and is worth knowing.
    pub(in crate::provision::baremetal) notes: Vec<(String, String)>,
}

/// Everything about these hosts, in their order.
pub(in crate::provision::baremetal) fn judge(
    hosts: &[(&Host, HostReport)],
    requirements: &Requirements<'_>,
) -> Findings {
    let mut findings = Findings::default();
    for (host, seen) in hosts {
        let mut check = HostCheck { host, seen, requirements, faults: Vec::new(), notes: Vec::new() };
        check.judge();
        let named = |texts: Vec<String>| texts.into_iter().map(|text| (host.name.clone(), text));
        findings.faults.extend(named(check.faults));
        findings.notes.extend(named(check.notes));
    }
    findings.faults.extend(find_twins(hosts));
    findings.faults.extend(find_apart(hosts));
    findings
}

/// One host.
struct HostCheck<'a> {
    host: &'a Host,
    seen: &'a HostReport,
    requirements: &'a Requirements<'a>,
    faults: Vec<String>,
    notes: Vec<String>,
}

impl HostCheck<'_> {
    fn judge(&mut self) {
        if !self.seen.whole {
            self.faults.push("its answer broke off: look what its login shell prints or runs".into());
            return;
        }
        self.judge_system();
        self.judge_room();
        self.judge_clock();
        self.judge_network();
        self.note_runtimes();
    }

    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    fn judge_system(&mut self) {
        let (seen, requirements) = (self.seen, self.requirements);
        if seen.system != "Linux" {
            return self.fault(format!("it runs {}, not Linux", seen.system));
        }
        if seen.arch != requirements.arch {
            self.fault(format!("its architecture is {}, and this turnup is made for {}", seen.arch, requirements.arch));
        }
        let kernel: Vec<u32> = seen.release.split(['.', '-']).take(2).filter_map(|part| part.parse().ok()).collect();
        if requirements.nftables && kernel.as_slice() < KERNEL.as_slice() {
            let [major, minor] = KERNEL;
            self.fault(format!(
                "its kernel is {}; kube-proxy needs {major}.{minor} or newer in the mode nftables",
                seen.release
            ));
        }
        if requirements.network_policies && !seen.queue {
            self.fault(
                "its kernel has neither nft_queue nor xt_NFQUEUE, which NetworkPolicies need: install the modules of its \
                 kernel, or turnup config set phase3.network_policies=n",
            );
        }
        match seen.systemd {
            None => self.fault("systemd is not its init: the node's services are units of systemd"),
            Some(version) if version < SYSTEMD => {
                self.fault(format!("its systemd is {version}; {SYSTEMD} or newer is needed"));
            }
            Some(_) => {}
        }
        match seen.cgroup {
            2 => {}
            1 => self.notes.push("cgroup v1 works; version 2 is where Kubernetes is going".into()),
            _ => self.fault("no cgroups are mounted: mount -t cgroup2 none /sys/fs/cgroup"),
        }
        match SystemFamily::of_release(&seen.os_release) {
            // What it lacks would be said in the names of another system.
            Err(why) if !seen.taken => self.fault(why),
            Err(_) => {}
            Ok(_) if seen.lacks.is_empty() => {}
            Ok(family) => {
                let advice = family.packages(&seen.lacks).map(|names| format!("install {names}"));
                let advice = advice.unwrap_or_else(|| "its image has no packages; take another image".to_owned());
                self.fault(format!("it lacks {}: {advice}", seen.lacks.join(", ")));
            }
        }
        if seen.machine_id.is_empty() {
            self.fault("it has no machine-id: systemd-machine-id-setup");
        }
    }

    fn judge_room(&mut self) {
        match self.seen.disk_free_kib {
            Some(free) if free < DISK => {
                self.fault(format!("{} are free on /var; 3 GiB are needed, 10 comfortable", gib(free)));
            }
            Some(free) if free < DISK_SMALL => {
                self.notes.push(format!("{} are free on /var; 10 GiB are comfortable", gib(free)));
            }
            Some(_) => {}
            None => self.fault("it does not tell how much is free on /var (df -P -k /var)"),
        }
        let disk = &self.host.etcd_device;
        if !disk.is_empty() && !self.seen.etcd_disk {
            self.fault(format!("it has no disk {disk} for etcd: ls -l /dev/disk/by-id /dev/disk/by-path"));
        }
        let least = if self.host.role == Role::ControlPlane { GIB } else { GIB / 2 };
        let memory = self.seen.memory_kib.unwrap_or(0);
        // What the kernel keeps for itself is missing from the total.
        if memory < least / 10 * 9 {
            let role = self.host.role.name();
            self.fault(format!("it has {} of memory; a {role} host needs {}", gib(memory), gib(least)));
        }
        if self.seen.swap {
            self.notes.push("swap is on; pods get none of it".into());
        }
    }

    fn judge_clock(&mut self) {
        match self.seen.clock {
            None => self.fault("it does not tell the time (date +%s)"),
            Some((least, _)) if least > SKEW => {
                self.fault(format!(
                    "its clock is {least:.1} s ahead of this machine's: set one of them (timedatectl set-ntp true)"
                ));
            }
            Some((_, most)) if most < -SKEW => {
                self.fault(format!(
                    "its clock is {:.1} s behind this machine's: set one of them (timedatectl set-ntp true)",
                    -most
                ));
            }
            Some(_) => {}
        }
    }

    /// Runtimes of the host's own: nodes use none of them. What turnup does about each, and what is
    /// known to be wrong with it.
    fn note_runtimes(&mut self) {
        let (seen, requirements) = (self.seen, self.requirements);
        for (program, own) in seen.own.iter().filter(|(program, _)| ["runc", "containerd"].contains(&program.as_str()))
        {
            let holes = requirements.advisories.find(program, &own.version);
            if holes.is_empty() {
                continue;
            }
            let instead = if program == "runc" {
                format!("the pinned runc {}", requirements.runc)
            } else {
                "the pinned one".into()
            };
            let holes = describe_advisories(&holes);
            let (version, path) = (&own.version, &own.path);
            self.notes.push(format!("its own {program} {version} ({path}) has {holes}; pods run under {instead}"));
        }
        let runs = |unit: &str| seen.runs.contains(unit);
        // Once turnup has been here, containerd is turnup's.
        if runs("containerd") && !seen.taken {
            self.notes.push(
                "containerd runs on it: turnup's takes its unit, its socket and /var/lib/containerd until turnup reset"
                    .into(),
            );
        }
        if runs("docker") {
            self.notes.push(
                "docker runs on it: its FORWARD policy can drop the packets of pods, and it loses the containerd that it was \
                 installed with; better: systemctl disable --now docker.socket docker.service"
                    .into(),
            );
        }
        if runs("crio") {
            self.notes.push("cri-o runs on it and is not used; better: systemctl disable --now crio".into());
        }
    }

    fn judge_network(&mut self) {
        let address = self.host.address.to_string();
        if !self.seen.addresses.is_empty() && !self.seen.addresses.contains_key(&address) {
            let own: Vec<&str> =
                self.seen.addresses.keys().map(String::as_str).filter(|one| *one != "127.0.0.1").collect();
            self.fault(format!("no interface of it has the address {address}; it has {}", own.join(", ")));
        }
        for firewall in &self.seen.firewalls {
            self.notes.push(self.describe_needs(firewall));
        }
        if self.seen.taken {
            return;
        }
        for port in self.host.role.ports(self.requirements.api_port) {
            if let Some(owner) = self.seen.listens.get(&port) {
                self.fault(format!("port {port} is in use by {owner}, and the node needs it"));
            }
        }
    }
}

impl HostCheck<'_> {
    /// What a firewall of the host's own has to let through; turnup's own rules only close.
    fn describe_needs(&self, firewall: &str) -> String {
        let Requirements { api_port, pods, has_vxlan, .. } = self.requirements;
        let mut ports = "TCP 10250".to_owned();
        if self.host.role == Role::ControlPlane {
            ports = format!("TCP {api_port}, 2379-2380 and 10250");
        }
        if *has_vxlan {
            ports += ", UDP 8472";
        }
        format!(
            "{firewall} is active, and turnup changes nothing in it: it must let in {ports} from the other hosts, node ports from clients, and let through all from and to the pods' network {pods}"
        )
    }
}

/// What two hosts may not have in common.
fn find_twins(hosts: &[(&Host, HostReport)]) -> Vec<(String, String)> {
    let placeholder = |uuid: &str| PLACEHOLDERS.contains(&uuid);
    let facts = |(host, seen): &(&Host, HostReport)| {
        let uuid = (!seen.container && !placeholder(&seen.product_uuid)).then(|| seen.product_uuid.clone());
        [
            ("the SSH host key", Some(host.ssh.host_key.clone())),
            ("the machine-id", Some(seen.machine_id.clone())),
            ("the product uuid", uuid),
            ("the MAC address", seen.mac_of(&host.address.to_string()).map(str::to_owned)),
        ]
    };
    let mut owners: BTreeMap<(&str, String), &str> = BTreeMap::new();
    let mut twins = Vec::new();
    for entry in hosts {
        for (what, value) in facts(entry) {
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            let name = entry.0.name.as_str();
            let first = *owners.entry((what, value.clone())).or_insert(name);
            if first != name {
                twins.push((
                    name.to_owned(),
                    format!("it has {what} of {first} ({}): {}", shorten(&value), remedy(what)),
                ));
            }
        }
    }
    twins
}

fn remedy(what: &str) -> &'static str {
    match what {
        "the SSH host key" => "rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh",
        "the machine-id" => "rm -f /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup; reboot",
        _ => "are both the same machine? If they were cloned, give this one its own",
    }
}

fn shorten(value: &str) -> String {
    if value.len() <= 40 { value.to_owned() } else { format!("{}…", value.chars().take(40).collect::<String>()) }
}

/// The two clocks that are farthest apart, where neither of them is too far from ours.
fn find_apart(hosts: &[(&Host, HostReport)]) -> Option<(String, String)> {
    let near = |(least, most): &(f64, f64)| *least <= SKEW && *most >= -SKEW;
    let clocks = || hosts.iter().filter_map(|(host, seen)| Some((host, seen.clock.filter(near)?)));
    let ahead = clocks().max_by(|one, other| one.1.0.total_cmp(&other.1.0))?;
    let behind = clocks().min_by(|one, other| one.1.1.total_cmp(&other.1.1))?;
    let apart = ahead.1.0 - behind.1.1;
    let text =
        format!("its clock is {apart:.1} s ahead of that of {}: set them (timedatectl set-ntp true)", behind.0.name);
    (apart > SKEW).then(|| (ahead.0.name.clone(), text))
}

fn gib(kib: u64) -> String {
    let tenths = kib * 10 / GIB;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
