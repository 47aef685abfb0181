//! Drives a session until it settles, and prints its story meanwhile.

pub(crate) mod follow;
mod live;
mod stay;
pub(crate) mod there;

use crate::asked::{self, Elsewhere};
use crate::error::{CommandError, Exit};
use crate::place::{Place, typed_as};
use crate::printer::{Printer, bold, dim, green, red, typed, yellow};
use crate::step::Keys;
use crate::tell::remedy::remedy;
use crate::tell::row::{Form, print};
use crate::words::{count, talk_width, wait};
use futures::FutureExt;
pub(crate) use live::meanwhile;
use live::{Live, TICK};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman::Turn;
use steersman::runtime::bind::Values;
use steersman::runtime::feed::{Feed, FeedItem};
use steersman::runtime::inbox::unread;
use steersman::runtime::pending::Pending;
use steersman::runtime::session::{Fate, Session, Settled};
use steersman::runtime::step::{Go, Stood};
use steersman::views::cause::Reason;
use steersman::views::event::Teller;
use steersman::views::reader::{Reader as _, Stored};
use steersman::views::screen::{awaited, models};
use steersman::views::story::Story;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{Admission, Admitted, Binding, LogLine, Want};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Id, Line};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Grace period before leaving prints a message.
const PATIENCE: Duration = Duration::from_millis(500);

/// The message printed after that period while effects run.
const STILL_WAITS: &str = "Waits for what has begun and must not be repeated. Ctrl-C leaves at once: it is in doubt then.";
/// The message for a user who asks to leave while no effect runs.
const FREES: &str = "Frees what it drives. Ctrl-C leaves at once.";

/// A session that this process drives, and the state of its output.
pub(crate) struct Play<'a> {
    place: &'a Place,
    printer: &'a Printer,
    pub(crate) session: Session,
    /// The session as people type it.
    pub(crate) short: String,
    feed: Feed,
    story: Story,
    /// With `--json`, lines are printed as events.
    events: Teller,
    reader: Arc<Stored>,
    live: Live,
    /// Effects whose outcome was printed; streamed pieces of them are stale.
    over: BTreeSet<Id>,
    /// The person whose messages are typed in this terminal, as a story names one: these are not printed again.
    pub(crate) typed_here: Option<String>,
    leaving: Leaving,
    /// The branch whose status is reported; `None` means the current one.
    pub(crate) branch: Option<Id>,
    /// The prompt that decides after each line how the session continues.
    pub(crate) keys: Option<Keys>,
}

/// Listens for Ctrl-C, SIGTERM of a supervisor and SIGHUP of a closed terminal, which all leave a session in the same way.
/// It must listen before a session is driven, because from then on a signal must not kill effects that began.
pub(crate) struct Leaving {
    int: Signal,
    term: Signal,
    hup: Signal,
}

impl Leaving {
    /// Starts to listen.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = self.hup.recv() => {}
        }
    }
}

/// Waits until driven sessions are released: effects that began and must not be repeated end first. Returns `None` if the
/// user asks to leave after the message was printed. If they had asked before (`wanted`), one more request is enough. The message
/// is printed without being asked only while effects run.
pub(crate) async fn lets_go<T>(
    driven: &[Session],
    letting_go: impl Future<Output = T>,
    leaving: &mut Leaving,
    printer: &Printer,
    mut wanted: bool,
) -> Option<T> {
    // A session that cannot tell at once is at work.
    let running = driven.iter().any(|session| {
        let outside = session.outside().now_or_never();
        !matches!(outside, Some(Ok(outside)) if outside.running == 0)
    });
    tokio::pin!(letting_go);
    let mut announced = false;
    loop {
        let announce = tokio::select! {
            biased;
            over = &mut letting_go => return Some(over),
            () = leaving.wanted() => {
                if wanted {
                    return None;
                }
                true
            }
            () = tokio::time::sleep(PATIENCE), if running && !announced => true,
        };
        wanted |= announce;
        if announce && !std::mem::replace(&mut announced, true) {
            printer.talk(yellow(if running { STILL_WAITS } else { FREES }));
        }
    }
}

/// The reason why driving ended.
pub(crate) enum Ended {
    Settled(Arc<Settled>),
    /// A signal, such as Ctrl-C.
    Interrupted,
}

impl<'a> Play<'a> {
    /// Reads the lines up to `known` silently and prints those after it. With `began`, also prints how long the loading
    /// took.
    pub(crate) async fn new(
        place: &'a Place,
        printer: &'a Printer,
        session: Session,
        leaving: Leaving,
        known: Line,
        began: Option<Instant>,
        verbose: bool,
    ) -> Result<Self, CommandError> {
        let short = place.short(session.id()).await?;
        let feed = session.feed(Line::NONE);
        let reader = Arc::new(Stored::plain(place.engine(), session.id()));
        let mut play = Self {
            place,
            printer,
            session,
            short,
            feed,
            story: Story::told(verbose),
            events: Teller::new(reader.clone()),
            reader,
            live: Live::new(printer),
            over: BTreeSet::new(),
            typed_here: None,
            leaving,
            branch: None,
            keys: None,
        };
        let mut lines = play.feed.lines().await?;
        let new = lines.split_off(lines.partition_point(|line| line.n <= known));
        for line in &lines {
            play.tell(line.clone(), false).await?;
        }
        if let Some(began) = began {
            printer.talk(dim(&format!(
                "       loaded {} in {} ms",
                count(lines.len() as u64, "line"),
                began.elapsed().as_millis()
            )));
        }
        for line in &new {
            play.tell(line.clone(), true).await?;
        }
        for error in unread(&place.store().inbox(play.session.id()).await?.1) {
            printer.complain(yellow(&error.to_string()));
        }
        Ok(play)
    }

    pub(crate) fn printer(&self) -> &Printer {
        self.printer
    }

    /// Waits for a signal to leave while nothing is driven.
    pub(crate) async fn told_to_leave(&mut self) {
        self.leaving.wanted().await;
    }

    /// Returns the last line that was printed.
    pub(crate) fn line(&self) -> Line {
        self.feed.cursor()
    }

    /// Drives the session until it settles.
    pub(crate) async fn settle(&mut self) -> Result<Ended, CommandError> {
        loop {
            match self.stood().await? {
                None => return self.leave_off().await,
                Some(Stood::Settled(settled)) => {
                    self.rest().await?;
                    self.live.rests();
                    let ended = self.stay(settled).await?;
                    let Ended::Settled(settled) = ended else {
                        return Ok(ended);
                    };
                    if !self.must_stay(&settled).await? {
                        return Ok(Ended::Settled(settled));
                    }
                    if let Some(ended) = self.stays_for_answer(settled).await? {
                        return Ok(ended);
                    }
                }
                Some(Stood::At(line)) => {
                    self.rest().await?;
                    if let Some(ended) = self.ask(line).await? {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// Asks how the session continues after a line. Returns how driving ended, if the user leaves.
    async fn ask(&mut self, line: Line) -> Result<Option<Ended>, CommandError> {
        let Some(mut keys) = self.keys.take() else {
            self.session.go(Go::Free).await?;
            return Ok(None);
        };
        let go = tokio::select! {
            biased;
            () = self.leaving.wanted() => {
                keys.give_back();
                return self.leave_off().await.map(Some);
            }
            go = keys.ask(line) => go?,
        };
        if go != Go::Free {
            self.keys = Some(keys);
        }
        let is_over = go == Go::Pause;
        let receipt = self.session.go(go).await?;
        match receipt.map(|receipt| receipt.fate) {
            Some(Fate::Refused(why)) => self.printer.complain(yellow(&format!("refused: {why}"))),
            Some(Fate::Waits(why)) => self
                .printer
                .talk(yellow(&format!("it is taken later: {why}"))),
            _ => {}
        }
        Ok(is_over.then(|| Ended::Settled(Arc::new(Settled::Paused))))
    }

    /// Waits until the session stops after a line or rests. `None` means that the user wants to leave.
    async fn stood(&mut self) -> Result<Option<Stood>, CommandError> {
        let session = self.session.clone();
        let stood = session.stood();
        tokio::pin!(stood);
        loop {
            tokio::select! {
                biased;
                stood = &mut stood => return Ok(Some(stood?)),
                // Signals come before the feed: a model that streams without a pause must not keep the user from leaving.
                () = self.leaving.wanted() => return Ok(None),
                item = self.feed.next() => self.item(item?).await?,
                () = tokio::time::sleep(TICK), if self.live.terminal => self.live.draw(),
            }
        }
    }

    async fn leave_off(&mut self) -> Result<Ended, CommandError> {
        self.lets_go(true).await?;
        Ok(Ended::Interrupted)
    }

    /// Releases the session, so that the next command finds it free. Returns false if the user did not wait for effects
    /// that had begun.
    pub(crate) async fn let_go(&mut self) -> Result<bool, CommandError> {
        self.lets_go(false).await
    }

    async fn lets_go(&mut self, wanted: bool) -> Result<bool, CommandError> {
        self.live.clear();
        let driven = [self.session.clone()];
        let stopped = self.session.clone().stop();
        let stopped = lets_go(&driven, stopped, &mut self.leaving, self.printer, wanted).await;
        match stopped {
            Some(()) => self.rest().await?,
            None => self.place.is_left_at_once(),
        }
        Ok(stopped.is_some())
    }

    /// Prints the lines on disk that were not printed yet.
    async fn rest(&mut self) -> Result<(), CommandError> {
        self.live.clear();
        for line in self.feed.lines().await? {
            self.tell(line, true).await?;
        }
        Ok(())
    }

    async fn item(&mut self, item: FeedItem) -> Result<(), CommandError> {
        match item {
            FeedItem::Line(line) => self.tell(line, true).await?,
            FeedItem::Delta {
                effect,
                agent,
                delta,
                ..
            } if !self.printer.is_json()
                && !self.over.contains(&effect)
                && self.story.searching().is_none() =>
            {
                let name = self.story.known(agent);
                self.live.streams(effect, name, delta);
            }
            FeedItem::Progress {
                effect, progress, ..
            } if !self.printer.is_json() && !self.over.contains(&effect) => {
                let tool = self.story.target(effect);
                let tool = tool.map_or_else(|| "a call".to_owned(), ToString::to_string);
                self.live.progress(effect, &tool, &progress);
            }
            FeedItem::Withdrawn { effect, .. } => self.live.withdraws(effect),
            FeedItem::Delta { .. }
            | FeedItem::Progress { .. }
            | FeedItem::Settled { .. }
            | FeedItem::Skipped(_)
            | FeedItem::Closed => {}
        }
        Ok(())
    }

    /// Follows a line. With `aloud`, also prints it.
    async fn tell(&mut self, line: Arc<LogLine>, aloud: bool) -> Result<(), CommandError> {
        let line = &*self.reader.arrived(line).await?;
        let admitted = line.commit.iter().flat_map(|commit| &commit.admitted);
        self.over.extend(
            admitted
                .filter(|a| a.kind == Admitted::Outcome)
                .filter_map(|a| a.id),
        );
        self.live.ends(&self.over);
        let bound = line.commit.as_ref().filter(|commit| {
            // If the line only binds changed servers, the story reports it.
            let told = |a: &Admission| a.kind == Admitted::Rebound && a.body.is_some();
            !commit.admitted.iter().any(told)
        });
        if let Some(binding) = bound.and_then(|c| c.binding.as_ref())
            && aloud
        {
            self.head(binding);
        }
        let mut rows = self.story.line(line, &*self.reader).await?;
        rows.retain(|row| self.typed_here.as_ref() != Some(&row.who));
        let wished = line.commit.iter().flat_map(|commit| &commit.wished);
        for wished in wished.filter(|wished| wished.what == Want::Step) {
            let name = self.story.agent(wished.agent).to_owned();
            self.live.asks(wished.id, &name);
        }
        if aloud && self.printer.is_json() {
            for event in self.events.line(line).await? {
                self.printer.view(&event)?;
            }
        }
        if aloud {
            self.live.clear();
            let form = Form::wide(talk_width());
            for row in rows.iter().flat_map(|row| print(row, form)) {
                self.printer.talk(row);
            }
            self.live.note(self.story.searching());
            self.live.draw();
        }
        Ok(())
    }

    /// Prints one line on what runs: network, session, models.
    fn head(&self, binding: &Binding) {
        let values = self.reader.text(binding.values);
        let models = match Values::read(&values) {
            Ok(values) => models(&values),
            Err(why) => why,
        };
        self.printer.talk(format!(
            "{} {}   session {}   {}   {}",
            bold(&binding.network),
            binding.digest.short(),
            bold(&self.short),
            models,
            dim("Ctrl-C leaves it resumable")
        ));
    }

    /// Ends the command: the answer or document goes to standard output, the next commands to standard error.
    pub(crate) async fn report(self, ended: Ended) -> Result<Exit, CommandError> {
        self.came_to(ended).await.map(|(exit, _)| exit)
    }

    /// Like [`Self::report`]; also returns true if everything was cancelled.
    pub(crate) async fn came_to(mut self, ended: Ended) -> Result<(Exit, bool), CommandError> {
        let ended = match ended {
            Ended::Settled(_) if !self.let_go().await? => Ended::Interrupted,
            ended => ended,
        };
        let settled = match ended {
            Ended::Interrupted => {
                if self.printer.is_json() {
                    self.printer.json(&json!({
                        "event": "interrupted",
                        "session": self.session.id(),
                        "line": self.line().0,
                        "status": "interrupted",
                    }))?;
                }
                self.printer.talk(yellow(
                    "Interrupted. Nothing is lost; all that was shown is on disk.",
                ));
                self.printer
                    .next(format!("steersman run --resume {}", self.short), "");
                return Ok((Exit::Interrupted, false));
            }
            Ended::Settled(settled) => settled,
        };
        let line = self.line();
        let mut told = Told {
            settled,
            ..Told::of(self.short.clone(), Settled::Empty)
        };
        let waits = matches!(&*told.settled, Settled::Waits(all) if all.is_empty());
        let failed = matches!(&*told.settled, Settled::Failed { .. });
        let stopped = failed || matches!(&*told.settled, Settled::Limit { .. });
        if waits || stopped || self.branch.is_some() {
            let seen = self.place.engine().inspect(self.session.id()).await?;
            let named = seen.branches.iter().find(|b| Some(b.id) == self.branch);
            if let Some(branch) = named.filter(|b| b.id != seen.current) {
                told.name = typed_as(&self.short, Some(branch));
                told.settled = Arc::new(seen.settled_on(branch));
            }
            if stopped && named.is_none_or(|branch| branch.id == seen.current) {
                told.first = Reason::of(&seen);
            }
            if let Some(branch) = named.or(seen.current_branch()).filter(|_| !failed) {
                told.waits_for = awaited(&seen, branch);
            }
        }
        let session = self.session.id();
        let told = told.beside(self.place, session).await?;
        let exit = report(self.printer, session, line, &told, self.place.now())?;
        Ok((exit, *told.settled == Settled::Cancelled))
    }
}

/// The status of a session or branch at the end of a command.
pub(crate) struct Told {
    /// The name as people type it: the session, with the branch if one is reported.
    pub(crate) name: String,
    pub(crate) settled: Arc<Settled>,
    /// The first cause, if the session failed or reached a limit.
    pub(crate) first: Option<Reason>,
    /// If the session waits for branches: the open ones, by name, each with what it waits for.
    pub(crate) waits_for: Vec<(String, Vec<Pending>)>,
    /// Effects on other branches that people should know before they decide.
    pub(crate) elsewhere: Elsewhere,
}

fn report(
    printer: &Printer,
    session: &str,
    line: Line,
    told: &Told,
    now: i64,
) -> Result<Exit, CommandError> {
    let settled = &*told.settled;
    let exit = exit(settled);
    if printer.is_json() {
        let mut document = document(session, line, settled, told.first.as_ref());
        if let Some((_, branch)) = told.name.split_once(':') {
            document["branch"] = branch.into();
        }
        if !told.waits_for.is_empty() {
            let names = told.waits_for.iter().map(|(name, _)| name.as_str());
            document["branches"] = names.collect();
        }
        printer.json(&document)?;
    }
    match settled {
        Settled::Answered { before, text, .. } if !printer.is_json() => {
            // All texts for the user, in order.
            for told in before {
                printer.whole(&**told)?;
            }
            printer.whole(&**text)?;
        }
        Settled::Limit {
            text: Some(text), ..
        } if !printer.is_json() => printer.whole(&**text)?,
        _ => {}
    }
    if *settled == Settled::Empty && !line.is_some() {
        return Err(CommandError::new(
            Exit::Failed,
            "this session was never begun: its process died before the first message was on disk",
        )
        .hint("nothing ran; begin a new session with `steersman run`"));
    }
    for row in summary(told, now) {
        match settled {
            // A failure is printed despite `--quiet`.
            Settled::Failed { .. } if !row.is_empty() => printer.complain(row),
            _ => printer.talk(row),
        }
    }
    Ok(exit)
}

/// Returns the exit code for a settled session.
pub(crate) fn exit(settled: &Settled) -> Exit {
    match settled {
        Settled::Answered { .. } => Exit::Answered,
        Settled::Asks(_) | Settled::Waits(_) | Settled::Paused | Settled::Empty => Exit::Waits,
        Settled::Limit { .. } => Exit::Limit,
        // The limit may be one of the session, or of an agent below.
        Settled::Failed { code, .. } => match Code::named(code) {
            Some(Code::Limit | Code::EndedLimit) => Exit::Limit,
            _ => Exit::Failed,
        },
        Settled::Cancelled => Exit::Failed,
        Settled::Doubt(_) => Exit::Doubt,
    }
}

/// Returns the status as one document: the last event of a command with `--json`. `first` is the first cause of a stop, if it is
/// known.
pub(crate) fn document(
    session: &str,
    line: Line,
    settled: &Settled,
    first: Option<&Reason>,
) -> serde_json::Value {
    let mut document = json!({
        "event": "settled",
        "session": session,
        "line": line.0,
    });
    if let (Some(document), serde_json::Value::Object(turn)) =
        (document.as_object_mut(), Turn::from(settled).to_json())
    {
        document.extend(turn);
    }
    // A turn does not distinguish a session that was never begun from one that waits.
    document["status"] = settled.word().into();
    if let Some(first) = first {
        document["reason"] = serde_json::to_value(first).unwrap_or_default();
    }
    document
}

/// Returns the status and the commands that continue from it.
pub(crate) fn summary(told: &Told, now: i64) -> Vec<String> {
    let mut rows = vec![String::new()];
    let (short, settled) = (&*told.name, &*told.settled);
    let session = short.split(':').next().unwrap_or(short);
    match settled {
        Settled::Waits(all) if all.is_empty() && !told.waits_for.is_empty() => {
            rows.extend(told.waits_for_branches(session));
        }
        Settled::Answered { .. } => rows.push(format!(
            "{} {}",
            green("Answered."),
            next(&[
                format!("steersman send {short} \"...\""),
                format!("steersman show {short}")
            ])
        )),
        Settled::Asks(all) | Settled::Doubt(all) | Settled::Waits(all) => {
            for pending in all {
                rows.extend(asked::frame(pending, &told.elsewhere, now, talk_width()));
            }
            rows.push(match settled {
                Settled::Doubt(_) => red("In doubt. It may have happened, so nothing is repeated until somebody says whether it did:"),
                Settled::Waits(_) => yellow("Parked. It goes on when what it waits for comes, in any process:"),
                _ => yellow("Parked. Nothing runs, and no model costs money, until somebody answers (in any terminal):"),
            });
            for command in all
                .iter()
                .flat_map(|pending| asked::commands(session, pending))
            {
                rows.push(format!("  {}", typed(&command)));
            }
        }
        Settled::Limit { code, .. } => {
            let said = yellow(&format!("The limit `{code}` was reached."));
            rows.extend(stopped(&said, told, session));
        }
        Settled::Failed { code, message } => {
            let message = message.trim_end_matches('.');
            let code = told
                .first
                .as_ref()
                .map_or_else(|| code.to_string(), Reason::told);
            let said = red(&format!("Failed ({code}): {message}."));
            rows.extend(stopped(&said, told, session));
        }
        Settled::Cancelled => rows.push(format!(
            "Cancelled. {}",
            next(&[
                format!("steersman show {short}"),
                format!("steersman send {short} \"...\"")
            ])
        )),
        Settled::Paused => rows.push(format!(
            "Paused by a person: nothing new begins. {}",
            next(&[format!("steersman resume {session}")])
        )),
        Settled::Empty => rows.push(format!(
            "Nothing was said yet. {}",
            next(&[format!("steersman send {short} \"...\"")])
        )),
    }
    rows
}

/// Returns what is said of a stop, the commands that help, and its cause and remedy.
fn stopped(said: &str, told: &Told, session: &str) -> Vec<String> {
    let name = &told.name;
    let (sentence, mut commands) = remedy(&told.settled, told.first.as_ref(), session).unzip();
    let commands = commands.get_or_insert_default();
    let show = format!("steersman show {name}");
    if !commands.contains(&show) {
        commands.push(show);
    }
    let rows = [
        Some(format!("{said} {}", next(commands))),
        sentence.map(|s| dim(&s)),
    ];
    rows.into_iter().flatten().collect()
}

impl Told {
    pub(crate) fn of(name: String, settled: Settled) -> Self {
        Self {
            name,
            settled: Arc::new(settled),
            first: None,
            waits_for: Vec::new(),
            elsewhere: Elsewhere::new(),
        }
    }

    /// Adds the effects on other branches that people should know before they decide.
    pub(crate) async fn beside(
        mut self,
        place: &Place,
        session: &str,
    ) -> Result<Self, CommandError> {
        if let Settled::Asks(all) | Settled::Doubt(all) = &*self.settled {
            self.elsewhere = asked::elsewhere(place, session, all).await?;
        }
        Ok(self)
    }

    /// Returns rows for a join: the open branches, what each waits for, and the commands to type.
    fn waits_for_branches(&self, session: &str) -> Vec<String> {
        let mut rows = vec![yellow("Parked. It goes on when branches end:")];
        for (name, pending) in &self.waits_for {
            let what: Vec<String> = pending
                .iter()
                .map(|p| format!("{} {}", wait(p.kind), p.effect))
                .collect();
            let mut commands: Vec<String> = pending
                .iter()
                .flat_map(|p| asked::commands(session, p))
                .collect();
            rows.push(if what.is_empty() {
                commands.push(format!("steersman send {session}:{name} \"...\""));
                format!("  {} waits for what is said to it", bold(name))
            } else {
                commands.push(format!("steersman cancel {session}:{name}"));
                format!("  {} waits for {}", bold(name), what.join(", "))
            });
            let commands = commands.iter().map(|c| format!("    {}", typed(c)));
            rows.extend(commands);
        }
        rows
    }
}

fn next(commands: &[String]) -> String {
    let commands: Vec<String> = commands.iter().map(|c| typed(c)).collect();
    format!("Next:  {}", commands.join("   "))
}
