//! Programs in Go that tests bring with them.
#![expect(clippy::disallowed_methods, reason = "it calls Go's own tool")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program in this directory of `tests`, and returns where it is under this name; other
/// processes of tests may do the same meanwhile.
pub(crate) fn build(name: &str, source: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let own = path.with_extension(std::process::id().to_string());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let built = Command::new("go").args(["build", "-trimpath", "-o"]).arg(&own).arg(".").current_dir(source).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    fs_err::rename(own, &path).unwrap();
    path
}
