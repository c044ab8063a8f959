//! What the agent does about what it sees: pure functions of the observation and of what it tried
//! before. Nothing here looks at a host or changes one.

use std::time::Duration;

use super::status::HostState;

/// Between two looks at the host.
const INTERVAL: Duration = Duration::from_mins(1);
/// The longest pause between two repairs of the same thing.
const LONGEST: Duration = Duration::from_mins(30);

/// After so many rounds what is on its way is looked at less often.
pub(super) const PATIENT: u32 = 60;

/// The host at one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// Something else of turnup's works on it.
    Busy,
    /// No node config was applied to it to the end yet.
    Unconfigured,
    /// What an operator brought last was not applied to the end.
    Unfinished,
    /// It joins by its user data, and has no certificate yet.
    Unjoined,
    /// This disk is not mounted.
    DiskMissing(String),
    /// What it lost or had changed, each in a few words; nothing when it is as declared.
    Losses(Vec<String>),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostAction {
    /// Nothing; this is how the host stands, and what is wrong with it.
    Stay(HostState, Option<String>),
    /// Put these right.
    Repair(Vec<String>),
    /// Nothing about these yet: the last repair of the same did not last, or failed.
    Postpone(Vec<String>),
}

/// The last repair, as far as a further one depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempts {
    losses: Vec<String>,
    /// How often in a row the same was to be put right.
    count: u32,
    /// When it may be tried again, counted from the agent's start.
    not_before: Duration,
}

impl Attempts {
    /// After a repair of these losses that ended at this time. Twice the pause each time the same
    /// is lost again: two programs that disagree about a file must not write it every minute.
    pub(super) fn note(&mut self, losses: &[String], now: Duration) {
        self.count = if self.losses == losses { self.count.saturating_add(1) } else { 0 };
        losses.clone_into(&mut self.losses);
        self.not_before = now + pause(self.count);
    }

    /// After the host stayed as it was put right for as long as the next pause would be.
    fn is_over(&self, now: Duration) -> bool {
        now >= self.not_before + pause(self.count)
    }
}

/// How long the same thing is left alone after so many further repairs.
fn pause(count: u32) -> Duration {
    if count == 0 { Duration::ZERO } else { INTERVAL.saturating_mul(1 << count.min(10)).min(LONGEST) }
}

/// What follows from an observation at this time.
pub(super) fn decide(seen: Observation, attempts: &mut Attempts, now: Duration) -> HostAction {
    match seen {
        Observation::Busy => HostAction::Stay(HostState::Busy, None),
        Observation::Unconfigured => HostAction::Stay(HostState::Unconfigured, None),
        Observation::Unfinished => HostAction::Stay(HostState::Unfinished, None),
        Observation::Unjoined => HostAction::Stay(HostState::Unjoined, None),
        Observation::DiskMissing(path) => {
            HostAction::Stay(HostState::DiskMissing, Some(format!("{path} is not mounted")))
        }
        Observation::Losses(losses) if losses.is_empty() => {
            if attempts.is_over(now) {
                *attempts = Attempts::default();
            }
            HostAction::Stay(HostState::AsDeclared, None)
        }
        Observation::Losses(losses) if attempts.losses == losses && now < attempts.not_before => {
            HostAction::Postpone(losses)
        }
        Observation::Losses(losses) => HostAction::Repair(losses),
    }
}

/// The time to the next look: a minute, up to a tenth of it more or less, so that hosts which
/// booted together do not look together for ever.
pub(super) fn pause_after(random: u64) -> Duration {
    let spread = INTERVAL.as_millis() / 5;
    let extra = u128::from(random) % (spread + 1);
    let least = INTERVAL.as_millis() - spread / 2;
    Duration::from_millis(u64::try_from(least + extra).unwrap_or(u64::MAX))
}

/// The same while something is on its way: soon, and less soon where it does not come to an end.
pub(super) const fn pause_while_going(rounds: u32) -> Duration {
    Duration::from_secs(if rounds < PATIENT { 1 } else { 10 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn losses(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Whether these losses are repaired now.
    fn repairs(losses: &[String], attempts: &mut Attempts, now: Duration) -> bool {
        decide(Observation::Losses(losses.to_vec()), attempts, now) == HostAction::Repair(losses.to_vec())
    }

    #[test]
    fn nothing_is_repaired_while_others_are_responsible() {
        let disk = "/var/lib/etcd is not mounted";
        for (seen, state, problem) in [
            (Observation::Busy, HostState::Busy, None),
            (Observation::Unconfigured, HostState::Unconfigured, None),
            (Observation::Unfinished, HostState::Unfinished, None),
            (Observation::Unjoined, HostState::Unjoined, None),
            (Observation::DiskMissing("/var/lib/etcd".into()), HostState::DiskMissing, Some(disk.to_owned())),
            (Observation::Losses(Vec::new()), HostState::AsDeclared, None),
        ] {
            let decided = decide(seen, &mut Attempts::default(), Duration::ZERO);
            assert_eq!(decided, HostAction::Stay(state, problem));
        }
    }

    #[test]
    fn what_is_lost_again_and_again_is_repaired_ever_less_often() {
        let lost = losses(&["file /etc/a is missing"]);
        let (mut attempts, mut repaired) = (Attempts::default(), Vec::new());
        for minute in 0..120 {
            let now = INTERVAL * minute;
            if repairs(&lost, &mut attempts, now) {
                repaired.push(minute);
                attempts.note(&lost, now);
            }
        }
        assert_eq!(repaired, [0, 1, 3, 7, 15, 31, 61, 91]);
        // Another loss is another matter.
        assert!(repairs(&losses(&["file /etc/b is missing"]), &mut attempts, INTERVAL * 92));
    }

    #[test]
    fn a_host_that_stays_as_declared_starts_from_the_beginning() {
        let (lost, mut attempts) = (losses(&["file /etc/a is missing"]), Attempts::default());
        for minute in [0, 1, 3] {
            attempts.note(&lost, INTERVAL * minute);
        }
        let before = attempts.clone();
        decide(Observation::Losses(Vec::new()), &mut attempts, INTERVAL * 4);
        assert_eq!(attempts, before, "a look later it may only be lost again");
        decide(Observation::Losses(Vec::new()), &mut attempts, INTERVAL * 60);
        assert_eq!(attempts, Attempts::default());
    }

    proptest! {
        #[test]
        fn looks_are_a_minute_apart_and_never_at_once(random in any::<u64>()) {
            let pause = pause_after(random);
            prop_assert!((Duration::from_secs(54)..=Duration::from_secs(66)).contains(&pause));
        }

        #[test]
        fn no_loss_waits_longer_than_the_longest_pause(minutes in prop::collection::vec(0_u32..2000, 1..40)) {
            let (lost, mut attempts, mut now) = (losses(&["service a does not run"]), Attempts::default(), Duration::ZERO);
            for minute in minutes {
                now += INTERVAL * minute;
                if repairs(&lost, &mut attempts, now) {
                    attempts.note(&lost, now);
                }
                prop_assert!(repairs(&lost, &mut attempts, now + LONGEST));
            }
        }
    }
}
