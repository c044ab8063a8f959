//! From the syntax tree to symbols, choices and menu nodes: names resolved, everything in arenas.
//!
//! Conditions are recorded as written; `finalize` makes them whole. Knows no text but names.

mod check;
mod cycle;
mod entry;
mod finalize;
mod graph;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use thin_vec::ThinVec;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dialect::{Detected, Dialect, Rule};
use crate::env::Env;
use crate::expr::{Atom, Expr, ExprId, Exprs, TextId};
use crate::load::{Loader, expand_dollars};
use crate::names::Names;
use crate::source::{FastHash, FileId, Files, Sources, Span};
use crate::syntax::ast::{Attribute, Attributes, Item, ItemKind};
use crate::tree::{Choice, ChoiceId, Node, NodeId, NodeKind, Own, Prompt, Symbol, SymbolId, Tree, WrittenDependencies};
use crate::value::Tri;

impl Tree {
    /// Reads the tree whose top file is `root`; refuses it when there is any error.
    pub fn load(root: &str, files: &dyn Files, env: &Env<'_>) -> Result<Self, Diagnostics> {
        let tree = load_with_errors(root, files, env)?;
        if tree.findings.iter().any(Diagnostic::is_error) {
            return Err(Diagnostics::new(tree.findings, tree.sources).with_rules(tree.detected));
        }
        Ok(tree)
    }
}

/// The same, but a tree whose syntax is right is given with its errors; it must not be evaluated
/// when there are any.
pub(crate) fn load_with_errors(root: &str, files: &dyn Files, env: &Env<'_>) -> Result<Tree, Diagnostics> {
    let mut loader = Loader::new(files, env);
    let items = loader.load(root);
    // Names that a broken line would have defined would be reported as undefined: syntax errors
    // come alone.
    if loader.findings.iter().any(Diagnostic::is_error) {
        return Err(Diagnostics::new(loader.findings, Arc::new(loader.sources)).with_rules(loader.detected));
    }
    let Loader { sources, names, exprs, attributes, findings, detected, .. } = loader;
    let mut builder = Builder::new(names, exprs, findings, env, detected.dialect);
    builder.modules = find_modules(&items, &attributes);
    builder.build(items, attributes);
    builder.finalize();
    builder.refuse_cycles();
    Ok(builder.into_tree(Arc::new(sources), detected))
}

/// The first symbol that carries `modules`.
fn find_modules(items: &[Item], attributes: &Attributes) -> Option<SymbolId> {
    items.iter().find_map(|item| {
        let mut lines = attributes.of(item);
        match item.kind {
            ItemKind::Config { symbol, .. } if lines.any(|line| matches!(line, Attribute::Modules)) => Some(symbol),
            _ => find_modules(&item.items, attributes),
        }
    })
}

/// A tree that is being built.
pub(crate) struct Builder<'e> {
    env: &'e Env<'e>,
    dialect: Dialect,
    names: Names,
    /// The lines of all entries; each is taken when its entry is built.
    attributes: Attributes,
    nodes: Vec<Node>,
    symbols: Vec<Symbol>,
    choices: Vec<Choice>,
    choice_names: HashMap<TextId, ChoiceId, FastHash>,
    exprs: Exprs,
    /// The symbol that carries `modules`.
    modules: Option<SymbolId>,
    findings: Vec<Diagnostic>,
    /// Where each symbol got its type.
    type_spans: Vec<Option<Span>>,
    written: WrittenDependencies,
}

impl<'e> Builder<'e> {
    fn new(names: Names, exprs: Exprs, findings: Vec<Diagnostic>, env: &'e Env<'e>, dialect: Dialect) -> Self {
        let mut builder = Self {
            env,
            dialect,
            names,
            attributes: Attributes::default(),
            nodes: Vec::new(),
            symbols: Vec::new(),
            choices: Vec::new(),
            choice_names: HashMap::default(),
            exprs,
            modules: None,
            findings,
            type_spans: Vec::new(),
            written: WrittenDependencies::new(),
        };
        builder.add_symbols();
        builder
    }

    fn build(&mut self, items: Vec<Item>, attributes: Attributes) {
        self.attributes = attributes;
        let span = Span { file: FileId::FIRST, line: 1, col: 1, len: 0 };
        let root = self.add_node(NodeKind::Menu, None, span);
        let prompt = Prompt { text: "Main menu".into(), condition: ExprId::YES, span };
        self.nodes[root.index()].prompt = Some(prompt);
        self.build_items(items, root);
        if self.dialect.has(Rule::DollarNames) {
            self.expand_mainmenu();
        }
        self.attributes = Attributes::default();
        self.type_spans = Vec::new();
    }

    fn build_items(&mut self, items: Vec<Item>, parent: NodeId) {
        for mut item in items {
            let inner = std::mem::take(&mut item.items);
            match &item.kind {
                ItemKind::MainMenu(text) => {
                    let prompt = Prompt { text: self.names.shared(text.text), condition: ExprId::YES, span: text.span };
                    let root = &mut self.nodes[0];
                    root.span = item.span;
                    root.prompt = Some(prompt);
                }
                ItemKind::Source => self.build_items(inner, parent),
                _ => {
                    let node = self.build_entry(item, parent);
                    self.build_items(inner, node);
                }
            }
        }
    }

    /// As in C, all names in the title are known when all files are read.
    fn expand_mainmenu(&mut self) {
        let Some(title) = self.nodes[0].prompt.as_ref().map(|prompt| prompt.text.clone()) else { return };
        let text = expand_dollars(&title, |name| {
            let of_symbol =
                self.symbols.iter().find(|symbol| *symbol.name == *name).and_then(|symbol| symbol.env.clone());
            self.env.read(of_symbol.as_deref().unwrap_or(name))
        });
        if let Some(prompt) = &mut self.nodes[0].prompt {
            prompt.text = text.into();
        }
    }

    fn add_node(&mut self, kind: NodeKind, parent: Option<NodeId>, span: Span) -> NodeId {
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(Node {
            kind,
            symbol: None,
            choice: None,
            prompt: None,
            visible_if: ExprId::YES,
            depends: ExprId::YES,
            help: None,
            children: ThinVec::new(),
            parent,
            span,
            comments: ThinVec::new(),
            own: Own { parent, depends: 0..0 },
        });
        if let Some(parent) = parent {
            self.nodes[parent.index()].children.push(id);
        }
        id
    }

    /// Makes the symbols that lines have named.
    fn add_symbols(&mut self) {
        self.symbols.extend(self.names.take_symbols().map(|(name, span)| Symbol::named(name, span)));
        self.type_spans.resize(self.symbols.len(), None);
    }

    /// A condition as written: in it `m` holds only while modules are enabled.
    fn condition(&mut self, expr: ExprId) -> ExprId {
        if !self.exprs.names_constant(expr, Tri::M) {
            return expr;
        }
        let modules = self.modules.map_or(ExprId::NO, |symbol| self.exprs.atom(Atom::Symbol(symbol)));
        self.exprs.rewrite(expr, &|exprs, leaf| match leaf {
            Expr::Atom(Atom::Tri(Tri::M)) => {
                let m = exprs.atom(Atom::Tri(Tri::M));
                Some(exprs.and(m, modules))
            }
            _ => None,
        })
    }

    fn into_tree(mut self, sources: Arc<Sources>, detected: Detected) -> Tree {
        self.exprs.seal();
        Tree {
            sources,
            nodes: self.nodes,
            symbols: self.symbols,
            choices: self.choices,
            names: self.names,
            exprs: self.exprs,
            modules: self.modules,
            detected,
            findings: self.findings,
            warnings: OnceLock::new(),
            dependencies: OnceLock::new(),
            written: self.written,
        }
    }
}
