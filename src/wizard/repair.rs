//! What would make a locked entry changeable: the fewest answers to change, shown before anything
//! is.

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
        let effects = effects(model, &steps);
        Some(Self { symbol, reasons: reasons(model, symbol), steps, effects, scroll: 0 })
    }
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
