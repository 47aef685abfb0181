//! Contexts of models: the cost of rendering when little is new, and the share of a request that repeats the request
//! before.

use crate::desk::{Desk, Texts, Ticked, look, network_of};
use crate::measure::{Goal, Size, Table, median, short, timed};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use steersman_machine::context::{History, RenderCache, Request, request};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Hooked, Push};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Name};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;
use steersman_machine::view::Cx;

/// One agent that calls `look` again and again.
const DEFINITION: &str = r"
steersman: 1
name: bench
models: { default: scripted }
tools:
  look: { description: Looks something up., parameters: { what: string }, effect: read, native: 1, RENDER }
agents:
  main:
    system: SYSTEM
    tools: [look]
    limits: { model_calls: 100000000, agent_calls: 100000000, ticks: 100000000, same_call: 100000000 }
    context: { keep_exchanges: KEEP }
limits: { tokens: 1000000000000 }
";

fn definition(system: &str, render: &str, keep: u64) -> String {
    DEFINITION
        .replace("SYSTEM", system)
        .replace("RENDER", render)
        .replace("KEEP", &keep.to_string())
}

/// A session in memory whose stacks can be read.
pub(crate) struct Book {
    desk: Desk,
    pushes: BTreeMap<Line, Vec<Push>>,
    agent: Id,
}

/// Stacks and texts, as rendering reads them.
struct Pages<'a>(&'a Texts, &'a BTreeMap<Line, Vec<Push>>);

impl Bodies for Pages<'_> {
    fn parts(&self, body: Body) -> Parts {
        self.0.parts(body)
    }
}

impl History for Pages<'_> {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        let own = || self.1[&line].iter().filter(|push| push.agent == agent);
        let below = own().map(|push| push.prev).find(|prev| *prev != line);
        let what = own().map(|push| push.what.clone());
        (what.collect(), below.unwrap_or(Line::NONE))
    }

    fn hooked(&self, _: Id) -> Vec<Hooked> {
        Vec::new()
    }
}

impl Book {
    /// Starts a session. Returns it with its first model call.
    fn begun(definition: &str, found: String) -> (Self, Id) {
        let mut desk = Desk::new(network_of(definition)).giving(found);
        let started = desk.start();
        let mut agents = desk.snapshot.agents.keys();
        let agent = *agents.next_back().expect("a session begins with an agent");
        let mut book = Self {
            desk,
            pushes: BTreeMap::new(),
            agent,
        };
        let model = book.noted(&started);
        (book, model)
    }

    /// Keeps the interactions that a tick pushed. Returns the effect that it asks for.
    fn noted(&mut self, ticked: &Ticked) -> Id {
        let commit = ticked.line.commit.as_ref().expect("a tick was taken");
        self.pushes.insert(ticked.line.n, commit.pushes.clone());
        ticked.wish()
    }

    /// One turn: the model calls `look`, and the tool gives a result. Returns the next model call.
    pub(crate) fn turn(&mut self, model: Id) -> Id {
        let called = self.desk.calls(model, vec![look(self.desk.last.0)]);
        let tool = self.noted(&called);
        let given = self.desk.done(tool);
        self.noted(&given)
    }

    /// Renders the request of the next model call.
    pub(crate) fn render(&self, cache: &mut RenderCache) -> Request {
        self.render_of(&self.desk.snapshot, cache)
    }

    fn render_of(&self, snapshot: &Snapshot, cache: &mut RenderCache) -> Request {
        let pages = Pages(&self.desk.texts, &self.pushes);
        let cx = Cx {
            network: &self.desk.network,
            bodies: &pages,
        };
        request(&cx, &pages, snapshot, self.agent, cache).expect("it renders")
    }
}

/// A tool loop that has just begun and keeps all of it in view, and its first model call.
pub(crate) fn whole() -> (Book, Id) {
    let all = definition("You look things up.", "parallel: 1", 1_000_000);
    Book::begun(&all, crate::desk::found())
}

/// The section of contexts.
pub(crate) fn report(table: &Table, size: Size) {
    let turn = size.of(1_000, 30);
    let brief = "You look things up for people who are in a hurry.";
    let all = definition(brief, "parallel: 1", 2 * turn);
    incremental(table, size, turn, &all, "all of it in view");
    let usual = definition(brief, "parallel: 1", 50);
    incremental(table, size, turn, &usual, "50 exchanges and more in view");
    prefixes(table, 4);
    prefixes(table, 10);
}

/// Compares rendering around a turn with the cache of the turn before and without a cache.
fn incremental(table: &Table, size: Size, turn: u64, definition: &str, view: &str) {
    let (mut book, mut model) = Book::begun(definition, crate::desk::found());
    let mut cache = RenderCache::default();
    let around = size.of(100, 5);
    for _ in 0..turn - around / 2 {
        model = book.turn(model);
    }
    book.render(&mut cache);
    let (mut warm, mut cold, mut len) = (Vec::new(), Vec::new(), 0);
    for _ in 0..around {
        model = book.turn(model);
        let (shown, took) = timed(|| book.render(&mut cache));
        warm.push(took.micros(1));
        let (full, took) = timed(|| book.render(&mut RenderCache::default()));
        cold.push(took.micros(1));
        assert_eq!(full.digest, shown.digest, "the cache changes nothing");
        len = black_box(full.segments.bytes());
    }
    assert_eq!(cache.differed(), 0, "the cache changes nothing");
    let (warm, cold) = (median(warm), median(cold));
    let beside = format!(
        "{} and {} us of CPU for a request of {} KB",
        short(cold),
        short(warm),
        short(len as f64 / 1e3)
    );
    let figure = format!("full rendering over incremental, turn {turn}, {view}");
    table.row(&figure, cold / warm, " times", Goal::AtLeast(20.0), &beside);
}

/// Computes one figure.
type Of = fn(&Sent) -> f64;

/// Sizes of all requests of a task.
#[derive(Default)]
struct Sent {
    bytes: u64,
    /// Bytes at the beginning of a request that are the same in the request before.
    stable: u64,
}

impl Sent {
    fn add(&mut self, request: &Request) {
        self.bytes += request.segments.bytes();
        self.stable += request.prefix;
    }

    fn percent(&self) -> f64 {
        self.stable as f64 * 100.0 / self.bytes as f64
    }

    /// Tokens that are not cached. A token is about four bytes.
    fn uncached(&self) -> f64 {
        (self.bytes - self.stable) as f64 / 4.0
    }

    /// Tokens that are paid for, if a cached token costs a tenth.
    fn paid(&self) -> f64 {
        self.uncached() + self.stable as f64 / 40.0
    }
}

/// A task of 30 turns whose results age. Compares a boundary that moves in chunks with one that moves each turn.
fn prefixes(table: &Table, horizon: u32) {
    let brief = "You look things up for people who are in a hurry. ".repeat(40);
    let render = format!("render: {{ horizon: {horizon}, beyond: stub }}");
    let definition = definition(&brief, &render, 50);
    let found = crate::desk::found().repeat(4)[..2_000].to_owned();
    let (mut book, mut model) = Book::begun(&definition, found);
    let (mut chunked, mut naive) = (Sent::default(), Sent::default());
    let (mut cache, mut other) = (RenderCache::default(), RenderCache::default());
    let policy = Name::from("horizon/look");
    let turns = 30;
    for turn in 0..=turns {
        chunked.add(&book.render(&mut cache));
        let mut exact = book.desk.snapshot.clone();
        let closed = exact.agent(book.agent).context.exchanges;
        let mark = closed.saturating_sub(horizon);
        exact.watermarks.insert((book.agent, policy.clone()), mark);
        naive.add(&book.render_of(&exact, &mut other));
        if turn < turns {
            model = book.turn(model);
        }
    }
    let moved = (book.agent, policy);
    let known = book.desk.snapshot.watermarks.contains_key(&moved);
    assert!(known, "the boundary is known by this name");
    let both = |of: Of| (of(&chunked), short(of(&naive)));
    let (value, bare) = both(Sent::percent);
    let beside = format!(
        "{bare} % with a boundary that moves each turn; results of 2 KB, 2 KB of instructions"
    );
    let figure = format!("input that the call before began with, {turns} turns, horizon {horizon}");
    table.row(&figure, value, " %", Goal::AtLeast(85.0), &beside);
    let rows: [(&str, Of); 3] = [
        ("uncached tokens of that task", Sent::uncached),
        ("the same, and a tenth of those that are cached", Sent::paid),
        ("all its tokens", |sent| sent.bytes as f64 / 4.0),
    ];
    for (figure, of) in rows {
        let (value, bare) = both(of);
        let beside = format!("{bare} with a boundary that moves each turn");
        table.row(figure, value, "", Goal::None, &beside);
    }
}
