//! Certificates that the agent renews. Which are due, and their new texts, is said by the caller's
//! [`CertificateSource`], which has the keys of authorities or asks the API; the files and what
//! reads them are the node config's, so that a renewal is one more change of it. A renewal that is
//! killed is put right as a loss, or made once more.
//!
//! kubelet renews its client certificate by itself, as long as that has not ended: one that has, on
//! a host that was off for long, is replaced here.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::exec::signals;
use crate::failpoint;

use super::super::facts::{self, CLIENT_CERTIFICATE};
use super::super::layout::KUBELET_PKI;
use super::super::node_config::{Content, NodeConfig};
use super::super::up::{self, Delivery, Trigger};
use super::super::{own_place, systemd, task};

/// Between two looks at all certificates.
const INTERVAL: Duration = Duration::from_hours(1);

/// What renews the certificates of a host.
pub(crate) trait CertificateSource {
    /// The new texts of those files of the node config that are due, by their paths. Those that the
    /// API is asked for come in a later call.
    fn renew(&mut self, node_config: &NodeConfig) -> Result<BTreeMap<String, String>>;

    /// A client certificate for the kubelet of this host with its key, in PEM; none while the API
    /// is asked for it, and where it cannot be asked.
    fn renew_kubelet_client(&mut self, node_config: &NodeConfig) -> Result<Option<Zeroizing<String>>>;

    /// Whether the API is asked for a certificate.
    fn is_waiting(&self) -> bool;
}

/// When certificates were looked at last.
pub(super) struct CertificateRenewal {
    source: Box<dyn CertificateSource>,
    looked: Option<Instant>,
}

impl CertificateRenewal {
    pub(super) const fn new(source: Box<dyn CertificateSource>) -> Self {
        Self { source, looked: None }
    }

    /// The files that were renewed, by the holder of the host's lock; nothing where it was looked
    /// lately.
    pub(super) fn round(&mut self, node_config: &NodeConfig) -> Option<Result<Vec<String>>> {
        if self.looked.is_some_and(|at| at.elapsed() < INTERVAL) && !self.source.is_waiting() {
            return None;
        }
        self.looked = Some(Instant::now());
        Some(apply(node_config, self.source.as_mut(), &mut std::io::sink()))
    }

    /// Whether kubelet, whose client certificate had ended, got another one.
    pub(super) fn revive_kubelet(&mut self, node_config: &NodeConfig) -> Result<bool> {
        if facts::is_valid_certificate(Path::new(CLIENT_CERTIFICATE)) {
            return Ok(false);
        }
        let Some(pem) = self.source.renew_kubelet_client(node_config)? else { return Ok(false) };
        write_kubelet_client(&pem)?;
        // One that runs without the API ends by itself within five minutes, and is started again:
        // so nothing is lost where the agent ends here.
        failpoint::around(format_args!("restart kubelet"), || systemd::systemctl(&["restart", "kubelet.service"]))?;
        Ok(true)
    }

    /// Whether the next look is to be soon.
    pub(super) fn is_waiting(&self) -> bool {
        self.source.is_waiting()
    }
}

/// As kubelet does it: a file of its own for each certificate, and a link to the one that counts.
fn write_kubelet_client(pem: &str) -> Result<()> {
    let name = format!("kubelet-client-{}.pem", Timestamp::now().strftime("%Y-%m-%d-%H-%M-%S"));
    let file = Path::new(KUBELET_PKI).join(name);
    task::write_atomic(&file, pem.as_bytes(), 0o600, 0)?;
    own_place::ensure_link(Path::new(CLIENT_CERTIFICATE), &file, false).map(drop)
}

fn apply(node_config: &NodeConfig, source: &mut dyn CertificateSource, out: &mut dyn Write) -> Result<Vec<String>> {
    let mut texts = source.renew(node_config)?;
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

/// Renews what this source says, whenever that is; the files that were renewed. The API is asked
/// for as long as this.
///
/// # Errors
/// That no node config was applied here, that something else of turnup's works on the host or did
/// not come to its end, or that a certificate cannot be renewed.
pub(crate) fn renew_now(
    source: &mut dyn CertificateSource,
    limit: Duration,
    out: &mut dyn Write,
) -> Result<Vec<String>> {
    let _turn = up::take_turn()?;
    if up::is_unfinished() {
        return Err(
            Error::precondition("the last run of the operator's turnup did not come to its end here").hint("turnup up")
        );
    }
    let node_config = NodeConfig::read_applied()?
        .ok_or_else(|| Error::precondition("no node config was applied to this host").hint("turnup up"))?;
    let since = Instant::now();
    let mut renewed = apply(&node_config, source, out)?;
    while source.is_waiting() {
        if since.elapsed() > limit {
            let message = "the API has not signed what this host asks for";
            return Err(Error::transient(message).hint("turnup status (says why)"));
        }
        signals::sleep(Duration::from_secs(1))?;
        renewed.extend(apply(&node_config, source, out)?);
    }
    Ok(renewed)
}
