//! Opens and closes calls. Opening has three strict passes: all calls of an answer are pushed, then all are judged, then they
//! begin. Some tools (`fork`, `finish` and the floor tools) begin only when all other calls are closed.

mod begin;
mod beside;
mod judge;
mod rate;
mod result;
mod todo;
mod wish;

pub use beside::{Changed, asked_at, changed};
pub(crate) use judge::refusal;
pub(crate) use result::{Ending, Fitted, Said};
pub(crate) use wish::{ask_as_of, effective, wish};

use crate::network::hooks::AllRan;
use crate::network::{Does, Mode, ModelAgent, Network, Offer, Source, ToolDef, ToolUse};
use crate::routers::floor;
use crate::stored::bounds;
use crate::stored::built_in::BuiltIn;
use crate::stored::codes::Code;
use crate::stored::commit::{Change, Kind, Made, Moment};
use crate::stored::engine::Caller;
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::{
    Artifact, Call, CallResult, Class, How, Interaction, Number, Target,
};
use crate::stored::outcome::{Ask, Mapped, NewArtifact};
use crate::tick::Tick;
use crate::tick::effect::Request;
use crate::values::json::arguments;
use crate::values::types::{Parameters, Type, TypeKind, arguments_misfit};
use crate::view::{artifact, mapping};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// The meaning of a name in an answer, found before anything is pushed.
struct Resolved {
    name: Name,
    seen: Option<Name>,
    to: To,
    refused: Option<Mapped>,
}

enum To {
    Target(Target),
    /// A call to an agent: its definition, and the name of the instance if the caller gives one.
    Agent(Name, Option<String>),
}

/// A call that the engine or a router makes.
pub(crate) struct NewCall<'a> {
    pub(crate) name: &'a Name,
    pub(crate) by: Caller,
    /// The member that runs the tool, for a router.
    pub(crate) member: Option<&'a Name>,
    /// The call right before it, if it follows in a chain.
    pub(crate) behind: Option<Number>,
    pub(crate) args: &'a Json,
}

impl<'a> NewCall<'a> {
    pub(crate) fn new(name: &'a Name, by: Caller, args: &'a Json) -> Self {
        Self {
            name,
            by,
            member: None,
            behind: None,
            args,
        }
    }
}

pub(crate) fn refuse(code: Code, text: impl Into<String>) -> Mapped {
    Mapped::plain(How::Refused, Some(code.text()), text)
}

/// Returns the end of a call that a hook failed to prepare.
fn hook_failed(why: &str) -> Mapped {
    let code = Code::Hook.text();
    Mapped::plain(How::Failed, Some(code), format!("{code}: {why}"))
}

/// Returns the target of a call of this tool.
pub(crate) fn target(tool: &ToolDef) -> Target {
    match &tool.source {
        Source::Wait(_) => Target::Wait,
        Source::Ask(person) => Target::Person(person.clone()),
        Source::BuiltIn(BuiltIn::AskUser) => Target::Person(Name::from("user")),
        Source::BuiltIn(BuiltIn::Fork) => Target::Branches(Vec::new()),
        Source::BuiltIn(
            BuiltIn::Finish
            | BuiltIn::Done
            | BuiltIn::NeedHelp
            | BuiltIn::Handoff
            | BuiltIn::TodoAdd
            | BuiltIn::TodoComplete
            | BuiltIn::TodoCancel
            | BuiltIn::TodoUpdate
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
        )
        | Source::State
        | Source::Http(_)
        | Source::Command { .. }
        | Source::Native { .. }
        | Source::Mcp { .. }
        | Source::Send(_) => Target::Tool(tool.effect),
    }
}

/// Returns the calls of an answer without repetitions by the server: equal calls under one provider id count once. Calls that
/// differ in tool or arguments are separate calls, even under the same id.
fn once_each(asks: &[Ask]) -> impl Iterator<Item = &Ask> {
    let is_same = |one: &Ask, other: &Ask| {
        let id = label(one).filter(|id| !id.is_empty());
        id.is_some() && id == label(other) && one.name == other.name && equal_args(one, other)
    };
    let said_before = move |n: usize, ask: &Ask| asks[..n].iter().any(|one| is_same(one, ask));
    let numbered = asks.iter().enumerate();
    numbered.filter_map(move |(n, ask)| (!said_before(n, ask)).then_some(ask))
}

/// Returns the provider's id of a call. An id that is too long is ignored, and an id of the machine is used instead.
fn label(ask: &Ask) -> Option<&str> {
    ask.label.as_deref().filter(|l| l.len() <= bounds::NAME)
}

/// Returns true if two calls have the same arguments, however they are written.
fn equal_args(one: &Ask, other: &Ask) -> bool {
    let read = |ask: &Ask| crate::values::json::comparable(&ask.args).ok();
    one.args == other.args || read(one).is_some_and(|args| read(other) == Some(args))
}

impl Tick<'_> {
    // ---- opening ---------------------------------------------------------------------------------------------

    /// Opens the calls of an answer: pushes all, then judges all. They begin when the agent moves.
    pub(crate) fn open_calls(&mut self, owner: Id, model: &ModelAgent, asks: &[Ask]) {
        let mut opened = Vec::with_capacity(asks.len());
        let mut uses: Vec<(&Name, u32)> = Vec::new();
        let mut last = false;
        for ask in once_each(asks) {
            let mut found = self.resolve(owner, model, ask);
            let (edited, hooks) = self.edited_ask(owner, ask, &found);
            if edited.is_some() {
                found = self.resolve(owner, model, edited.as_ref().unwrap_or(ask));
            }
            let ask = edited.as_ref().unwrap_or(ask);
            if let Some(why) = &hooks.failed {
                found.refused = Some(hook_failed(why));
            }
            if found.refused.is_none()
                && let Some(used) = model.tools.iter().find(|u| u.is_called(&ask.name))
            {
                found.refused = too_many(used, &mut uses, self.network);
                let comes_last = self
                    .network
                    .tools
                    .get(&found.name)
                    .is_some_and(ToolDef::is_last);
                if found.refused.is_none() && comes_last && std::mem::replace(&mut last, true) {
                    let text = format!(
                        "`{}` must be the only one of its kind in an answer",
                        ask.name
                    );
                    found.refused = Some(refuse(Code::Refused, text));
                }
            }
            let id = self.id();
            let label = label(ask);
            let text = if ask.args.trim().is_empty() {
                "{}"
            } else {
                &ask.args
            };
            let args = self.body(text);
            let target = match (found.to, &found.refused) {
                (To::Target(target), _) => target,
                // A call that is refused makes no agent.
                (To::Agent(..), Some(_)) => Target::Unknown,
                (To::Agent(def, named), None) => {
                    Target::Agent(self.instance(owner, &def, named.as_deref()))
                }
            };
            let number = self.number(owner, None);
            self.push(
                owner,
                Interaction::Call(Call {
                    id,
                    name: found.name,
                    by: Caller::Model,
                    seen: found.seen,
                    target,
                    label: label.map(Name::from),
                    args,
                    number,
                }),
            );
            self.record_hooks(owner, Some(id), Moment::BeforeCall, hooks);
            opened.push((id, found.refused));
        }
        for (id, refused) in opened {
            if let Some(mapped) = refused.or_else(|| self.judge(owner, id)) {
                self.close_call(owner, id, mapped);
            }
        }
        self.wake(owner);
    }

    /// Asks the hooks before a call of a model. Returns the call with the arguments that they gave, if they changed them.
    fn edited_ask(&self, owner: Id, ask: &Ask, found: &Resolved) -> (Option<Ask>, AllRan) {
        if matches!(found.to, To::Target(Target::Unknown)) || self.network.hooks.is_empty() {
            return (None, AllRan::default());
        }
        let Ok(args) = arguments(&ask.args) else {
            return (None, AllRan::default());
        };
        let hooks = self.before_call(owner, &found.name, &Json::Object(args));
        let edited = hooks.is.as_ref().map(|args| Ask {
            args: args.to_string(),
            misfit: None,
            ..ask.clone()
        });
        (edited, hooks)
    }

    /// Returns the number of an agent's next call. A call that follows in a chain is opened in an order that depends on the speed
    /// of the other calls, so it is numbered after the call that began the chain.
    pub(crate) fn number(&self, owner: Id, behind: Option<Number>) -> Number {
        match behind {
            Some(behind) => behind.next_step(),
            None => Number {
                call: self.agent(owner).stack.calls + 1,
                step: 0,
            },
        }
    }

    /// Opens a call of a tool that the engine makes: a `then:`, a router's plain tool, a tool that runs ahead of a turn.
    pub(crate) fn open_call(&mut self, owner: Id, call: NewCall<'_>) -> Id {
        let tool = call.name;
        let hooks = self.before_call(owner, tool, call.args);
        let edited = hooks.is.clone();
        let call = NewCall {
            args: edited.as_ref().unwrap_or(call.args),
            ..call
        };
        let failed = hooks.failed.as_deref().map(hook_failed);
        let def = self.network.tools.get(tool);
        let misfit = match (def, call.args.as_object()) {
            (None, _) => Some(refuse(
                Code::UnknownTool,
                format!("there is no tool `{tool}`"),
            )),
            (Some(def), Some(args)) => arguments_misfit(
                &shown(&def.parameters, |_, ty| ty.kind != TypeKind::Secret),
                args,
            )
            .map(|m| refuse(Code::Misfit, format!("misfit: {}", m.under("args")))),
            (Some(_), None) => Some(refuse(Code::Misfit, "misfit: `args` must be an object")),
        };
        let target = def.map_or(Target::Unknown, target);
        let id = self.push_call(owner, call, target);
        self.record_hooks(owner, Some(id), Moment::BeforeCall, hooks);
        if let Some(mapped) = failed.or(misfit).or_else(|| self.judge(owner, id)) {
            self.close_call(owner, id, mapped);
        }
        id
    }

    /// Pushes a call that the engine makes for itself: it has the name of its purpose.
    pub(crate) fn engine_call(&mut self, owner: Id, by: Caller, args: &Json, target: Target) {
        let name = by
            .name()
            .expect("a call that the engine makes for itself has a name");
        self.push_call(owner, NewCall::new(&name, by, args), target);
    }

    /// Pushes a call that no model made. The call is not judged.
    pub(crate) fn push_call(&mut self, owner: Id, call: NewCall<'_>, target: Target) -> Id {
        let id = self.id();
        let number = self.number(owner, call.behind);
        let args = self.body(call.args.to_string());
        self.push(
            owner,
            Interaction::Call(Call {
                id,
                name: call.name.clone(),
                by: call.by,
                seen: call.member.filter(|member| *member != call.name).cloned(),
                target,
                label: None,
                args,
                number,
            }),
        );
        self.wake(owner);
        id
    }

    /// Returns the instance that a call to an agent goes to: the one to be continued, or else a new one.
    pub(crate) fn instance(&mut self, owner: Id, def: &Name, named: Option<&str>) -> Id {
        let parent = self.agent(owner);
        let known = match (named, parent.kind) {
            (Some(named), _) => parent.family.children.get(&*format!("{def}/{named}")),
            (None, Kind::Routed) => parent.family.children.get(def),
            (None, Kind::Model) => None,
        };
        if let Some(known) = known {
            return *known;
        }
        self.make_agent(def, Some(owner), named.map(Name::from))
    }

    /// Makes an agent, with the defaults of the state that it declares.
    pub(crate) fn make_agent(&mut self, def: &Name, parent: Option<Id>, named: Option<Name>) -> Id {
        let agent = self.id();
        let def = self.network.agent(def);
        let kind = crate::tick::carry::kind(def);
        let state = self.defaults(agent, def);
        self.make(Made {
            agent,
            def: def.name.clone(),
            kind,
            parent,
            named,
            mode: def.mode(None).map(|mode| mode.name.clone()),
            state,
        });
        agent
    }

    /// Resolves a name in an answer, and checks that the arguments fit.
    fn resolve(&self, owner: Id, model: &ModelAgent, ask: &Ask) -> Resolved {
        let unknown = |refused: Mapped| Resolved {
            name: bounds::name(&ask.name),
            seen: None,
            to: To::Target(Target::Unknown),
            refused: Some(refused),
        };
        let Some(used) = self.offered(owner, model, &ask.name) else {
            let mut text = self.unknown_text(owner, model, &bounds::name(&ask.name));
            text.push_str(&self.elsewhere(owner, &ask.name));
            return unknown(refuse(Code::UnknownTool, text));
        };
        let refused = if self.agent(owner).counters.last_call {
            Some(refuse(
                Code::Limit,
                "limit: tools are off now, an answer is wanted",
            ))
        } else {
            let misfit = ask.misfit.as_ref();
            misfit.map(|why| refuse(Code::Misfit, format!("misfit: {why}")))
        };
        let args = match arguments(&ask.args) {
            Ok(args) => args,
            Err(why) => {
                let mut found = self.resolved(used, &Map::new(), None);
                found.refused = Some(refuse(Code::Misfit, format!("misfit: {why}")));
                return found;
            }
        };
        let refused = refused.or_else(|| self.misfit(owner, used, &args));
        self.resolved(used, &args, refused)
    }

    /// Returns the end of a sentence that names the other modes in which this name is offered.
    fn elsewhere(&self, owner: Id, seen: &str) -> String {
        let state = self.agent(owner);
        let (Some(modes), Some(mode)) = (
            &self.def(owner).modes,
            self.def(owner).mode(state.mode.as_ref()),
        ) else {
            return String::new();
        };
        let offers = |other: &&Mode| {
            let mut uses = other.model.tools.iter();
            uses.any(|used| !used.implied && used.is_called(seen))
        };
        let others: Vec<&str> = modes.all.iter().filter(offers).map(|m| &*m.name).collect();
        if others.is_empty() {
            return String::new();
        }
        format!(
            "; the mode is {}, and it is offered in {}",
            mode.name,
            others.join(", ")
        )
    }

    fn resolved(
        &self,
        used: &ToolUse,
        args: &Map<String, Json>,
        refused: Option<Mapped>,
    ) -> Resolved {
        let alias = |name: &Name| Some(used.seen.clone()).filter(|seen| seen != name);
        match &used.of {
            Offer::Tool(name) => Resolved {
                seen: alias(name),
                to: To::Target(target(self.network.tool(name))),
                name: name.clone(),
                refused,
            },
            Offer::Agent(name) => {
                let to = match self.network.agents.get(name).map(|d| &d.does) {
                    Some(Does::Run { tool, .. }) => {
                        return Resolved {
                            name: tool.clone(),
                            seen: Some(used.seen.clone()),
                            to: To::Target(target(self.network.tool(tool))),
                            refused,
                        };
                    }
                    Some(Does::Model(_) | Does::Route(_)) => {
                        let named = used.named.then(|| args.get("name").and_then(Json::as_str));
                        To::Agent(name.clone(), named.flatten().map(str::to_owned))
                    }
                    // An offered agent without a definition of its own is a person.
                    None => To::Target(Target::Person(name.clone())),
                };
                Resolved {
                    seen: alias(name),
                    name: name.clone(),
                    to,
                    refused,
                }
            }
        }
    }

    /// Returns the use of a tool or agent that is offered under this name now.
    fn offered<'m>(&self, owner: Id, model: &'m ModelAgent, seen: &str) -> Option<&'m ToolUse> {
        let used = model.tools.iter().find(|u| u.is_called(seen))?;
        self.is_offered(owner, used).then_some(used)
    }

    fn is_offered(&self, owner: Id, used: &ToolUse) -> bool {
        match &used.when {
            None => match self.network.floor_tool(used) {
                Some(kind) => floor::offers(&self.cx(), &self.snapshot, owner, kind),
                None => !used.implied || artifact::sees_any(&self.snapshot, owner),
            },
            // If the expression fails, the tool is not offered.
            Some(when) => self.view(owner).holds(when).unwrap_or(false),
        }
    }

    fn unknown_text(&self, owner: Id, model: &ModelAgent, name: &str) -> String {
        let offered = model
            .tools
            .iter()
            .filter(|used| self.is_offered(owner, used))
            .map(|used| crate::network::wire_name(&used.seen));
        let offered: Vec<String> = offered.collect();
        if offered.is_empty() || self.agent(owner).counters.last_call {
            return format!("there is no tool `{name}`; none are offered");
        }
        let offered = offered.join(", ");
        format!("there is no tool `{name}`; offered are {offered}")
    }

    /// Returns a refusal if the arguments of a model do not fit, or if no more agents may be started.
    fn misfit(&self, owner: Id, used: &ToolUse, args: &Map<String, Json>) -> Option<Mapped> {
        let bad = |text: String| Some(refuse(Code::Misfit, format!("misfit: {text}")));
        let parameters = &*self.parameters_of(owner, used);
        let named = used.named && !declares(parameters, "name");
        let misfit = if named {
            if args
                .get("name")
                .and_then(Json::as_str)
                .is_none_or(str::is_empty)
            {
                return bad("`args.name` is missing: it chooses who is called".to_owned());
            }
            let mut args = args.clone();
            args.shift_remove("name");
            arguments_misfit(&shown(parameters, |name, ty| gives(used, name, ty)), &args)
        } else {
            arguments_misfit(&shown(parameters, |name, ty| gives(used, name, ty)), args)
        };
        if let Some(misfit) = misfit {
            return bad(misfit.under("args").to_string());
        }
        if let Some(text) = self.no_artifact(owner, parameters, args) {
            return bad(text);
        }
        match &used.of {
            // A call that is refused here makes no agent.
            Offer::Agent(name) if self.network.agents.contains_key(name) => {
                let fault = self.fixed_fault(owner, used);
                let ended = fault.map(|fault| mapping::plain(&fault));
                ended.or_else(|| self.may_start(owner))
            }
            Offer::Agent(_) | Offer::Tool(_) => None,
        }
    }

    /// Returns an error message if an argument for an artifact names one that the caller does not see.
    fn no_artifact(
        &self,
        owner: Id,
        parameters: &Parameters,
        args: &Map<String, Json>,
    ) -> Option<String> {
        let there = artifact::seen(&self.snapshot, Some(owner));
        let there: Vec<&str> = there.iter().map(|seen| &*seen.name).collect();
        artifact::missing(parameters, args, &there)
    }

    // ---- closing ---------------------------------------------------------------------------------------------

    /// Closes a call: pushes its result with its writes and opens the call that follows it. Wakes its owner. If a write or the
    /// mode does not fit, the call fails and none of its writes is made.
    pub(crate) fn close_call(&mut self, owner: Id, call: Id, mapped: Mapped) {
        let Some(open) = self
            .snapshot
            .call(owner, call)
            .filter(|c| c.closed.is_none())
        else {
            return;
        };
        let (first, behind) = (open.call.chain().unwrap_or(call), open.call.number);
        let mode = self.mode_said(owner, mapped.mode.as_deref());
        let writes = mode.and_then(|mode| {
            Ok((
                self.writes(owner, &mapped.writes)
                    .map_err(|m| m.to_string())?,
                mode,
            ))
        });
        let (writes, mode, failed) = match writes {
            Ok((writes, mode)) => (writes, mode, None),
            Err(misfit) => (Vec::new(), None, Some(format!("misfit: {misfit}"))),
        };
        let how = if failed.is_some() {
            How::Failed
        } else {
            mapped.how
        };
        let code = if failed.is_some() {
            Some(Code::Misfit.text())
        } else {
            mapped.code.as_deref()
        };
        // Artifacts of a call belong to its caller, like state that the caller declares.
        let made = |new: NewArtifact| Artifact {
            scope: owner,
            call,
            name: bounds::name(&new.name),
            media: bounds::name(&new.media),
            hash: new.hash,
            len: new.len,
        };
        let said = failed.clone().or(mapped.shown);
        let ending = Ending {
            code,
            said: said.map_or(Said::Nothing, Said::Text),
            more: if failed.is_some() {
                Vec::new()
            } else {
                mapped.more
            },
            writes,
            artifacts: mapped.artifacts.into_iter().map(made).collect(),
            by: mapped.by,
            mode,
        };
        let stands = self.end_call(owner, call, how, ending);
        if let Some((tool, args)) = mapped.then
            && failed.is_none()
            && stands
            && !self.cancelling
        {
            let tool = tool.into();
            let follows = NewCall {
                behind: Some(behind),
                ..NewCall::new(&tool, Caller::Chain(first), &args)
            };
            self.open_call(owner, follows);
        }
    }

    /// Closes a call with a result that has no writes.
    pub(crate) fn push_result(
        &mut self,
        owner: Id,
        call: Id,
        how: How,
        code: Option<&str>,
        body: Option<Body>,
    ) {
        let ending = Ending {
            code,
            said: body.map_or(Said::Nothing, Said::Body),
            ..Ending::default()
        };
        self.end_call(owner, call, how, ending);
    }

    /// Closes a call with its result. A call that is closed already stays as it is. Returns false if a hook failed after it.
    pub(crate) fn end_call(&mut self, owner: Id, call: Id, how: How, ending: Ending<'_>) -> bool {
        let Some(open) = self
            .snapshot
            .call(owner, call)
            .filter(|c| c.closed.is_none())
        else {
            return true;
        };
        let open = open.clone();
        let effect = open.effect;
        let judges = open.call.judged().is_some();
        let branches = crate::tick::branch::opened(&open.call).to_vec();
        // The agent's net hears of the end of a state's call.
        let is_of_state = self.snapshot.is_of_state(owner, &open.call);
        // The engine makes these calls for itself: their failure does not fail the agent.
        let asked = open.call.is_for_more() || open.call.is_extraction();
        if let Some(effect) = effect {
            self.stop(effect);
        }
        if !branches.is_empty() {
            self.requests.push(Request::Supersede { branches });
        }
        if judges {
            self.end_review(owner, &open.call, how, ending);
            return true;
        }
        let code = ending.code;
        let (how, ending) = if asked {
            (how, ending)
        } else {
            self.after_call(owner, &open, how, ending)
        };
        let stands = ending.code == code;
        // A caller that ends with this result hands on the whole text of the called agent.
        let whole = match &ending.said {
            Said::Body(body) => Some(*body),
            Said::Text(_) | Said::Nothing => None,
        };
        let ending = self.fitted(owner, call, ending);
        let to_judge = self.results_to_judge(owner, call, how, ending.body);
        let failed = !asked
            && matches!(how, How::Failed | How::Limit | How::Refused | How::Unknown)
            && !self.is_handled(owner, call, ending.code);
        if !is_of_state {
            let results = self.results.entry(owner).or_default();
            results.came(whole.or(ending.body), failed, to_judge);
        }
        self.push_end(owner, call, how, ending);
        stands
    }

    pub(crate) fn push_end(&mut self, owner: Id, call: Id, how: How, ending: Fitted<'_>) {
        if let Some(mode) = ending.mode.filter(|_| how.is_ok()) {
            self.change(Change::Asked(owner, call, mode));
        }
        let exchange = self.closing(owner, call, how);
        self.push(
            owner,
            Interaction::Result(CallResult {
                call,
                how,
                body: ending.body,
                code: ending.code.map(bounds::name),
                writes: ending.writes,
                artifacts: ending.artifacts,
                by: ending.by,
            }),
        );
        if let Some(exchange) = exchange {
            self.exchange_closed(owner, &exchange);
        }
        self.wake(owner);
    }

    /// Returns true if the definition handles this failure of a tool (`on_error`). A router then goes on by its rules.
    fn is_handled(&self, owner: Id, call: Id, code: Option<&str>) -> bool {
        let open = self.snapshot.call(owner, call);
        let tool = open.and_then(|c| self.network.tools.get(&c.call.name));
        let (Some(tool), Some(code)) = (tool, code) else {
            return false;
        };
        mapping::handles(tool, code)
    }
}

/// Returns true if a model gives this parameter: it is neither fixed nor a secret that a person is asked for.
fn gives(used: &ToolUse, name: &str, ty: &Type) -> bool {
    ty.kind != TypeKind::Secret && !used.args.iter().any(|(fixed, _)| **fixed == *name)
}

/// Returns the parameters that `gives` accepts; borrowed if it accepts all.
fn shown(parameters: &Parameters, gives: impl Fn(&str, &Type) -> bool) -> Cow<'_, Parameters> {
    match parameters {
        Parameters::Fields(fields) if !fields.iter().all(|(n, ty)| gives(n, ty)) => {
            let fields = fields.iter().filter(|(n, ty)| gives(n, ty));
            Cow::Owned(Parameters::Fields(fields.cloned().collect()))
        }
        Parameters::Fields(_) | Parameters::Schema(_) => Cow::Borrowed(parameters),
    }
}

/// Returns the parameters of a tool with its secrets optional, because a person is asked for these later.
pub(crate) fn given(tool: &ToolDef) -> Cow<'_, Parameters> {
    let secret = |ty: &Type| ty.kind == TypeKind::Secret;
    match &tool.parameters {
        Parameters::Fields(fields) if fields.iter().any(|(_, ty)| secret(ty)) => {
            let optional = |(name, ty): &(Name, Type)| {
                let optional = ty.optional || secret(ty);
                (
                    name.clone(),
                    Type {
                        optional,
                        ..ty.clone()
                    },
                )
            };
            Cow::Owned(Parameters::Fields(fields.iter().map(optional).collect()))
        }
        Parameters::Fields(_) | Parameters::Schema(_) => Cow::Borrowed(&tool.parameters),
    }
}

fn declares(parameters: &Parameters, name: &str) -> bool {
    match parameters {
        Parameters::Fields(fields) => fields.iter().any(|(n, _)| **n == *name),
        Parameters::Schema(_) => false,
    }
}

/// Returns the parameters of an agent or person that declares none: one text, `message`.
pub(crate) fn message_parameter() -> Parameters {
    let text = Type {
        kind: TypeKind::String { pattern: None },
        optional: false,
        default: None,
        description: None,
        expires: None,
        by: Vec::new(),
        reduce: crate::stored::interaction::Reduce::Last,
        ask: None,
    };
    Parameters::Fields(vec![("message".into(), text)])
}

/// Counts a use, and refuses it above its `max`. For `fork`, `max` is the number of branches and is not checked here.
fn too_many<'m>(
    used: &'m ToolUse,
    uses: &mut Vec<(&'m Name, u32)>,
    network: &Network,
) -> Option<Mapped> {
    let max = used.max?;
    if let Offer::Tool(name) = &used.of
        && matches!(network.tool(name).source, Source::BuiltIn(BuiltIn::Fork))
    {
        return None;
    }
    let known = uses.iter().position(|(seen, _)| **seen == used.seen);
    let at = known.unwrap_or(uses.len());
    if known.is_none() {
        uses.push((&used.seen, 0));
    }
    uses[at].1 += 1;
    (uses[at].1 > max).then(|| {
        refuse(
            Code::Limit,
            format!("limit: at most {max} calls of `{}` in an answer", used.seen),
        )
    })
}

/// Returns the effect class of a call: `pure` if it is not a call of a tool.
pub(crate) fn class(target: &Target) -> Class {
    match target {
        Target::Tool(class) => *class,
        Target::Agent(_)
        | Target::Person(_)
        | Target::Wait
        | Target::Branches(_)
        | Target::Unknown => Class::Pure,
    }
}
