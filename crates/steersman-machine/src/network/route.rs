//! Routed agents: what chooses who acts next.

use super::Requires;
use crate::expression::{Expr, Template};
use crate::ids::Name;
use std::collections::BTreeMap;

/// A routed agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// What chooses.
    pub by: RouteBy,
    /// How a model is asked, where one is.
    pub asks: Asks,
    /// A member that failed.
    pub on_failed: OnFailed,
    /// What its members see of each other, where they do not say otherwise.
    pub view: ViewDef,
}

/// What chooses who acts.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteBy {
    /// The first rule that holds.
    Rules(Vec<Rule>),
    /// One after the other; each gets the result of the one before.
    Sequence(Vec<Name>),
    /// In Rust, registered under the agent's name. Called once for each decision; its answer is recorded.
    Native {
        /// Its version, part of the digest.
        version: String,
        /// Those it may choose from.
        members: Vec<Name>,
    },
    /// A model picks, or says that all is done.
    Pick(Vec<Choosable>),
    /// A graph of states with speakers.
    States(Graph),
    /// A concierge over tasks.
    Tasks(Desk),
    /// Members pass the floor to each other.
    Handoff(Handoff),
}

/// How a router asks its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Asks {
    /// The model of judge, `by_model`, `pick` and, where that names none, of the orchestrator.
    pub model: Name,
    /// System prompt of `pick`; none: the built-in one.
    pub system: Option<Template>,
    /// An answer that cannot be used.
    pub unusable: Unusable,
}

/// What becomes of answers of a routing model that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// So often it is asked again, with the error shown.
    pub retries: u32,
    /// What is chosen then.
    pub to: Fallback,
}

/// What is chosen where a model gave nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// This member.
    Member(Name),
    /// The floor, or the state, stays as it is; of several speakers the next in turn.
    Stay,
    /// The route ends.
    Finish,
    /// The route fails.
    Fail,
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Holds.
    pub when: Expr,
    /// What comes next.
    pub to: RuleTo,
}

/// Where a rule leads.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleTo {
    /// To members, one after the other.
    Agents(Vec<Name>),
    /// To the end.
    Finish,
    /// To whom a model picks.
    Pick {
        /// From these.
        from: Vec<Choosable>,
        /// The model, if it is not the route's.
        model: Option<Name>,
    },
}

/// A member that a model may pick.
#[derive(Clone, Debug, PartialEq)]
pub struct Choosable {
    /// The member.
    pub agent: Name,
    /// Offered while it holds; none: always.
    pub when: Option<Expr>,
}

/// What becomes of a route when a member failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnFailed {
    /// It fails too.
    Fail,
    /// It goes on.
    Continue,
    /// To this member.
    To(Name),
}

/// What somebody sees of the others under a routed agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewDef {
    /// What of it.
    pub of: Seen,
    /// At most so many messages, the newest; none: all.
    pub window: Option<u32>,
    /// What stands in the place of what lies further back; none: nothing does.
    pub summary: Option<Box<SummaryDef>>,
    /// So many passages at most that full text finds for the newest message, of what was said and is not seen anyway.
    pub relevant: u32,
}

/// A running summary of what was said under a routed agent.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryDef {
    /// It is written anew after so many messages of members.
    pub every: u32,
    /// The model that writes it.
    pub model: Name,
    /// What that model is told; none: the built-in words.
    pub prompt: Option<Template>,
    /// One of these is written down. Else a member shares the summary of its network, where that has one.
    pub own: bool,
}

/// What of the others is seen.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// Nothing: its own stack.
    #[default]
    Own,
    /// What they said and did since it last acted.
    Shared,
    /// What they said since it last acted.
    SinceLastSpoke,
    /// What was said since the state of the graph was entered, and nothing from before.
    SinceEntry,
}

/// A graph of states (`states`).
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The states by name.
    pub states: BTreeMap<Name, StateNode>,
    /// Where it begins.
    pub start: Name,
}

/// A state of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct StateNode {
    /// Ahead of each speaker's system prompt.
    pub scene: Option<Template>,
    /// In speaking order; never empty.
    pub speakers: Vec<Speaker>,
    /// Who speaks next.
    pub order: Order,
    /// Who begins; none: the first, without an opening.
    pub begin: Option<Begin>,
    /// What leads out, in order.
    pub exits: Vec<Exit>,
    /// What speakers see here; none: the route's.
    pub view: Option<ViewDef>,
    /// Counters and opening begin anew each time it is entered.
    pub reset: bool,
}

/// Who speaks in a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Speaker {
    /// The member.
    pub agent: Name,
    /// By what name models choose it.
    pub role: Name,
    /// Added to its system prompt here.
    pub instructions: Option<Template>,
    /// State entries that are filled from what it said.
    pub extract: Vec<Name>,
}

/// Who speaks next in a state.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    #[default]
    InTurn,
    /// Any, seeded by the session.
    Random,
    /// A model says who.
    ByModel,
}

/// How a state begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// Who speaks first: the role.
    pub speaker: Name,
    /// Said in its name, without a model call.
    pub say: Option<Template>,
}

/// What leads out of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Exit {
    /// When.
    pub cause: ExitCause,
    /// Where to.
    pub to: ExitTo,
}

/// Why a state is left.
#[derive(Clone, Debug, PartialEq)]
pub enum ExitCause {
    /// An expression holds.
    When(Expr),
    /// A judge model says so.
    Judge(Template),
    /// So many messages were said in it.
    AfterMessages(u32),
}

/// Where an exit leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitTo {
    /// To a state.
    State(Name),
    /// To the end.
    Finish,
}

/// A concierge (`tasks`).
#[derive(Clone, Debug, PartialEq)]
pub struct Desk {
    /// The tasks in the order of the definition.
    pub tasks: Vec<Task>,
    /// Who speaks when no task is chosen: answers once and never keeps the floor.
    pub default: Option<Name>,
    /// Who is asked which task a message is about.
    pub orchestrator: Orchestrator,
    /// What follows a task that is done.
    pub go_on: GoOn,
    /// The user wants something else in the middle of a task.
    pub on_change: OnChange,
}

/// Who is asked which task a message is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orchestrator {
    /// System prompt; none: the built-in one.
    pub system: Option<Template>,
    /// The model; none: the route's.
    pub model: Option<Name>,
    /// May answer the user itself.
    pub speaks: bool,
}

/// What follows a task that is done.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum GoOn {
    /// What was asked for, without a model call.
    #[default]
    Request,
    /// A model says what is left.
    ByModel,
    /// Nothing.
    None,
}

/// What happens when the user wants something else in the middle of a task.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// That comes first.
    #[default]
    Switch,
    /// The user is asked.
    Ask,
    /// The task is done first.
    FinishFirst,
}

/// A task of a concierge.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name.
    pub name: Name,
    /// Who does it.
    pub agent: Name,
    /// Tasks that must be done first.
    pub after: Vec<Name>,
    /// When it is done; none: its agent says so.
    pub done: Option<Expr>,
    /// All must hold for it to begin.
    pub requires: Vec<Requires>,
    /// State that is unset when it begins.
    pub clear: Vec<Name>,
    /// Its agent may say that it is done.
    pub may_end: bool,
    /// Its agent may give the floor back.
    pub may_release: bool,
}

/// Members that pass the floor to each other (`handoff`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// Whom each may hand over to.
    pub to: BTreeMap<Name, Vec<Name>>,
    /// Who has the floor first.
    pub start: Name,
}

impl Route {
    /// The model names that its router may ask.
    pub fn models(&self) -> Vec<&Name> {
        let mut models = self.routing_models();
        let states = match &self.by {
            RouteBy::States(graph) => graph.states.values().collect(),
            _ => Vec::new(),
        };
        let of_states = states.into_iter().filter_map(|node| node.view.as_ref());
        let views = of_states.chain([&self.view]);
        models.extend(views.filter_map(|view| Some(&view.summary.as_ref()?.model)));
        models
    }

    fn routing_models(&self) -> Vec<&Name> {
        let asks = &self.asks.model;
        match &self.by {
            RouteBy::Rules(rules) => rules
                .iter()
                .filter_map(|rule| match &rule.to {
                    RuleTo::Pick { model, .. } => Some(model.as_ref().unwrap_or(asks)),
                    RuleTo::Agents(_) | RuleTo::Finish => None,
                })
                .collect(),
            RouteBy::Pick(_) => vec![asks],
            RouteBy::States(graph) if graph.states.values().any(StateNode::asks) => vec![asks],
            RouteBy::Tasks(desk) => {
                let mut models = vec![desk.orchestrator.model.as_ref().unwrap_or(asks)];
                if desk.go_on == GoOn::ByModel {
                    models.push(asks);
                }
                models
            }
            RouteBy::States(_)
            | RouteBy::Sequence(_)
            | RouteBy::Native { .. }
            | RouteBy::Handoff(_) => Vec::new(),
        }
    }
}

impl RouteBy {
    /// Whether this is one of its members.
    pub fn leads_to(&self, member: &str) -> bool {
        let is = |name: &Name| **name == *member;
        match self {
            Self::Rules(rules) => rules.iter().any(|rule| match &rule.to {
                RuleTo::Agents(names) => names.iter().any(is),
                RuleTo::Pick { from, .. } => from.iter().any(|c| is(&c.agent)),
                RuleTo::Finish => false,
            }),
            Self::Sequence(names) | Self::Native { members: names, .. } => names.iter().any(is),
            Self::Pick(from) => from.iter().any(|c| is(&c.agent)),
            Self::States(graph) => graph
                .states
                .values()
                .any(|node| node.speakers.iter().any(|s| is(&s.agent))),
            Self::Tasks(desk) => {
                desk.default.as_ref().is_some_and(is) || desk.tasks.iter().any(|t| is(&t.agent))
            }
            Self::Handoff(handoff) => handoff.to.contains_key(member),
        }
    }

    /// Whether its members talk with the user over turns.
    pub fn has_dialogues(&self) -> bool {
        matches!(self, Self::Tasks(_) | Self::Handoff(_))
    }

    /// Whether a member talks with the user over turns: then it ends its task only when it says so, or when that is done.
    pub fn talks_with(&self, member: &str) -> bool {
        match self {
            Self::Tasks(desk) => desk.tasks.iter().any(|task| *task.agent == *member),
            Self::Handoff(handoff) => handoff.to.contains_key(member),
            Self::Rules(_)
            | Self::Sequence(_)
            | Self::Native { .. }
            | Self::Pick(_)
            | Self::States(_) => false,
        }
    }
}

impl StateNode {
    /// Whether a model is asked in it.
    fn asks(&self) -> bool {
        let judged = |exit: &Exit| matches!(exit.cause, ExitCause::Judge(_));
        (self.order == Order::ByModel && self.speakers.len() > 1) || self.exits.iter().any(judged)
    }

    /// A member as a speaker: in this role if it plays it, else in its first.
    pub fn speaker(&self, role: &str, agent: &str) -> Option<&Speaker> {
        let mut own = self.speakers.iter().filter(|s| *s.agent == *agent);
        let first = own.clone().next();
        own.find(|s| *s.role == *role).or(first)
    }

    /// Who plays a role.
    pub fn plays(&self, role: &str) -> Option<&Speaker> {
        self.speakers.iter().find(|s| *s.role == *role)
    }
}

impl Desk {
    /// The task of this name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| *task.name == *name)
    }
}
