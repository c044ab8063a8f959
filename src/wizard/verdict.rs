//! What is wrong with the answers: at once what values alone tell, and a moment later what the one
//! check of `config check`, `plan` and `up` says of them, in the same words.
//!
//! The check simulates all phases, which takes longer than a key may: `checker` runs it beside the
//! loop. Before the file is written, it is waited for.

use std::sync::Arc;

use kconfig::Config;

use crate::config::{Problem, Schema, Settings};

/// The one check; the wizard is given it, because it knows no phases.
pub(crate) type ConfigurationCheck = Arc<dyn Fn(&Settings) -> Vec<Problem> + Send + Sync>;

/// The check of certain answers, ready to run.
pub(super) type Job = Box<dyn FnOnce() -> Vec<Problem> + Send>;

/// What the check has said.
#[derive(Debug)]
pub(super) struct LastCheck {
    /// The answers that it is about.
    pub(super) revision: u64,
    /// What it found, each with the value of its setting then.
    found: Vec<(Problem, Option<String>)>,
}

impl LastCheck {
    /// About these answers.
    pub(super) fn new(revision: u64, schema: &Schema, config: &Config<'_>, problems: Vec<Problem>) -> Self {
        let found = problems.into_iter().map(|problem| {
            let value = value_of(schema, config, &problem);
            (problem, value)
        });
        Self { revision, found: found.collect() }
    }

    /// What probably still holds after a change elsewhere, until the check has looked again.
    pub(super) fn remaining(&self, schema: &Schema, config: &Config<'_>) -> Vec<Problem> {
        let holds = |(problem, value): &&(Problem, Option<String>)| {
            value.is_some() && value_of(schema, config, problem) == *value
        };
        self.found.iter().filter(holds).map(|(problem, _)| problem.clone()).collect()
    }
}

fn value_of(schema: &Schema, config: &Config<'_>, problem: &Problem) -> Option<String> {
    let symbol = schema.tree().symbol(problem.symbol.as_deref()?)?;
    Some(config.value(symbol).to_owned())
}
