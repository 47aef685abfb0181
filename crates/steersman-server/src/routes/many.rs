//! Acts over many sessions: those that a filter lets through, or that are named.

use crate::act::replayed;
use crate::ask::{Asked, Body};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use steersman::runtime::store::SessionId;
use steersman::views::filter::{self, Filter, SelectError};
use steersman::{Act, By, CancelWhat, SessionQuery};
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(give))
}

/// Number of sessions that are given an act at once.
const AT_ONCE: usize = 8;
/// Maximum number of sessions of one request.
const MOST: usize = 1_000;

/// The acts that many sessions can be given. Questions are decided one by one, because a person has to read each of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OrderAct)]
enum Given {
    /// Cancels everything that is open.
    Cancel,
    /// Begins nothing new.
    Pause,
    /// Ends a pause.
    Resume,
    /// Keeps effects of a tool from beginning.
    Hold,
    /// Takes a hold back.
    Release,
    /// Tries again what failed.
    Retry,
    /// Sets entries of state.
    Edit,
    /// Binds other values of `config`.
    Migrate,
}

/// An act for many sessions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OrderMany)]
struct Many {
    /// The act.
    act: Given,
    /// The sessions by a filter: `status = waits and vendor = Acme`. A request has this or `sessions`.
    #[serde(rename = "where", default)]
    filter: Option<String>,
    /// The sessions by their ids.
    #[serde(default)]
    sessions: Option<BTreeSet<String>>,
    /// Of `hold` and `release`: the tool. Without one all tools that may change the world are meant.
    #[serde(default)]
    tool: Option<String>,
    /// Of `edit`: the entries with their new values. `null` unsets one.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    state: Option<Map<String, Value>>,
    /// Of `migrate`: the values of `config`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    /// The role in which it is given.
    #[serde(rename = "as", default)]
    role: Option<String>,
    /// True to do it. Otherwise the answer says which sessions are meant, and nothing is done.
    #[serde(default)]
    apply: bool,
}

/// The sessions of an act, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrdersGiven)]
struct Gave {
    /// Number of sessions that are meant.
    count: usize,
    /// True if the act was given.
    applied: bool,
    /// The sessions: those that a filter lets through are newest first, those that were named are in the order of their ids.
    items: Vec<One>,
}

/// A session of an act for many.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderGiven)]
struct One {
    /// The session.
    session: String,
    /// The fate of the act. It is missing if nothing was to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<Became>,
    /// The line that took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The reason why it has no effect, or none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// True if the same request was carried out before.
    #[serde(skip)]
    is_replay: bool,
}

/// The fates of an act in one of many sessions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OrderFate)]
enum Became {
    /// A line holds it.
    Taken,
    /// It waits in the inbox for a condition.
    Waits,
    /// It is in the inbox; the process that drives the session takes it.
    Queued,
    /// The same request put it into the inbox before.
    Known,
    /// The session refused it.
    Refused,
    /// It could not be given.
    Failed,
    /// The request took too long before it was its turn. Send the same again under the same key.
    Left,
}

impl std::convert::From<crate::act::Stands> for Became {
    fn from(stands: crate::act::Stands) -> Self {
        use crate::act::Stands;
        match stands {
            Stands::Taken => Self::Taken,
            Stands::Waits => Self::Waits,
            Stands::Queued => Self::Queued,
            Stands::Known => Self::Known,
        }
    }
}

impl Many {
    /// Returns the act.
    fn act(&self, by: By) -> Result<Act, Problem> {
        let wrong = |why: &str| Problem::new(Code::Body, why);
        if self.tool.is_some() && !matches!(self.act, Given::Hold | Given::Release) {
            return Err(wrong("`tool` belongs to `hold` and `release`"));
        }
        if self.state.is_some() != (self.act == Given::Edit) {
            return Err(wrong("`edit` has `state`, and no other act has it"));
        }
        if self.config.is_some() != (self.act == Given::Migrate) {
            return Err(wrong("`migrate` has `config`, and no other act has it"));
        }
        let of = |values: &Option<Map<String, Value>>| values.clone().unwrap_or_default();
        Ok(match self.act {
            Given::Cancel => Act::cancel(CancelWhat::Session, by, None),
            Given::Pause => Act::pause().by(by),
            Given::Resume => Act::resume().by(by),
            Given::Hold => Act::hold(self.tool.as_deref(), by),
            Given::Release => Act::release(self.tool.as_deref(), by),
            Given::Retry => Act::retry(None, by),
            Given::Edit => {
                let state = of(&self.state);
                Act::edit(state.iter().map(|(name, value)| (&**name, value)), by)
            }
            Given::Migrate => {
                let config = of(&self.config);
                Act::rebind(config.iter().map(|(name, value)| (&**name, value)), by)
            }
        })
    }
}

/// Gives an act to all sessions that a filter lets through, or to those that are named. Without `apply` it only says which they are.
///
/// An act that one session refuses is still given to the others. With an idempotency key, each session takes it once.
#[utoipa::path(
    post, path = "/v1/orders", tag = "orders", operation_id = "order_many", request_body = Many,
    params(("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request")),
    responses((status = 200, description = "The sessions, each with the fate of the act", body = Gave), Problems)
)]
async fn give(caller: Caller, asked: Asked, Body(many): Body<Many>) -> Result<Response, Problem> {
    caller.needs(Permission::Operate)?;
    let act = many.act(caller.by(many.role.as_deref())?)?;
    let found = match (&many.filter, &many.sessions) {
        (Some(filter), None) => let_through(&caller, filter).await?,
        (None, Some(ids)) => ids.iter().map(|id| id.as_str().into()).collect(),
        _ => {
            let why = "a request has either `where` or `sessions`";
            return Err(Problem::new(Code::Body, why));
        }
    };
    let count = found.len();
    if count > MOST {
        let why = format!("{count} sessions are meant, and a request is for at most {MOST}");
        let fewer = if many.sessions.is_some() {
            "name fewer"
        } else {
            "narrow the filter"
        };
        return Err(Problem::new(Code::TooLarge, why).help(fewer));
    }
    let until = caller.deadline();
    // A session changes while the others are given the act, so no line of it is expected.
    let asked = Asked {
        if_match: None,
        ..asked
    };
    let apply = many.apply;
    let config = many.config.as_ref();
    let is_named = many.sessions.is_some();
    let one = |id: SessionId| {
        let (caller, asked, act) = (&caller, &asked, act.clone());
        async move {
            let may = match config {
                Some(config) => caller.may_configure_session(&id, config.keys()).await,
                // An act finds out by itself whether its session is there.
                None if is_named && !apply => caller.session(&id).await.map(drop),
                None => Ok(()),
            };
            match may {
                Err(problem) => One::without(&id, &problem),
                Ok(()) if apply => given(caller, asked, &id, act, until).await,
                Ok(()) => One::new(&id, None),
            }
        }
    };
    let items: Vec<One> = stream::iter(found.into_iter().map(one))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let is_replay = !items.is_empty() && items.iter().all(|one| one.is_replay);
    let gave = Gave {
        count,
        applied: apply,
        items,
    };
    Ok(replayed(Json(gave).into_response(), is_replay))
}

/// Returns the sessions that a filter lets through, newest first.
async fn let_through(caller: &Caller, filter: &str) -> Result<Vec<SessionId>, Problem> {
    let in_body = |error| Problem::of_filter(Code::Body, error);
    let filter = Filter::parse(Some(filter)).map_err(in_body)?;
    let _place = caller.room().await?;
    let engine = caller.steersman.engine();
    let found = filter::select(engine, &filter, &SessionQuery::default()).await;
    let found = found.map_err(|error| match error {
        SelectError::Filter(error) => in_body(error),
        error @ SelectError::Engine(_) => error.into(),
    })?;
    Ok(found.into_iter().map(|info| info.id).collect())
}

impl One {
    fn new(session: &str, fate: Option<Became>) -> Self {
        Self {
            session: session.to_owned(),
            fate,
            line: None,
            why: None,
            is_replay: false,
        }
    }

    /// Makes a session that was not given the act. One that refuses, or is not there, will do so again.
    fn without(session: &str, problem: &Problem) -> Self {
        let refuses = [Code::Refused, Code::Session, Code::Permission];
        let is_refused = refuses.iter().any(|code| problem.code() == code.told().0);
        let fate = if is_refused {
            Became::Refused
        } else {
            Became::Failed
        };
        Self {
            why: Some(problem.sentence()),
            ..Self::new(session, Some(fate))
        }
    }
}

/// Gives an act to one of many sessions. An error is its fate, so that it does not hide the others.
async fn given(caller: &Caller, asked: &Asked, session: &str, act: Act, until: Instant) -> One {
    if Instant::now() >= until || caller.server.is_stopping() {
        return One::new(session, Some(Became::Left));
    }
    match caller.act(session, act, asked).await {
        Ok(receipt) => One {
            line: receipt.line,
            why: receipt.why,
            is_replay: receipt.is_replay,
            ..One::new(session, Some(receipt.fate.into()))
        },
        Err(problem) => One::without(session, &problem),
    }
}
