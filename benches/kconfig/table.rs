//! The numbers as a table: one line a tool, the first of them the one that the others are compared
//! with.

use std::fmt::Write as _;

use reference::Stats;

/// One tool's numbers.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) stats: Stats,
    /// `None` without valgrind, or if it was not asked for.
    pub(crate) instructions: Option<u64>,
}

/// The table below its title.
pub(crate) fn render(title: &str, runs: usize, rows: &[Row]) -> String {
    let mut text = format!("\n{title} ({runs} runs)\n");
    writeln!(
        text,
        "  {:<28} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "", "wall min", "median", "cpu min", "median", "peak MiB", "M instr."
    )
    .unwrap();
    for row in rows {
        let ms = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
        let stats = &row.stats;
        let count = row.instructions.map_or("-".to_owned(), |count| format!("{:.1}", millions(count)));
        let times = [stats.wall_min, stats.wall_median, stats.cpu_min, stats.cpu_median].map(ms);
        let [wall, wall_median, cpu, cpu_median] = times;
        writeln!(
            text,
            "  {:<28} {wall:>9} {wall_median:>9} {cpu:>9} {cpu_median:>9} {:>9.1} {count:>10}",
            row.name,
            mib(stats.peak)
        )
        .unwrap();
    }
    for row in rows.iter().skip(1) {
        let first = &rows[0];
        let time = |of: fn(&Stats) -> std::time::Duration| {
            format!("{:.2}", of(&row.stats).as_secs_f64() / of(&first.stats).as_secs_f64())
        };
        let memory = format!("{:.2}", mib(row.stats.peak) / mib(first.stats.peak));
        let count = ratio(row.instructions, first.instructions).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(
            text,
            "  {:<28} {:>9} {:>9} {:>9} {:>9} {memory:>9} {count:>10}",
            format!("{} / {}", row.name, first.name),
            time(|stats| stats.wall_min),
            time(|stats| stats.wall_median),
            time(|stats| stats.cpu_min),
            time(|stats| stats.cpu_median),
        )
        .unwrap();
    }
    text
}

/// How many times the second the first is.
pub(crate) fn ratio(one: Option<u64>, other: Option<u64>) -> Option<f64> {
    Some(millions(one?) / millions(other?))
}

#[expect(clippy::cast_precision_loss, reason = "fifty-two bits are enough for three digits")]
fn millions(count: u64) -> f64 {
    count as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "fifty-two bits are enough for three digits")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
