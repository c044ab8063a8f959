//! "Did you mean": the nearest of a set of names.

/// The candidate nearest to `name`, when one is near enough to be what was meant.
pub fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    // One letter away from two letters is anything.
    if name.chars().count() < 3 {
        return None;
    }
    let lower = name.to_lowercase();
    let letters = count_letters(name);
    candidates
        .filter(|candidate| *candidate != name)
        // Names of very different length cannot be near; skipping them keeps large trees fast.
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= 2 + name.len() / 3)
        // Nor those made of other letters: each surplus letter is a change, and counting them is
        // cheap.
        .filter(|candidate| {
            !(name.is_ascii() && candidate.is_ascii())
                || surplus(&letters, &count_letters(candidate)) * 100 <= 34 * name.len().max(candidate.len())
        })
        .map(|candidate| (similarity(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score > 0.66)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate.to_owned())
}

/// How often each letter comes, whatever its case, in 64 groups.
fn count_letters(name: &str) -> [u8; 64] {
    let mut counts = [0_u8; 64];
    for byte in name.bytes() {
        let count = &mut counts[usize::from(byte.to_ascii_lowercase() & 63)];
        *count = count.saturating_add(1);
    }
    counts
}

/// The least number of letters to change.
fn surplus(a: &[u8; 64], b: &[u8; 64]) -> usize {
    let (mut more, mut less) = (0_usize, 0_usize);
    for (a, b) in a.iter().zip(b) {
        more += usize::from(a.saturating_sub(*b));
        less += usize::from(b.saturating_sub(*a));
    }
    more.max(less)
}

fn similarity(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b)
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn finds_the_nearest_name_whatever_its_case() {
        let names = ["phase1.num_nodes", "phase1.cluster_name", "phase2.provider"];
        assert_eq!(suggest("phase1.num_node", names.into_iter()).as_deref(), Some("phase1.num_nodes"));
        assert_eq!(suggest("PHASE2.PROVIDER", names.into_iter()).as_deref(), Some("phase2.provider"));
        assert_eq!(suggest("zebra", names.into_iter()), None);
    }
}
