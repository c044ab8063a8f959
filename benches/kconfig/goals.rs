//! What the numbers should be, next to what they are. With `--assert` a goal that is missed, or was
//! not measured, is a failure.

use std::fmt::Write as _;
use std::time::Duration;

use reference::Missing;

use crate::table::{Row, ratio};

/// Cost that grows with the size and a little more: caches of the processor are smaller than the
/// larger trees.
const LINEAR: f64 = 1.25;

/// All goals so far.
#[derive(Default)]
pub(crate) struct Goals {
    lines: Vec<(bool, String)>,
}

impl Goals {
    /// The second row's instructions are at most this part of the first's.
    pub(crate) fn instructions(&mut self, what: &str, rows: &[Row], most: f64) {
        let measured = ratio(rows[1].instructions, rows[0].instructions);
        self.judge(&format!("{what}: instructions"), measured, most);
    }

    /// The same of CPU time, by the cheapest runs.
    pub(crate) fn cpu(&mut self, what: &str, rows: &[Row], most: f64) {
        let measured = part(rows[1].stats.cpu_min, rows[0].stats.cpu_min);
        self.judge(&format!("{what}: CPU time"), Some(measured), most);
    }

    /// The same of the time a user waits, by the medians.
    pub(crate) fn wall(&mut self, what: &str, theirs: &Row, ours: &Row, most: f64) {
        let measured = part(ours.stats.wall_median, theirs.stats.wall_median);
        self.judge(&format!("{what}: wall time"), Some(measured), most);
    }

    /// The second row's peak is at most this part of the first's.
    pub(crate) fn memory(&mut self, what: &str, rows: &[Row], most: f64) {
        let measured = ratio(Some(rows[1].stats.peak), Some(rows[0].stats.peak));
        self.judge(&format!("{what}: peak memory"), measured, most);
    }

    /// Sixteen times the size costs sixteen times the instructions, and so between; the second rows
    /// are ours.
    pub(crate) fn linear(&mut self, what: &str, cost: &[(u64, Vec<Row>)]) {
        for pair in cost.windows(2) {
            let [(small, before), (large, after)] = pair else { continue };
            let grown = ratio(after[1].instructions, before[1].instructions);
            let size = ratio(Some(*large), Some(*small));
            let measured = grown.zip(size).map(|(grown, size)| grown / size);
            self.judge(&format!("{what}: from {small} to {large}, instructions for a symbol"), measured, LINEAR);
        }
    }

    /// What a symbol costs in one long file next to a tree of as many: both have 4,000, and the
    /// same C tool tells the size.
    pub(crate) fn same_cost_for_a_symbol(&mut self, what: &str, tree: &[Row], flat: &[Row]) {
        let of = |rows: &[Row]| ratio(rows[1].instructions, rows[0].instructions);
        let measured = of(flat).zip(of(tree)).map(|(flat, tree)| flat / tree);
        self.judge(&format!("{what}: instructions, as a part of C's, next to the tree's"), measured, LINEAR);
    }

    /// A whole section that could not be measured.
    pub(crate) fn unmeasured(&mut self, what: &str, why: &Missing) {
        self.lines.push((false, format!("{what}: not measured: {why}")));
    }

    fn judge(&mut self, what: &str, measured: Option<f64>, most: f64) {
        let line = match measured {
            Some(measured) => format!("{what}: {measured:.3}, at most {most:.3}"),
            None => format!("{what}: not measured, at most {most:.3}"),
        };
        self.lines.push((measured.is_some_and(|measured| measured <= most), line));
    }

    /// Whether each was measured and is met.
    pub(crate) fn are_met(&self) -> bool {
        self.lines.iter().all(|(met, _)| *met)
    }

    /// One line a goal.
    pub(crate) fn report(&self) -> String {
        self.lines.iter().fold(String::from("\ngoals, as parts of what the C tool needs\n"), |mut text, (met, line)| {
            writeln!(text, "  {} {line}", if *met { "met   " } else { "MISSED" }).unwrap_or_default();
            text
        })
    }
}

fn part(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
