//! Networks built by hand, for tests of the machine that need no definition.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::network::{
    AgentDef, Approve, Asks, CallStyle, Chooser, Context, ContextRender, Does, Fallback, Limits,
    ModelAgent, ModelDef, ModelRetry, Network, Offer, OnFailed, Part, PersonDef, Provider, Record,
    Render, Requires, Route, RouteBy, Rule, RuleTo, Source, Takes, ToolChoice, ToolDef, ToolUse,
    Turns, Unusable, ViewDef, Wait, WaitOn,
};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::{Digest, Name};
use steersman_machine::stored::interaction::{Class, Reduce};
use steersman_machine::values::expression::{Data, Expr, Template};
use steersman_machine::values::types::{Parameters, Type, TypeKind};

/// A network that is being built. Every method adds to it; the first agent is the entry.
#[derive(Debug)]
pub struct Draft(Network);

/// Returns a type of this kind, without further settings.
pub fn ty(kind: TypeKind) -> Type {
    Type {
        kind,
        optional: false,
        default: None,
        description: None,
        expires: None,
        by: Vec::new(),
        reduce: Reduce::Last,
        ask: None,
    }
}

/// Returns the type of texts.
pub fn text() -> Type {
    ty(TypeKind::String { pattern: None })
}

pub(super) fn expr(source: &str) -> Expr {
    Expr::parse(source).expect("expressions of tests parse")
}

fn data(value: &str) -> Data {
    Data::parse(Json::from(value)).expect("templates of tests parse")
}

/// Returns the offer of a tool or agent.
pub fn offer(of: Offer) -> ToolUse {
    ToolUse::plain(of)
}

/// Returns a tool in Rust without parameters.
pub fn tool(name: &str, class: Class) -> ToolDef {
    ToolDef {
        name: name.into(),
        description: name.to_owned(),
        parameters: Parameters::Fields(Vec::new()),
        effect: class,
        requires: Vec::new(),
        approve: Vec::new(),
        source: Source::Native {
            version: "1".to_owned(),
        },
        set: Vec::new(),
        result: None,
        on_error: BTreeMap::new(),
        on_doubt: None,
        simulate: None,
        repeat_allowed: false,
        then: None,
        mode: None,
        render: Render::default(),
        timeout: 60_000,
        retry: 0,
        parallel: 8,
        reflect: None,
    }
}

impl Draft {
    /// Returns an empty network.
    pub fn new(name: &str) -> Self {
        let model = ModelDef {
            provider: Provider::Scripted,
            model: None,
            url: None,
            key: None,
            temperature: None,
            max_tokens: None,
            window: None,
            params: BTreeMap::new(),
            calls: CallStyle::Auto,
            takes: Takes::default(),
            fallback: Vec::new(),
            retry: ModelRetry::default(),
            rate: None,
            price: None,
        };
        Self(Network {
            name: name.into(),
            description: None,
            digest: Digest::of(name.as_bytes()),
            source: name.into(),
            timezone: "UTC".to_owned(),
            config: BTreeMap::new(),
            secrets: BTreeMap::new(),
            models: [("default".into(), model)].into(),
            mcp: BTreeMap::new(),
            events: BTreeMap::new(),
            schedules: BTreeMap::new(),
            keep: None,
            budgets: BTreeMap::new(),
            labels: BTreeMap::new(),
            texts: steersman_machine::network::texts::Texts::default(),
            outcome: BTreeMap::new(),
            embeddings: None,
            memory: steersman_machine::network::MemoryDef::default(),
            tools: BTreeMap::new(),
            agents: BTreeMap::new(),
            people: BTreeMap::new(),
            entry: Vec::new(),
            leads: BTreeMap::new(),
            limits: Limits::standard(true),
            record: Record::default(),
            hooks: Vec::new(),
            natives: steersman_machine::network::nets::Natives::default(),
        })
    }

    /// Adds a model-driven agent. The first one is the entry and has dialogues; others end tasks.
    #[must_use]
    pub fn agent(self, name: &str, uses: Vec<ToolUse>) -> Self {
        let turns = if self.0.entry.is_empty() {
            Turns::Dialogue
        } else {
            Turns::Task
        };
        self.agent_turns(name, turns, uses)
    }

    /// Adds a model-driven agent that ends its turns in this way.
    #[must_use]
    pub fn agent_turns(self, name: &str, turns: Turns, uses: Vec<ToolUse>) -> Self {
        let does = Does::Model(Box::new(ModelAgent {
            system: Some(Template::plain(name)),
            model: "default".into(),
            params: BTreeMap::new(),
            servers: Vec::new(),
            tools: uses,
            tool_choice: ToolChoice::Auto,
            prefill: None,
            before: Vec::new(),
            knowledge: Vec::new(),
            net: "chat".into(),
            context: Context {
                parts: vec![Part::System, Part::Tools, Part::History, Part::Now],
                now: None,
                keep_exchanges: 50,
                compact: None,
                render: ContextRender::default(),
            },
            search: None,
        }));
        self.any(name, turns, does)
    }

    /// Adds a routed agent.
    #[must_use]
    pub fn route(self, name: &str, by: RouteBy) -> Self {
        let does = Does::Route(Route {
            by,
            asks: Asks {
                model: "default".into(),
                system: None,
                unusable: Unusable {
                    retries: 2,
                    to: Fallback::Finish,
                },
            },
            on_failed: OnFailed::Continue,
            view: ViewDef::default(),
        });
        self.any(name, Turns::Task, does)
    }

    /// Adds a routed agent with rules: each an expression and its members. A rule without members ends the task.
    #[must_use]
    pub fn rules(self, name: &str, rules: &[(&str, &[&str])]) -> Self {
        let rules = rules
            .iter()
            .map(|(when, to)| Rule {
                when: expr(when),
                to: if to.is_empty() {
                    RuleTo::Finish
                } else {
                    RuleTo::Agents(to.iter().map(|n| Name::from(*n)).collect())
                },
            })
            .collect();
        self.route(name, RouteBy::Rules(rules))
    }

    fn any(mut self, name: &str, turns: Turns, does: Does) -> Self {
        if self.0.entry.is_empty() {
            self.0.entry.push(name.into());
        }
        let def = AgentDef {
            name: name.into(),
            description: name.to_owned(),
            parameters: Parameters::Fields(vec![("message".into(), text())]),
            output: None,
            set: Vec::new(),
            state: Vec::new(),
            enter_fresh: false,
            turns: Some(turns),
            view: None,
            extract: Vec::new(),
            limits: Limits::standard(false),
            reflect: None,
            does,
            modes: None,
        };
        self.0.agents.insert(name.into(), def);
        self
    }

    /// Changes an agent with this closure.
    #[must_use]
    pub fn change(mut self, name: &str, change: impl FnOnce(&mut AgentDef)) -> Self {
        change(self.0.agents.get_mut(name).expect("the agent was added"));
        self
    }

    /// Adds an optional state entry to the entry agent, unset at first.
    #[must_use]
    pub fn state(self, name: &str, kind: TypeKind) -> Self {
        let entry = self.0.entry.first().expect("agents come first").clone();
        let mut ty = ty(kind);
        ty.optional = true;
        self.change(&entry, |agent| agent.state.push((name.into(), ty)))
    }

    /// Sets the reducer of an entry of the entry agent.
    #[must_use]
    pub fn reduces(self, name: &str, how: Reduce) -> Self {
        let entry = self.0.entry.first().expect("agents come first").clone();
        self.change(&entry, |agent| {
            let found = agent.state.iter_mut().find(|(n, _)| **n == *name);
            found.expect("the entry was added").1.reduce = how;
        })
    }

    /// Adds a state write to a tool: an entry and the template of its value.
    #[must_use]
    pub fn sets(self, tool: &str, entry: &str, value: &str) -> Self {
        self.change_tool(tool, |tool| tool.set.push((entry.into(), data(value))))
    }

    /// Adds a tool to the network.
    #[must_use]
    pub fn tool(mut self, tool: ToolDef) -> Self {
        self.0.tools.insert(tool.name.clone(), tool);
        self
    }

    /// Adds a tool in Rust without parameters.
    #[must_use]
    pub fn native(self, name: &str, class: Class) -> Self {
        self.tool(tool(name, class))
    }

    /// Adds a tool that comes with the engine.
    #[must_use]
    pub fn built_in(self, name: &str, which: BuiltIn, fields: &[(&str, Type)]) -> Self {
        self.tool(ToolDef {
            source: Source::BuiltIn(which),
            parameters: fields_of(fields),
            ..tool(name, Class::Pure)
        })
    }

    /// Adds a tool that writes its one argument `value` to this entry.
    #[must_use]
    pub fn setter(self, name: &str, entry: &str) -> Self {
        self.tool(ToolDef {
            source: Source::State,
            parameters: fields_of(&[("value", ty(TypeKind::Any))]),
            set: vec![(entry.into(), data("{{ args.value }}"))],
            ..tool(name, Class::Pure)
        })
    }

    /// Changes a tool with this closure.
    #[must_use]
    pub fn change_tool(mut self, name: &str, change: impl FnOnce(&mut ToolDef)) -> Self {
        change(self.0.tools.get_mut(name).expect("the tool was added"));
        self
    }

    /// Adds a precondition to a tool.
    #[must_use]
    pub fn requires(self, name: &str, that: &str, otherwise: &str) -> Self {
        let otherwise = Some(Template::plain(otherwise));
        self.change_tool(name, |tool| {
            tool.requires.push(Requires {
                that: expr(that),
                otherwise,
            });
        })
    }

    /// Adds an approval by the user to a tool.
    #[must_use]
    pub fn approve(self, name: &str, when: &str) -> Self {
        self.change_tool(name, |tool| {
            tool.approve.push(Approve {
                when: expr(when),
                by: "user".into(),
                ask: None,
                edit: Vec::new(),
                timeout: None,
                show: Vec::new(),
                on_timeout: steersman_machine::network::OnTimeout::Reject,
            });
        })
    }

    /// Adds a tool that waits for a time, written as a duration.
    #[must_use]
    pub fn timer(self, name: &str, span: &str) -> Self {
        self.tool(ToolDef {
            source: Source::Wait(Wait {
                on: WaitOn::Time(Template::plain(span)),
                timeout: None,
                on_timeout: None,
            }),
            ..tool(name, Class::Pure)
        })
    }

    /// Adds a person whose role has the same name.
    #[must_use]
    pub fn person(mut self, name: &str) -> Self {
        let person = PersonDef {
            name: name.into(),
            description: name.to_owned(),
            role: name.into(),
            timeout: None,
            on_timeout: None,
            instead: None,
            reach: None,
        };
        self.0.people.insert(name.into(), person);
        self
    }

    /// Adds the tool `fork`.
    #[must_use]
    pub fn fork(self) -> Self {
        let list = ty(TypeKind::List(Box::new(text())));
        self.built_in("fork", BuiltIn::Fork, &[("instructions", list)])
    }

    /// Returns the network.
    pub fn build(self) -> Network {
        self.0
    }
}

fn fields_of(fields: &[(&str, Type)]) -> Parameters {
    Parameters::Fields(
        fields
            .iter()
            .map(|(name, ty)| (Name::from(*name), ty.clone()))
            .collect(),
    )
}

/// Returns the offers of these tools and agents, under their own names.
pub fn offers(tools: &[&str], agents: &[&str]) -> Vec<ToolUse> {
    let tools = tools.iter().map(|n| offer(Offer::Tool(Name::from(*n))));
    let agents = agents.iter().map(|n| offer(Offer::Agent(Name::from(*n))));
    tools.chain(agents).collect()
}

/// Returns the offer of `fork`. `choose` picks the branch to adopt; `live` branches may touch the world.
pub fn forks(choose: Option<Chooser>, live: bool) -> ToolUse {
    ToolUse {
        choose,
        live,
        ..offer(Offer::Tool("fork".into()))
    }
}
