//! Our `conf` next to the kernel's own: its test suites, every byte it writes on real trees, and
//! the kernel's `make` around it.
//!
//! Trees and tools come from the distribution (see the crate `reference`); a test that cannot have
//! them says so and is skipped, and fails where `CI` is set. `CONF_UNDER_TEST=PROGRAM` puts another
//! program in the place of ours, to see that these tests can fail, or what they say of a C tool.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod forks;
mod kconfiglib;
mod make;
mod modes;
mod random_configs;
mod suites;

use std::path::Path;

use reference::{Job, Tool, difference};

/// The program under test.
fn ours() -> Tool {
    match std::env::var_os("CONF_UNDER_TEST") {
        Some(program) => Tool::new("the tool under test", Path::new(&program), &[]),
        None => Tool::new("turnup", Path::new(env!("CARGO_BIN_EXE_turnup")), &["kconfig", "conf"]),
    }
}

/// What differs when both do the same job.
fn compare(what: &str, theirs: &Tool, job: &Job) -> Option<String> {
    let ours = ours();
    let difference = difference((ours.name(), &ours.run(job)), ("C", &theirs.run(job)))?;
    Some(format!("{what}:\n{difference}"))
}

/// Does all the work on as many threads as there are processors; the answers in the order of the
/// work.
fn side_by_side<T: Sync, R: Send>(work: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(work.len().max(1));
    let mut answers: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut mine = Vec::new();
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(item) = work.get(at) else { return mine };
                mine.push((at, one(item)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Fails with the first differences, when there are any.
#[track_caller]
fn none(what: &str, done: usize, differences: &[String]) {
    /// One mistake shows in many runs.
    const SHOWN: usize = 6;
    assert!(done > 0, "{what}: nothing was compared");
    reference::say(&format!("{what}: {} of {done} equal", done - differences.len()));
    let shown: Vec<&str> = differences.iter().take(SHOWN).map(String::as_str).collect();
    assert!(differences.is_empty(), "{what}: {} of {done} differ\n{}", differences.len(), shown.join("\n"));
}
