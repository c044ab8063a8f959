//! EC2's query API, with what the role of this machine lends it.

use jiff::Timestamp;

use super::metadata::Metadata;
use super::sigv4::{FORM, SignedRequest, escape};
use crate::cloud::http::HttpAnswer;
use crate::cloud::{Endpoints, LentKey};
use crate::error::Result;

/// The version of the API.
const VERSION: &str = "2016-11-15";

/// The API of a region.
pub(super) struct Ec2Api {
    url: String,
    region: String,
    key: LentKey,
}

impl Ec2Api {
    /// That of the region of this machine.
    pub(super) fn open(metadata: &Metadata<'_>, region: &str, endpoints: &Endpoints) -> Result<Self> {
        let key = metadata.key()?;
        let url = match &endpoints.api {
            Some(url) => url.clone(),
            None => format!("https://ec2.{region}.{}", metadata.domain()?),
        };
        Ok(Self { url, region: region.to_owned(), key })
    }

    /// The answer, whatever its status.
    pub(super) fn call(&self, action: &str, parameters: &[(&str, &str)]) -> Result<HttpAnswer> {
        let own = [("Action", action), ("Version", VERSION)];
        let pairs = own.iter().chain(parameters).map(|(name, value)| format!("{name}={}", escape(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let form = SignedRequest {
            method: "POST",
            endpoint: &self.url,
            path: "/",
            query: "",
            region: &self.region,
            service: "ec2",
            content_type: FORM,
            body: &body,
            moment: Timestamp::now(),
        };
        form.send(&self.key)
    }
}
