//! The configuration object over the Kconfig tree.
//!
//! - `source`: where the tree, phases and templates come from.
//! - `schema`: the tree and its structured comments; `format`, `network`: what text may look like.
//! - `object`, `json`: between a configuration and the JSON object, every mistake with its place.
//! - `check`, `named`: is it right, and are the files there that it names? `problem`: what is found.
//! - `settings`: a loaded file, as all other rooms use it; `typed`: its values by their types; `file`: replacing it as a whole.
//!
//! Nothing here prints or asks. The one file that is ever written is the one that the caller names.

mod assets;
mod check;
mod explain;
mod export;
mod file;
pub mod format;
mod given;
mod hosts;
mod import;
mod json;
mod json_schema;
mod named;
mod network;
mod object;
mod problem;
mod profile;
mod schema;
mod settings;
mod source;
mod typed;

pub use check::{check, judge};
pub use explain::Way;
pub use export::Form;
pub(crate) use file::{Privacy, read as read_file, replace as replace_file};
pub use format::parse_duration;
pub use given::Given;
pub use hosts::{MOST_CONTROL_PLANES, is_disk};
pub use import::{Fate, Imported, import_anywhere};
pub use json::Position;
pub use json_schema::json_schema;
pub use network::{Network, Network6};
pub(crate) use object::{render, show, write as object};
pub use problem::{Level, Problem};
pub use profile::Profile;
pub use schema::{Effect, Rule, Schema, TARGET, Unused};
pub use settings::{Change, Setting, Settings};
pub use source::TreeSource;
