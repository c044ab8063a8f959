//! A server on this host that answers JSON over HTTPS, and who its client is: the member of etcd or
//! the API server. What is asked, others decide.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;

use super::{layout, tls};

/// A server that is asked for JSON, and who its client is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpsEndpoint {
    /// `https://127.0.0.1:2379`.
    pub endpoint: String,
    /// Files in PEM: the authority, the client's certificate and its key. All empty without TLS.
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

/// What etcd or the API server says of an answer that is no success.
pub(super) fn reason(text: &str, status: ureq::http::StatusCode) -> String {
    let said: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let message = said.and_then(|said| said["message"].as_str().map(str::to_owned));
    message.unwrap_or_else(|| format!("status {status}"))
}

impl HttpsEndpoint {
    /// The member of etcd of a control-plane host, with the host's own certificate.
    pub(crate) fn of_etcd() -> Self {
        Self {
            endpoint: layout::ETCD_ENDPOINT.into(),
            authority: layout::ETCD_AUTHORITY.into(),
            certificate: layout::ETCD_CERTIFICATE.into(),
            key: layout::ETCD_KEY.into(),
        }
    }

    /// A client for some requests: the files are read again for the next one, because certificates
    /// are renewed. `patience` is for a whole request.
    pub(super) fn client(&self, patience: Duration) -> Result<ureq::Agent> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(patience))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None);
        if self.authority.is_empty() {
            return Ok(config.build().into());
        }
        let tls = tls::connect(self.authority.as_ref(), self.certificate.as_ref(), self.key.as_ref())?;
        Ok(config.tls_config(tls).build().into())
    }
}
