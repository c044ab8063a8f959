//! This host's Node, as the agent may see and change it: with the credential of its kubelet, which
//! may read and write this one Node. The API server answers from its cache. What is asked, and what
//! is written, others decide.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::error::{Context as _, Error, Result};
use crate::input;

use super::super::facts::CLIENT_CERTIFICATE;
use super::super::{layout, tls};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a connection may wait for the next question.
const IDLE: Duration = Duration::from_secs(150);
/// Bytes of a Node; one with many images has some 20 kB.
const LONGEST: u64 = 1 << 20;

/// The way to it, kept open as long as the certificate is the same.
#[derive(Default)]
pub(super) struct OwnNode {
    client: Option<Client>,
}

struct Client {
    agent: ureq::Agent,
    certificate_of: SystemTime,
}

impl OwnNode {
    /// The Node of this name, which is this host's. As the API server has it in its cache: nothing
    /// is asked of etcd.
    pub(super) fn read(&mut self, name: &str) -> Result<Value> {
        let server = find_server()?;
        let url = format!("{server}/api/v1/nodes/{name}?resourceVersion=0");
        let answer = self.client()?.get(&url).call();
        let text = read_answer(&server, answer)?;
        serde_json::from_str(&text).map_err(|error| away(&server, &error))
    }

    /// Writes this into it.
    pub(super) fn merge(&mut self, name: &str, patch: &Value) -> Result<()> {
        let server = find_server()?;
        let url = format!("{server}/api/v1/nodes/{name}");
        let request = self.client()?.patch(&url).header("Content-Type", "application/merge-patch+json");
        read_answer(&server, request.send(patch.to_string().as_bytes())).map(drop)
    }

    /// kubelet renews its certificate, by another file in the place of the old one.
    fn client(&mut self) -> Result<&ureq::Agent> {
        let certificate = Path::new(CLIENT_CERTIFICATE);
        let certificate_of = fs_err::metadata(certificate)?.modified().context("the time of a certificate")?;
        let known = self.client.take().filter(|client| client.certificate_of == certificate_of);
        let client = match known {
            Some(client) => client,
            None => Client { agent: connect(certificate, Path::new(layout::CA))?, certificate_of },
        };
        Ok(&self.client.insert(client).agent)
    }
}

fn find_server() -> Result<String> {
    let kubeconfig = input::read_text(Path::new(layout::KUBELET_KUBECONFIG), input::KEYS)?;
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap_or_default();
    Ok(kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default().to_owned())
}

fn connect(certificate: &Path, authority: &Path) -> Result<ureq::Agent> {
    let config = ureq::Agent::config_builder()
        .tls_config(tls::connect(authority, certificate, certificate)?)
        .timeout_global(Some(ANSWER))
        .max_idle_age(IDLE)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None);
    Ok(config.build().into())
}

fn away(server: &str, why: &dyn std::fmt::Display) -> Error {
    Error::transient(format!("{server} does not tell of its Node: {why}"))
}

fn read_answer(
    server: &str,
    answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<String> {
    let mut answer = answer.map_err(|error| away(server, &error))?;
    let status = answer.status();
    let text = answer.body_mut().with_config().limit(LONGEST).read_to_string().map_err(|error| away(server, &error))?;
    if !status.is_success() {
        return Err(away(server, &status).evidence(text.chars().take(300).collect::<String>()));
    }
    Ok(text)
}
