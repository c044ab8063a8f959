//! The artifacts of one cluster: which it needs, with the user's own images, and their cache.

use crate::artifacts::{Cache, ImageArchive, Lock, ResolvedArtifacts, Selection};
use crate::error::Result;

use super::{Addon, Cluster};

/// The program that gets passwords for registries of Amazon ECR.
pub const ECR_PROVIDER: &str = "ecr-credential-provider";

impl Cluster {
    /// Every artifact of the cluster's version; the images of addons that are on are required.
    pub fn select_artifacts(&self) -> Result<Selection> {
        self.select_from(Lock::load(&self.work_dir)?.as_ref())
    }

    /// The same of a lock file that is read already.
    pub fn select_from(&self, lock: &Lock) -> Result<Selection> {
        let mut selection = lock.select(&self.settings.kubernetes_version)?;
        for addon in Addon::all(&self.source)?.iter().filter(|addon| addon.is_on(&self.settings.addons)) {
            addon.all_images().for_each(|image| selection.require_image(image));
        }
        if self.settings.runtime.ecr_credentials {
            selection.require_binary(ECR_PROVIDER);
        }
        Ok(selection)
    }

    /// The user's own archives of images.
    pub fn read_images(&self) -> Result<Vec<ImageArchive>> {
        let files = self.settings.artifacts.preload_images.iter();
        files.map(|file| ImageArchive::read("phase2.artifacts.preload_images", file)).collect()
    }

    /// The artifacts with the images' names and the images that the settings add.
    pub fn with_own_images(&self, resolved: ResolvedArtifacts) -> Result<ResolvedArtifacts> {
        Ok(resolved.with_images(&self.settings.artifacts.image_registry, self.read_images()?))
    }

    /// The cache of artifacts, which is made when it is not there.
    pub fn cache(&self) -> Result<Cache> {
        Cache::open_in(self.settings.artifacts.cache_dir.as_deref())
    }

    /// The same for asking where things are or would be: makes nothing.
    pub fn locate_cache(&self) -> Result<Cache> {
        Cache::locate_in(self.settings.artifacts.cache_dir.as_deref())
    }
}
