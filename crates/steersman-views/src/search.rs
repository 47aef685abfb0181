//! Searches over branches: the tree of a search, with values and answers.

use crate::shown;
use serde::Serialize;
use serde_json::Value as Json;
use steersman_machine::search::{Node, Score, seen};
use steersman_machine::stored::ids::{Id, Line};
use steersman_runtime::engine::Inspection;
use steersman_runtime::ledger::{Search, Stood};

/// A search, as far as it is on disk.
#[derive(Clone, Debug, Serialize)]
pub struct SearchTree {
    /// The session.
    pub session: String,
    /// Id of the search.
    #[serde(serialize_with = "shown::text")]
    pub search: Id,
    /// The agent that answers with its result; `None` if a person started it.
    #[serde(serialize_with = "shown::optional_id")]
    pub agent: Option<Id>,
    /// The place where it began.
    pub root: Spot,
    /// Its plan.
    pub plan: Json,
    /// The reason for its end; `open` while it runs.
    pub status: String,
    /// The winning branch, and its last line that counts.
    pub winner: Option<Spot>,
    /// True if the session continues with the winner.
    pub adopted: bool,
    /// Number of branches that were tried.
    pub branches: usize,
    /// Number of branches that came to an end.
    pub explored: usize,
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Money, in millionths of the currency.
    pub micros: u64,
    /// The states of branches at the ends of blocks, in the order in which they were reached.
    pub nodes: Vec<SearchNode>,
}

/// A branch and a line of it.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Spot {
    /// The branch.
    #[serde(serialize_with = "shown::text")]
    pub branch: Id,
    /// The line.
    #[serde(serialize_with = "shown::line")]
    pub line: Line,
}

/// The state of a branch at the end of a block.
#[derive(Clone, Debug, Serialize)]
pub struct SearchNode {
    /// The branch.
    #[serde(serialize_with = "shown::text")]
    pub branch: Id,
    /// Number of the branch in the search, from 1.
    pub number: u32,
    /// The line at the end of the block.
    #[serde(serialize_with = "shown::line")]
    pub line: Line,
    /// The line of the node before it; `None` behind the root.
    pub parent: Option<u64>,
    /// Number of blocks from the root.
    pub depth: u32,
    /// True if the branch ended there.
    pub over: bool,
    /// Number of branches that went through it.
    pub visits: u32,
    /// Mean of the values behind it.
    pub mean: Option<f64>,
    /// Its own value.
    pub value: Option<f64>,
    /// The reason why a judgement could not be used.
    pub unusable: Option<String>,
    /// Number of model calls of the block.
    pub model_calls: u64,
    /// Number of tokens of the block.
    pub tokens: u64,
    /// Money of the block, in millionths of the currency.
    pub micros: u64,
    /// The answer of a branch that ended there.
    pub answer: Option<String>,
}

impl SearchTree {
    /// Returns a search of a session, if it has one with this id.
    pub fn of(inspection: &Inspection, id: Id) -> Option<Self> {
        let known = inspection.ledger.search(id)?;
        let tree = inspection.ledger.tree(known);
        let seen = seen(&tree);
        let nodes = tree.nodes.iter().zip(&seen).enumerate().skip(1);
        let nodes = nodes.map(|(i, (node, seen))| SearchNode {
            branch: node.branch,
            number: node.number,
            line: node.at,
            parent: node.parent.filter(|p| *p > 0).map(|p| tree.nodes[p].at.0),
            depth: node.depth,
            over: node.over,
            visits: seen.visits,
            mean: seen.mean,
            value: value(node),
            unusable: unusable(inspection, &known.stood[i - 1]),
            model_calls: node.cost.calls,
            tokens: node.cost.tokens,
            micros: node.cost.micros,
            answer: if node.over {
                answer(inspection, node.branch)
            } else {
                None
            },
        });
        let cost = tree.cost();
        let (winner, why) = known.over.clone().unzip();
        let spot = |(branch, line)| Spot { branch, line };
        Some(Self {
            session: inspection.info.id.to_string(),
            search: id,
            agent: known.agent,
            root: spot((known.branch, known.at)),
            plan: plan(inspection, known),
            status: why.as_deref().unwrap_or("open").to_owned(),
            winner: winner.flatten().map(spot),
            adopted: is_adopted(inspection, id),
            branches: known.tried.len(),
            explored: tree.explored(),
            model_calls: cost.calls,
            tokens: cost.tokens,
            micros: cost.micros,
            nodes: nodes.collect(),
        })
    }
}

/// Returns the plan of a search.
pub fn plan(inspection: &Inspection, known: &Search) -> Json {
    let text = inspection.history.text(known.plan);
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the answer of the agent at the top of a branch, if it has one.
pub fn answer(inspection: &Inspection, branch: Id) -> Option<String> {
    let view = inspection.branches.iter().find(|b| b.id == branch)?;
    let top = view.snapshot.agents.get(&view.snapshot.top()?)?;
    Some(inspection.history.text(top.turn.answer?).to_string())
}

/// Returns true if the session continues with the winner of a search.
pub fn is_adopted(inspection: &Inspection, id: Id) -> bool {
    let winner = inspection
        .ledger
        .search(id)
        .and_then(|known| known.over.as_ref()?.0);
    let branch = winner.and_then(|(branch, _)| inspection.ledger.branch(branch));
    branch.is_some_and(|branch| branch.adopted.is_some())
}

/// Returns the reason why a judgement could not be used.
pub fn unusable(inspection: &Inspection, stood: &Stood) -> Option<String> {
    match &stood.score {
        Some(Err(Some(why))) => Some(inspection.history.text(*why).to_string()),
        _ => None,
    }
}

/// Returns the value of a node, if it was judged.
pub fn value(node: &Node) -> Option<f64> {
    match node.score {
        Score::Value(value) => Some(value),
        Score::None | Score::Unusable => None,
    }
}
