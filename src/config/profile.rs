//! Profiles: answers for common kinds of clusters, to start from. Files
//! `phases/profiles/<name>.defconfig` of the tree.
//!
//! A profile says only what differs from the defaults. Its first comment lines say what it is for.

use std::collections::BTreeSet;

use kconfig::SymbolId;

use super::Settings;
use super::problem::ProblemLevel;
use super::schema::{Schema, suggestion};
use super::source::TreeSource;
use crate::error::{Error, Result};

const DIRECTORY: &str = "phases/profiles";
const EXTENSION: &str = ".defconfig";

/// One profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is for: one sentence.
    pub purpose: String,
    path: String,
    text: String,
}

impl Profile {
    /// All profiles of a tree, by name.
    pub fn list(source: &TreeSource) -> Result<Vec<Self>> {
        let mut profiles = Vec::new();
        for path in source.files(DIRECTORY) {
            let Some(name) = path.strip_prefix(&format!("{DIRECTORY}/")).and_then(|file| file.strip_suffix(EXTENSION))
            else {
                continue;
            };
            let (name, text) = (name.to_owned(), source.read_text(&path)?);
            let comments = text.lines().map_while(|line| line.strip_prefix('#').map(str::trim));
            let purpose = comments.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
            profiles.push(Self { name, purpose, path, text });
        }
        Ok(profiles)
    }

    /// The profile of this name, or an error that says which one was probably meant.
    pub fn find(source: &TreeSource, name: &str) -> Result<Self> {
        let profiles = Self::list(source)?;
        if let Some(found) = profiles.iter().find(|profile| profile.name == name) {
            return Ok(found.clone());
        }
        let advice = suggestion(name, profiles.iter().map(|profile| profile.name.as_str()));
        Err(Error::usage(format!("there is no profile `{name}`{advice}"))
            .hint("see all profiles: turnup config profile"))
    }

    /// What this profile says, in the order of the menus.
    #[must_use]
    pub fn answers(&self, schema: &Schema) -> Vec<(SymbolId, String)> {
        let mut config = schema.config();
        // A test holds all profiles to the tree.
        drop(kconfig::dotconfig::read(&mut config, &self.text, ""));
        let answer = |symbol: SymbolId| Some((symbol, config.user_value(symbol)?.to_owned()));
        schema.ordered().iter().copied().filter_map(answer).collect()
    }

    /// The settings of this profile; an error when it does not fit the tree.
    pub fn settings(&self, schema: std::sync::Arc<Schema>) -> Result<Settings> {
        let mut config = schema.config();
        let found = kconfig::dotconfig::read(&mut config, &self.text, "");
        let mut settings = Settings::from_defaults(schema);
        settings.adopt(&config);
        let mistakes = found.iter().map(|(line, finding)| format!("{}:{line}: {finding}", self.path));
        let errors = settings.check().into_iter().filter(|problem| problem.level == ProblemLevel::Error);
        let problems = errors.map(|problem| format!("{}: {}", self.path, problem.message));
        let mistakes: BTreeSet<String> = mistakes.chain(problems).collect();
        if mistakes.is_empty() {
            return Ok(settings);
        }
        let error = Error::config(format!("the profile {} does not fit the Kconfig tree", self.name));
        Err(mistakes.into_iter().fold(error, Error::evidence))
    }
}
