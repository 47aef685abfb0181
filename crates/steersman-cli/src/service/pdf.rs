//! The MCP server of `examples/invoice`: one tool, `read_text`, over standard input and output. It reads PDFs whose text is
//! not compressed, which is enough for the ones beside the example.
//!
//! The protocol is that of 2025-06-18, as far as one tool needs it: a message a line, `initialize`, `ping`, `tools/list`,
//! `tools/call`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::io::{BufRead as _, Write as _};

/// Answers until standard input ends.
pub(crate) fn serve() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Json>(&line?) else {
            continue;
        };
        // A notification wants no answer.
        if let Some(id) = message.get("id") {
            let answer = match answered(&message) {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err((code, why)) => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
                }
            };
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(())
}

fn answered(message: &Json) -> Result<Json, (i64, String)> {
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "pdf", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [{
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
        }] })),
        "tools/call" if params["name"] == "read_text" => {
            let pdf = params["arguments"]["pdf"].as_str().unwrap_or_default();
            let (text, is_error) = match read(pdf) {
                Ok(text) => (text, false),
                Err(why) => (why.to_owned(), true),
            };
            Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
        }
        "tools/call" => Err((-32602, "there is no such tool".to_owned())),
        other => Err((-32601, format!("`{other}` is not answered here"))),
    }
}

fn read(pdf: &str) -> Result<String, &'static str> {
    let bytes = STANDARD
        .decode(pdf)
        .map_err(|_| "This is no PDF, and no name of one.")?;
    if !bytes.starts_with(b"%PDF-") {
        return Err("This is no PDF.");
    }
    let text = text_of(&bytes);
    if text.trim().is_empty() {
        return Err("This PDF has no text, or its text is compressed.");
    }
    Ok(text)
}

/// The texts that are shown (`Tj`), a line for each (ISO 32000-1, 7.3.4.2 and 9.4.3).
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

/// A text in parentheses from behind the first, and where it ends.
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
