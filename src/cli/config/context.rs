//! What every `turnup config` command is given: where the settings are, and how to say something.

use std::path::Path;
use std::sync::Arc;

use crate::cli::{Global, Printer};
use crate::config::{Settings, TreeSource};
use crate::error::{Error, Result};
use crate::forecast::{Purpose, Verdict};
use crate::wizard::ConfigurationCheck;

/// What every command is given.
pub(super) struct ConfigContext<'a> {
    pub(super) source: TreeSource,
    pub(super) global: &'a Global,
    pub(super) printer: &'a Printer,
}

impl ConfigContext<'_> {
    pub(super) fn path(&self) -> &Path {
        &self.global.config
    }

    /// The settings with flags and variables; the defaults when there is no file yet, unless one
    /// was named.
    pub(super) fn settings(&self) -> Result<Settings> {
        if self.global.config_is_named || self.path().exists() {
            return self.global.settings(&self.source);
        }
        self.printer.remark(&format!("{} does not exist: these are the defaults", self.path().display()));
        self.global.settings_or_default(&self.source)
    }

    /// What the one check says of these settings.
    pub(super) fn verdict(&self, settings: &Settings) -> Verdict {
        Verdict::of(settings, &self.source, &self.global.state_dir, Purpose::Hosts)
    }

    /// The one check, of any settings: what `turnup config check` says of the file.
    pub(super) fn check(&self) -> ConfigurationCheck {
        let (source, state_dir) = (self.source.clone(), self.global.state_dir.clone());
        Arc::new(move |settings| Verdict::of(settings, &source, &state_dir, Purpose::Hosts).problems)
    }

    /// Flags are for one run: writing them into the file would be a surprise, ignoring them as
    /// well.
    pub(super) fn refuse_flags(&self) -> Result<()> {
        if self.global.set.is_empty() {
            return Ok(());
        }
        Err(Error::usage("--set is for one run and never written into the file").hint("turnup config set NAME=VALUE"))
    }
}
