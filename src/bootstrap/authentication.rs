//! Whose tokens the API server takes, besides those of service accounts and bootstrap tokens: its
//! file `AuthenticationConfiguration`. Users of an identity provider, and machines of node groups.

use serde_json::{Value, json};

use crate::cluster::{Cluster, Oidc};
use crate::error::{Error, Result};

use super::{configuration, machine_identity};

/// The setting of the provider of users.
const ISSUER: &str = "phase2.apiserver.oidc_issuer_url";

/// The file; none where there is nothing to say.
pub(super) fn find(cluster: &Cluster) -> Result<Option<Value>> {
    let oidc = cluster.settings.control_plane.oidc.as_ref();
    let machines = machine_identity::find_issuer(cluster)?;
    // The API server takes one entry of an issuer, and users and machines differ in all the rest.
    if let (Some(oidc), Some(machines)) = (oidc, &machines)
        && oidc.issuer_url.trim_end_matches('/') == machines.url
    {
        let message = format!(
            "{ISSUER}: {} says who the machines are (phase1.user_data.identity), and cannot say who users are too",
            machines.url
        );
        return Err(Error::config(message).hint(format!(
            "turnup config set phase1.user_data.identity=token, or another identity provider: {ISSUER}=…"
        )));
    }
    let users = oidc.map(|oidc| of_users(cluster, oidc)).transpose()?;
    let jwt: Vec<Value> = users.into_iter().chain(machine_identity::authenticator(cluster)?).collect();
    Ok((!jwt.is_empty()).then(
        || json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt}),
    ))
}

fn of_users(cluster: &Cluster, oidc: &Oidc) -> Result<Value> {
    let mut issuer = json!({"url": oidc.issuer_url, "audiences": [oidc.client_id]});
    if !oidc.ca_file.is_empty() {
        let text = configuration::read(cluster, "phase2.apiserver.oidc_ca_file", &oidc.ca_file)?;
        if !text.contains("-----BEGIN CERTIFICATE-----") {
            let message = format!("phase2.apiserver.oidc_ca_file: {} has no certificate in PEM", oidc.ca_file);
            return Err(Error::config(message));
        }
        issuer["certificateAuthority"] = text.into();
    }
    let mut mappings = json!({"username": {"claim": oidc.username_claim, "prefix": oidc.username_prefix}});
    if !oidc.groups_claim.is_empty() {
        mappings["groups"] = json!({"claim": oidc.groups_claim, "prefix": oidc.groups_prefix});
    }
    let rules = oidc.required_claims.iter();
    let rules: Vec<Value> = rules.map(|(claim, value)| json!({"claim": claim, "requiredValue": value})).collect();
    let mut jwt = json!({"issuer": issuer, "claimMappings": mappings});
    if !rules.is_empty() {
        jwt["claimValidationRules"] = rules.into();
    }
    Ok(jwt)
}
