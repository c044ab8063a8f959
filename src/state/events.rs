//! The events of a run, kept: one file a run below `events/`, line by line, and the last of them
//! stay.
//!
//! A line is bytes here; what it means is not this module's business. Kept events are for people
//! and programs that look back: nothing that turnup decides rests on them, so a line is not synced.

use std::io::Write as _;
use std::path::PathBuf;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use jiff::Timestamp;

use super::{ClusterLock, Store, Tail, errors};
use crate::{Result, failpoint};

const DIR: &str = "events";
const END: &str = ".jsonl";
/// So many runs stay.
const KEPT: usize = 20;
/// Fixed in width, so that names sort by time.
const FORM: &str = "%Y%m%dT%H%M%S.%3fZ";

/// One run whose events are kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptRun {
    /// `<UTC time>-<command>`: the name of the file without its end.
    pub id: String,
    /// The file.
    pub path: PathBuf,
}

impl KeptRun {
    /// The command that was run.
    #[must_use]
    pub fn command(&self) -> &str {
        self.id.split_once('-').map_or("", |(_, command)| command)
    }

    /// Its whole lines; a line that is still being written is none.
    pub fn lines(&self) -> Result<Vec<String>> {
        Tail::new(&self.path).lines()
    }
}

/// The file into which the events of this run go.
#[derive(Debug)]
pub struct EventFile {
    run: KeptRun,
    file: fs_err::File,
    /// The runs before this one, the newest first.
    earlier: Vec<KeptRun>,
}

impl EventFile {
    /// Adds one line, which has no newline of its own.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        // In one write, so that a concurrent reader sees whole lines.
        let written = self.file.write_all(&[line, b"\n"].concat());
        written.map_err(|error| errors::io(&self.run.path, error))
    }

    /// Earlier runs of the same command, the newest first.
    pub fn earlier(&self) -> impl Iterator<Item = &KeptRun> {
        self.earlier.iter().filter(|run| run.command() == self.run.command())
    }
}

impl Store {
    /// Begins to keep the events of a run of this command, and drops the oldest runs. The lock says
    /// that there is no other writer.
    pub fn keep_events(&self, _lock: &ClusterLock, command: &str) -> Result<EventFile> {
        let dir = self.create_dir(DIR)?;
        let mut earlier = self.kept_runs()?;
        earlier.reverse();
        let command: String =
            command.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
        let id = format!("{}-{command}", Timestamp::now().strftime(FORM));
        let path = dir.join(format!("{id}{END}"));
        let open = fs_err::OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let file = open.map_err(|error| errors::io(&path, error))?;
        while earlier.len() >= KEPT {
            // Taken out of the list as well: a run that compares itself must not look for it.
            let Some(oldest) = earlier.pop() else { break };
            // Named without the time in the file's name: the points at which a test kills are the
            // same in every run.
            let removed =
                failpoint::around(format_args!("remove the oldest events"), || fs_err::remove_file(&oldest.path));
            removed.map_err(|error| errors::io(&oldest.path, error))?;
        }
        Ok(EventFile { run: KeptRun { id, path }, file, earlier })
    }

    /// The runs whose events are kept, the oldest first. Needs no lock.
    pub fn kept_runs(&self) -> Result<Vec<KeptRun>> {
        let dir = self.path(DIR);
        let entries = match fs_err::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(errors::io(&dir, error)),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| errors::io(&dir, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            runs.extend(name.strip_suffix(END).map(|id| KeptRun { id: id.to_owned(), path }));
        }
        runs.sort();
        Ok(runs)
    }
}
