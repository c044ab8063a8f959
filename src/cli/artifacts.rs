//! `turnup artifacts`: what is pinned, what is here, get it, check it, carry it elsewhere, record
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use crate::artifacts::{
    Artifact, Blob, Cache, CacheHealth, Digest, Exported, Lock, Platform, RecordedDigest, Selection, Sources, Watch,
    describe_components, export_bundle, export_mirror, pin_upstream, rewrite_lock, write_lock, write_reference,
};
use crate::cluster::Cluster;
use crate::component::{Difference, Reference, compare};
use crate::config::TreeSource;
use crate::{Context, Error, Result};

use super::{Global, Printer};

/// The name of the form of a list.
const ARTIFACTS: &str = "turnup.artifacts/1";

/// Binaries and images: list, fetch, verify, export, pin.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The Kubernetes version; the lock file's default when not given.
    #[arg(long, global = true, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// Where artifacts may come from, in this order: cache, mirror, upstream, source.
    #[arg(long, global = true, value_name = "LIST", default_value = "cache,source")]
    sources: String,
    /// URL or directory of a mirror, for the source `mirror`; several are separated by commas.
    #[arg(long, global = true, value_name = "PLACE", default_value = "")]
    mirror: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows every artifact, its digest, and whether it is in the cache.
    List,
    /// Gets artifacts into the cache: those named, else all that a cluster needs.
    Fetch {
        /// Names as `list` shows them.
        names: Vec<String>,
    },
    /// Reads every byte of the cached artifacts and compares the digests.
    Verify,
    /// Gets one artifact and prints where it is.
    Path {
        /// A name as `list` shows it.
        name: String,
    },
    /// Writes a mirror that any web server can serve, or that can be carried to where there is no
    /// network.
    Export {
        /// The directory of the mirror.
        dir: PathBuf,
        /// Also what is only fetched when asked for by name.
        #[arg(long)]
        all: bool,
    },
    /// Writes all that this configuration needs into one place for a machine without a network:
    /// binaries, images and its own images; see phase2.artifacts.bundle.
    Bundle {
        /// A directory, or a file whose name ends with .tar.
        place: PathBuf,
        /// Also what is only fetched when asked for by name, such as tofu.
        #[arg(long)]
        all: bool,
    },
    /// Makes the root that local hosts boot from, and prints where it is.
    #[command(name = "rootfs")]
    RootFs {
        /// The release: bookworm, trixie (Debian) or noble (Ubuntu).
        #[arg(default_value = "bookworm")]
        suite: String,
        /// Further packages of it, separated by commas: another root, such as one with cloud-init.
        #[arg(long = "with", value_name = "PACKAGES", value_delimiter = ',')]
        further: Vec<String>,
        /// Where its packages come from; else where this machine's own do.
        #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
        mirror: String,
        /// Make it again where it is there: with the security updates of today.
        #[arg(long)]
        renew: bool,
    },
    /// Builds everything from source and compares it with the lock file; `--write` records the
    /// digests.
    Lock {
        /// Write ./cluster.lock.json.
        #[arg(long)]
        write: bool,
    },
    /// Compares the table of what components accept (flags, fields of files, feature gates) with
    /// the pinned binaries; `--write` writes it.
    Reference {
        /// Write ./templates/components/kubernetes-VERSION.json.
        #[arg(long)]
        write: bool,
    },
    /// Downloads what upstream publishes, once, and records the digests in ./cluster.lock.json. A
    /// file without a checksum file of its project is taken on trust, and recorded as such.
    Pin {
        /// Whose files are recorded.
        #[arg(long, value_enum)]
        source: PinSource,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PinSource {
    /// The release sites.
    Upstream,
}

#[derive(Serialize)]
struct Row<'a> {
    artifact: String,
    version: &'a str,
    platform: String,
    sha256: Digest,
    optional: bool,
    path: Option<PathBuf>,
}

#[derive(Serialize)]
struct Checked {
    artifact: Option<String>,
    sha256: Digest,
    health: CacheHealth,
}

/// Runs the command; progress goes to standard error.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    crate::exec::signals::install()?;
    let watch = &Remarks(printer);
    let session = ArtifactsContext::open(args, printer, watch)?;
    match &args.command {
        Command::List => session.list(),
        Command::Fetch { names } => session.fetch(names),
        Command::Verify => session.verify(),
        Command::Path { name } => {
            let path = session.cache.ensure(session.selection()?.get(name)?, &session.sources, watch)?;
            session.tell_path(&path)
        }
        Command::Export { dir, all } => session.export(dir, *all),
        Command::Bundle { place, all } => session.bundle(global, place, *all),
        Command::RootFs { suite, further, mirror, renew } => session.rootfs(suite, further, mirror, *renew),
        Command::Lock { write } => {
            let version = session.version().to_owned();
            session.record(rewrite_lock, &version, *write)
        }
        Command::Reference { write } => session.reference(*write),
        Command::Pin { source: PinSource::Upstream } => {
            let version = session.version().to_owned();
            session.record(pin_upstream, &version, true)
        }
    }
}

/// An entry as people read it.
fn show(entry: Option<&serde_json::Value>) -> String {
    entry.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

type Record = fn(&mut Lock, &str, &Platform, &Cache, &dyn Watch) -> Result<Vec<RecordedDigest>>;

struct ArtifactsContext<'a> {
    args: &'a Args,
    printer: &'a Printer,
    lock: Lock,
    cache: Cache,
    sources: Sources,
    watch: &'a dyn Watch,
}

impl<'a> ArtifactsContext<'a> {
    fn open(args: &'a Args, printer: &'a Printer, watch: &'a dyn Watch) -> Result<Self> {
        Ok(Self {
            args,
            printer,
            lock: Arc::unwrap_or_clone(Lock::load(Path::new("."))?),
            cache: Cache::open()?,
            sources: Sources::parse(&args.sources, &args.mirror)?,
            watch,
        })
    }

    fn version(&self) -> &str {
        self.args.kubernetes.as_deref().unwrap_or(&self.lock.default)
    }

    fn selection(&self) -> Result<Selection> {
        self.lock.select(self.version())
    }

    fn list(&self) -> Result<()> {
        let selection = self.selection()?;
        let look = |artifact| Ok((artifact, self.cache.lookup(artifact, &self.sources, self.watch)?));
        let found: Vec<_> = selection.artifacts.iter().map(look).collect::<Result<_>>()?;
        let rows: Vec<Row<'_>> = found.into_iter().map(|(artifact, blob)| Row::of(artifact, blob)).collect();
        let pulled = &selection.registry_images;
        if self.printer.is_json() {
            let pulled: BTreeMap<_, _> = pulled.iter().map(|(name, image)| (name, image.reference())).collect();
            return self.printer.json(&json!({"schema": ARTIFACTS, "artifacts": rows, "registry_images": pulled}));
        }
        rows.iter().try_for_each(|row| self.printer.line(&row.line()))?;
        pulled.iter().try_for_each(|(name, image)| {
            let id = format!("image/{name}");
            self.printer.line(&format!(
                "{id:<32} {:<8} {:<20} {}",
                image.version(),
                "pulled by nodes",
                image.reference()
            ))
        })
    }

    fn tell_rows(&self, found: Vec<(&Artifact, Option<Blob>)>) -> Result<()> {
        let rows: Vec<Row<'_>> = found.into_iter().map(|(artifact, blob)| Row::of(artifact, blob)).collect();
        if self.printer.is_json() {
            return self.printer.json(&json!({"schema": ARTIFACTS, "artifacts": rows}));
        }
        rows.iter().try_for_each(|row| self.printer.line(&row.line()))
    }

    fn tell_path(&self, path: &Path) -> Result<()> {
        if self.printer.is_json() {
            return self.printer.json(&json!({"schema": "turnup.artifacts.path/1", "path": path}));
        }
        self.printer.line(&path.display().to_string())
    }

    fn fetch(&self, names: &[String]) -> Result<()> {
        let selection = self.selection()?;
        let wanted: Vec<&Artifact> = if names.is_empty() {
            selection.required().collect()
        } else {
            names.iter().map(|name| selection.get(name)).collect::<Result<_>>()?
        };
        let blobs = self.cache.ensure_all(wanted.iter().copied(), &self.sources, self.watch)?;
        self.tell_rows(wanted.into_iter().zip(blobs.into_iter().map(Some)).collect())
    }

    fn verify(&self) -> Result<()> {
        let mut names = BTreeMap::new();
        for version in self.lock.versions() {
            // A version that is not recorded for this platform has no names to offer, and nothing
            // in the cache.
            for artifact in self.lock.select(version).into_iter().flat_map(|selection| selection.artifacts) {
                for pin in artifact.pins.iter().chain(&artifact.upstream_pins) {
                    names.insert(pin.sha256, artifact.to_string());
                }
            }
        }
        let (start, mut corrupt, mut checked) = (Instant::now(), 0, Vec::new());
        let digests = self.cache.digests()?;
        for digest in &digests {
            self.watch.check()?;
            let (health, place) = self.cache.check(digest)?;
            let artifact = names.get(digest).cloned();
            corrupt += usize::from(health == CacheHealth::Corrupt);
            if health == CacheHealth::Corrupt && !self.printer.is_json() {
                let name = artifact.as_deref().unwrap_or("something no longer pinned");
                self.printer.line(&format!("corrupt: {name}; moved to {}", place.display()))?;
            }
            checked.push(Checked { artifact, sha256: *digest, health });
        }
        if self.printer.is_json() {
            self.printer
                .json(&json!({"schema": "turnup.artifacts.verify/1", "good": corrupt == 0, "files": checked}))?;
        }
        if corrupt != 0 {
            return Err(Error::permanent(format!("{corrupt} of {} files in the cache were altered", digests.len()))
                .hint("turnup artifacts fetch"));
        }
        if self.printer.is_json() {
            return Ok(());
        }
        self.printer.line(&format!("{} files are good ({:.1} s)", digests.len(), start.elapsed().as_secs_f64()))
    }

    fn rootfs(&self, suite: &str, further: &[String], mirror: &str, renew: bool) -> Result<()> {
        let path = self.cache.rootfs_from(suite, further, mirror, renew, self.watch)?;
        if let Some(complaint) = self.cache.find_host_root(suite, further).and_then(|root| root.complaint()) {
            self.watch.progress(&format!("warning: this root {complaint}; turnup artifacts rootfs --renew"));
        }
        self.tell_path(&path)
    }

    fn export(&self, dir: &Path, all: bool) -> Result<()> {
        let selection = self.selection()?;
        let wanted: Vec<&Artifact> = selection.artifacts.iter().filter(|artifact| all || !artifact.optional).collect();
        let blobs = self.cache.ensure_all(wanted.iter().copied(), &self.sources, self.watch)?;
        let items: Vec<(&Artifact, Blob)> = wanted.into_iter().zip(blobs).collect();
        let own = std::env::current_exe().context("cannot find turnup's own binary")?;
        let exported: Vec<Exported> = items.iter().map(|(artifact, blob)| Exported::of(artifact, blob)).collect();
        export_mirror(&self.cache, &exported, &own, dir, self.watch)?;
        self.tell_rows(items.into_iter().map(|(artifact, blob)| (artifact, Some(blob))).collect())
    }

    /// By the configuration alone: its version, sources, cache and images.
    fn bundle(&self, global: &Global, place: &Path, all: bool) -> Result<()> {
        let source = TreeSource::find(Path::new("."));
        let cluster = Cluster::open(&global.settings(&source)?, source, &global.state_dir)?;
        let (cache, sources) = (cluster.cache()?, cluster.settings.sources.without_bundle());
        let selection = cluster.select_artifacts()?;
        let wanted: Vec<&Artifact> = selection.artifacts.iter().filter(|artifact| all || !artifact.optional).collect();
        let blobs = cache.ensure_all(wanted.iter().copied(), &sources, self.watch)?;
        let mut exported: Vec<Exported> =
            wanted.iter().zip(&blobs).map(|(artifact, blob)| Exported::of(artifact, blob)).collect();
        for (file, archive) in cluster.settings.artifacts.preload_images.iter().zip(cluster.read_images()?) {
            let (sha256, _) = cache.take_in(file, self.watch)?;
            let platform = selection.platform.to_string();
            exported.push(Exported {
                artifact: archive.references.join(","),
                version: String::new(),
                platform,
                sha256,
            });
        }
        let own = std::env::current_exe().context("cannot find turnup's own binary")?;
        export_bundle(&cache, &exported, &own, place, self.watch)?;
        for (name, image) in selection.pulled_images() {
            let reference = image.reference();
            self.watch.progress(&format!("not in the bundle: {name}; nodes pull it from their registry: {reference}"));
        }
        self.tell_rows(wanted.into_iter().zip(blobs.into_iter().map(Some)).collect())
    }

    fn reference(&self, write: bool) -> Result<()> {
        let version = self.lock.find_version(self.version())?;
        let source = TreeSource::find(Path::new("."));
        let is_there = !source.files(&Reference::path(version)).is_empty();
        let known = match Reference::load(&source, version) {
            Ok(known) => Some(known),
            Err(error) if is_there && !write => return Err(error),
            Err(_) => None,
        };
        let found = describe_components(&self.lock, version, &self.cache, &self.sources, self.watch)?;
        let differences = compare(known.as_deref(), &found)?;
        self.tell_changes("turnup.artifacts.reference/1", &differences, |Difference { entry, old, new }| {
            format!("{entry}: {} -> {}", show(old.as_ref()), show(new.as_ref()))
        })?;
        if write {
            let path = write_reference(&found, Path::new("."))?;
            self.watch.progress(&format!("{} entries changed in {}", differences.len(), path.display()));
            return Ok(());
        }
        if differences.is_empty() {
            return Ok(());
        }
        let message = format!("{} entries of Kubernetes {version} are not what its binaries say", differences.len());
        Err(Error::permanent(message).hint(format!("turnup artifacts reference --kubernetes {version} --write")))
    }

    /// What differs from a file of ours.
    fn tell_changes<T: Serialize>(&self, schema: &str, changes: &[T], line: impl Fn(&T) -> String) -> Result<()> {
        if self.printer.is_json() {
            return self.printer.json(&json!({"schema": schema, "changes": changes}));
        }
        changes.iter().try_for_each(|change| self.printer.line(&line(change)))
    }

    fn record(mut self, record: Record, version: &str, write: bool) -> Result<()> {
        let changes = record(&mut self.lock, version, &Platform::host(), &self.cache, self.watch)?;
        self.tell_changes("turnup.artifacts.lock/1", &changes, |change| {
            let old = change.old.map_or_else(|| "nothing".to_owned(), |old| old.to_string());
            format!("{} {}: {old} -> {}", change.artifact, change.version, change.new)
        })?;
        if write {
            let path = write_lock(&self.lock, Path::new("."))?;
            self.watch.progress(&format!("{} digests changed in {}", changes.len(), path.display()));
            return Ok(());
        }
        if changes.is_empty() {
            return Ok(());
        }
        Err(Error::permanent(format!("{} artifacts are not what the lock file says", changes.len()))
            .hint("turnup artifacts lock --write"))
    }
}

impl<'a> Row<'a> {
    fn of(artifact: &'a Artifact, blob: Option<Blob>) -> Self {
        Self {
            artifact: artifact.id(),
            version: &artifact.version,
            platform: artifact.platform.to_string(),
            sha256: blob.as_ref().map_or(artifact.pins[0].sha256, |blob| blob.digest),
            optional: artifact.optional,
            path: blob.map(|blob| blob.path),
        }
    }

    fn line(&self) -> String {
        let state = if self.path.is_some() { "cached" } else { "-" };
        format!("{:<32} {:<8} {:<12} {state:<7} {}", self.artifact, self.version, self.platform, self.sha256)
    }
}

/// Progress as plain lines on standard error.
struct Remarks<'a>(&'a Printer);

impl Watch for Remarks<'_> {
    fn progress(&self, message: &str) {
        self.0.remark(message);
    }

    fn count(&self, _done: u64, _total: u64) {}

    fn check(&self) -> Result<()> {
        crate::exec::signals::check()
    }
}
