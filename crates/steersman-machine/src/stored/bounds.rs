//! Limits of the data that the machine takes in and stores, with their reasons.
//!
//! ```text
//! 256 KiB  MAX_LINE: the largest value that every store takes, so the limit for the bytes of a line
//!  96 KiB  VALUES: state values, which the fold needs and which are never moved out of the line
//!  16 KiB  DEFAULTS: defaults of state, each of them once in a line
//! 144 KiB  the rest: heads and the references to texts. An adoption may take 96 KiB of it (ADOPTED), one answer of a model
//!          takes less than 64 KiB (CALLS calls and results with names of NAME bytes). Once the other offers of a tick take
//!          32 KiB (TICK), further ones are left for the next tick
//! ```
//!
//! Data that does not fit is refused where it comes in, as a `misfit` that names it. No legal step makes a line above
//! [`MAX_LINE`]. The driver of a session nevertheless measures each step ([`crate::stored::codec::least`]) before it moves any text.

use crate::stored::ids::Name;
use serde_json::Value as Json;
use std::io;

/// Maximum size, in bytes, of a line, and of any other single value that a store takes.
pub const MAX_LINE: usize = 256 << 10;

/// A text of more bytes than this is stored as a blob and not in its line. Values of state always stay in the line.
pub(crate) const INLINE_TEXT: usize = 16 << 10;

/// Most characters of a name that a model sees: providers refuse longer names of tools.
pub const SEEN_MAX: usize = 64;

/// A line that is too long moves out texts of more bytes than this. The reference that stays takes 40 bytes.
pub(crate) const SHORT_TEXT: usize = 64;

/// Maximum size, in bytes, of one value of state as JSON, also after a reducer has joined several. Every snapshot carries it.
pub const VALUE: usize = 64 << 10;

/// Maximum size, in bytes, of all values of state that one line writes: one and a half times [`VALUE`].
pub const VALUES: usize = VALUE + VALUE / 2;

/// Deepest nesting of a value of state. Stored values are parsed again, and the JSON parser gives up at a depth of 128. A
/// reducer may put a list around a value.
pub(crate) const VALUE_DEPTH: usize = 64;

/// Maximum size, in bytes, of the defaults of all state that a definition declares. A tick may start any number of agents; its line
/// holds each default once.
pub const DEFAULTS: usize = 16 << 10;

/// Maximum size, in bytes, of an adoption without its values: some 600 agents, at 130 to 160 bytes each.
pub(crate) const ADOPTED: usize = 96 << 10;

/// Most calls in one answer of a model.
pub const CALLS: usize = 128;

/// Most tasks that a concierge remembers as still to be done. Beyond that the oldest are dropped.
pub(crate) const GOALS: usize = 16;

/// A routing model sees the newest messages of a conversation. The first of them moves on in steps of this many, so it sees
/// at most twice as many.
pub const HEARD: usize = 30;

/// Maximum size, in bytes, of a summary. A longer one is cut, and the text says so. Every request of an agent that sees it
/// contains it.
pub(crate) const SUMMARY: usize = 8 << 10;

/// Maximum size, in bytes, of a name from outside (a tool that a model made up, a code, a role). A longer name is cut.
pub const NAME: usize = 128;

/// Maximum size, in bytes, of the fields that a wait compares events with. Stores index waits by these fields.
pub const WAIT: usize = 16 << 10;

/// Maximum size, in bytes, of a rendered label. A longer one is cut. Lists of sessions contain labels.
pub const LABEL: usize = 1 << 10;

/// A result of more bytes than this becomes an artifact, unless the definition of its tool sets another limit.
pub const SPILL: usize = 16 << 10;

/// The limit of [`SPILL`] for passages that a search found. Each passage has a bound of its own, and there are at most
/// [`crate::network::notes::MOST`] of them.
pub const QUOTED: usize = 64 << 10;

/// Maximum size, in bytes, of the beginning of a spilled result that its call gets.
pub const PREVIEW: usize = 2 << 10;

/// Maximum size, in bytes, of one version of an artifact.
pub const ARTIFACT: usize = 32 << 20;

/// Most artifacts that come in with one message or event.
pub const FILES: usize = 16;

/// Largest file that a model gets if its definition sets no other size, in bytes: the smallest bound among the providers, which
/// Bedrock has for images, is 3.75 MB.
pub const SHOWN_FILE: usize = 3_584 << 10;

/// Maximum size, in bytes, of all files of one request to a model together. In base64 this is less than the 32 MB that the
/// strictest provider for whole requests takes.
pub const SHOWN_FILES: usize = 20 << 20;

/// Most parts of one body. A reference to an artifact takes some 300 bytes at most, and stays in its line.
pub const PARTS: usize = 32;

/// Once a tick has grown by this many bytes, counted by [`PUSH`], further offers are left for the next tick.
pub(crate) const TICK: usize = 32 << 10;

/// Estimated bytes in a line for one push, one text or one new thing; a generous estimate.
pub(crate) const PUSH: usize = 96;

/// Most moves in one tick. More are treated as a loop.
pub(crate) const MOVES: u32 = 1_000;

/// Returns a name from outside, cut to [`NAME`] bytes.
pub fn name(text: &str) -> Name {
    cut(text, NAME).into()
}

/// Returns a text cut to at most `most` bytes. A cut text ends with `…`.
pub(crate) fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end]).into()
}

/// Returns the beginning of a text, for a message: at most `most` characters. A cut text ends with `..`.
pub(crate) fn beginning(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}..", &text[..end]).into(),
        None => text.into(),
    }
}

/// Returns the size of a value as JSON, in bytes.
pub fn size(value: &Json) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("counting never fails, and keys are texts");
    count.0
}

/// Returns true if a value is nested deeper than [`VALUE_DEPTH`].
pub(crate) fn is_too_deep(value: &Json) -> bool {
    let mut level: Vec<&Json> = vec![value];
    for _ in 0..VALUE_DEPTH {
        let next = level.iter().flat_map(|value| {
            let (list, object) = (value.as_array(), value.as_object());
            let items = list.into_iter().flatten();
            items.chain(object.into_iter().flat_map(|o| o.values()))
        });
        level = next.collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}
