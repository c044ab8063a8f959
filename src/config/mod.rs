//! The configuration object over the Kconfig tree.
//!
//! - `source`: where the tree, phases and templates come from.
//! - `schema`: the tree and its structured comments, whose formats are those of `crate::format`.
//! - `object`: between a configuration and the JSON object, every mistake with its place.
//! - `check`, `components`, `warnings`: is it right, and are the files there that it names?
//!   `problem`: what is found.
//!   `host_system`: what hosts have besides Kubernetes. `host_list`: hosts in the forms in which
//!   people have them; `host_merge`: put into the list that there is. `field_help`: the help of one
//!   field of a record.
//!   `ports`: which ports of a host are taken.
//!   `refusal`: why a change was refused, and the next command.
//! - `people`: names and lives of what people use the API with.
//! - `settings`: a loaded file, as all other modules use it; `typed_settings`: its values by their
//!   types; `file`: replacing it as a whole. `destination`: where they go in the configuration of a
//!   component; `assignment`: what they put there.
//!
//! Nothing here prints or asks. The one file that is ever written is the one that the caller names.

mod addons;
mod artifacts;
mod assets;
mod assignment;
mod backup;
mod check;
mod components;
mod destination;
mod dns;
mod ebs;
mod explain;
mod export;
mod field_help;
mod file;
mod gates;
mod host_list;
mod host_merge;
pub mod host_system;
mod hosts;
mod import;
mod json_schema;
mod limits;
mod log_shipping;
mod node_groups;
mod object;
mod overrides;
pub mod people;
mod ports;
mod problem;
mod profile;
mod refusal;
mod relations;
mod runtime;
mod schema;
mod setting;
mod settings;
mod source;
mod typed_settings;
mod values;
mod warnings;

pub(crate) use crate::format;
pub use crate::format::{parse_duration, parse_quantity};
pub use crate::json::Position;
pub use crate::network::{Network, Network6};
use crate::{json, network};
pub use assignment::Assignment;
pub use backup::object_prefix;
pub use check::{check, count_hosts, judge};
pub use destination::{ComponentName, Destination, flag_text};
pub use explain::WishWay;
pub use export::ExportFormat;
pub use field_help::field_help;
pub(crate) use file::{Privacy, is_same as is_same_file, read as read_file, replace as replace_file};
pub use host_list::{HOSTS, HostList, read_hosts};
pub use host_merge::merge_hosts;
pub use hosts::MOST_CONTROL_PLANES;
pub use import::{Fate, Imported, import_anywhere};
pub use json_schema::json_schema;
pub use log_shipping::LogServer;
pub(crate) use object::{render, show, write as object};
pub use overrides::Overrides;
pub use problem::{CORRECT, Problem, ProblemLevel, ProblemSource, refuse};
pub use profile::Profile;
pub use relations::Addresses;
pub use schema::{ChangeEffect, Guided, Rule, Schema, TARGET};
pub use setting::{ComponentValue, Setting, SettingChange};
pub use settings::Settings;
pub use source::TreeSource;
