//! Is there a shorter way than the one that was found? Tries everything, as long as that is not too
//! much.
//!
//! Knows nothing of why a way works; the caller says what is wanted.

use std::collections::HashSet;

use crate::config::Config;
use crate::expr::{Atom, ExprId};
use crate::tree::SymbolId;
use crate::value::SymbolType;

/// How many symbols may be copied in all trials together: a configuration is copied for each.
const MAX_COPIES: usize = 8_000_000;
/// Ways among more symbols than this are not counted through.
const MAX_SYMBOLS: usize = 40;

/// A symbol and what to answer for it.
pub(super) type Answer = (SymbolId, String);

/// The shortest way of fewer steps than `known`, if all of them can be tried.
pub(super) fn shorter<'t>(
    config: &Config<'t>,
    symbol: SymbolId,
    known: usize,
    values: &dyn Fn(SymbolId) -> Vec<String>,
    reaches: &dyn Fn(&Config<'_>) -> bool,
) -> Option<Vec<Answer>> {
    let symbols = surroundings(config, symbol)?;
    let answers: Vec<Answer> =
        symbols.iter().flat_map(|id| values(*id).into_iter().map(move |value| (*id, value))).collect();
    let said = |config: &Config<'_>| -> Vec<Option<String>> {
        symbols.iter().map(|id| config.user_value(*id).map(ToOwned::to_owned)).collect()
    };
    let mut trials = MAX_COPIES / config.tree().symbols.len().max(1);
    let mut seen = HashSet::from([said(config)]);
    let mut front: Vec<(Config<'t>, Vec<Answer>)> = vec![(config.clone(), Vec::new())];
    for _ in 1..known.min(symbols.len() + 1) {
        let mut next = Vec::new();
        for (config, way) in &front {
            for (symbol, value) in answers.iter().filter(|(symbol, value)| config.value(*symbol) != value) {
                trials = trials.checked_sub(1)?;
                let mut trial = config.clone();
                if trial.set(*symbol, value).is_err() || !seen.insert(said(&trial)) {
                    continue;
                }
                let way = [way.as_slice(), &[(*symbol, value.clone())]].concat();
                if reaches(&trial) {
                    return Some(way);
                }
                next.push((trial, way));
            }
        }
        front = next;
    }
    None
}

/// Everything that bears upon a symbol, itself included; none when that is too much.
fn surroundings(config: &Config<'_>, symbol: SymbolId) -> Option<Vec<SymbolId>> {
    let tree = config.tree();
    let mut found = vec![symbol];
    let mut at = 0;
    while let Some(id) = found.get(at).copied() {
        at += 1;
        let definition = tree.get(id);
        let mut near: Vec<SymbolId> =
            definition.choice.iter().flat_map(|choice| &tree.choice(*choice).members).copied().collect();
        let mut conditions: Vec<ExprId> =
            vec![definition.direct_dependency, definition.selected_by, definition.implied_by];
        for node in definition.nodes.iter().map(|node| tree.node(*node)) {
            conditions.extend(node.prompt.as_ref().map(|prompt| prompt.condition));
            conditions.push(node.depends);
        }
        conditions.extend(definition.defaults.iter().flat_map(|default| [default.value, default.condition]));
        conditions.extend(definition.ranges.iter().map(|range| range.condition));
        let limits = definition.ranges.iter().flat_map(|range| [range.low, range.high]);
        near.extend(limits.filter_map(|atom| if let Atom::Symbol(id) = atom { Some(id) } else { None }));
        near.extend(conditions.into_iter().flat_map(|condition| tree.symbols_in(condition)));
        near.extend(tree.modules().filter(|_| definition.kind == SymbolType::Tristate));
        for id in near {
            if !found.contains(&id) {
                found.push(id);
            }
        }
        if found.len() > MAX_SYMBOLS {
            return None;
        }
    }
    Some(found)
}
