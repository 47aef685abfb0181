//! Plans of searches over branches: method, number of branches, judge and bounds.

use super::{Does, Network, Source, ToolDef};
use crate::stored::ids::Name;
use crate::values::expression::Expr;
use serde_json::{Value as Json, json};

/// Method of a search.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Independent branches, each run to its end.
    #[default]
    BestOf,
    /// Level by level; only the best branches of each level are continued.
    Beam,
    /// A few first blocks. Each is continued to the end by several branches.
    Rollouts,
    /// Monte Carlo tree search: each branch begins at the most promising node, judged by the earlier branches.
    Mcts,
}

impl Method {
    /// Returns the name of the method in definitions and commands.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BestOf => "best_of",
            Self::Beam => "beam",
            Self::Rollouts => "rollouts",
            Self::Mcts => "mcts",
        }
    }

    /// Returns the method of this name.
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
    /// For `beam`: number of branches of a level that are continued. For `rollouts`: number of first blocks. For `mcts`:
    /// maximum number of branches at one node.
    pub width: u32,
    /// Maximum number of blocks of a branch. A branch that reaches it is judged as it is.
    pub depth: u32,
    /// Judge of the branches. `None` means that every branch with an answer scores 1.
    pub score: Option<Scorer>,
    /// Score that ends the search as soon as a branch reaches it.
    pub enough: Option<f64>,
    /// Maximum number of model calls, including those of agents below.
    pub calls: Option<u64>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
    /// Maximum cost, in millionths of the currency.
    pub micros: Option<u64>,
    /// Seed of the sampling. `None` means the session's seed.
    pub seed: Option<u64>,
    /// True if effects of all classes run on the branches. False for dry branches, which simulate all but `pure` and `read`
    /// effects.
    pub live: bool,
}

/// Default maximum number of blocks of a branch.
pub const DEPTH: u32 = 32;

/// Default number of branches.
pub const BRANCHES: u32 = 4;

/// Maximum number of branches of one search.
pub const MOST: u32 = 1000;

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
        let count = |key: &str, default: u32, most: u32| match &json[key] {
            Json::Null => Ok(default),
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
                format!(
                    "there is no method {word}: the methods are best_of, beam, rollouts and mcts"
                )
            })?,
        };
        let n = count("n", BRANCHES, MOST)?;
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
            width: count("width", Self::usual_width(method, n), MOST)?,
            depth: count("depth", DEPTH, MOST)?,
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
    /// Reads a plan that a person or a program wrote, and checks amounts and the judge before the search spends anything. The
    /// expression in `score` is checked where definitions are compiled (`steersman_definition::search_plan`).
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
                        "`{name}` cannot judge: the search has no value for its parameter `{missing}`; a parameter must be \
                         `answer`, `state`, the name of a state entry, a text, or optional"
                    ));
                }
            }
            Some(Scorer::Expr(_)) | None => {}
        }
        Ok(plan)
    }
}

/// Returns true if a tool runs outside the engine, so that its result is new information.
pub fn answers(tool: &ToolDef) -> bool {
    matches!(
        tool.source,
        Source::Http(_) | Source::Command { .. } | Source::Native { .. } | Source::Mcp { .. }
    )
}

/// Returns a required parameter of the judge for which the search has no value.
fn not_given<'n>(network: &'n Network, by: &Scorer) -> Option<&'n Name> {
    use crate::values::types::{Parameters, TypeKind};
    let Parameters::Fields(fields) = parameters(network, by)? else {
        return None;
    };
    let entry = |name: &str| {
        let mut entries = network.agents.values().flat_map(|agent| &agent.state);
        entries.any(|(entry, _)| **entry == *name)
    };
    let missing = fields.iter().find(|(name, ty)| {
        let is_text = matches!(ty.kind, TypeKind::String { .. });
        let given = is_text || matches!(&**name, "answer" | "state") || entry(name);
        !given && !ty.optional && ty.default.is_none()
    });
    missing.map(|(name, _)| name)
}

pub(crate) fn parameters<'n>(
    network: &'n Network,
    by: &Scorer,
) -> Option<&'n crate::values::types::Parameters> {
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
                "`{name}` cannot judge: its class is {:?}, and a judge must be `pure` or `read`",
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
