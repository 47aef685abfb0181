//! Ids of sessions. This is the only place that makes them or reads a part of them.

use std::fmt;
use std::sync::Arc;

/// Id of a session.
///
/// An id that the runtime makes has 16 characters of Crockford's base 32 in lower case: the digits, and the letters without `i`,
/// `l`, `o` and `u`. The first two are the code of the store in which the session began; 14 are random or from a digest (70
/// bits). A caller may give another id, of at most [`bounds::SESSION_ID`](super::bounds::SESSION_ID) bytes.
pub type SessionId = Arc<str>;

/// Characters of an id that are the code of a store.
const CODE: usize = 2;
/// Characters of an id that are random or from a digest.
const REST: usize = 14;

/// Code of the store in which a session began: two characters.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreCode([u8; CODE]);

impl StoreCode {
    /// The code of a store that is not one of several: `aa`.
    pub const ALONE: Self = Self(*b"aa");

    /// Returns the code in a session's id. `None` if the id does not have the form of those that the runtime makes.
    pub fn of(id: &str) -> Option<Self> {
        let is_made = id.len() == CODE + REST && id.bytes().all(|b| LETTERS.contains(&b));
        let code = id.as_bytes().first_chunk()?;
        is_made.then_some(Self(*code))
    }
}

impl fmt::Display for StoreCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|b| fmt::Write::write_char(f, char::from(*b)))
    }
}

impl fmt::Debug for StoreCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreCode({self})")
    }
}

/// Makes the id of a session from the code of its store and the first 70 bits of these bytes, which are random or from a digest.
pub fn session_id(store: StoreCode, bytes: &[u8; 9]) -> SessionId {
    let rest = base32(bytes);
    format!("{store}{}", &rest[..REST]).into()
}

/// Makes a random id for a session that begins in this store.
pub(crate) fn random_session_id() -> SessionId {
    let mut bytes = [0_u8; 9];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    session_id(StoreCode::ALONE, &bytes)
}

/// The alphabet: no two of its characters are easily confused.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Encodes bytes in base 32, the highest bits first.
pub(crate) fn base32(bytes: &[u8]) -> Arc<str> {
    let (mut out, mut bits, mut held) = (String::new(), 0_u32, 0_u32);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(LETTERS[(held >> bits & 31) as usize]));
        }
    }
    if bits > 0 {
        out.push(char::from(LETTERS[(held << (5 - bits) & 31) as usize]));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::super::bounds;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_id_is_the_code_of_the_store_and_70_bits() {
        let id = |bytes: &[u8; 9]| session_id(StoreCode::ALONE, bytes);
        assert_eq!(&*id(&[0; 9]), "aa00000000000000");
        assert_eq!(&*id(&[0xff; 9]), "aazzzzzzzzzzzzzz");
        assert_eq!(&*id(b"steersman"), "aaedt6asbjedpp2v");
        let mut last = [0; 9];
        last[8] = 0b100;
        assert_eq!(&*id(&last), "aa00000000000001");
        last[8] = 0b11;
        assert_eq!(id(&last), id(&[0; 9]), "two bits are left over");
    }

    #[test]
    fn random_ids_differ_and_say_their_store() {
        let ids: BTreeSet<SessionId> = (0..1000).map(|_| random_session_id()).collect();
        assert_eq!(ids.len(), 1000);
        for id in &ids {
            assert_eq!(StoreCode::of(id), Some(StoreCode::ALONE), "{id}");
            bounds::session_id(id).unwrap();
        }
    }

    #[test]
    fn an_id_of_another_form_says_no_store() {
        assert_eq!(StoreCode::of("zz00000000000000").unwrap().to_string(), "zz");
        for given in [
            "",
            "aa",
            "aa0000000000000",
            "aa000000000000000",
            "aa0000000000000l",
            "order-4711",
            "AA00000000000000",
        ] {
            assert_eq!(StoreCode::of(given), None, "{given}");
        }
    }
}
