//! Search over branches: what is tried next is a pure function of the plan and of the tree so far.
//!
//! A node of the tree is a commit at the end of a block: an agent owes its next model call, or the branch came to its end.
//! The driver opens branches at nodes, lets each go on for one block, writes down where they stand and what they are worth,
//! and asks [`next`] again. Nothing else decides, so whoever reads the log plans the same: a search goes on after a crash as
//! if nothing had happened, and the same seed makes the same tree.

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

/// How branches are tried.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Independent branches, each to its end.
    #[default]
    BestOf,
    /// Level by level; of each level the best are gone on with.
    Beam,
    /// Some first blocks, each tried to the end more than once.
    Rollouts,
    /// Monte Carlo tree search: each branch begins where it promises most, by what came of those before.
    Mcts,
}

impl Method {
    /// As people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::BestOf => "best_of",
            Self::Beam => "beam",
            Self::Rollouts => "rollouts",
            Self::Mcts => "mcts",
        }
    }

    /// The method of a word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::BestOf, Self::Beam, Self::Rollouts, Self::Mcts]
            .into_iter()
            .find(|method| method.word() == word)
    }
}

/// Who says what a branch is worth.
#[derive(Clone, Debug, PartialEq)]
pub enum Scorer {
    /// An expression over `answer`, `state`, `calls`.
    Expr(Expr),
    /// A tool that only looks and answers a number.
    Tool(Name),
    /// An agent that answers a number, on a branch of its own.
    Agent(Name),
}

/// What a search is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// Branches in all; of `beam` those of a level.
    pub n: u32,
    /// Of `beam`: how many of a level are gone on with. Of `rollouts`: how many first blocks. Of `mcts`: how often it
    /// branches at one node.
    pub width: u32,
    /// Blocks of a branch at most; there it is judged as it stands.
    pub depth: u32,
    /// Who judges; none: every branch that comes to an answer is worth 1.
    pub score: Option<Scorer>,
    /// A branch that is worth as much ends the search.
    pub enough: Option<f64>,
    /// Model calls at most, those of agents below included.
    pub calls: Option<u64>,
    /// Tokens at most.
    pub tokens: Option<u64>,
    /// Money at most, in millionths of the currency.
    pub micros: Option<u64>,
    /// What sampling begins from; none: the session's.
    pub seed: Option<u64>,
    /// Effects that touch the world run on the branches, too.
    pub live: bool,
}

/// Blocks of a branch, if nothing else is said.
pub const DEPTH: u32 = 32;
/// Branches, if nothing else is said.
pub const BRANCHES: u32 = 4;

impl Plan {
    /// The plan of a method with its usual numbers.
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

    /// The width that a method has where none is given: of `beam` half of a level, else three.
    pub fn usual_width(method: Method, n: u32) -> u32 {
        match method {
            Method::Beam => n.div_ceil(2),
            Method::BestOf | Method::Rollouts | Method::Mcts => 3.min(n),
        }
    }

    /// As the log keeps it.
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

    /// From the log, or as a person wants it; what is absent is as usual.
    ///
    /// # Errors
    /// What does not fit, in words for people.
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
    /// From what a person or a program typed, checked to the last name before anything is spent: amounts, who judges, and
    /// the types of what the expression reads.
    ///
    /// # Errors
    /// What does not fit, in words for people.
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

/// Whether a tool runs somewhere and answers something of its own.
pub fn answers(tool: &ToolDef) -> bool {
    matches!(
        tool.source,
        Source::Http(_) | Source::Command { .. } | Source::Native { .. } | Source::Mcp { .. }
    )
}

/// A parameter of who judges that must have a value and gets none.
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

/// Who a name says that judges.
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

/// The search by which an agent answers, where it owes the first model call of an answer.
pub fn policy<'n>(cx: &Cx<'n>, snapshot: &Snapshot, agent: Id) -> Option<&'n Plan> {
    let agent = snapshot.agents.get(&agent)?;
    let Does::Model(model) = &cx.network.agents.get(&agent.def)?.does else {
        return None;
    };
    let first = agent.counters.model_calls == 0 && agent.phase == Phase::Thinking;
    model.search.as_deref().filter(|_| first)
}

/// Whether a model call of this agent begins a block: it is the top of the branch's scope, or stands below it under routed
/// agents only. What an agent with a model started is inside the blocks of that.
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

/// What an agent and all that it started spent on the path of a branch. Of one place to be compared with another the agent
/// must be the same: the root of a tree lies on a branch of a wider scope than those that begin there.
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

/// What the agents of a branch spent between a place on its path and where it stands.
pub fn spent_since(snapshot: &Snapshot, before: &Snapshot) -> Cost {
    let top = snapshot.top();
    spent(snapshot, top).less(spent(before, top))
}

/// The answer that a branch came to, as far as it did: of its top agent, else of whoever has the floor below it.
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

/// What a branch is worth by an expression over `answer`, `state` and `calls` of its top agent. True is 1, false is 0.
///
/// # Errors
/// Why that is no number, in words for people.
pub fn score(cx: &Cx<'_>, snapshot: &Snapshot, now: Time, expr: &Expr) -> Result<f64, String> {
    let answer = answer(cx, snapshot);
    let view = View::new(cx, snapshot, snapshot.top()).at(now);
    let view = view.with("answer", json!(answer.as_deref()));
    let value = expr.eval(&view).map_err(|e| e.to_string())?;
    worth(&to_json(&value)?)
}

/// A number that somebody answered, as what a branch is worth: a number, a truth value, a text that is one or begins with
/// one, or an object with the field `score`.
///
/// # Errors
/// Why it is none.
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

/// Arguments for who judges a branch, by the names of its parameters: `answer`, `state` and `branch`; any other text gets
/// all of it in words.
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

/// State entries that the top agent of a branch sees, those that are set and are no secrets, with their values.
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

/// A number that is drawn for one model call: the same for the same seed, branch and place, whatever happened between.
pub fn draw(seed: u64, agent: &str, branch: &str, position: u32) -> u64 {
    let digest = Digest::of(format!("{seed}\n{agent}\n{branch}\n{position}").as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&digest.0[..8]);
    u64::from_le_bytes(head)
}

/// The place of one of several weights that a number draws; none only where there are none.
pub fn pick(weights: impl Iterator<Item = f64> + Clone, drawn: u64) -> Option<usize> {
    let all: f64 = weights.clone().sum();
    // 53 bits are as many as a number has.
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
