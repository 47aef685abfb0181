//! Wishes of outstanding effects, rebuilt from the snapshot alone, so that they are the same after a takeover.

use super::class;
use super::judge::use_of;
use crate::network::{Approve, OnTimeout, Source, ToolDef, texts};
use crate::routers::floor;
use crate::snapshot::{Agent, Effect, OpenCall, Snapshot};
use crate::stored::built_in::BuiltIn;
use crate::stored::commit::Want;
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::Target;
use crate::tick::effect::{Approval, ToolWork, Wish, Work};
use crate::values::json::{self, arguments};
use crate::values::types::{Parameters, Type, TypeKind};
use crate::view::say::say;
use crate::view::{Cx, View, artifact, mapping};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the wish of an outstanding effect.
pub(crate) fn wish(cx: &Cx<'_>, snapshot: &Snapshot, id: Id, effect: &Effect) -> Wish {
    let work = match effect.what {
        Want::Call(call) => match snapshot.call(effect.agent, call) {
            Some(open) => of_call(cx, snapshot, open),
            None => unreachable!("the effect of a call ends with the call"),
        },
        Want::Step => Work::Model,
    };
    Wish {
        id,
        agent: effect.agent,
        what: effect.what,
        work,
        due: effect.due,
    }
}

fn of_call(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Work {
    let args = || cx.bodies.text(open.edited.unwrap_or(open.call.args));
    match &open.call.target {
        Target::Branches(_) => crate::tick::branch::work(cx, snapshot, open),
        Target::Person(person) => ask(person, &args()),
        Target::Wait => crate::tick::wait::work(cx, snapshot, open),
        Target::Agent(_) | Target::Unknown => Work::Timer,
        Target::Tool(_) if open.call.is_extraction() || open.call.asks_itself() => Work::Model,
        Target::Tool(_) => {
            let tool = cx.network.tool(&open.call.name);
            match &tool.source {
                Source::Send(to) => send(snapshot, open, to, &args()),
                Source::Ask(person) => ask(person, &args()),
                Source::BuiltIn(BuiltIn::NeedHelp) => Work::Ask {
                    to: "user".into(),
                    question: floor::leaves(cx, snapshot, open).into(),
                    options: vec!["yes".to_owned(), "no".to_owned()],
                },
                Source::State
                | Source::Http(_)
                | Source::Command { .. }
                | Source::Native { .. }
                | Source::Mcp { .. }
                | Source::Wait(_)
                | Source::BuiltIn(
                    BuiltIn::Finish
                    | BuiltIn::Done
                    | BuiltIn::Handoff
                    | BuiltIn::AskUser
                    | BuiltIn::TodoAdd
                    | BuiltIn::TodoComplete
                    | BuiltIn::TodoCancel
                    | BuiltIn::TodoUpdate
                    | BuiltIn::Fork
                    | BuiltIn::ArtifactWrite
                    | BuiltIn::ArtifactRead
                    | BuiltIn::ArtifactList
                    | BuiltIn::ArtifactSearch
                    | BuiltIn::ArtifactRate
                    | BuiltIn::MemorySave
                    | BuiltIn::MemorySearch
                    | BuiltIn::MemoryRead
                    | BuiltIn::MemoryRate
                    | BuiltIn::NotesSearch,
                ) => of_tool(cx, snapshot, open, tool, args()),
            }
        }
    }
}

fn of_tool(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
    tool: &ToolDef,
    args: Arc<str>,
) -> Work {
    let class = class(&open.call.target);
    let args = if args.trim().is_empty() {
        "{}".into()
    } else if let Cow::Owned(exact) = json::exact(&args) {
        exact.into()
    } else {
        args
    };
    let path = &snapshot.agent(open.owner).family.path;
    let work = ToolWork {
        makes: artifact::spill_name(&tool.name, path, open.call.number).into(),
        tool: tool.name.clone(),
        class,
        approve: approvals(cx, snapshot, open, tool),
        inputs: inputs(cx, snapshot, open, tool),
        args,
    };
    if snapshot.dry && !class.is_free() {
        Work::Simulate(work)
    } else {
        Work::Tool(work)
    }
}

fn ask(person: &Name, args: &str) -> Work {
    let args = arguments(args).unwrap_or_default();
    let text = |name: &str| args.get(name).and_then(Json::as_str);
    let question = text("question").or_else(|| text("message"));
    let question = match question {
        Some(question) => question.to_owned(),
        None => Json::Object(args.clone()).to_string(),
    };
    let options = args.get("options").and_then(Json::as_array);
    Work::Ask {
        to: person.clone(),
        question: question.into(),
        options: options
            .into_iter()
            .flatten()
            .map(|o| o.as_str().map_or_else(|| o.to_string(), str::to_owned))
            .collect(),
    }
}

fn send(snapshot: &Snapshot, open: &OpenCall, to: &Name, args: &str) -> Work {
    let args = arguments(args).unwrap_or_default();
    let message = args.get("message").and_then(Json::as_str);
    Work::Send {
        to: nearest(snapshot, open.owner, to),
        name: to.clone(),
        message: message.unwrap_or_default().into(),
    }
}

/// Returns the nearest instance of this name: the agent itself, otherwise the newest one that it started, otherwise the nearest
/// to the agent above it.
fn nearest(snapshot: &Snapshot, agent: Id, name: &Name) -> Option<Id> {
    let mut at = Some(agent);
    while let Some(id) = at {
        let agent = snapshot.agent(id);
        if agent.def == *name {
            return Some(id);
        }
        if let Some(child) = agent.family.children.get(name) {
            return Some(*child);
        }
        let own = |other: &&Arc<Agent>| other.family.parent == Some(id) && other.def == *name;
        if let Some(newest) = snapshot.agents.values().rev().find(own) {
            return Some(newest.id);
        }
        at = agent.family.parent;
    }
    None
}

/// Returns the arguments with which the call runs, if fixed arguments or defaults make them differ from the given ones.
pub(crate) fn effective(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
) -> Option<Map<String, Json>> {
    let network = cx.network;
    let parameters = match network.tools.get(&open.call.name) {
        Some(tool) => &tool.parameters,
        None => &network.agents.get(&open.call.name)?.parameters,
    };
    let fields: &[(Name, Type)] = match parameters {
        Parameters::Fields(fields) => fields,
        Parameters::Schema(_) => &[],
    };
    let fixed = use_of(cx, snapshot, open).is_some_and(|u| !u.args.is_empty());
    let defaults = fields.iter().any(|(_, ty)| ty.default.is_some());
    if !fixed && !defaults {
        return None;
    }
    let given =
        arguments(&cx.bodies.text(open.edited.unwrap_or(open.call.args))).unwrap_or_default();
    let mut args = given.clone();
    if fixed && open.edited.is_none() {
        // A call whose fixed arguments fail ends before it begins.
        let fixed = mapping::fixed(cx, snapshot, open.owner, &open.call.called());
        args.extend(fixed.unwrap_or_default());
    }
    for (name, ty) in fields {
        if let Some(default) = &ty.default
            && !args.contains_key(&**name)
        {
            args.insert(name.to_string(), default.clone());
        }
    }
    (args != given).then_some(args)
}

/// Makes the questions of a tool's wish those of the line that asked for its call (`then`), whatever was written since. `now` is the
/// snapshot in which the effect is outstanding.
pub(crate) fn ask_as_of(cx: &Cx<'_>, then: &Snapshot, now: &Snapshot, wish: &mut Wish) {
    let (Work::Tool(work) | Work::Simulate(work)) = &mut wish.work else {
        return;
    };
    if let Some(open) = now.call_of(wish.id) {
        let tool = cx.network.tool(&work.tool);
        work.approve = approvals(cx, then, open, tool);
        work.inputs = inputs(cx, then, open, tool);
    }
}

/// Returns the approvals that a call needs, in order: those of the tool before those of its use. The approver who
/// approved the call with changed arguments is not asked again about the effect that this made.
pub(crate) fn approvals(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
    tool: &ToolDef,
) -> Vec<Approval> {
    let own: &[Approve] = use_of(cx, snapshot, open).map_or(&[], |u| &u.approve);
    if tool.approve.is_empty() && own.is_empty() {
        return Vec::new();
    }
    let args = mapping::arguments(cx, snapshot, open);
    let view = View::new(cx, snapshot, Some(open.owner)).with("args", Json::Object(args.clone()));
    // A call is refused if an expression fails when the call is judged. If it fails only now, a person decides.
    let wanted = tool.approve.iter().chain(own);
    let mut wanted: Vec<&Approve> = wanted
        .filter(|a| view.holds(&a.when).unwrap_or(true))
        .collect();
    let edited = open.edited.map(Body::line);
    let is_own = open.approved && edited == open.effect.map(Id::line);
    let approver = open.approver.as_ref().filter(|_| is_own);
    let asks = |approve: &Approve, by: &Name| approve.line().any(|a| a.by == *by);
    if let Some(k) = approver.and_then(|by| wanted.iter().position(|a| asks(a, by))) {
        wanted.remove(k);
    }
    let given = cx.bodies.text(open.edited.unwrap_or(open.call.args));
    let values = [("tool", &*tool.name), ("args", &*given)];
    let plain = say(cx, snapshot, open.owner, texts::APPROVE, &values);
    let because = |approve: &Approve| {
        (&*approve.when.source != "true").then(|| approve.when.source.to_string())
    };
    wanted
        .into_iter()
        .map(|approve| {
            let shown = |name: &Name| shown(cx, snapshot, open.owner, &args, name);
            approval(approve, &view, &shown, &plain, because(approve))
        })
        .collect()
}

/// Returns the artifact that an argument names: an argument of the call, otherwise of the calling agent or of an
/// agent above it.
pub(super) fn shown(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    owner: Id,
    args: &Map<String, Json>,
    name: &Name,
) -> Option<String> {
    let text = |args: &Map<String, Json>| args.get(&**name)?.as_str().map(str::to_owned);
    let mut found = text(args);
    let mut at = Some(owner);
    while let (None, Some(id)) = (&found, at) {
        let agent = snapshot.agent(id);
        let own = agent
            .input
            .args
            .and_then(|body| arguments(&cx.bodies.text(body)).ok());
        found = own.as_ref().and_then(text);
        at = agent.family.parent;
    }
    found.filter(|name| artifact::find(snapshot, Some(owner), name).is_some())
}

fn approval(
    approve: &Approve,
    view: &View<'_>,
    shown: &dyn Fn(&Name) -> Option<String>,
    plain: &str,
    because: Option<String>,
) -> Approval {
    let ask = approve.ask.as_ref();
    Approval {
        by: approve.by.clone(),
        ask: ask
            .and_then(|t| t.render(view).ok())
            .unwrap_or_else(|| plain.to_owned()),
        show: approve.show.iter().filter_map(shown).collect(),
        edit: approve.edit.clone(),
        timeout: approve.timeout,
        on_timeout: match &approve.on_timeout {
            OnTimeout::Reject => OnTimeout::Reject,
            OnTimeout::Approve => OnTimeout::Approve,
            OnTimeout::Next(next) => OnTimeout::Next(Box::new(approval(
                next,
                view,
                shown,
                plain,
                because.clone(),
            ))),
        },
        because,
    }
}

/// Returns the secret parameters that a person must give, with the questions.
fn inputs(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
    tool: &ToolDef,
) -> Vec<(Name, String)> {
    let Parameters::Fields(fields) = &tool.parameters else {
        return Vec::new();
    };
    let secret = |(_, ty): &&(Name, Type)| ty.kind == TypeKind::Secret;
    if !fields.iter().any(|f| secret(&f)) {
        return Vec::new();
    }
    let given = mapping::arguments(cx, snapshot, open);
    let view = View::new(cx, snapshot, Some(open.owner)).with("args", Json::Object(given.clone()));
    fields
        .iter()
        .filter(secret)
        .filter(|(name, _)| given.get(&**name).is_none_or(Json::is_null))
        .map(|(name, ty)| {
            let ask = ty.ask.as_ref().and_then(|t| t.render(&view).ok());
            (name.clone(), ask.unwrap_or_else(|| format!("{name}?")))
        })
        .collect()
}
