//! One look at a host before turnup touches it: a script that only reads, and what it said. Nothing
//! here judges.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// Prints one fact a line, the name first. Its argument is the disk that etcd is to have, or empty.
/// POSIX sh and what every Linux has: turnup is not on the host yet.
pub(in crate::provision::baremetal) const SCRIPT: &str = r#"PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
export PATH LC_ALL
echo "clock $(date +%s.%N)"
echo "kernel $(uname -s) $(uname -r) $(uname -m)"
sed -n 's/^/release /p' /etc/os-release
[ ! -d /run/systemd/system ] || echo "systemd $(systemctl --version | head -n 1 | cut -d ' ' -f 2)"
[ ! -e /run/systemd/container ] || echo "container yes"
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then echo "cgroup 2"; elif [ -d /sys/fs/cgroup/memory ]; then echo "cgroup 1"; fi
echo "machine-id $(cat /etc/machine-id)"
[ ! -r /sys/class/dmi/id/product_uuid ] || echo "product-uuid $(cat /sys/class/dmi/id/product_uuid)"
echo "disk $(df -P -k /var | tail -n 1)"
echo "memory $(grep '^MemTotal:' /proc/meminfo)"
[ "$(wc -l </proc/swaps)" -lt 2 ] || echo "swap yes"
for dir in /sys/class/net/*; do echo "mac ${dir##*/} $(cat "$dir/address")"; done
ip -o -4 addr show | sed 's/^/address /'
for tool in iptables nft ip ss conntrack modprobe mount; do command -v $tool >/dev/null || echo "lacks $tool"; done
if grep -q -E ' (nft_queue_eval|nfqueue_tg_v3)( |$)' /proc/kallsyms || modprobe -n -q nft_queue || modprobe -n -q xt_NFQUEUE; then
  echo "queue yes"
fi
if [ -n "$1" ]; then
  [ ! -b "$1" ] || echo "etcd-disk yes"
  for tool in blkid fsck.ext4 mkfs.ext4; do command -v $tool >/dev/null || echo "lacks $tool"; done
fi
[ "$(systemctl is-active firewalld 2>/dev/null)" != active ] || echo "firewall firewalld"
if command -v ufw >/dev/null && ufw status 2>/dev/null | grep -q '^Status: active'; then echo "firewall ufw"; fi
for tool in runc containerd dockerd crio; do
  path=$(command -v $tool) && echo "own $tool $path $($tool --version 2>&1 | head -n 1)"
done
for unit in containerd docker crio; do
  [ "$(systemctl is-active $unit.service 2>&1)" != active ] || echo "runs $unit"
done
[ ! -s /var/lib/turnup/restore-log.jsonl ] || echo "taken yes"
ss --no-header --listening --tcp --numeric --processes | sed 's/^/listens /'
echo end
"#;

/// What a host said of itself. What it did not say is empty or 0.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(in crate::provision::baremetal) struct HostReport {
    /// The host's clock, and how far it surely is from ours: at least and at most, in seconds;
    /// positive when ahead.
    pub(in crate::provision::baremetal) clock: Option<(f64, f64)>,
    pub(in crate::provision::baremetal) system: String,
    pub(in crate::provision::baremetal) release: String,
    pub(in crate::provision::baremetal) arch: String,
    /// Its `/etc/os-release`.
    pub(in crate::provision::baremetal) os_release: String,
    /// systemd's version; none where it is not the init.
    pub(in crate::provision::baremetal) systemd: Option<u32>,
    pub(in crate::provision::baremetal) container: bool,
    /// 1 or 2; 0 where none is mounted.
    pub(in crate::provision::baremetal) cgroup: u8,
    pub(in crate::provision::baremetal) machine_id: String,
    pub(in crate::provision::baremetal) product_uuid: String,
    pub(in crate::provision::baremetal) disk_free_kib: Option<u64>,
    pub(in crate::provision::baremetal) memory_kib: Option<u64>,
    pub(in crate::provision::baremetal) swap: bool,
    /// Whether its kernel can ask a program about packets: `nft_queue` or `xt_NFQUEUE`.
    pub(in crate::provision::baremetal) queue: bool,
    /// The MAC address of each interface.
    pub(in crate::provision::baremetal) macs: BTreeMap<String, String>,
    /// The interface of each IPv4 address.
    pub(in crate::provision::baremetal) addresses: BTreeMap<String, String>,
    /// Programs that are not there.
    pub(in crate::provision::baremetal) lacks: Vec<String>,
    /// Container runtimes of the host's own, by program.
    pub(in crate::provision::baremetal) own: BTreeMap<String, FoundProgram>,
    /// Those of them that run as a service: `containerd`, `docker`, `crio`.
    pub(in crate::provision::baremetal) runs: BTreeSet<String>,
    /// Whether there is a disk where etcd is to have its own.
    pub(in crate::provision::baremetal) etcd_disk: bool,
    /// Whether turnup has worked on this host before.
    pub(in crate::provision::baremetal) taken: bool,
    /// Firewalls of the host's own that are active.
    pub(in crate::provision::baremetal) firewalls: Vec<String>,
    /// Ports with a listener, and the name of its program.
    pub(in crate::provision::baremetal) listens: BTreeMap<u16, String>,
    /// Whether it said everything.
    pub(in crate::provision::baremetal) whole: bool,
}

/// A program of the host's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::provision::baremetal) struct FoundProgram {
    pub(in crate::provision::baremetal) path: String,
    /// As it says itself: `1.1.5+ds1`; empty when it does not.
    pub(in crate::provision::baremetal) version: String,
}

impl HostReport {
    /// What was said, between these two moments of our clock.
    pub(in crate::provision::baremetal) fn parse(said: &str, before: Timestamp, after: Timestamp) -> Self {
        let mut seen = Self::default();
        for line in said.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words: Vec<&str> = rest.split_whitespace().collect();
            seen.take(name, rest.trim(), &words, [before, after]);
        }
        seen
    }

    fn take(&mut self, name: &str, rest: &str, words: &[&str], asked: [Timestamp; 2]) {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        match name {
            "clock" => self.clock = compare_clock(rest, asked),
            "kernel" => [self.system, self.release, self.arch] = [word(0), word(1), word(2)].map(str::to_owned),
            "release" => self.os_release.extend([rest, "\n"]),
            "systemd" => {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                self.systemd = digits.parse().ok();
            }
            "container" => self.container = true,
            "cgroup" => self.cgroup = rest.parse().unwrap_or(0),
            "machine-id" => rest.clone_into(&mut self.machine_id),
            "product-uuid" => self.product_uuid = rest.to_lowercase(),
            "disk" => self.disk_free_kib = word(3).parse().ok(),
            "memory" => self.memory_kib = word(1).parse().ok(),
            "swap" => self.swap = true,
            "queue" => self.queue = true,
            "mac" => drop(self.macs.insert(word(0).to_owned(), word(1).to_lowercase())),
            "address" => {
                let address = word(3).split('/').next().unwrap_or_default();
                self.addresses.insert(address.to_owned(), word(1).to_owned());
            }
            "lacks" => self.lacks.push(rest.to_owned()),
            "own" => {
                let is_version = |word: &&&str| {
                    word.trim_start_matches('v').starts_with(|letter: char| letter.is_ascii_digit())
                        && word.contains('.')
                };
                let version = words.iter().skip(2).find(is_version).map_or("", |word| word.trim_end_matches(','));
                let program =
                    FoundProgram { path: word(1).to_owned(), version: version.trim_start_matches('v').to_owned() };
                self.own.insert(word(0).to_owned(), program);
            }
            "runs" => drop(self.runs.insert(rest.to_owned())),
            "etcd-disk" => self.etcd_disk = true,
            "taken" => self.taken = true,
            "firewall" => self.firewalls.push(rest.to_owned()),
            "listens" => {
                let port = word(3).rsplit(':').next().and_then(|port| port.parse().ok());
                let owner = rest.split_once("((\"").and_then(|(_, owner)| owner.split('"').next());
                if let Some(port) = port {
                    self.listens.insert(port, owner.unwrap_or("an unknown program").to_owned());
                }
            }
            "end" => self.whole = true,
            _ => {}
        }
    }

    /// The MAC address of the interface with this address.
    pub(in crate::provision::baremetal) fn mac_of(&self, address: &str) -> Option<&str> {
        let mac = self.macs.get(self.addresses.get(address)?)?;
        // Of tunnels and the like.
        (!mac.is_empty() && mac != "00:00:00:00:00:00").then_some(mac)
    }
}

/// The host spoke at some moment between the two: its clock is off by what lies outside.
fn compare_clock(said: &str, [before, after]: [Timestamp; 2]) -> Option<(f64, f64)> {
    // A `date` without nanoseconds says the second that it is in.
    let (whole, part) = said.split_once('.').unwrap_or((said, ""));
    let whole: i64 = whole.parse().ok()?;
    let (fraction, slack) =
        part.parse::<u64>().map_or((0.0, 1.0), |_| (format!("0.{part}").parse().unwrap_or(0.0), 0.0));
    let ahead_of = |moment: Timestamp| {
        let nanoseconds = f64::from(moment.subsec_nanosecond()) / 1e9;
        seconds(whole.saturating_sub(moment.as_second())) + fraction - nanoseconds
    };
    Some((ahead_of(after), ahead_of(before) + slack))
}

/// Differences of clocks are small; one of centuries is as wrong as one of years.
fn seconds(count: i64) -> f64 {
    let most = i32::MAX;
    f64::from(i32::try_from(count).unwrap_or(if count < 0 { -most } else { most }))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    const SAID: &str = "Welcome to this machine\nclock 1000.500000000\nkernel Linux 6.1.0-13-amd64 x86_64\n\
        release PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nrelease ID=debian\nsystemd 252\ncgroup 2\nmachine-id 0123abc\nproduct-uuid 4C4C-AB\n\
        disk /dev/sda1 41152736 9262108 29977396 24% /\nmemory MemTotal:  4032124 kB\nswap yes\nqueue yes\n\
        mac eth0 52:54:00:AA:00:01\nmac lo 00:00:00:00:00:00\n\
        address 1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n\
        address 2: eth0    inet 192.0.2.11/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever\n\
        lacks conntrack\nfirewall ufw\ntaken yes\n\
        own runc /usr/sbin/runc runc version 1.1.5+ds1\nown containerd /usr/bin/containerd containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20\n\
        own dockerd /usr/bin/dockerd Docker version v24.0.5, build 1234\nruns docker\n\
        listens LISTEN 0      128          0.0.0.0:22        0.0.0.0:*    users:((\"sshd\",pid=1,fd=3))\n\
        listens LISTEN 0      128             [::]:6443         [::]:*\nend\n";

    fn moment(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn each_line_is_a_fact() {
        let seen = HostReport::parse(SAID, moment(999), moment(1001));
        assert_eq!(seen.clock, Some((-0.5, 1.5)));
        assert_eq!(
            (seen.system.as_str(), seen.release.as_str(), seen.arch.as_str()),
            ("Linux", "6.1.0-13-amd64", "x86_64")
        );
        let os_release = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n";
        assert_eq!((seen.os_release.as_str(), seen.systemd, seen.cgroup), (os_release, Some(252), 2));
        assert_eq!((seen.disk_free_kib, seen.memory_kib), (Some(29_977_396), Some(4_032_124)));
        assert!(seen.swap && seen.queue && seen.taken && seen.whole && !seen.container);
        assert_eq!(seen.mac_of("192.0.2.11"), Some("52:54:00:aa:00:01"));
        assert_eq!([seen.mac_of("127.0.0.1"), seen.mac_of("192.0.2.12")], [None, None]);
        assert_eq!((seen.lacks, seen.firewalls), (vec!["conntrack".to_owned()], vec!["ufw".to_owned()]));
        let versions: Vec<&str> = seen.own.values().map(|program| program.version.as_str()).collect();
        assert_eq!(versions, ["1.6.20~ds1", "24.0.5", "1.1.5+ds1"]);
        assert_eq!((seen.own["runc"].path.as_str(), seen.runs.contains("docker")), ("/usr/sbin/runc", true));
        assert_eq!(seen.listens, BTreeMap::from([(22, "sshd".to_owned()), (6443, "an unknown program".to_owned())]));
    }

    #[test]
    fn a_clock_is_off_by_what_lies_outside_of_the_question() {
        let clock =
            |said: &str| HostReport::parse(&format!("clock {said}\n"), moment(1000), moment(1003)).clock.unwrap();
        assert_eq!(clock("1010.0"), (7.0, 10.0));
        assert_eq!(clock("990.5"), (-12.5, -9.5));
        assert_eq!(clock("1001.%N"), (-2.0, 2.0), "a date without nanoseconds");
        assert_eq!(HostReport::parse("clock never\n", moment(0), moment(1)).clock, None);
        assert!(clock("99999999999").0 > 1e9);
    }

    #[test]
    fn half_an_answer_is_known_as_such() {
        assert!(!HostReport::parse(SAID.trim_end_matches("end\n"), moment(0), moment(1)).whole);
        assert_eq!(HostReport::parse("", moment(0), moment(1)), HostReport::default());
    }
}
