//! AG-UI 1.0: the events of a run, and the conversation as a client has it.
//!
//! A run is a [turn](super::turn). What the client has of earlier runs comes from the events before it ([`Agui::past`]).

mod ends;
mod messages;
mod subagents;
#[cfg(test)]
mod tests;

use super::turn::{AGUI, End, Open, Speakers, Told, Turn, Usage, rest};
use messages::Messages;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman::machine::network::Network;
use steersman::machine::snapshot::Snapshot;
use steersman::machine::stored::ids::{Id, Line, Name, Time};
use steersman::{Called, Event, EventKind, How, PendingId, StopKind, Turn as Settled};
use subagents::{Owner, Step, Subagent};

/// The version of the protocol.
pub(crate) const VERSION: &str = "1.0";

/// Returns the id, in the inbox of a session, of a message of the client. Ids that are long or have other characters are replaced by
/// a digest, because the log keeps them.
pub(crate) fn message_id(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if (1..=64).contains(&id.len()) && id.chars().all(is_plain) {
        return format!("{AGUI}message/{id}");
    }
    let digest = blake3::hash(id.as_bytes()).to_hex();
    format!("{AGUI}message/~{}", &digest[..32])
}

/// Returns the id of the message of the client that an id in the inbox stands for.
fn client_id(message: &str) -> Option<&str> {
    let id = message.strip_prefix(AGUI)?.strip_prefix("message/")?;
    (!id.starts_with('~')).then_some(id)
}

/// Returns the id, in the inbox of a session, of an answer to an interrupt.
pub(crate) fn resume_id(question: PendingId, answer: &str) -> String {
    let digest = blake3::hash(answer.as_bytes()).to_hex();
    format!("{AGUI}resume/{question}/{}", &digest[..16])
}

/// Returns the question that a message of the inbox answers as an interrupt.
pub(crate) fn resumed(message: &str) -> Option<PendingId> {
    let rest = message.strip_prefix(AGUI)?.strip_prefix("resume/")?;
    rest.split('/').next()?.parse().ok()
}

/// The fixed parts of a run.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The id of the session.
    pub(crate) session: Arc<str>,
    /// The first line of the run.
    pub(crate) line: Line,
    /// The id of the thread, as the client names it.
    pub(crate) thread: String,
    /// The id of the run, as the client names it.
    pub(crate) run: String,
    /// The run from which the client says that this one came.
    pub(crate) parent: Option<String>,
    /// The definition.
    pub(crate) network: Arc<Network>,
    /// Roles in which the client may decide.
    pub(crate) roles: Vec<Name>,
    /// The address of the session in the console, if there is one.
    pub(crate) page: Option<String>,
    /// True if the client may have an incomplete copy of the conversation: then the whole is told first.
    pub(crate) attached: bool,
}

/// A text that streams.
#[derive(Clone, Debug)]
struct Text {
    attempt: u32,
    run: Option<Id>,
    told: String,
}

/// A run of AG-UI.
#[derive(Clone, Debug)]
pub(crate) struct Agui {
    form: Form,
    turn: Turn,
    speakers: Speakers,
    is_begun: bool,
    /// Time of the event at hand.
    at: Option<Time>,
    /// Line of the event at hand.
    line: Line,
    out: Vec<Json>,
    /// The agents as of the line at hand.
    snapshot: Snapshot,
    /// The state as of that line, and as it was told.
    state: Map<String, Json>,
    told_state: Map<String, Json>,
    messages: Messages,
    /// Complete texts since the last message of the user.
    said: Vec<Arc<str>>,
    texts: BTreeMap<Id, Text>,
    /// Reasoning that streams, by model call: the attempt, and the sub-agent.
    thoughts: BTreeMap<Id, (u32, Option<Id>)>,
    /// The message that the calls of an agent in the line at hand belong to.
    spoke: BTreeMap<Id, String>,
    /// Messages that the line at hand took.
    accepted: VecDeque<Name>,
    /// The questions of the conversation, with the sub-agents that asked them.
    asked: BTreeMap<PendingId, Option<Id>>,
    subagents: BTreeMap<Id, Subagent>,
    /// The call that each agent serves, or served last.
    serving: BTreeMap<Id, Id>,
    steps: Vec<Step>,
    usage: BTreeMap<Option<Name>, Usage>,
    /// The answer with which the session rested last.
    answer: Option<Arc<str>>,
    /// Number of texts that came with the end of the turn alone.
    last: u32,
}

impl Agui {
    /// Makes a run that has told nothing.
    pub(crate) fn new(form: Form, turn: Turn, speakers: Speakers) -> Self {
        Self {
            form,
            turn,
            speakers,
            is_begun: false,
            at: None,
            line: Line::NONE,
            out: Vec::new(),
            snapshot: Snapshot::empty(),
            state: Map::new(),
            told_state: Map::new(),
            messages: Messages::default(),
            said: Vec::new(),
            texts: BTreeMap::new(),
            thoughts: BTreeMap::new(),
            spoke: BTreeMap::new(),
            accepted: VecDeque::new(),
            asked: BTreeMap::new(),
            subagents: BTreeMap::new(),
            serving: BTreeMap::new(),
            steps: Vec::new(),
            usage: BTreeMap::new(),
            answer: None,
            last: 0,
        }
    }

    /// Returns the turn as far as it was told.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Hears the agents and the state as of a line, before the events of that line.
    pub(crate) fn line(&mut self, snapshot: Snapshot, state: Map<String, Json>) {
        self.snapshot = snapshot;
        self.state = state;
        self.serve();
    }

    /// Hears an event ahead of the run, on the way to its line.
    pub(crate) fn past(&mut self, event: &Event) {
        self.hear(event);
    }

    /// Returns the messages of an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Json> {
        if self.turn.end.is_some() {
            return Vec::new();
        }
        let told = self.turn.event(event);
        self.at = event.at;
        if told.contains(&Told::Begins) {
            self.begins();
        }
        if !self.is_begun {
            return Vec::new();
        }
        let settles = matches!(event.kind, EventKind::Settled(_));
        // An event that ends the turn without being its end belongs to the next one.
        if self.turn.end.is_none() || settles {
            self.change_state();
            let anywhere = settles || matches!(event.kind, EventKind::Used { .. });
            if anywhere || self.turn.branch() == Some(event.branch) {
                self.hear(event);
            }
        }
        if let Some(end) = self.turn.end.clone() {
            self.ends(&end);
        }
        std::mem::take(&mut self.out)
    }

    /// Returns the messages of a run whose message waits until something else is over.
    pub(crate) fn waits(&mut self, open: Vec<Open>) -> Vec<Json> {
        self.begins();
        let end = End::Waits(open);
        self.turn.end = Some(end.clone());
        self.ends(&end);
        std::mem::take(&mut self.out)
    }

    fn begins(&mut self) {
        self.is_begun = true;
        let Form {
            session,
            line,
            thread,
            run,
            parent,
            ..
        } = self.form.clone();
        let mut started = json!({
            "threadId": thread,
            "runId": run,
            "protocolVersion": VERSION,
            "metadata": { "steersman": { "session": session, "line": line.0 } },
        });
        if let Some(parent) = parent {
            started["parentRunId"] = parent.into();
        }
        self.tell("RUN_STARTED", started);
        self.tell_state();
        if self.form.attached {
            self.tell_messages();
        }
    }

    fn tell_state(&mut self) {
        self.told_state = self.state.clone();
        let snapshot = self.state.clone();
        self.tell("STATE_SNAPSHOT", json!({ "snapshot": snapshot }));
    }

    fn tell_messages(&mut self) {
        let messages = self.messages.all();
        self.tell("MESSAGES_SNAPSHOT", json!({ "messages": messages }));
    }

    /// Tells which entries of the state differ from what was told.
    fn change_state(&mut self) {
        let path = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let (told, state) = (&self.told_state, &self.state);
        let gone = told.keys().filter(|name| !state.contains_key(*name));
        let mut delta: Vec<Json> = gone
            .map(|name| json!({ "op": "remove", "path": path(name) }))
            .collect();
        for (name, value) in state {
            let op = match told.get(name) {
                Some(before) if before == value => continue,
                Some(_) => "replace",
                None => "add",
            };
            delta.push(json!({ "op": op, "path": path(name), "value": value }));
        }
        if !delta.is_empty() {
            self.told_state = self.state.clone();
            self.tell("STATE_DELTA", json!({ "delta": delta }));
        }
    }

    fn hear(&mut self, event: &Event) {
        if let Some(line) = event.line.filter(|line| *line != self.line) {
            self.line = line;
            self.spoke.clear();
            self.accepted.clear();
        }
        match &event.kind {
            EventKind::Accepted { message, .. } if resumed(message).is_none() => {
                self.accepted.push_back(message.clone());
            }
            EventKind::Heard { by, text, .. } => self.heard(event, by.as_ref(), text),
            EventKind::Earlier { by_agent, text, .. } => {
                let role = if *by_agent { "assistant" } else { "user" };
                let id = self.id(event.cursor);
                self.messages.open(&id, role, None);
                self.messages.write(&id, text);
            }
            EventKind::Piece { .. }
            | EventKind::Reasoning { .. }
            | EventKind::Withdrawn { .. }
            | EventKind::Said { .. }
            | EventKind::Finished { .. }
            | EventKind::Settled(_) => self.speaks(event),
            EventKind::Used {
                effect,
                model,
                input,
                cached,
                cache_write,
                output,
                reasoning,
                ..
            } => {
                if let Some(effect) = effect {
                    self.end_thought(*effect);
                }
                if self.is_begun {
                    let usage = self.usage.entry(model.clone()).or_default();
                    usage.input = usage.input.saturating_add(*input);
                    usage.cached = usage.cached.saturating_add(*cached);
                    usage.cache_write = usage.cache_write.saturating_add(*cache_write);
                    usage.output = usage.output.saturating_add(*output);
                    usage.reasoning = usage.reasoning.saturating_add(*reasoning);
                }
            }
            EventKind::Asked { question, .. } => {
                let run = event.agent_id.and_then(|agent| self.run_of(agent));
                self.asked.insert(*question, run);
            }
            _ => self.works(event),
        }
    }

    /// Tells calls, steps, progress and artifacts.
    fn works(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Called {
                call,
                name,
                target: Called::Agent,
                ..
            } => self.call_agent(event, *call, name),
            EventKind::Called {
                call,
                name,
                arguments,
                ..
            } => self.call(event, *call, name, arguments),
            EventKind::Ended {
                call,
                how,
                code,
                text,
                ..
            } => self.ended(event, *call, (*how, code.as_ref()), text),
            EventKind::Entered { state } => self.enter(event, state, false),
            EventKind::Mode { mode, .. } => self.enter(event, mode, true),
            EventKind::Progress {
                effect,
                done,
                total,
                message,
            } => {
                let mut content = json!({ "done": done });
                if self.messages.has_call(&self.id(effect)) {
                    content["toolCallId"] = self.id(effect).into();
                }
                if let Some(total) = total {
                    content["total"] = json!(total);
                }
                if let Some(message) = message {
                    content["message"] = json!(message);
                }
                let id = format!("{}/progress", self.id(effect));
                let run = self.tag(event);
                self.activity("PROGRESS", &id, &content, run);
            }
            EventKind::Artifact {
                call,
                name,
                media,
                len,
            } => {
                let session = &self.form.session;
                let path: String = form_path(name);
                let content = json!({
                    "name": name, "mediaType": media, "length": len, "toolCallId": self.id(call),
                    "url": format!("/v1/sessions/{session}/artifacts/{path}"),
                });
                let id = format!("{}/artifact", self.id(event.cursor));
                let run = self.tag(event);
                self.activity("ARTIFACT", &id, &content, run);
            }
            _ => {}
        }
    }

    /// Tells what a person says to an agent that talks with the user. The client has its own words already.
    fn heard(&mut self, event: &Event, by: Option<&Name>, text: &Arc<str>) {
        let from_agent = by.is_some_and(|by| self.form.network.agents.contains_key(by));
        if from_agent || !self.speakers.answers(event) {
            return;
        }
        if !self.is_begun {
            self.said.clear();
        }
        let message = self.accepted.pop_front();
        let own = message.as_deref().and_then(client_id);
        let id = own.map_or_else(|| self.id(event.cursor), str::to_owned);
        let is_own = message.is_some_and(|message| self.turn.is_own(&message));
        if self.is_begun && !is_own {
            self.tell(
                "TEXT_MESSAGE_START",
                json!({ "messageId": id, "role": "user" }),
            );
            self.tell(
                "TEXT_MESSAGE_CONTENT",
                json!({ "messageId": id, "delta": text }),
            );
            self.tell("TEXT_MESSAGE_END", json!({ "messageId": id }));
        }
        self.messages.open(&id, "user", None);
        self.messages.write(&id, text);
        if self.is_begun && is_own && self.form.attached {
            self.tell_messages();
        }
    }

    /// Tells what agents say.
    fn speaks(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Piece {
                effect,
                attempt,
                text,
            } => self.piece(event, (*effect, *attempt), text),
            EventKind::Reasoning {
                effect,
                attempt,
                text,
            } => self.thinks(event, (*effect, *attempt), text),
            EventKind::Withdrawn { effect, .. } => {
                self.end_thought(*effect);
                self.void(*effect);
            }
            EventKind::Said { effect, text, .. } => {
                self.end_thought(*effect);
                self.complete(event, *effect, text);
            }
            EventKind::Finished { ok, text, .. } => {
                self.leave(event);
                if *ok && self.speakers.answers(event) {
                    self.answer = Some(text.clone());
                    let id = self.id(event.cursor);
                    self.say_once(&id, text);
                }
            }
            EventKind::Settled(Settled::Answer(answer)) => {
                for text in answer.before().chain([answer.text()]) {
                    self.say_last(&text.into());
                }
                self.answer = Some(answer.text().into());
            }
            EventKind::Settled(Settled::Stopped(stop)) if stop.kind == StopKind::Limit => {
                self.say_last(&stop.message);
            }
            _ => {}
        }
    }

    fn piece(&mut self, event: &Event, (effect, attempt): (Id, u32), piece: &str) {
        let Some(Owner(run)) = self.speaker(event) else {
            return;
        };
        self.end_thought(effect);
        let before = self.texts.get(&effect);
        if before.is_some_and(|before| before.attempt != attempt) {
            self.void(effect);
        }
        let id = self.id(effect);
        if !self.texts.contains_key(&effect) {
            self.open(&id, run);
        }
        let text = self.texts.entry(effect).or_insert_with(|| Text {
            attempt,
            run,
            told: String::new(),
        });
        text.told.push_str(piece);
        self.write(&id, piece, run);
    }

    /// Tells the complete text of a message.
    fn complete(&mut self, event: &Event, effect: Id, text: &Arc<str>) {
        let Some(Owner(run)) = self.speaker(event) else {
            return;
        };
        let id = self.id(effect);
        let mut told = self.texts.get(&effect).map(|before| before.told.clone());
        if told.as_ref().is_some_and(|told| rest(told, text).is_none()) {
            self.void(effect);
            told = None;
        }
        let rest = match &told {
            Some(told) => rest(told, text).unwrap_or_default(),
            None if text.trim().is_empty() => return,
            None => {
                self.open(&id, run);
                text.to_string()
            }
        };
        self.texts.remove(&effect);
        self.write(&id, &rest, run);
        self.close(&id, Some(text), run);
        if run.is_none() {
            self.said.push(text.clone());
        }
        if let Some(agent) = event.agent_id {
            self.spoke.insert(agent, id);
        }
    }

    /// Takes a text back.
    fn void(&mut self, effect: Id) {
        let Some(text) = self.texts.remove(&effect) else {
            return;
        };
        let id = self.id(effect);
        self.close(&id, None, text.run);
        self.messages.remove(&id);
        self.tell_messages();
    }

    /// Tells a whole text unless it was told since the last message of the user.
    fn say_once(&mut self, id: &str, text: &Arc<str>) {
        let wanted = text.trim();
        let mut said = self.said.iter();
        if wanted.is_empty() || said.any(|said| said.trim() == wanted) {
            return;
        }
        self.said.push(text.clone());
        self.open(id, None);
        self.write(id, text, None);
        self.close(id, Some(text), None);
    }

    /// Tells a whole text that comes with the end of the turn.
    fn say_last(&mut self, text: &Arc<str>) {
        self.last += 1;
        let id = format!("{}/{}/end/{}", self.form.session, self.turn.head, self.last);
        self.say_once(&id, text);
    }

    fn thinks(&mut self, event: &Event, (effect, attempt): (Id, u32), text: &str) {
        let Some(Owner(run)) = self.speaker(event).filter(|_| self.is_begun) else {
            return;
        };
        let before = self.thoughts.get(&effect);
        if before.is_some_and(|(before, _)| *before != attempt) {
            self.end_thought(effect);
        }
        let id = format!("{}/reasoning/{attempt}", self.id(effect));
        if self.thoughts.insert(effect, (attempt, run)).is_none() {
            self.tell_of(run, "REASONING_START", json!({ "messageId": id }));
            let start = json!({ "messageId": id, "role": "reasoning" });
            self.tell_of(run, "REASONING_MESSAGE_START", start);
        }
        let content = json!({ "messageId": id, "delta": text });
        self.tell_of(run, "REASONING_MESSAGE_CONTENT", content);
    }

    fn end_thought(&mut self, effect: Id) {
        if let Some((attempt, run)) = self.thoughts.remove(&effect) {
            let id = format!("{}/reasoning/{attempt}", self.id(effect));
            for kind in ["REASONING_MESSAGE_END", "REASONING_END"] {
                self.tell_of(run, kind, json!({ "messageId": id }));
            }
        }
    }

    fn open(&mut self, id: &str, run: Option<Id>) {
        let owner = run.map(|run| self.id(run));
        self.messages.open(id, "assistant", owner);
        let start = json!({ "messageId": id, "role": "assistant" });
        self.tell_of(run, "TEXT_MESSAGE_START", start);
    }

    fn write(&mut self, id: &str, text: &str, run: Option<Id>) {
        if !text.is_empty() {
            self.messages.write(id, text);
            let content = json!({ "messageId": id, "delta": text });
            self.tell_of(run, "TEXT_MESSAGE_CONTENT", content);
        }
    }

    fn close(&mut self, id: &str, text: Option<&str>, run: Option<Id>) {
        if let Some(text) = text {
            self.messages.set(id, text);
        }
        self.tell_of(run, "TEXT_MESSAGE_END", json!({ "messageId": id }));
    }

    fn call(&mut self, event: &Event, call: Id, name: &Name, arguments: &Json) {
        let run = self.tag(event);
        let id = self.id(call);
        let new = || format!("{}/calls/{call}", self.form.session);
        let parent = match event.agent_id {
            Some(agent) => self.spoke.entry(agent).or_insert_with(new).clone(),
            None => new(),
        };
        let arguments = arguments.to_string();
        let owner = run.map(|run| self.id(run));
        self.messages.call(&parent, owner, (&id, name, &arguments));
        let start = json!({ "toolCallId": id, "toolCallName": name, "parentMessageId": parent });
        self.tell_of(run, "TOOL_CALL_START", start);
        let args = json!({ "toolCallId": id, "delta": arguments });
        self.tell_of(run, "TOOL_CALL_ARGS", args);
        self.tell_of(run, "TOOL_CALL_END", json!({ "toolCallId": id }));
    }

    fn ended(&mut self, event: &Event, call: Id, how: (How, Option<&Name>), text: &Arc<str>) {
        if self.subagents.contains_key(&call) {
            self.end_agent(call, how, text);
            return;
        }
        let id = self.id(call);
        if !self.messages.has_call(&id) {
            return;
        }
        let run = self.tag(event);
        let owner = run.map(|run| self.id(run));
        let (how, code) = how;
        let fault = (!succeeded(how)).then(|| code.map_or("failed", |code| code));
        let message = format!("{id}/result");
        self.messages.result(&id, owner, (&message, text, fault));
        let mut result = json!({
            "messageId": message, "toolCallId": id, "content": text, "role": "tool",
        });
        if let Some(fault) = fault {
            result["metadata"] = json!({ "steersman": { "code": fault } });
        }
        self.tell_of(run, "TOOL_CALL_RESULT", result);
    }

    fn activity(&mut self, kind: &str, id: &str, content: &Json, run: Option<Id>) {
        let snapshot = json!({ "messageId": id, "activityType": kind, "content": content });
        self.tell_of(run, "ACTIVITY_SNAPSHOT", snapshot);
    }

    /// Returns the id of a thing of the session, as clients see it.
    fn id(&self, of: impl std::fmt::Display) -> String {
        format!("{}/{of}", self.form.session)
    }

    /// Tells a message of a sub-agent, or of the agent itself.
    fn tell_of(&mut self, run: Option<Id>, kind: &str, mut message: Json) {
        if let Some(run) = run {
            message["subagentRunId"] = self.id(run).into();
        }
        self.tell(kind, message);
    }

    fn tell(&mut self, kind: &str, mut message: Json) {
        if !self.is_begun {
            return;
        }
        message["type"] = kind.into();
        if let Some(at) = self.at {
            message["timestamp"] = at.0.into();
        }
        self.out.push(message);
    }
}

/// Returns true if a call did what it was made for.
fn succeeded(how: How) -> bool {
    matches!(how, How::Done | How::Simulated)
}

/// Returns a name as a part of a path.
fn form_path(name: &str) -> String {
    let mut path = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}
