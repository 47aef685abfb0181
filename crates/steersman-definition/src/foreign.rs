//! Keys and words of other frameworks, and what stands in their place here, so that a mistake is answered in its writer's words.

use super::source::Kind;

/// Keys of a section that other frameworks have there.
struct Foreign {
    /// Name of the section in the reference.
    section: &'static str,
    keys: &'static [&'static str],
    /// The key that means the same, if there is one. It can be put in the place of the foreign one.
    is: Option<&'static str>,
    advice: &'static str,
}

const fn of(
    section: &'static str,
    keys: &'static [&'static str],
    is: Option<&'static str>,
    advice: &'static str,
) -> Foreign {
    Foreign {
        section,
        keys,
        is,
        advice,
    }
}

const WHO_ACTS: &str = "who acts next is said by an agent with a `route`: `agents: { team: { route: { sequence: [..] } } }`; `rules`, `states`, `pick`, `handoff` \
    and `tasks` are other ways";
const AS_LIMIT: &str = "the end of a loop is a limit: `limits: { model_calls: 25 }`";
const AS_MODEL: &str = "a model is declared once, `models: { NAME: { provider: .., model: .. } }`, and named here: `model: NAME`";
const AS_TOOL: &str = "what a tool does is one of `http`, `command`, `native` (in Rust) or `wait`; without one it only writes state (`set`)";
const SCHEMA: &str = "this is JSON Schema: write `parameters: { NAME: TYPE }` and `{ fields: { NAME: TYPE } }`, or name a file: `parameters: FILE.json`, \
    `{ schema: FILE.json }`";

/// Keys by section.
static KEYS: &[Foreign] = &[
    of(
        "File",
        &["nodes"],
        Some("agents"),
        "agents are the nodes here",
    ),
    of(
        "File",
        &[
            "edges",
            "conditional_edges",
            "graph",
            "process",
            "crew",
            "network",
            "team",
            "workflow",
            "router",
        ],
        None,
        WHO_ACTS,
    ),
    of(
        "File",
        &["entry_point", "start"],
        Some("entry"),
        "`entry` names who gets the first message",
    ),
    of(
        "File",
        &["recursion_limit", "max_iter", "max_turns"],
        None,
        AS_LIMIT,
    ),
    of(
        "File",
        &["checkpointer", "store", "thread_id"],
        None,
        "every session is kept by itself; `--store FILE` names the file",
    ),
    of(
        "File",
        &["llm", "llms", "llm_config"],
        None,
        "models are declared by name: `models: { default: { provider: .., model: .. } }`",
    ),
    of(
        "File",
        &["env"],
        None,
        "values of the environment have names: `config: { NAME: { env: VARIABLE } }`, `secrets: { NAME: { env: VARIABLE } }`",
    ),
    of(
        "File",
        &["tasks"],
        None,
        "what is to be done is said to an agent, in its `system` or as its message; the order of agents is a `route`",
    ),
    of(
        "Agent",
        &["role", "goal", "backstory"],
        None,
        "who an agent is and what it is for is one text: `system`; `description` is what other agents read of it",
    ),
    of(
        "Agent",
        &[
            "system_prompt",
            "system_message",
            "instructions",
            "prompt",
            "instruction",
        ],
        Some("system"),
        "`system` is the system prompt",
    ),
    of(
        "Agent",
        &["llm", "llm_config", "model_client"],
        None,
        AS_MODEL,
    ),
    of(
        "Agent",
        &["temperature", "max_tokens", "top_p"],
        None,
        "what is sent to the model stands under `params`",
    ),
    of(
        "Agent",
        &["name"],
        None,
        "the name of an agent is its key under `agents`",
    ),
    of(
        "Agent",
        &["router"],
        Some("route"),
        "`route` says who acts next",
    ),
    of(
        "Agent",
        &[
            "response_model",
            "output_type",
            "result_type",
            "output_pydantic",
        ],
        Some("output"),
        "`output` is the type of the answer",
    ),
    of(
        "Agent",
        &["expected_output"],
        None,
        "what an answer looks like is said in `system`, or is a type: `output`",
    ),
    of(
        "Agent",
        &["max_iter", "max_turns", "max_steps", "usage_limits"],
        None,
        AS_LIMIT,
    ),
    of(
        "Agent",
        &["toolChoice"],
        Some("tool_choice"),
        "keys are written with `_`",
    ),
    of(
        "Agent",
        &["handoffs", "allow_delegation", "sub_agents", "delegates"],
        None,
        "an agent calls those that its `tools` name; who takes over the conversation is `route: { handoff: { FROM: [TO] } }`",
    ),
    of(
        "Agent",
        &[
            "human_input",
            "human_input_mode",
            "interrupt_before",
            "interrupt_after",
        ],
        None,
        "a person is asked by `approve` at a tool, or is an agent that others call: `{ person: { role: .. } }`",
    ),
    of(
        "Agent",
        &["deps", "deps_type"],
        None,
        "values from outside are `config`, `secrets` and the agent's `parameters`",
    ),
    of(
        "Agent",
        &["lifecycle", "hooks"],
        None,
        "`before` runs tools ahead of every turn, `set` writes state at the end",
    ),
    of(
        "Agent",
        &["output_file"],
        None,
        "an agent with `tools: [artifacts]` can save files",
    ),
    of(
        "Agent",
        &["termination_condition", "termination"],
        None,
        "a loop ends by `limits`, by an exit of its state, or by `tools: [finish]`",
    ),
    of(
        "Tool",
        &["func", "function", "handler", "callback", "code", "fn"],
        None,
        AS_TOOL,
    ),
    of(
        "Tool",
        &["retries", "max_retries"],
        Some("retry"),
        "`retry` is how many further attempts there are",
    ),
    of(
        "Tool",
        &["args_schema", "input_schema", "inputSchema"],
        Some("parameters"),
        "`parameters` are the arguments",
    ),
    of(
        "Tool",
        &["goto"],
        None,
        "another tool follows by `then`; who acts next is said by a `route`",
    ),
    of(
        "Route",
        &["conditional_edges", "edges"],
        None,
        "conditions are `rules: [{ when: .., to: AGENT }]`",
    ),
    of(
        "Route",
        &["process", "manager", "manager_llm"],
        None,
        "`pick: [AGENT, ..]` lets a model choose, `sequence` goes through all",
    ),
    of(
        "Route",
        &["max_turns", "max_round", "max_iter"],
        None,
        "the end of a route is a limit of its agent: `limits: { agent_calls: 10 }`",
    ),
    of(
        "Model",
        &["api_key", "apiKey"],
        Some("key"),
        "`key` is the key",
    ),
    of(
        "Model",
        &["base_url", "baseUrl", "endpoint", "api_base"],
        Some("url"),
        "`url` is the address",
    ),
    of(
        "Limits",
        &[
            "recursion_limit",
            "max_iter",
            "maxIter",
            "max_consecutive_auto_reply",
            "request_limit",
        ],
        Some("model_calls"),
        "`model_calls` counts what is asked of models",
    ),
    of(
        "Limits",
        &["max_turns", "max_round"],
        Some("agent_calls"),
        "`agent_calls` counts turns of agents",
    ),
    of(
        "StateNode",
        &["transitions", "allowed_transitions", "edges"],
        Some("exits"),
        "`exits` lead out of a state: `[{ when: .., to: STATE }]`",
    ),
    of(
        "Type",
        &[
            "properties",
            "additionalProperties",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "$schema",
        ],
        None,
        SCHEMA,
    ),
    of(
        "Type",
        &["required"],
        None,
        "a value is required unless it says `optional: true`",
    ),
    of(
        "Type",
        &["ge", "gte", "min"],
        Some("minimum"),
        "`minimum` is the least",
    ),
    of(
        "Type",
        &["le", "lte", "max"],
        Some("maximum"),
        "`maximum` is the most",
    ),
    of(
        "Type",
        &["gt", "exclusiveMinimum"],
        None,
        "`minimum` is the least value that is allowed",
    ),
    of(
        "Type",
        &["lt", "exclusiveMaximum"],
        None,
        "`maximum` is the greatest value that is allowed",
    ),
    of(
        "Type",
        &["regex"],
        Some("pattern"),
        "`pattern` is a regular expression",
    ),
    of(
        "Mcp",
        &["transport", "type"],
        None,
        "a server with a `url` is spoken to over HTTP, one with a `command` over its standard input",
    ),
    of(
        "Mcp",
        &["args"],
        None,
        "program and arguments are one list: `command: [npx, -y, ..]`",
    ),
];

/// Returns the key that means the same in a section, if there is one, and advice. `None`: the key is no known one of another
/// framework.
pub(crate) fn key(section: &str, key: &str) -> Option<(Option<&'static str>, &'static str)> {
    let mut known = KEYS.iter();
    known
        .find(|of| of.section == section && of.keys.contains(&key))
        .map(|of| (of.is, of.advice))
}

/// Returns for a value that a key does not take, if it is clear what is meant: what the key takes, advice, and the value to write.
pub(crate) fn value(
    section: &str,
    key: &str,
    kind: Kind,
) -> Option<(&'static str, &'static str, &'static str)> {
    match (section, key, kind) {
        ("Tool" | "Route", "native", Kind::Null | Kind::Bool(true)) => Some((
            "the version of what is registered in Rust",
            "write the version of what is registered in Rust: `native: 1`",
            "1",
        )),
        ("Agent", "person", Kind::Bool(true)) => Some((
            "a person",
            "write `{}`: its role is the agent's name, unless `{ role: .. }` says another",
            "{}",
        )),
        _ => None,
    }
}

/// Returns the short type that a type of another language means: `str`, `list[int]`, `Optional[float]`.
pub(crate) fn short_type(word: &str) -> Option<String> {
    let word = word.trim();
    let within = |prefix: &str| {
        let inner = word.strip_prefix(prefix)?.strip_prefix('[')?;
        inner.strip_suffix(']')
    };
    if let Some(inner) = within("Optional") {
        return plain(inner).map(|of| format!("optional {of}"));
    }
    if let Some(inner) = word
        .strip_suffix("| None")
        .or_else(|| word.strip_suffix("| null"))
    {
        return plain(inner).map(|of| format!("optional {of}"));
    }
    plain(word)
}

fn plain(word: &str) -> Option<String> {
    let word = word.trim();
    let item = ["list", "List", "Array"].iter().find_map(|list| {
        let inner = word.strip_prefix(list)?;
        let inner = inner.strip_prefix(['[', '<'])?;
        inner.strip_suffix([']', '>'])
    });
    if let Some(item) = item.or_else(|| word.strip_suffix("[]")) {
        return plain(item).map(|of| format!("[{of}]"));
    }
    let is = match word {
        "str" | "string" | "text" | "String" | "Text" => "string",
        "int" | "integer" | "Integer" | "i64" | "long" => "integer",
        "float" | "number" | "double" | "decimal" | "Decimal" | "Number" => "number",
        "bool" | "boolean" | "Boolean" => "boolean",
        "dict" | "Dict" | "object" | "Object" | "map" => "object",
        "list" | "List" | "array" | "Array" => "[any]",
        "Any" | "any" | "unknown" => "any",
        _ => return None,
    };
    Some(is.to_owned())
}

/// Returns the word that means the same as a word of another framework, of those that have a meaning at a place.
pub(crate) fn word<'a>(word: &str, mut among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is = match word {
        "add" | "operator.add" | "add_messages" | "concat" => "append",
        "auto" | "llm" | "speaker_selection" => "by_model",
        "round_robin" | "sequential" => "in_turn",
        "write" | "mutation" | "side_effect" | "destructive" => "unsafe",
        "readonly" | "read_only" | "query" => "read",
        "ollama" | "vllm" | "openrouter" | "groq" | "custom" => "compatible",
        "google" | "googleai" | "google_genai" => "gemini",
        "azure_openai" => "azure",
        "vertexai" | "vertex_ai" | "google_vertexai" => "vertex",
        "aws" | "bedrock_converse" => "bedrock",
        _ => return None,
    };
    among.find(|known| *known == is)
}

/// The ends of a graph in other frameworks.
pub(crate) fn is_end(name: &str) -> bool {
    matches!(
        name,
        "END" | "__end__" | "End" | "end" | "done" | "stop" | "exit" | "FINISH" | "TERMINATE"
    )
}

/// The words of other languages for `none`.
pub(crate) fn is_none(name: &str) -> bool {
    matches!(name, "null" | "nil" | "undefined" | "NULL" | "Null")
}

/// Returns true if a text looks like a key of a provider, which does not belong into a file that is shared.
pub(crate) fn is_key(text: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "sk-",
        "sk_live_",
        "rk_live_",
        "ghp_",
        "github_pat_",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "AIza",
    ];
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
        .any(|word| {
            let rest = BEGINNINGS.iter().find_map(|begin| word.strip_prefix(begin));
            rest.is_some_and(|rest| {
                rest.len() >= 16
                    && rest
                        .bytes()
                        .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
                    && rest.bytes().any(|c| c.is_ascii_digit())
            })
        })
}
