//! Keys of SSH that a cluster has of its own.

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::exec::Run;
use crate::phase::Cx;
use crate::state::Store;

/// Makes a key and its public half, or keeps it. ssh-keygen may be killed between the halves, or in
/// one: it writes beside their places, and they come to them whole, the private one last.
pub(super) fn ensure_key(store: &Store, file: &str, cx: &Cx) -> Result<()> {
    let (public, new) = (format!("{file}.pub"), format!("{file}.new"));
    if store.read(file)?.is_none() || store.read(&public)?.is_none() {
        store.remove(&new)?;
        let run = Run::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "turnup", "-f"]);
        run.arg(store.path(&new)).dir(store.dir()).log(cx.log_path()).succeed()?;
        let made = |file: &str| -> Result<Zeroizing<Vec<u8>>> {
            let bytes = store.read(file)?.ok_or_else(|| Error::bug(format!("ssh-keygen made no {file}")))?;
            Ok(Zeroizing::new(bytes))
        };
        store.write_file(&public, &made(&format!("{new}.pub"))?, 0o600)?;
        store.write_file(file, &made(&new)?, 0o600)?;
    }
    store.remove(&new)?;
    store.remove(format!("{new}.pub"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::phase::Sink;

    #[test]
    fn a_key_is_whole_or_recreated() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.create_dir("ssh").unwrap();
        let log = dir.path().join("log");
        let ensure = || ensure_key(&store, "ssh/key", &Cx::detached("keys", Sink::channel().0, &log, Duration::ZERO));
        let names = || {
            let entries = fs_err::read_dir(dir.path().join("ssh")).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
            names.collect::<BTreeSet<String>>()
        };
        // What a killed ssh-keygen may leave: a private key, and half of the public one.
        store.write_file("ssh/key.new", b"private", 0o600).unwrap();
        store.write_file("ssh/key.new.pub", b"ssh-ed", 0o600).unwrap();
        ensure().unwrap();
        assert_eq!(names(), BTreeSet::from(["key".into(), "key.pub".into()]));
        let first = store.read("ssh/key").unwrap();
        ensure().unwrap();
        assert_eq!(store.read("ssh/key").unwrap(), first, "a whole key is kept");
        // The public half is written first, so alone it has no private half.
        store.remove("ssh/key").unwrap();
        ensure().unwrap();
        let public = String::from_utf8(store.read("ssh/key.pub").unwrap().unwrap()).unwrap();
        assert!(public.starts_with("ssh-ed25519 ") && public.ends_with(" turnup\n"), "{public}");
    }
}
