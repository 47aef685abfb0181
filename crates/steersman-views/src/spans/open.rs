//! The spans of a branch that have begun and are not over.

use super::Span;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::{Id, Line, Time};
use steersman_machine::stored::interaction::{Call, Target};
use steersman_runtime::trace::{SpanId, SpanKind, TraceId};

/// A branch, as far as its lines were read.
pub(super) struct Branch {
    pub(super) snapshot: Snapshot,
    pub(super) turn: Option<Turn>,
    /// Tasks of agents, by agent.
    pub(super) tasks: BTreeMap<Id, Task>,
    /// Calls of tools and calls that wait, by call.
    pub(super) calls: BTreeMap<Id, Opened>,
    /// Effects that may be model calls.
    pub(super) models: BTreeMap<Id, Asked>,
    /// Effects that ended before their agents took the end, because the branch was left. They do not begin again if the branch goes on.
    pub(super) left: BTreeSet<(SpanKind, Id)>,
}

impl Branch {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            turn: None,
            tasks: BTreeMap::new(),
            calls: BTreeMap::new(),
            models: BTreeMap::new(),
            left: BTreeSet::new(),
        }
    }

    /// Returns the span of what an agent does: its task, or the segment of the turn.
    pub(super) fn span_of(&self, agent: Id) -> Option<SpanId> {
        match self.tasks.get(&agent) {
            Some(task) => Some(task.span.id),
            None => self.turn.as_ref().map(Turn::span),
        }
    }

    /// The call or model call of an effect may run from now on: it is a part of what its agent does now. Returns false if the branch does not
    /// have the effect.
    pub(super) fn runs(&mut self, effect: Id, at: Time) -> bool {
        if let Some(asked) = self.models.get(&effect) {
            let parent = self.span_of(asked.agent);
            if let Some(asked) = self.models.get_mut(&effect) {
                (asked.span.from, asked.span.parent) = (at, parent);
            }
            return true;
        }
        let Some(call) = self.call_of(effect) else {
            return false;
        };
        let parent = self
            .calls
            .get(&call)
            .and_then(|opened| self.span_of(opened.owner));
        match self.calls.get_mut(&call) {
            Some(opened) => {
                if opened.runs.is_none() {
                    (opened.runs, opened.span.parent) = (Some(at), parent);
                }
                true
            }
            None => false,
        }
    }

    /// Returns the call of an outstanding effect.
    pub(super) fn call_of(&self, effect: Id) -> Option<Id> {
        self.snapshot.effects.get(&effect)?.what.call()
    }

    /// Takes everything that is open, the innermost first: the branch is left.
    pub(super) fn take(&mut self) -> Vec<Span> {
        let all: Vec<Span> = self.open().collect();
        let models = std::mem::take(&mut self.models).into_keys();
        self.left.extend(models.map(|id| (SpanKind::Model, id)));
        let calls = std::mem::take(&mut self.calls).into_keys();
        self.left.extend(calls.map(|id| (SpanKind::Tool, id)));
        let tasks = std::mem::take(&mut self.tasks).into_values();
        self.left
            .extend(tasks.map(|task| (SpanKind::Task, task.call)));
        if let Some(turn) = &mut self.turn {
            turn.segment = None;
        }
        all
    }

    /// Returns everything that is open.
    pub(super) fn open(&self) -> impl Iterator<Item = Span> {
        let models = self.models.values().filter(|asked| asked.is_model);
        let models = models.map(|asked| asked.span.clone());
        let calls = self.calls.values().cloned().filter_map(Opened::shown);
        let tasks = self.tasks.values().map(|task| task.span.clone());
        let segment = self.turn.iter().filter_map(|turn| turn.segment.clone());
        models.chain(calls).chain(tasks).chain(segment)
    }
}

/// The turn of a branch: what follows a message to its root until the root rests.
pub(super) struct Turn {
    pub(super) began: Line,
    pub(super) trace: TraceId,
    /// The span of its first segment.
    pub(super) root: SpanId,
    /// The segment that goes on. `None` while the session waits.
    pub(super) segment: Option<Span>,
    /// Number of segments that have begun on the branch.
    pub(super) segments: u32,
}

impl Turn {
    /// Returns the span that what begins now is a part of.
    pub(super) fn span(&self) -> SpanId {
        self.segment.as_ref().map_or(self.root, |span| span.id)
    }
}

/// The task of an agent.
pub(super) struct Task {
    pub(super) call: Id,
    pub(super) span: Span,
}

/// A call that is open.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) span: Span,
    /// The agent that made the call.
    pub(super) owner: Id,
    /// The time from which on it could run. `None` while something keeps it back.
    pub(super) runs: Option<Time>,
    /// An effect of it was wished.
    pub(super) is_wished: bool,
    /// Attempts that the log has.
    pub(super) attempts: u32,
}

impl Opened {
    /// Returns its span. A call of a tool that was never wished has none: it was refused before anything could run.
    fn shown(mut self) -> Option<Span> {
        if self.span.kind == SpanKind::Tool {
            self.span.from = self.runs?;
        }
        (self.is_wished || self.span.kind == SpanKind::Wait).then_some(self.span)
    }
}

/// An effect that may be a model call.
pub(super) struct Asked {
    pub(super) span: Span,
    pub(super) agent: Id,
    /// True if a model drives the agent, or answers the call. Otherwise only the usage of the answer says whether a model was asked.
    pub(super) is_model: bool,
    /// The state from which its request was made, if texts are wanted.
    pub(super) from: Option<Snapshot>,
}

/// Returns the kind of span that a call has, if it has one. The span of an agent's call is the agent's task.
pub(super) fn kind_of(call: &Call) -> Option<SpanKind> {
    if asks_model(call) {
        return None;
    }
    match &call.target {
        Target::Tool(_) => Some(SpanKind::Tool),
        Target::Person(_) | Target::Wait => Some(SpanKind::Wait),
        Target::Agent(_) | Target::Branches(_) | Target::Unknown => None,
    }
}

/// Returns true if the work of a call is a model call that the engine makes for its agent.
pub(super) fn asks_model(call: &Call) -> bool {
    call.is_extraction() || call.asks_itself()
}
