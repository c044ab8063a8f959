//! The no-shell form of a tree: every question that Kconfig would put to a shell has its answer in
//! place. Without processes, what remains is Kconfig's own work, and the result does not depend on
//! the compilers of this machine.
//!
//! All answers of a probe are "yes": that lets the most symbols depend on something.

use std::path::{Path, PathBuf};

/// Raise it when a change here changes the result.
pub(crate) const EDITION: &str = "1";

/// The file that defines the probes, with answers for definitions.
const ANSWERS: &str = "\
comma := ,
quote := \"
squote := '
empty :=
space := $(empty) $(empty)
dollar := $
right_paren := )
left_paren := (
if-success = $(2)
success = y
failure = n
cc-option = y
ld-option = y
as-instr = y
as-instr64 = y
rustc-option = y
cc_can_link_user = y
cc-option-bit = $(1)
m32-flag := -m32
m64-flag := -m64
cc-info := GCC 140200
cc-name := GCC
cc-version := 140200
as-info := GNU 24400
as-name := GNU
as-version := 24400
ld-info := BFD 24400
ld-name := BFD
ld-version := 24400
rustc-version := 108500
rustc-llvm-version := 190107
";

/// Copies the Kconfig files of `tree` to `into`, each `$(shell,…)` in them replaced.
pub(crate) fn make(tree: &Path, into: &Path) {
    let mut open: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for entry in fs_err::read_dir(tree.join(&dir)).unwrap().map(Result::unwrap) {
            let path = dir.join(entry.file_name());
            // The tests of Kconfig are no part of the kernel's tree.
            if entry.file_type().unwrap().is_dir() && path != Path::new("scripts/kconfig") {
                open.push(path);
            } else if entry.file_name().to_string_lossy().starts_with("Kconfig") && entry.path().is_file() {
                let text = fs_err::read(entry.path()).unwrap();
                fs_err::create_dir_all(into.join(&dir)).unwrap();
                fs_err::write(into.join(path), answer(text)).unwrap();
            }
        }
    }
    fs_err::write(into.join("scripts/Kconfig.include"), ANSWERS).unwrap();
}

/// `0` in the place of every call of a shell.
fn answer(mut text: Vec<u8>) -> Vec<u8> {
    const CALL: &[u8] = b"$(shell,";
    while let Some(start) = text.windows(CALL.len()).position(|window| window == CALL) {
        let mut depth = 0_usize;
        let end = text[start..].iter().position(|byte| {
            depth = match byte {
                b'(' => depth + 1,
                b')' => depth - 1,
                _ => return false,
            };
            depth == 0
        });
        let end = end.unwrap_or_else(|| panic!("$(shell is not closed")) + start;
        text.splice(start..=end, *b"0");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn calls_are_replaced_up_to_their_own_parenthesis() {
        let text = b"a $(shell,echo $(CC) (x)) b \"$(shell,true)\" $(shelly)".to_vec();
        assert_eq!(answer(text), b"a 0 b \"0\" $(shelly)");
    }
}
