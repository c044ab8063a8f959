//! "Did you mean": the nearest of a set of names.

/// The candidate nearest to `name`, when one is near enough to be what was meant.
pub fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    Candidates::new(candidates).nearest(name).map(str::to_owned)
}

/// Names that are asked about more than once.
pub(crate) struct Candidates<'a>(Vec<Candidate<'a>>);

struct Candidate<'a> {
    name: &'a str,
    /// The groups of letters that it has: one bit each.
    letters: u64,
    is_ascii: bool,
}

impl<'a> Candidate<'a> {
    fn new(name: &'a str) -> Self {
        let letters = name.bytes().fold(0, |letters, byte| letters | 1 << group(byte));
        Self { name, letters, is_ascii: name.is_ascii() }
    }

    /// Whether the names have so many letters in common that they may be near; cheap, and so asked
    /// first: each letter that one has and the other has not is a change.
    fn may_be_near(&self, other: &Self) -> bool {
        let (long, short) = (self.name.len().max(other.name.len()), self.name.len().min(other.name.len()));
        let changes = (self.letters & !other.letters).count_ones().max((other.letters & !self.letters).count_ones());
        long - short <= 2 + self.name.len() / 3
            && (!(self.is_ascii && other.is_ascii) || changes as usize * 100 <= 34 * long)
    }
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        Self(names.map(Candidate::new).collect())
    }

    /// The one nearest to `name`, when one is near enough to be what was meant.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'a str> {
        // One letter away from two letters is anything.
        if name.chars().count() < 3 {
            return None;
        }
        let wanted = Candidate::new(name);
        let (lower, letters) = (name.to_lowercase(), count_letters(name));
        let mut best: Option<(f64, &'a str)> = None;
        for candidate in self.0.iter().filter(|other| wanted.may_be_near(other) && other.name != name) {
            let least = best.map_or(0.66, |(score, _)| score);
            if wanted.is_ascii && candidate.is_ascii {
                // What is less alike even if the order of its letters is right.
                let changes = surplus(&letters, &count_letters(candidate.name));
                let long = name.len().max(candidate.name.len());
                if changes * 100 > 34 * long || likeness(changes, long) < least {
                    continue;
                }
            }
            let score = strsim::normalized_damerau_levenshtein(&lower, &candidate.name.to_lowercase());
            let is_better = match best {
                Some((least, other)) => score.total_cmp(&least).then_with(|| other.cmp(candidate.name)).is_gt(),
                None => score > least,
            };
            if is_better {
                best = Some((score, candidate.name));
            }
        }
        best.map(|(_, name)| name)
    }
}

/// As strsim counts it.
#[expect(clippy::cast_precision_loss, reason = "names are short")]
fn likeness(changes: usize, length: usize) -> f64 {
    1.0 - changes as f64 / length as f64
}

/// A letter, whatever its case, is in one of 64 groups.
fn group(byte: u8) -> u8 {
    byte.to_ascii_lowercase() & 63
}

/// How often each group of letters comes.
fn count_letters(name: &str) -> [u8; 64] {
    let mut counts = [0_u8; 64];
    for byte in name.bytes() {
        let count = &mut counts[usize::from(group(byte))];
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

    #[test]
    fn of_names_that_are_equally_near_the_first_in_the_alphabet_is_meant() {
        let names = ["DEBUG_FSB", "DEBUG_FSA", "DEBUG_FSC"];
        assert_eq!(suggest("DEBUG_FS", names.into_iter()).as_deref(), Some("DEBUG_FSA"));
    }

    #[test]
    fn what_passes_the_cheap_questions_is_the_nearest_of_all() {
        let words: Vec<String> =
            (0..4000_u32).map(|number| format!("S{:X}É", number.wrapping_mul(2_654_435_761))).collect();
        let ascii = words.iter().map(|word| word.trim_end_matches('É'));
        let all: Vec<&str> = ascii.clone().chain(words.iter().map(String::as_str)).collect();
        for name in all.iter().filter(|name| name.chars().count() > 2).step_by(97) {
            let slow = all
                .iter()
                .filter(|other| *other != name && other.len().abs_diff(name.len()) <= 2 + name.len() / 3)
                .map(|other| {
                    (strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase()), *other)
                })
                .filter(|(score, _)| *score > 0.66)
                .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
            assert_eq!(suggest(name, all.iter().copied()).as_deref(), slow.map(|(_, other)| other), "{name}");
        }
    }
}
