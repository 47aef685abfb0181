//! Reading one session for its views.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::stored::commit::{Binding, Hooked, LogLine, Text};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Body, Id, Line};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;
use steersman_runtime::Boxed;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::known::Known;
use steersman_runtime::past::{DEFAULT_BOUND, ERASED, Past};
use steersman_runtime::store::{Row, SessionId, SessionInfo, SessionQuery, StoreError};

/// Reads one session. A masked reader hides the values of secrets.
///
/// Texts and stacks are read through [`History`]: synchronously, from a bounded cache or the store. A text that cannot be read is shown as
/// `[unreadable]` and reported by [`Reader::fault`].
pub trait Reader: History + Send + Sync {
    /// Returns the lines on disk after this one, oldest first, at most `most`. Empty at the end of the log.
    fn lines(&self, after: Line, most: usize) -> Boxed<'_, Result<Vec<Arc<LogLine>>, EngineError>>;

    /// Returns all lines on disk, oldest first.
    fn all(&self) -> Boxed<'_, Result<Vec<Arc<LogLine>>, EngineError>> {
        Box::pin(rest(self, Vec::new()))
    }

    /// Returns one line.
    fn line(&self, n: Line) -> Boxed<'_, Result<Arc<LogLine>, EngineError>>;

    /// Returns the texts and lists of parts that a line brought, in order.
    fn texts(&self, line: &LogLine) -> Vec<Parts>;

    /// Adds a line that a follower received from a live feed. Returns the line with its secrets masked, if the reader masks them.
    fn arrived(&self, line: Arc<LogLine>) -> Boxed<'_, Result<Arc<LogLine>, EngineError>>;

    /// Returns the definition of a binding that the session has or had.
    fn network<'a>(&'a self, binding: &'a Binding) -> Boxed<'a, Result<Arc<Network>, EngineError>>;

    /// Returns the definition that a line binds the session to. `None` if it binds none, or if this program cannot use the stored
    /// definition: then views show the log without what only a definition tells. An error is one of the store.
    fn bound<'a>(
        &'a self,
        line: &'a LogLine,
    ) -> Boxed<'a, Result<Option<Arc<Network>>, EngineError>> {
        Box::pin(async move {
            let binding = line.commit.as_ref().and_then(|c| c.binding.as_ref());
            let Some(binding) = binding else {
                return Ok(None);
            };
            match self.network(binding).await {
                Err(error @ EngineError::Store(_)) => Err(error),
                network => Ok(network.ok()),
            }
        })
    }

    /// Returns true if the reader masks secrets.
    fn is_masked(&self) -> bool;

    /// Returns the secrets that the reader masks, as of the lines that it has read. `None` if it masks none, or has read no line yet.
    fn known(&self) -> Option<Arc<Known>>;

    /// Returns and clears the first error of reading a text since the last call.
    fn fault(&self) -> Option<EngineError>;
}

/// Shown in place of a text that is not in the store.
const MISSING: &str = "[missing]";
/// Shown in place of a text that cannot be read.
const UNREADABLE: &str = "[unreadable]";
/// Bytes of older lines that a plain reader keeps in memory, to look up their texts and names. A masked reader reads all lines
/// before it shows the first one, so it keeps more ([`DEFAULT_BOUND`]).
const KEPT: usize = 256 << 10;
/// Number of lines that are read at a time.
pub const PAGE: usize = 256;
/// Number of lines that are read at a time if all are read.
const MANY: usize = 8_192;

/// A session in a store, whichever process drives it. Only lines on disk are read.
pub struct Stored {
    engine: Engine,
    session: SessionId,
    is_masked: bool,
    opened: OnceLock<Opened>,
    fault: Mutex<Option<EngineError>>,
}

/// A session that was opened: its row of the store was read and, for a masked reader, all its lines.
struct Opened {
    past: Past,
    /// The secrets that are masked; `None` if nothing is.
    secrets: Option<Mutex<Secrets>>,
}

/// The secrets of all lines up to `upto`, without a gap.
#[derive(Clone)]
struct Secrets {
    known: Arc<Known>,
    upto: Line,
}

impl Stored {
    /// Creates a reader that masks the values of all secrets that the session knows.
    pub fn masked(engine: &Engine, session: &str) -> Self {
        Self::of(engine, session, true)
    }

    /// Creates a reader that shows texts as they are stored, for the people who drive the session. A secret
    /// that was entered as a secret is sealed in the log, so no reader shows it.
    pub fn plain(engine: &Engine, session: &str) -> Self {
        Self::of(engine, session, false)
    }

    fn of(engine: &Engine, session: &str, is_masked: bool) -> Self {
        Self {
            engine: engine.clone(),
            session: session.into(),
            is_masked,
            opened: OnceLock::new(),
            fault: Mutex::new(None),
        }
    }

    async fn opened(&self) -> Result<&Opened, EngineError> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open(None).await,
        }
    }

    /// Opens the session. A masked reader reads all rows for it; their lines are added to `kept`.
    async fn open(&self, kept: Option<&mut Vec<Arc<LogLine>>>) -> Result<&Opened, EngineError> {
        let info = self.info().await?;
        let (store, session) = (self.engine.store().clone(), self.session.clone());
        let bound = if self.is_masked { DEFAULT_BOUND } else { KEPT };
        let past = Past::new(store, session, info.salt, Line::MAX, bound);
        let secrets = if self.is_masked {
            Some(Mutex::new(self.secrets(&past, kept).await?))
        } else {
            None
        };
        // If another task opened the session meanwhile, its result is used.
        Ok(self.opened.get_or_init(|| Opened { past, secrets }))
    }

    async fn info(&self) -> Result<SessionInfo, EngineError> {
        let query = SessionQuery {
            prefix: Some(self.session.to_string()),
            ..SessionQuery::default()
        };
        let found = self.engine.store().sessions(&query).await?;
        let info = found.into_iter().find(|info| info.id == self.session);
        Ok(info.ok_or_else(|| StoreError::NoSession(self.session.clone()))?)
    }

    /// Collects the secrets of all lines on disk. A line may contain a secret in clear that only a later line seals.
    async fn secrets(
        &self,
        past: &Past,
        mut kept: Option<&mut Vec<Arc<LogLine>>>,
    ) -> Result<Secrets, EngineError> {
        let mut known = Known::none(&self.engine);
        let mut upto = Line::NONE;
        let mut rows = self.rows(upto, MANY).await?;
        while let Some(last) = rows.last() {
            upto = last.n;
            // The store reads the next rows while these become lines.
            let (next, learned) = futures::join!(self.rows(upto, MANY), async {
                let Some(kept) = &mut kept else {
                    // The lines that are shown are read again.
                    for row in &rows {
                        known.learn_texts(past.skim(row)?, &self.engine).await?;
                    }
                    return Ok::<_, EngineError>(());
                };
                for line in past.check_all(&rows)? {
                    known.learn_line(&line, &self.engine).await?;
                    kept.push(line);
                }
                Ok(())
            });
            learned?;
            rows = next?;
        }
        // After the lines, because one of them may be the binding: its definition declares secrets.
        let seen = self.engine.inspect(&self.session).await?;
        known.and(&self.engine.secrets_in(&seen, &[]).await?);
        let known = Arc::new(known);
        Ok(Secrets { known, upto })
    }

    async fn rows(&self, after: Line, most: usize) -> Result<Vec<Row>, EngineError> {
        let store = self.engine.store();
        // Rows above the head may be visible while they are written. They do not count yet.
        let head = store.head(&self.session).await?;
        if head <= after {
            return Ok(Vec::new());
        }
        Ok(store.rows(&self.session, after.next(), head, most).await?)
    }

    async fn page(
        &self,
        past: &Past,
        after: Line,
        most: usize,
    ) -> Result<Vec<Arc<LogLine>>, EngineError> {
        let rows = self.rows(after, most).await?;
        let mut lines = Vec::with_capacity(rows.len());
        for row in &rows {
            lines.push(past.check(row).await?);
        }
        Ok(lines)
    }

    /// Returns the secrets of the lines on disk: those that a masked reader masks, and that a plain reader shows. Opens the session
    /// if it is not open.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn masks(&self) -> Result<Arc<Known>, EngineError> {
        match &self.opened().await?.secrets {
            Some(secrets) => Ok(lock(secrets).known.clone()),
            None => Ok(Arc::new(self.engine.secrets_of(&self.session).await?)),
        }
    }

    /// Returns a line, masked if the reader masks secrets. Learns the secrets of the line, and of all lines before it.
    async fn shown(&self, mut line: Arc<LogLine>) -> Result<Arc<LogLine>, EngineError> {
        let opened = self.opened().await?;
        let Some(secrets) = &opened.secrets else {
            return Ok(line);
        };
        let mut learned = lock(secrets).clone();
        if line.n > learned.upto {
            learned = self.learn(&opened.past, learned, &line).await?;
            let mut secrets = lock(secrets);
            // Another task may have learned more meanwhile.
            if learned.upto > secrets.upto {
                *secrets = learned.clone();
            }
        }
        learned.known.mask_line(&mut line);
        Ok(line)
    }

    /// Learns the secrets of a line and of the lines between it and those that are known.
    async fn learn(
        &self,
        past: &Past,
        learned: Secrets,
        line: &LogLine,
    ) -> Result<Secrets, EngineError> {
        let Secrets { known, mut upto } = learned;
        let mut known = (*known).clone();
        let binds = |line: &LogLine| line.commit.as_ref().is_some_and(|of| of.binding.is_some());
        let mut is_bound = false;
        while upto.next() < line.n {
            let lines = self.page(past, upto, PAGE).await?;
            let Some(last) = lines.last() else { break };
            upto = last.n;
            for line in &lines {
                known.learn_line(line, &self.engine).await?;
                is_bound |= binds(line);
            }
        }
        if upto < line.n {
            known.learn_line(line, &self.engine).await?;
            is_bound |= binds(line);
            upto = line.n;
        }
        if is_bound {
            // A reader may be older than the binding, and so knows nothing of the secrets that the definition declares.
            let seen = self.engine.inspect(&self.session).await?;
            known.and(&self.engine.secrets_in(&seen, &[]).await?);
        }
        let known = Arc::new(known);
        Ok(Secrets { known, upto })
    }

    fn raw(&self, opened: &Opened, body: Body) -> Result<Parts, EngineError> {
        let line = opened.past.line(body.line())?;
        let text = line.bodies.get(body.k() as usize);
        text.map_or_else(
            || Ok(Parts::One(MISSING.into())),
            |text| self.of_store(text),
        )
    }

    fn of_store(&self, text: &Text) -> Result<Parts, EngineError> {
        Ok(Parts::One(match text {
            Text::Here(text) => text.text().clone(),
            Text::Erased { .. } => ERASED.into(),
            Text::Blob { hash, .. } => match self.engine.store().blob_now(hash)? {
                Some(bytes) => String::from_utf8_lossy(&bytes).into(),
                None => MISSING.into(),
            },
            Text::Parts(parts) => return Ok(Parts::Several(parts.clone())),
        }))
    }

    /// Returns a body, masked if the reader masks secrets. A text that cannot be read becomes [`UNREADABLE`].
    fn mask_body(&self, parts: Result<Parts, EngineError>) -> Parts {
        let parts = match parts {
            Ok(parts) => parts,
            Err(error) => {
                lock(&self.fault).get_or_insert(error);
                return Parts::One(UNREADABLE.into());
            }
        };
        match self.known() {
            Some(known) => known.mask_parts(parts),
            None => parts,
        }
    }
}

impl Bodies for Stored {
    fn parts(&self, body: Body) -> Parts {
        let Some(opened) = self.opened.get() else {
            return Parts::One(UNREADABLE.into());
        };
        self.mask_body(self.raw(opened, body))
    }
}

impl History for Stored {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        let Some(opened) = self.opened.get() else {
            return (Arc::default(), Line::NONE);
        };
        let pushes = opened.past.pushes(agent, line);
        if let Some(error) = opened.past.fault() {
            lock(&self.fault).get_or_insert(error.into());
        }
        pushes
    }

    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        let Some(opened) = self.opened.get() else {
            return Vec::new();
        };
        let hooked = opened.past.hooked(effect);
        if let Some(error) = opened.past.fault() {
            lock(&self.fault).get_or_insert(error.into());
        }
        hooked
    }
}

impl Reader for Stored {
    fn lines(&self, after: Line, most: usize) -> Boxed<'_, Result<Vec<Arc<LogLine>>, EngineError>> {
        Box::pin(async move {
            let past = &self.opened().await?.past;
            let mut shown = Vec::new();
            for line in self.page(past, after, most).await? {
                shown.push(self.shown(line).await?);
            }
            Ok(shown)
        })
    }

    fn all(&self) -> Boxed<'_, Result<Vec<Arc<LogLine>>, EngineError>> {
        Box::pin(async move {
            let mut all = Vec::new();
            if self.is_masked && self.opened.get().is_none() {
                // The lines are read for their secrets anyway.
                self.open(Some(&mut all)).await?;
                if let Some(known) = self.known() {
                    for line in &mut all {
                        known.mask_line(line);
                    }
                }
            }
            rest(self, all).await
        })
    }

    fn line(&self, n: Line) -> Boxed<'_, Result<Arc<LogLine>, EngineError>> {
        Box::pin(async move {
            let line = self.opened().await?.past.read(n).await?;
            self.shown(line).await
        })
    }

    fn texts(&self, line: &LogLine) -> Vec<Parts> {
        let texts = line.bodies.iter();
        texts
            .map(|text| self.mask_body(self.of_store(text)))
            .collect()
    }

    fn arrived(&self, line: Arc<LogLine>) -> Boxed<'_, Result<Arc<LogLine>, EngineError>> {
        Box::pin(async move {
            self.opened().await?.past.add(line.clone());
            self.shown(line).await
        })
    }

    fn network<'a>(&'a self, binding: &'a Binding) -> Boxed<'a, Result<Arc<Network>, EngineError>> {
        Box::pin(async move {
            // Values of the binding may be secrets too, so the stored text is used.
            let opened = self.opened().await?;
            opened.past.read(binding.values.line()).await?;
            let values = self.raw(opened, binding.values)?;
            let Parts::One(values) = values else {
                return Err(EngineError::Broken {
                    session: self.session.clone(),
                    what: format!("line {}: its values are not a text", binding.values.line()),
                });
            };
            let network = self.engine.network_of(&self.session, binding, &values);
            network.await
        })
    }

    fn is_masked(&self) -> bool {
        self.is_masked
    }

    fn known(&self) -> Option<Arc<Known>> {
        let secrets = self.opened.get()?.secrets.as_ref()?;
        Some(lock(secrets).known.clone())
    }

    fn fault(&self) -> Option<EngineError> {
        lock(&self.fault).take()
    }
}

/// Adds the lines on disk after these.
async fn rest<R: Reader + ?Sized>(
    reader: &R,
    mut all: Vec<Arc<LogLine>>,
) -> Result<Vec<Arc<LogLine>>, EngineError> {
    loop {
        let last = all.last().map_or(Line::NONE, |line| line.n);
        let lines = reader.lines(last, PAGE).await?;
        if lines.is_empty() {
            return Ok(all);
        }
        all.extend(lines);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
