//! "Did you mean": the nearest of a set of names.

/// The candidate nearest to `name`, when one is near enough to be what was meant.
pub fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    // One letter away from two letters is anything.
    if name.chars().count() < 3 {
        return None;
    }
    let lower = name.to_lowercase();
    candidates
        .filter(|candidate| *candidate != name)
        // Names of very different length cannot be near; skipping them keeps large trees fast.
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= 2 + name.len() / 3)
        .map(|candidate| (similarity(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score > 0.66)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate.to_owned())
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
