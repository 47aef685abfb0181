//! Search over branches. The next step is a pure function of the plan and of the tree so far.
//!
//! A node of the tree is a commit at the end of a block: an agent owes its next model call, or the branch came to its end.
//! The driver opens branches at nodes, lets each run for one block, records the reached commits and their scores, and calls
//! [`next`] again. Nothing else decides. So every reader of the log makes the same plan: after a crash a search continues
//! unchanged, and the same seed gives the same tree.

mod tree;

pub use tree::{Cost, MOST, Next, Node, Run, Score, Seen, Stop, Tree, Why, best, cut, next, seen};

use crate::commit::Kind;
use crate::expression::{Expr, to_json};
use crate::ids::{Digest, Id, Name, Time};
use crate::network::{Does, Network, Source, ToolDef};
use crate::snapshot::{Phase, Snapshot};
use crate::tick::{Cx, floor};
use crate::view::View;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Method of a search.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Independent branches, each run to its end.
    #[default]
    BestOf,
    /// Level by level; only the best branches of each level are continued.
    Beam,
    /// Some first blocks, each of them run to the end more than once.
    Rollouts,
    /// Monte Carlo tree search: each branch begins at the most promising node, judged by the earlier branches.
    Mcts,
}

impl Method {
    /// Returns the word that people write for the method.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BestOf => "best_of",
            Self::Beam => "beam",
            Self::Rollouts => "rollouts",
            Self::Mcts => "mcts",
        }
    }

    /// Returns the method for a word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::BestOf, Self::Beam, Self::Rollouts, Self::Mcts]
            .into_iter()
            .find(|method| method.word() == word)
    }
}

/// Judge of the branches.
#[derive(Clone, Debug, PartialEq)]
pub enum Scorer {
    /// An expression over `answer`, `state` and `calls`.
    Expr(Expr),
    /// A tool of class `pure` or `read` that returns a number.
    Tool(Name),
    /// An agent that answers with a number, on a branch of its own.
    Agent(Name),
}

/// Plan of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Method of the search.
    pub method: Method,
    /// Number of all branches; for `beam` the number per level.
    pub n: u32,
    /// For `beam`: number of branches of a level that are continued. For `rollouts`: number of first blocks. For `mcts`: the most
    /// branches at one node.
    pub width: u32,
    /// The most blocks of a branch. A branch that reaches them is judged as it is.
    pub depth: u32,
    /// Judge of the branches. `None` means that every branch with an answer is worth 1.
    pub score: Option<Scorer>,
    /// Score that ends the search as soon as a branch reaches it.
    pub enough: Option<f64>,
    /// The most model calls, those of agents below included.
    pub calls: Option<u64>,
    /// The most tokens.
    pub tokens: Option<u64>,
    /// The most money, in millionths of the currency.
    pub micros: Option<u64>,
    /// Seed of the sampling. `None` means the session's seed.
    pub seed: Option<u64>,
    /// True if effects that touch the world run on the branches, too.
    pub live: bool,
}

/// Default number of blocks of a branch.
pub const DEPTH: u32 = 32;
/// Default number of branches.
pub const BRANCHES: u32 = 4;

impl Plan {
    /// Returns the plan of a method with default values.
    pub fn of(method: Method, n: u32) -> Self {
        Self {
            method,
            n,
            width: Self::usual_width(method, n),
            depth: DEPTH,
            score: None,
            enough: None,
            calls: None,
            tokens: None,
            micros: None,
            seed: None,
            live: false,
        }
    }

    /// Returns the default width of a method: half of a level for `beam`, at most three for the others.
    pub fn usual_width(method: Method, n: u32) -> u32 {
        match method {
            Method::Beam => n.div_ceil(2),
            Method::BestOf | Method::Rollouts | Method::Mcts => 3.min(n),
        }
    }

    /// Returns the plan as JSON for the log.
    pub fn to_json(&self) -> Json {
        let (score, by) = match &self.score {
            None => (None, None),
            Some(Scorer::Expr(expr)) => (Some(expr.source.to_string()), None),
            Some(Scorer::Tool(name) | Scorer::Agent(name)) => (None, Some(name.to_string())),
        };
        json!({
            "method": self.method.word(),
            "n": self.n,
            "width": self.width,
            "depth": self.depth,
            "score": score,
            "by": by,
            "enough": self.enough,
            "calls": self.calls,
            "tokens": self.tokens,
            "micros": self.micros,
            "seed": self.seed,
            "effects": if self.live { "live" } else { "dry" },
        })
    }

    /// Reads a plan from the log or from a person's request. Absent values get their defaults.
    ///
    /// # Errors
    /// The first value that does not fit, in words for people.
    pub fn read(json: &Json, network: &Network) -> Result<Self, String> {
        let whole = |key: &str| json[key].as_u64();
        let few = |key: &str, usual: u32, most: u32| match &json[key] {
            Json::Null => Ok(usual),
            value => match value.as_u64().map(u32::try_from) {
                Some(Ok(n @ 1..)) if n <= most => Ok(n),
                _ => Err(format!(
                    "`{key}` is {value}: a number from 1 to {most} is wanted"
                )),
            },
        };
        let method = match &json["method"] {
            Json::Null => Method::default(),
            word => word.as_str().and_then(Method::of).ok_or_else(|| {
                format!("there is no method {word}: best_of, beam, rollouts and mcts are")
            })?,
        };
        let n = few("n", BRANCHES, MOST)?;
        let score = match (json["score"].as_str(), json["by"].as_str()) {
            (Some(_), Some(_)) => {
                return Err("`score` and `by` exclude each other: one of them judges".to_owned());
            }
            (Some(source), None) => {
                let expr = Expr::parse(source);
                Some(Scorer::Expr(
                    expr.map_err(|e| format!("`score`: {}", e.message))?,
                ))
            }
            (None, Some(name)) => Some(scorer(name, network)?),
            (None, None) => None,
        };
        Ok(Self {
            method,
            n,
            width: few("width", Self::usual_width(method, n), MOST)?,
            depth: few("depth", DEPTH, MOST)?,
            score,
            enough: json["enough"].as_f64(),
            calls: whole("calls"),
            tokens: whole("tokens"),
            micros: whole("micros"),
            seed: whole("seed"),
            live: json["effects"].as_str() == Some("live"),
        })
    }
}

impl Plan {
    /// Reads a plan that a person or a program wrote, and checks amounts and the judge before anything is spent. The expression of
    /// its score is checked where definitions are compiled (`steersman_definition::search_plan`).
    ///
    /// # Errors
    /// The first value that does not fit, in words for people.
    pub fn checked(json: &Json, network: &Network) -> Result<Self, String> {
        for (key, value) in json.as_object().into_iter().flatten() {
            let fits = match (&**key, value) {
                (_, Json::Null) | ("method" | "n" | "width" | "depth", _) => true,
                ("score" | "by", value) => value.is_string(),
                ("enough", value) => value.as_f64().is_some_and(f64::is_finite),
                ("calls" | "tokens" | "micros", value) => value.as_u64().is_some_and(|n| n > 0),
                ("seed", value) => value.is_u64(),
                ("effects", value) => matches!(value.as_str(), Some("dry" | "live")),
                _ => return Err(format!("a search has no `{key}`")),
            };
            if !fits {
                let wanted = match &**key {
                    "score" | "by" => "a text",
                    "enough" => "a number",
                    "effects" => "`dry` or `live`",
                    "seed" => "a whole number from 0",
                    _ => "a whole number from 1",
                };
                return Err(format!("`{key}` is {value}: {wanted} is wanted"));
            }
        }
        let plan = Self::read(json, network)?;
        match &plan.score {
            Some(by @ (Scorer::Tool(name) | Scorer::Agent(name))) => {
                if let Some(missing) = not_given(network, by) {
                    return Err(format!(
                        "`{name}` cannot judge: nothing is given for its parameter `{missing}`; `answer`, `state`, entries of \
                         the state by their names, and texts are"
                    ));
                }
            }
            Some(Scorer::Expr(_)) | None => {}
        }
        Ok(plan)
    }
}

/// Returns true if a tool runs outside of the engine and gives a result of its own.
pub fn answers(tool: &ToolDef) -> bool {
    matches!(
        tool.source,
        Source::Http(_) | Source::Command { .. } | Source::Native { .. } | Source::Mcp { .. }
    )
}

/// Returns a required parameter of the judge for which the search has no value.
fn not_given<'n>(network: &'n Network, by: &Scorer) -> Option<&'n Name> {
    use crate::network::{Parameters, TypeKind};
    let Parameters::Fields(fields) = parameters(network, by)? else {
        return None;
    };
    let entry = |name: &str| {
        let mut entries = network.agents.values().flat_map(|agent| &agent.state);
        entries.any(|(entry, _)| **entry == *name)
    };
    let missing = fields.iter().find(|(name, ty)| {
        let text = matches!(ty.kind, TypeKind::String { .. });
        let given = text || matches!(&**name, "answer" | "state") || entry(name);
        !given && !ty.optional && ty.default.is_none()
    });
    missing.map(|(name, _)| name)
}

fn parameters<'n>(network: &'n Network, by: &Scorer) -> Option<&'n crate::network::Parameters> {
    match by {
        Scorer::Expr(_) => None,
        Scorer::Tool(name) => Some(&network.tool(name).parameters),
        Scorer::Agent(name) => Some(&network.agent(name).parameters),
    }
}

/// Returns the judge of this name, or the reason why it cannot judge.
fn scorer(name: &str, network: &Network) -> Result<Scorer, String> {
    if let Some(tool) = network.tools.get(name) {
        if !tool.effect.is_free() {
            return Err(format!(
                "`{name}` cannot judge: it is {:?}, and who judges only looks",
                tool.effect
            ));
        }
        if !answers(tool) {
            return Err(format!(
                "`{name}` cannot judge: it gives no answer of its own"
            ));
        }
        return Ok(Scorer::Tool(tool.name.clone()));
    }
    match network.agents.get(name) {
        Some(agent) if matches!(agent.does, Does::Model(_)) => {
            Ok(Scorer::Agent(agent.name.clone()))
        }
        Some(_) => Err(format!("`{name}` cannot judge: it has no model of its own")),
        None => Err(format!("there is no tool or agent `{name}`")),
    }
}

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
        let parent = snapshot.agents.get(&id).and_then(|a| a.parent);
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
    let body = resting.find_map(|agent| agent.answer)?;
    Some(cx.bodies.text(body))
}

/// Returns the score of a branch by an expression over `answer`, `state` and `calls` of its top agent. True is 1, false is 0.
///
/// # Errors
/// The reason why the result is no number, in words for people.
pub fn score(cx: &Cx<'_>, snapshot: &Snapshot, now: Time, expr: &Expr) -> Result<f64, String> {
    let answer = answer(cx, snapshot);
    let view = View::new(cx, snapshot, snapshot.top()).at(now);
    let view = view.with("answer", json!(answer.as_deref()));
    let value = expr.eval(&view).map_err(|e| e.to_string())?;
    worth(&to_json(&value)?)
}

/// Reads a judge's answer as a score: a number, a truth value, a text that is a number or begins with one, or an object with the
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
                crate::json::read(text)
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

/// Returns the arguments for the judge of a branch, by the names of its parameters: `answer`, `state`, and set state entries. Any
/// other required text gets answer and state in words.
pub fn judged(network: &Network, by: &Scorer, answer: Option<&str>, state: &Json) -> Json {
    use crate::network::{Parameters, TypeKind};
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

/// Returns the set state entries that the top agent of a branch sees, with their values. Secrets are left out.
pub fn state(snapshot: &Snapshot) -> Json {
    let mut found = serde_json::Map::new();
    let mut at = snapshot.top();
    while let Some(id) = at {
        for ((scope, name), cell) in &snapshot.state {
            if *scope == id && !cell.value.is_sealed() && !found.contains_key(&**name) {
                found.insert(name.to_string(), (*cell.value.0).clone());
            }
        }
        at = snapshot.agents.get(&id).and_then(|a| a.parent);
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
