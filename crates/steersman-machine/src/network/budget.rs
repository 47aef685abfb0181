//! Budgets that several sessions share.

use super::schedule::Times;
use crate::stored::ids::Name;
use crate::values::price::{digits, money};

/// A budget that several sessions share: what their model calls may use in one period, all together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetDef {
    /// The calls that are counted.
    pub of: BudgetOf,
    /// Maximum cost, in millionths of the currency. `None` means no limit.
    pub cost: Option<u64>,
    /// Maximum number of tokens, in and out. `None` means no limit.
    pub tokens: Option<u64>,
    /// Maximum number of calls. `None` means no limit.
    pub calls: Option<u64>,
    /// The period.
    pub per: Per,
    /// IANA time zone in which periods begin.
    pub timezone: String,
    /// The reaction of a call that does not fit.
    pub then: OnSpent,
}

/// The calls that a budget counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetOf {
    /// The calls of all sessions of the network.
    Network,
    /// The calls under one API key of a provider. Each key has the budget by itself. It is shared by all networks of a store that
    /// declare a budget of this name.
    Key,
    /// The calls of the sessions with one value of this label. Each value has the budget by itself. It is shared by all networks of
    /// a store that declare a budget of this name. Sessions without the label are not counted.
    Label(Name),
}

/// The period of a budget. Periods begin with the calendar: at a full hour, at midnight, on Monday, on the first of the month.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// One hour.
    Hour,
    /// One day.
    Day,
    /// One week, from Monday on.
    Week,
    /// One month.
    Month,
}

/// The reaction of a model call that does not fit into what is left of a budget.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnSpent {
    /// It waits until the period is over, or until a person lets it through.
    Wait,
    /// It fails with the code `limit`.
    Fail,
}

impl BudgetDef {
    /// Returns the amounts in words: `20.00, 40 calls`.
    pub fn most(&self) -> String {
        let parts = [
            self.cost.map(money),
            self.tokens.map(|n| counted(n, "token")),
            self.calls.map(|n| counted(n, "call")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Returns a number with its noun: `1 call`, `9,000 tokens`.
pub fn counted(n: u64, thing: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", digits(n))
}

impl Per {
    /// Returns the times at which periods begin, in a zone.
    pub fn begins(self, timezone: &str) -> Times {
        let cron = match self {
            Self::Hour => "0 * * * *",
            Self::Day => "0 0 * * *",
            Self::Week => "0 0 * * 1",
            Self::Month => "0 0 1 * *",
        };
        Times {
            rule: super::schedule::Rule::Cron(cron.to_owned()),
            timezone: timezone.to_owned(),
        }
    }

    /// Returns the word for the period.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}
