//! The entries of definitions as tools, and the arguments of their calls.

use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::protocol::mcp::schema;
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};
use std::sync::Arc;
use steersman::Network;
use steersman::machine::network::AgentDef;
use steersman::machine::stored::ids::Name;

/// Returns the tools of the definitions that the token may start, sorted by name: `DEFINITION`, or `DEFINITION.ENTRY` for each entry if
/// there are several.
pub(super) fn all(caller: &Caller) -> Vec<Tool> {
    let all = caller.definitions();
    let mut tools: Vec<Tool> = all.iter().flat_map(of).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

fn of(network: &Network) -> Vec<Tool> {
    let checked = network.checked();
    let entries = checked.entry.iter().map(|entry| {
        let agent = checked.agent(entry);
        let name = match &checked.entry[..] {
            [_] => network.name().to_owned(),
            _ => format!("{}.{entry}", network.name()),
        };
        let about = [
            &*agent.description,
            checked.description.as_deref().unwrap_or_default(),
        ];
        let about = about.into_iter().find(|text| !text.is_empty());
        let about = about.map_or_else(|| format!("Talks with `{entry}`."), str::to_owned);
        let input = object(Input::of(agent).schema());
        let tool = Tool::new(name, about, Arc::new(input));
        tool.with_raw_output_schema(Arc::new(object(schema())))
    });
    entries.collect()
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Returns the definition and the entry that a tool stands for.
pub(super) fn named(caller: &Caller, tool: &str) -> Option<(Network, Name)> {
    let (name, entry) = match tool.split_once('.') {
        Some((name, entry)) => (name, Some(entry)),
        None => (tool, None),
    };
    let network = caller.definition(name).ok()?;
    let entries = &network.checked().entry;
    let entry = match (entry, &entries[..]) {
        (None, [only]) => only.clone(),
        (Some(entry), [_, _, ..]) => entries.iter().find(|own| ***own == *entry)?.clone(),
        _ => return None,
    };
    Some((network, entry))
}

/// The arguments of a tool: the parameters of an entry, and two of our own.
pub(super) struct Input {
    parameters: Value,
    /// The name of the argument with the handle of a session.
    session: &'static str,
    /// The name of the argument with what is said.
    message: &'static str,
}

/// The arguments of a call.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) session: Option<String>,
    pub(super) message: Option<String>,
    /// The arguments of the entry; `None` if there are none.
    pub(super) args: Option<Value>,
}

impl Input {
    pub(super) fn of(agent: &AgentDef) -> Self {
        let mut parameters = super::super::definitions::parameters(agent);
        let own = parameters["properties"].as_object();
        // An agent without parameters of its own takes a message.
        if own.is_some_and(|own| own.len() == 1 && own.contains_key("message")) {
            parameters =
                json!({ "type": "object", "properties": {}, "additionalProperties": false });
        }
        let is_free = |name| parameters["properties"].get(name).is_none();
        let session = if is_free("session") {
            "session"
        } else {
            "_session"
        };
        let message = if is_free("message") {
            "message"
        } else {
            "_message"
        };
        Self {
            parameters,
            session,
            message,
        }
    }

    fn has_parameters(&self) -> bool {
        let own = self.parameters["properties"].as_object();
        own.is_some_and(|own| !own.is_empty())
    }

    /// Returns the JSON Schema. Nothing is required in it, because a call that goes on with a session needs no parameter of the entry; a
    /// call that lacks something is answered with a sentence.
    fn schema(self) -> Value {
        let has_parameters = self.has_parameters();
        let mut schema = self.parameters;
        if !schema.is_object() {
            schema = json!({ "type": "object" });
        }
        let required = schema
            .as_object_mut()
            .and_then(|all| all.remove("required"));
        let begins = match required {
            Some(Value::Array(names)) if has_parameters => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                format!(
                    " A call without it begins a session and needs: {}.",
                    names.join(", ")
                )
            }
            _ if has_parameters => " A call without it begins a session.".to_owned(),
            _ => format!(
                " A call without it begins a session and needs `{}`.",
                self.message
            ),
        };
        schema["properties"][self.message] = json!({
            "type": "string",
            "description": "What is said to the agent.",
        });
        schema["properties"][self.session] = json!({
            "type": "string",
            "description": format!(
                "The session of an earlier result. With `{}` it hears more; without it, the call waits for what the session does.{begins}",
                self.message
            ),
        });
        schema
    }

    /// Reads the arguments of a call.
    pub(super) fn read(&self, arguments: Option<&JsonObject>) -> Result<Arguments, Problem> {
        let mut arguments = arguments.cloned().unwrap_or_default();
        let mut text = |name: &str| match arguments.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::new(Code::Body, format!("`{name}` is a text"))),
        };
        let (session, message) = (text(self.session)?, text(self.message)?);
        if session.is_some() && !arguments.is_empty() {
            let names: Vec<&str> = arguments.keys().map(String::as_str).collect();
            let why = format!("a session that goes on takes no {}", names.join(", "));
            return Err(Problem::new(Code::Body, why).help(format!(
                "send `{}` and `{}` alone",
                self.session, self.message
            )));
        }
        let has_arguments = !arguments.is_empty() || (self.has_parameters() && message.is_none());
        let begins = session.is_none() && has_arguments;
        let args = begins.then_some(Value::Object(arguments));
        if session.is_none() && args.is_none() && message.is_none() {
            let why = format!("nothing is said: `{}` is missing", self.message);
            return Err(Problem::new(Code::Body, why));
        }
        Ok(Arguments {
            session,
            message,
            args,
        })
    }
}
