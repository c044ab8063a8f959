//! The lines in which two texts differ.

use similar::{ChangeTag, TextDiff};

use crate::change;

/// The lines that differ: `- as it is`, `+ as it would be`.
pub(super) fn line_diff(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let changed = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => return None,
        };
        Some(format!("{sign} {}", change.value().trim_end_matches('\n')))
    });
    change::shorten(changed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_lines_and_long_differences_are_cut() {
        assert_eq!(line_diff("a\nb\nc\n", "a\nB\nc\n"), ["- b", "+ B"]);
        let long = "line\n".repeat(100);
        let lines = line_diff("", &long);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (61, Some("… and 40 more lines")));
    }
}
