//! Words for the variants of stored enums, for traces and messages.

use super::commit::{Moment, Release, Why};
use super::interaction::{Cause, End, How};

/// Returns the word for how a call closed.
pub fn how_word(how: How) -> &'static str {
    match how {
        How::Done => "done",
        How::Simulated => "simulated",
        How::Failed => "failed",
        How::Refused => "refused",
        How::Cancelled => "cancelled",
        How::Unknown => "unknown",
        How::NotInThisBranch => "not_in_this_branch",
        How::Finished => "finished",
        How::Released => "released",
        How::Limit => "limit",
        How::Expired => "expired",
        How::DoneBefore => "done_before",
    }
}

/// Returns the word for the kind of end of a `Finished`.
pub(crate) fn end_word(end: End) -> &'static str {
    match end {
        End::Draft => "draft",
        End::Turn => "turn",
        End::Task => "task",
    }
}

/// Returns the word for the cause of an end.
pub fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Answer => "answer",
        Cause::Tool => "tool",
        Cause::Released => "released",
        Cause::Routed => "routed",
        Cause::Leaf => "leaf",
        Cause::Limit | Cause::Rounds => "limit",
        Cause::Failed => "failed",
        Cause::Cancelled => "cancelled",
        Cause::Deadlock => "deadlock",
        Cause::NoRule => "no_rule",
    }
}

/// Returns the word for a kind of hold.
pub fn why_word(why: Why) -> &'static str {
    match why {
        Why::Approval => "approval",
        Why::Input => "input",
        Why::Doubt => "doubt",
        Why::Budget => "budget",
        Why::Repeat => "repeat",
        Why::Outage => "outage",
        Why::Wait => "wait",
        Why::Elicited => "elicited",
    }
}

/// Returns the word for the moment at which a hook runs.
pub(crate) fn moment_word(at: Moment) -> &'static str {
    match at {
        Moment::BeforeModel => "before_model",
        Moment::AfterModel => "after_model",
        Moment::BeforeCall => "before_call",
        Moment::AfterCall => "after_call",
        Moment::Finish => "finish",
    }
}

/// Returns the word for how a hold ended.
pub(crate) fn release_word(how: Release) -> &'static str {
    match how {
        Release::Go => "go",
        Release::Edited => "edited",
        Release::Refused => "refused",
        Release::Outcome => "outcome",
        Release::GivenUp => "given_up",
        Release::Cancelled => "cancelled",
        Release::Expired => "expired",
    }
}
