//! Searches that people begin and stop, and the seeds of tried branches.

use super::super::branches::{Acted, ToBegin, said};
use super::super::draft::Draft;
use super::super::{Job, Stop};
use crate::store::InboxMessage;
use serde_json::Value as Json;
use steersman_definition::search_plan;
use steersman_machine::network::search::Plan;
use steersman_machine::search;
use steersman_machine::search::Why;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::commit::{LedgerEntry, Searching, Want};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name};
use steersman_machine::tick::effect::Opened;

impl Job<'_, '_> {
    /// Begins a search that a person asks for: opens the root branch, which waits at its first model call.
    pub(in super::super) fn begin_search(
        &mut self,
        message: &InboxMessage,
        branch: Option<Id>,
        at: Option<Line>,
        say: Option<String>,
        plan: &str,
    ) -> Result<Acted, Stop> {
        let read = serde_json::from_str::<Json>(plan).map_err(|e| e.to_string());
        let plan = match read.and_then(|json| search_plan(&json, self.network())) {
            Ok(plan) => plan,
            Err(why) => return Ok(Err(why)),
        };
        let plan = Plan {
            seed: plan.seed.or(Some(self.d.bound.values().seed)),
            ..plan
        };
        let from = branch.unwrap_or(self.d.ledger.current);
        let opened = Opened {
            dry: !plan.live,
            say: say.map(|text| said(message, text)),
            ..Opened::default()
        };
        let plan = plan.to_json().to_string();
        let begin = ToBegin {
            searches: Some(&plan),
            ..ToBegin::new(from, at, opened)
        };
        self.open_by_person(message, begin)
    }

    /// Returns true if an agent of a branch owes a model call at which a block begins.
    pub(in super::super) fn owes_block(snapshot: &Snapshot) -> bool {
        snapshot.effects.values().any(|effect| {
            effect.what == Want::Step
                && snapshot.agent(effect.agent).phase == Phase::Thinking
                && search::begins_block(snapshot, effect.agent)
        })
    }

    /// Makes a branch the root of a person's search, in the line that opens it.
    pub(in super::super) fn roots_search(&mut self, draft: &mut Draft, branch: Id, plan: &str) {
        let plan = draft.body(plan);
        draft.ledger.push(LedgerEntry::Search {
            search: branch,
            what: Searching::Began {
                agent: None,
                branch,
                at: Line::NONE,
                plan,
            },
        });
        self.d.searches.begins(branch);
        self.d.searches.tries_branch(branch, branch);
    }

    /// Ends searches with their best results so far, on request of a person; `None` means all searches.
    pub(in super::super) fn stop_searches(
        &mut self,
        message: &InboxMessage,
        of: Option<Id>,
    ) -> Result<Acted, Stop> {
        if !self.d.searches.stop(of, Why::Stopped) {
            return Ok(Err("nothing is being searched".to_owned()));
        }
        self.accept_with(message, Vec::new())?;
        Ok(Ok(()))
    }

    // ---- seeds

    /// Returns the seed for sampling a model call, and true if its branch is one of several that get the same request.
    pub(in super::super) fn seed_for(&self, branch: Id, agent: &str, position: u32) -> (u64, bool) {
        let known = self.d.ledger.branch(branch).and_then(|b| b.search);
        let plan = known
            .and_then(|(id, _)| self.d.ledger.search(id))
            .map(|s| s.plan);
        let seed = plan.and_then(|plan| {
            let json: Json = serde_json::from_str(&self.seen.past.text(plan)).ok()?;
            json["seed"].as_u64()
        });
        let seed = seed.unwrap_or(self.d.bound.values().seed);
        let name: Name = match known {
            Some((_, number)) => format!("search {number}").into(),
            None => match self.judge_number(branch) {
                Some(number) => format!("judge {number}").into(),
                None if branch == Id::MAIN => "main".into(),
                None => self.d.branches.live()[&branch]
                    .label
                    .clone()
                    .unwrap_or_else(|| branch.to_string().into()),
            },
        };
        let tried = known.is_some();
        (search::draw(seed, agent, &name, position), tried)
    }

    fn judge_number(&self, branch: Id) -> Option<usize> {
        if !self.d.searches.is_judge(branch) {
            return None;
        }
        self.d
            .ledger
            .searches()
            .find_map(|(_, known)| known.judged.iter().position(|(judge, _)| *judge == branch))
    }
}
