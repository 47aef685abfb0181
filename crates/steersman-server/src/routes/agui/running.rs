//! A run that is told.

use super::begin::Begin;
use super::{Refusal, frame};
use crate::caller::Caller;
use crate::permission::Permission;
use crate::problem::Problem;
use crate::protocol::agui::{Agui, Form};
use crate::protocol::turn::Turn;
use crate::stream::streamed;
use axum::response::Response;
use axum::response::sse::Event as Frame;
use futures::stream;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use steersman::machine::snapshot::Snapshot;
use steersman::machine::snapshot::fold::fold;
use steersman::machine::stored::ids::{Id, Line, Name};
use steersman::runtime::engine::EngineError;
use steersman::views::event::Teller;
use steersman::views::log::Log;
use steersman::views::page;
use steersman::views::reader::{PAGE, Reader as _, Stored};
use steersman::{Event, EventKind, Events};

/// The place of a run in its session.
pub(super) struct Told {
    /// Its first line.
    pub(super) line: Line,
    /// The last line that took something of it. The session settles after that line.
    pub(super) settles: Line,
    /// The messages that it is about.
    pub(super) own: Vec<Name>,
    /// True if the client may not have what was told before.
    pub(super) attached: bool,
    /// True if its message waits, and nothing else is told.
    pub(super) waits: bool,
}

/// A run that is told.
pub(super) struct Running {
    events: Events,
    agui: Agui,
    states: States,
    ready: VecDeque<Frame>,
    is_over: bool,
}

impl Running {
    /// Reads the conversation up to the run.
    pub(super) async fn new(begin: &Begin<'_>, told: Told) -> Result<Self, Refusal> {
        let Begin {
            caller,
            network,
            session,
            input,
            ..
        } = begin;
        let engine = caller.steersman.engine();
        let reader = Arc::new(if caller.may(Permission::Context) {
            Stored::plain(engine, session)
        } else {
            Stored::masked(engine, session)
        });
        let speakers = caller.speakers(network, session).await?;
        let turn = Turn::new(told.line, speakers.clone()).with(told.own);
        let form = Form {
            session: (*session).clone(),
            line: told.line,
            thread: input.thread_id.clone(),
            run: input.run_id.clone(),
            parent: input.parent_run_id.clone(),
            network: network.checked().clone(),
            roles: begin.roles.clone(),
            page: caller.page(session),
            attached: told.attached,
        };
        let mut agui = Agui::new(form, turn, speakers);
        let log = Log::read(&*reader).await?;
        let first = log.lines.iter().find(|line| line.n == told.line);
        let upto = match first {
            Some(first) if !told.waits => first.prev,
            _ => told.line,
        };
        let mut teller = Teller::new(reader.clone());
        let mut states = States {
            branch: first.map_or(Id::MAIN, |first| first.branch),
            snapshot: Snapshot::empty(),
            at: upto,
            reader,
        };
        for line in log.up_to(upto) {
            states.snapshot = fold(
                std::mem::replace(&mut states.snapshot, Snapshot::empty()),
                line,
            );
            agui.line(states.snapshot.clone(), Map::new());
            for event in &teller.line(line).await? {
                agui.past(event);
            }
        }
        agui.line(states.snapshot.clone(), states.state());
        let mut running = Self {
            events: caller
                .follows(session, told.line)
                .settled_after(told.settles),
            agui,
            states,
            ready: VecDeque::new(),
            is_over: told.waits,
        };
        if told.waits {
            let open = caller.open(session).await?;
            let messages = running.agui.waits(open);
            running.ready.extend(messages.iter().map(frame));
        }
        Ok(running)
    }

    /// Answers with the stream of the run.
    pub(super) fn stream(self, caller: Caller) -> Response {
        let frames = stream::unfold((self, caller), |(mut own, caller)| async move {
            let frame = own.next(&caller).await?;
            Some((frame, (own, caller)))
        });
        streamed(frames)
    }

    async fn next(&mut self, caller: &Caller) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.is_over {
                return None;
            }
            let next = tokio::select! {
                next = self.events.next() => next,
                () = caller.server.stopping().cancelled() => None,
            };
            let heard = match next {
                Some(Ok(event)) => self.hear(&event).await.map_err(Problem::from),
                Some(Err(error)) => Err(error.into()),
                None => Err(caller.late()),
            };
            if let Err(problem) = heard {
                self.is_over = true;
                return Some(Refusal::from(problem).frame());
            }
        }
    }

    async fn hear(&mut self, event: &Event) -> Result<(), EngineError> {
        let branch = self.agui.turn().branch();
        let line = match &event.kind {
            EventKind::Settled(_) => Some(self.agui.turn().head),
            _ if branch.is_none_or(|branch| branch == event.branch) => event.line,
            _ => None,
        };
        if let Some(line) = line.filter(|line| *line > self.states.at) {
            self.states.upto(line).await?;
            self.agui
                .line(self.states.snapshot.clone(), self.states.state());
        }
        let messages = self.agui.event(event);
        let last = messages.len().saturating_sub(1);
        let frames = messages.iter().enumerate().map(|(n, message)| {
            let frame = frame(message);
            // A client may go on from there with the events of the session.
            match event.line {
                Some(_) if n == last => frame.id(event.cursor.to_string()),
                _ => frame,
            }
        });
        self.ready.extend(frames);
        self.is_over = self.agui.turn().end.is_some();
        Ok(())
    }
}

/// The state of a branch, line by line.
struct States {
    reader: Arc<Stored>,
    branch: Id,
    snapshot: Snapshot,
    at: Line,
}

impl States {
    /// Reads the lines of the branch up to one.
    async fn upto(&mut self, upto: Line) -> Result<(), EngineError> {
        while self.at < upto {
            let lines = self.reader.lines(self.at, PAGE).await?;
            if lines.is_empty() {
                break;
            }
            for line in lines {
                if line.n > upto {
                    return Ok(());
                }
                self.at = line.n;
                if line.branch == self.branch {
                    let before = std::mem::replace(&mut self.snapshot, Snapshot::empty());
                    self.snapshot = fold(before, &line);
                }
            }
        }
        Ok(())
    }

    /// Returns the state by name, as the token may see it.
    fn state(&self) -> Map<String, Value> {
        let mut state = Value::Object(page::state(&self.snapshot));
        if let Some(known) = self.reader.known() {
            known.mask(&mut state);
        }
        match state {
            Value::Object(state) => state,
            _ => Map::new(),
        }
    }
}
