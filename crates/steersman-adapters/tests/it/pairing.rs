//! The rules of each provider for a conversation, checked on the JSON that would be sent: random histories under random
//! policies of contexts, as the machine renders them.

use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_adapters::bedrock::encode::encode as bedrock;
use steersman_adapters::chat::encode::{Dialect, encode as chat, encode_next as chat_next};
use steersman_adapters::chat::quirks::Quirks;
use steersman_adapters::gemini::encode::encode as gemini;
use steersman_adapters::messages::encode::{encode as messages, encode_next as messages_next};
use steersman_adapters::responses::encode::encode as responses;
use steersman_adapters::structured::{Style, tell};
use steersman_machine::context::{Content, Request};
use steersman_machine::network::ToolChoice;
use steersman_runtime::model::Encodings;
use steersman_testkit::log::Log;
use steersman_testkit::random::Dice;
use steersman_testkit::story::{Manner, Story, definition};

/// Number of definitions with random policies, and number of histories of each.
const DEFINITIONS: u64 = 60;
const HISTORIES: u64 = 10;

/// Draws what a provider may have left to be sent back: of this wire, of the other one, or of none.
fn opaque(dice: &mut Dice, text: Option<&str>, calls: &[(&str, String)]) -> String {
    let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let text = text.unwrap_or_default();
    let call = || calls.iter().map(|_| json!("call"));
    let begun = || [thought.clone()].into_iter();
    let text = json!(text.len());
    let blocks: Vec<Json> = match dice.below(10) {
        0 => begun().collect(),
        1 => begun().chain([text]).chain(begun()).chain(call()).collect(),
        2 => begun().chain([text]).chain(call()).collect(),
        // The answer was cut while the model thought again.
        3 => begun().chain(call()).chain([text]).chain(begun()).collect(),
        4 => return json!({ "reasoning_content": "hm" }).to_string(),
        5 => {
            let extras: Vec<Json> = calls
                .iter()
                .map(|_| json!({ "extra_content": { "s": 1 } }))
                .collect();
            let details = json!([{ "type": "reasoning.encrypted", "data": "x" }]);
            return json!({ "reasoning_details": details, "tool_calls": extras }).to_string();
        }
        6 => {
            let thought =
                json!({ "type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x" });
            let said = json!({ "text": text, "with": { "phase": "commentary" } });
            let items: Vec<Json> = [thought.clone(), said]
                .into_iter()
                .chain(call())
                .chain([thought])
                .collect();
            return json!({ "items": items }).to_string();
        }
        7 => {
            let call = calls
                .iter()
                .map(|_| json!({ "call": { "thoughtSignature": "s", "id": "fc" } }));
            let parts: Vec<Json> = [text].into_iter().chain(call).collect();
            return json!({ "parts": parts }).to_string();
        }
        8 => {
            let end = json!({ "text": 0, "with": { "thoughtSignature": "s" } });
            let parts: Vec<Json> = call().chain([text, end]).collect();
            return json!({ "parts": parts }).to_string();
        }
        _ => return "no JSON".to_owned(),
    };
    json!({ "blocks": blocks }).to_string()
}

/// The faults of a body.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }

    /// Checks that all providers take this name of a tool.
    fn name(&mut self, name: &Json) {
        let name = name.as_str().unwrap_or_default();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let good = !name.is_empty() && name.len() <= 64 && name.chars().all(fits);
        self.unless(good, || format!("a tool is called {name:?}"));
    }

    /// Checks that a body has the bytes of the one that was encoded as a whole.
    fn same(&mut self, whole: &Json, next: &[u8]) {
        let whole = whole.to_string();
        self.unless(next == whole.as_bytes(), || {
            format!("not the same: {}", String::from_utf8_lossy(next))
        });
    }

    fn tools<'a>(&mut self, names: impl Iterator<Item = &'a Json>) {
        let mut known = BTreeSet::new();
        for name in names {
            self.name(name);
            self.unless(known.insert(name.to_string()), || {
                format!("two tools are called {name}")
            });
        }
    }
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn blank(json: &Json) -> bool {
    json.as_str().is_none_or(|text| text.trim().is_empty())
}

/// Checks a body for chat completions: each answer with calls is followed by their results, in order, and by nothing else.
fn of_chat(body: &Json, dialect: &Dialect, request: &Request) -> Faults {
    let mut faults = Faults::default();
    let (mut owed, mut before): (Vec<&Json>, Option<&Json>) = (Vec::new(), None);
    faults.tools(
        list(&body["tools"])
            .iter()
            .map(|tool| &tool["function"]["name"]),
    );
    for message in list(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            faults.unless(owed.is_empty(), || format!("no results for {owed:?}"));
        }
        match role {
            "system" | "user" => faults.unless(!blank(&message["content"]), || {
                format!("{message} is empty")
            }),
            "tool" => {
                let id = &message["tool_call_id"];
                let first = (!owed.is_empty()).then(|| owed.remove(0));
                faults.unless(first == Some(id), || {
                    format!("{message} is not the result of {first:?}")
                });
                faults.unless(message["content"].is_string(), || {
                    format!("{message} has no text")
                });
            }
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                let says = !blank(&message["content"]) || !calls.is_empty();
                faults.unless(says, || format!("{message} says nothing"));
                for call in calls {
                    let id = call["id"].as_str().unwrap_or_default();
                    let long = dialect.openai && id.len() > 40;
                    faults.unless(!id.is_empty() && !long, || format!("an id is {id:?}"));
                    faults.unless(!owed.contains(&&call["id"]), || format!("{id:?} twice"));
                    faults.unless(call["type"] == "function", || {
                        format!("{call} is no function")
                    });
                    faults.name(&call["function"]["name"]);
                    let args = call["function"]["arguments"].as_str().unwrap_or_default();
                    let args = serde_json::from_str::<Json>(args).unwrap_or_default();
                    faults.unless(args.is_object(), || {
                        format!("{call} has arguments that are no object")
                    });
                    owed.push(&call["id"]);
                }
                for foreign in ["blocks", "signature"] {
                    faults.unless(message.get(foreign).is_none(), || {
                        format!("{foreign} means nothing here")
                    });
                }
            }
            _ => faults.unless(false, || format!("{role:?} is no role")),
        }
        let of = |message: Option<&Json>, role: &str| message.is_some_and(|m| m["role"] == role);
        if dialect.alternate {
            let same = of(before, role) && role != "tool";
            faults.unless(!same, || format!("two of {role}: {message}"));
            let begins = before.is_none() || of(before, "system");
            let fits = role == "system" || role == "user" || !begins;
            faults.unless(fits, || format!("no user begins: {message}"));
            faults.unless(role != "system" || before.is_none(), || {
                "a system message behind".to_owned()
            });
        }
        before = Some(message);
    }
    faults.unless(owed.is_empty(), || {
        format!("no results for {owed:?} at the end")
    });
    let said = list(&body["messages"])
        .iter()
        .map(|m| text_of(&m["content"]));
    nothing_is_lost(&mut faults, &said.collect::<Vec<_>>(), request);
    ends(&mut faults, before, dialect.alternate);
    faults
}

/// Checks a body for Anthropic Messages.
fn of_messages(body: &Json, request: &Request) -> Faults {
    let mut faults = Faults::default();
    faults.tools(list(&body["tools"]).iter().map(|tool| &tool["name"]));
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut owed: Vec<&Json> = Vec::new();
    let mut marks = list(&body["tools"])
        .iter()
        .chain(list(&body["system"]))
        .filter(|b| b.get("cache_control").is_some())
        .count();
    for block in list(&body["system"]) {
        faults.unless(!blank(&block["text"]), || {
            "the system prompt is empty".to_owned()
        });
    }
    let turns = list(&body["messages"]);
    for (n, turn) in turns.iter().enumerate() {
        let role = turn["role"].as_str().unwrap_or_default();
        let expected = if n % 2 == 0 { "user" } else { "assistant" };
        faults.unless(role == expected, || format!("turn {n} is of {role:?}"));
        let blocks = list(&turn["content"]);
        faults.unless(!blocks.is_empty(), || format!("turn {n} is empty"));
        let thinks = |block: &Json| block["type"] == "thinking";
        let last = blocks.last().is_some_and(thinks);
        faults.unless(!last, || format!("turn {n} ends with thinking"));
        let first = blocks.first().is_some_and(thinks);
        faults.unless(first || !blocks.iter().any(thinks), || {
            format!("turn {n} does not begin with its thinking")
        });
        let mut results = true;
        for block in blocks {
            let marked = block.get("cache_control").is_some();
            marks += usize::from(marked);
            match block["type"].as_str().unwrap_or_default() {
                "text" => faults.unless(!blank(&block["text"]), || {
                    format!("an empty text in turn {n}")
                }),
                "thinking" => {
                    let kept = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
                    faults.unless(*block == kept && role == "assistant", || {
                        format!("thinking is {block}")
                    });
                }
                "tool_use" => {
                    let id = block["id"].as_str().unwrap_or_default();
                    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                    faults.unless(!id.is_empty() && id.chars().all(fits), || {
                        format!("an id is {id:?}")
                    });
                    faults.unless(ids.insert(id), || format!("two calls are {id:?}"));
                    faults.unless(role == "assistant" && block["input"].is_object(), || {
                        format!("{block}")
                    });
                    faults.name(&block["name"]);
                    owed.push(&block["id"]);
                }
                "tool_result" => {
                    let of = (!owed.is_empty()).then(|| owed.remove(0));
                    let right = of == Some(&block["tool_use_id"]) && results && role == "user";
                    faults.unless(right, || {
                        format!("turn {n}: {block} is not the result of {of:?}")
                    });
                    let content = block.get("content");
                    faults.unless(content.is_none_or(|c| !blank(c)), || {
                        format!("{block} has an empty text")
                    });
                    let told = block.get("is_error").is_none() || content.is_some();
                    faults.unless(told, || format!("{block} does not say its error"));
                }
                other => faults.unless(false, || format!("{other:?} is no block")),
            }
            results &= block["type"] == "tool_result";
        }
        let answered = role == "assistant" || owed.is_empty();
        faults.unless(answered, || format!("turn {n} has no results for {owed:?}"));
    }
    faults.unless(owed.is_empty(), || {
        format!("no results for {owed:?} at the end")
    });
    faults.unless(marks <= 4, || format!("{marks} marks for the cache"));
    let told = ids.is_empty() || !list(&body["tools"]).is_empty();
    faults.unless(told, || "calls, and no tools".to_owned());
    let blocks = turns
        .iter()
        .chain([&body["system"]])
        .flat_map(|turn| list(turn.get("content").unwrap_or(turn)));
    let said: Vec<&str> = blocks
        .map(|b| text_of(b.get("text").unwrap_or(&b["content"])))
        .collect();
    nothing_is_lost(&mut faults, &said, request);
    ends(&mut faults, turns.last(), true);
    faults
}

/// Checks a body for OpenAI Responses: each call has its output behind it, and reasoning stands in front of what it led to.
fn of_responses(body: &Json, request: &Request) -> Faults {
    let mut faults = Faults::default();
    faults.tools(list(&body["tools"]).iter().map(|tool| &tool["name"]));
    let (mut ids, mut owed): (BTreeSet<&str>, Vec<&Json>) = (BTreeSet::new(), Vec::new());
    let items = list(&body["input"]);
    let mut said = Vec::new();
    for (n, item) in items.iter().enumerate() {
        match text_of(&item["type"]) {
            "function_call" => {
                let id = text_of(&item["call_id"]);
                faults.unless(!id.is_empty() && id.len() <= 64, || {
                    format!("an id is {id:?}")
                });
                faults.unless(ids.insert(id), || format!("two calls are {id:?}"));
                let args =
                    serde_json::from_str::<Json>(text_of(&item["arguments"])).unwrap_or_default();
                faults.unless(args.is_object(), || {
                    format!("{item} has arguments that are no object")
                });
                faults.name(&item["name"]);
                owed.push(&item["call_id"]);
            }
            "function_call_output" => {
                let of = (!owed.is_empty()).then(|| owed.remove(0));
                faults.unless(of == Some(&item["call_id"]), || {
                    format!("{item} is not the output of {of:?}")
                });
                said.push(text_of(&item["output"]));
            }
            "reasoning" => {
                let next = items.get(n + 1);
                let led = next.is_some_and(|next| {
                    next["role"] == "assistant" || next["type"] == "function_call"
                });
                faults.unless(led, || {
                    format!("item {n} is reasoning that led to nothing: {next:?}")
                });
                let is_sealed = item["encrypted_content"].is_string();
                faults.unless(is_sealed, || format!("{item} is not stored"));
            }
            "" => {
                faults.unless(!blank(&item["content"]), || format!("{item} is empty"));
                faults.unless(owed.is_empty(), || format!("no outputs for {owed:?}"));
                said.push(text_of(&item["content"]));
            }
            other => faults.unless(false, || format!("{other:?} is no item")),
        }
    }
    faults.unless(owed.is_empty(), || {
        format!("no outputs for {owed:?} at the end")
    });
    nothing_is_lost(&mut faults, &said, request);
    faults.unless(!items.is_empty(), || "nothing is said".to_owned());
    faults
}

/// Checks a body for Gemini: the user is first and last, and the results of an answer are one turn right behind it, in order.
fn of_gemini(body: &Json, request: &Request) -> Faults {
    let mut faults = Faults::default();
    let declared = list(&body["tools"])
        .iter()
        .flat_map(|tool| list(&tool["functionDeclarations"]));
    faults.tools(declared.map(|tool| &tool["name"]));
    let turns = list(&body["contents"]);
    let (mut owed, mut said): (Vec<(&Json, &Json)>, Vec<&str>) = (Vec::new(), Vec::new());
    for part in list(&body["systemInstruction"]["parts"]) {
        said.push(text_of(&part["text"]));
    }
    for (n, turn) in turns.iter().enumerate() {
        let (role, parts) = (text_of(&turn["role"]), list(&turn["parts"]));
        faults.unless(n > 0 || role == "user", || {
            format!("the first turn is of {role:?}")
        });
        let same = n > 0 && role == "model" && turns[n - 1]["role"] == "model";
        faults.unless(!same, || format!("turn {n} is another one of the model"));
        faults.unless(!parts.is_empty(), || format!("turn {n} is empty"));
        let results = parts
            .iter()
            .filter(|part| part["functionResponse"].is_object())
            .count();
        let alone = results == 0 || results == parts.len();
        faults.unless(alone, || format!("turn {n} mixes results and texts"));
        faults.unless(owed.is_empty() || results > 0, || {
            format!("turn {n} is not the results of {owed:?}")
        });
        for part in parts {
            if let Some(text) = part["text"].as_str() {
                let signed = part.get("thoughtSignature").is_some();
                faults.unless(signed || !text.trim().is_empty(), || {
                    format!("an empty part in turn {n}")
                });
                said.push(text);
            } else if part["functionCall"].is_object() {
                let call = &part["functionCall"];
                faults.unless(role == "model" && call["args"].is_object(), || {
                    format!("{call}")
                });
                faults.name(&call["name"]);
                owed.push((&call["name"], &call["id"]));
            } else {
                let result = &part["functionResponse"];
                let of = (!owed.is_empty()).then(|| owed.remove(0));
                let right = of == Some((&result["name"], &result["id"])) && role == "user";
                faults.unless(right, || format!("{result} is not the result of {of:?}"));
                let texts = result["response"].as_object().into_iter().flatten();
                said.extend(texts.map(|(_, text)| text_of(text)));
            }
        }
        let answered = role == "model" || owed.is_empty();
        faults.unless(answered, || format!("turn {n} has no results for {owed:?}"));
    }
    faults.unless(owed.is_empty(), || {
        format!("no results for {owed:?} at the end")
    });
    nothing_is_lost(&mut faults, &said, request);
    let last = turns.last().map_or("", |turn| text_of(&turn["role"]));
    faults.unless(last == "user", || "the model has the last word".to_owned());
    faults
}

/// Checks a body for Bedrock's Converse.
fn of_bedrock(body: &Json, request: &Request) -> Faults {
    let mut faults = Faults::default();
    let tools = list(&body["toolConfig"]["tools"]);
    let specs = tools.iter().filter_map(|tool| tool.get("toolSpec"));
    faults.tools(specs.map(|spec| &spec["name"]));
    let (mut ids, mut owed): (BTreeSet<&str>, Vec<&Json>) = (BTreeSet::new(), Vec::new());
    let turns = list(&body["messages"]);
    let (mut said, mut points) = (Vec::new(), 0);
    points += tools
        .iter()
        .filter(|tool| tool.get("cachePoint").is_some())
        .count();
    for block in list(&body["system"]) {
        points += usize::from(block.get("cachePoint").is_some());
        said.push(text_of(&block["text"]));
    }
    for (n, turn) in turns.iter().enumerate() {
        let role = text_of(&turn["role"]);
        let expected = if n % 2 == 0 { "user" } else { "assistant" };
        faults.unless(role == expected, || format!("turn {n} is of {role:?}"));
        let blocks = list(&turn["content"]);
        faults.unless(!blocks.is_empty(), || format!("turn {n} is empty"));
        let mut results = true;
        for block in blocks {
            let (kind, value) = block
                .as_object()
                .and_then(|block| block.iter().next())
                .unwrap();
            match kind.as_str() {
                "text" => {
                    faults.unless(!blank(value), || format!("an empty text in turn {n}"));
                    said.push(text_of(value));
                }
                "reasoningContent" => {
                    let signed = value["reasoningText"]["signature"].is_string();
                    faults.unless(signed && role == "assistant", || format!("{block}"));
                }
                "toolUse" => {
                    let id = text_of(&value["toolUseId"]);
                    faults.unless(!id.is_empty() && id.len() <= 64, || {
                        format!("an id is {id:?}")
                    });
                    faults.unless(ids.insert(id), || format!("two calls are {id:?}"));
                    faults.unless(value["input"].is_object(), || format!("{block}"));
                    faults.name(&value["name"]);
                    owed.push(&value["toolUseId"]);
                }
                "toolResult" => {
                    let of = (!owed.is_empty()).then(|| owed.remove(0));
                    let right = of == Some(&value["toolUseId"]) && results && role == "user";
                    faults.unless(right, || {
                        format!("turn {n}: {block} is not the result of {of:?}")
                    });
                    let text = &value["content"][0]["text"];
                    faults.unless(!blank(text), || format!("{block} has an empty text"));
                    said.push(text_of(text));
                }
                "cachePoint" => points += 1,
                other => faults.unless(false, || format!("{other:?} is no block")),
            }
            results &= matches!(kind.as_str(), "toolResult" | "cachePoint");
        }
        let answered = role == "assistant" || owed.is_empty();
        faults.unless(answered, || format!("turn {n} has no results for {owed:?}"));
    }
    faults.unless(owed.is_empty(), || {
        format!("no results for {owed:?} at the end")
    });
    faults.unless(points <= 4, || format!("{points} points of the cache"));
    let told = ids.is_empty() || !tools.is_empty();
    faults.unless(told, || "calls, and no tools".to_owned());
    nothing_is_lost(&mut faults, &said, request);
    ends(&mut faults, turns.last(), true);
    faults
}

fn text_of(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
}

/// Checks that it is the model's turn at the end.
fn ends(faults: &mut Faults, last: Option<&Json>, needed: bool) {
    let role = last.map_or("", |message| text_of(&message["role"]));
    faults.unless(!role.is_empty(), || "nothing is said".to_owned());
    faults.unless(role != "assistant" || !needed, || {
        "the model has the last word".to_owned()
    });
}

/// Checks that every text that the machine renders is in the body.
fn nothing_is_lost(faults: &mut Faults, said: &[&str], request: &Request) {
    let contents = request.segments.iter().map(|segment| &segment.content);
    let texts = contents.filter_map(|content| match content {
        Content::System(text) | Content::User(text) | Content::Result { text, .. } => Some(text),
        Content::Assistant { text, .. } => text.as_ref(),
        Content::Tools(_) | Content::File(_) => None,
    });
    for text in texts.filter(|text| !text.trim().is_empty()) {
        let there = said.iter().any(|said| said.contains(text.as_str()));
        faults.unless(there, || format!("{text:?} is lost"));
    }
}

/// What was encoded of earlier requests, for each form of a request.
type Before = BTreeMap<(&'static str, usize), Encodings>;

/// Returns all bodies that this request could become, with their faults. Each has the same bytes if its beginning was encoded for
/// an earlier request.
fn judged(request: &Request, before: &mut Before) -> Vec<(&'static str, Json, Faults)> {
    let mut all = Vec::new();
    let (structured, text) = (tell(request, Style::Structured), tell(request, Style::Text));
    // An agent that has no tools in this mode may have had some in an earlier one.
    let bare = Request {
        segments: request
            .segments
            .iter()
            .filter(|s| !matches!(s.content, Content::Tools(_)))
            .map(Arc::clone)
            .collect(),
        choice: ToolChoice::Auto,
        ..request.clone()
    };
    for (name, request) in [
        ("native", request),
        ("structured", &structured),
        ("text", &text),
        ("without tools", &bare),
    ] {
        let mut kept = |n: usize| before.entry((name, n)).or_default().clone();
        for (n, dialect) in [Dialect::OPENAI, Dialect::COMPATIBLE].iter().enumerate() {
            let body = chat(request, "m", dialect);
            let next = chat_next(request, "m", dialect, Quirks::default(), &kept(n));
            let mut faults = of_chat(&body, dialect, request);
            faults.same(&body, &next);
            all.push((name, body, faults));
        }
        let body = messages(request, "m");
        let next = messages_next(request, "m", &kept(2));
        let mut faults = of_messages(&body, request);
        faults.same(&body, &next);
        all.push((name, body, faults));
        let body = responses(request, "m", true);
        let faults = of_responses(&body, request);
        all.push((name, body, faults));
        for model in ["gemini-2.5-flash", "gemini-3.8-flash"] {
            let body = gemini(request, model);
            let faults = of_gemini(&body, request);
            all.push((name, body, faults));
        }
        for model in ["anthropic.claude-haiku-4-5", "meta.llama3"] {
            let body = bedrock(request, model);
            let faults = of_bedrock(&body, request);
            all.push((name, body, faults));
        }
    }
    all
}

/// 600 histories with several requests each. A request is encoded in 32 ways, which makes more than 60,000 bodies.
#[test]
fn random_histories_under_random_policies_are_what_each_provider_takes() {
    let manner = Manner {
        opaque,
        rough: true,
    };
    let (mut requests, mut calls) = (0_u32, 0_usize);
    for of in 0..DEFINITIONS {
        let mut log = Log::of(definition(of));
        for n in 0..HISTORIES {
            let seed = of * HISTORIES + n;
            let mut story = Story::new(log, seed, manner);
            let mut before = Before::new();
            let steps = 10 + story.dice.below(20);
            for at in 0..steps {
                story.step();
                if story.dice.below(5) > 0 && at + 1 < steps {
                    continue;
                }
                let mut cache = std::mem::take(&mut story.cache);
                let request = story.ask(&mut cache);
                story.cache = cache;
                for (name, body, Faults(faults)) in judged(&request, &mut before) {
                    calls += list(&body["messages"])
                        .iter()
                        .filter(|m| m.get("tool_calls").is_some())
                        .count();
                    assert!(
                        faults.is_empty(),
                        "seed {seed}, step {at}, {name}: {faults:#?}\n{body:#}"
                    );
                }
                requests += 1;
            }
            log = story.log;
        }
    }
    // Conversations without calls test nothing.
    assert!(
        requests > 2_000 && calls > 4_000,
        "{requests} requests, {calls} answers with calls"
    );
}
