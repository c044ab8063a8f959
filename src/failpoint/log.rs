//! The log: one line a death, and at its head which points count at all.
//!
//! Lines that begin with `#` choose points: `# one in 10 from 7` takes a tenth of them, another
//! tenth with another number than 7; `# only TEXT` takes those whose name has this text. Every
//! other line is the name of a point at which a process has died.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub(super) const VARIABLE: &str = "TURNUP_FAILPOINT_LOG";

/// Proof that this process may die now; it is the only one that does.
pub(super) struct Claim {
    _file: fs_err::File,
}

/// The log of this process; the file need not be there, and then no process dies.
pub(super) fn path() -> Option<&'static Path> {
    static PATH: LazyLock<PathBuf> =
        LazyLock::new(|| std::env::var_os(VARIABLE).map_or_else(|| super::ON_HOST.into(), PathBuf::from));
    PATH.exists().then_some(PATH.as_path())
}

/// Writes the name down, unless it is there already or does not count. When this returns a turn,
/// the name is on the disk.
pub(super) fn take(name: &str) -> Option<Claim> {
    let mut file = fs_err::OpenOptions::new().read(true).append(true).open(path()?).ok()?;
    file.file().lock().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    if !counts(&text, name) {
        return None;
    }
    writeln!(file, "{name}").ok()?;
    file.file().sync_all().ok()?;
    Some(Claim { _file: file })
}

/// Whether the process has to die at this point.
fn counts(log: &str, name: &str) -> bool {
    log.lines().all(|line| match line.strip_prefix("# ") {
        None => line != name,
        Some(choice) => chooses(choice, name),
    })
}

fn chooses(choice: &str, name: &str) -> bool {
    if let Some(text) = choice.strip_prefix("only ") {
        return name.contains(text);
    }
    let numbers = choice.strip_prefix("one in ").and_then(|rest| rest.split_once(" from "));
    let Some((count, seed)) = numbers.and_then(|(count, seed)| Some((count.parse().ok()?, seed))) else { return true };
    spread(&format!("{seed} {name}")).checked_rem(count) == Some(0)
}

/// FNV-1a, and its upper half, which is the better mixed one: the same choice on every machine.
fn spread(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash >> 32
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn a_point_counts_once() {
        assert!(counts("", "journal: after"));
        assert!(counts("journal: before\n", "journal: after"));
        assert!(!counts("journal: after\n", "journal: after"));
    }

    #[test]
    fn the_head_chooses() {
        assert!(counts("# only journal\n", "journal: after"));
        assert!(!counts("# only journal\n", "write: after"));
        let chosen = |seed: u8| -> Vec<u32> {
            let head = format!("# one in 10 from {seed}\n");
            (0..1000).filter(|number| counts(&head, &format!("point {number}"))).collect()
        };
        assert!((50..150).contains(&chosen(1).len()), "{}", chosen(1).len());
        assert_ne!(chosen(1), chosen(2));
    }
}
