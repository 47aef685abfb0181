//! Limits of agents and of the session.

use super::super::diagnostic::Diagnostic;
use super::super::keys::Section as _;
use super::super::keys::agent as keys;
use super::super::keys::kinds::{Valued, Word, Words};
use super::Lower;
use steersman_machine::network::{Limit, Limits, OnLimit};
use steersman_machine::stored::commit::Period;

impl Lower<'_> {
    /// Lowers the limits of the session.
    pub(super) fn limits_of_session(&mut self) -> Limits {
        let written = self.file.limits();
        let limits = limits(written, None, Limits::standard(true));
        let written = written.unwrap_or_else(keys::Limits::empty);
        let tokens = written.tokens().map(|limit| (limit.0, limit.on_limit()));
        let cost = written.cost().map(|limit| (limit.0, limit.on_limit()));
        let drawn = [
            (tokens, limits.tokens, "`tokens` of the session", "they are"),
            (cost, limits.cost, "`cost` of the session", "it is"),
        ];
        for (written, limit, of, are) in drawn {
            if let (Some((written, outcome)), Some(limit)) = (written, limit)
                && limit.per == Period::Session
                && matches!(limit.then, OnLimit::Answer | OnLimit::Finish)
            {
                // the budget is taken before a call, which is then held or fails, so there can be no last call
                let at = self.place(outcome.map_or(written, |outcome| outcome.0).span);
                let word = outcome.and_then(Valued::value).map_or("", Words::word);
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
    pub(super) fn limits_of_agent(&mut self, agent: keys::Agent<'_>) -> Limits {
        if agent.route().is_some() {
            self.limits_of_router(agent.limits());
        }
        limits(agent.limits(), self.file.limits(), Limits::standard(false))
    }

    /// Lowers the limits of a mode: those of its agent, overridden by its own.
    pub(super) fn limits_of_mode(&self, mode: keys::Mode<'_>, agent: &Limits) -> Limits {
        let Some(written) = mode.limits() else {
            return agent.clone();
        };
        let own = limits(Some(written), self.file.limits(), agent.clone());
        // the session's limits bound these keys too; the agent's values include that bound already
        Limits {
            parallel: if written.parallel().is_some() {
                own.parallel
            } else {
                agent.parallel
            },
            same_call: if written.same_call().is_some() {
                own.same_call
            } else {
                agent.same_call
            },
            corrections: if written.corrections().is_some() {
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
    fn limits_of_router(&mut self, of: Option<keys::Limits<'_>>) {
        for (key, value) in of.map_or(&[][..], |of| of.0.entries()) {
            if ["parallel", "corrections"].contains(&&*key.name) {
                let at = self.place(key.span);
                let what = format!("limits.{}", key.name);
                self.say(Diagnostic::type_key(at, &what, "a routed agent"));
            }
            // all limits have this key in common
            let outcome = keys::Limit(value).on_limit();
            let outcome = outcome.filter(|then| then.value() == Some(OnLimit::Answer));
            let outcome = outcome.filter(|_| !COVERS_MEMBERS.contains(&&*key.name));
            if let Some(outcome) = outcome {
                let at = self.place(outcome.0.span);
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
fn limits(
    own: Option<keys::Limits<'_>>,
    above: Option<keys::Limits<'_>>,
    standard: Limits,
) -> Limits {
    let own = own.unwrap_or_else(keys::Limits::empty);
    let above = above.unwrap_or_else(keys::Limits::empty);
    let of = |written: Option<keys::Limit<'_>>, standard| {
        written.map_or(standard, |of| limit(of, standard))
    };
    let each = |written: [Option<keys::AnswerLimit<'_>>; 2], standard| {
        let limits = written
            .into_iter()
            .flatten()
            .map(|of| of_answer(of, standard));
        limits.min_by_key(|limit| limit.max).unwrap_or(standard)
    };
    let bound = |written: Option<keys::Bound<'_>>| written?.max()?.value();
    let none = |then| Limit {
        max: u64::MAX,
        per: Period::Session,
        then,
        written: false,
    };
    let parallel = [bound(own.parallel()), bound(above.parallel())];
    let tokens = own.tokens().map(|of| limit(of, none(OnLimit::Ask)));
    let wall_time = own.wall_time().map(|of| Limit {
        max: of.max().and_then(Valued::value).unwrap_or(u64::MAX),
        ..written(of.per(), of.on_limit(), none(OnLimit::Fail))
    });
    Limits {
        model_calls: of(own.model_calls(), standard.model_calls),
        agent_calls: of(own.agent_calls(), standard.agent_calls),
        parallel: parallel
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(standard.parallel),
        depth: bound(own.depth()).or(standard.depth),
        ticks: of(own.ticks(), standard.ticks),
        same_call: each([own.same_call(), above.same_call()], standard.same_call),
        corrections: each(
            [own.corrections(), above.corrections()],
            standard.corrections,
        ),
        wall_time: wall_time.or(standard.wall_time),
        tokens: tokens.or(standard.tokens),
        cost: own.cost().and_then(|of| {
            Some(Limit {
                max: of.max()?.micros()?,
                ..written(of.per(), of.on_limit(), none(OnLimit::Ask))
            })
        }),
    }
}

fn limit(of: keys::Limit<'_>, standard: Limit) -> Limit {
    Limit {
        max: of.max().and_then(Valued::value).unwrap_or(standard.max),
        ..written(of.per(), of.on_limit(), standard)
    }
}

fn of_answer(of: keys::AnswerLimit<'_>, standard: Limit) -> Limit {
    let per = of.per().and_then(Valued::value);
    Limit {
        max: of.max().and_then(Valued::value).unwrap_or(standard.max),
        per: per.map_or(standard.per, |keys::PerAnswer::Answer| Period::Answer),
        ..written(None, of.on_limit(), standard)
    }
}

/// Returns a limit with the written period and outcome, where these are written.
fn written(
    per: Option<Word<'_, Period>>,
    then: Option<Word<'_, OnLimit>>,
    standard: Limit,
) -> Limit {
    Limit {
        max: standard.max,
        per: per.and_then(Valued::value).unwrap_or(standard.per),
        then: then.and_then(Valued::value).unwrap_or(standard.then),
        written: true,
    }
}
