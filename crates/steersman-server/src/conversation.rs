//! Conversations that clients name by their messages: the session that continues one, and the line at which it continues.
//!
//! The digest of a list of messages leads to a session and a line ([`Conversation`], in the store). A client that sends all messages
//! each time so continues its session; one that changes an earlier message goes back to the line before it.

use crate::Permission;
use crate::ask::Asked;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::protocol::turn::{MESSAGE, Open, Speakers, Turn, begins};
use std::sync::Arc;
use std::time::Duration;
use steersman::machine::stored::commit::LedgerEntry;
use steersman::machine::stored::ids::{Id, Line, Name};
use steersman::machine::stored::interaction::{Interaction, Origin};
use steersman::runtime::inbox::Message;
use steersman::runtime::store::{Conversation, SessionId};
use steersman::views::event::Teller;
use steersman::views::log::{Became, became};
use steersman::views::reader::{PAGE, Reader as _, Stored};
use steersman::{Act, Cursor, Event, EventKind, Events, Network, Question, Turn as Settled};
use tokio::time::Instant;

/// Time between two looks whether a session asks something before it takes a message.
const LOOK: Duration = Duration::from_millis(500);

/// The digest of a list of messages, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain(blake3::Hash);

impl Chain {
    /// Begins with a digest that no other store, tenant, subject or model repeats.
    pub(crate) fn new(base: blake3::Hash) -> Self {
        Self(base)
    }

    /// Adds parts, such as those of a message.
    #[must_use]
    pub(crate) fn with<'p>(self, parts: impl IntoIterator<Item = &'p str>) -> Self {
        let mut over = blake3::Hasher::new_keyed(self.0.as_bytes());
        for part in parts {
            over.update(&(part.len() as u64).to_le_bytes());
            over.update(part.as_bytes());
        }
        Self(over.finalize())
    }

    /// Returns the id of a message to a session that follows from this digest.
    pub(crate) fn message(self) -> String {
        format!("{MESSAGE}{}", &self.0.to_hex()[..32])
    }
}

/// The end of a session, wherever that is. A message that waits leads to it: what is said there since is this message.
pub(crate) const END: Line = Line::MAX;

/// The place at which a session continues a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) session: SessionId,
    /// The line to which the conversation leads, or [`END`].
    pub(crate) from: Line,
    /// The branch of that line; `None` for the current branch, if nothing but the session is known.
    pub(crate) branch: Option<Id>,
    /// The line to which the session has to go back, because something was said since, or the branch was left.
    pub(crate) back: Option<Line>,
}

/// The fate of acts that were put into a session.
pub(crate) enum Went {
    /// This line took the last one.
    Taken(Line),
    /// One of them waits for this.
    Waits(String),
}

impl Caller {
    /// Returns the session and line to which a digest leads, if the token sees the session.
    pub(crate) async fn head(&self, of: Chain) -> Result<Option<(SessionId, Line)>, Problem> {
        let store = self.steersman.engine().store();
        let tenant = &self.token.scope.tenant;
        Ok(store.conversation(tenant, of.0.into()).await?)
    }

    /// Lets a digest lead to a session and a line.
    pub(crate) async fn leads(&self, of: Chain, session: &str, line: Line) -> Result<(), Problem> {
        let engine = self.steersman.engine();
        let head = Conversation {
            tenant: self.token.scope.tenant.clone(),
            digest: of.0.into(),
            session: session.into(),
            line,
            at: engine.clock().now(),
        };
        Ok(engine.store().put_conversation(head).await?)
    }

    /// Returns the end of a session.
    pub(crate) async fn end(&self, session: SessionId) -> Result<Place, Problem> {
        Ok(Place {
            from: self.steersman.engine().store().head(&session).await?,
            session,
            branch: None,
            back: None,
        })
    }

    /// Reads what became of a line of a session since. If something was said there, the session goes back to the line before that: what
    /// people decided in between stays. `told` is the line that took the same message before, if its answer was sent.
    pub(crate) async fn place(
        &self,
        session: SessionId,
        from: Line,
        told: Line,
    ) -> Result<Place, Problem> {
        let reader = Stored::plain(self.steersman.engine(), &session);
        if from == END {
            let (mut branch, mut back) = (None, None);
            if told.is_some() {
                let line = reader.line(told).await?;
                (branch, back) = (Some(line.branch), Some(line.prev));
            }
            return Ok(Place {
                session,
                from,
                branch,
                back,
            });
        }
        let branch = reader.line(from).await?.branch;
        let (mut after, mut back) = (from, None);
        'read: loop {
            let lines = reader.lines(after, PAGE).await?;
            let Some(last) = lines.last() else { break };
            after = last.n;
            for line in &lines {
                let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
                let mut pushes = pushes.map(|push| &push.what);
                if line.branch == branch && pushes.any(is_said) {
                    back = Some(line.prev);
                    break 'read;
                }
                let left = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Superseded { branch: of, .. } if *of == branch);
                if line.ledger.iter().any(left) {
                    back = back.or(Some(from));
                }
            }
        }
        Ok(Place {
            session,
            from,
            branch: Some(branch),
            back,
        })
    }

    /// Returns the line that took a message, if one has.
    pub(crate) async fn took(&self, session: &str, message: &str) -> Result<Option<Line>, Problem> {
        let reader = Stored::masked(self.steersman.engine(), session);
        Ok(match became(&reader, Line::NONE, message).await? {
            Some(Became::Taken(line)) => Some(line),
            Some(Became::Refused(_)) | None => None,
        })
    }

    /// Returns the line of a session that took the last message from outside, on its current branch if there is one.
    pub(crate) async fn last(&self, session: &str) -> Result<Line, Problem> {
        let engine = self.steersman.engine();
        let current = engine.inspect(session).await?.current;
        let reader = Stored::plain(engine, session);
        let (mut after, mut here, mut any) = (Line::NONE, None, Line(1));
        loop {
            let lines = reader.lines(after, PAGE).await?;
            let Some(last) = lines.last() else { break };
            after = last.n;
            for line in &lines {
                let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
                let says = pushes.map(|push| &push.what).any(is_said);
                let starts = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Accepted { message, .. } if begins(message));
                if says || line.ledger.iter().any(starts) {
                    any = line.n;
                    if line.branch == current {
                        here = Some(line.n);
                    }
                }
            }
        }
        Ok(here.unwrap_or(any))
    }

    /// Returns what a session waits for, with secrets masked unless the token may see them.
    pub(crate) async fn open(&self, session: &str) -> Result<Vec<Open>, Problem> {
        let info = self.steersman.info(session).await?;
        if !matches!(&*info.state.status, "waits" | "doubt") {
            return Ok(Vec::new());
        }
        self.asked(session).await
    }

    /// Returns what a session waits for, also while it is at work on something else. Secrets are masked as in [`Self::open`].
    pub(crate) async fn asked(&self, session: &str) -> Result<Vec<Open>, Problem> {
        let pending = self.steersman.pending(session).await?;
        if self.may(Permission::Context) {
            return Ok(pending.iter().map(Open::from).collect());
        }
        let known = self.steersman.engine().secrets_of(session).await?;
        let masked = |question: Question| Open::from(&question.masked(&known));
        Ok(pending.into_iter().map(masked).collect())
    }

    /// Returns the roles in which the token may decide questions.
    pub(crate) fn deciding(&self) -> Vec<Name> {
        if !self.may(Permission::Decide) {
            return Vec::new();
        }
        if self.token.roles.is_empty() {
            return vec![steersman::machine::stored::by::USER.into()];
        }
        self.token.roles.clone()
    }

    /// Puts acts with their ids into a session, one after the other, and waits until each is taken. `says` is true if the last one
    /// says something, which the session does not take while it asks something else.
    pub(crate) async fn takes(
        &self,
        session: &str,
        acts: Vec<(String, Act)>,
        says: bool,
        asked: &Asked,
    ) -> Result<Went, Problem> {
        let (mut taken, until) = (Line::NONE, self.deadline());
        let last = acts.len().saturating_sub(1);
        for (n, (id, act)) in acts.into_iter().enumerate() {
            let may_wait = says && n == last;
            let patience = self.server.options().patience;
            let receipt = self.send(session, act, (&id, asked), patience).await?;
            taken = match receipt.line {
                Some(line) => Line(line),
                None => match self.later(session, &id, may_wait, until).await? {
                    Went::Taken(line) => line,
                    Went::Waits(why) => return Ok(Went::Waits(receipt.why.unwrap_or(why))),
                },
            };
        }
        Ok(Went::Taken(taken))
    }

    /// Waits until a message is taken. A text (`is_text`) waits if the session has settled and takes something else first.
    pub(crate) async fn later(
        &self,
        session: &str,
        message: &str,
        is_text: bool,
        until: Instant,
    ) -> Result<Went, Problem> {
        loop {
            let soon = until.min(Instant::now() + LOOK);
            let line = self.decided(session, Line::NONE, message, soon).await?;
            if let Some(line) = line {
                return Ok(Went::Taken(line));
            }
            if is_text && let Some(why) = self.leaves_texts(session).await? {
                return Ok(Went::Waits(why.to_owned()));
            }
            if Instant::now() >= until || self.server.is_stopping() {
                return Err(self.late());
            }
        }
    }

    /// Returns why a session that has settled leaves texts in its inbox. `None` if it takes them.
    async fn leaves_texts(&self, session: &str) -> Result<Option<&'static str>, Problem> {
        let info = self.steersman.info(session).await?;
        if &*info.state.status == "paused" {
            return Ok(Some("the session is paused"));
        }
        let asks = !self.open(session).await?.is_empty();
        Ok(asks.then_some("what is asked comes first"))
    }

    /// Waits until the messages that lie in the inbox of a session are taken or refused, except those that lie there for long: an event
    /// that nothing waits for, and a text behind something else. Before, a session stands as it did before somebody decided or spoke.
    ///
    /// # Errors
    /// Of code `late` if one still lies there then.
    pub(crate) async fn hears(&self, session: &str, until: Instant) -> Result<(), Problem> {
        for lies in self.steersman.engine().inspect(session).await?.inbox {
            // Its session reports a message that cannot be read, and goes on without it.
            let Ok(Message { wanted, .. }) = Message::decode(&lies) else {
                continue;
            };
            if wanted.is_event() {
                continue;
            }
            match self.later(session, &lies.id, wanted.is_text(), until).await {
                Err(problem) if problem.code() != Code::Refused.told().0 => return Err(problem),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the turn of a line of a session.
    pub(crate) async fn turn(
        &self,
        network: &Network,
        session: &str,
        line: Line,
    ) -> Result<Turn, Problem> {
        Ok(Turn::new(line, self.speakers(network, session).await?))
    }

    /// Returns the agents of a session whose words its clients hear.
    pub(crate) async fn speakers(
        &self,
        network: &Network,
        session: &str,
    ) -> Result<Speakers, Problem> {
        let reader = Stored::plain(self.steersman.engine(), session);
        let first = reader.lines(Line::NONE, 1).await?;
        let commit = first.first().and_then(|line| line.commit.as_ref());
        let made = commit.and_then(|commit| commit.made.first());
        let root = made.map_or(Id::MAIN, |made| made.agent);
        Ok(Speakers::of(network.checked(), root))
    }

    /// Returns the events of a turn.
    pub(crate) fn follows(&self, session: &str, line: Line) -> Events {
        let from = Line(line.0.saturating_sub(1));
        let events = self.steersman.events(session, from);
        let events = events.settled_after(line).until_settled();
        if self.may(Permission::Context) {
            events
        } else {
            events.masked()
        }
    }

    /// Tells the events of a turn as far as they are on disk, and the state in which the session has settled, until `hear` returns true.
    /// Returns the position of the last event.
    pub(crate) async fn told(
        &self,
        session: &str,
        line: Line,
        mut hear: impl FnMut(&Event) -> bool,
    ) -> Result<Cursor, Problem> {
        let engine = self.steersman.engine();
        let is_masked = !self.may(Permission::Context);
        let reader = Arc::new(if is_masked {
            Stored::masked(engine, session)
        } else {
            Stored::plain(engine, session)
        });
        let mut teller = Teller::new(reader.clone());
        let mut from = Cursor::from(Line(line.0.saturating_sub(1)));
        let seen = loop {
            let head = engine.store().head(session).await?;
            for event in &teller.after(from, usize::MAX).await? {
                from = event.cursor;
                if hear(event) {
                    return Ok(from);
                }
            }
            // Both are of one moment, unless a line came in between.
            let seen = engine.inspect(session).await?;
            if seen.info.head == head {
                break seen;
            }
        };
        if matches!(&*seen.info.state.status, "" | "running") || seen.is_decided() {
            return Ok(from);
        }
        let settled = Settled::from(&seen.settled);
        let settled = if is_masked {
            settled.masked(&*reader.masks().await?)
        } else {
            settled
        };
        hear(&Event {
            cursor: from,
            line: None,
            at: None,
            branch: Id::MAIN,
            agent: None,
            agent_id: None,
            kind: EventKind::Settled(settled),
        });
        Ok(from)
    }

    /// Returns the time until which a request that waits is answered.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.server.options().limits.request.mul_f64(0.8)
    }

    /// Returns the problem of a turn that goes on longer than a request may wait.
    pub(crate) fn late(&self) -> Problem {
        if self.server.is_stopping() {
            return Problem::new(
                Code::Stopping,
                "the server stops; the session goes on later",
            );
        }
        let why = "the session is still at work; nothing is lost";
        Problem::new(Code::Late, why).help("send the same again, or ask for a stream")
    }
}

/// Returns true for a message from outside.
fn is_said(what: &Interaction) -> bool {
    matches!(
        what,
        Interaction::UserMessage {
            from: Origin::Outside(_),
            ..
        }
    )
}
