//! The only retry layer: decides whether and when another attempt follows.
//!
//! Delays double from half a second to 30 seconds. Their jitter comes from the session's seed and the effect's id. So a session
//! replays with the same delays, and a thousand sessions do not retry in the same moment.

use backon::BackoffBuilder;
use std::time::Duration;
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::Retry;
use steersman_machine::view::mapping::Raw;

/// Longest wait that is kept in memory, in milliseconds. A longer one is kept in the log as a timer.
pub const LONG: u64 = 60_000;
/// Longest delay that a server may ask for, in milliseconds. After a longer one there is no further attempt.
pub const LONGEST: u64 = 7 * 24 * 3_600_000;

/// Decision after a failed attempt.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is no further attempt.
    GiveUp,
    /// Another attempt follows after this many milliseconds, which are waited for in memory.
    After(u64),
    /// Another attempt follows at this time, which is kept in the log.
    At(Time),
}

/// Decides what follows after attempt number `attempt` (from 1) of at most `attempts` has failed.
pub fn next(wanted: Retry, attempt: u32, attempts: u32, seed: u64, effect: Id, now: Time) -> Next {
    if attempt >= attempts {
        return Next::GiveUp;
    }
    let delay = match wanted {
        Retry::Never => return Next::GiveUp,
        Retry::After(asked) if asked > LONGEST => return Next::GiveUp,
        Retry::Policy => backoff(attempt, seed, effect),
        Retry::After(asked) => asked.max(backoff(attempt, seed, effect)),
    };
    if delay > LONG {
        Next::At(now.plus(delay))
    } else {
        Next::After(delay)
    }
}

/// Returns when another attempt of a tool may follow one that ended with `raw`. `None` means that the result is final.
pub fn wanted(raw: &Raw, class: Class) -> Option<Retry> {
    match (raw, class) {
        (Raw::Done(_) | Raw::Made { .. } | Raw::Failed(_), _)
        | (Raw::Unknown(_), Class::Unsafe) => None,
        (Raw::NotPerformed(fault), _) => fault.again.map(Retry::After),
        (Raw::Unknown(fault), Class::Pure | Class::Read | Class::Idempotent) => {
            Some(fault.again.map_or(Retry::Policy, Retry::After))
        }
    }
}

fn backoff(attempt: u32, seed: u64, effect: Id) -> u64 {
    let mix = blake3::hash(format!("{seed} {effect}").as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&mix.as_bytes()[..8]);
    let delays = backon::ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(30))
        .with_factor(2.0)
        .with_jitter()
        .with_jitter_seed(u64::from_le_bytes(head))
        .with_max_times(attempt as usize)
        .build();
    delays
        .last()
        .map_or(500, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_machine::stored::ids::Line;

    #[test]
    fn delays_grow_and_repeat_under_the_same_seed() {
        let id = Id::new(Line(3), 1);
        let delays = |seed| {
            (1..5)
                .map(|a| next(Retry::Policy, a, 9, seed, id, Time(0)))
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
        let Next::After(first) = delays(1)[0] else {
            panic!()
        };
        let Next::After(last) = delays(1)[3] else {
            panic!()
        };
        assert!((500..=1000).contains(&first) && last >= 4000);
    }

    #[test]
    fn a_long_retry_after_is_a_timer_and_never_shortened() {
        let id = Id::new(Line(3), 1);
        let hour = 3_600_000;
        assert_eq!(
            next(Retry::After(hour), 1, 5, 1, id, Time(5)),
            Next::At(Time(5).plus(hour))
        );
        assert_eq!(next(Retry::After(hour), 5, 5, 1, id, Time(5)), Next::GiveUp);
        assert_eq!(
            next(Retry::After(LONGEST + 1), 1, 5, 1, id, Time(5)),
            Next::GiveUp
        );
        assert_eq!(next(Retry::Never, 1, 5, 1, id, Time(5)), Next::GiveUp);
    }
}
