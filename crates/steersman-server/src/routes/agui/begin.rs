//! The beginning of a run: what is new in the request is put into the session, or the last run is found.

use super::running::{Running, Told};
use super::{Entry, Input, Message, Refusal, Status};
use crate::ask::Asked;
use crate::caller::Caller;
use crate::conversation::Went;
use crate::problem::{Code, Problem};
use crate::protocol::agui::{message_id, resume_id, resumed};
use crate::protocol::turn::{AGUI, Open};
use crate::routes::questions::How as Happened;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use steersman::machine::stored::by::By as Person;
use steersman::machine::stored::commit::{LedgerEntry, LogLine};
use steersman::machine::stored::ids::{Id, Line, Name};
use steersman::machine::stored::interaction::{End, How, Interaction};
use steersman::runtime::engine::EngineError;
use steersman::runtime::store::{SessionId, StoreError};
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::{
    Act, CancelWhat, ChatHistory, Error, Fate, Network, PendingId, PendingKind, StartOptions,
};

/// A request whose run begins.
pub(super) struct Begin<'a> {
    pub(super) caller: &'a Caller,
    pub(super) asked: &'a Asked,
    pub(super) network: &'a Network,
    pub(super) session: &'a SessionId,
    pub(super) input: &'a Input,
    /// Roles in which the client may decide.
    pub(super) roles: Vec<Name>,
}

/// The part of the conversation that is new.
enum New {
    Nothing,
    /// A text under this id.
    Text(String, String),
    /// A message that is in the inbox already.
    Lies(String),
}

impl Begin<'_> {
    /// Says what is new, and returns the run that follows.
    pub(super) async fn run(&self) -> Result<Running, Refusal> {
        self.check()?;
        let log = self.log().await?;
        let open = match &log {
            Some(_) => self.caller.asked(self.session).await?,
            None => Vec::new(),
        };
        let acts = self.resume(&open, log.as_ref())?;
        let new = self.said(log.as_ref()).await?;
        let mine = open.iter().filter(|open| self.may(open));
        let mine: Vec<String> = mine.map(|open| open.id.to_string()).collect();
        if acts.is_empty() && !mine.is_empty() && !matches!(new, New::Nothing) {
            let why = format!(
                "the thread asks first: answer its interrupts in `resume`: {}",
                mine.join(", ")
            );
            return Err(Refusal::new("resume_required", why));
        }
        if log.is_none() {
            if matches!(new, New::Nothing) {
                let why = "nothing new is said, and the thread has no run: end with a message of the user";
                return Err(Refusal::new("nothing_new", why));
            }
            self.create().await?;
        }
        if acts.is_empty() && matches!(new, New::Nothing) {
            return self.last().await;
        }
        self.put(acts, new).await
    }

    /// Refuses what a session does not take from a client.
    fn check(&self) -> Result<(), Refusal> {
        if self.input.tools.iter().flatten().next().is_some() {
            let why = "`tools`: a session has the tools of its definition, and calls none of the client: leave them out";
            return Err(Refusal::new("tools_unsupported", why));
        }
        let is_prompt = |message: &&Message| {
            matches!(&*message.role, "system" | "developer") && !message.content.is_null()
        };
        if let Some(prompt) = self.input.messages.iter().find(is_prompt)
            && !text(prompt)?.trim().is_empty()
        {
            let why = "prompts are those of the definition: leave out messages of `system` and `developer`";
            return Err(Refusal::new("prompt_unsupported", why));
        }
        Ok(())
    }

    fn may(&self, open: &Open) -> bool {
        open.kind.is_asked() && open.role(&self.roles).is_some()
    }

    /// Reads the log of the session. `None` if there is no session.
    async fn log(&self) -> Result<Option<Log>, Refusal> {
        let store = self.caller.steersman.engine().store();
        match store.head(self.session).await {
            Ok(_) => {}
            Err(StoreError::NoSession(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let reader = Stored::plain(self.caller.steersman.engine(), self.session);
        Ok(Some(Log::read(&reader).await?))
    }

    /// Returns what the client says behind the last message of the assistant and the session has not heard. Several messages are one.
    async fn said(&self, log: Option<&Log>) -> Result<New, Refusal> {
        let messages = &self.input.messages;
        let last = messages
            .iter()
            .rposition(|message| message.role == "assistant");
        let tail = &messages[last.map_or(0, |last| last + 1)..];
        let mut said: Vec<&Message> = Vec::new();
        let (mut lies, mut refused) = (None, None);
        for message in tail.iter().filter(|message| message.role == "user") {
            let id = message_id(&message.id);
            let is_known = log.is_some() && !message.id.is_empty();
            let found = if is_known {
                self.caller.found(self.session, Line::NONE, &id).await
            } else {
                Ok(None)
            };
            refused = None;
            match found {
                Ok(None) => {
                    said.push(message);
                    continue;
                }
                Ok(Some(fate)) => lies = matches!(fate, Fate::Lies).then_some(id),
                Err(problem) if problem.code() == Code::Refused.told().0 => refused = Some(problem),
                Err(problem) => return Err(problem.into()),
            }
            // The session knows everything before a message that it has.
            said.clear();
        }
        if let Some(problem) = refused {
            return Err(problem.into());
        }
        let mut texts = Vec::new();
        for message in &said {
            let text = text(message)?;
            if !text.trim().is_empty() {
                texts.push(text);
            }
        }
        Ok(match (said.last(), lies) {
            (Some(last), _) if !texts.is_empty() => {
                if last.id.is_empty() {
                    let why =
                        "a message has no `id`, so it cannot be recognised when it is sent again";
                    return Err(Refusal::new("body", why));
                }
                New::Text(message_id(&last.id), texts.join("\n\n"))
            }
            (_, Some(id)) => New::Lies(id),
            _ => New::Nothing,
        })
    }

    /// Starts the session of the thread. What was said elsewhere precedes it.
    async fn create(&self) -> Result<(), Refusal> {
        let messages = &self.input.messages;
        let last = messages
            .iter()
            .rposition(|message| message.role == "assistant");
        let earlier = &messages[..last.map_or(0, |last| last + 1)];
        let mut history = Vec::new();
        for message in earlier {
            history.extend(chat(message)?);
        }
        let history = ChatHistory::from_messages(history).map_err(|error| {
            let why = format!("the conversation so far: {error}");
            Problem::new(Code::Body, why).help(error.fix.clone())
        })?;
        let options = StartOptions {
            id: Some(self.session.clone()),
            history,
            by: self.caller.by(None)?.named().cloned(),
            trace: self.asked.trace,
            ..StartOptions::default()
        };
        let created = self.caller.steersman.create(self.network, options).await;
        match created {
            Ok(_) => Ok(()),
            // Another request of the thread was faster.
            Err(Error::Engine(EngineError::Store(StoreError::Conflict(other))))
                if other == *self.session =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts answers and a message into the session, and returns the run that begins with the first line that takes one of them.
    async fn put(&self, acts: Vec<(String, Act)>, new: New) -> Result<Running, Refusal> {
        let (caller, session) = (self.caller, self.session);
        let mut own: Vec<Name> = acts.iter().map(|(id, _)| id.as_str().into()).collect();
        let mut lines: Vec<Line> = Vec::new();
        let message = match new {
            New::Nothing => None,
            New::Lies(id) => Some(id),
            New::Text(id, text) => {
                // It is in the inbox before the answers are, so that the session does not rest between them.
                let act = self.say(&text).await?.with_id(&id);
                let act = match self.asked.trace {
                    Some(trace) => act.traced(&trace.to_string()),
                    None => act,
                };
                let receipt = caller.steersman.deliver(session, act).await?;
                if let Fate::Refused(why) = receipt.fate {
                    let why = caller.masked(session, &why).await?;
                    return Err(Refusal::new("refused", why));
                }
                Some(id)
            }
        };
        for act in acts {
            let went = caller.takes(session, vec![act], false, self.asked);
            if let Went::Taken(line) = went.await? {
                lines.push(line);
            }
        }
        let mut waits = false;
        if let Some(id) = message {
            own.push(id.as_str().into());
            let until = caller.deadline();
            match caller.later(session, &id, true, until).await? {
                Went::Taken(line) => lines.push(line),
                Went::Waits(_) => waits = true,
            }
        }
        lines.sort_unstable();
        let line = lines.first().copied();
        let told = Told {
            line: match line {
                Some(line) => line,
                None => caller.steersman.engine().store().head(session).await?,
            },
            settles: lines.last().copied().unwrap_or(Line::NONE),
            own,
            attached: false,
            // An answer of this request goes on, and ends the run by itself.
            waits: waits && line.is_none(),
        };
        Running::new(self, told).await
    }

    /// Returns the message of the client, with the entries of the state that it changes.
    async fn say(&self, text: &str) -> Result<Act, Refusal> {
        let by = self.caller.by(None)?;
        let mut wanted: Map<String, Value> = match &self.input.state {
            Value::Object(state) => state.clone(),
            _ => Map::new(),
        };
        if let Some(context) = self.input.context.as_ref().filter(|all| !all.is_empty()) {
            wanted.insert("context".to_owned(), json!(context));
        }
        let writes = self.writes(wanted, &by).await?;
        let act = Act::say(text, Some(by), None);
        if writes.is_empty() {
            return Ok(act);
        }
        let entries = writes.iter().map(|(name, value)| (&**name, value));
        Ok(act.with_state(entries))
    }

    /// Returns those values that differ from the state, of entries that name a role of the token under `by`.
    async fn writes(
        &self,
        mut wanted: Map<String, Value>,
        by: &Person,
    ) -> Result<Map<String, Value>, Refusal> {
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let engine = self.caller.steersman.engine();
        let seen = engine.inspect(self.session).await?;
        let known = engine.secrets_of(self.session).await?;
        let snapshot = seen.current_branch().map(|branch| &branch.snapshot);
        let root = snapshot.and_then(|snapshot| snapshot.root);
        let checked = self.network.checked();
        let agent = root.and_then(|root| snapshot?.agents.get(&root));
        let def = agent.map(|agent| &agent.def).or(checked.entry.first());
        let Some(def) = def.and_then(|def| checked.agents.get(def)) else {
            return Ok(Map::new());
        };
        wanted.retain(|name, value| {
            let mut declared = def.state.iter();
            let declared = declared.find(|(declared, _)| **declared == **name);
            let may = declared.is_some_and(|(_, ty)| {
                let role = |name: &Name| {
                    let person = checked.people.get(name);
                    *person.map_or(name, |person| &person.role) == by.role
                };
                ty.by.iter().any(role)
            });
            let now = root.and_then(|root| snapshot?.state.get(&(root, name.as_str().into())));
            let mut now = now.map_or(Value::Null, |cell| (*cell.value.0).clone());
            // The client has masked values, and must not write them back.
            known.mask(&mut now);
            may && now != *value
        });
        Ok(wanted)
    }

    /// Returns the acts that the answers to interrupts are. A question that was decided meanwhile needs none.
    fn resume(&self, open: &[Open], log: Option<&Log>) -> Result<Vec<(String, Act)>, Refusal> {
        let mut acts = Vec::new();
        let mut covered: Vec<PendingId> = Vec::new();
        for entry in self.input.resume.iter().flatten() {
            let id = &entry.interrupt_id;
            let unknown = || {
                Refusal::new(
                    "unknown_interrupt",
                    format!("the thread has never asked `{}`", shown(id)),
                )
            };
            let question: PendingId = id.parse().map_err(|()| unknown())?;
            if let Some(open) = open.iter().find(|open| open.id == question) {
                if !self.may(open) {
                    let why = format!("the token may not decide `{question}`");
                    return Err(Refusal::new("role_not_yours", why));
                }
                covered.push(question);
                let answer = format!("{:?} {}", entry.status, entry.payload);
                let act = self.answer(open, entry)?;
                acts.extend(act.map(|act| (resume_id(question, &answer), act)));
                continue;
            }
            match log.and_then(|log| fate(log, question)) {
                None => return Err(unknown()),
                Some(Over::Expired) if entry.status == Status::Resolved => {
                    let why =
                        format!("the time to answer `{question}` is over: cancel it to go on");
                    return Err(Refusal::new("expired", why));
                }
                Some(_) => {}
            }
        }
        let missing = open.iter().filter(|open| self.may(open));
        let missing = missing.filter(|open| !covered.contains(&open.id));
        let missing: Vec<String> = missing.map(|open| open.id.to_string()).collect();
        if !covered.is_empty() && !missing.is_empty() {
            let why = format!(
                "`resume` answers all interrupts at once, and leaves out: {}",
                missing.join(", ")
            );
            return Err(Refusal::new("partial_resume", why));
        }
        Ok(acts)
    }

    /// Returns the act of an answer. `None` leaves the question open: a doubt is not given up because a window was closed.
    fn answer(&self, open: &Open, entry: &Entry) -> Result<Option<Act>, Refusal> {
        let role = open.role(&self.roles).map(|role| &**role);
        let by = self.caller.by(role)?;
        let unfit =
            |why: String| Refusal::new("payload", format!("the answer to `{}`: {why}", open.id));
        if entry.status == Status::Cancelled {
            return Ok(match open.kind {
                PendingKind::Doubt => None,
                PendingKind::Question => {
                    Some(Act::cancel(CancelWhat::Effect(open.id.effect), by, None))
                }
                _ => Some(Act::reject(open.id, Some("no answer was given"), by)),
            });
        }
        let read = |error: serde_json::Error| unfit(error.to_string());
        Ok(Some(match open.kind {
            PendingKind::Input => {
                let page = self.caller.page(self.session);
                let address = open.address(self.session, page.as_deref());
                let address = address.unwrap_or_default();
                let how = if page.is_some() { "at" } else { "with" };
                let why =
                    format!("a secret does not come through a form: give it {how} `{address}`");
                return Err(unfit(why));
            }
            PendingKind::Question => {
                let answer = match &entry.payload {
                    Value::String(text) => text.clone(),
                    payload => Answer::deserialize(payload).map_err(read)?.answer,
                };
                Act::answer(open.id, &answer, by)
            }
            PendingKind::Doubt => {
                let resolve = Resolve::deserialize(&entry.payload).map_err(read)?;
                Act::resolve(open.id, resolve.how.with(&resolve.result), by)
            }
            _ => {
                let decision = match &entry.payload {
                    Value::Bool(approved) => Decision {
                        approved: *approved,
                        ..Decision::default()
                    },
                    payload => Decision::deserialize(payload).map_err(read)?,
                };
                match (decision.approved, decision.changes(open).map_err(unfit)?) {
                    (false, _) => Act::reject(open.id, decision.reason.as_deref(), by),
                    (true, None) => Act::approve(open.id, by),
                    (true, Some(changes)) => Act::approve_edited(open.id, &changes, by),
                }
            }
        }))
    }

    /// Returns the last run of the thread, which is told again.
    async fn last(&self) -> Result<Running, Refusal> {
        let engine = self.caller.steersman.engine();
        let seen = engine.inspect(self.session).await?;
        let log = Log::read(&Stored::plain(engine, self.session)).await?;
        let head = seen
            .current_branch()
            .map_or(Line::NONE, |branch| branch.head);
        let root = seen
            .current_branch()
            .and_then(|branch| branch.snapshot.root);
        let taken = taken(&log.up_to(head), root);
        let Some(last) = taken.last() else {
            let why = "the thread has no run yet: end with a message of the user";
            return Err(Refusal::new("nothing_new", why));
        };
        let first = taken
            .windows(2)
            .rposition(|pair| !pair[1].joins(&pair[0]))
            .map_or(0, |at| at + 1);
        let told = Told {
            line: taken[first].line,
            settles: last.line,
            own: taken[first..]
                .iter()
                .map(|one| one.message.clone())
                .collect(),
            attached: true,
            waits: false,
        };
        Running::new(self, told).await
    }
}

/// A message of AG-UI that a line took.
struct Taken {
    line: Line,
    message: Name,
    /// True if the session rested since the one before.
    rested: bool,
}

impl Taken {
    /// Returns true if it came in the same request as the one before, or may have: then both are told together.
    fn joins(&self, before: &Self) -> bool {
        if resumed(&before.message).is_none() {
            return false;
        }
        match resumed(&self.message) {
            // It was asked before the request came.
            Some(question) => question.hold.unwrap_or(question.effect.line()) < before.line,
            None => !self.rested,
        }
    }
}

/// Returns the messages of AG-UI that these lines took.
fn taken(path: &[&Arc<LogLine>], root: Option<Id>) -> Vec<Taken> {
    let rests = |what: &Interaction| matches!(what, Interaction::Finished { end, .. } if *end != End::Draft);
    let (mut taken, mut rested) = (Vec::new(), false);
    for line in path {
        let refused = |id: &Name| {
            let mut entries = line.ledger.iter();
            entries
                .any(|entry| matches!(entry, LedgerEntry::Refused { message, .. } if message == id))
        };
        for entry in &line.ledger {
            if let LedgerEntry::Accepted { message, .. } = entry
                && message.starts_with(AGUI)
                && !refused(message)
            {
                taken.push(Taken {
                    line: line.n,
                    message: message.clone(),
                    rested: std::mem::take(&mut rested),
                });
            }
        }
        let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
        let mut pushes = pushes.filter(|push| Some(push.agent) == root);
        rested |= pushes.any(|push| rests(&push.what));
    }
    taken
}

/// The way in which a question ended.
enum Over {
    Decided,
    Expired,
}

/// Returns what became of a question that is not open. `None` if it never was.
fn fate(log: &Log, id: PendingId) -> Option<Over> {
    let entries = || {
        let lines = log.lines.iter();
        lines.flat_map(|line| line.ledger.iter().map(move |entry| (line.n, entry)))
    };
    let pushes = || {
        let commits = log.lines.iter().filter_map(|line| line.commit.as_ref());
        commits.flat_map(|commit| &commit.pushes)
    };
    let was_asked = match id.hold {
        Some(at) => entries().any(|(line, entry)| matches!(entry, LedgerEntry::Hold(hold) if line == at && hold.effect == id.effect)),
        None => pushes().any(|push| matches!(&push.what, Interaction::Call(call) if call.id == id.effect)),
    };
    if !was_asked {
        return None;
    }
    let by_time = entries().any(|(_, entry)| {
        matches!(entry, LedgerEntry::Released { effect, by, .. } if *effect == id.effect && by.word() == "timeout")
    });
    let is_expired = pushes().any(|push| {
        matches!(&push.what, Interaction::Result(result) if result.call == id.effect && result.how == How::Expired)
    });
    Some(if by_time || is_expired {
        Over::Expired
    } else {
        Over::Decided
    })
}

/// The answer to an approval.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Decision {
    approved: bool,
    reason: Option<String>,
    edited_args: Option<Map<String, Value>>,
    more: Option<Value>,
}

impl Decision {
    /// Returns the arguments that differ from those of the call, or the amount of a budget.
    fn changes(&self, open: &Open) -> Result<Option<Value>, String> {
        if let Some(more) = &self.more {
            if open.kind != PendingKind::Budget {
                return Err("`more` answers a question about a budget".to_owned());
            }
            return Ok(Some(json!({ "more": more })));
        }
        let edited = self.edited_args.iter().flatten();
        let changed = edited.filter(|(name, value)| open.arguments.get(name) != Some(value));
        let changed: Map<String, Value> = changed
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some(name) = changed
            .keys()
            .find(|name| open.edit.iter().all(|edit| **edit != ***name))
        {
            return Err(format!("the argument `{}` may not be changed", shown(name)));
        }
        Ok((!changed.is_empty()).then_some(Value::Object(changed)))
    }
}

/// The answer to a question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    answer: String,
}

/// The answer to a doubt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolve {
    how: Happened,
    #[serde(default)]
    result: Value,
}

/// Returns the text of a message.
fn text(message: &Message) -> Result<String, Refusal> {
    let unfit =
        |why: &str| Refusal::new("body", format!("message `{}`: {why}", shown(&message.id)));
    match &message.content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part["type"].as_str() {
                Some("text") => Ok(part["text"].as_str().unwrap_or_default()),
                _ => Err(unfit(
                    "a part is no text; send files with POST /v1/sessions/{session}/messages",
                )),
            });
            Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(unfit("`content` is a text or a list of parts")),
    }
}

/// Returns a message in the form of a history. `None` is one that a history does not have.
fn chat(message: &Message) -> Result<Option<Value>, Refusal> {
    let mut chat = json!({ "role": message.role, "content": text(message)? });
    match &*message.role {
        "user" => {}
        "assistant" => {
            if let Some(calls) = &message.tool_calls {
                chat["tool_calls"] = calls.clone();
            }
        }
        "tool" => chat["tool_call_id"] = json!(message.tool_call_id),
        _ => return Ok(None),
    }
    Ok(Some(chat))
}

/// Returns a text of the client that is safe to show.
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
