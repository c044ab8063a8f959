//! How many hosts phase 2 works on at once, and how long phases 2 and 3 may take, as typed values.

use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

/// The limits of phases 2 and 3.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct TimeLimits {
    pub parallel_hosts: usize,
    pub host_timeout: Duration,
    pub timeout: Duration,
    /// `phase3.timeout`.
    pub addons: Duration,
}

impl TimeLimits {
    /// The default of `phase2.host_timeout`.
    pub const HOST_TIMEOUT: Duration = Duration::from_mins(15);
    /// The default of `phase3.timeout`.
    pub const ADDONS: Duration = Duration::from_mins(20);

    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            parallel_hosts: settings.get_number("phase2.parallel_hosts")?,
            host_timeout: settings.get_duration("phase2.host_timeout")?.unwrap_or(Self::HOST_TIMEOUT),
            timeout: settings.get_duration("phase2.timeout")?.unwrap_or(Duration::from_mins(90)),
            addons: settings.get_duration("phase3.timeout")?.unwrap_or(Self::ADDONS),
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::cluster::tests::{assert_reads, assert_refused};

    #[test]
    fn each_setting_reaches_its_field() {
        let minutes = Duration::from_mins;
        let default =
            TimeLimits { parallel_hosts: 10, host_timeout: minutes(15), timeout: minutes(90), addons: minutes(20) };
        let changes = [
            ("phase2.parallel_hosts", "3"),
            ("phase2.host_timeout", "20m"),
            ("phase2.timeout", "1h"),
            ("phase3.timeout", "30m"),
        ];
        let expected =
            TimeLimits { parallel_hosts: 3, host_timeout: minutes(20), timeout: minutes(60), addons: minutes(30) };
        let mut settings = assert_reads(TimeLimits::read, &default, &changes, &expected);
        let refused = [
            ("phase2.host_timeout", "59s", "less than a minute"),
            ("phase3.timeout", "59s", "less than a minute"),
            ("phase2.host_timeout", "61m", "is longer than 1h (phase2.timeout)"),
            ("phase2.host_timeout", "31m", "phase2.pki.token_lifetime"),
        ];
        assert_refused(&settings, &refused);
        settings.set_all(&[("phase2.parallel_hosts", "1")]).unwrap();
        let several = settings.set_all(&[("phase1.control_plane.count", "3")]).unwrap_err().render();
        assert!(several.contains("of 3 members of etcd"), "{several}");
    }
}
