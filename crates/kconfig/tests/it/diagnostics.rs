//! What findings look like; each test is one kind of mistake.

use crate::support::{findings, findings_of};

#[test]
fn unknown_words_get_a_suggestion_and_do_not_hide_later_errors() {
    insta::assert_snapshot!(findings(
        "confg A\n\tbool \"A\"\nconfig B\n\tbol \"B\"\n\tdefualt y\nconfig C\n\tbool C\n"
    ));
}

#[test]
fn expressions_say_what_was_expected() {
    insta::assert_snapshot!(findings(
        "config A\n\tbool \"A\"\n\tdepends on B &&\n\tdepends B\n\tdefault y if\n\tdepends on (B || C\n\tselect \"B\"\n\tdefault B = C = D\n\tdepends on B & C\n"
    ));
}

#[test]
fn characters_that_mean_nothing_are_ignored_where_the_rest_makes_sense() {
    insta::assert_snapshot!(findings("config A;\n\tbool \"A\" @\n~ \u{b1}\n%\tdefault y\n"));
    insta::assert_snapshot!(findings("config A\n\tbool \"A\" B; C\n\tdefault A & A\n"));
}

#[test]
fn texts_have_to_be_closed() {
    insta::assert_snapshot!(findings("menu \"open\nconfig A\n\tstring 'a\\'\n\nendmenu\n"));
}

#[test]
fn blocks_have_to_match() {
    insta::assert_snapshot!(findings(
        "menu \"M\"\nif A\nendmenu\nendif\nchoice\n\tprompt \"C\"\nconfig X\n\tbool \"X\"\n"
    ));
}

#[test]
fn attributes_belong_to_entries() {
    insta::assert_snapshot!(findings(
        "default y\nmenu \"M\"\n\tbool \"B\"\n\tselect A\ncomment \"c\"\n\thelp\n\t  no\nif A\n\tdepends on B\nendif\nendmenu\n"
    ));
}

#[test]
fn missing_files_and_loops_are_shown_where_they_are_sourced() {
    insta::assert_snapshot!(findings_of(&[
        ("Kconfig", "source \"a\"\nsource \"missing/Kconfig\"\nsource \"x/*/Kconfig\"\n"),
        ("a", "source \"b\"\n"),
        ("b", "# round and round\nrsource \"./a\"\n"),
    ]));
}

#[test]
fn a_cycle_is_shown_whole() {
    insta::assert_snapshot!(findings_of(&[
        ("Kconfig", "config A\n\tbool \"A\"\n\tdepends on B\nsource \"b\"\n"),
        (
            "b",
            "config B\n\tbool \"B\"\n\tdefault y if C\nconfig C\n\tbool \"C\"\nconfig D\n\tbool \"D\"\n\tdepends on A\n\tselect C\n"
        ),
    ]));
}

#[test]
fn a_symbol_may_not_depend_on_itself() {
    insta::assert_snapshot!(findings(
        "config A\n\tbool \"A\"\n\tdepends on A\nmenu \"M\"\n\tdepends on B\nconfig B\n\tbool \"B\"\nendmenu\n"
    ));
}

#[test]
fn warnings_name_types_ranges_and_names() {
    insta::assert_snapshot!(findings(
        "config N\n\tint \"N\"\n\tdefault \"many\"\n\trange 9 1\n\
         config T\n\tbool \" T\"\n\ttristate\n\tdefault 3\n\tselect N\n\tdepends on UNDEFINED || NN\n\
         config NNN\n\tstring \"S\"\n\trange 1 2\n\
         config U\n\
         menuconfig V\n\tbool\n"
    ));
}

#[test]
fn warnings_about_choices() {
    insta::assert_snapshot!(findings(
        "choice\n\tdefault B1\nconfig A1\n\tbool \"A1\"\n\tdefault y\nconfig A2\n\tbool\nendchoice\nconfig B1\n\tbool \"B1\"\n"
    ));
}

#[test]
fn structured_comments_and_help_that_hang_in_the_air() {
    insta::assert_snapshot!(findings(
        "#: format = port\n\nconfig A\n\tbool \"A\"\n\t#: secret\n\tdefault y\n\thelp\nconfig B\n\tbool \"B\"\n"
    ));
}

#[test]
fn macros_fail_where_they_stand() {
    insta::assert_snapshot!(findings(
        "a = $(b)\nb = $(a)\nconfig A\n\tbool \"$(a)\"\n\tdefault $(shell,true)\n\tdefault $(open\n$(error-if,y,your compiler is too old)\n"
    ));
}

#[test]
fn places_survive_expansion_and_continuation() {
    insta::assert_snapshot!(findings(
        "x := A ||\nconfig A\n\tbool \"A\" if B && \\\n\t\t\tC &&& D\n\tdepends on B && $(x) & C\n"
    ));
}

#[test]
fn tabs_and_wide_characters_keep_the_carets_in_place() {
    insta::assert_snapshot!(findings("config A\n\tbool\t\"größer → ✓\" fi B\n"));
}

#[test]
fn nesting_has_an_end() {
    let deep = format!("config A\n\tdepends on {}B\n", "(".repeat(5000));
    assert!(findings(&deep).contains("K010"));
    let negations = format!("config A\n\tdepends on {}B\n", "! ".repeat(5000));
    assert!(findings(&negations).contains("K010"));
    let blocks = format!("{}{}", "if A\n".repeat(1000), "endif\n".repeat(1000));
    assert!(findings(&blocks).contains("K010"));
}
