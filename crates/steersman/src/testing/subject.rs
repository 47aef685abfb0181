//! A session on disk, as expectations are checked against it.

use std::sync::Arc;
use steersman_definition::expect::Subject;
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Commit, LogLine};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Body, Id, Line};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_runtime::pending::PendingKind;
use steersman_views::essence::{essential, in_call_order};

/// A session as it is on disk: its inspection and all its lines.
pub(crate) struct Whole<'a> {
    pub(crate) inspection: &'a Inspection,
    pub(crate) network: &'a Network,
    pub(crate) lines: &'a [Arc<LogLine>],
    /// The first difference from the same test without its kills; `None` if there is none, or if it was not compared.
    pub(crate) undisturbed: Option<String>,
}

impl Whole<'_> {
    fn view(&self, branch: Id) -> &BranchView {
        self.inspection
            .branches
            .iter()
            .find(|b| b.id == branch)
            .expect("branches come from this inspection")
    }
}

impl Bodies for Whole<'_> {
    fn parts(&self, body: Body) -> Parts {
        self.inspection.history.parts(body)
    }
}

impl Subject for Whole<'_> {
    fn network(&self) -> &Network {
        self.network
    }
    fn bodies(&self) -> &dyn Bodies {
        self
    }
    fn history(&self) -> &dyn History {
        &*self.inspection.history
    }
    fn lines(&self, branch: Id) -> Vec<&LogLine> {
        let mut lines = Vec::new();
        let mut at = self.view(branch).snapshot.line;
        // Walking the lines in descending order meets each line before its predecessor.
        for line in self.lines.iter().rev() {
            if line.n == at {
                lines.push(&**line);
                at = line.prev;
            }
        }
        lines.reverse();
        lines
    }
    fn current(&self) -> Id {
        self.inspection.current
    }
    fn branch_named(&self, name: &str) -> Option<Id> {
        self.inspection.ledger.find_branch(name)
    }
    fn branch_count(&self) -> u64 {
        self.inspection.branches.len() as u64
    }
    fn snapshot(&self, branch: Id) -> &Snapshot {
        &self.view(branch).snapshot
    }
    fn stack(&self, branch: Id, agent: Id) -> Vec<Interaction> {
        let stack = self.inspection.stack(self.view(branch), agent);
        stack.into_iter().map(|(_, i)| i).collect()
    }
    fn any_order(&self) -> bool {
        true
    }
    fn model_calls(&self) -> u64 {
        self.lines
            .iter()
            .filter_map(|l| l.commit.as_ref())
            .map(|c| c.usage.len() as u64)
            .sum()
    }
    fn modes(&self, branch: Id, agent: Id) -> Vec<String> {
        let at = |n: Line| self.lines.iter().find(|line| line.n == n);
        let head = self.lines.iter().rev().find(|line| line.branch == branch);
        let path = std::iter::successors(head, |line| at(line.prev));
        let commits = path.filter_map(|line| line.commit.as_ref());
        let modes = Commit::modes_along(commits, agent);
        modes.iter().map(ToString::to_string).collect()
    }
    fn states(&self, branch: Id, agent: Id) -> Vec<String> {
        let lines = self.lines.iter().filter(|l| l.branch == branch);
        let entered = lines
            .filter_map(|l| l.commit.as_ref())
            .flat_map(Commit::states);
        entered
            .filter(|(who, _)| *who == agent)
            .map(|(_, state)| state.to_string())
            .collect()
    }
    fn open(&self, branch: Id) -> Vec<String> {
        self.inspection
            .pending
            .iter()
            .filter(|p| p.branch == branch)
            .filter_map(|p| {
                let tool = p.tool.as_deref().unwrap_or("?");
                Some(match p.kind {
                    PendingKind::Approval => format!("approval {tool}"),
                    PendingKind::Input => format!("input {tool}"),
                    PendingKind::Doubt => format!("doubt {tool}"),
                    PendingKind::Repeat => format!("repeat {tool}"),
                    PendingKind::Budget => "budget".into(),
                    PendingKind::Question => {
                        format!("question {}", p.by.join(" or "))
                    }
                    PendingKind::Event => format!("event {}", p.text),
                    PendingKind::Hold => format!("hold {tool}"),
                    PendingKind::Outage => "outage".into(),
                    PendingKind::Timer | PendingKind::Again => return None,
                })
            })
            .collect()
    }
    fn disturbed(&self) -> Option<String> {
        self.undisturbed.clone()
    }
}

/// Returns a text that is equal for equal sessions: agents by path with their stacks and bodies, and state. Ids, lines,
/// times and the resolvers of doubts are left out.
pub(super) fn essence(whole: &Whole<'_>) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for branch in &whole.inspection.branches {
        let _ = writeln!(out, "{}", branch.label.as_deref().unwrap_or("branch"));
        let mut agents: Vec<_> = branch.snapshot.agents.values().collect();
        agents.sort_by(|a, b| a.family.path.cmp(&b.family.path));
        for agent in agents {
            let stack = whole.stack(branch.id, agent.id);
            let _ = writeln!(out, "  {} {:?}", agent.def, agent.family.path);
            for (interaction, of) in in_call_order(&stack, |i| i) {
                let _ = writeln!(out, "    {}", essential(interaction, of, whole));
            }
        }
        for ((scope, name), cell) in &branch.snapshot.state {
            let scope = &branch.snapshot.agent(*scope).family.path;
            let value = if cell.value.is_sealed() {
                "(sealed)".to_owned()
            } else {
                cell.value.0.to_string()
            };
            let _ = writeln!(out, "  {scope:?}.{name} = {value}");
        }
    }
    out
}
