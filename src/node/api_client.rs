//! The API server as the host's agent asks it: by the server of kubelet's kubeconfig, with a client
//! certificate of this host. For small questions of one object each; it watches nothing.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::input;

use super::{layout, tls};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a connection stays open for the next question.
const KEPT: Duration = Duration::from_secs(150);
/// Bytes of an answer; a Node with many images has some 20 kB.
const LONGEST: u64 = 1 << 20;

/// The way to the API server.
pub(crate) struct ApiClient {
    agent: ureq::Agent,
    server: String,
}

impl ApiClient {
    /// As who this certificate says; both files are PEM.
    pub(crate) fn connect(certificate: &Path, key: &Path) -> Result<Self> {
        let kubeconfig = input::read_text(Path::new(layout::KUBELET_KUBECONFIG), input::KEYS)?;
        let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap_or_default();
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default().to_owned();
        let config = ureq::Agent::config_builder()
            .tls_config(tls::connect(Path::new(layout::CA), certificate, key)?)
            .timeout_global(Some(ANSWER))
            .max_idle_age(KEPT)
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None);
        Ok(Self { agent: config.build().into(), server })
    }

    /// The object at this path, such as `/api/v1/nodes/NAME`; none where there is none.
    ///
    /// # Errors
    /// That the API server is away, or refuses the question.
    pub(crate) fn get(&self, path: &str) -> Result<Option<Value>> {
        let url = format!("{}{path}", self.server);
        self.read(self.agent.get(&url).call())
    }

    /// Creates this object among those at this path; as the API server then has it.
    ///
    /// # Errors
    /// That the API server is away, or refuses the object.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Result<Value> {
        let url = format!("{}{path}", self.server);
        let sent = self.agent.post(&url).header("Content-Type", "application/json").send(object.to_string());
        self.read(sent)?.ok_or_else(|| Error::transient(format!("{} knows no {path}", self.server)))
    }

    /// Changes the object at this path by a merge patch (RFC 7386).
    ///
    /// # Errors
    /// That the API server is away, refuses the change, or has no such object.
    pub(crate) fn merge(&self, path: &str, change: &Value) -> Result<()> {
        let url = format!("{}{path}", self.server);
        let request = self.agent.patch(&url).header("Content-Type", "application/merge-patch+json");
        let found = self.read(request.send(change.to_string()))?;
        found.map(drop).ok_or_else(|| Error::transient(format!("{} knows no {path}", self.server)))
    }

    fn read(
        &self,
        answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Option<Value>> {
        let away = |why: &dyn std::fmt::Display| {
            Error::transient(format!("the API server at {} does not answer this host: {why}", self.server))
        };
        let mut answer = answer.map_err(|error| away(&error))?;
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(LONGEST).read_to_string().map_err(|error| away(&error))?;
        let object: Value = serde_json::from_str(&text).unwrap_or_default();
        match status.as_u16() {
            404 => Ok(None),
            _ if status.is_success() && object.is_object() => Ok(Some(object)),
            // A refusal says why in a `Status`.
            _ => Err(away(&object["message"].as_str().unwrap_or(status.as_str()))),
        }
    }
}
