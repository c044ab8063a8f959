//! The only way to standard output and standard error: results, remarks, the last error. Colours
//! obey pipes and `NO_COLOR`.
//!
//! Whatever is printed may be the words of a host or another program: its control characters are
//! escaped here.

use std::io::{ErrorKind, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use owo_colors::OwoColorize as _;

use super::OutputFormat;
use crate::error::{Class, Error, Result};
use crate::terminal;

/// Writes for the caller, a user or a program.
#[derive(Clone, Debug)]
pub struct Printer {
    output: OutputFormat,
    quiet: bool,
    /// Whether a result was printed as JSON.
    has_result: Arc<AtomicBool>,
}

impl Printer {
    /// A printer for these global options.
    #[must_use]
    pub fn new(output: OutputFormat, quiet: bool) -> Self {
        Self { output, quiet, has_result: Arc::default() }
    }

    /// Whether results are JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.output == OutputFormat::Json
    }

    /// Whether remarks are not wanted.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// One or more lines of the result, on standard output.
    pub fn line(&self, text: &str) -> Result<()> {
        written(writeln!(anstream::stdout().lock(), "{}", terminal::lines(text)))
    }

    /// The same from a renderer with colours of its own.
    pub fn coloured(&self, text: &str) -> Result<()> {
        written(writeln!(anstream::stdout().lock(), "{}", terminal::coloured(text)))
    }

    /// The result as JSON on one line, on standard output.
    pub fn json(&self, value: &serde_json::Value) -> Result<()> {
        self.json_text(&value.to_string())
    }

    /// The same for text that is JSON already.
    pub fn json_text(&self, text: &str) -> Result<()> {
        self.has_result.store(true, Ordering::Relaxed);
        written(writeln!(anstream::stdout().lock(), "{}", terminal::json(text)))
    }

    /// Information besides the result, on standard error; silent with `--quiet`.
    pub fn remark(&self, text: &str) {
        if !self.quiet {
            // Without standard error there is no other place to report to.
            writeln!(anstream::stderr().lock(), "{}", terminal::lines(text)).ok();
        }
    }

    /// The same from a renderer with colours of its own.
    pub fn coloured_remark(&self, text: &str) {
        if !self.quiet {
            writeln!(anstream::stderr().lock(), "{}", terminal::coloured(text)).ok();
        }
    }

    /// Asks the user; an error when stdin is not a terminal, with the command that does not ask.
    pub fn confirm(&self, question: &str, without: &str) -> Result<bool> {
        let answer = self.ask(&format!("{question} [y/N] "), without)?;
        Ok(matches!(answer.as_str(), "y" | "Y" | "yes"))
    }

    /// The same for an answer in words, without blanks around it.
    pub fn ask(&self, question: &str, without: &str) -> Result<String> {
        if !std::io::stdin().is_terminal() {
            return Err(Error::usage("confirmation required, but stdin is not a terminal").hint(without));
        }
        write!(anstream::stderr().lock(), "{}", terminal::lines(question)).ok();
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// The error that ends the command, on standard error. With JSON it also is the result, unless
    /// there is one that says it.
    pub fn error(&self, error: &Error) {
        if self.is_json() && !self.has_result.load(Ordering::Relaxed) {
            let document = serde_json::to_string(&error.document()).unwrap_or_default();
            // A closed standard output leaves standard error.
            self.json_text(&document).ok();
        }
        let text = error.render();
        let coloured = match text.strip_prefix("error:") {
            Some(rest) => format!("{}{rest}", "error:".red().bold()),
            None => text,
        };
        writeln!(anstream::stderr().lock(), "{coloured}").ok();
    }
}

/// A reader that has gone away is no failure: it has seen what it wanted.
fn written(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(Class::Permanent, "cannot write to standard output").source(error))
        }
        _ => Ok(()),
    }
}
