//! Trees that a grammar thinks of, and the corpora with damage: whatever comes, loading ends,
//! nothing panics, what loads can be written and read again. `tests/corpus/fuzz` keeps small inputs
//! for what is easily got wrong; what a fuzzer finds is put there.

#![expect(
    clippy::disallowed_methods,
    reason = "this crate has no dependency for files; the test names the path itself"
)]

use std::path::{Path, PathBuf};

use kconfig::{Config, Dialect, Env, MemoryFiles, Tree, dotconfig};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// The oldest and the newest rules that there are tests for.
const DIALECTS: [&str; 2] = ["6.1", "7.2"];

/// Loads by both rules; a tree that loads keeps its values when they are written and read again.
fn survive(bytes: &[u8]) {
    for version in DIALECTS {
        let files = MemoryFiles::new([("Kconfig", bytes), ("other", b"config OTHER\n\tbool \"Other\"\n")]);
        let env = Env::new(|name| Some(name.to_lowercase())).with_dialect(Dialect::parse(version).unwrap());
        match Tree::load("Kconfig", &files, &env) {
            Err(found) => assert!(!found.render(true).is_empty(), "refused without a word"),
            Ok(tree) => {
                assert_eq!(tree.warnings().is_empty(), tree.warnings().render(true).is_empty());
                round_trip(&tree);
            }
        }
    }
}

/// Configuration, `.config`, configuration: nothing changes, and writing it again gives the same
/// bytes.
fn round_trip(tree: &Tree) {
    let mut config = Config::new(tree);
    let symbols: Vec<_> = tree.symbols().map(|(id, _)| id).collect();
    for (at, symbol) in symbols.iter().enumerate() {
        // What does not fit is refused, and that is fine.
        let _refused = config.set(*symbol, ["y", "m", "n", "5", "0x7"][at % 5]);
    }
    let text = dotconfig::write(&config, "CONFIG_");
    let mut again = Config::new(tree);
    dotconfig::read(&mut again, &text, "CONFIG_");
    for symbol in symbols.iter().filter(|symbol| config.is_written(**symbol)) {
        let _every_question_is_answered =
            (config.visible(*symbol), config.origin(*symbol), config.explain_visibility(*symbol));
    }
    // Two lines of one name would be read as one.
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split_once('=').map(|(name, _)| name)).collect();
    names.sort_unstable();
    names.dedup();
    let written = text.lines().filter(|line| line.starts_with("CONFIG_")).count();
    if names.len() == written {
        let twice = dotconfig::write(&again, "CONFIG_");
        let mut third = Config::new(tree);
        dotconfig::read(&mut third, &twice, "CONFIG_");
        assert_eq!(dotconfig::write(&third, "CONFIG_"), twice, "written, read and written it is another one");
    }
}

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")];
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                files.push((path, bytes));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_corpora_end() {
    let files = corpus();
    assert!(files.iter().filter(|(path, _)| path.parent().unwrap().ends_with("fuzz")).count() >= 15);
    for (_, bytes) in files {
        survive(&bytes);
    }
}

fn expression() -> impl Strategy<Value = String> {
    let name =
        prop::sample::select(vec!["A0", "A1", "A2", "A3", "A4", "UNDEFINED", "y", "n", "m", "\"text\"", "'5'", "7"]);
    let leaf = prop_oneof![
        name.clone().prop_map(str::to_owned),
        (name.clone(), prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]), name)
            .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
        Just("$(yes)".to_owned()),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("!({inner})")),
            (inner.clone(), prop::sample::select(vec!["&&", "||"]), inner)
                .prop_map(|(left, operator, right)| format!("({left}) {operator} {right}")),
        ]
    })
}

/// An attribute of an entry, whole.
fn attribute() -> impl Strategy<Value = String> {
    let condition = || prop::option::of(expression()).prop_map(|it| it.map_or(String::new(), |it| format!(" if {it}")));
    prop_oneof![
        (expression(), condition()).prop_map(|(on, when)| format!("depends on {on}{when}")),
        (expression(), condition()).prop_map(|(value, when)| format!("default {value}{when}")),
        (0..5_u8, condition()).prop_map(|(to, when)| format!("select A{to}{when}")),
        (0..5_u8, condition()).prop_map(|(to, when)| format!("imply A{to}{when}")),
        (-9..9_i32, 0..99_i32, condition()).prop_map(|(low, high, when)| format!("range {low} {high}{when}")),
        condition().prop_map(|when| format!("prompt \"Asked\"{when}")),
        prop::sample::select(vec![
            "modules",
            "optional",
            "transitional",
            "option env=\"X\"",
            "def_bool y",
            "def_int 3"
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,30}".prop_map(|text| format!("help\n\t  {text}\n\n\t    deeper")),
    ]
}

fn entry() -> impl Strategy<Value = String> {
    let kind =
        prop::sample::select(vec!["bool \"B\"", "tristate \"T\"", "int \"I\"", "hex", "string \"S\"", "bool", ""]);
    let word = prop::sample::select(vec!["config", "menuconfig"]);
    (word, 0..8_u8, kind, prop::collection::vec(attribute(), 0..5)).prop_map(|(word, name, kind, attributes)| {
        let attributes = attributes.iter().fold(String::new(), |text, attribute| text + "\t" + attribute + "\n");
        format!("{word} A{name}\n\t{kind}\n{attributes}\n")
    })
}

/// Blocks in blocks, all of them closed.
fn blocks() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => entry(),
        1 => Just("comment \"Said\"\n\tdepends on A1\n".to_owned()),
        1 => Just("source \"other\"\n".to_owned()),
        1 => prop::sample::select(vec!["X = $(Y)\n", "Y := y\n", "X += z\n", "$(warning-if,$(X),said)\n"]).prop_map(str::to_owned),
    ];
    let some = leaf.prop_recursive(4, 24, 5, |inner| {
        let body = prop::collection::vec(inner, 0..5).prop_map(|parts| parts.concat());
        prop_oneof![
            (body.clone(), expression())
                .prop_map(|(body, on)| format!("menu \"M\"\n\tvisible if {on}\n{body}endmenu\n")),
            (body.clone(), expression()).prop_map(|(body, on)| format!("if {on}\n{body}endif\n")),
            (body.clone(), 0..8_u8)
                .prop_map(|(body, name)| format!("choice\n\tprompt \"C\"\n\tdefault A{name}\n{body}endchoice\n")),
            body,
        ]
    });
    prop::collection::vec(some, 1..6).prop_map(|parts| format!("yes = y\n{}", parts.concat()))
}

/// What can happen to a file: bytes and lines lost, doubled, swapped, replaced.
fn damage(mut bytes: Vec<u8>, how: &[(u8, prop::sample::Index, prop::sample::Index, u8)]) -> Vec<u8> {
    for (what, one, other, byte) in how {
        if bytes.is_empty() {
            break;
        }
        let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
        let (low, high) = (one.min(other), one.max(other));
        match what {
            0 => drop(bytes.remove(one)),
            1 => bytes.insert(one, *byte),
            2 => bytes.swap(one, other),
            3 => bytes.truncate(one),
            4 => drop(bytes.drain(low..high.min(low + 40))),
            5 => {
                let copy = bytes[low..high.min(low + 80)].to_vec();
                bytes.splice(one..one, copy);
            }
            _ => bytes[one] = *byte,
        }
    }
    bytes
}

/// A generator whose trees are all refused would prove little.
#[test]
fn some_trees_of_the_grammar_load() {
    let mut runner = TestRunner::deterministic();
    let loads = |text: String| {
        let files = MemoryFiles::new([("Kconfig", text.into_bytes()), ("other", Vec::new())]);
        Tree::load("Kconfig", &files, &Env::empty()).is_ok()
    };
    let loaded = (0..300).filter(|_| loads(blocks().new_tree(&mut runner).unwrap().current())).count();
    assert!(loaded > 30, "{loaded} of 300 load");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn trees_of_the_grammar_end(text in blocks()) {
        survive(text.as_bytes());
    }

    #[test]
    fn damaged_trees_of_the_grammar_end(
        text in blocks(),
        how in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        survive(&damage(text.into_bytes(), &how));
    }

    #[test]
    fn damaged_corpora_end(
        which in any::<prop::sample::Index>(),
        how in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let files = corpus();
        let (_, bytes) = files[which.index(files.len())].clone();
        survive(&damage(bytes, &how));
    }
}
