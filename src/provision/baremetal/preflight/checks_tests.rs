//! Each finding by itself, and none for hosts that are as they should be.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;

use super::*;
use crate::inventory::SshAccess;
use crate::provision::baremetal::preflight::probe::FoundProgram;

fn host(index: u8) -> Host {
    let text = format!(
        r#"{{"name": "h{index}", "role": "{}", "address": "192.0.2.{index}", "instance": "i",
            "ssh": {{"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{index:A>42}"}}}}"#,
        if index == 0 { "control-plane" } else { "worker" }
    );
    serde_json::from_str(&text).unwrap()
}

fn seen(index: u8) -> HostReport {
    HostReport {
        clock: Some((-0.2, 0.1)),
        system: "Linux".into(),
        release: "6.1.0-13-amd64".into(),
        arch: "x86_64".into(),
        os_release: "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n".into(),
        systemd: Some(252),
        container: false,
        cgroup: 2,
        machine_id: format!("{index:032}"),
        product_uuid: format!("0000-{index}"),
        disk_free_kib: Some(20 * GIB),
        memory_kib: Some(4 * GIB),
        swap: false,
        queue: true,
        macs: BTreeMap::from([("eth0".into(), format!("52:54:00:00:00:{index:02}"))]),
        addresses: BTreeMap::from([(format!("192.0.2.{index}"), "eth0".into()), ("127.0.0.1".into(), "lo".into())]),
        lacks: Vec::new(),
        firewalls: Vec::new(),
        own: BTreeMap::new(),
        runs: BTreeSet::new(),
        taken: false,
        listens: BTreeMap::from([(22, "sshd".to_owned())]),
        etcd_disk: false,
        whole: true,
    }
}

fn judge_all(pairs: &[(&Host, HostReport)]) -> Findings {
    let advisories = &Advisories::embedded().unwrap();
    let requirements = Requirements {
        api_port: 6443,
        arch: "x86_64",
        nftables: true,
        network_policies: true,
        pods: "10.244.0.0/16",
        has_vxlan: true,
        runc: "1.5.2",
        advisories,
    };
    judge(pairs, &requirements)
}

/// What is found when the second of three hosts is changed like this.
fn findings(change: impl FnOnce(&mut Host, &mut HostReport)) -> Findings {
    let mut hosts: Vec<Host> = (0..3).map(host).collect();
    let mut all: Vec<HostReport> = (0..3).map(seen).collect();
    change(&mut hosts[1], &mut all[1]);
    let pairs: Vec<(&Host, HostReport)> = hosts.iter().zip(all).collect();
    judge_all(&pairs)
}

#[test]
fn hosts_as_they_should_be_have_no_findings() {
    assert_eq!(findings(|_, _| {}), Findings::default());
}

#[test]
fn each_fault_is_found_and_nothing_besides() {
    type Change = fn(&mut Host, &mut HostReport);
    let cases: [(Change, &str); 31] = [
        (|_, seen| seen.queue = false, "its kernel has neither nft_queue nor xt_NFQUEUE, which NetworkPolicies need"),
        (|_, seen| seen.whole = false, "its answer broke off"),
        (|host, _| host.etcd_device = "/dev/sdb".into(), "it has no disk /dev/sdb for etcd: ls -l /dev/disk/by-id"),
        (
            |_, seen| seen.lacks = vec!["fsck.ext4".into(), "mkfs.ext4".into()],
            "it lacks fsck.ext4, mkfs.ext4: install e2fsprogs",
        ),
        (|_, seen| seen.system = "FreeBSD".into(), "it runs FreeBSD, not Linux"),
        (|_, seen| seen.arch = "aarch64".into(), "its architecture is aarch64, and this turnup is made for x86_64"),
        (|_, seen| seen.release = "5.10.0-21".into(), "its kernel is 5.10.0-21; kube-proxy needs 5.13"),
        (|_, seen| seen.systemd = None, "systemd is not its init"),
        (|_, seen| seen.systemd = Some(239), "its systemd is 239; 244 or newer"),
        (|_, seen| seen.cgroup = 0, "no cgroups are mounted"),
        (
            |_, seen| seen.lacks = vec!["conntrack".into(), "ip".into(), "ss".into()],
            "it lacks conntrack, ip, ss: install conntrack iproute2",
        ),
        (
            |_, seen| {
                seen.os_release = "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n".into();
                seen.lacks = vec!["conntrack".into(), "ip".into(), "iptables".into()];
            },
            "it lacks conntrack, ip, iptables: install conntrack-tools iproute iptables-nft",
        ),
        (
            |_, seen| {
                seen.os_release = "ID=flatcar\nID_LIKE=coreos\n".into();
                seen.lacks = vec!["conntrack".into()];
            },
            "it lacks conntrack: its image has no packages; take another image",
        ),
        (
            |_, seen| {
                seen.os_release = "ID=\"opensuse-leap\"\nPRETTY_NAME=\"openSUSE Leap 15.6\"\n".into();
                seen.lacks = vec!["conntrack".into()];
            },
            "it runs openSUSE Leap 15.6, which is of no family that turnup knows: Debian, Ubuntu and their like; Fedora",
        ),
        (|_, seen| seen.os_release = "ID=fedora\nVARIANT_ID=coreos\n".into(), ""),
        (|_, seen| seen.machine_id.clear(), "it has no machine-id"),
        (|_, seen| seen.disk_free_kib = Some(2 * GIB), "2.0 GiB are free on /var"),
        (|_, seen| seen.disk_free_kib = None, "does not tell how much is free"),
        (|_, seen| seen.memory_kib = Some(GIB / 4), "it has 0.2 GiB of memory; a worker host needs 0.5 GiB"),
        (|_, seen| seen.clock = Some((14.0, 14.3)), "its clock is 14.0 s ahead"),
        (|_, seen| seen.clock = Some((-3.5, -2.5)), "its clock is 2.5 s behind"),
        (|_, seen| seen.clock = None, "does not tell the time"),
        (|_, seen| drop(seen.addresses.insert("192.0.2.1".into(), "eth0".into())), ""),
        (
            |host, _| host.address = "192.0.2.99".parse().unwrap(),
            "no interface of it has the address 192.0.2.99; it has 192.0.2.1",
        ),
        (|_, seen| drop(seen.listens.insert(10250, "kubelet".into())), "port 10250 is in use by kubelet"),
        (
            |host, _| host.ssh.host_key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{:A>42}", 0),
            "it has the SSH host key of h0",
        ),
        (|_, seen| seen.machine_id = format!("{:032}", 0), "it has the machine-id of h0"),
        (|_, seen| seen.product_uuid = "0000-0".into(), "it has the product uuid of h0"),
        (|_, seen| drop(seen.macs.insert("eth0".into(), "52:54:00:00:00:00".into())), "it has the MAC address of h0"),
        (|_, seen| seen.clock = Some((1.9, 2.3)), ""),
        (|host, _| host.ssh = SshAccess { port: 2222, ..host.ssh.clone() }, ""),
    ];
    for (at, (change, expected)) in cases.into_iter().enumerate() {
        let found = findings(change);
        if expected.is_empty() {
            assert_eq!(found.faults, [], "case {at}");
            continue;
        }
        let about: Vec<&str> = found.faults.iter().map(|(host, _)| host.as_str()).collect();
        assert_eq!(about, ["h1"], "{expected}: {found:?}");
        assert!(found.faults[0].1.contains(expected), "{expected}: {found:?}");
    }
}

#[test]
fn what_works_is_a_note() {
    let found = findings(|_, seen| {
        seen.swap = true;
        seen.cgroup = 1;
        seen.disk_free_kib = Some(4 * GIB);
    });
    assert_eq!((found.faults.len(), found.notes.len()), (0, 3), "{found:?}");
}

#[test]
fn a_firewall_of_the_hosts_own_is_told_what_the_cluster_needs() {
    let found = findings(|host, seen| {
        host.role = Role::ControlPlane;
        seen.firewalls = vec!["firewalld".into()];
    });
    let needs = "firewalld is active, and turnup changes nothing in it: it must let in TCP 6443, 2379-2380 and 10250, UDP 8472 from \
                 the other hosts, node ports from clients, and let through all from and to the pods' network 10.244.0.0/16";
    assert_eq!(found.notes, [("h1".to_owned(), needs.to_owned())]);
    assert_eq!(found.faults, []);
}

#[test]
fn runtimes_of_the_hosts_own_are_named_with_what_becomes_of_them() {
    let own = |program: &str, version: &str| {
        (program.to_owned(), FoundProgram { path: format!("/usr/bin/{program}"), version: version.to_owned() })
    };
    let old = |seen: &mut HostReport| {
        seen.own =
            BTreeMap::from([own("runc", "1.1.5+ds1"), own("containerd", "1.6.20~ds1"), own("dockerd", "24.0.5")]);
        seen.runs = ["containerd", "docker", "crio"].map(str::to_owned).into();
    };
    let found = findings(|_, seen| old(seen));
    assert_eq!(found.faults, []);
    let notes: Vec<&str> = found.notes.iter().map(|(_, note)| note.as_str()).collect();
    insta::assert_snapshot!(notes.join("\n"));
    let found = findings(|_, seen| {
        old(seen);
        seen.taken = true;
    });
    assert!(!found.notes.iter().any(|(_, note)| note.starts_with("containerd runs")), "{found:?}");
    let found = findings(|_, seen| seen.own = BTreeMap::from([own("runc", "1.5.2"), own("containerd", "2.4.2")]));
    assert_eq!(found, Findings::default(), "versions without known holes are not named");
}

#[test]
fn two_clocks_that_are_near_ours_may_be_too_far_from_each_other() {
    let (hosts, mut all): (Vec<Host>, Vec<HostReport>) = ((0..3).map(host).collect(), (0..3).map(seen).collect());
    all[0].clock = Some((1.4, 1.6));
    all[2].clock = Some((-1.6, -1.4));
    let pairs: Vec<(&Host, HostReport)> = hosts.iter().zip(all).collect();
    let found = judge_all(&pairs);
    assert_eq!(found.faults.len(), 1, "{found:?}");
    assert!(
        found.faults[0].0 == "h0" && found.faults[0].1.starts_with("its clock is 2.8 s ahead of that of h2"),
        "{found:?}"
    );
}

#[test]
fn a_host_that_was_taken_over_has_its_own_ports() {
    let found = findings(|_, seen| {
        seen.taken = true;
        seen.listens.insert(10250, "kubelet".into());
    });
    assert_eq!(found, Findings::default());
}

#[test]
fn containers_of_one_machine_share_its_number() {
    let (hosts, mut all): (Vec<Host>, Vec<HostReport>) = ((0..3).map(host).collect(), (0..3).map(seen).collect());
    for seen in &mut all {
        seen.container = true;
        seen.product_uuid = "the machine's".into();
    }
    let pairs: Vec<(&Host, HostReport)> = hosts.iter().zip(all).collect();
    assert_eq!(judge_all(&pairs), Findings::default());
    let found = findings(|_, seen| seen.product_uuid = PLACEHOLDERS[0].into());
    assert_eq!(found, Findings::default(), "a placeholder belongs to no program");
}
