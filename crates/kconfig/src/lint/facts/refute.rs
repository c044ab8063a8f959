//! Values under which a condition fails though everything assumed holds: the proof that something can be off.

use super::compare::Verdict;
use super::{ANY, Assignment, Facts, N, Set, Y};
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::SymbolId;

impl Facts<'_> {
    /// Values under which a condition does not hold though all assumptions do; none when that is not certain.
    pub(in crate::lint) fn refute(&mut self, goal: ExprId) -> Option<Assignment> {
        let values = self.find_refutation(goal, true)?;
        let mark = self.mark();
        let works = self.assume_values(&values) && self.clauses_have_ways() && !self.possible(goal, true);
        self.undo(mark);
        works.then_some(values)
    }

    /// Whether every clause has a way that leads to no contradiction.
    fn clauses_have_ways(&mut self) -> bool {
        (0..self.clauses.len()).all(|index| {
            let ways = self.clauses[index].clone();
            ways.into_iter().any(|way| {
                let mark = self.mark();
                for (expr, positive) in way {
                    self.take(expr, positive);
                }
                self.settle();
                let works = self.consistent;
                self.undo(mark);
                works
            })
        })
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
