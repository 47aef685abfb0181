//! Lowers searches over branches.

use super::super::diagnostic::Diagnostic;
use super::super::keys::Section as _;
use super::super::keys::agent::{self as keys, Effects};
use super::super::keys::kinds::{self, Given, Valued};
use super::super::site::{Scope, Wants};
use super::super::source::Node;
use super::{Lower, Sort};
use steersman_machine::network::search::MOST;
use steersman_machine::network::search::{BRANCHES, DEPTH, Plan, Scorer};
use steersman_machine::stored::ids::Name;

impl Lower<'_> {
    pub(super) fn search(
        &mut self,
        agent: &Name,
        search: Option<keys::Search<'_>>,
    ) -> Option<Box<Plan>> {
        let search = search?;
        let scope = Scope {
            item: Some(search.0.span),
            agent: Some(agent.clone()),
            answer: true,
            ..Scope::default()
        };
        let method = search.method().value;
        let Given { at, value } = search.n();
        let n = self.bounded(at, "n", value).unwrap_or(BRANCHES);
        let score = search.score();
        let score = score.and_then(|score| self.expr(&score, Wants::Worth, &scope));
        let by = search.by().and_then(|by| self.judge(by));
        let budget = search.budget().unwrap_or_else(keys::SearchBudget::empty);
        let calls = budget.model_calls().and_then(Valued::value);
        if let Some(calls) = calls.filter(|calls| *calls < u64::from(n)) {
            let at = self.place(budget.0.span);
            self.say(Diagnostic::little_budget(at, calls, n));
        }
        self.out.searches.push((agent.clone(), search.0.span));
        let width = search.width();
        let width = width.and_then(|width| self.bounded(Some(width.0), "width", width.value()?));
        let Given { at, value } = search.depth();
        Some(Box::new(Plan {
            width: width.unwrap_or_else(|| Plan::usual_width(method, n)),
            depth: self.bounded(at, "depth", value).unwrap_or(DEPTH),
            score: score.map(Scorer::Expr).or(by),
            enough: search.enough().and_then(Valued::value),
            calls,
            tokens: budget.tokens().and_then(Valued::value),
            micros: budget.cost().and_then(kinds::Money::micros),
            seed: search.seed().and_then(Valued::value),
            live: search.effects().value == Effects::Live,
            ..Plan::of(method, n)
        }))
    }

    /// Checks a score expression from outside the definition, in the scope of the top agent.
    pub(super) fn worth(&mut self, top: Option<&Name>, score: &str) {
        let scope = Scope {
            agent: top.cloned(),
            answer: true,
            ..Scope::default()
        };
        let node = Node::json(&score.into());
        self.expr(&node, Wants::Worth, &scope);
    }

    /// Returns a number of branches or blocks, or reports that it is above [`MOST`].
    fn bounded(&mut self, at: Option<&Node>, key: &str, number: u32) -> Option<u32> {
        if number > MOST {
            let at = at.and_then(|node| self.place(node.span));
            self.say(Diagnostic::wide_search(at, key, MOST));
            return None;
        }
        Some(number)
    }

    fn judge(&mut self, node: kinds::Name<'_>) -> Option<Scorer> {
        let name = node.text()?.clone();
        match self.out.declared.get(&name).map(|declared| declared.sort) {
            Some(Sort::Tool) => {
                self.out.judges.push((name.clone(), node.span));
                Some(Scorer::Tool(name))
            }
            Some(Sort::Agent) => {
                self.out.judges.push((name.clone(), node.span));
                Some(Scorer::Agent(name))
            }
            Some(Sort::Person) => {
                let at = self.place(node.span);
                self.say(Diagnostic::no_judge(at, &name, "is a person"));
                None
            }
            None => {
                self.unknown(&node, "tool or agent", |sort| sort != Sort::Person);
                None
            }
        }
    }
}
