//! Where the files of a tree are, and the shell of its macros: what all tools of `turnup kconfig`
//! hand to the crate.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use kconfig::dialect::Family;
use kconfig::{Dialect, Files, Output, Shell, text};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::exec;

/// More than nearly every file has.
const ROOM: usize = 1 << 16;

/// Files of the working directory.
#[derive(Debug, Default)]
pub(super) struct Here;

impl Files for Here {
    /// A tree has thousands of small files, half of which are looked for in two places: there is
    /// neither a question about their sizes nor a copy of what they hold.
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = rustix::fs::open(&*text::to_bytes(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::new();
        loop {
            if bytes.len() == bytes.capacity() {
                bytes.reserve(ROOM);
            }
            match rustix::io::read(&file, spare_capacity(&mut bytes)) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = fs_err::read_dir(os(if directory.is_empty() { "." } else { directory }))?;
        entries.map(|entry| Ok(text::from_bytes(entry?.file_name().into_vec()))).collect()
    }
}

/// Whose rules count, by a name and perhaps a version.
pub(super) fn parse_dialect(text: &str) -> Result<Dialect, String> {
    let names: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
    Dialect::parse(text).ok_or_else(|| {
        let near = kconfig::suggest(text, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!(
            "`{text}` is no dialect: expected {}, each with a version or without, as in linux-6.1{hint}",
            names.join(", ")
        )
    })
}

/// A path or a command as the system has it: texts of trees may hold bytes that are not UTF-8.
pub(super) fn os(text: &str) -> OsString {
    OsString::from_vec(text::to_bytes(text).into_owned())
}

/// A variable of the environment.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var_os(os(name)).map(|value| text::from_bytes(value.into_vec()))
}

/// The variable that names a directory in which the outputs of `$(shell)` are remembered across
/// runs.
const CACHE: &str = "KCONFIG_SHELL_CACHE";

/// The system's shell, in which these variables are set besides those of the environment.
pub(super) fn shell(variables: Vec<(String, String)>) -> Arc<dyn Shell> {
    let shell = exec::Shell::new(variables);
    Arc::new(Sh(match std::env::var_os(CACHE).filter(|directory| !directory.is_empty()) {
        Some(directory) => shell.remembering(directory.into()),
        None => shell,
    }))
}

struct Sh(exec::Shell);

impl Shell for Sh {
    fn run(&self, command: &str, limit: usize) -> io::Result<Output> {
        let (stdout, stderr) = self.0.run(&os(command), limit)?;
        Ok(Output { stdout, stderr })
    }
}
