//! What would make a locked entry changeable: the fewest answers to change, shown before anything
//! is, and other values of the first of them that do, too.

use std::collections::VecDeque;

use kconfig::{Config, SymbolId, SymbolType, Tri, explain};

use super::dialog::Repair;
use super::model::Model;
use crate::config::{self, Problem, ProblemLevel};

/// More changes than these are counted, not listed.
const LISTED: usize = 40;

impl Repair {
    /// Looks for a way to change this symbol; `None` where nothing stands in the way.
    pub(super) fn find(model: &Model, symbol: SymbolId) -> Option<Self> {
        let config = &model.config;
        let kind = model.schema.tree().get(symbol).kind;
        let locked = config.visible(symbol) == Tri::N || kind.is_logical() && config.assignable(symbol).len() < 2;
        if !locked {
            return None;
        }
        let wish = wish(config, symbol, kind);
        let plan = explain::plan(config, symbol, wish);
        let tree = model.schema.tree();
        let steps: Vec<(SymbolId, String)> = plan
            .into_iter()
            .flat_map(|plan| plan.steps)
            .filter_map(|step| Some((tree.symbol(&step.name)?, step.value)))
            .collect();
        let (effects, others) = (effects(model, &steps), other_ways(model, symbol, wish, &steps));
        Some(Self { symbol, reasons: reasons(model, symbol), steps, others, number: 1, effects, scroll: 0 })
    }

    /// The next of several ways.
    pub(super) fn next(&mut self, model: &Model) {
        let Some(next) = self.others.pop_front() else { return };
        self.others.push_back(std::mem::replace(&mut self.steps, next));
        self.number = self.number % (self.others.len() + 1) + 1;
        (self.effects, self.scroll) = (effects(model, &self.steps), 0);
    }
}

/// The same steps with another value of the first: of several targets, for instance, that have the
/// entry.
fn other_ways(
    model: &Model,
    symbol: SymbolId,
    wish: Option<&str>,
    steps: &[(SymbolId, String)],
) -> VecDeque<Vec<(SymbolId, String)>> {
    let Some(at) = steps.iter().position(|(step, _)| *step != symbol) else { return VecDeque::new() };
    let (first, taken) = &steps[at];
    let words = model.schema.rule(*first).format.as_ref().and_then(|format| format.words());
    let values = words.map_or_else(|| explain::values_named_for(&model.config, *first), <[String]>::to_vec);
    let others = values.into_iter().filter(|value| value != taken && value != model.config.value(*first));
    let replaced = |value: String| {
        let mut other = steps.to_vec();
        other[at].1 = value;
        other
    };
    let unlocks = |steps: &Vec<(SymbolId, String)>| {
        let mut after = model.config.clone();
        let are_taken = steps.iter().all(|(symbol, value)| after.set(*symbol, value).is_ok());
        are_taken && wish.map_or(after.visible(symbol) != Tri::N, |value| after.value(symbol) == value)
    };
    others.map(replaced).filter(unlocks).collect()
}

/// The values a user wants for a locked entry: the other value of a switch, any of a text.
fn wish(config: &Config<'_>, symbol: SymbolId, kind: SymbolType) -> Option<&'static str> {
    kind.is_logical().then(|| if config.tri(symbol) == Tri::N { "y" } else { "n" })
}

fn reasons(model: &Model, symbol: SymbolId) -> Vec<String> {
    let reasons = model.config.explain_visibility(symbol);
    if !reasons.is_empty() {
        return reasons;
    }
    lock_reason(model, symbol).into_iter().collect()
}

/// The sentence about what keeps a symbol at its value; nothing when the user may change it.
pub(super) fn lock_reason(model: &Model, symbol: SymbolId) -> Option<String> {
    let reasons = model.config.explain_visibility(symbol);
    if !reasons.is_empty() {
        return Some(format!("cannot be set now: {}", reasons.join("; ")));
    }
    if let kconfig::Origin::Select { by, .. } = model.config.origin(symbol) {
        return Some(format!("fixed: {} selects it", model.schema.name(by)));
    }
    let kind = model.schema.tree().get(symbol).kind;
    (kind.is_logical() && model.config.assignable(symbol).len() < 2)
        .then(|| "other settings leave only this value".to_owned())
}

/// What is wrong then, and what becomes another value besides the answers themselves.
fn effects(model: &Model, steps: &[(SymbolId, String)]) -> Vec<String> {
    let mut after = model.config.clone();
    if steps.iter().any(|(symbol, value)| after.set(*symbol, value).is_err()) {
        return Vec::new();
    }
    let is_new = |problem: &Problem| problem.level == ProblemLevel::Error && !model.problems.contains(problem);
    let wrong = config::check(&model.schema, &after).into_iter().filter(is_new);
    let mut lines: Vec<String> = wrong.map(|problem| format!("! {}", problem.message)).collect();
    let changes = after.changes(&model.config);
    let others = changes.iter().filter(|change| !steps.iter().any(|(symbol, _)| *symbol == change.symbol));
    let shown = |symbol, value: &Option<String>| value.as_ref().map(|value| model.shown(symbol, value));
    lines.extend(others.map(|change| {
        let name = model.schema.name(change.symbol);
        match (shown(change.symbol, &change.before), shown(change.symbol, &change.after)) {
            (Some(before), Some(after)) => format!("{name}: {before} -> {after}"),
            (None, Some(after)) => format!("{name}: now asked, {after}"),
            (_, None) => format!("{name}: no longer asked"),
        }
    }));
    let more = lines.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = lines.into_iter().take(LISTED).collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    listed
}
