//! The forms of ids, lines and times in JSON: ids as people type them, lines as numbers, times in RFC 3339.

use serde::Serializer;
use std::fmt::Display;
use steersman_machine::stored::ids::{Id, Line, Time};
use steersman_runtime::pending::PendingKind;

/// Returns a time in RFC 3339. `None` means that the calendar has no such time.
pub(crate) fn rfc3339(at: Time) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(at.to_string())
}

#[expect(clippy::ref_option, reason = "serde wants a reference")]
pub(crate) fn optional_time<S: Serializer>(at: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    match at.and_then(rfc3339) {
        Some(at) => to.serialize_str(&at),
        None => to.serialize_none(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(crate) fn time<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
    optional_time(&Some(*at), to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(crate) fn line<S: Serializer>(line: &Line, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(line.0)
}

#[expect(clippy::ref_option, reason = "serde wants a reference")]
pub(crate) fn maybe_line<S: Serializer>(line: &Option<Line>, to: S) -> Result<S::Ok, S::Error> {
    match line {
        Some(line) => to.serialize_u64(line.0),
        None => to.serialize_none(),
    }
}

pub(crate) fn lines<S: Serializer>(lines: &[Line], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(lines.iter().map(|line| line.0))
}

pub(crate) fn two_lines<S: Serializer>(lines: &(Line, Line), to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq([lines.0.0, lines.1.0])
}

/// Serializes a value as the text that people type.
pub(crate) fn text<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Serializes a line, and no line as 0. ([`maybe_line`] gives `null`.)
#[expect(clippy::ref_option, reason = "serde wants a reference")]
pub(crate) fn optional_line<S: Serializer>(line: &Option<Line>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(line.map_or(0, |line| line.0))
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde wants a reference"
)]
pub(crate) fn optional_id<S: Serializer>(id: &Option<Id>, to: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(crate) fn kind<S: Serializer>(kind: &PendingKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.word())
}

/// Reads these forms again.
pub(crate) mod read {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer};
    use std::str::FromStr;
    use steersman_machine::stored::ids::{Id, Line, Time};

    fn parsed<T: FromStr, E: serde::de::Error>(text: &str) -> Result<T, E> {
        text.parse()
            .map_err(|_| E::custom(format!("`{text}` has another form")))
    }

    pub(crate) fn optional_time<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Time>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let at = text.map(|text| text.parse::<jiff::Timestamp>());
        let at = at.transpose().map_err(D::Error::custom)?;
        Ok(at.map(|at| Time(at.as_millisecond())))
    }

    /// Reads a time. One that no calendar has is written as none.
    pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        Ok(optional_time(from)?.unwrap_or(Time(i64::MAX)))
    }

    pub(crate) fn line<'de, D: Deserializer<'de>>(from: D) -> Result<Line, D::Error> {
        u64::deserialize(from).map(Line)
    }

    pub(crate) fn maybe_line<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Line>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Line))
    }

    pub(crate) fn lines<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Line>, D::Error> {
        let lines = Vec::<u64>::deserialize(from)?;
        Ok(lines.into_iter().map(Line).collect())
    }

    pub(crate) fn two_lines<'de, D: Deserializer<'de>>(from: D) -> Result<(Line, Line), D::Error> {
        let (first, last) = <(u64, u64)>::deserialize(from)?;
        Ok((Line(first), Line(last)))
    }

    pub(crate) fn text<'de, T: FromStr, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        parsed(&String::deserialize(from)?)
    }

    pub(crate) fn optional_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Id>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| parsed(&text)).transpose()
    }
}
