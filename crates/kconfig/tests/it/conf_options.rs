//! The command line of `conf`.

use crate::conf_support::Machine;

const TREE: &str = "config A\n\tbool \"A\"\n";

#[test]
fn help_prints_the_usage_and_fails() {
    for argument in ["-h", "--help"] {
        let mut machine = Machine::new(TREE);
        assert_eq!(machine.run(&[argument, "Kconfig"]), 1);
        assert!(machine.stdout().starts_with("Usage: conf [options] kconfig_file\n\nGeneric options:\n"), "{argument}");
        assert_eq!(machine.touched, [""; 0]);
    }
}

#[test]
fn a_missing_kconfig_file_is_named_before_the_usage() {
    let mut machine = Machine::new(TREE);
    assert_eq!(machine.run(&["--olddefconfig"]), 1);
    assert_eq!(machine.stderr(), "conf: Kconfig file missing\n");
    assert!(machine.stdout().starts_with("Usage: "));
}

#[test]
fn wrong_options_are_complained_about_and_skipped() {
    let mut machine = Machine::new(TREE);
    let words = ["--he", "--all", "--nope=1", "-x", "--olddefconfig=3", "Kconfig", "--alldef", "--defconfig"];
    assert_eq!(machine.run(&words), 0);
    insta::assert_snapshot!(machine.stderr(), @r"
    conf: option '--he' is ambiguous; possibilities: '--help' '--helpnewconfig'
    conf: option '--all' is ambiguous; possibilities: '--allnoconfig' '--allyesconfig' '--allmodconfig' '--alldefconfig'
    conf: unrecognized option '--nope=1'
    conf: invalid option -- 'x'
    conf: option '--olddefconfig' doesn't allow an argument
    conf: option '--defconfig' requires an argument
    ");
    assert_eq!(machine.values(), ["# CONFIG_A is not set"], "--alldef is --alldefconfig, also behind the file");
}

#[test]
fn the_file_of_defconfig_stands_behind_it_or_behind_an_equals_sign() {
    for words in
        [&["--defconfig", "d", "Kconfig"][..], &["Kconfig", "--defc=d"], &["-s", "--defconfig=d", "--", "Kconfig"]]
    {
        let mut machine = Machine::new(TREE).file("d", "CONFIG_A=y\n");
        assert_eq!(machine.run(words), 0);
        assert_eq!(machine.values(), ["CONFIG_A=y"]);
        assert_eq!(machine.stdout().is_empty(), words[0] == "-s", "-s silences what is said about files");
    }
}

#[test]
fn a_defconfig_that_is_not_there_ends_the_run() {
    let mut machine = Machine::new(TREE);
    assert_eq!(machine.run(&["--defconfig=gone", "Kconfig"]), 1);
    assert_eq!(machine.stderr(), "***\n*** Can't find default configuration \"gone\"!\n***\n");
}

#[test]
fn the_seed_is_told_when_its_option_is_read() {
    for (seed, told) in [("0x1f", "0x1F"), ("010", "0x8"), ("-1", "0xFFFFFFFF"), ("7x", "0x15"), ("", "0x15")] {
        let mut machine = Machine::new(TREE).set("KCONFIG_SEED", seed);
        machine.succeed("--randconfig");
        assert!(machine.stdout().starts_with(&format!("KCONFIG_SEED={told}\n")), "{seed}: {}", machine.stdout());
    }
}
