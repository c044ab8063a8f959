//! Real DNS servers of a test, each with one zone that takes updates with one key, on an address of
//! this machine.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it plays systemd, which starts servers")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const ZONE: &str = "example.test";
pub(crate) const KEY: &str = "it-key";
/// 32 bytes.
pub(crate) const SECRET: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
/// For what has to happen, on a machine with other work.
const TIMEOUT: Duration = Duration::from_mins(1);
const RECORDS: &str = "$ORIGIN example.test.\n$TTL 60\n@ SOA ns1 admin 1 3600 600 86400 3600\n@ NS ns1\nns1 A 127.0.0.1\n\
                       taken.it A 192.0.2.9\nmail.it MX 10 ns1\n";

/// A program that serves the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bind,
    Knot,
}

/// A server that ends with its value.
pub(crate) struct DnsServer {
    kind: Kind,
    pub(crate) address: SocketAddr,
    dir: tempfile::TempDir,
    child: Option<Child>,
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl DnsServer {
    /// Serves at a free port of this address.
    pub(crate) fn start(kind: Kind, address: IpAddr) -> Self {
        let address = TcpListener::bind((address, 0)).unwrap().local_addr().unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("zone.db"), RECORDS).unwrap();
        // Where Knot keeps its journal.
        fs_err::create_dir(dir.path().join("db")).unwrap();
        let mut server = Self { kind, address, dir, child: None };
        fs_err::write(server.dir.path().join("server.conf"), server.config()).unwrap();
        server.start_again();
        server
    }

    pub(crate) fn start_again(&mut self) {
        let dir = self.dir.path();
        let log = fs_err::File::create(dir.join("log")).unwrap();
        let (program, words): (&str, &[&str]) = match self.kind {
            Kind::Bind => ("named", &["-g", "-c"]),
            Kind::Knot => ("knotd", &["-c"]),
        };
        let mut command = Command::new(which::which_in(program, Some("/usr/sbin:/usr/bin"), "/").unwrap());
        command.args(words).arg(dir.join("server.conf")).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.stderr(log.into_file()).spawn().unwrap());
        let since = Instant::now();
        while TcpStream::connect(self.address).is_err() || self.dig("ns1.example.test", "A") != ["127.0.0.1"] {
            assert!(since.elapsed() < TIMEOUT, "{:?}: {}", self.kind, fs_err::read_to_string(dir.join("log")).unwrap());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// The settings with which a cluster `it` keeps its names here; the file of the key is written
    /// into this directory.
    pub(crate) fn settings(&self, dir: &Path) -> Vec<String> {
        let file = dir.join("dns.key");
        fs_err::write(&file, format!("hmac-sha256:{KEY}:{SECRET}\n")).unwrap();
        fs_err::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        vec![
            format!("phase2.dns.server={}", self.address.ip()),
            format!("phase2.dns.port={}", self.address.port()),
            format!("phase2.dns.zone={ZONE}"),
            format!("phase2.dns.domain=it.{ZONE}"),
            format!("phase2.dns.key_file={}", file.display()),
        ]
    }

    /// What an independent client reads, sorted.
    pub(crate) fn dig(&self, name: &str, kind: &str) -> Vec<String> {
        self.dig_at(self.address.ip(), name, kind)
    }

    /// The same at loopback, where BIND answers as well: its own address may be gone.
    pub(crate) fn dig_at_loopback(&self, name: &str, kind: &str) -> Vec<String> {
        self.dig_at(Ipv4Addr::LOCALHOST.into(), name, kind)
    }

    fn dig_at(&self, address: IpAddr, name: &str, kind: &str) -> Vec<String> {
        let (server, port) = (format!("@{address}"), self.address.port().to_string());
        let words = [server.as_str(), "-p", &port, "+short", "+tcp", "+tries=1", "+time=5", name, kind];
        let output = Command::new("dig").args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<String> =
            text.lines().filter(|line| !line.starts_with(';')).map(|line| line.trim_matches('"').to_owned()).collect();
        lines.sort();
        lines
    }

    fn config(&self) -> String {
        let (dir, ip, port) = (self.dir.path().display(), self.address.ip(), self.address.port());
        match self.kind {
            Kind::Bind => format!(
                r#"options {{ directory "{dir}"; listen-on port {port} {{ 127.0.0.1; {ip}; }}; listen-on-v6 {{ none; }}; pid-file "{dir}/pid";
                session-keyfile "{dir}/session.key"; lock-file none; recursion no; dnssec-validation no; notify no; }};
                controls {{ }};
                key "{KEY}" {{ algorithm hmac-sha256; secret "{SECRET}"; }};
                zone "{ZONE}" {{ type primary; file "{dir}/zone.db"; update-policy {{ grant {KEY} subdomain it.{ZONE}. A AAAA TXT; }}; }};"#
            ),
            Kind::Knot => format!(
                "server:\n  listen: {ip}@{port}\n  rundir: {dir}\ndatabase:\n  storage: {dir}/db\nlog:\n  - target: stderr\n    any: info\n\
                 key:\n  - id: {KEY}\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
                 acl:\n  - id: update\n    key: {KEY}\n    action: update\n\
                 zone:\n  - domain: {ZONE}\n    storage: {dir}\n    file: zone.db\n    acl: update\n"
            ),
        }
    }
}

/// What a host is told of names in the zone of this server; etcd is asked at this endpoint.
pub(crate) fn config(server: SocketAddr, etcd: &str) -> Value {
    json!({
        "schema": "turnup.dns/2", "zone": ZONE, "ttl": 30,
        "access": {"server": {"server": server.ip(), "port": server.port(),
            "key": {"name": KEY, "algorithm": "hmac-sha256", "secret": SECRET}}},
        "owner": "turnup cluster=it id=1",
        "names": [
            {"name": "api.it.example.test", "is_external": true},
            {"name": "api.internal.it.example.test", "is_external": false},
        ],
        "internal": "internal.it.example.test",
        "external": {"10.0.0.1": "198.51.100.1"},
        "etcd": {"endpoint": etcd, "authority": "", "certificate": "", "key": ""},
    })
}

/// Writes it as the program wants it.
pub(crate) fn write_config(path: &Path, config: &Value) {
    fs_err::write(path, config.to_string()).unwrap();
}
