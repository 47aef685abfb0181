//! Checks of modes: exits that never fire, modes that are never entered, and modes that never end.

use super::super::diagnostic::Diagnostic;
use super::super::keys::agent::{self, Agent};
use super::super::keys::kinds::each;
use super::super::source::{Key, Span};
use super::Check;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::{
    AgentDef, ExitsWhen, FINISH, Mode, ModeExit, ModelAgent, Modes, Network, Offer, Source,
    ToolChoice,
};
use steersman_machine::stored::ids::Name;

/// The modes that a model's tools may switch to.
enum Targets {
    /// Only these modes.
    Only(BTreeSet<Name>),
    /// Any mode: a template or a tool in Rust chooses it at run time.
    Any,
}

impl Check<'_> {
    pub(super) fn modes(&mut self) {
        let lowered = self.lowered;
        for (name, agent) in &lowered.network.agents {
            let Some(modes) = &agent.modes else {
                continue;
            };
            let Some(written) = self.written.agents.get(&**name).copied() else {
                continue;
            };
            let at = Written::of(written, modes);
            self.mode_exits(written, None, modes, &at);
            for mode in &modes.all {
                self.mode_exits(written, Some(mode), modes, &at);
                self.never_ends(written, mode, modes, &at);
            }
            self.never_in_force(modes, &at);
        }
        self.unknown_targets();
    }

    fn mode_exits(
        &mut self,
        agent: Agent<'_>,
        mode: Option<&Mode>,
        modes: &Modes,
        at: &Written<'_>,
    ) {
        let network = &self.lowered.network;
        let (written, exits) = match mode {
            Some(mode) => (
                at.mode(&mode.name).and_then(agent::Mode::exits),
                &mode.exits,
            ),
            None => (agent.exits(), &modes.exits),
        };
        let written: Vec<agent::ModeExit<'_>> = each(written).collect();
        if written.len() != exits.len() {
            return;
        }
        let within: Vec<&ModelAgent> = match mode {
            Some(mode) => vec![&mode.model],
            None => modes.all.iter().map(|mode| &mode.model).collect(),
        };
        let after_tool = |exit: &ModeExit| matches!(exit.cause, ExitsWhen::AfterTool(_));
        let called = if exits.iter().any(after_tool) {
            MayCall::of(network, &within)
        } else {
            MayCall::default()
        };
        for (written, exit) in written.into_iter().zip(exits) {
            if let Some(mode) = mode.filter(|mode| mode.name == exit.to) {
                let at = self.place(written.to().map_or(written.0.span, |to| to.span));
                self.say(Diagnostic::leads_to_itself(at, &mode.name));
            }
            let ExitsWhen::AfterTool(names) = &exit.cause else {
                continue;
            };
            for name in names {
                if called.has(name) {
                    continue;
                }
                let at = self.place(of_name(written, name));
                let mode = mode.map(|mode| &*mode.name);
                self.say(Diagnostic::exit_of_no_tool(at, name, mode));
            }
        }
    }

    /// Reports a mode that neither an exit nor a tool leaves, and whose `tool_choice` forces a tool other than `finish`.
    fn never_ends(&mut self, agent: Agent<'_>, mode: &Mode, modes: &Modes, at: &Written<'_>) {
        let ToolChoice::Tool(must) = &mode.model.tool_choice else {
            return;
        };
        let away = |exit: &&ModeExit| exit.to != mode.name;
        let leaves = mode
            .exits
            .iter()
            .chain(&modes.exits)
            .any(|exit| away(&exit));
        let switches = match targets(&self.lowered.network, &mode.model) {
            Targets::Any => true,
            Targets::Only(names) => names.iter().any(|name| *name != mode.name),
        };
        if leaves || switches || **must == *FINISH {
            return;
        }
        let at = at.mode(&mode.name).and_then(agent::Mode::tool_choice);
        let at = at.or(agent.tool_choice());
        let at = at.and_then(|choice| self.place(choice.span));
        self.say(Diagnostic::mode_without_end(at, &mode.name, must));
    }

    fn never_in_force(&mut self, modes: &Modes, at: &Written<'_>) {
        let network = &self.lowered.network;
        let mut open = vec![modes.start.clone()];
        open.extend(modes.exits.iter().map(|exit| exit.to.clone()));
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(mode) = at.modes.get(&*name).filter(|_| seen.insert(name)) else {
                continue;
            };
            open.extend(mode.exits.iter().map(|exit| exit.to.clone()));
            match targets(network, &mode.model) {
                Targets::Any => return,
                Targets::Only(names) => open.extend(names),
            }
        }
        for mode in modes.all.iter().filter(|mode| !seen.contains(&*mode.name)) {
            let at = at.key(&mode.name).and_then(|span| self.place(span));
            self.say(Diagnostic::mode_never_in_force(at, &mode.name));
        }
    }

    /// Reports tools that switch to a mode which an agent that is offered the tool does not have.
    fn unknown_targets(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let mut lacking: BTreeMap<&Name, (&str, &AgentDef)> = BTreeMap::new();
        for agent in network.agents.values() {
            let Some(modes) = &agent.modes else {
                continue;
            };
            let has: BTreeSet<&str> = modes.all.iter().map(|mode| &*mode.name).collect();
            for used in agent.offers() {
                let Offer::Tool(name) = &used.of else {
                    continue;
                };
                let target = network.tools.get(name).and_then(|tool| tool.mode.as_ref());
                if let Some(mode) = target.and_then(|mode| plain(&mode.source))
                    && !has.contains(mode)
                {
                    lacking.entry(name).or_insert((mode, agent));
                }
            }
        }
        for (name, (mode, agent)) in lacking {
            let written = self.written.tools.get(&**name);
            let at = written.and_then(|tool| self.place(tool.mode()?.span));
            let names = agent.modes.as_ref().map_or_else(String::new, |m| m.names());
            self.say(Diagnostic::says_no_mode(at, mode, &agent.name, &names));
        }
    }
}

/// The modes of an agent, lowered and as they are written.
struct Written<'a> {
    modes: BTreeMap<&'a str, &'a Mode>,
    entries: BTreeMap<&'a str, (&'a Key, agent::Mode<'a>)>,
}

impl<'a> Written<'a> {
    fn of(agent: Agent<'a>, modes: &'a Modes) -> Self {
        let entries = each(agent.modes()).map(|(key, mode)| (&*key.name, (key, mode)));
        let modes = modes.all.iter().map(|mode| (&*mode.name, mode));
        Self {
            modes: modes.collect(),
            entries: entries.collect(),
        }
    }
    fn mode(&self, mode: &Name) -> Option<agent::Mode<'a>> {
        self.entries.get(&**mode).map(|(_, mode)| *mode)
    }
    fn key(&self, mode: &Name) -> Option<Span> {
        self.entries.get(&**mode).map(|(key, _)| key.span)
    }
}

/// Returns the span where an exit names the tool.
fn of_name(exit: agent::ModeExit<'_>, name: &Name) -> Span {
    let Some(tools) = exit.after_tool() else {
        return exit.0.span;
    };
    let named = tools.into_iter().find(|tool| tool.text() == Some(name));
    named.map_or(tools.0, |tool| tool.0).span
}

/// Returns the trimmed text of a template if it has no `{{` or `{%` and is not empty.
fn plain(source: &str) -> Option<&str> {
    let is_plain = !source.contains("{{") && !source.contains("{%");
    Some(source.trim()).filter(|text| is_plain && !text.is_empty())
}

/// Returns the modes that the tools of a model may switch to.
fn targets(network: &Network, model: &ModelAgent) -> Targets {
    let mut only = BTreeSet::new();
    for name in called(network, &[model]) {
        let Some(tool) = network.tools.get(&name) else {
            continue;
        };
        match tool.mode.as_ref().map(|mode| plain(&mode.source)) {
            Some(Some(mode)) => drop(only.insert(mode.into())),
            Some(None) => return Targets::Any,
            None if matches!(tool.source, Source::Native { .. }) => return Targets::Any,
            None => {}
        }
    }
    Targets::Only(only)
}

/// The names that calls of an exchange can have: offered tools, tools that run ahead of a turn, and tools that follow others.
#[derive(Default)]
struct MayCall {
    names: BTreeSet<Name>,
    servers: BTreeSet<Name>,
}

impl MayCall {
    fn of(network: &Network, models: &[&ModelAgent]) -> Self {
        let seen = models.iter().flat_map(|model| &model.tools);
        let seen = seen.map(|used| used.seen.clone());
        let servers = models.iter().flat_map(|model| &model.servers);
        let mut names = called(network, models);
        names.extend(seen);
        Self {
            names,
            servers: servers.map(|used| used.server.clone()).collect(),
        }
    }
    fn has(&self, name: &Name) -> bool {
        let server = name.split_once('.').map(|(server, _)| server);
        self.names.contains(name) || server.is_some_and(|server| self.servers.contains(server))
    }
}

fn called(network: &Network, models: &[&ModelAgent]) -> BTreeSet<Name> {
    let offered = models.iter().flat_map(|model| &model.tools);
    let offered = offered.map(|used| match &used.of {
        Offer::Tool(name) | Offer::Agent(name) => name,
    });
    let ahead = models.iter().flat_map(|model| &model.before);
    let ahead = ahead.map(|before| &before.tool);
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
                steersman_machine::network::Does::Run { tool, .. } => Some(tool),
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
