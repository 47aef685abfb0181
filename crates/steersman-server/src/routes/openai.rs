//! The protocols of OpenAI: the definitions as models, chat completions, responses.

mod chat;
mod responses;
mod talk;

use crate::ask::At;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::{Limits, Permission, Server};
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steersman::Network;
use steersman::machine::stored::ids::Name;
use talk::{Message, Role};
use utoipa::IntoResponses;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ContentBuilder, ObjectBuilder, RefOr, Response, ResponseBuilder, Schema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes(limits: &Limits) -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(chat::routes())
        .merge(responses::routes())
        .layer(DefaultBodyLimit::max(limits.files))
        .routes(routes!(models))
        .routes(routes!(model))
}

/// The errors that every route may answer: the error object of OpenAI's APIs.
struct Failures;

impl IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let text = |about: &str| {
            let text = ObjectBuilder::new().schema_type(Type::String);
            text.description(Some(about)).build()
        };
        let error = ObjectBuilder::new()
            .property("message", text("The fault, and what to do"))
            .property(
                "type",
                text("The kind of error, such as `invalid_request_error`"),
            )
            .property("code", text("The code that programs branch on"))
            .required("message")
            .required("type")
            .required("code");
        let whole = ObjectBuilder::new()
            .property("error", error)
            .required("error");
        let schema: Schema = whole.build().into();
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description("The reason why the request was not carried out")
            .content("application/json", content);
        BTreeMap::from([("default".to_owned(), response.build().into())])
    }
}

/// Lists the definitions that the token may start, as models: `DEFINITION`, and `DEFINITION/ENTRY` for each entry if there are several.
#[utoipa::path(
    get, path = "/openai/v1/models", tag = "openai",
    responses((status = 200, description = "`data`", body = Value), Failures)
)]
async fn models(caller: Caller) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let all = caller.definitions();
    let data = all.iter().flat_map(|network| {
        let name = network.name();
        let entries = &network.checked().entry;
        let entries = entries.iter().filter(|_| entries.len() > 1);
        let each = entries.map(move |entry| format!("{name}/{entry}"));
        std::iter::once(name.to_owned()).chain(each)
    });
    let data: Vec<Value> = data.map(|id| row(&id)).collect();
    Ok(Json(json!({ "object": "list", "data": data })))
}

/// Returns one of the models.
#[utoipa::path(
    get, path = "/openai/v1/models/{model}", tag = "openai",
    params(("model" = String, Path, description = "The id of the model")),
    responses((status = 200, description = "The model", body = Value), Failures)
)]
async fn model(caller: Caller, At(id): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    named(&caller, &id)?;
    Ok(Json(row(&id)))
}

fn row(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 0, "owned_by": "steersman" })
}

/// Returns the definition that a model names, and the entry if it names one.
fn named(caller: &Caller, model: &str) -> Result<(Network, Option<Name>), Problem> {
    let (name, entry) = match model.split_once('/') {
        Some((name, entry)) => (name, Some(entry)),
        None => (model, None),
    };
    let network = caller.definition(name).map_err(|_| no_model(model))?;
    let Some(entry) = entry else {
        return Ok((network, None));
    };
    let mut entries = network.checked().entry.iter();
    let Some(entry) = entries.find(|known| ***known == *entry).cloned() else {
        return Err(no_model(model));
    };
    Ok((network, Some(entry)))
}

/// Returns the answer about a model that is not served, or that the token may not start.
fn no_model(model: &str) -> Problem {
    let shown: String = model
        .chars()
        .take(80)
        .flat_map(char::escape_debug)
        .collect();
    let why = format!(
        "there is no model `{shown}`; a model is a definition, or a definition and an entry"
    );
    Problem::new(Code::Definition, why).help("GET /openai/v1/models lists them")
}

/// Returns true if the client says that it sends a request again. The official clients count it.
fn is_retry(headers: &HeaderMap) -> bool {
    let count = headers.get("x-stainless-retry-count");
    count.is_some_and(|count| count.as_bytes() != b"0")
}

/// Reads the role of a message; `None` for that of a prompt.
fn role(role: &Value) -> Result<Option<Role>, String> {
    match role.as_str() {
        Some("user") => Ok(Some(Role::User)),
        Some("assistant") => Ok(Some(Role::Assistant)),
        Some("tool") => Ok(Some(Role::Tool)),
        Some("system" | "developer") => Ok(None),
        _ => Err("`role` is `user`, `assistant` or `tool`".to_owned()),
    }
}

/// Refuses a prompt that says something.
fn prompt(text: &str) -> Result<Option<Message>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    Err("prompts are those of the definition: leave out `system` and `developer`".to_owned())
}
