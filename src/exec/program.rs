//! Where programs are.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The path on PATH, or where administration programs lie: a user's PATH may lack those
/// directories.
pub(super) fn locate(name: &OsStr) -> Option<PathBuf> {
    let mut paths = std::env::var_os("PATH").unwrap_or_default();
    if !paths.is_empty() {
        paths.push(":");
    }
    paths.push("/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
    which::which_in(name, Some::<OsString>(paths), Path::new("/")).ok()
}

/// util-linux's setpriv, when it is there and knows `--pdeathsig` (busybox's does not).
pub(super) fn setpriv() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let path = locate(OsStr::new("setpriv"))?;
        let probe = duct::cmd(&path, ["--pdeathsig", "KILL", "--", "true"]).unchecked();
        let status = probe.stdin_null().stdout_null().stderr_null().run().ok()?.status;
        status.success().then_some(path)
    });
    FOUND.as_deref()
}
