//! Keys of agents, people, contexts and limits.

use super::{APPROVE, DATA, REQUIRES, TYPES, Table, Ty, key, later, route};

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
            "`chat`, `react`, or one registered in Rust.",
        ),
        later("modes", "Variants of the agent."),
        later("start", "First mode."),
        later("before", "Tools that run ahead of every turn."),
        later("extract", "State entries filled from each message."),
        later("knowledge", "Text searched ahead of every turn."),
        later("reflect", "Judges the answer."),
        key(
            "context",
            Ty::Table(&CONTEXT),
            "the file's",
            "How its context is put together.",
        ),
        later("view", "What it sees of the others."),
        key(
            "turns",
            Ty::Word(&[("dialogue", true), ("task", true), ("once", true)]),
            "`dialogue` at the entry, else `task`",
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
        later("reach", "A tool run when a question opens."),
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
        later("to", "Who takes the floor instead."),
        later("say", "Told to the other side."),
    ],
    one_of: &[],
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

pub(crate) static LIMITS: Table = Table {
    name: "Limits",
    words: "limits",
    keys: &[
        key(
            "model_calls",
            COUNT,
            "50 per answer, `answer`",
            "Model calls.",
        ),
        key(
            "agent_calls",
            COUNT,
            "100 per answer, `answer`",
            "Agent calls.",
        ),
        key(
            "parallel",
            COUNT,
            "8",
            "Calls of one exchange at once; the rest waits.",
        ),
        key(
            "depth",
            COUNT,
            "5",
            "Calls within calls; a deeper one is refused with a result.",
        ),
        key("ticks", COUNT, "10000 per answer, `fail`", "Commits."),
        key(
            "same_call",
            COUNT,
            "3 per answer, `answer`",
            "Same tool, arguments and result.",
        ),
        key(
            "corrections",
            COUNT,
            "3 per answer, `fail`",
            "Answers that could not be used.",
        ),
        key(
            "wall_time",
            Ty::Or(&[Ty::Duration, Ty::Table(&TIME_LIMIT)]),
            "none; per session, `fail`",
            "Time.",
        ),
        key("tokens", COUNT, "2000000 per session, `ask`", "Tokens."),
        later("cost", "Money."),
    ],
    one_of: &[],
};

pub(crate) static LIMIT: Table = Table {
    name: "Limit",
    words: "a limit",
    keys: &[
        key("max", Ty::Integer(1), "required", "At most.").required(),
        key(
            "per",
            Ty::Word(&[("answer", true), ("task", true), ("session", true)]),
            "as in Limits",
            "Counted since.",
        ),
        key(
            "on_limit",
            Ty::Word(&[
                ("answer", true),
                ("fail", true),
                ("finish", true),
                ("ask", true),
            ]),
            "as in Limits",
            "What happens.",
        ),
    ],
    one_of: &[],
};

/// The same of a duration.
pub(crate) static TIME_LIMIT: Table = Table {
    name: "TimeLimit",
    words: "a limit",
    keys: &[
        key("max", Ty::Duration, "required", "At most.").required(),
        key(
            "per",
            Ty::Word(&[("answer", true), ("task", true), ("session", true)]),
            "as in Limits",
            "Counted since.",
        ),
        key(
            "on_limit",
            Ty::Word(&[
                ("answer", true),
                ("fail", true),
                ("finish", true),
                ("ask", true),
            ]),
            "as in Limits",
            "What happens.",
        ),
    ],
    one_of: &[],
};
