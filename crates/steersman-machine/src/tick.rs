//! The tick: takes or leaves what is offered, lets every woken agent move to rest in path order, and returns the step.
//!
//! `Tick` is the working form. It pushes by folding: each push goes through the fold's own functions and into the
//! commit, in the same order. The fold applies a commit's parts in a fixed order (opening, adoption, binding, edits,
//! usage, made, pushes, wished, modes), so: edits come before anything is pushed, and a wish that is withdrawn again
//! in the same tick does not stay in the commit.

use crate::artifact::Content;
use crate::bounds::{self, LABEL, MOVES, PUSH, TICK, VALUES};
use crate::commit::{Admission, Admitted, Change, Commit, Made, Push, Text, Want, Wished};
use crate::effect::{Bodies, BranchEnd, Offered, Outcome, Request, Step, Until, Wish};
use crate::fold::MISFIT;
use crate::ids::{Body, Digest, Id, Line, Name, Path, Time};
use crate::interaction::{Cause, End, Interaction, Write};
use crate::network::{AgentDef, Network, Parameters};
use crate::reflect::{JudgedResult, Reviewed};
pub use crate::route::floor::turns;
use crate::snapshot::{Agent, Phase, Snapshot};
pub use crate::take::floor;
use crate::view::{View, complete};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What every decision may read beside the snapshot.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// The checked definition.
    pub network: &'a Network,
    /// Texts that the snapshot names.
    pub bodies: &'a dyn Bodies,
}

/// Takes or leaves each offer, moves to rest, and says what is wanted from the outside.
///
/// `line` is the number that the line will have, `now` its recorded time. If nothing is taken, the step holds the
/// snapshot as it came and no commit.
pub fn tick(cx: &Cx<'_>, snapshot: Snapshot, line: Line, now: Time, offered: &[Offered]) -> Step {
    let mut tick = Tick::new(cx, snapshot, line, now);
    tick.take_all(offered);
    if tick.commit.admitted.is_empty() {
        return tick.nothing();
    }
    tick.run();
    tick.close()
}

/// All effects that are out, rebuilt: for an owner that takes a session over.
pub fn wishes(cx: &Cx<'_>, snapshot: &Snapshot) -> Vec<Wish> {
    snapshot
        .effects
        .iter()
        .map(|(id, effect)| crate::call::wish(cx, snapshot, *id, effect))
        .collect()
}

/// Why a call may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Code of `on_error`.
    pub code: &'static str,
    /// For the model.
    pub text: String,
}

/// Whether a call may run with these arguments: asked again after a hold, which may have lasted for days.
pub fn allowed(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    owner: Id,
    call: Id,
    args: &Json,
) -> Result<(), Refusal> {
    let refused = |code, text| Err(Refusal { code, text });
    let Some(open) = snapshot.call(owner, call).filter(|c| c.closed.is_none()) else {
        return refused("failed", "the call is not open any more".to_owned());
    };
    let Some(tool) = cx.network.tools.get(&open.call.name) else {
        return Ok(());
    };
    let Some(args) = args.as_object() else {
        return refused(MISFIT, "the arguments are not a JSON object".to_owned());
    };
    if let Some(misfit) = crate::types::arguments_misfit(&crate::call::given(tool), args) {
        return refused(MISFIT, misfit.under("args").to_string());
    }
    let args = match &tool.parameters {
        Parameters::Fields(fields) => complete(args.clone(), fields),
        Parameters::Schema(_) => args.clone(),
    };
    match crate::call::refusal(cx, snapshot, open, tool, args) {
        Some(text) => refused("refused", text),
        None => Ok(()),
    }
}

/// Texts of this tick above those of the log.
pub(crate) struct Texts<'a> {
    below: &'a dyn Bodies,
    line: Line,
    new: Vec<Text>,
}

impl Texts<'_> {
    /// The texts that came in with this tick so far.
    pub(crate) fn came_in(&self) -> &[Text] {
        &self.new
    }

    /// Takes the newest text back: it was needed for a comparison alone.
    pub(crate) fn forget(&mut self, newest: Body) {
        debug_assert_eq!(newest.k() as usize + 1, self.new.len());
        self.new.pop();
    }

    /// Takes all texts but the first `n` back: nothing names them.
    pub(crate) fn forget_behind(&mut self, n: usize) {
        self.new.truncate(n);
    }
}

impl Bodies for Texts<'_> {
    fn text(&self, body: Body) -> Arc<str> {
        if body.line() != self.line {
            return self.below.text(body);
        }
        match &self.new[body.k() as usize] {
            Text::Here(text) => text.clone(),
            Text::Blob { .. } | Text::Erased { .. } => {
                unreachable!("a tick makes plain texts only")
            }
        }
    }
}

/// A tick at work.
pub(crate) struct Tick<'a> {
    pub(crate) network: &'a Network,
    pub(crate) texts: Texts<'a>,
    pub(crate) snapshot: Snapshot,
    pub(crate) line: Line,
    pub(crate) now: Time,
    pub(crate) commit: Commit,
    /// Effects that are wanted no longer.
    pub(crate) stop: Vec<Id>,
    /// What the driver is to do to branches.
    pub(crate) requests: Vec<Request>,
    /// Contents of artifacts that this tick made.
    pub(crate) contents: Vec<Content>,
    /// Offers that were left.
    pub(crate) left: Vec<(usize, Until)>,
    /// While it is above zero, nothing begins: something is being cancelled.
    pub(crate) cancelling: u32,
    /// State, counts or artifacts changed in this tick: waits over state are looked at again.
    pub(crate) changed: bool,
    /// What the newest result of this tick gave each of these callers, and whether it is a failure that the definition
    /// says nothing about.
    pub(crate) closed: BTreeMap<Id, (Option<Body>, bool)>,
    /// Agents whose mode changed in this tick: once is enough.
    pub(crate) turned: BTreeSet<Id>,
    /// What the exchange of each of these callers gave that is to be judged.
    pub(crate) reflecting: BTreeMap<Id, Vec<JudgedResult>>,
    /// What was said in this tick of the calls of each of these.
    pub(crate) reviewed: BTreeMap<Id, Reviewed>,
    /// Agents to whom a person refused more where a limit asked.
    pub(crate) declined: BTreeSet<Id>,
    /// Bytes that were pushed onto stacks of agents whose context may be compacted.
    grown: BTreeMap<Id, usize>,
    /// Agents whose own context was summed up in this tick, or could not be: what they owe is the step that they owed before.
    pub(crate) summed: BTreeSet<Id>,
    /// Agents that owe a model call at the end of this tick.
    pub(crate) thinkers: BTreeSet<(Path, Id)>,
    /// Bytes of state values that this tick writes.
    pub(crate) values: usize,
    /// Where the defaults of definitions lie among the texts of this line.
    pub(crate) defaults: BTreeMap<(Name, Name), Body>,
    woken: BTreeSet<(Path, Id)>,
    moves: u32,
    pub(crate) next: u32,
    top_rested: bool,
    /// The time of the commit before.
    was: Time,
    /// A branch begins here that nobody has numbered.
    pub(crate) names_branch: bool,
}

impl<'a> Tick<'a> {
    pub(crate) fn new(cx: &Cx<'a>, snapshot: Snapshot, line: Line, now: Time) -> Self {
        let snapshot_now = snapshot.now;
        let top_rested = snapshot
            .top()
            .is_none_or(|top| snapshot.agent(top).phase == Phase::Resting);
        Self {
            network: cx.network,
            texts: Texts {
                below: cx.bodies,
                line,
                new: Vec::new(),
            },
            commit: Commit {
                parent: snapshot.line,
                now,
                ..Commit::default()
            },
            snapshot,
            line,
            now,
            stop: Vec::new(),
            requests: Vec::new(),
            contents: Vec::new(),
            left: Vec::new(),
            cancelling: 0,
            changed: false,
            closed: BTreeMap::new(),
            turned: BTreeSet::new(),
            reflecting: BTreeMap::new(),
            reviewed: BTreeMap::new(),
            declined: BTreeSet::new(),
            grown: BTreeMap::new(),
            summed: BTreeSet::new(),
            thinkers: BTreeSet::new(),
            values: 0,
            defaults: BTreeMap::new(),
            woken: BTreeSet::new(),
            moves: 0,
            was: snapshot_now,
            next: 0,
            top_rested,
            names_branch: false,
        }
    }

    // ---- what is known -------------------------------------------------------------------------------------

    /// What decisions of this tick may read: the texts that came in with it, too.
    pub(crate) fn cx(&self) -> Cx<'_> {
        Cx {
            network: self.network,
            bodies: &self.texts,
        }
    }

    pub(crate) fn agent(&self, id: Id) -> &Agent {
        self.snapshot.agent(id)
    }

    pub(crate) fn def(&self, id: Id) -> &'a AgentDef {
        self.network.agent(&self.snapshot.agent(id).def)
    }

    pub(crate) fn text(&self, body: Body) -> Arc<str> {
        self.texts.text(body)
    }

    // ---- what is made: each goes through the fold and into the commit ----------------------------------------

    /// The number of the next thing that this line makes.
    pub(crate) fn id(&mut self) -> Id {
        let id = Id::new(self.line, self.next);
        self.next += 1;
        id
    }

    /// A text that comes in with this line.
    pub(crate) fn body(&mut self, text: impl Into<Arc<str>>) -> Body {
        let body = Body::new(self.line, self.texts.new.len() as u32);
        self.texts.new.push(Text::Here(text.into()));
        body
    }

    /// Records what was taken.
    pub(crate) fn admit(&mut self, admission: Admission) {
        self.commit.admitted.push(admission);
    }

    /// Records what was taken, in short: its kind, the effect or call it names, and the digest of its text.
    pub(crate) fn admit_as(&mut self, kind: Admitted, id: Option<Id>, text: &[u8]) {
        self.admit(Admission {
            kind,
            id,
            message: None,
            digest: Digest::of(text),
            body: None,
        });
    }

    /// Pushes an interaction onto an agent's stack.
    pub(crate) fn push(&mut self, agent: Id, what: Interaction) {
        let push = Push {
            agent,
            prev: self.snapshot.agent(agent).last,
            what,
        };
        self.weigh(agent, &push.what);
        self.snapshot
            .push(self.line, self.now, &push, &self.texts.new);
        self.commit.pushes.push(push);
    }

    /// Makes an agent.
    pub(crate) fn make(&mut self, made: Made) {
        self.snapshot
            .make(self.line, self.now, &made, &self.texts.new);
        self.commit.made.push(made);
    }

    /// Edits state. Only before anything is pushed, or where nothing pushed in this tick wrote the same scope.
    pub(crate) fn edit(&mut self, write: Write) {
        self.snapshot
            .edit(self.line, self.now, &write, &self.texts.new);
        self.commit.edits.push(write);
        self.changed = true;
    }

    /// Wishes an effect for a call, or for the agent itself.
    pub(crate) fn wish(&mut self, wished: Wished) {
        self.snapshot.wish(self.now, &wished);
        self.commit.wished.push(wished);
    }

    /// Changes something beside stacks, calls and state.
    pub(crate) fn change(&mut self, change: Change) {
        self.snapshot.change(&change);
        self.commit.changes.push(change);
    }

    /// This agent has something new to deal with; it moves before the tick ends.
    pub(crate) fn wake(&mut self, agent: Id) {
        let place = self.place(agent);
        self.woken.insert(place);
    }

    /// Where an agent stands in the order of moves.
    pub(crate) fn place(&self, agent: Id) -> (Path, Id) {
        (self.snapshot.agent(agent).path.clone(), agent)
    }

    /// What an agent sees now.
    pub(crate) fn view(&self, agent: Id) -> View<'_> {
        View::new(&self.cx(), &self.snapshot, Some(agent)).at(self.now)
    }

    /// An effect that was out is wanted no longer. What closes its call or pushes onto its agent withdraws it.
    pub(crate) fn stop(&mut self, effect: Id) {
        self.stop.push(effect);
    }

    /// Whether an offer may still be taken by this tick: the first always, later ones while the line has room for what
    /// may come of them.
    fn has_room_for(&self, offer: &Offered) -> bool {
        let writes = match offer {
            Offered::Outcome {
                outcome: Outcome::Mapped(mapped),
                ..
            } => &mapped.writes[..],
            Offered::Edit { writes, .. } => writes,
            _ => &[],
        };
        let values: usize = writes
            .iter()
            .filter_map(|write| write.value.as_ref())
            .map(bounds::size)
            .sum();
        let made = self.commit.pushes.len() + self.commit.edits.len() + self.next as usize;
        self.commit.admitted.is_empty()
            || (made * PUSH < TICK && (values == 0 || self.values + values <= VALUES))
    }

    // ---- the three parts of a tick ---------------------------------------------------------------------------

    /// All that is offered is taken or left before any agent moves. Edits and expired entries come first, since
    /// the fold applies them ahead of all pushes; where a branch begins or is adopted they wait for the next tick.
    fn take_all(&mut self, offered: &[Offered]) {
        let opens = offered.iter().any(|o| {
            matches!(
                o,
                Offered::Start(_) | Offered::Opened(_) | Offered::Adopt { .. }
            )
        });
        let mut expired = false;
        for (index, offer) in offered.iter().enumerate() {
            let early = match offer {
                Offered::Edit { .. } | Offered::Clock if opens => Err(Until::Again),
                Offered::Edit { .. } if !self.has_room_for(offer) => Err(Until::Again),
                Offered::Edit { writes, by } => self.take_edit(writes, by),
                Offered::Clock => {
                    expired |= self.expire();
                    continue;
                }
                Offered::Start(_)
                | Offered::Opened(_)
                | Offered::Adopt { .. }
                | Offered::NotAdopted { .. }
                | Offered::Outcome { .. }
                | Offered::Edited { .. }
                | Offered::Ended { .. }
                | Offered::Join { .. }
                | Offered::Interrupt { .. }
                | Offered::Cancel { .. }
                | Offered::Message(_) => continue,
            };
            if let Err(until) = early {
                self.left.push((index, until));
            }
        }
        for (index, offer) in offered.iter().enumerate() {
            // Where a branch begins, what was out had its time from the commit before; from then on it is now.
            let begins = matches!(offer, Offered::Opened(_) | Offered::Adopt { .. });
            if !begins {
                self.snapshot.now = self.now;
            }
            let taken = match offer {
                Offered::Edit { .. } => continue,
                Offered::Clock if opens => continue,
                _ if !self.has_room_for(offer) => Err(Until::Again),
                Offered::Start(start) => self.take_start(start),
                Offered::Opened(opened) => self.take_opened(opened),
                Offered::Adopt {
                    call,
                    branch,
                    at,
                    from,
                    known,
                } => self.take_adopt(*call, *branch, *at, from, known),
                Offered::NotAdopted { call, branch, why } => {
                    self.take_not_adopted(*call, *branch, why)
                }
                Offered::Outcome {
                    effect,
                    attempt: _,
                    outcome,
                } => self.take_outcome(*effect, outcome),
                Offered::Edited {
                    effect,
                    args,
                    by,
                    approver,
                } => self.take_edited(*effect, args, by, approver),
                Offered::Clock => self.take_clock(expired),
                Offered::Ended { call, ends } => self.take_ended(*call, ends),
                Offered::Join { branches, on, then } => self.take_join(branches, on, then.as_ref()),
                Offered::Interrupt {
                    message,
                    known,
                    shown,
                } => self.take_interrupt(message, known, shown),
                Offered::Cancel {
                    what,
                    by,
                    known,
                    shown,
                } => self.take_cancel(what, by, known, shown),
                Offered::Message(said) => self.take_message(said),
            };
            if let Err(until) = taken {
                self.left.push((index, until));
            }
        }
        self.snapshot.now = self.now;
    }

    /// Everyone who was woken moves, first by path, until nobody is left who can move.
    pub(crate) fn run(&mut self) {
        loop {
            while let Some((_, agent)) = self.woken.pop_first() {
                self.moves += 1;
                if self.moves > MOVES {
                    self.end_of_moves(agent);
                } else {
                    self.step(agent);
                }
            }
            if !self.look_again() {
                break;
            }
        }
    }

    /// Waits over state are looked at again if state changed; and where nothing is owed or awaited any more, what
    /// waits has waited in vain. Whether somebody woke.
    fn look_again(&mut self) -> bool {
        if self.look_at_waits() {
            return true;
        }
        if !self.is_deadlock() {
            return false;
        }
        if self.end_tick_waits() {
            return true;
        }
        if let Some(top) = self.snapshot.top() {
            if self.agent(self.floor(top)).phase == Phase::Resting {
                let text = "A person has the floor, and nobody is asked on this branch.";
                self.end_with(top, Cause::Leaf, "leaf", text);
                return true;
            }
            let text = "Nothing is owed or awaited from outside any more, and nobody can go on.";
            self.end_with(top, Cause::Deadlock, "deadlock", text);
        }
        true
    }

    /// Whether the top agent is at work, and yet nothing that is open can ever end.
    fn is_deadlock(&self) -> bool {
        let Some(top) = self.snapshot.top() else {
            return false;
        };
        !self.snapshot.effects.values().any(|e| self.may_end(e))
            && self.agent(top).phase != Phase::Resting
            && !self.thinkers.iter().any(|(_, id)| self.owes_thought(*id))
            // A person's next message goes to who has the floor; on the branches of an agent's fork nobody speaks.
            && (self.snapshot.of.is_some() || self.agent(self.floor(top)).phase != Phase::Resting)
            && (self.snapshot.waits.is_empty() || self.snapshot.expiring.is_empty())
            && !self.awaits_branches()
    }

    fn awaits_branches(&self) -> bool {
        !self.snapshot.forks.is_empty() || self.waits_for_branches()
    }

    fn owes_thought(&self, agent: Id) -> bool {
        let agent = self.agent(agent);
        matches!(agent.phase, Phase::Thinking | Phase::Routing) && agent.owed.is_none()
    }

    /// Counts what is pushed onto the stack of an agent whose context may be compacted.
    fn weigh(&mut self, agent: Id, what: &Interaction) {
        // In whichever mode it was pushed, another one may look at it.
        let mut models = self.def(agent).models();
        if models.any(|model| model.context.compact.is_some()) {
            let bytes = what
                .shown()
                .map(|body| self.text(body).len())
                .sum::<usize>();
            *self.grown.entry(agent).or_default() += bytes;
        }
    }

    /// Who owes a model call has one wished, in path order.
    fn wish_models(&mut self) {
        for (_, agent) in std::mem::take(&mut self.thinkers) {
            if self.owes_thought(agent) {
                for mark in crate::context::due_watermarks(&self.cx(), &self.snapshot, agent) {
                    self.change(Change::Watermark(mark));
                }
                let id = self.id();
                self.wish(Wished {
                    id,
                    agent,
                    what: Want::Step,
                    args: None,
                    due: None,
                });
            }
        }
    }

    /// Labels are rendered again in every commit of a network that has some; those that changed are recorded.
    fn render_labels(&mut self) {
        for (name, template) in &self.network.labels {
            let Some(root) = self.snapshot.root else {
                return;
            };
            // A label that cannot be rendered keeps its last text.
            let Ok(text) = template.render(&self.view(root)) else {
                continue;
            };
            let text = bounds::cut(&text, LABEL);
            let known = self.snapshot.labels.get(name);
            if known.is_some_and(|body| *self.text(*body) == *text) {
                continue;
            }
            let body = self.body(&*text);
            self.change(Change::Label(name.clone(), Some(body)));
        }
    }

    /// What stays as it came.
    fn nothing(self) -> Step {
        Step {
            commit: None,
            bodies: Vec::new(),
            snapshot: Snapshot {
                now: self.was,
                ..self.snapshot
            },
            wishes: Vec::new(),
            stop: Vec::new(),
            requests: Vec::new(),
            contents: Vec::new(),
            left: self.left,
            ended: None,
            made: 0,
        }
    }

    fn close(mut self) -> Step {
        for (agent, bytes) in std::mem::take(&mut self.grown) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            if bytes > 0 && self.snapshot.agents.contains_key(&agent) {
                self.change(Change::Grew(agent, bytes));
            }
        }
        self.wish_models();
        self.render_labels();
        let effects = &self.snapshot.effects;
        self.commit.wished.retain(|w| effects.contains_key(&w.id));
        let calls = &self.snapshot.calls;
        self.commit
            .branching
            .retain(|b| calls.contains_key(&(b.agent, b.call)));
        self.stop.retain(|id| id.line() != self.line);
        if self.names_branch {
            self.snapshot.branch = self.id();
        }
        self.snapshot.seal(self.line, self.now);
        let cx = Cx {
            network: self.network,
            bodies: &self.texts,
        };
        let wishes = self
            .commit
            .wished
            .iter()
            .map(|w| crate::call::wish(&cx, &self.snapshot, w.id, &self.snapshot.effects[&w.id]))
            .collect();
        let ended = self.branch_end();
        Step {
            commit: Some(self.commit),
            bodies: self.texts.new,
            snapshot: self.snapshot,
            wishes,
            stop: self.stop,
            requests: self.requests,
            contents: self.contents,
            left: self.left,
            ended,
            made: self.next,
        }
    }

    /// The top agent of the scope rests since this tick.
    fn branch_end(&self) -> Option<BranchEnd> {
        let top = self.agent(self.snapshot.top()?);
        if top.phase != Phase::Resting || (self.top_rested && top.last != self.line) {
            return None;
        }
        let (end, cause) = top.ended.unwrap_or((End::Turn, Cause::Answer));
        Some(BranchEnd {
            branch: self.snapshot.branch,
            label: self.commit.opening.as_ref().and_then(|o| o.label.clone()),
            at: self.line,
            answer: top.answer.map(|body| self.text(body)),
            end,
            cause,
        })
    }
}
