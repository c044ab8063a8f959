//! The commands of `$(shell)` while they run: each once, several at a time, their values put in
//! place when they are there.
//!
//! A text that waits for a command holds a mark in place of its output. Marks never leave this
//! crate.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::env::{Output, Shell};
use crate::text;

/// Stand around the number of a command in a text that waits for it; the reader lets neither
/// through from a file.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// What a command gave: a value for the text and what it said on standard error; or why it could
/// not be started.
type Outcome = Result<(String, Vec<u8>), String>;

/// The outcome of one command, when it is there.
#[derive(Debug, Default)]
struct Slot {
    outcome: Mutex<Option<Arc<Outcome>>>,
    filled: Condvar,
}

impl Slot {
    fn fill(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(outcome));
        self.filled.notify_all();
    }

    fn peek(&self) -> Option<Arc<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wait(&self) -> Arc<Outcome> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &*outcome {
                return Arc::clone(outcome);
            }
            outcome = self.filled.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A command with the slots of all those whose marks it may hold.
struct Job {
    command: String,
    /// How many bytes of its output count.
    limit: usize,
    slot: Arc<Slot>,
    needed: Vec<(usize, Arc<Slot>)>,
}

impl Job {
    fn is_ready(&self) -> bool {
        self.needed.iter().all(|(_, slot)| slot.peek().is_some())
    }
}

/// What the workers share: the commands not yet taken, in the order of the lines.
#[derive(Default)]
struct Board {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    open: Vec<Job>,
    /// The results of the rest are not needed any more.
    abandoned: bool,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Jobs)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for a command whose texts are all there. One that waits for another keeps no worker
    /// from those behind it.
    fn take(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if jobs.abandoned {
                return None;
            }
            if let Some(ready) = jobs.open.iter().position(Job::is_ready) {
                return Some(jobs.open.remove(ready));
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self, shell: &dyn Shell) {
        while let Some(job) = self.take() {
            let outcome = run(&job, shell);
            self.change(|_| job.slot.fill(outcome));
        }
    }
}

/// All commands of one tree.
#[derive(Default)]
pub(crate) struct Commands {
    numbers: HashMap<String, usize>,
    slots: Vec<Arc<Slot>>,
    board: Arc<Board>,
    workers: usize,
    /// How many workers there may be, once that was asked.
    limit: Option<usize>,
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.board.change(|jobs| jobs.abandoned = true);
    }
}

impl Commands {
    /// A mark for the output of a command, which starts now unless it was started before.
    pub(crate) fn start(&mut self, command: &str, limit: usize, shell: &Arc<dyn Shell>) -> (usize, String) {
        let number = match self.numbers.get(command) {
            Some(known) => *known,
            None => self.enqueue(command, limit, shell),
        };
        (number, format!("{OPEN}{number}{CLOSE}"))
    }

    fn enqueue(&mut self, command: &str, limit: usize, shell: &Arc<dyn Shell>) -> usize {
        let number = self.slots.len();
        let slot = Arc::new(Slot::default());
        // Only earlier commands can be in a text: the first of those that are left is never without
        // what it needs for ever.
        let needed = marks(command, number).map(|mark| (mark.number, Arc::clone(&self.slots[mark.number]))).collect();
        self.numbers.insert(command.to_owned(), number);
        self.slots.push(Arc::clone(&slot));
        if self.workers < *self.limit.get_or_insert_with(|| shell.jobs().max(1)) {
            self.add_worker(shell);
        }
        if self.workers == 0 {
            slot.fill(Err("no thread could be started for it".to_owned()));
        } else {
            let job = Job { command: command.to_owned(), limit, slot, needed };
            self.board.change(|jobs| jobs.open.push(job));
        }
        number
    }

    fn add_worker(&mut self, shell: &Arc<dyn Shell>) {
        let (board, shell) = (Arc::clone(&self.board), Arc::clone(shell));
        let work = move || board.work(&*shell);
        let started = std::thread::Builder::new().name("kconfig-shell".to_owned()).spawn(work);
        self.workers += usize::from(started.is_ok());
    }

    /// The text with all its marks replaced; waits for their commands.
    pub(crate) fn resolve(&self, text: &str) -> Result<String, String> {
        substitute(text, self.slots.len(), |number| self.slots[number].wait())
    }

    /// What a command said on standard error, if it has ended; waits for that when told to.
    pub(crate) fn stderr(&self, number: usize, wait: bool) -> Option<Vec<u8>> {
        let slot = &self.slots[number];
        let outcome = if wait { slot.wait() } else { slot.peek()? };
        Some(outcome.as_ref().as_ref().map_or_else(|_| Vec::new(), |(_, stderr)| stderr.clone()))
    }

    /// Whether all commands in a text have ended.
    pub(crate) fn is_ready(&self, text: &str) -> bool {
        marks(text, self.slots.len()).all(|mark| self.slots[mark.number].peek().is_some())
    }
}

/// Whether a text waits for a command.
pub(crate) fn is_pending(text: &str) -> bool {
    text.contains(OPEN)
}

fn run(job: &Job, shell: &dyn Shell) -> Outcome {
    let slot = |number| job.needed.iter().find(|(known, _)| *known == number).map(|(_, slot)| Arc::clone(slot));
    // All marks are of earlier commands; anything else would be text.
    let count = job.needed.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    let command = substitute(&job.command, count, |number| {
        slot(number).map_or_else(|| Arc::new(Ok((String::new(), Vec::new()))), |slot| slot.wait())
    })?;
    let explain = |error: io::Error| format!("cannot run `{command}`: {error}");
    let Output { stdout, stderr } = shell.run(&command, job.limit).map_err(explain)?;
    Ok((value_of(stdout.get(..job.limit).unwrap_or(&stdout)), stderr))
}

/// Line ends at the end are dropped, others become blanks; as in C, a zero byte ends the value.
fn value_of(stdout: &[u8]) -> String {
    let end = stdout.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
    let value = stdout[..end].split(|byte| *byte == 0).next().unwrap_or_default();
    text::from_slice(value).replace('\n', " ").replace([OPEN, CLOSE], " ")
}

/// A command's place in a text.
struct Mark {
    start: usize,
    end: usize,
    number: usize,
}

/// The marks of the first `count` commands; what only looks like one is text.
fn marks(text: &str, count: usize) -> impl Iterator<Item = Mark> {
    text.match_indices(OPEN).filter_map(move |(start, _)| {
        let length = text[start..].find(CLOSE)?;
        let number = text[start + OPEN.len_utf8()..start + length].parse().ok().filter(|number| *number < count)?;
        Some(Mark { start, end: start + length + CLOSE.len_utf8(), number })
    })
}

fn substitute(text: &str, count: usize, outcome: impl Fn(usize) -> Arc<Outcome>) -> Result<String, String> {
    let (mut result, mut copied) = (String::new(), 0);
    for mark in marks(text, count) {
        result.push_str(&text[copied..mark.start]);
        match &*outcome(mark.number) {
            Ok((value, _)) => result.push_str(value),
            Err(failure) => return Err(failure.clone()),
        }
        copied = mark.end;
    }
    result.push_str(&text[copied..]);
    Ok(result)
}
