//! Sealed secrets: logs, inboxes and tables of the store hold these in place of passwords and tokens.
//!
//! ```text
//! 1.KEY.NONCE.DIGEST.CIPHERTEXT      version, id of the key, nonce, keyed digest, ciphertext; lower-case hexadecimal digits
//! ```
//!
//! The ciphertext authenticates all that precedes it. Keys are never in a store, an export or a backup. Each sealing uses a new
//! nonce. Equal secrets have equal digests under one key, so approvals and the repeat guard can compare arguments; keys share
//! no digests, so a key that became known says nothing about what another one sealed ([`Sealer::comparable`]).

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::ids::{hex, unhex};
use steersman_machine::values::json::{SEALED, is_sealed};
use steersman_machine::values::types::canonical;
use zeroize::Zeroizing;

/// Most keys of a [`Sealer`].
pub const KEYS: usize = 8;

/// Id of a sealing key: four bytes that are derived from the key and reveal nothing about it. Shown as eight hexadecimal digits.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// Seals and opens secrets: one key seals and opens, older ones only open. A clone shares the keys.
#[derive(Clone)]
pub struct Sealer {
    /// The key that seals, then those that only open.
    keys: Arc<[Key]>,
}

#[derive(Clone)]
struct Key {
    id: KeyId,
    cipher: ChaCha20Poly1305,
    digest: Zeroizing<[u8; 32]>,
}

/// Reasons for which a value cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value is not a sealed value.
    #[error("this is not a sealed value")]
    NotSealed,
    /// The value has a version that this program does not know.
    #[error("a value was sealed by a newer program, and this one cannot open it")]
    Newer,
    /// The sealer does not have the key that sealed the value.
    #[error(
        "a value is sealed with key {wanted}, and this machine has {}: give it key {wanted}, too",
        in_words(.here)
    )]
    OtherKey {
        /// The key that sealed the value.
        wanted: KeyId,
        /// The keys of the sealer.
        here: Vec<KeyId>,
    },
    /// The value does not fit the key that it names: it was changed after it was sealed.
    #[error("a value that key {0} sealed was changed later and cannot be opened")]
    Damaged(KeyId),
}

/// Returns keys as people read them: `key 3fa2b1c0`.
pub fn in_words(keys: &[KeyId]) -> String {
    let ids: Vec<String> = keys.iter().map(KeyId::to_string).collect();
    match &ids[..] {
        [id] => format!("key {id}"),
        ids => format!("keys {}", ids.join(", ")),
    }
}

impl Key {
    fn new(key: &[u8; 32]) -> Self {
        let derived = |what: &str| Zeroizing::new(blake3::derive_key(what, key));
        let id = derived("steersman seal 1 key id");
        Self {
            id: KeyId([id[0], id[1], id[2], id[3]]),
            cipher: ChaCha20Poly1305::new((&*derived("steersman seal 1 cipher")).into()),
            digest: derived("steersman seal 1 digest"),
        }
    }

    fn digest(&self, plain: &str) -> String {
        hex(&blake3::keyed_hash(&self.digest, plain.as_bytes()).as_bytes()[..16])
    }
}

impl From<&[u8; 32]> for Sealer {
    fn from(key: &[u8; 32]) -> Self {
        Self::new(key)
    }
}

impl Sealer {
    /// Creates a sealer with this key of 32 random bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        Self {
            keys: [Key::new(key)].into(),
        }
    }

    /// Adds a key that only opens: one that sealed before, or one that other processes seal with already.
    ///
    /// # Panics
    /// If the sealer has more than [`KEYS`] keys then.
    #[must_use]
    pub fn opening(self, key: &[u8; 32]) -> Self {
        let key = Key::new(key);
        if self.keys.iter().any(|known| known.digest == key.digest) {
            return self;
        }
        assert!(self.keys.len() < KEYS, "a sealer has at most {KEYS} keys");
        let keys = self.keys.iter().cloned().chain([key]);
        Self {
            keys: keys.collect(),
        }
    }

    /// Reads the keys of a sealer: 64 hexadecimal digits each, separated by white space, the key that seals first. `None` if the
    /// text holds no key, more than [`KEYS`], or something else.
    pub fn parse(text: &str) -> Option<Self> {
        let key = |digits: &str| -> Option<Zeroizing<[u8; 32]>> {
            let bytes = Zeroizing::new(unhex(digits)?);
            Some(Zeroizing::new(bytes.as_slice().try_into().ok()?))
        };
        let words: Vec<&str> = text.split_whitespace().take(KEYS + 1).collect();
        let (first, others) = words.split_first().filter(|_| words.len() <= KEYS)?;
        let mut others = others.iter();
        others.try_fold(Self::new(&*key(first)?), |sealer, digits| {
            Some(sealer.opening(&*key(digits)?))
        })
    }

    /// Creates a sealer with a key that is never stored: for tests, and for sessions that end with the process.
    pub fn ephemeral() -> Self {
        let mut key = Zeroizing::new([0_u8; 32]);
        getrandom::fill(&mut *key).expect("the operating system gives random bytes");
        Self::new(&key)
    }

    /// Returns the ids of the keys: the one that seals, then those that only open.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().map(|key| key.id)
    }

    /// Seals a text. The result has the form that the module describes.
    pub fn seal_text(&self, plain: &str) -> String {
        let key = &self.keys[0];
        let mut nonce = [0_u8; 12];
        getrandom::fill(&mut nonce).expect("the operating system gives random bytes");
        let head = format!("1.{}.{}.{}.", key.id, hex(&nonce), key.digest(plain));
        let payload = Payload {
            msg: plain.as_bytes(),
            aad: head.as_bytes(),
        };
        let sealed = key.cipher.encrypt(&Nonce::from(nonce), payload);
        let sealed = sealed.expect("a text of bounded length can be sealed");
        head + &hex(&sealed)
    }

    /// Opens a text that [`Sealer::seal_text`] sealed.
    pub fn open_text(&self, sealed: &str) -> Result<Zeroizing<String>, SealError> {
        let Some(parts) = Parts::of(sealed) else {
            let is_newer = is_newer(sealed);
            return Err(if is_newer {
                SealError::Newer
            } else {
                SealError::NotSealed
            });
        };
        let payload = || Payload {
            msg: &parts.cipher,
            aad: parts.head.as_bytes(),
        };
        let nonce = Nonce::from(parts.nonce);
        let mut named = self
            .keys
            .iter()
            .filter(|key| key.id == parts.key)
            .peekable();
        if named.peek().is_none() {
            return Err(SealError::OtherKey {
                wanted: parts.key,
                here: self.keys().collect(),
            });
        }
        let plain = named.find_map(|key| key.cipher.decrypt(&nonce, payload()).ok());
        plain
            .and_then(|plain| String::from_utf8(plain).ok())
            .map(Zeroizing::new)
            .ok_or(SealError::Damaged(parts.key))
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
        serde_json::from_str(&plain).map_err(|_| SealError::NotSealed)
    }

    /// Returns the forms in which a JSON value is compared. In each form the sealed parts are replaced with their digests under
    /// one key, and a missing field equals a `null` field.
    ///
    /// The first form is under the key that seals; this is the form to record. The others are the forms that were recorded, or
    /// are recorded by other processes, while one of the other keys seals. So a value equals an earlier one if any of its forms
    /// is the recorded form of that one. A value without sealed parts has one form. A part that no key here opens keeps the
    /// digest that is written in it.
    pub fn comparable(&self, json: &Json) -> Vec<Json> {
        let count = if holds_sealed(json) {
            self.keys.len()
        } else {
            1
        };
        let keys = self.keys[..count].iter();
        keys.map(|key| canonical(&self.compared(json, key)))
            .collect()
    }

    fn compared(&self, json: &Json, key: &Key) -> Json {
        match json {
            Json::Object(_) if is_sealed(json) => match self.digest(json, key) {
                Some(digest) => json!({ "$digest": digest }),
                None => json.clone(),
            },
            Json::Object(map) => Json::Object(
                map.iter()
                    .filter(|(_, v)| !v.is_null())
                    .map(|(k, v)| (k.clone(), self.compared(v, key)))
                    .collect(),
            ),
            Json::Array(list) => list.iter().map(|v| self.compared(v, key)).collect(),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => json.clone(),
        }
    }

    /// Returns the digest of a sealed value under a key. `None` if the value has another form, such as the handle of a declared
    /// secret.
    fn digest(&self, sealed: &Json, key: &Key) -> Option<String> {
        let text = sealed[SEALED].as_str()?;
        let parts = Parts::of(text)?;
        if parts.key == key.id {
            return Some(parts.digest.to_owned());
        }
        let opened = self.open_text(text);
        Some(opened.map_or_else(|_| parts.digest.to_owned(), |plain| key.digest(&plain)))
    }
}

fn holds_sealed(json: &Json) -> bool {
    match json {
        Json::Object(_) if is_sealed(json) => true,
        Json::Object(map) => map.values().any(holds_sealed),
        Json::Array(list) => list.iter().any(holds_sealed),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// The parts of a sealed text.
struct Parts<'a> {
    /// Everything before the ciphertext, with the last dot.
    head: &'a str,
    key: KeyId,
    nonce: [u8; 12],
    digest: &'a str,
    cipher: Vec<u8>,
}

const VERSION: &[u8] = b"1.";
/// Digits of the key's id, the nonce and the digest.
const FIELDS: [usize; 3] = [8, 24, 32];
/// Digits of the shortest ciphertext: that of an empty text.
const SHORTEST: usize = 32;

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        if length(text.as_bytes()) != Some(text.len()) {
            return None;
        }
        let mut parts = text.split('.').skip(1);
        let (key, nonce, digest) = (parts.next()?, parts.next()?, parts.next()?);
        let cipher = parts.next()?;
        Some(Self {
            head: &text[..text.len() - cipher.len()],
            key: KeyId(unhex(key)?.try_into().ok()?),
            nonce: unhex(nonce)?.try_into().ok()?,
            digest,
            cipher: unhex(cipher)?,
        })
    }
}

/// Returns the length of the sealed text that begins these bytes.
fn length(bytes: &[u8]) -> Option<usize> {
    let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let mut rest = bytes.strip_prefix(VERSION)?;
    for digits in FIELDS {
        let (field, behind) = rest.split_at_checked(digits)?;
        if !field.iter().all(|byte| is_digit(&byte)) {
            return None;
        }
        rest = behind.strip_prefix(b".")?;
    }
    // Two digits are one byte, so an odd digit at the end is not part of the text.
    let cipher = rest.iter().take_while(is_digit).count() & !1;
    (cipher >= SHORTEST).then(|| bytes.len() - rest.len() + cipher)
}

/// Returns true if a text begins with the version of a later form and has one more part at least.
fn is_newer(text: &str) -> bool {
    let version = text.split_once('.').map(|(version, _)| version);
    version.is_some_and(|version| version.parse::<u32>().is_ok_and(|version| version > 1))
}

/// Returns true if a text is a sealed text.
pub(crate) fn is_sealed_text(text: &str) -> bool {
    length(text.as_bytes()) == Some(text.len())
}

/// Returns the places of sealed texts in bytes: where each begins, and its length.
fn places(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let begins = bytes.windows(VERSION.len()).enumerate();
    let begins = begins.filter(|(_, window)| *window == VERSION);
    begins.filter_map(|(at, _)| Some((at, length(&bytes[at..])?)))
}

/// Returns the sealed texts in a text.
pub fn sealed_in(text: &str) -> impl Iterator<Item = &str> {
    places(text.as_bytes()).map(|(at, length)| &text[at..at + length])
}

/// Returns the key of each sealed text in these bytes.
pub fn keys_in(bytes: &[u8]) -> impl Iterator<Item = KeyId> {
    places(bytes).filter_map(|(at, _)| {
        let from = at + VERSION.len();
        let digits = std::str::from_utf8(&bytes[from..from + FIELDS[0]]).ok()?;
        Some(KeyId(unhex(digits)?.try_into().ok()?))
    })
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({})", in_words(&self.keys().collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let (ours, theirs) = (Sealer::new(&[7; 32]), Sealer::new(&[8; 32]));
        let [our_id, their_id] = [&ours, &theirs].map(|sealer| sealer.keys().next().unwrap());
        let sealed = ours.seal(&json!("s3cret"));
        assert!(!sealed.to_string().contains("s3cret"));
        assert_eq!(ours.open(&sealed), Ok(json!("s3cret")));
        let refused = theirs.open(&sealed).unwrap_err();
        assert_eq!(
            refused,
            SealError::OtherKey {
                wanted: our_id,
                here: vec![their_id]
            }
        );
        assert_eq!(
            refused.to_string(),
            format!(
                "a value is sealed with key {our_id}, and this machine has key {their_id}: give it key {our_id}, too"
            )
        );
        assert_eq!(ours.open(&json!("plain")), Err(SealError::NotSealed));
        assert_eq!(ours.open_text("1.5"), Err(SealError::NotSealed));
        assert_eq!(ours.open_text("2.5"), Err(SealError::Newer));
    }

    /// No part of a sealed text can be exchanged: its digest decides what equals what.
    #[test]
    fn a_changed_text_is_refused_whatever_part_was_changed() {
        let ours = Sealer::new(&[7; 32]).opening(&[8; 32]);
        let id = ours.keys().next().unwrap();
        let (one, other) = (ours.seal_text("one"), ours.seal_text("two"));
        let parts = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        for at in 2..5 {
            let mut mixed = parts(&one);
            mixed[at] = parts(&other).swap_remove(at);
            assert_eq!(
                ours.open_text(&mixed.join(".")),
                Err(SealError::Damaged(id)),
                "part {at}"
            );
        }
        let mut renamed = parts(&one);
        let older = ours.keys().nth(1).unwrap();
        renamed[1] = older.to_string();
        assert_eq!(
            ours.open_text(&renamed.join(".")),
            Err(SealError::Damaged(older))
        );
        assert_eq!(ours.open_text(&one).unwrap().as_str(), "one");
    }

    #[test]
    fn sealed_texts_are_found_in_whatever_surrounds_them() {
        let (ours, theirs) = (Sealer::new(&[7; 32]), Sealer::new(&[8; 32]));
        let (one, other) = (ours.seal_text("x"), theirs.seal_text(""));
        let text = format!("11.{one}é1.{other},1.00, {}", &one[..90]);
        assert_eq!(sealed_in(&text).collect::<Vec<_>>(), [&one, &other]);
        assert!(is_sealed_text(&one) && !is_sealed_text(&one[..90]) && !is_sealed_text(&text));
        let bytes = [
            b"\xff\x00",
            one.as_bytes(),
            b"\x00",
            other.as_bytes(),
            b"a\xff",
        ]
        .concat();
        let ids: Vec<KeyId> = ours.keys().chain(theirs.keys()).collect();
        assert_eq!(keys_in(&bytes).collect::<Vec<_>>(), ids);
        assert_eq!(
            keys_in(b"1.5 of 24 are sealed, $sealed, 1.00000000.000000000a").count(),
            0
        );
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
        assert_eq!(ours.comparable(&a), ours.comparable(&b));
        assert_ne!(ours.comparable(&a), ours.comparable(&c));
        assert_eq!(ours.comparable(&a).len(), 1);
        // A declared secret is a handle with its name.
        let handle = |name: &str| ours.comparable(&json!({ SEALED: name }));
        assert_ne!(handle("one"), handle("other"));
    }

    #[test]
    fn keys_are_read_one_in_a_line() {
        let digits = |byte: u8| hex(&[byte; 32]);
        let read = |text: &str| Some(Sealer::parse(text)?.keys().collect::<Vec<_>>());
        let ids = |bytes: &[u8]| {
            let id = |byte: &u8| Sealer::new(&[*byte; 32]).keys().next().unwrap();
            Some(bytes.iter().map(id).collect::<Vec<_>>())
        };
        assert_eq!(read(&digits(1)), ids(&[1]));
        assert_eq!(
            read(&format!("{}\n\n{}\r\n", digits(2), digits(1))),
            ids(&[2, 1])
        );
        assert_eq!(
            read(&format!(" {} {} ", digits(2), digits(2).to_uppercase())),
            ids(&[2])
        );
        let all: Vec<String> = (1..=8).map(digits).collect();
        assert_eq!(read(&all.join("\n")), ids(&[1, 2, 3, 4, 5, 6, 7, 8]));
        for wrong in [
            "",
            " \n",
            "ab",
            &digits(1)[1..],
            &format!("{} x", digits(1)),
            &format!("{} {}", all.join(" "), digits(9)),
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_older_key_opens_and_the_newest_seals() {
        let (old, new) = (Sealer::new(&[1; 32]), Sealer::new(&[2; 32]));
        let both = Sealer::new(&[2; 32]).opening(&[1; 32]).opening(&[2; 32]);
        assert_eq!(both.keys().collect::<Vec<_>>().len(), 2, "each key once");
        let before = old.seal(&json!("x"));
        assert_eq!(both.open(&before), Ok(json!("x")));
        let after = both.seal(&json!("x"));
        assert_eq!(new.open(&after), Ok(json!("x")));
        assert!(old.open(&after).is_err());
    }

    /// A call is recorded in its first form, under the key that seals then. It is recognised after each rotation as long as that
    /// key is here, whichever keys sealed its parts.
    #[test]
    fn equal_secrets_compare_equal_after_a_rotation() {
        let keys = [[1; 32], [2; 32], [3; 32]];
        let first = Sealer::new(&keys[0]);
        let second = Sealer::new(&keys[1]).opening(&keys[0]);
        let third = Sealer::new(&keys[2]).opening(&keys[1]).opening(&keys[0]);
        let call = |pin: Json, token: Json| json!({ "to": "anna", "auth": [pin, { "t": token }] });
        let (pin, token) = (json!("1234"), json!("tok"));
        let recorded = [
            first.comparable(&call(first.seal(&pin), first.seal(&token))),
            second.comparable(&call(first.seal(&pin), second.seal(&token))),
            third.comparable(&call(second.seal(&pin), third.seal(&token))),
        ];
        for now in [
            call(first.seal(&pin), second.seal(&token)),
            call(third.seal(&pin), third.seal(&token)),
        ] {
            let forms = third.comparable(&now);
            assert_eq!(forms.len(), 3);
            for recorded in &recorded {
                assert!(forms.contains(&recorded[0]), "{recorded:?}");
            }
        }
        let other = third.comparable(&call(third.seal(&json!("4321")), third.seal(&token)));
        assert!(recorded.iter().all(|known| !other.contains(&known[0])));
        // A key that became known says nothing about what its successor sealed.
        let alone = Sealer::new(&keys[1]);
        assert!(
            !first
                .comparable(&pin_of(&first))
                .contains(&alone.comparable(&pin_of(&alone))[0])
        );
        // Without the older key the older secret is compared as it is written.
        let kept = alone.comparable(&call(first.seal(&pin), first.seal(&token)));
        assert_eq!(kept, recorded[0]);
    }

    fn pin_of(sealer: &Sealer) -> Json {
        sealer.seal(&json!("1234"))
    }
}
