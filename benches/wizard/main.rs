//! The wizard on Linux's own tree: the processor's time from a key to the drawn screen, for the
//! first screen, each letter of a search and switches that thousands of symbols depend on. The goal
//! is one frame of a 60 Hz screen. Beside it kconfiglib's menuconfig, both as whole processes on a
//! terminal. Linux's mconf is not here: it searches only when the word is complete.
//!
//! `make bench-wizard`; `ARGS=--assert` turns the goal into a failure.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made has to end")]

mod peer;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use assert_cmd::Command;
use peer::{Keys, Peer};
use reference::{Arch, Job, Missing, Python, Series, Tree, Variant};

/// Milliseconds of a frame.
const FRAME: f64 = 1000.0 / 60.0;

/// One kind of work, as it is printed, and the inputs that are timed for it.
const WORK: [(&str, &[&str]); 4] = [
    ("first screen", &["start"]),
    ("opening the search", &["key /"]),
    (
        "a letter of a search",
        &["key n", "key e", "key t", "key f", "key i", "key l", "key p", "key c", "key o", "key m"],
    ),
    ("a switch, undo, redo", &["key Space", "key u", "key U", "key y"]),
];

/// Searches letter by letter, goes to switches on which much depends, turns them over and takes
/// that back.
fn session() -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in ["netfilter", "pcie", "compile", "nfnetlink"] {
        lines.push("key /".to_owned());
        lines.extend(word.chars().map(|letter| format!("key {letter}")));
        lines.push("key Esc".to_owned());
    }
    for name in ["PCI", "NET", "MODULES", "BLOCK", "EXPERT", "COMPILE_TEST"] {
        lines.extend(["key /".to_owned(), format!("paste \"CONFIG_{name}\""), "key Enter".to_owned()]);
        let turns = ["key Space", "key u", "key U", "key u", "key y", "key u"];
        lines.extend(turns.iter().cycle().take(5 * turns.len()).map(|key| (*key).to_owned()));
    }
    lines.join("\n")
}

fn main() -> ExitCode {
    let assert = std::env::args().any(|word| word == "--assert");
    let mut met = true;
    for series in [Series::V6_1, Series::Newest] {
        match measure(series) {
            Ok(good) => met &= good,
            Err(why) => {
                say(&format!("skipped: {series:?}: {why}"));
                met = false;
            }
        }
    }
    if let Err(why) = compare() {
        say(&format!("skipped: next to kconfiglib: {why}"));
    }
    if assert && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn say(text: &str) {
    // A closed standard output cannot be reported.
    let _closed = writeln!(std::io::stdout(), "{text}");
}

/// Prints a table for one tree; whether every median and every p99 is within the frame.
fn measure(series: Series) -> Result<bool, Missing> {
    let tree = Tree::get(series)?;
    let env = tree.env(Arch::X86, Variant::NoShell);
    let small = tree.defconfigs(Arch::X86).pop().unwrap();
    let whole = tree.conf().run(&Job::new(&format!("--defconfig={}", small.display()), env.clone()));
    let dir = tempfile::tempdir().unwrap();
    let (config, keys) = (dir.path().join("config"), dir.path().join("keys"));
    fs_err::write(&config, whole.config()).unwrap();
    fs_err::write(&keys, session()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
    command.args(["kconfig", "menuconfig", "Kconfig", "--output", "json", "--size", "200x50", "--replay"]).arg(&keys);
    command.arg("--config").arg(&config).current_dir(tree.root(Variant::NoShell)).env_clear().envs(env);
    let mut times: Vec<(String, f64)> = Vec::new();
    for _ in 0..10 {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for moment in object["moments"].as_array().unwrap() {
            let cpu = moment["cpu_microseconds"].as_f64().unwrap() / 1000.0;
            times.push((moment["input"].as_str().unwrap().to_owned(), cpu));
        }
    }
    say(&format!(
        "\n{}: milliseconds of processor time, from a key to the drawn screen (goal: {FRAME:.1})",
        tree.key()
    ));
    say(&format!("{:24} {:>6} {:>8} {:>8} {:>8}", "", "count", "median", "p99", "worst"));
    let mut good = true;
    for (name, inputs) in WORK {
        let mut chosen: Vec<f64> =
            times.iter().filter(|(input, _)| inputs.contains(&input.as_str())).map(|(_, time)| *time).collect();
        chosen.sort_by(f64::total_cmp);
        let at = |part: usize| chosen[(chosen.len() * part / 100).min(chosen.len() - 1)];
        let (median, p99, worst) = (at(50), at(99), chosen[chosen.len() - 1]);
        let verdict = if p99 <= FRAME { "" } else { "  missed" };
        good &= p99 <= FRAME;
        say(&format!("{name:24} {:6} {median:8.2} {p99:8.2} {worst:8.2}{verdict}", chosen.len()));
    }
    Ok(good)
}

/// Both as whole processes on a terminal, one after the other on the same tree.
fn compare() -> Result<(), Missing> {
    let (tree, python) = (Tree::get(Series::V6_1)?, Python::get()?);
    let mut env = tree.env(Arch::X86, Variant::NoShell);
    // kconfiglib 14.1.0 cannot read `modules`, which Linux has since 5.13: it gets a copy of the
    // tree with the older words.
    let copy = tempfile::tempdir().unwrap();
    duct::cmd!("cp", "-r", tree.root(Variant::NoShell).join("."), copy.path()).run().unwrap();
    let file = copy.path().join("kernel/module/Kconfig");
    let text = fs_err::read_to_string(&file).unwrap();
    fs_err::write(file, text.replace("\n\tmodules\n", "\n\toption modules\n")).unwrap();
    let small = tree.defconfigs(Arch::X86).pop().unwrap();
    let whole = tree.conf().run(&Job::new(&format!("--defconfig={}", small.display()), env.clone()));
    fs_err::write(copy.path().join(".config"), whole.config()).unwrap();
    env.retain(|(name, _)| !matches!(name.as_str(), "srctree" | "KCONFIG_CONFIG"));
    env.push(("srctree".to_owned(), copy.path().display().to_string()));
    let ours = Peer::start(
        Path::new(env!("CARGO_BIN_EXE_turnup")),
        &["kconfig", "menuconfig", "--dialect", "5.10"],
        &env,
        copy.path(),
    );
    let ours = ours.measure(&Keys { search: "/", close: "\x1b", pci: "/CONFIG_PCI\r" });
    env.push(("PYTHONPATH".to_owned(), python.packages().display().to_string()));
    let script = "import menuconfig, sys; sys.argv[1:] = ['Kconfig']; menuconfig._main()";
    let theirs = Peer::start(python.program(), &["-B", "-c", script], &env, copy.path());
    let theirs = theirs.measure(&Keys { search: "/", close: "\x1b", pci: "/^pci$\r" });
    say(&format!("\n{}: milliseconds of processor time as whole processes on a terminal", tree.key()));
    say(&format!("{:32} {:>10} {:>10} {:>8}", "", "turnup", "kconfiglib", "times"));
    for (name, ours, theirs) in [
        ("from the start to the screen", ours.start, theirs.start),
        ("a letter of a search", ours.letter, theirs.letter),
        ("a switch that much depends on", ours.switch, theirs.switch),
    ] {
        say(&format!("{name:32} {ours:10.2} {theirs:10.2} {:8.1}", theirs / ours.max(0.01)));
    }
    Ok(())
}
