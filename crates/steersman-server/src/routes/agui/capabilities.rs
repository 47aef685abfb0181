//! The capabilities of a definition, in the form of AG-UI.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use steersman::machine::network::{Does, Network, Offer, RouteBy, ToolDef};
use steersman::machine::values::types::{Parameters, schema_of_fields};

pub(super) fn of(network: &Network) -> Value {
    let entry = network.entry.first();
    let main = entry.and_then(|name| network.agents.get(name));
    let is_sub = |name: &str| entry.is_none_or(|entry| **entry != *name);
    let subagents = network.agents.values().filter(|agent| is_sub(&agent.name));
    let subagents: Vec<Value> = subagents
        .map(|agent| json!({ "name": agent.name, "description": agent.description }))
        .collect();
    let hands_off = |by: &RouteBy| matches!(by, RouteBy::Handoff(_));
    let handoffs = network
        .agents
        .values()
        .any(|agent| matches!(&agent.does, Does::Route(route) if hands_off(&route.by)));
    let offered: BTreeSet<&str> = network
        .agents
        .values()
        .filter_map(|agent| match &agent.does {
            Does::Model(model) => Some(&model.tools),
            _ => None,
        })
        .flatten()
        .filter_map(|used| match &used.of {
            Offer::Tool(name) => Some(&**name),
            Offer::Agent(_) => None,
        })
        .collect();
    let tools = network.tools.values();
    let tools: Vec<&ToolDef> = tools.filter(|tool| offered.contains(&*tool.name)).collect();
    let mut approvals = tools.iter().flat_map(|tool| &tool.approve);
    let edits = approvals.clone().any(|approve| !approve.edit.is_empty());
    let items: Vec<Value> = tools.iter().map(|tool| item(tool)).collect();
    json!({
        "identity": {
            "name": network.name,
            "type": "steersman",
            "description": network.description,
        },
        "transport": {
            "streaming": true, "websocket": false, "httpBinary": false, "pushNotifications": false, "resumable": false,
        },
        "tools": {
            "supported": !items.is_empty(), "items": items, "parallelCalls": true, "clientProvided": false,
        },
        "output": { "structuredOutput": main.is_some_and(|main| main.output.is_some()) },
        "state": { "snapshots": true, "deltas": true, "persistentState": true },
        "multiAgent": {
            "supported": !subagents.is_empty(), "delegation": !subagents.is_empty(), "handoffs": handoffs, "subagents": subagents,
        },
        "reasoning": { "supported": true, "streaming": true, "encrypted": false },
        "multimodal": { "input": { "image": false, "audio": false, "video": false, "pdf": false, "file": false } },
        "humanInTheLoop": {
            "supported": true, "approvals": approvals.next().is_some(), "interrupts": true, "approveWithEdits": edits,
        },
        "custom": { "protocolVersion": crate::protocol::agui::VERSION },
    })
}

fn item(tool: &ToolDef) -> Value {
    let parameters = match &tool.parameters {
        Parameters::Fields(fields) => schema_of_fields(fields),
        Parameters::Schema(text) => serde_json::from_str(text).unwrap_or_default(),
    };
    json!({ "name": tool.name, "description": tool.description, "parameters": parameters })
}
