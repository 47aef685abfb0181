//! What a server that calls itself compatible does not take, learned from what it says: it refused, so nothing was done, and
//! the request goes again another way. What a definition wrote is said in other words or judged afterwards (a call that had to
//! be made, a schema), never dropped in silence: a parameter of `params` that a server refuses is the definition's mistake.

use serde_json::{Map, Value as Json, json};

/// What one model of one server does not take.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// `stream_options`: usage may be missing then, and is estimated.
    stream_options: bool,
    /// `max_tokens` under that name: it is `max_completion_tokens` there.
    max_tokens: bool,
    /// The other way round.
    max_completion_tokens: bool,
    /// `tool_choice`: the model is not made to call; that it did not is noticed.
    tool_choice: bool,
    /// The mark `strict` of a schema.
    strict: bool,
    /// `response_format`: the schema is told in words.
    response_format: bool,
    /// Messages of the role `system`: what they say is said by the user, first.
    system: bool,
}

impl Quirks {
    /// Learns from what the server said of a request; whether there is something to do otherwise.
    pub fn learn(&mut self, said: &str, body: &Json) -> bool {
        let before = *self;
        let said = said.to_lowercase();
        let has = |key: &str| body.get(key).is_some();
        // The nearest name first: one message may name several.
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
        } else if is_strict(body) && said.contains("strict") {
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

    /// The body as this server takes it.
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

/// Says something behind the first system message, or in front of all where there is none.
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
            let before = first["content"].as_str().unwrap_or_default();
            first["content"] = Json::from(format!("{before}\n\n{text}"));
        }
        None => messages.insert(0, json!({ "role": role, "content": text })),
    }
}

/// System messages become the user's; neighbours are joined, since such servers want the roles in turn.
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
                let text =
                    |message: &Json| message["content"].as_str().unwrap_or_default().to_owned();
                last["content"] = Json::from(format!("{}\n\n{}", text(last), text(&message)));
            }
            _ => out.push(message),
        }
    }
    *messages = out;
}
