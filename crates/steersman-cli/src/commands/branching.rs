//! Shared by `fork`, `rewind` and `adopt`: the line and branch of an address, and the report on a new branch.

use crate::address::Address;
use crate::asked;
use crate::cli::{Drive, Global, Own};
use crate::commands::act::{Reached, Target};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::place::{self, branch_name};
use crate::play::follow::follow;
use crate::play::there::{self, Followed};
use crate::play::{self, Ended};
use crate::printer::{Printer, typed};
use crate::words;
use serde_json::json;
use steersman::Act;
use steersman::runtime::engine::Inspection;
use steersman::runtime::session::Settled;
use steersman::runtime::store::bounds;
use steersman::views::screen::{Ask, BegunScreen, Behind, TakeOver};
use steersman_client::Opened;
use steersman_machine::stored::ids::{Id, Line};

/// A branch of a session, and a line of it.
pub(crate) struct Spot {
    pub(crate) target: Target,
    pub(crate) branch: Id,
    /// The name of the branch as people type it.
    pub(crate) name: String,
    /// True if the address names the branch.
    pub(crate) named: bool,
    pub(crate) line: Option<Line>,
}

impl Spot {
    pub(crate) async fn find(
        address: &str,
        global: &Global,
        drive: &Drive,
    ) -> Result<Self, CommandError> {
        let address = Address::parse(address)?;
        let target = Target::at(&address, global, drive).await?;
        let inspection = &target.inspection;
        let named = target.branch().is_some();
        let branch = target.branch().or_else(|| inspection.current_branch());
        let branch = branch.ok_or_else(|| CommandError::usage("this session has not begun"))?;
        let line = match &address.line {
            None => None,
            Some(line) => {
                let log = target.place.log(&inspection.info.id).await?;
                let path = log.path(branch, &inspection.branches);
                place::line(Some(line), &path)?
            }
        };
        let (id, name) = (branch.id, branch_name(branch));
        Ok(Self {
            target,
            branch: id,
            name,
            named,
            line,
        })
    }

    /// Returns the names of all branches except the current one.
    pub(crate) fn others(&self) -> Vec<String> {
        let inspection = &self.target.inspection;
        let branches = inspection.branches.iter();
        let others = branches.filter(|b| b.id != inspection.current);
        others.map(branch_name).collect()
    }

    /// Returns true if a rewind can continue with the branch although it cannot be adopted.
    pub(crate) fn goes_back(&self) -> bool {
        let inspection = &self.target.inspection;
        let mut others = inspection.branches.iter();
        let found = others.find(|b| b.id == self.branch && b.id != inspection.current);
        let simulated = found.is_none_or(|b| b.snapshot.first_simulated.is_some());
        !simulated && not_adoptable(inspection, self.branch).is_some()
    }
}

/// Parses a branch label. It must be distinct from ids and numbers, and fit between `:` and `@` of an address.
pub(crate) fn branch_label(text: &str) -> Result<String, String> {
    bounds::unfit_label(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Refuses a label that is already given, before anything is asked or written to the log.
pub(crate) fn free(inspection: &Inspection, label: Option<&str>) -> Result<(), CommandError> {
    match label.filter(|label| inspection.ledger.find_branch(label).is_some()) {
        Some(label) => Err(CommandError::usage(format!(
            "a branch `{label}` exists already"
        ))),
        None => Ok(()),
    }
}

/// Returns the reason why a branch cannot be adopted, as far as the log shows it now.
pub(crate) fn not_adoptable(inspection: &Inspection, branch: Id) -> Option<String> {
    Act::adopt(branch, None).refusal(inspection)
}

/// Returns the command with which the session continues with a branch, and what it does.
pub(crate) fn takes_over(of: &TakeOver, short: &str) -> (String, String) {
    let name = &of.branch;
    if of.adopts {
        let adopt = format!("steersman adopt {short}:{name}");
        return (adopt, "continues with this branch".to_owned());
    }
    let rewind = format!("steersman rewind {short}:{name}@head");
    let left = of.leaves.map_or_else(String::new, |at| {
        format!(", and leaves behind what the current branch did after @{at}")
    });
    (rewind, format!("continues with this branch{left}"))
}

/// Returns rows for effects that are left behind.
pub(crate) fn told(effects: &[Behind]) -> Vec<String> {
    let row = |effect: &Behind| {
        let args = words::line(&words::arguments(&effect.args), words::width());
        format!(
            "{} {}({args}) is {}",
            effect.effect, effect.tool, effect.word
        )
    };
    effects.iter().map(row).collect()
}

/// The process that continues a new branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GoesOn {
    /// No process: the branch is at rest.
    Nobody,
    /// No process: a person interrupted the branch before it came to rest.
    Interrupted,
    /// The process that drives the session. It reports the result.
    Elsewhere,
}

/// A new branch and its result.
pub(crate) struct Begun {
    screen: BegunScreen,
    settled: Settled,
    goes_on: GoesOn,
}

impl Begun {
    /// Opens the branch. If another process drives the session and `follows` is set, shows what becomes of the branch there until
    /// it rests. `None` means that it is not driven here, and that everything was reported.
    pub(crate) async fn reach(
        spot: &Spot,
        act: Act,
        own: &Own,
        printer: &Printer,
        follows: bool,
    ) -> Result<Option<Self>, CommandError> {
        let target = &spot.target;
        let id = target.inspection.info.id.clone();
        let (line, goes_on) = match target.reach(act, own, printer).await? {
            Reached::Driven(mut play, ended, Some(line)) => {
                let is_over = play.let_go().await?;
                let interrupted = !is_over || matches!(ended, Ended::Interrupted);
                (
                    line,
                    if interrupted {
                        GoesOn::Interrupted
                    } else {
                        GoesOn::Nobody
                    },
                )
            }
            Reached::Elsewhere(line) => {
                let rested = match target.place.log(&id).await?.opened(line) {
                    Some((branch, _)) if follows && !printer.is_json() => {
                        follow(&target.place, printer, &id, Some(branch), line).await?
                    }
                    _ => None,
                };
                let goes_on = rested.map_or(GoesOn::Elsewhere, |_| GoesOn::Nobody);
                (line, goes_on)
            }
            other => {
                target.noted(&other, printer).await?;
                return Ok(None);
            }
        };
        let ask = Ask {
            after: Some(line.0),
            ..Ask::default()
        };
        let screen: BegunScreen = target.place.screen_of(&id, &ask).await?;
        Ok(Some(Self::of(screen, goes_on)))
    }

    fn of(screen: BegunScreen, goes_on: GoesOn) -> Self {
        Self {
            settled: screen.stands.clone().into(),
            screen,
            goes_on,
        }
    }

    /// Reads a branch that a server opened. If `follows` is set, first shows what becomes of it there until it rests.
    pub(crate) async fn at_server(
        there: &There,
        opened: &Opened,
        printer: &Printer,
        follows: bool,
    ) -> Result<Self, CommandError> {
        there.taken_by(printer);
        let mut goes_on = GoesOn::Elsewhere;
        if follows && !printer.is_json() {
            let followed = Followed {
                session: there.id(),
                branch: Some(&opened.branch),
                after: opened.line.saturating_sub(1),
                least: opened.line.saturating_sub(1),
                begins: false,
                whole: false,
            };
            let rested = there::follow(&there.remote, printer, &followed).await?;
            goes_on = rested.map_or(GoesOn::Elsewhere, |_| GoesOn::Nobody);
        }
        let ask = Ask {
            after: Some(opened.line),
            ..Ask::default()
        };
        let screen = there.remote.screen_of(there.id(), &ask).await?;
        Ok(Self::of(screen, goes_on))
    }

    pub(crate) fn name(&self) -> &str {
        &self.screen.name
    }

    /// Returns the command with which the session continues with the branch.
    pub(crate) fn take_over(&self) -> Option<String> {
        let of = self.screen.take_over.as_ref()?;
        Some(takes_over(of, &self.screen.short).0)
    }

    pub(crate) fn short(&self) -> &str {
        &self.screen.short
    }

    /// Returns the line where it was forked.
    pub(crate) fn from(&self) -> Line {
        self.screen.from
    }

    /// Lists effects on the superseded lines that touched the world, or may have.
    pub(crate) fn left(&self) -> Vec<String> {
        told(&self.screen.left)
    }

    /// Reports the result of the branch; its answer goes to standard output. If no message was sent and nothing runs, there
    /// is no result to report.
    pub(crate) fn report(&self, said: bool, printer: &Printer) -> Result<(), CommandError> {
        let branch = &self.screen;
        if printer.is_json() {
            let mut document = play::document(&branch.session, branch.head, &self.settled, None);
            document["branch"] = self.name().into();
            document["from"] = branch.from.0.into();
            document["dry"] = branch.dry.into();
            document["current"] = branch.is_current.into();
            document["left"] = json!(self.left());
            match self.goes_on {
                GoesOn::Nobody => {}
                GoesOn::Interrupted => document["status"] = "interrupted".into(),
                GoesOn::Elsewhere => document["status"] = "taken".into(),
            }
            return printer.json(&document);
        }
        if self.goes_on == GoesOn::Elsewhere {
            return Ok(());
        }
        if !said && branch.head <= branch.line && matches!(self.settled, Settled::Answered { .. }) {
            printer.talk("It rests there: say something to go on.");
            return Ok(());
        }
        match &self.settled {
            Settled::Answered { text, .. } => printer.whole(&**text)?,
            Settled::Asks(all) | Settled::Doubt(all) | Settled::Waits(all) => {
                let elsewhere = branch.elsewhere();
                for pending in all {
                    for row in asked::frame(pending, &elsewhere, branch.now, words::talk_width()) {
                        printer.talk(row);
                    }
                    for command in asked::commands(&branch.short, pending) {
                        printer.talk(format!("  {}", typed(&command)));
                    }
                }
            }
            Settled::Failed { code, message } => {
                printer.complain(format!("It failed there ({code}): {message}"));
            }
            Settled::Limit { code, text } => {
                printer.talk(format!("The limit `{code}` was reached there."));
                if let Some(text) = text {
                    printer.whole(&**text)?;
                }
            }
            Settled::Cancelled => printer.talk("It is cancelled there."),
            Settled::Paused => printer.talk("The session is paused: nothing of it begins."),
            Settled::Empty => printer.talk("Nothing was said there yet."),
        }
        Ok(())
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.goes_on {
            GoesOn::Nobody => play::exit(&self.settled),
            GoesOn::Interrupted => Exit::Interrupted,
            GoesOn::Elsewhere => Exit::Answered,
        }
    }
}
