//! Approvals: who decides, and who after them.

use crate::expression::{Expr, Template};
use crate::ids::Name;

/// An approval.
#[derive(Clone, Debug, PartialEq)]
pub struct Approve {
    /// Whether it is wanted.
    pub when: Expr,
    /// `user` or a person.
    pub by: Name,
    /// The question; none: tool and arguments.
    pub ask: Option<Template>,
    /// Parameters that are artifacts, shown with it.
    pub show: Vec<Name>,
    /// Arguments that may be changed.
    pub edit: Vec<Name>,
    /// In milliseconds.
    pub timeout: Option<u64>,
    /// What happens when nobody decides in time.
    pub on_timeout: OnTimeout<Approve>,
}

impl Approve {
    /// All who may come to decide, in their line.
    pub fn line(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |approve| approve.on_timeout.next())
    }
}

/// What happens to an approval when its time is over.
#[derive(Clone, Debug, PartialEq)]
pub enum OnTimeout<T> {
    /// It is rejected.
    Reject,
    /// It is approved.
    Approve,
    /// The next in line is asked.
    Next(Box<T>),
}

impl<T> OnTimeout<T> {
    /// The next in line.
    pub fn next(&self) -> Option<&T> {
        match self {
            Self::Next(next) => Some(next),
            Self::Reject | Self::Approve => None,
        }
    }
}
