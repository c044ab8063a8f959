//! `turnup node healthcheck`: the health of this host's API server, for clients that have no
//! certificate: kubelet's probes and load balancers. kube-apiserver itself refuses anonymous
//! requests, because its `?verbose` lists the names of its checks and hooks.
//!
//! It passes three paths on, with a certificate of its own, and says yes or no. It must never be
//! the reason why a healthy API server is killed or left out: it keeps no state, reads its
//! certificate at each question, does not judge the API server's own, and takes a refusal of its
//! certificate for a sign of life.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ureq::tls::{Certificate, ClientCert, PrivateKey, TlsConfig};

use crate::error::{Context as _, Result};

/// How long the API server may take. kubelet's liveness probe waits for 15 seconds.
const ANSWER: Duration = Duration::from_secs(14);
/// How long a client may take to send its request, and to read the answer.
const CLIENT: Duration = Duration::from_secs(5);
/// Bytes of a question: a path, and whatever headers a load balancer adds.
const LONGEST: usize = 8 << 10;
/// Bytes of the API server's answer, of which some lines go to the journal.
const LONGEST_ANSWER: u64 = 64 << 10;
/// Connections at a time, for each address. Loopback is kubelet's: clients of the host's own
/// address cannot use up its share.
const AT_ONCE: usize = 64;
/// Until an address that is not there yet is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What may be asked. `/healthz` is the old name of `/readyz`.
const PATHS: [&str; 3] = ["/livez", "/readyz", "/healthz"];

/// Where it listens and whom it asks.
#[derive(Clone, Debug)]
pub(crate) struct HealthcheckOptions {
    /// Loopback for kubelet, the host's own address for load balancers.
    pub listen: Vec<SocketAddr>,
    /// The port of the API server on this host.
    pub api_port: u16,
    /// Its certificate as a client, in PEM.
    pub certificate: PathBuf,
    /// The key of that.
    pub key: PathBuf,
}

/// Answers until the process ends. What changes (ready, not ready and why) goes to `out`, a line
/// each.
///
/// # Errors
/// That `out` cannot be written to.
pub(crate) fn run(options: HealthcheckOptions, out: &mut dyn Write) -> Result<()> {
    let (news, lines) = channel::<String>();
    let listen = options.listen.clone();
    let server = Arc::new(Server { options, news, last: Mutex::default() });
    for address in listen {
        let server = Arc::clone(&server);
        thread::spawn(move || server.listen(address));
    }
    for line in lines {
        writeln!(out, "{}", line.replace(char::is_control, "?")).context("cannot write")?;
        out.flush().context("cannot write")?;
    }
    Ok(())
}

struct Server {
    options: HealthcheckOptions,
    news: Sender<String>,
    /// What was said last, by path.
    last: Mutex<BTreeMap<&'static str, String>>,
}

impl Server {
    /// An address that cannot be had is no reason to be silent at another one.
    fn listen(self: &Arc<Self>, address: SocketAddr) {
        let (mut told, busy) = (false, Arc::new(AtomicUsize::new(0)));
        let listener = loop {
            match TcpListener::bind(address) {
                Ok(listener) => break listener,
                Err(error) if !told => {
                    self.tell(format!("cannot listen at {address}: {error}"));
                    told = true;
                }
                Err(_) => {}
            }
            thread::sleep(RETRY);
        };
        self.tell(format!("listens at {address}"));
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Most likely no file descriptor is left.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if busy.fetch_add(1, Ordering::SeqCst) >= AT_ONCE {
                busy.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (server, busy) = (Arc::clone(self), Arc::clone(&busy));
            let leave = Arc::clone(&busy);
            let answer = move || {
                // A client that went away is no error.
                drop(server.answer(stream));
                busy.fetch_sub(1, Ordering::SeqCst);
            };
            if thread::Builder::new().spawn(answer).is_err() {
                leave.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let status = match path_of(&read_head(&mut stream)?) {
            Ok(path) => self.judge(path),
            Err(status) => status,
        };
        stream.set_write_timeout(Some(CLIENT))?;
        stream.write_all(response(status).as_bytes())
    }

    fn judge(&self, path: &'static str) -> u16 {
        let (status, said) = self.ask(path);
        let is_well = is_well(path, status);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(path) != Some(&said) {
            self.tell(format!("{path}: {}: {said}", if is_well { "ok" } else { "not ok" }));
            last.insert(path, said);
        }
        if is_well { 200 } else { 503 }
    }

    /// The API server's status, if it answers, and what it says in a few words.
    fn ask(&self, path: &str) -> (Option<u16>, String) {
        // As kubelet does with its own probes: an API server whose certificate has ended must not
        // be killed for it.
        let tls = TlsConfig::builder().disable_verification(true).client_cert(self.identity()).build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(ANSWER))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(0)
            .proxy(None)
            .build();
        let url = format!("https://127.0.0.1:{}{path}", self.options.api_port);
        match config.new_agent().get(url).call() {
            Ok(mut answer) => {
                let status = answer.status().as_u16();
                let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string().unwrap_or_default();
                let failed = body.lines().filter(|line| line.starts_with("[-]")).collect::<Vec<_>>().join(", ");
                let remark = match status {
                    401 => "it does not accept the certificate of this health check (turnup up renews it)",
                    403 => "it does not let this health check ask yet",
                    _ => failed.as_str(),
                };
                (Some(status), format!("status {status} {remark}").trim_end().to_owned())
            }
            Err(error) => (None, error.to_string()),
        }
    }

    /// None when it cannot be read: the API server says 401 then, which is an answer.
    fn identity(&self) -> Option<ClientCert> {
        let certificate = Certificate::from_pem(&fs_err::read(&self.options.certificate).ok()?).ok()?;
        let key = PrivateKey::from_pem(&fs_err::read(&self.options.key).ok()?).ok()?;
        Some(ClientCert::new_with_certs(&[certificate], key))
    }

    fn tell(&self, line: String) {
        // The receiver lives as long as the process.
        drop(self.news.send(line));
    }
}

/// Whether an answer means that the API server lives, or serves.
///
/// 401 says that it knows who we are not: our certificate has ended, or is of another authority. It
/// serves others, and all of them would be left out at once. 403 says that it serves, but it has
/// not read who may ask yet: it is not ready.
fn is_well(path: &str, status: Option<u16>) -> bool {
    match status {
        Some(200 | 401) => true,
        Some(403) => path == "/livez",
        _ => false,
    }
}

/// The request up to its empty line.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (since, mut head, mut some) = (Instant::now(), Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = CLIENT.checked_sub(since.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let count = stream.read(&mut some)?;
        if count == 0 || head.len() > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&some[..count]);
    }
    Ok(head)
}

/// What is asked for, or the status of a refusal. Exactly these paths: `/livez?verbose` is another
/// one.
fn path_of(head: &[u8]) -> std::result::Result<&'static str, u16> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Err(400) };
    if ![&b"HTTP/1.0"[..], b"HTTP/1.1"].contains(&version) {
        return Err(400);
    }
    let path = PATHS.into_iter().find(|path| path.as_bytes() == target).ok_or(404_u16)?;
    if method == b"GET" { Ok(path) } else { Err(405) }
}

fn response(status: u16) -> String {
    let (reason, body) = match status {
        200 => ("OK", "ok\n"),
        400 => ("Bad Request", "bad request\n"),
        404 => ("Not Found", "not found\n"),
        405 => ("Method Not Allowed", "only GET\n"),
        _ => ("Service Unavailable", "not ok\n"),
    };
    let length = body.len();
    let head = "Content-Type: text/plain\r\nConnection: close\r\n";
    format!("HTTP/1.1 {status} {reason}\r\n{head}Content-Length: {length}\r\n\r\n{body}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_paths_and_nothing_else() {
        for (line, answer) in [
            ("GET /livez HTTP/1.1", Ok("/livez")),
            ("GET /readyz HTTP/1.0", Ok("/readyz")),
            ("GET /healthz HTTP/1.1", Ok("/healthz")),
            ("GET /livez?verbose HTTP/1.1", Err(404)),
            ("GET /livez?verbose=0 HTTP/1.1", Err(404)),
            ("GET /livez/ HTTP/1.1", Err(404)),
            ("GET //livez HTTP/1.1", Err(404)),
            ("GET /livez/etcd HTTP/1.1", Err(404)),
            ("GET /livez%3Fverbose HTTP/1.1", Err(404)),
            ("GET https://127.0.0.1:6443/livez HTTP/1.1", Err(404)),
            ("GET /api/v1/secrets HTTP/1.1", Err(404)),
            ("POST /livez HTTP/1.1", Err(405)),
            ("HEAD /livez HTTP/1.1", Err(405)),
            ("GET  /livez HTTP/1.1", Err(400)),
            ("GET /livez", Err(400)),
            ("GET /livez HTTP/2.0", Err(400)),
            ("", Err(400)),
        ] {
            assert_eq!(path_of(format!("{line}\r\nHost: x\r\n\r\n").as_bytes()), answer, "{line}");
        }
    }

    #[test]
    fn a_refused_certificate_kills_nothing_and_leaves_nothing_out() {
        let table = |path: &str| {
            [None, Some(200), Some(401), Some(403), Some(500), Some(301)].map(|status| is_well(path, status))
        };
        assert_eq!(table("/livez"), [false, true, true, true, false, false]);
        assert_eq!(table("/readyz"), [false, true, true, false, false, false]);
        assert_eq!(table("/healthz"), table("/readyz"));
    }

    proptest! {
        #[test]
        fn no_bytes_lead_anywhere_else(head in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(path) = path_of(&head) {
                let line = format!("GET {path} HTTP/1.");
                prop_assert!(head.starts_with(line.as_bytes()));
            }
        }

        #[test]
        fn no_query_is_passed_on(path in "/(livez|readyz|healthz)", rest in "[?/%#&a-z=.]{1,20}") {
            prop_assert_eq!(path_of(format!("GET {path}{rest} HTTP/1.1\r\n\r\n").as_bytes()), Err(404));
        }
    }
}
