//! `context --why`: shows where each part of a request comes from, and what was left out and why.

use super::{Call, Looked, unrendered};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, cyan, dim, typed};
use crate::words::{arguments, digits};
use serde_json::{Value as Json, json};
use steersman_machine::context::{Content, Explained, Origin, Segment, explain};
use steersman_machine::view::Cx;

/// Number of characters of a segment that are shown next to its origin.
const EXCERPT: usize = 44;

pub(super) async fn run(
    session: &Looked<'_>,
    call: &Call,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (_, snapshot, network) = session.sent(call).await?;
    let cx = Cx {
        network: &network,
        bodies: &*session.inspection.history,
    };
    let explained = explain(&cx, &*session.inspection.history, &snapshot, call.agent);
    let explained = explained.map_err(|error| unrendered(&error))?;
    let name = session.name(call, &explained.request);
    if printer.is_json() {
        printer.json(&document(call, &name, &explained))?;
        return Ok(Exit::Answered);
    }
    let at = call.answered.unwrap_or(call.wished);
    printer.data(typed(&format!("{}@{at} {name}", session.short)))?;
    let rows = explained.request.segments.iter().zip(&explained.origins);
    for (segment, origin) in rows {
        let said = excerpt(segment);
        printer.data(format!(
            "{} {:>9}  {said:EXCERPT$}  {}",
            cyan(&format!("{:8}", part(segment))),
            digits(segment.len),
            dim(&from(origin))
        ))?;
    }
    if !explained.absent.is_empty() {
        printer.data(format!("\n{}", cyan("not there")))?;
    }
    for absent in &explained.absent {
        let (first, last) = absent.lines;
        printer.data(format!(
            "  {:24}  {:20}  {}",
            absent.what,
            format!("{} at {}", absent.policy, absent.mark),
            dim(&span(first.0, last.0))
        ))?;
    }
    Ok(Exit::Answered)
}

pub(super) fn part(segment: &Segment) -> String {
    format!("{:?}", segment.part).to_ascii_lowercase()
}

fn span(first: u64, last: u64) -> String {
    if first == last {
        format!("@{first}")
    } else {
        format!("@{first} to @{last}")
    }
}

/// Returns the content of a segment in one row.
pub(super) fn excerpt(segment: &Segment) -> String {
    let text = match &segment.content {
        Content::System(text) | Content::User(text) => text.clone(),
        Content::Tools(tools) => {
            let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            names.join(", ")
        }
        Content::Assistant { text, calls, .. } => {
            let calls = calls
                .iter()
                .map(|call| format!("{}({})", call.name, arguments(&call.args)));
            let parts: Vec<String> = text.iter().cloned().chain(calls).collect();
            parts.join(" ")
        }
        Content::Result { name, text, .. } => format!("= {name} {text}"),
    };
    let row: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if row.chars().count() <= EXCERPT {
        return row;
    }
    let cut: String = row.chars().take(EXCERPT - 1).collect();
    format!("{cut}…")
}

/// Describes the origin of a segment.
fn from(origin: &Origin) -> String {
    let mut parts = vec![match &origin.template {
        Some(template) => template.clone(),
        None => "engine".to_owned(),
    }];
    for read in &origin.reads {
        let row = match read.row {
            0 => String::new(),
            row => format!(" (line {row})"),
        };
        let written = read
            .written
            .map_or_else(String::new, |n| format!(", set @{n}"));
        parts.push(format!("reads {}{row}{written}", read.path));
    }
    if let Some((first, last)) = origin.lines.first().zip(origin.lines.last()) {
        parts.push(span(first.0, last.0));
    }
    if let Some((policy, mark, what)) = &origin.aged {
        parts.push(format!("{what} by {policy} at {mark}"));
    }
    parts.join(", ")
}

fn document(call: &Call, name: &str, explained: &Explained) -> Json {
    let rows = explained.request.segments.iter().zip(&explained.origins);
    json!({
        "effect": call.effect.to_string(),
        "agent": call.agent.to_string(),
        "name": name,
        "wished": call.wished.0,
        "answered": call.answered.map(|l| l.0),
        "segments": rows.map(|(segment, origin)| json!({
            "part": part(segment),
            "bytes": segment.len,
            "says": excerpt(segment),
            "template": origin.template,
            "reads": origin.reads.iter().map(|read| json!({
                "path": read.path, "line": read.row, "written": read.written.map(|n| n.0),
            })).collect::<Vec<_>>(),
            "lines": origin.lines.iter().map(|l| l.0).collect::<Vec<_>>(),
            "policy": origin.aged.as_ref().map(|(policy, mark, what)| json!({ "name": policy, "at": mark, "is": what })),
        })).collect::<Vec<_>>(),
        "absent": explained.absent.iter().map(|absent| json!({
            "what": absent.what,
            "policy": absent.policy,
            "at": absent.mark,
            "lines": [absent.lines.0.0, absent.lines.1.0],
        })).collect::<Vec<_>>(),
    })
}
