//! All there is to say about one symbol: where it is defined, what it is, why, and what would have
//! to change.
//!
//! Gathers owned data that a caller can show in any form; [`Explanation`] itself shows it as text.
//! Changes no configuration.

mod plan;
mod reason;
mod search;
mod text;

pub use plan::{Plan, Step, plan, values_named_for};
pub use reason::{Reason, reason};

use crate::config::Config;
use crate::dotconfig;
use crate::expr::ExprId;
use crate::source::Span;
use crate::tree::{NodeId, Selection, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

/// One definition of the symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `file:line:col`.
    pub location: String,
    /// The prompts of the menus around it, the outermost first.
    pub menus: Vec<String>,
    /// Its prompt.
    pub prompt: Option<String>,
    /// All that has to hold for the prompt to be shown; none when it always is.
    pub shown_if: Option<Condition>,
    /// Its dependencies with all it inherits, term by term.
    pub depends: Vec<Condition>,
    /// Its defaults.
    pub defaults: Vec<Default>,
    /// Its ranges, as written.
    pub ranges: Vec<Default>,
    /// Its help.
    pub help: Option<String>,
}

/// A condition and what it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// As it would be written by hand.
    pub text: String,
    /// Its value.
    pub value: Tri,
}

/// A default or range with its own condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Default {
    /// The value as written.
    pub value: String,
    /// What has to hold besides the dependencies of the entry; none when nothing has.
    pub condition: Option<Condition>,
    /// `file:line:col`.
    pub location: String,
}

/// Another symbol that this one selects or implies, or that does so with this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The other symbol.
    pub name: String,
    /// The other symbol's value.
    pub value: String,
    /// What has to hold besides the dependencies of the entry with the line; none when nothing has.
    pub condition: Option<Condition>,
    /// How strongly it acts now.
    pub strength: Tri,
    /// `file:line:col` of the line.
    pub location: String,
}

/// The choice that the symbol is a member of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The choice's prompt.
    pub prompt: String,
    /// All members.
    pub members: Vec<String>,
    /// The member that is selected.
    pub selected: Option<String>,
}

/// All about one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: SymbolType,
    /// All definitions.
    pub definitions: Vec<Definition>,
    /// The value.
    pub value: String,
    /// The line of `.config`; none when the symbol has none.
    pub line: Option<String>,
    /// Why the value is so.
    pub reason: Reason,
    /// What the user set, where that is not the value.
    pub ignored: Option<String>,
    /// Up to which value a user may set it.
    pub visible: Tri,
    /// The dependencies that keep it from being set.
    pub blocked: Vec<String>,
    /// The values that a user may give a bool or tristate.
    pub assignable: Vec<Tri>,
    /// The range in force.
    pub range: Option<(i64, i64)>,
    /// The form of its text, where the caller knows one: the language has none.
    pub expected: Option<String>,
    /// Its choice.
    pub choice: Option<Membership>,
    /// What it selects.
    pub selects: Vec<Link>,
    /// What it implies.
    pub implies: Vec<Link>,
    /// Who selects it.
    pub selected_by: Vec<Link>,
    /// Who implies it.
    pub implied_by: Vec<Link>,
    /// Who mentions it in a dependency, a prompt's condition, a default or a range.
    pub used_by: Vec<String>,
    /// How to get values that it cannot be given now.
    pub plans: Vec<Plan>,
}

/// Explains one symbol.
#[must_use]
pub fn explain(config: &Config<'_>, symbol: SymbolId) -> Explanation {
    let tree = config.tree();
    let definition = tree.get(symbol);
    let value = config.value(symbol).to_owned();
    let links = |list: &[Selection], config: &Config<'_>| {
        list.iter().map(|selection| link(config, symbol, selection.target, selection)).collect()
    };
    Explanation {
        name: definition.name.to_string(),
        kind: definition.kind,
        definitions: definition.nodes.iter().map(|node| define(config, symbol, *node)).collect(),
        line: config.is_written(symbol).then(|| dotconfig::line(config, symbol, "")),
        reason: reason(config, symbol),
        ignored: config.user_value(symbol).filter(|user| **user != value).map(str::to_owned),
        visible: config.visible(symbol),
        blocked: config.explain_visibility(symbol),
        assignable: config.assignable(symbol),
        range: config.range(symbol),
        expected: None,
        choice: membership(config, symbol),
        selects: links(&definition.selects, config),
        implies: links(&definition.implies, config),
        selected_by: tree.selectors(symbol).map(|(by, line)| link(config, by, by, line)).collect(),
        implied_by: tree.impliers(symbol).map(|(by, line)| link(config, by, by, line)).collect(),
        used_by: users(tree, symbol),
        plans: plans(config, symbol),
        value,
    }
}

fn condition(config: &Config<'_>, expr: ExprId) -> Option<Condition> {
    (expr != ExprId::YES).then(|| Condition { text: config.tree().show(expr), value: config.holds(expr) })
}

/// What a line demands more than its entry does.
fn own_condition(config: &Config<'_>, expr: ExprId, node: NodeId) -> Option<Condition> {
    let tree = config.tree();
    let inherited = tree.conjuncts(tree.node(node).depends);
    let own: Vec<ExprId> = tree.conjuncts(expr).into_iter().filter(|term| !inherited.contains(term)).collect();
    let value = own.iter().map(|term| config.holds(*term)).min()?;
    let texts: Vec<String> = own.iter().map(|term| tree.show(*term)).collect();
    (own != [ExprId::YES]).then(|| Condition { text: texts.join(" && "), value })
}

fn define(config: &Config<'_>, symbol: SymbolId, id: NodeId) -> Definition {
    let (tree, definition) = (config.tree(), config.tree().get(symbol));
    let node = tree.node(id);
    let mut menus = Vec::new();
    let mut at = node.parent;
    while let Some(parent) = at {
        menus.extend(tree.node(parent).prompt.as_ref().map(|prompt| prompt.text.to_string()));
        at = tree.node(parent).parent;
    }
    menus.reverse();
    let entry = |value: String, expr: ExprId, span: Span| Default {
        value,
        condition: own_condition(config, expr, id),
        location: tree.location(span),
    };
    let defaults = definition.defaults.iter().filter(|default| default.node == id);
    let ranges = definition.ranges.iter().filter(|range| range.node == id);
    Definition {
        location: tree.location(node.span),
        menus,
        prompt: node.prompt.as_ref().map(|prompt| prompt.text.to_string()),
        shown_if: node.prompt.as_ref().and_then(|prompt| condition(config, prompt.condition)),
        depends: tree.conjuncts(node.depends).into_iter().filter_map(|term| condition(config, term)).collect(),
        defaults: defaults.map(|d| entry(tree.show(d.value), d.condition, d.span)).collect(),
        ranges: ranges
            .map(|r| entry(format!("{} {}", tree.show_atom(r.low), tree.show_atom(r.high)), r.condition, r.span))
            .collect(),
        help: tree.help(id),
    }
}

/// `by` has the line, `other` is the symbol to name.
fn link(config: &Config<'_>, by: SymbolId, other: SymbolId, line: &Selection) -> Link {
    Link {
        name: config.tree().get(other).name.to_string(),
        value: config.value(other).to_owned(),
        condition: own_condition(config, line.condition, line.node),
        strength: config.tri(by).min(config.holds(line.condition)),
        location: config.tree().location(line.span),
    }
}

fn membership(config: &Config<'_>, symbol: SymbolId) -> Option<Membership> {
    let tree = config.tree();
    let id = tree.get(symbol).choice?;
    let choice = tree.choice(id);
    let name = |member: SymbolId| tree.get(member).name.to_string();
    let prompt = choice.nodes.iter().find_map(|node| tree.node(*node).prompt.as_ref());
    Some(Membership {
        prompt: prompt.map_or_else(String::new, |prompt| prompt.text.to_string()),
        members: choice.members.iter().copied().map(name).collect(),
        selected: config.selection(id).map(name),
    })
}

/// The symbols in whose own lines this one is named.
fn users(tree: &Tree, symbol: SymbolId) -> Vec<String> {
    let mut found = Vec::new();
    for (id, other) in tree.symbols().filter(|(id, _)| *id != symbol) {
        let prompts = other.nodes.iter().filter_map(|node| tree.node(*node).prompt.as_ref()).map(|p| p.condition);
        let defaults = other.defaults.iter().flat_map(|default| [default.value, default.condition]);
        let ranges = other.ranges.iter().map(|range| range.condition);
        let mut all = std::iter::once(other.direct_dependency).chain(prompts).chain(defaults).chain(ranges);
        if all.any(|expr| tree.mentions(expr, symbol)) {
            found.push(tree.get(id).name.to_string());
        }
    }
    found
}

/// A way to each value that cannot be given now.
fn plans(config: &Config<'_>, symbol: SymbolId) -> Vec<Plan> {
    let kind = config.tree().get(symbol).kind;
    let candidates: &[Tri] = match kind {
        SymbolType::Bool => &[Tri::Y, Tri::N],
        SymbolType::Tristate => &[Tri::Y, Tri::M, Tri::N],
        _ if config.visible(symbol) == Tri::N => return plan(config, symbol, None).into_iter().collect(),
        _ => return Vec::new(),
    };
    let assignable = config.assignable(symbol);
    let missing = candidates.iter().filter(|tri| **tri != config.tri(symbol) && !assignable.contains(tri));
    missing.filter_map(|tri| plan(config, symbol, Some(tri.as_str()))).collect()
}
