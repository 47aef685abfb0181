//! A chat with its whole history in view: the cost of a late turn over that of an early one.

use crate::desk::network_of;
use crate::measure::{Goal, Size, Table, median, short, timed};
use crate::world::{Looker, answered, engine, runtime, start};
use std::hint::black_box;
use std::sync::Arc;
use steersman_machine::context::RenderCache;
use steersman_machine::network::Network;
use steersman_runtime::engine::Durability;
use steersman_runtime::store::memory::MemoryStore;

const DEFINITION: &str = r"
steersman: 1
name: bench
models: { default: scripted }
agents:
  main:
    system: You talk to people who are in a hurry.
    limits: { model_calls: 100000000, agent_calls: 100000000, ticks: 100000000 }
    context: { keep_exchanges: 1000000 }
limits: { tokens: 1000000000000 }
";

/// The section of chats.
pub(crate) fn report(table: &Table, size: Size) {
    let (first, last, half) = (size.of(100, 20), size.of(2_000, 60), size.of(50, 5));
    let network = network_of(DEFINITION);
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for _ in 0..size.repeat {
        let between = turns(
            &network,
            [first - half, first + half, last - half, last + half],
        );
        let each = |seconds: f64| seconds * 1e6 / (2 * half) as f64;
        early.push(each(between[0]));
        late.push(each(between[1]));
    }
    let ratio = median(early.iter().zip(&late).map(|(early, late)| late / early));
    let beside = format!(
        "{} and {} us of CPU for a turn, in memory",
        short(median(late)),
        short(median(early))
    );
    let figure = format!("chat, all of it in view: turn {last} over turn {first}");
    table.row(&figure, ratio, " times", Goal::AtMost(1.2), &beside);
    rendering(table, [first, last], size);
}

/// Seconds of CPU between the first two of these turns, and between the last two.
fn turns(network: &Arc<Network>, at: [u64; 4]) -> [f64; 2] {
    let model = Looker::of(0);
    model.mark(&at);
    let engine = engine(Arc::new(MemoryStore::new()), Durability::Commit, &model);
    runtime().block_on(async {
        let session = start(&engine, network.clone(), "chat").await;
        answered(&session).await;
        for n in 1..=at[3] {
            let question = format!("And which lamp is green in room {n}?");
            session.say(&question).await.expect("it takes a message");
            answered(&session).await;
        }
        engine.stop().await;
    });
    [model.between(at[0], at[1]), model.between(at[2], at[3])]
}

/// Compares the requests of both turns, and clones of their caches.
fn rendering(table: &Table, turns: [u64; 2], size: Size) {
    let [early, late] = turns.map(|turns| {
        let (mut book, mut model) = crate::contexts::whole();
        let mut cache = RenderCache::default();
        let (mut renders, mut clones) = (Vec::new(), Vec::new());
        for n in 0..turns + size.of(50, 5) {
            model = book.turn(model);
            let (request, took) = timed(|| book.render(&mut cache));
            black_box(request.segments.len());
            if n >= turns {
                renders.push(took.micros(1));
                let copies = timed(|| (0..100).map(|_| cache.clone()).collect::<Vec<_>>());
                clones.push(copies.1.micros(100));
            }
        }
        (median(renders), median(clones))
    });
    let [first, last] = turns;
    let rows = [
        ("a request", late.0, early.0),
        ("a clone of what was rendered", late.1, early.1),
    ];
    for (what, late, early) in rows {
        let beside = format!("{} and {} us of CPU, tool loop", short(late), short(early));
        let figure = format!("{what}, all in view: turn {last} over turn {first}");
        table.row(&figure, late / early, " times", Goal::AtMost(1.2), &beside);
    }
}
