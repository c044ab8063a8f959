//! Configurations that the C tool made by chance, read again by both tools: whole, and with two of
//! five lines deleted, so that the defaults decide. Which lines go is the same in every run.

use reference::{Arch, Job, Series, Tree, Variant, or_skip, random::without_lines};

use crate::{compare, none, side_by_side};

const DELETED: u64 = 40;

#[track_caller]
fn equal(series: Series, arch: Arch, seeds: std::ops::RangeInclusive<u32>) {
    let Some(tree) = or_skip(Tree::get(series)) else { return };
    let theirs = tree.conf();
    let env = || tree.env(arch, Variant::NoShell);
    let seeds: Vec<u32> = seeds.collect();
    let found = side_by_side(&seeds, |seed| {
        let made =
            theirs.run(&Job::new("--randconfig", env()).without_auto_conf().env("KCONFIG_SEED", &seed.to_string()));
        assert!(made.config().len() > 10_000, "the C tool made no configuration for seed {seed}");
        let cut = without_lines(made.config(), DELETED, u64::from(*seed));
        let again = |what: &str, config: &[u8]| {
            let job = Job::new("--olddefconfig", env()).without_auto_conf().file(".config", config);
            compare(&format!("the configuration of seed {seed}, {what}"), &theirs, &job)
        };
        [again("whole", made.config()), again("with lines deleted", &cut)]
    });
    let differences: Vec<String> = found.into_iter().flatten().flatten().collect();
    none(&format!("configurations of {} for {}", tree.key(), arch.name()), 2 * seeds.len(), &differences);
}

#[test]
fn x86_of_6_1() {
    equal(Series::V6_1, Arch::X86, 1..=160);
}

#[test]
fn arm64_of_6_1() {
    equal(Series::V6_1, Arch::Arm64, 161..=180);
}

#[test]
fn riscv_of_6_1() {
    equal(Series::V6_1, Arch::Riscv, 181..=200);
}

/// Fewer: the C tool of the newest tree needs a second for each.
#[test]
fn x86_of_the_newest() {
    equal(Series::Newest, Arch::X86, 201..=208);
}
