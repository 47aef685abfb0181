//! Maps the raw result of a tool, person or wait to its consequences: the text for the model, the state writes, the secret
//! fields. The functions are pure. For an effect the driver calls them, seals the secrets, and then offers the outcome.
//!
//! If `set` writes a field of a raw result to a secret, that field reads `(sealed)` in everything that is shown, stored or
//! handed on. A raw result that does not fit is no error: it becomes an outcome with a code.

mod secret;

use crate::network::{OnError, Silence, Source, Then, ToolDef, notes};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::bounds::{self, ARTIFACT, VALUE, VALUE_DEPTH};
use crate::stored::built_in::BuiltIn;
use crate::stored::by::{By, Decider};
use crate::stored::codes::{self, Caught, Code};
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::{Class, How, Reduce, Target};
use crate::stored::outcome::{Mapped, NewWrite};
use crate::stored::parts::stand_in;
use crate::values::expression::{Data, EvalError, Template, shown_json};
use crate::values::json::is_sealed;
use crate::values::types::{Misfit, Parameters, Type, TypeKind, misfit};
use crate::view::artifact::{self, Content};
use crate::view::{Cx, View, complete, declares, is_secret};
use serde_json::{Map, Value as Json, json};
use std::cell::OnceCell;
use std::sync::Arc;

/// Error text for a value that is nested deeper than [`VALUE_DEPTH`].
pub(crate) const TOO_DEEP: &str = "is nested more than 64 deep";
const _: () = assert!(VALUE_DEPTH == 64, "the words say so");
/// Maximum number of characters of a template in a message.
const TOLD: usize = 80;

/// The raw outcome of a tool, person or wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// It happened, with this result.
    Done(Json),
    /// It happened, and gave more than a result: contents, which become artifacts, writes of state, or a mode.
    Made {
        /// Result of the tool.
        result: Json,
        /// The contents, in their order.
        made: Vec<Content>,
        /// Entries of state and their new values, in order. They follow the writes of the tool's `set`. `null` unsets an entry.
        writes: Vec<(String, Json)>,
        /// The next mode of the caller, if the tool sets one.
        mode: Option<String>,
    },
    /// It is proved not to have happened.
    NotPerformed(Fault),
    /// It is unknown whether it happened.
    Unknown(Fault),
    /// It ran to its end and reports that it failed. It is over, and nothing is in doubt.
    Failed(Fault),
}

impl Raw {
    /// Returns this outcome with its fault mapped, if it has one.
    pub fn map_fault(self, map: impl FnOnce(Fault) -> Fault) -> Self {
        match self {
            Self::NotPerformed(fault) => Self::NotPerformed(map(fault)),
            Self::Unknown(fault) => Self::Unknown(map(fault)),
            Self::Failed(fault) => Self::Failed(map(fault)),
            done @ (Self::Done(_) | Self::Made { .. }) => done,
        }
    }
}

/// The reason why a call has no good result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Code for `on_error`: `http_404`, `timeout`, `failed`.
    pub code: String,
    /// Message for the model and people.
    pub message: String,
    /// HTTP status or exit code.
    pub status: Option<i64>,
    /// A retry may help, after at least this many milliseconds. `None` means no advice.
    pub again: Option<u64>,
}

impl Fault {
    /// Makes a fault with a code and a message alone.
    pub fn new(code: impl AsRef<str>, message: impl Into<String>) -> Self {
        Self {
            code: code.as_ref().to_owned(),
            message: message.into(),
            status: None,
            again: None,
        }
    }
}

/// Returns the fault of a call that was carried out, and whose result cannot be used.
pub fn unfit(class: Class, why: &str) -> Fault {
    let message = match class {
        Class::Idempotent | Class::Unsafe => format!(
            "it was carried out, so do not call it again; but what it gave does not fit: {why}"
        ),
        Class::Pure | Class::Read => why.to_owned(),
    };
    Fault::new(Code::Misfit, message)
}

/// Maps the raw outcome of an open call.
///
/// If it is proved that the call did not happen, the code of its fault decides how it ends ([`Code::how`]).
pub fn map(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id, raw: &Raw) -> Mapped {
    let Some(open) = snapshot.call(owner, call) else {
        return Mapped::plain(
            How::Failed,
            Some(Code::Failed.text()),
            "failed: the call is not open",
        );
    };
    let at = At::new(cx, snapshot, open);
    match raw {
        Raw::Done(result) => at.done(result, How::Done),
        Raw::Made {
            result,
            made,
            writes,
            mode,
        } => {
            let mapped = at.made(result, made, writes);
            let said = mode.clone().filter(|_| mapped.how == How::Done);
            Mapped {
                mode: said.or(mapped.mode),
                ..mapped
            }
        }
        Raw::NotPerformed(fault) => at.fault(fault, at.how(fault)),
        Raw::Failed(fault) => at.fault(fault, How::Failed),
        // Harmless effects are never in doubt: they failed.
        Raw::Unknown(fault) if at.class().is_free() => at.fault(fault, How::Failed),
        Raw::Unknown(fault) => {
            let mut doubt = fault.clone();
            Code::InDoubt.text().clone_into(&mut doubt.code);
            doubt.message = format!("it may have happened ({})", fault.message);
            at.fault(&doubt, How::Unknown)
        }
    }
}

/// Name for the whole of a result, in the list that [`needed`] returns.
pub const WHOLE: &str = "result";

/// Returns the parts of its result that a tool's `set`, `result`, `mode` and `then` read without a default: fields, as dotted
/// paths, or [`WHOLE`]. A person who says that a call happened has to give these.
pub fn needed(tool: &ToolDef) -> Vec<String> {
    let set = tool.set.iter().map(|(_, data)| data);
    let then = tool.then.iter().flat_map(|then| &then.args).flatten();
    let data = set.chain(then.map(|(_, data)| data));
    let texts = tool.result.iter().chain(&tool.mode);
    secret::needed(data.flat_map(Data::templates).chain(texts))
}

/// Returns the finding of another tool about an open call, for people. It reads like the call's own result, with secrets masked.
pub fn told(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id, result: &Json) -> String {
    let set = snapshot
        .call(owner, call)
        .and_then(|open| cx.network.tools.get(&open.call.name))
        .map_or(&[][..], |tool| &tool.set);
    shown(&secret::masked(result, set, |name| {
        target(cx, snapshot, owner, name)
    }))
}

/// Maps the answer of a person: their words are the result.
pub fn answer(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    owner: Id,
    call: Id,
    text: &str,
    by: &By,
) -> Mapped {
    let mut mapped = map(cx, snapshot, owner, call, &Raw::Done(text.into()));
    mapped.by = Some(by.clone().into());
    mapped
}

/// Maps the answer of dry mode in a tool's place, from its `simulate:`. `None` means that it has none, and the branch ends there.
pub fn simulate(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id) -> Option<Mapped> {
    let open = snapshot.call(owner, call)?;
    let at = At::new(cx, snapshot, open);
    let data = at.tool?.simulate.as_ref()?;
    Some(match data.eval(&at.view()) {
        Ok(result) => at.done(&result, How::Simulated),
        Err(e) => plain_fault(How::Failed, Code::Failed, &format!("simulate: {e}")),
    })
}

/// Returns the arguments with which an open call runs: those that a person edited, or else the model's with those that the
/// definition fixes. Defaults are added, and null for absent optional ones.
pub fn arguments(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Map<String, Json> {
    let text = cx.bodies.text(open.edited.unwrap_or(open.call.args));
    let mut args = crate::values::json::read::<Map<String, Json>>(&text).unwrap_or_default();
    if open.edited.is_none() {
        // A call whose fixed arguments fail ends before it begins.
        let fixed = fixed(cx, snapshot, open.owner, &open.call.called());
        args.extend(fixed.unwrap_or_default());
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

/// Returns the arguments that the definition fixes for this use of a tool, over the names of the agent that uses it: `args` are
/// the arguments of the agent. An argument that is one `{{ expr }}` of null is left out.
///
/// # Errors
/// The template of an argument cannot be evaluated. The call must not run without it.
pub fn fixed(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    owner: Id,
    seen: &str,
) -> Result<Map<String, Json>, Fault> {
    let agent = snapshot.agents.get(&owner);
    let model = agent.and_then(|agent| cx.network.in_force(agent));
    let uses = model.map_or(&[][..], |model| &model.tools);
    let Some(used) = uses.iter().find(|u| *u.seen == *seen && !u.args.is_empty()) else {
        return Ok(Map::new());
    };
    let view = View::new(cx, snapshot, Some(owner));
    let mut values = Map::new();
    for (name, data) in &used.args {
        let value = data.eval_field(&view).map_err(|why| {
            let template = bounds::beginning(&why.source, TOLD);
            let what =
                format!("`args.{name}` of `{seen}`, which the definition fixes as `{template}`");
            Fault::new(Code::Failed, format!("{what}, cannot be evaluated: {why}"))
        })?;
        values.extend(value.map(|value| (name.to_string(), value)));
    }
    Ok(values)
}

/// Returns the writes of an agent's end: its `output: state.NAME`, and its `set` over `result`. A value that does not fit its
/// entry is an error that names the entry.
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
            Fault::new(
                Code::Misfit,
                format!("the answer is not what is wanted: {why}"),
            )
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

/// A call, and everything that its mapping reads.
struct At<'a> {
    cx: &'a Cx<'a>,
    snapshot: &'a Snapshot,
    open: &'a OpenCall,
    tool: Option<&'a ToolDef>,
    /// Made when a template may read them.
    args: OnceCell<Arc<Json>>,
}

impl<'a> At<'a> {
    fn new(cx: &'a Cx<'a>, snapshot: &'a Snapshot, open: &'a OpenCall) -> Self {
        Self {
            cx,
            snapshot,
            open,
            tool: cx.network.tools.get(&open.call.name),
            args: OnceCell::new(),
        }
    }

    fn view(&self) -> View<'a> {
        View::new(self.cx, self.snapshot, Some(self.open.owner))
            .with_shared("args", self.args().clone())
    }

    fn args(&self) -> &Arc<Json> {
        let made = || Arc::new(Json::Object(arguments(self.cx, self.snapshot, self.open)));
        self.args.get_or_init(made)
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

    // --- calls that happened

    fn made(&self, result: &Json, made: &[Content], writes: &[(String, Json)]) -> Mapped {
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
        for (name, value) in writes {
            let owner = self.open.owner;
            let name = Name::from(name.as_str());
            match write(self.cx, self.snapshot, owner, &name, value.clone()) {
                Ok(write) => mapped.writes.push(write),
                Err(fault) => return self.unfit(&fault.message),
            }
        }
        if made.is_empty() {
            return mapped;
        }
        // Name the artifacts that the text does not mention, so that the model can find them.
        let mut told = mapped.shown.take().unwrap_or_default();
        if result.is_null() && self.tool.is_some_and(|tool| tool.result.is_none()) {
            told.clear();
        }
        for content in made {
            let version = content.version();
            if !told.contains(&version.name) {
                if !told.is_empty() {
                    told.push('\n');
                }
                told.push_str(&stand_in(&version.name, &version.media, version.len));
            }
            mapped.artifacts.push(version);
        }
        mapped.shown = Some(told);
        mapped
    }

    fn done(&self, result: &Json, how: How) -> Mapped {
        let Some(tool) = self.tool else {
            return Mapped::plain(how, None, shown(result));
        };
        if is_empty(result) && tool.on_error.contains_key(Code::Empty.text()) {
            return self.fault(&Fault::new(Code::Empty, "there is no result"), How::Failed);
        }
        let is_plain = tool.set.is_empty()
            && tool.result.is_none()
            && tool.mode.is_none()
            && tool.then.is_none();
        if is_plain {
            return Mapped::plain(how, None, unrendered(tool, result));
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
        let text = match rendered(tool.result.as_ref(), &view) {
            Ok(text) => text.unwrap_or_else(|| unrendered(tool, &masked)),
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

    /// Maps a result that does not fit the definition. A model tries again after a failure, so for an effect that may not be
    /// repeated freely the text says that it was carried out.
    fn unfit(&self, why: &str) -> Mapped {
        self.fault(&unfit(self.class(), why), How::Failed)
    }

    fn then(
        &self,
        then: Option<&Then>,
        view: &View<'_>,
        result: &Json,
    ) -> Result<Option<(String, Json)>, EvalError> {
        let Some(then) = then else { return Ok(None) };
        let args = match &then.args {
            Some(args) => crate::values::expression::arguments(args, view)?,
            None => self.handed_on(&then.tool, result),
        };
        Ok(Some((then.tool.to_string(), Json::Object(args))))
    }

    /// Returns the arguments of the next tool where `then` has no `args`: the result itself if it is an object, else the result
    /// as the one argument, if the tool has one.
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

    // --- calls that did not happen

    /// Returns the end of a call that is proved not to have happened.
    fn how(&self, fault: &Fault) -> How {
        let waits = matches!(self.open.call.target, Target::Wait | Target::Person(_))
            || self
                .tool
                .is_some_and(|t| matches!(t.source, Source::Wait(_) | Source::Ask(_)));
        match Code::named(&fault.code) {
            Some(Code::Timeout) if waits => How::Expired,
            Some(code) => code.how(),
            None => How::Failed,
        }
    }

    fn fault(&self, fault: &Fault, how: How) -> Mapped {
        if how == How::Expired
            && Code::named(&fault.code) == Some(Code::Timeout)
            && let Some((template, answers)) = self.instead()
        {
            return match template.value(&self.view()) {
                Ok(answer) if answers => self.answered_by_time(&answer),
                // This text tells the caller that nobody answered in time. It is neither an answer nor an error.
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

    /// Maps the answer that the definition gives in place of a wait or person that timed out. Such a call is done, and makes the
    /// writes of an answer. An answer in place of an event has none of the event's fields. If `set`, `result` or `then` read
    /// them, the result is the text alone.
    fn answered_by_time(&self, answer: &Json) -> Mapped {
        let mut mapped = self.done(answer, How::Done);
        let waits = matches!(self.tool.map(|t| &t.source), Some(Source::Wait(_)));
        if waits && mapped.code.is_some() {
            mapped = Mapped::plain(How::Done, None, shown(answer));
        }
        mapped.by = Some(Decider::Timeout);
        mapped
    }

    /// Returns the text in place of an answer that did not come in time, and true if that text is the answer.
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

/// Returns true if the definition says what follows this code.
pub(crate) fn handles(tool: &ToolDef, code: &str) -> bool {
    entry(tool, code).is_some()
}

/// Returns the entry of `on_error` that fits best: `http_404`, `http_4xx`, `failed`, `*`. An effect that was done elsewhere, an
/// empty result and a call that is not in this branch are not failures: only entries with their own codes match.
fn entry<'a>(tool: &'a ToolDef, code: &str) -> Option<&'a OnError> {
    let class = codes::http_class(code);
    let caught = match Code::named(code) {
        Some(code) => code.caught(),
        None if class.is_some() => Caught::Failed,
        None => Caught::Any,
    };
    let by_name = tool.on_error.get(code);
    by_name
        .or_else(|| tool.on_error.get(&class?))
        .or_else(|| {
            let failed = tool.on_error.get(Code::Failed.text());
            failed.filter(|_| caught == Caught::Failed)
        })
        .or_else(|| {
            let any = tool.on_error.get("*");
            any.filter(|_| caught != Caught::Nothing)
        })
}

fn rendered(template: Option<&Template>, view: &View<'_>) -> Result<Option<String>, EvalError> {
    template.map(|t| t.render(view)).transpose()
}

/// Returns the end of a call that did not happen and that no definition handles.
pub(crate) fn plain(fault: &Fault) -> Mapped {
    let how = Code::named(&fault.code).map_or(How::Failed, Code::how);
    plain_fault(how, &fault.code, &fault.message)
}

fn plain_fault(how: How, code: impl AsRef<str>, message: &str) -> Mapped {
    let code = code.as_ref();
    Mapped::plain(how, Some(code), sentence(code, message))
}

fn sentence(code: &str, message: &str) -> String {
    match (code, message) {
        (code, message) if code == Code::DoneBefore.text() => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{code}: {message}"),
    }
}

/// Returns the result of a tool without a template for it, as the model sees it. What others wrote is quoted.
fn unrendered(tool: &ToolDef, result: &Json) -> String {
    match tool.source {
        Source::BuiltIn(BuiltIn::NotesSearch | BuiltIn::MemorySearch | BuiltIn::MemoryRead) => {
            notes::quoted(result)
        }
        _ => shown(result),
    }
}

/// Returns a result as the model sees it by default: text unchanged, anything else as compact JSON.
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
        .map_err(|e| Fault::new(Code::Misfit, format!("set {name}: {e}")))?;
    write(cx, snapshot, writer, name, value)
}

/// Checks a value and makes it a write of its entry: the nearest one of this name, from the writer outward. A null unsets the
/// entry.
///
/// # Errors
/// No entry has this name here, or the value does not fit it.
pub fn write(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    writer: Id,
    name: &Name,
    value: Json,
) -> Result<NewWrite, Fault> {
    let bad = |why: String| Fault::new(Code::Misfit, why);
    let Some(ty) = target(cx, snapshot, writer, name) else {
        return Err(bad(format!("no state `{name}` is declared here")));
    };
    if value.is_null() {
        // Unsetting is allowed if `none` is a value of the entry.
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

/// Returns the misfit of a value that is joined to an entry. One element of a list, or some fields of an object, may be joined.
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
