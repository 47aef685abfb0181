//! Texts that a user hears in addition to the answer: under `tasks` one task may end and the next one begin in the same turn,
//! and the user must hear the result of the first task as well as the question of the second.

use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::network::{Does, Network, Route, RouteBy, Turns};
use steersman_machine::routers::floor::turns;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::Kind;
use steersman_machine::stored::ids::{Body, Id, Line};
use steersman_machine::stored::interaction::{CallResult, End, How, Interaction, Origin, Target};

/// Returns the text that a user hears of a task that ended: the answer of an agent, the words of another person, or the text of
/// the definition that replaces the answer of a person who ran out of time. The user's own words are left out.
fn heard_text(target: &Target, result: &CallResult) -> Option<Body> {
    let person = result.by.as_ref().and_then(Decider::person);
    let by_user = person.is_some_and(|by| by.named().is_none());
    let heard = match (target, result.how) {
        (_, How::Finished) => true,
        (Target::Person(_), How::Done) => !by_user,
        (Target::Person(_), How::Expired) => result.code.is_none(),
        _ => false,
    };
    result.body.filter(|_| heard)
}

/// Finds the texts of ended tasks that a user hears on one branch.
pub(super) struct Heard<'a> {
    pub(super) network: &'a Network,
    pub(super) snapshot: &'a Snapshot,
    pub(super) history: &'a dyn History,
}

impl Heard<'_> {
    /// Returns the texts of tasks that ended between the previous answer and the present one of `speaker`, in order.
    pub(super) fn on_the_way(&self, root: Id, speaker: Id, answer: &str) -> Vec<Arc<str>> {
        let mut path = vec![speaker];
        let mut at = speaker;
        while let Some(parent) = self.snapshot.agent(at).family.parent.filter(|_| at != root) {
            path.push(parent);
            at = parent;
        }
        // A desk (an agent that is routed by `tasks`) may pass on the answer of a desk below it: then the tasks of the lower desk
        // count, too.
        path.reverse();
        let mut at = speaker;
        while let Some(below) = self.passed_on(at) {
            path.push(below);
            at = below;
        }
        let desks = path.into_iter().filter(|agent| self.is_desk(*agent));
        let texts = desks.map(|desk| self.at_desk(desk, answer));
        texts.collect::<Vec<_>>().concat()
    }

    /// Returns the routed member whose answer a resting routed agent passed on.
    fn passed_on(&self, agent: Id) -> Option<Id> {
        let is_routed = |id: Id| self.snapshot.agent(id).kind == Kind::Routed;
        if self.snapshot.agent(agent).phase != Phase::Resting || !is_routed(agent) {
            return None;
        }
        let (mut newest, mut ends) = (None, 0);
        for interaction in self.down(agent) {
            match interaction {
                Interaction::UserMessage { .. } => return None,
                Interaction::Finished { .. } if ends > 0 => return None,
                Interaction::Finished { .. } => ends += 1,
                Interaction::Result(result) if newest.is_none() => newest = Some(result.call),
                Interaction::Call(call) if newest == Some(call.id) => {
                    return match call.target {
                        Target::Agent(member) if is_routed(member) => Some(member),
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        None
    }

    /// Returns true if an agent is routed by `tasks`.
    fn is_desk(&self, agent: Id) -> bool {
        let def = &self.snapshot.agent(agent).def;
        let does = self.network.agents.get(def).map(|def| &def.does);
        let by = |route: &Route| matches!(route.by, RouteBy::Tasks(_));
        matches!(does, Some(Does::Route(route)) if by(route))
    }

    /// Returns the texts of the tasks of a desk that ended since the previous answer, in order.
    fn at_desk(&self, desk: Id, answer: &str) -> Vec<Arc<str>> {
        // If the desk rests, its own end is on top and is the answer; each end below it was heard before.
        let mut ends = u32::from(self.snapshot.agent(desk).phase == Phase::Resting);
        let mut texts: Vec<Arc<str>> = Vec::new();
        let mut closed: Vec<CallResult> = Vec::new();
        for interaction in self.down(desk) {
            match interaction {
                Interaction::Finished { .. } if ends == 0 => break,
                Interaction::Finished { .. } => ends -= 1,
                Interaction::UserMessage {
                    from: Origin::Outside(_) | Origin::Call(_) | Origin::Agent(_),
                    ..
                } => break,
                Interaction::Result(result) => closed.push(result),
                Interaction::Call(call) => {
                    let result = closed.iter().find(|result| result.call == call.id);
                    let spoken = match call.target {
                        Target::Agent(member) => self.turns(member, call.id),
                        // A person who was asked has heard the texts before the question.
                        Target::Person(_) => 1,
                        Target::Tool(_) | Target::Wait | Target::Branches(_) | Target::Unknown => 0,
                    };
                    if let Some(body) = result.and_then(|result| heard_text(&call.target, result)) {
                        let text = self.history.text(body);
                        let is_answer = ends == 0 && texts.is_empty() && *text == *answer;
                        if !is_answer && !text.trim().is_empty() {
                            texts.push(text);
                        }
                    }
                    // The newest turn of the speaker is the answer itself.
                    if spoken > u32::from(result.is_none()) {
                        break;
                    }
                }
                _ => {}
            }
        }
        texts.reverse();
        texts
    }

    /// Returns the number of turns that an agent ended, and so was heard, while it served a call. Counting stops once there are
    /// two, so that a long conversation is not read to its beginning.
    fn turns(&self, agent: Id, call: Id) -> u32 {
        let mut turns = 0;
        for interaction in self.down(agent) {
            match interaction {
                Interaction::UserMessage {
                    from: Origin::Call(id),
                    ..
                } if id == call => break,
                Interaction::Finished { end: End::Turn, .. } => turns += 1,
                Interaction::Call(below) => {
                    if let Target::Agent(member) = below.target
                        && self.is_heard(member)
                    {
                        turns += self.turns(member, below.id);
                    }
                }
                _ => {}
            }
            if turns > 1 {
                break;
            }
        }
        turns
    }

    fn is_heard(&self, agent: Id) -> bool {
        turns(self.network, self.snapshot, agent) == Turns::Dialogue
    }

    /// Returns the interactions of a stack, newest first.
    fn down(&self, agent: Id) -> impl Iterator<Item = Interaction> + '_ {
        let mut line = self.snapshot.agent(agent).stack.last;
        let mut here = Vec::new();
        std::iter::from_fn(move || {
            while here.is_empty() && line != Line::NONE {
                let (pushes, before) = self.history.pushes(agent, line);
                here = pushes.to_vec();
                line = before;
            }
            here.pop()
        })
    }
}
