//! Lowers agents, model-driven, routed and plain: their tools, contexts, limits and routes.

use super::super::diagnostic::Diagnostic;
use super::super::keys::agent::{self as keys, Effects, Enter, SharedView};
use super::super::keys::kinds::{self, List, Map, Or, Read as _, Valued, Words as _, each, sorted};
use super::super::keys::tool::Tool;
use super::super::keys::{Section as _, ShortType, is_name};
use super::super::shape;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node};
use super::builtin;
use super::file::params;
use super::values::{At, plain_text};
use super::{Lower, Sort};
use steersman_machine::network::join::JoinOn;
use steersman_machine::network::{
    AgentDef, Before, Chooser, Does, FINISH, ModelAgent, Offer, Output, ServerUse, ToolChoice,
    ToolUse, wire_name,
};
use steersman_machine::stored::bounds::SEEN_MAX;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::tick::branch::FORKS;
use steersman_machine::values::expression::Data;
use steersman_machine::values::types::{Parameters, Type};

/// Name of a net that no definition may use.
const RESERVED_NET: &str = "plan_execute";

impl Lower<'_> {
    /// Reports keys that have no meaning for this kind of agent.
    pub(super) fn keys_of_its_kind(&mut self, agent: keys::Agent<'_>) {
        let (kind, of, keys): (&str, &str, &[&str]) = if agent.person().is_some() {
            ("person", "a person", &["description"])
        } else if agent.run().is_some() {
            let keys = &["description", "parameters", "args"];
            ("run", "an agent that only runs a tool", keys)
        } else if agent.route().is_some() {
            let keys = &[
                "description",
                "parameters",
                "output",
                "set",
                "state",
                "enter",
                "turns",
                "view",
                "extract",
                "limits",
            ];
            ("route", "a routed agent", keys)
        } else {
            return self.meaningful_keys(agent);
        };
        for (key, _) in agent.0.entries() {
            let known = keys::Agent::table().key(&key.name);
            let other = ["route", "person", "run", "override"].contains(&&*key.name);
            let fits = &*key.name == kind || keys.contains(&&*key.name) || other;
            if !fits && known.is_some() {
                let at = self.place(key.span);
                self.say(match (kind, &*key.name) {
                    ("person", "set" | "output") => Diagnostic::key_of_asking(at, &key.name),
                    _ => Diagnostic::type_key(at, &key.name, of),
                });
            }
        }
    }

    pub(super) fn agent(&mut self, key: &Key, agent: keys::Agent<'_>, entry: &[Name]) -> AgentDef {
        let name = &key.name;
        let scope = Scope {
            item: Some(agent.0.span),
            agent: Some(name.clone()),
            args: Args::Agent(name.clone()),
            ..Scope::default()
        };
        let mut state = self.state_of(name, agent, entry, &scope);
        let uses_todo = super::modes::all_tools(agent).any(|used| {
            let name = used.tool().map_or(used.0, |tool| tool.0).as_text();
            name.map(|name| &**name) == BuiltIn::TodoAdd.set()
        });
        if uses_todo && !self.out.entries.contains("todo") {
            state.push(("todo".into(), builtin::todo_list()));
        }
        let mut does = self.does(key, agent, &scope);
        let view = agent.view().map(|view| match &does {
            Does::Route(_) => self.view(view, &scope),
            // the summary of a member's view is written outside the member, so its state and arguments are not in scope
            Does::Model(_) | Does::Run { .. } => {
                let outside = Scope {
                    item: scope.item,
                    outside: true,
                    ..Scope::default()
                };
                self.view(view, &outside)
            }
        });
        if let (Does::Route(route), Some(view)) = (&mut does, &view) {
            route.view = view.clone();
        }
        let extract = self.filled(name, agent.extract());
        let parameters = match (agent.parameters(), &does) {
            (Some(types), _) => self.parameters(name, Or::One(types), &scope),
            (None, Does::Run { tool, args: None }) => self.parameters_of(tool, &scope),
            (None, _) => Parameters::Fields(vec![("message".into(), plain_text())]),
        };
        let limits = self.limits_of_agent(agent);
        let modes = match &does {
            Does::Model(model) => self.modes(key, agent, &scope, model, &limits),
            Does::Route(_) | Does::Run { .. } => None,
        };
        AgentDef {
            name: name.clone(),
            description: agent
                .description()
                .and_then(Valued::value)
                .unwrap_or_default(),
            output: self.output(name, agent, &scope),
            set: self.set(name, agent.set(), &scope.with_result()),
            state,
            enter_fresh: agent.enter().value == Enter::Fresh,
            turns: agent.turns().and_then(Valued::value),
            view,
            extract,
            limits,
            reflect: self.reflect(agent.reflect(), &scope.with_message().with_result()),
            parameters,
            does,
            modes,
        }
    }

    /// Lowers the state entries of an agent; the entry agent also has those of the file. If nobody is known to be the entry,
    /// which is reported, every agent has them: what reads them is not wrong.
    fn state_of(
        &mut self,
        name: &Name,
        agent: keys::Agent<'_>,
        entry: &[Name],
        scope: &Scope,
    ) -> Vec<(Name, Type)> {
        let mut own: Vec<(&Key, kinds::Type<'_>)> = each(agent.state()).collect();
        let has_all = entry.is_empty() || entry.contains(name);
        for (key, ty) in each(self.file.state().filter(|_| has_all)) {
            match own.iter().find(|(known, _)| known.name == key.name) {
                None => own.push((key, ty)),
                Some(_) if entry.is_empty() => {}
                Some((first, _)) => {
                    let (at, first) = (self.place(first.span), self.place(key.span));
                    self.say(Diagnostic::defined_twice(at, "state", &key.name, first));
                }
            }
        }
        self.state(name, &own, scope)
    }

    /// Returns the parameters of a tool for a plain agent that passes its own arguments on. Faults are not reported here, because
    /// lowering the tool reports them.
    fn parameters_of(&mut self, tool: &Name, scope: &Scope) -> Parameters {
        let written = self.file.tool(tool).and_then(Tool::parameters);
        let before = (self.found.len(), self.out.sites.len());
        let parameters = match written {
            Some(written) => self.parameters(tool, written, scope),
            None => Parameters::Fields(Vec::new()),
        };
        self.found.truncate(before.0);
        self.out.sites.truncate(before.1);
        parameters
    }

    fn does(&mut self, key: &Key, agent: keys::Agent<'_>, scope: &Scope) -> Does {
        if let Some(route) = agent.route() {
            let scope = Scope {
                route: true,
                message: true,
                ..scope.clone()
            };
            return Does::Route(self.route(&key.name, route, &scope));
        }
        if let Some(run) = agent.run() {
            let tool = self.named(&run, Sort::Tool);
            if let Some(tool) = &tool {
                let offer = (key.name.clone(), tool.clone(), run.span);
                self.out.offers.push(offer);
                if let Some(args) = agent.args() {
                    self.arguments_fit(Some(args), Some(&run), tool, Sort::Tool, &[]);
                }
            }
            let scope = Scope {
                agent: None,
                args: Args::Router(key.name.clone()),
                ..scope.clone()
            };
            return Does::Run {
                tool: tool.unwrap_or_else(|| "".into()),
                args: agent.args().map(|args| self.named_data(Some(args), &scope)),
            };
        }
        Does::Model(Box::new(self.model_agent(key, agent, scope)))
    }

    fn model_agent(&mut self, key: &Key, agent: keys::Agent<'_>, scope: &Scope) -> ModelAgent {
        let scope = Scope {
            message: true,
            ..scope.clone()
        };
        let (tools, servers) = self.all_uses(&key.name, agent.tools(), &scope);
        let model = self.model_name(agent.model());
        let context = self.context(&[agent.context()], &model, &scope);
        let mut model = ModelAgent {
            system: self.prompt(agent.system(), &scope),
            model,
            params: params(agent.params()),
            // with modes, each mode has its own choice among the tools that it offers
            tool_choice: match agent.modes() {
                Some(_) => ToolChoice::Auto,
                None => self.tool_choice(agent.tool_choice(), &tools),
            },
            tools,
            servers,
            prefill: self.text_of(agent.prefill(), &scope),
            before: self.ahead(&key.name, agent, &scope),
            knowledge: self.knowledge(agent),
            net: self.net(agent.net()),
            context,
            search: self.search(&key.name, agent.search()),
        };
        super::knowledge::shown_once(&mut model);
        model
    }

    /// Returns the offered tools (those of `tools`, and those that the engine adds), and the servers whose tools are all offered.
    pub(super) fn all_uses(
        &mut self,
        agent: &Name,
        written: Option<List<'_, keys::ToolUse<'_>>>,
        scope: &Scope,
    ) -> (Vec<ToolUse>, Vec<ServerUse>) {
        let (mut tools, servers) = self.tool_uses(agent, written, scope);
        for tool in self.floor_tools(agent) {
            self.out.builtins.insert(tool);
            tools.push(ToolUse::implied(tool.name().into()));
        }
        (tools, servers)
    }

    /// Returns the tools that run ahead of every turn.
    pub(super) fn before(
        &mut self,
        agent: &Name,
        written: Option<List<'_, keys::Before<'_>>>,
        scope: &Scope,
    ) -> Vec<Before> {
        let mut all: Vec<Before> = Vec::new();
        for before in each(written) {
            let Some(what) = before.tool() else {
                continue;
            };
            let Some(tool) = self.named(&what, Sort::Tool) else {
                continue;
            };
            if let Some(args) = before.args() {
                self.arguments_fit(Some(args), Some(&what), &tool, Sort::Tool, &[]);
            }
            let named = before.seen().and_then(|name| name.text().cloned());
            let named = named.unwrap_or_else(|| tool.rsplit('.').next().unwrap_or(&tool).into());
            if all.iter().any(|known| known.named == named) {
                let at = self.place(before.seen().map_or(what.span, |name| name.span));
                self.say(Diagnostic::seen_twice(at, &named));
                continue;
            }
            // no model chooses this tool, so it is not in `offers` and needs no description
            let offer = (agent.clone(), tool.clone(), what.span);
            self.out.ahead.push(offer);
            all.push(Before {
                args: before.args().map(|args| self.named_data(Some(args), scope)),
                show: before.show().value,
                tool,
                named,
            });
        }
        all
    }

    pub(super) fn model_name(&mut self, written: Option<kinds::Name<'_>>) -> Name {
        let Some((written, name)) = written.and_then(|of| Some((of, of.text()?.clone()))) else {
            return "default".into();
        };
        let models = self.file.models();
        let known = || each(models).map(|(key, _)| &*key.name);
        if &*name != "default"
            && !self.merged.unread("models")
            && !known().any(|model| model == &*name)
        {
            // the provider's name of a model that is declared under another one
            let meant = each(models).find(|(_, model)| {
                let at = model.model();
                at.is_some_and(|at| at.as_text().is_some_and(|at| **at == *name))
            });
            let near = self.sources.near(&name, known().chain(["default"]));
            let near = meant.map(|(key, _)| &*key.name).or(near);
            let at = self.place(written.span);
            self.say(Diagnostic::unknown_name(at, "model", &name, near));
        }
        name
    }

    fn net(&mut self, written: Option<kinds::Text<'_>>) -> Name {
        let Some((written, name)) = written.and_then(|of| Some((of, of.text()?.clone()))) else {
            return "chat".into();
        };
        if &*name == RESERVED_NET {
            let at = self.place(written.span);
            self.say(Diagnostic::reserved(at, &format!("the net `{name}`")));
        }
        name
    }

    pub(super) fn tool_choice(
        &mut self,
        written: Option<kinds::Text<'_>>,
        tools: &[ToolUse],
    ) -> ToolChoice {
        let Some((node, word)) = written.and_then(|of| Some((of, of.text()?))) else {
            return ToolChoice::Auto;
        };
        match &**word {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "any" => {
                let finishes = tools
                    .iter()
                    .any(|tool| matches!(&tool.of, Offer::Tool(name) if **name == *FINISH));
                if !finishes {
                    let at = self.place(node.span);
                    self.say(Diagnostic::never_finishes(at));
                }
                ToolChoice::Any
            }
            name => {
                let offered = || tools.iter().map(|tool| &*tool.seen);
                if !offered().any(|seen| seen == name) {
                    let near = self
                        .sources
                        .near(name, offered().chain(["auto", "any", "none"]))
                        .map(str::to_owned);
                    let at = self.place(node.span);
                    self.say(Diagnostic::unknown_name(
                        at,
                        "offered tool",
                        name,
                        near.as_deref(),
                    ));
                }
                ToolChoice::Tool(word.clone())
            }
        }
    }

    /// Lowers `output`, a structured answer. `state.NAME` takes the type of that entry and writes the answer to it; a bare word
    /// is a type.
    fn output(&mut self, name: &Name, agent: keys::Agent<'_>, scope: &Scope) -> Option<Output> {
        let node = agent.output()?.node();
        let Some(entry) = node.as_text().and_then(|text| text.strip_prefix("state.")) else {
            if let Some(scalar) = node.scalar() {
                let short = shape::short_type(scalar).0;
                if short == "text" {
                    return None;
                }
                let known = ShortType::of(short).is_some();
                if !known {
                    let at = self.place(node.span);
                    let words = "`text`, a type, `state.NAME`";
                    self.say(Diagnostic::unknown_word(at, short, words, None));
                    return None;
                }
            }
            return Some(Output {
                ty: self.ty(node, At::Other, scope),
                into: None,
            });
        };
        let mut all = self.file.all_state();
        let Some((_, declared)) = all.find(|(key, _)| &*key.name == entry) else {
            self.is_entry(&entry.into(), node.span);
            return None;
        };
        let before = self.found.len();
        let mut ty = self.ty(&declared, At::State, scope);
        self.found.truncate(before);
        // an answer is never absent, even if the entry may be
        (ty.optional, ty.default, ty.expires) = (false, None, None);
        let place = (name.clone(), Name::from(entry), node.span);
        self.out.writes.push(place);
        Some(Output {
            ty,
            into: Some(entry.into()),
        })
    }

    /// Returns the tools and agents that `tools` names, and the servers whose tools are all offered.
    fn tool_uses(
        &mut self,
        agent: &Name,
        written: Option<List<'_, keys::ToolUse<'_>>>,
        scope: &Scope,
    ) -> (Vec<ToolUse>, Vec<ServerUse>) {
        let mut servers = Vec::new();
        let mut uses: Vec<ToolUse> = Vec::new();
        for used in each(written) {
            if let Some(server) = self.all_of(used, scope, uses.len()) {
                servers.push(server);
                continue;
            }
            let span = used.what().span;
            for offered in self.offered(agent, used, scope) {
                let at = || self.place(span);
                let long = wire_name(&offered.seen).len() > SEEN_MAX;
                if long {
                    let diagnostic = match &offered.of {
                        Offer::Tool(name) if *name == offered.seen => {
                            Diagnostic::long_remote(at(), name)
                        }
                        Offer::Tool(_) | Offer::Agent(_) => {
                            Diagnostic::long_name(at(), &offered.seen)
                        }
                    };
                    self.say(diagnostic);
                } else if !is_name(&offered.seen) && used.seen().is_some() {
                    let diagnostic = Diagnostic::malformed_name(at(), &offered.seen);
                    self.say(diagnostic);
                } else if uses
                    .iter()
                    .any(|known| known.is_called(&wire_name(&offered.seen)))
                {
                    let diagnostic = Diagnostic::seen_twice(at(), &offered.seen);
                    self.say(diagnostic);
                    continue;
                }
                uses.push(offered);
            }
        }
        let read = BuiltIn::ArtifactRead;
        let reads = uses.iter().any(|known| *known.seen == *read.name());
        let has_any = !uses.is_empty() || !servers.is_empty();
        if has_any && !reads {
            // a large result of any tool is stored as an artifact, which the model must be able to read
            self.out.builtins.insert(read);
            uses.push(ToolUse::implied(read.name().into()));
        }
        (uses, servers)
    }

    /// Returns the offers of one entry of `tools`; a built-in set gives several.
    fn offered(&mut self, agent: &Name, used: keys::ToolUse<'_>, scope: &Scope) -> Vec<ToolUse> {
        let what = used.what();
        let Some(name) = what.as_text().cloned() else {
            return Vec::new();
        };
        if name.contains('.') && used.agent().is_none() {
            let Some((_, false)) = self.remote(what) else {
                return Vec::new();
            };
            let place = (agent.clone(), name.clone(), what.span);
            self.out.offers.push(place);
            return vec![self.tool_use(used, Offer::Tool(name), scope)];
        }
        let tools = match used.agent() {
            None => BuiltIn::of_set(&name),
            Some(_) => Vec::new(),
        };
        if tools.is_empty() {
            let Some(of) = self.offer(used, what, &name) else {
                return Vec::new();
            };
            let place = (agent.clone(), name, what.span);
            self.out.offers.push(place);
            return vec![self.tool_use(used, of, scope)];
        }
        self.out.builtins.extend(&tools);
        if tools.contains(&BuiltIn::AskUser) {
            self.out.by_user.push(what.span);
        }
        let settings = self.tool_use(used, Offer::Tool(name), scope);
        let renamed = tools.len() == 1 && used.seen().is_some();
        let of_set = |tool: &BuiltIn| ToolUse {
            of: Offer::Tool(tool.name().into()),
            seen: if renamed {
                settings.seen.clone()
            } else {
                tool.name().into()
            },
            ..settings.clone()
        };
        tools.iter().map(of_set).collect()
    }

    /// Resolves a name in `tools`: a tool after `tool:`, an agent or a person after `agent:`, any of them without a key.
    fn offer(&mut self, used: keys::ToolUse<'_>, what: &Node, name: &Name) -> Option<Offer> {
        let sort = self.out.declared.get(name).map(|declared| declared.sort);
        if used.tool().is_some() {
            return self.named(what, Sort::Tool).map(Offer::Tool);
        }
        if used.agent().is_some() {
            return self.member(what).map(Offer::Agent);
        }
        match sort {
            Some(Sort::Tool) => Some(Offer::Tool(name.clone())),
            Some(Sort::Agent | Sort::Person) => Some(Offer::Agent(name.clone())),
            None if self.merged.unread("tools") || self.merged.unread("agents") => None,
            None => {
                let declared = self.out.declared.keys().map(|name| &**name);
                let near = self
                    .sources
                    .near(name, declared.chain(BuiltIn::sets()))
                    .map(str::to_owned);
                let at = self.place(what.span);
                self.say(Diagnostic::unknown_name(
                    at,
                    "tool or agent",
                    name,
                    near.as_deref(),
                ));
                None
            }
        }
    }

    pub(super) fn tool_use(
        &mut self,
        used: keys::ToolUse<'_>,
        of: Offer,
        scope: &Scope,
    ) -> ToolUse {
        let (name, sort) = match &of {
            Offer::Tool(name) => (name.clone(), Sort::Tool),
            Offer::Agent(name) => (name.clone(), Sort::Agent),
        };
        let inner = Scope {
            args: match &of {
                Offer::Tool(name) => Args::Tool(name.clone()),
                Offer::Agent(name) => Args::Agent(name.clone()),
            },
            ..scope.clone()
        };
        let args = used.args();
        let args = args.map_or_else(Vec::new, |args| {
            self.fixed_arguments(args, &name, sort, scope)
        });
        if let Some(when) = used.when() {
            let at = self.place(when.span);
            self.say(Diagnostic::moving_tools(at));
        }
        if &*name != BuiltIn::Fork.name() {
            for key in ["choose", "join", "effects"] {
                self.meaningless(used, key, "anything but `fork`");
            }
        }
        self.approves(used.0, &name);
        let max = used.max().and_then(Valued::value);
        let join = used.join().and_then(|join| {
            let on = self.join_on(join.node())?;
            if let JoinOn::Count(n) = &on
                && *n > max.unwrap_or(FORKS)
            {
                let at = self.place(join.node().span);
                self.say(Diagnostic::wide_join(at, *n, max.unwrap_or(FORKS)));
            }
            Some(on)
        });
        let mut entries = used.0.entries().iter();
        let agents_only = entries.find(|(key, _)| matches!(&*key.name, "named" | "view"));
        if let Some((key, _)) = agents_only.filter(|_| sort == Sort::Tool) {
            let at = self.place(key.span);
            self.say(Diagnostic::type_key(at, &key.name, "a tool"));
        }
        let seen = used.seen().and_then(|name| name.text().cloned());
        ToolUse {
            seen: seen.unwrap_or_else(|| name.clone()),
            args,
            requires: self.requires(used.requires(), &inner),
            approve: self.approve(used.approve(), &inner),
            named: used.named().value,
            view_shared: used.view().value == SharedView::Shared,
            max,
            when: self.when(used.when(), scope),
            choose: used.choose().and_then(|name| self.chooser(name)),
            join: join.unwrap_or_default(),
            live: used.effects().value == Effects::Live,
            parallel: used.parallel().value,
            implied: false,
            of,
        }
    }

    /// Lowers fixed arguments: each must be a parameter of the callee; the model gives the others.
    fn fixed_arguments(
        &mut self,
        args: Map<'_, kinds::Data<'_>>,
        of: &Name,
        sort: Sort,
        scope: &Scope,
    ) -> Vec<(Name, Data)> {
        let parameters = self.written_parameters(of, sort);
        let open: Vec<&str> = parameters
            .map_or(&[][..], Node::entries)
            .iter()
            .map(|(key, _)| &*key.name)
            .chain(["message", "question"])
            .collect();
        self.arguments_fit(Some(args), Some(args.0), of, sort, &open);
        let needed = self.needed_parameters(of, sort);
        let lowered = sorted(Some(args)).into_iter().map(|(key, value)| {
            let is_needed = needed.contains(&key.name);
            let wants = Wants::Fixed(of.clone(), key.name.clone(), is_needed);
            (key.name.clone(), self.data(&value, &wants, scope))
        });
        lowered.collect()
    }

    /// Parses the condition that ends a call which waits for branches.
    pub(super) fn join_on(&mut self, node: &Node) -> Option<JoinOn> {
        let scalar = node.scalar()?;
        match scalar.text.parse() {
            Ok(on) => Some(on),
            Err(why) => {
                let at = self.place(node.span);
                self.say(Diagnostic::no_join(at, &scalar.text, &why));
                None
            }
        }
    }

    fn chooser(&mut self, node: kinds::Name<'_>) -> Option<Chooser> {
        let name = node.text()?.clone();
        if &*name == "user" {
            return Some(Chooser::Person(name));
        }
        match self.out.declared.get(&name).map(|declared| declared.sort) {
            Some(Sort::Tool) => {
                self.out.choosers.push((name.clone(), node.span));
                Some(Chooser::Tool(name))
            }
            Some(Sort::Agent) => Some(Chooser::Agent(name)),
            Some(Sort::Person) => Some(Chooser::Person(name)),
            None => {
                self.unknown(&node, "tool, agent or person", |_| true);
                None
            }
        }
    }
}
