//! The simulated world that the fake tools share: hosts, the objects of an API server, and a script
//! of what goes wrong.
//!
//! It lies in `$HOME/fakes`, because `HOME` is one of the few variables that turnup hands to every
//! child. Each thing is a file of its own, so hundreds of fakes at once need no lock. It does not
//! use turnup's code: it is the other side of the wire.
#![allow(dead_code, clippy::allow_attributes, reason = "each fake uses the part that it needs")]

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

/// The directory of the world.
pub(crate) struct World {
    dir: PathBuf,
}

impl World {
    /// The world of this process.
    pub(crate) fn find() -> Self {
        Self { dir: PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join("fakes") }
    }

    /// A file or directory in it.
    pub(crate) fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.dir.join(rel)
    }

    /// Writes a file whole or not at all: readers may come at any time.
    pub(crate) fn write(&self, rel: impl AsRef<Path>, bytes: &[u8]) {
        let path = self.path(rel);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = path.with_file_name(format!(".{}-{name}", std::process::id()));
        // The directory is nearly always there already.
        if fs_err::write(&part, bytes).is_err() {
            drop(path.parent().map(fs_err::create_dir_all));
            drop(fs_err::write(&part, bytes));
        }
        drop(fs_err::rename(part, path));
    }

    /// A file's bytes.
    pub(crate) fn read(&self, rel: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs_err::read(self.path(rel)).ok()
    }

    /// A JSON file.
    pub(crate) fn json(&self, rel: impl AsRef<Path>) -> Option<Value> {
        serde_json::from_slice(&self.read(rel)?).ok()
    }

    /// The objects of one kind, in the order of their names.
    pub(crate) fn objects(&self, kind: &str) -> Vec<Value> {
        let entries = fs_err::read_dir(self.path("api").join(kind)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        paths.iter().filter_map(|path| serde_json::from_slice(&fs_err::read(path).ok()?).ok()).collect()
    }

    /// The fault that the script has for this call of this tool: the first entry whose words all
    /// occur in the call.
    pub(crate) fn trouble(&self, tool: &str, call: &str) -> Option<Trouble> {
        let script = self.json("script.json")?;
        for (index, entry) in script.as_array()?.iter().enumerate() {
            let words = entry["when"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let spared = entry["unless"].as_str().is_some_and(|word| call.contains(word));
            let meant = entry["tool"] == tool && !spared && words.clone().all(|word| call.contains(word));
            if meant && self.take(index, entry) {
                return Some(Trouble { entry: entry.clone() });
            }
        }
        None
    }

    /// Counts an entry down; without `times` it always applies.
    fn take(&self, index: usize, entry: &Value) -> bool {
        let Some(times) = entry["times"].as_u64() else { return true };
        let taken = |time: &u64| {
            let path = self.path(format!("taken/{index}-{time}"));
            drop(path.parent().map(fs_err::create_dir_all));
            fs_err::OpenOptions::new().write(true).create_new(true).open(path).is_ok()
        };
        (0..times).any(|time| taken(&time))
    }
}

/// One entry of the script: what a tool does in place of its work.
pub(crate) struct Trouble {
    entry: Value,
}

impl Trouble {
    /// How much of standard input is read before the tool exits.
    pub(crate) fn read_first(&self) {
        let bytes = self.entry["read"].as_u64().unwrap_or(0);
        drop(io::copy(&mut io::stdin().take(bytes), &mut io::sink()));
    }

    /// Waits, prints and exits as the script says; returns `None` if the work continues after the
    /// wait.
    pub(crate) fn play(&self) -> Option<ExitCode> {
        self.read_first();
        std::thread::sleep(Duration::from_millis(self.entry["sleep_ms"].as_u64().unwrap_or(0)));
        say(self.entry["stdout"].as_str().unwrap_or_default());
        complain(self.entry["stderr"].as_str().unwrap_or_default());
        if let Some(signal) = self.entry["signal"].as_str() {
            let signal = if signal == "KILL" { rustix::process::Signal::KILL } else { rustix::process::Signal::ABORT };
            let _gone = rustix::process::kill_process(rustix::process::getpid(), signal);
            std::thread::sleep(Duration::from_secs(1));
        }
        let code = self.entry["exit"].as_u64()?;
        Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}

/// Writes to standard output; a closed pipe is ignored.
pub(crate) fn say(text: &str) {
    drop(io::stdout().write_all(text.as_bytes()));
}

/// Writes to standard error.
pub(crate) fn complain(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Prints a line on standard error and exits.
pub(crate) fn fail(line: &str, code: u8) -> ExitCode {
    complain(&format!("{line}\n"));
    ExitCode::from(code)
}
