//! Tells the tap of the process about a session. It exists only if the process has a tap.

use crate::clock::Clock;
use crate::driver::{Attempt, Came, Task};
use crate::engine::Engine;
use crate::past::Past;
use crate::store::{Batch, SessionId};
use crate::tap::{Attempted, Owned, Tap, Worked};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman_machine::network::Network;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::view::mapping::Raw;

/// Tells the tap of a process that the ownership of a session changed.
pub(super) fn owner(engine: &Engine, session: &SessionId, owned: Owned) {
    if let Some(tap) = &engine.0.options.tap {
        tap.owner(session, owned);
    }
}

/// Facts about a session that are kept until the tap can be told.
pub(super) struct Tapped {
    tap: Arc<dyn Tap>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    /// Attempts that run.
    running: BTreeMap<(Id, u32), Begun>,
    /// Tools that wait for their turn, or had to.
    turns: BTreeMap<Id, Turn>,
    /// Lines on their way to the disk, each with the time at which it went.
    coming: VecDeque<(Time, Arc<LogLine>)>,
}

struct Begun {
    what: Worked,
    definition: Name,
    at: Time,
    waited: Arc<AtomicU64>,
}

enum Turn {
    Waits(Time),
    Came(u64),
}

impl Tapped {
    /// Returns what is told about a session. `None` if the process has no tap.
    pub(super) fn new(engine: &Engine, session: &SessionId) -> Option<Box<Self>> {
        Some(Box::new(Self {
            tap: engine.0.options.tap.clone()?,
            clock: engine.clock().clone(),
            session: session.clone(),
            running: BTreeMap::new(),
            turns: BTreeMap::new(),
            coming: VecDeque::new(),
        }))
    }

    /// An attempt begins. A model's attempt gets the place for the time for which its limiter keeps it back.
    pub(super) fn begins(&mut self, begun: &mut Attempt, network: Option<&Arc<Network>>) {
        let waited = Arc::new(AtomicU64::new(0));
        let what = match &mut begun.task {
            Task::Model(ask) => {
                ask.waited = Some(waited.clone());
                Worked::Model(ask.model.label())
            }
            Task::Tool(run) => {
                if let Some(Turn::Came(millis)) = self.turns.remove(&begun.effect) {
                    waited.store(millis, Ordering::Relaxed);
                }
                Worked::Tool(run.run.work.tool.clone())
            }
            Task::Aside(_) => return,
        };
        let begins = Begun {
            what,
            definition: network.map_or_else(|| "".into(), |network| network.name.clone()),
            at: self.clock.now(),
            waited,
        };
        self.running.insert((begun.effect, begun.number), begins);
    }

    /// An attempt ended.
    pub(super) fn ended(&mut self, effect: Id, attempt: u32, came: &Came) {
        let (outcome, code, usage) = match came {
            Came::Model(result) => match &**result {
                Ok(answer) => ("done", None, Some(&answer.usage)),
                Err(failure) => ("failed", Some(failure.code.as_str()), None),
            },
            Came::Tool(raw) => match raw {
                Raw::Done(_) | Raw::Made { .. } => ("done", None, None),
                Raw::NotPerformed(fault) => ("not_performed", Some(fault.code.as_str()), None),
                Raw::Unknown(fault) => ("unknown", Some(fault.code.as_str()), None),
                Raw::Failed(fault) => ("failed", Some(fault.code.as_str()), None),
            },
            Came::Parked => ("parked", None, None),
            Came::Probe(..) | Came::Reach(_) | Came::Judge(..) => return,
        };
        let Some(begun) = self.running.remove(&(effect, attempt)) else {
            return;
        };
        self.tap.attempt(&Attempted {
            session: &self.session,
            definition: &begun.definition,
            effect,
            attempt,
            what: &begun.what,
            began: begun.at,
            ended: self.clock.now(),
            waited: begun.waited.load(Ordering::Relaxed),
            outcome,
            code,
            usage,
        });
    }

    /// A tool waits for its turn at its place.
    pub(super) fn waits(&mut self, effect: Id) {
        self.turns.insert(effect, Turn::Waits(self.clock.now()));
    }

    /// The turn of a tool came, or will not come soon.
    pub(super) fn turn_came(&mut self, effect: Id) {
        if let Some(turn) = self.turns.get_mut(&effect)
            && let Turn::Waits(since) = *turn
        {
            *turn = Turn::Came(since.until(self.clock.now()));
        }
    }

    /// Forgets the turns of effects that are over.
    pub(super) fn forget(&mut self, is_out: impl Fn(Id) -> bool) {
        self.turns.retain(|effect, _| is_out(*effect));
    }

    /// Lines are on their way to the disk. They are in memory until they are there.
    pub(super) fn made(&mut self, batch: &Batch, past: &Past) {
        let now = self.clock.now();
        let lines = batch.rows.iter().filter_map(|row| past.line(row.n).ok());
        self.coming.extend(lines.map(|line| (now, line)));
    }

    /// All lines up to this one are on disk.
    pub(super) fn on_disk(&mut self, upto: Line) {
        let now = self.clock.now();
        while let Some((made, line)) = self.coming.pop_front_if(|(_, line)| line.n <= upto) {
            self.tap.line(&self.session, &line, made.until(now));
        }
    }
}
