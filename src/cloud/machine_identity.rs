//! What a cloud says of one of its machines: by it a machine proves to the API server which one it
//! is, and needs no token of its group. Either the cloud signs it and the API server verifies that
//! itself, or a control-plane host asks the cloud each time.
//!
//! Who may join by it, and under which name, is `bootstrap`'s.

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::error::Result;

use super::Endpoints;

/// How machines of a cluster prove who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineProof {
    /// The API server verifies it.
    Signed(IdentityIssuer),
    /// A control-plane host asks the cloud.
    Asked(MachineRole),
}

impl MachineProof {
    /// What a token of this cluster, and of no other, is for.
    #[must_use]
    pub fn audience(&self) -> &str {
        match self {
            Self::Signed(issuer) => &issuer.audience,
            Self::Asked(role) => &role.audience,
        }
    }
}

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

/// As what the workers of a cluster are known to their cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRole {
    /// What a token of this cluster, and of no other, is for.
    pub audience: String,
    /// The cluster that machines say they are of.
    pub cluster: String,
    /// The name of the role that they have.
    pub role: String,
}

/// What a machine shows of itself.
pub struct IdentityToken {
    /// The token; it is a secret until it ends.
    pub text: Zeroizing<String>,
    /// When the machine needs another one, as far as it knows.
    pub ends: Option<Timestamp>,
}

/// Asks the metadata service for a token for this audience.
pub type FetchIdentity = fn(&Endpoints, &str) -> Result<IdentityToken>;

/// A machine of the cluster that proved to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenMachine {
    /// Its id in the cloud.
    pub id: String,
    /// The node group that its cloud says it is of.
    pub group: String,
    /// Its own name, as its cloud gave it.
    pub host: String,
}

/// Asks a cloud whose token it is.
pub trait IdentityJudge: Send + Sync {
    /// How all its tokens begin; others are none of its business.
    fn prefix(&self) -> &'static str;

    /// The machine that shows this token.
    ///
    /// # Errors
    /// Transient ones say nothing of the machine: the cloud does not answer. By all others it is
    /// refused. None has a part of the token.
    fn judge(&self, token: &str) -> Result<ProvenMachine>;
}

/// Makes what asks a cloud, for a host of this cluster.
pub type OpenJudge = fn(Endpoints, MachineRole) -> Box<dyn IdentityJudge>;
