//! Conditions of calls that wait for branches: all ended, any ended, a number of them ended, or an expression over them holds.

use crate::stored::interaction::Cause;
use crate::tick::effect::BranchEnd;
use crate::values::expression::ast::{Node, NodeKind};
use crate::values::expression::{Expr, Names};
use serde_json::json;
use std::fmt;
use std::str::FromStr;

/// The names that a condition may use.
pub const NAMES: [&str; 4] = ["done", "failed", "open", "answers"];

/// The condition on which a join is over. A branch counts as ended whatever its cause; an expression can count only good ends.
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

/// State of a join, given the branches that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// The condition does not hold yet. Other branches may still meet it.
    Open,
    /// Its condition holds.
    Met,
    /// All branches ended, and the condition does not hold. The text gives the reason, for the model.
    Never(String),
}

impl JoinOn {
    /// Checks that the condition can hold for this many branches.
    ///
    /// # Errors
    /// The reason why it cannot, in words for people.
    pub fn fits(&self, branches: usize) -> Result<(), String> {
        match self {
            Self::Count(n) if *n as usize > branches => Err(format!(
                "{n} branches are to end, and there {} {branches}",
                if branches == 1 { "is" } else { "are" }
            )),
            Self::All | Self::Any | Self::Count(_) | Self::Holds(_) => Ok(()),
        }
    }

    /// Returns the state of a join of this many branches, of which `ends` ended.
    pub fn stands(&self, branches: usize, ends: &[BranchEnd]) -> Stands {
        let over = ends.len();
        let need = match self {
            Self::All => branches,
            Self::Any => 1,
            Self::Count(n) => *n as usize,
            Self::Holds(expr) => return holds(expr, branches, ends),
        };
        if over >= need {
            Stands::Met
        } else if over >= branches {
            Stands::Never(format!("{need} branches were to end, and {over} did"))
        } else {
            Stands::Open
        }
    }
}

/// Evaluates an expression. An error is neither true nor false: the join stays open until all branches ended, and the error
/// is then the reason.
fn holds(expr: &Expr, branches: usize, ends: &[BranchEnd]) -> Stands {
    let held = expr.holds(&names(branches, ends));
    match held {
        Ok(true) => Stands::Met,
        Ok(false) | Err(_) if ends.len() < branches => Stands::Open,
        Ok(_) => Stands::Never(format!(
            "all branches ended, and `{}` does not hold",
            expr.source.trim()
        )),
        Err(error) => Stands::Never(format!(
            "all branches ended, and `{}` cannot be told: {}",
            expr.source.trim(),
            error.message
        )),
    }
}

fn names(branches: usize, ends: &[BranchEnd]) -> Names {
    let answers = answers(ends);
    Names::from_json(json!({
        "done": answers.len(),
        "failed": ends.len() - answers.len(),
        "open": branches.saturating_sub(ends.len()),
        "answers": answers,
    }))
}

/// Returns the texts of the branches that are done, in the order of `ends`. A branch that failed or was cancelled has none.
pub fn answers(ends: &[BranchEnd]) -> Vec<&str> {
    let done = ends.iter().filter(|end| is_done(end.cause));
    let texts = done.map(|end| end.answer.as_deref());
    texts.map(Option::unwrap_or_default).collect()
}

/// Returns true if a branch with this cause of its end counts as done.
pub fn is_done(cause: Cause) -> bool {
    match cause {
        Cause::Answer
        | Cause::Tool
        | Cause::Released
        | Cause::Routed
        | Cause::NoRule
        | Cause::Rounds => true,
        Cause::Leaf | Cause::Limit | Cause::Failed | Cause::Cancelled | Cause::Deadlock => false,
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
        // An error both before any end and after all good ends does not depend on the ends: it is an error of kinds.
        let ended = Names::from_json(json!({
            "done": 2, "failed": 0, "open": 0, "answers": ["text", "text"],
        }));
        match (expr.holds(&names(2, &[])), expr.holds(&ended)) {
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
    use crate::stored::ids::{Id, Line};
    use crate::stored::interaction::End;

    fn end(cause: Cause, answer: &str) -> BranchEnd {
        BranchEnd {
            branch: Id::new(Line(2), 1),
            label: None,
            at: Line(5),
            answer: Some(answer.into()),
            end: End::Task,
            cause,
        }
    }

    fn stands(on: &str, branches: usize, ends: &[BranchEnd]) -> Stands {
        let on: JoinOn = on.parse().unwrap();
        on.stands(branches, ends)
    }

    #[test]
    fn conditions_hold_when_they_say() {
        let one = [end(Cause::Answer, "yes")];
        let both = [end(Cause::Failed, ""), end(Cause::Answer, "yes")];
        for (on, none, first, last) in [
            ("all", Stands::Open, Stands::Open, Stands::Met),
            ("any", Stands::Open, Stands::Met, Stands::Met),
            ("2", Stands::Open, Stands::Open, Stands::Met),
            ("done >= 1", Stands::Open, Stands::Met, Stands::Met),
            ("failed == 0 and open == 0", Stands::Open, Stands::Open, {
                Stands::Never(
                    "all branches ended, and `failed == 0 and open == 0` does not hold".into(),
                )
            }),
            ("'yes' in answers", Stands::Open, Stands::Met, Stands::Met),
        ] {
            assert_eq!(stands(on, 2, &[]), none, "{on}");
            assert_eq!(stands(on, 2, &one), first, "{on}");
            assert_eq!(stands(on, 2, &both), last, "{on}");
        }
    }

    #[test]
    fn an_error_is_told_when_nothing_can_change_it() {
        let Stands::Never(why) = stands("answers[1] == 'b'", 1, &[end(Cause::Answer, "a")]) else {
            panic!("it is over");
        };
        assert!(why.contains("cannot be told"), "{why}");
    }

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
