//! When a cluster counts as up. Only read here; `validate` and the addons' `wait` judge by it.

use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

/// The menu of validation, as typed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationSettings {
    /// So many nodes may be not Ready.
    pub max_unready_nodes: usize,
    /// How long what is not good yet is waited for.
    pub timeout: Duration,
}

impl ValidationSettings {
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            max_unready_nodes: settings.get_number("phase3.max_unready_nodes")?,
            timeout: settings.get_duration("phase3.validate_timeout")?.unwrap_or(Duration::from_mins(1)),
        })
    }
}
