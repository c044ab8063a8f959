//! `turnup node healthcheck`: the health of this host's API server, for clients that have no
//! certificate: kubelet's probes and load balancers. kube-apiserver itself refuses anonymous
//! requests, because its `?verbose` lists the names of its checks and hooks.
//!
//! It passes three paths on, with a certificate of its own, and says yes or no. It must never be
//! the reason why a healthy API server is killed or left out: it keeps no state, reads its
//! certificate at each question, does not judge the API server's own, and takes a refusal of its
//! certificate for a sign of life.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ureq::tls::{ClientCert, TlsConfig};

use super::http_server::{self, HttpResponse, HttpService};
use super::tls;
use crate::error::{Context as _, Result};

/// How long the API server may take. kubelet's liveness probe waits for 15 seconds.
const ANSWER: Duration = Duration::from_secs(14);
/// Bytes of the API server's answer, of which some lines go to the journal.
const LONGEST_ANSWER: u64 = 64 << 10;

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
    // An address that cannot be had is no reason to be silent at another one.
    for address in listen {
        let server = Arc::clone(&server);
        thread::spawn(move || http_server::serve(&server, address));
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

impl HttpService for Server {
    /// `/healthz` is the old name of `/readyz`.
    const PATHS: &'static [&'static str] = &["/livez", "/readyz", "/healthz"];

    fn answer(&self, path: &'static str) -> HttpResponse {
        if self.judge(path) { HttpResponse::plain(200, "ok\n") } else { HttpResponse::plain(503, "not ok\n") }
    }

    fn tell(&self, line: String) {
        // The receiver lives as long as the process.
        drop(self.news.send(line));
    }
}

impl Server {
    fn judge(&self, path: &'static str) -> bool {
        let (status, said) = self.ask(path);
        let is_well = is_well(path, status);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(path) != Some(&said) {
            self.tell(format!("{path}: {}: {said}", if is_well { "ok" } else { "not ok" }));
            last.insert(path, said);
        }
        is_well
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
        tls::client(&self.options.certificate, &self.options.key).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_certificate_kills_nothing_and_leaves_nothing_out() {
        let table = |path: &str| {
            [None, Some(200), Some(401), Some(403), Some(500), Some(301)].map(|status| is_well(path, status))
        };
        assert_eq!(table("/livez"), [false, true, true, true, false, false]);
        assert_eq!(table("/readyz"), [false, true, true, false, false, false]);
        assert_eq!(table("/healthz"), table("/readyz"));
    }
}
