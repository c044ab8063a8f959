//! Kconfig: the configuration language of the Linux kernel, as a library.
//!
//! A tree of Kconfig files becomes a [`Tree`]; a [`Config`] answers what every symbol's value is,
//! where it came from and whether a user may change it. Nothing here touches a file system, a
//! terminal, a process or the environment: the caller hands in [`Files`] and an [`Env`].
//!
//! # Layers
//!
//! Each layer uses only the ones before it.
//!
//! [`env`](mod@env) is the outside that the caller hands in: variables, commands, functions,
//! messages. [`dialect`] says whose rules count where the C tools changed theirs.
//!
//! 1. [`source`]: files, positions, and the reader that splits bytes into *logical lines*
//!    (continuations joined, comments and help text taken out). Most bytes of a real tree are help
//!    and comments; they never reach the grammar.
//! 2. `syntax`: a line becomes tokens, in which macros are expanded; `kconfig.pest` describes the
//!    *shape* of a line, the kinds of its tokens, and each shape is parsed once; the block parser
//!    makes a syntax tree with spans of the lines. Commands of `$(shell)` run side by side while
//!    the files behind them are read.
//! 3. `build`: the syntax tree becomes symbols, choices and menu nodes in arenas; dependencies are
//!    propagated, implicit submenus formed, recursive dependencies found.
//! 4. `eval`: values, lazily computed and remembered.
//! 5. [`dotconfig`]: reads and writes `.config`.
//! 6. [`diagnostic`]: every finding of every layer, with stable ids and pictures of the source.
//!
//! [`conf`] is Linux's `scripts/kconfig/conf` on top of all of them. Other tools stand beside the
//! layers and use only their public side: [`lint`], [`merge`] and [`diff`] over [`fragment`],
//! [`explain`], [`format`](mod@format) and [`json`]. [`history`] lets a front-end undo.
//!
//! # Invariants
//!
//! - A [`Tree`] is immutable and has no dependency cycle: loading refuses one, so evaluation always
//!   ends.
//! - Expressions are shared: two equal expressions of one tree have the same [`ExprId`].
//! - No input makes the parser panic or recurse without a bound.
//!
//! # Example
//!
//! ```
//! use kconfig::{Config, Env, MemoryFiles, Tree};
//!
//! let files = MemoryFiles::new([("Kconfig", "config port\n\tint \"Port\"\n\tdefault 443\n\trange 1 65535\n")]);
//! let tree = Tree::load("Kconfig", &files, &Env::empty()).map_err(|found| found.render(true))?;
//! let port = tree.symbol("port").ok_or("no such symbol")?;
//! let mut config = Config::new(&tree);
//! assert_eq!(config.value(port), "443");
//! config.set(port, "8443").map_err(|error| error.to_string())?;
//! assert_eq!(config.value(port), "8443");
//! # Ok::<(), String>(())
//! ```

mod build;
pub mod conf;
pub mod config;
pub mod diagnostic;
pub mod dialect;
pub mod diff;
pub mod dotconfig;
pub mod env;
mod eval;
mod excerpt;
pub mod explain;
pub mod expr;
pub mod format;
pub mod fragment;
pub mod history;
mod ids;
pub mod json;
pub mod lint;
mod load;
pub mod merge;
mod names;
mod show;
pub mod source;
pub mod suggest;
mod syntax;
pub mod text;
pub mod tree;
pub mod value;

pub use config::{Change, Config, SetError};
pub use diagnostic::{Diagnostic, Diagnostics, Label, Level};
pub use dialect::{Dialect, Rule};
pub use env::{Call, Env, Messages, Output, Shell};
pub use excerpt::Excerpt;
pub use expr::{Atom, Compare, Expr, ExprId};
pub use load::detect_dialect;
pub use source::{FileId, Files, MemoryFiles, SearchPath, Span};
pub use suggest::suggest;
pub use tree::{
    Annotation, Choice, ChoiceId, DefaultValue, Node, NodeId, NodeKind, Prompt, RangeLimit, Selection, Symbol,
    SymbolId, Tree,
};
pub use value::{Origin, SymbolType, Tri, Value};

/// The examples of the README are compiled and run like all others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
