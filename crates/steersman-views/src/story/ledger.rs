//! Rows of ledger entries: what happened in the world, and orders of people.

use super::holds::{self, outage, released, unbelievable};
use super::{Row, Story, Told, Tone, effects_call, row};
use crate::why::effect_of;
use crate::words::{accepted_store, question, span};
use steersman_machine::stored::commit::{Hold, LedgerEntry, LogLine, Probing, Why};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::{Class, Target};
use steersman_machine::stored::words::why_word;

impl Story {
    pub(super) fn entry(
        &mut self,
        line: &LogLine,
        entry: &LedgerEntry,
        texts: &dyn Bodies,
        rows: &mut Vec<Row>,
    ) {
        let told = self
            .of_effect(line, entry, texts)
            .or_else(|| self.of_session(line, entry, texts));
        if let LedgerEntry::Claimed { owner, .. } = entry {
            self.owner = Some(owner.clone());
            // Tools that ran when the previous owner died may run again, so their start time is not known.
            let tool = |call: &Id| self.calls.get(call).map(|opened| &opened.target);
            let ran = |call: &Id| matches!(tool(call), Some(Target::Tool(_)));
            let gone: Vec<_> = self
                .began
                .keys()
                .filter(|(_, call)| ran(call))
                .copied()
                .collect();
            for key in gone {
                self.began.remove(&key);
            }
        }
        if let Some((who, text, note, tone)) = told {
            let call = effect_of(entry).map(|effect| *effects_call(&self.effects, &effect));
            let opened = call.and_then(|call| self.calls.get(&call));
            rows.push(Row {
                owners: matches!(entry, LedgerEntry::Claimed { .. }).then_some(1),
                agent: opened.map(|opened| opened.agent),
                of: call.filter(|_| opened.is_some()).map(Id::line),
                ..row(line, &who, text, note, tone)
            });
        }
    }

    /// Records that a hold of an effect ended.
    fn over(&mut self, line: &LogLine, effect: Id, why: Why) {
        let call = *effects_call(&self.effects, &effect);
        if why == Why::Doubt {
            self.settled.insert(call);
        }
        self.began.remove(&(line.branch, call));
    }

    /// Returns the row of a ledger entry about an effect.
    fn of_effect(
        &mut self,
        line: &LogLine,
        entry: &LedgerEntry,
        texts: &dyn Bodies,
    ) -> Option<Told> {
        let tool = |story: &Self, effect: &Id| {
            let target = story.target(*effect);
            let target = target.or_else(|| story.probes.get(effect));
            target.map_or_else(|| effect.to_string(), ToString::to_string)
        };
        Some(match entry {
            // The row of the effect says that it is in doubt.
            LedgerEntry::Hold(hold) if hold.why == Why::Doubt => return None,
            LedgerEntry::Hold(hold) => self.hold(hold, texts),
            LedgerEntry::Released {
                why: Why::Outage,
                how,
                about,
                ..
            } => outage(about.as_ref(), *how),
            LedgerEntry::Released {
                effect,
                why,
                how,
                by,
                body,
                ..
            } => {
                self.over(line, *effect, *why);
                let said = body.map(|body| texts.text(body).to_string());
                let (word, tone) = released(*why, *how, by, said.as_deref());
                (
                    String::new(),
                    format!("{} {word}", tool(self, effect)),
                    why_word(*why).into(),
                    tone,
                )
            }
            LedgerEntry::Started {
                effect, attempt, ..
            } => (
                String::new(),
                format!("{} started", tool(self, effect)),
                format!("attempt {attempt}"),
                Tone::Engine,
            ),
            LedgerEntry::Unknown { effect, attempt } => {
                self.unknown(&tool(self, effect), *effect, *attempt)
            }
            LedgerEntry::NotPerformed { effect, attempt } => (
                String::new(),
                format!("{} did not happen", tool(self, effect)),
                format!("attempt {attempt}"),
                Tone::Wrong,
            ),
            LedgerEntry::Done { effect, .. } if line.commit.is_none() => (
                String::new(),
                format!("{} is done", tool(self, effect)),
                "noted".into(),
                Tone::Came,
            ),
            LedgerEntry::Late { effect, .. } => (
                "!".into(),
                format!("an outcome of {} came too late", tool(self, effect)),
                "noted".into(),
                Tone::Doubt,
            ),
            LedgerEntry::Again { effect, at } => (
                String::new(),
                format!("{} is tried again", tool(self, effect)),
                format!("in {}", span(at.0.saturating_sub(self.now.0))),
                Tone::Wrong,
            ),
            LedgerEntry::Listed(effect) => {
                holds::listed(&tool(self, effect), self.done.contains(effect))
            }
            LedgerEntry::Refused { why, .. } => (
                "!".into(),
                format!("refused: {}", texts.text(*why)),
                String::new(),
                Tone::Wrong,
            ),
            LedgerEntry::Reach { role, what, .. } => holds::reached(role, what, texts),
            LedgerEntry::Step {
                effect,
                attempt,
                name,
                what,
                ..
            } => holds::stepped(&tool(self, effect), name, *attempt, *what, texts),
            LedgerEntry::Probe { effect, of, what } => {
                if let Probing::Started { tool, .. } = what {
                    self.probes.insert(*effect, tool.clone());
                }
                let probe = self.probes.get(effect).map_or("the probe", |name| name);
                holds::probed(probe, &tool(self, of), what, self.now, texts)
            }
            LedgerEntry::WouldAsk(effect) => (
                "?".into(),
                format!("{} would be asked for", tool(self, effect)),
                "dry".into(),
                Tone::Engine,
            ),
            _ => return None,
        })
    }

    /// Returns the row of an effect that may have happened. An idempotent one is retried, any other is in doubt.
    fn unknown(&self, name: &str, effect: Id, attempt: u32) -> Told {
        let call = self.calls.get(effects_call(&self.effects, &effect));
        if call.is_some_and(|call| matches!(call.target, Target::Tool(Class::Idempotent))) {
            let text = format!("{name} may have happened");
            let note = format!("attempt {attempt}");
            return (String::new(), text, note, Tone::Wrong);
        }
        let text = format!("{name} may have happened. It is not repeated.");
        ("!".into(), text, "in doubt".into(), Tone::Doubt)
    }

    /// Returns the row of a ledger entry about a branch or the session.
    fn of_session(&self, line: &LogLine, entry: &LedgerEntry, texts: &dyn Bodies) -> Option<Told> {
        Some(match entry {
            LedgerEntry::Search { search, what } => {
                return self.of_search(*search, what, texts);
            }
            LedgerEntry::Superseded { branch, .. } if self.is_searched(*branch) => return None,
            LedgerEntry::Superseded { branch, after } => (
                String::new(),
                format!("{} is left behind after @{after}", self.branch(*branch)),
                "branch".into(),
                Tone::Engine,
            ),
            LedgerEntry::Current(branch) => (
                String::new(),
                format!("{} is current", self.branch(*branch)),
                "branch".into(),
                Tone::Engine,
            ),
            LedgerEntry::Paused { paused, by } => (
                String::new(),
                if *paused { "paused" } else { "goes on" }.into(),
                by.shown().map_or_else(String::new, |by| format!("by {by}")),
                Tone::Engine,
            ),
            LedgerEntry::Barred { tool, barred, by } => {
                let what = tool.as_deref().unwrap_or("all that changes the world");
                let word = if *barred { "is held" } else { "is released" };
                (
                    String::new(),
                    format!("{what} {word}"),
                    format!("by {by}"),
                    Tone::Engine,
                )
            }
            LedgerEntry::StoreAccepted { was, .. } => (
                String::new(),
                accepted_store(*was).into(),
                "store".into(),
                Tone::Engine,
            ),
            LedgerEntry::Unbelievable { input, output, .. } => unbelievable(*input, *output),
            LedgerEntry::Claimed { epoch, owner, .. } if *epoch > 1 => {
                let who = if self.owner.as_ref() == Some(owner) {
                    "taken up again"
                } else {
                    "a new process took over"
                };
                (
                    String::new(),
                    format!("{who}; its lines begin at {}", line.n),
                    format!("owner {epoch}"),
                    Tone::Engine,
                )
            }
            LedgerEntry::Claimed { .. }
            | LedgerEntry::Accepted { .. }
            | LedgerEntry::Escrow { .. }
            | LedgerEntry::Spend { .. }
            | LedgerEntry::Settle { .. }
            | LedgerEntry::Done { .. }
            | LedgerEntry::Opened { .. }
            | LedgerEntry::Ended(_)
            | LedgerEntry::Adopted { .. }
            | LedgerEntry::Hold(_)
            | LedgerEntry::Released { .. }
            | LedgerEntry::Started { .. }
            | LedgerEntry::Unknown { .. }
            | LedgerEntry::NotPerformed { .. }
            | LedgerEntry::Late { .. }
            | LedgerEntry::Again { .. }
            | LedgerEntry::Outage { .. }
            | LedgerEntry::Listed(_)
            | LedgerEntry::WouldAsk(_)
            | LedgerEntry::Reach { .. }
            | LedgerEntry::Probe { .. }
            | LedgerEntry::Recorded { .. }
            | LedgerEntry::More { .. }
            | LedgerEntry::Step { .. }
            | LedgerEntry::Refused { .. } => return None,
        })
    }

    fn hold(&mut self, hold: &Hold, texts: &dyn Bodies) -> Told {
        let ask = hold.ask.map_or_else(
            || format!("{} waits", self.target(hold.effect).map_or("a call", |n| n)),
            |body| question(&texts.text(body)),
        );
        holds::held(hold, ask)
    }
}
