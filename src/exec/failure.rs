//! The ways in which a run can end badly, kept apart, and the error that the user sees for each.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Class, Error};

/// How many lines of standard error an error shows.
const EVIDENCE_LINES: usize = 12;

/// What is known about a run that ended badly.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What the run is called: its label, else the program's name.
    pub name: String,
    /// The command line as the user would type it, secrets masked.
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
        /// What was to be run.
        ended: Box<Ended>,
    },
    /// The program ended with this code.
    Exited {
        /// The exit code; never 0.
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
    /// The program ran longer than allowed and was ended.
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

    /// What standard error said last.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.ended().stderr
    }

    /// How the engine should take it, as far as one can tell without knowing the program.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::NotStarted { .. } => Class::Precondition,
            Self::Exited { .. } | Self::Signalled { .. } => Class::Permanent,
            Self::TimedOut { .. } => Class::Transient,
            Self::Interrupted { .. } => Class::Interrupted,
        }
    }

    /// The error of another turnup as it told it itself; where it told none, that it failed.
    #[must_use]
    pub fn relay(self) -> Error {
        // A plain failure of any other program may look the same; only the classes beyond it are
        // turnup's alone.
        self.relay_if(|class| !matches!(class, Class::Permanent | Class::Usage))
    }

    /// Whether it looks like the error of another turnup.
    #[must_use]
    pub(super) fn is_told(&self) -> bool {
        self.code().is_some_and(|code| Error::from_rendered(code, self.stderr()).is_some())
    }

    /// The same for a program that is turnup for sure: its plain failures as well.
    #[must_use]
    pub(super) fn relay_all(self) -> Error {
        self.relay_if(|_| true)
    }

    fn relay_if(self, is_turnups: impl Fn(Class) -> bool) -> Error {
        let told = self.code().and_then(|code| Error::from_rendered(code, self.stderr()));
        match told.filter(|error| is_turnups(error.class())) {
            Some(error) => match &self.ended().log {
                Some(log) => error.evidence(format!("log: {}", log.display())),
                None => error,
            },
            None => self.into(),
        }
    }

    /// The error that the user sees, with a class that the caller knows better.
    #[must_use]
    pub fn into_error(self, class: Class) -> Error {
        let ended = self.ended();
        let mut error = Error::new(class, self.to_string()).evidence(format!("$ {}", ended.command));
        let said = if ended.stderr.trim().is_empty() { &ended.stdout } else { &ended.stderr };
        for line in last_lines(said) {
            error = error.evidence(line);
        }
        if let Some(log) = &ended.log {
            error = error.evidence(format!("log: {}", log.display()));
        }
        if matches!(self, Self::Signalled { signal: 9, .. }) {
            error = error.hint("look whether the machine ran out of memory (dmesg), then run the same command again");
        }
        error
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.ended().name;
        match self {
            Self::NotStarted { why, .. } => write!(f, "`{name}` could not be started: {why}"),
            Self::Exited { code, .. } => write!(f, "`{name}` failed with exit code {code}"),
            Self::Signalled { signal, .. } => write!(f, "`{name}` was ended by {}", signal_name(*signal)),
            Self::TimedOut { limit, .. } => write!(f, "`{name}` did not end within {limit:.0?} and was stopped"),
            Self::Interrupted { .. } => write!(f, "`{name}` was stopped because turnup was asked to stop"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let class = failure.class();
        failure.into_error(class)
    }
}

fn last_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(EVIDENCE_LINES)..].to_vec()
}

fn signal_name(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".into(),
        2 => "SIGINT".into(),
        3 => "SIGQUIT".into(),
        4 => "SIGILL".into(),
        6 => "SIGABRT".into(),
        7 => "SIGBUS".into(),
        8 => "SIGFPE".into(),
        9 => "SIGKILL".into(),
        11 => "SIGSEGV".into(),
        13 => "SIGPIPE".into(),
        15 => "SIGTERM".into(),
        other => format!("signal {other}"),
    }
}
