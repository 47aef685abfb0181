//! Causes and remedies of stops and failures, by their codes. The tables of the guide to troubleshooting are made of these.

use crate::cause::Reason;
use serde::{Deserialize, Serialize};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
        "the account has no credit left",
        "add credit at the provider, then `retry SESSION`",
        RETRY,
    ),
    row(
        Part::Model,
        &["model_not_found"],
        "the provider does not have the model",
        "correct `model` in the definition, then `run --resume SESSION --rebind`: the session is bound to the old name",
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
        "the provider, or a `rate` of the definition, allows no more requests now",
        "wait, then `retry SESSION`; with `rate` at the model calls wait before they are refused, and a `fallback` answers meanwhile",
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
        "the server failed, or the connection to it",
        "if the session is parked, it tries again by itself; otherwise `retry SESSION` when the server works again",
        RETRY,
    ),
    row(
        Part::Model,
        &["circuit_open", "outage"],
        "several calls in a row got no answer from this server, or none came for as long as `retry.for` waits",
        "`retry SESSION` when the server works again",
        RETRY,
    ),
    row(
        Part::Model,
        &["tls"],
        "no secure connection could be set up",
        "check the server's certificate and the clock of this computer, then `retry SESSION`",
        RETRY,
    ),
    row(
        Part::Model,
        &["context_overflow"],
        "the request is longer than the model's context",
        "shorten it with [compaction, views or horizons](../concepts/context.md) in the definition, then `run --resume SESSION --rebind`",
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
        "the model cannot call tools, or cannot do something else that the request asks for",
        "write [`calls: structured`](models.md#use-tools-with-models-that-have-no-tool-calls) or another model into the definition, then `run --resume SESSION --rebind`",
        REBIND,
    ),
    row(
        Part::Model,
        &["content_filter"],
        "a filter of the provider stopped the answer",
        "say it in other words on a branch (`fork SESSION --say`), or use another model",
        &[Act::Fork],
    ),
    row(
        Part::Model,
        &["bad_response"],
        "the server answered with something that is no answer of a model",
        "check the `url` of the model: it is that of the API, which often ends in `/v1`",
        &[Act::Doctor],
    ),
    row(
        Part::Model,
        &["misfit"],
        "the answer is too large for one line of the log",
        "bound it by `max_tokens` at the model, then `run --resume SESSION --rebind`",
        REBIND,
    ),
    row(
        Part::Model,
        &["expression"],
        "a template of the request failed; the message names it",
        "correct it in the definition, then `run --resume SESSION --rebind`",
        REBIND,
    ),
    row(
        Part::Model,
        &["limit"],
        "a budget does not allow the call",
        "raise the limit in the definition, then `run --resume SESSION --rebind`; with `on_limit: ask`, or with `then: wait` at a budget over sessions, the call waits instead, and `approve` lets it through",
        REBIND,
    ),
    row(
        Part::Model,
        &["cancelled"],
        "a person or an agent cancelled it",
        "nothing has to be repaired; say what is to be done instead",
        &[Act::Say],
    ),
    row(
        Part::Model,
        &["failed"],
        "this program could not make the call",
        "the message says why; a panic is a fault of this program, so please report it",
        SHOW,
    ),
    row(
        Part::Model,
        &["hook"],
        "a hook in Rust failed; the message names hook, agent and place",
        "repair it in the program that registers it, then `retry SESSION`",
        RETRY,
    ),
    row(
        Part::Model,
        &["script_missing", "script_broken"],
        "a script has no more answers, or its template fails",
        "add answers to the script, then `retry SESSION`; a new session without `--script` asks a model",
        RETRY,
    ),
    row(
        Part::Limit,
        &["model_calls", "agent_calls", "ticks"],
        "as many model calls, agent calls or commits were made as the limit allows",
        "raise the limit in the definition, then `run --resume SESSION --rebind`; `on_limit` says what happens at a limit",
        &[Act::RebindAndSay],
    ),
    row(
        Part::Limit,
        &["tokens", "cost", "wall_time"],
        "as many tokens, as much money or time was used as the limit allows",
        "raise the limit in the definition, then `run --resume SESSION --rebind`; with `on_limit: ask` a person is asked instead",
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
        "the result says which condition; the model may call again when it holds",
        &[],
    ),
    row(
        Part::Call,
        &["rejected", "expired"],
        "a person said no, or nobody answered in time",
        "decide with `on_error` at the tool what the model gets; a longer `timeout` of `approve` gives people more time",
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
        "describe the parameters better; if it is the result, correct the type that is declared for it: of the state that `set` writes, or of the tool in Rust",
        &[],
    ),
    row(
        Part::Call,
        &["timeout"],
        "no result came within the `timeout` of the tool",
        "raise `timeout`; an `unsafe` call is then in doubt, and `pending` shows it",
        &[],
    ),
    row(
        Part::Call,
        &["in_doubt"],
        "nobody knows whether the call, or an equal one before it, happened",
        "find out, then `resolve SESSION`; `pending` shows the whole command",
        &[Act::Pending],
    ),
    row(
        Part::Call,
        &["sign_in"],
        "the server of the tool wants a sign-in, and nobody has signed in",
        "the result has the command: `steersman login SERVER`; then call again",
        SHOW,
    ),
    row(
        Part::Call,
        &["done_before"],
        "an equal call was done in this session",
        "nothing, if it was not to happen twice; otherwise write `repeat: allow` at the tool: [repeated calls](tools.md#repeated-calls)",
        &[],
    ),
    row(
        Part::Call,
        &["limit"],
        "the call would exceed a limit",
        "raise `max` where the tool is offered, or `agent_calls` or `depth` in `limits`",
        &[],
    ),
    row(
        Part::Call,
        &["failed"],
        "it failed, and no other code says how",
        "the result says why; decide with `on_error` at the tool what the model gets",
        &[],
    ),
    row(
        Part::Call,
        &["cancelled"],
        "the call was cancelled",
        "nothing has to be repaired",
        &[],
    ),
    row(
        Part::Call,
        &[STATUS],
        "the service answered with this status of HTTP",
        "decide with `on_error` or `outcomes` at the tool what the model gets; each status has such a code",
        &[],
    ),
    row(
        Part::Call,
        &["empty", "no_branches", "not_in_this_branch"],
        "there is no result, no branch to wait for, or the call is not made on this branch: [codes](../reference/definition.md#codes)",
        "decide with `on_error` at the tool what the model gets",
        &[],
    ),
    row(
        Part::Call,
        &["ended_failed", "ended_limit", "ended_cancelled"],
        "the called agent failed, reached a limit, or was cancelled",
        "`show SESSION` has the agent's own failure",
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
        "use a tool that reads files of this kind",
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

/// The cause of a stop and what to do about it, as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Advice {
    /// Cause and remedy as sentences.
    pub sentence: String,
    /// Acts of a person that help, in order.
    pub acts: Vec<Act>,
}

/// Returns the advice for the state of a session, if it stopped with a code that has one. `first` is what failed first, if that is
/// known.
pub fn advice(settled: &Settled, first: Option<&Reason>) -> Option<Advice> {
    let remedy = of_stop(settled, first)?;
    Some(Advice {
        sentence: remedy.sentence(),
        acts: remedy.acts.to_vec(),
    })
}

impl Remedy {
    /// Returns the cause and what to do as sentences without markup of links.
    pub fn sentence(&self) -> String {
        plain(&format!(
            "Cause: {}. What to do: {}.",
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
