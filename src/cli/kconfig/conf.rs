//! `turnup kconfig conf`: the program that a kernel's Makefile calls as `scripts/kconfig/conf`.
//!
//! Only the outside is here: files, terminal, clock. What is done with them is the crate's.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use kconfig::conf::{Entry, Outside};
use kconfig::{Dialect, Env, Messages, text};

use super::place::{Here, os, parse_dialect, shell, variable};

/// The command line of the C tool, which clap must not read: it is taken as `getopt_long` takes it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// [-s] MODE Kconfig, as Linux's scripts/kconfig/conf takes them; --help tells the modes
    ///
    /// The environment is that of the C tool. Two variables are ours: `KCONFIG_DIALECT` names whose
    /// rules count where the tree does not say so itself, as does --dialect NAME (see turnup
    /// kconfig dialect), and `KCONFIG_SHELL_CACHE` names a directory in which the outputs of
    /// $(shell) are remembered across runs.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

impl Args {
    /// The words as they are.
    pub(super) fn new(arguments: Vec<OsString>) -> Self {
        Self { arguments }
    }
}

/// Runs it; as a stand-in for the C tool, with its exit codes.
pub(super) fn run(args: Args) -> ExitCode {
    let terminal = Terminal;
    // Names of files may hold bytes that are not UTF-8.
    let arguments: Vec<String> = args.arguments.into_iter().map(|word| text::from_bytes(word.into_vec())).collect();
    let (dialect, arguments) = match take_dialect(&arguments) {
        Ok(taken) => taken,
        Err(refusal) => {
            complain(format!("conf: {refusal}\n").as_bytes());
            return ExitCode::from(1);
        }
    };
    let env = Env::new(variable).with_shell(shell(Vec::new())).with_messages(&terminal);
    let env = match dialect {
        Some(dialect) => env.with_dialect(dialect),
        None => env.with_detection(),
    };
    ExitCode::from(kconfig::conf::run("conf", &arguments, &Here, &env, &mut Terminal))
}

/// The variable that names whose rules count, for makefiles that call this program as their own
/// `conf`.
const DIALECT: &str = "KCONFIG_DIALECT";

/// Takes `--dialect NAME` out of a command line, which is otherwise that of the C tool; without it
/// the variable counts.
fn take_dialect(arguments: &[String]) -> Result<(Option<Dialect>, Vec<String>), String> {
    let (mut named, mut rest) = (variable(DIALECT).filter(|name| !name.is_empty()), Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--dialect") {
            Some("") => named = Some(words.next().ok_or("option '--dialect' requires an argument")?.clone()),
            Some(name) if name.starts_with('=') => named = Some(name[1..].to_owned()),
            _ => rest.push(word.clone()),
        }
        if word == "--" {
            rest.extend(words.by_ref().cloned());
        }
    }
    let dialect = named.as_deref().map(parse_dialect).transpose()?;
    Ok((dialect, rest))
}

/// The process around us.
struct Terminal;

impl Messages for Terminal {
    fn info(&self, text: &str) {
        print(&text::to_bytes(&format!("{text}\n")));
    }

    fn warning(&self, path: &str, line: u32, text: &str) {
        complain(&text::to_bytes(&format!("{path}:{line}: {text}\n")));
    }

    fn pass(&self, stderr: &[u8]) {
        complain(stderr);
    }
}

impl Outside for Terminal {
    fn variable(&self, name: &str) -> Option<String> {
        variable(name)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs_err::read(os(path))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        fs_err::write(os(path), bytes)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs_err::rename(os(from), os(to))
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        fs_err::remove_file(os(path))
    }

    fn create_directory(&mut self, path: &str) -> io::Result<()> {
        fs_err::create_dir(os(path))
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let path = PathBuf::from(os(path));
        match (path.is_dir(), path.exists()) {
            (true, _) => Some(Entry::Directory),
            (false, true) => Some(Entry::File),
            (false, false) => None,
        }
    }

    fn out(&mut self, bytes: &[u8]) {
        print(bytes);
    }

    fn err(&mut self, bytes: &[u8]) {
        complain(bytes);
    }

    fn read_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        match io::BufRead::read_until(&mut io::stdin().lock(), b'\n', &mut line) {
            Ok(1..) => Some(line),
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
fn print(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).ok();
}

fn complain(bytes: &[u8]) {
    io::stderr().lock().write_all(bytes).ok();
}
