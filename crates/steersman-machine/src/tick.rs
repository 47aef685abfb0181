//! The tick: takes or leaves what is offered, lets every woken agent move to rest in path order, and returns the step.
//!
//! [`Tick`] is the working form. It pushes by folding: each push goes through the fold's own functions and into the
//! commit, in the same order. The fold applies a commit's parts in a fixed order (opening, adoption, binding, edits,
//! usage, made, pushes, wished, modes), so: edits come before anything is pushed, and a wish that is withdrawn again
//! in the same tick does not stay in the commit.

use crate::commit::{Admission, Admitted, Commit, Made, Push, Text, Wished};
use crate::effect::{Bodies, BranchEnd, Offered, Request, Step, Until, Wish};
use crate::ids::{Body, Digest, Id, Line, Name, Path, Time};
use crate::interaction::{Cause, End, Interaction, Write};
use crate::network::{AgentDef, Network};
use crate::snapshot::{Agent, Phase, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What every decision may read beside the snapshot.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// The checked definition.
    pub network: &'a Network,
    /// Texts that the snapshot names.
    pub bodies: &'a dyn Bodies,
}

/// More moves than this in one tick are a loop.
pub const MOVES: u32 = 1_000;

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

/// Texts of this tick above those of the log.
pub(crate) struct Texts<'a> {
    below: &'a dyn Bodies,
    line: Line,
    new: Vec<Text>,
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
    /// Offers that were left.
    pub(crate) left: Vec<(usize, Until)>,
    /// While it is above zero, nothing begins: something is being cancelled.
    pub(crate) cancelling: u32,
    /// State, counts or artifacts changed in this tick: waits over state are looked at again.
    pub(crate) changed: bool,
    woken: BTreeSet<(Path, Id)>,
    moves: u32,
    next: u32,
    top_rested: bool,
    /// A branch begins here that nobody has numbered.
    pub(crate) names_branch: bool,
}

impl<'a> Tick<'a> {
    pub(crate) fn new(cx: &Cx<'a>, snapshot: Snapshot, line: Line, now: Time) -> Self {
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
            left: Vec::new(),
            cancelling: 0,
            changed: false,
            woken: BTreeSet::new(),
            moves: 0,
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
        self.snapshot.wish(&wished);
        self.commit.wished.push(wished);
    }

    /// Changes a mode.
    pub(crate) fn set_mode(&mut self, agent: Id, mode: Name) {
        self.snapshot.set_mode(agent, &mode);
        self.commit.modes.push((agent, mode));
    }

    /// This agent has something new to deal with; it moves before the tick ends.
    pub(crate) fn wake(&mut self, agent: Id) {
        let path = self.snapshot.agent(agent).path.clone();
        self.woken.insert((path, agent));
    }

    /// An effect that was out is wanted no longer. What closes its call or pushes onto its agent withdraws it.
    pub(crate) fn stop(&mut self, effect: Id) {
        self.stop.push(effect);
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
        for (index, offer) in offered.iter().enumerate() {
            let early = match offer {
                Offered::Edit { .. } | Offered::Clock if opens => Err(Until::Again),
                Offered::Edit { writes, by } => self.take_edit(writes, by),
                Offered::Clock => {
                    self.expire();
                    continue;
                }
                _ => continue,
            };
            if let Err(until) = early {
                self.left.push((index, until));
            }
        }
        for (index, offer) in offered.iter().enumerate() {
            let taken = match offer {
                Offered::Edit { .. } => continue,
                Offered::Clock if opens => continue,
                Offered::Start(start) => self.take_start(start),
                Offered::Opened(opened) => self.take_opened(opened),
                Offered::Adopt {
                    call,
                    branch,
                    at,
                    from,
                    known,
                } => self.take_adopt(*call, *branch, *at, from, known),
                Offered::Outcome {
                    effect,
                    attempt: _,
                    outcome,
                } => self.take_outcome(*effect, outcome),
                Offered::Edited { effect, args, by } => self.take_edited(*effect, args, by),
                Offered::Clock => self.take_clock(),
                Offered::Ended { call, ends } => self.take_ended(*call, ends),
                Offered::Join { branches, then } => self.take_join(branches, then.as_ref()),
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

    /// Waits over state are looked at again if state changed. Whether somebody woke.
    fn look_again(&mut self) -> bool {
        false
    }

    /// Who owes a model call has one wished, in path order.
    fn wish_models(&mut self) {}

    /// Labels are rendered again if something changed.
    fn render_labels(&mut self) {}

    /// What stays as it came.
    fn nothing(self) -> Step {
        Step {
            commit: None,
            bodies: Vec::new(),
            snapshot: self.snapshot,
            wishes: Vec::new(),
            stop: Vec::new(),
            requests: Vec::new(),
            left: self.left,
            ended: None,
            made: 0,
        }
    }

    fn close(mut self) -> Step {
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
