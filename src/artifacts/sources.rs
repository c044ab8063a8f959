//! Where artifacts may come from, in which order. Parsing only; getting the bytes is done
//! elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};

use super::lock::Pin;
use super::{Artifact, Variant};
use crate::{Error, Result};

/// A place that serves files by digest: `<place>/sha256/<hex>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// An `http://` or `https://` address.
    Http(String),
    /// A directory, such as a bundle that was carried here.
    Directory(PathBuf),
    /// The same directory as one tar file.
    Archive(PathBuf),
}

impl Location {
    /// A bundle: a directory, or a tar file of one.
    #[must_use]
    pub fn of_bundle(path: &Path) -> Self {
        if path.is_dir() { Self::Directory(path.into()) } else { Self::Archive(path.into()) }
    }

    /// An address or a path, as the user writes it.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::config("the mirror of the artifacts is empty").hint("name a URL or a directory"));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Http(text.trim_end_matches('/').to_owned()));
        }
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::Directory(path.into()));
        }
        match text.split_once("://") {
            Some((scheme, _)) => Err(Error::config(format!("the mirror `{text}` has the unknown scheme `{scheme}`"))
                .hint("use http://, https://, file:// or a directory")),
            None => Ok(Self::Directory(text.into())),
        }
    }
}

impl fmt::Display for Location {
    /// Without user name and password: this goes to logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(&without_credentials(url)),
            Self::Directory(path) | Self::Archive(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Where the mirror at this address has the file with this sha256 (hexadecimal).
#[must_use]
pub fn blob_url(mirror: &str, sha256: &str) -> String {
    format!("{}/sha256/{sha256}", mirror.trim_end_matches('/'))
}

pub(super) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// One kind of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// What this machine already has; it is always looked at first, wherever it stands in the list.
    Cache,
    /// What holds everything that a configuration needs.
    Bundle(Location),
    /// A mirror that holds the same bytes as the lock file names.
    Mirror(Location),
    /// The release site of each upstream project.
    Upstream,
    /// The Go toolchain.
    Build,
}

impl Source {
    /// The place, of one that has files by digest.
    #[must_use]
    pub const fn location(&self) -> Option<&Location> {
        match self {
            Self::Bundle(location) | Self::Mirror(location) => Some(location),
            Self::Cache | Self::Upstream | Self::Build => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cache => f.write_str("cache"),
            Self::Bundle(location) => write!(f, "bundle {location}"),
            Self::Mirror(location) => write!(f, "mirror {location}"),
            Self::Upstream => f.write_str("upstream"),
            Self::Build => f.write_str("source"),
        }
    }
}

/// How hard sources are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How often one download is tried in all.
    pub attempts: u32,
    /// How many downloads run at once.
    pub at_once: usize,
    /// Where Go's modules come from; empty for the user's own GOPROXY.
    pub go_proxy: String,
    /// How many processors a build may keep busy; 0 for all.
    pub build_jobs: u32,
}

impl Default for Effort {
    /// One attempt, one download after the other, all processors.
    fn default() -> Self {
        Self { attempts: 1, at_once: 1, go_proxy: String::new(), build_jobs: 0 }
    }
}

/// The sources in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    list: Vec<Source>,
    effort: Effort,
}

impl Default for Sources {
    /// What needs no configuration: the cache, then a build from source.
    fn default() -> Self {
        Self::new(vec![Source::Cache, Source::Build])
    }
}

impl Sources {
    /// These sources, in this order.
    #[must_use]
    pub fn new(sources: Vec<Source>) -> Self {
        Self { list: sources, effort: Effort::default() }
    }

    /// The same, tried in this way.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    /// The same without bundles: what makes one.
    #[must_use]
    pub fn without_bundle(&self) -> Self {
        let list = self.list.iter().filter(|source| !matches!(source, Source::Bundle(_))).cloned().collect();
        Self { list, effort: self.effort.clone() }
    }

    /// How hard they are tried.
    #[must_use]
    pub const fn effort(&self) -> &Effort {
        &self.effort
    }

    /// What a configuration says: `cache mirror upstream source`, separated by spaces or commas,
    /// and where mirrors are, in the same way. Every mirror is tried where the list says `mirror`
    /// or `bundle`.
    pub fn parse(order: &str, mirrors: &str) -> Result<Self> {
        let words = |text: &str| -> Vec<String> {
            text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let mut sources = Vec::new();
        for word in words(order) {
            match word.as_str() {
                "cache" => sources.push(Source::Cache),
                "upstream" => sources.push(Source::Upstream),
                "source" => sources.push(Source::Build),
                "mirror" | "bundle" => {
                    let places = words(mirrors);
                    if places.is_empty() {
                        return Err(Error::config(format!(
                            "the artifact sources name a {word}, but no place is set for it"
                        ))
                        .hint("set the mirror's URL or directory, or take the word out of the list"));
                    }
                    for place in places {
                        sources.push(Source::Mirror(Location::parse(&place)?));
                    }
                }
                other => {
                    return Err(Error::config(format!("`{other}` is not a source of artifacts"))
                        .hint("the sources are cache, bundle, mirror, upstream and source"));
                }
            }
        }
        Ok(Self::new(sources))
    }

    /// The sources in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.list.iter()
    }

    /// The files that may stand for this artifact, the preferred one first.
    pub(super) fn accepted<'a>(&self, artifact: &'a Artifact) -> Vec<(Variant, &'a Pin)> {
        let of = |variant| artifact.pins(variant).iter().map(move |pin| (variant, pin));
        self.variants().into_iter().flat_map(of).collect()
    }

    /// Whose builds are acceptable, the preferred one first. A list of mirrors
    /// alone accepts both: what is pinned is pinned.
    fn variants(&self) -> Vec<Variant> {
        let mut variants: Vec<Variant> = Vec::new();
        for source in &self.list {
            match source {
                Source::Upstream => variants.push(Variant::Upstream),
                Source::Build => variants.push(Variant::Source),
                Source::Cache | Source::Bundle(_) | Source::Mirror(_) => {}
            }
        }
        if !variants.contains(&Variant::Source) {
            variants.push(Variant::Source);
            if variants.len() == 1 {
                variants.push(Variant::Upstream);
            }
        }
        variants
    }
}
