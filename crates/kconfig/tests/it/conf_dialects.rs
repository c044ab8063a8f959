//! The rules in which forks differ from Linux, each on a small tree. What is expected was seen in
//! the fork's own `conf`.

use crate::conf_support::Machine;

fn values(machine: &mut Machine, mode: &str) -> Vec<String> {
    machine.succeed(mode).values().into_iter().map(str::to_owned).collect()
}

fn said_and_code(mut machine: Machine, mode: &str) -> (u8, String) {
    let code = machine.run(&[mode, "Kconfig"]);
    (code, machine.stderr())
}

#[test]
fn a_tree_is_read_by_the_rules_that_it_names() {
    let menu = "menu \"M\"\nconfig A\n\tbool \"a\"\nendmenu\n";
    let has_end = |title: &str, version: &str| {
        let mut machine = Machine::new(format!("mainmenu \"{title}\"\n{menu}")).set("KERNELVERSION", version);
        machine.succeed("--alldefconfig").read(".config").contains("# end of M")
    };
    assert!(has_end("Linux/x86 Kernel Configuration", "6.1.0"));
    assert!(!has_end("Linux/x86 Kernel Configuration", "4.19.0"));
    assert!(!has_end("U-Boot 2026.10 Configuration", "2026.10"), "the version of U-Boot is not that of Linux");
    assert!(has_end("Barebox/arm Configuration", "2021.07.0"));
    assert!(!has_end("Barebox/arm Configuration", "2018.12.0"));
    assert!(has_end("Mine", "6.1.0"));
    let mut named = Machine::new(format!("mainmenu \"Mine\"\n{menu}")).rules("u-boot");
    assert!(!named.succeed("--alldefconfig").read(".config").contains("# end of M"), "the caller decides");
}

#[test]
fn the_makefile_of_a_linux_tree_has_its_version() {
    let tree = "mainmenu \"Linux/x86 Kernel Configuration\"\nconfig A\n\tint \"a\"\n";
    let value = |makefile: &str| values(&mut Machine::new(tree).file("Makefile", makefile), "--alldefconfig");
    assert_eq!(value("VERSION = 6\nPATCHLEVEL = 1\n"), ["CONFIG_A="]);
    assert_eq!(value("VERSION = 6\nPATCHLEVEL = 12\n"), ["CONFIG_A=0"]);
}

#[test]
fn u_boot_writes_texts_as_they_are() {
    let tree = "config S\n\tstring \"s\"\n\tdefault \"a\\\\nb \\\"c\\\"\"\n";
    let mut machine = Machine::new(tree).rules("u-boot");
    assert_eq!(values(&mut machine, "--alldefconfig"), [r#"CONFIG_S="a\nb "c"""#]);
    assert_eq!(values(&mut machine, "--olddefconfig"), [r#"CONFIG_S="a\nb "c"""#], "and reads them so");
    assert!(machine.files.contains_key(".config.old"), "an equal configuration is written again");
    let (_, said) = said_and_code(Machine::new(tree).rules("u-boot").config("CONFIG_S=\"a\n"), "--olddefconfig");
    assert_eq!(said, ".config:1:warning: invalid string found\n");
}

#[test]
fn u_boot_has_the_words_of_4_20() {
    let tree = "config MODULES\n\tbool Modules\n\toption modules\n\tdefault y\nsource dir/more\nsource dir/more\n\
                config H\n\tbool \"h\"\n\t---help---\n\t  text\n";
    let more = "config T\n\ttristate \"t\"\n\tdefault m\n";
    let mut machine = Machine::new(tree).file("dir/more", more).rules("u-boot");
    assert_eq!(values(&mut machine, "--alldefconfig"), ["CONFIG_MODULES=y", "CONFIG_T=m", "# CONFIG_H is not set"]);
}

#[test]
fn an_old_imply_does_not_look_at_dependencies_and_promotes() {
    let tree = "config MODULES\n\tdef_bool y\n\tOPTION\nconfig OFF\n\tbool \"off\"\nconfig A\n\tdef_bool y\n\timply B\n\timply T\n\
                config B\n\tbool\n\tdepends on OFF\nconfig T\n\ttristate \"t\"\n";
    let old = tree.replace("OPTION", "option modules");
    let mut machine = Machine::new(old).rules("u-boot").config("CONFIG_T=m\n");
    let expected = ["CONFIG_MODULES=y", "# CONFIG_OFF is not set", "CONFIG_A=y", "CONFIG_T=y"];
    assert_eq!(values(&mut machine, "--olddefconfig"), expected);
    let mut machine = Machine::new(tree.replace("OPTION", "modules")).rules("6.1").config("CONFIG_T=m\n");
    let expected = ["CONFIG_MODULES=y", "# CONFIG_OFF is not set", "CONFIG_A=y", "# CONFIG_B is not set", "CONFIG_T=m"];
    assert_eq!(values(&mut machine, "--olddefconfig"), expected);
}

#[test]
fn the_seed_is_said_where_the_dialect_says_it() {
    let random = |rules: &str| {
        let mut machine = Machine::new("config A\n\tbool \"a\"\n").rules(rules).set("KCONFIG_SEED", "7");
        machine.succeed("--randconfig");
        (machine.stdout().contains("KCONFIG_SEED=0x7"), machine.stderr().contains("KCONFIG_SEED=0x7"))
    };
    assert_eq!(random("u-boot"), (false, true));
    assert_eq!(random("barebox"), (true, false));
}

#[test]
fn buildroot_puts_names_into_paths_and_titles() {
    let tree = "mainmenu \"Buildroot $BR2_VERSION Configuration\"\nconfig BR2_VERSION\n\tstring\n\toption env=\"BR2_VERSION_FULL\"\n\
                config BR2_BASE_DIR\n\tstring\n\toption env=\"BASE_DIR\"\nsource \"$BR2_BASE_DIR/more\"\n\
                config S\n\tstring \"s\"\n\tdefault \"$(shell,true)\"\n";
    let mut machine = Machine::new(tree)
        .file("out/more", "config A\n\tbool \"a\"\n")
        .set("BASE_DIR", "out")
        .set("BR2_VERSION_FULL", "2026.08")
        .set("CONFIG_", "");
    machine.succeed("--alldefconfig");
    let config = machine.read(".config");
    assert!(config.contains("# Buildroot 2026.08 Configuration\n"), "{config}");
    assert!(config.ends_with("# A is not set\nS=\"$(shell,true)\"\n"), "there are no macros: {config}");
}

#[test]
fn busybox_writes_every_symbol_under_a_head_of_its_own() {
    let tree = "source libbb/Config.in\nconfig A\n\tboolean \"a\"\nconfig N\n\tint \"n\"\n\tdepends on A\n\
                config S\n\tstring \"s\"\n\tdepends on A\n";
    let mut machine = Machine::new(tree).file("libbb/Config.in", "config LIB\n\tbool \"lib\"\n\tdepends on A\n");
    machine = machine.set("KERNELVERSION", "1.37.0").set("KCONFIG_NOTIMESTAMP", "1");
    insta::assert_snapshot!(machine.succeed("--alldefconfig").read(".config"), @r#"
    #
    # Automatically generated make config: don't edit
    # Busybox version: 1.37.0
    #
    # CONFIG_LIB is not set
    # CONFIG_A is not set
    CONFIG_N=0
    CONFIG_S=""
    "#);
}

#[test]
fn barebox_moves_numbers_into_their_range_as_numbers() {
    let tree = "config A\n\thex \"a\"\n\trange 0x0010 0X20\n\tdefault 0x40\nmenu \"Empty\"\nendmenu\n";
    let run = |rules: &str| {
        let mut machine = Machine::new(tree).rules(rules);
        (values(&mut machine, "--alldefconfig"), machine.read(".config").contains("# end of Empty"))
    };
    assert_eq!(run("barebox-2021.07"), (vec!["CONFIG_A=0x20".to_owned()], false));
    assert_eq!(run("6.1"), (vec!["CONFIG_A=0X20".to_owned()], true));
}

#[test]
fn openwrt_writes_defaults_lets_selects_give_way_and_takes_patterns() {
    let tree = "mainmenu \"OpenWrt Configuration\"\nsource \"none/*.in\"\nsource \"dir/one\"\nconfig HIDDEN\n\tbool\n\tdefault n\n\
                config OFF\n\tbool \"off\"\nconfig A\n\tdef_bool y\n\tselect B\nconfig B\n\tbool \"b\"\n\tdepends on OFF\n";
    let mut machine =
        Machine::new(tree).file("dir/one", "source \"two\"\n").file("dir/two", "config TWO\n\tbool \"two\"\n");
    let expected = ["# CONFIG_TWO is not set", "# CONFIG_HIDDEN is not set", "# CONFIG_OFF is not set", "CONFIG_A=y"];
    assert_eq!(values(&mut machine, "--alldefconfig"), expected);
    assert_eq!(machine.stderr(), "", "a select that is not obeyed is not complained about");
}

#[test]
fn openwrt_uses_a_tree_with_a_cycle() {
    let tree =
        "config A\n\tbool \"a\"\n\tdepends on B\nconfig B\n\tbool \"b\"\n\tdepends on A\nconfig C\n\tdef_bool y\n";
    assert_eq!(values(&mut Machine::new(tree).rules("openwrt"), "--alldefconfig"), ["CONFIG_C=y"]);
    assert_eq!(said_and_code(Machine::new(tree).rules("6.1"), "--alldefconfig").0, 1);
}

#[test]
fn openwrt_starts_all_modes_from_the_configuration() {
    let tree = "config A\n\tbool \"a\"\nconfig B\n\tbool \"b\"\n";
    let all = |rules: &str| values(&mut Machine::new(tree).rules(rules).config("CONFIG_A=y\n"), "--allnoconfig");
    assert_eq!(all("openwrt"), ["CONFIG_A=y", "# CONFIG_B is not set"]);
    assert_eq!(all("5.14"), ["# CONFIG_A is not set", "# CONFIG_B is not set"]);
}

#[test]
fn coreboot_does_without_files_and_notices_overrides() {
    let tree = "mainmenu \"coreboot configuration\"\nsource \"site-local/Kconfig\"\nsource \"board/*/Kconfig\"\nchoice\n\tprompt \"c\"\n\
                source \"member\"\nendchoice\n";
    let tree = || {
        Machine::new(tree)
            .file("board/x/Kconfig", "config X\n\tbool \"x\"\n")
            .file("member", "config M\n\tbool \"m\"\n")
    };
    assert_eq!(values(&mut tree(), "--alldefconfig"), ["# CONFIG_X is not set", "CONFIG_M=y"]);
    let (_, said) = said_and_code(tree().config("CONFIG_X=y\n# CONFIG_X is not set\n"), "--olddefconfig");
    assert_eq!(said, ".config:2:notice: override: reassigning to symbol X\n");
}

#[test]
fn kconfiglib_has_words_that_c_has_not() {
    let tree =
        "mainmenu \"Zephyr Kernel Configuration\"\nsource \"$WHERE/more\"\nosource \"none\"\nconfig N\n\tdef_int 3\n";
    let mut machine = Machine::new(tree)
        .file("arch/more", "rsource \"beside\"\n")
        .file("arch/beside", "config A\r\n\tbool \"a\"\r\n\tdefault y")
        .set("WHERE", "arch");
    assert_eq!(values(&mut machine, "--alldefconfig"), ["CONFIG_A=y", "CONFIG_N=3"]);
    assert_eq!(machine.stderr(), "");
}

#[test]
fn esp_idf_explains_its_menus() {
    let tree = "mainmenu \"Espressif IoT Development Framework Configuration\"\norsource \"$IDF_PATH/none\"\nmenu \"M\"\n\thelp\n\
                \t  About it.\nconfig A\n\tbool \"a\"\nendmenu\n";
    assert_eq!(values(&mut Machine::new(tree), "--alldefconfig"), ["# CONFIG_A is not set"]);
    let (code, said) =
        said_and_code(Machine::new("menu \"M\"\n\thelp\n\t  x\nendmenu\n").rules("6.1"), "--alldefconfig");
    assert!(code == 1 && said.contains("`help` is not allowed in a menu"), "{said}");
}

#[test]
fn kconfiglib_and_esp_idf_read_variables_in_texts() {
    let value = |rules: &str, text: &str| {
        let tree = format!(
            "X = $(INDIRECT)\nconfig NAMED\n\tstring\n\toption env=\"EV\"\nconfig S\n\tstring \"s\"\n\tdefault {text}\n"
        );
        let mut machine = Machine::new(tree).rules(rules).set("EV", "ev").set("INDIRECT", "$EV").set("EMPTY", "");
        machine = machine.set("a-b", "braces").set("1", "one").set("QUOTE", "a\"b");
        values(&mut machine, "--alldefconfig").pop().unwrap().replacen("CONFIG_S=", "", 1)
    };
    for (text, expected) in [
        (r#""$EV-${EV}$GONE${GONE}""#, r#""ev-ev$GONE${GONE}""#),
        (r#""\$EV \\$EV \${EV} $\EV""#, r#""ev \\ev ev ev""#),
        (r#""$(INDIRECT) $X $(X)""#, r#""ev $X ev""#),
        (r#""$INDIRECT ${INDIRECT}""#, r#""$EV $EV""#),
        (r#"'$EV "q" ${EV}'"#, r#""ev \"q\" ev""#),
        (r#""$$EV $1 ${a-b} ${} ${EV $ $""#, r#""$ev one braces ${} ${EV $ $""#),
        (r#""$EVé é$EV""#, r#""evé éev""#),
        (r#""$EMPTY|${EMPTY}|""#, r#""||""#),
        (r#""$NAMED $QUOTE""#, r#""$NAMED a\"b""#),
    ] {
        for rules in ["kconfiglib", "esp-idf"] {
            assert_eq!(value(rules, text), expected, "{text} by {rules}");
        }
    }
    let mut machine =
        Machine::new("config S\n\tstring \"s\"\n\tdefault \"$EV ${EV}\"\n").rules("linux-6.1").set("EV", "ev");
    assert_eq!(values(&mut machine, "--alldefconfig"), ["CONFIG_S=\"$EV ${EV}\""]);
}

#[test]
fn kconfiglib_and_esp_idf_take_a_variable_for_a_function() {
    let tree = "config A\n\tdef_bool $(dt_compat_enabled,st,stm32)\nconfig S\n\tstring\n\tdefault \"<$(gone,1)>\"\n";
    let machine = |rules: &str| Machine::new(tree).rules(rules).set("dt_compat_enabled", "y");
    for rules in ["kconfiglib", "esp-idf"] {
        assert_eq!(values(&mut machine(rules), "--alldefconfig"), ["CONFIG_A=y", "CONFIG_S=\"<>\""], "{rules}");
    }
    let (code, said) = said_and_code(machine("linux-6.1"), "--alldefconfig");
    assert!(code == 1 && said.contains("expected an expression"), "{said}");
}

#[test]
fn kconfiglib_frees_a_symbol_that_is_defined_without_dependencies() {
    let tree = "if SOC\nconfig XIP\n\tdefault n\nendif\nconfig SOC\n\tbool \"soc\"\nconfig A\n\tdef_bool y\n\timply XIP\n\
                config XIP\n\tbool \"x\"\n";
    for (rules, value) in
        [("kconfiglib", "CONFIG_XIP=y"), ("esp-idf", "CONFIG_XIP=y"), ("5.6", "# CONFIG_XIP is not set")]
    {
        assert_eq!(values(&mut Machine::new(tree).rules(rules), "--alldefconfig")[0], value, "{rules}");
    }
}

#[test]
fn kconfiglib_takes_the_type_of_a_choice_from_members_inside_of_if() {
    let tree = "choice\n\tprompt \"c\"\nif X\nconfig M\n\tbool \"m\"\nconfig N\n\tbool \"n\"\nendif\nendchoice\nconfig X\n\tdef_bool y\n";
    for (rules, lines) in
        [("kconfiglib", &["# CONFIG_M is not set", "CONFIG_N=y", "CONFIG_X=y"][..]), ("5.6", &["CONFIG_X=y"])]
    {
        let mut machine = Machine::new(tree).rules(rules).config("CONFIG_N=y\n");
        assert_eq!(values(&mut machine, "--olddefconfig"), lines, "{rules}");
    }
}

#[test]
fn kconfiglib_saves_members_of_choices_whatever_their_defaults_and_selects() {
    // Members with a default, selected, and with neither.
    let tree = "config S\n\tbool \"s\"\n\tdefault y\n\tselect C\nchoice\n\tprompt \"one\"\nconfig A\n\tbool \"a\"\n\
                config B\n\tbool \"b\"\n\tdefault y\nconfig C\n\tbool \"c\"\nendchoice\n";
    let saved = |rules: &str, config: &str| {
        let mut machine = Machine::new(tree).rules(rules).config(config);
        let code = machine.run(&["--savedefconfig", "saved", "Kconfig"]);
        assert_eq!(code, 0, "{rules}: {}", machine.stderr());
        machine.read("saved").to_owned()
    };
    for rules in ["kconfiglib", "esp-idf"] {
        assert_eq!(saved(rules, "CONFIG_B=y\n"), "CONFIG_B=y\n", "{rules}");
        assert_eq!(saved(rules, "CONFIG_C=y\n"), "CONFIG_C=y\n", "{rules}");
        assert_eq!(saved(rules, "CONFIG_A=y\n"), "", "{rules}: the choice's own default");
    }
    assert_eq!(saved("linux-5.6", "CONFIG_B=y\n"), "");
    assert_eq!(saved("linux-5.6", "CONFIG_A=y\n"), "# CONFIG_B is not set\n");
}

#[test]
fn kconfiglib_saves_an_optional_choice_of_which_one_member_is_named() {
    let tree = "choice\n\tprompt \"one\"\n\toptional\nconfig A\n\tbool \"a\"\nconfig B\n\tbool \"b\"\nendchoice\n";
    let saved = |rules: &str, config: &str| {
        let mut machine = Machine::new(tree).rules(rules).config(config);
        assert_eq!(machine.run(&["--savedefconfig", "saved", "Kconfig"]), 0, "{rules}: {}", machine.stderr());
        machine.read("saved").to_owned()
    };
    for rules in ["kconfiglib", "esp-idf"] {
        assert_eq!(saved(rules, "CONFIG_B=y\n"), "CONFIG_B=y\n", "{rules}");
        assert_eq!(saved(rules, "# CONFIG_B is not set\n"), "", "{rules}");
    }
    assert_eq!(saved("linux-5.6", "CONFIG_B=y\n"), "", "as in C: A is undecided, and the choice new");
    assert_eq!(saved("linux-5.6", "# CONFIG_A is not set\nCONFIG_B=y\n"), "CONFIG_B=y\n");
}

#[test]
fn kconfiglib_has_no_symbols_in_paths() {
    let tree = |path: &str| format!("config D\n\tstring\n\toption env=\"DIR\"\nsource \"{path}/more\"\n");
    let machine = |path: &str| Machine::new(tree(path)).rules("kconfiglib").set("DIR", "dir");
    let mut found = machine("$DIR").file("dir/more", "config A\n\tbool \"a\"\n");
    assert_eq!(values(&mut found, "--alldefconfig").pop().as_deref(), Some("# CONFIG_A is not set"));
    let (code, said) = said_and_code(machine("$D").file("dir/more", ""), "--alldefconfig");
    assert!(code == 1 && said.contains("$D/more"), "{said}");
}

#[test]
fn kconfiglib_and_esp_idf_read_more_lines_than_c() {
    let tree = "config N\n\tint \"n\"\n\tdefault 7\nconfig S\n\tstring \"s\"\n";
    let read = |rules: &str, line: &str| {
        values(&mut Machine::new(tree).rules(rules).config(format!("{line}\n")), "--olddefconfig")
    };
    for (rules, blank, comment) in [("linux-5.6", "7", "7"), ("kconfiglib", "5", "7"), ("esp-idf", "5", "5")] {
        assert_eq!(read(rules, "CONFIG_N=5 ")[0], format!("CONFIG_N={blank}"), "{rules}");
        assert_eq!(read(rules, "CONFIG_N=5 \t# five")[0], format!("CONFIG_N={comment}"), "{rules}");
        assert_eq!(read(rules, "CONFIG_N=5#five")[0], "CONFIG_N=7", "{rules}");
        assert_eq!(read(rules, "CONFIG_S=\"x # y\" # z")[1], "CONFIG_S=\"x # y\"", "{rules}");
    }
}

#[test]
fn esp_idf_passes_over_the_old_names_at_the_end() {
    let tree = "config A\n\tbool \"a\"\nconfig B\n\tbool \"b\"\n";
    let config =
        "# Deprecated options for backward compatibility\nCONFIG_A=y\n# End of deprecated options\nCONFIG_B=y\n";
    let read = |rules: &str| values(&mut Machine::new(tree).rules(rules).config(config), "--olddefconfig");
    assert_eq!(read("esp-idf"), ["# CONFIG_A is not set", "CONFIG_B=y"]);
    assert_eq!(read("kconfiglib"), ["CONFIG_A=y", "CONFIG_B=y"]);
}

#[test]
fn barebox_touches_files_by_the_names_of_symbols() {
    let touches = |rules: &str, path: &str| {
        let mut machine = Machine::new("config A_B\n\tdef_bool y\n").rules(rules);
        machine.succeed("--syncconfig").files.contains_key(path)
    };
    assert!(touches("barebox-2021.07", "include/config/A_B"));
    assert!(touches("barebox-2020.10", "include/config/a/b.h"));
}

#[test]
fn barebox_quotes_texts_in_the_files_of_a_build() {
    let tree = "mainmenu \"Barebox\"\nconfig S\n\tstring \"s\"\n\tdefault \"a \\\"b\\\"\"\nsource \"other\"\n";
    let machine = || Machine::new(tree).file("other", "").rules("barebox-2021.07");
    let mut first = machine();
    first.succeed("--syncconfig");
    let heads = "Automatically generated file; DO NOT EDIT.";
    let conf = format!("#\n# {heads}\n# Barebox\n#\nCONFIG_S=\"a \\\"b\\\"\"\n");
    assert_eq!(first.read("include/config/auto.conf"), conf);
    let header = format!("/*\n *\n * {heads}\n * Barebox\n *\n */\n#define CONFIG_S \"a \\\"b\\\"\"\n");
    assert_eq!(first.read("include/generated/autoconf.h"), header);
    let command = "deps_config := \\\n\tother \\\n\tKconfig\n\ninclude/config/auto.conf: \\\n\t$(deps_config)\n\n\n$(deps_config): ;\n";
    assert_eq!(first.read("include/config/auto.conf.cmd"), command);
    let mut again = machine().file("include/config/auto.conf", conf);
    again.succeed("--syncconfig");
    assert!(!again.files.contains_key("include/config/S"), "the same value touches nothing");
}
