//! The tick: takes or leaves the offers, lets every woken agent move in path order until it rests, and returns the step.
//!
//! `Tick` is the working form. It pushes by folding: each push goes through the fold's own functions and into the commit, in
//! the same order. The fold applies the parts of a commit in a fixed order (opening, adoption, binding, edits, usage, made,
//! pushes, branching, wished, changes). So edits come before all pushes, and a wish that is withdrawn in the same tick is removed
//! from the commit.

pub mod branch;
mod call;
pub mod carry;
mod compact;
pub mod effect;
mod extract;
mod finish;
pub mod join;
mod limits;
mod modes;
mod nets;
mod reflect;
mod route;
mod state;
pub mod table;
mod take;
pub mod wait;

use crate::network::{AgentDef, Network};
use crate::snapshot::{Agent, Phase, Snapshot};
use crate::stored::bounds::{self, LABEL, MOVES, PUSH, TICK, VALUES};
use crate::stored::codes::MISFIT;
use crate::stored::commit::{Admission, Admitted, Change, Commit, Made, Push, Text, Want, Wished};
use crate::stored::ids::{Bodies, Body, Digest, Id, Line, Name, Path, Time};
use crate::stored::interaction::{Cause, End, Interaction, Write};
use crate::stored::outcome::Outcome;
use crate::tick::effect::{BranchEnd, Offered, Request, Step, Until, Wish};
use crate::values::types::Parameters;
use crate::view::artifact::Content;
use crate::view::{Cx, View, complete};
use reflect::{JudgedResult, Reviewed};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub use take::floor;

/// Takes or leaves each offer, lets the agents move until they rest, and returns the step with everything wanted from outside.
///
/// `line` is the number that the line will have, `now` its recorded time. If no offer is taken, the step has no commit and holds
/// the snapshot unchanged.
pub fn tick(cx: &Cx<'_>, snapshot: Snapshot, line: Line, now: Time, offered: &[Offered]) -> Step {
    let mut tick = Tick::new(cx, snapshot, line, now);
    tick.take_all(offered);
    if tick.commit.admitted.is_empty() {
        return tick.nothing();
    }
    tick.run();
    tick.close()
}

/// Rebuilds the wishes of all effects that are out, for an owner that takes a session over.
pub fn wishes(cx: &Cx<'_>, snapshot: &Snapshot) -> Vec<Wish> {
    snapshot
        .effects
        .iter()
        .map(|(id, effect)| call::wish(cx, snapshot, *id, effect))
        .collect()
}

/// Reason why a call may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error code, as in `on_error`.
    pub code: &'static str,
    /// Text for the model.
    pub text: String,
}

/// Checks whether a call may run with these arguments. The driver asks again after a hold, which may have lasted for days.
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
    if let Some(misfit) = crate::values::types::arguments_misfit(&call::given(tool), args) {
        return refused(MISFIT, misfit.under("args").to_string());
    }
    let args = match &tool.parameters {
        Parameters::Fields(fields) => complete(args.clone(), fields),
        Parameters::Schema(_) => args.clone(),
    };
    match call::refusal(cx, snapshot, open, tool, args) {
        Some(text) => refused("refused", text),
        None => Ok(()),
    }
}

/// The texts of this tick, together with those of the log.
pub(crate) struct Texts<'a> {
    below: &'a dyn Bodies,
    line: Line,
    new: Vec<Text>,
}

impl Texts<'_> {
    /// Returns the texts that this tick has made so far.
    pub(crate) fn came_in(&self) -> &[Text] {
        &self.new
    }

    /// Removes the newest text, which was needed only for a comparison.
    pub(crate) fn forget(&mut self, newest: Body) {
        debug_assert_eq!(newest.k() as usize + 1, self.new.len());
        self.new.pop();
    }

    /// Removes all texts after the first `n`, which nothing names.
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
    /// Effects that are no longer wanted.
    pub(crate) stop: Vec<Id>,
    /// Requests to the driver about branches.
    pub(crate) requests: Vec<Request>,
    /// Contents of artifacts that this tick made.
    pub(crate) contents: Vec<Content>,
    /// Offers that were left.
    pub(crate) left: Vec<(usize, Until)>,
    /// While this is above zero, something is being cancelled and no call begins.
    pub(crate) cancelling: u32,
    /// For each caller, the text of its newest result in this tick, and whether that result is a failure for which the definition
    /// sets no reaction.
    pub(crate) closed: BTreeMap<Id, (Option<Body>, bool)>,
    /// Agents whose mode changed in this tick. A mode changes at most once in a tick.
    pub(crate) turned: BTreeSet<Id>,
    /// For each caller, the results of its exchange that are to be judged.
    pub(crate) reflecting: BTreeMap<Id, Vec<JudgedResult>>,
    /// For each agent, the judgements on its calls in this tick.
    pub(crate) reviewed: BTreeMap<Id, Reviewed>,
    /// Agents whose limit asked a person for more, and the person refused.
    pub(crate) declined: BTreeSet<Id>,
    /// Bytes that were pushed onto stacks of agents whose context may be compacted.
    grown: BTreeMap<Id, usize>,
    /// Agents whose own context was summarized in this tick, or could not be. They owe the step that they owed before.
    pub(crate) summed: BTreeSet<Id>,
    /// Agents that owe a model call at the end of this tick.
    pub(crate) thinkers: BTreeSet<(Path, Id)>,
    /// Bytes of state values that this tick writes.
    pub(crate) values: usize,
    /// The texts of the definitions' defaults in this line, by agent definition and state entry.
    pub(crate) defaults: BTreeMap<(Name, Name), Body>,
    woken: BTreeSet<(Path, Id)>,
    moves: u32,
    pub(crate) next: u32,
    top_rested: bool,
    /// Time of the commit before.
    was: Time,
    /// True if a branch begins here that has no id yet; it gets the next id of this line.
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

    /// Returns the data that decisions of this tick may read, with the texts of this tick.
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

    /// Returns the id for the next thing that this line makes.
    pub(crate) fn id(&mut self) -> Id {
        let id = Id::new(self.line, self.next);
        self.next += 1;
        id
    }

    /// Adds a text to this line.
    pub(crate) fn body(&mut self, text: impl Into<Arc<str>>) -> Body {
        let body = Body::new(self.line, self.texts.new.len() as u32);
        self.texts.new.push(Text::Here(text.into()));
        body
    }

    /// Records an offer that was taken.
    pub(crate) fn admit(&mut self, admission: Admission) {
        self.commit.admitted.push(admission);
    }

    /// Records an offer that was taken in short: its kind, the effect or call that it names, and the digest of its text.
    pub(crate) fn admit_as(&mut self, kind: Admitted, id: Option<Id>, text: &[u8]) {
        self.admit(Admission {
            kind,
            id,
            message: None,
            by: None,
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

    /// Makes an agent instance.
    pub(crate) fn make(&mut self, made: Made) {
        self.snapshot
            .make(self.line, self.now, &made, &self.texts.new);
        self.commit.made.push(made);
    }

    /// Edits state. Allowed only before anything is pushed, or if no push of this tick wrote the same scope.
    pub(crate) fn edit(&mut self, write: Write) {
        self.snapshot
            .edit(self.line, self.now, &write, &self.texts.new);
        self.commit.edits.push(write);
    }

    /// Wishes an effect for a call, or for the agent itself.
    pub(crate) fn wish(&mut self, wished: Wished) {
        self.snapshot.wish(self.now, &wished);
        self.commit.wished.push(wished);
    }

    /// Applies a change other than one of stacks, calls or state.
    pub(crate) fn change(&mut self, change: Change) {
        self.snapshot.change(&change);
        self.commit.changes.push(change);
    }

    /// Marks an agent that has something new to deal with. It moves before the tick ends.
    pub(crate) fn wake(&mut self, agent: Id) {
        let place = self.place(agent);
        self.woken.insert(place);
    }

    /// Returns the place of an agent in the order of moves.
    pub(crate) fn place(&self, agent: Id) -> (Path, Id) {
        (self.snapshot.agent(agent).path.clone(), agent)
    }

    /// Returns the view of an agent at the time of this tick.
    pub(crate) fn view(&self, agent: Id) -> View<'_> {
        View::new(&self.cx(), &self.snapshot, Some(agent)).at(self.now)
    }

    /// Stops an effect that is no longer wanted. The caller closes its call or pushes onto its agent, which withdraws the effect.
    pub(crate) fn stop(&mut self, effect: Id) {
        self.stop.push(effect);
    }

    /// Returns true if this tick may still take an offer: always for the first offer, for later ones if the line has room for
    /// everything that may come of them.
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

    /// Takes or leaves all offers before any agent moves. Edits and expired entries come first, because the fold applies them
    /// before all pushes. In a tick that opens or adopts a branch they are left for the next tick.
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
            // A branch that begins or is adopted counts its effects up to the time of the commit before; all other offers happen
            // now.
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

    /// Lets every woken agent move, in path order, until no agent can move.
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

    /// Checks the waits for state and commits again. If nothing is owed or awaited any more, ends waits for commits or the top
    /// agent. Returns true if an agent may have been woken.
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

    /// Returns true if the top agent is at work although nothing that is open can ever end.
    fn is_deadlock(&self) -> bool {
        let Some(top) = self.snapshot.top() else {
            return false;
        };
        !self.snapshot.effects.values().any(|e| self.may_end(e))
            && self.agent(top).phase != Phase::Resting
            && !self.thinkers.iter().any(|(_, id)| self.owes_thought(*id))
            // A person's next message would go to the agent that has the floor. On the branches of an agent's fork no person
            // speaks.
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

    /// Counts the bytes that are pushed onto the stack of an agent whose context may be compacted.
    fn weigh(&mut self, agent: Id, what: &Interaction) {
        // All modes count: another mode than the one of the push may have to render it.
        let mut models = self.def(agent).models();
        if models.any(|model| model.context.compact.is_some()) {
            let bytes = what
                .shown()
                .map(|body| self.text(body).len())
                .sum::<usize>();
            *self.grown.entry(agent).or_default() += bytes;
        }
    }

    /// Wishes a model call for each agent that owes one, in path order.
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

    /// Renders the labels again, in every commit of a network that has labels, and records those that changed.
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

    /// Returns the step of a tick that took nothing.
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
            .calls
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
            .map(|w| call::wish(&cx, &self.snapshot, w.id, &self.snapshot.effects[&w.id]))
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

    /// Returns the end of the branch, if the top agent of its scope has come to rest in this tick.
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
