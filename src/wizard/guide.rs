//! Where the guide stands: the question, and what has been typed in answer to it.

use kconfig::NodeId;

use super::dialog::PickOption;
use super::items::Items;
use super::keymap::KeyContext;
use super::line_edit::LineEdit;

/// The position in the questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guide {
    /// The question; none at the summary.
    pub(super) question: Option<Question>,
    pub(super) answer: Answer,
    pub(super) scroll: usize,
    /// Of what is wrong, at the summary.
    pub(super) cursor: usize,
    /// The answers of which rows were made.
    pub(super) revision: u64,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The entry of a menu.
    Node(NodeId),
    /// From which profile to start.
    Profile,
}

/// How the question is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// By one of these.
    Options { options: Vec<PickOption>, cursor: usize },
    /// By a text.
    Text(LineEdit),
    /// By rows, which are edited in a dialog.
    Rows(Items),
    /// Not at all: the summary.
    Nothing,
}

impl Guide {
    /// The entry that is asked about.
    pub(super) const fn node(&self) -> Option<NodeId> {
        match self.question {
            Some(Question::Node(node)) => Some(node),
            _ => None,
        }
    }

    /// What its keys are.
    pub(super) const fn context(&self) -> KeyContext {
        match self.answer {
            Answer::Options { .. } => KeyContext::GuideOptions,
            Answer::Text(_) => KeyContext::GuideText,
            Answer::Rows(_) => KeyContext::GuideRows,
            Answer::Nothing => KeyContext::Summary,
        }
    }

    /// Whether all questions are answered.
    pub(super) const fn is_at_end(&self) -> bool {
        self.question.is_none()
    }
}
