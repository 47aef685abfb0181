//! The network: a definition after parsing and checking. It is immutable, is named by a digest and cannot be built invalid.
//!
//! Only the crate `steersman-definition` makes one, from YAML or from the Rust builder. Every name in it resolves.

mod aging;
mod approve;
pub mod budget;
mod doubt;
pub mod hooks;
pub mod join;
mod limits;
pub mod manifest;
mod mcp;
mod memory;
mod model;
mod modes;
pub mod nets;
pub mod notes;
mod offer;
mod output;
mod person;
mod reflect;
mod route;
pub mod schedule;
pub mod search;
pub mod texts;

pub use aging::{Aging, Beyond, Compact, ContextRender, Render};
pub use approve::{Approve, OnTimeout};
pub use doubt::{ANYBODY, OnDoubt, ProbeElse};
pub use mcp::{McpAt, McpDef, McpEffect, OAuth, ServerUse, SignsIn, wire_name};
pub use memory::MemoryDef;
pub use model::{
    AUTO, CallStyle, FileKind, LOCAL, ModelDef, ModelRetry, Provider, SCRIPTED, Takes,
};
pub use modes::{ExitsWhen, FINISH, Mode, ModeExit, Modes};
pub use offer::{Chooser, Offer, ToolUse};
pub use person::{PersonDef, Silence};
pub use reflect::Reflect;
pub use route::{
    Asks, Begin, Choosable, Desk, Exit, ExitCause, ExitTo, Fallback, GoOn, Graph, Handoff,
    OnChange, OnFailed, Orchestrator, Order, Route, RouteBy, RouterKind, Rule, RuleTo, Seen,
    Speaker, StateNode, SummaryDef, Task, Unusable, ViewDef,
};

use crate::stored::built_in::BuiltIn;
use crate::stored::ids::{Digest, Name};
use crate::stored::interaction::Class;
use crate::values::expression::{Data, EvalError, Expr, Scope, Template};
use crate::values::rate::Rate;
use crate::values::types::{Parameters, Type};
pub use limits::{DEPTH, Limit, Limits, OnLimit};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A checked definition.
#[derive(Clone, Debug)]
pub struct Network {
    /// Name of the network.
    pub name: Name,
    /// One line that describes the network.
    pub description: Option<String>,
    /// Digest of everything that shapes what sessions do, except bound `config` values, which the binding adds.
    pub digest: Digest,
    /// Canonical text of the definition with the files it names. This text is stored, and the network is rebuilt from it.
    pub source: Arc<str>,
    /// IANA time zone of `now`.
    pub timezone: String,
    /// Declared plain values by name.
    pub config: BTreeMap<Name, Config>,
    /// Handles of secrets by name.
    pub secrets: BTreeMap<Name, Secret>,
    /// Models by name; `default` is always present.
    pub models: BTreeMap<Name, ModelDef>,
    /// Messages from outside that are not chat, by name.
    pub events: BTreeMap<Name, EventDef>,
    /// Times at which sessions begin, by name.
    pub schedules: BTreeMap<Name, schedule::ScheduleDef>,
    /// Time for which a session is kept after its end, in milliseconds; then it is erased. `None` means that it is kept for ever.
    pub keep: Option<u64>,
    /// Budgets that sessions share, by name.
    pub budgets: BTreeMap<Name, budget::BudgetDef>,
    /// Templates of the session's labels by name.
    pub labels: BTreeMap<Name, Template>,
    /// Replacements for the engine's own sentences.
    pub texts: texts::Texts,
    /// Expressions over the end of a session, by name (`outcome:`).
    pub outcome: BTreeMap<Name, Expr>,
    /// Model whose embeddings find passages. `None` means that only full text is searched.
    pub embeddings: Option<Name>,
    /// Settings of the built-in tool set `memory`.
    pub memory: MemoryDef,
    /// MCP servers by name.
    pub mcp: BTreeMap<Name, McpDef>,
    /// Tools by name, with the built-in ones that are used. Of an MCP server, these are the tools that the definition names,
    /// without descriptions and schemas. [`Network::with_manifest`] adds both, and the server's other tools.
    pub tools: BTreeMap<Name, ToolDef>,
    /// Agents by name.
    pub agents: BTreeMap<Name, AgentDef>,
    /// People by name (agents with `person`); `user` is not among them.
    pub people: BTreeMap<Name, PersonDef>,
    /// Agents that a session may begin with; the first is the default.
    pub entry: Vec<Name>,
    /// The edges of the network: for each tool, agent and person, the tools, agents and people that it leads to directly.
    pub leads: BTreeMap<Name, BTreeSet<Name>>,
    /// Limits of the whole session.
    pub limits: Limits,
    /// The raw data that is recorded.
    pub record: Record,
    /// Hooks in Rust around the life of agents, in the order in which they are asked.
    pub hooks: Vec<hooks::HookDef>,
    /// Nets, routers and hooks in Rust, registered by name.
    pub natives: nets::Natives,
}

impl Network {
    /// Returns the agent of this name. Panics if there is none, because names in a network resolve.
    pub fn agent(&self, name: &str) -> &AgentDef {
        self.agents.get(name).expect("names in a network resolve")
    }
    /// Returns the tool of this name. Panics if there is none, because names in a network resolve.
    pub fn tool(&self, name: &str) -> &ToolDef {
        self.tools.get(name).expect("names in a network resolve")
    }
    /// Returns the description of an agent or person, as routers show it to models; empty if there is none of this name.
    pub(crate) fn description_of(&self, name: &str) -> &str {
        match (self.agents.get(name), self.people.get(name)) {
            (Some(agent), _) => &agent.description,
            (None, Some(person)) => &person.description,
            (None, None) => "",
        }
    }
    /// Returns the tool that passes the floor, if this use offers one.
    pub(crate) fn floor_tool(&self, used: &ToolUse) -> Option<BuiltIn> {
        let Offer::Tool(name) = &used.of else {
            return None;
        };
        match self.tools.get(name)?.source {
            Source::BuiltIn(kind) if kind.passes_floor() => Some(kind),
            _ => None,
        }
    }
}

/// Raw data that a definition wants stored in addition to the log. Nothing is stored yet.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// True if answers of tools are kept as they came.
    pub raw: bool,
    /// True if rendered requests are kept.
    pub requests: bool,
}

/// A declared plain value of `config`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Type of the value: `string`, `integer`, `number` or `boolean`.
    pub ty: Type,
    /// Environment variable that holds the value.
    pub env: Option<String>,
    /// Value used if the variable gives none. `None` means that a value is required.
    pub default: Option<Json>,
    /// True if the value is read at each use in a transport field and is not part of the digest.
    pub live: bool,
    /// True if clients of a server may set the value. Others may decide what is approved, or where a secret is sent.
    pub clients: bool,
}

/// Handle of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Source that is read at each use.
    pub source: SecretSource,
    /// True if the secret may be unset; a field that uses it is then absent.
    pub optional: bool,
}

/// Source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// Name of an environment variable.
    Env(String),
    /// Path of a file; the secret is its content without the last newline.
    File(String),
}

impl Network {
    /// Returns the network with the names of its models rendered in a scope that has `config`. Names of `given` replace those of
    /// the definition; [`LOCAL`] stands for any model of a server on this computer.
    ///
    /// # Errors
    /// A template fails; the model and the reason.
    pub fn with_model_names(
        &self,
        scope: &dyn Scope,
        given: &BTreeMap<Name, String>,
    ) -> Result<Self, (Name, EvalError)> {
        let mut network = self.clone();
        for (name, model) in &mut network.models {
            if given.get(name).is_some_and(|given| given == LOCAL) {
                model.provider = Provider::Local;
                (model.model, model.url, model.key) = (None, None, None);
                continue;
            }
            let text = match (given.get(name), &model.model) {
                (Some(given), _) => given.clone(),
                (None, Some(template)) => template.render(scope).map_err(|e| (name.clone(), e))?,
                (None, None) => continue,
            };
            model.model = Some(text)
                .filter(|text| !text.trim().is_empty())
                .map(|text| Template::plain(&text));
        }
        Ok(network)
    }

    /// Returns a model and its fallback models in the order in which they are asked, each once, those of a fallback after it.
    pub fn chain(&self, model: &str) -> Vec<&Name> {
        let mut chain = Vec::new();
        self.link(model, &mut chain);
        chain
    }

    fn link<'a>(&'a self, model: &str, chain: &mut Vec<&'a Name>) {
        let Some((name, def)) = self.models.get_key_value(model) else {
            return;
        };
        if !chain.contains(&name) {
            chain.push(name);
            for next in &def.fallback {
                self.link(next, chain);
            }
        }
    }

    /// Returns true if a limit of the session or of an agent, or a budget, limits cost.
    pub fn limits_cost(&self) -> bool {
        let mut agents = self.agents.values();
        self.limits.cost.is_some()
            || self.budgets.values().any(|budget| budget.cost.is_some())
            || agents.any(|agent| agent.all_limits().any(|limits| limits.cost.is_some()))
    }

    /// Returns the same definition for sessions that begin with this agent.
    pub fn beginning_with(&self, entry: &Name) -> Self {
        Self {
            entry: vec![entry.clone()],
            ..self.clone()
        }
    }

    /// Returns all names that can be reached over [`Network::leads`] from these names, which are included.
    fn reached<'a>(&'a self, from: impl IntoIterator<Item = &'a Name>) -> BTreeSet<&'a Name> {
        let mut open: Vec<&Name> = from.into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if seen.insert(name) {
                open.extend(self.leads.get(name).into_iter().flatten());
            }
        }
        seen
    }

    /// Returns the models that sessions beginning at `entry` may ask: the models of the agents and tools that can be reached, and
    /// their fallback models. The model of the embeddings is not included: a session works without it, and its calls are not
    /// counted.
    pub fn used_models(&self) -> BTreeSet<&Name> {
        self.models_of(&self.entry)
    }

    /// Returns the models that may be asked, whichever agent a session begins with.
    pub fn all_models(&self) -> BTreeSet<&Name> {
        self.models_of(self.agents.keys())
    }

    fn models_of<'a>(&'a self, from: impl IntoIterator<Item = &'a Name>) -> BTreeSet<&'a Name> {
        let reached = self.reached(from);
        let agents = self.agents.iter();
        let agents: Vec<&AgentDef> = agents
            .filter(|(name, _)| reached.contains(name))
            .map(|(_, agent)| agent)
            .collect();
        let asked = agents.iter().flat_map(|agent| {
            let mut models = match &agent.does {
                Does::Model(_) => agent.models().flat_map(ModelAgent::asks).collect(),
                Does::Route(route) => route.models(),
                Does::Run { .. } => Vec::new(),
            };
            let summary = agent.view.as_ref().and_then(|view| view.summary.as_ref());
            models.extend(summary.map(|summary| &summary.model));
            models
        });
        let extracts = agents.iter().any(|agent| agent.extracts());
        let small = extracts.then(|| self.small());
        let tools = self.tools.iter();
        let tools = tools.filter(|(name, _)| reached.contains(name));
        // Without a manifest, the tools of a server that is offered as a whole are not known.
        let models = agents.iter().flat_map(|agent| agent.models());
        let servers = models.flat_map(|model| &model.servers);
        let servers = servers.filter_map(|of| self.mcp.get(&of.server));
        let renders = tools
            .map(|(_, tool)| &tool.render)
            .chain(servers.flat_map(|server| server.render.values()));
        let ages = renders.filter_map(|render| render.age.as_ref());
        let sums = ages.filter(|age| age.beyond == Beyond::Summary);
        asked
            .chain(sums.map(|age| &age.model))
            .chain(small)
            .flat_map(|model| self.chain(model))
            .collect()
    }
}

/// A kind of message from outside that is not chat.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDef {
    /// Fields of the payload.
    pub fields: Vec<(Name, Type)>,
    /// Id of a message. A message whose id was accepted before is not accepted again.
    pub id: Template,
    /// Key of the session that the message belongs to.
    pub session: Option<Template>,
    /// Milliseconds for which a message that no wait took is kept.
    pub keep: u64,
    /// Present if the message may open a session.
    pub start: Option<StartDef>,
}

/// Rules by which an event or a schedule opens a session.
#[derive(Clone, Debug, PartialEq)]
pub struct StartDef {
    /// The root agent. `None` means the default entry.
    pub agent: Option<Name>,
    /// Arguments of the root agent.
    pub args: Vec<(Name, Data)>,
    /// First message of the session.
    pub message: Option<Template>,
}

/// A tool of the definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    /// Name of the tool.
    pub name: Name,
    /// Description that the model reads.
    pub description: String,
    /// Parameters of the tool.
    pub parameters: Parameters,
    /// Effect class of the tool.
    pub effect: Class,
    /// Preconditions of a call.
    pub requires: Vec<Requires>,
    /// Rules by which a person approves a call; empty if no approval is needed.
    pub approve: Vec<Approve>,
    /// Kind of the tool and its settings.
    pub source: Source,
    /// State writes of a successful call.
    pub set: Vec<(Name, Data)>,
    /// Text for the model after a success. `None` means the result as JSON, or unchanged if it is text.
    pub result: Option<Template>,
    /// Reactions to errors by code; the codes may be patterns, `http_4xx` and `*`.
    pub on_error: BTreeMap<String, OnError>,
    /// Way out of a doubt. `None` means `ask` if a person can be reached, else `fail`.
    pub on_doubt: Option<OnDoubt>,
    /// Result of a call in dry mode.
    pub simulate: Option<Data>,
    /// True if a call may repeat an equal effect of the session without asking a person.
    pub repeat_allowed: bool,
    /// Tool that is called next, without a model turn between.
    pub then: Option<Then>,
    /// Next mode of the caller if the call succeeds. `None` means that the mode stays.
    pub mode: Option<Template>,
    /// Rendering of the tool's calls and results.
    pub render: Render,
    /// Timeout of one attempt in milliseconds.
    pub timeout: u64,
    /// Maximum number of attempts after the first.
    pub retry: u32,
    /// Maximum number of calls of the tool that run at the same time in one process.
    pub parallel: u32,
    /// Judgement of the tool's results; for an `unsafe` tool, judgement of the arguments before a call begins.
    pub reflect: Option<Reflect>,
}

impl ToolDef {
    /// Returns true if a call of the tool begins after all others of its answer.
    pub(crate) fn is_last(&self) -> bool {
        matches!(
            self.source,
            Source::BuiltIn(
                BuiltIn::Finish
                    | BuiltIn::Fork
                    | BuiltIn::Done
                    | BuiltIn::NeedHelp
                    | BuiltIn::Handoff
            )
        )
    }
}

/// Kind of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The tool only writes state.
    State,
    /// The tool sends an HTTP request.
    Http(Box<Http>),
    /// The tool starts a process.
    Command {
        /// Program and arguments; no shell is involved.
        argv: Vec<Template>,
        /// Environment variables of the process.
        env: Vec<(String, Template)>,
        /// The artifact that it makes. `None` means that its output is the result.
        save: Option<Box<Save>>,
    },
    /// A function in Rust that is registered under the tool's name.
    Native {
        /// Version of the function.
        version: String,
    },
    /// The tool waits; its call parks the session.
    Wait(Wait),
    /// The tool asks this person (or `user`) a question.
    Ask(Name),
    /// The tool sends a message to this agent.
    Send(Name),
    /// The tool is part of the engine.
    BuiltIn(BuiltIn),
    /// The tool belongs to an MCP server.
    Mcp {
        /// Name of the server in the definition.
        server: Name,
        /// Name of the tool at the server.
        tool: Arc<str>,
        /// JSON Schema of the structured result, if the server gives one.
        output: Option<Arc<str>>,
    },
}

/// The artifact that a command makes: of the file at the path `save`, if its arguments or environment name that; else of what it
/// prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Save {
    /// Name of the artifact.
    pub name: Template,
    /// Media type. `None` means the one that belongs to the ending of the name.
    pub media: Option<String>,
}

/// An HTTP request. Its templates are transport fields, in which `secrets` and sealed state resolve.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// Address of the request.
    pub url: Template,
    /// Method of the request.
    pub method: String,
    /// Query parameters; those that are `none` are left out.
    pub query: Option<Data>,
    /// Request headers.
    pub headers: Vec<(String, Template)>,
    /// JSON body of the request.
    pub json: Option<Data>,
    /// Form body of the request.
    pub form: Option<Data>,
    /// Name of the artifact that is sent as the body.
    pub file: Option<Template>,
    /// Name of the artifact in which the response body is stored; the result is this name.
    pub save: Option<Template>,
    /// Header for the effect id of `idempotent` tools.
    pub key_header: String,
    /// Outcomes by status, such as `502` or `5xx`.
    pub outcomes: BTreeMap<String, HttpOutcome>,
    /// Highest rate of requests.
    pub rate: Option<Rate>,
}

/// Meaning of an HTTP status for the outcome of an effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// The effect happened.
    Done,
    /// The effect did not happen.
    NotPerformed,
    /// The effect may have happened.
    Unknown,
}

/// A precondition of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Requires {
    /// Expression that must hold.
    pub that: Expr,
    /// Text for the model if the expression does not hold. `None` means the text of the expression.
    pub otherwise: Option<Template>,
}

/// Reaction to an error of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct OnError {
    /// State writes after the error.
    pub set: Vec<(Name, Data)>,
    /// Text for the model. `None` means the code and the message of the error.
    pub result: Option<Template>,
    /// Tool that is called next.
    pub then: Option<Then>,
}

/// A tool that is called after another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Then {
    /// Name of the tool.
    pub tool: Name,
    /// Arguments of the tool. `None` means `result`.
    pub args: Option<Vec<(Name, Data)>>,
}

/// A wait of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Condition that is waited for.
    pub on: WaitOn,
    /// The longest wait in milliseconds.
    pub timeout: Option<u64>,
    /// Result after the timeout. `None` means the error `timeout`.
    pub on_timeout: Option<Template>,
}

/// Condition of a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitOn {
    /// An event whose fields match and for which `when`, if given, holds.
    Event {
        /// Name of the event.
        event: Name,
        /// Fields that must be equal to these values, which are computed when the wait opens.
        matching: Vec<(Name, Data)>,
        /// Additional condition over `event` and `args`.
        when: Option<Expr>,
    },
    /// A span of time; the template renders to a duration.
    Time(Template),
    /// A date and time in the network's time zone.
    Until(Template),
    /// The end of branches that are forked here. The number says how many must end; `None` means all.
    Branches(Option<u32>),
    /// A number of commits of this branch.
    Ticks(u64),
    /// An expression over state that must hold.
    When(Expr),
    /// At least one of these waits.
    Any(Vec<Wait>),
    /// All of these waits.
    All(Vec<Wait>),
}

/// An agent: model-driven, routed, or one that only runs a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDef {
    /// Name of the agent.
    pub name: Name,
    /// Description for models that may choose the agent.
    pub description: String,
    /// Parameters of a call of the agent.
    pub parameters: Parameters,
    /// Structured answer. `None` means that the answer is text.
    pub output: Option<Output>,
    /// State writes when the agent finishes. Their templates read `result`.
    pub set: Vec<(Name, Data)>,
    /// State entries that the agent declares; each instance opens a scope for them.
    pub state: Vec<(Name, Type)>,
    /// True if a further call of the same instance begins with fresh state.
    pub enter_fresh: bool,
    /// Unit of the agent's answers: turns of a dialogue, a task, or one model call. `None` means a dialogue for the entry, for
    /// agents of kind `tasks` and `handoff` and for their members, else a task.
    pub turns: Option<Turns>,
    /// View on the other members under a routed agent. `None` means the view that the routed agent or its state sets.
    pub view: Option<ViewDef>,
    /// State entries that are extracted from each new message before anything else happens.
    pub extract: Vec<Name>,
    /// Limits of the agent and everything it started; they hold the defaults if the definition sets none.
    pub limits: Limits,
    /// Judgement of the agent's answers before anybody receives them.
    pub reflect: Option<Reflect>,
    /// Kind of the agent and its settings. An agent with modes uses the mode in force instead ([`AgentDef::model`]).
    pub does: Does,
    /// Modes of the agent. Only a model-driven agent can have modes.
    pub modes: Option<Box<Modes>>,
}

impl AgentDef {
    /// Returns the parameters of a tool for this agent. The tool `finish` takes a value of the agent's output type.
    pub fn parameters_of<'a>(&'a self, tool: &'a ToolDef) -> Cow<'a, Parameters> {
        match (&self.output, &tool.source) {
            (Some(output), Source::BuiltIn(BuiltIn::Finish)) => Cow::Owned(Parameters::Fields(
                vec![("result".into(), output.ty.clone())],
            )),
            _ => Cow::Borrowed(&tool.parameters),
        }
    }
}

/// Kind of an agent.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each agent of a definition"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// A model chooses the agent's steps.
    Model(Box<ModelAgent>),
    /// A router chooses who acts next.
    Route(Route),
    /// A plain agent: one call of a tool that a router may name, without a model.
    Run {
        /// Name of the tool.
        tool: Name,
        /// Arguments of the call. `None` means the agent's own arguments.
        args: Option<Vec<(Name, Data)>>,
    },
}

/// A structured answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Type of the answer.
    pub ty: Type,
    /// State entry that the answer is written to (`output: state.NAME`).
    pub into: Option<Name>,
}

/// Unit that a plain answer of an agent ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Turns {
    /// A plain answer ends a turn.
    Dialogue,
    /// A plain answer ends the task.
    Task,
    /// The agent makes one model call and runs its tools.
    Once,
}

/// A model-driven agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelAgent {
    /// Template of the system prompt.
    pub system: Option<Template>,
    /// Name of the model.
    pub model: Name,
    /// Parameters that override those of the model.
    pub params: BTreeMap<String, Json>,
    /// Tools, agents and people that the model is offered. Every request lists them in this order, because another order breaks
    /// the prefix that the provider has cached.
    pub tools: Vec<ToolUse>,
    /// Servers whose tools are all offered (`SERVER.*`). [`Network::with_manifest`] replaces them with their tools.
    pub servers: Vec<ServerUse>,
    /// Requirement on the model to call tools: `auto`, `any`, `none` or the name of a tool.
    pub tool_choice: ToolChoice,
    /// Text that begins the model's answer.
    pub prefill: Option<Template>,
    /// Tools that run before every turn, in parallel. If the agent has `knowledge`, one of these tools searches it.
    pub before: Vec<Before>,
    /// Files and folders with text and Markdown that can be searched, relative to the definition's folder. They are read by each
    /// search, so their content is not part of the digest.
    pub knowledge: Vec<Arc<str>>,
    /// Name of the net that turns model answers into steps: `chat`, `react`, `refact`, or one registered in Rust.
    pub net: Name,
    /// Rendering of the agent's context.
    pub context: Context,
    /// Present if the agent answers by a search over branches.
    pub search: Option<Box<search::Plan>>,
}

impl ModelAgent {
    /// Returns the models that the agent asks: its own, and the one that compacts its context.
    fn asks(&self) -> impl Iterator<Item = &Name> {
        let compact = self.context.compact.as_ref();
        let compact = compact.map(|compact| &compact.model);
        std::iter::once(&self.model).chain(compact)
    }
}

/// Requirement on a model to call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model is free to call or not.
    #[default]
    Auto,
    /// The model must call a tool.
    Any,
    /// The model must not call a tool.
    None,
    /// The model must call this tool.
    Tool(Name),
}

/// Layout of a context.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// The parts of the context, in order.
    pub parts: Vec<Part>,
    /// Template of the volatile facts.
    pub now: Option<Template>,
    /// Least number of the newest exchanges that are shown. Older ones are left out.
    pub keep_exchanges: u32,
    /// Settings by which older parts are summarized. `None` means that they never are.
    pub compact: Option<Box<Compact>>,
    /// Templates for the parts of the conversation.
    pub render: ContextRender,
}

/// A part of a context.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The system prompt.
    System,
    /// The tools offered.
    Tools,
    /// The conversation on the agent's stack.
    History,
    /// Volatile facts at the end of the context.
    Now,
}

/// A tool that runs before every turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    /// Name of the tool; its class is `pure` or `read`.
    pub tool: Name,
    /// Arguments of the tool. `None` means the message, if the tool takes one text.
    pub args: Option<Vec<(Name, Data)>>,
    /// Name of the result in templates (`before.NAME`).
    pub named: Name,
    /// True if the result is shown even if no template names it.
    pub show: bool,
}
