//! The settings of the artifacts as typed values: where they come from and are kept, how images are
//! called, which are the user's own. Gets nothing.

use std::path::{Path, PathBuf};

use crate::artifacts::{Effort, Location, Source, Sources};
use crate::config::Settings;
use crate::error::{Error, Result};

/// `phase2.artifacts`, but for the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactSettings {
    /// Where artifacts are kept; none for the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// The registry, and path in it, under which nodes know turnup's images; empty for turnup's
    /// own names.
    pub image_registry: String,
    /// Archives of images, files of this machine.
    pub preload_images: Vec<PathBuf>,
}

impl ArtifactSettings {
    pub(super) fn read(settings: &Settings, work_dir: &Path) -> Result<Self> {
        let images = settings.get_list("phase2.artifacts.preload_images")?;
        Ok(Self {
            cache_dir: cache_dir(settings, work_dir)?,
            image_registry: settings.get("phase2.artifacts.image_registry")?.trim_end_matches('/').to_owned(),
            preload_images: images.into_iter().map(|file| work_dir.join(file)).collect(),
        })
    }
}

/// Where artifacts are kept; none for the user's cache directory.
pub fn cache_dir(settings: &Settings, work_dir: &Path) -> Result<Option<PathBuf>> {
    let dir = settings.get("phase2.artifacts.cache_dir")?;
    Ok((!dir.is_empty()).then(|| work_dir.join(dir)))
}

/// Where artifacts come from, in which order. A source that is switched on and has no place in the
/// order is refused with the settings.
pub fn artifact_sources(settings: &Settings) -> Result<Sources> {
    let (mirror, bundle) = (settings.get("phase2.artifacts.mirror")?, settings.get("phase2.artifacts.bundle")?);
    let mut sources = vec![Source::Cache];
    for word in settings.get_list("phase2.artifacts.order")? {
        match word.as_str() {
            "bundle" if !bundle.is_empty() => sources.push(Source::Bundle(Location::of_bundle(Path::new(&bundle)))),
            "mirror" if !mirror.is_empty() => sources.push(Source::Mirror(Location::parse(&mirror)?)),
            "upstream" if settings.get_bool("phase2.artifacts.upstream")? => sources.push(Source::Upstream),
            "source" if settings.get_bool("phase2.artifacts.source")? => sources.push(Source::Build),
            "bundle" | "mirror" | "upstream" | "source" => {}
            other => return Err(Error::config(format!("phase2.artifacts.order: `{other}` is no source of artifacts"))),
        }
    }
    let effort = Effort {
        attempts: settings.get_number("phase2.artifacts.retries")?,
        at_once: settings.get_number("phase2.artifacts.parallel")?,
        go_proxy: settings.get("phase2.artifacts.go_proxy")?,
        build_jobs: settings.get_number("phase2.artifacts.build_jobs")?,
    };
    Ok(Sources::new(sources).with_effort(effort))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::TreeSource;

    fn sources(changes: &[(&str, &str)]) -> Sources {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(changes).unwrap();
        artifact_sources(&settings).unwrap()
    }

    fn shown(sources: &Sources) -> String {
        sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn sources_are_asked_in_the_order_that_the_settings_say() {
        assert_eq!(shown(&sources(&[])), "cache, source");
        let all = [
            ("phase2.artifacts.mirror", "https://mirror.example.com"),
            ("phase2.artifacts.bundle", "/media/bundle.tar"),
            ("phase2.artifacts.upstream", "y"),
        ];
        assert_eq!(
            shown(&sources(&all)),
            "cache, bundle /media/bundle.tar, mirror https://mirror.example.com, upstream, source"
        );
        let other: Vec<_> =
            all.into_iter().chain([("phase2.artifacts.order", "source,upstream,mirror,bundle")]).collect();
        assert_eq!(
            shown(&sources(&other)),
            "cache, source, upstream, mirror https://mirror.example.com, bundle /media/bundle.tar"
        );
    }

    #[test]
    fn how_hard_sources_are_tried_is_what_the_settings_say() {
        let changes = [
            ("phase2.artifacts.retries", "7"),
            ("phase2.artifacts.parallel", "9"),
            ("phase2.artifacts.go_proxy", "https://goproxy.example.com"),
            ("phase2.artifacts.build_jobs", "2"),
        ];
        let effort = Effort { attempts: 7, at_once: 9, go_proxy: "https://goproxy.example.com".into(), build_jobs: 2 };
        assert_eq!(*sources(&changes).effort(), effort);
    }
}
