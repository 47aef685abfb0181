//! Explains an act: the chain of its causes, from the log alone. Each step names its line; no model is asked and no
//! expression is evaluated again. Texts of rules and guards are read from the definition that was bound at that line.

mod facts;
mod guards;
mod past;
mod walk;

pub use past::Past;

use crate::shown;
use crate::words::{Word, arguments, line as one_line, speaker};
use past::Place;
use serde::{Deserialize, Serialize};
use steersman_machine::network::{Does, RouteBy};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{LedgerEntry, LogLine, Want};
use steersman_machine::stored::engine::Judged;
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Time};
use steersman_machine::stored::interaction::{
    Call, CallResult, Cause, Choice, Earlier, End, How, Interaction, Origin, Target,
};
use steersman_machine::stored::words::how_word;

/// Maximum number of characters of a text; `show` and `log` have all of it.
const TEXT: usize = 400;

/// One step of the chain.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Step {
    /// The line of the step.
    pub line: u64,
    /// The time of that line.
    #[serde(serialize_with = "shown::time", deserialize_with = "shown::read::time")]
    pub at: Time,
    /// The kind of step: `call`, `answer`, `asked`, `route`, `result`, `message`, `draft`, `end`, `summary`, and `earlier` for
    /// decisions that are left out.
    pub kind: Word,
    /// The actor: an agent, `you`, a role, `engine` or `net`; `?` if the log does not say.
    pub who: String,
    /// The step in words.
    pub text: String,
    /// The id of the call or effect.
    pub id: Option<String>,
    /// Facts that were recorded about it.
    pub facts: Vec<Fact>,
}

/// A further fact that was recorded about a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Fact {
    /// The kind of fact, such as `model`, `held`, `attempt` or `rule`. People read its [`Fact::title`].
    pub word: Word,
    /// The fact in words.
    pub text: String,
}

impl Fact {
    fn new(word: &'static str, text: impl Into<String>) -> Self {
        Self {
            word: word.into(),
            text: text.into(),
        }
    }

    /// Returns the kind as people read it in front of the text.
    pub fn title(&self) -> &str {
        match &*self.word {
            CAME_TO => "result",
            "since" => "put off",
            "try" => "rejected",
            word => word,
        }
    }
}

/// The kind of the fact that says how a call ended.
const CAME_TO: &str = "came to";

/// The act to explain.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// An interaction on a stack.
    Push(Place),
    /// A model call without an answer so far.
    Asked(Id),
}

impl Past<'_> {
    /// Returns the acts of a line, the most important last: the model calls that it asked for, then its interactions. User
    /// messages, results, and ends that only repeat an answer are left out, unless the line has nothing else. For a line with
    /// only ledger entries, the acts that these are about.
    pub fn acts(&self, line: &LogLine) -> Vec<Act> {
        let mut acts: Vec<Act> = Vec::new();
        if let Some(commit) = &line.commit {
            let pushed = commit.pushes.iter().enumerate();
            let did = pushed.filter(|(_, push)| {
                !matches!(
                    push.what,
                    Interaction::UserMessage { .. } | Interaction::Result(_)
                )
            });
            let did = did
                .map(|(k, _)| Place { line: line.n, k })
                .filter(|place| !self.is_told(*place));
            acts.extend(did.map(Act::Push));
            if acts.is_empty() && commit.wished.is_empty() && !commit.pushes.is_empty() {
                acts.push(Act::Push(Place {
                    line: line.n,
                    k: commit.pushes.len() - 1,
                }));
            }
            // A model call is the least important act of a line, so it comes first.
            let steps = commit
                .wished
                .iter()
                .filter(|wished| wished.what == Want::Step);
            acts.splice(0..0, steps.map(|wished| Act::Asked(wished.id)));
        } else {
            let effects = line.ledger.iter().filter_map(effect_of);
            acts.extend(effects.filter_map(|effect| self.of_effect(effect)));
        }
        acts
    }

    /// Returns true if an end only repeats the model's answer before it.
    fn is_told(&self, place: Place) -> bool {
        let what = |place: Place| self.push(place).map(|push| &push.what);
        let Some(Interaction::Finished {
            end: End::Turn | End::Task,
            cause: Cause::Answer,
            body,
            ..
        }) = what(place)
        else {
            return false;
        };
        let below = self.before(place).filter(|below| below.line == place.line);
        // An agent that judges its own draft may end with another text than its last message.
        matches!(
            below.and_then(what),
            Some(Interaction::AssistantMessage { text: Some(text), .. }) if Some(*text) == *body
        )
    }

    /// Returns the act that an effect belongs to.
    pub fn of_effect(&self, effect: Id) -> Option<Act> {
        match self.wished(effect)?.what {
            Want::Call(call) => self.call(call).map(Act::Push),
            Want::Step => Some(self.answered(effect).map_or(Act::Asked(effect), Act::Push)),
        }
    }

    /// Describes an act in a few words, for a list of acts; also returns its id.
    pub fn short(&self, act: Act) -> (Option<Id>, String) {
        let step = self.step(act);
        let id = match act {
            Act::Push(place) => match self.push(place).map(|push| &push.what) {
                Some(Interaction::Call(call)) => Some(call.id),
                _ => None,
            },
            Act::Asked(effect) => Some(effect),
        };
        // The text of a model call has a subject of its own: `desk: its model was asked`.
        let colon = if matches!(act, Act::Asked(_)) {
            ":"
        } else {
            ""
        };
        (
            id,
            format!("{}{colon} {}", step.who, one_line(&step.text, 60)),
        )
    }

    // ---- one step --------------------------------------------------------------------------------------------

    /// Returns the step of a message that came with a conversation held elsewhere.
    fn earlier(&self, place: Place, who: &str, earlier: &Earlier) -> Step {
        let (kind, who, how, text) = match earlier {
            Earlier::User(body) => ("message", "user", "said", Some(*body)),
            Earlier::Assistant { text, .. } => ("answer", who, "answered", *text),
        };
        let text = text.map(|body| quoted(&self.texts().text(body)));
        let text = text.unwrap_or_else(|| "calls".to_owned());
        self.blank(
            place.line,
            kind,
            who,
            format!("{how} before this session: {text}"),
        )
    }

    fn step(&self, act: Act) -> Step {
        let place = match act {
            Act::Push(place) => place,
            Act::Asked(effect) => return self.asked(effect),
        };
        let Some(push) = self.push(place) else {
            return self.blank(place.line, "message", "?", "not in the log".to_owned());
        };
        let who = self.agent(push.agent);
        match &push.what {
            Interaction::UserMessage { from, body } => {
                let text = self.texts().text(*body);
                let (who, text) = self.message(push.agent, from, &text);
                let mut step = self.blank(place.line, "message", &who, text);
                if *from == Origin::Continuation {
                    step.facts.extend(self.since(place));
                }
                step
            }
            Interaction::AssistantMessage {
                effect,
                text,
                partial,
                ..
            } => {
                let said = text.map_or_else(
                    || "its model answered with calls".to_owned(),
                    |body| {
                        let cut = if *partial { ", cut off" } else { "" };
                        format!(
                            "its model answered{cut}: {}",
                            quoted(&self.texts().text(body))
                        )
                    },
                );
                let mut step = self.blank(place.line, "answer", &who, said);
                step.id = Some(effect.to_string());
                step.facts = self.of_model(*effect);
                step
            }
            Interaction::Call(call) => self.called(place, push.agent, call),
            Interaction::Result(result) => {
                let mut step = self.blank(place.line, "result", &who, self.came(result));
                step.id = Some(result.call.to_string());
                if let Some(by) = &result.by {
                    step.facts.push(Fact::new("by", by.to_string()));
                }
                step.facts.extend(self.code_of(result));
                step
            }
            Interaction::Route(route) => {
                let mut step = self.blank(
                    place.line,
                    "route",
                    &who,
                    self.chose(place, &route.chosen, route.refused),
                );
                step.id = route.effect.map(|effect| effect.to_string());
                step.facts = self.of_route(place, push.agent, route);
                step
            }
            Interaction::Earlier(earlier) => self.earlier(place, &who, earlier),
            Interaction::Summary(summary) => {
                let text = quoted(&self.texts().text(summary.body));
                self.blank(
                    place.line,
                    "summary",
                    &who,
                    format!("was summarized: {text}"),
                )
            }
            Interaction::Finished {
                end: End::Draft,
                body,
                ..
            } => {
                let said = body.map_or_else(String::new, |body| {
                    format!(": {}", quoted(&self.texts().text(body)))
                });
                self.blank(place.line, "draft", &who, format!("gave a draft{said}"))
            }
            Interaction::Finished {
                cause, body, code, ..
            } => self.finished(place, &who, *cause, *body, code.as_deref()),
        }
    }

    fn finished(
        &self,
        place: Place,
        who: &str,
        cause: Cause,
        body: Option<Body>,
        code: Option<&str>,
    ) -> Step {
        let said = body.map_or_else(String::new, |body| {
            format!(": {}", quoted(&self.texts().text(body)))
        });
        let how = match cause {
            Cause::Rounds => stands(code),
            cause => ended(cause).to_owned(),
        };
        let mut step = self.blank(place.line, "end", who, format!("{how}{said}"));
        if let Some(code) = code {
            let word = if matches!(cause, Cause::Limit | Cause::Rounds) {
                "limit"
            } else {
                "code"
            };
            step.facts.push(Fact::new(word, code.to_owned()));
        }
        step
    }

    fn blank(&self, line: Line, kind: &'static str, who: &str, text: String) -> Step {
        Step {
            line: line.0,
            at: Time(self.time(line)),
            kind: kind.into(),
            who: who.to_owned(),
            text,
            id: None,
            facts: Vec::new(),
        }
    }

    /// Returns the step of a model call, of an agent or a router.
    fn asked(&self, effect: Id) -> Step {
        let (line, who) = self
            .wished(effect)
            .map_or((Line::NONE, "?".to_owned()), |wished| {
                (wished.line, self.agent(wished.agent))
            });
        let text = match self.answered(effect) {
            Some(answer) => format!("its model was asked, and answered @{}", answer.line),
            None => "its model is asked, and has not answered".to_owned(),
        };
        let mut step = self.blank(line, "asked", &who, text);
        step.id = Some(effect.to_string());
        step.facts = self.of_model(effect);
        step
    }

    fn called(&self, place: Place, agent: Id, call: &Call) -> Step {
        let args = self.texts().text(call.args);
        let judged = call.judged().map(Judged::words);
        if let Some(what) = judged {
            let text = match call.target {
                Target::Tool(_) => format!("judged {what}"),
                _ => format!("asked {} to judge {what}", call.name),
            };
            let mut step = self.blank(place.line, "call", &self.agent(agent), text);
            step.id = Some(call.id.to_string());
            return step;
        }
        let name = call.called();
        let what = format!("{name}({})", one_line(&arguments(&args), TEXT));
        let text = match &call.target {
            Target::Agent(child) => {
                let child = self.agent(*child);
                let named = if *child == *name {
                    String::new()
                } else {
                    format!(" as {child}")
                };
                format!("called agent {what}{named}")
            }
            Target::Person(person) => format!("asked {person}: {what}"),
            Target::Wait => format!("waited: {what}"),
            Target::Branches(_) => format!("forked: {what}"),
            Target::Tool(class) => format!("called {what}, {}", class.word()),
            Target::Unknown => format!("wanted {what}"),
        };
        let mut step = self.blank(place.line, "call", &self.agent(agent), text);
        step.id = Some(call.id.to_string());
        step.facts = self.of_call(place, agent, call);
        step
    }

    fn message(&self, agent: Id, from: &Origin, text: &str) -> (String, String) {
        let said = quoted(text);
        let to = self.agent(agent);
        match from {
            Origin::Outside(by) => (speaker(by), format!("said to {to}: {said}")),
            Origin::Call(_) => (
                to,
                format!("was called with {}", one_line(&arguments(text), TEXT)),
            ),
            Origin::Agent(sender) => (self.agent(*sender), format!("told {to}: {said}")),
            Origin::Released(child) => (
                to,
                format!("got back from {}, unanswered: {said}", self.agent(*child)),
            ),
            Origin::Route => (
                "engine".to_owned(),
                format!("told {to} the text of its router: {said}"),
            ),
            Origin::Continuation => (to, format!("continued with the open request: {said}")),
            Origin::Correction => (
                "engine".to_owned(),
                format!("had {to} correct its answer: {said}"),
            ),
            Origin::Limit => (
                "engine".to_owned(),
                format!("told {to} that a limit is reached: {said}"),
            ),
            Origin::Reflect { of, tool } => {
                let what = match tool {
                    Some(tool) => format!("what {tool} gave (call {of})"),
                    None => format!("the draft of model call {of}"),
                };
                (
                    "engine".to_owned(),
                    format!("told {to} to judge {what}: {said}"),
                )
            }
            Origin::Conclude => (
                "engine".to_owned(),
                format!("wanted an answer of {to} now: {said}"),
            ),
            Origin::Net => ("net".to_owned(), format!("went on with {to}: {said}")),
        }
    }

    /// Returns the earlier decision by which a model put off the task that is resumed here.
    fn since(&self, place: Place) -> Option<Fact> {
        let mut at = self.before(place);
        while let Some(before) = at {
            match &self.push(before)?.what {
                Interaction::Route(route)
                    if route.effect.is_some()
                        && matches!(route.chosen, Choice::Task { goal: Some(_), .. }) =>
                {
                    let line = before.line;
                    let chose = self.chose(before, &route.chosen, route.refused);
                    return Some(Fact::new("since", format!("@{line}: the router {chose}")));
                }
                _ => at = self.before(before),
            }
        }
        None
    }

    /// Returns true if the router of this place lets its members pass the floor to each other.
    fn hands_over(&self, place: Place) -> bool {
        let agent = self.push(place).map(|push| push.agent);
        let def = agent.and_then(|agent| self.def(agent));
        let network = self.network(place.line);
        let of = def.and_then(|def| Some(&network?.agents.get(def)?.does));
        matches!(of, Some(Does::Route(route)) if matches!(route.by, RouteBy::Handoff(_)))
    }

    fn chose(&self, place: Place, choice: &Choice, refused: Option<Body>) -> String {
        if refused.is_some() {
            return "was given an answer that it could not use".to_owned();
        }
        match choice {
            Choice::Agents(names) => format!("chose {}", names.join(", then ")),
            Choice::Finish => "chose to end".to_owned(),
            Choice::Stay => "stayed in the state".to_owned(),
            Choice::Enter { state, .. } => format!("entered state {state}"),
            Choice::Speak { role, member } if role == member => format!("chose {member} to speak"),
            Choice::Speak { role, member } => format!("chose {member} to speak as {role}"),
            Choice::Say { member, body, .. } => {
                format!(
                    "said in the name of {member}: {}",
                    quoted(&self.texts().text(*body))
                )
            }
            Choice::Task { agent, .. } if self.hands_over(place) => {
                format!("gave the floor to {agent}")
            }
            Choice::Task { task, agent, goal } => {
                let by = if task == agent {
                    String::new()
                } else {
                    format!(", done by {agent}")
                };
                match goal.as_ref().filter(|goal| *goal != task) {
                    Some(goal) => format!("chose task {task}{by}, on the way to {goal}"),
                    None => format!("chose task {task}{by}"),
                }
            }
            Choice::Restate(None) => "found that nothing is left to be done".to_owned(),
            Choice::Restate(Some(body)) => {
                format!("found what is left: {}", quoted(&self.texts().text(*body)))
            }
            Choice::Answer(body) => {
                format!("answered itself: {}", quoted(&self.texts().text(*body)))
            }
        }
    }

    fn came(&self, result: &CallResult) -> String {
        let call = self.call(result.call).and_then(|place| self.push(place));
        let (name, is_agent) = match call.map(|push| &push.what) {
            Some(Interaction::Call(call)) => (
                call.called().to_string(),
                matches!(call.target, Target::Agent(_)),
            ),
            _ => ("a call".to_owned(), false),
        };
        let said = self.said_of(result);
        let said = said.map_or_else(String::new, |text| format!(": {}", quoted(&text)));
        if let Some(Interaction::Call(call)) = call.map(|push| &push.what)
            && let Some(judged) = call.judged()
        {
            let by = match call.target {
                Target::Tool(_) => "its own judgement".to_owned(),
                _ => format!("the judgement of {}", call.name),
            };
            let verdict = result.code.as_deref();
            let verdict = verdict.map_or_else(String::new, |code| format!(" ({code})"));
            return format!("got {by} on {}{verdict}{said}", judged.words());
        }
        match result.how {
            How::Done if is_agent => format!("got from {name}{said}"),
            How::Done => format!("saw the result of {name}{said}"),
            How::Finished => format!("saw that {name} ended{said}"),
            How::Released => format!("got the floor back from {name}{said}"),
            _ => format!("got the result of {name}: {}{said}", how(result)),
        }
    }

    /// Returns the code of a result, if it says more than the text. A judgement's text has it.
    fn code_of(&self, result: &CallResult) -> Option<Fact> {
        let code = result.code.as_deref()?;
        let call = self.call(result.call).and_then(|place| self.call_at(place));
        let is_judgement = call.is_some_and(|call| call.judged().is_some());
        (code != how(result) && !is_judgement).then(|| Fact::new("code", code))
    }

    /// Returns the text of a result. The engine's texts begin with how the call ended or with the code, which the reader sees already.
    fn said_of(&self, result: &CallResult) -> Option<String> {
        let text = self.texts().text(result.body?);
        let (how, code) = (how(result), result.code.as_deref());
        let begins = [Some(&*how), code].into_iter().flatten();
        let mut rest = begins.filter_map(|word| text.strip_prefix(word)?.strip_prefix(": "));
        Some(rest.next().unwrap_or(&text).to_owned())
    }
}

/// Returns how a call ended, in words.
fn how(result: &CallResult) -> String {
    how_word(result.how).replace('_', " ")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text, TEXT))
}

/// Returns the effect that a ledger entry is about.
pub(crate) fn effect_of(entry: &LedgerEntry) -> Option<Id> {
    match entry {
        LedgerEntry::Hold(hold) => Some(hold.effect),
        LedgerEntry::Released { effect, .. }
        | LedgerEntry::Started { effect, .. }
        | LedgerEntry::Done { effect, .. }
        | LedgerEntry::NotPerformed { effect, .. }
        | LedgerEntry::Unknown { effect, .. }
        | LedgerEntry::Late { effect, .. }
        | LedgerEntry::Again { effect, .. }
        | LedgerEntry::Spend { effect, .. }
        | LedgerEntry::Step { effect, .. }
        | LedgerEntry::Listed(effect)
        | LedgerEntry::WouldAsk(effect) => Some(*effect),
        LedgerEntry::Reach { of, .. } | LedgerEntry::Probe { of, .. } => Some(*of),
        LedgerEntry::Claimed { .. }
        | LedgerEntry::Accepted { .. }
        | LedgerEntry::Escrow { .. }
        | LedgerEntry::Settle { .. }
        | LedgerEntry::Opened { .. }
        | LedgerEntry::Ended(_)
        | LedgerEntry::Superseded { .. }
        | LedgerEntry::Current(_)
        | LedgerEntry::Adopted { .. }
        | LedgerEntry::Paused { .. }
        | LedgerEntry::Barred { .. }
        | LedgerEntry::Refused { .. }
        | LedgerEntry::Search { .. }
        | LedgerEntry::StoreAccepted { .. }
        | LedgerEntry::Recorded { .. }
        | LedgerEntry::Outage { .. }
        | LedgerEntry::More { .. }
        | LedgerEntry::Unbelievable { .. } => None,
    }
}

fn ended(cause: Cause) -> &'static str {
    match cause {
        Cause::Answer => "answered",
        Cause::Tool => "finished by a tool",
        Cause::Released => "gave the floor back",
        Cause::Routed => "ended, by its router",
        Cause::Leaf => "could go no further in dry mode",
        Cause::Limit => "ended at a limit",
        Cause::Failed => "failed",
        Cause::Cancelled => "was cancelled",
        Cause::Deadlock => "had nothing left to wait for",
        Cause::NoRule => "ended: no rule held",
        Cause::Rounds => "answered with its last draft",
    }
}

/// Describes why a draft became the answer although a reviewer had not accepted it.
fn stands(code: Option<&str>) -> String {
    let how = ended(Cause::Rounds);
    match code {
        Some(limit) if limit != Code::Rounds.text() => {
            format!("{how}: the limit `{limit}` was reached")
        }
        _ => format!("{how}, not judged again: its rounds were used up"),
    }
}
