//! What `conf` reads and writes, and what it says about it.

use crate::conf_support::Machine;

const TREE: &str = "\
config MODULES
	def_bool y
	modules
config A
	bool \"A\"
config T
	tristate \"T\"
	depends on A
config N
	int \"N\"
	range 1 9
	default 3
config S
	string \"S\"
";

#[test]
fn every_line_that_is_not_understood_is_complained_about() {
    let config = "CONFIG_A=maybe\nCONFIG_T=m\nCONFIG_T=y\nCONFIG_N=x1\nCONFIG_S=\"open\nCONFIG_GONE=y\nnonsense\n\
        CONFIG_A\n# CONFIG_A is not set, really\n#CONFIG_A is not set\n\nCONFIG_S=bare\n";
    let mut machine = Machine::new(TREE).config(config).set("KCONFIG_WARN_UNKNOWN_SYMBOLS", "1");
    machine.succeed("--olddefconfig");
    insta::assert_snapshot!("complaints_now", machine.stderr());
    let mut machine = Machine::new(TREE).config(config).old().set("KCONFIG_WERROR", "");
    assert_eq!(machine.run(&["--olddefconfig", "Kconfig"]), 1, "with KCONFIG_WERROR complaints are errors");
    insta::assert_snapshot!("complaints_before_6_8", machine.stderr());
    assert_eq!(machine.touched, [""; 0]);
}

#[test]
fn the_old_configuration_is_kept_and_an_equal_one_is_not_touched() {
    let mut machine = Machine::new(TREE).config("CONFIG_A=y\n").file("include/config/auto.conf", "");
    machine.succeed("--olddefconfig");
    assert_eq!(machine.read(".config.old"), "CONFIG_A=y\n");
    assert_eq!(machine.stdout(), "#\n# configuration written to .config\n#\n");
    assert_eq!(
        machine.touched,
        ["write .config.77.tmp", "rename .config .config.old", "rename .config.77.tmp .config"]
    );
    insta::assert_snapshot!(machine.read(".config"));
    machine.touched.clear();
    machine.out.take();
    machine.succeed("--olddefconfig");
    assert_eq!(machine.stdout(), "#\n# No change to .config\n#\n");
    assert_eq!(machine.touched, ["write .config.77.tmp", "remove .config.77.tmp"]);
}

#[test]
fn the_environment_says_which_file_it_is() {
    let mut machine = Machine::new(TREE)
        .file("deep/er/conf", "X_A=y\n")
        .file("deep/", "")
        .file("include/config/auto.conf", "")
        .set("KCONFIG_CONFIG", "deep/er/conf")
        .set("KCONFIG_OVERWRITECONFIG", "1")
        .set("CONFIG_", "X_");
    machine.succeed("--olddefconfig");
    assert_eq!(machine.touched, ["mkdir deep/er", "write deep/er/conf"]);
    assert!(machine.read("deep/er/conf").contains("X_A=y\n# X_T is not set\n"));
}

#[test]
fn a_configuration_that_cannot_be_written_is_an_error() {
    let mut machine = Machine::new(TREE).file("dir/", "").set("KCONFIG_CONFIG", "dir");
    assert_eq!(machine.run(&["--alldefconfig", "Kconfig"]), 1);
    assert_eq!(machine.stderr(), "dir: Is a directory\n\n*** Error during writing of the configuration.\n\n");
    let mut machine = Machine::new(TREE).set("KCONFIG_CONFIG", "");
    assert_eq!(machine.run(&["--alldefconfig", "Kconfig"]), 1);
    assert_eq!(machine.stderr(), "config name is empty\n\n*** Error during writing of the configuration.\n\n");
    let mut machine = Machine::new(TREE);
    machine.locked.push("d".to_owned());
    assert_eq!(machine.run(&["--savedefconfig=d", "Kconfig"]), 1);
    assert_eq!(machine.stderr(), "n*** Error while saving defconfig to: d\n\n");
}

#[test]
fn without_a_configuration_the_first_default_that_exists_counts() {
    let mut machine = Machine::new(TREE)
        .file("/usr/b", "CONFIG_A=y\n")
        .set("srctree", "/usr")
        .set("KCONFIG_DEFCONFIG_LIST", " gone\n b other ");
    machine.succeed("--olddefconfig");
    assert!(machine.stdout().starts_with("#\n# using defaults found in b\n#\n"), "{}", machine.stdout());
    assert_eq!(machine.values()[1], "CONFIG_A=y");
}

#[test]
fn kconfig_files_are_also_looked_for_below_srctree() {
    let mut machine = Machine::default()
        .file("/src/Kconfig", "source \"sub/Kconfig\"\n")
        .file("/src/sub/Kconfig", "config FAR\n\tdef_bool y\n")
        .set("srctree", "/src");
    machine.succeed("--alldefconfig");
    assert_eq!(machine.values(), ["CONFIG_FAR=y"]);
}

#[test]
fn a_minimal_configuration_holds_what_differs_from_the_defaults() {
    let tree = format!(
        "{TREE}choice\n\tprompt \"C\"\nconfig X\n\tbool \"X\"\nconfig Y\n\tbool \"Y\"\nendchoice\n\
         config SEL\n\tbool \"Sel\"\n\tselect HELD\nconfig HELD\n\tbool \"Held\"\n"
    );
    let config = "CONFIG_A=y\nCONFIG_N=3\nCONFIG_S=\"a\\\\b\\\"c\"\nCONFIG_Y=y\nCONFIG_SEL=y\n";
    for machine in [Machine::new(&*tree), Machine::new(&*tree).old()] {
        let mut machine = machine.config(config);
        machine.succeed("--savedefconfig=d");
        assert_eq!(machine.read("d"), "CONFIG_A=y\nCONFIG_S=\"a\\\\b\\\"c\"\nCONFIG_Y=y\nCONFIG_SEL=y\n");
        assert_eq!(machine.read(".config"), config, "the configuration itself stays");
    }
}

#[test]
fn a_value_out_of_its_range_is_kept_or_dropped() {
    let mut machine = Machine::new(TREE).config("CONFIG_N=12\n");
    machine.succeed("--olddefconfig");
    assert!(machine.values().contains(&"CONFIG_N=9"), "since 6.8 the nearest limit counts");
    let mut machine = Machine::new(TREE).old().config("CONFIG_N=12\n");
    machine.succeed("--olddefconfig");
    assert!(machine.values().contains(&"CONFIG_N=3"), "before, the default");
}

#[test]
fn changed_values_are_reported_on_request() {
    for mode in ["--olddefconfig", "--savedefconfig=d"] {
        let mut machine = Machine::new(TREE)
            .config("CONFIG_T=m\nCONFIG_N=12\nCONFIG_S=\"same\"\n")
            .set("KCONFIG_WARN_CHANGED_INPUT", "1");
        machine.succeed(mode);
        assert_eq!(
            machine.stderr(),
            "warning: user-provided values changed by Kconfig:\n  CONFIG_T: m -> n\n  CONFIG_N: 12 -> 9\n"
        );
    }
}

#[test]
fn numbers_without_a_default_start_at_zero_since_6_8() {
    let tree = "config I\n\tint \"I\"\nconfig H\n\thex \"H\"\n";
    let mut machine = Machine::new(tree);
    machine.succeed("--alldefconfig");
    assert_eq!(machine.values(), ["CONFIG_I=0", "CONFIG_H=0x0"]);
    let mut machine = Machine::new(tree).old();
    machine.succeed("--alldefconfig");
    assert_eq!(machine.values(), ["CONFIG_I=", "CONFIG_H="]);
}
