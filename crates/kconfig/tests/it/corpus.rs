//! Every file of the corpora: the good ones load without a finding, the bad ones are refused for
//! their reason.

#![expect(
    clippy::disallowed_methods,
    reason = "this crate has no dependency for files; the test names the path itself"
)]

use std::path::{Path, PathBuf};

use kconfig::{Config, Env, MemoryFiles, Tree, dotconfig};

fn cases(kind: &str) -> Vec<(String, MemoryFiles)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let mut cases: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases.into_iter().map(|case| (case.file_name().unwrap().to_str().unwrap().to_owned(), read_case(&case))).collect()
}

/// A case is one file, or a directory with a `Kconfig`.
fn read_case(case: &Path) -> MemoryFiles {
    if case.is_file() {
        return MemoryFiles::new([("Kconfig", std::fs::read(case).unwrap())]);
    }
    let (mut open, mut files): (Vec<PathBuf>, Vec<(String, Vec<u8>)>) = (vec![case.to_owned()], Vec::new());
    while let Some(directory) = open.pop() {
        for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((
                    path.strip_prefix(case).unwrap().to_str().unwrap().to_owned(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    MemoryFiles::new(files)
}

#[test]
fn good_trees_load_without_a_finding() {
    let mut text = String::new();
    for (name, files) in cases("good") {
        let tree = Tree::load("Kconfig", &files, &Env::empty())
            .unwrap_or_else(|found| panic!("{name}\n{}", found.render(true)));
        assert!(tree.warnings().is_empty(), "{name}\n{}", tree.warnings().render(true));
        text.extend(["==== ", &name, "\n", &dotconfig::write(&Config::new(&tree), "CONFIG_")]);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn bad_trees_are_refused_for_their_reason() {
    for (name, files) in cases("bad") {
        let Err(found) = Tree::load("Kconfig", &files, &Env::empty()) else { panic!("{name} was accepted") };
        insta::assert_snapshot!(format!("bad_{name}"), found.render(true));
    }
}
