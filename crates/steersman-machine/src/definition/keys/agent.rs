//! Keys of agents, people, contexts and limits.

use super::{APPROVE, DATA, Key, REQUIRES, TYPES, Table, Ty, key, later, route};

const TOOLS: Ty = Ty::List(&Ty::Or(&[Ty::Text, Ty::Table(&TOOL_USE)]));

pub(crate) static AGENT: Table = Table {
    name: "Agent",
    words: "an agent",
    keys: &[
        key(
            "description",
            Ty::Text,
            "required where a model chooses it",
            "Told to models that may choose it.",
        ),
        key(
            "parameters",
            TYPES,
            "{ message: string }",
            "How it is called.",
        ),
        key(
            "output",
            Ty::Or(&[Ty::Text, Ty::Type]),
            "text",
            "Structured answer; `state.NAME` takes that entry's type and writes it there.",
        ),
        key("set", DATA, "–", "State writes at its end, over `result`."),
        key("state", TYPES, "–", "Opens a scope with each instance."),
        key(
            "enter",
            Ty::Word(&[("keep", true), ("fresh", true)]),
            "keep",
            "Scope when it is called again.",
        ),
        key("system", Ty::Prompt, "–", "The system prompt."),
        key("model", Ty::Name, "default", "Model by name."),
        key("params", Ty::Map(&Ty::Any), "–", "Over the model's."),
        key("tools", TOOLS, "[]", "Tools, agents, built-in sets."),
        key(
            "tool_choice",
            Ty::Text,
            "auto",
            "`auto`, `any`, `none`, or a tool.",
        ),
        key("prefill", Ty::Template, "–", "Begins the answer."),
        key(
            "net",
            Ty::Text,
            "chat",
            "`chat`, `react`, `refact` (`react` with a reflection after each action), or one registered in Rust.",
        ),
        later("modes", "Variants of the agent."),
        later("start", "First mode."),
        key(
            "before",
            Ty::List(&Ty::Or(&[Ty::Text, Ty::Table(&BEFORE)])),
            "–",
            "Tools that run ahead of every turn, together: `before.NAME` in templates.",
        ),
        key(
            "extract",
            Ty::List(&Ty::Name),
            "–",
            "State entries filled from each new message by one model call, ahead of everything else (of a routed agent ahead of its decision). The model is `small` if one is declared, else `default`. A value that does not fit is left out, and the result says so.",
        ),
        key(
            "knowledge",
            Ty::List(&Ty::Documents),
            "–",
            "Text and Markdown, searched for the newest message ahead of every turn: files and folders.",
        ),
        later("reflect", "Judges the answer."),
        key(
            "context",
            Ty::Table(&CONTEXT),
            "the file's",
            "How its context is put together.",
        ),
        key(
            "view",
            VIEWS,
            "`shared` under `states` and `handoff` and `tasks`, else `own`",
            "What it sees of the others under a routed agent; at a routed agent: default for its members.",
        ),
        key(
            "turns",
            Ty::Word(&[("dialogue", true), ("task", true), ("once", true)]),
            "`dialogue` at the entry, of `tasks` and `handoff` and under them; else `task`",
            "How it ends.",
        ),
        key(
            "limits",
            Ty::Table(&LIMITS),
            "–",
            "For this agent and all it started.",
        ),
        later("search", "Answers by search over branches."),
        key("route", Ty::Table(&route::ROUTE), "–", "A routed agent."),
        key("person", Ty::Table(&PERSON), "–", "A person."),
        key("run", Ty::Name, "–", "No model: one call of this tool."),
        key("args", DATA, "its own arguments", "For `run`."),
        key(
            "override",
            Ty::Boolean,
            "false",
            "Replaces one of an imported file.",
        ),
    ],
    one_of: &[(false, &["route", "person", "run"])],
};

pub(crate) static BEFORE: Table = Table {
    name: "Before",
    words: "a tool that runs ahead of a turn",
    keys: &[
        key("tool", Ty::Text, "–", "A `pure` or `read` tool.").required(),
        key(
            "args",
            DATA,
            "the message, if it takes one text",
            "Its arguments.",
        ),
        key("as", Ty::Name, "the tool's name", "What `before` calls it."),
        key(
            "show",
            Ty::Boolean,
            "true",
            "Shown behind the history without being named.",
        ),
    ],
    one_of: &[],
};

/// What somebody sees of the others.
pub(super) const VIEWS: Ty = Ty::Or(&[SEEN, Ty::Table(&VIEW)]);

const SEEN: Ty = Ty::Word(&[
    ("own", true),
    ("shared", true),
    ("since_last_spoke", true),
    ("since_entry", true),
    ("summary", true),
    ("relevant", true),
]);

pub(crate) static VIEW: Table = Table {
    name: "View",
    words: "a view",
    keys: &[
        key("of", SEEN, "as without it", "What of the others."),
        key("window", Ty::Integer(1), "none", "The newest messages."),
        key(
            "relevant",
            Ty::Integer(0),
            "0; of the word `relevant` 5",
            "Passages of what was said in the network that are found for the newest message and are not seen anyway, 20 at most.",
        ),
        key(
            "summary",
            Ty::Table(&SUMMARY),
            "–",
            "Running summary: what it stands for is left out but for the window. At a member: `summary: {}` shares the one of its network, if that has one.",
        ),
    ],
    one_of: &[],
};

pub(crate) static SUMMARY: Table = Table {
    name: "Summary",
    words: "a summary",
    keys: &[
        key(
            "every",
            Ty::Integer(1),
            "10",
            "Written anew after so many messages of members, before the router decides.",
        ),
        key("model", Ty::Name, "default", "Writes it."),
        key(
            "prompt",
            Ty::Prompt,
            "built in",
            "What that model is told. At a member it reads `config` alone.",
        ),
    ],
    one_of: &[],
};

pub(crate) static TOOL_USE: Table = Table {
    name: "ToolUse",
    words: "an offered tool",
    keys: &[
        key("tool", Ty::Text, "–", "A tool."),
        key("agent", Ty::Name, "–", "An agent."),
        key("as", Ty::Name, "its name", "The name that the model sees."),
        key("args", DATA, "–", "Fixed arguments, hidden from the model."),
        key("requires", REQUIRES, "–", "In addition."),
        key("approve", APPROVE, "–", "In addition."),
        key(
            "named",
            Ty::Boolean,
            "false",
            "An agent: the parameter `name` chooses the instance.",
        ),
        key(
            "view",
            Ty::Word(&[("own", true), ("shared", true)]),
            "own",
            "What a started agent sees of the caller.",
        ),
        key("parallel", Ty::Integer(1), "8", "At once."),
        key(
            "max",
            Ty::Integer(1),
            "–",
            "Calls per answer; of `fork`: branches.",
        ),
        key("when", Ty::Expr, "true", "Offered while it holds."),
        key(
            "choose",
            Ty::Name,
            "–",
            "`fork`: who picks the branch to adopt.",
        ),
        key(
            "effects",
            Ty::Word(&[("dry", true), ("live", true)]),
            "dry",
            "`fork`: whether branches act.",
        ),
    ],
    one_of: &[(true, &["tool", "agent"])],
};

pub(crate) static PERSON: Table = Table {
    name: "Person",
    words: "a person",
    keys: &[
        key("role", Ty::Text, "the agent's name", "Who may answer."),
        key(
            "reach",
            Ty::Name,
            "–",
            "An `idempotent` tool that is run when a question, an approval or a hold opens for them: `question`, `person`.",
        ),
        key(
            "timeout",
            Ty::Duration,
            "none",
            "How long a question waits.",
        ),
        key(
            "on_timeout",
            Ty::Table(&PERSON_TIMEOUT),
            "error `timeout`",
            "What happens then.",
        ),
    ],
    one_of: &[],
};

pub(crate) static PERSON_TIMEOUT: Table = Table {
    name: "PersonTimeout",
    words: "a person's time-out",
    keys: &[
        key("text", Ty::Template, "–", "Answered in the person's place."),
        key(
            "to",
            Ty::Name,
            "–",
            "In a route: the member who acts instead.",
        ),
        key(
            "say",
            Ty::Template,
            "–",
            "Told to the other side, where nothing is answered in their place.",
        ),
    ],
    one_of: &[(false, &["text", "say"])],
};

pub(crate) static CONTEXT: Table = Table {
    name: "Context",
    words: "a context",
    keys: &[
        key(
            "parts",
            Ty::List(&Ty::Word(&[
                ("system", true),
                ("tools", true),
                ("history", true),
                ("now", true),
            ])),
            "[system, tools, history, now]",
            "Order.",
        ),
        key(
            "now",
            Ty::Template,
            "–",
            "Volatile facts, after the history.",
        ),
        key(
            "keep_exchanges",
            Ty::Integer(1),
            "50",
            "Exchanges kept in view.",
        ),
        later("compact", "Summaries of what lies further back."),
    ],
    one_of: &[],
};

const COUNT: Ty = Ty::Or(&[Ty::Integer(1), Ty::Table(&LIMIT)]);
const OF_ANSWER: Ty = Ty::Or(&[Ty::Integer(1), Ty::Table(&ANSWER_LIMIT)]);
const BOUND: Ty = Ty::Or(&[Ty::Integer(1), Ty::Table(&BOUND_LIMIT)]);

/// What stands at an agent covers it and, where it counts, all that it started; what stands at the top covers the root
/// and so everybody. Where a limit of another one is reached, an agent ends, and that one decides when it moves.
pub(crate) static LIMITS: Table = Table {
    name: "Limits",
    words: "limits",
    keys: &[
        key(
            "model_calls",
            COUNT,
            "50 per answer, `answer`",
            "Model calls. The default counts the agent's own; what is written counts those of all it started, too.",
        ),
        key(
            "agent_calls",
            COUNT,
            "100 per answer, `answer`",
            "Calls of agents, counted like model calls. One more is refused with a result; where it was asked for, the limit is reached.",
        ),
        key(
            "parallel",
            BOUND,
            "8",
            "Calls of one exchange at once; the rest waits. At the top: of every agent.",
        ),
        key(
            "depth",
            BOUND,
            "5",
            "How deep agents may stand, the root at 1; a deeper call is refused with a result. The least counts of what is written at the agent, above it and at the top.",
        ),
        key(
            "ticks",
            COUNT,
            "10000 per answer, `fail`",
            "Commits that move the agent; what is written counts those that move any it started, too.",
        ),
        key(
            "same_call",
            OF_ANSWER,
            "3 per answer, `answer`",
            "The same calls with the same arguments and results in a row. Of a route: the same choice over unchanged state (`2`, `fail`). At the top: of every agent.",
        ),
        key(
            "corrections",
            OF_ANSWER,
            "3 per answer, `fail`",
            "Arguments and answers that could not be used. At the top: of every agent.",
        ),
        key(
            "wall_time",
            Ty::Or(&[Ty::Duration, Ty::Table(&TIME_LIMIT)]),
            "none; per session, `fail`",
            "Time since it began. Per answer without the time in which nothing but people and waits keeps it; a call that waits for approval counts as one that runs.",
        ),
        key(
            "tokens",
            COUNT,
            "at the top 2000000, at an agent none; per session, `ask`",
            "Tokens. At the top per session they are drawn ahead of use and count whatever becomes of the branch that spent them; else they are what the answers of this branch used.",
        ),
        key(
            "cost",
            Ty::Or(&[Ty::Money, Ty::Table(&MONEY_LIMIT)]),
            "none; per session, `ask`",
            "Money, in the currency of the prices (US dollars in the built-in table). Drawn and counted like `tokens`. The price of every model must be known.",
        ),
    ],
    one_of: &[],
};

const MOST: Key = key("max", Ty::Integer(1), "required", "At most.").required();
const PER: Key = key(
    "per",
    Ty::Word(&[("answer", true), ("task", true), ("session", true)]),
    "as in Limits",
    "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start.",
);
const ON_LIMIT: Key = key(
    "on_limit",
    Ty::Word(&[
        ("answer", true),
        ("fail", true),
        ("finish", true),
        ("ask", true),
    ]),
    "as in Limits",
    "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again.",
);

pub(crate) static LIMIT: Table = Table {
    name: "Limit",
    words: "a limit",
    keys: &[MOST, PER, ON_LIMIT],
    one_of: &[],
};

/// What is counted in a row counts anew with each answer.
pub(crate) static ANSWER_LIMIT: Table = Table {
    name: "AnswerLimit",
    words: "a limit of one answer",
    keys: &[
        MOST,
        key(
            "per",
            Ty::Word(&[("answer", true)]),
            "answer",
            "Each answer counts anew.",
        ),
        ON_LIMIT,
    ],
    one_of: &[],
};

/// What is never exceeded has no span, and nothing happens at it.
pub(crate) static BOUND_LIMIT: Table = Table {
    name: "Bound",
    words: "a bound",
    keys: &[MOST],
    one_of: &[],
};

/// The same of a duration.
pub(crate) static TIME_LIMIT: Table = Table {
    name: "TimeLimit",
    words: "a limit",
    keys: &[
        key("max", Ty::Duration, "required", "At most.").required(),
        PER,
        ON_LIMIT,
    ],
    one_of: &[],
};

/// The same of money.
pub(crate) static MONEY_LIMIT: Table = Table {
    name: "MoneyLimit",
    words: "a limit",
    keys: &[
        key("max", Ty::Money, "required", "At most.").required(),
        PER,
        ON_LIMIT,
    ],
    one_of: &[],
};
