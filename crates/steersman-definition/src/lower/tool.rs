//! Lowers tools.

use super::super::diagnostic::Diagnostic;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node};
use super::values::plain_text;
use super::{Lower, Sort, count, duration, flag, sorted, text, word};
use crate::shape;
use std::collections::BTreeMap;
use steersman_machine::network::{
    ANYBODY, Approve, Http, HttpOutcome, OnDoubt, OnError, OnTimeout, ProbeElse, Requires, Source,
    Then, ToolDef, Wait, WaitOn,
};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::{Expr, Template};
use steersman_machine::values::rate::Rate;
use steersman_machine::values::types::Parameters;

/// Codes of `on_error`, in addition to `http_NNN` and `http_Nxx`.
const CODES: [&str; 16] = [
    "refused",
    "rejected",
    "expired",
    "timeout",
    "empty",
    "misfit",
    "in_doubt",
    "done_before",
    "not_in_this_branch",
    "limit",
    "no_branches",
    "failed",
    "*",
    "ended_failed",
    "ended_limit",
    "ended_cancelled",
];

impl Lower<'_> {
    pub(super) fn tools(&mut self) -> BTreeMap<Name, ToolDef> {
        let mut tools = BTreeMap::new();
        for (key, node) in self.merged.section("tools") {
            let tool = self.tool(key, node);
            tools.insert(key.name.clone(), tool);
        }
        tools
    }

    fn tool(&mut self, key: &Key, node: &Node) -> ToolDef {
        let name = &key.name;
        let scope = Scope {
            item: Some(node.span),
            args: Args::Tool(name.clone()),
            reach: self.reaches(name),
            ..Scope::default()
        };
        self.needs(node, "env", &["command"], "a tool without `command`");
        let (source, default) = self.tool_source(node, &scope);
        let effect = match word(node, "effect") {
            Some("pure") => Class::Pure,
            Some("read") => Class::Read,
            Some("idempotent") => Class::Idempotent,
            Some("unsafe") => Class::Unsafe,
            _ => default,
        };
        if let (Source::Http(http), None) = (&source, node.get("effect")) {
            let at = self.place(key.span);
            if http.method == "GET" {
                self.say(Diagnostic::no_effect_class(at, name, true));
            }
        }
        let parameters = match node.get("parameters") {
            Some(node) => self.parameters(name, node, &scope),
            None => Parameters::Fields(match &source {
                Source::Ask(_) => vec![("question".into(), plain_text())],
                Source::Send(_) => vec![("message".into(), plain_text())],
                _ => Vec::new(),
            }),
        };
        self.wanted_argument(key, &source, &parameters);
        self.approves(node, name);
        let seen = scope.with_result();
        ToolDef {
            name: name.clone(),
            description: text(node, "description").unwrap_or_default(),
            effect,
            requires: self.requires(node.get("requires"), &scope),
            approve: self.approve(node.get("approve"), &scope),
            set: self.set(name, node.get("set"), &seen),
            result: self.text_of(node, "result", &seen),
            on_error: self.on_error(name, node.get("on_error"), &scope),
            on_doubt: self.on_doubt(node.get("on_doubt"), &scope),
            simulate: node
                .get("simulate")
                .map(|node| self.data(node, &Wants::Value, &scope)),
            repeat_allowed: word(node, "repeat") == Some("allow"),
            then: self.then(node.get("then"), &seen),
            mode: self.text_of(node, "mode", &seen),
            render: self.render(node.get("render"), &seen, Some((name, &parameters))),
            timeout: duration(node, "timeout").unwrap_or(60_000),
            retry: count(node, "retry", 4),
            parallel: count(node, "parallel", 8),
            reflect: {
                // an unsafe tool is judged before it runs, when it has no result yet
                let judged = if effect == Class::Unsafe {
                    &scope
                } else {
                    &seen
                };
                self.reflect(node.get("reflect"), judged)
            },
            parameters,
            source,
        }
    }

    /// Returns the source of a tool, and its class if none is written.
    fn tool_source(&mut self, node: &Node, scope: &Scope) -> (Source, Class) {
        if let Some(http) = node.get("http") {
            let http = self.http(http, &scope.transported());
            return (Source::Http(Box::new(http)), Class::Unsafe);
        }
        if let Some(command) = node.get("command") {
            let argv = command
                .items()
                .iter()
                .filter_map(|node| self.template(node, Wants::Text, scope))
                .collect();
            let env = self.texts(node.get("env"), &scope.transported());
            return (Source::Command { argv, env }, Class::Unsafe);
        }
        if let Some(version) = node.get("native") {
            let version = version
                .as_text()
                .map(ToString::to_string)
                .unwrap_or_default();
            return (Source::Native { version }, Class::Unsafe);
        }
        if let Some(wait) = node.get("wait") {
            let wait = self.wait(wait, scope);
            return (Source::Wait(wait), Class::Pure);
        }
        if let Some(person) = node.get("ask") {
            if person.as_text().is_some_and(|name| &**name == "user") {
                self.out.by_user.push(person.span);
            }
            let person = self.person(person).unwrap_or_else(|| "user".into());
            return (Source::Ask(person), Class::Pure);
        }
        if let Some(agent) = node.get("send") {
            // nothing outside the session changes, and a message of a commit is sent once
            let agent = self.named(agent, Sort::Agent).unwrap_or_else(|| "".into());
            return (Source::Send(agent), Class::Pure);
        }
        (Source::State, Class::Pure)
    }

    /// Reports `ask` without a parameter `question`, and `send` without `message`.
    fn wanted_argument(&mut self, key: &Key, source: &Source, parameters: &Parameters) {
        let (Parameters::Fields(fields), Some(wanted)) = (
            parameters,
            match source {
                Source::Ask(_) => Some("question"),
                Source::Send(_) => Some("message"),
                _ => None,
            },
        ) else {
            return;
        };
        if !fields.iter().any(|(name, _)| &**name == wanted) {
            let at = self.place(key.span);
            self.say(Diagnostic::missing_argument(at, &key.name, wanted, None));
        }
    }

    fn http(&mut self, node: &Node, scope: &Scope) -> Http {
        let body = ["json", "form", "file"]
            .iter()
            .any(|key| node.get(key).is_some());
        let method = text(node, "method");
        let mut outcomes = BTreeMap::new();
        for (key, value) in node.get("outcomes").map(Node::entries).unwrap_or_default() {
            let status = &key.name;
            let fits = status.len() == 3
                && matches!(status.as_bytes()[0], b'1'..=b'5')
                && (status.ends_with("xx") || status.bytes().all(|c| c.is_ascii_digit()));
            if !fits {
                let at = self.place(key.span);
                self.say(Diagnostic::malformed(at, status, "a status (`502`, `5xx`)"));
            }
            let outcome = match value.as_text().map(|text| &**text) {
                Some("done") => HttpOutcome::Done,
                Some("not_performed") => HttpOutcome::NotPerformed,
                _ => HttpOutcome::Unknown,
            };
            outcomes.insert(status.to_string(), outcome);
        }
        Http {
            url: self
                .text_of(node, "url", scope)
                .unwrap_or_else(|| Template::plain("")),
            method: method.unwrap_or_else(|| if body { "POST" } else { "GET" }.to_owned()),
            query: node
                .get("query")
                .map(|node| self.data(node, &Wants::Value, scope)),
            headers: self.texts(node.get("headers"), scope),
            json: node
                .get("json")
                .map(|node| self.data(node, &Wants::Value, scope)),
            form: node
                .get("form")
                .map(|node| self.data(node, &Wants::Value, scope)),
            file: self.text_of(node, "file", scope),
            save: self.text_of(node, "save", scope),
            key_header: text(node, "key_header").unwrap_or_else(|| "Idempotency-Key".to_owned()),
            outcomes,
            rate: text(node, "rate").and_then(|text| Rate::parse(&text)),
        }
    }

    pub(super) fn texts(&mut self, node: Option<&Node>, scope: &Scope) -> Vec<(String, Template)> {
        sorted(node)
            .into_iter()
            .filter_map(|(key, node)| {
                let template = self.template(node, Wants::Text, scope)?;
                Some((key.name.to_string(), template))
            })
            .collect()
    }

    /// Lowers `requires`: `EXPR`, `{ that, else }`, or a list of both.
    pub(super) fn requires(&mut self, node: Option<&Node>, scope: &Scope) -> Vec<Requires> {
        let Some(node) = node else {
            return Vec::new();
        };
        let nodes = if node.items().is_empty() {
            std::slice::from_ref(node)
        } else {
            node.items()
        };
        nodes
            .iter()
            .filter_map(|node| {
                let that = node.get("that").unwrap_or(node);
                Some(Requires {
                    that: self.expr(that, Wants::Condition, scope)?,
                    otherwise: self.text_of(node, "else", scope),
                })
            })
            .collect()
    }

    /// Records the place of `approve`. The checks see later if calls of this item can be held for an approval.
    pub(super) fn approves(&mut self, node: &Node, of: &Name) {
        let mut entries = node.entries().iter();
        if let Some((key, _)) = entries.find(|(key, _)| &*key.name == "approve") {
            self.out.approves.push((of.clone(), key.span));
        }
    }

    /// Lowers `approve`: `EXPR` or the long form.
    pub(super) fn approve(&mut self, node: Option<&Node>, scope: &Scope) -> Vec<Approve> {
        let Some(node) = node else {
            return Vec::new();
        };
        let long = node.scalar().is_none();
        let when = if long { node.get("when") } else { Some(node) };
        let Some(when) = self.condition(when, scope) else {
            return Vec::new();
        };
        if &*when.source == "false" {
            return Vec::new();
        }
        let approve = self.approver(node, when, None, scope);
        let mut asked: Vec<&Name> = Vec::new();
        for in_line in approve.line() {
            if asked.contains(&&in_line.by) {
                let at = self.place(node.span);
                self.say(Diagnostic::asked_twice(at, &in_line.by));
                break;
            }
            asked.push(&in_line.by);
        }
        vec![approve]
    }

    /// Lowers one approver of the line. `before` is the approver asked earlier; its question and its shown arguments are the
    /// defaults. The arguments that an approver may edit are never inherited.
    fn approver(
        &mut self,
        node: &Node,
        when: Expr,
        before: Option<&Approve>,
        scope: &Scope,
    ) -> Approve {
        let by = node.get("by");
        let user = by.is_none_or(|by| by.as_text().is_some_and(|name| &**name == "user"));
        if user {
            self.out.by_user.push(by.unwrap_or(node).span);
        }
        let by = by.and_then(|by| self.person(by));
        let by = by.unwrap_or_else(|| "user".into());
        let (mut show, mut edit) = (Vec::new(), Vec::new());
        for item in node.get("show").map(Node::items).unwrap_or_default() {
            show.extend(self.shown_argument(item, scope));
        }
        for item in node.get("edit").map(Node::items).unwrap_or_default() {
            edit.extend(self.argument(item, scope));
        }
        let next = node
            .get("on_timeout")
            .filter(|next| next.scalar().is_none());
        if let Some((key, _)) = next.and_then(|next| {
            let mut entries = next.entries().iter();
            entries.find(|(key, _)| &*key.name == "when")
        }) {
            let at = self.place(key.span);
            self.say(Diagnostic::type_key(at, "when", "the next in line"));
        }
        let ask = self.text_of(node, "ask", scope);
        if let Some(before) = before.filter(|_| node.get("show").is_none()) {
            show.clone_from(&before.show);
        }
        let mut approve = Approve {
            by,
            ask: ask.or_else(|| before?.ask.clone()),
            show,
            edit,
            timeout: duration(node, "timeout"),
            on_timeout: OnTimeout::Reject,
            when,
        };
        approve.on_timeout = match (next, word(node, "on_timeout")) {
            (Some(next), _) => {
                let when = approve.when.clone();
                OnTimeout::Next(Box::new(self.approver(next, when, Some(&approve), scope)))
            }
            (None, Some("approve")) => OnTimeout::Approve,
            (None, _) => OnTimeout::Reject,
        };
        approve
    }

    /// Returns true if a person's `reach` names this tool.
    fn reaches(&self, tool: &str) -> bool {
        let agents = self.merged.section("agents");
        agents.iter().any(|(_, agent)| {
            let reach = agent.get("person").and_then(|person| person.get("reach"));
            reach.is_some_and(|reach| reach.as_text().is_some_and(|name| **name == *tool))
        })
    }

    /// Returns the name of a parameter to show: of the tool, or of any agent, since one of these may be above the call.
    fn shown_argument(&mut self, node: &Node, scope: &Scope) -> Option<Name> {
        let name = node.as_text()?.clone();
        let agents = self.merged.section("agents");
        let of_agent = agents.iter().any(|(_, agent)| {
            let parameters = agent.get("parameters");
            parameters.is_some_and(|parameters| parameters.get(&name).is_some())
        });
        if of_agent {
            return Some(name);
        }
        self.argument(node, scope)
    }

    /// Returns the name in a node if it is a parameter of the scope's tool; otherwise reports it.
    fn argument(&mut self, node: &Node, scope: &Scope) -> Option<Name> {
        let name = node.as_text()?.clone();
        let Args::Tool(tool) = &scope.args else {
            return Some(name);
        };
        let merged = self.merged;
        let tool = tool.clone();
        let tools = merged.section("tools");
        let parameters = tools
            .iter()
            .find(|(key, _)| key.name == tool)
            .and_then(|(_, node)| node.get("parameters"))?;
        if parameters.scalar().is_some() || parameters.get(&name).is_some() {
            return Some(name);
        }
        let known = parameters.entries().iter().map(|(key, _)| &*key.name);
        let near = self.sources.near(&name, known).map(str::to_owned);
        let at = self.place(node.span);
        self.say(Diagnostic::unknown_argument(
            at,
            &tool,
            &name,
            near.as_deref(),
        ));
        None
    }

    fn on_error(
        &mut self,
        tool: &Name,
        node: Option<&Node>,
        scope: &Scope,
    ) -> BTreeMap<String, OnError> {
        let scope = scope.with_error();
        let mut all = BTreeMap::new();
        for (key, node) in sorted(node) {
            let status = key.name.strip_prefix("http_").unwrap_or_default();
            let http = status.len() == 3
                && matches!(status.as_bytes()[0], b'1'..=b'5')
                && (status.ends_with("xx") || status.bytes().all(|c| c.is_ascii_digit()));
            if !http && !CODES.contains(&&*key.name) {
                let at = self.place(key.span);
                let words = shape::list_of(CODES.into_iter().chain(["http_404", "http_4xx"]));
                let near = self.sources.near(&key.name, CODES);
                self.say(Diagnostic::unknown_word(at, &key.name, &words, near));
            }
            let entry = OnError {
                set: self.set(tool, node.get("set"), &scope),
                result: self.text_of(node, "result", &scope),
                then: self.then(node.get("then"), &scope),
            };
            all.insert(key.name.to_string(), entry);
        }
        all
    }

    fn on_doubt(&mut self, node: Option<&Node>, scope: &Scope) -> Option<OnDoubt> {
        let node = node?;
        match node.as_text().map(|text| &**text) {
            Some("ask") => return Some(OnDoubt::Ask { by: Vec::new() }),
            Some("fail") => return Some(OnDoubt::Fail),
            _ => {}
        }
        let by = node.get("by");
        let listed = by.map_or(&[][..], |by| match by.items() {
            [] => std::slice::from_ref(by),
            items => items,
        });
        let by: Vec<Name> = listed
            .iter()
            .filter_map(|by| self.doubt_asker(by))
            .collect();
        let of_probe = ["args", "done", "else"];
        let Some(probe) = node.get("probe") else {
            let wants = if of_probe.iter().any(|key| node.get(key).is_some()) {
                "probe"
            } else {
                "by"
            };
            if by.is_empty() && listed.is_empty() || wants == "probe" {
                let at = self.place(node.span);
                self.say(Diagnostic::missing_key(at, "a way out of doubt", wants));
            }
            return Some(OnDoubt::Ask { by });
        };
        if node.get("done").is_none() {
            let at = self.place(node.span);
            self.say(Diagnostic::missing_key(at, "a way out of doubt", "done"));
        }
        let probe = self.named(probe, Sort::Tool)?;
        let args = self.named_data(node.get("args"), scope);
        self.arguments_fit(node.get("args"), node.get("probe"), &probe, Sort::Tool, &[]);
        let done = self.expr(node.get("done")?, Wants::Condition, &scope.with_result())?;
        let otherwise = match word(node, "else") {
            Some("not_performed") => ProbeElse::NotPerformed,
            Some("fail") => ProbeElse::Fail,
            _ => ProbeElse::Ask,
        };
        Some(OnDoubt::Probe {
            probe,
            args,
            done,
            otherwise,
            by,
        })
    }

    /// Returns the name of a person, `user` or `any`.
    fn doubt_asker(&mut self, node: &Node) -> Option<Name> {
        match node.as_text() {
            Some(name) if &**name == ANYBODY => Some(name.clone()),
            _ => self.person(node),
        }
    }

    /// Lowers `then`, the tool that follows a tool.
    pub(super) fn then(&mut self, node: Option<&Node>, scope: &Scope) -> Option<Then> {
        let node = node?;
        let tool = self.named(node.get("tool").unwrap_or(node), Sort::Tool)?;
        let args = node
            .get("args")
            .map(|args| self.named_data(Some(args), scope));
        if let Some(args) = node.get("args") {
            self.arguments_fit(Some(args), node.get("tool"), &tool, Sort::Tool, &[]);
        }
        Some(Then { tool, args })
    }

    fn wait(&mut self, node: &Node, scope: &Scope) -> Wait {
        let on = self.wait_on(node, scope).unwrap_or(WaitOn::Any(Vec::new()));
        Wait {
            on,
            timeout: duration(node, "timeout"),
            on_timeout: self.text_of(node, "on_timeout", scope),
        }
    }

    /// Reports a key that has a meaning only together with one of `others`.
    pub(super) fn needs(&mut self, node: &Node, key: &str, others: &[&str], of: &str) {
        let written = node.entries().iter().find(|(name, _)| &*name.name == key);
        if let Some((key, _)) = written
            && !others.iter().any(|other| is_meant(node, other))
        {
            let at = self.place(key.span);
            self.say(Diagnostic::type_key(at, &key.name, of));
        }
    }

    fn wait_on(&mut self, node: &Node, scope: &Scope) -> Option<WaitOn> {
        self.needs(node, "match", &["event"], "a wait without `event`");
        if let Some(event) = node.get("event") {
            return self.wait_for_event(node, event, scope);
        }
        if let Some(time) = node.get("time") {
            return Some(WaitOn::Time(self.template(time, Wants::Text, scope)?));
        }
        if let Some(until) = node.get("until") {
            return Some(WaitOn::Until(self.template(until, Wants::Text, scope)?));
        }
        if let Some(branches) = node.get("branches") {
            return Some(WaitOn::Branches(match branches.as_text().map(|t| &**t) {
                Some("all") => None,
                Some("any") => Some(1),
                _ => super::whole(branches).and_then(|value| u32::try_from(value).ok()),
            }));
        }
        if let Some(ticks) = node.get("ticks") {
            return Some(WaitOn::Ticks(super::whole(ticks)?));
        }
        for (key, any) in [("any", true), ("all", false)] {
            if let Some(several) = node.get(key) {
                let several: Vec<Wait> = several
                    .items()
                    .iter()
                    .map(|node| self.wait(node, scope))
                    .collect();
                return Some(if any {
                    WaitOn::Any(several)
                } else {
                    WaitOn::All(several)
                });
            }
        }
        if let Some(when) = node.get("when") {
            return Some(WaitOn::When(self.expr(when, Wants::Condition, scope)?));
        }
        let at = self.place(node.span);
        let keys = "`event`, `time`, `until`, `branches`, `ticks`, `when`, `any`, `all`";
        self.say(Diagnostic::none_of(at, "a wait", keys));
        None
    }

    fn wait_for_event(&mut self, node: &Node, event: &Node, scope: &Scope) -> Option<WaitOn> {
        let name = event.as_text()?.clone();
        let merged = self.merged;
        let events = merged.section("events");
        let Some((_, declared)) = events.iter().find(|(key, _)| key.name == name) else {
            let near = self
                .sources
                .near(&name, events.iter().map(|(key, _)| &*key.name));
            let at = self.place(event.span);
            self.say(Diagnostic::unknown_name(at, "event", &name, near));
            return None;
        };
        if node.get("match").is_none() && declared.get("session").is_none() {
            let at = self.place(event.span);
            self.say(Diagnostic::missing_key(at, "a wait for an event", "match"));
        }
        let fields = declared
            .get("fields")
            .map(Node::entries)
            .unwrap_or_default();
        let mut matching = Vec::new();
        for (key, value) in sorted(node.get("match")) {
            if !fields.iter().any(|(field, _)| field.name == key.name) {
                let known = || fields.iter().map(|(field, _)| &*field.name);
                let near = self.sources.near(&key.name, known());
                let at = self.place(key.span);
                let known = shape::list_of(known());
                let of = format!("events.{name}");
                self.say(Diagnostic::unknown_field(at, &of, &key.name, near, &known));
            }
            if let Some(template) = self.template(value, Wants::Text, scope) {
                matching.push((key.name.clone(), template));
            }
        }
        let inner = Scope {
            event: Some(name.clone()),
            ..scope.clone()
        };
        let when = node
            .get("when")
            .and_then(|when| self.expr(when, Wants::Condition, &inner));
        Some(WaitOn::Event {
            event: name,
            matching,
            when,
        })
    }

    /// Reports arguments that a tool or agent does not have, and required ones that are missing. Parameters in `open` may be
    /// missing.
    pub(super) fn arguments_fit(
        &mut self,
        args: Option<&Node>,
        at: Option<&Node>,
        of: &Name,
        sort: Sort,
        open: &[&str],
    ) {
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
        let Some((_, item)) = item else {
            return;
        };
        let message = [("message".into(), plain_text())];
        let declared: Vec<(Name, Option<&Node>)> = match item.get("parameters") {
            Some(node) if node.scalar().is_some() => return,
            Some(node) => node
                .entries()
                .iter()
                .map(|(key, node)| (key.name.clone(), Some(node)))
                .collect(),
            None if sort == Sort::Tool && item.get("ask").is_some() => {
                vec![("question".into(), None)]
            }
            None if sort == Sort::Tool && item.get("send").is_some() => {
                vec![("message".into(), None)]
            }
            None if sort == Sort::Tool => Vec::new(),
            None if item.get("run").is_some() => return,
            None => message
                .iter()
                .map(|(name, _): &(Name, _)| (name.clone(), None))
                .collect(),
        };
        for (key, value) in args.map(Node::entries).unwrap_or_default() {
            let argument = (of.clone(), key.name.clone(), value.clone());
            self.out.arguments.push(argument);
            if !declared.iter().any(|(name, _)| *name == key.name) {
                let near = self
                    .sources
                    .near(&key.name, declared.iter().map(|(name, _)| &**name))
                    .map(str::to_owned);
                let at = self.place(key.span);
                self.say(Diagnostic::unknown_argument(
                    at,
                    of,
                    &key.name,
                    near.as_deref(),
                ));
            }
        }
        for (name, node) in &declared {
            let given =
                args.is_some_and(|args| args.get(name).is_some()) || open.contains(&&**name);
            let needed = node.is_none_or(|node| {
                let short = node.scalar().map(shape::short_type);
                !flag(node, "optional")
                    && node.get("default").is_none()
                    && node.get("ask").is_none()
                    && short.is_none_or(|(word, optional)| !optional && word != "secret")
            });
            if !given && needed && args.is_some() {
                let place = args.filter(|args| args.span.start < args.span.end).or(at);
                let at = place.and_then(|node| self.place(node.span));
                let declared = self.out.parameters.get(&(of.clone(), name.clone()));
                let declared = declared.and_then(|span| self.place(*span));
                self.say(Diagnostic::missing_argument(at, of, name, declared));
            }
        }
    }
}

/// Returns true if the key is present, or a near miss of it, which was reported already as an unknown key.
fn is_meant(node: &Node, key: &str) -> bool {
    let mut written = node.entries().iter();
    node.get(key).is_some()
        || written
            .any(|(name, _)| steersman_machine::values::near::near(&name.name, [key]).is_some())
}
