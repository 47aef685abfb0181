//! Extraction: the calls that fill state from messages, and their results.

use crate::network::{Does, Route, RouteBy, Speaker};
use crate::questions::extract::mapped;
use crate::stored::engine::{Caller, Extracted};
use crate::stored::ids::Id;
use crate::stored::interaction::{Call, Class, Target};
use crate::stored::outcome::{Answer, NewWrite};
use crate::tick::Tick;
use serde_json::json;
use std::fmt::Write as _;

impl Tick<'_> {
    /// Opens a call that fills state from the messages since the last one, before the agent does anything else. Returns true if
    /// it opened one.
    pub(crate) fn extracts(&mut self, agent: Id) -> bool {
        let (of, entries) = {
            let state = self.agent(agent);
            let def = self.def(agent);
            // With tools off only an answer may follow.
            if state.counters.last_call {
                return false;
            }
            if !state.input.unread.is_empty() && !def.extract.is_empty() {
                (Extracted::Message, def.extract.clone())
            } else if state.routing.unread
                && let Some(speaker) = last_speaker(self, agent)
                && !speaker.extract.is_empty()
            {
                (Extracted::Turn, speaker.extract.clone())
            } else {
                return false;
            }
        };
        let entries: Vec<&str> = entries.iter().map(|name| &**name).collect();
        let args = json!({ "entries": entries });
        let target = Target::Tool(Class::Read);
        self.engine_call(agent, Caller::Extract(of), &args, target);
        true
    }

    /// Closes the call with the answer of the model: its values are written, or named as left out.
    pub(crate) fn extracted(&mut self, owner: Id, call: &Call, answer: &Answer) {
        let open = self.snapshot.call(owner, call.id).cloned();
        let Some(open) = open.filter(|c| c.closed.is_none()) else {
            return;
        };
        let mut mapped = mapped(&self.cx(), &self.snapshot, &open, answer);
        // Each value fits by itself. One that does not fit together with the others is left out, too.
        let mut kept: Vec<NewWrite> = Vec::new();
        let mut left = Vec::new();
        for write in std::mem::take(&mut mapped.writes) {
            kept.push(write);
            if let Err(misfit) = self.may_write(owner, &kept) {
                kept.pop();
                left.push(misfit.to_string());
            }
        }
        mapped.writes = kept;
        let shown = mapped.shown.get_or_insert_default();
        for why in left {
            let _ = write!(shown, "; left out: {why}");
        }
        self.close_call(owner, call.id, mapped);
    }
}

/// Returns the speaker who spoke last in the current state of a graph.
fn last_speaker<'n>(tick: &Tick<'n>, agent: Id) -> Option<&'n Speaker> {
    let Does::Route(Route {
        by: RouteBy::States(graph),
        ..
    }) = &tick.def(agent).does
    else {
        return None;
    };
    let routing = &tick.agent(agent).routing;
    let at = routing.at.as_ref()?;
    let role = routing.places.get(at)?.last.as_ref()?;
    graph.states.get(at)?.plays(role)
}
