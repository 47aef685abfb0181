//! The library of `examples/research`: a folder of Markdown notes as an MCP server over standard input and output, with
//! two tools.

use crate::LARGEST;
use crate::mcp::{Said, Tools, say};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use steersman_runtime::files;

/// Maximum number of hits of a search.
const HITS: usize = 5;

/// Server for the notes in a folder.
pub(crate) struct Notes<'a>(pub(crate) &'a Path);

impl Tools for Notes<'_> {
    const NAME: &'static str = "notes";

    fn list(&self) -> Json {
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

    /// Calls a tool; faults in the arguments are returned as errors for the model.
    fn call(&self, params: &Json, output: &mut dyn Write) -> std::io::Result<Said> {
        let args = &params["arguments"];
        let wanted = |name: &str| {
            args[name]
                .as_str()
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        Ok(match params["name"].as_str() {
            Some("search") => match wanted("query") {
                Some(query) => search(self.0, query, &params["_meta"]["progressToken"], output)?,
                None => Said::Fault("`query` is a text of a few words".to_owned()),
            },
            Some("fetch") => match wanted("note") {
                Some(name) => fetch(self.0, name)?,
                None => Said::Fault("`note` is the name of a note".to_owned()),
            },
            _ => Said::NoSuchTool,
        })
    }
}

/// Returns all notes, sorted: names without `.md`, with their files. Names from requests are never made into paths.
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

/// Returns the names and titles of at most [`HITS`] notes: of those that contain a word of the query, the ones with the most
/// words. Sends progress if the request has a token.
fn search(
    folder: &Path,
    query: &str,
    token: &Json,
    output: &mut dyn Write,
) -> std::io::Result<Said> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| w.len() > 2)
        .collect();
    let notes = notes(folder)?;
    let mut hits = Vec::new();
    for (done, (name, path)) in notes.iter().enumerate() {
        let text = files::plain(path, LARGEST).and_then(files::text)?;
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
        return Ok(Said::Text("No note has any of these words.".to_owned()));
    }
    Ok(Said::Text(hits.join("\n")))
}

fn fetch(folder: &Path, name: &str) -> std::io::Result<Said> {
    let notes = notes(folder)?;
    match notes
        .iter()
        .find(|(known, _)| known == name.trim_end_matches(".md"))
    {
        Some((_, path)) => files::plain(path, LARGEST)
            .and_then(files::text)
            .map(Said::Text),
        None => Ok(Said::Fault(format!(
            "there is no note `{name}`: a search gives their names"
        ))),
    }
}
