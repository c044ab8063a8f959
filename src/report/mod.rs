//! Consumers of events: plain lines, JSON lines, progress bars, and the table at the end.
//!
//! They read events and nothing else; they never decide, and a terminal that goes away stops no work. All text goes through anstream, so
//! `NO_COLOR` and pipes are obeyed.

mod bars;
mod json;
mod lines;
mod summary;
mod table;

use std::io::IsTerminal as _;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::phase::{Event, SCHEMA, Sink, What};

pub use table::Table;

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
    pub fn detect(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if json {
            Self::Json
        } else if std::io::stderr().is_terminal() && !dumb {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}

/// One way to show events.
trait Show {
    fn show(&mut self, event: &Event);
    /// Called once after the last event, with the text of the table of times.
    fn close(&mut self, table: &str);
}

/// A running reporter.
#[derive(Debug)]
pub struct Reporter {
    sink: Sink,
    start: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// Starts the thread that shows events, and emits the first one.
    #[must_use]
    pub fn start(mode: Mode, command: &str, cluster: &str) -> Self {
        let (sink, events) = Sink::channel();
        sink.emit(What::RunStarted {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            cluster: cluster.into(),
            at: jiff::Timestamp::now(),
        });
        // Without the thread the run goes on unseen, which is better than not at all.
        let thread = thread::Builder::new().name("report".into()).spawn(move || consume(mode, &events)).ok();
        Self { sink, start: Instant::now(), thread }
    }

    /// Where to send events.
    #[must_use]
    pub fn sink(&self) -> Sink {
        self.sink.clone()
    }

    /// Emits the last event, shows the table of times and waits until all of it is shown. Nothing sent later is shown.
    pub fn finish(self, ok: bool) {
        self.sink.emit(What::RunDone { ok, elapsed_seconds: self.start.elapsed().as_secs_f64() });
        drop(self.sink);
        if let Some(thread) = self.thread {
            // A reporter that panicked has said so on standard error already.
            drop(thread.join());
        }
    }
}

fn consume(mode: Mode, events: &Receiver<Event>) {
    let mut show: Box<dyn Show> = match mode {
        Mode::Bars => Box::new(bars::Bars::new()),
        Mode::Lines => Box::new(lines::Lines::new(Box::new(anstream::stderr()))),
        Mode::Json => Box::new(json::Json::new(Box::new(anstream::stdout()))),
        Mode::Quiet => Box::new(Silence),
    };
    let mut summary = summary::Times::default();
    for event in events {
        summary.note(&event);
        show.show(&event);
        if matches!(event.event, What::RunDone { .. }) {
            break;
        }
    }
    show.close(&summary.render());
}

struct Silence;

impl Show for Silence {
    fn show(&mut self, _event: &Event) {}
    fn close(&mut self, _table: &str) {}
}

/// Seconds as a person reads them: `0.4s`, `12.3s`, `3m05s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{seconds:.1}s");
    }
    // Rounded first: 119.7 s are 2m00s and not 1m60s.
    let whole = format!("{seconds:.0}").parse::<u64>().unwrap_or_default();
    format!("{}m{:02}s", whole / 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_well() {
        let shown: Vec<String> = [0.04, 12.34, 59.94, 59.96, 119.7, 3725.0].into_iter().map(duration).collect();
        assert_eq!(shown, ["0.0s", "12.3s", "59.9s", "1m00s", "2m00s", "62m05s"]);
    }
}
