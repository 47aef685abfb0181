//! Shared by `cancel`, `pause`, `resume`, `hold`, `release`, `retry` and `migrate`: orders for one session, or for all that
//! match.

use crate::cli::{Acting, Drive, Global, Own, Which};
use crate::commands::act::{Reached, Target, by, elsewhere, taken};
use crate::commands::edit::values;
use crate::commands::pending::listed;
use crate::commands::sessions;
use crate::error::{CommandError, Exit};
use crate::place::{Place, shortest};
use crate::play;
use crate::printer::{Printer, dim, red, typed};
use crate::prompt::{Prompt, Typed};
use crate::words::{count, filter};
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use std::sync::Arc;
use steersman::runtime::budgets::named_in;
use steersman::runtime::engine::EngineError;
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::runtime::session::{Fate, Settled};
use steersman::runtime::store::{SessionInfo, StoreError};
use steersman::views::cause::Reason;
use steersman::views::filter::Filter;
use steersman::{Act, By};
use steersman_client::OfTool;

/// Number of sessions that are driven concurrently for an order to many.
const AT_ONCE: usize = 8;

/// The arguments of `hold` and `release`: sessions, and the tool whose effects are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Held {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Only of this tool, whatever its class [default: all tools that are `idempotent` or `unsafe`].
    #[arg(long, value_name = "TOOL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) act: Acting,
}

impl Held {
    pub(crate) fn hold(&self) -> Act {
        Act::hold(self.tool.as_deref(), by(&self.act))
    }

    pub(crate) fn release(&self) -> Act {
        Act::release(self.tool.as_deref(), by(&self.act))
    }

    /// Returns the order as a server takes it.
    pub(crate) fn of_tool(&self) -> OfTool {
        OfTool {
            role: self.act.role.clone(),
            tool: self.tool.clone(),
        }
    }
}

/// An order for sessions.
pub(crate) struct Wanted {
    given: Given,
    /// The word for a session that took the order, for lists.
    word: &'static str,
    /// True if the session is driven afterwards.
    goes_on: bool,
    /// True if the order ends a pause. It changes nothing in a session that rests and is not paused.
    resumes: bool,
    /// The command that ends the order.
    end: Option<String>,
}

/// The act of an order.
enum Given {
    /// The same one for each session.
    Act(Act),
    /// An edit of entries of state, as they are typed. The types that a session declares tell the values.
    Edit(Vec<(String, String)>, By),
    /// An approval of each model call that waits for the budget of this name.
    Through(String, By),
}

/// All results of an order in one session, each with the word for a number of sessions. A session that took the order has the
/// order's own word.
const FATES: [(&str, &str); 5] = [
    ("taken", ""),
    ("unchanged", "unchanged"),
    ("inbox", "in the inbox"),
    ("refused", "refused"),
    ("failed", "failed"),
];

/// The result of an order that no process took yet.
pub(crate) const IN_INBOX: &str = "stored in its inbox until a process drives it";

/// Reports an order to one session: its status and its result in words. `end` is the command that ends the order.
pub(crate) fn ordered(
    printer: &Printer,
    (session, short): (&str, &str),
    (status, text): (&str, &str),
    end: Option<&str>,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "session": session, "status": status }))?;
    }
    printer.talk(format!("{short}: {text}."));
    if let Some(end) = end {
        let (verb, rest) = end.split_once(' ').unwrap_or((end, ""));
        let command = format!("steersman {verb} {short} {rest}");
        printer.next(command.trim_end(), "ends it");
    }
    Ok(Exit::Answered)
}

/// The result of an order in one session.
pub(crate) struct Outcome {
    /// One of [`FATES`].
    pub(crate) fate: &'static str,
    /// The result in words.
    pub(crate) text: String,
    settled: Option<Arc<Settled>>,
    /// The first cause, if the session failed or reached a limit.
    first: Option<Reason>,
}

impl Outcome {
    fn new(fate: &'static str, text: impl Into<String>) -> Self {
        Self {
            fate,
            text: text.into(),
            settled: None,
            first: None,
        }
    }

    /// Returns the exit code of a command for this session alone.
    fn exit(&self) -> Exit {
        match &self.settled {
            _ if self.is_bad() => Exit::Failed,
            Some(settled) if self.fate == "taken" => play::exit(settled),
            _ => Exit::Answered,
        }
    }

    fn in_inbox() -> Self {
        Self::new("inbox", IN_INBOX)
    }

    fn refused(why: impl Into<String>) -> Self {
        Self::new("refused", why)
    }

    /// Returns the result of an order to a session that another process drives; `taken` is the text for success.
    fn elsewhere(
        reached: Result<Reached<'_>, CommandError>,
        taken: impl Into<String>,
    ) -> Result<Self, CommandError> {
        match reached {
            Ok(Reached::Elsewhere(_)) => Ok(Self::new("taken", taken)),
            Ok(_) => Ok(Self::in_inbox()),
            Err(error) if error.exit == Exit::Usage => Ok(Self::refused(error.message)),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the session did not accept the order.
    pub(crate) fn is_bad(&self) -> bool {
        matches!(self.fate, "refused" | "failed")
    }

    /// Returns true if the text is the reason why the order has no effect, or none yet.
    fn is_reason(&self) -> bool {
        self.fate != "taken"
    }
}

impl Wanted {
    /// Creates an order that takes effect immediately and begins nothing.
    pub(crate) fn order(act: Act, word: &'static str, end: Option<&str>) -> Self {
        Self {
            given: Given::Act(act),
            word,
            goes_on: false,
            resumes: false,
            end: end.map(str::to_owned),
        }
    }

    /// Creates an order after which the session is driven.
    pub(crate) fn drives(act: Act, word: &'static str) -> Self {
        Self {
            given: Given::Act(act),
            word,
            goes_on: true,
            resumes: false,
            end: None,
        }
    }

    /// Creates the order that ends a pause, after which the session is driven.
    pub(crate) fn resumes() -> Self {
        Self {
            resumes: true,
            ..Self::drives(Act::resume(), "goes on")
        }
    }

    /// Creates an approval of the model calls that wait for a budget over sessions, after which the session is driven.
    pub(crate) fn lets_through(budget: String, by: By) -> Self {
        Self {
            given: Given::Through(budget, by),
            word: "let through",
            goes_on: true,
            resumes: false,
            end: None,
        }
    }

    /// Creates an edit of state, after which the session is driven.
    pub(crate) fn edits(state: Vec<(String, String)>, by: By) -> Self {
        Self {
            given: Given::Edit(state, by),
            word: "edited",
            goes_on: true,
            resumes: false,
            end: None,
        }
    }

    /// Returns the act for a session. Further acts are put into its inbox.
    async fn act(&self, place: &Place, session: &str) -> Result<Act, CommandError> {
        Ok(match &self.given {
            Given::Through(budget, by) => {
                let seen = place.engine().inspect(session).await?;
                let mut acts = seen
                    .pending
                    .iter()
                    .filter(|pending| waits_for(pending, budget))
                    .map(|pending| Act::approve(pending.id(), by.clone()));
                let Some(first) = acts.next() else {
                    let what = format!("no call of it waits for a budget `{budget}`");
                    return Err(CommandError::usage(what).hint(
                        "steersman pending --where \"kind = budget\" lists those that wait",
                    ));
                };
                for act in acts {
                    place.steersman.deliver(session, act).await?;
                }
                first
            }
            Given::Act(act) => act.clone(),
            Given::Edit(state, by) => {
                let seen = place.engine().inspect(session).await?;
                let state = values(state, seen.network.as_deref());
                let state = state.iter().map(|(name, value)| (name.as_str(), value));
                Act::edit(state, by.clone())
            }
        })
    }

    pub(crate) async fn carry_out(
        &self,
        which: &Which,
        own: &Own,
        global: &Global,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        if let Some(session) = &which.session {
            let target = Target::find(session, global, &own.drive).await?;
            return self.in_one(target, own, printer).await;
        }
        self.in_all(which, own, global, printer).await
    }

    async fn in_one(
        &self,
        target: Target,
        own: &Own,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        if self.goes_on {
            let act = self.act(&target.place, &target.inspection.info.id).await?;
            return target.deliver(act, own, printer).await;
        }
        let (place, info) = (&target.place, &target.inspection.info);
        let outcome = self.ordered(place, info, own).await?;
        if outcome.is_bad() {
            return Err(CommandError::usage(outcome.text));
        }
        let short = place.short(&info.id).await?;
        let told = (self.status(&outcome), &*outcome.text);
        ordered(printer, (&*info.id, &*short), told, self.end.as_deref())
    }

    /// Gives an order to a session, whichever process owns it. The session is not driven for it.
    pub(crate) async fn ordered(
        &self,
        place: &Place,
        info: &SessionInfo,
        own: &Own,
    ) -> Result<Outcome, CommandError> {
        let act = self.act(place, &info.id).await?;
        if own.no_run {
            place.steersman.deliver(&info.id, act).await?;
            return Ok(Outcome::in_inbox());
        }
        let receipt = place.steersman.order(&info.id, act).await?;
        Ok(match receipt.fate {
            Fate::Taken(_) | Fate::Known => Outcome::new("taken", self.word),
            Fate::Refused(why) => Outcome::refused(why),
            Fate::Waits(why) => Outcome::new("inbox", why),
            Fate::Lies => {
                let reached = elsewhere(place, &info.id, &receipt.id, info.head).await;
                Outcome::elsewhere(reached, self.word)?
            }
        })
    }

    /// Returns the status for a document: the state of the session, or the fate of the order.
    fn status(&self, outcome: &Outcome) -> &'static str {
        match outcome.fate {
            "taken" => self.word,
            other => other,
        }
    }

    pub(crate) async fn in_all(
        &self,
        which: &Which,
        own: &Own,
        global: &Global,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let waiting = |info: &SessionInfo| match &self.given {
            Given::Through(budget, _) => {
                let waits = listed(info);
                waits.is_none_or(|waits| waits.iter().any(|waits| waits_for(waits, budget)))
            }
            Given::Act(_) | Given::Edit(..) => true,
        };
        let Some((place, found)) = chosen(which, global, (&own.drive, waiting), printer).await?
        else {
            return Ok(Exit::Answered);
        };
        let mut fates: Vec<&str> = Vec::new();
        let (mut failed, mut exit) = (0, Exit::Answered);
        for some in found.chunks(AT_ONCE) {
            let mut tasks = Vec::new();
            for info in some {
                tasks.push(self.one_of(&place, info, own));
            }
            // The results are printed in the order of the list.
            let outcomes = join_all(tasks).await;
            for (info, outcome) in some.iter().zip(outcomes) {
                fates.push(outcome.fate);
                failed += u64::from(!outcome.is_bad() && outcome.exit() == Exit::Failed);
                exit = worse(exit, outcome.exit());
                let short = shortest(&info.id, found.iter().map(|i| &*i.id));
                self.print(short, info, &outcome, printer)?;
            }
        }
        printer.talk(self.sum(&fates, failed));
        if let Some(end) = &self.end {
            let filter = filter(which.filter.as_deref().unwrap_or_default());
            printer.next(format!("steersman {end} --where {filter}"), "ends it");
        }
        Ok(exit)
    }

    /// Returns the number of sessions of each result, and of those that took the order and failed afterwards.
    fn sum(&self, fates: &[&str], failed: u64) -> String {
        let of = |fate: &str| fates.iter().filter(|one| **one == fate).count();
        let numbers = FATES.iter().filter_map(|&(fate, word)| {
            let word = if word.is_empty() { self.word } else { word };
            // The first number is always shown.
            let n = Some(of(fate)).filter(|n| *n > 0 || fate == "taken")?;
            Some(format!("{n} {word}"))
        });
        let mut numbers: Vec<String> = numbers.collect();
        if failed > 0 {
            numbers.insert(1, format!("of these {failed} failed"));
        }
        let all = count(fates.len() as u64, "session");
        format!("{all}: {}.", numbers.join(", "))
    }

    fn print(
        &self,
        short: &str,
        info: &SessionInfo,
        outcome: &Outcome,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        if printer.is_json() {
            let mut document = match &outcome.settled {
                Some(settled) => {
                    play::document(&info.id, info.head, settled, outcome.first.as_ref())
                }
                None => json!({ "session": &*info.id, "status": self.status(outcome) }),
            };
            document["fate"] = outcome.fate.into();
            if outcome.is_reason() {
                document["why"] = outcome.text.as_str().into();
            }
            return printer.json(&document);
        }
        let text = if outcome.is_bad() {
            red(&outcome.text)
        } else {
            outcome.text.clone()
        };
        printer.data(format!("{short}  {text}  {}", dim(&sessions::labels(info))).trim_end())
    }

    /// Gives the order to one session of many. An error becomes a result, so that it does not hide the others.
    async fn one_of(&self, place: &Place, info: &SessionInfo, own: &Own) -> Outcome {
        let outcome = if self.goes_on {
            self.driven(place, info, own).await
        } else {
            self.ordered(place, info, own).await
        };
        outcome.unwrap_or_else(|error| Outcome::new("failed", error.message))
    }

    /// Puts the order into the inbox, and drives the session until it settles.
    async fn driven(
        &self,
        place: &Place,
        info: &SessionInfo,
        own: &Own,
    ) -> Result<Outcome, CommandError> {
        let act = self.act(place, &info.id).await?;
        let receipt = place.steersman.deliver(&info.id, act).await?;
        if own.no_run {
            return Ok(Outcome::in_inbox());
        }
        match place.steersman.session_for(&info.id, &receipt.id).await {
            Ok((session, fate)) => {
                let session = session.driven().clone();
                if let Fate::Refused(why) = fate {
                    session.stop().await;
                    return Ok(Outcome::refused(why));
                }
                let settled = session.settled().await;
                session.stop().await;
                let settled = settled?;
                if let Fate::Waits(why) = fate {
                    let line = taken(place, &info.id, &receipt.id, info.head).await;
                    match line {
                        Ok(Some(_)) => {}
                        Ok(None) => {
                            let text = format!("stored in its inbox, and waits: {why}");
                            return Ok(Outcome {
                                settled: Some(settled),
                                ..Outcome::new("inbox", text)
                            });
                        }
                        Err(error) if error.exit == Exit::Usage => {
                            return Ok(Outcome::refused(error.message));
                        }
                        Err(error) => return Err(error),
                    }
                }
                let first = match &*settled {
                    Settled::Failed { .. } | Settled::Limit { .. } => {
                        Reason::of(&place.engine().inspect(&info.id).await?)
                    }
                    _ => None,
                };
                Ok(self.came_to(info, settled, first))
            }
            Err(steersman::Error::Engine(EngineError::Store(StoreError::Owned {
                process,
                ..
            }))) => {
                let reached = elsewhere(place, &info.id, &receipt.id, info.head).await;
                Outcome::elsewhere(reached, format!("{}, by process {process}", self.word))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the result in a session that took the order and was driven until it settled.
    fn came_to(&self, info: &SessionInfo, settled: Arc<Settled>, first: Option<Reason>) -> Outcome {
        let (was, is) = (&*info.state.status, settled.word());
        let rests = matches!(was, "answered" | "failed" | "limit" | "cancelled");
        let outcome = if self.resumes && rests && was == is {
            Outcome::new("unchanged", format!("was not paused: {is} as before"))
        } else {
            let why = first.as_ref().map(|first| format!(" ({})", first.told()));
            let why = why.unwrap_or_default();
            Outcome::new("taken", format!("{}: {is}{why}", self.word))
        };
        Outcome {
            settled: Some(settled),
            first,
            ..outcome
        }
    }
}

/// Returns true for a model call that waits for the budget over sessions of this name.
fn waits_for(pending: &Pending, budget: &str) -> bool {
    pending.kind == PendingKind::Budget && named_in(&pending.text) == Some(budget)
}

/// Returns the code that tells more of what is left to do. A failure comes first, then a doubt, a limit, and a wait.
fn worse(a: Exit, b: Exit) -> Exit {
    const ORDER: [Exit; 4] = [Exit::Failed, Exit::Doubt, Exit::Limit, Exit::Waits];
    let worst = ORDER.into_iter().find(|exit| *exit == a || *exit == b);
    worst.unwrap_or(Exit::Answered)
}

/// Returns the sessions that match, and that `also` lets pass, after a confirmation. `None` means that the person said no, or that no session matches.
pub(crate) async fn chosen(
    which: &Which,
    global: &Global,
    (drive, also): (&Drive, impl Fn(&SessionInfo) -> bool),
    printer: &Printer,
) -> Result<Option<(Place, Vec<SessionInfo>)>, CommandError> {
    let matching = Filter::parse(which.filter.as_deref())?;
    let place = Place::required(global, drive).await?;
    let mut found = sessions::select(&place, &matching).await?;
    found.retain(also);
    if found.is_empty() {
        printer.talk("No session matches.");
        return Ok(None);
    }
    let all = count(found.len() as u64, "session");
    let match_ = if found.len() == 1 { "matches" } else { "match" };
    printer.talk(format!("{all} {match_}."));
    if which.yes {
        return Ok(Some((place, found)));
    }
    let filter = filter(which.filter.as_deref().unwrap_or_default());
    let looked = format!(
        "to see them: `steersman sessions --where {filter}`; to go ahead: the same with --yes"
    );
    if !printer.can_ask() {
        return Err(CommandError::usage(format!(
            "{all} {match_}; nothing was done, as nobody is here to say yes"
        ))
        .hint(looked));
    }
    let mut prompt = Prompt::default();
    match prompt.line(&format!("  all {all}? [y]es  [n]o > ")).await? {
        Typed::Line(typed) if matches!(typed.trim(), "y" | "yes") => Ok(Some((place, found))),
        _ => {
            printer.talk(format!("Nothing was done. {}", typed(&looked)));
            Ok(None)
        }
    }
}

/// Waits for all tasks; returns the results in their order.
async fn join_all<F: Future>(tasks: Vec<F>) -> Vec<F::Output> {
    let mut tasks: Vec<_> = tasks.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = tasks.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut pending = false;
        for (task, done) in tasks.iter_mut().zip(&mut done) {
            if done.is_some() {
                continue;
            }
            match task.as_mut().poll(cx) {
                std::task::Poll::Ready(output) => *done = Some(output),
                std::task::Poll::Pending => pending = true,
            }
        }
        if pending {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    done.into_iter()
        .map(|output| output.expect("all are done"))
        .collect()
}
