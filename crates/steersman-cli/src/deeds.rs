//! The effects of a session on the world, or possible effects, read from the log.

use crate::texts::Texts;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::runtime::ledger::{Ledger, Progress};
use steersman_machine::network::Network;
use steersman_machine::stored::commit::{
    LedgerEntry, LogLine, Probing, Reaching, Recorded, Release, Why, Wished,
};
use steersman_machine::stored::engine::{is_extraction, is_review};
use steersman_machine::stored::ids::{Bodies, Digest, Id, Line, Name};
use steersman_machine::stored::interaction::{Class, How, Interaction, Target};

/// An effect of a tool, with its attempts and its status.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) id: Id,
    pub(crate) tool: Name,
    pub(crate) class: Class,
    pub(crate) args: String,
    pub(crate) branch: Id,
    pub(crate) line: Line,
    /// Number of attempts that began.
    pub(crate) attempts: u32,
    /// Number of attempts that began although an earlier one had, or may have had, its effect.
    pub(crate) repeated: u32,
    pub(crate) standing: Standing,
    /// The person or probe that resolved the doubt, if it was in doubt.
    pub(crate) settled: Option<Name>,
    /// If it is done and an equal effect was done before: that effect, as holds name it.
    pub(crate) repeats: Option<String>,
    /// The person who allowed it to repeat another effect.
    word: Option<Name>,
}

/// The status of an effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Wished,
    Held(Why),
    /// A standing order prevents it from beginning.
    Barred,
    Running,
    /// It began, but no process runs it any more, so its outcome is not known.
    Unknown,
    Done,
    NotPerformed,
    Doubt,
    GivenUp,
    Simulated,
    Closed(How),
}

impl Deed {
    fn new(id: Id, tool: &Name, class: Class, args: String, line: &LogLine) -> Self {
        Self {
            id,
            tool: tool.clone(),
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
            Standing::Closed(how) => {
                steersman_machine::stored::words::how_word(how).replace('_', " ")
            }
        }
    }

    /// Returns true if it touches the world in a way that must be counted.
    pub(crate) fn counts(&self) -> bool {
        !self.class.is_free()
    }

    pub(crate) fn json(&self, network: Option<&Network>) -> Json {
        json!({
            "effect": self.id.to_string(),
            "tool": self.tool,
            "class": self.class.word(),
            "args": steersman_machine::values::json::read::<Json>(&self.args).unwrap_or_else(|_| self.args.clone().into()),
            "branch": self.branch.to_string(),
            "line": self.line.0,
            "attempts": self.attempts,
            "repeated": self.repeated,
            "standing": self.word(),
            "repeats": self.repeats,
            "allowed": self.allowed(network),
        })
    }

    /// Returns what allowed it to repeat an equal effect: a person, its class, or its definition. `None` means that it is
    /// no repetition, or that nothing allowed it.
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

/// Returns the status of an effect by the ledger; `None` if it was neither held nor begun.
fn stands(ledger: &Ledger, effect: Id) -> Option<Standing> {
    let known = ledger.effect(effect)?;
    if let Some(hold) = known.holds.values().next_back() {
        return Some(Standing::Held(hold.why));
    }
    match known.progress {
        Progress::Wished => None,
        Progress::Started { .. } => Some(Standing::Running),
        Progress::NotPerformed => Some(Standing::NotPerformed),
        Progress::Unknown { .. } => Some(Standing::Doubt),
        Progress::Done { .. } => Some(Standing::Done),
        Progress::GivenUp { .. } => Some(Standing::GivenUp),
    }
}

/// All effects of tools, in the order in which they were wished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deeds {
    by_id: BTreeMap<Id, Deed>,
    calls: BTreeMap<Id, (Name, Class, String)>,
    /// The effects of a call, newest last. A branch that begins while a call is open may have its own effect for the call.
    of_call: BTreeMap<Id, Vec<Id>>,
    /// Effects of calls that were open where another branch began, with their status on that branch.
    left: BTreeMap<Id, Standing>,
    /// The ledger, which knows the status of every effect that was held or begun.
    ledger: Ledger,
    /// The epoch of the owner that began the last attempt of a probe.
    probed_by: BTreeMap<Id, u64>,
    /// For each digest of tool and arguments, the first effect that was done, as holds name it.
    done: BTreeMap<Digest, String>,
}

impl Deeds {
    /// Reads the effects from all lines of a session, because the entry that settles an effect may be on any branch. With
    /// `way`, only effects wished on its lines are kept, with their status as seen on it.
    pub(crate) fn of<'a>(
        lines: impl IntoIterator<Item = &'a Arc<LogLine>>,
        texts: &Texts,
        way: Option<&dyn Fn(Id, Line) -> bool>,
    ) -> Self {
        let mut deeds = Self::default();
        for line in lines {
            deeds.learn(line, texts, way.is_none_or(|way| way(line.branch, line.n)));
        }
        for deed in deeds.by_id.values_mut() {
            if way.is_some()
                && let Some(standing) = deeds.left.get(&deed.id)
            {
                // The effect may have ended on its own branch, but not on this way.
                deed.attempts = 0;
                deed.standing = *standing;
                continue;
            }
            deed.standing = stands(&deeds.ledger, deed.id).unwrap_or(deed.standing);
        }
        deeds
    }

    fn learn(&mut self, line: &LogLine, texts: &Texts, shown: bool) {
        let begun = line.ledger.iter().filter_map(|entry| match entry {
            LedgerEntry::Started { effect, .. } => Some(*effect),
            _ => None,
        });
        // Collect these first: the ledger forgets that an effect was over when it begins again.
        let anew: Vec<Id> = begun.filter(|effect| self.is_over(*effect)).collect();
        // The hash of the line is not used here.
        self.ledger.fold(line, &[0; 32]);
        if let (true, Some(commit)) = (shown, &line.commit) {
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
                    Interaction::Result(result) => {
                        self.closed(line.branch, result.call, result.how);
                    }
                    _ => {}
                }
            }
            for wished in &commit.wished {
                self.wished(line, wished, texts);
            }
        }
        for entry in &line.ledger {
            if shown {
                self.reach(line, entry);
                self.probe(line, entry);
            }
            self.entry(entry, &anew);
        }
    }

    fn is_over(&self, effect: Id) -> bool {
        let known = self.ledger.effect(effect);
        known.is_some_and(|known| {
            matches!(
                known.progress,
                Progress::Done { .. } | Progress::GivenUp { .. }
            )
        })
    }

    fn wished(&mut self, line: &LogLine, wished: &Wished, texts: &Texts) {
        let Some(call) = wished.what.call() else {
            return;
        };
        let Some((tool, class, args)) = self.calls.get(&call) else {
            return;
        };
        let args = wished
            .args
            .map_or_else(|| args.clone(), |b| texts.text(b).to_string());
        let deed = Deed::new(wished.id, tool, *class, args, line);
        let of_call = self.of_call.entry(call).or_default();
        let before = of_call.last().and_then(|before| self.by_id.get(before));
        if let Some(before) = before.filter(|before| before.branch != line.branch) {
            self.left.insert(before.id, before.standing);
        }
        of_call.push(wished.id);
        self.by_id.insert(wished.id, deed);
    }

    /// Sets the status of an effect from the result of its call, for effects that were neither held nor begun.
    fn closed(&mut self, branch: Id, call: Id, how: How) {
        let effects = self.of_call.get(&call).map_or(&[][..], Vec::as_slice);
        let is_own = |effect: &&Id| self.by_id[*effect].branch == branch;
        let standing = match how {
            How::Done => Standing::Done,
            How::Simulated => Standing::Simulated,
            how => Standing::Closed(how),
        };
        let own = effects.iter().rfind(is_own);
        let Some(effect) = own.or(effects.last()).copied() else {
            return;
        };
        // The branch has no effect for this call; the effect of another branch goes on there.
        if own.is_none() && how == How::NotInThisBranch {
            self.left.insert(effect, standing);
            return;
        }
        if let Some(deed) = self.by_id.get_mut(&effect)
            && deed.standing != Standing::Done
        {
            deed.standing = standing;
        }
    }

    /// Adds a `reach` effect, which notifies a person and belongs to no call.
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
            let about = json!({ "question": of.to_string(), "person": by }).to_string();
            let deed = self
                .by_id
                .entry(*effect)
                .or_insert_with(|| Deed::new(*effect, tool, Class::Idempotent, about, line));
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

    /// Adds a probe, which belongs to no call either.
    fn probe(&mut self, line: &LogLine, entry: &LedgerEntry) {
        let LedgerEntry::Probe { effect, of, what } = entry else {
            return;
        };
        if let Probing::Started { tool, .. } = what {
            let about = json!({ "doubt": of.to_string() }).to_string();
            let deed = self
                .by_id
                .entry(*effect)
                .or_insert_with(|| Deed::new(*effect, tool, Class::Read, about, line));
            deed.attempts += 1;
            self.probed_by.insert(*effect, self.ledger.epoch);
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

    /// Marks an effect as done. If an equal effect was done before, this one is a repetition.
    fn is_done(&mut self, effect: Id) {
        let digest = self.ledger.effect(effect).and_then(|known| known.digest);
        let Some(digest) = digest else { return };
        let first = self
            .done
            .entry(digest)
            .or_insert_with(|| effect.to_string());
        if let Some(deed) = self.by_id.get_mut(&effect) {
            deed.repeats = (*first != effect.to_string()).then(|| first.clone());
        }
    }

    fn entry(&mut self, entry: &LedgerEntry, anew: &[Id]) {
        match entry {
            LedgerEntry::Recorded {
                effect,
                digest,
                how: Recorded::Done,
                ..
            } => {
                let name = format!("{effect} of the session that this one reruns");
                self.done.entry(*digest).or_insert(name);
            }
            LedgerEntry::Released {
                effect,
                why,
                how,
                by,
                ..
            } => match (why, how) {
                (Why::Doubt, Release::Outcome) => {
                    if let Some(deed) = self.by_id.get_mut(effect) {
                        deed.settled = Some(by.clone());
                    }
                    self.is_done(*effect);
                }
                (Why::Repeat, Release::Go) => {
                    if let Some(deed) = self.by_id.get_mut(effect) {
                        deed.word = Some(by.clone());
                    }
                }
                _ => {}
            },
            LedgerEntry::Started { effect, .. } => {
                let known = self.ledger.effect(*effect);
                let doubtful = known.is_some_and(|known| {
                    matches!(
                        known.progress,
                        Progress::Started { doubtful: true } | Progress::Unknown { doubtful: true }
                    )
                });
                let again = doubtful || anew.contains(effect);
                if let Some(deed) = self.by_id.get_mut(effect) {
                    deed.attempts += 1;
                    deed.repeated += u32::from(again);
                    // That resolution was about the previous attempt; this attempt has an outcome of its own.
                    deed.settled = None;
                }
            }
            LedgerEntry::Done { effect, .. } => self.is_done(*effect),
            _ => {}
        }
    }

    /// Sets the status of running effects: only those begun by the current owner still run; the outcome of the others is
    /// unknown.
    pub(crate) fn driven(&mut self, by_somebody: bool) {
        let epoch = self.ledger.epoch + u64::from(!by_somebody);
        for (effect, deed) in &mut self.by_id {
            let probed = self.probed_by.get(effect);
            if deed.standing == Standing::Running
                && (self.ledger.may_have_happened(*effect, epoch)
                    || probed.is_some_and(|began| *began < epoch))
            {
                deed.standing = Standing::Unknown;
            }
        }
    }

    /// Marks an effect as held by a standing order, which the log does not list by effect.
    pub(crate) fn held(&mut self, effect: Id) {
        if let Some(deed) = self.by_id.get_mut(&effect)
            && deed.standing == Standing::Wished
        {
            deed.standing = Standing::Barred;
        }
    }

    /// Returns all effects, in the order in which they were wished.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Deed> {
        self.by_id.values()
    }

    /// Returns for each tool that touches the world the numbers of intended (begun), done and repeated effects. Repeated
    /// are effects that were done although an equal one was, and attempts of an `unsafe` effect after one that may have
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
            // Another attempt of an idempotent effect uses the same key, so it is no repetition.
            sum.2 += if deed.class == Class::Unsafe {
                deed.repeated
            } else {
                0
            };
        }
        sums
    }
}
