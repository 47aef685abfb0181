//! Responses: create, read, follow from a position on, cancel. A response is a turn of a session, and its id names the session and the
//! line that took its message.

use super::talk::{Asks, Message, Named, Role, Talk};
use super::{Failures, is_retry, named, prompt, role};
use crate::ask::{Asked, At, Body, Params};
use crate::caller::Caller;
use crate::conversation::{Chain, Went};
use crate::problem::{Code, Problem};
use crate::protocol::chat::ANSWER;
use crate::protocol::responses::{APPROVAL, Form, Responses};
use crate::protocol::turn::{End, MESSAGE};
use crate::stream::streamed;
use crate::{Permission, Server};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use steersman::machine::stored::commit::LedgerEntry;
use steersman::machine::stored::ids::Line;
use steersman::runtime::store::SessionId;
use steersman::views::reader::{Reader as _, Stored};
use steersman::{Act, CancelWhat, Event, EventKind, Events, Network};
use tokio::time::timeout_at;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(read))
        .routes(routes!(cancel))
}

/// A request for a response. Fields that choose how a model answers, such as `temperature`, are ignored: the definition says it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = CreateResponse)]
struct Request {
    /// The definition, or a definition and an entry: `desk`, `desk/returns`.
    model: String,
    /// A text, or a list of items: messages, `mcp_approval_response`, `function_call_output`.
    #[schema(value_type = Object)]
    input: Value,
    /// The response that this one follows. If others followed it before, the session goes back to its end.
    previous_response_id: Option<String>,
    /// The session in which the input is said: `conv_SESSION`.
    #[schema(value_type = Object)]
    conversation: Option<Value>,
    /// True to answer at once, while the session is at work.
    background: Option<bool>,
    /// True for a stream of events.
    stream: Option<bool>,
    /// True or absent: sessions are kept.
    store: Option<bool>,
    /// A name that keeps equal conversations of different people apart. It gives no rights.
    user: Option<String>,
    /// As `user`.
    safety_identifier: Option<String>,
    /// The function `answer` alone.
    #[schema(value_type = Vec<Object>)]
    tools: Option<Vec<Value>>,
    #[schema(ignore)]
    instructions: Option<Value>,
    #[schema(ignore)]
    prompt: Option<Value>,
    #[schema(ignore)]
    text: Option<Value>,
}

/// Says something to a session, and answers with what the session says until it settles.
///
/// Calls of tools are items `mcp_call`: the session makes them. Approvals are items `mcp_approval_request`, and questions are calls of
/// the function `answer`, where the token may decide them; otherwise they are text. With `stream` the answer is a stream of events, with
/// `background` it comes at once.
#[utoipa::path(
    post, path = "/openai/v1/responses", tag = "openai", operation_id = "create_response", request_body = Request,
    params(("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request")),
    responses((status = 200, description = "The response, or a stream of its events", body = Value), Failures)
)]
async fn create(
    caller: Caller,
    asked: Asked,
    headers: HeaderMap,
    Body(request): Body<Request>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Write)?;
    caller.needs(Permission::Read)?;
    let (network, entry) = named(&caller, &request.model)?;
    request.check()?;
    let messages = items(&request.input)?;
    let at = request.place(&caller, &network).await?;
    let over = (
        (&request.model, &request.user, &request.safety_identifier),
        (&request.previous_response_id, &request.conversation),
    );
    let base = caller.keyed("responses", &json!(over).to_string()).await?;
    let talk = Talk::new(Chain::new(base), messages)?;
    let asks = Asks {
        caller: &caller,
        network: &network,
        asked: &asked,
        entry,
        talk: &talk,
        at,
        is_retry: is_retry(&headers),
    };
    let (session, went) = asks.said().await?;
    let line = match went {
        Went::Taken(line) => line,
        Went::Waits(why) => {
            let why = format!("the message waits, and is taken later: {why}");
            return Err(Problem::new(Code::Refused, why)
                .help("decide first what the session asks: GET /v1/sessions/{session}/questions"));
        }
    };
    if request.background == Some(true) && request.stream != Some(true) {
        caller.leads(talk.told(), &session, line).await?;
        let response = made(&caller, &network, &session, line).await?;
        return Ok(Json(response.document()).into_response());
    }
    let answering = Answering {
        events: caller.follows(&session, line),
        response: begun(&caller, &network, &session, line).await?,
        talk: Some(talk),
        session,
        line,
        after: None,
        ready: VecDeque::new(),
        is_over: false,
    };
    if request.stream == Some(true) {
        caller.streams()?;
        return Ok(answering.stream(caller));
    }
    answering.whole(&caller).await
}

impl Request {
    /// Refuses what would make a response of another form than there is.
    fn check(&self) -> Result<(), Problem> {
        let wrong = |why: &str| Err(Problem::new(Code::Body, why).help("leave it out"));
        if self.store == Some(false) {
            return wrong("`store`: sessions are kept");
        }
        let says = |value: &Option<Value>| match value {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(_) => true,
        };
        if says(&self.instructions) || says(&self.prompt) {
            return wrong("`instructions` and `prompt`: prompts are those of the definition");
        }
        let format = self.text.as_ref().map(|text| &text["format"]["type"]);
        if format.is_some_and(|kind| !kind.is_null() && kind != "text") {
            return wrong(
                "`text.format`: the form of answers is declared in the definition (`output`)",
            );
        }
        let mut tools = self.tools.iter().flatten();
        if tools.any(|tool| tool["type"] != "function" || tool["name"] != ANSWER) {
            return wrong(
                "`tools`: a session has the tools of its definition; the function `answer` alone is called",
            );
        }
        Ok(())
    }

    /// Returns the place that the request names.
    async fn place(&self, caller: &Caller, network: &Network) -> Result<Named, Problem> {
        let conversation = match &self.conversation {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(&**id),
            Some(object) => Some(object["id"].as_str().unwrap_or_default()),
        };
        match (&self.previous_response_id, conversation) {
            (None, None) => Ok(Named::Nothing),
            (Some(_), Some(_)) => {
                let why = "`previous_response_id` and `conversation` name two places";
                Err(Problem::new(Code::Body, why).help("send one of them"))
            }
            (None, Some(id)) => {
                let session = id.strip_prefix("conv_").unwrap_or(id);
                Ok(Named::Session(
                    caller.of_definition(network, session).await?,
                ))
            }
            (Some(id), None) => {
                let (session, line, of) = found(caller, id).await?;
                if of.name() != network.name() {
                    return Err(no_response(id));
                }
                let response = made(caller, &of, &session, line).await?;
                Ok(Named::Line(session, response.turn().head))
            }
        }
    }
}

/// Reads the input: a text, or a list of items. Messages of the assistant that follow each other are one.
fn items(input: &Value) -> Result<Vec<Message>, Problem> {
    let list = match input {
        Value::String(text) => return Ok(vec![user(text)]),
        Value::Array(list) => list,
        _ => {
            return Err(Problem::new(
                Code::Body,
                "`input` is a text or a list of items",
            ));
        }
    };
    let mut messages: Vec<Message> = Vec::new();
    for (n, raw) in list.iter().enumerate() {
        let read =
            item(raw).map_err(|why| Problem::new(Code::Body, format!("`input[{n}]`: {why}")));
        let Some(message) = read? else { continue };
        match messages.last_mut() {
            Some(last) if last.is_answer() && message.is_answer() => last.join(message),
            _ => messages.push(message),
        }
    }
    for message in &mut messages {
        if message.is_answer() && !message.text.is_empty() {
            message.raw = Some(json!({ "role": "assistant", "content": message.text }));
        }
    }
    Ok(messages)
}

fn user(text: &str) -> Message {
    Message {
        raw: Some(json!({ "role": "user", "content": text })),
        ..Message::user(text)
    }
}

/// Reads an item. `None` is one that a session knows itself.
fn item(raw: &Value) -> Result<Option<Message>, String> {
    let text = |name: &str| raw[name].as_str().unwrap_or_default();
    match raw["type"].as_str().unwrap_or("message") {
        "message" => {
            let content = match &raw["content"] {
                Value::String(text) => text.clone(),
                Value::Array(parts) => {
                    let texts = parts.iter().map(|part| match part["type"].as_str() {
                        Some("input_text" | "output_text" | "text") => {
                            Ok(part["text"].as_str().unwrap_or_default())
                        }
                        _ => Err("a part of `content` that is no text; send files with POST /v1/sessions/{session}/messages".to_owned()),
                    });
                    let between = if raw["role"] == "assistant" {
                        "\n\n"
                    } else {
                        "\n"
                    };
                    texts.collect::<Result<Vec<_>, _>>()?.join(between)
                }
                _ => return Err("`content` is a text or a list of parts".to_owned()),
            };
            match role(&raw["role"])? {
                None => prompt(&content),
                Some(Role::User) => Ok(Some(user(&content))),
                Some(Role::Assistant) => Ok(Some(Message::answer(&content, Vec::new()))),
                Some(Role::Tool) => Err("`role` is `user` or `assistant`".to_owned()),
            }
        }
        "function_call" => Ok(Some(Message::answer("", vec![text("call_id").to_owned()]))),
        "function_call_output" => {
            let output = match &raw["output"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Ok(Some(Message::decision(text("call_id"), &output)))
        }
        "mcp_approval_response" => {
            let Some(approve) = raw["approve"].as_bool() else {
                return Err("`approve` is true or false".to_owned());
            };
            let id = text("approval_request_id");
            let said = json!({ "approve": approve, "reason": raw["reason"].as_str() });
            let id = id.strip_prefix(APPROVAL).unwrap_or(id);
            Ok(Some(Message::decision(id, &said.to_string())))
        }
        "mcp_call" | "mcp_approval_request" | "mcp_list_tools" | "reasoning" => Ok(None),
        _ => Err(
            "the items are messages, `mcp_approval_response` and `function_call_output`".to_owned(),
        ),
    }
}

/// Returns the answer about a response that does not exist or is not visible.
fn no_response(id: &str) -> Problem {
    let shown: String = id.chars().take(80).flat_map(char::escape_debug).collect();
    Problem::new(Code::Response, format!("there is no response `{shown}`"))
        .help("the id of a response is `resp_SESSION_LINE`, as it was created")
}

/// Finds a response that the token sees: its session, its line, and the definition.
async fn found(caller: &Caller, id: &str) -> Result<(SessionId, Line, Network), Problem> {
    let none = || no_response(id);
    let parts = id
        .strip_prefix("resp_")
        .and_then(|rest| rest.rsplit_once('_'));
    let (session, line) = parts.ok_or_else(none)?;
    let line = line
        .parse()
        .ok()
        .filter(|line| (1..Line::MAX.0).contains(line));
    let line = Line(line.ok_or_else(none)?);
    let info = caller.session(session).await.map_err(|problem| {
        if problem.code() == Code::Session.told().0 {
            none()
        } else {
            problem
        }
    })?;
    let reader = Stored::plain(caller.steersman.engine(), &info.id);
    let lines = reader.lines(Line(line.0 - 1), 1).await?;
    let is_turn = lines.first().is_some_and(|first| {
        let accepted = |entry: &LedgerEntry| {
            matches!(entry, LedgerEntry::Accepted { message, .. } if message.starts_with(MESSAGE))
        };
        first.n == line && first.ledger.iter().any(accepted)
    });
    if !is_turn {
        return Err(none());
    }
    let network = caller.definition(&info.network)?;
    Ok((info.id, line, network))
}

/// Returns a response of which nothing was told yet.
async fn begun(
    caller: &Caller,
    network: &Network,
    session: &SessionId,
    line: Line,
) -> Result<Responses, Problem> {
    let form = Form {
        session: session.clone(),
        line,
        model: network.name().to_owned(),
        definition: network.name().into(),
        roles: caller.deciding(),
        page: caller.page(session),
    };
    Ok(Responses::new(
        form,
        caller.turn(network, session, line).await?,
    ))
}

/// Returns a response as the log tells it now.
async fn made(
    caller: &Caller,
    network: &Network,
    session: &SessionId,
    line: Line,
) -> Result<Responses, Problem> {
    let mut response = begun(caller, network, session, line).await?;
    let told = |event: &Event| {
        response.event(event);
        response.turn().end.is_some()
    };
    caller.told(session, line, told).await?;
    Ok(response)
}

/// A position in the events of a response.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct Follow {
    /// True for a stream of events.
    stream: bool,
    /// The number of the last event that the client has.
    starting_after: Option<u64>,
}

/// Returns a response as it stands. With `stream` its events come from the beginning, or behind `starting_after`, whichever process told
/// them before.
#[utoipa::path(
    get, path = "/openai/v1/responses/{response}", tag = "openai", operation_id = "read_response",
    params(("response" = String, Path, description = "The id of the response"), Follow),
    responses((status = 200, description = "The response, or a stream of its events", body = Value), Failures)
)]
async fn read(
    caller: Caller,
    At(id): At<String>,
    Params(follow): Params<Follow>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Read)?;
    let (session, line, network) = found(&caller, &id).await?;
    if !follow.stream {
        let response = made(&caller, &network, &session, line).await?;
        return Ok(Json(response.document()).into_response());
    }
    caller.streams()?;
    let answering = Answering {
        events: caller.follows(&session, line),
        response: begun(&caller, &network, &session, line).await?,
        talk: None,
        session,
        line,
        after: follow.starting_after,
        ready: VecDeque::new(),
        is_over: false,
    };
    Ok(answering.stream(caller))
}

/// Cancels a response that goes on.
#[utoipa::path(
    post, path = "/openai/v1/responses/{response}/cancel", tag = "openai", operation_id = "cancel_response",
    params(("response" = String, Path, description = "The id of the response")),
    responses((status = 200, description = "The response", body = Value), Failures)
)]
async fn cancel(caller: Caller, asked: Asked, At(id): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Write)?;
    let (session, line, network) = found(&caller, &id).await?;
    let response = made(&caller, &network, &session, line).await?;
    if !matches!(response.turn().end, None | Some(End::Waits(_))) {
        return Ok(Json(response.document()));
    }
    let by = caller.by(None)?;
    let act = Act::cancel(CancelWhat::Branch, by, response.turn().branch());
    let receipt = caller.act(&session, act, &asked).await?;
    let after = receipt.line.map_or(line, Line);
    let answering = Answering {
        events: caller.follows(&session, line).settled_after(after),
        response: begun(&caller, &network, &session, line).await?,
        talk: None,
        session,
        line,
        after: None,
        ready: VecDeque::new(),
        is_over: false,
    };
    Ok(Json(answering.waits(&caller).await?.response.document()))
}

/// A response that is being made.
struct Answering {
    events: Events,
    response: Responses,
    /// The conversation, if the response answers a request that says something.
    talk: Option<Talk>,
    session: SessionId,
    line: Line,
    /// The number of the last message that the client has.
    after: Option<u64>,
    ready: VecDeque<Value>,
    is_over: bool,
}

impl Answering {
    /// Waits for the end of the turn, as long as a request may wait.
    async fn waits(mut self, caller: &Caller) -> Result<Self, Problem> {
        let until = caller.deadline();
        while self.response.turn().end.is_none() {
            let next = tokio::select! {
                next = timeout_at(until, self.events.next()) => next,
                () = caller.server.stopping().cancelled() => break,
            };
            match next {
                Ok(Some(event)) => drop(self.response.event(&event?)),
                Ok(None) | Err(_) => break,
            }
        }
        Ok(self)
    }

    /// Answers with the whole response, as it stands once the turn is over or the request has waited long enough.
    async fn whole(self, caller: &Caller) -> Result<Response, Problem> {
        let own = self.waits(caller).await?;
        own.keep(caller).await?;
        Ok(Json(own.response.document()).into_response())
    }

    /// Lets the messages with the answer lead to the session, as a client sends them that keeps them itself.
    async fn keep(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(talk) = self
            .talk
            .as_ref()
            .filter(|_| self.response.turn().end.is_some())
        else {
            return Ok(());
        };
        let calls = self.response.calls().map(str::to_owned).collect();
        let answer = Message::answer(&self.response.text(), calls);
        let head = self.response.turn().head;
        caller
            .leads(talk.whole.add(&answer), &self.session, head)
            .await?;
        caller.leads(talk.told(), &self.session, self.line).await
    }

    /// Answers with a stream of events.
    fn stream(self, caller: Caller) -> Response {
        let frames = stream::unfold((self, caller), |(mut own, caller)| async move {
            let frame = own.frame(&caller).await?;
            Some((frame, (own, caller)))
        });
        streamed(frames)
    }

    /// Returns the next frame of a stream.
    async fn frame(&mut self, caller: &Caller) -> Option<Frame> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(frame(&message));
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
                    self.event(&event);
                    if self.response.turn().end.is_none() {
                        continue;
                    }
                    self.is_over = true;
                    // The next request may come as soon as the client has the last message.
                    match self.keep(caller).await {
                        Ok(()) => continue,
                        Err(problem) => problem,
                    }
                }
                Some(Err(error)) => Problem::from(error),
                None => caller.late(),
            };
            self.is_over = true;
            self.ready.clear();
            let error = &problem.openai()["error"];
            let message = json!({
                "type": "error", "code": error["code"], "message": error["message"], "param": null, "sequence_number": 0,
            });
            return Some(frame(&message));
        }
    }

    /// Adds the messages of an event that the client does not have. Streamed pieces are told again to a client that comes back.
    fn event(&mut self, event: &Event) {
        let is_piece = event.is_provisional() && !matches!(event.kind, EventKind::Settled(_));
        let after = self.after.filter(|_| !is_piece);
        let messages = self.response.event(event).into_iter();
        self.ready.extend(messages.filter(|message| {
            after.is_none_or(|after| message["sequence_number"].as_u64() > Some(after))
        }));
    }
}

fn frame(message: &Value) -> Frame {
    let kind = message["type"].as_str().unwrap_or_default();
    Frame::default().event(kind).data(message.to_string())
}
