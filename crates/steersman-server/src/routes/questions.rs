//! Questions to people: list and decide.

use super::sessions::rows;
use crate::act::Receipt;
use crate::ask::{Asked, At, Body, Params, question};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::schemas::{QuestionList, Turn};
use crate::{Permission, Server};
use axum::Json;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use steersman::views::elsewhere::beside;
use steersman::views::list::PendingRow;
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::views::turn::Question;
use steersman::{Act, By, PendingId, Resolution, SessionInfo, SessionQuery};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(of_session))
        .routes(routes!(approve))
        .routes(routes!(reject))
        .routes(routes!(answer))
        .routes(routes!(resolve))
}

/// Which questions a list has.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Which {
    /// A role that may decide.
    role: Option<String>,
    /// A kind: `approval`, `question`, `input`, `doubt`, ...
    kind: Option<String>,
    /// The name of the definition.
    definition: Option<String>,
    /// The most questions, at most 200.
    limit: Option<usize>,
}

impl Which {
    fn wants(&self, row: &PendingRow) -> bool {
        let role = self.role.as_deref();
        let kind = self.kind.as_deref();
        role.is_none_or(|role| row.roles.iter().any(|own| **own == *role))
            && kind.is_none_or(|kind| row.kind.word() == kind)
    }
}

/// Lists what waits for people, events and times, in all sessions that the token sees, soonest due first.
#[utoipa::path(
    get, path = "/v1/questions", tag = "questions", params(Which),
    responses((status = 200, description = "`items`", body = QuestionList), Problems)
)]
async fn list(caller: Caller, Params(which): Params<Which>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let most = rows(which.limit)?;
    let query = SessionQuery {
        network: which.definition.as_deref().map(Into::into),
        status: vec!["waits".into(), "doubt".into()],
        ..SessionQuery::default()
    };
    let _place = caller.room().await?;
    let mut found = Vec::new();
    for info in caller.steersman.sessions(&query).await? {
        let pending = match steersman::runtime::pending::read(&info.state.waits) {
            Some(pending) => pending.into_iter().map(Question::from).collect(),
            None => caller.steersman.pending(&info.id).await?,
        };
        let rows = pending
            .iter()
            .map(|asked| PendingRow::from(asked.pending()));
        let rows = rows.filter(|row| which.wants(row));
        found.extend(rows.map(|row| (info.clone(), row)));
    }
    found.sort_by_key(|(_, row)| (row.due.map_or(i64::MAX, |due| due.0), row.since.0));
    found.truncate(most);
    let mut items = Vec::with_capacity(found.len());
    for (info, row) in &found {
        items.push(shown(&caller, info, row).await?);
    }
    Ok(Json(json!({ "items": items })))
}

async fn shown(caller: &Caller, info: &SessionInfo, row: &PendingRow) -> Result<Value, Problem> {
    let mut row = serde_json::to_value(row).unwrap_or_default();
    if !caller.may(Permission::Context) {
        let known = caller.steersman.engine().secrets_of(&info.id).await?;
        known.mask(&mut row);
    }
    row["session"] = json!(info.id);
    row["network"] = json!(info.network);
    Ok(row)
}

/// Lists what a session waits for, on all branches.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/questions", tag = "questions",
    params(("session" = String, Path, description = "The id of the session")),
    responses((status = 200, description = "`items`", body = QuestionList), Problems)
)]
async fn of_session(caller: Caller, At(session): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let info = caller.session(&session).await?;
    let mut items = Vec::new();
    let asked = caller.steersman.pending(&info.id).await?;
    let seen = caller.steersman.inspect(&info.id).await?;
    let is_beside = |asked: &Question| beside(&seen.ledger, asked.pending()).next().is_some();
    let log = if asked.iter().any(is_beside) {
        let reader = Stored::plain(caller.steersman.engine(), &info.id);
        Some(Log::read(&reader).await?)
    } else {
        None
    };
    for asked in asked {
        let row = match &log {
            Some(log) => PendingRow::of(log, &seen, asked.pending()),
            None => PendingRow::from(asked.pending()),
        };
        items.push(shown(&caller, &info, &row).await?);
    }
    Ok(Json(json!({ "items": items })))
}

/// An approval.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Approve {
    /// The role in which it is decided.
    #[serde(rename = "as")]
    role: Option<String>,
    /// Arguments that replace those of the call, as far as the definition allows.
    #[schema(value_type = Object)]
    args: Option<Value>,
}

/// Allows a held effect to run once, with exactly its arguments.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/questions/{question}/approve", tag = "questions", request_body = Approve,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("question" = String, Path, description = "The id of the question"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 202, description = "The decision is on disk", body = Receipt),
        (status = 200, description = "The state in which the session settled", body = Turn),
        Problems,
    )
)]
async fn approve(
    caller: Caller,
    asked: Asked,
    At((session, question)): At<(String, String)>,
    Body(approve): Body<Approve>,
) -> Result<Response, Problem> {
    decide(
        &caller,
        &asked,
        &session,
        &question,
        approve.role.as_deref(),
        |of, by| {
            Ok(match &approve.args {
                Some(args) => Act::approve_edited(of, args, by),
                None => Act::approve(of, by),
            })
        },
    )
    .await
}

/// A rejection.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Reject {
    /// The role in which it is decided.
    #[serde(rename = "as")]
    role: Option<String>,
    /// The reason, which the model reads.
    reason: Option<String>,
}

/// Refuses a held effect.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/questions/{question}/reject", tag = "questions", request_body = Reject,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("question" = String, Path, description = "The id of the question"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 202, description = "The decision is on disk", body = Receipt),
        (status = 200, description = "The state in which the session settled", body = Turn),
        Problems,
    )
)]
async fn reject(
    caller: Caller,
    asked: Asked,
    At((session, question)): At<(String, String)>,
    Body(reject): Body<Reject>,
) -> Result<Response, Problem> {
    decide(
        &caller,
        &asked,
        &session,
        &question,
        reject.role.as_deref(),
        |of, by| Ok(Act::reject(of, reject.reason.as_deref(), by)),
    )
    .await
}

/// An answer.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    /// The role in which it is answered.
    #[serde(rename = "as")]
    role: Option<String>,
    /// The text. Where a secret is asked for, it is sealed before it is stored.
    text: Option<String>,
    /// One of the options of the question.
    option: Option<String>,
}

/// Answers a question, or gives a secret that was asked for.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/questions/{question}/answer", tag = "questions", request_body = Answer,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("question" = String, Path, description = "The id of the question"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 202, description = "The answer is on disk", body = Receipt),
        (status = 200, description = "The state in which the session settled", body = Turn),
        Problems,
    )
)]
async fn answer(
    caller: Caller,
    asked: Asked,
    At((session, question)): At<(String, String)>,
    Body(answer): Body<Answer>,
) -> Result<Response, Problem> {
    decide(
        &caller,
        &asked,
        &session,
        &question,
        answer.role.as_deref(),
        |of, by| match (&answer.text, &answer.option) {
            (Some(text), None) | (None, Some(text)) => Ok(Act::answer(of, text, by)),
            _ => Err(Problem::new(
                Code::Body,
                "an answer has either `text` or `option`",
            )),
        },
    )
    .await
}

/// The fate of an effect in doubt.
#[derive(Copy, Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// It happened.
    Done,
    /// It did not happen, and may run again.
    NotPerformed,
    /// Nobody will find out.
    #[default]
    Fail,
}

impl How {
    /// Returns it with the result of an effect that happened.
    pub(super) fn with(self, result: &Value) -> Resolution {
        match self {
            Self::Done => Resolution::Done {
                result: result.to_string(),
            },
            Self::NotPerformed => Resolution::NotPerformed,
            Self::Fail => Resolution::Fail,
        }
    }
}

/// A person's statement about an effect in doubt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Resolve {
    /// The role in which it is decided.
    #[serde(rename = "as", default)]
    role: Option<String>,
    /// The fate of the effect.
    how: How,
    /// The result, if it happened, in the form that the tool would have returned.
    #[serde(default)]
    result: Value,
}

/// Says whether an effect in doubt happened.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/questions/{question}/resolve", tag = "questions", request_body = Resolve,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("question" = String, Path, description = "The id of the question"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 202, description = "The statement is on disk", body = Receipt),
        (status = 200, description = "The state in which the session settled", body = Turn),
        Problems,
    )
)]
async fn resolve(
    caller: Caller,
    asked: Asked,
    At((session, question)): At<(String, String)>,
    Body(resolve): Body<Resolve>,
) -> Result<Response, Problem> {
    decide(
        &caller,
        &asked,
        &session,
        &question,
        resolve.role.as_deref(),
        |of, by| {
            let how = resolve.how.with(&resolve.result);
            Ok(Act::resolve(of, how, by))
        },
    )
    .await
}

/// Carries out a decision. The answer is a receipt; with `Prefer: wait=N` it is the state in which the session settles after it. The role is
/// checked before the store is asked.
async fn decide(
    caller: &Caller,
    asked: &Asked,
    session: &str,
    id: &str,
    role: Option<&str>,
    act: impl FnOnce(PendingId, By) -> Result<Act, Problem>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Decide)?;
    if asked.wait.is_some() {
        // The answer tells what the session said.
        caller.needs(Permission::Read)?;
    }
    let by = caller.by(role)?;
    let of = question(id)?;
    let info = caller.session(session).await?;
    let act = act(of, by)?;
    // The id of an effect alone names its open question. A repetition finds the decision that was made, not the question.
    let pending = caller.steersman.pending(&info.id).await?;
    let open = pending.iter().find(|open| match of.hold {
        Some(_) => open.id() == of,
        None => open.id().effect == of.effect,
    });
    match (open, &asked.key) {
        (Some(open), _) if open.id() != of => {
            let full = open.id();
            Err(
                Problem::new(Code::Question, format!("the question is `{full}`"))
                    .help("name it with its line, so that nothing is decided that you did not see"),
            )
        }
        (None, None) => Err(Problem::new(
            Code::Question,
            format!("the session does not ask `{of}`: it was decided, is over, or never was"),
        )
        .help("GET /v1/sessions/{session}/questions lists what is open")),
        _ => {
            let receipt = caller.act(&info.id, act, asked).await?;
            caller.answer(receipt, asked).await
        }
    }
}
