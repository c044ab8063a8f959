//! Whatever the bytes are, the parser ends and does not panic; whatever the values are, evaluation
//! agrees with itself.

use std::fmt::Write as _;

use kconfig::history::Delta;
use kconfig::{Config, Env, MemoryFiles, Tree, Tri, dotconfig};
use proptest::prelude::*;

use crate::support::tree;

/// Lines that are likely to mean something, for inputs that get past the first word.
fn line() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["A", "B", "C", "phase1.D", "64BIT", "y", "m", "n", "7", "0x1f", "-3"]);
    let operator = prop::sample::select(vec![
        "&&", "||", "=", "!=", "<", ">=", "!", "(", ")", "if", "&", "\"s\"", "'", "\\", "$(A)", "$(",
    ]);
    let head = prop::sample::select(vec![
        "config",
        "menuconfig",
        "choice",
        "endchoice",
        "menu \"M\"",
        "endmenu",
        "if",
        "endif",
        "comment \"c\"",
        "source \"Kconfig\"",
        "source \"other\"",
        "\tbool",
        "\ttristate \"T\"",
        "\tint",
        "\thex \"H\"",
        "\tstring \"S\"",
        "\tdefault",
        "\tdepends on",
        "\tselect",
        "\timply",
        "\trange 1",
        "\tvisible if",
        "\thelp\n\t  text",
        "\tmodules",
        "\toptional",
        "\tprompt \"P\"",
        "#: k = v",
        "# c",
        "",
        "A :=",
        "B +=",
        "mainmenu \"T\"",
        "\toption env=\"A\"",
        "\tdef_bool",
    ]);
    (head, prop::collection::vec(prop_oneof![name.prop_map(str::to_owned), operator.prop_map(str::to_owned)], 0..5))
        .prop_map(|(head, rest)| format!("{head} {}\n", rest.join(" ")))
}

/// A tree that loads: symbols may depend only on those before them.
fn sound_tree() -> impl Strategy<Value = String> {
    let entry = (0..6_usize, prop::bool::ANY, prop::collection::vec((0..4_usize, any::<prop::sample::Index>()), 0..4));
    prop::collection::vec(entry, 1..20).prop_map(|entries| {
        let mut text = String::from("config MODULES\n\tbool \"Modules\"\n\tmodules\n");
        for (at, (kind, shown, uses)) in entries.iter().enumerate() {
            let word = ["bool", "tristate", "int", "string", "hex", "bool"][*kind];
            let prompt = if *shown { " \"P\"" } else { "" };
            writeln!(text, "config S{at}\n\t{word}{prompt}").unwrap();
            for (what, index) in uses {
                if at == 0 {
                    continue;
                }
                let other = index.index(at);
                let line = match (what, *kind) {
                    (0, _) => format!("\tdepends on S{other}\n"),
                    (1, 0 | 1 | 5) => format!("\tdefault S{other} != n || m\n"),
                    (2, 2 | 3) => format!("\tdefault {at} if S{other} = y\n"),
                    (3, 2) => format!("\trange 1 {}\n", other + 1),
                    _ => String::new(),
                };
                text.push_str(&line);
            }
        }
        text
    })
}

fn load(bytes: Vec<u8>, other: Vec<u8>) {
    let files = MemoryFiles::new([("Kconfig", bytes), ("other", other)]);
    match Tree::load("Kconfig", &files, &Env::new(|name| Some(name.to_lowercase()))) {
        Err(found) => assert!(!found.render(true).is_empty()),
        Ok(tree) => {
            let config = Config::new(&tree);
            let text = dotconfig::write(&config, "CONFIG_");
            let mut again = Config::new(&tree);
            dotconfig::read(&mut again, &text, "CONFIG_");
            assert_eq!(tree.warnings().is_empty(), tree.warnings().render(true).is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        load(bytes, Vec::new());
    }

    #[test]
    fn any_text_ends(text in "\\PC{0,200}") {
        load(text.clone().into_bytes(), format!("config A\n\tdepends on {text}\n\thelp\n {text}").into_bytes());
    }

    #[test]
    fn any_lines_end(lines in prop::collection::vec(line(), 0..30), other in prop::collection::vec(line(), 0..10)) {
        load(lines.concat().into_bytes(), other.concat().into_bytes());
    }

    #[test]
    fn any_dotconfig_ends(text in "(CONFIG_|# CONFIG_)?[SA-C0-9= \"\\\\ymn]{0,20}(\n(CONFIG_|# CONFIG_)S[0-9]=[ymn0-9\"]{0,4}){0,10}") {
        let tree = tree("config S0\n\tbool \"a\"\nconfig S1\n\tstring \"b\"\nconfig S2\n\tint \"c\"\n");
        dotconfig::read(&mut Config::new(&tree), &text, "CONFIG_");
    }

    #[test]
    fn a_written_configuration_is_a_fixed_point(text in sound_tree(), picks in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 0..30)) {
        let tree = tree(&text);
        let mut config = Config::new(&tree);
        let symbols: Vec<_> = tree.symbols().map(|(id, _)| id).collect();
        for (index, value) in picks {
            let id = symbols[index.index(symbols.len())];
            let value = ["n", "m", "y", "5"][value];
            if config.set(id, value).is_ok() {
                prop_assert_eq!(config.value(id), value);
            }
        }
        let written = dotconfig::write(&config, "CONFIG_");
        let mut again = Config::new(&tree);
        dotconfig::read(&mut again, &written, "CONFIG_");
        prop_assert_eq!(dotconfig::write(&again, "CONFIG_"), written);
    }

    #[test]
    fn what_was_said_can_be_taken_back_and_said_again(text in sound_tree(), picks in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 0..20)) {
        let tree = tree(&text);
        let mut config = Config::new(&tree);
        let symbols: Vec<_> = tree.symbols().map(|(id, _)| id).collect();
        let all = |config: &Config<'_>| dotconfig::write(config, "CONFIG_");
        let mut steps = vec![(all(&config), Delta::default())];
        for (index, value) in picks {
            let id = symbols[index.index(symbols.len())];
            let before = config.said();
            config.set(id, ["n", "m", "y", "5"][value]).ok();
            steps.push((all(&config), before.delta(&config.said())));
            for id in &symbols {
                let mut without = config.clone();
                without.unset(*id);
                prop_assert_eq!(config.default_value(*id), without.value(*id), "{}", tree.get(*id).name);
            }
        }
        for at in (1..steps.len()).rev() {
            config.undo(&steps[at].1);
            prop_assert_eq!(&all(&config), &steps[at - 1].0);
        }
        for (text, delta) in &steps {
            config.redo(delta);
            prop_assert_eq!(&all(&config), text);
        }
    }

    #[test]
    fn values_stay_between_what_selects_and_what_allows(text in sound_tree()) {
        let tree = tree(&text);
        let config = Config::new(&tree);
        for (id, symbol) in tree.symbols() {
            prop_assert!(config.tri(id) >= config.minimum(id));
            prop_assert!(symbol.kind.is_logical() || config.tri(id) == Tri::N);
            prop_assert_eq!(config.visible(id) != Tri::N, config.explain_visibility(id).is_empty());
        }
    }
}

#[test]
fn long_chains_take_no_stack() {
    let mut text = String::from("config S0\n\tbool \"S\"\n\tdefault y\n");
    for at in 1..20_000 {
        writeln!(text, "config S{at}\n\tbool \"S\"\n\tdepends on S{}\n\tdefault y", at - 1).unwrap();
    }
    let tree = tree(&text);
    let config = Config::new(&tree);
    assert_eq!(config.tri(tree.symbol("S19999").unwrap()), Tri::Y);
    assert_eq!(dotconfig::write(&config, "").lines().count(), 20_004);

    let sum: Vec<String> = (0..50_000).map(|at| format!("A{}", at % 7)).collect();
    let wide = format!("config A\n\tdef_bool {}\nconfig B\n\tdef_bool {}\n", sum.join(" || "), sum.join(" && "));
    load(wide.into_bytes(), Vec::new());
}
