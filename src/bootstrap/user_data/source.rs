//! Whether the place that hosts fetch from has what they will ask for.
//!
//! Such a host cannot report that it waits in vain. What cannot be checked from here, because only
//! hosts can reach the place, is reported and not judged.

use std::collections::BTreeMap;

use crate::artifacts::{Presence, ResolvedArtifacts, find_blob};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::Cx;

use super::super::groups::groups;
use super::{JoinParams, boot_of, machine_facts};

/// An error that names the files which are not there.
pub(super) fn require_all(cluster: &Cluster, artifacts: &ResolvedArtifacts, cx: &Cx) -> Result<()> {
    let url = &cluster.settings.user_data.artifacts_url;
    let wanted = find_wanted(cluster, artifacts)?;
    let (mut is_open, mut missing, mut denied) = (false, Vec::new(), Vec::new());
    for (sha256, name) in &wanted {
        cx.check()?;
        match find_blob(url, sha256) {
            Ok(Presence::Served) => is_open = true,
            Ok(Presence::Missing) => missing.push(format!("{name}: sha256/{sha256}")),
            Ok(Presence::Denied) => denied.push(format!("{name}: sha256/{sha256}")),
            Err(error) => {
                cx.progress(format!("whether hosts will find what they fetch cannot be seen from here: {error}"));
                // What is away is away for all of them.
                break;
            }
        }
    }
    if is_open {
        // S3 denies what it does not have, to those who may not list:
        // https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
        missing.append(&mut denied);
    }
    if !denied.is_empty() {
        cx.progress(format!("{url} lets this machine read nothing, and hosts have no login there either"));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("{} of {} files that hosts will fetch are not at {url}", missing.len(), wanted.len());
    let hint = "turnup artifacts export DIR, and copy all of DIR there (phase1.user_data.artifacts_url)";
    Err(Error::precondition(message).evidence_of(missing).hint(hint))
}

/// What a host of any group will ask for, by sha256.
fn find_wanted(cluster: &Cluster, artifacts: &ResolvedArtifacts) -> Result<BTreeMap<String, String>> {
    let mut wanted = BTreeMap::from([(cluster.version().to_owned(), "turnup".to_owned())]);
    for group in groups(cluster)? {
        let api = JoinParams::placeholders(cluster).api;
        let node_config = boot_of(cluster, artifacts, &machine_facts(cluster)?, &group, "", api)?.node_config;
        wanted
            .extend(node_config.artifacts().map(|sha256| (sha256.to_owned(), node_config.name_of(sha256).to_owned())));
    }
    Ok(wanted)
}
