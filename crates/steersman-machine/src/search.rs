//! Search over branches. The next step is a pure function of the plan and of the tree so far.
//!
//! A node of the tree is a commit at the end of a block: an agent owes its next model call, or the branch ended.
//! The driver opens branches at nodes, lets each run for one block, records the reached commits and their scores, and calls
//! [`next`] again. Nothing else decides. So every reader of the log makes the same plan: after a crash a search continues
//! unchanged, and the same seed gives the same tree.

pub mod reward;
mod tree;

pub use tree::{Cost, Next, Node, Run, Score, Seen, Stop, Tree, Why, best, cut, next, seen};

use crate::network::search::{Plan, Scorer, parameters};
use crate::network::{Does, Network};
use crate::snapshot::{Phase, Snapshot};
use crate::stored::commit::Kind;
use crate::stored::ids::{Digest, Id, Time};
use crate::tick::floor;
use crate::values::expression::{Expr, to_json};
use crate::view::{Cx, View};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Returns the search plan of an agent that owes the first model call of an answer.
pub fn policy<'n>(cx: &Cx<'n>, snapshot: &Snapshot, agent: Id) -> Option<&'n Plan> {
    let agent = snapshot.agents.get(&agent)?;
    let Does::Model(model) = &cx.network.agents.get(&agent.def)?.does else {
        return None;
    };
    let first = agent.counters.model_calls == 0 && agent.phase == Phase::Thinking;
    model.search.as_deref().filter(|_| first)
}

/// Returns true if a model call of this agent begins a block: the agent is the top of the branch's scope, or only routed agents
/// are between it and the top. Calls of agents that a model-driven agent started belong to the blocks of that agent.
pub fn begins_block(snapshot: &Snapshot, agent: Id) -> bool {
    let Some(top) = snapshot.top() else {
        return false;
    };
    let Some(known) = snapshot.agents.get(&agent) else {
        return false;
    };
    let mut at = (known.kind == Kind::Model).then_some(agent);
    while let Some(id) = at {
        if id == top {
            return true;
        }
        let parent = snapshot.agents.get(&id).and_then(|a| a.family.parent);
        let parent = parent.and_then(|id| snapshot.agents.get(&id));
        at = parent.filter(|p| p.kind == Kind::Routed).map(|p| p.id);
    }
    false
}

/// Returns the cost of an agent and everything it started, on the path of a branch. To compare two places, pass the same agent
/// for both: the root of a tree is on a branch with a wider scope than the branches that begin there.
pub fn spent(snapshot: &Snapshot, agent: Option<Id>) -> Cost {
    let agent = agent.and_then(|agent| snapshot.agents.get(&agent));
    agent.map_or_else(Cost::default, |agent| {
        let span = &agent.counters.session;
        Cost {
            calls: u64::from(span.model_calls),
            tokens: span.tokens,
            micros: span.micros,
        }
    })
}

/// Returns the cost of a branch's top agent and everything it started since an earlier snapshot on its path.
pub fn spent_since(snapshot: &Snapshot, before: &Snapshot) -> Cost {
    let top = snapshot.top();
    spent(snapshot, top).less(spent(before, top))
}

/// Returns the answer of a branch: that of its top agent, or else of the agent that has the floor below it. `None` if neither
/// rests with an answer.
pub fn answer(cx: &Cx<'_>, snapshot: &Snapshot) -> Option<Arc<str>> {
    let top = snapshot.top()?;
    let who = [top, floor(cx.network, snapshot, top)];
    let mut resting = who
        .iter()
        .map(|id| snapshot.agent(*id))
        .filter(|agent| agent.phase == Phase::Resting);
    let body = resting.find_map(|agent| agent.turn.answer)?;
    Some(cx.bodies.text(body))
}

/// Returns the answer of a branch for expressions: as the `output` of its top agent declares it. Null if there is none.
pub(crate) fn answered(cx: &Cx<'_>, snapshot: &Snapshot) -> Json {
    let Some((answer, top)) = answer(cx, snapshot).zip(snapshot.top()) else {
        return Json::Null;
    };
    cx.network.answered(&snapshot.agent(top).def, &answer)
}

/// Returns the score of a branch by an expression over `answer`, `state` and `calls` of its top agent. True is 1, false is 0.
///
/// # Errors
/// The reason why the result is not a number, as a text for people.
pub fn score(cx: &Cx<'_>, snapshot: &Snapshot, now: Time, expr: &Expr) -> Result<f64, String> {
    let view = View::new(cx, snapshot, snapshot.top()).at(now);
    let view = view.with("answer", answered(cx, snapshot));
    let value = expr.eval(&view).map_err(|e| e.to_string())?;
    worth(&to_json(&value)?)
}

/// Reads a judge's answer as a score: a number, `true` or `false`, a text that is a number or begins with one, or an object with the
/// field `score`.
///
/// # Errors
/// The answer is none of these, or not finite.
pub fn worth(value: &Json) -> Result<f64, String> {
    let number = match value {
        Json::Bool(yes) => Some(f64::from(u8::from(*yes))),
        Json::Number(number) => number.as_f64(),
        Json::String(text) => {
            let text = text.trim();
            if let Ok(read @ (Json::Object(_) | Json::Number(_) | Json::Bool(_))) =
                crate::values::json::read(text)
            {
                return worth(&read);
            }
            let word = text.split_whitespace().next().unwrap_or_default();
            word.trim_end_matches([',', '.', ';', ':']).parse().ok()
        }
        Json::Object(map) if map.contains_key("score") => return worth(&map["score"]),
        Json::Object(_) | Json::Array(_) | Json::Null => None,
    };
    let number = number.filter(|n: &f64| n.is_finite());
    number.ok_or_else(|| {
        let whole = value.to_string();
        let shown: String = whole.chars().take(80).collect();
        let cut = if shown.len() < whole.len() { "..." } else { "" };
        format!("{shown}{cut} is no number")
    })
}

/// Returns the arguments for the judge of a branch, by the names of its parameters: `answer`, `state`, and names of state entries
/// that are set. Any other required text parameter gets the answer and the state as one text.
pub fn judged(network: &Network, by: &Scorer, answer: Option<&str>, state: &Json) -> Json {
    use crate::values::types::{Parameters, TypeKind};
    let Some(parameters) = parameters(network, by) else {
        return Json::Null;
    };
    let words = || {
        let answer = answer.unwrap_or("(none yet)");
        format!("Judge this by one number.\nAnswer: {answer}\nState: {state}")
    };
    let Parameters::Fields(fields) = parameters else {
        return json!({ "answer": answer, "state": state });
    };
    let mut args = serde_json::Map::new();
    for (name, ty) in fields {
        let text = matches!(ty.kind, TypeKind::String { .. });
        let value = match &**name {
            "answer" => Some(json!(answer.unwrap_or_default())),
            "state" if text => Some(Json::from(state.to_string())),
            "state" => Some(state.clone()),
            name if state.get(name).is_some() => Some(state[name].clone()),
            _ if text && !ty.optional => Some(Json::from(words())),
            _ => None,
        };
        if let Some(value) = value {
            args.insert(name.to_string(), value);
        }
    }
    Json::Object(args)
}

/// Returns the values of the state entries that are set and that the top agent of a branch sees. Secrets are left out.
pub fn state(snapshot: &Snapshot) -> Json {
    let mut found = serde_json::Map::new();
    let mut at = snapshot.top();
    while let Some(id) = at {
        for ((scope, name), cell) in &snapshot.state {
            if *scope == id && !cell.value.is_sealed() && !found.contains_key(&**name) {
                found.insert(name.to_string(), (*cell.value.0).clone());
            }
        }
        at = snapshot.agents.get(&id).and_then(|a| a.family.parent);
    }
    Json::Object(found)
}

/// Draws a number for one model call. It depends only on seed, agent, branch and position.
pub fn draw(seed: u64, agent: &str, branch: &str, position: u32) -> u64 {
    let digest = Digest::of(format!("{seed}\n{agent}\n{branch}\n{position}").as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&digest.0[..8]);
    u64::from_le_bytes(head)
}

/// Returns the index of the weight that a drawn number picks. `None` only if there are no weights.
pub fn pick(weights: impl Iterator<Item = f64> + Clone, drawn: u64) -> Option<usize> {
    let all: f64 = weights.clone().sum();
    // An `f64` holds 53 bits.
    let mut at = (drawn >> 11) as f64 / (1_u64 << 53) as f64 * all;
    let mut last = None;
    for (k, weight) in weights.enumerate() {
        if at < weight {
            return Some(k);
        }
        (at, last) = (at - weight, Some(k));
    }
    last
}
