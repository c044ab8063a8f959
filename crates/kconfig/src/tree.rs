//! The tree: files, menu nodes, symbols and choices in arenas, immutable once loaded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::expr::{Atom, Expr, ExprId, Exprs, TextId};
use crate::source::{Env, FastHash, FileId, Files, Sources, Span};
use crate::value::SymbolType;

macro_rules! arena_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            pub(crate) fn new(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }

            /// The position in the tree's arena.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

arena_id!(
    /// A symbol of one tree.
    SymbolId
);
arena_id!(
    /// A menu node of one tree.
    NodeId
);
arena_id!(
    /// A choice of one tree.
    ChoiceId
);

/// `#: key = value` directly above an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The word before `=`.
    pub key: String,
    /// Everything after `=`, trimmed; empty when there is no `=`.
    pub value: String,
    /// The whole comment.
    pub span: Span,
}

/// What a menu node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// `menu`, and the root.
    Menu,
    /// `menuconfig`.
    Menuconfig,
    /// `config`.
    Config,
    /// `choice`.
    Choice,
    /// `comment`.
    Comment,
    /// `if`: in the arena only, its children have moved to its parent.
    If,
}

/// The text that a person sees, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Its own condition together with all it inherits.
    pub condition: ExprId,
    /// The quoted text in the source.
    pub span: Span,
}

/// One place in the menus.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// The symbol, for `config` and `menuconfig`.
    pub symbol: Option<SymbolId>,
    /// The choice, for `choice`.
    pub choice: Option<ChoiceId>,
    /// What to show; a node without one is invisible.
    pub prompt: Option<Prompt>,
    /// `visible if`, of menus.
    pub visible_if: ExprId,
    /// `depends on` of this node together with all it inherits.
    pub depends: ExprId,
    /// The help text, its common indentation removed.
    pub help: Option<String>,
    /// In the order of the files; symbols that depend on the one before them are its children.
    pub children: Vec<NodeId>,
    /// None for the root.
    pub parent: Option<NodeId>,
    /// The line that opens the entry.
    pub span: Span,
    /// Structured comments directly above.
    pub comments: Vec<Annotation>,
}

/// `default VALUE if CONDITION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultValue {
    /// The value.
    pub value: ExprId,
    /// Its own condition together with all it inherits.
    pub condition: ExprId,
    /// Where the definition is in the menus.
    pub node: NodeId,
    /// The value in the source.
    pub span: Span,
}

/// `select TARGET if CONDITION` or `imply TARGET if CONDITION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The symbol that is selected or implied.
    pub target: SymbolId,
    /// Its own condition together with all it inherits.
    pub condition: ExprId,
    /// Where the definition is in the menus.
    pub node: NodeId,
    /// The target in the source.
    pub span: Span,
}

/// `range LOW HIGH if CONDITION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeLimit {
    /// The lowest value.
    pub low: Atom,
    /// The highest value.
    pub high: Atom,
    /// Its own condition together with all it inherits.
    pub condition: ExprId,
    /// Where the definition is in the menus.
    pub node: NodeId,
    /// Both limits in the source.
    pub span: Span,
}

/// A configuration symbol, or a name that is referenced but never defined (no nodes, type unknown).
#[derive(Clone, Debug)]
pub struct Symbol {
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub kind: SymbolType,
    /// All definitions, in order.
    pub nodes: Vec<NodeId>,
    /// All defaults, in order; the first whose condition holds counts.
    pub defaults: Vec<DefaultValue>,
    /// What it forces.
    pub selects: Vec<Selection>,
    /// What it suggests.
    pub implies: Vec<Selection>,
    /// All ranges, in order; the first whose condition holds counts.
    pub ranges: Vec<RangeLimit>,
    /// Structured comments of all definitions.
    pub annotations: Vec<Annotation>,
    /// The choice that it is a member of.
    pub choice: Option<ChoiceId>,
    /// `depends on` of all definitions, joined by or.
    pub direct_dependency: ExprId,
    /// Who selects it, as an expression.
    pub selected_by: ExprId,
    /// Who implies it, as an expression.
    pub implied_by: ExprId,
    /// `option env`: the variable whose value it has.
    pub env: Option<String>,
    /// `transitional`: read from old files, never written.
    pub transitional: bool,
}

/// A choice: at most one of its members is `y`.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The name, which few have.
    pub name: Option<Arc<str>>,
    /// Bool, or tristate in old trees.
    pub kind: SymbolType,
    /// All definitions, in order.
    pub nodes: Vec<NodeId>,
    /// The members, in order.
    pub members: Vec<SymbolId>,
    /// Which member is selected when the user has not said.
    pub defaults: Vec<DefaultValue>,
    /// `optional`: selecting nothing is allowed.
    pub optional: bool,
}

/// A loaded Kconfig tree.
#[derive(Debug)]
pub struct Tree {
    pub(crate) sources: Arc<Sources>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) names: HashMap<Arc<str>, SymbolId, FastHash>,
    pub(crate) exprs: Exprs,
    pub(crate) modules: Option<SymbolId>,
    pub(crate) warnings: Diagnostics,
}

impl Tree {
    /// Reads the tree whose top file is `root`.
    pub fn load(root: &str, files: &dyn Files, env: &Env<'_>) -> Result<Self, Diagnostics> {
        let _ = (root, files, env);
        Err(Diagnostics::default())
    }

    /// Findings that do not stop the tree from being used.
    #[must_use]
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// The top menu; its prompt is the text of `mainmenu`.
    #[must_use]
    pub fn root(&self) -> NodeId {
        NodeId::new(0)
    }

    /// All nodes below the root in the order of the menus, each before its children.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let mut stack: Vec<NodeId> = self.node(self.root()).children.iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let id = stack.pop()?;
            let node = self.node(id);
            stack.extend(node.children.iter().rev());
            Some((id, node))
        })
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The defined symbol of this name.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<SymbolId> {
        self.names.get(name).copied().filter(|id| !self.get(*id).nodes.is_empty())
    }

    /// A symbol's definition.
    #[must_use]
    pub fn get(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.index()]
    }

    /// All defined symbols, in the order in which the files first name them.
    pub fn symbols(&self) -> impl Iterator<Item = (SymbolId, &Symbol)> {
        self.symbols
            .iter()
            .enumerate()
            .filter(|(_, symbol)| !symbol.nodes.is_empty())
            .map(|(i, s)| (SymbolId::new(i), s))
    }

    /// One choice.
    #[must_use]
    pub fn choice(&self, id: ChoiceId) -> &Choice {
        &self.choices[id.index()]
    }

    /// All choices.
    pub fn choices(&self) -> impl Iterator<Item = (ChoiceId, &Choice)> {
        self.choices.iter().enumerate().map(|(i, choice)| (ChoiceId::new(i), choice))
    }

    /// The symbol that allows `m`, if the tree has one.
    #[must_use]
    pub fn modules(&self) -> Option<SymbolId> {
        self.modules
    }

    /// One node of an expression.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs.get(id)
    }

    /// A constant text.
    #[must_use]
    pub fn text(&self, id: TextId) -> &str {
        self.exprs.text(id)
    }

    /// An expression as a person would write it.
    #[must_use]
    pub fn show(&self, id: ExprId) -> String {
        let _ = id;
        String::new()
    }

    /// The path of a file.
    #[must_use]
    pub fn path(&self, file: FileId) -> &str {
        self.sources.path(file)
    }

    /// `file:line:col` of a place.
    #[must_use]
    pub fn location(&self, span: Span) -> String {
        self.sources.location(span)
    }
}
