//! The transcript that an agent can search, and the part of it that the agent sees without a search.

use super::route::surroundings;
use super::talk::{Talk, What, Who};
use super::units::{self, Units};
use super::{At, History, history};
use crate::network::{Network, Seen, ToolDef, notes};
use crate::snapshot::Snapshot;
use crate::stored::by::By;
use crate::stored::ids::{Body, Id, Line, Name};
use crate::stored::interaction::{EARLIER, Earlier, End, Interaction, Number, Origin};
use crate::view::Cx;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Returns the maximum number of passages of the conversation under its routed agent that a member is shown before a turn. 0
/// for an agent that is not a member.
pub(crate) fn relevant(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> u32 {
    surroundings(cx, snapshot, agent).map_or(0, |around| around.view.relevant.min(notes::MOST))
}

/// Returns the newest message that an agent acts on. For a member that was called with the message that its routed agent must
/// answer, this is the newest message under the routed agent, from a member or from outside. For all others it is the newest
/// message to the agent itself.
pub(crate) fn newest(snapshot: &Snapshot, agent: Id) -> Option<Body> {
    let state = snapshot.agent(agent);
    // The member's arguments are the message that the routed agent must answer. There may be newer messages.
    let got_message = state.input.serving.is_some() && state.input.message == state.input.args;
    let above = state.family.parent.filter(|_| got_message);
    let Some(above) = above.map(|above| snapshot.agent(above)) else {
        return state.input.message;
    };
    let last = above.routing.last.as_ref().and_then(|(_, _, said)| *said);
    let said = [above.input.message, last].into_iter().flatten();
    said.max_by_key(|body| body.line()).or(state.input.message)
}

impl At<'_> {
    /// Appends the passages that the view asks for, if there are any. `named` means that a tool in `before:` has the name
    /// `relevant`, so the entry is the result of that tool.
    pub(super) fn with_relevant(&self, named: bool, now: &mut String) {
        let state = self.snapshot.agent(self.agent);
        let Some(Some(passages)) = state.input.before.get(notes::RELEVANT).filter(|_| !named)
        else {
            return;
        };
        let passages = self.history.text(*passages);
        if *passages == *notes::NOTHING {
            return;
        }
        if !now.is_empty() {
            now.push('\n');
        }
        let _ = write!(now, "[{}] {passages}", notes::RELEVANT);
    }
}

/// A message, or a result of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The text, by its place in the log.
    pub body: Body,
    /// The line that pushed it. It is never shown, because another owner may write the same entry in another line.
    pub line: Line,
    /// For a message its number, from 1. For a result the number of its call among the calls of its agent.
    pub number: Number,
    /// Number of messages before it.
    pub behind: u32,
    /// The speaker, or the tool.
    pub who: Name,
    /// True for a message, false for a result. [`Transcript::words`] turns a message that is the arguments of a call into text.
    pub said: bool,
}

/// The transcript that an agent can search: for a member of a routed agent the messages under that agent, for any other agent
/// those of its own stack; and the results of its own tools. [`Transcript::follow`] extends it as the session goes on.
#[derive(Debug, Default)]
pub struct Transcript {
    talk: Talk,
    own: Own,
    above: Option<Id>,
    since: Option<Line>,
}

impl Transcript {
    /// Reads everything that was pushed since the last call of this method. After a change of the branch or a rewind it reads
    /// again from the beginning.
    pub fn follow(&mut self, cx: &Cx<'_>, history: &dyn History, snapshot: &Snapshot, agent: Id) {
        let around = surroundings(cx, snapshot, agent);
        self.above = around.as_ref().map(|around| around.above);
        self.since = around.as_ref().and_then(super::route::Surroundings::since);
        if let Some(above) = self.above {
            self.talk
                .follow(history, above, snapshot.agent(above).stack.last);
        }
        self.own.follow(cx.network, history, snapshot, agent);
    }

    /// Returns the transcript up to and including a line.
    pub fn upto(&self, line: Line) -> Vec<Spoken> {
        let mut all = Vec::new();
        if self.above.is_some() {
            let (ahead, entries) = self.talk.behind(self.since);
            let mut said = u32::try_from(ahead).unwrap_or(u32::MAX);
            all.extend(entries.filter_map(|entry| {
                let What::Said(body) = &entry.what else {
                    return None;
                };
                said += 1;
                let who = match &entry.who {
                    Who::Outside(None) => "user".into(),
                    Who::Outside(Some(who)) | Who::Member(who) => who.clone(),
                };
                Some(Spoken {
                    body: *body,
                    line: body.line(),
                    number: message(said),
                    behind: said - 1,
                    who,
                    said: true,
                })
            }));
        }
        let member = self.above.is_some();
        let since = self.since.unwrap_or_default();
        let own = self.own.entries.iter();
        let own = own.filter(|entry| !(member && entry.said) && entry.line >= since);
        all.extend(own.cloned());
        all.retain(|spoken| spoken.line <= line);
        all
    }

    /// Returns the texts that the agent sees without a search.
    pub fn seen(
        &self,
        cx: &Cx<'_>,
        history: &dyn History,
        snapshot: &Snapshot,
        agent: Id,
    ) -> BTreeSet<Body> {
        let around = surroundings(cx, snapshot, agent);
        let mut units = Units::default();
        units.follow(history, &history::head(snapshot, agent));
        units.begin(self.since);
        let state = snapshot.agent(agent);
        let mut seen: BTreeSet<Body> = state.input.unanswered.iter().copied().collect();
        seen.extend(state.input.message);
        for unit in units.shown() {
            match &unit.what {
                units::What::Message { from, body } => {
                    seen.insert(*body);
                    if let (Origin::Call(call), Some(around)) = (from, &around)
                        && around.view.of != Seen::Own
                    {
                        let policy = around.summary.as_deref();
                        let heard = self.talk.seen(*call, &around.view, policy, around.since());
                        seen.extend(heard.entries.iter().filter_map(|entry| match &entry.what {
                            What::Said(body) => Some(*body),
                            What::Did(..) => None,
                        }));
                    }
                }
                units::What::Summary(body) | units::What::Earlier(Earlier::User(body)) => {
                    seen.insert(*body);
                }
                units::What::Earlier(Earlier::Assistant { text, calls }) => {
                    seen.extend(*text);
                    seen.extend(calls.iter().map(|call| call.result));
                }
                units::What::Answer { text, calls, .. } => {
                    seen.extend(*text);
                    let results = calls.iter().filter_map(|chain| chain.result.as_ref());
                    seen.extend(results.filter_map(|result| result.body));
                }
                units::What::Engine(calls) => {
                    let results = calls.iter().filter_map(|chain| chain.result.as_ref());
                    seen.extend(results.filter_map(|result| result.body));
                }
            }
        }
        seen
    }

    /// Returns the place of an entry for people and models: `clerk, message 3` or `lookup, call 2`.
    pub fn place(spoken: &Spoken) -> String {
        let Spoken { who, number, .. } = spoken;
        let kind = if spoken.said { "message" } else { "call" };
        format!("{who}, {kind} {number}")
    }

    /// Returns the text of an entry for people and models. The arguments of a call become plain text.
    pub fn words(spoken: &Spoken, text: &str) -> String {
        if spoken.said {
            history::called(text)
        } else {
            text.to_owned()
        }
    }
}

fn message(number: u32) -> Number {
    Number {
        call: number,
        step: 0,
    }
}

/// Messages and results of one stack.
#[derive(Debug, Default)]
struct Own {
    agent: Option<Id>,
    last: Line,
    entries: Vec<Spoken>,
    /// For each call: its tool, its number, and the number of messages before it. `None` means that the result is not part of
    /// the transcript.
    calls: BTreeMap<Id, Option<(Name, Number, u32)>>,
    /// True if the agent's next answer judges its own draft.
    judges: bool,
    /// True if the agent gave a draft since its last final answer.
    drafted: bool,
    /// True if the agent said something since its last draft or final answer.
    spoke: bool,
}

impl Own {
    /// Returns the number of messages.
    fn said(&self) -> u32 {
        let last = self.entries.iter().rev().find(|entry| entry.said);
        last.map_or(0, |last| last.number.call)
    }

    fn follow(&mut self, network: &Network, history: &dyn History, snapshot: &Snapshot, agent: Id) {
        let state = snapshot.agent(agent);
        if self.agent != Some(agent) {
            *self = Self {
                agent: Some(agent),
                ..Self::default()
            };
        }
        let (mut blocks, mut at) = (Vec::new(), state.stack.last);
        while at.is_some() && at > self.last {
            let (block, below) = history.pushes(agent, at);
            blocks.push((at, block));
            at = below;
        }
        if at != self.last {
            // The stack does not contain the last line that was read, so everything is read.
            while at.is_some() {
                let (block, below) = history.pushes(agent, at);
                blocks.push((at, block));
                at = below;
            }
            self.entries.clear();
            self.calls.clear();
            (self.judges, self.drafted, self.spoke) = (false, false, false);
        }
        let caller = state
            .family
            .parent
            .and_then(|parent| snapshot.agents.get(&parent));
        let caller = caller.map_or_else(|| "user".into(), |parent| parent.def.clone());
        for (line, block) in blocks.iter().rev() {
            for interaction in block.iter() {
                self.push(network, (&state.def, &caller), *line, interaction);
            }
        }
        self.last = state.stack.last;
    }

    fn push(
        &mut self,
        network: &Network,
        (own, caller): (&Name, &Name),
        line: Line,
        interaction: &Interaction,
    ) {
        let before = self.said();
        let mut add = |who: &Name, body: Body, said: bool| {
            self.entries.push(Spoken {
                body,
                line,
                number: message(before + 1),
                behind: before,
                who: who.clone(),
                said,
            });
        };
        match interaction {
            Interaction::UserMessage { from, body } => match from {
                Origin::Outside(by) => add(&by.role, *body, true),
                Origin::Call(_) | Origin::Agent(_) | Origin::Released(_) => {
                    add(caller, *body, true);
                }
                Origin::Continuation
                | Origin::Route
                | Origin::Correction
                | Origin::Limit
                | Origin::Conclude
                | Origin::Net => {}
                Origin::Reflect { tool, .. } => self.judges = tool.is_none(),
            },
            // Drafts and judgements of drafts are not part of the conversation.
            Interaction::AssistantMessage { .. } if std::mem::take(&mut self.judges) => {}
            Interaction::AssistantMessage {
                text: Some(text), ..
            } => {
                add(own, *text, true);
                self.spoke = true;
            }
            Interaction::Finished {
                end: End::Draft, ..
            } => {
                self.drafted = true;
                let newest = self.entries.iter().rposition(|e| e.said && e.who == *own);
                if let Some(n) = newest.filter(|_| std::mem::take(&mut self.spoke)) {
                    self.entries.remove(n);
                }
            }
            Interaction::Finished { body, .. } => {
                let drafted = std::mem::take(&mut self.drafted);
                self.spoke = false;
                let last = self.entries.iter().rev().find(|e| e.said && e.who == *own);
                let last_said = last.map(|entry| entry.body);
                if let Some(body) = body.filter(|body| drafted && last_said != Some(*body)) {
                    let number = message(self.said() + 1);
                    self.entries.push(Spoken {
                        body,
                        line,
                        number,
                        behind: number.call - 1,
                        who: own.clone(),
                        said: true,
                    });
                }
            }
            Interaction::Call(call) => {
                let tool = network.tools.get(&call.name);
                let is_search = call.is_ahead() || *call.name == *notes::SEARCH;
                let is_last = tool.is_some_and(ToolDef::is_last);
                let named =
                    (!is_search && !is_last).then(|| (call.name.clone(), call.number, before));
                self.calls.insert(call.id, named);
            }
            Interaction::Result(result) => {
                let named = self.calls.get(&result.call).cloned().flatten();
                if let (Some((who, number, behind)), Some(body)) = (named, result.body) {
                    self.entries.push(Spoken {
                        body,
                        line,
                        number,
                        behind,
                        who,
                        said: false,
                    });
                }
            }
            Interaction::Earlier(Earlier::User(body)) => add(&By::default().role, *body, true),
            Interaction::Earlier(Earlier::Assistant {
                text: Some(text), ..
            }) => add(&EARLIER.into(), *text, true),
            Interaction::AssistantMessage { text: None, .. }
            | Interaction::Earlier(_)
            | Interaction::Route(_)
            | Interaction::Summary(_) => {}
        }
    }
}
