//! A line of a menu.

use kconfig::{ChoiceId, NodeId, SymbolId, Tri};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that are independent of each other")]
pub(super) struct Row {
    pub(super) node: NodeId,
    /// How deep it is indented.
    pub(super) depth: usize,
    pub(super) kind: RowKind,
    pub(super) prompt: String,
    /// What is shown beside the prompt.
    pub(super) value: String,
    /// Whether there is a menu behind it.
    pub(super) submenu: bool,
    /// Whether the user may change it now.
    pub(super) changeable: bool,
    /// Whether its value is not the default.
    pub(super) custom: bool,
    /// Whether it, or something in its menu, is wrong.
    pub(super) wrong: bool,
    /// What else than the default it differs from.
    pub(super) deviation: Option<Deviation>,
    /// Whether it has no answer and the file does not name it.
    pub(super) new: bool,
    /// Whether it is shown only because everything is.
    pub(super) hidden: bool,
}

/// What a value differs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deviation {
    /// What the running cluster was made with.
    Running,
    /// The profile that the answers began with.
    Profile,
}

/// What a line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Menu,
    Comment,
    /// A bool or tristate.
    Switch(SymbolId, Tri),
    /// An int, hex or string.
    Text(SymbolId),
    Choice(ChoiceId),
}

impl RowKind {
    /// The symbol, if the line has one.
    pub(super) const fn symbol(self) -> Option<SymbolId> {
        match self {
            Self::Switch(symbol, _) | Self::Text(symbol) => Some(symbol),
            Self::Menu | Self::Comment | Self::Choice(_) => None,
        }
    }
}
