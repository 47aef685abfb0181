//! The network: a definition after parsing and checking. Immutable, named by a digest, cannot be built invalid.
//!
//! Made by the crate `steersman-definition` alone, from YAML or from the Rust builder; every name in it resolves.

mod aging;
mod approve;
mod built_in;
mod doubt;
mod mcp;
mod memory;
mod modes;
mod offer;
mod output;
mod person;
mod reflect;
mod route;

pub use aging::{Aging, Beyond, Compact, Render};
pub use approve::{Approve, OnTimeout};
pub use built_in::BuiltIn;
pub use doubt::{ANYBODY, OnDoubt, ProbeElse};
pub use mcp::{McpAt, McpDef, McpEffect, ServerUse, wire_name};
pub use memory::MemoryDef;
pub use modes::{ExitsWhen, FINISH, Mode, ModeExit, Modes};
pub use offer::{Chooser, Offer, ToolUse};
pub use person::{PersonDef, Silence};
pub use reflect::Reflect;
pub use route::{
    Asks, Begin, Choosable, Desk, Exit, ExitCause, ExitTo, Fallback, GoOn, Graph, Handoff,
    OnChange, OnFailed, Orchestrator, Order, Route, RouteBy, Rule, RuleTo, Seen, Speaker,
    StateNode, SummaryDef, Task, Unusable, ViewDef,
};

use crate::expression::{Data, Expr, Template};
use crate::ids::{Digest, Name};
use crate::interaction::{Class, Reduce};
pub use crate::limits::{DEPTH, Limit, Limits, OnLimit, Per};
use crate::price::Price;
use crate::rate::Rate;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A checked definition.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its name.
    pub name: Name,
    /// One line about it.
    pub description: Option<String>,
    /// Digest of all that shapes what sessions do, bound `config` values left out (the binding adds them).
    pub digest: Digest,
    /// Canonical text of the definition with the files it names: what is stored, and what it is rebuilt from.
    pub source: Arc<str>,
    /// IANA zone of `now`.
    pub timezone: String,
    /// Plain values by name.
    pub config: BTreeMap<Name, Config>,
    /// Handles by name.
    pub secrets: BTreeMap<Name, Secret>,
    /// Models by name; `default` is always there.
    pub models: BTreeMap<Name, ModelDef>,
    /// Events by name.
    pub events: BTreeMap<Name, EventDef>,
    /// Labels by name.
    pub labels: BTreeMap<Name, Template>,
    /// What is said in place of the engine's own sentences.
    pub texts: crate::texts::Texts,
    /// What a session came to.
    pub outcome: BTreeMap<Name, Expr>,
    /// The model whose embeddings find passages; none: full text alone.
    pub embeddings: Option<Name>,
    /// What the built-in set `memory` saves and finds.
    pub memory: MemoryDef,
    /// MCP servers by name.
    pub mcp: BTreeMap<Name, McpDef>,
    /// Tools by name, built-in ones that are used included. Of a server those that the definition names, without what only
    /// the server knows, until [`Network::with_manifest`].
    pub tools: BTreeMap<Name, ToolDef>,
    /// Agents by name, in order of the definition where it matters.
    pub agents: BTreeMap<Name, AgentDef>,
    /// People by name (agents with `person`); `user` is not among them.
    pub people: BTreeMap<Name, PersonDef>,
    /// Agents that may be talked to first; the first is the default.
    pub entry: Vec<Name>,
    /// For each tool, agent and person those to whom it leads directly.
    pub leads: BTreeMap<Name, BTreeSet<Name>>,
    /// Limits of the whole session.
    pub limits: Limits,
    /// Raw answers and requests to be kept.
    pub record: Record,
    /// States and routers in Rust, registered by name.
    pub natives: crate::nets::Natives,
}

impl Network {
    /// An agent by name. Panics if there is none: names in a network resolve.
    pub fn agent(&self, name: &str) -> &AgentDef {
        self.agents.get(name).expect("names in a network resolve")
    }
    /// A tool by name. Panics if there is none: names in a network resolve.
    pub fn tool(&self, name: &str) -> &ToolDef {
        self.tools.get(name).expect("names in a network resolve")
    }
}

/// What is kept beside the log.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Answers of tools as they came.
    pub raw: bool,
    /// Rendered requests.
    pub requests: bool,
}

/// A declared plain value.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `string`, `integer`, `number` or `boolean`.
    pub ty: Type,
    /// Environment variable that it comes from.
    pub env: Option<String>,
    /// Its value otherwise; none: required.
    pub default: Option<Json>,
    /// Read at each use in a transport field, outside the digest.
    pub live: bool,
}

/// A handle to a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Where it is read, at each use.
    pub source: SecretSource,
    /// Unset renders as an absent field.
    pub optional: bool,
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable.
    Env(String),
    /// A file's content without its last newline.
    File(String),
}

/// A model by name.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDef {
    /// Wire and place.
    pub provider: Provider,
    /// Name at the provider.
    pub model: Option<String>,
    /// Base address.
    pub url: Option<Template>,
    /// Key: a template over `secrets`.
    pub key: Option<Template>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Longest answer in tokens.
    pub max_tokens: Option<u64>,
    /// Tokens that a request and its answer may have together, if that is known.
    pub window: Option<u64>,
    /// Sent as they are.
    pub params: BTreeMap<String, Json>,
    /// How tools are called.
    pub calls: CallStyle,
    /// Models that are asked in its place, in this order.
    pub fallback: Vec<Name>,
    /// How long its outages are waited for, and how often a call is tried before that.
    pub retry: ModelRetry,
    /// How often it is asked at most.
    pub rate: Option<Rate>,
    /// What it costs; none: as the built-in table says of the model that it turns out to be.
    pub price: Option<Price>,
}

/// What is done before a call of a model fails because nobody answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ModelRetry {
    /// Attempts one after the other, at most.
    pub times: u32,
    /// For so many milliseconds an outage of its place is waited for then; 0: the call fails.
    pub outage: u64,
}

impl Default for ModelRetry {
    fn default() -> Self {
        Self {
            times: 5,
            outage: 24 * 3_600_000,
        }
    }
}

impl Network {
    /// A model and those that stand in for it, in the order in which they are asked. Each comes once; those that stand
    /// in for one of them come behind it.
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

    /// Whether money is limited anywhere.
    pub fn limits_cost(&self) -> bool {
        let mut agents = self.agents.values();
        self.limits.cost.is_some()
            || agents.any(|agent| agent.all_limits().any(|limits| limits.cost.is_some()))
    }

    /// The same definition for sessions that begin with this agent.
    pub fn beginning_with(&self, entry: &Name) -> Self {
        Self {
            entry: vec![entry.clone()],
            ..self.clone()
        }
    }

    /// All to which these lead, themselves included.
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

    /// Models that sessions may ask that begin at `entry`: those of agents to whom it leads, and what stands in for them.
    /// Not that of the embeddings: a session does without it, and its calls are counted nowhere.
    pub fn used_models(&self) -> BTreeSet<&Name> {
        let reached = self.reached(&self.entry);
        let agents = self.agents.iter();
        let agents = agents.filter(|(name, _)| reached.contains(name));
        self.models_of(agents.map(|(_, agent)| agent))
    }

    /// Models that may be asked, wherever a session begins.
    pub fn all_models(&self) -> BTreeSet<&Name> {
        self.models_of(self.agents.values())
    }

    fn models_of<'a>(&'a self, agents: impl Iterator<Item = &'a AgentDef>) -> BTreeSet<&'a Name> {
        let agents = agents.flat_map(|agent| {
            let mut models = match &agent.does {
                Does::Model(_) => agent.models().flat_map(ModelAgent::asks).collect(),
                Does::Route(route) => route.models(),
                Does::Run { .. } => Vec::new(),
            };
            let summary = agent.view.as_ref().and_then(|view| view.summary.as_ref());
            models.extend(summary.map(|summary| &summary.model));
            models
        });
        let small = self.extracts().then(|| self.small());
        let ages = self.tools.values().filter_map(|t| t.render.age.as_ref());
        let sums = ages.filter(|age| age.beyond == Beyond::Summary);
        agents
            .chain(sums.map(|age| &age.model))
            .chain(small)
            .flat_map(|model| self.chain(model))
            .collect()
    }
}

/// Wire and place of a model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Found at the start of the session.
    Auto,
    /// OpenAI, chat completions.
    OpenAi,
    /// Any server with chat completions.
    Compatible,
    /// Anthropic, or any server with its Messages.
    Anthropic,
    /// Answers from a script.
    Scripted,
}

/// How a model is told of tools and calls them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum CallStyle {
    /// Natively unless the server says that it cannot, then structured.
    #[default]
    Auto,
    /// By the provider's own means.
    Native,
    /// Tools in the prompt, answer by JSON Schema.
    Structured,
    /// The first JSON object `{ tool, arguments }` in the text is the call.
    Text,
}

/// A type of a parameter, state entry, output or event field.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// It may be absent, then it is `none`.
    pub optional: bool,
    /// Used where nothing is given.
    pub default: Option<Json>,
    /// Told to the model.
    pub description: Option<String>,
    /// State: becomes unset so many milliseconds after its last write.
    pub expires: Option<u64>,
    /// State: how several writes of one exchange come together.
    pub reduce: Reduce,
    /// Secret parameters: the question to the person.
    pub ask: Option<Template>,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// Text, with a regular expression for all of it.
    String {
        /// Regular expression.
        pattern: Option<String>,
    },
    /// A whole number within bounds.
    Integer {
        /// At least.
        minimum: Option<f64>,
        /// At most.
        maximum: Option<f64>,
    },
    /// A number within bounds.
    Number {
        /// At least.
        minimum: Option<f64>,
        /// At most.
        maximum: Option<f64>,
    },
    /// True or false.
    Boolean,
    /// One of these texts.
    Enum(Vec<String>),
    /// A list.
    List(Box<Type>),
    /// Exactly these fields.
    Fields(Vec<(Name, Type)>),
    /// An object of any shape.
    Object,
    /// Anything.
    Any,
    /// A sealed handle.
    Secret,
    /// A reference to an artifact.
    Artifact,
    /// A JSON Schema file, checked by an adapter; its text.
    Schema(Arc<str>),
}

/// A message from outside that is not chat.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDef {
    /// The payload.
    pub fields: Vec<(Name, Type)>,
    /// Each id is accepted once.
    pub id: Template,
    /// Key of the session that it belongs to.
    pub session: Option<Template>,
    /// How long one that no wait took is kept, in milliseconds.
    pub keep: u64,
    /// It may open a session.
    pub start: Option<StartDef>,
}

/// How an event opens a session.
#[derive(Clone, Debug, PartialEq)]
pub struct StartDef {
    /// The root; none: the entry.
    pub agent: Option<Name>,
    /// Its arguments.
    pub args: Vec<(Name, Data)>,
    /// The first message.
    pub message: Option<Template>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    /// Its name.
    pub name: Name,
    /// Told to the model.
    pub description: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Its effect class.
    pub effect: Class,
    /// What must hold before it runs.
    pub requires: Vec<Requires>,
    /// Whether a person decides.
    pub approve: Vec<Approve>,
    /// What it does.
    pub source: Source,
    /// State writes on success.
    pub set: Vec<(Name, Data)>,
    /// What the model sees on success; none: the result as JSON (text as it is).
    pub result: Option<Template>,
    /// By code, `http_4xx` and `*` included.
    pub on_error: BTreeMap<String, OnError>,
    /// Way out of doubt; none: `ask` where a person can be reached, else `fail`.
    pub on_doubt: Option<OnDoubt>,
    /// Result in dry mode.
    pub simulate: Option<Data>,
    /// A call with the same arguments as an effect that was done before in the session needs no word of a person.
    pub repeat_allowed: bool,
    /// Follows with no model turn between.
    pub then: Option<Then>,
    /// The mode in which whoever called it is next, if it succeeded; nothing: as it is.
    pub mode: Option<Template>,
    /// How call and result look.
    pub render: Render,
    /// Of one attempt, in milliseconds.
    pub timeout: u64,
    /// Further attempts at most.
    pub retry: u32,
    /// At once, per process.
    pub parallel: u32,
    /// Its results are judged; of an `unsafe` one the arguments, before it runs.
    pub reflect: Option<Reflect>,
}

/// Parameters of a tool or agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// Declared one by one.
    Fields(Vec<(Name, Type)>),
    /// A JSON Schema file, checked by an adapter; its text.
    Schema(Arc<str>),
}

/// What a tool does.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// It only writes state.
    State,
    /// A request.
    Http(Box<Http>),
    /// A process.
    Command {
        /// Program and arguments; no shell.
        argv: Vec<Template>,
        /// Environment.
        env: Vec<(String, Template)>,
    },
    /// Rust, registered under its name.
    Native {
        /// Its version.
        version: String,
    },
    /// It parks.
    Wait(Wait),
    /// A question to this person (or `user`).
    Ask(Name),
    /// A message to this agent.
    Send(Name),
    /// Comes with the engine.
    BuiltIn(BuiltIn),
    /// A tool of an MCP server.
    Mcp {
        /// The server, by its name in the definition.
        server: Name,
        /// The tool, by its name there.
        tool: Arc<str>,
        /// JSON Schema of its structured result, if the server gave one.
        output: Option<Arc<str>>,
    },
}

/// A request over HTTP. Templates here are transport fields: `secrets` and sealed state resolve.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// Address.
    pub url: Template,
    /// Method.
    pub method: String,
    /// Query; `none` is left out.
    pub query: Option<Data>,
    /// Headers.
    pub headers: Vec<(String, Template)>,
    /// JSON body.
    pub json: Option<Data>,
    /// Form body.
    pub form: Option<Data>,
    /// Body: the artifact of this name.
    pub file: Option<Template>,
    /// The artifact that the answer's body becomes; the result is its name.
    pub save: Option<Template>,
    /// Header that carries the effect id of `idempotent` tools.
    pub key_header: String,
    /// Outcome by status, `502` or `5xx`.
    pub outcomes: BTreeMap<String, HttpOutcome>,
    /// How often it is sent at most.
    pub rate: Option<Rate>,
}

/// What a status means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// It happened.
    Done,
    /// It did not.
    NotPerformed,
    /// Nobody knows.
    Unknown,
}

/// A precondition.
#[derive(Clone, Debug, PartialEq)]
pub struct Requires {
    /// Must hold.
    pub that: Expr,
    /// Told to the model otherwise; none: the expression.
    pub otherwise: Option<Template>,
}

/// What follows an error.
#[derive(Clone, Debug, PartialEq)]
pub struct OnError {
    /// State writes.
    pub set: Vec<(Name, Data)>,
    /// What the model sees; none: code and message.
    pub result: Option<Template>,
    /// A tool that follows.
    pub then: Option<Then>,
}

/// A tool that follows a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Then {
    /// Which.
    pub tool: Name,
    /// Its arguments; none: `result`.
    pub args: Option<Vec<(Name, Data)>>,
}

/// A wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// For what.
    pub on: WaitOn,
    /// In milliseconds.
    pub timeout: Option<u64>,
    /// The result instead; none: the error `timeout`.
    pub on_timeout: Option<Template>,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitOn {
    /// An event whose fields match and, if given, whose `when` holds.
    Event {
        /// Its name.
        event: Name,
        /// Fields that must be equal, rendered when the wait opens.
        matching: Vec<(Name, Template)>,
        /// In addition, over `event` and `args`.
        when: Option<Expr>,
    },
    /// A span of time, rendered to a duration.
    Time(Template),
    /// A date and time in the network's zone.
    Until(Template),
    /// Branches forked here: how many must end; none: all.
    Branches(Option<u32>),
    /// Commits of this branch.
    Ticks(u64),
    /// An expression over state.
    When(Expr),
    /// One of several.
    Any(Vec<Wait>),
    /// All of several.
    All(Vec<Wait>),
}

/// A model-driven or routed agent, or one that only runs a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDef {
    /// Its name.
    pub name: Name,
    /// Told to models that may choose it.
    pub description: String,
    /// How it is called.
    pub parameters: Parameters,
    /// Structured answer; none: text.
    pub output: Option<Output>,
    /// State writes at its end, over `result`.
    pub set: Vec<(Name, Data)>,
    /// Opens a scope with each instance.
    pub state: Vec<(Name, Type)>,
    /// A further call of the same instance begins with fresh state.
    pub enter_fresh: bool,
    /// Turns of a dialogue, a task, or one model call; none: a dialogue at the entry, of `tasks` and `handoff` and
    /// of their members, else a task.
    pub turns: Option<Turns>,
    /// What it sees of the others under a routed agent; none: what that one or its state says.
    pub view: Option<ViewDef>,
    /// State entries that are filled from each new message, ahead of everything else.
    pub extract: Vec<Name>,
    /// Limits of it and all it started; defaults where nothing is written.
    pub limits: Limits,
    /// What it is. Where there are modes, one of them is in force instead of what stands here ([`AgentDef::model`]).
    /// Its answers are judged before anybody is told.
    pub reflect: Option<Reflect>,
    /// What it is.
    pub does: Does,
    /// Its modes; only of model-driven agents.
    pub modes: Option<Box<Modes>>,
}

impl AgentDef {
    /// How this agent calls a tool: `finish` takes what the agent's answer is to be.
    pub fn parameters_of<'a>(&'a self, tool: &'a ToolDef) -> Cow<'a, Parameters> {
        match (&self.output, &tool.source) {
            (Some(output), Source::BuiltIn(BuiltIn::Finish)) => Cow::Owned(Parameters::Fields(
                vec![("result".into(), output.ty.clone())],
            )),
            _ => Cow::Borrowed(&tool.parameters),
        }
    }
}

/// What an agent is.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each agent of a definition"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// A model chooses its steps.
    Model(Box<ModelAgent>),
    /// A router chooses who acts.
    Route(Route),
    /// No model: one call of a tool. A tool call that a router may name.
    Run {
        /// The tool.
        tool: Name,
        /// Its arguments; none: the agent's own.
        args: Option<Vec<(Name, Data)>>,
    },
}

/// A structured answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its type.
    pub ty: Type,
    /// The state entry that it is written to (`output: state.NAME`).
    pub into: Option<Name>,
}

/// How an agent ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Turns {
    /// A plain answer ends a turn.
    Dialogue,
    /// A plain answer ends the task.
    Task,
    /// One model call and its tools.
    Once,
}

/// A model-driven agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelAgent {
    /// The system prompt.
    pub system: Option<Template>,
    /// Model by name.
    pub model: Name,
    /// Over the model's parameters.
    pub params: BTreeMap<String, Json>,
    /// What it is offered, in order; order is frozen.
    pub tools: Vec<ToolUse>,
    /// Servers of which it is offered all tools (`SERVER.*`). A network that knows its manifest has none of these.
    pub servers: Vec<ServerUse>,
    /// `auto`, `any`, `none` or a tool.
    pub tool_choice: ToolChoice,
    /// Begins the answer.
    pub prefill: Option<Template>,
    /// Tools that run ahead of every turn, together. Where there are documents, one of them searches these.
    pub before: Vec<Before>,
    /// Text and Markdown that can be searched: files and folders, relative to the definition's folder. They are read when
    /// something is searched, so their content is no part of the digest.
    pub knowledge: Vec<Arc<str>>,
    /// How its model calls make steps: `chat`, `react`, or one registered in Rust.
    pub net: Name,
    /// How its context is rendered.
    pub context: Context,
    /// It answers by a search over branches.
    pub search: Option<Box<crate::search::Plan>>,
}

impl ModelAgent {
    /// The models that it asks: its own, and the one that compacts its context.
    fn asks(&self) -> impl Iterator<Item = &Name> {
        let compact = self.context.compact.as_ref();
        let compact = compact.map(|compact| &compact.model);
        std::iter::once(&self.model).chain(compact)
    }
}

/// Whether a model must call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must.
    Any,
    /// It must not.
    None,
    /// It must call this one.
    Tool(Name),
}

/// How a context is put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Order of parts.
    pub parts: Vec<Part>,
    /// Volatile facts.
    pub now: Option<Template>,
    /// Exchanges kept in view.
    pub keep_exchanges: u32,
    /// When what lies further back is summed up; none: never.
    pub compact: Option<Box<Compact>>,
}

/// A part of a context.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The system prompt.
    System,
    /// The tools offered.
    Tools,
    /// The conversation.
    History,
    /// Volatile facts.
    Now,
}

/// A tool that runs ahead of every turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    /// The tool, `pure` or `read`.
    pub tool: Name,
    /// Its arguments; none: the message, where it takes one text.
    pub args: Option<Vec<(Name, Data)>>,
    /// The name of what it gives (`before.NAME`).
    pub named: Name,
    /// It is shown without being named.
    pub show: bool,
}
