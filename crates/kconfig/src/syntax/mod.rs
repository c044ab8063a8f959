//! From bytes to the syntax tree: the reader of logical lines, the grammar of one line, blocks of
//! lines.
//!
//! Resolves no names: that is `build`.

pub(crate) mod ast;
pub(crate) mod blocks;
pub(crate) mod commands;
pub(crate) mod lower;
pub(crate) mod macros;
pub(crate) mod reader;
pub(crate) mod shape;
pub(crate) mod token;
