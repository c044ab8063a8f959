//! Generated trees of any size: they show how the cost grows with the size, without what one
//! particular tree is like.

use std::fmt::Write as _;
use std::path::Path;

use crate::random::Numbers;

/// Symbols in one file of a tree.
const IN_A_FILE: u64 = 100;
/// Files of a tree of size 1.
const FILES: u64 = 40;

/// Writes a tree of `size` times 4,000 symbols to `into`; its root is `Kconfig`.
pub fn tree(into: &Path, size: u64) {
    let mut root = String::from("mainmenu \"Synthetic\"\n\nconfig MODULES\n\tbool \"Modules\"\n\tmodules\n\n");
    let mut numbers = Numbers::new(size);
    for file in 0..FILES * size {
        let mut text = format!("menu \"Part {file}\"\n\n");
        for at in 0..IN_A_FILE {
            entry(&mut text, file * IN_A_FILE + at, &mut numbers);
        }
        text.push_str("endmenu\n");
        let dir = into.join(format!("part{file}"));
        fs_err::create_dir_all(&dir).unwrap();
        fs_err::write(dir.join("Kconfig"), text).unwrap();
        writeln!(root, "source \"part{file}/Kconfig\"").unwrap();
    }
    fs_err::write(into.join("Kconfig"), root).unwrap();
}

/// One file of at least `lines` lines.
#[must_use]
pub fn flat(lines: usize) -> String {
    let mut text = String::from("mainmenu \"Flat\"\n\nconfig MODULES\n\tbool \"Modules\"\n\tmodules\n\n");
    let (mut numbers, mut written, mut at) = (Numbers::new(1), 6, 0);
    while written < lines {
        let before = text.len();
        entry(&mut text, at, &mut numbers);
        written += text[before..].matches('\n').count();
        at += 1;
    }
    text
}

/// A symbol as drivers have them: a question, what it depends on and selects, some lines of help.
fn entry(text: &mut String, at: u64, numbers: &mut Numbers) {
    let kind = ["tristate", "tristate", "tristate", "bool", "bool", "int"][usize::try_from(numbers.below(6)).unwrap()];
    writeln!(text, "config SYMBOL_{at}\n\t{kind} \"Support for part number {at}\"").unwrap();
    // Only what comes before: a tree without cycles.
    for _ in 0..numbers.below(3).min(at) {
        let (first, second) = (numbers.below(at), numbers.below(at));
        writeln!(text, "\tdepends on SYMBOL_{first} != n || !SYMBOL_{second}").unwrap();
    }
    if kind == "int" {
        writeln!(text, "\trange 0 {}\n\tdefault {}", at + 100, at % 100).unwrap();
    } else {
        if numbers.below(3) == 0 {
            writeln!(text, "\tselect LIBRARY_{}", at % 50).unwrap();
        }
        writeln!(text, "\tdefault {}", ["y", "m", "n"][usize::try_from(numbers.below(3)).unwrap()]).unwrap();
    }
    text.push_str("\thelp\n");
    for line in 0..2 + numbers.below(5) {
        writeln!(text, "\t  Line {line} says what this part of the machine is and when it is wanted.").unwrap();
    }
    text.push('\n');
    // What is selected, near its first users.
    if at.is_multiple_of(80) && at < 4000 {
        writeln!(text, "config LIBRARY_{}\n\ttristate\n", at / 80).unwrap();
    }
}
