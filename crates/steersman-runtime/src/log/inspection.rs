//! A session as it is on disk.

use crate::bind::Values;
use crate::inbox::{DecodeError, Message};
use crate::ledger::Ledger;
use crate::log::settled::Settled;
use crate::log::standing;
use crate::pending::{self, Pending};
use crate::store::{InboxMessage, SessionInfo};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::search::reward::Reward;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::Binding;
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Name, Time};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;
use steersman_machine::view::Cx;

/// A session as it is on disk, read without owning it.
pub struct Inspection {
    /// The entry of the session in lists.
    pub info: SessionInfo,
    /// The network that it is bound to. `None` before its first line.
    pub network: Option<Arc<Network>>,
    /// The values that it is bound to.
    pub values: Values,
    /// The branches in the order in which they were opened, `main` first.
    pub branches: Vec<BranchView>,
    /// The current branch, to which messages without a branch go.
    pub current: Id,
    /// Everything that the session waits for, on all branches, oldest first.
    pub pending: Vec<Pending>,
    /// The ledger as of the last line.
    pub ledger: Ledger,
    /// Messages in the inbox that no line has taken, oldest first.
    pub inbox: Vec<InboxMessage>,
    /// Messages in the inbox that this program cannot read, and why. They stay there, and nothing waits for them.
    pub unread: Vec<DecodeError>,
    /// The state of the current branch, as far as the log says.
    pub settled: Settled,
    /// Reads stacks and texts of any branch.
    pub history: Arc<dyn History + Send + Sync>,
}

/// A branch as it is on disk.
#[derive(Clone, Debug)]
pub struct BranchView {
    /// Id of the branch.
    pub id: Id,
    /// Name that people gave the branch.
    pub label: Option<Name>,
    /// The branch and line at which this branch began. `None` for `main`.
    pub from: Option<(Id, Line)>,
    /// Last line of the branch.
    pub head: Line,
    /// True if its top agent rests.
    pub ended: bool,
    /// True if the branch has no more ticks.
    pub superseded: bool,
    /// Snapshot as of the last line.
    pub snapshot: Snapshot,
}

impl Inspection {
    /// Returns the time at which the texts of the session are erased, if it has ended and its definition keeps sessions for a time
    /// only.
    pub fn expires_at(&self) -> Option<Time> {
        let (network, branch) = (self.network.as_ref()?, self.current_branch()?);
        let last = branch.snapshot.now;
        pending::expires_at(network, &self.ledger, &self.info.state, last)
    }

    /// Returns true if a decision lies in the inbox: the next owner takes it, and then the session stands otherwise.
    pub fn is_decided(&self) -> bool {
        let mut read = self.inbox.iter().filter_map(|m| Message::decode(m).ok());
        read.any(|message| message.wanted.is_decision())
    }

    /// Returns the current branch, to which messages without a branch go.
    pub fn current_branch(&self) -> Option<&BranchView> {
        self.branches.iter().find(|b| b.id == self.current)
    }

    /// Returns the stack of an agent on a branch, oldest first, with the line of each push.
    pub fn stack(&self, branch: &BranchView, agent: Id) -> Vec<(Line, Interaction)> {
        let mut stack = Vec::new();
        let mut at = branch
            .snapshot
            .agents
            .get(&agent)
            .map_or(Line::NONE, |a| a.stack.last);
        while at.is_some() {
            let (pushes, before) = self.history.pushes(agent, at);
            stack.extend(pushes.iter().rev().map(|p| (at, p.clone())));
            at = before;
        }
        stack.reverse();
        stack
    }

    /// Returns the state of one branch, as far as the log says. For the current branch see [`Inspection::settled`].
    pub fn settled_on(&self, branch: &BranchView) -> Settled {
        let Some(network) = &self.network else {
            return Settled::Empty;
        };
        let here = self.pending.iter().filter(|p| p.branch == branch.id);
        standing::settled(
            network,
            &self.ledger,
            &branch.snapshot,
            here.cloned().collect(),
            &*self.history,
        )
    }

    /// Returns the binding that all branches with ticks share. `None` before the session has begun.
    pub fn binding(&self) -> Option<&Arc<Binding>> {
        let mut live = self.branches.iter().filter(|branch| !branch.superseded);
        live.find_map(|branch| branch.snapshot.binding.as_ref())
    }

    /// Returns the outcome of a branch, as `outcome:` of the definition declares it: a JSON object. Values that fail are left
    /// out.
    pub fn outcome_on(&self, branch: &BranchView) -> Json {
        let Some(network) = &self.network else {
            return Json::Null;
        };
        let cx = Cx {
            network,
            bodies: &Texts(self),
        };
        standing::outcome(&cx, &branch.snapshot)
    }

    /// Returns the value of a branch by a [`Reward`].
    ///
    /// # Errors
    /// The reason why it is not a number, in words for people.
    pub fn reward_on(&self, branch: &BranchView, reward: &Reward) -> Result<f64, String> {
        let Some(network) = &self.network else {
            return Err("this session has not begun".to_owned());
        };
        let cx = Cx {
            network,
            bodies: &Texts(self),
        };
        reward.of(&cx, &branch.snapshot, &self.outcome_on(branch))
    }
}

/// The texts of an inspected session.
struct Texts<'a>(&'a Inspection);

impl Bodies for Texts<'_> {
    fn parts(&self, body: Body) -> Parts {
        self.0.history.parts(body)
    }
}
