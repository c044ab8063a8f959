//! One archive for a support request: everything that shows why a cluster does not work, without
//! its secrets.
//!
//! It reads and asks; nothing of the cluster or of a host is changed. Secrets are taken out of
//! every text, and the finished archive is searched once more: with one of them in it, it does not
//! come to be.

mod archive;
mod gathered;
mod hosts;
mod local;
mod manifest;
mod secrets;

use std::path::Path;

use crate::error::Result;
use crate::redact::Redactor;

pub(crate) use gathered::BundleSubject;
pub(crate) use manifest::BundleManifest;

use gathered::{Gathered, Item};

/// What all files together may hold.
const ALL: usize = 64 << 20;

/// Gathers everything and writes the archive (0600); returns what is in it.
pub(crate) fn write(subject: &BundleSubject, to: &Path) -> Result<BundleManifest> {
    let redactor = Redactor::new(&secrets::gather(&subject.store, subject.settings.as_ref())?)?;
    let mut gathered = Gathered::default();
    local::gather(subject, &mut gathered);
    if let Some(cluster) = &subject.cluster {
        hosts::gather(cluster, &mut gathered);
    }
    let manifest = seal(subject, gathered, &redactor, to)?;
    Ok(manifest)
}

/// Takes the secrets out, and writes what is left.
fn seal(subject: &BundleSubject, mut gathered: Gathered, redactor: &Redactor, to: &Path) -> Result<BundleManifest> {
    let mut manifest = BundleManifest::new(&subject.name);
    let mut room = ALL;
    let mut items = Vec::new();
    for item in gathered.items {
        if item.bytes.len() > room {
            gathered.missing.push((item.path, format!("the archive has its {} MiB", ALL >> 20)));
            continue;
        }
        room -= item.bytes.len();
        let (bytes, removed) = redactor.clean(item.bytes);
        let (path, _) = redactor.clean(item.path.into_bytes());
        let item = Item { path: String::from_utf8_lossy(&path).into_owned(), bytes, cut: item.cut };
        manifest.add(&item, removed);
        items.push(item);
    }
    manifest.unsearchable = redactor.unsearchable();
    let missing =
        gathered.missing.into_iter().map(|(what, why)| (redactor.clean_text(&what), redactor.clean_text(&why)));
    manifest.missing = missing.collect();
    items.insert(0, Item::new(manifest::FILE, manifest.render()?.into_bytes()));
    archive::write(&items, redactor, to)?;
    Ok(manifest)
}

#[cfg(test)]
mod tests;
