//! Keys of agents, people, contexts and limits.

use super::{APPROVE, DATA, Key, REQUIRES, TYPES, Table, Ty, key, route};

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
        key(
            "modes",
            Ty::Names(&Ty::Table(&MODE)),
            "–",
            "Variants of the agent, of which one is in force. What a mode does not say is the agent's.",
        ),
        key("start", Ty::Name, "first of `modes`", "First mode."),
        key(
            "exits",
            Ty::List(&Ty::Table(&MODE_EXIT)),
            "–",
            "Beside `modes`: what leads out of every mode. Looked at ahead of the mode's own; one that leads to the mode in force is passed over.",
        ),
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
        key(
            "reflect",
            super::REFLECTS,
            "–",
            "Judges the answer before anybody is told: by itself, or `by` a reviewer. `true` is by itself, one round.",
        ),
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
        key(
            "search",
            Ty::Table(&SEARCH),
            "–",
            "Answers by search over branches, dry unless it says otherwise. The branch that is worth most is adopted; where none can be, it answers without.",
        ),
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

/// A mode. Its keys are those of an agent that it may override, and its exits.
pub(crate) static MODE: Table = Table {
    name: "Mode",
    words: "a mode",
    keys: &[
        key("system", Ty::Prompt, "the agent's", "The system prompt."),
        key("model", Ty::Name, "the agent's", "Model by name."),
        key(
            "params",
            Ty::Map(&Ty::Any),
            "–",
            "Over the agent's, one by one.",
        ),
        key(
            "tools",
            TOOLS,
            "the agent's",
            "Tools, agents, built-in sets; instead of the agent's.",
        ),
        key(
            "tool_choice",
            Ty::Text,
            "the agent's",
            "`auto`, `any`, `none`, or a tool.",
        ),
        key("prefill", Ty::Template, "the agent's", "Begins the answer."),
        key(
            "context",
            Ty::Table(&CONTEXT),
            "–",
            "How its context is put together; over the agent's, key by key.",
        ),
        key(
            "limits",
            Ty::Table(&LIMITS),
            "–",
            "Over the agent's, one by one. What they count goes on over modes.",
        ),
        key(
            "exits",
            Ty::List(&Ty::Table(&MODE_EXIT)),
            "stays for ever",
            "What leads out, in order: the first that fires.",
        ),
    ],
    one_of: &[],
};

pub(crate) static MODE_EXIT: Table = Table {
    name: "ModeExit",
    words: "an exit of a mode",
    keys: &[
        key(
            "after_tool",
            Ty::Or(&[Ty::Text, Ty::List(&Ty::Text)]),
            "–",
            "One of these tools or agents succeeded in the exchange that just closed.",
        ),
        key(
            "after_calls",
            Ty::Integer(1),
            "–",
            "So many model calls were made since the mode began.",
        ),
        key(
            "when",
            Ty::Expr,
            "–",
            "Holds. Judged when an exchange has closed, and where a model call is owed.",
        ),
        key(
            "to",
            Ty::Name,
            "–",
            "A mode; or `finish`: the task ends with what was said last, and the next one begins in `start`.",
        )
        .required(),
    ],
    one_of: &[(true, &["after_tool", "after_calls", "when"])],
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

pub(crate) static REFLECT: Table = Table {
    name: "Reflect",
    words: "a reflection",
    keys: &[
        key(
            "by",
            Ty::Name,
            "itself",
            "A reviewer: an agent that is called with what it is to judge, and says `accept` or what to revise. Itself: one model call a round, whose answer is `accept` or the new draft.",
        ),
        key(
            "rounds",
            Ty::Integer(1),
            "1",
            "At an agent: how often one answer is judged; the last draft is the answer then. At a tool: how often in a row a call of it may be sent back.",
        ),
        key(
            "when",
            Ty::Expr,
            "true",
            "Whether this one is judged, over `result`, at a tool `args` and `result`.",
        ),
        key(
            "prompt",
            Ty::Template,
            "built in",
            "What the agent is told; for a reviewer its argument `prompt`, or the beginning of its `message`.",
        ),
    ],
    one_of: &[],
};

/// Type of `view`: the part of the others' work that an agent sees.
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
            "join",
            Ty::Or(&[Ty::Integer(1), Ty::Expr]),
            "all",
            "`fork`: when it is over: `all`, `any`, how many must end, or over `done`, `failed`, `open`, `answers`.",
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

pub(crate) static SEARCH: Table = Table {
    name: "Search",
    words: "a search",
    keys: &[
        key(
            "method",
            Ty::Word(&[
                ("best_of", true),
                ("beam", true),
                ("rollouts", true),
                ("mcts", true),
            ]),
            "best_of",
            "`best_of`: independent branches, each to its end. `beam`: block by block, the best `width` of each level go on. `rollouts`: `width` first blocks, each tried to the end in turn. `mcts`: each branch begins where it promises most.",
        ),
        key(
            "n",
            Ty::Integer(1),
            "4",
            "Branches in all, at most 1000; of `beam`: of each level.",
        ),
        key(
            "width",
            Ty::Integer(1),
            "`beam`: half of `n`; else 3",
            "`beam`: how many of a level go on. `rollouts`: how many first blocks. `mcts`: how often it branches at one place.",
        ),
        key(
            "depth",
            Ty::Integer(1),
            "32",
            "Blocks of a branch at most; there it is judged as it stands.",
        ),
        key(
            "score",
            Ty::Expr,
            "–",
            "What a branch is worth: a number (or true, false) over `answer`, `state`, `calls`. One of `score`, `by`.",
        ),
        key(
            "by",
            Ty::Name,
            "–",
            "Who says so: a `pure` or `read` tool, or an agent, that answers a number. It gets `answer` and `state`, and entries of the state by their names.",
        ),
        key(
            "enough",
            Ty::Number,
            "–",
            "A branch that is worth as much ends the search.",
        ),
        key(
            "budget",
            Ty::Table(&SEARCH_BUDGET),
            "–",
            "What all branches may use together; then the best so far is taken.",
        ),
        key(
            "seed",
            Ty::Integer(0),
            "the session's",
            "What sampling begins from: each branch has a seed of its own, for models whose parameters have a `seed`, and for scripts.",
        ),
        key(
            "effects",
            Ty::Word(&[("dry", true), ("live", true)]),
            "dry",
            "Whether tools that touch the world run on the branches.",
        ),
    ],
    one_of: &[(true, &["score", "by"])],
};

pub(crate) static SEARCH_BUDGET: Table = Table {
    name: "SearchBudget",
    words: "the budget of a search",
    keys: &[
        key(
            "model_calls",
            Ty::Integer(1),
            "–",
            "Model calls, those of agents that are called included. A block that began is finished.",
        ),
        key("tokens", Ty::Integer(1), "–", "Tokens in and out."),
        key(
            "cost",
            Ty::Money,
            "–",
            "Money, in the currency of the prices.",
        ),
    ],
    one_of: &[],
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
        key(
            "compact",
            Ty::Table(&COMPACT),
            "at 70 % of the model's `window`, if that is known",
            "A model sums up what lies further back before the context grows too large.",
        ),
    ],
    one_of: &[],
};

pub(crate) static COMPACT: Table = Table {
    name: "Compact",
    words: "a compaction",
    keys: &[
        key(
            "when_tokens",
            Ty::Integer(1),
            "70 % of the model's `window`",
            "Tokens of a request from which on it is compacted: as the provider counted, else a token for four bytes.",
        ),
        key("model", Ty::Name, "default", "Writes the summary."),
        key(
            "keep_exchanges",
            Ty::Integer(1),
            "10",
            "The newest exchanges, which are never compacted.",
        ),
        key("prompt", Ty::Prompt, "built in", "What its model is told."),
    ],
    one_of: &[],
};

const COUNT: Ty = Ty::Or(&[Ty::Integer(1), Ty::Table(&LIMIT)]);
const OF_ANSWER: Ty = Ty::Or(&[Ty::Integer(1), Ty::Table(&ANSWER_LIMIT)]);
const BOUND: Ty = Ty::Or(&[Ty::Integer(1), Ty::Table(&BOUND_LIMIT)]);

/// Limits. At an agent, they cover it and, for limits that are counted, everything it started. At the top, they cover the
/// root and so all agents. If an agent reaches a limit of an agent above it, it ends; the agent above applies the outcome
/// of the limit when it moves next.
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
    "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there.",
);

pub(crate) static LIMIT: Table = Table {
    name: "Limit",
    words: "a limit",
    keys: &[MOST, PER, ON_LIMIT],
    one_of: &[],
};

/// A limit on events in a row; its count starts again with each answer.
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

/// A bound that is never exceeded, so it has neither a period nor an outcome.
pub(crate) static BOUND_LIMIT: Table = Table {
    name: "Bound",
    words: "a bound",
    keys: &[MOST],
    one_of: &[],
};

/// A limit whose maximum is a duration.
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

/// A limit whose maximum is an amount of money.
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
