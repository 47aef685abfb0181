//! The conversation under a routed agent, in order, for routing models and for the views of members on each other.

use super::History;
use crate::network::{Seen, ViewDef};
use crate::stored::ids::{Body, Id, Line, Name};
use crate::stored::interaction::{
    Call, CallResult, Choice, EARLIER, Earlier, End, Interaction, Origin, Target,
};
use imbl::Vector;
use std::sync::Arc;

/// A message or a call in the conversation.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) who: Who,
    pub(super) what: What,
}

impl Entry {
    fn is_said(&self) -> bool {
        matches!(self.what, What::Said(_))
    }

    /// Returns the text, if it is a message from outside.
    pub(super) fn said_outside(&self) -> Option<Body> {
        match (&self.who, &self.what) {
            (Who::Outside(_), What::Said(body)) => Some(*body),
            _ => None,
        }
    }
}

/// The party that sent the message or made the call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Who {
    /// A person or program outside, with its role. `None` means the user.
    Outside(Option<Name>),
    /// A member of the routed agent.
    Member(Name),
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Said(Body),
    /// A call that a member made, with its result.
    Did(Call, Option<Box<CallResult>>),
}

/// A call to a member, with the number of entries before it, and up to its end.
#[derive(Clone, Debug)]
struct Turn {
    call: Id,
    member: Name,
    target: Target,
    before: usize,
    /// Equal to `before` until the call is closed.
    after: usize,
}

/// The conversation on the stack of a routed agent. A clone shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct Talk {
    agent: Option<Id>,
    entries: Vector<Arc<Entry>>,
    /// Places of the messages among the entries.
    said: Vector<usize>,
    turns: Vector<Turn>,
    marks: Vector<Mark>,
    /// For each state that was entered: the line, and the number of entries before it.
    entered: Vector<(Line, usize)>,
    last: Line,
}

/// A summary, and its place in the conversation.
#[derive(Clone, Debug)]
struct Mark {
    policy: Name,
    body: Body,
    /// Number of entries that the summary covers.
    entries: usize,
    /// Number of turns before the summary.
    turns: usize,
}

/// The part of the conversation that a member sees at a call.
pub(super) struct Heard<'t> {
    /// Summary in place of the entries that are left out.
    pub(super) summary: Option<Body>,
    pub(super) entries: Vec<&'t Entry>,
}

impl Talk {
    /// Reads everything that was pushed since the last call. Another stack (after a rewind or an adoption) is read from the
    /// beginning.
    pub(super) fn follow(&mut self, history: &dyn History, agent: Id, last: Line) {
        if self.agent == Some(agent) && self.last == last {
            return;
        }
        let known = self.agent == Some(agent) && self.last.is_some();
        let mut blocks = Vec::new();
        let mut at = last;
        while at.is_some() && !(known && at <= self.last) {
            let (block, below) = history.pushes(agent, at);
            blocks.push((at, block));
            at = below;
        }
        if !known || at != self.last {
            *self = Self {
                agent: Some(agent),
                ..Self::default()
            };
            // The stack does not contain the last line that was read, so everything is read.
            while at.is_some() {
                let (block, below) = history.pushes(agent, at);
                blocks.push((at, block));
                at = below;
            }
        }
        for (line, block) in blocks.iter().rev() {
            for interaction in block.iter() {
                self.push(history, *line, interaction);
            }
        }
        self.last = last;
    }

    fn push(&mut self, history: &dyn History, line: Line, interaction: &Interaction) {
        let said = |who: Who, body: Body| Entry {
            who,
            what: What::Said(body),
        };
        match interaction {
            Interaction::UserMessage { from, body } => match from {
                Origin::Outside(by) => {
                    self.enter(said(Who::Outside(by.named().cloned()), *body));
                }
                Origin::Call(_) | Origin::Agent(_) | Origin::Continuation => {
                    self.enter(said(Who::Outside(None), *body));
                }
                // A released message is an entry already: it came before the turn of the member that released it, or in it.
                Origin::Released(_)
                | Origin::Route
                | Origin::Correction
                | Origin::Limit
                | Origin::Conclude
                | Origin::Reflect { .. }
                | Origin::Net => {}
            },
            Interaction::Route(route) if route.refused.is_none() => match &route.chosen {
                Choice::Say { member, body, .. } => {
                    self.enter(said(Who::Member(member.clone()), *body));
                }
                Choice::Answer(body) => {
                    self.enter(said(Who::Member("you".into()), *body));
                }
                // The message that ended the previous state may be in the same line, so the line alone is not enough: the
                // number of entries is recorded, too.
                Choice::Enter { .. } => self.entered.push_back((line, self.entries.len())),
                _ => {}
            },
            // Calls that the engine makes for itself are not turns.
            Interaction::Call(call) if call.is_extraction() || call.is_ahead() => {}
            Interaction::Summary(summary) if !summary.covers.is_nothing() => {
                let (entries, turns) = (self.entries.len(), self.turns.len());
                self.marks.push_back(Mark {
                    policy: summary.policy.clone(),
                    body: summary.body,
                    entries,
                    turns,
                });
            }
            Interaction::Call(call) => self.turns.push_back(Turn {
                call: call.id,
                member: call.called(),
                target: call.target.clone(),
                before: self.entries.len(),
                after: self.entries.len(),
            }),
            Interaction::Result(result) => self.ended(history, line, result),
            Interaction::Earlier(Earlier::User(body)) => {
                self.enter(said(Who::Outside(None), *body));
            }
            Interaction::Earlier(Earlier::Assistant { text, .. }) => {
                let who = Who::Member(EARLIER.into());
                if let Some(body) = text {
                    self.enter(said(who, *body));
                }
            }
            Interaction::Route(_)
            | Interaction::AssistantMessage { .. }
            | Interaction::Summary(_)
            | Interaction::Finished { .. } => {}
        }
    }

    /// Ends the turn of a member whose call closed.
    fn ended(&mut self, history: &dyn History, line: Line, result: &CallResult) {
        let of = |turn: &Turn| turn.call == result.call;
        let Some(k) = self.turns.iter().rposition(of) else {
            return;
        };
        let turn = self.turns[k].clone();
        self.spoken(history, line, result, &turn);
        self.turns[k].after = self.entries.len();
    }

    /// Appends the messages and calls of a turn.
    fn spoken(&mut self, history: &dyn History, line: Line, result: &CallResult, turn: &Turn) {
        let who = Who::Member(turn.member.clone());
        match turn.target {
            Target::Agent(child) => {
                let turn = turn_of(history, child, line, result.call);
                let mut own = Vec::new();
                for interaction in counted(turn) {
                    heard(&mut own, &who, &interaction);
                }
                let answered = own
                    .iter()
                    .any(|entry: &Entry| entry.who == who && entry.is_said());
                for entry in own {
                    self.enter(entry);
                }
                if answered {
                    return;
                }
            }
            Target::Tool(_)
            | Target::Person(_)
            | Target::Wait
            | Target::Branches(_)
            | Target::Unknown => {}
        }
        if let Some(body) = result.body {
            let what = What::Said(body);
            self.enter(Entry { who, what });
        }
    }

    fn enter(&mut self, entry: Entry) {
        if entry.is_said() {
            self.said.push_back(self.entries.len());
        }
        self.entries.push_back(Arc::new(entry));
    }

    /// Iterates over the entries from this place on. What is before costs nothing.
    fn from(&self, place: usize) -> impl Iterator<Item = &Entry> {
        (place..self.entries.len()).map(|place| &*self.entries[place])
    }

    /// Returns the newest summary of a policy, and the entries since.
    pub(super) fn since(&self, policy: &str) -> (Option<Body>, Vec<&Entry>) {
        let (summary, from) = self.summed(policy);
        (summary, self.from(from).collect())
    }

    /// Returns the newest summary of a policy, and the number of entries that it covers.
    fn summed(&self, policy: &str) -> (Option<Body>, usize) {
        let mark = self.marks.iter().rev().find(|mark| *mark.policy == *policy);
        (
            mark.map(|mark| mark.body),
            mark.map_or(0, |mark| mark.entries),
        )
    }

    /// Returns the number of messages among the first `entries`.
    fn said_in(&self, entries: usize) -> usize {
        let found = self.said.binary_search(&entries);
        found.unwrap_or_else(|place| place)
    }

    /// Returns all entries or, with a line, the entries since the state that this line entered; and the number of messages before
    /// them.
    pub(super) fn behind(&self, entered: Option<Line>) -> (usize, impl Iterator<Item = &Entry>) {
        let from = entered.and_then(|line| self.entered_at(line)).unwrap_or(0);
        (self.said_in(from), self.from(from))
    }

    /// Returns the number of entries before the state that this line entered.
    fn entered_at(&self, line: Line) -> Option<usize> {
        let mut entered = self.entered.iter().rev();
        let found = entered.find(|(at, _)| *at == line);
        found.map(|(_, before)| *before)
    }

    /// Returns the entries for a routing model: the newest summary, if there is one, and the newest messages since. The newest
    /// message that the summary covers is shown, too. The window moves in steps of `most` messages and contains at most twice
    /// as many, so the beginning of the requests stays the same.
    pub(super) fn said(
        &self,
        most: usize,
        policy: &str,
    ) -> (Option<Body>, impl Iterator<Item = &Entry>) {
        let (summary, covered) = self.summed(policy);
        let before = self.said_in(covered);
        let skip = ((self.said.len() - before) / most).saturating_sub(1) * most;
        let from = if skip == 0 {
            before.saturating_sub(1)
        } else {
            before + skip
        };
        let shown = (from..self.said.len()).map(|n| &*self.entries[self.said[n]]);
        (summary, shown)
    }

    /// Returns the newest message from outside before a call.
    pub(super) fn asked_before(&self, call: Id) -> Option<Body> {
        let turn = self.turns.iter().rev().find(|turn| turn.call == call)?;
        let newest_first = (0..turn.before).rev();
        let mut asked = newest_first.filter_map(|n| self.entries[n].said_outside());
        asked.next()
    }

    /// Returns the part of the conversation that a member sees at a call: everything since its last turn. With a summary
    /// policy, entries that a summary from before the call covers are left out, except the newest ones within the window (at
    /// least one). Without a policy, only the window limits the entries.
    pub(super) fn seen(
        &self,
        call: Id,
        view: &ViewDef,
        policy: Option<&str>,
        entered: Option<Line>,
    ) -> Heard<'_> {
        let mut newest_first = self.turns.iter().enumerate().rev();
        let Some((k, turn)) = newest_first.find(|(_, turn)| turn.call == call) else {
            return Heard {
                summary: None,
                entries: Vec::new(),
            };
        };
        // The member knows its own last turn, so its view begins after that turn.
        let own = newest_first.find(|(_, before)| before.member == turn.member);
        let from = own.map_or(0, |(_, own)| own.after);
        let entered = entered.and_then(|line| self.entered_at(line));
        let from = entered.map_or(from, |before| from.max(before));
        let entries = (from..turn.before).map(|n| (n, &*self.entries[n]));
        let all = view.of == Seen::Shared;
        let mut seen: Vec<(usize, &Entry)> = entries
            .filter(|(_, entry)| all || entry.is_said())
            .collect();
        let window = view.window.or(policy.map(|_| 1));
        let behind = window.map(|most| seen.len().saturating_sub(most as usize));
        let mut summary = None;
        let left_out = match policy {
            None => behind.unwrap_or(0),
            Some(policy) => {
                let mut newest = self.marks.iter().rev();
                let mark = newest.find(|mark| *mark.policy == *policy && mark.turns <= k);
                let covered = mark.map_or(0, |mark| mark.entries);
                let covered = seen.partition_point(|(n, _)| *n < covered);
                let left_out = behind.map_or(covered, |behind| behind.min(covered));
                summary = mark.map(|mark| mark.body).filter(|_| left_out > 0);
                left_out
            }
        };
        Heard {
            summary,
            entries: seen.drain(left_out..).map(|(_, entry)| entry).collect(),
        }
    }
}

/// Appends a message or call from a member's turn.
fn heard(own: &mut Vec<Entry>, who: &Who, interaction: &Interaction) {
    let said = |who: Who, body: Body| Entry {
        who,
        what: What::Said(body),
    };
    match interaction {
        Interaction::UserMessage {
            from: Origin::Outside(by),
            body,
        } => own.push(said(Who::Outside(by.named().cloned()), *body)),
        Interaction::AssistantMessage {
            text: Some(text), ..
        } => own.push(said(who.clone(), *text)),
        // Other members do not see the calls that the engine makes for a member.
        Interaction::Call(call)
            if call.is_extraction() || call.is_ahead() || call.judged().is_some() => {}
        Interaction::Call(call) => own.push(Entry {
            who: who.clone(),
            what: What::Did(call.clone(), None),
        }),
        Interaction::Result(result) => {
            let of = own
                .iter_mut()
                .rev()
                .find_map(|entry| match &mut entry.what {
                    What::Did(call, given) if call.id == result.call => Some(given),
                    _ => None,
                });
            if let Some(given) = of {
                *given = Some(Box::new(result.clone()));
            }
        }
        _ => {}
    }
}

/// Returns a turn as the other members see it: without judged drafts and without the texts of judgements, but with the final
/// answer.
fn counted(turn: Vec<Interaction>) -> Vec<Interaction> {
    let (mut shown, mut last): (Vec<Interaction>, Option<usize>) = (Vec::new(), None);
    let (mut drafted, mut judges) = (None, false);
    for interaction in turn {
        match &interaction {
            Interaction::UserMessage {
                from: Origin::Reflect { tool: None, .. },
                ..
            } => judges = true,
            Interaction::AssistantMessage { effect, .. } => {
                if std::mem::take(&mut judges) {
                    drafted = Some(*effect);
                    continue;
                }
                last = Some(shown.len());
            }
            Interaction::Finished {
                end: End::Draft, ..
            } => {
                if let Some(Interaction::AssistantMessage { effect, .. }) =
                    last.take().map(|n| shown.remove(n))
                {
                    drafted = Some(effect);
                }
            }
            Interaction::Finished { body, .. } => {
                let is_there = last.is_some_and(|n| {
                    matches!(&shown[n], Interaction::AssistantMessage { text, .. } if text == body)
                });
                if let (Some(effect), Some(_), false) = (drafted.take(), body, is_there) {
                    shown.push(Interaction::AssistantMessage {
                        effect,
                        text: *body,
                        opaque: None,
                        partial: false,
                    });
                }
                last = None;
            }
            _ => {}
        }
        shown.push(interaction);
    }
    shown
}

/// Returns the pushes of a member from the message of a call to line `end`, in which the call closed.
fn turn_of(history: &dyn History, child: Id, end: Line, call: Id) -> Vec<Interaction> {
    let mut turn = Vec::new();
    let mut at = end;
    while at.is_some() {
        let (block, below): (Arc<[Interaction]>, Line) = history.pushes(child, at);
        for interaction in block.iter().rev() {
            turn.push(interaction.clone());
            let begins = matches!(interaction, Interaction::UserMessage { from: Origin::Call(c), .. } if *c == call);
            if begins {
                turn.reverse();
                return turn;
            }
        }
        at = below;
    }
    turn.reverse();
    turn
}
