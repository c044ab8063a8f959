//! The user's own manifests as they lie on this machine: read when the cluster is opened, so that a
//! file that is missing is told before anything changes. What is in them is the matter of `addons`.

use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::error::{Error, Result};
use crate::input;

/// A manifest may hold all of an operator with its kinds.
const LARGEST: u64 = 16 << 20;
/// The names by which kustomize knows a directory of its own.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The user's own manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnManifests {
    /// Those of a network plugin, which are applied before all others.
    pub network: Vec<ManifestSource>,
    /// All others, which are applied after the addons.
    pub own: Vec<ManifestSource>,
}

/// One place that a setting names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestSource {
    /// A file, with its text.
    Text {
        /// Its path, for people.
        place: String,
        /// What is in it.
        text: String,
    },
    /// A directory that kustomize builds.
    Kustomization {
        /// Its path.
        dir: PathBuf,
    },
}

impl OwnManifests {
    /// Reads them; relative paths count from `dir`.
    pub(super) fn read(settings: &Settings, dir: &Path) -> Result<Self> {
        Ok(Self {
            network: read_all(settings, "phase2.network.cni_manifests", dir)?,
            own: read_all(settings, "phase3.manifests", dir)?,
        })
    }
}

fn read_all(settings: &Settings, name: &str, dir: &Path) -> Result<Vec<ManifestSource>> {
    let mut sources = Vec::new();
    for place in settings.get_list(name)? {
        let path = dir.join(&place);
        if !path.is_dir() {
            sources.push(read_file(name, &path)?);
        } else if KUSTOMIZATIONS.iter().any(|file| path.join(file).is_file()) {
            sources.push(ManifestSource::Kustomization { dir: path });
        } else {
            let files = list_manifests(name, &path)?;
            sources.extend(files.iter().map(|file| read_file(name, file)).collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(sources)
}

/// The manifests of a directory by their endings, sorted; directories in it are left alone.
fn list_manifests(name: &str, dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(dir).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| refuse(name, dir, "cannot be read").source(error))?;
    let is_manifest = |path: &PathBuf| {
        let ending = path.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        path.is_file() && ["yaml", "yml", "json"].contains(&ending)
    };
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(is_manifest).collect();
    files.sort();
    if files.is_empty() {
        return Err(refuse(name, dir, "has no file whose name ends with .yaml, .yml or .json"));
    }
    Ok(files)
}

fn read_file(name: &str, path: &Path) -> Result<ManifestSource> {
    let text = input::read_text(path, LARGEST).map_err(|error| refuse(name, path, "cannot be read").source(error))?;
    Ok(ManifestSource::Text { place: path.display().to_string(), text })
}

fn refuse(name: &str, path: &Path, why: &str) -> Error {
    Error::config(format!("{name}: {} {why}", path.display())).hint(format!("turnup config explain {name}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::TreeSource;

    fn read(dir: &Path, value: &str) -> Result<Vec<ManifestSource>> {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(&[("phase3.manifests", value)]).unwrap();
        OwnManifests::read(&settings, dir).map(|manifests| manifests.own)
    }

    #[test]
    fn files_directories_and_kustomizations_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, name).unwrap();
        };
        let plain = ["one.yaml", "all/b.json", "all/a.yml", "all/README", "all/more/c.yaml", "none/x"];
        plain.into_iter().chain(["shop/kustomization.yml"]).for_each(write);
        let texts = |value: &str| -> Vec<String> {
            let text = |source: ManifestSource| match source {
                ManifestSource::Text { text, .. } => text,
                ManifestSource::Kustomization { dir: found } => {
                    format!("kustomize {}", found.strip_prefix(dir.path()).unwrap().display())
                }
            };
            read(dir.path(), value).unwrap().into_iter().map(text).collect()
        };
        assert_eq!(texts("all,one.yaml,shop"), ["all/a.yml", "all/b.json", "one.yaml", "kustomize shop"]);
        assert_eq!(texts(""), [""; 0]);
        let refusal = |value: &str| read(dir.path(), value).unwrap_err().message().to_owned();
        assert!(refusal("two.yaml").ends_with("two.yaml cannot be read"), "{}", refusal("two.yaml"));
        assert!(refusal("none").ends_with("none has no file whose name ends with .yaml, .yml or .json"));
    }
}
