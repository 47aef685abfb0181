//! `--where`: which sessions. Terms joined by `and`, each `NAME OP VALUE`.
//!
//! Names are `status`, `network` (or `definition`), `updated`, `created`, `cost`, `tokens`, `calls`, `failed`; in `pending` also
//! `for`, `kind` and `tool`. Any other name is a label. A time is a date, or a span back from now: `-7d`.

use crate::error::CommandError;
use jiff::Timestamp;
use std::cmp::Ordering;

/// A parsed filter; all terms must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter(Vec<Term>);

#[derive(Clone, Debug, PartialEq)]
struct Term {
    name: String,
    op: Op,
    value: String,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Op {
    Is,
    IsNot,
    Less,
    LessOrIs,
    More,
    MoreOrIs,
}

const OPS: &[(&str, Op)] = &[
    ("!=", Op::IsNot),
    (">=", Op::MoreOrIs),
    ("<=", Op::LessOrIs),
    ("=", Op::Is),
    (">", Op::More),
    ("<", Op::Less),
];

/// What a name stands for in one session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    Text(String),
    Number(f64),
    /// Milliseconds since 1970.
    Time(i64),
}

impl Filter {
    /// Parses it; nothing is a filter that everything passes.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, CommandError> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        text.split(" and ")
            .map(|term| Term::parse(term.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a term is about this name.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.0.iter().any(|term| term.name == name)
    }

    /// Whether it lets this through. `field` gives the value of a name; none: the session has no such label.
    pub(crate) fn holds(
        &self,
        now: i64,
        field: impl Fn(&str) -> Option<Field>,
    ) -> Result<bool, CommandError> {
        for term in &self.0 {
            if !term.holds(now, field(&term.name))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, CommandError> {
        let bad = || {
            CommandError::usage(format!("`{text}` is no condition")).hint(
                "NAME OP VALUE, joined by `and`: --where \"status = waits and updated > -7d\"",
            )
        };
        let at = text.find(['!', '=', '<', '>']).ok_or_else(bad)?;
        let (name, rest) = text.split_at(at);
        let (sign, op) = OPS
            .iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(bad)?;
        let value = rest[sign.len()..].trim().trim_matches(['"', '\'']);
        if name.trim().is_empty() || value.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            name: name.trim().to_owned(),
            op: *op,
            value: value.to_owned(),
        })
    }

    fn holds(&self, now: i64, field: Option<Field>) -> Result<bool, CommandError> {
        let Some(field) = field else {
            return Ok(self.op == Op::IsNot);
        };
        let order = match field {
            Field::Text(text) => match self.value.strip_suffix('*') {
                Some(start) if text.starts_with(start) => Ordering::Equal,
                _ => text.as_str().cmp(&self.value),
            },
            Field::Number(number) => {
                let value: f64 = self.value.parse().map_err(|_| {
                    CommandError::usage(format!(
                        "`{}` is a number, `{}` is none",
                        self.name, self.value
                    ))
                })?;
                number.total_cmp(&value)
            }
            Field::Time(time) => time.cmp(&moment(now, &self.value)?),
        };
        Ok(match self.op {
            Op::Is => order.is_eq(),
            Op::IsNot => order.is_ne(),
            Op::Less => order.is_lt(),
            Op::LessOrIs => order.is_le(),
            Op::More => order.is_gt(),
            Op::MoreOrIs => order.is_ge(),
        })
    }
}

/// A moment in milliseconds: a date, a date and time with zone, or a span back from now (`-7d`, `-30m`).
fn moment(now: i64, text: &str) -> Result<i64, CommandError> {
    let bad = || {
        CommandError::usage(format!("`{text}` is no moment")).hint(
            "a span back from now (-7d, -4h, -30m) or a date (2026-11-21, 2026-11-21T08:00:00Z)",
        )
    };
    if let Some(span) = text.strip_prefix('-') {
        let unit = span.chars().last().ok_or_else(bad)?;
        let count: i64 = span[..span.len() - unit.len_utf8()]
            .parse()
            .map_err(|_| bad())?;
        let millis = match unit {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return Err(bad()),
        };
        return Ok(now.saturating_sub(count.saturating_mul(millis)));
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.as_millisecond());
    }
    text.parse::<jiff::civil::Date>()
        .and_then(|date| date.to_zoned(jiff::tz::TimeZone::system()))
        .map(|zoned| zoned.timestamp().as_millisecond())
        .map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Option<Field> {
        Some(match name {
            "status" => Field::Text("waits".into()),
            "vendor" => Field::Text("Acme & Sons".into()),
            "cost" => Field::Number(0.3),
            "updated" => Field::Time(1_000_000_000_000),
            _ => return None,
        })
    }

    #[test]
    fn terms_hold_or_not() {
        let now = 1_000_000_000_000 + 3_600_000;
        for (text, holds) in [
            ("status = waits", true),
            ("status != waits", false),
            ("status=waits and cost > 0.2", true),
            ("status = waits and cost > 0.4", false),
            ("vendor = Acme*", true),
            ("vendor = \"Acme & Sons\"", true),
            ("colour = red", false),
            ("colour != red", true),
            ("updated > -2h", true),
            ("updated > -30m", false),
            ("updated >= 2001-01-01", true),
        ] {
            let filter = Filter::parse(Some(text)).unwrap();
            assert_eq!(filter.holds(now, field).unwrap(), holds, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["status", "= waits", "status = ", "status ~ x"] {
            assert!(Filter::parse(Some(text)).is_err(), "{text}");
        }
        for text in [
            "cost = much",
            "updated > soon",
            "updated > -7y",
            "updated > -",
        ] {
            let filter = Filter::parse(Some(text)).unwrap();
            assert!(filter.holds(0, field).is_err(), "{text}");
        }
    }
}
