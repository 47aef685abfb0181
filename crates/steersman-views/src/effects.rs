//! The effects of a session's tools, and the status of each, read from the log.

use crate::event::Asking;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::{
    About, LedgerEntry, LogLine, Probing, Reaching, Recorded, Release, Stepped, Why, Wished,
};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Digest, Id, Line, Name};
use steersman_machine::stored::interaction::{Class, How, Interaction, Target};
use steersman_machine::stored::words::how_word;
use steersman_machine::values::json::read;
use steersman_runtime::ledger::{Ledger, Progress};

/// An effect of a tool, with its attempts and its status.
#[derive(Clone, Debug)]
pub struct Effect {
    /// Id of the effect.
    pub id: Id,
    /// Name of the tool.
    pub tool: Name,
    /// Class of the tool when the effect was wished.
    pub class: Class,
    /// Arguments as JSON, without secret ones.
    pub args: String,
    /// The branch that wished it.
    pub branch: Id,
    /// The line that wished it.
    pub line: Line,
    /// Number of attempts that began.
    pub attempts: u32,
    /// Number of attempts that began although an earlier one had, or may have had, its effect.
    pub repeated: u32,
    /// Status of the effect after the last line.
    pub standing: Standing,
    /// The person or probe that resolved the doubt, if it was in doubt.
    pub settled: Option<Decider>,
    /// If it is done and an equal effect was done before: that effect, as holds name it.
    pub repeats: Option<String>,
    /// The cause that allowed it to repeat an equal effect: a person, its class, or its definition. `None` if it is not a repetition,
    /// or if nothing allowed it.
    pub allowed: Option<String>,
    /// The steps inside of it, in the order in which they began.
    pub steps: Vec<EffectStep>,
    /// If a person approved it with other arguments, and it was refused with these: the text of its result.
    pub refused_as_edited: Option<String>,
    /// The person who allowed it to repeat another effect.
    allowed_by: Option<Decider>,
}

/// A step inside of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectStep {
    /// Name of the step.
    pub name: Name,
    /// Its progress. [`Asking::Began`] means that its end is not known.
    pub how: Asking,
}

/// The status of an effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not begun, and nothing keeps it from beginning. A `pure` or `read` effect of a session that no process drives may
    /// have begun: it is done again.
    Wished,
    /// A hold keeps it from beginning.
    Held(Why),
    /// A standing order prevents it from beginning.
    Barred,
    /// An attempt runs.
    Running,
    /// It began, but no process runs it any more, so its outcome is not known.
    Unknown,
    /// It happened, and its outcome is known.
    Done,
    /// It did not happen.
    NotPerformed,
    /// It may have happened, and a probe or a person is to settle that.
    Doubt,
    /// It may have happened, and the doubt was given up.
    GivenUp,
    /// It was simulated, because the branch is dry.
    Simulated,
    /// A person approved its call with other arguments, which are an effect of their own.
    Replaced(Id),
    /// Its call ended in this way before it began.
    Closed(How),
}

/// Numbers of effects of one tool that touch the world.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sum {
    /// Effects that began.
    pub intended: u32,
    /// Effects that happened.
    pub done: u32,
    /// Effects that were done although an equal one was done before, and attempts of an `unsafe` effect after one that may have happened.
    pub repeated: u32,
}

/// An effect as JSON.
#[derive(Serialize)]
struct Form<'a> {
    effect: String,
    tool: &'a Name,
    class: &'static str,
    args: Json,
    branch: String,
    line: u64,
    attempts: u32,
    repeated: u32,
    standing: String,
    by: Option<&'a str>,
    repeats: &'a Option<String>,
    allowed: &'a Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    steps: &'a [EffectStep],
}

impl Serialize for Effect {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let args = read::<Json>(&self.args);
        let form = Form {
            effect: self.id.to_string(),
            tool: &self.tool,
            class: self.class.word(),
            args: args.unwrap_or_else(|_| self.args.clone().into()),
            branch: self.branch.to_string(),
            line: self.line.0,
            attempts: self.attempts,
            repeated: self.repeated,
            standing: self.word(),
            by: self.settled.as_ref().map(Decider::word),
            repeats: &self.repeats,
            allowed: &self.allowed,
            steps: &self.steps,
        };
        form.serialize(to)
    }
}

impl Effect {
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
            allowed: None,
            steps: Vec::new(),
            refused_as_edited: None,
            allowed_by: None,
        }
    }

    /// Returns its status in words.
    pub fn word(&self) -> String {
        match self.standing {
            // The log does not say when an effect that may be repeated begins.
            Standing::Wished if self.class.is_free() => "not finished".into(),
            Standing::Wished => "not started".into(),
            Standing::Held(Why::Approval) => "waits for approval".into(),
            Standing::Held(Why::Input) => "waits for input".into(),
            Standing::Held(Why::Budget) => "waits for budget".into(),
            Standing::Held(Why::Repeat) => "waits: done before".into(),
            Standing::Held(Why::Outage) => "waits for its place".into(),
            Standing::Held(Why::Wait) => "waits".into(),
            Standing::Held(Why::Elicited) => "waits for fields".into(),
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
            Standing::Replaced(by) => format!("replaced by {by}"),
            Standing::Closed(how) => {
                let how = how_word(how).replace('_', " ");
                match &self.refused_as_edited {
                    Some(why) => {
                        let word = format!("{how}: ");
                        let why = why.strip_prefix(&*word).unwrap_or(why);
                        format!("{how} as edited: {why}")
                    }
                    None => how,
                }
            }
        }
    }

    /// Returns true if the log does not say whether it began: it may be repeated, and has no attempts of its own.
    fn is_unlogged(&self) -> bool {
        self.class.is_free() && self.attempts == 0
    }

    /// Returns true if it touches the world in a way that must be counted.
    pub fn counts(&self) -> bool {
        !self.class.is_free()
    }

    /// Returns true if it is not known whether it happened, or if it waits.
    pub fn is_open(&self) -> bool {
        matches!(
            self.standing,
            Standing::Doubt | Standing::Unknown | Standing::Held(_) | Standing::Barred
        )
    }

    /// Returns true if a probe or a person is to settle whether it happened.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self.standing, Standing::Doubt | Standing::Held(Why::Doubt))
    }

    /// Returns, in words, how far its steps came. `None` if it has none, or if it is done and all of them are.
    pub fn course(&self) -> Option<String> {
        let is = |how: Asking| self.steps.iter().filter(move |step| step.how == how);
        let over = is(Asking::Done).count();
        let open = is(Asking::Began).next();
        let failed = is(Asking::Failed).next();
        let is_plain = open.is_none() && failed.is_none();
        if self.steps.is_empty() || (is_plain && self.standing == Standing::Done) {
            return None;
        }
        let plural = if over == 1 { "" } else { "s" };
        let mut told = format!("{over} step{plural} done");
        if let Some(step) = open {
            let _ = write!(told, ", `{}` began", step.name);
        }
        if let Some(step) = failed {
            let _ = write!(told, ", `{}` failed", step.name);
        }
        Some(told)
    }

    fn stepped(&mut self, name: &Name, what: Stepped) {
        let how = match what {
            Stepped::Began => Asking::Began,
            Stepped::Done(_) => Asking::Done,
            Stepped::Failed(_) => Asking::Failed,
        };
        match self.steps.iter_mut().find(|step| step.name == *name) {
            Some(step) => step.how = how,
            None => self.steps.push(EffectStep {
                name: name.clone(),
                how,
            }),
        }
    }

    /// Returns, in words, the equal effect that it repeats and the cause that allowed this. `None` if it is not a repetition.
    pub fn repetition(&self) -> Option<String> {
        let of = self.repeats.as_ref()?;
        let by = self.allowed.as_deref().unwrap_or("nobody allowed it");
        Some(format!("repeats {of} ({by})"))
    }

    fn allowed(&self, network: Option<&Network>) -> Option<String> {
        self.repeats.as_ref()?;
        if let Some(by) = &self.allowed_by {
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

/// Returns the name of a done effect of the session that this one reruns.
fn recorded(effect: Id) -> String {
    format!("{effect} of the session that this one reruns")
}

/// All effects of tools, in the order in which they were wished.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    by_id: BTreeMap<Id, Effect>,
    calls: BTreeMap<Id, (Name, Class, String)>,
    /// The effects of a call, newest last. A branch that begins while a call is open may have its own effect for the call.
    of_call: BTreeMap<Id, Vec<Id>>,
    /// Effects whose calls were approved with other arguments, with these, or are asked for again.
    edited: BTreeMap<Id, Option<String>>,
    /// The texts of the results of effects that were refused or failed.
    refused: BTreeMap<Id, String>,
    /// Effects of calls that were open where another branch began, with their status on that branch.
    left: BTreeMap<Id, Standing>,
    /// The ledger, which knows the status of every effect that was held or begun.
    ledger: Ledger,
    /// The epoch of the owner that began the last attempt of a probe.
    probed_by: BTreeMap<Id, u64>,
    /// For each digest of tool and arguments, the first effect that was done, as holds name it.
    done: BTreeMap<Digest, String>,
    /// For each effect that was allowed to repeat an equal one: that one. The digests of the two differ if their parts were
    /// sealed with different keys, so only the guard could compare them.
    allowed: BTreeMap<Id, About>,
}

impl Effects {
    /// Reads the effects from all lines of a session, because the entry that settles an effect may be on any branch. `way`
    /// returns true for the lines on the path to a branch. With it, only effects that these lines wished are kept, with their
    /// status on that path.
    pub fn of<'a>(
        lines: impl IntoIterator<Item = &'a Arc<LogLine>>,
        texts: &dyn Bodies,
        way: Option<&dyn Fn(Id, Line) -> bool>,
    ) -> Self {
        let mut effects = Self::default();
        for line in lines {
            effects.learn(line, texts, way.is_none_or(|way| way(line.branch, line.n)));
        }
        for kept in effects.by_id.values_mut() {
            if way.is_some()
                && let Some(standing) = effects.left.get(&kept.id)
            {
                // The effect may have ended on its own branch, but not on this path.
                kept.attempts = 0;
                kept.standing = *standing;
                continue;
            }
            kept.standing = stands(&effects.ledger, kept.id).unwrap_or(kept.standing);
        }
        effects.replace();
        effects
    }

    /// Names the effect that runs in place of one that was approved with other arguments or is asked for again. There is none if it was
    /// refused.
    fn replace(&mut self) {
        for of_call in self.of_call.values() {
            for pair in of_call.windows(2) {
                let [edited, by] = pair else { continue };
                if self.edited.contains_key(edited)
                    && let Some(kept) = self.by_id.get_mut(edited)
                {
                    kept.standing = Standing::Replaced(*by);
                }
            }
        }
        for (effect, args) in &self.edited {
            if let (Some(kept), Some(args)) = (self.by_id.get_mut(effect), args)
                && let Standing::Closed(_) = kept.standing
            {
                kept.args.clone_from(args);
                kept.refused_as_edited = self.refused.get(effect).cloned();
            }
        }
    }

    fn learn(&mut self, line: &LogLine, texts: &dyn Bodies, shown: bool) {
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
                            && !call.is_extraction()
                            && call.judged().is_none()
                        {
                            let args = texts.text(call.args).to_string();
                            self.calls
                                .insert(call.id, (call.name.clone(), *class, args));
                        }
                    }
                    Interaction::Result(result) => {
                        let effect = self.closed(line.branch, result.call, result.how);
                        if let (Some(effect), How::Refused | How::Failed, Some(body)) =
                            (effect, result.how, result.body)
                        {
                            self.refused.insert(effect, texts.text(body).to_string());
                        }
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
            self.entry(entry, &anew, texts);
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

    fn wished(&mut self, line: &LogLine, wished: &Wished, texts: &dyn Bodies) {
        let Some(call) = wished.what.call() else {
            return;
        };
        let Some((tool, class, args)) = self.calls.get(&call) else {
            return;
        };
        let args = wished
            .args
            .map_or_else(|| args.clone(), |b| texts.text(b).to_string());
        let kept = Effect::new(wished.id, tool, *class, args, line);
        let of_call = self.of_call.entry(call).or_default();
        let before = of_call.last().and_then(|before| self.by_id.get(before));
        if let Some(before) = before.filter(|before| before.branch != line.branch) {
            self.left.insert(before.id, before.standing);
        }
        of_call.push(wished.id);
        self.by_id.insert(wished.id, kept);
    }

    /// Sets the status of an effect from the result of its call, for effects that were neither held nor begun.
    /// Returns the effect.
    fn closed(&mut self, branch: Id, call: Id, how: How) -> Option<Id> {
        let effects = self.of_call.get(&call).map_or(&[][..], Vec::as_slice);
        let is_own = |effect: &&Id| self.by_id[*effect].branch == branch;
        let standing = match how {
            How::Done => Standing::Done,
            How::Simulated => Standing::Simulated,
            how => Standing::Closed(how),
        };
        let own = effects.iter().rfind(is_own);
        let effect = own.or(effects.last()).copied()?;
        // The branch has no effect for this call; the effect of another branch goes on there.
        if own.is_none() && how == How::NotInThisBranch {
            self.left.insert(effect, standing);
            return None;
        }
        if let Some(kept) = self.by_id.get_mut(&effect)
            && kept.standing != Standing::Done
        {
            kept.standing = standing;
        }
        Some(effect)
    }

    /// Adds a `reach` effect, which notifies a person and belongs to no call.
    fn reach(&mut self, line: &LogLine, entry: &LedgerEntry) {
        let LedgerEntry::Reach {
            effect,
            of,
            role,
            what,
        } = entry
        else {
            return;
        };
        if let Reaching::Started { tool, .. } = what {
            let about = json!({ "question": of.to_string(), "person": role }).to_string();
            let kept = self
                .by_id
                .entry(*effect)
                .or_insert_with(|| Effect::new(*effect, tool, Class::Idempotent, about, line));
            kept.attempts += 1;
        }
        if let Some(kept) = self.by_id.get_mut(effect) {
            kept.standing = match what {
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
            let kept = self
                .by_id
                .entry(*effect)
                .or_insert_with(|| Effect::new(*effect, tool, Class::Read, about, line));
            kept.attempts += 1;
            self.probed_by.insert(*effect, self.ledger.epoch);
        }
        if let Some(kept) = self.by_id.get_mut(effect) {
            kept.standing = match what {
                Probing::Started { .. } => Standing::Running,
                Probing::Said { .. } => Standing::Done,
                Probing::Failed { again: Some(_), .. } => Standing::Wished,
                Probing::Failed { again: None, .. } => Standing::Closed(How::Failed),
            };
        }
    }

    /// Marks an effect as done. If an equal effect was done before, this one is a repetition.
    fn marks_done(&mut self, effect: Id) {
        let Some(digest) = self.digest(effect) else {
            return;
        };
        let seen = self.allowed.get(&effect);
        let seen = seen.and_then(|about| self.first_done(about));
        let first = self
            .done
            .entry(digest)
            .or_insert_with(|| seen.unwrap_or_else(|| effect.to_string()));
        if let Some(kept) = self.by_id.get_mut(&effect) {
            kept.repeats = (*first != effect.to_string()).then(|| first.clone());
        }
    }

    fn digest(&self, effect: Id) -> Option<Digest> {
        self.ledger.effect(effect)?.digest
    }

    /// Returns the first effect that was done of those that are equal to the subject of a hold, as holds name it.
    fn first_done(&self, about: &About) -> Option<String> {
        match about {
            About::Equal(effect) => self.done.get(&self.digest(*effect)?).cloned(),
            About::Recorded(effect) => {
                let name = recorded(*effect);
                self.done.values().find(|first| **first == name).cloned()
            }
            _ => None,
        }
    }

    fn entry(&mut self, entry: &LedgerEntry, anew: &[Id], texts: &dyn Bodies) {
        match entry {
            LedgerEntry::Recorded {
                effect,
                digest,
                how: Recorded::Done,
                ..
            } => {
                self.done
                    .entry(*digest)
                    .or_insert_with(|| recorded(*effect));
            }
            LedgerEntry::Released {
                effect,
                why,
                how,
                about,
                by,
                body,
            } => match (why, how) {
                (_, Release::Edited) => {
                    let args = body.map(|body| texts.text(body).to_string());
                    self.edited.insert(*effect, args);
                }
                // The call is asked for again, because what it reads has changed.
                (Why::Approval, Release::Cancelled) if body.is_some() => {
                    self.edited.insert(*effect, None);
                }
                (Why::Doubt, Release::Outcome) => {
                    if let Some(kept) = self.by_id.get_mut(effect) {
                        kept.settled = Some(by.clone());
                    }
                    self.marks_done(*effect);
                }
                (Why::Repeat, Release::Go) => {
                    if let Some(kept) = self.by_id.get_mut(effect) {
                        kept.allowed_by = Some(by.clone());
                    }
                    if let Some(about) = about {
                        self.allowed.insert(*effect, about.clone());
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
                if let Some(kept) = self.by_id.get_mut(effect) {
                    kept.attempts += 1;
                    kept.repeated += u32::from(again);
                    // That resolution was about the previous attempt; this attempt has an outcome of its own.
                    kept.settled = None;
                }
            }
            LedgerEntry::Done { effect, .. } => self.marks_done(*effect),
            LedgerEntry::Step {
                effect, name, what, ..
            } => {
                if let Some(kept) = self.by_id.get_mut(effect) {
                    kept.stepped(name, *what);
                }
            }
            _ => {}
        }
    }

    /// Sets the status of running effects. `by_somebody` is true if the session has an owner: then the effects that this owner
    /// began still run, and so do the `pure` and `read` effects that are wished, whose beginnings the log does not have. The
    /// outcome of all others is unknown.
    pub fn driven(&mut self, by_somebody: bool) {
        let epoch = self.ledger.epoch + u64::from(!by_somebody);
        let runs = by_somebody && !self.ledger.paused;
        for (effect, kept) in &mut self.by_id {
            let branch = self.ledger.branch(kept.branch);
            if runs
                && kept.standing == Standing::Wished
                && kept.is_unlogged()
                && branch.is_none_or(|branch| branch.superseded.is_none())
            {
                kept.standing = Standing::Running;
                continue;
            }
            let probed = self.probed_by.get(effect);
            if kept.standing == Standing::Running
                && (self.ledger.may_have_happened(*effect, epoch)
                    || probed.is_some_and(|began| *began < epoch))
            {
                kept.standing = Standing::Unknown;
            }
        }
    }

    /// Marks an effect as held by a standing order, which the log does not list by effect.
    pub fn held(&mut self, effect: Id) {
        if let Some(kept) = self.by_id.get_mut(&effect)
            && (kept.standing == Standing::Wished
                || kept.standing == Standing::Running && kept.is_unlogged())
        {
            kept.standing = Standing::Barred;
        }
    }

    /// Sets, for each repetition, the cause that allowed it under this definition.
    pub fn under(&mut self, network: Option<&Network>) {
        for effect in self.by_id.values_mut() {
            effect.allowed = effect.allowed(network);
        }
    }

    /// Returns all effects, in the order in which they were wished.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Effect> {
        self.by_id.values()
    }

    /// Returns the sums by tool, for tools that touch the world.
    pub fn sums<'a>(effects: impl IntoIterator<Item = &'a Effect>) -> BTreeMap<Name, Sum> {
        let mut sums: BTreeMap<Name, Sum> = BTreeMap::new();
        let effects = effects.into_iter();
        for effect in effects.filter(|e| e.counts() && e.attempts > 0) {
            let sum = sums.entry(effect.tool.clone()).or_default();
            sum.intended += 1;
            sum.done += u32::from(effect.standing == Standing::Done);
            sum.repeated += u32::from(effect.repeats.is_some());
            // Another attempt of an idempotent effect uses the same key, so it is not a repetition.
            if effect.class == Class::Unsafe {
                sum.repeated += effect.repeated;
            }
        }
        sums
    }
}
