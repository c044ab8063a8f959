//! The real program against 100 and 1,000 simulated hosts: first run, a run with nothing to do, a
//! plan; time, processor and memory, and what ten times the hosts cost. The ratio of times is that
//! of the processor: other work on the machine does not change it.
//!
//! `make bench-scale`; `ARGS=--assert` turns the goals into failures, and numbers in `ARGS` are
//! other counts of hosts. The tools are fakes that answer at once (`tests/fakes`), so this is the
//! time of turnup itself and of starting the processes that real hosts need as well.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made has to end")]

#[path = "../../tests/fakes/simulation.rs"]
mod simulation;

use std::io::Write as _;
use std::process::ExitCode;

use simulation::{Ended, Simulation};

/// What is measured, in this order on one cluster.
const WORK: [(&str, &str); 3] = [("first run", "up"), ("nothing to do", "up"), ("plan", "plan")];
/// How often the short ones are repeated; the fastest counts.
const REPEATS: usize = 3;
/// Seconds that a run with nothing to do may take for 100 hosts.
const GOAL: f64 = 1.0;
/// How much more than the number of hosts times and memory may grow: caches of the machine get
/// worse, and noise is noise.
const SLACK: f64 = 1.5;

/// Seconds, seconds of the processor (all processes) and MiB of one kind of work.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    processor: f64,
    memory: f64,
}

fn main() -> ExitCode {
    let counts: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![100, 1000] } else { counts };
    let measured: Vec<(usize, Vec<Cost>)> = counts.into_iter().map(|hosts| (hosts, measure(hosts))).collect();
    show(&measured);
    let misses = if std::env::args().any(|word| word == "--assert") { judge(&measured) } else { Vec::new() };
    for miss in &misses {
        say(&format!("missed: {miss}"));
    }
    if misses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(hosts: usize) -> Vec<Cost> {
    let simulation = Simulation::new(hosts);
    let run = |(what, command): (&str, &str)| {
        let repeats = if what == "first run" { 1 } else { REPEATS };
        let runs = (0..repeats).map(|_| cost(what, &simulation.ok(&[command, "--quiet"])));
        runs.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).unwrap()
    };
    WORK.map(run).into()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn cost(what: &str, ended: &Ended) -> Cost {
    assert!(what != "plan" || ended.out.trim() == "nothing to do", "something is left to do: {ended}");
    Cost {
        seconds: ended.elapsed.as_secs_f64(),
        processor: ended.processor.as_secs_f64(),
        memory: ended.memory as f64 / 1024.0,
    }
}

fn show(measured: &[(usize, Vec<Cost>)]) {
    say(&format!("{:>8}  {:<14} {:>10} {:>10} {:>12}", "hosts", "", "time", "processor", "memory"));
    for (hosts, costs) in measured {
        for ((what, _), cost) in WORK.iter().zip(costs) {
            say(&format!(
                "{hosts:>8}  {what:<14} {:>8.2} s {:>8.2} s {:>8.1} MiB",
                cost.seconds, cost.processor, cost.memory
            ));
        }
    }
    for (pair, (what, processor, memory)) in ratios(measured) {
        say(&format!("{pair:>8}  {what:<14} {:>10} {processor:>8.1} x {memory:>8.1} x", ""));
    }
}

type Ratio = (String, (&'static str, f64, f64));

/// Each count of hosts compared with the one before it.
fn ratios(measured: &[(usize, Vec<Cost>)]) -> Vec<Ratio> {
    let compare = |pair: &[(usize, Vec<Cost>)]| {
        let [(fewer, before), (more, after)] = pair else { return Vec::new() };
        let costs = WORK.iter().zip(before.iter().zip(after));
        let ratio = |((what, _), (before, after)): (&(&'static str, &str), (&Cost, &Cost))| {
            (format!("{more}/{fewer}"), (*what, after.processor / before.processor, after.memory / before.memory))
        };
        costs.map(ratio).collect()
    };
    measured.windows(2).flat_map(compare).collect()
}

fn judge(measured: &[(usize, Vec<Cost>)]) -> Vec<String> {
    let mut misses = Vec::new();
    for (hosts, costs) in measured.iter().filter(|(hosts, _)| *hosts <= 100) {
        if costs[1].seconds >= GOAL {
            misses.push(format!("{hosts} hosts with nothing to do: {:.2} s, the goal is {GOAL} s", costs[1].seconds));
        }
    }
    for (pair, (what, processor, memory)) in ratios(measured) {
        let (more, fewer) = pair.split_once('/').unwrap();
        let most = SLACK * more.parse::<f64>().unwrap() / fewer.parse::<f64>().unwrap();
        if processor > most || memory > most {
            misses.push(format!(
                "{what}, {pair} hosts: {processor:.1} x the processor, {memory:.1} x the memory, allowed {most}"
            ));
        }
    }
    misses
}

fn say(line: &str) {
    // A closed pipe does not fail the measurement.
    drop(writeln!(std::io::stdout(), "{line}"));
}
