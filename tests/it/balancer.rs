//! `turnup node balancer` in front of servers that a test plays. Real API servers are in
//! `cluster_ha`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it plays systemd, which starts the program")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// For what has to happen, on a machine with other work.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A server that says its name, then what it hears, and `.` when the client has said all.
struct Server {
    name: &'static str,
    address: SocketAddr,
    health: SocketAddr,
    ready: Arc<AtomicBool>,
}

impl Server {
    fn start(name: &'static str) -> Self {
        let (listener, health) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let ready = Arc::new(AtomicBool::new(true));
        let server = Self {
            name,
            address: listener.local_addr().unwrap(),
            health: health.local_addr().unwrap(),
            ready: Arc::clone(&ready),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || echo(stream, name));
            }
        });
        std::thread::spawn(move || {
            for mut stream in health.incoming().flatten() {
                // The whole head: a connection that is closed before it is read is a broken one.
                let mut asked = Vec::new();
                let mut piece = [0; 256];
                while !asked.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut piece) {
                        Ok(count @ 1..) => asked.extend_from_slice(&piece[..count]),
                        _ => break,
                    }
                }
                assert!(asked.is_empty() || asked.starts_with(b"GET /readyz HTTP/1.1\r\n"));
                let status = if ready.load(Ordering::SeqCst) { "200 OK" } else { "503 Service Unavailable" };
                drop(write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
            }
        });
        server
    }

    fn say(&self, ready: bool) {
        self.ready.store(ready, Ordering::SeqCst);
    }
}

fn echo(mut stream: TcpStream, name: &str) -> Option<()> {
    stream.write_all(name.as_bytes()).ok()?;
    let mut some = [0; 256];
    loop {
        let count = stream.read(&mut some).ok()?;
        if count == 0 {
            return stream.write_all(b".").ok();
        }
        stream.write_all(&some[..count]).ok()?;
    }
}

/// The program, as its unit starts it.
struct Balancer {
    child: Child,
    said: BufReader<ChildStdout>,
    config: PathBuf,
    listen: SocketAddr,
    status: SocketAddr,
}

impl Balancer {
    fn start(dir: &Path, servers: &[&Server]) -> Self {
        let (config, listen, status) = (dir.join("servers.json"), free(), free());
        write_list(&config, listen, servers);
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
        command.args(["node", "balancer", "--config"]).arg(&config).args(["--status", &status.to_string()]);
        let mut child = command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said, config, listen, status }
    }

    /// Reads lines until one says this.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "it ended before {text:?}");
        }
    }

    fn list(&self, servers: &[&Server]) {
        write_list(&self.config, self.listen, servers);
    }

    /// A connection, and the name of the server that it came to; none where it is closed at once.
    fn connect(&self) -> Option<(TcpStream, String)> {
        let mut stream = TcpStream::connect(self.listen).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut name = [0; 1];
        stream.read_exact(&mut name).ok()?;
        Some((stream, String::from_utf8_lossy(&name).into_owned()))
    }

    fn names(&self, count: usize) -> String {
        (0..count).map(|_| self.connect().map_or_else(|| "-".to_owned(), |(_, name)| name)).collect()
    }

    /// Waits until the connections of earlier clients have ended.
    fn wait_until_idle(&self) {
        let since = Instant::now();
        let is_idle =
            |status: &Value| status["servers"].as_array().unwrap().iter().all(|server| server["connections"] == 0);
        while !is_idle(&self.status()) {
            assert!(since.elapsed() < TIMEOUT);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn status(&self) -> Value {
        let mut stream = TcpStream::connect(self.status).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whole or not at all, as turnup writes it.
fn write_list(config: &Path, listen: SocketAddr, servers: &[&Server]) {
    let server = |server: &&Server| json!({"name": server.name, "address": server.address.ip(), "port": server.address.port(), "health_port": server.health.port()});
    let list: Vec<Value> = servers.iter().map(server).collect();
    let text = json!({"schema": "turnup.balancer/1", "address": listen.ip(), "port": listen.port(), "servers": list});
    let next = config.with_extension("next");
    fs_err::write(&next, text.to_string()).unwrap();
    fs_err::rename(next, config).unwrap();
}

/// A free port.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until the other end has closed the connection.
fn ends(mut stream: &TcpStream) -> Duration {
    let since = Instant::now();
    let mut rest = [0; 16];
    assert!(!matches!(stream.read(&mut rest), Ok(1..)), "it said something");
    since.elapsed()
}

#[test]
fn connections_go_to_servers_that_are_ready() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (Server::start("a"), Server::start("b"));
    b.say(false);
    let mut balancer = Balancer::start(dir.path(), &[&a, &b]);
    balancer.wait_for("a (127.0.0.1:");
    assert_eq!(balancer.names(4), "aaaa", "b is not ready");

    b.say(true);
    balancer.wait_for("is in");
    balancer.wait_until_idle();
    let ((first, one), (second, other)) = (balancer.connect().unwrap(), balancer.connect().unwrap());
    assert_ne!(one, other, "each gets one");
    let of_b = if one == "b" { &first } else { &second };
    let status = balancer.status();
    let up = |at: usize| (status["servers"][at]["up"].clone(), status["servers"][at]["connections"].clone());
    assert_eq!((up(0), up(1)), ((json!(true), json!(1)), (json!(true), json!(1))), "{status}");

    // One that fails its checks loses its connections, and gets no other.
    b.say(false);
    balancer.wait_for("is out: GET /readyz: status 503");
    assert!(ends(of_b) < Duration::from_secs(5));
    assert_eq!(balancer.names(4), "aaaa");
    a.say(false);
    balancer.wait_for("is out");
    assert_eq!(balancer.names(2), "--", "none is left");
    a.say(true);
    balancer.wait_for("is in");
    assert_eq!(balancer.names(2), "aa");
}

#[test]
fn a_client_that_has_said_all_still_hears_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let a = Server::start("a");
    let mut balancer = Balancer::start(dir.path(), &[&a]);
    balancer.wait_for("is in");
    let (mut stream, _) = balancer.connect().unwrap();
    stream.write_all(&vec![b'x'; 100_000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.len(), rest.ends_with("x.")), (100_001, true));
}

#[test]
fn another_list_counts_at_once_and_a_wrong_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (Server::start("a"), Server::start("b"));
    let mut balancer = Balancer::start(dir.path(), &[&a]);
    balancer.wait_for("is in");
    let (of_a, _) = balancer.connect().unwrap();
    fs_err::write(&balancer.config, "{}").unwrap();
    balancer.wait_for("the list of servers stays as it was");
    assert_eq!(balancer.names(2), "aa");
    balancer.list(&[&b]);
    balancer.wait_for("servers: b");
    assert!(ends(&of_a) < Duration::from_secs(5), "a is no server any more");
    balancer.wait_for("is in");
    assert_eq!(balancer.names(3), "bbb");
    // Another address needs another socket: the supervisor starts it again.
    balancer.listen = free();
    balancer.list(&[&b]);
    let since = Instant::now();
    while balancer.child.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < TIMEOUT);
        std::thread::sleep(Duration::from_millis(50));
    }
}
