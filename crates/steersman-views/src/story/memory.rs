//! Describes extractions of state, and summaries.

use super::Tone;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::interaction::{CallResult, Summary};
use steersman_machine::view::rating;
use steersman_machine::view::rating::{is_rating, told_entry};

/// Returns the name of a state entry; for a rating, the rated artifact.
fn told_of(entry: &str) -> String {
    if is_rating(entry) {
        return told_entry(entry);
    }
    entry.to_owned()
}

/// Describes the new value of an entry: `calm is true now`; for a rating `4 of 5 now: well sourced`.
pub(super) fn told_now(entry: &str, value: &str) -> String {
    let rates = is_rating(entry).then(|| serde_json::from_str(value).ok());
    let told = rates.flatten().and_then(|value| rating::told_value(&value));
    let entry = told_of(entry);
    match told.as_deref().map(|told| (told, told.split_once(": "))) {
        Some((_, Some((rating, why)))) => format!("{entry} is {rating} now: {why}"),
        Some((rating, None)) => format!("{entry} is {rating} now"),
        None => format!("{entry} is {value} now"),
    }
}

/// Describes the result or the failure of an extraction. Returns text, note and tone.
pub(super) fn extracted(result: &CallResult, texts: &dyn Bodies) -> (String, String, Tone) {
    let told = result.body.map(|body| texts.text(body).to_string());
    let told = told.unwrap_or_default();
    if !result.how.is_ok() {
        let code = result.code.as_deref().unwrap_or(Code::Failed.text());
        return (told, format!("not extracted: {code}"), Tone::Wrong);
    }
    let found = result.writes.iter().map(|write| {
        let value = write.value.map(|body| texts.text(body).to_string());
        format!("{} is {}", write.name, value.as_deref().unwrap_or("unset"))
    });
    let found: Vec<String> = found.collect();
    let left = told
        .split_once("; left out: ")
        .map(|(_, why)| format!("left out: {why}"));
    let parts: Vec<String> = found.into_iter().chain(left).collect();
    let text = if parts.is_empty() {
        told
    } else {
        parts.join("; ")
    };
    (text, "extracted".to_owned(), Tone::Engine)
}

/// Describes a summary, or the failure of one.
pub(super) fn summed(summary: &Summary, texts: &dyn Bodies) -> (String, String, Tone) {
    let text = texts.text(summary.body).to_string();
    // `view/MEMBER` is the summary for one member.
    let whose = summary.policy.split_once('/');
    let whose = whose.map_or_else(String::new, |(_, member)| format!(" for {member}"));
    if summary.covers.is_nothing() {
        return (text, format!("no summary{whose}"), Tone::Wrong);
    }
    (text, format!("summary{whose}"), Tone::Engine)
}
