//! A program that stands in for `scripts/kconfig/conf`: the crate does the work, and this file
//! hands it the process around it.
//!
//! `cargo run --example conf -- --olddefconfig Kconfig`, with `srctree` and the other variables
//! that kbuild exports.

#![expect(
    clippy::disallowed_methods,
    reason = "an example does without the crates of turnup, and starts its own processes"
)]

use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kconfig::conf::{Entry, Outside, run};
use kconfig::{Dialect, Env, Files, Messages, Output, Shell, text};

/// Files of the working directory; names that are not UTF-8 are left to programs that care.
struct Here;

impl Files for Here {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(if directory.is_empty() { "." } else { directory })?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// `sh -c`
struct Sh;

impl Shell for Sh {
    fn run(&self, command: &str, limit: usize) -> io::Result<Output> {
        let mut shell = Command::new("/bin/sh");
        // The shell puts its name in front of what it complains about.
        let shell = shell.arg0("sh").arg("-c").arg(command).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = shell.spawn()?;
        let mut stdout = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            pipe.take(limit as u64).read_to_end(&mut stdout)?;
        }
        child.wait()?;
        Ok(Output { stdout, stderr: Vec::new() })
    }
}

/// The process.
struct Process;

fn write(mut to: impl io::Write, bytes: &[u8]) {
    // A reader that has gone away has seen what it wanted.
    to.write_all(bytes).and_then(|()| to.flush()).ok();
}

impl Messages for Process {
    fn info(&self, line: &str) {
        write(io::stdout(), &text::to_bytes(&format!("{line}\n")));
    }

    fn warning(&self, path: &str, line: u32, warning: &str) {
        write(io::stderr(), &text::to_bytes(&format!("{path}:{line}: {warning}\n")));
    }

    fn pass(&self, stderr: &[u8]) {
        write(io::stderr(), stderr);
    }
}

impl Outside for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        std::fs::write(path, bytes)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_directory(&mut self, path: &str) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(if metadata.is_dir() { Entry::Directory } else { Entry::File })
    }

    fn out(&mut self, bytes: &[u8]) {
        write(io::stdout(), bytes);
    }

    fn err(&mut self, bytes: &[u8]) {
        write(io::stderr(), bytes);
    }

    fn read_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        io::BufRead::read_until(&mut io::stdin().lock(), b'\n', &mut line).ok()?;
        (!line.is_empty()).then_some(line)
    }

    fn is_terminal(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    fn now(&self) -> (u64, u32) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now.as_secs(), now.subsec_micros())
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn end(&mut self, code: u8) {
        std::process::exit(code.into())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let messages = Process;
    let env = Env::new(|name| std::env::var(name).ok()).with_shell(Arc::new(Sh)).with_messages(&messages);
    // KCONFIG_DIALECT names the rules as in `turnup kconfig conf`.
    let env = match std::env::var("KCONFIG_DIALECT").ok().as_deref().and_then(Dialect::parse) {
        Some(dialect) => env.with_dialect(dialect),
        None => env.with_detection(),
    };
    ExitCode::from(run("conf", &arguments, &Here, &env, &mut Process))
}
