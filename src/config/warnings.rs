//! What is right in itself and yet not enough for `turnup up`: files that are not there, settings
//! that are not implemented. Looks whether files are there; reads none of them.

use std::path::Path;

use serde_json::Value;

use super::format::Format;
use super::{Level, Problem, Settings};
use crate::error::Error;

impl Settings {
    /// A notice for each setting because of which `turnup up` of this version would refuse the configuration.
    #[must_use]
    pub fn check_unused(&self) -> Vec<Problem> {
        let target = self.target();
        let refused = self.unused().into_iter().filter_map(|name| {
            let why = self.schema().why_unused(self.schema().find(name).ok()?, &self.get(name).ok()?, &target)?;
            Some(self.located(Problem::notice(why).about(name)))
        });
        refused.collect()
    }

    /// What a phase would refuse, as a problem of the setting that its message begins with: an error where the value is wrong, a notice
    /// where only an answer is missing. None when it begins with no setting of this tree.
    #[must_use]
    pub fn as_problem(&self, error: &Error, level: Level) -> Option<Problem> {
        let hint = error.next().map(|hint| format!("; next: {hint}")).unwrap_or_default();
        let problem = Problem { level, ..Problem::error(format!("{}{hint}", error.message())) };
        // Of one group or volume it says which, in brackets behind the name.
        let name = error.message().split([':', ' ']).next().unwrap_or_default();
        self.schema().find(name).is_ok().then(|| self.located(problem.about(name)))
    }

    /// What is wrong with the files that settings in force name; relative paths count from `dir`.
    #[must_use]
    pub fn check_files(&self, dir: &Path) -> Vec<Problem> {
        let mut problems = Vec::new();
        for setting in self.list().iter().filter(|setting| setting.written && !setting.value.is_empty()) {
            let Ok(symbol) = self.schema().find(&setting.name) else { continue };
            let files = self.schema().rule(symbol).format.iter().flat_map(|format| files(format, &setting.value));
            for file in files.filter(|file| !dir.join(file).is_file()) {
                let shown = if setting.secret { "the file that it names" } else { &file };
                let message = format!("{}: {shown} is not there, or no file", setting.name);
                problems.push(self.located(Problem::error(message).about(&setting.name)));
            }
        }
        problems
    }
}

/// The parts of a text that are names of files.
fn files(format: &Format, text: &str) -> Vec<String> {
    match format {
        Format::File => vec![text.to_owned()],
        Format::List(element) => text.split(',').flat_map(|part| files(element, part.trim())).collect(),
        Format::Any(formats) => {
            let fitting = formats.iter().find(|format| format.validate(text).is_ok());
            fitting.map_or_else(Vec::new, |format| files(format, text))
        }
        Format::Records(fields) => {
            let records: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
            let values = records
                .iter()
                .flat_map(|record| fields.iter().filter_map(|field| Some((&field.format, record.get(&field.name)?))));
            values.flat_map(|(format, value)| files(format, &format.from_json(value).unwrap_or_default())).collect()
        }
        _ => Vec::new(),
    }
}
