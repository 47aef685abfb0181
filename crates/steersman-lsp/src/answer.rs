//! The answers to requests about a place of a document.

use crate::text::{Position, Range, offset, range};
use crate::workspace::{Found, Named, Workspace};
use crate::{Needs, Refusal};
use lsp_server::ErrorCode;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use steersman_definition::Place;
use steersman_definition::language::Sort;

/// A place in a document, with what a request asks about it.
#[derive(Deserialize)]
pub(crate) struct At {
    #[serde(rename = "textDocument")]
    document: Named,
    position: Position,
    #[serde(rename = "newName")]
    new_name: Option<String>,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Context {
    #[serde(rename = "includeDeclaration")]
    include_declaration: Option<bool>,
}

/// A range of a document.
#[derive(Deserialize)]
pub(crate) struct Within {
    #[serde(rename = "textDocument")]
    document: Named,
    range: Range,
}

/// Returns what must be up to date for an answer. What is being typed is completed from the lines of the text, without a check
/// in between.
pub(crate) fn needs(method: &str) -> Needs {
    match method {
        "textDocument/completion" | "textDocument/hover" => Needs::Lines,
        "textDocument/codeAction" => Needs::Diagnostics,
        _ => Needs::Names,
    }
}

/// Calls `answer` with a document and an offset; a document that belongs to no definition has the answer `null`.
fn at(
    workspace: &Workspace,
    params: &At,
    answer: impl FnOnce(&Found<'_>, usize) -> Result<Json, Refusal>,
) -> Result<Json, Refusal> {
    match workspace.find(&params.document.uri) {
        Some(found) => {
            let offset = offset(found.text, params.position);
            answer(&found, offset)
        }
        None => Ok(Json::Null),
    }
}

pub(crate) fn completion(workspace: &Workspace, params: &At) -> Result<Json, Refusal> {
    at(workspace, params, |found, offset| {
        let offered = found.language.complete(&found.file, found.text, offset);
        let range = json!(range(found.text, offered.range));
        let items = offered.all.iter().enumerate().map(|(n, item)| {
            let kind = match item.sort {
                Sort::Key => 10,
                Sort::Word => 20,
                Sort::Name => 18,
                Sort::Variable => 6,
                Sort::Function => 3,
            };
            json!({
                "label": item.label,
                "kind": kind,
                "detail": item.detail,
                "documentation": { "kind": "markdown", "value": item.doc },
                "sortText": format!("{n:05}"),
                "filterText": item.label,
                "textEdit": { "range": range, "newText": item.text },
            })
        });
        let items: Vec<Json> = items.collect();
        Ok(json!({ "isIncomplete": false, "items": items }))
    })
}

pub(crate) fn hover(workspace: &Workspace, params: &At) -> Result<Json, Refusal> {
    at(workspace, params, |found, offset| {
        let hover = found.language.hover(&found.file, found.text, offset);
        Ok(hover.map_or(Json::Null, |hover| {
            json!({
                "contents": { "kind": "markdown", "value": hover.text },
                "range": range(found.text, hover.range),
            })
        }))
    })
}

pub(crate) fn definition(workspace: &Workspace, params: &At) -> Result<Json, Refusal> {
    at(workspace, params, |found, offset| {
        let places = found.language.definition(&found.file, found.text, offset);
        Ok(locations(found, &places))
    })
}

pub(crate) fn references(workspace: &Workspace, params: &At) -> Result<Json, Refusal> {
    at(workspace, params, |found, offset| {
        let mut places = found.language.references(&found.file, found.text, offset);
        let context = params.context.as_ref();
        if context.and_then(|context| context.include_declaration) == Some(false) {
            let declared = found.language.definition(&found.file, found.text, offset);
            places.retain(|place| !declared.contains(place));
        }
        Ok(locations(found, &places))
    })
}

pub(crate) fn prepare_rename(workspace: &Workspace, params: &At) -> Result<Json, Refusal> {
    at(workspace, params, |found, offset| {
        let renamed = found.language.renameable(&found.file, found.text, offset);
        let at = renamed.map_err(|why| Refusal::new(ErrorCode::RequestFailed, why))?;
        let name = &found.text[at.clone()];
        Ok(json!({ "range": range(found.text, at.clone()), "placeholder": name }))
    })
}

pub(crate) fn rename(workspace: &Workspace, params: &At) -> Result<Json, Refusal> {
    let Some(new) = &params.new_name else {
        return Err(Refusal::new(
            ErrorCode::InvalidParams,
            "`newName` is missing",
        ));
    };
    at(workspace, params, |found, offset| {
        let renamed = found.language.rename(&found.file, found.text, offset, new);
        let places = renamed.map_err(|why| Refusal::new(ErrorCode::RequestFailed, why))?;
        let mut changes: Map<String, Json> = Map::new();
        for place in &places {
            let edit = json!({ "range": place.lsp_range(), "newText": new });
            let edits = changes
                .entry(found.uri(&place.path))
                .or_insert_with(|| json!([]));
            edits.as_array_mut().expect("a list of edits").push(edit);
        }
        Ok(json!({ "changes": changes }))
    })
}

/// Returns the fixes of the diagnostics in a range.
pub(crate) fn code_action(workspace: &Workspace, params: &Within) -> Json {
    let Some(found) = workspace.find(&params.document.uri) else {
        return json!([]);
    };
    let (start, end) = (
        offset(found.text, params.range.start),
        offset(found.text, params.range.end),
    );
    let uri = |file: &str| found.uri(file);
    let mut actions = Vec::new();
    for diagnostic in found.language.diagnostics() {
        let here = diagnostic.at.as_ref().is_some_and(|at| {
            *at.path == *found.file && at.span.start <= end && start <= at.span.end
        });
        if let Some(mut action) = diagnostic.lsp_action(&uri).filter(|_| here) {
            action["diagnostics"] = json!([diagnostic.lsp(&uri)]);
            actions.push(action);
        }
    }
    Json::Array(actions)
}

fn locations(found: &Found<'_>, places: &[Place]) -> Json {
    let places = places.iter();
    let places = places.map(|at| json!({ "uri": found.uri(&at.path), "range": at.lsp_range() }));
    places.collect()
}
