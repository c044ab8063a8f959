//! Drives terraform or tofu through their machine-readable interface: init, plan to a file, apply of exactly that file, output, destroy.
//!
//! It reads the `-json` stream (one JSON object a line) and never the text for people. It knows no target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::tfplan;
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::{Failure, OnDeath, Run, Stream, tools};
use crate::kill_point;
use crate::phase::Cx;

/// Terraform finishes the resource that it works on after a signal; killed before, it may lose its state.
const GRACE: Duration = Duration::from_mins(2);
const PLAN_FILE: &str = "turnup.tfplan";
/// What `init` says when the registry of providers is away.
const AWAY: [&str; 5] = ["no such host", "could not connect to", "connection refused", "timeout", "connection reset"];

/// One module in one working directory.
pub struct Terraform {
    program: PathBuf,
    dir: PathBuf,
    exe: PathBuf,
}

/// One resource that a plan would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The resource's address in the module.
    pub address: String,
    /// Terraform's word: create, update, delete, replace, …
    pub action: String,
}

impl Terraform {
    /// The program on PATH, `terraform` before `tofu`; none when neither is there.
    #[must_use]
    pub fn on_path() -> Option<PathBuf> {
        tools::find("terraform").or_else(|_| tools::find("tofu")).ok()
    }

    /// `exe` is turnup's own binary, which the local target's module calls.
    #[must_use]
    pub fn new(program: PathBuf, dir: PathBuf, exe: PathBuf) -> Self {
        Self { program, dir, exe }
    }

    /// The program's version, for the inputs of a step: an apply by another version is another apply.
    pub fn version(&self) -> Result<String> {
        let output = self.command("version").arg("-json").succeed()?;
        let value: Value = serde_json::from_str(&output.stdout).context("terraform version did not print JSON")?;
        let version = value["terraform_version"].as_str().unwrap_or_default();
        Ok(format!("{} {version}", self.name()))
    }

    /// Downloads what the module needs; nothing for a module of built-in resources.
    pub fn init(&self, cx: &Cx) -> Result<()> {
        cx.progress(format!("{} init", self.name()));
        let ended = self.command("init").args(["-input=false", "-no-color"]).log(cx.log_path()).output();
        ended.map(drop).map_err(|failure| {
            let away = AWAY.iter().any(|words| failure.stderr().contains(words));
            if away { failure.into_error(Class::Transient) } else { failure.into() }
        })
    }

    /// Plans, and returns what would change. `replace` names resources that are to be made anew.
    pub fn plan(&self, replace: &BTreeSet<String>, log: &Path) -> Result<Vec<Change>> {
        let mut run = self.command("plan").args(["-input=false", "-json", "-lock-timeout=10s"]);
        run = run.arg(format!("-out={PLAN_FILE}")).log(log);
        for address in replace {
            run = run.arg(format!("-replace={address}"));
        }
        let mut changes = Vec::new();
        self.follow(run, |message| {
            if message["type"] == "planned_change" {
                let address = text(&message["change"]["resource"]["addr"]);
                changes.push(Change { address, action: text(&message["change"]["action"]) });
            }
        })?;
        Ok(changes)
    }

    /// What the plan made last would change, with every attribute that it knows.
    pub fn show_plan(&self) -> Result<tfplan::Planned> {
        let output = self.command("show").args(["-json", "-no-color", PLAN_FILE]).succeed()?;
        let value: Value = serde_json::from_str(&output.stdout).context("terraform show did not print JSON")?;
        Ok(tfplan::Planned::parse(&value))
    }

    /// Applies the plan made last, and only that.
    pub fn apply(&self, changes: usize, cx: &Cx) -> Result<()> {
        let run = self.command("apply").args(["-input=false", "-json", "-lock-timeout=10s"]).log(cx.log_path());
        self.watch(run.arg(PLAN_FILE), changes, cx)
    }

    /// Destroys everything in the state.
    pub fn destroy(&self, cx: &Cx) -> Result<()> {
        let run = self.command("destroy").args(["-input=false", "-json", "-auto-approve", "-lock-timeout=10s"]);
        self.watch(run.log(cx.log_path()), 0, cx)
    }

    /// The addresses of all resources in the state.
    pub fn resources(&self) -> Result<BTreeSet<String>> {
        let output = self.command("state").arg("list").output();
        // Before the first apply there is no state to list, which terraform calls a failure.
        Ok(output.map(|output| output.stdout.lines().map(str::to_owned).collect()).unwrap_or_default())
    }

    /// The value of one output; none before the first apply.
    pub fn output(&self, name: &str) -> Result<Option<Value>> {
        let output = self.command("output").arg("-json").succeed()?;
        let all: Value = serde_json::from_str(&output.stdout).context("terraform output did not print JSON")?;
        Ok(all.get(name).and_then(|output| output.get("value")).cloned())
    }

    fn name(&self) -> String {
        self.program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn command(&self, subcommand: &str) -> Run {
        Run::new(&self.program)
            .arg(subcommand)
            .dir(&self.dir)
            .env("TF_IN_AUTOMATION", "1")
            // No call to the maker's version service.
            .env("CHECKPOINT_DISABLE", "1")
            .env("TURNUP_EXE", &self.exe)
            .grace(GRACE)
            .on_death(OnDeath::Terminate)
            .label(format!("{} {subcommand}", self.name()))
    }

    fn watch(&self, run: Run, total: usize, cx: &Cx) -> Result<()> {
        let mut done = 0;
        self.follow(run, |message| {
            let address = text(&message["hook"]["resource"]["addr"]);
            let action = text(&message["hook"]["action"]);
            if let Some(word @ ("apply_start" | "apply_complete")) = message["type"].as_str() {
                kill_point::kill_children(format_args!("{word} {address} {action}"), &self.name());
            }
            match message["type"].as_str() {
                Some("apply_start") => cx.progress(format!("{address}: {action}")),
                Some("apply_progress") => {
                    cx.progress(format!("{address}: {action}, {} s", message["hook"]["elapsed_seconds"]));
                }
                Some("apply_complete") => {
                    done += 1;
                    cx.count(done, total.max(usize::try_from(done).unwrap_or(usize::MAX)) as u64);
                }
                _ => {}
            }
        })
    }

    /// Runs to the end and turns the diagnostics of the stream into the error.
    fn follow(&self, run: Run, mut on_message: impl FnMut(&Value)) -> Result<()> {
        let mut problems = Vec::new();
        let ended = run.stream(|stream, line| {
            let message = (stream == Stream::Stdout).then(|| serde_json::from_str::<Value>(line).ok()).flatten();
            let Some(message) = message else { return };
            if message["type"] == "diagnostic" && message["diagnostic"]["severity"] == "error" {
                problems.push(message["diagnostic"].clone());
            }
            on_message(&message);
        });
        match ended {
            Ok(_) => Ok(()),
            Err(failure @ (Failure::Exited { .. } | Failure::Signalled { .. })) if !problems.is_empty() => {
                Err(explain(&self.name(), &failure, &problems))
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Terraform's own words: summary, detail, and the line of the module.
fn explain(name: &str, failure: &Failure, problems: &[Value]) -> Error {
    let first = &problems[0];
    if let Some(error) = problems.iter().find_map(|problem| relay(&text(&problem["detail"]))) {
        return error;
    }
    let summary = text(&first["summary"]);
    let class = if summary.contains("state lock") { Class::Locked } else { Class::Permanent };
    let mut error = Error::new(class, format!("{name}: {summary}"));
    for problem in problems {
        if let Some(file) = problem["range"]["filename"].as_str() {
            error =
                error.evidence(format!("{file}:{}: {}", problem["range"]["start"]["line"], text(&problem["address"])));
        }
        // The detail repeats the output of a failed local-exec, whose last lines say the most.
        let detail = text(&problem["detail"]);
        let lines: Vec<&str> = detail.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(12)..] {
            error = error.evidence(*line);
        }
    }
    match &failure.ended().log {
        Some(log) => error.hint(format!("less {}", log.display())),
        None => error,
    }
}

/// The error of the turnup that a local-exec called, when it is of a class that only turnup tells.
fn relay(detail: &str) -> Option<Error> {
    let (_, ended) = detail.split_once(": exit status ")?;
    let (code, output) = ended.split_once(". Output: ")?;
    let error = Error::from_rendered(code.parse().ok()?, output)?;
    (error.class() != Class::Permanent).then_some(error)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Ended, Failure};

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

    #[test]
    fn a_diagnostic_becomes_an_error_with_the_place_in_the_module() {
        let problem = serde_json::json!({
            "severity": "error",
            "summary": "local-exec provisioner error",
            "detail": "Error running command: exit status 127. Output: \n/bin/sh: turnup: not found\n",
            "address": "terraform_data.network",
            "range": {"filename": "main.tf", "start": {"line": 30, "column": 3}},
        });
        insta::assert_snapshot!(explain("terraform", &failed(), &[problem]).render(), @r"
        error: terraform: local-exec provisioner error
          | main.tf:30: terraform_data.network
          | Error running command: exit status 127. Output: 
          | /bin/sh: turnup: not found
        next: less /state/logs/provision-apply.log
        ");
    }

    #[test]
    fn a_state_that_somebody_else_holds_is_no_failure_of_the_module() {
        let problem = serde_json::json!({"severity": "error", "summary": "Error acquiring the state lock"});
        assert_eq!(explain("tofu", &failed(), &[problem]).class(), Class::Locked);
    }
}
