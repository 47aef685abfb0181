//! Parts of an answer that the decoders and encoders of several protocols share: its bound, its pieces in their order, and the ids of
//! its calls.

use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::outcome::Failure;

/// Maximum number of bytes of text, reasoning and arguments together.
const ANSWER_MAX: usize = 16 << 20;
/// Maximum number of blocks of one answer.
pub(crate) const BLOCKS_MAX: usize = 1024;

/// Counts the bytes of an answer.
#[derive(Debug, Default)]
pub(crate) struct Size(usize);

impl Size {
    /// Counts more bytes. Fails above [`ANSWER_MAX`].
    pub(crate) fn add(&mut self, more: usize) -> Result<(), Failure> {
        self.0 += more;
        if self.0 > ANSWER_MAX {
            let message = "the answer is larger than 16 MiB";
            return Err(Failure::new(FailureCode::TooLarge, message));
        }
        Ok(())
    }
}

/// Returns the failure of an answer with more than [`BLOCKS_MAX`] blocks.
pub(crate) fn too_many_blocks() -> Failure {
    let message = format!("the answer has more than {BLOCKS_MAX} blocks");
    Failure::new(FailureCode::TooLarge, message)
}

/// Reads a JSON object. `what` names it in the failure.
pub(crate) fn object(text: &str, what: &str) -> Result<Json, Failure> {
    let json = steersman_machine::values::json::read::<Json>(text).ok();
    json.filter(Json::is_object).ok_or_else(|| {
        Failure::new(
            FailureCode::BadResponse,
            format!("{what} is not a JSON object: {text}"),
        )
    })
}

/// Returns the arguments of a call as an object: servers that want an object refuse anything else.
pub(crate) fn arguments(args: &str) -> Json {
    match serde_json::from_str::<Json>(args) {
        Ok(Json::Object(input)) => Json::Object(input),
        _ => json!({ "malformed": args }),
    }
}

/// A piece of an answer; the list of pieces keeps their order for sending them back. **Stored** in an answer's `opaque`:
/// `{ KEY: [ { block }, 12, "call" ] }`, where a number is a length in bytes of the text. A text or call that has more fields of
/// its protocol, such as a signature, is `{ "text": 12, "with": { .. } }` or `{ "call": { .. } }`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// A block that is sent back unchanged: thinking with its signature. It has a `type`.
    Block(Json),
    /// This many bytes of the text, and its other fields.
    Text(usize, Map<String, Json>),
    /// The next call of the answer, in order, and its other fields.
    Call(Map<String, Json>),
}

impl Piece {
    /// Reads the pieces of an `opaque` of the protocol with this key; returns none for any other.
    fn read(opaque: &str, key: &str) -> Vec<Self> {
        let opaque = serde_json::from_str::<Json>(opaque).unwrap_or_default();
        let list = opaque.get(key).and_then(Json::as_array);
        let length = |len: &Json| usize::try_from(len.as_u64()?).ok();
        let piece = |piece: &Json| match piece {
            Json::Object(fields) if fields.contains_key("type") => Some(Self::Block(piece.clone())),
            Json::Object(fields) => {
                match (fields.get("text"), fields.get("with"), fields.get("call")) {
                    (Some(len), Some(Json::Object(with)), None) => {
                        Some(Self::Text(length(len)?, with.clone()))
                    }
                    (None, None, Some(Json::Object(with))) => Some(Self::Call(with.clone())),
                    _ => Some(Self::Block(piece.clone())),
                }
            }
            Json::Number(_) => Some(Self::Text(length(piece)?, Map::new())),
            _ => (piece == "call").then(|| Self::Call(Map::new())),
        };
        let pieces = list.into_iter().flatten().map(piece);
        pieces.collect::<Option<_>>().unwrap_or_default()
    }

    /// Writes the pieces as an `opaque` of the protocol with this key. `None` if the order is the usual one, and nothing else has to
    /// be kept: at most one text, then the calls.
    pub(crate) fn write(pieces: &[Self], key: &str) -> Option<String> {
        let first = pieces.iter().position(|p| matches!(p, Self::Call(_)));
        let (before, after) = pieces.split_at(first.unwrap_or(pieces.len()));
        let text = |piece: &Self| matches!(piece, Self::Text(_, with) if with.is_empty());
        let call = |piece: &Self| matches!(piece, Self::Call(with) if with.is_empty());
        if before.len() <= 1 && before.iter().all(text) && after.iter().all(call) {
            return None;
        }
        let piece = |piece: &Self| match piece {
            Self::Block(block) => block.clone(),
            Self::Text(len, with) if with.is_empty() => json!(len),
            Self::Text(len, with) => json!({ "text": len, "with": with }),
            Self::Call(with) if with.is_empty() => json!("call"),
            Self::Call(with) => json!({ "call": with }),
        };
        let pieces: Vec<Json> = pieces.iter().map(piece).collect();
        Some(json!({ key: pieces }).to_string())
    }

    /// Returns true if the pieces give the order of exactly this text and this number of calls.
    fn fit(pieces: &[Self], text: &str, calls: usize) -> bool {
        let mut at = 0_usize;
        let mut found = 0;
        for piece in pieces {
            match piece {
                Self::Block(_) => {}
                Self::Text(len, _) => {
                    at = at.saturating_add(*len);
                    if !text.is_char_boundary(at) {
                        return false;
                    }
                }
                Self::Call(_) => found += 1,
            }
        }
        !pieces.is_empty() && at == text.len() && found == calls
    }
}

/// A part of an answer that is sent back.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// A block as it came.
    Block(Json),
    /// A part of the text, and its other fields.
    Text(&'a str, Map<String, Json>),
    /// The call with this number, and its other fields.
    Call(usize, Map<String, Json>),
}

/// Returns the parts of an answer in their original order, and true, if the order is known. Otherwise blocks, text, calls.
pub(crate) fn in_order<'a>(
    (opaque, key): (Option<&str>, &str),
    text: Option<&'a str>,
    calls: usize,
) -> (Vec<Part<'a>>, bool) {
    let text = text.unwrap_or_default();
    let pieces = opaque
        .map(|opaque| Piece::read(opaque, key))
        .unwrap_or_default();
    if !Piece::fit(&pieces, text, calls) {
        let blocks = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Block(block) => Some(Part::Block(block)),
            Piece::Text(..) | Piece::Call(_) => None,
        });
        let calls = (0..calls).map(|n| Part::Call(n, Map::new()));
        let text = [Part::Text(text, Map::new())];
        return (blocks.chain(text).chain(calls).collect(), false);
    }
    let (mut text, mut call) = (text, 0..);
    let parts = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Block(block) => Some(Part::Block(block)),
        Piece::Text(len, with) => {
            let (head, tail) = text.split_at(len);
            text = tail;
            Some(Part::Text(head, with))
        }
        Piece::Call(with) => Some(Part::Call(call.next()?, with)),
    });
    (parts.collect(), true)
}

/// Ids that a protocol accepts: unique, bounded, and of allowed characters. Labels of calls may be none of this, because they come from
/// any provider that the session had, and some providers count from 1 in each answer.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    given: BTreeSet<String>,
    /// The newest id of each label: a result follows its call.
    of: BTreeMap<String, String>,
    /// Maximum length in bytes, if there is one.
    longest: Option<usize>,
}

impl Ids {
    /// Creates ids of at most this many bytes, which are at least 40.
    pub(crate) fn within(longest: usize) -> Self {
        Self {
            longest: Some(longest),
            ..Self::default()
        }
    }

    /// Makes the id of a new call with this label.
    pub(crate) fn call(&mut self, label: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut plain: String = label
            .chars()
            .map(|c| if fits(c) { c } else { '_' })
            .collect();
        // A number may follow, to make the id unique.
        if self
            .longest
            .is_some_and(|longest| plain.len() + 8 > longest)
        {
            let hash = blake3::hash(label.as_bytes()).to_hex();
            plain = format!("call_{}", &hash.as_str()[..24]);
        }
        let mut id = plain.clone();
        let mut n = 1;
        while id.is_empty() || !self.given.insert(id.clone()) {
            n += 1;
            id = format!("{plain}_{n}");
        }
        self.of.insert(label.to_owned(), id.clone());
        id
    }

    /// Returns the id of the newest call with this label.
    pub(crate) fn of(&mut self, label: &str) -> String {
        match self.of.get(label) {
            Some(id) => id.clone(),
            None => self.call(label),
        }
    }
}
