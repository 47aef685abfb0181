//! Orders: cancel, pause, resume, hold, release, retry.

use super::sessions::branch_of;
use crate::act::Receipt;
use crate::ask::{Asked, At, Body, id};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use serde::Deserialize;
use steersman::{Act, By, CancelWhat};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(cancel))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(retry))
}

/// The work to cancel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum What {
    /// Everything that acts on the current branch.
    Turn,
    /// A call, or a model call itself.
    Call,
    /// An agent and everything that it started.
    Agent,
    /// Everything that acts on a branch.
    Branch,
    /// Everything that acts on any branch.
    Session,
}

/// A wish to cancel.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// The work to cancel.
    what: What,
    /// The id of the call or agent, or the label or id of the branch.
    #[serde(default)]
    id: Option<String>,
    /// The role in which it is cancelled.
    #[serde(rename = "as", default)]
    role: Option<String>,
}

/// Cancels a turn, a call, an agent, a branch or, with the permission `operate`, a whole session.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/cancel", tag = "orders", request_body = Cancel,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn cancel(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(cancel): Body<Cancel>,
) -> Result<Receipt, Problem> {
    caller.needs(match cancel.what {
        What::Session => Permission::Operate,
        _ => Permission::Write,
    })?;
    let by = caller.by(cancel.role.as_deref())?;
    let named = || {
        let id = cancel.id.as_deref();
        id.ok_or_else(|| Problem::new(Code::Body, "`id` is missing: what is to be cancelled?"))
    };
    let (what, branch) = match cancel.what {
        What::Turn => (CancelWhat::Branch, None),
        What::Call => (CancelWhat::Effect(id(named()?)?), None),
        What::Agent => (CancelWhat::Agent(id(named()?)?), None),
        What::Branch => {
            let branch = branch_of(&caller, &session, named()?).await?;
            (CancelWhat::Branch, Some(branch))
        }
        What::Session => (CancelWhat::Session, None),
    };
    caller
        .act(&session, Act::cancel(what, by, branch), &asked)
        .await
}

/// The role in which an order is given.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Order {
    /// The role in which it is given.
    #[serde(rename = "as")]
    role: Option<String>,
}

/// An order about a tool.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct OfTool {
    /// The tool. Without one all tools that may change the world are meant.
    tool: Option<String>,
    /// The role in which it is given.
    #[serde(rename = "as")]
    role: Option<String>,
}

/// An order to try again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Retry {
    /// The effect. Without one everything that waits for its next attempt is meant.
    effect: Option<String>,
    /// The role in which it is given.
    #[serde(rename = "as")]
    role: Option<String>,
}

/// Carries out an order.
async fn order(
    caller: &Caller,
    asked: &Asked,
    session: &str,
    role: Option<&str>,
    act: impl FnOnce(By) -> Result<Act, Problem>,
) -> Result<Receipt, Problem> {
    caller.needs(Permission::Operate)?;
    let by = caller.by(role)?;
    caller.act(session, act(by)?, asked).await
}

/// Pauses a session: nothing new begins until it is resumed.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/pause", tag = "orders", request_body = Order,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The order is on disk", body = Receipt), Problems)
)]
async fn pause(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(body): Body<Order>,
) -> Result<Receipt, Problem> {
    let role = body.role.as_deref();
    order(
        &caller,
        &asked,
        &session,
        role,
        |by| Ok(Act::pause().by(by)),
    )
    .await
}

/// Ends a pause.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/resume", tag = "orders", request_body = Order,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The order is on disk", body = Receipt), Problems)
)]
async fn resume(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(body): Body<Order>,
) -> Result<Receipt, Problem> {
    let role = body.role.as_deref();
    order(&caller, &asked, &session, role, |by| {
        Ok(Act::resume().by(by))
    })
    .await
}

/// Keeps effects of a tool from beginning until they are released.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/hold", tag = "orders", request_body = OfTool,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The order is on disk", body = Receipt), Problems)
)]
async fn hold(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(body): Body<OfTool>,
) -> Result<Receipt, Problem> {
    let (role, tool) = (body.role.as_deref(), body.tool.as_deref());
    order(&caller, &asked, &session, role, |by| {
        Ok(Act::hold(tool, by))
    })
    .await
}

/// Takes a hold back.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/release", tag = "orders", request_body = OfTool,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The order is on disk", body = Receipt), Problems)
)]
async fn release(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(body): Body<OfTool>,
) -> Result<Receipt, Problem> {
    let (role, tool) = (body.role.as_deref(), body.tool.as_deref());
    order(&caller, &asked, &session, role, |by| {
        Ok(Act::release(tool, by))
    })
    .await
}

/// Tries again what failed.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/retry", tag = "orders", request_body = Retry,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The order is on disk", body = Receipt), Problems)
)]
async fn retry(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(body): Body<Retry>,
) -> Result<Receipt, Problem> {
    order(&caller, &asked, &session, body.role.as_deref(), |by| {
        let effect = body.effect.as_deref().map(id).transpose()?;
        Ok(Act::retry(effect, by))
    })
    .await
}
