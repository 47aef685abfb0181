//! Changes of a session that are no orders: edit state, bind other values of `config`, erase.

use crate::act::Receipt;
use crate::ask::{Asked, At, Body, id};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use steersman::machine::stored::ids::{Line, Name};
use steersman::{Act, ErasureError, RebindingError, What};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(edit))
        .routes(routes!(migrate))
        .routes(routes!(erase))
}

/// Entries of state to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StateEdit)]
struct Edit {
    /// The entries with their new values. `null` unsets one.
    #[schema(value_type = Object)]
    state: Map<String, Value>,
    /// The role in which they are set. The definition may name the people who may.
    #[serde(rename = "as", default)]
    role: Option<String>,
}

/// Sets entries of state: gives a permission, corrects a value. The log says who did it.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/edit", tag = "sessions", operation_id = "edit_state", request_body = Edit,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn edit(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(edit): Body<Edit>,
) -> Result<Receipt, Problem> {
    caller.needs(Permission::Operate)?;
    let by = caller.by(edit.role.as_deref())?;
    if edit.state.is_empty() {
        return Err(Problem::new(Code::Body, "`state` names no entry"));
    }
    let state = edit.state.iter().map(|(name, value)| (&**name, value));
    caller.act(&session, Act::edit(state, by), &asked).await
}

/// Other values of `config` to bind.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ConfigChanges)]
struct Migrate {
    /// The values.
    #[schema(value_type = Object)]
    config: BTreeMap<String, Value>,
    /// The role in which it is done.
    #[serde(rename = "as", default)]
    role: Option<String>,
}

/// Values that are bound.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigChanged)]
struct Migrated {
    /// Each value before and after.
    changes: Vec<Change>,
    /// The fate of the wish.
    receipt: Receipt,
}

/// A value of `config` before and after.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigChange)]
struct Change {
    /// The name of the value.
    name: String,
    /// The value to which the session was bound.
    old: Value,
    /// The value to which it is bound now.
    new: Value,
}

/// Binds a session to other values of `config`. Nothing of the session may be open.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/migrate", tag = "sessions", operation_id = "migrate_session", request_body = Migrate,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The old and the new values, and the receipt", body = Migrated), Problems)
)]
async fn migrate(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(migrate): Body<Migrate>,
) -> Result<(StatusCode, Json<Migrated>), Problem> {
    caller.needs(Permission::Operate)?;
    let by = caller.by(migrate.role.as_deref())?;
    let info = caller.session(&session).await?;
    if migrate.config.is_empty() {
        return Err(Problem::new(Code::Body, "`config` names no value"));
    }
    let names = migrate.config.keys();
    caller.may_configure_session(&info.id, names).await?;
    let config = migrate.config.into_iter();
    let config: BTreeMap<Name, Value> = config.map(|(name, value)| (name.into(), value)).collect();
    let changes = caller.steersman.rebindings(&info.id, &config).await;
    let changes = changes.map_err(|error| match error {
        RebindingError::Session(error) => error.into(),
        RebindingError::Misfit { why, names } => {
            let problem = Problem::new(Code::Refused, why.to_string());
            if names.is_empty() {
                problem.help("its definition binds no values of config")
            } else {
                problem.help(format!("its definition binds: {}", names.join(", ")))
            }
        }
    })?;
    let act = Act::rebind(config.iter().map(|(name, value)| (&**name, value)), by);
    let receipt = caller.act(&session, act, &asked).await?;
    let known = caller.steersman.engine().secrets_of(&info.id).await?;
    let changes = changes.into_iter().map(|change| {
        Ok(Change {
            name: change.name.to_string(),
            old: caller.shown(&change.old, &known)?,
            new: caller.shown(&change.new, &known)?,
        })
    });
    let changes = changes.collect::<Result<_, Problem>>()?;
    Ok((StatusCode::ACCEPTED, Json(Migrated { changes, receipt })))
}

/// The part of a session that is to be erased.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Erasure)]
struct Erase {
    /// The line of which alone all texts are erased.
    line: Option<u64>,
    /// The effect of which alone arguments and result are erased.
    effect: Option<String>,
    /// True to forget also what it saved to memory. The token needs the permission `memory`.
    memory: bool,
    /// True to leave its reruns as they are. They hold the same texts.
    alone: bool,
    /// True to do it. Otherwise the answer says what would be erased.
    apply: bool,
}

/// The result of an erasure, or of one that is not carried out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Erased)]
struct Erased {
    /// The session.
    session: String,
    /// True if it is erased.
    applied: bool,
    /// Number of texts that are tombstones.
    texts: u64,
    /// Number of contents of artifacts that go with it. They are not shown any more, and leave the store with the same `erase` of the
    /// program while no other process has the store open.
    contents: usize,
    /// Number of memories that these sessions saved.
    memories: usize,
    /// True if these memories are forgotten, or would be.
    forgets: bool,
    /// The reruns that are erased with it.
    reruns: Vec<String>,
    /// The session that it repeats, which holds the same texts and stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// True if every line that is left verifies.
    #[serde(skip_serializing_if = "Option::is_none")]
    verifies: Option<bool>,
}

impl std::convert::From<ErasureError> for Problem {
    fn from(error: ErasureError) -> Self {
        let open = "let it come to its end, or cancel it first";
        match error {
            ErasureError::Session(error) => Self::from(error).help(open),
            ErasureError::Rerun { session, error } => {
                let problem = Self::from(error).about(&format!("its rerun {session}"));
                problem.help("`alone` leaves its reruns as they are")
            }
            ErasureError::Reruns(_) => Self::new(Code::Refused, error.to_string()).help(
                "erase there what is to go, or the whole session; `alone` leaves the reruns as they are",
            ),
        }
    }
}

/// Erases what was said in a session, at a line or by an effect. All else still verifies. Without `apply` it only says what would go.
///
/// Nothing of the session may be open. A repetition finds nothing that is left to erase.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/erase", tag = "sessions", operation_id = "erase_session", request_body = Erase,
    params(("session" = String, Path, description = "The id of the session")),
    responses((status = 200, description = "What is erased", body = Erased), Problems)
)]
async fn erase(
    caller: Caller,
    At(session): At<String>,
    Body(erase): Body<Erase>,
) -> Result<Json<Erased>, Problem> {
    caller.needs(Permission::Operate)?;
    if erase.memory {
        caller.needs(Permission::Memory)?;
    }
    let info = caller.session(&session).await?;
    let what = match (erase.line, &erase.effect) {
        (None, None) => What::All,
        (Some(line), None) => What::Line(Line(line)),
        (None, Some(effect)) => What::Effect(id(effect)?),
        (Some(_), Some(_)) => {
            return Err(Problem::new(
                Code::Body,
                "name a `line` or an `effect`, not both",
            ));
        }
    };
    let steersman = &caller.steersman;
    if let What::Line(line) = what
        && steersman
            .engine()
            .store()
            .row(&info.id, line)
            .await?
            .is_none()
    {
        let why = format!("the session has no line {line}");
        return Err(Problem::new(Code::Line, why));
    }
    if let Some(driven) = steersman.engine().driven(&info.id).filter(|_| erase.apply) {
        driven.stop().await;
    }
    let erasure = steersman.erasure(&info.id, what, erase.alone).await?;
    let mut view = Erased {
        session,
        applied: erase.apply,
        texts: erasure.erased.texts,
        contents: erasure.erased.contents.len(),
        memories: erasure.saved.len(),
        forgets: erase.memory,
        reruns: erasure.with.iter().map(ToString::to_string).collect(),
        origin: erasure.origin.as_ref().map(ToString::to_string),
        verifies: None,
    };
    if erase.apply {
        let erased = steersman.carry_out(&erasure).await?;
        view.texts = erased.texts;
        view.contents = erased.contents.len();
        let mut verifies = true;
        for id in erasure.with.iter().chain([&info.id]) {
            verifies &= steersman.verify(id).await?.damaged.is_empty();
        }
        view.verifies = Some(verifies);
        if erase.memory {
            let saved = erasure.saved.iter().map(|memory| memory.id).collect();
            steersman.forget_memories(saved).await?;
        }
    }
    Ok(Json(view))
}
