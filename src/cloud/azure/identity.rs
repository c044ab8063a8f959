//! Who a machine of Azure is to Azure's resource manager: its managed identity's token, lent by
//! the metadata service.

use serde_json::Value;
use zeroize::Zeroizing;

use crate::cloud::Endpoints;
use crate::cloud::http::{self, Bearer, HttpAnswer};
use crate::error::Result;

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

impl ManagedIdentity {
    pub(super) fn open(endpoints: &Endpoints) -> Result<Self> {
        let metadata = &endpoints.metadata;
        let ask =
            |path: &str| http::ask_metadata("GET", &format!("{metadata}/metadata/{path}"), &[("Metadata", "true")]);
        let compute =
            http::parse(&ask("instance/compute?api-version=2021-02-01&format=json")?, "the metadata service")?;
        let public = find_api(compute["azEnvironment"].as_str().unwrap_or_default());
        let resource = public.replace(':', "%3A").replace('/', "%2F");
        let token =
            Zeroizing::new(ask(&format!("identity/oauth2/token?api-version=2018-02-01&resource={resource}%2F"))?);
        Ok(Self {
            api: endpoints.api.clone().unwrap_or_else(|| public.to_owned()),
            machine: compute["resourceId"].as_str().unwrap_or_default().to_owned(),
            bearer: Bearer::parse(&token)?,
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
