//! The tick: takes or leaves the offers, lets every woken agent move in path order until it rests, and returns the step.
//!
//! `Tick` is a tick at work. It makes each change by a function of the fold and records it in the commit, so that a fold of the
//! commit gives the same snapshot. The fold applies the parts of a commit in a fixed order (opening, adoption, binding, edits,
//! usage, made, pushes, calls, wished, changes). So edits come before all pushes, and a wish that is withdrawn in the same tick is
//! removed from the commit.

pub mod branch;
mod call;
pub mod carry;
mod compact;
pub mod effect;
mod extract;
mod finish;
pub mod history;
pub mod hooks;
pub mod join;
mod limits;
mod modes;
mod moves;
mod nets;
mod reflect;
mod results;
mod route;
mod state;
pub mod table;
mod take;
mod texts;
pub mod wait;

use crate::network::{AgentDef, Network};
use crate::snapshot::{Agent, Phase, Snapshot};
use crate::stored::bounds::{self, LABEL, PUSH, TICK};
use crate::stored::codes::Code;
use crate::stored::commit::{Admission, Admitted, Change, Commit, Made, Push, Want, Wished};
use crate::stored::ids::{Bodies, Body, Id, Line, Time};
use crate::stored::interaction::{Cause, End, Interaction, Write};
use crate::stored::outcome::Outcome;
use crate::stored::parts::NewPart;
use crate::tick::effect::{BranchEnd, OfferKind, Offered, Request, Step, Until, Wish};
use crate::values::types::Parameters;
use crate::view::{Cx, View, complete};
pub use call::{Changed, asked_at, changed};
use moves::{Moves, Place};
use results::Results;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
pub use take::floor;
use texts::Texts;

/// Takes or leaves each offer, lets the agents move until they rest, and returns the step with everything wanted from outside.
///
/// `line` is the number that the line will have, `now` its recorded time. If no offer is taken, the step has no commit and holds
/// the snapshot unchanged.
pub fn tick(cx: &Cx<'_>, snapshot: Snapshot, line: Line, now: Time, offered: &[Offered]) -> Step {
    let mut tick = Tick::new(cx, snapshot, line, now);
    let left = tick.take_all(offered);
    if tick.commit.admitted.is_empty() {
        return tick.nothing(left);
    }
    tick.run();
    tick.close(left)
}

/// Rebuilds the wishes of all outstanding effects, for an owner that takes a session over.
pub fn wishes(cx: &Cx<'_>, snapshot: &Snapshot) -> Vec<Wish> {
    snapshot
        .effects
        .iter()
        .map(|(id, effect)| call::wish(cx, snapshot, *id, effect))
        .collect()
}

/// Makes the questions of a rebuilt wish of a tool those of the line that asked for its call: `then` is the snapshot of
/// [that line](asked_at), `now` the one that the wish was rebuilt from.
pub fn ask_as_of(cx: &Cx<'_>, then: &Snapshot, now: &Snapshot, wish: &mut Wish) {
    call::ask_as_of(cx, then, now, wish);
}

/// Reason why a call may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error code, as in `on_error`.
    pub code: Code,
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
        return refused(Code::Failed, "the call is not open any more".to_owned());
    };
    let Some(tool) = cx.network.tools.get(&open.call.name) else {
        return Ok(());
    };
    let Some(args) = args.as_object() else {
        return refused(
            Code::Misfit,
            "the arguments are not a JSON object".to_owned(),
        );
    };
    if let Some(misfit) = crate::values::types::arguments_misfit(&call::given(tool), args) {
        return refused(Code::Misfit, misfit.under("args").to_string());
    }
    let args = match &tool.parameters {
        Parameters::Fields(fields) => complete(args.clone(), fields),
        Parameters::Schema(_) => args.clone(),
    };
    match call::refusal(cx, snapshot, open, tool, args) {
        Some(text) => refused(Code::Refused, text),
        None => Ok(()),
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
    /// Number of ids that this line has given.
    next: u32,
    /// Effects that are no longer wanted.
    stop: Vec<Id>,
    /// Requests to the driver about branches.
    pub(crate) requests: Vec<Request>,
    moves: Moves,
    /// For each caller, the results of its calls in this tick.
    results: BTreeMap<Id, Results>,
    /// True while something is being cancelled: no call follows another, nothing is judged, and no branch is chosen.
    cancelling: bool,
    before: Before,
}

/// State of the branch before the tick.
struct Before {
    /// Time of the last commit.
    now: Time,
    /// True if the top agent of the branch's scope rested, or there was none.
    top_rested: bool,
}

impl Before {
    fn of(snapshot: &Snapshot) -> Self {
        let top = snapshot.top();
        Self {
            now: snapshot.now,
            top_rested: top.is_none_or(|top| snapshot.agent(top).phase == Phase::Resting),
        }
    }
}

impl<'a> Tick<'a> {
    pub(crate) fn new(cx: &Cx<'a>, snapshot: Snapshot, line: Line, now: Time) -> Self {
        Self {
            network: cx.network,
            texts: Texts::new(cx.bodies, line),
            commit: Commit {
                parent: snapshot.line,
                ..Commit::default()
            },
            before: Before::of(&snapshot),
            snapshot,
            line,
            now,
            next: 0,
            stop: Vec::new(),
            requests: Vec::new(),
            moves: Moves::default(),
            results: BTreeMap::new(),
            cancelling: false,
        }
    }

    // ---- reading -------------------------------------------------------------------------------------------

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

    // ---- changes: each goes through the fold and into the commit ---------------------------------------------

    /// Returns the id for the next thing that this line makes.
    pub(crate) fn id(&mut self) -> Id {
        let id = self.next_id();
        self.next += 1;
        id
    }

    /// Returns the id that [`Self::id`] returns next.
    pub(crate) fn next_id(&self) -> Id {
        Id::new(self.line, self.next)
    }

    /// Does work that cancels something. Meanwhile no call follows another, nothing is judged, and no branch is chosen.
    pub(crate) fn while_cancelling(&mut self, work: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.cancelling, true);
        work(self);
        self.cancelling = before;
    }

    /// Adds a text to this line.
    pub(crate) fn body(&mut self, text: impl Into<Arc<str>>) -> Body {
        self.texts.add(text.into())
    }

    /// Adds a body of a text and the parts that follow it. `None` if there is neither.
    pub(crate) fn body_of(&mut self, text: Option<String>, more: Vec<NewPart>) -> Option<Body> {
        match text {
            text if !more.is_empty() => Some(self.texts.add_parts(text, more)),
            text => text.map(|text| self.body(text)),
        }
    }

    /// Records an offer that was taken.
    pub(crate) fn admit(&mut self, admission: Admission) {
        self.commit.admitted.push(admission);
    }

    /// Records an offer that was taken, with only its kind and the effect, call or branch that it names.
    pub(crate) fn admit_as(&mut self, kind: Admitted, id: Option<Id>) {
        self.admit(Admission {
            kind,
            id,
            message: None,
            by: None,
            body: None,
        });
    }

    /// Pushes an interaction onto an agent's stack.
    pub(crate) fn push(&mut self, agent: Id, what: Interaction) {
        let push = Push {
            agent,
            prev: self.snapshot.agent(agent).stack.last,
            what,
        };
        self.snapshot
            .push(self.line, self.now, &push, self.texts.came_in());
        self.commit.pushes.push(push);
    }

    /// Makes an agent instance.
    pub(crate) fn make(&mut self, made: Made) {
        self.snapshot
            .make(self.line, self.now, &made, self.texts.came_in());
        self.commit.made.push(made);
    }

    /// Edits state. Allowed only before anything is pushed, or if no push of this tick wrote the same scope.
    pub(crate) fn edit(&mut self, write: Write) {
        self.snapshot
            .edit(self.line, self.now, &write, self.texts.came_in());
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
        self.moves.wake(place);
    }

    /// Notes that an agent owes a model call, which is wished at the end of the tick.
    pub(crate) fn will_think(&mut self, agent: Id) {
        let place = self.place(agent);
        self.moves.think(place);
    }

    /// Returns true if an agent is noted to owe a model call.
    pub(crate) fn thinks(&self, agent: Id) -> bool {
        self.moves.thinks(&self.place(agent))
    }

    /// Returns the place of an agent in the order of moves.
    fn place(&self, agent: Id) -> Place {
        (self.snapshot.agent(agent).family.path.clone(), agent)
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
    /// all their results.
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
        self.commit.admitted.is_empty() || (made * PUSH < TICK && self.texts.have_room(values))
    }

    // ---- the three parts of a tick ---------------------------------------------------------------------------

    /// Takes or leaves all offers before any agent moves, in the order of their kinds. In a tick that opens or adopts a branch,
    /// edits and the clock are left for the next tick. Returns the offers that were left, by index.
    fn take_all(&mut self, offered: &[Offered]) -> Vec<(usize, Until)> {
        let mut left = Vec::new();
        let opens = offered.iter().any(|offer| offer.kind().opens());
        // The fold applies expired entries and edits before all pushes.
        let expires = !opens && offered.iter().any(|o| o.kind() == OfferKind::Clock);
        let expired = expires && self.expire();
        let mut in_order: Vec<(usize, &Offered)> = offered.iter().enumerate().collect();
        in_order.sort_by_key(|(_, offer)| offer.kind());
        for (index, offer) in in_order {
            let is_early = matches!(offer.kind(), OfferKind::Edit | OfferKind::Clock);
            // While a branch opens or is adopted, or state is edited, the snapshot keeps the time of the last commit: remaining
            // times of effects are counted from it. All other offers are taken at the time of this tick.
            let is_before = matches!(
                offer,
                Offered::Edit { .. } | Offered::Opened(_) | Offered::Adopt { .. }
            );
            if !is_before {
                self.snapshot.now = self.now;
            }
            let taken = match offer {
                _ if opens && is_early => Err(Until::Again),
                _ if !self.has_room_for(offer) => Err(Until::Again),
                Offered::Edit { writes, by } => self.take_edit(writes, by),
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
                Offered::Anew { effect, by } => self.take_anew(*effect, by.as_ref()),
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
                left.push((index, until));
            }
        }
        self.snapshot.now = self.now;
        left
    }

    /// Lets every woken agent move, in path order, until no agent can move.
    pub(crate) fn run(&mut self) {
        loop {
            while let Some(agent) = self.moves.begin_next() {
                if self.moves.are_too_many() {
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
            && !self.moves.thinkers().any(|id| self.owes_thought(id))
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
        matches!(agent.phase, Phase::Thinking | Phase::Routing) && agent.stack.owed.is_none()
    }

    /// Returns the bytes that were pushed in this tick onto the stacks of agents whose context may be compacted.
    fn grown(&self) -> BTreeMap<Id, u32> {
        let mut grown = BTreeMap::new();
        for push in &self.commit.pushes {
            // An adoption may have replaced the agents of the branch.
            let Some(agent) = self.snapshot.agents.get(&push.agent) else {
                continue;
            };
            // All modes count: another mode than the one of the push may have to render it.
            let mut models = self.network.agent(&agent.def).models();
            if models.any(|model| model.context.compact.is_some()) {
                let texts = push.what.shown();
                let bytes: usize = texts.map(|body| self.text(body).len()).sum();
                if bytes > 0 {
                    let sum: &mut u32 = grown.entry(push.agent).or_default();
                    *sum = sum.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
                }
            }
        }
        grown
    }

    /// Wishes a model call for each agent that owes one, in path order.
    fn wish_models(&mut self) {
        for agent in self.moves.take_thinkers() {
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
    fn nothing(self, left: Vec<(usize, Until)>) -> Step {
        Step {
            commit: None,
            bodies: Vec::new(),
            snapshot: Snapshot {
                now: self.before.now,
                ..self.snapshot
            },
            wishes: Vec::new(),
            stop: Vec::new(),
            requests: Vec::new(),
            contents: Vec::new(),
            left,
            ended: None,
            made: 0,
        }
    }

    fn close(mut self, left: Vec<(usize, Until)>) -> Step {
        for (agent, bytes) in self.grown() {
            self.change(Change::Grew(agent, bytes));
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
        if self.opens_for_person() {
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
        let (bodies, contents) = self.texts.into_stored();
        Step {
            commit: Some(self.commit),
            bodies,
            snapshot: self.snapshot,
            wishes,
            stop: self.stop,
            requests: self.requests,
            contents,
            left,
            ended,
            made: self.next,
        }
    }

    /// Returns true if this is the first line of a person's branch. Such a branch gets the next id of the line; a branch of an
    /// agent's fork has its id from the fork.
    fn opens_for_person(&self) -> bool {
        self.commit.admitted.iter().any(|admission| {
            matches!(admission.kind, Admitted::Opened | Admitted::Rewound) && admission.id.is_none()
        })
    }

    /// Returns the end of the branch, if the top agent of its scope has come to rest in this tick.
    fn branch_end(&self) -> Option<BranchEnd> {
        let top = self.agent(self.snapshot.top()?);
        if top.phase != Phase::Resting || (self.before.top_rested && top.stack.last != self.line) {
            return None;
        }
        let (end, cause) = top.turn.ended.unwrap_or((End::Turn, Cause::Answer));
        Some(BranchEnd {
            branch: self.snapshot.branch,
            label: self.commit.opening.as_ref().and_then(|o| o.label.clone()),
            at: self.line,
            answer: top.turn.answer.map(|body| self.text(body)),
            end,
            cause,
        })
    }
}
