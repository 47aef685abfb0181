//! MCP servers of a network, and the names of their tools.

use super::{Render, ToolUse};
use crate::stored::ids::Name;
use crate::stored::interaction::Class;
use crate::values::expression::Template;
use std::collections::BTreeMap;

/// An MCP server of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct McpDef {
    /// Its name in the definition.
    pub name: Name,
    /// Its address or command. Templates here read `config` and, except in `argv` of a command, `secrets`.
    pub at: McpAt,
    /// Patterns for the names of the tools that the network takes; `*` matches any text. `None` takes all tools.
    pub tools: Option<Vec<String>>,
    /// Effect class of its tools.
    pub effect: McpEffect,
    /// Effect class of single tools; it takes precedence over `effect`.
    pub effects: BTreeMap<String, Class>,
    /// Form of calls and results in the context, by tool.
    pub render: BTreeMap<String, Render>,
    /// True if the session follows changes of the server's list of tools (`refresh: follow`). Otherwise it keeps the list with
    /// which it began.
    pub follows: bool,
    /// Time limit of its start, until it has greeted, in milliseconds.
    pub start_timeout: u64,
    /// Time limit of one attempt, once the server has greeted, in milliseconds.
    pub timeout: u64,
    /// Maximum number of further attempts of a call.
    pub retry: u32,
}

impl McpDef {
    /// Returns the sign-in, if the server wants one.
    pub fn oauth(&self) -> Option<&OAuth> {
        match &self.at {
            McpAt::Http { oauth, .. } => oauth.as_deref(),
            McpAt::Command { .. } => None,
        }
    }
}

/// Transport to an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub enum McpAt {
    /// Streamable HTTP.
    Http {
        /// Address of the server.
        url: Template,
        /// Headers of each request.
        headers: Vec<(String, Template)>,
        /// The sign-in, if the server wants one.
        oauth: Option<Box<OAuth>>,
    },
    /// A process that speaks over standard input and output.
    Command {
        /// Program and arguments; no shell is involved.
        argv: Vec<Template>,
        /// Environment variables of the process.
        env: Vec<(String, Template)>,
    },
}

/// The sign-in at a server with OAuth 2.1. Templates here read `config` and `secrets`.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuth {
    /// The one who signs in.
    pub by: SignsIn,
    /// Id under which the program is registered at the authorization server. `None` registers it when somebody signs in.
    pub client_id: Option<Template>,
    /// The secret of that registration.
    pub client_secret: Option<Template>,
    /// A private key in PEM whose signature stands in for the secret.
    pub key: Option<Template>,
    /// Address of the authorization server at which the program is registered. `None` takes the first one that the server names.
    pub issuer: Option<Template>,
    /// Address of a document that describes the program. It is the id of the program where the authorization server takes that.
    pub client_metadata: Option<Template>,
    /// The scopes that are asked for, and no others. `None` asks for those that the server names.
    pub scopes: Option<Vec<String>>,
}

/// The one who signs in at a server.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SignsIn {
    /// A person, in a browser.
    Person,
    /// The program itself, by its secret or its key.
    Program,
}

/// Effect class of the tools of a server.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum McpEffect {
    /// All tools have this class.
    Class(Class),
    /// Each tool has the class that follows from the server's annotations.
    Annotations,
}

/// All tools of a server, offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerUse {
    /// Name of the server.
    pub server: Name,
    /// Index in the agent's list of tools at which the server's tools are inserted.
    pub at: usize,
    /// Settings with which each tool is offered.
    pub like: ToolUse,
}

impl ToolUse {
    /// Returns true if the name in a model's call is that of this tool. Providers accept no dot, so the model may have seen
    /// [`wire_name`].
    pub fn is_called(&self, name: &str) -> bool {
        *self.seen == *name || self.seen.contains('.') && wire_name(&self.seen) == name
    }
}

/// Returns the name of a tool as a model sees it: `SERVER.TOOL` becomes `SERVER__TOOL`, and characters of `TOOL` that providers
/// refuse become `_`. A name without a dot does not change.
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
