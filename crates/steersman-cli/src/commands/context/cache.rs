//! `context --cache`: shows how much of each request is equal to the previous one.

use super::diff::share;
use super::{Call, Looked};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim, yellow};
use crate::words::digits;
use serde_json::json;
use std::collections::BTreeMap;
use steersman_machine::context::RenderCache;
use steersman_machine::questions::Purpose;
use steersman_machine::stored::ids::{Id, Line};

pub(super) async fn run(
    session: &Looked<'_>,
    calls: &[Call],
    until: Option<Line>,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut caches: BTreeMap<Id, RenderCache> = BTreeMap::new();
    let (mut rows, mut sums) = (Vec::new(), (0, 0, 0, 0));
    if !printer.is_json() {
        printer.data(bold(&format!(
            "{:>6}  {:16}  {:>10}  {:>10}  {:>4}  {:>9}  {:>9}  {}",
            "line", "agent", "bytes", "as before", "%", "tokens", "cached", "broken by"
        )))?;
    }
    // A new branch wishes open calls again, so only calls with an answer are counted.
    let calls = calls
        .iter()
        .filter(|c| c.answered.is_some() && until.is_none_or(|line| c.wished <= line));
    let mut walk = session.walk();
    for call in calls {
        let cache = caches.entry(call.agent).or_default();
        let snapshot = walk.at(call.wished);
        let (request, ..) = session.sent_after(call, snapshot, cache).await?;
        let bytes: u64 = request.segments.iter().map(|s| s.len).sum();
        // A call with another purpose shares no prefix with the agent's own calls.
        let own = matches!(request.purpose, Purpose::Answer | Purpose::Decision);
        let prefix = if own { request.prefix } else { 0 };
        let broke = request.broke.as_deref().filter(|_| own);
        let at = call.answered.unwrap_or(call.wished);
        let name = session.name(call, &request);
        let (input, cached) = call.usage.as_ref().map_or((0, 0), |u| (u.input, u.cached));
        sums = (
            sums.0 + bytes,
            sums.1 + prefix,
            sums.2 + input,
            sums.3 + cached,
        );
        if printer.is_json() {
            rows.push(json!({
                "line": at.0, "agent": name, "bytes": bytes, "prefix": prefix,
                "input": input, "cached": cached, "broke": broke,
            }));
            continue;
        }
        printer.data(format!(
            "{:>6}  {name:16}  {:>10}  {:>10}  {:>4}  {:>9}  {:>9}  {}",
            format!("@{at}"),
            digits(bytes),
            digits(prefix),
            share(prefix, bytes),
            digits(input),
            digits(cached),
            broke.map_or_else(String::new, yellow)
        ))?;
    }
    let (bytes, prefix, input, cached) = sums;
    if printer.is_json() {
        printer.json(&json!({
            "calls": rows, "bytes": bytes, "prefix": prefix, "input": input, "cached": cached,
        }))?;
        return Ok(Exit::Answered);
    }
    printer.data(dim(&format!(
        "{:>6}  {:16}  {:>10}  {:>10}  {:>4}  {:>9}  {:>9}",
        "",
        "all",
        digits(bytes),
        digits(prefix),
        share(prefix, bytes),
        digits(input),
        digits(cached)
    )))?;
    Ok(Exit::Answered)
}
