//! The lines of a menu: what is visible now, implicit submenus indented, as menuconfig shows them.

use kconfig::{ChoiceId, NodeId, NodeKind, SymbolId, SymbolType, Tri};

use super::dialog::PickOption;
use super::guide::Guide;
use super::model::{Form, Model};
use super::picture;
use super::row::{Deviation, Row, RowKind};
use super::start_from;

impl Model {
    /// Brings the lines of the open menu up to date; to be called when a message has been taken.
    pub(super) fn refresh(&mut self) {
        let now = Some((self.revision, self.place().menu, self.show_all));
        if self.rows_of != now {
            start_from::follow(self);
            self.rows = rows(self, self.place().menu);
            self.rows_of = now;
        }
        let is_drawn = self.guide.as_ref().is_some_and(Guide::is_at_end);
        if is_drawn && self.picture.as_ref().is_none_or(|(revision, _)| *revision != self.revision) {
            // A tree of other people describes no cluster.
            let describes = self.form == Form::Object && !self.target().is_empty();
            let picture = describes.then(|| picture::of(&self.schema, &self.config)).flatten();
            self.picture = Some((self.revision, picture.map(Box::new)));
        }
        let last = self.rows.len().saturating_sub(1);
        if let Some(place) = self.places.last_mut() {
            place.cursor = place.cursor.min(last);
        }
    }

    /// After a change elsewhere: leaves menus that are not shown any more, and keeps the cursor on
    /// this entry where it is still there.
    pub(super) fn stay_at(&mut self, node: Option<NodeId>) {
        let root = self.schema.tree().root();
        let is_open = |menu: NodeId| self.show_all || menu == root || self.config.node_visible(menu);
        let open = self.places.iter().position(|place| !is_open(place.menu)).unwrap_or(self.places.len());
        self.places.truncate(open.max(1));
        self.refresh();
        let found = node.and_then(|node| self.rows.iter().position(|row| row.node == node));
        if let (Some(place), Some(found)) = (self.places.last_mut(), found) {
            place.cursor = found;
        }
    }

    /// Whether the entry under the cursor is shown only because everything is.
    pub(super) fn rows_hidden(&mut self) -> bool {
        self.refresh();
        self.row().is_some_and(|row| row.hidden)
    }
}

/// The lines of this menu, as things are now.
pub(super) fn rows(model: &Model, menu: NodeId) -> Vec<Row> {
    let mut rows = Vec::new();
    let wrong = model.menus_with_problems();
    add_children(model, menu, 0, &mut |mut row| {
        row.wrong |= row.submenu && wrong.contains(&row.node);
        rows.push(row);
    });
    rows
}

fn add_children(model: &Model, parent: NodeId, depth: usize, add: &mut impl FnMut(Row)) {
    for child in &model.schema.tree().node(parent).children {
        let Some(row) = shown_row(model, *child, depth) else {
            // What depends on a hidden entry may be visible all the same.
            add_children(model, *child, depth, add);
            continue;
        };
        let inline = !row.submenu && row.kind != RowKind::Menu;
        add(row);
        if inline {
            add_children(model, *child, depth + 1, add);
        }
    }
}

/// The line of a node, if it is shown now.
fn shown_row(model: &Model, id: NodeId, depth: usize) -> Option<Row> {
    if is_member(model, id) {
        return None;
    }
    let visible = model.config.node_visible(id);
    let row = row(model, id, depth).filter(|_| visible || model.show_all)?;
    Some(Row { hidden: !visible, ..row })
}

/// The line of a node, whether it is shown or not.
pub(super) fn row_of(model: &Model, id: NodeId) -> Option<Row> {
    row(model, id, 0)
}

fn row(model: &Model, id: NodeId, depth: usize) -> Option<Row> {
    let node = model.schema.tree().node(id);
    let prompt = node.prompt.as_ref()?.text.to_string();
    let plain = Row {
        node: id,
        depth,
        kind: RowKind::Menu,
        prompt,
        value: String::new(),
        submenu: false,
        changeable: true,
        custom: false,
        wrong: false,
        deviation: None,
        new: false,
        hidden: false,
    };
    Some(match (node.kind, node.symbol, node.choice) {
        (NodeKind::Menu, ..) => Row { submenu: true, ..plain },
        (NodeKind::Choice, _, Some(choice)) => choice_row(model, choice, plain),
        (NodeKind::Config | NodeKind::Menuconfig, Some(symbol), _) => symbol_row(model, symbol, plain),
        _ => Row { kind: RowKind::Comment, ..plain },
    })
}

/// Members of a choice are picked from its list, not listed again.
fn is_member(model: &Model, id: NodeId) -> bool {
    let tree = model.schema.tree();
    let node = tree.node(id);
    let inside = node.parent.is_some_and(|parent| tree.node(parent).kind == NodeKind::Choice);
    inside && node.symbol.is_some_and(|symbol| tree.get(symbol).choice.is_some())
}

fn choice_row(model: &Model, choice: ChoiceId, plain: Row) -> Row {
    let selected = model.config.selection(choice);
    let value = selected.map_or("none", |symbol| model.schema.prompt(symbol).unwrap_or(model.schema.name(symbol)));
    let custom =
        model.schema.tree().choice(choice).members.iter().any(|member| model.config.user_value(*member) == Some("y"));
    Row { kind: RowKind::Choice(choice), value: value.to_owned(), custom, ..plain }
}

/// The members of a choice that can be chosen.
pub(super) fn members(model: &Model, choice: ChoiceId) -> Vec<PickOption> {
    let selected = model.config.selection(choice);
    let members = model.schema.tree().choice(choice).members.iter();
    members
        .filter(|member| model.config.visible(**member) != Tri::N)
        .map(|member| PickOption {
            label: model.schema.prompt(*member).unwrap_or(model.schema.name(*member)).to_owned(),
            value: model.schema.name(*member).to_owned(),
            current: selected == Some(*member),
        })
        .collect()
}

fn symbol_row(model: &Model, symbol: SymbolId, plain: Row) -> Row {
    let plain = Row { new: model.is_new(symbol), deviation: deviation(model, symbol), ..plain };
    let kind = model.schema.tree().get(symbol).kind;
    let value = model.config.value(symbol);
    let node = model.schema.tree().node(plain.node);
    let custom = is_custom(model, symbol);
    let wrong = model.problem(symbol).is_some();
    if kind.is_logical() {
        let tri = model.config.tri(symbol);
        let changeable = model.config.assignable(symbol).len() > 1;
        let submenu = node.kind == NodeKind::Menuconfig
            && (tri != Tri::N || model.show_all)
            && has_visible_children(model, plain.node);
        return Row {
            kind: RowKind::Switch(symbol, tri),
            value: switch_mark(kind, tri, changeable),
            submenu,
            changeable,
            custom,
            wrong,
            ..plain
        };
    }
    let value = match value {
        "" => "(empty)".to_owned(),
        text => model.shown(symbol, text),
    };
    let changeable = model.config.visible(symbol) != Tri::N;
    Row { kind: RowKind::Text(symbol), value, changeable, custom, wrong, ..plain }
}

/// What the value differs from that runs, or that the profile has.
fn deviation(model: &Model, symbol: SymbolId) -> Option<Deviation> {
    if model.other_running(symbol).is_some() {
        return Some(Deviation::Running);
    }
    start_from::other_profile(model, symbol).map(|_| Deviation::Profile)
}

/// `[*]`, `<M>`, or `-*-` for what cannot be changed, as in menuconfig.
fn switch_mark(kind: SymbolType, tri: Tri, changeable: bool) -> String {
    let inner = match tri {
        Tri::Y => '*',
        Tri::M => 'M',
        Tri::N => ' ',
    };
    match (changeable, kind) {
        (false, _) => format!("-{inner}-"),
        (true, SymbolType::Tristate) => format!("<{inner}>"),
        (true, _) => format!("[{inner}]"),
    }
}

fn has_visible_children(model: &Model, id: NodeId) -> bool {
    let mut found = false;
    add_children(model, id, 0, &mut |_| found = true);
    found
}

/// Whether the user's answer differs from what would hold without it.
fn is_custom(model: &Model, symbol: SymbolId) -> bool {
    if model.config.user_value(symbol).is_none() {
        return false;
    }
    model.config.default_value(symbol) != model.config.value(symbol)
}
