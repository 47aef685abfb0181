//! Hot paths, each in a process of its own, whose instructions `cargo xtask counts` counts. One thread works at a time, and what
//! the kernel does is not counted, so a count depends neither on the load of the computer nor on its disk.

use crate::desk::{Desk, look, network};
use crate::store::{Lines, SALT, path};
use crate::world::{Looker, engine, run as drive};
use std::hint::black_box;
use std::sync::Arc;
use steersman_machine::context::{RenderCache, request};
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Line;
use steersman_machine::view::Cx;
use steersman_runtime::engine::Durability;
use steersman_runtime::past::Past;
use steersman_runtime::store::memory::MemoryStore;

/// Turns of a session before its requests are rendered.
const BEFORE: u64 = 40;
/// Different lines that are encoded in turn.
const LINES: usize = 40;

/// Runs a hot path so often. A run with 0 does only the preparation, which is the same for each number.
pub(crate) fn run(what: &str, times: u64) {
    match what {
        "tick" => ticks(times),
        "encode" => encodings(times),
        "render" => renderings(times),
        "store" => {
            path(times, 100);
        }
        "step" => steps(times),
        other => panic!("`{other}` is no hot path"),
    }
}

/// Ticks of a tool loop: the model calls, and the tool gives its result.
fn ticks(times: u64) {
    let mut lines = Lines::new();
    for _ in 0..times {
        black_box(lines.next());
    }
}

/// Encoding and hashing of lines.
fn encodings(times: u64) {
    let mut lines = Lines::new();
    let lines: Vec<LogLine> = std::iter::repeat_with(|| lines.next())
        .take(LINES)
        .collect();
    for line in lines.iter().cycle().take(times as usize) {
        black_box(codec::encode(line, &[0; 32], &SALT));
    }
}

/// Requests of model calls, of which all but the newest exchange was rendered before.
fn renderings(times: u64) {
    let network = network();
    let mut desk = Desk::new(network.clone());
    let store = Arc::new(MemoryStore::new());
    let past = Past::new(store, "bench".into(), [0; 16], Line::NONE, usize::MAX);
    let first = desk.start();
    let mut model = first.wish();
    past.add(Arc::new(first.line));
    let mut cache = RenderCache::default();
    let render = |desk: &Desk, cache: &mut RenderCache| {
        let cx = Cx {
            network: &network,
            bodies: &past,
        };
        let root = desk.snapshot.root.expect("it has begun");
        let rendered = request(&cx, &past, &desk.snapshot, root, cache);
        black_box(rendered.expect("it renders"));
    };
    for n in 0..BEFORE {
        render(&desk, &mut cache);
        let asked = desk.calls(model, vec![look(n)]);
        let done = desk.done(asked.wish());
        model = done.wish();
        past.add(Arc::new(asked.line));
        past.add(Arc::new(done.line));
    }
    for _ in 0..times {
        render(&desk, &mut cache.clone());
    }
}

/// Steps of a whole session: engine, driver and rendering, in memory.
fn steps(times: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let model = Looker::of(times);
    let engine = engine(Arc::new(MemoryStore::new()), Durability::Commit, &model);
    runtime.block_on(drive(&engine, 1));
}
