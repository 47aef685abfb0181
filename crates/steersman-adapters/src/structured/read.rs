//! Reads calls from an answer that is text.

use super::{Style, must_call, offered, tools};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use steersman_machine::context::Request;
use steersman_machine::stored::outcome::{Answer, Ask};
use steersman_machine::values::json;
use steersman_runtime::model::{Delta, Report, Sink};

/// Maximum number of objects that are looked at before a text is taken for an answer.
const CANDIDATES_MAX: usize = 32;
/// Maximum number of bytes of a text that are searched.
const SEARCH_MAX: usize = 256 << 10;

/// Reads the answer to a request made by [`super::tell`], and turns a call in its text into a call.
pub fn read(mut answer: Answer, request: &Request, style: Style) -> Answer {
    // The server made native calls on its own: nothing is left to do.
    if !answer.asks.is_empty() {
        return answer;
    }
    let Some(text) = answer.text.take() else {
        return answer;
    };
    if offered(request).is_empty() {
        return off(answer, text, request);
    }
    let found = find(&text);
    match style {
        Style::Structured => structured(&mut answer, text, found, must_call(request)),
        Style::Text => match found {
            Some((before, Found::Call(ask))) => {
                answer.text = (!before.trim().is_empty()).then(|| before.trim().to_owned());
                answer.asks.push(ask);
            }
            Some((_, Found::Answer(_))) | None => answer.text = Some(text),
        },
    }
    answer
}

/// Reads an answer when no tools are offered: it is a plain answer. But if tools are off only now, a model may keep to the form
/// that it learned from the history; that form is not an answer for people.
fn off(mut answer: Answer, text: String, request: &Request) -> Answer {
    let known = |name: &str| tools(request).any(|tool| *tool.name == *name);
    let found = match request.output {
        // an answer with a schema of its own is taken as it is
        Some(_) => None,
        None if tools(request).next().is_none() => None,
        None => find(&text),
    };
    match found {
        Some((before, Found::Answer(said))) if is_bare(&before) => answer.text = Some(said),
        // text next to a call is the answer; a bare call is kept, so that the machine refuses it and tells the model
        Some((before, Found::Call(ask))) if known(&ask.name) => {
            answer.text = (!is_bare(&before)).then(|| before.trim().to_owned());
            answer.asks.push(ask);
        }
        _ => answer.text = Some(text),
    }
    answer
}

/// Returns true if there is no text before an object.
fn is_bare(before: &str) -> bool {
    before.trim().is_empty()
}

fn structured(answer: &mut Answer, text: String, found: Option<(String, Found)>, must: bool) {
    match found {
        Some((_, Found::Call(ask))) => answer.asks.push(ask),
        Some((_, Found::Answer(said))) => answer.text = Some(said),
        None => {
            // If the answer was cut off, its beginning can still be read.
            let mut reader = Reader::default();
            let begun = reader.push(&text);
            if answer.cut && reader.stage == Stage::Answer {
                answer.text = Some(begun);
                return;
            }
            let forms = if must {
                r#"{"tool": .., "arguments": ..}"#
            } else {
                r#"{"tool": .., "arguments": ..} or {"answer": ..}"#
            };
            answer.text = Some(text);
            answer.misfit = Some(format!("the answer is not a JSON object {forms}"));
        }
    }
}

enum Found {
    Call(Ask),
    Answer(String),
}

/// Returns the first object that is a call or an answer, with the text before it.
fn find(text: &str) -> Option<(String, Found)> {
    let mut end = text.len().min(SEARCH_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let mut from = 0;
    for _ in 0..CANDIDATES_MAX {
        let at = from + text[from..].find('{')?;
        let rest = &text[at..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        let (object, len) = match stream.next() {
            Some(Ok(object)) => {
                let len = stream.byte_offset();
                // Parsed again if digits would be lost.
                let exact = json::exact(&rest[..len]);
                let again = matches!(exact, Cow::Owned(_)).then(|| serde_json::from_str(&exact));
                (Some(again.and_then(Result::ok).unwrap_or(object)), len)
            }
            _ => (json::read(&repair(rest)).ok(), 1),
        };
        if let Some(found) = object.as_ref().and_then(meaning) {
            let before = text[..at].trim_end();
            let before = before
                .strip_suffix("```json")
                .or_else(|| before.strip_suffix("```"));
            return Some((before.unwrap_or(&text[..at]).to_owned(), found));
        }
        from = at + len;
    }
    None
}

/// Returns an object as a call or an answer; `None` if it is neither.
fn meaning(object: &Json) -> Option<Found> {
    let text_of = |value: &Json| match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(name) = object.get("tool").and_then(Json::as_str) {
        let args = object.get("arguments").filter(|args| !args.is_null());
        return Some(Found::Call(Ask {
            name: name.to_owned(),
            label: None,
            args: args.map_or_else(|| "{}".to_owned(), text_of),
            misfit: None,
        }));
    }
    object
        .get("answer")
        .map(|answer| Found::Answer(text_of(answer)))
}

/// Repairs usual mistakes of models in JSON, in one pass: raw line breaks in texts, commas before a closing bracket, missing
/// closing brackets. Ends with the outermost bracket.
fn repair(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut open = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        if quoted {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c => out.push(c),
            }
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => quoted = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                while out.ends_with(|last: char| last == ',' || last.is_whitespace()) {
                    out.pop();
                }
                // A bracket that closes an outer one closes those within, too.
                while let Some(inner) = open.pop() {
                    if inner == c {
                        break;
                    }
                    out.push(inner);
                }
            }
            _ => {}
        }
        out.push(c);
        if open.is_empty() {
            return out;
        }
    }
    if quoted {
        if escaped {
            out.pop();
        }
        out.push('"');
    }
    while out.ends_with(|last: char| last == ',' || last.is_whitespace()) {
        out.pop();
    }
    out.extend(open.iter().rev());
    out
}

/// Shows the text inside `{"answer": ".."}` as it streams, instead of the JSON around it.
pub struct Peek<'a> {
    sink: &'a dyn Sink,
    reader: Mutex<Reader>,
}

impl<'a> Peek<'a> {
    /// Creates a peek that shows the text to this sink.
    pub fn new(sink: &'a dyn Sink) -> Self {
        Self {
            sink,
            reader: Mutex::default(),
        }
    }
}

impl Sink for Peek<'_> {
    fn report(&self, report: Report) {
        self.sink.report(report);
    }

    fn delta(&self, delta: Delta) {
        match delta {
            Delta::Text(piece) => {
                let (text, call) = {
                    let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = reader.stage;
                    let text = reader.push(&piece);
                    let call = match (before, reader.stage) {
                        (Stage::Start, Stage::Other) => Some(std::mem::take(&mut reader.head)),
                        (Stage::Other, Stage::Other) => Some(piece),
                        _ => None,
                    };
                    (text, call)
                };
                if !text.is_empty() {
                    self.sink.delta(Delta::Text(text));
                }
                // A call is streamed, too: a watchdog must not take it for silence.
                if let Some(piece) = call {
                    self.sink.delta(Delta::Call(0, None, piece));
                }
            }
            other @ (Delta::Reasoning(_) | Delta::Call(..)) => self.sink.delta(other),
        }
    }
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Not enough came to decide.
    #[default]
    Start,
    /// Inside the text of an answer.
    Answer,
    /// After the text.
    Behind,
    /// Not an answer: a call.
    Other,
}

/// The beginning of an answer, without blanks.
const OPENING: &[u8] = br#"{"answer":""#;
/// Maximum number of bytes of the undecided beginning that are kept. Beyond it only blanks are dropped: any other character
/// decides.
const HEAD_MAX: usize = 1 << 10;

/// Reads the text of `{"answer": "..` piece by piece, and looks at each character once.
#[derive(Debug, Default)]
struct Reader {
    stage: Stage,
    /// Text received before the stage was known. If it turns out to be a call, it is shown at that point.
    head: String,
    /// Number of characters of [`OPENING`] that were received.
    opened: usize,
    /// An incomplete escape sequence.
    escape: String,
    /// The first half of a character that is written as two escapes.
    high: Option<u16>,
}

impl Reader {
    /// Takes a piece. Returns the text of the answer in it.
    fn push(&mut self, piece: &str) -> String {
        match self.stage {
            Stage::Behind | Stage::Other => String::new(),
            Stage::Answer => self.text(piece),
            Stage::Start => self.start(piece),
        }
    }

    fn start(&mut self, piece: &str) -> String {
        for (at, c) in piece.char_indices() {
            if c.is_whitespace() {
                if self.head.len() < HEAD_MAX {
                    self.head.push(c);
                }
                continue;
            }
            if OPENING.get(self.opened).copied().map(char::from) != Some(c) {
                self.stage = Stage::Other;
                self.head.push_str(&piece[at..]);
                return String::new();
            }
            self.head.push(c);
            self.opened += 1;
            if self.opened == OPENING.len() {
                self.stage = Stage::Answer;
                self.head = String::new();
                return self.text(&piece[at + c.len_utf8()..]);
            }
        }
        String::new()
    }

    fn text(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            if self.escape.is_empty() {
                match c {
                    '"' => {
                        self.stage = Stage::Behind;
                        break;
                    }
                    '\\' => self.escape.push(c),
                    c => out.push(c),
                }
                continue;
            }
            self.escape.push(c);
            if self.escape.starts_with("\\u") && self.escape.len() < 6 {
                continue;
            }
            let escape = std::mem::take(&mut self.escape);
            out.extend(self.unescape(&escape));
        }
        out
    }

    fn unescape(&mut self, escape: &str) -> Option<char> {
        let Some(digits) = escape.strip_prefix("\\u") else {
            return match escape.chars().nth(1)? {
                'n' => Some('\n'),
                't' => Some('\t'),
                'r' => Some('\r'),
                'b' => Some('\u{8}'),
                'f' => Some('\u{c}'),
                c => Some(c),
            };
        };
        let unit = u16::from_str_radix(digits, 16).ok()?;
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            return None;
        }
        let units = self.high.take().into_iter().chain([unit]);
        char::decode_utf16(units).next()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_are_bounded_and_right() {
        for (broken, fixed) in [
            (
                r#"{"tool": "a", "arguments": {"x": 1,},} tail"#,
                r#"{"tool":"a","arguments":{"x":1}}"#,
            ),
            (
                r#"{"tool": "a", "arguments": {"x": [1, 2"#,
                r#"{"tool":"a","arguments":{"x":[1,2]}}"#,
            ),
            ("{\"answer\": \"two\nlines", r#"{"answer":"two\nlines"}"#),
            (
                r#"{"tool": "a", "arguments": {"x": [1}}"#,
                r#"{"tool":"a","arguments":{"x":[1]}}"#,
            ),
            (r#"{"answer": "a\""#, r#"{"answer":"a\""}"#),
        ] {
            let got = serde_json::from_str::<Json>(&repair(broken)).expect(broken);
            assert_eq!(got.to_string(), fixed);
        }
    }

    #[test]
    fn the_text_of_an_answer_streams_however_it_is_cut() {
        let json = r#" { "answer" : "a \"b\"\n\u00e4 \ud83d\ude00 \\ end", "x": "no" }"#;
        for step in 1..12 {
            let mut reader = Reader::default();
            let chars = json.chars().collect::<Vec<_>>();
            let text = chars
                .chunks(step)
                .map(|piece| reader.push(&piece.iter().collect::<String>()))
                .collect::<String>();
            assert_eq!(text, "a \"b\"\nä 😀 \\ end", "cut every {step}");
        }
        let mut call = Reader::default();
        assert_eq!(
            call.push(r#"{"tool": "answer", "arguments": {"answer": "x"}}"#),
            ""
        );
    }
}
