//! Manifests: the tools that MCP servers offered when a session was bound, with the descriptions that only the servers have.
//!
//! A definition names servers and, with `SERVER.TOOL`, tools of theirs. When a session starts, each server is asked for its
//! tools. The answer is stored by hash, and the session runs under it until a refresh. [`Network::with_manifest`] combines the
//! definition and a manifest into the full network. A network without a manifest works, too, for tests without
//! a server: a tool that the definition names takes any arguments, and `SERVER.*` offers no tool.

use crate::network::{
    McpDef, McpEffect, Network, Offer, Render, Source, ToolDef, ToolUse, wire_name,
};
use crate::stored::bounds::SEEN_MAX;
use crate::stored::ids::Name;
use crate::stored::interaction::Class;
use crate::values::near::near;
use crate::values::types::Parameters;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of `SERVER.TOOL`, in bytes.
pub const NAME_MAX: usize = crate::stored::bounds::NAME;
/// Maximum number of tools of one server.
pub const TOOLS_MAX: usize = 512;
/// Maximum stored size of one tool, in bytes.
pub const TOOL_MAX: usize = 32 << 10;

/// The tools of all servers of a definition. **Stored** as JSON under its hash. Every new field needs a default. A program that
/// does not know a field refuses the manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Listings by the server's name in the definition. A server that was not asked is absent.
    pub servers: BTreeMap<Name, Listing>,
}

/// The tools of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Name and version that the server gives itself; for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The tools that the definition takes, in the order in which the server lists them.
    pub tools: Vec<Listed>,
}

/// One tool of a server, as the server describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Name of the tool on its server.
    pub name: String,
    /// Description for models.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of the arguments.
    pub input: Json,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// True if the server claims that the tool changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
    /// True if the server claims that a second call with equal arguments changes nothing more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
}

impl Manifest {
    /// Parses a stored manifest. The error is a text for people.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|e| format!("the manifest of its servers cannot be read: {e}"))
    }

    /// Returns the text that is stored.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a manifest is JSON")
    }
}

impl Listing {
    fn tool(&self, name: &str) -> Option<&Listed> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Keeps the tools in `open` as they were in the older list, because calls of them are open and must end under the same
    /// description. Returns the names of those that the newer list changed or dropped.
    #[must_use]
    pub fn keep(&mut self, older: &Self, open: &BTreeSet<String>) -> BTreeSet<String> {
        let mut kept = BTreeSet::new();
        for was in older.tools.iter().filter(|tool| open.contains(&tool.name)) {
            match self.tools.iter_mut().find(|tool| tool.name == was.name) {
                Some(is) if is == was => continue,
                Some(is) => is.clone_from(was),
                None => self.tools.push(was.clone()),
            }
            kept.insert(was.name.clone());
        }
        kept
    }

    /// Describes the changes since an older list, one text for each tool. Empty if the tools are equal.
    pub fn changes(&self, server: &Name, older: &Self) -> Vec<String> {
        let mut texts = Vec::new();
        for is in &self.tools {
            let name = format!("`{server}.{}`", is.name);
            match older.tool(&is.name) {
                None => texts.push(format!("{name} is new")),
                Some(was) if was.input != is.input => {
                    texts.push(format!("{name} takes other arguments"));
                }
                Some(was) if was.output != is.output => {
                    texts.push(format!("{name} gives other results"));
                }
                Some(was) if (was.reads, was.idempotent) != (is.reads, is.idempotent) => {
                    texts.push(format!("{name} says otherwise what it may do"));
                }
                Some(was) if was != is => texts.push(format!("{name} has another description")),
                Some(_) => {}
            }
        }
        let gone = older
            .tools
            .iter()
            .filter(|was| self.tool(&was.name).is_none());
        texts.extend(gone.map(|was| format!("`{server}.{}` is gone", was.name)));
        if texts.is_empty() && self.tools != older.tools {
            texts.push(format!("`{server}` lists its tools in another order"));
        }
        texts
    }
}

/// Returns true if a pattern of `tools:` matches a tool. `*` matches any text.
pub fn matches(pattern: &str, tool: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == tool;
    };
    let Some(mut left) = tool.strip_prefix(head) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl McpDef {
    /// Returns true if the definition takes a tool of this name.
    pub fn takes(&self, tool: &str) -> bool {
        let patterns = self.tools.as_ref();
        patterns.is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, tool)))
    }
}

/// Returns the definition of a tool of which only the name is known.
pub fn unasked(server: &McpDef, tool: &str) -> ToolDef {
    let listed = Listed {
        name: tool.to_owned(),
        input: json!({ "type": "object" }),
        ..Listed::default()
    };
    tool_of(server, &listed)
}

fn tool_name(server: &str, listed: &Listed) -> Name {
    format!("{server}.{}", listed.name).into()
}

fn tool_of(server: &McpDef, listed: &Listed) -> ToolDef {
    let by_hints = match (listed.reads, listed.idempotent) {
        (true, _) => Class::Read,
        (false, true) => Class::Idempotent,
        (false, false) => Class::Unsafe,
    };
    let effect = server.effects.get(&listed.name).copied();
    ToolDef {
        name: tool_name(&server.name, listed),
        description: listed.description.clone(),
        parameters: Parameters::Schema(listed.input.to_string().into()),
        effect: effect.unwrap_or(match server.effect {
            McpEffect::Class(class) => class,
            McpEffect::Annotations => by_hints,
        }),
        requires: Vec::new(),
        approve: Vec::new(),
        source: Source::Mcp {
            server: server.name.clone(),
            tool: listed.name.as_str().into(),
            output: listed
                .output
                .as_ref()
                .map(|schema| schema.to_string().into()),
        },
        set: Vec::new(),
        result: None,
        on_error: BTreeMap::new(),
        on_doubt: None,
        simulate: None,
        repeat_allowed: false,
        then: None,
        mode: None,
        render: server
            .render
            .get(&listed.name)
            .cloned()
            .unwrap_or_else(Render::default),
        timeout: server.timeout,
        retry: server.retry,
        parallel: 8,
        reflect: None,
    }
}

impl Network {
    /// Returns the network with the tools of this manifest. Named tools get the server's descriptions, and agents that are
    /// offered all tools of a server get them. The errors are texts for people, one for each named tool that a server lacks and
    /// for each name that a model cannot be shown.
    pub fn with_manifest(&self, manifest: &Manifest) -> Result<Self, Vec<String>> {
        let mut network = self.clone();
        let mut wrong = Vec::new();
        for (name, server) in &self.mcp {
            if let Some(listing) = manifest.servers.get(name) {
                network.take(server, listing, &mut wrong);
            }
        }
        for agent in network.agents.values_mut() {
            let name = agent.name.clone();
            for model in agent.models_mut() {
                for of in std::mem::take(&mut model.servers).into_iter().rev() {
                    let Some(listing) = manifest.servers.get(&of.server) else {
                        continue;
                    };
                    let named = |tool: &Name| {
                        let offers = model.tools.iter().map(|used| &used.of);
                        offers
                            .into_iter()
                            .any(|of| matches!(of, Offer::Tool(name) if name == tool))
                    };
                    let mut uses = Vec::new();
                    for listed in &listing.tools {
                        let tool = tool_name(&of.server, listed);
                        // A tool that is also named by itself keeps the settings that are written there.
                        if !named(&tool) {
                            uses.push(ToolUse {
                                of: Offer::Tool(tool.clone()),
                                seen: tool,
                                ..of.like.clone()
                            });
                        }
                    }
                    let listed = listing.tools.iter();
                    let listed = listed.map(|listed| tool_name(&of.server, listed));
                    let leads = network.leads.entry(name.clone()).or_default();
                    leads.extend(listed);
                    let at = of.at.min(model.tools.len());
                    model.tools.splice(at..at, uses);
                }
                check_names(&name, &model.tools, &mut wrong);
            }
        }
        wrong.sort();
        wrong.dedup();
        if wrong.is_empty() {
            Ok(network)
        } else {
            Err(wrong)
        }
    }

    /// Takes the tools of one server into the network, with the server's descriptions.
    fn take(&mut self, server: &McpDef, listing: &Listing, wrong: &mut Vec<String>) {
        let tools: BTreeMap<Name, ToolDef> = listing
            .tools
            .iter()
            .map(|listed| tool_of(server, listed))
            .map(|tool| (tool.name.clone(), tool))
            .collect();
        for name in tools.keys().filter(|name| name.len() > NAME_MAX) {
            wrong.push(format!(
                "`{name}` has {} characters; at most {NAME_MAX} are allowed: leave it out in `tools` of the server",
                name.len()
            ));
        }
        let named = self.tools.values().filter(
            |tool| matches!(&tool.source, Source::Mcp { server: of, .. } if *of == server.name),
        );
        for tool in named.filter(|tool| !tools.contains_key(&tool.name)) {
            let near = near(&tool.name, tools.keys().map(|name| &**name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            wrong.push(format!(
                "the MCP server `{}` has no tool for `{}`{near}",
                server.name, tool.name
            ));
        }
        self.tools.extend(tools);
    }
}

/// Reports tool names that a provider would refuse, or that a model could not tell apart.
fn check_names(agent: &Name, tools: &[ToolUse], wrong: &mut Vec<String>) {
    let mut known: BTreeMap<String, &Name> = BTreeMap::new();
    for used in tools {
        let name = wire_name(&used.seen);
        if name.len() > SEEN_MAX {
            wrong.push(format!(
                "a model would see `{}` as `{name}`, which has {} characters; providers take {SEEN_MAX}: name it in the \
                 `tools` of `{agent}` with `as:`, or leave it out in `tools` of the server",
                used.seen,
                name.len()
            ));
        }
        if let Some(other) = known.insert(name.clone(), &used.seen) {
            wrong.push(format!(
                "a model would see both `{other}` and `{}` as `{name}`: name one in the `tools` of `{agent}` with `as:`",
                used.seen
            ));
        }
    }
}
