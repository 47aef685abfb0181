//! Mutations of seeds that follow from one number. They need no instrumented build, so CI can make them.

/// Random changes of inputs. The same seed makes the same changes.
pub struct Mutations<'a> {
    seeds: &'a [Vec<u8>],
    words: &'a [&'a str],
    state: u64,
}

/// Maximum number of bytes of a mutated input.
const LONGEST: usize = 64 << 10;
/// Numbers at the borders of types.
const NUMBERS: [&str; 8] = [
    "0",
    "-1",
    "127",
    "255",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e999",
];

impl<'a> Mutations<'a> {
    /// Creates mutations of these seeds, which are not empty. `words` are pieces to insert.
    pub fn new(seeds: &'a [Vec<u8>], words: &'a [&'a str], state: u64) -> Self {
        assert!(!seeds.is_empty(), "there is something to change");
        Self {
            seeds,
            words,
            state,
        }
    }

    /// Returns the next mutated input.
    pub fn input(&mut self) -> Vec<u8> {
        let mut bytes = self.seed().to_vec();
        for _ in 0..=self.below(5) {
            self.change(&mut bytes);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn seed(&mut self) -> &'a [u8] {
        let at = self.below(self.seeds.len());
        &self.seeds[at]
    }

    /// Returns a short range of places in `bytes`.
    fn range(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let from = self.below(bytes.len() + 1);
        let most = 1 << self.below(9);
        let len = self.below(most + 1);
        from..bytes.len().min(from + len)
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.range(bytes);
        let random = self.next() as u8;
        match self.below(10) {
            0 => bytes
                .iter_mut()
                .skip(at.start)
                .take(1)
                .for_each(|byte| *byte ^= 1 << (random % 8)),
            1 => bytes
                .iter_mut()
                .skip(at.start)
                .take(1)
                .for_each(|byte| *byte = random),
            2 => bytes.insert(at.start, random),
            3 => drop(bytes.drain(at)),
            4 => {
                let again = bytes[at.clone()].to_vec();
                bytes.splice(at.start..at.start, again);
            }
            5 | 6 if !self.words.is_empty() => {
                let word = self.below(self.words.len());
                bytes.splice(at.start..at.start, self.words[word].bytes());
            }
            7 => {
                let number = NUMBERS[self.below(NUMBERS.len())];
                let digits = bytes[at.start..].iter().position(u8::is_ascii_digit);
                let from = at.start + digits.unwrap_or(0);
                let digit = |byte: &&u8| byte.is_ascii_digit();
                let to = from + bytes[from..].iter().take_while(digit).count();
                bytes.splice(from..to, number.bytes());
            }
            8 => {
                let behind = |bytes: &[u8], at: usize| {
                    let end = bytes[at..].iter().position(|byte| *byte == b'\n');
                    end.map_or(bytes.len(), |end| at + end + 1)
                };
                let other = self.seed();
                let from = behind(other, self.range(other).start);
                let line = other[from..behind(other, from)].iter().copied();
                let at = behind(bytes.as_slice(), at.start);
                let to = if random.is_multiple_of(2) {
                    at
                } else {
                    behind(bytes.as_slice(), at)
                };
                bytes.splice(at..to, line);
            }
            _ => {
                let other = self.seed();
                let piece = self.range(other);
                bytes.splice(at, other[piece].iter().copied());
            }
        }
    }
}
