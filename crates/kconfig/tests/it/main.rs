//! One test binary: corpora, semantics, round trips, and whatever bytes a fuzzer thinks of.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod corpus;
mod diagnostics;
mod dotconfig;
mod macros;
mod menus;
mod properties;
mod semantics;
mod support;
