//! Which parts of a raw result are secret: those from which `set` fills a state entry of type `secret`.

use crate::expression::Data;
use crate::expression::ast::{Node, NodeKind, Stmt, StmtKind};
use crate::ids::Name;
use crate::network::Type;
use crate::view::is_secret;
use serde_json::Value as Json;

/// What stands in the place of a secret.
const SEALED: &str = "(sealed)";
/// A shorter text than this is masked where it was read, but not searched for elsewhere: it would hit by chance.
const SEARCHED: usize = 6;

enum Step {
    Field(String),
    Index(i64),
}

/// The result with every part masked that is written to a secret, wherever the same text appears in it.
pub(super) fn masked<'t>(
    result: &Json,
    set: &[(Name, Data)],
    declared: impl Fn(&str) -> Option<&'t Type>,
) -> Json {
    let mut paths = Vec::new();
    for (name, data) in set {
        if declared(name).is_some_and(is_secret) {
            for template in data.templates() {
                statements(template.body(), &mut paths);
            }
        }
    }
    if paths.is_empty() {
        return result.clone();
    }
    let mut out = result.clone();
    let mut texts = Vec::new();
    for path in &paths {
        mask(&mut out, path, &mut texts);
    }
    texts.retain(|t| t.len() >= SEARCHED);
    scrub(&mut out, &texts);
    out
}

fn mask(json: &mut Json, path: &[Step], texts: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        collect(json, texts);
        *json = SEALED.into();
        return;
    };
    let below = match step {
        Step::Field(name) => json.get_mut(name.as_str()),
        Step::Index(n) => match json.as_array_mut() {
            Some(list) => {
                let at = usize::try_from(*n)
                    .ok()
                    .or_else(|| list.len().checked_sub(n.unsigned_abs() as usize));
                at.and_then(|at| list.get_mut(at))
            }
            None => None,
        },
    };
    if let Some(below) = below {
        mask(below, rest, texts);
    }
}

fn collect(json: &Json, texts: &mut Vec<String>) {
    match json {
        Json::String(text) => texts.push(text.clone()),
        Json::Array(list) => list.iter().for_each(|j| collect(j, texts)),
        Json::Object(fields) => fields.values().for_each(|j| collect(j, texts)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn scrub(json: &mut Json, texts: &[String]) {
    match json {
        Json::String(text) => {
            for secret in texts {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), SEALED);
                }
            }
        }
        Json::Array(list) => list.iter_mut().for_each(|j| scrub(j, texts)),
        Json::Object(fields) => fields.values_mut().for_each(|j| scrub(j, texts)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn statements(body: &[Stmt], paths: &mut Vec<Vec<Step>>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Text(_) | StmtKind::Break | StmtKind::Continue => {}
            StmtKind::Emit(node) => expressions(node, paths),
            StmtKind::For {
                over,
                filter,
                body,
                otherwise,
                ..
            } => {
                expressions(over, paths);
                if let Some(filter) = filter {
                    expressions(filter, paths);
                }
                statements(body, paths);
                statements(otherwise, paths);
            }
            StmtKind::If {
                test,
                then,
                otherwise,
            } => {
                expressions(test, paths);
                statements(then, paths);
                statements(otherwise, paths);
            }
            StmtKind::With { bind, body } => {
                for (_, node) in bind {
                    expressions(node, paths);
                }
                statements(body, paths);
            }
            StmtKind::Set { value, .. } => expressions(value, paths),
            StmtKind::SetBlock { filter, body, .. } => {
                if let Some(filter) = filter {
                    expressions(filter, paths);
                }
                statements(body, paths);
            }
            StmtKind::FilterBlock { filter, body } => {
                expressions(filter, paths);
                statements(body, paths);
            }
        }
    }
}

/// The longest paths through `result` of constant steps; where a step is worked out, all below it counts.
fn expressions(node: &Node, paths: &mut Vec<Vec<Step>>) {
    if let Some((steps, root)) = chain(node)
        && root == "result"
    {
        paths.push(steps);
        // Worked out steps may read the result too.
        for child in node.children() {
            keys(child, paths);
        }
        return;
    }
    for child in node.children() {
        expressions(child, paths);
    }
}

/// Expressions inside the brackets of a chain.
fn keys(node: &Node, paths: &mut Vec<Vec<Step>>) {
    match &node.kind {
        NodeKind::Attr { of, .. } => keys(of, paths),
        NodeKind::Item { of, key } => {
            keys(of, paths);
            expressions(key, paths);
        }
        NodeKind::Var(_) => {}
        _ => expressions(node, paths),
    }
}

fn chain(node: &Node) -> Option<(Vec<Step>, &str)> {
    let mut steps = Vec::new();
    let mut at = node;
    loop {
        match &at.kind {
            NodeKind::Var(name) => {
                steps.reverse();
                return Some((steps, name));
            }
            NodeKind::Attr { of, name } => {
                steps.push(Step::Field(name.to_string()));
                at = of;
            }
            NodeKind::Item { of, key } => {
                match &key.kind {
                    NodeKind::Const(key) if key.as_str().is_some() => {
                        steps.push(Step::Field(key.as_str().unwrap_or("").to_owned()));
                    }
                    NodeKind::Const(key) if key.is_integer() => {
                        steps.push(Step::Index(i64::try_from(key.clone()).ok()?));
                    }
                    // Whatever stands behind a step that is worked out lies below it.
                    _ => steps.clear(),
                }
                at = of;
            }
            _ => return None,
        }
    }
}
