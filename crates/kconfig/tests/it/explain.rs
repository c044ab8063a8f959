//! Explanations: the chain of why, and plans that work.

use std::fmt::Write as _;

use kconfig::Config;
use kconfig::explain::{explain, plan};
use proptest::prelude::*;

use crate::support::{ByName as _, symbol, tree};

const TREE: &str = "mainmenu \"Test\"\n\
    config MODULES\n\tbool \"Modules\"\n\tmodules\n\tdefault y\n\
    menu \"Network\"\n\
    config NET\n\tbool \"Networking\"\n\thelp\n\t  Says more.\n\n\t    Deeper.\n\
    config DRIVER\n\ttristate \"Driver\"\n\tdepends on NET\n\tselect HELPER if BUS = y\n\timply EXTRA\n\tdefault m if SERVER\n\
    config BUS\n\tbool \"Bus\"\n\
    config HELPER\n\ttristate\n\tdepends on BUS\n\
    config EXTRA\n\ttristate \"Extra\"\n\
    config SERVER\n\tdef_bool FLAVOUR_SERVER\n\
    config PORT\n\tint \"Port\" if EXTRA\n\trange 1 100 if NET\n\tdefault 80 if SERVER\n\tdefault 8\n\
    endmenu\n\
    choice\n\tprompt \"Flavour\"\nconfig FLAVOUR_DESKTOP\n\tbool \"Desktop\"\nconfig FLAVOUR_SERVER\n\tbool \"Server\"\nendchoice\n";

fn explained(values: &[(&str, &str)], name: &str) -> String {
    let tree = tree(TREE);
    let mut config = Config::new(&tree);
    for (name, value) in values {
        config.put(name, value).unwrap();
    }
    explain(&config, symbol(&tree, name)).to_string()
}

#[test]
fn a_value_is_explained_down_to_what_was_set() {
    insta::assert_snapshot!(explained(&[("FLAVOUR_SERVER", "y"), ("NET", "y"), ("BUS", "y")], "HELPER"));
}

#[test]
fn what_cannot_be_set_has_a_way() {
    insta::assert_snapshot!(explained(&[], "DRIVER"));
}

#[test]
fn numbers_have_ranges_and_choices_have_members() {
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}",
        explained(&[("EXTRA", "y"), ("NET", "y")], "PORT"),
        explained(&[], "PORT"),
        explained(&[], "FLAVOUR_SERVER")
    ));
}

fn steps(text: &str, name: &str, value: Option<&str>) -> Option<Vec<String>> {
    let tree = tree(text);
    let config = Config::new(&tree);
    let plan = plan(&config, symbol(&tree, name), value)?;
    Some(plan.steps.into_iter().map(|step| format!("{}={}", step.name, step.value)).collect())
}

#[test]
fn plans_give_texts_and_numbers_values() {
    let text = "config CLOUD\n\tstring \"Cloud\"\n\tdefault \"local\"\nconfig COUNT\n\tint \"Count\"\n\trange 1 9\n\tdefault 1\n\
                config ZONE\n\tstring \"Zone\"\n\tdepends on CLOUD = \"gce\" || CLOUD = \"aws\"\nconfig SPREAD\n\tbool \"Spread\"\n\
                \tdepends on ZONE != \"\" && COUNT >= 3\nconfig SINGLE\n\tbool \"Single\"\n\tdepends on COUNT < 3 && CLOUD != \"local\"\n\
                config MANY\n\tbool \"Many\"\n\tdepends on 9 < COUNT\nconfig NAMED\n\tbool \"Named\"\n\tdepends on ZONE = \"a\"\n";
    let plan = |name, value| steps(text, name, value).map(|steps| steps.join(" "));
    assert_eq!(plan("ZONE", Some("b")).as_deref(), Some("CLOUD=gce ZONE=b"));
    assert_eq!(plan("SPREAD", Some("y")).as_deref(), Some("CLOUD=gce ZONE=a COUNT=3 SPREAD=y"));
    assert_eq!(plan("SINGLE", Some("y")).as_deref(), Some("CLOUD=gce SINGLE=y"));
    assert_eq!(plan("MANY", Some("y")), None, "out of range");
    assert_eq!(plan("COUNT", Some("4")).as_deref(), Some("COUNT=4"));
    assert_eq!(plan("COUNT", Some("x")), None);
}

#[test]
fn plans_go_through_dependencies_selects_and_defaults() {
    let text = "config A\n\tbool \"A\"\n\tdefault y\nconfig B\n\tbool \"B\"\n\tdepends on !A\nconfig C\n\tbool\n\tdepends on B\n\
                config D\n\tbool \"D\"\n\tselect C\n\tdepends on B\nconfig E\n\tbool \"E\"\n\tdepends on C || NOWHERE\n\
                config F\n\tbool\n\tdefault y if E\nconfig G\n\tbool \"G\"\n\tdepends on F && (NOWHERE || A = n)\n\
                config H\n\tbool \"H\"\n\tselect I\n\tdefault y\nconfig I\n\tbool \"I\"\n\
                config N\n\tint \"N\"\n\tdepends on B\nconfig NEVER\n\tbool \"X\"\n\tdepends on A && NOWHERE\n";
    let plan = |name, value| steps(text, name, value).map(|steps| steps.join(" "));
    assert_eq!(plan("B", Some("y")).as_deref(), Some("A=n B=y"));
    assert_eq!(plan("C", Some("y")).as_deref(), Some("A=n B=y D=y"));
    assert_eq!(plan("G", Some("y")).as_deref(), Some("A=n B=y D=y E=y G=y"));
    assert_eq!(plan("I", Some("n")).as_deref(), Some("H=n"), "nothing selects it then, and it was never set");
    assert_eq!(plan("N", None).as_deref(), Some("A=n B=y"));
    assert_eq!(plan("NEVER", Some("y")), None);
}

/// Symbols that depend on, select or are the default of earlier ones.
fn knot() -> impl Strategy<Value = String> {
    let line = (0..5_usize, any::<prop::sample::Index>());
    prop::collection::vec((any::<bool>(), prop::collection::vec(line, 0..4)), 2..12).prop_map(|entries| {
        let mut text = String::from("config MODULES\n\tbool \"M\"\n\tmodules\n");
        for (at, (shown, lines)) in entries.iter().enumerate() {
            writeln!(text, "config S{at}\n\ttristate{}", if *shown { " \"P\"" } else { "" }).unwrap();
            for (what, index) in lines.iter().filter(|_| at > 0) {
                let other = index.index(at);
                let line = match what {
                    0 => format!("\tdepends on S{other}\n"),
                    1 => format!("\tdepends on !S{other} || S0\n"),
                    2 => format!("\tdefault S{other}\n"),
                    3 => format!("\tdepends on S{other} = y\n"),
                    _ => format!("\tdefault y if S{other} = n\n"),
                };
                text.push_str(&line);
            }
        }
        text
    })
}

/// The number of answers after which a symbol has a value, counted by going through all there are.
fn distance(start: &Config<'_>, id: kconfig::SymbolId, value: &str) -> Option<usize> {
    let symbols: Vec<_> = start.tree().symbols().map(|(id, _)| id).collect();
    let state = |config: &Config<'_>| -> Vec<Option<String>> {
        symbols.iter().map(|id| config.user_value(*id).map(ToOwned::to_owned)).collect()
    };
    let mut seen = std::collections::HashSet::from([state(start)]);
    let mut front = vec![start.clone()];
    for length in 0.. {
        if front.iter().any(|config| config.value(id) == value) {
            return Some(length);
        }
        let mut next = Vec::new();
        for (config, other) in front.iter().flat_map(|config| symbols.iter().map(move |other| (config, other))) {
            for answer in ["n", "m", "y"] {
                let mut trial = config.clone();
                if trial.set(*other, answer).is_ok() && seen.insert(state(&trial)) {
                    next.push(trial);
                }
            }
        }
        if next.is_empty() {
            return None;
        }
        front = next;
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// A plan has no more steps than the shortest way, and there is one wherever there is a way.
    #[test]
    fn plans_are_the_shortest_ways(text in knot(), picks in prop::collection::vec(0..3_usize, 12)) {
        let tree = tree(&text);
        prop_assume!(tree.symbols().count() <= 6);
        let mut config = Config::new(&tree);
        for ((id, _), pick) in tree.symbols().zip(picks) {
            config.set(id, ["n", "m", "y"][pick]).ok();
        }
        for (id, definition) in tree.symbols() {
            for value in ["n", "m", "y"] {
                let found = plan(&config, id, Some(value)).map(|plan| plan.steps.len());
                prop_assert_eq!(found, distance(&config, id, value), "{}={}\n{}", definition.name, value, text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    /// Every step of a plan is possible when its turn comes, and the last one reaches what was
    /// promised.
    #[test]
    fn plans_work(text in knot(), picks in prop::collection::vec(0..3_usize, 12)) {
        let tree = tree(&text);
        let mut config = Config::new(&tree);
        for ((id, _), pick) in tree.symbols().zip(picks) {
            config.set(id, ["n", "m", "y"][pick]).ok();
        }
        for (id, definition) in tree.symbols() {
            for plan in explain(&config, id).plans {
                let mut trial = config.clone();
                for step in &plan.steps {
                    let done = trial.put(&step.name, &step.value);
                    prop_assert!(done.is_ok(), "{}={}: {:?}\n{}", step.name, step.value, done, text);
                }
                prop_assert_eq!(Some(trial.value(id)), plan.value.as_deref(), "{}\n{}", definition.name, text);
            }
        }
    }
}
