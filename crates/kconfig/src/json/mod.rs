//! A tree and its values as JSON, written piece by piece.
//!
//! One object, schema `kconfig.tree/1`; a later version may add keys and takes none away:
//!
//! | key | what |
//! |---|---|
//! | `schema` | `"kconfig.tree/1"` |
//! | `dialect` | whose rules the tree was read by, as in `linux-6.1`, see [`crate::dialect`] |
//! | `mainmenu` | the text of `mainmenu` |
//! | `modules` | the symbol that allows `m`, or null |
//! | `files` | the paths of all files, in the order of reading |
//! | `undefined` | names that are used and never defined |
//! | `symbols` | all symbols, see below |
//! | `choices` | all choices; elsewhere a choice is its position here |
//! | `nodes` | the menus: all nodes, the root first, each before its children |
//!
//! A *symbol* has `name`, `type`, `nodes` (ids), `depends`, `defaults` (`value`, `if`, `at`),
//! `selects` and `implies` (`symbol`, `if`, `at`), `ranges` (`low`, `high`, `if`, `at`),
//! `selected_by` and `implied_by` (names), `choice`, `env`, `transitional`, `annotations` (`key`,
//! `value`), and of the configuration `value` (a text), `written` (whether `.config` has a line for
//! it), `user` (what was set), `visible` and `assignable` (`n`, `m`, `y`), `range` (two numbers)
//! and `origin` (`kind`: `user`, `default`, `select`, `imply`, `choice` or `unset`, with `by` and
//! `at`).
//!
//! A *choice* has `name`, `type`, `nodes`, `members`, `defaults`, `optional`, and of the
//! configuration `mode`, `visible` and `selection`.
//!
//! A *node* has `id`, `kind`, `parent`, `children`, `at`, `symbol` or `choice`, `prompt` (`text`,
//! `if`), `depends`, `visible_if`, `help` and `shown` (whether a front-end shows it). Menus may
//! nest as deep as the tree is long, so nodes name each other by id instead of containing each
//! other.
//!
//! Conditions are expressions as text, null where there is none; `at` is `file:line:column`. A byte
//! that is not UTF-8 is shown as `\xE9` is, see [`crate::text::show`].

mod writer;

use std::io;

use self::writer::Writer;
use crate::config::Config;
use crate::expr::ExprId;
use crate::source::Span;
use crate::tree::{ChoiceId, DefaultValue, Node, NodeId, NodeKind, Selection, SymbolId, Tree};
use crate::value::{Origin, Tri};

/// The name and version of the shape.
pub const SCHEMA: &str = "kconfig.tree/1";

/// Writes a tree with the values of a configuration; ends with a newline.
pub fn write(config: &Config<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut writer = TreeWriter { config, tree: config.tree(), json: Writer::new(out) };
    writer.write()?;
    writer.json.finish()
}

struct TreeWriter<'a> {
    config: &'a Config<'a>,
    tree: &'a Tree,
    json: Writer<'a>,
}

impl TreeWriter<'_> {
    fn write(&mut self) -> io::Result<()> {
        let tree = self.tree;
        let root = tree.root();
        self.json.open('{')?;
        self.json.text_of("schema", SCHEMA)?;
        self.json.text_of("dialect", &tree.dialect().to_string())?;
        self.json.text_of("mainmenu", tree.node(root).prompt.as_ref().map_or("", |prompt| &prompt.text))?;
        self.json.optional("modules", tree.modules().map(|symbol| &*tree.get(symbol).name))?;
        self.json.list("files", tree.files(), Writer::text)?;
        let undefined = tree.undefined().map(|(symbol, _)| &*tree.get(symbol).name);
        self.json.list("undefined", undefined, Writer::text)?;
        self.json.key("symbols")?;
        self.json.open('[')?;
        for (id, _) in tree.symbols() {
            self.write_symbol(id)?;
        }
        self.json.close(']')?;
        self.json.key("choices")?;
        self.json.open('[')?;
        for (id, _) in tree.choices() {
            self.write_choice(id)?;
        }
        self.json.close(']')?;
        self.json.key("nodes")?;
        self.json.open('[')?;
        self.write_node(root, tree.node(root))?;
        for (id, node) in tree.nodes() {
            self.write_node(id, node)?;
        }
        self.json.close(']')?;
        self.json.close('}')
    }

    fn condition(&mut self, key: &str, expr: ExprId) -> io::Result<()> {
        let text = (expr != ExprId::YES).then(|| self.tree.show(expr));
        self.json.optional(key, text.as_deref())
    }

    fn place(&mut self, span: Span) -> io::Result<()> {
        self.json.text_of("at", &self.tree.location(span))
    }

    fn ids(&mut self, key: &str, nodes: &[NodeId]) -> io::Result<()> {
        self.json.list(key, nodes.iter().map(|node| node.index()), Writer::number)
    }

    fn names(&mut self, key: &str, symbols: impl Iterator<Item = SymbolId>) -> io::Result<()> {
        let tree = self.tree;
        self.json.list(key, symbols.map(|symbol| &*tree.get(symbol).name), Writer::text)
    }

    fn write_defaults(&mut self, defaults: &[DefaultValue]) -> io::Result<()> {
        self.json.key("defaults")?;
        self.json.open('[')?;
        for default in defaults {
            self.json.open('{')?;
            self.json.text_of("value", &self.tree.show(default.value))?;
            self.condition("if", default.condition)?;
            self.place(default.span)?;
            self.json.close('}')?;
        }
        self.json.close(']')
    }

    fn write_selections(&mut self, key: &str, selections: &[Selection]) -> io::Result<()> {
        self.json.key(key)?;
        self.json.open('[')?;
        for selection in selections {
            self.json.open('{')?;
            self.json.text_of("symbol", &self.tree.get(selection.target).name)?;
            self.condition("if", selection.condition)?;
            self.place(selection.span)?;
            self.json.close('}')?;
        }
        self.json.close(']')
    }

    fn write_symbol(&mut self, id: SymbolId) -> io::Result<()> {
        let (tree, symbol) = (self.tree, self.tree.get(id));
        self.json.open('{')?;
        self.json.text_of("name", &symbol.name)?;
        self.json.text_of("type", symbol.kind.as_str())?;
        self.ids("nodes", &symbol.nodes)?;
        self.condition("depends", symbol.direct_dependency)?;
        self.write_defaults(&symbol.defaults)?;
        self.write_selections("selects", &symbol.selects)?;
        self.write_selections("implies", &symbol.implies)?;
        self.json.key("ranges")?;
        self.json.open('[')?;
        for range in &symbol.ranges {
            self.json.open('{')?;
            self.json.text_of("low", &tree.show_atom(range.low))?;
            self.json.text_of("high", &tree.show_atom(range.high))?;
            self.condition("if", range.condition)?;
            self.place(range.span)?;
            self.json.close('}')?;
        }
        self.json.close(']')?;
        self.names("selected_by", tree.selectors(id).map(|(by, _)| by))?;
        self.names("implied_by", tree.impliers(id).map(|(by, _)| by))?;
        self.json.key("choice")?;
        self.json.number_or_null(symbol.choice.map(ChoiceId::index))?;
        self.json.optional("env", symbol.env.as_deref())?;
        self.json.truth("transitional", symbol.transitional)?;
        self.json.key("annotations")?;
        self.json.open('[')?;
        for annotation in &symbol.annotations {
            self.json.open('{')?;
            self.json.text_of("key", &annotation.key)?;
            self.json.text_of("value", &annotation.value)?;
            self.json.close('}')?;
        }
        self.json.close(']')?;
        self.write_value(id)?;
        self.json.close('}')
    }

    /// What the configuration says about a symbol.
    fn write_value(&mut self, id: SymbolId) -> io::Result<()> {
        let config = self.config;
        self.json.text_of("value", config.value(id))?;
        self.json.truth("written", config.is_written(id))?;
        self.json.optional("user", config.user_value(id))?;
        self.json.text_of("visible", config.visible(id).as_str())?;
        if self.tree.get(id).kind.is_logical() {
            self.json.list("assignable", config.assignable(id).into_iter().map(Tri::as_str), Writer::text)?;
        }
        self.json.key("range")?;
        match config.range(id) {
            Some((low, high)) => {
                self.json.open('[')?;
                self.json.number(low)?;
                self.json.number(high)?;
                self.json.close(']')?;
            }
            None => self.json.null()?,
        }
        self.json.key("origin")?;
        self.json.open('{')?;
        let (kind, by, span) = match config.origin(id) {
            Origin::User => ("user", None, None),
            Origin::Default { span } => ("default", None, Some(span)),
            Origin::Select { by, span } => ("select", Some(by), Some(span)),
            Origin::Imply { by, span } => ("imply", Some(by), Some(span)),
            Origin::Choice => ("choice", None, None),
            Origin::Unset => ("unset", None, None),
        };
        self.json.text_of("kind", kind)?;
        if let Some(by) = by {
            self.json.text_of("by", &self.tree.get(by).name)?;
        }
        if let Some(span) = span {
            self.place(span)?;
        }
        self.json.close('}')
    }

    fn write_choice(&mut self, id: ChoiceId) -> io::Result<()> {
        let (tree, config, choice) = (self.tree, self.config, self.tree.choice(id));
        self.json.open('{')?;
        self.json.optional("name", choice.name.as_deref())?;
        self.json.text_of("type", choice.kind.as_str())?;
        self.ids("nodes", &choice.nodes)?;
        self.names("members", choice.members.iter().copied())?;
        self.write_defaults(&choice.defaults)?;
        self.json.truth("optional", choice.optional)?;
        self.json.text_of("mode", config.mode(id).as_str())?;
        self.json.text_of("visible", config.choice_visible(id).as_str())?;
        self.json.optional("selection", config.selection(id).map(|symbol| &*tree.get(symbol).name))?;
        self.json.close('}')
    }

    fn write_node(&mut self, id: NodeId, node: &Node) -> io::Result<()> {
        let kind = match node.kind {
            NodeKind::Menu => "menu",
            NodeKind::Menuconfig => "menuconfig",
            NodeKind::Config => "config",
            NodeKind::Choice => "choice",
            NodeKind::Comment => "comment",
            NodeKind::If => "if",
        };
        self.json.open('{')?;
        self.json.key("id")?;
        self.json.number(id.index())?;
        self.json.text_of("kind", kind)?;
        self.json.key("parent")?;
        self.json.number_or_null(node.parent.map(NodeId::index))?;
        self.ids("children", &node.children)?;
        self.place(node.span)?;
        if let Some(symbol) = node.symbol {
            self.json.text_of("symbol", &self.tree.get(symbol).name)?;
        }
        if let Some(choice) = node.choice {
            self.json.key("choice")?;
            self.json.number(choice.index())?;
        }
        self.json.key("prompt")?;
        match &node.prompt {
            Some(prompt) => {
                self.json.open('{')?;
                self.json.text_of("text", &prompt.text)?;
                self.condition("if", prompt.condition)?;
                self.json.close('}')?;
            }
            None => self.json.null()?,
        }
        self.condition("depends", node.depends)?;
        self.condition("visible_if", node.visible_if)?;
        self.json.optional("help", self.config.tree().help(id).as_deref())?;
        self.json.truth("shown", self.config.node_visible(id))?;
        self.json.close('}')
    }
}
