//! Sub-agents and steps. A sub-agent's run is the call that it serves. Agents that talk with the user are none: their words are the
//! agent's own.

use super::{Agui, succeeded};
use serde_json::json;
use steersman::machine::stored::ids::{Id, Name};
use steersman::{Event, How};

/// The call of an agent.
#[derive(Clone, Debug)]
pub(super) struct Subagent {
    name: Name,
    /// The sub-agent that made the call.
    parent: Option<Id>,
    /// True if the call is over.
    ended: bool,
    stage: Stage,
}

/// The sub-agent whose words are told; `None` for the agent with which the client talks.
#[derive(Copy, Clone, Debug)]
pub(super) struct Owner(pub(super) Option<Id>);

/// The part of a sub-agent that a run has told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Begin,
    End,
}

/// A state or a mode of an agent.
#[derive(Clone, Debug)]
pub(super) struct Step {
    owner: Option<Id>,
    agent: Id,
    name: String,
    is_mode: bool,
}

impl Agui {
    /// Remembers which calls agents serve, because the line that ends a call has forgotten it.
    pub(super) fn serve(&mut self) {
        for (id, agent) in &self.snapshot.agents {
            if let Some(call) = agent.input.serving
                && self.open_call(*id).is_none()
            {
                self.serving.insert(*id, call);
            }
        }
    }

    /// Returns the call that an agent serves and that has not ended.
    fn open_call(&self, agent: Id) -> Option<Id> {
        let call = self.serving.get(&agent)?;
        let subagent = self.subagents.get(call)?;
        (!subagent.ended).then_some(*call)
    }

    /// Returns the sub-agent that an agent is.
    fn own_run(&self, agent: Id) -> Option<Id> {
        let of = |call: &Id| self.subagents.contains_key(call);
        let now = || self.snapshot.agents.get(&agent)?.input.serving;
        let before = || self.serving.get(&agent).copied();
        let run = self.open_call(agent).or_else(now).or_else(before);
        run.filter(of)
    }

    /// Returns the sub-agent for which an agent works. `None` is the agent with which the client talks.
    pub(super) fn run_of(&self, agent: Id) -> Option<Id> {
        let mut at = agent;
        loop {
            let run = self.own_run(at);
            if run.is_some() {
                return run;
            }
            at = self.snapshot.agents.get(&at)?.family.parent?;
        }
    }

    /// Returns the sub-agent for which the agent of an event works, and tells that it begins.
    pub(super) fn tag(&mut self, event: &Event) -> Option<Id> {
        let run = self.run_of(event.agent_id?);
        if let Some(run) = run {
            self.begin(run);
        }
        run
    }

    /// Returns whose words those of an agent are. `None` means that nobody hears them: they are judged before, or the agent helps
    /// another one.
    pub(super) fn speaker(&mut self, event: &Event) -> Option<Owner> {
        self.speakers
            .is_plain(event)
            .then(|| self.owner(event))
            .flatten()
    }

    fn owner(&mut self, event: &Event) -> Option<Owner> {
        let agent = event.agent_id?;
        if self.speakers.answers(event) || self.own_run(agent).is_some() {
            return Some(Owner(self.tag(event)));
        }
        None
    }

    /// Hears that an agent is called.
    pub(super) fn call_agent(&mut self, event: &Event, call: Id, name: &Name) {
        if self.speakers.is_dialogue(name) {
            return;
        }
        let subagent = Subagent {
            name: name.clone(),
            parent: event.agent_id.and_then(|agent| self.run_of(agent)),
            ended: false,
            stage: Stage::Nothing,
        };
        self.subagents.insert(call, subagent);
        self.serve();
        self.begin(call);
    }

    /// Tells that a sub-agent begins, or goes on in this run.
    fn begin(&mut self, run: Id) {
        let quiet = |subagent: &&mut Subagent| subagent.stage == Stage::Nothing;
        let subagent = self.subagents.get_mut(&run).filter(quiet);
        let Some(subagent) = subagent.filter(|_| self.is_begun) else {
            return;
        };
        subagent.stage = Stage::Begin;
        let (name, parent) = (subagent.name.clone(), subagent.parent);
        let mut started = json!({ "name": name });
        if let Some(agent) = self.form.network.agents.get(&name)
            && !agent.description.is_empty()
        {
            started["description"] = agent.description.clone().into();
        }
        if let Some(parent) = parent {
            self.begin(parent);
            started["parentSubagentRunId"] = self.id(parent).into();
        }
        self.tell_of(Some(run), "SUBAGENT_STARTED", started);
    }

    /// Tells the end of a sub-agent.
    pub(super) fn end_agent(&mut self, run: Id, how: (How, Option<&Name>), text: &str) {
        self.begin(run);
        self.shut(run);
        if let Some(subagent) = self.subagents.get_mut(&run) {
            subagent.ended = true;
        }
        let (how, code) = how;
        if succeeded(how) {
            let end = json!({ "result": text, "outcome": { "type": "success" } });
            self.finish(run, "SUBAGENT_FINISHED", end);
        } else {
            let code = code.map_or("failed", |code| code);
            let end = json!({ "message": text, "code": code });
            self.finish(run, "SUBAGENT_ERROR", end);
        }
        self.serve();
    }

    fn finish(&mut self, run: Id, kind: &str, end: serde_json::Value) {
        let begun = |subagent: &&mut Subagent| subagent.stage == Stage::Begin;
        if let Some(subagent) = self.subagents.get_mut(&run).filter(begun) {
            subagent.stage = Stage::End;
            self.tell_of(Some(run), kind, end);
        }
    }

    /// Completes what a sub-agent has begun to tell.
    fn shut(&mut self, run: Id) {
        let thoughts = self.thoughts.iter();
        let thoughts = thoughts.filter(|(_, (_, of))| *of == Some(run));
        for effect in thoughts.map(|(effect, _)| *effect).collect::<Vec<_>>() {
            self.end_thought(effect);
        }
        let texts = self.texts.extract_if(.., |_, text| text.run == Some(run));
        for effect in texts.map(|(effect, _)| effect).collect::<Vec<_>>() {
            let id = self.id(effect);
            self.close(&id, None, Some(run));
        }
        self.finish_steps(|step| step.owner == Some(run));
    }

    /// Completes everything that the run has begun to tell. `end` makes the end of a sub-agent that goes on in a later run.
    pub(super) fn shut_all(
        &mut self,
        end: impl Fn(&Self, Id) -> (&'static str, serde_json::Value),
    ) {
        for effect in self.thoughts.keys().copied().collect::<Vec<_>>() {
            self.end_thought(effect);
        }
        for (effect, text) in std::mem::take(&mut self.texts) {
            let id = self.id(effect);
            self.close(&id, None, text.run);
        }
        self.finish_steps(|_| true);
        let open = self.subagents.iter().rev();
        let open = open.filter(|(_, subagent)| subagent.stage == Stage::Begin);
        for run in open.map(|(run, _)| *run).collect::<Vec<_>>() {
            let (kind, end) = end(self, run);
            self.finish(run, kind, end);
        }
    }

    /// Tells that an agent enters a state or a mode.
    pub(super) fn enter(&mut self, event: &Event, name: &Name, is_mode: bool) {
        let (true, Some(agent), Some(of)) = (self.is_begun, event.agent_id, &event.agent) else {
            return;
        };
        let name = format!("{of}/{name}");
        let ends = is_mode && name.ends_with("/finish");
        let Some(Owner(owner)) = self.owner(event) else {
            return;
        };
        self.finish_steps(|step| step.agent == agent && step.is_mode == is_mode);
        // Two instances of an agent may be in the same state.
        let is_there = |step: &Step| step.owner == owner && step.name == name;
        if ends || self.steps.iter().any(is_there) {
            return;
        }
        self.tell_of(owner, "STEP_STARTED", json!({ "stepName": name }));
        self.steps.push(Step {
            owner,
            agent,
            name,
            is_mode,
        });
    }

    /// Tells that the states and modes of an agent end with its turn.
    pub(super) fn leave(&mut self, event: &Event) {
        if let Some(agent) = event.agent_id {
            self.finish_steps(|step| step.agent == agent);
        }
    }

    fn finish_steps(&mut self, which: impl Fn(&Step) -> bool) {
        let over: Vec<Step> = self.steps.extract_if(.., |step| which(step)).collect();
        for step in over.into_iter().rev() {
            let end = json!({ "stepName": step.name });
            self.tell_of(step.owner, "STEP_FINISHED", end);
        }
    }
}
