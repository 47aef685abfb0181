//! Describes drafts and judgements.

use super::{Row, Story, Tone, row};
use steersman_machine::stored::codes::{ACCEPT, Code, REVISE};
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

/// Returns true if this call asks for a judgement of another call's arguments.
pub(super) fn of_arguments(call: &Call) -> bool {
    matches!(call.judged(), Some(Judged::Args(..)))
}

/// Describes a judgement that failed or cannot be used. `None` for a usable one, because its text is in the row above. Without a
/// usable judgement a draft or a result counts as accepted, and arguments are sent back.
pub(super) fn came(
    result: &CallResult,
    arguments: bool,
    texts: &dyn Bodies,
) -> Option<(String, String, Tone)> {
    let code = result.code.as_deref();
    if matches!(code, Some(ACCEPT | REVISE)) {
        return None;
    }
    let text = result.body.map(|body| texts.text(body).to_string());
    let text = text.unwrap_or_else(|| "no judgement".to_owned());
    let became = if arguments {
        "sent back"
    } else {
        "accepted as it is"
    };
    let note = format!("{became}: {}", code.unwrap_or("not judged"));
    Some((text, note, Tone::Wrong))
}

/// Returns the note of a draft that became the answer without the judgement or revision that it was due.
pub(super) fn stands(code: Option<&str>) -> String {
    match code {
        Some(limit) if limit != Code::Rounds.text() => format!("last draft: {limit} reached"),
        _ => "last draft: rounds used up".to_owned(),
    }
}

impl Story {
    /// Returns the row of a draft that became the answer because it could not be judged or revised again.
    pub(super) fn stands(&self, line: &LogLine, agent: Id, text: &str, code: Option<&str>) -> Row {
        let note = stands(code);
        row(line, self.agent(agent), text.to_owned(), note, Tone::Said)
    }
}
