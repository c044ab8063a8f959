//! What a test does where something is missing that it needs: it says so and passes, but where `CI`
//! is set it fails.
//!
//! The one place that decides it; `tidy` looks for others.

use std::io::Write as _;

/// A line that the test harness does not swallow.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "    {line}"));
}

/// Says why this test is skipped; the caller returns. Panics where `CI` is set: there every test
/// runs.
pub(crate) fn skip(why: &str) {
    skip_unless(std::env::var_os("CI").is_some(), why);
}

fn skip_unless(everything_runs: bool, why: &str) {
    assert!(!everything_runs, "skipped in CI: {why}");
    say(&format!("skipped: {why}"));
}

/// Whether one of these programs is on `PATH`; else the test is skipped.
pub(crate) fn has_program(names: &[&str]) -> bool {
    let found = names.iter().any(|name| which::which(name).is_ok());
    if !found {
        skip(&format!("{} is not installed", names.join(" or ")));
    }
    found
}

/// Whether this is root; else the test is skipped.
pub(crate) fn is_root(what_for: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(&format!("needs root, {what_for}"));
    }
    is_root
}

#[test]
fn outside_of_ci_a_skipped_test_passes() {
    skip_unless(false, "an example, which is no skipped test");
}

#[test]
#[should_panic(expected = "skipped in CI: terraform is not installed")]
fn in_ci_a_skipped_test_fails() {
    skip_unless(true, "terraform is not installed");
}
