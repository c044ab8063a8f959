//! The files of a real tree, damaged one at a time: loading ends soon and with little memory,
//! nothing panics, what loads is written and checked, and what can be formatted is formatted once.
//!
//! By hand, because the tree is not ours: `KCONFIG_TREE=DIR cargo test -p kconfig --test it --
//! --ignored mutated`; `KCONFIG_TOP` names its top file where that is not `Kconfig`. Variables that
//! its files name, as `SRCARCH`, are those of the environment. The damage is the same in each run.

#![expect(
    clippy::disallowed_methods,
    reason = "this crate has no dependency for files; the paths are those of the tree"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kconfig::lint::{self, Elsewhere, Policy};
use kconfig::{Config, Env, Files, Output, Shell, Tree, dotconfig, format, json};

const MUTATIONS: usize = 500;
/// One of so many is checked, which takes as long as all else together.
const CHECKED: usize = 10;
/// A whole tree takes a tenth of a second on a machine with nothing else to do.
const LIMIT: Duration = Duration::from_mins(1);
/// In KiB, as the kernel counts.
const MEMORY: u64 = 1 << 20;

/// The tree with one file replaced.
struct Overlay {
    root: PathBuf,
    path: String,
    bytes: Vec<u8>,
}

impl Files for Overlay {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path == self.path { Ok(self.bytes.clone()) } else { std::fs::read(self.root.join(path)) }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(self.root.join(directory))?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// Commands that print a number, which may stand nearly everywhere: the tree's toolchain is not the
/// matter.
struct Zero;

impl Shell for Zero {
    fn run(&self, _command: &str, _limit: usize) -> io::Result<Output> {
        Ok(Output { stdout: b"0\n".to_vec(), stderr: Vec::new() })
    }
}

/// Xorshift: the same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit.max(1)
    }
}

/// What hurts a parser most.
const PIECES: [&[u8]; 14] = [
    b"(",
    b")",
    b"\"",
    b"$(",
    b"\\\n",
    b"\0",
    b"\xff\xfe",
    b" && ",
    b" if ",
    b"\nif ",
    b"\nendmenu\n",
    b"\nchoice\n",
    b"\n\tselect ",
    b"\nsource \"Kconfig\"\n",
];

fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(5) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + numbers.below(200)).min(bytes.len());
        match numbers.below(5) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let copy = bytes[at..end].to_vec();
                let to = numbers.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            2 => {
                let byte = u8::try_from(numbers.below(256)).unwrap();
                bytes.insert(at, byte);
            }
            3 => drop(bytes.splice(at..at, PIECES[numbers.below(PIECES.len())].repeat(1 + numbers.below(3) * 150))),
            _ => bytes.truncate(at),
        }
    }
}

/// The files that the tree reads, sorted.
fn files_of(root: &Path, top: &str, env: &Env<'_>) -> Vec<String> {
    let whole = Overlay { root: root.to_owned(), path: String::new(), bytes: Vec::new() };
    let tree = Tree::load(top, &whole, env).unwrap_or_else(|found| panic!("{}", found.render(true)));
    let mut found: Vec<String> = tree.files().map(ToOwned::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Whether it loads; what does is looked at as far as `is_checked` says.
fn survive(top: &str, files: &Overlay, env: &Env<'_>, is_checked: bool) -> bool {
    if let Ok(formatted) = format::format(&files.path, &files.bytes) {
        assert_eq!(format::format(&files.path, &formatted).ok(), Some(formatted), "{}: formatted twice", files.path);
    }
    match Tree::load(top, files, env) {
        Err(found) => {
            assert!(!found.render(true).is_empty(), "{}: refused without a word", files.path);
            false
        }
        Ok(tree) => {
            let config = Config::new(&tree);
            assert!(dotconfig::write(&config, "CONFIG_").starts_with("#\n"));
            json::write(&config, &mut io::sink()).unwrap();
            if is_checked {
                let _findings = lint::check(&tree, &Policy::default(), &Elsewhere::default());
            }
            true
        }
    }
}

#[test]
#[ignore = "needs the tree that KCONFIG_TREE names, and minutes"]
fn mutated_files_of_a_tree_do_no_harm() {
    let root = PathBuf::from(std::env::var_os("KCONFIG_TREE").unwrap_or_else(|| panic!("KCONFIG_TREE names no tree")));
    let top = std::env::var("KCONFIG_TOP").unwrap_or_else(|_| "Kconfig".to_owned());
    let env = Env::new(|name| std::env::var(name).ok()).with_detection().with_shell(Arc::new(Zero));
    let paths = files_of(&root, &top, &env);
    let (mut numbers, mut loaded) = (Numbers(0x9e37_79b9_7f4a_7c15), 0);
    for number in 0..MUTATIONS {
        let path = paths[numbers.below(paths.len())].clone();
        let mut bytes = std::fs::read(root.join(&path)).unwrap();
        damage(&mut bytes, &mut numbers);
        let files = Overlay { root: root.clone(), path, bytes };
        let start = Instant::now();
        loaded += usize::from(survive(&top, &files, &env, number % CHECKED == 0));
        assert!(start.elapsed() < LIMIT, "{}: took {:?}", files.path, start.elapsed());
    }
    // Damage that nothing survives would prove little.
    assert!(loaded > MUTATIONS / 20, "{loaded} of {MUTATIONS} load");
    assert!(peak() < MEMORY, "{} KiB", peak());
}
