//! Configurations in which a select breaks what its target depends on: the proof that something can
//! be off.

use super::compare::Verdict;
use super::{ANY, Assignment, Facts, N, Set, Trial, Y, has_prompt};
use crate::config::Config;
use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::tree::{ChoiceId, Selection, SymbolId};
use crate::value::Tri;

/// So many ways are tried before a select is called harmless.
const MAX_TRIES: usize = 64;
/// What all these ways together may cost, in clauses looked at and answers given for each symbol of
/// the tree: so that looking for proofs takes time in proportion to the tree.
pub(super) const WORK_PER_SYMBOL: usize = 250;

impl Trial<'_> {
    /// Forgets what was said; of a choice's member, about the whole choice.
    fn take_back(&mut self) {
        self.config.forget_findings();
        for symbol in self.said.drain(..) {
            self.config.unset(symbol);
        }
    }
}

impl<'t> Facts<'t> {
    /// Values under which what a select's target depends on does not hold though all assumptions
    /// do; none when no configuration is found that shows it.
    pub(in crate::lint) fn refute(&mut self, by: SymbolId, selection: &Selection) -> Option<Assignment> {
        let goal = self.tree.get(selection.target).direct_dependency;
        let values = self.find_refutation(goal, true)?;
        let mark = self.mark();
        let works = self.assume_values(&values)
            && !self.possible(goal, true)
            && self.find_configuration(0, &mut { MAX_TRIES }, &|config| {
                config.tri(by).min(config.holds(selection.condition)) > config.holds(goal)
            });
        self.undo(mark);
        works.then_some(values)
    }

    /// Whether a configuration in which one way of each clause from a position on holds, also of
    /// the clauses that these ways bring, shows what it should. What takes too long to find is not
    /// certain.
    fn find_configuration(&mut self, from: usize, tries: &mut usize, shows: &dyn Fn(&Config<'_>) -> bool) -> bool {
        let is_open = |index: &usize| !self.clauses[*index].ways.iter().any(|way| self.is_implied_way(way));
        let Some(index) = (from..self.clauses.len()).find(is_open) else { return self.shows(shows) };
        let ways = self.clauses[index].ways.clone();
        ways.into_iter().any(|way| {
            if *tries == 0 || self.work == 0 {
                return false;
            }
            *tries -= 1;
            self.work = self.work.saturating_sub(1 + self.clauses.len());
            let mark = self.mark();
            for (expr, positive) in way {
                self.take(expr, positive);
            }
            self.settle();
            let found = self.consistent && self.find_configuration(index + 1, tries, shows);
            self.undo(mark);
            found
        })
    }

    /// Whether the configuration that is known so far shows what it should.
    fn shows(&mut self, shows: &dyn Fn(&Config<'_>) -> bool) -> bool {
        let mut trial = self.trial.take().unwrap_or_else(|| Trial { config: Config::new(self.tree), said: Vec::new() });
        trial.take_back();
        let cost = self.configure(&mut trial);
        self.work = self.work.saturating_sub(cost);
        let found = shows(&trial.config);
        self.trial = Some(trial);
        found
    }

    /// What a user would answer to reach the known facts. Whether these answers do reach them is
    /// for the evaluator to say: what defaults make of it all is not among the facts. Gives what
    /// this counts as work.
    fn configure(&self, trial: &mut Trial<'t>) -> usize {
        let Trial { config, said } = trial;
        let known = self.trail.iter().map(|(symbol, _)| *symbol).filter(|id| has_prompt(self.tree, self.tree.get(*id)));
        let (members, alone): (Vec<SymbolId>, _) = known.partition(|id| self.tree.get(*id).choice.is_some());
        // Without this `m` counts as `y`. A refused answer shows in the values.
        if let Some(modules) = self.tree.modules().filter(|modules| self.domain(*modules) & Y != 0) {
            config.assign(modules, Tri::Y.as_str()).ok();
            said.push(modules);
        }
        for id in alone {
            let domain = self.domain(id);
            let value = [(N, Tri::N), (Y, Tri::Y)].into_iter().find(|(set, _)| domain & set != 0);
            config.assign(id, value.map_or(Tri::M, |(_, value)| value).as_str()).ok();
            said.push(id);
        }
        for (symbol, text) in self.given.iter().filter_map(|(expr, positive)| self.find_text(*expr, *positive)) {
            config.assign(symbol, text).ok();
            said.push(symbol);
        }
        let members_of = |choice: &ChoiceId| self.tree.choice(*choice).members.len();
        let mut cost = said.len();
        cost += said
            .iter()
            .filter_map(|symbol| self.tree.get(*symbol).choice)
            .map(|choice| members_of(&choice))
            .sum::<usize>();
        let mut choices: Vec<ChoiceId> = members.into_iter().filter_map(|id| self.tree.get(id).choice).collect();
        // Each member counts, and asks for the same as its neighbours.
        cost += choices.iter().map(|choice| 1 + members_of(choice)).sum::<usize>();
        choices.dedup();
        // One that is known to be on, or, where one is known to be off, another one.
        for choice in choices {
            let members = self.tree.choice(choice).members.iter().copied();
            let mut open: Vec<SymbolId> = members.filter(|member| self.domain(*member) != N).collect();
            open.sort_by_key(|member| self.domain(*member) & N != 0);
            said.extend(open.iter().take(1));
            open.into_iter().find(|member| config.set_choice(choice, *member).is_ok());
        }
        cost
    }

    /// The number or text with which a comparison holds, where it names one.
    fn find_text(&self, expr: ExprId, positive: bool) -> Option<(SymbolId, &'t str)> {
        let Expr::Compare(operator, left, right) = self.tree.expr(expr) else { return None };
        let operator = if positive { operator } else { operator.inverse() };
        match (left, right) {
            (Atom::Symbol(symbol), Atom::Text(text)) | (Atom::Text(text), Atom::Symbol(symbol)) => {
                let includes = matches!(operator, Compare::Equal | Compare::LessEqual | Compare::GreaterEqual);
                includes.then(|| (symbol, self.tree.text(text)))
            }
            _ => None,
        }
    }

    fn find_refutation(&self, expr: ExprId, positive: bool) -> Option<Assignment> {
        let all = |terms: Vec<ExprId>| {
            terms.into_iter().try_fold(Assignment::new(), |mut values, term| {
                for (symbol, set) in self.find_refutation(term, positive)? {
                    if values.iter().any(|(known, before)| *known == symbol && before & set == 0) {
                        return None;
                    }
                    values.push((symbol, set));
                }
                Some(values)
            })
        };
        let any = |terms: Vec<ExprId>| terms.into_iter().find_map(|term| self.find_refutation(term, positive));
        match self.tree.expr(expr) {
            Expr::Not(inner) => self.find_refutation(inner, !positive),
            Expr::And(..) if positive => any(self.tree.conjuncts(expr)),
            Expr::Or(..) if !positive => any(self.tree.disjuncts(expr)),
            Expr::And(..) => all(self.tree.conjuncts(expr)),
            Expr::Or(..) => all(self.tree.disjuncts(expr)),
            Expr::Atom(Atom::Symbol(symbol)) => self.move_out(symbol, if positive { N } else { Y }),
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { operator.inverse() }, left, right) {
                    Verdict::Symbol(symbol, set) => self.move_out(symbol, ANY & !set),
                    Verdict::Never => Some(Assignment::new()),
                    Verdict::Maybe | Verdict::Within(..) => None,
                }
            }
            Expr::Atom(Atom::Choice(_)) => None,
            Expr::Atom(_) => (!self.possible(expr, positive)).then(Assignment::new),
        }
    }

    /// A value of the set that the symbol is certain to be able to take.
    fn move_out(&self, id: SymbolId, set: Set) -> Option<Assignment> {
        let domain = self.domain(id);
        if domain & !set == 0 {
            return Some(Assignment::new());
        }
        if domain & set & N != 0 && self.can_be_off(id) {
            return Some(vec![(id, N)]);
        }
        (domain & set & Y != 0 && self.can_be_on(id)).then(|| vec![(id, Y)])
    }

    fn can_be_off(&self, id: SymbolId) -> bool {
        let symbol = self.tree.get(id);
        if let Some(choice) = symbol.choice {
            return self.tree.choice(choice).members.len() > 1;
        }
        if symbol.nodes.is_empty() {
            return false;
        }
        let prompts = symbol.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref());
        if prompts.clone().next().is_some() {
            return prompts.clone().any(|prompt| self.possible(prompt.condition, true));
        }
        let forced = |expr: ExprId| self.possible(expr, true);
        !symbol.defaults.iter().any(|default| forced(default.condition) && forced(default.value))
            && !self.implied(symbol.selected_by, true)
            && !self.implied(symbol.implied_by, true)
    }

    fn can_be_on(&self, id: SymbolId) -> bool {
        let nodes = self.tree.get(id).nodes.iter();
        nodes
            .filter_map(|node| self.tree.node(*node).prompt.as_ref())
            .any(|prompt| self.implied(prompt.condition, true))
    }
}
