//! `journal.jsonl`: intent before, outcome after, both on the disk before the next thing happens.
//!
//! A line that a crash tore off has no newline at its end: it was never acknowledged, so nothing
//! that it announced has started, and the next writer cuts it off. Any other unreadable line is
//! damage, and is never guessed.

use std::collections::BTreeMap;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Credential, errors};
use crate::failpoint;
use crate::{Class, Error, Result, terminal};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Version of the line's format.
    pub v: u32,
    /// Grows from line to line.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub entry: JournalEntry,
}

/// The version that this program writes, and the newest that it reads.
pub(super) const VERSION: u32 = 1;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum JournalEntry {
    /// A step is about to change something.
    Intent {
        /// The step's id.
        step: String,
        /// Digest of its inputs.
        digest: String,
    },
    /// A step ended.
    Outcome {
        /// The step's id.
        step: String,
        /// How.
        outcome: Outcome,
    },
    /// The record of a step is dropped: its host is gone, or its effect was undone.
    Forgotten {
        /// The step's id.
        step: String,
    },
    /// A credential is about to be handed out.
    Issued {
        /// Which.
        credential: Credential,
    },
}

impl JournalEntry {
    /// The names in it that are printed: of a step, or of a user and its groups.
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Intent { step, .. } | Self::Outcome { step, .. } | Self::Forgotten { step } => vec![step],
            Self::Issued { credential: Credential { user, groups, by, .. } } => {
                [user, by].into_iter().chain(groups).map(String::as_str).collect()
            }
        }
    }
}

/// What is said about which step, in short.
impl std::fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Intent { step, .. } => write!(f, "intent {step}"),
            Self::Outcome { step, outcome: Outcome::Done { .. } } => write!(f, "outcome {step}"),
            Self::Outcome { step, outcome: Outcome::Failed { .. } } => write!(f, "failure {step}"),
            Self::Forgotten { step } => write!(f, "forgotten {step}"),
            Self::Issued { .. } => write!(f, "issued"),
        }
    }
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// Well.
    Done {
        /// Digest of all inputs.
        digest: String,
        /// Digest of each input.
        inputs: BTreeMap<String, String>,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// Not well.
    Failed {
        /// The cause in one line.
        message: String,
    },
}

/// What reading a journal gave.
#[derive(Debug, Default)]
pub(super) struct JournalContent {
    pub(super) lines: Vec<Line>,
    /// Bytes up to and with the last newline.
    pub(super) whole: u64,
    /// The first line that is whole and does not read.
    pub(super) damage: Option<Damage>,
}

#[derive(Debug)]
pub(super) enum Damage {
    Unreadable { line: usize, why: String },
    Newer { version: u32 },
}

/// Reads every line that makes sense. Only a rebuild may use the lines of a damaged journal.
pub(super) fn parse(bytes: &[u8]) -> JournalContent {
    let mut content = JournalContent::default();
    let mut number = 0;
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        number += 1;
        let damage = match serde_json::from_slice::<Line>(&rest[..end]) {
            Ok(line) if line.entry.names().iter().any(|name| name.contains(terminal::is_control)) => {
                Some(Damage::Unreadable { line: number, why: "a name holds a control character".into() })
            }
            Ok(line) if line.v == VERSION => {
                content.lines.push(line);
                None
            }
            Ok(line) => Some(Damage::Newer { version: line.v }),
            Err(error) => Some(damage_of(&rest[..end], number, &error)),
        };
        content.damage = content.damage.or(damage);
        rest = &rest[end + 1..];
    }
    content.whole = (bytes.len() - rest.len()) as u64;
    content
}

/// A newer version may have fields that we do not know; that is not damage.
fn damage_of(line: &[u8], number: usize, error: &serde_json::Error) -> Damage {
    #[derive(Deserialize)]
    struct Head {
        v: u32,
    }
    match serde_json::from_slice::<Head>(line) {
        Ok(head) if head.v > VERSION => Damage::Newer { version: head.v },
        _ => Damage::Unreadable { line: number, why: error.to_string() },
    }
}

impl Damage {
    pub(super) fn into_error(self, path: &Path) -> Error {
        match self {
            Self::Newer { version } => errors::newer(path, version, VERSION),
            Self::Unreadable { line, why } => {
                let message = format!("{}:{line}: the journal is damaged", path.display());
                Error::new(Class::Precondition, message).evidence(why).hint(errors::REBUILD)
            }
        }
    }
}

/// The journal, open for writing.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: fs_err::File,
    length: u64,
    seq: u64,
}

impl Journal {
    /// Opens it for appending after a reader has found where the last whole line ends; cuts off
    /// what a crash tore.
    pub(super) fn open(path: PathBuf, content: &JournalContent, seq: u64) -> Result<Self> {
        let open = fs_err::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = open.map_err(|error| errors::io(&path, error))?;
        file.set_len(content.whole).map_err(|error| errors::io(&path, error))?;
        errors::sync_parent(&path)?;
        Ok(Self { path, file, length: content.whole, seq })
    }

    /// Appends one line; when this returns, it is on the disk.
    pub(super) fn append(&mut self, entry: JournalEntry) -> Result<Line> {
        let line = Line { v: VERSION, seq: self.seq + 1, at: Timestamp::now(), entry };
        let mut bytes =
            serde_json::to_vec(&line).map_err(|error| Error::bug("a journal line is no JSON").source(error))?;
        bytes.push(b'\n');
        let half = &bytes[..bytes.len() / 2];
        failpoint::pass(format_args!("journal {}: before", line.entry));
        failpoint::pass_with(format_args!("journal {}: torn", line.entry), || drop(self.write(half)));
        let written = self.write(&bytes);
        failpoint::pass(format_args!("journal {}: after", line.entry));
        if let Err(error) = written.and_then(|()| self.file.sync_data()) {
            // Half a line would be cut off by the next reader; without it the file is whole even
            // before that.
            let _torn = self.file.set_len(self.length);
            return Err(errors::io(&self.path, error));
        }
        self.length += bytes.len() as u64;
        self.seq = line.seq;
        Ok(line)
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length)).and_then(|_| self.file.write_all(bytes))
    }

    /// How long the file is.
    pub(super) fn length(&self) -> u64 {
        self.length
    }
}
