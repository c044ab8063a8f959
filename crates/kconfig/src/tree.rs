//! The tree: files, menu nodes, symbols and choices in arenas, immutable once loaded.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use thin_vec::ThinVec;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dialect::{Detected, Dialect, Rule};
use crate::excerpt::Excerpt;
use crate::expr::{Atom, Expr, ExprId, Exprs, TextId};
use crate::names::Names;
use crate::source::{FileId, Sources, Span};
use crate::syntax::reader::Reader;
use crate::value::SymbolType;

pub use crate::ids::{ChoiceId, NodeId, SymbolId};

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

/// Where a help text starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HelpPlace {
    pub file: FileId,
    /// In bytes of the file's text.
    pub offset: u32,
}

/// The text that users see, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: Excerpt,
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
    /// Where its help text is; [`Tree::help`] reads it.
    pub(crate) help: Option<HelpPlace>,
    /// In the order of the files; symbols that depend on the one before them are its children.
    pub children: ThinVec<NodeId>,
    /// None for the root.
    pub parent: Option<NodeId>,
    /// The line that opens the entry.
    pub span: Span,
    /// Structured comments directly above.
    pub comments: ThinVec<Annotation>,
    /// What the entry itself says, before anything was inherited.
    pub(crate) own: Own,
}

/// The entry as written, for explanations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// The block around it in the files.
    pub parent: Option<NodeId>,
    /// Its `depends on` lines, or the condition of an `if`: where they are among those of the tree.
    pub depends: Range<u32>,
}

/// All `depends on` lines of a tree as written, each with its place; those of one entry follow each
/// other.
pub(crate) type WrittenDependencies = Vec<(ExprId, Span)>;

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
    pub name: Excerpt,
    /// The type.
    pub kind: SymbolType,
    /// All definitions, in order.
    pub nodes: SmallVec<[NodeId; 4]>,
    /// All defaults, in order; the first whose condition holds counts.
    pub defaults: ThinVec<DefaultValue>,
    /// What it forces.
    pub selects: ThinVec<Selection>,
    /// What it suggests.
    pub implies: ThinVec<Selection>,
    /// All ranges, in order; the first whose condition holds counts.
    pub ranges: ThinVec<RangeLimit>,
    /// Structured comments of all definitions.
    pub annotations: ThinVec<Annotation>,
    /// The choice that it is a member of.
    pub choice: Option<ChoiceId>,
    /// `depends on` of all definitions that have one, joined by or: as in the C tools, a definition
    /// without one does not count.
    pub direct_dependency: ExprId,
    /// Who selects it, as an expression.
    pub selected_by: ExprId,
    /// Who implies it, as an expression.
    pub implied_by: ExprId,
    /// `option env`: the variable whose value it has.
    pub env: Option<Box<str>>,
    /// `transitional`: read from old files, never written.
    pub transitional: bool,
    /// `option allnoconfig_y`, of old trees: not even allnoconfig switches it off.
    pub allnoconfig_y: bool,
    /// Who selects it: the symbol and the position in its `selects`.
    pub(crate) selectors: ThinVec<(SymbolId, u32)>,
    /// Who implies it.
    pub(crate) impliers: ThinVec<(SymbolId, u32)>,
    /// Where it was first named.
    pub(crate) first_reference: Option<Span>,
}

impl Symbol {
    /// A name that nothing is known about yet.
    pub(crate) fn named(name: Excerpt, span: Span) -> Self {
        Self {
            name,
            kind: SymbolType::Unknown,
            nodes: SmallVec::new(),
            defaults: ThinVec::new(),
            selects: ThinVec::new(),
            implies: ThinVec::new(),
            ranges: ThinVec::new(),
            annotations: ThinVec::new(),
            choice: None,
            direct_dependency: ExprId::YES,
            selected_by: ExprId::NO,
            implied_by: ExprId::NO,
            env: None,
            transitional: false,
            allnoconfig_y: false,
            selectors: ThinVec::new(),
            impliers: ThinVec::new(),
            first_reference: Some(span),
        }
    }
}

/// A choice: at most one of its members is `y`.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The name, which few have.
    pub name: Option<Excerpt>,
    /// Bool, or tristate in old trees.
    pub kind: SymbolType,
    /// All definitions, in order.
    pub nodes: ThinVec<NodeId>,
    /// The members, in order.
    pub members: ThinVec<SymbolId>,
    /// Which member is selected when the user has not said.
    pub defaults: ThinVec<DefaultValue>,
    /// `optional`: selecting nothing is allowed.
    pub optional: bool,
    /// How many symbols the files name before its first definition.
    pub(crate) after: u32,
}

impl Choice {
    pub(crate) fn has_mode(&self, dialect: Dialect) -> bool {
        dialect.has(Rule::ChoiceModes) || self.optional || self.kind == SymbolType::Tristate
    }
}

/// A loaded Kconfig tree.
#[derive(Debug)]
pub struct Tree {
    pub(crate) sources: Arc<Sources>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) names: Names,
    pub(crate) exprs: Exprs,
    pub(crate) modules: Option<SymbolId>,
    pub(crate) detected: Detected,
    /// What was found while reading.
    pub(crate) findings: Vec<Diagnostic>,
    /// That and what is doubtful about the tree as a whole, once asked for.
    pub(crate) warnings: OnceLock<Diagnostics>,
    /// Known once evaluation has to go deep.
    pub(crate) dependencies: OnceLock<Dependencies>,
    pub(crate) written: WrittenDependencies,
}

/// What has to be known before what: symbols are numbered as such, choices after them.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    pub edges: Vec<u32>,
    /// For each vertex where its edges start, with the end of the last one behind.
    pub starts: Vec<u32>,
}

impl Dependencies {
    pub(crate) fn of(&self, vertex: usize) -> &[u32] {
        &self.edges[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}

impl Tree {
    /// Findings that do not stop the tree from being used.
    #[must_use]
    pub fn warnings(&self) -> &Diagnostics {
        self.warnings.get_or_init(|| Diagnostics::new(self.find_warnings(&|_| false), Arc::clone(&self.sources)))
    }

    /// The same in order, but for undefined names that are known elsewhere.
    pub(crate) fn find_warnings(&self, is_known: &dyn Fn(&str) -> bool) -> Vec<Diagnostic> {
        let mut findings = self.findings.clone();
        findings.extend(self.check(is_known));
        findings.sort_by_key(|finding| finding.labels.first().map(|label| label.span));
        findings
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

    /// The symbols of the menus in their order, each where it stands first.
    pub(crate) fn symbols_in_menus(&self) -> impl Iterator<Item = SymbolId> {
        let mut seen = vec![false; self.symbols.len()];
        self.nodes()
            .filter_map(|(_, node)| node.symbol)
            .filter(move |symbol| !std::mem::replace(&mut seen[symbol.index()], true))
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The defined symbol of this name.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<SymbolId> {
        self.names.find_symbol(name).filter(|id| !self.get(*id).nodes.is_empty())
    }

    /// A node's help text, its common indentation and the blank lines around it removed.
    #[must_use]
    pub fn help(&self, id: NodeId) -> Option<String> {
        Some(self.raw_help(id)?.trim_matches('\n').to_owned())
    }

    /// The same with the line ends behind it that the C tools keep.
    pub(crate) fn raw_help(&self, id: NodeId) -> Option<String> {
        let place = self.node(id).help?;
        let text = self.sources.text(place.file).get(place.offset as usize..)?;
        Some(Reader::new(place.file, text, self.dialect()).help())
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

    /// Symbols that a choice has as its default and that are none of its members.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = SymbolId> {
        self.choices.iter().flat_map(|choice| {
            choice.defaults.iter().filter_map(|default| match self.exprs.get(default.value) {
                Expr::Atom(Atom::Symbol(symbol)) if !choice.members.contains(&symbol) => Some(symbol),
                _ => None,
            })
        })
    }

    /// The symbol that allows `m`, if the tree has one.
    #[must_use]
    pub fn modules(&self) -> Option<SymbolId> {
        self.modules
    }

    /// Whether a choice has a mode of its own, as all had up to Linux 6.10, and as tristate and
    /// optional ones still need.
    #[must_use]
    pub fn has_mode(&self, id: ChoiceId) -> bool {
        self.choice(id).has_mode(self.dialect())
    }

    /// Whose rules count.
    #[must_use]
    #[inline]
    pub fn dialect(&self) -> Dialect {
        self.detected.dialect
    }

    /// The same, and why it is those.
    #[must_use]
    pub fn detected(&self) -> &Detected {
        &self.detected
    }

    /// One node of an expression.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs.get(id)
    }

    /// A constant text.
    #[must_use]
    pub fn text(&self, id: TextId) -> &str {
        self.names.text(id)
    }

    /// The paths of all files, in the order in which they were read.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.sources.paths()
    }

    /// The path of a file.
    #[must_use]
    pub fn path(&self, file: FileId) -> &str {
        self.sources.path(file)
    }

    /// The text at a place.
    pub(crate) fn source_text(&self, span: Span) -> &str {
        self.sources.slice(span)
    }

    /// `file:line:col` of a place.
    #[must_use]
    pub fn location(&self, span: Span) -> String {
        self.sources.location(span)
    }

    /// Whether a condition names a symbol.
    #[must_use]
    pub fn mentions(&self, expr: ExprId, symbol: SymbolId) -> bool {
        self.exprs.any_atom(expr, |atom| atom == Atom::Symbol(symbol))
    }
}

/// For tools beside the evaluator: the tree as written, and which symbols refer to which.
impl Tree {
    /// All entries in the order of the files, `if` blocks included; the first is the root.
    pub fn entries(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId::new(index), node))
    }

    /// What conditions compare a symbol with.
    pub(crate) fn compared_with(&self, symbol: SymbolId) -> impl Iterator<Item = Atom> {
        self.exprs.iter().filter_map(move |expr| match expr {
            Expr::Compare(_, Atom::Symbol(left), right) if left == symbol => Some(right),
            Expr::Compare(_, left, Atom::Symbol(right)) if right == symbol => Some(left),
            _ => None,
        })
    }

    /// The `depends on` lines of an entry as written, or the condition of an `if`, each with its
    /// place.
    pub fn written_dependencies(&self, node: NodeId) -> impl Iterator<Item = (ExprId, Span)> {
        let lines = &self.node(node).own.depends;
        self.written[lines.start as usize..lines.end as usize].iter().copied()
    }

    /// The block around an entry in the files; other than in the menus, `if` blocks count.
    #[must_use]
    pub fn block_around(&self, node: NodeId) -> Option<NodeId> {
        self.node(node).own.parent
    }

    /// Names that are used and never defined, each with the place of its first use.
    pub fn undefined(&self) -> impl Iterator<Item = (SymbolId, Span)> {
        let named = self.symbols.iter().enumerate().filter(|(_, symbol)| symbol.nodes.is_empty());
        named.filter_map(|(index, symbol)| Some((SymbolId::new(index), symbol.first_reference?)))
    }

    /// The symbols that select this one, each with its `select` line.
    pub fn selectors(&self, symbol: SymbolId) -> impl DoubleEndedIterator<Item = (SymbolId, &Selection)> {
        self.get(symbol).selectors.iter().map(|(by, index)| (*by, &self.get(*by).selects[*index as usize]))
    }

    /// The symbols that imply this one, each with its `imply` line.
    pub fn impliers(&self, symbol: SymbolId) -> impl DoubleEndedIterator<Item = (SymbolId, &Selection)> {
        self.get(symbol).impliers.iter().map(|(by, index)| (*by, &self.get(*by).implies[*index as usize]))
    }

    /// The terms of a conjunction in order; one term for anything else.
    #[must_use]
    pub fn conjuncts(&self, expr: ExprId) -> Vec<ExprId> {
        self.exprs.conjuncts(expr)
    }

    /// The terms of a disjunction in order; one term for anything else.
    #[must_use]
    pub fn disjuncts(&self, expr: ExprId) -> Vec<ExprId> {
        self.exprs.disjuncts(expr)
    }

    /// The symbols of an expression in order, each once.
    #[must_use]
    pub fn symbols_in(&self, expr: ExprId) -> Vec<SymbolId> {
        let mut found = Vec::new();
        self.exprs.any_atom(expr, |atom| {
            if let Atom::Symbol(symbol) = atom
                && !found.contains(&symbol)
            {
                found.push(symbol);
            }
            false
        });
        found
    }
}
