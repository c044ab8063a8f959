//! What the user said as a value of its own: taken, compared, and put back. For front-ends that
//! undo.
//!
//! It holds the user's values alone; what follows from them is evaluated again.

use crate::config::Config;
use crate::eval::{UserChoice, UserSymbol, UserValues};

/// Everything that the user said at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said(UserValues);

/// What differs between two moments of one configuration. It costs as much memory as there are
/// differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    symbols: Vec<(usize, UserSymbol, UserSymbol)>,
    choices: Vec<(usize, UserChoice, UserChoice)>,
}

impl Delta {
    /// Nothing differs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.symbols.is_empty() && self.choices.is_empty()
    }
}

impl Said {
    /// What has to change for this moment to become the later one. Both are of the same tree.
    #[must_use]
    pub fn delta(&self, later: &Self) -> Delta {
        Delta {
            symbols: differences(&self.0.symbols, &later.0.symbols),
            choices: differences(&self.0.choices, &later.0.choices),
        }
    }
}

fn differences<T: Clone + PartialEq>(before: &[T], after: &[T]) -> Vec<(usize, T, T)> {
    let pairs = before.iter().zip(after).enumerate();
    pairs.filter(|(_, (a, b))| a != b).map(|(at, (a, b))| (at, a.clone(), b.clone())).collect()
}

impl Config<'_> {
    /// Everything that the user said.
    #[must_use]
    pub fn said(&self) -> Said {
        Said(self.user.clone())
    }

    /// Whether the user has said exactly this.
    #[must_use]
    pub fn says(&self, said: &Said) -> bool {
        self.user == said.0
    }

    /// Says what the user said at another moment of a configuration of the same tree.
    pub fn say(&mut self, said: &Said) {
        self.forget_findings();
        self.user.clone_from(&said.0);
    }

    /// Drops what evaluation found out about the user's values: it belongs to the state that is
    /// left, and is found again where it holds.
    pub(crate) fn forget_findings(&mut self) {
        self.answers.adopted.get_mut().clear();
        self.answers.reopened.get_mut().clear();
        self.forget();
    }

    /// Makes the changes once more.
    pub fn redo(&mut self, delta: &Delta) {
        self.forget_findings();
        delta.symbols.iter().for_each(|(at, _, after)| self.user.symbols[*at].clone_from(after));
        delta.choices.iter().for_each(|(at, _, after)| self.user.choices[*at].clone_from(after));
    }

    /// Takes the changes back.
    pub fn undo(&mut self, delta: &Delta) {
        self.forget_findings();
        delta.symbols.iter().for_each(|(at, before, _)| self.user.symbols[*at].clone_from(before));
        delta.choices.iter().for_each(|(at, before, _)| self.user.choices[*at].clone_from(before));
    }
}
