//! Everything about one entry: facts first, then the help that teaches.

use kconfig::{ChoiceId, ExprId, NodeId, Origin, Selection, SymbolId, Tree, Tri, explain};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};

use super::theme::Theme;
use super::wrap::{hang, wrap};
use crate::config;
use crate::wizard::model::Model;
use crate::wizard::repair::lock_reason;
use crate::wizard::row::{Row, RowKind};
use crate::wizard::rows::rows;
use crate::wizard::start_from;

/// Some symbols of Linux are selected by hundreds of others.
const MOST_LINKS: usize = 6;

/// The pane beside or below the menu.
pub(super) fn draw_pane(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(row) = model.row() else { return };
    let lines = wrap(full(model, theme, row.node), area.width);
    let cut = lines.len() > usize::from(area.height);
    Paragraph::new(lines).render(area, buffer);
    if cut && area.height > 1 {
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        buffer.set_string(last.x, last.y, " ".repeat(usize::from(last.width)), Theme::dim());
        Line::styled("... i shows all of it", Theme::dim()).render(last, buffer);
    }
}

/// The lines of the details dialog.
pub(super) fn full(model: &Model, theme: Theme, node: NodeId) -> Vec<Line<'static>> {
    let parts =
        [urgent(model, theme, node), help(model, node), contents(model, theme, node), facts(model, theme, node)];
    let mut lines = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(part);
    }
    lines
}

/// What a menu holds, with its values: often all that one wants to know.
fn contents(model: &Model, theme: Theme, node: NodeId) -> Vec<Line<'static>> {
    let inside = model.row().is_some_and(|row| row.node == node && row.submenu);
    if !inside {
        return Vec::new();
    }
    let rows = rows(model, node);
    // Switches stand before their prompts, as in the menu.
    let prompt = |row: &Row| {
        let switch = if matches!(row.kind, RowKind::Switch(..)) { format!("{} ", row.value) } else { String::new() };
        format!("{}{switch}{}", "  ".repeat(row.depth), row.prompt)
    };
    let width = rows.iter().map(|row| Span::raw(prompt(row)).width()).max().unwrap_or(0);
    let line = |row: &Row| {
        let prompt = prompt(row);
        let value = match row.kind {
            RowKind::Switch(..) if row.submenu => "--->",
            RowKind::Switch(..) => return Line::raw(prompt),
            _ if row.value.is_empty() => "--->",
            _ => &row.value,
        };
        let gap = " ".repeat(width.saturating_sub(Span::raw(&prompt).width()) + 2);
        Line::from(vec![Span::raw(format!("{prompt}{gap}")), Span::styled(value.to_owned(), theme.value())])
    };
    rows.iter().filter(|row| row.kind != RowKind::Comment).map(line).collect()
}

/// What must not be overlooked: a mistake, or why the entry is locked.
fn urgent(model: &Model, theme: Theme, node: NodeId) -> Vec<Line<'static>> {
    let Some(symbol) = model.schema.tree().node(node).symbol else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(problem) = model.problem(symbol) {
        lines.push(Line::styled(format!("! {}", problem.message), theme.error()));
    }
    if let Some(reason) = lock_reason(model, symbol) {
        lines.push(Line::styled(reason, Theme::dim()));
    }
    lines
}

/// The help text; lines of one paragraph, or of one list entry, are joined, so that they fill the
/// pane whatever its width.
pub(super) fn help(model: &Model, node: NodeId) -> Vec<Line<'static>> {
    let Some(help) = model.schema.tree().help(node) else { return Vec::new() };
    let mut lines: Vec<String> = Vec::new();
    for line in help.lines() {
        let indentation = line.len() - line.trim_start_matches(' ').len();
        match lines.last_mut() {
            Some(last)
                if !last.is_empty() && !line.is_empty() && indentation == hang(last) && hang(line) == indentation =>
            {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.into_iter().map(Line::from).collect()
}

fn facts(model: &Model, theme: Theme, id: NodeId) -> Vec<Line<'static>> {
    let tree = model.schema.tree();
    let node = tree.node(id);
    let mut facts = match (node.symbol, node.choice) {
        (Some(symbol), _) => {
            let mut facts = symbol_facts(model, symbol);
            facts.extend(needs(model, id));
            facts.extend(relations(model, symbol));
            facts
        }
        (_, Some(choice)) => choice_facts(model, choice),
        _ => Vec::new(),
    };
    facts.push(("Defined in", tree.location(node.span)));
    facts
        .into_iter()
        .map(|(name, value)| Line::from(vec![Span::styled(format!("{name:<11} "), theme.title()), Span::raw(value)]))
        .collect()
}

fn choice_facts(model: &Model, choice: ChoiceId) -> Vec<(&'static str, String)> {
    let selected = model.config.selection(choice);
    vec![("Chosen", selected.map_or_else(|| "nothing".to_owned(), |symbol| model.schema.name(symbol).to_owned()))]
}

fn symbol_facts(model: &Model, symbol: SymbolId) -> Vec<(&'static str, String)> {
    let (schema, config) = (&model.schema, &model.config);
    let definition = schema.tree().get(symbol);
    let rule = schema.rule(symbol);
    let show = |text: &str| config::show(schema, symbol, text);
    let mut facts = vec![("Name", format!("{} ({})", definition.name, definition.kind))];
    let default = config.default_value(symbol);
    let is_default = config.origin(symbol) == Origin::User && default == config.value(symbol);
    let origin = if is_default { "which is the default".to_owned() } else { origin(model, symbol) };
    facts.push(("Value", format!("{}, {origin}", show(config.value(symbol)))));
    if config.origin(symbol) != Origin::User {
        facts.extend(causes(model, symbol));
    }
    if config.origin(symbol) == Origin::User && !is_default {
        facts.push(("Default", show(&default)));
    }
    facts.extend(model.other_running(symbol).map(|value| ("Runs with", show(value))));
    let profile = model.profile.as_ref().zip(start_from::other_profile(model, symbol));
    facts.extend(profile.map(|(preset, value)| ("Profile", format!("{}: {}", preset.name, show(value)))));
    if let Some((low, high)) = config.range(symbol) {
        facts.push(("Range", format!("{low} to {high}")));
    }
    if let Some(format) = &rule.format {
        facts.push(("Format", format.to_string()));
    }
    if let Some(example) = &rule.example {
        facts.push(("Example", example.clone()));
    }
    if let Some(effect) = rule.effect {
        facts.push(("A change", effect.describe().to_owned()));
    }
    facts
}

/// What a value that was not given follows from, down to what was said.
fn causes(model: &Model, symbol: SymbolId) -> Vec<(&'static str, String)> {
    let mut open = explain::reason(&model.config, symbol).because;
    let mut found = Vec::new();
    while !open.is_empty() && found.len() < MOST_LINKS {
        let cause = open.remove(0);
        let Some(symbol) = model.schema.tree().symbol(&cause.name) else { continue };
        let how = if cause.how == "set" { "set here" } else { &cause.how };
        let shown = config::show(&model.schema, symbol, &cause.value);
        found.push(("Because", format!("{} is {shown}: {how}", cause.name)));
        open.extend(cause.because);
    }
    found
}

/// What the entry depends on, each term with whether it holds now.
fn needs(model: &Model, node: NodeId) -> Vec<(&'static str, String)> {
    let tree = model.schema.tree();
    let terms = tree.conjuncts(tree.node(node).depends).into_iter().filter(|term| *term != ExprId::YES);
    terms.map(|term| ("Needs", format!("{} ({})", tree.show(term), met(model.config.holds(term))))).collect()
}

/// A condition's value for people.
const fn met(value: Tri) -> &'static str {
    match value {
        Tri::Y => "met",
        Tri::M => "met by m",
        Tri::N => "not met",
    }
}

/// Who selects and implies it, those first that do so now, and what it selects.
fn relations(model: &Model, symbol: SymbolId) -> Vec<(&'static str, String)> {
    let (tree, config) = (model.schema.tree(), &model.config);
    let strength = |(by, line): (SymbolId, &Selection)| (by, config.tri(by).min(config.holds(line.condition)));
    let definition = tree.get(symbol);
    let mut facts = Vec::new();
    for (what, links) in [
        ("Selected by", tree.selectors(symbol).map(strength).collect::<Vec<_>>()),
        ("Implied by", tree.impliers(symbol).map(strength).collect()),
        ("Selects", definition.selects.iter().map(|line| (line.target, config.tri(line.target))).collect()),
        ("Implies", definition.implies.iter().map(|line| (line.target, config.tri(line.target))).collect()),
    ] {
        facts.extend(name_links(tree, links).map(|text| (what, text)));
    }
    facts
}

/// Some names with their values, the highest first, and how many more there are; nothing for none.
fn name_links(tree: &Tree, mut links: Vec<(SymbolId, Tri)>) -> Option<String> {
    links.sort_by_key(|(_, tri)| std::cmp::Reverse(*tri));
    let more = links.len().saturating_sub(MOST_LINKS);
    let shown = links.iter().take(MOST_LINKS).map(|(symbol, tri)| format!("{} ({tri})", tree.get(*symbol).name));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    (!text.is_empty()).then_some(text)
}

fn origin(model: &Model, symbol: SymbolId) -> String {
    let tree = model.schema.tree();
    match model.config.origin(symbol) {
        Origin::User => "set here".to_owned(),
        Origin::Default { span } => format!("by default ({})", tree.location(span)),
        Origin::Select { by, .. } => format!("selected by {}", tree.get(by).name),
        Origin::Imply { by, .. } => format!("implied by {}", tree.get(by).name),
        Origin::Choice => "by its choice".to_owned(),
        Origin::Unset => "not set".to_owned(),
    }
}
