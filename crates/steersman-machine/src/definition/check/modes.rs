//! Modes that cannot do what they say: exits that never fire, modes that nothing leads to, and those that never end.

use super::super::diagnostic::Diagnostic;
use super::super::source::{Node, Span};
use super::Check;
use crate::ids::Name;
use crate::network::{
    AgentDef, ExitsWhen, FINISH, Mode, ModeExit, ModelAgent, Modes, Network, Offer, Source,
    ToolChoice,
};
use std::collections::BTreeSet;

/// The modes to which tools may lead that a model is offered.
enum Said {
    /// These.
    Only(BTreeSet<Name>),
    /// Any: a template says which, or a tool in Rust.
    Any,
}

impl Check<'_> {
    pub(super) fn modes(&mut self) {
        let lowered = self.lowered;
        for (name, agent) in &lowered.network.agents {
            let Some(modes) = &agent.modes else {
                continue;
            };
            let Some(node) = self.entry_of("agents", name).cloned() else {
                continue;
            };
            self.mode_exits(&node, None, modes);
            for mode in &modes.all {
                self.mode_exits(&node, Some(mode), modes);
                self.never_ends(&node, mode, modes);
            }
            self.never_in_force(&node, modes);
        }
        self.said_modes();
    }

    fn mode_exits(&mut self, agent: &Node, mode: Option<&Mode>, modes: &Modes) {
        let network = &self.lowered.network;
        let (node, exits) = match mode {
            Some(mode) => (node_of(agent, &mode.name), &mode.exits),
            None => (Some(agent), &modes.exits),
        };
        let nodes = node.and_then(|node| node.get("exits"));
        let nodes = nodes.map(Node::items).unwrap_or_default();
        if nodes.len() != exits.len() {
            return;
        }
        for (node, exit) in nodes.iter().zip(exits) {
            if let Some(mode) = mode.filter(|mode| mode.name == exit.to) {
                let at = self.place(node.get("to").map_or(node.span, |to| to.span));
                self.say(Diagnostic::leads_to_itself(at, &mode.name));
            }
            let ExitsWhen::AfterTool(names) = &exit.cause else {
                continue;
            };
            let within: Vec<&ModelAgent> = match mode {
                Some(mode) => vec![&mode.model],
                None => modes.all.iter().map(|mode| &mode.model).collect(),
            };
            for name in names {
                if within.iter().any(|model| may_call(network, model, name)) {
                    continue;
                }
                let at = self.place(of_name(node, name));
                let mode = mode.map(|mode| &*mode.name);
                self.say(Diagnostic::exit_of_no_tool(at, name, mode));
            }
        }
    }

    /// A model that must call something else than the end, in a mode that nothing leads out of.
    fn never_ends(&mut self, agent: &Node, mode: &Mode, modes: &Modes) {
        let ToolChoice::Tool(must) = &mode.model.tool_choice else {
            return;
        };
        let away = |exit: &&ModeExit| exit.to != mode.name;
        let leaves = mode
            .exits
            .iter()
            .chain(&modes.exits)
            .any(|exit| away(&exit));
        let said = match said(&self.lowered.network, &mode.model) {
            Said::Any => true,
            Said::Only(names) => names.iter().any(|name| *name != mode.name),
        };
        if leaves || said || **must == *FINISH {
            return;
        }
        let node = node_of(agent, &mode.name);
        let at = node.and_then(|node| node.get("tool_choice"));
        let at = at.or(agent.get("tool_choice")).map(|node| node.span);
        let at = at.and_then(|span| self.place(span));
        self.say(Diagnostic::mode_without_end(at, &mode.name, must));
    }

    fn never_in_force(&mut self, agent: &Node, modes: &Modes) {
        let network = &self.lowered.network;
        let mut open = vec![&*modes.start];
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        while let Some(name) = open.pop() {
            let Some(mode) = modes.get(name).filter(|_| seen.insert(name.to_owned())) else {
                continue;
            };
            let exits = mode.exits.iter().chain(&modes.exits);
            open.extend(exits.map(|exit| &*exit.to));
            match said(network, &mode.model) {
                Said::Any => return,
                Said::Only(names) => all.extend(names),
            }
            open.extend(all.iter().filter_map(|name| Some(&*modes.get(name)?.name)));
        }
        for mode in modes.all.iter().filter(|mode| !seen.contains(&*mode.name)) {
            let at = key_of(agent, &mode.name).and_then(|span| self.place(span));
            self.say(Diagnostic::mode_never_in_force(at, &mode.name));
        }
    }

    /// Modes that tools say: somebody who is offered the tool has them.
    fn said_modes(&mut self) {
        let lowered = self.lowered;
        for (name, tool) in &lowered.network.tools {
            let Some(mode) = tool.mode.as_ref().and_then(|mode| plain(&mode.source)) else {
                continue;
            };
            let agents = lowered.network.agents.values();
            let offered = agents.filter(|agent| agent.modes.is_some() && calls(agent, name));
            let lacking = offered.filter(|agent| {
                let modes = agent.modes.as_ref();
                modes.is_some_and(|modes| modes.get(mode).is_none())
            });
            let lacking: Vec<&AgentDef> = lacking.collect();
            let Some(agent) = lacking.first() else {
                continue;
            };
            let node = self.entry_of("tools", name);
            let at = node.and_then(|node| node.get("mode")).map(|node| node.span);
            let at = at.and_then(|span| self.place(span));
            let names = agent.modes.as_ref().map_or_else(String::new, |m| m.names());
            self.say(Diagnostic::says_no_mode(at, mode, &agent.name, &names));
        }
    }
}

/// The node of a mode.
fn node_of<'a>(agent: &'a Node, mode: &Name) -> Option<&'a Node> {
    let modes = agent.get("modes")?.entries();
    let found = modes.iter().find(|(key, _)| key.name == *mode);
    found.map(|(_, node)| node)
}

fn key_of(agent: &Node, mode: &Name) -> Option<Span> {
    let modes = agent.get("modes")?.entries();
    let found = modes.iter().find(|(key, _)| key.name == *mode);
    found.map(|(key, _)| key.span)
}

/// Where an exit names a tool.
fn of_name(exit: &Node, name: &Name) -> Span {
    let Some(node) = exit.get("after_tool") else {
        return exit.span;
    };
    let named = |item: &&Node| item.as_text() == Some(name);
    node.items().iter().find(named).unwrap_or(node).span
}

/// A template that is a text.
fn plain(source: &str) -> Option<&str> {
    let is_plain = !source.contains("{{") && !source.contains("{%");
    Some(source.trim()).filter(|text| is_plain && !text.is_empty())
}

fn calls(agent: &AgentDef, tool: &Name) -> bool {
    let mut uses = agent.offers();
    uses.any(|used| matches!(&used.of, Offer::Tool(name) if name == tool))
}

/// What tools that are offered say of modes.
fn said(network: &Network, model: &ModelAgent) -> Said {
    let mut only = BTreeSet::new();
    for name in called(network, model) {
        let Some(tool) = network.tools.get(&name) else {
            continue;
        };
        match tool.mode.as_ref().map(|mode| plain(&mode.source)) {
            Some(Some(mode)) => drop(only.insert(mode.into())),
            Some(None) => return Said::Any,
            None if matches!(tool.source, Source::Native { .. }) => return Said::Any,
            None => {}
        }
    }
    Said::Only(only)
}

/// Whether a call of this name may be in an exchange: the tool is offered, runs ahead of a turn, or follows another.
fn may_call(network: &Network, model: &ModelAgent, name: &Name) -> bool {
    let listed = |server: &Name| name.split_once('.').is_some_and(|(of, _)| *of == **server);
    called(network, model).contains(name)
        || model.tools.iter().any(|used| used.seen == *name)
        || model.servers.iter().any(|used| listed(&used.server))
}

fn called(network: &Network, model: &ModelAgent) -> BTreeSet<Name> {
    let offered = model.tools.iter().map(|used| match &used.of {
        Offer::Tool(name) | Offer::Agent(name) => name,
    });
    let ahead = model.before.iter().map(|before| &before.tool);
    let mut open: Vec<&Name> = offered.chain(ahead).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let runs = network
            .agents
            .get(name)
            .and_then(|agent| match &agent.does {
                crate::network::Does::Run { tool, .. } => Some(tool),
                _ => None,
            });
        open.extend(runs);
        let Some(tool) = network.tools.get(name) else {
            continue;
        };
        let after = tool.on_error.values().filter_map(|on| on.then.as_ref());
        open.extend(after.chain(&tool.then).map(|then| &then.tool));
    }
    seen
}
