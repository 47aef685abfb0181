//! Routed agents: their routers, and the settings of the routers.

use super::Requires;
use crate::stored::ids::Name;
use crate::values::expression::{Expr, Template};
use std::collections::BTreeMap;

/// Settings of a routed agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The router that chooses which member acts next.
    pub by: RouteBy,
    /// Settings for asking a model, if the router asks one.
    pub asks: Asks,
    /// Reaction to a member that failed.
    pub on_failed: OnFailed,
    /// View of each member on the others, unless the member has its own.
    pub view: ViewDef,
}

/// The kinds of routers.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteBy {
    /// The first rule whose expression holds decides.
    Rules(Vec<Rule>),
    /// The members act in this order; each gets the result of the one before.
    Sequence(Vec<Name>),
    /// A router in Rust, registered under the agent's name. It is called once for each decision; its answer is recorded.
    Native {
        /// Version of the router; part of the digest.
        version: String,
        /// Members that it may choose.
        members: Vec<Name>,
    },
    /// A model picks a member, or says that all is done.
    Pick(Vec<Choosable>),
    /// A graph of states with speakers.
    States(Graph),
    /// A concierge over tasks.
    Tasks(Desk),
    /// Members that pass the floor to each other.
    Handoff(Handoff),
}

/// Generates the kinds of routers from one table: a variant of [`RouteBy`], and the key of a route that selects it.
macro_rules! router_kinds {
    ($($variant:ident = $key:literal,)*) => {
        /// A kind of router, without its settings.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum RouterKind {
            $(#[doc = concat!("[`RouteBy::", stringify!($variant), "`]")] $variant,)*
        }

        impl RouterKind {
            /// The keys of a route that select a router, in the order of the reference.
            pub const KEYS: &[&str] = &[$($key,)*];

            /// Returns the kind of router for a key of a route. `None` if the key makes no router.
            pub fn of(key: &str) -> Option<Self> {
                match key {
                    $($key => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

router_kinds! {
    Rules = "rules",
    Sequence = "sequence",
    States = "states",
    Tasks = "tasks",
    Handoff = "handoff",
    Pick = "pick",
    Native = "native",
}

/// Settings by which a router asks its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Asks {
    /// Model for `judge` exits, for `by_model`, for `pick`, and for the orchestrator if that names none.
    pub model: Name,
    /// System prompt of `pick`. `None` means the built-in prompt.
    pub system: Option<Template>,
    /// Reaction to an answer that cannot be used.
    pub unusable: Unusable,
}

/// Reaction to answers of a routing model that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Number of times that the model is asked again, with the error shown.
    pub retries: u32,
    /// Choice after the last retry.
    pub to: Fallback,
}

/// Choice in place of a model's answer that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// This member acts.
    Member(Name),
    /// In a graph the state stays; if the question was who speaks, the next speaker in
    /// turn speaks. In any other router the route ends.
    Stay,
    /// The route ends.
    Finish,
    /// The route fails.
    Fail,
}

/// A rule of a `rules` router.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The rule applies if this expression holds.
    pub when: Expr,
    /// Choice of the rule.
    pub to: RuleTo,
}

/// Choice of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleTo {
    /// These members act, one after the other.
    Agents(Vec<Name>),
    /// The route ends.
    Finish,
    /// A model picks the member that acts.
    Pick {
        /// Members from which the model picks.
        from: Vec<Choosable>,
        /// The model that picks. `None` means the route's model.
        model: Option<Name>,
    },
}

/// A member that a model may pick.
#[derive(Clone, Debug, PartialEq)]
pub struct Choosable {
    /// Name of the member.
    pub agent: Name,
    /// The member is offered while this expression holds. `None` means always.
    pub when: Option<Expr>,
}

/// Reaction of a route to a member that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnFailed {
    /// The route fails too.
    Fail,
    /// The route goes on.
    Continue,
    /// This member acts next.
    To(Name),
}

/// Settings of a member's view on the others under a routed agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewDef {
    /// Part of the conversation that is seen.
    pub of: Seen,
    /// Number of the newest messages that are seen. `None` means all.
    pub window: Option<u32>,
    /// Summary in place of older messages. `None` means that nothing takes their place.
    pub summary: Option<Box<SummaryDef>>,
    /// Maximum number of passages that full-text search adds for the newest message, from messages that the member does not see
    /// otherwise.
    pub relevant: u32,
}

/// A running summary of the messages under a routed agent.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryDef {
    /// Number of messages of members after which the summary is written again.
    pub every: u32,
    /// The model that writes it.
    pub model: Name,
    /// Prompt of that model. `None` means the built-in prompt.
    pub prompt: Option<Template>,
    /// True if the member has a summary of its own. Otherwise it shares the summary of its routed agent, if there is one.
    pub own: bool,
}

/// The part of the others' conversation that a member sees.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// Nothing of the others; only the member's own stack.
    #[default]
    Own,
    /// Messages and calls of the others since the member last acted.
    Shared,
    /// Messages of the others since the member last acted.
    SinceLastSpoke,
    /// Messages since the current state of the graph was entered.
    SinceEntry,
}

/// A graph of states (`states`).
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The states by name.
    pub states: BTreeMap<Name, StateNode>,
    /// Name of the first state.
    pub start: Name,
}

/// A state of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct StateNode {
    /// Text before each speaker's system prompt.
    pub scene: Option<Template>,
    /// Speakers in speaking order; never empty.
    pub speakers: Vec<Speaker>,
    /// Rule that chooses the next speaker.
    pub order: Order,
    /// Opening of the state. `None` means that the first speaker begins, without an opening.
    pub begin: Option<Begin>,
    /// Exits of the state, in order.
    pub exits: Vec<Exit>,
    /// View of the speakers in this state. `None` means the route's view.
    pub view: Option<ViewDef>,
    /// True if counters and opening start again each time the state is entered.
    pub reset: bool,
}

/// A speaker of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Speaker {
    /// Name of the member.
    pub agent: Name,
    /// Role in this state; the name by which models choose the speaker.
    pub role: Name,
    /// Text that is added to the member's system prompt in this state.
    pub instructions: Option<Template>,
    /// State entries that are filled from the speaker's messages.
    pub extract: Vec<Name>,
}

/// Rule that chooses the next speaker of a state.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The speakers take turns.
    #[default]
    InTurn,
    /// Any speaker but the last one, at random. The session's seed determines the choice.
    Random,
    /// A model chooses the speaker.
    ByModel,
}

/// Opening of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// Role that speaks first.
    pub speaker: Name,
    /// Message in the name of that role, without a model call.
    pub say: Option<Template>,
}

/// An exit of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Exit {
    /// Condition under which the state is left.
    pub cause: ExitCause,
    /// Target of the exit.
    pub to: ExitTo,
}

/// Condition under which a state is left.
#[derive(Clone, Debug, PartialEq)]
pub enum ExitCause {
    /// The expression holds.
    When(Expr),
    /// A judge model says that this statement holds.
    Judge(Template),
    /// The state has at least this many messages.
    AfterMessages(u32),
}

/// Target of an exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitTo {
    /// The state of this name.
    State(Name),
    /// The end of the route.
    Finish,
}

/// A concierge (`tasks`): a router that asks a model which task a message is about, and calls the member for that task.
#[derive(Clone, Debug, PartialEq)]
pub struct Desk {
    /// The tasks in the order of the definition.
    pub tasks: Vec<Task>,
    /// Member that speaks when no task is chosen. It answers once and never keeps the floor.
    pub default: Option<Name>,
    /// Settings for asking which task a message is about.
    pub orchestrator: Orchestrator,
    /// Reaction to a task that is done.
    pub go_on: GoOn,
    /// Reaction to a user who wants something else in the middle of a task.
    pub on_change: OnChange,
}

/// Settings of the model that decides which task a message is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orchestrator {
    /// System prompt. `None` means the built-in prompt.
    pub system: Option<Template>,
    /// The model. `None` means the route's model.
    pub model: Option<Name>,
    /// True if the model may answer the user itself.
    pub speaks: bool,
}

/// Reaction of a concierge to a task that is done.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum GoOn {
    /// Continue with the task that the user asked for, without a model call.
    #[default]
    Request,
    /// Ask a model what is left to be done.
    ByModel,
    /// End the turn of the route.
    None,
}

/// Reaction to a user who wants something else in the middle of a task.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// The other request comes first.
    #[default]
    Switch,
    /// The user is asked whether to leave the task.
    Ask,
    /// The task must be done first.
    FinishFirst,
}

/// A task of a concierge.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Name of the task.
    pub name: Name,
    /// Member that does the task.
    pub agent: Name,
    /// Tasks that must be done first.
    pub after: Vec<Name>,
    /// Expression that holds once the task is done. `None` means that the agent says when it is done.
    pub done: Option<Expr>,
    /// Preconditions; all must hold for the task to begin.
    pub requires: Vec<Requires>,
    /// State entries that are unset when the task begins.
    pub clear: Vec<Name>,
    /// True if the agent may say that the task is done (`done`).
    pub may_end: bool,
    /// True if the agent may give the floor back (`need_help`).
    pub may_release: bool,
}

/// Members that pass the floor to each other with the tool `handoff` (`handoff`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// For each member the members to which it may pass the floor.
    pub to: BTreeMap<Name, Vec<Name>>,
    /// Member that has the floor first.
    pub start: Name,
}

impl Route {
    /// Returns the models that the router may ask, for decisions or for summaries.
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
    /// Returns the view of members on each other if the definition sets none.
    pub fn usual_view(&self) -> Seen {
        match self {
            Self::States(_) | Self::Tasks(_) | Self::Handoff(_) => Seen::Shared,
            Self::Rules(_) | Self::Sequence(_) | Self::Native { .. } | Self::Pick(_) => Seen::Own,
        }
    }

    /// Returns the reaction to a member that failed if the definition sets none.
    pub fn usual_on_failed(&self) -> OnFailed {
        let reads_last = |rule: &Rule| rule.when.source.contains("route.last");
        match self {
            Self::States(_) => OnFailed::Continue,
            Self::Tasks(desk) => desk.default.clone().map_or(OnFailed::Fail, OnFailed::To),
            // A rule that reads `route.last` handles failures itself.
            Self::Rules(rules) if rules.iter().any(reads_last) => OnFailed::Continue,
            Self::Rules(_)
            | Self::Sequence(_)
            | Self::Native { .. }
            | Self::Pick(_)
            | Self::Handoff(_) => OnFailed::Fail,
        }
    }

    /// Returns the choice in place of an answer that cannot be used, if the definition sets none.
    pub fn usual_fallback(&self) -> Fallback {
        match self {
            Self::Tasks(Desk {
                default: Some(name),
                ..
            }) => Fallback::Member(name.clone()),
            Self::States(_) => Fallback::Stay,
            // `Finish` would give a result that no model chose.
            Self::Tasks(_)
            | Self::Rules(_)
            | Self::Sequence(_)
            | Self::Native { .. }
            | Self::Pick(_)
            | Self::Handoff(_) => Fallback::Fail,
        }
    }

    /// Returns true if `member` is a member of the router.
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

    /// Returns true if the router's members talk with the user over several turns.
    pub(crate) fn has_dialogues(&self) -> bool {
        matches!(self, Self::Tasks(_) | Self::Handoff(_))
    }

    /// Returns true if this member talks with the user over several turns. Its task ends only when the member calls `done` or
    /// the task's expression `done` holds.
    pub(crate) fn talks_with(&self, member: &str) -> bool {
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
    /// Returns true if a model is asked in this state.
    fn asks(&self) -> bool {
        let judged = |exit: &Exit| matches!(exit.cause, ExitCause::Judge(_));
        (self.order == Order::ByModel && self.speakers.len() > 1) || self.exits.iter().any(judged)
    }

    /// Returns a member as a speaker: in the given role if the member has it, else in its first role.
    pub fn speaker(&self, role: &str, agent: &str) -> Option<&Speaker> {
        let mut own = self.speakers.iter().filter(|s| *s.agent == *agent);
        let first = own.clone().next();
        own.find(|s| *s.role == *role).or(first)
    }

    /// Returns the first speaker with this role.
    pub fn plays(&self, role: &str) -> Option<&Speaker> {
        self.speakers.iter().find(|s| *s.role == *role)
    }
}

impl Desk {
    /// Returns the task of this name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| *task.name == *name)
    }
}
