//! Walks from an act back to its causes: down the agent's stack to the message that began the act, then on the sender's stack.

use super::past::{Past, Place};
use super::{Act, Step};
use std::collections::BTreeSet;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::{Cause, End, Interaction, Origin, Target};

/// Maximum number of steps. A chain is as long as agents are nested, so this is rarely reached.
const STEPS: usize = 200;
/// Number of steps in one router after which its earlier decisions are left out.
const OF_ROUTER: usize = 12;
/// Maximum number of results that are listed for one exchange of a model.
const RESULTS: usize = 4;

impl Past<'_> {
    /// Returns the chain: the act, and what led to it, back to the message that began everything.
    pub fn chain(&self, act: Act) -> Vec<Step> {
        let mut way = Way {
            past: self,
            steps: vec![self.step(act)],
            told: BTreeSet::new(),
            left: None,
        };
        let mut stage = Stage::Act;
        let mut at = match act {
            Act::Push(place) => way.begin(place, &mut stage),
            Act::Asked(effect) => self.last_before(effect).map_or(Next::Over, Next::To),
        };
        let mut seen = BTreeSet::new();
        let mut called = matches!(act, Act::Push(place) if self.call_at(place).is_some());
        loop {
            way.walk(&mut at, stage, called);
            // Continue outward with the call that brought the message.
            let Next::Out(call) = at else { break };
            if way.steps.len() >= STEPS || !seen.insert(call) {
                break;
            }
            (at, stage, called) = (Next::below(self, call), Stage::Called, true);
        }
        way.steps
    }
}

/// The next position of the walk.
#[derive(Copy, Clone, Debug)]
enum Next {
    /// This place, on the same stack.
    To(Place),
    /// Below this call, on the caller's stack.
    Out(Place),
    Over,
}

impl Next {
    fn below(past: &Past<'_>, place: Place) -> Self {
        past.before(place).map_or(Self::Over, Self::To)
    }
}

/// The part of the walk on one stack: the interaction that it looks for next depends on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// At the act of a model, or of the engine.
    Act,
    /// At a call or an end. The walk looks for the answer or the decision that made it.
    Called,
    /// A router's decision was found; earlier ones may have led to it.
    Chose,
    /// The last results that a model saw were listed.
    Saw,
    /// The walk looks only for the message that began the act.
    Began,
    /// The walk looks only for the decision that gave the floor.
    Floor,
}

/// Decisions of a router that were left out.
#[derive(Copy, Clone, Debug)]
struct Left {
    router: Id,
    many: usize,
    newest: Line,
    oldest: Line,
}

/// The steps so far.
struct Way<'p, 'a> {
    past: &'p Past<'a>,
    steps: Vec<Step>,
    told: BTreeSet<Place>,
    /// Set once enough steps of a router were listed.
    left: Option<Left>,
}

impl Way<'_, '_> {
    /// Returns the start of the walk for an interaction on a stack.
    fn begin(&mut self, place: Place, stage: &mut Stage) -> Next {
        self.told.insert(place);
        let Some(push) = self.past.push(place) else {
            return Next::Over;
        };
        match &push.what {
            // A message is explained by its sender.
            Interaction::UserMessage { .. } => self.message(place, stage),
            Interaction::Result(result) => match self.past.call(result.call) {
                Some(call) if self.past.is_routed(call) => Next::To(place),
                Some(call) => {
                    self.tell(call);
                    Next::Out(call)
                }
                None => Next::Over,
            },
            Interaction::Call(_) => {
                *stage = Stage::Called;
                Next::below(self.past, place)
            }
            Interaction::Finished { cause, .. } => {
                *stage = Stage::Called;
                self.ended(place, *cause)
            }
            Interaction::Route(_) => {
                *stage = Stage::Chose;
                Next::below(self.past, place)
            }
            Interaction::AssistantMessage { .. }
            | Interaction::Summary(_)
            | Interaction::Earlier(_) => Next::below(self.past, place),
        }
    }

    /// Goes back from the end of a turn or task to the model's answer that led to it. Skips judgements of the draft, and the call
    /// of the tool whose result is the end.
    fn ended(&mut self, end: Place, cause: Cause) -> Next {
        let gave = |result: Place| cause == Cause::Tool && result.line == end.line;
        let mut at = self.past.before(end);
        while let Some(place) = at {
            match self.past.push(place).map(|push| &push.what) {
                Some(Interaction::Result(result)) => {
                    let call = self.past.call(result.call);
                    let made = call.and_then(|call| self.past.call_at(call));
                    if made.is_some_and(|made| made.judged().is_some()) {
                        self.tell(place);
                    } else if let Some(call) = call.filter(|_| gave(place)) {
                        self.tell(call);
                    } else {
                        break;
                    }
                }
                Some(Interaction::Call(call)) if call.judged().is_some() => {}
                Some(Interaction::Finished {
                    end: End::Draft, ..
                }) => {}
                _ => break,
            }
            at = self.past.before(place);
        }
        at.map_or(Next::Over, Next::To)
    }

    /// Walks down a stack to the message that began the act, and to the call that brought it. `called` is true if a call on
    /// this stack is listed already.
    fn walk(&mut self, at: &mut Next, mut stage: Stage, mut called: bool) {
        let begins = self.steps.len();
        let mut results = 0;
        while let Next::To(place) = *at {
            let Some(push) = self.past.push(place) else {
                *at = Next::Over;
                break;
            };
            *at = Next::below(self.past, place);
            match (&push.what, stage) {
                (Interaction::AssistantMessage { .. }, Stage::Called) => {
                    self.tell(place);
                    stage = Stage::Act;
                }
                // A decision, and earlier ones of the same router that led to it.
                (Interaction::Route(route), Stage::Act | Stage::Called | Stage::Chose)
                    if route.refused.is_none() =>
                {
                    self.decided(place, push.agent);
                    stage = Stage::Chose;
                }
                (Interaction::AssistantMessage { .. }, Stage::Saw) => stage = Stage::Began,
                (
                    Interaction::Result(result),
                    Stage::Act | Stage::Called | Stage::Chose | Stage::Saw,
                ) => {
                    let call = self.past.call(result.call);
                    if let Some(call) = call.filter(|call| self.past.is_routed(*call)) {
                        if self.steps.len() - begins >= OF_ROUTER {
                            self.leave(push.agent);
                        }
                        *at = self.routed(place, call, called);
                        called = true;
                        stage = Stage::Called;
                        continue;
                    }
                    // A judgement further down is about an earlier answer.
                    let made = call.and_then(|call| self.past.call_at(call));
                    let is_old = stage == Stage::Saw && made.is_some_and(|m| m.judged().is_some());
                    if !is_old {
                        results += 1;
                    }
                    if results <= RESULTS && !is_old {
                        self.tell(place);
                    }
                    stage = Stage::Saw;
                }
                (Interaction::UserMessage { .. }, _) => {
                    let next = self.message(place, &mut stage);
                    if !matches!(next, Next::To(_)) {
                        *at = next;
                    }
                }
                _ => {}
            }
        }
        self.arrive();
    }

    /// Lists the result of a member and the call that it answers. A message that the member got in between caused the later
    /// decisions. If one of their calls is listed already (`called`), the walk ends with that message.
    fn routed(&mut self, result: Place, call: Place, called: bool) -> Next {
        self.turn(result);
        let member = match self.past.call_at(call).map(|call| &call.target) {
            Some(Target::Agent(member)) => Some(*member),
            _ => None,
        };
        if let Some(words) = member.and_then(|member| self.past.words(member, call, result)) {
            if called {
                self.arrive();
                self.tell(words);
                return Next::Over;
            }
            self.turn(words);
        }
        if self.left.is_none() && self.told.insert(call) {
            let mut step = self.past.step(Act::Push(call));
            // The step of the result says the same.
            step.facts.retain(|fact| fact.word != super::CAME_TO);
            self.steps.push(step);
        }
        Next::below(self.past, call)
    }

    /// Handles a message. It ends the walk, or leads to the stack of its sender, or is an instruction of the engine, which the walk
    /// only lists.
    fn message(&mut self, place: Place, stage: &mut Stage) -> Next {
        let Some(push) = self.past.push(place) else {
            return Next::Over;
        };
        let Interaction::UserMessage { from, .. } = &push.what else {
            return Next::below(self.past, place);
        };
        let out = |way: &mut Self, call: Option<Place>| match call {
            Some(call) => {
                way.tell(call);
                Next::Out(call)
            }
            None => Next::Over,
        };
        match from {
            Origin::Outside(_) if self.past.is_root(push.agent) => {
                self.arrive();
                self.tell(place);
                Next::Over
            }
            Origin::Outside(_) => {
                // The agent has the floor; continue with the decision that gave it.
                if *stage != Stage::Floor {
                    self.arrive();
                    self.tell(place);
                }
                *stage = Stage::Floor;
                Next::below(self.past, place)
            }
            Origin::Call(call) => {
                self.arrive();
                out(self, self.past.call(*call))
            }
            Origin::Agent(sender) => {
                self.arrive();
                self.tell(place);
                out(self, self.past.sent(*sender, place.line))
            }
            Origin::Released(_)
            | Origin::Route
            | Origin::Continuation
            | Origin::Correction
            | Origin::Limit
            | Origin::Conclude
            | Origin::Reflect { .. }
            | Origin::Net => {
                if !matches!(stage, Stage::Floor | Stage::Began) {
                    self.turn(place);
                }
                Next::below(self.past, place)
            }
        }
    }

    // ---- steps -----------------------------------------------------------------------------------------------

    fn tell(&mut self, place: Place) {
        if self.told.insert(place) {
            self.steps.push(self.past.step(Act::Push(place)));
        }
    }

    /// Lists a part of a router's turn, or of a model's exchange.
    fn turn(&mut self, place: Place) {
        if self.left.is_none() {
            self.tell(place);
        }
    }

    fn decided(&mut self, place: Place, router: Id) {
        match &mut self.left {
            Some(left) if left.router == router => {
                if left.many == 0 {
                    left.newest = place.line;
                }
                left.many += 1;
                left.oldest = place.line;
            }
            _ => self.tell(place),
        }
    }

    /// Stops listing the decisions of a router.
    fn leave(&mut self, router: Id) {
        self.left.get_or_insert(Left {
            router,
            many: 0,
            newest: Line::NONE,
            oldest: Line::NONE,
        });
    }

    /// Adds a summary of the decisions that were left out, before the message that began them.
    fn arrive(&mut self) {
        let Some(left) = self.left.take().filter(|left| left.many > 0) else {
            return;
        };
        let many = match left.many {
            1 => "1 decision".to_owned(),
            many => format!("{many} decisions"),
        };
        let who = self.past.agent(left.router);
        let text = format!("... and {many} before, to @{}", left.oldest);
        self.steps
            .push(self.past.blank(left.newest, "earlier", &who, text));
    }
}
