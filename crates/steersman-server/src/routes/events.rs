//! Events: the stream of a session, and events from outside.

use crate::ask::{At, Body, Params, wrong};
use crate::caller::Caller;
use crate::openapi::{Events, Problems};
use crate::problem::{Code, Problem};
use crate::{Limits, Permission, Server, stream};
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use steersman::runtime::engine::EngineError;
use steersman::runtime::store::StoreError;
use steersman::views::filter::{self, Filter};
use steersman::{Error, EventKind, Sent};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes(limits: &Limits) -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(post))
        .layer(DefaultBodyLimit::max(limits.files))
        .routes(routes!(follow))
        .routes(routes!(watch))
}

/// Conditions on the events of a session.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Follow {
    /// The position after which the events begin: a cursor `12.3`, a line `12`, `start`, or `now`. `Last-Event-ID` goes before it.
    from: Option<String>,
    /// Kinds of events, separated by commas. Without it all kinds come.
    kinds: Option<String>,
    /// The id of a branch. Without it the events of all branches come.
    branch: Option<String>,
    /// `settled`: the stream ends once the session has settled.
    until: Option<String>,
}

/// Follows the events of a session as server-sent events.
///
/// The first is `hello` with the position, the last line, and who drives the session. The id of an event is its cursor; streamed
/// pieces have none, so a client that comes back with its last id misses nothing and gets nothing twice. A comment comes every 15
/// seconds.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/events", tag = "events",
    params(
        ("session" = String, Path, description = "The id of the session"),
        Follow,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client has"),
    ),
    responses(Events, Problems)
)]
async fn follow(
    caller: Caller,
    At(session): At<String>,
    Params(follow): Params<Follow>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.needs(Permission::Read)?;
    let info = caller.session(&session).await?;
    let last_id = headers.get("last-event-id");
    let last_id = last_id.map(|value| value.to_str().unwrap_or("?"));
    let from = stream::position(last_id, follow.from.as_deref(), &info)?;
    let until_settled = match follow.until.as_deref() {
        None => false,
        Some("settled") => true,
        Some(_) => return Err(Problem::new(Code::Query, "`until` is `settled`")),
    };
    let kinds = follow.kinds.iter().flat_map(|all| all.split(','));
    let kinds: BTreeSet<String> = kinds.map(|kind| kind.trim().to_owned()).collect();
    if let Some(kind) = kinds
        .iter()
        .find(|kind| !EventKind::WORDS.contains(&&***kind))
    {
        let why = format!(
            "there are no events of kind `{kind}`; there are: {}",
            EventKind::WORDS.join(", ")
        );
        return Err(wrong("kinds", why));
    }
    let wanted = stream::Wanted {
        from,
        kinds,
        branch: follow.branch,
        until_settled,
    };
    stream::open(caller, &info, wanted)
}

/// Conditions on the sessions that are followed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct OfSessions {
    /// A filter, as of the list of sessions: `status = waits or status = doubt`.
    #[serde(rename = "where")]
    filter: Option<String>,
}

/// Follows the sessions that the token sees, as server-sent events.
///
/// The first event is `hello`. `session` has the row of a session that changed, as lists have it; `left` names one that changed and
/// that the filter does not let through; `skipped` says how many changes a slow client missed. Events have no ids: a client lists the
/// sessions once `hello` has come, and again after a cut or a `skipped`.
#[utoipa::path(
    get,
    path = "/v1/events/stream",
    tag = "events",
    operation_id = "watch_sessions",
    params(OfSessions),
    responses(Events, Problems)
)]
async fn watch(caller: Caller, Params(of): Params<OfSessions>) -> Result<Response, Problem> {
    caller.needs(Permission::Read)?;
    let filter = Filter::parse(of.filter.as_deref())?;
    filter::are_known(caller.steersman.engine(), &filter).await?;
    stream::of_sessions(caller, filter)
}

/// An event from outside.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Post {
    /// The name of the definition.
    definition: String,
    /// The name of the event.
    event: String,
    /// Its fields. An artifact is an object of `name`, `media_type`, and `text` or `base64`.
    #[schema(value_type = Object)]
    fields: Value,
    /// The session for which it is, if the definition does not say it.
    session: Option<String>,
}

/// The fate of an event.
#[derive(Debug, Serialize, ToSchema)]
struct Posted {
    /// The fate of the event.
    sent: Where,
    /// The session that it went to.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

/// The fates of an event.
#[derive(Copy, Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Where {
    /// It was accepted before; nothing was done.
    Known,
    /// It started a session.
    Started,
    /// It is in the inbox of a session.
    Session,
    /// It was offered to the waits that match, and is kept for later ones.
    Offered,
}

/// Sends an event. As the definition says, it goes to a session, starts one, or is offered to the waits that match.
///
/// The id that the definition gives the event is accepted once, so the request can be repeated.
#[utoipa::path(
    post, path = "/v1/events", tag = "events", request_body = Post,
    responses((status = 202, description = "The event is on disk", body = Posted), Problems)
)]
async fn post(
    caller: Caller,
    Body(post): Body<Post>,
) -> Result<(StatusCode, Json<Posted>), Problem> {
    caller.needs(Permission::Events)?;
    let network = caller.definition(&post.definition)?;
    if let Some(session) = &post.session {
        let info = caller.session(session).await?;
        if *info.network != *network.name() {
            return Err(Problem::no_session(session));
        }
    }
    let session = post.session.as_deref();
    let sent = caller
        .steersman
        .event_to(&network, &post.event, &post.fields, session)
        .await;
    let sent = sent.map_err(|error| match error {
        Error::Engine(EngineError::Store(StoreError::Conflict(_))) => Problem::new(
            Code::Exists,
            "a session with this key exists, and is not yours",
        ),
        error => error.into(),
    })?;
    let (sent, session) = match sent {
        Sent::Known(session) => (Where::Known, session),
        Sent::Started(session) => (Where::Started, Some(session)),
        Sent::Session(session) => (Where::Session, Some(session)),
        Sent::Offered => (Where::Offered, None),
    };
    Ok((StatusCode::ACCEPTED, Json(Posted { sent, session })))
}
