//! Words for ledger entries in traces.

use crate::stored::bounds;
use crate::stored::by::By;
use crate::stored::commit::{Hooked, LedgerEntry, Probing, Reaching, Recorded, Stepped, Usage};
use crate::stored::ids::{Bodies, Time};
use crate::stored::interaction::{Doubtful, Origin};
use crate::stored::words::moment_word;
use std::fmt::Write as _;

/// Returns the words for an order that keeps effects of a tool from beginning, or that lets them begin again.
pub(super) fn barred(tool: Option<&str>, barred: bool, by: &By) -> String {
    let word = if barred { "barred" } else { "unbarred" };
    format!("{word} {} by {by}", tool.unwrap_or("*"))
}

/// Returns the words for an inbox message that was accepted.
pub(super) fn taken(message: &str, by: Option<&By>) -> String {
    match by.and_then(By::shown) {
        Some(by) => format!("accepted {message} from {by}"),
        None => format!("accepted {message}"),
    }
}

/// Returns the words for an order that pauses or resumes the session.
pub(super) fn paused(paused: bool, by: &By) -> String {
    let word = if paused { "paused" } else { "resumed" };
    match by.shown() {
        Some(by) => format!("{word} by {by}"),
        None => word.to_owned(),
    }
}

/// Returns the words for the state of an effect in the session that is rerun.
pub(super) fn recorded(how: Recorded) -> &'static str {
    match how {
        Recorded::Done => "done",
        Recorded::InDoubt => "in doubt",
        Recorded::GivenUp => "given up",
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

/// Returns the words for the progress of a step inside a tool.
pub(super) fn stepped(what: Stepped, bodies: &dyn Bodies) -> String {
    match what {
        Stepped::Began => "began".to_owned(),
        Stepped::Done(body) => format!("done {}", super::plain(bodies, body)),
        Stepped::Failed(body) => format!("failed {}", super::plain(bodies, body)),
    }
}

/// Returns the words for a change by a hook, without the change itself.
pub(super) fn hooked(hooked: &Hooked) -> String {
    let of = hooked
        .effect
        .map_or_else(String::new, |effect| format!(" of {effect}"));
    format!("{} {}{of}", hooked.hook, moment_word(hooked.at))
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

/// Returns a text, cut to the length that a trace shows.
pub(super) fn cut(text: &str) -> String {
    bounds::beginning(text, super::SHOWN).into_owned()
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

/// Returns the words for an entry about the session's budget. Empty for any other entry.
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

/// Returns the words for the sender of a message, followed by a space. Empty for an anonymous user.
pub(super) fn origin(from: &Origin) -> String {
    match from {
        Origin::Outside(by) => by.shown().map_or_else(String::new, |by| format!("{by} ")),
        Origin::Call(call) => format!("{call} "),
        Origin::Agent(agent) => format!("from {agent} "),
        Origin::Released(agent) => format!("released {agent} "),
        Origin::Route => "route ".to_owned(),
        Origin::Continuation => "continuation ".to_owned(),
        Origin::Correction => "correction ".to_owned(),
        Origin::Limit => "limit ".to_owned(),
        Origin::Conclude => "conclude ".to_owned(),
        Origin::Net => "net ".to_owned(),
        Origin::Reflect { of, tool: None } => format!("reflect {of} "),
        Origin::Reflect {
            of,
            tool: Some(tool),
        } => format!("reflect {tool} {of} "),
    }
}
