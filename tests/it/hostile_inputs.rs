//! Hostile texts in external files, tried in every field: options, quotes, newlines, substitutions,
//! escape sequences, paths. The real ssh runs nothing, and an accepted value stays one value in
//! `known_hosts`, units, Terraform's variables and user data.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "it acts as the shell that starts turnup")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use turnup::config::{Settings, TreeSource};
use turnup::document::{self, Document};
use turnup::exec::{Jump, Ssh};
use turnup::inventory::Inventory;

use crate::cli_support::{Outcome, TestEnv};

/// An inventory with every field that there is.
const WHOLE: &str = include_str!("../fixtures/inventory/whole.json");
const TREE: &str = ".turnup/kubernetes/outputs/provision.json";

/// The hostile texts; in `CANARY` is the path of a file that no program may create.
fn hostile(canary: &Path) -> Vec<String> {
    let canary = canary.display();
    [
        "-oProxyCommand=touch CANARY;:",
        "-oProxyCommand=touch${IFS}CANARY",
        "--",
        "-F/dev/stdin",
        "root -oProxyCommand=touch CANARY",
        "a\nb",
        "a\r\n* ssh-rsa AAAA",
        "\n[Service]\nExecStartPre=touch CANARY",
        "'; touch CANARY; '",
        "\"; touch CANARY; \"",
        "$(touch CANARY)",
        "`touch CANARY`",
        "|touch CANARY",
        "${file(\"/etc/passwd\")}",
        "%{ if true }x%{ endif }",
        "{{ 7 * 7 }}",
        "%h%%$HOME",
        "\u{1b}[2J\u{1b}[31m",
        "\u{1b}]0;owned\u{7}",
        "\u{9b}2J",
        "\u{202e}toor",
        "a\0b",
        "a\tb",
        "../../../etc/passwd",
        "a/../../b",
        "~/.ssh/config",
        "a b",
        "a,b=c",
        "\\",
        "ä",
        "(known after provision/apply)",
    ]
    .map(|text| text.replace("CANARY", &canary.to_string()))
    .into()
}

/// Each text of a JSON value, as a pointer.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, item) in members {
                pointers(item, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

fn texts_of(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    pointers(value, "", &mut found);
    found
}

fn with(whole: &Value, pointer: &str, text: &str) -> Value {
    let mut changed = whole.clone();
    *changed.pointer_mut(pointer).unwrap() = json!(text);
    changed
}

/// A directory with a configuration, the whole inventory, and a place for the canary.
fn test_env() -> (TestEnv, PathBuf) {
    let test_env = TestEnv::new("").with_env("PATH", &std::env::var("PATH").unwrap());
    test_env.ok(&["config", "defaults"]);
    test_env.write("hosts.json", WHOLE);
    let canary = test_env.path("canary");
    (test_env, canary)
}

/// The line and column of the first place of a text.
fn place(text: &str, word: &str) -> String {
    let before = &text[..text.find(word).unwrap()];
    format!("{}:{}", before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap().chars().count() + 1)
}

#[test]
fn the_sample_has_every_field_of_an_inventory() {
    let whole: Value = serde_json::from_str(WHOLE).unwrap();
    Inventory::parse("whole.json", WHOLE).unwrap();
    for (place, _) in Inventory::fields().iter() {
        let pointer = |index: &str| format!("/{}", place.replace("[]", index).replace('.', "/"));
        let is_there = [".0", ".1"].iter().any(|index| whole.pointer(&pointer(index)).is_some());
        assert!(is_there, "{place}: add it to tests/fixtures/inventory/whole.json");
    }
}

#[test]
fn a_user_that_is_an_option_is_refused_with_its_place_and_nothing_runs() {
    let (test_env, canary) = test_env();
    let option = format!("-oProxyCommand=touch {};:", canary.display());
    let whole: Value = serde_json::from_str(WHOLE).unwrap();
    let fields = ["/hosts/0/ssh/user", "/hosts/0/ssh/jump/user", "/hosts/0/ssh/jump/host"];
    for (pointer, field) in fields.into_iter().zip(["ssh.user", "ssh.jump.user", "ssh.jump.host"]) {
        let text = format!("{:#}\n", with(&whole, pointer, &option));
        test_env.write("hosts.json", &text);
        let done = test_env.ends(3, &["bootstrap", "--from", "hosts.json"]);
        let wanted = format!("error: hosts.json:{}: hosts[0].{field} of rack-1: `", place(&text, "\"-oProxy"));
        assert!(done.err.contains(&wanted) && done.err.contains("expected a"), "{wanted}\n{}", done.err);
        assert!(done.err.contains("next: correct hosts.json"), "{}", done.err);
        assert!(!canary.exists() && !test_env.path(".turnup/kubernetes/outputs").exists(), "{}", done.err);
    }
}

/// Read-only commands, and those that change something.
const COMMANDS: [&[&str]; 12] = [
    &["status"],
    &["status", "--quick"],
    &["support-bundle", "--to", "bundle.tar.gz"],
    &["logs"],
    &["plan"],
    &["validate"],
    &["kubeconfig"],
    &["render"],
    &["reset", "rack-1", "--yes"],
    &["bootstrap"],
    &["addons"],
    &["up"],
];

#[test]
fn a_recorded_inventory_is_checked_by_the_same_rules_in_every_command() {
    let (test_env, canary) = test_env();
    let option = format!("-oProxyCommand=touch {};:", canary.display());
    let whole: Value = serde_json::from_str(WHOLE).unwrap();
    let mut told = 0;
    for pointer in ["/hosts/0/ssh/user", "/hosts/1/ssh/user"] {
        test_env.write(TREE, &with(&whole, pointer, &option).to_string());
        for command in COMMANDS {
            // The local target stops before it makes hosts, because the program is missing.
            let set = ["--set", "phase1.cloud_provider=baremetal", "--set", "phase1.baremetal.hosts_file=none.json"];
            let done = test_env.run(&[command, &set[..]].concat());
            told += usize::from(done.err.contains("provision.json:1:") && done.err.contains(".ssh.user of rack-"));
            assert!(!canary.exists(), "{command:?} ran it:\n{}{}", done.out, done.err);
        }
    }
    assert!(told >= 10, "only {told} of the commands have said what is wrong");
}

#[test]
fn no_text_of_an_inventory_runs_anything_or_adds_a_line() {
    let (test_env, canary) = test_env();
    let whole: Value = serde_json::from_str(WHOLE).unwrap();
    let good = Inventory::parse("whole", WHOLE).unwrap();
    let mut taken = Vec::new();
    for pointer in texts_of(&whole) {
        for text in hostile(&canary) {
            let changed = with(&whole, &pointer, &text);
            // From a file, and as Terraform's output says it.
            let parsed = Inventory::parse("f", &changed.to_string());
            assert_eq!(parsed.is_ok(), Inventory::from_value("the output", &changed).is_ok(), "{pointer} {text:?}");
            let Ok(inventory) = parsed else { continue };
            assert!(!text.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{pointer}: {text:?}");
            let lines = |inventory: &Inventory| {
                inventory.hosts.iter().map(|host| host.known_hosts().lines().count()).sum::<usize>()
            };
            assert_eq!(lines(&inventory), lines(&good), "{pointer}: {text:?}");
            taken.push((pointer.clone(), text));
        }
    }
    // What is taken by its format goes all the way: to the real ssh, as an inventory that is new
    // and as one that is recorded.
    assert!(taken.len() < 30, "formats take too much: {taken:?}");
    for (pointer, text) in taken {
        test_env.write("hosts.json", &with(&whole, &pointer, &text).to_string());
        let fast = ["--set", "phase1.ssh.connect_timeout=1s"];
        let done = test_env.run(&[&["bootstrap", "--from", "hosts.json"], &fast[..]].concat());
        assert!(!canary.exists(), "{pointer}: {text:?}\n{}", done.err);
        test_env.write(TREE, &with(&whole, &pointer, &text).to_string());
        let done = test_env.run(&[&["status"], &fast[..]].concat());
        assert!(!canary.exists(), "{pointer}: {text:?}\n{}", done.err);
    }
}

#[test]
fn a_hostile_module_cannot_name_an_option() {
    let (_test_env, canary) = test_env();
    let whole: Value = serde_json::from_str(WHOLE).unwrap();
    for pointer in ["/hosts/0/ssh/user", "/hosts/0/ssh/jump/host", "/hosts/0/ssh/host_key", "/hosts/0/instance"] {
        for text in hostile(&canary).iter().filter(|text| text.contains('\n') || text.starts_with('-')) {
            let changed = with(&whole, pointer, text);
            // Before the first login host keys are still to be learnt; all else has its format
            // already.
            let early = document::from_incomplete::<Inventory>("the output", &changed).unwrap_err();
            assert!(early.message().starts_with("the output: hosts[0]."), "{}", early.message());
        }
    }
}

/// Without any format check: even a refused text is no option for ssh, and no line of a shell.
#[test]
fn ssh_itself_is_told_where_its_options_end() {
    let dir = tempfile::tempdir().unwrap();
    let canary = dir.path().join("canary");
    let file = dir.path().join("none");
    let mut tried = 0;
    for text in hostile(&canary).into_iter().filter(|text| !text.contains('\0')) {
        let ssh = |user: &str, address: &str| {
            let ssh = Ssh::new(user, address, 9, &file, &file, dir.path()).timeout(Duration::from_secs(20));
            ssh.connect_timeout(Duration::from_secs(1))
        };
        let jump = |user: &str, host: &str| {
            ssh("root", "127.0.0.1").jump(Some(Jump { user: user.into(), host: host.into(), port: 9 }))
        };
        for ssh in [ssh(&text, "127.0.0.1"), ssh("root", &text), jump(&text, "127.0.0.1"), jump("root", &text)] {
            // With a master that stays, and without.
            for ssh in [ssh.clone(), ssh.single()] {
                drop(ssh.run(&["true"]));
                assert!(!canary.exists(), "ssh ran {text:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// One line with all that means something to a shell, systemd, Terraform, YAML and minijinja.
const ALL: &str = r#"a'b"c $(touch CANARY) `touch CANARY` ${d} %h %{e} {{ f }} \ #g: [h, {i}] & ; | <j> !k *l"#;

/// Each setting that takes such a text, with every target: what is rendered from it can be read
/// back.
#[test]
fn no_text_of_the_configuration_changes_the_form_of_what_is_rendered() {
    for target in ["baremetal", "gce", "aws", "azure"] {
        let test_env = TestEnv::new("").with_env("PATH", &std::env::var("PATH").unwrap());
        let canary = test_env.path("canary");
        test_env.ok(&["config", "defaults"]);
        let all = ALL.replace("CANARY", &canary.display().to_string());
        let mut hosts: Value = serde_json::from_str(WHOLE).unwrap();
        hosts["target"] = json!(target);
        // The configuration has no node groups.
        hosts["hosts"].as_array_mut().unwrap().iter_mut().for_each(|host| {
            host.as_object_mut().unwrap().remove("group");
        });
        test_env.write("provision.json", &hosts.to_string());
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set("phase1.cloud_provider", target).unwrap();
        let mut taken = Vec::new();
        let names: Vec<String> = settings.list().iter().map(|setting| setting.name.clone()).collect();
        for name in names {
            let before = settings.clone();
            if settings.set(&name, &all).is_err() || is_refused(&test_env, &settings) {
                settings = before;
            } else {
                taken.push(name);
            }
        }
        let hook = json!([{"name": "h", "command": all}]).to_string();
        let file = json!([{"name": "f", "path": "/etc/f", "content": all}]).to_string();
        settings.set_all(&[("phase2.host.hooks", &hook), ("phase2.host.file_assets", &file)]).unwrap();
        save(&test_env, &settings);
        let done = test_env.run(&["render", "--to", "out"]);
        assert_eq!(done.code, 0, "{target}, {taken:?}: {}", done.err);
        let mut seen = Seen::default();
        read_back(&test_env.path("out"), &all, &mut seen);
        assert!(seen.units > 0 && seen.documents > 1, "{target}: {seen:?}");
        assert!(target != "baremetal" || seen.texts > 0, "{target}: {seen:?}");
        assert!(!canary.exists(), "{target}: {taken:?}");
    }
}

fn save(test_env: &TestEnv, settings: &Settings) {
    test_env.write(".config.json", &settings.json().to_string());
}

/// Whether turnup takes the configuration as a file and renders it.
fn is_refused(test_env: &TestEnv, settings: &Settings) -> bool {
    save(test_env, settings);
    let Outcome { code, .. } = test_env.run(&["render", "--to", "try"]);
    code != 0
}

/// What was found in the rendered files.
#[derive(Debug, Default)]
struct Seen {
    units: usize,
    documents: usize,
    /// Texts that are the hostile one, or have it in them as it was.
    texts: usize,
}

/// Every file that was rendered, in its own form.
fn read_back(dir: &Path, all: &str, seen: &mut Seen) {
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_back(&path, all, seen);
        } else if path.extension().is_some_and(|end| end == "json") {
            read_json(&path.display().to_string(), &fs_err::read_to_string(&path).unwrap(), all, seen);
        }
    }
}

/// A document with all that it carries: units, and user data as cloud-init and Ignition read it.
fn read_json(name: &str, text: &str, all: &str, seen: &mut Seen) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    seen.documents += 1;
    for at in texts_of(&value) {
        let text = value.pointer(&at).unwrap().as_str().unwrap();
        seen.texts += usize::from(text.contains(all));
        if let Some(inner) = text.strip_prefix("#cloud-config\n") {
            read_json(&format!("{name}{at}"), &unescape(inner), all, seen);
        }
    }
    let units = value["units"].as_array().into_iter().flatten().map(|unit| (&unit["name"], &unit["text"]));
    let files = value["write_files"].as_array().into_iter().flatten().map(|file| (&file["path"], &file["content"]));
    for (name, text) in units.chain(files) {
        let name = name.as_str().unwrap().rsplit('/').next().unwrap();
        if Path::new(name).extension().is_some_and(|end| end == "service") {
            check_unit(name, text.as_str().unwrap());
            seen.units += 1;
        }
    }
}

/// YAML's escapes of what is no ASCII as JSON has them.
fn unescape(text: &str) -> String {
    text.replace("\\x", "\\u00")
}

/// A unit in which every line is what systemd takes it for, as systemd itself says.
fn check_unit(name: &str, text: &str) {
    let mut continues = false;
    for line in text.lines() {
        let is_known = continues
            || line.is_empty()
            || line.starts_with(['#', '['])
            || line.split_once('=').is_some_and(|(key, _)| key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert!(is_known, "{name}: {line}");
        continues = line.ends_with('\\');
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    // The programs are on the hosts; what is asked is the form.
    fs_err::write(&path, text.replace("/opt/turnup/bin/", "/bin/sh -c : ")).unwrap();
    let Ok(tool) = turnup::exec::tools::find("systemd-analyze") else { return };
    let output = std::process::Command::new(tool).args(["verify", "--man=no"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints = ["Unknown", "Missing '='", "Invalid", "Failed to parse", "Unbalanced"];
    // Known to systemd 254 and newer alone, as the template says.
    let later = ["RestartSteps", "RestartMaxDelaySec"];
    let has = |line: &&str, words: &[&str]| words.iter().any(|word| line.contains(word));
    let of_it = said.lines().filter(|line| line.contains(name) && !has(line, &later));
    let wrong: Vec<&str> = of_it.filter(|line| has(line, &complaints)).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}\n{text}");
}
