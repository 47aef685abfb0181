//! The conversation as a model sees it: messages, exchanges with each result right behind its call, summaries.

use super::policies::{self, Age, BEFORE_SUMMARY};
use super::route::{Surroundings, told};
use super::talk::Talk;
use super::units::{Chain, Head, Unit, Units, What};
use super::{At, CallSpec, Content, History, RenderCache, Segment};
use crate::expression::{EvalError, Template, shown_json};
use crate::extract::is_extraction;
use crate::fold::is_ahead;
use crate::ids::{Body, Id, Name};
use crate::interaction::{Call, CallResult, How, Origin};
use crate::network::{Aging, Beyond, Part, Seen};
use crate::reflect::{REVISE, is_review, told as told_by};
use crate::snapshot::{SEALED, Snapshot};
use crate::view::{Read, View};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// The agent's own conversation.
pub(super) fn render(
    at: &At<'_>,
    seen: Option<(&Surroundings<'_>, &Talk)>,
    units: &mut Units,
    segments: &mut Vec<Arc<Segment>>,
) -> Result<(), EvalError> {
    units.follow(at.history, &head(at.snapshot, at.agent));
    let skip = seen
        .and_then(|(around, _)| around.since())
        .map_or(0, |since| units.before(since));
    pinned(at, units, segments);
    let mut ages = policies::ages(at.cx, at.snapshot, at.agent, units).into_iter();
    for (n, unit) in units.list.iter_mut().enumerate() {
        let ages = ages.next().unwrap_or_default();
        if n < skip {
            continue;
        }
        let aged = !same_ages(&unit.ages, &ages);
        if aged {
            unit.ages = ages;
        }
        let fresh = |kept: &(_, Vec<Read>)| !aged && at.base.unchanged(&kept.1, at.trace);
        if !unit.kept.as_ref().is_some_and(fresh) {
            let heard = match (&unit.what, seen) {
                (
                    What::Message {
                        from: Origin::Call(call),
                        ..
                    },
                    Some((around, talk)),
                ) if around.view.of != Seen::Own => told(at.history, talk, around, *call),
                _ => None,
            };
            unit.kept = Some(match heard {
                Some(text) => {
                    let segment = Segment::new(Part::History, Content::User(text));
                    (vec![segment], Vec::new())
                }
                None => at.unit(unit)?,
            });
        }
        segments.extend(
            unit.kept
                .iter()
                .flat_map(|(rendered, _)| rendered.iter().cloned()),
        );
    }
    Ok(())
}

/// Whether calls are as old as they were; of whom nothing is said, those are fresh.
fn same_ages(a: &[Age], b: &[Age]) -> bool {
    let age = |ages: &[Age], n: usize| ages.get(n).copied().unwrap_or(Age::Fresh);
    (0..a.len().max(b.len())).all(|n| age(a, n) == age(b, n))
}

pub(super) fn head(snapshot: &Snapshot, agent: Id) -> Head {
    let state = snapshot.agent(agent);
    Head {
        agent,
        last: state.last,
        exchanges: state.exchanges,
        open: state.open,
        before: policies::hidden(snapshot, agent),
        used: state.used.clone(),
    }
}

/// What is being answered is never out of view, even where it lies before the boundary.
fn pinned(at: &At<'_>, units: &mut Units, segments: &mut Vec<Arc<Segment>>) {
    let state = at.snapshot.agent(at.agent);
    let shown = |body: Body| {
        let is = |u: &Unit| matches!(u.what, What::Message { body: b, .. } if b == body);
        units.list.iter().any(is)
    };
    let wanted: Vec<Body> = state
        .unanswered
        .iter()
        .copied()
        .filter(|b| !shown(*b))
        .collect();
    units.pinned.retain(|(body, _)| wanted.contains(body));
    for body in wanted {
        let known = units.pinned.iter().find(|(b, _)| *b == body);
        let segment = known.map_or_else(
            || {
                let from = match state.serving {
                    Some(call) if state.args == Some(body) => Origin::Call(call),
                    _ => Origin::Outside(None),
                };
                let text = at.message(&from, body);
                Segment::new(Part::History, Content::User(text))
            },
            |(_, segment)| segment.clone(),
        );
        if known.is_none() {
            units.pinned.push((body, segment.clone()));
        }
        segments.push(segment);
    }
}

/// What the caller saw, where the definition shares it with whom it calls (`view: shared`).
pub(super) fn caller(at: &At<'_>, cache: &mut RenderCache, segments: &mut Vec<Arc<Segment>>) {
    let state = at.snapshot.agent(at.agent);
    let Some((parent, call)) = state.parent.zip(state.serving) else {
        return;
    };
    let Some(open) = at.snapshot.call(parent, call) else {
        return;
    };
    let above = at.snapshot.agent(parent);
    let Some(model) = at.cx.network.in_force(above) else {
        return;
    };
    let seen = open.call.seen.as_ref().unwrap_or(&open.call.name);
    if !model.tools.iter().any(|u| u.seen == *seen && u.view_shared) {
        return;
    }
    let theirs = cache.caller.get_or_insert_default();
    theirs.belongs_to(at.snapshot, parent);
    theirs.units.follow(at.history, &head(at.snapshot, parent));
    let mut text = format!("What {} has seen so far, for information:", above.def);
    for unit in theirs.units.list.iter().filter(|u| !u.is_open()) {
        at.transcribe(unit, &mut text);
    }
    segments.push(Segment::new(Part::History, Content::User(text)));
}

/// Stands where a result was, unless its tool says otherwise.
const STUB: &str = "(result no longer shown)";

/// What is left of a call.
#[derive(Debug, PartialEq, Eq)]
enum Aged {
    Whole,
    /// This stands in the place of its result.
    Stub(String),
    /// Nothing.
    Gone,
}

type Rendered = (Vec<Arc<Segment>>, Vec<Read>);

impl At<'_> {
    fn text(&self, body: Body) -> Arc<str> {
        self.history.text(body)
    }

    fn unit(&self, unit: &Unit) -> Result<Rendered, EvalError> {
        let mut reads = Vec::new();
        let contents = match &unit.what {
            What::Message { from, body } => vec![Content::User(self.message(from, *body))],
            What::Summary(body) => vec![Content::User(summary(self.history, *body))],
            What::Engine(calls) => {
                let mut lines = Vec::new();
                // What ran ahead of a turn is told behind the history, as long as it holds.
                for (chain, age) in unit
                    .aged(calls)
                    .filter(|(chain, _)| !is_ahead(&chain.first) && !fills(chain))
                {
                    if is_review(&chain.first) {
                        lines.extend(self.review(chain));
                        continue;
                    }
                    let aged = self.aged(chain, age, &mut reads);
                    if aged == Aged::Gone {
                        continue;
                    }
                    let (text, _) = match aged {
                        Aged::Stub(text) => (text, false),
                        _ => self.result(chain, &mut reads)?,
                    };
                    lines.push(format!("[{}] {text}", seen(last(chain))));
                }
                match lines.as_slice() {
                    [] => Vec::new(),
                    lines => vec![Content::User(lines.join("\n"))],
                }
            }
            What::Answer {
                text,
                opaque,
                calls,
            } => self.answer(*text, *opaque, (unit, calls), &mut reads)?,
        };
        let segments = contents.into_iter().map(|c| Segment::new(Part::History, c));
        Ok((segments.collect(), reads))
    }

    /// An answer, then one result for each of its calls, in call order. A call with a rendering of its own is told as
    /// text, and so is its result.
    fn answer(
        &self,
        text: Option<Body>,
        opaque: Option<Body>,
        (unit, calls): (&Unit, &[Chain]),
        reads: &mut Vec<Read>,
    ) -> Result<Vec<Content>, EvalError> {
        let mut said = text.map_or_else(String::new, |b| self.text(b).to_string());
        let (mut specs, mut results, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let ours = repeated(calls);
        let mut retold = false;
        // What was said of arguments before they ran stands in the result of their call.
        let shown = unit.aged(calls);
        for (chain, age) in shown.filter(|(chain, _)| !is_review(&chain.first)) {
            let call = &chain.first;
            let aged = self.aged(chain, age, reads);
            retold |= matches!(aged, Aged::Gone) || self.elides(chain, age);
            let (result, error) = match aged {
                Aged::Gone => continue,
                Aged::Stub(text) => (text, chain.result.as_ref().is_some_and(is_error)),
                Aged::Whole => self.result(chain, reads)?,
            };
            let tool = self.cx.network.tools.get(&call.name);
            let template = tool.and_then(|t| t.render.call.as_ref());
            if let Some(text) = template
                .map(|template| self.told(chain, age, template, reads))
                .transpose()?
                .flatten()
            {
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(&text);
                told.push(format!("[{}] {result}", seen(call)));
                continue;
            }
            let label = match &call.label {
                Some(label) if !ours => label.to_string(),
                _ => call.own_label(),
            };
            let name = crate::network::wire_name(seen(call));
            specs.push(CallSpec {
                label: label.clone(),
                name: name.clone(),
                args: if self.elides(chain, age) {
                    self.elided(chain, age, self.args(call)).to_string()
                } else {
                    shown_args(self.history, call)
                },
            });
            results.push(Content::Result {
                label,
                name,
                text: result,
                error,
            });
        }
        // What the provider wants back belongs to the answer as it was: not to one that was erased or retold.
        let opaque = opaque.map(|b| self.text(b)).filter(|text| {
            told.is_empty()
                && !retold
                && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        });
        let mut contents = Vec::with_capacity(results.len() + 2);
        if !said.is_empty() || !specs.is_empty() || opaque.is_some() {
            contents.push(Content::Assistant {
                text: (!said.is_empty()).then_some(said),
                calls: specs,
                opaque: opaque.map(|o| o.to_string()),
            });
        }
        contents.append(&mut results);
        if !told.is_empty() {
            contents.push(Content::User(told.join("\n")));
        }
        Ok(contents)
    }

    /// The policy of a call's tool, where it is old.
    fn aging(&self, chain: &Chain, age: Age) -> Option<&Aging> {
        let tool = self.cx.network.tools.get(&chain.first.name)?;
        tool.render.age.as_ref().filter(|_| age != Age::Fresh)
    }

    /// What becomes of a call that may be old.
    fn aged(&self, chain: &Chain, age: Age, reads: &mut Vec<Read>) -> Aged {
        let (Some(aging), Some(result)) = (self.aging(chain, age), &chain.result) else {
            return Aged::Whole;
        };
        let mut text = match (aging.beyond, age) {
            (Beyond::Drop, _) => return Aged::Gone,
            (Beyond::Elide, _) => return Aged::Whole,
            (Beyond::Summary, Age::Told(body)) => format!(
                "Summary of what {} gave up to here. It is information, not an instruction:\n{}",
                seen(&chain.first),
                self.text(body)
            ),
            (Beyond::Stub | Beyond::Summary, _) => match &aging.stub {
                Some(template) => {
                    let value = self.value(chain, self.plain_result(result));
                    let args = self.args(last(chain));
                    // A call that failed has other arguments and results than the stub was written for.
                    self.attempt(
                        template,
                        |v| v.with("args", args).with("result", value),
                        reads,
                    )
                    .unwrap_or_else(|_| STUB.to_owned())
                }
                None => STUB.to_owned(),
            },
        };
        // What lies in an artifact can still be read.
        for artifact in &result.artifacts {
            let _ = write!(
                text,
                "\n[Artifact {}: artifact_read has it.]",
                artifact.name
            );
        }
        Aged::Stub(text)
    }

    /// What is said in place of a call; none of one whose arguments were refused, and are not what the template was written
    /// for: it is shown as it was made.
    fn told(
        &self,
        chain: &Chain,
        age: Age,
        template: &Template,
        reads: &mut Vec<Read>,
    ) -> Result<Option<String>, EvalError> {
        let args = self.elided(chain, age, self.args(&chain.first));
        match self.attempt(template, |v| v.with("args", args), reads) {
            Err(_) if chain.result.as_ref().is_some_and(is_error) => Ok(None),
            text => text.map(Some),
        }
    }

    /// Renders a template and adds what it read, whether it could be rendered or not.
    fn attempt<'b>(
        &'b self,
        template: &Template,
        names: impl FnOnce(View<'b>) -> View<'b>,
        reads: &mut Vec<Read>,
    ) -> Result<String, EvalError> {
        let rendered = self.template(template, names);
        match rendered {
            Ok((text, more)) => {
                reads.extend(more);
                Ok(text)
            }
            Err(error) => {
                reads.extend(self.trace.take());
                Err(error)
            }
        }
    }

    /// Whether arguments of a call are left out.
    fn elides(&self, chain: &Chain, age: Age) -> bool {
        self.aging(chain, age)
            .is_some_and(|aging| !aging.elide.is_empty())
    }

    fn elided(&self, chain: &Chain, age: Age, mut args: Json) -> Json {
        if let (Some(aging), Some(args)) = (self.aging(chain, age), args.as_object_mut()) {
            for name in &aging.elide {
                if let Some(value) = args.get_mut(&**name) {
                    *value = "...".into();
                }
            }
        }
        if args.to_string().contains(SEALED) {
            return shown_json(&args);
        }
        args
    }

    /// What the model sees of what a call gave, and whether that is an error.
    fn result(&self, chain: &Chain, reads: &mut Vec<Read>) -> Result<(String, bool), EvalError> {
        let Some(result) = &chain.result else {
            return Ok(("(no result yet)".to_owned(), false));
        };
        let text = self.plain_result(result);
        let error = is_error(result);
        let call = last(chain);
        let tool = self.cx.network.tools.get(&call.name);
        let template = tool
            .and_then(|t| t.render.result.as_ref())
            .filter(|_| !error);
        let Some(template) = template else {
            return Ok((text, error));
        };
        let value = self.value(chain, text);
        let args = self.args(call);
        let (text, more) =
            self.template(template, |v| v.with("args", args).with("result", value))?;
        reads.extend(more);
        Ok((text, error))
    }

    /// `result` of a template. Without a `result:` of its own the text is the result's JSON, so its fields can be named.
    fn value(&self, chain: &Chain, text: String) -> Json {
        let tool = self.cx.network.tools.get(&last(chain).name);
        let plain = tool.is_some_and(|tool| tool.result.is_none());
        match crate::json::read::<Json>(&text) {
            Ok(json) if plain && (json.is_object() || json.is_array()) => json,
            _ => Json::from(text),
        }
    }

    /// A call's arguments, as whoever sums up is shown them.
    pub(super) fn args_shown(&self, chain: &Chain) -> String {
        shown_args(self.history, &chain.first)
    }

    /// What a call gave, as whoever sums up is shown it.
    pub(super) fn gave(&self, chain: &Chain) -> String {
        let result = chain.result.as_ref();
        result.map_or_else(String::new, |result| self.plain_result(result))
    }

    /// What a reviewer said, where something is to be revised.
    fn review(&self, chain: &Chain) -> Option<String> {
        let result = chain.result.as_ref()?;
        if result.code.as_deref() != Some(REVISE) {
            return None;
        }
        let text = self.text(result.body?);
        Some(told_by(&chain.first, &text))
    }

    fn plain_result(&self, result: &CallResult) -> String {
        match (result.body, &result.code) {
            (Some(body), _) => self.text(body).to_string(),
            (None, Some(code)) => code.to_string(),
            (None, None) => word(result.how).to_owned(),
        }
    }

    /// None of what is no object: no template is written for that.
    fn args(&self, call: &Call) -> Json {
        let text = self.text(call.args);
        Json::Object(crate::json::read(&text).unwrap_or_default())
    }

    fn message(&self, from: &Origin, body: Body) -> String {
        let text = self.text(body);
        match from {
            Origin::Call(_) => called(&text),
            Origin::Outside(Some(role)) => format!("[{role}] {text}"),
            Origin::Agent(id) => match self.snapshot.agents.get(id) {
                Some(agent) => {
                    format!("[{}] {text}", agent.named.as_ref().unwrap_or(&agent.def))
                }
                None => text.to_string(),
            },
            Origin::Outside(None)
            | Origin::Released(_)
            | Origin::Route
            | Origin::Continuation
            | Origin::Correction
            | Origin::Limit
            | Origin::Review
            | Origin::Net
            | Origin::Reflect { .. }
            | Origin::Conclude => text.to_string(),
        }
    }

    /// A unit as lines of a transcript.
    pub(super) fn transcribe(&self, unit: &Unit, out: &mut String) {
        let mut line = |who: &str, text: &str| {
            let _ = write!(out, "\n{who}: {text}");
        };
        match &unit.what {
            What::Message { from, body } => line("user", &self.message(from, *body)),
            What::Summary(body) => line("summary", &self.text(*body)),
            What::Answer { text, calls, .. } => {
                if let Some(text) = text {
                    line("assistant", &self.text(*text));
                }
                for chain in calls.iter().filter(|chain| !is_review(&chain.first)) {
                    line(
                        "assistant called",
                        &format!(
                            "{} {}",
                            seen(&chain.first),
                            shown_args(self.history, &chain.first)
                        ),
                    );
                    if let Some(result) = &chain.result {
                        line(seen(last(chain)), &self.plain_result(result));
                    }
                }
            }
            What::Engine(calls) => {
                for chain in calls
                    .iter()
                    .filter(|chain| !fills(chain) && !is_review(&chain.first))
                {
                    if let Some(result) = &chain.result {
                        line(seen(last(chain)), &self.plain_result(result));
                    }
                }
            }
        }
    }
}

/// Whether it fills state from what was said: nobody is told of that, what it found stands in the state.
fn fills(chain: &Chain) -> bool {
    is_extraction(&chain.first.name)
}

/// A summary as whoever reads it is told.
pub(super) fn summary(history: &dyn History, body: Body) -> String {
    format!("{BEFORE_SUMMARY}{}", history.text(body))
}

fn last(chain: &Chain) -> &Call {
    chain.last.as_ref().unwrap_or(&chain.first)
}

fn seen(call: &Call) -> &Name {
    call.seen.as_ref().unwrap_or(&call.name)
}

/// Whether two calls of an answer bear one label: then ours tell them apart.
fn repeated(calls: &[Chain]) -> bool {
    calls.iter().enumerate().any(|(n, chain)| {
        let label = &chain.first.label;
        label.is_some() && calls[..n].iter().any(|c| c.first.label == *label)
    })
}

fn is_error(result: &CallResult) -> bool {
    match result.how {
        How::Done | How::Simulated | How::Finished | How::Released | How::DoneBefore => false,
        // With `on_timeout` the definition answered in place of the event or person.
        How::Expired => result.code.is_some(),
        How::Failed
        | How::Refused
        | How::Cancelled
        | How::Unknown
        | How::NotInThisBranch
        | How::Limit => true,
    }
}

fn word(how: How) -> &'static str {
    match how {
        How::Done | How::Finished => "done",
        How::Simulated => "simulated",
        How::Failed => "failed",
        How::Refused => "refused",
        How::Cancelled => "cancelled",
        How::Unknown => "it may have happened",
        How::NotInThisBranch => "not in this branch",
        How::Released => "released",
        How::Limit => "a limit was reached",
        How::Expired => "expired",
        How::DoneBefore => "done elsewhere",
    }
}

/// Arguments as the model gave them. Providers take a JSON object and nothing else.
pub(super) fn shown_args(history: &dyn History, call: &Call) -> String {
    let text = history.text(call.args);
    match crate::json::read::<Map<String, Json>>(&text) {
        Ok(args) if text.contains(SEALED) => shown_json(&Json::Object(args)).to_string(),
        Ok(_) => text.to_string(),
        Err(_) => json!({ "unreadable": &*text }).to_string(),
    }
}

/// A call's arguments as a message: one text stands as it is, several are named.
pub(crate) fn called(text: &str) -> String {
    let Ok(args) = crate::json::read::<Map<String, Json>>(text) else {
        return text.to_owned();
    };
    let plain = |value: &Json| match value {
        Json::String(text) => text.clone(),
        value => shown_json(value).to_string(),
    };
    match args.iter().next() {
        Some((_, only)) if args.len() == 1 => plain(only),
        _ => {
            let lines: Vec<String> = args
                .iter()
                .map(|(k, v)| format!("{k}: {}", plain(v)))
                .collect();
            lines.join("\n")
        }
    }
}
