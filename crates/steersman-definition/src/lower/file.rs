//! Lowers the settings of a file: config values, models, events, labels, outcome, entries.

use super::super::diagnostic::Diagnostic;
use super::super::shape;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node, Span, Value};
use super::values::{At, of_kind};
use super::{Lower, Sort, count, duration, flag, real, sorted, text, word};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::texts::{self, Sentence, Texts, Words};
use steersman_machine::network::{
    AgentDef, CallStyle, Config, EventDef, ModelDef, ModelRetry, Network, PersonDef, Provider,
    Record, Secret, SecretSource, Silence, StartDef,
};
use steersman_machine::stored::ids::{Digest, Name};
use steersman_machine::values::expression::{Expr, Template};
use steersman_machine::values::price::Price;
use steersman_machine::values::rate::Rate;
use steersman_machine::values::types::TypeKind;

const DAY: u64 = 86_400_000;

impl Lower<'_> {
    /// Builds the whole network.
    pub(super) fn network(&mut self) -> Network {
        let merged = self.merged;
        let main = &merged.main;
        let name = self.name();
        if merged.section("agents").is_empty() {
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
        let mcp = self.mcp();
        let tools = self.tools();
        let entry = self.entry();
        let (agents, people) = self.agents(&entry);
        let tools = self.with_built_in(tools);
        let (labels, outcome) = self.labels_and_outcome();
        let texts = self.own_sentences();
        let limits = self.limits_of_session();
        let record = merged
            .settings
            .get("record")
            .map(Node::items)
            .unwrap_or_default();
        let has = |word: &str| {
            record
                .iter()
                .any(|node| node.as_text().is_some_and(|t| &**t == word))
        };
        let record = Record {
            raw: has("raw"),
            requests: has("requests"),
        };
        self.out.tests = self.tests();
        let tools = self.with_remote(tools, &mcp);
        Network {
            name,
            description: merged
                .settings
                .get("description")
                .and_then(Node::as_text)
                .map(ToString::to_string),
            digest: Digest([0; 16]),
            source: "".into(),
            timezone,
            config,
            secrets,
            models,
            events,
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
            natives: steersman_machine::network::nets::Natives::default(),
        }
    }

    fn name(&mut self) -> Name {
        let node = self.merged.main.get("name");
        let Some(name) = node.and_then(Node::as_text) else {
            return self.files.default_name().into();
        };
        let mut bytes = name.bytes();
        let fits = name.len() <= 64
            && bytes.next().is_some_and(|c| c.is_ascii_lowercase())
            && bytes
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-'));
        if !fits {
            let at = node.and_then(|node| self.place(node.span));
            self.say(Diagnostic::malformed_name(at, name));
        }
        name.clone()
    }

    fn timezone(&mut self) -> String {
        let node = self.merged.settings.get("timezone");
        let Some(zone) = node.and_then(Node::as_text) else {
            return "UTC".to_owned();
        };
        if jiff::tz::TimeZone::get(zone).is_err() {
            let at = node.and_then(|node| self.place(node.span));
            let wanted = "a zone of the IANA database (`Europe/Oslo`)";
            self.say(Diagnostic::malformed(at, zone, wanted));
        }
        zone.to_string()
    }

    fn config(&mut self) -> BTreeMap<Name, Config> {
        let mut all = BTreeMap::new();
        for (key, node) in self.merged.section("config") {
            let mut config = self.config_value(node);
            if self.is_broken(node.span) {
                config.ty.kind = TypeKind::Any;
            }
            let shows = node.get("type").or_else(|| node.get("default"));
            let span = shows.map_or(key.span, |node| node.span);
            self.out.config.insert(key.name.clone(), span);
            all.insert(key.name.clone(), config);
        }
        all
    }

    fn config_value(&mut self, node: &Node) -> Config {
        let long = !node.entries().is_empty();
        let default = if long {
            node.get("default")
        } else {
            Some(node)
        };
        let json = default.filter(|node| !node.is_null()).map(Node::to_json);
        let bounds = (None, None);
        let by_word = match node.get("type").and_then(Node::as_text).map(|word| &**word) {
            Some("integer") => Some(TypeKind::Integer {
                minimum: bounds.0,
                maximum: bounds.1,
            }),
            Some("number") => Some(TypeKind::Number {
                minimum: bounds.0,
                maximum: bounds.1,
            }),
            Some("boolean") => Some(TypeKind::Boolean),
            Some(_) => Some(TypeKind::String { pattern: None }),
            None => None,
        };
        let by_value = || match &json {
            Some(serde_json::Value::Bool(_)) => TypeKind::Boolean,
            Some(serde_json::Value::Number(number)) if number.is_i64() => TypeKind::Integer {
                minimum: bounds.0,
                maximum: bounds.1,
            },
            Some(serde_json::Value::Number(_)) => TypeKind::Number {
                minimum: bounds.0,
                maximum: bounds.1,
            },
            _ => TypeKind::String { pattern: None },
        };
        let ty = of_kind(by_word.unwrap_or_else(by_value));
        if let (Some(json), Some(node)) = (&json, default) {
            self.default_fits(&ty, json, node);
        }
        let env = text(node, "env");
        if env.is_none() && json.is_none() {
            let at = self.place(node.span);
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
            live: flag(node, "live"),
        }
    }

    fn secrets(&mut self) -> BTreeMap<Name, Secret> {
        let secrets = self.merged.section("secrets").iter();
        secrets
            .map(|(key, node)| {
                let source = match (text(node, "env"), text(node, "file")) {
                    (_, Some(file)) => SecretSource::File(file),
                    (env, None) => SecretSource::Env(env.unwrap_or_default()),
                };
                let secret = Secret {
                    source,
                    optional: flag(node, "optional"),
                };
                (key.name.clone(), secret)
            })
            .collect()
    }

    fn models(&mut self) -> BTreeMap<Name, ModelDef> {
        let mut models = BTreeMap::new();
        for (key, node) in self.merged.section("models") {
            let model = self.model(node);
            models.insert(key.name.clone(), model);
        }
        models.entry("default".into()).or_insert(ModelDef {
            provider: Provider::Auto,
            model: None,
            url: None,
            key: None,
            temperature: None,
            max_tokens: None,
            window: None,
            params: BTreeMap::new(),
            calls: CallStyle::Auto,
            fallback: Vec::new(),
            retry: ModelRetry::default(),
            rate: None,
            price: None,
        });
        self.fallbacks(&models);
        models
    }

    fn model(&mut self, node: &Node) -> ModelDef {
        let scope = Scope {
            item: Some(node.span),
            transport: true,
            ..Scope::default()
        };
        let provider = match word(node, "provider").or(node.as_text().map(|text| &**text)) {
            Some("openai") => Provider::OpenAi,
            Some("anthropic") => Provider::Anthropic,
            Some("compatible") => Provider::Compatible,
            Some("scripted") => Provider::Scripted,
            _ => Provider::Auto,
        };
        ModelDef {
            provider,
            model: text(node, "model"),
            url: self.text_of(node, "url", &scope),
            key: self.text_of(node, "key", &scope),
            temperature: real(node, "temperature"),
            max_tokens: node.get("max_tokens").and_then(super::whole),
            window: node.get("window").and_then(super::whole),
            params: params(node.get("params")),
            calls: match word(node, "calls") {
                Some("native") => CallStyle::Native,
                Some("structured") => CallStyle::Structured,
                Some("text") => CallStyle::Text,
                _ => CallStyle::Auto,
            },
            fallback: self.fallback(node.get("fallback")),
            retry: retry(node.get("retry")),
            rate: text(node, "rate").and_then(|text| Rate::parse(&text)),
            price: node.get("price").and_then(price),
        }
    }

    /// Returns the fallback models; unknown names are reported and left out.
    fn fallback(&mut self, node: Option<&Node>) -> Vec<Name> {
        let items = match node.map(|node| &node.value) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let merged = self.merged;
        let known = |name: &str| {
            let mut models = merged.section("models").iter();
            models.any(|(key, _)| &*key.name == name)
        };
        let mut names = Vec::new();
        for item in items {
            if item.as_text().is_none() {
                continue;
            }
            let name = self.model_name(Some(item));
            if &*name == "default" || known(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Reports models that are their own fallback, directly or through others.
    fn fallbacks(&mut self, models: &BTreeMap<Name, ModelDef>) {
        let merged = self.merged;
        for (key, node) in merged.section("models") {
            let items = match node.get("fallback").map(|node| &node.value) {
                Some(Value::List(items)) => items.as_slice(),
                _ => continue,
            };
            for item in items {
                let Some(first) = item.as_text() else {
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
        for (key, node) in self.merged.section("events") {
            let scope = Scope {
                item: Some(node.span),
                event: Some(key.name.clone()),
                ..Scope::default()
            };
            let fields = self.types(node.get("fields"), At::Other, &scope);
            let id = node
                .get("id")
                .and_then(|node| self.template(node, Wants::Text, &scope));
            let session = self.text_of(node, "session", &scope);
            let start = node.get("start").map(|start| {
                self.out.starts.push((key.name.clone(), key.span));
                // without arguments or a message nothing would wake the agent, and the event's content would be lost
                let has_args = start.get("args").is_some_and(|a| !a.entries().is_empty());
                if !has_args && start.get("message").is_none() {
                    let at = self.place(start.span);
                    let keys = shape::list_of(["args", "message"]);
                    self.say(Diagnostic::none_of(at, "the start by an event", &keys));
                }
                StartDef {
                    agent: start
                        .get("agent")
                        .and_then(|node| self.named(node, Sort::Agent)),
                    args: self.named_data(start.get("args"), &scope),
                    message: self.text_of(start, "message", &scope),
                }
            });
            let event = EventDef {
                fields,
                id: id.unwrap_or_else(|| Template::plain("")),
                session,
                keep: duration(node, "keep").unwrap_or(30 * DAY),
                start,
            };
            events.insert(key.name.clone(), event);
        }
        events
    }

    fn labels_and_outcome(&mut self) -> (BTreeMap<Name, Template>, BTreeMap<Name, Expr>) {
        let merged = self.merged;
        let scope = Scope {
            answer: true,
            ..Scope::default()
        };
        let mut labels = BTreeMap::new();
        for (key, node) in merged.section("labels") {
            if let Some(label) = self.template(node, Wants::Text, &scope) {
                labels.insert(key.name.clone(), label);
            }
        }
        let mut outcome = BTreeMap::new();
        for (key, node) in merged.section("outcome") {
            if let Some(expr) = self.expr(node, Wants::Value, &scope) {
                outcome.insert(key.name.clone(), expr);
            }
        }
        (labels, outcome)
    }

    /// Lowers sentences that replace the engine's own. Reports unknown keys and wrong placeholders.
    fn own_sentences(&mut self) -> Texts {
        let merged = self.merged;
        let mut texts = Texts::default();
        for (key, node) in merged.section("texts") {
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
            let words = if node.entries().is_empty() {
                self.sentence(sentence, node).map(Words::Plain)
            } else {
                let by = node.entries().iter();
                let by = by.filter_map(|(language, node)| {
                    Some((language.name.to_string(), self.sentence(sentence, node)?))
                });
                Some(Words::By(by.collect()))
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
        let merged = self.merged;
        if let Some(node) = merged.main.get("entry") {
            let nodes = if node.items().is_empty() {
                std::slice::from_ref(node)
            } else {
                node.items()
            };
            return nodes.iter().filter_map(|node| self.first(node)).collect();
        }
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for (key, node) in merged.section("agents") {
            names_within(key, node, &mut named);
            if node
                .get("route")
                .is_some_and(|route| route.get("native").is_some())
            {
                let agents = merged
                    .section("agents")
                    .iter()
                    .map(|(other, _)| &*other.name);
                named.extend(agents.filter(|other| *other != &*key.name));
            }
        }
        let agents = merged.section("agents").iter();
        let free: Vec<&(Key, Node)> = agents
            .filter(|(key, node)| {
                let talks = node.get("person").is_none() && node.get("run").is_none();
                !named.contains(&*key.name) && talks
            })
            .collect();
        match free.as_slice() {
            [(key, _)] => vec![key.name.clone()],
            [] if merged.section("agents").is_empty() => Vec::new(),
            _ => {
                let names = shape::list_of(free.iter().map(|(key, _)| &*key.name));
                let agents = merged
                    .main
                    .entries()
                    .iter()
                    .find(|(key, _)| &*key.name == "agents");
                let span = agents.map_or(Span::NONE, |(key, _)| key.span);
                let at = self.place(span);
                self.say(Diagnostic::no_entry(at, &names));
                Vec::new()
            }
        }
    }

    /// Returns an agent that a user can talk to; reports plain agents.
    fn first(&mut self, node: &Node) -> Option<Name> {
        let name = self.named(node, Sort::Agent)?;
        let agents = self.merged.section("agents").iter();
        let mut runs = agents.filter(|(key, node)| key.name == name && node.get("run").is_some());
        if let Some((key, _)) = runs.next() {
            let (at, declared) = (self.place(node.span), self.place(key.span));
            let is = "an agent that only runs a tool";
            let wanted = "one that answers";
            self.say(Diagnostic::wrong_sort(at, &name, is, wanted, declared));
            return None;
        }
        Some(name)
    }

    fn agents(&mut self, entry: &[Name]) -> (BTreeMap<Name, AgentDef>, BTreeMap<Name, PersonDef>) {
        let merged = self.merged;
        let (mut agents, mut people) = (BTreeMap::new(), BTreeMap::new());
        for (key, node) in merged.section("agents") {
            self.keys_of_its_kind(node);
            if let Some(person) = node.get("person") {
                let person = self.person_def(key, node, person);
                people.insert(key.name.clone(), person);
            } else {
                let agent = self.agent(key, node, entry);
                agents.insert(key.name.clone(), agent);
            }
        }
        (agents, people)
    }

    fn person_def(&mut self, key: &Key, node: &Node, person: &Node) -> PersonDef {
        let scope = Scope {
            item: Some(node.span),
            args: Args::Agent(key.name.clone()),
            ..Scope::default()
        };
        let on_timeout = person.get("on_timeout");
        PersonDef {
            name: key.name.clone(),
            description: text(node, "description").unwrap_or_default(),
            role: text(person, "role").map_or_else(|| key.name.clone(), Into::into),
            timeout: duration(person, "timeout"),
            on_timeout: on_timeout.and_then(|node| {
                let text = self.text_of(node, "text", &scope);
                let say = self.text_of(node, "say", &scope);
                text.map(Silence::Answer).or(say.map(Silence::Say))
            }),
            instead: on_timeout
                .and_then(|node| node.get("to"))
                .and_then(|node| self.led_to(&key.name, node)),
            reach: person
                .get("reach")
                .and_then(|node| self.named(node, Sort::Tool)),
        }
    }
}

/// Lowers `retry`; missing keys keep their defaults.
fn retry(node: Option<&Node>) -> ModelRetry {
    let default = ModelRetry::default();
    let Some(node) = node else {
        return default;
    };
    ModelRetry {
        times: count(node, "times", default.times),
        outage: duration(node, "for").unwrap_or(default.outage),
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

fn price(node: &Node) -> Option<Price> {
    let of = |key: &str| shape::money(node.get(key)?.scalar()?);
    let input = of("input")?;
    Some(Price {
        input,
        cached: of("cached").unwrap_or(input),
        cache_write: of("cache_write").unwrap_or(input),
        output: of("output")?,
    })
}

pub(super) fn params(node: Option<&Node>) -> BTreeMap<String, serde_json::Value> {
    sorted(node)
        .into_iter()
        .map(|(key, node)| (key.name.to_string(), node.to_json()))
        .collect()
}

/// Collects all texts within an agent that may name another agent. Also walks forms that this version does not understand.
fn names_within<'a>(key: &Key, node: &'a Node, into: &mut BTreeSet<&'a str>) {
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
    for part in ["tools", "route", "modes", "reflect", "search"] {
        if let Some(node) = node.get(part) {
            walk(&key.name, node, into);
        }
    }
}
