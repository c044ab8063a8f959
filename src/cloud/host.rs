//! What every cloud asks of a host: a processor for turnup's programs, a key to log in with; and
//! what it calls one. What its machine types are called is each cloud's own.

use std::env::consts::ARCH;

use crate::error::Result;
use crate::unknown;

use super::refused;

/// User data brings the programs of the machine that turnup runs on. `what` says which machine has
/// which processor; an error's message begins with `key`.
pub(super) fn check_processor(key: &str, is_arm: bool, what: &str, hint: impl Into<String>) -> Result<()> {
    if ARCH != "x86_64" || !is_arm {
        return Ok(());
    }
    let why = format!("{what}, and turnup's programs are for x86-64: its hosts would never join");
    Err(refused(key, why).hint(hint))
}

/// The kind of a public key that is neither Ed25519 nor RSA, the two that all clouds take.
pub(super) fn foreign_kind(key: &str) -> Option<&str> {
    let taken = ["ssh-ed25519 ", "ssh-rsa "].iter().any(|start| key.starts_with(start));
    // One that is not made yet will be Ed25519.
    (!taken && !unknown::is_in(key)).then(|| key.split_whitespace().next().unwrap_or_default())
}
