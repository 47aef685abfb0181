//! What was said and done under a routed agent, in order: what routing models are shown, and what members see of each
//! other.

use super::History;
use crate::ids::{Body, Id, Line, Name};
use crate::interaction::{Call, CallResult, Choice, Interaction, Origin, Target};
use crate::network::{Seen, ViewDef};
use std::sync::Arc;

/// Something that was said or done.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) who: Who,
    pub(super) what: What,
    /// The line that pushed it.
    pub(super) line: Line,
}

/// Who said or did it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Who {
    /// Somebody outside; their role, if it is not the user.
    Outside(Option<Name>),
    /// A member.
    Member(Name),
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Said(Body),
    /// A call of a member's own, and what it gave.
    Did(Call, Option<Box<CallResult>>),
}

/// The calls of members: whose, and what had been said before.
#[derive(Clone, Debug)]
struct Turn {
    call: Id,
    member: Name,
    target: Target,
    before: usize,
}

/// The stack of a routed agent as a conversation.
#[derive(Debug, Default)]
pub(super) struct Talk {
    agent: Option<Id>,
    entries: Vec<Entry>,
    turns: Vec<Turn>,
    last: Line,
}

impl Talk {
    /// Takes in what was pushed since. Another stack (a rewind, an adoption) is read anew.
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
            // The chain does not lead to what is known: from its end.
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
            line,
        };
        match interaction {
            Interaction::UserMessage { from, body } => match from {
                Origin::Outside(role) => self.entries.push(said(Who::Outside(role.clone()), *body)),
                Origin::Call(_) | Origin::Agent(_) | Origin::Continuation => {
                    self.entries.push(said(Who::Outside(None), *body));
                }
                // What a speaker left unanswered was said to it, and stands there.
                Origin::Released(_)
                | Origin::Route
                | Origin::Correction
                | Origin::Limit
                | Origin::Review
                | Origin::Conclude
                | Origin::Net => {}
            },
            Interaction::Route(route) if route.refused.is_none() => match &route.chosen {
                Choice::Say { member, body, .. } => {
                    self.entries.push(said(Who::Member(member.clone()), *body));
                }
                Choice::Answer(body) => {
                    self.entries.push(said(Who::Member("you".into()), *body));
                }
                _ => {}
            },
            Interaction::Call(call) => self.turns.push(Turn {
                call: call.id,
                member: call.seen.clone().unwrap_or_else(|| call.name.clone()),
                target: call.target.clone(),
                before: self.entries.len(),
            }),
            Interaction::Result(result) => self.ended(history, line, result),
            Interaction::Route(_)
            | Interaction::AssistantMessage { .. }
            | Interaction::Summary(_)
            | Interaction::Finished { .. } => {}
        }
    }

    /// A member's turn is over: what was said and done in it.
    fn ended(&mut self, history: &dyn History, line: Line, result: &CallResult) {
        let mut newest = self.turns.iter().rev();
        let Some(turn) = newest.find(|turn| turn.call == result.call) else {
            return;
        };
        let who = Who::Member(turn.member.clone());
        match turn.target {
            Target::Agent(child) => {
                let turn = turn_of(history, child, line, result.call);
                let mut own = Vec::new();
                for (line, interaction) in turn {
                    heard(&mut own, &who, line, &interaction);
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
            line,
        }));
    }

    /// What a routing model is shown: the newest, moved on in steps, so that the beginning of its requests stays.
    pub(super) fn said(&self, most: usize) -> impl Iterator<Item = &Entry> {
        let said: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.what, What::Said(_)))
            .collect();
        let skip = (said.len() / most).saturating_sub(1) * most;
        said.into_iter().skip(skip)
    }

    /// What a member sees of the others where it was called; none: nothing was said or done since.
    pub(super) fn seen(&self, call: Id, view: &ViewDef, entered: Option<Line>) -> Vec<&Entry> {
        let Some(k) = self.turns.iter().rposition(|turn| turn.call == call) else {
            return Vec::new();
        };
        let turn = &self.turns[k];
        let own = self.turns[..k]
            .iter()
            .rposition(|t| t.member == turn.member);
        // What was said in its own turn it knows: the next one begins behind it.
        let from = own.map_or(0, |own| self.turns[own + 1].before);
        let entries = self.entries[from.min(turn.before)..turn.before].iter();
        let all = view.of == Seen::Shared;
        let mut seen: Vec<&Entry> = entries
            .filter(|entry| all || matches!(entry.what, What::Said(_)))
            .filter(|entry| entered.is_none_or(|line| entry.line >= line))
            .collect();
        if let Some(most) = view.window {
            let skip = seen.len().saturating_sub(most as usize);
            seen.drain(..skip);
        }
        seen
    }
}

/// What a member heard, said and did in its turn.
fn heard(own: &mut Vec<Entry>, who: &Who, line: Line, interaction: &Interaction) {
    let said = |who: Who, body: Body| Entry {
        who,
        what: What::Said(body),
        line,
    };
    match interaction {
        Interaction::UserMessage {
            from: Origin::Outside(role),
            body,
        } => own.push(said(Who::Outside(role.clone()), *body)),
        Interaction::AssistantMessage {
            text: Some(text), ..
        } => own.push(said(who.clone(), *text)),
        Interaction::Call(call) => own.push(Entry {
            who: who.clone(),
            what: What::Did(call.clone(), None),
            line,
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

/// The pushes of a member from the message of a call to the end of its task, which lie at and below that line.
fn turn_of(history: &dyn History, child: Id, end: Line, call: Id) -> Vec<(Line, Interaction)> {
    let mut turn = Vec::new();
    let mut at = end;
    while at.is_some() {
        let (block, below): (Arc<[Interaction]>, Line) = history.pushes(child, at);
        for interaction in block.iter().rev() {
            turn.push((at, interaction.clone()));
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
