//! The time that a phase and each of its hosts have left. It stops nothing by itself: steps end by
//! their deadlines, and the engine begins none once the phase's time is over.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Limits;
use crate::{Class, Error, Result};

/// What has run down of the limits of one phase.
pub(super) struct Clock {
    limits: Limits,
    start: Instant,
    /// How long the steps of each host have worked.
    spent: Mutex<BTreeMap<String, Duration>>,
}

impl Clock {
    /// Starts now.
    pub(super) fn start(limits: &Limits) -> Self {
        Self { limits: limits.clone(), start: Instant::now(), spent: Mutex::default() }
    }

    /// Whether the phase has no time left.
    pub(super) fn is_over(&self) -> bool {
        self.limits.phase.is_some_and(|(limit, _)| self.start.elapsed() >= limit)
    }

    /// Until when a step that has so much time may work; an error where its host has none left.
    pub(super) fn deadline(&self, own: Duration, host: Option<&str>) -> Result<Instant> {
        let now = Instant::now();
        let mut deadline = now + own;
        if let Some((limit, _)) = self.limits.phase {
            deadline = deadline.min(self.start + limit);
        }
        if let (Some((limit, setting)), Some(host)) = (self.limits.host, host) {
            let left = limit.saturating_sub(self.spent(host));
            if left.is_zero() {
                return Err(Error::new(Class::Transient, host_is_late(host, limit, setting)));
            }
            deadline = deadline.min(now + left);
        }
        Ok(deadline)
    }

    /// A step of a host has worked so long.
    pub(super) fn spend(&self, host: Option<&str>, time: Duration) {
        let Some(host) = host else { return };
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        *spent.entry(host.to_owned()).or_default() += time;
    }

    /// The failure of a step with the limit that may have caused it.
    pub(super) fn explain(&self, error: Error, host: Option<&str>) -> Error {
        if error.class() == Class::Interrupted {
            return error;
        }
        if let (true, Some((limit, setting))) = (self.is_over(), self.limits.phase) {
            return error.evidence(format!("the phase has used its {limit:?} ({setting})"));
        }
        match (self.limits.host, host) {
            (Some((limit, setting)), Some(host)) if self.spent(host) >= limit => {
                error.evidence(host_is_late(host, limit, setting))
            }
            _ => error,
        }
    }

    /// The error of a phase that has so many steps left when its time is over.
    pub(super) fn over(&self, left: usize) -> Option<Error> {
        let (limit, setting) = self.limits.phase.filter(|_| left > 0 && self.is_over())?;
        Some(Error::new(
            Class::Transient,
            format!("stopped after {limit:?} ({setting}); {left} steps have not started"),
        ))
    }

    fn spent(&self, host: &str) -> Duration {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).get(host).copied().unwrap_or_default()
    }
}

fn host_is_late(host: &str, limit: Duration, setting: &str) -> String {
    format!("the steps of {host} have worked for {limit:?} ({setting})")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn each_host_has_its_own_time_and_all_share_the_phases() {
        let minutes = Duration::from_mins;
        let limits =
            Limits { phase: Some((minutes(60), "a.phase")), host: Some((minutes(15), "a.host")), parallel: None };
        let clock = Clock::start(&limits);
        let left = |own, host| clock.deadline(own, host).map(|end| end - Instant::now());
        clock.spend(Some("a"), minutes(10));
        clock.spend(None, minutes(10));
        assert!(left(minutes(20), Some("a")).unwrap() <= minutes(5));
        assert!(left(minutes(20), Some("b")).unwrap() > minutes(14));
        assert!(left(minutes(2), Some("b")).unwrap() <= minutes(2));
        assert!(left(minutes(90), None).unwrap() <= minutes(60));
        clock.spend(Some("a"), minutes(5));
        let late = left(minutes(20), Some("a")).unwrap_err();
        assert_eq!(late.message(), "the steps of a have worked for 900s (a.host)");
        assert!(left(minutes(20), Some("b")).is_ok() && !clock.is_over() && clock.over(3).is_none());
        let over = Clock::start(&Limits { phase: Some((Duration::ZERO, "a.phase")), ..Limits::default() });
        assert!(over.is_over() && over.over(0).is_none());
        assert_eq!(over.over(3).unwrap().message(), "stopped after 0ns (a.phase); 3 steps have not started");
    }
}
