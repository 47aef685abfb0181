//! The tool lists that a session follows.

use crate::servers::{Listed, Marks};
use std::collections::BTreeSet;
use steersman_machine::stored::ids::{Id, Name};

/// An open call: its branch, and its key there.
pub(crate) type OpenAt = (Id, (Id, Id));

/// State of the tool lists that a session follows.
///
/// Invariants, which [`Following::recount`] checks: no model call waits, and no answer has come, unless servers are being asked.
#[derive(Clone, Default)]
pub(crate) struct Following {
    /// Mark of each list when its server was last asked; absent before.
    marks: Marks,
    /// Servers are being asked.
    asking: bool,
    /// The answers of the servers. They are applied when no branch has anything new to do: a branch that is about to open has
    /// no line yet that a new binding could follow.
    came: Option<Vec<Listed>>,
    /// Model calls that wait for the answers of servers.
    waiting: BTreeSet<Id>,
    /// Open calls whose tools were kept unchanged, by branch. When one of them is over, the lists are checked again.
    kept: BTreeSet<OpenAt>,
}

impl Following {
    pub(crate) fn is_asking(&self) -> bool {
        self.asking
    }

    pub(crate) fn has_come(&self) -> bool {
        self.came.is_some()
    }

    /// Returns the lists among these that changed, or may have, since their servers were last asked.
    pub(crate) fn stale(&self, marks: Marks) -> Vec<Name> {
        let known = |name: &Name| self.marks.get(name);
        let stale = marks
            .into_iter()
            .filter(|(name, mark)| known(name) != Some(mark));
        stale.map(|(name, _)| name).collect()
    }

    /// If a call is over whose tool was kept unchanged, all lists are checked again.
    pub(crate) fn look_at_kept(&mut self, is_over: impl Fn(&OpenAt) -> bool) {
        if self.kept.iter().any(is_over) {
            self.kept.clear();
            self.marks.clear();
        }
    }

    /// A model call waits for servers, which are being asked.
    pub(crate) fn asks(&mut self, call: Id) {
        self.asking = true;
        self.waiting.insert(call);
    }

    /// Servers answered; their answers are applied later.
    pub(crate) fn came(&mut self, lists: Vec<Listed>) {
        self.came = Some(lists);
    }

    /// Takes the answers, to apply them.
    pub(crate) fn take(&mut self) -> Option<Vec<Listed>> {
        self.came.take()
    }

    /// The answers are applied now. Returns the calls that waited for them.
    pub(crate) fn applies(&mut self) -> BTreeSet<Id> {
        self.asking = false;
        std::mem::take(&mut self.waiting)
    }

    /// A server's list is known as of this mark.
    pub(crate) fn asked(&mut self, listed: &Listed) {
        self.marks.insert(listed.server.clone(), listed.mark);
    }

    /// Open calls keep their tools unchanged.
    pub(crate) fn keeps(&mut self, calls: impl IntoIterator<Item = OpenAt>) {
        self.kept.extend(calls);
    }

    /// All lists are checked again.
    pub(crate) fn forgets_marks(&mut self) {
        self.marks.clear();
    }

    /// Checks the invariants. Returns what is wrong.
    pub(crate) fn recount(&self) -> Result<(), String> {
        if !self.asking && (self.came.is_some() || !self.waiting.is_empty()) {
            return Err(format!("no server is asked, and {:?} wait", self.waiting));
        }
        Ok(())
    }
}
