//! Random numbers that follow from a seed.

/// A generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Returns a generator for these numbers. Equal numbers give equal generators.
    pub(super) fn of(numbers: &[u64]) -> Self {
        let mut dice = Self(0);
        for number in numbers {
            dice.0 ^= *number;
            dice.0 = dice.roll();
        }
        dice
    }

    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.roll() % n.max(1)
    }

    /// Returns true `n` times in a hundred.
    pub(super) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    /// Returns one of the elements; `None` if there is none.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len() as u64);
        of.get(usize::try_from(at).unwrap_or_default())
    }
}
