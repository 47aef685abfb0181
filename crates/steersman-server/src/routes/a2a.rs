//! The Agent2Agent protocol, version 1.0, over JSON-RPC: each definition is an agent with a card, a context is a session, and a task is a
//! turn of it.

mod list;
mod message;

use crate::ask::{AnyJson, Asked, At};
use crate::caller::{Caller, Reached};
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::protocol::a2a::{Form, Task};
use crate::protocol::turn::A2A;
use crate::{Permission, Server};
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::VecDeque;
use steersman::machine::stored::commit::LedgerEntry;
use steersman::machine::stored::ids::Line;
use steersman::runtime::store::SessionId;
use steersman::views::reader::{Reader as _, Stored};
use steersman::{Act, CancelWhat, Events, Network};
use tokio::time::timeout_at;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The version of the protocol.
const VERSION: &str = "1.0";
/// The header that names it.
const VERSION_HEADER: HeaderName = HeaderName::from_static("a2a-version");

pub(super) fn routes(limits: &crate::Limits) -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(call))
        .layer(DefaultBodyLimit::max(limits.body))
        .routes(routes!(card))
        .routes(routes!(first_card))
}

/// Errors of the protocol, by their codes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(i32)]
enum Fault {
    Parse = -32700,
    Request = -32600,
    Method = -32601,
    Params = -32602,
    Internal = -32603,
    NoTask = -32001,
    NotCancelable = -32002,
    NoPush = -32003,
    Unsupported = -32004,
    Content = -32005,
    NoCard = -32007,
    Version = -32009,
}

impl Fault {
    /// Returns the reason that programs branch on, if the protocol has one.
    fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::NoTask => "TASK_NOT_FOUND",
            Self::NotCancelable => "TASK_NOT_CANCELABLE",
            Self::NoPush => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::Unsupported => "UNSUPPORTED_OPERATION",
            Self::Content => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::NoCard => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::Version => "VERSION_NOT_SUPPORTED",
            Self::Parse | Self::Request | Self::Method | Self::Params | Self::Internal => {
                return None;
            }
        })
    }
}

/// The reason why a call was not carried out.
enum Failed {
    /// An error of the protocol.
    Fault(Fault, String),
    /// An error that clients read in the status of the response.
    Http(Problem),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        let is = |code: Code| problem.code() == code.told().0;
        let fault = if is(Code::Session) || is(Code::Response) {
            Fault::NoTask
        } else if [
            Code::Body,
            Code::Query,
            Code::Id,
            Code::Question,
            Code::Refused,
        ]
        .into_iter()
        .chain([Code::Repeated, Code::Exists, Code::Definition])
        .any(is)
        {
            Fault::Params
        } else if [Code::Damaged, Code::Internal, Code::Unbound, Code::Late]
            .into_iter()
            .any(is)
        {
            Fault::Internal
        } else {
            return Self::Http(problem);
        };
        Self::Fault(fault, problem.sentence())
    }
}

fn fault(fault: Fault, why: impl Into<String>) -> Failed {
    Failed::Fault(fault, why.into())
}

/// Returns the JSON-RPC error of a request.
fn error(id: &Value, fault: Fault, why: &str) -> Value {
    let mut error = json!({ "code": fault as i32, "message": why });
    if let Some(reason) = fault.reason() {
        error["data"] = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "a2a-protocol.org",
        }]);
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

fn succeeded(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// A call of the protocol.
#[derive(Debug, Deserialize)]
struct Request {
    #[serde(default)]
    jsonrpc: String,
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Value,
}

/// A task that a call names.
#[derive(Debug, Deserialize)]
struct Named {
    id: String,
}

fn params<T: DeserializeOwned>(params: Value) -> Result<T, Failed> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params).map_err(|error| fault(Fault::Params, error.to_string()))
}

/// Carries out a call of the Agent2Agent protocol (JSON-RPC 2.0) for the agent that a definition is.
#[utoipa::path(
    post, path = "/a2a/{definition}", tag = "a2a", operation_id = "call_agent", request_body = Value,
    params(
        ("definition" = String, Path, description = "The name of the definition"),
        ("A2A-Version" = String, Header, description = "1.0"),
    ),
    responses((status = 200, description = "The answer, or a stream of answers", body = Value), Problems)
)]
async fn call(
    caller: Caller,
    asked: Asked,
    At(definition): At<String>,
    headers: HeaderMap,
    body: Result<AnyJson, Problem>,
) -> Result<Response, Problem> {
    let network = caller.definition(&definition)?;
    let body = match body {
        Ok(AnyJson(body)) => body,
        Err(problem) if problem.code() == Code::Body.told().0 => {
            let told = error(&Value::Null, Fault::Parse, &problem.sentence());
            return Ok(Json(told).into_response());
        }
        Err(problem) => return Err(problem),
    };
    let id = match &body["id"] {
        id @ (Value::String(_) | Value::Number(_)) => id.clone(),
        _ => Value::Null,
    };
    let request = serde_json::from_value::<Request>(body)
        .ok()
        .filter(|request| request.jsonrpc == "2.0" && !matches!(request.id, Value::Bool(_)));
    let Some(request) = request else {
        let why =
            "a request has `jsonrpc`: \"2.0\", `id`, `method` and `params`; there are no batches";
        return Ok(Json(error(&id, Fault::Request, why)).into_response());
    };
    let wanted = headers.get(VERSION_HEADER);
    let wanted = wanted.map_or("0.3", |value| value.to_str().unwrap_or_default());
    if wanted != VERSION && !wanted.starts_with("1.0.") {
        let why = format!("the version is {VERSION}: send it as `A2A-Version`");
        return Ok(Json(error(&id, Fault::Version, &why)).into_response());
    }
    let agent = Agent {
        at: Reached::of(&headers).to_string(),
        caller,
        network,
        asked,
    };
    match agent.answer(&id, &request.method, request.params).await {
        Ok(response) => Ok(response),
        Err(Failed::Fault(fault, why)) => Ok(Json(error(&id, fault, &why)).into_response()),
        Err(Failed::Http(problem)) => Err(problem),
    }
}

/// A definition as an agent, for one call.
struct Agent {
    /// The address of the server.
    at: String,
    caller: Caller,
    network: Network,
    asked: Asked,
}

impl Agent {
    async fn answer(self, id: &Value, method: &str, given: Value) -> Result<Response, Failed> {
        let whole = |result: Value| Ok(Json(succeeded(id, &result)).into_response());
        match method {
            "SendMessage" => {
                let sent = self.send(params(given)?).await?;
                let task = if sent.waits {
                    self.waits(sent.following).await?
                } else {
                    self.made(&sent.session, sent.line).await?
                };
                whole(json!({ "task": task.document() }))
            }
            "SendStreamingMessage" => {
                self.caller.streams()?;
                let sent = self.send(params(given)?).await?;
                Ok(self.stream(id.clone(), sent.following))
            }
            "GetTask" => {
                let (session, line) = self.found(&params::<Named>(given)?.id).await?;
                whole(self.made(&session, line).await?.document())
            }
            "SubscribeToTask" => {
                self.caller.streams()?;
                let (session, line) = self.found(&params::<Named>(given)?.id).await?;
                let following = self.resumed(&session, line).await?;
                Ok(self.stream(id.clone(), following))
            }
            "CancelTask" => {
                let (session, line) = self.found(&params::<Named>(given)?.id).await?;
                whole(self.cancel(&session, line).await?.document())
            }
            "ListTasks" => whole(self.list(params(given)?).await?),
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => {
                let why = "there are no push notifications: follow the task with `SubscribeToTask`";
                Err(fault(Fault::NoPush, why))
            }
            "GetExtendedAgentCard" => Err(fault(Fault::NoCard, "the card has everything already")),
            _ => Err(fault(Fault::Method, "there is no such method")),
        }
    }

    /// Returns a task of which nothing was told yet.
    async fn begun(&self, session: &SessionId, line: Line) -> Result<Task, Failed> {
        let form = Form {
            session: session.clone(),
            line,
            roles: self.caller.deciding(),
            page: self.caller.page(session),
            at: format!("{}/v1/sessions/{session}", self.at),
        };
        Ok(Task::new(
            form,
            self.caller.turn(&self.network, session, line).await?,
        ))
    }

    /// Returns a task as the log tells it now.
    async fn made(&self, session: &SessionId, line: Line) -> Result<Task, Failed> {
        let mut task = self.begun(session, line).await?;
        let hear = |event: &steersman::Event| {
            task.event(event);
            task.turn().end.is_some()
        };
        self.caller.told(session, line, hear).await?;
        Ok(task)
    }

    /// Finds a task of this agent that the token sees: its session, and the line that took its message.
    async fn found(&self, id: &str) -> Result<(SessionId, Line), Failed> {
        self.caller.needs(Permission::Read)?;
        let none = || {
            let shown: String = id.chars().take(80).flat_map(char::escape_debug).collect();
            fault(Fault::NoTask, format!("there is no task `{shown}`"))
        };
        let (session, line) = id.rsplit_once('-').ok_or_else(none)?;
        let line = line.parse().ok();
        let line = line.filter(|line| (1..Line::MAX.0).contains(line));
        let line = Line(line.ok_or_else(none)?);
        let session = match self.caller.of_definition(&self.network, session).await {
            Ok(session) => session,
            Err(problem) if problem.code() == Code::Session.told().0 => return Err(none()),
            Err(problem) => return Err(problem.into()),
        };
        let reader = Stored::plain(self.caller.steersman.engine(), &session);
        let lines = reader.lines(Line(line.0 - 1), 1).await;
        let lines = lines.map_err(|error| Failed::from(Problem::from(error)))?;
        let is_task = lines
            .first()
            .is_some_and(|first| first.n == line && first.ledger.iter().any(is_task));
        if is_task {
            Ok((session, line))
        } else {
            Err(none())
        }
    }

    /// Returns a task that goes on, with what comes after now.
    async fn resumed(&self, session: &SessionId, line: Line) -> Result<Following, Failed> {
        let mut task = self.begun(session, line).await?;
        let mut hear = |event: &steersman::Event| {
            task.event(event);
            task.turn().end.is_some()
        };
        let from = self.caller.told(session, line, &mut hear).await?;
        if task.state().is_over() {
            return Err(fault(
                Fault::Unsupported,
                "the task is over: `GetTask` returns it",
            ));
        }
        let ready = VecDeque::from([json!({ "task": task.document() })]);
        if task.turn().end.is_some() {
            // Somebody else may decide the question: then the task goes on without a message.
            task.goes_on();
        }
        let events = self.caller.steersman.events(session, from);
        let events = if self.caller.may(Permission::Context) {
            events
        } else {
            events.masked()
        };
        Ok(Following {
            task,
            events,
            ready,
            is_over: false,
        })
    }

    /// Waits for the end of a turn, as long as a request may wait. Then the task is returned as it stands.
    async fn waits(&self, mut following: Following) -> Result<Task, Failed> {
        let until = self.caller.deadline();
        while following.task.turn().end.is_none() {
            let next = tokio::select! {
                next = timeout_at(until, following.events.next()) => next,
                () = self.caller.server.stopping().cancelled() => break,
            };
            match next {
                Ok(Some(event)) => {
                    let event = event.map_err(|error| Failed::from(Problem::from(error)))?;
                    following.task.event(&event);
                }
                Ok(None) | Err(_) => break,
            }
        }
        Ok(following.task)
    }

    async fn cancel(&self, session: &SessionId, line: Line) -> Result<Task, Failed> {
        let caller = &self.caller;
        caller.needs(Permission::Write)?;
        caller.needs(Permission::Read)?;
        let task = self.made(session, line).await?;
        if task.state().is_over() {
            return Err(fault(Fault::NotCancelable, "the task is over"));
        }
        let act = Act::cancel(CancelWhat::Branch, caller.by(None)?, task.turn().branch());
        let receipt = caller.act(session, act, &self.asked).await?;
        let after = receipt.line.map_or(line, Line);
        self.waits(self.followed(session, line, after).await?).await
    }

    /// Returns a task that is followed from its beginning. States in which the session had settled before a line do not end it.
    async fn followed(
        &self,
        session: &SessionId,
        line: Line,
        after: Line,
    ) -> Result<Following, Failed> {
        Ok(Following {
            task: self.begun(session, line).await?,
            events: self.caller.follows(session, line).settled_after(after),
            ready: VecDeque::new(),
            is_over: false,
        })
    }

    /// Answers with a stream of updates.
    fn stream(self, id: Value, following: Following) -> Response {
        let frames = stream::unfold(
            (self.caller, id, following),
            |(caller, id, mut following)| async move {
                let frame = following.frame(&caller, &id).await?;
                Some((frame, (caller, id, following)))
            },
        );
        crate::stream::streamed(frames)
    }
}

/// Returns true for the entry of a line that took a message which began a task.
fn is_task(entry: &LedgerEntry) -> bool {
    matches!(entry, LedgerEntry::Accepted { message, .. } if message.starts_with(A2A))
}

/// A task that is followed.
struct Following {
    task: Task,
    events: Events,
    ready: VecDeque<Value>,
    is_over: bool,
}

impl Following {
    /// Returns the next frame of a stream.
    async fn frame(&mut self, caller: &Caller, id: &Value) -> Option<Frame> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Some(Frame::default().data(succeeded(id, &update).to_string()));
            }
            if self.is_over {
                return None;
            }
            let next = tokio::select! {
                next = self.events.next() => next,
                () = caller.server.stopping().cancelled() => None,
            };
            let problem = match next {
                Some(Ok(event)) => {
                    self.ready.extend(self.task.event(&event));
                    self.is_over = self.task.turn().end.is_some();
                    continue;
                }
                Some(Err(error)) => Problem::from(error),
                None => caller.late(),
            };
            self.is_over = true;
            let told = error(id, Fault::Internal, &problem.sentence());
            return Some(Frame::default().data(told.to_string()));
        }
    }
}

/// Returns the card of an agent: its address, its skills, and how clients show who they are.
#[utoipa::path(
    get, path = "/a2a/{definition}/.well-known/agent-card.json", tag = "a2a", operation_id = "agent_card",
    params(("definition" = String, Path, description = "The name of the definition")),
    responses((status = 200, description = "The card", body = Value), Problems)
)]
async fn card(
    caller: Caller,
    At(definition): At<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    Ok(Json(described(&caller.definition(&definition)?, &headers)))
}

/// Returns the card of the first definition that the token may start.
#[utoipa::path(
    get, path = "/.well-known/agent-card.json", tag = "a2a", operation_id = "first_agent_card",
    responses((status = 200, description = "The card", body = Value), Problems)
)]
async fn first_card(caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let all = caller.definitions();
    let first = all.first().ok_or_else(|| {
        Problem::new(
            Code::Definition,
            "there is no definition that the token may start",
        )
    })?;
    Ok(Json(described(first, &headers)))
}

fn described(network: &Network, headers: &HeaderMap) -> Value {
    let checked = network.checked();
    let name = network.name();
    let about = |own: &str| {
        let mut texts = [own, checked.description.as_deref().unwrap_or_default()].into_iter();
        let text = texts.find(|text| !text.is_empty());
        text.map_or_else(|| format!("The agents of `{name}`."), str::to_owned)
    };
    let skills = checked.entry.iter().map(|entry| {
        json!({
            "id": entry,
            "name": entry,
            "description": about(&checked.agent(entry).description),
            "tags": [name],
        })
    });
    json!({
        "name": name,
        "description": about(""),
        "version": checked.digest.to_string(),
        "supportedInterfaces": [{
            "url": format!("{}/a2a/{name}", Reached::of(headers)),
            "protocolBinding": "JSONRPC",
            "protocolVersion": VERSION,
        }],
        "capabilities": { "streaming": true, "pushNotifications": false, "extendedAgentCard": false },
        "securitySchemes": { "token": { "httpAuthSecurityScheme": {
            "scheme": "Bearer",
            "description": "A token that `steersman token new` made",
        } } },
        "securityRequirements": [{ "schemes": { "token": { "list": [] } } }],
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": skills.collect::<Value>(),
    })
}
