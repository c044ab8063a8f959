//! The files that a build reads.

use crate::conf_support::Machine;

const TREE: &str = "\
config MODULES
	def_bool y
	modules
config BOOL
	bool \"Bool\"
config TRI
	tristate \"Tri\"
config NUMBER
	int \"Number\"
	default 7
config ADDRESS
	hex \"Address\"
	default 1f
config TEXT
	string \"Text\"
	default \"a \\\"b\\\" $(WHO)\"
source \"other\"
";

fn machine() -> Machine {
    Machine::new(TREE).file("other", "config OTHER\n\tdef_bool y\n").set("WHO", "me")
}

const CONFIG: &str =
    "CONFIG_BOOL=y\nCONFIG_TRI=m\nCONFIG_NUMBER=7\nCONFIG_ADDRESS=1f\nCONFIG_TEXT=\"a \\\"b\\\" me\"\n";

#[test]
fn all_of_them_are_written_with_the_configuration() {
    for (version, machine) in [("new", machine()), ("old", machine().old())] {
        let mut machine = machine.config(CONFIG);
        machine.succeed("--syncconfig");
        for path in ["include/config/auto.conf", "include/config/auto.conf.cmd", "include/generated/autoconf.h"] {
            let name = format!("{}_{version}", path.rsplit('/').next().unwrap());
            insta::assert_snapshot!(name, machine.read(path));
        }
        insta::assert_snapshot!(format!("rustc_cfg_{version}"), machine.read("include/generated/rustc_cfg"));
        assert_eq!(machine.stdout(), "", "a build does not want to hear about it");
        let last = machine.touched.last().map(String::as_str);
        assert_eq!(last, Some("rename include/config/auto.conf.tmp include/config/auto.conf"));
    }
}

#[test]
fn a_symbol_is_touched_when_its_value_changes() {
    let mut machine = machine().config(CONFIG);
    machine.succeed("--syncconfig");
    let touched = |machine: &Machine| -> Vec<String> {
        let touched = machine.touched.iter().filter_map(|line| line.strip_prefix("write include/config/"));
        let mut names: Vec<String> = touched.filter(|name| !name.contains('.')).map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(touched(&machine), ["ADDRESS", "BOOL", "MODULES", "NUMBER", "OTHER", "TEXT", "TRI"]);
    machine.touched.clear();
    machine.succeed("--syncconfig");
    assert_eq!(touched(&machine), [""; 0]);
    machine.files.insert(
        ".config".into(),
        "# CONFIG_BOOL is not set\nCONFIG_TRI=y\nCONFIG_TEXT=\"new\"\nCONFIG_NUMBER=7\nCONFIG_ADDRESS=1f\n".into(),
    );
    let auto = machine.files.get_mut("include/config/auto.conf").unwrap();
    auto.extend_from_slice(b"CONFIG_GONE=y\n");
    machine.succeed("--syncconfig");
    assert_eq!(touched(&machine), ["BOOL", "GONE", "TEXT", "TRI"]);
}

#[test]
fn other_modes_only_write_what_is_missing() {
    let mut machine = machine().config(CONFIG).file("include/config/auto.conf", "");
    machine.succeed("--olddefconfig");
    assert!(!machine.files.contains_key("include/generated/autoconf.h"));
    machine.files.remove("include/config/auto.conf");
    machine.succeed("--olddefconfig");
    assert!(machine.files.contains_key("include/generated/autoconf.h"));
}

#[test]
fn a_silent_update_refuses_to_change_the_configuration() {
    let mut machine = machine().config(CONFIG).set("KCONFIG_NOSILENTUPDATE", "1");
    assert_eq!(machine.run(&["--syncconfig", "Kconfig"]), 1);
    assert_eq!(machine.stderr(), "\n*** The configuration requires explicit update.\n\n");
    machine.variables.remove("KCONFIG_NOSILENTUPDATE");
    machine.succeed("--olddefconfig");
    machine.variables.insert("KCONFIG_NOSILENTUPDATE".into(), "1".into());
    machine.touched.clear();
    machine.succeed("--syncconfig");
    assert!(!machine.touched.iter().any(|line| line.contains(".config.")), "{:?}", machine.touched);
}

#[test]
fn the_environment_names_the_files() {
    let mut machine = machine()
        .config(CONFIG)
        .set("KCONFIG_AUTOCONFIG", "a")
        .set("KCONFIG_AUTOHEADER", "h")
        .set("KCONFIG_RUSTCCFG", "r");
    machine.succeed("--syncconfig");
    assert!(machine.files.contains_key("a.cmd") && machine.files.contains_key("h") && machine.files.contains_key("r"));
    assert!(machine.files.contains_key("TRI"), "files to touch are beside auto.conf");
}
