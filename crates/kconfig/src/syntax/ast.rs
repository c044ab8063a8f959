//! The syntax tree: what the files say, with spans, before any name is resolved.

use crate::expr::Compare;
use crate::source::Span;
use crate::tree::Annotation;
use crate::value::SymbolType;

/// A word or a quoted text, escapes already resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: Box<str>,
    pub quoted: bool,
    pub span: Span,
}

/// An expression as written. Chains are flat, so that their length costs no depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    Word(Word),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Compare(Compare, Word, Word),
}

/// An expression with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub expression: Expression,
    pub span: Span,
}

/// What the lines inside an entry say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttributeKind {
    Type {
        kind: SymbolType,
    },
    Prompt {
        text: Word,
        condition: Option<Located>,
    },
    Default {
        value: Located,
        condition: Option<Located>,
    },
    DependsOn {
        expression: Located,
        condition: Option<Located>,
    },
    Select {
        target: Word,
        condition: Option<Located>,
    },
    Imply {
        target: Word,
        condition: Option<Located>,
    },
    Range {
        low: Word,
        high: Word,
        condition: Option<Located>,
    },
    VisibleIf(Located),
    Help(String),
    Modules,
    Optional,
    Transitional,
    Env(Word),
    /// Options of old trees that change nothing here.
    Ignored,
}

/// One line inside an entry; `bool "text"` and `def_bool y` make two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub kind: AttributeKind,
    /// The keyword.
    pub span: Span,
}

/// One entry of a file or a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub kind: ItemKind,
    /// The line that opens it.
    pub span: Span,
    pub annotations: Vec<Annotation>,
    pub attributes: Vec<Attribute>,
    /// What a block encloses.
    pub items: Vec<Self>,
}

/// The kind of an entry with what only that kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    MainMenu(Word),
    Config {
        name: Word,
        menu: bool,
    },
    Choice {
        name: Option<Word>,
    },
    Menu(Word),
    If(Located),
    Comment(Word),
    /// Its items are those of the files that it named.
    Source,
}
