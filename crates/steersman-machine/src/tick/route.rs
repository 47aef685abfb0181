//! Routed agents: the choice of who acts next. Each kind of router decides and gives its reasons; this module records the choice
//! and carries it out.

mod floor;
mod summary;

use crate::network::{AgentDef, Does, Limit, OnFailed, OnLimit, Route, RouteBy};
use crate::questions::ask::{About, Said as Meaning};
use crate::routers::{Decision, decide, question, states, tasks};
use crate::snapshot::Phase;
use crate::snapshot::fold::choice_digest;
use crate::stored::codes::Code;
use crate::stored::commit::Period;
use crate::stored::engine::Caller;
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::{
    Call, Cause, Choice, How, Interaction, Origin, Route as Routed, Target, Write,
};
use crate::stored::outcome::{Answer, NewWrite};
use crate::tick::Tick;
use crate::tick::call::{Ending, NewCall, Said, message_parameter};
use crate::tick::finish::{Conclude, Finish};
use crate::tick::limits::{self, Key, Reached};
use crate::tick::results::Results;
use crate::values::json::arguments;
use crate::values::types::{Parameters, Type, TypeKind, arguments_misfit};
use serde_json::{Map, Value as Json, json};

/// Maximum number of times in a row that a router may make the same choice over unchanged state, unless the definition sets
/// `same_call`.
const SAME_CHOICE: u64 = 2;

impl Tick<'_> {
    /// Makes one move of a routed agent that owes a decision.
    pub(crate) fn route(&mut self, agent: Id) {
        let def = self.def(agent);
        let Does::Route(route) = &def.does else {
            return;
        };
        let results = self.results.get_mut(&agent);
        let failed = results.is_some_and(Results::take_failure);
        if let Some((expired, instead)) = self.acts_instead(agent) {
            let read = Map::from_iter([("expired".to_owned(), json!(expired))]);
            return self.choose(agent, None, Choice::Agents(vec![instead]), &read);
        }
        if failed && self.member_was_limited(agent) {
            return;
        }
        if failed && !self.goes_on(agent, route) {
            return;
        }
        let state = self.agent(agent);
        if state.phase != Phase::Routing || state.stack.owed.is_some() {
            return;
        }
        // A reached limit keeps the router from calling another member, but not from ending.
        let reached = self.reached(agent);
        if reached.is_none() && self.extracts(agent) {
            return;
        }
        if let Some(next) = self.agent(agent).routing.pending.first().cloned() {
            let is_agent = self
                .network
                .agents
                .get(&next)
                .is_some_and(|next| matches!(next.does, Does::Model(_) | Does::Route(_)));
            let no_more = || limits::no_more_agents(&self.cx(), &self.snapshot, agent);
            let reached = reached.or_else(|| is_agent.then(no_more).flatten());
            if let Some(reached) = reached {
                self.limit(agent, &reached);
                return;
            }
            return self.call_member(agent, def, &next);
        }
        let decision = decide(&self.cx(), &self.snapshot, agent);
        if reached.is_none() && decision.goes_on() && self.sums_up(agent) {
            return;
        }
        match decision {
            Decision::Chosen(
                Choice::Agents(_)
                | Choice::Task { .. }
                | Choice::Speak { .. }
                | Choice::Say { .. }
                | Choice::Enter { .. },
                _,
            )
            | Decision::Say(..)
            | Decision::Resume(..)
            | Decision::Ask(_)
                if reached.is_some() =>
            {
                let reached = reached.expect("the guard of this arm");
                self.limit(agent, &reached);
            }
            Decision::Chosen(choice, read) => self.choose(agent, None, choice, &read),
            Decision::Say(role, member, text) => {
                let body = self.body(text);
                let said = Choice::Say { role, member, body };
                self.choose(agent, None, said, &Map::new());
            }
            Decision::Resume(choice, asked, read) => {
                self.take_up(agent, asked);
                self.choose(agent, None, choice, &read);
            }
            Decision::Ask(_) => {
                self.will_think(agent);
            }
            Decision::Over(read) => self.over(agent, None, &read),
            Decision::NoRule => self.end_route(agent, Cause::NoRule, None),
            Decision::Failed(text) => self.fail(agent, Code::Route, &text),
        }
    }

    /// Returns the person whose question was the last call of this route and timed out, and the member that acts instead.
    fn acts_instead(&self, agent: Id) -> Option<(Name, Name)> {
        let routing = &self.agent(agent).routing;
        routing.over.as_ref()?;
        match &routing.last {
            Some((name, How::Expired, _)) => {
                let instead = self.network.people.get(name)?.instead.clone()?;
                Some((name.clone(), instead))
            }
            _ => None,
        }
    }

    /// Takes a model's answer to the router's question: the answer is a choice, or it is refused.
    pub(crate) fn routed(&mut self, agent: Id, effect: Id, answer: &Answer) {
        let Some(question) = question(&self.cx(), &self.snapshot, agent) else {
            // The decision was made in the meantime, by a person's edit or by time.
            return self.refuse_route(
                agent,
                effect,
                Choice::Stay,
                "The router no longer asks this question.",
            );
        };
        if let About::Summary(policy) = question.about {
            return self.summed(agent, effect, policy, answer);
        }
        let refused = match question.about {
            About::Left => Choice::Restate(None),
            _ => Choice::Stay,
        };
        let (said, reason) = match question.read(answer) {
            Ok(read) => read,
            Err(why) => return self.refuse_route(agent, effect, refused, &why),
        };
        let mut read = question.read.clone();
        if let (Meaning::Exit(Some(n)), About::Exit(judged)) = (&said, &question.about) {
            read.insert("statement".to_owned(), json!(judged[n - 1]));
        }
        read.extend(reason.map(|reason| ("reason".to_owned(), Json::from(reason))));
        match self.meant(agent, said, &mut read) {
            Ok(Decision::Over(read)) => self.over(agent, Some(effect), &read),
            Ok(Decision::Chosen(choice, more)) => {
                read.extend(more);
                self.choose(agent, Some(effect), choice, &read);
            }
            Ok(_) => unreachable!("an answer is a choice or the end"),
            Err(why) => self.refuse_route(agent, effect, refused, &why),
        }
    }

    /// Returns the decision that an answer of a routing model means here, or the reason why the answer is refused.
    fn meant(
        &mut self,
        agent: Id,
        said: Meaning,
        read: &mut Map<String, Json>,
    ) -> Result<Decision, String> {
        let Does::Route(route) = &self.def(agent).does else {
            return Err("the agent is not routed".to_owned());
        };
        let at = self.agent(agent).routing.at.clone();
        Ok(match (said, &route.by) {
            (Meaning::Exit(number), RouteBy::States(graph)) => {
                read.insert("exit".to_owned(), json!(number.unwrap_or(0)));
                let at = at.unwrap_or_else(|| graph.start.clone());
                match states::exit(graph, &at, number) {
                    Decision::Over(_) => Decision::Over(read.clone()),
                    decision => decision,
                }
            }
            (Meaning::Name(role), RouteBy::States(graph)) => {
                let node = at.and_then(|at| graph.states.get(&at));
                let speaker = node.and_then(|node| node.plays(&role));
                let speaker =
                    speaker.ok_or_else(|| format!("no agent plays `{role}` in this state"))?;
                Decision::Chosen(states::speaks_as(speaker), Map::new())
            }
            (Meaning::Name(name), RouteBy::Tasks(desk)) if desk.task(&name).is_some() => {
                let cx = self.cx();
                let begins = tasks::begins(&cx, &self.snapshot, agent, desk, &name)?;
                Decision::Chosen(begins.choice, begins.read)
            }
            (Meaning::Name(name), _) => Decision::Chosen(Choice::Agents(vec![name]), Map::new()),
            (Meaning::Done(Some(text)) | Meaning::Words(text), _) => {
                let body = self.body(text);
                Decision::Chosen(Choice::Answer(body), Map::new())
            }
            (Meaning::Left(Some(text)), _) => {
                let body = self.body(text);
                Decision::Chosen(Choice::Restate(Some(body)), Map::new())
            }
            (Meaning::Left(None), _) => Decision::Chosen(Choice::Restate(None), Map::new()),
            (Meaning::Done(None) | Meaning::Exit(_), _) => Decision::Over(read.clone()),
        })
    }

    fn refuse_route(&mut self, agent: Id, effect: Id, chosen: Choice, why: &str) {
        let why = self.body(why);
        let route = Routed {
            effect: Some(effect),
            refused: Some(why),
            ..routed(chosen, None)
        };
        self.push(agent, Interaction::Route(route));
        self.wake(agent);
    }

    /// Pushes an earlier request of the user as a message again, in the user's words.
    fn take_up(&mut self, agent: Id, asked: Body) {
        let text = self.text(asked);
        let said = words(&text);
        let body = if *said == *text {
            asked
        } else {
            self.body(said)
        };
        let from = Origin::Continuation;
        self.push(agent, Interaction::UserMessage { from, body });
    }

    /// Ends the route as the router decided.
    fn over(&mut self, agent: Id, effect: Option<Id>, read: &Map<String, Json>) {
        let code = read
            .contains_key("unusable")
            .then_some(Code::Unusable.text());
        self.push_route(agent, effect, Choice::Finish, read);
        self.end_route(agent, Cause::Routed, code);
    }

    /// Ends the route if its last member ended because a limit of the router is reached. That is not a failure of the member.
    /// Returns true if the limit was applied.
    fn member_was_limited(&mut self, agent: Id) -> bool {
        let last = self.agent(agent).routing.last.as_ref();
        if last.is_none_or(|(_, how, _)| *how != How::Limit) {
            return false;
        }
        let reached = self.reached(agent);
        reached.is_some_and(|reached| {
            self.limit(agent, &reached);
            true
        })
    }

    /// Reacts to a member that failed. Returns true if the route goes on to its next decision.
    fn goes_on(&mut self, agent: Id, route: &Route) -> bool {
        match &route.on_failed {
            OnFailed::Continue => true,
            OnFailed::To(member) => {
                let last = self.agent(agent).routing.last.as_ref();
                if last.is_some_and(|(name, ..)| name == member) {
                    // The member that was called after a failure failed, too.
                    self.fail_as_member(agent);
                    return false;
                }
                let read = Map::from_iter([("failed".to_owned(), json!(last.map(|l| &l.0)))]);
                let choice = Choice::Agents(vec![member.clone()]);
                self.push_route(agent, None, choice, &read);
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
        // Keep the word `failed` once, not once for each layer.
        let mut why = &*why;
        while let Some(rest) = ["failed: ", "ended_failed: "]
            .iter()
            .find_map(|layer| why.strip_prefix(layer))
        {
            why = rest;
        }
        let text = name.map_or_else(|| why.to_string(), |name| format!("`{name}` failed: {why}"));
        self.fail(agent, Code::EndedFailed, &text);
    }

    fn choose(&mut self, agent: Id, effect: Option<Id>, choice: Choice, read: &Map<String, Json>) {
        let def = self.def(agent);
        match choice {
            Choice::Agents(members) if members.is_empty() => {
                self.end_route(agent, Cause::Routed, None);
            }
            Choice::Agents(ref members) => {
                let first = members[0].clone();
                if let Some(reached) = self.too_often(agent, &choice, read) {
                    self.limit(agent, &reached);
                    return;
                }
                self.push_route(agent, effect, choice, read);
                self.call_member(agent, def, &first);
            }
            Choice::Task {
                agent: ref member, ..
            }
            | Choice::Speak { ref member, .. } => {
                let member = member.clone();
                if let Some(reached) = limits::no_more_agents(&self.cx(), &self.snapshot, agent) {
                    self.limit(agent, &reached);
                    return;
                }
                self.push_route(agent, effect, choice, read);
                self.call_member(agent, def, &member);
            }
            Choice::Finish => {
                self.push_route(agent, effect, choice, read);
                self.end_route(agent, Cause::Routed, None);
            }
            Choice::Enter { .. } | Choice::Say { .. } => {
                self.push_route(agent, effect, choice, read);
                self.wake(agent);
            }
            Choice::Stay if self.agent(agent).routing.at.is_some() => {
                self.push_route(agent, effect, choice, read);
                self.wake(agent);
            }
            Choice::Stay => {
                let why = "This kind of router can only choose members or finish.";
                self.fail(agent, Code::Route, why);
            }
            Choice::Restate(left) => {
                self.push_route(agent, effect, choice, read);
                match left {
                    Some(left) => {
                        self.take_up(agent, left);
                        self.wake(agent);
                    }
                    None => self.over(agent, None, &Map::new()),
                }
            }
            Choice::Answer(body) => {
                self.push_route(agent, effect, choice, read);
                self.route_answers(agent, Cause::Routed, body, None);
            }
        }
    }

    /// Returns the limit that forbids this choice: one agent call too many, or the same choice too often over unchanged state.
    fn too_often(
        &mut self,
        agent: Id,
        choice: &Choice,
        read: &Map<String, Json>,
    ) -> Option<Reached> {
        if let Some(reached) = limits::no_more_agents(&self.cx(), &self.snapshot, agent) {
            return Some(reached);
        }
        // In a graph each choice adds a message, so the same choice is progress.
        if self.agent(agent).routing.at.is_some() {
            return None;
        }
        let limits = &self.def(agent).limits;
        let same = if limits.same_call.written {
            limits.same_call
        } else {
            Limit {
                max: SAME_CHOICE,
                per: Period::Answer,
                then: OnLimit::Fail,
                written: false,
            }
        };
        let body = self.body(Json::Object(read.clone()).to_string());
        let route = routed(choice.clone(), Some(body));
        let digest = choice_digest(self.line, &route, self.texts.came_in());
        self.texts.forget(body);
        let last_choice = self.agent(agent).counters.same;
        let times = last_choice.filter(|(d, _)| *d == digest);
        let times = times.map_or(0, |(_, times)| u64::from(times));
        let spent = times > 0 && times >= same.max;
        spent.then(|| Reached::new(Key::own("same_call"), &same, times))
    }

    fn push_route(
        &mut self,
        agent: Id,
        effect: Option<Id>,
        choice: Choice,
        read: &Map<String, Json>,
    ) {
        let writes = self.cleared(agent, &choice);
        let read = self.body(Json::Object(read.clone()).to_string());
        let route = Routed {
            effect,
            writes,
            ..routed(choice, Some(read))
        };
        self.push(agent, Interaction::Route(route));
    }

    /// Returns the writes that unset the entries that a task clears at its beginning. Entries that are unset already are left
    /// out.
    fn cleared(&mut self, agent: Id, choice: &Choice) -> Vec<Write> {
        let (Choice::Task { task, .. }, Does::Route(route)) = (choice, &self.def(agent).does)
        else {
            return Vec::new();
        };
        let RouteBy::Tasks(desk) = &route.by else {
            return Vec::new();
        };
        let clear = desk.task(task).map_or(&[][..], |task| &task.clear);
        let unset = clear.iter().map(|name| NewWrite {
            name: name.to_string(),
            value: None,
            seal: false,
        });
        let unset: Vec<NewWrite> = unset.collect();
        // `check` refuses definitions that clear an entry that cannot be unset.
        let mut writes = self.writes(agent, &unset).unwrap_or_default();
        writes.retain(|write| self.snapshot.cell(write.scope, &write.name).is_some());
        writes
    }

    /// Ends the route with the result of its last member.
    fn end_route(&mut self, agent: Id, cause: Cause, code: Option<&'static str>) {
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
                    code,
                    writes: Vec::new(),
                    answers: false,
                },
            );
        };
        self.route_answers(agent, cause, body, code);
    }

    fn route_answers(&mut self, agent: Id, cause: Cause, body: Body, code: Option<&'static str>) {
        let text = self.text(body);
        self.conclude(
            agent,
            Conclude {
                text: &text,
                body: Some(body),
                cause,
                call: None,
                misfit: None,
                code,
            },
        );
    }

    // ---- members ---------------------------------------------------------------------------------------------

    /// Calls a member: an agent by its one instance, a plain agent as a tool call, a person as a question.
    fn call_member(&mut self, agent: Id, def: &AgentDef, member: &Name) {
        if self.network.people.contains_key(member) {
            let mut args = self.member_args(agent, def, &message_parameter());
            if let Some(said) = self.said_before(agent, member) {
                args.insert("message".to_owned(), Json::from(said));
            }
            let args = Json::Object(args);
            let target = Target::Person(member.clone());
            self.push_call(agent, NewCall::new(member, Caller::Router, &args), target);
            return;
        }
        let Some(next) = self.network.agents.get(member) else {
            return self.fail(
                agent,
                Code::Route,
                &format!("there is no member `{member}`"),
            );
        };
        match &next.does {
            Does::Run { tool, args } => {
                let args = match args {
                    None => {
                        let parameters = &self.network.tool(tool).parameters;
                        Ok(self.member_args(agent, def, parameters))
                    }
                    Some(args) => crate::values::expression::arguments(args, &self.view(agent)),
                };
                match args {
                    Ok(args) => {
                        let args = Json::Object(args);
                        let call = NewCall {
                            member: Some(member),
                            ..NewCall::new(tool, Caller::Router, &args)
                        };
                        self.open_call(agent, call);
                    }
                    Err(e) => {
                        self.fail(agent, Code::Route, &format!("arguments of `{member}`: {e}"));
                    }
                }
            }
            Does::Model(_) | Does::Route(_) => self.call_agent(agent, def, next),
        }
    }

    /// Returns the last message with the name of its speaker, for a person who speaks in a graph. `None` if the person spoke
    /// last.
    fn said_before(&self, agent: Id, person: &Name) -> Option<String> {
        let routing = &self.agent(agent).routing;
        routing.places.get(routing.at.as_ref()?)?;
        let (name, _, body) = routing.last.as_ref()?;
        let text = self.text((*body)?);
        (name != person).then(|| format!("{name}: {text}"))
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
        let number = self.number(agent, None);
        self.push(
            agent,
            Interaction::Call(Call {
                id,
                name: next.name.clone(),
                by: Caller::Router,
                seen: None,
                target,
                label: None,
                args: body,
                number,
            }),
        );
        if let Some(why) = why {
            let ending = Ending {
                code: Some(Code::Refused.text()),
                said: Said::Text(format!("limit: {why}")),
                ..Ending::default()
            };
            self.end_call(agent, id, How::Refused, ending);
        }
        self.wake(agent);
    }

    /// Returns the arguments for a member: those of the routed agent's own call, by name. `message` is the message to answer; in
    /// a sequence it is the result of the member before.
    fn member_args(&self, agent: Id, def: &AgentDef, parameters: &Parameters) -> Map<String, Json> {
        let state = self.agent(agent);
        let text = state.input.message.map(|body| self.text(body));
        let called = state.input.args.map(|body| self.text(body));
        let own = called
            .and_then(|text| arguments(&text).ok())
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

/// Returns true if this parameter takes the message to answer: it is `message`, or it is a text and the only required parameter.
fn takes_message(name: &Name, ty: &Type, fields: &[(Name, Type)]) -> bool {
    let required = |ty: &Type| !ty.optional && ty.default.is_none();
    let text = matches!(ty.kind, TypeKind::String { .. });
    **name == *"message"
        || (text && required(ty) && fields.iter().filter(|(_, t)| required(t)).count() == 1)
}

/// Returns the `message` in a text that is the arguments of a call, otherwise the text itself.
fn words(text: &str) -> String {
    let args = crate::values::json::read::<Map<String, Json>>(text);
    let message = args
        .ok()
        .and_then(|args| args.get("message")?.as_str().map(str::to_owned));
    message.unwrap_or_else(|| text.to_owned())
}

fn routed(chosen: Choice, read: Option<Body>) -> Routed {
    Routed {
        effect: None,
        chosen,
        refused: None,
        writes: Vec::new(),
        read,
    }
}
