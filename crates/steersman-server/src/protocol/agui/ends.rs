//! The end of a run: an answer, interrupts, a failure.

use super::{Agui, End, Open};
use serde_json::{Value as Json, json};
use steersman::machine::stored::ids::Time;
use steersman::machine::values::types::{Parameters, schema_of_fields};
use steersman::{PendingId, PendingKind};

impl Agui {
    pub(super) fn ends(&mut self, end: &End) {
        self.at = None;
        let mine = |open: &&Open| open.kind.is_asked() && open.role(&self.form.roles).is_some();
        let (mine, others): (Vec<&Open>, Vec<&Open>) = match end {
            End::Asks(open) | End::Waits(open) => open.iter().partition(mine),
            _ => (Vec::new(), Vec::new()),
        };
        let asks = matches!(end, End::Asks(_)) && !mine.is_empty();
        let ids: Vec<PendingId> = mine.iter().map(|open| open.id).collect();
        self.shut_all(|own, run| match end {
            End::Failed { code, message } => (
                "SUBAGENT_ERROR",
                json!({ "message": message, "code": code }),
            ),
            End::Cancelled => {
                let message = "it was cancelled";
                let end = json!({ "message": message, "code": "cancelled" });
                ("SUBAGENT_ERROR", end)
            }
            _ => {
                let asked = ids.iter().filter(|_| asks);
                let asked =
                    asked.filter(|id| own.asked.get(*id).is_some_and(|of| *of == Some(run)));
                let asked: Vec<String> = asked.map(ToString::to_string).collect();
                let outcome = json!({ "type": "suspended", "interruptIds": asked });
                ("SUBAGENT_FINISHED", json!({ "outcome": outcome }))
            }
        });
        let waiting: Vec<Json> = others.iter().map(|open| self.waited(open)).collect();
        let interrupts: Vec<Json> = mine.iter().map(|open| self.interrupt(open)).collect();
        match end {
            End::Failed { code, message } => {
                let error = json!({ "message": message, "code": code });
                self.over("RUN_ERROR", error);
                return;
            }
            End::Asks(_) | End::Waits(_) if !waiting.is_empty() => {
                let id = format!("{}/{}/waiting", self.form.session, self.form.line);
                self.activity("WAITING", &id, &json!({ "items": waiting }), None);
            }
            _ => {}
        }
        let mut finished = json!({ "threadId": self.form.thread, "runId": self.form.run });
        match end {
            End::Cancelled => finished["outcome"] = json!({ "type": "cancelled" }),
            _ if asks => {
                self.tell_state();
                self.tell_messages();
                finished["outcome"] = json!({ "type": "interrupt", "interrupts": interrupts });
            }
            End::Answered => {
                finished["outcome"] = json!({ "type": "success" });
                finished["result"] = json!({ "turn": "answered", "answer": self.answered() });
            }
            _ => {
                finished["outcome"] = json!({ "type": "success" });
                finished["result"] = json!({ "turn": "waits" });
            }
        }
        self.over("RUN_FINISHED", finished);
    }

    fn over(&mut self, kind: &str, mut last: Json) {
        let usage = std::mem::take(&mut self.usage);
        let usage = usage.into_iter().map(|(model, usage)| {
            let mut row = json!({
                "inputTokens": usage.input,
                "outputTokens": usage.output,
                "totalTokens": usage.input.saturating_add(usage.output),
                "reasoningTokens": usage.reasoning,
                "cachedInputTokens": usage.cached,
                "cacheWriteInputTokens": usage.cache_write,
            });
            if let Some(model) = model {
                let (provider, model) = model.split_once('/').unwrap_or(("", &model));
                row["model"] = model.into();
                if !provider.is_empty() {
                    row["provider"] = provider.into();
                }
            }
            row
        });
        let usage: Vec<Json> = usage.collect();
        if !usage.is_empty() {
            last["usage"] = usage.into();
        }
        self.tell(kind, last);
    }

    /// Returns the answer: a text, or the value of an agent that has a declared form.
    fn answered(&self) -> Json {
        let Some(answer) = &self.answer else {
            return Json::Null;
        };
        let root = self.snapshot.root;
        let root = root.and_then(|root| self.snapshot.agents.get(&root));
        let root = root.and_then(|root| self.form.network.agents.get(&root.def));
        let value = root
            .filter(|root| root.output.is_some())
            .and_then(|_| serde_json::from_str(answer).ok());
        value.unwrap_or_else(|| Json::from(&**answer))
    }

    /// Returns a question of others, or an event or time that is awaited.
    fn waited(&self, open: &Open) -> Json {
        let mut item = json!({ "kind": open.kind.word(), "text": open.text, "roles": open.roles });
        let page = self.form.page.as_deref();
        if let Some(address) = open.address(&self.form.session, page) {
            item[way(page)] = address.into();
        }
        item
    }

    fn interrupt(&self, open: &Open) -> Json {
        let call = self.id(open.id.effect);
        let has_call = self.messages.has_call(&call);
        let reason = match open.kind {
            PendingKind::Approval if has_call => "tool_call".to_owned(),
            PendingKind::Question => "input_required".to_owned(),
            kind => format!("steersman:{}", kind.word()),
        };
        let mut about = json!({ "kind": open.kind.word(), "roles": open.roles });
        if let Some(tool) = &open.tool {
            about["tool"] = (&**tool).into();
            about["arguments"] = open.arguments.clone();
        }
        let mut interrupt =
            json!({ "id": open.id.to_string(), "reason": reason, "message": open.text });
        if let Some(schema) = self.schema(open) {
            interrupt["responseSchema"] = schema;
        } else {
            let page = self.form.page.as_deref();
            about[way(page)] = json!(open.address(&self.form.session, page));
        }
        interrupt["metadata"] = json!({ "steersman": about });
        if has_call {
            interrupt["toolCallId"] = call.into();
        }
        if let Some(Some(run)) = self.asked.get(&open.id) {
            interrupt["subagentRunId"] = self.id(run).into();
        }
        if let Some(due) = open.due.and_then(rfc3339) {
            interrupt["expiresAt"] = due.into();
        }
        interrupt
    }

    /// Returns the form of the answer to an interrupt. A secret has none: it must not go through a form.
    fn schema(&self, open: &Open) -> Option<Json> {
        let object = |properties: Json, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
        Some(match open.kind {
            PendingKind::Input => return None,
            PendingKind::Question => {
                let mut answer = json!({ "type": "string" });
                if !open.options.is_empty() {
                    answer["enum"] = open.options.clone().into();
                }
                object(json!({ "answer": answer }), &["answer"])
            }
            PendingKind::Doubt => {
                let how = json!({
                    "enum": ["done", "not_performed", "fail"],
                    "description": "Whether the effect happened; `fail`: nobody will find out",
                });
                let result = json!({ "description": "The result, if it happened" });
                object(json!({ "how": how, "result": result }), &["how"])
            }
            kind => {
                let mut properties = json!({
                    "approved": { "type": "boolean" },
                    "reason": { "type": "string", "description": "The reason of a refusal" },
                });
                if kind == PendingKind::Budget {
                    properties["more"] = json!({ "type": "integer", "minimum": 0 });
                }
                if !open.edit.is_empty() {
                    properties["editedArgs"] = json!({
                        "type": "object", "properties": self.editable(open),
                    });
                }
                object(properties, &["approved"])
            }
        })
    }

    /// Returns the schemas of the arguments that may be changed.
    fn editable(&self, open: &Open) -> Json {
        let network = &self.form.network;
        let tool = open.tool.as_ref().and_then(|tool| network.tools.get(tool));
        let mut schemas = match tool.map(|tool| &tool.parameters) {
            Some(Parameters::Fields(fields)) => schema_of_fields(fields)["properties"].take(),
            Some(Parameters::Schema(text)) => {
                let mut schema: Json = serde_json::from_str(text).unwrap_or_default();
                schema["properties"].take()
            }
            None => Json::Null,
        };
        let each = open.edit.iter().map(|name| {
            let schema = schemas.get_mut(&**name).map(Json::take);
            (name.to_string(), schema.unwrap_or_else(|| json!({})))
        });
        each.collect()
    }
}

fn rfc3339(at: Time) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(at.to_string())
}

/// Returns the name of the field that says how to decide elsewhere: with a command, or on a page.
fn way(page: Option<&str>) -> &'static str {
    if page.is_some() { "page" } else { "command" }
}
