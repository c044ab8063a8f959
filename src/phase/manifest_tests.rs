//! Tests of reading `phase.toml`: what a good file says, and what each mistake looks like.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::*;

fn error(text: &str) -> String {
    Manifest::parse("phases/x/phase.toml", text).unwrap_err().render()
}

#[test]
fn a_whole_file() {
    let text = r#"
summary = "hosts become nodes"
[[step]]
name = "pki"
summary = "certificates"
[[step]]
name = "node-up"
scope = "host"
roles = ["worker"]
after = ["pki"]
timeout = "90s"
retry = []
[[step]]
name = "notify"
after = ["node-up"]
run = ["scripts/notify.sh", "now"]
inputs = ["phase2"]
"#;
    let manifest = Manifest::parse("phase.toml", text).unwrap();
    assert_eq!(manifest.summary, "hosts become nodes");
    let names: Vec<&str> = manifest.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["pki", "node-up", "notify"]);
    assert_eq!(manifest.steps[0].retry, [Class::Transient]);
    assert_eq!(manifest.steps[1].scope, Scope::Host);
    assert_eq!(manifest.steps[1].timeout, Duration::from_secs(90));
    assert_eq!(manifest.steps[1].retry, []);
    assert_eq!(manifest.steps[2].run, ["scripts/notify.sh", "now"]);
}

#[test]
fn all_mistakes_at_once_with_their_places() {
    insta::assert_snapshot!(error(
        r#"sumary = "x"
[[step]]
name = "one"
timout = "10m"
after = ["tow"]
[[step]]
name = "two"
scope = "hosts"
timeout = "ten"
retry = ["always", "permanent"]
roles = "worker"
[[step]]
name = "two"
inputs = ["phase1"]
[[step]]
name = "No Name"
roles = ["worker"]
"#
    ));
}

#[test]
fn steps_of_ones_own_are_read_as_strictly() {
    let text = r#"
[[step]]
name = "api"
before = ["x"]
hosts = ["a"]
[[step]]
name = "one"
run = []
before = ["apii"]
[[step]]
name = "two"
run = ["true"]
where = "hosts"
roles = ["wroker"]
hosts = ["w*"]
[[step]]
name = "three"
run = ["true"]
where = "host"
scope = "once"
outputs = ["made", ""]
[[step]]
name = "four"
run = ["true"]
scope = "host"
outputs = ["made"]
outptus = []
"#;
    let error = Manifest::parse_for("phases/x/phase.toml", text, &["control-plane", "worker"]).unwrap_err();
    insta::assert_snapshot!(error.render());
}

#[test]
fn a_hook_can_close_a_cycle() {
    let text = "[[step]]\nname = \"a\"\n[[step]]\nname = \"b\"\nrun = [\"x\"]\nafter = [\"a\"]\nbefore = [\"a\"]\n";
    assert!(error(text).contains("phase.toml:2:8: steps wait for each other: a → b → a"), "{}", error(text));
}

#[test]
fn patterns_of_hosts() {
    for (pattern, name, expected) in [
        ("w0", "w0", true),
        ("w0", "w01", false),
        ("*", "", true),
        ("it-*-0", "it-worker-0", true),
        ("it-*-0", "it-worker-10", false),
        ("it-*-0", "it-0", false),
        ("**1*", "w1x", true),
    ] {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn a_cycle_is_shown_whole() {
    insta::assert_snapshot!(error(
        "[[step]]\nname = \"a\"\nafter = [\"c\"]\n[[step]]\nname = \"b\"\nafter = [\"a\"]\n[[step]]\nname = \"c\"\nafter = [\"b\"]\n"
    ));
}

#[test]
fn a_file_that_is_no_toml() {
    insta::assert_snapshot!(error("[[step]]\nname = \"a\nafter = []\n"));
}

#[test]
fn times_are_durations_longer_than_nothing() {
    let with = |text: &str| format!("[[step]]\nname = \"a\"\nafter = []\ntimeout = \"{text}\"\n");
    let of = |text: &str| error(&with(text));
    for bad in ["", "10", "-1s", "0s", "0h0m", "1d", "99999999999999999999s"] {
        assert!(of(bad).contains("a time is a duration like"), "{bad}: {}", of(bad));
    }
    let steps = Manifest::parse("x", &with("1h30m")).unwrap().steps;
    assert_eq!(steps[0].timeout, Duration::from_mins(90));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}|(\\[\\[step\\]\\]\nname = \"[a-c]\"\nafter = \\[\"[a-c]\"\\]\n){0,4}") {
        drop(Manifest::parse("x", &text));
    }
}
