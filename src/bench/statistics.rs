//! Minimum, median and maximum of a few samples, and ratios in pairs. Pure.

use serde::Serialize;

/// A few samples in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    /// The smallest.
    pub min: f64,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
    /// All, in the order in which they were taken.
    pub samples: Vec<f64>,
}

impl Spread {
    /// The spread of these samples; none of nothing.
    #[must_use]
    pub(super) fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let samples: Vec<f64> = samples.into_iter().collect();
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median = if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) };
        Some(Self { min: sorted[0], median, max: sorted[sorted.len() - 1], samples })
    }

    /// The median of the ratios of pairs that were taken one right after the other: the machine's
    /// speed drifts from pair to pair.
    #[must_use]
    pub(super) fn paired_ratio(ours: &Self, theirs: &Self) -> Option<f64> {
        if ours.samples.len() != theirs.samples.len() {
            return None;
        }
        let pairs = ours.samples.iter().zip(&theirs.samples).filter(|(_, theirs)| **theirs > 0.0);
        Self::of(pairs.map(|(ours, theirs)| ours / theirs)).map(|ratios| ratios.median)
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::float_cmp,
        reason = "a test that cannot go on fails; these numbers are exact"
    )]

    use super::*;

    #[test]
    fn median_of_odd_and_even_numbers_of_samples() {
        let odd = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.min, odd.median, odd.max), (1.0, 2.0, 3.0));
        assert_eq!(odd.samples, [3.0, 1.0, 2.0]);
        assert_eq!(Spread::of([4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([7.0]).unwrap().median, 7.0);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_ratio_compares_only_what_was_measured_together() {
        let ours = Spread::of([1.0, 4.0, 3.0]).unwrap();
        let theirs = Spread::of([2.0, 8.0, 4.0]).unwrap();
        // 0.5, 0.5 and 0.75: the slow second pair does not move it.
        assert_eq!(Spread::paired_ratio(&ours, &theirs), Some(0.5));
        assert_eq!(Spread::paired_ratio(&ours, &Spread::of([1.0]).unwrap()), None);
    }
}
