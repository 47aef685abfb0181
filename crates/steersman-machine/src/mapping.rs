//! Maps what a tool, person or wait gave to what becomes of it: what the model sees, what state it writes, which
//! fields are secret. Pure; the driver calls it, seals what is secret, then offers the outcome.
//!
//! A field of a raw result that `set` writes to a secret reads `(sealed)` in everything that is shown, stored or
//! handed on. Nothing here fails: what does not fit is an outcome with a code.

mod secret;

use crate::artifact::{self, Content};
use crate::bounds::{self, ARTIFACT, VALUE, VALUE_DEPTH};
use crate::effect::{Mapped, NewWrite};
use crate::expression::{Data, EvalError, Template, shown_json};
use crate::ids::{Id, Name};
use crate::interaction::{Class, How, Reduce, Target};
use crate::network::{
    BuiltIn, OnError, Parameters, Silence, Source, Then, ToolDef, Type, TypeKind,
};
use crate::notes;
use crate::snapshot::{OpenCall, Snapshot, is_sealed};
use crate::tick::Cx;
use crate::types::{Misfit, misfit};
use crate::view::{View, complete, is_secret};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

pub use crate::view::declares;

/// What is wrong with a value that is nested deeper than [`VALUE_DEPTH`].
pub(crate) const TOO_DEEP: &str = "is nested more than 64 deep";
const _: () = assert!(VALUE_DEPTH == 64, "the words say so");

/// What a source gave, as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// It is done; its result.
    Done(Json),
    /// It is done, and gave more than its result: contents, which become artifacts, or a mode.
    Made {
        /// Its result.
        result: Json,
        /// The contents, in their order.
        made: Vec<Content>,
        /// The mode in which its caller is to be next, where the tool says so.
        mode: Option<String>,
    },
    /// It is proved not to have happened.
    NotPerformed(Fault),
    /// Nobody knows whether it happened.
    Unknown(Fault),
    /// It ran to its end, and says itself that it failed: it is over, and nothing is in doubt.
    Failed(Fault),
}

impl Raw {
    /// The same with another word on why, where there is one.
    pub fn map_fault(self, map: impl FnOnce(Fault) -> Fault) -> Self {
        match self {
            Self::NotPerformed(fault) => Self::NotPerformed(map(fault)),
            Self::Unknown(fault) => Self::Unknown(map(fault)),
            Self::Failed(fault) => Self::Failed(map(fault)),
            done @ (Self::Done(_) | Self::Made { .. }) => done,
        }
    }
}

/// Why.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Code of `on_error`: `http_404`, `timeout`, `failed`.
    pub code: String,
    /// For the model and people.
    pub message: String,
    /// HTTP status or exit code.
    pub status: Option<i64>,
    /// Trying again may help, after so many milliseconds at least.
    pub again: Option<u64>,
}

impl Fault {
    /// With a code and a message alone.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            status: None,
            again: None,
        }
    }
}

/// Maps what came of a call that is open.
///
/// Codes that say more than *failed* end the call accordingly: `refused`, `rejected`, `in_doubt` of an effect that
/// was not run: refused; `expired`, and `timeout` of a wait or person: expired; `cancelled`, `limit`,
/// `done_before` and `not_in_this_branch` as they say.
pub fn map(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id, raw: &Raw) -> Mapped {
    let Some(open) = snapshot.call(owner, call) else {
        return Mapped::plain(How::Failed, Some("failed"), "failed: the call is not open");
    };
    let at = At::new(cx, snapshot, open);
    match raw {
        Raw::Done(result) => at.done(result, How::Done),
        Raw::Made { result, made, mode } => {
            let mapped = at.made(result, made);
            let said = mode.clone().filter(|_| mapped.how == How::Done);
            Mapped {
                mode: said.or(mapped.mode),
                ..mapped
            }
        }
        Raw::NotPerformed(fault) => at.fault(fault, at.how(fault)),
        Raw::Failed(fault) => at.fault(fault, How::Failed),
        // Harmless effects leave no doubt behind: they failed.
        Raw::Unknown(fault) if at.class().is_free() => at.fault(fault, How::Failed),
        Raw::Unknown(fault) => {
            let mut doubt = fault.clone();
            "in_doubt".clone_into(&mut doubt.code);
            doubt.message = format!("it may have happened ({})", fault.message);
            at.fault(&doubt, How::Unknown)
        }
    }
}

/// The whole of a result, where one of its fields is named otherwise: [`needed`].
pub const WHOLE: &str = "result";

/// What a tool's `set`, `result`, `mode` and `then` read of its result and have no default for: fields, in dots, or
/// [`WHOLE`]. Somebody who says that a call happened has to give these.
pub fn needed(tool: &ToolDef) -> Vec<String> {
    let set = tool.set.iter().map(|(_, data)| data);
    let then = tool.then.iter().flat_map(|then| &then.args).flatten();
    let data = set.chain(then.map(|(_, data)| data));
    let texts = tool.result.iter().chain(&tool.mode);
    secret::needed(data.flat_map(Data::templates).chain(texts))
}

/// What another tool found out about an open call, for people: as the call's own result would read, what is secret masked.
pub fn told(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id, result: &Json) -> String {
    let set = snapshot
        .call(owner, call)
        .and_then(|open| cx.network.tools.get(&open.call.name))
        .map_or(&[][..], |tool| &tool.set);
    shown(&secret::masked(result, set, |name| {
        target(cx, snapshot, owner, name)
    }))
}

/// A person answered: their words are the result.
pub fn answer(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    owner: Id,
    call: Id,
    text: &str,
    by: &str,
) -> Mapped {
    let mut mapped = map(cx, snapshot, owner, call, &Raw::Done(text.into()));
    mapped.by = Some(by.to_owned());
    mapped
}

/// What dry mode answers in a tool's place, from its `simulate:`; none: it has none, and the block ends there.
pub fn simulate(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id) -> Option<Mapped> {
    let open = snapshot.call(owner, call)?;
    let at = At::new(cx, snapshot, open);
    let data = at.tool?.simulate.as_ref()?;
    Some(match data.eval(&at.view()) {
        Ok(result) => at.done(&result, How::Simulated),
        Err(e) => plain_fault(How::Failed, "failed", &format!("simulate: {e}")),
    })
}

/// The arguments of an open call as they run: those that a person edited, else the model's; those fixed by the
/// definition; defaults; and null for what is optional and absent.
pub fn arguments(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Map<String, Json> {
    let text = cx.bodies.text(open.edited.unwrap_or(open.call.args));
    let mut args = crate::json::read::<Map<String, Json>>(&text).unwrap_or_default();
    if open.edited.is_none() {
        let seen = open.call.seen.as_ref().unwrap_or(&open.call.name);
        for (name, value) in fixed(cx, snapshot, open.owner, seen, &args) {
            args.insert(name, value);
        }
    }
    let network = cx.network;
    let parameters = match network.tools.get(&open.call.name) {
        Some(tool) => Some(&tool.parameters),
        None => network.agents.get(&open.call.name).map(|a| &a.parameters),
    };
    match parameters {
        Some(Parameters::Fields(fields)) => complete(args, fields),
        Some(Parameters::Schema(_)) | None => args,
    }
}

/// Arguments that the definition fixes for this use of a tool; one whose template fails is left out, so that it is
/// missing where it is checked.
pub fn fixed(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    owner: Id,
    seen: &str,
    args: &Map<String, Json>,
) -> Map<String, Json> {
    let agent = snapshot.agents.get(&owner);
    let model = agent.and_then(|agent| cx.network.in_force(agent));
    let uses = model.map_or(&[][..], |model| &model.tools);
    let Some(used) = uses.iter().find(|u| *u.seen == *seen && !u.args.is_empty()) else {
        return Map::new();
    };
    let view = View::new(cx, snapshot, Some(owner)).with("args", Json::Object(args.clone()));
    let values = used.args.iter().filter_map(|(name, data)| {
        let value = data.eval_field(&view).ok()??;
        Some((name.to_string(), value))
    });
    values.collect()
}

/// What an agent's end writes: its `output: state.NAME` and its `set`, over `result`. A value that does not fit
/// its entry is an error that names it.
pub fn ended(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    answer: &str,
) -> Result<Vec<NewWrite>, Fault> {
    let state = snapshot.agent(agent);
    let Some(def) = cx.network.agents.get(&state.def) else {
        return Ok(Vec::new());
    };
    let result = match &def.output {
        Some(output) => output.value(answer).map_err(|why| {
            Fault::new("misfit", format!("the answer is not what is wanted: {why}"))
        })?,
        None => Json::from(answer),
    };
    let mut writes = Vec::new();
    if let Some(name) = def.output.as_ref().and_then(|o| o.into.as_ref()) {
        writes.push(write(cx, snapshot, agent, name, result.clone())?);
    }
    let masked = secret::masked(&result, &def.set, |n| target(cx, snapshot, agent, n));
    let clear = View::new(cx, snapshot, Some(agent)).with("result", result);
    let shown = View::new(cx, snapshot, Some(agent)).with("result", masked);
    for (name, data) in &def.set {
        let view = if target(cx, snapshot, agent, name).is_some_and(is_secret) {
            &clear
        } else {
            &shown
        };
        writes.push(write_of(cx, snapshot, agent, name, data, view)?);
    }
    Ok(writes)
}

fn target<'a>(cx: &Cx<'a>, snapshot: &Snapshot, scope: Id, name: &str) -> Option<&'a Type> {
    declares(cx, snapshot, scope, name).map(|(_, ty)| ty)
}

/// A call and all that its mapping reads.
struct At<'a> {
    cx: &'a Cx<'a>,
    snapshot: &'a Snapshot,
    open: &'a OpenCall,
    tool: Option<&'a ToolDef>,
    args: Arc<Json>,
}

impl<'a> At<'a> {
    fn new(cx: &'a Cx<'a>, snapshot: &'a Snapshot, open: &'a OpenCall) -> Self {
        Self {
            cx,
            snapshot,
            open,
            tool: cx.network.tools.get(&open.call.name),
            args: Arc::new(Json::Object(arguments(cx, snapshot, open))),
        }
    }

    fn view(&self) -> View<'a> {
        View::new(self.cx, self.snapshot, Some(self.open.owner))
            .with_shared("args", self.args.clone())
    }

    fn class(&self) -> Class {
        match self.open.call.target {
            Target::Tool(class) => class,
            Target::Agent(_)
            | Target::Person(_)
            | Target::Wait
            | Target::Branches(_)
            | Target::Unknown => Class::Pure,
        }
    }

    fn target(&self, name: &str) -> Option<&'a Type> {
        target(self.cx, self.snapshot, self.open.owner, name)
    }

    // --- it is done

    fn made(&self, result: &Json, made: &[Content]) -> Mapped {
        for content in made {
            let size = content.bytes.len();
            let why = artifact::misnamed(&content.name).or_else(|| {
                let most = ARTIFACT >> 20;
                (size > ARTIFACT)
                    .then(|| format!("`{}` has {size} bytes, more than {most} MiB", content.name))
            });
            if let Some(why) = why {
                return self.unfit(&why);
            }
        }
        let mut mapped = self.done(result, How::Done);
        if mapped.how != How::Done {
            return mapped;
        }
        // What the result does not name the model would not find.
        let mut told = mapped.shown.take().unwrap_or_default();
        if result.is_null() && self.tool.is_some_and(|tool| tool.result.is_none()) {
            told.clear();
        }
        for content in made {
            if !told.contains(&content.name) {
                let (name, media, size) = (&content.name, &content.media, content.bytes.len());
                let between = if told.is_empty() { "" } else { "\n" };
                told = format!("{told}{between}(artifact {name}: {media}, {size} bytes)");
            }
            mapped.artifacts.push(content.version());
        }
        mapped.shown = Some(told);
        mapped
    }

    fn done(&self, result: &Json, how: How) -> Mapped {
        let Some(tool) = self.tool else {
            return Mapped::plain(how, None, shown(result));
        };
        if is_empty(result) && tool.on_error.contains_key("empty") {
            return self.fault(&Fault::new("empty", "there is no result"), How::Failed);
        }
        let masked = secret::masked(result, &tool.set, |name| self.target(name));
        let clear = self.view().with("result", result.clone());
        let view = self.view().with("result", masked.clone());
        let mut writes = Vec::with_capacity(tool.set.len());
        for (name, data) in &tool.set {
            let view = if self.target(name).is_some_and(is_secret) {
                &clear
            } else {
                &view
            };
            match write_of(self.cx, self.snapshot, self.open.owner, name, data, view) {
                Ok(write) => writes.push(write),
                Err(fault) => return self.unfit(&fault.message),
            }
        }
        let told = || match tool.source {
            Source::BuiltIn(BuiltIn::NotesSearch | BuiltIn::MemorySearch | BuiltIn::MemoryRead) => {
                notes::quoted(&masked)
            }
            _ => shown(&masked),
        };
        let text = match rendered(tool.result.as_ref(), &view) {
            Ok(text) => text.unwrap_or_else(told),
            Err(e) => return self.unfit(&format!("result: {e}")),
        };
        let mode = match rendered(tool.mode.as_ref(), &view) {
            Ok(mode) => mode.map(|mode| mode.trim().to_owned()),
            Err(e) => return self.unfit(&format!("mode: {e}")),
        };
        match self.then(tool.then.as_ref(), &view, &masked) {
            Ok(then) => Mapped {
                writes,
                then,
                mode: mode.filter(|mode| !mode.is_empty()),
                ..Mapped::plain(how, None, text)
            },
            Err(e) => self.unfit(&format!("then: {e}")),
        }
    }

    /// It is done, and what it gave does not fit the definition. A model that reads of a failure tries again, so it is told
    /// what is so.
    fn unfit(&self, why: &str) -> Mapped {
        let message = match self.class() {
            Class::Idempotent | Class::Unsafe => {
                format!(
                    "it was carried out, so do not call it again; but what it gave does not fit: {why}"
                )
            }
            Class::Pure | Class::Read => why.to_owned(),
        };
        self.fault(&Fault::new("misfit", message), How::Failed)
    }

    fn then(
        &self,
        then: Option<&Then>,
        view: &View<'_>,
        result: &Json,
    ) -> Result<Option<(String, Json)>, EvalError> {
        let Some(then) = then else { return Ok(None) };
        let args = match &then.args {
            Some(args) => crate::expression::arguments(args, view)?,
            None => self.handed_on(&then.tool, result),
        };
        Ok(Some((then.tool.to_string(), Json::Object(args))))
    }

    /// Without `args` the next tool gets the result: as its arguments if it is an object, else as its one argument, if it
    /// has one.
    fn handed_on(&self, tool: &Name, result: &Json) -> Map<String, Json> {
        let parameters = self.cx.network.tools.get(tool).map(|t| &t.parameters);
        match (result, parameters) {
            (Json::Object(fields), Some(Parameters::Fields(declared)))
                if fields
                    .keys()
                    .all(|k| declared.iter().any(|(n, _)| **n == **k)) =>
            {
                fields.clone()
            }
            (_, Some(Parameters::Fields(declared))) if declared.is_empty() => Map::new(),
            (_, Some(Parameters::Fields(declared))) if declared.len() == 1 => {
                Map::from_iter([(declared[0].0.to_string(), result.clone())])
            }
            (Json::Object(fields), _) => fields.clone(),
            _ => Map::from_iter([("result".to_owned(), result.clone())]),
        }
    }

    // --- it is not

    /// How a call ends that is proved not to have happened.
    fn how(&self, fault: &Fault) -> How {
        let waits = matches!(self.open.call.target, Target::Wait | Target::Person(_))
            || self
                .tool
                .is_some_and(|t| matches!(t.source, Source::Wait(_) | Source::Ask(_)));
        match &*fault.code {
            "refused" | "rejected" | "in_doubt" => How::Refused,
            "expired" => How::Expired,
            "timeout" if waits => How::Expired,
            "cancelled" => How::Cancelled,
            "limit" => How::Limit,
            "done_before" => How::DoneBefore,
            "not_in_this_branch" => How::NotInThisBranch,
            _ => How::Failed,
        }
    }

    fn fault(&self, fault: &Fault, how: How) -> Mapped {
        if how == How::Expired
            && fault.code == "timeout"
            && let Some((template, answers)) = self.instead()
        {
            return match template.value(&self.view()) {
                Ok(answer) if answers => self.answered_by_time(&answer),
                // The other side is told: that is no answer, and no error.
                Ok(said) => Mapped::plain(how, None, shown(&said)),
                Err(e) => plain_fault(how, &fault.code, &format!("on_timeout: {e}")),
            };
        }
        let Some(entry) = self.tool.and_then(|tool| entry(tool, &fault.code)) else {
            return plain_fault(how, &fault.code, &fault.message);
        };
        let error = json!({
            "code": fault.code,
            "message": fault.message,
            "status": fault.status,
        });
        let view = self.view().with("error", error.clone());
        let mut writes = Vec::with_capacity(entry.set.len());
        for (name, data) in &entry.set {
            match write_of(self.cx, self.snapshot, self.open.owner, name, data, &view) {
                Ok(write) => writes.push(write),
                Err(second) => {
                    let message = format!("{}; on_error: {}", fault.message, second.message);
                    return plain_fault(how, &fault.code, &message);
                }
            }
        }
        let text = match rendered(entry.result.as_ref(), &view) {
            Ok(text) => text.unwrap_or_else(|| sentence(&fault.code, &fault.message)),
            Err(e) => {
                return plain_fault(
                    how,
                    &fault.code,
                    &format!("{}; on_error: {e}", fault.message),
                );
            }
        };
        match self.then(entry.then.as_ref(), &view, &error) {
            Ok(then) => Mapped {
                writes,
                then,
                ..Mapped::plain(how, Some(&fault.code), text)
            },
            Err(e) => plain_fault(how, &fault.code, &format!("{}; then: {e}", fault.message)),
        }
    }

    /// What is answered where the time of a wait or a person ran out.
    /// The definition answers in somebody's place: that is done, and writes what an answer writes. An answer in the place of
    /// an event has none of its fields: where `set`, `result` or `then` read these, it is the text alone.
    fn answered_by_time(&self, answer: &Json) -> Mapped {
        let mut mapped = self.done(answer, How::Done);
        let waits = matches!(self.tool.map(|t| &t.source), Some(Source::Wait(_)));
        if waits && mapped.code.is_some() {
            mapped = Mapped::plain(How::Done, None, shown(answer));
        }
        mapped.by = Some("timeout".to_owned());
        mapped
    }

    /// What stands in the place of an answer that did not come in time, and whether that is the answer.
    fn instead(&self) -> Option<(&'a Template, bool)> {
        let network = self.cx.network;
        match (&self.open.call.target, self.tool.map(|t| &t.source)) {
            (_, Some(Source::Wait(wait))) => Some((wait.on_timeout.as_ref()?, true)),
            (_, Some(Source::Ask(person))) | (Target::Person(person), _) => {
                Some(match network.people.get(person)?.on_timeout.as_ref()? {
                    Silence::Answer(text) => (text, true),
                    Silence::Say(text) => (text, false),
                })
            }
            _ => None,
        }
    }
}

/// Whether the definition says what follows this code.
pub(crate) fn handles(tool: &ToolDef, code: &str) -> bool {
    entry(tool, code).is_some()
}

/// The entry of `on_error` that fits best: `http_404`, `http_4xx`, `failed`, `*`. What was done elsewhere, and an
/// empty result, are no failures: only their own names meet them.
fn entry<'a>(tool: &'a ToolDef, code: &str) -> Option<&'a OnError> {
    let class = code
        .strip_prefix("http_")
        .filter(|status| status.len() == 3)
        .map(|status| format!("http_{}xx", &status[..1]));
    let failed = class.is_some()
        || matches!(code, "failed" | "timeout" | "misfit" | "cancelled")
        || code.starts_with("ended_");
    let by_name = tool.on_error.get(code);
    by_name
        .or_else(|| tool.on_error.get(&class?))
        .or_else(|| tool.on_error.get("failed").filter(|_| failed))
        .or_else(|| {
            let any = !matches!(code, "done_before" | "empty" | "not_in_this_branch");
            tool.on_error.get("*").filter(|_| any)
        })
}

fn rendered(template: Option<&Template>, view: &View<'_>) -> Result<Option<String>, EvalError> {
    template.map(|t| t.render(view)).transpose()
}

fn plain_fault(how: How, code: &str, message: &str) -> Mapped {
    Mapped::plain(how, Some(code), sentence(code, message))
}

fn sentence(code: &str, message: &str) -> String {
    match (code, message) {
        ("done_before", message) => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{code}: {message}"),
    }
}

/// A result as the model sees it where nothing else is said: text as it is, all else as compact JSON.
pub fn shown(result: &Json) -> String {
    match result {
        Json::String(text) => text.clone(),
        Json::Null => "ok".to_owned(),
        json => shown_json(json).to_string(),
    }
}

fn is_empty(result: &Json) -> bool {
    match result {
        Json::Null => true,
        Json::Array(list) => list.is_empty(),
        Json::String(text) => text.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::Object(_) => false,
    }
}

fn write_of(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    writer: Id,
    name: &Name,
    data: &Data,
    view: &View<'_>,
) -> Result<NewWrite, Fault> {
    let value = data
        .eval(view)
        .map_err(|e| Fault::new("misfit", format!("set {name}: {e}")))?;
    write(cx, snapshot, writer, name, value)
}

/// A write of a value that fits its entry.
pub(crate) fn write(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    writer: Id,
    name: &Name,
    value: Json,
) -> Result<NewWrite, Fault> {
    let bad = |why: String| Fault::new("misfit", why);
    let Some(ty) = target(cx, snapshot, writer, name) else {
        return Err(bad(format!("no state `{name}` is declared here")));
    };
    if value.is_null() {
        // Unsetting is allowed where `none` is a value of the entry.
        return match misfit(ty, &value) {
            Some(found) => Err(bad(found.under(&format!("state.{name}")).to_string())),
            None => Ok(NewWrite {
                name: name.to_string(),
                value: None,
                seal: false,
            }),
        };
    }
    if let Some(found) = reduced_misfit(ty, &value) {
        return Err(bad(found.under(&format!("state.{name}")).to_string()));
    }
    if bounds::is_too_deep(&value) {
        return Err(bad(format!("`state.{name}` {TOO_DEEP}")));
    }
    let size = bounds::size(&value);
    if size > VALUE {
        let most = VALUE >> 10;
        return Err(bad(format!(
            "`state.{name}` has {size} bytes, more than {most} KiB"
        )));
    }
    let seal = is_secret(ty) && !is_sealed(&value);
    Ok(NewWrite {
        name: name.to_string(),
        value: Some(value),
        seal,
    })
}

/// What is joined to a list may be one element of it.
pub(crate) fn reduced_misfit(ty: &Type, value: &Json) -> Option<Misfit> {
    match (ty.reduce, &ty.kind) {
        (Reduce::Append, TypeKind::List(items)) if !value.is_array() => misfit(items, value),
        (Reduce::Merge, TypeKind::Fields(fields)) => {
            let object = value.as_object()?;
            let given = fields.iter().filter(|(n, _)| object.contains_key(&**n));
            let part = Type {
                kind: TypeKind::Fields(given.cloned().collect()),
                ..ty.clone()
            };
            misfit(&part, value)
        }
        _ => misfit(ty, value),
    }
}
