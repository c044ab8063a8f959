//! One writer: a live owner is named, a dead one does not stand in the way.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test plays the person who starts turnup twice")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use turnup::Class;
use turnup::state::Store;

fn hold(dir: &Path) -> Child {
    let child =
        Command::new(env!("CARGO_BIN_EXE_fake-engine")).arg(dir).arg("hold").stdout(Stdio::null()).spawn().unwrap();
    let file = dir.join("state/lock");
    let end = Instant::now() + Duration::from_mins(5);
    while fs_err::read_to_string(&file).unwrap_or_default().is_empty() {
        assert!(Instant::now() < end, "the lock was never taken");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn a_live_owner_is_named_and_a_dead_one_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = hold(dir.path());
    let store = Store::open(dir.path().join("state")).unwrap();
    let error = store.lock("turnup up").unwrap_err();
    assert_eq!(error.class(), Class::Locked);
    assert!(error.message().starts_with(&format!("`fake-engine` (process {} on ", child.id())), "{error}");
    assert_eq!(error.next(), Some(format!("wait until it has ended, or stop it: kill -INT {}", child.id()).as_str()));
    // Reading needs no lock.
    assert!(store.state().is_ok());

    child.kill().unwrap();
    child.wait().unwrap();
    let lock = store.lock("turnup up").unwrap();
    assert_eq!(lock.previous().map(|owner| owner.pid), Some(child.id()));
    drop(lock);
    assert_eq!(store.lock("turnup up").unwrap().previous(), None);
}
