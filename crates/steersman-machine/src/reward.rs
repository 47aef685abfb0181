//! What a branch is worth to whoever trains on it: a value of the definition's `outcome:`, or an expression over what the
//! branch came to.

use crate::expression::ast::{Node, NodeKind};
use crate::expression::{Expr, Scope, from_json, to_json};
use crate::network::Network;
use crate::search;
use crate::snapshot::Snapshot;
use crate::tick::Cx;
use crate::view::View;
use minijinja::Value;
use serde_json::{Value as Json, json};

/// Names that mean something in a reward, beside those of `outcome:`.
const NAMES: &[&str] = &[
    "outcome", "answer", "state", "calls", "config", "now", "agent", "mode", "session", "branch",
];

/// An expression that says what a branch is worth, checked against a network.
#[derive(Clone, Debug)]
pub struct Reward(Expr);

impl Reward {
    /// Reads it: the name of a value of `outcome:`, or an expression over those names, `outcome`, `answer`, `state` and
    /// `calls` (and `config`, `now`, `agent`, `mode`, `session`, `branch`).
    ///
    /// # Errors
    /// What is wrong with it, with the names that there are.
    pub fn read(source: &str, network: &Network) -> Result<Self, String> {
        let expr = Expr::parse(source).map_err(|e| format!("`{source}` is no expression: {e}"))?;
        let mut wrong = Vec::new();
        check(expr.node(), network, &mut wrong);
        match wrong.first() {
            None => Ok(Self(expr)),
            Some(why) => Err(why.clone()),
        }
    }

    /// What a branch is worth; `outcome` is what it came to, as the definition names it. True is 1, false is 0.
    ///
    /// # Errors
    /// Why that is no number, in words for people.
    pub fn of(&self, cx: &Cx<'_>, snapshot: &Snapshot, outcome: &Json) -> Result<f64, String> {
        let answer = search::answer(cx, snapshot);
        let view = View::new(cx, snapshot, snapshot.top()).at(snapshot.now);
        let view = view.with("answer", json!(answer.as_deref()));
        let named = cx.network.outcome.keys().map(|name| {
            let value = outcome.get(&**name).cloned().unwrap_or_default();
            (name.to_string(), value)
        });
        let scope = Came {
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
        number.ok_or_else(|| format!("`{}` is no number there", self.0.source.trim()))
    }
}

/// The names of a view, and of what a branch came to.
struct Came<'a> {
    view: &'a View<'a>,
    outcome: Json,
}

impl Scope for Came<'_> {
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
        (name, _) if NAMES.contains(&name) => {}
        (name, _) => wrong.push(missing(name, network)),
    }
    // a key in brackets that is worked out reads names of its own
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
