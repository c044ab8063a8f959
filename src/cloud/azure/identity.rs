//! Who a machine of Azure is to Azure's resource manager and to Blob Storage: its managed
//! identity's token, lent by the metadata service.

use serde_json::Value;
use zeroize::Zeroizing;

use crate::cloud::Endpoints;
use crate::cloud::http::{self, Bearer, HttpAnswer};
use crate::error::{Error, Result};

/// The resource manager, and with what it is asked.
pub(super) struct ManagedIdentity {
    api: String,
    /// The machine's id.
    pub(super) machine: String,
    bearer: Bearer,
}

/// The manager's address in the cloud that the machine says it is in.
fn find_api(cloud: &str) -> &'static str {
    match cloud {
        "AzureUSGovernmentCloud" => "https://management.usgovcloudapi.net",
        "AzureChinaCloud" => "https://management.chinacloudapi.cn",
        _ => "https://management.azure.com",
    }
}

/// A part of the metadata service.
fn ask_metadata(endpoints: &Endpoints, path: &str) -> Result<String> {
    http::ask_metadata("GET", &format!("{}/metadata/{path}", endpoints.metadata), &[("Metadata", "true")])
}

/// What the identity of this machine is lent for a resource, an address that is escaped.
fn lend_token(endpoints: &Endpoints, resource: &str) -> Result<Bearer> {
    let path = format!("identity/oauth2/token?api-version=2018-02-01&resource={resource}");
    Bearer::parse(&Zeroizing::new(ask_metadata(endpoints, &path)?))
}

/// A token for Blob Storage, whose resource is the same in each cloud of Azure.
pub(super) fn lend_blob_token(endpoints: &Endpoints) -> Result<Zeroizing<String>> {
    let token = lend_token(endpoints, "https%3A%2F%2Fstorage.azure.com%2F")?.into_token();
    if token.is_empty() {
        return Err(Error::transient("the metadata service lends no token for Blob Storage")
            .hint("give the machine one managed identity; then: turnup up"));
    }
    Ok(token)
}

impl ManagedIdentity {
    pub(super) fn open(endpoints: &Endpoints) -> Result<Self> {
        let compute = ask_metadata(endpoints, "instance/compute?api-version=2021-02-01&format=json")?;
        let compute = http::parse(&compute, "the metadata service")?;
        let public = find_api(compute["azEnvironment"].as_str().unwrap_or_default());
        let resource = public.replace(':', "%3A").replace('/', "%2F");
        Ok(Self {
            api: endpoints.api.clone().unwrap_or_else(|| public.to_owned()),
            machine: compute["resourceId"].as_str().unwrap_or_default().to_owned(),
            bearer: lend_token(endpoints, &format!("{resource}%2F"))?,
        })
    }

    /// `path` with its query; `condition` is one header more.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        condition: Option<(&str, &str)>,
        body: Option<&Value>,
    ) -> Result<HttpAnswer> {
        self.bearer.ask_if(method, &format!("{}{path}", self.api), condition, body)
    }
}
