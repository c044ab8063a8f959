//! One run of one program: how it is described, how it ends.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which of the two pipes a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What happens to the child when turnup itself is killed with a signal that cannot be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeath {
    /// The kernel kills the child too. Right for everything that can be repeated.
    Kill,
    /// The kernel asks the child to end, and its output goes to a file and not to a pipe, so that it can still finish writing.
    /// Right for terraform: killed in the middle it loses state, and a broken pipe would kill it as well.
    Terminate,
    /// Nothing: the child is meant to stay.
    Nothing,
}

/// A description of one run of one program.
#[must_use = "nothing runs before `output`, `stream` or `succeed`"]
#[derive(Clone)]
pub struct Run {
    program: OsString,
    args: Vec<OsString>,
    dir: Option<PathBuf>,
}

/// How a run ended that was successful.
#[derive(Clone, Debug)]
pub struct Output {
    /// All of standard output.
    pub stdout: String,
    /// The last lines of standard error.
    pub stderr: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// What is known about a run that ended badly.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The command line as a person would type it, secrets masked.
    pub command: String,
    /// Standard output so far.
    pub stdout: String,
    /// The last lines of standard error, secrets masked.
    pub stderr: String,
    /// The log file, when there is one.
    pub log: Option<PathBuf>,
    /// How long it ran.
    pub elapsed: Duration,
}

/// Why a run was not successful.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The program is missing or cannot be executed.
    NotStarted {
        /// Why.
        why: String,
        /// The command.
        ended: Box<Ended>,
    },
    /// The program ended with this code.
    Exited {
        /// The exit code.
        code: i32,
        /// The rest.
        ended: Box<Ended>,
    },
    /// The program was ended by this signal, and not by us.
    Signalled {
        /// The signal's number.
        signal: i32,
        /// The rest.
        ended: Box<Ended>,
    },
    /// The program ran longer than allowed and was killed.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The rest.
        ended: Box<Ended>,
    },
    /// A signal stopped turnup, and with it the program.
    Interrupted {
        /// The rest.
        ended: Box<Ended>,
    },
}

impl Run {
    /// A run of this program: a name on PATH, or a path.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: Vec::new(), dir: None }
    }
    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }
    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
    /// The working directory. Required.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }
    /// One more environment variable on top of the allow-list. Never a secret: the environment of a process is no secret place.
    pub fn env(self, _name: impl Into<OsString>, _value: impl Into<OsString>) -> Self {
        self
    }
    /// Bytes for standard input (which is empty otherwise).
    pub fn stdin(self, _bytes: impl Into<Vec<u8>>) -> Self {
        self
    }
    /// A file for standard input.
    pub fn stdin_file(self, _path: impl Into<PathBuf>) -> Self {
        self
    }
    /// A text that must not appear in any log or error.
    pub fn secret(self, _secret: &str) -> Self {
        self
    }
    /// Appends the command line and every line of output to this file.
    pub fn log(self, _path: impl Into<PathBuf>) -> Self {
        self
    }
    /// Kills the program after this time.
    pub fn timeout(self, _limit: Duration) -> Self {
        self
    }
    /// How long the program may take to end after a signal before it is killed; 60 s by default.
    pub fn grace(self, _grace: Duration) -> Self {
        self
    }
    /// What the error calls this run, in place of the program's name: "terraform apply".
    pub fn label(self, _label: impl Into<String>) -> Self {
        self
    }
    /// What happens to the child when turnup is killed.
    pub fn on_death(self, _what: OnDeath) -> Self {
        self
    }
    /// This run cleans up: it starts even after a signal has asked turnup to stop.
    pub fn cleanup(self) -> Self {
        self
    }
    /// Runs it and keeps the output.
    pub fn output(self) -> Result<Output, Failure> {
        self.stream(|_, _| {})
    }
    /// Runs it and hands every line over as it comes.
    pub fn stream(self, _on_line: impl FnMut(Stream, &str)) -> Result<Output, Failure> {
        Ok(Output { stdout: String::new(), stderr: String::new(), elapsed: Duration::ZERO })
    }
    /// Runs it; a failure becomes an error with the last lines of standard error as evidence.
    pub fn succeed(self) -> crate::Result<Output> {
        self.output().map_err(crate::Error::from)
    }
}

impl Failure {
    /// What is known about the run.
    #[must_use]
    pub fn ended(&self) -> &Ended {
        match self {
            Self::NotStarted { ended, .. }
            | Self::Exited { ended, .. }
            | Self::Signalled { ended, .. }
            | Self::TimedOut { ended, .. }
            | Self::Interrupted { ended } => ended,
        }
    }
    /// The exit code, when the program ended by itself.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Exited { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<Failure> for crate::Error {
    fn from(failure: Failure) -> Self {
        Self::permanent(failure.ended().command.clone())
    }
}
