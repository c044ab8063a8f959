//! Our `conf` next to the kernel's own and to kconfiglib: whole runs from process start to exit, as
//! a user pays for them. Time, CPU, peak memory, and instructions, which no noise touches; minimum
//! and median, and how many times less than the C tool's.
//!
//! `make bench-kconfig`; `ARGS=--assert` turns the goals into failures. This measures; that the
//! results are equal is for the tests.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made has to end")]

mod goals;
mod subject;
mod table;

use std::io::Write as _;
use std::process::ExitCode;

use reference::{Arch, Fork, ForkTree, Missing, Python, Series, Stats, Tree, Variant, instructions, sample};

use goals::Goals;
use subject::{Subject, Work};
use table::Row;

/// What the command line says.
struct Options {
    assert: bool,
    runs: usize,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            say(&format!("{why}\nusage: cargo bench --bench kconfig -- [--assert] [--runs N]"));
            return ExitCode::from(2);
        }
    };
    let mut goals = Goals::default();
    let sections: [(&str, Section); 6] = [
        ("6.1", without_shell_6_1),
        ("newest", newest),
        ("real compiler", real_compiler),
        ("size", growth),
        ("check", check),
        ("check of U-Boot", check_u_boot),
    ];
    for (name, section) in sections {
        if let Err(why) = section(&options, &mut goals) {
            say(&format!("skipped: {name}: {why}"));
            goals.unmeasured(name, &why);
        }
    }
    say(&goals.report());
    if options.assert && !goals.are_met() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

type Section = fn(&Options, &mut Goals) -> Result<(), Missing>;

fn options() -> Result<Options, String> {
    let mut options = Options { assert: false, runs: 20 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--assert" => options.assert = true,
            "--runs" => {
                let runs = words.next().and_then(|runs| runs.parse().ok()).filter(|runs| *runs > 0);
                options.runs = runs.ok_or("--runs wants a number above 0")?;
            }
            // The argument that cargo passes to every bench.
            "--bench" => {}
            other => return Err(format!("`{other}` is not known")),
        }
    }
    Ok(options)
}

fn say(text: &str) {
    // A closed standard output cannot be reported.
    let _closed = writeln!(std::io::stdout(), "{text}");
}

/// Measures the subjects in turn, so that other load affects all of them alike, and prints a table.
fn measure(title: &str, options: &Options, count: bool, subjects: &[Subject]) -> Vec<Row> {
    for subject in subjects {
        // The first run fills the caches of the system.
        let _warm = sample(&subject.counter);
    }
    let mut samples = vec![Vec::new(); subjects.len()];
    for _ in 0..options.runs {
        for (subject, samples) in subjects.iter().zip(&mut samples) {
            samples.push(sample(&subject.counter));
        }
    }
    let counted =
        |subject: &Subject| (count && !subject.is_interpreted).then(|| instructions(&subject.counter).ok()).flatten();
    let rows: Vec<Row> = subjects
        .iter()
        .zip(&samples)
        .map(|(subject, samples)| Row {
            name: subject.name.clone(),
            stats: Stats::of(samples),
            instructions: counted(subject),
        })
        .collect();
    say(&table::render(title, options.runs, &rows));
    rows
}

/// Kconfig's own work: no process is started.
fn without_shell_6_1(options: &Options, goals: &mut Goals) -> Result<(), Missing> {
    let tree = Tree::get(Series::V6_1)?;
    let python = Python::get()?;
    for mode in ["listnewconfig", "olddefconfig", "alldefconfig", "allyesconfig"] {
        let work = Work::new(&tree, Arch::X86, Variant::NoShell, mode);
        let subjects = [work.c(), work.ours(), work.kconfiglib(&python)];
        let rows = measure(&format!("{mode}, {} without a shell", tree.key()), options, true, &subjects);
        if matches!(mode, "listnewconfig" | "olddefconfig") {
            // The shorter the mode, the more the start of the whole program counts.
            let most = if mode == "olddefconfig" { 0.35 } else { 0.37 };
            goals.instructions(&format!("6.1 {mode}"), &rows, most);
            goals.cpu(&format!("6.1 {mode}"), &rows, 0.5);
        }
        goals.memory(&format!("6.1 {mode}"), &rows, 0.7);
    }
    Ok(())
}

fn newest(options: &Options, goals: &mut Goals) -> Result<(), Missing> {
    let tree = Tree::get(Series::Newest)?;
    for mode in ["listnewconfig", "olddefconfig"] {
        let work = Work::new(&tree, Arch::X86, Variant::NoShell, mode);
        let subjects = [work.c(), work.ours()];
        let rows = measure(&format!("{mode}, {} without a shell", tree.key()), options, true, &subjects);
        goals.cpu(&format!("newest {mode}"), &rows, 1.0 / 3.0);
        goals.memory(&format!("newest {mode}"), &rows, 1.0);
    }
    Ok(())
}

/// With the compiler of this machine: what a user waits for.
fn real_compiler(options: &Options, goals: &mut Goals) -> Result<(), Missing> {
    let tree = Tree::get(Series::V6_1)?;
    let work = Work::new(&tree, Arch::X86, Variant::Whole, "olddefconfig");
    let cache = tempfile::tempdir().unwrap();
    let subjects = [work.c(), work.ours(), work.ours_with_cache(cache.path())];
    let rows = measure(&format!("olddefconfig, {} with gcc", tree.key()), options, false, &subjects);
    goals.wall("real compiler, nothing remembered", &rows[0], &rows[1], 0.5);
    goals.wall("real compiler, answers remembered", &rows[0], &rows[2], 0.1);
    Ok(())
}

/// Trees of 1, 4 and 16 times the size, and one long file: the cost for each line stays what it is.
fn growth(options: &Options, goals: &mut Goals) -> Result<(), Missing> {
    let tree = Tree::get(Series::V6_1)?;
    let root = tempfile::tempdir().unwrap();
    let mut cost = Vec::new();
    for size in [1, 4, 16] {
        let dir = root.path().join(size.to_string());
        reference::synthetic::tree(&dir, size);
        let work = Work::of_tree(&tree, &dir, "alldefconfig");
        let rows = measure(&format!("alldefconfig, {} symbols", size * 4000), options, true, &[work.c(), work.ours()]);
        cost.push((size, rows));
    }
    goals.linear("trees of 1, 4 and 16 times the size", &cost);
    let dir = root.path().join("flat");
    fs_err::create_dir(&dir).unwrap();
    fs_err::write(dir.join("Kconfig"), reference::synthetic::flat(40_000)).unwrap();
    let work = Work::of_tree(&tree, &dir, "alldefconfig");
    let rows = measure("alldefconfig, one file of 40,000 lines", options, true, &[work.c(), work.ours()]);
    goals.same_cost_for_a_symbol("one file of 40,000 lines", &cost[0].1, &rows);
    Ok(())
}

/// What looking for mistakes costs, in runs of the C tool, which looks for none.
const CHECK: f64 = 5.0;

/// The lints on Linux, and on trees of 1, 4 and 16 times the size.
fn check(options: &Options, goals: &mut Goals) -> Result<(), Missing> {
    let tree = Tree::get(Series::V6_1)?;
    let work = Work::new(&tree, Arch::X86, Variant::NoShell, "alldefconfig");
    let title = format!("check next to alldefconfig, {} without a shell", tree.key());
    let rows = measure(&title, options, true, &[work.c(), work.ours_checking()]);
    goals.instructions("check of 6.1", &rows, CHECK);
    let root = tempfile::tempdir().unwrap();
    let mut cost = Vec::new();
    for size in [1, 4, 16] {
        let dir = root.path().join(size.to_string());
        reference::synthetic::tree(&dir, size);
        let work = Work::of_tree(&tree, &dir, "alldefconfig");
        let title = format!("check next to alldefconfig, {} symbols", size * 4000);
        cost.push((size, measure(&title, options, true, &[work.c(), work.ours_checking()])));
    }
    goals.linear("check of trees of 1, 4 and 16 times the size", &cost);
    Ok(())
}

fn check_u_boot(options: &Options, goals: &mut Goals) -> Result<(), Missing> {
    let work = Work::of_fork(&ForkTree::get(Fork::UBoot)?, "alldefconfig");
    let rows = measure("check next to alldefconfig, U-Boot", options, true, &[work.c(), work.ours_checking()]);
    goals.instructions("check of U-Boot", &rows, CHECK);
    Ok(())
}
