//! The library behind `examples/research`: a folder of Markdown notes as an MCP server over standard input and output.
//!
//! As small as such a server can be: it greets, lists two tools and calls them, one message a line. What the protocol has
//! beside that is refused as it says.

use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

/// The newest version of the protocol that these messages are of.
const VERSION: &str = "2025-11-25";
/// Hits that a search gives at most.
const HITS: usize = 5;

/// Serves until its input ends.
pub(crate) fn serve(
    folder: &Path,
    input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let Ok(message) = serde_json::from_str::<Json>(&line) else {
            let error = json!({ "code": -32_700, "message": "this is no JSON" });
            say(
                &mut output,
                &json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            )?;
            continue;
        };
        // Notifications want no answer.
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            continue;
        };
        let params = &message["params"];
        let answer = match message["method"].as_str() {
            Some("initialize") => Ok(json!({
                "protocolVersion": params["protocolVersion"].as_str().unwrap_or(VERSION),
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "notes", "version": env!("CARGO_PKG_VERSION") },
            })),
            Some("ping") => Ok(json!({})),
            Some("tools/list") => Ok(json!({ "tools": tools() })),
            Some("tools/call") => call(folder, params, &mut output)?,
            _ => Err((-32_601, "there is no such method".to_owned())),
        };
        let answer = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                let error = json!({ "code": code, "message": message });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        say(&mut output, &answer)?;
    }
    Ok(())
}

fn say(output: &mut impl Write, message: &Json) -> std::io::Result<()> {
    writeln!(output, "{message}")?;
    output.flush()
}

fn tools() -> Json {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let of = |name: &str, description: &str, parameter: &str, what: &str| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": { parameter: text(what) },
                "required": [parameter],
            },
            "annotations": { "readOnlyHint": true },
        })
    };
    json!([
        of(
            "search",
            "Finds notes of the library by words, the best first.",
            "query",
            "A few words."
        ),
        of(
            "fetch",
            "Gives a note of the library.",
            "note",
            "Its name, as a search gives it."
        ),
    ])
}

type Answer = Result<Json, (i64, String)>;

/// A call of a tool. What is wrong with its arguments is told to the model, what is no tool to whoever called.
fn call(folder: &Path, params: &Json, output: &mut impl Write) -> std::io::Result<Answer> {
    let args = &params["arguments"];
    let wanted = |name: &str| {
        args[name]
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let said = match params["name"].as_str() {
        Some("search") => match wanted("query") {
            Some(query) => search(folder, query, &params["_meta"]["progressToken"], output)?,
            None => Err("`query` is a text of a few words".to_owned()),
        },
        Some("fetch") => match wanted("note") {
            Some(name) => fetch(folder, name)?,
            None => Err("`note` is the name of a note".to_owned()),
        },
        _ => return Ok(Err((-32_602, "there is no such tool".to_owned()))),
    };
    let is_error = said.is_err();
    let (Ok(text) | Err(text)) = said;
    let content = json!([{ "type": "text", "text": text }]);
    Ok(Ok(json!({ "content": content, "isError": is_error })))
}

/// All notes: names without `.md`, in order, with their files. A name is never made into a path.
fn notes(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut notes = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(name) = stem.filter(|_| path.extension().is_some_and(|end| end == "md")) {
            notes.push((name.to_owned(), path.clone()));
        }
    }
    notes.sort();
    Ok(notes)
}

/// Names and titles of notes that have most of the words; tells how far it has come if somebody wants to hear it.
fn search(
    folder: &Path,
    query: &str,
    token: &Json,
    output: &mut impl Write,
) -> std::io::Result<Result<String, String>> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| w.len() > 2)
        .collect();
    let notes = notes(folder)?;
    let mut hits = Vec::new();
    for (done, (name, path)) in notes.iter().enumerate() {
        let text = std::fs::read_to_string(path)?;
        let lower = text.to_lowercase();
        let found = words.iter().filter(|word| lower.contains(**word)).count();
        let title = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("# ")
            .to_owned();
        if found > 0 {
            hits.push((std::cmp::Reverse(found), name.clone(), title));
        }
        if !token.is_null() {
            let params = json!({
                "progressToken": token, "progress": done + 1, "total": notes.len(), "message": name,
            });
            let told =
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            say(output, &told)?;
        }
    }
    hits.sort();
    let hits: Vec<String> = hits
        .into_iter()
        .take(HITS)
        .map(|(_, name, title)| format!("{name}: {title}"))
        .collect();
    if hits.is_empty() {
        return Ok(Ok("No note has any of these words.".to_owned()));
    }
    Ok(Ok(hits.join("\n")))
}

fn fetch(folder: &Path, name: &str) -> std::io::Result<Result<String, String>> {
    let notes = notes(folder)?;
    match notes
        .iter()
        .find(|(known, _)| known == name.trim_end_matches(".md"))
    {
        Some((_, path)) => Ok(Ok(std::fs::read_to_string(path)?)),
        None => Ok(Err(format!(
            "there is no note `{name}`: a search gives their names"
        ))),
    }
}
