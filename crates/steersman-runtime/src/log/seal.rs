//! Sealed secrets: logs and inboxes hold these in place of passwords and tokens.
//!
//! The key is never in a store, an export or a backup. Each sealing uses a new nonce, and a keyed digest shows which secrets are
//! equal. So approvals and the repeat guard can compare arguments.

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use serde_json::{Value as Json, json};
use steersman_machine::stored::ids::{hex, unhex};
use steersman_machine::values::json::{SEALED, is_sealed};
use steersman_machine::values::types::canonical;
use zeroize::Zeroizing;

/// Seals and opens secrets. A clone shares the key.
#[derive(Clone)]
pub struct Sealer(std::sync::Arc<Keys>);

struct Keys {
    cipher: ChaCha20Poly1305,
    digest: Zeroizing<[u8; 32]>,
}

/// Reasons for which a value cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value is not a sealed value.
    #[error("this is not a sealed value")]
    NotSealed,
    /// The value was sealed with another key, or was changed.
    #[error(
        "a sealed value cannot be opened with this key; the key of the machine that sealed it is needed"
    )]
    WrongKey,
}

impl Sealer {
    /// Creates a sealer with this key of 32 random bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        let cipher_key = Zeroizing::new(blake3::derive_key("steersman seal 1 cipher", key));
        let digest = Zeroizing::new(blake3::derive_key("steersman seal 1 digest", key));
        let cipher = ChaCha20Poly1305::new((&*cipher_key).into());
        Self(std::sync::Arc::new(Keys { cipher, digest }))
    }

    /// Creates a sealer with a key that is never stored: for tests, and for sessions that end with the process.
    pub fn ephemeral() -> Self {
        let mut key = Zeroizing::new([0_u8; 32]);
        getrandom::fill(&mut *key).expect("the operating system gives random bytes");
        Self::new(&key)
    }

    /// Seals a text. The result has a version, the nonce, the keyed digest and the ciphertext, in hexadecimal digits.
    pub fn seal_text(&self, plain: &str) -> String {
        let mut nonce = [0_u8; 12];
        getrandom::fill(&mut nonce).expect("the operating system gives random bytes");
        let sealed = self
            .0
            .cipher
            .encrypt(&Nonce::from(nonce), plain.as_bytes())
            .expect("a text of bounded length can be sealed");
        format!("1.{}.{}.{}", hex(&nonce), self.digest(plain), hex(&sealed))
    }

    /// Opens a text that [`Sealer::seal_text`] sealed.
    pub fn open_text(&self, sealed: &str) -> Result<Zeroizing<String>, SealError> {
        let mut parts = sealed.split('.');
        let (Some("1"), Some(nonce), Some(_), Some(cipher), None) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) else {
            return Err(SealError::NotSealed);
        };
        let nonce: [u8; 12] = unhex(nonce)
            .and_then(|n| n.try_into().ok())
            .ok_or(SealError::NotSealed)?;
        let cipher = unhex(cipher).ok_or(SealError::NotSealed)?;
        let plain = self
            .0
            .cipher
            .decrypt(&Nonce::from(nonce), cipher.as_slice())
            .map_err(|_| SealError::WrongKey)?;
        String::from_utf8(plain)
            .map(Zeroizing::new)
            .map_err(|_| SealError::WrongKey)
    }

    /// Seals a JSON value as an object with the only field `$sealed`. A value that is sealed already is returned unchanged.
    pub fn seal(&self, plain: &Json) -> Json {
        if is_sealed(plain) {
            return plain.clone();
        }
        json!({ SEALED: self.seal_text(&plain.to_string()) })
    }

    /// Opens a sealed JSON value.
    pub fn open(&self, sealed: &Json) -> Result<Json, SealError> {
        let text = sealed
            .get(SEALED)
            .and_then(Json::as_str)
            .ok_or(SealError::NotSealed)?;
        let plain = self.open_text(text)?;
        serde_json::from_str(&plain).map_err(|_| SealError::WrongKey)
    }

    /// Opens every sealed value within a JSON value.
    pub fn open_all(&self, json: &Json) -> Result<Json, SealError> {
        Ok(match json {
            Json::Object(_) if is_sealed(json) => self.open(json)?,
            Json::Object(map) => Json::Object(
                map.iter()
                    .map(|(k, v)| Ok((k.clone(), self.open_all(v)?)))
                    .collect::<Result<_, SealError>>()?,
            ),
            Json::Array(list) => Json::Array(
                list.iter()
                    .map(|v| self.open_all(v))
                    .collect::<Result<_, _>>()?,
            ),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => json.clone(),
        })
    }

    /// Returns the form in which JSON values are compared: sealed parts are replaced with their keyed digest. A missing field
    /// equals a `null` field.
    pub fn comparable(json: &Json) -> Json {
        canonical(&Self::unsealed(json))
    }

    fn unsealed(json: &Json) -> Json {
        match json {
            Json::Object(_) if is_sealed(json) => {
                let digest = json[SEALED].as_str().and_then(|s| s.split('.').nth(2));
                json!({ "$digest": digest })
            }
            Json::Object(map) => Json::Object(
                map.iter()
                    .filter(|(_, v)| !v.is_null())
                    .map(|(k, v)| (k.clone(), Self::unsealed(v)))
                    .collect(),
            ),
            Json::Array(list) => list.iter().map(Self::unsealed).collect(),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => json.clone(),
        }
    }

    fn digest(&self, plain: &str) -> String {
        hex(&blake3::keyed_hash(&self.0.digest, plain.as_bytes()).as_bytes()[..16])
    }
}

/// Returns true if these bytes of a store contain a sealed text: version, nonce and digest as [`Sealer::seal_text`] writes them.
pub fn occurs_in(bytes: &[u8]) -> bool {
    const NONCE: usize = 24;
    const DIGEST: usize = 32;
    let is_hex = |part: &[u8]| {
        let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        part.iter().all(digit)
    };
    bytes.windows(2 + NONCE + 1 + DIGEST + 1).any(|window| {
        let (begin, rest) = window.split_at(2);
        let (nonce, rest) = rest.split_at(NONCE);
        begin == b"1."
            && rest[0] == b'.'
            && rest[1 + DIGEST] == b'.'
            && is_hex(nonce)
            && is_hex(&rest[1..=DIGEST])
    })
}

/// Returns the sealed texts in a text, as [`Sealer::seal_text`] writes them.
pub fn sealed_in(text: &str) -> impl Iterator<Item = &str> {
    let digits = |from: usize| {
        let rest = text.as_bytes().get(from..).unwrap_or_default();
        let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        rest.iter().take_while(is_digit).count()
    };
    let dot = |at: usize| text.as_bytes().get(at) == Some(&b'.');
    text.match_indices("1.").filter_map(move |(begin, _)| {
        let (nonce, digest) = (begin + 2, begin + 2 + 25);
        let cipher = digest + 33;
        let is_sealed =
            digits(nonce) == 24 && dot(nonce + 24) && digits(digest) == 32 && dot(digest + 32);
        is_sealed.then(|| &text[begin..cipher + digits(cipher)])
    })
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let (ours, theirs) = (Sealer::new(&[7; 32]), Sealer::new(&[8; 32]));
        let sealed = ours.seal(&json!("s3cret"));
        assert!(!sealed.to_string().contains("s3cret"));
        assert_eq!(ours.open(&sealed), Ok(json!("s3cret")));
        assert_eq!(theirs.open(&sealed), Err(SealError::WrongKey));
        let changed = json!({ SEALED: sealed[SEALED].as_str().unwrap().replace("1.", "1.0") });
        assert!(ours.open(&changed).is_err());
        assert!(occurs_in(sealed.to_string().as_bytes()));
        assert!(occurs_in(
            &[b"\x07\x00", ours.seal_text("").as_bytes()].concat()
        ));
        assert!(!occurs_in(
            b"1.5 of 24 are sealed, $sealed, 1.00000000000000000000000a"
        ));
        assert_eq!(ours.open(&json!("plain")), Err(SealError::NotSealed));
        let (one, other) = (ours.seal_text("x"), ours.seal_text("y"));
        let text = format!("11.{one}é1.{other},1.00, {}", &one[..40]);
        assert_eq!(sealed_in(&text).collect::<Vec<_>>(), [&one, &other]);
    }

    #[test]
    fn equal_secrets_compare_equal_though_sealed_apart() {
        let ours = Sealer::new(&[7; 32]);
        let (a, b, c) = (
            ours.seal(&json!("x")),
            ours.seal(&json!("x")),
            ours.seal(&json!("y")),
        );
        assert_ne!(a, b);
        assert_eq!(Sealer::comparable(&a), Sealer::comparable(&b));
        assert_ne!(Sealer::comparable(&a), Sealer::comparable(&c));
    }
}
