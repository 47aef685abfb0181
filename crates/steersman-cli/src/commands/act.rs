//! What the acting commands share: put it into the inbox, and drive the session if nobody owns it.

use crate::address::{Address, SessionName};
use crate::cli::{Act, Global};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::play::{Leaving, Play};
use crate::printer::{Printer, dim};
use serde_json::json;
use std::time::Duration;
use steersman::runtime::engine::{EngineError, Inspection};
use steersman::runtime::inbox::Message;
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::runtime::session::Fate;
use steersman::runtime::store::StoreError;
use steersman_machine::ids::{Id, Line, Name};

/// How often another owner is looked at, and how long.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);

/// The role in which somebody acts.
pub(crate) fn role(act: &Act) -> Name {
    act.role.as_deref().unwrap_or("user").into()
}

/// The session that is meant, with what waits in it.
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) inspection: Inspection,
}

impl Target {
    pub(crate) async fn find(
        session: &str,
        global: &Global,
        act: &Act,
    ) -> Result<Self, CommandError> {
        let place = Place::required(global, &act.drive).await?;
        let address = Address::parse(session)?;
        if address.line.is_some() || address.branch.is_some() {
            return Err(
                CommandError::usage(format!("`{session}` names more than a session"))
                    .hint("this acts on a session as it stands: leave `:BRANCH` and `@LINE` out"),
            );
        }
        let (inspection, _) = place.inspect(&address).await?;
        Ok(Self { place, inspection })
    }

    /// What waits and is meant: by its effect, else the only one of these kinds. Who may not end it is told so here:
    /// the session is not even claimed for that.
    pub(crate) fn pending(
        &self,
        effect: Option<&str>,
        kinds: &[PendingKind],
        what: &str,
        act: &Act,
    ) -> Result<&Pending, CommandError> {
        let pending = self.found(effect, kinds, what)?;
        if let Some(network) = &self.inspection.network {
            let may = pending.may(network, &role(act));
            may.map_err(CommandError::usage)?;
        }
        Ok(pending)
    }

    fn found(
        &self,
        effect: Option<&str>,
        kinds: &[PendingKind],
        what: &str,
    ) -> Result<&Pending, CommandError> {
        let id = &self.inspection.info.id;
        let open: Vec<&Pending> = self
            .inspection
            .pending
            .iter()
            .filter(|p| kinds.contains(&p.kind))
            .collect();
        let list = || {
            let all: Vec<String> = open
                .iter()
                .map(|p| {
                    let of = p.tool.as_deref().unwrap_or(&p.text);
                    format!("{} ({} {of})", p.effect, p.kind.word())
                })
                .collect();
            all.join(", ")
        };
        if let Some(wanted) = effect {
            let id_wanted = wanted.parse::<Id>().ok();
            let found = open
                .iter()
                .find(|p| id_wanted == Some(p.effect) || p.tool.as_deref() == Some(wanted));
            return found.copied().ok_or_else(|| {
                let error = CommandError::usage(format!("{what} `{wanted}` is not open in `{id}`"));
                if open.is_empty() {
                    error.hint("`steersman pending` lists what waits")
                } else {
                    error.hint(format!("open: {}", list()))
                }
            });
        }
        match open.as_slice() {
            [only] => Ok(only),
            [] => Err(CommandError::usage(format!("no {what} is open in `{id}`"))
                .hint("`steersman pending` lists what waits")),
            _ => Err(
                CommandError::usage(format!("`{id}` has more than one open {what}"))
                    .hint(format!("name one: {}", list())),
            ),
        }
    }

    /// Puts it into the inbox; then drives the session until it rests or waits, unless somebody else does.
    pub(crate) async fn deliver(
        self,
        message: Message,
        id: Option<Name>,
        act: &Act,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let Self { place, inspection } = self;
        let session = inspection.info.id.clone();
        let told = inspection.info.head;
        let id = id.unwrap_or_else(steersman::runtime::inbox::random_id);
        let receipt = place
            .engine()
            .deliver_as(&session, id.clone(), message)
            .await?;
        if receipt.fate == Fate::Known {
            return Err(CommandError::usage(format!(
                "`{id}` was accepted by this session before; nothing was done"
            )));
        }
        if act.no_run {
            return noted(printer, &session, &place.short(&session).await?, "inbox");
        }
        let leaving = Leaving::listen()?;
        match place.steersman.session_for(&session, &id).await {
            Ok((session, fate)) => {
                let session = session.driven().clone();
                if let Fate::Refused(why) = fate {
                    session.stop().await;
                    return Err(CommandError::usage(why));
                }
                let mut play = Play::new(&place, printer, session, leaving, told, None).await?;
                let ended = play.settle().await?;
                if let Fate::Waits(why) = fate
                    && play.line() <= told
                {
                    let short = play.short.clone();
                    play.session.clone().stop().await;
                    return waits(printer, play.session.id(), &short, &why);
                }
                play.report(ended).await
            }
            Err(steersman::Error::Engine(EngineError::Store(StoreError::Owned {
                process,
                ..
            }))) => {
                printer.talk(dim(&format!(
                    "process {process} drives this session and takes it"
                )));
                elsewhere(&place, &session, &id, told, printer).await
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Another process drives the session: waits until it has taken what lies in the inbox.
async fn elsewhere(
    place: &Place,
    session: &str,
    id: &Name,
    told: Line,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let short = place.short(session).await?;
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        let inbox = place.store().inbox(session).await?;
        if !inbox.iter().any(|m| m.id == *id) {
            let head = place.store().head(session).await?;
            let taken = if head > told { "taken" } else { "inbox" };
            return noted(printer, session, &short, taken);
        }
        tokio::time::sleep(LOOK).await;
        waited += LOOK;
    }
    noted(printer, session, &short, "inbox")
}

/// It was left where it lies, and nothing moved.
fn waits(printer: &Printer, session: &str, short: &str, why: &str) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "session": session, "status": "inbox", "why": why }))?;
    }
    printer.talk(format!("It lies in the inbox, durably, and waits: {why}."));
    printer.next("steersman pending", "");
    printer.next(format!("steersman show {short}"), "");
    Ok(Exit::Answered)
}

fn noted(printer: &Printer, session: &str, short: &str, fate: &str) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "session": session, "status": fate }))?;
    }
    if fate == "taken" {
        printer.talk("Taken.");
        printer.next(format!("steersman log {short} -f"), "");
    } else {
        printer.talk("It lies in the inbox, durably, until somebody drives the session.");
        printer.next(format!("steersman run --resume {short}"), "");
    }
    Ok(Exit::Answered)
}

/// A session and perhaps a network by its name.
pub(crate) fn is_plain(name: &str) -> bool {
    matches!(
        Address::parse(name),
        Ok(Address {
            session: SessionName::Prefix(_),
            branch: None,
            line: None
        })
    )
}
