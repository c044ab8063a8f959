//! Who does a step: an action of turnup's or a command of the user's.

use super::custom::CustomCommand;
use super::manifest::unknown;
use super::{Action, Phase, Step};
use crate::state::Store;
use crate::{Error, Result};

/// Who does a step.
pub(super) enum StepRunner<'p> {
    BuiltIn(&'p dyn Action),
    Custom(Box<CustomCommand>),
}

impl StepRunner<'_> {
    pub(super) fn as_ref(&self) -> &dyn Action {
        match self {
            Self::BuiltIn(action) => *action,
            Self::Custom(command) => command.as_ref(),
        }
    }
}

impl Phase {
    /// One action for each step of the manifest.
    pub(super) fn all_actions<'p>(&'p self, store: &Store) -> Result<Vec<StepRunner<'p>>> {
        self.manifest.steps.iter().map(|step| self.performer(store, step)).collect()
    }

    fn performer<'p>(&'p self, store: &Store, step: &Step) -> Result<StepRunner<'p>> {
        if !step.run.is_empty() {
            return CustomCommand::new(self, step, store).map(|command| StepRunner::Custom(Box::new(command)));
        }
        self.actions.get(&step.name).map(|action| StepRunner::BuiltIn(action.as_ref())).ok_or_else(|| {
            let what = unknown("built-in step", &step.name, self.actions.keys().map(String::as_str));
            Error::config(format!("phases/{}/phase.toml: {what}", self.name))
                .hint("a step of your own needs a command: run = [\"command\", \"argument\"]")
        })
    }
}
