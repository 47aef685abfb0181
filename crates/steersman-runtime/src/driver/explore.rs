//! Search over branches: branches are opened at the nodes of a tree, run for one block each, wait there, and are judged.
//!
//! The machine plans the next step ([`steersman_machine::search`]) from the search entries of the log, in rounds: it plans again
//! when all running branches have stopped. So an owner that takes the session over makes the same plan, finds the branches that
//! are already open, and goes on. A branch waits at its next model call: the call is wished and does not begin. The model call of
//! an agent that answers by a search waits likewise, until a branch is adopted or the agent answers without the search.

mod acts;
mod judge;

use super::branches::Acted;
use super::draft::{Draft, Note, Offer};
use super::parts::{Part, Searches, Todo};
use super::{Do, Job, OutState, Stop, What};
use crate::branches::not_adoptable;
use crate::ledger::{Search, answers};
use crate::load::Since;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use steersman_machine::network::search::Plan;
use steersman_machine::search;
use steersman_machine::search::{Cost, Next, Run, Why};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::{LedgerEntry, Searching, Want};
use steersman_machine::stored::ids::{Bodies, Id, Line};
use steersman_machine::tick::effect::{Offered, Opened, Wish, Work};

/// Reason why an agent answers without its search: the search found nothing.
const NOTHING: &str = "no branch came to anything";

/// Returns the node at which a block begins.
fn begins(run: Run) -> usize {
    match run {
        Run::Open { from, .. } => from,
        Run::On(at) => at,
    }
}

impl Job<'_, '_> {
    // ---- model calls that wait for a search

    /// Returns true if a model call waits for a search: it would begin a block on a branch that is tried, or its agent answers
    /// by a search. In the second case the search begins with this line.
    pub(super) fn is_searched(
        &mut self,
        draft: &mut Draft,
        branch: Id,
        wish: &Wish,
    ) -> Result<bool, Stop> {
        if wish.work != Work::Model || wish.what != Want::Step {
            return Ok(false);
        }
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        if self.d.searches.tries(branch).is_some() {
            return Ok(search::begins_block(snapshot, wish.agent));
        }
        if self.d.searches.is_judge(branch) {
            return Ok(false);
        }
        if let Some(known) = self.d.ledger.search(wish.id) {
            if known.without.is_some() {
                return Ok(false);
            }
            match &known.over {
                None => {}
                Some((Some(_), _)) => self.d.searches.adopts(wish.id),
                Some((None, _)) => return Ok(false),
            }
            return Ok(true);
        }
        let snapshot = snapshot.clone();
        let seed = self.d.bound.values().seed;
        let plan = self.ask(|cx| search::policy(cx, &snapshot, wish.agent).cloned())?;
        let Some(plan) = plan else {
            return Ok(false);
        };
        let plan = Plan {
            seed: plan.seed.or(Some(seed)),
            ..plan
        };
        let plan = draft.body(&plan.to_json().to_string());
        // The commit at which the search begins; `NONE` means that it is in this line. An earlier one is named, so that an owner
        // that takes the session over finds it.
        let at = if wish.id.line() == draft.n {
            Line::NONE
        } else {
            snapshot.line
        };
        draft.ledger.push(LedgerEntry::Search {
            search: wish.id,
            what: Searching::Began {
                agent: Some(wish.agent),
                branch,
                at,
                plan,
            },
        });
        self.d.searches.begins(wish.id);
        Ok(true)
    }

    /// Restores the searches that are not over from the log, at a takeover.
    pub(super) fn find_searches(&mut self) {
        self.d.searches = Searches::default();
        for (id, known) in self.d.ledger.searches() {
            if known.over.is_some() {
                continue;
            }
            self.d.searches.begins(id);
            let root = known.agent.is_none().then_some(&known.branch);
            for branch in known.tried.iter().chain(root) {
                self.d.searches.tries_branch(id, *branch);
            }
            for (branch, _) in &known.judged {
                self.d.searches.judges_on(*branch);
            }
        }
    }

    /// Returns the next search that has something to do.
    pub(super) fn next_search(&self) -> Option<Id> {
        let all = &self.d.searches;
        if self.is_halted() || all.is_empty() {
            return None;
        }
        if let Some(id) = all.next_to_adopt() {
            return Some(id);
        }
        let outs = self.d.effects.outs().values();
        let busy: BTreeSet<Id> = outs
            .filter(|out| !matches!(out.state, OutState::AwaitsSearch))
            .map(|out| out.branch)
            .collect();
        // A message to a branch in the middle of an exchange waits there for the end of the exchange.
        let rests = |branch: &Id| !busy.contains(branch) && !self.d.branches.is_fresh(*branch);
        all.next_due(rests, |id| self.is_unwanted(id))
    }

    /// Returns true if no agent waits for its search any more, because its model call is no longer wished.
    fn is_unwanted(&self, id: Id) -> bool {
        let agents = self.d.ledger.search(id).is_some_and(|s| s.agent.is_some());
        agents && !self.d.effects.outs().contains_key(&id)
    }

    // ---- one step of a search

    /// Writes the results of the round, and begins the next one.
    pub(super) fn explore(&mut self, id: Id) -> Result<(), Stop> {
        match self.d.searches.take_to_adopt(id) {
            Some(Err(why)) => return self.without(id, &why),
            Some(Ok(())) => return self.adopt_found(id),
            None => {}
        }
        let Some(known) = self.d.ledger.search(id) else {
            self.d.searches.ends(id);
            return Ok(());
        };
        if self.is_unwanted(id) {
            return self.end_search(id, None, Why::Cancelled, NOTHING);
        }
        if let Err(why) = self.plan_of(known) {
            return self.end_search(id, None, Why::Cancelled, &why);
        }
        self.note_stood(id)?;
        self.note_judged(id)?;
        // Branches of judges that are over are left behind first.
        self.d.searches.plans(id);
        Ok(())
    }

    /// Plans the next round of a search, or begins the next run of the round.
    pub(super) fn explore_on(&mut self, id: Id) -> Result<(), Stop> {
        if !self.d.searches.take_plan() {
            return self.run_next(id);
        }
        let Some(known) = self.d.ledger.search(id) else {
            return Ok(());
        };
        let plan = match self.plan_of(known) {
            Ok(plan) => plan,
            Err(why) => return self.end_search(id, None, Why::Cancelled, &why),
        };
        let tree = self.d.ledger.tree(known);
        let place = |i: usize| (tree.nodes[i].branch, tree.nodes[i].at);
        let best = || search::best(&tree).map(place);
        if let Some(why) = self.d.searches.stop_of(id) {
            return self.end_search(id, best(), why, NOTHING);
        }
        let next = match self.d.searches.short_of(id) {
            Some(why) => search::cut(&tree, why),
            None => search::next(&plan, &tree),
        };
        let runs = match next {
            Next::Stop(search::Stop { winner, why }) => {
                return self.end_search(id, winner.map(place), why, NOTHING);
            }
            Next::Score(nodes) => {
                let todo = Todo {
                    plan: Arc::new(plan),
                    judged: nodes.into_iter().map(place).collect(),
                    runs: VecDeque::new(),
                    best: None,
                };
                self.d.searches.begins_round(id, todo);
                return Ok(());
            }
            Next::Run(runs) => runs,
        };
        let begun = runs.iter().copied().map(begins).map(place).collect();
        self.d.searches.forget_nodes(id, &begun);
        let todo = Todo {
            plan: Arc::new(plan),
            judged: VecDeque::new(),
            runs: runs.iter().map(|run| (*run, place(begins(*run)))).collect(),
            best: best(),
        };
        self.d.searches.begins_round(id, todo);
        Ok(())
    }

    fn run_next(&mut self, id: Id) -> Result<(), Stop> {
        let Some((plan, best, part)) = self.d.searches.take_part(id) else {
            return Ok(());
        };
        let (run, from) = match part {
            Part::Judge(of) => return self.judge(id, &plan, of),
            Part::Run(run, from) => (run, from),
        };
        let begun = match run {
            Run::On(_) => self.go_on(id, from.0, Some(from.1))?,
            Run::Open { number, .. } => self.try_from(id, &plan, number, from)?,
        };
        match begun {
            Ok(()) => Ok(()),
            Err(why) => self.end_search(id, best, Why::Stopped, &why),
        }
    }

    fn plan_of(&self, known: &Search) -> Result<Plan, String> {
        let text = self.seen.past.text(known.plan);
        let json: Json = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        Plan::read(&json, self.network())
    }

    /// Writes which branches of the round have stopped, in the order of their numbers.
    fn note_stood(&mut self, id: Id) -> Result<(), Stop> {
        let Some(known) = self.d.ledger.search(id) else {
            return Ok(());
        };
        let running = self.d.searches.take_running(id);
        let mut ran: Vec<(u32, Id)> = running
            .into_iter()
            .filter_map(|branch| {
                let (_, number) = self.d.ledger.branch(branch)?.search?;
                Some((number, branch))
            })
            .collect();
        if ran.is_empty() {
            return Ok(());
        }
        ran.sort_unstable();
        let stood = known.stood.iter();
        let last: BTreeMap<Id, Line> = stood.map(|s| (s.branch, s.at)).collect();
        let mut draft = self.draft(known.branch);
        for (_, branch) in ran {
            let Some(at) = self.d.ledger.branch(branch).map(|b| b.commit) else {
                continue;
            };
            let snapshot = self.snapshot_at(branch, at)?;
            let from = self.d.ledger.branch(branch).and_then(|b| b.from);
            let last = last.get(&branch).map(|at| (branch, *at));
            let Some(before) = last.or(from) else {
                continue;
            };
            let (lost, moved) = self.since(branch, before.1)?;
            let Some(over) = self
                .ends_there(branch, &snapshot)
                .filter(|over| moved || *over)
            else {
                continue;
            };
            let before = self.node(id, before)?.0;
            let cost = search::spent_since(&snapshot, &before).plus(lost);
            draft.ledger.push(LedgerEntry::Search {
                search: id,
                what: Searching::Stood {
                    branch,
                    at,
                    over,
                    calls: cost.calls,
                    tokens: cost.tokens,
                    micros: cost.micros,
                },
            });
            if let Some(hash) = self.d.branches.live().get(&branch).map(|b| b.hash) {
                let found = (snapshot, hash);
                self.d.searches.keep_node(id, (branch, at), found);
            }
        }
        self.write(draft)
    }

    /// Returns true if a branch came to its end, false if it waits at the end of a block; `None` if it is in the middle of a
    /// block, because it was cut or may not continue.
    fn ends_there(&self, branch: Id, snapshot: &Snapshot) -> Option<bool> {
        let mut outs = self
            .d
            .effects
            .outs()
            .values()
            .filter(|out| out.branch == branch);
        let ends_block = |out: &super::Out| {
            let stands = matches!(out.state, OutState::AwaitsSearch);
            stands && search::begins_block(snapshot, out.wish.agent)
        };
        match outs.next() {
            None => Some(true),
            Some(out) => (ends_block(out) && outs.all(ends_block)).then_some(false),
        }
    }

    /// Returns the cost of calls that failed on a branch after a line of its path, and true if anything was committed there
    /// since. Answered calls are counted by the machine.
    fn since(&mut self, branch: Id, after: Line) -> Result<(Cost, bool), Stop> {
        let (mut cost, mut moved) = (Cost::default(), false);
        let mut at = self.d.ledger.branch(branch).map_or(after, |b| b.head);
        while at > after {
            let line = self.seen.past.line(at)?;
            if line.branch != branch {
                break;
            }
            for entry in &line.ledger {
                if let LedgerEntry::Spend {
                    effect,
                    tokens,
                    micros,
                } = *entry
                    && !answers(&line, effect)
                {
                    cost = cost.plus(Cost {
                        calls: 1,
                        tokens,
                        micros,
                    });
                }
            }
            let commit = line.commit.as_ref();
            moved |= commit.is_some_and(|commit| commit.opening.is_none());
            at = line.prev;
        }
        Ok((cost, moved))
    }

    /// Ends the search to which a call belongs, because the session has no budget for the call: no person is asked, and the
    /// search ends with its results so far. A call of a tried branch waits; a call of a judge fails. Returns false if the call
    /// belongs to no search.
    pub(super) fn ends_search(&mut self, call: Id, branch: Id, why: Why, used: &str) -> bool {
        let judges = |(_, known): &(Id, &Search)| known.judged.iter().any(|(b, _)| *b == branch);
        let tries = self.d.searches.tries(branch);
        let judged = self.d.ledger.searches().find(judges).map(|(id, _)| id);
        let found = tries.or(judged);
        if !found.is_some_and(|id| self.d.searches.runs_short(id, why)) {
            return false;
        }
        if tries.is_some() {
            self.d.effects.awaits_search(call);
        } else {
            self.fail(call, FailureCode::Limit, used);
        }
        true
    }

    /// Returns the snapshot of a node and the hash of its line.
    fn node(&mut self, id: Id, of: (Id, Line)) -> Result<(Snapshot, Hash), Stop> {
        if let Some(known) = self.d.searches.node(id, of) {
            return Ok(known);
        }
        let snapshot = self.snapshot_at(of.0, of.1)?;
        let hash = self.hash_at(of.1)?;
        let found = (snapshot, hash);
        self.d.searches.keep_node(id, of, found.clone());
        Ok(found)
    }

    /// Begins the model calls at which a branch waits, unless the branch has moved on already.
    fn go_on(&mut self, id: Id, branch: Id, from: Option<Line>) -> Result<Acted, Stop> {
        self.d.searches.runs(id, branch);
        let at = self.d.ledger.branch(branch).map(|b| b.commit);
        if from.is_some() && at != from {
            return Ok(Ok(()));
        }
        let stands: Vec<Id> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(_, out)| out.branch == branch && matches!(out.state, OutState::AwaitsSearch))
            .map(|(effect, _)| *effect)
            .collect();
        self.begin_unsearched(branch, stands)?;
        Ok(Ok(()))
    }

    pub(super) fn begin_unsearched(&mut self, branch: Id, stands: Vec<Id>) -> Result<(), Stop> {
        let mut draft = self.draft(branch);
        for effect in stands {
            // The line that ended its search may have ended the call, too.
            if self.d.effects.out(effect).is_none() {
                continue;
            }
            self.d.effects.readies(effect);
            self.draw_escrow(&mut draft);
            self.d.effects.wakes(effect);
        }
        self.busy();
        self.write(draft)
    }

    /// Opens a branch at a node. A branch that is open already continues if it has not moved yet.
    fn try_from(
        &mut self,
        id: Id,
        plan: &Plan,
        number: u32,
        from: (Id, Line),
    ) -> Result<Acted, Stop> {
        let known = self.d.ledger.search(id);
        let scope = known.and_then(|known| known.agent);
        let opened = known.and_then(|known| known.tried.get(number as usize - 1));
        if let Some(branch) = opened.copied() {
            let (before, _) = self.node(id, from)?;
            let here = self.d.branches.live().get(&branch);
            let since = here.map(|b| search::spent_since(&b.snapshot, &before));
            let begun = since.is_none_or(|since| since.calls > 0);
            let at = if begun { Some(Line::NONE) } else { None };
            return self.go_on(id, branch, at);
        }
        let (snapshot, _) = self.node(id, from)?;
        let of = scope.map(|_| (number, plan.n.max(number)));
        let opened = Opened {
            scope,
            dry: snapshot.dry || !plan.live,
            of,
            ..Opened::default()
        };
        let what = |branch| Searching::Tried { branch, number };
        let branch = match self.open_searched(id, from, opened, what)? {
            Ok(branch) => branch,
            Err(why) => return Ok(Err(why)),
        };
        self.go_on(id, branch, None)
    }

    /// Opens a branch at a node, for the search or for a judging agent.
    fn open_searched(
        &mut self,
        id: Id,
        from: (Id, Line),
        opened: Opened,
        what: impl Fn(Id) -> Searching,
    ) -> Result<Result<Id, String>, Stop> {
        let (mut snapshot, hash) = self.node(id, from)?;
        let judges = opened.judge.is_some();
        let bound = self.d.branches.live().values().next();
        let bound = bound.and_then(|branch| branch.snapshot.binding.clone());
        let rebound = bound.filter(|bound| snapshot.binding.as_ref() != Some(bound));
        if rebound.is_some() {
            snapshot.binding.clone_from(&rebound);
        }
        let opened = Opened {
            known: self.known_of(&snapshot)?,
            ..opened
        };
        let (line, now) = (self.d.who.next(), self.now(from.0).max(snapshot.now));
        let offered = [Offered::Opened(opened)];
        let mut step = self.ticked(snapshot.clone(), line, now, &offered)?;
        let Some(commit) = &mut step.commit else {
            return Ok(Err("a branch cannot begin there".to_owned()));
        };
        if let Some(rebound) = rebound {
            commit.binding = Some((*rebound).clone());
        }
        let branch = step.snapshot.branch;
        if judges {
            self.d.searches.judges_on(branch);
        } else {
            self.d.searches.tries_branch(id, branch);
        }
        let base = Some(snapshot);
        let (snapshot, at) = (step.snapshot.clone(), (from.1, hash));
        let since = Since::default();
        self.d
            .branches
            .begins(branch, snapshot, at, None, base, since);
        let mut draft = Draft::of(line, branch, &mut step);
        draft.ledger.push(LedgerEntry::Opened {
            branch,
            from: from.0,
            at: from.1,
        });
        let what = what(branch);
        draft.ledger.push(LedgerEntry::Search { search: id, what });
        self.finish_step(branch, step, draft)?;
        Ok(Ok(branch))
    }

    // ---- ends

    /// Ends a search: supersedes its branches, and has its agent adopt the winner. Without a winner the agent answers without the
    /// search, for this reason.
    fn end_search(
        &mut self,
        id: Id,
        winner: Option<(Id, Line)>,
        why: Why,
        reason: &str,
    ) -> Result<(), Stop> {
        if self.d.searches.ends(id) {
            self.out.orders.push(Do::CutJudges(id));
        }
        let Some(known) = self.d.ledger.search(id) else {
            return Ok(());
        };
        let (by_person, root) = (known.agent.is_none(), known.branch);
        let judges = known.judged.iter().map(|(branch, _)| *branch);
        let tried = known.tried.iter().copied().chain(judges);
        let all: Vec<Id> = tried.chain(by_person.then_some(root)).collect();
        let waits = self.d.effects.out(id).map(|out| out.branch);
        let waits = waits.filter(|_| !by_person);
        let mut draft = self.draft(root);
        draft.urgent = true;
        draft.ledger.push(LedgerEntry::Search {
            search: id,
            what: Searching::Over {
                winner,
                why: why.word().into(),
            },
        });
        // All in one line: branches that outlive their search would continue outside of it.
        for branch in all {
            self.d.searches.leaves(branch);
            let known = self.d.ledger.branch(branch);
            if known.is_some_and(|b| b.superseded.is_none()) {
                self.supersede(&mut draft, branch, None);
            }
        }
        if winner.is_none() && (by_person || waits.is_some()) {
            let what = Searching::Without(draft.body(reason));
            draft.ledger.push(LedgerEntry::Search { search: id, what });
        }
        self.write(draft)?;
        if waits.is_some() && winner.is_some() {
            self.adopt_found(id)?;
        }
        if let Some(branch) = waits.filter(|_| winner.is_none()) {
            self.d.searches.answers_without(id, branch);
        }
        Ok(())
    }

    /// Offers the winner to the branch whose agent searched.
    fn adopt_found(&mut self, id: Id) -> Result<(), Stop> {
        let known = self.d.ledger.search(id).cloned();
        let found = known.and_then(|known| Some((known.branch, known.over?.0?)));
        let Some((target, (branch, at))) = found else {
            return Ok(());
        };
        let (branch, at) = self.adopted_from(branch, at, target)?;
        let from = self.as_branch_of(target, branch, at)?;
        if let Some(here) = self.d.branches.live().get(&target)
            && let Some(why) = not_adoptable(&self.d.ledger, &here.snapshot, &from)
        {
            return self.without(id, &why);
        }
        let offered = Offered::Adopt {
            call: None,
            branch,
            at,
            known: self.known_of(&from)?,
            from: Box::new(from),
        };
        let mut offer = Offer::new(What::Offer(Box::new(offered)));
        offer.notes.push(Note::Adopted(branch, at));
        self.offer(target, offer);
        Ok(())
    }

    /// Handles a refused adoption into a branch: if a search asked for it, the search's agent answers without the search.
    pub(super) fn not_adopted(&mut self, target: Option<Id>, why: &str) {
        let won = |(id, known): &(Id, &Search)| {
            let over = known.over.is_some() && known.without.is_none();
            over && Some(known.branch) == target && self.d.effects.outs().contains_key(id)
        };
        let found = self.d.ledger.searches().find(won).map(|(id, _)| id);
        if let Some(id) = found {
            self.d.searches.refuses(id, why);
        }
    }

    /// Lets the agent of a search whose winner was not adopted answer without the search.
    fn without(&mut self, id: Id, why: &str) -> Result<(), Stop> {
        let Some(branch) = self.d.effects.out(id).map(|out| out.branch) else {
            return Ok(());
        };
        let mut draft = self.draft(branch);
        let why = draft.body(why);
        draft.ledger.push(LedgerEntry::Search {
            search: id,
            what: Searching::Without(why),
        });
        self.write(draft)?;
        self.begin_unsearched(branch, vec![id])
    }
}
