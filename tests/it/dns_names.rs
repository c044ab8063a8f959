//! `turnup node dns` and real DNS servers: what it makes, replaces, leaves alone and removes. etcd
//! is played here; `cluster_dns` has a real one.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it plays systemd, which starts the program")]

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::dns_support::{DnsServer, Kind, config, write_config};
use crate::http_server;

const API: &str = "api.it.example.test";
const INTERNAL: &str = "api.internal.it.example.test";
const TIMEOUT: Duration = Duration::from_mins(2);

/// What etcd would say.
#[derive(Default)]
struct Etcd {
    is_leader: bool,
    servers: Vec<&'static str>,
    /// It has lost its majority.
    is_away: bool,
}

fn answer(etcd: &Etcd, path: &str) -> (&'static str, Value) {
    if etcd.is_away {
        return ("503 Service Unavailable", json!({"message": "etcdserver: request timed out"}));
    }
    if path.ends_with("/member/list") {
        let members = json!([
            {"name": "cp-0", "peerURLs": ["https://10.0.0.1:2380"]},
            {"name": "", "peerURLs": ["https://10.0.0.9:2380"]},
        ]);
        return ("200 OK", json!({"members": members}));
    }
    if path.ends_with("/maintenance/status") {
        return ("200 OK", json!({"header": {"member_id": "7"}, "leader": if etcd.is_leader { "7" } else { "8" }}));
    }
    let key = |server: &&str| json!({"key": STANDARD.encode(format!("/registry/masterleases/{server}"))});
    ("200 OK", json!({"kvs": etcd.servers.iter().map(key).collect::<Vec<_>>()}))
}

/// A writer with its files and the etcd beside it.
pub(crate) struct Writer {
    etcd: Arc<Mutex<Etcd>>,
    dir: tempfile::TempDir,
    child: Option<Child>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Writer {
    pub(crate) fn start(server: &DnsServer, change: impl FnOnce(&mut Value)) -> Self {
        let etcd = Arc::new(Mutex::new(Etcd { is_leader: true, ..Etcd::default() }));
        let shared = Arc::clone(&etcd);
        let url = http_server::serve(http_server::LOOPBACK, move |request, stream| {
            let (status, body) = answer(&shared.lock().unwrap(), &request.path);
            http_server::send(stream, status, body.to_string().as_bytes())
        });
        let dir = tempfile::tempdir().unwrap();
        let mut document = config(server.address, &url);
        change(&mut document);
        write_config(&dir.path().join("dns.json"), &document);
        let mut writer = Self { etcd, dir, child: None };
        writer.start_again();
        writer
    }

    pub(crate) fn start_again(&mut self) {
        let log = fs_err::OpenOptions::new().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let mut command = turnup(self.dir.path(), &[]);
        self.child = Some(command.stdout(log.into_file()).stdin(Stdio::null()).spawn().unwrap());
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    fn set(&self, change: impl FnOnce(&mut Etcd)) {
        change(&mut self.etcd.lock().unwrap());
    }

    /// Whether the member of etcd beside it leads.
    pub(crate) fn lead(&self, is_leader: bool) {
        self.set(|etcd| etcd.is_leader = is_leader);
    }

    /// What it is told changes; it is started again.
    pub(crate) fn reconfigure(&mut self, change: impl FnOnce(&mut Value)) {
        self.stop();
        let file = self.dir.path().join("dns.json");
        let mut document: Value = serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
        change(&mut document);
        write_config(&file, &document);
        self.start_again();
    }

    pub(crate) fn log(&self) -> String {
        fs_err::read_to_string(self.dir.path().join("log")).unwrap()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < TIMEOUT, "{what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[track_caller]
    pub(crate) fn wait_for_addresses(&self, server: &DnsServer, name: &str, expected: &[&str]) {
        self.wait_for(&format!("{name}: {expected:?}"), || server.dig(name, "A") == expected);
    }

    #[track_caller]
    pub(crate) fn wait_for_line(&self, text: &str) {
        self.wait_for(text, || self.log().contains(text));
    }
}

fn turnup(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
    command.args(["node", "dns", "--config"]).arg(dir.join("dns.json")).args(words).current_dir(dir);
    command
}

pub(crate) fn remove(writer: &Writer) -> (bool, String) {
    let output = turnup(writer.dir.path(), &["remove"]).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

pub(crate) fn server(kind: Kind) -> DnsServer {
    DnsServer::start(kind, Ipv4Addr::LOCALHOST.into())
}

#[test]
fn names_follow_the_live_api_servers_and_go_with_the_cluster() {
    for kind in [Kind::Bind, Kind::Knot] {
        let mut server = server(kind);
        let mut writer = Writer::start(&server, |_| {});
        writer.wait_for_addresses(&server, API, &["203.0.113.123"]);
        assert_eq!(server.dig(API, "TXT"), ["turnup cluster=it id=1"]);

        writer.set(|etcd| etcd.servers = vec!["10.0.0.1", "10.0.0.2"]);
        writer.wait_for_addresses(&server, INTERNAL, &["10.0.0.1", "10.0.0.2"]);
        writer.wait_for_addresses(&server, API, &["10.0.0.2", "198.51.100.1"]);
        writer.set(|etcd| etcd.servers = vec!["10.0.0.2", "10.0.0.3"]);
        writer.wait_for_addresses(&server, INTERNAL, &["10.0.0.2", "10.0.0.3"]);

        // None is known to live, or none can be known: the last ones stay.
        writer.set(|etcd| etcd.servers = Vec::new());
        std::thread::sleep(Duration::from_secs(6));
        writer.set(|etcd| etcd.is_away = true);
        writer.wait_for_line("etcd: etcd does not answer maintenance/status: etcdserver: request timed out");
        assert_eq!(server.dig(INTERNAL, "A"), ["10.0.0.2", "10.0.0.3"]);

        // A server that is away is told and asked again.
        server.stop();
        writer.wait_for_line("does not take connections at port");
        writer.set(|etcd| (etcd.is_away, etcd.servers) = (false, vec!["10.0.0.9"]));
        server.start_again();
        writer.wait_for_addresses(&server, INTERNAL, &["10.0.0.9"]);

        writer.stop();
        let (ok, said) = remove(&writer);
        assert!(ok && said == format!("removed {API}\nremoved {INTERNAL}\n"), "{said}");
        for name in [API, INTERNAL] {
            assert!(server.dig(name, "A").is_empty() && server.dig(name, "TXT").is_empty(), "{name} stayed");
        }
        assert_eq!(remove(&writer), (true, String::new()), "nothing to do the second time");
    }
}

#[test]
fn a_name_of_another_owner_is_left_alone() {
    for kind in [Kind::Bind, Kind::Knot] {
        let server = server(kind);
        let names = json!([{"name": "taken.it.example.test", "is_external": false}, {"name": "mail.it.example.test", "is_external": false}]);
        let writer = Writer::start(&server, |config| config["names"] = names);
        writer.set(|etcd| etcd.servers = vec!["10.0.0.1"]);
        writer.wait_for_line("taken.it.example.test: another owner has it (192.0.2.9), and it is left alone");
        writer.wait_for_line(
            "mail.it.example.test: something else was written to it at the same time, or is there already",
        );
        assert_eq!(server.dig("taken.it.example.test", "A"), ["192.0.2.9"]);
        assert!(server.dig("mail.it.example.test", "A").is_empty());
        assert_eq!(remove(&writer), (true, String::new()), "nor is it removed");
    }
}

#[test]
fn a_server_that_refuses_is_told_with_its_reason() {
    type ConfigChange = fn(&mut Value);
    let cases: [(ConfigChange, &str); 4] = [
        (|config| config["access"]["server"]["key"]["secret"] = json!("YW5vdGhlciBzZWNyZXQ="), "BADSIG"),
        (|config| config["access"]["server"]["key"]["name"] = json!("other-key"), "BADKEY"),
        (|config| config["zone"] = json!("test"), "NOTAUTH"),
        (|config| config["names"] = json!([{"name": "else.example.test", "is_external": false}]), "REFUSED"),
    ];
    let server = server(Kind::Bind);
    for (change, said) in cases {
        let writer = Writer::start(&server, change);
        writer.wait_for_line(said);
        assert!(!writer.log().contains("YW5vdGhlciBzZWNyZXQ"), "a secret: {}", writer.log());
    }
}

#[test]
fn a_host_whose_etcd_does_not_lead_writes_only_when_nothing_else_does() {
    let server = server(Kind::Bind);
    let leader = Writer::start(&server, |_| {});
    let other = Writer::start(&server, |_| {});
    other.set(|etcd| (etcd.is_leader, etcd.servers) = (false, vec!["10.0.0.2"]));
    leader.set(|etcd| etcd.servers = vec!["10.0.0.1"]);
    leader.wait_for_addresses(&server, INTERNAL, &["10.0.0.1"]);
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(server.dig(INTERNAL, "A"), ["10.0.0.1"], "not by the other one: {}", other.log());
    // The leader's host writes no more: the other one does after a while.
    drop(leader);
    other.wait_for_addresses(&server, INTERNAL, &["10.0.0.2"]);
}
