//! The kernel's own tests of Kconfig, run from where the package put them, with any tool in the
//! place of `scripts/kconfig/conf`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::python::Python;
use crate::tool::Tool;
use crate::tree::Tree;

const LIMIT: Duration = Duration::from_mins(5);

/// What a suite said about a tool.
#[derive(Clone, Debug)]
pub struct Score {
    /// `choice::test_ask0`
    pub passed: BTreeSet<String>,
    /// The same for those that failed or could not be run.
    pub failed: BTreeSet<String>,
    /// All that pytest printed.
    pub report: String,
}

/// Runs the suite of `tree` on `tool`. `version` becomes KERNELVERSION, as kbuild would export it.
///
/// The suite sends Enter to a program for as long as it lives, and fails when that ends between its
/// look and its word: then all of it is run again, a few times.
#[must_use]
pub fn run_suite(python: &Python, tree: &Tree, tool: &Tool, version: Option<&str>) -> Score {
    const RACE: &str = "BrokenPipeError";
    let mut tries = std::iter::repeat_with(|| run_once(python, tree, tool, version)).take(4);
    let first = tries.next().unwrap();
    if first.report.contains(RACE) { tries.find(|score| !score.report.contains(RACE)).unwrap_or(first) } else { first }
}

fn run_once(python: &Python, tree: &Tree, tool: &Tool, version: Option<&str>) -> Score {
    let dir = tempfile::tempdir().unwrap();
    tool.install_at(&dir.path().join("scripts/kconfig/conf"));
    let args = ["-B", "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-v", "--tb=short"];
    let args = args.iter().map(Into::into).chain([tree.suite().into_os_string()]);
    let mut run = duct::cmd(python.program(), args).dir(dir.path()).env("PYTHONPATH", python.packages());
    // What the person who runs the tests has set must not decide.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KCONFIG_") || name == "KERNELVERSION") {
        run = run.env_remove(name);
    }
    if let Some(version) = version {
        run = run.env("KERNELVERSION", version);
    }
    let handle = run.stdin_null().stderr_to_stdout().stdout_capture().unchecked().start().unwrap();
    let Some(output) = handle.wait_timeout(LIMIT).unwrap() else {
        handle.kill().unwrap();
        panic!("{} hangs in the suite of {}", tool.name(), tree.key());
    };
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let named = |verdicts: &[&str]| report.lines().filter_map(|line| verdict(line, verdicts)).collect();
    let score = Score { passed: named(&["PASSED"]), failed: named(&["FAILED", "ERROR"]), report };
    let score = Score { passed: &score.passed - &score.failed, ..score };
    assert!(!score.passed.is_empty() || !score.failed.is_empty(), "pytest ran nothing:\n{}", score.report);
    score
}

/// `…/tests/choice/__init__.py::test_ask0 PASSED [ 8%]`
fn verdict(line: &str, verdicts: &[&str]) -> Option<String> {
    let (test, rest) = line.split_once(' ')?;
    let (file, function) = test.split_once("/__init__.py::")?;
    verdicts.contains(&rest.split_whitespace().next()?).then(|| {
        let name = file.rsplit_once("tests/").map_or(file, |(_, name)| name);
        format!("{name}::{function}")
    })
}

impl Score {
    /// How many there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.passed.len() + self.failed.len()
    }

    /// Nothing when exactly these failed; else what did not behave as expected, with pytest's
    /// words.
    #[must_use]
    pub fn unexpected(&self, expected: &[(&str, &str)]) -> Option<String> {
        let expected: BTreeSet<String> = expected.iter().map(|(name, _why)| (*name).to_owned()).collect();
        if self.failed == expected {
            return None;
        }
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
        let broken = list(&self.failed - &expected);
        let cured = list(&expected - &self.failed);
        Some(format!("failed: {broken}\npassed, though not expected to: {cured}\n{}", self.report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_pytest_are_understood() {
        let line = "../x/tests/preprocess/escape/__init__.py::test PASSED      [ 20%]";
        assert_eq!(verdict(line, &["PASSED"]).as_deref(), Some("preprocess/escape::test"));
        assert_eq!(verdict("choice/__init__.py::test_ask0 FAILED", &["FAILED"]).as_deref(), Some("choice::test_ask0"));
        assert_eq!(verdict("FAILED choice/__init__.py::test_ask0 - x", &["FAILED"]), None);
    }

    #[test]
    fn a_test_that_passes_unexpectedly_is_as_wrong_as_one_that_fails() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let score = Score { passed: set(&["a", "b"]), failed: set(&["c"]), report: String::new() };
        assert_eq!(score.unexpected(&[("c", "known")]), None);
        assert!(score.unexpected(&[]).unwrap().starts_with("failed: c\n"));
        assert!(score.unexpected(&[("c", ""), ("a", "")]).unwrap().contains("not expected to: a"));
    }
}
