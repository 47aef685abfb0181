//! Schedules: times at which sessions begin.

use super::StartDef;
use std::fmt;

/// Times at which sessions of a network begin.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleDef {
    /// The times.
    pub times: Times,
    /// The sessions that begin. Templates and arguments see `schedule`.
    pub start: StartDef,
}

/// Times of a schedule. They follow from the definition alone, so that all processes over a store agree on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The rule.
    pub rule: Rule,
    /// IANA time zone in which a cron expression or a single time is read, and the time of an occurrence is told.
    pub timezone: String,
}

/// Rule of the times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The multiples of a span, in milliseconds since the beginning of 1970 UTC.
    Every(u64),
    /// A cron expression of five fields.
    Cron(String),
    /// A single time on the clock of the zone: `2026-12-24 18:00`.
    At(String),
}

/// The rule as definitions write it: `30 6 * * *`, `every 1h`, `at 2026-12-24 18:00`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(millis) => write!(f, "every {}", span(*millis)),
            Self::Cron(expression) => write!(f, "{expression}"),
            Self::At(time) => write!(f, "at {time}"),
        }
    }
}

/// Returns a span as definitions write it, in its largest unit: `90m`.
fn span(millis: u64) -> String {
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    let fits = units.iter().find(|(unit, _)| millis.is_multiple_of(*unit));
    match fits {
        Some((unit, word)) => format!("{}{word}", millis / unit),
        None => format!("{millis}ms"),
    }
}
