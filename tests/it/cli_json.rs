//! `--output json` of every command: nothing but JSON on standard output, under a schema's name,
//! also when the command fails.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::Value;

use crate::cli_support::{Outcome, TestEnv};

/// What builds, downloads or makes hosts is only called wrongly here.
const COSTLY: [&str; 10] = [
    "artifacts bundle",
    "artifacts export",
    "artifacts fetch",
    "artifacts lock",
    "artifacts pin",
    "artifacts reference",
    "artifacts rootfs",
    "artifacts verify",
    "bench",
    "doctor",
];

/// The commands that help shows, each with words for the arguments that it cannot do without.
fn calls(command: &clap::Command, above: &[String], found: &mut Vec<Vec<String>>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let path = [above, &[below.get_name().to_owned()]].concat();
        calls(below, &path, found);
        if !below.is_subcommand_required_set() {
            let needed = below.get_positionals().filter(|arg| arg.is_required_set());
            let word = |arg: &clap::Arg| match arg.get_possible_values().first() {
                Some(value) => value.get_name().to_owned(),
                None => "nosuch".to_owned(),
            };
            let costly = COSTLY.contains(&&*path.join(" ")).then(|| "--nosuch".to_owned());
            found.push(path.iter().cloned().chain(needed.map(word)).chain(costly).collect());
        }
    }
}

/// Whether it is JSON, a document a line: the first and the last have a schema's name. A command
/// may instead refuse the option.
fn judge(what: &str, Outcome { code, out, err, .. }: &Outcome) {
    let documents = out.lines().map(|line| {
        let document = serde_json::from_str::<Value>(line);
        document.unwrap_or_else(|why| panic!("{what}: {why}: {line}"))
    });
    let documents: Vec<Value> = documents.collect();
    // Of a run each line is an event, and the first names the schema.
    let schema = |document: &Value| {
        let named = document["schema"].as_str().or(document["event"]["schema"].as_str());
        named.map(ToOwned::to_owned)
    };
    let Some(first) = documents.first() else {
        assert!(*code != 0 && err.contains("--output"), "{what} ends with {code} and says nothing: {err}");
        return;
    };
    // A JSON Schema names its own language.
    assert!(schema(first).is_some() || what == "config schema" && first["properties"].is_object(), "{what}: {first}");
    if *code != 0 && documents.len() > 1 {
        assert_eq!(schema(documents.last().unwrap()).unwrap(), "turnup.error/1", "{what}");
    }
}

#[test]
fn every_command_prints_json_alone_or_refuses_to() {
    let test_env = TestEnv::new("");
    // A target on which nothing can be made: it lacks what hosts would start from.
    test_env.ok(&["config", "set", "phase1.cloud_provider=gce"]);
    let mut all = Vec::new();
    calls(&turnup::cli::command(), &[], &mut all);
    assert!(all.len() > 60, "found only {} commands", all.len());
    for words in &all {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        judge(&words.join(" "), &test_env.run(&[&*words, &["--output", "json"]].concat()));
    }
}

#[test]
fn what_is_written_to_files_is_told_as_json() {
    let test_env = TestEnv::new("");
    fs_err::create_dir_all(test_env.path(".turnup/demo")).unwrap();
    for (words, schema) in [
        (&["completions", "bash", "--to", "bash"][..], "turnup.completions/1"),
        (&["man", "--dir", "man", "plan"], "turnup.man/1"),
        (&["state", "rebuild"], "turnup.state.rebuild/1"),
        (&["config", "minimal"], "turnup.config.minimal/1"),
        (&["config", "export", "--to", ".config"], "turnup.config.export/1"),
    ] {
        let told = test_env.ok(&[words, &["--output", "json"]].concat()).out;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["schema"], schema, "{words:?}");
    }
}
