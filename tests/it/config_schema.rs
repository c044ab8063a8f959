//! The JSON Schema of `.config.json` next to `turnup config check`, checked with an independent
//! validator: both accept and refuse the same files, except for what a schema cannot state.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kconfig::{Env, MemoryFiles, Tree};
use reference::{Python, or_skip, random::Numbers};
use serde_json::{Value, json};
use turnup::config::{ProblemLevel, Schema, Settings, TreeSource, json_schema};

/// One string setting for each format, with a default that is right, and the other types. No
/// networks: that their host bits are zero a schema cannot state.
const FORMATS: [(&str, &str); 26] = [
    ("empty", ""),
    ("dns-label", "a"),
    ("dns-name", "a.b"),
    ("user-name", "root"),
    ("ipv4", "10.0.0.1"),
    ("host", "a"),
    ("semver", "1.2.3"),
    ("path", "a"),
    ("file", "a"),
    ("url", "http://a"),
    ("duration", "1s"),
    ("quantity", "1"),
    ("text", ""),
    ("word", "a"),
    ("label-key", "a"),
    ("label-value", "a"),
    ("taint", "a:NoExecute"),
    ("enum(red, green)", "red"),
    ("empty or url or path", ""),
    ("list(dns-label)", ""),
    ("list(host)", ""),
    ("list(int(1..9))", ""),
    ("list(word)", ""),
    ("map(label-key, label-value)", ""),
    ("map(word, bool)", ""),
    ("map(dns-label, quantity)", ""),
];
/// What any of them may be given: right for some, wrong for others.
const TEXTS: [&str; 66] = [
    "",
    "a",
    "A",
    "a-b",
    "-a",
    "a-",
    "a.b",
    "a..b",
    ".a",
    "a_b",
    "_a",
    "root",
    "1a",
    "10.0.0.1",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.1",
    "255.255.255.255",
    "1.2.3",
    "1.2",
    "v1.2.3",
    "1.0.0-rc.1",
    "1.0.0-01",
    "1.0.0+a.b",
    "/srv",
    "a/b",
    "~/x",
    "with blank",
    "tab\there",
    "http://a",
    "https://a.b:8080/c?d",
    "https://10.0.0.1/",
    "https://10.0.0/",
    "http://",
    "http://a:0/",
    "http://a:70000",
    "http://a:+1",
    "http://A.b",
    "http://u@h/",
    "http://a/b c",
    "ftp://a",
    "90s",
    "1h30m",
    "1.5h",
    "h",
    "1",
    "500m",
    "2Gi",
    "1.5",
    "1.",
    "2gi",
    "example.com/pool",
    "Example.com/pool",
    "example.com/",
    "a=b:NoSchedule",
    "a:NoExecute",
    "a=:PreferNoSchedule",
    "a=b:never",
    "red",
    "green",
    "blue",
    "a,b",
    "it's",
    "\"q\"",
    "ä",
    "x\u{85}y",
];

fn tree() -> Arc<Schema> {
    let mut text = String::new();
    for (number, (format, default)) in FORMATS.iter().enumerate() {
        write!(text, "#: format = {format}\nconfig s.f{number}\n\tstring \"F\"\n\tdefault \"{default}\"\n\n").unwrap();
    }
    text += "config t.bool\n\tbool \"B\"\n\nconfig t.int\n\tint \"I\"\n\trange -5 20\n\tdefault 1\n\nconfig t.hex\n\thex \"H\"\n\tdefault 0x1\n\nconfig t.free\n\tstring \"S\"\n\n";
    text += "#: format = records\n#: field name = dns-label\n#: field role = enum(node, master)\n#: field size? = int(1..9)\n#: field spot? = bool\n\
             #: field zones? = list(dns-label)\n#: field labels? = map(label-key, label-value)\n#: field image? = empty or path\n\
             config t.groups\n\tstring \"G\"\n\tdefault \"[]\"\n";
    let tree = Tree::load("Kconfig", &MemoryFiles::new([("Kconfig", text)]), &Env::empty()).unwrap();
    Schema::new(tree).unwrap()
}

fn pick<'a, T>(numbers: &mut Numbers, from: &'a [T]) -> &'a T {
    &from[usize::try_from(numbers.below(from.len() as u64)).unwrap()]
}

/// A value by chance: mostly of a sensible shape.
fn value(numbers: &mut Numbers, depth: usize) -> Value {
    let text = |numbers: &mut Numbers| (*pick(numbers, &TEXTS)).to_owned();
    match numbers.below(if depth == 0 { 12 } else { 8 }) {
        0..=4 => json!(text(numbers)),
        5 => json!(numbers.below(40).cast_signed() - 10),
        6 => json!(numbers.below(2) == 0),
        7 => pick(numbers, &[json!(1.5), Value::Null, json!("0x1f"), json!("1fg")]).clone(),
        8 | 9 => (0..numbers.below(3)).map(|_| value(numbers, depth + 1)).collect(),
        10 => {
            let pairs = (0..numbers.below(3)).map(|_| (text(numbers), value(numbers, depth + 1)));
            Value::Object(pairs.collect())
        }
        _ => records(numbers),
    }
}

/// Records with different keys, as a schema cannot state that they differ.
fn records(numbers: &mut Numbers) -> Value {
    let fields = ["role", "size", "spot", "zones", "labels", "image", "nme"];
    (0..numbers.below(3))
        .map(|at| {
            let mut record = json!({"name": format!("n{at}"), "role": pick(numbers, &["node", "master", "nod"])});
            for _ in 0..numbers.below(3) {
                record[*pick(numbers, &fields)] = match numbers.below(3) {
                    0 => json!(["a", "b"]),
                    1 => json!({"a": "b"}),
                    _ => value(numbers, 1),
                };
            }
            if numbers.below(8) == 0 {
                record.as_object_mut().unwrap().shift_remove("role");
            }
            record
        })
        .collect()
}

/// A file with few values, so that one that is wrong does not hide the others.
fn file(numbers: &mut Numbers) -> Value {
    let mut root = json!({});
    for _ in 0..=numbers.below(2) {
        let (group, name) = match numbers.below(34) {
            number @ 0..26 => ("s", format!("f{number}")),
            number => (
                "t",
                ["bool", "int", "hex", "free", "groups", "groups", "groups", "unknown"]
                    [usize::try_from(number - 26).unwrap()]
                .to_owned(),
            ),
        };
        root[group][name.as_str()] = if name == "groups" { records(numbers) } else { value(numbers, 0) };
    }
    root
}

/// Whether `check` finds no error in this file.
fn accepts(schema: &Arc<Schema>, path: &Path, file: &Value) -> bool {
    fs_err::write(path, file.to_string()).unwrap();
    let settings = Settings::open(path, Arc::clone(schema)).unwrap().unwrap();
    settings.check().iter().all(|problem| problem.level != ProblemLevel::Error)
}

const JUDGE: &str = "import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
judge = jsonschema.Draft202012Validator(schema)
for line in open(sys.argv[2]):
    print('yes' if judge.is_valid(json.loads(line)) else 'no')
";

/// What the other validator says to each file.
fn judged(python: &Python, dir: &Path, schema: &Schema, files: &[Value]) -> Vec<bool> {
    let path = |name: &str| -> PathBuf { dir.join(name) };
    fs_err::write(path("schema.json"), json_schema(schema).to_string()).unwrap();
    let lines: String = files.iter().map(|file| file.to_string() + "\n").collect();
    fs_err::write(path("files"), lines).unwrap();
    let run = duct::cmd!(python.program(), "-c", JUDGE, path("schema.json"), path("files"));
    let said = run.env("PYTHONPATH", python.packages()).read().unwrap();
    let judged: Vec<bool> = said.lines().map(|line| line == "yes").collect();
    assert_eq!(judged.len(), files.len());
    judged
}

#[test]
fn schema_and_check_take_the_same_files() {
    let Some(python) = or_skip(Python::get()) else { return };
    let (dir, schema, mut numbers) = (tempfile::tempdir().unwrap(), tree(), Numbers::new(7));
    let files: Vec<Value> = (0..6000).map(|_| file(&mut numbers)).collect();
    let judged = judged(&python, dir.path(), &schema, &files);
    let ours: Vec<bool> = files.iter().map(|file| accepts(&schema, &dir.path().join("x.json"), file)).collect();
    let wrong: Vec<String> = files
        .iter()
        .zip(judged.iter().zip(&ours))
        .filter(|(_, (theirs, ours))| theirs != ours)
        .map(|(file, (theirs, ours))| format!("schema {theirs}, check {ours}: {file}"))
        .take(20)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let taken = ours.iter().filter(|taken| **taken).count();
    assert!(taken > 500 && taken < 5500, "files that are only right or only wrong prove nothing: {taken} of 6000");
}

#[test]
fn defaults_and_their_minimum_fit_the_schema_of_our_tree() {
    let Some(python) = or_skip(Python::get()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    let wrong = json!({"phase1": {"num_node": 1}});
    let files = [settings.json().clone(), settings.minimal(), json!({}), wrong];
    assert_eq!(judged(&python, dir.path(), settings.schema(), &files), [true, true, true, false]);
}
