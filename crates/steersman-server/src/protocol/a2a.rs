//! The Agent2Agent protocol, version 1.0: a turn as a task, and the updates of a stream. The names are those of the protocol's JSON.

use super::chat::question;
use super::turn::{End, Open, Told, Turn, WAITS};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::machine::stored::ids::{Line, Name, Time};
use steersman::{Event, EventKind, PendingKind};

/// The fixed parts of a task.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The id of the session, which is the context.
    pub(crate) session: Arc<str>,
    /// The line that took the message.
    pub(crate) line: Line,
    /// Roles in which the client may decide.
    pub(crate) roles: Vec<Name>,
    /// The address of the session in the console, if there is one.
    pub(crate) page: Option<String>,
    /// The address of the session at the server, under which its artifacts are.
    pub(crate) at: String,
}

impl Form {
    /// Returns the id of the task.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.session, self.line)
    }
}

/// A turn as a task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    form: Form,
    turn: Turn,
    /// Complete texts and artifacts, by their ids, in the order in which they came.
    artifacts: Vec<Json>,
    /// Number of complete texts.
    texts: u32,
    /// True if pieces of the text that is open were told, and count.
    is_open: bool,
    /// The newest status that is not the end of the turn.
    working: Option<Json>,
    /// Time of the last change.
    at: Option<Time>,
    /// Calls of tools, by the text of their ids.
    tools: BTreeMap<String, Name>,
}

/// The state of a task.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
    AuthRequired,
}

impl State {
    /// Returns the word of the protocol.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }

    /// Returns true if the task will never change again.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

impl Task {
    pub(crate) fn new(form: Form, turn: Turn) -> Self {
        Self {
            form,
            turn,
            artifacts: Vec::new(),
            texts: 0,
            is_open: false,
            working: None,
            at: None,
            tools: BTreeMap::new(),
        }
    }

    /// Returns the turn as far as it was told.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Lets a task that asks or waits go on: what comes later is told, too.
    pub(crate) fn goes_on(&mut self) {
        self.turn.goes_on();
    }

    /// Returns the time of the last change that was told.
    pub(crate) fn at(&self) -> Option<Time> {
        self.at
    }

    /// Returns the state as far as it was told.
    pub(crate) fn state(&self) -> State {
        match &self.turn.end {
            None if self.turn.branch().is_none() => State::Submitted,
            None | Some(End::Waits(_)) => State::Working,
            Some(End::Answered) => State::Completed,
            Some(End::Failed { .. }) => State::Failed,
            Some(End::Cancelled) => State::Canceled,
            Some(End::Asks(open)) => {
                let may = |open: &Open| {
                    let by_message = open.kind == PendingKind::Question || open.is_decided();
                    by_message && open.role(&self.form.roles).is_some()
                };
                if open.iter().any(may) {
                    State::InputRequired
                } else {
                    State::AuthRequired
                }
            }
        }
    }

    /// Returns the questions that are open at the end of the turn.
    pub(crate) fn open(&self) -> &[Open] {
        match &self.turn.end {
            Some(End::Asks(open)) => open,
            _ => &[],
        }
    }

    /// Returns the task.
    pub(crate) fn document(&self) -> Json {
        json!({
            "id": self.form.id(),
            "contextId": self.form.session,
            "status": self.status(),
            "artifacts": self.artifacts,
            "metadata": { "usage": self.usage() },
        })
    }

    /// Returns the updates of an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Json> {
        let is_over = self.turn.end.is_some();
        let told = self.turn.event(event);
        let is_change = !told.is_empty()
            || matches!(
                event.kind,
                EventKind::Asked { .. } | EventKind::Decided { .. } | EventKind::Artifact { .. }
            );
        if !is_over && is_change && event.at.is_some() {
            self.at = event.at;
        }
        let mut all = Vec::new();
        for told in told {
            match told {
                Told::Begins => all.push(json!({ "task": self.document() })),
                Told::Opens => {}
                Told::More(text) => {
                    let append = std::mem::replace(&mut self.is_open, true);
                    all.push(self.piece(&text, append, false));
                }
                Told::Void => {
                    if std::mem::take(&mut self.is_open) {
                        all.push(self.piece("", false, false));
                    }
                }
                Told::Closes { rest, text } => {
                    let append = std::mem::take(&mut self.is_open) && rest.is_some();
                    let rest = rest.unwrap_or_else(|| text.to_string());
                    all.push(self.piece(&rest, append, true));
                    self.texts += 1;
                    let id = format!("answer-{}", self.texts);
                    self.artifacts.push(answer(&id, &text));
                }
                Told::Calls {
                    call,
                    name,
                    arguments,
                } => {
                    let call = call.to_string();
                    let data = json!({ "call": call, "tool": name, "arguments": arguments });
                    self.tools.insert(call.clone(), name);
                    all.push(self.works(&call, data));
                }
                Told::Ends { call, ok, text } => {
                    let call = call.to_string();
                    let tool = self.tools.get(&call);
                    let data = json!({ "call": call, "tool": tool, "ok": ok, "result": &*text });
                    all.push(self.works(&format!("{call}/end"), data));
                }
            }
        }
        if is_over {
            return all;
        }
        if let EventKind::Artifact { name, media, .. } = &event.kind
            && self.turn.branch() == Some(event.branch)
        {
            let made = self.made(name, media);
            all.push(self.update(&made, false, true));
            self.artifacts
                .retain(|known| known["artifactId"] != made["artifactId"]);
            self.artifacts.push(made);
        }
        if self.turn.end.is_some() {
            all.push(self.status_update());
        }
        all
    }

    /// Returns the update of a piece of the text that is open.
    fn piece(&self, text: &str, append: bool, is_last: bool) -> Json {
        let id = format!("answer-{}", self.texts + 1);
        self.update(&answer(&id, text), append, is_last)
    }

    fn update(&self, artifact: &Json, append: bool, is_last: bool) -> Json {
        json!({ "artifactUpdate": {
            "taskId": self.form.id(),
            "contextId": self.form.session,
            "artifact": artifact,
            "append": append,
            "lastChunk": is_last,
        } })
    }

    /// Returns the artifact for a file that the session made: a link to it, for the same token.
    fn made(&self, name: &str, media: &str) -> Json {
        let path: String = name.bytes().map(escaped).collect();
        json!({
            "artifactId": format!("file/{name}"),
            "name": name,
            "parts": [{
                "url": format!("{}/artifacts/{path}", self.form.at),
                "filename": name,
                "mediaType": media,
            }],
        })
    }

    /// Remembers what goes on, and returns the update.
    fn works(&mut self, id: &str, data: Json) -> Json {
        let message = self.message(id, vec![json!({ "data": data })]);
        self.working = Some(message);
        self.status_update()
    }

    fn status_update(&self) -> Json {
        json!({ "statusUpdate": {
            "taskId": self.form.id(),
            "contextId": self.form.session,
            "status": self.status(),
            "metadata": { "usage": self.usage() },
        } })
    }

    fn status(&self) -> Json {
        let mut status = json!({ "state": self.state().word() });
        if let Some(at) = self
            .at
            .and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok())
        {
            status["timestamp"] = at.to_string().into();
        }
        let text = |text: String| json!({ "text": text });
        let parts = match &self.turn.end {
            None => {
                if let Some(message) = &self.working {
                    status["message"] = message.clone();
                }
                return status;
            }
            Some(End::Answered) => return status,
            Some(End::Cancelled) => vec![text("A person cancelled this.".to_owned())],
            Some(End::Failed { message, .. }) => vec![text(message.clone())],
            Some(End::Waits(open)) if open.is_empty() => {
                vec![text(WAITS.to_owned())]
            }
            Some(End::Waits(open)) => {
                let waits = |open: &Open| text(format!("The session waits for: {}", open.text));
                open.iter().map(waits).collect()
            }
            Some(End::Asks(open)) => self.asks(open),
        };
        status["message"] = self.message("status", parts);
        status
    }

    /// Returns the parts of the message that asks: the questions as text, and as data that names what answers them.
    fn asks(&self, open: &[Open]) -> Vec<Json> {
        let mine = |open: &&Open| {
            open.kind == PendingKind::Question && open.role(&self.form.roles).is_some()
        };
        let is_only = open.iter().filter(mine).count() == 1;
        let each = open.iter().flat_map(|open| {
            let by_text = is_only && mine(&open);
            let may = open.role(&self.form.roles).is_some();
            let answer = match open.kind {
                PendingKind::Question if may => Some("answer"),
                _ if may && open.is_decided() => Some("approve"),
                _ => None,
            };
            let data = json!({
                "question": open.id.to_string(),
                "kind": open.kind.word(),
                "text": open.text,
                "roles": open.roles,
                "tool": open.tool,
                "arguments": open.arguments,
                "options": open.options,
                "reply": answer,
                "decide": open.address(&self.form.session, self.form.page.as_deref()).filter(|_| !by_text),
            });
            [
                json!({ "text": question(open, &self.form.session, self.form.page.as_deref(), by_text) }),
                json!({ "data": data }),
            ]
        });
        each.collect()
    }

    fn message(&self, id: &str, parts: Vec<Json>) -> Json {
        json!({
            "messageId": format!("{}/{id}", self.form.id()),
            "contextId": self.form.session,
            "taskId": self.form.id(),
            "role": "ROLE_AGENT",
            "parts": parts,
        })
    }

    fn usage(&self) -> Json {
        let usage = &self.turn.usage;
        json!({
            "inputTokens": usage.input,
            "cachedTokens": usage.cached,
            "outputTokens": usage.output,
            "reasoningTokens": usage.reasoning,
        })
    }
}

fn answer(id: &str, text: &str) -> Json {
    json!({ "artifactId": id, "name": "answer", "parts": [{ "text": text }] })
}

/// Returns a byte of a name as a part of an address.
fn escaped(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        return char::from(byte).to_string();
    }
    format!("%{byte:02X}")
}
