//! The canonical form: what it looks like, that it is stable, and that it changes no meaning.

use kconfig::{Config, Env, MemoryFiles, Tree};
use proptest::prelude::*;

fn format(text: &str) -> String {
    match kconfig::format::format("Kconfig", text.as_bytes()) {
        Ok(bytes) => String::from_utf8(bytes).unwrap(),
        Err(found) => panic!("{}", found.render(true)),
    }
}

/// Everything that a file means: the tree and its values, without places.
fn meaning(text: &str) -> Result<String, String> {
    let files = MemoryFiles::new([("Kconfig", text), ("other", "config OTHER\n\tbool\n")]);
    let env = Env::new(|name| Some(format!("value of {name}")));
    let tree = Tree::load("Kconfig", &files, &env).map_err(|found| found.render(true))?;
    let mut json = Vec::new();
    kconfig::json::write(&Config::new(&tree), &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    let parts = json.split("\"at\":\"").enumerate();
    Ok(parts.map(|(at, part)| if at == 0 { part } else { part.split_once('"').unwrap().1 }).collect())
}

#[test]
fn entries_attributes_and_help_get_their_places() {
    insta::assert_snapshot!(format(
        "# SPDX\n\n\n\n   mainmenu   \"Title\"\r\n\
         # about A\nconfig   A\n    bool\t\"A  b\"   if  B&&( C||! D )   # why  not\n\n  depends\ton   B!=n\n\n\
         \x20   ---help---\n\n      First.\n\n          Deeper.\n      \tTabbed.\n\n\n\
         \x20 menu \"M\"\n   config C\n\t\t  bool\n\t# off: default y\n\t default y\n# gone:\n#\tselect X\n\tselect Y\n  endmenu\n\
         if X\nsource   \"other\"\nendif   # X\n\n\n"
    ));
}

#[test]
fn continuations_macros_and_assignments_stay_as_they_are() {
    insta::assert_snapshot!(format(
        "  x  :=  a  b  \n\ty = $(shell,  echo   one)\n$(info,  two   blanks)\nconfig A\n  bool \"$(x)   y\" if   $(z)\n  depends on B  && \\\n\t\tC  || \\\n   D   \n\tdefault y\n"
    ));
}

#[test]
fn what_is_formatted_already_stays() {
    let text = "# SPDX\nmainmenu \"T\"\n\n# about A\nconfig A\n\tbool \"A\"\n\thelp\n\t  Text.\n\n\t    Deeper.\n\nif A\n\nconfig B\n\tdef_bool y\n\nendif # A\n";
    assert_eq!(format(text), text);
    assert_eq!(format(""), "");
}

#[test]
fn an_attribute_behind_an_empty_help_is_not_swallowed() {
    let text = "config A\n\tbool \"A\"\n\thelp\ndefault y\n# no help\n\tdepends on B\n";
    assert_eq!(format(text), text);
    assert_eq!(meaning(text), meaning(&format(text)));
}

#[test]
fn other_bytes_survive() {
    let text = b"config A\n bool \"A\"\n help\n  caf\xe9 \xa0\x85\n  \xff\xfe\n";
    let formatted = kconfig::format::format("Kconfig", text).unwrap();
    assert_eq!(formatted, b"config A\n\tbool \"A\"\n\thelp\n\t  caf\xe9 \xa0\x85\n\t  \xff\xfe\n");
}

#[test]
fn what_does_not_parse_is_refused_with_a_picture_of_the_file() {
    let refused = |text: &str| kconfig::format::format("drivers/Kconfig", text.as_bytes()).unwrap_err().render(true);
    insta::assert_snapshot!(
        [
            refused("config A\n   bol   \"A\"\n"),
            refused("menu \"M\"\nconfig A\n\tbool \"$(x)\"\n"),
            refused("x = 1\nconfig A\n\tstring \"a\n"),
        ]
        .join("\n\n")
    );
}

#[test]
fn formatting_does_not_need_the_rest_of_the_tree() {
    for text in [
        "source \"arch/$(SRCARCH)/Kconfig\"\nsource \"*/missing\"\nconfig A\n\tdef_bool $(cc-option,-m32 -c)\n",
        "config A\n\tbool \"A\"\n\tdepends on A\n",
        "config A\n\tint \"A\"\n\tdefault B || C\n",
        "$(error-if,y,no)\nconfig X_$(y)\n\tbool \"X\"\n\tdepends on $(shell,echo \") \")\n",
    ] {
        assert_eq!(format(&format(text)), format(text));
    }
}

fn blanks() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![" ", "  ", "\t", " \t ", "      "])
}

fn indent() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", " ", "  ", "\t", "    ", "\t\t", "  \t "])
}

/// Lines that may stand between others, and mostly mean nothing.
fn filler() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        1 => Just("\n".to_owned()),
        1 => Just("  \t\n\n".to_owned()),
        1 => indent().prop_map(|indent| format!("{indent}#  comment  here \n")),
        1 => Just("# one\n\n# two\n".to_owned()),
    ]
}

fn attribute() -> impl Strategy<Value = String> {
    let help = prop::collection::vec(
        (0..4_usize, prop::sample::select(vec!["word", "# no comment", "config X", "", "\"q", "a  b"])),
        1..6,
    );
    let help = (indent(), help, 1..6_usize).prop_map(|(indent, lines, depth)| {
        let text: Vec<String> =
            lines.iter().map(|(more, text)| format!("{}{}{text}\n", "\t".repeat(depth), " ".repeat(*more))).collect();
        let text = text.concat();
        format!("{indent}help\n{text}")
    });
    let plain = prop::sample::select(vec![
        "bool_\"p  q\"",
        "bool_\"p\"_if_A_&&_!_B",
        "depends_on_A&&(_B||_!C_)",
        "depends_on_A_=_\"a  b\"",
        "default_y_if_A!=_n",
        "depends_on_A_&&_\\\n\t\tB",
        "default_y_#  why",
        "help",
    ]);
    prop_oneof![
        3 => (indent(), blanks(), plain).prop_map(|(indent, blank, text)| format!("{indent}{}\n", text.replace('_', blank))),
        1 => help,
    ]
}

fn entry() -> impl Strategy<Value = String> {
    let body = prop::collection::vec((filler(), attribute()), 0..5);
    (filler(), indent(), blanks(), 0..6_usize, body, 0..6_usize).prop_map(
        |(filler, indent, blank, name, body, shape)| {
            let body: String = body.into_iter().map(|(filler, line)| filler + &line).collect();
            let config = format!("{filler}{indent}config{blank}S{name}\n{body}");
            match shape {
                0 => format!("{indent}menu{blank}\"m\"\n{config}{indent}endmenu\n"),
                1 => format!("{indent}if{blank}A||B\n{config}{indent}endif{blank}#  A\n"),
                2 => format!("{indent}source{blank}\"other\"\n{config}"),
                3 => format!("{indent}X := a{blank}b\n{config}"),
                _ => config,
            }
        },
    )
}

#[test]
fn a_backslash_that_joins_nothing_does_not_begin_to() {
    let formatted = kconfig::format::format("Kconfig", b"\\ \\ \na= ").unwrap();
    assert_eq!(kconfig::format::format("Kconfig", &formatted).unwrap(), formatted);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn formatting_changes_no_meaning_and_nothing_twice(entries in prop::collection::vec(entry(), 1..6)) {
        let text = entries.concat();
        let Ok(before) = meaning(&text) else { return Ok(()) };
        let formatted = format(&text);
        prop_assert_eq!(meaning(&formatted), Ok(before), "{}----\n{}", text, formatted);
        prop_assert_eq!(format(&formatted), formatted);
    }

    #[test]
    fn any_bytes_are_formatted_or_refused(bytes in prop::collection::vec(prop::sample::select(b" \t\n#\\\"'$()=!&|aconfig\xe9\r".to_vec()), 0..60)) {
        if let Ok(formatted) = kconfig::format::format("Kconfig", &bytes) {
            prop_assert_eq!(kconfig::format::format("Kconfig", &formatted).unwrap(), formatted);
        }
    }
}

#[test]
fn what_follows_a_macro_behind_a_help_text_is_no_help_text() {
    let file = b"config A\n\tbool\n\thelp\n\t  One.\n\t $(two)\n\t  three\n";
    assert!(kconfig::format::format("Kconfig", file).is_err(), "`three` is no statement");
}
