//! What `conf` says about a tree that it refuses or doubts, in the C tools' words.

use crate::conf_support::Machine;

fn refused(machine: Machine) -> String {
    let mut machine = machine;
    assert_eq!(machine.run(&["--alldefconfig", "Kconfig"]), 1);
    assert!(!machine.files.contains_key(".config"));
    machine.stderr()
}

const CYCLES: &str = "\
config SELF
	bool \"Self\" if SELF
config EGG
	bool \"Egg\"
	depends on HEN
config HEN
	bool \"Hen\"
	select MOON
	depends on CHICK
config CHICK
	bool
	default EGG
config MOON
	bool \"Moon\"
	imply TIDE
config TIDE
	bool \"Tide\"
	select MOON
choice
	prompt \"C\"
config P
	bool \"P\"
	depends on OUT
config Q
	bool \"Q\"
endchoice
config OUT
	bool
	default Q
";

#[test]
fn all_recursive_dependencies_are_told_step_by_step() {
    insta::assert_snapshot!("cycles_now", refused(Machine::new(CYCLES)));
    insta::assert_snapshot!("cycles_before_6_11", refused(Machine::new(CYCLES).old()));
}

#[test]
fn files_that_include_each_other() {
    let tree = || {
        Machine::new("source \"one\"\n").file("one", "\nsource \"two\"\n").file("two", "config A\n\nsource \"one\"\n")
    };
    insta::assert_snapshot!(refused(tree().old()), @r"
    Recursive inclusion detected.
    Inclusion path:
      current file : one
      included from: two:3
      included from: one:2
    ");
    assert!(
        refused(tree()).ends_with("  included from: one:2\n  included from: Kconfig:1\n"),
        "since 6.11 up to the top"
    );
    let twice = || Machine::new("source \"one\"\nsource \"one\"\n").file("one", "config A\n\tbool \"A\"\n");
    let said = "Kconfig:2: error: repeated inclusion of one\nKconfig:1: note: location of first inclusion of one\n";
    assert_eq!(refused(twice()), said);
    twice().old().succeed("--alldefconfig");
}

#[test]
fn files_that_are_not_there() {
    assert_eq!(refused(Machine::default()), "can't find file Kconfig\n");
    assert_eq!(refused(Machine::new("\nsource \"gone\"\n")), "Kconfig:2: can't open file \"gone\"\n");
}

#[test]
fn macros_that_refuse_and_warn() {
    let tree = "$(info,hello)\n$(warning-if,y,careful)\n$(error-if,y,no way)\n";
    let mut machine = Machine::new(tree);
    assert_eq!(machine.run(&["--alldefconfig", "Kconfig"]), 1);
    assert_eq!(
        (machine.stdout(), machine.stderr()),
        ("hello\n".to_owned(), "Kconfig:2: careful\nKconfig:3: no way\n".to_owned())
    );
}

#[test]
fn characters_that_mean_nothing_are_ignored() {
    let mut machine = Machine::new("config A;\n\tbool \"A\"\n\tdefault y @~\n%\n");
    machine.succeed("--alldefconfig");
    let ignored = |line, character| format!("Kconfig:{line}:warning: ignoring unsupported character '{character}'\n");
    let expected = [(1, ';'), (3, '@'), (3, '~'), (4, '%')].map(|(line, character)| ignored(line, character));
    assert_eq!(machine.stderr(), expected.concat());
    assert!(machine.read(".config").contains("CONFIG_A=y\n"));
}

#[test]
fn transitional_symbols_have_nothing_but_help() {
    let tree = "config A\n\tbool \"A\"\n\ttransitional\nconfig B\n\tbool\n\ttransitional\n\tdepends on A\n\
        config C\n\tbool\n\ttransitional\n\thelp\n\t  Fine.\n";
    let text = "error: transitional symbols can only have help sections";
    assert_eq!(refused(Machine::new(tree)), format!("Kconfig:2: {text}\nKconfig:4: {text}\n"));
}

#[test]
fn doubtful_entries_are_warned_about() {
    let tree = "config A\n\tbool \" A\"\n\tint\n\tselect N\n\tdefault y\nconfig N\n\tint \"N\"\n\tdefault A\n\trange 1 A\n\
        config S\n\tstring \"S\"\n\tselect A\n\tdefault LOST && LOSS\n\trange 1 2\nconfig LOST\n\thelp\n\t  No type.\n\
        choice\n\tprompt \"C\"\n\tdefault LOST\nconfig X\n\tbool \"X\"\n\tprompt \"Y\"\nendchoice\n";
    let mut machine = Machine::new(tree);
    machine.succeed("--alldefconfig");
    insta::assert_snapshot!(machine.stderr());
}

#[test]
fn symbols_that_are_selected_against_their_dependencies() {
    let tree = "config MODULES\n\tdef_bool y\n\tmodules\nconfig A\n\tbool \"A\"\n\tselect X if !B\nconfig T\n\ttristate \"T\"\n\tselect X\n\
        config B\n\tbool \"B\"\nconfig X\n\ttristate\n\tdepends on B || (MODULES && K != 3)\nconfig K\n\tint\n\tdefault 3\n";
    let machine = || Machine::new(tree).config("CONFIG_A=y\nCONFIG_T=m\n").file("include/config/auto.conf", "");
    let mut now = machine();
    now.succeed("--olddefconfig");
    insta::assert_snapshot!(now.stderr());
    let mut strict = machine().set("KCONFIG_WERROR", "1");
    assert_eq!(strict.run(&["--olddefconfig", "Kconfig"]), 1);
    assert_eq!(strict.stderr(), now.stderr());
    assert_eq!(strict.touched, [""; 0]);
}
