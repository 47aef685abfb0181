//! Resolves root names of expressions at a site to their types.

use super::super::diagnostic::Diagnostic;
use super::super::foreign;
use super::super::shape::list_of;
use super::super::site::{Args, Scope};
use super::super::source::Span;
use super::Check;
use super::kind::{Kind, Known};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::Parameters;

/// Root names that can be used at every site of a session.
const EVERYWHERE: [&str; 8] = [
    "state", "config", "calls", "now", "agent", "mode", "session", "branch",
];

/// Fields that tell a time.
const MOMENT: [&str; 4] = ["date", "time", "weekday", "iso"];

/// Result of resolving a root name with its first field.
pub(super) enum Root {
    /// The type, and the number of path steps that it covers: 1 if the first field was resolved too, else 0.
    Known(Known, usize),
    /// The name is wrong; a diagnostic was reported.
    Wrong,
}

impl Check<'_> {
    /// Returns the root names that can be used in a scope.
    pub(super) fn known_roots(scope: &Scope) -> Vec<&'static str> {
        if scope.request {
            return vec!["request"];
        }
        if scope.schedule {
            return vec!["schedule"];
        }
        if scope.outside {
            let secrets = scope.transport.then_some("secrets");
            return ["config"].into_iter().chain(secrets).collect();
        }
        let mut names = EVERYWHERE.to_vec();
        let more = [
            (scope.args != Args::None, "args"),
            (scope.result, "result"),
            (scope.error, "error"),
            (scope.called, "tool"),
            (scope.save, "save"),
            (scope.transport, "secrets"),
            (scope.event.is_some(), "event"),
            (scope.message, "message"),
            (scope.message && !scope.route, "before"),
            (scope.route, "route"),
            (scope.reach, "question"),
            (scope.reach, "person"),
            (scope.answer, "answer"),
            (scope.answer, "artifacts"),
            (scope.outcome, "outcome"),
        ];
        names.extend(more.iter().filter(|(has, _)| *has).map(|(_, name)| *name));
        names
    }

    /// Resolves a root name with its first field, if there is one. `at` holds the spans of the name and of the field.
    pub(super) fn root(
        &mut self,
        scope: &Scope,
        root: &str,
        field: Option<&str>,
        at: (Span, Span),
    ) -> Root {
        if !Self::known_roots(scope).contains(&root) {
            self.no_root(scope, root, at.0);
            return Root::Wrong;
        }
        match (root, field) {
            ("state", Some(name)) => self.state(scope, name, at.1),
            ("config", Some(name)) => self.config(scope, name, at.1),
            ("secrets", Some(name)) => self.secret(name, at.1),
            ("calls", Some(name)) => self.calls(name, at.1),
            _ => Root::Known(self.whole(scope, root), 0),
        }
    }

    fn no_root(&mut self, scope: &Scope, root: &str, at: Span) {
        let at = self.place(at);
        if root == "secrets" {
            let why = "secrets resolve in transport fields alone: address, query, headers and body of `http`, `env` of \
                       `command`, `url` and `key` of a model, `url`, `headers` and `env` of an MCP server";
            return self.say(Diagnostic::transport_only(at, root, why));
        }
        if matches!(root, "question" | "person") {
            let why = "the tool that a person's `reach` names reads them";
            return self.say(Diagnostic::transport_only(at, root, why));
        }
        if matches!(root, "artifacts" | "before") {
            return self.say(Diagnostic::reserved(at, &format!("`{root}`")));
        }
        let known = Self::known_roots(scope);
        let near = self.sources.near(root, known.iter().copied());
        // a state entry was probably meant, without `state.`
        let entry = self.entries.contains_key(root);
        let entry = entry.then(|| format!("state.{root}"));
        let none = foreign::is_none(root).then_some("none");
        let near = none.or(entry.as_deref()).or(near);
        let known = list_of(known.iter().copied());
        let mut found = Diagnostic::unknown_root(at, root, near, &known);
        if root == "event" && scope.answer {
            found = found.of_an_event();
        }
        if root == "save" {
            found = found.of_a_command();
        }
        self.say(found);
    }

    fn state(&mut self, scope: &Scope, name: &str, at: Span) -> Root {
        let found = self.entries.get(name).map_or(&[][..], Vec::as_slice);
        let of = |owner: &Name| found.binary_search_by(|(known, _)| (*known).cmp(owner));
        let own = scope.agent.as_ref().and_then(|agent| of(agent).ok());
        let own = own.map(|k| &found[k]);
        let span = |owner: &Name| {
            self.lowered
                .facts
                .states
                .get(&(owner.clone(), name.into()))
                .copied()
        };
        if let Some((owner, ty)) = own {
            return Root::Known(Known::declared(ty, span(owner)), 1);
        }
        let user = match (&scope.agent, &scope.args) {
            (Some(agent), _) => Some(agent),
            (None, Args::Tool(tool)) => Some(tool),
            (None, _) => None,
        };
        let user = user.filter(|user| !self.idle.contains(*user));
        let user = user.filter(|user| self.above.has(user));
        let is_above = |owner: &Name| user.is_none_or(|user| self.above.is(owner, user));
        let mut visible = found.iter().filter(|(owner, _)| is_above(owner));
        match (visible.next(), found.first()) {
            (Some((owner, ty)), _) => {
                if visible.all(|(_, other)| other == ty) {
                    return Root::Known(Known::declared(ty, span(owner)), 1);
                }
                Root::Known(Known::any(), 1)
            }
            (None, Some((owner, _))) => {
                let declared = span(owner).and_then(|span| self.place(span));
                let at = self.place(at);
                let owner = (*owner).clone();
                self.say(Diagnostic::state_not_above(at, name, &owner, declared));
                Root::Wrong
            }
            (None, None) if self.merged.unread("state") => Root::Wrong,
            (None, None) => {
                let names = self.entries.keys().map(|name| &**name);
                let near = self.sources.near(name, names);
                let at = self.place(at);
                self.say(Diagnostic::unknown_state(at, name, near));
                Root::Wrong
            }
        }
    }

    fn config(&mut self, scope: &Scope, name: &str, at: Span) -> Root {
        let network = &self.lowered.network;
        let Some(config) = network.config.get(name) else {
            if self.merged.unread("config") {
                return Root::Wrong;
            }
            let known = || network.config.keys().map(|name| &**name);
            let (near, known) = (self.sources.near(name, known()), list_of(known()));
            let at = self.place(at);
            self.say(Diagnostic::unknown_field(at, "config", name, near, &known));
            return Root::Wrong;
        };
        if config.live && !scope.transport {
            let why = "it is `live`: read at each use in a transport field, no part of what a session is bound to";
            let at = self.place(at);
            self.say(Diagnostic::transport_only(
                at,
                &format!("config.{name}"),
                why,
            ));
            return Root::Wrong;
        }
        let declared = self.lowered.facts.config.get(name).copied();
        Root::Known(Known::declared(&config.ty, declared), 1)
    }

    fn secret(&mut self, name: &str, at: Span) -> Root {
        let network = &self.lowered.network;
        let Some(secret) = network.secrets.get(name) else {
            if self.merged.unread("secrets") {
                return Root::Wrong;
            }
            let known = || network.secrets.keys().map(|name| &**name);
            let (near, known) = (self.sources.near(name, known()), list_of(known()));
            let at = self.place(at);
            self.say(Diagnostic::unknown_field(at, "secrets", name, near, &known));
            return Root::Wrong;
        };
        // secrets resolve in transport fields, so the value is text
        let known = Known {
            optional: secret.optional,
            ..Known::of(Kind::Text)
        };
        Root::Known(known, 1)
    }

    fn calls(&mut self, name: &str, at: Span) -> Root {
        let network = &self.lowered.network;
        let names = || {
            let tools = network.tools.keys();
            tools
                .chain(network.agents.keys())
                .chain(network.people.keys())
        };
        let parameters = network
            .tools
            .get(name)
            .map(|tool| &tool.parameters)
            .or_else(|| network.agents.get(name).map(|agent| &agent.parameters));
        let of_server = name
            .split_once('.')
            .is_some_and(|(server, _)| network.mcp.contains_key(server));
        let is_known = network.tools.contains_key(name)
            || network.agents.contains_key(name)
            || network.people.contains_key(name);
        if !is_known && !of_server {
            let near = self.sources.near(name, names().map(|name| &**name));
            let at = self.place(at);
            self.say(Diagnostic::unknown_name(at, "tool or agent", name, near));
            return Root::Wrong;
        }
        let args = match parameters {
            Some(Parameters::Fields(fields)) => Kind::fields(fields),
            Some(Parameters::Schema(_)) | None => Kind::Any,
        };
        let fields = vec![
            ("ok".into(), Kind::Integer, false),
            ("failed".into(), Kind::Integer, false),
            ("args".into(), args, true),
            ("result".into(), Kind::Text, true),
        ];
        Root::Known(Known::of(Kind::Fields(fields)), 1)
    }

    /// Returns the names in `before`: one for each tool that runs ahead of the agent's turns.
    fn ahead_of(&self, scope: &Scope) -> Option<impl Iterator<Item = Name>> {
        let agent = self.lowered.network.agents.get(scope.agent.as_ref()?)?;
        // all modes of an agent run the same tools ahead
        let model = agent.model(None)?;
        Some(model.before.iter().map(|before| before.named.clone()))
    }

    /// Returns true if the agent of an expression is always in a mode: the agent has modes, or the expression is of a tool that
    /// only agents with modes call.
    fn has_mode(&self, scope: &Scope) -> bool {
        let modes = |agent: &Name| {
            let agent = self.lowered.network.agents.get(agent);
            agent.is_some_and(|agent| agent.modes.is_some())
        };
        match (&scope.agent, &scope.args) {
            (Some(agent), _) => modes(agent),
            (None, Args::Tool(tool)) => self.moded.contains(tool),
            (None, _) => false,
        }
    }

    pub(super) fn whole(&self, scope: &Scope, root: &str) -> Known {
        let text = |name: &str| (Name::from(name), Kind::Text, false);
        let fields = |fields: Vec<(Name, Kind, bool)>| Known::of(Kind::Fields(fields));
        match root {
            "now" => fields(MOMENT.map(text).to_vec()),
            "schedule" => {
                let mut known = MOMENT.map(text).to_vec();
                known.extend([text("name"), ("missed".into(), Kind::Integer, false)]);
                fields(known)
            }
            "args" => match self.parameters(&scope.args) {
                Some(Parameters::Fields(fields)) => Known::of(Kind::fields(fields)),
                Some(Parameters::Schema(_)) | None => Known::any(),
            },
            "error" => fields(vec![
                text("code"),
                text("message"),
                ("status".into(), Kind::Integer, true),
            ]),
            "event" => {
                let name = scope.event.as_ref();
                match name.and_then(|name| self.lowered.network.events.get(name)) {
                    Some(event) => Known::of(Kind::fields(&event.fields)),
                    None => Known::any(),
                }
            }
            // each tool may have failed, so each result is optional
            "before" => match self.ahead_of(scope) {
                Some(names) => fields(names.map(|name| (name, Kind::Text, true)).collect()),
                None => Known::any(),
            },
            "message" => fields(vec![
                text("text"),
                text("from"),
                ("artifacts".into(), Kind::List(Box::new(Kind::Text)), false),
            ]),
            "route" => {
                let last = vec![
                    ("agent".into(), Kind::Text, true),
                    ("result".into(), Kind::Text, true),
                    ("ok".into(), Kind::Boolean, true),
                ];
                fields(vec![
                    ("count".into(), Kind::Integer, false),
                    ("last".into(), Kind::Fields(last), false),
                    ("pending".into(), Kind::List(Box::new(Kind::Text)), false),
                ])
            }
            "question" => fields(vec![
                text("id"),
                text("text"),
                text("link"),
                ("due".into(), Kind::Text, true),
            ]),
            "person" => fields(vec![text("name"), text("role")]),
            "branch" => fields(vec![
                text("name"),
                ("index".into(), Kind::Integer, true),
                ("of".into(), Kind::Integer, true),
            ]),
            "agent" | "session" | "tool" | "save" => Known::of(Kind::Text),
            "mode" => Known {
                optional: !self.has_mode(scope),
                ..Known::of(Kind::Text)
            },
            "answer" => Known {
                optional: true,
                ..Known::of(self.answer(scope))
            },
            "outcome" => {
                let names = self.lowered.network.outcome.keys();
                fields(names.map(|name| (name.clone(), Kind::Any, true)).collect())
            }
            _ => Known::any(),
        }
    }

    /// Returns the kind of the answer: what the agent of the scope gives, else all agents that a session may begin with.
    fn answer(&self, scope: &Scope) -> Kind {
        let network = &self.lowered.network;
        let starts = network
            .events
            .values()
            .filter_map(|event| event.start.as_ref());
        let schedules = network.schedules.values().map(|schedule| &schedule.start);
        let starts = starts
            .chain(schedules)
            .filter_map(|start| start.agent.as_ref());
        let agents: Vec<&Name> = match &scope.agent {
            Some(agent) => vec![agent],
            None => network.entry.iter().chain(starts).collect(),
        };
        let kinds = agents.into_iter().map(|agent| {
            let def = network.agents.get(agent);
            let output = def.and_then(|def| def.output.as_ref());
            let output = output.filter(|output| !output.is_text());
            output.map_or(Kind::Text, |output| Kind::of(&output.ty))
        });
        let mut kinds: Vec<Kind> = kinds.collect();
        kinds.dedup();
        match kinds.pop() {
            Some(kind) if kinds.is_empty() => kind,
            Some(_) => Kind::Any,
            None => Kind::Text,
        }
    }

    pub(super) fn parameters(&self, args: &Args) -> Option<&Parameters> {
        let network = &self.lowered.network;
        match args {
            Args::None => None,
            Args::Tool(name) => network.tools.get(name).map(|tool| &tool.parameters),
            Args::Agent(name) => network.agents.get(name).map(|agent| &agent.parameters),
            Args::Router(_) => {
                let router = network.agents.get(self.router(args)?);
                router.map(|agent| &agent.parameters)
            }
        }
    }

    /// Returns the only routed agent that leads to a plain agent; `None` if there are several.
    fn router(&self, args: &Args) -> Option<&Name> {
        let Args::Router(plain) = args else {
            return None;
        };
        self.routers.get(plain).copied().flatten()
    }

    /// Returns the span of a parameter's declaration.
    pub(super) fn parameter_span(&self, args: &Args, name: &str) -> Option<Span> {
        let owner = match args {
            Args::None => return None,
            Args::Tool(owner) | Args::Agent(owner) => owner,
            Args::Router(_) => self.router(args)?,
        };
        let place = (owner.clone(), Name::from(name));
        self.lowered.facts.parameters.get(&place).copied()
    }
}
