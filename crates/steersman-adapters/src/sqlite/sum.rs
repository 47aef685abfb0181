//! Checksums and hashes that rows keep.

use blake3::Hasher;

/// A blake3 hash in the making. **Stored**: rows keep its first bytes.
#[derive(Default)]
pub(super) struct Sum(Hasher);

impl Sum {
    /// Begins with these parts, each after its length, so that no part can take bytes of the next.
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let sum = Self::default();
        parts.iter().fold(sum, |sum, part| {
            sum.and(&(part.len() as u64).to_le_bytes()).and(part)
        })
    }

    /// Adds bytes of a length that the others determine.
    pub(super) fn and(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self
    }

    /// Returns the first bytes of the hash.
    pub(super) fn first<const N: usize>(self) -> [u8; N] {
        let mut first = [0; N];
        self.0.finalize_xof().fill(&mut first);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn the_bytes_that_are_hashed_stay_the_same() {
        let bytes = b"\x02\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0c";
        let first: [u8; 8] = Sum::of(&[b"ab", b""]).and(b"c").first();
        assert_eq!(first, blake3::hash(bytes).as_bytes()[..8]);
        let first: [u8; 16] = Sum::default().and(b"salt").and(b"said").first();
        assert_eq!(first, blake3::hash(b"saltsaid").as_bytes()[..16]);
    }
}
