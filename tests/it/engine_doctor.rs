//! The doctor on this machine, and what it says when something is missing.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "a test starts the product from outside")]

use serde_json::Value;
use turnup::Class;
use turnup::doctor::{Finding, FindingLevel, Goal, Subject, inspect, require};

use crate::artifacts_support::Scratch;

/// What `turnup doctor` says of these names, where the lock file is the shipped one with this
/// changed, and the cache is empty.
fn doctor(scratch: &Scratch, from: &str, to: &str, upstream: &str) -> impl Fn(&str) -> Value {
    let lock = include_str!("../../cluster.lock.json");
    assert!(lock.contains(from), "{from}");
    fs_err::write(scratch.dir.path().join("cluster.lock.json"), lock.replace(from, to)).unwrap();
    let turnup = |args: &[&str]| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("turnup"));
        command.args(args).current_dir(scratch.dir.path()).env("TURNUP_CACHE", scratch.cache.root());
        command.output().unwrap()
    };
    drop(fs_err::remove_file(scratch.dir.path().join(".config.json")));
    for args in [&["config", "defaults"][..], &["config", "set", &format!("phase2.artifacts.upstream={upstream}")]] {
        let output = turnup(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = turnup(&["doctor", "--output", "json", "--target", "local"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    move |name| {
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["name"] == name).cloned().unwrap_or_default()
    }
}

#[test]
fn pinned_versions_with_known_holes_are_named() {
    let scratch = Scratch::new();
    let good = doctor(&scratch, "\"1.5.2\"", "\"1.5.2\"", "n")("pinned versions");
    assert_eq!(good["level"], "ok", "{good}");
    assert!(good["found"].as_str().unwrap().starts_with("no known holes as of 20"), "{good}");
    let bad = doctor(&scratch, "\"1.5.2\"", "\"1.1.5\"", "n")("pinned versions");
    assert_eq!(bad["level"], "warning", "{bad}");
    assert!(bad["found"].as_str().unwrap().starts_with("runc 1.1.5: CVE-2024-21626 (fixed in 1.1.12)"), "{bad}");
}

#[test]
fn what_a_build_of_runc_needs_is_missing_unless_another_source_has_it() {
    let scratch = Scratch::new();
    let of = |set: &str| doctor(&scratch, "\"libseccomp\"", "\"libnone\"", set)("libnone.a");
    assert_eq!(of("n")["level"], "missing", "{}", of("n"));
    assert_eq!(of("y")["level"], "warning", "{}", of("y"));
    assert!(of("n")["needed_by"].as_str().unwrap().starts_with("the build of runc 1.5.2;"), "{}", of("n"));
}

#[test]
fn an_old_root_of_local_hosts_is_named_with_the_command_that_renews_it() {
    let scratch = Scratch::new();
    let root = scratch.cache.host_root_path("bookworm");
    fs_err::create_dir_all(root.join("etc")).unwrap();
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 45);
    let record = serde_json::json!({"made": then, "security": "http://mirror.example/debian-security"});
    fs_err::write(root.join("etc/turnup-root.json"), record.to_string()).unwrap();
    let said = doctor(&scratch, "\"1.5.2\"", "\"1.5.2\"", "n")("root of local hosts");
    assert_eq!(said["level"], "warning", "{said}");
    assert_eq!(said["found"], "is 45 days old: security updates since then are missing");
    assert!(said["fix"].as_str().unwrap().starts_with("turnup artifacts rootfs bookworm --renew"), "{said}");
}

fn finding(name: &str, level: FindingLevel, found: &str, fix: Option<&str>) -> Finding {
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
        let findings = inspect(&Subject::of(Goal::of(target).unwrap()));
        assert!(findings.iter().any(|finding| finding.name == "ssh"), "{target}");
        for finding in findings {
            assert_eq!(finding.fix.is_some(), finding.level != FindingLevel::Ok, "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn all_missing_requirements_are_reported_at_once() {
    let good = [
        finding("ssh", FindingLevel::Ok, "9.2", None),
        finding("go", FindingLevel::Warning, "not installed", Some("install Go")),
    ];
    require(Goal::LOCAL, &good).unwrap();
    let bad = [
        finding(
            "systemd-nspawn",
            FindingLevel::Missing,
            "not installed",
            Some("apt-get install --yes systemd-container"),
        ),
        finding("root", FindingLevel::Missing, "uid 1000", Some("run as root: sudo make up")),
    ];
    let error = require(Goal::LOCAL, &bad).unwrap_err();
    assert_eq!(error.class(), Class::Precondition);
    insta::assert_snapshot!(error.render());
}
