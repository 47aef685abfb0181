//! **The transition of each interaction**: the only place where a phase changes.
//!
//! The machine pushes by folding: during a tick, each push goes through `Snapshot::push` and then into the commit. So [`fold`]
//! and the machine cannot differ. Each step costs as much as its interaction, however large the rest of the snapshot is.
//! [`phase`] computes a phase again from a whole stack; tests compare it with the fold.

mod adoption;
mod beside;
mod counts;
pub(crate) mod facts;
mod fresh;
mod routes;
mod values;
mod weight;

use crate::stored::codes::Code;
use crate::stored::engine::Caller;
use counts::{Counted, acts, gives, progresses};
use fresh::opened;
use values::value_of;

use crate::snapshot::{
    Agent, Closed, Draft, Effect, Family, Gave, OpenCall, Phase, Routing, Snapshot, Stands,
};
use crate::stored::commit::{
    Change, Commit, Kind, LogLine, Made, Opening, Push, Text, Want, Wished,
};
use crate::stored::ids::{Body, Digest, Id, Line, Name, Time};
use crate::stored::interaction::{
    Call, CallResult, Cause, End, How, Interaction, Origin, Reduce, Route, Target, Write,
};
use crate::stored::parts::Part;
use imbl::OrdSet;
use std::sync::Arc;

/// Applies one line to a snapshot. A line without a commit changes nothing.
pub fn fold(mut snapshot: Snapshot, line: &LogLine) -> Snapshot {
    if let Some(commit) = &line.commit {
        snapshot.apply(line, commit);
    }
    snapshot
}

/// Computes the phase of a whole stack. Tests compare it with the phase that the fold keeps.
pub fn phase<'a>(kind: Kind, stack: impl IntoIterator<Item = &'a Interaction>) -> Phase {
    let owes = owes(kind);
    let (mut phase, mut open) = (Phase::Resting, 0_u32);
    for interaction in stack {
        match interaction {
            Interaction::UserMessage { .. }
            | Interaction::AssistantMessage { .. }
            | Interaction::Route(_) => phase = owes,
            Interaction::Call(_) => (phase, open) = (Phase::Calling, open + 1),
            Interaction::Result(_) => {
                open -= 1;
                if open == 0 {
                    phase = owes;
                }
            }
            Interaction::Finished {
                end: End::Turn | End::Task,
                ..
            } => phase = Phase::Resting,
            Interaction::Finished {
                end: End::Draft, ..
            }
            | Interaction::Summary(_)
            | Interaction::Earlier(_) => {}
        }
    }
    phase
}

fn owes(kind: Kind) -> Phase {
    match kind {
        Kind::Model => Phase::Thinking,
        Kind::Routed => Phase::Routing,
    }
}

impl Snapshot {
    fn apply(&mut self, line: &LogLine, commit: &Commit) {
        let (at, branch, bodies) = (line.at, line.branch, &line.bodies[..]);
        let line = line.n;
        if let Some(opening) = &commit.opening {
            self.open(branch, commit.parent, at, opening);
        }
        if let Some(adoption) = &commit.adoption {
            self.adopt(line, at, adoption, bodies);
        }
        if let Some(binding) = &commit.binding {
            self.binding = Some(Arc::new(binding.clone()));
        }
        for edit in &commit.edits {
            self.edit(line, at, edit, bodies);
        }
        for usage in &commit.usage {
            self.spend(usage);
        }
        for made in &commit.made {
            self.make(line, at, made, bodies);
        }
        for push in &commit.pushes {
            self.push(line, at, push, bodies);
        }
        for changed in &commit.calls {
            self.call_changed(at, changed);
        }
        for wished in &commit.wished {
            self.wish(at, wished);
        }
        for change in &commit.changes {
            self.change(change);
        }
        self.seal(line, at);
    }

    /// Begins a branch. No effect is outstanding on it: its first commit wishes again those that may be repeated. The clocks of
    /// its waits did not run between the forked commit and now.
    pub(crate) fn open(&mut self, branch: Id, parent: Line, now: Time, opening: &Opening) {
        let stood = Time(now.0.saturating_sub(self.now.0));
        let waits: Vec<(Id, Id)> = self.waits.iter().copied().collect();
        for (owner, call) in waits {
            let open = self.open_call(owner, call);
            open.opened = Time(open.opened.0.saturating_add(stood.0));
        }
        self.branch = branch;
        self.scope = opening.scope;
        self.dry = opening.dry;
        self.of = opening.of;
        self.forked_at = parent;
        self.first_simulated = None;
        // No effect ran between the forked commit and now.
        for (_, effect) in std::mem::take(&mut self.effects) {
            self.works(self.now, &effect, false);
            match effect.what {
                Want::Call(call) => self.open_call(effect.agent, call).effect = None,
                Want::Step => self.agent_mut(effect.agent).stack.owed = None,
            }
        }
    }

    /// Applies an edit of state, or the expiry of an entry. Returns true if the entry has another value afterwards.
    pub(crate) fn edit(&mut self, line: Line, now: Time, write: &Write, bodies: &[Text]) -> bool {
        let value = value_of(write, bodies);
        self.write(line, now, write, value)
    }

    /// Makes an agent. It rests until something is pushed onto its stack.
    pub(crate) fn make(&mut self, line: Line, now: Time, made: &Made, bodies: &[Text]) {
        let path = match made.parent {
            None => Arc::default(),
            Some(parent) => {
                let parent = self.agent_mut(parent);
                let key = match (&made.named, parent.kind) {
                    (Some(named), _) => Some(Name::from(format!("{}/{named}", made.def))),
                    (None, Kind::Routed) => Some(made.def.clone()),
                    (None, Kind::Model) => None,
                };
                parent.family.bears(made.agent, key)
            }
        };
        if made.parent.is_none() {
            self.root = Some(made.agent);
        }
        let family = Family {
            parent: made.parent,
            path,
            named: made.named.clone(),
            ..Family::default()
        };
        let agent = Agent {
            mode: made.mode.clone(),
            ..Agent::born(made.agent, made.def.clone(), made.kind, family, now)
        };
        self.agents.insert(made.agent, Arc::new(agent));
        for write in &made.state {
            self.edit(line, now, write, bodies);
        }
    }

    /// Pushes one interaction: the transition of the machine.
    pub(crate) fn push(&mut self, line: Line, now: Time, push: &Push, bodies: &[Text]) {
        let agent = self.agent_mut(push.agent);
        if agent.stack.pushed(line) {
            agent.counters.ticks += 1;
        }
        agent.context.pushed(agent.kind, line, &push.what);
        self.moves(line, push.agent);
        match &push.what {
            Interaction::UserMessage { from, body } => {
                let agent = self.agent_mut(push.agent);
                hear(agent, line, now, from, *body);
                let parent = agent.family.parent;
                self.owe(now, push.agent);
                if let (Origin::Call(call), Some(parent)) = (from, parent) {
                    self.begin(parent, *call);
                    self.chooses(parent, *call, push.agent);
                }
            }
            Interaction::AssistantMessage { effect, text, .. } => {
                self.owe(now, push.agent);
                self.agent_mut(push.agent).turn.speak(*effect, *text);
                self.count_answer(push.agent);
            }
            Interaction::Call(call) => self.push_call(line, now, push.agent, call, bodies),
            Interaction::Result(result) => self.push_result(line, now, push.agent, result, bodies),
            Interaction::Route(route) => self.push_route(line, now, push.agent, route, bodies),
            Interaction::Summary(summary) => self.push_summary(now, push.agent, summary),
            Interaction::Earlier(_) => {}
            Interaction::Finished {
                end,
                cause,
                body,
                writes,
                ..
            } => {
                if *cause == Cause::Failed && self.agent(push.agent).stack.owed.is_some() {
                    // The model was asked and failed. Count the call, so that the next call gets the script's next answer.
                    self.agent_mut(push.agent).counters.model_calls_all += 1;
                }
                self.withdraw(now, push.agent);
                if *cause == Cause::Leaf && self.first_simulated.is_none() {
                    self.first_simulated = Some(line);
                }
                let agent = self.agent_mut(push.agent);
                if *end == End::Draft {
                    agent.turn.draft = Some(Draft {
                        body: *body,
                        cause: *cause,
                        stands: Stands::Open,
                    });
                } else {
                    agent.turn.finish(*end, *cause, *body);
                    agent.phase = Phase::Resting;
                    agent.input.answered(*end);
                }
                match end {
                    End::Turn => self.said_in_turn(push.agent),
                    End::Task => self.may_begin_next(push.agent),
                    End::Draft => {}
                }
                let mut changed = false;
                for write in writes {
                    changed |= self.edit(line, now, write, bodies);
                }
                if changed {
                    self.progressed(push.agent);
                }
            }
        }
    }

    /// Records the agent that chooses among the branches of a call, if the call waits for branches.
    fn chooses(&mut self, parent: Id, call: Id, child: Id) {
        let branches = self
            .call(parent, call)
            .is_some_and(|c| matches!(c.call.target, Target::Branches(_)));
        if branches {
            self.open_call(parent, call).chooser = Some(child);
        }
    }

    /// Sets the phase in which the agent owes a step, and withdraws its outstanding effect.
    fn owe(&mut self, now: Time, id: Id) {
        self.withdraw(now, id);
        let agent = self.agent_mut(id);
        agent.phase = owes(agent.kind);
    }

    fn withdraw(&mut self, now: Time, id: Id) {
        if let Some(effect) = self.agent_mut(id).stack.owed.take() {
            self.drop_effect(now, effect);
        }
    }

    fn push_call(&mut self, line: Line, now: Time, owner: Id, call: &Call, bodies: &[Text]) {
        self.withdraw(now, owner);
        let agent = self.agent_mut(owner);
        // An agent at rest makes a call only if a person joins branches.
        begin_answer(agent, line, now);
        agent.phase = Phase::Calling;
        agent.stack.opened(call.number.call);
        agent.input.prepared |= call.is_ahead();
        if call.state().is_some() {
            agent.turn.gave = None;
        }
        if agent.kind == Kind::Routed {
            let member = &call.called();
            if agent.routing.pending.first() == Some(member) {
                routing(agent).pending.remove(0);
            }
        }
        if let Target::Agent(child) = call.target {
            self.count_agent_call(owner);
            self.agent_mut(child).input.queue.insert(call.id);
        }
        self.asks_to_judge(owner, call);
        let digest = joined(
            call.name.as_bytes(),
            Some(text_digest(line, call.args, bodies)),
        );
        self.insert_call(OpenCall {
            opened_at: self.ticks,
            ..opened(call.clone(), owner, now, digest)
        });
    }

    fn insert_call(&mut self, open: OpenCall) {
        let key = (open.owner, open.call.id);
        if let Some(closed) = &open.closed {
            let writes = closed.writes.iter().map(|(write, _)| write);
            self.wait_for_exchange(key.0, key.1, writes);
        } else {
            if open.call.target == Target::Wait {
                self.waits.insert(key);
            }
            if !open.begun {
                if self.is_next(&open) {
                    self.unbegun.insert(key);
                }
            } else if matches!(open.call.target, Target::Branches(_)) {
                self.forks.insert(key);
            }
        }
        self.calls.insert(key, Arc::new(open));
    }

    /// Returns true if a call may begin as soon as the limits of parallel calls allow it. A call to a busy agent waits in that
    /// agent's queue and is not among the unbegun calls.
    pub fn is_next(&self, open: &OpenCall) -> bool {
        let Target::Agent(child) = open.call.target else {
            return true;
        };
        self.agents.get(&child).is_none_or(|child| {
            let input = &child.input;
            input.serving.is_none() && input.queue.get_min().is_none_or(|c| *c == open.call.id)
        })
    }

    /// Marks the oldest queued call of an agent as the next one to begin, if the agent serves no call.
    pub(crate) fn may_begin_next(&mut self, child: Id) {
        let agent = self.agent(child);
        let input = &agent.input;
        let (Some(parent), Some(call), None) =
            (agent.family.parent, input.queue.get_min(), input.serving)
        else {
            return;
        };
        let key = (parent, *call);
        if self.calls.get(&key).is_some_and(|c| !c.begun) {
            self.unbegun.insert(key);
        }
    }

    fn remove_call(&mut self, owner: Id, call: Id) -> Option<Arc<OpenCall>> {
        let key = &(owner, call);
        let open = self.calls.remove(key)?;
        match &open.closed {
            None => {
                self.waits.remove(key);
                self.forks.remove(key);
                self.unbegun.remove(key);
            }
            Some(closed) => {
                for (write, _) in closed.writes.iter().filter(|(w, _)| joins(w)) {
                    let key = (write.scope, write.name.clone(), owner, call);
                    self.waiting.remove(&key);
                }
            }
        }
        Some(open)
    }

    /// Marks a call as begun. The exchange counts it as running until it closes.
    fn begin(&mut self, owner: Id, call: Id) {
        let open = self.open_call(owner, call);
        if !std::mem::replace(&mut open.begun, true) {
            let agent = self.agent_mut(owner);
            agent.stack.running += 1;
            self.unbegun.remove(&(owner, call));
        }
    }

    fn push_result(
        &mut self,
        line: Line,
        now: Time,
        owner: Id,
        result: &CallResult,
        bodies: &[Text],
    ) {
        let writes = result
            .writes
            .iter()
            .map(|w| (w.clone(), value_of(w, bodies)))
            .collect();
        let gave = result.body.map(|body| text_digest(line, body, bodies));
        self.wait_for_exchange(owner, result.call, &result.writes);
        let open = self.open_call(owner, result.call);
        let digest = joined(&open.digest.0, gave);
        let effect = open.effect.take();
        open.closed = Some(Closed {
            how: result.how,
            digest,
            gave: result.body,
            writes,
            artifacts: result.artifacts.clone(),
        });
        let call = open.call.clone();
        let args = open.edited.take().unwrap_or(call.args);
        open.due = None;
        let running = std::mem::replace(&mut open.begun, true);
        if !running {
            self.unbegun.remove(&(owner, result.call));
        }
        match call.target {
            Target::Wait => drop(self.waits.remove(&(owner, result.call))),
            Target::Branches(_) => drop(self.forks.remove(&(owner, result.call))),
            Target::Tool(_) | Target::Agent(_) | Target::Person(_) | Target::Unknown => {}
        }
        if let Some(effect) = effect {
            self.drop_effect(now, effect);
        }
        if let Target::Agent(child) = call.target {
            self.agent_mut(child).input.queue.remove(&call.id);
            self.may_begin_next(child);
        }
        if result.how == How::Simulated && self.first_simulated.is_none() {
            self.first_simulated = Some(line);
        }
        if let Caller::Before(name) = &call.by {
            let gave = result.body.filter(|_| result.how.is_ok());
            let input = &mut self.agent_mut(owner).input;
            input.before.insert(name.clone(), gave);
        }
        self.state_gave(owner, &call, result);
        let is_internal = call.is_extraction() || call.asks_itself();
        if let Caller::Extract(of) = call.by {
            self.extracted(owner, of, result);
        }
        if call.judged().is_some() {
            self.judged(owner, &call, result);
        }
        let mut at = Some(owner).filter(|_| !is_internal);
        while let Some(id) = at {
            let agent = self.agent_mut(id);
            count(agent, &call.name, result, args);
            // The engine's question at a limit is not a member of a router.
            if id == owner && agent.kind == Kind::Routed && !call.is_for_more() {
                let member = call.called();
                if member != call.name {
                    count(agent, &member, result, args);
                }
                routes::acted(agent, member, result.how, result.body);
            }
            at = agent.family.parent;
        }
        let agent = self.agent_mut(owner);
        let closes = agent.stack.closed(running);
        if result.how == How::Refused && result.code.as_deref() == Some(Code::Misfit.text()) {
            agent.counters.corrections += 1;
        }
        if result.how == How::Refused && result.code.as_deref() == Some(Code::Limit.text()) {
            // Count a refused call of an agent, too: then the count shows that more than the limit was wanted.
            if call.target == Target::Unknown {
                self.count_agent_call(owner);
            }
        }
        let agent = self.agent_mut(owner);
        if let (Caller::More(asked), true) = (&call.by, result.how.is_ok()) {
            agent.counters.allow(asked, now);
        }
        if progresses(&call) && gives(result.how) {
            self.progressed(owner);
        }
        let agent = self.agent_mut(owner);
        if acts(&call) && !gives(result.how) {
            agent.turn.missed = Some((call.name.clone(), result.body));
        }
        if closes {
            agent.context.closes(line);
            agent.phase = owes(agent.kind);
            self.close_exchange(line, now, owner);
        }
    }

    /// Records the end of a call of a state, or of a call that follows one. A call of a state is a step of its agent, as a model
    /// call is.
    fn state_gave(&mut self, owner: Id, call: &Call, result: &CallResult) {
        if !self.is_of_state(owner, call) {
            return;
        }
        let turn = &mut self.agent_mut(owner).turn;
        turn.gave(Gave {
            ok: gives(result.how),
            code: result.code.clone(),
            body: result.body,
        });
        if let Some(state) = call.state() {
            turn.steps(state);
            self.count_call(owner, Counted::Step);
        }
    }

    /// Notes the writes of a closed call that a reducer will join with the stored values when the exchange closes.
    fn wait_for_exchange<'a>(
        &mut self,
        owner: Id,
        call: Id,
        writes: impl IntoIterator<Item = &'a Write>,
    ) {
        for write in writes.into_iter().filter(|w| joins(w)) {
            let key = (write.scope, write.name.clone(), owner, call);
            self.waiting.insert(key);
        }
    }

    /// Returns this snapshot with the writes of the closed calls of an open exchange applied.
    pub(crate) fn as_written(&self, owner: Id) -> Self {
        let mut after = self.clone();
        let (line, now) = (self.line, self.now);
        for open in self.exchange(owner) {
            for (write, value) in open.closed.iter().flat_map(|closed| &closed.writes) {
                after.write(line, now, write, value.clone());
            }
        }
        after
    }

    /// Closes an exchange: the writes of its calls take effect together, in call order.
    fn close_exchange(&mut self, line: Line, now: Time, owner: Id) {
        let ids: Vec<Id> = self.exchange(owner).map(|c| c.call.id).collect();
        let mut digests = Vec::with_capacity(ids.len() * 16);
        let (mut counts, mut gave, mut changed) = (false, false, false);
        let mut used = OrdSet::new();
        let mut called: Vec<Name> = Vec::new();
        for id in ids {
            let open = self.remove_call(owner, id).expect("listed a moment ago");
            if open.call.chain().is_none() {
                used.insert(open.call.name.clone());
            }
            let Some(closed) = &open.closed else { continue };
            let of_agent = matches!(
                open.call.target,
                Target::Tool(_) | Target::Agent(_) | Target::Unknown
            );
            let is_internal = open.call.is_extraction() || open.call.judged().is_some();
            counts |= of_agent && !is_internal;
            called.extend((!is_internal).then(|| open.call.name.clone()));
            gave |= acts(&open.call) && gives(closed.how);
            digests.extend_from_slice(&closed.digest.0);
            for (write, value) in &closed.writes {
                changed |= self.write(line, now, write, value.clone());
            }
            for artifact in &closed.artifacts {
                self.add_artifact(line, artifact);
            }
        }
        if changed {
            self.progressed(owner);
        }
        let agent = self.agent_mut(owner);
        if agent.kind == Kind::Model {
            agent.context.uses(used);
        }
        if gave {
            agent.turn.missed = None;
        }
        agent.turn.call_only(&called);
        if counts && agent.kind == Kind::Model {
            agent.counters.again(Digest::of(&digests));
        }
    }

    fn push_route(&mut self, line: Line, now: Time, id: Id, route: &Route, bodies: &[Text]) {
        self.owe(now, id);
        if route.effect.is_some() {
            self.count_decision(id, &route.chosen);
        }
        let agent = self.agent_mut(id);
        if let Some(why) = route.refused {
            let routing = routing(agent);
            routing.refused += 1;
            routing.why = Some(why);
            return;
        }
        agent.counters.again(choice_digest(line, route, bodies));
        routes::chosen(agent, line, &route.chosen);
        for write in &route.writes {
            self.edit(line, now, write, bodies);
        }
    }

    /// Records an outstanding effect. It replaces an outstanding effect of the same purpose.
    pub(crate) fn wish(&mut self, now: Time, wished: &Wished) {
        let before = match wished.what {
            Want::Call(call) => {
                let again = self.open_call(wished.agent, call).begun;
                self.begin(wished.agent, call);
                let open = self.open_call(wished.agent, call);
                open.due = wished.due;
                if wished.args.is_some() {
                    open.edited = wished.args;
                    // A call that had begun gets other arguments only from the person who approves it.
                    open.approved = again;
                }
                open.effect.replace(wished.id)
            }
            Want::Step => self.agent_mut(wished.agent).stack.owed.replace(wished.id),
        };
        if let Some(before) = before {
            self.drop_effect(now, before);
        }
        let effect = Effect {
            agent: wished.agent,
            what: wished.what,
            due: wished.due,
        };
        self.works(now, &effect, true);
        self.effects.insert(wished.id, effect);
    }

    /// Applies a change that has no list of its own in the commit.
    pub(crate) fn change(&mut self, change: &Change) {
        match change {
            // Only people read the reason.
            Change::Mode(agent, mode, _) => {
                let agent = self.agent_mut(*agent);
                agent.mode = Some(mode.clone());
                agent.counters.mode_calls = 0;
            }
            Change::State(agent, state) => {
                self.agent_mut(*agent).turn.state = Some(state.clone());
            }
            // The call is absent if its exchange closed in the same commit.
            Change::Asked(agent, call, mode) => {
                if let Some(open) = self.calls.get_mut(&(*agent, *call)) {
                    Arc::make_mut(open).mode = Some(mode.clone());
                }
            }
            Change::Watermark(mark) => self.mark(mark),
            Change::Label(label, Some(body)) => drop(self.labels.insert(label.clone(), *body)),
            Change::Label(label, None) => drop(self.labels.remove(label)),
            Change::Artifact(artifact) => self.came(artifact),
            Change::Grew(agent, bytes) => {
                let agent = self.agent_mut(*agent);
                agent.context.grew(agent.stack.last, *bytes);
            }
            // A hook changes requests and results, not the state of the branch.
            Change::Hooked(_) => {}
        }
    }

    /// Completes the commit: sets line and time, and counts it.
    pub(crate) fn seal(&mut self, line: Line, now: Time) {
        self.line = line;
        self.now = now;
        self.ticks += 1;
        self.let_go();
    }

    pub(crate) fn agent_mut(&mut self, id: Id) -> &mut Agent {
        Arc::make_mut(
            self.agents
                .get_mut(&id)
                .expect("ids of agents come from the snapshot"),
        )
    }

    pub(crate) fn open_call(&mut self, owner: Id, call: Id) -> &mut OpenCall {
        Arc::make_mut(
            self.calls
                .get_mut(&(owner, call))
                .expect("ids of open calls come from the snapshot"),
        )
    }
}

fn routing(agent: &mut Agent) -> &mut Routing {
    Arc::make_mut(&mut agent.routing)
}

/// Returns true if a reducer joins the write with the stored value, so that more may be stored than was written.
fn joins(write: &Write) -> bool {
    write.value.is_some() && matches!(write.reduce, Reduce::Append | Reduce::Merge | Reduce::Sum)
}

/// Begins a new turn and its answer, if the agent rests.
fn begin_answer(agent: &mut Agent, line: Line, now: Time) {
    if agent.phase != Phase::Resting {
        return;
    }
    agent.counters.begin_answer(now);
    agent.turn.begin(line);
    if agent.kind == Kind::Routed {
        let routing = routing(agent);
        routing.count = 0;
        routing.pending.clear();
    }
}

/// Applies a message: it begins a new answer if the agent rests, and a new task if it is a call of the agent's caller.
fn hear(agent: &mut Agent, line: Line, now: Time, from: &Origin, body: Body) {
    begin_answer(agent, line, now);
    if agent.kind == Kind::Routed {
        routes::heard(agent);
    }
    match from {
        Origin::Call(call) => {
            agent.input.serve(*call, body);
            agent.counters.begin_task(now);
        }
        Origin::Limit => {
            agent.counters.last_call = true;
            agent.counters.limited = true;
        }
        Origin::Conclude => agent.counters.last_call = true,
        Origin::Net => agent.turn.gave = None,
        Origin::Correction => agent.counters.corrections += 1,
        Origin::Reflect { tool: None, .. } => agent.counters.rounds += 1,
        Origin::Reflect {
            tool: Some(tool), ..
        } => agent.turn.send_back(tool),
        Origin::Outside(_) if agent.input.args.is_none() => agent.input.args = Some(body),
        Origin::Outside(_)
        | Origin::Agent(_)
        | Origin::Released(_)
        | Origin::Route
        | Origin::Continuation => {}
    }
    if !matches!(
        from,
        Origin::Correction
            | Origin::Limit
            | Origin::Conclude
            | Origin::Net
            | Origin::Reflect { .. }
    ) {
        // A new message invalidates the pending draft.
        agent.turn.draft = None;
        // A new message gets an answer, even if a limit was reached before.
        agent.counters.last_call = false;
        agent.counters.limited = false;
        // A router or a continuation repeats an earlier message, which an extraction has read already.
        let known = matches!(from, Origin::Route | Origin::Continuation);
        agent.input.hear(body, known);
    }
}

/// Returns the digest of these bytes together with that of a text.
fn joined(bytes: &[u8], text: Option<Digest>) -> Digest {
    let text = text.as_ref().map_or(&[][..], |text| &text.0);
    Digest::of(&[bytes, text].concat())
}

/// Returns the digest of a text. A blob's hash is the hash of its text, so the digest does not depend on where the text is
/// stored. For a text of another line, its place is used instead. The digest of a list of parts is made of their digests.
fn text_digest(line: Line, body: Body, bodies: &[Text]) -> Digest {
    let text = bodies.get(body.k() as usize);
    match text.filter(|_| body.line() == line) {
        Some(Text::Here(text)) => Digest::of_hash(text.hash()),
        Some(Text::Blob { hash, .. } | Text::Erased { hash }) => Digest::of_hash(hash),
        Some(Text::Parts(parts)) => {
            let digests = parts.iter().flat_map(|part| match part {
                Part::Text(k) => text_digest(line, Body::new(line, *k), bodies).0,
                Part::Artifact(of) => joined(of.name.as_bytes(), Some(Digest::of_hash(&of.hash))).0,
            });
            Digest::of(&digests.collect::<Vec<u8>>())
        }
        None => place(body),
    }
}

/// Returns a digest that names the place of a text.
fn place(body: Body) -> Digest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&body.line().0.to_le_bytes());
    bytes[8..12].copy_from_slice(&body.k().to_le_bytes());
    Digest(bytes)
}

/// Returns the digest of a choice and the values that led to it.
pub(crate) fn choice_digest(line: Line, route: &Route, bodies: &[Text]) -> Digest {
    let read = route.read.map(|body| text_digest(line, body, bodies));
    joined(routes::words(&route.chosen).as_bytes(), read)
}

fn count(agent: &mut Agent, name: &Name, result: &CallResult, args: Body) {
    let count = Arc::make_mut(agent.counters.calls.entry(name.clone()).or_default());
    if result.how.is_ok() {
        count.ok += 1;
        count.args = Some(args);
        count.result = result.body;
    } else {
        count.failed += 1;
    }
}
