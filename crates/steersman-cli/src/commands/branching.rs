//! Shared by `fork`, `rewind` and `adopt`: the line and branch of an address, and the report on a new branch.

use crate::address::Address;
use crate::asked;
use crate::cli::{Drive, Global, Own};
use crate::commands::act::{Reached, Target};
use crate::error::{CommandError, Exit};
use crate::place::{self, branch_name};
use crate::play::follow::follow;
use crate::play::{self, Ended};
use crate::printer::{Printer, typed};
use crate::words;
use serde_json::json;
use steersman::Act;
use steersman::runtime::engine::{BranchView, Inspection};
use steersman::runtime::session::Settled;
use steersman::runtime::store::bounds;
use steersman::views::effects::Effect;
use steersman::views::elsewhere;
use steersman::views::log::Log;
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

/// Returns the command with which the session continues with a branch, and what it does. `adopt` is refused if the current branch has
/// changed since the fork; `rewind` leaves those changes behind, but is refused after a simulated effect.
pub(crate) fn take_over(
    inspection: &Inspection,
    branch: &BranchView,
    short: &str,
) -> Option<(String, String)> {
    let name = branch_name(branch);
    if not_adoptable(inspection, branch.id).is_none() {
        let adopt = format!("steersman adopt {short}:{name}");
        return Some((adopt, "continues with this branch".to_owned()));
    }
    let back = Act::rewind(Some(branch.id), branch.head, None, None);
    if branch.snapshot.first_simulated.is_some() || back.refusal(inspection).is_some() {
        return None;
    }
    let rewind = format!("steersman rewind {short}:{name}@head");
    let common = inspection.ledger.common(branch.id, inspection.current);
    let left = common.map_or_else(String::new, |at| {
        format!(", and leaves behind what the current branch did after @{at}")
    });
    Some((rewind, format!("continues with this branch{left}")))
}

/// Returns rows for some effects of a session.
pub(crate) fn told(
    log: &Log,
    seen: &Inspection,
    effects: impl IntoIterator<Item = Id>,
) -> Vec<String> {
    let all = elsewhere::of(log, seen);
    let found = |id: Id| all.all().find(|effect| effect.id == id);
    let row = |effect: &Effect| {
        let args = words::line(&words::arguments(&effect.args), words::width());
        format!("{} {}({args}) is {}", effect.id, effect.tool, effect.word())
    };
    effects.into_iter().filter_map(found).map(row).collect()
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
    inspection: Inspection,
    log: Log,
    short: String,
    at: usize,
    /// The line where it was forked.
    pub(crate) from: Line,
    /// The first line of the branch.
    line: Line,
    settled: Settled,
    goes_on: GoesOn,
    now: i64,
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
        let inspection = target.place.engine().inspect(&id).await?;
        let log = target.place.log(&id).await?;
        let gone = || CommandError::store(format!("line {line} opened no branch"));
        let (branch, from) = log.opened(line).ok_or_else(gone)?;
        let at = inspection.branches.iter().position(|b| b.id == branch);
        let at = at.ok_or_else(gone)?;
        let settled = inspection.settled_on(&inspection.branches[at]);
        Ok(Some(Self {
            short: target.place.short(&id).await?,
            at,
            from,
            line,
            settled,
            goes_on,
            now: target.place.now(),
            inspection,
            log,
        }))
    }

    fn branch(&self) -> &BranchView {
        &self.inspection.branches[self.at]
    }

    pub(crate) fn name(&self) -> String {
        branch_name(self.branch())
    }

    /// Returns the command with which the session continues with the branch.
    pub(crate) fn take_over(&self) -> Option<String> {
        take_over(&self.inspection, self.branch(), &self.short).map(|(command, _)| command)
    }

    pub(crate) fn short(&self) -> &str {
        &self.short
    }

    /// Lists effects on the superseded lines that touched the world, or may have.
    pub(crate) fn left(&self) -> Vec<String> {
        let listed = self.log.listed(self.line);
        told(&self.log, &self.inspection, listed)
    }

    /// Reports the result of the branch; its answer goes to standard output. If no message was sent and nothing runs, there
    /// is no result to report.
    pub(crate) fn report(&self, said: bool, printer: &Printer) -> Result<(), CommandError> {
        let branch = self.branch();
        if printer.is_json() {
            let info = &self.inspection.info;
            let mut document = play::document(&info.id, branch.head, &self.settled, None);
            document["branch"] = self.name().into();
            document["from"] = self.from.0.into();
            document["dry"] = branch.snapshot.dry.into();
            document["current"] = (branch.id == self.inspection.current).into();
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
        if !said && branch.head <= self.line && matches!(self.settled, Settled::Answered { .. }) {
            printer.talk("It rests there: say something to go on.");
            return Ok(());
        }
        match &self.settled {
            Settled::Answered { text, .. } => printer.whole(&**text)?,
            Settled::Asks(all) | Settled::Doubt(all) | Settled::Waits(all) => {
                let elsewhere = asked::elsewhere_in(&self.log, &self.inspection, all);
                for pending in all {
                    for row in asked::frame(pending, &elsewhere, self.now, words::talk_width()) {
                        printer.talk(row);
                    }
                    for command in asked::commands(&self.short, pending) {
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
