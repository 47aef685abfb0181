//! A log as a story: what happened, row by row, in plain words.

mod choices;
mod holds;
mod ledger;
mod made;
mod memory;
pub(crate) mod modes;
mod reflection;
mod row;
mod search;

pub use row::{Row, Tone};

use crate::reader::Reader;
use crate::words::{arguments, count, span, speaker};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::questions::judgement;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{
    Admitted, Commit, LedgerEntry, LogLine, Probing, Push, Want,
};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Body, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{
    Call, CallResult, Cause, Earlier, End, How, Interaction, Origin, Target,
};
use steersman_runtime::engine::EngineError;

/// The actor, the text, the note and the tone of a row.
type Told = (String, String, String, Tone);

/// Reads lines in order and converts each into rows.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// Name of each agent: the one that its caller gave it, otherwise the one in the definition.
    agents: BTreeMap<Id, Name>,
    /// Name of each agent in the definition.
    defs: BTreeMap<Id, Name>,
    /// The definition that is bound at the current line. It explains changes of mode.
    network: Option<Arc<Network>>,
    parents: BTreeMap<Id, Id>,
    versions: made::Versions,
    calls: BTreeMap<Id, Opened>,
    /// The newest message of each agent, which a router may hand on unchanged.
    heard: BTreeMap<Id, Body>,
    /// The state of each agent's net on a branch, and the states that were entered in the current line.
    states: BTreeMap<(Id, Id), Name>,
    entered: BTreeMap<Id, Name>,
    /// Agents with a router.
    routed: BTreeSet<Id>,
    /// Extraction calls, each with its agent.
    extractions: BTreeMap<Id, Id>,
    /// Judgement calls, each with its agent and true if it judges arguments.
    reviews: BTreeMap<Id, (Id, bool)>,
    /// The call of each effect.
    effects: BTreeMap<Id, Id>,
    /// The start time of each call on a branch. It is removed after a hold and after a change of owner, because the time until
    /// then is not the call's own work.
    began: BTreeMap<(Id, Id), Time>,
    /// The agent of each step of a model that is not over.
    steps: BTreeMap<Id, Id>,
    branches: BTreeMap<Id, String>,
    /// The tools that probe, by the ids of the probes.
    probes: BTreeMap<Id, Name>,
    /// Calls whose doubt was resolved by a person or a probe.
    settled: BTreeSet<Id>,
    /// Effects that happened, by the ledger.
    done: BTreeSet<Id>,
    searches: BTreeMap<Id, search::Seen>,
    /// Branches of searches.
    searched: BTreeSet<Id>,
    /// Branches of searches whose lines get rows nevertheless.
    whole: BTreeSet<Id>,
    /// The rows that were withheld, by line, each with the line before it.
    untold: BTreeMap<Line, (Line, Vec<Row>)>,
    /// The process that owned the session last.
    owner: Option<Name>,
    now: Time,
    /// True if the story also shows the values that routers read.
    verbose: bool,
}

#[derive(Clone, Debug)]
struct Opened {
    agent: Id,
    name: Name,
    target: Target,
}

impl Story {
    /// Creates a story. `verbose` adds the values that routers read; otherwise the story shows only choices and their
    /// reasons.
    pub fn told(verbose: bool) -> Self {
        Self {
            verbose,
            ..Self::default()
        }
    }

    /// Converts a line into rows. Lines are given in order, from the first one on; `line` is a line of the reader, or one that
    /// [`Reader::arrived`] returned.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn line(
        &mut self,
        line: &LogLine,
        reader: &dyn Reader,
    ) -> Result<Vec<Row>, EngineError> {
        if let Some(network) = reader.bound(line).await? {
            self.bound(network);
        }
        let rows = self.tell(line, reader);
        reader.fault().map_or(Ok(rows), Err)
    }

    /// Converts a line into rows, with the texts of a log that was read.
    pub(crate) fn tell(&mut self, line: &LogLine, texts: &dyn Bodies) -> Vec<Row> {
        let mut rows = Vec::new();
        self.learn_search(line, texts);
        self.done.extend(holds::done(line));
        // The new owner, decisions and answers of probes come before what followed from them.
        let first = |entry: &LedgerEntry| match entry {
            LedgerEntry::Claimed { .. } => 0,
            LedgerEntry::Released { .. }
            | LedgerEntry::Probe {
                what: Probing::Said { .. },
                ..
            } => 1,
            _ => 2,
        };
        let mut ledger: Vec<&LedgerEntry> = line.ledger.iter().collect();
        ledger.sort_by_key(|entry| first(entry));
        let after = ledger.partition_point(|entry| first(entry) < 2);
        for entry in &ledger[..after] {
            self.entry(line, entry, texts, &mut rows);
        }
        if let Some(commit) = &line.commit {
            self.now = line.at;
            self.commit(line, commit, texts, &mut rows);
            self.chosen(line, commit, &mut rows);
        }
        for entry in &ledger[after..] {
            self.entry(line, entry, texts, &mut rows);
        }
        self.only_search(line, &mut rows);
        rows
    }

    /// Returns the name of an agent; `?` if it is not known yet.
    pub fn agent(&self, id: Id) -> &str {
        self.known(id).unwrap_or("?")
    }

    /// Returns the name of an agent, if a line named it.
    pub fn known(&self, id: Id) -> Option<&str> {
        self.agents.get(&id).map(|name| &**name)
    }

    /// Returns the label of a branch, otherwise its id.
    fn branch(&self, id: Id) -> String {
        self.branches
            .get(&id)
            .cloned()
            .unwrap_or_else(|| id.to_string())
    }

    /// Returns the tool or agent that an effect is for.
    pub fn target(&self, effect: Id) -> Option<&Name> {
        let call = self.effects.get(&effect).unwrap_or(&effect);
        self.calls.get(call).map(|call| &call.name)
    }

    fn commit(&mut self, line: &LogLine, commit: &Commit, texts: &dyn Bodies, rows: &mut Vec<Row>) {
        for made in &commit.made {
            // One of several instances is distinguished by the name that its caller gave it.
            let name = made.named.as_ref().unwrap_or(&made.def);
            self.agents.insert(made.agent, name.clone());
            self.defs.insert(made.agent, made.def.clone());
            if let Some(parent) = made.parent {
                self.parents.insert(made.agent, parent);
            }
        }
        self.versions.learn(line, commit);
        if let Some(opening) = &commit.opening {
            if let Some(label) = &opening.label {
                self.branches.insert(line.branch, label.to_string());
            }
            if line.branch != Id::MAIN {
                let dry = if opening.dry { ", dry" } else { "" };
                rows.push(row(
                    line,
                    "",
                    format!("{} begins at @{}", self.branch(line.branch), commit.parent),
                    format!("branch{dry}"),
                    Tone::Begins,
                ));
            }
        }
        if let Some(adoption) = &commit.adoption {
            self.adopts(line, (adoption.branch, adoption.at), rows);
        }
        for admitted in &commit.admitted {
            if let (Admitted::Rebound, Some(told)) = (admitted.kind, admitted.body) {
                let (what, note) = match &admitted.message {
                    Some(_) => ("goes on under another definition", "definition"),
                    None => ("its servers changed", "tools"),
                };
                let text = format!("{what}: {}", texts.text(told));
                rows.push(row(line, "", text, note.into(), Tone::Engine));
            }
        }
        for hooked in commit.hooked() {
            let (text, tone) = holds::hooked(hooked, texts);
            rows.push(row(line, "", text, "hook".into(), tone));
        }
        for edit in &commit.edits {
            let value = edit.value.map(|body| texts.text(body));
            let now = memory::told_now(&edit.name, value.as_deref().unwrap_or("unset"));
            rows.push(row(line, "", now, "state".into(), Tone::Engine));
        }
        for wished in &commit.wished {
            if let Some(call) = wished.what.call() {
                self.effects.insert(wished.id, call);
                // A new branch wishes the effects of open calls again, so their durations count from here.
                if commit.opening.is_some() || commit.adoption.is_some() {
                    self.began.insert((line.branch, call), self.now);
                }
            }
        }
        let entered = commit.states();
        self.entered = entered.map(|(id, state)| (id, state.clone())).collect();
        let before = rows.len();
        self.pushes(line, &commit.pushes, texts, rows);
        self.took(commit, &mut rows[before..]);
        for wished in &commit.wished {
            if wished.what == Want::Step {
                self.steps.insert(wished.id, wished.agent);
            }
        }
        for (agent, state) in std::mem::take(&mut self.entered) {
            self.states.insert((line.branch, agent), state);
        }
        self.turned(line, commit, rows);
        rows.extend(commit.came().map(|new| self.versions.made(line, new)));
    }

    /// Notes how long models worked, each in the first row of what its answer began.
    fn took(&mut self, commit: &Commit, rows: &mut [Row]) {
        for usage in &commit.usage {
            let agent = usage.effect.and_then(|effect| self.steps.remove(&effect));
            let mut rows = rows.iter_mut();
            let row = agent.and_then(|agent| rows.find(|row| row.agent == Some(agent)));
            if let Some(row) = row {
                row.took = Some(usage.took);
            }
        }
    }

    fn pushes(&mut self, line: &LogLine, pushes: &[Push], texts: &dyn Bodies, rows: &mut Vec<Row>) {
        let mut pushes = pushes.iter().peekable();
        while let Some(push) = pushes.next() {
            let before = rows.len();
            match &push.what {
                Interaction::UserMessage { from, body } => {
                    self.heard.insert(push.agent, *body);
                    rows.extend(self.message(line, push.agent, from, *body, texts));
                }
                Interaction::AssistantMessage { text, partial, .. } => {
                    let next = pushes.peek().map(|next| &next.what);
                    let (told, ends) = self.said(line, push.agent, (*text, *partial), next, texts);
                    rows.extend(told);
                    // The row of the answer also shows the end.
                    if ends {
                        pushes.next();
                    }
                }
                // The result of the extraction gets the row.
                Interaction::Call(call) if call.is_extraction() => {
                    self.extractions.insert(call.id, push.agent);
                }
                Interaction::Call(call) if call.judged().is_some() => {
                    self.call(line, push.agent, call, texts);
                    self.reviews
                        .insert(call.id, (push.agent, reflection::of_arguments(call)));
                    let who = self.agent(push.agent);
                    rows.extend(
                        reflection::asks(call)
                            .map(|text| row(line, who, text, "reflects".to_owned(), Tone::Engine)),
                    );
                }
                Interaction::Result(result) if self.reviews.contains_key(&result.call) => {
                    let (agent, arguments) = self.reviews[&result.call];
                    let who = self.agent(agent);
                    rows.extend(
                        reflection::came(result, arguments, texts)
                            .map(|(text, note, tone)| row(line, who, text, note, tone)),
                    );
                }
                Interaction::Call(call) => {
                    let told = self.call(line, push.agent, call, texts);
                    if !self.is_handed_on(push.agent, call, texts) {
                        rows.push(told);
                    }
                }
                Interaction::Result(result) if self.extractions.contains_key(&result.call) => {
                    let who = self.agent(self.extractions[&result.call]);
                    let (text, note, tone) = memory::extracted(result, texts);
                    rows.push(row(line, who, text, note, tone));
                }
                Interaction::Result(result) => {
                    rows.extend(self.result(line, result, texts));
                    let new = result.artifacts.iter();
                    rows.extend(new.map(|new| self.versions.made(line, new)));
                }
                Interaction::Route(route) => {
                    self.routed.insert(push.agent);
                    rows.push(self.route(line, push.agent, route, texts));
                    if self.verbose {
                        let read = choices::values(route, texts).into_iter();
                        rows.extend(
                            read.map(|text| row(line, "", text, "read".into(), Tone::Engine)),
                        );
                    }
                }
                Interaction::Earlier(earlier) => {
                    rows.push(self.earlier(line, push.agent, earlier, texts));
                }
                Interaction::Summary(summary) => {
                    let (text, note, tone) = memory::summed(summary, texts);
                    rows.push(row(line, self.agent(push.agent), text, note, tone));
                }
                Interaction::Finished {
                    end,
                    cause,
                    body,
                    code,
                    ..
                } => {
                    let told = self.finished(
                        line,
                        push.agent,
                        (*end, *cause),
                        *body,
                        code.as_deref(),
                        texts,
                    );
                    // The result of a router's last member, or an agent's text with its `done` call, has a row already.
                    let again = matches!(cause, Cause::Routed | Cause::Tool) && code.is_none();
                    let said = |row: &Row| row.tone == Tone::Said && row.text == told.text;
                    if !(again && rows.iter().any(said)) {
                        rows.push(told);
                    }
                }
            }
            belong(&mut rows[before..], push);
        }
    }

    /// Returns the row of a model's message, and true if the end after it adds nothing.
    fn said(
        &self,
        line: &LogLine,
        agent: Id,
        (text, partial): (Option<Body>, bool),
        next: Option<&Interaction>,
        texts: &dyn Bodies,
    ) -> (Option<Row>, bool) {
        let Some(body) = text else {
            return (None, false);
        };
        let end = match next {
            // An agent that judges its own draft may end with another text than its last message.
            Some(Interaction::Finished {
                end,
                cause,
                code,
                body,
                ..
            }) if *body == text || *cause != Cause::Answer => Some((*end, *cause, code.as_deref())),
            _ => None,
        };
        let note = match end {
            _ if partial => "cut off".to_owned(),
            Some((End::Draft, ..)) => "draft".to_owned(),
            Some((end, Cause::Answer, _)) => self.ended(agent, end),
            Some((_, Cause::Rounds, code)) => reflection::stands(code),
            Some((_, Cause::Limit, code)) => format!("limit reached: {}", code.unwrap_or("?")),
            _ => String::new(),
        };
        let note = match self.states.get(&(line.branch, agent)) {
            Some(state) if note.is_empty() => state.to_string(),
            _ => note,
        };
        let text = texts.text(body);
        let judges = judgement::in_words(&text);
        let tone = judges.as_ref().map_or(Tone::Said, |_| Tone::Engine);
        let text = judges.unwrap_or_else(|| text.to_string());
        let shows_end = matches!(
            end,
            Some((_, Cause::Answer | Cause::Limit | Cause::Rounds, _))
        );
        (
            Some(row(line, self.agent(agent), text, note, tone)),
            shows_end,
        )
    }

    /// Returns the row of a message that came with a conversation held elsewhere.
    fn earlier(&self, line: &LogLine, agent: Id, earlier: &Earlier, texts: &dyn Bodies) -> Row {
        let (who, text) = match earlier {
            Earlier::User(body) => (speaker(&By::default()), texts.text(*body).to_string()),
            Earlier::Assistant { text, calls } => {
                let said = text.iter().map(|body| texts.text(*body).to_string());
                let calls = calls.iter().map(|call| {
                    let args = texts.text(call.args);
                    format!("{}({})", call.name, arguments(&args))
                });
                let all: Vec<String> = said.chain(calls).collect();
                (self.agent(agent).to_owned(), all.join("; "))
            }
        };
        row(line, &who, text, "before this session".into(), Tone::Said)
    }

    fn message(
        &self,
        line: &LogLine,
        agent: Id,
        from: &Origin,
        body: Body,
        texts: &dyn Bodies,
    ) -> Option<Row> {
        let text = texts.text(body).to_string();
        let (who, note, tone) = match from {
            Origin::Outside(by) => (speaker(by), String::new(), Tone::Said),
            // The caller's row shows the arguments.
            Origin::Call(_) | Origin::Route | Origin::Released(_) => return None,
            Origin::Agent(sender) => (
                self.agent(*sender).to_owned(),
                format!("to {}", self.agent(agent)),
                Tone::Said,
            ),
            Origin::Continuation => ("engine".into(), "goes on".into(), Tone::Engine),
            Origin::Correction => ("engine".into(), "corrected".into(), Tone::Engine),
            Origin::Conclude => ("engine".into(), "answers now".into(), Tone::Engine),
            Origin::Limit => ("engine".into(), "limit".into(), Tone::Engine),
            Origin::Reflect { .. } => ("engine".into(), "reflects".into(), Tone::Engine),
            Origin::Net => {
                let state = self.entered.get(&agent);
                let state = state.map_or_else(|| "next state".into(), ToString::to_string);
                ("net".into(), state, Tone::Engine)
            }
        };
        Some(row(line, &who, text, note, tone))
    }

    fn call(&mut self, line: &LogLine, agent: Id, call: &Call, texts: &dyn Bodies) -> Row {
        self.calls.insert(
            call.id,
            Opened {
                agent,
                name: call.name.clone(),
                target: call.target.clone(),
            },
        );
        self.began.insert((line.branch, call.id), self.now);
        let note = match &call.target {
            Target::Tool(class) => class.word().to_owned(),
            Target::Agent(_) => "sub-agent".into(),
            Target::Person(name) => format!("asks {name}"),
            Target::Wait => "waits".into(),
            Target::Branches(branches) if branches.is_empty() => "branches".into(),
            Target::Branches(branches) => count(branches.len() as u64, "branch"),
            Target::Unknown => "not offered, or used wrongly".into(),
        };
        let name = call.called();
        let mut args = texts.text(call.args).to_string();
        if matches!(call.target, Target::Branches(_)) {
            args = made::labelled(&args, &self.branches);
        }
        row(
            line,
            self.agent(agent),
            format!("{name}({})", arguments(&args)),
            note,
            Tone::Called,
        )
    }

    fn result(&self, line: &LogLine, result: &CallResult, texts: &dyn Bodies) -> Option<Row> {
        let opened = self.calls.get(&result.call);
        let ended_here = opened.is_some_and(|o| matches!(o.target, Target::Agent(_)))
            && matches!(result.how, How::Finished | How::Released);
        if ended_here {
            // The row above shows the child's own answer.
            return None;
        }
        let ends = |o: &Opened| BuiltIn::named(&o.name).is_some_and(BuiltIn::passes_floor);
        let says_ok = || result.body.is_some_and(|body| &*texts.text(body) == "ok");
        if result.how == How::Done && opened.is_some_and(ends) && says_ok() {
            // The end of the agent that hands the floor over has a row.
            return None;
        }
        let name = opened.map_or("call", |o| &o.name);
        let text = match result.body {
            Some(body) => texts.text(body).to_string(),
            None => String::new(),
        };
        let began = self.began.get(&(line.branch, result.call));
        let took = began.map_or(String::new(), |at| {
            format!(", {}", span(self.now.0.saturating_sub(at.0)))
        });
        let (note, tone) = match result.how {
            How::Done if self.settled.contains(&result.call) => ("done".to_owned(), Tone::Came),
            How::Done => (format!("done{took}"), Tone::Came),
            How::Simulated => ("simulated".into(), Tone::Came),
            How::Finished => ("finished".into(), Tone::Came),
            How::Released => ("gave the floor back".into(), Tone::Came),
            How::DoneBefore => ("done elsewhere".into(), Tone::Came),
            How::NotInThisBranch => ("not in this branch".into(), Tone::Came),
            How::Failed | How::Refused | How::Limit | How::Expired | How::Cancelled => {
                let word = match result.how {
                    How::Failed => "failed",
                    How::Refused => "refused",
                    How::Limit => "limit",
                    How::Expired => "expired",
                    _ => "cancelled",
                };
                (
                    match result.code.as_deref() {
                        Some(code) if code != word => format!("{word}: {code}"),
                        _ => word.to_owned(),
                    },
                    Tone::Wrong,
                )
            }
            How::Unknown => ("may have happened".into(), Tone::Doubt),
        };
        Some(row(line, "", format!("{name} = {text}"), note, tone))
    }

    fn route(
        &self,
        line: &LogLine,
        agent: Id,
        route: &steersman_machine::stored::interaction::Route,
        texts: &dyn Bodies,
    ) -> Row {
        let text = choices::told(route, texts);
        let tone = if route.refused.is_some() {
            Tone::Wrong
        } else {
            Tone::Chose
        };
        row(line, self.agent(agent), text, "route".into(), tone)
    }

    fn finished(
        &self,
        line: &LogLine,
        agent: Id,
        (end, cause): (End, Cause),
        body: Option<Body>,
        code: Option<&str>,
        texts: &dyn Bodies,
    ) -> Row {
        let text = body.map_or_else(String::new, |body| texts.text(body).to_string());
        let what = match cause {
            _ if end == End::Draft => "draft",
            Cause::Answer | Cause::Tool | Cause::Routed => "finished",
            Cause::Released => "gave the floor back",
            Cause::Leaf => "can go no further in dry mode",
            Cause::Limit => "limit reached",
            Cause::Failed => "failed",
            Cause::Cancelled => "cancelled",
            Cause::Deadlock => "nothing left to wait for",
            Cause::NoRule => "no rule held",
            Cause::Rounds => return self.stands(line, agent, &text, code),
        };
        let note = match code {
            Some(code) => format!("{what}: {code}"),
            None => what.to_owned(),
        };
        if cause == Cause::Released {
            // The text is the user's wish or a reason, not a message.
            let text = if text.is_empty() {
                what.to_owned()
            } else {
                format!("{what}: {text}")
            };
            return row(line, self.agent(agent), text, String::new(), Tone::Engine);
        }
        let tone = match cause {
            Cause::Answer
            | Cause::Tool
            | Cause::Routed
            | Cause::Released
            | Cause::NoRule
            | Cause::Rounds => Tone::Said,
            Cause::Leaf | Cause::Limit | Cause::Failed | Cause::Cancelled | Cause::Deadlock => {
                Tone::Wrong
            }
        };
        row(line, self.agent(agent), text, note, tone)
    }

    fn ended(&self, agent: Id, end: End) -> String {
        match self.parents.get(&agent) {
            // An agent with the floor that ends a turn keeps the floor: it talks with the user.
            None => String::new(),
            Some(_) if end == End::Turn => String::new(),
            Some(parent) if self.routed.contains(parent) => "ended".into(),
            Some(_) => "sub-agent, ended".into(),
        }
    }

    /// Returns true if a router calls a member with the message that it received itself. Both have rows already.
    fn is_handed_on(&self, agent: Id, call: &Call, texts: &dyn Bodies) -> bool {
        let Some(heard) = self
            .heard
            .get(&agent)
            .filter(|_| self.routed.contains(&agent))
        else {
            return false;
        };
        let args: Json = serde_json::from_str(&texts.text(call.args)).unwrap_or_default();
        matches!(call.target, Target::Agent(_))
            && args == serde_json::json!({ "message": &*texts.text(*heard) })
    }
}

/// Marks rows with the agent of a push; those of a result also with the line of its call.
fn belong(rows: &mut [Row], push: &Push) {
    for row in rows {
        row.agent = Some(push.agent);
        if let Interaction::Result(result) = &push.what {
            row.of = Some(result.call.line());
        }
    }
}

/// Returns a row of this line.
fn row(line: &LogLine, who: &str, text: String, note: String, tone: Tone) -> Row {
    Row {
        line: line.n,
        branch: line.branch,
        at: line.at,
        agent: None,
        of: None,
        who: who.to_owned(),
        text,
        note,
        took: None,
        owners: None,
        tone,
    }
}

/// Returns the call of an effect, or the effect's own id if no line wished it for a call.
fn effects_call<'a>(effects: &'a BTreeMap<Id, Id>, effect: &'a Id) -> &'a Id {
    effects.get(effect).unwrap_or(effect)
}
