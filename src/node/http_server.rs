//! A server of HTTP/1.1 for a few paths that are asked for with GET, one request a connection. It
//! does not know what it serves, and takes nothing from a request but its path.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take to send its request, and to read the answer.
const CLIENT: Duration = Duration::from_secs(5);
/// Bytes of a question: a path, and whatever headers a load balancer adds.
const LONGEST: usize = 8 << 10;
/// Connections at a time, for each address: clients of one cannot use up the share of another.
const CONNECTIONS: usize = 64;
/// Until an address that is not there yet is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

impl HttpResponse {
    /// A plain text.
    pub(super) fn plain(status: u16, body: &str) -> Self {
        Self { status, content_type: "text/plain", body: body.to_owned() }
    }

    fn refusal(status: u16) -> Self {
        let body = match status {
            404 => "not found\n",
            405 => "only GET\n",
            _ => "bad request\n",
        };
        Self::plain(status, body)
    }

    /// As it is sent.
    pub(super) fn to_text(&self) -> String {
        let Self { status, content_type, body } = self;
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            _ => "Service Unavailable",
        };
        let length = body.len();
        let head = format!("Content-Type: {content_type}\r\nConnection: close\r\nContent-Length: {length}");
        format!("HTTP/1.1 {status} {reason}\r\n{head}\r\n\r\n{body}")
    }
}

/// What a server serves.
pub(super) trait HttpService: Send + Sync + 'static {
    /// The paths that may be asked for: exactly these.
    const PATHS: &'static [&'static str];

    /// The answer to one of them.
    fn answer(&self, path: &'static str) -> HttpResponse;

    /// Says what became of the server, in one line.
    fn tell(&self, line: String);
}

/// Serves at an address until the process ends. One that cannot be had is said once, and tried
/// again.
pub(super) fn serve<C: HttpService>(content: &Arc<C>, address: SocketAddr) {
    let (asked, told) = (Arc::clone(content), Arc::clone(content));
    let tell = move |line| told.tell(line);
    accept(address, CONNECTIONS, &tell, &Arc::new(move |stream| answer(asked.as_ref(), stream)));
}

/// Hands over every connection to an address, as many at a time, until the process ends.
pub(super) fn accept<F: Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static>(
    address: SocketAddr,
    at_once: usize,
    tell: &dyn Fn(String),
    answer: &Arc<F>,
) {
    let (mut told, busy) = (false, Arc::new(AtomicUsize::new(0)));
    let listener = loop {
        match TcpListener::bind(address) {
            Ok(listener) => break listener,
            Err(error) if !told => {
                tell(format!("cannot listen at {address}: {error}"));
                told = true;
            }
            Err(_) => {}
        }
        thread::sleep(RETRY);
    };
    tell(format!("listens at {address}"));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Most likely no file descriptor is left.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if busy.fetch_add(1, Ordering::SeqCst) >= at_once {
            busy.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (answer, busy) = (Arc::clone(answer), Arc::clone(&busy));
        let leave = Arc::clone(&busy);
        let answer = move || {
            // A client that went away is no error.
            drop(answer(stream));
            busy.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::Builder::new().spawn(answer).is_err() {
            leave.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn answer<C: HttpService>(content: &C, mut stream: TcpStream) -> io::Result<()> {
    let answer = match path_of(&read_head(&mut stream)?, C::PATHS) {
        Ok(path) => content.answer(path),
        Err(status) => HttpResponse::refusal(status),
    };
    stream.set_write_timeout(Some(CLIENT))?;
    stream.write_all(answer.to_text().as_bytes())
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
/// path.
fn path_of(head: &[u8], paths: &[&'static str]) -> Result<&'static str, u16> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Err(400) };
    if ![&b"HTTP/1.0"[..], b"HTTP/1.1"].contains(&version) {
        return Err(400);
    }
    let path = paths.iter().find(|path| path.as_bytes() == target).ok_or(404_u16)?;
    if method == b"GET" { Ok(path) } else { Err(405) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATHS: [&str; 3] = ["/livez", "/readyz", "/healthz"];

    #[test]
    fn these_paths_and_nothing_else() {
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
            assert_eq!(path_of(format!("{line}\r\nHost: x\r\n\r\n").as_bytes(), &PATHS), answer, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_lead_anywhere_else(head in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(path) = path_of(&head, &PATHS) {
                let line = format!("GET {path} HTTP/1.");
                prop_assert!(head.starts_with(line.as_bytes()));
            }
        }

        #[test]
        fn no_query_is_passed_on(path in "/(livez|readyz|healthz)", rest in "[?/%#&a-z=.]{1,20}") {
            prop_assert_eq!(path_of(format!("GET {path}{rest} HTTP/1.1\r\n\r\n").as_bytes(), &PATHS), Err(404));
        }
    }
}
