//! The random numbers of the C library that the C tools are built with, so that a seed means the
//! same there and here.
//!
//! Additive feedback over 31 words, seeded by a multiplicative generator: a published algorithm, no
//! cryptography.

const WORDS: usize = 31;
const SEPARATION: usize = 3;
/// Numbers that are thrown away after seeding.
const WARM_UP: usize = 310;

/// `srand` and `rand` of glibc.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: [u32; WORDS],
    at: usize,
}

impl Random {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [0; WORDS];
        let mut word = i64::from(if seed == 0 { 1 } else { seed.cast_signed() });
        for (index, slot) in state.iter_mut().enumerate() {
            if index > 0 {
                word = 16_807 * (word % 127_773) - 2_836 * (word / 127_773);
                if word < 0 {
                    word += 2_147_483_647;
                }
            }
            *slot = u32::try_from(word & 0xffff_ffff).unwrap_or_default();
        }
        let mut random = Self { state, at: 0 };
        for _ in 0..WARM_UP {
            random.next();
        }
        random
    }

    /// A number from 0 to 2^31 - 1.
    pub(super) fn next(&mut self) -> u32 {
        let front = (self.at + SEPARATION) % WORDS;
        let sum = self.state[front].wrapping_add(self.state[self.at]);
        self.state[front] = sum;
        self.at = (self.at + 1) % WORDS;
        sum >> 1
    }

    /// A number from 0 to `bound` - 1.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_first_numbers_are_those_of_the_c_library() {
        let mut random = Random::new(1);
        assert_eq!([random.next(), random.next(), random.next()], [1_804_289_383, 846_930_886, 1_681_692_777]);
        assert_eq!(Random::new(0).next(), 1_804_289_383, "0 counts as 1");
        assert_eq!(Random::new(42).next(), 71_876_166);
    }
}
