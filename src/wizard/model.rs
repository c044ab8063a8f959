//! What the wizard knows: the answers, where in the menus it stands, the open dialogs. No terminal, no file, no clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use kconfig::{ChoiceId, Config, NodeId, SymbolId};
use serde_json::Value;

use super::keymap::Context;
use super::line_edit::LineEdit;
use super::rows::{self, Row};
use crate::config::{self, Problem, Schema};

/// The whole state.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) schema: Arc<Schema>,
    pub(super) config: Config<'static>,
    /// The file's name, for the screen.
    pub(super) file: String,
    /// Whether colours may be used.
    pub(super) colour: bool,
    /// What the file has; nothing when there is none.
    pub(super) saved: Option<Value>,
    /// Whether the file says the same in other words: saving makes it whole, leaving it loses nothing.
    pub(super) is_stale: bool,
    /// From the root to the open menu.
    pub(super) places: Vec<Place>,
    /// The innermost dialog last; it gets the keys.
    pub(super) dialogs: Vec<Dialog>,
    /// What the last key did or could not do.
    pub(super) notice: Option<Notice>,
    /// What is wrong with the answers now.
    pub(super) problems: Vec<Problem>,
    /// Leave as soon as the file is written.
    pub(super) leaving: bool,
}

/// A menu that is open, and the line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) menu: NodeId,
    pub(super) cursor: usize,
}

/// One line at the foot of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// What lies over the menus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    /// Editing the text of a symbol.
    Edit { symbol: SymbolId, line: LineEdit },
    /// Picking one of several.
    Pick(Pick),
    /// Everything about one entry.
    Details { node: NodeId, scroll: usize },
    /// All keys.
    Keys { scroll: usize },
    /// Lines to read.
    Text { title: String, lines: Vec<String>, scroll: usize },
    /// The question before leaving.
    Quit,
    /// The question before writing something that is wrong.
    Save { lines: Vec<String>, scroll: usize, overwrite: bool },
}

/// A list to pick from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) title: String,
    pub(super) options: Vec<PickOption>,
    pub(super) cursor: usize,
    pub(super) target: Target,
}

/// One line of such a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PickOption {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) current: bool,
}

/// What is picked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A text that has one of several values.
    Symbol(SymbolId),
    /// A choice, by its member.
    Choice(ChoiceId),
}

impl Model {
    /// The wizard at the top of the tree; `saved` is what the file has.
    pub(super) fn new(schema: Arc<Schema>, config: Config<'static>, file: String, saved: Option<Value>) -> Self {
        let top = Place { menu: schema.tree().root(), cursor: 0 };
        let mut model = Self {
            schema,
            config,
            file,
            colour: true,
            saved,
            is_stale: false,
            places: vec![top],
            dialogs: Vec::new(),
            notice: None,
            problems: Vec::new(),
            leaving: false,
        };
        model.judge();
        model
    }

    /// Finds out anew what is wrong.
    pub(super) fn judge(&mut self) {
        self.problems = config::check(&self.schema, &self.config);
    }

    /// The open menu.
    pub(super) fn place(&self) -> Place {
        self.places.last().copied().unwrap_or(Place { menu: self.schema.tree().root(), cursor: 0 })
    }

    /// The lines of the open menu.
    pub(super) fn rows(&self) -> Vec<Row> {
        rows::rows(self, self.place().menu)
    }

    /// The line under the cursor.
    pub(super) fn row(&self) -> Option<Row> {
        let mut rows = self.rows();
        let cursor = self.place().cursor;
        (cursor < rows.len()).then(|| rows.swap_remove(cursor))
    }

    /// The object that saving would write.
    pub(super) fn object(&self) -> Value {
        config::object(&self.schema, &self.config)
    }

    /// Whether saving would change the file.
    pub(super) fn is_unsaved(&self) -> bool {
        self.saved.as_ref() != Some(&self.object())
    }

    /// What the keys go to.
    pub(super) fn context(&self) -> Context {
        match self.dialogs.last() {
            None => Context::Menu,
            Some(Dialog::Edit { .. }) => Context::Edit,
            Some(Dialog::Pick(_)) => Context::Pick,
            Some(Dialog::Details { .. } | Dialog::Keys { .. } | Dialog::Text { .. }) => Context::Text,
            Some(Dialog::Quit) => Context::Quit,
            Some(Dialog::Save { .. }) => Context::Save,
        }
    }

    /// What is wrong with this symbol, if anything.
    pub(super) fn problem(&self, symbol: SymbolId) -> Option<&Problem> {
        let name = self.schema.name(symbol);
        self.problems.iter().find(|problem| problem.symbol.as_deref() == Some(name))
    }

    /// The menus that hold something wrong, so that a person finds the way there.
    pub(super) fn menus_with_problems(&self) -> BTreeSet<NodeId> {
        let tree = self.schema.tree();
        let names = self.problems.iter().filter_map(|problem| problem.symbol.as_deref());
        let nodes = names.filter_map(|name| tree.symbol(name)).flat_map(|symbol| tree.get(symbol).nodes.clone());
        nodes.flat_map(|node| std::iter::successors(tree.node(node).parent, |up| tree.node(*up).parent)).collect()
    }

    /// The text of a menu node's prompt.
    pub(super) fn title(&self, node: NodeId) -> &str {
        self.schema.tree().node(node).prompt.as_ref().map_or("Configuration", |prompt| &prompt.text)
    }
}
