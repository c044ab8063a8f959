//! Three members of the etcd that turnup builds, in network namespaces of their own: what a network
//! that was lost and came back leaves behind. No cluster and no host.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the namespaces are entered with ip")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnup::artifacts::{Cache, Lock, NoProgress, Sources};

use crate::artifacts_support::wait_until;
use crate::skip::{has_program, is_root};

const MEMBERS: usize = 3;
/// TCP doubles the time until it sends again: after 25 s for the last time in such an outage, and
/// then after 51 s.
const OUTAGE: Duration = Duration::from_secs(30);
/// The others have dialed again.
const PAUSE: Duration = Duration::from_secs(2);
/// An election takes some 2 s; TCP alone would need 20 s.
const LIMIT: Duration = Duration::from_secs(10);

fn sh(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

fn address(member: usize) -> String {
    format!("192.0.2.{}", 10 + member)
}

/// The members, each in a namespace, and a bridge in another. Dropped, nothing of it is left.
struct Members {
    prefix: String,
    etcdctl: PathBuf,
    data: tempfile::TempDir,
    children: Vec<Child>,
}

impl Members {
    fn start() -> Self {
        let lock = Lock::embedded().unwrap();
        let selection = lock.select(&lock.default).unwrap();
        let wanted = ["etcd", "etcdctl"].map(|name| selection.binary(name).unwrap());
        let blobs = Cache::open().unwrap().ensure_all(wanted, &Sources::default(), &NoProgress).unwrap();
        let mut members = Self {
            // A name as those of local clusters: tests of these do not take it for something left
            // behind.
            prefix: format!("tu{:06x}", std::process::id() & 0xff_ffff),
            etcdctl: blobs[1].path.clone(),
            data: tempfile::tempdir().unwrap(),
            children: Vec::new(),
        };
        let lan = members.namespace("lan");
        sh(&format!(
            "ip netns add {lan}; ip -n {lan} link add br0 type bridge forward_delay 0; ip -n {lan} link set br0 up"
        ));
        for member in 0..MEMBERS {
            members.connect_new(member);
        }
        for member in 0..MEMBERS {
            let child = members.start_member(member, &blobs[0].path);
            members.children.push(child);
        }
        members
    }

    fn namespace(&self, name: impl std::fmt::Display) -> String {
        format!("{}-etcd-{name}", self.prefix)
    }

    fn connect_new(&self, member: usize) {
        let (here, lan, address) = (self.namespace(member), self.namespace("lan"), address(member));
        sh(&format!(
            "ip netns add {here}; ip -n {here} link set lo up
             ip link add eth0 netns {here} type veth peer name to-{member} netns {lan}
             ip -n {lan} link set to-{member} master br0 up
             ip -n {here} address add {address}/24 dev eth0; ip -n {here} link set eth0 up"
        ));
    }

    fn start_member(&self, member: usize, etcd: &Path) -> Child {
        let cluster = (0..MEMBERS).fold(String::new(), |mut all, member| {
            write!(all, "{}{member}=http://{}:2380", if all.is_empty() { "" } else { "," }, address(member)).unwrap();
            all
        });
        let (peer, client) = (format!("http://{}:2380", address(member)), "http://127.0.0.1:2379");
        let log = fs_err::File::create(self.data.path().join(format!("log-{member}"))).unwrap();
        // No member outlives a test that is killed.
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(member), "setpriv", "--pdeathsig", "KILL", "--"]).arg(etcd);
        command.args(["--name", &member.to_string(), "--initial-cluster", &cluster, "--unsafe-no-fsync", "--data-dir"]);
        command.arg(self.data.path().join(member.to_string()));
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--listen-client-urls", client, "--advertise-client-urls", client]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.into_file()).spawn().unwrap()
    }

    fn etcdctl(&self, member: usize, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(member)]).arg(&self.etcdctl).arg("--command-timeout=1s");
        let output = command.args(arguments).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn writes(&self, member: usize) -> bool {
        self.etcdctl(member, &["put", "key", "value"]).is_some()
    }

    /// The member that says of itself that it leads.
    fn leader(&self) -> Option<usize> {
        (0..MEMBERS).find(|member| {
            let status = self.etcdctl(*member, &["endpoint", "status", "--write-out=json"]);
            let status: Option<Value> = status.map(|text| serde_json::from_str(&text).unwrap());
            status.is_some_and(|status| status[0]["Status"]["leader"] == status[0]["Status"]["header"]["member_id"])
        })
    }

    /// What is sent to a member or by it is lost, without a word to either side.
    fn cut(&self, member: usize) {
        sh(&format!("ip -n {} link set to-{member} nomaster", self.namespace("lan")));
    }

    fn restore(&self, member: usize) {
        sh(&format!("ip -n {} link set to-{member} master br0", self.namespace("lan")));
    }

    fn log(&self, member: usize) -> String {
        fs_err::read_to_string(self.data.path().join(format!("log-{member}"))).unwrap()
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
        let names = (0..MEMBERS).map(|member| self.namespace(member)).chain([self.namespace("lan")]);
        for name in names {
            drop(Command::new("ip").args(["netns", "delete", &name]).status());
        }
    }
}

/// The streams of a member that was without a network are made again once it has one: those that
/// wait for TCP would leave the two that remain without a leader.
#[test]
fn a_member_that_was_cut_off_takes_part_in_the_next_election_at_once() {
    if !is_root("for network namespaces") || !has_program(&["ip"]) || !has_program(&["setpriv"]) {
        return;
    }
    let members = Members::start();
    wait_until("a write", || members.writes(0));
    let leader = members.leader().unwrap();
    let (cut_off, other) = ((leader + 1) % MEMBERS, (leader + 2) % MEMBERS);
    // The streams between all of them.
    std::thread::sleep(PAUSE);

    members.cut(cut_off);
    std::thread::sleep(OUTAGE);
    members.restore(cut_off);
    std::thread::sleep(PAUSE);
    assert_eq!(members.leader(), Some(leader), "the leader has changed without a cause");
    members.cut(leader);
    let since = Instant::now();
    while !members.writes(other) {
        assert!(since.elapsed() < LIMIT, "no write for {LIMIT:?}; {cut_off}: {}", members.log(cut_off));
        std::thread::sleep(Duration::from_millis(100));
    }
    crate::skip::say(&format!("a write after {:.1} s", since.elapsed().as_secs_f64()));
    assert!(members.log(cut_off).contains("lost TCP streaming connection"), "{}", members.log(cut_off));
}
