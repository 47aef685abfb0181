//! The conversation as a client has it: what its own reading of the messages leads to.

use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// The messages of a conversation, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    all: Vec<Json>,
    calls: BTreeSet<String>,
}

impl Messages {
    pub(super) fn all(&self) -> Vec<Json> {
        self.all.clone()
    }

    /// Adds an empty message, unless there is one with this id.
    pub(super) fn open(&mut self, id: &str, role: &str, owner: Option<String>) {
        if self.at(id).is_none() {
            self.all.push(owned(
                json!({ "id": id, "role": role, "content": "" }),
                owner,
            ));
        }
    }

    /// Adds to the text of a message.
    pub(super) fn write(&mut self, id: &str, text: &str) {
        if let Some(at) = self.at(id) {
            let before = self.all[at]["content"].as_str().unwrap_or_default();
            self.all[at]["content"] = format!("{before}{text}").into();
        }
    }

    /// Replaces the text of a message.
    pub(super) fn set(&mut self, id: &str, text: &str) {
        if let Some(at) = self.at(id) {
            self.all[at]["content"] = text.into();
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.all.retain(|message| message["id"] != id);
    }

    /// Returns true if the conversation has a call.
    pub(super) fn has_call(&self, call: &str) -> bool {
        self.calls.contains(call)
    }

    /// Adds a call (id, name and arguments) to a message, which is made if it is not there.
    pub(super) fn call(&mut self, parent: &str, owner: Option<String>, call: (&str, &str, &str)) {
        let (id, name, arguments) = call;
        self.calls.insert(id.to_owned());
        if self.at(parent).is_none() {
            let message = json!({ "id": parent, "role": "assistant", "toolCalls": [] });
            self.all.push(owned(message, owner));
        }
        let call = json!({
            "id": id, "type": "function", "function": { "name": name, "arguments": arguments },
        });
        let Some(message) = self.at(parent).map(|at| &mut self.all[at]) else {
            return;
        };
        match message["toolCalls"].as_array_mut() {
            Some(calls) => calls.push(call),
            None => message["toolCalls"] = json!([call]),
        }
    }

    /// Adds the result of a call (id, text, and the code of a failure) behind the message of the call and its other results.
    pub(super) fn result(
        &mut self,
        call: &str,
        owner: Option<String>,
        result: (&str, &str, Option<&str>),
    ) {
        let (id, text, fault) = result;
        let mut message = json!({ "id": id, "role": "tool", "toolCallId": call, "content": text });
        if let Some(fault) = fault {
            message["error"] = fault.into();
        }
        let has_call = |message: &Json| {
            let calls = message["toolCalls"].as_array();
            calls.is_some_and(|calls| calls.iter().any(|own| own["id"] == call))
        };
        let at = self.all.iter().rposition(has_call);
        let mut at = at.map_or(self.all.len(), |at| at + 1);
        while self.all.get(at).is_some_and(|next| next["role"] == "tool") {
            at += 1;
        }
        self.all.insert(at, owned(message, owner));
    }

    fn at(&self, id: &str) -> Option<usize> {
        self.all.iter().rposition(|message| message["id"] == id)
    }
}

fn owned(mut message: Json, owner: Option<String>) -> Json {
    if let Some(owner) = owner {
        message["subagentRunId"] = owner.into();
    }
    message
}
