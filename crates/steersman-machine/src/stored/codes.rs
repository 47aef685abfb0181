//! The codes of results and failures that the engine and its adapters give. The two tables here are the only lists of them. A
//! log stores the text of a code. A text that is in neither table is a code, too: `http_404`, `mcp_-32000`, or a tool's own
//! code.

use super::interaction::How;
use super::outcome::Retry;
use std::fmt;

/// Generates an enum of codes and its look-ups from one table. A row has the variant, the text, the other cells, and the
/// meaning.
macro_rules! codes {
    (
        $(#[$doc:meta])* $name:ident of $row:ident:
        $($variant:ident = $text:literal, $cells:expr, $meaning:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $meaning] $variant,)*
        }

        impl $name {
            /// All codes, in the order in which they are documented.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the text of the code, which is its stored form.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Returns the meaning of the code, as a sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }

            const fn row(self) -> $row {
                match self {
                    $(Self::$variant => $cells,)*
                }
            }

            /// Returns the code with this text; `None` if the table does not have it.
            pub fn named(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.text() == text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.text()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

// ---- results of calls and ends of agents -----------------------------------------------------------------------

/// Cells of a row of [`Code`].
struct Closes {
    how: How,
    caught: Caught,
    /// True if an entry of `on_error` may have the code as its name.
    own: bool,
}

/// The entries of `on_error` that apply to a code that has no entry of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Caught {
    /// `failed`, else `*`.
    Failed,
    /// `*` alone.
    Any,
    /// None: the code is not a failure.
    Nothing,
}

/// A code that `on_error` may name.
const fn own(how: How, caught: Caught) -> Closes {
    Closes {
        how,
        caught,
        own: true,
    }
}

/// A code that `on_error` may not name.
const fn inner(how: How, caught: Caught) -> Closes {
    Closes {
        how,
        caught,
        own: false,
    }
}

codes! {
    /// A code of the engine in the result of a call, or at the failed end of an agent.
    Code of Closes:
    Refused = "refused", own(How::Refused, Caught::Any),
        "A condition of the definition or the engine does not allow the call.";
    Rejected = "rejected", own(How::Refused, Caught::Any),
        "A person rejected the call.";
    Expired = "expired", own(How::Expired, Caught::Any),
        "Nobody decided about the call in time.";
    Timeout = "timeout", own(How::Failed, Caught::Failed),
        "No result came in time. A wait, or a question to a person, has then expired.";
    Empty = "empty", own(How::Failed, Caught::Nothing),
        "There is no result: nothing, an empty list or an empty text. Given only if `on_error` has this entry.";
    Misfit = "misfit", own(How::Failed, Caught::Failed),
        "Arguments, a result or a value of state do not fit their type.";
    InDoubt = "in_doubt", own(How::Refused, Caught::Any),
        "It may have happened, and is not done again.";
    DoneBefore = "done_before", own(How::DoneBefore, Caught::Nothing),
        "An equal call was carried out before, so this one was not.";
    NotInThisBranch = "not_in_this_branch", own(How::NotInThisBranch, Caught::Nothing),
        "The call was out when the branch began, and is not made on this one.";
    Limit = "limit", own(How::Limit, Caught::Any),
        "A limit keeps the call from running.";
    NoBranches = "no_branches", own(How::Failed, Caught::Any),
        "There are no branches to wait for.";
    SignIn = "sign_in", own(How::Failed, Caught::Failed),
        "The server of the tool wants a sign-in, and nobody has signed in.";
    Failed = "failed", own(How::Failed, Caught::Failed),
        "It failed, and no other code says how.";
    EndedFailed = "ended_failed", own(How::Failed, Caught::Failed),
        "The called agent failed.";
    EndedLimit = "ended_limit", own(How::Failed, Caught::Failed),
        "The called agent reached a limit.";
    EndedCancelled = "ended_cancelled", own(How::Failed, Caught::Failed),
        "The called agent was cancelled.";
    Cancelled = "cancelled", inner(How::Cancelled, Caught::Failed),
        "The call was cancelled.";
    UnknownTool = "unknown_tool", inner(How::Failed, Caught::Any),
        "There is no tool of this name, or the agent may not call it now.";
    NotText = "not_text", inner(How::Failed, Caught::Any),
        "The artifact that was to be read is no text.";
    Sealed = "sealed", inner(How::Failed, Caught::Any),
        "A secret argument could not be opened.";
    NotMet = "not_met", inner(How::Failed, Caught::Any),
        "The condition on which branches are joined can no longer be met.";
    Accept = "accept", inner(How::Failed, Caught::Any),
        "The judge has no objection.";
    Revise = "revise", inner(How::Failed, Caught::Any),
        "The subject must be revised; the text says how.";
    Unusable = "unusable", inner(How::Failed, Caught::Any),
        "A judgement or a decision of a model could not be used. A draft or result is then accepted.";
    Rounds = "rounds", inner(How::Failed, Caught::Any),
        "The subject was sent back as often as allowed.";
    Reflect = "reflect", inner(How::Failed, Caught::Any),
        "A judgement could not be asked for.";
    Exits = "exits", inner(How::Failed, Caught::Any),
        "The conditions that choose the next mode could not be evaluated.";
    Net = "net", inner(How::Failed, Caught::Any),
        "A net failed.";
    Hook = "hook", inner(How::Failed, Caught::Any),
        "A hook in Rust failed.";
    Before = "before", inner(How::Failed, Caught::Any),
        "The arguments of a call that goes before the first model call could not be evaluated.";
    Done = "done", inner(How::Failed, Caught::Any),
        "The condition that ends a turn could not be evaluated.";
    Route = "route", inner(How::Failed, Caught::Any),
        "A router failed.";
}

/// Word by which a judge accepts, and code of such a judgement.
pub const ACCEPT: &str = Code::Accept.text();

/// Word by which a judge asks for a revision, and code of such a judgement.
pub const REVISE: &str = Code::Revise.text();

impl Code {
    /// Returns how a call with this code closes if it is proved not to have happened. Exception: a wait, or a question to a
    /// person, that timed out closes as `expired`.
    pub const fn how(self) -> How {
        self.row().how
    }

    /// Returns the entries of `on_error` that apply if no entry has the code as its name.
    pub const fn caught(self) -> Caught {
        self.row().caught
    }

    /// Returns true if an entry of `on_error` may have the code as its name.
    pub const fn may_be_caught_by_name(self) -> bool {
        self.row().own
    }
}

/// Returns the code of an HTTP status: `http_404`.
pub fn http(status: u16) -> String {
    format!("http_{status}")
}

/// Returns the class of the code of an HTTP status: `http_4xx` for `http_404`. `None` for all other codes.
pub fn http_class(code: &str) -> Option<String> {
    let status = code.strip_prefix("http_")?;
    let first = status.chars().next().filter(|_| status.len() == 3)?;
    Some(format!("http_{first}xx"))
}

/// Returns true for the code of an HTTP status and for a class of them: `http_404`, `http_4xx`.
pub fn is_http(code: &str) -> bool {
    code.strip_prefix("http_").is_some_and(is_status)
}

/// Returns true for an HTTP status and for a class of them: `404`, `4xx`.
pub fn is_status(status: &str) -> bool {
    status.len() == 3
        && matches!(status.as_bytes()[0], b'1'..=b'5')
        && (status.ends_with("xx") || status.bytes().all(|c| c.is_ascii_digit()))
}

// ---- failures of model calls -----------------------------------------------------------------------------------

/// Cells of a row of [`FailureCode`].
struct Fails {
    retry: Retry,
    model: Asked,
    place: PlaceState,
    then: Then,
}

/// The cell that says if the model may have done work.
#[derive(Copy, Clone)]
enum Asked {
    /// It was asked, so the call may have cost something.
    Paid,
    /// It was never asked.
    Unasked,
}

/// The cell that says if another model may answer after the failure.
#[derive(Copy, Clone)]
enum Then {
    /// Another model may answer.
    Another,
    /// No other model: the failure would be the same with every model, or is a fault of this program.
    Same,
}

/// The state of a model's place after a failure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// The place does not answer. The failure counts for the circuit breaker, and the call waits for the place.
    Down,
    /// The connection or the server broke during the call. The failure counts for the circuit breaker. The request itself may
    /// be the cause, so a call does not begin to wait for the place; one that waits already goes on waiting.
    Broken,
    /// The place answers, and may ask all sessions to wait ([`Retry::After`]).
    Busy,
    /// The place answers.
    Answers,
    /// The failure says nothing about the place.
    Unknown,
}

const fn fails(retry: Retry, model: Asked, place: PlaceState, then: Then) -> Fails {
    Fails {
        retry,
        model,
        place,
        then,
    }
}

use Asked::{Paid, Unasked};
use PlaceState::{Answers, Broken, Busy, Down, Unknown};
use Retry::{Never, Policy};
use Then::{Another, Same};

codes! {
    /// A code with which a model call fails.
    FailureCode of Fails:
    RateLimited = "rate_limited", fails(Policy, Unasked, Busy, Another),
        "The provider refuses more requests for now (429).";
    ProviderError = "provider_error", fails(Policy, Unasked, Broken, Another),
        "The provider failed (other 5xx), immediately or in the middle of a stream.";
    ProviderOverloaded = "provider_overloaded", fails(Policy, Unasked, Down, Another),
        "The provider is overloaded (503 and 529).";
    Unreachable = "unreachable", fails(Policy, Unasked, Down, Another),
        "There is no connection to the server.";
    Timeout = "timeout", fails(Policy, Paid, Broken, Another),
        "No connection, no token or no end came in time.";
    Disconnected = "disconnected", fails(Policy, Paid, Broken, Another),
        "The connection ended before an answer.";
    Truncated = "truncated", fails(Policy, Paid, Broken, Another),
        "The answer broke off.";
    BadResponse = "bad_response", fails(Policy, Paid, Answers, Another),
        "The response is not an answer.";
    CircuitOpen = "circuit_open", fails(Policy, Unasked, Down, Another),
        "The calls before it did not get through, so the call was not made.";
    Outage = "outage", fails(Never, Unasked, Unknown, Same),
        "The place did not answer for as long as the definition waits.";
    Limited = "limited", fails(Policy, Unasked, Unknown, Another),
        "The turn of the call is far away, so it was not made.";
    Tls = "tls", fails(Never, Unasked, Broken, Another),
        "This program could not set up TLS.";
    Unauthorized = "unauthorized", fails(Never, Unasked, Answers, Another),
        "The provider refuses the key.";
    InsufficientQuota = "insufficient_quota", fails(Never, Unasked, Answers, Another),
        "The account is used up.";
    ModelNotFound = "model_not_found", fails(Never, Unasked, Answers, Another),
        "The provider does not have the model.";
    NoTools = "no_tools", fails(Never, Unasked, Answers, Another),
        "The model cannot call tools.";
    NotSupported = "not_supported", fails(Never, Unasked, Answers, Another),
        "The provider cannot do what was asked for.";
    TooLarge = "too_large", fails(Never, Paid, Answers, Another),
        "The request or the answer is too large.";
    NoModel = "no_model", fails(Never, Unasked, Unknown, Another),
        "This process cannot use the model.";
    ContextOverflow = "context_overflow", fails(Never, Unasked, Answers, Same),
        "The request is longer than the model's context.";
    InvalidRequest = "invalid_request", fails(Never, Unasked, Answers, Same),
        "The provider refuses the request.";
    ContentFilter = "content_filter", fails(Never, Paid, Answers, Same),
        "A filter of the provider stopped the answer.";
    Misfit = "misfit", fails(Never, Paid, Answers, Same),
        "The answer does not fit into a line of the log.";
    Limit = "limit", fails(Never, Unasked, Unknown, Same),
        "A budget does not allow the call.";
    Expression = "expression", fails(Never, Unasked, Unknown, Same),
        "An expression of the request could not be evaluated.";
    Hook = "hook", fails(Never, Unasked, Unknown, Same),
        "A hook failed before the call.";
    Failed = "failed", fails(Never, Paid, Unknown, Same),
        "This program could not make the call, or an adapter panicked.";
    Cancelled = "cancelled", fails(Never, Paid, Unknown, Same),
        "The call was cancelled.";
    ScriptMissing = "script_missing", fails(Never, Unasked, Unknown, Same),
        "The script has no further answer.";
    ScriptBroken = "script_broken", fails(Never, Paid, Unknown, Same),
        "A template of the script could not be rendered.";
}

impl FailureCode {
    /// Returns the advice on retries. Advice of the server takes precedence.
    pub const fn retry(self) -> Retry {
        self.row().retry
    }

    /// Returns true if the model may have done work, so that the failed call may have cost something. Otherwise there was no
    /// connection, or the call was refused before any work.
    pub const fn was_asked(self) -> bool {
        matches!(self.row().model, Paid)
    }

    /// Returns the state of the place after the failure.
    pub const fn place(self) -> PlaceState {
        self.row().place
    }

    /// Returns true if another model may answer after this final failure: the place does not work or refuses requests, the key
    /// is refused, or the model does not exist or cannot do what was asked for. False if the request itself is wrong, because
    /// it would fail with every model, and if the fault is in this program.
    pub const fn may_fall_back(self) -> bool {
        matches!(self.row().then, Another)
    }
}
