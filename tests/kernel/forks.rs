//! The trees of forks that Debian packages, next to the `conf` built from each: by the rules that
//! the tree itself says are its own.

use reference::{Fork, ForkTree, Job, difference, or_skip, random};

use crate::{compare, none, ours, side_by_side};

fn environment(tree: &ForkTree, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let root = tree.root().to_str().unwrap();
    let common = [("PATH", path.as_str()), ("LC_ALL", "C"), ("srctree", root), ("HOSTCC", "gcc"), ("CC", "gcc")];
    common.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// All that it writes and says.
#[test]
fn u_boot_of_debian_12() {
    let Some(tree) = or_skip(ForkTree::get(Fork::UBoot)) else { return };
    let env = || environment(&tree, &[("UBOOTVERSION", "2023.01"), ("KERNELVERSION", "2023.01")]);
    let mut cases: Vec<(String, Job)> = Vec::new();
    for mode in ["alldefconfig", "allyesconfig", "allmodconfig", "allnoconfig"] {
        cases.push((mode.to_owned(), Job::new(&format!("--{mode}"), env())));
    }
    for seed in ["1", "2", "0x77"] {
        cases.push((format!("randconfig of seed {seed}"), Job::new("--randconfig", env()).env("KCONFIG_SEED", seed)));
    }
    for path in tree.defconfigs(3) {
        let (name, text) = (path.file_name().unwrap().to_string_lossy().into_owned(), fs_err::read(&path).unwrap());
        cases.push((format!("defconfig {name}"), Job::new(&format!("--defconfig={}", path.display()), env())));
        for mode in ["olddefconfig", "savedefconfig=minimal"] {
            cases.push((
                format!("{mode} of {name}"),
                Job::new(&format!("--{mode}"), env()).file(".config", text.clone()),
            ));
        }
    }
    let whole = tree.conf().run(&Job::new("--alldefconfig", env())).config().to_vec();
    assert!(whole.len() > 10_000, "the C tool made no configuration");
    for seed in 0..2 {
        let part = random::without_lines(&whole, 30, seed);
        cases.push((format!("olddefconfig of part {seed}"), Job::new("--olddefconfig", env()).file(".config", part)));
    }
    let found = side_by_side(&cases, |(name, job)| compare(name, &tree.conf(), job));
    none("U-Boot", cases.len(), &found.into_iter().flatten().collect::<Vec<_>>());
}

/// The configuration alone: its `conf` prints all questions in every mode.
#[test]
fn busybox_of_debian_12() {
    let Some(tree) = or_skip(ForkTree::get(Fork::BusyBox)) else { return };
    let env = || environment(&tree, &[("KERNELVERSION", "1.35.0"), ("KCONFIG_NOTIMESTAMP", "1")]);
    let job = |arguments: &[&str], config: Option<&[u8]>| {
        let words: Vec<&str> = arguments.iter().copied().chain(["Config.in"]).collect();
        let job = Job::with_arguments(&words, env()).enter().file("include/made", "");
        config.map_or(job.clone(), |config| job.file(".config", config))
    };
    let mut found = Vec::new();
    let mut tried = 0;
    let mut equal = |name: &str, theirs: &[&str], mode: &str, config: Option<&[u8]>| {
        let only_config = |outcome: reference::Outcome| {
            let files = outcome.files.into_iter().filter(|(name, _)| name == ".config").collect();
            reference::Outcome { stdout: Vec::new(), stderr: Vec::new(), files, ..outcome }
        };
        let (theirs, mine) = (tree.conf().run(&job(theirs, config)), ours().run(&job(&[mode], config)));
        let whole = theirs.config().to_vec();
        let difference = difference(("turnup", &only_config(mine)), ("C", &only_config(theirs)));
        found.extend(difference.map(|difference| format!("{name}:\n{difference}")));
        tried += 1;
        whole
    };
    let whole = equal("allyesconfig", &["-y"], "--allyesconfig", None);
    assert!(whole.len() > 10_000, "the C tool made no configuration");
    equal("allnoconfig", &["-n"], "--allnoconfig", None);
    for path in tree.defconfigs(3) {
        let path = path.to_str().unwrap();
        equal(path, &["-D", path], &format!("--defconfig={path}"), None);
    }
    for seed in 0..2 {
        let part = random::without_lines(&whole, 30, seed);
        equal(&format!("part {seed}"), &["-o"], "--olddefconfig", Some(&part));
    }
    none("BusyBox", tried, &found);
}
