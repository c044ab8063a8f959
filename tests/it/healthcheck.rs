//! `turnup node healthcheck` in front of an API server that answers what a test says. A real API
//! server is in `cluster_identity`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it plays systemd, which starts the program")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// For what has to happen, on a machine with other work.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What an API server was asked: the request line, and whether a certificate came along.
type Asked = Arc<Mutex<Vec<(String, bool)>>>;

/// An API server that answers with one status; without one it accepts the connection and does not
/// answer.
struct Api {
    port: u16,
    status: Arc<Mutex<Option<u16>>>,
    asked: Asked,
}

impl Api {
    fn start(dir: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            (CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap(), key)
        };
        let (client, client_key) = signed("turnup:healthcheck");
        fs_err::write(dir.join("client.crt"), client.pem()).unwrap();
        fs_err::write(dir.join("client.key"), client_key.serialize_pem()).unwrap();
        // Of a name that no client expects: kubelet's own probes do not verify it either.
        let (server, server_key) = signed("another-host");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der().to_vec())).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = verifier.allow_unauthenticated().build().unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from(server.der().to_vec())],
                PrivateKeyDer::try_from(server_key.serialize_der()).unwrap(),
            );
        let (config, listener) = (Arc::new(config.unwrap()), TcpListener::bind("127.0.0.1:0").unwrap());
        let api = Self { port: listener.local_addr().unwrap().port(), status: Arc::default(), asked: Asked::default() };
        let (status, asked) = (Arc::clone(&api.status), Arc::clone(&api.asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, status, asked) = (Arc::clone(&config), Arc::clone(&status), Arc::clone(&asked));
                std::thread::spawn(move || answer(stream, config, &status, &asked));
            }
        });
        api
    }

    fn say(&self, status: Option<u16>) {
        *self.status.lock().unwrap() = status;
    }

    fn take_asked(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>, status: &Mutex<Option<u16>>, asked: &Asked) -> Option<()> {
    let mut stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).ok()?;
    asked.lock().unwrap().push((line.trim().to_owned(), stream.conn.peer_certificates().is_some()));
    let status = *status.lock().unwrap();
    let Some(status) = status else {
        std::thread::sleep(Duration::from_hours(1));
        return None;
    };
    let body = "[+]ping ok\n[-]etcd failed: reason withheld\nlivez check failed\n";
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// The program, as its unit starts it.
struct Check {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Check {
    fn start(dir: &Path, api_port: u16, listen: &[SocketAddr]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
        command.args(["node", "healthcheck", &format!("--api-port={api_port}")]);
        command.args(listen.iter().map(|address| format!("--listen={address}")));
        for (flag, file) in [("certificate", "client.crt"), ("key", "client.key")] {
            command.arg(format!("--{flag}={}", dir.join(file).display()));
        }
        let mut child = command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Its next line.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A free port.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// One request; status and body, or `None` when the connection ends without an answer.
fn ask(address: SocketAddr, line: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nHost: x\r\nUser-Agent: probe\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

#[test]
fn health_is_200_or_503_and_nothing_else_is_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let (api, address) = (Api::start(dir.path()), free());
    let mut check = Check::start(dir.path(), api.port, &[address]);
    assert_eq!(check.line(), format!("listens at {address}"));
    let yes = Some((200, "ok\n".to_owned()));
    let no = Some((503, "not ok\n".to_owned()));
    for (status, livez, readyz) in
        [(200, &yes, &yes), (500, &no, &no), (401, &yes, &yes), (403, &yes, &no), (301, &no, &no), (429, &no, &no)]
    {
        api.say(Some(status));
        assert_eq!(ask(address, "GET /livez"), *livez, "{status}");
        assert_eq!(ask(address, "GET /readyz"), *readyz, "{status}");
        assert_eq!(ask(address, "GET /healthz"), *readyz, "{status}");
        let asked = ["/livez", "/readyz", "/healthz"].map(|path| (format!("GET {path} HTTP/1.1"), true));
        assert_eq!(api.take_asked(), asked, "with its certificate");
    }
    for (line, status) in [
        ("GET /livez?verbose", 404),
        ("GET /readyz?exclude=etcd", 404),
        ("GET /version", 404),
        ("GET /livez/etcd", 404),
        ("HEAD /livez", 405),
        ("POST /livez", 405),
        ("GET", 400),
    ] {
        assert_eq!(ask(address, line).unwrap().0, status, "{line}");
    }
    assert!(api.take_asked().is_empty(), "the API server hears nothing of it");
    // What changes is in the journal, with the checks that failed.
    assert_eq!(check.line(), "/livez: ok: status 200 [-]etcd failed: reason withheld");
    let lines: Vec<String> = (0..3).map(|_| check.line()).collect();
    assert!(lines[2].starts_with("/livez: not ok: status 500 [-]etcd failed"), "{lines:?}");
}

#[test]
fn without_a_certificate_an_unauthorized_answer_counts_as_live() {
    let dir = tempfile::tempdir().unwrap();
    let (api, address) = (Api::start(dir.path()), free());
    let certificate = fs_err::read(dir.path().join("client.crt")).unwrap();
    fs_err::remove_file(dir.path().join("client.crt")).unwrap();
    let mut check = Check::start(dir.path(), api.port, &[address]);
    assert_eq!(check.line(), format!("listens at {address}"));
    api.say(Some(401));
    assert_eq!(ask(address, "GET /livez").unwrap().0, 200);
    assert_eq!(api.take_asked(), [("GET /livez HTTP/1.1".to_owned(), false)]);
    // One that comes later counts at once.
    fs_err::write(dir.path().join("client.crt"), certificate).unwrap();
    api.say(Some(200));
    assert_eq!(ask(address, "GET /livez").unwrap().0, 200);
    assert_eq!(api.take_asked(), [("GET /livez HTTP/1.1".to_owned(), true)]);
}

#[test]
fn an_unresponsive_api_server_is_unhealthy_and_blocks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (api, address, away) = (Api::start(dir.path()), free(), free());
    let mut check = Check::start(dir.path(), api.port, &[address]);
    assert_eq!(check.line(), format!("listens at {address}"));
    let since = Instant::now();
    assert_eq!(ask(address, "GET /livez").unwrap().0, 503, "it hangs");
    assert!(since.elapsed() < TIMEOUT);
    drop(check);
    let mut check = Check::start(dir.path(), away.port(), &[away]);
    // The address of a host that is not up yet is tried again, and others are served meanwhile.
    assert_eq!(check.line(), format!("listens at {away}"));
    drop(check);
    let elsewhere: SocketAddr = "192.0.2.1:3990".parse().unwrap();
    let mut check = Check::start(dir.path(), free().port(), &[elsewhere, address]);
    let mut lines = [check.line(), check.line()];
    lines.sort();
    assert!(lines[0].starts_with("cannot listen at 192.0.2.1:3990: "), "{lines:?}");
    assert_eq!(lines[1], format!("listens at {address}"));
    assert_eq!(ask(address, "GET /readyz").unwrap().0, 503, "connection refused");
}

/// Any host reaches the host's own address; loopback is kubelet's.
#[test]
fn silent_connections_do_not_block_kubelet() {
    let dir = tempfile::tempdir().unwrap();
    let (api, own, loopback) = (Api::start(dir.path()), free(), free());
    api.say(Some(200));
    let mut check = Check::start(dir.path(), api.port, &[own, loopback]);
    let _listens = [check.line(), check.line()];
    let mut silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(own).unwrap()).collect();
    // A partial request does not count as one, nor does one that is too long.
    silent.iter_mut().take(20).for_each(|stream| drop(stream.write_all(b"GET /livez HTT")));
    silent.iter_mut().skip(20).take(5).for_each(|stream| drop(stream.write_all(&vec![b'x'; 20_000])));
    assert_eq!(ask(loopback, "GET /livez").unwrap().0, 200, "at once");
    let since = Instant::now();
    while ask(own, "GET /readyz").is_none() {
        assert!(since.elapsed() < TIMEOUT, "they are sent away after some seconds");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(ask(loopback, "GET /livez").unwrap().0, 200);
}
