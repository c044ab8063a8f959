//! Starts a program that is meant to outlive turnup: the machines of the local target. Nothing else
//! may be started this way.

use std::ffi::OsString;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::error::{Context as _, Result};
use crate::failpoint;

/// Starts the program in a session of its own, standard input empty, all output appended to `log`,
/// and returns at once.
///
/// It inherits the cgroups of this process, and nothing of its terminal or its process group.
pub fn detach(program: &str, args: &[OsString], env: &[(&str, &str)], log: &Path) -> Result<()> {
    let file = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let mut words: Vec<OsString> = vec!["--fork".into(), program.into()];
    words.extend(args.iter().cloned());
    // duct applies the last word first: standard error follows standard output only when it is
    // named before it.
    let mut expression =
        duct::cmd("setsid", words).stdin_null().stderr_to_stdout().stdout_file(file.into_file()).dir("/");
    for (name, value) in env {
        expression = expression.env(name, value);
    }
    failpoint::around(format_args!("start {program}"), || expression.run())
        .context(format!("cannot start {program}"))?;
    Ok(())
}
