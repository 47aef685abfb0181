//! Lowers searches over branches.

use super::super::diagnostic::Diagnostic;
use super::super::shape;
use super::super::site::{Scope, Wants};
use super::super::source::Node;
use super::{Lower, Sort, real, whole, word};
use steersman_machine::network::search::{BRANCHES, DEPTH, MOST, Method, Plan, Scorer};
use steersman_machine::stored::ids::Name;

impl Lower<'_> {
    pub(super) fn search(&mut self, agent: &Name, node: Option<&Node>) -> Option<Box<Plan>> {
        let node = node?;
        let scope = Scope {
            item: Some(node.span),
            agent: Some(agent.clone()),
            answer: true,
            ..Scope::default()
        };
        let method = word(node, "method")
            .and_then(Method::of)
            .unwrap_or_default();
        let n = self.few(node, "n").unwrap_or(BRANCHES);
        let score = node.get("score");
        let score = score.and_then(|node| self.expr(node, Wants::Worth, &scope));
        let by = node.get("by").and_then(|node| self.judge(node));
        let budget = node.get("budget");
        let most = |key: &str| budget?.get(key).and_then(whole);
        let calls = most("model_calls");
        if let (Some(calls), Some(at)) = (calls, budget)
            && calls < u64::from(n)
        {
            let at = self.place(at.span);
            self.say(Diagnostic::little_budget(at, calls, n));
        }
        let cost = budget.and_then(|node| node.get("cost")?.scalar());
        self.out.searches.push((agent.clone(), node.span));
        Some(Box::new(Plan {
            width: self
                .few(node, "width")
                .unwrap_or_else(|| Plan::usual_width(method, n)),
            depth: self.few(node, "depth").unwrap_or(DEPTH),
            score: score.map(Scorer::Expr).or(by),
            enough: real(node, "enough"),
            calls,
            tokens: most("tokens"),
            micros: cost.and_then(shape::money),
            seed: node.get("seed").and_then(whole),
            live: word(node, "effects") == Some("live"),
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

    /// Returns a number of branches or blocks; reports one above the maximum.
    fn few(&mut self, of: &Node, key: &str) -> Option<u32> {
        let node = of.get(key)?;
        let wanted = whole(node)?;
        let few = u32::try_from(wanted).ok().filter(|few| *few <= MOST);
        if few.is_none() {
            let at = self.place(node.span);
            self.say(Diagnostic::wide_search(at, key, MOST));
        }
        few
    }

    fn judge(&mut self, node: &Node) -> Option<Scorer> {
        let name = node.as_text()?.clone();
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
                self.unknown(node, "tool or agent", |sort| sort != Sort::Person);
                None
            }
        }
    }
}
