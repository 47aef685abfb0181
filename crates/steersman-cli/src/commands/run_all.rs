//! `run --all`: drives every session of the store, and reports what happens.

use crate::cli::Global;
use crate::commands::run::RunArgs;
use crate::error::{CommandError, Exit};
use crate::place::{Place, shortest};
use crate::play::{self, Leaving, lets_go};
use crate::printer::{Printer, dim, red, yellow};
use crate::words::{count, line as one_line};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman::runtime::engine::{EngineError, Happened};
use steersman::runtime::inbox::unread;
use steersman::runtime::session::{Session, Settled};
use steersman::runtime::store::{SessionId, SessionQuery};
use steersman::views::reader::{Reader as _, Stored};
use steersman::views::story::Story;
use steersman_machine::stored::ids::{Line, Name};
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::CancellationToken;

/// Width of a line in columns.
const ROOM: usize = 90;
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
    printer.talk(format!(
        "Drives all that have something to do in {}: {} so far. Ctrl-C leaves them resumable.",
        crate::locate::shown(&place.file),
        count(all.len() as u64, "session"),
    ));
    if printer.is_json() {
        printer.json(&json!({ "status": "driving", "sessions": all.len() }))?;
    }
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
    };
    let with_mail = SessionQuery {
        inbox: true,
        ..SessionQuery::default()
    };
    for info in place.store().sessions(&with_mail).await? {
        teller.unread(&info.id).await?;
    }
    let ended = loop {
        tokio::select! {
            biased;
            () = leaving.wanted() => {
                stop.cancel();
                printer.talk("Stops.");
                let ended = lets_go(&mut driving, &mut leaving, printer, true).await;
                let Some(ended) = ended else {
                    place.is_left_at_once();
                    printer.next("steersman run --all", "goes on");
                    return Ok(Exit::Interrupted);
                };
                break ended;
            }
            ended = &mut driving => break ended,
            Some(what) = happened.recv() => teller.tell(what).await?,
        }
    };
    teller.drain(&mut happened).await?;
    ended.map_err(|e| CommandError::store(e.to_string()))??;
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

/// Reports what is new in each session since the last report.
struct Teller<'a> {
    place: &'a Place,
    printer: &'a Printer,
    /// The last line of each session that was reported or existed at the start.
    known: BTreeMap<SessionId, Line>,
    /// Unreadable messages that were reported.
    unreadable: BTreeSet<(SessionId, Name)>,
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
            let short = self.short(id).await?;
            self.printer.complain(yellow(&format!("{short}  {error}")));
        }
        Ok(())
    }

    async fn tell(&mut self, what: Happened) -> Result<(), CommandError> {
        match what {
            Happened::Taken(_) => Ok(()),
            Happened::Settled(session, settled) => self.settled(&session, &settled).await,
            Happened::Failed(id, why) => self.failed(&id, &why).await,
            Happened::Damaged(what) => {
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
        let short = self.short(&id).await?;
        let mut last = reported;
        for line in lines {
            let line = reader.arrived(line).await?;
            let rows = story.line(&line, &reader).await?;
            last = last.max(line.n);
            if line.n <= reported || self.printer.is_json() {
                continue;
            }
            for row in rows {
                let who = match row.who.as_str() {
                    "" => String::new(),
                    who => format!("{who}  "),
                };
                let note = match row.note.as_str() {
                    "" => String::new(),
                    note => format!("  ({note})"),
                };
                let text = format!("{short}  @{}  {who}{}{note}", row.line, row.text);
                self.printer.data(one_line(&text, ROOM))?;
            }
        }
        self.known.insert(id.clone(), last);
        if self.printer.is_json() {
            return self.printer.json(&play::document(&id, last, settled));
        }
        self.printer
            .data(dim(&format!("{short}  {}", settled.word())))
    }

    async fn failed(&mut self, id: &SessionId, why: &EngineError) -> Result<(), CommandError> {
        if self.printer.is_json() {
            let document =
                json!({ "session": &**id, "status": "undriven", "why": why.to_string() });
            return self.printer.json(&document);
        }
        let short = self.short(id).await?;
        self.printer
            .complain(red(&format!("{short}  is not driven: {why}")));
        Ok(())
    }

    async fn short(&self, id: &str) -> Result<String, CommandError> {
        let all = self
            .place
            .store()
            .sessions(&SessionQuery::default())
            .await?;
        Ok(shortest(id, all.iter().map(|info| &*info.id)).to_owned())
    }
}
