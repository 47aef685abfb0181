//! Health: the server lives, and is ready. These routes need no token.

use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Server, openapi};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::time::Duration;
use steersman::SessionQuery;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Time in which a store that can be used answers.
const STORE: Duration = Duration::from_secs(5);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(document))
}

/// Says that the process answers.
#[utoipa::path(
    get, path = "/livez", tag = "health", security(()),
    responses((status = 200, description = "It lives", body = Value))
)]
async fn livez() -> Json<Value> {
    Json(json!({ "status": "lives" }))
}

/// Says whether the server can do its work: it drives the store, the store answers, and it does not stop.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "It is ready", body = Value), Problems)
)]
async fn readyz(State(server): State<Server>) -> Result<Json<Value>, Problem> {
    if server.is_stopping() {
        return Err(Problem::new(Code::Stopping, "the server stops"));
    }
    if !server.is_driving() {
        return Err(Problem::new(
            Code::Store,
            "the server does not drive the sessions of its store",
        ));
    }
    let query = SessionQuery {
        limit: Some(1),
        ..SessionQuery::default()
    };
    let looked = timeout(STORE, server.steersman().sessions(&query)).await;
    looked.map_err(|_| Problem::new(Code::Store, "the store does not answer"))??;
    Ok(Json(json!({ "status": "ready" })))
}

/// Returns this document.
#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "health", security(()),
    responses((status = 200, description = "The OpenAPI document of the server", body = Value))
)]
async fn document() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        openapi::text(),
    )
}
