//! Why a value is what it is: the line that decided, and why that line counts, down to what the
//! user set.

use std::collections::HashSet;

use crate::config::Config;
use crate::expr::ExprId;
use crate::tree::{NodeId, SymbolId};
use crate::value::{Origin, Tri};

/// Explanations are not useful below this depth.
const MAX_DEPTH: usize = 12;

/// A value with what decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The symbol.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What decided: a phrase.
    pub how: String,
    /// `file:line:col` of the line that decided.
    pub location: Option<String>,
    /// The values that this one follows from; of a symbol that was explained further up, none.
    pub because: Vec<Self>,
}

/// Why a symbol has its value.
#[must_use]
pub fn reason(config: &Config<'_>, symbol: SymbolId) -> Reason {
    find(config, symbol, &mut HashSet::new(), 0)
}

fn find(config: &Config<'_>, symbol: SymbolId, seen: &mut HashSet<SymbolId>, depth: usize) -> Reason {
    let tree = config.tree();
    let definition = tree.get(symbol);
    let (how, location, from) = decide(config, symbol);
    let again = !seen.insert(symbol) || depth >= MAX_DEPTH;
    let because = if again { Vec::new() } else { from };
    Reason {
        name: definition.name.to_string(),
        value: if definition.nodes.is_empty() { "n".to_owned() } else { config.value(symbol).to_owned() },
        how,
        location: location.map(|span| tree.location(span)),
        because: because.into_iter().map(|other| find(config, other, seen, depth + 1)).collect(),
    }
}

/// The phrase, the line, and the symbols that the line needs.
fn decide(config: &Config<'_>, symbol: SymbolId) -> (String, Option<crate::source::Span>, Vec<SymbolId>) {
    let tree = config.tree();
    let definition = tree.get(symbol);
    if definition.nodes.is_empty() {
        return ("not defined".to_owned(), None, Vec::new());
    }
    match config.origin(symbol) {
        Origin::User => ("set".to_owned(), None, Vec::new()),
        Origin::Select { by, span } => {
            let line = tree.selectors(symbol).find(|(other, line)| *other == by && line.span == span);
            let from = line.map_or_else(Vec::new, |(_, line)| needs(config, line.condition, line.node));
            (format!("selected by {}", tree.get(by).name), Some(span), with(by, from))
        }
        Origin::Imply { by, span } => {
            let line = tree.impliers(symbol).find(|(other, line)| *other == by && line.span == span);
            let from = line.map_or_else(Vec::new, |(_, line)| needs(config, line.condition, line.node));
            (format!("implied by {}", tree.get(by).name), Some(span), with(by, from))
        }
        Origin::Default { span } => {
            let default = definition.defaults.iter().find(|default| default.span == span);
            let Some(default) = default else { return ("its default".to_owned(), Some(span), Vec::new()) };
            let mut from = tree.symbols_in(default.value);
            from.extend(needs(config, default.condition, default.node));
            (format!("default {}", tree.show(default.value)), Some(span), from)
        }
        Origin::Choice => {
            let selected = definition.choice.and_then(|choice| config.selection(choice));
            match selected.filter(|selected| *selected != symbol) {
                Some(other) => (format!("{} is selected in its choice", tree.get(other).name), None, vec![other]),
                None => ("selected in its choice".to_owned(), None, Vec::new()),
            }
        }
        Origin::Unset => unset(config, symbol),
    }
}

/// Nothing gave it a value: it may not have one, or none was set.
fn unset(config: &Config<'_>, symbol: SymbolId) -> (String, Option<crate::source::Span>, Vec<SymbolId>) {
    let tree = config.tree();
    let definition = tree.get(symbol);
    let broken: Vec<ExprId> =
        tree.conjuncts(definition.direct_dependency).into_iter().filter(|term| config.holds(*term) == Tri::N).collect();
    if let Some(first) = broken.first() {
        let from = broken.iter().flat_map(|term| tree.symbols_in(*term)).collect();
        return (format!("needs {}", tree.show(*first)), None, from);
    }
    let prompt = definition.nodes.iter().any(|node| tree.node(*node).prompt.is_some());
    let how = if prompt { "not set, and no default counts" } else { "no default counts, and nothing selects it" };
    (how.to_owned(), None, Vec::new())
}

fn with(first: SymbolId, mut others: Vec<SymbolId>) -> Vec<SymbolId> {
    others.retain(|other| *other != first);
    others.insert(0, first);
    others
}

/// The symbols of a line's own condition, without what its entry depends on anyway.
fn needs(config: &Config<'_>, condition: ExprId, node: NodeId) -> Vec<SymbolId> {
    let tree = config.tree();
    let inherited = tree.conjuncts(tree.node(node).depends);
    let own = tree.conjuncts(condition).into_iter().filter(|term| !inherited.contains(term));
    let mut found: Vec<SymbolId> = Vec::new();
    for symbol in own.flat_map(|term| tree.symbols_in(term)) {
        if !found.contains(&symbol) {
            found.push(symbol);
        }
    }
    found
}
