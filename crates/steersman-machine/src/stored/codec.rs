//! Encodes lines and checkpoints as bytes. **Stored**: every form that was ever written must stay readable.
//!
//! ```text
//! line  = version | n | time | length of head | head | number of texts | texts | hash
//! head  = previous line, branch, commit, ledger entries: everything but texts; positional, ids as distances from n
//! text  = length and kind | the text, or the hash of a blob and its length, or the salted hash of what was erased, or another form
//! hash  = keyed by salt and n, over: hash of the previous line | everything before the texts | the salted hash of each text
//! salted hash of a text = keyed by salt, n and the number of the text, over: blake3 hash of the text | its length in 8 bytes
//! ```
//!
//! The hash covers the salted hashes of texts, so a text can be erased ([`erase`]) and the chain still verifies. Each is keyed
//! by the session's salt and by its place, so a tombstone does not reveal whether an equal text exists elsewhere. A line of
//! another session, or in another place, does not verify.
//!
//! A text is hashed once ([`Hashed`]). A text and the reference to it as a blob have the same salted hash. The salted hash of a
//! list of parts is made of the bytes of the list in the same way, with a key of its own.

mod form;
mod kept;
mod near;
mod skim;

pub use kept::{keep_outcome, kept_outcome};
pub use skim::{Skimmed, skim};

use crate::stored::bounds::{INLINE_TEXT, MAX_LINE, SHORT_TEXT};
use crate::stored::commit::{CallFact, CellFact, Commit, Hashed, LedgerEntry, LogLine, Text};
use crate::stored::ids::{Body, Id, Line, Time};
use crate::stored::interaction::{Interaction, Write};
use crate::stored::parts::{self, Part};
use form::Form;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Version of the form in which lines are written. Enums may grow at their end within a version. Any other change needs a new
/// version; the older ones stay readable (`form.rs`).
pub const VERSION: u8 = 1;

/// Number of the newest stored form: raised whenever an enum of lines grows, or the version of lines or snapshots changes. Each
/// owner writes its own number into its first line, and a store notes it, so that an older program does not take the session. A
/// program with a lower number reads no line from there on.
pub const REVISION: u16 = 3;

/// The hash of a line. The hash of `Line::NONE` is all zeros.
pub type Hash = [u8; 32];

/// The reason why bytes are not a line, or not the expected line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// The version of the line is unknown to this program.
    Version(u8),
    /// A newer program wrote the line: the hash fits, but the line cannot be read, or it claims the session with a newer revision.
    /// Holds the line and what is not known.
    Newer(Line, String),
    /// The bytes end in the middle of the line.
    Truncated,
    /// This many bytes follow the end of the line.
    Trailing(usize),
    /// A part cannot be read. Holds the name of the part and the reason.
    Malformed(&'static str, String),
    /// The hash of this line does not fit: the content was changed, or the line is in the wrong place.
    Hash(Line),
    /// The line has no text of this number.
    NoText(u32),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(v) => write!(f, "form {v} of lines, this program knows {VERSION}"),
            Self::Newer(n, why) => {
                write!(f, "line {n} has data unknown to this program: {why}")
            }
            Self::Truncated => f.write_str("it ends in the middle"),
            Self::Trailing(n) => write!(f, "{n} bytes follow its end"),
            Self::Malformed(part, why) => write!(f, "its {part} cannot be read: {why}"),
            Self::Hash(n) => write!(f, "the hash of line {n} does not fit its content or place"),
            Self::NoText(k) => write!(f, "it holds no text {k}"),
        }
    }
}

impl std::error::Error for CodecError {}

impl CodecError {
    /// Returns true if a newer program wrote the line. The line is not damaged then, and that program can read it.
    pub fn is_newer(&self) -> bool {
        match self {
            Self::Version(version) => *version > VERSION,
            Self::Newer(..) => true,
            Self::Truncated
            | Self::Trailing(_)
            | Self::Malformed(..)
            | Self::Hash(_)
            | Self::NoText(_) => false,
        }
    }
}

#[derive(Serialize)]
struct HeadRef<'a> {
    prev: Line,
    branch: Id,
    commit: &'a Option<Commit>,
    ledger: &'a [LedgerEntry],
}

/// Returns the bytes of a line and its hash. Panics if the line names a line above [`Line::MAX`].
pub fn encode(line: &LogLine, prev_hash: &Hash, salt: &[u8; 16]) -> (Vec<u8>, Hash) {
    framed(VERSION, &head_of(line), line, prev_hash, salt)
}

fn head_of(line: &LogLine) -> Vec<u8> {
    let head = HeadRef {
        prev: line.prev,
        branch: line.branch,
        commit: &line.commit,
        ledger: &line.ledger,
    };
    near::write(&head, line.n, Vec::with_capacity(192))
        .expect("only lines above the greatest one cannot be written")
}

/// Frames a head of any version with the texts of its line. The frame is the same in all versions.
fn framed(
    version: u8,
    head: &[u8],
    line: &LogLine,
    prev_hash: &Hash,
    salt: &[u8; 16],
) -> (Vec<u8>, Hash) {
    let texts: usize = line.bodies.iter().map(|t| 4 + in_row(t)).sum();
    let mut out = Vec::with_capacity(head.len() + texts + 48);
    out.push(version);
    put(&mut out, line.n.0);
    put(&mut out, zigzag(line.at.0));
    put(&mut out, head.len() as u64);
    out.extend_from_slice(head);
    put(&mut out, line.bodies.len() as u64);
    let mut hashed = Vec::with_capacity(32 + out.len() + 32 * line.bodies.len());
    hashed.extend_from_slice(prev_hash);
    hashed.extend_from_slice(&out);
    for (k, text) in line.bodies.iter().enumerate() {
        hashed.extend_from_slice(&salted_of(text, line.n, k, salt));
        put_text(&mut out, text);
    }
    let hash = blake3::keyed_hash(&key(salt, line.n, LINE_ITSELF), &hashed);
    out.extend_from_slice(hash.as_bytes());
    (out, *hash.as_bytes())
}

/// Parses a line and its stored hash. Does not check the hash; [`verify`] does.
pub fn decode(bytes: &[u8]) -> Result<(LogLine, Hash), CodecError> {
    let form = form_of(bytes, form::FORMS)?;
    let parts = Parts::of_any(bytes)?;
    parts.line(form, &parts.text_hashes())
}

fn form_of<'f>(bytes: &[u8], forms: &'f [Form]) -> Result<&'f Form, CodecError> {
    let version = *bytes.first().ok_or(CodecError::Truncated)?;
    let form = forms.iter().find(|form| form.version == version);
    form.ok_or(CodecError::Version(version))
}

impl Parts<'_> {
    /// Returns the line. `hashes` are those of [`Self::text_hashes`].
    fn line(&self, form: &Form, hashes: &[Hash]) -> Result<(LogLine, Hash), CodecError> {
        let head = (form.head)(self.head, self.n).map_err(|e| malformed("head", &e))?;
        let bodies = self
            .texts
            .iter()
            .zip(hashes)
            .map(|(slot, hash)| slot.text(hash))
            .collect::<Result<_, _>>()?;
        let line = LogLine {
            n: self.n,
            at: self.at,
            prev: head.prev,
            branch: head.branch,
            commit: head.commit,
            ledger: head.ledger,
            bodies,
        };
        values_can_be_read(&line)?;
        parts_are_there(&line)?;
        revision_is_known(&line)?;
        Ok((line, self.hash))
    }

    /// Returns the hash of each text; for an erased text, its salted hash.
    fn text_hashes(&self) -> Vec<Hash> {
        self.texts.iter().map(Slot::hash).collect()
    }

    /// Returns true if the hash of the line fits. `hashes` are those of [`Self::text_hashes`].
    fn hash_fits(&self, hashes: &[Hash], prev_hash: &Hash, salt: &[u8; 16]) -> bool {
        let mut hashed = Vec::with_capacity(32 + self.before_texts.len() + 32 * self.texts.len());
        hashed.extend_from_slice(prev_hash);
        hashed.extend_from_slice(self.before_texts);
        for (k, (slot, hash)) in self.texts.iter().zip(hashes).enumerate() {
            hashed.extend_from_slice(&slot.salted(hash, self.n, k, salt));
        }
        blake3::keyed_hash(&key(salt, self.n, LINE_ITSELF), &hashed) == self.hash
    }
}

/// Checks that the state values of a line are present and valid JSON, because the fold cannot report an error.
fn values_can_be_read(line: &LogLine) -> Result<(), CodecError> {
    for value in line.commit.iter().flat_map(values) {
        let text = line.bodies.get(value.k() as usize);
        let why = match text.filter(|_| value.line() == line.n) {
            None => Some("it is not among the texts of the line".to_owned()),
            Some(Text::Blob { .. }) => Some("it is stored outside of the line".to_owned()),
            Some(Text::Parts(_)) => Some("it has several parts".to_owned()),
            Some(Text::Erased { .. }) => None,
            Some(Text::Here(text)) => serde_json::from_str::<serde_json::Value>(text)
                .err()
                .map(|e| e.to_string()),
        };
        if let Some(why) = why {
            return Err(CodecError::Malformed(VALUE_OF_STATE, why));
        }
    }
    Ok(())
}

/// Checks that each list of parts names only texts that come before the list in the line, so that every reader comes to an end.
fn parts_are_there(line: &LogLine) -> Result<(), CodecError> {
    let is_text = |k: u32| !matches!(line.bodies[k as usize], Text::Parts(_));
    for (k, text) in (0..).zip(&line.bodies) {
        if let Text::Parts(parts) = text
            && let Some(why) = parts::misplaced(parts, k, is_text)
        {
            return Err(CodecError::Malformed("text", why));
        }
    }
    Ok(())
}

/// Checks that no newer program owns the session from this line on. That program may add a part to a known form, so this
/// program cannot rely on its reading of any later line.
fn revision_is_known(line: &LogLine) -> Result<(), CodecError> {
    let newer = line.ledger.iter().find_map(|entry| match entry {
        LedgerEntry::Claimed {
            revision, build, ..
        } if *revision > REVISION => Some((revision, build)),
        _ => None,
    });
    match newer {
        Some((revision, build)) => {
            let why =
                format!("revision {revision} of build {build}, this program knows {REVISION}");
            Err(CodecError::Newer(line.n, why))
        }
        None => Ok(()),
    }
}

/// Parses a line, and checks its hash against its content, the line before and the session. A refused line is damaged or in the
/// wrong place, except in two cases in which it is newer ([`CodecError::is_newer`]): its version is higher than this program knows,
/// or its hash fits but it cannot be read. A bad state value is always damage.
pub fn verify(
    bytes: &[u8],
    prev_hash: &Hash,
    salt: &[u8; 16],
) -> Result<(LogLine, Hash), CodecError> {
    verify_by(form::FORMS, bytes, prev_hash, salt)
}

fn verify_by(
    forms: &[Form],
    bytes: &[u8],
    prev_hash: &Hash,
    salt: &[u8; 16],
) -> Result<(LogLine, Hash), CodecError> {
    let form = match form_of(bytes, forms) {
        Err(CodecError::Version(version)) => {
            // If the hash fits with one of our versions in its place, the version byte is damaged and the line is not newer.
            let ours = forms.iter().find_map(|form| {
                let mut ours = bytes.to_vec();
                ours[0] = form.version;
                let parts = Parts::of_any(&ours).ok()?;
                let hashes = parts.text_hashes();
                parts.hash_fits(&hashes, prev_hash, salt).then_some(parts.n)
            });
            return Err(ours.map_or(CodecError::Version(version), CodecError::Hash));
        }
        form => form?,
    };
    let parts = Parts::of_any(bytes)?;
    let hashes = parts.text_hashes();
    if !parts.hash_fits(&hashes, prev_hash, salt) {
        return Err(CodecError::Hash(parts.n));
    }
    parts.line(form, &hashes).map_err(|why| match why {
        CodecError::Malformed(VALUE_OF_STATE, _) | CodecError::Newer(..) => why,
        why => CodecError::Newer(parts.n, why.to_string()),
    })
}

/// The part that [`CodecError::Malformed`] names for a bad state value. State values are JSON in every version, so such a
/// line is never reported as newer.
const VALUE_OF_STATE: &str = "value";

/// Returns the number of a line, the number of the line before and the branch, without reading the rest and without checking
/// the hash. A line of an unknown version is read as one of this version if that is possible.
pub fn peek(bytes: &[u8]) -> Result<(Line, Line, Id), CodecError> {
    let version = bytes.first().copied().unwrap_or(VERSION);
    let place = || {
        let parts = Parts::of_any(bytes)?;
        let start = near::read_start(parts.head, parts.n);
        let (prev, branch) = start.map_err(|e| malformed("head", &e))?;
        Ok((parts.n, prev, branch))
    };
    place().map_err(|e| match version {
        VERSION => e,
        other => CodecError::Version(other),
    })
}

/// Returns the hash that a line carries: its last 32 bytes.
pub fn stored_hash(bytes: &[u8]) -> Option<Hash> {
    bytes.last_chunk::<32>().copied()
}

/// Returns the line with its `k`-th text replaced by a tombstone. Its hash stays the same, and the line still verifies.
pub fn erase(bytes: &[u8], k: u32, salt: &[u8; 16]) -> Result<Vec<u8>, CodecError> {
    let parts = Parts::of(bytes)?;
    if parts.texts.len() <= k as usize {
        return Err(CodecError::NoText(k));
    }
    let mut out = Vec::with_capacity(bytes.len() + 32);
    out.extend_from_slice(parts.before_texts);
    for (at, slot) in parts.texts.iter().enumerate() {
        if at == k as usize {
            let hash = slot.salted(&slot.hash(), parts.n, at, salt);
            put_text(&mut out, &Text::Erased { hash });
        } else {
            put(&mut out, (slot.bytes.len() as u64) << 2 | slot.kind as u64);
            out.extend_from_slice(slot.bytes);
        }
    }
    out.extend_from_slice(&parts.hash);
    Ok(out)
}

/// Moves texts out of a line until it is short enough to be stored: first all above `INLINE_TEXT`, then the longest. The
/// returned texts must be in the blob store before the line is stored. Values of state stay, because the fold needs them.
pub fn spill(line: &mut LogLine) -> Vec<(Hash, Arc<str>)> {
    let mut total: usize = line.bodies.iter().map(in_row).sum();
    if total <= INLINE_TEXT {
        return Vec::new();
    }
    // Most heads take a few hundred bytes; the head of an adoption takes much more.
    let most = MAX_LINE.saturating_sub(head_of(line).len() + FRAME + 4 * line.bodies.len());
    let most = most.min(MAX_LINE / 2);
    let values = own_values(line);
    let mut large: Vec<(usize, usize)> = line
        .bodies
        .iter()
        .enumerate()
        .filter(|(k, text)| matches!(text, Text::Here(_)) && !values.contains(&(*k as u32)))
        .map(|(k, text)| (in_row(text), k))
        .collect();
    large.sort_unstable_by(|a, b| b.cmp(a));
    let mut blobs = Vec::new();
    for (len, k) in large {
        if len <= INLINE_TEXT && (total <= most || len <= SHORT_TEXT) {
            break;
        }
        let Text::Here(text) = &line.bodies[k] else {
            continue;
        };
        let hash = *text.hash();
        blobs.push((hash, text.text().clone()));
        line.bodies[k] = Text::Blob {
            hash,
            len: len as u64,
        };
        total -= len - BLOB;
    }
    blobs
}

/// Returns the size of a line after [`spill`] has moved out all that it can. Above [`MAX_LINE`] the line cannot be stored.
pub fn least(line: &LogLine) -> usize {
    let values = own_values(line);
    let texts = line.bodies.iter().enumerate().map(|(k, text)| {
        let moves = !values.contains(&(k as u32))
            && !matches!(text, Text::Parts(_))
            && in_row(text) > SHORT_TEXT;
        4 + if moves { BLOB } else { in_row(text) }
    });
    head_of(line).len() + FRAME + texts.sum::<usize>()
}

/// Returns the number of bytes that a value takes in the head of a line.
pub(crate) fn size<T: Serialize>(value: &T, line: Line) -> usize {
    let bytes = near::write(value, line, Vec::new());
    bytes
        .expect("only lines above the greatest one cannot be written")
        .len()
}

/// Maximum size, in bytes, of version, number, time, lengths and hash of a line.
const FRAME: usize = 1 + 6 + 10 + 4 + 4 + 32;
/// Bytes of the reference to a blob in its line.
const BLOB: usize = 40;

fn own_values(line: &LogLine) -> BTreeSet<u32> {
    let values = line.commit.iter().flat_map(values);
    values.map(Body::k).collect()
}

/// Returns the texts of a commit that are values of state. They are texts of the commit's own line.
fn values(commit: &Commit) -> Vec<Body> {
    let mut of_state = Vec::new();
    let mut take = |writes: &[Write]| of_state.extend(writes.iter().filter_map(|w| w.value));
    take(&commit.edits);
    commit.made.iter().for_each(|made| take(&made.state));
    for push in &commit.pushes {
        match &push.what {
            Interaction::Result(result) => take(&result.writes),
            Interaction::Route(route) => take(&route.writes),
            Interaction::Finished { writes, .. } => take(writes),
            Interaction::UserMessage { .. }
            | Interaction::AssistantMessage { .. }
            | Interaction::Call(_)
            | Interaction::Summary(_)
            | Interaction::Earlier(_) => {}
        }
    }
    if let Some(adoption) = &commit.adoption {
        let calls = adoption.calls.iter().flat_map(|call| &call.facts);
        of_state.extend(calls.filter_map(|fact| match fact {
            CallFact::Write(write, _) => write.value,
            _ => None,
        }));
        let cells = adoption.cells.iter().flat_map(|cell| &cell.facts);
        of_state.extend(cells.filter_map(|fact| match fact {
            CellFact::Set(body, _) => Some(*body),
            CellFact::Expires(_) => None,
        }));
    }
    of_state
}

/// Encodes a checkpoint of any value that is folded from lines, with the version of its form. The value holds after line
/// `at`, whose hash is `hash`.
pub fn encode_checkpoint<T: Serialize + ?Sized>(
    version: u8,
    at: Line,
    hash: &Hash,
    salt: &[u8; 16],
    value: &T,
) -> Vec<u8> {
    let mut out = vec![version];
    put(&mut out, at.0);
    out.extend_from_slice(hash);
    let mut out =
        near::write(value, at, out).expect("only lines above the greatest one cannot be written");
    let sum = blake3::keyed_hash(&key(salt, at, CHECKPOINT_ITSELF), &out);
    out.extend_from_slice(&sum.as_bytes()[..16]);
    out
}

/// Reads what [`encode_checkpoint`] wrote. Returns `None` if it has another version or is damaged in any way.
pub fn decode_checkpoint<T: DeserializeOwned>(
    version: u8,
    bytes: &[u8],
    salt: &[u8; 16],
) -> Option<(Line, Hash, T)> {
    let (content, sum) = bytes.split_last_chunk::<16>()?;
    let mut input = Input(content);
    if input.byte().ok()? != version {
        return None;
    }
    let at = input.line().ok()?;
    let expected = blake3::keyed_hash(&key(salt, at, CHECKPOINT_ITSELF), content);
    if expected.as_bytes()[..16] != sum[..] {
        return None;
    }
    let hash = *input.take(32).ok()?.first_chunk::<32>()?;
    let value = near::read(input.0, at).ok()?;
    Some((at, hash, value))
}

/// Bit that is set in the hash keys of texts of the kind [`TextKind::Other`], in addition to the number of the text.
const OTHER: u64 = 1 << 32;
const LINE_ITSELF: u64 = u64::MAX;
const CHECKPOINT_ITSELF: u64 = u64::MAX - 1;

/// Returns the 32 bytes of a hash key: the salt, the line, and the number of the text or of what else is hashed.
fn key(salt: &[u8; 16], n: Line, which: u64) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(salt);
    key[16..24].copy_from_slice(&n.0.to_le_bytes());
    key[24..].copy_from_slice(&which.to_le_bytes());
    key
}

#[derive(Copy, Clone)]
#[repr(u8)]
enum TextKind {
    Here = 0,
    Blob = 1,
    Erased = 2,
    Other = 3,
}

/// A text of a kind beyond the first three. The number of the variant is the first byte. Append-only.
#[derive(Serialize, Deserialize)]
enum Other {
    /// A list of parts.
    Parts(Arc<[Part]>),
}

fn salted_of(text: &Text, n: Line, k: usize, salt: &[u8; 16]) -> Hash {
    match text {
        Text::Here(text) => salted(text.hash(), text.len() as u64, n, k as u64, salt),
        Text::Blob { hash, len } => salted(hash, *len, n, k as u64, salt),
        Text::Erased { hash } => *hash,
        Text::Parts(parts) => {
            let bytes = other_slot(parts);
            let hash = blake3::hash(&bytes);
            salted(
                hash.as_bytes(),
                bytes.len() as u64,
                n,
                k as u64 | OTHER,
                salt,
            )
        }
    }
}

/// Returns the salted hash of a text of a line, from the text's hash and length. `which` is the number of the text; for a list
/// of parts, with [`OTHER`], so that equal bytes of two kinds have different salted hashes.
fn salted(hash: &Hash, len: u64, n: Line, which: u64, salt: &[u8; 16]) -> Hash {
    *blake3::keyed_hash(&key(salt, n, which), &blob_slot(hash, len)).as_bytes()
}

/// Returns the reference that is in the line in place of a text that is a blob.
fn blob_slot(hash: &Hash, len: u64) -> [u8; 40] {
    let mut slot = [0; 40];
    slot[..32].copy_from_slice(hash);
    slot[32..].copy_from_slice(&len.to_le_bytes());
    slot
}

/// Returns the bytes of a list of parts.
fn other_slot(parts: &Arc<[Part]>) -> Vec<u8> {
    postcard::to_allocvec(&Other::Parts(parts.clone())).expect("numbers and names can be written")
}

/// Returns the number of bytes that a text takes in its line.
pub(crate) fn in_row(text: &Text) -> usize {
    match text {
        Text::Here(text) => text.len(),
        Text::Blob { .. } => BLOB,
        Text::Erased { .. } => 32,
        Text::Parts(parts) => other_slot(parts).len(),
    }
}

fn put_text(out: &mut Vec<u8>, text: &Text) {
    let kind = match text {
        Text::Here(_) => TextKind::Here,
        Text::Blob { .. } => TextKind::Blob,
        Text::Erased { .. } => TextKind::Erased,
        Text::Parts(_) => TextKind::Other,
    };
    put(out, (in_row(text) as u64) << 2 | kind as u64);
    match text {
        Text::Here(text) => out.extend_from_slice(text.as_bytes()),
        Text::Blob { hash, len } => out.extend_from_slice(&blob_slot(hash, *len)),
        Text::Erased { hash } => out.extend_from_slice(hash),
        Text::Parts(parts) => out.extend_from_slice(&other_slot(parts)),
    }
}

fn put(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Maps a signed number to an unsigned one that is small if the absolute value is small.
fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

fn malformed(part: &'static str, why: &dyn fmt::Display) -> CodecError {
    CodecError::Malformed(part, why.to_string())
}

/// A line split into its parts; its head and texts are not parsed yet.
struct Parts<'a> {
    n: Line,
    at: Time,
    head: &'a [u8],
    before_texts: &'a [u8],
    texts: Vec<Slot<'a>>,
    hash: Hash,
}

struct Slot<'a> {
    kind: TextKind,
    bytes: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, CodecError> {
        form_of(bytes, form::FORMS)?;
        Self::of_any(bytes)
    }

    /// Splits a line of any version.
    fn of_any(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let mut input = Input(bytes);
        input.byte()?;
        let n = input.line()?;
        if !n.is_some() {
            return Err(malformed("number", &"0"));
        }
        let at = Time(unzigzag(input.number()?));
        let len = input.len()?;
        let head = input.take(len)?;
        let count = input.len()?;
        let before_texts = &bytes[..bytes.len() - input.0.len()];
        // Each text takes at least one byte. Without this check a corrupt count could allocate too much memory.
        if count > input.0.len() {
            return Err(CodecError::Truncated);
        }
        let texts = (0..count)
            .map(|_| input.slot())
            .collect::<Result<Vec<_>, _>>()?;
        let hash = input.take(32)?;
        let hash = *hash.first_chunk::<32>().ok_or(CodecError::Truncated)?;
        if !input.0.is_empty() {
            return Err(CodecError::Trailing(input.0.len()));
        }
        Ok(Self {
            n,
            at,
            head,
            before_texts,
            texts,
            hash,
        })
    }
}

impl Slot<'_> {
    fn text(&self, hash: &Hash) -> Result<Text, CodecError> {
        Ok(match self.kind {
            TextKind::Here => {
                let text = std::str::from_utf8(self.bytes).map_err(|e| malformed("text", &e))?;
                Text::Here(Hashed::known(text.into(), *hash))
            }
            TextKind::Blob => Text::Blob {
                hash: *hash,
                len: self.len(),
            },
            TextKind::Erased => Text::Erased { hash: *hash },
            TextKind::Other => {
                // Lists name no lines, so their form is the same from any base.
                let other = near::read(self.bytes, Line::NONE);
                let Other::Parts(parts) = other.map_err(|e| malformed("text", &e))?;
                Text::Parts(parts)
            }
        })
    }

    /// Returns the length of the text, or of the bytes of a list.
    fn len(&self) -> u64 {
        match (self.kind, self.bytes.last_chunk::<8>()) {
            (TextKind::Blob, Some(len)) => u64::from_le_bytes(*len),
            _ => self.bytes.len() as u64,
        }
    }

    /// Returns the hash of the text, or of the bytes of a list; for an erased text, its salted hash.
    fn hash(&self) -> Hash {
        match (self.kind, self.bytes.first_chunk::<32>()) {
            (TextKind::Blob | TextKind::Erased, Some(hash)) => *hash,
            _ => *blake3::hash(self.bytes).as_bytes(),
        }
    }

    fn salted(&self, hash: &Hash, n: Line, k: usize, salt: &[u8; 16]) -> Hash {
        match self.kind {
            TextKind::Erased => *hash,
            TextKind::Here | TextKind::Blob => salted(hash, self.len(), n, k as u64, salt),
            TextKind::Other => salted(hash, self.len(), n, k as u64 | OTHER, salt),
        }
    }
}

/// The bytes that are not read yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], CodecError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(CodecError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, CodecError> {
        Ok(self.take(1)?[0])
    }

    /// Reads a number in its shortest form.
    fn number(&mut self) -> Result<u64, CodecError> {
        let mut v = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            v |= bits << shift;
            if byte < 0x80 {
                let is_shortest = byte != 0 || shift == 0;
                let longer = || malformed("number", &"it is longer than it has to be");
                return is_shortest.then_some(v).ok_or_else(longer);
            }
        }
        Err(malformed("number", &"it is over 64 bits"))
    }

    fn len(&mut self) -> Result<usize, CodecError> {
        usize::try_from(self.number()?).map_err(|_| CodecError::Truncated)
    }

    fn line(&mut self) -> Result<Line, CodecError> {
        match Line(self.number()?) {
            n if n <= Line::MAX => Ok(n),
            n => Err(malformed("number", &n)),
        }
    }

    fn slot(&mut self) -> Result<Slot<'a>, CodecError> {
        let code = self.number()?;
        let (len, kind) = match code & 3 {
            0 => (code >> 2, TextKind::Here),
            1 => (code >> 2, TextKind::Blob),
            2 => (code >> 2, TextKind::Erased),
            _ => (code >> 2, TextKind::Other),
        };
        let fixed = match kind {
            TextKind::Here | TextKind::Other => None,
            TextKind::Blob => Some(40),
            TextKind::Erased => Some(32),
        };
        if fixed.is_some_and(|fixed| fixed != len) {
            return Err(malformed("text", &format_args!("{len} bytes")));
        }
        let len = usize::try_from(len).map_err(|_| CodecError::Truncated)?;
        Ok(Slot {
            kind,
            bytes: self.take(len)?,
        })
    }
}
