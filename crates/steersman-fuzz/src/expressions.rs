//! Expressions and templates. For any text:
//!
//! * parsing and evaluation end without a panic, within the bounds of time and output;
//! * places in trees and errors are within the text;
//! * an evaluation gives the same result each time, and a template that is not one single expression has its rendered text as
//!   its value.

use crate::{Target, seeds};
use serde_json::{Value as Json, json};
use std::ops::Range;
use std::sync::LazyLock;
use steersman_machine::values::expression::ast::Node;
use steersman_machine::values::expression::{Expr, Names, OUTPUT, Template, to_json};

pub(crate) const TARGET: Target = Target {
    name: "expressions",
    check,
    seeds,
    words: &[
        "{{ ",
        " }}",
        "{% if ",
        "{% elif ",
        "{% else %}",
        "{% endif %}",
        "{% for x in ",
        "{% endfor %}",
        "{% set x = ",
        "%}",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        ".",
        ", ",
        " is ",
        " not ",
        " and ",
        " or ",
        " in ",
        " if ",
        " else ",
        "none",
        "range(",
        "state.",
        "args",
        "loop.index",
        "| length",
        "| join(',')",
        "| sort",
        "| map(attribute='a')",
        "| round(",
        "| tojson",
        "| default(",
        "~",
        "**",
        "//",
        "%",
        "==",
        "<",
        "'",
        "\"",
        "é",
        "1e308",
        "9223372036854775807",
        "raw",
        "{#",
        "#}",
        "-%}",
        "{%- ",
        "[::-1]",
        "{% include 'steersman/task' %}",
        "[::0]",
        "[-9]",
        "is odd",
        "is divisibleby(0)",
        "state.token",
        "| round(400)",
        "| batch(2)",
        "| slice(0)",
        "| cents",
        "| int",
        "| float",
        "| abs",
        "| attr('x')",
        "| first",
        "| items",
        "| dictsort",
        "| groupby('a')",
        "| map('upper')",
        "| replace('', 'xx')",
        "| split('')",
        "| title",
        "| indent(-1)",
        "| close(1)",
    ],
    mutations: 12_000,
};

/// Returns the texts in the braces of definitions, and the values of keys that are expressions.
fn seeds() -> Vec<Vec<u8>> {
    let mut files = seeds::files("crates/steersman-definition/tests/definitions", "yaml");
    files.extend(seeds::files("examples", "yaml"));
    let mut all = Vec::new();
    for file in &files {
        let text = String::from_utf8_lossy(file);
        for line in text.lines() {
            if let Some(at) = line.find("{{").or_else(|| line.find("{%")) {
                all.push(line.as_bytes()[at..].to_vec());
            }
            for key in ["requires: ", "when: ", "if: ", "score: ", "that: "] {
                if let Some((_, expr)) = line.split_once(key) {
                    let expr = expr.split(" #").next().unwrap_or(expr);
                    all.push(expr.trim().trim_matches('"').as_bytes().to_vec());
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

static SCOPE: LazyLock<Names> = LazyLock::new(|| {
    Names::from_json(json!({
        "state": { "balance": 50_000, "mood": "calm", "sum": 1.5, "ready": false, "token": { "$sealed": "x" }, "unset": null,
                   "list": [3, 1, 2], "rows": [{ "a": 1, "b": "x" }, { "a": null, "b": "ü" }], "big": u64::MAX },
        "args": { "cents": 900, "to": "anna", "deep": { "er": [[]] } },
        "config": { "limit": "1000" },
        "result": { "ok": true, "text": "Some text,\nand more.\n".repeat(20) },
        "numbers": (0..300).collect::<Vec<_>>(),
    }))
});

fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let scope = &*SCOPE;
    match Expr::parse(&text) {
        Ok(expr) => {
            spans(expr.node(), &text);
            let (one, two) = (expr.eval(scope), expr.eval(scope));
            assert_eq!(one.as_ref().err(), two.as_ref().err(), "twice the same");
            match &one {
                Ok(value) => {
                    let json = to_json(value);
                    assert_eq!(json, to_json(&two.expect("the same")), "twice the same");
                    bounded(json.as_ref().ok());
                }
                Err(error) => within(&error.range, &error.source),
            }
            if let Err(error) = expr.eval_lenient(scope) {
                within(&error.range, &error.source);
            }
            let _ = expr.holds(scope);
        }
        Err(error) => within(&error.range, &text),
    }
    match Template::parse(&text) {
        Ok(template) => {
            let rendered = template.render(scope);
            assert_eq!(rendered, template.render(scope), "twice the same");
            match &rendered {
                Ok(text) => assert!(
                    text.len() <= OUTPUT.max(data.len() * 3),
                    "{} bytes",
                    text.len()
                ),
                Err(error) => within(&error.range, &error.source),
            }
            let value = template.value(scope);
            bounded(value.as_ref().ok());
            if template.single().is_none() {
                assert_eq!(value, rendered.map(Json::String));
            }
            let _ = template.render_url(scope);
            let _ = template.gap(scope);
        }
        Err(error) => within(&error.range, &text),
    }
}

fn within(range: &Range<usize>, text: &str) {
    assert!(
        text.get(range.clone()).is_some(),
        "{range:?} is not in {text:?}"
    );
}

fn spans(node: &Node, text: &str) {
    within(&node.span.range(), text);
    for child in node.children() {
        spans(child, text);
    }
}

/// Checks the size of a value. JSON writes a character as at most six.
fn bounded(json: Option<&Json>) {
    let len = json.map_or(0, |json| json.to_string().len());
    assert!(len <= 6 * OUTPUT, "{len} bytes");
}
