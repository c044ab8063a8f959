//! What would have to change for a symbol to get a value: tried out on a copy, so that a plan that
//! is shown works.
//!
//! Looks for one way by what conditions say, then for a shorter one by trying everything, where
//! that is not too much. The order of trials is fixed, so that the same question has the same
//! answer.

use std::collections::HashSet;

use super::search::{self, Answer};
use crate::config::Config;
use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::tree::{ChoiceId, SymbolId};
use crate::value::{SymbolType, Tri};

/// A search that takes longer is given up.
const MAX_TRIALS: usize = 400;
/// A longer chain of symbols is too long to be useful.
const MAX_DEPTH: usize = 24;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The symbol.
    pub name: String,
    /// The value to give it.
    pub value: String,
    /// Its prompt, to be found in the menus.
    pub prompt: Option<String>,
}

/// Changes, in an order in which each is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The value to be had; none for any that can be set.
    pub value: Option<String>,
    /// The changes; the last one is the symbol itself where it can then be set.
    pub steps: Vec<Step>,
}

/// Finds changes after which a symbol has a value, or, without one, can be set.
#[must_use]
pub fn plan(config: &Config<'_>, symbol: SymbolId, value: Option<&str>) -> Option<Plan> {
    let mut planner =
        Planner { config: config.clone(), steps: Vec::new(), busy: HashSet::new(), trials: MAX_TRIALS, depth: 0 };
    let logical = config.tree().get(symbol).kind.is_logical();
    let found = match value {
        Some("n") if logical => planner.lower(symbol, Tri::N),
        Some("m") if logical => planner.raise(symbol, Tri::M),
        Some("y") if logical => planner.raise(symbol, Tri::Y),
        Some(text) => planner.put(symbol, text),
        None => planner.show(symbol, Tri::M),
    };
    let reaches = |config: &Config<'_>| match value {
        Some(text) => config.value(symbol) == text,
        None => config.visible(symbol) != Tri::N,
    };
    let steps = (found && reaches(&planner.config)).then(|| shorten(config, planner.steps, reaches));
    let tree = config.tree();
    let values = |id: SymbolId| possible_values(config, id, value.filter(|_| id == symbol));
    let known = steps.as_ref().map_or(usize::MAX, Vec::len);
    let steps = search::shorter(config, symbol, known, &values, &reaches).or(steps);
    let step = |(id, value): Answer| Step {
        name: tree.get(id).name.to_string(),
        value,
        prompt: tree.get(id).nodes.iter().find_map(|node| tree.node(*node).prompt.as_ref()).map(|p| p.text.to_string()),
    };
    steps.map(|steps| Plan { value: value.map(ToOwned::to_owned), steps: steps.into_iter().map(step).collect() })
}

/// The values worth a trial: of ints, hexes and texts those that the tree names, and the one that
/// is wanted.
fn possible_values(config: &Config<'_>, symbol: SymbolId, wanted: Option<&str>) -> Vec<String> {
    match config.tree().get(symbol).kind {
        SymbolType::Bool => ["n", "y"].map(ToOwned::to_owned).into(),
        SymbolType::Tristate => ["n", "m", "y"].map(ToOwned::to_owned).into(),
        _ => wanted.map(ToOwned::to_owned).into_iter().chain(values_named_for(config, symbol)).collect(),
    }
}

/// The texts that defaults give a symbol, then those that it is compared with.
#[must_use]
pub fn values_named_for(config: &Config<'_>, symbol: SymbolId) -> Vec<String> {
    let tree = config.tree();
    let text = |atom| if let Atom::Text(text) = atom { Some(tree.text(text).to_owned()) } else { None };
    let default = |value| if let Expr::Atom(atom) = tree.expr(value) { text(atom) } else { None };
    let mut values: Vec<String> = tree.get(symbol).defaults.iter().filter_map(|line| default(line.value)).collect();
    for compared in tree.compared_with(symbol).filter_map(text) {
        if !compared.is_empty() && !values.contains(&compared) {
            values.push(compared);
        }
    }
    values
}

/// Leaves out what the search turned out not to need: detours, and answers that it gave twice.
fn shorten(config: &Config<'_>, mut steps: Vec<Answer>, reaches: impl Fn(&Config<'_>) -> bool) -> Vec<Answer> {
    let works = |steps: &[Answer]| {
        let mut trial = config.clone();
        steps.iter().all(|(symbol, value)| trial.set(*symbol, value).is_ok()) && reaches(&trial)
    };
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if works(&fewer) {
            steps = fewer;
        } else {
            at += 1;
        }
    }
    steps
}

/// A configuration to try things on, and what was tried successfully.
struct Planner<'t> {
    config: Config<'t>,
    steps: Vec<Answer>,
    /// Symbols that are being dealt with: a way back to one of them is no way.
    busy: HashSet<SymbolId>,
    trials: usize,
    depth: usize,
}

impl Planner<'_> {
    /// Goes one way, and back when it leads nowhere.
    fn attempt(&mut self, way: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.trials == 0 || self.depth >= MAX_DEPTH {
            return false;
        }
        self.trials -= 1;
        self.depth += 1;
        let (config, steps) = (self.config.clone(), self.steps.len());
        let works = way(self);
        self.depth -= 1;
        if !works {
            self.config = config;
            self.steps.truncate(steps);
        }
        works
    }

    fn set(&mut self, symbol: SymbolId, tri: Tri) -> bool {
        self.set_text(symbol, tri.as_str())
    }

    fn set_text(&mut self, symbol: SymbolId, value: &str) -> bool {
        let works = self.config.set(symbol, value).is_ok();
        if works {
            self.steps.push((symbol, value.to_owned()));
        }
        works
    }

    /// Gives an int, hex or string this value.
    fn put(&mut self, symbol: SymbolId, value: &str) -> bool {
        if self.config.value(symbol) == value {
            return true;
        }
        if !self.busy.insert(symbol) {
            return false;
        }
        let works = self.attempt(|planner| planner.set_text(symbol, value))
            || self.attempt(|planner| planner.show(symbol, Tri::Y) && planner.set_text(symbol, value));
        self.busy.remove(&symbol);
        works
    }

    /// What cannot be `m` has to be `y`.
    fn set_at_least(&mut self, symbol: SymbolId, want: Tri) -> bool {
        self.set(symbol, want) || want == Tri::M && self.set(symbol, Tri::Y)
    }

    /// What cannot be `m` has to be `n`.
    fn set_at_most(&mut self, symbol: SymbolId, most: Tri) -> bool {
        self.set(symbol, most) || most == Tri::M && self.set(symbol, Tri::N)
    }

    /// Makes a condition hold at least so far.
    fn reach(&mut self, expr: ExprId, want: Tri) -> bool {
        if self.config.holds(expr) >= want {
            return true;
        }
        match self.config.tree().expr(expr) {
            Expr::Atom(Atom::Symbol(symbol)) => self.raise(symbol, want),
            Expr::Atom(Atom::Choice(choice)) => self.show_choice(choice, want),
            Expr::Atom(_) => false,
            Expr::Not(inner) => self.limit(inner, !want),
            Expr::And(..) => {
                let terms = self.config.tree().conjuncts(expr);
                terms.iter().all(|term| self.reach(*term, want)) && self.config.holds(expr) >= want
            }
            Expr::Or(..) => {
                let terms = self.config.tree().disjuncts(expr);
                terms.into_iter().any(|term| self.attempt(|planner| planner.reach(term, want)))
            }
            Expr::Compare(operator, left, right) => self.compare(operator, left, right),
        }
    }

    /// Makes a condition hold at most so far.
    fn limit(&mut self, expr: ExprId, most: Tri) -> bool {
        if self.config.holds(expr) <= most {
            return true;
        }
        match self.config.tree().expr(expr) {
            Expr::Atom(Atom::Symbol(symbol)) => self.lower(symbol, most),
            Expr::Not(inner) => self.reach(inner, !most),
            Expr::And(..) => {
                let terms = self.config.tree().conjuncts(expr);
                terms.into_iter().any(|term| self.attempt(|planner| planner.limit(term, most)))
            }
            Expr::Or(..) => {
                let terms = self.config.tree().disjuncts(expr);
                terms.iter().all(|term| self.limit(*term, most)) && self.config.holds(expr) <= most
            }
            Expr::Compare(operator, left, right) => self.compare(operator.inverse(), left, right),
            Expr::Atom(_) => false,
        }
    }

    /// Makes a comparison hold by what stands on its left, else by what stands on its right.
    fn compare(&mut self, operator: Compare, left: Atom, right: Atom) -> bool {
        self.attempt(|planner| planner.compare_symbol(operator, left, right))
            || self.attempt(|planner| planner.compare_symbol(operator.mirrored(), right, left))
    }

    fn compare_symbol(&mut self, operator: Compare, left: Atom, right: Atom) -> bool {
        let Atom::Symbol(symbol) = left else { return false };
        if !self.config.tree().get(symbol).kind.is_logical() {
            return self.compare_value(operator, symbol, right);
        }
        let Atom::Tri(tri) = right else { return false };
        match (operator, tri) {
            (Compare::Equal, Tri::N) | (Compare::Unequal, Tri::Y) => self.lower(symbol, Tri::N),
            (Compare::Equal, tri) => self.lower(symbol, tri) && self.raise(symbol, tri),
            (Compare::Unequal, Tri::N) => self.raise(symbol, Tri::M),
            (Compare::Unequal, Tri::M) => self.raise(symbol, Tri::Y),
            _ => false,
        }
    }

    /// Texts: the other side's, or to differ from it one that the tree names for this symbol.
    /// Numbers: the nearest that will do.
    fn compare_value(&mut self, operator: Compare, symbol: SymbolId, right: Atom) -> bool {
        let other = self.config.evaluator().atom_text(right).to_owned();
        let number = self.config.tree().get(symbol).kind.parse_number(&other);
        let candidates = match (operator, number) {
            (Compare::Equal, _) | (Compare::LessEqual | Compare::GreaterEqual, Some(_)) => vec![other],
            (Compare::Less, Some(number)) => vec![number.saturating_sub(1).to_string()],
            (Compare::Greater, Some(number)) => vec![number.saturating_add(1).to_string()],
            (Compare::Unequal, Some(number)) => {
                [number.saturating_add(1), number.saturating_sub(1)].map(|n| n.to_string()).into()
            }
            (Compare::Unequal, None) => {
                values_named_for(&self.config, symbol).into_iter().filter(|text| *text != other).collect()
            }
            _ => Vec::new(),
        };
        candidates.into_iter().any(|value| self.attempt(|planner| planner.put(symbol, &value)))
    }

    fn show_choice(&mut self, choice: ChoiceId, want: Tri) -> bool {
        let tree = self.config.tree();
        let prompts = tree.choice(choice).nodes.iter().filter_map(|node| tree.node(*node).prompt.as_ref());
        let conditions: Vec<ExprId> = prompts.map(|prompt| prompt.condition).collect();
        conditions.into_iter().any(|condition| self.attempt(|planner| planner.reach(condition, want)))
    }

    /// Makes a symbol visible.
    fn show(&mut self, symbol: SymbolId, want: Tri) -> bool {
        if self.config.visible(symbol) >= want {
            return true;
        }
        let tree = self.config.tree();
        let prompts = tree.get(symbol).nodes.iter().filter_map(|node| tree.node(*node).prompt.as_ref());
        let conditions: Vec<ExprId> = prompts.map(|prompt| prompt.condition).collect();
        conditions.into_iter().any(|condition| {
            self.attempt(|planner| planner.reach(condition, want) && planner.config.visible(symbol) >= want)
        })
    }

    /// Gives a symbol at least this value: by its prompt, a default, or another symbol that selects
    /// it.
    fn raise(&mut self, symbol: SymbolId, want: Tri) -> bool {
        if self.config.tri(symbol) >= want {
            return true;
        }
        if !self.config.tree().get(symbol).kind.is_logical() || !self.busy.insert(symbol) {
            return false;
        }
        let works = self.attempt(|planner| planner.set_at_least(symbol, want))
            || self.attempt(|planner| planner.show(symbol, want) && planner.set_at_least(symbol, want))
            || self.raise_by_default(symbol, want)
            || self.raise_by_others(symbol, want);
        self.busy.remove(&symbol);
        works
    }

    fn raise_by_default(&mut self, symbol: SymbolId, want: Tri) -> bool {
        let defaults = &self.config.tree().get(symbol).defaults;
        let defaults: Vec<(ExprId, ExprId)> = defaults.iter().map(|d| (d.condition, d.value)).collect();
        defaults.into_iter().any(|(condition, value)| {
            self.attempt(|planner| {
                planner.reach(condition, want) && planner.reach(value, want) && planner.config.tri(symbol) >= want
            })
        })
    }

    fn raise_by_others(&mut self, symbol: SymbolId, want: Tri) -> bool {
        // The nearer a selecting symbol is to being on, the fewer steps it takes.
        let tree = self.config.tree();
        let mut others: Vec<(SymbolId, ExprId)> =
            tree.selectors(symbol).chain(tree.impliers(symbol)).map(|(by, line)| (by, line.condition)).collect();
        others.sort_by_key(|(by, condition)| {
            (std::cmp::Reverse(self.config.visible(*by)), std::cmp::Reverse(self.config.holds(*condition)))
        });
        others.into_iter().any(|(by, condition)| {
            self.attempt(|planner| {
                planner.reach(condition, want) && planner.raise(by, want) && planner.config.tri(symbol) >= want
            })
        })
    }

    /// Gives a symbol at most this value: by its prompt, or by taking back who selects it.
    fn lower(&mut self, symbol: SymbolId, most: Tri) -> bool {
        if self.config.tri(symbol) <= most {
            return true;
        }
        if !self.busy.insert(symbol) {
            return false;
        }
        let works = self.attempt(|planner| planner.set_at_most(symbol, most))
            || self.choose_another(symbol, most)
            || self.attempt(|planner| {
                planner.release(symbol, most)
                    && (planner.config.tri(symbol) <= most || planner.set_at_most(symbol, most))
            })
            || self.lower_by_dependency(symbol, most);
        self.busy.remove(&symbol);
        works
    }

    fn choose_another(&mut self, symbol: SymbolId, most: Tri) -> bool {
        let tree = self.config.tree();
        let Some(choice) = tree.get(symbol).choice.filter(|_| most == Tri::N) else { return false };
        let others: Vec<SymbolId> = tree.choice(choice).members.iter().copied().filter(|id| *id != symbol).collect();
        others.into_iter().any(|other| self.attempt(|planner| planner.set(other, Tri::Y)))
    }

    /// Withdraws every symbol that selects or implies this one above `most`.
    fn release(&mut self, symbol: SymbolId, most: Tri) -> bool {
        let tree = self.config.tree();
        let lines = tree.selectors(symbol).chain(tree.impliers(symbol));
        let lines: Vec<(SymbolId, ExprId)> = lines.map(|(by, line)| (by, line.condition)).collect();
        lines.into_iter().all(|(by, condition)| {
            self.config.tri(by).min(self.config.holds(condition)) <= most
                || self.attempt(|planner| planner.lower(by, most))
                || self.attempt(|planner| planner.limit(condition, most))
        })
    }

    /// What has no prompt and a default goes off when that default does not count.
    fn lower_by_dependency(&mut self, symbol: SymbolId, most: Tri) -> bool {
        let defaults = &self.config.tree().get(symbol).defaults;
        let conditions: Vec<ExprId> = defaults.iter().map(|default| default.condition).collect();
        self.attempt(|planner| {
            conditions.into_iter().all(|condition| planner.limit(condition, most)) && planner.config.tri(symbol) <= most
        })
    }
}
