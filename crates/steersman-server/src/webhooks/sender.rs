//! The sender: finds sessions with lines after a webhook's cursor, and sends what they tell, in order.

use super::facts::{ALL, Fact, Facts};
use super::{Kind, Only, shown};
use crate::Server;
use futures::StreamExt as _;
use futures::future::select;
use futures::stream::FuturesUnordered;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman::adapters::webhook::{Message, NotPosted, Target, signature};
use steersman::machine::stored::ids::{Line, Time};
use steersman::runtime::Boxed;
use steersman::runtime::engine::EngineError;
use steersman::runtime::store::{Delivered, SessionId, Store, StoreError, Webhook, WebhookId};
use steersman::views::reader::{PAGE, Reader as _, Stored};
use steersman::{Error, ErrorKind, SessionQuery};

/// Interval between two looks for sessions that changed, in milliseconds.
const LOOK: u64 = 500;
/// Interval between two looks at all sessions behind a cursor, in milliseconds: not every line changes what lists show.
const LOOK_AT_ALL: u64 = 60_000;
/// Time by which the clocks of two processes may differ, in milliseconds. Sessions that changed so recently are found again.
const SKEW: u64 = 5_000;
/// Time for which the process that owns a session has the first chance to send what happens in it, in milliseconds.
const OWNERS: u64 = 15_000;
/// Time within which a receiver has to answer, in milliseconds.
const PATIENCE: u64 = 15_000;
/// Pauses before a message is sent again, in milliseconds. After the last one nothing is sent to the webhook any more.
const PAUSES: [u64; 7] = [
    5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000,
];
/// Pause after an error of the store, in milliseconds.
const TROUBLE: u64 = 60_000;
/// Number of sessions whose facts are sent at once, and of these the number of one webhook: one slow receiver keeps no other back.
const AT_ONCE: (usize, usize) = (64, 8);
/// Number of webhooks, and of sessions behind one, that are read at a time.
const READ: usize = 256;
/// Number of sessions that wait to be sent, and of those of one webhook that are at work or could not be sent. Further ones are found by a
/// later look at all.
const WAITING: usize = 10_000;
/// Number of lines without a fact after which the cursor of a session at work moves.
const AHEAD: u64 = 64;

/// A webhook, and a session of its tenant.
type Pair = (WebhookId, SessionId);

/// A webhook that is sent to.
struct Hook {
    stored: Webhook,
    only: Result<Only, String>,
    to: Result<Target, String>,
}

impl Hook {
    fn wants(&self, kind: Kind) -> bool {
        let mut kinds = self.stored.kinds.iter();
        self.stored.kinds.is_empty() || kinds.any(|wanted| **wanted == *kind.word())
    }
}

/// A session that is at work, or of which something could not be sent.
#[derive(Copy, Clone, Debug, Default)]
struct Way {
    /// The last line that was read. All that it tells was sent.
    read: Line,
    /// Number of attempts of the next message that failed.
    failed: usize,
    /// Time of the next attempt.
    again: Option<Time>,
}

/// The end of one run over a session.
enum End {
    /// Everything was sent, and the session rests.
    Rests,
    /// Everything was sent, and the session is at work.
    Works,
    /// The next message is for the owner of the session until this time.
    Owners(Time),
    /// Another process was faster, or the webhook is gone.
    Lost,
    /// An attempt failed.
    Failed(String),
    /// The receiver wants nothing any more.
    Gone,
    /// Something of this server is not in order.
    Trouble(String),
}

impl Server {
    /// Sends what happens in the sessions of the store to its webhooks, until the server stops; then, when nothing is driven any more, once
    /// what is left. `told` gets a sentence for people when something was not delivered.
    ///
    /// Any number of servers over one store may do this. A receiver may get a message more than once, always with the same `webhook-id`.
    pub async fn deliver(&self, told: impl Fn(String) + Send + Sync) {
        let sender = Sender {
            server: self.clone(),
            hooks: BTreeMap::new(),
            wanted: BTreeSet::new(),
            working: BTreeMap::new(),
            ways: BTreeMap::new(),
            heads: BTreeMap::new(),
            looked: None,
            looked_at_all: BTreeMap::new(),
            is_troubled: false,
        };
        sender.run(&told).await;
    }
}

struct Sender {
    server: Server,
    /// The webhooks that are sent to.
    hooks: BTreeMap<WebhookId, Arc<Hook>>,
    /// Pairs that may have something new.
    wanted: BTreeSet<Pair>,
    /// Pairs that a run is about, by webhook.
    working: BTreeMap<WebhookId, BTreeSet<SessionId>>,
    ways: BTreeMap<WebhookId, BTreeMap<SessionId, Way>>,
    /// The sessions that the last look found, each with its last line.
    heads: BTreeMap<SessionId, Line>,
    /// Time of the last look.
    looked: Option<Time>,
    /// Time when all sessions behind a webhook's cursors were found last.
    looked_at_all: BTreeMap<WebhookId, Time>,
    is_troubled: bool,
}

/// A run that ended.
struct Done {
    pair: Pair,
    made: Time,
    way: Way,
    end: End,
}

type Runs = FuturesUnordered<Boxed<'static, Done>>;

impl Sender {
    async fn run(mut self, told: &(impl Fn(String) + Send + Sync)) {
        let mut runs = Runs::new();
        let clock = self.server.steersman().engine().clock().clone();
        let stopping = self.server.stopping().clone();
        let server = self.server.clone();
        while !stopping.is_cancelled() {
            let now = clock.now();
            self.look(now, told).await;
            self.begin(&mut runs);
            // Whichever comes first: the clock may be set back.
            let mut pause = select(clock.sleep_until(now.plus(LOOK)), clock.sleep(LOOK));
            loop {
                tokio::select! {
                    biased;
                    Some(done) = runs.next() => {
                        self.ended(done, told).await;
                        self.begin(&mut runs);
                    }
                    () = stopping.cancelled() => break,
                    _ = &mut pause => break,
                    () = server.bell().notified() => break,
                }
            }
        }
        // A session writes lines while it is let go of.
        let mut driving = server.driving().subscribe();
        let mut rests = Box::pin(async { driving.wait_for(|drives| !drives).await.is_ok() });
        loop {
            tokio::select! {
                Some(done) = runs.next() => self.ended(done, told).await,
                _ = &mut rests => break,
            }
        }
        self.look(clock.now(), told).await;
        self.begin(&mut runs);
        while let Some(done) = runs.next().await {
            self.ended(done, told).await;
            self.begin(&mut runs);
        }
    }

    /// Finds what may have something new.
    async fn look(&mut self, now: Time, told: &(impl Fn(String) + Send + Sync)) {
        let looked = self.try_to_look(now).await;
        if let Err(error) = &looked
            && !self.is_troubled
        {
            told(format!("webhooks are not looked after: {error}"));
        }
        self.is_troubled = looked.is_err();
    }

    async fn try_to_look(&mut self, now: Time) -> Result<(), StoreError> {
        let store = self.server.steersman().engine().store().clone();
        self.read_hooks(&*store).await?;
        if self.hooks.is_empty() {
            self.looked = None;
            return Ok(());
        }
        for (id, ways) in &self.ways {
            for (session, way) in ways {
                if way.again.is_some_and(|again| again <= now) {
                    self.wanted.insert((id.clone(), session.clone()));
                }
            }
        }
        let ids: Vec<WebhookId> = self.hooks.keys().cloned().collect();
        for id in ids {
            let looked = self.looked_at_all.get(&id);
            if looked.is_none_or(|at| at.until(now) >= LOOK_AT_ALL) {
                self.look_at_all(&*store, id, now).await?;
            }
        }
        // Before the first look at this, everything was found behind the cursors.
        let since = self.looked.unwrap_or(now).minus(SKEW);
        let query = SessionQuery {
            since: Some(since),
            ..SessionQuery::default()
        };
        let mut heads = BTreeMap::new();
        for info in store.sessions(&query).await? {
            if self.heads.get(&info.id) != Some(&info.head) {
                for id in self.hooks.keys() {
                    if id.tenant == info.scope.tenant && self.wanted.len() < WAITING {
                        self.wanted.insert((id.clone(), info.id.clone()));
                    }
                }
            }
            heads.insert(info.id, info.head);
        }
        self.heads = heads;
        self.looked = Some(now);
        Ok(())
    }

    /// Reads the webhooks of all tenants, and forgets what is about others.
    async fn read_hooks(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let mut before = std::mem::take(&mut self.hooks);
        let mut after = None;
        loop {
            let page = store.all_webhooks(after.as_ref(), READ).await?;
            let is_last = page.len() < READ;
            after = page.last().map(|hook| hook.id.clone());
            for stored in page.into_iter().filter(|hook| hook.failing.is_none()) {
                let known = before.remove(&stored.id);
                let known = known.filter(|known| known.stored == stored);
                let hook = known.unwrap_or_else(|| {
                    Arc::new(Hook {
                        only: Only::read(stored.only.as_deref()),
                        to: self.server.poster().reach().address(&stored.url),
                        stored,
                    })
                });
                self.hooks.insert(hook.stored.id.clone(), hook);
            }
            if is_last {
                break;
            }
        }
        let hooks = &self.hooks;
        self.wanted.retain(|(id, _)| hooks.contains_key(id));
        self.ways.retain(|id, _| hooks.contains_key(id));
        self.looked_at_all.retain(|id, _| hooks.contains_key(id));
        Ok(())
    }

    /// Finds the sessions behind the cursors of a webhook.
    async fn look_at_all(
        &mut self,
        store: &dyn Store,
        id: WebhookId,
        now: Time,
    ) -> Result<(), StoreError> {
        // The oldest sessions come first: those that are known to be behind are not in the way of others.
        let known = self.ways.get(&id).map_or(0, BTreeMap::len);
        let most = READ + known;
        let behind = store.behind(&id, most).await?;
        if behind.len() < most {
            self.looked_at_all.insert(id.clone(), now);
        } else {
            self.looked_at_all.remove(&id);
        }
        for session in behind {
            if self.wanted.len() < WAITING {
                self.wanted.insert((id.clone(), session));
            }
        }
        Ok(())
    }

    /// Begins as many runs as there may be.
    fn begin(&mut self, runs: &mut Runs) {
        let mut left = BTreeSet::new();
        while let Some((id, session)) = self.wanted.pop_first() {
            let Some(hook) = self.hooks.get(&id) else {
                continue;
            };
            let ways = self.ways.get(&id);
            let known = ways.and_then(|ways| ways.get(&session)).copied();
            let way = known.unwrap_or_default();
            let clock = self.server.steersman().engine().clock();
            let waits = way.again.is_some_and(|again| again > clock.now());
            let is_full = known.is_none() && ways.is_some_and(|ways| ways.len() >= WAITING);
            if waits || is_full {
                continue;
            }
            let pair = (id.clone(), session.clone());
            let busy = self.working.entry(id).or_default();
            if runs.len() >= AT_ONCE.0 || busy.len() >= AT_ONCE.1 || busy.contains(&session) {
                left.insert(pair);
                continue;
            }
            busy.insert(session);
            let (server, hook) = (self.server.clone(), hook.clone());
            runs.push(Box::pin(run(server, hook, pair, way)));
        }
        self.wanted = left;
    }

    /// Takes the end of a run.
    async fn ended(&mut self, done: Done, told: &(impl Fn(String) + Send + Sync)) {
        let Done {
            pair,
            made,
            mut way,
            end,
        } = done;
        if let Some(busy) = self.working.get_mut(&pair.0) {
            busy.remove(&pair.1);
            if busy.is_empty() {
                self.working.remove(&pair.0);
            }
        }
        let now = self.server.steersman().engine().clock().now();
        let name = shown(&pair.0);
        way.again = None;
        match end {
            End::Rests => {
                if let Some(ways) = self.ways.get_mut(&pair.0) {
                    ways.remove(&pair.1);
                }
                return;
            }
            End::Works => {}
            End::Owners(until) => way.again = Some(until),
            // The next look knows whether the webhook is still there.
            End::Lost => {
                way = Way {
                    again: Some(now),
                    ..Way::default()
                };
            }
            End::Failed(why) => {
                way.failed += 1;
                let Some(pause) = pause(&pair, way.failed) else {
                    let why = format!("{} attempts failed; the last: {why}", way.failed);
                    self.fail(&pair.0, made, &why, told).await;
                    return;
                };
                told(format!(
                    "webhook {name}, session {}: {why}; again in {} s",
                    pair.1,
                    pause.div_ceil(1_000)
                ));
                way.again = Some(now.plus(pause));
            }
            End::Gone => {
                self.fail(&pair.0, made, "the receiver answered 410", told)
                    .await;
                return;
            }
            End::Trouble(why) => {
                told(format!("webhook {name}, session {}: {why}", pair.1));
                way.again = Some(now.plus(TROUBLE));
            }
        }
        let (id, session) = pair;
        self.ways.entry(id).or_default().insert(session, way);
    }

    /// Sends nothing to a webhook any more.
    async fn fail(
        &mut self,
        id: &WebhookId,
        made: Time,
        why: &str,
        told: &(impl Fn(String) + Send + Sync),
    ) {
        self.hooks.remove(id);
        // If it is resumed, it goes on from its cursors, as if it were found for the first time.
        self.ways.remove(id);
        self.looked_at_all.remove(id);
        let store = self.server.steersman().engine().store().clone();
        let name = shown(id);
        match store.mark_webhook(id, made, Some(why.into())).await {
            Ok(true) => told(format!("webhook {name} gets nothing any more: {why}")),
            Ok(false) => {}
            Err(error) => told(format!("webhook {name}: {error}")),
        }
    }
}

/// Returns the pause before the next attempt, after so many that failed: up to a fifth more or less than its length in the list, so that
/// messages which failed together do not come together again. `None` after the last one.
fn pause((id, session): &Pair, failed: usize) -> Option<u64> {
    let length = *PAUSES.get(failed.checked_sub(1)?)?;
    let mut hasher = blake3::Hasher::new();
    for part in [&*id.tenant, &*id.name, &**session] {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    hasher.update(&failed.to_le_bytes());
    let hash = hasher.finalize();
    let first = hash
        .as_bytes()
        .first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first));
    let fifth = length / 5;
    Some(length - fifth + first % (2 * fifth + 1))
}

/// Sends what a session tells after the cursor of a webhook.
async fn run(server: Server, hook: Arc<Hook>, pair: Pair, mut way: Way) -> Done {
    let carried = Box::pin(carry(&server, &hook, &pair.1, &mut way)).await;
    let end = carried.unwrap_or_else(|error| End::Trouble(error.to_string()));
    Done {
        pair,
        made: hook.stored.made,
        way,
        end,
    }
}

async fn carry(
    server: &Server,
    hook: &Hook,
    session: &SessionId,
    way: &mut Way,
) -> Result<End, Error> {
    let engine = server.steersman().engine();
    let (store, id) = (engine.store(), &hook.stored.id);
    let only = match &hook.only {
        Ok(only) => only,
        Err(why) => return Ok(End::Trouble(format!("`where`: {why}"))),
    };
    let info = match server.steersman().info(session).await {
        Ok(info) => info,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(End::Rests),
        Err(error) => return Err(error),
    };
    let mut at = store.delivered(id, session).await?;
    if !only.fits(&info) {
        let head = Delivered {
            line: info.head,
            events: ALL,
        };
        moves(&**store, id, session, (at, head)).await?;
        return Ok(End::Rests);
    }
    let is_elsewhere = info.owner.is_some() && engine.driven(session).is_none();
    let works = *info.state.status == *"running";
    let (created, head) = (info.created, info.head);
    let mut facts = Facts::of(engine, info);
    let mut from = at;
    if way.read > at.line {
        from = behind(way.read);
    } else if !at.line.is_some() && created < hook.stored.made {
        // A webhook is told what happens after it was made.
        from = behind(older(&facts.reader, head, hook.stored.made).await?);
    }
    loop {
        // A part of the line may have been sent.
        let after = match from.events {
            ALL => from.line,
            _ => Line(from.line.0.saturating_sub(1)),
        };
        let lines = facts.reader.lines(after, PAGE).await?;
        if lines.is_empty() {
            break;
        }
        for line in &lines {
            for fact in facts.line(line, from, |kind| hook.wants(kind)).await? {
                let now = engine.clock().now();
                let until = fact.at.plus(OWNERS);
                if is_elsewhere && until > now {
                    return Ok(End::Owners(until.min(now.plus(OWNERS))));
                }
                let upto = fact.upto;
                if let Some(end) = attempt(server, hook, fact).await {
                    return Ok(end);
                }
                way.failed = 0;
                if !moves(&**store, id, session, (at, upto)).await? {
                    return Ok(End::Lost);
                }
                at = upto;
            }
            from = behind(line.n);
            way.read = line.n;
        }
    }
    let is_far = from.line.0.saturating_sub(at.line.0) >= AHEAD;
    if (!works || is_far) && !moves(&**store, id, session, (at, from)).await? {
        return Ok(End::Lost);
    }
    Ok(if works { End::Works } else { End::Rests })
}

/// Moves a cursor, if it is to be moved. Returns false if it is not where it was read.
async fn moves(
    store: &dyn Store,
    id: &WebhookId,
    session: &SessionId,
    (at, upto): (Delivered, Delivered),
) -> Result<bool, StoreError> {
    if at == upto {
        return Ok(true);
    }
    store.move_delivered(id, session, at, upto).await
}

/// Returns the position behind a line.
fn behind(line: Line) -> Delivered {
    Delivered { line, events: ALL }
}

/// Returns the last line that is older than a time, or [`Line::NONE`]. Numbers of lines have gaps; times grow with them.
async fn older(reader: &Stored, head: Line, than: Time) -> Result<Line, EngineError> {
    let (mut low, mut high) = (0, head.0);
    // Mostly the whole session is older.
    let mut middle = high;
    while low < high {
        // All lines up to `low` are older, and none after `high` is.
        let found = reader.lines(Line(middle - 1), 1).await?;
        match found.first().filter(|line| line.at < than) {
            Some(line) => low = line.n.0,
            None => high = middle - 1,
        }
        middle = low + high.saturating_sub(low).div_ceil(2);
    }
    Ok(Line(low))
}

/// Sends one message once. `None`: it was taken.
async fn attempt(server: &Server, hook: &Hook, fact: Fact) -> Option<End> {
    let engine = server.steersman().engine();
    let sealed = hook.stored.secrets.iter();
    let secrets: Result<Vec<_>, _> = sealed.map(|text| engine.sealer().open_text(text)).collect();
    let secrets = match secrets {
        Ok(secrets) => secrets,
        Err(error) => return Some(End::Trouble(format!("its secret: {error}"))),
    };
    let time = engine.clock().now().0.div_euclid(1_000);
    let Some(signature) = signature(&secrets, &fact.id, time, &fact.body) else {
        return Some(End::Trouble("its secret is not one".to_owned()));
    };
    let message = Message {
        id: &fact.id,
        time,
        signature: &signature,
        body: fact.body,
    };
    let posted = match &hook.to {
        Err(why) => Some(Err(NotPosted::Refused(why.clone()))),
        Ok(to) => {
            // The time begins before the message is on its way.
            let late = engine.clock().sleep(PATIENCE);
            tokio::select! {
                posted = server.poster().post(to, message) => Some(posted),
                () = late => None,
            }
        }
    };
    let (result, end) = match posted {
        Some(Ok(200..300)) => ("delivered", None),
        Some(Ok(410)) => ("gone", Some(End::Gone)),
        Some(Ok(status)) => ("failed", Some(End::Failed(format!("it answers {status}")))),
        Some(Err(NotPosted::Refused(why))) => ("refused", Some(End::Failed(why))),
        Some(Err(NotPosted::Failed(why))) => ("failed", Some(End::Failed(why))),
        None => {
            let why = format!("no answer within {} s", PATIENCE / 1_000);
            ("timeout", Some(End::Failed(why)))
        }
    };
    if let Some(metrics) = &server.options().metrics {
        metrics.webhook(result);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_those_of_the_list_give_or_take_a_fifth() {
        let of = |session: &str, failed| {
            let id = WebhookId {
                tenant: "".into(),
                name: "a".into(),
            };
            pause(&(id, session.into()), failed)
        };
        let mut first = BTreeSet::new();
        for n in 0..100 {
            let session = format!("s{n}");
            for (failed, length) in (1..).zip(PAUSES) {
                let pause = of(&session, failed).unwrap();
                let (low, high) = (length * 4 / 5, length * 6 / 5);
                assert!((low..=high).contains(&pause), "{pause}");
            }
            assert_eq!(of(&session, PAUSES.len() + 1), None);
            first.insert(of(&session, 1));
        }
        assert!(first.len() > 50, "{first:?}");
    }
}
