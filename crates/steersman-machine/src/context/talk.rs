//! The conversation under a routed agent, in order, for routing models and for the views of members on each other.

use super::History;
use crate::network::{Seen, ViewDef};
use crate::stored::ids::{Body, Id, Line, Name};
use crate::stored::interaction::{Call, CallResult, Choice, End, Interaction, Origin, Target};
use std::sync::Arc;

/// A message or a call in the conversation.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) who: Who,
    pub(super) what: What,
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

/// The conversation on the stack of a routed agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Talk {
    agent: Option<Id>,
    entries: Vec<Entry>,
    turns: Vec<Turn>,
    marks: Vec<Mark>,
    /// For each state that was entered: the line, and the number of entries before it.
    entered: Vec<(Line, usize)>,
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
                    self.entries
                        .push(said(Who::Outside(by.named().cloned()), *body));
                }
                Origin::Call(_) | Origin::Agent(_) | Origin::Continuation => {
                    self.entries.push(said(Who::Outside(None), *body));
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
                    self.entries.push(said(Who::Member(member.clone()), *body));
                }
                Choice::Answer(body) => {
                    self.entries.push(said(Who::Member("you".into()), *body));
                }
                // The message that ended the previous state may be in the same line, so the line alone is not enough: the
                // number of entries is recorded, too.
                Choice::Enter { .. } => self.entered.push((line, self.entries.len())),
                _ => {}
            },
            // Calls that the engine makes for itself are not turns.
            Interaction::Call(call) if call.is_extraction() || call.is_ahead() => {}
            Interaction::Summary(summary) if !summary.covers.is_nothing() => {
                let (entries, turns) = (self.entries.len(), self.turns.len());
                self.marks.push(Mark {
                    policy: summary.policy.clone(),
                    body: summary.body,
                    entries,
                    turns,
                });
            }
            Interaction::Call(call) => self.turns.push(Turn {
                call: call.id,
                member: call.called(),
                target: call.target.clone(),
                before: self.entries.len(),
                after: self.entries.len(),
            }),
            Interaction::Result(result) => self.ended(history, line, result),
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
                    .any(|entry: &Entry| entry.who == who && matches!(entry.what, What::Said(_)));
                self.entries.append(&mut own);
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
        let body = result.body;
        self.entries.extend(body.map(|body| Entry {
            who,
            what: What::Said(body),
        }));
    }

    /// Returns the newest summary of a policy, and the entries since.
    pub(super) fn since(&self, policy: &str) -> (Option<Body>, &[Entry]) {
        let mark = self.marks.iter().rev().find(|mark| *mark.policy == *policy);
        let from = mark.map_or(0, |mark| mark.entries);
        (mark.map(|mark| mark.body), &self.entries[from..])
    }

    /// Returns the number of messages before these entries, which are the newest ones.
    pub(super) fn said_ahead_of(&self, newest: &[Entry]) -> u32 {
        let ahead = &self.entries[..self.entries.len() - newest.len()];
        let said = ahead.iter().filter(|e| matches!(e.what, What::Said(_)));
        u32::try_from(said.count()).unwrap_or(u32::MAX)
    }

    /// Returns all entries or, with a line, the entries since the state that this line entered.
    pub(super) fn behind(&self, entered: Option<Line>) -> &[Entry] {
        let from = entered.and_then(|line| {
            let mut entered = self.entered.iter().rev();
            entered.find(|(at, _)| *at == line)
        });
        &self.entries[from.map_or(0, |(_, before)| *before)..]
    }

    /// Returns the entries for a routing model: the newest summary, if there is one, and the newest messages since. The newest
    /// message that the summary covers is shown, too. The window moves in steps of `most` messages and contains at most twice
    /// as many, so the beginning of the requests stays the same.
    pub(super) fn said(
        &self,
        most: usize,
        policy: &str,
    ) -> (Option<Body>, impl Iterator<Item = &Entry>) {
        let (summary, since) = self.since(policy);
        let (covered, _) = self.entries.split_at(self.entries.len() - since.len());
        let is_said = |entry: &&Entry| matches!(entry.what, What::Said(_));
        let said: Vec<&Entry> = since.iter().filter(is_said).collect();
        let skip = (said.len() / most).saturating_sub(1) * most;
        let newest = covered.iter().rev().find(is_said).filter(|_| skip == 0);
        let shown = newest.into_iter().chain(said.into_iter().skip(skip));
        (summary, shown)
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
        let Some(k) = self.turns.iter().rposition(|turn| turn.call == call) else {
            return Heard {
                summary: None,
                entries: Vec::new(),
            };
        };
        let turn = &self.turns[k];
        let own = self.turns[..k]
            .iter()
            .rposition(|t| t.member == turn.member);
        // The member knows its own last turn, so its view begins after that turn.
        let from = own.map_or(0, |own| self.turns[own].after);
        let entered = entered.and_then(|line| {
            let mut entered = self.entered.iter().rev();
            entered.find(|(at, _)| *at == line)
        });
        let from = entered.map_or(from, |(_, before)| from.max(*before));
        let entries = self.entries.iter().enumerate();
        let entries = entries.take(turn.before).skip(from);
        let all = view.of == Seen::Shared;
        let mut seen: Vec<(usize, &Entry)> = entries
            .filter(|(_, entry)| all || matches!(entry.what, What::Said(_)))
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
