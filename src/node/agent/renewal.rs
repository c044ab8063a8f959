//! Certificates that the agent renews. Which are due, and their new texts, is said by a function of
//! the caller's, which has the keys of authorities; the files and what reads them are the node
//! config's, so that a renewal is one more change of it. A renewal that is killed is put right as a
//! loss, or made once more.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

use super::super::node_config::{Content, NodeConfig};
use super::super::up::{self, Delivery, Trigger};

/// Between two looks at all certificates.
const INTERVAL: Duration = Duration::from_hours(1);

/// The new texts of those files of the node config that are due, by their paths.
pub(crate) type RenewCertificates = fn(&NodeConfig) -> Result<BTreeMap<String, String>>;

/// When certificates were looked at last.
pub(super) struct CertificateRenewal {
    renew: RenewCertificates,
    looked: Option<Instant>,
}

impl CertificateRenewal {
    pub(super) const fn new(renew: RenewCertificates) -> Self {
        Self { renew, looked: None }
    }

    /// The files that were renewed, by the holder of the host's lock; nothing where it was looked
    /// lately.
    pub(super) fn round(&mut self, node_config: &NodeConfig) -> Option<Result<Vec<String>>> {
        if self.looked.is_some_and(|at| at.elapsed() < INTERVAL) {
            return None;
        }
        self.looked = Some(Instant::now());
        Some(apply(node_config, self.renew, &mut std::io::sink()))
    }
}

fn apply(node_config: &NodeConfig, renew: RenewCertificates, out: &mut dyn Write) -> Result<Vec<String>> {
    let mut texts = renew(node_config)?;
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let renewed = texts.keys().cloned().collect();
    let mut node_config = node_config.clone();
    for file in &mut node_config.files {
        if let Some(text) = texts.remove(&file.path) {
            file.content = Content::Text(text);
        }
    }
    up::run_alone(Delivery::of(node_config), Trigger::Agent, out)?;
    Ok(renewed)
}

/// Renews what this function says, whenever that is; the files that were renewed.
///
/// # Errors
/// That no node config was applied here, that something else of turnup's works on the host or did
/// not come to its end, or that a certificate cannot be renewed.
pub(crate) fn renew_now(renew: RenewCertificates, out: &mut dyn Write) -> Result<Vec<String>> {
    let _turn = up::take_turn()?;
    if up::is_unfinished() {
        return Err(
            Error::precondition("the last run of the operator's turnup did not come to its end here").hint("turnup up")
        );
    }
    let node_config = NodeConfig::read_applied()?
        .ok_or_else(|| Error::precondition("no node config was applied to this host").hint("turnup up"))?;
    apply(&node_config, renew, out)
}
