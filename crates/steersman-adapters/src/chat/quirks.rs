//! Elements of a request that a compatible server refuses, learned from its error messages. A refused request had no effect, so it
//! is sent again in another form. Requirements of the definition are never dropped silently: a schema is described in the prompt
//! instead, and a required call is checked in the answer. Only the name of `max_tokens` is adapted; any other parameter of
//! `params` that a server refuses is an error of the definition.

use super::encode::TEXT;
use crate::wire::files;
use serde_json::{Map, Value as Json, json};

/// Elements that one server refuses for one model.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// `stream_options`: usage may be missing then, and is estimated.
    stream_options: bool,
    /// `max_tokens`: it is called `max_completion_tokens` there.
    max_tokens: bool,
    /// `max_completion_tokens`: it is called `max_tokens` there.
    max_completion_tokens: bool,
    /// `tool_choice`: the model is not forced to call; the answer is checked for the call.
    tool_choice: bool,
    /// `strict` of a schema: it is left out.
    strict: bool,
    /// `response_format`: the schema is described in the prompt.
    response_format: bool,
    /// Messages of the role `system`: they are sent as the user's first message.
    system: bool,
}

impl Quirks {
    /// Learns from the server's error for a request. Returns true if the next request will differ.
    pub fn learn(&mut self, said: &str, body: &Json) -> bool {
        let before = *self;
        let said = said.to_lowercase();
        let has = |key: &str| body.get(key).is_some();
        // The most specific name first: one message may name several.
        if has("stream_options") && said.contains("stream_options") {
            self.stream_options = true;
        } else if has("max_tokens") && said.contains("max_completion_tokens") {
            self.max_tokens = true;
        } else if has("max_completion_tokens") && said.contains("max_completion_tokens") {
            self.max_completion_tokens = true;
        } else if has("tool_choice")
            && (said.contains("tool_choice") || said.contains("tool choice"))
        {
            self.tool_choice = true;
        } else if is_strict(body)
            && said
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word == "strict")
        {
            self.strict = true;
        } else if has("response_format")
            && [
                "response_format",
                "json_schema",
                "structured output",
                "guided",
            ]
            .iter()
            .any(|word| said.contains(word))
        {
            self.response_format = true;
        } else if has_system(body) && said.contains("system") && said.contains("role") {
            self.system = true;
        }
        *self != before
    }

    /// Returns true if this server takes other messages.
    pub(crate) fn change_messages(self) -> bool {
        self.system || self.response_format
    }

    /// Returns the body in the form that this server takes.
    pub fn applied(self, mut body: Json) -> Json {
        let Json::Object(map) = &mut body else {
            return body;
        };
        if self.stream_options {
            map.shift_remove("stream_options");
        }
        if self.tool_choice {
            map.shift_remove("tool_choice");
        }
        if self.max_tokens {
            rename(map, "max_tokens", "max_completion_tokens");
        } else if self.max_completion_tokens {
            rename(map, "max_completion_tokens", "max_tokens");
        }
        if self.strict
            && let Some(Json::Object(schema)) = map
                .get_mut("response_format")
                .and_then(|format| format.get_mut("json_schema"))
        {
            schema.shift_remove("strict");
        }
        if self.response_format
            && let Some(format) = map.shift_remove("response_format")
        {
            let schema = format.pointer("/json_schema/schema").unwrap_or(&Json::Null);
            let told = format!(
                "Answer with one JSON value alone, without a word around it, that fits this JSON Schema: {schema}"
            );
            say_first(map, &told, self.system);
        }
        if self.system {
            as_user(map);
        }
        body
    }
}

fn is_strict(body: &Json) -> bool {
    body.pointer("/response_format/json_schema/strict")
        .is_some()
}

fn has_system(body: &Json) -> bool {
    let messages = body.get("messages").and_then(Json::as_array);
    messages.is_some_and(|list| list.iter().any(|message| message["role"] == "system"))
}

fn rename(map: &mut Map<String, Json>, from: &str, to: &str) {
    if let Some(value) = map.shift_remove(from) {
        map.entry(to).or_insert(value);
    }
}

/// Appends a text to the first system message, or puts it in front of all messages if there is none.
fn say_first(map: &mut Map<String, Json>, text: &str, as_user: bool) {
    let Some(Json::Array(messages)) = map.get_mut("messages") else {
        return;
    };
    let role = if as_user { "user" } else { "system" };
    match messages
        .first_mut()
        .filter(|first| first["role"] == "system")
    {
        Some(first) => {
            files::join(&mut first["content"], Json::from(text), TEXT);
        }
        None => messages.insert(0, json!({ "role": role, "content": text })),
    }
}

/// Turns system messages into user messages, and joins neighbours, since such servers want alternating roles.
fn as_user(map: &mut Map<String, Json>) {
    let Some(Json::Array(messages)) = map.get_mut("messages") else {
        return;
    };
    let mut out: Vec<Json> = Vec::new();
    for mut message in std::mem::take(messages) {
        if message["role"] == "system" {
            message["role"] = json!("user");
        }
        match out.last_mut() {
            Some(last) if last["role"] == "user" && message["role"] == "user" => {
                files::join(&mut last["content"], message["content"].take(), TEXT);
            }
            _ => out.push(message),
        }
    }
    *messages = out;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_within_another_is_not_what_is_refused() {
        let body = json!({ "response_format": { "json_schema": { "strict": true } } });
        for (said, learns) in [
            ("unknown field `strict`", true),
            ("Strict mode is not supported", true),
            ("no such parameter: json_schema.strict", true),
            ("this model is restricted to other accounts", false),
            ("the request was strictly limited", false),
        ] {
            let mut quirks = Quirks::default();
            assert_eq!(quirks.learn(said, &body), learns, "{said}");
            assert_eq!(quirks.strict, learns, "{said}");
        }
    }
}
