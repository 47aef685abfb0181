//! Answers of model servers. For any bytes, with each protocol:
//!
//! * reading ends without a panic, as a stream and as a whole answer;
//! * however the bytes are cut into chunks, the result and the pieces that people see are the same;
//! * however a model cuts its text into pieces, the answer is the same, and so is the text that people see;
//! * the text that people see is the beginning of the answer's text;
//! * an answer can be sent back in a request.
//!
//! The first byte of an input selects what is read, and the second one the cuts.

use crate::requests::{assistant, request};
use crate::{Target, seeds};
use serde_json::json;
use std::sync::Mutex;
use steersman_adapters::chat::encode::Dialect;
use steersman_adapters::structured::Peek;
use steersman_adapters::wire::{Decode, Reading};
use steersman_adapters::{bedrock, chat, gemini, messages, responses};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::{Delta, Sink};

pub(crate) const TARGET: Target = Target {
    name: "streams",
    check,
    seeds: || {
        let wires = |folder: &str, kind: u8| {
            let folder = format!("crates/steersman-adapters/tests/it/{folder}");
            let extension = if kind == BEDROCK { "frames" } else { "sse" };
            let wires = seeds::files(&folder, extension).into_iter();
            wires
                .map(move |wire| [&[kind, 7], &*wire].concat())
                .collect::<Vec<_>>()
        };
        let mut all = wires("wire", CHAT);
        all.extend(wires("messages", MESSAGES));
        all.extend(wires("responses", RESPONSES));
        all.extend(wires("gemini", GEMINI));
        all.extend(wires("bedrock", BEDROCK));
        for text in PIECES {
            all.push([&[TEXT, 3], text.as_bytes()].concat());
        }
        all
    },
    words: &[
        "data: ",
        "error: ",
        ": ",
        "\n\n",
        "\r\n",
        "\r",
        "[DONE]",
        "\u{feff}",
        "\"delta\":{",
        "\"content\":\"",
        "<think>",
        "</think>",
        "\"tool_calls\":[",
        "\"index\":0",
        "\"index\":1,",
        "\"id\":\"\",",
        "\"function\":{",
        "\"arguments\":",
        "\"finish_reason\":",
        "\"message\":",
        "null",
        "[]",
        "{}",
        "\\ud83d",
        "\\ude00",
        "\"usage\":{",
        "\"type\":\"tool_use\",",
        "\"reasoning\":",
        "\"text\":",
        "{\"answer\":\"",
        "{\"tool\":\"",
        "\u{e4}",
        " ",
        "\"choices\":[",
        "\"refusal\":\"",
        "\"type\":\"response.output_item.done\",",
        "\"output_index\":1,",
        "\"encrypted_content\":\"",
        "\"status\":\"incomplete\",",
        "\"candidates\":[",
        "\"parts\":[",
        "\"thoughtSignature\":\"",
        "\"functionCall\":{",
        "\"finishReason\":\"",
        "\"contentBlockDelta\":{",
        ":event-type",
    ],
    mutations: 4_000,
};

const CHAT: u8 = 0;
const MESSAGES: u8 = 1;
const TEXT: u8 = 2;
const RESPONSES: u8 = 3;
const GEMINI: u8 = 4;
const BEDROCK: u8 = 5;
const KINDS: u8 = 6;

const PIECES: [&str; 6] = [
    "<think>Let me see.</think>\n\nHello.",
    " \n<think></think>",
    "< think> is no tag, <think> not either.",
    r#" { "answer" : "a \"b\"\n\u00e4 \ud83d\ude00 end", "x": 1 }"#,
    r#"{"tool": "add", "arguments": {"a": 1, "b": 2}}"#,
    r#"{"answer": "cut \ud83d"#,
];

fn check(data: &[u8]) {
    let [kind, cuts, wire @ ..] = data else {
        return;
    };
    match kind % KINDS {
        CHAT => protocol::<chat::stream::Decoder>(wire, *cuts, true),
        MESSAGES => protocol::<messages::stream::Decoder>(wire, *cuts, false),
        RESPONSES => protocol::<responses::stream::Decoder>(wire, *cuts, false),
        GEMINI => protocol::<gemini::stream::Decoder>(wire, *cuts, true),
        BEDROCK => protocol::<bedrock::stream::Decoder>(wire, *cuts, false),
        _ => pieces(&String::from_utf8_lossy(wire), *cuts),
    }
}

/// Keeps the pieces that people see; neighbours of one kind are joined.
#[derive(Default)]
struct Seen(Mutex<Vec<Delta>>);

impl Sink for Seen {
    fn delta(&self, delta: Delta) {
        let mut all = self.0.lock().expect("nobody panics while holding it");
        match (all.last_mut(), delta) {
            (Some(Delta::Text(text)), Delta::Text(more))
            | (Some(Delta::Reasoning(text)), Delta::Reasoning(more)) => text.push_str(&more),
            (Some(Delta::Call(at, _, text)), Delta::Call(of, None, more)) if *at == of => {
                text.push_str(&more);
            }
            (_, delta) => all.push(delta),
        }
    }
}

impl Seen {
    fn all(self) -> Vec<Delta> {
        let all = self.0.into_inner();
        all.expect("nobody panics while holding it")
    }
}

/// Returns the text of some pieces.
fn text_of(seen: &[Delta]) -> String {
    let text = |delta: &Delta| match delta {
        Delta::Text(text) => text.clone(),
        Delta::Reasoning(_) | Delta::Call(..) => String::new(),
    };
    seen.iter().map(text).collect()
}

type Read = (Result<Answer, Failure>, Vec<Delta>);

fn read<D: Decode + Default>(chunks: &[&[u8]]) -> Read {
    let seen = Seen::default();
    let mut reading = Reading::new(D::default());
    let result = (|| {
        for chunk in chunks {
            if reading.is_done() {
                break;
            }
            reading.push(chunk, &seen)?;
        }
        reading.end(&seen);
        reading.finish()
    })();
    (result, seen.all())
}

/// Cuts into chunks whose lengths follow from a number.
fn chunks(wire: &[u8], cuts: u8) -> Vec<&[u8]> {
    let mut rest = wire;
    let mut all = Vec::new();
    let mut state = u32::from(cuts);
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let len = 1 + (state >> 24) as usize % 40;
        let (chunk, more) = rest.split_at(len.min(rest.len()));
        all.push(chunk);
        rest = more;
    }
    all
}

fn protocol<D: Decode + Default>(wire: &[u8], cuts: u8, is_in_order: bool) {
    let (result, seen) = read::<D>(&[wire]);
    let bytes: Vec<&[u8]> = wire.chunks(1).collect();
    for cut in [bytes, chunks(wire, cuts)] {
        assert_eq!(
            read::<D>(&cut),
            (result.clone(), seen.clone()),
            "cut into {}",
            cut.len()
        );
    }
    if let Ok(answer) = result {
        if is_in_order {
            shown_is_said(&answer, &seen);
        }
        goes_back(&answer);
    }
    let (mut whole, seen) = (D::default(), Seen::default());
    let read = whole.whole(&String::from_utf8_lossy(wire), &seen);
    if let Ok(answer) = read.and_then(|()| whole.finish()) {
        shown_is_said(&answer, &seen.all());
        goes_back(&answer);
    }
}

/// Checks that people saw the beginning of the answer's text.
fn shown_is_said(answer: &Answer, seen: &[Delta]) {
    let (shown, said) = (text_of(seen), answer.text.as_deref().unwrap_or_default());
    assert!(said.starts_with(&shown), "{shown:?} was shown of {said:?}");
}

/// Sends an answer back in the history of a request, also to servers of the other protocols.
fn goes_back(answer: &Answer) {
    let request = request(vec![assistant(answer)]);
    for dialect in [Dialect::OPENAI, Dialect::COMPATIBLE] {
        chat::encode::encode(&request, "m", &dialect);
    }
    messages::encode::encode(&request, "m");
    responses::encode::encode(&request, "m", true);
    gemini::encode::encode(&request, "m");
    bedrock::encode::encode(&request, "m");
}

/// Sends one text in pieces of a model, and as one piece.
fn pieces(text: &str, cuts: u8) {
    let cut = |len: usize| {
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(len.max(1));
        pieces
            .map(|piece| piece.iter().collect())
            .collect::<Vec<String>>()
    };
    let ways = [cut(usize::MAX), cut(1), cut(usize::from(cuts))];
    let answers = ways.each_ref().map(|pieces| {
        let event = |piece: &String| {
            let event = json!({ "choices": [{ "delta": { "content": piece } }] });
            format!("data: {event}\n\n")
        };
        let events: String = pieces.iter().map(event).collect();
        let wire = format!("{events}data: [DONE]\n\n");
        read::<chat::stream::Decoder>(&[wire.as_bytes()])
    });
    let peeks = ways.each_ref().map(|pieces| {
        let seen = Seen::default();
        let peek = Peek::new(&seen);
        for piece in pieces {
            peek.delta(Delta::Text(piece.clone()));
        }
        drop(peek);
        seen.all()
    });
    for n in 1..ways.len() {
        assert_eq!(answers[n], answers[0], "pieces {:?}", ways[n]);
        assert_eq!(peeks[n], peeks[0], "pieces {:?}", ways[n]);
    }
}
