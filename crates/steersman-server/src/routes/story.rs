//! The story of a session: what happened, row by row, in plain words.

use super::sessions::branch_of;
use crate::ask::{At, Params, wrong};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::Problem;
use crate::schemas::StoryPage;
use crate::{Permission, Server};
use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use steersman::machine::stored::ids::Line;
use steersman::views::story::Row;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(story))
}

/// Number of rows of a page, unless the client wants another.
const ROWS: usize = 200;
/// The most rows of a page.
const MOST_ROWS: usize = 1000;

/// A part of a story.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Part {
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// The first line. Without one it is the first of the branch.
    from: Option<u64>,
    /// The last line. Without one it is the last of the branch.
    to: Option<u64>,
    /// True to get the last rows of these lines, otherwise the first.
    last: bool,
    /// The most rows, at most 1000. The rows of a line stay together, so a page may have a few more.
    limit: Option<usize>,
    /// The most characters of a text. What is longer is cut, and has `cut`.
    chars: Option<usize>,
    /// Only rows that have this in their text, actor or note, in upper or lower case. Secrets are not found by a token that may not see them.
    find: Option<String>,
}

/// Tells what happened on a branch, row by row, in plain words, as `steersman show` does.
///
/// `before` is the last line in front of the page that has rows, `next` the first line behind it; each is absent where there is none.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/story", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Part),
    responses((status = 200, description = "The rows", body = StoryPage), Problems)
)]
async fn story(
    caller: Caller,
    At(session): At<String>,
    Params(part): Params<Part>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let most = match part.limit {
        None => ROWS,
        Some(most @ 1..=MOST_ROWS) => most,
        Some(_) => return Err(wrong("limit", format_args!("from 1 to {MOST_ROWS}"))),
    };
    let from = part.from.unwrap_or(0);
    let to = part.to.unwrap_or(u64::MAX);
    if from > to {
        return Err(wrong("from", "it is after `to`"));
    }
    if let Some(name) = &part.branch {
        branch_of(&caller, &session, name).await?;
    }
    let sight = caller.look(&session, part.branch.as_deref()).await?;
    let mut rows = sight.story();
    if let Some(words) = part.find.as_deref().filter(|words| !words.is_empty()) {
        let told = caller.shown(&rows, &sight.known)?;
        let words = words.to_lowercase();
        let mut told = told.as_array().into_iter().flatten();
        rows.retain(|_| told.next().is_some_and(|row| has(row, &words)));
    }
    let (first, end) = page(&rows, (Line(from), Line(to)), part.last, most);
    let items = &rows[first..end];
    let mut items = caller.shown(&items, &sight.known)?;
    if let (Some(chars), Some(items)) = (part.chars, items.as_array_mut()) {
        for row in items {
            cut(row, chars);
        }
    }
    let before = first.checked_sub(1).map(|at| rows[at].line.0);
    let next = rows.get(end).map(|row| row.line.0);
    Ok(Json(json!({
        "branch": sight.branch().id.to_string(),
        "head": sight.branch().head.0,
        "items": items,
        "before": before,
        "next": next,
    })))
}

/// Returns the rows of a page: the first and the one behind the last, at the first or the last end of a range of lines.
fn page(rows: &[Row], (from, to): (Line, Line), last: bool, most: usize) -> (usize, usize) {
    let mut first = rows.partition_point(|row| row.line < from);
    let mut end = rows.partition_point(|row| row.line <= to);
    if end - first <= most {
        return (first, end);
    }
    if last {
        first = end - most;
        while first > 0 && rows[first - 1].line == rows[first].line {
            first -= 1;
        }
    } else {
        end = first + most;
        while end < rows.len() && rows[end].line == rows[end - 1].line {
            end += 1;
        }
    }
    (first, end)
}

/// Returns true if a row has these words, which are in lower case.
fn has(row: &Value, words: &str) -> bool {
    let texts = ["text", "who", "note"].into_iter();
    let mut texts = texts.filter_map(|field| row[field].as_str());
    texts.any(|text| text.to_lowercase().contains(words))
}

/// Cuts the text of a row.
fn cut(row: &mut Value, chars: usize) {
    let Some(text) = row["text"].as_str() else {
        return;
    };
    if let Some((at, _)) = text.char_indices().nth(chars) {
        let short = text[..at].to_owned();
        row["text"] = short.into();
        row["cut"] = true.into();
    }
}
