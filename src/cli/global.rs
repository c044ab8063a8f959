//! The options that every command has.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::config::{Overrides, Settings, TreeSource};
use crate::error::Result;

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", env = "TURNUP_CONFIG", default_value = ".config.json")]
    pub config: PathBuf,
    /// Whether the command line itself names that file: tools that have another default of their
    /// own ask.
    #[arg(skip)]
    pub config_is_named: bool,
    /// The directory of everything that turnup remembers
    #[arg(long, global = true, value_name = "DIR", env = "TURNUP_STATE_DIR", default_value = ".turnup")]
    pub state_dir: PathBuf,
    /// A value for this run, before the file's
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = parse_assignment)]
    pub set: Vec<(String, String)>,
    /// How results are written
    #[arg(long, global = true, value_name = "FORM", default_value = "text")]
    pub output: OutputFormat,
    /// Only results and errors, no remarks
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

impl Global {
    /// The values for this run.
    pub(crate) fn overrides(&self) -> Vec<Overrides> {
        Overrides::collect(
            &self.set,
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        )
    }

    /// The file's settings with the values for this run; an error when there is no file or anything
    /// is wrong.
    pub(crate) fn settings(&self, source: &TreeSource) -> Result<Settings> {
        Settings::load(&self.config, source)?.with_overrides(&self.overrides())
    }

    /// The same with the defaults when there is no file.
    pub(crate) fn settings_or_default(&self, source: &TreeSource) -> Result<Settings> {
        Settings::load_or_default(&self.config, source)?.with_overrides(&self.overrides())
    }
}

/// The form of results on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Lines for people
    Text,
    /// JSON, with the name and version of its schema
    Json,
}

pub(super) fn parse_assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is empty".to_owned()),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("expected NAME=VALUE, as in {text}=…")),
    }
}
