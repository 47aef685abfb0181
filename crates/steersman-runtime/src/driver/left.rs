//! Doubts about effects that no branch waits for: the effect may have happened, but its call was ended or its branch was
//! superseded. The end of a call does not tell if the effect happened, so the doubt stays open until a person or probe knows: it
//! is listed, the people who would be asked may resolve it, and equal calls do not begin meanwhile.

use super::draft::{Draft, NewHold, Note};
use super::{Job, Stop};
use crate::pending::{self, Pending};
use steersman_machine::network::{ANYBODY, OnDoubt, ToolDef};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::{About, Release, Why};
use steersman_machine::stored::ids::{Bodies, Digest, Id, Name};
use steersman_machine::tick::effect::{Wish, Work};
use steersman_machine::view::Cx;

impl Job<'_, '_> {
    /// Opens the doubt of an effect. Returns false if its definition asks nobody: the doubt is then given up.
    pub(super) fn opens_doubt(
        &self,
        draft: &mut Draft,
        effect: Id,
        (tool, digest): (&Name, Digest),
        reason: &str,
    ) -> bool {
        let def = self.tool_def(tool);
        let by = def.map_or_else(|| vec![ANYBODY.into()], ToolDef::doubt_askers);
        let step = self.d.ledger.open_step(effect);
        let ask = match &step {
            None => format!("`{tool}` may have happened ({reason}). Did it?"),
            Some((_, step)) => {
                format!(
                    "step `{}` of `{tool}` may have happened ({reason}). Did it?",
                    step.name
                )
            }
        };
        draft.hold(NewHold {
            effect,
            why: Why::Doubt,
            digest,
            by,
            ask: Some(&ask),
            due: None,
            about: step.map(|(nth, step)| About::Step {
                nth,
                name: step.name.clone(),
            }),
        });
        self.asks_about(tool)
    }

    /// Returns true if a person is asked about doubts of this tool.
    pub(super) fn asks_about(&self, tool: &Name) -> bool {
        let def = self.tool_def(tool);
        match def.and_then(|def| def.on_doubt.as_ref()) {
            Some(OnDoubt::Fail) => false,
            Some(OnDoubt::Ask { .. } | OnDoubt::Probe { .. }) => true,
            None => self.seen.engine.0.options.user_reachable,
        }
    }

    /// Opens the doubt of an effect for which no branch waits any more, if the effect may have happened. The doubt is given up if
    /// the definition asks nobody.
    pub(super) fn leaves_in_doubt(&mut self, draft: &mut Draft, effect: Id, tool: &Name) {
        let epoch = self.d.who.claim().epoch;
        let Some(record) = self.d.ledger.effect(effect) else {
            return;
        };
        if record.progress.is_started() && record.epoch < epoch {
            draft.note(Note::Unknown(effect, record.attempt));
        }
        let Some(digest) = record.digest else { return };
        if !self.d.ledger.is_doubted(effect, &draft.ledger) {
            return;
        }
        self.d.asides.leaves(effect);
        if self.d.ledger.hold(effect, Why::Doubt).is_some() || draft.holds(effect, Why::Doubt) {
            return;
        }
        let reason = "its call ended, and nobody knows how it did";
        if !self.opens_doubt(draft, effect, (tool, digest), reason) {
            let given_up = Self::released(effect, Why::Doubt, Release::GivenUp, Decider::Rule);
            draft.note(given_up);
        }
    }

    /// Calls [`Job::leaves_in_doubt`] for an effect that is no longer out and that this line leaves in doubt.
    pub(super) fn left_unknown(
        &mut self,
        draft: &mut Draft,
        effect: Option<Id>,
    ) -> Result<(), Stop> {
        if let Some(effect) = effect
            && !self.d.effects.outs().contains_key(&effect)
            && self.d.ledger.is_doubted(effect, &draft.ledger)
            && let Some(tool) = self.tool_left(effect)?
        {
            self.leaves_in_doubt(draft, effect, &tool);
        }
        Ok(())
    }

    /// Opens the doubts that earlier owners left. Nobody runs their effects that had begun and that no branch waits for.
    pub(super) fn find_left(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        let doubted = self.d.ledger.effects().filter(|(id, record)| {
            let open = self
                .d
                .ledger
                .may_have_happened(*id, self.d.who.claim().epoch);
            open && record.digest.is_some() && !self.d.effects.outs().contains_key(id)
        });
        let doubted: Vec<Id> = doubted.map(|(id, _)| id).collect();
        for effect in doubted {
            if self.d.ledger.hold(effect, Why::Doubt).is_some() {
                self.d.asides.leaves(effect);
            } else if let Some(tool) = self.tool_left(effect)? {
                self.leaves_in_doubt(draft, effect, &tool);
            }
        }
        Ok(())
    }

    /// Returns effects that run or are in doubt and that no branch waits for.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = Id> {
        let effects = self.d.ledger.effects().filter(|(id, record)| {
            let in_doubt = self.d.ledger.hold(*id, Why::Doubt).is_some();
            (record.progress.is_started() || in_doubt) && !self.d.effects.outs().contains_key(id)
        });
        effects.map(|(id, _)| id)
    }

    /// Returns the tools of a server to which such effects belong, by their names at the server.
    pub(super) fn unsettled_tools(&mut self, server: &Name) -> Result<Vec<String>, Stop> {
        let unsettled: Vec<Id> = self.unsettled().collect();
        let mut tools = Vec::new();
        for effect in unsettled {
            if let Some(name) = self.tool_left(effect)?
                && let Some((of, tool)) = name.split_once('.')
                && *of == **server
            {
                tools.push(tool.to_owned());
            }
        }
        Ok(tools)
    }

    /// Returns the tool of an effect that no branch waits for.
    pub(super) fn tool_left(&mut self, effect: Id) -> Result<Option<Name>, Stop> {
        let stood = self.stood(effect)?;
        Ok(stood.and_then(|(_, wish)| Some(work_of(&wish)?.tool.clone())))
    }

    /// Loads the snapshots of effects that were left in doubt, so that lists can show them.
    pub(super) fn know_left(&mut self) -> Result<(), Stop> {
        let effects = self.d.asides.take_unread();
        self.know(effects)
    }

    /// Loads the snapshots of these effects.
    pub(super) fn know(&mut self, effects: Vec<Id>) -> Result<(), Stop> {
        for effect in effects {
            if let Some((snapshot, wish)) = self.stood(effect)? {
                self.d.asides.keeps(effect, snapshot, wish);
            }
        }
        let ledger = &self.d.ledger;
        self.d
            .asides
            .keep(|id| ledger.hold(id, Why::Doubt).is_some());
        Ok(())
    }

    /// Returns the effects left in doubt on a branch; `None` means all branches.
    pub(super) fn left_in_doubt(&self, of: Option<Id>) -> impl Iterator<Item = Pending> {
        let cx = Cx {
            network: self.network(),
            bodies: &*self.seen.past as &dyn Bodies,
        };
        let left = self.d.asides.left().values();
        left.filter(move |left| of.is_none_or(|of| left.snapshot.branch == of))
            .filter_map(move |left| {
                let since = self.seen.past.wished_at(left.wish.id);
                pending::left(&cx, &self.d.ledger, &left.snapshot, &left.wish, since)
            })
    }
}

/// Returns the work of a tool's effect.
pub(super) fn work_of(wish: &Wish) -> Option<&steersman_machine::tick::effect::ToolWork> {
    match &wish.work {
        Work::Tool(tool) | Work::Simulate(tool) => Some(tool),
        _ => None,
    }
}
