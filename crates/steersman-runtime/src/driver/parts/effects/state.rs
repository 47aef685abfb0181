//! The states of an outstanding effect, and the table of the ways between them.

use steersman_machine::stored::ids::{Line, Time};

/// State of an outstanding effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutState {
    /// The effect may begin.
    Ready,
    /// It waits for a search over branches ([`explore`](crate::driver::explore)).
    AwaitsSearch,
    /// A hold keeps it. An attempt that asks a person is at work meanwhile.
    Held,
    /// An order of a person keeps effects of its tool from beginning.
    Barred,
    /// It waits for a free slot, for its turn at a place, for an equal effect, for budget, or for the next step.
    Queued,
    /// A line is on its way to the disk: the effect's `Started`, or the escrow for its cost. The attempt begins when the line
    /// is on disk, also if something wakes the effect earlier.
    Starting(Line),
    /// An attempt runs.
    Running,
    /// Another attempt follows soon, at about this time; the wait is in memory only.
    Soon(Time),
    /// Another attempt follows at this time; the time is in the log.
    Later(Time),
    /// A question, an event or a timer: it ends by an input from outside or by time.
    Waits,
    /// Its outcome is offered.
    Over,
}

impl OutState {
    /// Returns true if an effect in this state may come into the other one. This is the table of states. An effect leaves
    /// any state when its branch takes its outcome or does not want it any more: then it is not outstanding.
    pub(crate) fn may_become(self, next: Self) -> bool {
        use OutState as S;
        match self {
            // It was just wished or taken up, or nothing kept it: every gate may keep it now.
            S::Ready => true,
            // A search lets the call begin, or its agent answers without the search.
            S::AwaitsSearch => matches!(next, S::Ready),
            // The hold ended: the next gate is checked. Or it ends the effect. Or an attempt that asked a person goes on.
            S::Held => matches!(
                next,
                S::Ready
                    | S::Held
                    | S::Barred
                    | S::Queued
                    | S::Starting(_)
                    | S::Running
                    | S::Soon(_)
                    | S::Over
            ),
            // Only the order of a person ends this. All gates are checked again.
            S::Barred => matches!(next, S::Soon(_)),
            // All gates are checked again before an attempt, and a place may ask to come back later.
            S::Queued | S::Soon(_) | S::Later(_) => !matches!(next, S::Waits),
            // The attempt begins; or the session stopped, the tool was barred, or more is needed meanwhile.
            S::Starting(_) => !matches!(next, S::Later(_) | S::Waits),
            // The attempt ended, was cut, or asks a person.
            S::Running => matches!(
                next,
                S::Ready | S::Held | S::Soon(_) | S::Later(_) | S::Over
            ),
            // The outside answered, or time passed.
            S::Waits => matches!(next, S::Over),
            // An outcome is final. Who offers another one finds the effect over.
            S::Over => false,
        }
    }

    /// Returns true if a line of the next attempt was written, and the attempt has not begun.
    pub(crate) fn is_starting(self) -> bool {
        matches!(self, Self::Starting(_))
    }

    /// Returns true if an attempt of an effect in this state may begin, once its gates are passed.
    pub(crate) fn may_begin(self) -> bool {
        match self {
            Self::Ready | Self::Queued | Self::Starting(_) | Self::Soon(_) | Self::Later(_) => true,
            Self::AwaitsSearch
            | Self::Held
            | Self::Barred
            | Self::Running
            | Self::Waits
            | Self::Over => false,
        }
    }
}
