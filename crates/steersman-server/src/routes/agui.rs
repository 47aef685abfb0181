//! AG-UI 1.0: runs of threads. A thread is a session, and a run is what follows one request until the session settles.

mod begin;
mod capabilities;
mod running;

use crate::ask::{Asked, At, Body};
use crate::caller::Caller;
use crate::openapi::{Events, Problems};
use crate::problem::{Code, Problem};
use crate::stream::{streamed, with_session};
use crate::{Limits, Permission, Server};
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::response::Response;
use axum::response::sse::Event as Frame;
use begin::Begin;
use futures::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman::Network;
use steersman::runtime::store::SessionId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes(limits: &Limits) -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(run))
        .layer(DefaultBodyLimit::max(limits.files))
        .routes(routes!(capable))
}

/// A request to run an agent. Unknown fields are ignored, as the protocol says.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = RunAgentInput)]
struct Input {
    /// The thread: any text that the client keeps. It names one session of the definition and of the token's tenant and subject.
    thread_id: String,
    /// The run, as its messages name it.
    run_id: String,
    /// The run from which this one comes. It is told again.
    parent_run_id: Option<String>,
    /// The state as the client has it. Changes of entries whose `by` names a role of the token come with the message.
    #[schema(value_type = Object)]
    state: Value,
    /// The conversation. Messages of the user behind the last one of the assistant are new, unless the session took them before.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Message>,
    /// Empty: a session has the tools of its definition.
    #[schema(value_type = Vec<Object>)]
    tools: Option<Vec<Value>>,
    /// Facts about the client. They are the state entry `context`, if the definition has one that the client may change.
    #[schema(value_type = Vec<Object>)]
    context: Option<Vec<Value>>,
    /// The answers to all interrupts of the run before.
    #[schema(value_type = Vec<Object>)]
    resume: Option<Vec<Entry>>,
}

/// A message of the conversation.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Message {
    id: String,
    role: String,
    content: Value,
    tool_calls: Option<Value>,
    tool_call_id: Option<String>,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    interrupt_id: String,
    status: Status,
    #[serde(default)]
    payload: Value,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Resolved,
    Cancelled,
}

/// The reason why a run does not begin. The client reads it as the only message of the run.
#[derive(Debug)]
struct Refusal {
    code: String,
    message: String,
}

impl Refusal {
    fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }

    fn frame(&self) -> Frame {
        frame(&json!({ "type": "RUN_ERROR", "message": self.message, "code": self.code }))
    }
}

impl<E: Into<Problem>> From<E> for Refusal {
    fn from(problem: E) -> Self {
        let problem = problem.into();
        let (code, message) = problem.words();
        Self::new(code, message)
    }
}

fn frame(message: &Value) -> Frame {
    Frame::default().data(message.to_string())
}

/// Runs a definition as an agent of AG-UI: says what is new in the conversation, and tells what follows as a stream of events.
///
/// Questions that the token may decide end the run as interrupts; the next run brings all answers in `resume`. A request that brings
/// nothing new tells the last run again, from the beginning, in any process: so a client comes back after a cut. A run that cannot
/// begin is one event `RUN_ERROR`. The header `x-steersman-session` of the answer names the session.
#[utoipa::path(
    post, path = "/agui/{definition}", tag = "agui", operation_id = "run_agent", request_body = Input,
    params(("definition" = String, Path, description = "The name of the definition")),
    responses(Events, Problems)
)]
async fn run(
    caller: Caller,
    asked: Asked,
    At(name): At<String>,
    Body(input): Body<Input>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Write)?;
    caller.needs(Permission::Read)?;
    let network = caller.definition(&name)?;
    for (name, id) in [("threadId", &input.thread_id), ("runId", &input.run_id)] {
        if id.is_empty() {
            return Err(Problem::new(Code::Body, format!("`{name}` is empty")));
        }
    }
    caller.streams()?;
    let session = thread(&caller, &network, &input.thread_id).await?;
    let begin = Begin {
        caller: &caller,
        asked: &asked,
        network: &network,
        session: &session,
        input: &input,
        roles: caller.deciding(),
    };
    let response = match begin.run().await {
        Ok(running) => running.stream(caller),
        Err(refusal) => {
            let only = refusal.frame();
            streamed(stream::once(async move { only }))
        }
    };
    Ok(with_session(response, &session))
}

/// Returns the id of the session of a thread. It follows from the names, so no list of threads is kept.
async fn thread(caller: &Caller, network: &Network, id: &str) -> Result<SessionId, Problem> {
    let over = json!([network.name(), id]).to_string();
    caller.session_of("agui", &over).await
}

/// Tells what a definition can do as an agent of AG-UI, in the form of the protocol.
#[utoipa::path(
    get, path = "/agui/{definition}/capabilities", tag = "agui", operation_id = "agent_capabilities",
    params(("definition" = String, Path, description = "The name of the definition")),
    responses((status = 200, description = "The capabilities", body = Value), Problems)
)]
async fn capable(caller: Caller, At(name): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let network = caller.definition(&name)?;
    Ok(Json(capabilities::of(network.checked())))
}
