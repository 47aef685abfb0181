//! MCP servers of a network, and how their tools are called.

use super::{Render, ToolUse};
use crate::expression::Template;
use crate::ids::Name;
use crate::interaction::Class;
use std::collections::BTreeMap;

/// An MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpDef {
    /// Its name in the definition.
    pub name: Name,
    /// How it is reached. Templates here read `config` and, but for the vector of a command, `secrets`.
    pub at: McpAt,
    /// Which of its tools are taken, `*` matches; none: all.
    pub tools: Option<Vec<String>>,
    /// Class of its tools.
    pub effect: McpEffect,
    /// Class by tool, before `effect`.
    pub effects: BTreeMap<String, Class>,
    /// How calls and results look, by tool.
    pub render: BTreeMap<String, Render>,
    /// A changed list of tools is taken over (`refresh: follow`); else it stays as it was when the session began.
    pub follows: bool,
    /// Of one attempt, in milliseconds.
    pub timeout: u64,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum McpAt {
    /// Streamable HTTP.
    Http {
        /// Address.
        url: Template,
        /// Headers.
        headers: Vec<(String, Template)>,
    },
    /// A process, over standard input and output.
    Command {
        /// Program and arguments; no shell.
        argv: Vec<Template>,
        /// Environment.
        env: Vec<(String, Template)>,
    },
}

/// Class of the tools of a server.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum McpEffect {
    /// This one.
    Class(Class),
    /// What the server says of each.
    Annotations,
}

/// All tools of a server, offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerUse {
    /// The server.
    pub server: Name,
    /// Before which of the agent's tools they stand.
    pub at: usize,
    /// How each is offered.
    pub like: ToolUse,
}

impl ToolUse {
    /// Whether a model means this by that name: providers take no dot, so it may have seen another than the one here.
    pub fn is_called(&self, name: &str) -> bool {
        *self.seen == *name || self.seen.contains('.') && wire_name(&self.seen) == name
    }
}

/// The name of a tool as a model sees it: `SERVER.TOOL` is `SERVER__TOOL`, and what providers refuse is `_`.
pub fn wire_name(name: &str) -> String {
    let Some((server, tool)) = name.split_once('.') else {
        return name.to_owned();
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tool: String = tool
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    format!("{server}__{tool}")
}
