//! Judgements: the questions about drafts, results and arguments, and the form in which models give judgements.

use super::verdict::{Verdict, judge_verdict};
use crate::network::Reflect;
use crate::network::texts::{self, Sentence};
use crate::snapshot::{OpenCall, Phase, Snapshot, Stands};
use crate::stored::codes::{ACCEPT, REVISE};
use crate::stored::engine::Judged;
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::Call;
use crate::values::expression::Template;
use crate::values::types::{Type, TypeKind, schema_of_fields};
use crate::view::say::say;
use crate::view::{Cx, View};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Returns the open call by which the agent's own model judges arguments. There is at most one.
pub(crate) fn open(snapshot: &Snapshot, agent: Id) -> Option<&OpenCall> {
    if snapshot.agent(agent).stack.open == 0 {
        return None;
    }
    let mut open = snapshot.exchange(agent);
    open.find(|c| c.closed.is_none() && c.call.asks_itself())
        .map(|c| &**c)
}

/// Returns true if the agent's outstanding model call judges its own draft.
pub(crate) fn judges_itself(snapshot: &Snapshot, agent: Id) -> bool {
    let agent = snapshot.agent(agent);
    let draft = agent.turn.draft.as_ref();
    agent.phase == Phase::Thinking && draft.is_some_and(|d| d.stands == Stands::Open)
}

/// Returns true if the next model call of an agent is a judgement: of its own draft or arguments, or for another agent.
pub fn is_judging(snapshot: &Snapshot, agent: Id) -> bool {
    judges_itself(snapshot, agent)
        || open(snapshot, agent).is_some()
        || serves_review(snapshot, agent)
}

/// Returns true if the call that an agent serves asks for a judgement.
pub(crate) fn serves_review(snapshot: &Snapshot, agent: Id) -> bool {
    let agent = snapshot.agent(agent);
    let open = agent
        .caller()
        .and_then(|(parent, call)| snapshot.call(parent, call));
    open.is_some_and(|open| open.call.judged().is_some())
}

/// Returns the JSON Schema of a judgement if the agent's next answer must be one. `None` if it need not be one, or if the agent
/// serves a review and has an output type, which then applies.
pub(crate) fn wanted(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Option<Json> {
    let def = cx.network.agent(&snapshot.agent(agent).def);
    if judges_itself(snapshot, agent) {
        let revised = def.output.as_ref().map(|output| output.ty.clone());
        return Some(schema("Else the new draft, whole.", revised));
    }
    let judges_arguments = open(snapshot, agent).is_some();
    let serves = def.output.is_none() && serves_review(snapshot, agent);
    (judges_arguments || serves).then(|| schema("Else what is to be revised, and how.", None))
}

/// Returns the JSON Schema of a judgement. `revised` is the type of `revise`; without it `revise` is a text with this description.
fn schema(description: &str, revised: Option<Type>) -> Json {
    let of = |kind, optional, words: &str| Type {
        kind,
        optional,
        default: None,
        description: Some(words.to_owned()),
        expires: None,
        by: Vec::new(),
        reduce: crate::stored::interaction::Reduce::Last,
        ask: None,
    };
    let revised = match revised {
        Some(ty) => Type {
            optional: true,
            default: None,
            ..ty
        },
        None => of(TypeKind::String { pattern: None }, true, description),
    };
    schema_of_fields(&[
        (
            ACCEPT.into(),
            of(TypeKind::Boolean, false, "Nothing is to be changed."),
        ),
        (REVISE.into(), revised),
    ])
}

/// Returns the reflection settings of a tool.
fn reflection<'n>(cx: &Cx<'n>, tool: &Name) -> Option<&'n Reflect> {
    cx.network.tools.get(tool)?.reflect.as_ref()
}

/// Returns the definition's template for the question about the arguments of a tool, which reads them as `args`.
pub(crate) fn prompt<'n>(cx: &Cx<'n>, tool: &Name) -> Option<&'n Template> {
    reflection(cx, tool)?.prompt.as_ref()
}

/// Returns the arguments that are judged.
pub(crate) fn judged_args(cx: &Cx<'_>, snapshot: &Snapshot, owner: Id, call: Id) -> Arc<str> {
    let args = snapshot.call(owner, call).map(|c| c.call.args);
    args.map_or_else(|| "{}".into(), |body| cx.bodies.text(body))
}

/// Returns the question to the agent's model about the arguments of one of the agent's calls.
pub(crate) fn question(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> String {
    let Some(Judged::Args(call, tool)) = open.call.judged() else {
        return String::new();
    };
    let args = judged_args(cx, snapshot, open.owner, *call);
    let view = View::new(cx, snapshot, Some(open.owner));
    let view = view.with("args", json_or_text(&args));
    let own = prompt(cx, tool).and_then(|p| p.render(&view).ok());
    let values = [("tool", &**tool), ("args", &*args)];
    let sentences = [texts::REFLECT_ARGS, texts::VERDICT];
    with_form(cx, snapshot, open.owner, own, sentences, &values)
}

/// Returns the definition's prompt (`own`), followed by the second sentence, about the form of the answer. Without a prompt, returns
/// the first sentence.
pub(crate) fn with_form(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    own: Option<String>,
    [sentence, form]: [&Sentence; 2],
    values: &[(&str, &str)],
) -> String {
    let Some(own) = own else {
        return say(cx, snapshot, agent, sentence, values);
    };
    let form = say(cx, snapshot, agent, form, &[]);
    format!("{own}\n{form}")
}

/// Returns a reviewer's text for the agent that must revise, with the name of the reviewer and the subject of the judgement.
pub(crate) fn told(call: &Call, text: &str) -> String {
    let by = &call.name;
    match call.judged() {
        Some(Judged::Result(of, tool)) => {
            format!("[{by}] About what `{tool}` gave (call {of}): {text}")
        }
        _ => format!(
            "[{by}] Your last answer was not given to anybody yet. It is to be revised: {text}"
        ),
    }
}

/// Returns a judgement without objection, in the form in which a model gives it.
pub fn accept() -> String {
    json!({ ACCEPT: true }).to_string()
}

/// Returns a judgement that asks for a revision, in the form in which a model gives it.
pub fn revise(text: &str) -> String {
    json!({ ACCEPT: false, REVISE: text }).to_string()
}

/// Returns a judgement in words, `accept` or `revise: ..`. `None` means that the text is not a judgement of a model.
pub fn in_words(text: &str) -> Option<String> {
    let json: Json = crate::values::json::read(text.trim()).ok()?;
    let known = |name: &String| [ACCEPT, REVISE].contains(&&**name);
    let fields = json.as_object()?;
    if fields.is_empty() || !fields.keys().all(known) {
        return None;
    }
    match judge_verdict(text) {
        Verdict::Accept => Some(ACCEPT.to_owned()),
        Verdict::Revise(text) => Some(format!("{REVISE}: {text}")),
        Verdict::Unusable(_) => None,
    }
}

pub(crate) fn json_or_text(text: &str) -> Json {
    crate::values::json::read(text).unwrap_or_else(|_| Json::from(text))
}
