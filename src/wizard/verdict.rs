//! What is wrong with the answers: at once what values alone tell, and a moment later what the one
//! check of `config check`, `plan` and `up` says of them, in the same words.
//!
//! The check simulates all phases, which takes longer than a key may: `checker` runs it beside the
//! loop. Before the file is written, it is waited for.

use std::sync::Arc;

use kconfig::{Config, SymbolId};

use crate::config::{self, Problem, ProblemLevel, Schema, Settings};

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

/// What values alone tell, without any phase.
pub(super) fn judge_values(schema: &Schema, config: &Config<'_>) -> Vec<Problem> {
    let mut problems = config::check(schema, config);
    problems.extend(judge_unused(schema, config));
    problems
}

/// The answers because of which this version refuses the configuration.
pub(super) fn judge_unused(schema: &Schema, config: &Config<'_>) -> Vec<Problem> {
    if schema.is_foreign() {
        return Vec::new();
    }
    let target = schema.tree().symbol(config::TARGET).map_or("", |symbol| config.value(symbol));
    let judge = |symbol: SymbolId| {
        schema.rule(symbol).unused.as_ref()?;
        let value = config.value(symbol);
        let changed = config.is_written(symbol) && config.default_value(symbol) != value;
        let why = schema.why_unused(symbol, value, target).filter(|_| changed)?;
        Some(Problem {
            level: ProblemLevel::Error,
            symbol: Some(schema.name(symbol).to_owned()),
            at: None,
            message: why,
        })
    };
    schema.tree().symbols().filter_map(|(symbol, _)| judge(symbol)).collect()
}
