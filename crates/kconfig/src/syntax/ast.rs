//! The syntax tree: what the files say, with spans, before anything is inherited. Names and
//! expressions are numbers already.

use std::ops::Range;

use thin_vec::ThinVec;

use super::reader::{LogicalLine, narrow};
use super::token::{Keyword, Token};
use crate::expr::{Atom, ExprId, TextId};
use crate::ids::SymbolId;
use crate::source::Span;
use crate::tree::{Annotation, HelpPlace};
use crate::value::SymbolType;

/// A name or a text with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: TextId,
    pub span: Span,
}

/// An expression with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub expr: ExprId,
    pub span: Span,
}

/// What a line inside an entry says; `bool "text"` and `def_bool y` say two things. A condition
/// that is not there is `y`.
///
/// There is one for nearly every line of a tree, so it is kept small.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    /// With the place of the keyword.
    Type(SymbolType, Span),
    Prompt {
        text: Word,
        condition: ExprId,
    },
    Default {
        value: Located,
        condition: ExprId,
    },
    DependsOn {
        expression: Located,
        condition: ExprId,
    },
    Select {
        target: SymbolId,
        span: Span,
        condition: ExprId,
    },
    Imply {
        target: SymbolId,
        span: Span,
        condition: ExprId,
    },
    Range(Box<RangeLine>),
    VisibleIf(Located),
    Help(HelpPlace),
    Modules,
    Optional,
    Transitional,
    AllnoconfigY,
    Env(Word),
    /// Options of old trees that change nothing here.
    Ignored,
    /// A line whose words wait for commands; what it says is known when all files are read.
    Pending(Box<PendingLine>),
}

/// The two limits of a range, their place, and when they count.
#[derive(Clone, Debug)]
pub(crate) struct RangeLine {
    pub low: Atom,
    pub high: Atom,
    pub span: Span,
    pub condition: ExprId,
}

/// A line that waits for the outputs of commands.
#[derive(Clone, Debug)]
pub(crate) struct PendingLine {
    pub keyword: Keyword,
    pub tokens: Vec<Token>,
    pub line: LogicalLine<'static>,
}

/// The lines of all entries, in pieces that are given back as soon as all their lines are taken.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    /// The pieces that are full, each with how many of its lines were taken.
    full: Vec<(Vec<Attribute>, usize)>,
    /// The piece that grows.
    last: Vec<Attribute>,
}

/// Large enough for the allocator to ask the system for each.
const PIECE: usize = 1 << 13;

impl Attributes {
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        narrow(self.full.len() * PIECE + self.last.len())
    }

    #[inline]
    pub(crate) fn push(&mut self, attribute: Attribute) {
        if self.last.len().is_multiple_of(PIECE) {
            self.begin_piece();
        }
        self.last.push(attribute);
    }

    #[cold]
    fn begin_piece(&mut self) {
        let piece = std::mem::replace(&mut self.last, Vec::with_capacity(PIECE));
        if !piece.is_empty() {
            self.full.push((piece, 0));
        }
    }

    /// The lines of one entry, none of which has been taken.
    pub(crate) fn of(&self, entry: &Item) -> impl Iterator<Item = &Attribute> {
        entry.attributes.clone().map(|number| {
            let number = number as usize;
            &self.full.get(number / PIECE).map_or(&self.last, |(lines, _)| lines)[number % PIECE]
        })
    }

    /// Takes a line that has not been taken.
    #[expect(clippy::inline_always, reason = "a call would cost more than what it does, seventy thousand times a tree")]
    #[inline(always)]
    pub(crate) fn take(&mut self, number: u32) -> Attribute {
        let number = number as usize;
        let Some((lines, taken)) = self.full.get_mut(number / PIECE) else {
            return std::mem::replace(&mut self.last[number % PIECE], Attribute::Ignored);
        };
        let attribute = std::mem::replace(&mut lines[number % PIECE], Attribute::Ignored);
        *taken += 1;
        if *taken == PIECE {
            *lines = Vec::new();
        }
        attribute
    }
}

/// One entry of a file or a block.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub kind: ItemKind,
    /// The line that opens it.
    pub span: Span,
    pub annotations: ThinVec<Annotation>,
    /// Its lines, by their numbers in [`Attributes`]: the lines of one entry follow each other.
    pub attributes: Range<u32>,
    /// What a block encloses.
    pub items: Vec<Self>,
}

/// The kind of an entry with what only that kind has.
#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    MainMenu(Word),
    Config {
        symbol: SymbolId,
        menu: bool,
    },
    Choice {
        name: Option<Word>,
        /// How many symbols were named before it.
        after: u32,
    },
    Menu(Word),
    If(Located),
    Comment(Word),
    /// Its items are those of the files that it named.
    Source,
}
