//! What is right in itself and yet not enough for `turnup up`: files that are not there. Looks
//! whether files are there; reads none of them.

use std::error::Error as StdError;
use std::path::Path;

use serde_json::Value;

use super::file::is_readable_by_others;
use super::format::Format;
use super::{Problem, ProblemSource, Settings};
use crate::error::Error;

impl Settings {
    /// A notice where the next minor version of Kubernetes does not have these feature gates, which
    /// a file that the setting names has.
    #[must_use]
    pub fn warn_of_gates<'g>(&self, setting: &str, gates: impl IntoIterator<Item = &'g str>) -> Option<Problem> {
        let version = self.get("phase2.kubernetes_version").ok()?;
        self.schema().gates().warn(&version, setting, gates).map(|problem| self.located(problem))
    }

    /// The same error with the place of the setting that its message begins with.
    #[must_use]
    pub fn locate(&self, error: Error) -> Error {
        self.as_problem(&error).locate(error, self.path())
    }

    /// What a phase would refuse, as a problem of the setting that its message begins with, or of
    /// none.
    #[must_use]
    pub fn as_problem(&self, error: &Error) -> Problem {
        let mut parts = vec![error.message().to_owned()];
        let causes = std::iter::successors(StdError::source(error), |cause| (*cause).source());
        // The first line says what; further ones are a picture of the text.
        parts.extend(causes.map(|cause| cause.to_string().lines().next().unwrap_or_default().to_owned()));
        parts.extend(error.evidence_lines().iter().map(ToString::to_string));
        parts.extend(error.next().map(|hint| format!("next: {hint}")));
        let problem = Problem::error(parts.join("; "));
        // Of one group or volume it says which, in brackets behind the name.
        let name = error.message().split([':', ' ']).next().unwrap_or_default();
        if self.schema().find(name).is_ok() {
            self.located(problem.about(name))
        } else {
            Problem { source: ProblemSource::Elsewhere, ..problem }
        }
    }

    /// All that `check` says, and what is wrong only with the whole configuration: files that it
    /// names, whose relative paths count from `dir`, and values of which each is right by itself.
    #[must_use]
    pub fn check_whole(&self, dir: &Path) -> Vec<Problem> {
        let mut problems = self.check();
        problems.extend(self.check_files(dir));
        problems.extend(self.check_issuers());
        problems
    }

    /// The API server does not start where people come from the issuer of service accounts.
    fn check_issuers(&self) -> Option<Problem> {
        let name = "phase2.apiserver.oidc_issuer_url";
        let text = |name: &str| self.get(name).unwrap_or_default();
        let (url, named) = (text(name), text("phase2.apiserver.service_account_issuer"));
        let own = format!("https://kubernetes.default.svc.{}", text("phase2.cluster_domain"));
        if url.is_empty() || ![named, own].contains(&url) {
            return None;
        }
        Some(self.located(Problem::of(name, format!("{url} issues the tokens of service accounts already"))))
    }

    /// What is wrong with the files that settings in force name; relative paths count from `dir`.
    fn check_files(&self, dir: &Path) -> Vec<Problem> {
        let mut problems = Vec::new();
        for setting in self.list().iter().filter(|setting| setting.written && !setting.value.is_empty()) {
            let Ok(symbol) = self.schema().find(&setting.name) else { continue };
            let files = self.schema().rule(symbol).format.iter().flat_map(|format| files(format, &setting.value));
            for file in files {
                let path = dir.join(&file);
                let shown = if setting.secret { "the file that it names" } else { &file };
                let message = if !path.is_file() {
                    format!("{}: {shown} is not there, or no file", setting.name)
                } else if is_of_a_secret(&setting.name) && is_readable_by_others(&path) {
                    let quoted = shell_words::quote(&file);
                    format!("{}: others may read {shown}, and a secret is in it: chmod 600 {quoted}", setting.name)
                } else {
                    continue;
                };
                problems.push(self.located(Problem::error(message).about(&setting.name)));
            }
        }
        problems
    }
}

/// Whether a setting names a file with credentials; of a private key ssh itself says so.
fn is_of_a_secret(name: &str) -> bool {
    const ENDS: [&str; 7] = [
        "ca_key_file",
        "credentials_file",
        "client_secret_file",
        "dns.key_file",
        "headers_file",
        "password_file",
        "registry_auth_file",
    ];
    ENDS.iter().any(|end| name.ends_with(end))
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
            values.flat_map(|(format, value)| files(format, &format.to_text(value).unwrap_or_default())).collect()
        }
        _ => Vec::new(),
    }
}
