//! Words for ends, holds and ledger entries in traces and messages.

use crate::stored::commit::{LedgerEntry, Probing, Reaching, Recorded, Release, Usage, Why};
use crate::stored::ids::Time;
use crate::stored::interaction::{Cause, Doubtful, End, How};
use crate::tick::effect::Bodies;
use std::fmt::Write as _;

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
pub fn end_word(end: End) -> &'static str {
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

/// Returns the words for an order that keeps tools from beginning, or for its withdrawal.
pub(super) fn barred(tool: Option<&str>, barred: bool, by: &str) -> String {
    let word = if barred { "barred" } else { "unbarred" };
    format!("{word} {} by {by}", tool.unwrap_or("*"))
}

/// Returns the words for the state of an effect in the session that is rerun.
pub(super) fn recorded(how: Recorded) -> &'static str {
    match how {
        Recorded::Done => "done",
        Recorded::InDoubt => "in doubt",
        Recorded::GivenUp => "given up",
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
    }
}

/// Returns the word for how a hold ended.
pub fn release_word(how: Release) -> &'static str {
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

/// Returns the words for the progress of notifying a person.
pub(super) fn reaching(what: &Reaching, bodies: &dyn Bodies) -> String {
    match what {
        Reaching::Started { tool, attempt } => format!("{tool} attempt {attempt}"),
        Reaching::Done => "done".to_owned(),
        Reaching::Failed(why) => format!("failed {}", super::quoted(bodies, *why)),
    }
}

/// Returns the words for the progress of a probe.
pub(super) fn probing(what: &Probing, bodies: &dyn Bodies) -> String {
    match what {
        Probing::Started { tool, attempt } => format!("{tool} attempt {attempt}"),
        Probing::Said {
            attempt,
            happened,
            said,
        } => {
            let found = match happened {
                Some(true) => "happened",
                Some(false) => "did not happen",
                None => "undecided",
            };
            let said = super::quoted(bodies, *said);
            format!("attempt {attempt} {found} {said}")
        }
        Probing::Failed {
            attempt,
            why,
            again,
        } => {
            let again = again.map_or_else(String::new, |at| format!(", again at {}", at.0));
            format!(
                "attempt {attempt} failed {}{again}",
                super::quoted(bodies, *why)
            )
        }
    }
}

/// Returns the beginning of a text, as much as a trace shows.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(super::SHOWN) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns the words for the usage of a model call.
pub(super) fn usage_of(usage: &Usage) -> String {
    let mut out = String::new();
    if let Some(effect) = usage.effect {
        let _ = write!(out, "{effect} ");
    }
    if let Some(model) = &usage.model {
        let _ = write!(out, "{model} ");
    }
    let _ = write!(
        out,
        "in {} (cached {}) out {}",
        usage.input, usage.cached, usage.output
    );
    out
}

/// Returns the words for a store that a person accepted.
pub(super) fn accepted(at: Time, was: Doubtful) -> String {
    let was = match was {
        Doubtful::Copied => "a copy, moved or restored",
        Doubtful::Lost => "it had lost lines",
    };
    format!("store accepted at {}, {was}", at.0)
}

/// Returns the words for an entry about the session's budget; empty for any other entry.
pub(super) fn of_limits(entry: &LedgerEntry) -> String {
    match entry {
        LedgerEntry::Escrow { tokens, micros } => {
            format!("escrow {tokens} tokens {micros} micros")
        }
        LedgerEntry::Spend {
            effect,
            tokens,
            micros,
        } => format!("spend {effect} {tokens} tokens {micros} micros"),
        LedgerEntry::Settle { tokens, micros } => {
            format!("settle {tokens} tokens {micros} micros")
        }
        LedgerEntry::More {
            effect,
            tokens,
            micros,
            granted,
        } => {
            let word = if *granted { "granted" } else { "wanted" };
            format!("{word} for {effect} {tokens} tokens {micros} micros")
        }
        LedgerEntry::Unbelievable {
            effect,
            input,
            output,
            micros,
        } => {
            let micros = micros.map_or_else(String::new, |micros| format!(" {micros} micros"));
            format!("unbelievable {effect} in {input} out {output}{micros}")
        }
        _ => String::new(),
    }
}
