//! The texts of an encoded line, without the line itself.

use super::{CodecError, Hash, Parts, TextKind, malformed};

/// A text of an encoded line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Skimmed<'a> {
    /// The text is in the line.
    Here(&'a str),
    /// The text is a blob of the store, with this hash.
    Blob(Hash),
}

/// Returns the texts of an encoded line of any version: those in it, and the hashes of those in blobs. The parts of a list are texts
/// of the line, too. Takes a tenth of the time of [`decode`](super::decode), and checks no hash: [`verify`](super::verify) the lines
/// that are shown.
///
/// # Errors
/// The bytes are not a line.
pub fn skim(bytes: &[u8]) -> Result<impl Iterator<Item = Skimmed<'_>>, CodecError> {
    let parts = Parts::of_any(bytes)?;
    let texts = parts.texts.into_iter().filter_map(|slot| match slot.kind {
        TextKind::Here => {
            let text = std::str::from_utf8(slot.bytes);
            Some(text.map_or_else(
                |why| Err(malformed("text", &why)),
                |text| Ok(Skimmed::Here(text)),
            ))
        }
        TextKind::Blob => Some(Ok(Skimmed::Blob(slot.hash()))),
        TextKind::Erased | TextKind::Other => None,
    });
    let texts: Vec<_> = texts.collect::<Result<_, _>>()?;
    Ok(texts.into_iter())
}
