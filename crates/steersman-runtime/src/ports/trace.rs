//! Ids of traces and spans, and the trace context that crosses processes (W3C Trace Context).
//!
//! Every id follows from what the log says, so each process gives the same ids for the same session: a turn that goes on in another
//! process goes on in the same trace, and a span that was told before a crash is the one that an export tells later.

use std::fmt;
use steersman_machine::stored::ids::{Id, Line, hex, unhex};

/// Id of a trace: a turn of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Id of a span.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Returns the trace of the turn that began in this line. `mark` is that of the owner which wrote the line.
    pub fn of(session: &str, mark: u64, began: Line) -> Self {
        let mut text = session.as_bytes().to_vec();
        text.push(0);
        text.extend(mark.to_le_bytes());
        text.extend(began.0.to_le_bytes());
        Self(first(&blake3::derive_key("steersman trace 1", &text)))
    }
}

impl SpanId {
    /// Returns the id of a span of this trace. On each branch, kind and id name one span.
    pub fn of(trace: TraceId, kind: SpanKind, branch: Id, id: Id) -> Self {
        let mut text = trace.0.to_vec();
        text.push(kind as u8);
        for id in [branch, id] {
            text.extend(id.line().0.to_le_bytes());
            text.extend(id.k().to_le_bytes());
        }
        Self(first(&blake3::derive_key("steersman span 1", &text)))
    }
}

/// Returns the first bytes of a hash. They are not all zero: such an id is invalid, and as improbable as an id that comes twice.
fn first<const N: usize>(hash: &[u8; 32]) -> [u8; N] {
    std::array::from_fn(|n| hash[n])
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Kinds of spans.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SpanKind {
    /// The first segment of a turn, which is the root of its trace. Its id is that of the branch, with the line that began the turn.
    Turn = 1,
    /// A later segment of a turn: the session worked again after it had waited.
    Segment = 2,
    /// The task of an agent, by the call that it serves.
    Task = 3,
    /// A model call, by its effect.
    Model = 4,
    /// A call of a tool.
    Tool = 5,
    /// A wait that is a call: a question to a person, or for an event or a time.
    Wait = 6,
    /// A hold of an effect, by its line and its place among the entries of the line.
    Hold = 7,
}

/// A place in a trace, as header `traceparent` carries it to another process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// The span that what follows belongs to.
    pub span: SpanId,
    /// True if the trace is recorded.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Parses a `traceparent`. `None` if the text has another form, or names an invalid trace or span.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let version = part::<1>(parts.next()?)?;
        let trace = TraceId(part(parts.next()?)?);
        let span = SpanId(part(parts.next()?)?);
        let [flags] = part::<1>(parts.next()?)?;
        // A later version may add parts; version 0 has none, and 255 is forbidden.
        let fits = match version {
            [0] => parts.next().is_none(),
            [255] => false,
            _ => true,
        };
        let is_valid = fits && trace.0 != [0; 16] && span.0 != [0; 8];
        is_valid.then_some(Self {
            trace,
            span,
            is_sampled: flags & 1 == 1,
        })
    }
}

/// Reads bytes in lower-case hexadecimal digits, the only form that the standard allows.
fn part<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let bytes = unhex(text).filter(|_| is_lower)?;
    bytes.try_into().ok()
}

/// The value of header `traceparent`.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_written_as_the_standard_says() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(text).unwrap();
        assert!(parent.is_sampled);
        assert_eq!(parent.to_string(), text);
        let later = TraceParent::parse(&format!("01{}-more", &text[2..])).unwrap();
        assert_eq!(later, parent);
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_follow_from_session_owner_line_branch_and_kind() {
        let trace = TraceId::of("s", 1, Line(2));
        assert_eq!(trace, TraceId::of("s", 1, Line(2)));
        assert_ne!(trace, TraceId::of("t", 1, Line(2)));
        assert_ne!(trace, TraceId::of("s", 2, Line(2)));
        assert_ne!(trace, TraceId::of("s", 1, Line(3)));
        let (one, other) = (Id::new(Line(3), 1), Id::new(Line(3), 2));
        let span = SpanId::of(trace, SpanKind::Tool, Id::MAIN, one);
        assert_ne!(span, SpanId::of(trace, SpanKind::Model, Id::MAIN, one));
        assert_ne!(span, SpanId::of(trace, SpanKind::Tool, Id::MAIN, other));
        assert_ne!(span, SpanId::of(trace, SpanKind::Tool, other, one));
    }
}
