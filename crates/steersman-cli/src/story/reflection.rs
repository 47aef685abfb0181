//! Drafts and what is said of them.

use super::{Row, Story, Tone, row};
use crate::texts::Texts;
use steersman_machine::commit::LogLine;
use steersman_machine::effect::Bodies;
use steersman_machine::ids::Id;
use steersman_machine::interaction::{Call, CallResult, Target};
use steersman_machine::reflect::{ACCEPT, Judged, REVISE, ROUNDS, judged};

/// Who is asked to judge what.
pub(super) fn asks(call: &Call) -> Option<String> {
    let what = judged(call)?.words();
    Some(match call.target {
        Target::Tool(_) => format!("judges {what}"),
        _ => format!("asks {} to judge {what}", call.name),
    })
}

/// Whether the arguments of a call are judged, before it begins.
pub(super) fn of_arguments(call: &Call) -> bool {
    matches!(judged(call), Some(Judged::Args(..)))
}

/// What came of it: a reviewer's own words stand in the row before, so only what else became of it is told. Without a
/// judgement all counts as accepted but `arguments`.
pub(super) fn came(
    result: &CallResult,
    arguments: bool,
    texts: &Texts,
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

/// Why a draft stands that was to be judged or revised.
pub(super) fn stands(code: Option<&str>) -> String {
    match code {
        Some(ROUNDS) | None => "last draft: rounds used up".to_owned(),
        Some(limit) => format!("last draft: {limit} reached"),
    }
}

impl Story {
    /// A draft that there was no room to revise.
    pub(super) fn stands(&self, line: &LogLine, agent: Id, text: &str, code: Option<&str>) -> Row {
        let note = stands(code);
        row(line, self.agent(agent), text.to_owned(), note, Tone::Said)
    }
}
