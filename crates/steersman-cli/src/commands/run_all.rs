//! `run --all`: drives every session of the store, and reports what happens.

use crate::cli::{Global, Times};
use crate::commands::run::RunArgs;
use crate::error::{CommandError, Exit};
use crate::place::{Place, shortest};
use crate::play::{self, Leaving, lets_go};
use crate::printer::{Printer, dim, red, yellow};
use crate::tell::row;
use crate::words::{count, digits, line as one_line, money, width};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;
use steersman::machine::view::iso;
use steersman::runtime::engine::{EngineError, Happened};
use steersman::runtime::inbox::{Occasion, unread};
use steersman::runtime::rerun::rerun_of;
use steersman::runtime::session::{Session, Settled};
use steersman::runtime::store::{ScheduleId, SessionId, SessionInfo, SessionQuery};
use steersman::views::cause::Reason;
use steersman::views::reader::{Reader as _, Stored};
use steersman::views::story::Story;
use steersman_machine::stored::ids::{Line, Name, Time};
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::CancellationToken;

/// Maximum number of unreported notices. Lines whose notice is dropped are reported with the next notice of their session.
const NOTICES: usize = 4_096;

pub(crate) async fn run(
    args: RunArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    // The store is created if it does not exist, because sessions may be added later.
    let place = Place::open(global, &args.drive).await?;
    let mut leaving = Leaving::listen()?;
    let stop = CancellationToken::new();
    // From this call on, lists are read without their damaged parts. The damage itself is reported by driving.
    place.store().damaged_lists().await?;
    let all = place.store().sessions(&SessionQuery::default()).await?;
    let with_mail = SessionQuery {
        inbox: true,
        ..SessionQuery::default()
    };
    let with_mail = place.store().sessions(&with_mail).await?;
    if !args.until_idle {
        printer.talk(format!(
            "Drives all that have something to do in {}: {} so far. Ctrl-C leaves them resumable.",
            crate::locate::shown(&place.file),
            count(all.len() as u64, "session"),
        ));
    }
    if printer.is_json() {
        printer.json(&json!({ "status": "driving", "sessions": all.len() }))?;
    }
    clock_is_behind(&place, &all, printer);
    let (notices, mut happened) = channel(NOTICES);
    let engine = place.engine().clone();
    let until = stop.clone();
    let mut driving = tokio::spawn(async move {
        engine
            .run_all_told(until, move |what| {
                // If the queue is full, the lines are reported with the session's next notice.
                let _ = notices.try_send(what);
            })
            .await
    });
    let mut teller = Teller {
        place: &place,
        printer,
        known: all
            .iter()
            .map(|info| (info.id.clone(), info.head))
            .collect(),
        unreadable: BTreeSet::new(),
        rows: !args.until_idle || args.verbose,
        times: Times { times: args.times }.are_shown(),
        progress: args.until_idle.then(|| {
            let has_mail = |info: &SessionInfo| with_mail.iter().any(|other| other.id == info.id);
            Progress::new(&all, place.now(), has_mail)
        }),
    };
    for info in &with_mail {
        teller.unread(&info.id).await?;
    }
    teller.progress();
    let mut is_idle = false;
    let ended = loop {
        tokio::select! {
            biased;
            () = leaving.wanted() => {
                stop.cancel();
                printer.talk("Stops.");
                let driven = place.engine().all_driven();
                let ended = lets_go(&driven, &mut driving, &mut leaving, printer, true).await;
                let Some(ended) = ended else {
                    place.is_left_at_once();
                    printer.next("steersman run --all", "goes on");
                    return Ok(Exit::Interrupted);
                };
                break ended;
            }
            ended = &mut driving => break ended,
            Some(what) = happened.recv() => {
                if matches!(what, Happened::Idle) && args.until_idle {
                    is_idle = true;
                    stop.cancel();
                }
                teller.tell(what).await?;
            }
        }
    };
    teller.drain(&mut happened).await?;
    ended.map_err(|e| CommandError::store(e.to_string()))??;
    if let Some(progress) = teller.progress.take().filter(|_| is_idle) {
        return teller.ends_idle(&progress);
    }
    if printer.is_json() {
        printer.json(&json!({ "status": "interrupted" }))?;
    }
    printer.talk(match teller.unreadable.len() as u64 {
        0 => "Stopped. Nothing is lost.".to_owned(),
        n => format!(
            "Stopped. {} not heard: see above. All else goes on from here.",
            match n {
                1 => "1 message is".to_owned(),
                n => format!("{n} messages are"),
            }
        ),
    });
    printer.next("steersman run --all", "goes on");
    Ok(Exit::Interrupted)
}

/// Time by which the clock may be behind that of another process, in milliseconds.
const SKEW: i64 = 60_000;

/// Warns if the clock is behind the times in the store: what is due by those times does not happen yet.
fn clock_is_behind(place: &Place, all: &[SessionInfo], printer: &Printer) {
    let times = all.iter().map(|info| info.state.updated.max(info.created));
    let (now, newest) = (place.now(), times.max().unwrap_or_default());
    if newest.0.saturating_sub(now) > SKEW {
        printer.complain(yellow(&format!(
            "the clock is at {}, and this store has changes of {}: messages are taken, but timers and schedules wait until the clock gets there",
            clock_time(Time(now)),
            clock_time(newest),
        )));
    }
}

fn clock_time(time: Time) -> String {
    iso(time, "UTC").replace("+00:00", "Z")
}

/// Reports what is new in each session since the last report.
struct Teller<'a> {
    place: &'a Place,
    printer: &'a Printer,
    /// The last line of each session that was reported or existed at the start.
    known: BTreeMap<SessionId, Line>,
    /// Unreadable messages that were reported.
    unreadable: BTreeSet<(SessionId, Name)>,
    /// True if each line of each session is printed.
    rows: bool,
    /// True if each row begins with its time.
    times: bool,
    /// The progress until no session has anything to do, if it is told.
    progress: Option<Progress>,
}

/// The progress of the sessions that have something to do.
struct Progress {
    /// The sessions that have something to do, each with its last result if it has settled.
    sessions: BTreeMap<SessionId, Option<Arc<Settled>>>,
    /// Sessions that could not be driven.
    undriven: BTreeSet<SessionId>,
    /// Cost of each session before, and now, in millionths of the currency.
    costs: BTreeMap<SessionId, (u64, u64)>,
}

impl Progress {
    fn new(all: &[SessionInfo], now: i64, has_mail: impl Fn(&SessionInfo) -> bool) -> Self {
        let wanted = |info: &SessionInfo| {
            let due = info.left.wants.is_some_and(|wants| wants.0 <= now);
            info.owner.is_none() && (due || has_mail(info))
        };
        let sessions = all.iter().filter(|info| wanted(info));
        let costs = all.iter().map(|info| {
            let cost = info.state.micros;
            (info.id.clone(), (cost, cost))
        });
        Self {
            sessions: sessions.map(|info| (info.id.clone(), None)).collect(),
            undriven: BTreeSet::new(),
            costs: costs.collect(),
        }
    }

    fn failed(&self) -> usize {
        let settled = self.sessions.values().flatten();
        let failed = settled.filter(|settled| matches!(***settled, Settled::Failed { .. }));
        failed.count() + self.undriven.len()
    }

    fn waiting(&self) -> usize {
        let settled = self.sessions.values().flatten();
        let waiting = settled.filter(|settled| {
            matches!(
                ***settled,
                Settled::Asks(_) | Settled::Waits(_) | Settled::Doubt(_)
            )
        });
        waiting.count()
    }

    fn done(&self) -> usize {
        self.sessions.values().flatten().count()
    }

    /// Returns what the sessions have cost since the beginning, in millionths of the currency.
    fn cost(&self) -> u64 {
        let spent = |(before, now): &(u64, u64)| now.saturating_sub(*before);
        self.costs.values().map(spent).fold(0, u64::saturating_add)
    }

    /// Returns the progress in one line: `37/50, 3 failed, 0.0120`.
    fn told(&self) -> String {
        let mut told = format!("{}/{}", self.done(), self.sessions.len());
        for (n, word) in [(self.waiting(), "waiting"), (self.failed(), "failed")] {
            if n > 0 {
                told = format!("{told}, {n} {word}");
            }
        }
        format!("{told}, {}", money(self.cost()))
    }
}

impl Teller<'_> {
    /// Reports the notices that are still in the queue.
    async fn drain(&mut self, happened: &mut Receiver<Happened>) -> Result<(), CommandError> {
        while let Ok(what) = happened.try_recv() {
            self.tell(what).await?;
        }
        Ok(())
    }

    /// Reports unreadable inbox messages, each once. They stay in the inbox.
    async fn unread(&mut self, id: &SessionId) -> Result<(), CommandError> {
        for error in unread(&self.place.store().inbox(id).await?.1) {
            if !self
                .unreadable
                .insert((id.clone(), error.message().clone()))
            {
                continue;
            }
            if self.printer.is_json() {
                self.printer.json(&json!({
                    "session": &**id,
                    "status": "unheard",
                    "message": &**error.message(),
                    "why": error.to_string(),
                }))?;
                continue;
            }
            let short = short(id, &self.listed().await?);
            self.printer.complain(yellow(&format!("{short}  {error}")));
        }
        Ok(())
    }

    async fn tell(&mut self, what: Happened) -> Result<(), CommandError> {
        match what {
            Happened::Idle => Ok(()),
            Happened::Taken(session) => {
                if let Some(progress) = &mut self.progress {
                    progress.sessions.entry(session.id().into()).or_default();
                }
                self.progress();
                Ok(())
            }
            Happened::Settled(session, settled) => {
                self.clear();
                self.settled(&session, &settled).await?;
                self.progress();
                Ok(())
            }
            Happened::Failed(id, why) => {
                self.clear();
                if let Some(progress) = &mut self.progress {
                    progress.undriven.insert(id.clone());
                }
                self.failed(&id, &why).await?;
                self.progress();
                Ok(())
            }
            Happened::Left(id) => {
                self.clear();
                if let Some(progress) = &mut self.progress {
                    progress.sessions.remove(&id);
                }
                self.left(&id).await?;
                self.progress();
                Ok(())
            }
            Happened::Erased(ids) => {
                self.clear();
                if let Some(progress) = &mut self.progress {
                    progress.sessions.retain(|id, _| !ids.contains(id));
                }
                if self.printer.is_json() {
                    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
                    let document = json!({ "status": "erased", "sessions": ids });
                    return self.printer.json(&document);
                }
                self.printer.talk(erased(ids.len()));
                self.progress();
                Ok(())
            }
            Happened::Scheduled(schedule, session, occasion) => {
                self.clear();
                self.scheduled(&schedule, &session, &occasion).await?;
                self.progress();
                Ok(())
            }
            Happened::Unscheduled(schedule, why) => {
                self.clear();
                if self.printer.is_json() {
                    let document = json!({
                        "status": "unscheduled",
                        "network": &*schedule.network,
                        "schedule": &*schedule.name,
                        "why": why.to_string(),
                    });
                    return self.printer.json(&document);
                }
                let ScheduleId { network, name, .. } = &schedule;
                self.printer.complain(red(&format!(
                    "schedule {name} of {network}: its session cannot begin: {why}. It is tried again each minute"
                )));
                self.progress();
                Ok(())
            }
            Happened::Damaged(what) => {
                self.clear();
                if self.printer.is_json() {
                    let document = json!({ "status": "damaged", "why": what });
                    return self.printer.json(&document);
                }
                self.printer.complain(red(&format!(
                    "{what}; what is found goes on. steersman fsck tells more"
                )));
                Ok(())
            }
        }
    }

    /// Reports the session of an occurrence, and how many occurrences before it were missed.
    async fn scheduled(
        &self,
        schedule: &ScheduleId,
        session: &SessionId,
        occasion: &Occasion,
    ) -> Result<(), CommandError> {
        let due = clock_time(occasion.due);
        if self.printer.is_json() {
            return self.printer.json(&json!({
                "status": "scheduled",
                "session": &**session,
                "network": &*schedule.network,
                "schedule": &*schedule.name,
                "due": due,
                "missed": occasion.missed,
            }));
        }
        if !self.rows && occasion.missed == 0 {
            return Ok(());
        }
        let short = short(session, &self.listed().await?);
        let missed = match occasion.missed {
            0 => String::new(),
            1 => "; 1 time before it was missed".to_owned(),
            n => format!("; {} times before it were missed", digits(n.into())),
        };
        let text = format!("{short}  schedule {}, due {due}{missed}", schedule.name);
        self.printer.data(one_line(&text, width()))
    }

    async fn settled(
        &mut self,
        session: &Session,
        settled: &Arc<Settled>,
    ) -> Result<(), CommandError> {
        let id: SessionId = session.id().into();
        self.unread(&id).await?;
        let reported = self.known.get(&id).copied().unwrap_or(Line::NONE);
        let lines = self.place.engine().feed(&id, Line::NONE).lines().await?;
        let (mut story, reader) = (Story::default(), Stored::plain(self.place.engine(), &id));
        let all = self.listed().await?;
        let short = short(&id, &all);
        if let Some(progress) = &mut self.progress {
            progress.sessions.insert(id.clone(), Some(settled.clone()));
            progress.undriven.remove(&id);
            for info in &all {
                let cost = info.state.micros;
                progress.costs.entry(info.id.clone()).or_insert((0, 0)).1 = cost;
            }
        }
        let mut last = reported;
        for line in lines {
            let line = reader.arrived(line).await?;
            let rows = story.line(&line, &reader).await?;
            last = last.max(line.n);
            if line.n <= reported || self.printer.is_json() || !self.rows {
                continue;
            }
            for row in rows {
                let who = match row.who.as_str() {
                    "" => String::new(),
                    who => format!("{who}  "),
                };
                let note = match row::note(&row).as_str() {
                    "" => String::new(),
                    note => format!("  ({note})"),
                };
                let time = if self.times {
                    row::time_of(row.at)
                } else {
                    String::new()
                };
                let text = format!("{short}  @{}  {who}{}{note}", row.line, row.text);
                let room = width().saturating_sub(time.len());
                self.printer
                    .data(format!("{}{}", dim(&time), one_line(&text, room)))?;
            }
        }
        self.known.insert(id.clone(), last);
        let first = match &**settled {
            Settled::Failed { .. } | Settled::Limit { .. } => {
                Reason::of(&self.place.engine().inspect(&id).await?)
            }
            _ => None,
        };
        if self.printer.is_json() {
            let document = play::document(&id, last, settled, first.as_ref());
            return self.printer.json(&document);
        }
        match (self.rows, &**settled) {
            (true, _) => self
                .printer
                .data(dim(&format!("{short}  {}", settled.word()))),
            (false, Settled::Failed { code, message }) => {
                let code = first.map_or_else(|| code.to_string(), |first| first.told());
                let text = one_line(&format!("{short}  failed ({code}): {message}"), width());
                self.printer.data(red(&text))
            }
            (false, _) => Ok(()),
        }
    }

    /// Shows the progress on a terminal, in place of the one before.
    fn progress(&self) {
        if let Some(progress) = &self.progress
            && std::io::stderr().is_terminal()
        {
            self.printer.status(&progress.told());
        }
    }

    /// Removes the progress before something else is printed.
    fn clear(&self) {
        if self.progress.is_some() && std::io::stderr().is_terminal() {
            self.printer.clear_status();
        }
    }

    /// Reports that no session has anything to do.
    fn ends_idle(&self, progress: &Progress) -> Result<Exit, CommandError> {
        if std::io::stderr().is_terminal() {
            self.printer.clear_status();
        }
        let failed = progress.failed();
        if self.printer.is_json() {
            self.printer.json(&json!({
                "status": "idle",
                "sessions": progress.sessions.len(),
                "done": progress.done(),
                "waiting": progress.waiting(),
                "failed": failed,
                "cost": progress.cost() as f64 / 1e6,
            }))?;
        } else {
            self.printer.data(progress.told())?;
        }
        if failed > 0 {
            self.printer
                .next("steersman sessions --by code", "why they failed");
        }
        if progress.waiting() > 0 {
            self.printer
                .next("steersman pending", "what the others wait for");
        }
        Ok(if failed > 0 {
            Exit::Failed
        } else {
            Exit::Answered
        })
    }

    async fn failed(&mut self, id: &SessionId, why: &EngineError) -> Result<(), CommandError> {
        if self.printer.is_json() {
            let document =
                json!({ "session": &**id, "status": "undriven", "why": why.to_string() });
            return self.printer.json(&document);
        }
        let short = short(id, &self.listed().await?);
        self.printer
            .complain(red(&format!("{short}  is not driven: {why}")));
        Ok(())
    }

    /// Reports a rerun that is not driven.
    async fn left(&self, id: &SessionId) -> Result<(), CommandError> {
        const WHY: &str =
            "a rerun that is not live goes on only in its own command: begin it again";
        if self.printer.is_json() {
            let document = json!({ "session": &**id, "status": "left", "why": WHY });
            return self.printer.json(&document);
        }
        let all = self.listed().await?;
        let origin = all.iter().find(|info| info.id == *id).and_then(rerun_of);
        let command = origin.map(|of| format!(": steersman rerun {}", short(of, &all)));
        let (short, command) = (short(id, &all), command.unwrap_or_default());
        self.printer
            .complain(yellow(&format!("{short}  is left alone: {WHY}{command}")));
        Ok(())
    }

    async fn listed(&self) -> Result<Vec<SessionInfo>, CommandError> {
        let query = SessionQuery::default();
        Ok(self.place.store().sessions(&query).await?)
    }
}

/// Returns an id as short as it can be among these sessions.
fn short(id: &str, all: &[SessionInfo]) -> String {
    shortest(id, all.iter().map(|info| &*info.id)).to_owned()
}

/// Says how many sessions were erased because their time is over.
pub(crate) fn erased(sessions: usize) -> String {
    format!(
        "Erased {}: the time for which their definition keeps them is over.",
        count(sessions as u64, "session")
    )
}
