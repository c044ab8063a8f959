//! One request and its answer, for APIs of clouds. Knows no cloud; what it sends of secrets it
//! never shows.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use zeroize::Zeroizing;

use crate::error::{Class, Context as _, Error, Result};

/// The longest answer that is read, in bytes: what these APIs say of one machine and its volumes
/// has some kilobytes.
const LONGEST: u64 = 1 << 20;
/// Long enough for an API on a bad day; the caller polls again.
const ANSWER: Duration = Duration::from_secs(30);

static AGENT: LazyLock<ureq::Agent> = LazyLock::new(|| agent(ureq::Proxy::try_from_env()));
/// For a question that a client made: no redirect leads it elsewhere, and it does not take long.
static STRICT: LazyLock<ureq::Agent> = LazyLock::new(|| {
    let config = ureq::Agent::config_builder().max_redirects(0).max_idle_connections(0);
    let config = config.timeout_connect(Some(Duration::from_secs(5))).timeout_global(Some(Duration::from_secs(10)));
    config.http_status_as_error(false).proxy(ureq::Proxy::try_from_env()).build().into()
});
/// The metadata service is the host's own: no proxy knows it.
static DIRECT: LazyLock<ureq::Agent> = LazyLock::new(|| agent(None));

fn agent(proxy: Option<ureq::Proxy>) -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_global(Some(ANSWER))
        .proxy(proxy)
        .user_agent(concat!("turnup/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Name and value.
pub(super) type Headers<'a> = &'a [(&'a str, &'a str)];

/// What came back.
#[derive(Clone, Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) text: String,
    url: String,
}

/// Asks the metadata service.
pub(super) fn ask_metadata(method: &str, url: &str, headers: Headers<'_>) -> Result<String> {
    let answer = send(&DIRECT, method, url, headers, None)?;
    answer.require(|status, text| {
        let message = format!("the metadata service of this host answered {status} to {}", path_of(&answer.url));
        Error::new(class_of(status), message)
            .evidence(shorten(text))
            .hint("is this host a machine of that cloud, with an identity of its own? See etcd_volume in the inventory")
    })?;
    Ok(answer.text)
}

/// Asks an API.
pub(super) fn ask(method: &str, url: &str, headers: Headers<'_>, body: Option<&str>) -> Result<HttpAnswer> {
    send(&AGENT, method, url, headers, body)
}

/// Asks once: follows no redirect, reads no long answer, and does not wait for long.
pub(super) fn ask_strictly(url: &str, headers: Headers<'_>) -> Result<HttpAnswer> {
    send(&STRICT, "GET", url, headers, None)
}

/// Asks what no proxy knows: the machine around this host.
pub(super) fn ask_nearby(method: &str, url: &str) -> Result<HttpAnswer> {
    send(&DIRECT, method, url, &[], None)
}

/// What a machine shows an API: the token that the metadata service lent it.
pub(super) struct Bearer(Zeroizing<String>);

impl Bearer {
    /// From the metadata service's answer.
    pub(super) fn parse(lent: &str) -> Result<Self> {
        let lent = parse(lent, "the metadata service")?;
        Ok(Self(Zeroizing::new(lent["access_token"].as_str().unwrap_or_default().to_owned())))
    }

    /// The token itself.
    pub(super) fn into_token(self) -> Zeroizing<String> {
        self.0
    }

    /// Asks an API that speaks JSON.
    pub(super) fn ask(&self, method: &str, url: &str, body: Option<&Value>) -> Result<HttpAnswer> {
        self.ask_if(method, url, None, body)
    }

    /// The same with one header more.
    pub(super) fn ask_if(
        &self,
        method: &str,
        url: &str,
        condition: Option<(&str, &str)>,
        body: Option<&Value>,
    ) -> Result<HttpAnswer> {
        let authorization = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut headers = vec![("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
        headers.extend(condition);
        ask(method, url, &headers, body.map(Value::to_string).as_deref())
    }
}

impl HttpAnswer {
    /// Whether it was a success; otherwise the error that is made of status and text.
    pub(super) fn require(&self, explain: impl FnOnce(u16, &str) -> Error) -> Result<()> {
        if (200..300).contains(&self.status) { Ok(()) } else { Err(explain(self.status, &self.text)) }
    }

    /// What an error of an API that speaks JSON says, else the beginning of the answer.
    pub(super) fn said(&self) -> String {
        let message = self.json().ok().and_then(|value| Some(value["error"]["message"].as_str()?.to_owned()));
        message.unwrap_or_else(|| shorten(&self.text))
    }

    /// The answer as JSON.
    pub(super) fn json(&self) -> Result<Value> {
        parse(&self.text, &self.url)
    }
}

/// A JSON answer.
pub(super) fn parse(text: &str, url: &str) -> Result<Value> {
    serde_json::from_str(text).context(format!("{} answered with no JSON", path_of(url)))
}

/// The class of an API's error: busy servers and rate limits are transient.
pub(super) const fn class_of(status: u16) -> Class {
    match status {
        408 | 425 | 429 | 500..=599 => Class::Transient,
        401 | 403 => Class::Precondition,
        _ => Class::Permanent,
    }
}

/// Whether a status says that rights are missing.
pub(super) const fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403)
}

/// The way out: the rights when they are missing, else the volume itself.
pub(super) fn advise(status: u16, rights: impl Into<String>) -> String {
    if is_refusal(status) {
        return rights.into();
    }
    "is the volume there, in the zone of this machine? If not, correct etcd_volume in the inventory: turnup provision"
        .into()
}

fn send(agent: &ureq::Agent, method: &str, url: &str, headers: Headers<'_>, body: Option<&str>) -> Result<HttpAnswer> {
    let request = ureq::http::Request::builder().method(method).uri(url);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    // A signature may be in its query.
    let unsent = || format!("cannot ask {}", path_of(url));
    // Without a length ureq sends chunks, which not every metadata service reads.
    let body = body.or_else(|| ["POST", "PUT"].contains(&method).then_some(""));
    let response = match body {
        Some(body) => agent.run(request.body(body).context(unsent())?),
        None => agent.run(request.body(()).context(unsent())?),
    };
    let unreachable = |error: ureq::Error| Error::transient(format!("{} does not answer", host_of(url))).source(error);
    let mut response = response.map_err(unreachable)?;
    let text = response.body_mut().with_config().limit(LONGEST).read_to_string().map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => {
            Error::permanent(format!("{} answers with more than {LONGEST} bytes; the rest was not read", host_of(url)))
        }
        error => unreachable(error),
    })?;
    Ok(HttpAnswer { status: response.status().as_u16(), text, url: url.to_owned() })
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn path_of(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

/// The beginning of what a server said.
pub(super) fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 300 { line } else { format!("{}…", line.chars().take(300).collect::<String>()) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_without_end_is_not_read_to_its_end() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/latest/meta-data/instance-id", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").unwrap();
            let (mut sent, bytes) = (0, vec![b'x'; 1 << 16]);
            while stream.write_all(&bytes).is_ok() {
                sent += bytes.len();
            }
            sent
        });
        let error = ask_metadata("GET", &url, &[]).unwrap_err();
        assert_eq!(error.class(), Class::Permanent, "{}", error.render());
        assert!(
            error.message().ends_with("answers with more than 1048576 bytes; the rest was not read"),
            "{}",
            error.message()
        );
        assert!(server.join().unwrap() < 1 << 27, "what the machine's buffers hold, and no more");
    }
}
