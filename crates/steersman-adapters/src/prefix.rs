//! The encoded beginning of an agent's requests. The next request of an agent nearly always begins with the segments of the one
//! before, so only what is new is encoded. What was kept counts only if the chained digests agree, and the body has the same bytes
//! as one that is encoded as a whole.

use serde_json::Value as Json;
use steersman_machine::context::{Content, Request, Segment};
use steersman_machine::network::Part;
use steersman_machine::stored::ids::Digest;
use steersman_runtime::model::Encodings;

/// The key of the messages in the body of both protocols.
pub(crate) const MESSAGES: &str = "messages";

/// Maximum size of the beginning that is kept for one agent, in bytes.
const MOST: usize = 8 << 20;

/// The messages of a conversation, in the form of a protocol, while they are made from segments.
pub(crate) trait Telling: Send + 'static {
    /// Adds the next segment.
    fn push(&mut self, segment: &Segment);
    /// Encodes messages that no later segment can change.
    fn seal(&mut self);
    /// Returns the number of bytes that are encoded.
    fn sealed(&self) -> usize;
}

/// Messages of the first segments of a request.
pub(crate) struct Kept<T> {
    segments: usize,
    chain: Option<Digest>,
    pub(crate) told: T,
}

/// Returns the messages of the part of a request that later requests repeat: everything up to the end of the history. `is_fit`
/// says whether what was kept is of the same dialect. The messages of the segments behind it are left to the caller.
pub(crate) fn told<T: Telling>(
    request: &Request,
    encodings: &Encodings,
    is_fit: impl FnOnce(&T) -> bool,
    new: impl FnOnce() -> T,
) -> (Kept<T>, usize) {
    let behind = request.segments.iter().rev();
    let behind = behind.take_while(|segment| segment.part != Part::History && is_beside(segment));
    let stable = request.segments.len() - behind.count();
    let kept = encodings.take::<Kept<T>>().filter(|kept| {
        kept.segments <= stable
            && request.segments.chain(kept.segments) == kept.chain
            && is_fit(&kept.told)
    });
    let (from, mut told) = match kept {
        Some(kept) => (kept.segments, kept.told),
        None => (0, new()),
    };
    for segment in request.segments.since(from).take(stable - from) {
        told.push(segment);
    }
    told.seal();
    let kept = Kept {
        segments: stable,
        chain: request.segments.chain(stable),
        told,
    };
    (kept, stable)
}

/// Keeps messages for the next request.
pub(crate) fn keep<T: Telling>(kept: Kept<T>, encodings: &Encodings) {
    if kept.segments > 0 && kept.told.sealed() <= MOST {
        encodings.keep(kept);
    }
}

/// Returns true if a segment is no step of the conversation.
fn is_beside(segment: &Segment) -> bool {
    match &segment.content {
        Content::System(_) | Content::User(_) | Content::File(_) | Content::Tools(_) => true,
        Content::Assistant { .. } | Content::Result { .. } => false,
    }
}

/// Appends messages to a list without its brackets.
pub(crate) fn append<'a>(list: &mut Vec<u8>, messages: impl IntoIterator<Item = &'a Json>) {
    for message in messages {
        if !list.is_empty() {
            list.push(b',');
        }
        serde_json::to_writer(&mut *list, message).expect("plain data can be written as JSON");
    }
}

/// Returns the bytes of a body. `messages` is the list without its brackets; it takes the place of the value of [`MESSAGES`].
pub(crate) fn body(fields: &Json, messages: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(messages.len() + rest.len() + 4_096);
    let mut between = b'{';
    for (key, value) in fields.as_object().into_iter().flatten() {
        body.push(between);
        between = b',';
        serde_json::to_writer(&mut body, key).expect("a text can be written as JSON");
        body.push(b':');
        if key == MESSAGES {
            body.push(b'[');
            body.extend_from_slice(messages);
            if !messages.is_empty() && !rest.is_empty() {
                body.push(b',');
            }
            body.extend_from_slice(rest);
            body.push(b']');
        } else {
            serde_json::to_writer(&mut body, value).expect("plain data can be written as JSON");
        }
    }
    body.push(b'}');
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use steersman_machine::network::{CallStyle, ToolChoice};
    use steersman_machine::questions::Purpose;

    /// Counts the segments that it is told.
    #[derive(Default)]
    struct Counted(usize);

    impl Telling for Counted {
        fn push(&mut self, _segment: &Segment) {
            self.0 += 1;
        }

        fn seal(&mut self) {}

        fn sealed(&self) -> usize {
            0
        }
    }

    /// A request with these messages, and a text behind them.
    fn request(said: &[&str]) -> Request {
        let user = |part, text: &str| Segment::new(part, Content::User(text.to_owned()));
        let now = user(Part::Now, &format!("{} messages", said.len()));
        let said = said.iter().map(|text| user(Part::History, text));
        Request {
            purpose: Purpose::Answer,
            model: "default".into(),
            segments: said.chain([now]).collect(),
            params: Arc::new([]),
            choice: ToolChoice::Auto,
            output: None,
            prefill: None,
            calls: CallStyle::Native,
            digest: Digest::of(b""),
            prefix: 0,
            broke: None,
        }
    }

    #[test]
    fn only_what_is_new_is_told() {
        let encodings = Encodings::default();
        let tell = |said: &[&str]| {
            let (kept, end) = told(&request(said), &encodings, |_| true, Counted::default);
            assert_eq!(end, said.len());
            let told = kept.told.0;
            keep(
                Kept {
                    told: Counted(0),
                    ..kept
                },
                &encodings,
            );
            told
        };
        assert_eq!(tell(&["a", "b"]), 2);
        assert_eq!(tell(&["a", "b", "c"]), 1);
        assert_eq!(tell(&["a", "b", "c"]), 0);
        assert_eq!(tell(&["a", "x", "c", "d"]), 4, "another beginning");
        assert_eq!(tell(&["a", "x"]), 2, "a shorter one");
        let other = |said: &[&str]| {
            let (kept, _) = told(&request(said), &encodings, |_| false, Counted::default);
            kept.told.0
        };
        assert_eq!(other(&["a", "x"]), 2, "another dialect");
        assert!(encodings.take::<Kept<Counted>>().is_none(), "taken once");
    }
}
