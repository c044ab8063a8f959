//! What was changed, in order: taken back and made again without limit.

use kconfig::history::Delta;

/// One change of answers, which may be of many at once.
#[derive(Debug)]
pub(super) struct AnswerChange {
    /// The command for it.
    pub(super) what: String,
    pub(super) delta: Delta,
}

/// All changes.
#[derive(Debug, Default)]
pub(super) struct History {
    past: Vec<AnswerChange>,
    future: Vec<AnswerChange>,
}

impl History {
    /// A new change: those that were taken back cannot be made again after it.
    pub(super) fn remember(&mut self, what: String, delta: Delta) {
        if !delta.is_empty() {
            self.past.push(AnswerChange { what, delta });
            self.future.clear();
        }
    }

    /// The last change, which is to be taken back now.
    pub(super) fn take_back(&mut self) -> Option<&AnswerChange> {
        let step = self.past.pop()?;
        self.future.push(step);
        self.future.last()
    }

    /// The change that was taken back last, which is to be made again now.
    pub(super) fn make_again(&mut self) -> Option<&AnswerChange> {
        let step = self.future.pop()?;
        self.past.push(step);
        self.past.last()
    }
}
