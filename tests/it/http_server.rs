//! The HTTP server of all tests, on threads of their own until the test ends: one request a
//! connection. What it answers is the test's.
#![expect(clippy::unwrap_used, reason = "a server that cannot start fails the test")]

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;

/// Any port of loopback.
pub(crate) const LOOPBACK: (&str, u16) = ("127.0.0.1", 0);

/// A request, read to its end.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        for line in reader.by_ref().lines() {
            match line.ok()? {
                line if line.is_empty() => break,
                line => head.push(line),
            }
        }
        let (first, headers) = head.split_first()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let headers = headers.iter().filter_map(|line| line.split_once(':'));
        let headers: BTreeMap<String, String> =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, path, headers, body })
    }

    /// The first byte that is asked for: 0 without `Range: bytes=N-`.
    pub(crate) fn first_byte(&self) -> usize {
        let range = self.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
        range.map_or(0, |first| first.parse().unwrap())
    }
}

/// Starts a server; its address is `http://HOST:PORT`. An answer that cannot be sent is the
/// client's affair: it may have been killed.
pub(crate) fn serve(
    at: impl ToSocketAddrs,
    answer: impl Fn(Request, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind(at).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || Request::read(&stream).map(|request| answer(request, &mut stream)));
        }
    });
    url
}

/// The head of an answer; without a length it ends with the connection.
pub(crate) fn send_head(stream: &mut TcpStream, status: &str, length: Option<u64>) -> io::Result<()> {
    let length = length.map_or_else(String::new, |length| format!("Content-Length: {length}\r\n"));
    write!(stream, "HTTP/1.1 {status}\r\n{length}Connection: close\r\n\r\n")
}

/// A whole answer.
pub(crate) fn send(stream: &mut TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    send_head(stream, status, Some(body.len() as u64))?;
    stream.write_all(body)
}

/// An answer without end, until the client closes the connection.
pub(crate) fn send_endless(stream: &mut TcpStream) -> io::Result<()> {
    send_head(stream, "200 OK", None)?;
    loop {
        stream.write_all(&[b'x'; 1 << 12])?;
    }
}
