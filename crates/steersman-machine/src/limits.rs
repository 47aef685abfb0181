//! Limits of agents and sessions: each has a default and an outcome that is never silent.

/// Limits, each with its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Model calls.
    pub model_calls: Limit,
    /// Agent calls.
    pub agent_calls: Limit,
    /// Calls of one exchange at once; the rest waits.
    pub parallel: u32,
    /// Depth; the root is at 1.
    pub depth: u32,
    /// Commits.
    pub ticks: Limit,
    /// Same tool, arguments and result.
    pub same_call: Limit,
    /// Answers that could not be used.
    pub corrections: Limit,
    /// Milliseconds; none: no limit.
    pub wall_time: Option<Limit>,
    /// Tokens; none: no limit.
    pub tokens: Option<Limit>,
}

/// A limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// At most.
    pub max: u64,
    /// Counted since.
    pub per: Per,
    /// What happens.
    pub then: OnLimit,
    /// Written in the definition: it covers all that the agent started.
    pub written: bool,
}

/// Since when a limit counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// Since the message that is being answered.
    Answer,
    /// Since the call that is being served.
    Task,
    /// Since the session began.
    Session,
}

/// What happens at a limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// One last model call with tools off.
    Answer,
    /// It fails.
    Fail,
    /// It finishes with what it has.
    Finish,
    /// A person is asked for more.
    Ask,
}

impl Limits {
    /// The limits where a definition writes none.
    pub fn standard(session: bool) -> Self {
        let limit = |max, then| Limit {
            max,
            per: Per::Answer,
            then,
            written: false,
        };
        Self {
            model_calls: limit(50, OnLimit::Answer),
            agent_calls: limit(100, OnLimit::Answer),
            parallel: 8,
            depth: 5,
            ticks: limit(10_000, OnLimit::Fail),
            same_call: limit(3, OnLimit::Answer),
            corrections: limit(3, OnLimit::Fail),
            wall_time: None,
            tokens: session.then_some(Limit {
                max: 2_000_000,
                per: Per::Session,
                then: OnLimit::Ask,
                written: false,
            }),
        }
    }
}
