//! Lowers tools: their source, class, guards, approvals and results.

use super::super::diagnostic::Diagnostic;
use super::super::keys::LongType;
use super::super::keys::kinds::{self, Long, Many, Map, Or, Read, Valued, Words, each, sorted};
use super::super::keys::tool::{self as keys, AllOrAny, DoubtWord, Repeat, Silent, Verb};
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Kind, Node};
use super::values::{constant_misfit, plain_text};
use super::{Lower, Sort};
use crate::shape;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::network::{
    ANYBODY, Approve, Http, HttpOutcome, OnDoubt, OnError, OnTimeout, Requires, Save, Source, Then,
    ToolDef, Wait, WaitOn,
};
use steersman_machine::stored::codes::{self, Code};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::{Data, Expr, Template};
use steersman_machine::values::types::{Parameters, TypeKind};
use steersman_machine::view::artifact;

/// Returns the names that an entry of `on_error` may have, in addition to `http_NNN` and `http_Nxx`.
fn caught() -> Vec<&'static str> {
    let codes = Code::ALL.iter().filter(|code| code.may_be_caught_by_name());
    codes
        .flat_map(|code| {
            let wider = (*code == Code::Failed).then_some("*");
            [Some(code.text()), wider]
        })
        .flatten()
        .collect()
}

impl<'a> Lower<'a> {
    pub(super) fn tools(&mut self) -> BTreeMap<Name, ToolDef> {
        let tools = each(self.file.tools());
        tools
            .map(|(key, tool)| (key.name.clone(), self.tool(key, tool)))
            .collect()
    }

    fn tool(&mut self, key: &Key, tool: keys::Tool<'_>) -> ToolDef {
        let name = &key.name;
        let scope = Scope {
            item: Some(tool.0.span),
            args: Args::Tool(name.clone()),
            reach: self.reaches(name),
            ..Scope::default()
        };
        self.meaningful_keys(tool);
        let (source, default) = self.tool_source(tool, &scope);
        let effect = tool.effect().and_then(Valued::value).unwrap_or(default);
        if let (Source::Http(http), None) = (&source, tool.effect()) {
            let at = self.place(key.span);
            if http.method == "GET" {
                self.say(Diagnostic::no_effect_class(at, name, true));
            }
        }
        let parameters = if let Some(written) = tool.parameters() {
            self.parameters(name, written, &scope)
        } else {
            let wanted = wanted_argument(tool).into_iter();
            Parameters::Fields(wanted.map(|name| (name.into(), plain_text())).collect())
        };
        self.has_wanted_argument(key, tool, &parameters);
        self.approves(tool.0, name);
        let with_result = scope.with_result();
        let simulate = tool.simulate();
        // an unsafe tool is judged before it runs, when it has no result yet
        let judged = if effect == Class::Unsafe {
            &scope
        } else {
            &with_result
        };
        ToolDef {
            name: name.clone(),
            description: tool
                .description()
                .and_then(Valued::value)
                .unwrap_or_default(),
            effect,
            requires: self.requires(tool.requires(), &scope),
            approve: self.approve(tool.approve(), &scope),
            set: self.set(name, tool.set(), &with_result),
            result: self.text_of(tool.result(), &with_result),
            on_error: self.on_error(name, tool.on_error(), &scope),
            on_doubt: self.on_doubt(tool.on_doubt(), &scope),
            simulate: simulate.map(|data| self.data(&data, &Wants::Value, &scope)),
            repeat_allowed: tool.repeat().value == Repeat::Allow,
            then: self.then(tool.then(), &with_result),
            mode: self.text_of(tool.mode(), &with_result),
            render: self.render(tool.render(), &with_result, Some((name, &parameters))),
            timeout: tool.timeout().value,
            retry: tool.retry().value,
            parallel: tool.parallel().value,
            reflect: self.reflect(tool.reflect(), judged),
            parameters,
            source,
        }
    }

    /// Returns the source of a tool, and its class if none is written.
    fn tool_source(&mut self, tool: keys::Tool<'_>, scope: &Scope) -> (Source, Class) {
        if let Some(http) = tool.http() {
            let http = self.http(http, &scope.transported());
            return (Source::Http(Box::new(http)), Class::Unsafe);
        }
        if let Some(command) = tool.command() {
            let save = tool.save().and_then(|save| self.save(save, scope));
            let scope = Scope {
                save: tool.save().is_some(),
                ..scope.clone()
            };
            let argv = command
                .into_iter()
                .filter_map(|text| self.template(&text, Wants::Text, &scope))
                .collect();
            let env = self.texts(tool.env(), &scope.transported());
            return (Source::Command { argv, env, save }, Class::Unsafe);
        }
        if let Some(version) = tool.native() {
            let version = version.node().as_text().map(ToString::to_string);
            let version = version.unwrap_or_default();
            return (Source::Native { version }, Class::Unsafe);
        }
        if let Some(wait) = tool.wait() {
            let wait = self.wait(wait, scope);
            return (Source::Wait(wait), Class::Pure);
        }
        if let Some(person) = tool.ask() {
            if person.text().is_some_and(|name| &**name == "user") {
                self.out.by_user.push(person.span);
            }
            let person = self.person(&person).unwrap_or_else(|| "user".into());
            return (Source::Ask(person), Class::Pure);
        }
        if let Some(agent) = tool.send() {
            // nothing outside the session changes, and a message of a commit is sent once
            let agent = self.named(&agent, Sort::Agent).unwrap_or_else(|| "".into());
            return (Source::Send(agent), Class::Pure);
        }
        (Source::State, Class::Pure)
    }

    /// Reports `ask` without a parameter `question`, and `send` without `message`.
    fn has_wanted_argument(&mut self, key: &Key, tool: keys::Tool<'_>, parameters: &Parameters) {
        let (Parameters::Fields(fields), Some(wanted)) = (parameters, wanted_argument(tool)) else {
            return;
        };
        if !fields.iter().any(|(name, _)| &**name == wanted) {
            let at = self.place(key.span);
            self.say(Diagnostic::missing_argument(at, &key.name, wanted, None));
        }
    }

    fn http(&mut self, http: keys::Http<'_>, scope: &Scope) -> Http {
        let body = http.json().is_some() || http.form().is_some() || http.file().is_some();
        let usual = if body { Verb::Post } else { Verb::Get };
        let mut outcomes = BTreeMap::new();
        for (key, outcome) in each(http.outcomes()) {
            let status = &key.name;
            if !codes::is_status(status) {
                let at = self.place(key.span);
                self.say(Diagnostic::malformed(at, status, "a status (`502`, `5xx`)"));
            }
            let outcome = outcome.value().unwrap_or(HttpOutcome::Unknown);
            outcomes.insert(status.to_string(), outcome);
        }
        let mut data = |node: Option<&Node>| {
            let node = node?;
            Some(self.data(node, &Wants::Value, scope))
        };
        let query = data(http.query().map(Read::node));
        let json = data(http.json().map(|json| json.0));
        let form = data(http.form().map(|form| form.0));
        Http {
            url: self
                .text_of(http.url(), scope)
                .unwrap_or_else(|| Template::plain("")),
            // a word that is not a method was reported already
            method: match http.method().and_then(|method| method.node().as_text()) {
                Some(method) => method.to_string(),
                None => usual.word().to_owned(),
            },
            query,
            headers: self.texts(http.headers(), scope),
            json,
            form,
            file: self.text_of(http.file(), scope),
            save: self.text_of(http.save(), scope),
            key_header: http.key_header().value,
            outcomes,
            rate: http.rate().and_then(kinds::Rate::rate),
        }
    }

    /// Lowers `save` of a command.
    fn save(&mut self, save: keys::Save<'_>, scope: &Scope) -> Option<Box<Save>> {
        let name = self.text_of(save.name(), scope);
        let known = name.as_ref().and_then(Template::text);
        if let Some((at, why)) = save.name().zip(known.and_then(artifact::misnamed)) {
            let at = self.place(at.node().span);
            self.say(Diagnostic::misnamed(at, &why));
        }
        let media = save.media().and_then(Valued::value);
        let wrong = media.as_ref().filter(|media| !artifact::is_media(media));
        if let Some((at, wrong)) = save.media().zip(wrong) {
            let at = self.place(at.node().span);
            let wanted = "a media type: `application/pdf`, `text/csv`";
            self.say(Diagnostic::malformed(at, wrong, wanted));
        }
        Some(Box::new(Save { name: name?, media }))
    }

    pub(super) fn texts(
        &mut self,
        written: Option<Map<'_, kinds::Template<'_>>>,
        scope: &Scope,
    ) -> Vec<(String, Template)> {
        let texts = sorted(written).into_iter();
        texts
            .filter_map(|(key, text)| {
                let template = self.template(&text, Wants::Text, scope)?;
                Some((key.name.to_string(), template))
            })
            .collect()
    }

    /// Lowers `requires`: `EXPR`, `{ that, else }`, or a list of both.
    pub(super) fn requires(
        &mut self,
        written: Option<Many<'_, keys::Requires<'_>>>,
        scope: &Scope,
    ) -> Vec<Requires> {
        each(written)
            .filter_map(|requires| {
                Some(Requires {
                    that: self.when(requires.that(), scope)?,
                    otherwise: self.text_of(requires.otherwise(), scope),
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
    pub(super) fn approve(
        &mut self,
        written: Option<keys::Approve<'_>>,
        scope: &Scope,
    ) -> Vec<Approve> {
        let Some(written) = written else {
            return Vec::new();
        };
        let Some(when) = self.condition(written.when(), scope) else {
            return Vec::new();
        };
        if &*when.source == "false" {
            return Vec::new();
        }
        let approve = self.approver(written, when, None, scope);
        let mut asked: Vec<&Name> = Vec::new();
        for approver in approve.line() {
            if asked.contains(&&approver.by) {
                let at = self.place(written.0.span);
                self.say(Diagnostic::asked_twice(at, &approver.by));
                break;
            }
            asked.push(&approver.by);
        }
        vec![approve]
    }

    /// Lowers one approver of the chain that `on_timeout` makes. `before` is the approver asked earlier; its question and its shown
    /// arguments are the defaults. The arguments that an approver may edit are never inherited.
    fn approver(
        &mut self,
        written: keys::Approve<'_>,
        when: Expr,
        before: Option<&Approve>,
        scope: &Scope,
    ) -> Approve {
        let by = written.by();
        if by.is_none_or(|by| by.text().is_some_and(|name| &**name == "user")) {
            let span = by.map_or(written.0, |by| by.0).span;
            self.out.by_user.push(span);
        }
        let by = by.and_then(|by| self.person(&by));
        let by = by.unwrap_or_else(|| "user".into());
        let (mut show, mut edit) = (Vec::new(), Vec::new());
        for item in each(written.show()) {
            show.extend(self.shown_argument(item, scope));
        }
        for item in each(written.edit()) {
            edit.extend(self.argument(item, scope));
        }
        let on_timeout = written.on_timeout();
        if let Some(Or::Other(Long(next))) = on_timeout {
            self.meaningless(next, "when", "the next in line");
        }
        let ask = self.text_of(written.ask(), scope);
        if let Some(before) = before.filter(|_| written.show().is_none()) {
            show.clone_from(&before.show);
        }
        let mut approve = Approve {
            by,
            ask: ask.or_else(|| before?.ask.clone()),
            show,
            edit,
            timeout: written.timeout().and_then(Valued::value),
            on_timeout: OnTimeout::Reject,
            when,
        };
        approve.on_timeout = match on_timeout {
            Some(Or::Other(Long(next))) => {
                let when = approve.when.clone();
                OnTimeout::Next(Box::new(self.approver(next, when, Some(&approve), scope)))
            }
            Some(Or::One(word)) if word.value() == Some(Silent::Approve) => OnTimeout::Approve,
            Some(Or::One(_)) | None => OnTimeout::Reject,
        };
        approve
    }

    /// Returns true if a person's `reach` names this tool.
    fn reaches(&self, tool: &str) -> bool {
        let people = each(self.file.agents()).filter_map(|(_, agent)| agent.person());
        let mut named = people.filter_map(|person| person.reach()?.text());
        named.any(|name| **name == *tool)
    }

    /// Returns the name of a parameter to show: of the tool, or of any agent, because any agent may be an ancestor of the caller.
    fn shown_argument(&mut self, item: kinds::Name<'_>, scope: &Scope) -> Option<Name> {
        let name = item.text()?;
        let mut parameters = each(self.file.agents()).filter_map(|(_, agent)| agent.parameters());
        if parameters.any(|parameters| parameters.get(name).is_some()) {
            return Some(name.clone());
        }
        self.argument(item, scope)
    }

    /// Returns the name in a node if it is a parameter of the scope's tool; otherwise reports it.
    fn argument(&mut self, item: kinds::Name<'_>, scope: &Scope) -> Option<Name> {
        let name = item.text()?;
        let Args::Tool(tool) = &scope.args else {
            return Some(name.clone());
        };
        let parameters = self.written_parameters(tool, Sort::Tool)?;
        if parameters.scalar().is_some() || parameters.get(name).is_some() {
            return Some(name.clone());
        }
        let known = parameters.entries().iter().map(|(key, _)| &*key.name);
        let near = self.sources.near(name, known).map(str::to_owned);
        let at = self.place(item.span);
        let near = near.as_deref();
        self.say(Diagnostic::unknown_argument(at, tool, name, near));
        None
    }

    /// Returns the parameters of a tool or agent as they are written.
    pub(super) fn written_parameters(&self, of: &str, sort: Sort) -> Option<&'a Node> {
        match sort {
            Sort::Tool => Some(self.file.tool(of)?.parameters()?.node()),
            Sort::Agent | Sort::Person => Some(self.file.agent(of)?.parameters()?.0),
        }
    }

    fn on_error(
        &mut self,
        tool: &Name,
        written: Option<Map<'_, keys::OnError<'_>>>,
        scope: &Scope,
    ) -> BTreeMap<String, OnError> {
        let scope = scope.with_error();
        let mut all = BTreeMap::new();
        for (key, on_error) in sorted(written) {
            let known = caught();
            if !codes::is_http(&key.name) && !known.contains(&&*key.name) {
                let at = self.place(key.span);
                let http = ["http_404", "http_4xx"];
                let words = shape::list_of(known.iter().copied().chain(http));
                let near = self.sources.near(&key.name, known);
                self.say(Diagnostic::unknown_word(at, &key.name, &words, near));
            }
            let entry = OnError {
                set: self.set(tool, on_error.set(), &scope),
                result: self.text_of(on_error.result(), &scope),
                then: self.then(on_error.then(), &scope),
            };
            all.insert(key.name.to_string(), entry);
        }
        all
    }

    fn on_doubt(
        &mut self,
        written: Option<Or<kinds::Word<'_, DoubtWord>, keys::Doubt<'_>>>,
        scope: &Scope,
    ) -> Option<OnDoubt> {
        let doubt = match written? {
            Or::Other(doubt) => doubt,
            Or::One(word) => match word.value() {
                Some(DoubtWord::Ask) => return Some(OnDoubt::Ask { by: Vec::new() }),
                Some(DoubtWord::Fail) => return Some(OnDoubt::Fail),
                None => keys::Doubt(word.0),
            },
        };
        let by: Vec<Name> = each(doubt.by())
            .filter_map(|by| self.doubt_asker(by))
            .collect();
        let Some(probe) = doubt.probe() else {
            let otherwise = doubt.otherwise().at.is_some();
            let of_probe = doubt.args().is_some() || doubt.done().is_some() || otherwise;
            if of_probe || doubt.by().is_none() {
                let wants = if of_probe { "probe" } else { "by" };
                let at = self.place(doubt.0.span);
                self.say(Diagnostic::missing_key(at, "a way out of doubt", wants));
            }
            return Some(OnDoubt::Ask { by });
        };
        if doubt.done().is_none() {
            let at = self.place(doubt.0.span);
            self.say(Diagnostic::missing_key(at, "a way out of doubt", "done"));
        }
        let tool = self.named(&probe, Sort::Tool)?;
        let args = self.named_data(doubt.args(), scope);
        self.arguments_fit(doubt.args(), Some(&probe), &tool, Sort::Tool, &[]);
        Some(OnDoubt::Probe {
            probe: tool,
            args,
            done: self.when(doubt.done(), &scope.with_result())?,
            otherwise: doubt.otherwise().value,
            by,
        })
    }

    /// Returns the name of a person, `user` or `any`.
    fn doubt_asker(&mut self, written: kinds::Name<'_>) -> Option<Name> {
        match written.text() {
            Some(name) if &**name == ANYBODY => Some(name.clone()),
            _ => self.person(&written),
        }
    }

    /// Lowers `then`, the tool that follows a tool.
    pub(super) fn then(&mut self, written: Option<keys::Then<'_>>, scope: &Scope) -> Option<Then> {
        let then = written?;
        let named = then.tool()?;
        let tool = self.named(&named, Sort::Tool)?;
        let args = then.args().map(|args| self.named_data(Some(args), scope));
        if then.args().is_some() {
            self.arguments_fit(then.args(), Some(&named), &tool, Sort::Tool, &[]);
        }
        Some(Then { tool, args })
    }

    fn wait(&mut self, wait: keys::Wait<'_>, scope: &Scope) -> Wait {
        let on = self.wait_on(wait, scope).unwrap_or(WaitOn::Any(Vec::new()));
        Wait {
            on,
            timeout: wait.timeout().and_then(Valued::value),
            on_timeout: self.text_of(wait.on_timeout(), scope),
        }
    }

    fn wait_on(&mut self, wait: keys::Wait<'_>, scope: &Scope) -> Option<WaitOn> {
        self.meaningful_keys(wait);
        if let Some(event) = wait.event() {
            return self.wait_for_event(wait, event, scope);
        }
        if let Some(time) = wait.time() {
            return Some(WaitOn::Time(self.template(
                time.node(),
                Wants::Text,
                scope,
            )?));
        }
        if let Some(until) = wait.until() {
            return Some(WaitOn::Until(self.template(&until, Wants::Text, scope)?));
        }
        if let Some(branches) = wait.branches() {
            return Some(WaitOn::Branches(match branches {
                Or::One(count) => count.value().and_then(|count| u32::try_from(count).ok()),
                Or::Other(word) => match word.value() {
                    Some(AllOrAny::Any) => Some(1),
                    Some(AllOrAny::All) | None => None,
                },
            }));
        }
        if let Some(ticks) = wait.ticks() {
            return Some(WaitOn::Ticks(ticks.value()?));
        }
        if let Some(any) = wait.any() {
            let any = any.into_iter().map(|wait| self.wait(wait, scope));
            return Some(WaitOn::Any(any.collect()));
        }
        if let Some(all) = wait.all() {
            let all = all.into_iter().map(|wait| self.wait(wait, scope));
            return Some(WaitOn::All(all.collect()));
        }
        if wait.when().is_some() {
            return self.when(wait.when(), scope).map(WaitOn::When);
        }
        let at = self.place(wait.0.span);
        let keys = "`event`, `time`, `until`, `branches`, `ticks`, `when`, `any`, `all`";
        self.say(Diagnostic::none_of(at, "a wait", keys));
        None
    }

    fn wait_for_event(
        &mut self,
        wait: keys::Wait<'_>,
        event: kinds::Name<'_>,
        scope: &Scope,
    ) -> Option<WaitOn> {
        let name = event.text()?.clone();
        let events = self.file.events();
        let Some(declared) = events.and_then(|events| events.get(&name)) else {
            let known = each(events).map(|(key, _)| &*key.name);
            let near = self.sources.near(&name, known);
            let at = self.place(event.span);
            self.say(Diagnostic::unknown_name(at, "event", &name, near));
            return None;
        };
        if wait.matching().is_none() && declared.session().is_none() {
            let at = self.place(event.span);
            self.say(Diagnostic::missing_key(at, "a wait for an event", "match"));
        }
        let fields = declared.fields();
        let mut matching = Vec::new();
        for (key, value) in sorted(wait.matching()) {
            let known = || each(fields).map(|(field, _)| &*field.name);
            if !known().any(|field| *field == *key.name) {
                let near = self.sources.near(&key.name, known());
                let at = self.place(key.span);
                let known = shape::list_of(known());
                let of = format!("events.{name}");
                self.say(Diagnostic::unknown_field(at, &of, &key.name, near, &known));
            }
            let data = self.matched(&name, &key.name, &value, scope);
            matching.push((key.name.clone(), data));
        }
        let inner = Scope {
            event: Some(name.clone()),
            ..scope.clone()
        };
        Some(WaitOn::Event {
            event: name,
            matching,
            when: self.when(wait.when(), &inner),
        })
    }

    /// Lowers a value that a field of an event must have. A value that the field's type does not have is an error: the wait would
    /// never end.
    fn matched(&mut self, event: &str, field: &Name, value: &Node, scope: &Scope) -> Data {
        let Some((ty, declared)) = self.event_type(event, field, scope) else {
            return self.data(value, &Wants::Value, scope);
        };
        let what = format!("event.{field}");
        if matches!(ty.kind, TypeKind::Secret | TypeKind::Artifact) {
            let (at, declared) = (self.place(value.span), self.place(declared));
            let message = format!("`{what}` cannot be compared: secrets and artifacts are handles");
            self.say(Diagnostic::misfit(at, &message, declared));
        } else if let (TypeKind::String { .. }, Some(scalar)) = (&ty.kind, value.scalar())
            && scalar.kind != Kind::Text
            && scalar.kind != Kind::Null
        {
            // A number that is written without quotes is the text that it reads as.
            return Data::Plain(Json::from(&*scalar.text));
        } else if let Some(misfit) = constant_misfit(&ty, value) {
            let (at, declared) = (self.place(value.span), self.place(declared));
            let misfit = misfit.under(&what);
            self.say(Diagnostic::misfit(at, &misfit.to_string(), declared));
        }
        self.data(value, &Wants::Fits(Box::new(ty), what, declared), scope)
    }

    /// Reports arguments that a tool or agent does not have, and required ones that are missing. Parameters in `open` may be
    /// missing.
    pub(super) fn arguments_fit(
        &mut self,
        args: Option<Map<'_, kinds::Data<'_>>>,
        at: Option<&Node>,
        of: &Name,
        sort: Sort,
        open: &[&str],
    ) {
        let Some(declared) = self.declared_parameters(of, sort) else {
            return;
        };
        for (key, value) in each(args) {
            let argument = (of.clone(), key.name.clone(), value.0.clone());
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
        let Some(args) = args else {
            return;
        };
        for (name, ty) in &declared {
            let given = args.get(name).is_some() || open.contains(&&**name);
            if !given && ty.is_none_or(is_needed) {
                let has_place = args.0.span.start < args.0.span.end;
                let place = Some(args.0).filter(|_| has_place).or(at);
                let at = place.and_then(|node| self.place(node.span));
                let declared = self.out.parameters.get(&(of.clone(), name.clone()));
                let declared = declared.and_then(|span| self.place(*span));
                self.say(Diagnostic::missing_argument(at, of, name, declared));
            }
        }
    }

    /// Returns the parameters without which a tool or agent cannot be called.
    pub(super) fn needed_parameters(&self, of: &Name, sort: Sort) -> Vec<Name> {
        let declared = self.declared_parameters(of, sort).into_iter().flatten();
        let needed = declared.filter(|(_, ty)| ty.is_none_or(is_needed));
        needed.map(|(name, _)| name).collect()
    }

    /// Returns the parameters of a tool or agent, each with its type if that is written. `None` if the definition does
    /// not list them.
    fn declared_parameters(&self, of: &Name, sort: Sort) -> Option<Vec<(Name, Option<&'a Node>)>> {
        let alone = |name: &str| Some(vec![(name.into(), None)]);
        let written = match sort {
            Sort::Tool => {
                let tool = self.file.tool(of)?;
                match tool.parameters() {
                    Some(Or::One(types)) => types,
                    Some(Or::Other(_)) => return None,
                    None => return wanted_argument(tool).map_or(Some(Vec::new()), alone),
                }
            }
            Sort::Agent | Sort::Person => {
                let agent = self.file.agent(of)?;
                match agent.parameters() {
                    Some(types) if types.0.scalar().is_some() => return None,
                    Some(types) => types,
                    None if agent.run().is_some() => return None,
                    None => return alone("message"),
                }
            }
        };
        let types = written.into_iter();
        Some(
            types
                .map(|(key, ty)| (key.name.clone(), Some(ty.0)))
                .collect(),
        )
    }
}

/// Returns the parameter that a tool must have because of its source. If it declares no parameters, this is its only one.
fn wanted_argument(tool: keys::Tool<'_>) -> Option<&'static str> {
    let question = tool.ask().map(|_| "question");
    question.or_else(|| tool.send().map(|_| "message"))
}

/// Returns true if a parameter of this type must be given.
fn is_needed(ty: &Node) -> bool {
    let short = ty.scalar().map(shape::short_type);
    let long = LongType(ty);
    !long.optional().value
        && long.default().is_none()
        && long.ask().is_none()
        && short.is_none_or(|(word, optional)| !optional && word != "secret")
}
