//! A server that speaks Terraform's HTTP protocol for states, on loopback: with locks, a password, and connections that break when a
//! test says so.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

/// What the server has and how it behaves.
#[derive(Default)]
pub(crate) struct Content {
    pub state: Option<Vec<u8>>,
    /// The lock as its holder described it.
    pub lock: Option<Vec<u8>>,
    /// Every request: method and path.
    pub requests: Vec<String>,
    /// `user:password` in the form of HTTP basic authentication, without the word before it.
    pub authorization: Option<String>,
    /// Requests of this method get no answer.
    pub broken: Option<&'static str>,
    /// Called with the number of each request before it is answered.
    pub on_request: Option<Box<dyn FnMut(usize) + Send>>,
}

/// The server, until the test ends.
pub(crate) struct StateServer {
    address: String,
    content: Arc<Mutex<Content>>,
}

struct Request {
    method: String,
    path: String,
    authorization: String,
    body: Vec<u8>,
}

impl StateServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let content: Arc<Mutex<Content>> = Arc::default();
        let shared = Arc::clone(&content);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { address, content }
    }

    /// The state's address; its lock is below it.
    pub(crate) fn address(&self) -> String {
        format!("{}/state", self.address)
    }

    pub(crate) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    /// The state as JSON; null when there is none.
    pub(crate) fn state(&self) -> Value {
        self.content().state.as_deref().map(|bytes| serde_json::from_slice(bytes).unwrap()).unwrap_or_default()
    }
}

fn serve(stream: &TcpStream, content: &Mutex<Content>) {
    while let Some(request) = read(stream) {
        let mut content = content.lock().unwrap();
        content.requests.push(format!("{} {}", request.method, request.path));
        let number = content.requests.len();
        if let Some(mut on_request) = content.on_request.take() {
            on_request(number);
            content.on_request = Some(on_request);
        }
        if content.broken == Some(request.method.as_str()) {
            return;
        }
        let (status, body) = answer(&mut content, request);
        drop(content);
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut to = stream;
        if to.write_all(head.as_bytes()).and_then(|()| to.write_all(&body)).is_err() {
            return;
        }
    }
}

fn answer(content: &mut Content, request: Request) -> (&'static str, Vec<u8>) {
    if content.authorization.as_ref().is_some_and(|wanted| !request.authorization.ends_with(wanted.as_str())) {
        return ("401 Unauthorized", Vec::new());
    }
    match (request.method.as_str(), request.path.split('?').next().unwrap_or_default()) {
        ("GET", "/state") => match &content.state {
            Some(state) => ("200 OK", state.clone()),
            None => ("404 Not Found", Vec::new()),
        },
        ("POST", "/state") => {
            content.state = Some(request.body);
            ("200 OK", Vec::new())
        }
        ("LOCK" | "POST", "/state/lock") => {
            if let Some(held) = &content.lock {
                return ("423 Locked", held.clone());
            }
            content.lock = Some(request.body);
            ("200 OK", Vec::new())
        }
        ("UNLOCK" | "DELETE", "/state/lock") => {
            content.lock = None;
            ("200 OK", Vec::new())
        }
        _ => ("405 Method Not Allowed", Vec::new()),
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => value.trim().clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, authorization, body })
}
