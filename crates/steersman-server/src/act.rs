//! Carries out acts: a request puts its message into the inbox of a session, and reads from the log what became of it.

use crate::ask::Asked;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use steersman::machine::stored::ids::{Id, Line, Name};
use steersman::runtime::engine::EngineError;
use steersman::runtime::feed::FeedItem;
use steersman::runtime::inbox::random_id;
use steersman::runtime::store::{SessionId, StoreCode, StoreError, session_id};
use steersman::views::log::{Became, Log, became, decides};
use steersman::views::reader::Stored;
use steersman::{Act, Cursor, Error, EventKind, Fate, Network, SessionInfo, StartOptions};
use tokio::time::{Instant, timeout, timeout_at};
use utoipa::ToSchema;

/// Maximum time for which a request waits for the line that opens a branch.
const OPENS: Duration = Duration::from_secs(10);

/// The receipt of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Receipt {
    /// The session.
    pub(crate) session: String,
    /// The id of the message. Events name it when the session takes it: `accepted`, `refused`.
    pub(crate) message: String,
    /// The fate of the message so far.
    pub(crate) fate: Stands,
    /// The line that took the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
    /// The condition for which the message waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// True if the same request was carried out before.
    #[serde(skip)]
    pub(crate) is_replay: bool,
}

/// The fate of a message so far.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stands {
    /// A line holds it.
    Taken,
    /// It waits in the inbox for a condition.
    Waits,
    /// It is in the inbox; the process that drives the session takes it.
    Queued,
    /// The same message was put into the inbox before, and no line has taken it yet.
    Known,
}

impl IntoResponse for Receipt {
    fn into_response(self) -> Response {
        let is_replay = self.is_replay;
        replayed(
            (StatusCode::ACCEPTED, Json(self)).into_response(),
            is_replay,
        )
    }
}

/// Marks the answer to a request that was carried out before.
pub(crate) fn replayed(mut response: Response, is_replay: bool) -> Response {
    if is_replay {
        let name = HeaderName::from_static("idempotent-replay");
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static("true"));
    }
    response
}

impl Caller {
    /// Returns the id of the message of a request. With an idempotency key, it is the same for the same key of the same tenant and
    /// owner, so that a session takes the message once.
    pub(crate) async fn message_id(&self, asked: &Asked) -> Result<Name, Problem> {
        let Some(key) = &asked.key else {
            return Ok(random_id());
        };
        let digest = self.keyed("message", key).await?;
        Ok(format!("http/{}", &digest.to_hex()[..32]).into())
    }

    /// Returns a digest of an idempotency key that no other store, tenant or subject repeats.
    pub(crate) async fn keyed(&self, what: &str, key: &str) -> Result<blake3::Hash, Problem> {
        let scope = &self.token.scope;
        let store_key = self.steersman.engine().store().digest_key().await?;
        let mut over = blake3::Hasher::new_keyed(&store_key);
        for part in [
            what,
            &*scope.tenant,
            scope.subject.as_deref().unwrap_or_default(),
            key,
        ] {
            over.update(&(part.len() as u64).to_le_bytes());
            over.update(part.as_bytes());
        }
        Ok(over.finalize())
    }

    /// Returns the id of a session that follows from a key ([`Caller::keyed`]).
    pub(crate) async fn session_of(&self, what: &str, key: &str) -> Result<SessionId, Problem> {
        let digest = self.keyed(what, key).await?;
        let bytes = digest.as_bytes().first_chunk();
        let bytes = bytes.expect("a digest has 32 bytes");
        Ok(session_id(StoreCode::ALONE, bytes))
    }

    /// Starts a session. Under an idempotency key it has an id that follows from the key, so that a repetition finds it: then the
    /// event of the options recognises what comes again under its message id. Returns the id, and true if it is a repetition.
    pub(crate) async fn begin(
        &self,
        network: &Network,
        asked: &Asked,
        mut options: StartOptions,
    ) -> Result<(SessionId, bool), Problem> {
        options.trace = asked.trace;
        if let Some(key) = &asked.key {
            options.id = Some(self.session_of("session", key).await?);
        }
        let (id, message, same) = (
            options.id.clone(),
            options.message_id.clone(),
            options.event.clone(),
        );
        match self.steersman.create(network, options).await {
            Ok(session) => Ok((session, false)),
            Err(Error::Engine(EngineError::Store(StoreError::Conflict(other)))) => {
                let (Some(message), Some(same), true) =
                    (message, same, id.as_ref() == Some(&other))
                else {
                    let why = format!("another session of `{}` has this key", network.name());
                    return Err(Problem::new(Code::Exists, why)
                        .help("send a message or an event to that session instead"));
                };
                let engine = self.steersman.engine();
                engine.deliver_as(&other, message, same).await?;
                Ok((other, true))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the row of a session that the token sees.
    pub(crate) async fn session(&self, id: &str) -> Result<SessionInfo, Problem> {
        // Most ids that are no session are found here, without a search for those that begin like them.
        self.steersman.engine().store().head(id).await?;
        Ok(self.steersman.info(id).await?)
    }

    /// Returns the id of a session that the token sees, if it is one of this definition.
    pub(crate) async fn of_definition(
        &self,
        network: &Network,
        session: &str,
    ) -> Result<SessionId, Problem> {
        let info = self.session(session).await?;
        if *info.network == *network.name() {
            return Ok(info.id);
        }
        Err(Problem::no_session(session))
    }

    /// Puts an act into the inbox of a session, and says what became of it.
    ///
    /// # Errors
    /// Of code `refused` with the session's sentence; `moved` if the client wanted an older line to be the last.
    pub(crate) async fn act(
        &self,
        session: &str,
        act: Act,
        asked: &Asked,
    ) -> Result<Receipt, Problem> {
        self.act_within(session, act, asked, self.server.options().patience)
            .await
    }

    async fn act_within(
        &self,
        session: &str,
        act: Act,
        asked: &Asked,
        patience: Duration,
    ) -> Result<Receipt, Problem> {
        let head = self.steersman.engine().store().head(session).await?;
        let message = self.message_id(asked).await?;
        let moved = asked.if_match.is_some_and(|known| known != head);
        // The line of the request itself moves the session, so a repetition is known by its key.
        let repeats = moved && asked.key.is_some();
        if moved && !(repeats && self.found(session, Line::NONE, &message).await?.is_some()) {
            let why = format!("the last line of the session is {head}");
            return Err(
                Problem::new(Code::Moved, why).help("look again, then send the request anew")
            );
        }
        self.send(session, act, (&message, asked), patience).await
    }

    /// Puts an act of a request into the inbox of a session under an id, and says what became of it.
    ///
    /// # Errors
    /// Of code `refused` with the session's sentence.
    pub(crate) async fn send(
        &self,
        session: &str,
        act: Act,
        (message, asked): (&str, &Asked),
        patience: Duration,
    ) -> Result<Receipt, Problem> {
        let head = self.steersman.engine().store().head(session).await?;
        let act = act.with_id(message);
        let act = match asked.trace {
            Some(trace) => act.traced(&trace.to_string()),
            None => act,
        };
        let until = Instant::now() + patience;
        let delivered = self.steersman.deliver(session, act);
        let fate = match timeout(patience, delivered).await {
            Ok(receipt) => receipt?.fate,
            Err(_) => self.found(session, head, message).await?.ok_or_else(|| {
                let why = "the store is slow, and it is not known if the message is on disk";
                Problem::new(Code::Late, why)
                    .help("send the same again under the same idempotency key")
            })?,
        };
        let receipt = |fate, line: Option<Line>, why| Receipt {
            session: session.to_owned(),
            message: message.to_owned(),
            fate,
            line: line.map(|line| line.0),
            why,
            is_replay: false,
        };
        match fate {
            Fate::Taken(line) => Ok(receipt(Stands::Taken, Some(line), None)),
            Fate::Waits(why) => {
                let why = self.masked(session, &why).await?;
                Ok(receipt(Stands::Waits, None, Some(why)))
            }
            Fate::Refused(why) => {
                let why = self.masked(session, &why).await?;
                Err(Problem::new(Code::Refused, why))
            }
            Fate::Lies => match self.decided(session, head, message, until).await? {
                Some(line) => Ok(receipt(Stands::Taken, Some(line), None)),
                None => Ok(receipt(Stands::Queued, None, None)),
            },
            Fate::Known => {
                let found = self.decided(session, Line::NONE, message, until).await?;
                let fate = match found {
                    Some(_) => Stands::Taken,
                    None => Stands::Known,
                };
                Ok(Receipt {
                    is_replay: true,
                    ..receipt(fate, found, None)
                })
            }
        }
    }

    /// Returns the fate of a message that is on disk: in the inbox, or in a line after this one. `None` if it is in neither.
    ///
    /// # Errors
    /// Of code `refused` if a line refused it.
    pub(crate) async fn found(
        &self,
        session: &str,
        after: Line,
        message: &str,
    ) -> Result<Option<Fate>, Problem> {
        let (_, inbox) = self.steersman.engine().store().inbox(session).await?;
        if inbox.iter().any(|lies| *lies.id == *message) {
            return Ok(Some(Fate::Lies));
        }
        let taken = self.decided(session, after, message, Instant::now());
        Ok(taken.await?.map(Fate::Taken))
    }

    /// Waits until a line after this one takes a message, and returns that line. `None` if no line has until then.
    ///
    /// # Errors
    /// Of code `refused` if a line refused it.
    pub(crate) async fn decided(
        &self,
        session: &str,
        after: Line,
        message: &str,
        until: Instant,
    ) -> Result<Option<Line>, Problem> {
        let engine = self.steersman.engine();
        let head = engine.store().head(session).await?;
        if head > after
            && let Some(line) = self.fate(session, after, message).await?
        {
            return Ok(Some(line));
        }
        let mut feed = engine.feed(session, head);
        while Instant::now() < until {
            let item = tokio::select! {
                item = timeout_at(until, feed.next()) => item,
                () = self.server.stopping().cancelled() => return Ok(None),
            };
            let Ok(item) = item else { return Ok(None) };
            if let FeedItem::Line(line) = item?
                && decides(&line, message)
            {
                return self.fate(session, Line(line.n.0 - 1), message).await;
            }
        }
        Ok(None)
    }

    /// Returns the line after this one that took a message. `None` if no line has.
    async fn fate(
        &self,
        session: &str,
        after: Line,
        message: &str,
    ) -> Result<Option<Line>, Problem> {
        let reader = Stored::masked(self.steersman.engine(), session);
        match became(&reader, after, message).await? {
            Some(Became::Taken(line)) => Ok(Some(line)),
            Some(Became::Refused(why)) => Err(Problem::new(Code::Refused, &*why)),
            None => Ok(None),
        }
    }

    /// Returns a text with the secrets of a session masked.
    pub(crate) async fn masked(&self, session: &str, text: &str) -> Result<String, Problem> {
        let known = self.steersman.engine().secrets_of(session).await?;
        Ok(known.masked(text))
    }

    /// Carries out an act about branches. Returns the receipt, and the branch that the line of the act opened.
    pub(crate) async fn opens(
        &self,
        session: &str,
        act: Act,
        asked: &Asked,
    ) -> Result<(Receipt, Option<Id>), Problem> {
        let receipt = self.act_within(session, act, asked, OPENS).await?;
        let Some(line) = receipt.line else {
            return Ok((receipt, None));
        };
        let log = Log::read(&Stored::plain(self.steersman.engine(), session)).await?;
        let branch = log.opened(Line(line)).map(|(branch, _)| branch);
        Ok((receipt, branch))
    }

    /// Answers a request whose message was put into a session: with the receipt or, if the client wants to wait, with the state in
    /// which the session settles after it.
    pub(crate) async fn answer(
        &self,
        mut receipt: Receipt,
        asked: &Asked,
    ) -> Result<Response, Problem> {
        let Some(wait) = asked.wait else {
            return Ok(receipt.into_response());
        };
        let session = receipt.session.clone();
        let until = Instant::now() + wait;
        if receipt.line.is_none() {
            let message = receipt.message.clone();
            let line = self.decided(&session, Line::NONE, &message, until).await?;
            let Some(line) = line else {
                return Ok(receipt.into_response());
            };
            receipt.line = Some(line.0);
            receipt.fate = Stands::Taken;
        }
        let line = Line(receipt.line.unwrap_or_default());
        match self.settles(&session, line, until).await? {
            Some(turn) => Ok(replayed(Json(turn).into_response(), receipt.is_replay)),
            None => Ok(receipt.into_response()),
        }
    }

    /// Waits until a session settles after a line, and returns its state. `None` if it has not until then.
    pub(crate) async fn settles(
        &self,
        session: &str,
        line: Line,
        until: Instant,
    ) -> Result<Option<Value>, Problem> {
        let from = Line(line.0.saturating_sub(1));
        let events = self.steersman.events(session, from).settled_after(line);
        let events = events.until_settled();
        let mut events = if self.may(crate::Permission::Context) {
            events
        } else {
            events.masked()
        };
        loop {
            let next = tokio::select! {
                next = timeout_at(until, events.next()) => next,
                () = self.server.stopping().cancelled() => return Ok(None),
            };
            match next {
                Err(_) | Ok(None) => return Ok(None),
                Ok(Some(event)) => {
                    let event = event?;
                    if let EventKind::Settled(turn) = &event.kind {
                        return Ok(Some(turned(session, turn.to_json(), event.cursor)));
                    }
                }
            }
        }
    }
}

/// Returns the state in which a session settled, with its place in the events.
fn turned(session: &str, mut turn: Value, cursor: Cursor) -> Value {
    turn["session"] = json!(session);
    turn["line"] = json!(cursor.line().0);
    turn["cursor"] = json!(cursor.to_string());
    turn
}
