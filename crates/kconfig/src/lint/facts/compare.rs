//! What comparisons say about the values of symbols.

use super::{ANY, Facts, M, N, Set, Y};
use crate::expr::{Atom, Compare};
use crate::tree::{SymbolId, Tree};
use crate::value::Tri;

impl Facts<'_> {
    /// What a comparison says.
    pub(super) fn comparison(&self, operator: Compare, left: Atom, right: Atom) -> Verdict {
        let (operator, left, right) = match (left, right) {
            (Atom::Tri(_) | Atom::Text(_), Atom::Symbol(_)) => (swap(operator), right, left),
            _ => (operator, left, right),
        };
        match (left, right) {
            (Atom::Symbol(symbol), Atom::Tri(tri)) => self.compare_symbol(operator, symbol, tri),
            (Atom::Symbol(left), Atom::Symbol(right)) if self.is_logical(left) && self.is_logical(right) => {
                let other = self.domain(right);
                let lowest = other & other.wrapping_neg();
                let highest = [Y, M, N].into_iter().find(|bit| other & bit != 0).unwrap_or(N);
                match operator {
                    Compare::Equal => Verdict::Within(left, other),
                    Compare::GreaterEqual => Verdict::Within(left, ANY & !(lowest.max(1) - 1)),
                    Compare::LessEqual => Verdict::Within(left, (highest - 1) | highest),
                    _ => Verdict::Maybe,
                }
            }
            (Atom::Symbol(symbol), Atom::Text(text))
                if self.tree.get(symbol).kind.is_logical() && self.tree.symbol_is_defined(symbol) =>
            {
                // A bool is never anything but `n`, `m` and `y`; order is left alone.
                match (operator, Tri::parse(self.tree.text(text))) {
                    (Compare::Equal, None) => Verdict::Never,
                    _ => Verdict::Maybe,
                }
            }
            _ => Verdict::Maybe,
        }
    }

    fn is_logical(&self, symbol: SymbolId) -> bool {
        self.tree.get(symbol).kind.is_logical() && self.tree.symbol_is_defined(symbol)
    }

    fn compare_symbol(&self, operator: Compare, symbol: SymbolId, tri: Tri) -> Verdict {
        let definition = self.tree.get(symbol);
        if !definition.kind.is_logical() || definition.nodes.is_empty() {
            // An undefined name stands for itself as text.
            let nowhere = definition.nodes.is_empty() && self.domain(symbol) == N;
            return if nowhere && operator == Compare::Equal { Verdict::Never } else { Verdict::Maybe };
        }
        let bit = match tri {
            Tri::N => N,
            Tri::M => M,
            Tri::Y => Y,
        };
        Verdict::Symbol(
            symbol,
            match operator {
                Compare::Equal => bit,
                Compare::Unequal => ANY & !bit,
                Compare::Less => bit - 1,
                Compare::LessEqual => (bit - 1) | bit,
                Compare::Greater => ANY & !((bit - 1) | bit),
                Compare::GreaterEqual => ANY & !(bit - 1),
            },
        )
    }
}

/// What a comparison demands.
pub(super) enum Verdict {
    /// That this symbol has one of these values.
    Symbol(SymbolId, Set),
    /// That, and more than this knows.
    Within(SymbolId, Set),
    /// What is impossible.
    Never,
    /// Unknown.
    Maybe,
}

impl Tree {
    fn symbol_is_defined(&self, symbol: SymbolId) -> bool {
        !self.get(symbol).nodes.is_empty()
    }
}

/// The same comparison with its sides exchanged.
const fn swap(operator: Compare) -> Compare {
    match operator {
        Compare::Less => Compare::Greater,
        Compare::LessEqual => Compare::GreaterEqual,
        Compare::Greater => Compare::Less,
        Compare::GreaterEqual => Compare::LessEqual,
        same => same,
    }
}
