//! The times of a schedule.
//!
//! A fixed time that a zone skips in spring comes right after the gap; one that a zone repeats in autumn comes once, the first time.
//! An expression with `*` or a step in its minute or hour follows the clock on the wall: it skips the gap, and comes in both
//! passes of the hour that is repeated.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use steersman_machine::network::schedule::{Rule, Times};
use steersman_machine::stored::ids::Time;

/// Shortest span of a rule `every`, in milliseconds.
pub(crate) const LEAST: u64 = 1_000;

/// Maximum number of times that [`between`] counts.
pub const COUNTED: u64 = 100_000;

/// The fields of an expression, in order, each with a value that it can have.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of the month", "1-31"),
    ("month", "1-12"),
    ("day of the week", "0-7"),
];

/// Returns the first time after a moment. `None` if none comes.
pub fn next(times: &Times, after: Time) -> Option<Time> {
    match &times.rule {
        Rule::Every(millis) => {
            let millis = i64::try_from(*millis).ok().filter(|millis| *millis > 0)?;
            let begun = after.0.div_euclid(millis).checked_add(1)?;
            begun.checked_mul(millis).map(Time)
        }
        Rule::Cron(expression) => {
            let (cron, at) = (parse(expression).ok()?, zoned(after, &times.timezone)?);
            let found = cron.find_next_occurrence(&at, false).ok()?;
            Some(Time(found.timestamp().as_millisecond()))
        }
        Rule::At(time) => single(time, &times.timezone).filter(|time| *time > after),
    }
}

/// Returns the last time that is not after a moment. `None` if there was none.
pub fn last(times: &Times, by: Time) -> Option<Time> {
    match &times.rule {
        Rule::Every(millis) => {
            let millis = i64::try_from(*millis).ok().filter(|millis| *millis > 0)?;
            Some(Time(by.0.div_euclid(millis) * millis))
        }
        Rule::Cron(expression) => {
            let (cron, at) = (parse(expression).ok()?, zoned(by, &times.timezone)?);
            let found = cron.find_previous_occurrence(&at, true).ok()?;
            Some(Time(found.timestamp().as_millisecond()))
        }
        Rule::At(time) => single(time, &times.timezone).filter(|time| *time <= by),
    }
}

/// Returns the number of times from one moment on, and before another one; at most [`COUNTED`].
pub fn between(times: &Times, from: Time, to: Time) -> u64 {
    if let Rule::Every(millis) = times.rule {
        let span = u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0);
        return span.div_ceil(millis.max(1)).min(COUNTED);
    }
    let mut at = Time(from.0.saturating_sub(1));
    for count in 0..COUNTED {
        match next(times, at) {
            Some(found) if found < to => at = found,
            _ => return count,
        }
    }
    COUNTED
}

/// Checks a cron expression. The error says what was wanted.
pub(crate) fn check(expression: &str) -> Result<(), String> {
    let wanted = "a cron expression (minute, hour, day of the month, month, day of the week: `30 6 * * 1-5`)";
    let Ok(cron) = parse(expression) else {
        let fields: Vec<&str> = expression.split_whitespace().collect();
        if fields.len() != FIELDS.len() {
            let many = if fields.len() == 1 { "" } else { "s" };
            return Err(format!("{wanted}: it has {} field{many}", fields.len()));
        }
        let alone = |k: usize, field: &str| {
            let mut all = ["*"; FIELDS.len()];
            all[k] = field;
            parse(&all.join(" ")).is_err()
        };
        let wrong = fields
            .iter()
            .enumerate()
            .find(|(k, field)| alone(*k, field));
        return Err(match wrong {
            Some((k, field)) => {
                let (name, values) = FIELDS[k];
                format!("{wanted}: `{field}` is no {name} ({values})")
            }
            None => wanted.to_owned(),
        });
    };
    let from = zoned(Time(0), "UTC").ok_or_else(|| wanted.to_owned())?;
    match cron.find_next_occurrence(&from, false) {
        Ok(_) => Ok(()),
        Err(_) => Err("a time that ever comes".to_owned()),
    }
}

fn parse(expression: &str) -> Result<Cron, croner::errors::CronError> {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser.parse(expression)
}

/// Returns a single time on the clock of a zone. A time that the zone skips comes right after the gap, and one that it repeats is
/// the first.
pub(crate) fn single(time: &str, zone: &str) -> Option<Time> {
    let time: DateTime = time.parse().ok()?;
    let at = time.to_zoned(TimeZone::get(zone).ok()?).ok()?;
    Some(Time(at.timestamp().as_millisecond()))
}

fn zoned(at: Time, zone: &str) -> Option<Zoned> {
    let at = Timestamp::from_millisecond(at.0).ok()?;
    Some(at.to_zoned(TimeZone::get(zone).ok()?))
}
