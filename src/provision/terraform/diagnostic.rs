//! Terraform's diagnostics as the error that the user reads: what happened, where in the module,
//! all of them, and what to do.

use std::path::Path;

use serde_json::Value;

use super::{advice, lock};
use crate::error::{Class, Error};
use crate::exec::Failure;

/// So many problems are shown; the log has them all.
const SHOWN: usize = 8;
/// So many lines of one problem's detail.
const DETAIL: usize = 12;

/// The error behind these diagnostics of the `-json` stream; there is at least one. `dir` is
/// Terraform's working directory.
pub(super) fn explain(name: &str, dir: &Path, failure: &Failure, problems: &[Value]) -> Error {
    if let Some(error) = problems.iter().find_map(|problem| relay(&text(&problem["detail"]))) {
        return error;
    }
    let first = text(&problems[0]["summary"]);
    if let Some(holder) = problems.iter().find_map(|problem| lock::StateHolder::parse(&text(&problem["detail"]))) {
        return with_log(holder.into_error(name, dir), failure);
    }
    let advices: Vec<Option<advice::Advice>> = problems.iter().map(|problem| advice::find(&whole(problem))).collect();
    let message = match problems.len() {
        1 => format!("{name}: {first}"),
        count => format!("{name}: {count} problems; the first: {first}"),
    };
    let mut error = Error::new(judge(&first, &advices), message);
    for (index, problem) in problems.iter().take(SHOWN).enumerate() {
        if index > 0 {
            error = error.evidence(text(&problem["summary"]));
        }
        error = describe(problem).into_iter().fold(error, Error::evidence);
    }
    if problems.len() > SHOWN {
        error = error.evidence(format!("and {} more", problems.len() - SHOWN));
    }
    let mut texts: Vec<String> = advices.into_iter().flatten().map(|advice| advice.text).collect();
    texts.dedup();
    match texts.as_slice() {
        [] => match &failure.ended().log {
            Some(log) => error.hint(format!("less {}", log.display())),
            None => error,
        },
        texts => with_log(error, failure).hint(texts.join("; ")),
    }
}

/// The error of a command that has no `-json`: `init`, `state`. None when nothing is known about
/// it.
pub(super) fn explain_text(name: &str, dir: &Path, failure: &Failure) -> Option<Error> {
    let said = failure.stderr();
    if let Some(holder) = lock::StateHolder::parse(said) {
        return Some(with_log(holder.into_error(name, dir), failure));
    }
    let advice = advice::find(said)?;
    let class = advice.class;
    Some(failure.clone().into_error(class).hint(advice.text))
}

/// What may pass by itself has to be all of it.
fn judge(first: &str, advices: &[Option<advice::Advice>]) -> Class {
    if first.contains("state lock") {
        return Class::Locked;
    }
    let is =
        |class: Class| move |advice: &Option<advice::Advice>| advice.as_ref().is_some_and(|one| one.class == class);
    if advices.iter().all(is(Class::Transient)) {
        Class::Transient
    } else if advices.iter().any(is(Class::Precondition)) {
        Class::Precondition
    } else {
        Class::Permanent
    }
}

fn with_log(error: Error, failure: &Failure) -> Error {
    match &failure.ended().log {
        Some(log) => error.evidence(format!("log: {}", log.display())),
        None => error,
    }
}

fn whole(problem: &Value) -> String {
    format!("{}\n{}", text(&problem["summary"]), text(&problem["detail"]))
}

/// The place in the module, its line, and the provider's own words.
fn describe(problem: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let address = text(&problem["address"]);
    match problem["range"]["filename"].as_str() {
        Some(file) => {
            lines.push(
                format!("{file}:{}: {address}", problem["range"]["start"]["line"]).trim_end_matches(": ").to_owned(),
            );
        }
        None if !address.is_empty() => lines.push(address),
        None => {}
    }
    let snippet = &problem["snippet"];
    if let Some(code) = snippet["code"].as_str() {
        let first = snippet["start_line"].as_u64().unwrap_or(1);
        // The line of the block alone says what the address says already.
        let shown = code.lines().zip(first..).filter(|(line, _)| !line.trim_end().ends_with('{'));
        lines.extend(shown.take(3).map(|(line, number)| format!("  {number}: {}", line.trim())));
    }
    // The detail repeats the output of a failed local-exec, whose last lines say the most.
    let detail = text(&problem["detail"]);
    let said: Vec<&str> = detail.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.extend(said[said.len().saturating_sub(DETAIL)..].iter().map(|line| (*line).to_owned()));
    lines
}

/// The error of the turnup that a local-exec called, when it is of a class that only turnup tells.
fn relay(detail: &str) -> Option<Error> {
    let (_, ended) = detail.split_once(": exit status ")?;
    let (code, output) = ended.split_once(". Output: ")?;
    let error = Error::from_rendered(code.parse().ok()?, output)?;
    (error.class() != Class::Permanent).then_some(error)
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::exec::Ended;

    fn failed() -> Failure {
        let ended = Ended {
            name: "terraform apply".into(),
            command: "terraform apply".into(),
            stdout: String::new(),
            stderr: String::new(),
            log: Some("/state/logs/provision-apply.log".into()),
            elapsed: Duration::ZERO,
        };
        Failure::Exited { code: 1, ended: Box::new(ended) }
    }

    fn explain(problems: &[Value]) -> Error {
        super::explain("terraform", Path::new("/state/provision"), &failed(), problems)
    }

    #[test]
    fn a_diagnostic_becomes_an_error_with_the_place_in_the_module() {
        let problem = json!({
            "severity": "error",
            "summary": "local-exec provisioner error",
            "detail": "Error running command: exit status 127. Output: \n/bin/sh: turnup: not found\n",
            "address": "terraform_data.network",
            "range": {"filename": "main.tf", "start": {"line": 30, "column": 3}},
        });
        insta::assert_snapshot!(explain(&[problem]).render(), @r"
        error: terraform: local-exec provisioner error
          | main.tf:30: terraform_data.network
          | Error running command: exit status 127. Output: 
          | /bin/sh: turnup: not found
        next: less /state/logs/provision-apply.log
        ");
    }

    #[test]
    fn all_problems_are_shown_each_with_its_line_and_with_what_to_do() {
        let quota = json!({
            "summary": "Error waiting for instance to create: Quota 'CPUS' exceeded.  Limit: 8.0 in region us-east1.",
            "address": "google_compute_instance.node[0]",
            "range": {"filename": "nodes.tf", "start": {"line": 7}},
            "snippet": {"code": "resource \"google_compute_instance\" \"node\" {", "start_line": 7},
        });
        let wrong = json!({
            "summary": "Invalid value for variable",
            "detail": "The zone must be in the region.",
            "range": {"filename": "variables.tf", "start": {"line": 3}},
            "snippet": {"code": "  zone = \"nowhere\"", "start_line": 3},
        });
        let error = explain(&[quota, wrong]);
        assert_eq!(error.class(), Class::Precondition);
        insta::assert_snapshot!(error.render());
    }

    #[test]
    fn what_passes_by_itself_is_tried_again_unless_something_else_is_wrong_too() {
        let busy = json!({"summary": "googleapi: Error 429: Quota exceeded, rateLimitExceeded"});
        let odd = json!({"summary": "Unsupported argument"});
        assert_eq!(explain(std::slice::from_ref(&busy)).class(), Class::Transient);
        assert_eq!(explain(&[busy, odd]).class(), Class::Permanent);
    }

    #[test]
    fn a_hundred_problems_do_not_fill_the_screen() {
        let problems: Vec<Value> = (0..100).map(|at| json!({"summary": format!("problem {at}")})).collect();
        let error = explain(&problems);
        assert_eq!(error.evidence_lines().last().map(String::as_str), Some("and 92 more"));
        assert!(error.evidence_lines().len() < 10);
    }

    #[test]
    fn a_locked_state_is_no_failure_of_the_module() {
        let problem = json!({"severity": "error", "summary": "Error acquiring the state lock"});
        assert_eq!(explain(&[problem]).class(), Class::Locked);
    }
}
