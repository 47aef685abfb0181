//! The cost of a session as it grows: its bytes on disk, a turn, and to open, fork, adopt and rewind it; and the bytes
//! of its branches.

use crate::desk::network;
use crate::measure::{Goal, Size, Table, Took, Watch, median, short};
use crate::store::file;
use crate::world::{Looker, answered, engine, rows, run, runtime, start};
use std::path::Path;
use std::sync::Arc;
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::Text;
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::Durability;
use steersman_runtime::session::Fork;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Log as _, Store};

/// The section of growth.
pub(crate) fn report(table: &Table, size: Size) {
    on_disk(table, size);
    late_turns(table, size);
}

/// The section of branches.
pub(crate) fn branches(table: &Table, size: Size) {
    long_sessions(table, size);
    many_branches(table, size);
}

fn on_disk(table: &Table, size: Size) {
    let path = file("disk.db");
    let empty = {
        drop(SqliteStore::open(&path).expect("it opens"));
        bytes(&path)
    };
    let (lines, content) = {
        let store = Arc::new(SqliteStore::open(&path).expect("it opens"));
        let engine = engine(
            store.clone(),
            Durability::Commit,
            &Looker::of(size.of(5_000, 50)),
        );
        runtime().block_on(async {
            let (lines, _) = run(&engine, 1).await;
            let rows = rows(&*store, "session0").await;
            (lines, rows.iter().map(|row| content(row)).sum::<u64>())
        })
    };
    let full = bytes(&path);
    let each = (full - empty).saturating_sub(content) as f64 / lines as f64;
    let beside = format!(
        "{} of content a line; {} lines, checkpoints and the definition in it",
        short(content as f64 / lines as f64),
        lines
    );
    let figure = "bytes on disk of a line beside its content";
    table.row(figure, each, " bytes", Goal::AtMost(300.0), &beside);
}

/// Bytes of a line's texts.
fn content(row: &[u8]) -> u64 {
    let (line, _) = codec::decode(row).expect("it was just written");
    let texts = line.bodies.iter().map(|text| match text {
        Text::Here(text) => text.len() as u64,
        Text::Blob { len, .. } => *len,
        Text::Erased { .. } | Text::Parts(_) => 0,
    });
    texts.sum()
}

fn bytes(path: &Path) -> u64 {
    let wal = path.with_extension("db-wal");
    let len = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    len(path) + len(&wal)
}

fn late_turns(table: &Table, size: Size) {
    let goal = Goal::AtMost(1.1);
    let disk = || -> Arc<dyn Store> {
        let store = SqliteStore::open(file("turns.db"));
        Arc::new(store.expect("it opens"))
    };
    let (first, late, last) = (size.of(100, 30), size.of(2_000, 60), size.of(8_000, 90));
    let half = size.of(50, 5);
    let view = "20 exchanges in view";
    turns(table, view, [first, late, half], disk, goal, size);
    let memory = || -> Arc<dyn Store> { Arc::new(MemoryStore::new()) };
    let bare = "the same without a disk";
    turns(table, bare, [first, late, half], memory, Goal::None, size);
    // A session of this length drops old lines from memory.
    turns(table, view, [late, last, half], disk, Goal::None, size);
}

/// Compares the turns around `last` with those around `first`: `half` turns before and after each.
fn turns(
    table: &Table,
    how: &str,
    [first, last, half]: [u64; 3],
    store: impl Fn() -> Arc<dyn Store>,
    goal: Goal,
    size: Size,
) {
    let mut early = Vec::new();
    let mut later = Vec::new();
    for _ in 0..size.repeat {
        let model = Looker::of(last + half + 1);
        model.mark(&[first - half, first + half, last - half, last + half]);
        let engine = engine(store(), Durability::Commit, &model);
        runtime().block_on(run(&engine, 1));
        let each = |from| model.between(from - half, from + half) * 1e6 / (2 * half) as f64;
        early.push(each(first));
        later.push(each(last));
    }
    let ratio = median(early.iter().zip(&later).map(|(early, late)| late / early));
    let beside = format!(
        "{} and {} us of CPU for a turn of two lines",
        short(median(later)),
        short(median(early))
    );
    let figure = format!("turn {last} over turn {first}, {how}");
    table.row(&figure, ratio, " times", goal, &beside);
}

/// Stores a session of so many turns, and closes it. Returns its last line.
fn grown(path: &Path, turns: u64) -> Line {
    let model = Looker::of(turns);
    let store = Arc::new(SqliteStore::open(path).expect("it opens"));
    let engine = engine(store, Durability::Commit, &model);
    runtime().block_on(async {
        let session = start(&engine, network(), "long").await;
        answered(&session).await;
        engine.stop().await;
        let head = engine.store().head("long").await;
        head.expect("it is there")
    })
}

/// Times to open a session, to fork it in the middle, to adopt that branch, and to rewind to the middle.
fn visit(path: &Path, middle: Line) -> [Took; 4] {
    let store = Arc::new(SqliteStore::open(path).expect("it opens"));
    let engine = engine(store, Durability::Commit, &Looker::of(0));
    runtime().block_on(async {
        let watch = Watch::start();
        let session = engine.open("long").await.expect("it opens");
        answered(&session).await;
        let opening = watch.took();
        let watch = Watch::start();
        let fork = Fork {
            at: Some(middle),
            ..Fork::default()
        };
        session.fork(fork).await.expect("it forks");
        let forking = watch.took();
        answered(&session).await;
        let branches = engine.inspect("long").await.expect("it is there").branches;
        let branch = branches.iter().map(|branch| branch.id).max();
        let branch = branch.expect("a fork is a branch");
        let watch = Watch::start();
        session.adopt(branch, None).await.expect("it is adopted");
        let adopting = watch.took();
        answered(&session).await;
        let watch = Watch::start();
        session.rewind(middle, None).await.expect("it rewinds");
        let rewinding = watch.took();
        answered(&session).await;
        engine.stop().await;
        [opening, forking, adopting, rewinding]
    })
}

fn long_sessions(table: &Table, size: Size) {
    let long_path = file("long.db");
    // The short session has ten interactions. It is made again for each visit.
    let brief = || {
        let path = file("short.db");
        let head = grown(&path, 2);
        (path, head)
    };
    let (_, short_head) = brief();
    let long_head = grown(&long_path, size.of(50_000, 200));
    let mut of_short = Vec::new();
    let mut of_long = Vec::new();
    for n in 0..size.repeat as u64 {
        let (path, head) = brief();
        of_short.push(visit(&path, Line(head.0 / 2)));
        // A rewind supersedes the lines after it, so each one goes a little further back.
        of_long.push(visit(&long_path, Line(long_head.0 / 2 - n)));
    }
    let deeds = ["opening", "forking", "adopting a branch of", "rewinding"];
    for (k, what) in deeds.into_iter().enumerate() {
        let cpu = |of: &[[Took; 4]]| median(of.iter().map(|all| all[k].cpu)) * 1e3;
        let clock = |of: &[[Took; 4]]| median(of.iter().map(|all| all[k].clock)) * 1e3;
        let (long, brief) = (cpu(&of_long), cpu(&of_short));
        let beside = format!(
            "{} and {} ms of CPU, {} and {} by the clock; {} and {} lines",
            short(long),
            short(brief),
            short(clock(&of_long)),
            short(clock(&of_short)),
            long_head,
            short_head,
        );
        // Opening reads the lines after the newest checkpoint. The short session has fewer than that.
        let goal = if k == 0 {
            Goal::None
        } else {
            Goal::AtMost(2.0)
        };
        let figure = format!("{what} a long session over a short one");
        table.row(&figure, long / brief, " times", goal, &beside);
    }
}

/// The bytes that branches of a long session, each with a message and its answer, add to the file in addition to their
/// texts.
fn many_branches(table: &Table, size: Size) {
    let path = file("branches.db");
    let (turns, count) = (size.of(1_000, 20), size.of(1_000, 20));
    let head = grown(&path, turns);
    let before = bytes(&path);
    let said = {
        let store = Arc::new(SqliteStore::open(&path).expect("it opens"));
        let engine = engine(store.clone(), Durability::Commit, &Looker::of(0));
        runtime().block_on(async {
            let session = engine.open("long").await.expect("it opens");
            answered(&session).await;
            for n in 0..count {
                let fork = Fork {
                    at: Some(head),
                    say: Some(format!("And if it were {n}?")),
                    ..Fork::default()
                };
                session.fork(fork).await.expect("it forks");
            }
            answered(&session).await;
            engine.stop().await;
            let all = store
                .rows("long", head.next(), Line::MAX, usize::MAX >> 1)
                .await;
            let all = all.expect("they are there");
            all.iter().map(|row| content(&row.bytes)).sum::<u64>()
        })
    };
    let each = (bytes(&path) - before).saturating_sub(said) as f64 / count as f64;
    let beside = format!(
        "{count} branches of a session of {turns} turns, {} of content each",
        short(said as f64 / count as f64)
    );
    let figure = "bytes on disk of a branch beside its content";
    table.row(figure, each, " bytes", Goal::AtMost(1024.0), &beside);
}
