//! What was measured, as a table for people and as JSON for programs. Pure.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::report::Table;

use super::milestone::Milestone;
use super::statistics::Spread;
use super::{BenchPlan, Round, Sample, Side, Start};

/// Name and version of the JSON form.
const SCHEMA: &str = "turnup.bench/1";

/// All tables of one measurement.
#[derive(Clone, Debug)]
pub(crate) struct BenchReport {
    kubernetes: String,
    runs: usize,
    workers: u32,
    cpus: usize,
    tables: Vec<(Start, Vec<Row>)>,
}

/// One line: a milestone, or the time for the hosts, which is the same for both tools.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    name: &'static str,
    turnup: Option<Spread>,
    kubeadm: Option<Spread>,
    ratio: Option<f64>,
}

/// The name of the row that is not a milestone.
const HOSTS: &str = "hosts up (before the clock starts)";

impl Row {
    fn new(name: &'static str, rounds: &[Round], of: impl Fn(&Sample) -> Option<f64>) -> Self {
        let complete = |samples: Vec<f64>| if samples.len() == rounds.len() { Spread::of(samples) } else { None };
        let turnup = complete(rounds.iter().filter_map(|round| of(&round.turnup)).collect());
        let kubeadm = complete(rounds.iter().filter_map(|round| of(round.kubeadm.as_ref()?)).collect());
        let ratio = turnup.as_ref().zip(kubeadm.as_ref()).and_then(|(ours, theirs)| Spread::paired_ratio(ours, theirs));
        Self { name, turnup, kubeadm, ratio }
    }
}

impl BenchReport {
    pub(super) fn new(plan: &BenchPlan, kubernetes: String, tables: &[(Start, Vec<Round>)]) -> Self {
        let rows = |rounds: &[Round]| {
            let milestones = Milestone::ALL.into_iter();
            let mut rows: Vec<Row> = milestones
                .map(|milestone| Row::new(milestone.name(), rounds, |sample| sample.times.get(milestone)))
                .collect();
            rows.push(Row { ratio: None, ..Row::new(HOSTS, rounds, |sample| Some(sample.hosts)) });
            rows
        };
        Self {
            kubernetes,
            runs: plan.runs,
            workers: plan.workers,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            tables: tables.iter().map(|(start, rounds)| (*start, rows(rounds))).collect(),
        }
    }

    /// The tables for people.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let hosts = match self.workers {
            0 => "1 host".to_owned(),
            1 => "1 control-plane host and 1 worker".to_owned(),
            count => format!("1 control-plane host and {count} workers"),
        };
        let mut text = format!(
            "Kubernetes {}, {hosts}, {} runs, {} processors\nseconds: min, median, max; ratio: turnup / kubeadm, median of pairs\n",
            self.kubernetes, self.runs, self.cpus
        );
        for (start, rows) in &self.tables {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{}\n{}", start.describe(), render(rows));
        }
        text
    }

    /// The same for programs.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let table = |(start, rows): &(Start, Vec<Row>)| json!({"start": start.name(), "rows": rows});
        json!({
            "schema": SCHEMA,
            "kubernetes": self.kubernetes,
            "runs": self.runs,
            "workers": self.workers,
            "processors": self.cpus,
            "unit": "seconds",
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
        })
    }

    /// An error unless turnup was ahead of kubeadm at the last milestone of every table.
    pub(crate) fn assert_ahead(&self) -> Result<()> {
        for (start, rows) in &self.tables {
            let last = Milestone::Answer.name();
            let ratio = rows.iter().find(|row| row.name == last).and_then(|row| row.ratio);
            match ratio {
                Some(ratio) if ratio < 1.0 => {}
                Some(ratio) => {
                    return Err(Error::permanent(format!(
                        "turnup is not ahead of kubeadm: {ratio:.2} times its time to {last}"
                    ))
                    .evidence(start.describe()));
                }
                None => {
                    return Err(
                        Error::usage("there is nothing to compare").hint("turnup bench --peer kubeadm --assert")
                    );
                }
            }
        }
        Ok(())
    }
}

fn render(rows: &[Row]) -> String {
    let peer = rows.iter().any(|row| row.kubeadm.is_some());
    let (ours, theirs) = (Side::Turnup.name(), Side::Kubeadm.name());
    let headings = ["milestone", ours, "median", "max", theirs, "median", "max", "ratio"];
    let count = if peer { headings.len() } else { 4 };
    let mut table = (1..count).fold(Table::new(&headings[..count]), Table::right);
    for row in rows {
        let mut cells = vec![row.name.to_owned()];
        cells.extend(numbers(row.turnup.as_ref()));
        if peer {
            cells.extend(numbers(row.kubeadm.as_ref()));
            cells.push(row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
        }
        table.row(cells);
    }
    table.render()
}

fn numbers(spread: Option<&Spread>) -> [String; 3] {
    spread.map_or_else(
        || ["-", "-", "-"].map(str::to_owned),
        |spread| [spread.min, spread.median, spread.max].map(|seconds| format!("{seconds:.1}")),
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::bench::milestone::Times;
    use crate::phase::{Event, What};

    fn sample(seconds: f64) -> Sample {
        let reached = |name: &str| Event { seconds, event: What::Milestone { step: "s".into(), name: name.into() } };
        Sample { hosts: 4.0, times: Times::read(&[reached("certificates"), reached("first pod answers DNS")], 0.0) }
    }

    fn report(pairs: &[(f64, Option<f64>)]) -> BenchReport {
        let round = |(ours, theirs): &(f64, Option<f64>)| Round { turnup: sample(*ours), kubeadm: theirs.map(sample) };
        let plan = BenchPlan {
            runs: pairs.len(),
            workers: 0,
            starts: vec![Start::Preloaded],
            peer: true,
            subnet: String::new(),
            peer_subnet: String::new(),
            dir: std::path::PathBuf::new(),
        };
        let rounds = pairs.iter().map(round).collect();
        BenchReport { cpus: 2, ..BenchReport::new(&plan, "1.2.3".into(), &[(Start::Preloaded, rounds)]) }
    }

    #[test]
    fn the_table_shows_both_sides_and_what_was_not_reached() {
        insta::assert_snapshot!(report(&[(10.0, Some(20.0)), (12.0, Some(16.0)), (11.0, Some(20.0))]).text());
    }

    #[test]
    fn without_a_peer_there_is_nothing_to_assert() {
        let report = report(&[(10.0, None)]);
        assert!(!report.text().contains("ratio  "));
        assert_eq!(report.assert_ahead().unwrap_err().class(), crate::Class::Usage);
    }

    #[test]
    fn ahead_means_less_time_to_the_last_milestone() {
        assert!(report(&[(10.0, Some(20.0))]).assert_ahead().is_ok());
        let error = report(&[(21.0, Some(20.0))]).assert_ahead().unwrap_err();
        assert!(error.message().contains("1.05 times"), "{}", error.message());
    }

    #[test]
    fn json_names_its_schema_and_has_every_sample() {
        let value = report(&[(10.0, Some(20.0)), (12.0, Some(16.0))]).json();
        assert_eq!(value["schema"], "turnup.bench/1");
        let row = &value["tables"][0]["rows"][6];
        assert_eq!(row["name"], "first pod answers DNS");
        assert_eq!(row["kubeadm"]["samples"], json!([20.0, 16.0]));
        assert_eq!(row["ratio"], json!(0.625));
        assert_eq!(value["tables"][0]["rows"][1]["turnup"], Value::Null);
    }
}
