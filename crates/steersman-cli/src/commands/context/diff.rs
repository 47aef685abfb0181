//! `context --diff`: shows what changed since the agent's previous call, and which change ended the common prefix.

use super::why::{excerpt, part};
use super::{Call, Looked};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, cyan, dim, typed, yellow};
use crate::words::digits;
use serde_json::json;
use std::sync::Arc;
use steersman_machine::context::{RenderCache, Segment};

pub(super) async fn run(
    session: &Looked<'_>,
    calls: &[Call],
    call: &Call,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let now = session.walk().at(call.wished).clone();
    let wanted = session.purpose(&now, call.agent).await?;
    let mut walk = session.walk();
    let mut before = None;
    // Only calls of the same purpose are comparable.
    let earlier = calls
        .iter()
        .filter(|c| c.agent == call.agent && c.wished < call.wished && c.answered.is_some());
    for earlier in earlier {
        let snapshot = walk.at(earlier.wished);
        if session.purpose(snapshot, call.agent).await? == wanted {
            before = Some((earlier, snapshot.clone()));
        }
    }
    let Some((earlier, then)) = before else {
        return Err(
            CommandError::usage("this is the agent's first call of its kind").hint(format!(
                "`steersman context {}` shows what it saw",
                session.short
            )),
        );
    };
    let mut cache = RenderCache::default();
    let (old, ..) = session.sent_after(earlier, &then, &mut cache).await?;
    let snapshot = walk.at(call.wished);
    let (new, ..) = session.sent_after(call, snapshot, &mut cache).await?;
    let same = common(&old.segments, &new.segments);
    let all: u64 = new.segments.iter().map(|s| s.len).sum();
    let (gone, came) = (&old.segments[same..], &new.segments[same..]);
    if printer.is_json() {
        let rows = |segments: &[Arc<Segment>]| -> Vec<_> {
            let rows = segments.iter();
            rows.map(|s| json!({ "part": part(s), "bytes": s.len, "says": excerpt(s) }))
                .collect()
        };
        printer.json(&json!({
            "before": earlier.answered.unwrap_or(earlier.wished).0,
            "now": call.answered.unwrap_or(call.wished).0,
            "bytes": all,
            "prefix": new.prefix,
            "broke": new.broke,
            "same": same,
            "gone": rows(gone),
            "came": rows(came),
        }))?;
        return Ok(Exit::Answered);
    }
    printer.data(typed(&format!(
        "{}@{} to @{} {}",
        session.short,
        earlier.answered.unwrap_or(earlier.wished),
        call.answered.unwrap_or(call.wished),
        session.name(call, &new)
    )))?;
    for segment in &new.segments[..same] {
        printer.data(dim(&format!(
            "  = {:8} {:>9}  {}",
            part(segment),
            digits(segment.len),
            excerpt(segment)
        )))?;
    }
    let share = share(new.prefix, all);
    let broke = match &new.broke {
        Some(broke) => yellow(&format!("then {broke} changed")),
        None => "then it only grew".to_owned(),
    };
    printer.data(format!(
        "  --- {} of {} bytes as before ({share} %), {broke}",
        digits(new.prefix),
        digits(all)
    ))?;
    for (sign, segments) in [('-', gone), ('+', came)] {
        for segment in segments {
            let row = format!(
                "  {sign} {:8} {:>9}  {}",
                part(segment),
                digits(segment.len),
                excerpt(segment)
            );
            printer.data(if sign == '-' { dim(&row) } else { cyan(&row) })?;
        }
    }
    Ok(Exit::Answered)
}

/// Returns the percentage, rounded down.
pub(super) fn share(prefix: u64, all: u64) -> u64 {
    prefix.saturating_mul(100).checked_div(all).unwrap_or(0)
}

fn common(old: &[Arc<Segment>], new: &[Arc<Segment>]) -> usize {
    old.iter()
        .zip(new)
        .take_while(|(a, b)| a.digest == b.digest)
        .count()
}
