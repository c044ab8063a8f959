//! The record of a credential that was issued: to which user, why, until when. The credential
//! itself is never here.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A client certificate for the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The user that the API server knows its holder as.
    pub user: String,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// The certificate's serial number, in hexadecimal.
    pub serial: String,
    /// The SHA-256 of the certificate, in hexadecimal: the audit log has it as `credential-id` of a
    /// request's user.
    pub sha256: String,
    /// When it was issued.
    pub issued: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// Who issued it: `user@machine`.
    pub by: String,
    /// Whether it stands above RBAC and is meant for emergencies.
    pub break_glass: bool,
    /// Why, in the words of who issued it; always there for break-glass.
    pub reason: Option<String>,
    /// The recipients that it is encrypted for, as `age` knows them; empty where it is not.
    pub sealed_for: Vec<String>,
}
