//! The files of two sessions at once: drafts and conflicts.

use std::path::Path;

use super::*;
use crate::wizard::files::{DotConfig, Files as _, Session as FileSession};

/// A session over a file of the tree, and what it knows.
fn open(path: &Path) -> (FileSession<DotConfig>, Model) {
    let schema = Arc::clone(&Session::everything().model.schema);
    let mut config = schema.config();
    let original = crate::config::read_file(path).unwrap();
    original.as_ref().map(|text| kconfig::dotconfig::read(&mut config, text, ""));
    let base = config.said();
    let form = Form::DotConfig { prefix: String::new() };
    let saved = Some(Saved::Said(Box::new(base.clone())));
    let mut model = Model::new(Arc::clone(&schema), config, path.display().to_string(), form, saved);
    model.refresh();
    (FileSession::new(DotConfig { schema, prefix: String::new(), original }, path, base), model)
}

fn set(model: &mut Model, name: &str, value: &str) {
    let symbol = model.schema.find(name).unwrap();
    model.change(name.to_owned(), |config| config.set(symbol, value)).unwrap();
}

#[test]
fn each_session_keeps_a_draft_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".config");
    let drafts = || {
        let entries =
            fs_err::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    };
    let ((first, mut mine), (second, mut theirs), (third, other)) = (open(&path), open(&path), open(&path));
    // Without a file there is nothing that one could be open on, only drafts.
    assert!(!third.has_others());
    set(&mut mine, "MASK", "0x1");
    first.keep_draft(&mine).unwrap();
    assert!(second.has_others() && !first.has_others());
    assert_eq!(second.draft(&theirs), None, "its wizard lives");
    set(&mut theirs, "MASK", "0x2");
    second.keep_draft(&theirs).unwrap();
    assert_eq!(drafts(), [".config.unsaved", ".config.unsaved.2"]);
    // One that has no draft leaves those of others alone, also when they are cut off.
    drop(first);
    third.forget_draft();
    assert_eq!(drafts(), [".config.unsaved", ".config.unsaved.2"]);
    assert_eq!(third.draft(&other).unwrap(), ["~ MASK: 0x1f -> 0x1"]);
    let mut third = third;
    assert!(matches!(third.carry_out(&other, &Effect::Recover), Some(Msg::Loaded(..))));
    assert!(third.draft(&other).is_none(), "it is taken, and the other one is in use");
    drop(second);
    assert_eq!(third.draft(&other).unwrap(), ["~ MASK: 0x1f -> 0x2"]);
    assert_eq!(third.carry_out(&other, &Effect::Forget), None);
    assert_eq!(drafts(), [".config.unsaved"]);
    third.forget_draft();
    assert_eq!(drafts(), [""; 0]);
}

#[test]
fn each_session_sees_that_another_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".config");
    let (mut first, mut mine) = open(&path);
    set(&mut mine, "MASK", "0x2");
    assert_eq!(first.carry_out(&mine, &Effect::Save { overwrite: false }), Some(Msg::Saved));
    assert!(!first.has_others(), "it is no other of its own");
    let (second, _) = open(&path);
    assert!(first.has_others() && second.has_others());
    assert!(first.has_others(), "looking lets the lock go for a moment only");
    drop(second);
    assert!(!first.has_others());
    set(&mut mine, "MASK", "0x1");
    assert_eq!(first.carry_out(&mine, &Effect::Save { overwrite: false }), Some(Msg::Saved));
    let (second, _) = open(&path);
    assert!(first.has_others() && second.has_others(), "the file that was saved is another one");
}

#[test]
fn what_two_sessions_changed_is_shown_and_merged() {
    let value = |model: &Model, name: &str| model.config.value(model.schema.find(name).unwrap()).to_owned();
    for (merge, mask, colour, token) in [
        (Merge::Mine, "0x1", "BLUE", "ours"),
        (Merge::Theirs, "0x2", "GREEN", "ours"),
        (Merge::Nothing, "0x2", "GREEN", ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".config");
        let ((mut first, mut mine), (mut second, mut theirs)) = (open(&path), open(&path));
        for (name, value) in [("MASK", "0x2"), ("DEEPEST", "theirs"), ("GREEN", "y")] {
            set(&mut theirs, name, value);
        }
        assert_eq!(second.carry_out(&theirs, &Effect::Save { overwrite: false }), Some(Msg::Saved));
        set(&mut mine, "TOKEN", "ours");
        let conflict = |first: &mut FileSession<DotConfig>, mine: &Model| match first
            .carry_out(mine, &Effect::Save { overwrite: false })
        {
            Some(Msg::Conflict { lines, meets }) => (lines, meets),
            other => panic!("the file is another one: {other:?}"),
        };
        assert!(!conflict(&mut first, &mine).1, "each side changed what the other did not");
        set(&mut mine, "MASK", "0x1");
        set(&mut mine, "BLUE", "y");
        let shown = [
            format!("{} was changed by another process meanwhile", path.display()),
            String::new(),
            "Changed in the file:".to_owned(),
            "~ DEEPEST: down here -> theirs".to_owned(),
            "~ GREEN: n -> y".to_owned(),
            "~ MASK: 0x1f -> 0x2".to_owned(),
            "~ RED: y -> n".to_owned(),
            String::new(),
            "Changed here:".to_owned(),
            "~ BLUE: n -> y".to_owned(),
            "~ MASK: 0x1f -> 0x1".to_owned(),
            "~ RED: y -> n".to_owned(),
            "~ TOKEN:  -> (secret)".to_owned(),
        ];
        assert_eq!(conflict(&mut first, &mine), (shown.to_vec(), true));
        let taken = first.carry_out(&mine, &Effect::Reread(merge)).unwrap();
        update(&mut mine, taken);
        let found = ["MASK", "TOKEN", "DEEPEST", colour].map(|name| value(&mine, name));
        assert_eq!(found, [mask, token, "theirs", "y"], "{merge:?}");
        assert_eq!(mine.is_unsaved(), merge != Merge::Nothing, "{merge:?}");
        update(&mut mine, Msg::Undo);
        assert_eq!(value(&mine, "MASK"), "0x1", "the answers that were let go come back");
        assert_eq!(first.carry_out(&mine, &Effect::Save { overwrite: false }), Some(Msg::Saved));
    }
}
