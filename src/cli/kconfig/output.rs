//! Writes the files that the tools of `turnup kconfig` are asked to write: each as a whole or not
//! at all.

use std::path::Path;

use crate::atomic_file::{self, FileMode};
use crate::error::{Class, Context as _, Error, Result};

/// Replaces a file atomically: a reader sees all of the old or all of the new content. Links stay
/// links, and an existing file keeps its mode.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let target = match fs_err::canonicalize(path) {
        Ok(target) => target,
        // There is no such file yet.
        Err(_) => path.to_owned(),
    };
    let parent = atomic_file::directory_of(&target);
    if !parent.is_dir() {
        return Err(Error::new(Class::Config, format!("cannot write {}: there is no such directory", path.display()))
            .hint(format!("create it first: mkdir -p {}", parent.display())));
    }
    if target.is_dir() {
        return Err(Error::new(Class::Config, format!("cannot write {}: it is a directory", path.display())));
    }
    atomic_file::replace(&target, content, FileMode::Kept)
        .context(format!("cannot write {}; it was left as it was", path.display()))
}
