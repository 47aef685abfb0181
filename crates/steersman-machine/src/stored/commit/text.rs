//! Texts of lines. **Stored** by [`crate::stored::codec`].

use crate::stored::parts::Part;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A text of a line, or the reference, tombstone or list of parts in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Text {
    /// The text itself, stored in the line.
    Here(Hashed),
    /// The text is in the blob store under this hash. Used for texts over 16 KiB, and for others if the line is too long.
    Blob {
        /// blake3 hash of the text.
        hash: [u8; 32],
        /// Length of the text in bytes.
        len: u64,
    },
    /// The text was erased. Its salted hash is still part of the line's hash, so the chain verifies.
    Erased {
        /// Salted blake3 hash of the erased text's hash and length.
        hash: [u8; 32],
    },
    /// Several parts, in order. Their texts are other texts of the line, so they are moved out and erased as any text is.
    Parts(Arc<[Part]>),
}

/// A text with its blake3 hash. The hash is computed once, when the text comes in or is read: the hash of a line, the digests
/// that tell whether two results are the same, and the name of the blob follow from it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Arc<str>", into = "Arc<str>")]
pub struct Hashed {
    text: Arc<str>,
    hash: [u8; 32],
}

impl Hashed {
    /// Returns a text whose hash is known.
    pub(in crate::stored) fn known(text: Arc<str>, hash: [u8; 32]) -> Self {
        debug_assert_eq!(hash, *blake3::hash(text.as_bytes()).as_bytes());
        Self { text, hash }
    }
    /// Returns the text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
    /// Returns the blake3 hash of the text.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }
}

impl From<Arc<str>> for Hashed {
    fn from(text: Arc<str>) -> Self {
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        Self { text, hash }
    }
}

impl From<&str> for Hashed {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<String> for Hashed {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<Hashed> for Arc<str> {
    fn from(hashed: Hashed) -> Self {
        hashed.text
    }
}

impl Deref for Hashed {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Hashed {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Hashed {}

impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
