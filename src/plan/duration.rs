//! How long a run will take, from how long its steps took the last time. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::phase::{PlannedStep, StepId};

/// An estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Estimate {
    /// Seconds of the longest chain of steps of each phase, one phase after another.
    pub seconds: f64,
    /// How many of the steps never ran, so that their duration is unknown.
    pub never_ran: usize,
}

impl Estimate {
    /// For those of the steps that are chosen; the others take no time. The steps are in an order
    /// in which they could run.
    #[must_use]
    pub(crate) fn of(steps: &[PlannedStep], chosen: impl Fn(&PlannedStep) -> bool) -> Self {
        let mut ends: BTreeMap<&StepId, f64> = BTreeMap::new();
        let mut phases: BTreeMap<&str, f64> = BTreeMap::new();
        let mut never_ran = 0;
        for step in steps {
            let begin = step.needs.iter().filter_map(|need| ends.get(need)).fold(0.0_f64, |a, b| a.max(*b));
            let runs = chosen(step);
            never_ran += usize::from(runs && step.seconds.is_none());
            let end = begin + if runs { step.seconds.unwrap_or_default() } else { 0.0 };
            ends.insert(&step.id, end);
            let phase = phases.entry(step.id.phase()).or_default();
            *phase = phase.max(end);
        }
        Self { seconds: phases.values().sum(), never_ran }
    }

    /// `about 14 s`, as far as it is known.
    #[must_use]
    pub(crate) fn describe(&self) -> String {
        let seconds = self.seconds.ceil();
        match (seconds > 0.0, self.never_ran) {
            (true, 0) => format!("about {seconds:.0} s"),
            (true, steps) => format!("about {seconds:.0} s and the time of {steps} steps that never ran"),
            (false, 0) => "no time".to_owned(),
            (false, steps) => format!("unknown: {steps} steps never ran"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::collections::BTreeSet;

    use super::*;
    use crate::change::Preview;
    use crate::phase::Decision;

    fn step(id: &str, needs: &[&str], seconds: Option<f64>) -> PlannedStep {
        PlannedStep {
            id: id.parse().unwrap(),
            step: String::new(),
            host: None,
            decision: Decision::Run,
            why: String::new(),
            needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
            preview: Preview::default(),
            inputs: BTreeMap::new(),
            unknown_inputs: BTreeSet::new(),
            seconds,
        }
    }

    #[test]
    fn the_longest_chain_counts_and_phases_follow_each_other() {
        let steps = [
            step("a/one", &[], Some(1.0)),
            step("a/short", &["a/one"], Some(2.0)),
            step("a/long", &["a/one"], Some(5.0)),
            step("b/first", &[], Some(3.0)),
            step("b/new", &["b/first"], None),
        ];
        let all = Estimate::of(&steps, |_| true);
        assert_eq!((all.seconds, all.never_ran), (9.0, 1));
        assert_eq!(all.describe(), "about 9 s and the time of 1 steps that never ran");
        assert_eq!(Estimate::of(&steps, |step| step.id != "a/long" && step.id != "b/new").describe(), "about 6 s");
        assert_eq!(Estimate::of(&[], |_| true).describe(), "no time");
    }
}
