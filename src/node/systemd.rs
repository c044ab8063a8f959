//! systemd on this host, by `systemctl`. It changes units as it is told and decides nothing.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::exec::Run;

/// How long a unit may take to stop.
const STOP: Duration = Duration::from_mins(2);

/// Changes units. An error has the last lines of the unit's journal.
pub(super) fn systemctl(args: &[&str]) -> Result<()> {
    run(command(args), args)
}

/// The same, and an error where it takes longer than a unit may take to stop.
pub(super) fn systemctl_in_time(args: &[&str]) -> Result<()> {
    run(command(args).timeout(STOP), args)
}

/// Whether the unit is that: `is-active`, `is-enabled`.
pub(super) fn is(question: &str, unit: &str) -> bool {
    command(&[question, "--quiet", unit]).output().is_ok()
}

/// The unit gets SIGHUP, where it runs.
pub(super) fn hang_up(unit: &str) {
    drop(command(&["kill", "--signal=HUP", unit]).output());
}

/// systemd forgets that a unit failed; it need not know the unit.
pub(super) fn reset_failed(unit: &str) {
    drop(command(&["reset-failed", unit]).output());
}

/// How often systemd has started a unit again because it ended; 0 of one that it does not know.
pub(super) fn count_restarts(unit: &str) -> u32 {
    let shown = command(&["show", "--property=NRestarts", "--value", unit]).output();
    shown.ok().and_then(|output| output.stdout.trim().parse().ok()).unwrap_or_default()
}

/// The last lines of a unit's journal.
pub(super) fn journal(unit: &str, lines: u32) -> String {
    let lines = format!("--lines={lines}");
    let output = Run::new("journalctl").args(["--unit", unit, &lines, "--output=cat"]).dir("/").output();
    output.map(|output| output.stdout).unwrap_or_default()
}

fn command(args: &[&str]) -> Run {
    Run::new("systemctl").args(args.iter().copied()).dir("/")
}

fn run(command: Run, args: &[&str]) -> Result<()> {
    let unit = args.last().copied().unwrap_or_default();
    command.succeed().map(drop).map_err(|error| journal(unit, 10).lines().fold(error, Error::evidence))
}
