//! The definitions whose sessions may be started.

use crate::ask::At;
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::Problem;
use crate::{Permission, Server};
use axum::Json;
use serde_json::{Value, json};
use steersman::Network;
use steersman::machine::network::AgentDef;
use steersman::machine::values::types::{Parameters, schema_of_fields};
use steersman::views::graph::{self, Layout};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(drawn))
}

/// Lists the definitions that the token may start.
#[utoipa::path(
    get, path = "/v1/definitions", tag = "definitions",
    responses((status = 200, description = "`items`", body = Value), Problems)
)]
async fn list(caller: Caller) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let items: Vec<Value> = caller.definitions().iter().map(row).collect();
    Ok(Json(json!({ "items": items })))
}

fn row(network: &Network) -> Value {
    let checked = network.checked();
    json!({
        "name": network.name(),
        "description": checked.description,
        "digest": checked.digest.to_string(),
        "entry": checked.entry,
    })
}

/// Returns a definition: the parameters of its entries and the fields of its events as JSON Schema, and its people.
#[utoipa::path(
    get, path = "/v1/definitions/{definition}", tag = "definitions",
    params(("definition" = String, Path, description = "The name of the definition")),
    responses((status = 200, description = "The definition", body = Value), Problems)
)]
async fn one(caller: Caller, At(name): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let network = caller.definition(&name)?;
    let checked = network.checked();
    let mut view = row(&network);
    let entries = checked.entry.iter().map(|name| {
        let agent = checked.agent(name);
        json!({
            "name": name,
            "description": agent.description,
            "parameters": parameters(agent),
        })
    });
    view["entries"] = entries.collect();
    let events = checked.events.iter().map(|(name, event)| {
        json!({ "name": name, "fields": schema_of_fields(&event.fields), "starts": event.start.is_some() })
    });
    view["events"] = events.collect();
    view["people"] = checked
        .people
        .keys()
        .map(|name| Value::from(&**name))
        .collect();
    Ok(Json(view))
}

/// Returns the JSON Schema of the parameters of an agent.
pub(super) fn parameters(agent: &AgentDef) -> Value {
    match &agent.parameters {
        Parameters::Fields(fields) => schema_of_fields(fields),
        Parameters::Schema(text) => serde_json::from_str(text).unwrap_or_default(),
    }
}

/// Returns the graph of a definition, and its shapes in coordinates.
#[utoipa::path(
    get, path = "/v1/definitions/{definition}/graph", operation_id = "graph", tag = "definitions",
    params(("definition" = String, Path, description = "The name of the definition")),
    responses((status = 200, description = "The graph", body = Value), Problems)
)]
async fn drawn(caller: Caller, At(name): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let network = caller.definition(&name)?;
    let graph = graph::draw(network.checked()).graph;
    let mut view = serde_json::to_value(&graph).unwrap_or_default();
    view["shapes"] = serde_json::to_value(Layout::of(&graph).shapes(0.0, 0.0)).unwrap_or_default();
    Ok(Json(view))
}
