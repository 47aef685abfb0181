//! Codes that stand for a token once, for a short time: a browser is started with a code in its address, so that no token is in an address.

use crate::token::random;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use steersman::machine::stored::ids::Time;

/// Number of characters of a code: 160 random bits.
const LENGTH: usize = 32;
/// Milliseconds for which a code is good.
const GOOD: i64 = 60_000;
/// Maximum number of codes that are good at once.
const MOST: usize = 1000;
/// Maximum number of codes of one token that are good at once; the next one takes the place of its oldest.
const OF_ONE: usize = 8;

/// The codes that are good, by their digests.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<HashMap<[u8; 32], (Time, String)>>);

impl Codes {
    /// Returns a code for a token. `None` if there are too many.
    pub(crate) fn make(&self, token: &str, now: Time) -> Option<String> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, (end, _)| now < *end);
        let own = codes.iter().filter(|(_, (_, of))| *of == *token);
        let oldest = own.clone().min_by_key(|(_, (end, _))| *end);
        let oldest = oldest.filter(|_| own.count() >= OF_ONE);
        if let Some(oldest) = oldest.map(|(digest, _)| *digest) {
            codes.remove(&oldest);
        }
        if codes.len() >= MOST {
            return None;
        }
        let code = random::<LENGTH>();
        let end = Time(now.0.saturating_add(GOOD));
        codes.insert(digest(&code), (end, token.to_owned()));
        Some(code)
    }

    /// Returns the token for a code that is good, and forgets the code.
    pub(crate) fn take(&self, code: &str, now: Time) -> Option<String> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, token) = codes.remove(&digest(code))?;
        (now < end).then_some(token)
    }
}

/// Digests are compared and not codes, so the time of a comparison tells nothing.
fn digest(code: &str) -> [u8; 32] {
    blake3::hash(code.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_leaves_room_for_others() {
        let codes = Codes::default();
        let first = codes.make("stm_a", Time(0)).unwrap();
        let all = (1..5_000).map(|n| codes.make("stm_a", Time(n)).unwrap());
        let last = all.last().unwrap();
        assert!(codes.make("stm_b", Time(5_000)).is_some());
        assert_eq!(codes.take(&first, Time(5_000)), None);
        assert_eq!(codes.take(&last, Time(5_000)).as_deref(), Some("stm_a"));
    }

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let codes = Codes::default();
        let code = codes.make("stm_a", Time(0)).unwrap();
        assert_eq!(codes.take("another", Time(1)), None);
        assert_eq!(codes.take(&code, Time(59_999)).as_deref(), Some("stm_a"));
        assert_eq!(codes.take(&code, Time(59_999)), None);
        let code = codes.make("stm_a", Time(0)).unwrap();
        assert_eq!(codes.take(&code, Time(60_000)), None);
    }

    #[test]
    fn codes_that_nobody_takes_do_not_pile_up() {
        let codes = Codes::default();
        for n in 0..MOST {
            codes.make(&format!("stm_{n}"), Time(0)).unwrap();
        }
        assert_eq!(codes.make("stm_a", Time(0)), None);
        assert!(codes.make("stm_a", Time(GOOD)).is_some());
    }
}
