//! Files of state: torn, damaged, newer, unwritable, without space. Each is a clear error, and
//! nothing is overwritten.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;
use turnup::state::{Credential, JournalEntry, Outcome, Store};
use turnup::{Class, Error};

use crate::skip::skip;

fn done(step: &str, digest: &str) -> JournalEntry {
    let inputs = BTreeMap::from([("phase1.num_nodes".to_owned(), "x".to_owned())]);
    JournalEntry::Outcome { step: step.into(), outcome: Outcome::Done { digest: digest.into(), inputs, elapsed_ms: 5 } }
}

fn intent(step: &str) -> JournalEntry {
    JournalEntry::Intent { step: step.into(), digest: "d".into() }
}

/// A store with one finished and one unfinished step, closed in order.
fn filled(dir: &Path) -> Store {
    let store = Store::open(dir).unwrap();
    let lock = store.lock("test").unwrap();
    for entry in [intent("a/one"), done("a/one", "d1"), intent("a/two")] {
        store.record(&lock, entry).unwrap();
    }
    store.flush(&lock).unwrap();
    Store::open(dir).unwrap()
}

fn shown(error: &Error, dir: &Path) -> String {
    error.render().replace(&dir.display().to_string(), "DIR")
}

fn append(path: &Path, text: &str) {
    fs_err::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn state_is_snapshot_plus_journal() {
    let dir = tempfile::tempdir().unwrap();
    let state = filled(dir.path()).state().unwrap();
    assert_eq!(state.steps.keys().collect::<Vec<_>>(), ["a/one"]);
    assert_eq!(state.open.keys().collect::<Vec<_>>(), ["a/two"]);
    // Without the snapshot the journal alone says the same.
    fs_err::remove_file(dir.path().join("state.json")).unwrap();
    let replayed = Store::open(dir.path()).unwrap().state().unwrap();
    assert_eq!((replayed.steps, replayed.open), (state.steps, state.open));
}

#[test]
fn a_torn_line_is_cut_off_by_the_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    append(&store.path("journal.jsonl"), "{\"v\":1,\"seq\":4,\"at\":\"2026-");
    assert_eq!(store.state().unwrap().seq, 3);
    let lock = store.lock("test").unwrap();
    store.record(&lock, done("a/two", "d2")).unwrap();
    let text = fs_err::read_to_string(store.path("journal.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    assert!(Store::open(dir.path()).unwrap().state().unwrap().open.is_empty());
}

#[test]
fn a_damaged_state_is_refused_kept_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let before = store.state().unwrap();
    fs_err::write(store.path("state.json"), "{\"version\": 1, \"gener").unwrap();
    let error = store.state().unwrap_err();
    assert_eq!(error.class(), Class::Precondition);
    insta::assert_snapshot!("damaged_state", shown(&error, dir.path()));
    let lock = store.lock("test").unwrap();
    assert!(store.record(&lock, intent("a/three")).is_err());
    assert_eq!(fs_err::read_to_string(store.path("state.json")).unwrap(), "{\"version\": 1, \"gener");

    store.rebuild(&lock).unwrap();
    let after = store.state().unwrap();
    assert_eq!(after.steps["a/one"].digest, before.steps["a/one"].digest);
    assert_eq!(after.open.keys().collect::<Vec<_>>(), before.open.keys().collect::<Vec<_>>());
    let kept = fs_err::read_dir(dir.path())
        .unwrap()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("state.json.damaged-"));
    assert!(kept);
    // And it goes on from there.
    store.record(&lock, done("a/two", "d2")).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().state().unwrap().steps.len(), 2);
}

#[test]
fn a_damaged_journal_is_refused_and_rebuilt_from_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let path = store.path("journal.jsonl");
    let text = fs_err::read_to_string(&path).unwrap();
    // Before the time stamp, whose length differs from run to run.
    fs_err::write(&path, text.replacen("\n{\"v\"", "\n{\"\u{0}\"", 1)).unwrap();
    let error = store.state().unwrap_err();
    insta::assert_snapshot!("damaged_journal", shown(&error, dir.path()));
    let lock = store.lock("test").unwrap();
    store.rebuild(&lock).unwrap();
    let state = store.state().unwrap();
    assert!(state.steps.contains_key("a/one") && state.open.contains_key("a/two"));
}

#[test]
fn newer_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let state = "{\"version\": 7, \"something\": \"new\"}";
    fs_err::write(store.path("state.json"), state).unwrap();
    let error = store.state().unwrap_err();
    insta::assert_snapshot!("newer_state", shown(&error, dir.path()));
    let lock = store.lock("test").unwrap();
    assert!(store.rebuild(&lock).is_err());
    assert_eq!(fs_err::read_to_string(store.path("state.json")).unwrap(), state);

    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    append(&store.path("journal.jsonl"), "{\"v\":2,\"seq\":4,\"new\":true}\n");
    let error = store.state().unwrap_err();
    insta::assert_snapshot!("newer_journal", shown(&error, dir.path()));
}

#[test]
fn a_stored_file_of_version_1_reads() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(dir.path().join("state.json"), include_str!("../state/v1/state.json")).unwrap();
    fs_err::write(dir.path().join("journal.jsonl"), include_str!("../state/v1/journal.jsonl")).unwrap();
    let state = Store::open(dir.path()).unwrap().state().unwrap();
    assert_eq!(state.steps.keys().collect::<Vec<_>>(), ["bootstrap/pki", "provision/apply"]);
    assert_eq!(state.open["bootstrap/node-up@cp-0"].failure.as_deref(), Some("cannot reach root@10.0.0.2"));
}

#[test]
fn files_are_whole_with_their_mode_and_never_outside() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("cluster")).unwrap();
    store.write_file("pki/ca.key", b"key", 0o600).unwrap();
    store.write_json("outputs/provision.json", &["host"], 0o644).unwrap();
    let mode = |rel: &str| fs_err::metadata(store.path(rel)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        [mode("pki/ca.key"), mode("outputs/provision.json"), mode("pki"), mode("")],
        [0o600, 0o644, 0o700, 0o700]
    );
    assert_eq!(store.read_json::<Vec<String>>("outputs/provision.json").unwrap(), Some(vec!["host".to_owned()]));
    assert_eq!(store.read("no/such/file").unwrap(), None);
    assert_eq!(store.write_file("../escape", b"", 0o600).unwrap_err().class(), Class::Bug);
    assert_eq!(store.write_file("/etc/escape", b"", 0o600).unwrap_err().class(), Class::Bug);
    store.remove("pki").unwrap();
    store.remove("pki").unwrap();
    assert_eq!(fs_err::read_dir(store.dir()).unwrap().count(), 1);
}

#[test]
fn a_damaged_inventory_names_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    fs_err::write(store.path("x.json"), "[1,\n 2,\n").unwrap();
    let error = store.read_json::<Vec<u8>>("x.json").unwrap_err();
    assert!(error.message().contains("x.json:3:0"), "{error}");
}

/// A file system of one page or two. Only root can mount one.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = Some(c"size=64k");
        let mounted = rustix::mount::mount("tmpfs", dir.path(), "tmpfs", rustix::mount::MountFlags::empty(), options);
        mounted.ok().map(|()| Self(dir))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _gone = rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let Some(tiny) = Tiny::mount() else {
        return skip("only root can mount a small file system");
    };
    let store = filled(tiny.0.path());
    let before = store.state().unwrap();
    let lock = store.lock("test").unwrap();
    let mut error = None;
    for number in 0..5_000 {
        if let Err(full) = store.record(&lock, intent(&format!("a/step-{number}"))) {
            error = Some(full);
            break;
        }
    }
    let error = error.unwrap();
    assert_eq!(error.class(), Class::Precondition);
    // The journal, or on a slow machine the snapshot, which is written once a second.
    let said = shown(&error, tiny.0.path()).replace("journal.jsonl", "FILE").replace("state.json", "FILE");
    let (cause, said): (Vec<&str>, Vec<&str>) = said.lines().partition(|line| line.contains("caused by: "));
    assert!(cause.concat().contains("No space left on device (os error 28)"), "{cause:?}");
    insta::assert_snapshot!("full_disk", said.join("\n"));
    assert!(store.write_file("outputs/x.json", &vec![b'x'; 65536], 0o600).is_err());
    drop(lock);
    // All that was acknowledged is there, and nothing torn.
    let after = Store::open(tiny.0.path()).unwrap().state().unwrap();
    assert_eq!(after.steps, before.steps);
    assert!(after.open.contains_key("a/step-0"));
}

#[test]
fn no_permission_says_whose_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    if rustix::process::geteuid().is_root() {
        // Root may do everything, except to a file that is a directory.
        fs_err::create_dir(dir.path().join("outputs")).unwrap();
        assert!(store.write_file("outputs", b"", 0o600).is_err());
        return;
    }
    fs_err::set_permissions(dir.path(), Permissions::from_mode(0o500)).unwrap();
    let error = store.write_file("outputs/x.json", b"", 0o600).unwrap_err();
    fs_err::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(error.class(), Class::Precondition);
}

fn any_entry() -> impl Strategy<Value = JournalEntry> {
    let step = "[ab]/[a-c](@h[0-2])?";
    let inputs = proptest::collection::btree_map("[a-z.]{1,6}", "[0-9a-f]{4}", 0..3);
    prop_oneof![
        (step, "[0-9a-f]{8}").prop_map(|(step, digest)| JournalEntry::Intent { step, digest }),
        (step, "[0-9a-f]{8}", inputs, any::<u64>()).prop_map(|(step, digest, inputs, elapsed_ms)| {
            JournalEntry::Outcome { step, outcome: Outcome::Done { digest, inputs, elapsed_ms } }
        }),
        (step, "\\PC{0,20}")
            .prop_map(|(step, message)| JournalEntry::Outcome { step, outcome: Outcome::Failed { message } }),
        step.prop_map(|step| JournalEntry::Forgotten { step }),
        (0..9_i64, 1..4_i64, any::<bool>()).prop_map(|(at, life, break_glass)| issued(at, life, break_glass)),
    ]
}

/// A credential issued on that day with this many days of validity.
fn issued(day: i64, life: i64, break_glass: bool) -> JournalEntry {
    let time = |day: i64| jiff::Timestamp::from_second(day * 86_400).unwrap();
    let credential = Credential {
        user: format!("user-{day}"),
        groups: vec!["viewers".into()],
        serial: format!("{day:032x}"),
        sha256: format!("{day:064x}"),
        issued: time(day),
        expires: time(day + life),
        by: "anne@laptop".into(),
        break_glass,
        reason: break_glass.then(|| "no leader".to_owned()),
        sealed_for: Vec::new(),
    };
    JournalEntry::Issued { credential }
}

#[test]
fn break_glass_is_remembered_for_good_and_other_credentials_until_they_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let lock = store.lock("test").unwrap();
    let planned = store.state().unwrap().step_seq;
    for entry in [issued(1, 1, true), issued(2, 1, false), issued(2, 9, false), issued(5, 1, false)] {
        store.record(&lock, entry).unwrap();
    }
    let state = store.state().unwrap();
    let kept: Vec<&str> = state.credentials.iter().map(|one| one.user.as_str()).collect();
    assert_eq!(kept, ["user-1", "user-2", "user-5"]);
    assert_eq!(state.credentials[1].expires.as_second(), 11 * 86_400);
    assert_eq!(state.step_seq, planned, "a plan that was made before still holds");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_is_journalled_is_read_back(entries in proptest::collection::vec(any_entry(), 1..12), torn in 0usize..40) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let lock = store.lock("test").unwrap();
        for entry in &entries {
            store.record(&lock, entry.clone()).unwrap();
        }
        let known = store.state().unwrap();
        let cut = |path: &Path| {
            let bytes = fs_err::read(path).unwrap();
            fs_err::write(path, &bytes[..bytes.len().saturating_sub(torn)]).unwrap();
        };
        prop_assert_eq!(&Store::open(dir.path()).unwrap().state().unwrap(), &known);
        store.rebuild(&lock).unwrap();
        let rebuilt = Store::open(dir.path()).unwrap().state().unwrap();
        let digests = |state: &turnup::state::State| state.steps.iter().map(|(id, record)| (id.clone(), record.digest.clone())).collect::<Vec<_>>();
        prop_assert_eq!(digests(&rebuilt), digests(&known));
        prop_assert_eq!(&rebuilt.credentials, &known.credentials);
        prop_assert_eq!(rebuilt.open.keys().collect::<Vec<_>>(), known.open.keys().collect::<Vec<_>>());
        // Torn anywhere in its last line, the journal still reads.
        cut(&dir.path().join("journal.jsonl"));
        prop_assert!(Store::open(dir.path()).unwrap().state().is_ok());
    }
}
