//! A server that speaks Terraform's HTTP protocol for states, on loopback: with locks, a password,
//! and connections that break when a test says so.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

use crate::http_server::{LOOPBACK, Request, send, serve};

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

impl StateServer {
    pub(crate) fn start() -> Self {
        let content: Arc<Mutex<Content>> = Arc::default();
        let shared = Arc::clone(&content);
        let address = serve(LOOPBACK, move |request, stream| respond(request, stream, &shared));
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

fn respond(request: Request, stream: &mut TcpStream, content: &Mutex<Content>) -> std::io::Result<()> {
    let mut content = content.lock().unwrap();
    content.requests.push(format!("{} {}", request.method, request.path));
    let number = content.requests.len();
    if let Some(mut on_request) = content.on_request.take() {
        on_request(number);
        content.on_request = Some(on_request);
    }
    if content.broken == Some(request.method.as_str()) {
        return Ok(());
    }
    let (status, body) = answer(&mut content, request);
    drop(content);
    send(stream, status, &body)
}

fn answer(content: &mut Content, request: Request) -> (&'static str, Vec<u8>) {
    let given = request.headers.get("authorization").map(String::as_str).unwrap_or_default();
    if content.authorization.as_ref().is_some_and(|wanted| !given.ends_with(wanted.as_str())) {
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
