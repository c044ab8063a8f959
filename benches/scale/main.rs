//! The real program against 100 and 1,000 simulated hosts: first run, run with nothing to do, plan; time, processor and memory.
//!
//! `make bench-scale`; `ARGS=--assert` turns the goals into failures.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that cannot be made has to end")]
#![expect(clippy::disallowed_methods, reason = "the benchmark plays the shell that turnup is started from")]

#[path = "../../tests/fakes/simulation.rs"]
mod simulation;

use simulation::Simulation;

fn main() {
    let hosts: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2);
    let simulation = Simulation::new(hosts);
    for args in [&["up"][..], &["up"], &["plan"]] {
        let ended = simulation.ok(args);
        drop(std::io::Write::write_all(&mut std::io::stdout(), format!("{ended}\n").as_bytes()));
    }
}
