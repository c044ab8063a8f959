//! What the wizard knows: the answers, where in the menus it stands, the open dialogs. No terminal,
//! no file, no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kconfig::history::Said;
use kconfig::{Config, NodeId, SetError, SymbolId};
use serde_json::Value;

use super::dialog::Dialog;
use super::guide::Guide;
use super::history::History;
use super::keymap::KeyContext;
use super::preset::Preset;
use super::row::Row;
use super::search::Index;
use super::verdict::LastCheck;
use crate::config::{self, Problem, ProblemLevel, Schema, TARGET};
use crate::picture::Picture;

/// The whole state.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub(super) struct Model {
    pub(super) schema: Arc<Schema>,
    pub(super) config: Config<'static>,
    /// The file's name, for the screen.
    pub(super) file: String,
    /// How answers are written into it.
    pub(super) form: Form,
    /// Whether colours may be used.
    pub(super) colour: bool,
    /// Whether the terminal shows nothing but ASCII.
    pub(super) ascii: bool,
    /// What the file has; nothing when there is none.
    pub(super) saved: Option<Saved>,
    /// The settings that the file names; nothing when there is none.
    pub(super) known: Option<BTreeSet<SymbolId>>,
    /// Where the guide asks only what the tree has got since the file was written: the settings
    /// that were there before, which it leaves alone.
    pub(super) asks_all_but: Option<BTreeSet<SymbolId>>,
    /// Whether the file says the same in other words: saving makes it whole, leaving it loses
    /// nothing.
    pub(super) is_stale: bool,
    /// What the running cluster was made with, by the settings' names.
    pub(super) applied: Option<BTreeMap<String, String>>,
    /// Presets that can be loaded.
    pub(super) profiles: Vec<Preset>,
    /// The one that the answers began with.
    pub(super) profile: Option<Preset>,
    /// From the root to the open menu.
    pub(super) places: Vec<MenuPosition>,
    /// Where jumps began, the last one last.
    pub(super) trail: Vec<Stop>,
    /// Whether entries are shown that cannot be set now.
    pub(super) show_all: bool,
    /// Whether names are shown instead of prompts.
    pub(super) show_names: bool,
    /// The innermost dialog last; it gets the keys.
    pub(super) dialogs: Vec<Dialog>,
    /// The questions one after the other, instead of the menus.
    pub(super) guide: Option<Guide>,
    /// What the last key did or could not do.
    pub(super) notice: Option<Notice>,
    /// What is wrong with the answers now, or worth knowing about them.
    pub(super) problems: Vec<Problem>,
    /// Whether there is a check that tells more than the values alone.
    pub(super) has_check: bool,
    /// What it has said last.
    verdict: Option<LastCheck>,
    /// The picture below the guide's summary, and of which answers.
    pub(super) picture: Option<(u64, Option<Box<Picture>>)>,
    /// Leave as soon as the file is written.
    pub(super) leaving: bool,
    pub(super) history: History,
    /// Counts the changes of answers, those that are taken back too.
    pub(super) revision: u64,
    /// What searching looks through, made before the first screen so that `/` does not wait.
    pub(super) index: Arc<Index>,
    /// The lines of the open menu.
    pub(super) rows: Vec<Row>,
    /// What the rows were made from.
    pub(super) rows_of: Option<(u64, NodeId, bool)>,
    unsaved: bool,
}

/// How answers are written into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Our JSON object.
    Object,
    /// `.config` of Kconfig's own tools, with what stands before the names.
    DotConfig {
        /// `CONFIG_`.
        prefix: String,
    },
}

/// What a file has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Saved {
    /// The object.
    Object(Value),
    /// The answers.
    Said(Box<Said>),
}

/// A menu that is open, and the line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MenuPosition {
    pub(super) menu: NodeId,
    pub(super) cursor: usize,
}

/// Where a jump began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) places: Vec<MenuPosition>,
    /// The entry under the cursor: lines may move meanwhile.
    pub(super) node: Option<NodeId>,
    pub(super) show_all: bool,
}

/// One line at the foot of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl Model {
    /// Where the hosts come from, as the answers are now; empty in a tree of other people.
    pub(super) fn target(&self) -> &str {
        self.schema.tree().symbol(TARGET).map_or("", |symbol| self.config.value(symbol))
    }

    /// The wizard at the top of the tree, without its lines yet (`refresh`); `saved` is what the
    /// file has.
    pub(super) fn new(
        schema: Arc<Schema>,
        config: Config<'static>,
        file: String,
        form: Form,
        saved: Option<Saved>,
    ) -> Self {
        let top = MenuPosition { menu: schema.tree().root(), cursor: 0 };
        let mut model = Self {
            index: Index::of(schema.tree()),
            schema,
            config,
            file,
            form,
            colour: true,
            ascii: false,
            saved,
            known: None,
            asks_all_but: None,
            is_stale: false,
            applied: None,
            profiles: Vec::new(),
            profile: None,
            places: vec![top],
            trail: Vec::new(),
            show_all: false,
            show_names: false,
            dialogs: Vec::new(),
            guide: None,
            notice: None,
            problems: Vec::new(),
            has_check: false,
            verdict: None,
            picture: None,
            leaving: false,
            history: History::default(),
            revision: 0,
            rows: Vec::new(),
            rows_of: None,
            unsaved: false,
        };
        model.answered();
        model
    }

    /// The configuration in which the user has said this.
    pub(super) fn with(&self, said: &Said) -> Config<'static> {
        let mut config = self.config.clone();
        config.say(said);
        config
    }

    /// Makes a change of answers that can be undone; `what` is the command for it.
    pub(super) fn change(
        &mut self,
        what: String,
        edit: impl FnOnce(&mut Config<'static>) -> Result<(), SetError>,
    ) -> Result<(), SetError> {
        let before = self.config.said();
        edit(&mut self.config)?;
        self.history.remember(what, before.delta(&self.config.said()));
        self.answered();
        Ok(())
    }

    /// Computes again what follows from the answers.
    pub(super) fn answered(&mut self) {
        self.revision += 1;
        self.problems = config::check(&self.schema, &self.config);
        let remaining = self.verdict.iter().flat_map(|verdict| verdict.remaining(&self.schema, &self.config));
        for problem in remaining {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self.unsaved = !match &self.saved {
            Some(Saved::Object(object)) => *object == self.object(),
            Some(Saved::Said(said)) => self.config.says(said),
            None => false,
        };
    }

    /// The cluster that the answers describe, once the guide has come to its end.
    pub(super) fn picture(&self) -> Option<&Picture> {
        self.picture.as_ref()?.1.as_deref()
    }

    /// Takes what the one check says of the answers as they are.
    pub(super) fn take_verdict(&mut self, problems: Vec<Problem>) {
        self.verdict = Some(LastCheck::new(self.revision, &self.schema, &self.config, problems.clone()));
        if self.problems != problems {
            self.problems = problems;
            self.rows_of = None;
        }
    }

    /// Whether `problems` is what the one check says.
    pub(super) fn is_checked(&self) -> bool {
        !self.has_check || self.verdict.as_ref().is_some_and(|verdict| verdict.revision == self.revision)
    }

    /// What makes the answers unusable.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.level == ProblemLevel::Error)
    }

    /// The open menu.
    pub(super) fn place(&self) -> MenuPosition {
        self.places.last().copied().unwrap_or(MenuPosition { menu: self.schema.tree().root(), cursor: 0 })
    }

    /// The lines of the open menu.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The line under the cursor.
    pub(super) fn row(&self) -> Option<Row> {
        self.rows.get(self.place().cursor).cloned()
    }

    /// The object that saving would write.
    pub(super) fn object(&self) -> Value {
        config::object(&self.schema, &self.config)
    }

    /// What a file that is written now has.
    pub(super) fn to_save(&self) -> Saved {
        match self.form {
            Form::Object => Saved::Object(self.object()),
            Form::DotConfig { .. } => Saved::Said(Box::new(self.config.said())),
        }
    }

    /// Whether saving would change the file.
    pub(super) const fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// What the keys go to.
    pub(super) fn context(&self) -> KeyContext {
        self.context_of(self.dialogs.last())
    }

    /// What they went to before the innermost dialog was opened.
    pub(super) fn context_before(&self) -> KeyContext {
        self.context_of(self.dialogs.len().checked_sub(2).and_then(|below| self.dialogs.get(below)))
    }

    fn context_of(&self, dialog: Option<&Dialog>) -> KeyContext {
        match (dialog, &self.guide) {
            (Some(dialog), _) => dialog.context(),
            // What is wrong has to be gone to, before anything else.
            (None, Some(guide)) if guide.is_at_end() && self.errors().next().is_some() => KeyContext::SummaryWrong,
            (None, Some(guide)) => guide.context(),
            (None, None) => KeyContext::Menu,
        }
    }

    /// The settings that the file has no answer for and that can be set.
    pub(super) fn new_settings(&self) -> impl Iterator<Item = SymbolId> {
        let symbols = self.schema.tree().symbols().map(|(symbol, _)| symbol);
        symbols.filter(|symbol| self.is_new(*symbol) && self.config.visible(*symbol) != kconfig::Tri::N)
    }

    /// Whether a setting that the file has does not have this value.
    pub(super) fn differs(&self, symbol: SymbolId, other: &str) -> bool {
        self.config.is_written(symbol) && self.config.value(symbol) != other
    }

    /// What the running cluster was made with, where the setting has another value.
    pub(super) fn other_running(&self, symbol: SymbolId) -> Option<&str> {
        let running = self.applied.as_ref()?.get(self.schema.name(symbol))?;
        Some(running.as_str()).filter(|value| self.differs(symbol, value))
    }

    /// Whether the file has no answer for it and the user has given none since.
    pub(super) fn is_new(&self, symbol: SymbolId) -> bool {
        // The object names no switch that is off.
        let named = self.form != Form::Object
            || !self.schema.tree().get(symbol).kind.is_logical()
            || self.config.tri(symbol) != kconfig::Tri::N;
        let unanswered = named && self.config.user_value(symbol).is_none() && self.config.is_written(symbol);
        unanswered && self.known.as_ref().is_some_and(|known| !known.contains(&symbol))
    }

    /// The setting whose text is being typed.
    pub(super) fn typed_symbol(&self) -> Option<SymbolId> {
        match (self.dialogs.last(), &self.guide) {
            (Some(Dialog::Edit { symbol, .. }), _) => Some(*symbol),
            (None, Some(guide)) => guide.node().and_then(|node| self.schema.tree().node(node).symbol),
            _ => None,
        }
    }

    /// Whether the input is hidden.
    pub(super) fn is_typing_a_secret(&self) -> bool {
        self.typed_symbol().is_some_and(|symbol| self.schema.rule(symbol).secret)
    }

    /// What is wrong with this symbol, if anything.
    pub(super) fn problem(&self, symbol: SymbolId) -> Option<&Problem> {
        let name = self.schema.name(symbol);
        self.errors().find(|problem| problem.symbol.as_deref() == Some(name))
    }

    /// The menus that hold something wrong, so that the user finds the way there.
    pub(super) fn menus_with_problems(&self) -> BTreeSet<NodeId> {
        let tree = self.schema.tree();
        let names = self.errors().filter_map(|problem| problem.symbol.as_deref());
        let nodes = names.filter_map(|name| tree.symbol(name)).flat_map(|symbol| tree.get(symbol).nodes.clone());
        nodes.flat_map(|node| std::iter::successors(tree.node(node).parent, |up| tree.node(*up).parent)).collect()
    }

    /// The text of a menu node's prompt.
    pub(super) fn title(&self, node: NodeId) -> &str {
        self.schema.tree().node(node).prompt.as_ref().map_or("Configuration", |prompt| &prompt.text)
    }

    /// The value of a symbol as it may be shown: records by their keys.
    pub(super) fn shown(&self, symbol: SymbolId, value: &str) -> String {
        let rule = self.schema.rule(symbol);
        if rule.secret && !value.is_empty() {
            return "(secret)".to_owned();
        }
        let brief = rule.format.as_ref().and_then(|format| format.summarize(value));
        brief.unwrap_or_else(|| value.to_owned())
    }

    /// The command that gives these answers without the wizard.
    pub(super) fn command<'a>(&self, answers: impl IntoIterator<Item = (SymbolId, &'a str)>) -> String {
        let answers: Vec<(SymbolId, &str)> = answers.into_iter().collect();
        let is_records = |(symbol, _): &(SymbolId, &str)| {
            matches!(self.schema.rule(*symbol).format, Some(config::format::Format::Records(_)))
        };
        // Nothing that one could type.
        if let [(symbol, value)] = answers.as_slice()
            && is_records(&(*symbol, value))
        {
            return format!("{}: {}", self.schema.name(*symbol), self.shown(*symbol, value));
        }
        let words = answers.into_iter().map(|(symbol, value)| match &self.form {
            Form::Object => {
                let shown = self.shown(symbol, value);
                format!("{}={}", self.schema.name(symbol), shell_words::quote(&shown))
            }
            Form::DotConfig { prefix } => format!("{prefix}{}={value}", self.schema.name(symbol)),
        });
        let words = words.collect::<Vec<_>>().join(" ");
        if self.form == Form::Object { format!("turnup config set {words}") } else { words }
    }

    /// What is said of a change: the command for it, where there is one.
    pub(super) fn describe(&self, what: &str) -> String {
        let is_command = self.form == Form::Object && what.starts_with("turnup ");
        if is_command { format!("as a command: {what}") } else { what.to_owned() }
    }

    /// The command that restores the defaults.
    pub(super) fn command_to_unset(&self, symbols: &[SymbolId]) -> String {
        let names: Vec<&str> = symbols.iter().map(|symbol| self.schema.name(*symbol)).collect();
        let verb = if self.form == Form::Object { "turnup config unset" } else { "default:" };
        format!("{verb} {}", names.join(" "))
    }

    /// Says something at the foot of the screen.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_error: false });
    }

    /// The same about something that did not work.
    pub(super) fn complain(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_error: true });
    }
}
