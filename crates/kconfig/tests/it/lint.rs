//! What lints find, and, as important, what they leave alone.

use std::fmt::Write as _;

use kconfig::lint::{self, Elsewhere, LINTS, Policy, PolicyError, Setting};
use kconfig::{Diagnostics, Level};
use proptest::prelude::*;

use crate::support::{files, tree};

fn policy(id: &str) -> Policy {
    let mut policy = Policy::default();
    policy.set("all", Setting::Allow).unwrap();
    policy.set(id, Setting::Warn).unwrap();
    policy
}

/// The picture of what one lint finds.
fn found(id: &str, text: &str) -> String {
    lint::check(&tree(text), &policy(id), &Elsewhere::default()).render(true)
}

fn ids(found: &Diagnostics) -> Vec<&'static str> {
    found.iter().map(|finding| finding.id).collect()
}

#[test]
fn contradictions_are_unreachable_and_reported_once() {
    insta::assert_snapshot!(found(
        "K101",
        "config A\n\tbool \"A\"\n\n\
         menu \"M\"\n\tdepends on A\n\n\
         if !A\n\
         config B\n\tbool \"B\"\n\
         config C\n\tbool \"C\"\n\tdepends on B\n\
         endif\n\
         endmenu\n\
         config D\n\tbool \"D\" if A = n && A\n\tdefault y if !A && A != n\n\
         config N\n\tint \"N\"\n\
         config E\n\tbool \"E\"\n\tdepends on N\n\
         config F\n\tbool \"F\"\n\tdepends on MISSPELT_NAME && A\n\
         config G\n\tbool \"G\"\n\tselect B if A = \"maybe\"\n"
    ));
}

#[test]
fn what_follows_from_dependencies_makes_contradictions() {
    insta::assert_snapshot!(found(
        "K101",
        "config MODULES\n\tbool \"Modules\"\n\tmodules\n\
         config A\n\tbool \"A\"\n\
         config B\n\tbool \"B\"\n\tdepends on A\n\tselect H\n\
         config H\n\tbool\n\
         config C\n\tbool \"C\"\n\tdepends on B && !A\n\
         config D\n\tbool \"D\"\n\tdepends on B && !H\n\
         config E\n\tbool \"E\"\n\tdepends on (B || H) && !B && !H\n"
    ));
}

#[test]
fn satisfiable_conditions_are_not_contradictions() {
    let text = "config MODULES\n\tbool \"Modules\"\n\tmodules\n\
         config T\n\ttristate \"T\"\n\
         config A\n\tbool \"A\"\n\tdepends on T && !T\n\
         config B\n\tbool \"B\"\n\tdepends on T = m || T = n\n\
         config C\n\ttristate \"C\"\n\tdepends on T || !T\n\
         config D\n\ttristate \"D\"\n\tdepends on m && T\n\
         config N\n\tint \"N\"\n\
         config E\n\tbool \"E\"\n\tdepends on N > 3 && N < 2\n\
         config X\n\tbool\n\tdepends on A\n\
         config Y\n\tbool \"Y\"\n\tselect X\n\
         config Z\n\tbool \"Z\"\n\tdepends on X && !A\n\
         config W\n\tdef_bool n\n\
         config V\n\tbool \"V\"\n\tdepends on W\n\
         choice\n\tprompt \"P\"\nconfig P1\n\tbool \"1\"\nconfig P2\n\tbool \"2\"\n\tdepends on T\nendchoice\n";
    assert_eq!(found("K101", text), "");
}

#[test]
fn without_modules_m_never_holds() {
    insta::assert_snapshot!(found(
        "K101",
        "config A\n\ttristate \"A\"\nconfig B\n\ttristate \"B\"\n\tdepends on A = m\n"
    ));
}

#[test]
fn names_of_other_files_are_left_alone() {
    let tree = tree(
        "config A\n\tbool \"A\"\n\tdepends on SPARC\nconfig HAVE_B\n\tbool\nconfig B\n\tbool \"B\"\n\tdepends on HAVE_B\n",
    );
    let alone = lint::check(&tree, &Policy::default(), &Elsewhere::default());
    assert_eq!(ids(&alone), ["K023", "K101", "K107"], "what depends on HAVE_B is told by K107");
    let mut elsewhere = Elsewhere::default();
    elsewhere.add("config SPARC\n\tbool\n\tselect HAVE_B if SPARC64\n");
    assert_eq!(ids(&lint::check(&tree, &Policy::default(), &elsewhere)), Vec::<&str>::new());
}

#[test]
fn selects_without_the_dependencies_of_their_target() {
    insta::assert_snapshot!(
        [
            found("K103", "config NET\n\tbool \"Net\"\nif NET\nconfig T\n\tbool\nendif\nconfig S\n\tbool \"S\"\n\tselect T\n"),
            found("K103", "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\nconfig T\n\tbool \"T\"\n\tdepends on A || B\nconfig S\n\tbool \"S\"\n\tselect T\n"),
            found("K103", "config A\n\tbool \"A\"\nconfig T\n\tbool\n\tdepends on !A\nconfig S\n\tbool \"S\"\n\tselect T\n"),
            found("K103", "choice\n\tprompt \"C\"\nconfig X\n\tbool \"X\"\nconfig Y\n\tbool \"Y\"\nendchoice\nconfig T\n\tbool\n\tdepends on X\nconfig S\n\tbool \"S\"\n\tselect T\n"),
            found("K103", "choice\n\tprompt \"C\"\nconfig X\n\tbool \"X\"\nconfig Y\n\tbool \"Y\"\nendchoice\nconfig A\n\tbool \"A\"\nconfig T\n\tbool\n\tdepends on A\nconfig S\n\tbool \"S\"\n\tdepends on Y\n\tselect T\n"),
            found("K103", "config F\n\tstring \"F\"\nconfig N\n\tint \"N\"\nconfig A\n\tbool \"A\"\nconfig T\n\tbool\n\tdepends on A\nconfig S\n\tbool \"S\"\n\tdepends on F = \"x\" && N >= 7\n\tselect T\n"),
            found("K103", "config M\n\tbool \"M\"\n\tmodules\nconfig A\n\ttristate \"A\"\nconfig B\n\ttristate \"B\"\nconfig T\n\tbool\n\tdepends on B\nconfig S\n\tbool \"S\"\n\tdepends on A = m\n\tselect T\n"),
            found("K102", "config A\n\tbool \"A\"\nconfig T\n\tbool\n\tdepends on !A\nconfig S\n\tbool \"S\"\n\tdepends on A\n\tselect T\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn dependencies_that_are_carried_are_left_alone() {
    let carried = [
        // The same dependency, a stronger one, and one through another symbol.
        "config S\n\tbool \"S\"\n\tdepends on A\n\tselect T\n",
        "config S\n\tbool \"S\"\n\tdepends on A && B\n\tselect T\n",
        "config S\n\tbool \"S\"\n\tdepends on NEEDS_A\n\tselect T\n",
        // The condition, or a second select, carries it; in whatever order.
        "config S\n\tbool \"S\"\n\tselect T if A\n",
        "config S\n\tbool \"S\"\n\tselect T\n\tselect A\n",
        "config S\n\tbool \"S\"\n\tselect A if B\n\tselect T if B\n",
        "config S\n\tbool \"S\"\n\tselect T\n\tselect SELECTS_A\n",
        // Case by case.
        "config S\n\tbool \"S\"\n\tdepends on NEEDS_A || SELECTS_A\n\tselect T\n",
        // Through two symbols of which one is never on, and a definition that needs nothing.
        "config FROM_A\n\tdef_bool A\n\tdepends on A\nconfig NEVER\n\tdef_bool A && !A\nconfig C\n\tbool \"C\"\n\
         \tdepends on FROM_A || NEVER\n\tdefault y if !A\nconfig C\n\tbool\nconfig S\n\tbool \"S\"\n\tselect T if C || A\n",
        // Through a second default: without A nothing switches S on.
        "config FROM_A\n\tdef_bool A\nconfig HIDDEN\n\tbool\n\tdefault y if A && !FROM_A\n\tdefault y if !FROM_A\n\
         config S\n\tbool\n\tselect T if !B || A\nconfig S\n\tbool\n\tdefault y if !HIDDEN\n",
        // A symbol without a prompt is on because another symbol made it so.
        "config HIDDEN\n\tbool\nconfig BY\n\tbool \"By\"\n\tdepends on A\n\tselect HIDDEN\nconfig S\n\tdef_bool y\n\tdepends on HIDDEN\n\tselect T\n",
        // The user cannot switch it off.
        "config ALWAYS\n\tdef_bool y\nconfig T2\n\tbool\n\tdepends on ALWAYS\nconfig S\n\tbool \"S\"\n\tselect T2\n",
        // True whatever A is.
        "config T3\n\tbool\n\tdepends on A || !A\nconfig S\n\tbool \"S\"\n\tselect T3\n",
    ];
    for text in carried {
        let all = format!(
            "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\nconfig NEEDS_A\n\tbool \"C\"\n\tdepends on A\n\
             config SELECTS_A\n\tbool \"D\"\n\tselect A\nconfig T\n\tbool\n\tdepends on A\n{text}"
        );
        let broken = format!("{}{}", found("K103", &all), found("K102", &all));
        assert_eq!(broken, "", "{text}");
    }
}

#[test]
fn defaults_and_ranges() {
    insta::assert_snapshot!(
        [
            found("K104", "config A\n\tint \"A\"\n\tdefault 99\n\trange 1 10\nconfig H\n\thex \"H\"\n\tdefault 0x5\n\trange 0x10 0x20\n"),
            found("K106", "config A\n\tint \"A\"\n\tdefault 1\n\tdefault 2 if B\nconfig B\n\tbool \"B\"\n\tdepends on C\n\tdefault y if D\n\tdefault n if D\nconfig C\n\tbool \"C\"\nconfig D\n\tbool \"D\"\n"),
            found("K122", "config A\n\tbool \"A\"\n\tdefault n\n"),
        ]
        .join("\n\n")
    );
    let fine = "config A\n\tint \"A\"\n\tdefault 99 if B\n\tdefault 5\n\trange 90 100 if B\n\trange 1 10\nconfig B\n\tbool \"B\"\n";
    assert_eq!(found("K104", fine), "");
    let override_by_another_file = "config A\n\tbool\n\tdefault y\nconfig A\n\tbool \"A\"\n\tdefault n\n";
    assert_eq!(found("K106", override_by_another_file), "");
}

#[test]
fn menus() {
    insta::assert_snapshot!(
        [
            found("K105", "config A\n\tbool \"Same\"\nconfig B\n\tbool \"Same\"\n"),
            found("K110", "menu \"Empty\"\nendmenu\nif A\nendif\nconfig A\n\tbool \"A\"\n"),
            found("K123", "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\n\thelp\n\t  Helps.\n"),
        ]
        .join("\n\n")
    );
    let told_apart = "config A\n\tbool \"A\"\nconfig B\n\tbool \"Same\"\n\tdepends on A\nconfig C\n\tbool \"Same\"\n\tdepends on !A\n\
                      menu \"M\"\nconfig D\n\tbool \"Same\"\nendmenu\n";
    assert_eq!(found("K105", told_apart), "");
}

#[test]
fn symbols_and_lines_that_do_nothing() {
    insta::assert_snapshot!(
        [
            found("K107", "config A\n\tbool\nconfig B\n\tbool \"B\"\n"),
            found("K108", "config A\n\tbool \"A\"\nconfig N\n\tint \"N\"\nconfig B\n\tbool \"B\"\n\tdepends on A = \"yes\" || N = \"ten\"\n"),
            found("K109", "config A\n\tbool \"A\"\n\tselect B\n\tselect B\n\tdepends on C\n\tdepends on C\nconfig B\n\tbool\nconfig C\n\tbool \"C\"\n"),
            found("K120", "config A\n\tbool \"A\"\n\tselect B\nconfig B\n\tbool \"B\"\n"),
            found("K121", "config A\n\tbool \"A\"\nif A\nconfig B\n\tbool \"B\"\n\tdepends on A\nendif\n"),
            found("K124", "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\n\tdepends on A\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn findings_in_other_files_have_a_second_label() {
    let tree = files(&[
        ("Kconfig", "source \"a\"\nsource \"b\"\n"),
        ("a", "config A\n\tbool \"A\"\n\tselect B\n"),
        ("b", "config C\n\tbool \"C\"\nconfig B\n\tbool\n\tdepends on C\n"),
    ]);
    insta::assert_snapshot!(lint::check(&tree, &Policy::default(), &Elsewhere::default()).render(true));
}

#[test]
fn policies_choose_and_refuse() {
    let tree = tree("config A\n\tbool\nconfig B\n\tbool \"B\"\n\tdepends on TYPO_OF_NAME\n");
    let mut policy = Policy::default();
    policy.set("all", Setting::Deny).unwrap();
    policy.set("k107", Setting::Allow).unwrap();
    policy.set("K123", Setting::Warn).unwrap();
    let found = lint::check(&tree, &policy, &Elsewhere::default());
    let levels: Vec<_> = found.iter().map(|finding| (finding.id, finding.level)).collect();
    let (warning, error) = (Level::Warning, Level::Error);
    let expected = [("K124", error), ("K124", error), ("K123", warning), ("K023", error), ("K101", error)];
    assert_eq!(levels, expected);
    assert_eq!(policy.set("K999", Setting::Warn), Err(PolicyError::Unknown { id: "K999".to_owned(), near: None }));
    assert_eq!(policy.set("K020", Setting::Allow), Err(PolicyError::Fatal { id: "K020", setting: Setting::Allow }));
    assert!(policy.set("K020", Setting::Deny).is_ok());
}

#[test]
fn the_catalogue_is_sorted_and_has_every_id_once() {
    assert!(LINTS.is_sorted_by(|a, b| a.id < b.id));
    assert!(LINTS.iter().all(|lint| lint::find(lint.id) == Some(lint) && !lint.summary.is_empty()));
}

/// Bools that depend on, select and imply each other at random, later ones on earlier ones; the
/// first two may be a choice.
fn any_tree() -> impl Strategy<Value = String> {
    let line = (0..5_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_usize);
    let entries = prop::collection::vec((any::<bool>(), prop::collection::vec(line, 0..4)), 2..9);
    (prop::bool::weighted(0.3), entries).prop_map(|(is_choice, entries)| {
        let mut text = String::new();
        let mut rest = &entries[..];
        if is_choice {
            text.push_str("choice\n\tprompt \"C\"\nconfig S0\n\tbool \"P\"\nconfig S1\n\tbool \"P\"\nendchoice\n");
            rest = &entries[2..];
        }
        for (at, (shown, lines)) in (entries.len() - rest.len()..).zip(rest) {
            writeln!(text, "config S{at}\n\tbool{}", if *shown { " \"P\"" } else { "" }).unwrap();
            for (what, first, second, shape) in lines.iter().filter(|_| at > 0) {
                let (a, b) = (first.index(at), second.index(at));
                let condition = [format!("S{a}"), format!("!S{a}"), format!("S{a} && !S{b}"), format!("S{a} || S{b}")];
                let condition = &condition[*shape];
                let line = match what {
                    0 | 1 => format!("\tdepends on {condition}\n"),
                    2 => format!("\tdefault y if {condition}\n"),
                    3 => format!("\tdefault {condition}\n"),
                    _ => format!(
                        "\tselect T{at} if {condition}\nconfig T{at}\n\tbool\n\tdepends on S{b}\nconfig S{at}\n\tbool\n"
                    ),
                };
                text.push_str(&line);
            }
        }
        text
    })
}

/// Calls `visit` with each way to set the symbols that have a prompt.
fn every_configuration(tree: &kconfig::Tree, mut visit: impl FnMut(&kconfig::Config<'_>)) {
    let shown: Vec<_> = tree
        .symbols()
        .filter(|(_, symbol)| symbol.nodes.iter().any(|node| tree.node(*node).prompt.is_some()))
        .map(|(id, _)| id)
        .collect();
    for bits in 0..1_u32 << shown.len() {
        let mut config = kconfig::Config::new(tree);
        let values = || shown.iter().enumerate().map(|(at, symbol)| (*symbol, bits >> at & 1 == 1));
        for (symbol, on) in values().filter(|(symbol, _)| tree.get(*symbol).choice.is_none()) {
            config.assign(symbol, if on { "y" } else { "n" }).unwrap();
        }
        // Of a choice one is on in any case.
        for (symbol, _) in values().filter(|(_, on)| *on) {
            if let Some(choice) = tree.get(symbol).choice {
                config.set_choice(choice, symbol).unwrap();
            }
        }
        visit(&config);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    /// The proof behind "never" and "can": looked up in all configurations there are.
    #[test]
    fn what_lints_claim_is_true_in_every_configuration(text in any_tree()) {
        let tree = tree(&text);
        let found = lint::check(&tree, &Policy::default(), &Elsewhere::default());
        for finding in &found {
            let span = finding.labels[0].span;
            let (mut held, mut met, mut unmet) = (false, false, false);
            every_configuration(&tree, |config| {
                for (id, symbol) in tree.symbols() {
                    let conditions = symbol.defaults.iter().map(|default| (default.condition, default.span))
                        .chain(symbol.selects.iter().map(|select| (select.condition, select.span)))
                        .chain(symbol.nodes.iter().flat_map(|node| {
                            let node_ref = tree.node(*node);
                            let prompt = node_ref.prompt.as_ref().map(|prompt| (prompt.condition, prompt.span));
                            prompt.into_iter().chain(tree.written_dependencies(*node).map(|(_, span)| (node_ref.depends, span)))
                        }));
                    held |= conditions.into_iter().any(|(condition, at)| at == span && config.holds(condition) != kconfig::Tri::N);
                    for select in symbol.selects.iter().filter(|select| select.span == span) {
                        let strength = config.tri(id).min(config.holds(select.condition));
                        let allowed = config.holds(tree.get(select.target).direct_dependency);
                        unmet |= strength > allowed;
                        met |= strength != kconfig::Tri::N && strength <= allowed;
                    }
                    if finding.id == "K107" && tree.node(symbol.nodes[0]).span == span {
                        held |= config.tri(id) != kconfig::Tri::N;
                    }
                }
            });
            match finding.id {
                "K101" | "K107" => prop_assert!(!held, "{}\n{}", found.render(true), text),
                "K102" => prop_assert!(!met, "{}\n{}", found.render(true), text),
                "K103" => prop_assert!(unmet, "{}\n{}", found.render(true), text),
                _ => {}
            }
        }
    }
}
