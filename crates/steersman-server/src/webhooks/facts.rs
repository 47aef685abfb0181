//! Facts of a session that webhooks tell: a function of its lines.

use super::Kind;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use steersman::machine::stored::commit::LogLine;
use steersman::machine::stored::ids::Time;
use steersman::runtime::engine::{Engine, EngineError};
use steersman::runtime::store::{Delivered, SessionInfo};
use steersman::views::event::{Teller, Tried};
use steersman::views::reader::Stored;
use steersman::{Cursor, Event, EventKind, Turn};

/// Number of open questions that the fact of a session names.
const QUESTIONS: usize = 32;
/// Maximum number of bytes of the body of a message.
const BODY: usize = 20_000;
/// Number of events of a line that were delivered if all of them were.
pub(super) const ALL: u32 = u32::MAX;

/// A fact.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    /// The id of its messages, which follows from its place in the log.
    pub(super) id: String,
    /// The body of its messages.
    pub(super) body: String,
    /// Time of its line.
    pub(super) at: Time,
    /// The position behind it.
    pub(super) upto: Delivered,
}

/// Reads the facts of a session.
pub(super) struct Facts {
    engine: Engine,
    pub(super) info: SessionInfo,
    pub(super) reader: Arc<Stored>,
    teller: Teller,
}

impl Facts {
    pub(super) fn of(engine: &Engine, info: SessionInfo) -> Self {
        let reader = Arc::new(Stored::plain(engine, &info.id));
        Self {
            engine: engine.clone(),
            teller: Teller::new(reader.clone()),
            reader,
            info,
        }
    }

    /// Returns the facts of a line after a position that are of these kinds, in order.
    pub(super) async fn line(
        &mut self,
        line: &LogLine,
        after: Delivered,
        wants: impl Fn(Kind) -> bool,
    ) -> Result<Vec<Fact>, EngineError> {
        let mut facts = Vec::new();
        for (k, event) in (1..).zip(self.teller.line(line).await?) {
            let upto = Delivered {
                line: line.n,
                events: k,
            };
            let Some((kind, data)) = of_event(&event).filter(|(kind, _)| wants(*kind)) else {
                continue;
            };
            if upto <= after {
                continue;
            }
            let mut data = data;
            if kind == Kind::Artifact {
                // Somebody outside may have named it.
                let known = self.engine.secrets_of(&self.info.id).await?;
                known.mask(&mut data);
            }
            data["branch"] = event.branch.to_string().into();
            if let Some(agent) = &event.agent {
                data["agent"] = (**agent).into();
            }
            facts.push(self.fact(kind, line, (k, event.cursor), upto, data));
        }
        let settles = wants(Kind::Settled) || wants(Kind::Failed);
        let upto = Delivered {
            line: line.n,
            events: ALL,
        };
        if settles
            && upto > after
            && let Some(settled) = self.engine.settled_with(&self.info.id, line).await?
        {
            let (kind, data) = of_turn(&Turn::from(&settled));
            if wants(kind) {
                // It is no event on disk: events of a line are counted from 1.
                let cursor = (0, Cursor::from(line.n));
                facts.push(self.fact(kind, line, cursor, upto, data));
            }
        }
        Ok(facts)
    }

    fn fact(
        &self,
        kind: Kind,
        line: &LogLine,
        (k, cursor): (u32, Cursor),
        upto: Delivered,
        of_kind: Value,
    ) -> Fact {
        let session = &self.info.id;
        let mut data = json!({
            "session": session,
            "definition": self.info.network,
            "cursor": cursor.to_string(),
        });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, of_kind) {
            data.extend(more);
        }
        let mut body = body(kind, line.at, &data);
        if body.len() > BODY {
            // The names of roles or of artifacts are very long. What is left leads to the rest.
            data = json!({ "session": session, "cursor": cursor.to_string(), "more": true });
            body = self::body(kind, line.at, &data);
        }
        Fact {
            id: format!("{}-{}-{k}", header(session), line.n),
            body,
            at: line.at,
            upto,
        }
    }
}

fn body(kind: Kind, at: Time, data: &Value) -> String {
    let at = Timestamp::from_millisecond(at.0).unwrap_or_default();
    json!({ "type": kind.word(), "timestamp": at.to_string(), "data": data }).to_string()
}

/// Returns the id of a session as a part of an id of messages: in these nothing may be a full stop. An id that a program chose in
/// other letters is told by its digest.
fn header(session: &str) -> String {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if session.bytes().all(fits) {
        return session.to_owned();
    }
    blake3::hash(session.as_bytes()).to_hex()[..32].to_owned()
}

/// Returns what an event tells, without texts.
fn of_event(event: &Event) -> Option<(Kind, Value)> {
    Some(match &event.kind {
        EventKind::Asked {
            question, kind, by, ..
        } if kind.is_asked() => {
            let data = json!({ "question": question.to_string(), "kind": kind.word(), "by": by });
            (Kind::Asked, data)
        }
        EventKind::Attempt {
            effect,
            attempt,
            how: Tried::Unknown,
            ..
        } => {
            let data = json!({ "effect": effect.to_string(), "attempt": attempt });
            (Kind::Doubt, data)
        }
        EventKind::Artifact {
            call,
            name,
            media,
            len,
        } => {
            let data = json!({
                "artifact": name,
                "media": media,
                "len": len,
                "call": call.to_string(),
            });
            (Kind::Artifact, data)
        }
        _ => return None,
    })
}

/// Returns what a settled state tells, without texts.
fn of_turn(turn: &Turn) -> (Kind, Value) {
    let whole = turn.to_json();
    let mut data = Map::new();
    for field in ["status", "code"] {
        if let Some(value) = whole.get(field) {
            data.insert(field.to_owned(), value.clone());
        }
    }
    let kind = match turn {
        Turn::Stopped(stop) if stop.kind != steersman::StopKind::Paused => Kind::Failed,
        Turn::Stopped(_) | Turn::Answer(_) => Kind::Settled,
        Turn::Asks(open) | Turn::Waits(open) => {
            let shown = open.iter().take(QUESTIONS).map(|question| {
                json!({
                    "question": question.id().to_string(),
                    "kind": question.kind().word(),
                    "by": question.by(),
                })
            });
            data.insert("open".to_owned(), shown.collect());
            if open.len() > QUESTIONS {
                data.insert("more".to_owned(), true.into());
            }
            Kind::Settled
        }
    };
    (kind, Value::Object(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_messages_has_no_full_stop() {
        assert_eq!(header("aa01-x_Y"), "aa01-x_Y");
        for odd in ["a.b", "ä", "a b", "a\nb"] {
            let id = header(odd);
            assert_eq!(id.len(), 32, "{id}");
            assert_ne!(id, header("a.c"));
        }
    }
}
