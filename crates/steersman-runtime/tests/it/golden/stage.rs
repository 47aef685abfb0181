//! The ports and engines of a golden session, and the rendering of everything that its store holds.

use super::render::{Render, shown};
use crate::sequences::within;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_runtime::Boxed;
use steersman_runtime::clock::{Clock as _, Virtual};
use steersman_runtime::engine::{Engine, Inspection, Options, Parts, Process};
use steersman_runtime::inbox::Message;
use steersman_runtime::model::Models;
use steersman_runtime::past::DEFAULT_BOUND;
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Session;
use steersman_runtime::store::layer::Layer;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{
    Batch, Claim, IMMEDIATELY, InboxMessage, Left, MemoryQuery, SessionInfo, SessionQuery, Store,
    StoreError,
};
use steersman_runtime::store::{Blobs as _, Inbox as _, Lists as _, Log as _, Memories as _};
use steersman_runtime::toolset::Toolset;

/// The id of every session that is rendered.
pub(super) const SESSION: &str = "session";
/// The most turns of the runtime to wait for a session that comes to rest.
pub(super) const TURNS: usize = 50_000;

/// After so many turns a call that still runs waits for the clock: models and tools of these tests answer at once, but a
/// limiter may let a call wait, and no due time is known for that.
const STILL: usize = 300;
/// The step in which the clock advances then, in milliseconds.
const SECOND: u64 = 1_000;

/// A store in memory. It records the parts of a batch that the store port cannot read back, and it refuses lines above the
/// one after which the process is to die.
#[derive(Default)]
pub(super) struct Recorder {
    below: MemoryStore,
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    /// Lines above this one are refused. `None` means that all are written.
    last: Option<Line>,
    /// Open waits for events, by effect.
    waits: BTreeMap<Id, Vec<(Name, Arc<str>)>>,
    /// `urgent` and `begins_unsafe` of the batch of each line.
    batches: BTreeMap<Line, (bool, bool)>,
}

impl Recorder {
    /// Refuses lines above this one from now on. `None` ends that.
    pub(super) fn dies_after(&self, line: Option<Line>) {
        self.state.lock().unwrap().last = line;
    }

    /// Renders what the batch of a line said of the line.
    fn note(&self, line: Line) -> String {
        let state = self.state.lock().unwrap();
        let (urgent, begins) = state.batches.get(&line).copied().unwrap_or_default();
        let urgent = if urgent { ", urgent" } else { "" };
        let begins = if begins { ", begins unsafe" } else { "" };
        format!("{urgent}{begins}")
    }
}

impl Layer for Recorder {
    fn below(&self) -> &dyn Store {
        &self.below
    }

    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        let mut state = self.state.lock().unwrap();
        let newest = batch.rows.last().map(|row| row.n);
        if state.last.is_some() && newest > state.last {
            let killed = std::io::Error::other("the process was killed");
            let error = StoreError::Io {
                place: "the test".into(),
                source: Arc::new(killed),
            };
            return Box::pin(std::future::ready(Err(error)));
        }
        for row in &batch.rows {
            let said = (batch.urgent, batch.begins_unsafe);
            state.batches.insert(row.n, said);
        }
        for wait in &batch.waits {
            if wait.open.is_empty() {
                state.waits.remove(&wait.effect);
            } else {
                state.waits.insert(wait.effect, wait.open.clone());
            }
        }
        drop(state);
        self.below.append(claim, batch)
    }
}

/// The parts of a session that outlive a process.
pub(super) struct Stage {
    pub(super) store: Arc<Recorder>,
    pub(super) clock: Virtual,
    pub(super) sealer: Sealer,
    models: Arc<dyn Models>,
    tools: Arc<dyn Toolset>,
    memory: Memory,
}

/// What engines keep of a session in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// As usual.
    All,
    /// Nothing of its past, and nothing between two events that the store has: every job reads what it needs.
    Nothing,
}

impl Stage {
    pub(super) fn new(
        clock: Virtual,
        models: Arc<dyn Models>,
        tools: Arc<dyn Toolset>,
        memory: Memory,
    ) -> Self {
        Self {
            store: Arc::default(),
            clock,
            sealer: Sealer::new(&[7; 32]),
            models,
            tools,
            memory,
        }
    }

    /// Makes an engine over the store, as a new process does.
    pub(super) fn process(&self) -> Engine {
        Engine::new(Parts {
            store: self.store.clone(),
            clock: Arc::new(self.clock.clone()),
            models: self.models.clone(),
            toolsets: vec![self.tools.clone()],
            sealer: self.sealer.clone(),
            options: Options {
                env: Arc::new(|_| None),
                process: Process {
                    owner: "golden:1".into(),
                    build: "0".into(),
                },
                past_bytes: match self.memory {
                    Memory::All => DEFAULT_BOUND,
                    Memory::Nothing => 1,
                },
                cold: self.memory == Memory::Nothing,
                ..Options::default()
            },
        })
    }

    /// Waits until nothing goes on before a person acts or time passes. Returns the time at which something is due next.
    /// `waiting` returns the end times of tools that run for a given time.
    pub(super) async fn settle(
        &self,
        session: &Session,
        waiting: impl Fn() -> Vec<Time>,
    ) -> Result<Option<Time>, String> {
        let mut last = None;
        for turn in 0..TURNS {
            let outside = within(TURNS, session.outside()).await;
            let outside = outside.ok_or_else(|| format!("it is busy for ever, after {last:?}"))?;
            let outside = outside.map_err(|e| e.to_string())?;
            let (now, waiting) = (self.clock.now(), waiting());
            if outside.due.is_none_or(|due| due > now) {
                let soon = (outside.running != waiting.len()).then(|| now.plus(SECOND));
                if soon.is_none() || turn > STILL {
                    let due = waiting.into_iter().chain(outside.due).chain(soon);
                    return Ok(due.min());
                }
            }
            last = Some(outside);
            // A task whose time has come may not have been polled yet.
            tokio::task::yield_now().await;
        }
        Err(format!("it does not come to rest: {last:?}"))
    }
}

/// The rendering of one session. It grows while the session is played.
pub(super) struct Told {
    pub(super) text: String,
    render: Render,
    /// The last line that was rendered.
    cursor: Line,
    /// The rows of the lists at the last look.
    lists: Vec<String>,
}

impl Told {
    pub(super) fn new(sealer: Sealer) -> Self {
        Self {
            text: String::new(),
            render: Render::new(sealer),
            cursor: Line::NONE,
            lists: Vec::new(),
        }
    }

    /// Renders a message of the inbox.
    pub(super) fn message(&mut self, stored: &InboxMessage) {
        let row = self.inbox_row(stored);
        writeln!(self.text, "{row}").unwrap();
    }

    fn inbox_row(&mut self, stored: &InboxMessage) -> String {
        let (id, at) = (&stored.id, shown(stored.at));
        let message = Message::decode(stored).unwrap();
        format!("inbox {id} {at}: {}", self.render.value(&message))
    }

    /// Renders the lines that were written since the last call.
    pub(super) async fn lines(&mut self, stage: &Stage, engine: &Engine) {
        let mut feed = engine.feed(SESSION, self.cursor);
        for line in feed.lines().await.unwrap() {
            let note = stage.store.note(line.n);
            let line = (line.n, self.render.line(&line, &note));
            self.cursor = line.0;
            self.text.push_str(&line.1);
        }
    }

    /// Renders how the lists changed since the last call: the row of the session, pending, waits and inbox.
    /// `+` is a new row, `-` one that is gone.
    pub(super) async fn lists(&mut self, stage: &Stage, seen: &Inspection) {
        let mut rows = Vec::new();
        let query = SessionQuery {
            prefix: Some(SESSION.to_owned()),
            ..SessionQuery::default()
        };
        for info in stage.store.sessions(&query).await.unwrap() {
            let Left { wants, place, .. } = info.left.clone();
            if wants != Some(IMMEDIATELY) && (wants.is_some() || place.is_some()) {
                let wants = wants.map_or_else(|| "by mail alone".to_owned(), shown);
                rows.push(format!("seat: wanted {wants}, waits for {place:?}"));
            }
            rows.push(format!("session: {}", self.render.value(&Row(&info))));
        }
        for pending in &seen.pending {
            rows.push(format!("pending: {}", self.render.value(pending)));
        }
        let waits = stage.store.state.lock().unwrap().waits.clone();
        for (effect, open) in waits {
            let open = open.iter().map(|(event, key)| format!("{event} {key}"));
            let open: Vec<String> = open.collect();
            rows.push(format!("wait: {effect} {}", open.join(", ")));
        }
        for stored in stage.store.inbox(SESSION).await.unwrap().1 {
            rows.push(self.inbox_row(&stored));
        }
        let gone = self.lists.iter().filter(|row| !rows.contains(row));
        // The row of the session changes with most steps; its new state is enough.
        let gone = gone.filter(|row| !row.starts_with("session: "));
        for row in gone {
            writeln!(self.text, "- {row}").unwrap();
        }
        for row in rows.iter().filter(|row| !self.lists.contains(row)) {
            writeln!(self.text, "+ {row}").unwrap();
        }
        self.lists = rows;
    }

    /// Renders what the store holds apart from sessions: the event box, memories, and contents that were named.
    pub(super) async fn kept(&mut self, stage: &Stage) {
        for event in stage.store.event_box(None, NEVER, 1_000).await.unwrap() {
            let row = self.render.value(&event.fields);
            let (id, event, until) = (&event.id, &event.event, shown(event.until));
            writeln!(self.text, "event box: {id} {event} {row}, until {until}").unwrap();
        }
        let query = MemoryQuery {
            current: false,
            part: None,
            scope: None,
            id: None,
            session: None,
            now: NEVER,
        };
        for memory in stage.store.memories(query).await.unwrap() {
            let row = self.render.value(&memory);
            writeln!(self.text, "memory: {row}").unwrap();
        }
        for (name, hash) in std::mem::take(&mut self.render.contents) {
            if let Some(bytes) = stage.store.blob(&hash).await.unwrap() {
                let text = self.render.text(&String::from_utf8_lossy(&bytes));
                writeln!(self.text, "content of {name}: {text}").unwrap();
            }
        }
    }
}

/// A session in lists. What its last owner left is a row of its own.
struct Row<'a>(&'a SessionInfo);

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let info = self.0;
        f.debug_struct("SessionInfo")
            .field("id", &info.id)
            .field("network", &info.network)
            .field("key", &info.key)
            .field("created", &info.created)
            .field("salt", &info.salt)
            .field("head", &info.head)
            .field("state", &info.state)
            .field("labels", &info.labels)
            .field("owner", &info.owner)
            .finish()
    }
}

/// A time before everything, at which nothing has expired.
const NEVER: Time = Time(i64::MIN);
