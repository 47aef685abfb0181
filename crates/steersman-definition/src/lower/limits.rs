//! Limits of agents and of the session.

use super::super::diagnostic::Diagnostic;
use super::super::shape;
use super::super::source::Node;
use super::{Lower, whole, word};
use steersman_machine::network::{Limit, Limits, OnLimit};
use steersman_machine::stored::commit::Period;

impl Lower<'_> {
    /// Lowers the limits of the session.
    pub(super) fn limits_of_session(&mut self) -> Limits {
        let merged = self.merged;
        let node = merged.settings.get("limits");
        let limits = limits(node, None, Limits::standard(true));
        let drawn = [
            (
                "tokens",
                limits.tokens,
                "`tokens` of the session",
                "they are",
            ),
            ("cost", limits.cost, "`cost` of the session", "it is"),
        ];
        for (key, limit, of, are) in drawn {
            let written = node.and_then(|node| node.get(key));
            if let (Some(written), Some(limit)) = (written, limit)
                && limit.per == Period::Session
                && matches!(limit.then, OnLimit::Answer | OnLimit::Finish)
            {
                // the budget is taken before a call, which is then held or fails, so there can be no last call
                let at = self.place(written.get("on_limit").unwrap_or(written).span);
                let word = word(written, "on_limit").unwrap_or_default();
                let why = format!("{are} drawn before a model is called, so there is no last call");
                self.say(Diagnostic::limit_outcome(
                    at,
                    word,
                    of,
                    "`ask` and `fail`",
                    &why,
                ));
            }
        }
        limits
    }

    /// Lowers the limits of an agent. The file's limits for each agent apply as well.
    pub(super) fn limits_of_agent(&mut self, agent: &Node) -> Limits {
        let merged = self.merged;
        let node = agent.get("limits");
        if agent.get("route").is_some() {
            self.limits_of_router(node);
        }
        let above = merged.settings.get("limits");
        limits(node, above, Limits::standard(false))
    }

    /// Lowers the limits of a mode: those of its agent, overridden by its own.
    pub(super) fn limits_of_mode(&self, mode: &Node, agent: &Limits) -> Limits {
        let Some(node) = mode.get("limits") else {
            return agent.clone();
        };
        let above = self.merged.settings.get("limits");
        let own = limits(Some(node), above, agent.clone());
        let written = |key: &str| node.get(key).is_some();
        // the session's limits bound these keys too; the agent's values include that bound already
        Limits {
            parallel: if written("parallel") {
                own.parallel
            } else {
                agent.parallel
            },
            same_call: if written("same_call") {
                own.same_call
            } else {
                agent.same_call
            },
            corrections: if written("corrections") {
                own.corrections
            } else {
                agent.corrections
            },
            cost: own.cost.or(agent.cost),
            ..own
        }
    }

    /// Reports limits that have no meaning for a router. It calls one agent at a time and gets no corrections. `answer` means one
    /// last model call with tools off, made by the member at work, so it fits only limits that cover the members' calls.
    fn limits_of_router(&mut self, node: Option<&Node>) {
        for (key, value) in node.map(Node::entries).unwrap_or_default() {
            if ["parallel", "corrections"].contains(&&*key.name) {
                let at = self.place(key.span);
                let what = format!("limits.{}", key.name);
                self.say(Diagnostic::type_key(at, &what, "a routed agent"));
            }
            let outcome = value.get("on_limit");
            let outcome = outcome.filter(|node| node.as_text().is_some_and(|w| &**w == "answer"));
            let outcome = outcome.filter(|_| !COVERS_MEMBERS.contains(&&*key.name));
            if let Some(outcome) = outcome {
                let at = self.place(outcome.span);
                self.say(Diagnostic::limit_outcome(
                    at,
                    "answer",
                    "a routed agent",
                    "`fail`, `finish` and `ask`",
                    "where it is reached no member is at work whose model call could be the last",
                ));
            }
        }
    }
}

/// Limits of a routed agent that also count its members' work.
const COVERS_MEMBERS: &[&str] = &["model_calls", "ticks", "tokens", "cost"];

/// Returns the written limits over the standard ones. For limits that bound each agent separately, the smaller of the session's
/// and the agent's value is used.
fn limits(node: Option<&Node>, above: Option<&Node>, standard: Limits) -> Limits {
    let at = |node: Option<&Node>, key: &str| node.and_then(|node| node.get(key)).cloned();
    let of =
        |key: &str, standard: Limit| at(node, key).map_or(standard, |node| limit(&node, standard));
    let each = |key: &str, standard: Limit| {
        let written = [at(node, key), at(above, key)].into_iter().flatten();
        let limits = written.map(|node| limit(&node, standard));
        limits.min_by_key(|limit| limit.max).unwrap_or(standard)
    };
    let bound = |node: Option<&Node>, key: &str| {
        let node = at(node, key)?;
        let max = whole(node.get("max").unwrap_or(&node))?;
        Some(u32::try_from(max).unwrap_or(u32::MAX))
    };
    let none = |then| Limit {
        max: u64::MAX,
        per: Period::Session,
        then,
        written: false,
    };
    let parallel = [bound(node, "parallel"), bound(above, "parallel")];
    Limits {
        model_calls: of("model_calls", standard.model_calls),
        agent_calls: of("agent_calls", standard.agent_calls),
        parallel: parallel
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(standard.parallel),
        depth: bound(node, "depth").or(standard.depth),
        ticks: of("ticks", standard.ticks),
        same_call: each("same_call", standard.same_call),
        corrections: each("corrections", standard.corrections),
        wall_time: at(node, "wall_time")
            .map(|node| limit(&node, none(OnLimit::Fail)))
            .or(standard.wall_time),
        tokens: at(node, "tokens")
            .map(|node| limit(&node, none(OnLimit::Ask)))
            .or(standard.tokens),
        cost: at(node, "cost").and_then(|node| {
            let max = node.get("max").unwrap_or(&node).scalar()?;
            let max = shape::money(max)?;
            Some(Limit {
                max,
                ..limit(&node, none(OnLimit::Ask))
            })
        }),
    }
}

fn limit(node: &Node, standard: Limit) -> Limit {
    let max = node.get("max").unwrap_or(node);
    let max = whole(max).or_else(|| shape::duration(max.as_text()?));
    Limit {
        max: max.unwrap_or(standard.max),
        per: match word(node, "per") {
            Some("answer") => Period::Answer,
            Some("task") => Period::Task,
            Some("session") => Period::Session,
            _ => standard.per,
        },
        then: match word(node, "on_limit") {
            Some("answer") => OnLimit::Answer,
            Some("fail") => OnLimit::Fail,
            Some("finish") => OnLimit::Finish,
            Some("ask") => OnLimit::Ask,
            _ => standard.then,
        },
        written: true,
    }
}
