//! Chat completions. The messages of a request lead to the session that continues them; what is new is said there.

use super::talk::{Asks, Message, Named, Talk};
use super::{Failures, is_retry, named, prompt, role};
use crate::ask::{Asked, Body};
use crate::caller::Caller;
use crate::conversation::{Chain, END, Went};
use crate::problem::{Code, Problem};
use crate::protocol::chat::{ANSWER, APPROVE, Chat, Form, Functions};
use crate::stream::{streamed, with_session};
use crate::{Permission, Server};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use steersman::Events;
use steersman::machine::stored::ids::Line;
use steersman::runtime::store::SessionId;
use tokio::time::timeout_at;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(complete))
}

/// A request for a chat completion. Fields that choose how a model answers, such as `temperature`, are ignored: the definition says it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
struct Request {
    /// The definition, or a definition and an entry: `desk`, `desk/returns`.
    model: String,
    /// The conversation. Everything up to the last message of the assistant leads to the session; the messages behind it are new.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    /// True for a stream of chunks.
    stream: Option<bool>,
    /// `include_usage`: the stream ends with the usage.
    #[schema(value_type = Object)]
    stream_options: Option<StreamOptions>,
    /// The functions `approve` and `answer`, through which questions come as calls. There are no others.
    #[schema(value_type = Vec<Object>)]
    tools: Option<Vec<Value>>,
    /// `session`: the session in which the new messages are said.
    #[schema(value_type = Object)]
    metadata: Option<BTreeMap<String, Value>>,
    /// A name that keeps equal conversations of different people apart. It gives no rights.
    user: Option<String>,
    /// As `user`.
    safety_identifier: Option<String>,
    /// 1.
    n: Option<u64>,
    #[schema(ignore)]
    logprobs: Option<bool>,
    #[schema(ignore)]
    functions: Option<Vec<Value>>,
    #[schema(ignore)]
    response_format: Option<Value>,
    #[schema(ignore)]
    modalities: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Answers a conversation: what is new in it is said to its session, and the answer is what the session says until it settles.
///
/// An earlier message that is sent again, or changed, takes the session back to the line before it. With `stream` the answer is a
/// stream of chunks. The header `x-steersman-session` names the session.
#[utoipa::path(
    post, path = "/openai/v1/chat/completions", tag = "openai", request_body = Request,
    params(
        ("x-steersman-session" = Option<String>, Header, description = "The session in which the new messages are said"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 200, description = "The completion, or a stream of its chunks", body = Value), Failures)
)]
async fn complete(
    caller: Caller,
    asked: Asked,
    headers: HeaderMap,
    Body(request): Body<Request>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Write)?;
    caller.needs(Permission::Read)?;
    let (network, entry) = named(&caller, &request.model)?;
    let functions = request.check()?;
    let messages = request.read()?;
    let at = match request.session(&headers)? {
        Some(session) => Named::Session(caller.of_definition(&network, &session).await?),
        None => Named::Nothing,
    };
    let people = (&request.model, &request.user, &request.safety_identifier);
    let base = caller.keyed("chat", &json!(people).to_string()).await?;
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
    let line = match &went {
        Went::Taken(line) => *line,
        Went::Waits(_) => caller.steersman.engine().store().head(&session).await?,
    };
    let form = Form {
        id: format!("chatcmpl-{session}-{line}"),
        session: session.clone(),
        model: request.model.clone(),
        functions,
        roles: caller.deciding(),
        page: caller.page(&session),
        usage: (request.stream_options.as_ref()).is_some_and(|o| o.include_usage == Some(true)),
    };
    let turn = caller.turn(&network, &session, line).await?;
    let mut answering = Answering {
        events: caller.follows(&session, line),
        chat: Chat::new(form, turn),
        talk,
        session,
        line,
        waits: matches!(went, Went::Waits(_)),
        ready: VecDeque::new(),
    };
    if let Went::Waits(why) = &went {
        let open = caller.open(&answering.session).await?;
        answering.ready = answering.chat.waits(why, open).into();
    }
    if request.stream == Some(true) {
        caller.streams()?;
        return Ok(answering.stream(caller));
    }
    answering.whole(&caller).await
}

impl Request {
    /// Refuses what would make an answer of another form than there is. Returns the functions of the client.
    fn check(&self) -> Result<Functions, Problem> {
        let not = |what: &str| {
            let why = format!("`{what}` is not offered");
            Err(Problem::new(Code::Body, why).help("leave it out"))
        };
        if self.n.is_some_and(|n| n != 1) {
            return not("n");
        }
        if self.logprobs == Some(true) {
            return not("logprobs");
        }
        if self.functions.as_ref().is_some_and(|all| !all.is_empty()) {
            return not("functions");
        }
        let format = self.response_format.as_ref().map(|format| &format["type"]);
        if format.is_some_and(|kind| kind != "text") {
            let why =
                "`response_format`: the form of answers is declared in the definition (`output`)";
            return Err(Problem::new(Code::Body, why).help("leave it out"));
        }
        let modalities = self.modalities.iter().flatten();
        if modalities.clone().any(|kind| kind != "text") {
            return not("modalities");
        }
        let mut functions = Functions::default();
        for tool in self.tools.iter().flatten() {
            match tool["function"]["name"].as_str() {
                Some(APPROVE) => functions.approve = true,
                Some(ANSWER) => functions.answer = true,
                _ => {
                    let why = "`tools`: the functions `approve` and `answer` alone are called; a session has the tools of its definition";
                    return Err(Problem::new(Code::Body, why).help("leave other tools out"));
                }
            }
        }
        Ok(functions)
    }

    /// Returns the session that the client names.
    fn session(&self, headers: &HeaderMap) -> Result<Option<String>, Problem> {
        if let Some(session) = headers.get("x-steersman-session") {
            let text = session.to_str();
            let text = text.map_err(|_| Problem::no_session("?"))?;
            return Ok(Some(text.to_owned()));
        }
        let named = self.metadata.as_ref().and_then(|all| all.get("session"));
        match named {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(id)) => Ok(Some(id.clone())),
            Some(_) => Err(Problem::new(
                Code::Body,
                "`metadata.session` is the id of a session",
            )),
        }
    }

    fn read(&self) -> Result<Vec<Message>, Problem> {
        let messages = self.messages.iter().enumerate();
        let messages = messages.map(|(n, raw)| {
            message(raw).map_err(|why| Problem::new(Code::Body, format!("`messages[{n}]`: {why}")))
        });
        let mut all = Vec::new();
        for message in messages {
            all.extend(message?);
        }
        Ok(all)
    }
}

/// Reads a message. `None` is one that says nothing.
fn message(raw: &Value) -> Result<Option<Message>, String> {
    let role = role(&raw["role"])?;
    let text = match &raw["content"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part["type"].as_str() {
                Some("text") => Ok(part["text"].as_str().unwrap_or_default()),
                _ => Err("a part of `content` that is no text; send files with POST /v1/sessions/{session}/messages".to_owned()),
            });
            texts.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        _ => return Err("`content` is a text".to_owned()),
    };
    let Some(role) = role else {
        return prompt(&text);
    };
    let calls = raw["tool_calls"].as_array().into_iter().flatten();
    let calls = calls.map(|call| call["id"].as_str().unwrap_or_default().to_owned());
    Ok(Some(Message {
        role,
        text,
        calls: calls.collect(),
        of: raw["tool_call_id"].as_str().unwrap_or_default().to_owned(),
        raw: Some(raw.clone()),
    }))
}

/// A completion that is being made.
struct Answering {
    events: Events,
    chat: Chat,
    talk: Talk,
    session: SessionId,
    line: Line,
    /// True if the message waits, and the answer says so.
    waits: bool,
    ready: VecDeque<Value>,
}

impl Answering {
    /// Waits for the end of the turn, and answers with the whole completion.
    async fn whole(mut self, caller: &Caller) -> Result<Response, Problem> {
        let until = caller.deadline();
        while self.chat.turn().end.is_none() {
            let next = tokio::select! {
                next = timeout_at(until, self.events.next()) => next,
                () = caller.server.stopping().cancelled() => return Err(caller.late()),
            };
            match next {
                Ok(Some(event)) => drop(self.chat.event(&event?)),
                Ok(None) | Err(_) => return Err(caller.late()),
            }
        }
        self.keep(caller).await?;
        let completion = self.chat.completion();
        let completion = completion.map_err(|(code, message)| Problem::stopped(&code, message))?;
        Ok(with_session(
            Json(completion).into_response(),
            &self.session,
        ))
    }

    /// Lets the messages with the answer lead to the session, as the client will send them.
    async fn keep(&self, caller: &Caller) -> Result<(), Problem> {
        let calls = self.chat.calls().map(str::to_owned).collect();
        let answer = Message::answer(self.chat.text(), calls);
        let head = if self.waits {
            END
        } else {
            self.chat.turn().head
        };
        caller
            .leads(self.talk.whole.add(&answer), &self.session, head)
            .await?;
        caller
            .leads(self.talk.told(), &self.session, self.line)
            .await
    }

    /// Answers with a stream of chunks.
    fn stream(self, caller: Caller) -> Response {
        let session = self.session.clone();
        let state = (self, caller, Stage::Goes);
        let frames = stream::unfold(state, |(mut own, caller, stage)| async move {
            let (frame, stage) = own.frame(&caller, stage).await?;
            Some((frame, (own, caller, stage)))
        });
        with_session(streamed(frames), &session)
    }

    /// Returns the next frame of a stream, and the stage after it.
    async fn frame(&mut self, caller: &Caller, mut stage: Stage) -> Option<(Frame, Stage)> {
        loop {
            match stage {
                Stage::Over => return None,
                Stage::Kept => {
                    return Some(match self.ready.pop_front() {
                        Some(chunk) => (data(&chunk), stage),
                        None => (Frame::default().data("[DONE]"), Stage::Over),
                    });
                }
                // The next request may come as soon as the client has the last chunk.
                Stage::Goes if self.chat.turn().end.is_some() => match self.keep(caller).await {
                    Ok(()) => stage = Stage::Kept,
                    Err(problem) => return Some((data(&problem.openai()), Stage::Over)),
                },
                Stage::Goes => {
                    if let Some(chunk) = self.ready.pop_front() {
                        return Some((data(&chunk), stage));
                    }
                    let next = tokio::select! {
                        next = self.events.next() => next,
                        () = caller.server.stopping().cancelled() => None,
                    };
                    let problem = match next {
                        Some(Ok(event)) => {
                            self.ready.extend(self.chat.event(&event));
                            continue;
                        }
                        Some(Err(error)) => Problem::from(error),
                        None => caller.late(),
                    };
                    return Some((data(&problem.openai()), Stage::Over));
                }
            }
        }
    }
}

/// The stages of a stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// The turn goes on.
    Goes,
    /// The turn is over, and its conversation was kept.
    Kept,
    /// Nothing follows.
    Over,
}

/// Returns a frame of a stream.
fn data(json: &Value) -> Frame {
    Frame::default().data(json.to_string())
}
