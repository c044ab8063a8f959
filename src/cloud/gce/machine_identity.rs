//! Google's identity tokens of machines: signed by Google, for an hour, with the machine's name,
//! zone and project and its service account
//! (<https://cloud.google.com/compute/docs/instances/verifying-instance-identity>).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::metadata;
use crate::cloud::{Endpoints, IdentityIssuer, IdentityToken};
use crate::error::{Error, Result};

/// Who signs them.
const ISSUER: &str = "https://accounts.google.com";
/// Only the metadata service of a machine adds this claim, and only to the full form: a token that
/// was made for the same account by other means has none.
const MACHINE: &str = "claims.google.compute_engine";
/// Of it.
const NAME: &str = "claims.google.compute_engine.instance_name";
const ZONE: &str = "claims.google.compute_engine.zone";

/// By what the API server knows a worker of this cluster of this project, whose workers run as this
/// account.
pub(super) fn issuer(cluster: &str, project: &str, account: &str) -> IdentityIssuer {
    let is_text = |claim: &str| format!("type({claim}) == string");
    let rules = vec![
        (
            format!("has(claims.google) && has({MACHINE}) && {} && {}", is_text(NAME), is_text(ZONE)),
            "no token of a machine, in its full form",
        ),
        (format!("{MACHINE}.project_id == {}", json!(project)), "a machine of another project"),
        (
            format!("claims.email_verified == true && claims.email == {}", json!(account)),
            "a machine of another service account",
        ),
    ];
    let audience = format!("turnup.dev/gce/{project}/{cluster}");
    IdentityIssuer { url: ISSUER.into(), audience, rules, name: NAME, zone: ZONE }
}

/// The token of this machine, from its metadata service.
pub(super) fn fetch(endpoints: &Endpoints, audience: &str) -> Result<IdentityToken> {
    let what = format!("instance/service-accounts/default/identity?audience={audience}&format=full");
    let token = Zeroizing::new(metadata::ask(endpoints, &what)?);
    let token = Zeroizing::new(token.trim().to_owned());
    if token.split('.').count() == 3 && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let ends = end_of(&token);
        return Ok(IdentityToken { text: token, ends });
    }
    Err(Error::transient("the metadata service of this host answers with no identity token")
        .hint("the machine needs a service account (phase1.gce.node_service_account)"))
}

/// The claim `exp`. The signature is the API server's to verify.
fn end_of(token: &str) -> Option<Timestamp> {
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?).ok()?;
    Timestamp::from_second(claims["exp"].as_i64()?).ok()
}
