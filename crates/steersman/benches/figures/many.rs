//! Many sessions in one process: waiting ones, which must cost nearly nothing, and live ones, which must share it
//! fairly.

use crate::measure::{Goal, Size, Table, Watch, median, resident, short};
use crate::store::file;
use crate::world::runtime;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use steersman::machine::stored::commit::Usage;
use steersman::machine::stored::ids::Name;
use steersman::machine::stored::outcome::{Answer, Ask, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Model, ModelCall, Sink};
use steersman::{By, Network, Session, Steersman, Turn, tool};
use tokio_util::sync::CancellationToken;

const PARKED: &str = "
steersman: 1
name: parked
tools:
  pay: { native: 1, description: Pays., parameters: { what: string, cents: integer }, effect: unsafe, approve: true }
agents:
  main: { system: You pay., tools: [pay] }
";

pub(crate) const LIVE: &str = "
steersman: 1
name: live
tools:
  look: { native: 1, description: Looks something up., parameters: { what: string, cents: integer }, effect: read }
agents:
  main: { system: You look things up., tools: [look], limits: { model_calls: 1000, same_call: 1000 } }
limits: { tokens: 1000000000000 }
";

/// Times at which tools gave results, and the gaps from there to the next model call of the session.
#[derive(Default)]
pub(crate) struct Gaps {
    given: Mutex<HashMap<String, Instant>>,
    gaps: Mutex<Vec<f64>>,
}

impl Gaps {
    fn gave(&self, session: &str) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.insert(session.to_owned(), Instant::now());
    }

    fn asked(&self, session: &str) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let at = given.remove(session);
        drop(given);
        if let Some(at) = at {
            let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
            gaps.push(at.elapsed().as_secs_f64());
        }
    }

    /// The gap that this share of all gaps does not exceed, in seconds.
    fn quantile(&self, share: f64) -> f64 {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.sort_by(f64::total_cmp);
        let at = ((gaps.len() - 1) as f64 * share) as usize;
        gaps.get(at).copied().unwrap_or_default()
    }
}

/// A model that calls a tool in each of so many turns, and then answers.
pub(crate) struct Caller {
    pub(crate) tool: &'static str,
    pub(crate) turns: u32,
    pub(crate) gaps: Arc<Gaps>,
}

impl Model for Caller {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        self.gaps.asked(&call.session);
        let mut answer = Answer {
            usage: Usage {
                input: 100,
                output: 20,
                ..Usage::default()
            },
            ..Answer::default()
        };
        if call.position < self.turns {
            answer.asks.push(Ask {
                name: self.tool.to_owned(),
                label: Some(format!("call_{}", call.position)),
                args: json!({ "what": &*call.session, "cents": 4_711 }).to_string(),
                misfit: None,
            });
        } else {
            answer.text = Some("Done.".to_owned());
        }
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn label(&self) -> Name {
        "bench".into()
    }
}

async fn opened(name: &str, memory: bool, model: Caller) -> Steersman {
    let setup = Steersman::options().model("default", model);
    if memory {
        return setup.in_memory();
    }
    setup.open(file(name)).await.expect("it opens")
}

async fn parked(count: u64) -> Parked {
    let paid = Arc::new(AtomicUsize::new(0));
    let model = Caller {
        tool: "pay",
        turns: 1,
        gaps: Arc::default(),
    };
    let steersman = opened("parked.db", false, model).await;
    let network = Network::from_yaml(PARKED)
        .tool({
            let paid = paid.clone();
            tool("pay", 1, move |_: Json| {
                paid.fetch_add(1, Ordering::Relaxed);
                async { Ok::<_, String>("paid") }
            })
        })
        .build()
        .expect("the definition of the benchmark is right");
    // The first session is not counted: it also allocates what all sessions share.
    let first = park(&steersman, &network).await;
    let before = resident();
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(park(&steersman, &network).await);
    }
    let held = resident().saturating_sub(before);
    let heads = heads(&steersman, &sessions).await;
    let watch = Watch::start();
    let (session, question) = &sessions[count as usize / 2];
    session
        .approve(question, By::user())
        .await
        .expect("it is approved");
    let turn = session.settled().await.expect("it is driven");
    let woken = watch.took();
    assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
    assert_eq!(paid.load(Ordering::Relaxed), 1, "one is paid");
    let after = self::heads(&steersman, &sessions).await;
    let moved = heads.iter().zip(&after).filter(|(a, b)| a != b).count();
    for (session, _) in sessions {
        session.stop().await;
    }
    first.0.stop().await;
    Parked {
        each: held as f64 / count as f64,
        woken: woken.clock,
        moved,
    }
}

struct Parked {
    each: f64,
    woken: f64,
    moved: usize,
}

async fn park(steersman: &Steersman, network: &Network) -> (Session, steersman::Question) {
    let session = steersman.start(network).await.expect("it starts");
    match session.ask("Please pay.").await.expect("it is driven") {
        Turn::Asks(mut questions) => (session, questions.remove(0)),
        other => panic!("{other:?}"),
    }
}

async fn heads(steersman: &Steersman, sessions: &[(Session, steersman::Question)]) -> Vec<u64> {
    let mut heads = Vec::new();
    for (session, _) in sessions {
        let head = steersman.engine().store().head(session.id()).await;
        heads.push(head.expect("it is there").0);
    }
    heads
}

struct Live {
    steps: f64,
    each: f64,
    p50: f64,
    p99: f64,
}

async fn live(count: u64, memory: bool) -> Live {
    let gaps = Arc::new(Gaps::default());
    let model = Caller {
        tool: "look",
        turns: 9,
        gaps: gaps.clone(),
    };
    let steersman = opened("live.db", memory, model).await;
    let network = Network::from_yaml(LIVE)
        .tool({
            let gaps = gaps.clone();
            tool("look", 1, move |args: Json| {
                gaps.gave(args["what"].as_str().unwrap_or_default());
                async { Ok::<_, String>("The lamp in the hall is green.") }
            })
        })
        .build()
        .expect("the definition of the benchmark is right");
    let before = resident();
    let watch = Watch::start();
    let mut sessions = Vec::new();
    for _ in 0..count {
        let session = steersman.start(&network).await.expect("it starts");
        session.say("Please look.").await.expect("it hears");
        sessions.push(session);
    }
    let mut lines = 0;
    for session in &sessions {
        let turn = session.settled().await.expect("it is driven");
        assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
        let head = steersman.engine().store().head(session.id()).await;
        lines += head.expect("it is there").0;
    }
    let took = watch.took();
    let held = resident().saturating_sub(before);
    steersman.engine().stop().await;
    Live {
        steps: took.rate(lines),
        each: held as f64 / count as f64,
        p50: gaps.quantile(0.5),
        p99: gaps.quantile(0.99),
    }
}

/// The section of many sessions.
pub(crate) fn report(table: &Table, size: Size) {
    let few = size.of(20, 2);
    let many = size.of(1_000, 20);
    let one = runtime().block_on(parked(few));
    let all = runtime().block_on(parked(many));
    let beside =
        format!("{many} sessions that wait for an approval, on a disk, each with its handle");
    let most = Goal::AtMost(20.0);
    table.row(
        "memory of a parked session",
        all.each / 1024.0,
        " KiB",
        most,
        &beside,
    );
    let beside = format!(
        "of {many}; {} ms, and {} ms of {few}",
        short(all.woken * 1e3),
        short(one.woken * 1e3)
    );
    let only = Goal::AtMost(1.0);
    table.row(
        "sessions that move when one is approved",
        all.moved as f64,
        "",
        only,
        &beside,
    );
    for (memory, place) in [(true, "in memory"), (false, "on a disk")] {
        let count = size.of(10_000, 20);
        let runs: Vec<Live> = (0..size.repeat.min(3))
            .map(|_| runtime().block_on(live(count, memory)))
            .collect();
        let mid = |of: fn(&Live) -> f64| median(runs.iter().map(of));
        let figure = format!("{count} live sessions of 10 turns, {place}");
        // A later run takes memory that an earlier one freed, so the largest value counts.
        let each = runs.iter().map(|r| r.each / 1024.0).fold(0.0, f64::max);
        let beside = format!(
            "{} KiB a session with its log in memory or its handle",
            short(each)
        );
        table.row(&figure, mid(|r| r.steps), " steps/s", Goal::None, &beside);
        let beside = format!("50 % within {} ms", short(mid(|r| r.p50 * 1e3)));
        let figure = format!("{figure}: 99 % of outcomes to the next wish within");
        table.row(&figure, mid(|r| r.p99 * 1e3), " ms", Goal::None, &beside);
    }
}
