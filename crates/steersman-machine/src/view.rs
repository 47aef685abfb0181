//! Names in expressions and templates: `state`, `config`, `calls`, `now` and the others, as one agent sees them.
//!
//! A view is lazy: it reads, parses and copies a value only when an expression reads it. With a [`Trace`] the view records its
//! reads; incremental rendering relies on these.

pub mod artifact;
pub mod mapping;
pub mod memory;
pub mod rating;
pub(crate) mod say;

use crate::network::Network;
use crate::snapshot::{Agent, Count, Snapshot};
use crate::stored::ids::{Bodies, Body, Digest, Id, Line, Name, Time};
use crate::stored::interaction::How;
use crate::values::expression::{EvalError, Expr, Scope, from_json, shared};
use crate::values::json::{SEALED, is_sealed};
use crate::values::types::{Parameters, Type, TypeKind};
use minijinja::Value;
use serde_json::{Map, Value as Json, json};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The data that a decision may read besides the snapshot.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// The checked definition.
    pub network: &'a Network,
    /// Texts that the snapshot names.
    pub bodies: &'a dyn Bodies,
}

/// Resolves names that only transport fields (URL, header, body, environment) may read. The driver implements it; the machine
/// never does.
pub trait Transport {
    /// Returns the secret of this name. `None` means that it is optional and unset. An error makes the field that reads it fail.
    fn secret(&self, name: &str) -> Result<Option<String>, String>;
    /// Returns the current value of a `live` entry of `config`.
    fn live(&self, name: &str) -> Option<Json>;
    /// Returns the content of a sealed handle. `None` means that it cannot be opened; an expression that uses the handle then
    /// fails.
    fn open(&self, sealed: &Json) -> Option<Json>;
}

/// The names of expressions, as one agent sees them.
pub struct View<'a> {
    cx: Cx<'a>,
    snapshot: &'a Snapshot,
    agent: Option<&'a Arc<Agent>>,
    now: Time,
    names: Vec<(Name, Arc<Json>)>,
    transport: Option<&'a dyn Transport>,
    trace: Option<&'a Trace>,
    bound: OnceCell<Arc<Json>>,
    clock: OnceCell<Arc<Json>>,
    args: OnceCell<Option<Arc<Json>>>,
}

/// Records the reads of a view, by root and entry, with a digest of each value.
#[derive(Debug, Default)]
pub struct Trace {
    reads: RefCell<Vec<Read>>,
    /// Digests of the current values. Each is computed once for all templates that read the entry.
    known: RefCell<BTreeMap<(Name, Option<Name>), Digest>>,
}

/// A recorded read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Root that was read: `state`, `now`, `calls`, ..
    pub root: Name,
    /// Entry that was read. `None` means the whole root.
    pub entry: Option<Name>,
    /// Digest of the value.
    pub digest: Digest,
}

impl Trace {
    /// Returns the reads since the last call of this method, each entry once.
    pub fn take(&self) -> Vec<Read> {
        std::mem::take(&mut self.reads.borrow_mut())
    }

    fn note(&self, root: &str, entry: Option<&str>, digest: impl FnOnce() -> Digest) {
        let key = (Name::from(root), entry.map(Name::from));
        let known = self.known.borrow().get(&key).copied();
        let digest = known.unwrap_or_else(|| {
            let digest = digest();
            self.known.borrow_mut().insert(key.clone(), digest);
            digest
        });
        let mut reads = self.reads.borrow_mut();
        if !reads
            .iter()
            .any(|r| *r.root == *root && r.entry.as_deref() == entry)
        {
            let (root, entry) = key;
            reads.push(Read {
                root,
                entry,
                digest,
            });
        }
    }
}

impl<'a> View<'a> {
    /// Returns the view of `agent`. `None` means the root agent, if there is one.
    pub fn new(cx: &Cx<'a>, snapshot: &'a Snapshot, agent: Option<Id>) -> Self {
        let agent = agent.or(snapshot.root);
        Self {
            cx: *cx,
            snapshot,
            agent: agent.and_then(|id| snapshot.agents.get(&id)),
            now: snapshot.now,
            names: Vec::new(),
            transport: None,
            trace: None,
            bound: OnceCell::new(),
            clock: OnceCell::new(),
            args: OnceCell::new(),
        }
    }

    /// Adds a name, or replaces the meaning of one: `args`, `result`, `error`, `event`, `session`, ..
    pub fn with(self, name: &str, value: Json) -> Self {
        self.with_shared(name, Arc::new(value))
    }

    /// Does the same as [`View::with`], without a copy of the value.
    pub fn with_shared(mut self, name: &str, value: Arc<Json>) -> Self {
        self.names.retain(|(n, _)| &**n != name);
        self.names.push((name.into(), value));
        self
    }

    /// Sets the recorded time. A tick uses it while the snapshot still has the time of the previous commit.
    pub fn at(mut self, now: Time) -> Self {
        self.now = now;
        self
    }

    /// Makes secrets, sealed values and live entries of `config` readable. Only for transport fields.
    pub fn transport(mut self, transport: &'a dyn Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Records the reads of this view in `trace`.
    pub fn traced(mut self, trace: &'a Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Returns true if an expression holds in this view.
    pub fn holds(&self, expr: &Expr) -> Result<bool, EvalError> {
        expr.holds(self)
    }

    /// Returns true if all recorded reads would give the same values now.
    pub fn unchanged(&self, reads: &[Read], trace: &Trace) -> bool {
        reads.iter().all(|read| {
            let key = (read.root.clone(), read.entry.clone());
            let known = trace.known.borrow().get(&key).copied();
            let digest = known.unwrap_or_else(|| {
                let digest = digest_of(self.untraced(&read.root, read.entry.as_deref()).as_ref());
                trace.known.borrow_mut().insert(key, digest);
                digest
            });
            digest == read.digest
        })
    }

    /// Returns the value of a root, or of one entry of it, without recording the read.
    pub(crate) fn untraced(&self, root: &str, entry: Option<&str>) -> Option<Value> {
        match entry {
            None => self.whole(root),
            Some(entry) => self.entry(root, entry, &[]).map(|(value, _)| value),
        }
    }

    fn named(&self, name: &str) -> Option<&Arc<Json>> {
        self.names
            .iter()
            .find(|(n, _)| &**n == name)
            .map(|(_, v)| v)
    }

    fn shared(&self, json: &Arc<Json>) -> Value {
        match self.transport {
            Some(transport) if holds_sealed(json) => from_json(opened(json, transport)),
            _ => shared(json),
        }
    }

    /// Returns one entry of a root, and the number of path steps that lead to it. `None` means that the root can be read only
    /// as a whole.
    fn entry(&self, root: &str, entry: &str, rest: &[&str]) -> Option<(Value, usize)> {
        if self.named(root).is_some() {
            return None;
        }
        Some(match root {
            "state" => (self.state(entry), 1),
            "config" => (self.config(entry), 1),
            "secrets" => (self.secret(entry), 1),
            "calls" => self.calls(entry, rest.first().copied()),
            "now" => {
                let now = self
                    .clock
                    .get_or_init(|| Arc::new(moment(self.now, &self.cx.network.timezone)));
                (
                    now.get(entry)
                        .map_or(Value::UNDEFINED, |v| from_json(v.clone())),
                    1,
                )
            }
            _ => return None,
        })
    }

    fn state(&self, name: &str) -> Value {
        let Some(scope) = self.declares(name) else {
            return Value::UNDEFINED;
        };
        let cell = self.snapshot.cell(scope, &name.into());
        cell.map_or(Value::from(()), |cell| self.shared(&cell.value.0))
    }

    /// Returns the instance that declares a state entry: the nearest one from this agent upward.
    fn declares(&self, name: &str) -> Option<Id> {
        let mut at = self.agent;
        while let Some(agent) = at {
            if self.declared(agent, name).is_some() {
                return Some(agent.id);
            }
            at = agent
                .family
                .parent
                .and_then(|id| self.snapshot.agents.get(&id));
        }
        None
    }

    /// Returns the line of the log that gave a variable its value, if a single line did.
    pub(crate) fn written(&self, root: &str, entry: Option<&str>) -> Option<Line> {
        let agent = self.agent?;
        match (root, entry) {
            ("state", Some(entry)) => {
                let scope = self.declares(entry)?;
                Some(self.snapshot.cell(scope, &entry.into())?.line)
            }
            ("calls", Some(name)) => {
                let count = agent.counters.calls.get(name)?;
                Some(count.result.or(count.args)?.line())
            }
            ("message", _) => Some(agent.input.message?.line()),
            ("args", Some("message")) => {
                let newest = self.newest(agent).or(agent.input.args);
                Some(newest?.line())
            }
            ("args", _) => Some(agent.input.args?.line()),
            _ => None,
        }
    }

    fn declared(&self, agent: &Agent, name: &str) -> Option<&'a Type> {
        let def = self.cx.network.agents.get(&agent.def)?;
        def.state.iter().find(|(n, _)| &**n == name).map(|(_, t)| t)
    }

    fn config(&self, name: &str) -> Value {
        let Some(config) = self.cx.network.config.get(name) else {
            return Value::UNDEFINED;
        };
        if config.live {
            let live = self.transport.and_then(|t| t.live(name));
            return live.map_or(Value::UNDEFINED, from_json);
        }
        let bound = self.bound();
        let value = bound.get("config").and_then(|c| c.get(name));
        let value = value.or(config.default.as_ref()).cloned();
        from_json(value.unwrap_or_default())
    }

    /// Returns the values that the session is bound to.
    fn bound(&self) -> &Arc<Json> {
        self.bound.get_or_init(|| {
            let values = self
                .snapshot
                .binding
                .as_ref()
                .map(|b| self.cx.bodies.text(b.values));
            let values = values.and_then(|text| serde_json::from_str::<Json>(&text).ok());
            Arc::new(values.unwrap_or_default())
        })
    }

    fn secret(&self, name: &str) -> Value {
        if !self.cx.network.secrets.contains_key(name) {
            return Value::UNDEFINED;
        }
        match self.transport {
            Some(transport) => match transport.secret(name) {
                Ok(Some(secret)) => Value::from(secret),
                Ok(None) => Value::from(()),
                // A secret that is missing or unreadable is undefined, so rendering fails and the request is not sent.
                Err(_) => Value::UNDEFINED,
            },
            None => from_json(json!({ SEALED: name })),
        }
    }

    /// Returns `calls.NAME`, or one field of it, and the number of steps after `calls`. A declared name without calls has zero
    /// counts.
    fn calls(&self, name: &str, field: Option<&str>) -> (Value, usize) {
        let network = self.cx.network;
        let count = self.agent.and_then(|agent| agent.counters.calls.get(name));
        let declared = network.tools.contains_key(name) || network.agents.contains_key(name);
        if !declared && !network.people.contains_key(name) && count.is_none() {
            return (Value::UNDEFINED, 1);
        }
        let zero = Count::default();
        let count = count.map_or(&zero, |count| count);
        match field {
            Some("ok") => (Value::from(count.ok), 2),
            Some("failed") => (Value::from(count.failed), 2),
            Some("args") => (self.parsed(count.args), 2),
            Some("result") => (self.text(count.result), 2),
            Some(_) | None => {
                let fields = [
                    ("ok", Value::from(count.ok)),
                    ("failed", Value::from(count.failed)),
                    ("args", self.parsed(count.args)),
                    ("result", self.text(count.result)),
                ];
                (Value::from_pairs(fields), 1)
            }
        }
    }

    fn text(&self, body: Option<Body>) -> Value {
        body.map_or(Value::from(()), |b| Value::from(&*self.cx.bodies.text(b)))
    }

    /// Returns the JSON of a body. A text that is not JSON (because it was erased) is returned unchanged.
    fn parsed(&self, body: Option<Body>) -> Value {
        let Some(body) = body else {
            return Value::from(());
        };
        let text = self.cx.bodies.text(body);
        match crate::values::json::read::<Json>(&text) {
            Ok(json) => self.shared(&Arc::new(json)),
            Err(_) => Value::from(&*text),
        }
    }

    /// Returns the agent's arguments as an object, with defaults, and null for optional arguments that are absent.
    fn arguments(&self) -> Option<Arc<Json>> {
        let agent = self.agent?;
        let def = self.cx.network.agents.get(&agent.def)?;
        let fields = match &def.parameters {
            Parameters::Fields(fields) => Some(fields),
            Parameters::Schema(_) => None,
        };
        let mut args = Map::new();
        if let Some(body) = agent.input.args {
            let text = self.cx.bodies.text(body);
            let given = crate::values::json::read::<Map<String, Json>>(&text).ok();
            let known = |name: &String| fields.is_none_or(|f| f.iter().any(|(n, _)| **n == **name));
            match given {
                // A root agent may get its message from a person. Such a text is an object only by chance, so it counts as
                // arguments only if all names are declared.
                Some(given) if agent.family.parent.is_some() || given.keys().all(known) => {
                    args = given;
                }
                _ if fields.is_some_and(|f| f.iter().any(|(n, _)| &**n == "message")) => {
                    args.insert("message".to_owned(), Json::from(&*text));
                }
                _ => {}
            }
        }
        if let Some(newest) = self.newest(agent) {
            args.insert(
                "message".to_owned(),
                Json::from(&*self.cx.bodies.text(newest)),
            );
        }
        Some(Arc::new(Json::Object(complete(
            args,
            fields.map_or(&[][..], |f| f),
        ))))
    }

    /// Returns the newest message of a root agent, if it came after the message that began the session, and the agent has a text
    /// parameter `message`: the person who writes again gives that argument again.
    fn newest(&self, agent: &Agent) -> Option<Body> {
        let newest = agent.input.message?;
        if agent.family.parent.is_some() || agent.input.args == Some(newest) {
            return None;
        }
        let Parameters::Fields(fields) = &self.cx.network.agents.get(&agent.def)?.parameters else {
            return None;
        };
        let mut fields = fields.iter();
        let takes = fields
            .any(|(name, ty)| &**name == "message" && matches!(ty.kind, TypeKind::String { .. }));
        takes.then_some(newest)
    }

    fn message(&self) -> Option<Json> {
        let agent = self.agent?;
        let body = agent.input.message?;
        let text = self.cx.bodies.text(body);
        let is_call = agent.input.args == Some(body) && agent.input.serving.is_some();
        let text_of_message = match crate::values::json::read::<Map<String, Json>>(&text) {
            Ok(args) if is_call => match args.get("message").and_then(Json::as_str) {
                Some(message) => message.to_owned(),
                None => text.to_string(),
            },
            _ => text.to_string(),
        };
        let from = match agent
            .family
            .parent
            .and_then(|id| self.snapshot.agents.get(&id))
        {
            Some(parent) if is_call => parent.def.to_string(),
            _ => "user".to_owned(),
        };
        let artifacts: Vec<Name> = artifact::attached(self.snapshot, body);
        let artifacts: Vec<&str> = artifacts.iter().map(|name| &**name).collect();
        Some(json!({ "text": text_of_message, "from": from, "artifacts": artifacts }))
    }

    fn route(&self) -> Option<Json> {
        let routing = &self.agent?.routing;
        let last = routing.last.as_ref();
        let text = |body: Body| Json::from(&*self.cx.bodies.text(body));
        Some(json!({
            "count": routing.count,
            "pending": routing.pending.iter().map(|n| &**n).collect::<Vec<_>>(),
            "last": {
                "agent": last.map(|(name, ..)| &**name),
                "result": last.and_then(|(_, _, body)| *body).map(text),
                "ok": last.map(|(_, how, _)| How::is_ok(*how)),
            },
        }))
    }

    fn branch(&self) -> Json {
        let of = self.snapshot.of;
        // The name must not contain the id: prompts read it, and ids differ after a takeover.
        let name = match of {
            Some((index, _)) => format!("b{index}"),
            None if self.snapshot.branch == Id::MAIN => "main".to_owned(),
            None => "branch".to_owned(),
        };
        json!({
            "name": name,
            "index": of.map(|(index, _)| index),
            "of": of.map(|(_, of)| of),
        })
    }

    /// Returns the value of a whole root.
    fn whole(&self, root: &str) -> Option<Value> {
        if let Some(json) = self.named(root) {
            return Some(self.shared(json));
        }
        Some(match root {
            "state" => object_of(self.state_names(), |n| self.state(n)),
            "config" => {
                let plain = self.cx.network.config.iter().filter(|(_, c)| !c.live);
                object_of(plain.map(|(n, _)| n.clone()).collect(), |n| self.config(n))
            }
            "secrets" => {
                let names = self.cx.network.secrets.keys().cloned().collect();
                object_of(names, |n| self.secret(n))
            }
            "calls" => {
                let network = self.cx.network;
                let names = network.tools.keys().chain(network.agents.keys());
                object_of(names.cloned().collect(), |n| self.calls(n, None).0)
            }
            "now" => shared(
                self.clock
                    .get_or_init(|| Arc::new(moment(self.now, &self.cx.network.timezone))),
            ),
            "args" => {
                let args = self.args.get_or_init(|| self.arguments());
                self.shared(args.as_ref()?)
            }
            "message" => from_json(self.message()?),
            "route" => from_json(self.route()?),
            "before" => {
                let before = self.agent?.input.before.iter();
                Value::from_pairs(before.map(|(name, gave)| (name.to_string(), self.text(*gave))))
            }
            "agent" => Value::from(&*self.agent?.def),
            "mode" => {
                let agent = self.agent?;
                let def = self.cx.network.agents.get(&agent.def)?;
                let mode = def.mode(agent.mode.as_ref());
                mode.map_or(Value::from(()), |mode| Value::from(&*mode.name))
            }
            "session" => Value::from(&*self.cx.network.name),
            "branch" => from_json(self.branch()),
            "answer" => {
                let root = self.snapshot.root_agent()?;
                let Some(body) = root.turn.answer else {
                    return Some(Value::from(()));
                };
                let answer = self.cx.bodies.text(body);
                from_json(self.cx.network.answered(&root.def, &answer))
            }
            "artifacts" => self.artifacts(),
            _ => return None,
        })
    }

    /// Returns the entries of state that the agent sees, its own first.
    pub(crate) fn state_names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        let mut at = self.agent;
        while let Some(agent) = at {
            let def = self.cx.network.agents.get(&agent.def);
            for (name, _) in def.map_or(&[][..], |d| &d.state) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            at = agent
                .family
                .parent
                .and_then(|id| self.snapshot.agents.get(&id));
        }
        names
    }

    /// Returns the session's seed.
    pub(crate) fn seed(&self) -> u64 {
        self.bound().get("seed").and_then(Json::as_u64).unwrap_or(1)
    }

    /// Returns true if the agent sees an artifact.
    pub(crate) fn sees_artifacts(&self) -> bool {
        let agent = self.agent.or_else(|| self.snapshot.root_agent());
        agent.is_some_and(|agent| artifact::sees_any(self.snapshot, agent.id))
    }

    fn artifacts(&self) -> Value {
        let seen = artifact::seen(self.snapshot, self.agent.map(|agent| agent.id));
        let entries = seen.into_iter().map(|seen| {
            let last = seen.versions.last();
            let entry = json!({
                "name": seen.name,
                "versions": seen.versions.len(),
                "media": last.map(|a| &*a.media),
                "bytes": last.map(|a| a.len),
                "rating": last.and_then(|a| rating::of(self.snapshot, a)).map(|r| r.rating),
            });
            (seen.name, from_json(entry))
        });
        Value::from_pairs(entries)
    }
}

/// Format of a time with its offset from UTC.
const ISO: &str = "%Y-%m-%dT%H:%M:%S%:z";

/// Formats a time in a zone as templates see it (`now.iso`).
pub fn iso(at: Time, zone: &str) -> String {
    zoned(at, zone).strftime(ISO).to_string()
}

/// Returns a time in a zone as templates see it (`now`): date, time, weekday, and all of it.
pub fn moment(at: Time, zone: &str) -> Json {
    let at = zoned(at, zone);
    json!({
        "date": at.strftime("%Y-%m-%d").to_string(),
        "time": at.strftime("%H:%M").to_string(),
        "weekday": at.strftime("%A").to_string(),
        "iso": at.strftime(ISO).to_string(),
    })
}

fn zoned(at: Time, zone: &str) -> jiff::Zoned {
    let zone = jiff::tz::TimeZone::get(zone).unwrap_or(jiff::tz::TimeZone::UTC);
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.to_zoned(zone)
}

impl Scope for View<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        let value = self.whole(name);
        if let Some(trace) = self.trace
            && self.named(name).is_none()
        {
            trace.note(name, None, || digest_of(value.as_ref()));
        }
        value
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        let found = steps
            .split_first()
            .and_then(|(entry, rest)| self.entry(root, entry, rest).map(|found| (entry, found)));
        let Some((entry, found)) = found else {
            return self.root(root).map(|value| (value, 0));
        };
        if let Some(trace) = self.trace {
            trace.note(root, Some(entry), || {
                digest_of(self.untraced(root, Some(entry)).as_ref())
            });
        }
        Some(found)
    }
}

/// Returns an object of these names with their values.
fn object_of(names: Vec<Name>, value: impl Fn(&str) -> Value) -> Value {
    Value::from_pairs(names.iter().map(|name| (name.to_string(), value(name))))
}

/// Returns the arguments with declared defaults, and null for optional arguments that are absent.
pub fn complete(mut args: Map<String, Json>, fields: &[(Name, Type)]) -> Map<String, Json> {
    for (name, ty) in fields {
        if !args.contains_key(&**name) && (ty.optional || ty.default.is_some()) {
            args.insert(name.to_string(), ty.default.clone().unwrap_or_default());
        }
    }
    args
}

/// Returns the instance that declares a state entry, and the entry's type: the nearest one from the agent upward.
pub fn declares<'a>(
    cx: &Cx<'a>,
    snapshot: &Snapshot,
    agent: Id,
    name: &str,
) -> Option<(Id, &'a Type)> {
    let mut at = Some(agent);
    while let Some(id) = at {
        let agent = snapshot.agents.get(&id)?;
        let def = cx.network.agents.get(&agent.def);
        let ty = def.and_then(|d| d.state.iter().find(|(n, _)| &**n == name));
        if let Some((_, ty)) = ty {
            return Some((id, ty));
        }
        at = agent.family.parent;
    }
    None
}

/// Returns true if a type is a secret.
pub fn is_secret(ty: &Type) -> bool {
    matches!(ty.kind, TypeKind::Secret)
}

fn digest_of(value: Option<&Value>) -> Digest {
    match value {
        Some(value) if !value.is_undefined() => {
            let json = crate::values::expression::to_json(value).unwrap_or_default();
            Digest::of(json.to_string().as_bytes())
        }
        _ => Digest::of(b""),
    }
}

fn holds_sealed(json: &Json) -> bool {
    match json {
        json if is_sealed(json) => true,
        Json::Array(list) => list.iter().any(holds_sealed),
        Json::Object(fields) => fields.values().any(holds_sealed),
        _ => false,
    }
}

fn opened(json: &Json, transport: &dyn Transport) -> Json {
    match json {
        json if is_sealed(json) => transport.open(json).unwrap_or_else(|| json.clone()),
        Json::Array(list) => list.iter().map(|j| opened(j, transport)).collect(),
        Json::Object(fields) => Json::Object(
            fields
                .iter()
                .map(|(k, v)| (k.clone(), opened(v, transport)))
                .collect(),
        ),
        plain => plain.clone(),
    }
}
