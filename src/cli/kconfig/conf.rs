//! `turnup kconfig conf`: the program that a kernel's Makefile calls as `scripts/kconfig/conf`.
//!
//! Only the outside is here: files, terminal, clock. What is done with them is the crate's.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use kconfig::conf::{Entry, Outside};
use kconfig::{Dialect, Env, Messages};

use super::place::{Here, shell};

/// The command line of the C tool, which clap must not read: it is taken as `getopt_long` takes it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// [-s] MODE Kconfig, as Linux's scripts/kconfig/conf takes them; --help tells the modes
    ///
    /// The environment is that of the C tool. One variable is ours: `KCONFIG_SHELL_CACHE` names a directory in which the outputs of
    /// $(shell) are remembered across runs.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Runs it; as a stand-in for the C tool, with its exit codes.
pub(super) fn run(args: &Args) -> ExitCode {
    let terminal = Terminal;
    let dialect = std::env::var("KERNELVERSION").ok().and_then(|version| Dialect::parse(&version));
    let env = Env::new(|name| std::env::var(name).ok())
        .with_dialect(dialect.unwrap_or(Dialect::LATEST))
        .with_shell(shell(Vec::new()))
        .with_messages(&terminal);
    ExitCode::from(kconfig::conf::run("conf", &args.arguments, &Here::default(), &env, &mut Terminal))
}

/// The process around us.
struct Terminal;

impl Messages for Terminal {
    fn info(&self, text: &str) {
        print(&format!("{text}\n"));
    }

    fn warning(&self, path: &str, line: u32, text: &str) {
        complain(format!("{path}:{line}: {text}\n").as_bytes());
    }

    fn pass(&self, stderr: &[u8]) {
        complain(stderr);
    }
}

impl Outside for Terminal {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs_err::read(path)
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        fs_err::write(path, bytes)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs_err::rename(from, to)
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        fs_err::remove_file(path)
    }

    fn create_directory(&mut self, path: &str) -> io::Result<()> {
        fs_err::create_dir(path)
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let path = Path::new(path);
        match (path.is_dir(), path.exists()) {
            (true, _) => Some(Entry::Directory),
            (false, true) => Some(Entry::File),
            (false, false) => None,
        }
    }

    fn out(&mut self, text: &str) {
        print(text);
    }

    fn err(&mut self, text: &str) {
        complain(text.as_bytes());
    }

    fn read_line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match io::BufRead::read_until(&mut io::stdin().lock(), b'\n', &mut line) {
            Ok(1..) => Some(String::from_utf8_lossy(&line).into_owned()),
            _ => None,
        }
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

    #[expect(
        clippy::disallowed_methods,
        reason = "the tree need not be taken apart, piece by piece, by a process that ends"
    )]
    fn end(&mut self, code: u8) {
        std::process::exit(code.into())
    }
}

/// A reader that has gone away has seen what it wanted, as for the C tool.
fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}

fn complain(text: &[u8]) {
    io::stderr().lock().write_all(text).ok();
}
