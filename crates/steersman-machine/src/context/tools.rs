//! Tools as a model sees them: names, descriptions, and JSON Schemas of the arguments.

use super::At;
use crate::network::join::JoinOn;
use crate::network::{
    AgentDef, Does, ModelAgent, Network, Offer, Route, RouteBy, ToolUse, wire_name,
};
use crate::questions::ToolSpec;
use crate::routers::floor;
use crate::stored::built_in::BuiltIn;
use crate::stored::ids::Name;
use crate::values::expression::EvalError;
use crate::values::types::{Parameters, object_schema};
use serde_json::{Map, Value as Json, json};

/// Returns, for each of an agent's tools in the order of the definition, whether it is offered now.
pub(super) fn offered(at: &At<'_>, model: &ModelAgent) -> Result<Vec<bool>, EvalError> {
    let holds = |used: &ToolUse| match &used.when {
        Some(when) => at.base.holds(when),
        None => Ok(match at.cx.network.floor_tool(used) {
            Some(kind) => floor::offers(at.cx, at.snapshot, at.agent, kind),
            None => !used.implied || at.base.sees_artifacts(),
        }),
    };
    model.tools.iter().map(holds).collect()
}

/// Returns the specs of the tools that are offered.
pub(super) fn specs(
    network: &Network,
    agent: &AgentDef,
    model: &ModelAgent,
    offered: &[bool],
) -> Vec<ToolSpec> {
    let uses = model.tools.iter().zip(offered).filter(|(_, on)| **on);
    uses.map(|(used, _)| spec(network, agent, used)).collect()
}

fn spec(network: &Network, agent: &AgentDef, used: &ToolUse) -> ToolSpec {
    let hidden: Vec<&str> = used.args.iter().map(|(name, _)| &**name).collect();
    let (description, parameters) = match &used.of {
        Offer::Tool(name) if network.floor_tool(used) == Some(BuiltIn::Handoff) => {
            let tool = network.tool(name);
            let peers = peers(network, &agent.name);
            (&tool.description, handoff_schema(network, &peers))
        }
        Offer::Tool(name) => {
            let tool = network.tool(name);
            let parameters = agent.parameters_of(tool);
            (&tool.description, schema_without(&parameters, &hidden))
        }
        Offer::Agent(name) => match (network.agents.get(name), network.people.get(name)) {
            (None, Some(person)) => (&person.description, message_schema()),
            (agent, _) => {
                let agent = agent.expect("names in a network resolve");
                (
                    &agent.description,
                    schema_without(&agent.parameters, &hidden),
                )
            }
        },
    };
    let parameters = if used.named {
        named(parameters)
    } else {
        parameters
    };
    ToolSpec {
        name: wire_name(&used.seen),
        description: match joined(&used.join) {
            Some(when) => format!("{description} {when}"),
            None => description.clone(),
        },
        parameters: parameters.to_string(),
    }
}

/// Returns a sentence for the model about a fork that does not wait for all of its branches. `None` if it waits for all.
fn joined(on: &JoinOn) -> Option<String> {
    Some(match on {
        JoinOn::All => return None,
        JoinOn::Any => "Goes on when one of them ended; the others are cancelled.".to_owned(),
        JoinOn::Count(n) => {
            format!("Goes on when {n} of them ended; the others are cancelled. Give {n} at least.")
        }
        JoinOn::Holds(expr) => format!(
            "Goes on as soon as this holds of them: {}; the others are cancelled.",
            expr.source.trim()
        ),
    })
}

/// Returns the members to which an agent may hand over, under all routed agents of which it is a member.
fn peers<'n>(network: &'n Network, agent: &str) -> Vec<&'n Name> {
    let mut peers: Vec<&Name> = Vec::new();
    for def in network.agents.values() {
        if let Does::Route(Route {
            by: RouteBy::Handoff(handoff),
            ..
        }) = &def.does
        {
            let to = handoff.to.get(agent).into_iter().flatten();
            peers.extend(to.filter(|peer| !peers.contains(peer)).collect::<Vec<_>>());
        }
    }
    peers
}

fn handoff_schema(network: &Network, peers: &[&Name]) -> Json {
    let lines = peers.iter().map(|peer| {
        let description = network.description_of(peer);
        format!("{peer}: {description}")
    });
    let lines: Vec<String> = lines.collect();
    let names: Vec<&str> = peers.iter().map(|peer| &***peer).collect();
    json!({
        "type": "object",
        "properties": {
            "to": { "type": "string", "enum": names, "description": lines.join("\n") },
            "reason": { "type": "string" },
        },
        "required": ["to", "reason"],
        "additionalProperties": false,
    })
}

fn message_schema() -> Json {
    json!({
        "type": "object",
        "properties": { "message": { "type": "string" } },
        "required": ["message"],
        "additionalProperties": false,
    })
}

/// Adds the parameter `name` to a schema. Its value selects the instance of the agent.
fn named(mut schema: Json) -> Json {
    let name = json!({
        "type": "string",
        "description": "Name of the instance; the same name continues the same one.",
    });
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        let mut all = Map::from_iter([("name".to_owned(), name)]);
        all.extend(std::mem::take(properties));
        *properties = all;
    }
    match schema.get_mut("required").and_then(Json::as_array_mut) {
        Some(required) => required.insert(0, "name".into()),
        None => schema["required"] = json!(["name"]),
    }
    schema
}

fn schema_without(parameters: &Parameters, hidden: &[&str]) -> Json {
    match parameters {
        Parameters::Fields(fields) => {
            let shown = fields.iter().filter(|(name, _)| !hidden.contains(&&**name));
            object_schema(shown.map(|(n, t)| (n, t)))
        }
        Parameters::Schema(text) => {
            let mut schema =
                serde_json::from_str::<Json>(text).unwrap_or_else(|_| json!({ "type": "object" }));
            if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
                properties.retain(|name, _| !hidden.contains(&&**name));
            }
            if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
                required.retain(|name| name.as_str().is_none_or(|n| !hidden.contains(&n)));
            }
            schema
        }
    }
}
