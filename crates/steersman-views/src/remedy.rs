//! Causes and remedies of stops and failures, by their codes. The tables of the guide to troubleshooting are made of these.

use crate::cause::Reason;
use serde::Serialize;
use std::fmt::Write as _;
use steersman_machine::stored::codes::is_http;
use steersman_runtime::session::Settled;

/// The cause of a stop or failure, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// The codes that have this cause.
    pub codes: &'static [&'static str],
    /// Part of a session that fails with the code.
    pub of: Part,
    /// The cause, as part of a sentence.
    pub cause: &'static str,
    /// The remedy, as part of a sentence in Markdown. Links are relative to the folder of the guide.
    pub remedy: &'static str,
    /// Acts of a person that help then, in order.
    pub acts: &'static [Act],
}

/// A part of a session that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A model call. Such a failure ends the answer.
    Model,
    /// A limit of an agent or of the session. It ends the answer.
    Limit,
    /// A call of a tool or of an agent, or what the engine evaluates for one. A model reads its failure.
    Call,
}

impl Part {
    /// All parts, in the order of the guide.
    pub const ALL: [Self; 3] = [Self::Model, Self::Limit, Self::Call];
}

/// An act of a person that helps after a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Look for what is missing on this computer: keys, models, servers.
    Doctor,
    /// Try the failed call again.
    Retry,
    /// Go on in another process.
    Resume,
    /// Bind the session to the corrected definition, and go on.
    Rebind,
    /// Bind the session to the corrected definition, and say something.
    RebindAndSay,
    /// Say something to the session.
    Say,
    /// Say something else on a branch of its own.
    Fork,
    /// Look at the request that the model got.
    Context,
    /// Look at the session.
    Show,
    /// Look at what waits for a person.
    Pending,
}

const RETRY: &[Act] = &[Act::Retry];
const REBIND: &[Act] = &[Act::Rebind];
const SHOW: &[Act] = &[Act::Show];

const fn row(
    of: Part,
    codes: &'static [&'static str],
    cause: &'static str,
    remedy: &'static str,
    acts: &'static [Act],
) -> Remedy {
    Remedy {
        codes,
        of,
        cause,
        remedy,
        acts,
    }
}

/// All causes and remedies, in the order of the guide.
pub static ALL: &[Remedy] = &[
    row(
        Part::Model,
        &["unauthorized"],
        "the provider refuses the key",
        "check the variable: `doctor` says which one is read, never its value",
        &[Act::Doctor, Act::Retry],
    ),
    row(
        Part::Model,
        &["insufficient_quota"],
        "the account is used up",
        "pay, then `retry`",
        RETRY,
    ),
    row(
        Part::Model,
        &["model_not_found"],
        "the provider does not have the model",
        "correct `model`; a session that is bound to the old name needs `run --resume SESSION --rebind`",
        REBIND,
    ),
    row(
        Part::Model,
        &["no_model"],
        "this process cannot use the model",
        "start the process with its key or script; a model in Rust needs its own program",
        &[Act::Doctor, Act::Resume],
    ),
    row(
        Part::Model,
        &["rate_limited", "limited"],
        "too many requests",
        "wait; declare `rate` at the model, so that calls wait before they are refused; name a `fallback`",
        RETRY,
    ),
    row(
        Part::Model,
        &[
            "provider_error",
            "provider_overloaded",
            "unreachable",
            "timeout",
            "disconnected",
            "truncated",
        ],
        "the server or the network",
        "wait, if the session is parked; otherwise `retry` when it works again",
        RETRY,
    ),
    row(
        Part::Model,
        &["circuit_open", "outage"],
        "the server did not answer for a while, or for as long as `retry.for` says",
        "`retry` when it works again",
        RETRY,
    ),
    row(
        Part::Model,
        &["tls"],
        "no secure connection could be set up",
        "check the certificate and the clock of this computer",
        RETRY,
    ),
    row(
        Part::Model,
        &["context_overflow"],
        "the request is longer than the model's context",
        "[compaction, views and horizons](../concepts/context.md) make requests shorter",
        REBIND,
    ),
    row(
        Part::Model,
        &["too_large"],
        "the request or the answer exceeds a [bound](../reference/input.md)",
        "shorten what the message or the tool gives",
        &[Act::Context],
    ),
    row(
        Part::Model,
        &["invalid_request"],
        "the provider refuses the request; its words are in `show`",
        "`context SESSION` shows the request; often a key of `params` is wrong",
        &[Act::Context],
    ),
    row(
        Part::Model,
        &["no_tools", "not_supported"],
        "the model cannot call tools, or cannot do what was asked",
        "[`calls: structured`](models.md#use-tools-with-models-that-have-no-tool-calls), or another model",
        REBIND,
    ),
    row(
        Part::Model,
        &["content_filter"],
        "a filter of the provider stopped the answer",
        "another wording or model: `rewind`, or `fork --say`",
        &[Act::Fork],
    ),
    row(
        Part::Model,
        &["bad_response"],
        "the response is not an answer",
        "is the `url` that of the API (`/v1`)?",
        &[Act::Doctor],
    ),
    row(
        Part::Model,
        &["misfit"],
        "the answer does not fit a line of the log",
        "bound it: `max_tokens`",
        REBIND,
    ),
    row(
        Part::Model,
        &["expression"],
        "a template of the request failed; the message names it",
        "correct the definition; bind the session to it: `--rebind`",
        REBIND,
    ),
    row(
        Part::Model,
        &["limit"],
        "a budget does not allow the call",
        "raise the limit, or approve the question of `on_limit: ask`; for a budget over sessions wait for its next period, or say `then: wait`",
        REBIND,
    ),
    row(
        Part::Model,
        &["cancelled"],
        "a person or an agent cancelled it",
        "nothing: say what is to be done instead",
        &[Act::Say],
    ),
    row(
        Part::Model,
        &["failed"],
        "this program could not make the call",
        "the message has the reason; report it if it is a panic",
        SHOW,
    ),
    row(
        Part::Model,
        &["hook"],
        "a hook in Rust failed; the message names hook, agent and place",
        "mend it in the program that registers it",
        RETRY,
    ),
    row(
        Part::Model,
        &["script_missing", "script_broken"],
        "a script has no more answers, or its template fails",
        "add answers; without `--script` a new session asks a model",
        RETRY,
    ),
    row(
        Part::Limit,
        &["model_calls", "agent_calls", "ticks"],
        "more was done for the answer than its limit allows",
        "raise it in `limits` of the definition, and continue with `--rebind`; `on_limit` says what happens at a limit",
        &[Act::RebindAndSay],
    ),
    row(
        Part::Limit,
        &["tokens", "cost", "wall_time"],
        "more was spent than the limit allows",
        "raise it in `limits` of the definition, and continue with `--rebind`; `on_limit: ask` asks a person instead",
        &[Act::RebindAndSay],
    ),
    row(
        Part::Limit,
        &["same_call", "corrections"],
        "the model did the same again and again, or its answers could not be used",
        "`context` shows what it read; a better description of the tool or of `output` helps more than a higher limit",
        &[Act::Context, Act::Say],
    ),
    row(
        Part::Call,
        &["refused"],
        "`requires` does not hold, or the engine does not allow the call",
        "the text behind it says which condition",
        &[],
    ),
    row(
        Part::Call,
        &["rejected", "expired"],
        "a person said no, or nobody answered in time",
        "`on_error`, or a longer `timeout`",
        &[],
    ),
    row(
        Part::Call,
        &["unknown_tool"],
        "the agent does not offer the tool, for example in this mode",
        "add it to `tools`; the result lists what is offered",
        &[],
    ),
    row(
        Part::Call,
        &["misfit"],
        "arguments or the result do not fit their type",
        "a better description of the parameters; for a result the declared type",
        &[],
    ),
    row(
        Part::Call,
        &["timeout"],
        "no result within `timeout`",
        "raise it. An `unsafe` call is in doubt then",
        &[],
    ),
    row(
        Part::Call,
        &["in_doubt"],
        "the call, or an equal one, may have happened",
        "`resolve`",
        &[Act::Pending],
    ),
    row(
        Part::Call,
        &["done_before"],
        "an equal call was done in this session",
        "intended; `repeat: allow` if a second call is right: [repeated calls](tools.md#repeated-calls)",
        &[],
    ),
    row(
        Part::Call,
        &["limit"],
        "a limit keeps it from running",
        "`limits`, `max` at the tool",
        &[],
    ),
    row(
        Part::Call,
        &["failed"],
        "it failed, and no other code says how",
        "the text behind it has the reason; `on_error`",
        &[],
    ),
    row(
        Part::Call,
        &["cancelled"],
        "the call was cancelled",
        "nothing",
        &[],
    ),
    row(
        Part::Call,
        &[STATUS],
        "the service's answer; other statuses have codes like it",
        "`on_error`, `outcomes`",
        &[],
    ),
    row(
        Part::Call,
        &["empty", "no_branches", "not_in_this_branch"],
        "there is nothing; see [codes](../reference/definition.md#codes)",
        "`on_error`",
        &[],
    ),
    row(
        Part::Call,
        &["ended_failed", "ended_limit", "ended_cancelled"],
        "the called agent failed",
        "`show` has the agent's own failure",
        SHOW,
    ),
    row(
        Part::Call,
        &["sealed"],
        "a secret argument could not be opened here",
        "set `STEERSMAN_KEY`, or put the file `key` back: `doctor` names keys by their ids",
        &[Act::Doctor],
    ),
    row(
        Part::Call,
        &["not_text"],
        "an artifact that was to be read is no text",
        "use a tool that reads this kind of file",
        &[],
    ),
];

/// The code that stands for those of all statuses of HTTP.
const STATUS: &str = "http_404";

/// Returns the causes and remedies of a code: one for each part of a session that gives it.
pub fn of(code: &str) -> impl Iterator<Item = &'static Remedy> {
    let code = if is_http(code) { STATUS } else { code };
    ALL.iter()
        .filter(move |remedy| remedy.codes.contains(&code))
}

/// Returns the cause and remedy of the state of a session, if it stopped with a code that has one. `first` is what failed first, if
/// that is known: a network fails of what one of its members failed of.
pub fn of_stop(settled: &Settled, first: Option<&Reason>) -> Option<&'static Remedy> {
    let (code, parts): (&str, &[Part]) = match settled {
        Settled::Limit { code, .. } => (code, &[Part::Limit, Part::Model]),
        Settled::Failed { code, .. } => (code, &[Part::Model, Part::Limit, Part::Call]),
        _ => return None,
    };
    let code = first.map_or(code, |first| &first.code);
    let known = |part: &Part| of(code).find(|remedy| remedy.of == *part);
    parts.iter().find_map(known)
}

impl Remedy {
    /// Returns the cause and what to do as sentences without markup of links.
    pub fn sentence(&self) -> String {
        let end = if self.remedy.ends_with('?') { "" } else { "." };
        plain(&format!(
            "Cause: {}. What to do: {}{end}",
            self.cause, self.remedy
        ))
    }
}

/// Returns the table of a part, as the guide to troubleshooting has it: the rows below its head.
pub fn table(of: Part) -> String {
    let mut rows = String::new();
    for remedy in ALL.iter().filter(|remedy| remedy.of == of) {
        let codes: Vec<String> = remedy
            .codes
            .iter()
            .map(|code| format!("`{code}`"))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            rows,
            "| {} | {} | {} |",
            codes.join(", "),
            remedy.cause,
            remedy.remedy
        );
    }
    rows
}

/// Replaces each link of a text in Markdown by its words.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, behind)) = link.split_once("](") else {
            break;
        };
        let Some((_, behind)) = behind.split_once(')') else {
            break;
        };
        out.push_str(before);
        out.push_str(words);
        rest = behind;
    }
    out + rest
}
