//! The guided way: only the questions that a first cluster needs, one after the other, back and
//! forth, with a summary at the end.
//!
//! Which questions these are the tree says (`#: guided`); a tree that says nothing is asked
//! through, entry by entry.

use kconfig::{NodeId, SymbolId, Tri};

use super::dialog::PickOption;
use super::keymap::Context;
use super::line_edit::LineEdit;
use super::model::Model;
use super::rows::{self, RowKind};

/// The position in the questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guide {
    /// The question; none at the summary.
    pub(super) node: Option<NodeId>,
    pub(super) answer: Answer,
    pub(super) scroll: usize,
}

/// How the question is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// By one of these.
    Options { options: Vec<PickOption>, cursor: usize },
    /// By a text.
    Text(LineEdit),
    /// Not at all: the summary.
    Nothing,
}

impl Guide {
    /// At the first question.
    pub(super) fn start(model: &Model) -> Self {
        Self::at(model, questions(model).first().copied())
    }

    /// At this question, or at the summary.
    pub(super) fn at(model: &Model, node: Option<NodeId>) -> Self {
        Self { node, answer: node.map_or(Answer::Nothing, |node| answer(model, node)), scroll: 0 }
    }

    /// What its keys are.
    pub(super) const fn context(&self) -> Context {
        match self.answer {
            Answer::Options { .. } => Context::GuideOptions,
            Answer::Text(_) => Context::GuideText,
            Answer::Nothing => Context::Summary,
        }
    }

    /// Whether all questions are answered.
    pub(super) const fn is_at_end(&self) -> bool {
        self.node.is_none()
    }

    /// The question behind this one, as the answers are now.
    pub(super) fn next(&self, model: &Model) -> Option<NodeId> {
        let all = questions(model);
        let at = all.iter().position(|node| Some(*node) == self.node)?;
        all.get(at + 1).copied()
    }

    /// The question before this one.
    pub(super) fn previous(&self, model: &Model) -> Option<NodeId> {
        let all = questions(model);
        match self.node {
            None => all.last().copied(),
            Some(node) => all.iter().position(|other| *other == node)?.checked_sub(1).map(|at| all[at]),
        }
    }

    /// Which question this is, from 1, and how many there are now.
    pub(super) fn progress(&self, model: &Model) -> (usize, usize) {
        let all = questions(model);
        let at = all.iter().position(|node| Some(*node) == self.node).unwrap_or(all.len());
        (at + 1, all.len())
    }
}

/// The questions, as the answers are now, in the order of the menus.
pub(super) fn questions(model: &Model) -> Vec<NodeId> {
    let tree = model.schema.tree();
    let is_guided = |symbol: SymbolId| model.schema.rule(symbol).guided;
    let any = tree.symbols().any(|(symbol, _)| is_guided(symbol));
    let asked = |id: &NodeId| {
        let node = tree.node(*id);
        let wanted = match (node.symbol, node.choice) {
            (Some(symbol), _) => {
                let first = tree.get(symbol).nodes.iter().find(|node| model.config.node_visible(**node)) == Some(id);
                first
                    && (!any || is_guided(symbol))
                    && model.config.visible(symbol) != Tri::N
                    && tree.get(symbol).choice.is_none()
            }
            (None, Some(choice)) => !any && model.config.choice_visible(choice) != Tri::N,
            (None, None) => false,
        };
        wanted && node.prompt.is_some() && model.config.node_visible(*id)
    };
    tree.nodes().map(|(id, _)| id).filter(asked).collect()
}

fn answer(model: &Model, node: NodeId) -> Answer {
    let Some(row) = rows::row_of(model, node) else { return Answer::Nothing };
    let options = match row.kind {
        RowKind::Switch(symbol, now) => {
            model.config.assignable(symbol).into_iter().map(|tri| switch_option(tri, now)).rev().collect()
        }
        RowKind::Choice(choice) => rows::members(model, choice),
        RowKind::Text(symbol) => {
            let current = model.config.value(symbol);
            let words = model.schema.rule(symbol).format.as_ref().and_then(|format| format.words());
            let Some(words) = words else { return Answer::Text(LineEdit::selected(current)) };
            words.iter().map(|word| option_of(model, symbol, word, current)).collect()
        }
        RowKind::Menu | RowKind::Comment => return Answer::Nothing,
    };
    let cursor = options.iter().position(|option: &PickOption| option.current).unwrap_or(0);
    Answer::Options { options, cursor }
}

/// A possible answer, with a word about one that this version cannot do yet.
pub(super) fn option_of(model: &Model, symbol: SymbolId, word: &str, current: &str) -> PickOption {
    let unused = model.schema.rule(symbol).unused.as_ref();
    let unused = unused.is_some_and(|unused| !unused.values.is_empty() && unused.covers(word, model.target()));
    let label = if unused { format!("{word} (this version cannot turn it up yet)") } else { word.to_owned() };
    PickOption { label, value: word.to_owned(), current: word == current }
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
    let line = |node: &NodeId| {
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
    let mut lines = Vec::new();
    match crate::config::count_hosts(&model.schema, &model.config) {
        Some((1, 0)) => lines.push("1 host: control plane, and pods too".to_owned()),
        Some((control, workers)) => {
            let hosts = control + workers;
            lines.push(format!("{hosts} hosts: {control} for the control plane, {workers} for pods"));
        }
        None => {}
    }
    let bastion = model.schema.tree().symbol("phase1.ssh.bastion");
    if bastion.is_some_and(|bastion| model.config.is_written(bastion) && model.config.value(bastion) == "create") {
        lines.push("1 more host: the bastion".to_owned());
    }
    let asked: Vec<SymbolId> =
        questions(model).iter().filter_map(|node| model.schema.tree().node(*node).symbol).collect();
    let others = model.schema.tree().symbols().filter(|(id, _)| !asked.contains(id) && model.config.is_written(*id));
    let changed = others.filter(|(id, _)| model.config.default_value(*id) != model.config.value(*id)).count();
    lines.push(match changed {
        0 => format!("All other settings keep their defaults; {} has every one of them.", model.file),
        1 => "One other setting is not at its default; v shows it.".to_owned(),
        count => format!("{count} other settings are not at their defaults; v shows them."),
    });
    if !model.is_checked() {
        lines.push("Checking whether it can be turned up ...".to_owned());
    } else if model.form == super::model::Form::Object && model.errors().next().is_none() {
        lines.push("What would be done, and why: turnup plan. Do it: turnup up.".to_owned());
    }
    lines
}
