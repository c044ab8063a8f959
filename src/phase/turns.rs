//! Turns: of the hosts that a step works on, so many may be changed at a time, with a pause between
//! one and the next. When one of them fails, those that wait are left as they are.
//!
//! It knows no host and no reason; waiting takes none of a step's time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;
use crate::exec::signals;

/// How soon a signal or the end of the phase's time is noticed.
const TICK: Duration = Duration::from_millis(100);

/// Shared by the steps that take turns.
#[derive(Debug)]
pub struct Turns {
    at_once: usize,
    pause: Duration,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    last_end: Option<Instant>,
    /// The step that failed.
    stopped_by: Option<String>,
}

/// What came of waiting.
pub(super) enum Wait<'t> {
    /// It is this step's turn, for as long as this is kept.
    Turn { _held: TakenTurn<'t> },
    /// This step failed, so that no other one takes a turn.
    Stopped(String),
    /// The phase has no time left.
    Over,
}

/// One turn; ends when it is dropped.
pub(super) struct TakenTurn<'t>(&'t Turns);

impl Turns {
    /// `at_once` steps at a time, at least one, and `pause` between the end of one and the
    /// beginning of the next.
    #[must_use]
    pub fn new(at_once: usize, pause: Duration) -> Self {
        Self { at_once: at_once.max(1), pause, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Waits for a turn; an error when a signal comes.
    pub(super) fn wait(&self, is_over: impl Fn() -> bool) -> Result<Wait<'_>> {
        let mut state = self.state();
        loop {
            signals::check()?;
            if let Some(step) = &state.stopped_by {
                return Ok(Wait::Stopped(step.clone()));
            }
            let left = state.last_end.map_or(Duration::ZERO, |end| self.pause.saturating_sub(end.elapsed()));
            if state.taken < self.at_once && left.is_zero() {
                state.taken += 1;
                return Ok(Wait::Turn { _held: TakenTurn(self) });
            }
            if is_over() {
                return Ok(Wait::Over);
            }
            state = self.freed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// No step takes a turn after this one, which failed.
    pub(super) fn stop(&self, step: &str) {
        self.state().stopped_by.get_or_insert_with(|| step.to_owned());
        self.freed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.taken -= 1;
        state.last_end = Some(Instant::now());
        drop(state);
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn wait(turns: &Turns, is_over: bool) -> Wait<'_> {
        turns.wait(|| is_over).unwrap()
    }

    #[test]
    fn so_many_at_a_time_and_none_after_a_failure() {
        let turns = Turns::new(2, Duration::ZERO);
        let (one, other) = (wait(&turns, true), wait(&turns, true));
        assert!(matches!((&one, &other), (Wait::Turn { .. }, Wait::Turn { .. })));
        assert!(matches!(wait(&turns, true), Wait::Over), "a third one waits");
        drop(one);
        assert!(matches!(wait(&turns, true), Wait::Turn { .. }));
        turns.stop("first");
        turns.stop("second");
        assert!(matches!(wait(&turns, false), Wait::Stopped(step) if step == "first"));
    }

    #[test]
    fn a_pause_stands_between_the_end_of_one_and_the_next() {
        let turns = Turns::new(1, Duration::from_hours(1));
        drop(wait(&turns, true));
        assert!(matches!(wait(&turns, true), Wait::Over), "the pause is not over");
        let turns = Turns::new(0, Duration::from_millis(1));
        drop(wait(&turns, false));
        assert!(matches!(wait(&turns, false), Wait::Turn { .. }), "one at least, after the pause");
    }
}
