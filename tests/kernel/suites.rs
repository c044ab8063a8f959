//! The kernel's own tests of Kconfig with our program as `scripts/kconfig/conf`. What fails is
//! listed by name with the reason; what is listed and passes is as much a failure, so that the
//! lists stay true.

use reference::{Python, Series, Tool, Tree, or_skip, run_suite, say};

use crate::ours;

/// Tests of 6.1 whose rules later versions changed on purpose. Without KERNELVERSION the newest
/// rules count.
const CHANGED_SINCE_6_1: &[(&str, &str)] = &[
    ("choice::test_allmod", "a choice of tristates is y in allmodconfig; by the newest rules choices are bool"),
    ("choice::test_allyes", "`optional` keeps a choice off in allyesconfig; by the newest rules there is no such word"),
    ("err_recursive_dep::test", "where the picture of a cycle begins, and its words"),
    ("inter_choice::test", "which value of a choice stands when another choice changes what is visible"),
];

/// Python and the tree, or `None`.
fn with(series: Series) -> Option<(Python, Tree)> {
    Some((or_skip(Python::get())?, or_skip(Tree::get(series))?))
}

#[track_caller]
fn score(series: Series, tool: &Tool, version: Option<&str>, expected: &[(&str, &str)]) {
    let Some((python, tree)) = with(series) else { return };
    let score = run_suite(&python, &tree, tool, version);
    let version = version.map_or(String::new(), |version| format!(" as {version}"));
    say(&format!("{} on the suite of {}{version}: {}/{}", tool.name(), tree.key(), score.passed.len(), score.total()));
    for (name, why) in expected.iter().filter(|(name, _)| score.failed.contains(*name)) {
        say(&format!("  expected to fail: {name}: {why}"));
    }
    if let Some(unexpected) = score.unexpected(expected) {
        panic!("{} on the suite of {}: {unexpected}", tool.name(), tree.key());
    }
}

#[test]
fn all_of_the_newest() {
    score(Series::Newest, &ours(), None, &[]);
}

#[test]
fn all_of_6_12() {
    score(Series::V6_12, &ours(), Some("6.12"), &[]);
}

#[test]
fn all_of_6_1_by_its_own_rules() {
    score(Series::V6_1, &ours(), Some("6.1"), &[]);
}

#[test]
fn all_of_6_1_by_the_newest_rules_but_what_was_changed() {
    score(Series::V6_1, &ours(), None, CHANGED_SINCE_6_1);
}

/// Checks the suites: each C tool passes its own suite whole, and an old one not the new suite.
#[test]
fn the_suites_tell_tools_apart() {
    for series in [Series::V6_1, Series::V6_12, Series::Newest] {
        let Some((_, tree)) = with(series) else { return };
        score(series, &tree.conf(), None, &[]);
    }
    let Some((_, old)) = with(Series::V6_1) else { return };
    let unknown = [
        ("conditional_dep::test", "6.1 knows no `depends on A if B`"),
        ("err_recursive_dep::test", "6.1 begins a cycle elsewhere"),
        ("err_repeated_inc::test", "6.1 reads a file as often as it is sourced"),
        ("err_transitional::test", "6.1 knows no `transitional`"),
        ("transitional::test", "6.1 knows no `transitional`"),
        ("warn_changed_input::test", "6.1 knows no KCONFIG_WARN_CHANGED_INPUT"),
    ];
    score(Series::Newest, &old.conf(), None, &unknown);
}
