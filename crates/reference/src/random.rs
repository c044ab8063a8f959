//! Choices that look random and are the same in every run, on every machine.

/// A generator of numbers with good low bits, from a seed.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one below `limit`, which is not 0. (`SplitMix64`; that its remainders are not quite
    /// even does not matter here.)
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// The text without about `percent` of a hundred of its lines.
#[must_use]
pub fn without_lines(text: &[u8], percent: u64, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|_| numbers.below(100) >= percent).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_leaves_the_same_lines() {
        let text: Vec<u8> = (0..1000).flat_map(|number: u32| format!("{number}\n").into_bytes()).collect();
        let left = without_lines(&text, 40, 7);
        assert_eq!(left, without_lines(&text, 40, 7));
        assert_ne!(left, without_lines(&text, 40, 8));
        let lines = String::from_utf8(left).unwrap().lines().count();
        assert!((550..650).contains(&lines), "{lines}");
    }
}
