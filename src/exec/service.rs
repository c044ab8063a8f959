//! A program that runs beside the work until it is stopped: the master of a multiplexed connection,
//! a port forward.

use std::io::PipeWriter;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use duct::Handle;
use rustix::process::Signal;

use super::failure::Failure;
use super::run::{Run, Short};
use super::signals;
use crate::failpoint;

/// How long it may take to end once asked.
const STOP: Duration = Duration::from_secs(2);

/// A program running in the background; dropped, it is stopped.
#[derive(Debug)]
pub struct Service {
    handle: Handle,
    group: u32,
    said: std::fs::File,
    run: Run,
    start: Instant,
    /// The only writing end of its standard input: gone with us, however we go.
    _held: PipeWriter,
}

impl Service {
    /// Starts it. Its output is kept and shown only when it fails. Its standard input stays open
    /// and empty for as long as we live: who reads it knows when to end, even if we were killed
    /// before the kernel was told what to do about that.
    pub fn start(run: Run) -> Result<Self, Failure> {
        let start = Instant::now();
        let not_started = |why: std::io::Error| Failure::NotStarted {
            why: why.to_string(),
            ended: run.ended(start, "", String::new()),
        };
        let (reader, held) = std::io::pipe().map_err(not_started)?;
        let said = tempfile::tempfile().map_err(not_started)?;
        let keep = said.try_clone().map_err(not_started)?;
        let expression = run.clone().stdin_open(reader).expression().map_err(not_started)?;
        let expression = expression.stderr_to_stdout().stdout_file(said);
        let handle = failpoint::around(format_args!("run {}", Short(&run)), || run.spawn(expression));
        let handle = handle.map_err(not_started)?;
        let Some(handle) = handle else {
            return Err(Failure::Interrupted { ended: run.ended(start, "", String::new()) });
        };
        let group = handle.pids().first().copied().unwrap_or_default();
        Ok(Self { handle, group, said: keep, run, start, _held: held })
    }

    /// Whether it still runs; the reason when it has ended. A service never ends well by itself.
    pub fn check(&self) -> Result<(), Failure> {
        let Ok(Some(output)) = self.handle.try_wait() else { return Ok(()) };
        signals::unregister(self.group);
        let ended = self.run.ended(self.start, "", self.said());
        Err(match output.status.code() {
            Some(code) => Failure::Exited { code, ended },
            None => Failure::Signalled { signal: 0, ended },
        })
    }

    /// What it has said so far, the last part of it.
    #[must_use]
    pub fn said(&self) -> String {
        let mut bytes = vec![0; 16 << 10];
        let size = self.said.metadata().map_or(0, |metadata| metadata.len());
        let offset = size.saturating_sub(bytes.len() as u64);
        let count = self.said.read_at(&mut bytes, offset).unwrap_or_default();
        let mut text = String::new();
        // Lossy by intention: this is for display.
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        self.run.mask.apply(&text)
    }

    /// Asks it to end, then kills it.
    pub fn stop(&self) {
        if self.check().is_err() {
            return;
        }
        signals::send(self.group, Signal::TERM);
        if !matches!(self.handle.wait_timeout(STOP), Ok(Some(_))) {
            signals::send(self.group, Signal::KILL);
            drop(self.handle.wait());
        }
        signals::unregister(self.group);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}
