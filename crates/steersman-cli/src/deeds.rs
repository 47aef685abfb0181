//! What a session did to the world, or may have done: its effects, read from the log.

use crate::texts::Texts;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use steersman_machine::commit::{
    Admitted, LedgerEntry, LogLine, Probing, Reaching, Recorded, Release, Why,
};
use steersman_machine::effect::Bodies;
use steersman_machine::extract::is_extraction;
use steersman_machine::ids::{Digest, Id, Line, Name};
use steersman_machine::interaction::{Class, How, Interaction, Target};
use steersman_machine::network::Network;
use steersman_machine::reflect::is_review;

/// An effect of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) id: Id,
    pub(crate) tool: Name,
    pub(crate) class: Class,
    pub(crate) args: String,
    pub(crate) branch: Id,
    pub(crate) line: Line,
    /// Attempts that began.
    pub(crate) attempts: u32,
    /// Attempts that began although the one before had, or may have had, its effect.
    pub(crate) repeated: u32,
    pub(crate) standing: Standing,
    /// Who settled it, if it was in doubt.
    pub(crate) settled: Option<Name>,
    /// It is done, and so was an equal effect before: that one, as holds name it.
    pub(crate) repeats: Option<String>,
    /// Who let it repeat another.
    word: Option<Name>,
    /// Of its tool and arguments, once an attempt began.
    digest: Option<Digest>,
}

/// Where an effect stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Wished,
    Held(Why),
    /// A standing order keeps it from beginning.
    Barred,
    Running,
    /// It began, and no process runs it any more: whether it happened is not known.
    Unknown,
    Done,
    NotPerformed,
    Doubt,
    GivenUp,
    Simulated,
    Closed(How),
}

impl Deed {
    /// An effect of the engine that no call of an agent made, as its first attempt begins: a message to a person, a probe.
    fn beside(id: Id, tool: &Name, class: Class, about: &Json, line: &LogLine) -> Self {
        Self {
            id,
            tool: tool.clone(),
            class,
            args: about.to_string(),
            branch: line.branch,
            line: line.n,
            attempts: 0,
            repeated: 0,
            standing: Standing::Running,
            settled: None,
            repeats: None,
            word: None,
            digest: None,
        }
    }

    pub(crate) fn word(&self) -> String {
        match self.standing {
            Standing::Wished => "not started".into(),
            Standing::Held(Why::Approval) => "waits for approval".into(),
            Standing::Held(Why::Input) => "waits for input".into(),
            Standing::Held(Why::Budget) => "waits for budget".into(),
            Standing::Held(Why::Repeat) => "waits: done before".into(),
            Standing::Held(Why::Outage) => "waits for its place".into(),
            Standing::Held(Why::Doubt) | Standing::Doubt => "in doubt".into(),
            Standing::Barred => "held".into(),
            Standing::Running => "running".into(),
            Standing::Unknown => "unknown".into(),
            Standing::Done => match &self.settled {
                Some(by) => format!("done (says {by})"),
                None => "done".into(),
            },
            Standing::NotPerformed => "not performed".into(),
            Standing::GivenUp => "unknown for good".into(),
            Standing::Simulated => "simulated".into(),
            Standing::Closed(how) => steersman_machine::trace::how_word(how).replace('_', " "),
        }
    }

    /// Whether it touches the world in a way that must be counted.
    pub(crate) fn counts(&self) -> bool {
        !self.class.is_free()
    }

    pub(crate) fn json(&self, network: Option<&Network>) -> Json {
        json!({
            "effect": self.id.to_string(),
            "tool": self.tool,
            "class": self.class.word(),
            "args": steersman_machine::json::read::<Json>(&self.args).unwrap_or_else(|_| self.args.clone().into()),
            "branch": self.branch.to_string(),
            "line": self.line.0,
            "attempts": self.attempts,
            "repeated": self.repeated,
            "standing": self.word(),
            "repeats": self.repeats,
            "allowed": self.allowed(network),
        })
    }

    /// What let it repeat an equal effect: a person, its class, or its definition. None: it repeats none, or nobody did.
    pub(crate) fn allowed(&self, network: Option<&Network>) -> Option<String> {
        self.repeats.as_ref()?;
        if let Some(by) = &self.word {
            return Some(by.to_string());
        }
        let tool = network.and_then(|network| network.tools.get(&self.tool));
        if tool.is_some_and(|tool| tool.repeat_allowed) {
            return Some("repeat: allow".to_owned());
        }
        (self.class == Class::Idempotent).then(|| "idempotent".to_owned())
    }
}

/// All effects of tools, in the order in which they were wished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deeds {
    by_id: BTreeMap<Id, Deed>,
    calls: BTreeMap<Id, (Name, Class, String)>,
    /// The newest effect of a call on its branch.
    of_call: BTreeMap<Id, Id>,
    /// How many attempts of an effect may have happened.
    may_have: BTreeMap<Id, u32>,
    /// The owner that began the last attempt of an effect.
    begun_by: BTreeMap<Id, u64>,
    /// The newest owner.
    owner: u64,
    /// The first effect that was done, by tool and arguments, as holds name it.
    done: BTreeMap<Digest, String>,
}

impl Deeds {
    /// Reads a line.
    pub(crate) fn learn(&mut self, line: &LogLine, texts: &Texts) {
        if let Some(commit) = &line.commit {
            for push in &commit.pushes {
                match &push.what {
                    Interaction::Call(call) => {
                        if let Target::Tool(class) = &call.target
                            && !is_extraction(&call.name)
                            && !is_review(call)
                        {
                            let args = texts.text(call.args).to_string();
                            self.calls
                                .insert(call.id, (call.name.clone(), *class, args));
                        }
                    }
                    Interaction::Result(result) => self.closed(result.call, result.how),
                    _ => {}
                }
            }
            for wished in &commit.wished {
                let Some((tool, class, args)) = wished
                    .what
                    .call()
                    .and_then(|call| self.calls.get(&call))
                    .cloned()
                else {
                    continue;
                };
                let args = wished.args.map_or(args, |b| texts.text(b).to_string());
                if let Some(call) = wished.what.call() {
                    self.of_call.insert(call, wished.id);
                }
                self.by_id.insert(
                    wished.id,
                    Deed {
                        id: wished.id,
                        tool,
                        class,
                        args,
                        branch: line.branch,
                        line: line.n,
                        attempts: 0,
                        repeated: 0,
                        standing: Standing::Wished,
                        settled: None,
                        repeats: None,
                        word: None,
                        digest: None,
                    },
                );
            }
        }
        for entry in &line.ledger {
            self.reach(line, entry);
            self.probe(line, entry);
            self.entry(entry);
        }
        let admitted = line.commit.iter().flat_map(|commit| &commit.admitted);
        let outcomes = admitted.filter(|admitted| admitted.kind == Admitted::Outcome);
        for effect in outcomes.filter_map(|outcome| outcome.id) {
            if let Some(deed) = self.by_id.get_mut(&effect)
                && matches!(deed.standing, Standing::Doubt | Standing::Held(Why::Doubt))
            {
                // that nobody knows was taken as its outcome
                deed.standing = Standing::GivenUp;
            }
        }
    }

    fn closed(&mut self, call: Id, how: How) {
        let Some(deed) = self
            .of_call
            .get(&call)
            .and_then(|effect| self.by_id.get_mut(effect))
        else {
            return;
        };
        match (deed.standing, how) {
            (Standing::Done | Standing::GivenUp, _) => {}
            (_, How::Done) => deed.standing = Standing::Done,
            (_, How::Simulated) => deed.standing = Standing::Simulated,
            // a doubt outlives the call that it was for
            (Standing::NotPerformed | Standing::Doubt | Standing::Held(Why::Doubt), _) => {}
            (_, how) => deed.standing = Standing::Closed(how),
        }
    }

    /// What tells people that something waits for them is no call's.
    fn reach(&mut self, line: &LogLine, entry: &LedgerEntry) {
        let LedgerEntry::Reach {
            effect,
            of,
            by,
            what,
        } = entry
        else {
            return;
        };
        if let Reaching::Started { tool, .. } = what {
            let about = json!({ "question": of.to_string(), "person": by });
            let deed = self
                .by_id
                .entry(*effect)
                .or_insert_with(|| Deed::beside(*effect, tool, Class::Idempotent, &about, line));
            deed.attempts += 1;
        }
        if let Some(deed) = self.by_id.get_mut(effect) {
            deed.standing = match what {
                Reaching::Started { .. } => Standing::Running,
                Reaching::Done => Standing::Done,
                Reaching::Failed(_) => Standing::Closed(How::Failed),
            };
        }
    }

    /// Nor is what looks whether something happened.
    fn probe(&mut self, line: &LogLine, entry: &LedgerEntry) {
        let LedgerEntry::Probe { effect, of, what } = entry else {
            return;
        };
        if let Probing::Started { tool, .. } = what {
            let about = json!({ "doubt": of.to_string() });
            let deed = self
                .by_id
                .entry(*effect)
                .or_insert_with(|| Deed::beside(*effect, tool, Class::Read, &about, line));
            deed.attempts += 1;
            self.begun_by.insert(*effect, self.owner);
        }
        if let Some(deed) = self.by_id.get_mut(effect) {
            deed.standing = match what {
                Probing::Started { .. } => Standing::Running,
                Probing::Said { .. } => Standing::Done,
                Probing::Failed { again: Some(_), .. } => Standing::Wished,
                Probing::Failed { again: None, .. } => Standing::Closed(How::Failed),
            };
        }
    }

    /// It is done: an equal effect that was done before makes it a repetition.
    fn is_done(&mut self, effect: Id) {
        let Some(deed) = self.by_id.get_mut(&effect) else {
            return;
        };
        let Some(digest) = deed.digest else { return };
        let first = self
            .done
            .entry(digest)
            .or_insert_with(|| effect.to_string());
        deed.repeats = (*first != effect.to_string()).then(|| first.clone());
    }

    fn entry(&mut self, entry: &LedgerEntry) {
        if let LedgerEntry::Recorded {
            effect,
            digest,
            how: Recorded::Done,
            ..
        } = entry
        {
            let name = format!("{effect} of the session that this one reruns");
            self.done.entry(*digest).or_insert(name);
        }
        let (effect, standing) = match entry {
            LedgerEntry::Hold(hold) => (hold.effect, Some(Standing::Held(hold.why))),
            LedgerEntry::Released {
                effect,
                why,
                how,
                by,
                ..
            } => {
                if let Some(deed) = self.by_id.get_mut(effect) {
                    match (why, how) {
                        (Why::Doubt, Release::Outcome) => deed.settled = Some(by.clone()),
                        (Why::Repeat, Release::Go) => deed.word = Some(by.clone()),
                        _ => {}
                    }
                }
                if (*why, *how) == (Why::Doubt, Release::Outcome) {
                    self.is_done(*effect);
                }
                let standing = match (why, how) {
                    (Why::Doubt, Release::Outcome) => Some(Standing::Done),
                    (Why::Doubt, Release::Go) => {
                        self.may_have.remove(effect);
                        Some(Standing::NotPerformed)
                    }
                    (Why::Doubt, Release::GivenUp) => Some(Standing::GivenUp),
                    (_, Release::Go | Release::Edited) => Some(Standing::Wished),
                    // its branch was left: nothing keeps it any more, and it does not begin
                    _ => self.by_id.get(effect).and_then(|deed| {
                        (deed.standing == Standing::Held(*why)).then_some(match deed.attempts {
                            0 => Standing::Wished,
                            _ => Standing::NotPerformed,
                        })
                    }),
                };
                (*effect, standing)
            }
            LedgerEntry::Claimed { epoch, .. } => {
                self.owner = *epoch;
                return;
            }
            LedgerEntry::Started {
                effect,
                epoch,
                digest,
                ..
            } => {
                self.begun_by.insert(*effect, *epoch);
                let attempts = self.may_have.entry(*effect).or_default();
                *attempts += 1;
                if let Some(deed) = self.by_id.get_mut(effect) {
                    deed.attempts += 1;
                    // how it ended before, somebody said; how this attempt ends, its tool says
                    deed.settled = None;
                    deed.digest = Some(*digest);
                    deed.repeated += u32::from(*attempts > 1);
                }
                (*effect, Some(Standing::Running))
            }
            LedgerEntry::Done { effect, .. } => {
                self.is_done(*effect);
                (*effect, Some(Standing::Done))
            }
            LedgerEntry::NotPerformed { effect, .. } => {
                let attempts = self.may_have.entry(*effect).or_default();
                *attempts = attempts.saturating_sub(1);
                // That the last one did not happen says nothing of those before it.
                let standing = match *attempts {
                    0 => Standing::NotPerformed,
                    _ => Standing::Doubt,
                };
                (*effect, Some(standing))
            }
            LedgerEntry::Unknown { effect, .. } => (*effect, Some(Standing::Doubt)),
            _ => return,
        };
        if let (Some(deed), Some(standing)) = (self.by_id.get_mut(&effect), standing) {
            deed.standing = standing;
        }
    }

    /// What runs runs in the process of the newest owner, if there is one; what others began is not known.
    pub(crate) fn driven(&mut self, by_somebody: bool) {
        let owner = by_somebody.then_some(self.owner);
        for (effect, began) in &self.begun_by {
            if let Some(deed) = self.by_id.get_mut(effect)
                && deed.standing == Standing::Running
                && Some(*began) != owner
            {
                deed.standing = Standing::Unknown;
            }
        }
    }

    /// An order holds it: the log of the session does not say of which effects.
    pub(crate) fn held(&mut self, effect: Id) {
        if let Some(deed) = self.by_id.get_mut(&effect)
            && deed.standing == Standing::Wished
        {
            deed.standing = Standing::Barred;
        }
    }

    /// In the order in which they were wished.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Deed> {
        self.by_id.values()
    }

    /// An effect repeats what was done anywhere in the session, also on a branch that is not among these.
    pub(crate) fn mark_repeats(&mut self, session: &Self) {
        for (effect, deed) in &mut self.by_id {
            let known = session.by_id.get(effect);
            deed.repeats = known.and_then(|known| known.repeats.clone());
        }
    }

    /// By tool, of those of these that touch the world: intended (begun or still to begin), done, repeated. Repeated is an
    /// effect that was done although an equal one was, and each attempt of an `unsafe` one behind an attempt that may have
    /// happened.
    pub(crate) fn sums<'a>(
        deeds: impl IntoIterator<Item = &'a Deed>,
    ) -> BTreeMap<Name, (u32, u32, u32)> {
        let mut sums: BTreeMap<Name, (u32, u32, u32)> = BTreeMap::new();
        let deeds = deeds.into_iter();
        for deed in deeds.filter(|d| d.counts() && d.attempts > 0) {
            let sum = sums.entry(deed.tool.clone()).or_default();
            sum.0 += 1;
            sum.1 += u32::from(deed.standing == Standing::Done);
            sum.2 += u32::from(deed.repeats.is_some());
            // another attempt of an idempotent effect has its key; an unsafe one has none
            sum.2 += if deed.class == Class::Unsafe {
                deed.repeated
            } else {
                0
            };
        }
        sums
    }
}
