//! Sessions: start, list, look, say.

use super::files::{self, File};
use crate::act::{Receipt, replayed};
use crate::ask::{Asked, At, Body, Params, id, wrong};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::schemas::{SessionList, Turn};
use crate::sight::branch_at;
use crate::{Limits, Permission, Server};
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::machine::stored::ids::{Id, Line, Name, Time};
use steersman::runtime::inbox::Wanted;
use steersman::views::cause::Reason;
use steersman::views::filter::{self, Filter, STATUSES};
use steersman::views::list::SessionRow;
use steersman::{Act, By, Network, PendingKind, SessionInfo, SessionQuery, StartOptions};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes(limits: &Limits) -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(start, list))
        .routes(routes!(say))
        .layer(DefaultBodyLimit::max(limits.files))
        .routes(routes!(page))
}

/// A session to start.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Start {
    /// The name of the definition.
    #[schema(required)]
    definition: String,
    /// The agent that begins. Without one it is the first entry of the definition.
    entry: Option<String>,
    /// The first message.
    message: Option<String>,
    /// Arguments for the parameters of the agent that begins.
    #[schema(value_type = Object)]
    args: Option<Value>,
    /// Files that come with the arguments or the message.
    files: Vec<File>,
    /// The key by which events find the session. One session of a definition has it.
    key: Option<String>,
    /// The seed of all randomness. Without one it is random.
    seed: Option<u64>,
    /// Values of `config` that take precedence over those of the server.
    config: BTreeMap<String, Value>,
    /// The role in which the message is said.
    #[serde(rename = "as")]
    role: Option<String>,
}

/// A session that was started.
#[derive(Debug, Serialize, ToSchema)]
struct Started {
    /// The id of the session.
    session: String,
    /// The last line of its log.
    head: u64,
}

/// Starts a session.
///
/// Under an idempotency key the session has an id that follows from the key, so that a repetition finds it. With `Prefer: wait=N` the
/// answer is the state in which the session settles within N seconds.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "sessions", request_body = Start,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 201, description = "The session is on disk", body = Started),
        (status = 200, description = "The state in which it settled", body = Turn),
        Problems,
    )
)]
async fn start(
    caller: Caller,
    asked: Asked,
    Body(start): Body<Start>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Write)?;
    if start.definition.is_empty() {
        let why = "`definition` is missing: the name of the definition that begins";
        return Err(Problem::new(Code::Body, why).help("GET /v1/definitions lists them"));
    }
    if start.message.as_deref() == Some("") && start.files.is_empty() {
        let why =
            "`message` is empty, and there are no files; leave it out to begin without a message";
        return Err(Problem::new(Code::Body, why));
    }
    let network = caller.definition(&start.definition)?;
    let by = caller.by(start.role.as_deref())?;
    Caller::may_configure(network.checked(), start.config.keys())?;
    caller.may_have_key(start.key.as_deref())?;
    let contents = files::contents(&start.files)?;
    let request = serde_json::to_string(&start)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    // Recognises a repetition. The session's own first message names the values that the server bound.
    let same = Wanted::Event {
        event: "http".into(),
        fields: request,
    }
    .by(by.clone());
    let message = caller.message_id(&asked).await?;
    let options = StartOptions {
        agent: (start.entry.as_deref())
            .map(|entry| entry_of(&network, entry))
            .transpose()?,
        args: start.args.clone(),
        say: start.message.clone(),
        message_id: Some(message),
        event: Some(same),
        by: by.named().cloned(),
        files: contents,
        config: (start.config.iter())
            .map(|(name, value)| (name.as_str().into(), value.clone()))
            .collect(),
        key: start.key.as_deref().map(Into::into),
        seed: start.seed,
        ..StartOptions::default()
    };
    let (session, is_replay) = caller.begin(&network, &asked, options).await?;
    if let Some(wait) = asked.wait {
        let until = Instant::now() + wait;
        if let Some(turn) = caller.settles(&session, Line::NONE, until).await? {
            return Ok(replayed(Json(turn).into_response(), is_replay));
        }
    }
    let head = caller.steersman.engine().store().head(&session).await?.0;
    let place = format!("/v1/sessions/{session}");
    let session = session.to_string();
    let started = Json(Started { session, head });
    let mut response = (StatusCode::CREATED, started).into_response();
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(replayed(response, is_replay))
}

/// Which sessions a list has.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Which {
    /// The name of the definition.
    definition: Option<String>,
    /// Statuses, separated by commas.
    status: Option<String>,
    /// The key of the session.
    key: Option<String>,
    /// A label: `name:value`.
    label: Option<String>,
    /// The beginning of the id of the session.
    prefix: Option<String>,
    /// A filter, as `steersman sessions --where` takes it: `status = waits and vendor = Acme and updated > -7d`.
    #[serde(rename = "where")]
    filter: Option<String>,
    /// The position after which the list goes on: `next` of the page before.
    after: Option<String>,
    /// The most rows of a page, at most 200.
    limit: Option<usize>,
}

/// Number of rows of a page, unless the client wants another.
const ROWS: usize = 20;
/// The most rows of a page.
const MOST_ROWS: usize = 200;

/// Returns the number of rows that a client wants.
pub(super) fn rows(limit: Option<usize>) -> Result<usize, Problem> {
    match limit {
        None => Ok(ROWS),
        Some(n @ 1..=MOST_ROWS) => Ok(n),
        Some(_) => Err(wrong("limit", format_args!("from 1 to {MOST_ROWS}"))),
    }
}

/// Lists the sessions that the token sees, newest first.
///
/// With a filter that lets through few sessions, a page may be short, or empty, although there is a `next`.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", params(Which),
    responses((status = 200, description = "`items`, and `next` if there are more", body = SessionList), Problems)
)]
async fn list(caller: Caller, Params(which): Params<Which>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let most = rows(which.limit)?;
    let label = which.label.as_deref().map(label_of).transpose()?;
    let filter = Filter::parse(which.filter.as_deref())?;
    let status = which.status.iter().flat_map(|all| all.split(','));
    let status: Vec<&str> = status.map(str::trim).collect();
    if let Some(word) = status.iter().find(|word| !STATUSES.contains(*word)) {
        let why = format!(
            "no session has the status `{word}`; there are: {}",
            STATUSES.join(", ")
        );
        return Err(wrong("status", why));
    }
    let query = SessionQuery {
        network: which.definition.as_deref().map(Into::into),
        key: which.key.as_deref().map(Into::into),
        label,
        prefix: which.prefix.clone(),
        status: status.into_iter().map(Into::into).collect(),
        after: which.after.as_deref().map(after).transpose()?,
        ..SessionQuery::default()
    };
    let page = filter::page(caller.steersman.engine(), &filter, &query, most).await?;
    let next = page.next.map(|(updated, id)| format!("{}.{id}", updated.0));
    let found = page.found;
    let mut items = Vec::with_capacity(found.len());
    for info in &found {
        items.push(row(&caller, info).await?);
    }
    Ok(Json(json!({ "items": items, "next": next })))
}

/// Reads the name and the value of a label.
pub(crate) fn label_of(text: &str) -> Result<(Name, Arc<str>), Problem> {
    let label = text.split_once(':');
    let (name, value) = label.ok_or_else(|| wrong("label", "`name:value`"))?;
    Ok((name.into(), value.into()))
}

/// Reads the position in a list.
fn after(text: &str) -> Result<(Time, Arc<str>), Problem> {
    let wrong = || wrong("after", "the value of `next` of another page");
    let (at, id) = text.split_once('.').ok_or_else(wrong)?;
    let at = at.parse().map_err(|_| wrong())?;
    Ok((Time(at), id.into()))
}

/// Returns the row of a session, with the reason if it failed or reached a limit. Only labels and outcomes have texts that may hold a
/// secret.
pub(crate) async fn row(caller: &Caller, info: &SessionInfo) -> Result<Value, Problem> {
    let row = SessionRow::from(info);
    let has_texts = !row.labels.is_empty() || !matches!(&row.outcome, Value::Null);
    let mut row = serde_json::to_value(row).unwrap_or_default();
    row["key"] = json!(info.key);
    if let Some(reason) = Reason::of_row(caller.steersman.engine(), info).await? {
        row["reason"] = json!(reason);
    }
    if has_texts && !caller.may(Permission::Context) {
        let known = caller.steersman.engine().secrets_of(&info.id).await?;
        known.mask(&mut row);
    }
    Ok(row)
}

/// A branch to look at.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Branch {
    /// The label or the id of a branch. Without one it is the current branch.
    pub(super) branch: Option<String>,
}

/// Returns a session on one page: its branches, agents, state, effects, and what it waits for.
///
/// The `ETag` is the last line: with `If-None-Match` the answer is 304 while nothing new is on disk.
#[utoipa::path(
    get, path = "/v1/sessions/{session}", tag = "sessions",
    params(
        ("session" = String, Path, description = "The id of the session"),
        Branch,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the page that the client has"),
    ),
    responses(
        (status = 200, description = "The page", body = Value),
        (status = 304, description = "The session has no line after that one"),
        Problems,
    )
)]
async fn page(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Params(look): Params<Branch>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Read)?;
    let has = |head: Line| asked.if_none_match.as_deref() == Some(&*tag(head));
    let kept = caller.kept_head(&session);
    if let Some(head) = kept.filter(|head| has(*head)) {
        return Ok(tagged(StatusCode::NOT_MODIFIED.into_response(), head));
    }
    let info = caller.session(&session).await?;
    caller.keep_head(&info.id, info.head);
    let response = if has(info.head) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if info.head == Line::NONE {
        // Nothing is on disk but the message that begins the session.
        Json(row(&caller, &info).await?).into_response()
    } else {
        let sight = caller.look(&session, look.branch.as_deref()).await?;
        Json(caller.shown(&sight.page(None), &sight.known)?).into_response()
    };
    Ok(tagged(response, info.head))
}

/// Returns the tag of a page whose session has this last line.
fn tag(head: Line) -> String {
    format!("\"{head}\"")
}

/// Names the tag of a page.
fn tagged(mut response: Response, head: Line) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&tag(head)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// A message to a session.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Say {
    /// The text.
    text: String,
    /// The id of the agent or question that is meant. Without one it is the agent that has the floor.
    to: Option<String>,
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// The role in which it is said.
    #[serde(rename = "as")]
    role: Option<String>,
    /// True to cancel first whatever is open.
    interrupt: bool,
    /// Files that come with the message.
    files: Vec<File>,
}

/// Says something to a session.
///
/// The answer is a receipt. With `Prefer: wait=N` it is the state in which the session settles within N seconds.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/messages", tag = "sessions", request_body = Say,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 202, description = "The message is on disk", body = Receipt),
        (status = 200, description = "The state in which the session settled", body = Turn),
        Problems,
    )
)]
async fn say(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(say): Body<Say>,
) -> Result<Response, Problem> {
    let branch = say.branch.clone();
    said(&caller, &asked, &session, branch.as_deref(), say).await
}

/// Says something on a branch.
pub(super) async fn said(
    caller: &Caller,
    asked: &Asked,
    session: &str,
    branch: Option<&str>,
    say: Say,
) -> Result<Response, Problem> {
    caller.needs(Permission::Write)?;
    if say.text.is_empty() && say.files.is_empty() {
        return Err(Problem::new(
            Code::Body,
            "`text` is empty, and there are no files",
        ));
    }
    let by: By = caller.by(say.role.as_deref())?;
    if asked.wait.is_some() {
        // The answer tells what the session said.
        caller.needs(Permission::Read)?;
    }
    let to = say.to.as_deref().map(id).transpose()?;
    if let Some(to) = to {
        may_answer(caller, session, to).await?;
    }
    let branch = match branch {
        Some(name) => Some(branch_of(caller, session, name).await?),
        None => None,
    };
    let mut act = if say.interrupt {
        Act::interrupt(&say.text, Some(by), branch)
    } else {
        Act::say(&say.text, Some(by), branch)
    };
    if let Some(to) = to {
        act = act.to(to);
    }
    let act = act.with_files(&files::contents(&say.files)?);
    let receipt = caller.act(session, act, asked).await?;
    caller.answer(receipt, asked).await
}

/// Checks that a message may go to an agent or a question. One to a question of an agent is an answer, and needs the permission to decide.
/// All else that waits for a person takes no message: its text would stay in the log.
async fn may_answer(caller: &Caller, session: &str, to: Id) -> Result<(), Problem> {
    let info = caller.session(session).await?;
    let seen = caller.steersman.engine().inspect(&info.id).await?;
    let mut pending = seen.pending.iter();
    let Some(pending) = pending.find(|pending| pending.effect == to) else {
        return Ok(());
    };
    if pending.kind == PendingKind::Question {
        return caller.needs(Permission::Decide);
    }
    let why = format!("what `{to}` waits for is no question of an agent");
    Err(Problem::new(Code::Refused, why)
        .help("`GET /v1/sessions/{session}/questions` lists it with the routes that answer it"))
}

/// Returns an entry of a definition.
fn entry_of(network: &Network, name: &str) -> Result<Name, Problem> {
    let entries = &network.checked().entry;
    let found = entries.iter().find(|entry| ***entry == *name);
    found.cloned().ok_or_else(|| {
        let all: Vec<&str> = entries.iter().map(|entry| &**entry).collect();
        Problem::new(
            Code::Body,
            "`entry`: the definition does not begin with this agent",
        )
        .help(format!("it begins with: {}", all.join(", ")))
    })
}

/// Returns the id of a branch that a client names by its label or its id.
pub(super) async fn branch_of(caller: &Caller, session: &str, name: &str) -> Result<Id, Problem> {
    let info = caller.session(session).await?;
    let seen = caller.steersman.engine().inspect(&info.id).await?;
    let at = branch_at(&seen, Some(name))?;
    Ok(seen.branches[at].id)
}
