//! The JSON of a tree: its shape, and that no text breaks it.

use kconfig::Config;
use proptest::prelude::*;

use crate::support::{ByName as _, files, tree};

fn json(config: &Config<'_>) -> String {
    let mut out = Vec::new();
    kconfig::json::write(config, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_shape_of_version_one() {
    let tree = files(&[
        (
            "Kconfig",
            "mainmenu \"Title\"\nconfig MODULES\n\tbool \"Modules\"\n\tmodules\n\
             #: format = port\nconfig PORT\n\tint \"Port\" if NET\n\trange 1 9 if NET\n\tdefault 5\n\thelp\n\t  One \"two\"\\three.\n\n\t  Four.\n\
             source \"more\"\n",
        ),
        (
            "more",
            "menu \"More\"\n\tvisible if MODULES\nconfig NET\n\ttristate \"Net\"\n\tselect FORCED if MODULES\n\timply HINTED\n\
             config FORCED\n\tbool\nconfig HINTED\n\ttristate \"Hinted\"\n\tdepends on NOWHERE || NET\nendmenu\n\
             choice FLAVOUR\n\tprompt \"Flavour\"\n\tdefault BIG\nconfig SMALL\n\tbool \"Small\"\nconfig BIG\n\tbool \"Big\"\nendchoice\n",
        ),
    ]);
    let mut config = Config::new(&tree);
    config.put("MODULES", "y").unwrap();
    config.put("NET", "m").unwrap();
    insta::assert_snapshot!(json(&config));
}

/// As many brackets and quotes open as close, and nothing is left between them that JSON does not
/// know.
fn is_balanced(text: &str) -> bool {
    let (mut depth, mut inside, mut escaped) = (0_i32, false, false);
    for letter in text.chars() {
        match (inside, letter) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => inside = !inside,
            (true, letter) if (letter as u32) < 0x20 => return false,
            (false, '{' | '[') => depth += 1,
            (false, '}' | ']') => depth -= 1,
            _ => {}
        }
    }
    depth == 0 && !inside
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn texts_are_escaped(value in "[\"\\\\\u{1}-\u{1f}a-z\u{e9}]{0,12}") {
        let tree = tree("config S\n\tstring \"S\"\n");
        let mut config = Config::new(&tree);
        config.put("S", &value).unwrap();
        prop_assert!(is_balanced(&json(&config)), "{}", json(&config));
    }
}

#[test]
fn a_long_chain_takes_no_stack_and_linear_time() {
    use std::fmt::Write as _;
    let chain = |length: usize| {
        let mut text = String::from("config S0\n\tbool \"S\"\n\tdefault y\n");
        for at in 1..length {
            writeln!(text, "config S{at}\n\tbool \"S\"\n\tdepends on S{}\n\tdefault y", at - 1).unwrap();
        }
        let tree = tree(&text);
        json(&Config::new(&tree)).len()
    };
    assert!(chain(8000) < 9 * chain(1000));
}
