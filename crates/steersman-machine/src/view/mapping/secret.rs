//! Secret parts of a raw result: the parts from which `set` fills a state entry of type `secret`.

use super::WHOLE;
use crate::stored::ids::Name;
use crate::values::expression::ast::{self, Node, NodeKind, Stmt};
use crate::values::expression::{Data, Template};
use crate::values::types::Type;
use crate::view::is_secret;
use serde_json::Value as Json;

/// Text in place of a secret.
const SEALED: &str = "(sealed)";
/// Minimum length of a secret that is also searched for in the rest of the result. Shorter ones would match by chance.
const SEARCHED: usize = 6;

enum Step {
    Field(String),
    Index(i64),
}

/// Paths that templates read of `result`.
struct Reads {
    /// The paths, each as its steps.
    paths: Vec<Vec<Step>>,
    /// True if reads with the filter `default`, and those under the test `defined`, are collected, too.
    optional: bool,
}

/// Returns the fields of `result` that these templates read without a default, as dotted paths. [`WHOLE`] means the whole result.
pub(super) fn needed<'t>(templates: impl Iterator<Item = &'t Template>) -> Vec<String> {
    let mut reads = Reads {
        paths: Vec::new(),
        optional: false,
    };
    for template in templates {
        statements(template.body(), &mut reads);
    }
    let mut names: Vec<String> = Vec::new();
    for path in &reads.paths {
        let fields = path.iter().map_while(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Index(_) => None,
        });
        let fields: Vec<&str> = fields.collect();
        let name = if fields.is_empty() {
            WHOLE.to_owned()
        } else {
            fields.join(".")
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the result with each part masked that `set` writes to a secret. The same texts are masked in all other parts of the
/// result, too.
pub(super) fn masked<'t>(
    result: &Json,
    set: &[(Name, Data)],
    declared: impl Fn(&str) -> Option<&'t Type>,
) -> Json {
    let mut reads = Reads {
        paths: Vec::new(),
        optional: true,
    };
    for (name, data) in set {
        if declared(name).is_some_and(is_secret) {
            for template in data.templates() {
                statements(template.body(), &mut reads);
            }
        }
    }
    let paths = reads.paths;
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

fn statements(body: &[Stmt], reads: &mut Reads) {
    ast::expressions(body, &mut |node| expressions(node, reads));
}

/// Collects the paths that an expression reads of `result`. A path ends at its first computed step; all values below count as
/// read.
fn expressions(node: &Node, reads: &mut Reads) {
    if let Some((steps, root)) = path_of(node)
        && root == "result"
    {
        reads.paths.push(steps);
        // Computed keys may read the result, too.
        for child in node.children() {
            keys(child, reads);
        }
        return;
    }
    match &node.kind {
        NodeKind::Filter { name, args, .. }
            if !reads.optional && matches!(&**name, "default" | "d") =>
        {
            for arg in &args.positional {
                expressions(arg, reads);
            }
        }
        NodeKind::Test { name, .. } if !reads.optional && &**name == "defined" => {}
        _ => {
            for child in node.children() {
                expressions(child, reads);
            }
        }
    }
}

/// Collects the reads of computed keys inside a path.
fn keys(node: &Node, reads: &mut Reads) {
    match &node.kind {
        NodeKind::Attr { of, .. } => keys(of, reads),
        NodeKind::Item { of, key } => {
            keys(of, reads);
            expressions(key, reads);
        }
        NodeKind::Var(_) => {}
        _ => expressions(node, reads),
    }
}

fn path_of(node: &Node) -> Option<(Vec<Step>, &str)> {
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
                    // A computed step ends the path, so drop the steps after it.
                    _ => steps.clear(),
                }
                at = of;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_with_a_default_is_not_needed() {
        let needs = |source: &str| {
            let template = Template::parse(source).expect("a template");
            needed(std::iter::once(&template))
        };
        assert_eq!(needs("{{ result.x }}"), ["x"]);
        for filled in ["default", "d"] {
            let source = format!("{{{{ result.x | {filled}(result.y) }}}}");
            assert_eq!(needs(&source), ["y"], "{source}");
        }
    }
}
