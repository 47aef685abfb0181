//! Routed agents: who acts next. Each kind says what it chooses and why; here the choice is recorded and carried out.

mod native;
mod rules;
mod sequence;

use crate::call::{Ending, message_parameter, parse};
use crate::expression::Scope;
use crate::finish::{Conclude, Finish};
use crate::fold::choice_digest;
use crate::ids::{Id, Name};
use crate::interaction::{Call, Cause, Choice, How, Interaction, Route as Routed, Target};
use crate::limits::{self, Key, Reached};
use crate::network::{
    AgentDef, Does, Limit, OnFailed, OnLimit, Parameters, Per, Route, RouteBy, Type, TypeKind,
};
use crate::tick::Tick;
use crate::types::arguments_misfit;
use serde_json::{Map, Value as Json};

/// The same choice over unchanged state: at most so often in a row.
const SAME_CHOICE: u64 = 2;

/// What a router decided.
pub(crate) enum Decision {
    /// A choice and the values that led to it.
    Chosen(Choice, Map<String, Json>),
    /// Nothing it knows holds.
    NoRule,
    /// It could not decide.
    Failed(String),
}

impl Tick<'_> {
    /// One move of a routed agent that owes a decision.
    pub(crate) fn route(&mut self, agent: Id) {
        let def = self.def(agent);
        let Does::Route(route) = &def.does else {
            return;
        };
        let failed = self.closed.remove(&agent).is_some_and(|(_, failed)| failed);
        if failed && !self.goes_on(agent, route) {
            return;
        }
        if self.agent(agent).phase != crate::snapshot::Phase::Routing {
            return;
        }
        // It keeps the router from calling one more, and not from being done.
        let reached = limits::reached(&self.cx(), &self.snapshot, agent, self.now);
        if let Some(next) = self.agent(agent).routing.pending.first().cloned() {
            if let Some(reached) = reached {
                self.limit(agent, &reached);
                return;
            }
            return self.call_member(agent, def, &next);
        }
        let decision = match &route.by {
            RouteBy::Rules(rules) => rules::decide(&self.view(agent), rules),
            RouteBy::Sequence(members) => sequence::decide(self.agent(agent), members),
            RouteBy::Native { members, .. } => native::decide(
                self.network,
                &self.snapshot,
                agent,
                &self.view(agent),
                members,
            ),
        };
        match decision {
            Decision::Chosen(Choice::Agents(_), _) if let Some(reached) = reached => {
                self.limit(agent, &reached);
            }
            Decision::Chosen(choice, read) => self.choose(agent, def, choice, read),
            Decision::NoRule => self.end_route(agent, Cause::NoRule),
            Decision::Failed(text) => self.fail(agent, "route", &text),
        }
    }

    /// A member failed. Whether the route goes on by its own rules.
    fn goes_on(&mut self, agent: Id, route: &Route) -> bool {
        match &route.on_failed {
            OnFailed::Continue => true,
            OnFailed::To(member) => {
                let last = self.agent(agent).routing.last.as_ref();
                if last.is_some_and(|(name, ..)| name == member) {
                    // The one who mends failed, too.
                    self.fail_as_member(agent);
                    return false;
                }
                let choice = Choice::Agents(vec![member.clone()]);
                self.push_route(agent, choice, &Map::new());
                let def = self.def(agent);
                self.call_member(agent, def, member);
                false
            }
            OnFailed::Fail => {
                self.fail_as_member(agent);
                false
            }
        }
    }

    fn fail_as_member(&mut self, agent: Id) {
        let last = self.agent(agent).routing.last.clone();
        let (name, body) = last.map_or((None, None), |(name, _, body)| (Some(name), body));
        let why = body.map_or_else(|| "it gave no reason".into(), |b| self.text(b));
        let text = name.map_or_else(|| why.to_string(), |name| format!("`{name}` failed: {why}"));
        self.fail(agent, "ended_failed", &text);
    }

    fn choose(&mut self, agent: Id, def: &AgentDef, choice: Choice, read: Map<String, Json>) {
        match choice {
            Choice::Agents(members) if members.is_empty() => self.end_route(agent, Cause::Routed),
            Choice::Agents(ref members) => {
                let first = members[0].clone();
                if let Some(reached) = self.too_often(agent, &choice, &read) {
                    self.limit(agent, &reached);
                    return;
                }
                self.push_route(agent, choice, &read);
                self.call_member(agent, def, &first);
            }
            Choice::Finish => {
                self.push_route(agent, choice, &read);
                self.end_route(agent, Cause::Routed);
            }
            Choice::Stay => {
                self.fail(
                    agent,
                    "route",
                    "This kind of router can only choose members or finish.",
                );
            }
        }
    }

    /// Whether this choice would make no progress, or one call too many.
    fn too_often(
        &mut self,
        agent: Id,
        choice: &Choice,
        read: &Map<String, Json>,
    ) -> Option<Reached> {
        if let Some(reached) = limits::no_more_agents(&self.cx(), &self.snapshot, agent) {
            return Some(reached);
        }
        let limits = &self.def(agent).limits;
        let same = if limits.same_call.written {
            limits.same_call
        } else {
            Limit {
                max: SAME_CHOICE,
                per: Per::Answer,
                then: OnLimit::Fail,
                written: false,
            }
        };
        let body = self.body(Json::Object(read.clone()).to_string());
        let route = routed(choice.clone(), Some(body));
        let digest = choice_digest(self.line, &route, self.texts.came_in());
        self.texts.forget(body);
        let again = self.agent(agent).counters.same;
        let spent = again.is_some_and(|(d, times)| d == digest && u64::from(times) >= same.max);
        spent.then(|| Reached::new(Key::own("same_call"), &same))
    }

    fn push_route(&mut self, agent: Id, choice: Choice, read: &Map<String, Json>) {
        let read = self.body(Json::Object(read.clone()).to_string());
        self.push(agent, Interaction::Route(routed(choice, Some(read))));
    }

    /// The route is over: it gives what the last member gave.
    fn end_route(&mut self, agent: Id, cause: Cause) {
        let last = self.agent(agent).routing.last.clone();
        let count = self.agent(agent).routing.count;
        let body = last.filter(|_| count > 0).and_then(|(_, _, body)| body);
        let Some(body) = body else {
            let end = self.end_of(agent);
            return self.finish(
                agent,
                Finish {
                    end,
                    cause,
                    body: None,
                    code: None,
                    writes: Vec::new(),
                },
            );
        };
        let text = self.text(body);
        self.conclude(
            agent,
            Conclude {
                text: &text,
                body: Some(body),
                cause,
                call: None,
                misfit: None,
            },
        );
    }

    // ---- members ---------------------------------------------------------------------------------------------

    /// Calls a member: an agent by its one instance, a plain agent as a tool call, a person as a question.
    fn call_member(&mut self, agent: Id, def: &AgentDef, member: &Name) {
        if self.network.people.contains_key(member) {
            let args = Json::Object(self.member_args(agent, def, &message_parameter()));
            let target = Target::Person(member.clone());
            self.engine_call(agent, member, None, target, &args, None);
            return;
        }
        let Some(next) = self.network.agents.get(member) else {
            return self.fail(agent, "route", &format!("there is no member `{member}`"));
        };
        match &next.does {
            Does::Run { tool, args } => {
                let args = match args {
                    None => {
                        let parameters = &self.network.tool(tool).parameters;
                        Ok(self.member_args(agent, def, parameters))
                    }
                    Some(args) => crate::expression::arguments(args, &self.view(agent)),
                };
                match args {
                    Ok(args) => {
                        self.open_call(
                            agent,
                            tool,
                            Some(member.clone()),
                            &Json::Object(args),
                            None,
                        );
                    }
                    Err(e) => self.fail(agent, "route", &format!("arguments of `{member}`: {e}")),
                }
            }
            Does::Model(_) | Does::Route(_) => self.call_agent(agent, def, next),
        }
    }

    fn call_agent(&mut self, agent: Id, def: &AgentDef, next: &AgentDef) {
        let args = self.member_args(agent, def, &next.parameters);
        let misfit = arguments_misfit(&next.parameters, &args);
        let depth = limits::deepest(&self.cx(), &self.snapshot, agent);
        let why = match misfit {
            Some(misfit) => Some(misfit.under("args").to_string()),
            None if self.snapshot.depth(agent) >= depth => {
                Some(format!("agents may stand {depth} deep at most"))
            }
            None => None,
        };
        let id = self.id();
        let body = self.body(Json::Object(args).to_string());
        let target = match why {
            Some(_) => Target::Unknown,
            None => Target::Agent(self.instance(agent, &next.name, None)),
        };
        self.push(
            agent,
            Interaction::Call(Call {
                id,
                name: next.name.clone(),
                seen: None,
                target,
                label: None,
                args: body,
                chain: None,
            }),
        );
        if let Some(why) = why {
            let body = self.body(format!("limit: {why}"));
            let ending = Ending {
                code: Some("refused"),
                body: Some(body),
                ..Ending::default()
            };
            self.end_call(agent, id, How::Refused, ending);
        }
        self.wake(agent);
    }

    /// Arguments for a member: what the routed agent itself was called with, by name; `message` is what is to be
    /// answered, in a sequence what the one before gave.
    fn member_args(&self, agent: Id, def: &AgentDef, parameters: &Parameters) -> Map<String, Json> {
        let state = self.agent(agent);
        let text = state.message.map(|body| self.text(body));
        let called = state.args.map(|body| self.text(body));
        let own = called
            .and_then(|text| parse(&text).ok())
            .unwrap_or_default();
        let sequence = matches!(
            &def.does,
            Does::Route(Route {
                by: RouteBy::Sequence(_),
                ..
            })
        );
        let chained = state.routing.pending.len() < sequence_len(def);
        let before = state.routing.last.as_ref().and_then(|(_, _, body)| *body);
        let message = match (before, text) {
            (Some(before), _) if sequence && chained => self.text(before).to_string(),
            (_, Some(text)) => words(&text),
            (_, None) => String::new(),
        };
        let Parameters::Fields(fields) = parameters else {
            return own;
        };
        let mut args = Map::new();
        for (name, ty) in fields {
            let value = match own.get(&**name) {
                Some(_) if **name == *"message" => Some(Json::from(message.clone())),
                Some(value) => Some(value.clone()),
                None if takes_message(name, ty, fields) => Some(Json::from(message.clone())),
                None => None,
            };
            if let Some(value) = value {
                args.insert(name.to_string(), value);
            }
        }
        args
    }
}

fn sequence_len(def: &AgentDef) -> usize {
    match &def.does {
        Does::Route(Route {
            by: RouteBy::Sequence(members),
            ..
        }) => members.len(),
        Does::Route(_) | Does::Model(_) | Does::Run { .. } => 0,
    }
}

/// The parameter that takes what is to be answered: `message`, or the only text that must be given.
fn takes_message(name: &Name, ty: &Type, fields: &[(Name, Type)]) -> bool {
    let required = |ty: &Type| !ty.optional && ty.default.is_none();
    let text = matches!(ty.kind, TypeKind::String { .. });
    **name == *"message"
        || (text && required(ty) && fields.iter().filter(|(_, t)| required(t)).count() == 1)
}

/// What a message says: its `message`, where it is the arguments of a call.
fn words(text: &str) -> String {
    let args = crate::json::read::<Map<String, Json>>(text);
    let message = args
        .ok()
        .and_then(|args| args.get("message")?.as_str().map(str::to_owned));
    message.unwrap_or_else(|| text.to_owned())
}

fn routed(chosen: Choice, read: Option<crate::ids::Body>) -> Routed {
    Routed {
        effect: None,
        chosen,
        refused: None,
        clear: Vec::new(),
        read,
    }
}

/// Asks a scope, and keeps what it said: the values that led to a choice.
pub(crate) struct Reads<'a> {
    scope: &'a dyn Scope,
    read: std::cell::RefCell<Map<String, Json>>,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(scope: &'a dyn Scope) -> Self {
        Self {
            scope,
            read: std::cell::RefCell::default(),
        }
    }

    /// What was read, by path.
    pub(crate) fn into_values(self) -> Map<String, Json> {
        self.read.into_inner()
    }

    fn note(&self, path: String, value: &minijinja::Value) {
        let json = crate::expression::to_json(value).unwrap_or_default();
        let json = crate::expression::shown_json(&json);
        self.read.borrow_mut().insert(path, json);
    }
}

impl Scope for Reads<'_> {
    fn root(&self, name: &str) -> Option<minijinja::Value> {
        let value = self.scope.root(name)?;
        self.note(name.to_owned(), &value);
        Some(value)
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(minijinja::Value, usize)> {
        let (value, taken) = self.scope.path(root, steps)?;
        let mut path = root.to_owned();
        for step in &steps[..taken] {
            path.push('.');
            path.push_str(step);
        }
        self.note(path, &value);
        Some((value, taken))
    }
}
