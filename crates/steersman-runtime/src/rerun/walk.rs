//! Following a recording line by line: each outcome is taken as long as its request equals the recorded one. No model is asked
//! and nothing is run for that.

use super::hooks::Changes;
use super::left::{deeds, not_taken};
use super::offers::{Began, offers};
use super::recording::{Recording, Side, bound_together, branch_of};
use super::{Diverged, People};
use crate::bind::Values;
use crate::driver::tool_digests;
use crate::engine::EngineError;
use crate::engine::recorded::Left;
use crate::load::is_of_rerun;
use crate::past::Past;
use crate::seal::Sealer;
use crate::store::StoreError;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::context;
use steersman_machine::context::RenderCache;
use steersman_machine::network::{Network, ToolDef};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{
    Admitted, Binding, Change, Commit, LedgerEntry, LogLine, Opening, Text,
};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name};
use steersman_machine::stored::interaction::{Reduce, Target, Write};
use steersman_machine::stored::parts::Parts;
use steersman_machine::tick::effect::{Offered, ToolWork, Work};
use steersman_machine::tick::hooks::before_models;
use steersman_machine::tick::{carry, tick, wishes};
use steersman_machine::view::artifact::Content;

/// The changes of a rerun.
pub(crate) struct Changed {
    /// The definition, the other one or the same, with its binding and its values.
    pub(crate) network: Arc<Network>,
    pub(crate) binding: Binding,
    pub(crate) values: Values,
    pub(crate) is_other: bool,
    /// The changes apply after this line of the branch; `None` means from the beginning.
    pub(crate) at: Option<Line>,
    /// True if a different message is sent there.
    pub(crate) says: bool,
    pub(crate) live: bool,
    pub(crate) labels: Vec<(Name, String)>,
}

/// Reason why a recording is left where a different message is sent.
const SAID: &str = "something else is said here";

/// Result of taking the next line of a recording.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The line was followed.
    Made(Line),
    /// The line was not followed.
    Left,
    /// There are no more lines.
    End,
}

/// Result of following a recording.
pub(crate) struct Walked {
    /// The resulting lines.
    pub(crate) lines: Vec<LogLine>,
    /// Contents of artifacts that were made here and are not in the recording.
    pub(crate) contents: Vec<Content>,
    /// Number of lines that were followed.
    pub(crate) followed: u64,
    pub(crate) diverged: Option<Diverged>,
    /// The rest of the recording.
    pub(crate) left: Left,
    /// Acts of people that are not repeated, in words.
    pub(crate) not_repeated: Vec<String>,
    /// Number of model calls that were answered.
    pub(crate) answers: u64,
}

pub(crate) struct Walk<'a> {
    pub(super) recording: &'a Recording,
    pub(super) target: Id,
    pub(super) changed: &'a Changed,
    pub(super) old: Side,
    pub(super) new: Side,
    /// The changes by hooks in the line that is followed.
    hooks: Changes,
    old_binding: Binding,
    old_values: String,
    /// Recorded requests of outstanding effects.
    pub(super) works: BTreeMap<Id, Work>,
    /// Digests of the requests of outstanding model calls of the rerun.
    asks: BTreeMap<Id, BTreeSet<Digest>>,
    /// Render caches by branch and agent: a request is rendered from the previous one.
    caches: BTreeMap<(Id, Id), RenderCache>,
    pub(super) lines: Vec<LogLine>,
    pub(super) contents: Vec<Content>,
    followed: u64,
    /// Index of the recording's next line.
    at: usize,
    diverged: Option<Diverged>,
    left: Left,
    not_repeated: Vec<String>,
    pub(super) people: &'a People,
    sealer: &'a Sealer,
    /// The last line of each branch.
    pub(super) prev: BTreeMap<Id, Line>,
    current: Id,
    /// Entries about branches that no line has written yet.
    owed: Vec<LedgerEntry>,
    /// Entries of lines that are not followed were collected up to this line.
    beside: Line,
    answers: u64,
    /// True if every line so far did the same as the recorded one.
    equal: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        target: Id,
        old: (Arc<Network>, Binding, String),
        changed: &'a Changed,
        past: Arc<Past>,
        people: &'a People,
        sealer: &'a Sealer,
    ) -> Self {
        let (network, old_binding, old_values) = old;
        let hooks = Changes::default();
        let begins_under = match changed.at {
            Some(_) => &network,
            None => &changed.network,
        };
        let begins_under = hooks.of_recording(begins_under, &network);
        let network = hooks.of_recording(&network, &network);
        Self {
            recording,
            target,
            changed,
            old: Side::new(network, recording.past.clone()),
            new: Side::new(begins_under, past),
            hooks,
            old_binding,
            old_values,
            works: BTreeMap::new(),
            asks: BTreeMap::new(),
            caches: BTreeMap::new(),
            lines: Vec::new(),
            contents: Vec::new(),
            followed: 0,
            at: 0,
            diverged: None,
            left: Left::default(),
            not_repeated: Vec::new(),
            people,
            sealer,
            prev: BTreeMap::new(),
            current: Id::MAIN,
            owed: Vec::new(),
            beside: Line::NONE,
            answers: 0,
            equal: true,
        }
    }

    /// Follows the next line or, after the recording was left, keeps its outcomes for later requests. Lines that give all
    /// branches a new binding are one step: a changed message does not make the rerun leave the recording between them.
    pub(crate) fn next(&mut self) -> Result<Next, EngineError> {
        let recording = self.recording;
        let rest = &recording.lines[self.at..];
        let Some(first) = rest.first() else {
            self.passes(None);
            return Ok(Next::End);
        };
        let after_change = self.changed.at.is_some_and(|at| first.n > at);
        let together = bound_together(rest.iter().map(|line| &**line)).max(1);
        let mut next = Next::Left;
        for line in &rest[..together] {
            next = self.next_line(line, after_change)?;
        }
        Ok(next)
    }

    fn next_line(&mut self, line: &Arc<LogLine>, after_change: bool) -> Result<Next, EngineError> {
        self.passes(Some(line.n));
        self.at += 1;
        let commit = line
            .commit
            .as_ref()
            .expect("only lines with commits are read");
        let mut next = Next::Left;
        if self.diverged.is_none() {
            if after_change && self.changed.says {
                self.leaves(line.n, SAID);
            } else {
                match self.line(line, commit, after_change)? {
                    Ok(()) => next = Next::Made(line.n),
                    Err(why) => self.leaves(line.n, &why),
                }
            }
        }
        if self.diverged.is_some() {
            let mut left = std::mem::take(&mut self.left);
            self.leave(line, commit, &mut left)?;
            self.left = left;
            self.not_repeated.extend(deeds(line, commit));
        }
        self.carry_old(line)?;
        Ok(next)
    }

    fn leaves(&mut self, line: Line, why: &str) {
        self.diverged = Some(Diverged {
            line,
            why: why.to_owned(),
        });
    }

    /// Leaves the recording after the last line that was followed, since a different message is sent there.
    pub(crate) fn leave_here(&mut self) {
        if self.diverged.is_none() {
            let line = self.lines.last().map_or(Line::NONE, |line| line.n);
            self.leaves(line, SAID);
        }
    }

    /// Returns true if the recording was left.
    pub(crate) fn is_left(&self) -> bool {
        self.diverged.is_some()
    }

    /// Collects the entries about branches of lines that are not followed, up to the next line; they are written with the next
    /// one.
    fn passes(&mut self, upto: Option<Line>) {
        if self.diverged.is_some() {
            return;
        }
        let beside = self.recording.beside.range(self.beside..);
        let passed = beside.take_while(|(n, _)| upto.is_none_or(|upto| **n < upto));
        let passed: Vec<LedgerEntry> = passed.flat_map(|(_, entries)| entries.clone()).collect();
        let passed = self.about_branches(passed);
        self.owed.extend(passed);
        self.beside = upto.unwrap_or(Line(u64::MAX));
    }

    /// Keeps the ledger entries about branches of the recording, with their lines limited to those that the rerun has.
    fn about_branches(&mut self, mut entries: Vec<LedgerEntry>) -> Vec<LedgerEntry> {
        let known = &self.recording.branches;
        entries.retain(|entry| match entry {
            // The branch that is rerun goes on, even if it was superseded in the recording.
            LedgerEntry::Superseded { branch, .. } if *branch == self.target => false,
            entry => branch_of(entry).is_some_and(|branch| known.contains(&branch)),
        });
        for entry in &mut entries {
            match entry {
                LedgerEntry::Current(branch) => self.current = *branch,
                // A branch may have fewer lines here than in the recording: one that was tried, or that is left before its end.
                LedgerEntry::Superseded { branch, after: at }
                | LedgerEntry::Adopted { branch, at } => {
                    let last = self.prev.get(branch).copied();
                    *at = last.map_or(*at, |last| last.min(*at));
                }
                _ => {}
            }
        }
        entries
    }

    /// Returns the entries about branches to write after the last line. The rerun goes on where the followed path ends: that
    /// branch is current, even if the recorded session had moved on to a branch that does not begin here.
    pub(crate) fn becomes(&self) -> Vec<LedgerEntry> {
        let mut owed = self.owed.clone();
        let mut followed = self.lines.iter().rev();
        let Some(last) = followed.find(|line| self.recording.path.contains(&line.n)) else {
            return owed;
        };
        let goes_on = last.branch;
        let leaves = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Superseded { branch, .. } if *branch == goes_on);
        owed.retain(|entry| !leaves(entry));
        let left = self.lines.iter().flat_map(|line| &line.ledger).any(leaves);
        let elsewhere = left || self.current != goes_on;
        owed.extend(elsewhere.then_some(LedgerEntry::Current(goes_on)));
        owed
    }

    /// Adds the pending entries to a line, except the end of the line's own branch, which this line makes obsolete.
    pub(super) fn with_owed(&mut self, made: &mut LogLine) {
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|entry| *entry != LedgerEntry::Ended(made.branch));
        made.ledger.splice(0..0, owed);
    }

    /// Returns the result.
    pub(crate) fn over(self) -> Walked {
        Walked {
            lines: self.lines,
            contents: self.contents,
            followed: self.followed,
            diverged: self.diverged,
            left: self.left,
            not_repeated: self.not_repeated,
            answers: self.answers,
        }
    }

    fn carry_old(&mut self, line: &Arc<LogLine>) -> Result<(), StoreError> {
        let snapshot = self.old.carry(line.clone(), &self.recording.forks).clone();
        for wish in wishes(&self.old.cx(), &snapshot) {
            self.works.insert(wish.id, wish.work);
        }
        fault(&self.old.past)
    }

    /// Carries the rerun over a line, or returns the reason why the line differs from the recording.
    fn line(
        &mut self,
        line: &Arc<LogLine>,
        commit: &Commit,
        after_change: bool,
    ) -> Result<Result<(), String>, EngineError> {
        let before = self.new.before(line);
        // Nothing is compared up to the line of the change.
        let is_other = self.changed.is_other && (after_change || self.changed.at.is_none());
        let compared = after_change || self.changed.at.is_none();
        if compared && let Err(why) = self.matches(commit, &before, is_other) {
            return Ok(Err(why));
        }
        let made = if is_other {
            let made = match self.again(line, commit, before)? {
                Ok(made) => made,
                Err(why) => return Ok(Err(why)),
            };
            self.equal &= made.commit.as_ref().is_some_and(|made| alike(made, commit));
            made
        } else {
            self.copied(line)
        };
        let made = match self.dressed(made, line, commit) {
            Ok(made) => made,
            Err(why) => return Err(EngineError::Refused(why)),
        };
        self.push(made)?;
        self.followed += 1;
        Ok(Ok(()))
    }

    /// Digest of a tool and its arguments, as the driver would record it now.
    pub(super) fn digest(&self, tool: &ToolWork) -> Digest {
        tool_digests(tool, self.sealer)[0]
    }

    /// Checks that the effects that end here had the recorded requests.
    fn matches(&self, commit: &Commit, before: &Snapshot, is_other: bool) -> Result<(), String> {
        let ended = commit
            .admitted
            .iter()
            .filter(|a| a.kind == Admitted::Outcome);
        let now: BTreeMap<Id, Work> = wishes(&self.new.cx(), before)
            .into_iter()
            .map(|wish| (wish.id, wish.work))
            .collect();
        for effect in ended.filter_map(|a| a.id) {
            let Some(work) = now.get(&effect) else {
                return Err(format!("{effect} is not asked for any more"));
            };
            match (self.works.get(&effect), work) {
                (Some(Work::Model), Work::Model) => self.same_request(commit, effect, is_other)?,
                (
                    Some(Work::Tool(was) | Work::Simulate(was)),
                    Work::Tool(tool) | Work::Simulate(tool),
                ) => {
                    if self.digest(was) != self.digest(tool) {
                        return Err(format!("`{}` is called with other arguments", tool.tool));
                    }
                    if !same_tool(&self.old.network, &self.changed.network, &tool.tool) {
                        return Err(format!("the tool `{}` is another one", tool.tool));
                    }
                }
                (Some(was), is) if was == is => {}
                _ => return Err(format!("{effect} asks for something else")),
            }
        }
        Ok(())
    }

    fn same_request(&self, commit: &Commit, effect: Id, is_other: bool) -> Result<(), String> {
        let Some(usage) = commit.usage.iter().find(|u| u.effect == Some(effect)) else {
            // A failed call has no request on record: it counts as the same if everything else is.
            return if is_other {
                Err(format!("the model call {effect} failed then"))
            } else {
                Ok(())
            };
        };
        if let Some(request) = usage.request
            && !self
                .asks
                .get(&effect)
                .is_some_and(|asks| asks.contains(&request))
        {
            return Err(if usage.render == context::RENDER_VERSION {
                format!("the model is asked something else ({effect})")
            } else {
                format!("requests were made by another version of this program ({effect})")
            });
        }
        if !is_other {
            return Ok(());
        }
        let mut models = self.changed.values.models.iter();
        let label = usage.model.as_ref();
        if label.is_none_or(|label| models.any(|bound| bound.label() == *label)) {
            self.same_model(effect, label)
        } else {
            Err("another model is asked".to_owned())
        }
    }

    /// Checks that the model that answered is one that would be asked now.
    fn same_model(&self, effect: Id, label: Option<&Name>) -> Result<(), String> {
        let owner = self.new.branches.values().find_map(|snapshot| {
            let out = snapshot.effects.get(&effect)?;
            Some((snapshot, out.agent))
        });
        let (Some((snapshot, agent)), Some(label)) = (owner, label) else {
            return Ok(());
        };
        let request = self
            .request(snapshot, agent)
            .ok_or("it cannot be rendered")?;
        let bound = &self.changed.values.models;
        let chain = self.new.network.chain(&request.model);
        let labels = chain
            .iter()
            .filter_map(|name| bound.iter().find(|b| b.name == **name));
        if labels.into_iter().any(|bound| bound.label() == *label) {
            Ok(())
        } else {
            Err("another model is asked".to_owned())
        }
    }

    fn request(&self, snapshot: &Snapshot, agent: Id) -> Option<context::Request> {
        let mut cache = RenderCache::default();
        context::request(&self.new.cx(), &*self.new.past, snapshot, agent, &mut cache).ok()
    }

    /// Returns the line as it was recorded.
    fn copied(&self, line: &LogLine) -> LogLine {
        let mut line = line.clone();
        if let Some(opening) = line.commit.as_mut().and_then(|c| c.opening.as_mut()) {
            opening.dry |= !self.changed.live;
        }
        line
    }

    /// Makes the recorded offers again, under the other definition.
    fn again(
        &mut self,
        line: &Arc<LogLine>,
        commit: &Commit,
        mut before: Snapshot,
    ) -> Result<Result<LogLine, String>, EngineError> {
        let Some(mut offered) = self.told(line, commit)? else {
            // Acts of people and beginnings of branches are copied if nothing differs so far. The answer of a model might mean
            // something else now.
            if self.equal && commit.usage.is_empty() && before.root.is_some() {
                return Ok(Ok(self.copied(line)));
            }
            let why = if commit.usage.is_empty() {
                "what happened here cannot be told to another definition"
            } else {
                "what a model answered here could not be used, and is not on record"
            };
            return Ok(Err(why.to_owned()));
        };
        if let [Offered::Start(start), ..] = &mut offered[..] {
            start.binding = self.changed.binding.clone();
            start.values = text_of(&self.changed.values).into();
            before.dry = !self.changed.live;
        }
        let mut step = tick(&self.new.cx(), before, line.n, line.at, &offered);
        before_models(&self.new.cx(), &*self.new.past, line.n, &mut step);
        fault(&self.new.past)?;
        let Some(made) = step.commit.filter(|_| step.left.is_empty()) else {
            let why = step.left.first().map(|(_, until)| until);
            return Ok(Err(not_taken(commit, why)));
        };
        if made.calls != commit.calls {
            return Ok(Err("branches begin otherwise".to_owned()));
        }
        self.contents.extend(step.contents);
        Ok(Ok(LogLine {
            commit: Some(made),
            bodies: step.bodies,
            ..(**line).clone()
        }))
    }

    /// Reconstructs the offers of a line: the candidate from which the machine makes the same commit with the same texts again.
    /// The wording of a model's answer may differ if only the parsed result is on record.
    pub(super) fn told(
        &self,
        line: &LogLine,
        commit: &Commit,
    ) -> Result<Option<Vec<Offered>>, StoreError> {
        let before = self.old.before(line);
        let commit = &*as_begun(commit);
        self.hooks.follow(&self.old.past, line);
        let began = Began {
            binding: &self.old_binding,
            values: &self.old_values,
        };
        for offered in offers(&self.old.past, &before, line, Some(&began))? {
            let mut step = tick(&self.old.cx(), before.clone(), line.n, line.at, &offered);
            before_models(&self.old.cx(), &*self.old.past, line.n, &mut step);
            fault(&self.old.past)?;
            if step.commit.as_ref() == Some(commit) && self.same_texts(line, &step.bodies)? {
                return Ok(Some(offered));
            }
        }
        Ok(None)
    }

    /// Returns true if the line begins with these texts.
    fn same_texts(&self, line: &LogLine, made: &[Text]) -> Result<bool, StoreError> {
        for (k, text) in (0..).zip(made) {
            let made = match text {
                Text::Here(text) => Parts::One(text.text().clone()),
                Text::Parts(parts) => Parts::Several(parts.clone()),
                Text::Blob { .. } | Text::Erased { .. } => return Ok(false),
            };
            if line.bodies.len() <= k as usize
                || self.old.past.stored_parts(Body::new(line.n, k))? != Some(made)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the line as the rerun writes it: of the ledger only entries about branches; no effects and no cost of the
    /// recording.
    fn dressed(
        &mut self,
        mut made: LogLine,
        line: &LogLine,
        was: &Commit,
    ) -> Result<LogLine, String> {
        let first = !was.parent.is_some();
        made.ledger = self.about_branches(std::mem::take(&mut made.ledger));
        self.with_owed(&mut made);
        let begins = was.opening.is_some() && !first;
        made.prev = if begins {
            was.parent
        } else {
            self.prev.get(&line.branch).copied().unwrap_or(Line::NONE)
        };
        let mut bodies = std::mem::take(&mut made.bodies);
        let n = made.n;
        let mut body = |text: String| {
            bodies.push(Text::Here(text.into()));
            Body::new(
                n,
                u32::try_from(bodies.len() - 1).expect("a line has few texts"),
            )
        };
        let commit = made.commit.as_mut().expect("it has one");
        if first {
            if !self.changed.live {
                commit.opening = Some(Opening {
                    scope: None,
                    dry: true,
                    label: None,
                    of: None,
                });
            }
            for (name, text) in &self.changed.labels {
                let text = body(text.clone());
                commit.changes.push(Change::Label(name.clone(), Some(text)));
            }
        }
        if self.changed.is_other && self.changed.at == Some(line.n) {
            let values = body(text_of(&self.changed.values));
            commit.binding = Some(Binding {
                values,
                ..self.changed.binding.clone()
            });
            for new in self.carried(line)? {
                commit.edits.push(Write {
                    scope: new.scope,
                    name: new.name,
                    value: Some(body(new.value.to_string())),
                    reduce: Reduce::Last,
                    expires: None,
                });
            }
            self.new.network = self
                .hooks
                .of_recording(&self.changed.network, &self.old.network);
        }
        made.bodies = bodies;
        Ok(made)
    }

    /// Returns the state that is new in the other definition at the end of a line, or the reason why the session cannot go on
    /// there.
    fn carried(&self, line: &LogLine) -> Result<Vec<carry::New>, String> {
        let before = self.old.before(line);
        let after = steersman_machine::snapshot::fold::fold(before, line);
        for open in after.calls.values().filter(|open| open.closed.is_none()) {
            let name = &open.call.name;
            let tool = matches!(open.call.target, Target::Tool(_));
            let gone = self.old.network.tools.contains_key(name)
                && !self.changed.network.tools.contains_key(name);
            if tool && gone {
                return Err(format!(
                    "`{name}` is open at line {}, and the other definition has no such tool",
                    line.n
                ));
            }
        }
        carry::carried(&self.old.cx(), &self.changed.network, &after)
    }

    pub(super) fn push(&mut self, made: LogLine) -> Result<(), EngineError> {
        self.prev.insert(made.branch, made.n);
        let commit = made.commit.as_ref().expect("it has one");
        self.answers += commit.usage.len() as u64;
        let snapshot = self
            .new
            .carry(Arc::new(made.clone()), &self.recording.forks)
            .clone();
        let out: Vec<(Id, Id)> = wishes(&self.new.cx(), &snapshot)
            .into_iter()
            .filter(|wish| matches!(wish.work, Work::Model))
            .map(|wish| (wish.id, wish.agent))
            .collect();
        for (effect, agent) in out {
            let cache = self.caches.entry((snapshot.branch, agent)).or_default();
            let (cx, past) = (self.new.cx(), &*self.new.past);
            let request = context::request(&cx, past, &snapshot, agent, cache).ok();
            self.asks
                .entry(effect)
                .or_default()
                .extend(request.map(|r| r.digest));
        }
        fault(&self.new.past)?;
        self.lines.push(made);
        Ok(())
    }
}

pub(super) fn fault(past: &Past) -> Result<(), StoreError> {
    past.fault().map_or(Ok(()), Err)
}

pub(crate) fn text_of(values: &Values) -> String {
    serde_json::to_string(values).expect("values are JSON")
}

/// Returns a first commit without the labels and the opening that a rerun adds: they do not come from offers to the machine.
fn as_begun(commit: &Commit) -> Cow<'_, Commit> {
    let is_of_rerun =
        |change: &Change| matches!(change, Change::Label(name, _) if is_of_rerun(name));
    if commit.parent.is_some() || !commit.changes.iter().any(is_of_rerun) {
        return Cow::Borrowed(commit);
    }
    let mut commit = commit.clone();
    commit.opening = None;
    commit.changes.retain(|change| !is_of_rerun(change));
    Cow::Owned(commit)
}

/// Returns true if a tool does the same in both definitions. Its class is ignored: a recorded outcome stays valid, so that
/// nothing is done again just because its class was lowered.
pub(super) fn same_tool(old: &Network, new: &Network, name: &str) -> bool {
    match (old.tools.get(name), new.tools.get(name)) {
        (Some(old), Some(new)) => {
            let as_careful = || ToolDef {
                effect: old.effect,
                ..new.clone()
            };
            old == new || *old == as_careful()
        }
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// Returns true if two commits did the same, regardless of their bindings.
fn alike(made: &Commit, was: &Commit) -> bool {
    made.pushes == was.pushes
        && made.wished == was.wished
        && made.made == was.made
        && made.edits == was.edits
        && made.calls == was.calls
}
