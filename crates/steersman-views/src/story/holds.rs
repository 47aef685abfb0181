//! Describes holds and other ledger entries.

use super::{Told, Tone};
use crate::words::{arguments, digits, people, span};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::{
    About, Hold, Hooked, LedgerEntry, LogLine, Moment, Probing, Reaching, Release, Stepped, Why,
};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::words::why_word;

/// Returns the effects that happened, by the ledger entries of a line.
pub(super) fn done(line: &LogLine) -> impl Iterator<Item = Id> {
    line.ledger.iter().filter_map(|entry| match entry {
        LedgerEntry::Done { effect, .. }
        | LedgerEntry::Released {
            effect,
            why: Why::Doubt,
            how: Release::Outcome,
            ..
        } => Some(*effect),
        _ => None,
    })
}

/// Describes an effect of superseded lines, for the person who rewound them.
pub(super) fn listed(tool: &str, is_done: bool) -> Told {
    let (how, note) = if is_done {
        ("done", "stays done")
    } else {
        ("started", "outcome not known")
    };
    let text = format!("{tool} was {how} in what is left behind");
    ("!".into(), text, note.into(), Tone::Doubt)
}

pub(super) fn released(why: Why, how: Release, by: &Decider, said: Option<&str>) -> (String, Tone) {
    let said = match (said, how) {
        (Some(args), Release::Edited) => format!(": {}", arguments(args)),
        (Some(said), _) => format!(": {said}"),
        (None, _) => String::new(),
    };
    match (why, how) {
        (Why::Doubt, Release::Outcome) if *by == Decider::Probe => {
            ("was done, found by the probe".into(), Tone::Decided)
        }
        (Why::Doubt, Release::Outcome) => (format!("was done, says {by}"), Tone::Decided),
        (Why::Doubt, Release::Go) => (format!("did not happen, says {by}"), Tone::Decided),
        (Why::Doubt, Release::GivenUp) => (format!("stays unknown, says {by}"), Tone::Doubt),
        (Why::Input, Release::Go) => (format!("given by {by}"), Tone::Decided),
        (Why::Elicited, Release::Outcome) => (format!("answered by {by}"), Tone::Decided),
        (Why::Elicited, Release::Refused) if *by == Decider::Rule => {
            (format!("declined{said}"), Tone::Wrong)
        }
        (Why::Elicited, Release::Refused) => (format!("declined by {by}{said}"), Tone::Decided),
        (Why::Elicited, Release::Cancelled) => (format!("asks no longer{said}"), Tone::Wrong),
        (Why::Wait, Release::Go) => ("its time has come".into(), Tone::Came),
        (Why::Wait, Release::Outcome) => ("its event came".into(), Tone::Came),
        (Why::Budget, Release::Go) if *by == Decider::Timeout => ("tries again".into(), Tone::Came),
        (_, Release::Go) => (format!("approved by {by}"), Tone::Decided),
        (_, Release::Edited) => (
            format!("approved by {by} with other arguments{said}"),
            Tone::Decided,
        ),
        (_, Release::Refused) => (format!("rejected by {by}{said}"), Tone::Wrong),
        // The call is asked for again, because what it reads has changed.
        (Why::Approval, Release::Cancelled) if !said.is_empty() => {
            (format!("asked again{said}"), Tone::Asked)
        }
        (_, Release::Cancelled) => ("cancelled".into(), Tone::Wrong),
        (_, Release::Expired) => ("ran out of time".into(), Tone::Wrong),
        (_, Release::Outcome | Release::GivenUp) => (format!("settled by {by}"), Tone::Decided),
    }
}

/// Describes a new hold: somebody is asked, or a place does not answer.
pub(super) fn held(hold: &Hold, ask: String) -> Told {
    let word = why_word(hold.why);
    match hold.why {
        Why::Outage => ("!".into(), ask, word.into(), Tone::Wrong),
        Why::Wait => {
            let about = hold
                .about
                .as_ref()
                .map_or_else(String::new, ToString::to_string);
            (
                String::new(),
                format!("waits: {about}"),
                word.into(),
                Tone::Engine,
            )
        }
        Why::Elicited if hold.by.is_empty() => {
            ("?".into(), ask, "asked by its server".into(), Tone::Asked)
        }
        Why::Elicited => {
            let note = format!("answer by {}", people(&hold.by));
            ("?".into(), ask, note, Tone::Asked)
        }
        _ => (
            "?".into(),
            ask,
            format!("{word} by {}", people(&hold.by)),
            Tone::Asked,
        ),
    }
}

/// Describes the end of an outage.
pub(super) fn outage(about: Option<&About>, how: Release) -> Told {
    let place = about.and_then(About::place);
    let place = place.map_or("its place", |place| &**place);
    let (mark, text, tone) = match how {
        Release::Go => ("", format!("{place} answers again"), Tone::Came),
        Release::Expired => (
            "!",
            format!("{place} did not answer in the time that the definition allows"),
            Tone::Wrong,
        ),
        _ => (
            "",
            format!("the session no longer waits for {place}"),
            Tone::Engine,
        ),
    };
    (mark.into(), text, why_word(Why::Outage).into(), tone)
}

/// Describes an attempt to notify a person of a question or a hold.
pub(super) fn reached(by: &str, what: &Reaching, texts: &dyn Bodies) -> Told {
    let (mark, text, note, tone) = match what {
        Reaching::Started { tool, attempt } => {
            let note = format!("attempt {attempt}");
            ("", format!("{tool} tells {by}"), note, Tone::Engine)
        }
        Reaching::Done => ("", format!("{by} was told"), "done".into(), Tone::Came),
        Reaching::Failed(why) => {
            let text = format!("{by} was not told: {}", texts.text(*why));
            ("!", text, "it waits all the same".into(), Tone::Wrong)
        }
    };
    (mark.to_owned(), text, note, tone)
}

/// Describes a step inside a tool.
pub(super) fn stepped(
    tool: &str,
    step: &str,
    attempt: u32,
    what: Stepped,
    texts: &dyn Bodies,
) -> Told {
    let note = format!("attempt {attempt}");
    let (mark, text, tone) = match what {
        Stepped::Began => ("", format!("{tool} begins its step `{step}`"), Tone::Engine),
        Stepped::Done(_) => ("", format!("step `{step}` of {tool} is done"), Tone::Came),
        Stepped::Failed(why) => {
            let text = format!("step `{step}` of {tool} failed: {}", texts.text(why));
            ("!", text, Tone::Wrong)
        }
    };
    (mark.to_owned(), text, note, tone)
}

/// Describes a change by a hook, or its failure.
pub(super) fn hooked(hooked: &Hooked, texts: &dyn Bodies) -> (String, Tone) {
    let what = match hooked.at {
        Moment::BeforeModel => "the request to the model",
        Moment::AfterModel => "the answer of the model",
        Moment::BeforeCall => "the arguments of a call",
        Moment::AfterCall => "the result of a call",
        Moment::Finish => "the answer",
    };
    let change: Option<serde_json::Value> = serde_json::from_str(&texts.text(hooked.change)).ok();
    let failed = change.as_ref().and_then(|change| change["failed"].as_str());
    match failed {
        Some(why) => (
            format!("hook `{}` failed on {what}: {why}", hooked.hook),
            Tone::Wrong,
        ),
        None => (
            format!("hook `{}` changed {what}", hooked.hook),
            Tone::Engine,
        ),
    }
}

/// Describes a probe, which asks whether an effect happened.
pub(super) fn probed(probe: &str, of: &str, what: &Probing, now: Time, texts: &dyn Bodies) -> Told {
    let (mark, text, note, tone) = match what {
        Probing::Started { attempt, .. } => {
            let note = format!("attempt {attempt}");
            (
                "",
                format!("{probe} is asked whether {of} happened"),
                note,
                Tone::Engine,
            )
        }
        Probing::Said { happened, said, .. } => {
            let found = match happened {
                Some(true) => "it happened",
                Some(false) => "no trace of it",
                None => "undecided",
            };
            let text = format!("{probe} answered {}", texts.text(*said));
            ("", text, found.to_owned(), Tone::Came)
        }
        Probing::Failed { why, again, .. } => {
            let note = again.map_or_else(
                || "has decided nothing".to_owned(),
                |at| format!("again in {}", span(at.0.saturating_sub(now.0))),
            );
            let text = format!("{probe} could not say: {}", texts.text(*why));
            ("!", text, note, Tone::Wrong)
        }
    };
    (mark.to_owned(), text, note, tone)
}

/// Describes token counts that a provider reports and that are impossible.
pub(super) fn unbelievable(input: u64, output: u64) -> Told {
    let text = format!(
        "the provider reports {} tokens in and {} out, which is impossible: the maximum that the call could use is counted",
        digits(input),
        digits(output)
    );
    (String::new(), text, "unbelievable".into(), Tone::Engine)
}
