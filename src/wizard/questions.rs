//! The guided way: only the questions that a first cluster needs, one after the other, back and
//! forth, with a summary at the end.
//!
//! Which questions these are the tree says (`#: guided`); a tree that says nothing is asked
//! through, entry by entry. Behind the target stands one question of the guide's own: from which
//! profile to start. A file that is older than the tree can be asked only what is new.

use std::collections::BTreeSet;

use kconfig::{NodeId, SymbolId, Tri};

use super::dialog::PickOption;
use super::field_note::notes;
use super::guide::{Answer, Guide, Question};
use super::items::Items;
use super::line_edit::LineEdit;
use super::model::{Form, Model};
use super::row::RowKind;
use super::rows;
use super::start_from;
use crate::config::{TARGET, count_hosts, format::Format};

/// Which questions the guide asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuideScope {
    /// Those that a first cluster needs.
    First,
    /// Those that the file does not answer because it is older than the tree.
    New,
}

impl GuideScope {
    /// The settings that are not asked about, where all others are.
    pub(super) fn asks_all_but(self, model: &Model) -> Option<BTreeSet<SymbolId>> {
        // The file names no switch that is off, so that these cannot be told from new ones.
        let symbols = model.schema.tree().symbols().map(|(symbol, _)| symbol);
        let known = symbols.filter(|symbol| model.config.is_written(*symbol) && !model.is_new(*symbol));
        (self == Self::New).then(|| known.collect())
    }
}

impl Guide {
    /// At the first question.
    pub(super) fn start(model: &Model) -> Self {
        Self::at(model, questions(model).first().copied())
    }

    /// At this question, or at the summary.
    pub(super) fn at(model: &Model, question: Option<Question>) -> Self {
        let answer = match question {
            None => Answer::Nothing,
            Some(Question::Profile) => ask_profile(model),
            Some(Question::Node(node)) => ask(model, node),
        };
        Self { question, answer, scroll: 0, cursor: 0, revision: model.revision }
    }

    /// The question behind this one, as the answers are now.
    pub(super) fn next(&self, model: &Model) -> Option<Question> {
        let all = questions(model);
        let at = all.iter().position(|other| Some(*other) == self.question)?;
        all.get(at + 1).copied()
    }

    /// The question before this one.
    pub(super) fn previous(&self, model: &Model) -> Option<Question> {
        let all = questions(model);
        match self.question {
            None => all.last().copied(),
            Some(question) => all.iter().position(|other| *other == question)?.checked_sub(1).map(|at| all[at]),
        }
    }

    /// Which question this is, from 1, and how many there are now.
    pub(super) fn progress(&self, model: &Model) -> (usize, usize) {
        let all = questions(model);
        let at = all.iter().position(|other| Some(*other) == self.question).unwrap_or(all.len());
        (at + 1, all.len())
    }

    /// What the question is called.
    pub(super) fn title<'m>(&self, model: &'m Model) -> &'m str {
        match self.question {
            Some(Question::Node(node)) => model.title(node),
            Some(Question::Profile) => start_from::TITLE,
            None => "",
        }
    }
}

/// The questions, as the answers are now, in the order of the menus.
pub(super) fn questions(model: &Model) -> Vec<Question> {
    let target = model.schema.tree().symbol(TARGET);
    let mut all = Vec::new();
    for node in nodes(model) {
        all.push(Question::Node(node));
        let is_target = target.is_some() && model.schema.tree().node(node).symbol == target;
        if is_target && start_from::offered(model).next().is_some() {
            all.push(Question::Profile);
        }
    }
    all
}

/// The entries that are asked about.
fn nodes(model: &Model) -> Vec<NodeId> {
    let tree = model.schema.tree();
    let any = tree.symbols().any(|(symbol, _)| model.schema.rule(symbol).guided.is_some());
    let target = model.target();
    let is_guided = |symbol: SymbolId| match &model.asks_all_but {
        Some(named) => !named.contains(&symbol) && model.config.is_written(symbol),
        None => !any || model.schema.rule(symbol).guided.as_ref().is_some_and(|guided| guided.is_on(target)),
    };
    let asked = |id: &NodeId| {
        let node = tree.node(*id);
        let wanted = match (node.symbol, node.choice) {
            (Some(symbol), _) => {
                let first = tree.get(symbol).nodes.iter().find(|node| model.config.node_visible(**node)) == Some(id);
                first
                    && is_guided(symbol)
                    && model.config.visible(symbol) != Tri::N
                    && tree.get(symbol).choice.is_none()
            }
            (None, Some(choice)) => {
                !any && model.asks_all_but.is_none() && model.config.choice_visible(choice) != Tri::N
            }
            (None, None) => false,
        };
        wanted && node.prompt.is_some() && model.config.node_visible(*id)
    };
    tree.nodes().map(|(id, _)| id).filter(asked).collect()
}

fn ask(model: &Model, node: NodeId) -> Answer {
    let Some(row) = rows::row_of(model, node) else { return Answer::Nothing };
    let options = match row.kind {
        RowKind::Switch(symbol, now) => {
            model.config.assignable(symbol).into_iter().map(|tri| switch_option(tri, now)).rev().collect()
        }
        RowKind::Choice(choice) => rows::members(model, choice),
        RowKind::Text(symbol) => {
            let current = model.config.value(symbol);
            let format = model.schema.rule(symbol).format.as_ref();
            let records = format.filter(|format| matches!(format, Format::Records(_)));
            if let Some(items) = records.and_then(|format| Items::open(symbol, format, current)) {
                return Answer::Rows(items.with_notes(notes(model, symbol)));
            }
            let Some(words) = format.and_then(|format| format.words()) else {
                return Answer::Text(LineEdit::selected(current));
            };
            words.iter().map(|word| PickOption::word(word, current)).collect()
        }
        RowKind::Menu | RowKind::Comment => return Answer::Nothing,
    };
    options_of(options)
}

fn ask_profile(model: &Model) -> Answer {
    let current = start_from::current_name(model);
    options_of(start_from::names(model).map(|name| PickOption::word(name, current)).collect())
}

/// The cursor stands on what is so now.
fn options_of(options: Vec<PickOption>) -> Answer {
    let cursor = options.iter().position(|option: &PickOption| option.current).unwrap_or(0);
    Answer::Options { options, cursor }
}

fn switch_option(tri: Tri, now: Tri) -> PickOption {
    let label = match tri {
        Tri::Y => "yes",
        Tri::M => "as a module",
        Tri::N => "no",
    };
    PickOption { label: label.to_owned(), value: tri.as_str().to_owned(), current: tri == now }
}

/// The questions with their answers, and what follows from them.
pub(super) fn summary(model: &Model) -> (Vec<(String, String)>, Vec<String>) {
    let tree = model.schema.tree();
    let line = |question: &Question| {
        let Question::Node(node) = question else {
            let name = start_from::current(model).map_or(start_from::NONE, |preset| preset.name.as_str());
            return Some((start_from::TITLE.to_owned(), name.to_owned()));
        };
        let row = rows::row_of(model, *node)?;
        let value = match row.kind {
            RowKind::Switch(_, tri) => switch_option(tri, tri).label,
            _ => row.value,
        };
        Some((tree.node(*node).prompt.as_ref()?.text.to_string(), value))
    };
    (questions(model).iter().filter_map(line).collect(), consequences(model))
}

fn consequences(model: &Model) -> Vec<String> {
    let mut lines = count_machines(model);
    let asked: Vec<SymbolId> = nodes(model).iter().filter_map(|node| model.schema.tree().node(*node).symbol).collect();
    let others = model.schema.tree().symbols().filter(|(id, _)| !asked.contains(id) && model.config.is_written(*id));
    let changed = others.filter(|(id, _)| model.config.default_value(*id) != model.config.value(*id)).count();
    lines.push(match changed {
        0 => format!("All other settings keep their defaults; {} has every one of them.", model.file),
        1 => "One other setting is not at its default; v shows it.".to_owned(),
        count => format!("{count} other settings are not at their defaults; v shows them."),
    });
    if !model.is_checked() {
        lines.push("Checking whether it can be turned up ...".to_owned());
    } else if model.form == Form::Object && model.errors().next().is_none() {
        lines.push("What would be done, and why: turnup plan. Do it: turnup up.".to_owned());
    }
    lines
}

/// How many machines there will be, of node groups as many as they may become.
fn count_machines(model: &Model) -> Vec<String> {
    let Some((control, workers)) = count_hosts(&model.schema, &model.config) else { return Vec::new() };
    let is = |name: &str, value: &str| {
        let symbol = model.schema.tree().symbol(name);
        symbol.is_some_and(|symbol| model.config.is_written(symbol) && model.config.value(symbol) == value)
    };
    let bastion = u64::from(is("phase1.ssh.bastion", "create"));
    let hosts = control + workers + bastion;
    if hosts == 1 {
        return vec!["1 host: control plane, and pods too".to_owned()];
    }
    let parts = [(control, "for the control plane"), (workers, "for pods"), (bastion, "the bastion")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    vec![format!("{hosts} hosts: {}", parts.collect::<Vec<_>>().join(", "))]
}
