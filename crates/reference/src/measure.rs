//! One run measured from start to exit: wall time, CPU time and peak memory from the system call
//! that waits for the process, and instructions, which no noise touches, from valgrind.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use crate::{Missing, program};

/// What to run, measured.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub dir: std::path::PathBuf,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// From before the fork to after the wait.
    pub wall: Duration,
    /// User and system, of the process and of what it waited for.
    pub cpu: Duration,
    /// The most memory it had, in KiB.
    pub peak: u64,
}

/// Minimum and median of several.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// The fastest run.
    pub wall_min: Duration,
    /// The one in the middle.
    pub wall_median: Duration,
    /// The cheapest run.
    pub cpu_min: Duration,
    /// The one in the middle.
    pub cpu_median: Duration,
    /// The largest of all peaks, in KiB.
    pub peak: u64,
}

impl Stats {
    /// Of at least one sample.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Self {
        let sorted = |value: fn(&Sample) -> Duration| {
            let mut all: Vec<Duration> = samples.iter().map(value).collect();
            all.sort();
            (all[0], all[all.len() / 2])
        };
        let (wall, cpu) = (sorted(|sample| sample.wall), sorted(|sample| sample.cpu));
        let peak = samples.iter().map(|sample| sample.peak).max().unwrap();
        Self { wall_min: wall.0, wall_median: wall.1, cpu_min: cpu.0, cpu_median: cpu.1, peak }
    }
}

#[expect(clippy::disallowed_methods, reason = "measured is the child itself, without anything of ours around it")]
fn command(program: &Path, run: &Counter) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(run.env.iter().cloned()).current_dir(&run.dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs it once; panics when it does not succeed, for then nothing was measured.
#[must_use]
pub fn sample(run: &Counter) -> Sample {
    let mut command = command(&run.program, run);
    let start = Instant::now();
    let child = command.args(&run.args).spawn().unwrap();
    let used = child.wait4().unwrap();
    let wall = start.elapsed();
    assert!(used.status.success(), "{} {:?}: {}", run.program.display(), run.args, used.status);
    // The kernel counts in KiB, the crate in bytes.
    Sample { wall, cpu: used.rusage.utime + used.rusage.stime, peak: used.rusage.maxrss / 1024 }
}

/// How many instructions the process executes in user mode.
pub fn instructions(run: &Counter) -> Result<u64, Missing> {
    let valgrind = program("valgrind")?;
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut command = command(&valgrind, run);
    command.arg("--tool=cachegrind").arg("--cache-sim=no").arg("--cachegrind-out-file=/dev/null");
    command.arg(format!("--log-file={}", report.path().display())).arg(&run.program).args(&run.args);
    let status = command.status().unwrap();
    let text = fs_err::read_to_string(report.path()).unwrap();
    assert!(status.success(), "{} below valgrind: {status}\n{text}", run.program.display());
    let line = text.lines().find_map(|line| line.split_once("I   refs:").or_else(|| line.split_once("I refs:")));
    let count: String = line.unwrap_or_else(|| panic!("{text}")).1.chars().filter(char::is_ascii_digit).collect();
    Ok(count.parse().unwrap())
}
