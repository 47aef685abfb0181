//! Recorded and written streams, decoded with their bytes cut at any place. The first line of a file says what it is.

use crate::request::{Seen, shown};
use std::fmt::Write;
use steersman_adapters::chat::stream::Decoder;
use steersman_adapters::wire::Decode;
use steersman_adapters::wire::sse::Events;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::Delta;

pub(crate) fn decode(
    bytes: &[u8],
    step: usize,
    mut decoder: impl Decode,
    seen: &Seen,
) -> Result<Answer, Failure> {
    let mut events = Events::default();
    for piece in bytes.chunks(step) {
        for event in events.push(piece).expect("small") {
            decoder.event(&event, seen)?;
        }
    }
    // Half an event says only that the stream was cut.
    let rest = events.finish();
    drop(rest.map(|rest| decoder.event(&rest, seen)));
    decoder.finish()
}

/// Prints the deltas, a line each.
pub(crate) fn deltas(seen: &Seen) -> String {
    let mut text = String::new();
    for delta in seen.0.lock().unwrap().iter() {
        let _ = match delta {
            Delta::Text(piece) => writeln!(text, "+ text {piece:?}"),
            Delta::Reasoning(piece) => writeln!(text, "+ reasoning {piece:?}"),
            Delta::Call(index, name, args) => {
                writeln!(
                    text,
                    "+ call {index} {} {args:?}",
                    name.as_deref().unwrap_or_default()
                )
            }
        };
    }
    text
}

#[test]
fn streams() {
    insta::glob!("wire/*.sse", |path| {
        let bytes = std::fs::read(path).unwrap();
        let seen = Seen::default();
        let answer = decode(&bytes, bytes.len(), Decoder::default(), &seen);
        for step in [1, 7, 100] {
            assert_eq!(
                decode(&bytes, step, Decoder::default(), &Seen::default()),
                answer,
                "cut every {step} bytes"
            );
        }
        insta::assert_snapshot!(format!("{}{}", deltas(&seen), shown(&answer)));
    });
}
