//! One test binary: corpora, semantics, round trips, and whatever bytes a fuzzer thinks of.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod conf_ask;
mod conf_auto;
mod conf_dialects;
mod conf_edges;
mod conf_files;
mod conf_modes;
mod conf_options;
mod conf_refuse;
mod conf_support;
mod corpus;
mod diagnostics;
mod diff;
mod dotconfig;
mod explain;
mod format;
mod fuzz;
mod json;
mod lint;
mod macros;
mod menus;
mod merge;
mod mutated;
mod properties;
mod semantics;
mod support;
