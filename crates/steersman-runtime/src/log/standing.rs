//! The state of a branch that has settled, and the outcome of a session.

use super::heard::Heard;
use super::settled::Settled;
use crate::ledger::Ledger;
use crate::pending::{Pending, PendingKind};
use serde_json::{Map, Value as Json};
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::snapshot::{Agent, Phase, Snapshot};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::{Cause, End, Interaction};
use steersman_machine::tick::floor;
use steersman_machine::values::expression::to_json;
use steersman_machine::view::{Cx, View};

/// Maximum number of bytes of an outcome in lists; equal to the bound on all values of state that one line writes.
const OUTCOME: usize = steersman_machine::stored::bounds::VALUES;

/// Returns the outcome of a session, as `outcome:` of its definition declares it. Values that are not JSON, fail or exceed the size
/// for lists are left out.
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

/// Returns the state of a branch that has settled.
pub(crate) fn settled(
    network: &Network,
    ledger: &Ledger,
    snapshot: &Snapshot,
    mut pending: Vec<Pending>,
    history: &dyn History,
) -> Settled {
    // A doubt that no branch waits for does not stop the session.
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
    let rested = |agent: &Agent| match rested(agent.id, agent.stack.last, history) {
        Settled::Answered { text, task, .. } => Settled::Answered {
            before: heard.on_the_way(root.id, agent.id, &text),
            text,
            task,
        },
        settled => settled,
    };
    if root.phase == Phase::Resting {
        // An empty stack: the agent has not taken a message yet.
        return match root.stack.height {
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
        if agent.phase == Phase::Resting && agent.stack.height > 0 {
            return rested(agent);
        }
    }
    Settled::Waits(pending)
}

fn rested(agent: Id, last: Line, history: &dyn History) -> Settled {
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
            code: code(Code::Limit.text()),
            text,
        },
        Cause::Failed => Settled::Failed {
            code: code(Code::Failed.text()),
            message: words(),
        },
        Cause::Deadlock => Settled::Failed {
            code: code("deadlock"),
            message: words(),
        },
        Cause::Cancelled => Settled::Cancelled,
    }
}
