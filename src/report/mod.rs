//! Consumers of events: plain lines, JSON lines, progress bars, and the table at the end.
//!
//! They read events and nothing else, those of earlier runs among them; they never decide, and a
//! terminal that goes away stops no work. All text goes through anstream, so `NO_COLOR` and pipes
//! are obeyed. Where events are kept is the affair of `state`.
//!
//! What a host or another program said in an event is escaped in one place (`shown`) before
//! anything here makes a line of it.

mod bars;
mod critical_path;
mod history;
mod json;
mod lines;
mod replay;
mod show;
mod summary;
mod table;
mod timeline;

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::phase::{Event, PathPart, SCHEMA, Sink, What};
use crate::state::EventFile;
use crate::{Error, Result};

use history::RunHistory;
use show::{Show, shown};
use timeline::Timeline;

pub use replay::{RecordedRun, Replay};
pub use show::duration;
pub use table::Table;

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayMode {
    /// Progress bars on standard error; for a terminal.
    Bars,
    /// Lines on standard error.
    Lines,
    /// One JSON object a line on standard output.
    Json,
    /// Nothing.
    Quiet,
}

impl DisplayMode {
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

/// A running reporter.
#[derive(Debug)]
pub struct Reporter {
    sink: Sink,
    start: Instant,
    thread: Option<JoinHandle<Vec<PathPart>>>,
    keeper: Arc<Mutex<RunHistory>>,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// How long it took.
    pub elapsed: Duration,
    /// How long it was allowed to take, when that was too short.
    pub exceeded: Option<Duration>,
    /// What decided how long it took.
    pub path: Vec<PathPart>,
}

impl Finished {
    /// An error when the run took longer than it was allowed to; it names the slowest of what
    /// decided how long it took.
    pub fn judge(&self) -> Result<()> {
        /// How many of the slowest parts are named.
        const SLOWEST: usize = 3;
        let Some(max_duration) = self.exceeded else { return Ok(()) };
        let time = |time: Duration| duration(time.as_secs_f64());
        let mut path: Vec<&PathPart> = self.path.iter().collect();
        path.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        let slowest =
            path.first().map_or_else(String::new, |part| format!("; the slowest was {}", summary::describe(part)));
        let message =
            format!("the run took {}, and its maximum is {}{slowest}", time(self.elapsed), time(max_duration));
        let error = path.iter().take(SLOWEST).fold(Error::permanent(message), |error, part| {
            let last = part.last_seconds.map_or_else(String::new, |last| format!(", last run {}", duration(last)));
            error.evidence(format!("{}: {}{last}", summary::describe(part), duration(part.seconds)))
        });
        Err(error.hint("turnup events (shows the whole critical path; everything else went well)"))
    }
}

impl Reporter {
    /// Starts the thread that shows events, and emits the first one; `replaced` are the parts of
    /// turnup that the working directory replaces.
    #[must_use]
    pub fn start(mode: DisplayMode, command: &str, cluster: &str, replaced: &[&str]) -> Self {
        let (sink, events) = Sink::channel();
        sink.emit(What::RunStarted {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            cluster: cluster.into(),
            at: jiff::Timestamp::now(),
            replaced: replaced.iter().map(|name| (*name).to_owned()).collect(),
        });
        // Without the thread the run goes on unseen, which is better than not at all.
        let keeper = Arc::<Mutex<RunHistory>>::default();
        let kept = Arc::clone(&keeper);
        let thread = thread::Builder::new().name("report".into()).spawn(move || consume(mode, &events, &kept)).ok();
        Self { sink, start: Instant::now(), thread, keeper }
    }

    /// Keeps the events of this run in that file, those from before as well. Compares the times
    /// with earlier runs of the same command.
    pub fn keep(&self, file: EventFile) -> Result<()> {
        open(&self.keeper).begin(file)
    }

    /// Where to send events.
    #[must_use]
    pub fn sink(&self) -> Sink {
        self.sink.clone()
    }

    /// Emits the last event, shows the tables of times and waits until all of it is shown. Nothing
    /// sent later is shown. A run that went well and took longer than its maximum is not well.
    #[must_use = "a maximum duration that was exceeded has to be told"]
    pub fn finish(mut self, ok: bool, max_duration: Option<Duration>) -> Finished {
        self.end(ok, max_duration)
    }

    fn end(&mut self, ok: bool, max_duration: Option<Duration>) -> Finished {
        let elapsed = self.start.elapsed();
        let exceeded = max_duration.filter(|max_duration| ok && elapsed > *max_duration);
        self.sink.emit(What::RunDone {
            ok: ok && exceeded.is_none(),
            elapsed_seconds: elapsed.as_secs_f64(),
            max_duration_seconds: max_duration.map(|max_duration| max_duration.as_secs_f64()),
            path: Vec::new(),
        });
        // A reporter that panicked has said so on standard error already.
        let path = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        Finished { elapsed, exceeded, path }
    }
}

/// A run that an error ends before its work is over, too, and shown before the error is.
impl Drop for Reporter {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(false, None);
        }
    }
}

fn open(keeper: &Mutex<RunHistory>) -> MutexGuard<'_, RunHistory> {
    // Each line is written whole or not at all; a panic elsewhere changes nothing about that.
    keeper.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows and keeps every event up to the last, into which it puts the critical path.
fn consume(mode: DisplayMode, events: &Receiver<Event>, keeper: &Mutex<RunHistory>) -> Vec<PathPart> {
    let mut show: Box<dyn Show> = match mode {
        DisplayMode::Bars => Box::new(bars::Bars::new()),
        DisplayMode::Lines => Box::new(lines::Lines::new(Box::new(anstream::stderr()))),
        DisplayMode::Json => Box::new(json::Json::new(Box::new(anstream::stdout()))),
        DisplayMode::Quiet => Box::new(Silence),
    };
    let (mut timeline, mut last, mut chain) = (Timeline::default(), None, Vec::new());
    for mut event in events {
        timeline.note(&shown(&event));
        let is_last = if let What::RunDone { path, .. } = &mut event.event {
            last = timeline.has_work().then(|| open(keeper).last()).flatten();
            *path = critical_path::critical_path(&timeline);
            critical_path::compare(path, last.as_ref());
            chain.clone_from(path);
            true
        } else {
            false
        };
        show.show(if mode == DisplayMode::Json { Cow::Borrowed(&event) } else { shown(&event) }.as_ref());
        if let Err(error) = open(keeper).take(&event) {
            let message = format!("the events of this run are kept no longer: {error}");
            show.show(&Event { seconds: event.seconds, event: What::Note { message } });
        }
        if is_last {
            break;
        }
    }
    show.close(&summary::render(&timeline, &chain, last.as_ref()));
    chain
}

struct Silence;

impl Show for Silence {
    fn show(&mut self, _event: &Event) {}
    fn close(&mut self, _table: &str) {}
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
