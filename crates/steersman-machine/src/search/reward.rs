//! Reward of a branch for training: a value of the definition's `outcome:`, or an expression over the end of the branch.

use crate::network::Network;
use crate::search;
use crate::snapshot::Snapshot;
use crate::values::expression::ast::{Node, NodeKind};
use crate::values::expression::{Expr, Scope, from_json, to_json};
use crate::view::{Cx, View};
use minijinja::Value;
use serde_json::Value as Json;

/// Names that a reward may use in addition to those of `outcome:`.
const NAMES: &[&str] = &[
    "outcome", "answer", "state", "calls", "config", "now", "agent", "mode", "session", "branch",
];

/// An expression for the reward of a branch, checked against a network.
#[derive(Clone, Debug)]
pub struct Reward(Expr);

impl Reward {
    /// Parses a reward: the name of a value of `outcome:`, or an expression over those names, `outcome`, `answer`, `state` and
    /// `calls` (and `config`, `now`, `agent`, `mode`, `session`, `branch`).
    ///
    /// # Errors
    /// The first fault of the text. For an unknown outcome the message lists the outcomes that exist.
    pub fn read(source: &str, network: &Network) -> Result<Self, String> {
        let expr = Expr::parse(source).map_err(|e| format!("`{source}` is no expression: {e}"))?;
        let mut wrong = Vec::new();
        check(expr.node(), network, &mut wrong);
        match wrong.first() {
            None => Ok(Self(expr)),
            Some(why) => Err(why.clone()),
        }
    }

    /// Returns the reward of a branch. `outcome` holds the values of the definition's `outcome:` for the branch. True counts as 1,
    /// false as 0.
    ///
    /// # Errors
    /// The evaluation failed, or its value is not a finite number; the text is for people.
    pub fn of(&self, cx: &Cx<'_>, snapshot: &Snapshot, outcome: &Json) -> Result<f64, String> {
        let view = View::new(cx, snapshot, snapshot.top()).at(snapshot.now);
        let view = view.with("answer", search::answered(cx, snapshot));
        let named = cx.network.outcome.keys().map(|name| {
            let value = outcome.get(&**name).cloned().unwrap_or_default();
            (name.to_string(), value)
        });
        let scope = WithOutcomes {
            view: &view,
            outcome: Json::Object(named.collect()),
        };
        let value = self.0.eval(&scope).map_err(|e| e.to_string())?;
        let number = match to_json(&value)? {
            Json::Bool(holds) => Some(f64::from(u8::from(holds))),
            Json::Number(number) => number.as_f64(),
            Json::Null | Json::String(_) | Json::Array(_) | Json::Object(_) => None,
        };
        let number = number.filter(|n| n.is_finite());
        number.ok_or_else(|| {
            format!(
                "`{}` is not a number at the end of this branch",
                self.0.source.trim()
            )
        })
    }
}

/// The names of a view, with the outcomes of a branch in addition.
struct WithOutcomes<'a> {
    view: &'a View<'a>,
    outcome: Json,
}

impl Scope for WithOutcomes<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        match self.outcome.get(name) {
            Some(value) => Some(from_json(value.clone())),
            None if name == "outcome" => Some(from_json(self.outcome.clone())),
            None => self.view.root(name),
        }
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        if root == "outcome" || self.outcome.get(root).is_some() {
            return Some((self.root(root)?, 0));
        }
        self.view.path(root, steps)
    }
}

fn check(node: &Node, network: &Network, wrong: &mut Vec<String>) {
    let Some(path) = node.path() else {
        for child in node.children() {
            check(child, network, wrong);
        }
        return;
    };
    let mut steps = path.iter().map(|step| &**step);
    let (root, entry) = (steps.next().unwrap_or_default(), steps.next());
    let is_outcome = |name: &str| network.outcome.contains_key(name);
    match (root, entry) {
        (name, _) if is_outcome(name) => {}
        ("outcome", Some(name)) if !is_outcome(name) => wrong.push(missing(name, network)),
        ("state", Some(name)) => {
            let mut agents = network.agents.values();
            if !agents.any(|agent| agent.state.iter().any(|(entry, _)| **entry == *name)) {
                wrong.push(format!("`{}` has no state `{name}`", network.name));
            }
        }
        ("calls", Some(name)) => {
            if !network.tools.contains_key(name) && !network.agents.contains_key(name) {
                wrong.push(format!("`{}` has no tool or agent `{name}`", network.name));
            }
        }
        ("config", Some(name)) => {
            if !network.config.contains_key(name) {
                wrong.push(format!("`{}` has no config `{name}`", network.name));
            }
        }
        (name, _) if NAMES.contains(&name) => {}
        (name, _) => wrong.push(missing(name, network)),
    }
    // A computed key in brackets reads names of its own.
    if let NodeKind::Item { key, .. } = &node.kind {
        check(key, network, wrong);
    }
}

fn missing(name: &str, network: &Network) -> String {
    let names: Vec<String> = network.outcome.keys().map(|n| format!("`{n}`")).collect();
    let has = if names.is_empty() {
        "it has no `outcome:`".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    };
    format!(
        "`{}` has no outcome `{name}`: {has}, and an expression reads `outcome`, `answer`, `state` and `calls`",
        network.name
    )
}
