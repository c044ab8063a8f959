//! `turnup kconfig` as users and scripts call it: the real binary, in a directory of its own, with
//! trees that are not ours.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;

use crate::cli_support::{TestEnv, finish};

const TREE: &str = "mainmenu \"Test\"\n\nconfig MODULES\n\tbool \"Modules\"\n\tmodules\n\nconfig NET\n\tbool \"Net\"\n\nsource \"drivers/Kconfig\"\n";
const DRIVERS: &str = "config DRIVER\n\ttristate \"Driver\"\n\tdepends on NET\n\tdefault y\n\nconfig CARD\n\tbool \"Card $(FLAVOUR)\"\n\tselect BUS\n\nconfig BUS\n\tbool\n\tdepends on NET\n\nconfig SPEED\n\tint \"Speed\"\n\trange 1 10\n\tdefault 5\n";

/// A working directory with a tree.
fn with_tree() -> TestEnv {
    let test_env = TestEnv::new("kconfig");
    test_env.write("Kconfig", TREE);
    test_env.write("drivers/Kconfig", DRIVERS);
    test_env
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn check_draws_pictures_and_counts() {
    let test_env = with_tree();
    let outcome = test_env.ok(&["check", "--env", "FLAVOUR=x"]);
    insta::assert_snapshot!(outcome.out, @r"
    warning[K103]: CARD selects BUS without what it depends on: NET can be off
      --> drivers/Kconfig:8:9
       |
     8 |     select BUS
       |            ^^^
    ...
    12 |     depends on NET
       |                --- BUS depends on this
       |
       = help: let CARD depend on NET, or `imply BUS`
    ");
    let rules = "the rules of linux-7.2: nothing says whose tree this is";
    assert_eq!(outcome.err, format!("Kconfig: 1 warning, by {rules}\n"));
    assert_eq!(
        test_env.ends(1, &["check", "--env", "FLAVOUR=x", "--deny", "K103"]).err,
        "error: Kconfig has 1 error and 0 warnings\n"
    );
    assert_eq!(
        test_env
            .ok(&[
                "check",
                "--deny",
                "all",
                "--env",
                "FLAVOUR=x",
                "--allow",
                "K103",
                "--allow",
                "K123",
                "--allow",
                "K124"
            ])
            .out,
        ""
    );
    let found = lines(&test_env.ok(&["check", "--output", "json", "--warn", "K124"]).out);
    assert_eq!(found[0]["schema"], "turnup.kconfig.finding/1");
    assert!(found.iter().any(|finding| finding["id"] == "K124"), "allowed unless it is asked for");
    let select = found.iter().find(|finding| finding["id"] == "K103").unwrap();
    assert_eq!(select["labels"][0]["file"], "drivers/Kconfig");
    assert_eq!((&select["labels"][0]["line"], &select["labels"][1]["line"]), (&8.into(), &12.into()));
}

#[test]
fn check_tells_all_errors_of_a_tree_that_does_not_load() {
    let test_env = with_tree();
    test_env.write("drivers/Kconfig", "config A\n\tbol \"A\"\nendmenu\n");
    let outcome = test_env.run(&["check"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("error[K001]") && outcome.out.contains("error[K004]"), "{}", outcome.out);
    assert!(outcome.err.starts_with("error: Kconfig is refused: 2 errors\n"), "{}", outcome.err);
    assert!(outcome.err.contains("linux-7.2") && outcome.err.contains("--dialect"), "{}", outcome.err);
}

#[test]
fn check_knows_names_of_files_that_the_tree_does_not_read() {
    let test_env = with_tree();
    test_env.write("Kconfig", "source \"arch/$(ARCH)/Kconfig\"\nconfig D\n\tbool \"D\"\n\tdepends on SPARC\n");
    test_env.write("arch/x86/Kconfig", "config X86\n\tdef_bool y\n");
    test_env.write("arch/sparc/Kconfig", "config SPARC\n\tdef_bool y\n");
    let rules = ", by the rules of linux-7.2: nothing says whose tree this is\n";
    let found = |number| format!("Kconfig: {number} warnings{rules}");
    assert_eq!(test_env.ok(&["check", "--env", "ARCH=x86"]).err, found(0));
    assert_eq!(test_env.ok(&["check", "--env", "ARCH=x86", "--closed"]).err, found(2));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command =
        test_env.command(&["check", "--env", "ARCH=x86", "--srctree", test_env.path("").to_str().unwrap()]);
    let outcome = finish(command.current_dir(elsewhere.path()));
    assert_eq!((outcome.code, &*outcome.err), (0, &*found(0)), "found below --srctree");
}

#[test]
fn conf_reads_all_words_behind_its_name() {
    let test_env = with_tree();
    // An option of turnup's elsewhere.
    let outcome = test_env.ends(1, &["conf", "--output", "json", "Kconfig"]);
    assert!(outcome.err.starts_with("conf: unrecognized option '--output'\n"), "{}", outcome.err);
    let outcome = test_env.ok(&["conf", "-s", "--alldefconfig", "Kconfig"]);
    assert_eq!(outcome.out, "");
    assert!(test_env.read(".config").contains("# CONFIG_NET is not set\n"));
}

#[test]
fn check_lists_its_lints() {
    let test_env = with_tree();
    let list = test_env.ok(&["check", "--list", "--deny", "K105"]).out;
    assert!(list.contains("K020  error  symbols depend on each other in a circle\n"), "{list}");
    assert!(list.contains("K105  deny   two entries of one menu with the same prompt\n"), "{list}");
    assert!(list.lines().all(|line| line.len() <= 100), "one line each: {list}");
}

#[test]
fn commands_of_a_tree_run_for_every_tool_unless_they_may_not() {
    let test_env = with_tree();
    let tree = "config A\n\tstring \"A\"\n\tdefault \"$(shell,cat $(srctree)/text; echo $FLAVOUR; ls $srctree/text)\"\n\thelp\n\t  A.\n";
    test_env.write("place/Kconfig", tree);
    test_env.write("place/text", "mint\n");
    test_env.write("base", "");
    let tools = [
        &["check", "Kconfig"][..],
        &["explain", "A"],
        &["json"],
        &["merge", "base"],
        &["diff", "--tree", "Kconfig", "base", ".config"],
    ];
    fs_err::remove_file(test_env.path("Kconfig")).unwrap();
    for tool in tools {
        let args = [tool, &["--srctree", "place", "--env", "FLAVOUR=fresh"]].concat();
        let outcome = test_env.ok(&args);
        if tool[0] != "check" {
            let found = outcome.out + &fs_err::read_to_string(test_env.path(".config")).unwrap_or_default();
            assert!(found.contains("mint fresh place/text"), "{tool:?}: {found}");
        }
        let refused = test_env.run(&[&args[..], &["--no-shell"]].concat());
        assert_eq!(refused.code, 1, "{tool:?}: {}", refused.err);
        assert!((refused.out + &refused.err).contains("commands are not allowed here"), "{tool:?}");
    }
}

#[test]
fn fmt_writes_checks_and_refuses() {
    let test_env = with_tree();
    test_env.write("messy", "config A\n  bool   \"A\"\n");
    test_env.write("broken", "config A\n  bol \"A\"\n");
    let check = test_env.run(&["fmt", "--check", "messy", "Kconfig"]);
    assert_eq!((check.code, &*check.out), (1, "messy\n"));
    assert_eq!(check.err, "error: 1 file would change\nnext: turnup kconfig fmt messy Kconfig\n");
    assert_eq!(test_env.read("messy"), "config A\n  bool   \"A\"\n", "--check writes nothing");
    let before = fs_err::metadata(test_env.path("Kconfig")).unwrap().modified().unwrap();
    let outcome = test_env.run(&["fmt", "broken", "messy", "Kconfig"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.err.contains("did you mean `bool`?") && outcome.err.contains("formatted messy\n"),
        "{}",
        outcome.err
    );
    assert_eq!(
        (test_env.read("messy"), test_env.read("broken")),
        ("config A\n\tbool \"A\"\n".into(), "config A\n  bol \"A\"\n".into())
    );
    assert_eq!(fs_err::metadata(test_env.path("Kconfig")).unwrap().modified().unwrap(), before, "nothing to change");
    assert_eq!(test_env.ok(&["fmt", "--check", "messy", "Kconfig"]).out, "");
    let names: Vec<_> = fs_err::read_dir(test_env.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "no rubbish: {names:?}");
    let mut command = test_env.command(&["fmt", "-"]);
    assert_eq!(finish(command.write_stdin("config  A\n bool\n")).out, "config A\n\tbool\n");
}

#[test]
fn merge_says_what_was_overridden_and_what_was_lost() {
    let test_env = with_tree();
    test_env.write("base", "CONFIG_NET=y\nCONFIG_DRIVER=y\nCONFIG_SPEED=7\n");
    test_env.write("fragment", "# CONFIG_NET is not set\nCONFIG_SPEED=70\nCONFIG_DRIVR=y\n");
    let outcome = test_env.ok(&["merge", "base", "fragment"]);
    insta::assert_snapshot!(outcome.err, @r"
    fragment:1: # CONFIG_NET is not set overrides CONFIG_NET=y of base:1
    fragment:2: CONFIG_SPEED=70 overrides CONFIG_SPEED=7 of base:3
    base:2: CONFIG_DRIVER=y took no effect: it has no value
        needs NET (NET is n)
    fragment:2: CONFIG_SPEED=70 took no effect: it is 5
        70 is out of range for SPEED: 1 to 10
    fragment:3: CONFIG_DRIVR=y took no effect: it has no value
        no entry of the tree defines it; did you mean DRIVER?
    wrote .config
    ");
    assert!(
        test_env.read(".config").contains("# CONFIG_NET is not set\n")
            && test_env.read(".config").contains("CONFIG_SPEED=5\n")
    );
    assert!(
        test_env.ends(1, &["merge", "-s", "base", "fragment"]).err.contains("2 requests were overridden and 3 lost")
    );
    let found = lines(&test_env.ok(&["merge", "--output", "json", "base", "fragment"]).out);
    assert_eq!((&found[2]["kind"], &found[2]["requested"]["line"]), (&"lost".into(), &2.into()));
    test_env.write("same", "CONFIG_NET=y\nCONFIG_DRIVER=m\n");
    fs_err::create_dir(test_env.path("out")).unwrap();
    let outcome = test_env.ok(&["merge", "-m", "-r", "-y", "-O", "out", "base", "same"]);
    assert_eq!(
        outcome.err,
        "same:1: CONFIG_NET=y is in base:1 already\nsame:2: CONFIG_DRIVER=m does not count: CONFIG_DRIVER=y of base:2 is kept\n\
         wrote out/.config, not completed\n"
    );
    assert_eq!(test_env.read("out/.config"), "CONFIG_NET=y\nCONFIG_DRIVER=y\nCONFIG_SPEED=7\n");
    let mut command = test_env.command(&["merge", "-n", "base"]);
    command.env("KCONFIG_CONFIG", "elsewhere").assert().success();
    assert!(test_env.read("elsewhere").contains("# CONFIG_CARD is not set\n"));
}

#[test]
fn diff_shows_what_differs_and_why() {
    let test_env = with_tree();
    test_env.write("a", "CONFIG_NET=y\nCONFIG_DRIVER=y\nCONFIG_SPEED=5\n");
    test_env.write("b", "# CONFIG_NET is not set\nCONFIG_SPEED=6\n");
    assert_eq!(test_env.ok(&["diff", "a", "b"]).out, "-DRIVER y\n NET y -> n\n SPEED 5 -> 6\n");
    assert_eq!(test_env.ok(&["diff", "-m", "a", "b"]).out, "# CONFIG_NET is not set\nCONFIG_SPEED=6\n");
    assert_eq!(
        test_env.ok(&["diff", "--tree", "Kconfig", "a", "b"]).out,
        "-DRIVER y\n    needs NET (NET is n)\n NET y -> n\n    set\n SPEED 5 -> 6\n    set\n"
    );
    let found = lines(&test_env.ok(&["diff", "--output", "json", "a", "b"]).out);
    assert_eq!((&found[0]["symbol"], &found[0]["after"]), (&"DRIVER".into(), &Value::Null));
    test_env.write(".config.old", "CONFIG_NET=y\n");
    test_env.write(".config", "CONFIG_NET=y\nCONFIG_CARD=y\n");
    assert_eq!(test_env.ok(&["diff"]).out, "+CARD y\n");
}

#[test]
fn explain_and_json_use_the_configuration_that_is_there() {
    let test_env = with_tree();
    let outcome = test_env.ok(&["explain", "CONFIG_DRIVER"]);
    assert!(outcome.out.starts_with("DRIVER (tristate) = n\n"), "{}", outcome.out);
    assert!(outcome.err.starts_with("with default values"), "{}", outcome.err);
    let found = &lines(&test_env.ok(&["explain", "--output", "json", "DRIVER"]).out)[0];
    assert_eq!(found["plans"][0]["steps"][0]["symbol"], "NET");
    test_env.write(".config", "CONFIG_NET=y\n");
    test_env.write("other", "CONFIG_NET=y\nCONFIG_DRIVER=m\nCONFIG_MODULES=y\n");
    assert!(test_env.ok(&["explain", "DRIVER"]).out.starts_with("DRIVER (tristate) = y\n"));
    assert!(test_env.ok(&["explain", "DRIVER", "--config", "other"]).out.starts_with("DRIVER (tristate) = m\n"));
    assert!(test_env.ok(&["explain", "CARD", "--env", "FLAVOUR=x y"]).out.contains("prompt `Card x y`"));
    let value = |args: &[&str]| -> Value {
        let tree: Value = serde_json::from_str(&test_env.ok(args).out).unwrap();
        assert_eq!(tree["schema"], "kconfig.tree/1");
        tree["symbols"].as_array().unwrap().iter().find(|symbol| symbol["name"] == "DRIVER").unwrap()["value"].clone()
    };
    assert_eq!(value(&["json"]), "y");
    assert_eq!(value(&["json", "--config", "other"]), "m");
    let mut command = test_env.command(&["json"]);
    let outcome = finish(command.env("TURNUP_CONFIG", "cluster.json").env("KCONFIG_CONFIG", "nowhere"));
    assert_eq!(outcome.code, 0, "that variable names a cluster's configuration: {}", outcome.err);
}

#[test]
fn mistakes_of_the_caller_are_told_with_a_way_out() {
    let test_env = with_tree();
    let mut said = String::new();
    for (code, args) in [
        (2, &["check", "--deny", "K999"][..]),
        (2, &["check", "--allow", "K020"]),
        (3, &["check", "nothing/Kconfig"]),
        (2, &["check", "--env", "ARCH"]),
        (2, &["check", "--dialect", "new"]),
        (2, &["explain", "DRIVR"]),
        (3, &["explain", "DRIVER", "--config", "nothing"]),
        (3, &["diff"]),
        (2, &["diff", "one"]),
        (3, &["merge", "nothing"]),
        (3, &["merge", "-O", "nothing", "Kconfig"]),
        (2, &["merge", "-m", "-n", "Kconfig"]),
        (3, &["fmt", "nothing"]),
        (2, &["fmt"]),
        (3, &["json", "--config", "drivers"]),
    ] {
        said.extend(["$ ", &args.join(" "), "\n", &test_env.ends(code, args).err, "\n"]);
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_tree_tells_whose_rules_count() {
    let test_env = with_tree();
    test_env.write("uboot/Kconfig", "mainmenu \"U-Boot 2026.10 Configuration\"\nconfig A\n\tbool A\n");
    let told = test_env.ok(&["dialect", "uboot/Kconfig"]).out;
    assert!(
        told.starts_with("uboot/Kconfig: the rules of u-boot, based on those of Linux 4.20: the mainmenu"),
        "{told}"
    );
    assert!(told.contains("VerbatimStrings"), "{told}");
    let json = lines(&test_env.ok(&["dialect", "--dialect", "linux-6.1", "--output", "json"]).out);
    assert_eq!((&json[0]["dialect"], &json[0]["base"]), (&"linux-6.1".into(), &"6.1".into()));
    let table = test_env.ok(&["dialect", "--list"]).out;
    assert!(table.contains("barebox since 2021.6: based on Linux 5.13") && table.contains("u-boot has it"), "{table}");
    assert_eq!(test_env.ends(3, &["dialect", "none/Kconfig"]).code, 3);
}
