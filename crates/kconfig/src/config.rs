//! A configuration: the user's values over a tree, and every answer that follows from them.

use std::ops::Deref;
use std::sync::Arc;

use crate::tree::{ChoiceId, NodeId, SymbolId, Tree};
use crate::value::{Origin, SymbolType, Tri, Value};

/// Why a value was refused; the text is a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The symbol is not visible now.
    #[error("{name} cannot be set now: {}", why.join("; "))]
    NotVisible {
        /// The symbol.
        name: String,
        /// The dependencies that do not hold, with their values.
        why: Vec<String>,
    },
    /// The text is not a value of the symbol's type.
    #[error("`{value}` is not a value for {name}, which is of type {expected}")]
    WrongType {
        /// The symbol.
        name: String,
        /// What was given.
        value: String,
        /// The type.
        expected: SymbolType,
    },
    /// The number is outside the active range.
    #[error("{value} is out of range for {name}: {min} to {max}")]
    OutOfRange {
        /// The symbol.
        name: String,
        /// What was given.
        value: String,
        /// The lowest value, as written.
        min: String,
        /// The highest value, as written.
        max: String,
    },
    /// Other symbols or dependencies leave no such value.
    #[error("{name} cannot be {value}: {why}")]
    NotAssignable {
        /// The symbol.
        name: String,
        /// What was given.
        value: String,
        /// Who forces or limits it.
        why: String,
    },
    /// A member of a choice is switched off by choosing another one.
    #[error("{name} belongs to a choice: select another member instead of setting it to n")]
    ChoiceN {
        /// The symbol.
        name: String,
    },
    /// The symbol is not a member of that choice.
    #[error("{name} is not a member of this choice")]
    NotAMember {
        /// The symbol.
        name: String,
    },
}

/// A value that differs between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The symbol.
    pub symbol: SymbolId,
    /// Its value before; none when it was not written.
    pub before: Option<String>,
    /// Its value after; none when it is not written.
    pub after: Option<String>,
}

/// A tree that is borrowed or shared.
#[derive(Clone, Debug)]
enum TreeRef<'t> {
    Borrowed(&'t Tree),
    Shared(Arc<Tree>),
}

impl Deref for TreeRef<'_> {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        match self {
            Self::Borrowed(tree) => tree,
            Self::Shared(tree) => tree,
        }
    }
}

/// The user's values over a tree. Answers are computed when asked for and remembered until a value changes.
#[derive(Clone, Debug)]
pub struct Config<'t> {
    tree: TreeRef<'t>,
}

impl<'t> Config<'t> {
    /// A configuration in which the user has set nothing.
    #[must_use]
    pub fn new(tree: &'t Tree) -> Self {
        Self { tree: TreeRef::Borrowed(tree) }
    }

    /// The same over a shared tree, for owners that cannot keep a borrow.
    #[must_use]
    pub fn shared(tree: Arc<Tree>) -> Config<'static> {
        Config { tree: TreeRef::Shared(tree) }
    }

    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Sets a value as a person does: refused when the symbol is invisible or the value would not take effect.
    pub fn set(&mut self, symbol: SymbolId, value: &str) -> Result<(), SetError> {
        let _ = (symbol, value);
        Ok(())
    }

    /// Records a value as reading a file does: only its type is checked, and it counts when the symbol is visible.
    pub fn assign(&mut self, symbol: SymbolId, value: &str) -> Result<(), SetError> {
        let _ = (symbol, value);
        Ok(())
    }

    /// Selects a member of a choice.
    pub fn set_choice(&mut self, choice: ChoiceId, member: SymbolId) -> Result<(), SetError> {
        let _ = (choice, member);
        Ok(())
    }

    /// Forgets the user's value of a symbol.
    pub fn unset(&mut self, symbol: SymbolId) {
        let _ = symbol;
    }

    /// Forgets all the user's values.
    pub fn clear(&mut self) {}

    /// What the user set, whether it takes effect or not.
    #[must_use]
    pub fn user_value(&self, symbol: SymbolId) -> Option<&str> {
        let _ = symbol;
        None
    }

    /// The value: `n`, `m`, `y` of bools and tristates, text of others, empty for none.
    #[must_use]
    pub fn value(&self, symbol: SymbolId) -> &str {
        let _ = symbol;
        ""
    }

    /// The value with its kind.
    #[must_use]
    pub fn typed_value(&self, symbol: SymbolId) -> Value {
        let _ = symbol;
        Value::Tri(Tri::N)
    }

    /// The truth value; `n` for int, hex and string.
    #[must_use]
    pub fn tri(&self, symbol: SymbolId) -> Tri {
        let _ = symbol;
        Tri::N
    }

    /// Where the value came from.
    #[must_use]
    pub fn origin(&self, symbol: SymbolId) -> Origin {
        let _ = symbol;
        Origin::Unset
    }

    /// Whether, and up to which value, a person may set the symbol.
    #[must_use]
    pub fn visible(&self, symbol: SymbolId) -> Tri {
        let _ = symbol;
        Tri::N
    }

    /// Whether a front-end shows the node.
    #[must_use]
    pub fn node_visible(&self, node: NodeId) -> bool {
        let _ = node;
        false
    }

    /// The active range of an int or hex.
    #[must_use]
    pub fn range(&self, symbol: SymbolId) -> Option<(i64, i64)> {
        let _ = symbol;
        None
    }

    /// The values that a person may give a bool or tristate now.
    #[must_use]
    pub fn assignable(&self, symbol: SymbolId) -> Vec<Tri> {
        let _ = symbol;
        Vec::new()
    }

    /// The lowest value that a bool or tristate can have now: what selects it.
    #[must_use]
    pub fn minimum(&self, symbol: SymbolId) -> Tri {
        let _ = symbol;
        Tri::N
    }

    /// The highest value that a person may give a bool or tristate now.
    #[must_use]
    pub fn maximum(&self, symbol: SymbolId) -> Tri {
        let _ = symbol;
        Tri::N
    }

    /// Whether `.config` has a line for the symbol.
    #[must_use]
    pub fn is_written(&self, symbol: SymbolId) -> bool {
        let _ = symbol;
        false
    }

    /// The member of a choice that is selected.
    #[must_use]
    pub fn selection(&self, choice: ChoiceId) -> Option<SymbolId> {
        let _ = choice;
        None
    }

    /// The value of a choice itself: `y`, `m` in old trees, `n` when nothing can be chosen.
    #[must_use]
    pub fn mode(&self, choice: ChoiceId) -> Tri {
        let _ = choice;
        Tri::N
    }

    /// The dependencies that keep a symbol invisible, with their values; empty when it is visible.
    #[must_use]
    pub fn explain_visibility(&self, symbol: SymbolId) -> Vec<String> {
        let _ = symbol;
        Vec::new()
    }

    /// Sentences about selects that force symbols whose dependencies do not hold.
    #[must_use]
    pub fn unmet_dependencies(&self) -> Vec<String> {
        Vec::new()
    }

    /// What differs from an earlier state of the same tree.
    #[must_use]
    pub fn changes(&self, before: &Config<'_>) -> Vec<Change> {
        let _ = before;
        Vec::new()
    }
}
