//! Searches over branches: begin, look, stop.

use super::sessions::branch_of;
use crate::act::{Receipt, replayed};
use crate::ask::{Asked, At, Body, id};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use steersman::machine::stored::ids::{Id, Line};
use steersman::runtime::engine::Inspection;
use steersman::views::search::SearchTree;
use steersman::{Act, PlanError, Search};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(begin, list))
        .routes(routes!(look, stop))
}

/// A search to begin. What it does not say follows from the plan that the agent declares, or has its usual value.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = NewSearch)]
struct NewSearch {
    /// The label or the id of the branch. Without one it is the current branch.
    branch: Option<String>,
    /// The line at which it begins. Without one it is the last of the branch.
    at: Option<u64>,
    /// Said there first.
    say: Option<String>,
    /// `best_of`, `beam`, `rollouts` or `mcts`.
    method: Option<String>,
    /// Number of branches in all; of `beam` those of a level.
    n: Option<u64>,
    /// Maximum number of blocks of a branch.
    depth: Option<u64>,
    /// Of `beam`: how many of a level go on. Of `rollouts`: first blocks. Of `mcts`: branches at one place.
    width: Option<u64>,
    /// An expression over `answer`, `state` and `calls`: what a branch is worth.
    score: Option<String>,
    /// The one who says what a branch is worth: a tool that only looks, or an agent.
    by: Option<String>,
    /// The value at which the search ends.
    enough: Option<f64>,
    /// Maximum number of model calls.
    calls: Option<u64>,
    /// Maximum number of tokens.
    tokens: Option<u64>,
    /// Maximum amount of money, in millionths of the currency.
    micros: Option<u64>,
    /// The seed of sampling. Without one it is the session's.
    seed: Option<u64>,
    /// True if effects touch the world on all branches. Otherwise they are simulated.
    live: bool,
}

impl NewSearch {
    /// Returns the plan as definitions write it.
    fn plan(&self) -> Value {
        let mut plan = Map::new();
        let all = [
            ("method", json!(self.method)),
            ("n", json!(self.n)),
            ("depth", json!(self.depth)),
            ("width", json!(self.width)),
            ("score", json!(self.score)),
            ("by", json!(self.by)),
            ("enough", json!(self.enough)),
            ("calls", json!(self.calls)),
            ("tokens", json!(self.tokens)),
            ("micros", json!(self.micros)),
            ("seed", json!(self.seed)),
            ("effects", json!(self.live.then_some("live"))),
        ];
        let given = all.into_iter().filter(|(_, value)| !value.is_null());
        plan.extend(given.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(plan)
    }
}

/// A search that has begun.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchBegun)]
struct Began {
    /// The session.
    session: String,
    /// The id of the search.
    search: String,
    /// The line that began it.
    line: u64,
}

/// Begins a search over branches, which goes on while the session continues. Effects are simulated unless `live` is set.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/searches", tag = "searches", operation_id = "begin_search", request_body = NewSearch,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses(
        (status = 201, description = "The search has begun", body = Began),
        (status = 202, description = "The session has not taken the request yet", body = Receipt),
        Problems,
    )
)]
async fn begin(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(new): Body<NewSearch>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Time)?;
    let by = caller.acting();
    let info = caller.session(&session).await?;
    let branch = match &new.branch {
        Some(name) => Some(branch_of(&caller, &session, name).await?),
        None => None,
    };
    let line = new.at.map(Line);
    let plan = new.plan();
    let plan = caller
        .steersman
        .search_plan(&info.id, (branch, line), new.say.as_deref(), &plan);
    let plan = plan.await.map_err(|error| match error {
        PlanError::Session(error) => error.into(),
        PlanError::Unfit(why) => Problem::new(Code::Body, why),
        PlanError::NoScore => Problem::new(Code::Body, error.to_string()).help(
            "`score`: an expression over `answer`, `state`, `calls`; or `by`: a tool or an agent",
        ),
    })?;
    let act = Act::search(Search {
        branch,
        at: line,
        say: new.say,
        plan,
    });
    let (receipt, search) = caller.opens(&session, act.by(by), &asked).await?;
    let (Some(search), Some(line)) = (search, receipt.line) else {
        return Ok(receipt.into_response());
    };
    let began = Json(Began {
        session,
        search: search.to_string(),
        line,
    });
    let response = (StatusCode::CREATED, began).into_response();
    Ok(replayed(response, receipt.is_replay))
}

/// Reads a session that the token sees.
async fn seen(caller: &Caller, session: &str) -> Result<Inspection, Problem> {
    let info = caller.session(session).await?;
    Ok(caller.steersman.engine().inspect(&info.id).await?)
}

/// Lists the searches of a session, with their trees.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/searches", tag = "searches", operation_id = "list_searches",
    params(("session" = String, Path, description = "The id of the session")),
    responses((status = 200, description = "`items`", body = Value), Problems)
)]
async fn list(caller: Caller, At(session): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let seen = seen(&caller, &session).await?;
    let all = seen.ledger.searches().map(|(id, _)| id);
    let items: Vec<SearchTree> = all.filter_map(|id| SearchTree::of(&seen, id)).collect();
    let known = caller.steersman.engine().secrets_of(&session).await?;
    let items = caller.shown(&items, &known)?;
    Ok(Json(json!({ "items": items })))
}

fn unknown(search: Id) -> Problem {
    Problem::new(Code::Search, format!("the session has no search {search}"))
        .help("GET /v1/sessions/{session}/searches lists them")
}

/// Returns a search: its tree, with values and costs, and its winner so far.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/searches/{search}", tag = "searches", operation_id = "get_search",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("search" = String, Path, description = "The id of the search"),
    ),
    responses((status = 200, description = "The search", body = Value), Problems)
)]
async fn look(
    caller: Caller,
    At((session, search)): At<(String, String)>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let search = id(&search)?;
    let seen = seen(&caller, &session).await?;
    let tree = SearchTree::of(&seen, search).ok_or_else(|| unknown(search))?;
    let known = caller.steersman.engine().secrets_of(&session).await?;
    Ok(Json(caller.shown(&tree, &known)?))
}

/// Ends a search with the best result so far.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/searches/{search}", tag = "searches", operation_id = "stop_search",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("search" = String, Path, description = "The id of the search"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn stop(
    caller: Caller,
    asked: Asked,
    At((session, search)): At<(String, String)>,
) -> Result<Receipt, Problem> {
    caller.needs(Permission::Time)?;
    let by = caller.acting();
    let search = id(&search)?;
    let seen = seen(&caller, &session).await?;
    if seen.ledger.search(search).is_none() {
        return Err(unknown(search));
    }
    let act = Act::stop_search(Some(search)).by(by);
    caller.act(&session, act, &asked).await
}
