//! What can lie over the menus: data only. How each reacts is in `update` and beside its own type.

use std::collections::VecDeque;

use kconfig::{ChoiceId, NodeId, SymbolId};

use super::items::{Cell, ElementFields, Items};
use super::keymap::KeyContext;
use super::line_edit::LineEdit;
use super::search::Search;

/// What lies over the menus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    /// Editing the text of a symbol.
    Edit { symbol: SymbolId, line: LineEdit, completions: Vec<String> },
    /// Picking one of several.
    Pick(Pick),
    /// The elements of a list, a map or records.
    Items(Items),
    /// The fields of one element.
    Fields(ElementFields),
    /// The text of one field.
    Cell(Cell),
    /// The question whether the rows become these, because a paste replaces some or assumes
    /// something.
    Pasted { items: Items, lines: Vec<String>, scroll: usize },
    /// Looking for an entry.
    Search(Search),
    /// What would make an entry changeable.
    Repair(Repair),
    /// What is wrong, to be gone to.
    Problems { cursor: usize },
    /// The file as it would be, and what differs.
    Preview(FilePreview),
    /// The name of a file.
    Path { purpose: FilePurpose, line: LineEdit, completions: Vec<String> },
    /// Everything about one entry.
    Details { node: NodeId, scroll: usize },
    /// All keys.
    Keys { scroll: usize },
    /// Lines to read.
    Text { title: String, lines: Vec<String>, scroll: usize },
    /// The question before leaving, with what is not saved.
    Quit { lines: Vec<String>, scroll: usize },
    /// The question before writing something that is wrong.
    Save { lines: Vec<String>, scroll: usize },
    /// The file has changed on disk: what differs, and what to do.
    Conflict { lines: Vec<String>, meets: bool, scroll: usize },
    /// The question whether answers of a session that was cut off are taken over.
    Recover {
        lines: Vec<String>,
        scroll: usize,
        /// Whether the next refusal counts: one that was typed ahead must not.
        refused: bool,
    },
}

/// What a file is named for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilePurpose {
    /// Its answers are taken over.
    Load,
    /// All answers are written to it.
    SaveAs,
    /// What is not so by default is written to it.
    SaveMinimal,
}

/// A list to pick from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) title: String,
    pub(super) options: Vec<PickOption>,
    pub(super) cursor: usize,
    pub(super) target: PickPurpose,
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
pub(super) enum PickPurpose {
    /// A text that has one of several values.
    Symbol(SymbolId),
    /// A choice, by its member.
    Choice(ChoiceId),
    /// A field of an element, by its position.
    Field(usize),
    /// A profile, or another file, to load.
    Load,
    /// How to begin.
    Start,
}

/// What would make an entry changeable; `repair` finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    pub(super) symbol: SymbolId,
    /// Why it is locked.
    pub(super) reasons: Vec<String>,
    /// The answers to give, in their order; none when no way was found.
    pub(super) steps: Vec<(SymbolId, String)>,
    /// As many answers of other values, in a circle: the next ones first.
    pub(super) others: VecDeque<Vec<(SymbolId, String)>>,
    /// Which of all these the steps are, from 1.
    pub(super) number: usize,
    /// What else changes with them.
    pub(super) effects: Vec<String>,
    pub(super) scroll: usize,
}

/// The file as it would be, and what differs; `preview` makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilePreview {
    pub(super) tab: Tab,
    pub(super) lines: Vec<String>,
    pub(super) scroll: usize,
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    /// The file as it would be saved.
    File,
    /// What differs from the file.
    Saved,
    /// What differs from the defaults.
    Defaults,
    /// What differs from what runs.
    Applied,
}

impl Dialog {
    /// What its keys are.
    pub(super) const fn context(&self) -> KeyContext {
        match self {
            Self::Edit { .. } | Self::Cell(_) => KeyContext::Edit,
            Self::Path { .. } => KeyContext::Path,
            Self::Pick(_) => KeyContext::Pick,
            Self::Items(_) => KeyContext::Items,
            Self::Fields(_) => KeyContext::Fields,
            Self::Pasted { .. } => KeyContext::Pasted,
            Self::Search(_) => KeyContext::Search,
            // Where no way was found there is nothing to take.
            Self::Repair(repair) if repair.steps.is_empty() => KeyContext::Text,
            Self::Repair(_) => KeyContext::Repair,
            Self::Problems { .. } => KeyContext::Problems,
            Self::Preview(_) => KeyContext::Preview,
            Self::Details { .. } | Self::Keys { .. } | Self::Text { .. } => KeyContext::Text,
            Self::Quit { .. } => KeyContext::Quit,
            Self::Save { .. } => KeyContext::Save,
            Self::Conflict { meets: false, .. } => KeyContext::Conflict,
            Self::Conflict { meets: true, .. } => KeyContext::ConflictMeets,
            Self::Recover { .. } => KeyContext::Recover,
        }
    }
}

impl Pick {
    /// The list with the cursor on what is so now.
    pub(super) fn new(title: impl Into<String>, options: Vec<PickOption>, target: PickPurpose) -> Self {
        let cursor = options.iter().position(|option| option.current).unwrap_or(0);
        Self { title: title.into(), options, cursor, target }
    }
}

impl PickOption {
    /// A value that is its own label.
    pub(super) fn word(word: &str, current: &str) -> Self {
        Self { label: word.to_owned(), value: word.to_owned(), current: word == current }
    }
}
