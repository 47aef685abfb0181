//! The whole durable loop: engine, driver, rendering and store, with a model and a tool that take no time.

use crate::desk::{Desk, look, network};
use crate::measure::{Goal, Size, Table, Took, median, short, timed};
use crate::store::{bare, file, path};
use crate::world::{Looker, engine, rows, run, runtime};
use std::sync::Arc;
use std::time::Duration;
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::context::{RenderCache, request};
use steersman_machine::stored::ids::Line;
use steersman_machine::view::Cx;
use steersman_runtime::engine::Durability;
use steersman_runtime::past::Past;
use steersman_runtime::store::memory::MemoryStore;

/// Figures of one session on a disk.
struct Driven {
    lines: u64,
    transactions: u64,
    took: Took,
    rows: Vec<Vec<u8>>,
}

fn driven(turns: u64, durability: Durability) -> Driven {
    let store = Arc::new(SqliteStore::open(file("whole.db")).expect("it opens"));
    let engine = engine(store.clone(), durability, &Looker::of(turns));
    runtime().block_on(async {
        let before = store.transactions();
        let (lines, took) = run(&engine, 1).await;
        Driven {
            lines,
            transactions: store.transactions() - before,
            took,
            rows: rows(&*store, "session0").await,
        }
    })
}

/// CPU time of rendering for one line of a tool loop, in microseconds. A model call follows every second line.
fn rendering(turns: u64) -> f64 {
    let network = network();
    let mut desk = Desk::new(network.clone());
    let past = Past::new(
        Arc::new(MemoryStore::new()),
        "bench".into(),
        [0; 16],
        Line::NONE,
        usize::MAX,
    );
    let first = desk.start();
    let mut model = first.wish();
    past.add(Arc::new(first.line));
    let (mut cache, mut all) = (RenderCache::default(), 0.0);
    for n in 0..turns {
        let cx = Cx {
            network: &network,
            bodies: &past,
        };
        let root = desk.snapshot.root.expect("it has begun");
        let (rendered, took) = timed(|| request(&cx, &past, &desk.snapshot, root, &mut cache));
        rendered.expect("it renders");
        all += took.cpu;
        let asked = desk.calls(model, vec![look(n)]);
        let done = desk.done(asked.wish());
        model = done.wish();
        past.add(Arc::new(asked.line));
        past.add(Arc::new(done.line));
    }
    all * 1e6 / (turns * 2) as f64
}

/// The section of the whole loop.
pub(crate) fn report(table: &Table, size: Size) {
    let rendering = rendering(size.of(4_000, 40));
    let (step, commit) = (size.of(400, 10), size.of(5_000, 20));
    beside_bare(table, Durability::Step, step, rendering, size.more());
    beside_bare(table, Durability::Commit, commit, rendering, size);
    synced(table, size);
}

fn beside_bare(table: &Table, durability: Durability, turns: u64, rendering: f64, size: Size) {
    // Only the loop that syncs every line has goals. The other one is compared with an insert of the same bytes in as
    // many transactions, each of which holds many lines.
    let (about, cpu_goal, rate_goal) = match durability {
        Durability::Step => ("every line synced", Goal::AtMost(2.5), Goal::AtLeast(80.0)),
        Durability::Commit => ("by the output-commit rule", Goal::None, Goal::None),
    };
    let mut all = Vec::new();
    for _ in 0..size.repeat {
        let whole = driven(turns, durability);
        let group = (whole.lines / whole.transactions.max(1)).max(1);
        let bare = bare(&whole.rows, whole.transactions);
        let path = path(whole.lines, group);
        all.push((whole, bare, path));
    }
    let cpu = median(all.iter().map(|(w, b, _)| w.took.cpu / b.cpu));
    let ours = median(all.iter().map(|(w, ..)| w.took.micros(w.lines)));
    let bare = median(all.iter().map(|(w, b, _)| b.micros(w.lines)));
    let path = median(all.iter().map(|(w, _, p)| p.micros(w.lines)));
    let beside = format!(
        "{} and {} us a line, {} lines a transaction; store path {}, rendering {}, driver with tasks {}",
        short(ours),
        short(bare),
        short(median(
            all.iter()
                .map(|(w, ..)| w.lines as f64 / w.transactions as f64)
        )),
        short(path),
        short(rendering),
        short(ours - path - rendering),
    );
    let figure = format!("whole loop, {about}: CPU over a bare insert");
    table.row(&figure, cpu, " times", cpu_goal, &beside);
    let rate = median(all.iter().map(|(w, b, _)| b.clock / w.took.clock));
    let beside = format!(
        "{} and {} steps/s",
        short(median(all.iter().map(|(w, ..)| w.took.rate(w.lines)))),
        short(median(all.iter().map(|(w, b, _)| b.rate(w.lines)))),
    );
    let figure = format!("whole loop, {about}: steps/s over a bare insert");
    table.row(&figure, rate * 100.0, " %", rate_goal, &beside);
}

/// Steps a second if a sync takes a millisecond.
fn rate(turns: u64, durability: Durability, sessions: usize) -> f64 {
    let store = MemoryStore::with_sync(Duration::from_millis(1));
    let engine = engine(Arc::new(store), durability, &Looker::of(turns));
    let (lines, took) = runtime().block_on(run(&engine, sessions));
    took.rate(lines)
}

fn synced(table: &Table, size: Size) {
    let mid = |turns, durability, sessions| {
        median((0..size.repeat.min(3)).map(|_| rate(turns, durability, sessions)))
    };
    let step = mid(size.of(400, 5), Durability::Step, 1);
    let commit = mid(size.of(10_000, 20), Durability::Commit, 1);
    let beside = format!("{} and {} steps/s", short(commit), short(step));
    table.row(
        "sync of 1 ms: output-commit rule over a sync each line, `read` tools",
        commit / step,
        " times",
        Goal::AtLeast(10.0),
        &beside,
    );
    let together = mid(size.of(200, 5), Durability::Step, 64);
    let beside = format!(
        "{} and {} steps/s, each line synced",
        short(together),
        short(step)
    );
    table.row(
        "sync of 1 ms: 64 sessions over one",
        together / step,
        " times",
        Goal::AtLeast(10.0),
        &beside,
    );
    let together = mid(size.of(500, 5), Durability::Commit, 64);
    let beside = format!("{} steps/s", short(together));
    table.row(
        "sync of 1 ms: 64 sessions over one, by the output-commit rule",
        together / commit,
        " times",
        Goal::None,
        &beside,
    );
}
