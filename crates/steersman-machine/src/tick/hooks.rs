//! Hooks of a tick: asked where an answer, arguments, a result or an end is made. The place holds what the hooks gave, and the
//! line holds what they changed.

use crate::context::{self, History, RenderCache, hooked};
use crate::network::hooks::{self, AllRan, At, Edits};
use crate::questions::Purpose;
use crate::questions::judgement::serves_review;
use crate::snapshot::OpenCall;
use crate::stored::codes::Code;
use crate::stored::commit::{Change, Commit, Hooked, Moment, Text, Want};
use crate::stored::ids::{Bodies, Body, Id, Line, Name};
use crate::stored::interaction::{How, Interaction};
use crate::stored::outcome::{Answer, Ask};
use crate::stored::parts::{NewPart, Parts};
use crate::tick::Tick;
use crate::tick::call::{Ending, Said, class};
use crate::tick::effect::Step;
use crate::values::json::arguments;
use crate::view::Cx;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Returns an answer as a hook gets it.
fn given(answer: &Answer) -> hooks::Answer {
    let calls = answer.asks.iter().enumerate();
    hooks::Answer {
        text: answer.text.clone(),
        calls: calls.map(|(at, ask)| given_call(at, ask)).collect(),
    }
}

fn given_call(at: usize, ask: &Ask) -> hooks::Call {
    let args = arguments(&ask.args).map(Json::Object);
    hooks::Call {
        ask: Some(at),
        label: ask.label.clone(),
        name: ask.name.clone(),
        args: args.unwrap_or_else(|_| ask.args.clone().into()),
    }
}

/// Returns the call that a hook gave. A call that it left as it was keeps the text of the model.
fn into_ask(call: hooks::Call, asks: &[Ask]) -> Ask {
    let was = call.ask.and_then(|at| Some((at, asks.get(at)?)));
    let same = was.filter(|(at, was)| {
        let was = given_call(*at, was);
        was.name == call.name && was.args == call.args
    });
    if let Some((_, same)) = same {
        return same.clone();
    }
    Ask {
        label: call.label,
        args: in_text(call.args),
        name: call.name,
        misfit: None,
    }
}

/// Reads a value whose form was checked when a hook gave it.
fn of_form<T: DeserializeOwned>(is: Json) -> T {
    serde_json::from_value(is).expect("a value of another form is a failure of its hook")
}

/// A hook failed, and its agent has ended.
pub(crate) struct HookFailed;

impl Tick<'_> {
    fn ask_hooks(
        &self,
        agent: Id,
        moment: Moment,
        tool: Option<&Name>,
        args: impl FnOnce() -> Option<Json>,
        value: impl FnOnce() -> Json,
    ) -> AllRan {
        let def = &self.agent(agent).def;
        if !self.network.has_hooks(def) {
            return AllRan::default();
        }
        let at = At {
            moment,
            agent: def.clone(),
            tool: tool.cloned(),
            args: args(),
            effect: None,
        };
        self.network.ask_hooks(&at, value)
    }

    /// Records what hooks changed.
    pub(crate) fn record_hooks(&mut self, agent: Id, effect: Option<Id>, at: Moment, all: AllRan) {
        for ran in all.ran {
            let change = self.body(ran.change().to_string());
            self.change(Change::Hooked(Hooked {
                agent,
                effect,
                at,
                hook: ran.hook,
                change,
            }));
        }
    }

    /// Asks the hooks after a model call. Returns the changed answer, `None` if none changed it.
    pub(crate) fn after_model(
        &mut self,
        agent: Id,
        effect: Id,
        answer: &Answer,
    ) -> Result<Option<Answer>, String> {
        let value = || json!(given(answer));
        let mut all = self.ask_hooks(agent, Moment::AfterModel, None, || None, value);
        let (is, failed) = (all.is.take(), all.failed.take());
        self.record_hooks(agent, Some(effect), Moment::AfterModel, all);
        if let Some(why) = failed {
            return Err(why);
        }
        let Some(is) = is else {
            return Ok(None);
        };
        let given: hooks::Answer = of_form(is);
        let same = given.text == answer.text;
        let asks = given.calls.into_iter();
        Ok(Some(Answer {
            asks: asks.map(|call| into_ask(call, &answer.asks)).collect(),
            misfit: answer.misfit.clone().filter(|_| same),
            text: given.text,
            ..answer.clone()
        }))
    }

    /// Asks the hooks before a call of a tool or agent. The caller records them when the call has its id.
    pub(crate) fn before_call(&self, owner: Id, tool: &Name, args: &Json) -> AllRan {
        if !args.is_object() {
            return AllRan::default();
        }
        let value = || args.clone();
        self.ask_hooks(owner, Moment::BeforeCall, Some(tool), || None, value)
    }

    /// Asks the hooks after a call. Returns the result as the caller gets it. If a hook failed, nobody sees the result.
    pub(crate) fn after_call<'e>(
        &mut self,
        owner: Id,
        open: &OpenCall,
        how: How,
        mut ending: Ending<'e>,
    ) -> (How, Ending<'e>) {
        let was_made = !matches!(how, How::Refused | How::Cancelled | How::NotInThisBranch);
        let failed_before = ending.code == Some(Code::Hook.text());
        let text = match &ending.said {
            Said::Text(text) => Arc::from(&**text),
            Said::Body(body) => self.text(*body),
            Said::Nothing => return (how, ending),
        };
        if !was_made || failed_before {
            return (how, ending);
        }
        let (tool, given) = (&open.call.name, open.edited.unwrap_or(open.call.args));
        let args = || serde_json::from_str(&self.text(given)).ok();
        let value = || Json::from(&*text);
        let mut all = self.ask_hooks(owner, Moment::AfterCall, Some(tool), args, value);
        let (is, failed) = (all.is.take(), all.failed.take());
        self.record_hooks(owner, Some(open.call.id), Moment::AfterCall, all);
        if let Some(why) = failed {
            ending.code = Some(Code::Hook.text());
            let text = format!(
                "{}: the call was made, and its result is not shown, because {why}",
                Code::Hook
            );
            ending.said = Said::Text(text);
            ending.more = Vec::new();
            ending.mode = None;
            // The call stays done.
            let how = match how {
                how if !how.is_ok() => how,
                _ if class(&open.call.target).is_free() => How::Failed,
                _ => How::Unknown,
            };
            return (how, ending);
        }
        if let Some(is) = is {
            if let Said::Body(body) = ending.said {
                ending.more = self.texts.of_outcome(body).1;
                ending
                    .more
                    .retain(|part| matches!(part, NewPart::Artifact(_)));
            }
            ending.said = Said::Text(of_form(is));
        }
        (how, ending)
    }

    /// Asks the hooks before an answer ends an agent's turn or task. Returns the changed answer, `None` if none changed it. If a
    /// hook fails, the agent ends, and so does the call that gave the answer.
    pub(crate) fn on_finish(
        &mut self,
        agent: Id,
        call: Option<Id>,
        text: &str,
    ) -> Result<Option<String>, HookFailed> {
        // The verdict of a reviewer is no answer.
        if serves_review(&self.snapshot, agent) {
            return Ok(None);
        }
        let value = || Json::from(text);
        let mut all = self.ask_hooks(agent, Moment::Finish, None, || None, value);
        let (is, failed) = (all.is.take(), all.failed.take());
        self.record_hooks(agent, None, Moment::Finish, all);
        let Some(why) = failed else {
            return Ok(is.map(of_form));
        };
        if let Some(call) = call {
            let text = self.body(&*why);
            let code = Some(Code::Hook.text());
            self.push_result(agent, call, How::Failed, code, Some(text));
        }
        self.fail(agent, Code::Hook, &why);
        Err(HookFailed)
    }

    /// Does the same with a text that is stored already.
    pub(crate) fn on_finish_of(
        &mut self,
        agent: Id,
        has: Option<Body>,
    ) -> Result<Option<Body>, HookFailed> {
        let Some(body) = has else {
            return Ok(None);
        };
        let text = self.text(body);
        let edited = self.on_finish(agent, None, &text)?;
        Ok(Some(edited.map_or(body, |text| self.body(text))))
    }
}

/// Returns the answer of a model as the hooks after it got it: the rest of it is that of `like`. `None` if the record is no answer.
pub fn answer(was: Json, like: Answer) -> Option<Answer> {
    let given: hooks::Answer = serde_json::from_value(was).ok()?;
    let asks = given.calls.into_iter();
    Some(Answer {
        text: given.text,
        asks: asks.map(|call| into_ask(call, &[])).collect(),
        ..like
    })
}

fn in_text(value: Json) -> String {
    match value {
        Json::String(text) => text,
        value => value.to_string(),
    }
}

/// The log together with a line that is not written yet.
struct Drafted<'a> {
    log: &'a dyn History,
    line: Line,
    commit: &'a Commit,
    bodies: &'a [Text],
}

impl Bodies for Drafted<'_> {
    fn parts(&self, body: Body) -> Parts {
        if body.line() != self.line {
            return self.log.parts(body);
        }
        match self.bodies.get(body.k() as usize) {
            Some(Text::Here(text)) => Parts::One(text.text().clone()),
            Some(Text::Parts(parts)) => Parts::Several(parts.clone()),
            Some(Text::Blob { .. } | Text::Erased { .. }) | None => Parts::One("".into()),
        }
    }
}

impl History for Drafted<'_> {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        if line != self.line {
            return self.log.pushes(agent, line);
        }
        let own = || self.commit.pushes.iter().filter(|push| push.agent == agent);
        let below = own().next().map_or(Line::NONE, |push| push.prev);
        (own().map(|push| push.what.clone()).collect(), below)
    }

    fn hooked(&self, _: Id) -> Vec<Hooked> {
        Vec::new()
    }
}

/// Asks the hooks before the model calls that a step wishes, and adds what they change to the step. So the change is in the line
/// of the wish, and the request that leaves later is the one that the line has. A tick cannot do it: it does not read stacks.
pub fn before_models(cx: &Cx<'_>, log: &dyn History, line: Line, step: &mut Step) {
    let Some(commit) = step
        .commit
        .as_ref()
        .filter(|_| !cx.network.hooks.is_empty())
    else {
        return;
    };
    let mut changes = Vec::new();
    for wished in commit.wished.iter().filter(|w| w.what == Want::Step) {
        let agent = step.snapshot.agent(wished.agent);
        if !cx.network.has_hooks(&agent.def) {
            continue;
        }
        let at = At {
            moment: Moment::BeforeModel,
            agent: agent.def.clone(),
            tool: None,
            args: None,
            effect: Some(wished.id),
        };
        let drafted = Drafted {
            log,
            line,
            commit,
            bodies: &step.bodies,
        };
        let cx = Cx {
            network: cx.network,
            bodies: &drafted,
        };
        if context::purpose(&cx, &step.snapshot, wished.agent) != Purpose::Answer
            || !cx.network.has_hooks_at(&at)
        {
            continue;
        }
        let mut cache = RenderCache::default();
        let request = context::unedited(&cx, &drafted, &step.snapshot, wished.agent, &mut cache);
        // If it cannot be rendered, the call fails for that reason.
        let Ok(request) = request else { continue };
        let texts = |request: &context::Request| json!(hooked::texts(request));
        let next = |request: context::Request, is: &Json| {
            let edits = Edits::between(&hooked::texts(&request), of_form(is.clone()));
            request.edited(&edits)
        };
        let all = cx.network.ask_each_hook(&at, request, texts, next);
        for ran in all.ran {
            let edits = match ran.is {
                Ok(is) => Edits::between(&of_form(ran.was), of_form(is)),
                Err(_) => Edits {
                    failed: all.failed.clone(),
                    ..Edits::default()
                },
            };
            let edits = serde_json::to_string(&edits).expect("plain data can be written as JSON");
            changes.push((wished.agent, wished.id, ran.hook, edits));
        }
    }
    for (agent, effect, hook, edits) in changes {
        let body = Body::new(line, step.bodies.len() as u32);
        step.bodies.push(Text::Here(edits.into()));
        let commit = step.commit.as_mut().expect("it was there a moment ago");
        commit.changes.push(Change::Hooked(Hooked {
            agent,
            effect: Some(effect),
            at: Moment::BeforeModel,
            hook,
            change: body,
        }));
    }
}
