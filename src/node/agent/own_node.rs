//! This host's Node, as the agent may see and change it: with the credential of its kubelet, which
//! may read and write this one Node. The API server answers from its cache. What is asked, and what
//! is written, others decide.

use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;

use crate::error::{Context as _, Result};

use super::super::api_client::ApiClient;
use super::super::facts::CLIENT_CERTIFICATE;

/// The way to it, kept open as long as the certificate is the same and the API server answers.
#[derive(Default)]
pub(super) struct OwnNode {
    client: Option<Client>,
}

struct Client {
    api: ApiClient,
    certificate_of: SystemTime,
}

impl OwnNode {
    /// The Node of this name, which is this host's; null where there is none. As the API server has
    /// it in its cache: nothing is asked of etcd.
    pub(super) fn read(&mut self, name: &str) -> Result<Value> {
        let path = format!("/api/v1/nodes/{name}?resourceVersion=0");
        self.ask(|api| api.get(&path)).map(Option::unwrap_or_default)
    }

    /// Writes this into it.
    pub(super) fn merge(&mut self, name: &str, patch: &Value) -> Result<()> {
        let own = format!("/api/v1/nodes/{name}");
        self.ask(|api| api.merge(&own, patch))
    }

    /// kubelet renews its certificate, by another file in the place of the old one.
    fn ask<T>(&mut self, question: impl Fn(&ApiClient) -> Result<T>) -> Result<T> {
        let certificate = Path::new(CLIENT_CERTIFICATE);
        let certificate_of = fs_err::metadata(certificate)?.modified().context("the time of a certificate")?;
        let known = self.client.take().filter(|client| client.certificate_of == certificate_of);
        let client = match known {
            Some(client) => client,
            None => Client { api: ApiClient::connect(certificate, certificate)?, certificate_of },
        };
        let answer = question(&client.api)?;
        self.client = Some(client);
        Ok(answer)
    }
}
