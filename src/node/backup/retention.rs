//! Which backups go when there are more than are to be kept. Pure: it sees names and times, and
//! knows no disk.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How many backups are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// So many of the newest ones; at least one.
    pub recent: usize,
    /// Of those before them the last one of each day, for so many days that have one.
    pub daily: usize,
}

impl Retention {
    /// Those of these times that are not to be kept, the oldest first. The newest is always kept.
    pub(super) fn superseded(self, times: &[Timestamp]) -> Vec<Timestamp> {
        let mut times = times.to_vec();
        times.sort_unstable();
        let older = times.split_at(times.len().saturating_sub(self.recent.max(1))).0;
        // A day that still has a recent one has its last backup there already.
        let mut day = times.get(older.len()).copied().map(day_of);
        let mut days = 0;
        let mut gone = Vec::new();
        for time in older.iter().rev() {
            let is_last_of_day = day != Some(day_of(*time));
            day = Some(day_of(*time));
            if is_last_of_day && days < self.daily {
                days += 1;
            } else {
                gone.push(*time);
            }
        }
        gone.reverse();
        gone
    }
}

fn day_of(time: Timestamp) -> jiff::civil::Date {
    time.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(hours * 3600).unwrap()
    }

    fn kept(retention: Retention, hours: impl Iterator<Item = i64>) -> Vec<i64> {
        let times: Vec<Timestamp> = hours.map(at).collect();
        let gone = retention.superseded(&times);
        times.into_iter().filter(|time| !gone.contains(time)).map(|time| time.as_second() / 3600).collect()
    }

    #[test]
    fn the_newest_stay_and_of_older_days_the_last_one() {
        let retention = Retention { recent: 3, daily: 2 };
        assert_eq!(kept(retention, 0..100), [71, 95, 97, 98, 99]);
        assert_eq!(kept(Retention { recent: 3, daily: 0 }, 0..100), [97, 98, 99]);
        assert_eq!(kept(Retention { recent: 200, daily: 0 }, 0..100), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn hour_by_hour_the_same_stay_as_at_once() {
        let retention = Retention { recent: 24, daily: 3 };
        let mut there = Vec::new();
        for hour in 0..400 {
            there.push(hour);
            there = kept(retention, there.into_iter());
        }
        assert_eq!(there, kept(retention, 0..400));
    }

    proptest! {
        #[test]
        fn what_goes_was_there_and_the_newest_never_goes(
            hours in prop::collection::btree_set(0_i64..5000, 1..80), recent in 0_usize..40, daily in 0_usize..20,
        ) {
            let times: Vec<Timestamp> = hours.iter().copied().map(at).collect();
            let retention = Retention { recent, daily };
            let gone = retention.superseded(&times);
            let distinct: BTreeSet<_> = gone.iter().collect();
            prop_assert_eq!(distinct.len(), gone.len());
            prop_assert!(gone.iter().all(|time| times.contains(time)));
            let newest = &times[times.len().saturating_sub(recent.max(1))..];
            prop_assert!(gone.iter().all(|time| !newest.contains(time)));
            let left = times.len() - gone.len();
            prop_assert!(left <= recent.max(1) + daily);
            prop_assert!(left >= times.len().min(recent.max(1)));
        }
    }
}
