//! Standing of a session: the state in lists, what it waits for, and its result.

use super::heard::Heard;
use super::{Driver, OutState};
use crate::ledger::Ledger;
use crate::pending::{self, Pending, PendingKind};
use crate::session::Settled;
use crate::store::SessionState;
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::snapshot::{Agent, Phase, Snapshot};
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::interaction::{Cause, End, Interaction};
use steersman_machine::tick::floor;
use steersman_machine::values::expression::to_json;
use steersman_machine::view::{Cx, View};

impl Driver {
    /// The standing of the current branch, as far as nothing goes on by itself.
    pub(super) fn settled(&self) -> Settled {
        let Some(branch) = self.branches.get(&self.ledger.current) else {
            return Settled::Empty;
        };
        let Some(network) = &self.network else {
            return Settled::Empty;
        };
        settled(
            network,
            &self.ledger,
            &branch.snapshot,
            self.pending(Some(self.ledger.current)),
            &*self.past,
        )
    }

    /// Returns what a branch waits for, oldest first; `None` means all branches.
    fn pending(&self, of: Option<Id>) -> Vec<Pending> {
        let cx = Cx {
            network: self.network(),
            bodies: &*self.past,
        };
        let mut pending: Vec<Pending> = self
            .outs
            .values()
            .filter(|out| of.is_none_or(|id| out.branch == id))
            .filter(|out| !matches!(out.state, OutState::Over))
            .filter_map(|out| {
                let snapshot = &self.branches.get(&out.branch)?.snapshot;
                pending::of(&cx, &self.ledger, snapshot, &out.wish, out.since)
            })
            .chain(self.left_in_doubt(of))
            .collect();
        pending.sort_by_key(|p| (p.since, p.effect));
        pending
    }

    /// Returns the state that lists show, if it changed with the line that is written now.
    pub(super) fn changed_info(&mut self, now: Time) -> Option<SessionState> {
        let rerun = self.engine.0.recorded.as_ref();
        let state = self.info(rerun.and_then(|rerun| rerun.listed_at()).unwrap_or(now));
        if told(&state) == told(&self.shown) {
            return None;
        }
        self.shown = state.clone();
        Some(state)
    }

    /// Returns true if lists show an outdated state: something came to rest without a line, for example a probe that decides
    /// nothing.
    pub(super) fn is_misshown(&self) -> bool {
        told(&self.info(self.shown.updated)) != told(&self.shown)
    }

    fn info(&self, now: Time) -> SessionState {
        let busy = self.is_probing()
            || self.outs.iter().any(|(id, out)| match out.state {
                OutState::Held | OutState::Barred | OutState::Waits | OutState::Later(_) => false,
                OutState::Queued if self.waits_for_another(*id) => false,
                OutState::Ready | OutState::Queued | OutState::Soon(_) => !self.ledger.paused,
                OutState::Stands
                | OutState::Starting(_)
                | OutState::Running(_)
                | OutState::Over => true,
            });
        let offered = !self.fresh.is_empty();
        let mut state = SessionState {
            status: "running".into(),
            updated: now,
            micros: self.ledger.spent.micros,
            tokens: self.ledger.spent.tokens,
            model_calls: self.ledger.calls,
            definition: self.shown.definition.clone(),
            waits: pending::list(&[]).into(),
            outcome: self.shown.outcome.clone(),
        };
        if let Some(branch) = self.branches.get(&self.ledger.current)
            && let Some(binding) = &branch.snapshot.binding
        {
            state.definition = binding.digest.short().into();
        }
        let current = self.branches.contains_key(&self.ledger.current);
        if !busy && !offered && !self.owes_reach() && current && self.network.is_some() {
            let settled = self.settled();
            state.status = settled.word().into();
            state.waits = pending::list(&self.pending(None)).into();
            state.outcome = self.outcome();
        }
        state
    }

    /// `outcome:` as JSON; an expression that fails is left out.
    fn outcome(&self) -> Arc<str> {
        let snapshot = &self.branches[&self.ledger.current].snapshot;
        let cx = Cx {
            network: self.network(),
            bodies: &*self.past,
        };
        outcome(&cx, snapshot).to_string().into()
    }
}

/// The parts of a state whose change is worth a line of its own.
fn told(state: &SessionState) -> (&str, &str, &str, &str) {
    let SessionState {
        status,
        waits,
        outcome,
        definition,
        ..
    } = state;
    (status, waits, outcome, definition)
}

/// Most bytes of an outcome in lists; equal to the bound of a single value of state.
const OUTCOME: usize = steersman_machine::stored::bounds::VALUES;

/// The outcome of a session, as its definition names it. Values that are no JSON, fail or exceed the size for lists are left out.
pub(crate) fn outcome(cx: &Cx<'_>, snapshot: &Snapshot) -> Json {
    let view = View::new(cx, snapshot, snapshot.root);
    let (mut values, mut bytes) = (Map::new(), 0);
    for (name, expr) in &cx.network.outcome {
        let value = expr.eval_lenient(&view).ok();
        if let Some(value) = value.and_then(|v| to_json(&v).ok()) {
            let more = name.len() + value.to_string().len();
            if bytes + more <= OUTCOME {
                bytes += more;
                values.insert(name.to_string(), value);
            }
        }
    }
    Json::Object(values)
}

/// The standing of a branch on which nothing goes on by itself.
pub(super) fn settled(
    network: &Network,
    ledger: &Ledger,
    snapshot: &Snapshot,
    mut pending: Vec<Pending>,
    history: &dyn History,
) -> Settled {
    // Doubts that no branch waits for keep nothing from going on.
    pending.retain(|pending| !pending.left);
    if ledger.paused {
        return Settled::Paused;
    }
    let Some(root) = snapshot.root_agent() else {
        return Settled::Empty;
    };
    let heard = Heard {
        network,
        snapshot,
        history,
    };
    let rested = |agent: &Agent| match rested(agent.id, agent.last, history) {
        Settled::Answered { text, task, .. } => Settled::Answered {
            before: heard.on_the_way(root.id, agent.id, &text),
            text,
            task,
        },
        settled => settled,
    };
    if root.phase == Phase::Resting {
        // an empty stack: nothing was said yet
        return match root.height {
            0 => Settled::Empty,
            _ => rested(root),
        };
    }
    if pending.iter().any(|p| p.kind == PendingKind::Doubt) {
        return Settled::Doubt(pending);
    }
    if pending.iter().any(|p| p.kind.is_asked()) {
        return Settled::Asks(pending);
    }
    // A dialogue below ended its turn: its words are the session's answer, and the person who talks with it has the floor.
    if pending.is_empty() {
        let agent = snapshot.agent(floor(network, snapshot, root.id));
        if agent.phase == Phase::Resting && agent.height > 0 {
            return rested(agent);
        }
    }
    Settled::Waits(pending)
}

fn rested(agent: Id, last: steersman_machine::stored::ids::Line, history: &dyn History) -> Settled {
    let (pushes, _) = history.pushes(agent, last);
    let finished = pushes.iter().rev().find_map(|push| match push {
        Interaction::Finished {
            end,
            cause,
            body,
            code,
            ..
        } => Some((*end, *cause, body.map(|b| history.text(b)), code.clone())),
        _ => None,
    });
    let Some((end, cause, text, code)) = finished else {
        return Settled::Empty;
    };
    let code = |default: &str| code.clone().unwrap_or_else(|| default.into());
    let words = || text.clone().unwrap_or_default();
    match cause {
        Cause::Answer
        | Cause::Tool
        | Cause::Released
        | Cause::Routed
        | Cause::Leaf
        | Cause::NoRule
        | Cause::Rounds => Settled::Answered {
            before: Vec::new(),
            text: words(),
            task: end == End::Task,
        },
        Cause::Limit => Settled::Limit {
            code: code("limit"),
            text,
        },
        Cause::Failed => Settled::Failed {
            code: code("failed"),
            message: words(),
        },
        Cause::Deadlock => Settled::Failed {
            code: code("deadlock"),
            message: words(),
        },
        Cause::Cancelled => Settled::Cancelled,
    }
}
