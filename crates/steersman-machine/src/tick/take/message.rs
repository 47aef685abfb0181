//! Messages to agents, and answers to open questions.

use crate::network::{AgentDef, Does, Network, Offer, Source, Turns};
use crate::routers::floor::{asks_to_leave, turns};
use crate::snapshot::{OpenCall, Phase, Snapshot};
use crate::stored::commit::{Admission, Admitted};
use crate::stored::ids::Id;
use crate::stored::interaction::Target;
use crate::tick::effect::{Said, Until};
use crate::tick::table::{self, Event, Rule};
use crate::tick::take::Taken;
use crate::tick::{Tick, branch};
use std::sync::Arc;

impl Tick<'_> {
    /// Takes a message for the open question that it names, or else for the agent that has the floor below the named or top agent.
    pub(crate) fn take_message(&mut self, said: &Said) -> Taken {
        if let Some(open) = said.to.and_then(|to| self.question(to)) {
            if !said.sets.is_empty() {
                return Err(Until::refused("an answer to a question sets no state"));
            }
            return self.answer(&open, said);
        }
        let agent = self.addressee(said)?;
        self.may_hear(agent)?;
        let top = self.snapshot.top().unwrap_or(agent);
        for write in self.edits(top, &said.sets, &said.by)? {
            self.edit(write);
        }
        self.hear(agent, said, Admitted::Message);
        Ok(())
    }

    pub(super) fn addressee(&self, said: &Said) -> Result<Id, Until> {
        let from = match said.to {
            Some(to) if self.snapshot.agents.contains_key(&to) => to,
            Some(_) => return Err(Until::refused("there is no such agent or open question")),
            None => self
                .snapshot
                .top()
                .ok_or(Until::refused("the session has not begun"))?,
        };
        if !self.snapshot.in_scope(from) {
            return Err(Until::refused("this agent does not act on this branch"));
        }
        Ok(self.floor(from))
    }

    /// Checks whether the table lets an agent take a message now. Otherwise returns what the message waits for.
    pub(super) fn may_hear(&self, agent: Id) -> Taken {
        let state = self.agent(agent);
        let rule = table::rule(state.phase, Event::Message);
        if rule == Rule::TakeUnlessEnded
            && let Some(forked) = branch::standing(&self.snapshot, agent)
        {
            // The next tick would find the fork open, too, and so would each one after it.
            return Err(Until::Exchange(forked));
        }
        match rule {
            Rule::TakeUnlessEnded if state.stack.last == self.line => Err(Until::Again),
            Rule::TakeIfNothingWished if state.stack.owed.is_some() => Err(Until::Answered(agent)),
            // The answer was accepted in this same tick and is given first.
            Rule::TakeIfNothingWished if state.turn.draft_is_accepted() => Err(Until::Again),
            Rule::Take | Rule::TakeUnlessEnded | Rule::TakeIfNothingWished => Ok(()),
            Rule::Leave => Err(Until::Answered(agent)),
            // Open questions and dialogues below were looked for already.
            Rule::TakeIfAddressed => Err(Until::Exchange(agent)),
            Rule::Queue | Rule::Stale | Rule::Nothing => Err(Until::Stale),
        }
    }

    /// Returns the agent that has the floor below an agent ([`floor`]).
    pub(crate) fn floor(&self, from: Id) -> Id {
        floor(self.network, &self.snapshot, from)
    }

    /// Returns the open question that an id names, by its effect.
    fn question(&self, id: Id) -> Option<Arc<OpenCall>> {
        let open = self.snapshot.call_of(id)?;
        let asks = match &open.call.target {
            Target::Person(_) => true,
            Target::Branches(_) => open.effect.is_some(),
            Target::Tool(_) => {
                let tool = self.network.tools.get(&open.call.name);
                let asks = tool.is_some_and(|t| matches!(t.source, Source::Ask(_)));
                asks || asks_to_leave(self.network, open)
            }
            Target::Agent(_) | Target::Wait | Target::Unknown => false,
        };
        asks.then(|| open.clone())
    }

    fn answer(&mut self, open: &OpenCall, said: &Said) -> Taken {
        if !self.snapshot.in_scope(open.owner) {
            return Err(Until::refused("this question is not open on this branch"));
        }
        self.admit(Admission {
            kind: Admitted::Message,
            id: said.to,
            message: Some(said.id.clone()),
            by: None,
            body: None,
        });
        self.answer_call(open.owner, open.call.id, &said.text, &said.by);
        Ok(())
    }
}

/// Returns the agent that has the floor, found from an agent down through open calls of dialogues; of several the oldest.
/// Messages go to it, and when it rests its last text is the answer of all agents above it.
pub fn floor(network: &Network, snapshot: &Snapshot, from: Id) -> Id {
    let def = |id: Id| network.agent(&snapshot.agent(id).def);
    let mut at = from;
    while snapshot.agent(at).phase == Phase::Calling && has_dialogues(network, def(at)) {
        let below = snapshot
            .exchange(at)
            .find_map(|open| match open.call.target {
                Target::Agent(child)
                    if open.closed.is_none()
                        && snapshot.agent(child).input.serving == Some(open.call.id)
                        && turns(network, snapshot, child) == Turns::Dialogue =>
                {
                    Some(child)
                }
                _ => None,
            });
        match below {
            Some(child) => at = child,
            None => break,
        }
    }
    at
}

/// Returns true if an agent may call dialogues at all. The calls of other agents need not be searched.
fn has_dialogues(network: &Network, agent: &AgentDef) -> bool {
    let dialogue = |name| {
        let def = network.agents.get(name);
        def.is_some_and(|d| d.turns == Some(Turns::Dialogue))
    };
    match &agent.does {
        Does::Model(_) => agent.offers().any(|used| match &used.of {
            Offer::Agent(name) => dialogue(name),
            Offer::Tool(_) => false,
        }),
        Does::Route(_) => true,
        Does::Run { .. } => false,
    }
}
