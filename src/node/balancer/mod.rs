//! `turnup node balancer`: a small load balancer for API servers. It passes TCP connections on to
//! those that are ready, and reads nothing of what goes through.
//!
//! Each server is checked every second. The connections of one that fails its checks are closed at
//! once: a client that watches would otherwise wait for a host that is gone. It never decides which
//! servers there are: that is a file, which is read again when it changes.

mod pool;

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::document;
use crate::error::{Context as _, Error, Result};
use crate::exec::UnitStatus;
use crate::input;
use crate::inventory::{ApiServer, ServerList};

use pool::{Pool, Turn};

/// Between two checks of a server, and between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a check may take. An API server under load answers late, and is ready all the same.
const CHECK: Duration = Duration::from_secs(3);
/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);
/// Connections at a time; a node has about ten.
const MOST: usize = 2048;
/// Threads only copy: they need no megabytes.
const STACK: usize = 256 << 10;
/// A silent connection is probed after this time, and is over after three probes without answer.
const SILENT: Duration = Duration::from_secs(30);
const PROBE: Duration = Duration::from_secs(10);
/// How long sent data may stay without an acknowledgement, in milliseconds.
const UNACKNOWLEDGED: u32 = 60_000;

/// Where its list of servers is, and where it tells about itself.
#[derive(Clone, Debug)]
pub(crate) struct BalancerOptions {
    /// A [`ServerList`].
    pub config: PathBuf,
    /// Where it answers any HTTP request with its status as JSON.
    pub status: Option<SocketAddr>,
}

/// Balances until the process ends. What changes (a server is in, or out and why) goes to `out`, a
/// line each.
///
/// # Errors
/// That the file cannot be read or is wrong at the start, that an address cannot be had, or that
/// the file names another address to listen at: the supervisor of the process starts it again.
pub(crate) fn run(options: &BalancerOptions, out: &mut dyn Write) -> Result<()> {
    let (news, lines) = channel();
    let mut text = read(&options.config)?;
    let list = parse(&options.config, &text)?;
    let own = SocketAddr::new(list.address, list.port);
    let listen = |address| TcpListener::bind(address).context(format!("cannot listen at {address}"));
    let (clients, status) = (listen(own)?, options.status.map(listen).transpose()?);
    let balancer = Arc::new(Balancer::new(news));
    balancer.take_over(&list.servers);
    start("clients", &balancer, move |balancer| balancer.accept(&clients))?;
    if let Some(status) = status {
        start("status", &balancer, move |balancer| balancer.tell_status(&status))?;
    }
    balancer.tell(format!("listens at {own}"));
    let (mut told, mut unit) = (String::new(), UnitStatus::default());
    loop {
        match reread(&options.config, &mut text) {
            Ok(Some(list)) if SocketAddr::new(list.address, list.port) != own => {
                let message = format!("{} names another address than {own}", options.config.display());
                return Err(Error::transient(message).hint("start it again"));
            }
            Ok(Some(list)) => balancer.take_over(&list.servers),
            Ok(None) => {}
            Err(error) if error.message() == told => {}
            Err(error) => {
                error.message().clone_into(&mut told);
                balancer.tell(format!("the list of servers stays as it was: {told}"));
            }
        }
        balancer.check_all();
        write_lines(&lines, out)?;
        unit.set(balancer.pool().troubles());
    }
}

fn read(path: &Path) -> Result<String> {
    Ok(input::read_text(path, input::DOCUMENT)?)
}

fn parse(path: &Path, text: &str) -> Result<ServerList> {
    document::parse(&path.display().to_string(), text)
}

/// The list, when the file has another one than `known`.
fn reread(path: &Path, known: &mut String) -> Result<Option<ServerList>> {
    let text = read(path)?;
    if text == *known {
        return Ok(None);
    }
    known.clone_from(&text);
    parse(path, &text).map(Some)
}

/// Writes what is told until the next checks are due.
fn write_lines(lines: &Receiver<String>, out: &mut dyn Write) -> Result<()> {
    let until = Instant::now() + INTERVAL;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                writeln!(out, "{}", line.replace(char::is_control, "?")).context("cannot write")?;
                out.flush().context("cannot write")?;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn start(name: &str, balancer: &Arc<Balancer>, act: impl FnOnce(&Arc<Balancer>) + Send + 'static) -> Result<()> {
    let balancer = Arc::clone(balancer);
    let thread = thread::Builder::new().name(name.into()).stack_size(STACK).spawn(move || act(&balancer));
    thread.context("cannot start a thread").map(drop)
}

/// Two ends that belong together.
struct Connection {
    server: SocketAddr,
    client: Arc<TcpStream>,
    upstream: Arc<TcpStream>,
}

impl Connection {
    fn close(&self) {
        for end in [&self.client, &self.upstream] {
            // It may be closed already.
            drop(end.shutdown(Shutdown::Both));
        }
    }
}

struct Balancer {
    pool: Mutex<Pool>,
    connections: Mutex<BTreeMap<u64, Connection>>,
    /// Clients that are served, whether a server was found already or not.
    clients: AtomicUsize,
    ids: AtomicU64,
    news: Sender<String>,
}

impl Balancer {
    fn new(news: Sender<String>) -> Self {
        let (pool, connections) = (Mutex::default(), Mutex::default());
        Self { pool, connections, clients: AtomicUsize::new(0), ids: AtomicU64::new(0), news }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, line: String) {
        // The receiver lives as long as the process.
        drop(self.news.send(line));
    }

    fn take_over(&self, servers: &[ApiServer]) {
        let gone = self.pool().replace(servers);
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        self.tell(format!("servers: {}", names.join(", ")));
        for server in gone {
            self.close_all(server);
        }
    }

    /// Closes every connection to a server.
    fn close_all(&self, server: SocketAddr) {
        let connections = self.connections();
        connections.values().filter(|connection| connection.server == server).for_each(Connection::close);
    }

    fn check_all(self: &Arc<Self>) {
        let due = self.pool().begin_checks();
        for server in due {
            let socket = server.socket();
            let check = move |balancer: &Arc<Self>| {
                let result = check(&server);
                let turn = balancer.pool().end_check(socket, result.clone());
                balancer.turn(socket, turn, result.err());
            };
            if let Err(error) = start("check", self, check) {
                self.pool().skip_check(socket);
                self.tell(format!("{socket} is not checked: {}", error.message()));
            }
        }
    }

    fn turn(&self, server: SocketAddr, turn: Option<Turn>, why: Option<String>) {
        let name = || self.pool().name(server);
        match turn {
            Some(Turn::Up) => self.tell(format!("{} is in", name())),
            Some(Turn::Down) => {
                self.tell(format!("{} is out: {}", name(), why.unwrap_or_default()));
                self.close_all(server);
            }
            None => {}
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let Ok(client) = client else {
                // Most likely no file descriptor is left.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if self.clients.fetch_add(1, Ordering::SeqCst) >= MOST {
                self.clients.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let serve = move |balancer: &Arc<Self>| {
                // An end that went away is no error.
                drop(balancer.serve(client));
                balancer.clients.fetch_sub(1, Ordering::SeqCst);
            };
            if start("client", self, serve).is_err() {
                self.clients.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Connects a client to a server and copies both ways until both have said all.
    fn serve(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let Some((server, upstream)) = self.connect() else { return Ok(()) };
        prepare(&client)?;
        prepare(&upstream)?;
        let (client, upstream) = (Arc::new(client), Arc::new(upstream));
        let connection = Connection { server, client: Arc::clone(&client), upstream: Arc::clone(&upstream) };
        let id = self.ids.fetch_add(1, Ordering::SeqCst);
        self.connections().insert(id, connection);
        // After it is in the map: a server that is out from now on closes it.
        let is_open = self.pool().open(server);
        if is_open {
            let (from, to) = (Arc::clone(&upstream), Arc::clone(&client));
            if let Ok(back) = thread::Builder::new().stack_size(STACK).spawn(move || copy(&from, &to)) {
                copy(&client, &upstream);
                drop(back.join());
            }
            self.pool().close(server);
        }
        if let Some(connection) = self.connections().remove(&id) {
            connection.close();
        }
        Ok(())
    }

    /// A connection to the best server that accepts one.
    fn connect(&self) -> Option<(SocketAddr, TcpStream)> {
        let candidates = self.pool().candidates();
        for server in candidates {
            match TcpStream::connect_timeout(&server, CONNECT) {
                Ok(stream) => return Some((server, stream)),
                Err(error) => {
                    let why = error.to_string();
                    let turn = self.pool().refuse(server, why.clone());
                    self.turn(server, turn, Some(why));
                }
            }
        }
        None
    }

    fn tell_status(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let Ok(mut client) = client else {
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let mut answer = || -> io::Result<()> {
                client.set_read_timeout(Some(CONNECT))?;
                client.set_write_timeout(Some(CONNECT))?;
                // Whatever is asked for, there is one answer.
                let _asked = client.read(&mut [0; 4096])?;
                let body = format!("{:#}\n", self.pool().status());
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
                write!(client, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
            };
            // A client that went away is no error.
            drop(answer());
        }
    }
}

/// Both ends find out when the other one is gone without a word.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENT)?;
    sockopt::set_tcp_keepintvl(stream, PROBE)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED)?;
    Ok(())
}

/// Copies until the one end has said all, and tells the other end, which may still have something
/// to say. After an error neither has.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let copied = io::copy(&mut from, &mut to);
    let how = if copied.is_ok() { Shutdown::Write } else { Shutdown::Both };
    if to.shutdown(how).is_err() || copied.is_err() {
        drop(from.shutdown(Shutdown::Both));
    }
}

/// Whether a server is ready, or why not.
fn check(server: &ApiServer) -> Result<(), String> {
    let Some(port) = server.health_port else {
        return TcpStream::connect_timeout(&server.socket(), CHECK).map(drop).map_err(|error| error.to_string());
    };
    let line = ask(SocketAddr::new(server.address, port)).map_err(|error| error.to_string())?;
    judge(&line)
}

/// The first line of the answer to `GET /readyz`.
fn ask(health: SocketAddr) -> io::Result<Vec<u8>> {
    let since = Instant::now();
    let mut stream = TcpStream::connect_timeout(&health, CHECK)?;
    stream.set_write_timeout(Some(CHECK))?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {health}\r\nConnection: close\r\n\r\n")?;
    let (mut line, mut some) = (Vec::new(), [0; 256]);
    while !line.contains(&b'\n') && line.len() < 1024 {
        let left = CHECK.checked_sub(since.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let count = stream.read(&mut some)?;
        if count == 0 {
            break;
        }
        line.extend_from_slice(&some[..count]);
    }
    Ok(line)
}

/// A status of 200 and nothing else is good.
fn judge(line: &[u8]) -> Result<(), String> {
    let line = String::from_utf8_lossy(line);
    let first = line.lines().next().unwrap_or_default();
    let mut words = first.split(' ');
    let version = words.next().unwrap_or_default();
    match words.next() {
        Some("200") if version.starts_with("HTTP/1.") => Ok(()),
        Some(status) if version.starts_with("HTTP/1.") => Err(format!("GET /readyz: status {status}")),
        _ => Err("GET /readyz: no HTTP answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_200_is_ready() {
        assert_eq!(judge(b"HTTP/1.1 200 OK\r\n"), Ok(()));
        assert_eq!(judge(b"HTTP/1.0 200 OK"), Ok(()));
        assert_eq!(judge(b"HTTP/1.1 503 Service Unavailable\r\n"), Err("GET /readyz: status 503".into()));
        for line in [&b""[..], b"200 OK", b"SSH-2.0-OpenSSH\r\n", b"\xff\xff", b"HTTP/1.1"] {
            assert_eq!(judge(line), Err("GET /readyz: no HTTP answer".into()), "{line:?}");
        }
    }
}
