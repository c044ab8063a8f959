//! Where the files of a tree are, and the shell of its macros: what all tools of `turnup kconfig` hand to the crate.

use std::cell::RefCell;
use std::io::{self, Read as _};
use std::sync::Arc;

use kconfig::{Files, Output, Shell};

use crate::exec;

/// More than nearly every file has.
const BUFFER: usize = 1 << 16;

/// Files of the working directory.
#[derive(Debug, Default)]
pub(super) struct Here {
    /// One buffer for all files: a tree has thousands of small ones.
    buffer: RefCell<Vec<u8>>,
}

impl Files for Here {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut buffer = self.buffer.borrow_mut();
        buffer.resize(BUFFER, 0);
        let (mut file, mut bytes) = (fs_err::File::open(path)?, Vec::new());
        // Reading a file whole would first ask the system twice for its size and once for its position.
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(bytes),
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = fs_err::read_dir(if directory.is_empty() { "." } else { directory })?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// The variable that names a directory in which the outputs of `$(shell)` are remembered across runs.
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
    fn run(&self, command: &str) -> io::Result<Output> {
        let (stdout, stderr) = self.0.run(command)?;
        Ok(Output { stdout, stderr })
    }
}
