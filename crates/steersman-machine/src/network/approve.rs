//! Approvals: the people who decide, in their order.

use crate::stored::ids::Name;
use crate::values::expression::{Expr, Template};

/// An approval that a call needs before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Approve {
    /// The approval is needed if this expression holds.
    pub when: Expr,
    /// The person who decides: `user` or a person of the network.
    pub by: Name,
    /// The question. `None` means a question with tool and arguments.
    pub ask: Option<Template>,
    /// Parameters that are artifacts; they are shown with the question.
    pub show: Vec<Name>,
    /// Arguments that the person may change.
    pub edit: Vec<Name>,
    /// Time to decide, in milliseconds. `None` means no limit.
    pub timeout: Option<u64>,
    /// Consequence of a time-out.
    pub on_timeout: OnTimeout<Approve>,
}

impl Approve {
    /// Iterates over this approval and those that follow it after time-outs, in order.
    pub fn line(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |approve| approve.on_timeout.next())
    }
}

/// Consequence of a time-out of an approval.
#[derive(Clone, Debug, PartialEq)]
pub enum OnTimeout<T> {
    /// The call is rejected.
    Reject,
    /// The call is approved.
    Approve,
    /// The next person is asked.
    Next(Box<T>),
}

impl<T> OnTimeout<T> {
    /// Returns the approval that follows after the time-out, if one does.
    pub fn next(&self) -> Option<&T> {
        match self {
            Self::Next(next) => Some(next),
            Self::Reject | Self::Approve => None,
        }
    }
}
