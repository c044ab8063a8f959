//! An error that is known to happen: words of its message, its class and what to do.
//!
//! Only the form of a row. Each cloud has rows of its own; `provision` has those that all share,
//! and matches.

use crate::error::Class;

/// One kind of error.
#[derive(Debug)]
pub struct KnownError {
    /// Words that the message has, all of one of these lists, in lower case.
    pub words: &'static [&'static [&'static str]],
    /// How the engine takes it.
    pub class: Class,
    /// What to do. `{}` is what stands in the message between one of the pairs of `named`.
    pub text: &'static str,
    /// What to say where the message names nothing.
    pub otherwise: &'static str,
    /// What stands before and behind the name in the message.
    pub named: &'static [(&'static str, &'static str)],
}

/// An error with one advice.
#[must_use]
pub const fn known(words: &'static [&'static [&'static str]], class: Class, text: &'static str) -> KnownError {
    KnownError { words, class, text, otherwise: text, named: &[] }
}

/// An error whose message names what the advice is about.
#[must_use]
pub const fn naming(
    words: &'static [&'static [&'static str]],
    class: Class,
    text: &'static str,
    otherwise: &'static str,
    named: &'static [(&'static str, &'static str)],
) -> KnownError {
    KnownError { words, class, text, otherwise, named }
}
