//! Grades of a definition as data: what is measured in a session, and how much of it a session met.

use crate::expect::{Subject, with_view};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Expr;
use steersman_machine::values::types::equal;

/// The beginning of the keys under which a script has the answers of judges: `judge#polite` for the grade `polite`.
pub const JUDGE: &str = "judge#";

/// The grade that every test has: its own expectations hold.
pub const EXPECT: &str = "expect";

/// One grade.
#[derive(Clone, Debug, PartialEq)]
pub struct Grade {
    /// The thing that it measures.
    pub measure: Measure,
    /// The cases that it measures; `None` means all. A case is a test by its name, or a recorded session by the beginning of its id.
    pub cases: Option<Vec<String>>,
    /// The grade as it is written. Two measurements are comparable only if it is the same in both.
    pub written: Json,
}

/// The ways in which a grade measures.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// An expression holds.
    That(Expr),
    /// An expression has the expected value.
    Value {
        /// The expression.
        value: Expr,
        /// The value that it has to have.
        expected: Expected,
    },
    /// A judge finds that a rubric is met.
    Rubric {
        /// The rubric.
        rubric: String,
        /// The judge.
        judge: Judge,
    },
}

/// The values that a grade expects.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The same in every case.
    Same(Json),
    /// By case.
    Cases(BTreeMap<String, Json>),
}

/// The judge of a rubric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judge {
    /// An agent of the definition, whose answer has a field `pass`.
    Agent(Name),
    /// A model of the definition, which is told what a judge does.
    Model(Name),
}

/// A thing that is measured.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Case<'a> {
    /// A test, by its name.
    Test(&'a str),
    /// A recorded session, by its whole id.
    Session(&'a str),
}

/// Fewest characters by which a grade may name a session: as many as lists of sessions show.
const SHORT: usize = 6;

impl Case<'_> {
    /// Returns true if a grade names this case by `key`.
    fn is(&self, key: &str) -> bool {
        match self {
            Self::Test(name) => *name == key,
            Self::Session(id) => key.len() >= SHORT && id.starts_with(key),
        }
    }
}

impl Grade {
    /// Returns true if this case is measured.
    pub fn is_of(&self, case: Case<'_>) -> bool {
        let cases = self.cases.as_ref();
        cases.is_none_or(|cases| cases.iter().any(|key| case.is(key)))
            && match &self.measure {
                Measure::Value { expected, .. } => expected.of(case).is_some(),
                Measure::That(_) | Measure::Rubric { .. } => true,
            }
    }

    /// Returns the agent that judges, if one does.
    pub fn agent(&self) -> Option<Name> {
        match &self.measure {
            Measure::Rubric {
                judge: Judge::Agent(agent),
                ..
            } => Some(agent.clone()),
            _ => None,
        }
    }

    /// Measures a session by the grade. `None` means that a judge has to decide. The error says why a session did not pass; the
    /// outer one says why the grade could not be measured.
    ///
    /// # Errors
    /// The expression cannot be evaluated over this session.
    pub fn measured(
        &self,
        subject: &dyn Subject,
        case: Case<'_>,
    ) -> Result<Option<Result<(), String>>, String> {
        match &self.measure {
            Measure::That(that) => crate::expect::that(subject, that).map(Some),
            Measure::Value { value, expected } => {
                let Some(expected) = expected.of(case) else {
                    return Ok(Some(Ok(())));
                };
                let found = with_view(subject, |view| {
                    let found = value.eval_lenient(view).map_err(|e| e.to_string())?;
                    serde_json::to_value(&found).map_err(|e| e.to_string())
                });
                let found = found
                    .and_then(|found| found)
                    .map_err(|e| format!("value {}: {e}", value.source))?;
                Ok(Some(if equal(&found, expected) {
                    Ok(())
                } else {
                    Err(format!("{} is {found}, expected {expected}", value.source))
                }))
            }
            Measure::Rubric { .. } => Ok(None),
        }
    }
}

impl Expected {
    /// Returns what is expected in a case.
    fn of(&self, case: Case<'_>) -> Option<&Json> {
        match self {
            Self::Same(value) => Some(value),
            Self::Cases(values) => {
                let mut fit = values.iter().filter(|(key, _)| case.is(key));
                fit.next().map(|(_, value)| value)
            }
        }
    }
}
