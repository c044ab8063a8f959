//! The directory of one cluster: whole-file writes into it, its lock, its state.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::{self, Journal, JournalContent, JournalEntry};
use super::snapshot::{self, State};
use super::{ClusterLock, Holder, Owner, errors, lock};
use crate::atomic_file::{self, AtomicFile, FileMode};
use crate::{Class, Error, Result, failpoint, input, terminal, unknown};

const STATE: &str = "state.json";
const JOURNAL: &str = "journal.jsonl";
const LOCK: &str = "lock";
/// A journal that has grown longer than this is cut down to what the state still needs when the
/// next run opens it.
const LONG_JOURNAL: u64 = 8 << 20;
/// Directories whose files others write: the local hosts' own, and Terraform's.
const NOT_OURS: [&str; 2] = ["hosts", "provision/.terraform"];
/// How far the snapshot may lag behind the journal while a run goes on.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);

/// The directory `.turnup/<cluster>/`. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
    writer: Arc<Mutex<Option<Writer>>>,
    /// In place of the directory, or in front of it.
    memory: Option<Memory>,
}

/// What is only imagined of a directory.
#[derive(Clone, Debug)]
struct Memory {
    files: Arc<Mutex<Files>>,
    /// The directory on the disk from which is read what was not written here.
    behind: PathBuf,
    /// Which of its files are read; all where it is none.
    is_read: Option<fn(&Path) -> bool>,
}

/// Files by their relative paths, as text, which compares faster than parts; none for one that was
/// removed.
type Files = BTreeMap<OsString, Option<ImaginedFile>>;

/// A file that was not written to the disk.
#[derive(Clone, Debug)]
struct ImaginedFile {
    bytes: Vec<u8>,
    /// What it says, where that was given: hundreds of forecasts would parse it again and again.
    value: Option<Arc<dyn Any + Send + Sync>>,
}

/// What the only writer keeps open.
#[derive(Debug)]
struct Writer {
    journal: Journal,
    state: State,
    /// When the snapshot was last written, and whether the journal has gone on since.
    written: Instant,
    behind: bool,
    /// How long writing it took.
    cost: Duration,
}

impl Writer {
    fn new(journal: Journal, state: State, behind: bool) -> Self {
        Self { journal, state, written: Instant::now(), behind, cost: Duration::ZERO }
    }
}

impl Store {
    /// Opens the directory; makes it (0700) when it is not there.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let store = Self::at(dir);
        store.create_dir("")?;
        Ok(store)
    }

    /// The directory, which need not be there: for looking only.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), writer: Arc::default(), memory: None }
    }

    /// The directory as it would become: what is there is read from the disk, what is written stays
    /// in memory.
    #[must_use]
    pub fn shadow(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        let memory = Memory { files: Arc::default(), behind: dir.clone(), is_read: None };
        Self { memory: Some(memory), ..Self::at(dir) }
    }

    /// A directory that is only imagined: at first it has nothing but those files of the one
    /// `behind` that `is_read` chooses, and what is written to it stays in memory.
    #[must_use]
    pub fn imagined(dir: impl Into<PathBuf>, behind: impl Into<PathBuf>, is_read: fn(&Path) -> bool) -> Self {
        let memory = Memory { files: Arc::default(), behind: behind.into(), is_read: Some(is_read) };
        Self { memory: Some(memory), ..Self::at(dir) }
    }

    /// Whether this is the directory as it would become.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_read.is_none())
    }

    /// The files of an imagined directory with their relative paths.
    #[must_use]
    pub fn imagined_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.memory();
        let all = files.iter().flat_map(|files| files.iter());
        all.filter_map(|(path, file)| Some((path.into(), file.as_ref()?.bytes.clone()))).collect()
    }

    fn memory(&self) -> Option<MutexGuard<'_, Files>> {
        self.memory.as_ref().map(|memory| memory.files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of a file in it.
    #[must_use]
    pub fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.dir.join(rel)
    }

    /// Takes the lock for this command, or names the process that has it. Makes the directory when
    /// it is not there. Its owner finds no half-written file of a dead process, and no file that
    /// other users can read.
    pub fn lock(&self, command: &str) -> Result<ClusterLock> {
        self.create_dir("")?;
        let lock = ClusterLock::take(&self.path(LOCK), command)?;
        failpoint::pass(format_args!("lock taken"));
        close(&self.dir, &fs_err::metadata(&self.dir)?);
        tidy(&self.dir, &NOT_OURS.map(|rel| self.path(rel)));
        Ok(lock)
    }

    /// The process that works on the cluster now, if any. Takes no lock, so it never blocks another
    /// process.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.holder().ok().flatten().filter(|holder| holder.alive).map(|holder| holder.owner)
    }

    /// Who has the lock, or died with it. Needs no lock and takes none.
    pub fn holder(&self) -> Result<Option<Holder>> {
        lock::look(&self.path(LOCK))
    }

    /// The state: snapshot plus what the journal says since. Needs no lock.
    pub fn state(&self) -> Result<State> {
        if let Some(writer) = self.writer().as_ref() {
            return Ok(writer.state.clone());
        }
        // The snapshot first: a journal read later knows all that the snapshot knows.
        let snapshot = self.snapshot()?;
        let content = self.journal()?;
        Ok(snapshot.replay(&content.lines))
    }

    /// Deletes the whole directory. The lock goes last, so that no other process begins in a
    /// directory that is half gone.
    pub fn delete(&self, lock: ClusterLock) -> Result<()> {
        for entry in fs_err::read_dir(&self.dir)? {
            let path = entry?.path();
            let Some(name) = path.file_name().filter(|name| *name != LOCK) else { continue };
            failpoint::around(format_args!("remove {}", name.display()), || {
                if path.is_dir() && !path.is_symlink() {
                    fs_err::remove_dir_all(&path)
                } else {
                    fs_err::remove_file(&path)
                }
            })?;
        }
        failpoint::around(format_args!("remove the cluster's directory"), || fs_err::remove_dir_all(&self.dir))?;
        drop(lock);
        Ok(())
    }

    /// Writes one entry to the journal and takes it into the state. When this returns, the entry is
    /// on the disk.
    pub fn record(&self, _lock: &ClusterLock, entry: JournalEntry) -> Result<()> {
        if self.memory.is_some() {
            return Err(Error::bug("steps of an imagined cluster are not run"));
        }
        let mut slot = self.writer();
        let writer = match slot.as_mut() {
            Some(writer) => writer,
            None => slot.insert(self.open_writer()?),
        };
        let line = writer.journal.append(entry)?;
        writer.state.apply(&line);
        writer.behind = true;
        // A reader takes snapshot and journal together, so the snapshot may lag: hundreds of hosts
        // must not mean as many big writes. Nor a large part of the time: of a thousand hosts the
        // snapshot has megabytes.
        let pause = SNAPSHOT_EVERY.max(writer.cost * 20);
        if writer.written.elapsed() >= pause { self.write_snapshot(writer) } else { Ok(()) }
    }

    /// Brings the snapshot up to the journal, also to the lines of a run that was killed before it
    /// could.
    pub fn flush(&self, _lock: &ClusterLock) -> Result<()> {
        let mut slot = self.writer();
        let writer = match slot.as_mut() {
            Some(writer) => writer,
            None if self.snapshot_lags()? => slot.insert(self.open_writer()?),
            None => return Ok(()),
        };
        if writer.behind { self.write_snapshot(writer) } else { Ok(()) }
    }

    fn snapshot_lags(&self) -> Result<bool> {
        let last = self.journal()?.lines.last().map_or(0, |line| line.seq);
        Ok(self.snapshot()?.seq < last)
    }

    fn write_snapshot(&self, writer: &mut Writer) -> Result<()> {
        writer.state.generation += 1;
        let start = Instant::now();
        self.write_json(STATE, &writer.state, 0o600)?;
        (writer.written, writer.behind, writer.cost) = (Instant::now(), false, start.elapsed());
        Ok(())
    }

    /// Rebuilds state and journal from whatever of both can be read, and keeps copies of the rest.
    /// Returns what was done.
    pub fn rebuild(&self, _lock: &ClusterLock) -> Result<Vec<String>> {
        *self.writer() = None;
        let mut report = Vec::new();
        let bytes = self.read(JOURNAL)?.unwrap_or_default();
        let content = journal::parse(&bytes);
        if let Some(newer @ journal::Damage::Newer { .. }) = content.damage {
            return Err(newer.into_error(&self.path(JOURNAL)));
        }
        let snapshot = match self.snapshot() {
            Err(error) if self.is_newer_state() => return Err(error),
            Err(error) => {
                report.push(format!("{error}; kept as {}", self.keep_copy(STATE)?));
                State::default()
            }
            Ok(state) => state,
        };
        let generation = snapshot.generation;
        if let Some(damage) = content.damage {
            report.push(format!("{}; kept as {}", damage.into_error(&self.path(JOURNAL)), self.keep_copy(JOURNAL)?));
        }
        let mut state = snapshot.replay(&content.lines);
        state.generation = generation + 1;
        self.replace_both(&mut state)?;
        report.push(format!("{} finished and {} unfinished steps are known", state.steps.len(), state.open.len()));
        Ok(report)
    }

    /// Writes a file whole or not at all: the only way a file comes to be below this directory.
    /// Makes missing directories (0700).
    pub fn write_file(&self, rel: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<()> {
        let path = self.inside(rel.as_ref())?;
        if let Some(mut files) = self.memory() {
            files.insert(rel.as_ref().into(), Some(ImaginedFile { bytes: bytes.to_vec(), value: None }));
            return Ok(());
        }
        if unknown::is_in(bytes) {
            return Err(Error::bug(format!("{} would hold a value that is not known yet", path.display())));
        }
        let dir = path.parent().unwrap_or(&self.dir);
        Self::make_dirs(dir)?;
        let point = |when: &str| failpoint::pass(format_args!("write {}: {when}", rel.as_ref().display()));
        let write = || -> std::io::Result<()> {
            point("before");
            let mut file = AtomicFile::create(&path, FileMode::Exact(mode))?;
            file.write_all(bytes)?;
            point("half");
            file.commit()?;
            point("after");
            Ok(())
        };
        write().map_err(|error| errors::io(&path, error))
    }

    /// The same for the text of this value: [`Self::imagined_value`] has it without parsing.
    pub fn write_value<T: Clone + Send + Sync + 'static>(
        &self,
        rel: &str,
        value: &T,
        text: &str,
        mode: u32,
    ) -> Result<()> {
        self.write_file(rel, text.as_bytes(), mode)?;
        if let Some(mut files) = self.memory()
            && let Some(Some(file)) = files.get_mut(OsStr::new(rel))
        {
            file.value = Some(Arc::new(value.clone()));
        }
        Ok(())
    }

    /// What a file says that was written as such a value and stayed in memory.
    #[must_use]
    pub fn imagined_value<T: Clone + 'static>(&self, rel: &str) -> Option<T> {
        let files = self.memory()?;
        files.get(OsStr::new(rel))?.as_ref()?.value.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// The same for a value as indented JSON.
    pub fn write_json<T: Serialize>(&self, rel: impl AsRef<Path>, value: &T, mode: u32) -> Result<()> {
        let rel = rel.as_ref();
        let text = serde_json::to_vec_pretty(value);
        let mut bytes =
            text.map_err(|error| Error::bug(format!("{} cannot be written as JSON", rel.display())).source(error))?;
        bytes.push(b'\n');
        self.write_file(rel, &bytes, mode)
    }

    /// The bytes of a file; nothing when it is not there.
    pub fn read(&self, rel: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        let mut path = self.inside(rel.as_ref())?;
        if let (Some(memory), Some(files)) = (&self.memory, self.memory()) {
            let removed = || rel.as_ref().ancestors().any(|dir| matches!(files.get(dir.as_os_str()), Some(None)));
            if let Some(known) = files.get(rel.as_ref().as_os_str()) {
                return Ok(known.as_ref().map(|file| file.bytes.clone()));
            }
            if removed() || memory.is_read.is_some_and(|is_read| !is_read(rel.as_ref())) {
                return Ok(None);
            }
            path = memory.behind.join(rel);
        }
        match input::read(&path, input::STATE) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(errors::io(&path, error)),
        }
    }

    /// A value from a JSON file; nothing when it is not there.
    pub fn read_json<T: DeserializeOwned>(&self, rel: impl AsRef<Path>) -> Result<Option<T>> {
        let rel = rel.as_ref();
        let Some(bytes) = self.read(rel)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let place = format!("{}:{}:{}", self.path(rel).display(), error.line(), error.column());
            Error::precondition(format!("{place}: the file is damaged, or was edited by hand")).source(error)
        })
    }

    /// Makes a directory (0700) below this one.
    pub fn create_dir(&self, rel: impl AsRef<Path>) -> Result<PathBuf> {
        let path = self.inside(rel.as_ref())?;
        if self.memory.is_none() {
            Self::make_dirs(&path)?;
        }
        Ok(path)
    }

    /// Removes a file or a directory with all that is in it; nothing there is fine.
    pub fn remove(&self, rel: impl AsRef<Path>) -> Result<()> {
        let path = self.inside(rel.as_ref())?;
        if let Some(mut files) = self.memory() {
            files.retain(|file, _| !Path::new(file).starts_with(rel.as_ref()));
            files.insert(rel.as_ref().into(), None);
            return Ok(());
        }
        let point = format_args!("remove {}", rel.as_ref().display());
        let removed = match fs_err::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => failpoint::around(point, || fs_err::remove_dir_all(&path)),
            Ok(_) => failpoint::around(point, || fs_err::remove_file(&path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|error| errors::io(&path, error))?;
        errors::sync_parent(&path)
    }

    /// The log file of a step.
    #[must_use]
    pub fn log_path(&self, step: &str) -> PathBuf {
        self.path("logs").join(format!("{}.log", step.replace('/', "-")))
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        // The entry is on the disk or it is not; a panic elsewhere changes nothing about that.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_writer(&self) -> Result<Writer> {
        let snapshot = self.snapshot()?;
        let content = self.journal()?;
        let known = snapshot.seq;
        let mut state = snapshot.replay(&content.lines);
        let journal = Journal::open(self.path(JOURNAL), &content, state.seq)?;
        if journal.length() <= LONG_JOURNAL {
            let behind = known < state.seq;
            return Ok(Writer::new(journal, state, behind));
        }
        drop(journal);
        self.replace_both(&mut state)?;
        let content = self.journal()?;
        let journal = Journal::open(self.path(JOURNAL), &content, state.seq)?;
        Ok(Writer::new(journal, state, false))
    }

    /// Writes the state, then a journal that says no more than the state does. A crash between the
    /// two is harmless: the old journal's lines are all part of the state already, and new lines
    /// are numbered after them.
    fn replace_both(&self, state: &mut State) -> Result<()> {
        let first = state.seq + 1;
        let lines: Vec<journal::Line> = (first..)
            .zip(state.entries())
            .map(|(seq, entry)| journal::Line { v: journal::VERSION, seq, at: Timestamp::now(), entry })
            .collect();
        state.seq += lines.len() as u64;
        let mut bytes = Vec::new();
        for line in &lines {
            serde_json::to_writer(&mut bytes, line)
                .map_err(|error| Error::bug("a journal line is no JSON").source(error))?;
            bytes.push(b'\n');
        }
        self.write_json(STATE, state, 0o600)?;
        self.write_file(JOURNAL, &bytes, 0o600)
    }

    fn snapshot(&self) -> Result<State> {
        let Some(bytes) = self.read(STATE)? else { return Ok(State::default()) };
        let path = self.path(STATE);
        if let Some(version) = newer_version(&bytes) {
            return Err(errors::newer(&path, version, snapshot::VERSION));
        }
        let state: State = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{}:{}:{}: the state is damaged", path.display(), error.line(), error.column());
            Error::new(Class::Precondition, message).source(error).hint(errors::REBUILD)
        })?;
        if let Some(step) = state.steps.keys().chain(state.open.keys()).find(|step| step.contains(terminal::is_control))
        {
            let message = format!("{}: the state is damaged: {step:?} is no name of a step", path.display());
            return Err(Error::precondition(message).hint(errors::REBUILD));
        }
        Ok(state)
    }

    fn is_newer_state(&self) -> bool {
        self.read(STATE).ok().flatten().is_some_and(|bytes| newer_version(&bytes).is_some())
    }

    fn journal(&self) -> Result<JournalContent> {
        let mut content = journal::parse(&self.read(JOURNAL)?.unwrap_or_default());
        match content.damage.take() {
            Some(damage) => Err(damage.into_error(&self.path(JOURNAL))),
            None => Ok(content),
        }
    }

    fn keep_copy(&self, rel: &str) -> Result<String> {
        let name = format!("{rel}.damaged-{}", Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
        let bytes = self.read(rel)?.unwrap_or_default();
        self.write_file(&name, &bytes, 0o600)?;
        Ok(self.path(name).display().to_string())
    }

    /// A path below this directory, and nowhere else.
    fn inside(&self, rel: &Path) -> Result<PathBuf> {
        if rel.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Ok(self.dir.join(rel));
        }
        Err(Error::bug(format!("{} leads out of {}", rel.display(), self.dir.display())))
    }

    fn make_dirs(dir: &Path) -> Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|error| errors::io(dir, error))
    }
}

/// Removes what processes that are gone had not written to the end, and takes the rights of other
/// users away, here and in the directories below: an older turnup or a Terraform run by hand may
/// have left more. What cannot be changed is left as it is.
fn tidy(dir: &Path, not_ours: &[PathBuf]) {
    for entry in fs_err::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_symlink() {
            continue;
        }
        let part = entry
            .file_name()
            .to_str()
            .and_then(|name| name.strip_prefix(atomic_file::PREFIX)?.split_once('-'))
            .map(|(pid, _)| pid.to_owned());
        if part.is_some_and(|pid| metadata.is_file() && !Path::new("/proc").join(pid).exists()) {
            let _stays = fs_err::remove_file(path);
            continue;
        }
        close(&path, &metadata);
        if metadata.is_dir() && !not_ours.contains(&path) {
            tidy(&path, not_ours);
        }
    }
}

/// Leaves the rights on a file to its user alone.
fn close(path: &Path, metadata: &std::fs::Metadata) {
    let mode = metadata.permissions().mode();
    if mode & 0o077 != 0 {
        let _stays = fs_err::set_permissions(path, Permissions::from_mode(mode & 0o700));
    }
}

fn newer_version(bytes: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        version: u32,
    }
    let head: Head = serde_json::from_slice(bytes).ok()?;
    (head.version > snapshot::VERSION).then_some(head.version)
}
