//! A turn as protocols tell it: what follows one message of a client until the session settles. Its name is the line that took the
//! message.

use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman::machine::network::{AgentDef, Does, Network, RouteBy, Turns};
use steersman::machine::stored::ids::{Id, Line, Name, Time};
use steersman::{
    Called, Event, EventKind, How, PendingId, PendingKind, Question, Stop, StopKind,
    Turn as Settled,
};

/// The beginning of the ids of messages that OpenAI's protocols put into inboxes. Such a message begins a turn.
pub(crate) const MESSAGE: &str = "openai/";
/// The same for AG-UI.
pub(crate) const AGUI: &str = "agui/";
/// The same for the Model Context Protocol. A decision through a form goes on with the turn that asked, so its id is another one.
pub(crate) const MCP: &str = "mcp/";
/// The same for the Agent2Agent protocol. An answer to what a task asks goes on with the task.
pub(crate) const A2A: &str = "a2a/";

/// Returns true for the id of a message with which a client of a protocol begins a turn.
pub(crate) fn begins(message: &str) -> bool {
    [MESSAGE, AGUI, MCP, A2A]
        .iter()
        .any(|own| message.starts_with(own))
}

/// The agents whose words a client hears.
#[derive(Clone, Debug)]
pub(crate) struct Speakers {
    root: Id,
    /// Agents that talk with the user over several turns.
    dialogues: BTreeSet<Name>,
    /// Agents whose words are final when they are said: nobody judges them, and they have no declared form.
    plain: BTreeSet<Name>,
}

impl Speakers {
    /// Returns the speakers of a definition, under the agent that a session began with.
    pub(crate) fn of(network: &Network, root: Id) -> Self {
        let mut dialogues = BTreeSet::new();
        for (name, agent) in &network.agents {
            match &agent.does {
                Does::Route(route) => match &route.by {
                    RouteBy::Tasks(desk) => {
                        dialogues.extend(desk.tasks.iter().map(|task| task.agent.clone()));
                    }
                    RouteBy::Handoff(handoff) => dialogues.extend(handoff.to.keys().cloned()),
                    _ => {}
                },
                Does::Model(_) | Does::Run { .. } => {}
            }
            if agent.turns == Some(Turns::Dialogue) {
                dialogues.insert(name.clone());
            }
        }
        let talks = |agent: &AgentDef| agent.turns.is_none_or(|turns| turns == Turns::Dialogue);
        dialogues.retain(|name| network.agents.get(name).is_some_and(talks));
        let is_plain = |agent: &AgentDef| {
            let by_model = matches!(agent.does, Does::Model(_));
            by_model && agent.reflect.is_none() && agent.output.is_none()
        };
        let plain = network.agents.iter();
        let plain = plain.filter(|(_, agent)| is_plain(agent));
        Self {
            root,
            dialogues,
            plain: plain.map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Returns true if the agent talks with the user over several turns.
    pub(super) fn is_dialogue(&self, name: &str) -> bool {
        self.dialogues.contains(name)
    }

    /// Returns true if the words of this agent are final when they are said.
    pub(super) fn is_plain(&self, event: &Event) -> bool {
        (event.agent.as_ref()).is_some_and(|name| self.plain.contains(name))
    }

    /// Returns true if the ends of this agent's turns are answers to the client.
    pub(super) fn answers(&self, event: &Event) -> bool {
        event.agent_id == Some(self.root)
            || (event.agent.as_ref()).is_some_and(|name| self.dialogues.contains(name))
    }

    /// Returns true if the client hears each message of this agent.
    fn says(&self, event: &Event) -> bool {
        self.is_plain(event) && self.answers(event)
    }
}

/// A part of a turn, in the words of no protocol.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// The session took the message.
    Begins,
    /// A text begins.
    Opens,
    /// The text that is open goes on.
    More(String),
    /// The text that is open is void.
    Void,
    /// The text that is open is complete.
    Closes {
        /// The rest that was not told yet; `None` if what was told is not the beginning of the text.
        rest: Option<String>,
        /// The whole text.
        text: Arc<str>,
    },
    /// A tool was called.
    Calls {
        /// The id of the call.
        call: Id,
        /// The name of the tool.
        name: Name,
        /// The arguments, without secret ones.
        arguments: Json,
    },
    /// The call of a tool ended.
    Ends {
        /// The id of the call.
        call: Id,
        /// True if it succeeded.
        ok: bool,
        /// The result, or the reason why there is none.
        text: Arc<str>,
    },
}

/// A thing that is open at the end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Open {
    /// The address of the answer.
    pub(crate) id: PendingId,
    /// The kind of question.
    pub(crate) kind: PendingKind,
    /// The roles that may answer.
    pub(crate) roles: Vec<Name>,
    /// The text of the question.
    pub(crate) text: String,
    /// The tool whose call waits.
    pub(crate) tool: Option<Name>,
    /// The arguments of that call.
    pub(crate) arguments: Json,
    /// Answers to choose from. Empty if any answer is allowed.
    pub(crate) options: Vec<String>,
    /// Arguments that the decider may change, where that is known.
    pub(crate) edit: Vec<Name>,
    /// Time at which it ends by itself, where that is known.
    pub(crate) due: Option<Time>,
}

impl Open {
    /// Returns the first of these roles that may answer it.
    pub(crate) fn role<'r>(&self, roles: &'r [Name]) -> Option<&'r Name> {
        let any = self.roles.iter().any(|role| **role == *"any");
        roles.iter().find(|role| any || self.roles.contains(*role))
    }

    /// Returns true if it is allowed or refused; otherwise it is answered, or a person gives more than that.
    pub(crate) fn is_decided(&self) -> bool {
        matches!(
            self.kind,
            PendingKind::Approval | PendingKind::Budget | PendingKind::Repeat
        )
    }

    /// Returns the way to answer it from elsewhere: its page in the console, which is that of its session and its id, otherwise a command.
    pub(crate) fn address(&self, session: &str, page: Option<&str>) -> Option<String> {
        let (command, more) = match self.kind {
            PendingKind::Approval | PendingKind::Budget | PendingKind::Repeat => ("approve", ""),
            PendingKind::Question => ("answer", " \"...\""),
            PendingKind::Input => ("answer", ""),
            PendingKind::Doubt => ("resolve", ""),
            _ => return None,
        };
        if let Some(page) = page {
            return Some(format!("{page}/q/{}", self.id));
        }
        let role = self.roles.iter().find(|role| ***role != *"any");
        let role = role.filter(|role| ***role != *"user");
        let role = role.map_or_else(String::new, |role| format!(" --as {role}"));
        Some(format!(
            "steersman {command} {session} {}{more}{role}",
            self.id
        ))
    }
}

/// Returns the words of a question. If the server of a tool wants several fields, they say how to answer: front ends know one text.
fn words(question: &Question) -> String {
    let (text, needs) = (question.text(), &question.pending().needs);
    if question.kind() != PendingKind::Question || needs.len() < 2 {
        return text.to_owned();
    }
    let needs = needs.join(", ");
    format!("{text}\nThe answer is a JSON object with the fields {needs}.")
}

impl From<&Question> for Open {
    fn from(question: &Question) -> Self {
        Self {
            id: question.id(),
            kind: question.kind(),
            roles: question.pending().roles.clone(),
            text: words(question),
            tool: question.tool().map(Into::into),
            arguments: question.arguments(),
            options: question.options().to_vec(),
            edit: question.editable().map(Into::into).collect(),
            // After that time somebody else is asked, if the definition names one.
            due: question.due().filter(|_| question.pending().next.is_none()),
        }
    }
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// The session answered.
    Answered,
    /// People are asked.
    Asks(Vec<Open>),
    /// The session waits for events, times or an order.
    Waits(Vec<Open>),
    /// The session failed, or a limit ended it.
    Failed {
        /// The code of the failure or limit.
        code: Arc<str>,
        /// The message for people.
        message: String,
    },
    /// A person cancelled it.
    Cancelled,
}

/// The text of a turn that waits for nothing that a client could give.
pub(crate) const WAITS: &str =
    "The session waits: for an event, for a time, or, if it is paused, until somebody resumes it.";

/// Tokens of all model calls of a turn.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

/// A turn that is followed.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    line: Line,
    speakers: Speakers,
    /// The branch of the turn, once its line was told.
    branch: Option<Id>,
    /// Time of its line.
    pub(crate) began: Option<Time>,
    /// The last line of the turn on its branch.
    pub(crate) head: Line,
    /// The last line before that one.
    before: Line,
    pub(crate) usage: Usage,
    /// The end of the turn, once it is known.
    pub(crate) end: Option<End>,
    /// The text that streams: its model call, the attempt, and what was told of it.
    open: Option<(Id, u32, String)>,
    /// The complete texts that were told.
    said: Vec<Arc<str>>,
    /// Calls of tools.
    called: BTreeMap<Id, (Name, Json)>,
    asked: BTreeMap<Id, Open>,
    /// The way in which an agent that answers the client ended its turn last.
    rested: Option<Result<(), Failed>>,
    /// The messages of the turn.
    own: Vec<Name>,
    /// The line that took another message last.
    accepted: Line,
    /// True if nothing but other owners came since the turn went on. Then a settled state is the one from which it went on.
    is_as_before: bool,
}

/// Code and message of a failure.
type Failed = (Arc<str>, Arc<str>);

impl Turn {
    /// Makes the turn of a line. It hears the events of this line and all later ones.
    pub(crate) fn new(line: Line, speakers: Speakers) -> Self {
        Self {
            line,
            speakers,
            branch: None,
            began: None,
            head: line,
            before: line,
            usage: Usage::default(),
            end: None,
            open: None,
            said: Vec::new(),
            called: BTreeMap::new(),
            asked: BTreeMap::new(),
            rested: None,
            own: Vec::new(),
            accepted: Line::NONE,
            is_as_before: false,
        }
    }

    /// Adds messages of the same request, which later lines take.
    pub(crate) fn with(mut self, own: impl IntoIterator<Item = Name>) -> Self {
        self.own.extend(own);
        self
    }

    /// Returns true if the turn is about a message.
    pub(crate) fn is_own(&self, message: &str) -> bool {
        // The words of a rewind may be taken after it, under an id that begins with its own.
        let mut own = self.own.iter();
        own.any(|own| {
            let rest = message.strip_prefix(&**own);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Lets a turn that asks or waits go on: what comes later is told, too. A new owner of the session, which settles in the same state
    /// before it takes what came for it, does not end the turn again.
    pub(crate) fn goes_on(&mut self) {
        self.end = None;
        self.is_as_before = true;
    }

    /// Returns the branch of the turn, once its line was told.
    pub(crate) fn branch(&self) -> Option<Id> {
        self.branch
    }

    /// Returns what the event tells. After the end of the turn it is nothing.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Told> {
        let mut told = Vec::new();
        if self.end.is_some() || event.line.is_some_and(|line| line < self.line) {
            return told;
        }
        if let Some(line) = event.line {
            self.is_as_before &= matches!(event.kind, EventKind::Owner { .. });
            if self.branch.is_none() {
                self.branch = Some(event.branch);
                self.began = event.at;
                told.push(Told::Begins);
            }
            if self.is_next(line, event) {
                // The line may have begun with events that tell no message, such as a new owner.
                if self.head == line {
                    self.head = self.before;
                }
                self.closes(&mut told);
                self.end = Some(self.stands());
                return told;
            }
            if self.branch == Some(event.branch) && line > self.head {
                (self.before, self.head) = (self.head, line);
            }
        }
        match &event.kind {
            EventKind::Settled(_) if self.is_as_before => {}
            EventKind::Settled(settled) => self.settled(settled, &mut told),
            EventKind::Used {
                input,
                cached,
                cache_write,
                output,
                reasoning,
                ..
            } => {
                let usage = &mut self.usage;
                usage.input = usage.input.saturating_add(*input);
                usage.cached = usage.cached.saturating_add(*cached);
                usage.cache_write = usage.cache_write.saturating_add(*cache_write);
                usage.output = usage.output.saturating_add(*output);
                usage.reasoning = usage.reasoning.saturating_add(*reasoning);
            }
            _ if self.branch == Some(event.branch) => {
                self.speaks(event, &mut told);
                self.works(event, &mut told);
            }
            _ => {}
        }
        told
    }

    /// Returns true if the event belongs to the next turn: the session took another message, or left the branch.
    fn is_next(&mut self, line: Line, event: &Event) -> bool {
        if line == self.line {
            if let EventKind::Accepted { message, .. } = &event.kind {
                self.own.push(message.clone());
            }
            return false;
        }
        match &event.kind {
            EventKind::Accepted { message, .. } => {
                if self.is_own(message) {
                    return false;
                }
                self.accepted = line;
                begins(message)
            }
            EventKind::Heard { .. } => self.accepted == line && self.branch == Some(event.branch),
            EventKind::Superseded { of, .. } => self.branch == Some(*of),
            _ => false,
        }
    }

    /// Tells what agents say to the client.
    fn speaks(&mut self, event: &Event, told: &mut Vec<Told>) {
        match &event.kind {
            EventKind::Piece {
                effect,
                attempt,
                text,
            } if self.speakers.says(event) => {
                let is_new = match &self.open {
                    None => true,
                    Some((open, before, _)) if open == effect => before != attempt,
                    // Two speak at once. The other text follows whole.
                    Some(_) => return,
                };
                if is_new {
                    told.extend(self.open.take().map(|_| Told::Void));
                    told.push(Told::Opens);
                }
                let (_, _, so_far) = self
                    .open
                    .get_or_insert_with(|| (*effect, *attempt, String::new()));
                so_far.push_str(text);
                told.push(Told::More(text.clone()));
            }
            EventKind::Withdrawn { effect, .. }
                if self.open.as_ref().is_some_and(|(open, ..)| open == effect) =>
            {
                self.open = None;
                told.push(Told::Void);
            }
            EventKind::Said { effect, text, .. } if self.speakers.says(event) => {
                let before = self.open.take_if(|(open, ..)| open == effect);
                match before {
                    None if text.trim().is_empty() => {}
                    None => self.say(text, told),
                    Some((_, _, so_far)) => {
                        let rest = rest(&so_far, text);
                        let text = text.clone();
                        self.said.push(text.clone());
                        told.push(Told::Closes { rest, text });
                    }
                }
            }
            EventKind::Finished { ok, code, text, .. } if self.speakers.answers(event) => {
                if *ok {
                    self.say_once(text, told);
                    self.rested = Some(Ok(()));
                } else if event.agent_id == Some(self.speakers.root) {
                    let code = code.as_deref().unwrap_or("failed");
                    self.rested = Some(Err((code.into(), text.clone())));
                }
            }
            _ => {}
        }
    }

    /// Tells which tools are called, and remembers what is asked.
    fn works(&mut self, event: &Event, told: &mut Vec<Told>) {
        match &event.kind {
            EventKind::Called {
                call,
                name,
                target: Called::Tool,
                arguments,
            } => {
                let (call, name, arguments) = (*call, name.clone(), arguments.clone());
                self.called.insert(call, (name.clone(), arguments.clone()));
                told.push(Told::Calls {
                    call,
                    name,
                    arguments,
                });
            }
            EventKind::Ended {
                call, how, text, ..
            } => {
                self.asked.remove(call);
                if self.called.contains_key(call) {
                    told.push(Told::Ends {
                        call: *call,
                        ok: matches!(how, How::Done | How::Simulated),
                        text: text.clone(),
                    });
                }
            }
            EventKind::Asked {
                question,
                kind,
                by,
                text,
            } => {
                let (tool, arguments) = self.called.get(&question.effect).cloned().unzip();
                let open = Open {
                    id: *question,
                    kind: *kind,
                    roles: by.clone(),
                    text: text.to_string(),
                    tool,
                    arguments: arguments.unwrap_or_default(),
                    options: Vec::new(),
                    edit: Vec::new(),
                    due: None,
                };
                self.asked.insert(question.effect, open);
            }
            EventKind::Decided { effect, .. } => {
                self.asked.remove(effect);
            }
            _ => {}
        }
    }

    fn settled(&mut self, settled: &Settled, told: &mut Vec<Told>) {
        self.closes(told);
        let all = |open: &[Question]| open.iter().map(Open::from).collect();
        self.end = Some(match settled {
            Settled::Answer(answer) => {
                for text in answer.before().chain([answer.text()]) {
                    self.say_once(&text.into(), told);
                }
                End::Answered
            }
            Settled::Asks(asked) => End::Asks(all(asked)),
            Settled::Waits(awaited) => End::Waits(all(awaited)),
            Settled::Stopped(stop) => {
                if stop.kind == StopKind::Limit {
                    self.say_once(&stop.message, told);
                }
                stopped(stop)
            }
        });
    }

    /// Returns the end of the turn as far as its lines say.
    fn stands(&self) -> End {
        match &self.rested {
            Some(Err((code, _))) if **code == *"cancelled" => End::Cancelled,
            Some(Err((code, message))) => stopped(&Stop {
                kind: StopKind::Failed,
                code: code.clone(),
                message: message.clone(),
            }),
            _ if !self.asked.is_empty() => End::Asks(self.asked.values().cloned().collect()),
            Some(Ok(())) => End::Answered,
            None => End::Waits(Vec::new()),
        }
    }

    /// Tells a whole text.
    fn say(&mut self, text: &Arc<str>, told: &mut Vec<Told>) {
        self.closes(told);
        self.said.push(text.clone());
        let (rest, text) = (Some(text.to_string()), text.clone());
        told.extend([Told::Opens, Told::Closes { rest, text }]);
    }

    /// Tells a whole text unless it was told in this turn.
    fn say_once(&mut self, text: &Arc<str>, told: &mut Vec<Told>) {
        let wanted = text.trim();
        let mut said = self.said.iter();
        if !(wanted.is_empty() || said.any(|said| said.trim() == wanted)) {
            self.say(text, told);
        }
    }

    /// Completes the text that is open with what was told of it.
    fn closes(&mut self, told: &mut Vec<Told>) {
        if let Some((_, _, text)) = self.open.take() {
            let (rest, text) = (Some(String::new()), text.into());
            told.push(Told::Closes { rest, text });
        }
    }
}

/// Returns the rest of a text whose beginning was told; `None` if it begins in another way. Space around it does not count.
pub(super) fn rest(so_far: &str, text: &str) -> Option<String> {
    let (told, whole) = (so_far.trim_start(), text.trim_start());
    if let Some(rest) = whole.strip_prefix(told) {
        return Some(rest.to_owned());
    }
    (told.trim_end() == whole.trim_end()).then(String::new)
}

fn stopped(stop: &Stop) -> End {
    match stop.kind {
        StopKind::Cancelled => End::Cancelled,
        StopKind::Paused => End::Waits(Vec::new()),
        StopKind::Limit | StopKind::Failed => End::Failed {
            code: stop.code.clone(),
            message: stop.to_string(),
        },
    }
}
