//! Events of a session, and the place of a reader in them over all connections.

use crate::Client;
use crate::call::{Given, Patience, is_from_proxy, refusal};
use crate::error::Error;
use crate::frames::{Frame, Frames};
use crate::generated::{EventsFollowQuery, ProblemCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// An event of a session. The reference of events lists the kinds and their fields; more of both may be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The kind: `said`, `asked`, `piece`. `hello` comes first, and again after each break: pieces told before are void.
    #[serde(rename = "event")]
    pub kind: String,
    /// The position behind the event.
    pub cursor: String,
    /// The line of the log that holds it. Without one it is provisional: only readers that are attached now see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The name of the agent that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The other fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Event {
    /// Returns true if the event is in no line.
    pub fn is_provisional(&self) -> bool {
        self.line.is_none()
    }

    /// Returns a field that is text; empty if there is none.
    pub fn text(&self, field: &str) -> &str {
        let text = self.fields.get(field).and_then(Value::as_str);
        text.unwrap_or_default()
    }
}

/// Conditions on events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follow {
    /// The position after which the events begin: a cursor, `start` or `now`. Without one it is `start`.
    pub from: Option<String>,
    /// Kinds of events. Empty means all.
    pub kinds: Vec<String>,
    /// The id of a branch. Without one the events of all branches come.
    pub branch: Option<String>,
    /// True to end once the session has settled.
    pub until_settled: bool,
}

impl Follow {
    /// Returns the conditions that all events come, from the beginning, until the session has settled.
    pub fn until_settled() -> Self {
        Self {
            until_settled: true,
            ..Self::default()
        }
    }

    /// Returns the conditions with another position: a cursor, `start` or `now`.
    #[must_use]
    pub fn from(mut self, cursor: &str) -> Self {
        self.from = Some(cursor.to_owned());
        self
    }

    /// Returns the conditions with these kinds of events alone.
    #[must_use]
    pub fn kinds(mut self, kinds: &[&str]) -> Self {
        self.kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self
    }
}

/// The events of a session.
///
/// A broken connection is opened again behind the last event on disk, to this server or to one that was started in its place: no
/// event is missing, none comes twice.
#[derive(Debug)]
pub struct Events {
    client: Client,
    session: String,
    wanted: Follow,
    cursor: Option<String>,
    open: Option<Frames>,
    is_over: bool,
    /// Time and reason of the break that is being mended.
    broken: Option<Broken>,
}

struct Broken {
    patience: Patience,
    why: String,
}

impl std::fmt::Debug for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl Events {
    pub(crate) fn new(client: Client, session: &str, wanted: Follow) -> Self {
        Self {
            client,
            session: session.to_owned(),
            wanted,
            cursor: None,
            open: None,
            is_over: false,
            broken: None,
        }
    }

    /// Returns the position behind the last event on disk that was told, or from which the events begin.
    pub fn cursor(&self) -> &str {
        let from = self.wanted.from.as_deref();
        self.cursor.as_deref().or(from).unwrap_or("start")
    }

    /// Returns the next event; `None` once the session has settled, if that was wanted.
    ///
    /// # Errors
    /// [`Error::StreamEnded`] if there was no connection for the time of the client's patience; a problem of the server that
    /// another attempt does not mend. After an error the events go on from [`Events::cursor`].
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        while !self.is_over {
            match self.step().await {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(error) => {
                    self.open = None;
                    if let Err(error) = self.pause(error).await {
                        self.broken = None;
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }

    async fn step(&mut self) -> Result<Option<Event>, Error> {
        if self.open.is_none() {
            self.open = Some(self.connect().await?);
        }
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let Some(frame) = open.next().await? else {
            return Err(Error::ConnectionLost {
                url: self.client.transport.url().to_owned(),
                why: "the stream ended".to_owned(),
                help: "follow from the last cursor",
            });
        };
        self.broken = None;
        self.take(frame)
    }

    async fn connect(&self) -> Result<Frames, Error> {
        let mut kinds = self.wanted.kinds.clone();
        if !kinds.is_empty() && self.wanted.until_settled {
            // The end is known by it.
            kinds.push("settled".to_owned());
        }
        let query = EventsFollowQuery {
            from: match &self.cursor {
                Some(_) => None,
                None => Some(self.cursor().to_owned()),
            },
            kinds: (!kinds.is_empty()).then(|| kinds.join(",")),
            branch: self.wanted.branch.clone(),
            until: self.wanted.until_settled.then(|| "settled".to_owned()),
        };
        let given = Given {
            last_event_id: self.cursor.clone(),
            ..Given::default()
        };
        let events = self.client.events();
        events.follow(&self.session, &query, &given).await
    }

    fn take(&mut self, frame: Frame) -> Result<Option<Event>, Error> {
        let told = frame.data.to_string();
        if frame.event == "problem" {
            return Err(refusal(200, "text/event-stream", told.as_bytes()));
        }
        let mut data = frame.data;
        data["event"] = frame.event.into();
        if data["cursor"].is_null() {
            data["cursor"] = self.cursor().into();
        }
        let event: Event = serde_json::from_value(data)
            .map_err(|why| Error::invalid(200, "text/event-stream", why, told.as_bytes()))?;
        if event.kind == "hello" {
            self.cursor = Some(event.cursor.clone());
            return Ok(Some(event));
        }
        if let Some(cursor) = frame.id {
            self.cursor = Some(cursor);
        }
        self.is_over = event.kind == "settled" && self.wanted.until_settled;
        let kinds = &self.wanted.kinds;
        let is_wanted = kinds.is_empty() || kinds.contains(&event.kind);
        Ok(is_wanted.then_some(event))
    }

    /// Waits until the stream is opened again after an error.
    async fn pause(&mut self, error: Error) -> Result<(), Error> {
        if !may_come_back(&error) {
            return Err(error);
        }
        let client = &self.client;
        let broken = self.broken.get_or_insert_with(|| Broken {
            patience: client.transport.patience(),
            why: String::new(),
        });
        broken.why = error.to_string();
        if broken.patience.pause(Duration::ZERO).await {
            return Ok(());
        }
        Err(Error::StreamEnded {
            session: self.session.clone(),
            cursor: self.cursor().to_owned(),
            url: self.client.transport.url().to_owned(),
            why: error.to_string(),
        })
    }
}

/// Returns true if a stream that this error ended is opened again.
fn may_come_back(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } | Error::ConnectionLost { .. } => true,
        Error::InvalidAnswer { status, .. } => is_from_proxy(*status),
        Error::Problem(problem) => matches!(
            problem.code,
            ProblemCode::Store
                | ProblemCode::Stopping
                | ProblemCode::Late
                | ProblemCode::Rate
                | ProblemCode::Streams
        ),
        _ => false,
    }
}

/// The streamed pieces of answers that are not complete yet, by the model call. Give it every event.
#[derive(Clone, Debug, Default)]
pub struct Pieces(BTreeMap<String, String>);

impl Pieces {
    /// Adds a piece, or drops those that are void: after a break, a withdrawal, or the complete text.
    pub fn take(&mut self, event: &Event) {
        let effect = event.text("effect");
        match &*event.kind {
            "hello" => self.0.clear(),
            "piece" => {
                let text = self.0.entry(effect.to_owned()).or_default();
                text.push_str(event.text("text"));
            }
            "withdrawn" | "said" => {
                self.0.remove(effect);
            }
            _ => {}
        }
    }

    /// Returns what has been streamed of answers that are not complete.
    pub fn text(&self) -> String {
        self.0.values().map(String::as_str).collect()
    }
}
