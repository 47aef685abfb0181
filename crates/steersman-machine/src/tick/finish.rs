//! Moves and ends of agents: the steps of a woken agent, answers, the ends of turns and tasks, the caller's result, and the next
//! call that is served.

use crate::network::nets::{Event, Step};
use crate::network::texts::{self, Sentence};
use crate::network::{ModelAgent, OnLimit, Turns, notes};
use crate::questions::judgement::serves_review;
use crate::questions::verdict::{Verdict, judge_verdict};
use crate::routers::floor;
use crate::snapshot::Phase;
use crate::stored::bounds::{self, CALLS};
use crate::stored::codes::Code;
use crate::stored::commit::{Change, Kind};
use crate::stored::engine::Caller;
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::{Cause, End, How, Interaction, Origin, Target, Write};
use crate::stored::outcome::Answer;
use crate::tick::call::{NewCall, Said};
use crate::tick::limits::{self, Key, Reached};
use crate::tick::reflect::{After, Reviewed};
use crate::tick::results::Results;
use crate::tick::take::cancel::Cut;
use crate::tick::{Tick, nets};
use crate::values::types::{Parameters, Type, TypeKind, misfit};
use crate::view::mapping;
use crate::view::say::say;
use serde_json::{Map, Value as Json, json};

/// The end of an agent's turn or task.
pub(crate) struct Finish<'a> {
    pub(crate) end: End,
    pub(crate) cause: Cause,
    pub(crate) body: Option<Body>,
    pub(crate) code: Option<&'a str>,
    /// State writes of the end. They are stored with the result of the caller's call, or with the `Finished` if no caller acts on
    /// this branch.
    pub(crate) writes: Vec<Write>,
    /// True if the text is an answer that a limit of the agent demanded. It succeeds, although the cause is the limit.
    pub(crate) answers: bool,
}

impl<'a> Finish<'a> {
    /// Returns the end of a task without an answer: by a failure, a limit or a cancel.
    pub(crate) fn task(cause: Cause, code: Option<&'a str>, body: Option<Body>) -> Self {
        Self {
            end: End::Task,
            cause,
            body,
            code,
            writes: Vec::new(),
            answers: false,
        }
    }
}

/// An answer that is to end a turn or a task.
pub(crate) struct Conclude<'a> {
    pub(crate) text: &'a str,
    /// The stored text of the answer, if it is stored already.
    pub(crate) body: Option<Body>,
    pub(crate) cause: Cause,
    /// The call of `finish` that gave the answer.
    pub(crate) call: Option<Id>,
    /// The reason why the answer does not fit, if an adapter had to check it.
    pub(crate) misfit: Option<&'a str>,
    /// Code of the end, if the end has a code of its own.
    pub(crate) code: Option<&'static str>,
}

impl Tick<'_> {
    // ---- moves -----------------------------------------------------------------------------------------------

    /// Makes one move of a woken agent.
    pub(crate) fn step(&mut self, agent: Id) {
        if !self.snapshot.in_scope(agent) {
            return;
        }
        match self.agent(agent).phase {
            Phase::Resting => self.serve_next(agent),
            Phase::Thinking => self.think(agent),
            Phase::Routing => self.route(agent),
            Phase::Calling => self.begin_calls(agent),
        }
    }

    /// Ends an agent because there were too many moves in this tick; children first.
    pub(crate) fn end_of_moves(&mut self, agent: Id) {
        if self.agent(agent).phase == Phase::Resting {
            return;
        }
        let text = format!("More than {} moves in one tick.", bounds::MOVES);
        self.end_with(agent, Cause::Limit, "moves", &text);
    }

    /// Ends an agent and all agents that it started, children first.
    pub(crate) fn end_with(&mut self, agent: Id, cause: Cause, code: &str, text: &str) {
        self.cut_calls(agent, &Cut::default());
        let body = self.body(text);
        self.finish(agent, Finish::task(cause, Some(code), Some(body)));
    }

    /// Handles a model-driven agent that owes a step: a model call, unless a limit is reached or its net decides otherwise.
    fn think(&mut self, agent: Id) {
        if self.agent(agent).stack.owed.is_some() || self.thinks(agent) {
            return;
        }
        if self.was_summed(agent) {
            return self.thinks_on(agent);
        }
        if self.accepted(agent) {
            return;
        }
        if self.judges_results(agent) {
            // The results are judged. If the agent judges them itself, the judgement is its next model call.
            if self.agent(agent).phase == Phase::Thinking {
                self.will_think(agent);
            }
            return;
        }
        if self.ends_by_state(agent) {
            return;
        }
        let def = self.def(agent);
        let (over, _) = self.gave_once(agent);
        if def.turns == Some(Turns::Once) && over && self.agent(agent).counters.model_calls > 0 {
            return self.conclude_as_it_stands(agent);
        }
        if let Err(why) = self.leaves_mode(agent) {
            return self.fail(agent, Code::Exits, &why);
        }
        if self.is_leaving(agent) {
            // A message arrived after the exit to `finish`; restart in the start mode.
            if !self.heard(agent) {
                return self.conclude_as_it_stands(agent);
            }
            self.mode_anew(agent);
        }
        let reached = self.demanded(agent).or_else(|| self.reached(agent));
        if reached.is_some_and(|reached| !self.limit(agent, &reached)) {
            return;
        }
        if self.extracts(agent) || self.prepares(agent) {
            return;
        }
        let step = nets::owes(&self.cx(), &self.snapshot, agent);
        match self.entered(agent, step) {
            Step::Next(_) if self.was_told(agent) => {
                self.fail(
                    agent,
                    Code::Net,
                    "Asked again, the net had only more to say.",
                );
            }
            Step::Next(text) => self.go_on(agent, Origin::Net, &text),
            Step::Call(tool, args) => self.state_calls(agent, &tool, &args),
            step => {
                if !self.ended_by(agent, &step) {
                    self.will_think(agent);
                }
            }
        }
    }

    /// Asks the net after a call of its state, before a limit is looked at: an answer that is there is not asked for again. Returns
    /// true if the agent ended.
    fn ends_by_state(&mut self, agent: Id) -> bool {
        let gave = nets::gave(&self.cx(), &self.snapshot, agent);
        let Some((state, step)) = gave.map(Step::split) else {
            return false;
        };
        if !matches!(step, Step::Take | Step::Answer(_) | Step::Fail(_)) {
            return false;
        }
        self.enters(agent, state);
        self.ended_by(agent, &step)
    }

    /// Ends an agent that owes a step if its net answers or fails. Returns false for other steps.
    fn ended_by(&mut self, agent: Id, step: &Step) -> bool {
        let turn = &self.agent(agent).turn;
        let gave = turn.gave.as_ref();
        let said = gave.map_or(turn.said, |gave| gave.body);
        let takes = gave.is_some();
        let whole = said.map_or_else(|| "".into(), |body| self.text(body));
        let text = match step {
            Step::Answer(text) => text,
            Step::Take if takes => &*whole,
            Step::Fail(text) => {
                self.fail(agent, Code::Net, text);
                return true;
            }
            _ => return false,
        };
        // A text that is there is not stored again.
        let body = said.filter(|_| *text == *whole);
        self.plain(agent, text, body, None);
        true
    }

    /// Opens the call of a tool that the net's state makes.
    fn state_calls(&mut self, agent: Id, tool: &Name, args: &Json) {
        let state = self.agent(agent).turn.state.clone();
        let by = Caller::State(state.unwrap_or_else(|| tool.clone()));
        self.open_call(agent, NewCall::new(tool, by, args));
    }

    /// Ends with the last text of the agent, or with the result of its last call if there is no text.
    fn conclude_as_it_stands(&mut self, agent: Id) {
        let (_, gave) = self.gave_once(agent);
        let body = self.agent(agent).turn.said.or(gave);
        let text = body.map_or_else(|| "".into(), |b| self.text(b));
        self.conclude(
            agent,
            Conclude {
                text: &text,
                body,
                cause: Cause::Answer,
                call: None,
                misfit: None,
                code: None,
            },
        );
    }

    /// Takes the step that the agent owed before its context was summarized. If the summary used up a limit, that limit applies.
    fn thinks_on(&mut self, agent: Id) {
        let last = self.agent(agent).counters.last_call;
        let reached = self.reached(agent);
        let reached = reached.filter(|_| !last);
        if reached.is_none_or(|reached| self.limit(agent, &reached)) {
            self.will_think(agent);
        }
    }

    /// Returns true if the tools of an agent with `turns: once` have run, and the body of their result.
    fn gave_once(&self, agent: Id) -> (bool, Option<Body>) {
        let results = self.results.get(&agent);
        if let Some(body) = results.and_then(Results::newest).map(|newest| newest.body) {
            return (true, body);
        }
        match results.and_then(Results::reviewed) {
            None | Some(Reviewed::Revise) => (false, None),
            Some(Reviewed::Stands(tool)) => {
                let count = self.agent(agent).counters.calls.get(tool);
                (true, count.and_then(|count| count.result))
            }
        }
    }

    /// Calls the tools that run ahead of every turn, unless they were called for the newest message. Returns true if it called
    /// them, or if the agent failed.
    fn prepares(&mut self, agent: Id) -> bool {
        let state = self.agent(agent);
        let Some(model) = self.network.in_force(state) else {
            return false;
        };
        let relevant = crate::context::relevant(&self.cx(), &self.snapshot, agent);
        let no_tools = model.before.is_empty() && relevant == 0;
        if state.input.prepared || state.counters.last_call || no_tools {
            return false;
        }
        // No call is opened before the arguments of all are known: an agent that fails has no open call.
        let mut calls = Vec::new();
        for before in &model.before {
            let args = match &before.args {
                Some(args) => crate::values::expression::arguments(args, &self.view(agent)),
                None => Ok(self.message_for(agent, &before.tool)),
            };
            match args {
                Ok(args) => calls.push((before, Json::Object(args))),
                Err(e) => {
                    let text = format!("arguments of `{}`: {e}", before.tool);
                    self.fail(agent, Code::Before, &text);
                    return true;
                }
            }
        }
        for (before, args) in calls {
            let by = Caller::Before(before.named.clone());
            self.open_call(agent, NewCall::new(&before.tool, by, &args));
        }
        if relevant > 0 {
            self.look_for_relevant(agent, relevant);
        }
        true
    }

    /// Opens a search of the transcript for passages that fit the newest message. `most` is the maximum number of passages.
    fn look_for_relevant(&mut self, agent: Id, most: u32) {
        let newest = crate::context::newest(&self.snapshot, agent).map(|body| self.text(body));
        let query = newest.map_or_else(String::new, |text| crate::context::called(&text));
        let args = json!({ "query": query, "source": notes::TRANSCRIPT, "most": most });
        let by = Caller::Before(notes::RELEVANT.into());
        self.open_call(agent, NewCall::new(&notes::SEARCH.into(), by, &args));
    }

    /// Returns the newest message as the argument of a tool with exactly one text parameter, otherwise no arguments.
    fn message_for(&self, agent: Id, tool: &Name) -> Map<String, Json> {
        let Parameters::Fields(fields) = &self.network.tool(tool).parameters else {
            return Map::new();
        };
        let is_text = |ty: &Type| matches!(ty.kind, TypeKind::String { .. });
        let mut texts = fields.iter().filter(|(_, ty)| is_text(ty));
        let (Some((name, _)), None) = (texts.next(), texts.next()) else {
            return Map::new();
        };
        let message = self.agent(agent).input.message.map(|body| self.text(body));
        let message = message.map_or_else(String::new, |text| crate::context::called(&text));
        Map::from_iter([(name.to_string(), Json::from(message))])
    }

    /// Handles a limit that is reached when the agent owes a step. Returns true if the agent still takes the step, as its last one.
    pub(crate) fn limit(&mut self, agent: Id, reached: &Reached) -> bool {
        if self.stands_at_limit(agent, reached.name()) {
            return false;
        }
        let (limited, kind) = (self.agent(agent).counters.limited, self.agent(agent).kind);
        match reached.then {
            // The last call was made, and its answer did not end the agent.
            _ if limited => {
                self.reach(agent, reached, End::Task, None);
                false
            }
            OnLimit::Answer if kind == Kind::Model => {
                let text = self.says_of_limit(agent, texts::LAST_CALL, reached);
                let body = self.body(text);
                self.push(
                    agent,
                    Interaction::UserMessage {
                        from: Origin::Limit,
                        body,
                    },
                );
                true
            }
            OnLimit::Fail => {
                self.reach(agent, reached, End::Task, None);
                false
            }
            // A router makes no last model call itself: its member at work has made it.
            OnLimit::Finish | OnLimit::Answer => {
                let has = match kind {
                    Kind::Model => self.agent(agent).turn.said,
                    Kind::Routed => self.agent(agent).routing.last.as_ref().and_then(|l| l.2),
                };
                let Ok(has) = self.on_finish_of(agent, has) else {
                    return false;
                };
                let end = self.end_of(agent);
                self.reach(agent, reached, end, has);
                false
            }
            OnLimit::Ask => {
                let question = self.asks_for_more(agent, reached);
                let args = json!({ "question": question, "options": ["yes", "no"] });
                let user = Target::Person("user".into());
                // After a refusal the agent comes to the same limit again, and the person is not asked again.
                let results = self.results.get_mut(&agent);
                if results.is_some_and(Results::take_declined) {
                    self.reach(agent, reached, End::Task, None);
                } else {
                    self.engine_call(agent, Caller::More(reached.question()), &args, user);
                }
                false
            }
        }
    }

    /// Returns a sentence of the engine about a limit.
    fn says_of_limit(&self, agent: Id, sentence: &Sentence, reached: &Reached) -> String {
        let (max, used) = (reached.most(), reached.used());
        let values = [("name", reached.name()), ("max", &*max), ("used", &*used)];
        self.says(agent, sentence, &values)
    }

    /// Returns a sentence of the engine, in the words that the definition gives for this agent.
    pub(crate) fn says(&self, agent: Id, sentence: &Sentence, values: &[(&str, &str)]) -> String {
        say(&self.cx(), &self.snapshot, agent, sentence, values)
    }

    /// Ends an agent at a limit, with the text `has`, or with a sentence about the limit.
    fn reach(&mut self, agent: Id, reached: &Reached, end: End, has: Option<Body>) {
        let body = if let Some(body) = has {
            body
        } else {
            let text = self.says_of_limit(agent, texts::LIMIT, reached);
            self.body(text)
        };
        self.finish(
            agent,
            Finish {
                end,
                cause: Cause::Limit,
                body: Some(body),
                code: Some(reached.name()),
                writes: Vec::new(),
                answers: false,
            },
        );
    }

    // ---- answers ---------------------------------------------------------------------------------------------

    /// Handles an answer of a model: pushes its message, then its calls or its end.
    pub(crate) fn answered(&mut self, agent: Id, effect: Id, answer: &Answer) {
        if self.judged_itself(agent, effect, answer) {
            return;
        }
        let edited = match self.after_model(agent, effect, answer) {
            Ok(edited) => edited,
            Err(why) => return self.fail(agent, Code::Hook, &why),
        };
        let answer = edited.as_ref().unwrap_or(answer);
        let step = nets::answered(&self.cx(), &self.snapshot, agent, &Event::Answered(answer));
        self.said(agent, effect, answer, step);
    }

    /// Pushes an answer onto the stack and follows the net's step.
    pub(crate) fn said(&mut self, agent: Id, effect: Id, answer: &Answer, step: Step) {
        let network = self.network;
        let Some(model) = network.in_force(self.agent(agent)) else {
            return;
        };
        let said = self.push_answer(agent, effect, answer);
        let step = self.entered(agent, step);
        self.follow(agent, model, step, answer, said);
    }

    /// Pushes an answer onto the stack. Returns the body of its text, if it has one.
    pub(crate) fn push_answer(&mut self, agent: Id, effect: Id, answer: &Answer) -> Option<Body> {
        let text = answer.text.as_deref().filter(|t| !t.trim().is_empty());
        let said = text.map(|text| self.body(text));
        let opaque = answer.opaque.as_deref().map(|text| self.body(text));
        self.push(
            agent,
            Interaction::AssistantMessage {
                effect,
                text: said,
                opaque,
                partial: false,
            },
        );
        said
    }

    fn follow(
        &mut self,
        agent: Id,
        model: &ModelAgent,
        step: Step,
        answer: &Answer,
        said: Option<Body>,
    ) {
        let text = answer.text.as_deref().unwrap_or_default();
        match step {
            Step::Take | Step::Think | Step::Enter(..) | Step::Call(..) => {
                // With tools off only the text counts, if there is one.
                let off = self.agent(agent).counters.last_call && said.is_some();
                if !answer.asks.is_empty() && !off {
                    if answer.asks.len() > CALLS {
                        let text = format!("The answer has more than {CALLS} calls.");
                        return self.correct(agent, &text);
                    }
                    self.open_calls(agent, model, &answer.asks);
                } else if said.is_none() {
                    self.correct(
                        agent,
                        "The answer is empty: it has neither text nor a call.",
                    );
                } else {
                    let misfit = answer.misfit.as_deref();
                    self.plain(agent, text, said, misfit);
                }
            }
            Step::Thought => self.wake(agent),
            Step::Next(text) => self.go_on(agent, Origin::Net, &text),
            Step::Conclude => self.go_on(agent, Origin::Conclude, "Answer now."),
            Step::Answer(text) => self.plain(agent, &text, None, None),
            Step::Fail(text) => self.fail(agent, Code::Net, &text),
        }
    }

    /// Records the state of the net that a step enters, if it changes. Returns the step without it.
    fn entered(&mut self, agent: Id, step: Step) -> Step {
        let (state, step) = step.split();
        self.enters(agent, state);
        step
    }

    fn enters(&mut self, agent: Id, state: Option<Name>) {
        if let Some(state) = state
            && self.agent(agent).turn.state.as_ref() != Some(&state)
        {
            self.change(Change::State(agent, state));
        }
    }

    /// Returns true if the newest push of an agent in this tick is a message of its net. A second one could repeat without end.
    fn was_told(&self, agent: Id) -> bool {
        let mut pushes = self.commit.pushes.iter().rev();
        let last = pushes.find(|push| push.agent == agent);
        last.is_some_and(|push| {
            matches!(&push.what, Interaction::UserMessage { from, .. } if *from == Origin::Net)
        })
    }

    /// Continues after a thought: pushes a message for the next step and wakes the agent.
    fn go_on(&mut self, agent: Id, from: Origin, text: &str) {
        let body = self.body(text);
        self.push(agent, Interaction::UserMessage { from, body });
        self.wake(agent);
    }

    fn plain(&mut self, agent: Id, text: &str, body: Option<Body>, misfit: Option<&str>) {
        let cause = if self.agent(agent).counters.limited {
            Cause::Limit
        } else {
            Cause::Answer
        };
        self.conclude(
            agent,
            Conclude {
                text,
                body,
                cause,
                call: None,
                misfit,
                code: None,
            },
        );
    }

    /// Ends a turn or a task by an answer that fits. [`Self::unfit`] handles one that does not fit.
    pub(crate) fn conclude(&mut self, agent: Id, how: Conclude<'_>) {
        if how.call.is_none()
            && let Err(why) = floor::turn_is_task(&self.cx(), &self.snapshot, agent)
        {
            return self.fail(agent, Code::Done, &why);
        }
        let Ok(edited) = self.on_finish(agent, how.call, how.text) else {
            return;
        };
        let how = match &edited {
            Some(text) => Conclude {
                text,
                body: None,
                ..how
            },
            None => how,
        };
        let writes = match self.ends_well(agent, &how) {
            Ok(writes) => writes,
            Err(why) => return self.unfit(agent, how.call, &why),
        };
        let body = self.body_or(how.body, how.text);
        if let Some(call) = how.call {
            let done = self.body("ok");
            self.push_result(agent, call, How::Done, None, Some(done));
        }
        let end = match how.cause {
            Cause::Tool => End::Task,
            _ => self.end_of(agent),
        };
        let mut cause = how.cause;
        let reached = (how.cause == Cause::Limit)
            .then(|| self.demanded(agent).or_else(|| self.reached(agent)))
            .flatten();
        let mut code = reached.map_or(how.code, |reached| Some(reached.name()));
        match self.after_answer(agent, &how, body) {
            After::Judged => return,
            After::Final => {}
            After::Stands(why) => (cause, code) = (Cause::Rounds, Some(why)),
        }
        self.finish(
            agent,
            Finish {
                end,
                cause,
                body: Some(body),
                code,
                writes,
                answers: reached.is_some_and(|reached| reached.own),
            },
        );
    }

    /// Returns the state writes of an answer, or the reason why it cannot be the end.
    pub(crate) fn ends_well(
        &mut self,
        agent: Id,
        how: &Conclude<'_>,
    ) -> Result<Vec<Write>, String> {
        if let Some(misfit) = how.misfit {
            return Err(misfit.to_owned());
        }
        let def = self.def(agent);
        if def.output.is_none()
            && serves_review(&self.snapshot, agent)
            && let Verdict::Unusable(why) = judge_verdict(how.text)
        {
            return Err(why);
        }
        if let Some(output) = &def.output {
            let json = output.value(how.text)?;
            if let Some(misfit) = misfit(&output.ty, &json) {
                return Err(misfit.to_string());
            }
        }
        let turn = how.cause != Cause::Tool && self.end_of(agent) == End::Turn;
        let writes_nothing =
            def.set.is_empty() && def.output.as_ref().is_none_or(|o| o.into.is_none());
        // A dialogue that serves a call continues after its turn, so nothing is written yet.
        if writes_nothing || (turn && self.agent(agent).input.serving.is_some()) {
            return Ok(Vec::new());
        }
        let writes =
            mapping::ended(&self.cx(), &self.snapshot, agent, how.text).map_err(|f| f.message)?;
        if let Some(write) = writes.iter().find(|w| w.seal) {
            return Err(format!(
                "`state.{}` is a secret, and an answer cannot be one",
                write.name
            ));
        }
        self.writes(agent, &writes).map_err(|m| m.to_string())
    }

    /// Handles an answer that does not fit: refuses the call that gave it, keeps the earlier draft, has the model correct it, or
    /// fails.
    fn unfit(&mut self, agent: Id, call: Option<Id>, why: &str) {
        match (call, self.agent(agent).kind) {
            (Some(call), _) => {
                let refused = super::call::refuse(Code::Misfit, format!("misfit: {why}"));
                self.close_call(agent, call, refused);
            }
            (None, Kind::Model) if self.keeps_draft(agent) => {}
            (None, Kind::Model) => {
                let text = self.says(agent, texts::CORRECTION, &[("why", why)]);
                self.correct(agent, &text);
            }
            (None, Kind::Routed) => self.fail(agent, Code::Misfit, why),
        }
    }

    /// Tells the model what was wrong with its answer, a limited number of times.
    fn correct(&mut self, agent: Id, text: &str) {
        let state = self.agent(agent);
        let limit = &self.network.limits_of(state).corrections;
        let spent = limits::no_more_corrections(state, limit) && limit.then == OnLimit::Fail;
        // No further answer is asked for, so the end says what was wrong. Other limits are handled after the correction.
        if spent || state.counters.limited {
            let used = u64::from(state.counters.corrections);
            let corrections = Reached::new(Key::own("corrections"), limit, used);
            let reached = self.demanded(agent).unwrap_or(corrections);
            let body = self.body(text);
            self.reach(agent, &reached, End::Task, Some(body));
            return;
        }
        let body = self.body(text);
        self.push(
            agent,
            Interaction::UserMessage {
                from: Origin::Correction,
                body,
            },
        );
        self.wake(agent);
    }

    /// Ends an agent with a failure, which its caller gets as the result.
    pub(crate) fn fail(&mut self, agent: Id, code: impl AsRef<str>, text: &str) {
        let body = self.body(text);
        self.finish(
            agent,
            Finish::task(Cause::Failed, Some(code.as_ref()), Some(body)),
        );
    }

    // ---- ends ------------------------------------------------------------------------------------------------

    /// Returns the end that an answer brings: of the turn in a dialogue, otherwise of the task.
    pub(crate) fn end_of(&self, agent: Id) -> End {
        match floor::turns(self.network, &self.snapshot, agent) {
            // If this expression fails, `conclude` has reported it.
            Turns::Dialogue
                if floor::turn_is_task(&self.cx(), &self.snapshot, agent).unwrap_or(false) =>
            {
                End::Task
            }
            Turns::Dialogue => End::Turn,
            Turns::Task | Turns::Once => End::Task,
        }
    }

    /// Ends an agent's turn or task. The end of a task is the result for its caller, if the caller acts on this branch.
    pub(crate) fn finish(&mut self, agent: Id, how: Finish<'_>) {
        let state = self.agent(agent);
        let (parent, serving, owed) = (state.family.parent, state.input.serving, state.stack.owed);
        let queued = state.input.queue.iter().any(|call| Some(*call) != serving);
        let task = how.end == End::Task;
        // If the agent is the top of its branch, its caller does not act there, so the agent makes its writes itself.
        let caller = match (parent, serving) {
            (Some(parent), Some(call)) if task && self.snapshot.in_scope(parent) => {
                Some((parent, call))
            }
            _ => None,
        };
        let (mut own, carried) = match caller {
            Some(_) => (Vec::new(), how.writes),
            None => (how.writes, Vec::new()),
        };
        own.extend(self.of_answer(agent, self.def(agent)));
        if task && queued && self.def(agent).enter_fresh {
            own.extend(self.fresh(agent, self.def(agent)));
            self.mode_anew(agent);
        }
        if self.is_leaving(agent) {
            self.mode_anew(agent);
        }
        if let Some(owed) = owed {
            self.stop(owed);
        }
        self.push(
            agent,
            Interaction::Finished {
                end: how.end,
                cause: how.cause,
                body: how.body,
                code: how.code.map(bounds::name),
                writes: own,
            },
        );
        if task {
            self.wake(agent);
        }
        if let Some((parent, call)) = caller {
            let (how, body) = (Self::result(how.cause, how.answers), how.body);
            self.ended(parent, call, how, body, carried);
        }
    }

    /// Returns how the caller's call closes when the called agent's task ends for this reason, and the code of its result.
    /// `answers`: a limit demanded the answer.
    pub(crate) fn result(cause: Cause, answers: bool) -> (How, Option<Code>) {
        match cause {
            Cause::Answer | Cause::Tool | Cause::Routed | Cause::NoRule | Cause::Rounds => {
                (How::Finished, None)
            }
            Cause::Released => (How::Released, None),
            Cause::Limit if answers => (How::Finished, None),
            // If a limit of the router demanded the member's answer, the router reacts to it, too.
            Cause::Limit => (How::Limit, Some(Code::EndedLimit)),
            Cause::Cancelled => (How::Cancelled, Some(Code::EndedCancelled)),
            Cause::Leaf | Cause::Failed | Cause::Deadlock => (How::Failed, Some(Code::EndedFailed)),
        }
    }

    /// Closes the caller's call with the end of the called agent's task.
    pub(crate) fn ended(
        &mut self,
        parent: Id,
        call: Id,
        (how, code): (How, Option<Code>),
        body: Option<Body>,
        writes: Vec<Write>,
    ) {
        if !self.snapshot.in_scope(parent) {
            return;
        }
        let Some(open) = self
            .snapshot
            .call(parent, call)
            .filter(|c| c.closed.is_none())
        else {
            return;
        };
        if let Target::Branches(_) = open.call.target {
            let text = body.map_or_else(|| "".into(), |b| self.text(b));
            if !self.cancelling {
                self.chosen(parent, call, &text);
            }
            return;
        }
        let ending = crate::tick::call::Ending {
            code: code.map(Code::text),
            said: body.map_or(Said::Nothing, Said::Body),
            writes,
            ..crate::tick::call::Ending::default()
        };
        self.end_call(parent, call, how, ending);
    }
}
