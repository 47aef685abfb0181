//! Writes recorded tests as people write them: YAML in blocks, with short values on one line.

use serde_json::Value as Json;
use std::fmt::Write as _;

/// Maximum width of a line, if the line can be made shorter.
const WIDTH: usize = 120;
/// Down to this depth, maps and lists are written as blocks: `tests`, a test, its parts.
const BLOCKS: usize = 4;
/// The keys of a test, in the order in which they are written.
const ORDER: &[&str] = &[
    "entry", "seed", "script", "tools", "memory", "steps", "expect",
];

/// Renders a document, with a newline at its end.
pub(super) fn document(json: &Json) -> String {
    let mut out = String::new();
    below(&mut out, json, 0, 0);
    out.trim_start_matches('\n').to_owned() + "\n"
}

/// Appends the value after a `key:` or a `-`.
fn below(out: &mut String, json: &Json, indent: usize, depth: usize) {
    if let Some(flow) = short(json, indent, depth) {
        let _ = write!(out, " {flow}");
        return;
    }
    match json {
        Json::Object(fields) => {
            for (name, value) in ordered(fields) {
                let _ = write!(out, "\n{:indent$}{}:", "", scalar(name, false));
                below(out, value, indent + 2, depth + 1);
            }
        }
        Json::Array(items) => {
            for item in items {
                let _ = write!(out, "\n{:indent$}-", "");
                match item {
                    Json::Object(_) | Json::Array(_)
                        if short(item, indent + 2, depth + 1).is_none() =>
                    {
                        let mut inner = String::new();
                        below(&mut inner, item, indent + 2, depth + 1);
                        // The first key follows the dash on the same line.
                        out.push(' ');
                        out.push_str(inner.trim_start());
                    }
                    item => below(out, item, indent + 2, depth + 1),
                }
            }
        }
        Json::String(text) => {
            let last = if text.ends_with('\n') { "" } else { "-" };
            let _ = write!(out, " |{last}");
            for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                out.push('\n');
                if !line.is_empty() {
                    let _ = write!(out, "{:indent$}{line}", "");
                }
            }
        }
        other => {
            let _ = write!(out, " {other}");
        }
    }
}

/// Returns the fields in the order in which they are written: those of a test as in [`ORDER`].
fn ordered(fields: &serde_json::Map<String, Json>) -> Vec<(&String, &Json)> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut fields: Vec<_> = fields.iter().collect();
    if fields
        .iter()
        .any(|(name, _)| *name == "script" || *name == "steps")
    {
        fields.sort_by_key(|(name, _)| place(name).unwrap_or(ORDER.len()));
    }
    fields
}

/// Returns the value on one line, if it fits and is not to be written as a block.
fn short(json: &Json, indent: usize, depth: usize) -> Option<String> {
    let fits = |flow: &String| indent + flow.chars().count() <= WIDTH;
    match json {
        Json::String(text) if !in_lines(text) => Some(scalar(text, false)),
        Json::String(_) => None,
        Json::Object(fields) if !fields.is_empty() && depth < BLOCKS => None,
        Json::Array(items) if !items.is_empty() && depth < BLOCKS => None,
        Json::Object(_) | Json::Array(_) if has_lines(json) => None,
        Json::Object(_) | Json::Array(_) => Some(flow(json)).filter(fits),
        other => Some(other.to_string()),
    }
}

/// Returns true if a text within the value is written as a block.
fn has_lines(json: &Json) -> bool {
    match json {
        Json::String(text) => in_lines(text),
        Json::Array(items) => items.iter().any(has_lines),
        Json::Object(fields) => fields.values().any(has_lines),
        _ => false,
    }
}

/// Returns true if a text is written as a block: it has several lines, and a block reproduces it exactly.
fn in_lines(text: &str) -> bool {
    let plain = |line: &str| {
        !line.chars().any(|c| c.is_control() && c != '\t')
            && !line.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'])
    };
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\t', '\n'])
        && text
            .split('\n')
            .all(|line| plain(line) && !line.ends_with([' ', '\t']))
}

fn flow(json: &Json) -> String {
    match json {
        Json::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Json::Object(fields) => {
            let fields = fields.iter();
            let fields =
                fields.map(|(name, value)| format!("{}: {}", scalar(name, true), flow(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) if items.is_empty() => "[]".to_owned(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[ {} ]", items.join(", "))
        }
        Json::String(text) => scalar(text, true),
        other => other.to_string(),
    }
}

/// Renders a text on one line: plain if every parser reads it as that text, otherwise in quotes.
fn scalar(text: &str, in_flow: bool) -> String {
    let known = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let sign = |c: char| " _-./()'!?;@#$%&*+=<>|^~".contains(c) || (c == ',' && !in_flow);
    let plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || sign(c))
        && !text.ends_with(' ')
        && !text.contains(" #")
        && !known.contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        // JSON's quoting is valid YAML, except for line breaks of YAML and characters that YAML does not allow or drops.
        let quoted = Json::from(text).to_string();
        let ends = [
            ('\u{7f}', "\\x7F"),
            ('\u{85}', "\\N"),
            ('\u{2028}', "\\L"),
            ('\u{2029}', "\\P"),
            ('\u{feff}', "\\uFEFF"),
        ];
        ends.iter()
            .fold(quoted, |quoted, (c, escaped)| quoted.replace(*c, escaped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_is_written_is_read_as_the_same() {
        let texts = [
            "plain words",
            "yes",
            "Off",
            "n",
            "1",
            "-1",
            "",
            " led",
            "trailed ",
            "a: b",
            "a #b",
            "a#b",
            "#a",
            "it's",
            "\"quoted\"",
            "{{ x }}",
            "two\nlines",
            "two\nlines\n",
            "two\n\n  lines\nmore",
            "tail \nspace",
            "\nlead",
            "end\n\n",
            "tab\tin",
            "[a]",
            "a, b",
            "null",
            "~",
            "é ü",
            "\u{1b}[2J",
            "a\u{2028}b",
            "a\u{85}b\nc",
            "😀\nx",
            "- a",
            "a\\b",
            "* x",
            "&x",
            "!x",
            "%x",
            "@x",
            "`x`",
            "a\r\nb",
        ];
        for text in texts {
            for json in [
                json!({ "tests": { "t": { "script": { "a": [text, { "text": text, "call": [{ text: { "x": text } }] }] } } } }),
                json!({ text: text }),
                json!([text, [text]]),
            ] {
                let written = document(&json);
                let read = steersman_definition::data("t.yaml", &written);
                assert_eq!(read, Ok(json), "{written}");
            }
        }
    }

    #[test]
    fn it_reads_as_people_write() {
        let test = json!({ "tests": { "paid": {
            "expect": [{ "model_calls": "all", "is": 2 }, { "answer": "Paid." }],
            "seed": 7,
            "script": { "desk": [{ "call": [{ "pay": { "cents": 5 } }] }, "Two\nlines."] },
            "steps": [{ "say": "Pay, please." }, { "approve": "pay" }],
        } } });
        let written = "tests:\n  paid:\n    seed: 7\n    script:\n      desk:\n        - { call: [ { pay: { cents: 5 } } ] }\n        - |-\n          Two\n          lines.\n    steps:\n      - { say: \"Pay, please.\" }\n      - { approve: pay }\n    expect:\n      - { is: 2, model_calls: all }\n      - { answer: Paid. }\n";
        assert_eq!(
            document(&test).replace("{ model_calls: all, is: 2 }", "{ is: 2, model_calls: all }"),
            written
        );
    }
}
