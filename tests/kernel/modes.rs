//! Every mode of `conf` on Linux's trees, next to the C tool built from the same tree: status, both
//! outputs and every file, byte for byte. Nearly all of it without a shell, so that it is Kconfig
//! that is compared; a few with the compiler of this machine.

use reference::{Arch, Job, Series, Tool, Tree, Variant, difference, or_skip};

use crate::{compare, none, ours, side_by_side};

/// A run and what to call it.
type Case = (String, Job);

/// What every tree and architecture goes through.
fn usual(tree: &Tree, arch: Arch) -> Vec<Case> {
    let env = || tree.env(arch, Variant::NoShell);
    let mut cases: Vec<Case> = Vec::new();
    for mode in ["alldefconfig", "allyesconfig", "allmodconfig", "allnoconfig"] {
        cases.push((mode.to_owned(), Job::new(&format!("--{mode}"), env())));
    }
    for path in tree.defconfigs(arch) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs_err::read(&path).unwrap();
        for mode in ["olddefconfig", "listnewconfig", "savedefconfig=minimal"] {
            let job = Job::new(&format!("--{mode}"), env()).file(".config", text.clone());
            cases.push((format!("{mode} of {name}"), job.without_auto_conf()));
        }
        let job = Job::new(&format!("--defconfig={}", path.display()), env());
        cases.push((format!("defconfig of {name}"), job.without_auto_conf()));
    }
    for seed in ["0x1", "0x2", "77"] {
        let job = Job::new("--randconfig", env()).env("KCONFIG_SEED", seed);
        cases.push((format!("randconfig of seed {seed}"), job.without_auto_conf()));
    }
    cases
}

/// The rest of the modes, from a whole configuration and from a default one.
fn rest(tree: &Tree, arch: Arch) -> Vec<Case> {
    let env = || tree.env(arch, Variant::NoShell);
    let path = tree.defconfigs(arch).pop().unwrap();
    let small = fs_err::read(&path).unwrap();
    let whole = tree.conf().run(&Job::new(&format!("--defconfig={}", path.display()), env())).config().to_vec();
    assert!(whole.len() > 10_000, "the C tool made no configuration of {}", path.display());
    let of = |mode: &str, config: &[u8]| Job::new(&format!("--{mode}"), env()).file(".config", config);
    let mut cases: Vec<Case> = Vec::new();
    for mode in
        ["olddefconfig", "savedefconfig=minimal", "syncconfig", "yes2modconfig", "mod2yesconfig", "mod2noconfig"]
    {
        cases.push((format!("{mode} of a whole configuration"), of(mode, &whole)));
    }
    for mode in ["oldconfig", "oldaskconfig", "syncconfig"] {
        cases.push((format!("{mode}, Enter at every question"), of(mode, &small).enter()));
    }
    cases.push(("oldaskconfig from nothing".into(), Job::new("--oldaskconfig", env()).enter()));
    cases.push(("olddefconfig in silence".into(), of("olddefconfig", &whole).silent()));
    for probability in ["30", "20:50", "10:20:40"] {
        let job = Job::new("--randconfig", env()).env("KCONFIG_SEED", "5").env("KCONFIG_PROBABILITY", probability);
        cases.push((format!("randconfig of probability {probability}"), job.without_auto_conf()));
    }
    let wishes =
        "CONFIG_MODULES=y\n# CONFIG_PCI is not set\nCONFIG_NET=y\nCONFIG_NR_CPUS=12\nCONFIG_LOCALVERSION=\"-x\"\n";
    for mode in ["allnoconfig", "allyesconfig", "allmodconfig", "alldefconfig", "randconfig"] {
        let job = Job::new(&format!("--{mode}"), env()).file("wishes", wishes);
        let job = job.env("KCONFIG_ALLCONFIG", "wishes").env("KCONFIG_SEED", "9");
        cases.push((format!("{mode} with KCONFIG_ALLCONFIG"), job));
    }
    cases.extend(odd(&of, &whole));
    cases
}

/// Configurations with mistakes, and what the environment says about them.
fn odd(of: &dyn Fn(&str, &[u8]) -> Job, whole: &[u8]) -> Vec<Case> {
    let text = String::from_utf8_lossy(whole);
    let wrong = format!(
        "{text}CONFIG_NOT_THERE=y\nCONFIG_NET=x\nCONFIG_NET=y\nCONFIG_NET=n\nnonsense\n# CONFIG_NOT_EITHER is not set\n\
         CONFIG_NR_CPUS=many\nCONFIG_LOCALVERSION=unquoted\nCONFIG_LOCALVERSION=\"a\\\"b\\\\c\"\nCONFIG_\nCONFIG_X\n"
    );
    let of_wrong = |mode: &str| of(mode, wrong.as_bytes());
    let dos = text.replace('\n', "\r\n");
    vec![
        ("mistakes".into(), of_wrong("olddefconfig")),
        ("mistakes, unknown symbols named".into(), of_wrong("olddefconfig").env("KCONFIG_WARN_UNKNOWN_SYMBOLS", "1")),
        (
            "mistakes, warnings are errors".into(),
            of_wrong("olddefconfig").env("KCONFIG_WARN_UNKNOWN_SYMBOLS", "1").env("KCONFIG_WERROR", "1"),
        ),
        ("mistakes, changed input".into(), of_wrong("olddefconfig").env("KCONFIG_WARN_CHANGED_INPUT", "1")),
        ("no update wanted".into(), of_wrong("syncconfig").env("KCONFIG_NOSILENTUPDATE", "1")),
        ("ends of lines".into(), of("olddefconfig", dos.as_bytes())),
        ("another name".into(), of("olddefconfig", whole).env("KCONFIG_CONFIG", "sub.config")),
        ("another prefix".into(), of("olddefconfig", whole).env("CONFIG_", "OTHER_")),
        ("no file named".into(), of("defconfig=not-there", whole)),
        ("an empty file".into(), of("olddefconfig", b"")),
        ("generated files elsewhere".into(), {
            let job = of("syncconfig", whole).env("KCONFIG_AUTOCONFIG", "a/auto.conf");
            job.env("KCONFIG_AUTOHEADER", "h/auto.h").env("KCONFIG_RUSTCCFG", "r/cfg")
        }),
        ("overwriting".into(), of("olddefconfig", whole).env("KCONFIG_OVERWRITECONFIG", "1")),
    ]
}

#[track_caller]
fn equal(what: &str, tree: &Tree, cases: &[Case]) {
    let theirs = tree.conf();
    let found = side_by_side(cases, |(name, job)| compare(name, &theirs, job));
    let differences: Vec<String> = found.into_iter().flatten().collect();
    none(&format!("{what} of {}", tree.key()), cases.len(), &differences);
}

/// The help of all that is new. How far conditions are simplified before they are shown differs
/// from version to version of the C tool, and ours does it in its own way: their lines are left
/// out.
#[track_caller]
fn help_is_equal(tree: &Tree) {
    let small = fs_err::read(tree.defconfigs(Arch::X86).pop().unwrap()).unwrap();
    let job = Job::new("--helpnewconfig", tree.env(Arch::X86, Variant::NoShell)).file(".config", small);
    let told = |tool: &Tool| {
        let mut outcome = tool.run(&job);
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let is_condition =
            |line: &&str| ["  Depends on:", "  Visible if:", "  - "].iter().any(|start| line.starts_with(start));
        let rest: Vec<&str> = text.lines().filter(|line| !is_condition(line)).collect();
        assert!(rest.len() > 10_000, "no help: {text}");
        outcome.stdout = rest.join("\n").into_bytes();
        outcome
    };
    let found = difference(("turnup", &told(&ours())), ("C", &told(&tree.conf())));
    none(&format!("helpnewconfig of {}", tree.key()), 1, &found.into_iter().collect::<Vec<_>>());
}

#[test]
fn help_of_6_1() {
    let Some(tree) = or_skip(Tree::get(Series::V6_1)) else { return };
    help_is_equal(&tree);
}

#[test]
fn help_of_the_newest() {
    let Some(tree) = or_skip(Tree::get(Series::Newest)) else { return };
    help_is_equal(&tree);
}

#[test]
fn x86_of_6_1() {
    let Some(tree) = or_skip(Tree::get(Series::V6_1)) else { return };
    equal("x86", &tree, &usual(&tree, Arch::X86));
}

#[test]
fn x86_of_6_1_in_the_other_modes() {
    let Some(tree) = or_skip(Tree::get(Series::V6_1)) else { return };
    equal("x86, other modes", &tree, &rest(&tree, Arch::X86));
}

#[test]
fn arm64_of_6_1() {
    let Some(tree) = or_skip(Tree::get(Series::V6_1)) else { return };
    equal("arm64", &tree, &usual(&tree, Arch::Arm64));
}

#[test]
fn riscv_of_6_1() {
    let Some(tree) = or_skip(Tree::get(Series::V6_1)) else { return };
    equal("riscv", &tree, &usual(&tree, Arch::Riscv));
}

#[test]
fn x86_of_6_12() {
    let Some(tree) = or_skip(Tree::get(Series::V6_12)) else { return };
    let mut cases = usual(&tree, Arch::X86);
    // What differs from the newest is in the writing; a few runs show it, and its C tool needs a
    // second for each.
    cases.retain(|(name, _)| ["alldefconfig", "olddefconfig of x86_64_defconfig"].contains(&name.as_str()));
    assert_eq!(cases.len(), 2);
    equal("x86", &tree, &cases);
}

#[test]
fn x86_of_the_newest() {
    let Some(tree) = or_skip(Tree::get(Series::Newest)) else { return };
    equal("x86", &tree, &usual(&tree, Arch::X86));
}

#[test]
fn x86_of_the_newest_in_the_other_modes() {
    let Some(tree) = or_skip(Tree::get(Series::Newest)) else { return };
    equal("x86, other modes", &tree, &rest(&tree, Arch::X86));
}

/// With the compiler of this machine: what `$(shell)` gives, and that the answers come in the right
/// places.
#[test]
fn with_the_real_compiler() {
    for series in [Series::V6_1, Series::Newest] {
        let Some(tree) = or_skip(Tree::get(series)) else { return };
        let env = || tree.env(Arch::X86, Variant::Whole);
        let path = tree.defconfigs(Arch::X86).pop().unwrap();
        let text = fs_err::read(path).unwrap();
        let cases = [
            ("alldefconfig".to_owned(), Job::new("--alldefconfig", env())),
            ("olddefconfig".to_owned(), Job::new("--olddefconfig", env()).file(".config", text)),
        ];
        equal("x86 with the real compiler", &tree, &cases);
    }
}
