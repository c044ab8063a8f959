//! What hosts know: journals, logs of static pods, network, mounts, units, versions. Each answer is
//! bounded on the host itself.

use std::time::{Duration, Instant};

use super::gathered::{FILE, Gathered, Item};
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::inventory::Host;
use crate::parallel;

/// A question that is not answered by then is given up.
const TIMEOUT: Duration = Duration::from_secs(20);
/// All questions to one host together.
const ALL: Duration = Duration::from_mins(2);
/// How many hosts are asked at once.
const PARALLEL: usize = 10;
/// What a host is asked: the file's name, and a line of shell whose end is kept.
const QUESTIONS: [(&str, &str); 9] = [
    ("containerd.log", "journalctl --no-pager --output=short-iso-precise --lines=5000 --unit=containerd.service"),
    ("kubelet.log", "journalctl --no-pager --output=short-iso-precise --lines=5000 --unit=kubelet.service"),
    ("turnup.log", "journalctl --no-pager --output=short-iso-precise --lines=5000 --unit='turnup*'"),
    ("kernel.log", "journalctl --no-pager --output=short-iso-precise --lines=1000 --dmesg"),
    (
        "static-pods.log",
        "for log in /var/log/pods/kube-system_etcd-*/*/*.log /var/log/pods/kube-system_kube-*/*/*.log; do \
         [ -f \"$log\" ] || continue; echo \"== $log\"; tail -c 100000 \"$log\"; done",
    ),
    (
        "network.txt",
        "ip -statistics address; ip route show table all; ip rule; ip neighbour; nft list ruleset; iptables-save",
    ),
    ("mounts.txt", "findmnt --noheadings --list; df -h; df -i; free -m"),
    (
        "units.txt",
        "systemctl --no-pager --failed; systemctl --no-pager --all --plain list-units; ps -e -o pid,ppid,stat,etime,rss,comm",
    ),
    (
        "versions.txt",
        "PATH=\"/opt/turnup/bin:$PATH:/usr/local/bin\"; uname -a; cat /etc/os-release; \
         turnup --version; containerd --version; kubelet --version; runc --version; date --iso-8601=seconds",
    ),
];

/// Asks every host that was handed over; one that does not answer is named.
pub(super) fn gather(cluster: &Cluster, gathered: &mut Gathered) {
    let hosts = match cluster.find_inventory() {
        Ok(inventory) => inventory.map(|inventory| inventory.hosts).unwrap_or_default(),
        Err(error) => return gathered.miss("the hosts", error.message()),
    };
    for answer in parallel::map(&hosts, PARALLEL, |host| ask(cluster, host)) {
        gathered.items.extend(answer.items);
        gathered.missing.extend(answer.missing);
    }
}

fn ask(cluster: &Cluster, host: &Host) -> Gathered {
    let mut gathered = Gathered::default();
    let end = Instant::now() + ALL;
    for (name, line) in QUESTIONS {
        let what = format!("hosts/{}/{name}", host.name);
        if Instant::now() > end {
            gathered.miss(what, "the host took too long over the questions before");
            continue;
        }
        match ask_one(cluster, host, line) {
            Ok(text) => gathered.items.push(Item::new(what, text.into_bytes())),
            // It is away, so it is away for the other questions as well.
            Err(error) if gathered.items.is_empty() => {
                gathered.miss(&host.name, error.message());
                break;
            }
            Err(error) => gathered.miss(what, error.message()),
        }
    }
    gathered
}

fn ask_one(cluster: &Cluster, host: &Host, line: &str) -> Result<String> {
    let script = format!("{{ {line}; }} 2>&1 | tail -c {FILE}");
    let ssh = cluster.ssh(host)?.timeout(TIMEOUT);
    let answer = ssh.try_run(&["sh", "-c", &script])?;
    answer.map(|output| output.stdout).map_err(|failure| Error::new(Class::Transient, failure.to_string()))
}
