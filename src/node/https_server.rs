//! A server of HTTPS for one path, to which clients of this host send JSON by POST, one request a
//! connection. It does not know what it serves. It reads its certificate at each connection, so a
//! renewed one needs no restart.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::http_server::{self, HttpResponse};
use crate::error::{Context as _, Result};
use crate::input;

/// How long a client may take to send its request, and to read the answer.
const CLIENT: Duration = Duration::from_secs(5);
/// Bytes of the head of a request, and its lines.
const LONGEST_HEAD: usize = 8 << 10;
const MOST_HEADERS: usize = 32;
/// Bytes of what is sent.
const LONGEST_BODY: usize = 64 << 10;
/// Connections at a time.
const CONNECTIONS: usize = 32;

/// What a server serves.
pub(crate) trait JsonService: Send + Sync + 'static {
    /// The path.
    const PATH: &'static str;

    /// The answer to what was sent; none when that is no question of this service.
    fn answer(&self, asked: &Value) -> Option<Value>;

    /// Says what became of the server, in one line.
    fn tell(&self, line: String);
}

/// By what a server is known, as files in PEM.
#[derive(Clone, Debug)]
pub(crate) struct ServerIdentity {
    /// Its certificate.
    pub certificate: PathBuf,
    /// The key of that.
    pub key: PathBuf,
}

impl ServerIdentity {
    fn config(&self) -> Result<ServerConfig> {
        let no_pem = |path: &PathBuf| format!("{} is no PEM", path.display());
        let certificates = input::read(&self.certificate, input::KEYS)?;
        let certificates: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificates).collect();
        let key = zeroize::Zeroizing::new(input::read(&self.key, input::KEYS)?);
        let key = PrivateKeyDer::from_pem_slice(&key).context(no_pem(&self.key))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
        let config = config.context("TLS 1.3 is not there")?.with_no_client_auth();
        let certificates = certificates.context(no_pem(&self.certificate))?;
        config.with_single_cert(certificates, key).context(no_pem(&self.certificate))
    }
}

/// Serves at an address until the process ends.
pub(crate) fn serve<S: JsonService>(service: &Arc<S>, identity: ServerIdentity, address: SocketAddr) {
    let (asked, told) = (Arc::clone(service), Arc::clone(service));
    let tell = move |line| told.tell(line);
    let answer = move |stream| match identity.config() {
        Ok(config) => answer(asked.as_ref(), config, stream),
        Err(error) => {
            asked.tell(error.in_one_line());
            Ok(())
        }
    };
    http_server::accept(address, CONNECTIONS, &tell, &Arc::new(answer));
}

fn answer<S: JsonService>(service: &S, config: ServerConfig, stream: TcpStream) -> io::Result<()> {
    let connection = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, TimedStream { stream, until: Instant::now() + CLIENT });
    let answer = read_request(&mut stream, S::PATH)?;
    let answer = answer.and_then(|body| serde_json::from_slice::<Value>(&body).map_err(|_| 400));
    let answer = answer.and_then(|asked| service.answer(&asked).ok_or(400));
    let (status, body) = match answer {
        Ok(body) => (200, body.to_string()),
        Err(status) => (status, "{}".to_owned()),
    };
    stream.sock.until = Instant::now() + CLIENT;
    stream.write_all(HttpResponse { status, content_type: "application/json", body }.to_text().as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// A connection that ends at some time, however slowly the other end sends.
struct TimedStream {
    stream: TcpStream,
    until: Instant,
}

impl TimedStream {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        left.map(Some).ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

impl Read for TimedStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// What was sent to this path, or the status of a refusal.
fn read_request(stream: &mut impl Read, path: &str) -> io::Result<std::result::Result<Vec<u8>, u16>> {
    let (mut text, mut some) = (Vec::new(), [0; 4096]);
    let (start, length) = loop {
        let count = stream.read(&mut some)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.extend_from_slice(&some[..count]);
        match read_head(&text, path) {
            Ok(Some(found)) => break found,
            Ok(None) if text.len() <= LONGEST_HEAD => {}
            Ok(None) => return Ok(Err(413)),
            Err(status) => return Ok(Err(status)),
        }
    };
    let mut body = text.split_off(start);
    if body.len() > length {
        return Ok(Err(400));
    }
    let missing = length - body.len();
    body.resize(length, 0);
    stream.read_exact(&mut body[length - missing..])?;
    Ok(Ok(body))
}

/// Where the body begins, and its length; nothing while the head has no end.
fn read_head(text: &[u8], path: &str) -> std::result::Result<Option<(usize, usize)>, u16> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(start) = request.parse(text).map_err(|_| 400_u16)? else { return Ok(None) };
    // Kubernetes' clients say in the query how long they wait.
    let target = request.path.unwrap_or_default();
    if target.split('?').next() != Some(path) {
        return Err(404);
    }
    if request.method != Some("POST") {
        return Err(405);
    }
    let named = |name: &str| -> Vec<&[u8]> {
        request
            .headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
            .collect()
    };
    let lengths = named("content-length");
    let ([length], []) = (&lengths[..], &named("transfer-encoding")[..]) else { return Err(400) };
    let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(length).ok().filter(|_| is_number).and_then(|length| length.parse().ok());
    match length.ok_or(400_u16)? {
        length if length > LONGEST_BODY => Err(413),
        length => Ok(Some((start, length))),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn read(text: &str) -> std::result::Result<String, u16> {
        let found = read_request(&mut text.as_bytes(), "/ask").unwrap();
        found.map(|body| String::from_utf8(body).unwrap())
    }

    #[test]
    fn one_body_of_one_length_for_one_path() {
        let post = |headers: &str, body: &str| read(&format!("POST /ask HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}"));
        assert_eq!(post("Content-Length: 2\r\n", "{}").as_deref(), Ok("{}"));
        assert_eq!(read("POST /ask?timeout=30s HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}").as_deref(), Ok("{}"));
        for (headers, body, status) in [
            ("", "{}", 400),
            ("Content-Length: +2\r\n", "{}", 400),
            ("Content-Length: 2\r\nContent-Length: 2\r\n", "{}", 400),
            ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "{}", 400),
            ("Content-Length: 1\r\n", "{}", 400),
            ("Content-Length: 65537\r\n", "{}", 413),
            ("no header\r\n", "{}", 400),
        ] {
            assert_eq!(post(headers, body), Err(status), "{headers}");
        }
        assert_eq!(post(&format!("A: {}\r\n", "b".repeat(LONGEST_HEAD + 4096)), ""), Err(413));
        assert_eq!(read("GET /ask HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"), Err(405));
        for path in ["/", "/ask/", "/askme", "//ask", "https://a/ask"] {
            assert_eq!(read(&format!("POST {path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}")), Err(404), "{path}");
        }
        assert!(read_request(&mut &b"POST /ask HTTP/1.1\r\nContent-Length: 5\r\n\r\n{}"[..], "/ask").is_err());
        assert!(read_request(&mut &b""[..], "/ask").is_err());
    }
}
