//! The kernel's own `make` with our program where it built its `scripts/kconfig/conf`: the same
//! configuration, the same `include/config/auto.conf`, `autoconf.h` and `rustc_cfg`, and after a
//! change the same files touched, so that the same is built again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reference::{Series, Tree, Variant, or_skip};

use crate::ours;

const LIMIT: Duration = Duration::from_mins(5);

/// A directory that `make O=` builds in.
struct Output {
    dir: PathBuf,
    source: PathBuf,
}

impl Output {
    fn make(&self, target: &str) -> String {
        let out = format!("O={}", self.dir.display());
        let args = ["-C", self.source.to_str().unwrap(), &out, "ARCH=x86", target];
        let mut run = duct::cmd("make", args).stdin_null().stderr_to_stdout().stdout_capture().unchecked();
        // The environment of an outer make must not reach this one.
        for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KCONFIG_CONFIG", "KERNELVERSION"] {
            run = run.env_remove(name);
        }
        let handle = run.env("LC_ALL", "C").start().unwrap();
        let Some(output) = handle.wait_timeout(LIMIT).unwrap() else {
            handle.kill().unwrap();
            panic!("make {target} hangs in {}", self.dir.display());
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "make {target}: {}\n{said}", output.status);
        // That the directory has been copied shows in a Makefile with its name.
        let about_copy = |line: &&str| line.starts_with("  ") && line.ends_with("Makefile");
        said.lines().filter(|line| !about_copy(line)).fold(String::new(), |all, line| all + line + "\n")
    }

    /// What configuring made: the configuration, and all below `include`.
    fn made(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut open = vec![self.dir.join("include")];
        while let Some(dir) = open.pop() {
            for path in fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    open.push(path);
                } else {
                    all.insert(self.name(&path), fs_err::read(&path).unwrap());
                }
            }
        }
        all.insert(".config".to_owned(), fs_err::read(self.dir.join(".config")).unwrap());
        all
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap().to_string_lossy().into_owned()
    }

    /// Makes all that was made look old.
    fn age(&self) {
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        for name in self.made().keys() {
            let file = fs_err::OpenOptions::new().append(true).open(self.dir.join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
        }
    }

    /// What was written since.
    fn touched(&self) -> BTreeSet<String> {
        let recently = SystemTime::now() - Duration::from_mins(30);
        let modified = |name: &String| fs_err::metadata(self.dir.join(name)).unwrap().modified().unwrap();
        self.made().into_keys().filter(|name| modified(name) > recently).collect()
    }

    /// Changes some symbols as a user would: off, module, another number.
    fn edit(&self) {
        let path = self.dir.join(".config");
        let text = fs_err::read_to_string(&path).unwrap();
        let mut numbers = reference::random::Numbers::new(4);
        let line = |line: &str| match line.split_once('=') {
            Some((name, "y")) if numbers.below(40) == 0 => format!("# {name} is not set\n"),
            Some((name, "m")) if numbers.below(4) == 0 => format!("{name}=y\n"),
            _ => format!("{line}\n"),
        };
        fs_err::write(&path, text.lines().map(line).collect::<String>()).unwrap();
    }
}

/// What differs in what was said, made and touched.
fn differences(step: &str, ours: &Output, theirs: &Output, said: [String; 2]) -> Option<String> {
    let outcome = |of: &Output, said: String| {
        let touched = of.touched().into_iter().fold(String::new(), |all, name| all + &name + "\n");
        let mut files = of.made();
        files.insert("(the list of files touched)".to_owned(), touched.into_bytes());
        reference::Outcome { code: Some(0), stdout: said.into_bytes(), stderr: Vec::new(), files }
    };
    let [mine, others] = said;
    let found = reference::difference(("ours", &outcome(ours, mine)), ("C", &outcome(theirs, others)))?;
    Some(format!("{step}:\n{found}"))
}

#[track_caller]
fn equal(series: Series) {
    let Some(tree) = or_skip(Tree::get(series)) else { return };
    let root = tempfile::tempdir().unwrap();
    let source = tree.root(Variant::Whole).to_owned();
    let theirs = Output { dir: root.path().join("theirs"), source: source.clone() };
    let mine = Output { dir: root.path().join("ours"), source };
    fs_err::create_dir(&theirs.dir).unwrap();
    theirs.make("defconfig");
    duct::cmd!("cp", "-a", &theirs.dir, &mine.dir).run().unwrap();
    let conf = mine.dir.join("scripts/kconfig/conf");
    ours().install_at(&conf);
    let script = fs_err::read(&conf).unwrap();

    let mut found = Vec::new();
    let mut step = |name: &str, target: &str, before: &dyn Fn(&Output)| {
        let said = [&mine, &theirs].map(|output| {
            before(output);
            output.make(target).replace("/ours", "/theirs")
        });
        found.extend(differences(name, &mine, &theirs, said));
    };
    step("make olddefconfig", "olddefconfig", &|_| ());
    step("make syncconfig", "syncconfig", &|_| ());
    let change = |output: &Output| {
        output.age();
        output.edit();
    };
    step("make syncconfig after a change", "syncconfig", &change);
    let touched = theirs.touched().len();
    step("make syncconfig without a change", "syncconfig", &Output::age);

    assert!((10..2000).contains(&touched), "a change of some symbols touched {touched} files");
    assert!(theirs.made().contains_key("include/config/auto.conf"), "make syncconfig made no auto.conf");
    // If make had built its own again, it would be compared with itself.
    assert!(fs_err::read(&conf).unwrap() == script, "make replaced the program under test");
    let what = format!("make in {}, with {touched} files touched by a change", tree.key());
    crate::none(&what, 4, &found);
}

#[test]
fn of_6_1() {
    equal(Series::V6_1);
}

#[test]
fn of_the_newest() {
    equal(Series::Newest);
}
