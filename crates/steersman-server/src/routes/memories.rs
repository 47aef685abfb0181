//! Memories that agents keep across sessions: list, search, show, rate, forget.

use super::sessions::rows;
use crate::ask::{At, Body, Params, wrong};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use steersman::machine::view::rating::{BEST, WORST};
use steersman::runtime::store::{Memory, MemoryQuery, Rated};
use steersman::views::list::MemoryRow;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(search))
        .routes(routes!(forget))
        .routes(routes!(one, drop_one))
        .routes(routes!(rate))
}

fn unknown(id: u64) -> Problem {
    Problem::new(Code::Memory, format!("there is no memory {id}"))
        .help("GET /v1/memories lists them")
}

/// Conditions on the memories of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Which {
    /// The scope.
    scope: Option<String>,
    /// The session that saved them.
    session: Option<String>,
    /// True for a list that also has what another memory stands in the place of.
    replaced: bool,
    /// The position after which the list goes on: `next` of the page before.
    after: Option<u64>,
    /// The most rows of a page, at most 200.
    limit: Option<usize>,
}

/// Lists the memories that the token sees, newest first, without their contents.
#[utoipa::path(
    get, path = "/v1/memories", tag = "memories", operation_id = "list_memories", params(Which),
    responses((status = 200, description = "`items`, and `next` if there are more", body = Value), Problems)
)]
async fn list(caller: Caller, Params(which): Params<Which>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Memory)?;
    let most = rows(which.limit)?;
    let query = MemoryQuery {
        scope: which.scope.as_deref().map(Into::into),
        session: which.session.as_deref().map(Into::into),
        current: !which.replaced,
        ..MemoryQuery::default()
    };
    let mut found = caller.steersman.memories(query).await?;
    if let Some(after) = which.after {
        let place = found.iter().position(|memory| memory.id == after);
        let place = place.ok_or_else(|| wrong("after", "the value of `next` of another page"))?;
        found.drain(..=place);
    }
    let is_more = found.len() > most;
    found.truncate(most);
    let next = found.last().filter(|_| is_more).map(|memory| memory.id);
    let items: Vec<MemoryRow> = found.iter().map(MemoryRow::from).collect();
    Ok(Json(json!({ "items": items, "next": next })))
}

/// A search in memories.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Words {
    /// The words.
    query: String,
    /// The scope. Without one all scopes are searched.
    scope: Option<String>,
    /// The most memories of a scope, at most 200.
    limit: Option<usize>,
}

/// Maximum number of scopes that are searched at once.
const SCOPES: usize = 200;

/// Finds the memories that fit words best, as agents of their scope would find them.
#[utoipa::path(
    get, path = "/v1/memories/search", tag = "memories", operation_id = "search_memories", params(Words),
    responses((status = 200, description = "`items`, each with the passage that fits best", body = Value), Problems)
)]
async fn search(caller: Caller, Params(words): Params<Words>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Memory)?;
    let most = rows(words.limit)?;
    if words.query.trim().is_empty() {
        return Err(wrong("query", "the words to find are missing"));
    }
    let scopes: BTreeSet<String> = if let Some(scope) = &words.scope {
        BTreeSet::from([scope.clone()])
    } else {
        let all = caller.steersman.memories(MemoryQuery::default()).await?;
        all.iter().map(|memory| memory.scope.to_string()).collect()
    };
    if scopes.len() > SCOPES {
        let why = format!(
            "there are {} scopes, and at most {SCOPES} are searched at once",
            scopes.len()
        );
        return Err(wrong("scope", why));
    }
    let mut items = Vec::new();
    for scope in &scopes {
        let found = caller.steersman.search_memories(scope, &words.query, most);
        for found in found.await? {
            items.push(with_text(&caller, &found.memory, &found.text).await?);
        }
    }
    Ok(Json(json!({ "items": items })))
}

/// Returns a memory with a text of it. Secrets of the session that saved it are masked unless the token may see them.
async fn with_text(caller: &Caller, memory: &Memory, text: &str) -> Result<Value, Problem> {
    let mut view = serde_json::to_value(MemoryRow::from(memory)).unwrap_or_default();
    view["text"] = text.into();
    if let Some(session) = &memory.session
        && !caller.may(Permission::Context)
        // A memory outlives its session.
        && caller.session(session).await.is_ok()
    {
        let known = caller.steersman.engine().secrets_of(session).await?;
        known.mask(&mut view);
    }
    Ok(view)
}

/// Returns a memory that the token sees.
async fn found(caller: &Caller, id: u64) -> Result<Memory, Problem> {
    let query = MemoryQuery {
        id: Some(id),
        ..MemoryQuery::default()
    };
    let found = caller.steersman.memories(query).await?;
    found.into_iter().next().ok_or_else(|| unknown(id))
}

/// Returns a memory with its content.
#[utoipa::path(
    get, path = "/v1/memories/{memory}", tag = "memories", operation_id = "get_memory",
    params(("memory" = u64, Path, description = "The number of the memory")),
    responses((status = 200, description = "The memory", body = Value), Problems)
)]
async fn one(caller: Caller, At(id): At<u64>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Memory)?;
    let memory = found(&caller, id).await?;
    let content = caller.steersman.engine().memory_content(&memory).await?;
    let content = content.ok_or_else(|| {
        let why = format!("the content of memory {id} is not in the store");
        Problem::new(Code::Damaged, why).help("`steersman fsck` says what else is missing")
    })?;
    let text = String::from_utf8_lossy(&content);
    Ok(Json(with_text(&caller, &memory, &text).await?))
}

/// A rating.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MemoryRating)]
struct Rate {
    /// From 1 to 5.
    rating: u8,
    /// The reason.
    #[serde(default)]
    reason: Option<String>,
    /// The role in which it is rated.
    #[serde(rename = "as", default)]
    role: Option<String>,
}

/// Rates a memory. The rating of a person takes precedence over those of agents; the last one counts.
#[utoipa::path(
    post, path = "/v1/memories/{memory}/rating", tag = "memories", operation_id = "rate_memory", request_body = Rate,
    params(("memory" = u64, Path, description = "The number of the memory")),
    responses((status = 200, description = "The memory with its rating", body = Value), Problems)
)]
async fn rate(
    caller: Caller,
    At(id): At<u64>,
    Body(rating): Body<Rate>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Memory)?;
    let by = caller.by(rating.role.as_deref())?;
    found(&caller, id).await?;
    if !(WORST..=BEST).contains(&rating.rating) {
        let why = format!("`rating` is from {WORST} to {BEST}");
        return Err(Problem::new(Code::Body, why));
    }
    let rated = Rated {
        rating: rating.rating,
        reason: rating.reason.map(Into::into),
        by: by.role,
    };
    caller.steersman.rate_memory(id, rated).await?;
    let memory = found(&caller, id).await?;
    Ok(Json(json!(MemoryRow::from(&memory))))
}

/// Forgets a memory. Sessions that found it keep what they were shown.
#[utoipa::path(
    delete, path = "/v1/memories/{memory}", tag = "memories", operation_id = "forget_memory",
    params(("memory" = u64, Path, description = "The number of the memory")),
    responses((status = 204, description = "The memory is forgotten"), Problems)
)]
async fn drop_one(caller: Caller, At(id): At<u64>) -> Result<StatusCode, Problem> {
    caller.needs(Permission::Memory)?;
    found(&caller, id).await?;
    caller.steersman.forget_memories(vec![id]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Memories to forget.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ForgetMemories)]
struct Forget {
    /// Their numbers.
    memories: Option<Vec<u64>>,
    /// The session that saved them.
    session: Option<String>,
    /// Their scope.
    scope: Option<String>,
    /// True to do it. Otherwise the answer says which are meant, and nothing is done.
    apply: bool,
}

/// The memories that are forgotten.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ForgottenMemories)]
struct Forgotten {
    /// Number of memories.
    count: usize,
    /// True if they are forgotten.
    applied: bool,
    /// Their numbers.
    memories: Vec<u64>,
}

/// Forgets memories: by their numbers, of a session, or all of a scope. Without `apply` it only says which they are.
///
/// Contents that nothing names any more stay in the store until `steersman gc` collects them.
#[utoipa::path(
    post, path = "/v1/memories/forget", tag = "memories", operation_id = "forget_memories", request_body = Forget,
    responses((status = 200, description = "The memories", body = Forgotten), Problems)
)]
async fn forget(caller: Caller, Body(forget): Body<Forget>) -> Result<Json<Forgotten>, Problem> {
    caller.needs(Permission::Memory)?;
    if forget.memories.is_none() && forget.session.is_none() && forget.scope.is_none() {
        let why = "`memories`, `session` or `scope` has to say which memories are meant";
        return Err(Problem::new(Code::Body, why));
    }
    let query = MemoryQuery {
        scope: forget.scope.as_deref().map(Into::into),
        session: forget.session.as_deref().map(Into::into),
        ..MemoryQuery::default()
    };
    let found = caller.steersman.memories(query).await?;
    let mut memories: Vec<u64> = found.iter().map(|memory| memory.id).collect();
    if let Some(wanted) = &forget.memories {
        if let Some(missing) = wanted.iter().find(|id| !memories.contains(id)) {
            return Err(unknown(*missing));
        }
        memories.retain(|id| wanted.contains(id));
    }
    if forget.apply {
        caller.steersman.forget_memories(memories.clone()).await?;
    }
    Ok(Json(Forgotten {
        count: memories.len(),
        applied: forget.apply,
        memories,
    }))
}
