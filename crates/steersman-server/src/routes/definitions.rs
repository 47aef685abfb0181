//! The definitions whose sessions may be started.

use super::views::svg_of;
use crate::ask::{At, Body};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steersman::machine::network::AgentDef;
use steersman::machine::values::types::{Parameters, schema_of_fields};
use steersman::views::graph::{self, Layout, svg};
use steersman::{Diagnostic, Network};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(drawn))
        .routes(routes!(picture))
        .routes(routes!(check))
}

/// Lists the definitions that the token may start, with the parameters of their entries as JSON Schema.
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
    let entries = checked.entry.iter().map(|name| {
        let agent = checked.agent(name);
        json!({
            "name": name,
            "description": agent.description,
            "parameters": parameters(agent),
        })
    });
    json!({
        "name": network.name(),
        "description": checked.description,
        "digest": checked.digest.to_string(),
        "entry": checked.entry,
        "entries": entries.collect::<Vec<_>>(),
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

/// Returns the picture of a definition as SVG.
#[utoipa::path(
    get, path = "/v1/definitions/{definition}/graph.svg", tag = "definitions", operation_id = "draw_definition",
    params(("definition" = String, Path, description = "The name of the definition")),
    responses((status = 200, description = "The picture", content_type = "image/svg+xml", body = String), Problems)
)]
async fn picture(caller: Caller, At(name): At<String>) -> Result<Response, Problem> {
    caller.needs(Permission::Read)?;
    let network = caller.definition(&name)?;
    Ok(svg_of(svg::text(&graph::draw(network.checked()).graph)))
}

/// A definition to check.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = DefinitionText)]
struct Check {
    /// The text of the definition.
    text: String,
    /// The texts of the files that it names, by their paths: prompts, schemas, imports. Files of the server are not read.
    files: BTreeMap<String, String>,
}

/// The faults of a definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DefinitionFaults)]
struct Checked {
    /// True if it has no errors.
    ok: bool,
    /// The name of the network, if it has no errors.
    network: Option<String>,
    /// Errors, warnings and notes.
    #[schema(value_type = Vec<Object>)]
    diagnostics: Vec<Value>,
    /// Faults of what has to be registered in Rust, such as a tool that this text alone does not have.
    in_rust: Vec<String>,
}

/// Checks the text of a definition: returns its errors and warnings. Nothing is run, and nothing is kept.
#[utoipa::path(
    post, path = "/v1/check", tag = "definitions", operation_id = "check_definition", request_body = Check,
    responses((status = 200, description = "Its faults", body = Checked), Problems)
)]
async fn check(caller: Caller, Body(check): Body<Check>) -> Result<Json<Checked>, Problem> {
    caller.needs(Permission::Read)?;
    // A large definition takes its time, in which other requests are answered.
    let place = caller.server.checking().acquire_owned().await;
    let checked = tokio::task::spawn_blocking(move || {
        let _place = place;
        checked(check)
    })
    .await;
    checked
        .map(Json)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

fn checked(check: Check) -> Checked {
    let mut builder = Network::from_yaml(check.text);
    for (path, text) in check.files {
        builder = builder.file(&path, text);
    }
    match builder.build() {
        Ok(network) => Checked {
            ok: true,
            network: Some(network.name().to_owned()),
            diagnostics: network.warnings().iter().map(Diagnostic::json).collect(),
            in_rust: Vec::new(),
        },
        Err(error) => Checked {
            ok: !error.diagnostics.iter().any(Diagnostic::is_error),
            network: None,
            diagnostics: error.diagnostics.iter().map(Diagnostic::json).collect(),
            in_rust: error.in_rust,
        },
    }
}
