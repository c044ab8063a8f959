//! The template id of a node group: a short digest of all that makes its hosts what they are, which
//! each of them has as a label of its Node. A host with another one is of another configuration.
//!
//! Whatever may change while a machine stays is no part of it: join tokens, the place that
//! artifacts are fetched from, sizes, zones and tags. The address of the API server is not known
//! yet; the settings that decide it are, unless the hosts have a balancer of their own before
//! several API servers: that is told of them all, and any one of them is enough. Pure: it asks
//! nothing.

use serde_json::json;

use crate::cluster::Cluster;
use crate::cluster::user_data::UserDataPart;
use crate::error::{Context as _, Result};
use crate::node::boot_config::BootConfig;
use crate::unknown;

/// What stands for it in a boot config until that is complete.
pub(super) const MARK: &str = "@turnup:template@";
/// Enough that no two configurations of a cluster share one, in hexadecimal.
const LENGTH: usize = 12;

/// Where the id that new hosts of a group have lies below the cluster's directory: beside their
/// user data.
pub(super) fn file_of(group: &str) -> String {
    format!("user-data/{group}.template")
}

/// Who logs in, and with which keys.
pub(super) type LoginLines<'a> = (&'a str, &'a [String]);

/// Writes the id into the boot config that it is the digest of, and returns it.
pub(super) fn set(
    cluster: &Cluster,
    boot: &mut BootConfig,
    login: LoginLines<'_>,
    parts: &[(UserDataPart, Vec<u8>)],
) -> Result<String> {
    let id = digest(cluster, boot, login, parts)?;
    for unit in &mut boot.node_config.units {
        unit.text = unit.text.replace(MARK, &id);
    }
    Ok(id)
}

fn digest(
    cluster: &Cluster,
    boot: &BootConfig,
    (user, keys): LoginLines<'_>,
    parts: &[(UserDataPart, Vec<u8>)],
) -> Result<String> {
    let mut told = serde_json::to_value(boot).context("what user data leaves on a host is no JSON")?;
    told["artifacts_url"] = json!(null);
    let parts: Vec<_> = parts.iter().map(|(part, bytes)| json!([format!("{:?}", part.kind), bytes])).collect();
    let machine = cluster.settings.cloud.as_ref().map(|spec| spec.machine_of(&boot.group)).transpose()?;
    let all = json!([told, cluster.version(), user, keys, parts, machine]);
    let digest = unknown::digest(&all.to_string());
    Ok(if unknown::is_in(&digest) { digest } else { digest[..LENGTH].to_owned() })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::artifacts::{Lock, ResolvedArtifacts};
    use crate::bootstrap::setting_tests::cluster;
    use crate::bootstrap::user_data::tests::boot_of_worker;

    const THREE: (&str, &str) = ("phase1.control_plane.count", "3");

    /// The id of the group `workers` on a cloud with these settings.
    fn id(changes: &[(&str, &str)]) -> String {
        let url = [("phase1.user_data.artifacts_url", "https://artifacts.example.com")];
        let url = if changes.iter().any(|(name, _)| *name == url[0].0) { &[][..] } else { &url[..] };
        let base = [&[("phase1.cloud_provider", "gce"), ("phase1.gce.project", "p-123456")], url].concat();
        let dir = tempfile::tempdir().unwrap();
        let cluster = cluster(dir.path(), &[&base[..], changes].concat());
        let version = &cluster.settings.kubernetes_version;
        let selection = Lock::embedded().unwrap().select(version).unwrap();
        let artifacts = ResolvedArtifacts::expected(&selection, &cluster.settings.sources, None, None);
        let mut boot = boot_of_worker(&cluster, &artifacts, "workers");
        let id = set(&cluster, &mut boot, ("turnup", &["ssh-ed25519 A".to_owned()]), &[]).unwrap();
        let kubelet = boot.node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap();
        assert!(kubelet.text.contains(&format!("turnup.dev/template={id}")), "{}", kubelet.text);
        assert!(!serde_json::to_string(&boot).unwrap().contains(MARK));
        id
    }

    #[test]
    fn the_same_configuration_has_the_same_id_and_one_that_makes_other_hosts_another() {
        let usual = id(&[]);
        assert!(usual.len() == LENGTH && usual.bytes().all(|byte| byte.is_ascii_hexdigit()), "{usual}");
        assert_eq!(id(&[]), usual, "again");
        for same in [
            ("phase1.num_nodes", "7"),
            ("phase1.user_data.artifacts_url", "https://elsewhere.example.com"),
            ("phase1.user_data.token_lifetime", "48h"),
            ("phase1.tags", "team=shop"),
            ("phase2.update.max_unavailable", "3"),
            ("phase2.update.pause", "1m"),
            ("phase1.gce.zones", "us-central1-b,us-central1-c"),
        ] {
            assert_eq!(id(&[same]), usual, "{same:?}");
        }
        let several = id(&[THREE]);
        assert_ne!(several, usual, "a balancer of its own");
        for same in [("phase1.api.internal_load_balancer", "n"), ("phase1.api.external", "n")] {
            assert_eq!(id(&[THREE, same]), several, "its balancer needs nothing of {same:?}");
        }
        assert_eq!(id(&[("phase1.control_plane.count", "5")]), several, "any of the servers is enough");
        for other in [
            ("phase2.max_pods", "50"),
            ("phase2.kubernetes_version", "1.35.4"),
            ("phase1.gce.instance_type", "e2-standard-8"),
            ("phase1.gce.os_image", "projects/p-123456/global/images/own-1"),
            ("phase1.gce.disk_gb", "77"),
            ("phase1.gce.shielded_vm", "n"),
            ("phase1.api.exposure", "load-balancer"),
            ("phase2.kubelet.node_labels", "example.com/tier=a"),
        ] {
            assert_ne!(id(&[other]), usual, "{other:?}");
        }
    }
}
