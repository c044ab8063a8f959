//! What a cloud says of one of its machines, signed: by it a machine proves to the API server which
//! one it is, and needs no token of its group.
//!
//! Who may join by it, and under which name, is `bootstrap`'s.

use zeroize::Zeroizing;

use crate::error::Result;

use super::Endpoints;

/// The issuer of a cloud's identity tokens, and how one is known to be of a machine of the cluster.
/// Expressions are those of Kubernetes' `AuthenticationConfiguration` (CEL), over `claims`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityIssuer {
    /// The claim `iss`, below which the API server finds the keys.
    pub url: String,
    /// What a token of this cluster, and of no other, is for: the claim `aud`.
    pub audience: String,
    /// What has to be true of the claims, in order, each with the message for the log.
    pub rules: Vec<(String, &'static str)>,
    /// The name of the machine.
    pub name: &'static str,
    /// Its zone.
    pub zone: &'static str,
}

/// Asks the metadata service for a token for this audience.
pub type FetchIdentity = fn(&Endpoints, &str) -> Result<Zeroizing<String>>;
