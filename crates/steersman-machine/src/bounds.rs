//! How large things may be, and why: every size that the machine keeps to stands here.
//!
//! ```text
//! 256 KiB  MAX_LINE: what every store takes as one value, so the bytes of a line
//!  96 KiB  VALUES: state values, which the fold needs and which are never moved out
//!  16 KiB  DEFAULTS: defaults of state, each once in a line
//! 144 KiB  the rest: heads and the places of texts. An adoption may have 96 KiB of it (ADOPTED), one answer of a model takes
//!          less than 64 KiB (CALLS calls and results with names of NAME bytes), what else a tick takes is left
//!          for the next one above 32 KiB (TICK)
//! ```
//!
//! What does not fit is refused where it comes in, as a `misfit` that names it; no legal step makes a line above
//! [`MAX_LINE`]. Whoever drives a session measures each step all the same ([`crate::codec::least`]) before anything is
//! moved.

use crate::ids::Name;
use serde_json::Value as Json;
use std::io;

/// Most bytes of a line, and of any other single value that a store takes.
pub const MAX_LINE: usize = 256 << 10;

/// A text longer than this, in bytes, lies in the blob store, not in its line. No value of state ever does.
pub const INLINE_TEXT: usize = 16 << 10;

/// Most characters of a name that a model sees: providers refuse longer names of tools.
pub const SEEN_MAX: usize = 64;

/// A text of more bytes than this is moved out of a line that is too long: its place there takes 40.
pub const SHORT_TEXT: usize = 64;

/// Most bytes of one value of state, as JSON, and of what a reducer makes of several: it is carried in every snapshot.
pub const VALUE: usize = 64 << 10;

/// Most bytes of all values of state that one line writes: a value of full size and half of another.
pub const VALUES: usize = VALUE + VALUE / 2;

/// Deepest nesting of a value of state. What is stored is read again, and the reader of JSON gives up at 128; a reducer puts
/// a list around it.
pub const VALUE_DEPTH: usize = 64;

/// Most bytes of the defaults of all state that a definition declares: a tick may start any number of agents, and has
/// each default once.
pub const DEFAULTS: usize = 16 << 10;

/// Most bytes of an adoption beside its values: some 600 agents, at 130 to 160 bytes each.
pub const ADOPTED: usize = 96 << 10;

/// Most calls in one answer of a model.
pub const CALLS: usize = 128;

/// Most tasks that a concierge keeps to be done; of more the oldest are given up.
pub const GOALS: usize = 16;

/// Most messages of a conversation that a routing model is shown, and the step in which what it is shown moves on.
pub const HEARD: usize = 30;

/// Longest summary, in bytes; of a longer one the rest is left out, and that is said. Every request of whoever sees it has it.
pub const SUMMARY: usize = 8 << 10;

/// Longest name that comes from outside (a tool that a model made up, a code, a role), in bytes; a longer one is cut.
pub const NAME: usize = 128;

/// Most bytes of the fields that a wait compares events with: stores find waits by them.
pub const WAIT: usize = 16 << 10;

/// Longest rendered label, in bytes; a longer one is cut. Lists of sessions carry them.
pub const LABEL: usize = 1 << 10;

/// A result of more bytes than this becomes an artifact, unless its tool says otherwise.
pub const SPILL: usize = 16 << 10;

/// The same of passages that a search found: each has its own bound, and there are at most [`crate::notes::MOST`] of them.
pub const QUOTED: usize = 64 << 10;

/// Most bytes of the beginning of such a result that its call gets.
pub const PREVIEW: usize = 2 << 10;

/// Most bytes of one version of an artifact.
pub const ARTIFACT: usize = 32 << 20;

/// Most artifacts that come in with one message or event.
pub const FILES: usize = 16;

/// Once a tick has grown by so many bytes, as [`PUSH`] counts them, further offers are left for the next one.
pub const TICK: usize = 32 << 10;

/// What a push, a text or a thing that is made takes in a line, rather more than less, in bytes.
pub const PUSH: usize = 96;

/// More moves than this in one tick are a loop.
pub const MOVES: u32 = 1_000;

/// A name from outside, cut where it is too long.
pub(crate) fn name(text: &str) -> Name {
    cut(text, NAME).into()
}

/// At most so many bytes of a text, with `…` at the end of what was cut.
pub(crate) fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end]).into()
}

/// Bytes of a value as JSON.
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

/// Whether a value is nested deeper than [`VALUE_DEPTH`].
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
