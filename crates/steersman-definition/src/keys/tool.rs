//! Keys of tools.

use super::{
    APPROVE as APPROVE_TY, CLASS, DATA, NAMES, REQUIRES as REQUIRES_TY, TEXTS, THEN as THEN_TY,
    TYPES, Table, Ty, key,
};

pub(crate) static TOOL: Table = Table {
    name: "Tool",
    words: "a tool",
    keys: &[
        key(
            "description",
            Ty::Text,
            "required if a model is offered it",
            "Told to the model.",
        ),
        key(
            "parameters",
            Ty::Or(&[TYPES, Ty::Path]),
            "{}",
            "Arguments, checked before it runs; a path names a JSON Schema.",
        ),
        key(
            "effect",
            CLASS,
            "`unsafe`; without a source, or with `wait` or `ask`: `pure`",
            "Effect class.",
        ),
        key(
            "requires",
            REQUIRES_TY,
            "–",
            "All must hold, else a refusal.",
        ),
        key(
            "approve",
            APPROVE_TY,
            "–",
            "A person decides on exactly these arguments.",
        ),
        key("http", Ty::Table(&HTTP), "–", "A request."),
        key(
            "command",
            Ty::List(&Ty::Template),
            "–",
            "A program and its arguments, no shell.",
        ),
        key("env", TEXTS, "–", "For `command`; secrets resolve here."),
        key(
            "native",
            Ty::Or(&[Ty::Integer(0), Ty::Text]),
            "–",
            "In Rust, registered under this name; its version.",
        ),
        key("wait", Ty::Table(&WAIT), "–", "Parks the call."),
        key(
            "ask",
            Ty::Name,
            "–",
            "Puts the argument `question` to this person.",
        ),
        key(
            "send",
            Ty::Name,
            "–",
            "Puts the argument `message` into this agent's inbox.",
        ),
        key("set", DATA, "–", "State writes on success."),
        key(
            "result",
            Ty::Template,
            "the result as JSON",
            "What the model sees on success.",
        ),
        key(
            "on_error",
            Ty::Map(&Ty::Table(&ON_ERROR)),
            "–",
            "By code, the most specific first.",
        ),
        key(
            "on_doubt",
            Ty::Or(&[
                Ty::Word(&[("ask", true), ("fail", true)]),
                Ty::Table(&DOUBT),
            ]),
            "`ask` if a person can be reached, else `fail`",
            "Way out of doubt.",
        ),
        key("simulate", Ty::Data, "–", "Result in dry mode."),
        key(
            "repeat",
            Ty::Word(&[("ask", true), ("allow", true)]),
            "ask",
            "A call with the same arguments as an effect that was done before in the session: a person is asked, or it runs.",
        ),
        key(
            "then",
            THEN_TY,
            "–",
            "Another tool follows, with no model turn between.",
        ),
        key(
            "mode",
            Ty::Template,
            "–",
            "On success: the mode in which its caller is next. A text that is empty leaves it as it is, and so does a caller that has no modes.",
        ),
        key(
            "reflect",
            super::REFLECTS,
            "–",
            "Judges each result, and the call may be made again; of `unsafe` tools the arguments, before the call. `rounds` is how often in a row it may be sent back.",
        ),
        key(
            "render",
            Ty::Table(&RENDER),
            "–",
            "How call and result look in the context.",
        ),
        key("timeout", Ty::Duration, "60s", "Of one attempt."),
        key("retry", Ty::Integer(0), "4", "Further attempts at most."),
        key("parallel", Ty::Integer(1), "8", "At once, per process."),
        key(
            "override",
            Ty::Boolean,
            "false",
            "Replaces one of an imported file.",
        ),
    ],
    one_of: &[(false, &["http", "command", "native", "wait", "ask", "send"])],
};

pub(crate) static HTTP: Table = Table {
    name: "Http",
    words: "a request",
    keys: &[
        key(
            "url",
            Ty::Template,
            "required",
            "Values put into path or query are percent-encoded; `| raw` says otherwise.",
        )
        .required(),
        key(
            "method",
            Ty::Word(&[
                ("GET", true),
                ("POST", true),
                ("PUT", true),
                ("PATCH", true),
                ("DELETE", true),
                ("HEAD", true),
            ]),
            "`GET`, with a body `POST`",
            "Method.",
        ),
        key(
            "query",
            Ty::Or(&[DATA, Ty::Template]),
            "–",
            "`none` is left out.",
        ),
        key("headers", TEXTS, "–", "Headers."),
        key("json", Ty::Data, "–", "JSON body."),
        key("form", DATA, "–", "Form body."),
        key(
            "file",
            Ty::Template,
            "–",
            "Body: the artifact of this name.",
        ),
        key(
            "key_header",
            Ty::Text,
            "Idempotency-Key",
            "Carries the effect id of `idempotent` tools.",
        ),
        key(
            "save",
            Ty::Template,
            "–",
            "Stores the body as an artifact of this name; the result is the name.",
        ),
        key(
            "outcomes",
            Ty::Map(&Ty::Word(&[
                ("done", true),
                ("not_performed", true),
                ("unknown", true),
            ])),
            "2xx done; 4xx but 408 not_performed; else unknown",
            "What a status means.",
        ),
        key(
            "rate",
            Ty::Rate(false),
            "none",
            "How often it is sent at most: `5/s`, `100/min`. All tools and sessions of a process that ask one host at one rate share a limiter.",
        ),
    ],
    one_of: &[(false, &["json", "form", "file"])],
};

pub(crate) static REQUIRES: Table = Table {
    name: "Requires",
    words: "a precondition",
    keys: &[
        key("that", Ty::Expr, "required", "Must hold.").required(),
        key(
            "else",
            Ty::Template,
            "the expression",
            "What the model is told.",
        ),
    ],
    one_of: &[],
};

pub(crate) static APPROVE: Table = Table {
    name: "Approve",
    words: "an approval",
    keys: &[
        key("when", Ty::Expr, "true", "Whether it is wanted."),
        key("by", Ty::Name, "user", "A person, or `user`."),
        key("ask", Ty::Template, "tool and arguments", "The question."),
        key(
            "show",
            NAMES,
            "–",
            "Parameters that are artifacts, shown with it.",
        ),
        key(
            "edit",
            NAMES,
            "none",
            "Arguments that the approver may change.",
        ),
        key("timeout", Ty::Duration, "none: waits", "How long it waits."),
        key(
            "on_timeout",
            Ty::Or(&[
                Ty::Word(&[("reject", true), ("approve", true)]),
                Ty::Table(&APPROVE),
            ]),
            "reject",
            "What happens then: or the next in line, who is asked.",
        ),
    ],
    one_of: &[],
};

pub(crate) static DOUBT: Table = Table {
    name: "Doubt",
    words: "a way out of doubt",
    keys: &[
        key(
            "probe",
            Ty::Name,
            "none: a person says",
            "A `pure` or `read` tool that finds out. It is tried again as its own `retry` says.",
        ),
        key("args", DATA, "–", "Its arguments."),
        key(
            "done",
            Ty::Expr,
            "required with `probe`",
            "Over `result`: it happened.",
        ),
        key(
            "else",
            Ty::Word(&[("not_performed", true), ("ask", true), ("fail", true)]),
            "ask",
            "When `done` is false.",
        ),
        key(
            "by",
            Ty::Or(&[Ty::Name, NAMES]),
            "who is asked to approve the call, else `any`",
            "Who is asked, where a probe has not settled it: people, `user` or `any`. One answer is enough.",
        ),
    ],
    one_of: &[],
};

pub(crate) static ON_ERROR: Table = Table {
    name: "OnError",
    words: "an entry of `on_error`",
    keys: &[
        key("set", DATA, "–", "State writes."),
        key(
            "result",
            Ty::Template,
            "code and message",
            "What the model sees.",
        ),
        key("then", THEN_TY, "–", "A tool that follows."),
    ],
    one_of: &[],
};

pub(crate) static THEN: Table = Table {
    name: "Then",
    words: "a tool that follows",
    keys: &[
        key("tool", Ty::Name, "required", "Which.").required(),
        key("args", DATA, "result", "Its arguments."),
    ],
    one_of: &[],
};

pub(crate) static WAIT: Table = Table {
    name: "Wait",
    words: "a wait",
    keys: &[
        key("event", Ty::Name, "–", "For an event."),
        key(
            "match",
            TEXTS,
            "required with `event`, unless that has `session`",
            "Fields that must be equal.",
        ),
        key(
            "when",
            Ty::Expr,
            "–",
            "With `event`: in addition. Alone: over state.",
        ),
        key(
            "time",
            Ty::Or(&[Ty::Duration, Ty::Template]),
            "–",
            "A span of time.",
        ),
        key("until", Ty::Template, "–", "A date and time."),
        key(
            "branches",
            Ty::Or(&[Ty::Integer(1), Ty::Word(&[("all", true), ("any", true)])]),
            "–",
            "Those forked here.",
        ),
        key("ticks", Ty::Integer(1), "–", "Commits of this branch."),
        key("any", Ty::List(&Ty::Table(&WAIT)), "–", "One of several."),
        key("all", Ty::List(&Ty::Table(&WAIT)), "–", "All of several."),
        key("timeout", Ty::Duration, "none", "How long at most."),
        key(
            "on_timeout",
            Ty::Template,
            "error `timeout`",
            "The result instead.",
        ),
    ],
    one_of: &[(
        false,
        &["event", "time", "until", "branches", "ticks", "any", "all"],
    )],
};

pub(crate) static RENDER: Table = Table {
    name: "Render",
    words: "`render`",
    keys: &[
        key("call", Ty::Template, "as called", "Instead of the call."),
        key(
            "result",
            Ty::Template,
            "the tool's `result`",
            "Instead of the result.",
        ),
        key(
            "horizon",
            Ty::Or(&[Ty::Integer(1), Ty::Table(&HORIZON)]),
            "none: for ever",
            "How many of the agent's newest exchanges show it whole, at least. What is older goes in chunks, so that prefixes stay the same.",
        ),
        key(
            "beyond",
            Ty::Word(&[
                ("drop", true),
                ("stub", true),
                ("summary", true),
                ("elide", true),
            ]),
            "stub; with `elide` and no `stub`: elide",
            "What becomes of it then: `drop` leaves call and result out, `stub` replaces the result, `summary` lets a model sum the results up, `elide` leaves arguments out alone.",
        ),
        key(
            "stub",
            Ty::Template,
            "(result no longer shown)",
            "The text instead of the result.",
        ),
        key(
            "elide",
            Ty::List(&Ty::Text),
            "–",
            "Arguments that are `...` then.",
        ),
        key("model", Ty::Name, "default", "Writes the summary."),
        key(
            "spill",
            Ty::Size,
            "16KiB",
            "Larger results become artifacts: the call gets their beginning and a reference. Results of agents and people have 16KiB.",
        ),
    ],
    one_of: &[],
};

pub(crate) static HORIZON: Table = Table {
    name: "Horizon",
    words: "a horizon",
    keys: &[key(
        "own",
        Ty::Integer(1),
        "required",
        "Counts the exchanges with this tool alone.",
    )
    .required()],
    one_of: &[],
};
