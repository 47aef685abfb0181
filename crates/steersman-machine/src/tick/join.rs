//! Joins: whether the branches that ended meet the condition of a call that waits for them.

use crate::network::join::JoinOn;
use crate::stored::interaction::Cause;
use crate::tick::effect::BranchEnd;
use crate::values::expression::{Expr, Names};
use serde_json::json;

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

impl Stands {
    /// Returns the state of a join of this many branches, of which `ends` ended.
    pub fn of(on: &JoinOn, branches: usize, ends: &[BranchEnd]) -> Self {
        let over = ends.len();
        let need = match on {
            JoinOn::All => branches,
            JoinOn::Any => 1,
            JoinOn::Count(n) => *n as usize,
            JoinOn::Holds(expr) => return holds(expr, branches, ends),
        };
        if over >= need {
            Self::Met
        } else if over >= branches {
            Self::Never(format!("{need} branches were to end, and {over} did"))
        } else {
            Self::Open
        }
    }
}

/// Evaluates an expression. If that fails, the join stays open until all branches ended. Then the error is the reason why it is not
/// met.
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
            "all branches ended, and `{}` cannot be evaluated: {}",
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
        Stands::of(&on, branches, ends)
    }

    #[test]
    fn conditions_are_met_as_branches_end() {
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
    fn an_error_is_the_reason_once_all_branches_ended() {
        let Stands::Never(why) = stands("answers[1] == 'b'", 1, &[end(Cause::Answer, "a")]) else {
            panic!("all branches ended");
        };
        assert!(why.contains("cannot be evaluated"), "{why}");
    }
}
