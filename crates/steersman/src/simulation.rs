//! Plays sessions of a definition under everything that may go wrong, and checks what must hold.
//!
//! A simulation is one session. Its seed decides everything: what models answer and tools give, when, what people do, when the
//! process dies, and how the store fails. Models answer at random, from what they are offered and from the tests of the
//! definition; many of them lie. Nothing runs, nothing is asked, and no time passes. The engine, its driver and its executor are those of
//! production. The same seed gives the same session.
//!
//! ```
//! use steersman::Network;
//! use steersman::simulation::{Invariant, Simulation};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let network = Network::from_yaml("
//! tools:
//!   refund: { native: 1, parameters: { cents: integer }, effect: unsafe, approve: args.cents > 2000 }
//! agents: { desk: { system: You settle complaints., tools: [refund] } }
//! ").build()?;
//! let sure = "effect.tool != 'refund' or effect.performed == 0 or effect.args.cents <= 2000 or effect.approvals";
//! let simulation = Simulation::of(&network, vec![Invariant::parse(sure)?]);
//! for seed in 1..=5 {
//!     let report = simulation.run(seed);
//!     assert!(report.broken.is_empty(), "{:?}", report.broken);
//! }
//! # Ok(())
//! # }
//! ```

mod clock;
mod dice;
mod json;
mod judge;
mod models;
mod plan;
mod play;
mod store;
mod stubs;
mod tools;

pub use judge::{Broken, Invariant};

use crate::Network;
use plan::Plan;
use std::sync::Arc;
use steersman_machine::stored::ids::Time;
use steersman_views::reader::Stored;
use steersman_views::story::{Row, Story};
use stubs::Stubs;

/// Number of smaller simulations that are tried for one that fails.
const TRIES: usize = 200;

/// Simulations of a definition.
pub struct Simulation {
    network: Network,
    invariants: Vec<Invariant>,
    stubs: Arc<Stubs>,
}

/// A simulation that was run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Everything that does not hold.
    pub broken: Vec<Broken>,
    /// Number of acts of people and faults.
    pub steps: usize,
    /// Number of lines in the log.
    pub lines: usize,
    /// The events, in order. Empty if everything holds.
    pub trace: Vec<Happened>,
    plan: Plan,
}

/// Something that happened in a simulation.
#[derive(Clone, Debug)]
pub enum Happened {
    /// An act of a person or a fault, in words, with the milliseconds since the beginning.
    Done(i64, String),
    /// A row of the session's log.
    Row(i64, Row),
}

impl Simulation {
    /// Prepares simulations of a definition. In addition to what always holds, these invariants are checked.
    pub fn of(network: &Network, invariants: Vec<Invariant>) -> Self {
        Self {
            stubs: Arc::new(Stubs::of(network)),
            network: network.clone(),
            invariants,
        }
    }

    /// Runs the simulation of a seed, in a thread of its own. The calling thread waits.
    pub fn run(&self, seed: u64) -> Report {
        self.play(Plan::drawn(seed))
    }

    /// Looks for the smallest simulation that fails like this one: with fewer acts and fewer faults.
    #[must_use]
    pub fn shrunk(&self, report: &Report) -> Report {
        let Some(Broken { invariant, .. }) = report.broken.first() else {
            return report.clone();
        };
        let mut best = report.clone();
        let mut left = TRIES;
        'smaller: loop {
            for plan in best.plan.smaller() {
                if left == 0 {
                    return best;
                }
                left -= 1;
                let tried = self.play(plan);
                let same = tried
                    .broken
                    .iter()
                    .find(|broken| broken.invariant == *invariant);
                if let Some(same) = same {
                    best = tried.of(same);
                    continue 'smaller;
                }
            }
            return best;
        }
    }

    /// Plays a plan in a thread of its own, since a simulation has a runtime of its own.
    fn play(&self, plan: Plan) -> Report {
        let played = std::thread::scope(|scope| {
            let plan = plan.clone();
            scope.spawn(|| self.plays(plan)).join()
        });
        played.unwrap_or_else(|_| Report {
            seed: plan.seed,
            broken: vec![Broken {
                invariant: "the engine does not panic".to_owned(),
                why: "it panicked; the reason is in the output of errors".to_owned(),
            }],
            steps: plan.steps.len(),
            lines: 0,
            trace: Vec::new(),
            plan,
        })
    }

    fn plays(&self, plan: Plan) -> Report {
        let mut report = Report {
            seed: plan.seed,
            broken: Vec::new(),
            steps: plan.steps.len(),
            lines: 0,
            trace: Vec::new(),
            plan,
        };
        let played = play::play(&self.network, &self.stubs, &report.plan);
        let (runtime, played) = match played {
            Ok(played) => played,
            Err(why) => {
                let invariant = "a session can be simulated".to_owned();
                report.broken.push(Broken { invariant, why });
                return report;
            }
        };
        report.lines = played.lines.len();
        report.broken = runtime.block_on(judge::judge(&played, &self.invariants));
        if !report.broken.is_empty() {
            report.trace = runtime.block_on(trace(&played));
        }
        report
    }
}

impl Report {
    /// Returns the report about one of the things that do not hold.
    #[must_use]
    pub fn of(&self, broken: &Broken) -> Self {
        Self {
            broken: vec![broken.clone()],
            ..self.clone()
        }
    }
}

/// Returns the acts and the rows of the log, in order.
async fn trace(played: &judge::Played) -> Vec<Happened> {
    let since = |at: Time| at.0 - play::BEGIN.0;
    let mut trace = Vec::new();
    let mut told = played.told.iter().peekable();
    let reader = Stored::plain(&played.engine, play::SESSION);
    let mut story = Story::told(false);
    for line in &played.lines {
        while let Some((at, text)) = told.next_if(|(at, _)| *at <= line.at) {
            trace.push(Happened::Done(since(*at), text.clone()));
        }
        // A row that cannot be read is reported as damage of the log.
        let rows = story.line(line, &reader).await.unwrap_or_default();
        let rows = rows.into_iter();
        trace.extend(rows.map(|row| Happened::Row(since(line.at), row)));
    }
    trace.extend(told.map(|(at, text)| Happened::Done(since(*at), text.clone())));
    trace
}
