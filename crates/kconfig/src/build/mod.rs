//! From the syntax tree to symbols, choices and menu nodes: names resolved, everything in arenas.
//!
//! Conditions are recorded as written; `finalize` makes them whole. Knows no text but names.

mod check;
mod cycle;
mod entry;
mod finalize;

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::expr::{Atom, Expr, ExprId, Exprs};
use crate::load::Loader;
use crate::source::{Env, FastHash, FileId, Files, Sources, Span};
use crate::syntax::ast::{AttributeKind, Expression, Item, ItemKind, Word};
use crate::tree::{Choice, ChoiceId, Dependencies, Node, NodeId, NodeKind, Own, Prompt, Symbol, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

/// Loads a tree: read, build, check; refuses it when there is any error.
pub(crate) fn load(root: &str, files: &dyn Files, env: &Env<'_>) -> Result<Tree, Diagnostics> {
    let mut loader = Loader::new(files, env);
    let items = loader.load(root);
    let (sources, findings) = (Arc::new(loader.sources), loader.findings);
    // Names that a broken line would have defined would be reported as undefined: syntax errors come alone.
    if findings.iter().any(Diagnostic::is_error) {
        return Err(Diagnostics::new(findings, sources));
    }
    let mut builder = Builder::new(findings, env);
    builder.modules = find_modules(&items);
    builder.build(&items);
    builder.finalize();
    builder.check();
    builder.connect();
    builder.into_tree(sources)
}

/// The name of the symbol that carries `modules`.
fn find_modules(items: &[Item]) -> Option<Box<str>> {
    items.iter().find_map(|item| match &item.kind {
        ItemKind::Config { name, .. } if item.attributes.iter().any(|a| a.kind == AttributeKind::Modules) => {
            Some(name.text.clone())
        }
        _ => find_modules(&item.items),
    })
}

/// A tree that is being built.
pub(crate) struct Builder<'e> {
    env: &'e Env<'e>,
    nodes: Vec<Node>,
    symbols: Vec<Symbol>,
    choices: Vec<Choice>,
    names: HashMap<Arc<str>, SymbolId, FastHash>,
    choice_names: HashMap<Arc<str>, ChoiceId, FastHash>,
    exprs: Exprs,
    modules: Option<Box<str>>,
    findings: Vec<Diagnostic>,
    /// Where each symbol got its type.
    type_spans: HashMap<SymbolId, Span, FastHash>,
    dependencies: Dependencies,
}

impl<'e> Builder<'e> {
    fn new(findings: Vec<Diagnostic>, env: &'e Env<'e>) -> Self {
        Self {
            env,
            nodes: Vec::new(),
            symbols: Vec::new(),
            choices: Vec::new(),
            names: HashMap::default(),
            choice_names: HashMap::default(),
            exprs: Exprs::default(),
            modules: None,
            findings,
            type_spans: HashMap::default(),
            dependencies: Dependencies::default(),
        }
    }

    fn build(&mut self, items: &[Item]) {
        let span = Span { file: FileId::FIRST, line: 1, col: 1, len: 0 };
        let root = self.add_node(NodeKind::Menu, None, span);
        let prompt = Prompt { text: "Main menu".to_owned(), condition: ExprId::YES, span };
        self.nodes[root.index()].prompt = Some(prompt);
        self.build_items(items, root);
    }

    fn build_items(&mut self, items: &[Item], parent: NodeId) {
        for item in items {
            match &item.kind {
                ItemKind::MainMenu(text) => {
                    let root = &mut self.nodes[0];
                    root.span = item.span;
                    root.prompt = Some(Prompt { text: text.text.to_string(), condition: ExprId::YES, span: text.span });
                }
                ItemKind::Source => self.build_items(&item.items, parent),
                _ => {
                    let node = self.build_entry(item, parent);
                    self.build_items(&item.items, node);
                }
            }
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
            children: Vec::new(),
            parent,
            span,
            comments: Vec::new(),
            own: Own { parent, depends: Vec::new() },
        });
        if let Some(parent) = parent {
            self.nodes[parent.index()].children.push(id);
        }
        id
    }

    /// The symbol of a name, made when it is new.
    fn intern(&mut self, name: &str, span: Span) -> SymbolId {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = SymbolId::new(self.symbols.len());
        let name: Arc<str> = name.into();
        self.symbols.push(Symbol {
            name: Arc::clone(&name),
            kind: SymbolType::Unknown,
            nodes: Vec::new(),
            defaults: Vec::new(),
            selects: Vec::new(),
            implies: Vec::new(),
            ranges: Vec::new(),
            annotations: Vec::new(),
            choice: None,
            direct_dependency: ExprId::YES,
            selected_by: ExprId::NO,
            implied_by: ExprId::NO,
            env: None,
            transitional: false,
            selectors: Vec::new(),
            impliers: Vec::new(),
            first_reference: Some(span),
        });
        self.names.insert(name, id);
        id
    }

    /// Words in quotes and numbers are constants, `y`, `m` and `n` always are, the rest are symbols.
    fn lower_word(&mut self, word: &Word) -> Atom {
        match &*word.text {
            "y" => Atom::Tri(Tri::Y),
            "m" => Atom::Tri(Tri::M),
            "n" => Atom::Tri(Tri::N),
            text if word.quoted || is_number(text) => Atom::Text(self.exprs.intern_text(text)),
            text => Atom::Symbol(self.intern(text, word.span)),
        }
    }

    /// A value: `m` stays `m`.
    fn lower(&mut self, expression: &Expression) -> ExprId {
        match expression {
            Expression::Word(word) => {
                let atom = self.lower_word(word);
                self.exprs.atom(atom)
            }
            Expression::Not(inner) => {
                let inner = self.lower(inner);
                self.exprs.not(inner)
            }
            Expression::And(terms) => terms.iter().fold(ExprId::YES, |all, term| {
                let term = self.lower(term);
                self.exprs.and(all, term)
            }),
            Expression::Or(terms) => terms.iter().fold(ExprId::NO, |any, term| {
                let term = self.lower(term);
                self.exprs.or(any, term)
            }),
            Expression::Compare(operator, left, right) => {
                let (left, right) = (self.lower_word(left), self.lower_word(right));
                self.exprs.compare(*operator, left, right)
            }
        }
    }

    /// A condition: `m` holds only while modules are enabled.
    fn lower_condition(&mut self, expression: &Expression) -> ExprId {
        let expr = self.lower(expression);
        if !self.exprs.any_atom(expr, |atom| atom == Atom::Tri(Tri::M)) {
            return expr;
        }
        let modules = match self.modules.clone() {
            Some(name) => {
                let symbol = self.intern(&name, self.nodes[0].span);
                self.exprs.atom(Atom::Symbol(symbol))
            }
            None => ExprId::NO,
        };
        self.exprs.rewrite(expr, &|exprs, leaf| match leaf {
            Expr::Atom(Atom::Tri(Tri::M)) => {
                let m = exprs.atom(Atom::Tri(Tri::M));
                Some(exprs.and(m, modules))
            }
            _ => None,
        })
    }

    fn into_tree(mut self, sources: Arc<Sources>) -> Result<Tree, Diagnostics> {
        let refused = self.findings.iter().any(Diagnostic::is_error);
        let findings = Diagnostics::new(std::mem::take(&mut self.findings), Arc::clone(&sources));
        if refused {
            return Err(findings);
        }
        let modules = self.modules.as_ref().and_then(|name| self.names.get(&**name)).copied();
        Ok(Tree {
            sources,
            nodes: self.nodes,
            symbols: self.symbols,
            choices: self.choices,
            names: self.names,
            exprs: self.exprs,
            modules,
            dialect: self.env.dialect(),
            warnings: findings,
            dependencies: self.dependencies,
        })
    }
}

fn is_number(text: &str) -> bool {
    SymbolType::Int.accepts(text)
        || text.bytes().all(|byte| byte.is_ascii_digit())
        || (text.starts_with("0x") || text.starts_with("0X")) && SymbolType::Hex.accepts(text)
}
