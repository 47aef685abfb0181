//! Keys of the file, its values and events.

use super::{DATA, Key, NAMES, TEXTS, TYPES, Table, Ty, agent, key, test, tool};

pub(crate) static FILE: Table = Table {
    name: "File",
    words: "a definition",
    keys: &[
        key(
            "steersman",
            Ty::Integer(0),
            "1",
            "Version of the format: 1.",
        ),
        key(
            "name",
            Ty::Text,
            "file or folder name",
            "Name of the network.",
        ),
        key("description", Ty::Text, "–", "One line for lists."),
        key(
            "import",
            Ty::List(&Ty::Path),
            "–",
            "Other files of this format, merged into this one.",
        ),
        key(
            "timezone",
            Ty::Text,
            "UTC",
            "Zone of `now`, of `until` and of dates.",
        ),
        key(
            "config",
            Ty::Names(&CONFIG_TY),
            "–",
            "Plain values, `config.NAME`.",
        ),
        key(
            "secrets",
            Ty::Names(&Ty::Table(&SECRET)),
            "–",
            "Handles, usable in transport fields only.",
        ),
        key(
            "models",
            Ty::Names(&MODEL_TY),
            "default: auto",
            "Models by name.",
        ),
        key(
            "embeddings",
            Ty::Name,
            "full text alone",
            "A model of `models`, by whose `/v1/embeddings` passages are found: those of `knowledge`, `notes` and `relevant`.",
        ),
        key(
            "memory",
            Ty::Or(&[Ty::Table(&MEMORY), Ty::Template]),
            "the network's name, for ever",
            "Whose memory the built-in set `memory` saves to and searches: a scope, or a scope and how long.",
        ),
        key(
            "state",
            TYPES,
            "–",
            "Shared data of the entry agent's instance.",
        ),
        key(
            "events",
            Ty::Names(&Ty::Table(&EVENT)),
            "–",
            "Messages from outside that are not chat.",
        ),
        key("labels", TEXTS, "–", "What a session is found by."),
        key(
            "outcome",
            Ty::Map(&Ty::Expr),
            "–",
            "What a session came to, as named values.",
        ),
        key(
            "mcp",
            Ty::Names(&Ty::Table(&MCP)),
            "–",
            "MCP servers; their tools are called `SERVER.TOOL` here.",
        ),
        key("tools", Ty::Names(&Ty::Table(&tool::TOOL)), "–", "Tools."),
        key(
            "agents",
            Ty::Names(&Ty::Table(&agent::AGENT)),
            "required",
            "Agents.",
        ),
        key(
            "entry",
            Ty::Or(&[Ty::Name, NAMES]),
            "the only agent that no other names",
            "Who gets the first message.",
        ),
        key(
            "limits",
            Ty::Table(&agent::LIMITS),
            "see Limits",
            "For the whole session.",
        ),
        key(
            "context",
            Ty::Table(&agent::CONTEXT),
            "–",
            "Default for all model-driven agents.",
        ),
        key(
            "record",
            Ty::List(&Ty::Word(&[("raw", true), ("requests", true)])),
            "[]",
            "Answers of tools as they came; rendered requests.",
        ),
        key(
            "texts",
            Ty::Or(&[Ty::Path, Ty::Map(&Ty::Or(&[Ty::Template, TEXTS]))]),
            "built in, English",
            "The engine's own sentences, by key; each a text, or texts by `state.language`; or a file of them. The keys stand under Sentences.",
        ),
        key(
            "tests",
            Ty::Map(&Ty::Table(&test::TEST)),
            "–",
            "Offline tests; never part of the digest.",
        ),
    ],
    one_of: &[],
};

pub(crate) static MEMORY: Table = Table {
    name: "Memory",
    words: "a memory",
    keys: &[
        key(
            "scope",
            Ty::Template,
            "the network's name",
            "Sessions with the same scope share what they remember: text and `{{ .. }}`, seen from the entry. Where a value is unset, nothing is saved or found.",
        ),
        key(
            "keep",
            Ty::Duration,
            "for ever",
            "How long what is saved is kept.",
        ),
    ],
    one_of: &[],
};

const CONFIG_TY: Ty = Ty::Or(&[Ty::Table(&CONFIG), Ty::Any]);
const MODEL_TY: Ty = Ty::Or(&[Ty::Table(&MODEL), Ty::Word(PROVIDERS)]);
const PROVIDERS: &[(&str, bool)] = &[
    ("auto", true),
    ("openai", true),
    ("anthropic", true),
    ("compatible", true),
    ("scripted", true),
    ("gemini", false),
    ("responses", false),
];

pub(crate) static CONFIG: Table = Table {
    name: "Config",
    words: "a config value",
    keys: &[
        key(
            "type",
            Ty::Word(&[
                ("string", true),
                ("integer", true),
                ("number", true),
                ("boolean", true),
            ]),
            "string, or the type of `default`",
            "What it is; a value of the environment is read as this.",
        ),
        key("env", Ty::Text, "–", "Environment variable."),
        key(
            "default",
            Ty::Any,
            "–",
            "Used when the variable is unset; without it the variable is required.",
        ),
        key(
            "live",
            Ty::Boolean,
            "false",
            "Read at each use in a transport field, outside the digest.",
        ),
    ],
    one_of: &[],
};

pub(crate) static SECRET: Table = Table {
    name: "Secret",
    words: "a secret",
    keys: &[
        key("env", Ty::Text, "–", "Environment variable."),
        key(
            "file",
            Ty::Text,
            "–",
            "Content of a file, last newline cut.",
        ),
        key(
            "optional",
            Ty::Boolean,
            "false",
            "Unset renders as an absent header or field.",
        ),
    ],
    one_of: &[(true, &["env", "file"])],
};

pub(crate) static MODEL: Table = Table {
    name: "Model",
    words: "a model",
    keys: &[
        key("provider", Ty::Word(PROVIDERS), "auto", "Wire and place."),
        key("model", Ty::Text, "–", "Name at the provider."),
        key("url", Ty::Template, "the provider's", "Base address."),
        key("key", Ty::Template, "by provider", "A secret."),
        key(
            "temperature",
            Ty::Number,
            "the provider's",
            "Sampling temperature.",
        ),
        key(
            "max_tokens",
            Ty::Integer(1),
            "the provider's",
            "Longest answer.",
        ),
        key(
            "window",
            Ty::Integer(1),
            "as known of the model",
            "Tokens that a request and its answer may have together. At 70 % of it contexts are compacted.",
        ),
        key("params", Ty::Map(&Ty::Any), "–", "Sent as they are."),
        key(
            "fallback",
            NAMES,
            "–",
            "Models that are asked in its place, in this order, when it cannot answer.",
        ),
        key(
            "retry",
            Ty::Table(&MODEL_RETRY),
            "tried 5 times, then waited for 24 h",
            "What is done while its place does not answer.",
        ),
        key(
            "calls",
            Ty::Word(&[
                ("auto", true),
                ("native", true),
                ("structured", true),
                ("text", true),
            ]),
            "auto",
            "How tools are told and called.",
        ),
        key(
            "rate",
            Ty::Rate(true),
            "none",
            "How often it is asked at most: `5/s`, `100/min`, `100/min, 40000 tokens/min`. All sessions of a process share one limiter per provider and key.",
        ),
        key(
            "price",
            Ty::Table(&PRICE),
            "of the built-in table, where the provider's own address is asked",
            "What a million tokens cost.",
        ),
    ],
    one_of: &[],
};

pub(crate) static MODEL_RETRY: Table = Table {
    name: "ModelRetry",
    words: "what is done while a model does not answer",
    keys: &[
        key(
            "for",
            Ty::Duration,
            "24h",
            "How long a call waits for a place that does not answer: the session is parked. `0s`: the call fails.",
        ),
        key(
            "times",
            Ty::Integer(1),
            "5",
            "Attempts of one call at most, one after the other, before it waits or fails.",
        ),
    ],
    one_of: &[],
};

/// A price. Missing kinds of input cost as much as plain input, which is at least the provider's price except for writing to
/// its cache.
pub(crate) static PRICE: Table = Table {
    name: "Price",
    words: "a price",
    keys: &[
        key("input", Ty::Money, "required", "A million tokens in.").required(),
        key(
            "cached",
            Ty::Money,
            "as `input`",
            "The same where the provider had cached them.",
        ),
        key(
            "cache_write",
            Ty::Money,
            "as `input`",
            "The same where the provider was asked to keep them.",
        ),
        key("output", Ty::Money, "required", "A million tokens out.").required(),
    ],
    one_of: &[],
};

pub(crate) static MCP: Table = Table {
    name: "Mcp",
    words: "an MCP server",
    keys: &[
        key("url", Ty::Template, "–", "Streamable HTTP."),
        key(
            "command",
            Ty::List(&Ty::Template),
            "–",
            "Standard input and output: program and arguments, no shell.",
        ),
        key("headers", TEXTS, "–", "With `url`. Secrets resolve here."),
        key(
            "env",
            TEXTS,
            "–",
            "With `command`. Secrets resolve here, not in the vector.",
        ),
        key(
            "tools",
            Ty::List(&Ty::Text),
            "all",
            "Which tools are taken; `*` matches.",
        ),
        key(
            "effect",
            Ty::Word(&[
                ("pure", true),
                ("read", true),
                ("idempotent", true),
                ("unsafe", true),
                ("annotations", true),
            ]),
            "unsafe",
            "Class of its tools; `annotations` trusts the server's own hints.",
        ),
        key(
            "effects",
            Ty::Map(&super::CLASS),
            "–",
            "Class by tool, before `effect`.",
        ),
        key(
            "render",
            Ty::Map(&Ty::Table(&tool::RENDER)),
            "–",
            "How calls and results look, by tool.",
        ),
        key(
            "refresh",
            Ty::Word(&[("pinned", true), ("follow", true)]),
            "pinned",
            "Whether a changed list of tools is taken over.",
        ),
        key("timeout", Ty::Duration, "60s", "Of one attempt."),
        key(
            "override",
            Ty::Boolean,
            "false",
            "Replaces one of an imported file.",
        ),
    ],
    one_of: &[(true, &["url", "command"])],
};

pub(crate) static EVENT: Table = Table {
    name: "Event",
    words: "an event",
    keys: &[
        key("fields", TYPES, "required", "The payload.").required(),
        key("id", Ty::Template, "required", "Each id is accepted once.").required(),
        key(
            "session",
            Ty::Template,
            "–",
            "Key of the session that it belongs to.",
        ),
        key(
            "keep",
            Ty::Duration,
            "30d",
            "How long one that no wait took is kept.",
        ),
        key("start", Ty::Table(&START), "–", "Opens a session."),
    ],
    one_of: &[],
};

pub(crate) static START: Table = Table {
    name: "Start",
    words: "the start by an event",
    keys: START_KEYS,
    one_of: &[],
};

const START_KEYS: &[Key] = &[
    key("agent", Ty::Name, "entry", "Who begins."),
    key("args", DATA, "–", "Arguments for the agent's parameters."),
    key("message", Ty::Template, "–", "The first message."),
];
