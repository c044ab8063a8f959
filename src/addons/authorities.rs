//! The authorities of the API in a rotation: addons that are its clients read them once, so their
//! pods have a mark of them and start again when they are others.

use std::time::{Duration, Instant};

use crate::bootstrap::authority_holders::{CONFIG_MAP, knows_exactly};
use crate::bootstrap::pki::{Authority, Pki};
use crate::bootstrap::{Kubectl, rotation};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::Cx;

/// How long Kubernetes may take to tell a namespace of them.
const TOLD: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The mark; nothing in a cluster that never rotated them, whose manifests stay as they were.
pub(super) fn mark(cluster: &Cluster) -> Result<String> {
    rotation::trusted_authorities(cluster)
}

/// Waits until pods that start now get the authorities of now, and no others.
pub(super) fn wait(cluster: &Cluster, kubectl: &Kubectl, cx: &Cx) -> Result<()> {
    if mark(cluster)?.is_empty() {
        return Ok(());
    }
    let pki = Pki::of(cluster);
    let bundle = match pki.root_bundle()? {
        Some(bundle) => bundle,
        None => pki.bundle(Authority::Cluster)?,
    };
    let since = Instant::now();
    loop {
        // A list: in a new cluster it may not be there yet.
        let only = format!("--field-selector=metadata.name={CONFIG_MAP}");
        let maps = kubectl.get(&["configmaps", "--namespace=kube-system", &only])?;
        if knows_exactly(&maps["items"][0], &bundle) {
            return Ok(());
        }
        if since.elapsed() > TOLD {
            return Err(Error::transient(format!("{CONFIG_MAP} does not have the authorities of now"))
                .evidence("kube-controller-manager writes it; addons would start with the former ones")
                .hint("turnup status; then: turnup up"));
        }
        cx.progress(format!("waiting until {CONFIG_MAP} has the authorities of now"));
        cx.sleep(POLL_INTERVAL)?;
    }
}
