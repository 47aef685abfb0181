//! Describes drafts and judgements.

use super::{Row, Story, Tone, row};
use steersman_machine::stored::codes::{ACCEPT, REVISE, ROUNDS};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::engine::Judged;
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::{Call, CallResult, Target};

/// Describes a judgement that is requested.
pub(super) fn asks(call: &Call) -> Option<String> {
    let what = call.judged()?.words();
    Some(match call.target {
        Target::Tool(_) => format!("judges {what}"),
        _ => format!("asks {} to judge {what}", call.name),
    })
}

/// Returns true if the arguments of a call are judged, before the call begins.
pub(super) fn of_arguments(call: &Call) -> bool {
    matches!(call.judged(), Some(Judged::Args(..)))
}

/// Describes the result of a judgement beyond the reviewer's text, which is in the row above. A missing judgement counts as
/// acceptance, except for arguments.
pub(super) fn came(
    result: &CallResult,
    arguments: bool,
    texts: &dyn Bodies,
) -> Option<(String, String, Tone)> {
    let code = result.code.as_deref();
    if matches!(code, Some(ACCEPT | REVISE)) {
        return None;
    }
    let told = result.body.map(|body| texts.text(body).to_string());
    let told = told.unwrap_or_else(|| "no judgement".to_owned());
    let became = if arguments {
        "sent back"
    } else {
        "accepted as it is"
    };
    let note = format!("{became}: {}", code.unwrap_or("not judged"));
    Some((told, note, Tone::Wrong))
}

/// Describes why a draft was kept that was to be judged or revised.
pub(super) fn stands(code: Option<&str>) -> String {
    match code {
        Some(ROUNDS) | None => "last draft: rounds used up".to_owned(),
        Some(limit) => format!("last draft: {limit} reached"),
    }
}

impl Story {
    /// Returns the row of a draft that could not be revised any more.
    pub(super) fn stands(&self, line: &LogLine, agent: Id, text: &str, code: Option<&str>) -> Row {
        let note = stands(code);
        row(line, self.agent(agent), text.to_owned(), note, Tone::Said)
    }
}
