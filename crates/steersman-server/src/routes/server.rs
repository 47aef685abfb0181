//! The server itself.

use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use serde::Serialize;
use steersman::views;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(about))
}

/// The protocols that it speaks in addition to its own.
const PROTOCOLS: &[&str] = &["openai", "ag-ui", "mcp", "a2a"];

/// The server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerInfo)]
struct About {
    /// Its version.
    version: &'static str,
    /// Version of the JSON of all views. Additions do not count.
    views: u32,
    /// The protocols that it speaks in addition to its own.
    protocols: &'static [&'static str],
    /// Names of its definitions.
    definitions: Vec<String>,
    /// True if it drives the sessions of its store.
    driving: bool,
    /// Number of sessions that it drives now.
    driven: usize,
}

/// Says what the server is and does. Only an administrator of the tenant without a name may know it.
#[utoipa::path(
    get, path = "/v1/server", tag = "health", operation_id = "get_server",
    responses((status = 200, description = "The server", body = About), Problems)
)]
async fn about(caller: Caller) -> Result<Json<About>, Problem> {
    caller.needs(Permission::Admin)?;
    if !caller.token.scope.tenant.is_empty() || caller.token.scope.subject.is_some() {
        let why = "the server is shown to administrators of the tenant without a name";
        return Err(Problem::new(Code::Permission, why));
    }
    let server = &caller.server;
    let definitions = server.definitions();
    Ok(Json(About {
        version: env!("CARGO_PKG_VERSION"),
        views: views::VERSION,
        protocols: PROTOCOLS,
        definitions: definitions
            .iter()
            .map(|network| network.name().to_owned())
            .collect(),
        driving: server.is_driving(),
        driven: server.steersman().engine().all_driven().len(),
    }))
}
