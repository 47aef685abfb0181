//! The MCP server of `examples/invoice`, with the only tool `read_text`, over standard input and output. It reads PDFs whose
//! text is not compressed, which is enough for those of the example.

use crate::mcp::{Said, Tools};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Server with the tool `read_text`.
pub(crate) struct Pdf;

impl Tools for Pdf {
    const NAME: &'static str = "pdf";

    fn list(&self) -> Json {
        json!([{
            "name": "read_text",
            "description": "The text of a PDF.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "pdf": {
                        "type": "string",
                        "contentEncoding": "base64",
                        "contentMediaType": "application/pdf",
                        "description": "The PDF, by its name.",
                    },
                },
                "required": ["pdf"],
            },
            "annotations": { "readOnlyHint": true },
        }])
    }

    fn call(&self, params: &Json, _output: &mut dyn Write) -> std::io::Result<Said> {
        let pdf = params["arguments"]["pdf"].as_str().unwrap_or_default();
        Ok(match read(pdf) {
            _ if params["name"] != "read_text" => Said::NoSuchTool,
            Ok(text) => Said::Text(text),
            Err(fault) => Said::Fault(fault.to_owned()),
        })
    }
}

fn read(pdf: &str) -> Result<String, &'static str> {
    let bytes = STANDARD
        .decode(pdf)
        .map_err(|_| "This is neither a PDF nor the name of one.")?;
    if !bytes.starts_with(b"%PDF-") {
        return Err("This is not a PDF.");
    }
    let text = text_of(&bytes);
    if text.trim().is_empty() {
        return Err("This PDF has no text, or its text is compressed.");
    }
    Ok(text)
}

/// Returns the strings within text objects, one per line (ISO 32000-1, 7.3.4.2 and 9.4.3).
fn text_of(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(begin) = find(bytes, at, b"BT") {
        let end = find(bytes, begin, b"ET").unwrap_or(bytes.len());
        let mut k = begin;
        while let Some(open) = bytes[k..end].iter().position(|byte| *byte == b'(') {
            let (shown, behind) = literal(&bytes[..end], k + open + 1);
            text.push_str(&shown);
            text.push('\n');
            k = behind;
        }
        at = end;
    }
    text
}

fn find(bytes: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(word.len()).position(|part| part == word)?;
    Some(from + at + word.len())
}

/// Parses a string in parentheses that begins at `from`, after the opening one. Returns the text and the offset after it.
fn literal(bytes: &[u8], from: usize) -> (String, usize) {
    let (mut text, mut depth, mut k) = (String::new(), 1, from);
    while let Some(byte) = bytes.get(k) {
        k += 1;
        match byte {
            b'\\' => {
                let next = bytes.get(k).copied().unwrap_or(b'\\');
                k += 1;
                text.push(match next {
                    b'n' | b'r' => '\n',
                    b't' => '\t',
                    other => char::from(other),
                });
                continue;
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        text.push(char::from(*byte));
    }
    (text, k)
}
