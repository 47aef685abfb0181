//! Branches are opened, adopted, ended, superseded and made current.

use super::draft::{Draft, Note, Offer};
use super::parts::{ToAdopt, ToOpen};
use super::{Answered, Job, Stop, Want, What};
use crate::branches::{not_adoptable, not_all_act, searched, taken_label};
use crate::inbox::Wanted;
use crate::load::Since;
use crate::store::InboxMessage;
use crate::store::bounds::ID;
use steersman_machine::network::join::JoinOn;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Bodies, Digest, Id, Line, Name};
use steersman_machine::stored::interaction::{Cause, End, Target};
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::tick::branch::{Awaited, awaited, awaits};
use steersman_machine::tick::effect::{
    BranchEnd, Known, Offered, Opened, Request, Said, Step, Until,
};
use steersman_machine::tick::join::Stands;
use steersman_machine::tick::wait::for_branches;

/// Refusal of a search that cannot begin at a line.
const NOTHING_OWED: &str =
    "nobody owes a model call there: search from a line where one does, or say something first";

/// Result of an act: `Ok` if its line is written or it is offered to a branch, otherwise why it is refused.
pub(super) type Acted = Result<(), String>;

/// A branch that a person asks for.
pub(super) struct ToBegin<'a> {
    /// The branch from which it is forked.
    pub(super) from: Id,
    /// The line where it begins; `None` means the last commit of that branch.
    pub(super) at: Option<Line>,
    pub(super) opened: Opened,
    /// The branch that is adopted by this branch.
    pub(super) adopts: Option<Id>,
    /// Plan, as JSON, of the search that begins on it.
    pub(super) searches: Option<&'a str>,
}

impl ToBegin<'_> {
    pub(super) fn new(from: Id, at: Option<Line>, opened: Opened) -> Self {
        Self {
            from,
            at,
            opened,
            adopts: None,
            searches: None,
        }
    }
}

impl Job<'_, '_> {
    /// Carries out a request of the machine about branches.
    pub(super) fn take_request(&mut self, draft: &mut Draft, id: Id, request: Request) {
        match request {
            Request::Open {
                branch,
                scope,
                call,
                index,
                of,
                say: _,
                dry,
            } => {
                let known = self.d.ledger.branch(branch);
                let from = known.and_then(|b| b.from);
                let began = known.is_some_and(|b| Some(b.commit) != from.map(|(_, at)| at));
                if began || known.is_some_and(|b| b.superseded.is_some()) {
                    return;
                }
                let at = from.map_or(draft.n, |(_, at)| at);
                if from.is_none() {
                    draft.ledger.push(LedgerEntry::Opened {
                        branch,
                        from: id,
                        at,
                    });
                }
                let opened = Opened {
                    scope: Some(scope),
                    dry,
                    fork: Some((scope, call, index, of)),
                    ..Opened::default()
                };
                self.d.branches.asks_to_open(ToOpen {
                    branch,
                    from: id,
                    at,
                    opened,
                });
            }
            Request::Adopt { call, branch, at } => {
                // After a rewind to a line before the adoption, the machine asks for it again. It repeats no real effect, because
                // the ledger knows their outcomes.
                let open = self.d.branches.live().get(&id).and_then(|b| {
                    let open = b.snapshot.call(call.0, call.1)?;
                    open.closed.is_none().then_some(())
                });
                if open.is_some() {
                    self.d.branches.asks_to_adopt(ToAdopt {
                        target: id,
                        call,
                        branch,
                        at,
                    });
                }
            }
            Request::Supersede { branches } => {
                for branch in branches {
                    if branch != self.d.ledger.current && !self.is_awaited(branch, id) {
                        self.supersede(draft, branch, None);
                    }
                }
            }
        }
    }

    /// Returns true if a call of a branch other than `but` waits for `branch`.
    pub(super) fn is_awaited(&self, branch: Id, but: Id) -> bool {
        self.d
            .branches
            .live()
            .iter()
            .any(|(id, b)| *id != but && awaits(&b.snapshot, branch))
    }

    /// Ends the ticks of a branch. Attempts that may change the world go on; the ledger notes their outcome.
    pub(super) fn supersede(&mut self, draft: &mut Draft, id: Id, after: Option<Line>) {
        let Some(branch) = self.d.branches.live().get(&id) else {
            return;
        };
        let after = after.unwrap_or(branch.snapshot.line);
        draft
            .ledger
            .push(LedgerEntry::Superseded { branch: id, after });
        self.d.branches.leaves(id);
    }

    /// Takes back the event waits of branches that this line supersedes, so that no event is delivered to a branch
    /// that does not take it.
    pub(super) fn take_back_waits(&self, draft: &mut Draft) {
        let left = draft.ledger.iter().filter_map(|entry| match entry {
            LedgerEntry::Superseded { branch, .. } => Some(*branch),
            _ => None,
        });
        let left: Vec<Id> = left.collect();
        // Most lines supersede no branch, and thousands of effects may be out.
        if left.is_empty() {
            return;
        }
        for out in self.d.effects.outs().values() {
            if left.contains(&out.branch) {
                Self::quit_waiting(draft, out);
            }
        }
    }

    /// Removes a superseded branch from memory.
    pub(super) fn forget_branch(&mut self, id: Id) -> Result<(), Stop> {
        self.d.branches.may_have_ended();
        let mut draft = self.draft(id);
        let outs: Vec<Id> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(_, out)| out.branch == id)
            .map(|(effect, _)| *effect)
            .collect();
        for effect in outs {
            // A tool that may change the world is not cut: the ledger keeps its outcome.
            self.end_effect(&mut draft, effect, false);
        }
        // Offers to the branch that no tick has read.
        let offers = self.d.branches.take_if(id, |_| true);
        for mut offer in offers.unwrap_or_default() {
            for unheard in std::mem::take(&mut offer.drops) {
                self.left_over(&mut draft, unheard)?;
            }
            self.left_over(&mut draft, offer)?;
        }
        self.write(draft)?;
        if self.d.branches.forgets(id) {
            self.retry_queued();
        }
        Ok(())
    }

    /// Opens a branch that an agent asked for.
    pub(super) fn open_asked(&mut self, open: ToOpen) -> Result<(), Stop> {
        let snapshot = self.snapshot_at(open.from, open.at)?;
        let hash = self.hash_at(open.at)?;
        let mut base = snapshot.clone();
        base.branch = open.branch;
        let (at, since) = ((open.at, hash), Since::default());
        self.d
            .branches
            .begins(open.branch, snapshot, at, None, Some(base), since);
        let what = What::Offer(Box::new(Offered::Opened(open.opened)));
        self.offer(open.branch, Offer::new(what));
        Ok(())
    }

    /// Offers the adoption of a branch that a fork call chose.
    pub(super) fn adopt_chosen(&mut self, adopt: ToAdopt) -> Result<(), Stop> {
        let ToAdopt {
            target,
            call,
            branch,
            at,
        } = adopt;
        if let Err(why) = self.offer_adoption(target, Some(call), branch, Some(at), None)? {
            let why = why.into();
            let refused = Offered::NotAdopted { call, branch, why };
            self.offer(target, Offer::new(What::Offer(Box::new(refused))));
        }
        Ok(())
    }

    /// Returns the snapshot of a branch after a line: from memory if the branch has ticks and is at that line, otherwise from
    /// disk.
    pub(super) fn snapshot_at(&mut self, id: Id, at: Line) -> Result<Snapshot, Stop> {
        if let Some(branch) = self.d.branches.live().get(&id)
            && branch.snapshot.line == at
        {
            return Ok(branch.snapshot.clone());
        }
        self.catch_up(at)?;
        match self.wants(Want::Snapshot(at))? {
            Answered::Snapshot(loaded) => Ok(loaded.snapshot.clone()),
            _ => unreachable!("an answer is of the kind that was asked for"),
        }
    }

    pub(super) fn hash_at(
        &mut self,
        at: Line,
    ) -> Result<steersman_machine::stored::codec::Hash, Stop> {
        let known = self.d.ledger.branches().find(|(_, b)| b.head == at);
        if let Some(hash) = known.and_then(|(_, branch)| branch.hash) {
            return Ok(hash);
        }
        self.catch_up(at)?;
        match self.wants(Want::Hash(at))? {
            Answered::Hash(hash) => Ok(*hash),
            _ => unreachable!("an answer is of the kind that was asked for"),
        }
    }

    /// Stops the job until a line is on disk and can be read.
    pub(super) fn catch_up(&mut self, at: Line) -> Result<(), Stop> {
        if self.seen.durable < at && !self.is_idle() {
            self.wants(Want::Durable(at))?;
        }
        Ok(())
    }

    /// Returns the last commit at or before a line on a branch's path; `None` if the line is not on it.
    pub(super) fn commit_at(&mut self, id: Id, at: Line) -> Result<Option<Line>, Stop> {
        let mut at = at;
        if at > self.d.who.last() || !self.is_there(at)? {
            return Ok(None);
        }
        while at.is_some() {
            let line = self.seen.past.line(at)?;
            if !self.d.ledger.on_path(id, line.branch, at) {
                return Ok(None);
            }
            if line.commit.is_some() {
                return Ok(Some(at));
            }
            at = line.prev;
        }
        Ok(None)
    }

    /// Returns true if a line exists: each owner leaves out numbers that the one before may have used.
    fn is_there(&mut self, at: Line) -> Result<bool, Stop> {
        if self.seen.past.has_line(at) || at > self.seen.durable {
            return Ok(true);
        }
        match self.wants(Want::There(at))? {
            Answered::There(is_there) => Ok(*is_there),
            _ => unreachable!("an answer is of the kind that was asked for"),
        }
    }

    // ---- acts of people

    pub(super) fn fork(
        &mut self,
        message: &InboxMessage,
        branch: Option<Id>,
        at: Option<Line>,
        label: Option<Name>,
        say: Option<String>,
        live: bool,
    ) -> Result<Acted, Stop> {
        let from = branch.unwrap_or(self.d.ledger.current);
        if let Some(why) = taken_label(&self.d.ledger, label.as_ref()) {
            return Ok(Err(why));
        }
        let opened = Opened {
            dry: !live,
            label,
            say: say.map(|text| said(message, text)),
            ..Opened::default()
        };
        self.open_by_person(message, ToBegin::new(from, at, opened))
    }

    pub(super) fn rewind(
        &mut self,
        message: &InboxMessage,
        branch: Option<Id>,
        at: Line,
        label: Option<Name>,
        say: Option<String>,
    ) -> Result<Acted, Stop> {
        let from = branch.unwrap_or(self.d.ledger.current);
        let taken = taken_label(&self.d.ledger, label.as_ref());
        if let Some(why) = taken.or_else(|| searched(&self.d.ledger, from)) {
            return Ok(Err(why));
        }
        let opened = Opened {
            rewound: true,
            label,
            say: say.map(|text| said(message, text)),
            ..Opened::default()
        };
        self.open_by_person(message, ToBegin::new(from, Some(at), opened))
    }

    /// Opens a branch that a person asks for.
    pub(super) fn open_by_person(
        &mut self,
        message: &InboxMessage,
        begin: ToBegin<'_>,
    ) -> Result<Acted, Stop> {
        let ToBegin {
            from,
            at,
            mut opened,
            adopts,
            searches,
        } = begin;
        let Some(known) = self.d.ledger.branch(from) else {
            return Ok(Err(format!("there is no branch {from}")));
        };
        let at = at.unwrap_or(known.commit);
        let Some(at) = self.commit_at(from, at)? else {
            return Ok(Err(format!(
                "line {at} is not on the path of branch {from}"
            )));
        };
        let mut snapshot = self.snapshot_at(from, at)?;
        if opened.rewound && snapshot.scope.is_some() {
            return Ok(Err(not_all_act(from)));
        }
        if let Some(line) = snapshot.first_simulated.filter(|_| !opened.dry) {
            let before = self.seen.past.line(line)?.prev;
            return Ok(Err(format!(
                "an effect is simulated at line {line}, so nothing from there on really happened; begin at line {before}"
            )));
        }
        let hash = self.hash_at(at)?;
        if let Err(why) = self.carried_over(&snapshot)? {
            return Ok(Err(why));
        }
        if let Err(why) = self.keep_tools_of(&snapshot)? {
            return Ok(Err(why));
        }
        // Values may have been bound again since that line: all branches that have ticks run under one binding.
        let mut live = self.d.branches.live().values();
        let bound = live.find_map(|branch| branch.snapshot.binding.clone());
        let rebound = bound.filter(|bound| snapshot.binding.as_ref() != Some(bound));
        if rebound.is_some() {
            snapshot.binding.clone_from(&rebound);
        }
        opened.known = self.known_of(&snapshot)?;
        let (rewound, say) = (opened.rewound, opened.say.clone());
        let (line, now) = (self.d.who.next(), self.now(from));
        let offered = [Offered::Opened(opened)];
        let mut step = self.ticked(snapshot.clone(), line, now, &offered)?;
        if step.commit.is_none() {
            return Ok(Err(why_not(&step)));
        }
        if searches.is_some() && !Self::owes_block(&step.snapshot) {
            return Ok(Err(NOTHING_OWED.to_owned()));
        }
        if let (Some(bound), Some(commit)) = (rebound, &mut step.commit) {
            commit.binding = Some((*bound).clone());
        }
        let id = step.snapshot.branch;
        if let Some(said) = say.filter(|_| !step.left.is_empty())
            && let Err(full) = self.say_later(id, &said)?
        {
            return Ok(Err(full));
        }
        let label = step
            .commit
            .as_ref()
            .and_then(|c| c.opening.as_ref()?.label.clone());
        let (now, since) = (step.snapshot.clone(), Since::default());
        self.d
            .branches
            .begins(id, now, (at, hash), label, Some(snapshot), since);
        let mut draft = Draft::of(line, id, &mut step);
        draft.urgent = true;
        self.note_opened(&mut draft, (id, from, at), rewound);
        if let Some(branch) = adopts {
            draft.ledger.push(LedgerEntry::Adopted { branch, at });
        }
        if let Some(plan) = searches {
            self.roots_search(&mut draft, id, plan);
        }
        self.accepted(&mut draft, message);
        self.finish_step(id, step, draft)?;
        Ok(Ok(()))
    }

    /// Adds the ledger entries of a new branch: its origin, and for a rewind the branches that it supersedes and their effects in
    /// the world.
    fn note_opened(&mut self, draft: &mut Draft, (id, from, at): (Id, Id, Line), rewound: bool) {
        let left = if rewound {
            self.left_by(from, at)
        } else {
            Vec::new()
        };
        for (branch, after) in &left {
            self.supersede(draft, *branch, Some(*after));
        }
        draft.ledger.push(LedgerEntry::Opened {
            branch: id,
            from,
            at,
        });
        if rewound {
            draft.ledger.push(LedgerEntry::Current(id));
            for (branch, after) in left {
                for effect in self.abandoned(branch, after) {
                    draft.ledger.push(LedgerEntry::Listed(effect));
                }
            }
        }
    }

    /// Puts a message that a new branch could not take with its first line into the inbox, under an id of its own, so that no
    /// crash loses it. Returns the reason if the inbox has no room.
    fn say_later(&mut self, branch: Id, said: &Said) -> Result<Result<(), String>, Stop> {
        let text = Wanted::say(said.text.to_string());
        let message = text.by(said.by.clone()).on(Some(branch));
        let id: Name = if said.id.len() < ID / 2 {
            format!("{}/{branch}", said.id).into()
        } else {
            format!("{}/{branch}", Digest::of(said.id.as_bytes())).into()
        };
        if let Err(full) = self.put(id, message)? {
            return Ok(Err(full));
        }
        self.d.mail.look();
        Ok(Ok(()))
    }

    /// Returns what the ledger knows of the effects that were out in a snapshot and may have touched the world.
    pub(super) fn known_of(&self, snapshot: &Snapshot) -> Result<Known, Stop> {
        let mut known = Known::new();
        for id in snapshot.effects.keys() {
            let Some(open) = snapshot.call_of(*id) else {
                continue;
            };
            if let Target::Tool(class) = open.call.target
                && !class.is_free()
            {
                known.push((*id, self.fact(*id)?));
            }
        }
        Ok(known)
    }

    pub(super) fn adopt(
        &mut self,
        message: &InboxMessage,
        branch: Id,
        at: Option<Line>,
    ) -> Result<Acted, Stop> {
        let Some(known) = self.d.ledger.branch(branch) else {
            return Ok(Err(format!("there is no branch {branch}")));
        };
        if let Some(why) = searched(&self.d.ledger, branch) {
            return Ok(Err(why));
        }
        if known.opening.as_ref().is_none_or(|o| o.scope.is_none()) {
            return self.choose(message, branch, at);
        }
        let target = self.d.ledger.current;
        self.offer_adoption(target, None, branch, at, Some(message))
    }

    fn offer_adoption(
        &mut self,
        target: Id,
        call: Option<(Id, Id)>,
        branch: Id,
        at: Option<Line>,
        message: Option<&InboxMessage>,
    ) -> Result<Acted, Stop> {
        let Some(known) = self.d.ledger.branch(branch).cloned() else {
            return Ok(Err(format!("there is no branch {branch}")));
        };
        let at = at.unwrap_or(known.commit);
        let (branch, at) = self.adopted_from(branch, at, target)?;
        let Some(at) = self.commit_at(branch, at)? else {
            return Ok(Err(format!(
                "line {at} is not on the path of branch {branch}"
            )));
        };
        let from = self.as_branch_of(target, branch, at)?;
        if let Some(here) = self
            .d
            .branches
            .live()
            .get(&target)
            .filter(|_| message.is_some())
            && let Some(why) = not_adoptable(&self.d.ledger, &here.snapshot, &from)
        {
            return Ok(Err(why));
        }
        let offered = Offered::Adopt {
            call,
            branch,
            at,
            known: self.known_of(&from)?,
            from: Box::new(from),
        };
        let mut offer = Offer::new(What::Offer(Box::new(offered)));
        offer.message = message.cloned();
        offer.notes.push(Note::Adopted(branch, at));
        self.offer(target, offer);
        Ok(Ok(()))
    }

    // ---- ends

    /// Records the end of a branch whose top agent rests, and settles escrow.
    pub(super) fn ended(&mut self, draft: &mut Draft, id: Id) {
        if id != Id::MAIN {
            draft.ledger.push(LedgerEntry::Ended(id));
        }
        draft.urgent = true;
        self.settle_escrow(draft);
    }

    /// Offers the ends of branches to calls that wait for them, once enough branches have ended.
    pub(super) fn offer_ends(&mut self) -> Result<(), Stop> {
        let (mut waiting, mut over) = (Vec::new(), Vec::new());
        for (id, branch) in self.d.branches.live() {
            let offered = |call: (Id, Id)| {
                branch.offers.iter().any(|offer| match &offer.what {
                    What::Offer(o) => {
                        matches!(&**o, Offered::Ended { call: c, .. } if *c == call)
                    }
                    _ => false,
                })
            };
            if !branch.snapshot.forks.is_empty() {
                let waits = self.ask(|cx| awaited(cx, &branch.snapshot))?.into_iter();
                waiting.extend(waits.filter(|w| !offered(w.call)).map(|w| (*id, w)));
            }
            if branch.snapshot.waits.is_empty() {
                continue;
            }
            for waits in self.ask(|cx| for_branches(cx, &branch.snapshot))? {
                let met = waits.met(&self.forked_from(*id));
                if let Some(branches) = met.filter(|_| !offered(waits.call)) {
                    over.push((*id, waits.call, branches));
                }
            }
        }
        for (id, waits) in waiting {
            if let Some(ends) = self.met(&waits)? {
                let call = waits.call;
                let offered = Offered::Ended { call, ends };
                self.offer(id, Offer::new(What::Offer(Box::new(offered))));
            }
        }
        for (id, call, branches) in over {
            let ends = self.ends_of(&branches)?;
            let offered = Offered::Ended { call, ends };
            self.offer(id, Offer::new(What::Offer(Box::new(offered))));
        }
        Ok(())
    }

    /// Returns the ends for a call that waits for branches, if the call's condition is decided: met, or impossible to meet.
    fn met(&mut self, waits: &Awaited) -> Result<Option<Vec<BranchEnd>>, Stop> {
        let over = waits.branches.iter().filter(|b| self.is_over(**b)).count();
        // The ends are read only where they may decide.
        if over == 0 || (waits.on == JoinOn::All && over < waits.branches.len()) {
            return Ok(None);
        }
        let ends = self.ends_of(&waits.branches)?;
        let stands = Stands::of(&waits.on, waits.branches.len(), &ends);
        Ok((stands != Stands::Open).then_some(ends))
    }

    fn ends_of(&mut self, branches: &[Id]) -> Result<Vec<BranchEnd>, Stop> {
        let mut ends = Vec::new();
        for branch in branches {
            ends.extend(self.end_of(*branch)?);
        }
        Ok(ends)
    }

    /// Returns the branches that were forked from this one, each with true if it is over. Superseded branches do not count.
    fn forked_from(&self, id: Id) -> Vec<(Id, bool)> {
        let branches = self.d.ledger.branches();
        let forked = branches.filter(|(_, known)| {
            known.superseded.is_none() && known.from.is_some_and(|(from, _)| from == id)
        });
        forked
            .map(|(branch, _)| (branch, self.is_over(branch)))
            .collect()
    }

    /// Returns true if the top agent of a branch rests, also before its first message, or if the branch was superseded.
    fn is_over(&self, id: Id) -> bool {
        let Some(known) = self.d.ledger.branch(id) else {
            return false;
        };
        let rests = |snapshot: &Snapshot| {
            let top = snapshot.top().map(|top| snapshot.agent(top).phase);
            top == Some(Phase::Resting)
        };
        let live = self.d.branches.live().get(&id);
        known.superseded.is_some() || live.is_some_and(|branch| rests(&branch.snapshot))
    }

    /// Returns the end of a branch that is over: that of its top agent, or `Cancelled` if it was superseded before.
    fn end_of(&mut self, id: Id) -> Result<Option<BranchEnd>, Stop> {
        let Some(known) = self
            .d
            .ledger
            .branch(id)
            .cloned()
            .filter(|_| self.is_over(id))
        else {
            return Ok(None);
        };
        let snapshot = match self.d.branches.live().get(&id) {
            Some(branch) => branch.snapshot.clone(),
            None => self.snapshot_at(id, known.commit)?,
        };
        let top = snapshot.top().map(|top| snapshot.agent(top));
        let top = top.filter(|top| top.phase == Phase::Resting);
        let (end, cause) = match top {
            Some(top) => top.turn.ended.unwrap_or((End::Turn, Cause::Answer)),
            None => (End::Task, Cause::Cancelled),
        };
        Ok(Some(BranchEnd {
            branch: id,
            label: known.opening.as_ref().and_then(|o| o.label.clone()),
            at: snapshot.line,
            answer: top
                .and_then(|top| top.turn.answer)
                .map(|body| self.seen.past.text(body)),
            end,
            cause,
        }))
    }
}

/// Returns a message to the agent that has the floor.
pub(super) fn said(message: &InboxMessage, text: String) -> Said {
    Said {
        id: message.id.clone(),
        text: text.into(),
        to: None,
        by: By::default(),
        sender: None,
        came: Vec::new(),
        sets: Vec::new(),
    }
}

/// Reads entries of state with their JSON values.
pub(super) fn sets(state: Vec<(Name, Option<String>)>) -> Result<Vec<NewWrite>, String> {
    let read = |(name, value): (Name, Option<String>)| {
        let value = value.map(|value| steersman_machine::values::json::read(&value));
        Ok(NewWrite {
            value: value
                .transpose()
                .map_err(|e| format!("state.{name}: {e}"))?,
            name: name.to_string(),
            seal: false,
        })
    };
    state.into_iter().map(read).collect()
}

/// Returns the reason why a branch cannot begin somewhere.
fn why_not(step: &Step) -> String {
    let why = step.left.first().map(|(_, until)| match until {
        Until::Refused(why) => why.to_string(),
        _ => "it cannot begin there now".to_owned(),
    });
    why.unwrap_or_default()
}
