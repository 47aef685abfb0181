//! Lowers the settings of a file: config values, models, events, labels, outcome, entries.

use super::super::diagnostic::Diagnostic;
use super::super::foreign;
use super::super::keys::Section as _;
use super::super::keys::agent::{Agent, Person, PersonTimeout};
use super::super::keys::file::{self as keys, Counted, Plain, Recorded};
use super::super::keys::kinds::{self, List, Map, Or, Read as _, Valued, each};
use super::super::schedule;
use super::super::shape;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node, Span};
use super::values::{At, of_kind};
use super::{Lower, Sort};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::budget::{BudgetDef, BudgetOf};
use steersman_machine::network::hooks::HookDef;
use steersman_machine::network::schedule::{Rule, ScheduleDef, Times};
use steersman_machine::network::texts;
use steersman_machine::network::texts::{Sentence, Texts, Words};
use steersman_machine::network::{
    AgentDef, Config, EventDef, ModelDef, ModelRetry, Network, PersonDef, Provider, Record, Secret,
    SecretSource, Silence, StartDef, Takes,
};
use steersman_machine::stored::ids::{Digest, Name};
use steersman_machine::values::expression::{Expr, Template};
use steersman_machine::values::price::Price;
use steersman_machine::values::types::TypeKind;

/// Shortest time for which a session is kept after its end, in milliseconds.
const LEAST_KEPT: u64 = 60_000;

/// Labels that the engine gives a rerun. They decide what counts as work.
const OWN_LABELS: [&str; 2] = ["rerun_of", "rerun"];

impl Lower<'_> {
    /// Builds the whole network.
    pub(super) fn network(&mut self) -> Network {
        let main = &self.merged.main;
        let name = self.name();
        // an `agents` that cannot be read, and a key that stands for it, are reported already
        let meant = |(key, _): &(Key, Node)| {
            &*key.name == "agents"
                || foreign::key("File", &key.name).is_some_and(|(is, _)| is == Some("agents"))
        };
        if self.file.agents().is_none() && !main.entries().iter().any(meant) {
            let first = main.entries().first().map(|(key, _)| key.span);
            let at = self.place(first.unwrap_or(main.span));
            self.say(Diagnostic::no_agents(at));
        }
        let timezone = self.timezone();
        let config = self.config();
        let secrets = self.secrets();
        let models = self.models();
        let embeddings = self.embeddings();
        let memory = self.memory();
        let events = self.events();
        let schedules = self.schedules(&timezone);
        let keep = self.keep();
        let mcp = self.mcp();
        let tools = self.tools();
        let entry = self.entry();
        let (agents, people) = self.agents(&entry);
        let tools = self.with_built_in(tools);
        let hooks = self.hooks();
        let (labels, outcome) = self.labels_and_outcome(&entry, &events, &schedules);
        let budgets = self.budgets(&timezone, &labels);
        let texts = self.own_sentences();
        let limits = self.limits_of_session();
        let record = self.file.record();
        if let Some(node) = record.at.filter(|_| !record.value.is_empty()) {
            let at = self.place(node.span);
            self.say(Diagnostic::keeps_nothing(at));
        }
        let record = record.value;
        let record = Record {
            raw: record.contains(&Recorded::Raw),
            requests: record.contains(&Recorded::Requests),
        };
        self.out.grades = self.grades(&agents);
        self.out.tests = self.tests();
        let tools = self.with_remote(tools, &mcp);
        Network {
            name,
            description: self.file.description().and_then(Valued::value),
            digest: Digest([0; 16]),
            source: "".into(),
            timezone,
            config,
            secrets,
            models,
            events,
            schedules,
            keep,
            budgets,
            mcp,
            labels,
            texts,
            outcome,
            embeddings,
            memory,
            tools,
            agents,
            people,
            entry,
            leads: BTreeMap::new(),
            limits,
            record,
            hooks,
            natives: steersman_machine::network::nets::Natives::default(),
        }
    }

    fn name(&mut self) -> Name {
        let written = self.file.name();
        let Some((written, name)) = written.and_then(|of| Some((of, of.text()?))) else {
            return self.files.default_name().into();
        };
        let mut bytes = name.bytes();
        let fits = name.len() <= 64
            && bytes.next().is_some_and(|c| c.is_ascii_lowercase())
            && bytes
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-'));
        if !fits {
            let at = self.place(written.span);
            self.say(Diagnostic::malformed_name(at, name));
        }
        name.clone()
    }

    fn timezone(&mut self) -> String {
        let zone = self.file.timezone();
        self.check_zone(&zone.value, zone.at.map(|node| node.span));
        zone.value
    }

    /// Reports a time zone that does not exist.
    fn check_zone(&mut self, zone: &str, at: Option<Span>) {
        if jiff::tz::TimeZone::get(zone).is_err() {
            let at = at.and_then(|span| self.place(span));
            let wanted = "a zone of the IANA database (`Europe/Oslo`)";
            self.say(Diagnostic::malformed(at, zone, wanted));
        }
    }

    fn config(&mut self) -> BTreeMap<Name, Config> {
        let mut all = BTreeMap::new();
        for (key, written) in each(self.file.config()) {
            let mut config = self.config_value(written);
            if self.is_broken(written.0.span) {
                config.ty.kind = TypeKind::Any;
            }
            let ty = written.ty().map(|ty| ty.0.span);
            let default = written.default().filter(|of| of.span != written.0.span);
            let span = ty.or(default.map(|default| default.span));
            let span = span.unwrap_or(key.span);
            self.out.config.insert(key.name.clone(), span);
            all.insert(key.name.clone(), config);
        }
        all
    }

    fn config_value(&mut self, config: keys::Config<'_>) -> Config {
        let default = match config.0.entries() {
            [] => Some(config.0),
            _ => config.default().map(|default| default.0),
        };
        let json = default.filter(|node| !node.is_null()).map(Node::to_json);
        let written = config.ty().filter(|ty| ty.0.scalar().is_some());
        let word = match (written, &json) {
            (Some(ty), _) => ty.value().unwrap_or(Plain::String),
            (None, Some(serde_json::Value::Bool(_))) => Plain::Boolean,
            (None, Some(serde_json::Value::Number(number))) if number.is_i64() => Plain::Integer,
            (None, Some(serde_json::Value::Number(_))) => Plain::Number,
            (None, _) => Plain::String,
        };
        let (minimum, maximum) = (None, None);
        let ty = of_kind(match word {
            Plain::Integer => TypeKind::Integer { minimum, maximum },
            Plain::Number => TypeKind::Number { minimum, maximum },
            Plain::Boolean => TypeKind::Boolean,
            Plain::String => TypeKind::String { pattern: None },
        });
        if let (Some(json), Some(node)) = (&json, default) {
            self.default_fits(&ty, json, node);
        }
        let env = config.env().and_then(Valued::value);
        if env.is_none() && json.is_none() {
            let at = self.place(config.0.span);
            self.say(Diagnostic::none_of(
                at,
                "a config value",
                "`env`, `default`",
            ));
        }
        Config {
            ty,
            env,
            default: json,
            live: config.live().value,
            clients: config.clients().value,
        }
    }

    fn secrets(&mut self) -> BTreeMap<Name, Secret> {
        let secrets = each(self.file.secrets());
        secrets
            .map(|(key, written)| {
                let env = written.env().and_then(Valued::value);
                let file = written.file().and_then(Valued::value);
                let source = match file {
                    Some(file) => SecretSource::File(file),
                    None => SecretSource::Env(env.unwrap_or_default()),
                };
                let secret = Secret {
                    source,
                    optional: written.optional().value,
                };
                (key.name.clone(), secret)
            })
            .collect()
    }

    fn models(&mut self) -> BTreeMap<Name, ModelDef> {
        let mut models = BTreeMap::from([("default".into(), self.model(keys::Model::empty()))]);
        for (key, model) in each(self.file.models()) {
            let model = self.model(model);
            models.insert(key.name.clone(), model);
        }
        self.fallbacks(&models);
        models
    }

    fn model(&mut self, model: keys::Model<'_>) -> ModelDef {
        let scope = Scope {
            item: Some(model.0.span),
            transport: true,
            ..Scope::default()
        };
        // The name is bound when a session begins, so it reads nothing but `config`.
        let named = Scope {
            item: Some(model.0.span),
            outside: true,
            ..Scope::default()
        };
        let retry = model.retry().unwrap_or_else(keys::ModelRetry::empty);
        let provider = model.provider().value.provider();
        if provider == Provider::Local {
            for key in ["url", "key"] {
                self.meaningless(
                    model,
                    key,
                    "a model of a server on this computer that is looked for",
                );
            }
        }
        ModelDef {
            provider,
            model: self.text_of(model.model(), &named),
            url: self.text_of(model.url(), &scope),
            key: self.text_of(model.key(), &scope),
            temperature: model.temperature().and_then(Valued::value),
            max_tokens: model.max_tokens().and_then(Valued::value),
            window: model.window().and_then(Valued::value),
            params: params(model.params()),
            calls: model.calls().value,
            takes: self.takes(model.takes()),
            fallback: self.fallback(model.fallback()),
            retry: ModelRetry {
                times: retry.times().value,
                outage: retry.outage().value,
            },
            rate: model.rate().and_then(kinds::Rate::rate),
            price: model.price().and_then(price),
        }
    }

    /// Returns the files of messages that a model gets.
    fn takes(&mut self, written: Option<keys::Takes<'_>>) -> Takes {
        let Some(written) = written else {
            return Takes::default();
        };
        let kinds = each(written.kinds()).filter_map(Valued::value);
        let instead = written.instead();
        Takes {
            kinds: kinds.collect(),
            largest: written.largest().value as u64,
            instead: instead.and_then(|text| self.sentence(texts::INSTEAD, text.node())),
        }
    }

    /// Returns the fallback models; unknown names are reported and left out.
    fn fallback(&mut self, written: Option<List<'_, kinds::Name<'_>>>) -> Vec<Name> {
        let models = self.file.models();
        let known = |name: &str| name == "default" || models.is_some_and(|m| m.get(name).is_some());
        let written = each(written).filter(|name| name.text().is_some());
        let names = written.map(|name| self.model_name(Some(name)));
        names.filter(|name| known(name)).collect()
    }

    /// Reports models that are their own fallback, directly or through others.
    fn fallbacks(&mut self, models: &BTreeMap<Name, ModelDef>) {
        for (key, model) in each(self.file.models()) {
            for item in each(model.fallback()) {
                let Some(first) = item.text() else {
                    continue;
                };
                if leads_to(models, first, &key.name) {
                    let at = self.place(item.span);
                    self.say(Diagnostic::fallback_circle(at, &key.name, first));
                }
            }
        }
    }

    fn events(&mut self) -> BTreeMap<Name, EventDef> {
        let mut events = BTreeMap::new();
        for (key, event) in each(self.file.events()) {
            let scope = Scope {
                item: Some(event.0.span),
                event: Some(key.name.clone()),
                ..Scope::default()
            };
            let fields = self.types(event.fields(), At::Other, &scope);
            let id = self.text_of(event.id(), &scope);
            let def = EventDef {
                fields,
                id: id.unwrap_or_else(|| Template::plain("")),
                session: self.text_of(event.session(), &scope),
                keep: event.keep().value,
                start: event.start().map(|start| self.start(key, start, &scope)),
            };
            events.insert(key.name.clone(), def);
        }
        events
    }

    fn schedules(&mut self, timezone: &str) -> BTreeMap<Name, ScheduleDef> {
        let mut schedules = BTreeMap::new();
        for (key, written) in each(self.file.schedules()) {
            let scope = Scope {
                item: Some(written.0.span),
                schedule: true,
                ..Scope::default()
            };
            let own = written.timezone();
            let own = own.and_then(|own| Some((own.text()?, own.0.span)));
            if let Some((zone, span)) = own {
                self.check_zone(zone, Some(span));
            }
            let timezone = own.map_or_else(|| timezone.to_owned(), |(zone, _)| zone.to_string());
            let rule = self.rule(written);
            let start = written.start();
            let start = start.map(|start| self.start(key, start, &scope));
            if let (Some(rule), Some(start)) = (rule, start) {
                let times = Times { rule, timezone };
                schedules.insert(key.name.clone(), ScheduleDef { times, start });
            }
        }
        schedules
    }

    /// Lowers the budgets. Reports one that limits nothing, and labels that are not declared.
    fn budgets(
        &mut self,
        timezone: &str,
        labels: &BTreeMap<Name, Template>,
    ) -> BTreeMap<Name, BudgetDef> {
        let mut budgets = BTreeMap::new();
        for (key, written) in each(self.file.budgets()) {
            let own = written.timezone();
            let own = own.and_then(|own| Some((own.text()?, own.0.span)));
            if let Some((zone, span)) = own {
                self.check_zone(zone, Some(span));
            }
            let of = match written.label() {
                None if written.of().value == Counted::Key => BudgetOf::Key,
                None => BudgetOf::Network,
                Some(label) => {
                    let name: Name = label.text().cloned().unwrap_or_default();
                    if !labels.contains_key(&name) && !self.is_broken(label.0.span) {
                        let near = self
                            .sources
                            .near(&name, labels.keys().map(|label| &**label));
                        let near = near.map(str::to_owned);
                        let at = self.place(label.0.span);
                        self.say(Diagnostic::unknown_label(at, &name, near.as_deref()));
                    }
                    BudgetOf::Label(name)
                }
            };
            let most = [
                written.cost().map(|cost| cost.0),
                written.tokens().map(|tokens| tokens.0),
                written.calls().map(|calls| calls.0),
            ];
            if most.iter().all(Option::is_none) && !self.is_broken(written.0.span) {
                let at = self.place(key.span);
                self.say(Diagnostic::none_of(
                    at,
                    "a budget",
                    "`cost`, `tokens` and `calls`",
                ));
            }
            budgets.insert(
                key.name.clone(),
                BudgetDef {
                    of,
                    cost: written.cost().and_then(kinds::Money::micros),
                    tokens: written.tokens().and_then(Valued::value),
                    calls: written.calls().and_then(Valued::value),
                    per: written.per().value,
                    timezone: own.map_or_else(|| timezone.to_owned(), |(zone, _)| zone.to_string()),
                    then: written.then().value,
                },
            );
        }
        budgets
    }

    /// Returns the time for which a session is kept after its end. Reports a time in which nobody can read its answer.
    fn keep(&mut self) -> Option<u64> {
        let written = self.file.sessions()?.keep()?;
        let keep = written.value()?;
        if keep < LEAST_KEPT {
            let at = self.place(written.0.span);
            let written = written.0.as_text().map_or("", |text| &**text);
            self.say(Diagnostic::malformed(
                at,
                written,
                "a span of at least `1m`",
            ));
        }
        Some(keep)
    }

    /// Returns the rule of a schedule. Reports a span that is too short, and a cron expression or a time that cannot be read.
    fn rule(&mut self, written: keys::Schedule<'_>) -> Option<Rule> {
        if let Some(every) = written.every() {
            let millis = every.value()?;
            if millis < schedule::LEAST {
                let at = self.place(every.0.span);
                let written = every.0.as_text().map_or("", |text| &**text);
                self.say(Diagnostic::malformed(
                    at,
                    written,
                    "a span of at least `1s`",
                ));
            }
            return Some(Rule::Every(millis));
        }
        if let Some(time) = written.at() {
            let text = time.text()?;
            if schedule::single(text, "UTC").is_none() {
                let at = self.place(time.0.span);
                let wanted = "a time on the clock of the zone: `2026-12-24 18:00`";
                self.say(Diagnostic::malformed(at, text, wanted));
            }
            return Some(Rule::At(text.to_string()));
        }
        let cron = written.cron()?;
        let text = cron.text()?;
        if let Err(wanted) = schedule::check(text) {
            let at = self.place(cron.0.span);
            self.say(Diagnostic::malformed(at, text, &wanted));
        }
        Some(Rule::Cron(text.to_string()))
    }

    /// Lowers the start of a session by an event or a schedule.
    fn start(&mut self, by: &Key, start: keys::Start<'_>, scope: &Scope) -> StartDef {
        self.out.starts.push((by.name.clone(), by.span));
        // without arguments or a message nothing would wake the agent
        if each(start.args()).next().is_none() && start.message().is_none() {
            let at = self.place(start.0.span);
            let keys = shape::list_of(["args", "message"]);
            self.say(Diagnostic::none_of(at, "the start of a session", &keys));
        }
        let agent = start.agent();
        StartDef {
            agent: agent.and_then(|name| self.named(&name, Sort::Agent)),
            args: self.named_data(start.args(), scope),
            message: self.text_of(start.message(), scope),
        }
    }

    fn labels_and_outcome(
        &mut self,
        entry: &[Name],
        events: &BTreeMap<Name, EventDef>,
        schedules: &BTreeMap<Name, ScheduleDef>,
    ) -> (BTreeMap<Name, Template>, BTreeMap<Name, Expr>) {
        // `args` are those of the agent with which the session began, so they are known if there is only one such agent
        let starts = events.values().filter_map(|event| event.start.as_ref());
        let starts = starts.chain(schedules.values().map(|schedule| &schedule.start));
        let starts = starts.filter_map(|start| start.agent.as_ref());
        let begin: BTreeSet<&Name> = entry.iter().chain(starts).collect();
        let args = match begin.into_iter().collect::<Vec<_>>().as_slice() {
            [one] => Args::Agent((*one).clone()),
            _ => Args::None,
        };
        let scope = Scope {
            args,
            answer: true,
            ..Scope::default()
        };
        let mut labels = BTreeMap::new();
        for (key, label) in each(self.file.labels()) {
            if OWN_LABELS.contains(&&*key.name) {
                let at = self.place(key.span);
                self.say(Diagnostic::reserved_name(at, &key.name));
            }
            if let Some(label) = self.template(&label, Wants::Text, &scope) {
                labels.insert(key.name.clone(), label);
            }
        }
        let mut outcome = BTreeMap::new();
        for (key, expr) in each(self.file.outcome()) {
            if let Some(expr) = self.expr(&expr, Wants::Value, &scope) {
                outcome.insert(key.name.clone(), expr);
            }
        }
        (labels, outcome)
    }

    /// Lowers sentences that replace the engine's own. Reports unknown keys and wrong placeholders.
    fn own_sentences(&mut self) -> Texts {
        let mut texts = Texts::default();
        let Some(Or::Other(written)) = self.file.texts() else {
            return texts;
        };
        for (key, written) in written {
            let Some(sentence) = texts::ALL.iter().find(|s| *s.key == *key.name) else {
                let known = texts::ALL.iter().map(|s| s.key);
                let near = self.sources.near(&key.name, known).map(str::to_owned);
                let at = self.place(key.span);
                let key = &key.name;
                self.say(Diagnostic::unknown_name(
                    at,
                    "sentence of the engine",
                    key,
                    near.as_deref(),
                ));
                continue;
            };
            let words = match written {
                Or::Other(by) if !by.0.entries().is_empty() => {
                    let by = by.into_iter().filter_map(|(language, text)| {
                        Some((language.name.to_string(), self.sentence(sentence, &text)?))
                    });
                    Some(Words::By(by.collect()))
                }
                text => self.sentence(sentence, text.node()).map(Words::Plain),
            };
            texts.0.extend(words.map(|words| (key.name.clone(), words)));
        }
        texts
    }

    fn sentence(&mut self, sentence: &Sentence, node: &Node) -> Option<Template> {
        let at = self.place(node.span);
        let Some(text) = node.as_text() else {
            let broken = self.is_broken(node.span);
            if !broken {
                self.say(Diagnostic::wrong_kind(at, "a text", node.kind_word()));
            }
            return None;
        };
        let words = match Template::parse(text) {
            Ok(words) => words,
            Err(error) => {
                self.say(Diagnostic::malformed(
                    at,
                    text,
                    &format!("a template: {error}"),
                ));
                return None;
            }
        };
        let values: Vec<(&str, &str)> = sentence.names().map(|name| (name, "1")).collect();
        if texts::fill(&words, &values).is_none() {
            let names: Vec<String> = sentence
                .names()
                .map(|n| format!("`{{{{ {n} }}}}`"))
                .collect();
            let wanted = match names.as_slice() {
                [] => "a plain text, as nothing can be filled in here".to_owned(),
                names => format!(
                    "a text in which only {} can be filled in",
                    names.join(" and ")
                ),
            };
            self.say(Diagnostic::malformed(at, text, &wanted));
            return None;
        }
        Some(words)
    }

    /// Returns the agents that a user may talk to first: those written, else the only agent that no other agent names.
    fn entry(&mut self) -> Vec<Name> {
        let file = self.file;
        if let Some(entry) = file.entry() {
            let entry = entry.into_iter();
            return entry.filter_map(|name| self.entry_agent(name)).collect();
        }
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for (key, agent) in each(file.agents()) {
            names_within(key, agent, &mut named);
            if agent.route().is_some_and(|route| route.native().is_some()) {
                let agents = each(file.agents()).map(|(other, _)| &*other.name);
                named.extend(agents.filter(|other| *other != &*key.name));
            }
        }
        let free: Vec<&Key> = each(file.agents())
            .filter(|(key, agent)| {
                let talks = agent.person().is_none() && agent.run().is_none();
                !named.contains(&*key.name) && talks
            })
            .map(|(key, _)| key)
            .collect();
        match free.as_slice() {
            [key] => vec![key.name.clone()],
            [] if file.agents().is_none() => Vec::new(),
            _ => {
                let names = shape::list_of(free.iter().map(|key| &*key.name));
                let mut entries = self.merged.main.entries().iter();
                let agents = entries.find(|(key, _)| &*key.name == "agents");
                let span = agents.map_or(Span::NONE, |(key, _)| key.span);
                let at = self.place(span);
                self.say(Diagnostic::no_entry(at, &names));
                Vec::new()
            }
        }
    }

    fn hooks(&mut self) -> Vec<HookDef> {
        let mut hooks = Vec::new();
        for (key, written) in each(self.file.hooks()) {
            let version = written
                .native()
                .and_then(|native| native.node().as_text().map(ToString::to_string));
            let around = written.agents().into_iter().flatten();
            let around: Vec<_> = around.collect();
            hooks.push(HookDef {
                name: key.name.clone(),
                version: version.unwrap_or_default(),
                agents: around
                    .iter()
                    .filter_map(|name| self.named(name, Sort::Agent))
                    .collect(),
                timeout: written.timeout().value,
            });
        }
        hooks
    }

    /// Returns an agent that a user can talk to; reports plain agents.
    fn entry_agent(&mut self, written: kinds::Name<'_>) -> Option<Name> {
        let name = self.named(&written, Sort::Agent)?;
        let runs = self
            .file
            .agent(&name)
            .is_some_and(|agent| agent.run().is_some());
        if runs {
            let declared = self.out.declared.get(&name).map(|declared| declared.span);
            let declared = declared.and_then(|span| self.place(span));
            let at = self.place(written.span);
            let is = "an agent that only runs a tool";
            let wanted = "one that answers";
            self.say(Diagnostic::wrong_sort(at, &name, is, wanted, declared));
            return None;
        }
        Some(name)
    }

    fn agents(&mut self, entry: &[Name]) -> (BTreeMap<Name, AgentDef>, BTreeMap<Name, PersonDef>) {
        let (mut agents, mut people) = (BTreeMap::new(), BTreeMap::new());
        for (key, agent) in each(self.file.agents()) {
            self.keys_of_its_kind(agent);
            if let Some(person) = agent.person() {
                let person = self.person_def(key, agent, person);
                people.insert(key.name.clone(), person);
            } else {
                let agent = self.agent(key, agent, entry);
                agents.insert(key.name.clone(), agent);
            }
        }
        (agents, people)
    }

    fn person_def(&mut self, key: &Key, agent: Agent<'_>, person: Person<'_>) -> PersonDef {
        let scope = Scope {
            item: Some(agent.0.span),
            args: Args::Agent(key.name.clone()),
            ..Scope::default()
        };
        let on_timeout = person.on_timeout();
        let role = person.role().and_then(|role| role.text().cloned());
        PersonDef {
            name: key.name.clone(),
            description: agent
                .description()
                .and_then(Valued::value)
                .unwrap_or_default(),
            role: role.unwrap_or_else(|| key.name.clone()),
            timeout: person.timeout().and_then(Valued::value),
            on_timeout: on_timeout.and_then(|then| {
                let text = self.text_of(then.text(), &scope);
                let say = self.text_of(then.say(), &scope);
                text.map(Silence::Answer).or(say.map(Silence::Say))
            }),
            instead: on_timeout
                .and_then(PersonTimeout::to)
                .and_then(|to| self.led_to(&key.name, &to)),
            reach: person
                .reach()
                .and_then(|tool| self.named(&tool, Sort::Tool)),
        }
    }
}

/// Returns true if the fallbacks of `from`, followed transitively, contain `to`, or if both are the same.
fn leads_to(models: &BTreeMap<Name, ModelDef>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(name) = next.pop() {
        if name == to {
            return true;
        }
        if let Some(model) = models.get(name).filter(|_| seen.insert(name)) {
            next.extend(model.fallback.iter().map(|name| &**name));
        }
    }
    false
}

fn price(price: keys::Price<'_>) -> Option<Price> {
    let of = |money: Option<kinds::Money<'_>>| money?.micros();
    let input = of(price.input())?;
    Some(Price {
        input,
        cached: of(price.cached()).unwrap_or(input),
        cache_write: of(price.cache_write()).unwrap_or(input),
        output: of(price.output())?,
    })
}

pub(super) fn params(
    written: Option<Map<'_, kinds::Any<'_>>>,
) -> BTreeMap<String, serde_json::Value> {
    each(written)
        .map(|(key, value)| (key.name.to_string(), value.to_json()))
        .collect()
}

/// Collects all texts within an agent that may name another agent. Also walks forms that this version does not understand.
fn names_within<'a>(key: &Key, agent: Agent<'a>, into: &mut BTreeSet<&'a str>) {
    fn walk<'a>(own: &str, node: &'a Node, into: &mut BTreeSet<&'a str>) {
        into.extend(
            node.as_text()
                .map(|text| &**text)
                .filter(|text| *text != own),
        );
        node.items().iter().for_each(|node| walk(own, node, into));
        for (key, node) in node.entries() {
            into.insert(&key.name);
            walk(own, node, into);
        }
    }
    let parts = [
        agent.tools().map(|part| part.0),
        agent.route().map(|part| part.0),
        agent.modes().map(|part| part.0),
        agent.reflect().map(|part| part.0),
        agent.search().map(|part| part.0),
    ];
    for node in parts.into_iter().flatten() {
        walk(&key.name, node, into);
    }
}
