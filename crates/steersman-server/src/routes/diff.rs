//! Differences between two sessions or branches.

use super::sessions::branch_of;
use crate::ask::{Params, wrong};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::Problem;
use crate::{Permission, Server};
use axum::Json;
use serde::Deserialize;
use serde_json::Value;
use steersman::machine::stored::ids::Id;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(diff))
}

/// Two sides to compare.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Sides {
    /// A session, or a branch of it by label or id: `SESSION` or `SESSION:BRANCH`.
    a: String,
    /// Another one, or another branch of the same.
    b: String,
}

/// Says how two sessions or branches differ: what they came to, where they went apart, what they did.
#[utoipa::path(
    get, path = "/v1/diff", tag = "views", operation_id = "diff_sessions", params(Sides),
    responses((status = 200, description = "The differences", body = Value), Problems)
)]
async fn diff(caller: Caller, Params(sides): Params<Sides>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let a = side(&caller, "a", &sides.a).await?;
    let b = side(&caller, "b", &sides.b).await?;
    let found = caller.steersman.diff((&a.0, a.1), (&b.0, b.1)).await?;
    Ok(Json(found.to_json()))
}

/// Returns the session and the branch of a side.
async fn side(caller: &Caller, name: &str, text: &str) -> Result<(String, Option<Id>), Problem> {
    let (session, branch) = match text.split_once(':') {
        Some((session, branch)) => (session, Some(branch)),
        None => (text, None),
    };
    if session.is_empty() {
        return Err(wrong(name, "`SESSION` or `SESSION:BRANCH`"));
    }
    let info = caller.session(session).await?;
    let branch = match branch {
        Some(branch) => Some(branch_of(caller, session, branch).await?),
        None => None,
    };
    Ok((info.id.to_string(), branch))
}
