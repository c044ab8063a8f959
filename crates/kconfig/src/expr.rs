//! Expressions: conditions and default values, shared in one arena per tree.
//!
//! Equal expressions have the same id, so that comparing two conditions is comparing two numbers.

use std::collections::HashMap;

use crate::source::FastHash;
use crate::tree::{ChoiceId, SymbolId};
use crate::value::Tri;

/// An expression of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(u32);

/// A constant text of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(u32);

/// What comparisons compare and expressions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// `n`, `m` or `y`.
    Tri(Tri),
    /// A quoted text or a number.
    Text(TextId),
    /// A symbol, defined or not.
    Symbol(SymbolId),
    /// The mode of a choice: not written by people, but members of a choice depend on it.
    Choice(ChoiceId),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Compare {
    /// As written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// Whether the operator holds for this order of its operands.
    #[must_use]
    pub const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// One node of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant, a symbol or a choice.
    Atom(Atom),
    /// `!a`
    Not(ExprId),
    /// `a && b`
    And(ExprId, ExprId),
    /// `a || b`
    Or(ExprId, ExprId),
    /// `a = b` and its relatives.
    Compare(Compare, Atom, Atom),
}

impl ExprId {
    /// The constant `y`: no condition.
    pub const YES: Self = Self(0);
    /// The constant `n`.
    pub const NO: Self = Self(1);
}

/// The arena of a tree's expressions and constant texts.
#[derive(Debug, Default)]
pub(crate) struct Exprs {
    list: Vec<Expr>,
    ids: HashMap<Expr, ExprId, FastHash>,
    texts: Vec<std::sync::Arc<str>>,
    text_ids: HashMap<std::sync::Arc<str>, TextId, FastHash>,
}

impl Exprs {
    pub(crate) fn get(&self, id: ExprId) -> Expr {
        self.list[id.0 as usize]
    }

    pub(crate) fn text(&self, id: TextId) -> &str {
        &self.texts[id.0 as usize]
    }
}
