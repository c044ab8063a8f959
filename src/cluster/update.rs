//! How a change reaches the nodes of a running cluster, as typed values.

use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

/// How nodes are updated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct UpdateSettings {
    pub max_unavailable: usize,
    /// How long pods may take to go; none where they are not asked to.
    pub drain_timeout: Option<Duration>,
    pub force_drain: bool,
    pub pause: Duration,
    pub validate: bool,
}

impl UpdateSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let timeout = settings.get_duration("phase2.update.drain_timeout")?.unwrap_or(Duration::from_mins(10));
        Ok(Self {
            max_unavailable: settings.get_number("phase2.update.max_unavailable")?,
            drain_timeout: settings.get_bool("phase2.update.drain")?.then_some(timeout),
            force_drain: settings.get_bool("phase2.update.force_drain")?,
            pause: settings.get_duration("phase2.update.pause")?.unwrap_or_default(),
            validate: settings.get_bool("phase2.update.validate")?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::cluster::tests::assert_reads;

    #[test]
    fn each_setting_reaches_its_field() {
        let default = UpdateSettings {
            max_unavailable: 1,
            drain_timeout: Some(Duration::from_mins(10)),
            force_drain: false,
            pause: Duration::from_secs(5),
            validate: true,
        };
        let changes = [
            ("phase2.update.max_unavailable", "3"),
            ("phase2.update.drain_timeout", "90s"),
            ("phase2.update.force_drain", "y"),
            ("phase2.update.pause", "0s"),
            ("phase2.update.validate", "n"),
        ];
        let expected = UpdateSettings {
            max_unavailable: 3,
            drain_timeout: Some(Duration::from_secs(90)),
            force_drain: true,
            pause: Duration::ZERO,
            validate: false,
        };
        let mut settings = assert_reads(UpdateSettings::read, &default, &changes, &expected);
        settings.set_all(&[("phase2.update.drain", "n")]).unwrap();
        let update = UpdateSettings::read(&settings).unwrap();
        assert_eq!((update.drain_timeout, update.force_drain), (None, false));
    }
}
