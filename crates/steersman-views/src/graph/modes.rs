//! An agent with modes: a cluster with a box for each mode and an arrow for each change of mode.

use super::facts::{self, flat};
use super::of::{Drawing, started_as};
use super::{At, Cluster, Kind, Mark, What};
use steersman_machine::network::{AgentDef, FINISH, ModeExit, Modes, Offer};
use steersman_machine::stored::ids::Name;

/// The text next to the name of a cluster of modes.
pub(super) const MODES: &str = "modes";

impl<'n> Drawing<'n> {
    pub(super) fn modes(&mut self, inside: usize, def: &'n AgentDef, modes: &'n Modes) -> At {
        let own = self.cluster_in(
            inside,
            Cluster {
                name: def.name.clone(),
                by: MODES.into(),
                facts: facts::of_all_modes(def),
                inside: Some(inside),
                items: Vec::new(),
                mark: Mark::default(),
            },
        );
        let begin = self.begin(own);
        for mode in &modes.all {
            let facts = facts::of_mode(self.network, &mode.model);
            let note = format!("mode, model {}", mode.model.model);
            let at = self.node(own, What::Mode, &mode.name, note, facts);
            self.part(own, part(&mode.name), at);
        }
        if let Some(first) = self.mode(own, &modes.start) {
            self.edge(begin, first, Kind::Leads, "");
        }
        if !modes.exits.is_empty() {
            let any = self.node(
                own,
                What::Router,
                "any mode",
                "looked at first".to_owned(),
                Vec::new(),
            );
            self.exits(own, any, "", &modes.exits);
        }
        for mode in &modes.all {
            let Some(from) = self.mode(own, &mode.name) else {
                continue;
            };
            self.exits(own, from, &mode.name, &mode.exits);
            for used in &mode.model.tools {
                let Offer::Tool(tool) = &used.of else {
                    continue;
                };
                let said = self
                    .network
                    .tools
                    .get(tool)
                    .and_then(|tool| tool.mode.as_ref());
                let to = said.and_then(|said| self.mode(own, said.source.trim()));
                if let Some(to) = to.filter(|to| *to != from) {
                    let key = said_by(&mode.name, tool);
                    self.way(
                        own,
                        key,
                        from,
                        to,
                        Kind::Leads,
                        format!("said by {}", used.seen),
                    );
                }
            }
        }
        At::Cluster(own)
    }

    fn mode(&self, own: usize, name: &str) -> Option<At> {
        let parts = &self.drawn.parts;
        parts.get(&(own, part(name))).map(|node| At::Node(*node))
    }

    /// Adds arrows for the exits of the mode `of`; if it is empty, for the exits of all modes.
    fn exits(&mut self, own: usize, from: At, of: &str, exits: &[ModeExit]) {
        for (k, exit) in exits.iter().enumerate() {
            let to = match &*exit.to {
                FINISH => Some(self.end(own)),
                name => self.mode(own, name),
            };
            let Some(to) = to else { continue };
            let label = format!("exit {}: {}", k + 1, flat(&exit.words()));
            self.way(own, exit_of(of, k + 1), from, to, Kind::Leads, label);
        }
    }

    /// Adds arrows to the judges of an agent's answers and calls, and to the scorer of its search.
    pub(super) fn judges(&mut self, inside: usize, at: At, def: &'n AgentDef) {
        for (name, what) in facts::judges(self.network, def) {
            let to = self.place(inside, &name);
            self.edge(at, to, Kind::Calls, what);
        }
    }

    /// Adds arrows to the agents that an agent starts, each with the modes in which it is offered.
    pub(super) fn starts(&mut self, inside: usize, at: At, def: &'n AgentDef) {
        let all = def.models().count();
        let mut arrows: Vec<(&'n Name, String, Vec<&str>)> = Vec::new();
        let modes = def.modes.iter().flat_map(|modes| &modes.all);
        let names: Vec<&str> = modes.map(|mode| &*mode.name).collect();
        for (k, model) in def.models().enumerate() {
            for used in &model.tools {
                let Offer::Agent(name) = &used.of else {
                    continue;
                };
                let label = started_as(used, name);
                let mode = names.get(k).copied();
                match arrows
                    .iter_mut()
                    .find(|(n, l, _)| *n == name && *l == label)
                {
                    Some((_, _, modes)) => modes.extend(mode),
                    None => arrows.push((name, label, mode.into_iter().collect())),
                }
            }
        }
        for (name, mut label, modes) in arrows {
            if !modes.is_empty() && modes.len() < all {
                label.push_str(", in ");
                label.push_str(&modes.join(", "));
            }
            let to = self.place(inside, name);
            let key = format!("call {} {name}", def.name);
            self.way(inside, key, at, to, Kind::Calls, label);
        }
    }
}

/// Returns the key of a mode in `Drawn::parts`.
pub(super) fn part(mode: &str) -> String {
    format!("mode {mode}")
}

/// Returns the key of an exit in `Drawn::ways`. An empty mode means the exits of all modes.
pub(super) fn exit_of(mode: &str, number: usize) -> String {
    format!("exit {mode} {number}")
}

/// Returns the key, in `Drawn::ways`, of a tool that sets the next mode.
pub(super) fn said_by(mode: &str, tool: &str) -> String {
    format!("said {mode} {tool}")
}
