//! Writes the files that the tools of `turnup kconfig` are asked to write: each as a whole or not at all.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::{Class, Context as _, Error, Result};

/// Replaces a file atomically: a reader sees all of the old or all of the new content. Links stay
/// links, and an existing file keeps its mode.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let target = match fs_err::canonicalize(path) {
        Ok(target) => target,
        // There is no such file yet.
        Err(_) => path.to_owned(),
    };
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(Error::new(Class::Config, format!("cannot write {}: there is no such directory", path.display()))
            .hint(format!("create it first: mkdir -p {}", parent.display())));
    }
    if target.is_dir() {
        return Err(Error::new(Class::Config, format!("cannot write {}: it is a directory", path.display())));
    }
    let left_alone = || format!("cannot write {}; it was left as it was", path.display());
    let existing = fs_err::metadata(&target).ok().map(|metadata| metadata.permissions());
    let permissions = existing.unwrap_or_else(|| std::fs::Permissions::from_mode(0o644));
    let mut temporary = tempfile::Builder::new()
        .prefix(".turnup-kconfig.")
        .permissions(permissions.clone())
        .tempfile_in(parent)
        .context(left_alone())?;
    // A mask of the user is for new files.
    if target.exists() {
        temporary.as_file().set_permissions(permissions).context(left_alone())?;
    }
    temporary.write_all(content).context(left_alone())?;
    temporary.as_file().sync_all().context(left_alone())?;
    temporary.persist(&target).map_err(|error| error.error).context(left_alone())?;
    Ok(())
}
