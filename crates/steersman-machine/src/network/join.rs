//! Conditions of calls that wait for branches: all ended, any ended, a number of them ended, or an expression over them holds.

use crate::values::expression::ast::{Node, NodeKind};
use crate::values::expression::{Expr, Names};
use serde_json::json;
use std::fmt;
use std::str::FromStr;

/// The names that a condition may use.
pub const NAMES: [&str; 4] = ["done", "failed", "open", "answers"];

/// The condition under which a join ends. `all`, `any` and a number count every branch that ended, for whatever cause. An
/// expression can tell answers (`done`) from other ends (`failed`).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JoinOn {
    /// All branches ended.
    #[default]
    All,
    /// At least one branch ended.
    Any,
    /// At least this many branches ended.
    Count(u32),
    /// An expression holds. Its names are `done` (number of branches that ended with an answer), `failed` (number that ended
    /// otherwise), `open` (number that did not end) and `answers` (texts of the done branches, in branch order).
    Holds(Expr),
}

impl JoinOn {
    /// Checks that there are enough branches for a condition that counts them. Every other condition fits.
    ///
    /// # Errors
    /// The reason why the condition cannot be met; a text for people.
    pub fn fits(&self, branches: usize) -> Result<(), String> {
        match self {
            Self::Count(n) if *n as usize > branches => Err(format!(
                "{n} branches are to end, and there {} {branches}",
                if branches == 1 { "is" } else { "are" }
            )),
            Self::All | Self::Any | Self::Count(_) | Self::Holds(_) => Ok(()),
        }
    }
}

impl fmt::Display for JoinOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Any => f.write_str("any"),
            Self::Count(n) => write!(f, "{n}"),
            Self::Holds(expr) => f.write_str(expr.source.trim()),
        }
    }
}

impl FromStr for JoinOn {
    type Err = String;

    /// Parses `all`, `any`, a number of branches, or an expression.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "all" => return Ok(Self::All),
            "any" => return Ok(Self::Any),
            _ => {}
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return match text.parse() {
                Ok(n @ 1..) => Ok(Self::Count(n)),
                Ok(0) | Err(_) => Err(format!("`{text}` is no number of branches")),
            };
        }
        let expr = Expr::parse(text).map_err(|e| e.message)?;
        if let Some(name) = unknown(expr.node()) {
            let known = NAMES.map(|name| format!("`{name}`")).join(", ");
            return Err(format!(
                "`{name}` is nothing here: `all`, `any`, a number, or an expression over {known}"
            ));
        }
        // Evaluate the expression before any branch ended, and after all ended with an answer. If both fail, the cause is not
        // the values but their types.
        let all_open =
            Names::from_json(json!({ "done": 0, "failed": 0, "open": 2, "answers": [] }));
        let all_done = Names::from_json(json!({
            "done": 2, "failed": 0, "open": 0, "answers": ["text", "text"],
        }));
        match (expr.holds(&all_open), expr.holds(&all_done)) {
            (Err(_), Err(error)) => Err(error.message),
            _ => Ok(Self::Holds(expr)),
        }
    }
}

/// Returns the first name in an expression that is not one of [`NAMES`].
fn unknown(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Var(name) => (!NAMES.contains(&&**name)).then_some(&**name),
        _ => node.children().into_iter().find_map(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_condition_is_refused() {
        for (text, why) in [
            ("0", "`0` is no number of branches"),
            ("ok >= 2", "`ok` is nothing here"),
            ("done >=", "unexpected end of input"),
            ("done >= 'two'", "unlike kinds are not compared"),
            ("", "unexpected end of input"),
        ] {
            let error = text.parse::<JoinOn>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!("3".parse::<JoinOn>().unwrap().fits(2).is_err());
    }

    #[test]
    fn a_condition_is_written_as_it_is_read() {
        for text in ["all", "any", "7", "done >= 2 or failed > 1"] {
            assert_eq!(text.parse::<JoinOn>().unwrap().to_string(), text);
        }
    }
}
