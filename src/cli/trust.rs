//! Whose the files of the working directory are that decide what turnup does: a directory of
//! another user is refused, and what replaces a part of turnup is named.

use std::path::{Path, PathBuf};

use crate::artifacts::LOCK_FILE;
use crate::config::TreeSource;
use crate::error::{Context as _, Result};
use crate::input;

use super::{Global, Printer};

/// Refuses what another user could have written, and says what of this directory replaces what is
/// built in.
pub(super) fn look_around(global: &Global, printer: &Printer) -> Result<()> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    require_own_state(&global.state_dir)?;
    let replaced = replaced(&work_dir);
    for name in &replaced {
        input::require_trusted(&PathBuf::from(name.trim_end_matches('/')))?;
    }
    if !replaced.is_empty() {
        printer.remark(&format!("this directory replaces what is built into turnup: {}", replaced.join(", ")));
    }
    Ok(())
}

/// The parts of turnup that this directory replaces.
pub(super) fn replaced(work_dir: &Path) -> Vec<&'static str> {
    let lock = work_dir.join(LOCK_FILE).exists().then_some(LOCK_FILE);
    TreeSource::find(work_dir).replaced().into_iter().chain(lock).collect()
}

/// Refuses a directory of clusters that another user owns or may write to, and a cluster's own in
/// it.
pub(super) fn require_own_state(state_dir: &Path) -> Result<()> {
    input::require_own_dir(state_dir)?;
    for entry in fs_err::read_dir(state_dir).into_iter().flatten() {
        input::require_own_dir(&entry?.path())?;
    }
    Ok(())
}
