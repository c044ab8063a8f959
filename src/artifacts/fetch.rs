//! Gets artifacts: from the cache, else from the sources in their order, checked against the lock
//! file in every case.
//!
//! What several artifacts have in common is done once: the commands of one Go module are built by
//! one call. A source that fails is remembered and the next one is tried; the failures are reported
//! only when no source is left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::Cache;
use super::digest::{Digest, Hasher};
use super::digest_origin::DigestOrigin;
use super::gobuild::{Order, executable_name};
use super::keylock::KeyLock;
use super::lock::Pin;
use super::progress::{Joint, Watch};
use super::selection::{Artifact, BinaryArtifact, ImageArtifact, Variant};
use super::sources::{Location, Source, Sources};
use super::{download, image::image_tar};
use crate::exec::{signals, tools};
use crate::parallel;
use crate::{Class, Error, Result};

/// Between two attempts of one download: twice as long each time, up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// An artifact that is here and good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// What its bytes are.
    pub digest: Digest,
    /// Who compiled it.
    pub variant: Variant,
    /// Where it is in the cache.
    pub path: PathBuf,
}

impl Cache {
    /// One artifact: its path in the cache, fetched or built when it was not there.
    pub fn ensure(&self, artifact: &Artifact, sources: &Sources, watch: &dyn Watch) -> Result<PathBuf> {
        let mut blobs = self.ensure_all([artifact], sources, watch)?;
        blobs.pop().map(|blob| blob.path).ok_or_else(|| Error::bug(format!("nothing was obtained for {artifact}")))
    }

    /// Several artifacts, in the order asked for. Much faster than one by one: what is built
    /// together is built at once.
    pub fn ensure_all<'a>(
        &self,
        wanted: impl IntoIterator<Item = &'a Artifact>,
        sources: &Sources,
        watch: &dyn Watch,
    ) -> Result<Vec<Blob>> {
        let wanted: Vec<&Artifact> = wanted.into_iter().collect();
        let mut obtaining = Fetching::new(self, sources, watch);
        let images = obtaining.find_missing_images(&wanted)?;
        let parts = images.iter().filter_map(|artifact| artifact.image()).flat_map(|image| &image.binaries);
        let binaries = wanted.iter().copied().filter(|artifact| artifact.binary().is_some()).chain(parts);
        obtaining.obtain_binaries(binaries.collect())?;
        for artifact in images {
            obtaining.assemble_image(artifact)?;
        }
        wanted.into_iter().map(|artifact| obtaining.find_or_fail(artifact)).collect()
    }

    /// An artifact that is already here; nothing is fetched.
    pub fn lookup(&self, artifact: &Artifact, sources: &Sources, watch: &dyn Watch) -> Result<Option<Blob>> {
        Fetching::new(self, sources, watch).find(artifact)
    }
}

struct Fetching<'a> {
    cache: &'a Cache,
    sources: &'a Sources,
    watch: &'a dyn Watch,
    /// Why a source could not give an artifact, by the artifact's id.
    failures: BTreeMap<String, Vec<(String, Error)>>,
    /// All downloads as one.
    joint: Joint<'a>,
}

impl<'a> Fetching<'a> {
    fn new(cache: &'a Cache, sources: &'a Sources, watch: &'a dyn Watch) -> Self {
        Self { cache, sources, watch, failures: BTreeMap::new(), joint: Joint::new(watch) }
    }
    fn find(&mut self, artifact: &Artifact) -> Result<Option<Blob>> {
        for (variant, Pin { sha256, .. }) in self.sources.accepted(artifact) {
            if let Some(path) = self.find_digest(artifact, sha256)? {
                return Ok(Some(Blob { digest: *sha256, variant, path }));
            }
        }
        Ok(None)
    }

    fn find_digest(&mut self, artifact: &Artifact, digest: &Digest) -> Result<Option<PathBuf>> {
        let mut corrupt = None;
        let found = self.cache.find(digest, &mut |place| corrupt = Some(place.to_owned()))?;
        if let Some(place) = corrupt {
            let message = format!("the cached {artifact} has been altered; it is kept in {}", place.display());
            self.watch.progress(&message);
            let error = Error::permanent(message);
            self.failures.entry(artifact.id()).or_default().push((Source::Cache.to_string(), error));
        }
        Ok(found)
    }

    fn find_or_fail(&mut self, artifact: &Artifact) -> Result<Blob> {
        match self.find(artifact)? {
            Some(blob) => Ok(blob),
            None => Err(self.explain(artifact)),
        }
    }

    /// Takes what mirrors have; the rest is to be assembled.
    fn find_missing_images<'w>(&mut self, wanted: &[&'w Artifact]) -> Result<Vec<&'w Artifact>> {
        let mut missing = Vec::new();
        for artifact in wanted.iter().copied().filter(|artifact| artifact.image().is_some()) {
            if self.find(artifact)?.is_none() {
                missing.push(artifact);
            }
        }
        let sources = self.sources;
        for source in sources.iter() {
            if let Some(location) = source.location() {
                missing = self.try_all(source, missing, |this, artifact| this.try_mirror(artifact, location))?;
            }
        }
        Ok(missing)
    }

    /// Asks one source for all of these, several at once, and gives those that it could not get.
    fn try_all<'w>(
        &mut self,
        source: &Source,
        missing: Vec<&'w Artifact>,
        attempt: impl Fn(&Self, &Artifact) -> Result<bool> + Sync,
    ) -> Result<Vec<&'w Artifact>> {
        let tried = parallel::map(&missing, self.sources.effort().at_once, |artifact| attempt(self, artifact));
        let mut rest = Vec::new();
        for (artifact, tried) in missing.into_iter().zip(tried) {
            if !self.note(artifact, source, tried)? {
                rest.push(artifact);
            }
        }
        Ok(rest)
    }

    fn obtain_binaries(&mut self, wanted: Vec<&Artifact>) -> Result<()> {
        let mut missing = Vec::new();
        let mut seen = BTreeSet::new();
        for artifact in wanted {
            if seen.insert(artifact.id()) && self.find(artifact)?.is_none() {
                missing.push(artifact);
            }
        }
        let sources = self.sources;
        for source in sources.iter() {
            if missing.is_empty() {
                break;
            }
            if *source == Source::Build {
                self.build_modules(&missing)?;
            }
            missing = match source {
                Source::Cache => missing,
                Source::Bundle(location) | Source::Mirror(location) => {
                    self.try_all(source, missing, |this, artifact| this.try_mirror(artifact, location))?
                }
                Source::Upstream => self.try_all(source, missing, Self::try_upstream)?,
                Source::Build => {
                    let mut rest = Vec::new();
                    for artifact in missing {
                        if self.find(artifact)?.is_none() {
                            rest.push(artifact);
                        }
                    }
                    rest
                }
            };
        }
        missing.first().map_or(Ok(()), |artifact| Err(self.explain(artifact)))
    }

    /// Remembers why a source failed; a signal ends everything.
    fn note(&mut self, artifact: &Artifact, source: &Source, tried: Result<bool>) -> Result<bool> {
        match tried {
            Err(error) if error.class() == Class::Interrupted => Err(error),
            Err(error) => {
                self.watch.progress(&format!("{artifact}: {error}"));
                self.failures.entry(artifact.id()).or_default().push((source.to_string(), error));
                Ok(false)
            }
            Ok(done) => Ok(done),
        }
    }

    fn try_mirror(&self, artifact: &Artifact, location: &Location) -> Result<bool> {
        let mut last = None;
        for (_, pin) in self.sources.accepted(artifact) {
            let part = self.joint.part(&artifact.id());
            let fetched = self
                .download(artifact, pin, &location.to_string(), &|to| download::fetch_blob(location, pin, to, &part));
            match fetched {
                Ok(()) => return Ok(true),
                Err(error) if error.class() == Class::Interrupted => return Err(error),
                Err(error) => last = last.or(Some(error)),
            }
        }
        last.map_or(Ok(false), Err)
    }

    fn try_upstream(&self, artifact: &Artifact) -> Result<bool> {
        let Some(url) = artifact.binary().and_then(|binary| binary.upstream_url.as_deref()) else {
            return Err(Error::permanent(format!("upstream has no single-file download of {artifact}")));
        };
        let Some(pin) = artifact.upstream_pins.first() else { return Err(unpinned(artifact)) };
        let part = self.joint.part(&artifact.id());
        let fetched = self.download(artifact, pin, url, &|to| download::fetch_url(url, pin.limit(), to, &part));
        fetched.map(|()| true)
    }

    /// Downloads under the lock of the digest, unless another process was faster.
    fn download(
        &self,
        artifact: &Artifact,
        pin: &Pin,
        from: &str,
        fetch: &dyn Fn(&Path) -> Result<Digest>,
    ) -> Result<()> {
        let digest = &pin.sha256;
        let lock = KeyLock::acquire(self.cache.root(), &digest.to_string(), &artifact.to_string(), self.watch)?;
        if self.cache.find(digest, &mut |_| ())?.is_some() {
            return Ok(());
        }
        self.watch.progress(&format!("downloading {artifact} from {from}"));
        let file = lock.work().join("file");
        let got = self.fetch_in_time(artifact, &file, digest, fetch)?;
        if got == *digest {
            return self.cache.adopt(&file, digest, artifact.mode()).map(drop);
        }
        Err(Error::permanent(format!("{from} has other bytes for {artifact} than the lock file; they were refused"))
            .evidence(format!("expected sha256 {digest}"))
            .evidence(format!("got      sha256 {got}"))
            .hint("repair or replace that source, or add another one to the artifact sources"))
    }

    /// Tries again what broke off. Wrong bytes are an answer, unless an earlier attempt left some
    /// of them.
    fn fetch_in_time(
        &self,
        artifact: &Artifact,
        file: &Path,
        wanted: &Digest,
        fetch: &dyn Fn(&Path) -> Result<Digest>,
    ) -> Result<Digest> {
        let mut pause = FIRST_PAUSE;
        let mut attempt = 1;
        loop {
            let goes_on = fs_err::metadata(file).is_ok_and(|data| data.len() > 0);
            match fetch(file) {
                Ok(got) if got != *wanted && goes_on => fs_err::remove_file(file)?,
                Err(error) if error.class() == Class::Transient && attempt < self.sources.effort().attempts => {
                    let seconds = pause.as_secs();
                    self.watch.progress(&format!("{artifact}: {}; trying again in {seconds} s", error.message()));
                    signals::sleep(pause)?;
                    pause = (pause * 2).min(LAST_PAUSE);
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    fn build_modules(&mut self, missing: &[&Artifact]) -> Result<()> {
        let mut modules: BTreeMap<&str, Vec<(&Artifact, &BinaryArtifact)>> = BTreeMap::new();
        for artifact in missing {
            if let Some(binary) = artifact.binary() {
                modules.entry(&binary.module).or_default().push((artifact, binary));
            }
        }
        for (module, members) in modules {
            if let Err(error) = self.build_module(module, &members) {
                let (artifact, _) = members[0];
                if error.class() == Class::Interrupted {
                    return Err(error);
                }
                self.failures.entry(artifact.id()).or_default().push((Source::Build.to_string(), error));
                // A cluster needs every module; the minutes for the others would be lost.
                return Err(self.explain(artifact));
            }
        }
        Ok(())
    }

    fn build_module(&self, module: &str, members: &[(&Artifact, &BinaryArtifact)]) -> Result<()> {
        let (first, binary) = members[0];
        let key = format!("build-{module}-{}-{}", first.platform.os, first.platform.arch);
        let lock = KeyLock::acquire(self.cache.root(), &key, module, self.watch)?;
        let mut missing = Vec::new();
        for (artifact, binary) in members {
            let is_here = |pin: &Pin| Ok(self.cache.find(&pin.sha256, &mut |_| ())?.is_some());
            if !any(&artifact.pins, is_here)? {
                missing.push((*artifact, *binary));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let log = self.cache.log_path(module);
        let packages = missing.iter().map(|(_, binary)| binary.package.as_str()).collect();
        let effort = self.sources.effort();
        let out = Order { binary, platform: &first.platform, packages, reference: &[], effort }.build(
            lock.work(),
            &log,
            self.watch,
        )?;
        let mut wrong = None;
        for (artifact, binary) in missing {
            let file = out.join(executable_name(&binary.package));
            let got = Digest::of_file(&file)?;
            if artifact.pins.iter().any(|pin| pin.sha256 == got) {
                self.cache.adopt(&file, &got, artifact.mode())?;
            } else {
                wrong = wrong.or_else(|| Some(not_reproduced(artifact, binary, &got, &log)));
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    fn assemble_image(&mut self, artifact: &Artifact) -> Result<()> {
        let Some(image) = artifact.image() else { return Ok(()) };
        let mut files = BTreeMap::new();
        let mut variants = BTreeSet::new();
        for binary in &image.binaries {
            let blob = self.find_or_fail(binary)?;
            variants.insert(blob.variant);
            files.insert(binary.name.clone(), blob.path);
        }
        let [variant] = *variants.into_iter().collect::<Vec<_>>() else {
            return Err(mixed(artifact, image));
        };
        let Some(digest) = artifact.pins(variant).first().map(|pin| pin.sha256) else { return Err(unpinned(artifact)) };
        let lock = KeyLock::acquire(self.cache.root(), &digest.to_string(), &artifact.to_string(), self.watch)?;
        if self.cache.find(&digest, &mut |_| ())?.is_some() {
            return Ok(());
        }
        self.watch.progress(&format!("assembling {artifact}"));
        let file = lock.work().join("file");
        let mut hasher = Hasher::new(fs_err::File::create(&file)?);
        image_tar(artifact, &files, &mut hasher)?;
        let got = hasher.finish().1;
        if got == digest {
            return self.cache.adopt(&file, &digest, artifact.mode()).map(drop);
        }
        Err(Error::bug(format!("{artifact} assembled from the right binaries is not the one in the lock file"))
            .evidence(format!("expected sha256 {digest}"))
            .evidence(format!("got      sha256 {got}"))
            .hint("turnup artifacts lock --write"))
    }

    /// One error out of what every source said.
    fn explain(&mut self, artifact: &Artifact) -> Error {
        let mut failures = self.failures.remove(&artifact.id()).unwrap_or_default();
        let Some((source, last)) = failures.pop() else {
            return Error::config(format!("{artifact} is not in the cache, and no other source is allowed"))
                .hint("add mirror, upstream or source to the artifact sources");
        };
        if failures.is_empty() && source != Source::Cache.to_string() {
            return name_artifact(artifact, &source, last);
        }
        let transient = failures.iter().any(|(_, error)| error.class() == Class::Transient);
        let class = if transient { Class::Transient } else { last.class() };
        let mut error = Error::new(class, format!("{artifact} cannot be had from any source"));
        failures.push((source, last));
        for (source, failure) in &failures {
            error = error.evidence(format!("{source}: {failure}"));
            error = failure.evidence_lines().iter().fold(error, |error, line| error.evidence(format!("  {line}")));
        }
        let hint = failures.iter().rev().find_map(|(_, failure)| failure.next());
        let hint = hint.unwrap_or("add mirror, upstream or source to the artifact sources").to_owned();
        error.hint(hint)
    }
}

impl Cache {
    pub(super) fn log_path(&self, name: &str) -> PathBuf {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        self.root().join("logs").join(format!("{name}-{now}-{}.log", std::process::id()))
    }
}

/// A source names its files; users think of artifacts.
fn name_artifact(artifact: &Artifact, source: &str, error: Error) -> Error {
    if error.message().contains(&artifact.name) {
        return error;
    }
    let hint = error.next().unwrap_or("put it there, or choose another source: turnup config").to_owned();
    let lines = error.evidence_lines().to_vec();
    let named = Error::new(error.class(), format!("{artifact} cannot be had from {source}"));
    lines.into_iter().fold(named, Error::evidence).source(error).hint(hint)
}

fn unpinned(artifact: &Artifact) -> Error {
    Error::config(format!("the upstream file of {artifact} is not pinned: its sha256 is not recorded"))
        .hint("turnup artifacts pin --source upstream")
}

fn mixed(artifact: &Artifact, image: &ImageArtifact) -> Error {
    let names: Vec<&str> = image.binaries.iter().map(|binary| binary.name.as_str()).collect();
    Error::permanent(format!("{artifact} would be mixed from upstream's and our own builds of {}", names.join(", ")))
        .hint("name either upstream or source in the artifact sources")
}

fn any<T>(items: &[T], is: impl Fn(&T) -> Result<bool>) -> Result<bool> {
    for item in items {
        if is(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a build must be, what it is, and everything that has a say in that. With a C compiler, that
/// is the machine's own part.
fn not_reproduced(artifact: &Artifact, binary: &BinaryArtifact, got: &Digest, log: &Path) -> Error {
    let mut error =
        Error::permanent(format!("the build of {artifact} is not the one that the lock file pins; it was refused"));
    for pin in &artifact.pins {
        let with = match &pin.origin {
            DigestOrigin::SourceBuild { c_toolchain: Some(with) } => format!(" built with {with}"),
            _ => String::new(),
        };
        error = error.evidence(format!("expected sha256 {}{with}", pin.sha256));
    }
    error = error
        .evidence(format!("got      sha256 {got}"))
        .evidence(format!("built with {}, go.mod of templates/artifacts/{}", binary.toolchain, binary.directory));
    let Some(cgo) = &binary.cgo else {
        return error
            .evidence(format!("log: {}", log.display()))
            .hint("turnup artifacts lock --write   (only if you changed the Go module or the flags on purpose)");
    };
    error
        .evidence(format!("and here with {}", tools::describe_c_toolchain(&cgo.libraries)))
        .evidence(format!("log: {}", log.display()))
        .hint(
            "take the project's own release, whose sha256 is pinned: turnup config set phase2.artifacts.upstream=y; or a mirror made \
             where it could be built: phase2.artifacts.mirror; or accept this machine's build: turnup artifacts lock --write",
        )
}
