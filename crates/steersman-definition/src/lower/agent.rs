//! Lowers agents, model-driven, routed and plain: their tools, contexts, limits and routes.

use super::super::diagnostic::Diagnostic;
use super::super::keys::{self, Section as _};
use super::super::shape;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node, Span};
use super::builtin;
use super::file::params;
use super::values::{At, plain_text};
use super::{Lower, Sort, count, flag, text, word};
use steersman_machine::bounds::SEEN_MAX;
use steersman_machine::branch::FORKS;
use steersman_machine::ids::Name;
use steersman_machine::join::JoinOn;
use steersman_machine::network::{
    AgentDef, Before, BuiltIn, Chooser, Does, FINISH, ModelAgent, Offer, Output, Parameters,
    ServerUse, ToolChoice, ToolUse, Turns, wire_name,
};

/// Names of the built-in nets; `false` means reserved. Other nets are registered in Rust.
const NETS: [(&str, bool); 4] = [
    ("chat", true),
    ("react", true),
    ("refact", true),
    ("plan_execute", false),
];

impl Lower<'_> {
    /// Reports keys that have no meaning for this kind of agent.
    pub(super) fn keys_of_its_kind(&mut self, node: &Node) {
        let (kind, of, keys): (&str, &str, &[&str]) = if node.get("person").is_some() {
            ("person", "a person", &["description"])
        } else if node.get("run").is_some() {
            let keys = &["description", "parameters", "args"];
            ("run", "an agent that only runs a tool", keys)
        } else if node.get("route").is_some() {
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
            self.only_with(node, "modes", &["start", "exits"]);
            return self.only_with(node, "run", &["args"]);
        };
        for (key, _) in node.entries() {
            let known = keys::agent::Agent::table().key(&key.name);
            let other = ["route", "person", "run", "override"].contains(&&*key.name);
            let fits = &*key.name == kind || keys.contains(&&*key.name) || other;
            if !fits && known.is_some() {
                let at = self.place(key.span);
                self.say(Diagnostic::type_key(at, &key.name, of));
            }
        }
    }

    /// Reports keys that have a meaning only together with the key `other`.
    fn only_with(&mut self, node: &Node, other: &str, keys: &[&str]) {
        if node.get(other).is_some() {
            return;
        }
        for (key, _) in node.entries() {
            if keys.contains(&&*key.name) {
                let at = self.place(key.span);
                let of = format!("an agent without `{other}`");
                self.say(Diagnostic::type_key(at, &key.name, &of));
            }
        }
    }

    pub(super) fn agent(&mut self, key: &Key, node: &Node, entry: &[Name]) -> AgentDef {
        let name = &key.name;
        let scope = Scope {
            item: Some(node.span),
            agent: Some(name.clone()),
            args: Args::Agent(name.clone()),
            ..Scope::default()
        };
        let is_entry = entry.contains(name);
        let merged = self.merged;
        let mut own: Vec<(Key, Node)> = node
            .get("state")
            .map(Node::entries)
            .unwrap_or_default()
            .to_vec();
        if is_entry {
            for (key, node) in merged.section("state") {
                match own.iter().find(|(known, _)| known.name == key.name) {
                    None => own.push((key.clone(), node.clone())),
                    Some((first, _)) => {
                        let (at, first) = (self.place(first.span), self.place(key.span));
                        self.say(Diagnostic::defined_twice(at, "state", &key.name, first));
                    }
                }
            }
        }
        let mut state = self.state(name, &own, &scope);
        let uses_todo = super::modes::lists(node, "tools").any(|tool| {
            let name = tool.get("tool").unwrap_or(tool);
            name.as_text().is_some_and(|name| &**name == "todo")
        });
        if uses_todo && !self.out.entries.contains("todo") {
            state.push(("todo".into(), builtin::todo_list()));
        }
        let mut does = self.does(key, node, &scope);
        let view = node.get("view").map(|node| match &does {
            Does::Route(_) => self.view(node, &scope),
            // the summary of a member's view is written outside the member, so its state and arguments are not in scope
            Does::Model(_) | Does::Run { .. } => {
                let outside = Scope {
                    item: scope.item,
                    outside: true,
                    ..Scope::default()
                };
                self.view(node, &outside)
            }
        });
        if let (Does::Route(route), Some(view)) = (&mut does, &view) {
            route.view = view.clone();
        }
        let extract = node.get("extract").map(Node::items).unwrap_or_default();
        let extract = self.filled(name, extract);
        let parameters = match (node.get("parameters"), &does) {
            (Some(node), _) => self.parameters(name, node, &scope),
            (None, Does::Run { tool, args: None }) => self.parameters_of(tool, &scope),
            (None, _) => Parameters::Fields(vec![("message".into(), plain_text())]),
        };
        let limits = self.limits_of_agent(node);
        let modes = match &does {
            Does::Model(model) => self.modes(key, node, &scope, model, &limits),
            Does::Route(_) | Does::Run { .. } => None,
        };
        AgentDef {
            name: name.clone(),
            description: text(node, "description").unwrap_or_default(),
            output: self.output(name, node, &scope),
            set: self.set(name, node.get("set"), &scope.with_result()),
            state,
            enter_fresh: word(node, "enter") == Some("fresh"),
            turns: match word(node, "turns") {
                Some("dialogue") => Some(Turns::Dialogue),
                Some("task") => Some(Turns::Task),
                Some("once") => Some(Turns::Once),
                _ => None,
            },
            view,
            extract,
            limits,
            reflect: self.reflect(node.get("reflect"), &scope.with_message().with_result()),
            parameters,
            does,
            modes,
        }
    }

    /// Returns the parameters of a tool for a plain agent that passes its own arguments on. Reports nothing: the tool's own
    /// lowering does.
    fn parameters_of(&mut self, tool: &Name, scope: &Scope) -> Parameters {
        let merged = self.merged;
        let tools = merged.section("tools").iter();
        let node = tools
            .filter(|(key, _)| key.name == *tool)
            .find_map(|(_, node)| node.get("parameters"));
        let before = (self.found.len(), self.out.sites.len());
        let parameters = match node {
            Some(node) => self.parameters(tool, node, scope),
            None => Parameters::Fields(Vec::new()),
        };
        self.found.truncate(before.0);
        self.out.sites.truncate(before.1);
        parameters
    }

    fn does(&mut self, key: &Key, node: &Node, scope: &Scope) -> Does {
        if let Some(route) = node.get("route") {
            let scope = Scope {
                route: true,
                ..scope.clone()
            };
            return Does::Route(self.route(&key.name, route, &scope));
        }
        if let Some(run) = node.get("run") {
            let tool = self.named(run, Sort::Tool);
            if let Some(tool) = &tool {
                let offer = (key.name.clone(), tool.clone(), run.span);
                self.out.offers.push(offer);
                if let Some(args) = node.get("args") {
                    self.arguments_fit(Some(args), Some(run), tool, Sort::Tool, &[]);
                }
            }
            let scope = Scope {
                agent: None,
                args: Args::Router(key.name.clone()),
                ..scope.clone()
            };
            return Does::Run {
                tool: tool.unwrap_or_else(|| "".into()),
                args: node
                    .get("args")
                    .map(|args| self.named_data(Some(args), &scope)),
            };
        }
        Does::Model(Box::new(self.model_agent(key, node, scope)))
    }

    fn model_agent(&mut self, key: &Key, node: &Node, scope: &Scope) -> ModelAgent {
        let scope = Scope {
            message: true,
            ..scope.clone()
        };
        let (tools, servers) = self.all_uses(&key.name, node.get("tools"), &scope);
        let model = self.model_name(node.get("model"));
        let context = self.context(node.get("context"), &model, &scope);
        let mut model = ModelAgent {
            system: node
                .get("system")
                .and_then(|node| self.prompt(node, &scope)),
            model,
            params: params(node.get("params")),
            // with modes, each mode has its own choice among the tools that it offers
            tool_choice: match node.get("modes") {
                Some(_) => ToolChoice::Auto,
                None => self.tool_choice(node.get("tool_choice"), &tools),
            },
            tools,
            servers,
            prefill: self.text_of(node, "prefill", &scope),
            before: self.ahead(&key.name, node, &scope),
            knowledge: self.knowledge(node),
            net: self.net(node.get("net")),
            context,
            search: self.search(&key.name, node.get("search")),
        };
        super::knowledge::shown_once(&mut model);
        model
    }

    /// Returns the tools that `tools` offers and those that the engine adds, and the servers offered as a whole.
    pub(super) fn all_uses(
        &mut self,
        agent: &Name,
        node: Option<&Node>,
        scope: &Scope,
    ) -> (Vec<ToolUse>, Vec<ServerUse>) {
        let (mut tools, servers) = self.tool_uses(agent, node, scope);
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
        node: Option<&Node>,
        scope: &Scope,
    ) -> Vec<Before> {
        let mut all: Vec<Before> = Vec::new();
        for node in node.map(Node::items).unwrap_or_default() {
            let what = node.get("tool").unwrap_or(node);
            let Some(tool) = self.named(what, Sort::Tool) else {
                continue;
            };
            if let Some(args) = node.get("args") {
                self.arguments_fit(Some(args), Some(what), &tool, Sort::Tool, &[]);
            }
            let named = node.get("as").and_then(Node::as_text).cloned();
            let named = named.unwrap_or_else(|| tool.rsplit('.').next().unwrap_or(&tool).into());
            if all.iter().any(|known| known.named == named) {
                let at = self.place(node.get("as").map_or(what.span, |node| node.span));
                self.say(Diagnostic::seen_twice(at, &named));
                continue;
            }
            // no model chooses this tool, so it is not in `offers` and needs no description
            let offer = (agent.clone(), tool.clone(), what.span);
            self.out.ahead.push(offer);
            all.push(Before {
                args: node
                    .get("args")
                    .map(|args| self.named_data(Some(args), scope)),
                show: word(node, "show") != Some("false"),
                tool,
                named,
            });
        }
        all
    }

    pub(super) fn model_name(&mut self, node: Option<&Node>) -> Name {
        let Some(name) = node.and_then(Node::as_text).cloned() else {
            return "default".into();
        };
        let merged = self.merged;
        let known = || merged.section("models").iter().map(|(key, _)| &*key.name);
        if &*name != "default" && !known().any(|model| model == &*name) {
            let near = self.sources.near(&name, known().chain(["default"]));
            let at = node.and_then(|node| self.place(node.span));
            self.say(Diagnostic::unknown_name(at, "model", &name, near));
        }
        name
    }

    fn net(&mut self, node: Option<&Node>) -> Name {
        let Some(name) = node.and_then(Node::as_text).cloned() else {
            return "chat".into();
        };
        if NETS.contains(&(&name, false)) {
            let at = node.and_then(|node| self.place(node.span));
            self.say(Diagnostic::reserved(at, &format!("the net `{name}`")));
        }
        name
    }

    pub(super) fn tool_choice(&mut self, node: Option<&Node>, tools: &[ToolUse]) -> ToolChoice {
        let Some((node, word)) = node.and_then(|node| Some((node, node.as_text()?))) else {
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
    fn output(&mut self, agent: &Name, node: &Node, scope: &Scope) -> Option<Output> {
        let node = node.get("output")?;
        let Some(entry) = node.as_text().and_then(|text| text.strip_prefix("state.")) else {
            if let Some(scalar) = node.scalar() {
                let short = shape::short_type(scalar).0;
                if short == "text" {
                    return None;
                }
                let known = keys::SHORT.iter().any(|(word, _)| *word == short);
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
        let merged = self.merged;
        let own = merged
            .section("agents")
            .iter()
            .filter_map(|(_, node)| node.get("state"))
            .flat_map(Node::entries);
        let Some((_, declared)) = merged
            .section("state")
            .iter()
            .chain(own)
            .find(|(key, _)| &*key.name == entry)
        else {
            let known: Vec<Name> = self.out.entries.iter().cloned().collect();
            let near = self.sources.near(entry, known.iter().map(|name| &**name));
            let at = self.place(node.span);
            self.say(Diagnostic::unknown_state(at, entry, near));
            return None;
        };
        let before = self.found.len();
        let mut ty = self.ty(declared, At::State, scope);
        self.found.truncate(before);
        // an answer is never absent, even if the entry may be
        (ty.optional, ty.default, ty.expires) = (false, None, None);
        let place = (agent.clone(), Name::from(entry), node.span);
        self.out.writes.push(place);
        Some(Output {
            ty,
            into: Some(entry.into()),
        })
    }

    /// Returns the tools and agents that an agent is offered by name, and the servers offered as a whole.
    fn tool_uses(
        &mut self,
        agent: &Name,
        node: Option<&Node>,
        scope: &Scope,
    ) -> (Vec<ToolUse>, Vec<ServerUse>) {
        let mut servers = Vec::new();
        let mut uses: Vec<ToolUse> = Vec::new();
        for node in node.map(Node::items).unwrap_or_default() {
            if let Some(server) = self.all_of(node, scope, uses.len()) {
                servers.push(server);
                continue;
            }
            for (offered, span) in self.offered(agent, node, scope) {
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
                } else if !shape::is_name(&offered.seen) && node.get("as").is_some() {
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
    fn offered(&mut self, agent: &Name, node: &Node, scope: &Scope) -> Vec<(ToolUse, Span)> {
        let what = node
            .get("tool")
            .or_else(|| node.get("agent"))
            .unwrap_or(node);
        let Some(name) = what.as_text().cloned() else {
            return Vec::new();
        };
        if name.contains('.') && node.get("agent").is_none() {
            let Some((_, false)) = self.remote(what) else {
                return Vec::new();
            };
            let place = (agent.clone(), name.clone(), what.span);
            self.out.offers.push(place);
            return vec![self.tool_use(node, Offer::Tool(name), what.span, scope)];
        }
        let tools = match node.get("agent") {
            None => BuiltIn::of_set(&name),
            Some(_) => Vec::new(),
        };
        if tools.is_empty() {
            let Some(of) = self.offer(node, what, &name) else {
                return Vec::new();
            };
            let place = (agent.clone(), name, what.span);
            self.out.offers.push(place);
            vec![self.tool_use(node, of, what.span, scope)]
        } else {
            self.out.builtins.extend(&tools);
            if &*name == "ask" {
                self.out.by_user.push(what.span);
            }
            let (settings, _) = self.tool_use(node, Offer::Tool(name), what.span, scope);
            let one = tools.len() == 1;
            tools
                .iter()
                .map(|tool| {
                    let of = Offer::Tool(tool.name().into());
                    let seen = if one && node.get("as").is_some() {
                        settings.seen.clone()
                    } else {
                        tool.name().into()
                    };
                    let offered = ToolUse {
                        of,
                        seen,
                        ..settings.clone()
                    };
                    (offered, what.span)
                })
                .collect()
        }
    }

    /// Resolves a name in `tools`: with `tool:` a tool, with `agent:` an agent or person, bare any of them.
    fn offer(&mut self, node: &Node, what: &Node, name: &Name) -> Option<Offer> {
        let sort = self.out.declared.get(name).map(|declared| declared.sort);
        if node.get("tool").is_some() {
            return self.named(what, Sort::Tool).map(Offer::Tool);
        }
        if node.get("agent").is_some() {
            return self.member(what).map(Offer::Agent);
        }
        match sort {
            Some(Sort::Tool) => Some(Offer::Tool(name.clone())),
            Some(Sort::Agent | Sort::Person) => Some(Offer::Agent(name.clone())),
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
        node: &Node,
        of: Offer,
        span: Span,
        scope: &Scope,
    ) -> (ToolUse, Span) {
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
        if let Some(args) = node.get("args") {
            self.fixed_arguments(args, &name, sort);
        }
        let when = node.get("when");
        if let Some(when) = when {
            let at = self.place(when.span);
            self.say(Diagnostic::moving_tools(at));
        }
        for (key, fits) in [("choose", "fork"), ("join", "fork"), ("effects", "fork")] {
            let written = node.entries().iter().find(|(name, _)| &*name.name == key);
            if let Some((key, _)) = written.filter(|_| &*name != fits) {
                let at = self.place(key.span);
                self.say(Diagnostic::type_key(at, &key.name, "anything but `fork`"));
            }
        }
        self.approves(node, &name);
        let join = node.get("join").and_then(|node| self.join_on(node));
        let most = node.get("max").and_then(super::whole);
        let most = most.and_then(|most| u32::try_from(most).ok());
        if let (Some(JoinOn::Count(n)), Some(node)) = (&join, node.get("join"))
            && *n > most.unwrap_or(FORKS)
        {
            let at = self.place(node.span);
            self.say(Diagnostic::wide_join(at, *n, most.unwrap_or(FORKS)));
        }
        let agents_only = node
            .entries()
            .iter()
            .find(|(key, _)| matches!(&*key.name, "named" | "view"));
        if let Some((key, _)) = agents_only.filter(|_| sort == Sort::Tool) {
            let at = self.place(key.span);
            self.say(Diagnostic::type_key(at, &key.name, "a tool"));
        }
        let offered = ToolUse {
            seen: node
                .get("as")
                .and_then(Node::as_text)
                .cloned()
                .unwrap_or_else(|| name.clone()),
            args: self.named_data(node.get("args"), scope),
            requires: self.requires(node.get("requires"), &inner),
            approve: self.approve(node.get("approve"), &inner),
            named: flag(node, "named"),
            view_shared: word(node, "view") == Some("shared"),
            max: most,
            when: when.and_then(|when| self.expr(when, Wants::Condition, scope)),
            choose: node.get("choose").and_then(|node| self.chooser(node)),
            join: join.unwrap_or_default(),
            live: word(node, "effects") == Some("live"),
            parallel: count(node, "parallel", 8),
            implied: false,
            of,
        };
        (offered, span)
    }

    /// Checks fixed arguments: each must be a parameter of the callee; the model gives the others.
    fn fixed_arguments(&mut self, args: &Node, of: &Name, sort: Sort) {
        let merged = self.merged;
        let section = if sort == Sort::Tool {
            "tools"
        } else {
            "agents"
        };
        let item = merged
            .section(section)
            .iter()
            .find(|(key, _)| key.name == *of);
        let parameters = item.and_then(|(_, node)| node.get("parameters"));
        let open: Vec<&str> = parameters
            .map(Node::entries)
            .unwrap_or_default()
            .iter()
            .map(|(key, _)| &*key.name)
            .chain(["message", "question"])
            .collect();
        self.arguments_fit(Some(args), Some(args), of, sort, &open);
    }

    /// Parses the condition under which a call that waits for branches is over.
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

    fn chooser(&mut self, node: &Node) -> Option<Chooser> {
        let name = node.as_text()?.clone();
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
                self.unknown(node, "tool, agent or person", |_| true);
                None
            }
        }
    }
}
