//! Lowers MCP servers and references to their tools.

use super::super::diagnostic::Diagnostic;
use super::super::shape::list_of;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node};
use super::{Declared, Lower, Sort, duration, sorted, word};
use std::collections::BTreeMap;
use steersman_machine::network::{
    McpAt, McpDef, McpEffect, Offer, Render, ServerUse, ToolDef, manifest,
};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;

fn class(word: &str) -> Option<Class> {
    Some(match word {
        "pure" => Class::Pure,
        "read" => Class::Read,
        "idempotent" => Class::Idempotent,
        "unsafe" => Class::Unsafe,
        _ => return None,
    })
}

impl Lower<'_> {
    pub(super) fn mcp(&mut self) -> BTreeMap<Name, McpDef> {
        let merged = self.merged;
        let mut servers = BTreeMap::new();
        for (key, node) in merged.section("mcp") {
            let server = self.server(key, node);
            servers.insert(key.name.clone(), server);
        }
        servers
    }

    fn server(&mut self, key: &Key, node: &Node) -> McpDef {
        let outside = Scope {
            item: Some(node.span),
            outside: true,
            ..Scope::default()
        };
        self.needs(node, "headers", &["url"], "an MCP server without `url`");
        self.needs(node, "env", &["command"], "an MCP server without `command`");
        let at = match node.get("command") {
            Some(command) => McpAt::Command {
                argv: command
                    .items()
                    .iter()
                    .filter_map(|node| self.template(node, Wants::Text, &outside))
                    .collect(),
                env: self.texts(node.get("env"), &outside.transported()),
            },
            None => McpAt::Http {
                url: self
                    .text_of(node, "url", &outside.transported())
                    .unwrap_or_else(|| steersman_machine::values::expression::Template::plain("")),
                headers: self.texts(node.get("headers"), &outside.transported()),
            },
        };
        let mut effects = BTreeMap::new();
        for (tool, word) in sorted(node.get("effects")) {
            let class = word.as_text().and_then(|word| class(word));
            effects.extend(class.map(|class| (tool.name.to_string(), class)));
        }
        let render = sorted(node.get("render"))
            .into_iter()
            .map(|(tool, shown)| (tool.name.to_string(), self.server_render(shown)))
            .collect();
        McpDef {
            name: key.name.clone(),
            at,
            tools: node.get("tools").map(|tools| {
                let texts = tools.items().iter().filter_map(Node::as_text);
                texts.map(ToString::to_string).collect()
            }),
            effect: match word(node, "effect") {
                Some("annotations") => McpEffect::Annotations,
                Some(word) => McpEffect::Class(class(word).unwrap_or(Class::Unsafe)),
                None => McpEffect::Class(Class::Unsafe),
            },
            effects,
            render,
            follows: word(node, "refresh") == Some("follow"),
            timeout: duration(node, "timeout").unwrap_or(60_000),
        }
    }

    /// Lowers `render` of a server. The parameters of its tools are not known here, so `args` may be anything.
    fn server_render(&mut self, node: &Node) -> Render {
        let scope = Scope {
            item: Some(node.span),
            args: Args::Tool("".into()),
            ..Scope::default()
        };
        self.render(Some(node), &scope.with_result(), None)
    }

    /// Parses `SERVER.TOOL` or `SERVER.*` of a declared server. Returns the server, and true if all its tools are meant. A single
    /// tool is recorded as declared; its parameters are known only after the server is asked.
    pub(super) fn remote(&mut self, node: &Node) -> Option<(Name, bool)> {
        let name = node.as_text()?.clone();
        let (server, tool) = name.split_once('.')?;
        let merged = self.merged;
        let servers = merged.section("mcp");
        let at = self.place(node.span);
        let Some((key, of)) = servers.iter().find(|(key, _)| &*key.name == server) else {
            let near = self
                .sources
                .near(server, servers.iter().map(|(key, _)| &*key.name));
            self.say(Diagnostic::unknown_name(at, "MCP server", server, near));
            return None;
        };
        if tool == "*" {
            return Some((key.name.clone(), true));
        }
        if tool.is_empty() || name.len() > manifest::NAME_MAX {
            self.say(Diagnostic::malformed(at, &name, "SERVER.TOOL"));
            return None;
        }
        if let Some(taken) = of.get("tools").map(Node::items) {
            let taken: Vec<&str> = taken
                .iter()
                .filter_map(|node| node.as_text().map(|text| &**text))
                .collect();
            if !taken.iter().any(|pattern| manifest::matches(pattern, tool)) {
                let words = list_of(taken.iter().copied());
                self.say(Diagnostic::not_taken(at, server, tool, &words));
                return None;
            }
        }
        let server = key.name.clone();
        self.out.remote.insert((server.clone(), tool.into()));
        self.out.declared.entry(name).or_insert(Declared {
            sort: Sort::Tool,
            span: node.span,
            item: node.span,
        });
        Some((server, false))
    }

    /// Returns true if a name has the form `SERVER.TOOL` of a declared server.
    pub(super) fn of_server(&self, name: &str) -> bool {
        let mut servers = self.merged.section("mcp").iter();
        name.split_once('.').is_some_and(|(server, tool)| {
            !tool.is_empty() && servers.any(|(key, _)| &*key.name == server)
        })
    }

    /// Lowers an entry of `tools` that offers all tools of a server; `None` for any other entry.
    pub(super) fn all_of(&mut self, node: &Node, scope: &Scope, at: usize) -> Option<ServerUse> {
        let what = node.get("tool").unwrap_or(node);
        if !what.as_text()?.ends_with(".*") {
            return None;
        }
        let (server, _) = self.remote(what)?;
        for (key, _) in node.entries() {
            if matches!(&*key.name, "as" | "args" | "choose" | "effects") {
                let at = self.place(key.span);
                self.say(Diagnostic::type_key(at, &key.name, "all tools of a server"));
            }
        }
        let of = Offer::Tool(what.as_text()?.clone());
        let (like, _) = self.tool_use(node, of, what.span, scope);
        Some(ServerUse { server, at, like })
    }

    /// Adds the named tools of servers to the declared tools, as far as they are known without asking the server.
    pub(super) fn with_remote(
        &self,
        mut tools: BTreeMap<Name, ToolDef>,
        servers: &BTreeMap<Name, McpDef>,
    ) -> BTreeMap<Name, ToolDef> {
        for (server, tool) in &self.out.remote {
            if let Some(server) = servers.get(server) {
                let tool = manifest::unasked(server, tool);
                tools.insert(tool.name.clone(), tool);
            }
        }
        tools
    }
}
