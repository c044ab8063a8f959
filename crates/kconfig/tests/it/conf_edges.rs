//! What the C tool of Linux 6.1 does at the edges: the end of the input, buckets of its table,
//! bytes that are no text, texts without their end, numbers without one. Each expectation was seen
//! there.

use crate::conf_support::Machine;

const BUCKETS: &str = "choice\n\tprompt \"c\"\nconfig A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\nendchoice\n";

fn old(kconfig: impl Into<Vec<u8>>) -> Machine {
    Machine::new(kconfig).old()
}

/// Runs a mode and gives its exit code and what was complained about.
fn complaints(mut machine: Machine, mode: &str) -> (u8, String) {
    let code = machine.run(&[mode, "Kconfig"]);
    (code, machine.stderr())
}

#[test]
fn a_choice_that_is_asked_after_the_end_of_the_input_takes_its_default() {
    let tree = "config A\n\tbool \"A\"\nchoice\n\tprompt \"c\"\nconfig X1\n\tbool \"x1\"\nconfig X2\n\tbool \"x2\"\nendchoice\n";
    for mode in ["--oldconfig", "--oldaskconfig", "--syncconfig"] {
        let mut machine = old(tree);
        machine.succeed(mode);
        assert_eq!(
            machine.values(),
            ["# CONFIG_A is not set", "CONFIG_X1=y", "# CONFIG_X2 is not set"],
            "{mode}: {}",
            machine.stderr()
        );
    }
}

#[test]
fn random_numbers_fall_on_symbols_of_one_bucket_newest_first() {
    // The name hashes to bucket 0, where choices without a name are.
    let symbol = "config SYM24302\n\tbool \"x\"\n";
    let mut behind = old(format!("{BUCKETS}{symbol}")).set("KCONFIG_SEED", "2");
    assert_eq!(behind.succeed("--randconfig").values().pop(), Some("# CONFIG_SYM24302 is not set"));
    let mut before = old(format!("{symbol}{BUCKETS}")).set("KCONFIG_SEED", "2");
    assert_eq!(before.succeed("--randconfig").values().first(), Some(&"CONFIG_SYM24302=y"));
}

#[test]
fn a_choice_without_members_costs_no_random_number_and_has_no_type() {
    let symbols = "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\n";
    for seed in ["1", "2", "3", "4"] {
        let values = |tree: &str| {
            let mut machine = old(tree).set("KCONFIG_SEED", seed);
            machine.succeed("--randconfig").values().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(values(&format!("choice\n\tprompt \"c\"\nendchoice\n{symbols}")), values(symbols));
    }
    let (code, said) = complaints(old("choice\n\tprompt \"c\"\nendchoice\n"), "--alldefconfig");
    assert_eq!((code, said.as_str()), (0, "Kconfig:1:warning: config symbol defined without type\n"));
}

#[test]
fn bytes_that_are_not_utf_8_come_back() {
    let mut machine = old("config E\n\tstring \"e\"\n").config(*b"CONFIG_E=\"\xe9\"\n");
    machine.succeed("--olddefconfig");
    assert!(machine.bytes(".config").ends_with(b"CONFIG_E=\"\xe9\"\n"));

    // The last text is a character of the range in which such bytes are held.
    let mut tree = b"mainmenu \"caf\xe9\"\nconfig E\n\tstring \"e\"\n\tdefault \"\xff\xf4\x8f\xba\xa9\"\n".to_vec();
    let mut machine = old(tree.clone());
    machine.succeed("--alldefconfig");
    assert!(machine.bytes(".config").ends_with(b"# caf\xe9\n#\nCONFIG_E=\"\xff\xf4\x8f\xba\xa9\"\n"));
    assert!(machine.bytes("include/config/auto.conf").ends_with(b"CONFIG_E=\xff\xf4\x8f\xba\xa9\n"));
    tree.extend(b"config A\n\tbool \"a\" \xc3\xa9\n");
    let text = kconfig::text::from_bytes(complaints(old(tree), "--alldefconfig").1.into_bytes());
    assert_eq!(text.lines().count(), 2, "one line a byte: {text}");
}

#[test]
fn a_text_that_is_not_closed_ends_with_its_line() {
    let mut machine = old("config A\n\tbool \"A\nconfig B\n\tbool \"b # \\\n\tdefault y\n");
    machine.succeed("--alldefconfig");
    assert_eq!(machine.values(), ["# CONFIG_A is not set", "CONFIG_B=y"]);
    let line = |number| format!("Kconfig:{number}:warning: multi-line strings not supported\n");
    assert_eq!(machine.stderr(), line(2) + &line(4));
}

#[test]
fn what_c_complains_about_in_the_bytes_of_a_file() {
    let said = |tree: &[u8]| complaints(old(tree), "--alldefconfig").1;
    assert_eq!(said(b"config A\n\tbool \"A\""), "Kconfig:2:warning: no new line at end of file\n");
    assert_eq!(said(b"config A\n\tbool \"A\"\n# x"), "");
    assert_eq!(said(b"config A\n\tbool \"A\"\n\thelp\n\t  x"), "");
    let junk = "Kconfig:1:warning: ignoring unsupported character '\r'\n";
    assert_eq!(said(b"config A\r\n\tbool \"A\"\n# c\r\n"), junk);
    assert_eq!(said(b"\xef\xbb\xbfconfig A\n\tbool \"A\"\n").lines().count(), 3);
    assert_eq!(said(b"config A `\n\tbool \"A\"\n"), "Kconfig:1:warning: ignoring unsupported character '`'\n");
    let help = "config A\n\tbool \"A\"\n\thelp\n\t  x\n\thelp\n\t  y\n\n# c\nconfig B\n\tbool \"b\"\n";
    let more = "defined with more than one help text -- only the last one will be used";
    assert_eq!(said(help.as_bytes()), format!("Kconfig:8: warning: 'A' {more}\n"));
}

#[test]
fn a_choice_in_two_places_is_checked_at_the_first() {
    let tree = "choice N\n\tprompt \"x\"\n\tdefault A\nconfig A\n\tbool \"A\"\nendchoice\n\
                choice N\n\tprompt \"y\"\n\tdefault C\nconfig C\n\tbool \"C\"\nendchoice\n";
    let said = "Kconfig:9:warning: choice default symbol 'C' is not contained in the choice\n";
    assert_eq!(complaints(old(tree), "--alldefconfig"), (0, said.to_owned()));
    let said = complaints(old("choice\nconfig A\n\tbool \"A\"\nendchoice\n"), "--alldefconfig").1;
    assert_eq!(said, "Kconfig:1:warning: choice must have a prompt\n");
}

#[test]
fn words_and_blocks_that_6_1_does_not_have_are_refused() {
    for (tree, word) in [
        ("config M\n\tbool \"m\"\n\toption modules\n", "`option modules` is no word of linux-6.1"),
        ("config M\n\tbool \"m\"\n\t---help---\n", "`---help---` is no word of linux-6.1"),
        ("rsource \"x\"\n", "`rsource` is no word of linux-6.1"),
        ("choice\n\tprompt \"c\"\nmenu \"m\"\nendmenu\nendchoice\n", "`menu` is not allowed in a choice"),
        ("choice\n\tprompt \"c\"\nif A\nmenuconfig B\n\tbool \"b\"\nendif\nendchoice\n", "`menuconfig` is not allowed"),
        ("choice\n\tprompt \"c\"\nchoice\n\tprompt \"d\"\nendchoice\nendchoice\n", "`choice` is not allowed"),
        ("choice\n\tprompt \"c\"\nsource \"x\"\nendchoice\n", "`source` is not allowed"),
    ] {
        let (code, said) = complaints(old(tree), "--alldefconfig");
        assert!(code == 1 && said.contains(word) && said.contains("KCONFIG_DIALECT"), "{tree}{said}");
    }
}

#[test]
fn a_default_from_outside_a_choice_leaves_all_members_off() {
    let choice = "choice\n\tprompt \"c\"\n\tdefault Z\nconfig A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\nendchoice\n";
    let mut machine = old(format!("{choice}config Z\n\tbool \"z\"\n")).file("empty", "");
    assert_eq!(machine.run(&["--defconfig=empty", "Kconfig"]), 0);
    assert_eq!(machine.values(), ["# CONFIG_A is not set", "# CONFIG_B is not set", "# CONFIG_Z is not set"]);
    let other = "choice\n\tprompt \"d\"\nconfig Z\n\tbool \"z\"\nconfig E\n\tbool \"e\"\nendchoice\n";
    let mut machine = old(format!("{choice}{other}"));
    assert_eq!(machine.succeed("--alldefconfig").values()[..2], ["# CONFIG_A is not set", "# CONFIG_B is not set"]);
}

#[test]
fn numbers_and_texts_without_an_end() {
    let number =
        "config A\n\tint \"a\"\n\tdefault 5\n\trange 1 100\nconfig H\n\thex \"h\"\n\tdefault 0x5\n\trange 0x1 0x100\n";
    let mut machine = old(number).config("CONFIG_A=99999999999999999999\nCONFIG_H=0xffffffffffffffffffff\n");
    assert_eq!(machine.succeed("--olddefconfig").values(), ["CONFIG_A=5", "CONFIG_H=0x5"]);
    let mut machine = old("config E\n\tstring \"e\"\n").config("CONFIG_E=\"a\0b\"\n");
    assert_eq!(machine.succeed("--olddefconfig").values(), ["CONFIG_E=\"\""]);
    assert_eq!(machine.stderr(), ".config:1:warning: invalid string found\n");
}

#[test]
fn a_number_in_a_choice_is_not_written() {
    let mut machine = old("choice\n\tprompt \"c\"\nconfig A\n\tint \"a\"\nendchoice\n");
    assert!(machine.succeed("--alldefconfig").values().is_empty());
}
