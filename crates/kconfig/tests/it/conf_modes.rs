//! What the modes of `conf` make of a tree; the values are those of the C tools on the same trees.

use crate::conf_support::Machine;

const TREE: &str = "\
config MODULES
	def_bool y
	modules
config A
	bool \"A\"
config T
	tristate \"T\"
config U
	tristate \"U\"
	depends on T
	default T
choice
	prompt \"C\"
	default Y
config X
	bool \"X\"
config Y
	bool \"Y\"
config Z
	bool \"Z\"
	depends on A
endchoice
";

fn values(machine: Machine, mode: &str) -> String {
    let mut machine = machine;
    machine.succeed(mode);
    let values = machine.values().into_iter().filter_map(|line| line.strip_prefix("CONFIG_"));
    values.collect::<Vec<_>>().join(" ")
}

#[test]
fn all_symbols_get_the_same_answer() {
    for machine in [|| Machine::new(TREE), || Machine::new(TREE).old()] {
        assert_eq!(values(machine(), "--allyesconfig"), "MODULES=y A=y T=y U=y Y=y");
        assert_eq!(values(machine(), "--allmodconfig"), "MODULES=y A=y T=m U=m Y=y");
        assert_eq!(values(machine(), "--allnoconfig"), "MODULES=y Y=y");
        assert_eq!(values(machine(), "--alldefconfig"), "MODULES=y Y=y");
    }
}

#[test]
fn seeds_of_allconfig_go_first() {
    let machine =
        || Machine::new(TREE).file("all.config", "CONFIG_X=y\n").file("mine", "CONFIG_T=y\n# CONFIG_A is not set\n");
    assert_eq!(values(machine().set("KCONFIG_ALLCONFIG", "1"), "--allmodconfig"), "MODULES=y A=y T=m U=m X=y");
    assert_eq!(values(machine().set("KCONFIG_ALLCONFIG", "mine"), "--allmodconfig"), "MODULES=y T=y U=m Y=y");
    let named = machine().file("allno.config", "CONFIG_T=m\n").set("KCONFIG_ALLCONFIG", "");
    assert_eq!(values(named, "--allnoconfig"), "MODULES=y T=m Y=y");
    let mut machine = Machine::new(TREE).set("KCONFIG_ALLCONFIG", "1");
    assert_eq!(machine.run(&["--allyesconfig", "Kconfig"]), 1);
    let said = "*** KCONFIG_ALLCONFIG set, but no \"allyes.config\" or \"all.config\" file found\n";
    assert_eq!(machine.stderr(), said);
    let mut machine = Machine::new(TREE).set("KCONFIG_ALLCONFIG", "gone");
    assert_eq!(machine.run(&["--allyesconfig", "Kconfig"]), 1);
    assert_eq!(machine.stderr(), "*** Can't read seed configuration \"gone\"!\n");
}

#[test]
fn answers_are_rewritten() {
    let machine = || Machine::new(TREE).config("CONFIG_A=y\nCONFIG_T=y\nCONFIG_U=m\n");
    assert_eq!(values(machine(), "--yes2modconfig"), "MODULES=y A=y T=m U=m Y=y");
    assert_eq!(values(machine(), "--mod2yesconfig"), "MODULES=y A=y T=y U=y Y=y");
    assert_eq!(values(machine(), "--mod2noconfig"), "MODULES=y A=y T=y Y=y");
}

#[test]
fn a_seed_means_what_it_means_in_the_c_tools() {
    let drawn = |machine: Machine, seed: &str| values(machine.set("KCONFIG_SEED", seed), "--randconfig");
    let new: Vec<String> = (0..8).map(|seed| drawn(Machine::new(TREE), &seed.to_string())).collect();
    insta::assert_snapshot!("random_new", new.join("\n"));
    let old: Vec<String> = (0..8).map(|seed| drawn(Machine::new(TREE).old(), &seed.to_string())).collect();
    insta::assert_snapshot!("random_old", old.join("\n"));
}

#[test]
fn probabilities_are_percents_and_add_up_to_a_hundred_at_most() {
    let seeded = |odds: &str| Machine::new(TREE).set("KCONFIG_SEED", "5").set("KCONFIG_PROBABILITY", odds);
    assert!(values(seeded("100"), "--randconfig").starts_with("MODULES=y A=y T="));
    assert_eq!(values(seeded("0:0"), "--randconfig").split(' ').count(), 2);
    assert!(values(seeded("0:100:0"), "--randconfig").starts_with("MODULES=y T=y U=y"));
    for odds in ["101", "-1", "60:60", "10:50:51"] {
        let mut machine = seeded(odds);
        assert_eq!(machine.run(&["--randconfig", "Kconfig"]), 1, "{odds}");
        assert_eq!(machine.stderr(), "KCONFIG_PROBABILITY: Numerical result out of range\n");
    }
}

#[test]
fn the_last_answer_about_a_choice_counts_most() {
    let olddef = |config: &str| values(Machine::new(TREE).config(config), "--olddefconfig");
    assert_eq!(olddef("CONFIG_Y=y\nCONFIG_X=y\n"), "MODULES=y X=y");
    assert_eq!(olddef("# CONFIG_Y is not set\n"), "MODULES=y X=y", "the default was said to be n");
    assert_eq!(olddef("# CONFIG_Y is not set\n# CONFIG_X is not set\n"), "MODULES=y Y=y", "the n of X came later");
    assert_eq!(olddef("CONFIG_A=y\n# CONFIG_Y is not set\n# CONFIG_X is not set\n"), "MODULES=y A=y Z=y", "Z is free");
    let old = |config: &str| values(Machine::new(TREE).old().config(config), "--olddefconfig");
    assert_eq!(old("CONFIG_Y=y\nCONFIG_X=y\n"), "MODULES=y X=y");
    assert_eq!(old("# CONFIG_Y is not set\n"), "MODULES=y Y=y", "up to 6.10 an n does not count");
}

#[test]
fn a_choice_that_is_not_shown_hides_its_members_only_where_it_has_a_mode() {
    let tree = "choice\n\tprompt \"C\" if n\nconfig X\n\tbool \"X\"\nconfig Y\n\tbool \"Y\"\nendchoice\n";
    assert_eq!(values(Machine::new(tree), "--alldefconfig"), "X=y");
    assert_eq!(values(Machine::new(tree).old(), "--alldefconfig"), "");
}

#[test]
fn transitional_symbols_hand_their_values_over() {
    let tree = "config OLD\n\tint\n\ttransitional\nconfig NEW\n\tint \"New\"\n\tdefault OLD\n\
        config WAS\n\tbool\n\ttransitional\nconfig IS\n\tbool \"Is\"\n\tdefault WAS\n";
    let config = "CONFIG_OLD=12\nCONFIG_WAS=y\n";
    assert_eq!(values(Machine::new(tree).config(config), "--olddefconfig"), "NEW=12 IS=y");
    let mut machine = Machine::new(tree).config(config);
    machine.succeed("--listnewconfig");
    assert_eq!(machine.stdout(), "", "who answered the old question is not asked the new one");
}
