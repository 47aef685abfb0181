//! Derives the spans of a session from its lines.

use super::content;
use super::open::{Asked, Branch, Opened, Task, Turn, asks_model, kind_of};
use super::{Span, TraceParent};
use crate::reader::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::context::parameters_for;
use steersman_machine::network::Network;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::snapshot::{Agent, Snapshot};
use steersman_machine::stored::commit::{
    Admitted, Commit, Hold, Kind, LedgerEntry, LogLine, Release, Usage, Want, Why,
};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::interaction::{
    Call, CallResult, Cause, End, How, Interaction, Target,
};
use steersman_machine::stored::words::{cause_word, how_word, why_word};
use steersman_runtime::engine::EngineError;
use steersman_runtime::trace::{SpanId, SpanKind, TraceId};

/// Number of the newest snapshots that are kept, because branches mostly begin at new lines.
const RECENT: usize = 64;

/// Derives the spans of a session from its lines, which it takes in order from the first one on.
pub struct Tracer {
    reader: Arc<dyn Reader>,
    session: Name,
    with_texts: bool,
    /// The marks of owners, each with its first line.
    marks: Vec<(Line, u64)>,
    epoch: u64,
    is_paused: bool,
    network: Option<Arc<Network>>,
    /// Time of the last line.
    at: Time,
    branches: BTreeMap<Id, Branch>,
    /// Holds that have not ended. `None` until the span of a new hold is made.
    held: BTreeMap<(Id, Why), Option<Span>>,
    recent: BTreeMap<Line, Snapshot>,
}

impl Tracer {
    /// Creates a tracer of a session. `with_texts`: the spans have the texts of messages, calls and results, as the reader shows them.
    pub fn new(reader: Arc<dyn Reader>, session: &str, with_texts: bool) -> Self {
        Self {
            reader,
            session: session.into(),
            with_texts,
            marks: Vec::new(),
            epoch: 0,
            is_paused: false,
            network: None,
            at: Time(0),
            branches: BTreeMap::new(),
            held: BTreeMap::new(),
            recent: BTreeMap::new(),
        }
    }

    /// Returns the spans of a whole session. What goes on ends with the last line and is marked as open.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn all(
        reader: Arc<dyn Reader>,
        session: &str,
        with_texts: bool,
    ) -> Result<Vec<Span>, EngineError> {
        let lines = reader.all().await?;
        let mut tracer = Self::new(reader, session, with_texts);
        let mut spans = Vec::new();
        for line in &lines {
            spans.extend(tracer.line(line).await?);
        }
        spans.extend(tracer.open());
        Ok(spans)
    }

    /// Returns the spans that are not over, as if they ended with the last line.
    pub fn open(&self) -> Vec<Span> {
        let waits = self.held.values().flatten().cloned();
        let all = self.branches.values().flat_map(Branch::open).chain(waits);
        let ended = all.map(|span| Span {
            to: self.at,
            is_open: true,
            ..span
        });
        ended.collect()
    }

    /// Takes the next line, and returns the spans that ended with it.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn line(&mut self, line: &LogLine) -> Result<Vec<Span>, EngineError> {
        self.at = line.at;
        let mut told = self.decided(line);
        if let Some(commit) = &line.commit {
            if let Some(network) = self.reader.bound(line).await? {
                self.network = Some(network);
            }
            let mut branch = match self.branches.remove(&line.branch) {
                Some(branch) => branch,
                None => Branch::new(self.forked(line).await?),
            };
            let before = std::mem::replace(&mut branch.snapshot, Snapshot::empty());
            branch.snapshot = fold(before, line);
            self.keep(line.n, &branch.snapshot);
            self.turns(line, &mut branch, &mut told);
            self.models_over(commit, &mut branch, &mut told).await?;
            self.calls_over(line, commit, &mut branch, &mut told)
                .await?;
            let touched = touched(commit, &branch.snapshot);
            tasks_over(commit, &mut branch, &touched, &mut told);
            self.tasks_begin(line, &mut branch, &touched);
            self.calls_begin(line, &mut branch);
            self.models_begin(line, &mut branch);
            self.branches.insert(line.branch, branch);
        } else if let Some(mut branch) = self.branches.remove(&line.branch) {
            // The session may have waited for this line.
            self.turns(line, &mut branch, &mut told);
            self.branches.insert(line.branch, branch);
        }
        self.ledger(line, &mut told);
        if let Some(mut branch) = self.branches.remove(&line.branch) {
            self.settles(line, &mut branch, &mut told);
            self.branches.insert(line.branch, branch);
        }
        for span in &mut told {
            span.to = line.at;
        }
        match self.reader.fault() {
            Some(fault) => Err(fault),
            None => Ok(told),
        }
    }

    /// Learns who owns the session and what is held. Returns the spans of holds that ended.
    fn decided(&mut self, line: &LogLine) -> Vec<Span> {
        let mut over = Vec::new();
        for entry in &line.ledger {
            match entry {
                LedgerEntry::Claimed { epoch, mark, .. } => {
                    self.epoch = *epoch;
                    self.marks.push((line.n, *mark));
                }
                LedgerEntry::Paused { paused, .. } => self.is_paused = *paused,
                LedgerEntry::Hold(hold) => {
                    self.held.entry((hold.effect, hold.why)).or_default();
                }
                LedgerEntry::Released {
                    effect,
                    why,
                    how,
                    by,
                    ..
                } => {
                    if let Some(mut span) = self.held.remove(&(*effect, *why)).flatten() {
                        span.set("steersman.wait.decided_by", by.word());
                        span.set("steersman.wait.go", goes(*how));
                        over.push(span);
                    }
                }
                _ => {}
            }
        }
        over
    }

    /// Returns the snapshot at which a branch begins with this line.
    async fn forked(&self, line: &LogLine) -> Result<Snapshot, EngineError> {
        let (mut at, mut path) = (line.prev, Vec::new());
        let mut snapshot = Snapshot::empty();
        while at.is_some() {
            if let Some(known) = self.recent.get(&at) {
                snapshot = known.clone();
                break;
            }
            let before = self.reader.line(at).await?;
            at = before.prev;
            path.push(before);
        }
        Ok(path
            .iter()
            .rev()
            .fold(snapshot, |snapshot, line| fold(snapshot, line)))
    }

    fn keep(&mut self, n: Line, snapshot: &Snapshot) {
        self.recent.insert(n, snapshot.clone());
        while self.recent.len() > RECENT {
            self.recent.pop_first();
        }
    }

    fn mark_at(&self, line: Line) -> u64 {
        let upto = self.marks.partition_point(|(first, _)| *first <= line);
        upto.checked_sub(1).map_or(0, |at| self.marks[at].1)
    }

    fn is_held(&self, effect: Id) -> bool {
        self.held.keys().any(|(held, _)| *held == effect)
    }

    /// Returns true if something works on a branch: a model or tool that nothing keeps back.
    fn works(&self, snapshot: &Snapshot) -> bool {
        let works = |(id, effect): (&Id, &steersman_machine::snapshot::Effect)| {
            let is_work = match effect.what {
                Want::Step => true,
                Want::Call(call) => {
                    let open = snapshot.calls.get(&(effect.agent, call));
                    open.is_some_and(|open| matches!(open.call.target, Target::Tool(_)))
                }
            };
            is_work && !self.is_held(*id)
        };
        !self.is_paused && snapshot.effects.iter().any(works)
    }

    /// Begins a turn or a segment, if one begins with this line.
    fn turns(&self, line: &LogLine, branch: &mut Branch, told: &mut Vec<Span>) {
        let Some(root) = branch.snapshot.root_agent().cloned() else {
            return;
        };
        let began = root.turn.began;
        if !began.is_some() {
            return;
        }
        if branch.turn.as_ref().is_none_or(|turn| turn.began != began) {
            told.extend(branch.turn.as_mut().and_then(|turn| turn.segment.take()));
            let trace = TraceId::of(&self.session, self.mark_at(began), began);
            branch.turn = Some(Turn {
                began,
                trace,
                root: SpanId::of(trace, SpanKind::Turn, Id::MAIN, Id::new(began, 0)),
                segment: None,
                segments: 0,
            });
        }
        let works = self.works(&branch.snapshot);
        let Some(turn) = &mut branch.turn else { return };
        let is_first = began == line.n;
        if turn.segment.is_some() || !(works || is_first) {
            return;
        }
        turn.segments += 1;
        let (kind, id, parent) = if is_first {
            (SpanKind::Turn, turn.root, None)
        } else {
            let id = Id::new(line.n, 0);
            let id = SpanId::of(turn.trace, SpanKind::Segment, line.branch, id);
            (SpanKind::Segment, id, Some(turn.root))
        };
        let mut span = span(turn.trace, id, parent, kind, line.at);
        self.of_agent(&mut span, &root, line.branch);
        span.set("steersman.segment", turn.segments);
        turn.segment = Some(span);
    }

    /// Ends the segment of a branch on which nothing works any more.
    fn settles(&self, line: &LogLine, branch: &mut Branch, told: &mut Vec<Span>) {
        let parents = line.ledger.iter().filter_map(|entry| match entry {
            LedgerEntry::Accepted { parent, .. } => TraceParent::parse(parent.as_ref()?),
            _ => None,
        });
        let works = self.works(&branch.snapshot);
        let root = branch.snapshot.root;
        let Some(turn) = &mut branch.turn else { return };
        if let Some(segment) = &mut turn.segment {
            segment.links.extend(parents);
            if let Some(commit) = &line.commit
                && let Some(root) = root
                && let Some((cause, code)) = finished(commit, root, None)
            {
                segment.error = failed(cause, code);
            }
        }
        if !works {
            told.extend(turn.segment.take());
        }
    }

    /// Sets what is known of an agent.
    fn of_agent(&self, span: &mut Span, agent: &Agent, branch: Id) {
        span.name = format!("invoke_agent {}", agent.def);
        let operation = match agent.kind {
            Kind::Model => "invoke_agent",
            Kind::Routed => "invoke_workflow",
        };
        span.set("gen_ai.operation.name", operation);
        span.set("gen_ai.agent.name", &*agent.def);
        span.set("gen_ai.agent.id", agent.id.to_string());
        let def = (self.network.as_ref()).and_then(|network| network.agents.get(&agent.def));
        let description = def.map(|def| def.description.as_str());
        span.maybe(
            "gen_ai.agent.description",
            description.filter(|text| !text.is_empty()),
        );
        let network = self.network.as_ref().map(|network| &*network.name);
        span.maybe("steersman.definition", network);
        self.placed(span, branch);
    }

    /// Sets the session and the branch.
    fn placed(&self, span: &mut Span, branch: Id) {
        span.set("gen_ai.conversation.id", &*self.session);
        span.set("steersman.branch", branch.to_string());
        span.set("steersman.epoch", self.epoch);
    }

    fn tasks_begin(&self, line: &LogLine, branch: &mut Branch, touched: &[Id]) {
        for id in touched {
            let Some(agent) = branch.snapshot.agents.get(id).cloned() else {
                continue;
            };
            let is_new = |call: &Id| {
                !branch.tasks.contains_key(&agent.id)
                    && !branch.left.contains(&(SpanKind::Task, *call))
            };
            let serving = agent.input.serving.filter(is_new);
            let (Some(call), Some(turn)) = (serving, &branch.turn) else {
                continue;
            };
            let (trace, segment) = (turn.trace, turn.span());
            let parent = (agent.family.parent).and_then(|above| branch.span_of(above));
            let parent = Some(parent.unwrap_or(segment));
            let id = SpanId::of(trace, SpanKind::Task, line.branch, call);
            let mut span = span(trace, id, parent, SpanKind::Task, line.at);
            self.of_agent(&mut span, &agent, line.branch);
            branch.tasks.insert(agent.id, Task { call, span });
        }
    }

    fn calls_begin(&self, line: &LogLine, branch: &mut Branch) {
        let Some(trace) = branch.turn.as_ref().map(|turn| turn.trace) else {
            return;
        };
        for ((owner, id), open) in &branch.snapshot.calls.clone() {
            let kind = kind_of(&open.call).filter(|_| open.closed.is_none());
            let Some(kind) = kind else { continue };
            if branch.left.contains(&(SpanKind::Tool, *id)) {
                continue;
            }
            if !branch.calls.contains_key(id) {
                let parent = branch.span_of(*owner);
                let opened = self.opened(line, (*owner, &open.call), (trace, parent, kind));
                branch.calls.insert(*id, opened);
            }
            let is_free = open.effect.is_some_and(|effect| !self.is_held(effect));
            if let Some(opened) = branch.calls.get_mut(id)
                && open.effect.is_some()
                && !opened.is_wished
            {
                opened.is_wished = true;
                opened.runs = is_free.then_some(line.at);
            }
        }
    }

    fn opened(
        &self,
        line: &LogLine,
        (owner, call): (Id, &Call),
        (trace, parent, kind): (TraceId, Option<SpanId>, SpanKind),
    ) -> Opened {
        let id = SpanId::of(trace, kind, line.branch, call.id);
        let mut span = span(trace, id, parent, kind, line.at);
        match &call.target {
            Target::Tool(class) => {
                span.name = format!("execute_tool {}", call.name);
                span.set("gen_ai.operation.name", "execute_tool");
                span.set("gen_ai.tool.name", &*call.name);
                span.set("gen_ai.tool.type", "function");
                span.set("gen_ai.tool.call.id", call.id.to_string());
                span.set("steersman.effect.class", class.word());
            }
            Target::Person(person) => {
                span.name = "steersman.wait question".into();
                span.set("steersman.wait.by", vec![person.to_string()]);
            }
            _ => span.name = "steersman.wait wait".into(),
        }
        self.placed(&mut span, line.branch);
        Opened {
            span,
            owner,
            runs: None,
            is_wished: false,
            attempts: 0,
        }
    }

    /// Ends the calls that are not open any more.
    async fn calls_over(
        &self,
        line: &LogLine,
        commit: &Commit,
        branch: &mut Branch,
        told: &mut Vec<Span>,
    ) -> Result<(), EngineError> {
        for call in over(branch) {
            let Some(mut opened) = branch.calls.remove(&call) else {
                continue;
            };
            let result = result(commit, call);
            let how = result.map_or(How::NotInThisBranch, |result| result.how);
            if opened.span.kind == SpanKind::Wait {
                let by = result.and_then(|result| result.by.as_ref());
                opened.span.maybe(
                    "steersman.wait.decided_by",
                    by.map(steersman_machine::stored::by::Decider::word),
                );
                opened.span.set("steersman.wait.go", how.is_ok());
                told.push(opened.span);
                continue;
            }
            if !opened.is_wished {
                continue;
            }
            let mut span = opened.span;
            span.from = opened.runs.unwrap_or(line.at);
            span.set("steersman.attempts", opened.attempts.max(1));
            span.set("steersman.outcome", how_word(how));
            if !how.is_ok() && how != How::DoneBefore {
                let code = result.and_then(|result| result.code.clone());
                span.error = Some(code.unwrap_or_else(|| how_word(how).into()));
            }
            if self.with_texts {
                content::of_call(&mut span, &*self.reader, call, result).await?;
            }
            told.push(span);
        }
        Ok(())
    }

    fn models_begin(&self, line: &LogLine, branch: &mut Branch) {
        let Some(trace) = branch.turn.as_ref().map(|turn| turn.trace) else {
            return;
        };
        for (id, effect) in &branch.snapshot.effects.clone() {
            if branch.models.contains_key(id) || branch.left.contains(&(SpanKind::Model, *id)) {
                continue;
            }
            let agent = branch.snapshot.agent(effect.agent);
            let is_model = match effect.what {
                Want::Step => {
                    (self.network.as_ref()).is_some_and(|network| network.in_force(agent).is_some())
                }
                Want::Call(call) => {
                    let open = branch.snapshot.calls.get(&(effect.agent, call));
                    if !open.is_some_and(|open| asks_model(&open.call)) {
                        continue;
                    }
                    true
                }
            };
            let parent = branch.span_of(effect.agent);
            let span_id = SpanId::of(trace, SpanKind::Model, line.branch, *id);
            let mut span = span(trace, span_id, parent, SpanKind::Model, line.at);
            span.name = "chat".into();
            span.set("gen_ai.operation.name", "chat");
            if let Some(network) = &self.network
                && let Some(model) = network.in_force(agent)
            {
                for (name, value) in parameters_for(network, agent, &model.model) {
                    let known = match name.as_str() {
                        "temperature" => "gen_ai.request.temperature",
                        "max_tokens" => "gen_ai.request.max_tokens",
                        "seed" => "gen_ai.request.seed",
                        _ => continue,
                    };
                    span.set(known, value);
                }
                let def = network.agents.get(&agent.def);
                let is_json = def.is_some_and(|def| def.output.is_some());
                let output = if is_json { "json" } else { "text" };
                span.set("gen_ai.output.type", output);
            }
            if !agent.context.sums.is_empty() {
                span.set("gen_ai.conversation.compacted", true);
            }
            self.placed(&mut span, line.branch);
            let asked = Asked {
                span,
                agent: effect.agent,
                is_model,
                from: self.with_texts.then(|| branch.snapshot.clone()),
            };
            branch.models.insert(*id, asked);
        }
    }

    /// Ends the model calls that are not outstanding any more.
    async fn models_over(
        &self,
        commit: &Commit,
        branch: &mut Branch,
        told: &mut Vec<Span>,
    ) -> Result<(), EngineError> {
        let effects = &branch.snapshot.effects;
        let over = branch.models.keys().copied();
        let over: Vec<Id> = over.filter(|id| !effects.contains_key(id)).collect();
        for id in over {
            let Some(asked) = branch.models.remove(&id) else {
                continue;
            };
            let mut span = asked.span;
            let usage = commit.usage.iter().find(|usage| usage.effect == Some(id));
            if let Some(usage) = usage {
                used(&mut span, usage);
                if let (Some(before), Some(network)) = (asked.from, &self.network) {
                    let of = (id, asked.agent);
                    content::of_model(&mut span, &*self.reader, network, &before, of, commit)
                        .await?;
                }
            } else if asked.is_model {
                let is_outcome = |admitted: &&steersman_machine::stored::commit::Admission| {
                    admitted.kind == Admitted::Outcome && admitted.id == Some(id)
                };
                let code = if commit.admitted.iter().any(|a| is_outcome(&a)) {
                    finished(commit, asked.agent, None).and_then(|(_, code)| code)
                } else {
                    Some("cancelled".into())
                };
                span.error = Some(code.unwrap_or_else(|| "failed".into()));
            } else {
                continue;
            }
            told.push(span);
        }
        Ok(())
    }

    /// Notes what the ledger says about effects, and begins the spans of new holds.
    fn ledger(&mut self, line: &LogLine, told: &mut Vec<Span>) {
        for (place, entry) in line.ledger.iter().enumerate() {
            match entry {
                LedgerEntry::Hold(hold) => self.holds(line, place as u32, hold),
                LedgerEntry::Released {
                    effect,
                    how: Release::Go,
                    ..
                } => self.runs(*effect, line.at),
                LedgerEntry::Started { effect, .. } => {
                    self.runs(*effect, line.at);
                    if let Some(opened) = self.call_of(*effect) {
                        opened.attempts += 1;
                    }
                }
                LedgerEntry::Superseded { branch, .. } | LedgerEntry::Ended(branch) => {
                    if let Some(branch) = self.branches.get_mut(branch) {
                        told.extend(branch.take());
                    }
                }
                _ => {}
            }
        }
    }

    fn holds(&mut self, line: &LogLine, place: u32, hold: &Hold) {
        let key = (hold.effect, hold.why);
        if !matches!(self.held.get(&key), Some(None)) {
            return;
        }
        // A branch and one that was forked from it may both have the effect.
        let has = |branch: &&Branch| branch.snapshot.effects.contains_key(&hold.effect);
        let own = self.branches.get(&line.branch);
        let other = || self.branches.values().find(has);
        let Some(branch) = own.filter(has).or_else(other).or(own) else {
            return;
        };
        let Some(turn) = &branch.turn else { return };
        let effect = branch.snapshot.effects.get(&hold.effect);
        let agent = effect.map(|effect| effect.agent);
        let parent = agent.and_then(|agent| branch.span_of(agent));
        let id = Id::new(line.n, place);
        let id = SpanId::of(turn.trace, SpanKind::Hold, branch.snapshot.branch, id);
        let parent = Some(parent.unwrap_or(turn.root));
        let mut span = span(turn.trace, id, parent, SpanKind::Hold, line.at);
        span.name = format!("steersman.wait {}", why_word(hold.why));
        let by: Vec<String> = hold.by.iter().map(ToString::to_string).collect();
        span.set("steersman.wait.by", by);
        span.set("steersman.effect", hold.effect.to_string());
        self.placed(&mut span, branch.snapshot.branch);
        self.held.insert(key, Some(span));
        if hold.why != Why::Doubt
            && let Some(opened) = self.call_of(hold.effect)
        {
            opened.runs = None;
        }
    }

    /// An effect may run from now on.
    fn runs(&mut self, effect: Id, at: Time) {
        let mut branches = self.branches.values_mut();
        branches.any(|branch| branch.runs(effect, at));
    }

    /// Returns the open call of an effect.
    fn call_of(&mut self, effect: Id) -> Option<&mut Opened> {
        self.branches.values_mut().find_map(|branch| {
            let call = branch.call_of(effect)?;
            branch.calls.get_mut(&call)
        })
    }
}

/// Ends the tasks of agents that serve another call now, or none.
fn tasks_over(commit: &Commit, branch: &mut Branch, touched: &[Id], told: &mut Vec<Span>) {
    // The tasks below come first.
    for id in touched.iter().rev() {
        let agent = branch.snapshot.agents.get(id);
        let serving = agent.and_then(|agent| agent.input.serving);
        let is_over = |task: &Task| serving != Some(task.call);
        if !branch.tasks.get(id).is_some_and(is_over) {
            continue;
        }
        if let Some(task) = branch.tasks.remove(id) {
            let mut span = task.span;
            span.error = match finished(commit, *id, Some(End::Task)) {
                Some((cause, code)) => failed(cause, code),
                None => Some("cancelled".into()),
            };
            told.push(span);
        }
    }
}

/// Returns the calls with a span that are not open any more.
fn over(branch: &Branch) -> Vec<Id> {
    let calls = branch.snapshot.calls.iter();
    let open = calls.filter(|(_, call)| call.closed.is_none());
    let open: BTreeSet<Id> = open.map(|((_, call), _)| *call).collect();
    let known = branch.calls.keys().copied();
    known.filter(|call| !open.contains(call)).collect()
}

/// Returns the agents that a commit may have given another task, those above first.
fn touched(commit: &Commit, after: &Snapshot) -> Vec<Id> {
    let mut agents: Vec<Id> = if commit.opening.is_some() || commit.adoption.is_some() {
        after.agents.keys().copied().collect()
    } else {
        let pushes = commit.pushes.iter().map(|push| push.agent);
        let touched: BTreeSet<Id> = pushes.collect();
        touched.into_iter().collect()
    };
    agents.sort_by_key(|id| (after.agents.get(id)).map_or(0, |agent| agent.family.path.len()));
    agents
}

fn span(trace: TraceId, id: SpanId, parent: Option<SpanId>, kind: SpanKind, from: Time) -> Span {
    Span {
        trace,
        id,
        parent,
        kind,
        name: String::new(),
        from,
        to: from,
        is_open: false,
        error: None,
        attributes: Vec::new(),
        links: Vec::new(),
    }
}

/// Returns the result with which a commit closed a call.
fn result(commit: &Commit, call: Id) -> Option<&CallResult> {
    commit.pushes.iter().find_map(|push| match &push.what {
        Interaction::Result(result) if result.call == call => Some(result),
        _ => None,
    })
}

/// Returns the last end of an agent in a commit: its cause, and the code of what went wrong.
fn finished(commit: &Commit, agent: Id, wanted: Option<End>) -> Option<(Cause, Option<Name>)> {
    let mut pushes = commit.pushes.iter().rev();
    pushes.find_map(|push| match &push.what {
        Interaction::Finished {
            end, cause, code, ..
        } if push.agent == agent && wanted.is_none_or(|wanted| wanted == *end) => {
            Some((*cause, code.clone()))
        }
        _ => None,
    })
}

/// Returns the code of an end that is a failure.
fn failed(cause: Cause, code: Option<Name>) -> Option<Name> {
    match cause {
        Cause::Answer | Cause::Tool | Cause::Released | Cause::Routed | Cause::Rounds => None,
        Cause::Leaf
        | Cause::Limit
        | Cause::Failed
        | Cause::Cancelled
        | Cause::Deadlock
        | Cause::NoRule => Some(code.unwrap_or_else(|| cause_word(cause).into())),
    }
}

/// Returns true if an effect goes on after its hold ended in this way.
fn goes(how: Release) -> bool {
    match how {
        Release::Go | Release::Edited | Release::Outcome => true,
        Release::Refused | Release::GivenUp | Release::Cancelled | Release::Expired => false,
    }
}

/// Sets what a model's answer cost.
fn used(span: &mut Span, usage: &Usage) {
    let label = usage.model.as_deref().unwrap_or("unknown");
    let (provider, model) = label.split_once('/').unwrap_or((label, label));
    span.name = format!("chat {model}");
    span.set("gen_ai.provider.name", provider);
    span.set("gen_ai.request.model", model);
    span.set("gen_ai.request.stream", usage.first.is_some());
    span.maybe("gen_ai.response.model", usage.served.as_deref());
    let finish = usage.finish.as_ref().map(|finish| vec![finish.to_string()]);
    span.maybe("gen_ai.response.finish_reasons", finish);
    span.set("gen_ai.usage.input_tokens", usage.input);
    span.set("gen_ai.usage.output_tokens", usage.output);
    span.set("gen_ai.usage.cache_read.input_tokens", usage.cached);
    span.maybe("steersman.cost_micros", usage.micros);
    span.set("steersman.prefix_bytes", usage.prefix);
    span.maybe("steersman.prefix_broke", usage.broke.as_deref());
    let digest = usage.request.map(|digest| digest.to_string());
    span.maybe("steersman.request_digest", digest);
}
