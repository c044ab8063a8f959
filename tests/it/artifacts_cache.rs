//! The cache: bytes that were altered are never handed out, and what has been checked is not read
//! again.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use turnup::Class;
use turnup::artifacts::{CacheHealth, Digest, Location, NoProgress, Source, Sources};

use crate::artifacts_support::{Heard, Scratch, TOOL, list, small_selection, stderr};

/// A bundle in a directory that holds the tool.
fn bundle(scratch: &Scratch) -> Sources {
    let dir = scratch.dir.path().join("bundle");
    fs_err::create_dir_all(dir.join("sha256")).unwrap();
    fs_err::write(dir.join("sha256").join(Digest::of(TOOL).to_string()), TOOL).unwrap();
    Sources::new(vec![Source::Cache, Source::Mirror(Location::Directory(dir))])
}

fn alter(path: &Path) {
    let mut bytes = fs_err::read(path).unwrap();
    bytes[3] ^= 1;
    fs_err::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    fs_err::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_byte_is_refused_and_fetched_again() {
    let scratch = Scratch::new();
    let (selection, sources, heard) = (small_selection(), bundle(&scratch), Heard::default());
    let tool = selection.binary("tool").unwrap();
    let path = scratch.cache.ensure(tool, &sources, &heard).unwrap();
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o555);
    alter(&path);
    let again = scratch.cache.ensure(tool, &sources, &heard).unwrap();
    assert_eq!(fs_err::read(again).unwrap(), TOOL);
    assert_eq!(list(&scratch.cache.root().join("quarantine")).len(), 1);
    assert!(heard.lines().iter().any(|line| line.contains("has been altered")), "{:?}", heard.lines());
}

#[test]
fn without_a_source_a_flipped_byte_is_an_error_that_says_what_to_do() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    let path = scratch.cache.ensure(tool, &bundle(&scratch), &NoProgress).unwrap();
    alter(&path);
    let error = scratch.cache.ensure(tool, &Sources::new(vec![Source::Cache]), &NoProgress).unwrap_err();
    let mut text = scratch.redact(&error.render());
    let time = text.find("<tool>.").unwrap() + "<tool>.".len();
    let end = time + text[time..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - time);
    text.replace_range(time..end, "<time>");
    insta::assert_snapshot!(text);
    assert!(scratch.blobs().is_empty());
}

#[test]
fn an_empty_cache_alone_says_which_sources_could_help() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    let error = scratch.cache.ensure(tool, &Sources::new(vec![Source::Cache]), &NoProgress).unwrap_err();
    assert_eq!(error.class(), Class::Config);
    insta::assert_snapshot!(error.render());
}

#[test]
fn a_copy_to_a_host_reads_every_byte_whatever_the_stamp_says() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    let path = scratch.cache.ensure(tool, &bundle(&scratch), &NoProgress).unwrap();
    let mut copy = Vec::new();
    assert_eq!(scratch.cache.copy_to(&tool.pins[0].sha256, &mut copy).unwrap(), TOOL.len() as u64);
    assert_eq!(copy, TOOL);
    alter(&path);
    let error = scratch.cache.copy_to(&tool.pins[0].sha256, &mut Vec::new()).unwrap_err();
    assert!(error.message().contains("altered"), "{}", error.render());
    assert!(scratch.blobs().is_empty(), "an altered file stayed where it can be used");
}

#[test]
fn what_has_been_checked_is_not_read_again() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    let path = scratch.cache.ensure(tool, &bundle(&scratch), &NoProgress).unwrap();
    let accessed = |path: &Path| fs_err::metadata(path).unwrap().accessed().unwrap();
    // Reading a file that was never read changes its access time, on every kind of mount but
    // noatime.
    let before = accessed(&path);
    scratch.cache.ensure(tool, &Sources::new(vec![Source::Cache]), &NoProgress).unwrap();
    assert_eq!(accessed(&path), before);
}

#[test]
fn a_lost_or_torn_stamp_only_makes_the_bytes_be_read_again() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    scratch.cache.ensure(tool, &bundle(&scratch), &NoProgress).unwrap();
    let stamp = scratch.cache.root().join("stamps").join(tool.pins[0].sha256.to_string());
    for torn in ["", "{\"size\":", "{\"size\":1,\"inode\":1,\"mtime_ns\":1,\"ctime_ns\":1}"] {
        fs_err::write(&stamp, torn).unwrap();
        scratch.cache.ensure(tool, &Sources::new(vec![Source::Cache]), &NoProgress).unwrap();
        assert_ne!(fs_err::read_to_string(&stamp).unwrap(), torn);
    }
    assert_eq!(scratch.cache.check(&tool.pins[0].sha256).unwrap().0, CacheHealth::Good);
    assert_eq!(scratch.cache.check(&Digest::of(b"x")).unwrap().0, CacheHealth::Absent);
}

#[test]
fn verify_finds_the_altered_file_and_fails() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let path = scratch.cache.ensure(selection.binary("tool").unwrap(), &bundle(&scratch), &NoProgress).unwrap();
    let good = scratch.turnup(&["verify"]).output().unwrap();
    assert!(good.status.success(), "{}", stderr(&good));
    alter(&path);
    let bad = scratch.turnup(&["verify", "--output", "json"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(1));
    let lines = String::from_utf8(bad.stdout.clone()).unwrap();
    insta::assert_snapshot!(scratch.redact(&lines), @r#"
    {"schema":"turnup.artifacts.verify/1","good":false,"files":[{"artifact":"tool 1.0.0","sha256":"<tool>","health":"corrupt"}]}
    "#);
    assert!(stderr(&bad).contains("next: turnup artifacts fetch"), "{}", stderr(&bad));
}

#[test]
fn an_export_is_a_bundle_for_another_cache() {
    let scratch = Scratch::new();
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    scratch.cache.ensure(tool, &bundle(&scratch), &NoProgress).unwrap();
    let export = scratch.turnup(&["export", "carried", "--sources", "cache"]).output().unwrap();
    assert!(export.status.success(), "{}", stderr(&export));
    let index = fs_err::read_to_string(scratch.dir.path().join("carried/index.json")).unwrap();
    assert!(index.contains("\"artifact\": \"tool\""), "{index}");
    let other = Scratch::new();
    let carried = Location::Directory(scratch.dir.path().join("carried"));
    let path = other.cache.ensure(tool, &Sources::new(vec![Source::Mirror(carried)]), &NoProgress).unwrap();
    assert_eq!(fs_err::read(path).unwrap(), TOOL);
}
