//! Shared by the acting commands: give an act to a session, and drive the session if no process owns it.

use crate::address::{Address, SessionName};
use crate::cli::{Acting, Drive, Global, Own};
use crate::commands::changed;
use crate::error::{CommandError, Exit};
use crate::place::{Place, typed_as};
use crate::play::{self, Ended, Leaving, Play};
use crate::printer::{Printer, dim, here};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use steersman::runtime::engine::{BranchView, EngineError, Inspection};
use steersman::runtime::pending::{Pending, PendingId, PendingKind};
use steersman::runtime::session::Fate;
use steersman::runtime::store::StoreError;
use steersman::views::log::{self, Became};
use steersman::views::reader::Stored;
use steersman::views::screen::{effect_of, whys};
use steersman::views::why::Past;
use steersman::{Act, By};
use steersman_machine::stored::ids::{Line, Name};

/// Interval at which another owner is checked, and the total time to wait for it.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the person who acts, in the role of `--as`; the default is the user.
pub(crate) fn by(act: &Acting) -> By {
    By::role(role(act))
}

fn role(act: &Acting) -> &str {
    act.role.as_deref().unwrap_or("user")
}

/// The session that a command acts on, with what it waits for.
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) inspection: Inspection,
    /// The index of the branch that the address names.
    at: Option<usize>,
}

/// The result of putting a message into the inbox.
pub(crate) enum Reached<'a> {
    /// The message is in the inbox: no process drives the session, or its owner did not take the message yet.
    Inbox,
    /// Another process took the message, with this line.
    Elsewhere(Line),
    /// The message was accepted before; nothing was done.
    Known,
    /// The message stays in the inbox for this reason; nothing changed.
    Waits(String),
    /// The message was taken here, and the session was driven until it settled.
    Driven(Box<Play<'a>>, Ended, Option<Line>),
}

impl Target {
    pub(crate) async fn find(
        session: &str,
        global: &Global,
        drive: &Drive,
    ) -> Result<Self, CommandError> {
        let address = Address::parse(session)?;
        if address.line.is_some() || address.branch.is_some() {
            return Err(
                CommandError::usage(format!("`{session}` names more than a session"))
                    .hint("this acts on a session as it stands: leave `:BRANCH` and `@LINE` out"),
            );
        }
        Self::at(&address, global, drive).await
    }

    /// Finds a session or one of its branches.
    pub(crate) async fn of_branch(
        session: &str,
        global: &Global,
        drive: &Drive,
    ) -> Result<Self, CommandError> {
        let address = Address::parse(session)?;
        if address.line.is_some() {
            return Err(
                CommandError::usage(format!("`{session}` names more than a branch"))
                    .hint("this acts on it as it stands: leave `@LINE` out")
                    .hint("at an earlier line: steersman fork SESSION@LINE --say \"...\""),
            );
        }
        Self::at(&address, global, drive).await
    }

    /// Finds the session and the branch of an address.
    pub(crate) async fn at(
        address: &Address,
        global: &Global,
        drive: &Drive,
    ) -> Result<Self, CommandError> {
        let place = Place::required(global, drive).await?;
        let (inspection, at) = place.inspect(address).await?;
        let at = address.branch.is_some().then_some(at);
        Ok(Self {
            place,
            inspection,
            at,
        })
    }

    /// Returns the branch that the address names.
    pub(crate) fn branch(&self) -> Option<&BranchView> {
        self.inspection.branches.get(self.at?)
    }

    /// Returns the name as people type it: the session, with the branch if the address names one.
    pub(crate) async fn name(&self) -> Result<String, CommandError> {
        let short = self.place.short(&self.inspection.info.id).await?;
        Ok(typed_as(&short, self.branch()))
    }

    /// Finds the open question: by its effect if one is given, otherwise the only one of these kinds. A person who may not
    /// decide it is refused here, before the session is claimed.
    pub(crate) async fn pending(
        &self,
        effect: Option<&str>,
        kinds: &[PendingKind],
        what: &str,
        act: &Acting,
    ) -> Result<&Pending, CommandError> {
        let seen = &self.inspection;
        let pending = match only(&seen.pending, &seen.info.id, effect, kinds, what) {
            Ok(pending) => pending,
            Err(error) => {
                let decided = self.decided(effect, kinds).await?;
                return Err(decided.into_iter().fold(error, CommandError::hint));
            }
        };
        if let Some(network) = &self.inspection.network {
            let may = pending.may(network, role(act));
            may.map_err(CommandError::usage)?;
        }
        Ok(pending)
    }

    /// Says who ended the newest question of these kinds, if it is over.
    async fn decided(
        &self,
        effect: Option<&str>,
        kinds: &[PendingKind],
    ) -> Result<Option<String>, CommandError> {
        let typed = effect.map(effect_of);
        let log = self.place.log(&self.inspection.info.id).await?;
        let past = Past::new(&log, BTreeMap::new());
        Ok(past.decision(typed.as_deref(), &whys(kinds)))
    }

    /// Gives an act to the session through its inbox, and drives the session until it rests or waits, unless another process does.
    ///
    /// # Errors
    /// A refusal by the session, with its reason, whichever process drives it; errors of the store.
    pub(crate) async fn reach<'a>(
        &'a self,
        act: Act,
        own: &Own,
        printer: &'a Printer,
    ) -> Result<Reached<'a>, CommandError> {
        let place = &self.place;
        let session = self.inspection.info.id.clone();
        let head = self.inspection.info.head;
        if let Some(why) = act.refusal(&self.inspection) {
            return Err(CommandError::usage(why));
        }
        let short = place.short(&session).await?;
        let rebind = format!("`steersman run --resume {short} --rebind`");
        changed::tell(place, &self.inspection, &here(&rebind), printer);
        let receipt = place.steersman.deliver(&session, act).await?;
        let id = receipt.id;
        if receipt.fate == Fate::Known {
            return Ok(Reached::Known);
        }
        if own.no_run {
            return Ok(Reached::Inbox);
        }
        let leaving = Leaving::listen()?;
        let taken = place.steersman.session_for(&session, &id);
        match Box::pin(play::meanwhile(printer, "Takes up the session", taken)).await {
            Ok((session, fate)) => {
                let session = session.driven().clone();
                let mut play =
                    Play::new(place, printer, session, leaving, head, None, false).await?;
                if let Fate::Refused(why) = fate {
                    // The session was taken up to hear the act: what it did meanwhile is printed, and it is let go.
                    play.let_go().await?;
                    printer.talk(dim(&format!(
                        "This command took up the session to ask it, and let it go again at line {}.",
                        play.line()
                    )));
                    return Err(CommandError::usage(why));
                }
                let ended = play.settle().await?;
                match fate {
                    Fate::Waits(why) if play.line() <= head => {
                        play.let_go().await?;
                        Ok(Reached::Waits(why))
                    }
                    Fate::Taken(line) => Ok(Reached::Driven(Box::new(play), ended, Some(line))),
                    _ => Ok(Reached::Driven(Box::new(play), ended, None)),
                }
            }
            Err(steersman::Error::Engine(EngineError::Store(StoreError::Owned {
                process,
                ..
            }))) => {
                printer.talk(dim(&format!(
                    "process {process} drives this session and takes it"
                )));
                elsewhere(place, &session, &id, head).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Like [`Self::reach`]; then reports the status of the session.
    pub(crate) async fn deliver(
        &self,
        act: Act,
        own: &Own,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let reached = self.reach(act, own, printer).await?;
        self.report(reached, printer).await
    }

    /// Reports the status of the session after an act.
    pub(crate) async fn report(
        &self,
        reached: Reached<'_>,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        match reached {
            Reached::Driven(mut play, ended, _) => {
                play.branch = self.branch().map(|branch| branch.id);
                play.report(ended).await
            }
            other => self.noted(&other, printer).await,
        }
    }

    /// Reports the fate of a message if this process did not drive the session.
    pub(crate) async fn noted(
        &self,
        reached: &Reached<'_>,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let session = &self.inspection.info.id;
        let short = self.place.short(session).await?;
        match reached {
            Reached::Waits(why) => waits(printer, session, &self.name().await?, why),
            Reached::Elsewhere(_) => noted(printer, session, &short, "taken"),
            Reached::Known => noted(printer, session, &short, "known"),
            Reached::Inbox | Reached::Driven(..) => noted(printer, session, &short, "inbox"),
        }
    }
}

/// Finds the open question of a session: by its effect if one is given, otherwise the only one of these kinds.
pub(crate) fn only<'p>(
    all: &'p [Pending],
    id: &str,
    effect: Option<&str>,
    kinds: &[PendingKind],
    what: &str,
) -> Result<&'p Pending, CommandError> {
    // A question of an agent has no hold, and is answered; one of a server may also be approved or rejected.
    let decides = kinds.contains(&PendingKind::Approval);
    let is_of = |p: &&Pending| {
        let may_be = p.kind != PendingKind::Question || p.hold.is_some() || !decides;
        kinds.contains(&p.kind) && may_be
    };
    let open: Vec<&Pending> = all.iter().filter(is_of).collect();
    let list = |of: &[&Pending]| {
        let all: Vec<String> = of
            .iter()
            .map(|p| {
                let of = p.tool.as_deref().unwrap_or(&p.text);
                format!("{} ({} {of})", p.id(), p.kind.word())
            })
            .collect();
        all.join(", ")
    };
    if let Some(wanted) = effect {
        let typed = wanted.parse::<PendingId>().ok();
        let by_id = |p: &Pending| {
            typed.is_some_and(|id| id == p.id() || (id.hold.is_none() && id.effect == p.effect))
        };
        let found = open
            .iter()
            .filter(|p| by_id(p) || p.tool.as_deref() == Some(wanted));
        let found: Vec<&Pending> = found.copied().collect();
        return match found.as_slice() {
            [only] => Ok(only),
            [] if open.is_empty() => Err(CommandError::usage(format!(
                "{what} `{wanted}` is not open in `{id}`"
            ))
            .hint("`steersman pending` lists what waits")),
            [] => Err(
                CommandError::usage(format!("{what} `{wanted}` is not open in `{id}`"))
                    .hint(format!("open: {}", list(&open))),
            ),
            several => Err(CommandError::usage(format!(
                "{what} `{wanted}` is open more than once in `{id}`"
            ))
            .hint(format!("name one: {}", list(several)))),
        };
    }
    match open.as_slice() {
        [only] => Ok(only),
        [] => Err(CommandError::usage(format!("no {what} is open in `{id}`"))
            .hint("`steersman pending` lists what waits")),
        _ => Err(
            CommandError::usage(format!("`{id}` has more than one open {what}"))
                .hint(format!("name one: {}", list(&open))),
        ),
    }
}

/// Waits until the other process that drives the session has taken the message, and returns the result. `head` is the last line
/// before the message was sent.
pub(crate) async fn elsewhere<'a>(
    place: &Place,
    session: &str,
    id: &Name,
    head: Line,
) -> Result<Reached<'a>, CommandError> {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        let (_, inbox) = place.store().inbox(session).await?;
        if !inbox.iter().any(|m| m.id == *id)
            && let Some(line) = taken(place, session, id, head).await?
        {
            return Ok(Reached::Elsewhere(line));
        }
        tokio::time::sleep(LOOK).await;
        waited += LOOK;
    }
    Ok(Reached::Inbox)
}

/// Returns the line after `head` that took a message. A refusal is an error.
pub(crate) async fn taken(
    place: &Place,
    session: &str,
    id: &Name,
    head: Line,
) -> Result<Option<Line>, CommandError> {
    let reader = Stored::plain(place.engine(), session);
    match log::became(&reader, head, id).await? {
        Some(Became::Refused(why)) => Err(CommandError::usage(why.to_string())),
        Some(Became::Taken(line)) => Ok(Some(line)),
        None => Ok(None),
    }
}

/// Reports a message that stays in the inbox.
pub(crate) fn waits(
    printer: &Printer,
    session: &str,
    name: &str,
    why: &str,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "session": session, "status": "inbox", "why": why }))?;
    }
    printer.talk(format!(
        "It is stored in the session's inbox, and waits: {why}."
    ));
    printer.next("steersman pending", "");
    printer.next(format!("steersman show {name}"), "");
    Ok(Exit::Answered)
}

/// Reports the fate of a message that this process did not take.
pub(crate) fn noted(
    printer: &Printer,
    session: &str,
    short: &str,
    fate: &str,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "session": session, "status": fate }))?;
    }
    match fate {
        "taken" => {
            printer.talk("Taken.");
            printer.next(format!("steersman log {short} -f"), "");
        }
        "known" => {
            printer.talk(format!(
                "It was accepted before, by session {short}; nothing was done."
            ));
            printer.next(format!("steersman show {short}"), "");
        }
        _ => {
            printer.talk("It is stored in the session's inbox until a process drives the session.");
            printer.next(format!("steersman run --resume {short}"), "");
        }
    }
    Ok(Exit::Answered)
}

/// Returns true for a plain name, which may be a session or a network.
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
