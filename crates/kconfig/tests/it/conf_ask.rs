//! The questions of `conf`, and what answers do.

use crate::conf_support::Machine;

const TREE: &str = "\
mainmenu \"Pipes\"
config MODULES
	def_bool y
	modules
config PUMP
	tristate \"Pump\"
	help
	  Moves water.
config SPEED
	int \"Speed\"
	depends on PUMP
	range 1 9
	default 5
menu \"Valves\"
comment \"Handle with care\"
config CODE
	hex \"Code\"
config NAME
	string \"Name\"
	default \"tap\"
config FORCED
	bool \"Forced\"
	depends on PUMP
endmenu
config BOSS
	def_bool PUMP = y
	select FORCED
";

#[test]
fn everything_is_asked_and_typed_lines_are_shown() {
    let mut machine = Machine::new(TREE).keys(&["maybe", "y", "12", "4", "beef", "a \"tap\""]);
    machine.succeed("--oldaskconfig");
    insta::assert_snapshot!(machine.stdout());
    insta::assert_snapshot!(machine.read(".config"));
}

#[test]
fn a_question_mark_tells_all_about_the_symbol() {
    let mut machine = Machine::new(TREE).config("CONFIG_PUMP=m\n").keys(&["?", "", "?", "", "", ""]);
    machine.succeed("--oldaskconfig");
    insta::assert_snapshot!(machine.stdout());
}

#[test]
fn oldconfig_asks_what_is_new_and_shows_the_rest() {
    let mut machine = Machine::new(TREE).config("CONFIG_PUMP=y\nCONFIG_CODE=0x1\n").keys(&["", "name"]);
    machine.succeed("--oldconfig");
    insta::assert_snapshot!(machine.stdout());
}

#[test]
fn the_end_of_the_input_takes_the_old_answers() {
    let mut machine = Machine::new(TREE);
    machine.succeed("--oldaskconfig");
    let said = machine.stderr();
    assert!(said.starts_with("\nError in reading or end of file.\n"), "{said}");
    assert_eq!(
        machine.values(),
        ["CONFIG_MODULES=y", "# CONFIG_PUMP is not set", "CONFIG_CODE=0x0", "CONFIG_NAME=\"tap\""]
    );
}

const CHOICE: &str = "\
config A
	bool \"A\"
choice
	prompt \"Colour\"
	help
	  Of the roof.
config RED
	bool \"Red\"
config GREEN
	bool \"Green\"
	depends on A
comment \"darker\"
config BLUE
	bool \"Blue\"
	help
	  As the sea.
endchoice
";

#[test]
fn members_of_a_choice_are_chosen_by_number() {
    let mut machine = Machine::new(CHOICE).keys(&["y", "?", "3?", "x", "9", "3"]);
    machine.succeed("--oldaskconfig");
    insta::assert_snapshot!(machine.stdout());
    assert_eq!(
        machine.values(),
        ["CONFIG_A=y", "# CONFIG_RED is not set", "# CONFIG_GREEN is not set", "CONFIG_BLUE=y"]
    );
}

#[test]
fn a_choice_with_a_new_member_is_asked_again() {
    let mut machine = Machine::new(CHOICE).config("CONFIG_A=y\n# CONFIG_RED is not set\nCONFIG_BLUE=y\n").keys(&["2"]);
    machine.succeed("--oldconfig");
    insta::assert_snapshot!(machine.stdout());
    let mut old =
        Machine::new(CHOICE).old().config("CONFIG_A=y\n# CONFIG_RED is not set\nCONFIG_BLUE=y\n").keys(&["2"]);
    old.succeed("--oldconfig");
    assert_eq!(old.stdout(), machine.stdout());
    assert_eq!(old.values(), machine.values());
}

#[test]
fn old_choices_have_a_mode_that_is_asked_first() {
    let text = "config MODULES\n\tdef_bool y\n\tmodules\n\
        choice\n\tprompt \"T\"\n\toptional\nconfig X\n\ttristate \"X\"\nconfig Y\n\ttristate \"Y\"\nendchoice\n";
    let mut machine = Machine::new(text).old().keys(&["m", "m", "n"]);
    machine.succeed("--oldaskconfig");
    insta::assert_snapshot!(machine.stdout());
    assert_eq!(machine.values(), ["CONFIG_MODULES=y", "CONFIG_X=m", "# CONFIG_Y is not set"]);
}

#[test]
fn new_symbols_are_listed_as_they_would_be_written() {
    let mut machine = Machine::new(TREE).config("CONFIG_PUMP=y\n");
    machine.succeed("--listnewconfig");
    assert_eq!(machine.stdout(), "CONFIG_SPEED=5\nCONFIG_CODE=0x0\nCONFIG_NAME=\"tap\"\n");
    assert_eq!(machine.touched, [""; 0]);
    let mut machine = Machine::new(TREE).config("CONFIG_PUMP=n\nCONFIG_CODE=0\n");
    machine.succeed("--helpnewconfig");
    insta::assert_snapshot!(machine.stdout());
}
