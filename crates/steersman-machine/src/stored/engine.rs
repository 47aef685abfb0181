//! Names that the engine itself writes: those of calls that it makes for itself, and policies of watermarks and summaries.

use super::ids::{Id, Name};
use super::interaction::{Call, Target};

/// Prefix of the name of the engine's question to a person where a limit says `ask`: `more/KEY/PER`, for a limit of the session
/// `more/KEY/PER/all`. Names of a definition contain no `/`.
const MORE: &str = "more/";

/// Returns true if this is the name of the engine's question for more.
pub(crate) fn is_more(name: &str) -> bool {
    name.starts_with(MORE)
}

/// Returns the name of the question for more of a limit.
pub(crate) fn more(key: &str, per: &str, all: bool) -> Name {
    let all = if all { "/all" } else { "" };
    format!("{MORE}{key}/{per}{all}").into()
}

/// Returns the key and the period of the limit that a question is about.
pub(crate) fn more_of(question: &str) -> Option<(&str, &str)> {
    let mut parts = question.strip_prefix(MORE)?.split('/');
    Some((parts.next()?, parts.next()?))
}

/// Prefix of the name under which a tool is called before a turn. Names of a definition contain no `/`.
pub(crate) const AHEAD: &str = "before/";

/// Returns true if the engine made this call before a turn.
pub(crate) fn is_ahead(call: &Call) -> bool {
    call.seen
        .as_ref()
        .is_some_and(|seen| seen.starts_with(AHEAD))
}

/// Returns the name of the call's result in templates, if the engine made the call before a turn.
pub(crate) fn ahead_as(call: &Call) -> Option<Name> {
    Some(call.seen.as_ref()?.strip_prefix(AHEAD)?.into())
}

/// Prefix of the names of extractions. No name of a definition contains a `/`.
const EXTRACT: &str = "extract/";

/// Extracts from messages to the agent.
pub(crate) const MESSAGE: &str = "extract/message";

/// Extracts from what a speaker said in a state of a graph.
pub(crate) const TURN: &str = "extract/turn";

/// Returns true if a call of this name fills state from what was said.
pub fn is_extraction(name: &str) -> bool {
    name.starts_with(EXTRACT)
}

/// Prefix of the name under which the engine calls a judge. Names of a definition contain no `/`.
const REVIEW: &str = "review/";

/// Subject of a judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The draft of this model call.
    Draft(Id),
    /// The result of this call of a tool.
    Result(Id, Name),
    /// The arguments of this call of a tool. The call has not begun.
    Args(Id, Name),
}

impl Judged {
    pub(crate) fn name(&self) -> Name {
        match self {
            Self::Draft(of) => format!("{REVIEW}draft/{of}"),
            Self::Result(of, tool) => format!("{REVIEW}result/{of}/{tool}"),
            Self::Args(of, tool) => format!("{REVIEW}args/{of}/{tool}"),
        }
        .into()
    }

    /// Returns the tool whose call is judged.
    pub fn tool(&self) -> Option<&Name> {
        match self {
            Self::Draft(_) => None,
            Self::Result(_, tool) | Self::Args(_, tool) => Some(tool),
        }
    }

    /// Names the subject for people: `the draft`, `what search gave`, `the arguments of pay`.
    pub fn words(&self) -> String {
        match self {
            Self::Draft(_) => "the draft".to_owned(),
            Self::Result(_, tool) => format!("what {tool} gave"),
            Self::Args(_, tool) => format!("the arguments of {tool}"),
        }
    }
}

/// Returns the subject that a call of the engine must judge. `None` means that the call is no judgement.
pub fn judged(call: &Call) -> Option<Judged> {
    let name = call.seen.as_ref().unwrap_or(&call.name);
    let (what, of) = name.strip_prefix(REVIEW)?.split_once('/')?;
    let (of, tool) = of.split_once('/').unwrap_or((of, ""));
    let of: Id = of.parse().ok()?;
    match what {
        "draft" => Some(Judged::Draft(of)),
        "result" => Some(Judged::Result(of, tool.into())),
        "args" => Some(Judged::Args(of, tool.into())),
        _ => None,
    }
}

/// Returns true if a call is a judgement.
pub fn is_review(call: &Call) -> bool {
    let name = call.seen.as_ref().unwrap_or(&call.name);
    name.starts_with(REVIEW)
}

/// Returns true if a call asks the agent's own model to judge: a judgement that no agent serves.
pub fn asks_itself(call: &Call) -> bool {
    is_review(call) && matches!(call.target, Target::Tool(_))
}

/// The policy of `keep_exchanges` in watermarks.
pub(crate) const KEEP_EXCHANGES: &str = "keep_exchanges";

/// The policy of `compact` in watermarks and summaries.
pub const COMPACT: &str = "compact";
