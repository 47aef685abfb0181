//! Lowers MCP servers and references to their tools.

use super::super::diagnostic::Diagnostic;
use super::super::keys::agent::ToolUse;
use super::super::keys::file::{Mcp, OAuth, Refresh, ServerClass, SignsIn};
use super::super::keys::kinds::{Text, Valued, each, sorted};
use super::super::keys::tool;
use super::super::shape::list_of;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node};
use super::{Declared, Lower, Sort};
use std::collections::BTreeMap;
use steersman_machine::network::manifest;
use steersman_machine::network::{
    self as machine, McpAt, McpDef, McpEffect, OAuth as Login, Offer, Render, ServerUse, ToolDef,
};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::Template;

impl Lower<'_> {
    pub(super) fn mcp(&mut self) -> BTreeMap<Name, McpDef> {
        let servers = each(self.file.mcp());
        servers
            .map(|(key, server)| (key.name.clone(), self.server(key, server)))
            .collect()
    }

    fn server(&mut self, key: &Key, server: Mcp<'_>) -> McpDef {
        let outside = Scope {
            item: Some(server.0.span),
            outside: true,
            ..Scope::default()
        };
        self.meaningful_keys(server);
        let transported = outside.transported();
        let at = match server.command() {
            Some(command) => McpAt::Command {
                argv: command
                    .into_iter()
                    .filter_map(|text| self.template(&text, Wants::Text, &outside))
                    .collect(),
                env: self.texts(server.env(), &transported),
            },
            None => McpAt::Http {
                url: self
                    .text_of(server.url(), &transported)
                    .unwrap_or_else(|| Template::plain("")),
                headers: self.texts(server.headers(), &transported),
                oauth: server
                    .oauth()
                    .map(|oauth| Box::new(self.oauth(server, oauth, &transported))),
            },
        };
        let effects = each(server.effects());
        McpDef {
            name: key.name.clone(),
            at,
            tools: server.tools().and_then(Valued::value),
            effect: match server.effect().value {
                ServerClass::Annotations => McpEffect::Annotations,
                ServerClass::Pure => McpEffect::Class(Class::Pure),
                ServerClass::Read => McpEffect::Class(Class::Read),
                ServerClass::Idempotent => McpEffect::Class(Class::Idempotent),
                ServerClass::Unsafe => McpEffect::Class(Class::Unsafe),
            },
            effects: effects
                .filter_map(|(tool, class)| Some((tool.name.to_string(), class.value()?)))
                .collect(),
            render: sorted(server.render())
                .into_iter()
                .map(|(tool, shown)| (tool.name.to_string(), self.server_render(shown)))
                .collect(),
            follows: server.refresh().value == Refresh::Follow,
            start_timeout: server.start_timeout().value,
            timeout: server.timeout().value,
            retry: server.retry().value,
        }
    }

    /// Lowers the sign-in at a server.
    fn oauth(&mut self, server: Mcp<'_>, oauth: OAuth<'_>, transported: &Scope) -> Login {
        self.meaningful_keys(oauth);
        let at = self.place(oauth.0.span);
        let sends = |key: &Key| key.name.eq_ignore_ascii_case("authorization");
        if let Some((key, _)) = each(server.headers()).find(|(key, _)| sends(key)) {
            let (header, keys) = (self.place(key.span), "`oauth` and `headers.authorization`");
            self.say(Diagnostic::not_together(
                header,
                "an MCP server",
                keys,
                at.clone(),
            ));
        }
        let by = match oauth.by().value {
            SignsIn::Person => machine::SignsIn::Person,
            SignsIn::Program => machine::SignsIn::Program,
        };
        if by == machine::SignsIn::Program {
            let table = "a sign-in of the program";
            if oauth.client_id().is_none() {
                self.say(Diagnostic::missing_key(at, table, "client_id"));
            } else if oauth.client_secret().is_none() && oauth.key().is_none() {
                let keys = "`client_secret` and `key`";
                self.say(Diagnostic::none_of(at, table, keys));
            }
        }
        for scope in each(oauth.scopes()) {
            let is_scope = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
            if let Some(text) = scope.text().filter(|text| !is_scope(text)) {
                let at = self.place(scope.span);
                self.say(Diagnostic::malformed(at, text, "one scope, without blanks"));
            }
        }
        Login {
            by,
            client_id: self.text_of(oauth.client_id(), transported),
            client_secret: self.text_of(oauth.client_secret(), transported),
            key: self.text_of(oauth.key(), transported),
            issuer: self.text_of(oauth.issuer(), transported),
            client_metadata: self.text_of(oauth.client_metadata(), transported),
            scopes: oauth.scopes().and_then(Valued::value),
        }
    }

    /// Lowers `render` of a server. The parameters of its tools are not known here, so `args` may be anything.
    fn server_render(&mut self, render: tool::Render<'_>) -> Render {
        let scope = Scope {
            item: Some(render.0.span),
            args: Args::Tool("".into()),
            ..Scope::default()
        };
        self.render(Some(render), &scope.with_result(), None)
    }

    /// Parses `SERVER.TOOL` or `SERVER.*` of a declared server. Returns the server, and true if all its tools are meant. A single
    /// tool is recorded as declared; its parameters are known only after the server is asked.
    pub(super) fn remote(&mut self, node: &Node) -> Option<(Name, bool)> {
        let name = node.as_text()?.clone();
        let (server, tool) = name.split_once('.')?;
        let servers = self.file.mcp();
        let at = self.place(node.span);
        let Some((key, of)) = each(servers).find(|(key, _)| &*key.name == server) else {
            let names = each(servers).map(|(key, _)| &*key.name);
            let near = self.sources.near(server, names);
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
        if let Some(taken) = of.tools() {
            let taken = taken.into_iter().filter_map(Text::text);
            let taken: Vec<&str> = taken.map(|text| &**text).collect();
            if !taken.iter().any(|pattern| manifest::matches(pattern, tool)) {
                let words = list_of(taken.iter().copied());
                // A pattern is no name.
                let names = taken.iter().copied().filter(|name| !name.contains('*'));
                let near = self.sources.near(tool, names);
                self.say(Diagnostic::not_taken(at, server, tool, (&words, near)));
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
        let mut servers = each(self.file.mcp());
        name.split_once('.').is_some_and(|(server, tool)| {
            !tool.is_empty() && servers.any(|(key, _)| &*key.name == server)
        })
    }

    /// Lowers an entry of `tools` that offers all tools of a server; `None` for any other entry.
    pub(super) fn all_of(
        &mut self,
        written: ToolUse<'_>,
        scope: &Scope,
        at: usize,
    ) -> Option<ServerUse> {
        let what = written.tool().map_or(written.0, |tool| tool.0);
        if !what.as_text()?.ends_with(".*") {
            return None;
        }
        let (server, _) = self.remote(what)?;
        for (key, _) in written.0.entries() {
            if matches!(&*key.name, "as" | "args" | "choose" | "effects") {
                let at = self.place(key.span);
                self.say(Diagnostic::type_key(at, &key.name, "all tools of a server"));
            }
        }
        let of = Offer::Tool(what.as_text()?.clone());
        let like = self.tool_use(written, of, scope);
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
