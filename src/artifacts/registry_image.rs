//! Images that turnup does not make: nodes pull them from a registry, by their digest.
//!
//! No byte of them passes through here; containerd checks what it pulls against the digest.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::digest_origin::DigestOrigin;

/// An image in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryImage {
    /// Registry and path: `registry.k8s.io/sig-storage/csi-provisioner`.
    pub repository: String,
    /// Its tag: `v6.0.0`. It says to people what the digest means.
    pub tag: String,
    /// The digest of its manifest, or of the index of its manifests for several platforms.
    pub sha256: Digest,
    /// How the digest became known.
    pub origin: DigestOrigin,
}

impl RegistryImage {
    /// The version of its project: the tag without `v`.
    #[must_use]
    pub fn version(&self) -> &str {
        self.tag.strip_prefix('v').unwrap_or(&self.tag)
    }

    /// What a manifest says, and a tool that copies it: `REPOSITORY:TAG@sha256:DIGEST`.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}:{}@sha256:{}", self.repository, self.tag, self.sha256)
    }
}

/// The same image under another registry, and path in it: only its last word stays.
pub(super) fn under(registry: &str, reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    format!("{registry}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_keeps_name_and_digest_under_another_registry() {
        let image = RegistryImage {
            repository: "registry.k8s.io/sig-storage/csi-provisioner".into(),
            tag: "v6.0.0".into(),
            sha256: Digest::of(b""),
            origin: DigestOrigin::Assembled,
        };
        assert_eq!(image.version(), "6.0.0");
        let digest = Digest::of(b"");
        let own = format!("registry.k8s.io/sig-storage/csi-provisioner:v6.0.0@sha256:{digest}");
        assert_eq!(image.reference(), own);
        let other = format!("mirror.example.com:5000/k8s/csi-provisioner:v6.0.0@sha256:{digest}");
        assert_eq!(under("mirror.example.com:5000/k8s", &own), other);
    }
}
