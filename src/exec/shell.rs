//! Commands of Kconfig trees: the one place where a shell is wanted.

use std::io;

/// Runs a command line as `sh -c` does, with the whole environment; its standard output and standard error. How it ended does not matter.
pub fn shell(command: &str) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let output = duct::cmd!("sh", "-c", command).stdout_capture().stderr_capture().unchecked().run()?;
    Ok((output.stdout, output.stderr))
}
