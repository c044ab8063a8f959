//! Commands of Kconfig trees: the one place where a shell is wanted.
//!
//! Runs and, when asked to, remembers; which commands there are and what becomes of their output is
//! the tree's business.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::atomic_file::{AtomicFile, FileMode};

/// Variables that differ from one call of make to the next and that no probe of a toolchain looks
/// at.
const VOLATILE: [&str; 9] =
    ["_", "OLDPWD", "SHLVL", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKE_TERMOUT", "MAKE_TERMERR", "KCONFIG_CONFIG"];

/// The shell that commands run in, with the whole environment and some variables more.
#[derive(Debug, Default)]
pub struct Shell {
    variables: Vec<(String, String)>,
    cache: Option<Cache>,
}

/// What a command printed on standard output and standard error.
type Printed = (Vec<u8>, Vec<u8>);

impl Shell {
    /// A shell in which these variables are set; of one that is named twice the last counts.
    #[must_use]
    pub fn new(variables: Vec<(String, String)>) -> Self {
        Self { variables, cache: None }
    }

    /// The same, but it remembers in this directory, across runs, what each command printed.
    ///
    /// An answer is taken again while the command line, the working directory, the environment and
    /// the identity (place, size, inode, time of change) of every program and file that the command
    /// line names are the same. What those in turn run or read is not looked at: who changes a
    /// compiler behind an unchanged driver has to remove the directory.
    #[must_use]
    pub fn remembering(self, directory: PathBuf) -> Self {
        let cache = Some(Cache::new(directory, &self.variables));
        Self { cache, ..self }
    }

    /// Runs a command line as `sh -c` does, or answers from memory. How the command ends does not
    /// matter.
    ///
    /// Of its standard output only the first `limit` bytes are taken, and then the pipe is closed;
    /// of its standard error the first mebibyte.
    ///
    /// # Errors
    /// When no shell can be started. A memory that cannot be read or written is none.
    pub fn run(&self, command: &OsStr, limit: usize) -> io::Result<Printed> {
        let Some(cache) = &self.cache else { return self.start(command, limit) };
        let path = cache.path_of(command, limit);
        if let Some(known) = fs_err::read(&path).ok().and_then(|bytes| decode(&bytes)) {
            return Ok(known);
        }
        let printed = self.start(command, limit)?;
        write(&path, &encode(&printed)).ok();
        Ok(printed)
    }

    #[expect(clippy::disallowed_methods, reason = "duct reads all that a command prints, and some never stop")]
    fn start(&self, command: &OsStr, limit: usize) -> io::Result<Printed> {
        // By its path, as the C tools: a search along PATH would make the standard library copy
        // this whole process for each command. Its own name is what it puts in front of its
        // complaints.
        let mut shell = Command::new("/bin/sh");
        shell.arg0("sh").arg("-c").arg(command).envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut child = shell.stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let errors = scope.spawn(move || errors.map_or(Ok(Vec::new()), |pipe| read_start(pipe, MOST_ERRORS, true)));
            let output = output.map_or(Ok(Vec::new()), |pipe| read_start(pipe, limit, false));
            child.wait()?;
            let errors = errors.join().unwrap_or_else(|_| Err(io::Error::other("reading its standard error failed")));
            Ok((output?, errors?))
        })
    }
}

/// What is kept of a command's standard error.
const MOST_ERRORS: usize = 1 << 20;

/// The first bytes that come through a pipe. What comes after them is read and dropped, or not read
/// at all: then the pipe is closed.
fn read_start(mut pipe: impl Read, limit: usize, drain: bool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.by_ref().take(limit as u64).read_to_end(&mut bytes)?;
    if drain {
        io::copy(&mut pipe, &mut io::sink())?;
    }
    Ok(bytes)
}

/// Answers by the digest of everything that they depend on.
#[derive(Debug)]
struct Cache {
    directory: PathBuf,
    /// The working directory and the environment, digested once.
    environment: Sha256,
    search_path: Option<OsString>,
    /// What each word turned out to be.
    identities: Mutex<HashMap<String, Vec<u8>>>,
}

impl Cache {
    fn new(directory: PathBuf, more: &[(String, String)]) -> Self {
        let mut environment = Sha256::new();
        add(&mut environment, std::env::current_dir().unwrap_or_default().as_os_str().as_bytes());
        let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        variables.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        variables.retain(|(name, _)| !VOLATILE.iter().any(|volatile| name == volatile));
        variables.sort();
        for (name, value) in variables {
            add(&mut environment, &name.into_vec());
            add(&mut environment, &value.into_vec());
        }
        let identities = Mutex::new(HashMap::new());
        Self { directory, environment, search_path: std::env::var_os("PATH"), identities }
    }

    /// Where the answer to a command is, if there is one.
    fn path_of(&self, command: &OsStr, limit: usize) -> PathBuf {
        let mut digest = self.environment.clone();
        add(&mut digest, &limit.to_le_bytes());
        add(&mut digest, command.as_bytes());
        let command = command.to_string_lossy();
        let words = command.split(|c: char| c.is_whitespace() || "\"'`;&|(){}<>$=,".contains(c));
        for word in words.filter(|word| !word.is_empty() && !word.starts_with('-')) {
            add(&mut digest, &self.identify(word));
        }
        let name = hex::encode(digest.finalize());
        self.directory.join(&name[..2]).join(&name[2..])
    }

    /// What a word names: a file by its path, a program by its name, or nothing.
    fn identify(&self, word: &str) -> Vec<u8> {
        let mut identities = self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = identities.get(word) {
            return known.clone();
        }
        let path = if word.contains('/') {
            Some(PathBuf::from(word))
        } else {
            which::which_in(word, self.search_path.as_ref(), ".").ok()
        };
        let identity = path.and_then(|path| stamp(&path)).unwrap_or_default();
        identities.insert(word.to_owned(), identity.clone());
        identity
    }
}

/// The identity of the file behind all links; none for directories, whose times change with every
/// file in them.
fn stamp(path: &Path) -> Option<Vec<u8>> {
    let path = path.canonicalize().ok()?;
    let metadata = fs_err::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
    let mut identity = path.into_os_string().into_vec();
    for number in [metadata.dev(), metadata.ino(), metadata.size()] {
        identity.extend(number.to_le_bytes());
    }
    for number in [metadata.ctime(), metadata.ctime_nsec(), metadata.mtime(), metadata.mtime_nsec()] {
        identity.extend(number.to_le_bytes());
    }
    Some(identity)
}

/// Adds a part so that no two lists of parts look the same.
fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update(part.len().to_le_bytes());
    digest.update(part);
}

/// The length of the first part in eight bytes, then both.
fn encode((stdout, stderr): &Printed) -> Vec<u8> {
    [&(stdout.len() as u64).to_le_bytes()[..], stdout, stderr].concat()
}

fn decode(bytes: &[u8]) -> Option<Printed> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (stdout, stderr) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((stdout.to_vec(), stderr.to_vec()))
}

/// Written atomically and private: the output of a probe may name private paths.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = AtomicFile::create(path, FileMode::Exact(0o600))?;
    file.write_all(bytes)?;
    file.commit_unsynced()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::Shell;

    const MOST: usize = 4095;

    fn count(directory: &std::path::Path) -> usize {
        fs_err::read_to_string(directory.join("count")).map_or(0, |text| text.len())
    }

    #[test]
    fn a_command_runs_again_when_what_it_names_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("probe");
        let command = format!("sh {}/probe; echo said >&2", directory.path().display());
        let counting = format!("printf x >> {}/count", directory.path().display());
        fs_err::write(&script, format!("{counting}; echo one")).unwrap();
        let memory = directory.path().join("memory");
        let run = || Shell::default().remembering(memory.clone()).run(command.as_ref(), MOST).unwrap();
        let one = (b"one\n".to_vec(), b"said\n".to_vec());
        assert_eq!(run(), one);
        assert_eq!((run(), count(directory.path())), (one, 1));
        fs_err::write(&script, format!("{counting}; echo other")).unwrap();
        assert_eq!((run().0, count(directory.path())), (b"other\n".to_vec(), 2));
        assert_eq!(Shell::default().run(command.as_ref(), MOST).unwrap().0, b"other\n");
        assert_eq!(count(directory.path()), 3);
    }

    #[test]
    fn a_damaged_memory_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let shell = Shell::default().remembering(directory.path().to_owned());
        shell.run("echo right".as_ref(), MOST).unwrap();
        let file = walk(directory.path()).pop().unwrap();
        fs_err::write(&file, [255; 9]).unwrap();
        assert_eq!(shell.run("echo right".as_ref(), MOST).unwrap().0, b"right\n");
        // No place to remember in is no reason to fail.
        let nowhere = Shell::default().remembering("/proc/nowhere".into());
        assert_eq!(nowhere.run("echo right".as_ref(), MOST).unwrap().0, b"right\n");
    }

    #[test]
    fn a_command_that_never_stops_is_cut_and_complains_as_sh() {
        assert_eq!(Shell::default().run("yes".as_ref(), 4).unwrap().0, b"y\ny\n");
        let complaint = Shell::default().run("/nowhere/command".as_ref(), MOST).unwrap().1;
        assert!(complaint.starts_with(b"sh: "), "{}", String::from_utf8_lossy(&complaint));
        let much = Shell::default().run("head -c 3000000 /dev/zero >&2; echo end".as_ref(), MOST).unwrap();
        assert_eq!((much.0, much.1.len()), (b"end\n".to_vec(), super::MOST_ERRORS));
    }

    fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
        let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
    }
}
