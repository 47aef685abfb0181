//! The searches over branches that have something to do, as far as the log does not say it.

mod nodes;

use nodes::Nodes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use steersman_machine::network::search::Plan;
use steersman_machine::search::{Run, Why};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::ids::{Id, Line};

/// A node of a search: a branch, and a line of it.
pub(crate) type Node = (Id, Line);

/// All searches of a session that have something to do. The log says everything else: an owner that takes the session over plans
/// the same.
///
/// Invariants, which [`Searches::recount`] checks: a branch is tried by a search that is not over; a round that is here has something left
/// to begin; a search whose winner was refused is still to adopt.
#[derive(Clone, Default)]
pub(crate) struct Searches {
    /// Searches that are not over.
    open: BTreeMap<Id, Exploring>,
    /// Branches that these searches try, and their roots, each with its search.
    tried: BTreeMap<Id, Id>,
    /// Branches on which an agent judges.
    judges: BTreeSet<Id>,
    /// Searches that are over and whose winner has still to be adopted.
    to_adopt: BTreeSet<Id>,
    /// Searches whose winner could not be adopted, with the reason.
    refused: BTreeMap<Id, String>,
    /// The search whose next round is planned before anything else.
    plans: Option<Id>,
    /// Calls of agents that answer without their search, with their branches.
    unsearched: VecDeque<(Id, Id)>,
}

/// A search that is not over, with the data that its owner has in addition to the log.
#[derive(Clone, Default)]
struct Exploring {
    /// Branches that run in this round.
    running: BTreeSet<Id>,
    /// Nodes that are being judged.
    judging: BTreeMap<Node, Judging>,
    /// Snapshots and line hashes of nodes: new branches begin there. Other nodes are read from disk.
    nodes: Nodes,
    /// Branches that the round has still to begin or to continue.
    todo: Option<Todo>,
    /// Set if the search must end, to the reason.
    stop: Option<Why>,
    /// Set if no more model calls may begin, for this reason: the search ends when all running branches have stopped.
    short: Option<Why>,
}

/// The rest of a round: each part is a job of its own.
#[derive(Clone)]
pub(crate) struct Todo {
    pub(crate) plan: Arc<Plan>,
    /// The nodes that are still to be judged.
    pub(crate) judged: VecDeque<Node>,
    /// The runs, the next one first, each with the node from which it begins.
    pub(crate) runs: VecDeque<(Run, Node)>,
    /// The best node before the round.
    pub(crate) best: Option<Node>,
}

/// A part of a round.
pub(crate) enum Part {
    Judge(Node),
    Run(Run, Node),
}

/// State of the judgement of a node.
#[derive(Clone)]
pub(crate) enum Judging {
    /// A tool computes the score.
    Tool,
    /// An agent judges on this branch.
    Agent(Id),
    /// The score, or the reason why there is none.
    Known(Result<f64, String>),
}

impl Todo {
    fn is_empty(&self) -> bool {
        self.judged.is_empty() && self.runs.is_empty()
    }
}

impl Exploring {
    /// Returns true if something is to be done for the search: it must end, or everything of its round rests.
    fn is_due(&self, rests: &impl Fn(&Id) -> bool) -> bool {
        let is_over = |judging: &Judging| match judging {
            Judging::Tool => false,
            Judging::Agent(branch) => rests(branch),
            Judging::Known(_) => true,
        };
        self.stop.is_some()
            || (self.judging.values().all(is_over) && self.running.iter().all(rests))
    }

    fn runs_judges(&self) -> usize {
        let runs = |judging: &&Judging| matches!(judging, Judging::Tool);
        self.judging.values().filter(runs).count()
    }
}

/// Looks.
impl Searches {
    /// Returns the search that tries a branch.
    pub(crate) fn tries(&self, branch: Id) -> Option<Id> {
        self.tried.get(&branch).copied()
    }

    /// Returns true if an agent judges on a branch.
    pub(crate) fn is_judge(&self, branch: Id) -> bool {
        self.judges.contains(&branch)
    }

    /// Returns the search that goes on before anything else.
    pub(crate) fn goes_on(&self) -> Option<Id> {
        let runs = |(id, open): (&Id, &Exploring)| open.todo.as_ref().map(|_| *id);
        self.plans.or_else(|| self.open.iter().find_map(runs))
    }

    pub(crate) fn has_unsearched(&self) -> bool {
        !self.unsearched.is_empty()
    }

    /// Returns the number of tools that judge now.
    pub(crate) fn judging(&self) -> usize {
        self.open.values().map(Exploring::runs_judges).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.to_adopt.is_empty()
    }

    /// Returns the next search whose winner is to be adopted, or was refused.
    pub(crate) fn next_to_adopt(&self) -> Option<Id> {
        self.to_adopt.first().copied()
    }

    /// Returns the next search for which something is to be done. `rests`: a branch does nothing; `unwanted`: nobody waits for a search.
    pub(crate) fn next_due(
        &self,
        rests: impl Fn(&Id) -> bool,
        unwanted: impl Fn(Id) -> bool,
    ) -> Option<Id> {
        let due = |(id, open): &(&Id, &Exploring)| unwanted(**id) || open.is_due(&rests);
        self.open.iter().find(due).map(|(id, _)| *id)
    }

    /// Returns the reason why a search must end.
    pub(crate) fn stop_of(&self, id: Id) -> Option<Why> {
        self.open.get(&id)?.stop
    }

    /// Returns the reason why no more model calls of a search may begin.
    pub(crate) fn short_of(&self, id: Id) -> Option<Why> {
        self.open.get(&id)?.short
    }
}

/// Searches begin and end.
impl Searches {
    /// A search begins, or is found in the log.
    pub(crate) fn begins(&mut self, id: Id) {
        self.open.insert(id, Exploring::default());
    }

    /// A search tries a branch, or begins at it.
    pub(crate) fn tries_branch(&mut self, id: Id, branch: Id) {
        self.tried.insert(branch, id);
    }

    /// An agent judges on a branch.
    pub(crate) fn judges_on(&mut self, branch: Id) {
        self.judges.insert(branch);
    }

    /// A search is over. Returns false if it was over before.
    pub(crate) fn ends(&mut self, id: Id) -> bool {
        self.open.remove(&id).is_some()
    }

    /// No search tries a branch or judges on it any more.
    pub(crate) fn leaves(&mut self, branch: Id) {
        self.tried.remove(&branch);
        self.judges.remove(&branch);
    }

    /// A person ends searches with their best results so far; `None` means all. Returns false if there is none.
    pub(crate) fn stop(&mut self, of: Option<Id>, why: Why) -> bool {
        let open = self.open.iter_mut();
        let mut wanted = open
            .filter(|(id, _)| of.is_none_or(|of| of == **id))
            .peekable();
        let any = wanted.peek().is_some();
        wanted.for_each(|(_, open)| open.stop = Some(why));
        any
    }

    /// No more model calls of a search may begin. Returns false if it is over.
    pub(crate) fn runs_short(&mut self, id: Id, why: Why) -> bool {
        let open = self.open.get_mut(&id);
        open.map(|open| open.short = Some(why)).is_some()
    }

    /// The winner of a search is to be adopted.
    pub(crate) fn adopts(&mut self, id: Id) {
        self.to_adopt.insert(id);
    }

    /// The winner of a search could not be adopted.
    pub(crate) fn refuses(&mut self, id: Id, why: &str) {
        self.to_adopt.insert(id);
        self.refused.insert(id, why.to_owned());
    }

    /// Takes a search whose winner is to be adopted, or was refused, with the reason.
    pub(crate) fn take_to_adopt(&mut self, id: Id) -> Option<Result<(), String>> {
        let is_to_adopt = self.to_adopt.remove(&id);
        is_to_adopt.then(|| self.refused.remove(&id).map_or(Ok(()), Err))
    }

    /// The agent that waits on a branch answers without its search.
    pub(crate) fn answers_without(&mut self, id: Id, branch: Id) {
        self.unsearched.push_back((branch, id));
    }

    pub(crate) fn take_unsearched(&mut self) -> Option<(Id, Id)> {
        self.unsearched.pop_front()
    }
}

/// Rounds.
impl Searches {
    /// The next round of a search is planned before anything else.
    pub(crate) fn plans(&mut self, id: Id) {
        self.plans = Some(id);
    }

    /// Returns true if a round is to be planned; it is planned now.
    pub(crate) fn take_plan(&mut self) -> bool {
        self.plans.take().is_some()
    }

    /// A round of a search was planned.
    pub(crate) fn begins_round(&mut self, id: Id, todo: Todo) {
        if let Some(open) = self.open.get_mut(&id) {
            open.todo = Some(todo).filter(|todo| !todo.is_empty());
        }
    }

    /// Takes the next part of a round, with the plan and the best node before the round.
    pub(crate) fn take_part(&mut self, id: Id) -> Option<(Arc<Plan>, Option<Node>, Part)> {
        let open = self.open.get_mut(&id)?;
        let mut todo = open.todo.take()?;
        let part = match todo.judged.pop_front() {
            Some(of) => Part::Judge(of),
            None => todo
                .runs
                .pop_front()
                .map(|(run, from)| Part::Run(run, from))?,
        };
        let (plan, best) = (todo.plan.clone(), todo.best);
        self.begins_round(id, todo);
        Some((plan, best, part))
    }

    /// A branch runs in this round of a search.
    pub(crate) fn runs(&mut self, id: Id, branch: Id) {
        if let Some(open) = self.open.get_mut(&id) {
            open.running.insert(branch);
        }
    }

    /// Takes the branches that ran in this round.
    pub(crate) fn take_running(&mut self, id: Id) -> BTreeSet<Id> {
        let open = self.open.get_mut(&id);
        open.map_or_else(BTreeSet::new, |open| std::mem::take(&mut open.running))
    }

    /// A node is judged.
    pub(crate) fn judges(&mut self, id: Id, of: Node, judging: Judging) {
        if let Some(open) = self.open.get_mut(&id) {
            open.judging.insert(of, judging);
        }
    }

    /// A tool gave the score of a node, or failed.
    pub(crate) fn judged(&mut self, id: Id, of: Node, worth: Result<f64, String>) {
        let open = self.open.get_mut(&id);
        if let Some(judging) = open.and_then(|open| open.judging.get_mut(&of)) {
            *judging = Judging::Known(worth);
        }
    }

    /// Takes the judgements of a round, once no tool runs any more.
    pub(crate) fn take_judged(&mut self, id: Id) -> BTreeMap<Node, Judging> {
        let open = self.open.get_mut(&id);
        let done = open.filter(|open| open.runs_judges() == 0);
        done.map_or_else(BTreeMap::new, |open| std::mem::take(&mut open.judging))
    }
}

/// Nodes in memory.
impl Searches {
    /// Returns the snapshot of a node and the hash of its line, if they are in memory.
    pub(crate) fn node(&mut self, id: Id, of: Node) -> Option<(Snapshot, Hash)> {
        self.open.get_mut(&id)?.nodes.kept(of)
    }

    pub(crate) fn keep_node(&mut self, id: Id, of: Node, found: (Snapshot, Hash)) {
        if let Some(open) = self.open.get_mut(&id) {
            open.nodes.keep(of, found);
        }
    }

    /// A round begins at these nodes: others are dropped if there are too many.
    pub(crate) fn forget_nodes(&mut self, id: Id, but: &BTreeSet<Node>) {
        if let Some(open) = self.open.get_mut(&id) {
            open.nodes.forget(but);
        }
    }

    /// Checks the invariants. Returns what is wrong.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let gone = |search: &Id| !self.open.contains_key(search);
        if let Some((branch, search)) = self.tried.iter().find(|(_, search)| gone(search)) {
            return Err(format!("{branch} is tried by {search}, which is over"));
        }
        let done = |open: &Exploring| open.todo.as_ref().is_some_and(Todo::is_empty);
        if self.open.values().any(done) {
            return Err("a round is here, and has nothing left".to_owned());
        }
        match self.refused.keys().find(|id| !self.to_adopt.contains(id)) {
            Some(id) => Err(format!("the winner of {id} is refused and not to adopt")),
            None => Ok(()),
        }
    }
}
