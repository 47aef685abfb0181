//! Start of an effect: its request is rendered or its scope is built, and a task of its own runs the attempt.

use super::budget::Bill;
use super::draft::Note;
use super::transport::TransportScope;
use super::{
    Answered, AskModel, Attempt, Do, Job, OnDisk, OutState, RunTool, Say, Stop, Task, Want,
};
use crate::artifact::Artifacts;
use crate::inbox::{Message, Wanted};
use crate::limiter::{Ask, Limiter};
use crate::model::{BoundModel, Encodings, Model, ModelCall, Transport};
use crate::toolset::ToolRun;
use crate::trace::{SpanId, SpanKind, TraceId, TraceParent};
use std::sync::Arc;
use steersman_machine::context;
use steersman_machine::context::Request;
use steersman_machine::network::SCRIPTED;
use steersman_machine::questions::Purpose;
use steersman_machine::stored::codes::{Code, FailureCode};
use steersman_machine::stored::commit::{Kind, LedgerEntry};
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::How;
use steersman_machine::stored::outcome::{Failure, Mapped, Outcome};
use steersman_machine::tick::effect::{Offered, ToolWork, Work};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_machine::view::{Cx, mapping};

impl Job<'_, '_> {
    /// Begins an attempt of an effect that may begin.
    pub(super) fn start(&mut self, id: Id) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(id) else {
            return Ok(());
        };
        let again = match out.state {
            OutState::Starting(line) if line > self.seen.durable => return Ok(()),
            OutState::Ready | OutState::Starting(_) => false,
            OutState::Queued | OutState::Soon(_) | OutState::Later(_) => true,
            OutState::AwaitsSearch
            | OutState::Held
            | OutState::Barred
            | OutState::Running
            | OutState::Waits
            | OutState::Over => {
                return Ok(());
            }
        };
        if self.is_barred(id) {
            return self.keep_back(id);
        }
        if again && out.tool().is_some() {
            // A slot, and `Started` for effects that touch the world, come first.
            let mut draft = self.draft(out.branch);
            self.begin_now(&mut draft, id)?;
            let ready = std::mem::take(&mut draft.ready);
            self.write(draft)?;
            for id in ready {
                self.d.effects.wakes(id);
            }
            return Ok(());
        }
        match out.wish.work.clone() {
            Work::Model if self.asks_servers_first(id) => Ok(()),
            Work::Model => self.start_model(id),
            Work::Tool(tool) => {
                self.start_tool(id, &tool);
                Ok(())
            }
            Work::Simulate(tool) => self.simulate(id, &tool),
            Work::Send { to, name, message } => self.send(id, to, &name, &message),
            Work::Ask { .. } | Work::Event { .. } | Work::Timer => Ok(()),
        }
    }

    /// Fails a model or router call for good.
    pub(super) fn fail(&mut self, id: Id, code: FailureCode, message: &str) {
        let failure = Failure::new(code, message);
        self.answer_outcome(id, Outcome::Failed(failure), Vec::new());
    }

    /// Offers an outcome that needs no mapping.
    pub(super) fn answer_outcome(&mut self, id: Id, outcome: Outcome, notes: Vec<Note>) {
        let Some((branch, attempt)) = self.d.effects.offers_outcome(id) else {
            return;
        };
        self.seen.permits.give_slot(id);
        let offered = Offered::Outcome {
            effect: id,
            attempt: attempt.max(1),
            outcome,
        };
        let mut offer = super::Offer::new(super::What::Offer(Box::new(offered)));
        offer.notes = notes;
        self.offer(branch, offer);
    }

    fn start_model(&mut self, id: Id) -> Result<(), Stop> {
        let (branch, agent) = {
            let out = &self.d.effects.outs()[&id];
            (out.branch, out.wish.agent)
        };
        if let Some(why) = self.hook_failed(id)? {
            self.fail(id, FailureCode::Hook, &why);
            return Ok(());
        }
        let request = match self.render(branch, agent)? {
            Ok(request) => request,
            Err(error) => {
                self.fail(id, FailureCode::Expression, &error.to_string());
                return Ok(());
            }
        };
        self.d.effects.rendered(id, &request);
        if self.modelled_in_recording(id, &request) {
            return Ok(());
        }
        let (request, bound, model) = match self.choose_model(id, request) {
            Ok(found) => found,
            Err(message) => {
                self.fail(id, FailureCode::NoModel, &message);
                return Ok(());
            }
        };
        let place = |driver: &Self, request: &Request| {
            let transport = driver.model_transport(branch, agent, &request.model, &bound)?;
            Ok(driver.gate_of(&bound, request, &transport))
        };
        if self.takes_seat(id, &request, place) {
            return Ok(());
        }
        if !self.reserve(id, &request)? {
            return self.leave_seat(id);
        }
        // Its escrow, and the wish of a call that the provider stores, must be on disk first.
        let mut before = self.covered_by();
        if bound.stateful {
            before = before.max(id.line());
        }
        if before > self.seen.durable {
            let attempt = self.d.effects.starts_behind(id, before);
            self.d
                .course
                .when_durable(before, OnDisk::Start(id, attempt));
            return Ok(());
        }
        let transport = match self.model_transport(branch, agent, &request.model, &bound) {
            Ok(transport) => transport,
            Err(message) => {
                self.fail(id, FailureCode::NoModel, &message);
                return Ok(());
            }
        };
        let bill = Bill::new(&request, bound.price());
        let shares = self.shares(id, &bound, &transport, bill)?;
        let attempt = self.d.effects.begins(id);
        let seen = self.position(branch, agent, request.purpose);
        let path = self.path_of(branch, agent);
        let (seed, tried) = self.seed_for(branch, &path, seen.0);
        let request = seeded(request, seed, tried);
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        let def = snapshot.agent(agent).def.clone();
        let call = ModelCall {
            effect: id,
            session: self.d.who.session().clone(),
            attempt,
            agent: path,
            def,
            branch: self.label_of(branch),
            index: self
                .d
                .ledger
                .branch(branch)
                .and_then(crate::ledger::Branch::index),
            position: seen.0,
            position_on_branch: seen.1,
            seed,
            request,
            transport,
            trace: self.trace_of(id),
            encodings: Encodings::default(),
        };
        let (limiter, ask) = self.gate_of(&bound, &call.request, &call.transport);
        let has_files = call.request.segments.has_files();
        let task = AskModel {
            files: has_files.then(|| self.artifacts(id)),
            model,
            limiter,
            ask,
            shares,
            bill,
            is_shown: self.is_shown(id),
            judged: self.judged_of(branch, agent),
            waited: None,
            call,
        };
        self.begins(id, attempt, Task::Model(Box::new(task)));
        Ok(())
    }

    /// Returns the reason why a hook failed before a model call, if one did.
    fn hook_failed(&self, id: Id) -> Result<Option<String>, Stop> {
        if self.network().hooks.is_empty() {
            return Ok(None);
        }
        let past = &*self.seen.past;
        let edits = self.ask(|_| context::before_model(past, id))?;
        Ok(edits.into_iter().find_map(|(_, edits)| edits.failed))
    }

    /// Orders an attempt of an outstanding effect.
    fn begins(&mut self, id: Id, attempt: u32, task: Task) {
        let out = &self.d.effects.outs()[&id];
        let attempt = Attempt {
            effect: id,
            number: attempt,
            agent: out.wish.agent,
            branch: out.branch,
            task,
        };
        self.out.orders.push(Do::Begin(Box::new(attempt)));
    }

    /// Returns true if followers of the session see what the model streams. A router's reasoning is not part of the conversation;
    /// its decision is, once it is taken. Calls that the engine makes for itself are not shown either.
    fn is_shown(&self, id: Id) -> bool {
        let out = &self.d.effects.outs()[&id];
        let snapshot = &self.d.branches.live()[&out.branch].snapshot;
        let agent = snapshot.agents.get(&out.wish.agent);
        out.wish.call().is_none()
            // An answer that a hook may still change is not shown before that.
            && agent.is_some_and(|agent| {
                agent.kind != Kind::Routed && !self.network().edits_answers(&agent.def)
            })
            && context::summing(snapshot, out.wish.agent).is_none()
    }

    fn render(
        &mut self,
        branch: Id,
        agent: Id,
    ) -> Result<Result<Request, steersman_machine::values::expression::EvalError>, Stop> {
        let cache = self.d.branches.take_cache(branch, agent);
        let mut cache = Arc::unwrap_or_clone(cache);
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        let past = &*self.seen.past;
        let request = self.ask(|cx| context::request(cx, past, snapshot, agent, &mut cache))?;
        self.d.branches.keep_cache(branch, agent, cache);
        Ok(request)
    }

    /// Selects the model to ask: that of the agent, or the fallback of its chain that it has reached. A fallback gets the same
    /// request under its own parameters; the digest stays that of the agent's request.
    fn choose_model(
        &mut self,
        id: Id,
        request: Request,
    ) -> Result<(Request, BoundModel, Arc<dyn Model>), String> {
        let network = self.network().clone();
        let chain = network.chain(&request.model);
        let mut why = format!("model `{}` is not bound", request.model);
        loop {
            let rung = self.d.effects.outs()[&id].rung;
            let Some(name) = chain.get(rung) else {
                return Err(why);
            };
            match self.model(name) {
                Ok((bound, model)) => {
                    self.d.effects.costs(id, bound.price());
                    let request = if rung == 0 {
                        request
                    } else {
                        self.asked_of(id, request, name)
                    };
                    return Ok((request, bound, model));
                }
                // It is not available in this process: the next one may be.
                Err(message) => why = message,
            }
            if chain.len() == rung + 1 {
                self.d.effects.asks_first_model(id);
                return Err(why);
            }
            self.d.effects.falls_back(id);
        }
    }

    /// Returns the request under the parameters of a fallback model, with the files that this one takes.
    fn asked_of(&self, id: Id, request: Request, name: &Name) -> Request {
        let network = self.network();
        let out = &self.d.effects.outs()[&id];
        let snapshot = &self.d.branches.live()[&out.branch].snapshot;
        let agent = snapshot.agent(out.wish.agent);
        let cx = Cx {
            network,
            bodies: &*self.seen.past,
        };
        let request = context::for_model(&cx, snapshot, out.wish.agent, request, name);
        let params = match request.purpose {
            // Calls that are not an agent's own steps do not use that agent's parameters.
            Purpose::Extract | Purpose::Summary | Purpose::Compact => {
                context::parameters_of(network, name)
            }
            _ => context::parameters_for(network, agent, name),
        };
        let def = network.models.get(name);
        Request {
            model: name.clone(),
            params: params.into(),
            calls: def.map_or(request.calls, |def| def.calls),
            ..request
        }
    }

    /// Returns the limiter of a model's place, and the request to it.
    fn gate_of(
        &self,
        bound: &BoundModel,
        request: &Request,
        transport: &Transport,
    ) -> (Arc<Limiter>, Ask) {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let place = [
            bound.provider.to_string(),
            part(&transport.url),
            part(&transport.key),
        ];
        let (limiters, clock) = (
            &self.seen.engine.0.options.limiters,
            &**self.seen.engine.clock(),
        );
        let limiter = if *bound.provider == *SCRIPTED {
            // A scripted model calls no server: its sessions share only the rate of the definition.
            limiters.of(&["scripted", &self.network().name], clock)
        } else {
            limiters.of(&place.each_ref().map(String::as_str), clock)
        };
        let def = self.network().models.get(&request.model);
        let ask = Ask {
            session: self.d.who.session().clone(),
            model: bound.label(),
            rate: def.and_then(|def| def.rate),
            tokens: super::budget::expected(request, super::budget::sent(request)),
            unbroken: *bound.provider == *SCRIPTED,
        };
        (limiter, ask)
    }

    pub(super) fn model(&self, name: &str) -> Result<(BoundModel, Arc<dyn Model>), String> {
        let bound = self.bound_model(name);
        let bound = bound.ok_or_else(|| format!("model `{name}` is not bound"))?;
        let model = self.seen.engine.0.models.model(&bound);
        let model = model.map_err(|e| e.to_string())?;
        Ok((bound, model))
    }

    /// Returns the model that is asked under a name here: the bound one, or the one that this process asks in its place.
    pub(super) fn bound_model(&self, name: &str) -> Option<BoundModel> {
        let mut models = self.d.bound.values().models.iter();
        let bound = models.find(|m| *m.name == *name)?;
        let instead = self.seen.engine.0.models.instead(bound);
        Some(instead.unwrap_or_else(|| bound.clone()))
    }

    /// Returns the number of model calls of this kind that an agent committed on its path before the next one, and of those since
    /// its branch began.
    fn position(&self, branch: Id, agent: Id, purpose: Purpose) -> (u32, u32) {
        let branch = &self.d.branches.live()[&branch];
        let all = purpose.calls(&branch.snapshot.agent(agent).counters);
        let base = branch.base.as_ref().and_then(|b| b.agents.get(&agent));
        let before = base.map_or(0, |a| purpose.calls(&a.counters));
        (all, all.saturating_sub(before))
    }

    /// Returns the path of names from the entry agent down; instance names where given.
    fn path_of(&self, branch: Id, agent: Id) -> Arc<str> {
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        let (mut names, mut at) = (Vec::new(), Some(agent));
        while let Some(id) = at {
            let agent = snapshot.agent(id);
            names.push(
                agent
                    .family
                    .named
                    .clone()
                    .unwrap_or_else(|| agent.def.clone()),
            );
            at = agent.family.parent;
        }
        names.reverse();
        names.join("/").into()
    }

    fn label_of(&self, branch: Id) -> Arc<str> {
        match &self.d.branches.live()[&branch].label {
            Some(label) => label.clone(),
            None => branch.to_string().into(),
        }
    }

    /// Notes that an effect whose `Started` is on disk was not begun, because the session was stopped or paused: so nobody has
    /// to doubt it. It begins again when the session goes on.
    pub(super) fn not_begun(&mut self, id: Id) -> Result<(), Stop> {
        let now = self.seen.now;
        let Some(out) = self.d.effects.out(id) else {
            return Ok(());
        };
        if !out.touches_world() {
            self.d.effects.readies(id);
            return Ok(());
        }
        let (branch, attempt) = (out.branch, out.attempt);
        self.d.effects.tries_now(id, now);
        self.seen.permits.give_slot(id);
        let mut draft = self.draft(branch);
        draft.note(Note::NotPerformed(id, attempt));
        self.retry_queued();
        self.write(draft)
    }

    fn start_tool(&mut self, id: Id, tool: &ToolWork) {
        let Some(def) = self.tool_def(&tool.tool) else {
            let message = format!("the tool `{}` is not declared", tool.tool);
            self.answer_fault(id, Code::Failed, &message);
            return;
        };
        if super::wish::only_writes(def) {
            self.answer_raw(id, Raw::Done(serde_json::Value::Null), Vec::new());
            return;
        }
        let timeout = def.timeout;
        let attempt = self.d.effects.begins(id);
        let locked = self.locked_input(id);
        let toolset = self
            .seen
            .engine
            .toolset(self.network(), &tool.tool)
            .cloned();
        let toolset = toolset.or_else(|| self.search(id, tool));
        let scope = self.scope(id, None);
        let run = ToolRun {
            attempt,
            ..self.tool_run(id, tool, scope.clone())
        };
        let task = RunTool {
            toolset,
            run,
            scope,
            timeout,
            locked,
        };
        self.begins(id, attempt, Task::Tool(Box::new(task)));
    }

    /// Returns the input of a tool's run, apart from the attempt's number.
    pub(super) fn tool_run(&self, id: Id, tool: &ToolWork, scope: Arc<TransportScope>) -> ToolRun {
        ToolRun {
            network: self.network().clone(),
            session: self.d.who.session().clone(),
            part: self.d.who.claim().scope.clone(),
            mark: self.mark_of(id),
            effect: id,
            attempt: self.d.effects.outs()[&id].attempt,
            work: tool.clone(),
            folder: self.d.bound.values().folder(),
            artifacts: self.artifacts(id),
            scope,
            steps: None,
            writes: None,
            trace: self.trace_of(id),
        }
    }

    /// Returns the place of an effect in the trace of its turn, for the server that it asks. `None` if nobody gets the spans.
    fn trace_of(&self, id: Id) -> Option<TraceParent> {
        if !self.seen.engine.0.options.is_traced {
            return None;
        }
        let out = &self.d.effects.outs()[&id];
        let snapshot = &self.d.branches.live().get(&out.branch)?.snapshot;
        let began = snapshot.root_agent()?.turn.began;
        let mark = self.d.ledger.mark_at(began)?;
        let trace = TraceId::of(self.d.who.session(), mark, began);
        let (kind, of) = match out.wish.call() {
            Some(call) if !matches!(out.wish.work, Work::Model) => (SpanKind::Tool, call),
            _ => (SpanKind::Model, id),
        };
        Some(TraceParent {
            trace,
            span: SpanId::of(trace, kind, out.branch, of),
            is_sampled: true,
        })
    }

    /// Returns the fault of a given secret that this machine's key does not open: without it the tool must not run.
    fn locked_input(&self, id: Id) -> Option<Fault> {
        self.d.effects.outs()[&id]
            .inputs
            .iter()
            .find_map(|(name, sealed)| {
                let error = self.seen.engine.sealer().open_text(sealed).err()?;
                Some(Fault::new(Code::Sealed, format!("`args.{name}`: {error}")))
            })
    }

    /// Returns the mark of the owner that wished an effect: the key that a service sees is the same for every attempt.
    pub(super) fn mark_of(&self, id: Id) -> u64 {
        self.d
            .ledger
            .mark_at(id.line())
            .unwrap_or(self.d.who.mark())
    }

    /// Returns the artifacts that a tool sees: those of its agent, as of the line that asked for its call.
    pub(super) fn artifacts(&self, id: Id) -> Artifacts {
        let out = &self.d.effects.outs()[&id];
        let snapshot = self.read_by(out);
        Artifacts::new(self.seen.engine.store().clone(), snapshot, out.wish.agent)
            .and_coming(self.seen.past.coming())
    }

    /// Returns the scope that transport fields of a tool read, as of the line that asked for its call, with secrets opened.
    pub(super) fn scope(&self, id: Id, args: Option<Arc<str>>) -> Arc<TransportScope> {
        let out = &self.d.effects.outs()[&id];
        let snapshot = self.read_by(out);
        let args = args.or_else(|| Some(out.tool()?.args.clone()));
        let given = (args, &out.inputs[..]);
        self.scope_in(&self.seen.reader, snapshot, out.wish.agent, given)
    }

    /// Answers a call in dry mode: from the record of the same call, otherwise by `simulate:`, otherwise the block ends here.
    fn simulate(&mut self, id: Id, tool: &ToolWork) -> Result<(), Stop> {
        let digests = super::tool_digests(tool, self.seen.engine.sealer());
        if !tool.approve.is_empty() {
            let mut draft = self.draft(self.d.effects.outs()[&id].branch);
            draft.ledger.push(LedgerEntry::WouldAsk(id));
            self.write(draft)?;
        }
        let same = self.d.ledger.effects().find(|(other, record)| {
            *other != id
                && record
                    .digest
                    .is_some_and(|digest| digests.contains(&digest))
                && matches!(record.progress, crate::ledger::Progress::Done { .. })
        });
        let same = same.map(|(id, _)| id);
        if let Some(before) = same
            && let Some(recorded) = self.recorded(before)?
        {
            let how = match recorded.how {
                how if how.is_ok() => How::Simulated,
                // Its result did not fit, and does not fit here either.
                how => how,
            };
            let mapped = Mapped { how, ..recorded };
            self.answer_outcome(id, Outcome::Mapped(mapped), Vec::new());
            return Ok(());
        }
        let out = &self.d.effects.outs()[&id];
        let snapshot = &self.d.branches.live()[&out.branch].snapshot;
        let (owner, call) = (out.wish.agent, out.wish.call());
        let simulated = self.ask(|cx| mapping::simulate(cx, snapshot, owner, call?))?;
        let outcome = simulated.map_or_else(
            || Outcome::Leaf(format!("`{}` has no `simulate:`", tool.tool)),
            Outcome::Mapped,
        );
        self.answer_outcome(id, outcome, Vec::new());
        Ok(())
    }

    /// Puts an agent's message into the inbox, where it waits until its agent can hear it. It is accepted once.
    fn send(&mut self, id: Id, to: Option<Id>, name: &Name, message: &str) -> Result<(), Stop> {
        let Some(to) = to else {
            let fault = Fault::new(Code::Failed, format!("no `{name}` was started yet"));
            self.answer_raw(id, Raw::NotPerformed(fault), Vec::new());
            return Ok(());
        };
        let (branch, from) = {
            let out = &self.d.effects.outs()[&id];
            (out.branch, out.wish.agent)
        };
        let text = message.to_owned();
        let sent = Wanted::Sent { text, to, from }.on(Some(branch));
        let key = format!("sent:{id}").into();
        let raw = match self.put(key, sent)? {
            Ok(()) => Raw::Done("sent".into()),
            // The agent may send it again.
            Err(full) => Raw::NotPerformed(Fault::new(Code::Failed, full)),
        };
        self.d.mail.look();
        self.answer_raw(id, raw, Vec::new());
        Ok(())
    }

    /// Puts a message into the session's own inbox. Returns the reason if the inbox has no room.
    pub(super) fn put(&mut self, id: Name, message: Message) -> Result<Result<(), String>, Stop> {
        let want = Want::Put(id);
        if let Some(Answered::Put(put)) = self.seen.answers.known.get(&want) {
            return Ok(put.clone());
        }
        let message = Some(Box::new(message));
        self.seen.answers.wanted.insert(want, message);
        Err(Stop::Wants)
    }

    pub(super) fn model_transport(
        &self,
        branch: Id,
        agent: Id,
        name: &str,
        bound: &BoundModel,
    ) -> Result<Transport, String> {
        let mut transport = Transport {
            url: bound.url.clone(),
            key: bound.key(&self.seen.engine.0.options.env),
            model: bound.model.clone(),
        };
        if *bound.provider == *SCRIPTED {
            return Ok(transport);
        }
        let network = self.network().clone();
        let Some(def) = network.models.get(name) else {
            return Ok(transport);
        };
        if def.url.is_none() && def.key.is_none() {
            return Ok(transport);
        }
        let scope = TransportScope::new(
            network.clone(),
            self.seen.past.clone(),
            self.d.branches.live()[&branch].snapshot.clone(),
            agent,
            (None, &[]),
            self.seen.engine,
            self.d.bound.values().folder(),
        );
        let render = |template: &steersman_machine::values::expression::Template| {
            template
                .render(&scope)
                .map_err(|e| format!("model `{name}`: {e}"))
        };
        if let Some(url) = &def.url {
            match render(url) {
                Ok(url) => transport.url = Some(url),
                Err(message) => return Err(message),
            }
        }
        if let Some(key) = &def.key {
            match render(key) {
                Ok(key) => transport.key = Some(key).filter(|k| !k.is_empty()),
                Err(message) => return Err(message),
            }
        }
        Ok(transport)
    }

    /// Withdraws the text that an attempt has streamed.
    pub(super) fn withdraw(&mut self, effect: Id, attempt: u32, (branch, agent): (Id, Id)) {
        self.out.told.push(Say::Withdrawn {
            effect,
            attempt,
            agent,
            branch,
        });
    }
}

/// Gives branches that get the same request different samples: a `seed` among the parameters becomes the branch's own.
fn seeded(mut request: Request, seed: u64, tried: bool) -> Request {
    let given = |(name, value): &(String, serde_json::Value)| name == "seed" && value.is_number();
    if let Some(at) = request.params.iter().position(given).filter(|_| tried) {
        let mut params = request.params.to_vec();
        // 31 bits: every server takes such a seed.
        params[at].1 = (seed >> 33).into();
        request.params = params.into();
    }
    request
}
