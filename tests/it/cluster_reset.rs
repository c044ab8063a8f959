//! The way back on real hosts: a look at every host before turnup and after it finds no difference,
//! after a whole cluster, after installs that were killed at different moments, and with things of
//! other people around. The hosts are one directory's and handed to another one.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test looks at hosts with the hosts' own tools")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Signal, kill_process};

use crate::cluster_support::{Done, Running, Site, TIMEOUT, can_make_hosts, say, sh};

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
/// Where the second directory keeps the cluster's state, beside that of the directory that made the
/// hosts.
const SECOND: [&str; 2] = ["--state-dir", "second"];

/// All that turnup or a pod could leave on a host: files with mode, owner and digest, the network,
/// mounts, units, users, kernel settings, cgroups of pods, processes. What lives its own life is
/// left out: `/proc`, `/sys`, logs, temporary files, and systemd's own of `/run`.
const LOOK: &str = r#"
set -u
# What lives its own life.
prune='/proc /sys /dev /tmp /var/tmp /var/cache/turnup /var/log/journal /var/log/wtmp /var/log/btmp /var/log/lastlog /var/lib/systemd
    /run/systemd /run/log /run/user /run/dbus /run/udev /run/lock /run/utmp /run/credentials /run/turnup-sysctl'
not=''
for dir in $prune ~/.ssh; do not="$not -path $dir -prune -o"; done
set -f
find / /run /var/lib/containerd /var/lib/kubelet /var/lib/etcd -xdev $not -printf 'file %p %y %m %U:%G %l\n' | sort -u
find / /run /var/lib/containerd /var/lib/kubelet /var/lib/etcd -xdev $not -type f -path '/usr/*' -printf 'size %p %s\n' | sort -u
find / /run /var/lib/containerd /var/lib/kubelet /var/lib/etcd -xdev $not -path /usr -prune -o -path '/run/netns/*' -o -type f -print0 | sort -zu | xargs -0 sha256sum | sed 's/^/digest /'
set +f
ip -o link show | sed 's/^[0-9]*: //; s/@.*//; s/:.*//; s/^/interface /'
ip -4 route show table all | sed 's/^/route /'
ip rule show | sed 's/^/rule /'
ip netns list | sed 's/^/netns /'
nft list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*/counter/; s/^/nft /'
iptables-save 2>/dev/null | grep -v '^#' | sed 's/\[[0-9]*:[0-9]*\]//; s/^/iptables /'
cut -d' ' -f5 /proc/self/mountinfo | sort | sed 's/^/mount /'
systemctl list-unit-files --no-legend --no-pager | sed 's/^/unit /'
systemctl list-units --all --plain --no-legend --no-pager --type=service,socket,mount,slice,scope |
    awk '{print $1, $3, $4}' | grep -v -e '^session-' -e '^user' -e '^run-user' -e '^ssh@' -e tmpfiles -e '^systemd-' -e '^run-credentials' -e '^logrotate' -e '^dpkg' | sed 's/^/active /'
sed 's/^/user /' /etc/passwd
sed 's/^/group /' /etc/group
sysctl -a 2>/dev/null | grep -v -e random -e dentry -e file-nr -e inode -e ns_last_pid -e 'pty.nr' -e conntrack_count -e aio-nr -e quota -e '^net.ipv4.neigh' -e '^net.ipv6' -e 'sched_domain' -e 'perf_event' -e 'next_id' -e 'usermodehelper' -e tainted | sed 's/^/sysctl /'
find /sys/fs/cgroup -type d -name '*kubepods*' | sed 's/^/cgroup /'
for p in /proc/[0-9]*; do readlink "$p/exe" 2>/dev/null; done | grep -e turnup -e kube -e etcd -e containerd -e flannel -e pause | sed 's/^/process /'
"#;

/// Lines of a host, counted: the same line twice is not the same as once.
pub(crate) type Look = BTreeMap<String, usize>;

/// etcdctl of a control-plane host, with the host's own certificate.
pub(crate) const ETCDCTL: &str = "/opt/turnup/bin/etcdctl --cacert=/etc/kubernetes/etcd/ca.crt \
    --cert=/etc/kubernetes/etcd/server.crt --key=/etc/kubernetes/etcd/server.key";

/// Runs this on a host and returns what it prints.
pub(crate) fn on_host(site: &Site, host: &str, script: &str) -> String {
    let address = site.hosts()[host]["address"].as_str().unwrap().to_owned();
    let output = Command::new("ssh")
        .args(["-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-i"])
        .arg(site.path("ssh/id_ed25519"))
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", site.path("ssh/known_hosts").display()))
        .arg(format!("root@{address}"))
        .arg(script)
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn look(site: &Site, host: &str) -> Look {
    let mut look = Look::new();
    for line in on_host(site, host, LOOK).lines() {
        *look.entry(line.to_owned()).or_default() += 1;
    }
    assert!(look.len() > 1000, "the look at {host} sees nothing: {look:?}");
    look
}

/// Fails with every line that is only on one side.
#[track_caller]
pub(crate) fn assert_same(before: &Look, after: &Look, when: &str) {
    let only = |one: &Look, other: &Look, sign: char| -> Vec<String> {
        let lines = one.iter().filter(|(line, count)| other.get(*line) != Some(count));
        lines.map(|(line, count)| format!("{sign} {count}x {line}")).collect()
    };
    let lines: Vec<String> = only(before, after, '-').into_iter().chain(only(after, before, '+')).collect();
    assert!(lines.is_empty(), "{when}: {} differences\n{}", lines.len(), lines.join("\n"));
}

/// turnup of the second directory.
fn start_second(site: &Site, args: &[&str]) -> Running {
    site.start(&[args, &SECOND[..]].concat())
}

fn run_second(site: &Site, args: &[&str]) -> Done {
    start_second(site, args).wait(TIMEOUT)
}

#[track_caller]
fn ok_second(site: &Site, args: &[&str]) -> Done {
    let done = run_second(site, args);
    assert_eq!(done.code, Some(0), "{done}");
    done
}

/// Hosts of the first directory, which let in the key of the second one.
fn lend_hosts(name: &str, subnet: &str, workers: u32) -> Site {
    let site = Site::new(name);
    site.configure(subnet, workers);
    site.warm_cache();
    site.ok(&["provision"]);
    give_key(&site);
    site
}

/// The second directory's key is made before its cluster, so that it can be brought to the hosts.
fn give_key(site: &Site) {
    let dir = site.dir.join("second/it/ssh");
    if !dir.exists() {
        fs_err::create_dir_all(&dir).unwrap();
        let key = dir.join("id_ed25519");
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
        assert!(made.unwrap().success());
    }
    let key = fs_err::read_to_string(dir.join("id_ed25519.pub")).unwrap();
    for host in site.hosts().keys() {
        on_host(site, host, &format!("echo '{}' >>~/.ssh/authorized_keys", key.trim()));
    }
}

/// Waits until a host is idle: systemd is busy in the first minute after a boot.
pub(crate) fn settle(site: &Site) {
    for host in site.hosts().keys() {
        on_host(site, host, "timeout 60 systemctl is-system-running --wait >/dev/null || true");
    }
}

/// What is on a host before turnup comes, some of it where turnup writes.
const FOREIGN_BEFORE: &str = r#"
set -e
mkdir -p /etc/cni/net.d /var/lib/kubelet/mine /opt/mine /etc/kubernetes
echo '{"cniVersion": "1.0.0", "name": "foreign", "plugins": []}' >/etc/cni/net.d/99-foreign.conflist
chmod 700 /etc/cni/net.d
echo kept >/var/lib/kubelet/mine/data
echo mine >/etc/kubernetes/mine.txt
mkdir -p /etc/containerd; echo '# not written by turnup' >/etc/containerd/config.toml; chmod 640 /etc/containerd/config.toml; chown 0:42 /etc/containerd/config.toml
ip link add foreign0 type bridge; ip addr add 192.0.2.1/24 dev foreign0; ip link set foreign0 up
ip route add 198.51.100.0/24 via 192.0.2.7 dev foreign0
nft add table inet foreign; nft add chain inet foreign mine '{ type filter hook input priority 0; }'; nft add rule inet foreign mine tcp dport 9 drop
iptables -t nat -N FOREIGN; iptables -t nat -A FOREIGN -j RETURN; iptables -A INPUT -s 203.0.113.9 -j DROP
ip netns add foreign; mkdir -p /mnt/foreign; mount -t tmpfs foreign /mnt/foreign
"#;
/// What is added beside turnup while the cluster runs.
const FOREIGN_LATER: &str = r"
set -e
echo later >/etc/kubernetes/later.txt
echo '{}' >/etc/cni/net.d/98-later.conf
nft add table inet later
iptables -t nat -N LATER
ip link add later0 type bridge
mkdir -p /opt/turnup/mine; echo x >/opt/turnup/mine/file
";
const NO_LATER: &str = r"
set -e
rm /etc/kubernetes/later.txt /etc/cni/net.d/98-later.conf; nft delete table inet later; iptables -t nat -X LATER; ip link delete later0
rm -r /opt/turnup/mine; rmdir /opt/turnup
";

#[test]
fn a_cluster_on_lent_hosts_leaves_them_as_they_were() {
    if !can_make_hosts() {
        return;
    }
    let site = lend_hosts("reset", "10.123.1.0/24", 1);
    settle(&site);
    for host in [CONTROL_PLANE, WORKER] {
        on_host(&site, host, FOREIGN_BEFORE);
    }
    let before: Vec<Look> = [CONTROL_PLANE, WORKER].iter().map(|host| look(&site, host)).collect();
    let inventory = site.path("outputs/provision.json").display().to_string();
    let start = Instant::now();
    ok_second(&site, &["bootstrap", "--from", &inventory]);
    ok_second(&site, &["addons"]);
    ok_second(&site, &["validate"]);
    say(&format!("up on lent hosts: {:.1} s", start.elapsed().as_secs_f64()));
    let refused = run_second(&site, &["up"]);
    assert!(refused.code == Some(3) && refused.err.contains("turnup makes none for it"), "{refused}");
    a_worker_is_reset_alone(&site, &before[1]);
    for host in [CONTROL_PLANE, WORKER] {
        on_host(&site, host, FOREIGN_LATER);
    }
    let start = Instant::now();
    let done = ok_second(&site, &["down", "--yes"]);
    say(&format!("down: {:.1} s", start.elapsed().as_secs_f64()));
    for line in ["to be removed: from the host it-worker-0 (10.123.1.20, worker)", "to be removed: the directory "] {
        assert!(done.err.contains(line), "{done}");
    }
    assert!(!site.dir.join("second/it").exists());
    for (host, before) in [CONTROL_PLANE, WORKER].iter().zip(&before) {
        // Removes what was added later; fails unless all of it still exists.
        on_host(&site, host, NO_LATER);
        assert_same(before, &look(&site, host), &format!("{host} after down"));
    }
    site.ok(&["down", "--yes"]);
}

/// A worker becomes what it was, its Node is gone, and it can be made a node once more.
fn a_worker_is_reset_alone(site: &Site, before: &Look) {
    let wrong = run_second(site, &["reset", "it-worker-O", "--yes"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("did you mean it-worker-0?"), "{wrong}");
    ok_second(site, &["reset", WORKER, "--yes"]);
    assert_same(before, &look(site, WORKER), "the worker after reset");
    let nodes = ok_second(site, &["status"]).out;
    assert!(!nodes.lines().any(|line| line.starts_with(WORKER) && line.contains(" Ready ")), "{nodes}");
    ok_second(site, &["bootstrap"]);
    ok_second(site, &["addons"]);
}

#[test]
#[ignore = "eight installs on a host: make test-crash"]
fn installs_that_were_killed_leave_nothing() {
    if !can_make_hosts() {
        return;
    }
    let site = lend_hosts("partial", "10.123.2.0/24", 0);
    settle(&site);
    let before = look(&site, CONTROL_PLANE);
    let inventory = site.path("outputs/provision.json").display().to_string();
    // What turnup says when it is killed: from the first byte on the host to a control plane that
    // almost stands. And after how many seconds the way back is killed, too: the more there is to
    // be undone, the longer it takes.
    let moments = [
        ("bootstrap/gather-facts@it-control-plane-0 done", None),
        ("user etcd", Some(0.0)),
        ("/opt/turnup/bin/kubelet", None),
        ("/etc/kubernetes/manifests/etcd.yaml", Some(0.1)),
        ("containerd.service", None),
        ("kubelet.service", Some(0.3)),
        ("etcd healthy", None),
        ("API server ready", Some(1.5)),
    ];
    for (moment, mut later) in moments {
        kill_install(&site, &inventory, moment);
        while let Some(pause) = later.filter(|pause| !kill_down_midway(&site, moment, *pause)) {
            // The reset had completed before that: once more, and sooner.
            give_key_again(&site);
            kill_install(&site, &inventory, moment);
            later = Some(pause / 2.0);
        }
        ok_second(&site, &["down", "--yes", "--cluster", "it"]);
        assert_same(&before, &look(&site, CONTROL_PLANE), &format!("killed at {moment:?}"));
        give_key_again(&site);
    }
    say(&format!("{} partial installs left nothing", moments.len()));
    site.ok(&["down", "--yes"]);
}

/// Begins to make the host a node, and is killed when it says this.
fn kill_install(site: &Site, inventory: &str, moment: &str) {
    let mut running = start_second(site, &["bootstrap", "--from", inventory]);
    running.wait_for(moment);
    kill_process(running.pid(), Signal::KILL).unwrap();
    drop(running.wait(TIMEOUT));
    // The agent on the host may live on for a moment: it is killed as well, as a host would that
    // loses power.
    on_host(site, CONTROL_PLANE, "pkill -KILL -f '[t]urnup node up' || true");
}

/// The cluster's directory was removed with it, and its key.
fn give_key_again(site: &Site) {
    assert!(!site.dir.join("second/it").exists());
    for host in site.hosts().keys() {
        on_host(site, host, "sed -i '$d' ~/.ssh/authorized_keys");
    }
    give_key(site);
}

/// The way back is killed on the host as well, this much later each time, and has to go on. Whether
/// it was not at its end before.
fn kill_down_midway(site: &Site, moment: &str, later: f64) -> bool {
    let mut running = start_second(site, &["down", "--yes"]);
    let wait = "for i in $(seq 500); do pgrep -f '[t]urnup node down' >/dev/null && break; sleep 0.02; done";
    let kill = format!("sleep {later}; pkill -KILL -f '[t]urnup node down' && echo hit || true");
    let hit = loop {
        let hit = on_host(site, CONTROL_PLANE, &format!("{wait}; {kill}")).contains("hit");
        if hit || running.child.try_wait().unwrap().is_some() {
            break hit;
        }
    };
    let done = running.wait(TIMEOUT);
    say(&format!("the way back from {moment:?}, killed after {later} s: {hit}, exit {:?}", done.code));
    let is_over = done.code == Some(0);
    assert!(is_over || (hit && site.dir.join("second/it").exists()), "{done}");
    !is_over
}

#[test]
fn a_host_that_does_not_answer_is_named_and_the_others_are_clean() {
    if !can_make_hosts() {
        return;
    }
    let site = lend_hosts("unreachable", "10.123.3.0/24", 1);
    settle(&site);
    let before = look(&site, CONTROL_PLANE);
    let inventory = site.path("outputs/provision.json").display().to_string();
    ok_second(&site, &["bootstrap", "--from", &inventory]);
    // The host neither answers nor refuses connections.
    let interface = site.spec(WORKER)["interface"].as_str().unwrap().to_owned();
    sh(&format!("ip link set {interface} down"));
    // With an unreadable configuration, `down` still works when the cluster is named.
    let config = site.dir.join(".config.json");
    let good = fs_err::read_to_string(&config).unwrap();
    fs_err::write(&config, "{ damaged").unwrap();
    let bare = ["--state-dir", "second", "down", "--yes"];
    let told = site.fails(3, &bare);
    assert!(told.err.contains("next: turnup down --cluster it"), "{told}");
    let named = [&bare[..], &["--cluster", "it"]].concat();
    let failed = site.fails(5, &named);
    assert!(failed.err.contains("| it-worker-0: cannot reach root@10.123.3.20"), "{failed}");
    assert!(failed.err.contains("--skip-unreachable") && failed.err.contains("1 hosts are not clean"), "{failed}");
    assert_same(&before, &look(&site, CONTROL_PLANE), "the host that answered");
    let done = site.ok(&[&named[..], &["--skip-unreachable"]].concat());
    assert!(done.err.contains("it-worker-0: forgotten as it is"), "{done}");
    assert!(!site.dir.join("second/it").exists());
    fs_err::write(&config, good).unwrap();
    site.ok(&["down", "--yes"]);
}
