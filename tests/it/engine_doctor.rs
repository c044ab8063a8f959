//! The doctor on this machine, and what it says when something is missing.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use turnup::Class;
use turnup::doctor::{Finding, Level, inspect, require};

fn finding(name: &str, level: Level, found: &str, fix: Option<&str>) -> Finding {
    Finding {
        name: name.into(),
        level,
        found: found.into(),
        needed_by: "local hosts".into(),
        fix: fix.map(str::to_owned),
    }
}

#[test]
fn every_finding_that_is_not_good_says_what_to_do() {
    for target in ["local", "gce", "baremetal"] {
        let findings = inspect(target);
        assert!(findings.iter().any(|finding| finding.name == "ssh"), "{target}");
        for finding in findings {
            assert_eq!(finding.fix.is_some(), finding.level != Level::Ok, "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn what_is_missing_stops_with_all_of_it() {
    let good =
        [finding("ssh", Level::Ok, "9.2", None), finding("go", Level::Warning, "not installed", Some("install Go"))];
    require("local", &good).unwrap();
    let bad = [
        finding("systemd-nspawn", Level::Missing, "not installed", Some("apt-get install --yes systemd-container")),
        finding("root", Level::Missing, "uid 1000", Some("run as root: sudo make up")),
    ];
    let error = require("local", &bad).unwrap_err();
    assert_eq!(error.class(), Class::Person);
    insta::assert_snapshot!(error.render());
}
